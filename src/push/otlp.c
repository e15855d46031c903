/* OpenTelemetry: OTLP over HTTP, as JSON. Settings are the variables that OpenTelemetry defines for exporters
 * (opentelemetry.io/docs/specs/otel/protocol/exporter); those of metrics alone come before the general ones.
 *
 * What a server has taken in part is settled: what it rejected is lost, and a request is sent again only
 * after 429, 502, 503, 504 or no answer (opentelemetry.io/docs/specs/otlp, OTLP/HTTP Response). */
#include "push/otlp.h"

#include "base/gzip.h"
#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"
#include "push/variables.h"

#include <stdio.h>
#include <string.h>

#define POINTS_MOST 2000
#define PATH "/v1/metrics"
#define DEFAULT_URL "http://localhost:4318"
#define HEADERS_MOST 24
#define USUAL_TIMEOUT (30 * NSEC_PER_SEC) /* of --timeout */

#define VARIABLE(name) \
	((const char *const[]){"OTEL_EXPORTER_OTLP_METRICS_" name, "OTEL_EXPORTER_OTLP_" name, NULL})

/* ---- the address ---- */

/* The whole one, to which requests go. */
static int find_url(const struct push *p, struct buf *out, struct buf *reterr)
{
	const char *whole = variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), *base = p->options->url;
	const char *protocol = variable_of(VARIABLE("PROTOCOL"));
	size_t n;

	if (!base && protocol && !strcmp(protocol, "grpc")) {
		buf_adds(reterr,
			"OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and tacho speaks OTLP over HTTP: give its "
			"address, "
			"--to otlp=http://HOST:4318");
		return -EINVAL;
	}
	if (base)
		whole = NULL;
	else
		base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
	if (!base)
		base = DEFAULT_URL;
	if (!http_is_url(whole ? whole : base)) {
		buf_adds(reterr, "this is not an address of a collector; one looks like " DEFAULT_URL);
		return -EINVAL;
	}
	n = strcspn(base, "?#");
	while (n && base[n - 1] == '/')
		n--;
	if (whole)
		buf_adds(out, whole);
	else if (n >= strlen(PATH) && !memcmp(base + n - strlen(PATH), PATH, strlen(PATH)))
		buf_adds(out, base);
	else
		http_join(out, base, PATH);
	return out->err;
}

static int otlp_address(const struct push *p, char *ret, size_t size, struct buf *reterr)
{
	struct buf url;
	int r;

	buf_init(&url, 1 << 16);
	r = find_url(p, &url, reterr);
	if (r >= 0)
		http_address(ret, size, (char *)url.data);
	buf_release(&url);
	return r;
}

/* ---- settings ---- */

static int64_t wanted_timeout(const struct push *p)
{
	const char *text = variable_of(VARIABLE("TIMEOUT")); /* ms */
	uint64_t ms;

	if (p->options->timeout_ns == USUAL_TIMEOUT && text && parse_u64(text, &ms) && ms > 0 && ms < 3600000)
		return (int64_t)ms * NSEC_PER_MSEC;
	return p->options->timeout_ns;
}

static int header_lines(char ***line, size_t *nr, struct buf *reterr)
{
	const char *text = variable_of(VARIABLE("HEADERS"));
	struct otlp_pairs pairs = {0};
	int r = text ? otlp_pairs_read(&pairs, text) : 0;

	if (pairs.nr > HEADERS_MOST) {
		buf_addf(reterr, "OTEL_EXPORTER_OTLP_HEADERS has more than %d headers", HEADERS_MOST);
		r = -EINVAL;
	}
	for (size_t i = 0; i < pairs.nr && r >= 0; i++) {
		char *one;

		if (asprintf(&one, "%s: %s", pairs.pair[i].key, pairs.pair[i].value) < 0)
			one = NULL;
		r = texts_take(line, nr, one);
	}
	otlp_pairs_release(&pairs);
	return r;
}

static int set_rights(struct push *p, struct buf *reterr)
{
	struct http_options o = {
		.timeout_ns = wanted_timeout(p),
		.ca_file = variable_of(VARIABLE("CERTIFICATE")),
		.client_cert = variable_of(VARIABLE("CLIENT_CERTIFICATE")),
		.client_key = variable_of(VARIABLE("CLIENT_KEY")),
	};
	const char *list[HEADERS_MOST + 1] = {NULL};
	char **line = NULL;
	size_t nr = 0;
	int r = header_lines(&line, &nr, reterr);

	for (size_t i = 0; i < nr && i < HEADERS_MOST; i++)
		list[i] = line[i];
	o.header = list;
	if (r >= 0 && p->http)
		r = http_set(p->http, &o, reterr);
	texts_free(line, nr);
	return r;
}

static bool wants_gzip(void)
{
	const char *how = variable_of(VARIABLE("COMPRESSION"));

	return how && !strcmp(how, "gzip");
}

static void otlp_close(void *s)
{
	otlp_release(s);
	free(s);
}

static int otlp_open(struct push *p, void **ret, struct buf *reterr)
{
	struct otlp *o = malloc(sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	r = otlp_make(o, p, reterr);
	o->compress = wants_gzip();
	if (r >= 0)
		r = find_url(p, &o->url, reterr);
	if (r >= 0)
		r = set_rights(p, reterr);
	if (r < 0) {
		otlp_close(o);
		return r;
	}
	*ret = o;
	return 0;
}

static const struct push_name *otlp_names(const struct push *p)
{
	return p->options->semconv ? otlp_semconv : NULL;
}

/* ---- requests ---- */

struct partial {
	int64_t rejected;
	char words[300];
};

static int take_partial(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct partial *p = arg;
	struct buf words;

	if (!strcmp(path, "partialSuccess.rejectedDataPoints") && (leaf == LEAF_TEXT || leaf == LEAF_NUMBER))
		parse_i64n(text, len, &p->rejected);
	if (strcmp(path, "partialSuccess.errorMessage") != 0 || leaf != LEAF_TEXT)
		return 0;
	buf_init_fixed(&words, p->words, sizeof(p->words));
	escape_bytes(&words, text, MIN(len, sizeof(p->words) / 5));
	return 0;
}

static void judge_taken(struct otlp *o, const struct http_answer *a, size_t nr, struct push_answer *ret)
{
	struct partial partial = {0};

	if (a->len && json_read(a->body, a->len, take_partial, &partial) < 0) {
		*ret = (struct push_answer){.outcome = PUSH_LATER};
		snprintf(ret->why, sizeof(ret->why),
			"the server answers %ld, but not as OTLP does: is the address right?", a->status);
		return;
	}
	if (partial.rejected <= 0) {
		if (*partial.words && o->push->say)
			o->push->say(o->push->say_arg, partial.words);
		return;
	}
	ret->dropped = MIN((uint64_t)partial.rejected, (uint64_t)nr);
	snprintf(ret->why, sizeof(ret->why), "the server rejects %lld of %zu points%s%s",
		(long long)ret->dropped, nr, *partial.words ? ": " : "", partial.words);
}

static void judge(struct otlp *o, const struct http_answer *a, size_t nr, struct push_answer *ret)
{
	long s = a->status;

	http_judge(a, ret);
	if (ret->outcome == PUSH_SENT)
		judge_taken(o, a, nr, ret);
	else if (s / 100 == 5 && s != 502 && s != 503 && s != 504)
		ret->outcome = PUSH_FATAL; /* not to be repeated, but the points are not to blame */
}

static void otlp_send(void *s, struct push_point *point, size_t nr, struct push_answer *ret)
{
	struct otlp *o = s;
	struct http_request q = {
		.method = "POST", .url = (char *)o->url.data, .content_type = "application/json"};
	struct buf *body = &o->body;
	struct http_answer a;
	int r;

	buf_reset(&o->body);
	buf_reset(&o->packed);
	r = otlp_body(o, point, nr, &o->body);
	if (o->compress) {
		gzip_add(&o->packed, o->body.data, o->body.len);
		q.content_encoding = "gzip";
		body = &o->packed;
	}
	if (r < 0 || body->err) {
		*ret = (struct push_answer){.outcome = PUSH_LATER, .why = "no memory for a request"};
		return;
	}
	q.body = body->data;
	q.len = body->len;
	http_send(o->push->http, &q, &a);
	judge(o, &a, nr, ret);
}

static void otlp_show(void *s, struct push_point *point, size_t nr, struct buf *out)
{
	otlp_body(s, point, nr, out);
	buf_addch(out, '\n');
}

const struct push_sink push_otlp = {
	.name = "otlp",
	.help = "OpenTelemetry: metrics by OTLP over HTTP",
	.url_help = "http://HOST:4318; else OTEL_EXPORTER_OTLP_ENDPOINT or "
		    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, else " DEFAULT_URL ". OTEL_EXPORTER_OTLP_HEADERS",
	.points_most = POINTS_MOST,
	.address = otlp_address,
	.names = otlp_names,
	.open = otlp_open,
	.send = otlp_send,
	.show = otlp_show,
	.close = otlp_close,
};
