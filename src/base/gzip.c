/* Deflate (RFC 1951) in one block of the fixed codes, with repetitions found by a table of the last place of
 * every three bytes. It is for texts of some kilobytes whose lines resemble each other, where the codes of
 * their own would gain little; zlib has more, and `tacho` is to be there without it. */
#include "base/gzip.h"

#include "base/crc32.h"

#include <string.h>

#define MATCH_LEAST 3
#define MATCH_MOST 258
#define WINDOW 32768
#define HASH_BITS 13
#define END_OF_BLOCK 256

struct bits {
	struct buf *out;
	uint32_t held;
	unsigned nr;
};

/* Least significant bit first. */
static void put_bits(struct bits *b, uint32_t value, unsigned nr)
{
	b->held |= value << b->nr;
	b->nr += nr;
	for (; b->nr >= 8; b->nr -= 8, b->held >>= 8)
		buf_addch(b->out, (int)(b->held & 0xff));
}

/* Huffman codes go the other way round: most significant bit first. */
static void put_code(struct bits *b, uint32_t code, unsigned nr)
{
	uint32_t turned = 0;

	for (unsigned i = 0; i < nr; i++)
		turned |= (code >> i & 1) << (nr - 1 - i);
	put_bits(b, turned, nr);
}

/* A literal, the end of the block or a length: RFC 1951, 3.2.6. */
static void put_symbol(struct bits *b, unsigned symbol)
{
	if (symbol < 144)
		put_code(b, 0x30 + symbol, 8);
	else if (symbol < 256)
		put_code(b, 0x190 + symbol - 144, 9);
	else if (symbol < 280)
		put_code(b, symbol - 256, 7);
	else
		put_code(b, 0xc0 + symbol - 280, 8);
}

/* Lengths and distances fall into ranges, which grow by one bit after every `each` of them. Returns the
 * number of the range; what lies within it is so many more bits. */
static unsigned range_of(unsigned value, unsigned each, unsigned *ret_more, unsigned *ret_bits)
{
	unsigned range = 0, first = 0, bits = 0;

	for (;;) {
		unsigned width;

		bits = range < 2 * each ? 0 : range / each - 1;
		width = 1u << bits;
		if (value < first + width)
			break;
		first += width;
		range++;
	}
	*ret_more = value - first;
	*ret_bits = bits;
	return range;
}

static void put_match(struct bits *b, size_t length, size_t distance)
{
	unsigned more, nr, range;

	if (length == MATCH_MOST) { /* a range of its own */
		put_symbol(b, 285);
	} else {
		range = range_of((unsigned)(length - MATCH_LEAST), 4, &more, &nr);
		put_symbol(b, 257 + range);
		put_bits(b, more, nr);
	}
	range = range_of((unsigned)(distance - 1), 2, &more, &nr);
	put_code(b, range, 5);
	put_bits(b, more, nr);
}

static uint32_t hash_of(const uint8_t *p)
{
	return (((uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]) * UINT32_C(2654435761)) >>
		(32 - HASH_BITS);
}

static size_t match_at(const uint8_t *data, size_t n, size_t at, size_t before)
{
	size_t length = 0, most = MIN(n - at, (size_t)MATCH_MOST);

	while (length < most && data[before + length] == data[at + length])
		length++;
	return length;
}

static void deflate_add(struct buf *out, const uint8_t *data, size_t n)
{
	uint32_t last[1 << HASH_BITS] = {0}; /* one more than the place; 0: none */
	struct bits b = {.out = out};

	put_bits(&b, 1, 1); /* the last block */
	put_bits(&b, 1, 2); /* of fixed codes */
	for (size_t at = 0; at < n;) {
		size_t length = 0, before = 0;

		if (n - at >= MATCH_LEAST) {
			uint32_t hash = hash_of(data + at);

			before = last[hash];
			if (before && at - (before - 1) <= WINDOW)
				length = match_at(data, n, at, before - 1);
			last[hash] = (uint32_t)at + 1;
		}
		if (length >= MATCH_LEAST) {
			put_match(&b, length, at - (before - 1));
			at += length;
		} else {
			put_symbol(&b, data[at++]);
		}
	}
	put_symbol(&b, END_OF_BLOCK);
	put_bits(&b, 0, 7); /* to the end of the byte */
}

static void put_u32(struct buf *out, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		buf_addch(out, (int)(v >> 8 * i & 0xff));
}

void gzip_add(struct buf *out, const void *data, size_t n)
{
	/* magic, deflate, no flags, no time, no level, system not told */
	static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};

	buf_add(out, head, sizeof(head));
	deflate_add(out, data, n);
	put_u32(out, crc32_of(data, n));
	put_u32(out, (uint32_t)n);
}

void base64_add(struct buf *out, const void *data, size_t n)
{
	static const char letter[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = MIN(n - i, (size_t)3);
		uint32_t word = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			(left > 2 ? p[i + 2] : 0);

		for (unsigned k = 0; k < 4; k++)
			buf_addch(out, k <= left ? letter[word >> (18 - 6 * k) & 63] : '=');
	}
}
