/* Which instance is in which row, with its identity as it is written in the file, so that every segment can
 * begin by repeating it.
 *
 * Texts lie one behind the other in one lazily filled mapping; instances that end leave holes, and when the
 * holes are as large as the live texts everything is moved together. Past the bound a text is kept in a
 * shortened form, past that not at all. Rows are address space that grows when a higher one is used, so that
 * little is reserved where little is needed; nothing is allocated after identities_init(). */
#ifndef STORE_IDENTITY_H
#define STORE_IDENTITY_H

#include "base/pairs.h"
#include "metric/table.h"

#define IDENTITY_ROWS_MAX (UINT32_C(1) << 18) /* rows of a set that can be recorded */
#define IDENTITY_TEXT_MAX 8192		      /* longer ones are kept shortened */

struct identity {
	uint32_t id; /* ROW_FREE: none */
	uint32_t size;
	uint32_t at;
	bool shortened;
	int64_t time_ns;
};

struct identities {
	uint32_t nr_sets;
	struct identity **row; /* [nr_sets][cap] */
	uint32_t *cap;	       /* [nr_sets]: rows that there is room for */
	uint32_t *nr_rows;     /* [nr_sets]: rows ever used */
	uint8_t *text;
	size_t end, live, bound, reserved;
};

int identities_init(struct identities *all, uint32_t nr_sets);
void identities_release(struct identities *all);

/* NULL when the row is out of bounds, or was never used. */
static inline struct identity *identity_of(const struct identities *all, uint32_t set, uint32_t row)
{
	return set < all->nr_sets && row < all->cap[set] ? &all->row[set][row] : NULL;
}

/* `encoded` is what pairs_encode() made of `pairs`. */
void identity_set(struct identities *all, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *pairs, const void *encoded, size_t size);
void identity_clear(struct identities *all, uint32_t set, uint32_t row);
/* The encoded pairs; "no pairs" when there was no room. */
const uint8_t *identity_text(const struct identities *all, const struct identity *i, size_t *ret_size);

/* As pairs_encode(), with every value cut to max_value bytes. */
void pairs_encode_short(const struct pairs *p, size_t max_value, struct buf *out);
#endif
