/* Follows the points of one recording, or of a whole run, and keeps what a summary needs of them. */
#ifndef QUERY_TRACKER_H
#define QUERY_TRACKER_H

#include "query/ledger.h"
#include "query/meter.h"
#include "query/spread.h"

/* clang-format off */
enum over { /* what is followed as it is spread over the time in which there were processes */
	OVER_CORES,
#define ROW(id, ...) OVER_##id,
	LEVELS_VIEWS(ROW)
#undef ROW
	NR_OVER
};
/* clang-format on */

enum flow { /* amounts whose greatest rate is kept */
	FLOW_CPU,
	FLOW_READ,
	FLOW_WRITE,
	NR_FLOWS
};

extern const enum used flow_used[NR_FLOWS];

struct tracker {
	struct meter cpu, read, write; /* the latter: bytes from and to storage */
	struct top top[NR_LEVELS];
	double estimated_pss, estimated_uss; /* share of the peak, when it was reached */
	struct spark cpu_shape, pss_shape, rss_shape;
	double cpu_time, cpu_s, level_time; /* of the last point */
	double active_s;		    /* with at least one process, as far as known */
	double between_s;		    /* of that, by births and ends */
	bool has_cpu;
	bool spreads;		      /* wanted */
	struct spread *over[NR_OVER]; /* NULL: nothing yet, or no memory */
	double knot_time, knot_cpu;   /* where the present step of the cores began */
	double held[NR_OVER];	      /* of the last point; NAN: not known */
	bool active;		      /* there were processes at the last point */
};

/* interval_s: nominal; 0 when not known. */
void tracker_init(struct tracker *t, double interval_s, bool spreads);
void tracker_release(struct tracker *t);
/* Nothing was used and there was no process up to this time. */
void tracker_begin(struct tracker *t, double time);
/* CPU used up to `time`; gap: not comparable with what came before. */
void tracker_cpu(struct tracker *t, double time, double cpu_s, bool gap);
/* The same of the other flows. */
void tracker_flow(struct tracker *t, enum flow flow, double time, double amount, bool gap);
/* Levels that hold until the next point, as those of curves do. */
void tracker_levels(struct tracker *t, double time, const int64_t *level, uint32_t valid);
/* What there was since the point before, after its levels. */
void tracker_between(struct tracker *t, double time, const struct between *between);
#endif
