/* One row a column: its key in CSV and JSON, its heading for people, its kind. A column without a heading is
 * for programs only. */
#include "text/processes.h"

#include "base/json.h"
#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define GROUPS_WIDTH 16

enum look { LOOK_PLAIN, LOOK_NUMBER, LOOK_MOMENT, LOOK_SECONDS, LOOK_BYTES };
/* Of levels, by their kind. */
#define LOOK_VIEW LOOK_BYTES
#define LOOK_MEMORY LOOK_BYTES
#define LOOK_COUNT LOOK_NUMBER

/* clang-format off */
static const struct {
	const char *key, *heading;
	int width;
	enum look look;
} face[NR_PROCESS_VALUES] = {
	[PROCESS_PID]         = {"pid",              "PID",   8, LOOK_PLAIN},
	[PROCESS_PPID]        = {"ppid",             "PPID",  8, LOOK_PLAIN},
	[PROCESS_UID]         = {"uid",              NULL,    0, LOOK_PLAIN},
	[PROCESS_START]       = {"start_s",          "START", 8, LOOK_MOMENT},
	[PROCESS_END]         = {"end_s",            NULL,    0, LOOK_MOMENT},
	[PROCESS_WALL]        = {"wall_s",           "WALL",  8, LOOK_SECONDS},
	[PROCESS_HWM]         = {"hwm_bytes",        NULL,    0, LOOK_BYTES},
#define FACE_PROCESS(heading, width, help) heading, width
#define ROW(id, name, unit, children, metric, ended, figure, stats, process) \
	IF_##process([PROCESS_##id] = {name QUANTITY_SUFFIX_##unit, FACE_##process, LOOK_##unit},)
	AMOUNTS(ROW)
#undef ROW
#define ROW(id, name, kind, metric, figure, stats, process) \
	IF_##process([PROCESS_##id] = {"peak_" name QUANTITY_SUFFIX_##kind, FACE_##process, LOOK_##kind},)
	LEVELS(ROW)
#undef ROW
};
/* clang-format on */

static size_t shown(const struct process_table *t, size_t limit)
{
	return limit ? MIN(limit, t->nr) : t->nr;
}

static bool has_code(const struct process_row *row)
{
	return row->status >= 0 && WIFEXITED(row->status);
}

static bool has_signal(const struct process_row *row)
{
	return row->status >= 0 && WIFSIGNALED(row->status);
}

/* ---- for people ---- */

static const char *look_text(char out[static UNITS_SIZE], double v, enum look look)
{
	if (isnan(v))
		return "-";
	switch (look) {
	case LOOK_BYTES:
		return format_bytes(out, v);
	case LOOK_MOMENT:
		return format_moment(out, v, 0);
	case LOOK_SECONDS:
		return format_duration(out, v);
	case LOOK_NUMBER:
		return format_count(out, v);
	default:
		snprintf(out, UNITS_SIZE, "%.0f", v);
		return out;
	}
}

static const char *end_text(char out[static UNITS_SIZE], const struct process_row *row)
{
	const char *name = has_signal(row) ? sigabbrev_np(WTERMSIG(row->status)) : NULL;

	if (has_code(row))
		snprintf(out, UNITS_SIZE, "%d", WEXITSTATUS(row->status));
	else if (name)
		snprintf(out, UNITS_SIZE, "SIG%s", name);
	else if (has_signal(row))
		snprintf(out, UNITS_SIZE, "SIG%d", WTERMSIG(row->status));
	else
		snprintf(out, UNITS_SIZE, "%s", row->ended ? "?" : *row->how ? row->how : "runs");
	return out;
}

static void add_identity(struct buf *out, const struct process_row *row, bool utf8)
{
	enum letters letters = utf8 ? LETTERS_UTF8 : LETTERS_ASCII;

	if (row->command_len) {
		add_command(out, row->command, row->command_len, letters);
		buf_adds(out, row->command_cut ? " ..." : "");
	} else if (!row->name_len) {
		buf_adds(out, "(not known");
		if (*row->started_by) {
			buf_adds(out, "; started by ");
			add_text(out, row->started_by, strlen(row->started_by), letters);
		}
		buf_addch(out, ')');
	} else { /* a kernel thread, a zombie, or gone too soon: as ps writes it */
		buf_addch(out, '[');
		add_text(out, row->name, row->name_len, letters);
		buf_addch(out, ']');
	}
}

/* "tool, user:ann" */
static void add_groups(struct buf *out, const struct process_row *row, enum letters letters)
{
	for (size_t from = 0; from < row->groups_len;) {
		size_t n = strnlen(row->groups + from, row->groups_len - from);

		buf_adds(out, from ? "," : "");
		add_text(out, row->groups + from, n, letters);
		from += n + 1;
	}
}

static const char *mark_of(const struct process_row *row, enum process_value i, bool utf8)
{
	/* What samples saw of one whose mark may be another's. */
	bool seen = row->hwm_most && row->value[PROCESS_RSS] < row->value[PROCESS_HWM];

	if ((i == PROCESS_CPU && row->cpu_least) || (i == PROCESS_RSS && (row->hwm_least || seen)))
		return utf8 ? "≥" : ">";
	if (i == PROCESS_RSS && row->hwm_most)
		return utf8 ? "≤" : "<";
	return "";
}

static void text_row(const struct process_table *t, const struct process_row *row, unsigned width, bool utf8,
	struct buf *out)
{
	char text[UNITS_SIZE];
	size_t from = out->len;

	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++) {
		char cell[UNITS_SIZE + 8];
		const char *mark = isnan(row->value[i]) ? "" : mark_of(row, i, utf8);

		if (!face[i].heading)
			continue;
		snprintf(cell, sizeof(cell), "%s%s", mark, look_text(text, row->value[i], face[i].look));
		/* The width is in bytes. */
		buf_addf(out, "%*s ", face[i].width + (*mark && utf8 ? (int)strlen(mark) - 1 : 0), cell);
	}
	buf_addf(out, "%8s  ", end_text(text, row));
	if (t->nr_hosts > 1) {
		add_text(out, t->host[row->node], strlen(t->host[row->node]),
			utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		buf_adds(out, "  ");
	}
	if (t->has_groups) {
		size_t cell = out->len;

		add_groups(out, row, utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		if (out->len == cell)
			buf_addch(out, '-');
		clip(out, cell, GROUPS_WIDTH, utf8);
		pad(out, cell, GROUPS_WIDTH + 2);
	}
	add_identity(out, row, utf8);
	if (width)
		clip(out, from, width, utf8);
	buf_addch(out, '\n');
}

void processes_text(const struct process_table *t, size_t limit, unsigned width, bool utf8, struct buf *out)
{
	size_t from = out->len;
	char text[UNITS_SIZE];

	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++)
		if (face[i].heading)
			buf_addf(out, "%*s ", face[i].width, face[i].heading);
	buf_addf(out, "%8s  %s", "EXIT", t->nr_hosts > 1 ? "HOST  " : "");
	if (t->has_groups)
		buf_addf(out, "%-*s", GROUPS_WIDTH + 2, "GROUPS");
	buf_adds(out, "COMMAND");
	if (width)
		clip(out, from, width, utf8);
	buf_addch(out, '\n');
	for (size_t i = 0; i < shown(t, limit); i++)
		text_row(t, &t->row[i], width, utf8, out);
	if (shown(t, limit) < t->nr)
		buf_addf(out, "(%zu more)\n", t->nr - shown(t, limit));
	if (t->cpu_in_no_row >= 0.001)
		buf_addf(out, "(%s of CPU time is in no row: the last moments of short processes)\n",
			format_duration(text, t->cpu_in_no_row));
}

/* ---- for programs ---- */

void processes_csv(const struct process_table *t, size_t limit, struct buf *out)
{
	buf_adds(out, "host");
	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++)
		buf_addf(out, ",%s", face[i].key);
	buf_adds(out,
		",exit_code,exit_signal,how,sampled,late,name,exe,command,groups,"
		"cpu_lower_bound,hwm_lower_bound,hwm_upper_bound,peak_rss_between_samples\n");
	for (size_t i = 0; i < shown(t, limit); i++) {
		const struct process_row *row = &t->row[i];
		struct buf command;

		add_csv(out, t->host[row->node], strlen(t->host[row->node]));
		for (unsigned j = 0; j < NR_PROCESS_VALUES; j++) {
			buf_addch(out, ',');
			add_csv_number(out, row->value[j]);
		}
		buf_addch(out, ',');
		add_csv_number(out, has_code(row) ? WEXITSTATUS(row->status) : NAN);
		buf_addch(out, ',');
		add_csv_number(out, has_signal(row) ? WTERMSIG(row->status) : NAN);
		buf_addf(out, ",%s,%d,%d,", row->how, row->sampled, row->late);
		add_csv(out, row->name, row->name_len);
		buf_addch(out, ',');
		add_csv(out, row->exe, row->exe_len);
		buf_addch(out, ',');
		buf_init(&command, MAX(row->command_len, row->groups_len) * 8 + 16);
		add_command(&command, row->command, row->command_len, LETTERS_RAW);
		add_csv(out, (char *)command.data, command.len);
		buf_addch(out, ',');
		buf_reset(&command);
		add_groups(&command, row, LETTERS_RAW);
		add_csv(out, (char *)command.data, command.len);
		buf_release(&command);
		buf_addf(out, ",%d,%d,%d,%d\n", row->cpu_least, row->hwm_least, row->hwm_most,
			row->rss_between);
	}
}

static void json_exit(struct json *j, const struct process_row *row)
{
	json_object(j, "exit");
	if (has_code(row))
		json_int(j, "code", WEXITSTATUS(row->status));
	else
		json_null(j, "code");
	if (has_signal(row))
		json_int(j, "signal", WTERMSIG(row->status));
	else
		json_null(j, "signal");
	json_end_object(j);
}

/* Words parted by NULs. */
static void json_words(struct json *j, const char *key, const char *words, size_t len)
{
	json_array(j, key);
	for (size_t from = 0; len && from <= len;) {
		size_t n = strnlen(words + from, len - from);

		json_bytes(j, NULL, words + from, n);
		from += n + 1;
	}
	json_end_array(j);
}

static void json_row(struct json *j, const struct process_table *t, const struct process_row *row)
{
	json_object(j, NULL);
	json_name(j, "host", t->host[row->node]);
	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++) {
		if (isnan(row->value[i]))
			json_null(j, face[i].key);
		else if (face[i].look == LOOK_MOMENT || face[i].look == LOOK_SECONDS ||
			fabs(row->value[i]) > 9e15)
			json_num(j, face[i].key, row->value[i]);
		else
			json_int(j, face[i].key, round_i64(row->value[i]));
	}
	json_exit(j, row);
	json_str(j, "how", *row->how ? row->how : NULL);
	json_bool(j, "ended", row->ended);
	json_bool(j, "sampled", row->sampled);
	json_bool(j, "late", row->late);
	json_bool(j, "cpu_lower_bound", row->cpu_least);
	json_bool(j, "hwm_lower_bound", row->hwm_least);
	json_bool(j, "hwm_upper_bound", row->hwm_most);
	json_bool(j, "peak_rss_between_samples", row->rss_between);
	json_bytes(j, "name", row->name, row->name_len);
	json_bytes(j, "exe", row->exe, row->exe_len);
	json_words(j, "argv", row->command, row->command_len);
	json_words(j, "groups", row->groups, row->groups_len);
	json_bool(j, "argv_cut", row->command_cut);
	json_end_object(j);
}

void processes_json(const struct process_table *t, size_t limit, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_uint(&j, "total", t->nr);
	json_num(&j, "cpu_in_no_row_s", t->cpu_in_no_row);
	json_array(&j, "processes");
	for (size_t i = 0; i < shown(t, limit); i++)
		json_row(&j, t, &t->row[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}
