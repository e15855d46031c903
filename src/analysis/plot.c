/* Charts of any metrics.
 *
 * What is asked is checked first by opening the series, which names what is wrong with a question and what
 * was probably meant. Of more curves than there is room for, the largest keep their names and the rest become
 * one, by the metric's own fold; where that has no meaning they are left out and counted.
 * Many instances of a share (the CPUs of a large node) become a heat map instead, in which all have a row. */
#include "analysis/plot.h"

#include "base/str.h"
#include "query/length.h"
#include "query/process_table.h"
#include "query/series.h"
#include "query/told.h"
#include "text/words.h"
#include "analysis/analysis.h"
#include "analysis/axis.h"
#include "analysis/bands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Candidates for the highest curves: the processes of most CPU time, memory and I/O, so many times as wanted.
 */
#define CANDIDATES 4
#define HEAT_MOST 4096

struct maker {
	struct plot *p;
	const struct run *run;
	const struct plot_query *q;
	struct buf *reterr;
	struct curves_process *keep;
	size_t nr_keep;
	size_t *order;		 /* of the lines of one metric */
	bool whole;		 /* nothing of the run is left out */
	struct summary *summary; /* of it, where it knows a metric that is drawn; else NULL */
};

/* ---- the question ---- */

/* Some recording must know the metric in this shape. */
static int check_metric(const struct maker *m, const char *metric)
{
	struct series_query query = {.metric = &metric,
		.nr = 1,
		.rate = m->q->rate,
		.per_instance = m->q->per == PLOT_INSTANCE,
		.pid = m->q->pid ? m->q->pid : m->q->per == PLOT_PROCESS,
		.group = m->q->group};
	struct series *s = NULL;
	struct buf why;
	int r = -ENOENT;

	if (m->q->per == PLOT_GROUP || m->q->per == PLOT_USER)
		return 0; /* whether it can be told of them only the recording knows */
	for (size_t i = 0; i < m->run->nr; i++) {
		buf_init(&why, 1 << 16);
		r = series_open(m->run->path[i], &query, &s, &why);
		if (r < 0 && !m->reterr->len)
			buf_add(m->reterr, why.data, why.len);
		buf_release(&why);
		series_close(r < 0 ? NULL : s);
		if (r >= 0) {
			buf_reset(m->reterr);
			return 0;
		}
	}
	return r;
}

static int add_keep(struct maker *m, const struct process_row *row)
{
	struct curves_process *more;

	for (size_t i = 0; i < m->nr_keep; i++)
		if (m->keep[i].node == row->node && m->keep[i].id == row->id)
			return 0;
	more = ARRAY_ADD(m->keep, m->nr_keep);
	if (more)
		*more = (struct curves_process){row->node, row->id};
	return more ? 0 : -ENOMEM;
}

static int choose_processes(struct maker *m)
{
	static const enum process_order order[] = {ORDER_CPU, ORDER_RSS, ORDER_IO};
	struct process_table *t = NULL;
	int r = process_table_read(m->run, &t, m->reterr);

	for (size_t i = 0; r >= 0 && m->q->pid && i < t->nr; i++)
		if (round_i64(t->row[i].value[PROCESS_PID]) == m->q->pid && t->row[i].sampled)
			r = add_keep(m, &t->row[i]);
	if (r >= 0 && m->q->pid && !m->nr_keep) {
		buf_addf(m->reterr, "there is no process %lld in this run, or it was never sampled",
			(long long)m->q->pid);
		r = -ENOENT;
	}
	for (size_t k = 0; r >= 0 && !m->q->pid && k < ARRAY_SIZE(order); k++) {
		process_table_sort(t, order[k], false);
		for (size_t i = 0; r >= 0 && i < MIN(t->nr, CANDIDATES * m->q->top); i++)
			if (t->row[i].sampled)
				r = add_keep(m, &t->row[i]);
	}
	if (r >= 0 || t)
		process_table_free(t);
	return r;
}

static bool of_processes(const struct plot_query *q)
{
	return q->pid || q->per == PLOT_PROCESS;
}

/* Curves and events in one pass; and what the summary knows, where it knows any of it. */
static int read_all(struct maker *m, const struct curves_query *query, const struct curves_options *options)
{
	struct run_events_reading *events = NULL;
	struct curves_reading *curves = NULL;
	struct tour_guest guest[2];
	bool known = false;
	int r = curves_guest(m->run, query, m->q->nr, options, &curves, &guest[0], m->reterr);

	if (r >= 0)
		r = run_events_guest(m->run, options->from_s, options->to_s, &events, &guest[1], m->reterr);
	if (r >= 0)
		r = tour(m->run, guest, ARRAY_SIZE(guest), m->q->progress, "reading", m->reterr);
	if (r >= 0)
		r = curves_finish(curves, &m->p->curves);
	if (r >= 0)
		r = run_events_finish(events, &m->p->events);
	curves_reading_free(curves);
	run_events_reading_free(events);
	for (size_t i = 0; i < m->q->nr && m->whole && !of_processes(m->q) && !m->q->group; i++)
		known |= is_settled(m->q->metric[i]);
	return r >= 0 && known ? summary_read(m->run, &m->summary, m->reterr) : r;
}

static int ask(struct maker *m)
{
	static const enum curves_per per[] = {[PLOT_TOTAL] = CURVES_WHOLE,
		[PLOT_NODE] = CURVES_WHOLE,
		[PLOT_INSTANCE] = CURVES_INSTANCE,
		[PLOT_GROUP] = CURVES_GROUP,
		[PLOT_USER] = CURVES_USER,
		[PLOT_PROCESS] = CURVES_PROCESS};
	struct curves_query *query = calloc(m->q->nr, sizeof(*query));
	struct curves_options options = {.from_s = m->whole ? NAN : m->q->from_s,
		.to_s = m->whole ? NAN : m->q->to_s,
		.progress = m->q->progress};
	int r = query ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < m->q->nr; i++) {
		query[i] = (struct curves_query){.metric = m->q->metric[i],
			.per = of_processes(m->q) ? CURVES_PROCESS : per[m->q->per],
			.rate = m->q->rate,
			.group = m->q->group,
			.typed = true};
		r = check_metric(m, m->q->metric[i]);
	}
	if (r >= 0 && of_processes(m->q))
		r = choose_processes(m);
	options.keep = m->keep;
	options.nr_keep = m->nr_keep;
	if (r >= 0)
		r = read_all(m, query, &options);
	free(query);
	return r;
}

/* ---- one metric ---- */

static bool is_known(const struct curves_line *l)
{
	return !isnan(l->most);
}

static bool is_total(const struct curves_line *l)
{
	return l->counted_elsewhere || (l->name_len == 5 && !memcmp(l->name, "total", 5));
}

/* The lines of a metric that may be drawn, in `order`. */
static size_t lines_of(struct maker *m, unsigned query, size_t nr_lines)
{
	const struct curves *s = m->p->curves;
	size_t nr = 0;

	for (size_t i = 0; i < nr_lines; i++) {
		const struct curves_line *l = &s->line[i];

		if (l->query != query || !is_known(l) || (m->q->pid && l->others))
			continue;
		m->order[nr++] = i;
	}
	return nr;
}

/* How much of the picture a line fills. */
static double area_of(const struct curves *s, size_t line)
{
	const struct curves_line *l = &s->line[line];
	double sum = 0;

	for (size_t i = 0; i < s->node[l->node].nr_times; i++)
		sum += isnan(l->mean[i]) ? 0 : (double)l->mean[i];
	return sum * s->node[l->node].step_s;
}

struct rank {
	size_t line;
	double area, height;
};

/* The first `top` are, in turn, the one of the rest that fills most and the one that reaches highest: what
 * was there all the time, and what was there once and mattered then. A selection, since top is small. */
static int sort_top(const struct curves *s, size_t *order, size_t nr, size_t top)
{
	struct rank *rank = calloc(MAX(nr, (size_t)1), sizeof(*rank));

	if (!rank)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		rank[i] = s->line[order[i]].others
			? (struct rank){order[i], -INFINITY, -INFINITY}
			: (struct rank){order[i], area_of(s, order[i]), s->line[order[i]].most};
	for (size_t k = 0; k < MIN(top, nr); k++) {
		struct rank moved;
		size_t best = k;

		for (size_t i = k + 1; i < nr; i++)
			if (k % 2 ? rank[i].height > rank[best].height : rank[i].area > rank[best].area)
				best = i;
		moved = rank[best];
		memmove(&rank[k + 1], &rank[k], (best - k) * sizeof(*rank));
		rank[k] = moved;
	}
	for (size_t i = 0; i < nr; i++)
		order[i] = rank[i].line;
	free(rank);
	return 0;
}

/* "python 4711", "node1: eth0", "tree.cores: node1". */
static char *curve_name(struct maker *m, const struct curves_line *l, bool several)
{
	const struct curves_node *node = &m->p->curves->node[l->node];
	bool whole = m->q->per == PLOT_TOTAL && !m->q->pid;
	struct buf text;

	buf_init(&text, 1 << 16);
	if (several || whole)
		buf_adds(&text, m->p->curves->column[l->query].name);
	if (whole)
		return owned_text(&m->p->kept, &text);
	buf_adds(&text, text.len ? ": " : "");
	if (m->q->per == PLOT_NODE || (m->run->nr > 1 && *node->host)) {
		add_text(&text, node->host, strlen(node->host), LETTERS_UTF8);
		if (m->q->per != PLOT_NODE)
			buf_adds(&text, ": ");
	}
	if (m->q->per == PLOT_USER && l->name && strspn(l->name, "0123456789") == l->name_len)
		buf_adds(&text, "UID ");
	if (m->q->per != PLOT_NODE)
		add_text(&text, l->name ? l->name : "", l->name_len, LETTERS_UTF8);
	if (l->pid)
		buf_addf(&text, " %lld", (long long)l->pid);
	return owned_text(&m->p->kept, &text);
}

/* Whose line it is, as the summary has it; NULL: it has nothing of it. */
static const struct summary *part_of(const struct maker *m, const struct curves_line *l)
{
	const struct summary *s = m->summary;

	if (!s || m->q->per == PLOT_TOTAL)
		return s;
	if (m->q->per == PLOT_NODE)
		return s->nr_nodes ? &s->node[l->node] : s;
	for (size_t i = 0; m->q->per == PLOT_GROUP && m->run->nr == 1 && i < s->nr_groups; i++)
		if (strlen(s->group[i].name) == l->name_len &&
			!memcmp(s->group[i].name, l->name, l->name_len))
			return &s->group[i];
	return NULL;
}

static int curve_of(struct maker *m, struct curves_line *l, bool several, struct chart_curve *ret)
{
	const struct curves_node *node = &m->p->curves->node[l->node];
	const struct summary *part = part_of(m, l);
	struct stats_row row;

	if (part) {
		stats_of_summary(part, &row);
		curves_line_settle(l, m->p->curves->column[l->query].name, &row);
	}

	*ret = (struct chart_curve){.name = curve_name(m, l, several),
		.nr = node->nr_times,
		.time_s = node->time_s,
		.mean = l->mean,
		.low = l->low,
		.high = l->high,
		.average = l->average,
		.most = l->most,
		.held = told_is(m->p->curves->column[l->query].name)};
	return ret->name ? 0 : -ENOMEM;
}

/* ---- the others ---- */

static float folded(float a, float b, enum metric_fold fold)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return fold == FOLD_SUM ? a + b : MAX(a, b);
}

/* All lines of a node in order[from..nr) as one. Its highest point is that of the fold, as far as the points
 * tell. */
static int fold_others(struct maker *m, size_t from, size_t nr, uint32_t node, enum metric_fold fold,
	struct chart_curve *ret)
{
	const struct curves *s = m->p->curves;
	size_t n = s->node[node].nr_times, folded_lines = 0, known = 0;
	float *value = owned_take(&m->p->kept, malloc(3 * MAX(n, (size_t)1) * sizeof(*value)));
	double sum = 0, most = NAN;
	struct buf name;

	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < 3 * n; i++)
		value[i] = NAN;
	for (size_t k = from; k < nr; k++) {
		const struct curves_line *l = &s->line[m->order[k]];

		if (l->node != node || (is_total(l) && !l->others))
			continue;
		folded_lines++;
		for (size_t i = 0; i < n; i++) {
			value[i] = folded(value[i], l->mean[i], fold);
			value[n + i] = folded(value[n + i], l->low[i], fold);
			value[2 * n + i] = folded(value[2 * n + i], l->high[i], fold);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (isnan(value[i]))
			continue;
		known++;
		sum += value[i];
		most = isnan(most) ? (double)value[2 * n + i] : MAX(most, (double)value[2 * n + i]);
	}
	buf_init(&name, 1 << 16);
	buf_adds(&name, "others");
	if (m->run->nr > 1) {
		buf_adds(&name, ": ");
		add_text(&name, s->node[node].host, strlen(s->node[node].host), LETTERS_UTF8);
	}
	*ret = (struct chart_curve){.name = owned_text(&m->p->kept, &name),
		.nr = folded_lines ? n : 0,
		.time_s = s->node[node].time_s,
		.mean = value,
		.low = value + n,
		.high = value + 2 * n,
		.color = CHART_OTHERS,
		.average = known ? sum / (double)known : NAN,
		.most = most};
	return ret->name ? 0 : -ENOMEM;
}

/* ---- one chart ---- */

struct chart_work {
	struct chart *f;
	struct chart_curve *curve;
	size_t nr;
	size_t left_out;
};

static struct chart_curve *next_curve(struct chart_work *w)
{
	struct chart_curve *c = ARRAY_ADD(w->curve, w->nr);

	if (c)
		c->average = c->most = NAN;
	return c;
}

static int add_others(struct maker *m, struct chart_work *w, size_t from, size_t nr, enum metric_fold fold)
{
	int r = 0;

	if (fold != FOLD_SUM && fold != FOLD_MAX) {
		w->left_out += nr - from;
		return 0;
	}
	for (uint32_t node = 0; r >= 0 && node < m->run->nr; node++) {
		struct chart_curve *c = next_curve(w);

		r = c ? fold_others(m, from, nr, node, fold, c) : -ENOMEM;
		if (r >= 0 && !c->nr)
			w->nr--;
	}
	return r;
}

static int add_metric(struct maker *m, struct chart_work *w, unsigned query, bool several, size_t nr_lines)
{
	struct curves *s = m->p->curves;
	const struct curves_column *column = &s->column[query];
	size_t nr = lines_of(m, query, nr_lines), top = m->q->top;
	bool ranked = of_processes(m->q) || nr > top;
	bool heat = m->q->per == PLOT_INSTANCE && nr > top && column->unit == UNIT_RATIO && nr <= HEAT_MOST;
	int r = 0;

	if (m->q->per == PLOT_TOTAL && !m->q->pid && m->run->nr > 1) {
		int line = curves_combine(s, query, false);

		if (line < 0)
			return line;
		m->order[0] = (size_t)line;
		nr = 1;
	}
	if (heat) {
		w->f->form = CHART_HEAT;
		w->f->y_most = 1;
	} else if (ranked) {
		r = sort_top(s, m->order, nr, top);
	}
	for (size_t k = 0; r >= 0 && k < (heat ? nr : MIN(nr, top)); k++) {
		struct curves_line *l = &s->line[m->order[k]];
		struct chart_curve *c;

		if (heat && is_total(l))
			continue;
		c = next_curve(w);
		r = c ? curve_of(m, l, several, c) : -ENOMEM;
		if (c)
			c->color = l->others ? CHART_OTHERS : (uint32_t)(w->nr - 1);
	}
	if (r >= 0 && !heat && nr > top)
		r = add_others(m, w, top, nr, column->fold);
	return r;
}

static int say_unknown(struct maker *m, const struct curves_column *column)
{
	const char *why = column->why ? column->why : "nothing is known of it";
	struct process_table *t = NULL;
	struct buf text;
	int r;

	buf_init(&text, 1 << 16);
	if (m->q->per == PLOT_GROUP && process_table_read(m->run, &t, &text) >= 0 && !t->has_groups)
		why = "there are no groups of processes in this run";
	process_table_free(t);
	buf_reset(&text);
	buf_addf(&text, "%s: %s", column->name, why);
	r = texts_take(&m->p->note, &m->p->nr_notes, strdup((char *)text.data));
	buf_release(&text);
	return r;
}

/* The job's own numbers mean a thing each: what has no unit may still be a loss and a step. */
static bool same_axis(const struct curves_column *a, const struct curves_column *b)
{
	if (told_is(a->name) || told_is(b->name))
		return a == b;
	return a->unit == b->unit && a->per_second == b->per_second;
}

static int name_chart(struct maker *m, struct chart_work *w, unsigned first)
{
	const struct curves *s = m->p->curves;
	struct owned *kept = &m->p->kept;
	const struct curves_node *reduced = NULL;
	struct buf title;
	unsigned named = 0;

	buf_init(&title, 1 << 16);
	for (unsigned i = first; i < s->nr_columns; i++)
		if (s->column[i].known && same_axis(&s->column[first], &s->column[i]))
			buf_addf(&title, "%s%s", named++ ? ", " : "", s->column[i].name);
	if (named == 1)
		w->f->subtitle = s->column[first].help;
	if (named == 1 && w->nr == 1)
		w->f->subtitle = owned_printf(kept, "mean %s, max %s: %s",
			format_value(SHOWN, w->curve[0].average, w->f->unit, w->f->per_second),
			format_value(SHOWN, w->curve[0].most, w->f->unit, w->f->per_second),
			s->column[first].help);
	if (m->q->title && *m->q->title) {
		buf_reset(&title);
		add_text(&title, m->q->title, strlen(m->q->title), LETTERS_UTF8);
	}
	w->f->title = owned_text(kept, &title);
	w->f->id = owned_printf(kept, "plot-%u", first);
	for (size_t i = 0; i < s->nr_nodes && !reduced; i++)
		reduced = s->node[i].reduced ? &s->node[i] : NULL;
	w->f->footnote = reduced ? owned_printf(kept, "each point is %s: mean, with the range",
					   format_duration(SHOWN, reduced->step_s))
				 : "";
	if (w->left_out)
		w->f->footnote = owned_printf(kept, "%s%s%zu more curves are not drawn", w->f->footnote,
			reduced ? "; " : "", w->left_out);
	return w->f->title && !kept->failed ? 0 : -ENOMEM;
}

static void set_time(struct maker *m, struct chart *f)
{
	const struct curves *s = m->p->curves;

	f->from_s = isnan(m->q->from_s) ? 0 : m->q->from_s;
	f->to_s = f->from_s;
	for (size_t i = 0; i < m->run->nr; i++)
		f->to_s = MAX(f->to_s, s->node[i].end_s);
	if (!isnan(m->q->to_s))
		f->to_s = MAX(MIN(f->to_s, m->q->to_s), f->from_s);
}

static int make_chart(struct maker *m, unsigned first, size_t nr_lines)
{
	const struct curves *s = m->p->curves;
	struct chart *f = &m->p->chart[m->p->nr];
	struct chart_work w = {.f = f};
	unsigned nr = 0;
	int r = 0;

	*f = (struct chart){.form = m->q->stacked ? CHART_STACKED : CHART_LINES,
		.unit = s->column[first].unit,
		.per_second = s->column[first].per_second,
		.log = m->q->log,
		.y_most = NAN};
	for (unsigned i = first; i < s->nr_columns; i++)
		nr += s->column[i].known && same_axis(&s->column[first], &s->column[i]);
	for (unsigned i = first; r >= 0 && i < s->nr_columns; i++)
		if (s->column[i].known && same_axis(&s->column[first], &s->column[i]))
			r = add_metric(m, &w, i, nr > 1, nr_lines);
	if (r >= 0)
		r = name_chart(m, &w, first);
	set_time(m, f);
	f->nr_curves = w.nr;
	f->curve = owned_take(&m->p->kept, w.curve);
	if (r < 0 || (w.nr && !f->curve))
		return r < 0 ? r : -ENOMEM;
	m->p->nr++;
	return 0;
}

/* ---- phases and events ---- */

/* The same for all charts. */
static int add_events(struct maker *m)
{
	const struct run_events *from = m->p->events;
	struct chart_bands bands;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->p->nr; i++) {
		struct chart *c = &m->p->chart[i];

		if (!i || c->from_s != c[-1].from_s || c->to_s != c[-1].to_s)
			r = bands_make(from, bands_node(from), c->from_s, c->to_s, &m->p->kept, &bands);
		if (r < 0)
			break;
		chart_set_bands(c, &bands);
		chart_set_marks(c, from, -1, &m->p->kept);
	}
	return r < 0 || !m->p->kept.failed ? r : -ENOMEM;
}

/* ---- all of them ---- */

static int make_charts(struct maker *m)
{
	struct curves *s = m->p->curves;
	size_t nr_lines = s->nr_lines; /* without what is combined on the way */
	int r = 0;

	m->order = calloc(nr_lines + 1, sizeof(*m->order));
	m->p->chart = calloc(s->nr_columns, sizeof(*m->p->chart));
	if (!m->order || !m->p->chart)
		return -ENOMEM;
	for (unsigned i = 0; r >= 0 && i < s->nr_columns; i++) {
		bool drawn = false;

		if (!s->column[i].known) {
			r = say_unknown(m, &s->column[i]);
			continue;
		}
		for (unsigned k = 0; k < i; k++)
			drawn |= s->column[k].known && same_axis(&s->column[k], &s->column[i]);
		if (!drawn)
			r = make_chart(m, i, nr_lines);
	}
	if (r >= 0 && !m->p->nr) {
		buf_adds(m->reterr, m->p->nr_notes ? m->p->note[0] : "there is nothing to draw");
		r = -ENOENT;
	}
	return r;
}

int plot_make(const struct run *run, const struct plot_query *q, struct plot **ret, struct buf *reterr)
{
	struct plot *p = calloc(1, sizeof(*p));
	struct maker m = {.p = p, .run = run, .q = q, .reterr = reterr};
	double length = NAN;
	int r = p ? 0 : -ENOMEM;

	if (r >= 0 && !isnan(q->to_s))
		r = run_length(run, &length, reterr);
	m.whole = is_whole_run(q->from_s, q->to_s, length);
	if (r >= 0)
		r = ask(&m);

	if (r >= 0)
		r = make_charts(&m);
	if (r >= 0)
		r = add_events(&m);
	summary_free(m.summary);
	free(m.order);
	free(m.keep);
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		plot_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct plot *plot_free(struct plot *p)
{
	if (!p)
		return NULL;
	if (p->curves)
		curves_free(p->curves);
	if (p->events)
		run_events_free(p->events);
	owned_free(&p->kept);
	texts_free(p->note, p->nr_notes);
	free(p->chart);
	free(p);
	return NULL;
}
