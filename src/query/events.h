/* What happened when: phases that the job told, and events, on the run's time axis.
 *
 * In a recording they are EVENT records. Phases: `phase.begin` and `phase.end` with the pair `name`; they may
 * nest and overlap, an end closes the youngest open phase of its name that the same process began, else the
 * youngest of its name, and one that is never ended lasts to the end of the recording. `mark` with `name` is
 *a moment of the job's own. All others are the recorder's:
 *
 *	stopped   the job was stopped; it lasts until it was continued
 *	signal    a signal asked the job to end
 *	clock     the wall clock was set
 *	backoff   samples are taken less often, or as often as asked again
 *	lost      nothing is recorded of that time: the file is damaged, or the disk was full
 *	oom       the kernel killed processes because memory ran out; the label says where
 *
 * Of kinds that this version does not know the label is the kind. What is told of metrics (`unavailable`) is
 * nothing that happened. */
#ifndef QUERY_EVENTS_H
#define QUERY_EVENTS_H

#include "query/tour.h"

struct run_event {
	double time_s, end_s; /* after the start of the run; end_s is NAN for what has no length */
	uint32_t node;
	char *kind;   /* "phase", "mark", "stopped", "signal", "lost"…; escaped */
	char *label;  /* for people, escaped */
	char *data;   /* what a phase or a mark was told with, as a JSON object of texts; NULL: nothing */
	bool numbers; /* a mark of nothing but KEY=NUMBER: curves tell it */
};

/* Phases, marks and other events, of each: more are counted, and not kept. */
#define MOMENTS_MOST 4096

struct run_events {
	struct run_event *phase, *event;       /* by time; events: what people want to see in a plot */
	size_t nr_phases, nr_events, nr_marks; /* marks are among the events */
	size_t nr_numbers; /* of the marks, those of numbers alone: they leave room for the others */
	size_t left_out;
};

int run_events_read(const struct run *run, struct run_events **ret, struct buf *reterr);
/* What matters to this part of the run (NAN: from the start, to the end): events in it, phases that reach
 * into it, and some before and after. What lies far before it is not read, if the recording allows that. */
int run_events_read_range(
	const struct run *run, double from_s, double to_s, struct run_events **ret, struct buf *reterr);
struct run_events *run_events_free(struct run_events *m);
void run_event_release(struct run_event *e);

/* While recordings are read for other purposes, too: a guest for the tour; when that is over, what it found.
 */
struct run_events_reading;
int run_events_guest(const struct run *run, double from_s, double to_s, struct run_events_reading **ret,
	struct tour_guest *ret_guest, struct buf *reterr);
int run_events_finish(struct run_events_reading *r, struct run_events **ret);
struct run_events_reading *run_events_reading_free(struct run_events_reading *r);

/* For one who reads recordings one after the other: gathers from a walk that was just opened, which must be
 * observed by it, to the end, at which it is still open; when all are through, sorts. */
struct gathering;
/* NULL: no memory. A walk_observer comes first in it. */
struct gathering *run_events_begin(struct run_events *m, struct walk *walk, uint32_t node, double offset_s);
struct gathering *run_events_end(struct gathering *g);
void run_events_sort(struct run_events *m);
#endif
