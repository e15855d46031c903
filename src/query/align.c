/* Puts the recordings of a run on one clock: looks at the beginning of each, once for a run. */
#include "query/align.h"

#include "base/parallel.h"
#include "store/store.h"

#include <string.h>

struct aligning {
	const struct run *run;
	struct run_node *node;
};

static int take_text(char **to, const struct pairs *pairs, const char *key)
{
	const struct pair *text = pairs_find(pairs, key);

	if (!text)
		return 0;
	free(*to);
	*to = strndup(text->value, text->len);
	return *to ? 0 : -ENOMEM;
}

static int take_meta(struct run_node *n, const struct pairs *pairs)
{
	int r = take_text(&n->host, pairs, "host");

	if (r >= 0)
		r = take_text(&n->job, pairs, "scheduler.job_id");
	if (r >= 0)
		r = take_text(&n->scheduler, pairs, "scheduler.kind");
	pairs_get_num(pairs, "start_wall_ns", &n->start_ns);
	pairs_get_num(pairs, "interval_ns", &n->interval_ns);
	return r;
}

/* What was not told is "". */
static int fill_texts(struct run_node *n)
{
	char **text[] = {&n->host, &n->job, &n->scheduler, &n->clock_why};

	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		if (!*text[i] && !(*text[i] = strdup("")))
			return -ENOMEM;
	return 0;
}

/* The recorder takes its first sample before it describes the job and what it may use: the first META behind
 * the first tick has the job's number. Where there is none, the second tick is far enough. */
static bool is_enough(const struct store_record *record, unsigned *ticks)
{
	bool enough = *ticks && (record->type == STORE_META || record->type == STORE_TICK);

	*ticks += record->type == STORE_TICK;
	return enough;
}

static int look_ahead(void *arg, unsigned worker, size_t i)
{
	struct aligning *all = arg;
	struct run_node *n = &all->node[i];
	struct store_reader *reader = NULL;
	struct store_record record;
	struct node_clock *clock = NULL;
	unsigned ticks = 0;
	struct buf why;
	int r = store_open(all->run->path[i], &reader);

	(void)worker;
	buf_init(&why, 1024);
	if (r >= 0)
		r = clock_open(all->run->path[i], &clock, &why);
	for (bool enough = false; r >= 0 && !enough && (r = store_next(reader, &record)) > 0;) {
		enough = is_enough(&record, &ticks);
		clock_record(clock, &record);
		if (record.type == STORE_META)
			r = take_meta(n, record.pairs);
	}
	n->clock = clock_found(clock);
	clock_close(clock);
	store_close(reader);
	if (r >= 0 && why.len && !(n->clock_why = strdup((char *)why.data)))
		r = -ENOMEM;
	buf_release(&why);
	if (r >= 0)
		r = fill_texts(n);
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
		if (all.node[i].start_ns > 0)
			first = MIN(first, all.node[i].start_ns);
	for (size_t i = 0; i < run->nr; i++) {
		struct run_node *n = &all.node[i];

		n->offset_ns = n->start_ns > 0 ? n->start_ns - first : 0;
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
		copy[i].job = strdup(node[i].job);
		copy[i].scheduler = strdup(node[i].scheduler);
		copy[i].clock_why = strdup(node[i].clock_why);
		whole = copy[i].host && copy[i].job && copy[i].scheduler && copy[i].clock_why;
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
	for (size_t i = 0; node && i < nr; i++) {
		free(node[i].host);
		free(node[i].job);
		free(node[i].scheduler);
		free(node[i].clock_why);
	}
	free(node);
	return NULL;
}
