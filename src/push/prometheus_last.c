/* The last values of a run in progress: see prometheus.h.
 *
 * They are made into text when they come, so that an answer costs nothing but its bytes. When the run has
 * ended they stay for as long as it takes until they are seen: twice the longest time between two requests,
 * or GRACE where that is not known. Then the endpoint ends, and the file of a run that was followed is
 * removed: to node_exporter it would be a run in progress for ever. */
#include "push/prometheus.h"

#include "base/whole_file.h"
#include "push/listen.h"
#include "push/prometheus_page.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define GRACE_NS (75 * NSEC_PER_SEC) /* Prometheus asks once a minute unless it is told otherwise */
#define OFTEN_NS (200 * NSEC_PER_MSEC)
#define CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define FILE_SUFFIX ".prom"

struct prometheus_last {
	struct push *push;
	struct prometheus_all *all;
	struct listen *listen; /* NULL: not asked for */
	const char *file;      /* NULL: not asked for */
	bool written;	       /* the file is there */
	int64_t shown_ns;      /* monotonic clock: when the text was made */
	int64_t until_ns;      /* the end of the time of grace; 0: it has not begun */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int prometheus_last_new(
	struct push *p, struct prometheus_all *all, struct prometheus_last **ret, struct buf *reterr)
{
	const struct push_options *o = p->options;
	size_t len = o->textfile ? strlen(o->textfile) : 0, suffix = strlen(FILE_SUFFIX);
	struct prometheus_last *l;
	int r = 0;

	if (o->listen && !o->token_file) {
		buf_adds(reterr,
			"--listen needs --token-file FILE: who asks must know the token in it, which is "
			"made when there is none");
		return -EINVAL;
	}
	if (o->textfile && (len <= suffix || strcmp(o->textfile + len - suffix, FILE_SUFFIX) != 0)) {
		buf_addf(reterr, "--textfile %s: node_exporter reads only names that end in " FILE_SUFFIX,
			o->textfile);
		return -EINVAL;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct prometheus_last){.push = p, .all = all, .file = o->textfile};
	if (o->listen) {
		const struct listen_options lo = {
			.address = o->listen, .token_file = o->token_file, .content_type = CONTENT_TYPE};

		r = listen_new(&lo, &l->listen, reterr);
	}
	if (r < 0) {
		free(l);
		return r;
	}
	if (l->listen && p->say) {
		char text[400];

		snprintf(text, sizeof(text), "prometheus: values are at %s", listen_url(l->listen));
		p->say(p->say_arg, text);
	}
	*ret = l;
	return 0;
}

struct prometheus_last *prometheus_last_free(struct prometheus_last *l)
{
	if (!l)
		return NULL;
	if (l->written && l->push->run->follows)
		unlink(l->file);
	listen_free(l->listen);
	free(l);
	return NULL;
}

/* ---- values ---- */

static void failed(struct push_answer *ret, int error, const char *path)
{
	bool wrong = error == -ENOENT || error == -ENOTDIR || error == -EISDIR || is_refused(error);

	*ret = (struct push_answer){.outcome = wrong ? PUSH_FATAL : PUSH_LATER};
	snprintf(ret->why, sizeof(ret->why), "%s%s%s", path ? path : "", path ? ": " : "", strerror(-error));
}

static void publish(struct prometheus_last *l, struct push_answer *ret)
{
	struct buf text;
	int r;

	buf_init(&text, SIZE_MAX / 2);
	if (l->listen) {
		prometheus_page(&text, l->all, true);
		r = listen_put(l->listen, &text);
		if (r < 0)
			failed(ret, r, NULL);
	}
	if (l->file) {
		buf_reset(&text);
		prometheus_page(&text, l->all, false);
		/* node_exporter is another user; the temporary name does not end in .prom */
		r = file_publish(l->file, &text);
		l->written |= r >= 0;
		if (r < 0)
			failed(ret, r, l->file);
	}
	buf_release(&text);
	l->shown_ns = now_ns();
}

void prometheus_last_send(
	struct prometheus_last *l, const struct push_point *point, size_t nr, struct push_answer *ret)
{
	int r = prometheus_keep(l->all, point, nr);

	push_answer_sent(ret);
	if (r < 0)
		failed(ret, r, NULL);
	else if (l->push->run->follows || now_ns() - l->shown_ns > OFTEN_NS) /* else there is more at once */
		publish(l, ret);
}

static int64_t grace(struct prometheus_last *l)
{
	int64_t longest = 0, most = MIN(GRACE_NS, l->push->options->linger_ns);

	if (l->file || listen_taken(l->listen, &longest) < 2)
		return most;
	return MIN(2 * longest + NSEC_PER_SEC, most);
}

void prometheus_last_finish(struct prometheus_last *l, struct push_answer *ret)
{
	int64_t now = now_ns();

	push_answer_sent(ret);
	if (!l->until_ns) {
		publish(l, ret);
		if (ret->outcome != PUSH_SENT)
			return;
		l->until_ns = now + (l->listen || l->push->run->follows ? grace(l) : 0);
	}
	if (now < l->until_ns)
		*ret = (struct push_answer){.outcome = PUSH_LATER, .after_ns = l->until_ns - now};
}

void prometheus_last_where(const struct prometheus_last *l, struct buf *out)
{
	buf_addf(out, "%s%s%s", l->listen ? listen_url(l->listen) : "", l->listen && l->file ? ", " : "",
		l->file ? l->file : "");
}
