/* docs/page-data.md: all that the page shows, as one JSON object.
 *
 * It is to stand in a script element of HTML, so no `<` leaves this file as it is: it can only be inside of a
 * JSON text, where \u003c means the same. Names come from the user of the job. */
#include "document/page_internal.h"

#include "text/summary.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_MAX 2000
#define REPETITIONS_MOST 500 /* of phases: the page shows none, and thousands make it large */

void page_number(struct json *j, const char *key, double value)
{
	char text[40];

	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%.7g", value);
	json_num(j, key, strtod(text, NULL));
}

void page_text(struct json *j, const char *key, const char *text, size_t len)
{
	struct buf shown;

	buf_init(&shown, SIZE_MAX / 2);
	add_text(&shown, text, len, LETTERS_UTF8);
	json_text(j, key, shown.data, shown.len);
	buf_release(&shown);
}

/* ---- head ---- */

static void add_title(struct json *j, const struct analysis *s)
{
	const struct summary *sum = s->summary;
	const char *path = s->run->nr ? s->run->path[0] : "", *name = strrchr(path, '/');
	struct buf text;

	buf_init(&text, 1 << 20);
	if (sum->command_len)
		add_command(&text, sum->command, sum->command_len, LETTERS_UTF8);
	else if (s->run->nr > 1)
		add_count(&text, (double)s->run->nr, "recording", "recordings");
	else
		add_text(&text, name ? name + 1 : path, strlen(name ? name + 1 : path), LETTERS_UTF8);
	clip(&text, 0, 500, true);
	json_text(j, "title", text.data, text.len);
	buf_release(&text);
}

/* The part of the run that the curves are of; all else is of the whole. */
static void add_window(struct json *j, const struct analysis *s)
{
	if (!s->part) {
		json_null(j, "window");
		return;
	}
	json_object(j, "window");
	page_number(j, "from_s", s->from_s);
	page_number(j, "to_s", s->to_s);
	json_str(j, "phase", s->phase ? s->phase->name : NULL);
	json_end_object(j);
}

static void add_summary(struct json *j, const struct analysis *s)
{
	struct buf text;

	buf_init(&text, 64 << 20);
	summary_json_brief(s->summary, REPETITIONS_MOST, &text);
	while (text.len && strchr(" \n", text.data[text.len - 1]))
		text.len--;
	if (text.err)
		j->out->err = text.err;
	json_raw(j, "summary", text.data, text.len);
	buf_release(&text);
}

/* Marks of nothing but numbers are curves. */
void page_events(struct json *j, const char *key, const struct run_event *m, size_t nr)
{
	size_t told = 0;

	json_array(j, key);
	for (size_t i = 0; i < nr && told < EVENTS_MAX; i++) {
		if (m[i].numbers)
			continue;
		told++;
		json_object(j, NULL);
		page_number(j, "time_s", m[i].time_s);
		page_number(j, "end_s", m[i].end_s);
		json_uint(j, "node", m[i].node);
		json_str(j, "kind", m[i].kind);
		json_str(j, "label", m[i].label);
		json_end_object(j);
	}
	json_end_array(j);
}

/* ---- statistics ---- */

void page_stats_column(struct json *j, const struct stats_column *c)
{
	json_object(j, NULL);
	json_str(j, "name", c->name);
	json_str(j, "title", c->title);
	json_str(j, "help", c->help);
	json_str(j, "unit", unit_name(c->unit));
	json_bool(j, "per_second", c->per_second);
	json_bool(j, "whole", c->whole);
	json_bool(j, "moment", c->moment);
	json_end_object(j);
}

static void add_rows(struct json *j, const char *key, const struct stats *stats, enum stats_level level)
{
	json_array(j, key);
	for (size_t i = 0; i < stats->nr[level]; i++) {
		const struct stats_row *row = &stats->row[level][i];

		json_object(j, NULL);
		json_str(j, "name", row->name);
		json_array(j, "values");
		for (unsigned k = 0; k < NR_STATS; k++)
			page_number(j, NULL, row->value[k]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void add_stats(struct json *j, const struct stats *stats)
{
	json_object(j, "stats");
	json_array(j, "columns");
	for (unsigned i = 0; i < NR_STATS; i++)
		page_stats_column(j, &stats_column[i]);
	json_end_array(j);
	add_rows(j, "run", stats, STATS_RUN);
	add_rows(j, "nodes", stats, STATS_NODE);
	add_rows(j, "groups", stats, STATS_GROUP);
	add_rows(j, "users", stats, STATS_USER);
	json_end_object(j);
}

/* ---- what is not all ---- */

static void add_note(struct json *j, const struct analysis *s, const struct charts *f)
{
	double step = 0;
	char text[UNITS_SIZE];
	struct buf note;

	buf_init(&note, 1 << 16);
	for (size_t i = 0; i < s->nr_nodes; i++)
		if (s->curves->node[i].reduced && s->curves->node[i].step_s > step)
			step = s->curves->node[i].step_s;
	if (step > 0)
		buf_addf(&note,
			"Curves are reduced for display: each point stands for %s, as the mean with the "
			"range of "
			"what was there. ",
			format_duration(text, step));
	if (f->note)
		buf_addf(&note, "%c%s. ", f->note[0] - 'a' + 'A', f->note + 1);
	if (s->events->nr_events > EVENTS_MAX)
		buf_addf(&note, "Of %zu events the first %d are shown. ", s->events->nr_events, EVENTS_MAX);
	if (note.len)
		json_text(j, "note", note.data, note.len - 1);
	else
		json_null(j, "note");
	buf_release(&note);
}

/* ---- all of it ---- */

static void add_live(struct json *j, const struct page_live *live)
{
	if (!live)
		return;
	json_object(j, "live");
	json_int(j, "after", live->after_ns);
	json_str(j, "state", live->state);
	json_end_object(j);
}

static void write_all(
	const struct analysis *s, const struct charts *f, const struct page_live *live, struct buf *out)
{
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_int(&j, "format", 1);
	json_str(&j, "generator", "tacho " TACHO_VERSION);
	add_title(&j, s);
	add_live(&j, live);
	add_window(&j, s);
	add_summary(&j, s);
	findings_json(&j, s->findings);
	page_nodes(&j, s);
	page_events(&j, "phases", s->events->phase, s->events->nr_phases);
	page_events(&j, "events", s->events->event, s->events->nr_events);
	page_panels(&j, s, f);
	add_stats(&j, s->stats);
	page_processes(&j, s);
	add_note(&j, s, f);
	json_end_object(&j);
}

/* From the end, since it becomes longer. */
void page_hide_sharps(struct buf *out, size_t from)
{
	static const char hidden[] = "\\u003c";
	const size_t len = sizeof(hidden) - 1;
	size_t nr = 0, at;

	for (at = from; at < out->len; at++)
		nr += out->data[at] == '<';
	if (!nr || !buf_reserve(out, nr * (len - 1)))
		return;
	at = out->len;
	out->len += nr * (len - 1);
	out->data[out->len] = 0;
	for (size_t to = out->len; to > at;) {
		uint8_t c = out->data[--at];

		to -= c == '<' ? len : 1;
		if (c == '<')
			memcpy(out->data + to, hidden, len);
		else
			out->data[to] = c;
	}
}

/* It is most of a page: so it is made where it stands, and never copied. */
int page_data_live(
	const struct analysis *s, const struct charts *f, const struct page_live *live, struct buf *out)
{
	size_t from = out->len;

	write_all(s, f, live, out);
	page_hide_sharps(out, from);
	return out->err;
}

int page_data(const struct analysis *s, const struct charts *f, struct buf *out)
{
	return page_data_live(s, f, NULL, out);
}

int page_news(const struct analysis *s, const struct charts *f, struct buf *out)
{
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_num(&j, "from_s", s->from_s);
	json_num(&j, "to_s", s->to_s);
	page_nodes(&j, s);
	page_news_panels(&j, s, f);
	page_events(&j, "phases", s->events->phase, s->events->nr_phases);
	page_events(&j, "events", s->events->event, s->events->nr_events);
	json_end_object(&j);
	return out->err;
}
