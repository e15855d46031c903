/* What keys and the mouse do: see app.h. */
#include "top/app.h"

#include "base/str.h"
#include "top/parts.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WINDOW_LEAST (10 * NSEC_PER_SEC)
#define WINDOW_MOST (7 * 86400 * NSEC_PER_SEC)

void app_say(struct top_app *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->message, sizeof(a->message), fmt, ap);
	va_end(ap);
}

void app_show_text(struct top_app *a, char *text)
{
	free(a->page_text);
	a->page_text = text;
	a->page = PAGE_TEXT;
	a->page_top = 0;
}

void app_close(struct top_app *a)
{
	model_close(&a->m);
	processes_release(&a->p);
	free(a->part);
	free(a->title);
	free(a->page_text);
}

/* ---- time ---- */

static void go(struct top_app *a, int64_t time_ns)
{
	model_go(&a->m, time_ns);
	a->play = a->m.live ? PLAY_LIVE : PLAY_PAUSED;
}

static void step(struct top_app *a, int ticks)
{
	model_step(&a->m, ticks);
	a->play = a->m.live ? PLAY_LIVE : PLAY_PAUSED;
}

static void pause_or_play(struct top_app *a)
{
	if (a->play != PLAY_PAUSED) {
		a->m.time_ns = model_now(&a->m);
		a->m.live = false;
		a->play = PLAY_PAUSED;
	} else {
		a->play = a->m.time_ns >= model_end(&a->m) ? PLAY_LIVE : PLAY_ON;
		a->m.live = a->play == PLAY_LIVE;
	}
	a->m.news = true;
}

bool app_play(struct top_app *a)
{
	int64_t was = model_now(&a->m);

	if (a->play != PLAY_ON)
		return false;
	model_step(&a->m, 1);
	if (a->m.live)
		a->play = PLAY_LIVE;
	return model_now(&a->m) != was;
}

static bool parse_span(const char *text, double *ret)
{
	double sum = 0;

	if (parse_decimal(text, ret))
		return true;
	while (*text) {
		size_t number = strspn(text, "0123456789."), unit = strspn(text + number, "smhdu");
		char part[40];
		int64_t ns = 0;

		if (!number || !unit || number + unit >= sizeof(part))
			return false;
		memcpy(part, text, number + unit);
		part[number + unit] = 0;
		if (strspn(part, "0.") != number && parse_interval(part, &ns) < 0)
			return false;
		sum += (double)ns / 1e9;
		text += number + unit;
	}
	*ret = sum;
	return true;
}

/* By number, as they began; else by name, the next one after this moment, else the first. */
static bool phase_time(struct top_app *a, const char *name, int64_t *ret_ns)
{
	size_t node = model_main(&a->m);
	const struct run_events *e = model_events(&a->m, node);
	int64_t offset = node < a->m.nr ? a->m.node[node].offset_ns : 0;
	double now_s = (double)(model_now(&a->m) - offset) / 1e9;
	const struct run_event *found = NULL;
	uint64_t number;

	if (e && parse_u64(name, &number) && number && number <= e->nr_phases) {
		found = &e->phase[number - 1];
	} else {
		for (size_t i = 0; e && i < e->nr_phases && !(found && found->time_s > now_s); i++)
			if (!strcmp(e->phase[i].label, name) && (!found || e->phase[i].time_s > now_s))
				found = &e->phase[i];
	}
	if (!found) {
		app_say(a,
			e && e->nr_phases ? "there is no phase '%s' (there are %zu)"
					  : "the job told of no phases",
			name, e ? e->nr_phases : 0);
		return false;
	}
	*ret_ns = round_i64(found->time_s * 1e9) + offset;
	/* The first tick in it. */
	for (size_t i = 0, n = node < a->m.nr && a->m.node[node].main ? a->m.node[node].main->nr_points : 0;
		i < n; i++) {
		int64_t at = reading_point(a->m.node[node].main, i)->time_ns + offset;

		if (at >= *ret_ns && at - *ret_ns < 10 * NSEC_PER_SEC) {
			*ret_ns = at;
			break;
		}
	}
	return true;
}

bool app_parse_time(struct top_app *a, const char *text, int64_t *ret_ns)
{
	double value;
	size_t len = strlen(text);

	text += strspn(text, " ");
	len = strlen(text);
	if (str_starts(text, "phase "))
		return phase_time(a, text + 6 + strspn(text + 6, " "), ret_ns);
	if (len > 1 && text[len - 1] == '%') {
		char number[40];

		snprintf(number, sizeof(number), "%.*s", (int)MIN(len - 1, (size_t)30), text);
		if (parse_decimal(number, &value) && value <= 100) {
			*ret_ns = round_i64((double)model_end(&a->m) * value / 100);
			return true;
		}
	} else if ((*text == '-' || *text == '+') && parse_span(text + 1, &value)) {
		*ret_ns = add_clamped(model_now(&a->m), round_i64((*text == '-' ? -value : value) * 1e9));
		return true;
	} else if (len && parse_span(text, &value)) {
		*ret_ns = round_i64(MIN(value, 9e9) * 1e9);
		return true;
	}
	app_say(a, "'%s' is no time: 5m, 1m30s, -30s, +10s, 50%%, phase 3, phase NAME", text);
	return false;
}

/* ---- prompts ---- */

static void ask(struct top_app *a, enum app_prompt prompt, const char *preset)
{
	a->prompt = prompt;
	snprintf(a->text, sizeof(a->text), "%s", preset);
	a->text_len = strlen(a->text);
}

static void search(struct top_app *a, const char *text, uint32_t after)
{
	uint32_t at = *text ? processes_search(&a->p, text, after) : a->p.nr_shown;

	if (at >= a->p.nr_shown)
		return;
	a->row = at;
	a->id = a->p.line[a->p.shown[at]].id;
}

/* While it is typed: search and filter show at once what they find. */
static void typed(struct top_app *a)
{
	if (a->prompt == PROMPT_SEARCH)
		search(a, a->text, a->row ? a->row - 1 : a->p.nr_shown ? a->p.nr_shown - 1 : 0);
	if (a->prompt == PROMPT_FILTER)
		snprintf(a->p.filter, sizeof(a->p.filter), "%.79s", a->text);
}

static int signal_of(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} row[] = {{"TERM", SIGTERM}, {"INT", SIGINT}, {"KILL", SIGKILL}, {"STOP", SIGSTOP},
		{"CONT", SIGCONT}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"QUIT", SIGQUIT}};

	if (str_starts(text, "SIG"))
		text += 3;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(row[i].name, text))
			return row[i].number;
	return 0;
}

static enum app_act prompt_done(struct top_app *a)
{
	enum app_prompt prompt = a->prompt;
	int64_t at;

	a->prompt = PROMPT_NONE;
	switch (prompt) {
	case PROMPT_SEARCH:
		snprintf(a->searched, sizeof(a->searched), "%.79s", a->text);
		break;
	case PROMPT_USER:
		snprintf(a->p.user, sizeof(a->p.user), "%.39s", a->text);
		break;
	case PROMPT_TIME:
		if (*a->text && app_parse_time(a, a->text, &at))
			go(a, at);
		break;
	case PROMPT_MARK:
		return *a->text ? ACT_MARK : ACT_NONE;
	case PROMPT_KEEP:
		return ACT_KEEP;
	case PROMPT_KILL:
		a->kill_signal = signal_of(a->text);
		if (!a->kill_signal)
			app_say(a,
				"no signal was sent: '%s' is none of TERM, INT, KILL, STOP, CONT, HUP, USR1, "
				"USR2, QUIT",
				a->text);
		return a->kill_signal ? ACT_KILL : ACT_NONE;
	default:
		break;
	}
	return ACT_NONE;
}

static enum app_act prompt_key(struct top_app *a, const struct key_event *e)
{
	if (e->key == KEY_ESC || (e->key == KEY_CTRL && (e->code == 'c' || e->code == 'g'))) {
		if (a->prompt == PROMPT_FILTER)
			*a->p.filter = 0;
		a->prompt = PROMPT_NONE;
	} else if (e->key == KEY_ENTER) {
		return prompt_done(a);
	} else if (e->key == KEY_CTRL && e->code == 'u') {
		*a->text = 0;
		a->text_len = 0;
		typed(a);
	} else if (e->key == KEY_BACKSPACE) {
		while (a->text_len && (a->text[--a->text_len] & 0xc0) == 0x80)
			;
		a->text[a->text_len] = 0;
		typed(a);
	} else if (e->key == KEY_CHAR && !e->alt && a->text_len + 5 < sizeof(a->text)) {
		uint32_t c = e->code;
		char *to = a->text + a->text_len;

		if (c < 0x80) {
			*to++ = (char)c;
		} else if (c < 0x800) {
			*to++ = (char)(0xc0 | c >> 6);
			*to++ = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
			*to++ = (char)(0x80 | (c >> 6 & 0x3f));
			*to++ = (char)(0x80 | (c & 0x3f));
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
			*to++ = (char)(0x80 | (c >> 6 & 0x3f));
			*to++ = (char)(0x80 | (c & 0x3f));
		}
		*to = 0;
		a->text_len = (size_t)(to - a->text);
		typed(a);
	}
	return ACT_NONE;
}

/* ---- the list ---- */

static void order_by(struct top_app *a, enum process_order_by by)
{
	if (a->p.by == by && (!a->p.tree || a->p.sorted))
		a->p.inverted = !a->p.inverted;
	else
		a->p.inverted = false;
	a->p.by = by;
	a->p.sorted = true;
	a->p.sort_now = true;
}

static void move(struct top_app *a, long rows)
{
	if (app_shows_nodes(a)) {
		long to = (long)a->node_row + rows;

		a->node_row = (size_t)MAX(MIN(to, (long)a->nr_parts - 1), 0L);
		return;
	}
	a->row = (uint32_t)MAX(MIN((long)a->row + rows, (long)a->p.nr_shown - 1), 0L);
	a->id = a->row < a->p.nr_shown ? a->p.line[a->p.shown[a->row]].id : 0;
}

static const struct process_line *chosen(const struct top_app *a)
{
	return a->row < a->p.nr_shown && !app_shows_nodes(a) ? &a->p.line[a->p.shown[a->row]] : NULL;
}

static void unfold_or_fold(struct top_app *a, bool fold)
{
	const struct process_line *l = chosen(a);

	if (app_shows_nodes(a))
		a->parts_fold = fold ? -1 : 1;
	if (l)
		processes_fold(&a->p, l->id, fold);
}

static void tag(struct top_app *a)
{
	const struct process_line *l = chosen(a);

	if (l)
		processes_tag(&a->p, l->id);
	move(a, 1);
}

static void zoom(struct top_app *a, bool longer)
{
	static const int64_t step_s[] = {
		30, 60, 120, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 86400, 7 * 86400};
	size_t i = 0;

	a->m.own_window = true;
	while (i + 1 < ARRAY_SIZE(step_s) && step_s[i] * NSEC_PER_SEC < a->m.window_ns)
		i++;
	if (longer && i + 1 < ARRAY_SIZE(step_s))
		i++;
	else if (!longer && i)
		i--;
	a->m.window_ns = MAX(MIN(step_s[i] * NSEC_PER_SEC, WINDOW_MOST), WINDOW_LEAST);
}

static enum app_act want_kill(struct top_app *a)
{
	const struct process_line *l = chosen(a);

	if (!a->can_kill)
		app_say(a, "no signals are sent without --allow-kill");
	else if (!l || l->ended)
		app_say(a, "choose a process that runs");
	else if (!a->m.live || model_is_over(&a->m))
		app_say(a, "a signal can be sent at the newest moment only: End goes there");
	else {
		a->kill_pid = l->pid;
		ask(a, PROMPT_KILL, "TERM");
	}
	return ACT_NONE;
}

/* ---- keys ---- */

static enum app_act page_key(struct top_app *a, const struct key_event *e)
{
	unsigned page = a->rows > 2 ? a->rows - 2 : 1;
	bool sort = a->page == PAGE_SORT;
	unsigned *at = sort ? &a->sort_row : &a->page_top;

	if (e->key == KEY_UP || (e->key == KEY_MOUSE && e->mouse == MOUSE_WHEEL_UP))
		*at -= *at > 0;
	else if (e->key == KEY_DOWN || (e->key == KEY_MOUSE && e->mouse == MOUSE_WHEEL_DOWN))
		++*at;
	else if (e->key == KEY_PAGE_UP)
		*at -= MIN(*at, page);
	else if (e->key == KEY_PAGE_DOWN || (e->key == KEY_CHAR && e->code == ' '))
		*at += page;
	else if (sort && e->key == KEY_ENTER) {
		order_by(a, (enum process_order_by)MIN(a->sort_row, NR_BY - 1u));
		a->page = PAGE_MAIN;
	} else if (e->key != KEY_MOUSE) {
		a->page = PAGE_MAIN;
	}
	a->sort_row = MIN(a->sort_row, NR_BY - 1u);
	return ACT_NONE;
}

static enum app_act mouse(struct top_app *a, const struct key_event *e)
{
	if (e->mouse == MOUSE_WHEEL_UP || e->mouse == MOUSE_WHEEL_DOWN) {
		move(a, e->mouse == MOUSE_WHEEL_UP ? -3 : 3);
		return ACT_NONE;
	}
	if (a->bar_columns && e->row == a->bar_row && e->column >= a->bar_column &&
		e->column < a->bar_column + a->bar_columns && e->mouse != MOUSE_RELEASE) {
		go(a, (int64_t)((double)model_end(&a->m) * (e->column - a->bar_column + 1) / a->bar_columns));
		return ACT_NONE;
	}
	if (e->mouse != MOUSE_PRESS)
		return ACT_NONE;
	for (unsigned i = 0; i < a->nr_heads && e->row == a->head_row; i++)
		if (e->column >= a->head[i].column && e->column <= a->head[i].column + a->head[i].columns) {
			order_by(a, a->head[i].by);
			return ACT_NONE;
		}
	if (e->row >= a->list_row && e->row < a->list_row + a->list_rows) {
		uint32_t at = a->top + (e->row - a->list_row);

		if (app_shows_nodes(a))
			a->node_row = MIN((size_t)at, MAX(a->nr_parts, (size_t)1) - 1);
		else if (at < a->p.nr_shown) {
			a->row = at;
			a->id = a->p.line[a->p.shown[at]].id;
		}
	}
	return ACT_NONE;
}

static void change_order(struct top_app *a, int by)
{
	int next = ((int)a->p.by + by + NR_BY) % NR_BY;

	a->p.by = (enum process_order_by)next;
	a->p.sorted = a->p.sort_now = true;
}

static void escape(struct top_app *a)
{
	*a->p.filter = *a->p.user = 0;
	a->follows = false;
}

static enum app_act letter_of_list(struct top_app *a, uint32_t c)
{
	switch (c) {
	case '/':
		ask(a, PROMPT_SEARCH, "");
		break;
	case 'n':
		search(a, a->searched, a->row);
		break;
	case '\\':
		ask(a, PROMPT_FILTER, a->p.filter);
		break;
	case 'u':
		ask(a, PROMPT_USER, a->p.user);
		break;
	case 't':
		a->p.tree = !a->p.tree;
		a->p.sort_now = true;
		break;
	case '<':
	case ',':
		change_order(a, -1);
		break;
	case '>':
	case '.':
		change_order(a, 1);
		break;
	case 'I':
		a->p.inverted = !a->p.inverted;
		a->p.sorted = a->p.sort_now = true;
		break;
	case 'P':
		order_by(a, BY_CPU);
		break;
	case 'M':
		order_by(a, BY_MEMORY);
		break;
	case 'T':
		order_by(a, BY_TIME);
		break;
	case 'F':
		a->follows = !a->follows;
		break;
	case 'H':
		a->p.threads = app_shows_threads(a) ? -1 : 1;
		break;
	case 'c':
		a->p.full_commands = !a->p.full_commands;
		break;
	case ' ':
		tag(a);
		break;
	case 'U':
		idmap_clear(&a->p.tagged);
		break;
	case '+':
	case '=':
	case '-':
		unfold_or_fold(a, c == '-');
		break;
	case 'x':
		a->ended = !app_shows_ended(a);
		a->ended_by_itself = false;
		a->ended_share = 0;
		break;
	case 'k':
		return want_kill(a);
	default:
		break;
	}
	return ACT_NONE;
}

static enum app_act letter(struct top_app *a, uint32_t c)
{
	switch (c) {
	case 'q':
		return ACT_QUIT;
	case '?':
	case 'h':
		a->page = PAGE_HELP;
		a->page_top = 0;
		break;
	case 'Z':
		pause_or_play(a);
		break;
	case 'j':
		ask(a, PROMPT_TIME, "");
		break;
	case 'i':
	case 'o':
		zoom(a, c == 'o');
		break;
	case 'g':
		model_next_focus(&a->m);
		break;
	case 'e':
		return ACT_EXPLAIN;
	case 'm':
		ask(a, PROMPT_MARK, "");
		break;
	case 'r':
		return ACT_REPORT;
	case 'w':
		if (a->can_keep)
			ask(a, PROMPT_KEEP, "");
		else
			app_say(a, "this recording is kept already");
		break;
	default:
		return letter_of_list(a, c);
	}
	return ACT_NONE;
}

/* The node or group of the chosen row. */
static void look_at_row(struct top_app *a)
{
	const struct part_row *p = a->node_row < a->nr_parts ? &a->part[a->node_row] : NULL;
	const struct top_reading *r = p && p->node < a->m.nr ? a->m.node[p->node].main : NULL;

	if (!p || !app_shows_nodes(a))
		return;
	if (p->group >= 0 && !(r && (unsigned)p->group < parts_nr(r->parts)))
		return;
	model_focus(&a->m, p->node, p->group < 0 ? NULL : parts_name(r->parts, (unsigned)p->group));
}

static enum app_act other_key(struct top_app *a, const struct key_event *e)
{
	long page = MAX((long)a->list_rows - 1, 1L);

	switch (e->key) {
	case KEY_UP:
	case KEY_DOWN:
		move(a, e->key == KEY_UP ? -1 : 1);
		break;
	case KEY_PAGE_UP:
	case KEY_PAGE_DOWN:
		move(a, e->key == KEY_PAGE_UP ? -page : page);
		break;
	case KEY_LEFT:
	case KEY_RIGHT:
		step(a, (e->key == KEY_LEFT ? -1 : 1) * (e->shift ? 10 : 1));
		break;
	case KEY_HOME:
		go(a, 0);
		break;
	case KEY_END:
		go(a, INT64_MAX);
		break;
	case KEY_ENTER:
		look_at_row(a);
		break;
	case KEY_ESC:
		escape(a);
		break;
	default:
		break;
	}
	if (e->key == KEY_F1)
		return letter(a, '?');
	if (e->key == KEY_F1 + 2)
		return letter(a, '/');
	if (e->key == KEY_F1 + 3)
		return letter(a, '\\');
	if (e->key == KEY_F1 + 4)
		return letter(a, 't');
	if (e->key == KEY_F1 + 5) {
		a->page = PAGE_SORT;
		a->sort_row = a->p.by;
	}
	return e->key == KEY_F1 + 9 ? ACT_QUIT : ACT_NONE;
}

enum app_act app_key(struct top_app *a, const struct key_event *e)
{
	a->m.news = true;
	if (e->key != KEY_MOUSE)
		*a->message = 0;
	if (a->prompt)
		return prompt_key(a, e);
	if (e->key == KEY_CTRL && e->code == 'c')
		return ACT_QUIT;
	if (e->key == KEY_CTRL && e->code == 'z')
		return ACT_STOP;
	if (e->key == KEY_CTRL && e->code == 'l')
		return ACT_NONE;
	if (a->page != PAGE_MAIN)
		return page_key(a, e);
	if (e->key == KEY_MOUSE)
		return mouse(a, e);
	if (e->key == KEY_CHAR && !e->alt)
		return letter(a, e->code);
	return other_key(a, e);
}
