/* Threads that read recordings, so that the one that answers never waits. */
#ifndef SERVE_WORK_H
#define SERVE_WORK_H

#include "base/base.h"

struct work;

int work_new(unsigned threads, struct work **ret);
/* Waits for what is being done; what has not begun is dropped. */
struct work *work_free(struct work *w);
/* false: no memory; nothing will be done. */
bool work_add(struct work *w, void (*job)(void *arg), void *arg);
#endif
