/* Time series: any metrics of one recording, recorded or derived, tick by tick, in memory that does not grow
 * with the recording's length. What is not known is NAN. */
#ifndef QUERY_SERIES_H
#define QUERY_SERIES_H

#include "base/buf.h"
#include "metric/metric.h"
#include "query/run.h"

#define SERIES_MAX 64

struct series_query {
	const char *const *metric;
	size_t nr;	     /* at most SERIES_MAX */
	bool rate;	     /* counters as growth per second */
	bool per_instance;   /* a line for each instance instead of their fold; all metrics are of one set */
	int64_t pid;	     /* only of this process; 0: of all */
	const char *group;   /* only of processes in this group, and of the group itself; NULL: of all */
	bool if_known;	     /* a metric that the recording does not have is left out */
	bool whole;	     /* read from the first tick on, whatever the range */
	bool near;	     /* what only the time before the range could tell is not known: never -EAGAIN */
	double from_s, to_s; /* on the run's time; 0: from the start, to the end */
};

struct series_column {
	const char *name, *help;
	enum metric_unit unit;
	bool per_second;
};

struct series_point {
	int64_t time_ns;
	const char *instance; /* with per_instance: its name, and for processes */
	size_t instance_len;
	int64_t pid;	     /* its PID, or 0 */
	const double *value; /* one for each column */
};

struct series;
struct walk;

/* -ENOENT: no such metric or group, -EINVAL: they do not go together, and others; reterr says what is wrong,
 * and for a misspelt metric which was probably meant. */
int series_open(const char *path, const struct series_query *q, struct series **ret, struct buf *reterr);
struct series *series_close(struct series *s);
/* Which of these metrics all recordings have. 0 or a negative errno. */
int series_known(const struct run *run, const char *const *metric, size_t nr, bool *ret, struct buf *reterr);
/* Of a walk that several share, and that the caller moves on and closes: after each tick series_tick(), then
 * series_more() until it has no point, and series_end() when the walk is over. 1 and a point, or 0. */
int series_open_on(struct walk *walk, const struct series_query *q, struct series **ret, struct buf *reterr);
int series_tick(struct series *s, struct series_point *ret); /* or a negative errno */
int series_more(struct series *s, struct series_point *ret);
int series_end(struct series *s, struct series_point *ret);
bool series_complete(const struct series *s); /* the recording has its end mark, and it was read */
size_t series_columns(const struct series *s, const struct series_column **ret);
const char *series_host(const struct series *s); /* "" when not known */
int64_t series_start(const struct series *s);	 /* wall clock, ns; 0: not known */
/* Its walk, for other observers: they see each record before the series has taken it in. */
struct walk;
struct walk *series_walk_of(struct series *s);
/* Before the first series_next(): only points of this time (of the recording's clock, both inclusive). What
 * is before it is not read where that makes no difference. */
int series_range(struct series *s, int64_t from_ns, int64_t to_ns);
/* The same of a file that grows, up to where its recorder ends; series_range() is called before, if at all.
 * `end`: from what is the end now on, for one whose values need no more than that. -ENOMEM. */
int series_follow(struct series *s, const char *path, bool end);
/* 1 and a point (valid until the next call), 0 at the end, negative when the file cannot be read. -EAGAIN
 * instead of the first point: it cannot be told without what was passed over (open it as a `whole`). Of one
 * that is followed SERIES_WAIT: no more yet; -ESTALE: another file has its name now, or it was cut. */
#define SERIES_WAIT 2
int series_next(struct series *s, struct series_point *ret);
#endif
