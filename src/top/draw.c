/* The screen of `top`: the job's line, alarms, panels, the table, the time bar, the line of keys; and the
 * pages that lie over it. */
#include "top/app.h"

#include "base/str.h"
#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define OOM_SHOWN_S 120.0 /* after processes were killed */
#define MARK_SHOWN_S 5.0  /* after a mark was set */

const char *const top_help[] = {"Time", "  Left Right        one tick back, forward; with Shift ten",
	"  Home End          the first tick; the newest, and on with it",
	"  j                 to a time: 5m, -30s, +10s, 50%, phase 3, phase NAME",
	"  Z                 pause; once more: play from there",
	"  i o               a shorter, a longer time in the curves", "Processes",
	"  Up Down PgUp PgDn choose one", "  /  n              search; the next match",
	"  \\                 filter: only what matches, with its parents",
	"  u                 only those of a user", "  t                 tree or list",
	"  < >  F6           order: column before, after; choose from a list",
	"  I  P M T          turn the order around; by CPU, memory, time",
	"  + -               unfold, fold the children",
	"  F                 stay on this process wherever it moves",
	"  Space U           tag; no tags. The line above the table adds them up",
	"  c  H              whole commands or names; the column of threads",
	"  x                 those that have ended, with their final accounts", "Run",
	"  g Enter           the next node or group; that of the chosen row",
	"  e                 what is found in the run so far, with explanations",
	"  m                 a mark at this moment", "  r                 the report, in a file",
	"  w                 keep the recording (of a target or command)",
	"  k                 a signal, with --allow-kill", "  ? F1  q           this page; end",
	"Marks of the job are triangles over the curves and the time bar.",
	"Mouse: rows, headings, the time bar, the wheel.", NULL};

char *format_clock(char out[static UNITS_SIZE], double seconds)
{
	bool minus = seconds < 0;
	long tenths = (long)round_i64(fabs(MIN(seconds, 1e9)) * 10), whole = tenths / 10;

	if (whole < 3600)
		snprintf(out, UNITS_SIZE, "%s%ldm%02ld.%lds", minus ? "-" : "", whole / 60, whole % 60,
			tenths % 10);
	else
		snprintf(out, UNITS_SIZE, "%s%ldh%02ldm%02lds", minus ? "-" : "", whole / 3600,
			whole / 60 % 60, whole % 60);
	return out;
}

/* ---- phases ---- */

const struct run_event *phase_at(const struct run_events *e, double time_s)
{
	const struct run_event *best = NULL;

	for (size_t i = 0; e && i < e->nr_phases; i++) {
		const struct run_event *p = &e->phase[i];

		if (p->time_s <= time_s && !(p->end_s <= time_s) && (!best || p->time_s >= best->time_s))
			best = p;
	}
	return best;
}

/* Marks of numbers alone are points of curves, and there may be one in every column. */
static bool is_shown_mark(const struct run_event *v)
{
	return !strcmp(v->kind, "mark") && !v->numbers;
}

const struct run_event *mark_in(const struct run_events *e, double from_s, double to_s)
{
	for (size_t i = e ? e->nr_events : 0; i--;) {
		const struct run_event *v = &e->event[i];

		if (v->time_s >= from_s && v->time_s <= to_s && is_shown_mark(v))
			return v;
	}
	return NULL;
}

void draw_mark_signs(struct screen *s, const struct run_events *e, unsigned column, unsigned row,
	unsigned columns, double from_s, double step_s)
{
	for (size_t i = 0; e && i < e->nr_events; i++) {
		double at = floor((e->event[i].time_s - from_s) / step_s);

		if (is_shown_mark(&e->event[i]) && at >= 0 && at < columns)
			screen_put(s, column + (unsigned)at, row, "▾", 'v', INK_BOLD);
	}
}

int phase_paper(const struct run_events *e, double time_s)
{
	const struct run_event *p = phase_at(e, time_s);

	if (!p)
		return INK_PLAIN;
	return (p - e->phase) % 2 ? INK_PHASE_B : INK_PHASE_A;
}

/* ---- the job's line ---- */

static bool is_looked_at(const struct model *m, size_t node)
{
	return m->focus == TOP_ALL || node == m->focus;
}

/* A recorder is gone; what it recorded may run on. */
static bool is_unfinished(const struct model *m)
{
	for (size_t i = 0; i < m->nr; i++)
		if (m->node[i].gone && is_looked_at(m, i))
			return true;
	return false;
}

/* Returns the columns that are left of it. */
static unsigned draw_state(struct top_app *a, struct screen *s, unsigned row)
{
	const char *state = a->play == PLAY_ON ? "playing" : a->play == PLAY_PAUSED ? "paused" : "live";
	bool over = model_is_over(&a->m);
	bool unfinished = over && is_unfinished(&a->m);
	int64_t now = model_now(&a->m), end = model_end(&a->m);
	char text[120];
	unsigned len;

	if (a->play == PLAY_LIVE && over)
		state = unfinished ? "unfinished" : "ended";
	if (a->m.share < 1)
		snprintf(text, sizeof(text), " reading, %.0f %% ", 100 * a->m.share);
	else if (now >= end && a->play == PLAY_LIVE && model_silence(&a->m))
		snprintf(text, sizeof(text), " no news for %s ",
			format_duration(SHOWN, (double)model_silence(&a->m)));
	else if (now < end)
		snprintf(text, sizeof(text), " %s at %s, %s back ", state,
			format_clock(SHOWN, (double)now / 1e9),
			format_duration(SHOWN, (double)(end - now) / 1e9));
	else
		snprintf(text, sizeof(text), " %s ", state);
	len = (unsigned)strlen(text);
	if (len + 8 > s->columns) {
		snprintf(text, sizeof(text), " %s ",
			now < end ? format_clock(SHOWN, (double)now / 1e9) : state);
		len = (unsigned)strlen(text);
	}
	if (len >= s->columns)
		return s->columns;
	frame_words(s, s->columns - len, row, text, len,
		now < end || unfinished			? INK_ALARM
			: a->play == PLAY_LIVE && !over ? INK_GOOD
							: INK_BOLD);
	frame_paper(s, s->columns - len, row, len, PAPER_REVERSE);
	return s->columns - len;
}

/* Of all processes of one user: "user:", or "user:NAME". The name is that of the group that they are. */
static bool user_words(const struct walk *walk, const struct meta_item *command, struct buf *out)
{
	static const char user[] = "user:";
	size_t n = strlen(user), len = command ? command->len : 0;
	const struct groups *g = &walk->group;
	const char *name;

	if (len && !command->value[len - 1])
		len--;
	if (len < n || memcmp(command->value, user, n) || memchr(command->value, 0, len))
		return false;
	name = command->value + n;
	len -= n;
	if (!len && g->nr && g->item[0].len > n && !memcmp(g->item[0].name, user, n)) {
		name = g->item[0].name + n;
		len = g->item[0].len - n;
	}
	buf_adds(out, len ? "processes of " : "your processes");
	add_text(out, name, len, LETTERS_UTF8);
	return true;
}

static void job_words(struct top_app *a, struct buf *out)
{
	struct model *m = &a->m;
	size_t node = model_main(m);
	const struct top_node *n = node < m->nr ? &m->node[node] : NULL;
	const struct meta *meta = n && n->main && n->main->walk ? reading_meta(n->main) : NULL;
	const struct meta_item *command = meta ? meta_find(meta, "command") : NULL;
	const char *target = meta ? meta_text(meta, "target") : "";

	if (!n || !meta) {
		if (n && n->why)
			add_text(out, n->path, strlen(n->path), LETTERS_UTF8);
		else
			buf_adds(out, a->title ? a->title : "waiting for a recording");
		return;
	}
	if (user_words(n->main->walk, command, out))
		return;
	if (command && command->len)
		add_command(out, command->value, command->len - (!command->value[command->len - 1]),
			LETTERS_UTF8);
	else if (*target)
		add_text(out, target, strlen(target), LETTERS_UTF8);
	else if (a->title)
		buf_adds(out, a->title);
	else
		add_text(out, n->path, strlen(n->path), LETTERS_UTF8);
}

/* How the job ended; of several nodes the first that failed. Its ink; INK_PLAIN: nothing went wrong. */
static int outcome_words(const struct model *m, struct buf *out)
{
	bool said = false;

	if (!model_is_over(m) || model_now(m) < model_end(m))
		return INK_PLAIN;
	for (size_t i = 0; i < m->nr; i++) {
		const struct top_node *n = &m->node[i];
		int status = n->main && is_looked_at(m, i) ? n->main->status : -1;

		if (status < 0)
			continue;
		said = true;
		if (!status)
			continue;
		if (WIFSIGNALED(status))
			buf_addf(out, "  %s", format_signal(SHOWN, WTERMSIG(status)));
		else
			buf_addf(out, "  exit %d", WEXITSTATUS(status));
		if (m->focus == TOP_ALL && m->nr > 1 && n->host) {
			buf_adds(out, " on ");
			add_text(out, n->host, strlen(n->host), LETTERS_UTF8);
		}
		return INK_ALARM;
	}
	if (said)
		buf_adds(out, "  exit 0");
	return INK_PLAIN;
}

static void add_place(const struct model *m, size_t node, struct buf *out)
{
	if (m->nr > 1 && m->focus == TOP_ALL) {
		buf_addf(out, "  %zu nodes", m->nr);
	} else if (node < m->nr && m->node[node].host && *m->node[node].host) {
		buf_adds(out, "  ");
		add_text(out, m->node[node].host, strlen(m->node[node].host), LETTERS_UTF8);
	}
	if (m->group) {
		buf_adds(out, "  group ");
		add_text(out, m->group, strlen(m->group), LETTERS_UTF8);
	}
}

unsigned draw_head(struct top_app *a, struct screen *s)
{
	struct model *m = &a->m;
	size_t node = model_main(m);
	double now_s = (double)model_now(m) / 1e9, node_s = now_s;
	const struct run_event *phase, *mark;
	const char *why;
	unsigned room, column, row = 0;
	struct buf words, ending, more, alarm;
	int ink;

	buf_init(&words, 1 << 16);
	buf_init(&ending, 4096);
	buf_init(&more, 4096);
	buf_init(&alarm, 4096);
	job_words(a, &words);
	if (node < m->nr)
		node_s = now_s - (double)m->node[node].offset_ns / 1e9;
	ink = outcome_words(m, &ending);
	add_place(m, node, &more);
	buf_addf(&more, "  %s", format_clock(SHOWN, now_s));
	phase = phase_at(model_events(m, node), node_s);
	if (phase)
		buf_addf(
			&more, "  phase %s %s", phase->label, format_duration(SHOWN, node_s - phase->time_s));
	mark = mark_in(model_events(m, node), node_s - MARK_SHOWN_S, node_s);
	if (mark)
		buf_addf(&more, "  mark %s", mark->label);
	if (m->ghost && node < m->nr && (why = ghost_look(m->ghost, m))) {
		buf_addf(&more, "  %s", why);
	} else if (ghost_is_shown(m->ghost) && node < m->nr) {
		double then = ghost_time(m->ghost, model_events(m, node), node_s);
		double length = ghost_length(m->ghost);

		buf_addf(&more, "  %.0f %% of the earlier run, %s to go", 100 * MIN(then / length, 1.0),
			format_duration(SHOWN, MAX(length - then, 0.0)));
	}
	room = draw_state(a, s, row);
	column = (unsigned)MIN(
		utf8_columns((char *)more.data) + utf8_columns((char *)ending.data) + 1, (size_t)room);
	column = frame_words(
		s, 0, row, (char *)words.data, room > column + 12 ? room - column : MIN(room, 12u), INK_BOLD);
	column += frame_words(s, column, row, (char *)ending.data, room - column, ink);
	frame_words(s, column, row++, (char *)more.data, room - column, INK_PLAIN);
	if (app_alarm(a, &alarm) && s->rows > 5) {
		frame_printf(
			s, 0, row, s->columns, INK_ALARM, "%s %s", s->utf8 ? "▲" : "!", (char *)alarm.data);
		row++;
	}
	buf_release(&words);
	buf_release(&ending);
	buf_release(&more);
	buf_release(&alarm);
	return row;
}

/* ---- alarms ---- */

static bool event_alarm(const struct run_events *e, double now_s, struct buf *out)
{
	for (size_t i = e ? e->nr_events : 0; i--;) {
		const struct run_event *v = &e->event[i];
		double since = now_s - v->time_s;

		if (since < 0)
			continue;
		if (!strcmp(v->kind, "oom") && since < OOM_SHOWN_S) {
			buf_addf(out, "%s, %s ago", v->label, format_duration(SHOWN, since));
			return true;
		}
		if (!strcmp(v->kind, "stopped") && !(v->end_s <= now_s)) {
			buf_addf(out, "the job was stopped %s ago", format_duration(SHOWN, since));
			return true;
		}
		if (!strcmp(v->kind, "lost") && !(v->end_s <= now_s) && since < OOM_SHOWN_S) {
			buf_addf(out, "%s", v->label);
			return true;
		}
	}
	return false;
}

static bool memory_alarm(struct top_app *a, size_t node, struct buf *out)
{
	struct node_view v = model_view(&a->m, node, false);
	double limit, memory, slope;

	if (!v.now || v.ended)
		return false;
	limit = v.now->value[TOP_LIMIT];
	memory = point_memory(v.now);
	slope = memory_slope(v.reading, v.now->time_ns);
	if (!(limit > 0) || isnan(memory) || a->m.group)
		return false;
	if (memory >= 0.95 * limit) {
		buf_addf(out, "memory is at %.0f %% of its limit", 100 * memory / limit);
		return true;
	}
	if (slope > 0 && memory > limit / 4 && (limit - memory) / slope < 120) {
		buf_addf(out, "memory reaches its limit in %s at the present rate",
			format_duration(SHOWN, (limit - memory) / slope));
		return true;
	}
	return false;
}

bool app_alarm(struct top_app *a, struct buf *out)
{
	struct model *m = &a->m;
	int64_t now = model_now(m);

	for (size_t i = 0; i < m->nr; i++) {
		const struct top_node *n = &m->node[i];
		double node_s = (double)(now - n->offset_ns) / 1e9;
		size_t from = out->len;

		if (m->focus != TOP_ALL && i != m->focus)
			continue;
		if (m->nr > 1 && n->host)
			buf_addf(out, "%s: ", n->host);
		if (n->why && m->nr == 1) {
			buf_addf(out, "%s", n->why);
			return true;
		}
		if (event_alarm(model_events(m, i), node_s, out) || memory_alarm(a, i, out))
			return true;
		if (n->gone && now >= model_end(m)) {
			buf_adds(out, "the recorder is gone: the recording is unfinished");
			return true;
		}
		out->len = from;
		out->data[from] = 0;
	}
	return false;
}

/* ---- the time bar and the line of keys ---- */

static double overview_value(const struct top_reading *r, double from_s, double to_s)
{
	double most = NAN;
	unsigned first, last;

	if (!r || !(r->overview_step_s > 0))
		return NAN;
	first = (unsigned)MAX(from_s / r->overview_step_s, 0.0);
	last = (unsigned)MAX(to_s / r->overview_step_s, 0.0);
	for (unsigned i = first; i <= MIN(last, OVERVIEW - 1u); i++)
		most = known_max(most, r->overview[i].cores);
	return most;
}

void draw_time_bar(struct top_app *a, struct screen *s, unsigned row)
{
	struct model *m = &a->m;
	size_t node = model_main(m);
	const struct top_reading *r = node < m->nr ? m->node[node].main : NULL;
	double end_s = (double)model_end(m) / 1e9, most = 0, offset_s, known_s = -INFINITY, hold_s;
	unsigned from = 9, columns, at;
	float value[2000];

	a->bar_columns = 0;
	if (s->columns < 40 || !(end_s > 0) || !r)
		return;
	columns = MIN(s->columns - 2 * from, 1000u);
	offset_s = (double)m->node[node].offset_ns / 1e9;
	hold_s = 2.5 * reading_interval(r);
	frame_words(s, 0, row, "0", 8, INK_DIM);
	frame_printf(s, from + columns + 1, row, 9, INK_DIM, "%s", format_duration(SHOWN, end_s));
	for (unsigned i = 0; i < columns * 2; i++) {
		double t = end_s * i / (columns * 2), next = end_s * (i + 1) / (columns * 2);

		value[i] = (float)overview_value(r, t - offset_s, next - offset_s);
		most = known_max(most, value[i]);
		if (!isnan(value[i]))
			known_s = next;
		else if (i && t - known_s < hold_s) /* between two ticks */
			value[i] = value[i - 1];
	}
	for (unsigned i = 0; i < columns * 2; i++)
		value[i] = most > 0 ? (float)(value[i] / most) : NAN;
	frame_curve(s, from, row, columns, 1, value, true, INK_QUIET);
	for (unsigned i = 0; i < columns; i++)
		frame_paper(s, from + i, row, 1,
			phase_paper(model_events(m, node), end_s * (i + 0.5) / columns - offset_s));
	draw_mark_signs(s, model_events(m, node), from, row, columns, -offset_s, end_s / columns);
	at = (unsigned)MIN((double)model_now(m) / 1e9 / end_s * columns, columns - 1.0);
	screen_put(s, from + at, row, "┃", '|', INK_BOLD);
	frame_paper(s, from + at, row, 1, PAPER_REVERSE);
	a->bar_row = row;
	a->bar_column = from;
	a->bar_columns = columns;
}

static void draw_keys(struct top_app *a, struct screen *s, unsigned row)
{
	static const char *const question[] = {[PROMPT_SEARCH] = "Search: ",
		[PROMPT_FILTER] = "Filter: ",
		[PROMPT_USER] = "User: ",
		[PROMPT_TIME] = "Go to (5m, -30s, 50%, phase 3): ",
		[PROMPT_MARK] = "Mark: ",
		[PROMPT_KEEP] = "Keep as: ",
		[PROMPT_KILL] = "Signal (TERM, INT, KILL, STOP, CONT) to %s: "};
	unsigned column;
	const char *arrows;

	if (a->prompt) {
		if (a->prompt == PROMPT_KILL)
			column = frame_printf(s, 0, row, s->columns, INK_BOLD,
				"Signal (TERM, INT, KILL, STOP, CONT) to %lld: ", (long long)a->kill_pid);
		else
			column = frame_words(s, 0, row, question[a->prompt], s->columns, INK_BOLD);
		column += frame_text(s, column, row, a->text, a->text_len, s->columns - column, INK_PLAIN);
		frame_paper(s, column, row, 1, PAPER_REVERSE);
		return;
	}
	if (*a->message) {
		frame_text(s, 0, row, a->message, strlen(a->message), s->columns, INK_BOLD);
		return;
	}
	arrows = s->utf8 ? "←→" : "<- ->";
	if (s->columns >= 100)
		frame_printf(s, 0, row, s->columns, INK_DIM,
			"?help  /search  \\filter  t tree  F6 order  x ended  Z pause  %s time  j go to  g "
			"node  "
			"e explain  r report  q end",
			arrows);
	else if (s->columns >= 60)
		frame_printf(s, 0, row, s->columns, INK_DIM,
			"?help /search \\filter t tree Z pause %s time j go to e explain q end", arrows);
	else
		frame_words(s, 0, row, "? help  q end", s->columns, INK_DIM);
}

/* ---- pages over it ---- */

static unsigned count_lines(const char *text)
{
	unsigned n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void draw_page(struct top_app *a, struct screen *s)
{
	unsigned row = 0, nr = 0;

	if (a->page == PAGE_HELP) {
		while (top_help[nr])
			nr++;
		a->page_top = MIN(a->page_top, nr > s->rows - 1 ? nr - (s->rows - 1) : 0);
		for (; row + 1 < s->rows && top_help[a->page_top + row]; row++)
			frame_words(s, 1, row, top_help[a->page_top + row], s->columns - 1,
				top_help[a->page_top + row][0] == ' ' ? INK_PLAIN : INK_BOLD);
	} else if (a->page_text) {
		const char *at = a->page_text;

		nr = count_lines(at);
		a->page_top = MIN(a->page_top, nr > s->rows - 1 ? nr - (s->rows - 1) : 0);
		for (unsigned i = 0; i < a->page_top && (at = strchr(at, '\n')); i++)
			at++;
		for (; at && *at && row + 1 < s->rows; row++) {
			size_t len = strcspn(at, "\n");
			bool head = *at != ' ';

			frame_text(s, 1, row, at, len, s->columns - 1, head ? INK_BOLD : INK_PLAIN);
			at = at[len] ? at + len + 1 : at + len;
		}
	}
	frame_words(s, 0, s->rows - 1, "Esc: back  Up Down: more", s->columns, INK_DIM);
}

static void draw_sort_page(struct top_app *a, struct screen *s)
{
	frame_words(s, 1, 0, "Order by", s->columns, INK_BOLD);
	for (unsigned i = 0; i < NR_BY && i + 2 < s->rows; i++) {
		frame_words(s, 3, i + 1, process_column_title[i], 20, INK_PLAIN);
		if (i == a->sort_row)
			frame_paper(s, 2, i + 1, 14, PAPER_REVERSE);
	}
	frame_words(s, 0, s->rows - 1, "Enter: choose  Esc: back", s->columns, INK_DIM);
}

/* ---- the table's line ---- */

static void draw_table_line(struct top_app *a, struct screen *s, unsigned row)
{
	const struct top_table *p = &a->p;
	unsigned column, tagged = 0;
	double cores = 0, memory = 0;

	for (uint32_t i = 0; i < p->nr; i++)
		if (processes_is_tagged(p, p->line[i].id) && !p->line[i].ended) {
			tagged++;
			cores += isnan(p->line[i].value[BY_CPU]) ? 0 : p->line[i].value[BY_CPU];
			memory += isnan(p->line[i].value[BY_MEMORY]) ? 0 : p->line[i].value[BY_MEMORY];
		}
	column = frame_printf(s, 0, row, s->columns, INK_DIM, "%u of %u process%s%s", p->nr_shown, p->nr,
		p->nr == 1 ? "" : "es",
		app_shows_ended(a) && p->all ? ", with those that ended: totals and peaks" : "");
	if (app_shows_ended(a) && !p->all)
		column += frame_printf(s, column, row, s->columns - column, INK_BOLD,
			", reading those that ended: %.0f %%", 100 * a->ended_share);
	if (*p->filter)
		column += frame_printf(
			s, column, row, s->columns - column, INK_BOLD, "  filter: %s", p->filter);
	if (*p->user)
		column += frame_printf(s, column, row, s->columns - column, INK_BOLD, "  user: %s", p->user);
	if (a->follows)
		column += frame_words(s, column, row, "  follows", s->columns - column, INK_BOLD);
	if (tagged)
		column +=
			frame_printf(s, column, row, s->columns - column, INK_IO, "  %u tagged: %s cores, %s",
				tagged, format_cores(SHOWN, cores), format_bytes(SHOWN, memory));
	frame_printf(s, column, row, s->columns - column, INK_DIM, "  curves: %s",
		format_duration(SHOWN, (double)a->m.window_ns / 1e9));
}

static int take_processes(struct top_app *a)
{
	size_t node = model_main(&a->m);
	struct node_view v = {0};
	const struct groups *groups;
	struct process_table *all = a->p.all;
	uint64_t mask = 0;
	double time_s;
	int r;

	if (node < a->m.nr)
		v = model_view(&a->m, node, true);
	time_s = v.now ? (double)v.now->time_ns / 1e9 : 0;
	groups = v.reading && v.reading->walk ? &v.reading->walk->group : NULL;
	for (unsigned i = 0; groups && a->m.group && i < groups->nr; i++)
		if (strlen(a->m.group) == groups->item[i].len &&
			!memcmp(a->m.group, groups->item[i].name, groups->item[i].len))
			mask |= UINT64_C(1) << i;
	if (!app_shows_ended(a))
		a->p.all = NULL;
	r = processes_set(&a->p, v.ended ? NULL : v.table, time_s, mask, a->m.group);
	a->p.all = all;
	if (r < 0)
		return r;
	for (uint32_t i = 0; v.reading && i < a->p.nr; i++)
		if (!a->p.line[i].user && a->p.line[i].uid >= 0) {
			const struct meta_item *user = meta_user(reading_meta(v.reading), a->p.line[i].uid);

			a->p.line[i].user = user ? user->value : NULL;
		}
	return processes_arrange(&a->p, time_s);
}

bool app_shows_ended(const struct top_app *a)
{
	return a->ended && (!a->ended_by_itself || a->m.live);
}

bool app_shows_nodes(const struct top_app *a)
{
	return a->m.focus == TOP_ALL && model_has_parts(&a->m);
}

bool app_shows_threads(const struct top_app *a)
{
	return a->p.threads ? a->p.threads > 0 : a->columns >= 110;
}

int app_draw(struct top_app *a, struct screen *s)
{
	unsigned row, foot = s->rows >= 7 ? 1 : 0, bar = s->rows >= 12 ? 1 : 0, upper, line;
	int r;

	a->columns = s->columns;
	a->rows = s->rows;
	frame_clear(s);
	a->list_rows = a->bar_columns = a->nr_heads = 0;
	if (a->page == PAGE_HELP || a->page == PAGE_TEXT) {
		draw_page(a, s);
		return 0;
	}
	if (a->page == PAGE_SORT) {
		draw_sort_page(a, s);
		return 0;
	}
	r = app_shows_nodes(a) ? 0 : take_processes(a);
	if (r < 0)
		return r;
	if (a->prompt || *a->message)
		foot = 1;
	row = draw_head(a, s);
	upper = s->rows < 8 ? 1 : s->rows < 12 ? 2 : (s->rows - row) * 45 / 100;
	row += draw_panels(a, s, row, upper);
	line = s->rows >= 14 && !app_shows_nodes(a);
	if (line)
		draw_table_line(a, s, row++);
	if (row + foot + bar < s->rows) {
		unsigned rows = s->rows - row - foot - bar;

		if (app_shows_nodes(a))
			r = draw_nodes(a, s, row, rows);
		else
			draw_processes(a, s, row, rows);
	}
	if (bar)
		draw_time_bar(a, s, s->rows - foot - 1);
	if (foot)
		draw_keys(a, s, s->rows - 1);
	return MIN(r, 0);
}
