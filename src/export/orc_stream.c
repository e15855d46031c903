/* Streams of ORC, their encodings and compression: see orc_stream.h. */
#include "export/orc_stream.h"

#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define LITERALS_MOST 128
#define RUN_LEAST 3
#define RUN_MOST 130
#define ZSTD_LEVEL 3

/* ---- compression ---- */

#ifdef HAVE_ZLIB
static int deflate_init(struct orc_press *p)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	/* Without the header of zlib: the format has deflate as it is. */
	if (deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	p->deflate = z;
	return 0;
}

static void deflate_release(struct orc_press *p)
{
	if (p->deflate)
		deflateEnd(p->deflate);
	free(p->deflate);
}

/* 0: it did not become smaller. */
static size_t deflate_block(struct orc_press *p, const struct buf *block)
{
	z_stream *z = p->deflate;

	deflateReset(z);
	z->next_in = block->data;
	z->avail_in = (uInt)block->len;
	z->next_out = p->room;
	z->avail_out = (uInt)p->cap_room;
	return deflate(z, Z_FINISH) == Z_STREAM_END ? p->cap_room - z->avail_out : 0;
}
#else
static int deflate_init(struct orc_press *p)
{
	(void)p;
	return -EOPNOTSUPP;
}

static void deflate_release(struct orc_press *p)
{
	(void)p;
}

static size_t deflate_block(struct orc_press *p, const struct buf *block)
{
	(void)p;
	(void)block;
	return 0;
}
#endif

int orc_press_init(struct orc_press *p, enum orc_compression kind)
{
	*p = (struct orc_press){.kind = kind, .cap_room = ZSTD_COMPRESSBOUND(ORC_BLOCK)};
	p->room = malloc(p->cap_room);
	if (!p->room)
		return -ENOMEM;
	if (kind == ORC_ZLIB)
		return deflate_init(p);
	if (kind == ORC_NONE)
		return 0;
	p->zstd = ZSTD_createCCtx();
	return p->zstd ? 0 : -ENOMEM;
}

void orc_press_release(struct orc_press *p)
{
	ZSTD_freeCCtx(p->zstd);
	deflate_release(p);
	free(p->room);
}

static size_t zstd_block(struct orc_press *p, const struct buf *block)
{
	size_t n = ZSTD_compressCCtx(p->zstd, p->room, p->cap_room, block->data, block->len, ZSTD_LEVEL);

	return ZSTD_isError(n) ? 0 : n;
}

/* A block behind three bytes: its length, and whether it is as it was. */
static int press_block(struct orc_stream *s, struct orc_press *p)
{
	const struct buf *b = &s->block;
	size_t n = 0;
	bool same;
	uint8_t head[3];

	if (b->err)
		return b->err;
	if (!b->len)
		return 0;
	if (p->kind == ORC_ZSTD)
		n = zstd_block(p, b);
	else if (p->kind == ORC_ZLIB)
		n = deflate_block(p, b);
	same = !n || n >= b->len;
	n = (same ? b->len : n) << 1 | same;
	head[0] = (uint8_t)n;
	head[1] = (uint8_t)(n >> 8);
	head[2] = (uint8_t)(n >> 16);
	if (p->kind != ORC_NONE)
		buf_add(&s->done, head, sizeof(head));
	buf_add(&s->done, same ? b->data : p->room, n >> 1);
	buf_reset(&s->block);
	return s->done.err;
}

/* ---- bytes ---- */

void orc_stream_init(struct orc_stream *s)
{
	buf_init(&s->block, ORC_BLOCK);
	buf_init(&s->done, SIZE_MAX / 2);
}

void orc_stream_release(struct orc_stream *s)
{
	buf_release(&s->block);
	buf_release(&s->done);
}

void orc_stream_clear(struct orc_stream *s)
{
	buf_reset(&s->block);
	buf_reset(&s->done);
}

int orc_stream_add(struct orc_stream *s, struct orc_press *p, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len) {
		size_t n = MIN(len, ORC_BLOCK - s->block.len);
		int r;

		buf_add(&s->block, from, n);
		from += n;
		len -= n;
		r = s->block.len == ORC_BLOCK ? press_block(s, p) : s->block.err;
		if (r < 0)
			return r;
	}
	return 0;
}

int orc_stream_end(struct orc_stream *s, struct orc_press *p)
{
	return press_block(s, p);
}

/* ---- runs ---- */

/* How many of the first are equally far apart, at most as many as one run takes. */
static size_t run_length(const int64_t *v, size_t nr, int64_t *ret_delta)
{
	int64_t delta, next;
	size_t n = 2;

	if (nr < RUN_LEAST || __builtin_sub_overflow(v[1], v[0], &delta) || delta < INT8_MIN ||
		delta > INT8_MAX)
		return 1;
	while (n < RUN_MOST && n < nr && !__builtin_add_overflow(v[n - 1], delta, &next) && v[n] == next)
		n++;
	*ret_delta = delta;
	return n;
}

static size_t put_integer(uint8_t *out, int64_t v, bool is_signed)
{
	uint64_t left = is_signed ? zigzag(v) : (uint64_t)v;
	size_t n = 0;

	for (; left >= 0x80; left >>= 7)
		out[n++] = (uint8_t)(left | 0x80);
	out[n++] = (uint8_t)left;
	return n;
}

int orc_integers(struct orc_stream *s, struct orc_press *p, const int64_t *v, size_t nr, bool is_signed)
{
	uint8_t out[1 + LITERALS_MOST * 10];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr;) {
		int64_t delta = 0;
		size_t run = run_length(v + i, nr - i, &delta), n = 1, from = i;

		if (run >= RUN_LEAST) {
			out[0] = (uint8_t)(run - RUN_LEAST);
			out[1] = (uint8_t)delta;
			n = 2 + put_integer(out + 2, v[i], is_signed);
			i += run;
		} else {
			do
				n += put_integer(out + n, v[i++], is_signed);
			while (i < nr && i - from < LITERALS_MOST &&
				run_length(v + i, nr - i, &delta) < RUN_LEAST);
			out[0] = (uint8_t)(0x100 - (i - from));
		}
		r = orc_stream_add(s, p, out, n);
	}
	return r;
}

static size_t equal_bytes(const uint8_t *b, size_t nr)
{
	size_t n = 1;

	while (n < RUN_MOST && n < nr && b[n] == b[0])
		n++;
	return n;
}

int orc_bits(struct orc_stream *s, struct orc_press *p, const uint8_t *bytes, size_t nr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr;) {
		size_t run = equal_bytes(bytes + i, nr - i), from = i;
		uint8_t out[2];

		if (run >= RUN_LEAST) {
			out[0] = (uint8_t)(run - RUN_LEAST);
			out[1] = bytes[i];
			i += run;
			r = orc_stream_add(s, p, out, 2);
			continue;
		}
		do
			i++;
		while (i < nr && i - from < LITERALS_MOST && equal_bytes(bytes + i, nr - i) < RUN_LEAST);
		out[0] = (uint8_t)(0x100 - (i - from));
		r = orc_stream_add(s, p, out, 1);
		if (r >= 0)
			r = orc_stream_add(s, p, bytes + from, i - from);
	}
	return r;
}
