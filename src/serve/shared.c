/* Counted bytes: see shared.h. */
#include "serve/shared.h"

struct shared *shared_take(struct buf *bytes)
{
	struct shared *s = bytes->err ? NULL : malloc(sizeof(*s));

	if (!s) {
		buf_release(bytes);
		return NULL;
	}
	*s = (struct shared){.bytes = *bytes, .refs = 1};
	*bytes = (struct buf){0};
	return s;
}

struct shared *shared_ref(struct shared *s)
{
	if (s)
		__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

struct shared *shared_unref(struct shared *s)
{
	if (s && !__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) {
		buf_release(&s->bytes);
		free(s);
	}
	return NULL;
}

void shared_drop(void *s)
{
	shared_unref(s);
}
