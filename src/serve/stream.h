/* Events of a run, for one viewer. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "serve/internal.h"

enum MHD_Result stream_begin(struct request *q);
void stream_end(struct request *q); /* under the lock */
/* There is something to be said. Under the lock. */
bool stream_has_news(struct request *q, int64_t now);

/* answer.c */
enum MHD_Result answer_send(struct request *q, unsigned status, const char *type, struct MHD_Response *r);
enum MHD_Result answer_say(struct request *q, unsigned status, const char *title, const char *text);
enum MHD_Result answer_wait(struct request *q, int64_t until_ns);
#endif
