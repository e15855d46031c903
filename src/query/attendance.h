/* Which nodes of a run are not as expected: no recording, one that began late, one that ended early. Computed
 * here, once; summary, documents and lists say it. */
#ifndef QUERY_ATTENDANCE_H
#define QUERY_ATTENDANCE_H

#include "query/run_about.h"

/* A recording of the run. */
struct attendance_seen {
	const char *host, *path;
	int64_t start_ns; /* by the clock of the run; 0: not known */
	double length_s;  /* NAN: not known */
	bool complete;	  /* it has its end mark */
	bool writing;	  /* its recorder is at work, as far as known */
};

enum absence { NODES_MISSING, NODES_LATE, NODES_EARLY, NR_ABSENCES };

struct attendance {
	size_t expected;
	struct absent_node {
		char *node;
		char *why;	/* "" when not known; of a late one NULL */
		double seconds; /* late: after the start of the run; early: before the last; NAN: not known */
	} * absent[NR_ABSENCES]; /* by name as people count */
	size_t nr[NR_ABSENCES];
};

/* *ret is NULL when nothing is known of what was expected. 0 or -ENOMEM. */
int attendance_take(const struct run_about *about, const struct attendance_seen *seen, size_t nr,
	struct attendance **ret);
struct attendance *attendance_free(struct attendance *a);

/* "2 of 16 nodes are missing: node3 (did not start within 10 s), node9"; short also for thousands. False when
 * there is nothing to say. */
bool attendance_words(const struct attendance *a, enum absence what, struct buf *out);
/* Names, the first ones: "node3, node17, node4 and 9 more". */
#define NAMES_MOST 6
#endif
