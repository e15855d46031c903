/* Writing Protocol Buffers: fields by number, what is not set is not there. A message within another
 * stands behind its length, which is known only when it ends: it is written to a buf of its own and added
 * as bytes. */
#ifndef EXPORT_PROTOBUF_H
#define EXPORT_PROTOBUF_H

#include "base/buf.h"

void protobuf_uint(struct buf *out, unsigned field, uint64_t v);
void protobuf_sint(struct buf *out, unsigned field, int64_t v); /* sint64: zigzag */
void protobuf_double(struct buf *out, unsigned field, double v);
void protobuf_float(struct buf *out, unsigned field, float v);
void protobuf_bytes(struct buf *out, unsigned field, const void *data, size_t len);
void protobuf_text(struct buf *out, unsigned field, const char *s);
/* Adds the message and empties it for the next; its error becomes that of `out`. */
void protobuf_message(struct buf *out, unsigned field, struct buf *message);
#endif
