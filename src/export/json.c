/* JSON in two forms.
 *
 * json: one object that says what it holds: {"tacho": VERSION, "tables": {"process": {"help", "domain",
 * "fields": [{"name", "type", "unit", …}], "rows": [[…], …]}, …}}. Rows are lists in the order of the fields:
 * objects would repeat a hundred names in each. Tables come interleaved and stand one after the other here,
 * so each goes to a file without a name first; reading the run once for each of them would take much longer.
 *
 * jsonl: a file for each table, one object a line, which is what programs that take such lines expect: all
 * lines alike and no heading. What the columns are is in the table "metrics".
 *
 * Integers are exact, reals read back as the same double, times are texts as in CSV, missing is null. */
#include "base/str.h"
#include "export/outlet.h"
#include "export/spool.h"
#include "export/text.h"

#include <string.h>

struct json_table {
	struct spool spool;
	bool has_rows;
};

struct json_export {
	const struct export_job *job;
	struct buf line;
	struct buf *name; /* lines: `"name":` of each field */
	size_t nr_names;
	struct json_table *table; /* object */
	struct spool_file file;
};

/* ---- values ---- */

static void add_value(struct buf *out, const struct export_job *job, const struct data_table_batch *b,
	size_t field, uint32_t row)
{
	const struct field_cells *cell = &b->cell[field];
	char text[EXPORT_TEXT];
	size_t len = 0;
	struct texts t;

	if (!cell_valid(cell, row)) {
		buf_adds(out, "null");
		return;
	}
	switch (job->table[b->table - job->first_table].field[field].type) {
	case FIELD_TIME:
		len = format_time(text, cell->integer[row]);
		add_json_text(out, text, len);
		return;
	case FIELD_INT:
		len = format_i64(text, cell->integer[row]);
		break;
	case FIELD_REAL:
		len = format_real(text, cell->real[row]);
		break;
	case FIELD_TEXT:
		t = export_texts(job, b->table, field);
		add_json_text(out, t.text[cell->text[row]], t.len[cell->text[row]]);
		return;
	case FIELD_FLAG:
		buf_adds(out, cell->flag[row] ? "true" : "false");
		return;
	}
	if (len)
		buf_add(out, text, len);
	else
		buf_adds(out, "null"); /* not finite */
}

static void add_pair(struct buf *out, const char *before, const char *key, const char *value)
{
	buf_adds(out, before);
	add_json_text(out, key, strlen(key));
	buf_addch(out, ':');
	if (value)
		add_json_text(out, value, strlen(value));
	else
		buf_adds(out, "null");
}

static int hand_over(struct buf *line, struct outlet *to)
{
	int r = line->err ? line->err : outlet_add(to, line->data, line->len);

	buf_reset(line);
	return r;
}

static void json_drop(void *e)
{
	struct json_export *j = e;

	for (size_t i = 0; j->name && i < j->nr_names; i++)
		buf_release(&j->name[i]);
	for (size_t i = 0; j->table && i < j->job->nr_tables; i++)
		spool_release(&j->table[i].spool);
	spool_file_release(&j->file);
	free(j->name);
	free(j->table);
	buf_release(&j->line);
	free(j);
}

static struct json_export *json_new(const struct export_job *job)
{
	struct json_export *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job = job;
	buf_init(&j->line, SIZE_MAX / 2);
	spool_file_init(&j->file, job->path);
	return j;
}

/* ---- lines ---- */

static int lines_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct json_export *j = json_new(job);

	(void)reterr;
	if (j)
		j->name = calloc(MAX(job->table->nr_fields, (size_t)1), sizeof(*j->name));
	if (!j || !j->name) {
		if (j)
			json_drop(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < job->table->nr_fields; i++) {
		const char *name = job->table->field[i].name;

		buf_init(&j->name[i], SIZE_MAX / 2);
		buf_addch(&j->name[i], i ? ',' : '{');
		add_json_text(&j->name[i], name, strlen(name));
		buf_addch(&j->name[i], ':');
		j->nr_names++;
		j->line.err = j->line.err ? j->line.err : j->name[i].err;
	}
	*ret = j;
	return 0;
}

static int lines_add(void *e, const struct data_table_batch *b)
{
	struct json_export *j = e;
	int r = 0;

	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		for (size_t i = 0; i < j->nr_names; i++) {
			buf_add(&j->line, j->name[i].data, j->name[i].len);
			add_value(&j->line, j->job, b, i, row);
		}
		buf_adds(&j->line, "}\n");
		if (j->line.len >= OUTLET_BUFFER || row + 1 == b->nr_rows)
			r = hand_over(&j->line, j->job->out);
	}
	return r;
}

static int lines_close(void *e)
{
	json_drop(e);
	return 0;
}

const struct exporter exporter_jsonl = {
	.name = "jsonl",
	.suffix = ".jsonl",
	.also = ".ndjson",
	.help = "JSON, a line for each row",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.is_text = true,
	.open = lines_open,
	.add = lines_add,
	.close = lines_close,
	.drop = json_drop,
};

/* ---- one object ---- */

static void add_field(struct buf *out, const struct field *f)
{
	char unit[EXPORT_TEXT], scale[EXPORT_TEXT];
	const char *word = field_unit(f, unit);

	add_pair(out, "{", "name", f->name);
	add_pair(out, ",", "type", field_type_name(f->type));
	add_pair(out, ",", "unit", *word ? word : NULL);
	if (f->is_metric) {
		add_pair(out, ",", "kind", kind_name(f->kind));
		add_pair(out, ",", "resample", f->resample);
		buf_adds(out, ",\"scale\":");
		buf_add(out, scale, format_real(scale, f->scale));
	}
	add_pair(out, ",", "help", f->help);
	buf_addch(out, '}');
}

static void add_table(struct buf *out, const struct data_table *f)
{
	add_json_text(out, f->name, strlen(f->name));
	add_pair(out, ":{", "help", f->help);
	add_pair(out, ",", "domain", f->domain);
	buf_adds(out, ",\"fields\":[");
	for (size_t i = 0; i < f->nr_fields; i++) {
		buf_adds(out, i ? ",\n " : "\n ");
		add_field(out, &f->field[i]);
	}
	buf_adds(out, "\n],\"rows\":[");
}

static int object_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct json_export *j = json_new(job);

	(void)reterr;
	if (j)
		j->table = calloc(MAX(job->nr_tables, (size_t)1), sizeof(*j->table));
	if (!j || !j->table) {
		if (j)
			json_drop(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < job->nr_tables; i++) {
		spool_init(&j->table[i].spool);
		add_table(&j->table[i].spool.held, &job->table[i]);
	}
	*ret = j;
	return 0;
}

static int object_add(void *e, const struct data_table_batch *b)
{
	struct json_export *j = e;
	size_t at = b->table - j->job->first_table, nr = j->job->table[at].nr_fields;
	struct json_table *t = &j->table[at];
	struct buf *out = &t->spool.held;
	int r = 0;

	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		buf_adds(out, t->has_rows ? ",\n" : "\n");
		t->has_rows = true;
		for (size_t i = 0; i < nr; i++) {
			buf_addch(out, i ? ',' : '[');
			add_value(out, j->job, b, i, row);
		}
		buf_adds(out, nr ? "]" : "[]");
		r = spool_settle(&t->spool, &j->file);
	}
	return r;
}

static int object_close(void *e)
{
	struct json_export *j = e;
	int r = 0;

	add_pair(&j->line, "{", "tacho", TACHO_VERSION);
	buf_adds(&j->line, ",\"tables\":{");
	for (size_t i = 0; r >= 0 && i < j->job->nr_tables; i++) {
		buf_adds(&j->line, i ? ",\n" : "\n");
		r = hand_over(&j->line, j->job->out);
		if (r >= 0)
			r = j->table[i].spool.held.err;
		if (r >= 0)
			r = spool_pour(&j->table[i].spool, &j->file, j->job->out);
		buf_adds(&j->line, "\n]}");
	}
	buf_adds(&j->line, "\n}}\n");
	if (r >= 0)
		r = hand_over(&j->line, j->job->out);
	json_drop(j);
	return r;
}

const struct exporter exporter_json = {
	.name = "json",
	.suffix = ".json",
	.help = "one object that says what it holds",
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.is_text = true,
	.open = object_open,
	.add = object_add,
	.close = object_close,
	.drop = json_drop,
};
