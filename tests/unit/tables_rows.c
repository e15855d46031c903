#include "tables_rows.h"

#include "base/str.h"
#include "query/derived.h"
#include "query/series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- batches ---- */

static bool bit(const struct field_cells *c, uint32_t row)
{
	return !c->valid || c->valid[row / 8] >> (row % 8) & 1;
}

static void check_text(const struct kept *k, const struct data_table_batch *b, size_t field, uint32_t text)
{
	struct texts t = tables_texts(k->tables, b->table, field);
	const uint8_t *p, *end;

	assert_true(text < t.nr);
	assert_int_equal(strlen(t.text[text]), t.len[text]);
	for (p = (const uint8_t *)t.text[text], end = p + t.len[text]; p < end;) {
		size_t n = utf8_length(p, end);

		assert_true(n > 0);
		p += n;
	}
}

static void keep_cell(const struct kept *k, const struct data_table_batch *b, size_t field, uint32_t row,
	struct kept_cell *ret)
{
	const struct field_cells *c = &b->cell[field];
	const struct field *f = &k->table[b->table].field[field];

	*ret = (struct kept_cell){.known = bit(c, row)};
	if (!ret->known)
		return;
	if (f->type == FIELD_REAL) {
		ret->real = c->real[row];
		assert_true(isfinite(ret->real));
	} else if (f->type == FIELD_TEXT) {
		ret->text = c->text[row];
		check_text(k, b, field, ret->text);
	} else if (f->type == FIELD_FLAG) {
		ret->integer = c->flag[row];
		assert_true(ret->integer == 0 || ret->integer == 1);
	} else {
		ret->integer = c->integer[row];
	}
}

static void keep_batch(struct kept *k, const struct data_table_batch *b)
{
	struct kept_frame *f = &k->table[b->table];

	assert_true(b->table < k->nr);
	assert_in_range(b->nr_rows, 1, DATA_TABLE_ROWS_MOST);
	if (f->nr_rows + b->nr_rows > f->cap) {
		f->cap = MAX(f->nr_rows + b->nr_rows, f->cap * 2);
		f->cell = reallocarray(f->cell, f->cap * f->nr_fields, sizeof(*f->cell));
		assert_non_null(f->cell);
	}
	for (size_t i = 0; i < f->nr_fields; i++) {
		uint32_t missing = 0;

		for (uint32_t row = 0; row < b->nr_rows; row++) {
			keep_cell(k, b, i, row, &f->cell[(f->nr_rows + row) * f->nr_fields + i]);
			missing += !bit(&b->cell[i], row);
		}
		assert_int_equal(missing, b->cell[i].nr_missing);
		assert_true(missing == 0 || b->cell[i].valid);
	}
	f->nr_rows += b->nr_rows;
	f->nr_batches++;
}

struct kept *keep_paths(const char *const *path, size_t nr, const struct tables_options *o)
{
	static const struct tables_options all = {.from_s = NAN, .to_s = NAN};
	struct kept *k = calloc(1, sizeof(*k));
	const struct data_table *table;
	struct data_table_batch b;
	struct buf err;

	assert_non_null(k);
	buf_init(&err, 4096);
	if (run_open(path, nr, &k->run, &err) < 0 || tables_open(k->run, o ? o : &all, &k->tables, &err) < 0)
		fail_msg("%s", (char *)err.data);
	buf_release(&err);
	k->nr = tables_list(k->tables, &table);
	k->table = calloc(k->nr + 1, sizeof(*k->table));
	for (size_t i = 0; i < k->nr; i++)
		k->table[i] = (struct kept_frame){
			.name = table[i].name, .field = table[i].field, .nr_fields = table[i].nr_fields};
	while ((k->status = tables_next(k->tables, &b)) > 0)
		keep_batch(k, &b);
	if (!k->status)
		assert_int_equal(tables_next(k->tables, &b), 0);
	return k;
}

struct kept *keep(const char *path, const struct tables_options *o)
{
	return keep_paths(&path, 1, o);
}

void kept_free(struct kept *k)
{
	for (size_t i = 0; i < k->nr; i++)
		free(k->table[i].cell);
	free(k->table);
	tables_close(k->tables);
	run_close(k->run);
	free(k);
}

/* ---- asking ---- */

struct kept_frame *kept_find(struct kept *k, const char *name)
{
	for (size_t i = 0; i < k->nr; i++)
		if (!strcmp(k->table[i].name, name))
			return &k->table[i];
	return NULL;
}

struct kept_frame *kept_table(struct kept *k, const char *name)
{
	struct kept_frame *f = kept_find(k, name);

	if (!f)
		fail_msg("there is no frame %s", name);
	return f;
}

bool has_field(const struct kept_frame *f, const char *name)
{
	for (size_t i = 0; i < f->nr_fields; i++)
		if (!strcmp(f->field[i].name, name))
			return true;
	return false;
}

size_t kept_field(const struct kept_frame *f, const char *name)
{
	for (size_t i = 0; i < f->nr_fields; i++)
		if (!strcmp(f->field[i].name, name))
			return i;
	fail_msg("frame %s has no field %s", f->name, name);
	return 0;
}

const struct kept_cell *kept_cell(struct kept *k, const char *table, const char *field, size_t row)
{
	const struct kept_frame *f = kept_table(k, table);

	if (row >= f->nr_rows)
		fail_msg("frame %s has %zu rows", table, f->nr_rows);
	return &f->cell[row * f->nr_fields + kept_field(f, field)];
}

static double number_of(const struct kept_frame *f, size_t field, const struct kept_cell *c)
{
	return !c->known ? NAN : f->field[field].type == FIELD_REAL ? c->real : (double)c->integer;
}

double kept_number(struct kept *k, const char *table, const char *field, size_t row)
{
	const struct kept_frame *f = kept_table(k, table);

	return number_of(f, kept_field(f, field), kept_cell(k, table, field, row));
}

const char *kept_text(struct kept *k, const char *table, const char *field, size_t row)
{
	const struct kept_cell *c = kept_cell(k, table, field, row);
	const struct kept_frame *f = kept_table(k, table);

	return c->known ? tables_texts(k->tables, (size_t)(f - k->table), kept_field(f, field)).text[c->text]
			: NULL;
}

/* ---- beside series ---- */

struct comparing {
	struct kept *k;
	struct kept_frame *f;
	size_t field;
	bool *met; /* rows that a series told of */
	size_t nr;
};

static bool same(double a, double b)
{
	return a == b || (!isfinite(a) && !isfinite(b));
}

static bool is_row(struct comparing *c, size_t row, const struct series_point *p, const char *instance)
{
	const struct kept_frame *f = c->f;
	const char *name = has_field(f, "instance") ? kept_text(c->k, f->name, "instance", row) : NULL;
	bool alone = !strcmp(f->name, "node") || !strcmp(f->name, "tree") || !name;

	if (c->met[row] || f->cell[row * f->nr_fields + 1].real != (double)p->time_ns / 1e9)
		return false;
	if (has_field(f, "pid") && p->pid && kept_number(c->k, f->name, "pid", row) != (double)p->pid)
		return false;
	return alone || !strcmp(name, instance);
}

static void compare_point(struct comparing *c, const struct series_point *p, const char *group, size_t *at)
{
	struct kept_frame *f = c->f;
	struct buf name;
	size_t row = *at;

	buf_init(&name, 1 << 20);
	utf8_escape(&name,
		group		      ? group
			: p->instance ? p->instance
				      : "",
		group		      ? strlen(group)
			: p->instance ? p->instance_len
				      : 0);
	/* Rows of a tick stand together, and ticks in their order. */
	while (row < f->nr_rows && f->cell[row * f->nr_fields + 1].real < (double)p->time_ns / 1e9)
		row++;
	*at = row;
	while (row < f->nr_rows && !is_row(c, row, p, (const char *)name.data))
		row++;
	if (row == f->nr_rows && group && !(p->value[0] > 0)) { /* it has not been found yet: nothing */
		buf_release(&name);
		return;
	}
	if (row == f->nr_rows)
		fail_msg("%s has no row of %s at %g s", f->name, (char *)name.data, (double)p->time_ns / 1e9);
	c->met[row] = true;
	if (!same(number_of(f, c->field, &f->cell[row * f->nr_fields + c->field]), p->value[0]))
		fail_msg("%s of %s at %g s is %.17g, not %.17g", f->field[c->field].name, (char *)name.data,
			(double)p->time_ns / 1e9,
			number_of(f, c->field, &f->cell[row * f->nr_fields + c->field]), p->value[0]);
	c->nr++;
	buf_release(&name);
}

/* 0: there is no such series. */
static bool compare_series(struct comparing *c, const char *path, const struct series_query *q)
{
	struct series_point p;
	struct series *s = NULL;
	struct buf err;
	size_t at = 0;
	int r;

	buf_init(&err, 4096);
	r = series_open(path, q, &s, &err);
	buf_release(&err);
	if (r < 0)
		return false;
	while ((r = series_next(s, &p)) > 0)
		compare_point(c, &p, q->group, &at);
	assert_int_equal(r, 0);
	series_close(s);
	return true;
}

static void compare_groups(struct comparing *c, const char *path, struct series_query q)
{
	struct texts t =
		tables_texts(c->k->tables, (size_t)(c->f - c->k->table), kept_field(c->f, "instance"));

	for (uint32_t i = 0; i < t.nr; i++) {
		q.group = t.text[i];
		assert_true(compare_series(c, path, &q));
	}
}

static void compare_field(struct comparing *c, const char *path, enum tables_per per)
{
	const struct field *field = &c->f->field[c->field];
	const struct derived *d = derived_find(field->name);
	size_t len = strlen(field->name);
	char metric[128];
	const char *name = metric;
	struct series_query q = {.metric = &name, .nr = 1};
	bool whole =
		(d && d->at == AT_FOLD) || (!strcmp(c->f->name, "tree") && !d && field->kind == KIND_GAUGE);
	bool process = !strcmp(c->f->name, "process") || !strcmp(c->f->name, "gpu_process");

	assert_true(len < sizeof(metric));
	snprintf(metric, sizeof(metric), "%s", field->name);
	q.rate = !d && len > 5 && field->per_second && !strcmp(metric + len - 5, ".rate");
	if (q.rate)
		metric[len - 5] = 0;
	memset(c->met, 0, MAX(c->f->nr_rows, 1u) * sizeof(*c->met));
	if ((!strcmp(c->f->name, "group") && d && d->at == AT_FOLD) || (per == TABLES_GROUP && process)) {
		compare_groups(c, path, q);
	} else {
		q.per_instance = !has_field(c->f, "instance") ? false : !(d && d->at == AT_FOLD);
		if (!compare_series(c, path, &q)) { /* the recording's own formula */
			assert_true(whole);
			q.per_instance = false;
			assert_true(compare_series(c, path, &q));
		}
	}
	for (size_t row = 0; row < c->f->nr_rows; row++)
		if (!c->met[row] && c->f->cell[row * c->f->nr_fields + c->field].known)
			fail_msg("%s has a value at row %zu that no series has", field->name, row);
}

size_t same_as_series(const char *path, const struct tables_options *o)
{
	struct kept *k = keep(path, o);
	size_t nr = 0;

	assert_int_equal(k->status, 0);
	for (size_t i = 0; i < k->nr; i++)
		for (size_t j = 0; j < k->table[i].nr_fields; j++) {
			struct comparing c = {.k = k, .f = &k->table[i], .field = j};

			if (!c.f->field[j].is_metric)
				continue;
			c.met = calloc(c.f->nr_rows + 1, sizeof(*c.met));
			compare_field(&c, path, o ? o->per : TABLES_EACH);
			nr += c.nr;
			free(c.met);
		}
	kept_free(k);
	return nr;
}
