/* A thread that does jobs in order: see worker.h. */
#include "export/worker.h"

#include <signal.h>
#include <string.h>

int worker_init(struct worker *w, void (*work)(void *arg, void *job), void *arg, size_t job_size)
{
	*w = (struct worker){.work = work, .arg = arg, .job_size = job_size};
	w->job = calloc(WORKER_JOBS + 1, job_size);
	if (!w->job)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->given, NULL);
	pthread_cond_init(&w->done, NULL);
	return 0;
}

static void *job_at(const struct worker *w, uint64_t number)
{
	return w->job + number % WORKER_JOBS * w->job_size;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->nr_done == w->nr_given && !w->stop)
			pthread_cond_wait(&w->given, &w->lock);
		if (w->nr_done == w->nr_given)
			break;
		pthread_mutex_unlock(&w->lock);
		w->work(w->arg, job_at(w, w->nr_done)); /* only this thread writes nr_done */
		pthread_mutex_lock(&w->lock);
		w->nr_done++;
		pthread_cond_signal(&w->done);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void worker_start(struct worker *w)
{
	sigset_t all, before;

	if (w->running)
		return;
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	w->running = pthread_create(&w->thread, NULL, worker_run, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void worker_give(struct worker *w, const void *job)
{
	if (!w->running) {
		void *own = w->job + WORKER_JOBS * w->job_size;

		memcpy(own, job, w->job_size);
		w->work(w->arg, own);
		return;
	}
	pthread_mutex_lock(&w->lock);
	while (w->nr_given - w->nr_done == WORKER_JOBS)
		pthread_cond_wait(&w->done, &w->lock);
	memcpy(job_at(w, w->nr_given), job, w->job_size);
	w->nr_given++;
	pthread_cond_signal(&w->given);
	pthread_mutex_unlock(&w->lock);
}

void worker_wait(struct worker *w)
{
	if (!w->running)
		return;
	pthread_mutex_lock(&w->lock);
	while (w->nr_done < w->nr_given)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void worker_release(struct worker *w)
{
	if (!w->job)
		return;
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->given);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->done);
	pthread_cond_destroy(&w->given);
	pthread_mutex_destroy(&w->lock);
	free(w->job);
	w->job = NULL;
}
