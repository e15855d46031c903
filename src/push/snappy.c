/* Snappy's block format: see snappy.h. What stood before within the same 64 KiB is found by a hash of four
 * bytes; where nothing is found for long, steps become longer, so that bytes that cannot be compressed cost
 * little. */
#include "push/snappy.h"

#include <string.h>

#define BLOCK ((size_t)1 << 16) /* distances have 16 bits */
#define TABLE_BITS 14
#define MATCH_LEAST 4
#define COPY_MOST 64 /* bytes of one copy */

enum { TAG_LITERAL = 0, TAG_COPY_SHORT = 1, TAG_COPY = 2 };

static uint32_t load(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void add_literal(struct buf *out, const uint8_t *p, size_t len)
{
	size_t n = len - 1;

	if (!len)
		return;
	if (n < 60) {
		buf_addch(out, (int)(n << 2 | TAG_LITERAL));
	} else if (n < 256) {
		buf_addch(out, 60 << 2 | TAG_LITERAL);
		buf_addch(out, (int)n);
	} else { /* a block has no more than two bytes can tell */
		buf_addch(out, 61 << 2 | TAG_LITERAL);
		buf_addch(out, (int)(n & 0xff));
		buf_addch(out, (int)(n >> 8));
	}
	buf_add(out, p, len);
}

static void add_piece(struct buf *out, size_t distance, size_t len)
{
	if (len >= 4 && len <= 11 && distance < 2048) {
		buf_addch(out, (int)(distance >> 8 << 5 | (len - 4) << 2 | TAG_COPY_SHORT));
		buf_addch(out, (int)(distance & 0xff));
		return;
	}
	buf_addch(out, (int)((len - 1) << 2 | TAG_COPY));
	buf_addch(out, (int)(distance & 0xff));
	buf_addch(out, (int)(distance >> 8));
}

static void add_copy(struct buf *out, size_t distance, size_t len)
{
	for (; len > COPY_MOST; len -= COPY_MOST)
		add_piece(out, distance, COPY_MOST);
	add_piece(out, distance, len);
}

static void compress_block(struct buf *out, const uint8_t *p, size_t len)
{
	uint16_t seen[1 << TABLE_BITS]; /* where four bytes of this hash stood last */
	size_t at = 0, literal = 0;

	memset(seen, 0, sizeof(seen));
	while (at + MATCH_LEAST <= len) {
		uint32_t word = load(p + at), hash = word * UINT32_C(0x9e3779b1) >> (32 - TABLE_BITS);
		size_t before = seen[hash], n = MATCH_LEAST;

		seen[hash] = (uint16_t)at;
		if (before >= at || load(p + before) != word) {
			at += 1 + ((at - literal) >> 5);
			continue;
		}
		while (at + n < len && p[before + n] == p[at + n])
			n++;
		add_literal(out, p + literal, at - literal);
		add_copy(out, at - before, n);
		at += n;
		literal = at;
	}
	add_literal(out, p + literal, len - literal);
}

void snappy_compress(struct buf *out, const void *data, size_t len)
{
	const uint8_t *p = data;

	buf_add_varint(out, len);
	for (size_t from = 0; from < len; from += BLOCK)
		compress_block(out, p + from, MIN(len - from, BLOCK));
}
