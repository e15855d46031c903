/* InfluxDB, and what else understands its line protocol over HTTP: VictoriaMetrics, Telegraf, QuestDB.
 *
 * Two ways to write: /write of version 1 with a database, /api/v2/write of versions 2 and 3 with an
 * organisation and a bucket. A value that comes twice replaces itself, so a batch may be sent again. Lines
 * are in influx_lines.c. */
#include "push/influx.h"

#include "base/gzip.h"
#include "base/str.h"
#include "base/text.h"
#include "push/variables.h"

#include <stdio.h>
#include <string.h>

#define POINTS_MOST 5000

static const char *const host_variables[] = {"INFLUX_URL", "INFLUX_HOST", NULL};
static const char *const bucket_variables[] = {"INFLUX_BUCKET", "INFLUX_BUCKET_NAME", NULL};

struct influx {
	struct push *push;
	struct influx_lines lines;
	struct buf url, body, packed;
};

/* ---- the address ---- */

struct influx_query { /* as they stand there, escaped */
	struct text db, rp, consistency, org, org_id, bucket, extra_label;
};

static const struct influx_part {
	const char *key;
	size_t at;
	bool names; /* it tells where values go */
} part[] = {
	{"db", offsetof(struct influx_query, db), true},
	{"rp", offsetof(struct influx_query, rp), true},
	{"org", offsetof(struct influx_query, org), true},
	{"orgID", offsetof(struct influx_query, org_id), true},
	{"bucket", offsetof(struct influx_query, bucket), true},
	{"consistency", offsetof(struct influx_query, consistency), false},
	{"extra_label", offsetof(struct influx_query, extra_label), true},
};

static struct text *part_of(struct influx_query *q, size_t i)
{
	return (struct text *)((char *)q + part[i].at);
}

static int take_part(struct influx_query *q, struct text word, struct buf *reterr)
{
	struct text key = text_cut(&word, '=');

	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (text_is(key, part[i].key)) {
			*part_of(q, i) = word;
			return 0;
		}
	if (text_is(key, "u") || text_is(key, "p"))
		buf_adds(reterr,
			"an address with user and password is not taken: give them as INFLUX_USERNAME and "
			"INFLUX_PASSWORD");
	else
		buf_addf(reterr, "'%.*s' in the address is not understood: db=, rp=, org=, bucket= are",
			(int)MIN(key.len, (size_t)40), key.p);
	return -EINVAL;
}

static int read_query(const char *url, struct influx_query *ret, struct buf *reterr)
{
	const char *at = strchr(url, '?');
	struct text rest = at ? text_of(at + 1) : (struct text){"", 0};
	int r = 0;

	*ret = (struct influx_query){0};
	if (strchr(url, '#')) {
		buf_adds(reterr, "an address with '#' is not understood");
		return -EINVAL;
	}
	while (rest.len && r >= 0) {
		struct text word = text_cut(&rest, '&');

		if (word.len)
			r = take_part(ret, word, reterr);
	}
	return r;
}

static bool add_variable(struct buf *out, const char *key, const char *value)
{
	if (!value)
		return false;
	buf_addf(out, "&%s=", key);
	http_escape(out, value);
	return true;
}

/* What of the variables the address does not say. */
static int add_bucket(struct influx_query *q, struct buf *out, struct buf *reterr)
{
	bool bucket = q->bucket.len || add_variable(out, "bucket", variable_of(bucket_variables));
	bool org = q->org.len || q->org_id.len || add_variable(out, "org", variable("INFLUX_ORG")) ||
		add_variable(out, "orgID", variable("INFLUX_ORG_ID"));

	if (bucket && org)
		return 0;
	buf_adds(reterr,
		bucket ? "of which organisation is the bucket? Add &org=NAME to the address, or set "
			 "INFLUX_ORG"
		       : "the address has no database: add ?db=NAME (InfluxDB 1, VictoriaMetrics) or "
			 "?org=NAME&bucket=NAME (InfluxDB 2)");
	return -EINVAL;
}

static void add_parts(struct influx_query *q, bool only_names, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		struct text *t = part_of(q, i);

		if (t->len && (part[i].names || !only_names))
			buf_addf(out, "&%s=%.*s", part[i].key, (int)t->len, t->p);
	}
}

/* "&db=x&rp=y": of the address, then of the variables. */
static int add_query(const char *url, bool only_names, bool *ret_v2, struct buf *out, struct buf *reterr)
{
	struct influx_query q;
	int r = read_query(url, &q, reterr);

	if (r < 0)
		return r;
	*ret_v2 = !q.db.len;
	add_parts(&q, only_names, out);
	return *ret_v2 ? add_bucket(&q, out, reterr) : 0;
}

static bool ends_with(struct text t, const char *path)
{
	while (t.len && t.p[t.len - 1] == '/')
		t.len--;
	return text_ends(t, path);
}

int influx_url(const char *url, struct buf *out, struct buf *reterr)
{
	size_t n = strcspn(url, "?#");
	struct text base = {url, n};
	bool v2, whole;
	struct buf query;
	int r;

	buf_init(&query, 1 << 16);
	r = add_query(url, false, &v2, &query, reterr);
	if (r >= 0 && query.err)
		r = query.err;
	if (r >= 0) {
		const char *path = v2 ? "/api/v2/write" : "/write";

		whole = ends_with(base, path); /* or it stands there already */
		while (base.len && base.p[base.len - 1] == '/')
			base.len--;
		buf_add(out, base.p, base.len);
		buf_addf(out, "%s?precision=ns%s", whole ? "" : path, (char *)query.data);
	}
	buf_release(&query);
	return r;
}

static const char *url_of(const struct push *p, struct buf *reterr)
{
	const char *url = p->options->url ? p->options->url : variable_of(host_variables);

	if (!url)
		buf_adds(reterr,
			"no address of InfluxDB: give --to influx=http://HOST:8086?db=NAME, or set "
			"INFLUX_HOST");
	else if (!http_is_url(url))
		buf_adds(reterr,
			"this is not an address of InfluxDB; one looks like http://HOST:8086?db=NAME");
	else
		return url;
	return NULL;
}

/* With the database: another one is another target. */
static int influx_address(const struct push *p, char *ret, size_t size, struct buf *reterr)
{
	const char *url = url_of(p, reterr);
	struct buf query;
	bool v2;
	int r;

	if (!url)
		return -EINVAL;
	buf_init(&query, 1 << 16);
	r = add_query(url, true, &v2, &query, reterr);
	if (r >= 0 && query.len) {
		http_address(ret, size, url);
		snprintf(ret + strlen(ret), size - strlen(ret), "?%s", (char *)query.data + 1);
	}
	buf_release(&query);
	return r;
}

/* ---- requests ---- */

static int set_rights(struct push *p, struct buf *reterr)
{
	struct http_options o = {
		.timeout_ns = p->options->timeout_ns,
		.user = variable("INFLUX_USERNAME"),
		.password = variable("INFLUX_PASSWORD"),
		.insecure = variable_true("INFLUX_SKIP_VERIFY"),
	};

	if (!o.user)
		o.token = variable("INFLUX_TOKEN");
	return p->http ? http_set(p->http, &o, reterr) : 0;
}

static void influx_close(void *s)
{
	struct influx *f = s;

	influx_lines_release(&f->lines);
	buf_release(&f->url);
	buf_release(&f->body);
	buf_release(&f->packed);
	free(f);
}

static int influx_open(struct push *p, void **ret, struct buf *reterr)
{
	const char *url = url_of(p, reterr);
	struct influx *f = url ? calloc(1, sizeof(*f)) : NULL;
	int r;

	if (!f)
		return url ? -ENOMEM : -EINVAL;
	f->push = p;
	buf_init(&f->url, 1 << 17);
	buf_init(&f->body, 64 << 20);
	buf_init(&f->packed, 80 << 20);
	r = influx_url(url, &f->url, reterr);
	if (r >= 0)
		r = f->url.err ? f->url.err : influx_lines_make(&f->lines, p, reterr);
	if (r >= 0)
		r = set_rights(p, reterr);
	if (r < 0) {
		influx_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void add_why(struct push_answer *a, const char *text)
{
	size_t n = strlen(a->why);

	snprintf(a->why + n, sizeof(a->why) - n, "%s", text);
}

/* The number behind "dropped=", of lines. */
static uint64_t dropped_lines(const struct http_answer *a)
{
	const char *at = strstr(a->body, "dropped=");
	uint64_t n = 0;

	for (const char *p = at ? at + 8 : ""; *p >= '0' && *p <= '9' && n < UINT32_MAX; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	return n;
}

/* Of a partial write the rest was taken. When a field has another type than before its whole line was
 * dropped: that is tried again in smaller parts, until the field is alone. What is older than the database
 * keeps, or too much for it, will not be taken in parts either. */
static void judge(const struct http_answer *a, size_t points, size_t lines, struct push_answer *ret)
{
	http_judge(a, ret);
	if (ret->outcome == PUSH_SENT && a->len) { /* who takes lines has nothing to say: 204 */
		*ret = (struct push_answer){.outcome = PUSH_LATER};
		snprintf(ret->why, sizeof(ret->why),
			"the server answers %ld, but not as InfluxDB does: is the address right?", a->status);
	}
	if (a->status == 401 || a->status == 403)
		add_why(ret,
			"; user and password are those of INFLUX_USERNAME and INFLUX_PASSWORD, a token is "
			"INFLUX_TOKEN");
	else if (a->status == 404 && strstr(a->body, "database not found"))
		add_why(ret, "; make it with: influx -execute 'CREATE DATABASE NAME'");
	if (ret->outcome != PUSH_REFUSED || !strstr(a->body, "partial write") ||
		!strstr(a->body, "dropped=") || strstr(a->body, "type conflict"))
		return;
	ret->outcome = PUSH_SENT;
	ret->dropped = MIN(dropped_lines(a) * points / MAX(lines, (size_t)1), (uint64_t)points);
}

static void influx_send(void *s, struct push_point *point, size_t nr, struct push_answer *ret)
{
	struct influx *f = s;
	struct http_request q = {.method = "POST",
		.url = (char *)f->url.data,
		.content_type = "text/plain; charset=utf-8",
		.content_encoding = "gzip"};
	struct http_answer a;
	size_t lines;

	buf_reset(&f->body);
	buf_reset(&f->packed);
	lines = influx_lines_add(&f->lines, point, nr, &f->body);
	gzip_add(&f->packed, f->body.data, f->body.len);
	if (f->body.err || f->packed.err) {
		*ret = (struct push_answer){.outcome = PUSH_LATER, .why = "no memory for a request"};
		return;
	}
	q.body = f->packed.data;
	q.len = f->packed.len;
	http_send(f->push->http, &q, &a);
	judge(&a, nr, lines, ret);
}

static void influx_show(void *s, struct push_point *point, size_t nr, struct buf *out)
{
	struct influx *f = s;

	influx_lines_add(&f->lines, point, nr, out);
}

const struct push_sink push_influx = {
	.name = "influx",
	.help = "InfluxDB 1 and 2, VictoriaMetrics: line protocol",
	.url_help = "http://HOST:8086?db=NAME (InfluxDB 1, VictoriaMetrics) or ?org=NAME&bucket=NAME "
		    "(InfluxDB 2); else "
		    "INFLUX_URL or INFLUX_HOST, with INFLUX_ORG and INFLUX_BUCKET. INFLUX_USERNAME and "
		    "INFLUX_PASSWORD, or INFLUX_TOKEN",
	.points_most = POINTS_MOST,
	.address = influx_address,
	.open = influx_open,
	.send = influx_send,
	.show = influx_show,
	.close = influx_close,
};
