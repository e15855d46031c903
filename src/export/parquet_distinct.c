#include "export/parquet_distinct.h"

#include <string.h>

#define SLOTS_FIRST 256

void distinct_release(struct distinct *d)
{
	free(d->value);
	free(d->slot);
	*d = (struct distinct){0};
}

void distinct_clear(struct distinct *d)
{
	if (d->slot)
		memset(d->slot, 0, d->nr_slots * sizeof(*d->slot));
	d->nr = 0;
}

/* Both halves of a long product: every bit of the value reaches the low bits, which values that differ only
 * at the top (powers of two, round doubles) need. */
static inline uint32_t slot_of(uint64_t v, uint32_t mask)
{
	unsigned __int128 product = (unsigned __int128)(v ^ 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;

	return (uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64)) & mask;
}

static int distinct_grow(struct distinct *d)
{
	uint32_t nr_slots = d->nr_slots ? d->nr_slots * 2 : SLOTS_FIRST, mask = nr_slots - 1;
	uint64_t *value = reallocarray(d->value, nr_slots / 2, sizeof(*value));
	uint32_t *slot;

	if (!value)
		return -ENOMEM;
	d->value = value;
	slot = calloc(nr_slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->nr; i++) {
		uint32_t at = slot_of(value[i], mask);

		while (slot[at])
			at = (at + 1) & mask;
		slot[at] = i + 1;
	}
	free(d->slot);
	d->slot = slot;
	d->nr_slots = nr_slots;
	return 0;
}

/* The number of v, which is added when it is new: there is room. */
static inline uint32_t find_or_add(struct distinct *d, uint64_t v)
{
	uint32_t mask = d->nr_slots - 1, at = slot_of(v, mask), n;

	while ((n = d->slot[at])) {
		if (d->value[n - 1] == v)
			return n - 1;
		at = (at + 1) & mask;
	}
	d->value[d->nr] = v;
	d->slot[at] = d->nr + 1;
	return d->nr++;
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
		if (unlikely(d->nr >= d->nr_slots / 2) && distinct_grow(d) < 0)
			return -ENOMEM;
		ret_id[i] = find_or_add(d, v[i]);
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
