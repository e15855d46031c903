/* The schema as bytes: everything by name, as pairs, so that a reader of any version takes what it knows.
 *
 * 	varint number of sets
 * 	for each: pairs (name, summary, domain), varint number of metrics, for each: pairs (name, help, ...)
 */
#ifndef STORE_SCHEMA_CODEC_H
#define STORE_SCHEMA_CODEC_H

#include "base/buf.h"
#include "metric/schema.h"

/* The bytes of a schema's block, as they were before they were packed. -EBADMSG, -ENOMEM. */
int schema_inflate(const uint8_t *p, size_t n, struct buf *out);
void schema_encode(const struct schema *s, struct buf *out);
/* -EBADMSG, -ENOMEM. */
int schema_decode(const void *data, size_t size, struct schema **ret);
#endif
