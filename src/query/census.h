/* How many processes there were at once between two ticks, and for how long there were any: by their births
 * and ends, which the recording has, and not by samples alone. A piece of query/live_processes. */
#ifndef QUERY_CENSUS_H
#define QUERY_CENSUS_H

#include "query/groups.h"

/* Lines: the whole is line 0, group g is line g + 1. */
#define ACCOUNTS_MOST (1 + GROUPS_MOST)

struct between { /* since the tick before */
	int64_t processes,
		threads;   /* the most at once; threads as far as they were sampled, at least one each */
	int64_t active_ns; /* with at least one process */
};

struct census {
	struct census_event {
		int64_t time_ns;
		uint64_t groups;
		uint32_t id;
		int32_t processes, threads; /* by how much they change */
	} * event;
	size_t nr, cap;
	uint64_t ticks;
	int64_t from_ns;		    /* the last tick */
	bool gap;			    /* something was lost since */
	struct between now[ACCOUNTS_MOST];  /* at the last tick: what its active_ns is does not matter */
	struct between most[ACCOUNTS_MOST]; /* of the interval that ended with it */
};

void census_release(struct census *c);
int census_birth(struct census *c, uint32_t id, int64_t time_ns, uint64_t groups);
/* sampled: it was there at the last tick, with so many threads. Where its end is not known (exact is false),
 * it is counted up to that tick only. */
int census_end(struct census *c, uint32_t id, int64_t time_ns, uint64_t groups, bool sampled, int64_t threads,
	bool exact);
/* Births and ends of this interval are not all known. */
void census_lost(struct census *c);
/* now: what there is at this tick, line by line; most[] is that of the interval up to it afterwards. */
void census_tick(struct census *c, int64_t time_ns, const struct between *now, unsigned nr_lines);
#endif
