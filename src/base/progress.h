/* Reports how far a long piece of work is. Pointers may be NULL: then nothing is reported. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/base.h"

struct progress {
	/* done: 0 to 1. Called often; the callee decides how often it is shown. */
	void (*tell)(void *arg, const char *what, double done);
	void *arg;
};

/* Called for every piece of a recording that is read, by any thread, so that every pass shows its progress.
 * NULL: not wanted. */
typedef void progress_read_fn(uint64_t bytes);
extern progress_read_fn *progress_on_read;

static inline void progress_tell(const struct progress *p, const char *what, double done)
{
	if (p && p->tell)
		p->tell(p->arg, what, done);
}
#endif
