/* A thread that does what it is given, one job after the other in the order given, while the caller goes on.
 * Until it is started (and where no thread can be started) the caller does each job itself, so the result is
 * the same in any case. */
#ifndef EXPORT_WORKER_H
#define EXPORT_WORKER_H

#include "base/base.h"

#include <pthread.h>

struct worker {
	void (*work)(void *arg, void *job);
	void *arg;
	size_t job_size;
	uint8_t *job; /* a ring of WORKER_JOBS, and one for the caller */
	uint64_t nr_given, nr_done;
	bool running, stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given, done;
};

#define WORKER_JOBS 4

int worker_init(struct worker *w, void (*work)(void *arg, void *job), void *arg, size_t job_size);
void worker_start(struct worker *w);
/* A copy of the job. Waits while too many are waiting. */
void worker_give(struct worker *w, const void *job);
/* Waits until all is done; then its results are visible. */
void worker_wait(struct worker *w);
/* After doing what is left. */
void worker_release(struct worker *w);
#endif
