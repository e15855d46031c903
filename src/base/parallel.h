/* The same work on many things, by as many threads as CPUs are allowed. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include "base/base.h"

#include <stddef.h>

#define PARALLEL_MOST 64

/* How many threads would work on so many things: never more than CPUs, things or PARALLEL_MOST. */
unsigned parallel_workers(size_t nr);
/* Calls work(arg, worker, i) for each i below nr; worker is below parallel_workers(nr), different for each
 * thread. The caller is one of them (worker 0). Without threads it does all itself. Of several errors that of
 * the lowest i is returned (0: none); *ret_at, if not NULL, is that i. After an error no new work begins. */
int parallel_each(size_t nr, int (*work)(void *arg, unsigned worker, size_t i), void *arg, size_t *ret_at);
#endif
