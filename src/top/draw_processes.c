/* The table of processes on the screen. Columns go, the least important first, where it is narrow. */
#include "top/app.h"

#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *const process_column_title[NR_BY] = {"PID", "USER", "S", "CPU%", "TIME", "MEM", "RSS", "USS",
	"READ/s", "WRITE/s", "GPU%", "GPUMEM", "THR", "AGE", "COMMAND"};

static const struct {
	enum process_order_by by;
	unsigned width;
	unsigned drop; /* the higher the earlier it goes */
} column_row[] = {{BY_PID, 7, 0}, {BY_USER, 9, 6}, {BY_STATE, 1, 5}, {BY_CPU, 6, 0}, {BY_TIME, 8, 7},
	{BY_MEMORY, 9, 1}, {BY_RSS, 8, 9}, {BY_USS, 8, 11}, {BY_READ, 8, 8}, {BY_WRITE, 8, 8}, {BY_GPU, 5, 2},
	{BY_GPU_MEMORY, 8, 4}, {BY_THREADS, 4, 10}, {BY_AGE, 7, 6}};

#define COMMAND_WIDE 60u
#define COMMAND_LEAST 16 /* on wider screens a quarter */

struct table_view {
	struct top_app *a;
	struct screen *s;
	bool has[NR_BY];
	unsigned width[NR_BY];
	unsigned command; /* its column */
};

static bool is_asked_for(const struct top_table *p, enum process_order_by by)
{
	return by == BY_THREADS && p->threads > 0;
}

static void choose_columns(struct table_view *t)
{
	const struct top_table *p = &t->a->p;
	unsigned used = 0;
	bool gpu = false;

	for (uint32_t i = 0; i < p->nr && !gpu; i++)
		gpu = !isnan(p->line[i].value[BY_GPU]) || !isnan(p->line[i].value[BY_GPU_MEMORY]);
	for (size_t i = 0; i < ARRAY_SIZE(column_row); i++) {
		enum process_order_by by = column_row[i].by;

		t->has[by] = (by != BY_GPU && by != BY_GPU_MEMORY) || gpu;
		if (by == BY_THREADS)
			t->has[by] = app_shows_threads(t->a);
		t->width[by] = column_row[i].width;
		used += t->has[by] ? column_row[i].width + 1 : 0;
	}
	while (used + MAX(t->s->columns / 4, (unsigned)COMMAND_LEAST) > t->s->columns) {
		size_t go = ARRAY_SIZE(column_row);

		for (size_t i = 0; i < ARRAY_SIZE(column_row); i++)
			if (t->has[column_row[i].by] && column_row[i].drop &&
				!is_asked_for(p, column_row[i].by) &&
				(go == ARRAY_SIZE(column_row) || column_row[i].drop > column_row[go].drop))
				go = i;
		if (go == ARRAY_SIZE(column_row))
			break;
		t->has[column_row[go].by] = false;
		used -= column_row[go].width + 1;
	}
	t->command = used;
}

/* Of those that ended it is totals: then the rates of the others say that they are. */
static bool has_totals(const struct top_app *a)
{
	return app_shows_ended(a) && a->p.all;
}

static const char *title_of(const struct top_app *a, enum process_order_by by)
{
	if (has_totals(a) && by == BY_READ)
		return "READ";
	return has_totals(a) && by == BY_WRITE ? "WRITE" : process_column_title[by];
}

static void draw_heading(struct table_view *t, unsigned row)
{
	struct top_app *a = t->a;
	unsigned column = 0;

	a->nr_heads = 0;
	a->head_row = row;
	for (size_t i = 0; i <= ARRAY_SIZE(column_row); i++) {
		enum process_order_by by = i < ARRAY_SIZE(column_row) ? column_row[i].by : BY_COMMAND;
		unsigned width = by == BY_COMMAND ? t->s->columns - MIN(column, t->s->columns) : t->width[by];
		const char *title = title_of(a, by);
		bool sorted = a->p.by == by && (!a->p.tree || a->p.sorted),
		     left = by == BY_COMMAND || by == BY_USER || by == BY_STATE;
		const char *mark = !sorted ? ""
			: a->p.inverted	   ? (t->s->utf8 ? "△" : "^")
					   : (t->s->utf8 ? "▽" : "v");
		unsigned len = (unsigned)strlen(title) + (sorted ? 1 : 0);

		if (by != BY_COMMAND && !t->has[by])
			continue;
		frame_printf(t->s, column + (left || len >= width ? 0 : width - len), row, width,
			sorted ? INK_BOLD : INK_PLAIN, "%s%s", title, len > width ? "" : mark);
		a->head[a->nr_heads].column = column;
		a->head[a->nr_heads].columns = width;
		a->head[a->nr_heads++].by = by;
		column += width + 1;
	}
	frame_paper(t->s, 0, row, t->s->columns, PAPER_REVERSE);
}

/* ---- cells ---- */

/* "1.2G": five places at most. */
static char *format_short(char out[static UNITS_SIZE], double bytes)
{
	static const char unit[] = "BKMGTPE";
	size_t i = 0;

	for (; bytes >= 999.5 && unit[i + 1]; i++)
		bytes /= 1024;
	if (!i)
		snprintf(out, UNITS_SIZE, "%.0f", bytes);
	else
		snprintf(out, UNITS_SIZE,
			bytes < 9.95	       ? "%.2f%c"
				: bytes < 99.5 ? "%.1f%c"
					       : "%.0f%c",
			bytes, unit[i]);
	return out;
}

static char *format_age(char out[static UNITS_SIZE], double s)
{
	long whole = (long)MAX(s, 0.0);

	if (whole < 60)
		snprintf(out, UNITS_SIZE, "%lds", whole);
	else if (whole < 3600)
		snprintf(out, UNITS_SIZE, "%ldm%02lds", whole / 60, whole % 60);
	else if (whole < 100 * 3600)
		snprintf(out, UNITS_SIZE, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
	else
		snprintf(out, UNITS_SIZE, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
	return out;
}

/* `totals`: the column has what ended processes did in all. */
static char *format_cell(
	char out[static UNITS_SIZE], const struct process_line *l, enum process_order_by by, bool totals)
{
	double v = l->value[by];

	if (by == BY_STATE) {
		snprintf(out, UNITS_SIZE, "%c", l->ended ? 'x' : v >= 'A' && v <= 'z' ? (char)v : '?');
		return out;
	}
	if (isnan(v)) {
		snprintf(out, UNITS_SIZE, "-");
		return out;
	}
	switch (by) {
	case BY_CPU:
	case BY_GPU:
		snprintf(out, UNITS_SIZE, 100 * v < 999.95 ? "%.1f" : "%.0f", 100 * v);
		return out;
	case BY_TIME:
		return v < 60 ? (snprintf(out, UNITS_SIZE, "%.2fs", v), out) : format_age(out, v);
	case BY_AGE:
		if (l->late && !l->ended)
			snprintf(out, UNITS_SIZE, ">"); /* the recording does not say by how much */
		else
			format_age(out, v);
		return out;
	case BY_MEMORY:
	case BY_USS: {
		char number[UNITS_SIZE];

		snprintf(out, UNITS_SIZE, "%s%.20s", l->estimated ? "~" : "", format_short(number, v));
		return out;
	}
	case BY_READ:
	case BY_WRITE:
		if (totals && !l->ended)
			snprintf(out, UNITS_SIZE, "%.20s/s", format_short(SHOWN, v));
		else
			format_short(out, v);
		return out;
	case BY_RSS:
	case BY_GPU_MEMORY:
		return format_short(out, v);
	default:
		snprintf(out, UNITS_SIZE, "%.0f", MIN(v, 1e12));
		return out;
	}
}

static void draw_user(
	struct table_view *t, const struct process_line *l, unsigned column, unsigned row, int ink)
{
	if (l->user)
		frame_text(t->s, column, row, l->user, strlen(l->user), t->width[BY_USER], ink);
	else if (l->uid >= 0)
		frame_printf(t->s, column, row, t->width[BY_USER], ink, "%lld", (long long)l->uid);
	else
		frame_words(t->s, column, row, "-", t->width[BY_USER], ink);
}

/* "├─ " below a parent, by the depth. */
static unsigned draw_rails(struct table_view *t, const struct process_line *l, unsigned column, unsigned row)
{
	struct screen *s = t->s;
	unsigned from = column, depth = MIN(l->depth, (s->columns - column) / 4);

	for (unsigned i = 1; i < depth; i++) {
		if (l->rails >> i & 1)
			screen_put(s, column, row, "│", '|', INK_DIM);
		column += 2;
	}
	if (depth) {
		screen_put(s, column, row, l->last_child ? "└" : "├", l->last_child ? '`' : '|', INK_DIM);
		screen_put(s, column + 1, row, "─", '-', INK_DIM);
		column += 2;
	}
	if (l->folded && l->has_children) {
		screen_put(s, column, row, "+", '+', INK_BOLD);
		column += 1;
	}
	return column - from;
}

/* Where there is little room the directory of the program is left out. */
static size_t command_from(const struct process_line *l, unsigned room)
{
	size_t first = strnlen(l->command, l->command_len);
	const char *slash = first && room < COMMAND_WIDE ? memrchr(l->command, '/', first) : NULL;

	return *l->command == '/' && slash && slash + 1 < l->command + first
		? (size_t)(slash + 1 - l->command)
		: 0;
}

static void draw_command(struct table_view *t, const struct process_line *l, unsigned row, int ink)
{
	struct screen *s = t->s;
	unsigned column = t->command, n;
	struct buf text;
	size_t from;

	if (column >= s->columns)
		return;
	if (t->a->p.tree)
		column += draw_rails(t, l, column, row);
	if (column >= s->columns)
		return;
	if (t->a->p.full_commands && l->command_len) {
		buf_init(&text, 1 << 20);
		from = command_from(l, s->columns - t->command);
		buf_add(&text, l->command + from, MIN(l->command_len - from, (size_t)s->columns * 8));
		for (size_t i = 0; i < text.len; i++)
			if (!text.data[i])
				text.data[i] = ' ';
		n = frame_text(s, column, row, (char *)text.data, text.len, s->columns - column, ink);
		buf_release(&text);
	} else {
		n = frame_text(s, column, row, l->name_len ? l->name : "?", MAX(l->name_len, (size_t)1),
			s->columns - column, ink);
	}
	column += n + 1;
	if (l->ended && column < s->columns) {
		bool by_signal = l->status >= 0 && WIFSIGNALED(l->status);

		if (by_signal)
			frame_printf(s, column, row, s->columns - column, INK_ALARM, "ended by %s",
				format_signal(SHOWN, WTERMSIG(l->status)));
		else if (l->status >= 0)
			frame_printf(s, column, row, s->columns - column, l->status ? INK_ALARM : INK_DIM,
				"ended with %d", WEXITSTATUS(l->status));
		else
			frame_words(s, column, row, "ended", s->columns - column, INK_DIM);
	}
}

static int ink_of(const struct process_line *l, enum process_order_by by, int line_ink)
{
	if (line_ink != INK_PLAIN)
		return line_ink;
	if (by == BY_CPU && l->value[by] >= 0.5)
		return INK_CPU;
	if (by == BY_STATE && l->value[by] == 'D')
		return INK_ALARM;
	return INK_PLAIN;
}

static void draw_line(struct table_view *t, const struct process_line *l, unsigned row, bool chosen)
{
	bool tagged = processes_is_tagged(&t->a->p, l->id);
	int ink = l->kin || l->ended ? INK_DIM : tagged ? INK_IO : INK_PLAIN;
	unsigned column = 0;

	for (size_t i = 0; i < ARRAY_SIZE(column_row); i++) {
		enum process_order_by by = column_row[i].by;
		char text[UNITS_SIZE];
		unsigned len;

		if (!t->has[by])
			continue;
		if (by == BY_USER) {
			draw_user(t, l, column, row, ink);
		} else {
			format_cell(text, l, by, has_totals(t->a));
			len = (unsigned)strlen(text);
			frame_words(t->s, column + (len < t->width[by] ? t->width[by] - len : 0), row, text,
				t->width[by], ink_of(l, by, ink));
		}
		column += t->width[by] + 1;
	}
	draw_command(t, l, row, ink);
	if (tagged && t->s->columns > 0)
		screen_put(t->s, t->has[BY_PID] ? 0 : t->command, row, "•", '*', INK_IO);
	if (chosen)
		frame_paper(t->s, 0, row, t->s->columns, PAPER_REVERSE);
}

/* ---- the list ---- */

static void keep_cursor(struct top_app *a, unsigned rows)
{
	struct top_table *p = &a->p;

	if (a->follows && a->id) {
		uint32_t at = processes_find(p, a->id);

		if (at < p->nr_shown)
			a->row = at;
	}
	a->row = MIN(a->row, p->nr_shown ? p->nr_shown - 1 : 0);
	if (a->row < a->top)
		a->top = a->row;
	if (rows && a->row >= a->top + rows)
		a->top = a->row - rows + 1;
	if (a->top + rows > p->nr_shown)
		a->top = p->nr_shown > rows ? p->nr_shown - rows : 0;
	if (p->nr_shown && !a->follows)
		a->id = p->line[p->shown[a->row]].id;
}

void draw_processes(struct top_app *a, struct screen *s, unsigned row, unsigned rows)
{
	struct table_view t = {.a = a, .s = s};

	a->list_rows = 0;
	if (!rows)
		return;
	choose_columns(&t);
	if (rows > 1) {
		draw_heading(&t, row++);
		rows--;
	} else {
		a->nr_heads = 0;
	}
	keep_cursor(a, rows);
	a->list_row = row;
	a->list_rows = rows;
	for (unsigned i = 0; i < rows && a->top + i < a->p.nr_shown; i++)
		draw_line(&t, &a->p.line[a->p.shown[a->top + i]], row + i, a->top + i == a->row);
	if (!a->p.nr_shown)
		frame_words(s, 0, row,
			*a->p.filter || *a->p.user ? "no process matches; Esc shows all again"
						   : "no processes are recorded at this moment",
			s->columns, INK_DIM);
}
