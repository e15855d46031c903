#include "export_lab.h"

#include "base/json.h"
#include "base/str.h"
#include "export/outlet.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define START INT64_C(1763200000123456789)
#define INSTANCES 5

#define TIME                                                                                    \
	{                                                                                       \
		"time", "When, UTC.", FIELD_TIME, UNIT_COUNT, false, KIND_GAUGE, false, 1, NULL \
	}
#define HOST                                                                                        \
	{                                                                                           \
		"host", "On which node.", FIELD_TEXT, UNIT_COUNT, false, KIND_GAUGE, false, 1, NULL \
	}
#define INSTANCE                                                                                  \
	{                                                                                         \
		"instance", "Of what.", FIELD_TEXT, UNIT_COUNT, false, KIND_GAUGE, false, 1, NULL \
	}

/* clang-format off */
static const struct field mixed[] = {
	TIME,
	{"elapsed", "Time since the start.", FIELD_REAL, UNIT_SECONDS, false, KIND_GAUGE, false, 1, NULL},
	HOST,
	INSTANCE,
	{"pid", "Its number.", FIELD_INT, UNIT_COUNT, false, KIND_GAUGE, false, 1, NULL},
	{"lab.bytes", "A counter of bytes.", FIELD_INT, UNIT_BYTES, false, KIND_COUNTER, true, 1, "last"},
	{"lab.bytes.rate", "Its growth.", FIELD_REAL, UNIT_BYTES, true, KIND_GAUGE, true, 1, "mean"},
	{"lab.level", "A level, \"quoted\", and <bracketed>.", FIELD_REAL, UNIT_RATIO, false, KIND_GAUGE, true, 1, "mean"},
	{"lab.peak", "The most.", FIELD_INT, UNIT_COUNT, false, KIND_PEAK, true, 1, "max"},
	{"lab.raw", "Hundredths of seconds.", FIELD_INT, UNIT_SECONDS, false, KIND_COUNTER, true, 0.01, "last"},
	{"lab.on", "Whether it is on.", FIELD_FLAG, UNIT_CODE, false, KIND_GAUGE, true, 1, "last"},
	{"lab.seldom", "Once in a thousand rows.", FIELD_REAL, UNIT_CELSIUS, false, KIND_GAUGE, true, 1, "mean"},
	{"lab.never", "Never known.", FIELD_INT, UNIT_COUNT, false, KIND_GAUGE, true, 1, "mean"},
	{"lab.state", "A text, sometimes.", FIELD_TEXT, UNIT_COUNT, false, KIND_GAUGE, true, 1, "last"},
};
static const struct field whole[] = {
	TIME,
	HOST,
	INSTANCE,
	{"lab.count", "All are there.", FIELD_INT, UNIT_COUNT, false, KIND_COUNTER, true, 1, "last"},
	{"lab.watts", "All are there.", FIELD_REAL, UNIT_WATTS, false, KIND_GAUGE, true, 1, "mean"},
};
static const struct field properties[] = {
	{"name", "Whose.", FIELD_TEXT, UNIT_COUNT, false, KIND_CONSTANT, false, 1, NULL},
	{"value", "What is said.", FIELD_TEXT, UNIT_COUNT, false, KIND_CONSTANT, false, 1, NULL},
	{"number", "How much.", FIELD_INT, UNIT_COUNT, false, KIND_CONSTANT, false, 1, NULL},
	{"sure", "Whether.", FIELD_FLAG, UNIT_COUNT, false, KIND_CONSTANT, false, 1, NULL},
};

const struct data_table lab_frame[LAB_FRAMES] = {
	[LAB_MIXED] = {"mixed", "Everything at once.", "mixed", mixed, ARRAY_SIZE(mixed)},
	[LAB_EMPTY] = {"empty", "No rows.", "empty", mixed, ARRAY_SIZE(mixed)},
	[LAB_WHOLE] = {"whole", "Nothing is missing.", "whole", whole, ARRAY_SIZE(whole)},
	[LAB_PROPERTIES] = {"properties", "Not of time.", NULL, properties, ARRAY_SIZE(properties)},
};

static const char *const hostile[] = {
	"plain", "", "comma, and \"quotes\"", "two\r\nlines", "=1+2", "<script>alert(1)</script>&amp;",
	"\\xff\\\\x41\\", "\xc3\xbcn\xc3\xaf \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x9a\x80", "tab\there", "'; DROP TABLE x; --",
	"{\"a\":[1]}", " around ", "NULL", "nan", "\x01\x1f\x7f", "{}\\n", "--", "a/b:c=d", "\xef\xbb\xbf?bom",
};
/* clang-format on */

static const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1,
	(INT64_C(1) << 62) + 12345, 42, -(INT64_C(1) << 53) - 1, 1000000};
static const double reals[] = {
	0, -0.0, 0.1, 1.0 / 3, 1e308, 5e-324, -123456.789, 1e15, 123456789012345678.0, 2.5, 1e-7};

uint32_t lab_rows(size_t table)
{
	static const uint32_t rows[LAB_FRAMES] = {
		[LAB_MIXED] = 2500, [LAB_WHOLE] = 10, [LAB_PROPERTIES] = 40};

	return rows[table];
}

static struct lab_value text_value(const char *text)
{
	return (struct lab_value){true, FIELD_TEXT, .text = text};
}

static struct lab_value mixed_metric(uint32_t row, size_t field, struct lab_value v)
{
	v.valid = (row + field) % 7 != 0;
	if (!strcmp(mixed[field].name, "lab.seldom")) {
		v.valid = row % 1000 == 999;
		v.real = (double)row;
	} else if (!strcmp(mixed[field].name, "lab.never")) {
		v.valid = false;
	} else if (v.type == FIELD_TEXT) {
		v.text = hostile[row % ARRAY_SIZE(hostile)];
	} else if (!strcmp(mixed[field].name, "lab.bytes")) {
		v.integer = (INT64_C(1) << 60) + (int64_t)row * 4096;
	}
	return v;
}

struct lab_value lab_value(size_t table, uint32_t row, size_t field)
{
	const struct field *f = &lab_frame[table].field[field];
	struct lab_value v = {true, f->type, .integer = integers[(row + field) % ARRAY_SIZE(integers)],
		.real = reals[(row + field) % ARRAY_SIZE(reals)]};

	if (f->type == FIELD_FLAG)
		v.integer = row % 3 == 0;
	if (table == LAB_PROPERTIES) {
		v.text = hostile[(row + field) % ARRAY_SIZE(hostile)];
		v.valid = !field || row % 5 != field;
		return v;
	}
	if (!strcmp(f->name, "time"))
		v.integer = START + (int64_t)(row / INSTANCES) * NSEC_PER_SEC;
	else if (!strcmp(f->name, "elapsed"))
		v.real = row / INSTANCES;
	else if (!strcmp(f->name, "host"))
		return text_value(row < 1500 ? "node1" : "node2.example.org");
	else if (!strcmp(f->name, "instance"))
		return text_value(hostile[row % INSTANCES + row / 1000 * INSTANCES]);
	else if (!strcmp(f->name, "pid"))
		v.integer = 4711 + row % INSTANCES;
	else if (table == LAB_MIXED)
		return mixed_metric(row, field, v);
	return v;
}

/* ---- batches of it ---- */

#define TEXTS_MOST 4096
#define FIELDS_MOST 64

struct dictionary {
	const char *text[TEXTS_MOST];
	uint32_t len[TEXTS_MOST];
	uint32_t nr;
};

struct source { /* of rows: the lab's own, or a fuzzer's */
	const struct data_table *table;
	size_t nr_tables;
	uint32_t (*rows)(size_t table);
	struct lab_value (*value)(size_t table, uint32_t row, size_t field);
	struct dictionary *dictionary; /* nr_tables x FIELDS_MOST */
};

struct cells {
	uint8_t valid[DATA_TABLE_ROWS_MOST / 8 + 1];
	union {
		int64_t integer[DATA_TABLE_ROWS_MOST];
		double real[DATA_TABLE_ROWS_MOST];
		uint32_t text[DATA_TABLE_ROWS_MOST];
		uint8_t flag[DATA_TABLE_ROWS_MOST];
	};
};

static struct texts source_texts(const void *arg, size_t table, size_t field)
{
	const struct source *s = arg;
	const struct dictionary *d = &s->dictionary[table * FIELDS_MOST + field];

	return (struct texts){.text = d->text, .len = d->len, .nr = d->nr};
}

static uint32_t number_of(struct dictionary *d, const char *text)
{
	uint32_t i = 0;

	while (i < d->nr && strcmp(d->text[i], text) != 0)
		i++;
	if (i == d->nr) {
		assert(d->nr < TEXTS_MOST);
		d->text[i] = text;
		d->len[i] = (uint32_t)strlen(text);
		d->nr++;
	}
	return i;
}

static void put_cell(struct cells *c, uint32_t at, const struct lab_value *v, struct dictionary *d)
{
	switch (v->type) {
	case FIELD_TIME:
	case FIELD_INT:
		c->integer[at] = v->valid ? v->integer : 0;
		break;
	case FIELD_REAL:
		c->real[at] = v->valid ? v->real : 0;
		break;
	case FIELD_TEXT:
		c->text[at] = v->valid ? number_of(d, v->text) : 0;
		break;
	case FIELD_FLAG:
		c->flag[at] = v->valid && v->integer;
		break;
	}
}

/* Nobody may look at a batch after the call: it is spoilt then. */
static void spoil(struct cells *cells, size_t nr_fields, uint32_t nr_rows)
{
	for (size_t i = 0; i < nr_fields; i++) {
		memset(cells[i].valid, 0xa5, nr_rows / 8 + 1);
		memset(cells[i].integer, 0xa5, nr_rows * sizeof(*cells[i].integer));
	}
}

static int add_batch(
	const struct exporter *x, void *e, const struct source *s, size_t table, uint32_t from, uint32_t nr)
{
	static struct cells cells[FIELDS_MOST];
	size_t nr_fields = s->table[table].nr_fields;
	struct field_cells *cell = calloc(nr_fields, sizeof(*cell));
	struct data_table_batch batch = {.table = table, .nr_rows = nr, .cell = cell};
	int r;

	assert(cell && nr_fields <= FIELDS_MOST);
	for (size_t i = 0; i < nr_fields; i++) {
		memset(cells[i].valid, 0, nr / 8 + 1);
		for (uint32_t row = 0; row < nr; row++) {
			struct lab_value v = s->value(table, from + row, i);

			put_cell(&cells[i], row, &v, &s->dictionary[table * FIELDS_MOST + i]);
			cells[i].valid[row / 8] |= (uint8_t)(v.valid << row % 8);
			cell[i].nr_missing += !v.valid;
		}
		cell[i].valid = cell[i].nr_missing ? cells[i].valid : NULL;
		cell[i].integer = cells[i].integer;
	}
	r = x->add(e, &batch);
	spoil(cells, nr_fields, nr);
	free(cell);
	return r;
}

static int pour(const struct exporter *x, void *e, const struct source *s, const struct export_job *job,
	const struct lab_options *o)
{
	uint32_t step = o->batch_rows ? MIN(o->batch_rows, (uint32_t)DATA_TABLE_ROWS_MOST) : 1000;
	uint32_t *at = calloc(s->nr_tables, sizeof(*at));
	bool more = true;
	int r = 0;

	assert(at);
	while (more && r >= 0) {
		more = false;
		for (size_t i = job->first_table; r >= 0 && i < job->first_table + job->nr_tables; i++) {
			uint32_t left = s->rows(i) - at[i], nr = MIN(left, step);

			if (!nr)
				continue;
			r = add_batch(x, e, s, i, at[i], nr);
			at[i] += nr;
			more = true;
		}
	}
	free(at);
	return r;
}

static int through(const struct exporter *x, const struct source *s, const struct export_job *job,
	const struct lab_options *o)
{
	void *e = NULL;
	int r = x->open(job, &e, job->reterr);

	if (r < 0)
		return r;
	r = pour(x, e, s, job, o);
	if (r >= 0)
		return x->close(e);
	x->drop(e);
	return r;
}

static int write_source(const struct exporter *x, const struct source *s, size_t only,
	const struct lab_options *options, const char *path)
{
	const struct lab_options plain = {0};
	struct lab_options o = options ? *options : plain;
	bool each = x->shape == EXPORT_FILE_EACH;
	static struct run run;
	struct outlet out = {.fd = -1};
	struct buf err;
	struct export_job job = {.run = &run,
		.table = s->table + (each ? only : 0),
		.first_table = each ? only : 0,
		.nr_tables = each ? 1 : s->nr_tables,
		.path = path,
		.layout = o.layout,
		.compression = o.compression,
		.summary_json = "{}",
		.texts = source_texts,
		.texts_arg = s,
		.reterr = &err};
	int fd = -1, r = 0;

	buf_init(&err, 1 << 16);
	if (x->shape == EXPORT_OWN_FILES) {
		mkdir(path, 0700);
	} else if (!x->by_path) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : outlet_open(&out, fd);
		job.out = &out;
	}
	if (r >= 0)
		r = through(x, s, &job, &o);
	if (job.out && r >= 0)
		r = outlet_flush(&out);
	outlet_release(&out);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		unlink(path);
	buf_release(&err);
	return r;
}

int lab_write(const struct exporter *x, size_t only, const struct lab_options *options, const char *path)
{
	struct source s = {.table = lab_frame, .nr_tables = LAB_FRAMES, .rows = lab_rows, .value = lab_value};
	int r;

	s.dictionary = calloc(LAB_FRAMES * FIELDS_MOST, sizeof(*s.dictionary));
	assert(s.dictionary);
	r = write_source(x, &s, only, options, path);
	free(s.dictionary);
	return r;
}

/* ---- from bytes ---- */

#define FUZZ_FRAMES 2
#define FUZZ_FIELDS 8
#define FUZZ_TEXTS 16
#define FUZZ_ROWS 300

static struct {
	uint8_t byte[4096];
	size_t len;
	char *text[FUZZ_TEXTS];
	struct field field[FUZZ_FRAMES][FUZZ_FIELDS];
	struct data_table table[FUZZ_FRAMES];
	uint32_t rows[FUZZ_FRAMES];
} fuzz;

static uint64_t fuzz_number(size_t at)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v = v << 8 | fuzz.byte[(at * 8 + i) % fuzz.len];
	return v;
}

static uint32_t fuzz_rows(size_t table)
{
	return fuzz.rows[table];
}

static struct lab_value fuzz_value(size_t table, uint32_t row, size_t field)
{
	size_t at = (table * FUZZ_ROWS + row) * FUZZ_FIELDS + field;
	uint64_t n = fuzz_number(at);
	struct lab_value v = {n % 5 != 0, fuzz.field[table][field].type, .integer = (int64_t)n,
		.text = fuzz.text[n % FUZZ_TEXTS]};

	memcpy(&v.real, &n, sizeof(v.real));
	return v;
}

/* The texts of tables are UTF-8 without NUL; nothing else is promised. */
static char *fuzz_text(size_t at)
{
	struct buf out;
	size_t len = fuzz.byte[at % fuzz.len] % 32;
	const uint8_t *p = fuzz.byte + at % fuzz.len, *end = p + MIN(len, fuzz.len - at % fuzz.len);

	buf_init(&out, 4096);
	buf_reserve(&out, 1); /* memory of its own, also for nothing */
	while (p < end) {
		size_t n = *p ? utf8_length(p, end) : 0;

		if (n)
			buf_add(&out, p, n);
		else
			buf_addf(&out, "\\x%02x", *p);
		p += n ? n : 1;
	}
	return (char *)out.data;
}

static void fuzz_tables(void)
{
	for (size_t i = 0; i < FUZZ_TEXTS; i++)
		fuzz.text[i] = fuzz_text(i * 31);
	for (size_t i = 0; i < FUZZ_FRAMES; i++) {
		for (size_t k = 0; k < FUZZ_FIELDS; k++) {
			uint64_t n = fuzz_number(i * FUZZ_FIELDS + k + 7);
			double scale;

			memcpy(&scale, &n, sizeof(scale));
			fuzz.field[i][k] = (struct field){.name = k ? fuzz.text[n % FUZZ_TEXTS] : "time",
				.help = fuzz.text[n / 16 % FUZZ_TEXTS],
				.type = k ? (enum field_type)(n / 256 % 5) : FIELD_TIME,
				.unit = (enum metric_unit)(n / 2048 % NR_UNITS),
				.per_second = n / 65536 % 2,
				.kind = (enum metric_kind)(n / 131072 % NR_KINDS),
				.is_metric = k > 2,
				.scale = isfinite(scale) ? scale : 1,
				.resample = k > 2 ? "last" : NULL};
		}
		fuzz.table[i] = (struct data_table){.name = i ? "second" : "first",
			.help = fuzz.text[i],
			.domain = i ? NULL : "first",
			.field = fuzz.field[i],
			.nr_fields = FUZZ_FIELDS};
		fuzz.rows[i] = (uint32_t)(fuzz_number(i + 3) % FUZZ_ROWS);
	}
}

int lab_write_fuzz(const struct exporter *x, const uint8_t *data, size_t len, const char *path)
{
	struct source s = {
		.table = fuzz.table, .nr_tables = FUZZ_FRAMES, .rows = fuzz_rows, .value = fuzz_value};
	int r;

	fuzz.len = MIN(len, sizeof(fuzz.byte));
	if (!fuzz.len)
		return 0;
	memcpy(fuzz.byte, data, fuzz.len);
	fuzz_tables();
	s.dictionary = calloc(FUZZ_FRAMES * FIELDS_MOST, sizeof(*s.dictionary));
	assert(s.dictionary);
	r = write_source(x, &s, 0,
		&(struct lab_options){
			.batch_rows = 1 + fuzz.byte[0], .layout = (enum export_layout)(fuzz.byte[0] % 3)},
		path);
	free(s.dictionary);
	for (size_t i = 0; i < FUZZ_TEXTS; i++)
		free(fuzz.text[i]);
	return r;
}

/* ---- for Python ---- */

static void json_value(struct json *j, const struct lab_value *v)
{
	if (!v->valid)
		json_null(j, NULL);
	else if (v->type == FIELD_REAL)
		json_num(j, NULL, v->real);
	else if (v->type == FIELD_TEXT)
		json_str(j, NULL, v->text);
	else if (v->type == FIELD_FLAG)
		json_bool(j, NULL, v->integer);
	else
		json_int(j, NULL, v->integer);
}

static void json_fields(struct json *j, const struct data_table *f)
{
	static const char *const type[] = {"time", "integer", "real", "text", "flag"};

	json_array(j, "fields");
	for (size_t i = 0; i < f->nr_fields; i++) {
		json_object(j, NULL);
		json_str(j, "name", f->field[i].name);
		json_str(j, "help", f->field[i].help);
		json_str(j, "type", type[f->field[i].type]);
		json_str(j, "unit", unit_name(f->field[i].unit));
		json_bool(j, "per_second", f->field[i].per_second);
		json_bool(j, "metric", f->field[i].is_metric);
		json_num(j, "scale", f->field[i].scale);
		json_end_object(j);
	}
	json_end_array(j);
}

void lab_json(struct buf *out)
{
	struct json j;

	json_init(&j, out, false);
	json_array(&j, NULL);
	for (size_t i = 0; i < LAB_FRAMES; i++) {
		json_object(&j, NULL);
		json_str(&j, "name", lab_frame[i].name);
		json_fields(&j, &lab_frame[i]);
		json_array(&j, "rows");
		for (uint32_t row = 0; row < lab_rows(i); row++) {
			json_array(&j, NULL);
			for (size_t k = 0; k < lab_frame[i].nr_fields; k++) {
				struct lab_value v = lab_value(i, row, k);

				json_value(&j, &v);
			}
			json_end_array(&j);
		}
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
}
