/* Who wants to know how far a long piece of work is. NULL pointers are fine: nobody does. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/base.h"

struct progress {
	/* done: of 1. Called often; whoever shows it decides how often. */
	void (*tell)(void *arg, const char *what, double done);
	void *arg;
};

/* Every piece of a recording that is read, by whatever thread, so that no pass over it is without a word.
 * NULL: it is not wanted. */
typedef void progress_read_fn(uint64_t bytes);
extern progress_read_fn *progress_on_read;

static inline void progress_tell(const struct progress *p, const char *what, double done)
{
	if (p && p->tell)
		p->tell(p->arg, what, done);
}
#endif
