/* How far the recordings of a run have come: the ends of the files are followed, nothing else is read. */
#ifndef SERVE_TICKS_H
#define SERVE_TICKS_H

#include "query/run.h"

struct ticks;

enum ticks_state {
	TICKS_YOUNG, /* there is no tick yet whose values are settled */
	TICKS_GROW,
	TICKS_SILENT, /* none for three intervals: the recorder may be gone */
	TICKS_ENDED,
};

struct ticks_now {
	enum ticks_state state;
	int64_t upto_ns;     /* up to this tick of the run everything is told by all, and settled */
	double silent_s;     /* since the last tick came */
	int64_t interval_ns; /* the least of all; 0: not known */
	size_t nr_running;
};

/* With followers of its own; or without, for one who reads the run in any case and tells where it is. */
int ticks_open(const struct run *run, bool follow, struct ticks **ret, struct buf *reterr);
void ticks_told(struct ticks *t, size_t i, int64_t last_ns, int64_t settled_ns, bool ended);
struct ticks *ticks_close(struct ticks *t);
/* -ESTALE: a file was replaced or cut. */
int ticks_look(struct ticks *t, struct ticks_now *ret);
#endif
