/* What a recording says about itself at its beginning and at its end, without its ticks: for commands that
 * look at thousands of recordings. */
#ifndef STORE_GLANCE_H
#define STORE_GLANCE_H

#include "store/store.h"

struct store_glance {
	uint64_t bytes;	     /* of the file */
	bool complete;	     /* the last block is its summary */
	bool damaged;	     /* in the part that was read: `tacho check` reads everything */
	bool writing;	     /* a recorder holds the file open */
	int64_t modified_ns; /* wall clock, of the file */
};

/* Metadata (STORE_META) and the summary (STORE_SUMMARY) as they are found; valid during the call. */
typedef int store_take(void *arg, enum store_type type, const struct pairs *pairs);

/* -EBADMSG: no recording; -ENOENT and others; what `take` returns when it is negative. */
int store_glance(const char *path, store_take *take, void *arg, struct store_glance *ret);
#endif
