/* Followers that begin at the end of each recording and know two of its ticks: the last one, and the one
 * before it, whose values no later tick changes. The least of all nodes is how far the run is told; one that
 * has been silent for three intervals does not hold the others. */
#include "serve/ticks.h"

#include "query/align.h"
#include "query/walk.h"

#include <string.h>
#include <time.h>

#define SILENT_INTERVALS 3
#define SILENT_LEAST (2 * NSEC_PER_SEC) /* files are written once a second */

struct ticks_node {
	struct walk *walk;
	int64_t offset_ns, interval_ns;
	int64_t last_ns, settled_ns; /* of the run; -1: none */
	int64_t came_ns;	     /* the last tick, by our clock */
	bool ended;
};

struct ticks {
	struct ticks_node *node;
	size_t nr;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int node_look(struct ticks_node *n)
{
	int r;

	while (n->walk && !n->ended && (r = walk_next(n->walk)) != WALK_WAIT) {
		if (r < 0)
			return r;
		if (r == 0) {
			n->ended = true;
			n->settled_ns = n->last_ns;
			break;
		}
		n->settled_ns = n->last_ns;
		n->last_ns = add_clamped(n->offset_ns, n->walk->time_ns);
		n->came_ns = now_ns();
	}
	/* Nothing will come: its memory is given back. */
	if (n->ended)
		n->walk = walk_close(n->walk);
	return 0;
}

static int node_open(struct ticks_node *n, const char *path)
{
	int r = walk_open(path, NULL, &n->walk);

	if (r >= 0)
		r = walk_seek(n->walk, INT64_MAX);
	if (r >= 0)
		r = walk_follow(n->walk, path);
	if (r >= 0)
		r = node_look(n);
	return r;
}

int ticks_open(const struct run *run, bool follow, struct ticks **ret, struct buf *reterr)
{
	struct ticks *t = calloc(1, sizeof(*t));
	struct run_node *align = NULL;
	int r = t ? run_align(run, &align, reterr) : -ENOMEM;

	if (r >= 0 && !(t->node = calloc(run->nr + 1, sizeof(*t->node))))
		r = -ENOMEM;
	for (; r >= 0 && t->nr < run->nr; t->nr++) {
		t->node[t->nr].offset_ns = align[t->nr].offset_ns;
		t->node[t->nr].interval_ns = align[t->nr].interval_ns;
		t->node[t->nr].last_ns = t->node[t->nr].settled_ns = -1;
		t->node[t->nr].came_ns = now_ns();
		r = follow ? node_open(&t->node[t->nr], run->path[t->nr]) : 0;
		if (r < 0)
			buf_addf(reterr, "%s: %s", run->path[t->nr], strerror(-r));
	}
	run_align_free(align, run->nr);
	if (r < 0) {
		ticks_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct ticks *ticks_close(struct ticks *t)
{
	for (size_t i = 0; t && t->node && i < t->nr; i++)
		walk_close(t->node[i].walk);
	if (t)
		free(t->node);
	free(t);
	return NULL;
}

static bool is_silent(const struct ticks_node *n, int64_t now)
{
	return !n->ended && now - n->came_ns > MAX(SILENT_INTERVALS * n->interval_ns, SILENT_LEAST);
}

static void sum_up(const struct ticks *t, struct ticks_now *ret)
{
	int64_t now = now_ns(), least = INT64_MAX, most = -1, came = 0;
	size_t silent = 0;

	for (size_t i = 0; i < t->nr; i++) {
		const struct ticks_node *n = &t->node[i];

		ret->nr_running += !n->ended;
		most = MAX(most, n->settled_ns);
		came = MAX(came, n->came_ns);
		if (n->interval_ns > 0 && !n->ended)
			ret->interval_ns =
				ret->interval_ns ? MIN(ret->interval_ns, n->interval_ns) : n->interval_ns;
		if (is_silent(n, now))
			silent++;
		else if (!n->ended)
			least = MIN(least, n->settled_ns);
	}
	ret->upto_ns = least == INT64_MAX ? most : least;
	ret->silent_s = (double)(now - came) / 1e9;
	ret->state = !ret->nr_running	    ? TICKS_ENDED
		: silent == ret->nr_running ? TICKS_SILENT
		: ret->upto_ns < 0	    ? TICKS_YOUNG
					    : TICKS_GROW;
}

int ticks_look(struct ticks *t, struct ticks_now *ret)
{
	int r = 0;

	*ret = (struct ticks_now){0};
	for (size_t i = 0; i < t->nr && r >= 0; i++)
		r = node_look(&t->node[i]);
	if (r >= 0)
		sum_up(t, ret);
	return r;
}

void ticks_told(struct ticks *t, size_t i, int64_t last_ns, int64_t settled_ns, bool ended)
{
	struct ticks_node *n = &t->node[i];

	if (last_ns > n->last_ns)
		n->came_ns = now_ns();
	n->last_ns = MAX(n->last_ns, last_ns);
	n->settled_ns = MAX(n->settled_ns, settled_ns);
	n->ended = ended;
}
