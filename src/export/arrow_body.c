/* Columns in Arrow's layout: see arrow_body.h. */
#include "export/arrow_body.h"

#include "export/exporter.h"
#include "export/parquet_encode.h"
#include "export/text.h"

#include <endian.h>
#include <string.h>

#define ZSTD_LEVEL 1 /* columns as they are: higher ones take long and gain little */

int arrow_body_init(struct arrow_body *b, bool compress)
{
	*b = (struct arrow_body){0};
	buf_init(&b->bytes, INT32_MAX);
	buf_init(&b->node, INT32_MAX);
	buf_init(&b->buffer, INT32_MAX);
	buf_init(&b->raw, INT32_MAX);
	if (!compress)
		return 0;
	b->zstd = ZSTD_createCCtx();
	if (!b->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(b->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	return 0;
}

void arrow_body_release(struct arrow_body *b)
{
	ZSTD_freeCCtx(b->zstd);
	b->zstd = NULL;
	buf_release(&b->bytes);
	buf_release(&b->node);
	buf_release(&b->buffer);
	buf_release(&b->raw);
}

void arrow_body_reset(struct arrow_body *b)
{
	buf_reset(&b->bytes);
	buf_reset(&b->node);
	buf_reset(&b->buffer);
}

int arrow_body_error(const struct arrow_body *b)
{
	return b->bytes.err ? b->bytes.err : b->node.err ? b->node.err : b->buffer.err;
}

/* ---- buffers ---- */

static void put_place(struct arrow_body *b, size_t at)
{
	static const uint8_t zero[ARROW_ALIGN];
	int64_t place[2] = {(int64_t)htole64(at), (int64_t)htole64(b->bytes.len - at)};

	buf_add(&b->buffer, place, sizeof(place));
	buf_add(&b->bytes, zero, -b->bytes.len & (ARROW_ALIGN - 1));
}

/* The size comes first; -1 says that what follows is not compressed. */
static void put_compressed(struct arrow_body *b, const void *data, size_t len)
{
	size_t bound = ZSTD_compressBound(len), at = b->bytes.len, done;
	int64_t size = (int64_t)htole64(len);

	buf_add(&b->bytes, &size, sizeof(size));
	if (!buf_reserve(&b->bytes, bound))
		return;
	done = ZSTD_compress2(b->zstd, b->bytes.data + b->bytes.len, bound, data, len);
	if (!ZSTD_isError(done) && done < len) {
		b->bytes.len += done;
		b->bytes.data[b->bytes.len] = 0;
		return;
	}
	b->bytes.len = at;
	size = -1;
	buf_add(&b->bytes, &size, sizeof(size));
	buf_add(&b->bytes, data, len);
}

static void put_buffer(struct arrow_body *b, const void *data, size_t len)
{
	size_t at = b->bytes.len;

	if (b->zstd && len)
		put_compressed(b, data, len);
	else
		buf_add(&b->bytes, data, len);
	put_place(b, at);
}

static void put_scratch(struct arrow_body *b)
{
	if (b->raw.err)
		b->bytes.err = b->raw.err;
	put_buffer(b, b->raw.data, b->raw.len);
}

static void put_node(struct arrow_body *b, uint32_t nr_rows, uint32_t nr_missing)
{
	int64_t node[2] = {(int64_t)htole64(nr_rows), (int64_t)htole64(nr_missing)};

	buf_add(&b->node, node, sizeof(node));
}

/* The bits behind the last row are cleared. */
static void put_bits(struct arrow_body *b, const uint8_t *bits, uint32_t nr)
{
	buf_reset(&b->raw);
	buf_add(&b->raw, bits, ((size_t)nr + 7) / 8);
	if (!b->raw.err && nr % 8)
		b->raw.data[nr / 8] &= (uint8_t)((1u << nr % 8) - 1);
	put_scratch(b);
}

/* Values of rows that have none are written as zeros: they may hold data of another row, and zeros compress
 * well. */
static void put_values(struct arrow_body *b, const struct field_cells *c, const uint64_t *v, uint32_t nr)
{
	uint64_t *copy;

	if (!c->nr_missing) {
		put_buffer(b, v, nr * sizeof(*v));
		return;
	}
	buf_reset(&b->raw);
	buf_add(&b->raw, v, nr * sizeof(*v));
	copy = (uint64_t *)(void *)b->raw.data;
	for (uint32_t i = 0; !b->raw.err && i < nr; i++)
		if (!cell_valid(c, i))
			copy[i] = 0;
	put_scratch(b);
}

void arrow_body_column(struct arrow_body *b, enum field_type type, const struct field_cells *c,
	uint32_t nr_rows, const uint32_t *index)
{
	put_node(b, nr_rows, c->nr_missing);
	if (c->nr_missing)
		put_bits(b, c->valid, nr_rows);
	else
		put_buffer(b, NULL, 0);
	if (type == FIELD_TEXT) {
		put_buffer(b, index, nr_rows * sizeof(*index));
	} else if (type == FIELD_FLAG) {
		buf_reset(&b->raw);
		encode_flags(&b->raw, c->flag, nr_rows);
		put_scratch(b);
	} else {
		put_values(b, c, (const uint64_t *)c->integer, nr_rows);
	}
}

void arrow_body_texts(struct arrow_body *b, const struct texts *texts, const uint32_t *which, uint32_t nr)
{
	uint64_t end = 0;
	uint32_t little = 0;

	put_node(b, nr, 0);
	put_buffer(b, NULL, 0);
	buf_reset(&b->raw);
	buf_add(&b->raw, &little, sizeof(little));
	for (uint32_t i = 0; i < nr; i++) {
		end += texts->len[which ? which[i] : i];
		little = (uint32_t)end;
		buf_add(&b->raw, &little, sizeof(little));
	}
	if (end > INT32_MAX)
		b->bytes.err = -EFBIG;
	put_scratch(b);
	buf_reset(&b->raw);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t k = which ? which[i] : i;

		buf_add(&b->raw, texts->text[k], texts->len[k]);
	}
	put_scratch(b);
}

/* ---- texts ---- */

int arrow_indices(const struct field_cells *c, uint32_t nr_rows, uint32_t nr_texts, uint32_t *ret)
{
	if (nr_texts > INT32_MAX)
		return -EFBIG;
	for (uint32_t i = 0; i < nr_rows; i++) {
		ret[i] = cell_valid(c, i) ? c->text[i] : 0;
		if (unlikely(ret[i] >= nr_texts && cell_valid(c, i)))
			return -EINVAL;
	}
	return 0;
}

/* Rows without a text use the number of another row, so that no text is added for them. */
static bool fill_gaps(const struct field_cells *c, uint32_t nr_rows, uint32_t *ret)
{
	uint32_t first = 0, last;

	while (first < nr_rows && !cell_valid(c, first))
		first++;
	if (first == nr_rows)
		return false;
	last = c->text[first];
	for (uint32_t i = 0; i < nr_rows; i++)
		ret[i] = last = cell_valid(c, i) ? c->text[i] : last;
	return true;
}

int arrow_indices_own(struct text_numbers *t, const struct field_cells *c, uint32_t nr_rows,
	uint32_t nr_texts, uint32_t *ret)
{
	uint32_t text[DATA_TABLE_ROWS_MOST], before = t->nr;
	int r;

	if (nr_rows > DATA_TABLE_ROWS_MOST)
		return -EINVAL;
	if (!fill_gaps(c, nr_rows, text)) {
		memset(ret, 0, nr_rows * sizeof(*ret));
		return 0;
	}
	r = text_numbers_map(t, text, nr_rows, nr_texts, ret);
	if (r < 0 || t->nr == before)
		return r;
	text_numbers_clear(t);
	r = text_numbers_map(t, text, nr_rows, nr_texts, ret);
	return r < 0 ? r : 1;
}

/* ---- metadata ---- */

static void add_pair(struct arrow_pairs *p, const char *key, const char *value)
{
	if (!value || !*value || p->nr == ARRAY_SIZE(p->pair))
		return;
	p->pair[p->nr].key = key;
	p->pair[p->nr++].value = value;
}

void arrow_field_pairs(struct arrow_pairs *p, const struct field *f)
{
	_Static_assert(sizeof(p->unit) >= EXPORT_TEXT && sizeof(p->scale) >= EXPORT_TEXT, "room for a text");

	p->nr = 0;
	add_pair(p, "unit", field_unit(f, p->unit));
	if (f->is_metric)
		add_pair(p, "kind", kind_name(f->kind));
	if (f->scale != 1) {
		p->scale[format_real(p->scale, f->scale)] = 0;
		add_pair(p, "scale", p->scale);
	}
	add_pair(p, "resample", f->resample);
	add_pair(p, "help", f->help);
}

void arrow_table_pairs(struct arrow_pairs *p, const struct data_table *f)
{
	p->nr = 0;
	add_pair(p, "tacho.version", TACHO_VERSION);
	add_pair(p, "tacho.frame", f->name);
	add_pair(p, "tacho.help", f->help);
}
