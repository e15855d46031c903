/* Where segments begin, without reading what lies between: by the index, or by the headers of blocks alone.
 * Works in files that are finished, unfinished or damaged, also where the index is wrong. */
#ifndef STORE_FIND_H
#define STORE_FIND_H

#include "base/base.h"

struct segment_place {
	uint64_t offset, size; /* of its first block */
	uint32_t sequence;     /* of that block */
	int64_t time_ns;       /* in its first record */
};

/* The last segment of the recording `file` that begins in bytes [from, to) and not after the time.
 * 1; 0: there is none; a negative errno. */
int segment_find(
	int fd, uint32_t file, uint64_t from, uint64_t to, int64_t time_ns, struct segment_place *ret);
/* The end mark of the recording, which is its last block: the same. */
int summary_find(int fd, uint32_t file, uint64_t from, uint64_t to, struct segment_place *ret);
#endif
