/* Time series as lines of text: see series.h. */
#include "text/series.h"

#include "base/json.h"
#include "base/units.h"
#include "text/words.h"

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

static int value_width(const struct series_column *c)
{
	return (int)MAX(strlen(c->name), (size_t)VALUE_LEAST);
}

/* ---- headings ---- */

static void text_heading(const struct series_page *p, const struct series *s, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);

	buf_addf(out, "%*s", TIME_WIDTH, "time_s");
	if (p->per_instance)
		buf_addf(out, "  %-*s", INSTANCE_WIDTH, "instance");
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "  %*s", value_width(&c[i]), c[i].name);
	buf_addf(out, "\n%*s", TIME_WIDTH, "");
	if (p->per_instance)
		buf_addf(out, "  %-*s", INSTANCE_WIDTH, "");
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, "  %*s", value_width(&c[i]), unit_text(&c[i]));
	buf_addch(out, '\n');
}

static void csv_heading(const struct series_page *p, const struct series *s, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);

	buf_addf(out, "%stime_s%s", p->several ? "host," : "", p->per_instance ? ",pid,instance" : "");
	for (size_t i = 0; i < nr; i++)
		buf_addf(out, ",%s%s", c[i].name, c[i].per_second ? ".per_second" : "");
	buf_addch(out, '\n');
}

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

/* Before the first recording, and after the last. */
static void series_begin(const struct series_page *p, struct buf *out)
{
	if (p->form == SERIES_JSON)
		buf_adds(out, "{\"recordings\":[\n");
}

static void series_end(const struct series_page *p, struct buf *out)
{
	if (p->form == SERIES_JSON)
		buf_adds(out, "]}\n");
}

/* Around the points of one recording. */
static void series_recording(struct series_page *p, const struct series *s, bool first, struct buf *out)
{
	p->first_point = true;
	switch (p->form) {
	case SERIES_TEXT:
		if (p->several) {
			buf_adds(out, first ? "" : "\n");
			add_text(out, series_host(s), strlen(series_host(s)),
				p->utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
			buf_addch(out, '\n');
		}
		text_heading(p, s, out);
		break;
	case SERIES_CSV:
		if (first)
			csv_heading(p, s, out);
		break;
	case SERIES_JSON:
		json_heading(p, s, first, out);
		break;
	}
}

static void series_recording_end(const struct series_page *p, struct buf *out)
{
	if (p->form == SERIES_JSON)
		buf_adds(out, "\n]}");
}

/* ---- lines ---- */

static void add_value(struct buf *out, const struct series_column *c, double v)
{
	char text[40];

	if (isnan(v))
		snprintf(text, sizeof(text), "-");
	else if (v == floor(v) && fabs(v) < 1e15)
		snprintf(text, sizeof(text), "%.0f", v);
	else
		snprintf(text, sizeof(text), fabs(v) >= 1e6 ? "%.0f" : "%.6g", v);
	buf_addf(out, "  %*s", value_width(c), text);
}

static void text_line(const struct series_page *p, const struct series *s, const struct series_point *point,
	struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c), from;

	buf_addf(out, "%*.3f", TIME_WIDTH, p->offset_s + (double)point->time_ns / 1e9);
	if (p->per_instance) {
		buf_adds(out, "  ");
		from = out->len;
		if (point->pid)
			buf_addf(out, "%lld ", (long long)point->pid);
		if (point->instance)
			add_text(out, point->instance, point->instance_len,
				p->utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		clip(out, from, INSTANCE_WIDTH, p->utf8);
		pad(out, from, INSTANCE_WIDTH);
	}
	for (size_t i = 0; i < nr; i++)
		add_value(out, &c[i], point->value[i]);
	buf_addch(out, '\n');
}

static void csv_line(const struct series_page *p, const struct series *s, const struct series_point *point,
	struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);

	if (p->several) {
		add_csv(out, series_host(s), strlen(series_host(s)));
		buf_addch(out, ',');
	}
	add_csv_number(out, p->offset_s + (double)point->time_ns / 1e9);
	if (p->per_instance) {
		buf_addch(out, ',');
		if (point->pid)
			buf_addf(out, "%lld", (long long)point->pid);
		buf_addch(out, ',');
		add_csv(out, point->instance ? point->instance : "", point->instance_len);
	}
	for (size_t i = 0; i < nr; i++) {
		buf_addch(out, ',');
		add_csv_number(out, point->value[i]);
	}
	buf_addch(out, '\n');
}

static void json_line(
	struct series_page *p, const struct series *s, const struct series_point *point, struct buf *out)
{
	const struct series_column *c;
	size_t nr = series_columns(s, &c);
	struct json j;

	buf_adds(out, p->first_point ? "\n" : ",\n");
	p->first_point = false;
	json_init(&j, out, false);
	json_array(&j, NULL);
	json_num(&j, NULL, p->offset_s + (double)point->time_ns / 1e9);
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

static void series_line(
	struct series_page *p, const struct series *s, const struct series_point *point, struct buf *out)
{
	switch (p->form) {
	case SERIES_TEXT:
		text_line(p, s, point, out);
		break;
	case SERIES_CSV:
		csv_line(p, s, point, out);
		break;
	case SERIES_JSON:
		json_line(p, s, point, out);
		break;
	}
}

/* ---- all of it ---- */

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
	struct series_point point;
	int r = first_point(path, query, page->offset_s, s, &point, reterr), status = 0;

	if (r >= 0)
		series_recording(page, *s, first, out);
	for (; r > 0; r = series_next(*s, &point)) {
		series_line(page, *s, &point, out);
		status = hand_over(taker, out, PIECE);
		if (status)
			return status;
	}
	series_recording_end(page, out);
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
	if (r >= 0)
		series_begin(page, &out);
	for (size_t i = 0; s && i < run->nr; i++) {
		if (!r) {
			int64_t own = series_start(s[i]);

			page->offset_s = own > 0 ? (double)(own - start) / 1e9 : 0;
			r = pour_one(run->path[i], query, page, &s[i], !i, taker, &out, reterr);
		}
		series_close(s[i]);
	}
	if (!r) {
		series_end(page, &out);
		r = hand_over(taker, &out, 0);
	}
	buf_release(&out);
	return r;
}
