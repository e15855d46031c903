/* The same work on many things in several threads: see parallel.h. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

struct crew {
	int (*work)(void *arg, unsigned worker, size_t i);
	void *arg;
	size_t nr;
	atomic_size_t next;
	pthread_mutex_t lock;
	size_t failed_at;
	int error;
};

struct parallel_worker {
	struct crew *crew;
	unsigned worker;
	pthread_t thread;
};

unsigned parallel_workers(size_t nr)
{
	cpu_set_t allowed;
	int cpus = sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1 : CPU_COUNT(&allowed);

	return (unsigned)MAX(MIN(nr, (size_t)MIN(MAX(cpus, 1), PARALLEL_MOST)), 1);
}

static void fail(struct crew *crew, size_t i, int error)
{
	pthread_mutex_lock(&crew->lock);
	if (!crew->error || i < crew->failed_at) {
		crew->error = error;
		crew->failed_at = i;
	}
	pthread_mutex_unlock(&crew->lock);
	atomic_store(&crew->next, crew->nr);
}

static void *hand_run(void *arg)
{
	const struct parallel_worker *hand = arg;
	struct crew *crew = hand->crew;

	for (size_t i; (i = atomic_fetch_add(&crew->next, 1)) < crew->nr;) {
		int r = crew->work(crew->arg, hand->worker, i);

		if (r < 0)
			fail(crew, i, r);
	}
	return NULL;
}

int parallel_each(size_t nr, int (*work)(void *arg, unsigned worker, size_t i), void *arg, size_t *ret_at)
{
	struct crew crew = {.work = work, .arg = arg, .nr = nr, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct parallel_worker hand[PARALLEL_MOST] = {{.crew = &crew}};
	unsigned workers = parallel_workers(nr), started = 1;
	sigset_t all, before;

	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; started < workers; started++) {
		hand[started] = (struct parallel_worker){.crew = &crew, .worker = started};
		if (pthread_create(&hand[started].thread, NULL, hand_run, &hand[started]))
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	hand_run(&hand[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(hand[i].thread, NULL);
	if (ret_at)
		*ret_at = crew.failed_at;
	return crew.error;
}
