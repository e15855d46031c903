/* Requests by libcurl: see http.h. */
#include "push/http.h"

#include "base/str.h"
#include "push/sink.h"
#include "push/variables.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define HEADERS_MOST 32
#define READ_MOST ((uint64_t)64 << 20) /* of an answer, headers included, before it is given up */
#define HEADER_BYTES_MOST (256 << 10)
#define STOP_NS (2 * NSEC_PER_SEC)

struct http {
	CURL *curl;
	struct curl_slist *header; /* with every request */
	char *user, *password, *bearer, *ca_file, *client_cert, *client_key;
	bool insecure;
	int64_t timeout_ns;
	struct buf body; /* of the answer */
	uint64_t read, header_read;
	bool too_long, whole_head; /* of the answer */
	int64_t after_ns;
	bool (*stop)(void *arg);
	void *stop_arg;
	int64_t stop_ns; /* monotonic clock: when it was told to; 0: not yet */
	char error[CURL_ERROR_SIZE];
};

static bool add_header(struct curl_slist **list, const char *text)
{
	struct curl_slist *more = curl_slist_append(*list, text);

	if (!more)
		return false;
	*list = more;
	return true;
}

static bool copy_text(char **to, const char *from)
{
	free(*to);
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static int check_file(const char *path, struct buf *reterr)
{
	if (!path || access(path, R_OK) == 0)
		return 0;
	buf_addf(reterr, "%s: %s", path, strerror(errno));
	return -EINVAL;
}

static bool add_token(struct http *h, const char *token)
{
	char *line;
	bool ok;

	if (!token)
		return true;
	if (asprintf(&line, "Authorization: Token %s", token) < 0)
		return false;
	ok = add_header(&h->header, line);
	free(line);
	return ok;
}

/* It becomes part of a header: an end of line would begin another one. */
static bool is_word(const char *token)
{
	for (const char *p = token; p && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			return false;
	return true;
}

int http_set(struct http *h, const struct http_options *o, struct buf *reterr)
{
	bool ok = copy_text(&h->user, o->user) && copy_text(&h->password, o->password) &&
		copy_text(&h->bearer, o->bearer) && copy_text(&h->ca_file, o->ca_file) &&
		copy_text(&h->client_cert, o->client_cert) && copy_text(&h->client_key, o->client_key);

	curl_slist_free_all(h->header);
	h->header = NULL;
	ok = ok && is_word(o->token) && is_word(o->bearer) && add_header(&h->header, "Expect:") &&
		add_token(h, o->token);
	for (size_t i = 0; ok && o->header && o->header[i] && i < HEADERS_MOST; i++)
		ok = !strpbrk(o->header[i], "\r\n") && add_header(&h->header, o->header[i]);
	h->insecure = o->insecure;
	if (o->timeout_ns > 0)
		h->timeout_ns = o->timeout_ns;
	if (!ok) {
		buf_adds(reterr,
			"a token or a header cannot be sent: there is a line break in it, or no memory");
		return -EINVAL;
	}
	if (check_file(h->ca_file, reterr) < 0 || check_file(h->client_cert, reterr) < 0)
		return -EINVAL;
	return check_file(h->client_key, reterr);
}

int http_new(const struct http_options *o, struct http **ret, struct buf *reterr)
{
	struct http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	buf_init(&h->body, HTTP_BODY_MOST);
	h->timeout_ns = 30 * NSEC_PER_SEC;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->curl = curl_easy_init();
	r = h->curl ? http_set(h, o, reterr) : -ENOMEM;
	if (r < 0) {
		http_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

struct http *http_free(struct http *h)
{
	if (!h)
		return NULL;
	curl_easy_cleanup(h->curl);
	curl_slist_free_all(h->header);
	buf_release(&h->body);
	free(h->user);
	free(h->password);
	free(h->bearer);
	free(h->ca_file);
	free(h->client_cert);
	free(h->client_key);
	free(h);
	return NULL;
}

/* False, and the request fails, when there is no end to it: an answer may be anything. */
static bool may_read(struct http *h, size_t n)
{
	h->read += n;
	h->too_long = h->read > READ_MOST || h->header_read > HEADER_BYTES_MOST;
	return !h->too_long;
}

/* What is beyond the limit is read and dropped. */
static size_t take_body(char *data, size_t size, size_t nr, void *arg)
{
	struct http *h = arg;
	size_t n = size * nr;

	if (!may_read(h, n))
		return 0;
	buf_add(&h->body, data, MIN(n, HTTP_BODY_MOST - h->body.len));
	return n;
}

/* Seconds, or a date; of a date only that it is later than now by at most an hour. */
static size_t take_header(char *data, size_t size, size_t nr, void *arg)
{
	static const char name[] = "retry-after:";
	struct http *h = arg;
	size_t n = size * nr, at = sizeof(name) - 1;
	char text[64] = "";
	time_t when;

	h->header_read += n;
	if (!may_read(h, n))
		return 0;
	if (n >= 5 && !memcmp(data, "HTTP/", 5))
		h->whole_head = false;
	h->whole_head |= n && (data[0] == '\r' || data[0] == '\n'); /* the empty line; trailers may follow */
	if (n < at || strncasecmp(data, name, at) != 0)
		return n;
	while (at < n && data[at] == ' ')
		at++;
	memcpy(text, data + at, MIN(n - at, sizeof(text) - 1));
	if (text[0] >= '0' && text[0] <= '9' && strspn(text, "0123456789") < 6) {
		h->after_ns = strtol(text, NULL, 10) * NSEC_PER_SEC;
		return n;
	}
	when = curl_getdate(text, NULL) - time(NULL);
	if (when > 0)
		h->after_ns = MIN((int64_t)when, INT64_C(3600)) * NSEC_PER_SEC;
	return n;
}

void http_may_stop(struct http *h, bool (*stop)(void *arg), void *arg)
{
	h->stop = stop;
	h->stop_arg = arg;
}

/* Not at once: what has arrived need not be sent again if its answer comes. */
static int watch_stop(void *arg, curl_off_t to_get, curl_off_t got, curl_off_t to_send, curl_off_t sent)
{
	struct http *h = arg;
	struct timespec t;
	int64_t now;

	(void)to_get, (void)got, (void)to_send, (void)sent;
	if (!h->stop || !h->stop(h->stop_arg))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
	if (!h->stop_ns)
		h->stop_ns = now;
	return now - h->stop_ns > STOP_NS;
}

static void set_options(struct http *h, const struct http_request *q)
{
	CURL *c = h->curl;

	curl_easy_reset(c);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, watch_stop);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
	curl_easy_setopt(c, CURLOPT_URL, q->url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)MAX(h->timeout_ns / NSEC_PER_MSEC, 1));
	curl_easy_setopt(
		c, CURLOPT_CONNECTTIMEOUT_MS, (long)MAX(MIN(h->timeout_ns / NSEC_PER_MSEC, 10000), 1));
	curl_easy_setopt(c, CURLOPT_USERAGENT, "tacho/" TACHO_VERSION);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
	if (h->user || h->password) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(c, CURLOPT_USERNAME, h->user ? h->user : "");
		curl_easy_setopt(c, CURLOPT_PASSWORD, h->password ? h->password : "");
	} else if (h->bearer) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, h->bearer);
	}
	if (h->ca_file || variable("SSL_CERT_FILE")) /* the latter as for other programs */
		curl_easy_setopt(c, CURLOPT_CAINFO, h->ca_file ? h->ca_file : variable("SSL_CERT_FILE"));
	if (h->client_cert)
		curl_easy_setopt(c, CURLOPT_SSLCERT, h->client_cert);
	if (h->client_key)
		curl_easy_setopt(c, CURLOPT_SSLKEY, h->client_key);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, h->insecure ? 0L : 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, h->insecure ? 0L : 2L);
}

/* The body, or a file that is read as it goes; NULL where it cannot be. */
static bool set_body(struct http *h, const struct http_request *q, FILE **ret)
{
	CURL *c = h->curl;

	*ret = NULL;
	if (q->file) {
		FILE *f = *ret = fopen(q->file, "rbe");
		long long size = f && fseeko(f, 0, SEEK_END) == 0 ? (long long)ftello(f) : -1;

		if (size < 0)
			return false;
		rewind(f);
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_READDATA, f);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 0L); /* it is large: only a standstill ends it */
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)MAX(h->timeout_ns / NSEC_PER_SEC, 1));
	} else if (strcmp(q->method, "GET") != 0) {
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body ? q->body : "");
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->len);
	}
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
	return true;
}

/* Those of every request, then of this one; they are not copied, so what is returned is freed by itself. */
static struct curl_slist *set_headers(struct http *h, const struct http_request *q)
{
	struct curl_slist *all = NULL;
	char line[300];
	bool ok = true;

	for (const struct curl_slist *p = h->header; p && ok; p = p->next)
		ok = add_header(&all, p->data);
	if (q->content_type) {
		snprintf(line, sizeof(line), "Content-Type: %s", q->content_type);
		ok = ok && add_header(&all, line);
	}
	if (q->content_encoding) {
		snprintf(line, sizeof(line), "Content-Encoding: %s", q->content_encoding);
		ok = ok && add_header(&all, line);
	}
	if (q->header)
		ok = ok && add_header(&all, q->header);
	if (!ok) {
		curl_slist_free_all(all);
		return NULL;
	}
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, all);
	return all;
}

void http_send(struct http *h, const struct http_request *q, struct http_answer *ret)
{
	struct curl_slist *header;
	FILE *file = NULL;
	CURLcode r;

	*ret = (struct http_answer){.body = ""};
	buf_reset(&h->body);
	h->after_ns = 0;
	h->read = h->header_read = 0;
	h->too_long = h->whole_head = false;
	h->error[0] = 0;
	set_options(h, q);
	if (!set_body(h, q, &file)) {
		snprintf(ret->error, sizeof(ret->error), "%s: %s", q->file, strerror(errno));
		if (file)
			fclose(file);
		return;
	}
	header = set_headers(h, q);
	r = header ? curl_easy_perform(h->curl) : CURLE_OUT_OF_MEMORY;
	if (r == CURLE_OK && h->whole_head)
		curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret->status);
	else
		snprintf(ret->error, sizeof(ret->error), "%s",
			h->too_long		? "the server's answer has no end"
				: r == CURLE_OK ? "the server's answer is cut off" /* libcurl takes it */
				: *h->error	? h->error
						: curl_easy_strerror(r));
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(header);
	if (file)
		fclose(file);
	ret->after_ns = h->after_ns;
	ret->body = (const char *)h->body.data;
	ret->len = h->body.len;
}

/* One line of the beginning, with what a terminal would obey escaped. */
static void add_words(struct buf *out, const char *text, size_t len)
{
	size_t n = MIN(len, (size_t)300);

	while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	for (size_t from = 0; from < n;) { /* lines become one */
		const char *end = memchr(text + from, '\n', n - from);
		size_t to = end ? (size_t)(end - text) : n;

		escape_bytes(out, text + from, to - from);
		if (end)
			buf_addch(out, ' ');
		from = to + 1;
	}
}

void http_judge(const struct http_answer *a, struct push_answer *ret)
{
	char memory[PUSH_WHY_SIZE];
	struct buf why;
	long s = a->status;

	*ret = (struct push_answer){.after_ns = a->after_ns};
	ret->outcome = s / 100 == 2			 ? PUSH_SENT
		: s / 100 == 3 || (s >= 401 && s <= 405) ? PUSH_FATAL
		: s / 100 != 4 || s == 408 || s == 429	 ? PUSH_LATER
							 : PUSH_REFUSED;
	if (ret->outcome == PUSH_SENT)
		return;
	buf_init_fixed(&why, memory, sizeof(memory));
	if (!s) {
		add_words(&why, a->error, strlen(a->error));
	} else {
		buf_addf(&why, "the server answers %ld", s);
		if (s / 100 == 3)
			buf_adds(&why, " and sends elsewhere: give the address that it means");
		else if (a->len)
			buf_adds(&why, ": ");
		if (s / 100 != 3)
			add_words(&why, a->body, a->len);
	}
	snprintf(ret->why, sizeof(ret->why), "%s", (char *)why.data);
}

/* ---- addresses ---- */

void http_escape(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++)
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			strchr("-._~", *p))
			buf_addch(out, *p);
		else
			buf_addf(out, "%%%02X", (unsigned char)*p);
}

bool http_is_url(const char *url)
{
	size_t n = str_starts(url, "http://") ? 7 : str_starts(url, "https://") ? 8 : 0;

	for (const char *p = url; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 127)
			return false;
	return n && url[n] && !strchr("/?#", url[n]);
}

void http_address(char *ret, size_t size, const char *url)
{
	const char *host = strstr(url, "://"), *end = url + strcspn(url, "?#"), *at = NULL;

	host = host ? host + 3 : url;
	for (const char *p = host; p < end && *p != '/'; p++)
		if (*p == '@')
			at = p + 1;
	while (end > host && end[-1] == '/')
		end--;
	snprintf(
		ret, size, "%.*s%.*s", (int)(host - url), url, (int)(end - (at ? at : host)), at ? at : host);
}

void http_join(struct buf *out, const char *base, const char *path)
{
	const char *query = base + strcspn(base, "?#");
	size_t n = (size_t)(query - base);

	while (n && base[n - 1] == '/')
		n--;
	buf_add(out, base, n);
	buf_adds(out, path);
	buf_adds(out, query);
}
