/* Whether a recording will have more, for a reader that came to its end. Costs one fstat() a call, and a look
 * at the lock and at the name once a second.
 *
 * The recorder holds a lock on the file while it lives. Where this machine can see the file's locks (one was
 * seen, or the recorder is on this machine), a lock that is gone means that the recorder has ended. Elsewhere
 * a file that did not grow for three flushes is taken for abandoned; if it grows all the same, it is read on.
 */
#ifndef STORE_WATCH_H
#define STORE_WATCH_H

#include "store/store.h"

struct store_watch {
	const char *path; /* to know that another file has the name now */
	int64_t flush_ns; /* how often it grows at least; 0: once a second */
	bool local;	  /* the recorder is, or was, on this machine */

	/* Internal. */
	uint64_t tried;	   /* size at which WATCH_MORE was last returned */
	int64_t grew_ns;   /* when; 0: not yet */
	int64_t looked_ns; /* at lock and name */
	bool locked;	   /* a lock was seen */
	bool unlocked;	   /* and is gone: nothing will come any more */
	bool last;	   /* the recorder has ended: what it wrote before that is read now */
	uint64_t end;	   /* the size then: more means that it has not ended */
};

enum watch {
	WATCH_END,  /* it is finished, or its recorder is gone */
	WATCH_MORE, /* read on */
	WATCH_WAIT, /* nothing yet */
};

/* To be called when store_next() has returned 0. An enum watch, -ESTALE when another file has its name or
 * what was read is cut off, or another negative errno. */
int store_watch(struct store_watch *w, const struct store_reader *r);
#endif
