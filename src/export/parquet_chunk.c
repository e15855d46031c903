/* Which encoding is smallest cannot be known from the values alone, since zstd comes behind it: rows of many
 * instances follow one another, so that a value is likelier to be like the one of its instance a tick ago
 * than like its neighbour, and zstd sees that as long as bits are not shifted. So the first page of a column
 * is encoded in each way that its type has and the smallest is kept; the following pages use it, too, and it
 * is chosen again every few row groups. Rejected: differences for all integers, which made the tables of many
 * processes half as large again, and those of one instance no smaller. */
#include "export/parquet_chunk.h"

#include "base/crc32.h"
#include "export/parquet_encode.h"
#include "export/thrift.h"

#include <math.h>
#include <string.h>

#define CHOICE_AGE 4	/* row groups */
#define ZSTD_LEVEL 1	/* 3: files a fortieth smaller, 2 to 6 hundredths more CPU time */
#define PAGES_A_CHUNK 8 /* about as many share a dictionary */

int press_init(struct press *p, bool compress)
{
	*p = (struct press){0};
	buf_init(&p->raw, INT32_MAX);
	buf_init(&p->packed[0], INT32_MAX);
	buf_init(&p->packed[1], INT32_MAX);
	p->id = calloc(PAGE_VALUES, sizeof(*p->id));
	p->zstd = compress ? ZSTD_createCCtx() : NULL;
	if (!p->id || (compress && !p->zstd))
		return -ENOMEM;
	if (compress)
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
		return -ENOMEM; /* there is room, so this is the only reason */
	out->len = done;
	return 0;
}

void chunk_init(struct chunk *c, enum field_type type)
{
	*c = (struct chunk){.type = type, .choice = ENCODING_NONE};
	buf_init(&c->texts.plain, INT32_MAX);
	buf_init(&c->first, INT32_MAX);
	buf_init(&c->pages, INT32_MAX);
}

void chunk_release(struct chunk *c)
{
	distinct_release(&c->dictionary);
	buf_release(&c->texts.plain);
	buf_release(&c->first);
	buf_release(&c->pages);
}

void chunk_clear(struct chunk *c)
{
	distinct_clear(&c->dictionary);
	buf_release(&c->texts.plain);
	buf_reset(&c->first);
	buf_reset(&c->pages);
	c->texts.nr = c->encodings = 0;
	c->raw_size = c->nr_rows = c->nr_missing = 0;
	c->bounded = false;
	if (++c->age >= CHOICE_AGE)
		c->choice = ENCODING_NONE;
}

/* ---- pages ---- */

enum page_type { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

/* What stands in packed[0], behind its header. */
static int put_page(struct chunk *c, const struct press *p, struct buf *to, enum page_type type, uint32_t nr,
	size_t raw_len, enum parquet_encoding encoding)
{
	const struct buf *packed = &p->packed[0];
	size_t before = to->len;
	struct thrift t;

	if (raw_len > INT32_MAX || packed->len > INT32_MAX)
		return -EFBIG;
	thrift_begin(&t, to);
	thrift_i32(&t, 1, (int32_t)type);
	thrift_i32(&t, 2, (int32_t)raw_len);
	thrift_i32(&t, 3, (int32_t)packed->len);
	thrift_i32(&t, 4, (int32_t)crc32_of(packed->data, packed->len));
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

static void bound_reals(struct chunk *c, const double *v, uint32_t nr)
{
	double min = INFINITY, max = -INFINITY;

	if (c->bounded) {
		memcpy(&min, &c->min, sizeof(min));
		memcpy(&max, &c->max, sizeof(max));
	}
	for (uint32_t i = 0; i < nr; i++) {
		min = v[i] < min ? v[i] : min;
		max = v[i] > max ? v[i] : max;
	}
	if (min > max)
		return;		     /* nothing but NAN */
	min = min == 0 ? -0.0 : min; /* the format asks for both zeros to be within */
	max = max == 0 ? 0.0 : max;
	memcpy(&c->min, &min, sizeof(min));
	memcpy(&c->max, &max, sizeof(max));
	c->bounded = true;
}

static void bound_integers(struct chunk *c, const int64_t *v, uint32_t nr)
{
	int64_t min = c->bounded ? (int64_t)c->min : v[0], max = c->bounded ? (int64_t)c->max : v[0];

	for (uint32_t i = 0; i < nr; i++) {
		min = MIN(min, v[i]);
		max = MAX(max, v[i]);
	}
	c->min = (uint64_t)min;
	c->max = (uint64_t)max;
	c->bounded = true;
}

static void bound_flags(struct chunk *c, const uint8_t *v, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t flag = v[i] != 0;

		c->min = c->bounded ? MIN(c->min, flag) : flag;
		c->max = c->bounded ? MAX(c->max, flag) : flag;
		c->bounded = true;
	}
}

static void bound(struct chunk *c, const struct parquet_page *page)
{
	uint32_t nr = page->same ? 1 : page->nr_values;

	if (!nr || c->type == FIELD_TEXT)
		return;
	if (c->type == FIELD_REAL)
		bound_reals(c, page->value, nr);
	else if (c->type == FIELD_FLAG)
		bound_flags(c, page->value, nr);
	else
		bound_integers(c, page->value, nr);
}

static int put_levels(struct press *p, const struct parquet_page *page)
{
	buf_reset(&p->raw);
	encode_levels(&p->raw, page->bits, page->nr_rows, !page->missing);
	return p->raw.err;
}

/* Width of numbers below nr, chosen so that they lie in the same way in every byte: then zstd finds what
 * repeats, which saves more than narrower numbers. */
static unsigned index_width(uint32_t nr)
{
	unsigned width = bits_needed(nr - 1);

	return width <= 1 ? 1 : width <= 2 ? 2 : width <= 4 ? 4 : (width + 7) / 8 * 8;
}

/* In a dictionary: one for each value, or the one of all. */
static void encode_numbers(
	struct press *p, const struct parquet_page *page, const uint32_t *number, unsigned width)
{
	if (page->same)
		encode_index(&p->raw, number[0], page->nr_values, width);
	else
		encode_indices(&p->raw, number, page->nr_values, width);
}

/* The values behind the levels that stand in `raw` already. */
static void encode(const struct chunk *c, struct press *p, const struct parquet_page *page,
	enum parquet_encoding encoding)
{
	switch (encoding) {
	case ENCODING_DICTIONARY:
		encode_numbers(p, page, p->id, index_width(c->dictionary.nr));
		break;
	case ENCODING_DELTA:
		encode_delta(&p->raw, page->value, page->nr_values);
		break;
	case ENCODING_SPLIT:
		encode_split(&p->raw, page->value, page->nr_values);
		break;
	default:
		encode_plain(&p->raw, page->value, page->nr_values);
	}
}

/* ---- numbers ---- */

struct trial {
	enum parquet_encoding best;
	size_t best_weight, best_raw;
};

/* Leaves the smaller one in packed[0]. */
static int try_encoding(struct chunk *c, struct press *p, const struct parquet_page *page, struct trial *t,
	enum parquet_encoding encoding, size_t weight)
{
	struct buf swap;
	int r = put_levels(p, page);

	if (r < 0)
		return r;
	encode(c, p, page, encoding);
	r = press_pack(p, &p->packed[1]);
	if (r < 0)
		return r;
	weight += p->packed[1].len;
	if (t->best != ENCODING_NONE && weight >= t->best_weight)
		return 0;
	swap = p->packed[0];
	p->packed[0] = p->packed[1];
	p->packed[1] = swap;
	*t = (struct trial){encoding, weight, p->raw.len};
	return 0;
}

/* What the dictionary adds to a page of this chunk. The first page finds most of the values, later ones those
 * that come at the rate of its second half. */
static int dictionary_weight(
	const struct chunk *c, struct press *p, const struct parquet_page *page, uint32_t half, size_t *ret)
{
	uint64_t nr = c->dictionary.nr, later = MIN(2 * (nr - half) + nr / PAGES_A_CHUNK, nr);
	int r;

	buf_reset(&p->raw);
	encode_plain(&p->raw, c->dictionary.value, nr);
	r = press_pack(p, &p->packed[1]);
	if (r < 0)
		return r;
	*ret = p->packed[1].len;
	if (page->nr_values >= PAGE_VALUES / 2)
		*ret = *ret * later / nr;
	return 0;
}

static int try_dictionary(struct chunk *c, struct press *p, const struct parquet_page *page, struct trial *t)
{
	uint32_t half, most = MAX(page->nr_values / 2, 64u);
	size_t weight = 0;
	int r;

	r = distinct_map(&c->dictionary, page->value, page->nr_values, most, p->id, &half);
	if (r == -E2BIG)
		return 0; /* nothing to be gained */
	if (r >= 0)
		r = dictionary_weight(c, p, page, half, &weight);
	return r < 0 ? r : try_encoding(c, p, page, t, ENCODING_DICTIONARY, weight);
}

/* The page in the way that is smallest, which is then the choice for those behind it. */
static int put_best(struct chunk *c, struct press *p, const struct parquet_page *page)
{
	struct trial t = {.best = ENCODING_NONE};
	bool taken = c->encodings & 1u << ENCODING_DICTIONARY; /* earlier pages need what is in it */
	uint32_t before = c->dictionary.nr;
	int r = 0;

	if (!taken)
		distinct_clear(&c->dictionary);
	if (!taken || c->only_same)
		r = try_dictionary(c, p, page, &t);
	if (r >= 0)
		r = try_encoding(c, p, page, &t, c->type == FIELD_REAL ? ENCODING_SPLIT : ENCODING_DELTA, 0);
	if (r >= 0)
		r = try_encoding(c, p, page, &t, ENCODING_PLAIN, 0);
	if (r < 0)
		return r;
	if (!taken && t.best != ENCODING_DICTIONARY)
		distinct_release(&c->dictionary);
	else if (t.best != ENCODING_DICTIONARY)
		c->dictionary.nr = before; /* it takes no more */
	c->only_same = false;
	c->choice = t.best;
	c->age = 0;
	return put_page(c, p, &c->pages, PAGE_DATA, page->nr_rows, t.best_raw, t.best);
}

/* A page of one value: a dictionary has next to nothing to say of it. It stands for the choice as long as
 * there are no others. */
static void choose_same(struct chunk *c)
{
	if (c->choice != ENCODING_NONE || c->encodings & 1u << ENCODING_DICTIONARY)
		return;
	distinct_clear(&c->dictionary);
	c->choice = ENCODING_DICTIONARY;
	c->only_same = true;
	c->age = 0;
}

static int put_numbers(struct chunk *c, struct press *p, struct parquet_page *page)
{
	uint32_t half, nr = page->nr_values,
		       most = MIN(c->dictionary.nr + nr / 2 + 64, (uint32_t)DISTINCT_MOST);
	int r = 0;

	if (page->same)
		choose_same(c);
	else if (c->only_same)
		c->choice = ENCODING_NONE;
	if (page->same && c->choice == ENCODING_DICTIONARY)
		nr = 1;
	else
		r = page_spread(page);
	if (r >= 0 && c->choice == ENCODING_DICTIONARY) {
		r = distinct_map(&c->dictionary, page->value, nr, most, p->id, &half);
		if (r == -E2BIG)
			c->choice = ENCODING_NONE;
	}
	if (r < 0 && r != -E2BIG)
		return r;
	if (c->choice == ENCODING_NONE) {
		r = page_spread(page);
		return r < 0 ? r : put_best(c, p, page);
	}
	r = put_levels(p, page);
	if (r < 0)
		return r;
	encode(c, p, page, c->choice);
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r : put_page(c, p, &c->pages, PAGE_DATA, page->nr_rows, p->raw.len, c->choice);
}

/* Texts, flags, and pages without values. */
static int put_others(struct chunk *c, struct press *p, const struct parquet_page *page)
{
	enum parquet_encoding encoding = ENCODING_PLAIN;
	int r = put_levels(p, page);

	if (r < 0)
		return r;
	if (page->nr_values && c->type == FIELD_TEXT) {
		encoding = ENCODING_DICTIONARY;
		encode_numbers(p, page, page->value, index_width(page->nr_texts));
	} else if (page->nr_values) {
		encode_flags(&p->raw, page->value, page->nr_values);
	}
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r : put_page(c, p, &c->pages, PAGE_DATA, page->nr_rows, p->raw.len, encoding);
}

int chunk_add(struct chunk *c, struct press *p, struct parquet_page *page)
{
	bool numbers = c->type != FIELD_TEXT && c->type != FIELD_FLAG;
	int r = c->type == FIELD_FLAG ? page_spread(page) : 0;

	if (r < 0)
		return r;
	c->nr_rows += page->nr_rows;
	c->nr_missing += page->nr_rows - page->nr_values;
	bound(c, page);
	return numbers && page->nr_values ? put_numbers(c, p, page) : put_others(c, p, page);
}

int chunk_end(struct chunk *c, struct press *p)
{
	uint32_t nr = c->type == FIELD_TEXT ? c->texts.nr : c->dictionary.nr;
	int r;

	if (!(c->encodings & 1u << ENCODING_DICTIONARY))
		return 0;
	buf_reset(&p->raw);
	if (c->type == FIELD_TEXT)
		buf_add(&p->raw, c->texts.plain.data, c->texts.plain.len);
	else
		encode_plain(&p->raw, c->dictionary.value, nr);
	r = press_pack(p, &p->packed[0]);
	return r < 0 ? r : put_page(c, p, &c->first, PAGE_DICTIONARY, nr, p->raw.len, ENCODING_PLAIN);
}
