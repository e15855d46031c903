/* Bytes that many viewers are sent at once: made once, never changed, freed with the last who holds them. */
#ifndef SERVE_SHARED_H
#define SERVE_SHARED_H

#include "base/buf.h"

struct shared {
	struct buf bytes;
	unsigned refs; /* counted atomically */
};

struct shared *shared_take(struct buf *bytes); /* whose memory it takes; NULL: no memory */
struct shared *shared_ref(struct shared *s);
struct shared *shared_unref(struct shared *s); /* NULL */
void shared_drop(void *s);		       /* as a callback */
#endif
