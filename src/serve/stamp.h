/* Which files a run has, and whether one of them has changed since it was read. */
#ifndef SERVE_STAMP_H
#define SERVE_STAMP_H

#include "base/base.h"

struct stamp {
	uint64_t files; /* which these are: others have another number; 0: there is none */
	uint64_t state; /* and their sizes and times */
};

/* Of a recording, or of a directory and the recordings in it and in its nodes/. */
struct stamp stamp_of(const char *path);
static inline bool stamp_same(const struct stamp *a, const struct stamp *b)
{
	return a->files == b->files && a->state == b->state;
}
#endif
