/* Fields of Protocol Buffers: see protobuf.h. */
#include "export/protobuf.h"

#include <endian.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void key(struct buf *out, unsigned field, unsigned wire)
{
	buf_add_varint(out, (uint64_t)field << 3 | wire);
}

void protobuf_uint(struct buf *out, unsigned field, uint64_t v)
{
	key(out, field, WIRE_VARINT);
	buf_add_varint(out, v);
}

void protobuf_sint(struct buf *out, unsigned field, int64_t v)
{
	protobuf_uint(out, field, zigzag(v));
}

void protobuf_double(struct buf *out, unsigned field, double v)
{
	uint64_t n;

	memcpy(&n, &v, sizeof(n));
	n = htole64(n);
	key(out, field, WIRE_64);
	buf_add(out, &n, sizeof(n));
}

void protobuf_float(struct buf *out, unsigned field, float v)
{
	uint32_t n;

	memcpy(&n, &v, sizeof(n));
	n = htole32(n);
	key(out, field, WIRE_32);
	buf_add(out, &n, sizeof(n));
}

void protobuf_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
	key(out, field, WIRE_BYTES);
	buf_add_bytes(out, data, len);
}

void protobuf_text(struct buf *out, unsigned field, const char *s)
{
	protobuf_bytes(out, field, s, strlen(s));
}

void protobuf_message(struct buf *out, unsigned field, struct buf *message)
{
	if (message->err && !out->err)
		out->err = message->err;
	protobuf_bytes(out, field, message->data, message->len);
	buf_reset(message);
}
