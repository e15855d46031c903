/* The distinct values of a column chunk, numbered as they come. Numbers are found by their bits, in a table
 * that grows with them; texts are numbered already, so that theirs are only counted anew. */
#ifndef EXPORT_PARQUET_DISTINCT_H
#define EXPORT_PARQUET_DISTINCT_H

#include "base/idmap.h"

#define DISTINCT_MOST 32768 /* numbers; a column with more is smaller without a dictionary */

struct distinct {
	uint64_t *value;
	uint32_t nr, cap;
	struct idmap numbers;
};

void distinct_release(struct distinct *d);
void distinct_clear(struct distinct *d);
/* Numbers for all values. -E2BIG when there are more than `most`: the dictionary is then as it was, but takes
 * no more. -ENOMEM. *ret_half: how many there were after half of the values. */
int distinct_map(struct distinct *d, const uint64_t *v, size_t nr, uint32_t most, uint32_t *ret_id,
	uint32_t *ret_half);

struct text_numbers {
	uint32_t *number; /* by the text's number in the table: number + 1 here; 0: not here */
	uint32_t *text;	  /* and back */
	uint32_t nr, cap_number, cap_text;
};

void text_numbers_release(struct text_numbers *t);
void text_numbers_clear(struct text_numbers *t);
/* -EINVAL: a text that is none of nr_texts. -ENOMEM. */
int text_numbers_map(
	struct text_numbers *t, const uint32_t *text, size_t nr, uint32_t nr_texts, uint32_t *ret_id);
#endif
