/* One pass over all recordings of a run: see tour.h. */
#include "query/tour.h"

#include "base/parallel.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define GUESTS_MOST 4
#define TICKS_TO_TELL 512

struct touring {
	const struct run *run;
	const struct tour_guest *guest;
	size_t nr;
	const struct progress *progress;
	const char *what;
	double done; /* recordings */
	pthread_mutex_t lock;
};

static void tell(struct touring *t, double more)
{
	pthread_mutex_lock(&t->lock);
	t->done += more;
	progress_tell(t->progress, t->what, MIN(t->done / (double)t->run->nr, 1));
	pthread_mutex_unlock(&t->lock);
}

static bool all_done(const struct walk *s)
{
	for (const struct walk_observer *o = s->observer; o; o = o->next)
		if (!o->done)
			return false;
	return true;
}

static int read_ticks(struct touring *t, struct walk *s, const char *path)
{
	struct stat st;
	double size = stat(path, &st) == 0 && st.st_size > 0 ? (double)st.st_size : 0, told = 0;
	unsigned ticks = 0;
	int r = 0;

	while (!all_done(s) && (r = walk_next(s)) > 0)
		if (++ticks % TICKS_TO_TELL == 0 && size > 0) {
			double at = MIN((double)store_reader_at(s->reader) / size, 1);

			tell(t, at - told);
			told = at;
		}
	tell(t, 1 - told);
	return MIN(r, 0);
}

/* Passes over what makes no difference to any of them. */
static int pass_over(struct walk *s)
{
	int64_t from_ns = INT64_MAX;

	for (const struct walk_observer *o = s->observer; o; o = o->next)
		from_ns = MIN(from_ns, o->from_ns);
	return from_ns > 0 && from_ns < INT64_MAX ? walk_seek(s, from_ns) : 0;
}

static int read_one(struct touring *t, unsigned worker, size_t i, bool whole)
{
	struct walk_observer *observer[GUESTS_MOST] = {0};
	struct walk *s = NULL;
	bool plain = true;
	int r;

	for (size_t k = 0; k < t->nr; k++)
		plain = plain && t->guest[k].plain;
	r = plain ? walk_open_plain(t->run->path[i], &s) : walk_open(t->run->path[i], NULL, &s);
	for (size_t k = 0; k < t->nr && r >= 0; k++) {
		r = t->guest[k].open(t->guest[k].arg, (uint32_t)i, s, &observer[k]);
		if (r >= 0)
			walk_observe(s, observer[k]);
	}
	if (r >= 0 && !whole)
		r = pass_over(s);
	if (r >= 0)
		r = read_ticks(t, s, t->run->path[i]);
	for (size_t k = 0; k < t->nr; k++) {
		int e = observer[k] ? t->guest[k].close(t->guest[k].arg, worker, observer[k], r) : 0;

		r = r < 0 ? r : MIN(e, 0);
	}
	walk_close(s);
	return r;
}

/* It may turn out that what was passed over is needed. */
static int visit(void *arg, unsigned worker, size_t i)
{
	int r = read_one(arg, worker, i, false);

	return r == -EAGAIN ? read_one(arg, worker, i, true) : r;
}

int tour(const struct run *run, const struct tour_guest *guest, size_t nr, const struct progress *progress,
	const char *what, struct buf *reterr)
{
	struct touring t = {.run = run,
		.guest = guest,
		.nr = MIN(nr, (size_t)GUESTS_MOST),
		.progress = progress,
		.what = what,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	size_t at = 0;
	int r = parallel_each(run->nr, visit, &t, &at);

	if (r < 0)
		buf_addf(reterr, "%s: %s", run->path[at], strerror(-r));
	return r;
}
