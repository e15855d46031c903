/* Beginning and end of the server: see serve.h and internal.h. */
#include "serve/internal.h"

#include "serve/files.h"

#include <signal.h>
#include <string.h>

#define CONNECTIONS_MOST 256
#define CONNECTION_MEMORY ((size_t)32 << 10)
#define READERS 3u
#define MAKERS 2u

static void quiet(void *arg, const char *fmt, va_list ap)
{
	(void)arg, (void)fmt, (void)ap;
}

/* Addresses are taken as they come: none of ours has anything to unescape. */
static size_t leave(void *arg, struct MHD_Connection *c, char *text)
{
	(void)arg, (void)c;
	return strlen(text);
}

static int begin(struct serve *s, struct buf *reterr)
{
	int r = work_new(READERS, &s->work);

	if (r >= 0)
		r = work_new(MAKERS, &s->makers);
	if (r >= 0)
		r = work_new(1, &s->sketchers);
	if (r >= 0)
		r = clock_start(s);
	if (r < 0)
		return r;
	s->daemon =
		MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
			0, NULL, NULL, serve_answer, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
			MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MOST,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
			s->o.patience_s, MHD_OPTION_NOTIFY_COMPLETED, serve_completed, s,
			MHD_OPTION_NOTIFY_CONNECTION, serve_connection, s, MHD_OPTION_UNESCAPE_CALLBACK,
			leave, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!s->daemon) {
		buf_adds(reterr, "the server cannot be started: libmicrohttpd refuses");
		return -EIO;
	}
	return 0;
}

int serve_open(const struct serve_options *o, struct serve **ret, struct buf *reterr)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->listener = -1;
	s->idle_since_ns = serve_now();
	pthread_mutex_init(&s->lock, NULL);
	r = roots_open(&s->roots, o->path, o->nr_paths, reterr);
	if (r >= 0)
		r = listener_open(s, reterr);
	if (r >= 0)
		r = begin(s, reterr);
	if (r < 0) {
		serve_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* What waits is sent away, so that the daemon can end. */
static void resume_all(struct serve *s)
{
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	for (struct serve_request *q = s->request; q; q = q->next) {
		q->gone = true;
		if (q->suspended) {
			q->suspended = false;
			MHD_resume_connection(q->connection);
		}
	}
	pthread_cond_signal(&s->change);
	pthread_mutex_unlock(&s->lock);
}

struct serve *serve_close(struct serve *s)
{
	if (!s)
		return NULL;
	resume_all(s);
	listener_remove(s);
	if (s->has_clock)
		pthread_join(s->clock, NULL);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	else if (s->listener >= 0)
		close(s->listener);
	work_free(s->makers);
	work_free(s->sketchers);
	sketches_free(s);
	work_free(s->work);
	shown_free_all(s);
	catalog_free(&s->catalog);
	roots_close(&s->roots);
	listener_close(s);
	free(s);
	return NULL;
}

const char *serve_socket(const struct serve *s)
{
	return s->socket;
}

const char *serve_url(const struct serve *s)
{
	return s->url;
}

void serve_count(struct serve *s, size_t *ret_nr, size_t *ret_running)
{
	pthread_mutex_lock(&s->lock);
	while (!catalog_fresh(s) && !s->catalog.made_ns) {
		struct timespec ts = {.tv_nsec = 5 * NSEC_PER_MSEC};

		pthread_mutex_unlock(&s->lock);
		nanosleep(&ts, NULL);
		pthread_mutex_lock(&s->lock);
	}
	*ret_nr = s->catalog.nr;
	*ret_running = s->catalog.nr_running;
	pthread_mutex_unlock(&s->lock);
}

/* The run, if any, is over, and the last viewer has left. */
bool serve_is_done(struct serve *s)
{
	int64_t now = serve_now();
	bool done;

	if (!s->o.until_end)
		return false;
	pthread_mutex_lock(&s->lock);
	done = !s->request && (!s->had_viewers || now - s->idle_since_ns > s->o.linger_ns);
	if (done && catalog_fresh(s))
		done = !s->catalog.nr_running;
	else
		done = false;
	pthread_mutex_unlock(&s->lock);
	return done;
}
