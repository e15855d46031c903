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

#include <math.h>
#include <string.h>

struct node {
	struct account *account;
	struct tracker tracker;
	struct point head,
		last; /* the next point, and the one taken last (its amounts stay when all are gone) */
	bool has_head, begun;
	double start;	      /* of the recording, s after the run's */
	double offset, slope; /* CPU used = offset + slope x time, without the jumps over gaps */
};

struct nodes {
	struct node *node;
	uint32_t nr;
	uint32_t *heap, nr_heap; /* by time of head; only nodes that have one */
	struct tracker total;
	double offset, slope;
	int64_t level[NR_LEVELS];
	uint32_t level_nr[NR_LEVELS];
};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static double head_time(const struct node *n)
{
	return n->start + seconds(n->head.time_ns);
}

static double head_cpu(const struct node *n)
{
	return n->head.used_valid >> USED_CPU & 1 ? seconds(n->head.used[USED_CPU])
						  : seconds(n->last.used[USED_CPU]);
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

/* ---- the sum over nodes ---- */

static void total_levels(struct nodes *all, const struct point *p, int sign)
{
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		if (!(p->level_valid >> i & 1))
			continue;
		all->level[i] =
			(int64_t)((uint64_t)all->level[i] + (uint64_t)p->level[i] * (uint64_t)(int64_t)sign);
		all->level_nr[i] += (uint32_t)sign;
	}
}

/* The node's CPU use, `used` now, grows until its head: not at all when there is none, or a gap before it. */
static void total_grow(struct nodes *all, struct node *n, double time, double used)
{
	bool grows = n->has_head && !n->head.gap && head_time(n) > time;
	double slope = grows ? (head_cpu(n) - used) / (head_time(n) - time) : 0;
	double offset = n->offset + n->slope * time - slope * time;

	all->offset += offset - n->offset;
	all->slope += slope - n->slope;
	n->offset = offset;
	n->slope = slope;
}

static void total_point(struct nodes *all, double time)
{
	uint32_t valid = 0;

	for (unsigned i = 0; i < NR_LEVELS; i++)
		if (all->level_nr[i])
			valid |= UINT32_C(1) << i;
	tracker_cpu(&all->total, time, all->offset + all->slope * time, false);
	tracker_levels(&all->total, time, all->level, valid);
}

/* ---- one point ---- */

static void node_track(struct node *n)
{
	double time = seconds(n->head.time_ns);

	if (n->head.used_valid >> USED_CPU & 1)
		tracker_cpu(&n->tracker, time, seconds(n->head.used[USED_CPU]), n->head.gap);
	tracker_levels(&n->tracker, time, n->head.level, n->head.level_valid);
}

/* Takes the node's next event; 1 when another follows, 0 when that was its last. */
static int node_advance(struct nodes *all, struct node *n)
{
	double time = event_time(n), used = head_cpu(n);
	int r;

	if (!n->begun) {
		n->begun = true;
		total_grow(all, n, time, 0);
		total_point(all, time);
		return 1;
	}
	node_track(n);
	total_levels(all, &n->last, -1);
	total_levels(all, &n->head, 1);
	n->last = n->head;
	r = account_next(n->account, &n->head);
	if (r < 0)
		return r;
	n->has_head = r > 0;
	total_grow(all, n, time, used);
	total_point(all, time);
	if (!r)
		total_levels(all, &n->last, -1);
	return r;
}

/* ---- the walk ---- */

static int nodes_open(struct nodes *all, const struct run *run, struct buf *reterr)
{
	all->node = calloc(run->nr, sizeof(*all->node));
	all->heap = calloc(run->nr, sizeof(*all->heap));
	if (!all->node || !all->heap)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr; i++, all->nr++) {
		struct node *n = &all->node[i];
		int r = account_open(run->path[i], &n->account);

		if (r >= 0)
			r = account_next(n->account, &n->head);
		if (r < 0) {
			all->nr += n->account != NULL;
			buf_addf(reterr, "%s: %s", run->path[i], strerror(-r));
			return r;
		}
		n->has_head = r > 0;
	}
	return 0;
}

/* The start of the run, and how long after it each node began. */
static void nodes_align(struct nodes *all)
{
	int64_t first = INT64_MAX, start;
	double interval = 0;

	for (uint32_t i = 0; i < all->nr; i++)
		if (meta_num(account_meta(all->node[i].account), "start_wall_ns", &start) && start > 0)
			first = MIN(first, start);
	for (uint32_t i = 0; i < all->nr; i++) {
		struct node *n = &all->node[i];
		const struct meta *meta = account_meta(n->account);
		int64_t interval_ns = 0;

		if (meta_num(meta, "start_wall_ns", &start) && start > 0)
			n->start = seconds(start - first);
		meta_num(meta, "interval_ns", &interval_ns);
		interval_ns = MAX(interval_ns, 0);
		interval = MAX(interval, seconds(interval_ns));
		tracker_init(&n->tracker, seconds(interval_ns));
		/* Nothing was used at the beginning. An attached tree's use is counted from its first point.
		 */
		tracker_cpu(&n->tracker, 0, 0, false);
		if (n->has_head)
			heap_push(all, i);
	}
	tracker_init(&all->total, interval);
	tracker_cpu(&all->total, 0, 0, false);
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
	for (uint32_t i = 0; i < all->nr; i++)
		account_close(all->node[i].account);
	free(all->node);
	free(all->heap);
}

static int nodes_fill(struct nodes *all, const struct run *run, struct summary *s)
{
	int r = 0;

	if (all->nr == 1)
		return summary_fill(
			s, run->path[0], all->node[0].account, &all->node[0].last, &all->node[0].tracker);
	s->node = calloc(all->nr, sizeof(*s->node));
	if (!s->node)
		return -ENOMEM;
	for (uint32_t i = 0; i < all->nr && r >= 0; i++) {
		struct node *n = &all->node[i];

		s->nr_nodes++;
		r = summary_fill(&s->node[i], run->path[i], n->account, &n->last, &n->tracker);
	}
	return r < 0 ? r : summary_combine(s, &all->total);
}

int summary_read(const struct run *run, struct summary **ret, struct buf *reterr)
{
	struct nodes all = {0};
	struct summary *s = calloc(1, sizeof(*s));
	int r = s ? nodes_open(&all, run, reterr) : -ENOMEM;

	if (r >= 0) {
		nodes_align(&all);
		r = nodes_walk(&all);
	}
	if (r >= 0)
		r = nodes_fill(&all, run, s);
	nodes_close(&all);
	if (r < 0) {
		summary_free(s);
		if (!reterr->len)
			buf_addf(reterr, "cannot read: %s", strerror(-r));
		return r;
	}
	for (size_t i = 0; i < run->nr_skipped; i++)
		summary_note(s, "%s is not a recording", run->skipped[i]);
	*ret = s;
	return 0;
}
