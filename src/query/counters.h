/* What the processor counted for the job over a recording: each event with the time that it was really
 * counted. */
#ifndef QUERY_COUNTERS_H
#define QUERY_COUNTERS_H

#include "query/counter_sum.h"

/* More than a set can hold of them. */
#define COUNTERS_MAX 64

struct counters {
	int set; /* -1: not recorded */
	struct counter_event {
		const char *metric; /* "perf.cycles"; lives as long as the reader's schema */
		enum metric_unit unit;
		struct growth count, running;
	} * event;
	size_t nr;
	struct growth enabled;
	bool user_only; /* nothing was counted in the kernel */
};

/* Its name is that of an event, not that of the time for which one was counted. */
bool counters_is_event(const char *metric);
void counters_init(struct counters *c);
void counters_release(struct counters *c);
int counters_bind(struct counters *c, const struct schema *schema); /* -ENOMEM */
void counters_instance(struct counters *c, const struct store_record *record);
int counters_tick(struct counters *c, const struct walk *walk);
#endif
