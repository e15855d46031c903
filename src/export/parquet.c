/* Parquet: row groups of column chunks, and a footer that says where everything is and what it means.
 *
 * Pages are of the first version, which every reader has, and whose levels are compressed with the values.
 * Rows come in order of time, so a row group is a span of time, and its statistics let readers skip it. */
#include "base/json.h"
#include "export/parquet_chunk.h"
#include "export/text.h"
#include "export/thrift.h"

#include <string.h>

#define GROUP_ROWS (128 * 1024)
#define GROUP_BYTES (32u << 20) /* of compressed pages and texts: what waits for the group to end */
#define BOUND_MOST 256		/* bytes of a text that is worth a place in the statistics */

enum { TYPE_BOOLEAN = 0, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { CONVERTED_UTF8 = 0, CONVERTED_INT_64 = 18 };

struct parquet {
	const struct export_job *job;
	struct press press;
	struct chunk *chunk; /* one for each field */
	size_t nr_chunks;
	uint64_t nr_rows, group_rows;
	struct buf groups; /* the row groups as the footer has them */
	size_t nr_groups;
};

static const uint8_t physical[] = {
	[FIELD_TIME] = TYPE_INT64,
	[FIELD_INT] = TYPE_INT64,
	[FIELD_REAL] = TYPE_DOUBLE,
	[FIELD_TEXT] = TYPE_BYTE_ARRAY,
	[FIELD_FLAG] = TYPE_BOOLEAN,
};

static void parquet_drop(void *e)
{
	struct parquet *p = e;

	for (size_t i = 0; p->chunk && i < p->nr_chunks; i++)
		chunk_release(&p->chunk[i]);
	free(p->chunk);
	press_release(&p->press);
	buf_release(&p->groups);
	free(p);
}

static int parquet_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct parquet *p = calloc(1, sizeof(*p));
	int r;

	(void)reterr;
	if (!p)
		return -ENOMEM;
	p->job = job;
	buf_init(&p->groups, INT32_MAX);
	r = press_init(&p->press, !job->compression || strcmp(job->compression, "none") != 0);
	p->chunk = calloc(MAX(job->frame->nr_fields, (size_t)1), sizeof(*p->chunk));
	if (!p->chunk)
		r = -ENOMEM;
	for (; r >= 0 && p->nr_chunks < job->frame->nr_fields; p->nr_chunks++)
		chunk_init(&p->chunk[p->nr_chunks], job->frame->field[p->nr_chunks].type);
	if (r >= 0)
		r = outlet_add(job->out, "PAR1", 4);
	if (r < 0)
		parquet_drop(p);
	else
		*ret = p;
	return r;
}

/* ---- row groups ---- */

static struct texts texts_of(const struct parquet *p, size_t field)
{
	if (p->job->frame->field[field].type != FIELD_TEXT)
		return (struct texts){0};
	return export_texts(p->job, p->job->first_frame, field);
}

static void put_text_bounds(struct thrift *t, const struct chunk *c, const struct texts *texts)
{
	uint32_t min, max;

	if (!chunk_text_bounds(c, texts, &min, &max))
		return;
	if (texts->len[min] > BOUND_MOST || texts->len[max] > BOUND_MOST)
		return;
	thrift_binary(t, 5, texts->text[max], texts->len[max]);
	thrift_binary(t, 6, texts->text[min], texts->len[min]);
	thrift_bool(t, 7, true);
	thrift_bool(t, 8, true);
}

static void put_statistics(struct thrift *t, const struct chunk *c, const struct texts *texts)
{
	size_t size = c->type == FIELD_FLAG ? 1 : sizeof(c->min);

	thrift_struct(t, 12);
	thrift_i64(t, 3, (int64_t)c->nr_missing);
	if (c->type == FIELD_TEXT) {
		put_text_bounds(t, c, texts);
	} else if (c->bounded) {
		thrift_binary(t, 5, &c->max, size);
		thrift_binary(t, 6, &c->min, size);
		thrift_bool(t, 7, true);
		thrift_bool(t, 8, true);
	}
	thrift_end(t);
}

/* What the footer says of a chunk that begins at `at` of the file. */
static void put_chunk(struct thrift *t, const struct parquet *p, size_t field, uint64_t at)
{
	const struct chunk *c = &p->chunk[field];
	const struct texts texts = texts_of(p, field);

	thrift_element_struct(t);
	thrift_i64(t, 2, 0);
	thrift_struct(t, 3);
	thrift_i32(t, 1, physical[c->type]);
	thrift_list(t, 2, THRIFT_I32, (size_t)__builtin_popcount(c->encodings));
	for (uint32_t left = c->encodings; left; left &= left - 1)
		thrift_element_i32(t, __builtin_ctz(left));
	thrift_list(t, 3, THRIFT_BINARY, 1);
	thrift_element_text(t, p->job->frame->field[field].name);
	thrift_i32(t, 4, p->press.zstd ? CODEC_ZSTD : CODEC_NONE);
	thrift_i64(t, 5, (int64_t)c->nr_all);
	thrift_i64(t, 6, (int64_t)c->raw_size);
	thrift_i64(t, 7, (int64_t)(c->first.len + c->pages.len));
	thrift_i64(t, 9, (int64_t)(at + c->first.len));
	if (c->first.len)
		thrift_i64(t, 11, (int64_t)at);
	put_statistics(t, c, &texts);
	thrift_end(t);
	thrift_end(t);
}

static int end_chunks(struct parquet *p)
{
	for (size_t i = 0; i < p->nr_chunks; i++) {
		const struct texts texts = texts_of(p, i);
		int r = chunk_end(&p->chunk[i], &p->press, &texts);

		if (r < 0)
			return r;
	}
	return 0;
}

static int write_chunks(struct parquet *p)
{
	for (size_t i = 0; i < p->nr_chunks; i++) {
		const struct chunk *c = &p->chunk[i];
		int r = outlet_add(p->job->out, c->first.data, c->first.len);

		if (r >= 0)
			r = outlet_add(p->job->out, c->pages.data, c->pages.len);
		if (r < 0)
			return r;
	}
	return 0;
}

static int end_group(struct parquet *p)
{
	uint64_t start = outlet_at(p->job->out), at = start, raw = 0;
	struct thrift t;
	int r = end_chunks(p);

	if (r < 0)
		return r;
	thrift_begin(&t, &p->groups);
	thrift_list(&t, 1, THRIFT_STRUCT, p->nr_chunks);
	for (size_t i = 0; i < p->nr_chunks; i++) {
		put_chunk(&t, p, i, at);
		at += p->chunk[i].first.len + p->chunk[i].pages.len;
		raw += p->chunk[i].raw_size;
	}
	thrift_i64(&t, 2, (int64_t)raw);
	thrift_i64(&t, 3, (int64_t)p->group_rows);
	thrift_i64(&t, 5, (int64_t)start);
	thrift_i64(&t, 6, (int64_t)(at - start));
	thrift_end(&t);
	if (p->groups.err)
		return p->groups.err;
	r = write_chunks(p);
	for (size_t i = 0; i < p->nr_chunks; i++)
		chunk_clear(&p->chunk[i]);
	p->nr_groups++;
	p->nr_rows += p->group_rows;
	p->group_rows = 0;
	return r;
}

static int parquet_add(void *e, const struct frame_batch *batch)
{
	struct parquet *p = e;
	uint64_t waiting = 0;

	for (size_t i = 0; i < p->nr_chunks; i++) {
		const struct texts texts = texts_of(p, i);
		int r = chunk_add(&p->chunk[i], &p->press, &batch->cell[i], batch->nr_rows, &texts);

		if (r < 0)
			return r;
		waiting += p->chunk[i].pages.len + p->chunk[i].text_bytes;
	}
	p->group_rows += batch->nr_rows;
	return p->group_rows >= GROUP_ROWS || waiting >= GROUP_BYTES ? end_group(p) : 0;
}

/* ---- footer ---- */

static void put_logical_type(struct thrift *t, enum field_type type)
{
	if (type == FIELD_TEXT)
		thrift_i32(t, 6, CONVERTED_UTF8);
	if (type == FIELD_INT)
		thrift_i32(t, 6, CONVERTED_INT_64);
	if (type == FIELD_REAL || type == FIELD_FLAG)
		return;
	thrift_struct(t, 10);
	if (type == FIELD_TEXT) {
		thrift_struct(t, 1);
	} else if (type == FIELD_INT) {
		thrift_struct(t, 10);
		thrift_i8(t, 1, 64);
		thrift_bool(t, 2, true);
	} else {
		thrift_struct(t, 8);
		thrift_bool(t, 1, true); /* UTC */
		thrift_struct(t, 2);
		thrift_struct(t, 3); /* nanoseconds */
		thrift_end(t);
		thrift_end(t);
	}
	thrift_end(t);
	thrift_end(t);
}

static void put_schema(struct thrift *t, const struct frame *f)
{
	thrift_list(t, 2, THRIFT_STRUCT, f->nr_fields + 1);
	thrift_element_struct(t);
	thrift_text(t, 4, f->name);
	thrift_i32(t, 5, (int32_t)f->nr_fields);
	thrift_end(t);
	for (size_t i = 0; i < f->nr_fields; i++) {
		thrift_element_struct(t);
		thrift_i32(t, 1, physical[f->field[i].type]);
		thrift_i32(t, 3, 1); /* may be missing */
		thrift_text(t, 4, f->field[i].name);
		put_logical_type(t, f->field[i].type);
		thrift_end(t);
	}
}

/* What the columns mean, as an array in their order. */
static void put_columns_json(struct buf *out, const struct frame *f)
{
	char unit[EXPORT_TEXT];
	struct json j;

	json_init(&j, out, false);
	json_array(&j, NULL);
	for (size_t i = 0; i < f->nr_fields; i++) {
		const struct field *field = &f->field[i];

		json_object(&j, NULL);
		json_str(&j, "name", field->name);
		json_str(&j, "type", field_type_name(field->type));
		json_str(&j, "unit", field_unit(field, unit));
		if (field->is_metric)
			json_str(&j, "kind", kind_name(field->kind));
		if (field->scale != 1)
			json_num(&j, "scale", field->scale);
		if (field->resample)
			json_str(&j, "resample", field->resample);
		json_str(&j, "help", field->help);
		json_end_object(&j);
	}
	json_end_array(&j);
}

static void put_pair(struct thrift *t, const char *key, const char *value)
{
	thrift_element_struct(t);
	thrift_text(t, 1, key);
	thrift_text(t, 2, value);
	thrift_end(t);
}

static int put_pairs(struct thrift *t, const struct parquet *p)
{
	const struct frame *f = p->job->frame;
	struct buf columns;
	int r;

	buf_init(&columns, INT32_MAX);
	put_columns_json(&columns, f);
	thrift_list(t, 5, THRIFT_STRUCT, 3 + (f->help ? 1 : 0) + (p->job->summary_json ? 1 : 0));
	put_pair(t, "tacho.version", TACHO_VERSION);
	put_pair(t, "tacho.frame", f->name);
	if (f->help)
		put_pair(t, "tacho.help", f->help);
	put_pair(t, "tacho.columns", (char *)columns.data);
	if (p->job->summary_json)
		put_pair(t, "tacho.summary", p->job->summary_json);
	r = columns.err;
	buf_release(&columns);
	return r;
}

static int put_footer(struct buf *out, const struct parquet *p)
{
	const struct frame *f = p->job->frame;
	struct thrift t;
	uint32_t len;
	int r;

	thrift_begin(&t, out);
	thrift_i32(&t, 1, 2); /* the second version: of logical types and encodings */
	put_schema(&t, f);
	thrift_i64(&t, 3, (int64_t)p->nr_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, p->nr_groups);
	buf_add(out, p->groups.data, p->groups.len);
	r = put_pairs(&t, p);
	thrift_text(&t, 6, "tacho version " TACHO_VERSION);
	thrift_list(&t, 7, THRIFT_STRUCT, f->nr_fields);
	for (size_t i = 0; i < f->nr_fields; i++) {
		thrift_element_struct(&t);
		thrift_struct(&t, 1); /* the order that the type defines */
		thrift_end(&t);
		thrift_end(&t);
	}
	thrift_end(&t);
	len = (uint32_t)out->len;
	buf_add(out, &len, sizeof(len));
	buf_adds(out, "PAR1");
	return r < 0 ? r : out->err;
}

static int parquet_close(void *e)
{
	struct parquet *p = e;
	struct buf footer;
	int r = p->group_rows ? end_group(p) : 0;

	buf_init(&footer, INT32_MAX);
	if (r >= 0)
		r = put_footer(&footer, p);
	if (r >= 0)
		r = outlet_add(p->job->out, footer.data, footer.len);
	buf_release(&footer);
	parquet_drop(p);
	return r;
}

const struct exporter exporter_parquet = {
	.name = "parquet",
	.suffix = ".parquet",
	.help = "Apache Parquet: typed, compressed columns with statistics",
	.compressions = "zstd,none",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.wants_summary = true,
	.open = parquet_open,
	.add = parquet_add,
	.close = parquet_close,
	.drop = parquet_drop,
};
