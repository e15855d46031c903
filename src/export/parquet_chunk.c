/* Which encoding is smallest cannot be told from the values alone, since zstd comes behind it: rows of many
 * instances follow one another, so that a value is likelier to be like the one of its instance a tick ago
 * than like its neighbour, and zstd sees that where bits are not shifted. So the first page of a column is
 * encoded in each way that its type has and the smallest is kept; the pages behind it follow, and every few
 * row groups it is tried anew. Rejected: deciding by counts of distinct values, which was wrong for one
 * column in four. */
#include "export/parquet_chunk.h"

#include "export/parquet_encode.h"
#include "export/thrift.h"

#include <math.h>
#include <string.h>

#define PAGE_VALUES 16384
#define CHOICE_AGE 4	/* row groups */
#define ZSTD_LEVEL 1	/* 3 takes twice as long for a hundredth */
#define PAGES_A_CHUNK 8 /* about as many share a dictionary */

int press_init(struct press *p, bool compress)
{
	*p = (struct press){0};
	buf_init(&p->raw, INT32_MAX);
	buf_init(&p->packed[0], INT32_MAX);
	buf_init(&p->packed[1], INT32_MAX);
	if (!compress)
		return 0;
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	return 0;
}

void press_release(struct press *p)
{
	ZSTD_freeCCtx(p->zstd);
	buf_release(&p->raw);
	buf_release(&p->packed[0]);
	buf_release(&p->packed[1]);
	free(p->id);
	p->id = NULL;
}

static int press_ids(struct press *p, size_t nr)
{
	uint32_t *id;

	if (nr <= p->nr_ids)
		return 0;
	id = reallocarray(p->id, nr, sizeof(*id));
	if (!id)
		return -ENOMEM;
	p->id = id;
	p->nr_ids = nr;
	return 0;
}

/* What stands in `raw`, to `out`. */
static int press_pack(struct press *p, struct buf *out)
{
	size_t done;

	if (p->raw.err)
		return p->raw.err;
	buf_reset(out);
	if (!p->zstd) {
		buf_add(out, p->raw.data, p->raw.len);
		return out->err;
	}
	if (!buf_reserve(out, ZSTD_compressBound(p->raw.len)))
		return out->err;
	done = ZSTD_compress2(p->zstd, out->data, out->cap, p->raw.data, p->raw.len);
	if (ZSTD_isError(done))
		return -ENOMEM;
	out->len = done;
	return 0;
}

void chunk_init(struct chunk *c, enum field_type type)
{
	*c = (struct chunk){.type = type, .choice = ENCODING_NONE};
	buf_init(&c->first, INT32_MAX);
	buf_init(&c->pages, INT32_MAX);
}

void chunk_release(struct chunk *c)
{
	free(c->bits);
	free(c->value);
	distinct_release(&c->dictionary);
	text_numbers_release(&c->texts);
	buf_release(&c->first);
	buf_release(&c->pages);
}

void chunk_clear(struct chunk *c)
{
	distinct_clear(&c->dictionary);
	text_numbers_clear(&c->texts);
	buf_reset(&c->first);
	buf_reset(&c->pages);
	c->text_bytes = c->raw_size = c->nr_all = c->nr_missing = 0;
	c->encodings = 0;
	c->bounded = false;
	if (++c->age >= CHOICE_AGE)
		c->choice = ENCODING_NONE;
}

/* ---- pages ---- */

/* Type of page, and the number of the field that says more. */
enum page_type { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

static int put_page(struct chunk *c, struct buf *to, enum page_type type, uint32_t nr, size_t raw_len,
	enum parquet_encoding encoding, const struct buf *packed)
{
	size_t before = to->len;
	struct thrift t;

	if (raw_len > INT32_MAX || packed->len > INT32_MAX)
		return -EFBIG;
	thrift_begin(&t, to);
	thrift_i32(&t, 1, (int32_t)type);
	thrift_i32(&t, 2, (int32_t)raw_len);
	thrift_i32(&t, 3, (int32_t)packed->len);
	thrift_struct(&t, type == PAGE_DATA ? 5 : 7);
	thrift_i32(&t, 1, (int32_t)nr);
	thrift_i32(&t, 2, (int32_t)encoding);
	if (type == PAGE_DATA) {
		thrift_i32(&t, 3, ENCODING_RLE);
		thrift_i32(&t, 4, ENCODING_RLE);
		c->encodings |= 1u << ENCODING_RLE;
	}
	thrift_end(&t);
	thrift_end(&t);
	c->raw_size += to->len - before + raw_len;
	c->encodings |= 1u << encoding;
	buf_add(to, packed->data, packed->len);
	return to->err;
}

static void bound_reals(struct chunk *c)
{
	const double *v = c->value;
	double min = INFINITY, max = -INFINITY;

	if (c->bounded) {
		memcpy(&min, &c->min, sizeof(min));
		memcpy(&max, &c->max, sizeof(max));
	}
	for (uint32_t i = 0; i < c->nr_values; i++) {
		min = v[i] < min ? v[i] : min;
		max = v[i] > max ? v[i] : max;
	}
	if (min > max)
		return;		     /* nothing but NAN */
	min = min == 0 ? -0.0 : min; /* as the format asks: -0 is within, whichever sign was seen */
	max = max == 0 ? 0.0 : max;
	memcpy(&c->min, &min, sizeof(min));
	memcpy(&c->max, &max, sizeof(max));
	c->bounded = true;
}

static void bound_integers(struct chunk *c)
{
	const int64_t *v = c->value;
	int64_t min = c->bounded ? (int64_t)c->min : v[0], max = c->bounded ? (int64_t)c->max : v[0];

	for (uint32_t i = 0; i < c->nr_values; i++) {
		min = MIN(min, v[i]);
		max = MAX(max, v[i]);
	}
	c->min = (uint64_t)min;
	c->max = (uint64_t)max;
	c->bounded = true;
}

static void bound_flags(struct chunk *c)
{
	const uint8_t *v = c->value;

	for (uint32_t i = 0; i < c->nr_values; i++) {
		c->min = c->bounded ? MIN(c->min, (uint64_t)(v[i] != 0)) : v[i] != 0;
		c->max = c->bounded ? MAX(c->max, (uint64_t)(v[i] != 0)) : v[i] != 0;
		c->bounded = true;
	}
}

static void bound(struct chunk *c)
{
	if (!c->nr_values || c->type == FIELD_TEXT)
		return;
	if (c->type == FIELD_REAL)
		bound_reals(c);
	else if (c->type == FIELD_FLAG)
		bound_flags(c);
	else
		bound_integers(c);
}

/* The values behind the levels that stand in `raw` already. */
static void encode(const struct chunk *c, struct press *p, enum parquet_encoding encoding)
{
	switch (encoding) {
	case ENCODING_DICTIONARY:
		encode_indices(&p->raw, p->id, c->nr_values, MAX(bits_needed(c->dictionary.nr - 1), 1u));
		break;
	case ENCODING_DELTA:
		encode_delta(&p->raw, c->value, c->nr_values);
		break;
	case ENCODING_SPLIT:
		encode_split(&p->raw, c->value, c->nr_values);
		break;
	default:
		encode_plain(&p->raw, c->value, c->nr_values);
	}
}

/* What the dictionary adds to a page of this chunk. The first page finds most of the values, later ones those
 * that come at the rate of its second half. */
static int dictionary_weight(const struct chunk *c, struct press *p, uint32_t half, size_t *ret)
{
	uint64_t nr = c->dictionary.nr, later = MIN(2 * (nr - half) + nr / PAGES_A_CHUNK, nr);
	int r;

	buf_reset(&p->raw);
	encode_plain(&p->raw, c->dictionary.value, nr);
	r = press_pack(p, &p->packed[1]);
	if (r < 0)
		return r;
	*ret = p->packed[1].len;
	if (c->nr_values >= PAGE_VALUES)
		*ret = *ret * later / nr;
	return 0;
}

struct trial {
	size_t levels; /* bytes of `raw` that all share */
	enum parquet_encoding best;
	size_t best_weight, best_raw;
};

/* Leaves the smaller one in packed[0]. */
static int try_encoding(
	struct chunk *c, struct press *p, struct trial *t, enum parquet_encoding encoding, size_t weight)
{
	struct buf swap;
	int r;

	p->raw.len = t->levels;
	encode(c, p, encoding);
	r = press_pack(p, &p->packed[1]);
	if (r < 0)
		return r;
	weight += p->packed[1].len;
	if (t->best != ENCODING_NONE && weight >= t->best_weight)
		return 0;
	swap = p->packed[0];
	p->packed[0] = p->packed[1];
	p->packed[1] = swap;
	t->best = encoding;
	t->best_weight = weight;
	t->best_raw = p->raw.len;
	return 0;
}

static int put_levels(const struct chunk *c, struct press *p)
{
	buf_reset(&p->raw);
	encode_levels(&p->raw, c->bits, c->nr_rows, !c->missing);
	return p->raw.err;
}

/* -E2BIG: there is nothing to be gained. */
static int try_dictionary(struct chunk *c, struct press *p, struct trial *t)
{
	uint32_t half, most = MIN(MAX(c->nr_values / 2, 64u), (uint32_t)DISTINCT_MOST);
	size_t weight = 0;
	int r = distinct_map(&c->dictionary, c->value, c->nr_values, most, p->id, &half);

	if (r >= 0)
		r = dictionary_weight(c, p, half, &weight);
	if (r >= 0)
		r = put_levels(c, p);
	return r < 0 ? r : try_encoding(c, p, t, ENCODING_DICTIONARY, weight);
}

static int put_best(struct chunk *c, struct press *p, size_t levels)
{
	struct trial t = {.levels = levels, .best = ENCODING_NONE};
	bool fresh = !(c->encodings & 1u << ENCODING_DICTIONARY);
	int r = 0;

	if (fresh) {
		distinct_clear(&c->dictionary);
		r = try_dictionary(c, p, &t);
	}
	if (r == -E2BIG)
		r = 0;
	if (r >= 0)
		r = put_levels(c, p);
	if (r >= 0)
		r = try_encoding(c, p, &t, c->type == FIELD_REAL ? ENCODING_SPLIT : ENCODING_DELTA, 0);
	if (r >= 0)
		r = try_encoding(c, p, &t, ENCODING_PLAIN, 0);
	if (r < 0)
		return r;
	if (fresh && t.best != ENCODING_DICTIONARY)
		distinct_release(&c->dictionary);
	c->choice = t.best;
	c->age = 0;
	return put_page(c, &c->pages, PAGE_DATA, c->nr_rows, t.best_raw, t.best, &p->packed[0]);
}

static int put_numbers(struct chunk *c, struct press *p)
{
	size_t levels = p->raw.len;
	uint32_t half, most = MIN(c->dictionary.nr + c->nr_values / 2 + 64, (uint32_t)DISTINCT_MOST);
	int r = press_ids(p, c->nr_values);

	if (r >= 0 && c->choice == ENCODING_DICTIONARY) {
		r = distinct_map(&c->dictionary, c->value, c->nr_values, most, p->id, &half);
		if (r == -E2BIG) {
			c->choice = ENCODING_NONE;
			r = 0;
		}
	}
	if (r < 0)
		return r;
	if (c->choice == ENCODING_NONE)
		return put_best(c, p, levels);
	encode(c, p, c->choice);
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r
		     : put_page(c, &c->pages, PAGE_DATA, c->nr_rows, p->raw.len, c->choice, &p->packed[0]);
}

/* Texts, flags, and pages where nothing is. */
static int put_others(struct chunk *c, struct press *p)
{
	enum parquet_encoding encoding = ENCODING_PLAIN;
	int r;

	if (c->nr_values && c->type == FIELD_TEXT) {
		encoding = ENCODING_DICTIONARY;
		encode_indices(&p->raw, c->value, c->nr_values, MAX(bits_needed(c->texts.nr - 1), 1u));
	} else if (c->nr_values) {
		encode_flags(&p->raw, c->value, c->nr_values);
	}
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r : put_page(c, &c->pages, PAGE_DATA, c->nr_rows, p->raw.len, encoding, &p->packed[0]);
}

static int end_page(struct chunk *c, struct press *p)
{
	int r;

	if (!c->nr_rows)
		return 0;
	bound(c);
	r = put_levels(c, p);
	if (r >= 0)
		r = !c->nr_values || c->type == FIELD_TEXT || c->type == FIELD_FLAG ? put_others(c, p)
										    : put_numbers(c, p);
	c->nr_rows = c->nr_values = 0;
	c->missing = false;
	return r;
}

/* ---- gathering ---- */

static size_t value_size(enum field_type type)
{
	return type == FIELD_TEXT ? sizeof(uint32_t) : type == FIELD_FLAG ? 1 : sizeof(uint64_t);
}

static int make_room(struct chunk *c, uint32_t nr_rows)
{
	size_t values = (size_t)c->nr_values + nr_rows, bits = ((size_t)c->nr_rows + nr_rows) / 8 + 2;
	void *grown;

	if (values > c->cap_values) {
		values = MAX(values, MIN(c->cap_values * 2, (size_t)PAGE_VALUES + FRAME_ROWS_MOST));
		grown = reallocarray(c->value, values, value_size(c->type));
		if (!grown)
			return -ENOMEM;
		c->value = grown;
		c->cap_values = values;
	}
	if (bits > c->cap_bits) {
		bits = MAX(bits, c->cap_bits * 2);
		grown = realloc(c->bits, bits);
		if (!grown)
			return -ENOMEM;
		c->bits = grown;
		c->cap_bits = bits;
	}
	return 0;
}

/* nr bits to position `at`; behind them stand zeros. */
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

static void gather_bits(struct chunk *c, const struct field_cells *cells, uint32_t nr)
{
	bool some = cells->valid && cells->nr_missing;

	if (some && !c->missing) {
		c->missing = true;
		c->bits[0] = 0;
		add_bits(c->bits, 0, NULL, c->nr_rows);
	}
	if (c->missing)
		add_bits(c->bits, c->nr_rows, some ? cells->valid : NULL, nr);
}

/* Those of `nr` values that are there, to `to`; how many. */
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

/* How many. */
static uint32_t gather_values(struct chunk *c, const struct field_cells *cells, uint32_t nr)
{
	size_t size = value_size(c->type);
	uint8_t *to = (uint8_t *)c->value + c->nr_values * size;
	const uint8_t *from = (const uint8_t *)cells->integer;

	if (!cells->valid || !cells->nr_missing) {
		memcpy(to, from, nr * size);
		return nr;
	}
	if (cells->nr_missing >= nr)
		return 0;
	if (size == sizeof(uint64_t))
		return gather_valid(to, from, cells->valid, nr, sizeof(uint64_t));
	if (size == sizeof(uint32_t))
		return gather_valid(to, from, cells->valid, nr, sizeof(uint32_t));
	return gather_valid(to, from, cells->valid, nr, 1);
}

int chunk_add(struct chunk *c, struct press *p, const struct field_cells *cells, uint32_t nr_rows,
	const struct texts *texts)
{
	uint32_t added, known = c->texts.nr;
	int r = make_room(c, nr_rows);

	if (r < 0)
		return r;
	gather_bits(c, cells, nr_rows);
	added = gather_values(c, cells, nr_rows);
	if (c->type == FIELD_TEXT) {
		uint32_t *id = (uint32_t *)c->value + c->nr_values;

		r = text_numbers_map(&c->texts, id, added, texts->nr, id);
		if (r < 0)
			return r;
		for (; known < c->texts.nr; known++)
			c->text_bytes += texts->len[c->texts.text[known]];
	}
	c->nr_rows += nr_rows;
	c->nr_values += added;
	c->nr_all += nr_rows;
	c->nr_missing += nr_rows - added;
	return c->nr_values >= PAGE_VALUES ? end_page(c, p) : 0;
}

/* ---- the end ---- */

static void encode_texts(struct buf *out, const struct chunk *c, const struct texts *texts)
{
	for (uint32_t i = 0; i < c->texts.nr; i++) {
		uint32_t len = texts->len[c->texts.text[i]];

		buf_add(out, &len, sizeof(len));
		buf_add(out, texts->text[c->texts.text[i]], len);
	}
}

int chunk_end(struct chunk *c, struct press *p, const struct texts *texts)
{
	int r = end_page(c, p);
	uint32_t nr;

	nr = c->type == FIELD_TEXT ? c->texts.nr : c->dictionary.nr;
	if (r < 0 || !(c->encodings & 1u << ENCODING_DICTIONARY))
		return r;
	buf_reset(&p->raw);
	if (c->type == FIELD_TEXT)
		encode_texts(&p->raw, c, texts);
	else
		encode_plain(&p->raw, c->dictionary.value, nr);
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r
		     : put_page(c, &c->first, PAGE_DICTIONARY, nr, p->raw.len, ENCODING_PLAIN, &p->packed[0]);
}

static int text_order(const struct texts *t, uint32_t a, uint32_t b)
{
	int r = memcmp(t->text[a], t->text[b], MIN(t->len[a], t->len[b]));

	return r ? r : (t->len[a] > t->len[b]) - (t->len[a] < t->len[b]);
}

bool chunk_text_bounds(const struct chunk *c, const struct texts *texts, uint32_t *ret_min, uint32_t *ret_max)
{
	uint32_t min, max;

	if (!c->texts.nr)
		return false;
	min = max = c->texts.text[0];
	for (uint32_t i = 1; i < c->texts.nr; i++) {
		uint32_t t = c->texts.text[i];

		min = text_order(texts, t, min) < 0 ? t : min;
		max = text_order(texts, t, max) > 0 ? t : max;
	}
	*ret_min = min;
	*ret_max = max;
	return true;
}
