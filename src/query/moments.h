/* What happened when: phases that the job told, and events, on the run's time axis.
 *
 * In a recording they are EVENT records. Phases: `phase.begin` and `phase.end` with the pair `name`; they may
 * nest and overlap, an end closes the youngest open phase of its name, and one that is never ended lasts to
 * the end of the recording. `mark` with `name` is a moment of the job's own. All others are the recorder's
 * (`stopped`, `continued`, `signal`, `clock`, `backoff`, `gap`…). */
#ifndef QUERY_MOMENTS_H
#define QUERY_MOMENTS_H

#include "query/run.h"

struct moment {
	double time_s, end_s; /* after the start of the run; end_s is NAN for what has no length */
	uint32_t node;
	char *kind;  /* "phase", "mark", "stopped", "signal", "lost"… */
	char *label; /* for people, escaped */
};

struct moments {
	struct moment *phase, *event; /* by time; events: what people want to see in a plot */
	size_t nr_phases, nr_events;
};

int moments_read(const struct run *run, struct moments **ret, struct buf *reterr);
struct moments *moments_free(struct moments *m);
#endif
