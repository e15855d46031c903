/* Prometheus, in three ways: values are sent to it, or to what speaks as it does (remote write 1.0); it asks
 * for them (--listen); or node_exporter reads them from a file (--textfile).
 *
 * A server takes the samples of a series only in order of time, and only those of the last hour or so. A
 * request that holds one that it does not take is refused as a whole. So a batch that was refused is sent
 * again step by step, from the earliest. What is refused then because the series has later ones was taken
 * before where a request went unanswered, or an earlier pusher may have been stopped between answer and
 * state; else it is counted as not taken. What is too old for a server will not become younger: of a run that
 * has ended nothing is sent then, and the user is told the commands that put the whole run there. */
#include "push/prometheus.h"

#include "base/owned.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "push/prometheus_write.h"
#include "push/snappy.h"
#include "push/variables.h"

#include <stdio.h>
#include <string.h>

#define PATH "/api/v1/write"
#define BEGAN "began"
#define POINTS_MOST 2000
#define SECRET_MOST 4096
#define LIVE_MS INT64_C(300000) /* for so long Prometheus goes on with a value when no other comes */

struct prometheus {
	struct push *push;
	struct prometheus_all all;
	struct prometheus_last *last; /* of --listen and --textfile; NULL: remote write */
	struct buf url, message, body;
	struct prometheus_sample *sample;
	size_t cap;
	bool resumed; /* there was a pusher before */
};

/* ---- where to ---- */

static bool is_last(const struct push *p)
{
	return p->options->listen || p->options->textfile;
}

/* An address without a path gets that of Prometheus. */
static int put_url(struct buf *out, const struct push *p, struct buf *reterr)
{
	const char *given = p->options->url ? p->options->url : variable("PROMETHEUS_REMOTE_WRITE_URL");
	const char *host, *rest;

	if (!given) {
		buf_adds(reterr,
			"no address of Prometheus: give --to prometheus=http://HOST:9090, or "
			"PROMETHEUS_REMOTE_WRITE_URL; "
			"--listen and --textfile need no address");
		return -EINVAL;
	}
	if (!http_is_url(given)) {
		buf_adds(reterr, "the address must begin with http:// or https:// and name a host");
		return -EINVAL;
	}
	host = strstr(given, "://") + 3;
	rest = host + strcspn(host, "/?#");
	buf_add(out, given, (size_t)(rest - given));
	if (!*rest || !strcmp(rest, "/"))
		rest = PATH;
	buf_adds(out, rest);
	return out->err;
}

static int prometheus_address(const struct push *p, char *ret, size_t size, struct buf *reterr)
{
	struct buf url;
	int r;

	if (is_last(p) && p->options->url) {
		buf_adds(reterr, "--listen and --textfile take no address: leave =URL out");
		return -EINVAL;
	}
	if (is_last(p)) {
		snprintf(ret, size, "%s%s", p->options->listen ? "listen:" : "file:",
			p->options->listen ? p->options->listen : p->options->textfile);
		return 0;
	}
	buf_init(&url, 1 << 16);
	r = put_url(&url, p, reterr);
	if (r >= 0)
		http_address(ret, size, (const char *)url.data);
	buf_release(&url);
	return r;
}

/* The text of the file that a variable names, without the end of its line; NULL: it names none. */
static int secret_of_file(const char *name, char **ret, struct buf *reterr)
{
	const char *path = variable(name);
	size_t len;
	int r;

	*ret = NULL;
	if (!path)
		return 0;
	r = file_read(path, SECRET_MOST, ret, &len);
	if (r < 0) {
		buf_addf(reterr, "%s: %s ", name, path);
		file_read_why(reterr, r);
		return -EINVAL;
	}
	while (len && strchr("\r\n", (*ret)[len - 1]))
		(*ret)[--len] = 0;
	return 0;
}

static int set_secrets(const struct push *p, struct buf *reterr)
{
	_cleanup_(freep) char *token = NULL, *password = NULL;
	struct http_options o = {.timeout_ns = p->options->timeout_ns,
		.user = variable("PROMETHEUS_USERNAME"),
		.password = variable("PROMETHEUS_PASSWORD"),
		.bearer = variable("PROMETHEUS_BEARER_TOKEN"),
		.ca_file = variable("PROMETHEUS_CA_FILE")};
	int r = secret_of_file("PROMETHEUS_BEARER_TOKEN_FILE", &token, reterr);

	if (r >= 0)
		r = secret_of_file("PROMETHEUS_PASSWORD_FILE", &password, reterr);
	if (r < 0)
		return r;
	o.bearer = o.bearer ? o.bearer : token;
	o.password = o.password ? o.password : password;
	return http_set(p->http, &o, reterr);
}

/* ---- beginning and end ---- */

static void prometheus_close(void *s)
{
	struct prometheus *w = s;

	w->last = prometheus_last_free(w->last);
	prometheus_all_release(&w->all);
	buf_release(&w->url);
	buf_release(&w->message);
	buf_release(&w->body);
	free(w->sample);
	free(w);
}

static int prometheus_open(struct push *p, void **ret, struct buf *reterr)
{
	struct prometheus *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->push = p;
	w->resumed = p->state && push_note(p->state, BEGAN);
	buf_init(&w->url, 1 << 16);
	buf_init(&w->message, SIZE_MAX / 2);
	buf_init(&w->body, SIZE_MAX / 2);
	r = prometheus_all_init(&w->all, p, !is_last(p), reterr);
	if (r >= 0 && is_last(p) && !p->options->dry_run)
		r = prometheus_last_new(p, &w->all, &w->last, reterr);
	if (r >= 0 && !is_last(p) && !p->options->dry_run) {
		r = put_url(&w->url, p, reterr);
		if (r >= 0 && p->http)
			r = set_secrets(p, reterr);
	}
	if (r >= 0 && p->state && !w->resumed)
		r = push_note_set(p->state, BEGAN, "yes"); /* is kept before the first request */
	if (r < 0)
		prometheus_close(w);
	else
		*ret = w;
	return r;
}

/* ---- requests ---- */

static void no_memory(struct push_answer *ret)
{
	*ret = (struct push_answer){.outcome = PUSH_LATER};
	snprintf(ret->why, sizeof(ret->why), "no memory");
}

/* One request of samples in order. What it might have brought is noted when there is no answer. */
static enum prometheus_refusal request(
	struct prometheus *w, const struct prometheus_sample *sample, size_t nr, struct push_answer *ret)
{
	struct http_request q = {.method = "POST",
		.url = (const char *)w->url.data,
		.content_type = "application/x-protobuf",
		.content_encoding = "snappy",
		.header = "X-Prometheus-Remote-Write-Version: 0.1.0"};
	enum prometheus_refusal refusal;
	struct http_answer a;

	push_answer_sent(ret);
	buf_reset(&w->message);
	buf_reset(&w->body);
	prometheus_encode(&w->message, &w->all, sample, nr);
	snappy_compress(&w->body, w->message.data, w->message.len);
	if (w->message.err || w->body.err) {
		no_memory(ret);
		return PROMETHEUS_OTHER;
	}
	q.body = w->body.data;
	q.len = w->body.len;
	http_send(w->push->http, &q, &a);
	http_judge(&a, ret);
	refusal = ret->outcome == PUSH_SENT ? PROMETHEUS_OTHER : prometheus_refusal(a.status, a.body);
	for (size_t i = 0; i < nr; i++) {
		struct prometheus_series *s = sample[i].series;

		if (ret->outcome == PUSH_SENT) {
			s->sure = s->there = true;
			s->last_ms = MAX(s->last_ms, sample[i].ms);
		} else if (ret->outcome == PUSH_LATER && refusal == PROMETHEUS_OTHER) {
			s->tried_ms = MAX(s->tried_ms, sample[i].ms);
		}
	}
	if (refusal != PROMETHEUS_OTHER)
		ret->outcome = PUSH_REFUSED;
	if (a.status == 404) {
		size_t len = strlen(ret->why);

		snprintf(ret->why + len, sizeof(ret->why) - len,
			"; Prometheus takes values only with --web.enable-remote-write-receiver");
	}
	return refusal;
}

/* ---- what is refused ---- */

/* Behind the server's words: how the whole run gets there. */
static void say_too_old(const struct prometheus *w, struct push_answer *ret)
{
	char words[160];
	struct buf text;

	snprintf(words, sizeof(words), "%.159s", ret->why);
	buf_init(&text, 1 << 16);
	buf_addf(&text,
		"this is older than the server takes (%s). To put the whole run there: "
		"tacho export --to openmetrics -o run.openmetrics",
		words);
	for (size_t i = 0; i < w->push->run->nr; i++) {
		buf_addch(&text, ' ');
		add_shell_word(&text, w->push->run->path[i], strlen(w->push->run->path[i]));
	}
	buf_adds(&text,
		" && promtool tsdb create-blocks-from openmetrics run.openmetrics DATA "
		"(DATA: the server's --storage.tsdb.path)");
	snprintf(ret->why, sizeof(ret->why), "%s", (const char *)text.data);
	buf_release(&text);
}

struct replay { /* of a batch, step by step */
	struct prometheus *w;
	uint64_t dropped;
	char why[PUSH_WHY_SIZE]; /* of the last that was */
};

static void count_refused(struct replay *p, const struct prometheus_sample *sample,
	enum prometheus_refusal why, const struct push_answer *a)
{
	const struct prometheus_series *s = sample->series;
	bool there = sample->ms <= s->tried_ms || (p->w->resumed && !s->sure);
	struct push_answer words = *a;

	if (why == PROMETHEUS_OUT_OF_ORDER && there)
		return;
	if (why == PROMETHEUS_TOO_OLD)
		say_too_old(p->w, &words);
	else if (why == PROMETHEUS_OUT_OF_ORDER)
		snprintf(words.why, sizeof(words.why),
			"%.300s: the server has later values of this run, so it was pushed there before",
			a->why);
	p->dropped++;
	snprintf(p->why, sizeof(p->why), "%s", words.why);
}

/* Of those of one time and of series that took the step before, or that did not. 1: `a` is the answer to the
 * batch; 0: it goes on. */
static int send_group(struct replay *p, const struct prometheus_sample *sample, size_t nr, bool closed,
	struct push_answer *a)
{
	enum prometheus_refusal why = request(p->w, sample, nr, a);
	bool together = nr == 1 || closed || why == PROMETHEUS_TOO_OLD;
	int r = 0;

	if (a->outcome != PUSH_SENT && why == PROMETHEUS_OTHER)
		return 1;
	for (size_t i = 0; i < nr && r == 0; i++) {
		sample[i].series->closed =
			a->outcome != PUSH_SENT && together && why == PROMETHEUS_OUT_OF_ORDER;
		if (a->outcome != PUSH_SENT && together)
			count_refused(p, &sample[i], why, a);
	}
	if (a->outcome == PUSH_SENT || together)
		return 0;
	for (size_t i = 0; i < nr && r == 0; i++)
		r = send_group(p, &sample[i], 1, false, a);
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct prometheus_sample *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	if (x->series->closed != y->series->closed)
		return x->series->closed ? 1 : -1;
	return x->series->number < y->series->number ? -1 : x->series->number > y->series->number;
}

static void send_steps(struct prometheus *w, size_t nr, struct push_answer *ret)
{
	struct replay p = {.w = w};
	struct push_answer a = {0};

	qsort(w->sample, nr, sizeof(*w->sample), by_time);
	for (size_t at = 0; at < nr;) {
		size_t end = at, open;

		while (end < nr && w->sample[end].ms == w->sample[at].ms)
			end++;
		qsort(w->sample + at, end - at, sizeof(*w->sample), by_time); /* some were closed meanwhile */
		for (open = at; open < end && !w->sample[open].series->closed;)
			open++;
		if ((open > at && send_group(&p, w->sample + at, open - at, false, &a)) ||
			(end > open && send_group(&p, w->sample + open, end - open, true, &a))) {
			*ret = a;
			return;
		}
		at = end;
	}
	push_answer_sent(ret);
	ret->dropped = p.dropped;
	snprintf(ret->why, sizeof(ret->why), "%s", p.why);
}

/* ---- the sink ---- */

/* The points as samples, sorted; how many, negative errno. */
static ssize_t take_points(struct prometheus *w, const struct push_point *point, size_t nr)
{
	if (ARRAY_ROOM(w->sample, w->cap, nr) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct prometheus_series *s = prometheus_series_of(&w->all, point[i].series);

		if (!s)
			return -ENOMEM;
		w->sample[i] =
			(struct prometheus_sample){s, point[i].time_ns / NSEC_PER_MSEC, point[i].value, i};
	}
	return (ssize_t)prometheus_sort(w->sample, nr);
}

static void prometheus_send(void *s, struct push_point *point, size_t nr, struct push_answer *ret)
{
	struct prometheus *w = s;
	enum prometheus_refusal why;
	int64_t newest = INT64_MIN;
	ssize_t n;

	if (w->last) {
		prometheus_last_send(w->last, point, nr, ret);
		return;
	}
	n = take_points(w, point, nr);
	if (n <= 0) {
		no_memory(ret);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		newest = MAX(newest, w->sample[i].ms);
	why = request(w, w->sample, (size_t)n, ret);
	if (why == PROMETHEUS_TOO_OLD && !w->push->run->follows) {
		ret->outcome = PUSH_FATAL;
		say_too_old(w, ret);
	} else if (why != PROMETHEUS_OTHER) {
		send_steps(w, (size_t)n, ret);
	}
	if (ret->outcome == PUSH_SENT && prometheus_purge(&w->all, newest - LIVE_MS) < 0)
		no_memory(ret);
}

static void prometheus_show(void *s, struct push_point *point, size_t nr, struct buf *out)
{
	struct prometheus *w = s;
	ssize_t n = take_points(w, point, nr);

	if (n < 0)
		out->err = (int)n;
	for (ssize_t i = 0; i < n; i++) {
		prometheus_series_text(out, &w->all, w->sample[i].series);
		buf_addch(out, ' ');
		openmetrics_add_real(out, w->sample[i].value);
		buf_addf(out, " %lld\n", (long long)w->sample[i].ms);
	}
}

/* A mark behind the last sample of each series, so that graphs end there. The server may refuse it: then they
 * end five minutes later. */
static void send_stale(struct prometheus *w, const struct push_end *end, struct push_answer *ret)
{
	int64_t end_ms = end->end_ns / NSEC_PER_MSEC;
	size_t n = 0;

	push_answer_sent(ret);
	if (ARRAY_ROOM(w->sample, w->cap, (size_t)POINTS_MOST) < 0) {
		no_memory(ret);
		return;
	}
	for (size_t i = 0; i <= w->all.nr && ret->outcome != PUSH_LATER; i++) {
		struct prometheus_series *s = i < w->all.nr ? w->all.series[i] : NULL;

		if (s && s->there && !s->closed && s->last_ms >= end_ms - LIVE_MS)
			w->sample[n++] = (struct prometheus_sample){
				s, MAX(end_ms, s->last_ms) + 1, prometheus_stale(), i};
		if (n == POINTS_MOST || (!s && n)) {
			n = prometheus_sort(w->sample, n);
			request(w, w->sample, n, ret);
			n = 0;
		}
	}
	if (ret->outcome != PUSH_LATER)
		push_answer_sent(ret);
}

static void prometheus_finish(void *s, const struct push_end *end, struct push_answer *ret)
{
	struct prometheus *w = s;

	if (w->last)
		prometheus_last_finish(w->last, ret);
	else
		send_stale(w, end, ret);
}

static void prometheus_where(void *s, struct buf *out)
{
	const struct prometheus *w = s;
	const struct push_run *run = w->push->run;
	char address[512], start[48] = "";

	if (w->last) {
		prometheus_last_where(w->last, out);
		return;
	}
	http_address(address, sizeof(address), (const char *)w->url.data);
	if (run->start_ns > 0 && !*run->job)
		prometheus_start_text(start, sizeof(start), run->start_ns);
	buf_addf(out, "%s {run=\"", address);
	openmetrics_add_escaped(out, run->name, strlen(run->name));
	buf_addf(out, "\",%s=\"", *run->job ? "tacho_job" : "start");
	openmetrics_add_escaped(out, *run->job ? run->job : start, strlen(*run->job ? run->job : start));
	buf_adds(out, "\"}");
}

const struct push_sink push_prometheus = {
	.name = "prometheus",
	.help = "Prometheus, VictoriaMetrics, Mimir: remote write; --listen, --textfile",
	.url_help = "http://HOST:9090 (PROMETHEUS_REMOTE_WRITE_URL; PROMETHEUS_USERNAME, _PASSWORD, "
		    "_BEARER_TOKEN)",
	.points_most = POINTS_MOST,
	.address = prometheus_address,
	.forgetful = is_last,
	.open = prometheus_open,
	.send = prometheus_send,
	.show = prometheus_show,
	.finish = prometheus_finish,
	.forget = prometheus_series_forget,
	.close = prometheus_close,
	.where = prometheus_where,
};
