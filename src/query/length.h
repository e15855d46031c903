/* How long a run is, from the ends of its recordings: as its summary says, without reading their ticks. */
#ifndef QUERY_LENGTH_H
#define QUERY_LENGTH_H

#include "query/run.h"

/* Seconds from the start of the earliest recording to the end of the last. 0 or a negative errno, and reterr
 * says of which file. */
int run_length(const struct run *run, double *ret_s, struct buf *reterr);
#endif
