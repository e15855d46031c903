/* The present values of one set: a row per live instance, a cell per metric, a validity bit per cell.
 *
 * Collectors write it, the store encodes what changed, and the reader rebuilds it tick by tick. Memory is
 * reserved once for `cap` rows and becomes real only when a row is used, so nothing is allocated while
 * sampling and an empty table of 100,000 rows costs nothing. */
#ifndef METRIC_TABLE_H
#define METRIC_TABLE_H

#include "base/base.h"

#define ROW_FREE 0 /* instance ids start at 1 */

/* What a tick is beside the others, which are those at deadlines: a mask. It is in the recording. */
enum tick_at {
	TICK_AT_EDGE = 1, /* between deadlines, because the job told something */
	TICK_AT_END = 2,  /* none follows */
};

struct table {
	uint32_t nr_cols;   /* at most METRICS_MAX */
	uint32_t cap;	    /* rows */
	uint32_t nr_rows;   /* rows ever used: live ones are below this */
	int64_t *cell;	    /* [cap][nr_cols] */
	uint64_t *valid;    /* [cap]: bit c is set when the cell in column c holds a value */
	uint32_t *id;	    /* [cap]: instance in the row, or ROW_FREE */
	uint32_t occupancy; /* changes whenever a row is bound or freed */
	/* Rows written this tick, in any order, each once. */
	uint32_t *touched; /* [cap] */
	uint32_t nr_touched;
	int64_t delay_ns;    /* how long after the tick's time the touched rows were read; 0: about then */
	uint8_t *is_touched; /* [cap] */
	/* What the touched rows held before this tick. The store compares with it, readers subtract. Bits of
	 * valid_before are 0 in a row's first tick. */
	int64_t *before;	/* [cap][nr_cols] */
	uint64_t *valid_before; /* [cap] */
	uint64_t *changed; /* [cap]: of a touched row that was read, the cells that are other than before */
	void *memory;
	size_t memory_size;
};

int table_init(struct table *t, uint32_t nr_cols, uint32_t cap);
void table_release(struct table *t);

/* Puts an instance into a free row; its cells start invalid. */
void table_bind(struct table *t, uint32_t row, uint32_t id);
void table_unbind(struct table *t, uint32_t row);

static inline int64_t *table_row(struct table *t, uint32_t row)
{
	return t->cell + (size_t)row * t->nr_cols;
}

/* To be called before a row's cells are written in a tick. */
static inline void table_touch(struct table *t, uint32_t row)
{
	if (!t->is_touched[row]) {
		t->is_touched[row] = 1;
		t->touched[t->nr_touched++] = row;
	}
}

static inline void table_set(struct table *t, uint32_t row, uint32_t col, int64_t value)
{
	t->cell[(size_t)row * t->nr_cols + col] = value;
	t->valid[row] |= UINT64_C(1) << col;
}

static inline void table_unset(struct table *t, uint32_t row, uint32_t col)
{
	t->valid[row] &= ~(UINT64_C(1) << col);
}

/* To be called when all users of the tick are done: before = now for the touched rows, then none is
 * touched. */
void table_settle(struct table *t);
#endif
