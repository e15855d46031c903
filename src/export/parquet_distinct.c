/* The distinct values of a column chunk: see parquet_distinct.h. */
#include "export/parquet_distinct.h"

#include "base/owned.h"

#include <string.h>

void distinct_release(struct distinct *d)
{
	free(d->value);
	idmap_release(&d->numbers);
	*d = (struct distinct){0};
}

void distinct_clear(struct distinct *d)
{
	idmap_clear(&d->numbers);
	d->nr = 0;
}

int distinct_map(
	struct distinct *d, const uint64_t *v, size_t nr, uint32_t most, uint32_t *ret_id, uint32_t *ret_half)
{
	uint32_t before = d->nr;

	*ret_half = before;
	for (size_t i = 0; i < nr; i++) {
		if (i == nr / 2)
			*ret_half = d->nr;
		if (i && v[i] == v[i - 1]) {
			ret_id[i] = ret_id[i - 1];
			continue;
		}
		if (idmap_room(&d->numbers) < 0 || ARRAY_ROOM(d->value, d->cap, d->nr + 1) < 0)
			return -ENOMEM;
		ret_id[i] = idmap_number(&d->numbers, v[i], d->nr);
		if (ret_id[i] == d->nr)
			d->value[d->nr++] = v[i];
		if (d->nr > most) {
			d->nr = before;
			return -E2BIG;
		}
	}
	return 0;
}

void text_numbers_release(struct text_numbers *t)
{
	free(t->number);
	free(t->text);
	*t = (struct text_numbers){0};
}

void text_numbers_clear(struct text_numbers *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		t->number[t->text[i]] = 0;
	t->nr = 0;
}

static int make_room(uint32_t **array, uint32_t *cap, uint32_t want)
{
	size_t more = MAX((size_t)want, (size_t)*cap + *cap / 2);
	uint32_t *grown;

	if (want <= *cap)
		return 0;
	more = MIN(more, (size_t)UINT32_MAX);
	grown = reallocarray(*array, more, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + *cap, 0, (more - *cap) * sizeof(*grown));
	*array = grown;
	*cap = (uint32_t)more;
	return 0;
}

int text_numbers_map(
	struct text_numbers *t, const uint32_t *text, size_t nr, uint32_t nr_texts, uint32_t *ret_id)
{
	if (make_room(&t->number, &t->cap_number, nr_texts) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (unlikely(text[i] >= nr_texts))
			return -EINVAL;
		if (!t->number[text[i]]) {
			if (make_room(&t->text, &t->cap_text, t->nr + 1) < 0)
				return -ENOMEM;
			t->text[t->nr] = text[i];
			t->number[text[i]] = ++t->nr;
		}
		ret_id[i] = t->number[text[i]] - 1;
	}
	return 0;
}
