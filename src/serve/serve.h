/* `tacho serve`: recordings in a browser, live (docs/serve.md). Reads them, and never writes to them. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "base/buf.h"

struct serve_options {
	const char *const *path; /* directories and recordings */
	size_t nr_paths;
	const char *socket;	/* of a unix socket; NULL: a private one. Not with port or bind */
	const char *address;	/* to listen at; NULL: 127.0.0.1 */
	int port;		/* -1: a unix socket; 0: a free one */
	const char *token_file; /* NULL: a token of this server's own */
	const char *const *allow_host;
	size_t nr_allow_host;
	const char *program; /* the file of `tacho`, for reports and exports; NULL: there are none */
	unsigned patience_s; /* how long a viewer may take nothing of what it is sent */
	bool until_end;	     /* it ends when no recording is in progress and the last viewer has left */
	int64_t linger_ns;   /* how long it waits for viewers to come back then */
};

struct serve;

/* Listens, and answers from now on. A negative errno, and reterr says what to do. */
int serve_open(const struct serve_options *o, struct serve **ret, struct buf *reterr);
/* Ends all connections; the socket is removed. */
struct serve *serve_close(struct serve *s);
/* Where: the path of the socket, else NULL. */
const char *serve_socket(const struct serve *s);
/* "http://127.0.0.1:8080/#TOKEN"; of a socket NULL. */
const char *serve_url(const struct serve *s);
/* How many recordings were found, and how many of them are in progress. */
void serve_count(struct serve *s, size_t *ret_nr, size_t *ret_running);
/* With until_end: it has nothing to do any more. */
bool serve_is_done(struct serve *s);
#endif
