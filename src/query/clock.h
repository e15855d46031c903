/* A node's clock beside that of the machine that started the run.
 *
 * `tacho job` keeps what it measured in clock/HOST.jsonl beside nodes/HOST.tacho (docs/format.md). Readers of
 * such a recording pass its records through clock_record(), and then have all times on the clock of the run:
 * those of ticks and events, and those that stand among the pairs. Nothing else knows of offsets. */
#ifndef QUERY_CLOCK_H
#define QUERY_CLOCK_H

#include "store/store.h"

struct node_clock;

/* The measurements that belong to a recording. *ret is NULL where there are none that can be used; then `why`
 * (unless NULL) has half a sentence if there is a file: "is not a regular file". 0 or -ENOMEM. */
int clock_open(const char *recording, struct node_clock **ret, struct buf *why);
struct node_clock *clock_close(struct node_clock *c);
char *clock_path(const char *recording); /* NULL: it is not one of a run's directory, or no memory */

/* Puts the record on the clock of the run; one with `c` NULL stays as it is. Its pairs are valid until the
 * next call. The recording's start must have been seen: it stands in its first metadata. */
void clock_record(struct node_clock *c, struct store_record *record);
/* The same for pairs alone; the result is `pairs` where there is nothing to change. */
const struct pairs *clock_pairs(struct node_clock *c, const struct pairs *pairs);
/* A time of the recording on the clock of the run (after the recording's start on it), and back. */
int64_t clock_time(const struct node_clock *c, int64_t time_ns);
int64_t clock_time_back(const struct node_clock *c, int64_t time_ns);
/* When it began, by its own clock; `start_wall_ns` where there is no clock. */
int64_t clock_own_start(const struct node_clock *c, int64_t start_wall_ns);

/* What was found, when the start was seen. */
struct clock_found {
	bool measured;
	double offset_s;  /* at the recording's start it was ahead by so much */
	double drift_ppm; /* and gained so much; NAN: too little was measured to say */
	double bound_s;	  /* after correction it is right within that */
};
struct clock_found clock_found(const struct node_clock *c);
#endif
