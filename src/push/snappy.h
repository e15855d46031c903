/* Snappy's block format, which remote write asks for: github.com/google/snappy, format_description.txt. */
#ifndef PUSH_SNAPPY_H
#define PUSH_SNAPPY_H

#include "base/buf.h"

/* Appends the compressed bytes, with their length before compression in front; at most snappy_most() of
 * them. */
void snappy_compress(struct buf *out, const void *data, size_t len);

static inline size_t snappy_most(size_t len)
{
	return 16 + len + len / 4;
}
#endif
