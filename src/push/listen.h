/* A server of one page: HTTP/1.1, GET and HEAD of /metrics, for those who have the token. It has a thread of
 * its own, which never waits for one client: their number, the size of what they ask and the time that they
 * take are limited. */
#ifndef PUSH_LISTEN_H
#define PUSH_LISTEN_H

#include "base/buf.h"

struct listen;

struct listen_options {
	const char *address; /* "[ADDRESS:]PORT": loopback unless an address is given. Port 0: a free one */
	const char *token_file; /* made when it is not there */
	const char *content_type;
	int64_t head_ns;   /* for a request to come in; 0: 10 s */
	int64_t answer_ns; /* for an answer to be taken; 0: 30 s */
};

/* Binds; the thread begins. -EINVAL and others: reterr says what to do. */
int listen_new(const struct listen_options *o, struct listen **ret, struct buf *reterr);
struct listen *listen_free(struct listen *l); /* connections are closed */
/* The page from now on, which is copied. Before there is one the answer is 503. */
int listen_put(struct listen *l, const struct buf *page);
const char *listen_url(const struct listen *l); /* "http://127.0.0.1:9464/metrics" */
/* How often the page was taken, and the longest time between two of these. */
uint64_t listen_taken(struct listen *l, int64_t *ret_longest_ns);
/* Whether "[ADDRESS:]PORT" can be understood: the parts, of which *ret_host is NULL where none is given. The
 * caller frees both. */
int listen_parse(const char *text, char **ret_host, char **ret_port, struct buf *reterr);
#endif
