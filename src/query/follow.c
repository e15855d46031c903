/* Follows a run in progress, line by line: see follow.h. */
#include "query/follow.h"

#include "base/owned.h"
#include "query/arrivals.h"
#include "query/run.h"
#include "store/watch.h"

#include <string.h>
#include <sys/utsname.h>

enum node_state { NODE_YOUNG, NODE_OPEN, NODE_ENDED };

struct follow_node {
	char *path;
	enum node_state state;
	struct store_reader *reader; /* YOUNG: up to the first tick */
	struct store_watch watch;
	char *job;   /* NULL: not told */
	bool waited; /* it was not there at first, or had no tick: all of it is news */
	bool flat;   /* it may be of another job than the one that was asked for */
	struct series *series;
	bool caught_up; /* lines are given as they come */
	bool has_last;	/* before that: the newest so far */
	int64_t last_ns;
	double last[SERIES_MAX];
};

struct follow {
	struct follow_query query;
	struct follow_node *node;
	size_t nr, nr_foreign, at; /* foreign: of another job than the one that was asked for */
	struct arrivals *arrivals;
	const char *unfinished;
};

/* ---- which recordings ---- */

static int take_arrival(void *arg, const struct arrival *a)
{
	struct follow *f = arg;
	struct follow_node *more = ARRAY_ADD(f->node, f->nr);

	if (!more) {
		free(a->path);
		store_close(a->reader);
		return -ENOMEM;
	}
	*more = (struct follow_node){
		.path = a->path, .reader = a->reader, .waited = a->later, .flat = a->flat};
	return 0;
}

/* ---- one of them ---- */

static void node_end(struct follow *f, struct follow_node *n, bool complete)
{
	n->state = NODE_ENDED;
	if (!complete && !f->unfinished)
		f->unfinished = n->path;
	n->reader = store_close(n->reader);
}

static int node_open(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	bool end = !f->query.from_start && !n->waited;
	int r;

	n->reader = store_close(n->reader);
	r = series_open(n->path, &f->query.series, &n->series, reterr);
	if (r < 0)
		return r;
	if (f->query.from_start && f->query.from_s > 0)
		r = series_range(n->series, round_i64(MIN(f->query.from_s, 9e9) * 1e9), INT64_MAX);
	if (r >= 0)
		r = series_follow(n->series, n->path, end);
	n->caught_up = !end;
	n->state = NODE_OPEN;
	return r;
}

/* Is the recorder on this machine? */
static void take_meta(struct follow_node *n, const struct pairs *meta)
{
	const struct pair *host = pairs_find(meta, "host"), *job = pairs_find(meta, "scheduler.job_id");
	struct utsname self;

	if (job) {
		free(n->job);
		n->job = strndup(job->value, job->len);
	}
	if (host && uname(&self) == 0 && host->len == strlen(self.nodename))
		n->watch.local = !memcmp(self.nodename, host->value, host->len);
}

static bool is_foreign(const struct follow *f, const struct follow_node *n)
{
	return f->query.job && n->flat && (!n->job || strcmp(n->job, f->query.job));
}

/* Reads up to the first tick: then all is known that is wanted to begin. 1: it is open, FOLLOW_WAIT, 0: it
 * ended before. */
static int young_next(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	struct store_record record;
	int r;

	n->watch.path = n->path;
	if (n->waited) {
		r = store_watch(&n->watch, n->reader);
		if (r != WATCH_MORE)
			goto no_more;
	}
	do {
		while ((r = store_next(n->reader, &record)) > 0) {
			if (record.type == STORE_META)
				take_meta(n, record.pairs);
			if (record.type == STORE_TICK && is_foreign(f, n)) {
				f->nr_foreign++;
				node_end(f, n, true);
				return 0;
			}
			if (record.type == STORE_TICK) {
				r = node_open(f, n, reterr);
				return r < 0 ? r : 1;
			}
		}
		if (r >= 0)
			r = store_watch(&n->watch, n->reader);
	} while (r == WATCH_MORE);
no_more:
	n->waited = true;
	if (r == WATCH_END)
		node_end(f, n, store_reader_complete(n->reader));
	return r == WATCH_WAIT ? FOLLOW_WAIT : r;
}

static int line_of(const struct follow *f, const struct follow_node *n, int64_t time_ns, const double *value,
	struct follow_line *ret)
{
	*ret = (struct follow_line){
		.series = n->series, .node = (size_t)(n - f->node), .time_ns = time_ns, .value = value};
	return 1;
}

/* Something would have to be known that was passed over. */
static int node_open_whole(struct follow *f, struct follow_node *n, struct buf *reterr)
{
	struct follow_query as_asked = f->query;
	int r;

	n->series = series_close(n->series);
	f->query.series.whole = true;
	r = node_open(f, n, reterr);
	f->query = as_asked;
	return r;
}

/* 1 and a line, FOLLOW_WAIT, 0: it has ended. */
static int node_next(struct follow *f, struct follow_node *n, struct follow_line *ret, struct buf *reterr)
{
	const struct series_column *column;
	struct series_point point;
	int r = n->state == NODE_YOUNG ? young_next(f, n, reterr) : 1;

	if (r != 1)
		return r;
	while ((r = series_next(n->series, &point)) == 1 || r == -EAGAIN) {
		if (r == -EAGAIN) {
			r = node_open_whole(f, n, reterr);
			if (r < 0)
				return r;
			continue;
		}
		if (n->caught_up)
			return line_of(f, n, point.time_ns, point.value, ret);
		n->has_last = true;
		n->last_ns = point.time_ns;
		memcpy(n->last, point.value, series_columns(n->series, &column) * sizeof(*n->last));
	}
	if (r == 0)
		node_end(f, n, series_complete(n->series));
	if (r < 0)
		return r;
	n->caught_up = true;
	if (!n->has_last)
		return r;
	n->has_last = false;
	return line_of(f, n, n->last_ns, n->last, ret);
}

/* ---- all ---- */

int follow_next(struct follow *f, struct follow_line *ret, struct buf *reterr)
{
	bool waits = false;
	size_t nr;
	int r;

	for (size_t i = 0; i < f->nr; i++, f->at = (f->at + 1) % f->nr) {
		struct follow_node *n = &f->node[f->at];

		r = n->state == NODE_ENDED ? 0 : node_next(f, n, ret, reterr);

		if (r == -ESTALE)
			buf_addf(reterr, "%s was replaced or cut while it was followed", n->path);
		else if (r == -EMFILE || (r < 0 && !reterr->len))
			arrivals_trouble(n->path, r, reterr);
		if (r < 0 || r == 1)
			return r;
		waits |= r == FOLLOW_WAIT;
	}
	nr = f->nr;
	r = arrivals_look(f->arrivals, reterr);
	return r < 0 ? r : waits || f->nr > nr || f->nr == f->nr_foreign ? FOLLOW_WAIT : 0;
}

int follow_open(const char *const *path, size_t nr, const struct follow_query *q, struct follow **ret,
	struct buf *reterr)
{
	struct follow *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r >= 0) {
		f->query = *q;
		f->arrivals = arrivals_new(q->job, take_arrival, f);
		r = f->arrivals ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = arrivals_add(f->arrivals, path[i], reterr);
	if (r < 0) {
		follow_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct follow *follow_close(struct follow *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->nr; i++) {
		store_close(f->node[i].reader);
		series_close(f->node[i].series);
		free(f->node[i].path);
		free(f->node[i].job);
	}
	arrivals_free(f->arrivals);
	free(f->node);
	free(f);
	return NULL;
}

const char *follow_unfinished(const struct follow *f)
{
	return f->unfinished;
}

size_t follow_nr(const struct follow *f)
{
	return f->nr;
}
