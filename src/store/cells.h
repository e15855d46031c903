/* The body of a CELLS record: what changed in some rows of one set, column by column.
 *
 *	varint set
 *	varint flags
 *	varint number of rows, n
 *	n x zigzag varint: row - previous row - 1 (the row before the first is -1)
 *	if CELLS_VALIDITY: n x varint: bits of the validity mask that changed
 *	varint mask of the columns in which any of the rows changed
 *	for each such column, from the lowest: varint k, then
 *		k = 0: n x zigzag varint: new - old, modulo 2^64
 *		k > 0: only k rows changed, for each: varint rows passed over, zigzag varint new - old
 *
 * Old is 0 in the first tick of a segment. A cell travels whether it is valid or not, so that both sides
 * always agree on it. By column, because neighbours in a column resemble each other and zstd sees them side
 * by side; by groups of rows, because then both sides work in the cache and in bounded memory.
 *
 * Tried on a real tree of 1,000 processes, 40 % of them active (bytes per process and tick after zstd): by
 *row with a mask 3.28; by column 2.81; with the k above 2.68; columns bit-packed by 64 rows 2.64; lengths in
 *bits apart from the bits 2.63. The last two were not worth their decoders. */
#ifndef STORE_CELLS_H
#define STORE_CELLS_H

#include "base/buf.h"
#include "metric/metric.h"
#include "metric/table.h"
#include "store/format.h"

#define CELLS_GROUP 1024 /* rows of a record as we write them */
/* Most bytes of a record of so many rows. */
#define CELLS_ROOM (40 + 2 * (size_t)METRICS_MAX + CELLS_GROUP * (10 + 10 + 10 * (size_t)METRICS_MAX))

struct cells { /* a group of rows in the making */
	uint32_t nr;
	uint32_t row[CELLS_GROUP];
	uint64_t flip[CELLS_GROUP];    /* validity that changed */
	uint64_t changed[CELLS_GROUP]; /* columns that changed */
	uint64_t flips;		       /* in any row */
	uint64_t columns;	       /* changed in any row */
};

/* Adds the row if anything in it changed, against zero when `absolute`. */
void cells_add(struct cells *c, const struct table *t, uint32_t row, bool absolute);
/* Writes the group at `out` (CELLS_ROOM bytes), empties it, returns the bytes written. */
size_t cells_encode(struct cells *c, uint32_t set, const struct table *t, bool absolute, uint8_t *out);

/* Reads the rows of a body whose set was read already into row[CELLS_ROWS_MAX]; their number or -EBADMSG.
 * Every row is live in t. */
int cells_decode_rows(struct view *v, const struct table *t, uint32_t *row, uint64_t *ret_flags);
/* Applies the rest to the rows, and adds to t->changed what is other now. -EBADMSG when it does not fit; some
 * cells are changed then. */
int cells_decode(struct view *v, struct table *t, const uint32_t *row, uint32_t nr, uint64_t flags);
#endif
