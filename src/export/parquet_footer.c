/* The footer of a Parquet file: see parquet_footer.h. */
#include "export/parquet_footer.h"

#include "base/json.h"
#include "export/text.h"
#include "export/thrift.h"

#include <string.h>

#define BOUND_MOST 256 /* longest text, in bytes, that goes into the statistics */

enum { TYPE_BOOLEAN = 0, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { CONVERTED_UTF8 = 0, CONVERTED_INT_64 = 18 };

static const uint8_t physical[] = {
	[FIELD_TIME] = TYPE_INT64,
	[FIELD_INT] = TYPE_INT64,
	[FIELD_REAL] = TYPE_DOUBLE,
	[FIELD_TEXT] = TYPE_BYTE_ARRAY,
	[FIELD_FLAG] = TYPE_BOOLEAN,
};

/* ---- row groups ---- */

static void put_bounds(struct thrift *t, const void *min, size_t min_len, const void *max, size_t max_len)
{
	if (min_len > BOUND_MOST || max_len > BOUND_MOST)
		return;
	thrift_binary(t, 5, max, max_len);
	thrift_binary(t, 6, min, min_len);
	thrift_bool(t, 7, true);
	thrift_bool(t, 8, true);
}

static void put_statistics(struct thrift *t, const struct chunk *c)
{
	size_t size = c->type == FIELD_FLAG ? 1 : sizeof(c->min);

	thrift_struct(t, 12);
	thrift_i64(t, 3, (int64_t)c->nr_missing);
	if (c->texts.nr) {
		uint32_t min_len, max_len;
		const uint8_t *min = text_page_get(&c->texts, c->texts.min, &min_len);
		const uint8_t *max = text_page_get(&c->texts, c->texts.max, &max_len);

		put_bounds(t, min, min_len, max, max_len);
	} else if (c->bounded) {
		put_bounds(t, &c->min, size, &c->max, size);
	}
	thrift_end(t);
}

/* The footer's entry of a chunk that begins at `at` of the file. */
static void put_chunk(struct thrift *t, const struct chunk *c, const char *name, bool compressed, uint64_t at)
{
	thrift_element_struct(t);
	thrift_i64(t, 2, 0);
	thrift_struct(t, 3);
	thrift_i32(t, 1, physical[c->type]);
	thrift_list(t, 2, THRIFT_I32, (size_t)__builtin_popcount(c->encodings));
	for (uint32_t left = c->encodings; left; left &= left - 1)
		thrift_element_i32(t, __builtin_ctz(left));
	thrift_list(t, 3, THRIFT_BINARY, 1);
	thrift_element_text(t, name);
	thrift_i32(t, 4, compressed ? CODEC_ZSTD : CODEC_NONE);
	thrift_i64(t, 5, (int64_t)c->nr_rows);
	thrift_i64(t, 6, (int64_t)c->raw_size);
	thrift_i64(t, 7, (int64_t)(c->first.len + c->pages.len));
	thrift_i64(t, 9, (int64_t)(at + c->first.len));
	if (c->first.len)
		thrift_i64(t, 11, (int64_t)at);
	put_statistics(t, c);
	thrift_end(t);
	thrift_end(t);
}

int footer_add_group(struct footer *f, const struct chunk *chunk, uint64_t nr_rows, uint64_t start)
{
	const struct data_table *table = f->job->table;
	uint64_t at = start, raw = 0;
	struct thrift t;

	thrift_begin(&t, &f->groups);
	thrift_list(&t, 1, THRIFT_STRUCT, table->nr_fields);
	for (size_t i = 0; i < table->nr_fields; i++) {
		put_chunk(&t, &chunk[i], table->field[i].name, f->compressed, at);
		at += chunk[i].first.len + chunk[i].pages.len;
		raw += chunk[i].raw_size;
	}
	thrift_i64(&t, 2, (int64_t)raw);
	thrift_i64(&t, 3, (int64_t)nr_rows);
	thrift_i64(&t, 5, (int64_t)start);
	thrift_i64(&t, 6, (int64_t)(at - start));
	thrift_end(&t);
	f->nr_groups++;
	f->nr_rows += nr_rows;
	return f->groups.err;
}

/* ---- the whole ---- */

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

static void put_schema(struct thrift *t, const struct data_table *f)
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
static void put_columns_json(struct buf *out, const struct data_table *f)
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

static int put_pairs(struct thrift *t, const struct export_job *job)
{
	const struct data_table *f = job->table;
	struct buf columns;
	int r;

	buf_init(&columns, INT32_MAX);
	put_columns_json(&columns, f);
	thrift_list(t, 5, THRIFT_STRUCT, 3 + (f->help ? 1 : 0) + (job->summary_json ? 1 : 0));
	put_pair(t, "tacho.version", TACHO_VERSION);
	put_pair(t, "tacho.frame", f->name);
	if (f->help)
		put_pair(t, "tacho.help", f->help);
	put_pair(t, "tacho.columns", (char *)columns.data);
	if (job->summary_json)
		put_pair(t, "tacho.summary", job->summary_json);
	r = columns.err;
	buf_release(&columns);
	return r;
}

int footer_put(struct buf *out, const struct footer *f)
{
	const struct data_table *table = f->job->table;
	struct thrift t;
	uint32_t len;
	int r;

	thrift_begin(&t, out);
	thrift_i32(&t, 1, 2); /* the second version: of logical types and encodings */
	put_schema(&t, table);
	thrift_i64(&t, 3, (int64_t)f->nr_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, f->nr_groups);
	buf_add(out, f->groups.data, f->groups.len);
	r = put_pairs(&t, f->job);
	thrift_text(&t, 6, "tacho version " TACHO_VERSION);
	thrift_list(&t, 7, THRIFT_STRUCT, table->nr_fields);
	for (size_t i = 0; i < table->nr_fields; i++) {
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
