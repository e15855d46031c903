/* Time series as lines of text: see series.h. */
#include "text/series.h"

#include "base/expr.h"
#include "query/align.h"
#include "query/walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

#define KEPT 8 /* recordings that stay open between the question and the answer: a run may have thousands */

/* All are opened before the first is read: a wrong question is answered before anything is printed. */
static int open_all(
	const struct run *run, const struct series_query *query, struct series **s, struct buf *reterr)
{
	for (size_t i = 0; i < run->nr; i++) {
		int r = series_open(run->path[i], query, &s[i], reterr);

		if (r < 0)
			return r;
		if (i >= KEPT)
			s[i] = series_close(s[i]);
	}
	return 0;
}

int series_pour(const struct run *run, const struct series_query *query, struct series_page *page,
	const struct series_taker *taker, struct buf *reterr)
{
	_cleanup_(freep) struct series **s = calloc(MAX(run->nr, 1), sizeof(*s));
	struct run_node *node = NULL;
	struct buf out;
	int r = s ? open_all(run, query, s, reterr) : -ENOMEM;

	if (r >= 0)
		r = run_align(run, &node, reterr);
	buf_init(&out, 4 * PIECE + ((size_t)1 << 20));
	page->several = run->nr > 1;
	if (r >= 0 && page->form == FORM_JSON)
		buf_adds(&out, "{\"recordings\":[\n");
	for (size_t i = 0; s && i < run->nr; i++) {
		if (!r && !s[i])
			r = series_open(run->path[i], query, &s[i], reterr);
		if (!r) {
			page->offset_s = run_node_offset_s(&node[i]);
			r = pour_one(run->path[i], query, page, &s[i], !i, taker, &out, reterr);
		}
		series_close(s[i]);
	}
	if (!r) {
		buf_adds(&out, page->form == FORM_JSON ? "]}\n" : "");
		r = hand_over(taker, &out, 0);
	}
	run_align_free(node, run->nr);
	buf_release(&out);
	return r;
}

/* ---- several questions at once ---- */

/* The answer to one of them. */
struct series_answer {
	const struct series_wanted *wanted;
	struct series_page page;
	struct series *series;
	struct series_table table;
	struct buf out;
};

static int answer_open(struct series_answer *a, struct walk *walk, bool first, struct buf *reterr)
{
	int r = series_open_on(walk, &a->wanted->query, &a->series, reterr);

	if (r < 0)
		return r;
	table_of(&a->table, &a->page, a->series, &a->out);
	recording_head(&a->page, a->series, first, &a->table.w);
	return 0;
}

static int answer_line(struct series_answer *a, const struct series_point *point)
{
	table_line(&a->page, a->series, point, &a->table.w);
	return hand_over(&a->wanted->taker, &a->out, PIECE);
}

static int answer_tick(struct series_answer *a)
{
	struct series_point point;
	int r = series_tick(a->series, &point);

	while (r == 1) {
		r = answer_line(a, &point);
		r = r ? r : series_more(a->series, &point);
	}
	return r;
}

static int answer_end(struct series_answer *a)
{
	struct series_point point;
	int r = series_end(a->series, &point) ? answer_line(a, &point) : 0;

	table_end(&a->table.w);
	return r;
}

/* All of them, of one recording. */
struct series_answering {
	struct series_answer *answer;
	size_t nr;
	const struct progress *progress;
	double done, share; /* of the whole: before this recording, and it */
};

#define TICKS_TO_TELL 512

static void tell(const struct series_answering *all, const struct walk *walk, const char *path)
{
	struct stat st;
	double at = stat(path, &st) == 0 && st.st_size > 0
		? (double)store_reader_at(walk->reader) / (double)st.st_size
		: 0;

	progress_tell(all->progress, "writing series", all->done + all->share * MIN(at, 1));
}

static int answer_ticks(const struct series_answering *all, struct walk *walk, const char *path)
{
	unsigned ticks = 0;
	int r = 0;

	while (!r && (r = walk_next(walk)) > 0) {
		r = 0;
		for (size_t i = 0; i < all->nr && !r; i++)
			r = answer_tick(&all->answer[i]);
		if (ticks++ % TICKS_TO_TELL == 0)
			tell(all, walk, path);
	}
	return r;
}

static int answer_all(const char *path, const struct series_answering *all, bool first, struct buf *reterr)
{
	struct walk *walk = NULL;
	int r = walk_open(path, NULL, &walk);

	for (size_t i = 0; i < all->nr && !r; i++)
		r = answer_open(&all->answer[i], walk, first, reterr);
	if (!r)
		r = answer_ticks(all, walk, path);
	for (size_t i = 0; i < all->nr; i++) {
		if (!r && all->answer[i].series)
			r = answer_end(&all->answer[i]);
		all->answer[i].series = series_close(all->answer[i].series);
	}
	walk_close(walk);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	return r;
}

int series_pour_together(const struct run *run, const struct series_wanted *wanted, size_t nr,
	const struct progress *progress, struct buf *reterr)
{
	_cleanup_(freep) struct series_answer *a = calloc(MAX(nr, 1), sizeof(*a));
	struct run_node *node = NULL;
	int r = a ? run_align(run, &node, reterr) : -ENOMEM;

	for (size_t i = 0; a && i < nr; i++) {
		a[i].wanted = &wanted[i];
		a[i].page = wanted[i].page;
		a[i].page.several = run->nr > 1;
		buf_init(&a[i].out, 4 * PIECE + ((size_t)1 << 20));
	}
	for (size_t k = 0; k < run->nr && !r; k++) {
		const struct series_answering all = {.answer = a,
			.nr = nr,
			.progress = progress,
			.done = (double)k / (double)run->nr,
			.share = 1 / (double)run->nr};

		for (size_t i = 0; i < nr; i++)
			a[i].page.offset_s = run_node_offset_s(&node[k]);
		r = answer_all(run->path[k], &all, !k, reterr);
	}
	for (size_t i = 0; a && i < nr; i++) {
		if (!r)
			r = hand_over(&wanted[i].taker, &a[i].out, 0);
		buf_release(&a[i].out);
	}
	run_align_free(node, run->nr);
	return r;
}
