/* Columns in Arrow's layout: for each a bitmap of what is there and its values, one behind the other, each on
 * a multiple of 64 bytes. The same bytes are the body of a message (arrow.c) and what the C data interface
 * points to (lib/stream.c). */
#ifndef EXPORT_ARROW_BODY_H
#define EXPORT_ARROW_BODY_H

#include "base/buf.h"
#include "export/parquet_distinct.h"
#include "query/tables.h"

#include <zstd.h>

#define ARROW_ALIGN 64

struct arrow_node { /* little-endian, as in messages */
	int64_t nr_rows, nr_missing;
};

struct arrow_buffer {
	int64_t at, len; /* len 0: it is left out */
};

struct arrow_body {
	ZSTD_CCtx *zstd;   /* NULL: nothing is compressed */
	struct buf bytes;  /* padded to ARROW_ALIGN */
	struct buf node;   /* struct arrow_node for each column */
	struct buf buffer; /* struct arrow_buffer: two for each column, three for texts */
	struct buf raw;	   /* scratch */
};

int arrow_body_init(struct arrow_body *b, bool compress);
void arrow_body_release(struct arrow_body *b);
void arrow_body_reset(struct arrow_body *b);
/* A column behind the others; of texts their `index`. Errors stick: arrow_body_error(). */
void arrow_body_column(struct arrow_body *b, enum field_type type, const struct field_cells *c,
	uint32_t nr_rows, const uint32_t *index);
/* A dictionary: those of `which`, or the first nr when it is NULL. */
void arrow_body_texts(struct arrow_body *b, const struct texts *texts, const uint32_t *which, uint32_t nr);
int arrow_body_error(const struct arrow_body *b);

/* The numbers of texts in rows as they are, 0 where there is none. */
int arrow_indices(const struct field_cells *c, uint32_t nr_rows, uint32_t nr_texts, uint32_t *ret);
/* The same in a dictionary of this batch alone, `t`, so that none is larger than a batch however many
 * texts there are in all. It is not changed when it has all that is needed. Returns 1 when it was
 * replaced, else 0. */
int arrow_indices_own(struct text_numbers *t, const struct field_cells *c, uint32_t nr_rows,
	uint32_t nr_texts, uint32_t *ret);

/* Metadata of a field, or of a table, as pairs. Not to be copied: values may point into it. */
struct arrow_pairs {
	size_t nr;
	struct {
		const char *key, *value;
	} pair[8];
	char unit[48], scale[48];
};

void arrow_field_pairs(struct arrow_pairs *p, const struct field *f);
void arrow_table_pairs(struct arrow_pairs *p, const struct data_table *f);
#endif
