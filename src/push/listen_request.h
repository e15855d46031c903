/* What a client asks of push/listen.c: the head of one request, which may be anything. */
#ifndef PUSH_LISTEN_REQUEST_H
#define PUSH_LISTEN_REQUEST_H

#include "base/base.h"

#define LISTEN_HEAD_MOST 8192

struct listen_request {
	size_t len;	 /* of its head; 0: it is not all there yet */
	int status;	 /* what to answer: 200, or why not */
	bool head;	 /* HEAD: no body */
	bool keep_alive; /* another may follow on the connection */
};

/* Of the bytes that have come so far. The token is compared in a time that does not tell how much of it is
 * right. What is asked, and by what name the server was called (Host), does not matter without it. */
struct listen_request listen_request(const char *bytes, size_t len, const char *token);
const char *listen_reason(int status);
#endif
