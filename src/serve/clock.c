/* The thread that looks at the clock: which requests have waited long enough, which clients are too slow with
 * theirs, which have left, and for which run there may be something new. Without connections it sleeps until
 * one comes. */
#include "serve/internal.h"

#include "serve/stream.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define HEAD_NS (10 * NSEC_PER_SEC) /* in which the head of a request must come */
#define LOOK_NS NSEC_PER_SEC	    /* whether those who wait are still there */
#define LEAST_NS (20 * NSEC_PER_MSEC)

int64_t serve_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void resume(struct serve_request *q)
{
	q->suspended = false;
	MHD_resume_connection(q->connection);
}

void serve_wake(struct serve *s)
{
	int64_t now = serve_now();

	for (struct serve_request *q = s->request; q; q = q->next)
		if (q->suspended && (!q->streams || stream_has_news(q, now)))
			resume(q);
	pthread_cond_signal(&s->change);
}

/* Their sockets are not looked at while they are suspended. */
static void find_gone(struct serve *s)
{
	for (struct serve_request *q = s->request; q; q = q->next) {
		struct pollfd p = {.fd = q->fd, .events = POLLRDHUP};

		if (q->suspended && p.fd >= 0 && poll(&p, 1, 0) > 0 &&
			p.revents & (POLLRDHUP | POLLHUP | POLLERR)) {
			q->gone = true;
			resume(q);
		}
	}
}

static int64_t look_at_requests(struct serve *s, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct serve_request *q = s->request; q; q = q->next) {
		if (!q->suspended)
			continue;
		if (now >= q->until_ns || (q->streams && stream_has_news(q, now)))
			resume(q);
		else
			next = MIN(next, MIN(q->until_ns, now + LOOK_NS));
	}
	return next;
}

static int64_t look_at_peers(struct serve *s, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct peer *p = s->peer; p; p = p->next) {
		if (p->asked)
			continue;
		if (now - p->opened_ns > HEAD_NS) {
			p->asked = true;
			shutdown(p->fd, SHUT_RDWR);
		} else {
			next = MIN(next, p->opened_ns + HEAD_NS);
		}
	}
	return next;
}

static void sleep_until(struct serve *s, int64_t when)
{
	struct timespec ts = {.tv_sec = when / NSEC_PER_SEC, .tv_nsec = when % NSEC_PER_SEC};

	if (when == INT64_MAX)
		pthread_cond_wait(&s->change, &s->lock);
	else
		pthread_cond_timedwait(&s->change, &s->lock, &ts);
}

static void *watch_clock(void *arg)
{
	struct serve *s = arg;
	int64_t looked = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		int64_t now = serve_now(), next;

		if (now - looked >= LOOK_NS) {
			find_gone(s);
			looked = now;
		}
		next = MIN(look_at_requests(s, now), look_at_peers(s, now));
		for (struct shown *h = s->shown; h; h = h->next)
			next = MIN(next, shown_tend(h, now));
		sleep_until(s, next == INT64_MAX ? next : MAX(next, now + LEAST_NS));
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int clock_start(struct serve *s)
{
	pthread_condattr_t attr;
	int r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->change, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&s->clock, NULL, watch_clock, s);
	s->has_clock = !r;
	return -r;
}
