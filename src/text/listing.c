/* The file stands first behind the numbers, since it is what one types next; host, labels and command follow
 * as far as the screen reaches. A column that says nothing (one host, no labels) is left out. */
#include "text/listing.h"

#include "base/str.h"
#include "text/json_parts.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FILE_LEAST 24
#define HOST_MOST 16
#define LABELS_MOST 32
#define COMMAND_LEAST 8
#define HEADING_WIDTH 6 /* of the longest heading */

struct shown {
	const struct listing *l;
	const struct listing_page *page;
	size_t nr; /* of those that can be read, as far as the limit allows */
};

static bool is_shown(const struct listed *l)
{
	return l->state != LISTED_UNREADABLE;
}

static enum letters letters(const struct listing_page *page)
{
	return page->utf8 ? LETTERS_UTF8 : LETTERS_ASCII;
}

/* ---- what the columns say ---- */

static void add_file(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	add_text(out, l->path, strlen(l->path), letters(page));
}

static void add_item(
	struct buf *out, const struct listed *l, const char *key, const struct listing_page *page)
{
	const struct meta_item *item = meta_find(&l->meta, key);

	if (item)
		add_text(out, item->value, item->len, letters(page));
}

static void add_host(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	add_item(out, l, "host", page);
}

/* "name, job=4711, phase=2" */
static void add_labels(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	const struct meta_item *value;
	const char *key;
	size_t at = 0;

	for (bool first = true; listed_label(l, &at, &key, &value); first = false) {
		buf_adds(out, first ? "" : ", ");
		if (strcmp(key, "name")) {
			add_text(out, key, strlen(key), letters(page));
			buf_addch(out, '=');
		}
		add_text(out, value->value, value->len, letters(page));
	}
}

static void add_message(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	add_item(out, l, "message", page);
}

static void add_what(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	const struct meta_item *command = meta_find(&l->meta, "command");

	if (command)
		add_command(out, command->value, command->len, letters(page));
}

static void add_date(struct buf *out, const struct listed *l, const struct listing_page *page)
{
	time_t at = (time_t)(l->start_ns / NSEC_PER_SEC), now = (time_t)(page->now_ns / NSEC_PER_SEC);
	struct tm then, today;
	char text[32] = "-";

	if (l->start_ns > 0 && localtime_r(&at, &then) && localtime_r(&now, &today))
		strftime(text, sizeof(text), then.tm_year == today.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d",
			&then);
	buf_adds(out, text);
}

static const char *outcome(char out[static UNITS_SIZE], const struct listed *l)
{
	const char *name = l->signal >= 0 ? sigabbrev_np(l->signal) : NULL;

	if (l->state == LISTED_WRITING)
		return "running";
	if (l->state != LISTED_COMPLETE)
		return listed_state_name[l->state];
	if (name)
		snprintf(out, UNITS_SIZE, "SIG%s", name);
	else if (l->signal >= 0)
		snprintf(out, UNITS_SIZE, "SIG%d", l->signal);
	else if (l->exit_code >= 0)
		snprintf(out, UNITS_SIZE, "%d", l->exit_code);
	else
		snprintf(out, UNITS_SIZE, "%s",
			strcmp(meta_text(&l->meta, "mode"), "attach") ? "left" : "attached");
	return out;
}

static const char *outcome_color(const struct listed *l)
{
	if (l->state == LISTED_WRITING)
		return "36";
	if (l->state != LISTED_COMPLETE)
		return "33";
	return l->signal >= 0 || l->exit_code > 0 ? "31" : l->exit_code == 0 ? "32" : "0";
}

static const char *number(char out[static UNITS_SIZE], double value, char *(*format)(char *, double))
{
	return isnan(value) ? "-" : format(out, value);
}

/* ---- for people ---- */

typedef void add_column(struct buf *out, const struct listed *l, const struct listing_page *page);

/* The widest of a column, at most `most`; 0: it says nothing. */
static size_t widest(const struct shown *s, add_column *add, size_t most, bool differ)
{
	size_t width = 0;
	bool same = differ;
	struct buf text, first;

	buf_init(&text, 1 << 20);
	buf_init(&first, 1 << 20);
	for (size_t i = 0, nr = 0; i < s->l->nr && nr < s->nr; i++) {
		if (!is_shown(&s->l->item[i]))
			continue;
		buf_reset(&text);
		add(&text, &s->l->item[i], s->page);
		nr++;
		if (!first.len)
			buf_add(&first, text.data, text.len);
		same = same &&
			(!text.len || (first.len == text.len && !memcmp(first.data, text.data, text.len)));
		width = MAX(width, utf8_columns((char *)text.data));
	}
	buf_release(&text);
	buf_release(&first);
	return same || !width ? 0 : MIN(MAX(width, HEADING_WIDTH), most);
}

/* In front of the cores stand 44 columns. */
#define BEFORE_CORES 44
#define CORES_WIDTH 7
#define PROCESSES_WIDTH 7

struct listing_layout {
	bool cores, processes, command;
	size_t file, host, labels, message; /* 0: not shown */
};

/* Narrow screens lose the processes first, then the cores; the file stays. */
static struct listing_layout layout_of(const struct shown *s)
{
	size_t width = s->page->width, left;
	struct listing_layout y = {.cores = !width || width >= 70,
		.processes = !width || width >= 100,
		.file = widest(s, add_file, 1 << 16, false),
		.host = widest(s, add_host, HOST_MOST, true),
		.labels = widest(s, add_labels, LABELS_MOST, false),
		.message = widest(s, add_message, LABELS_MOST, false),
		.command = true};
	size_t numbers = BEFORE_CORES + CORES_WIDTH * y.cores + PROCESSES_WIDTH * y.processes;

	if (!width)
		return y;
	left = width > numbers + 10 ? width - numbers : 10;
	y.file = MIN(y.file, MIN(left, MAX(FILE_LEAST, left / 2)));
	left -= y.file;
	if (y.labels + 2 > left)
		y.labels = 0;
	left -= y.labels ? y.labels + 2 : 0;
	if (y.message + 2 > left)
		y.message = 0;
	left -= y.message ? y.message + 2 : 0;
	if (y.host + 2 + COMMAND_LEAST > left)
		y.host = 0;
	left -= y.host ? y.host + 2 : 0;
	y.command = left >= COMMAND_LEAST + 2;
	return y;
}

static void add_cell(struct buf *out, const char *text, size_t width, bool last)
{
	size_t from = out->len;

	buf_adds(out, text);
	if (!last)
		pad(out, from, width + 2);
}

static void add_field(struct buf *out, const struct listed *l, const struct listing_page *page,
	add_column *add, size_t width)
{
	size_t from = out->len;

	add(out, l, page);
	clip(out, from, width, page->utf8);
	pad(out, from, width + 2);
}

/* A path says most at its end. */
static void add_path(struct buf *out, const struct listed *l, const struct listing_page *page, size_t width)
{
	const char *mark = page->utf8 ? "…" : "...";
	size_t columns, from = out->len;
	struct buf text;

	buf_init(&text, 1 << 20);
	add_file(&text, l, page);
	columns = utf8_columns((char *)text.data);
	if (columns <= width) {
		buf_add(out, text.data, text.len);
	} else {
		const char *p = (char *)text.data;
		size_t keep = width > utf8_columns(mark) ? width - utf8_columns(mark) : 0;

		for (; columns > keep; columns--)
			for (p++; (*p & 0xc0) == 0x80;)
				p++;
		buf_adds(out, mark);
		buf_adds(out, p);
	}
	buf_release(&text);
	pad(out, from, width + 2);
}

static void trim(struct buf *out)
{
	while (!out->err && out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = 0;
}

static void text_row(struct buf *out, const struct listed *l, const struct listing_page *page,
	const struct listing_layout *y)
{
	char text[UNITS_SIZE];
	size_t from = out->len, at;

	add_date(out, l, page);
	pad(out, from, 13);
	if (page->color)
		buf_addf(out, "\033[%sm", outcome_color(l));
	buf_addf(out, "%-10s", outcome(text, l));
	buf_adds(out, page->color ? "\033[m" : "");
	at = out->len;
	buf_addf(out, " %8s", number(text, l->wall_s, format_duration));
	buf_addf(out, " %9s", number(text, l->memory_bytes, format_bytes));
	if (y->cores)
		buf_addf(out, " %6s", number(text, l->cores, format_cores));
	if (y->processes)
		buf_addf(out, " %6s", number(text, l->processes, format_count));
	buf_adds(out, "  ");
	add_path(out, l, page, y->file);
	if (y->host)
		add_field(out, l, page, add_host, y->host);
	if (y->labels)
		add_field(out, l, page, add_labels, y->labels);
	if (y->message)
		add_field(out, l, page, add_message, y->message);
	if (y->command)
		add_what(out, l, page);
	trim(out);
	if (page->width) /* in front of `at` stand 23 columns, and colours */
		clip(out, at, page->width > 23 ? page->width - 23 : 1, page->utf8);
	buf_addch(out, '\n');
}

void listing_text(const struct listing *l, const struct listing_page *page, struct buf *out)
{
	struct shown s = {.l = l, .page = page};
	size_t readable = 0, from = out->len;
	struct listing_layout y;

	for (size_t i = 0; i < l->nr; i++)
		readable += is_shown(&l->item[i]);
	if (!readable)
		return;
	s.nr = page->limit ? MIN(page->limit, readable) : readable;
	y = layout_of(&s);
	buf_adds(out, page->color ? "\033[1m" : "");
	buf_addf(out, "DATE         EXIT       DURATION    MEMORY%s%s  ", y.cores ? "  CORES" : "",
		y.processes ? "  PROCS" : "");
	add_cell(out, "FILE", y.file, false);
	if (y.host)
		add_cell(out, "HOST", y.host, false);
	if (y.labels)
		add_cell(out, "LABELS", y.labels, false);
	if (y.message)
		add_cell(out, "MESSAGE", y.message, false);
	if (y.command)
		add_cell(out, "COMMAND", 0, true);
	trim(out);
	if (page->width)
		clip(out, from, page->width + (page->color ? 4 : 0), page->utf8);
	buf_adds(out, page->color ? "\033[m\n" : "\n");
	for (size_t i = 0, nr = 0; i < l->nr && nr < s.nr; i++)
		if (is_shown(&l->item[i])) {
			text_row(out, &l->item[i], page, &y);
			nr++;
		}
	if (s.nr < readable)
		buf_addf(out, "(%zu more)\n", readable - s.nr);
}

/* ---- for programs ---- */

static void add_raw(struct buf *out, const struct listed *l, const char *key)
{
	const struct meta_item *item = meta_find(&l->meta, key);

	if (item)
		add_csv(out, item->value, item->len);
	buf_addch(out, ',');
}

static void csv_row(struct buf *out, const struct listed *l)
{
	static const struct listing_page raw = {.utf8 = true};
	const double value[] = {l->exit_code >= 0 ? l->exit_code : NAN, l->signal >= 0 ? l->signal : NAN,
		l->wall_s, l->cpu_s, l->cores, l->memory_bytes};
	char start[UNITS_SIZE];
	struct buf text;

	buf_init(&text, 1 << 20);
	add_csv(out, l->path, strlen(l->path));
	buf_addf(out, ",%s,%s,", l->start_ns > 0 ? format_iso8601(start, l->start_ns) : "",
		listed_state_name[l->state]);
	for (size_t i = 0; i < ARRAY_SIZE(value); i++) {
		add_csv_number(out, value[i]);
		buf_addch(out, ',');
	}
	buf_addf(out, "%s,", isnan(l->memory_bytes) ? "" : l->view);
	add_csv_number(out, l->processes);
	buf_addf(out, ",%llu,", (unsigned long long)l->bytes);
	add_raw(out, l, "host");
	add_raw(out, l, "user");
	add_labels(&text, l, &raw);
	if (text.len)
		add_csv(out, (char *)text.data, text.len);
	buf_addch(out, ',');
	buf_reset(&text);
	add_what(&text, l, &raw);
	add_csv(out, (char *)text.data, text.len);
	buf_addch(out, ',');
	buf_reset(&text);
	add_message(&text, l, &raw);
	if (text.len)
		add_csv(out, (char *)text.data, text.len);
	buf_addch(out, '\n');
	buf_release(&text);
}

void listing_csv(const struct listing *l, const struct listing_page *page, struct buf *out)
{
	buf_adds(out,
		"path,start,state,exit_code,exit_signal,duration_s,cpu_s,cores_mean,memory_peak_bytes,memory_"
		"view,"
		"processes,size_bytes,host,user,labels,command,message\n");
	for (size_t i = 0, nr = 0; i < l->nr && (!page->limit || nr < page->limit); i++)
		if (is_shown(&l->item[i])) {
			csv_row(out, &l->item[i]);
			nr++;
		}
}

static void json_meta(struct json *j, const struct listed *l, const char *key, const char *meta)
{
	const struct meta_item *item = meta_find(&l->meta, meta);

	if (item)
		json_bytes(j, key, item->value, item->len);
	else
		json_null(j, key);
}

static void json_maybe(struct json *j, const char *key, int value)
{
	if (value >= 0)
		json_int(j, key, value);
	else
		json_null(j, key);
}

static void json_whole(struct json *j, const char *key, double value)
{
	if (fabs(value) < 9e15)
		json_int(j, key, round_i64(value));
	else
		json_num(j, key, value);
}

static void json_labels(struct json *j, const struct listed *l)
{
	json_object(j, "labels");
	for (uint32_t i = 0; i < l->meta.nr; i++)
		if (str_starts(l->meta.item[i].key, "tag."))
			json_bytes(j, l->meta.item[i].key + strlen("tag."), l->meta.item[i].value,
				l->meta.item[i].len);
	json_end_object(j);
}

static void json_item(struct json *j, const struct listed *l)
{
	const struct meta_item *command = meta_find(&l->meta, "command");
	char start[UNITS_SIZE];

	json_object(j, NULL);
	json_name(j, "path", l->path);
	json_str(j, "start", l->start_ns > 0 ? format_iso8601(start, l->start_ns) : NULL);
	json_str(j, "state", listed_state_name[l->state]);
	json_argv(j, command ? command->value : NULL, command ? command->len : 0);
	json_object(j, "exit");
	json_maybe(j, "code", l->exit_code);
	json_maybe(j, "signal", l->signal);
	json_end_object(j);
	json_num(j, "duration_s", l->wall_s);
	json_num(j, "cpu_s", l->cpu_s);
	json_num(j, "cores_mean", l->cores);
	json_whole(j, "memory_peak_bytes", l->memory_bytes);
	json_str(j, "memory_view", isnan(l->memory_bytes) ? NULL : l->view);
	json_whole(j, "processes", l->processes);
	json_uint(j, "size_bytes", l->bytes);
	json_meta(j, l, "host", "host");
	json_meta(j, l, "user", "user");
	json_meta(j, l, "name", "name");
	json_meta(j, l, "message", "message");
	json_meta(j, l, "job_id", "scheduler.job_id");
	json_meta(j, l, "mode", "mode");
	json_labels(j, l);
	json_end_object(j);
}

void listing_json(const struct listing *l, const struct listing_page *page, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_array(&j, "recordings");
	for (size_t i = 0, nr = 0; i < l->nr && (!page->limit || nr < page->limit); i++)
		if (is_shown(&l->item[i])) {
			json_item(&j, &l->item[i]);
			nr++;
		}
	json_end_array(&j);
	json_array(&j, "unreadable");
	for (size_t i = 0; i < l->nr; i++)
		if (!is_shown(&l->item[i])) {
			json_object(&j, NULL);
			json_name(&j, "path", l->item[i].path);
			json_str(&j, "why",
				l->item[i].error == -EBADMSG ? "not a recording"
							     : strerror(-l->item[i].error));
			json_end_object(&j);
		}
	json_end_array(&j);
	json_uint(&j, "left_out", l->left_out);
	json_end_object(&j);
	buf_addch(out, '\n');
}
