/* The recordings of a run in progress: those that are there, then those that come into its directories.
 *
 * A look at a directory is one stat() a second while nothing comes or goes in it; of what is there already
 * only the names are read again. */
#ifndef QUERY_ARRIVALS_H
#define QUERY_ARRIVALS_H

#include "base/buf.h"
#include "store/store.h"

struct arrival {
	char *path;		     /* taken over, as the reader is */
	struct store_reader *reader; /* it has read nothing yet */
	bool later;		     /* it was not there at first */
	bool flat; /* of a directory that is not that of a run: it may be of another job than the one asked
		      for */
};

struct arrivals;

/* `found` is told of each recording once; a negative errno of it ends the look. `job`: of directories only
 * the run of it; NULL: any. Both borrowed. NULL: no memory. */
typedef int arrival_found(void *arg, const struct arrival *a);
struct arrivals *arrivals_new(const char *job, arrival_found *found, void *arg);
struct arrivals *arrivals_free(struct arrivals *a);
/* A recording, or a directory, which may be empty still, or that of a run. A negative errno, and reterr says
 * what is wrong. */
int arrivals_add(struct arrivals *a, const char *path, struct buf *reterr);
/* Looks for more, at most once a second. The same. */
int arrivals_look(struct arrivals *a, struct buf *reterr);
/* Why a recording, or a directory, cannot be followed: "PATH: …". Returns the error. */
int arrivals_trouble(const char *path, int error, struct buf *reterr);
#endif
