/* One thread with one flag, "asked". The tick sets it if it gets the lock at once, the thread clears it,
 * works without the lock, and waits again. A request while it works is refused and not queued: the next tick
 * asks again anyway.
 *
 * A pool or a queue was not wanted: each driver blocks in its own way, and one that hangs must not take
 * another one's thread. A process of its own would even survive a driver that never returns, but costs
 * megabytes, a protocol, and a child that the job's account would have to leave out. */
#include "collect/async_reader.h"

#include "base/rights.h"
#include "base/sigmask.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#define STOP_NS NSEC_PER_SEC

/* A request must not push the tick off its CPU: a thread of this policy waits until the tick sleeps. Another
 * policy that we were started with is kept. */
static void let_tick_finish(void)
{
	static const struct sched_param none = {0};

	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

static void *run(void *arg)
{
	struct async_reader *b = arg;

	rights_drop(); /* it loads and calls a vendor's code */
	let_tick_finish();
	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (!b->asked && !b->stop)
			pthread_cond_wait(&b->change, &b->lock);
		if (b->stop)
			break;
		b->asked = false;
		b->busy = true;
		pthread_mutex_unlock(&b->lock);
		b->work(b->arg);
		pthread_mutex_lock(&b->lock);
		b->busy = false;
	}
	b->ended = true;
	pthread_cond_signal(&b->change);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* A step of the wall clock must not change how long async_reader_stop() waits. */
static int init_locks(struct async_reader *b)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!r)
		r = pthread_cond_init(&b->change, &attr);
	pthread_condattr_destroy(&attr);
	if (r)
		return -r;
	r = pthread_mutex_init(&b->lock, NULL);
	if (r)
		pthread_cond_destroy(&b->change);
	return -r;
}

static void release_locks(struct async_reader *b)
{
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->change);
}

int async_reader_start(struct async_reader *b, struct env *env, void (*work)(void *arg), void *arg)
{
	sigset_t all, before;
	int r;

	*b = (struct async_reader){.work = work, .arg = arg};
	r = init_locks(b);
	if (r < 0)
		return r;
	b->threaded = env->live;
	if (!b->threaded)
		return 0;
	/* The thread, and whatever threads the vendor's library starts from it, inherit the mask. */
	sigmask_fill(&all);
	sigmask_change(SIG_SETMASK, &all, &before);
	r = -pthread_create(&b->thread, NULL, run, b);
	sigmask_change(SIG_SETMASK, &before, NULL);
	if (r < 0)
		release_locks(b);
	return r;
}

bool async_reader_ask(struct async_reader *b)
{
	bool idle;

	if (!b->threaded) {
		b->work(b->arg);
		return true;
	}
	if (!async_reader_try_lock(b))
		return false;
	idle = !b->asked && !b->busy;
	b->asked |= idle;
	async_reader_unlock(b);
	if (idle)
		pthread_cond_signal(&b->change);
	return idle;
}

bool async_reader_try_lock(struct async_reader *b)
{
	return pthread_mutex_trylock(&b->lock) == 0;
}

void async_reader_lock(struct async_reader *b)
{
	pthread_mutex_lock(&b->lock);
}

void async_reader_unlock(struct async_reader *b)
{
	pthread_mutex_unlock(&b->lock);
}

/* With the lock held. */
static bool wait_for_end(struct async_reader *b)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_NS / NSEC_PER_SEC;
	while (!b->ended)
		if (pthread_cond_timedwait(&b->change, &b->lock, &until) == ETIMEDOUT)
			break;
	return b->ended;
}

bool async_reader_stop(struct async_reader *b)
{
	bool ended;

	if (b->threaded) {
		pthread_mutex_lock(&b->lock);
		b->stop = true;
		pthread_cond_signal(&b->change);
		ended = wait_for_end(b);
		pthread_mutex_unlock(&b->lock);
		if (!ended) {
			pthread_detach(b->thread);
			return false;
		}
		pthread_join(b->thread, NULL);
	}
	release_locks(b);
	return true;
}
