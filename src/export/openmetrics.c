/* OpenMetrics 1.0: samples with their times as text, which Prometheus takes into its database
 * (promtool tsdb create-blocks-from openmetrics). One family for each metric of the tables that are of time,
 * with type, unit and help; what else a row has besides its metrics are labels.
 *
 * All samples of a family stand together, and in it those of one set of labels, in order of time; rows come
 * otherwise, so that they wait in a column_sorter. Integers are exact to the last digit, though most readers
 * make doubles of them. Of several rows with the same labels at the same time all but the first have one
 * more, `duplicate`, that counts them: no series may have two samples of one time. Texts, and tables that are
 * not of time, are no samples: other formats have them. A counter that was negative or not a number would be
 * refused, and is then of unknown type. */
#include "base/owned.h"
#include "base/str.h"
#include "export/labels.h"
#include "export/openmetrics_names.h"
#include "export/column_sorter.h"
#include "export/text.h"

#include <string.h>

#define SHELVES_BYTES (32u << 20) /* rows in memory, of all tables */
#define HAND_OVER 65536

struct family {
	size_t field;
	const char *name;
	bool unfit; /* for a counter */
};

struct openmetrics_seen { /* a set of labels */
	int64_t time;
	uint64_t nr; /* rows of that time */
};

struct openmetrics_table {
	const struct data_table *table;
	size_t number; /* as in batches */
	size_t time;   /* the field */
	size_t *label; /* the fields, and what they are called */
	char **label_name;
	size_t nr_labels;
	struct family *family;
	size_t nr_families;
	struct label *set; /* of a row; behind it which of the duplicates it is */
	struct label_sets sets;
	struct openmetrics_seen *seen; /* by the set's number */
	uint32_t nr_seen;
	struct column_sorter sorter;
};

struct openmetrics {
	const struct export_job *job;
	struct spool_file file;
	struct names names;
	struct openmetrics_table *table; /* one for each table; those not of time have no families */
	size_t nr_tables;
};

static void table_release(struct openmetrics_table *t)
{
	texts_free(t->label_name, t->nr_labels);
	free(t->label);
	free(t->family);
	free(t->set);
	free(t->seen);
	label_sets_release(&t->sets);
	column_sorter_release(&t->sorter);
}

static void openmetrics_drop(void *e)
{
	struct openmetrics *o = e;

	for (size_t i = 0; i < o->nr_tables; i++)
		table_release(&o->table[i]);
	free(o->table);
	names_release(&o->names);
	spool_file_release(&o->file);
	free(o);
}

static bool find_time(struct openmetrics_table *t)
{
	for (t->time = 0; t->time < t->table->nr_fields; t->time++)
		if (t->table->field[t->time].type == FIELD_TIME && !t->table->field[t->time].is_metric)
			return t->table->domain;
	return false;
}

static int table_init(struct openmetrics_table *t, struct names *names)
{
	size_t most = t->table->nr_fields + 1;

	t->label = calloc(most, sizeof(*t->label));
	t->label_name = calloc(most, sizeof(*t->label_name));
	t->family = calloc(most, sizeof(*t->family));
	t->set = calloc(most, sizeof(*t->set));
	if (!t->label || !t->label_name || !t->family || !t->set)
		return -ENOMEM;
	for (size_t i = 0; find_time(t) && i < t->table->nr_fields; i++) {
		const struct field *f = &t->table->field[i];

		if (f->is_metric && f->type != FIELD_TEXT && f->type != FIELD_TIME) {
			const char *name = family_name(names, t->table, f);

			if (!name)
				return -ENOMEM;
			t->family[t->nr_families++] = (struct family){.field = i, .name = name};
		} else if (!f->is_metric && (f->type == FIELD_TEXT || f->type == FIELD_INT)) {
			char *name = label_name(f->name, t->label_name, t->nr_labels);

			if (!name)
				return -ENOMEM;
			t->label[t->nr_labels] = i;
			t->label_name[t->nr_labels++] = name;
		}
	}
	label_sets_init(&t->sets, t->nr_labels + 1);
	return column_sorter_init(&t->sorter, t->nr_families);
}

static int openmetrics_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct openmetrics *o = calloc(1, sizeof(*o));
	int r = 0;

	(void)reterr;
	if (!o)
		return -ENOMEM;
	o->job = job;
	spool_file_init(&o->file, job->path);
	o->table = calloc(MAX(job->nr_tables, (size_t)1), sizeof(*o->table));
	if (!o->table)
		r = -ENOMEM;
	while (r >= 0 && o->nr_tables < job->nr_tables) {
		struct openmetrics_table *t = &o->table[o->nr_tables];

		t->table = &job->table[o->nr_tables];
		t->number = job->first_table + o->nr_tables++;
		r = table_init(t, &o->names);
	}
	if (r < 0)
		openmetrics_drop(o);
	else
		*ret = o;
	return r;
}

/* ---- rows ---- */

static int seen_reach(struct openmetrics_table *t, uint32_t number)
{
	struct openmetrics_seen *more = array_reach(t->seen, &t->nr_seen, number, sizeof(*more));

	if (!more)
		return -ENOMEM;
	t->seen = more;
	return 0;
}

static int series_of(
	struct openmetrics_table *t, const struct data_table_batch *b, uint32_t row, uint32_t *ret)
{
	int64_t time = b->cell[t->time].integer[row];
	struct openmetrics_seen *seen;
	int r;

	for (size_t i = 0; i < t->nr_labels; i++) {
		const struct field_cells *cell = &b->cell[t->label[i]];
		bool there = cell_valid(cell, row), text = t->table->field[t->label[i]].type == FIELD_TEXT;

		t->set[i] = (struct label){.there = there};
		if (there)
			t->set[i].value = text ? cell->text[row] : (uint64_t)cell->integer[row];
	}
	t->set[t->nr_labels] = (struct label){0};
	r = label_sets_number(&t->sets, t->set, ret);
	if (r >= 0)
		r = seen_reach(t, *ret);
	if (r < 0)
		return r;
	seen = &t->seen[*ret];
	if (!seen->nr || seen->time != time) {
		*seen = (struct openmetrics_seen){time, 1};
		return 0;
	}
	t->set[t->nr_labels] = (struct label){seen->nr++, 1};
	return label_sets_number(&t->sets, t->set, ret);
}

static void put_values(struct openmetrics_table *t, size_t family, const struct data_table_batch *b)
{
	struct family *f = &t->family[family];
	struct column_sorter_column *c = &t->sorter.column[family];
	const struct field_cells *cell = &b->cell[f->field], *time = &b->cell[t->time];
	enum field_type type = t->table->field[f->field].type;
	size_t to = t->sorter.nr_rows;

	for (uint32_t row = 0; row < b->nr_rows; row++) {
		if (!cell_valid(time, row)) /* a sample must have a time */
			continue;
		c->there[to] = cell_valid(cell, row);
		c->value[to] = 0;
		if (c->there[to] && type == FIELD_REAL) {
			memcpy(&c->value[to], &cell->real[row], sizeof(c->value[to]));
			f->unfit |= !(cell->real[row] >= 0);
		} else if (c->there[to]) {
			c->value[to] =
				type == FIELD_FLAG ? cell->flag[row] != 0 : (uint64_t)cell->integer[row];
			f->unfit |= type == FIELD_INT && cell->integer[row] < 0;
		}
		to++;
	}
}

static int shelves_flush_largest(struct openmetrics *o)
{
	struct openmetrics_table *largest = o->table;
	size_t all = 0;

	for (size_t i = 0; i < o->nr_tables; i++) {
		size_t size = column_sorter_size(&o->table[i].sorter);

		all += size;
		if (size > column_sorter_size(&largest->sorter))
			largest = &o->table[i];
	}
	return all < SHELVES_BYTES ? 0 : column_sorter_flush(&largest->sorter, &o->file);
}

static int openmetrics_add(void *e, const struct data_table_batch *b)
{
	struct openmetrics *o = e;
	struct openmetrics_table *t = &o->table[b->table - o->job->first_table];
	size_t to = t->sorter.nr_rows;
	int r = t->nr_families ? column_sorter_reserve(&t->sorter, b->nr_rows) : 0;

	if (r < 0 || !t->nr_families)
		return r;
	for (uint32_t row = 0; row < b->nr_rows; row++) {
		if (!cell_valid(&b->cell[t->time], row))
			continue;
		t->sorter.time[to] = b->cell[t->time].integer[row];
		r = series_of(t, b, row, &t->sorter.series[to++]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < t->nr_families; i++)
		put_values(t, i, b);
	t->sorter.nr_rows = to;
	return shelves_flush_largest(o);
}

/* ---- text ---- */

static void add_seconds(struct buf *out, int64_t ns)
{
	uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, part = left % (uint64_t)NSEC_PER_SEC;
	char text[EXPORT_TEXT];
	size_t n = ns < 0 ? 1 : 0;

	text[0] = '-';
	n += format_i64(text + n, (int64_t)(left / (uint64_t)NSEC_PER_SEC));
	if (part) {
		text[n] = '.';
		for (unsigned i = 9; i; i--, part /= 10)
			text[n + i] = (char)('0' + part % 10);
		n += 10;
		while (text[n - 1] == '0')
			n--;
	}
	buf_add(out, text, n);
}

static void add_value(struct buf *out, enum field_type type, uint64_t bits)
{
	char text[EXPORT_TEXT];
	double v;

	memcpy(&v, &bits, sizeof(v));
	if (type == FIELD_REAL)
		openmetrics_add_real(out, v);
	else
		buf_add(out, text, format_i64(text, (int64_t)bits));
}

struct openmetrics_output { /* a family */
	const struct openmetrics *o;
	const struct openmetrics_table *table;
	const struct family *family;
	bool counter, begun;
	struct column_sorter_point last;
	struct buf series; /* name and labels of the samples */
	struct buf text;
};

static void put_series(struct openmetrics_output *w, uint32_t series)
{
	const struct openmetrics_table *t = w->table;
	const struct label *set = label_sets_get(&t->sets, series);
	char text[EXPORT_TEXT];
	bool any = false;

	buf_reset(&w->series);
	buf_adds(&w->series, w->family->name);
	buf_adds(&w->series, w->counter ? "_total" : "");
	for (size_t i = 0; i < t->nr_labels; i++) {
		size_t field = t->label[i];

		if (!set[i].there)
			continue;
		buf_addf(&w->series, "%c%s=\"", any ? ',' : '{', t->label_name[i]);
		any = true;
		if (t->table->field[field].type == FIELD_TEXT) {
			const struct texts texts = export_texts(w->o->job, t->number, field);

			if (set[i].value < texts.nr)
				openmetrics_add_escaped(
					&w->series, texts.text[set[i].value], texts.len[set[i].value]);
		} else {
			buf_add(&w->series, text, format_i64(text, (int64_t)set[i].value));
		}
		buf_addch(&w->series, '"');
	}
	if (set[t->nr_labels].there) {
		buf_addf(&w->series, "%cduplicate=\"", any ? ',' : '{');
		buf_add(&w->series, text, format_i64(text, (int64_t)set[t->nr_labels].value));
		buf_addch(&w->series, '"');
		any = true;
	}
	buf_adds(&w->series, any ? "} " : " ");
}

static int hand_over(struct openmetrics_output *w)
{
	int r = w->text.err ? w->text.err : w->series.err;

	if (r >= 0)
		r = outlet_add(w->o->job->out, w->text.data, w->text.len);
	buf_reset(&w->text);
	return r;
}

static int add_sample(void *arg, const struct column_sorter_point *p)
{
	struct openmetrics_output *w = arg;

	if (w->begun && w->last.series == p->series && w->last.time == p->time)
		return 0; /* of recordings that overlap to the nanosecond */
	if (!w->begun || w->last.series != p->series)
		put_series(w, p->series);
	w->begun = true;
	w->last = *p;
	buf_add(&w->text, w->series.data, w->series.len);
	add_value(&w->text, w->table->table->field[w->family->field].type, p->value);
	buf_addch(&w->text, ' ');
	add_seconds(&w->text, p->time);
	buf_addch(&w->text, '\n');
	return w->text.len < HAND_OVER ? w->text.err : hand_over(w);
}

static void put_heading(struct openmetrics_output *w)
{
	const struct field *f = &w->table->table->field[w->family->field];
	const char *type = w->counter ? "counter" : field_is_counter(f) ? "unknown" : "gauge";
	char text[48], raw[EXPORT_TEXT];
	const char *unit = openmetrics_unit(f, text), *name = w->family->name;

	buf_addf(&w->text, "# TYPE %s %s\n", name, type);
	if (*unit)
		buf_addf(&w->text, "# UNIT %s %s\n", name, unit);
	buf_addf(&w->text, "# HELP %s ", name);
	if (f->help)
		openmetrics_add_escaped(&w->text, f->help, strlen(f->help));
	if (f->scale != 1)
		buf_addf(&w->text, " In units of %s.", field_unit(f, raw));
	buf_addch(&w->text, '\n');
}

static int write_family(const struct openmetrics *o, const struct openmetrics_table *t, size_t number)
{
	struct openmetrics_output w = {.o = o, .table = t, .family = &t->family[number]};
	int r;

	if (!t->sorter.column[number].nr_runs) /* it has no values */
		return 0;
	w.counter = field_is_counter(&t->table->field[w.family->field]) && !w.family->unfit;
	buf_init(&w.series, SIZE_MAX / 2);
	buf_init(&w.text, SIZE_MAX / 2);
	put_heading(&w);
	r = column_sorter_merge(&t->sorter, number, &o->file, add_sample, &w);
	if (r >= 0)
		r = hand_over(&w);
	buf_release(&w.series);
	buf_release(&w.text);
	return r;
}

static int openmetrics_close(void *e)
{
	struct openmetrics *o = e;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->nr_tables; i++) {
		struct openmetrics_table *t = &o->table[i];

		r = column_sorter_flush(&t->sorter, &o->file);
		for (size_t k = 0; r >= 0 && k < t->nr_families; k++)
			r = write_family(o, t, k);
	}
	if (r >= 0)
		r = outlet_add(o->job->out, "# EOF\n", 6);
	openmetrics_drop(o);
	return r;
}

const struct exporter exporter_openmetrics = {
	.name = "openmetrics",
	.suffix = ".openmetrics",
	.help = "samples with their times as OpenMetrics text, for Prometheus",
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.is_text = true,
	.open = openmetrics_open,
	.add = openmetrics_add,
	.close = openmetrics_close,
	.drop = openmetrics_drop,
};
