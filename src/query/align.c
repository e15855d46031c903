/* Puts the recordings of a run on one clock: looks at the beginning of each, once for a run. */
#include "query/align.h"

#include "base/parallel.h"
#include "store/store.h"

#include <string.h>

struct aligning {
	const struct run *run;
	struct run_node *node; /* offset_ns: the wall clock, until all are known */
};

static int take_meta(struct run_node *n, const struct pairs *pairs)
{
	const struct pair *host = pairs_find(pairs, "host");

	pairs_get_num(pairs, "start_wall_ns", &n->offset_ns);
	pairs_get_num(pairs, "interval_ns", &n->interval_ns);
	if (!host)
		return 0;
	free(n->host);
	n->host = strndup(host->value, host->len);
	return n->host ? 0 : -ENOMEM;
}

static int look_ahead(void *arg, unsigned worker, size_t i)
{
	struct aligning *all = arg;
	struct run_node *n = &all->node[i];
	struct store_reader *reader = NULL;
	struct store_record record;
	int r = store_open(all->run->path[i], &reader);

	(void)worker;
	if (r < 0)
		return r;
	while ((r = store_next(reader, &record)) > 0 && record.type != STORE_TICK)
		if (record.type == STORE_META && (r = take_meta(n, record.pairs)) < 0)
			break;
	store_close(reader);
	if (r >= 0 && !n->host && !(n->host = strdup("")))
		r = -ENOMEM;
	return MIN(r, 0);
}

static int align(const struct run *run, struct run_node **ret, struct buf *reterr)
{
	struct aligning all = {.run = run, .node = calloc(run->nr + 1, sizeof(*all.node))};
	int64_t first = INT64_MAX;
	size_t at = 0;
	int r = all.node ? parallel_each(run->nr, look_ahead, &all, &at) : -ENOMEM;

	if (r < 0) {
		buf_addf(reterr, "%s: %s", all.node ? run->path[at] : "cannot read", strerror(-r));
		run_align_free(all.node, run->nr);
		return r;
	}
	for (size_t i = 0; i < run->nr; i++)
		if (all.node[i].offset_ns > 0)
			first = MIN(first, all.node[i].offset_ns);
	for (size_t i = 0; i < run->nr; i++) {
		struct run_node *n = &all.node[i];

		n->offset_ns = n->offset_ns > 0 ? n->offset_ns - first : 0;
		n->interval_ns = MAX(n->interval_ns, 0);
	}
	*ret = all.node;
	return 0;
}

static struct run_node *nodes_copy(const struct run_node *node, size_t nr)
{
	struct run_node *copy = calloc(nr + 1, sizeof(*copy));
	bool whole = copy;

	for (size_t i = 0; whole && i < nr; i++) {
		copy[i] = node[i];
		copy[i].host = strdup(node[i].host);
		whole = copy[i].host;
	}
	return whole ? copy : run_align_free(copy, nr);
}

int run_align(const struct run *run, struct run_node **ret, struct buf *reterr)
{
	int r = run->aligned && *run->aligned ? 0 : align(run, run->aligned ? run->aligned : ret, reterr);

	if (r < 0 || !run->aligned)
		return r;
	*ret = nodes_copy(*run->aligned, run->nr);
	return *ret ? 0 : -ENOMEM;
}

struct run_node *run_align_free(struct run_node *node, size_t nr)
{
	for (size_t i = 0; node && i < nr; i++)
		free(node[i].host);
	free(node);
	return NULL;
}
