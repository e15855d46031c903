/* Follows the points of one recording, or of a whole run, and keeps what a summary needs of them. */
#ifndef QUERY_TRACKER_H
#define QUERY_TRACKER_H

#include "query/account.h"
#include "query/meter.h"

struct tracker {
	struct meter cpu;
	struct top top[NR_LEVELS];
	double estimated_pss, estimated_uss; /* share of the peak, when it was reached */
	struct spark cpu_shape, pss_shape, rss_shape;
	double cpu_time, cpu_s, level_time; /* of the last point */
	double active_s;		    /* with at least one process, as far as seen */
	bool has_cpu;
};

/* interval_s: nominal; 0 when not known. */
void tracker_init(struct tracker *t, double interval_s);
/* Nothing was used and nobody was there up to this time. */
void tracker_begin(struct tracker *t, double time);
/* CPU used up to `time`; gap: not comparable with what came before. */
void tracker_cpu(struct tracker *t, double time, double cpu_s, bool gap);
/* Levels that hold since the point before. */
void tracker_levels(struct tracker *t, double time, const int64_t *level, uint32_t valid);
#endif
