/* A run is read twice: once to count, so that it is known which processes are worth a curve and whether there
 * are groups, and once for the curves themselves. Every panel's metrics become questions to one curves; the
 * same question is asked once, for all that need it. */
#include "analysis/analysis.h"

#include "base/str.h"
#include "analysis/charts_internal.h"
#include "analysis/finding.h"
#include "analysis/palette.h"
#include "analysis/rule.h"
#include "query/courses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES_DEFAULT 500
#define PROCESSES_MAX 4096
#define OWN_MAX 96   /* counters that were asked for, and 64 numbers of the job's own */
#define NOTABLE 0.05 /* of what the greatest process has */
/* Curves of so many recordings have all the points that the curves gives; of more, each has less of them. */
#define NODES_FULL 8
#define POINTS_LEAST 100
#define POINTS_MOST 2000

/* ---- a part of the work, as a part of the whole ---- */

struct analysis_stage {
	const struct progress *whole;
	double from, to;
};

static void tell_stage(void *arg, const char *what, double done)
{
	const struct analysis_stage *stage = arg;

	progress_tell(stage->whole, what, stage->from + done * (stage->to - stage->from));
}

/* ---- questions ---- */

struct analysis_plan {
	struct curves_query *query;
	size_t nr;
};

static int plan_query(struct analysis_plan *p, const struct curves_query *q)
{
	struct curves_query *grown;

	for (size_t i = 0; i < p->nr; i++)
		if (p->query[i].per == q->per && p->query[i].rate == q->rate &&
			!strcmp(p->query[i].metric, q->metric))
			return (int)i;
	grown = reallocarray(p->query, p->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->query = grown;
	p->query[p->nr] = *q;
	return (int)p->nr++;
}

/* Those of the findings stand in a row of their own, as they number them. */
static int plan_findings(struct analysis_plan *p, size_t *ret_first)
{
	/* one more for who asks for more */
	struct curves_query *grown = reallocarray(p->query, p->nr + nr_finding_queries + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->query = grown;
	*ret_first = p->nr;
	for (size_t i = 0; i < nr_finding_queries; i++)
		p->query[p->nr++] = finding_query[i];
	return 0;
}

static enum curves_per per_of(enum panel_shape shape)
{
	switch (shape) {
	case PANEL_INSTANCES:
	case PANEL_HEAT:
		return CURVES_INSTANCE;
	case PANEL_GROUPS:
	case PANEL_GROUPS_STACKED:
		return CURVES_GROUP;
	case PANEL_PROCESSES:
	case PANEL_PROCESSES_LINES:
	case PANEL_TIMELINE:
		return CURVES_PROCESS;
	case PANEL_LINES:
	case PANEL_STACKED:
		break;
	}
	return CURVES_WHOLE;
}

/* Whether its sum is wanted beside its parts. */
static bool wants_whole(const struct panel *row)
{
	return (row->shape == PANEL_INSTANCES && row->combined) || row->shape == PANEL_PROCESSES;
}

static int plan_panel(struct analysis_plan *plan, struct analysis_panel *p)
{
	const struct panel *row = p->row;
	struct curves_query q = {.rate = row->rate};

	for (unsigned i = 0; i < PANEL_METRICS; i++) {
		p->query[i] = p->whole[i] = -1;
		if (!row->metric[i])
			continue;
		q.metric = row->metric[i];
		q.per = per_of(row->shape);
		p->query[i] = plan_query(plan, &q);
		if (q.per == CURVES_WHOLE || wants_whole(row)) {
			q.per = CURVES_WHOLE;
			p->whole[i] = plan_query(plan, &q);
		}
		if (p->query[i] == -ENOMEM || p->whole[i] == -ENOMEM)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < PANEL_LEVELS; i++) {
		p->level[i] = row->level[i]
			? plan_query(plan, &(struct curves_query){.metric = row->level[i]})
			: -1;
		if (p->level[i] == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* ---- panels ---- */

static bool has_panel(const struct analysis *s, const char *metric)
{
	for (size_t i = 0; i < nr_panels; i++)
		for (unsigned k = 0; k < PANEL_METRICS; k++)
			if (panels[i].metric[k] && !strcmp(panels[i].metric[k], metric))
				return true;
	for (size_t i = 0; i < s->nr_own; i++)
		if (!strcmp(s->own[i].metric[0], metric))
			return true;
	return false;
}

/* Counters and formulas that the recording brings along: panels.c does not know them. */
static int own_panel(struct analysis *s, const struct summary_counter *c)
{
	struct panel *own = &s->own[s->nr_own];
	char *metric = NULL, *id = NULL, *title = NULL;

	if (asprintf(&metric, "perf.%s", c->name) < 0)
		return -ENOMEM;
	if (has_panel(s, metric)) {
		free(metric);
		return 0;
	}
	*own = (struct panel){.section = "perf", .shape = PANEL_LINES, .metric = {metric}, .rate = true};
	own->label[0] = metric + strlen("perf.");
	s->nr_own++;
	if (asprintf(&id, "perf-%s", c->name) < 0)
		return -ENOMEM;
	own->id = id;
	id_from(id);
	if (asprintf(&title, "%s %s", c->expression ? "Formula" : "Event", c->name) < 0)
		return -ENOMEM;
	own->title = title;
	return 0;
}

/* A number that the job tells. */
static int told_panel(struct analysis *s, const char *metric)
{
	struct panel *own = &s->own[s->nr_own];
	const char *key = metric + (str_starts(metric, "app.") ? 4 : 0);
	char *copy = strdup(metric), *id = NULL;

	if (!copy || asprintf(&id, "app-%s", key) < 0) {
		free(copy);
		return -ENOMEM;
	}
	id_from(id);
	*own = (struct panel){
		.section = "app", .shape = PANEL_LINES, .metric = {copy}, .id = id, .title = strdup(key)};
	own->label[0] = copy + (key - metric);
	s->nr_own++;
	return own->title ? 0 : -ENOMEM;
}

static int panels_take_own(struct analysis *s)
{
	s->own = calloc(OWN_MAX, sizeof(*s->own));
	if (!s->own)
		return -ENOMEM;
	for (size_t i = 0; i < s->summary->nr_counters && s->nr_own < OWN_MAX; i++) {
		int r = own_panel(s, &s->summary->counter[i]);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < s->summary->nr_told && s->nr_own < OWN_MAX; i++) {
		int r = told_panel(s, s->summary->told[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_wanted(const struct analysis *s, const struct panel *row)
{
	bool groups = s->summary->nr_groups > 0;

	return row->when == PANEL_ALWAYS || groups == (row->when == PANEL_WITH_GROUPS);
}

static int panels_plan(struct analysis *s, struct analysis_plan *plan)
{
	int r = panels_take_own(s);

	s->panel = calloc(nr_panels + OWN_MAX, sizeof(*s->panel));
	if (!s->panel)
		return -ENOMEM;
	for (size_t i = 0; i < nr_panels && r >= 0; i++) {
		if (!is_wanted(s, &panels[i]))
			continue;
		s->panel[s->nr_panels].row = &panels[i];
		r = plan_panel(plan, &s->panel[s->nr_panels++]);
	}
	for (size_t i = 0; i < s->nr_own && r >= 0; i++) {
		s->panel[s->nr_panels].row = &s->own[i];
		r = plan_panel(plan, &s->panel[s->nr_panels++]);
	}
	return r < 0 ? r : plan_findings(plan, &s->first_finding_query);
}

/* ---- which processes have curves ---- */

static int by_memory(const void *a, const void *b, void *arg)
{
	const struct process_table *t = arg;
	double x = t->row[*(const uint32_t *)a].value[PROCESS_RSS];
	double y = t->row[*(const uint32_t *)b].value[PROCESS_RSS];

	x = isnan(x) ? -1 : x;
	y = isnan(y) ? -1 : y;
	return x > y ? -1 : x < y;
}

struct picking {
	struct analysis *s;
	const uint32_t *memory; /* rows, of most memory first */
	bool *taken;
	double cpu_s, rss; /* what is worth a name */
};

static bool is_notable(const struct picking *p, const struct process_row *row)
{
	return row->value[PROCESS_CPU] >= p->cpu_s || row->value[PROCESS_RSS] >= p->rss;
}

/* The next of a list that is worth a curve and has none yet; false at its end. */
static bool pick_next(struct picking *p, const uint32_t *order, bool notable, size_t *at)
{
	const struct process_table *t = p->s->processes;

	for (; *at < t->nr; (*at)++) {
		uint32_t i = order ? order[*at] : (uint32_t)*at;

		if (p->taken[i] || !t->row[i].sampled || (notable && !is_notable(p, &t->row[i])))
			continue;
		p->taken[i] = true;
		p->s->keep_row[p->s->nr_keep] = i;
		p->s->keep[p->s->nr_keep++] =
			(struct curves_process){.node = t->row[i].node, .id = t->row[i].id};
		return true;
	}
	return false;
}

/* Of most CPU time and of most memory in turn. */
static void pick_all(struct picking *p, bool notable, size_t most)
{
	size_t cpu = 0, memory = 0;
	bool more = true;

	while (more && p->s->nr_keep < most) {
		more = pick_next(p, NULL, notable, &cpu);
		if (p->s->nr_keep < most)
			more |= pick_next(p, p->memory, notable, &memory);
	}
}

/* Those that are notable come first and have names and colours; where all fit into the palette, all have. */
static int keep_choose(struct analysis *s, size_t most)
{
	struct process_table *t = s->processes;
	_cleanup_(freep) uint32_t *order = calloc(t->nr + 1, sizeof(*order));
	_cleanup_(freep) bool *taken = calloc(t->nr + 1, sizeof(*taken));
	struct picking p = {.s = s, .memory = order, .taken = taken};

	most = MIN(most, t->nr);
	s->keep = calloc(most + 1, sizeof(*s->keep));
	s->keep_row = calloc(most + 1, sizeof(*s->keep_row));
	if (!order || !taken || !s->keep || !s->keep_row)
		return -ENOMEM;
	if (!t->nr)
		return 0;
	for (size_t i = 0; i < t->nr; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, t->nr, sizeof(*order), by_memory, t);
	p.cpu_s = t->row[0].value[PROCESS_CPU] * NOTABLE;
	p.rss = t->row[order[0]].value[PROCESS_RSS] * NOTABLE;
	pick_all(&p, true, most);
	s->nr_named = MIN(s->nr_keep, (size_t)PALETTE_SIZE);
	pick_all(&p, false, most);
	if (s->nr_keep <= PALETTE_SIZE && (s->nr_keep < most || most == t->nr))
		s->nr_named = s->nr_keep;
	return 0;
}

/* ---- reading ---- */

static uint32_t points_of(const struct analysis_options *o, size_t nr_nodes)
{
	size_t points = o->points ? o->points : POINTS_MOST;

	if (nr_nodes > NODES_FULL)
		points = MAX(points * NODES_FULL / nr_nodes, MIN(points, (size_t)POINTS_LEAST));
	return (uint32_t)points;
}

/* Panels may ask the same: what is combined already is taken from there. */
static bool combined_before(struct analysis *s, struct analysis_panel *p, unsigned k, int query)
{
	for (struct analysis_panel *other = s->panel; other < p; other++)
		for (unsigned i = 0; i < PANEL_METRICS; i++)
			if (other->nr_all[i] && (int)s->curves->line[other->all[i]].query == query) {
				p->all[k] = other->all[i];
				p->nr_all[k] = other->nr_all[i];
				return true;
			}
	return false;
}

int analysis_main_query(const struct analysis *s, const struct analysis_panel *p)
{
	for (unsigned k = p->row->peak ? p->row->peak - 1 : 0; k < PANEL_METRICS; k++)
		if (p->whole[k] >= 0 && s->curves->column[p->whole[k]].known)
			return p->whole[k];
	return -1;
}

static int combine_panel(struct analysis *s, struct analysis_panel *p)
{
	int query, at;

	for (unsigned k = 0; k < PANEL_METRICS; k++) {
		query = p->whole[k] >= 0 ? p->whole[k] : p->query[k];

		if (query < 0 || !s->curves->column[query].known)
			continue;
		if (!combined_before(s, p, k, query)) {
			at = curves_combine(s->curves, (unsigned)query, p->row->share);
			if (at == -ENOMEM)
				return at;
			if (at >= 0) {
				p->all[k] = (size_t)at;
				p->nr_all[k] = s->curves->nr_lines - (size_t)at;
			}
		}
	}
	query = analysis_main_query(s, p);
	p->mean = query < 0 ? -1 : curves_combine(s->curves, (unsigned)query, true);
	return p->mean == -ENOMEM ? -ENOMEM : 0;
}

int analysis_combine(struct analysis *s)
{
	int r = 0;

	for (size_t i = 0; i < s->nr_panels && r >= 0; i++) {
		s->panel[i].mean = -1;
		if (s->nr_nodes > 1 && s->panel[i].row->combined)
			r = combine_panel(s, &s->panel[i]);
	}
	return r;
}

static void set_range(struct analysis *s, const struct analysis_options *o)
{
	s->nr_nodes = s->curves->nr_nodes;
	s->nr_lines = s->curves->nr_lines;
	s->from_s = isnan(o->from_s) ? 0 : o->from_s;
	s->to_s = s->from_s;
	for (size_t i = 0; i < s->curves->nr_nodes; i++)
		if (s->curves->node[i].end_s > s->to_s)
			s->to_s = s->curves->node[i].end_s;
	s->part = !isnan(o->from_s) || !isnan(o->to_s);
	s->phase = o->phase && s->summary->phases ? phases_find(s->summary->phases, o->phase) : NULL;
	/* The last tick lies before the end of the range. */
	if (s->to_s > s->from_s && !isnan(o->to_s))
		s->to_s = MAX(s->to_s, MIN(o->to_s, figure_of(s->summary, FIG_WALL)));
}

static int read_counts(struct analysis *s, const struct analysis_options *o, struct buf *reterr)
{
	int r;

	progress_tell(o->progress, "counting", 0);
	r = summary_read_with_courses(s->run, &s->summary, &s->processes, &s->courses, reterr);
	if (r < 0)
		return r;
	process_table_sort(s->processes, ORDER_CPU, false);
	return keep_choose(s, MIN(o->processes ? o->processes : PROCESSES_DEFAULT, (size_t)PROCESSES_MAX));
}

/* Curves of the whole run beside those of a part: findings are of the whole run, whatever part of it is
 * drawn, and figures and curves must be of the same time. */
struct analysis_whole {
	struct analysis_plan plan;
	size_t first_finding_query;
	struct curves_reading *reading;
	struct curves *curves;
};

static bool is_part(const struct analysis_options *o)
{
	return !isnan(o->from_s) || !isnan(o->to_s);
}

static struct curves_options curves_of(const struct analysis *s, double from_s, double to_s, uint32_t points)
{
	return (struct curves_options){
		.from_s = from_s, .to_s = to_s, .points = points, .keep = s->keep, .nr_keep = s->nr_keep};
}

/* 1: there is a guest for the tour, 0: none is needed. */
static int whole_guest(const struct analysis *s, const struct analysis_options *o,
	struct analysis_whole *whole, struct tour_guest *ret_guest, struct buf *reterr)
{
	const struct curves_options options = curves_of(s, NAN, NAN, points_of(o, s->run->nr));
	int r;

	if (!is_part(o))
		return 0;
	r = plan_findings(&whole->plan, &whole->first_finding_query);
	if (r < 0)
		return r;
	whole->plan.query[whole->plan.nr] = finding_query[EV_PSS];
	whole->plan.query[whole->plan.nr++].per = CURVES_PROCESS; /* in which of them it grew */
	r = curves_guest(
		s->run, whole->plan.query, whole->plan.nr, &options, &whole->reading, ret_guest, reterr);
	return r < 0 ? r : 1;
}

/* All that is read for a report in its second pass. */
struct analysis_second {
	struct analysis_plan plan;
	struct run_events_reading *events;
	struct stats_reading *stats;
	struct curves_reading *curves;
	struct tour_guest guest[4];
	size_t nr;
};

static int second_begin(struct analysis *s, const struct analysis_options *o, struct analysis_second *b,
	struct analysis_whole *whole, struct buf *reterr)
{
	double to_s = isnan(o->to_s) && o->upto_ns ? analysis_behind_s(o->upto_ns) : o->to_s;
	const struct curves_options options = curves_of(s, o->from_s, to_s, points_of(o, s->run->nr));
	int r = panels_plan(s, &b->plan);

	if (r >= 0)
		r = curves_guest(
			s->run, b->plan.query, b->plan.nr, &options, &b->curves, &b->guest[b->nr++], reterr);
	if (r >= 0)
		r = run_events_guest(s->run, NAN, NAN, &b->events, &b->guest[b->nr++], reterr);
	if (r >= 0) {
		r = stats_guest(&(struct stats_input){s->run, s->summary, s->processes, s->courses},
			&b->stats, &b->guest[b->nr]);
		b->nr += r > 0;
	}
	if (r >= 0) {
		r = whole_guest(s, o, whole, &b->guest[b->nr], reterr);
		b->nr += r > 0;
	}
	return MIN(r, 0);
}

static int second_finish(struct analysis *s, struct analysis_second *b, struct analysis_whole *whole)
{
	int r = curves_finish(b->curves, &s->curves);

	if (r >= 0)
		r = run_events_finish(b->events, &s->events);
	if (r >= 0)
		r = stats_finish(b->stats, &s->stats);
	if (r >= 0 && whole->reading)
		r = curves_finish(whole->reading, &whole->curves);
	return r;
}

static int read_second(struct analysis *s, const struct analysis_options *o, struct analysis_whole *whole,
	struct buf *reterr)
{
	struct analysis_stage stage = {.whole = o->progress, .from = 0.4, .to = 1};
	const struct progress tell = {.tell = tell_stage, .arg = &stage};
	struct analysis_second b = {0};
	int r = second_begin(s, o, &b, whole, reterr);

	if (r >= 0)
		r = tour(s->run, b.guest, b.nr, &tell, "reading", reterr);
	if (r >= 0)
		r = second_finish(s, &b, whole);
	curves_reading_free(b.curves);
	curves_reading_free(whole->reading);
	run_events_reading_free(b.events);
	stats_reading_free(b.stats);
	s->courses = courses_free(s->courses);
	s->query = b.plan.query;
	s->nr_queries = b.plan.nr;
	free(whole->plan.query);
	if (r < 0)
		return r;
	set_range(s, o);
	r = analysis_combine(s);
	if (r >= 0 && !is_part(o))
		analysis_settle(s);
	return r;
}

static int find_all(struct analysis *s, const struct analysis_whole *whole)
{
	struct analysis of_all = *s;

	if (!whole->curves)
		return findings_make(s, &s->findings);
	of_all.curves = whole->curves;
	of_all.first_finding_query = whole->first_finding_query;
	return findings_make(&of_all, &s->findings);
}

/* A window that leaves nothing out is none: what the summary knows of the run holds for it. */
static struct analysis_options window_of(const struct analysis *s, const struct analysis_options *o)
{
	struct analysis_options window = *o;

	if (o->phase)
		o->phase_times(s->summary, o->phase, &window.from_s, &window.to_s);
	if (is_whole_run(window.from_s, window.to_s, figure_of(s->summary, FIG_WALL)))
		window.from_s = window.to_s = NAN;
	return window;
}

int analysis_read(const struct run *run, const struct analysis_options *options, struct analysis **ret,
	struct buf *reterr)
{
	struct analysis *s = calloc(1, sizeof(*s));
	struct analysis_whole whole = {0};
	struct analysis_options window;
	int r;

	if (!s)
		return -ENOMEM;
	s->run = run;
	r = read_counts(s, options, reterr);
	if (r >= 0) {
		window = window_of(s, options);
		r = read_second(s, &window, &whole, reterr);
	}
	if (r >= 0)
		r = find_all(s, &whole);
	curves_free(whole.curves);
	if (r < 0) {
		analysis_free(s);
		return r;
	}
	progress_tell(options->progress, "done", 1);
	*ret = s;
	return 0;
}

struct analysis *analysis_free(struct analysis *s)
{
	if (!s)
		return NULL;
	if (s->page) {
		curves_free(s->curves);
		run_events_free(s->events);
		free(s->panel);
		free(s);
		return NULL;
	}
	findings_free(s->findings);
	courses_free(s->courses);
	stats_free(s->stats);
	curves_free(s->curves);
	run_events_free(s->events);
	process_table_free(s->processes);
	summary_free(s->summary);
	for (size_t i = 0; i < s->nr_own; i++) {
		free((char *)s->own[i].id);
		free((char *)s->own[i].title);
		free((char *)s->own[i].metric[0]);
	}
	free(s->own);
	free(s->panel);
	free(s->keep);
	free(s->keep_row);
	free(s->query);
	free(s);
	return NULL;
}
