/* Events of a run, for one viewer. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "serve/internal.h"

enum MHD_Result stream_begin(struct serve_request *q);
void stream_end(struct serve_request *q); /* under the lock */
/* There is something to be said. Under the lock. */
bool stream_has_news(struct serve_request *q, int64_t now);

/* answer.c */
enum MHD_Result answer_send(
	struct serve_request *q, unsigned status, const char *type, struct MHD_Response *r);
enum MHD_Result answer_say(struct serve_request *q, unsigned status, const char *title, const char *text);
enum MHD_Result answer_wait(struct serve_request *q, int64_t until_ns);
#endif
