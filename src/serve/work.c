/* A queue and its threads: see work.h. */
#include "serve/work.h"

#include <pthread.h>
#include <sys/resource.h>

#define THREADS_MOST 8
#define NICE 5

struct work_item {
	struct work_item *next;
	void (*job)(void *arg);
	void *arg;
};

struct work {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct work_item *first, **last;
	pthread_t thread[THREADS_MOST];
	unsigned nr;
	bool ends;
};

static void *work_through(void *arg)
{
	struct work *w = arg;

	/* Answers come first; so do the jobs of this machine. Threads that it begins inherit that. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct work_item *item = w->first;

		if (w->ends)
			break;
		if (!item) {
			pthread_cond_wait(&w->more, &w->lock);
			continue;
		}
		w->first = item->next;
		if (!w->first)
			w->last = &w->first;
		pthread_mutex_unlock(&w->lock);
		item->job(item->arg);
		free(item);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int work_new(unsigned threads, struct work **ret)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	w->last = &w->first;
	while (w->nr < MIN(threads, (unsigned)THREADS_MOST) &&
		!pthread_create(&w->thread[w->nr], NULL, work_through, w))
		w->nr++;
	if (!w->nr) {
		work_free(w);
		return -EAGAIN;
	}
	*ret = w;
	return 0;
}

struct work *work_free(struct work *w)
{
	if (!w)
		return NULL;
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->nr; i++)
		pthread_join(w->thread[i], NULL);
	for (struct work_item *item = w->first, *next; item; item = next) {
		next = item->next;
		free(item);
	}
	free(w);
	return NULL;
}

bool work_add(struct work *w, void (*job)(void *arg), void *arg)
{
	struct work_item *item = malloc(sizeof(*item));

	if (!item)
		return false;
	*item = (struct work_item){.job = job, .arg = arg};
	pthread_mutex_lock(&w->lock);
	*w->last = item;
	w->last = &item->next;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	return true;
}
