/* A metric, recorded or derived, bound to a recording: an expression over its cells, and what computes it.
 *
 * AT_INSTANCE it has a value for each row (`rows`), which can be folded (query/split). AT_FOLD it has one
 * value for all instances that pass a filter (`whole`), computed from sums over them (`sums`), one tick late.
 */
#ifndef QUERY_COLUMN_H
#define QUERY_COLUMN_H

#include "base/expr.h"
#include "base/str.h"
#include "query/derived.h"
#include "query/walk.h"
#include "query/counter_sum.h"

struct column {
	const char *name, *help, *panel; /* panel may be NULL */
	enum metric_unit unit;
	enum metric_kind kind;
	enum metric_fold fold;
	bool per_second;
	struct expr expr;
	struct column_name {
		int set, col; /* -1: not recorded */
		struct scaling scaling;
		enum metric_fold fold;
		bool counter;	  /* summed steadily */
		bool of_children; /* of those that a process waited for */
	} arg[EXPR_NAMES];
	enum derived_at at;
	uint32_t set;	   /* AT_INSTANCE */
	uint64_t cols;	   /* of it, as a mask */
	int64_t window_ns; /* rates are over this time at least */
	bool plain;	   /* the rate of one recorded metric, and nothing else */
	bool slow;	   /* AT_INSTANCE: of counters that are read every few seconds, and no others */
	bool cumulative;   /* an amount that was used: it never falls */
	int time_set;	   /* all of it is read together, with this set; -1: at the tick's instant */
	bool cores;	   /* CPUs in use: not more than there are */
	struct column_name threads; /* of cores: how many threads could use them; set -1: not recorded */
};

/* -ENOENT: no such metric, -EINVAL: it cannot be computed; reterr says what is wrong, and of a metric that a
 * user typed which was probably meant: to look for it takes far longer than all the rest, and a report asks
 * for many that a recording does not have. The column points into the walk. */
int column_bind(struct column *c, const struct walk *s, const char *metric, bool rate, bool typed,
	struct buf *reterr);
/* The same of one that need not be there. */
int column_try(struct column *c, const struct walk *s, const char *metric, bool rate);
/* Its values need no more than the ticks shortly before (walk_seek()). Amounts since the start do, and rates
 * of what is read every few seconds, which go from one reading to the next. */
bool column_is_of_now(const struct column *c, const struct walk *s);
/* No metric is called n->word: says so, with the nearest of those that were tried, and where the rest is
 * listed. Of the job's own numbers (app.…) that is here: `own` is what metric_own() has listed. */
void metric_unknown(const struct nearest *n, const struct buf *own, struct buf *reterr);
/* Adds it to the list if it is one of these. */
void metric_own(const char *name, struct buf *own);

enum column_per { PER_ALL, PER_EACH, PER_PROCESS, PER_USER, PER_GROUP };

struct column_use {
	enum column_per per;
	bool one;	   /* of a single process */
	const char *group; /* of processes in it; NULL: of all */
};

/* Does the question make sense? -EINVAL, and reterr says why not. */
int column_agrees(
	const struct walk *s, const struct column *c, const struct column_use *use, struct buf *reterr);

/* ---- folds ---- */

struct fold {
	double sum, max, total;
	uint32_t nr, alive;
	bool has_total;
};

static inline void fold_add(struct fold *f, double value, bool total)
{
	f->alive++;
	if (total) {
		f->has_total = true;
		f->total = value;
	}
	if (value != value)
		return;
	f->sum += value;
	f->max = f->nr ? MAX(f->max, value) : value;
	f->nr++;
}

double fold_end(const struct fold *f, enum metric_fold fold);

/* ---- of each instance ---- */

/* What is not read at every tick is read at this pace. */
#define SLOW_PERIOD_NS (INT64_C(5) * NSEC_PER_SEC)

struct grown { /* what a rate() remembers */
	double last, rate;
	int64_t cell; /* of one that is plain */
	int64_t time_ns;
	bool known;
	bool owes; /* some of the growth is left for the next step */
};

/* The rate of a value that is `now`; NAN while it is not known. What `most` (INFINITY: no limit) makes
 * impossible is carried over, as far as the kernel may have counted it late, or we have read it `late_s`. */
double grown_step(
	struct grown *g, double now, int64_t time_ns, int64_t window_ns, double most, double late_s);
/* When all that the column is made of was read for this tick. */
static inline int64_t column_time(const struct column *c, const struct walk *s)
{
	return c->time_set < 0 ? s->time_ns : walk_time(s, (uint32_t)c->time_set);
}

struct rows {
	const struct column *c;
	/* Of the column, side by side: it is large, and at most ticks no more of it is needed. */
	uint32_t set;
	unsigned nr_rates;
	uint64_t cols;
	int64_t window_ns;
	bool plain, slow, cores;
	int col; /* of its first name, as its scaling */
	struct scaling scaling;
	/* The values. */
	double *value;	     /* by row, at this tick; NAN: not known, or an empty row */
	struct grown *grown; /* [cap][nr_rates] */
	uint32_t *id;	     /* of the instance */
	uint8_t *rests;	     /* mask of rates that are nothing, and stay so until it moves */
	uint32_t cap;
	uint32_t *busy; /* rows to be looked at though nothing moved: those that do not rest */
	uint32_t nr_busy;
	uint32_t *look;		 /* scratch: rows that are computed */
	uint32_t *news, nr_news; /* rows whose value is another than before */
	int64_t due_ns;		 /* of what is slow: before it no row that did not move becomes other */
	int64_t latest_ns;	 /* the same: when rows were computed last */
	uint32_t only;		 /* the one row that was computed last time, or ROWS_ALL */
	bool changed;		 /* at this tick some value, or an instance */
	bool sliver;		 /* it follows too closely to make rates of */
};

#define ROWS_ALL UINT32_MAX

void rows_init(struct rows *r, const struct column *c);
void rows_release(struct rows *r);
/* To be called at every tick. `only`: other rows than this one are not needed. -ENOMEM. */
int rows_tick(struct rows *r, const struct walk *s, uint32_t only);

/* ---- sums and what is made of them ---- */

struct filter {		 /* which instances are summed */
	uint64_t groups; /* in one of them; 0: all */
	bool of_user;
	int64_t uid;
};

/* One metric summed over the instances that pass a filter. */
struct sum {
	struct column_name arg;
	struct filter filter;
	struct counter_sum counted;
	struct sum *next_of_col; /* another one of the same metric */
	uint32_t lane;		 /* where its values stand among those of the set */
	uint8_t *part;		 /* by row: it is one of them, and its value is known */
	uint32_t cap;
	uint32_t nr_members, nr_known, nr_totals; /* totals: those that are the sum of the others */
	bool begun, changed;			  /* at this tick */
	double now;
};

/* The sums over the rows of one set. What each row adds to each stands row by row, so that all are added up
 * at once, each in the order of the rows. */
struct set_sums {
	int set;
	uint64_t cols; /* mask of those that are summed */
	struct sum *of_col[METRICS_MAX];
	struct sum **sum;
	size_t nr;
	double *value; /* [cap][nr_lanes]; 0: it adds nothing, or is not known */
	double *added; /* [nr_lanes] */
	uint32_t cap;
	size_t nr_lanes;
};

/* All sums that are wanted of one recording, each computed once however many columns are made of it. */
struct sums {
	struct set_sums *set;
	size_t nr;
};

void sums_release(struct sums *all);
int sums_tick(struct sums *all, const struct walk *s); /* -ENOMEM */

struct whole {
	const struct column *c;
	const struct sum *sum[EXPR_NAMES]; /* NULL: not recorded */
	const struct sum *threads;	   /* of cores; NULL: not recorded */
	/* This tick, and the one before, which waits for it: the sums, and what stands in each rate(); of an
	 * amount the first of these is the amount. */
	struct whole_tick {
		double value[EXPR_NAMES], argument[EXPR_RATES];
	} now, before;
	struct grown grown[EXPR_RATES];
	double reached;	   /* NAN: nothing yet */
	double most;	   /* CPUs that could be used by the tick that waits */
	double late_s;	   /* by how much that may have been read late */
	double nr_threads; /* at that tick */
	int64_t before_ns;
	bool waits, gap; /* a tick waits; something was lost before it */
};

int whole_init(struct whole *w, const struct column *c, const struct filter *f, struct sums *all);
/* The same in the midst of a recording, where nothing passed the filter so far: goes on as `nothing` would, a
 * whole of which that is true, too, and which began with the recording. */
int whole_go_on(struct whole *w, const struct whole *nothing, const struct filter *f, struct sums *all);
/* To be called at every tick, after sums_tick(): true and the value of the tick before when there was one. */
bool whole_tick(struct whole *w, const struct walk *s, double *ret);
/* At the end: that of the last. */
bool whole_end(struct whole *w, double *ret);
#endif
