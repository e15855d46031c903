/* The table of processes: `tacho show -p`. */
#include "text/processes.h"

#include "text/json_parts.h"
#include "text/table.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

#define GROUPS_WIDTH 16

/* Of quantities, by unit and kind. */
#define LOOK_NUMBER LOOK_COUNT
#define LOOK_VIEW LOOK_BYTES
#define LOOK_MEMORY LOOK_BYTES

/* clang-format off */
#define HEADED(title_, width_) .title = title_, .numbers = true, .gap = 1, .width = width_
static const struct text_column column[] = {
	{.name = "host"},
	[1 + PROCESS_PID]   = {.name = "pid",       HEADED("PID", 7),   .look = LOOK_CODE, .whole = true},
	[1 + PROCESS_PPID]  = {.name = "ppid",      HEADED("PPID", 8),  .look = LOOK_CODE, .whole = true},
	[1 + PROCESS_UID]   = {.name = "uid",       .whole = true},
	[1 + PROCESS_START] = {.name = "start_s",   HEADED("START", 8), .look = LOOK_MOMENT},
	[1 + PROCESS_END]   = {.name = "end_s"},
	[1 + PROCESS_WALL]  = {.name = "wall_s",    HEADED("WALL", 8),  .look = LOOK_SECONDS},
	[1 + PROCESS_HWM]   = {.name = "hwm_bytes", .whole = true},
#define HEADED_PROCESS(heading, width, help) HEADED(heading, width)
#define ROW(id, text, unit, children, metric, ended, figure, stats, process) \
	IF_##process([1 + PROCESS_##id] = {.name = text QUANTITY_SUFFIX_##unit, HEADED_##process, \
		.look = LOOK_##unit, .whole = LOOK_##unit != LOOK_SECONDS},)
	AMOUNTS(ROW)
#undef ROW
#define ROW(id, text, kind, metric, figure, stats, process) \
	IF_##process([1 + PROCESS_##id] = {.name = "peak_" text QUANTITY_SUFFIX_##kind, HEADED_##process, \
		.look = LOOK_##kind, .whole = true},)
	LEVELS(ROW)
#undef ROW
	[1 + NR_PROCESS_VALUES] = {HEADED("EXIT", 8)},
	{.group = "exit", .name = "code", .whole = true},
	{.group = "exit", .name = "signal", .whole = true},
	{.name = "how"},
	{.name = "ended", .only = OF_JSON},
	{.name = "sampled"},
	{.name = "late"},
	{.name = "name"},
	{.name = "exe"},
	{.name = "command", .only = OF_CSV},
	{.name = "argv", .only = OF_JSON},
	{.name = "groups", .only = OF_CSV},
	{.name = "groups", .only = OF_JSON},
	{.name = "argv_cut", .only = OF_JSON},
	{.name = "cpu_lower_bound"},
	{.name = "hwm_lower_bound"},
	{.name = "hwm_upper_bound"},
	{.name = "peak_rss_between_samples"},
	{.title = "HOST", .gap = 2},
	{.title = "GROUPS", .gap = 2, .most = GROUPS_WIDTH},
	{.title = "COMMAND", .gap = 2, .width = 1},
};
/* clang-format on */
enum {
	COLUMN_COMMAND = ARRAY_SIZE(column) - 1,
	COLUMN_GROUPS = COLUMN_COMMAND - 1,
	COLUMN_HOST = COLUMN_GROUPS - 1
};

static bool has_code(const struct process_row *row)
{
	return row->status >= 0 && WIFEXITED(row->status);
}

static bool has_signal(const struct process_row *row)
{
	return row->status >= 0 && WIFSIGNALED(row->status);
}

static const char *end_text(char out[static UNITS_SIZE], const struct process_row *row)
{
	if (has_signal(row))
		return format_signal(out, WTERMSIG(row->status));
	if (has_code(row))
		return format_look(out, LOOK_CODE, WEXITSTATUS(row->status), 0);
	return row->ended ? "?" : *row->how ? row->how : "runs";
}

/* For people: a command line, or what is known instead. */
static void add_identity(struct buf *out, const struct process_row *row, enum letters letters)
{
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

/* "tool,user:ann" */
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

static void put_lists(struct table_writer *w, const struct process_row *row)
{
	struct buf *text = cell_open(w);
	const char *key;
	struct json *j;

	if (text) {
		add_command(text, row->command, row->command_len, LETTERS_RAW);
		cell_close(w, true);
	}
	if ((j = cell_json(w, &key)))
		json_words(j, key, row->command, row->command_len);
	if ((text = cell_open(w))) {
		add_groups(text, row, LETTERS_RAW);
		cell_close(w, true);
	}
	if ((j = cell_json(w, &key)))
		json_words(j, key, row->groups, row->groups_len);
	cell_flag(w, row->command_cut);
}

static void put_row(struct table_writer *w, const struct text_table *t, size_t i)
{
	const struct process_table *all = t->of;
	const struct process_row *row = &all->row[i];
	const char *host = all->host[row->node];
	char end[UNITS_SIZE];
	struct buf *text;

	cell_text(w, host, strlen(host));
	for (unsigned k = 0; k < NR_PROCESS_VALUES; k++)
		cell_bound(w, mark_of(row, k, w->style.utf8), row->value[k]);
	cell_words(w, end_text(end, row));
	cell_number(w, has_code(row) ? WEXITSTATUS(row->status) : NAN);
	cell_number(w, has_signal(row) ? WTERMSIG(row->status) : NAN);
	cell_words(w, row->how);
	cell_flag(w, row->ended);
	cell_flag(w, row->sampled);
	cell_flag(w, row->late);
	cell_text(w, row->name, row->name_len);
	cell_text(w, row->exe, row->exe_len);
	put_lists(w, row);
	cell_flag(w, row->cpu_least);
	cell_flag(w, row->hwm_least);
	cell_flag(w, row->hwm_most);
	cell_flag(w, row->rss_between);
	cell_text(w, host, strlen(host));
	if ((text = cell_open(w))) {
		add_groups(text, row, w->letters);
		cell_close(w, text->len);
	}
	if ((text = cell_open(w))) {
		add_identity(text, row, w->letters);
		cell_close(w, true);
	}
}

static void write_json(const struct process_table *p, const struct text_table *t, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_uint(&j, "total", p->nr);
	json_num(&j, "cpu_in_no_row_s", p->cpu_in_no_row);
	json_array(&j, "processes");
	table_json(t, &j, NULL);
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}

/* COMMAND tells which process it is: it always has so much room. Where the screen has less, the others go, in
 * this order. */
#define COMMAND_LEAST 24

static const char *const first_to_go[] = {"SYS", "USER", "PPID", "FDS", "START", "THR", "WROTE", "READ",
	"GROUPS", "PSS", "WALL", "HOST", "EXIT"};

static size_t columns_wide(const struct text_column *of)
{
	size_t sum = 0;

	/* Those that are as wide as their widest cell are taken for as wide as they may be. */
	for (size_t i = 0; i < COLUMN_COMMAND; i++)
		sum += !of[i].title ? 0 : of[i].gap + (of[i].width ? of[i].width : GROUPS_WIDTH);
	return sum + of[COLUMN_COMMAND].gap;
}

static void fit(struct text_column *own, size_t width)
{
	for (size_t i = 0; i < ARRAY_SIZE(first_to_go) && columns_wide(own) + COMMAND_LEAST > width; i++)
		for (size_t k = 0; k < COLUMN_COMMAND; k++)
			if (own[k].title && !strcmp(own[k].title, first_to_go[i]))
				own[k].title = NULL;
}

void processes_write(
	const struct process_table *p, size_t limit, const struct text_style *style, struct buf *out)
{
	struct text_column own[ARRAY_SIZE(column)];
	struct text_table t = {.column = own,
		.nr_columns = ARRAY_SIZE(own),
		.nr_rows = limit ? MIN(limit, p->nr) : p->nr,
		.row = put_row,
		.of = p};
	char text[UNITS_SIZE];

	memcpy(own, column, sizeof(own));
	if (p->nr_hosts < 2)
		own[COLUMN_HOST].title = NULL;
	if (!p->has_groups)
		own[COLUMN_GROUPS].title = NULL;
	if (style->form == FORM_JSON) {
		write_json(p, &t, out);
		return;
	}
	if (style->form == FORM_TEXT && style->width)
		fit(own, style->width);
	table_write(&t, style, out);
	if (style->form != FORM_TEXT)
		return;
	if (t.nr_rows < p->nr)
		buf_addf(out, "(%zu more)\n", p->nr - t.nr_rows);
	if (p->cpu_in_no_row >= 0.001)
		buf_addf(out, "(%s of CPU time is in no row: the last moments of short processes)\n",
			format_duration(text, p->cpu_in_no_row));
}
