/* Who wants to know how far a long piece of work is. NULL pointers are fine: nobody does. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/base.h"

struct progress {
	/* done: of 1. Called often; whoever shows it decides how often. */
	void (*tell)(void *arg, const char *what, double done);
	void *arg;
};

static inline void progress_tell(const struct progress *p, const char *what, double done)
{
	if (p && p->tell)
		p->tell(p->arg, what, done);
}
#endif
