/* CSV as RFC 4180 has it: lines end with CR LF, a text with a comma, a quotation mark or a line break stands
 * in quotation marks. One file for each table; the heading has the unit: "proc.mem.rss [bytes]".
 *
 * What is missing is an empty field, and an empty text is "": so that readers can distinguish the two.
 *
 * --long: the keys, then metric, value and unit, a line for each value that is known. --wide: csv_wide.c.
 * Tables that are not of time have one form. */
#include "export/csv.h"

#include "base/str.h"
#include "export/outlet.h"

#include <string.h>

struct csv {
	const struct export_job *job;
	enum export_layout layout;
	struct buf line; /* of a batch */
	/* Long: the keys of a row; "metric," and ",unit" of each field. */
	struct buf key;
	struct buf *before, *behind;
	struct csv_wide *wide;
};

static const struct field *field_of(const struct csv *c, size_t i)
{
	return &c->job->table->field[i];
}

/* ---- fields ---- */

/* A text that is not our own. */
static void csv_add_name(struct buf *out, const struct export_job *job, const char *text, size_t len)
{
	struct buf cell;

	if (!job->safe_cells || !is_formula(text, len)) {
		add_csv_field(out, text, len);
		return;
	}
	buf_init(&cell, SIZE_MAX / 2);
	buf_addch(&cell, '\'');
	buf_add(&cell, text, len);
	add_csv_field(out, (char *)cell.data, cell.len);
	out->err = out->err ? out->err : cell.err;
	buf_release(&cell);
}

void csv_add_heading(
	struct buf *out, const struct export_job *job, const char *instance, const struct field *f)
{
	char unit[EXPORT_TEXT];
	const char *word = field_unit(f, unit);
	struct buf name;

	buf_init(&name, SIZE_MAX / 2);
	if (instance && *instance)
		buf_addf(&name, "%s ", instance);
	buf_adds(&name, f->name);
	if (*word)
		buf_addf(&name, " [%s]", word);
	csv_add_name(out, job, (char *)name.data, name.len);
	out->err = out->err ? out->err : name.err;
	buf_release(&name);
}

void csv_add_cell(struct buf *out, const struct export_job *job, const struct data_table_batch *b,
	size_t field, uint32_t row)
{
	const struct field_cells *cell = &b->cell[field];
	char text[EXPORT_TEXT];
	struct texts t;

	if (!cell_valid(cell, row))
		return;
	switch (job->table[b->table - job->first_table].field[field].type) {
	case FIELD_TIME:
		buf_add(out, text, format_time(text, cell->integer[row]));
		break;
	case FIELD_INT:
		buf_add(out, text, format_i64(text, cell->integer[row]));
		break;
	case FIELD_REAL:
		buf_add(out, text, format_real(text, cell->real[row]));
		break;
	case FIELD_TEXT:
		t = export_texts(job, b->table, field);
		csv_add_name(out, job, t.text[cell->text[row]], t.len[cell->text[row]]);
		break;
	case FIELD_FLAG:
		buf_adds(out, cell->flag[row] ? "true" : "false");
		break;
	}
}

/* ---- a row, a line ---- */

static void plain_heading(struct csv *c)
{
	for (size_t i = 0; i < c->job->table->nr_fields; i++) {
		buf_adds(&c->line, i ? "," : "");
		csv_add_heading(&c->line, c->job, NULL, field_of(c, i));
	}
	buf_adds(&c->line, "\r\n");
}

static void plain_row(struct csv *c, const struct data_table_batch *b, uint32_t row)
{
	for (size_t i = 0; i < c->job->table->nr_fields; i++) {
		if (i)
			buf_addch(&c->line, ',');
		csv_add_cell(&c->line, c->job, b, i, row);
	}
	buf_adds(&c->line, "\r\n");
}

/* ---- a value, a line ---- */

static int long_heading(struct csv *c)
{
	size_t nr = c->job->table->nr_fields;
	char unit[EXPORT_TEXT];

	c->before = calloc(MAX(nr, (size_t)1), sizeof(*c->before));
	c->behind = calloc(MAX(nr, (size_t)1), sizeof(*c->behind));
	if (!c->before || !c->behind)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct field *f = field_of(c, i);

		buf_init(&c->before[i], SIZE_MAX / 2);
		buf_init(&c->behind[i], SIZE_MAX / 2);
		add_csv_field(&c->before[i], f->name, strlen(f->name));
		buf_addch(&c->before[i], ',');
		buf_addf(&c->behind[i], ",%s\r\n", field_unit(f, unit));
		if (f->is_metric)
			continue;
		csv_add_heading(&c->line, c->job, NULL, f);
		buf_addch(&c->line, ',');
	}
	buf_adds(&c->line, "metric,value,unit\r\n");
	return 0;
}

static void long_row(struct csv *c, const struct data_table_batch *b, uint32_t row)
{
	size_t nr = c->job->table->nr_fields;

	buf_reset(&c->key);
	for (size_t i = 0; i < nr; i++) {
		if (field_of(c, i)->is_metric)
			continue;
		csv_add_cell(&c->key, c->job, b, i, row);
		buf_addch(&c->key, ',');
	}
	for (size_t i = 0; i < nr; i++) {
		if (!field_of(c, i)->is_metric || !cell_valid(&b->cell[i], row))
			continue;
		buf_add(&c->line, c->key.data, c->key.len);
		buf_add(&c->line, c->before[i].data, c->before[i].len);
		csv_add_cell(&c->line, c->job, b, i, row);
		buf_add(&c->line, c->behind[i].data, c->behind[i].len);
	}
	c->line.err = c->line.err ? c->line.err : c->key.err;
}

/* ---- the exporter ---- */

static int hand_over(struct csv *c)
{
	int r = c->line.err ? c->line.err : outlet_add(c->job->out, c->line.data, c->line.len);

	buf_reset(&c->line);
	return r;
}

static void csv_drop(void *e)
{
	struct csv *c = e;

	for (size_t i = 0; c->before && c->behind && i < c->job->table->nr_fields; i++) {
		buf_release(&c->before[i]);
		buf_release(&c->behind[i]);
	}
	free(c->before);
	free(c->behind);
	csv_wide_free(c->wide);
	buf_release(&c->key);
	buf_release(&c->line);
	free(c);
}

static int csv_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct csv *c = calloc(1, sizeof(*c));
	int r = 0;

	(void)reterr;
	if (!c)
		return -ENOMEM;
	c->job = job;
	c->layout = job->table->domain ? job->layout : LAYOUT_DEFAULT;
	buf_init(&c->line, SIZE_MAX / 2);
	buf_init(&c->key, SIZE_MAX / 2);
	if (c->layout == LAYOUT_WIDE)
		r = csv_wide_open(job, &c->wide);
	else if (c->layout == LAYOUT_LONG)
		r = long_heading(c);
	else
		plain_heading(c);
	if (r >= 0)
		r = hand_over(c);
	if (r < 0)
		csv_drop(c);
	else
		*ret = c;
	return r;
}

static int csv_add(void *e, const struct data_table_batch *b)
{
	struct csv *c = e;
	int r = 0;

	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		if (c->wide)
			r = csv_wide_row(c->wide, b, row);
		else if (c->layout == LAYOUT_LONG)
			long_row(c, b, row);
		else
			plain_row(c, b, row);
		if (r >= 0 && (c->line.len >= OUTLET_BUFFER || row + 1 == b->nr_rows))
			r = hand_over(c);
	}
	return r;
}

static int csv_close(void *e)
{
	struct csv *c = e;
	int r = c->wide ? csv_wide_end(c->wide) : hand_over(c);

	csv_drop(c);
	return r;
}

const struct exporter exporter_csv = {
	.name = "csv",
	.suffix = ".csv",
	.help = "tables with units in their headings",
	.shape = EXPORT_FILE_EACH,
	.streams = true,
	.is_text = true,
	.is_cells = true,
	.layouts = true,
	.open = csv_open,
	.add = csv_add,
	.close = csv_close,
	.drop = csv_drop,
};
