/* Time series as lines of text: see series.h. */
#include "text/series.h"

#include "base/expr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIME_WIDTH 12
#define VALUE_LEAST 12
#define INSTANCE_WIDTH 24

static const char *unit_text(const struct series_column *c)
{
	static const char *const unit[NR_UNITS][2] = {
		[UNIT_COUNT] = {"", "1/s"},
		[UNIT_BYTES] = {"bytes", "bytes/s"},
		[UNIT_SECONDS] = {"s", "s/s"},
		[UNIT_RATIO] = {"ratio", "ratio/s"},
		[UNIT_CODE] = {"", "1/s"},
		[UNIT_JOULES] = {"J", "J/s"},
		[UNIT_WATTS] = {"W", "W/s"},
		[UNIT_CELSIUS] = {"C", "C/s"},
		[UNIT_HERTZ] = {"Hz", "Hz/s"},
		[UNIT_FLOP] = {"FLOP", "FLOP/s"},
	};

	return c->unit < NR_UNITS ? unit[c->unit][c->per_second] : "";
}

/* ---- text and CSV ---- */

enum { COL_HOST, COL_TIME, COL_SINCE, COL_INSTANCE, COL_PID, COL_NAME, NR_FIXED };

struct series_table {
	struct text_column column[NR_FIXED + SERIES_MAX];
	char name[SERIES_MAX][EXPR_NAME_SIZE + 16]; /* in CSV */
	struct text_table t;
	struct table_writer w;
};

static void table_of(
	struct series_table *ret, const struct series_page *p, const struct series *s, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);

	*ret = (struct series_table){.t = {.column = ret->column, .nr_columns = NR_FIXED + nr},
		.column = {[COL_HOST] = {.name = p->several ? "host" : NULL},
			[COL_TIME] = {"time_s", "time_s", .numbers = true, .width = TIME_WIDTH},
			[COL_SINCE] = {p->phase ? "phase_s" : NULL, p->phase ? "phase_s" : NULL,
				.numbers = true, .width = TIME_WIDTH},
			[COL_INSTANCE] = {p->per_instance ? "instance" : NULL, .gap = 2,
				.width = INSTANCE_WIDTH},
			[COL_PID] = {.name = p->per_instance ? "pid" : NULL},
			[COL_NAME] = {.name = p->per_instance ? "instance" : NULL}}};
	for (size_t i = 0; i < nr; i++) {
		snprintf(ret->name[i], sizeof(ret->name[i]), "%s%s", c[i].name,
			c[i].per_second ? ".per_second" : "");
		ret->column[NR_FIXED + i] = (struct text_column){.title = c[i].name,
			.name = ret->name[i],
			.numbers = true,
			.gap = 2,
			.width = (unsigned)MAX(strlen(c[i].name), (size_t)VALUE_LEAST)};
	}
	table_begin(&ret->w, &ret->t, &(struct text_style){.form = p->form, .utf8 = p->utf8}, out);
}

static void table_head(const struct series_page *p, const struct series *s, struct table_writer *w)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);

	table_heading(w);
	if (p->form != FORM_TEXT)
		return;
	table_begin_row(w);
	for (size_t i = 0; i < NR_FIXED + nr; i++)
		if (cell_open(w)) {
			buf_adds(&w->cell, i < NR_FIXED ? "" : unit_text(&c[i - NR_FIXED]));
			cell_close(w, true);
		}
	table_end_row(w);
}

/* All digits that matter, for people too. */
static void cell_value(struct table_writer *w, double v, const char *format)
{
	char text[40];

	if (w->style.form == FORM_CSV) {
		cell_number(w, v);
		return;
	}
	snprintf(text, sizeof(text), format, v);
	cell_words(w, isnan(v) ? NULL : text);
}

static double run_time(const struct series_page *p, const struct series_point *point)
{
	return p->offset_s + (double)point->time_ns / 1e9;
}

static double phase_time(const struct series_page *p, const struct series_point *point)
{
	return p->phase ? phases_since(p->phases, p->phase, run_time(p, point)) : NAN;
}

static void table_line(const struct series_page *p, const struct series *s, const struct series_point *point,
	struct table_writer *w)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);
	struct buf *cell;

	table_begin_row(w);
	cell_text(w, series_host(s), strlen(series_host(s)));
	cell_value(w, run_time(p, point), "%.3f");
	cell_value(w, phase_time(p, point), "%.3f");
	cell = cell_open(w);
	if (cell) {
		if (point->pid)
			buf_addf(cell, "%lld ", (long long)point->pid);
		if (point->instance)
			add_text(cell, point->instance, point->instance_len, w->letters);
		cell_close(w, true);
	}
	cell_number(w, point->pid ? (double)point->pid : NAN);
	cell_text(w, point->instance ? point->instance : "", point->instance_len);
	for (size_t i = 0; i < nr; i++) {
		double v = point->value[i];

		cell_value(w, v, fabs(v) < 1e15 && (v == floor(v) || fabs(v) >= 1e6) ? "%.0f" : "%.6g");
	}
	table_end_row(w);
}

/* ---- JSON ---- */

static void json_heading(const struct series_page *p, const struct series *s, bool first, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);
	struct json j;

	buf_adds(out, first ? "" : ",\n");
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_name(&j, "host", series_host(s));
	json_num(&j, "offset_s", p->offset_s);
	json_array(&j, "columns");
	json_str(&j, NULL, "time_s");
	if (p->phase)
		json_str(&j, NULL, "phase_s");
	if (p->per_instance) {
		json_str(&j, NULL, "pid");
		json_str(&j, NULL, "instance");
	}
	for (size_t i = 0; i < nr; i++)
		json_str(&j, NULL, c[i].name);
	json_end_array(&j);
	json_array(&j, "units");
	for (size_t i = 0; i < nr; i++)
		json_str(&j, NULL, unit_text(&c[i]));
	json_end_array(&j);
	json_array(&j, "points");
}

static void json_line(const struct series_page *p, const struct series *s, const struct series_point *point,
	bool first, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);
	struct json j;

	buf_adds(out, first ? "\n" : ",\n");
	json_init(&j, out, false);
	json_array(&j, NULL);
	json_num(&j, NULL, run_time(p, point));
	if (p->phase)
		json_num(&j, NULL, phase_time(p, point));
	if (p->per_instance) {
		if (point->pid)
			json_int(&j, NULL, point->pid);
		else
			json_null(&j, NULL);
		json_bytes(&j, NULL, point->instance ? point->instance : "", point->instance_len);
	}
	for (size_t i = 0; i < nr; i++)
		json_num(&j, NULL, point->value[i]);
	json_end_array(&j);
}

/* ---- all of it ---- */

static void recording_head(
	const struct series_page *p, const struct series *s, bool first, struct table_writer *w)
{
	if (p->form == FORM_JSON) {
		json_heading(p, s, first, w->out);
		return;
	}
	if (p->form == FORM_TEXT && p->several) {
		buf_adds(w->out, first ? "" : "\n");
		add_text(w->out, series_host(s), strlen(series_host(s)), w->letters);
		buf_addch(w->out, '\n');
	}
	if (first || p->form == FORM_TEXT)
		table_head(p, s, w);
}

#define PIECE (1 << 16)

static int hand_over(const struct series_taker *taker, struct buf *out, size_t from)
{
	int r = out->len >= from || out->err ? taker->take(taker->arg, out) : 0;

	if (out->len >= from)
		buf_reset(out);
	return r;
}

static int64_t on_clock(double run_s, double offset_s, int64_t none)
{
	double ns = (run_s - offset_s) * 1e9;

	return !(run_s > 0) ? none : ns > 9e18 ? INT64_MAX : ns < -9e18 ? INT64_MIN : round_i64(ns);
}

static int set_range(const struct series_query *q, double offset_s, struct series *s)
{
	return series_range(
		s, on_clock(q->from_s, offset_s, INT64_MIN), on_clock(q->to_s, offset_s, INT64_MAX));
}

/* The first point of the range; what cannot be told without all that comes before is read as a whole. */
static int first_point(const char *path, const struct series_query *query, double offset_s, struct series **s,
	struct series_point *ret, struct buf *reterr)
{
	struct series_query whole = *query;
	int r = set_range(query, offset_s, *s);

	if (r >= 0)
		r = series_next(*s, ret);
	if (r != -EAGAIN)
		return r;
	*s = series_close(*s);
	whole.whole = true;
	r = series_open(path, &whole, s, reterr);
	if (r >= 0)
		r = set_range(&whole, offset_s, *s);
	return r < 0 ? r : series_next(*s, ret);
}

static int pour_one(const char *path, const struct series_query *query, struct series_page *page,
	struct series **s, bool first, const struct series_taker *taker, struct buf *out, struct buf *reterr)
{
	struct series_table table;
	struct series_point point;
	int r = first_point(path, query, page->offset_s, s, &point, reterr), status = 0;

	if (r >= 0) {
		table_of(&table, page, *s, out);
		recording_head(page, *s, first, &table.w);
		for (bool any = false; r > 0 && !status; any = true) {
			if (page->form == FORM_JSON)
				json_line(page, *s, &point, !any, out);
			else
				table_line(page, *s, &point, &table.w);
			status = hand_over(taker, out, PIECE);
			r = status ? 0 : series_next(*s, &point);
		}
		table_end(&table.w);
	}
	if (status)
		return status;
	buf_adds(out, page->form == FORM_JSON ? "\n]}" : "");
	if (r < 0)
		buf_addf(reterr, "cannot read on: %s", strerror(-r));
	return r;
}

/* All are opened before the first is read: a wrong question is answered before anything is printed. */
static int open_all(const struct run *run, const struct series_query *query, struct series **s,
	int64_t *ret_start, struct buf *reterr)
{
	*ret_start = INT64_MAX;
	for (size_t i = 0; i < run->nr; i++) {
		int r = series_open(run->path[i], query, &s[i], reterr);

		if (r < 0)
			return r;
		if (series_start(s[i]) > 0)
			*ret_start = MIN(*ret_start, series_start(s[i]));
	}
	return 0;
}

int series_pour(const struct run *run, const struct series_query *query, struct series_page *page,
	const struct series_taker *taker, struct buf *reterr)
{
	_cleanup_(freep) struct series **s = calloc(MAX(run->nr, 1), sizeof(*s));
	int64_t start;
	struct buf out;
	int r = s ? open_all(run, query, s, &start, reterr) : -ENOMEM;

	buf_init(&out, 4 * PIECE + ((size_t)1 << 20));
	page->several = run->nr > 1;
	if (r >= 0 && page->form == FORM_JSON)
		buf_adds(&out, "{\"recordings\":[\n");
	for (size_t i = 0; s && i < run->nr; i++) {
		if (!r) {
			int64_t own = series_start(s[i]);

			page->offset_s = own > 0 ? (double)(own - start) / 1e9 : 0;
			r = pour_one(run->path[i], query, page, &s[i], !i, taker, &out, reterr);
		}
		series_close(s[i]);
	}
	if (!r) {
		buf_adds(&out, page->form == FORM_JSON ? "]}\n" : "");
		r = hand_over(taker, &out, 0);
	}
	buf_release(&out);
	return r;
}
