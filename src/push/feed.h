/* One recording as points: its tables, cut into windows, with what is in them of each series. It follows a
 * recording that grows. */
#ifndef PUSH_FEED_H
#define PUSH_FEED_H

#include "push/sink.h"

struct feed_options {
	const struct push_name *names; /* NULL: `metric` */
	const char *const *metric;     /* as tables_options.metric; with them `names` is not used */
	size_t nr_metrics;
	enum tables_per per; /* EACH: of each instance */
	int64_t every_ns;
	bool rates, follow;
	double from_s, to_s; /* NAN: all */
	/* What was sent before of a table: rows up to there are passed over. INT64_MIN: nothing. */
	int64_t (*position)(const void *arg, const char *table);
	const void *position_arg;
	void (*forget)(void *own);
};

struct push_feed;

/* -EAGAIN: it has no schema yet. -ENOENT: no such metric. */
int feed_open(const char *path, unsigned node, const struct feed_options *o, struct push_feed **ret,
	struct buf *reterr);
struct push_feed *feed_close(struct push_feed *f);

/* A row of a table: its points, which stay until the next call. */
struct feed_row {
	const char *table; /* distinct for folded ones: "process/node" */
	int64_t time_ns;
	struct push_point *point;
	size_t nr;
};

/* 1: a row, in the order of time for each table; FEED_WAIT: no more yet; 0: the end. Negative errno. */
#define FEED_WAIT 2
int feed_next(struct push_feed *f, struct feed_row *ret);
const char *feed_host(const struct push_feed *f);
#endif
