/* Collects the values of one column until they make a page: see parquet_gather.h. */
#include "export/parquet_gather.h"

#include "base/owned.h"

#include <string.h>

static size_t value_size(enum field_type type)
{
	return type == FIELD_TEXT ? sizeof(uint32_t) : type == FIELD_FLAG ? 1 : sizeof(uint64_t);
}

void page_release(struct parquet_page *p)
{
	free(p->value);
	free(p->bits);
	p->value = NULL;
	p->bits = NULL;
}

/* For so many values altogether, and nr_rows more. */
static int room_for(struct parquet_page *p, size_t values, uint32_t nr_rows)
{
	size_t bits = ((size_t)p->nr_rows + nr_rows) / 8 + 2;
	void *grown;

	if (values > p->cap_values) {
		values = MAX(values, MIN(p->cap_values * 2, (size_t)PAGE_VALUES));
		grown = reallocarray(p->value, values, value_size(p->type));
		if (!grown)
			return -ENOMEM;
		p->value = grown;
		p->cap_values = values;
	}
	return ARRAY_ROOM(p->bits, p->cap_bits, bits);
}

static int make_room(struct parquet_page *p, uint32_t nr_rows)
{
	return room_for(p, (size_t)p->nr_values + nr_rows, nr_rows);
}

/* nr bits to position `at`, ones where there is no `from`; behind them stand zeros. */
static void add_bits(uint8_t *to, size_t at, const uint8_t *from, uint32_t nr)
{
	unsigned shift = at & 7;
	uint32_t nr_bytes = (nr + 7) / 8;

	to += at / 8;
	to[0] = (uint8_t)(to[0] & ((1u << shift) - 1));
	for (uint32_t i = 0; i < nr_bytes; i++) {
		unsigned byte = from ? from[i] : 0xff;

		if (i == nr_bytes - 1 && nr & 7)
			byte &= (1u << (nr & 7)) - 1;
		to[i] = (uint8_t)(to[i] | byte << shift);
		to[i + 1] = (uint8_t)(byte >> (8 - shift));
	}
}

static void gather_bits(struct parquet_page *p, const struct field_cells *cells, uint32_t nr)
{
	bool some = cells->valid && cells->nr_missing;

	if (some && !p->missing) {
		p->missing = true;
		p->bits[0] = 0;
		add_bits(p->bits, 0, NULL, p->nr_rows);
	}
	if (p->missing)
		add_bits(p->bits, p->nr_rows, some ? cells->valid : NULL, nr);
}

/* Those of `nr` values that are there, to `to`; how many. Inlined for each size, so that it is a constant. */
static inline __attribute__((always_inline)) uint32_t gather_valid(
	uint8_t *to, const uint8_t *from, const uint8_t *valid, uint32_t nr, size_t size)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < nr; i += 8) {
		unsigned mask = valid[i / 8];

		if (nr - i < 8)
			mask &= (1u << (nr - i)) - 1;
		if (mask == 0xff) {
			memcpy(to + done * size, from + i * size, 8 * size);
			done += 8;
			continue;
		}
		for (; mask; mask &= mask - 1)
			memcpy(to + done++ * size, from + (i + (unsigned)__builtin_ctz(mask)) * size, size);
	}
	return done;
}

/* What stands at `from`, nr times. */
static void fill_values(uint8_t *to, const uint8_t *from, uint32_t nr, size_t size)
{
	size_t done = size, all = nr * size;

	memmove(to, from, size);
	for (size_t n; done < all; done += n) {
		n = MIN(done, all - done);
		memcpy(to + done, to, n);
	}
}

int page_spread(struct parquet_page *p)
{
	int r = p->same ? make_room(p, 0) : 0;

	if (r >= 0 && p->same && p->nr_values)
		fill_values(p->value, p->value, p->nr_values, value_size(p->type));
	p->same = false;
	return r;
}

/* Rows that all have what the page's values are, or nothing: they are only counted. */
static int add_same(struct parquet_page *p, const struct field_cells *cells, uint32_t nr_rows,
	struct text_numbers *numbers, const struct texts *texts, bool *ret_done)
{
	uint32_t added = cells->nr_missing ? 0 : nr_rows, id;
	const void *value = p->type == FIELD_TEXT ? (const void *)&id : cells->integer;
	size_t size = value_size(p->type);
	int r = 0;

	*ret_done = cells->same && (!p->nr_values || p->same);
	if (!*ret_done)
		return 0;
	if (added && p->type == FIELD_TEXT) {
		r = text_numbers_map(numbers, cells->text, 1, texts->nr, &id);
		p->nr_texts = numbers->nr;
	}
	if (r < 0)
		return r;
	*ret_done = !added || !p->nr_values || !memcmp(p->value, value, size);
	if (!*ret_done)
		return 0;
	r = room_for(p, 1, nr_rows);
	if (r < 0)
		return r;
	gather_bits(p, cells, nr_rows);
	if (added && !p->nr_values) {
		memcpy(p->value, value, size);
		p->same = true;
	}
	p->nr_rows += nr_rows;
	p->nr_values += added;
	return 0;
}

static uint32_t gather_values(struct parquet_page *p, const struct field_cells *cells, uint32_t nr)
{
	size_t size = value_size(p->type);
	uint8_t *to = (uint8_t *)p->value + p->nr_values * size;
	const uint8_t *from = (const uint8_t *)cells->integer;

	if (cells->nr_missing >= nr)
		return 0;
	if (cells->same) {
		fill_values(to, from, nr, size);
		return nr;
	}
	if (!cells->valid || !cells->nr_missing) {
		memcpy(to, from, nr * size);
		return nr;
	}
	if (size == sizeof(uint64_t))
		return gather_valid(to, from, cells->valid, nr, sizeof(uint64_t));
	if (size == sizeof(uint32_t))
		return gather_valid(to, from, cells->valid, nr, sizeof(uint32_t));
	return gather_valid(to, from, cells->valid, nr, 1);
}

int page_add(struct parquet_page *p, const struct field_cells *cells, uint32_t nr_rows,
	struct text_numbers *numbers, const struct texts *texts)
{
	uint32_t added;
	bool done;
	int r = add_same(p, cells, nr_rows, numbers, texts, &done);

	if (r < 0 || done)
		return r;
	r = page_spread(p);
	if (r >= 0)
		r = make_room(p, nr_rows);
	if (r < 0)
		return r;
	gather_bits(p, cells, nr_rows);
	added = gather_values(p, cells, nr_rows);
	if (p->type == FIELD_TEXT) {
		uint32_t *id = (uint32_t *)p->value + p->nr_values;

		r = text_numbers_map(numbers, id, added, texts->nr, id);
		p->nr_texts = numbers->nr;
	}
	p->nr_rows += nr_rows;
	p->nr_values += added;
	return r;
}

/* ---- texts ---- */

const uint8_t *text_page_get(const struct text_page *t, size_t at, uint32_t *ret_len)
{
	memcpy(ret_len, t->plain.data + at, sizeof(*ret_len));
	return t->plain.data + at + sizeof(*ret_len);
}

/* Of the texts that begin there, as bytes. */
static int text_order(const struct text_page *t, size_t a, size_t b)
{
	uint32_t a_len, b_len;
	const uint8_t *a_text = text_page_get(t, a, &a_len), *b_text = text_page_get(t, b, &b_len);
	int r = memcmp(a_text, b_text, MIN(a_len, b_len));

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

int text_page_make(struct text_page *t, const struct text_numbers *numbers, const struct texts *texts)
{
	*t = (struct text_page){.nr = numbers->nr};
	buf_init(&t->plain, INT32_MAX);
	for (uint32_t i = 0; i < numbers->nr; i++) {
		uint32_t text = numbers->text[i];
		size_t at = t->plain.len;

		buf_add(&t->plain, &texts->len[text], sizeof(texts->len[text]));
		buf_add(&t->plain, texts->text[text], texts->len[text]);
		if (t->plain.err)
			return t->plain.err;
		t->min = text_order(t, at, t->min) < 0 ? at : t->min;
		t->max = text_order(t, at, t->max) > 0 ? at : t->max;
	}
	return 0;
}
