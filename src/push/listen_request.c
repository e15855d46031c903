/* Heads of requests, strictly: see listen_request.h. */
#include "push/listen_request.h"

#include "base/text.h"

#include <strings.h>

#define PATH "/metrics"

const char *listen_reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "HTTP Version Not Supported";
	}
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_word(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (!is_token_char(t.p[i]))
			return false;
	return t.len;
}

static bool same_word(struct text t, const char *word)
{
	return t.len == strlen(word) && !strncasecmp(t.p, word, t.len);
}

static bool has_item(struct text list, const char *item)
{
	while (list.len)
		if (same_word(text_strip(text_cut(&list, ',')), item))
			return true;
	return false;
}

static bool same_secret(struct text given, const char *secret)
{
	size_t len = strlen(secret);
	unsigned differ = given.len != len;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)secret[i] ^ (unsigned char)(i < given.len ? given.p[i] : 0);
	return !differ;
}

struct head { /* what matters of it */
	struct text authorization, connection;
	unsigned hosts, authorizations;
	bool body, bad;
};

static void take_header(struct head *h, struct text line)
{
	struct text value = line, name = text_cut(&value, ':');

	if (!is_word(name) || name.len == line.len) { /* also one that continues the line before */
		h->bad = true;
		return;
	}
	value = text_strip(value);
	for (size_t i = 0; i < value.len; i++)
		if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
			h->bad = true;
	if (same_word(name, "Host"))
		h->hosts++;
	else if (same_word(name, "Connection"))
		h->connection = value;
	else if (same_word(name, "Transfer-Encoding"))
		h->body = true;
	else if (same_word(name, "Content-Length"))
		h->body |= !text_is(value, "0");
	else if (same_word(name, "Authorization")) {
		h->authorizations++;
		h->authorization = value;
	}
}

/* Lines end in CR LF; a LF alone is none. */
static bool take_line(struct text *rest, struct text *ret)
{
	*ret = text_cut(rest, '\n');
	if (!ret->len || ret->p[ret->len - 1] != '\r')
		return false;
	ret->len--;
	return !memchr(ret->p, '\r', ret->len);
}

static bool is_allowed(const struct head *h, const char *token)
{
	struct text word = h->authorization, scheme = text_cut(&word, ' ');

	return same_word(scheme, "Bearer") && same_secret(text_strip(word), token);
}

static int judge(
	const struct head *h, struct text method, struct text target, struct text version, const char *token)
{
	bool v11 = text_is(version, "HTTP/1.1");

	if (h->bad || !is_word(method) || !target.len || *target.p != '/' || !text_starts(version, "HTTP/") ||
		h->authorizations > 1 || h->hosts > 1 || (v11 && !h->hosts))
		return 400;
	if (!v11 && !text_is(version, "HTTP/1.0"))
		return 505;
	if (h->body)
		return 413;
	if (!is_allowed(h, token))
		return 401;
	if (!text_is(text_cut(&target, '?'), PATH))
		return 404;
	return text_is(method, "GET") || text_is(method, "HEAD") ? 200 : 405;
}

struct listen_request listen_request(const char *bytes, size_t len, const char *token)
{
	static const char stop[] = "\r\n\r\n";
	const char *end = len ? memmem(bytes, len, stop, 4) : NULL;
	struct listen_request q = {0};
	struct text rest, line, method, target;
	struct head h = {0};

	if (!end && (len >= LISTEN_HEAD_MOST || (len && memchr(bytes, 0, len)))) {
		q.status = len >= LISTEN_HEAD_MOST ? 431 : 400;
		q.len = len;
	}
	if (!end)
		return q;
	q.len = (size_t)(end - bytes) + 4;
	rest = (struct text){bytes, q.len - 2};
	h.bad = !take_line(&rest, &line);
	method = text_cut(&line, ' ');
	target = text_cut(&line, ' ');
	for (struct text header; rest.len && !h.bad;) {
		if (take_line(&rest, &header))
			take_header(&h, header);
		else
			h.bad = true;
	}
	q.status = judge(&h, method, target, line, token);
	q.head = text_is(method, "HEAD");
	q.keep_alive = q.status == 200 && !has_item(h.connection, "close") &&
		(text_is(line, "HTTP/1.1") || has_item(h.connection, "keep-alive"));
	return q;
}
