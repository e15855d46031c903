/* Several recordings at the same pace.
 *
 * Each recording has points at times of its own. They are taken in the order of time (a heap of the
 * recordings' next points), so that the sum over nodes is known at every instant while each file is read
 * once, and memory does not depend on length. Levels hold from point to point. CPU use grows evenly between
 * two points of a node, so the sum over nodes is a broken line, kept as offset + slope x time: a point
 * changes one node's share of both, whatever the number of nodes. (Adding up stale totals instead would show
 * one node's whole interval as a burst at the instant of its sample.)
 *
 * Clocks: each recording says what the wall clock showed at its start; that is what relates them. */
#include "query/nodes.h"

#include "base/str.h"
#include "query/process_table.h"

#include <math.h>
#include <string.h>

/* One line (the whole, or a group) of one recording. */
struct node_line {
	struct tracker tracker;
	struct amounts head, last; /* of the next point, and of the one taken last */
	struct broken {
		double offset, slope;
	} flow[NR_FLOWS]; /* used = offset + slope x time, without the jumps over gaps */
	uint32_t total;	  /* the line of the run that it is added to */
};

struct node {
	struct account *account;
	struct process_filling *filling; /* NULL: nobody asked for the processes */
	struct node_line *line;
	unsigned nr_lines, nr_bound;
	int64_t head_ns;		  /* of the next point */
	bool has_head, gap, begun, alone; /* alone: its lines are those of the run */
	double start, interval;		  /* of the recording, s after the run's; nominal, 0: not known */
	double taken;			  /* time of the event taken last, s after the recording's start */
};

/* The same line of all recordings. */
struct total_line {
	char *name; /* NULL: the whole */
	struct tracker tracker;
	struct broken flow[NR_FLOWS];
	bool flows[NR_FLOWS]; /* known of some node */
	int64_t level[NR_LEVELS];
	uint32_t level_nr[NR_LEVELS];
};

struct nodes {
	struct node *node;
	uint32_t nr;
	uint32_t *heap, nr_heap; /* by time of head; only nodes that have one */
	struct total_line *line;
	uint32_t nr_lines;
	double interval, taken; /* time of the event taken last */
};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static double head_time(const struct node *n)
{
	return n->start + seconds(n->head_ns);
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

static double head_amount(const struct node_line *line, enum flow flow)
{
	return amount(has_amount(&line->head, flow) ? &line->head : &line->last, flow);
}

/* ---- the heap ---- */

/* A node's first event is its start. */
static double event_time(const struct node *n)
{
	return n->begun ? head_time(n) : n->start;
}

static bool earlier(const struct nodes *all, uint32_t a, uint32_t b)
{
	return event_time(&all->node[a]) < event_time(&all->node[b]);
}

static void heap_swap(struct nodes *all, uint32_t i, uint32_t j)
{
	uint32_t kept = all->heap[i];

	all->heap[i] = all->heap[j];
	all->heap[j] = kept;
}

static void heap_down(struct nodes *all, uint32_t i)
{
	for (;;) {
		uint32_t least = i;

		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < all->nr_heap; child++)
			if (earlier(all, all->heap[child], all->heap[least]))
				least = child;
		if (least == i)
			return;
		heap_swap(all, i, least);
		i = least;
	}
}

static void heap_push(struct nodes *all, uint32_t node)
{
	uint32_t i = all->nr_heap++;

	all->heap[i] = node;
	for (; i && earlier(all, all->heap[i], all->heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap_swap(all, i, (i - 1) / 2);
}

/* ---- lines ---- */

static int total_line_of(struct nodes *all, const char *name, uint32_t *ret)
{
	struct total_line *more;

	for (uint32_t i = 0; i < all->nr_lines; i++)
		if (name && all->line[i].name ? !strcmp(name, all->line[i].name)
					      : name == all->line[i].name) {
			*ret = i;
			return 0;
		}
	more = reallocarray(all->line, all->nr_lines + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	all->line = more;
	more += all->nr_lines;
	*more = (struct total_line){.name = name ? strdup(name) : NULL};
	if (name && !more->name)
		return -ENOMEM;
	tracker_init(&more->tracker, all->interval, all->nr > 1);
	tracker_begin(&more->tracker, all->taken);
	*ret = all->nr_lines++;
	return 0;
}

/* A group is known from now on: it began with nothing after the last point. */
static int node_line_add(struct node *n)
{
	struct node_line *line = reallocarray(n->line, n->nr_lines + 1, sizeof(*line));

	if (!line)
		return -ENOMEM;
	n->line = line;
	line += n->nr_lines++;
	*line = (struct node_line){0};
	tracker_init(&line->tracker, n->interval, n->alone || n->nr_lines == 1);
	tracker_begin(&line->tracker, n->taken);
	return 0;
}

/* Its new lines are added to those of the run. */
static int node_bind(struct nodes *all, struct node *n)
{
	int r = 0;

	for (; n->nr_bound < n->nr_lines && r >= 0; n->nr_bound++)
		r = total_line_of(
			all, account_line(n->account, n->nr_bound).name, &n->line[n->nr_bound].total);
	return r;
}

/* The node's next point becomes its head; 0 when there is none. */
static int node_next(struct node *n)
{
	struct point point;
	int r = account_next(n->account, &point);

	n->has_head = r > 0;
	if (r <= 0)
		return r;
	n->head_ns = point.time_ns;
	n->gap = point.gap;
	while (n->nr_lines < point.nr_lines) {
		r = node_line_add(n);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; i < point.nr_lines; i++)
		n->line[i].head = point.line[i];
	return 1;
}

/* ---- the sum over nodes ---- */

static void total_levels(struct total_line *total, const struct amounts *p, int sign)
{
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		if (!(p->level_valid >> i & 1))
			continue;
		total->level[i] = (int64_t)((uint64_t)total->level[i] +
			(uint64_t)p->level[i] * (uint64_t)(int64_t)sign);
		total->level_nr[i] += (uint32_t)sign;
	}
}

/* What the node uses grows until its head: not at all when there is none, or a gap before it. */
static void total_grow(
	struct total_line *total, const struct node *n, struct node_line *line, double time, enum flow flow)
{
	struct broken *now = &line->flow[flow];
	bool grows = n->has_head && !n->gap && head_time(n) > time;
	double slope =
		grows ? (head_amount(line, flow) - amount(&line->last, flow)) / (head_time(n) - time) : 0;
	double offset = now->offset + now->slope * time - slope * time;

	total->flow[flow].offset += offset - now->offset;
	total->flow[flow].slope += slope - now->slope;
	total->flows[flow] |= n->has_head && has_amount(&line->head, flow);
	*now = (struct broken){.offset = offset, .slope = slope};
}

static void total_point(struct total_line *total, double time)
{
	uint32_t valid = 0;

	for (unsigned i = 0; i < NR_LEVELS; i++)
		if (total->level_nr[i])
			valid |= UINT32_C(1) << i;
	tracker_cpu(&total->tracker, time, total->flow[FLOW_CPU].offset + total->flow[FLOW_CPU].slope * time,
		false);
	for (unsigned i = FLOW_CPU + 1; i < NR_FLOWS; i++)
		if (total->flows[i])
			tracker_flow(&total->tracker, i, time,
				total->flow[i].offset + total->flow[i].slope * time, false);
	tracker_levels(&total->tracker, time, total->level, valid);
}

/* ---- one point ---- */

static void node_track(struct node *n)
{
	double time = seconds(n->head_ns);

	for (unsigned i = 0; i < n->nr_lines; i++) {
		struct node_line *line = &n->line[i];

		if (has_amount(&line->head, FLOW_CPU))
			tracker_cpu(&line->tracker, time, amount(&line->head, FLOW_CPU), n->gap);
		for (unsigned k = FLOW_CPU + 1; k < NR_FLOWS; k++)
			if (has_amount(&line->head, k))
				tracker_flow(&line->tracker, k, time, amount(&line->head, k), n->gap);
		tracker_levels(&line->tracker, time, line->head.level, line->head.level_valid);
		if (line->head.has_between)
			tracker_between(&line->tracker, time, &line->head.between);
	}
}

/* Of several nodes: the others as they were last seen, and this one as it was at its fullest since. */
static void total_between(struct total_line *total, const struct node_line *line, double time)
{
	struct between b = line->last.between;

	b.processes += total->level[LEVEL_PROCESSES] - line->last.level[LEVEL_PROCESSES];
	b.threads += total->level[LEVEL_THREADS] - line->last.level[LEVEL_THREADS];
	b.active_ns = 0;
	total->tracker.between_s = MAX(total->tracker.active_s, line->tracker.active_s);
	tracker_between(&total->tracker, time, &b);
}

static void node_take(struct nodes *all, struct node *n)
{
	node_track(n);
	for (unsigned i = 0; i < n->nr_lines; i++) {
		struct node_line *line = &n->line[i];

		total_levels(&all->line[line->total], &line->last, -1);
		total_levels(&all->line[line->total], &line->head, 1);
		for (unsigned k = 0; k < NR_FLOWS; k++)
			if (!has_amount(&line->head, k))
				line->head.used[flow_used[k]] = line->last.used[flow_used[k]];
		line->last = line->head;
	}
	n->taken = seconds(n->head_ns);
}

/* Takes the node's next event; 1 when another follows, 0 when that was its last. */
static int node_advance(struct nodes *all, struct node *n)
{
	double time = event_time(n);
	int r = 1;

	if (n->begun) {
		node_take(all, n);
		r = node_next(n);
		if (r < 0 || node_bind(all, n) < 0)
			return MIN(r, -ENOMEM);
	}
	n->begun = true;
	for (unsigned i = 0; i < n->nr_lines; i++) {
		struct node_line *line = &n->line[i];
		struct total_line *total = &all->line[line->total];

		for (unsigned k = 0; k < NR_FLOWS; k++)
			total_grow(total, n, line, time, k);
		total_point(total, time);
		if (line->last.has_between)
			total_between(total, line, time);
		if (!r)
			total_levels(total, &line->last, -1);
	}
	all->taken = MAX(all->taken, time);
	return r;
}

/* ---- the walk ---- */

static int nodes_open(struct nodes *all, const struct run *run, bool processes, struct buf *reterr)
{
	all->node = calloc(run->nr, sizeof(*all->node));
	all->heap = calloc(run->nr, sizeof(*all->heap));
	if (!all->node || !all->heap)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr; i++, all->nr++) {
		struct node *n = &all->node[i];
		int r = account_open(run->path[i], &n->account);

		n->alone = run->nr == 1;
		if (r >= 0 && processes)
			r = (n->filling = process_filling_new(n->account, (uint32_t)i)) ? 0 : -ENOMEM;
		if (r >= 0)
			r = node_next(n);
		if (r < 0) {
			all->nr += n->account != NULL;
			buf_addf(reterr, "%s: %s", run->path[i], strerror(-r));
			return r;
		}
	}
	return 0;
}

/* The interval is in the metadata, which is there with the first point. */
static void node_pace(struct node *n)
{
	int64_t interval_ns = 0;

	meta_num(account_meta(n->account), "interval_ns", &interval_ns);
	n->interval = seconds(MAX(interval_ns, 0));
	for (unsigned i = 0; i < n->nr_lines; i++) {
		tracker_init(&n->line[i].tracker, n->interval, n->alone || !i);
		tracker_begin(&n->line[i].tracker, 0);
	}
}

/* The start of the run, and how long after it each node began. */
static int nodes_align(struct nodes *all)
{
	int64_t first = INT64_MAX, start;
	int r = 0;

	for (uint32_t i = 0; i < all->nr; i++)
		if (meta_num(account_meta(all->node[i].account), "start_wall_ns", &start) && start > 0)
			first = MIN(first, start);
	for (uint32_t i = 0; i < all->nr; i++) {
		struct node *n = &all->node[i];

		if (meta_num(account_meta(n->account), "start_wall_ns", &start) && start > 0)
			n->start = seconds(start - first);
		node_pace(n);
		all->interval = MAX(all->interval, n->interval);
		if (n->has_head)
			heap_push(all, i);
	}
	for (uint32_t i = 0; i < all->nr && r >= 0; i++)
		r = node_bind(all, &all->node[i]);
	return r;
}

static int nodes_walk(struct nodes *all)
{
	while (all->nr_heap) {
		int r = node_advance(all, &all->node[all->heap[0]]);

		if (r < 0)
			return r;
		if (!r)
			all->heap[0] = all->heap[--all->nr_heap];
		heap_down(all, 0);
	}
	return 0;
}

static void nodes_close(struct nodes *all)
{
	for (uint32_t i = 0; i < all->nr; i++) {
		account_close(all->node[i].account);
		process_filling_free(all->node[i].filling);
		for (unsigned k = 0; k < all->node[i].nr_lines; k++)
			tracker_release(&all->node[i].line[k].tracker);
		free(all->node[i].line);
	}
	for (uint32_t i = 0; i < all->nr_lines; i++) {
		tracker_release(&all->line[i].tracker);
		free(all->line[i].name);
	}
	free(all->line);
	free(all->node);
	free(all->heap);
}

/* A recording that has no tick at all has no line yet; its summary tells why all is missing. */
static int node_fill(struct node *n, const char *path, struct summary *s)
{
	int r = n->nr_lines ? 0 : node_line_add(n);

	if (r < 0)
		return r;
	r = summary_fill(s, path, n->account, &n->line[0].last, &n->line[0].tracker);
	s->group = n->nr_lines > 1 && r >= 0 ? calloc(n->nr_lines - 1, sizeof(*s->group)) : NULL;
	if (n->nr_lines > 1 && !s->group)
		return -ENOMEM;
	for (unsigned i = 1; i < n->nr_lines && r >= 0; i++) {
		s->nr_groups++;
		r = summary_fill_group(
			s, &s->group[i - 1], n->account, i, &n->line[i].last, &n->line[i].tracker);
	}
	return r;
}

static int nodes_fill(struct nodes *all, const struct run *run, struct summary *s)
{
	int r = 0;

	if (all->nr == 1)
		return node_fill(&all->node[0], run->path[0], s);
	s->node = calloc(all->nr, sizeof(*s->node));
	if (!s->node)
		return -ENOMEM;
	for (uint32_t i = 0; i < all->nr && r >= 0; i++) {
		s->nr_nodes++;
		r = node_fill(&all->node[i], run->path[i], &s->node[i]);
	}
	if (r >= 0)
		r = total_line_of(all, NULL, &(uint32_t){0}); /* no recording had a tick */
	if (r >= 0)
		r = summary_combine(s, &all->line[0].tracker);
	for (uint32_t i = 1; i < all->nr_lines && r >= 0; i++)
		r = summary_combine_group(s, all->line[i].name, &all->line[i].tracker);
	return r;
}

static int nodes_processes(struct nodes *all, struct process_table **ret)
{
	struct process_table *t = calloc(1, sizeof(*t));
	int r = t ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < all->nr && r >= 0; i++)
		r = process_table_take(t, all->node[i].filling, all->node[i].account);
	*ret = r < 0 ? process_table_free(t) : t;
	return r;
}

int summary_read_with_processes(
	const struct run *run, struct summary **ret, struct process_table **ret_processes, struct buf *reterr)
{
	struct nodes all = {0};
	struct summary *s = calloc(1, sizeof(*s));
	struct process_table *processes = NULL;
	int r = s ? nodes_open(&all, run, ret_processes, reterr) : -ENOMEM;

	if (r >= 0)
		r = nodes_align(&all);
	if (r >= 0)
		r = nodes_walk(&all);
	if (r >= 0)
		r = nodes_fill(&all, run, s);
	if (r >= 0 && ret_processes)
		r = nodes_processes(&all, &processes);
	nodes_close(&all);
	if (r < 0) {
		summary_free(s);
		if (!reterr->len)
			buf_addf(reterr, "cannot read: %s", strerror(-r));
		return r;
	}
	for (size_t i = 0; i < run->nr_skipped; i++)
		summary_note(s, "left out: %s %s", run->skipped[i], run->skipped_why[i]);
	*ret = s;
	if (ret_processes)
		*ret_processes = processes;
	return 0;
}

int summary_read(const struct run *run, struct summary **ret, struct buf *reterr)
{
	return summary_read_with_processes(run, ret, NULL, reterr);
}
