/* How the recordings of a run stand to one another: by what the wall clock showed when each began, corrected
 * where clocks were measured (query/clock.h). */
#ifndef QUERY_ALIGN_H
#define QUERY_ALIGN_H

#include "query/clock.h"
#include "query/run.h"

struct run_node {
	int64_t offset_ns;   /* its start after that of the earliest; one that does not tell began with it */
	int64_t interval_ns; /* nominal; 0: not known */
	char *host;	     /* "" when not known */
	char *job, *scheduler; /* of the batch job that it belongs to; "" when there is none */
	int64_t start_ns;      /* by the clock of the run; 0: not known */
	struct clock_found clock;
	char *clock_why; /* why there is a file of measurements, and nothing is known from it; "": no such
			    file */
};

/* One for each recording, of what it says before its first tick. 0 or a negative errno. */
int run_align(const struct run *run, struct run_node **ret, struct buf *reterr);
struct run_node *run_align_free(struct run_node *node, size_t nr);

static inline double run_node_offset_s(const struct run_node *n)
{
	return (double)n->offset_ns / 1e9;
}
#endif
