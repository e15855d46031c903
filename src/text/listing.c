/* The list of recordings. The file stands first behind the numbers, since it is what one types next; host,
 * labels and command follow as far as the screen reaches. A column that says nothing (one host, no labels) is
 * left out. */
#include "text/listing.h"

#include "base/str.h"
#include "text/json_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FILE_LEAST 24
#define HOST_MOST 16
#define LABELS_MOST 32
#define COMMAND_LEAST 8

enum {
	DATE,
	OUTCOME,
	DURATION,
	MEMORY,
	CORES,
	PROCESSES,
	NODES,
	FILE_NAME,
	HOST,
	LABELS,
	MESSAGE,
	COMMAND,
	NR_SHOWN
};

/* clang-format off */
static const struct text_column column[] = {
	[DATE]      = {.title = "DATE", .width = 11},
	[OUTCOME]   = {.title = "EXIT", .gap = 2, .width = 10},
	[DURATION]  = {.title = "DURATION", .gap = 1, .width = 8, .numbers = true, .look = LOOK_SECONDS},
	[MEMORY]    = {.title = "MEMORY",   .gap = 1, .width = 9, .numbers = true, .look = LOOK_BYTES},
	[CORES]     = {.title = "CORES",    .gap = 1, .width = 6, .numbers = true, .look = LOOK_CORES},
	[PROCESSES] = {.title = "PROCS",    .gap = 1, .width = 6, .numbers = true, .look = LOOK_COUNT},
	[NODES]     = {.title = "NODES",    .gap = 1, .width = 6, .numbers = true, .look = LOOK_COUNT},
	[FILE_NAME] = {.title = "FILE",    .gap = 2, .keeps_end = true},
	[HOST]      = {.title = "HOST",    .gap = 2, .most = HOST_MOST},
	[LABELS]    = {.title = "LABELS",  .gap = 2, .most = LABELS_MOST},
	[MESSAGE]   = {.title = "MESSAGE", .gap = 2, .most = LABELS_MOST},
	[COMMAND]   = {.title = "COMMAND", .gap = 2},
	/* For programs. */
	{.name = "path"},
	{.name = "start"},
	{.name = "state"},
	{.name = "argv", .only = OF_JSON},
	{.group = "exit", .name = "code", .whole = true},
	{.group = "exit", .name = "signal", .whole = true},
	{.name = "duration_s"},
	{.name = "cpu_s"},
	{.name = "cores_mean"},
	{.name = "memory_peak_bytes", .whole = true},
	{.name = "memory_view"},
	{.name = "processes", .whole = true},
	{.name = "size_bytes", .whole = true},
	{.name = "nodes", .whole = true, .only = OF_JSON},
	{.name = "nodes_expected", .whole = true, .only = OF_JSON},
	{.name = "host"},
	{.name = "user"},
	{.name = "name", .only = OF_JSON},
	{.name = "message", .only = OF_JSON},
	{.name = "job_id", .only = OF_JSON},
	{.name = "mode", .only = OF_JSON},
	{.name = "labels", .only = OF_JSON},
	{.name = "labels", .only = OF_CSV},
	{.name = "command", .only = OF_CSV},
	{.name = "message", .only = OF_CSV},
};
/* clang-format on */

struct listing_rows {
	const struct listed **item; /* those that can be read */
	size_t nr;
	const struct listing_page *page;
};

/* ---- cells ---- */

static void put_meta(struct table_writer *w, const struct listed *l, const char *key)
{
	const struct meta_item *item = meta_find(&l->meta, key);

	cell_text(w, item ? item->value : NULL, item ? item->len : 0);
}

/* For people: nothing is no dash. */
static void put_shown(struct table_writer *w, const struct listed *l, const char *key)
{
	const struct meta_item *item = meta_find(&l->meta, key);

	cell_text(w, item ? item->value : "", item ? item->len : 0);
}

/* "name, job=4711, phase=2" */
static void put_labels(struct table_writer *w, const struct listed *l)
{
	struct buf *out = cell_open(w);
	const struct meta_item *value;
	const char *key;
	size_t at = 0;

	if (!out)
		return;
	for (bool first = true; listed_label(l, &at, &key, &value); first = false) {
		buf_adds(out, first ? "" : ", ");
		if (strcmp(key, "name")) {
			add_text(out, key, strlen(key), w->letters);
			buf_addch(out, '=');
		}
		add_text(out, value->value, value->len, w->letters);
	}
	cell_close(w, out->len || w->style.form == FORM_TEXT);
}

static void put_command(struct table_writer *w, const struct listed *l)
{
	const struct meta_item *command = meta_find(&l->meta, "command");
	struct buf *out = cell_open(w);

	if (!out)
		return;
	if (command)
		add_command(out, command->value, command->len, w->letters);
	cell_close(w, true);
}

static void put_date(struct table_writer *w, const struct listed *l, int64_t now_ns)
{
	time_t at = (time_t)(l->start_ns / NSEC_PER_SEC), now = (time_t)(now_ns / NSEC_PER_SEC);
	struct tm then, today;
	char text[32] = "-";

	if (l->start_ns > 0 && localtime_r(&at, &then) && localtime_r(&now, &today))
		strftime(text, sizeof(text), then.tm_year == today.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d",
			&then);
	cell_words(w, text);
}

static const char *outcome(char out[static UNITS_SIZE], const struct listed *l)
{
	if (l->state == LISTED_WRITING)
		return "running";
	if (l->state != LISTED_COMPLETE)
		return listed_state_name[l->state];
	if (l->signal >= 0)
		return format_signal(out, l->signal);
	if (l->exit_code >= 0)
		return format_look(out, LOOK_CODE, l->exit_code, 0);
	return strcmp(meta_text(&l->meta, "mode"), "attach") ? "left" : "attached";
}

static const char *outcome_color(const struct listed *l)
{
	if (l->state == LISTED_WRITING)
		return "36";
	if (l->state != LISTED_COMPLETE)
		return "33";
	return l->signal >= 0 || l->exit_code > 0 ? "31" : l->exit_code == 0 ? "32" : "0";
}

static void json_labels(struct table_writer *w, const struct listed *l)
{
	const char *key;
	struct json *j = cell_json(w, &key);

	if (!j)
		return;
	json_object(j, key);
	for (uint32_t i = 0; i < l->meta.nr; i++)
		if (str_starts(l->meta.item[i].key, "tag."))
			json_bytes(j, l->meta.item[i].key + strlen("tag."), l->meta.item[i].value,
				l->meta.item[i].len);
	json_end_object(j);
}

static void json_argv(struct table_writer *w, const struct listed *l)
{
	const struct meta_item *command = meta_find(&l->meta, "command");
	const char *key;
	struct json *j = cell_json(w, &key);

	if (j)
		json_words(j, key, command ? command->value : NULL, command ? command->len : 0);
}

static void put_row(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct listing_rows *rows = t->of;
	const struct listed *l = rows->item[i];
	char text[UNITS_SIZE];

	put_date(w, l, rows->page->now_ns);
	cell_color(w, outcome_color(l));
	cell_words(w, outcome(text, l));
	cell_number(w, l->wall_s);
	cell_number(w, l->memory_bytes);
	cell_number(w, l->cores);
	cell_number(w, l->processes);
	cell_number(w, l->nodes || l->run ? (double)l->nodes : NAN);
	cell_text(w, l->path, strlen(l->path));
	put_shown(w, l, "host");
	put_labels(w, l);
	put_shown(w, l, "message");
	put_command(w, l);

	cell_text(w, l->path, strlen(l->path));
	cell_words(w, l->start_ns > 0 ? format_iso8601(text, l->start_ns) : NULL);
	cell_words(w, listed_state_name[l->state]);
	json_argv(w, l);
	cell_number(w, l->exit_code >= 0 ? l->exit_code : NAN);
	cell_number(w, l->signal >= 0 ? l->signal : NAN);
	cell_number(w, l->wall_s);
	cell_number(w, l->cpu_s);
	cell_number(w, l->cores);
	cell_number(w, l->memory_bytes);
	cell_words(w, isnan(l->memory_bytes) ? NULL : l->view);
	cell_number(w, l->processes);
	cell_number(w, (double)l->bytes);
	cell_number(w, l->nodes || l->run ? (double)l->nodes : NAN);
	cell_number(w, l->nodes_expected ? (double)l->nodes_expected : NAN);
	put_meta(w, l, "host");
	put_meta(w, l, "user");
	put_meta(w, l, "name");
	put_meta(w, l, "message");
	put_meta(w, l, "scheduler.job_id");
	put_meta(w, l, "mode");
	json_labels(w, l);
	put_labels(w, l);
	put_command(w, l);
	put_meta(w, l, "message");
}

/* ---- layout ---- */

static bool has_several_hosts(const struct listing_rows *rows, size_t nr)
{
	const char *first = NULL;

	for (size_t i = 0; i < nr; i++) {
		const char *host = meta_text(&rows->item[i]->meta, "host");

		if (*host && first && strcmp(first, host))
			return true;
		first = *host ? host : first;
	}
	return false;
}

static bool has_runs(const struct listing_rows *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (rows->item[i]->nodes || rows->item[i]->run)
			return true;
	return false;
}

/* Takes the room of a column with its gap; one that finds none is left out. */
static void take_room(struct table_writer *w, unsigned i, size_t beside, size_t *left)
{
	size_t need = w->wide[i] ? w->wide[i] + w->t->column[i].gap : 0;

	if (need + beside > *left)
		need = w->wide[i] = 0;
	*left -= need;
}

/* Narrow screens lose the processes first, then the cores; the file stays. */
static void lay_out(struct table_writer *w, struct text_column *own)
{
	size_t width = w->style.width, numbers = own[FILE_NAME].gap, left;

	if (!width)
		return;
	if (width < 70)
		own[CORES].title = NULL;
	if (width < 100)
		own[PROCESSES].title = NULL;
	for (unsigned i = DATE; i < FILE_NAME; i++)
		numbers += own[i].title ? own[i].gap + own[i].width : 0;
	left = width > numbers + 10 ? width - numbers : 10;
	w->wide[FILE_NAME] = MIN(w->wide[FILE_NAME], MIN(left, MAX((size_t)FILE_LEAST, left / 2)));
	left -= w->wide[FILE_NAME];
	take_room(w, LABELS, 0, &left);
	take_room(w, MESSAGE, 0, &left);
	take_room(w, HOST, COMMAND_LEAST, &left);
	if (left < COMMAND_LEAST + own[COMMAND].gap)
		w->wide[COMMAND] = 0;
}

static void print_text(const struct text_table *t, struct text_column *own, struct buf *out)
{
	const struct listing_rows *rows = t->of;
	struct table_writer w;

	if (!rows->nr)
		return;
	table_begin(&w, t, &rows->page->style, out);
	table_measure(&w);
	if (!has_several_hosts(rows, t->nr_rows))
		own[HOST].title = NULL;
	if (!has_runs(rows, t->nr_rows))
		own[NODES].title = NULL;
	lay_out(&w, own);
	table_heading(&w);
	table_rows(&w);
	table_end(&w);
}

/* ---- all of it ---- */

static void write_json(const struct listing *l, const struct text_table *t, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_array(&j, "recordings");
	table_json(t, &j, NULL);
	json_end_array(&j);
	json_array(&j, "unreadable");
	for (size_t i = 0; i < l->nr; i++)
		if (l->item[i].state == LISTED_UNREADABLE) {
			json_object(&j, NULL);
			json_name(&j, "path", l->item[i].path);
			json_str(&j, "why", listed_trouble(&l->item[i]));
			json_end_object(&j);
		}
	json_end_array(&j);
	if (l->nr_notes) {
		json_array(&j, "notes");
		for (size_t i = 0; i < l->nr_notes; i++)
			json_name(&j, NULL, l->note[i]);
		json_end_array(&j);
	}
	json_uint(&j, "left_out", l->left_out);
	json_end_object(&j);
	buf_addch(out, '\n');
}

const char *listed_trouble(const struct listed *l)
{
	return l->error == -EBADMSG ? "not a recording" : strerror(-l->error);
}

void listing_write(const struct listing *l, const struct listing_page *page, struct buf *out)
{
	_cleanup_(freep) const struct listed **item = calloc(MAX(l->nr, (size_t)1), sizeof(*item));
	struct listing_rows rows = {.item = item, .page = page};
	struct text_column own[ARRAY_SIZE(column)];
	struct text_table t = {.column = own, .nr_columns = ARRAY_SIZE(own), .row = put_row, .of = &rows};

	if (!item) {
		out->err = -ENOMEM;
		return;
	}
	memcpy(own, column, sizeof(own));
	for (size_t i = 0; i < l->nr; i++)
		if (l->item[i].state != LISTED_UNREADABLE)
			item[rows.nr++] = &l->item[i];
	t.nr_rows = page->limit ? MIN(page->limit, rows.nr) : rows.nr;
	if (page->style.form == FORM_JSON)
		write_json(l, &t, out);
	else if (page->style.form == FORM_CSV)
		table_write(&t, &page->style, out);
	else
		print_text(&t, own, out);
	if (page->style.form == FORM_TEXT && t.nr_rows < rows.nr)
		buf_addf(out, "(%zu more)\n", rows.nr - t.nr_rows);
	for (size_t i = 0; page->style.form == FORM_TEXT && i < l->nr_notes; i++) {
		add_text(
			out, l->note[i], strlen(l->note[i]), page->style.utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		buf_addch(out, '\n');
	}
}
