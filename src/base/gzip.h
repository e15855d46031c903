/* gzip (RFC 1952), written in one go without a library. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/buf.h"

/* Appends the data as one gzip member. The same data give the same bytes: no name, no time. */
void gzip_add(struct buf *out, const void *data, size_t n);
/* Appends the data as base64 (RFC 4648), with padding and without line breaks. */
void base64_add(struct buf *out, const void *data, size_t n);
#endif
