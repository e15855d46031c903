/* Values of one column as they come in batches, until they make a page. What is missing is left out of the
 * values and marked in a bitmap; texts get numbers of their own in each row group, so that its dictionary has
 * only what occurs there. */
#ifndef EXPORT_PARQUET_GATHER_H
#define EXPORT_PARQUET_GATHER_H

#include "base/buf.h"
#include "export/parquet_distinct.h"
#include "query/tables.h"

#define PAGE_VALUES 16384 /* smaller: larger files; larger: more memory, and slower as caches are left */

struct parquet_page {
	enum field_type type;
	void *value; /* those that are there: 8 bytes each, 4 for numbers of texts, 1 for flags */
	size_t cap_values;
	uint8_t *bits; /* which rows have one; not in use while all have */
	size_t cap_bits;
	uint32_t nr_rows, nr_values;
	uint32_t nr_texts; /* so far, in this row group */
	bool missing;	   /* some rows have none */
	bool same;	   /* all values are the first, which alone is there */
};

void page_release(struct parquet_page *p);
static inline void page_clear(struct parquet_page *p)
{
	p->nr_rows = p->nr_values = 0;
	p->missing = p->same = false;
}
static inline bool page_has_room(const struct parquet_page *p, uint32_t nr_rows)
{
	return !p->nr_rows || p->nr_values + (uint64_t)nr_rows <= PAGE_VALUES;
}
/* `numbers` and `texts` are for texts only. -ENOMEM, -EINVAL (a text that is none). */
int page_add(struct parquet_page *p, const struct field_cells *cells, uint32_t nr_rows,
	struct text_numbers *numbers, const struct texts *texts);

/* Every value is there then. -ENOMEM. */
int page_spread(struct parquet_page *p);

/* The texts of a row group as its dictionary has them: each with its length in front. */
struct text_page {
	struct buf plain;
	uint32_t nr;
	size_t min, max; /* where in it the first and the last in the order of their bytes begin */
};

int text_page_make(struct text_page *t, const struct text_numbers *numbers, const struct texts *texts);
/* The text that begins there. */
const uint8_t *text_page_get(const struct text_page *t, size_t at, uint32_t *ret_len);
#endif
