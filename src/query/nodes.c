/* The summary of a run: one recording, or those of several nodes.
 *
 * Each recording is read once, from its beginning to its end, by one of several threads, which then has a
 * file open and the processes of one recording in memory. What a recording held and used is put onto a grid
 * of the sampling interval (query/grid) and added to that of all nodes: so the peak of the sum over nodes is
 * exact on that grid, and what is kept of a node is its summary.
 */
#include "query/nodes.h"

#include "base/parallel.h"
#include "base/str.h"
#include "query/align.h"
#include "query/courses.h"
#include "query/events.h"
#include "query/grid.h"
#include "query/process_table.h"

#include <string.h>

/* Steps of the grids of groups, of which there can be many. */
#define GROUP_GRID_MOST (GRID_MOST / 8)
#define SHORTEST_STEP_NS INT64_C(1000000)
/* Of phases, that are kept of each of many recordings. */
#define REPETITIONS_LEAST 64

/* The order of levels on the grid: those of which there is more between ticks come first. */
/* clang-format off */
static const enum level grid_level[NR_LEVELS] = {
#define ROW(id, ...) LEVEL_##id,
	LEVELS_ALIVE(ROW) LEVELS_COUNTS(ROW) LEVELS_VIEWS(ROW) LEVELS_MEMORY(ROW)
#undef ROW
#define ROW(id, ...) LEVEL_##id##_ESTIMATED,
	LEVELS_SHARED(ROW)
#undef ROW
};
/* clang-format on */
#define GRID_TOPS 2

/* One line (the whole, or a group) of one recording. */
struct node_line {
	struct tracker tracker;
	struct amounts last; /* of the point before */
	struct grid_pen pen; /* of one of several recordings */
};

/* One recording while it is read. */
struct query_node {
	struct ledger *ledger;
	struct process_filling *filling; /* NULL: the processes are not wanted */
	struct phase_reading *phases;
	struct node_line *line;
	unsigned nr_lines;
	int64_t offset_ns; /* its start after the run's */
	int64_t time_ns;   /* of the point before */
	double interval;   /* nominal, s; 0: not known */
};

struct nodes {
	const struct run *run;
	struct summary *summary;
	bool alone; /* one recording, whose lines are those of the run */
	struct run_node *node;
	int64_t interval_ns; /* the longest */
	struct grid_shape whole, group;
	struct grid_totals of[PARALLEL_MOST]; /* by thread */
	struct process_table **processes;     /* by recording; NULL: not wanted */
	struct courses *courses;	      /* NULL: not wanted */
};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* In seconds and bytes. */
static double amount(const struct amounts *a, enum flow flow)
{
	return flow == FLOW_CPU ? seconds(a->used[flow_used[flow]]) : (double)a->used[flow_used[flow]];
}

static bool has_amount(const struct amounts *a, enum flow flow)
{
	return a->used_valid >> flow_used[flow] & 1;
}

/* ---- one recording ---- */

static int line_add(const struct nodes *all, struct query_node *n)
{
	struct node_line *line = reallocarray(n->line, n->nr_lines + 1, sizeof(*line));
	bool group = n->nr_lines;

	if (!line)
		return -ENOMEM;
	n->line = line;
	line += n->nr_lines++;
	*line = (struct node_line){0};
	/* A group is known from now on: it began with nothing after the last point. */
	tracker_init(&line->tracker, n->interval, all->alone || !group);
	tracker_begin(&line->tracker, seconds(n->time_ns));
	if (all->alone)
		return 0;
	return grid_pen_init(&line->pen, group ? &all->group : &all->whole, n->offset_ns, n->time_ns);
}

static void line_track(struct node_line *line, const struct amounts *now, double time, bool gap)
{
	if (has_amount(now, FLOW_CPU))
		tracker_cpu(&line->tracker, time, amount(now, FLOW_CPU), gap);
	for (unsigned k = FLOW_CPU + 1; k < NR_FLOWS; k++)
		if (has_amount(now, k))
			tracker_flow(&line->tracker, k, time, amount(now, k), gap);
	tracker_levels(&line->tracker, time, now->level, now->level_valid);
	if (now->has_between)
		tracker_between(&line->tracker, time, &now->between);
}

/* What was used over a gap is of no known time. */
static int line_put(struct node_line *line, const struct amounts *now, int64_t time_ns, bool gap)
{
	int64_t level[NR_LEVELS], flow[NR_FLOWS], top[GRID_TOPS];
	uint64_t valid = 0;

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		level[i] = now->level[grid_level[i]];
		valid |= (uint64_t)(now->level_valid >> grid_level[i] & 1) << i;
	}
	for (unsigned k = 0; k < NR_FLOWS; k++)
		flow[k] = gap || !has_amount(now, k)
			? 0
			: wrap_sub(now->used[flow_used[k]], line->last.used[flow_used[k]]);
	top[0] = MAX(now->between.processes, level[0]);
	top[1] = MAX(now->between.threads, level[1]);
	return grid_pen_tick(&line->pen, time_ns, level, valid, flow, now->has_between ? top : NULL);
}

static void keep_amounts(struct node_line *line, const struct amounts *now)
{
	struct amounts before = line->last;

	line->last = *now;
	for (unsigned k = 0; k < NR_FLOWS; k++)
		if (!has_amount(now, k))
			line->last.used[flow_used[k]] = before.used[flow_used[k]];
}

static int take_point(const struct nodes *all, struct query_node *n, const struct point *point)
{
	int r = 0;

	while (n->nr_lines < point->nr_lines && r >= 0)
		r = line_add(all, n);
	for (unsigned i = 0; i < n->nr_lines && r >= 0; i++) {
		struct node_line *line = &n->line[i];

		line_track(line, &point->line[i], seconds(point->time_ns), point->gap);
		if (!all->alone)
			r = line_put(line, &point->line[i], point->time_ns, point->gap);
		keep_amounts(line, &point->line[i]);
	}
	n->time_ns = point->time_ns;
	return r;
}

/* A recording that has no tick at all has no line yet; its summary tells why all is missing. */
static int node_fill(const struct nodes *all, struct query_node *n, const char *path, struct summary *s)
{
	int r = n->nr_lines ? 0 : line_add(all, n);

	if (r < 0)
		return r;
	r = summary_fill(s, path, n->ledger, &n->line[0].last, &n->line[0].tracker);
	s->group = n->nr_lines > 1 && r >= 0 ? calloc(n->nr_lines - 1, sizeof(*s->group)) : NULL;
	if (n->nr_lines > 1 && !s->group)
		return -ENOMEM;
	for (unsigned i = 1; i < n->nr_lines && r >= 0; i++) {
		s->nr_groups++;
		r = summary_fill_group(
			s, &s->group[i - 1], n->ledger, i, &n->line[i].last, &n->line[i].tracker);
	}
	return r;
}

static int node_add(const struct query_node *n, struct grid_totals *to)
{
	int r = 0;

	for (unsigned i = 0; i < n->nr_lines && r >= 0; i++)
		r = grid_totals_add(
			to, ledger_line(n->ledger, i).name, 0, &n->line[i].pen, n->line[i].tracker.active_s);
	return r;
}

static void node_close(struct query_node *n)
{
	ledger_close(n->ledger);
	process_filling_free(n->filling);
	phase_reading_free(n->phases);
	for (unsigned k = 0; k < n->nr_lines; k++) {
		tracker_release(&n->line[k].tracker);
		grid_pen_release(&n->line[k].pen);
	}
	free(n->line);
}

static int node_walk(struct nodes *all, struct query_node *n)
{
	struct point point;
	int64_t interval_ns = 0;
	int r;

	while ((r = ledger_next(n->ledger, &point)) > 0) {
		if (!n->nr_lines) { /* it is in the metadata, which is there with the first point */
			meta_num(ledger_meta(n->ledger), "interval_ns", &interval_ns);
			n->interval = seconds(MAX(interval_ns, 0));
		}
		r = take_point(all, n, &point);
		if (r >= 0)
			r = phase_reading_point(n->phases, &point);
		if (r < 0)
			break;
	}
	return r;
}

/* Of each recording: all of them are in memory in the end. */
static size_t repetitions_most(const struct nodes *all)
{
	return MAX((size_t)MOMENTS_MOST / all->run->nr, (size_t)REPETITIONS_LEAST);
}

static int node_read(void *arg, unsigned worker, size_t i)
{
	struct nodes *all = arg;
	struct query_node n = {.offset_ns = all->alone ? 0 : all->node[i].offset_ns};
	struct summary *s = all->alone ? all->summary : &all->summary->node[i];
	int r = ledger_open(all->run->path[i], &n.ledger);

	if (r >= 0)
		r = (n.phases = phase_reading_new(n.ledger, n.offset_ns, repetitions_most(all))) ? 0
												 : -ENOMEM;
	if (r >= 0 && all->processes)
		r = (n.filling = process_filling_new(n.ledger, (uint32_t)i)) ? 0 : -ENOMEM;
	if (r >= 0 && all->courses)
		r = process_filling_courses(n.filling, all->courses, n.offset_ns);
	if (r >= 0)
		r = node_walk(all, &n);
	if (r >= 0)
		r = node_fill(all, &n, all->run->path[i], s);
	if (r >= 0)
		r = phase_reading_finish(n.phases, &s->phases);
	if (r >= 0 && !all->alone)
		r = node_add(&n, &all->of[worker]);
	if (r >= 0 && all->processes)
		r = process_filling_finish(n.filling, n.ledger, worker, &all->processes[i]);
	node_close(&n);
	return r;
}

/* ---- the sum over nodes ---- */

static void track_step(struct tracker *t, const struct grid *g, size_t step, int64_t used[static NR_FLOWS])
{
	const int64_t *sum = grid_levels(g, step), *nr = grid_counts(g, step), *top = grid_tops(g, step);
	double time = seconds(grid_time_ns(g, step));
	int64_t level[NR_LEVELS];
	uint32_t valid = 0;

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		level[grid_level[i]] = sum[i];
		valid |= (uint32_t)(nr[i] > 0) << grid_level[i];
	}
	for (unsigned k = 0; k < NR_FLOWS; k++)
		used[k] = wrap_add(used[k], grid_flows(g, step)[k]);
	tracker_cpu(t, time, seconds(used[FLOW_CPU]), false);
	for (unsigned k = FLOW_CPU + 1; k < NR_FLOWS; k++)
		tracker_flow(t, k, time, (double)used[k], false);
	tracker_levels(t, time, level, valid);
	t->between_s = t->active_s;
	tracker_between(t, time, &(struct between){.processes = sum[0] + top[0], .threads = sum[1] + top[1]});
}

static bool is_empty(const struct grid *g, size_t step)
{
	const int64_t *cell = grid_levels(g, step);

	for (unsigned i = 0; i < 2 * g->shape->nr_levels + g->shape->nr_flows; i++)
		if (cell[i])
			return false;
	return true;
}

/* A group begins when it is first seen. */
static int total_track(struct grid_total *line, double interval, struct tracker *ret)
{
	int64_t used[NR_FLOWS] = {0};
	struct grid *g;
	size_t first = 0;
	int r = grid_sum_whole(&line->sum, &g);

	tracker_init(ret, interval, true);
	while (r >= 0 && line->name && first < g->nr && is_empty(g, first))
		first++;
	tracker_begin(ret, r >= 0 && first ? seconds(grid_time_ns(g, first - 1)) : 0);
	for (size_t i = first; r >= 0 && i < g->nr; i++)
		track_step(ret, g, i, used);
	ret->active_s = MAX(ret->active_s, line->active_s);
	return r;
}

/* Groups in the order of the recordings, and in each in its order. */
static int combine_groups(struct nodes *all, struct summary *s, double interval)
{
	int r = 0;

	for (size_t i = 0; i < s->nr_nodes; i++)
		for (size_t k = 0; k < s->node[i].nr_groups && r >= 0; k++) {
			const char *name = s->node[i].group[k].name;
			struct grid_total *line = NULL;
			struct tracker t;
			bool known = false;

			for (size_t j = 0; j < s->nr_groups; j++)
				known |= !strcmp(s->group[j].name, name);
			if (known)
				continue;
			r = grid_totals_line(&all->of[0], name, 0, &all->group, &line);
			if (r < 0)
				return r;
			r = total_track(line, interval, &t);
			if (r >= 0)
				r = summary_combine_group(s, name, &t);
			tracker_release(&t);
		}
	return r;
}

static int combine_phases(struct summary *s)
{
	const struct phases **of = calloc(s->nr_nodes, sizeof(const struct phases *));
	const char **host = calloc(s->nr_nodes, sizeof(const char *));
	int r = of && host ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->nr_nodes && r >= 0; i++) {
		of[i] = s->node[i].phases;
		host[i] = s->node[i].host;
	}
	if (r >= 0)
		r = phases_combine(of, host, s->nr_nodes, MOMENTS_MOST, &s->phases);
	free(of);
	free(host);
	return r;
}

static int combine(struct nodes *all)
{
	double interval = seconds(all->interval_ns);
	struct grid_total *whole = NULL;
	struct tracker t;
	int r = grid_totals_merge(all->of, PARALLEL_MOST);

	if (r >= 0) /* there is one, even if no recording has a tick */
		r = grid_totals_line(&all->of[0], NULL, 0, &all->whole, &whole);
	if (r < 0)
		return r;
	r = total_track(whole, interval, &t);
	if (r >= 0)
		r = summary_combine(all->summary, &t);
	tracker_release(&t);
	if (r >= 0)
		r = combine_phases(all->summary);
	return r < 0 ? r : combine_groups(all, all->summary, interval);
}

/* ---- the run ---- */

static int nodes_align(struct nodes *all, struct buf *reterr)
{
	int r = run_align(all->run, &all->node, reterr);

	for (size_t i = 0; r >= 0 && i < all->run->nr; i++)
		all->interval_ns = MAX(all->interval_ns, all->node[i].interval_ns);
	all->whole = (struct grid_shape){.step_ns = MAX(all->interval_ns, SHORTEST_STEP_NS),
		.most = GRID_MOST,
		.nr_levels = NR_LEVELS,
		.nr_flows = NR_FLOWS,
		.nr_tops = GRID_TOPS};
	all->group = all->whole;
	all->group.most = GROUP_GRID_MOST;
	return r;
}

static void nodes_close(struct nodes *all)
{
	grid_totals_release(all->of, PARALLEL_MOST);
	for (size_t i = 0; all->processes && i < all->run->nr; i++)
		process_table_free(all->processes[i]);
	free(all->processes);
	courses_free(all->courses);
	run_align_free(all->node, all->run->nr);
}

static int nodes_prepare(struct nodes *all, bool processes)
{
	size_t nr = all->run->nr;

	all->processes = processes ? calloc(nr, sizeof(*all->processes)) : NULL;
	if (!all->alone)
		all->summary->node = calloc(nr, sizeof(*all->summary->node));
	if ((processes && !all->processes) || (!all->alone && !all->summary->node))
		return -ENOMEM;
	all->summary->nr_nodes = all->alone ? 0 : nr;
	all->summary->of_run = all->run->about;
	return 0;
}

int summary_read_with_courses(const struct run *run, struct summary **ret,
	struct process_table **ret_processes, struct courses **ret_courses, struct buf *reterr)
{
	struct nodes all = {.run = run, .summary = calloc(1, sizeof(struct summary)), .alone = run->nr == 1};
	size_t at = run->nr;
	int r = all.summary ? nodes_prepare(&all, ret_processes) : -ENOMEM;

	if (r >= 0 && !all.alone)
		r = nodes_align(&all, reterr);
	else if (r >= 0 && run->about)
		r = run_align(run, &all.node, reterr);
	if (r >= 0 && ret_courses)
		r = courses_new(run, all.interval_ns, &all.courses);
	if (r >= 0)
		r = parallel_each(run->nr, node_read, &all, &at);
	if (r < 0 && at < run->nr)
		buf_addf(reterr, "%s: %s", run->path[at], strerror(-r));
	if (r >= 0 && !all.alone)
		r = combine(&all);
	if (r >= 0 && all.node)
		r = summary_of_run(all.summary, run, all.node);
	if (r >= 0 && ret_courses)
		r = courses_finish(all.courses);
	if (r >= 0 && ret_processes)
		r = process_tables_join(all.processes, run->nr, ret_processes);
	if (r >= 0 && ret_courses)
		*ret_courses = TAKE_PTR(all.courses);
	nodes_close(&all);
	if (r < 0) {
		summary_free(all.summary);
		if (!reterr->len)
			buf_addf(reterr, "cannot read: %s", strerror(-r));
		return r;
	}
	for (size_t i = 0; i < run->nr_skipped; i++)
		summary_note(all.summary, "left out: %s %s", run->skipped[i], run->skipped_why[i]);
	*ret = all.summary;
	return 0;
}

int summary_read_with_processes(
	const struct run *run, struct summary **ret, struct process_table **ret_processes, struct buf *reterr)
{
	return summary_read_with_courses(run, ret, ret_processes, NULL, reterr);
}

int summary_read(const struct run *run, struct summary **ret, struct buf *reterr)
{
	return summary_read_with_courses(run, ret, NULL, NULL, reterr);
}
