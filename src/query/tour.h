/* One pass over all recordings of a run, for several purposes at once: curves, events, statistics. Each
 * recording is read once, by one of several threads. */
#ifndef QUERY_TOUR_H
#define QUERY_TOUR_H

#include "base/progress.h"
#include "query/align.h"
#include "query/walk.h"

/* One purpose. */
struct tour_guest {
	/* The recording was opened; *ret sees its records. Once more for the same one where a record was
	 * answered with -EAGAIN: then nothing is passed over. */
	int (*open)(void *arg, uint32_t node, struct walk *s, struct walk_observer **ret);
	/* It was read to its end (0), or something failed; `worker` tells threads apart. Frees the observer.
	 */
	int (*close)(void *arg, unsigned worker, struct walk_observer *o, int r);
	void *arg;
	bool plain; /* walk_open_plain() is enough for it; it sees the schema then */
};

/* `what` is being done, for people who wait. 0 or a negative errno; the message names the recording. */
int tour(const struct run *run, const struct tour_guest *guest, size_t nr, const struct progress *progress,
	const char *what, struct buf *reterr);
#endif
