/* Finds out whether a growing recording will have more: see watch.h. */
#include "store/watch.h"

#include "store/glance.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS NSEC_PER_SEC
#define MISSED_FLUSHES 3

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static int ignore(void *arg, enum store_type type, const struct pairs *pairs)
{
	(void)arg;
	(void)type;
	(void)pairs;
	return 0;
}

/* On a full disk the last blocks make room for the end mark. */
static int cut_off(const struct store_watch *w)
{
	struct store_glance glance;

	return store_glance(w->path, ignore, NULL, &glance) == 0 && glance.complete ? WATCH_END : -ESTALE;
}

static bool is_replaced(const struct store_watch *w, const struct stat *st)
{
	struct stat named;

	return stat(w->path, &named) == 0 && (named.st_dev != st->st_dev || named.st_ino != st->st_ino);
}

/* 1: another process has the lock, 0: none has it, -1: not known. */
static int lock_of(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -1;
	return lock.l_type != F_UNLCK;
}

/* The size by name: a network's file system that keeps what it knows of a file for some seconds asks anew
 * when it is opened. */
static uint64_t size_anew(const struct store_watch *w)
{
	int fd = open(w->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st = {0};

	if (fd < 0 || fstat(fd, &st) < 0)
		st.st_size = 0;
	if (fd >= 0)
		close(fd);
	return (uint64_t)st.st_size;
}

/* The recorder seems to be gone. */
static bool is_abandoned(struct store_watch *w, int fd, uint64_t size, int64_t now)
{
	int lock = lock_of(fd);

	w->locked |= lock > 0;
	w->unlocked = lock == 0 && (w->locked || w->local);
	if (w->unlocked)
		return true;
	if (lock > 0 || now - w->grew_ns < MISSED_FLUSHES * (w->flush_ns ? w->flush_ns : NSEC_PER_SEC))
		return false;
	return size_anew(w) <= size;
}

int store_watch(struct store_watch *w, const struct store_reader *r)
{
	int fd = store_reader_fd(r);
	int64_t now = monotonic_ns();
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < store_reader_at(r))
		return cut_off(w);
	if (!w->grew_ns)
		w->grew_ns = now;
	if ((uint64_t)st.st_size > store_reader_seen(r) && (uint64_t)st.st_size != w->tried) {
		w->tried = (uint64_t)st.st_size;
		w->grew_ns = now;
		w->last &= w->tried <= w->end;
		return WATCH_MORE;
	}
	if (w->last && !w->unlocked && (uint64_t)st.st_size > w->end) { /* it grew meanwhile */
		w->last = false;
		w->grew_ns = now;
	}
	if (store_reader_complete(r) || w->last)
		return WATCH_END;
	if (w->looked_ns && now - w->looked_ns < LOOK_NS)
		return WATCH_WAIT;
	w->looked_ns = now;
	if (is_replaced(w, &st))
		return -ESTALE;
	if (!is_abandoned(w, fd, (uint64_t)st.st_size, now))
		return WATCH_WAIT;
	w->last = true; /* it may have written right before it ended */
	w->end = (uint64_t)st.st_size;
	w->tried = 0;
	return WATCH_MORE;
}
