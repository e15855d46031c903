/* When a segment ends and how much may wait for a full disk. Settable only so that tests need not write
 * gigabytes. */
#ifndef STORE_LIMITS_H
#define STORE_LIMITS_H

#include "store/store.h"

struct store_limits {
	int64_t segment_ns;	/* a segment ends after this time... */
	uint64_t segment_bytes; /* ...or this much compressed data... */
	unsigned prolong;	/* ...but not while its deltas are less than this many times its opening... */
	int64_t segment_max_ns; /* ...except after this time */
	size_t block_bytes;	/* a block is closed at this size even without a flush */
	size_t pending_bytes;	/* what may wait; at most the default */
};

extern const struct store_limits store_limits_default;
void store_set_limits(struct store_writer *w, const struct store_limits *limits);
#endif
