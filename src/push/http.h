/* Requests by libcurl, with limits on everything that a server could do to us: time, size of an answer, kinds
 * of addresses; no redirections (secrets would go along), nothing from ~/.netrc. */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "base/buf.h"

struct http_options {
	int64_t timeout_ns;
	const char *user, *password; /* Basic; NULL: none */
	const char *bearer;	     /* Authorization: Bearer …; NULL */
	const char *token;	     /* Authorization: Token …; NULL */
	const char *ca_file, *client_cert, *client_key;
	bool insecure;		   /* certificates are not checked */
	const char *const *header; /* "Name: value", sent with every request; NULL-terminated or NULL */
};

struct http;
/* Copies the options. A file of TLS that is not there is said in reterr. */
int http_new(const struct http_options *o, struct http **ret, struct buf *reterr);
struct http *http_free(struct http *h);
/* Other options from now on: sinks know their own variables for secrets. */
int http_set(struct http *h, const struct http_options *o, struct buf *reterr);

struct http_request {
	const char *method; /* "POST", "GET", "PUT" */
	const char *url;
	const char *content_type;     /* NULL: none */
	const char *content_encoding; /* "gzip", "snappy"; NULL */
	const char *header;	      /* one more; NULL */
	const void *body;
	size_t len;
	const char *file; /* PUT: its content is the body; NULL */
};

/* `stop` is asked while a request goes on; once it says true an answer has two more seconds to come. */
void http_may_stop(struct http *h, bool (*stop)(void *arg), void *arg);

#define HTTP_BODY_MOST (4 << 20)
struct http_answer {
	long status;	  /* 0: there was none, and `error` says why */
	int64_t after_ns; /* Retry-After; 0: not said */
	const char *body; /* NUL-terminated, cut at HTTP_BODY_MOST; valid until the next request */
	size_t len;
	char error[256]; /* "Connection refused"; no secrets */
};

void http_send(struct http *h, const struct http_request *q, struct http_answer *ret);
/* What most servers mean: 2xx SENT; none, 408, 429, 5xx and what is no status LATER; 401, 403, 404, 405, 3xx
 * FATAL; other 4xx REFUSED. `why` gets the status and the beginning of the server's words. */
struct push_answer;
void http_judge(const struct http_answer *a, struct push_answer *ret);

/* Appends the text with what a URL cannot hold as %XX. */
void http_escape(struct buf *out, const char *text);
/* The address without user, password and query, for people and the state. */
void http_address(char *ret, size_t size, const char *url);
/* http:// or https://, and a host. */
bool http_is_url(const char *url);
/* The path joined to a base address that may end in / and have a query. */
void http_join(struct buf *out, const char *base, const char *path);
#endif
