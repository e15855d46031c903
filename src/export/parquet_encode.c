/* The encodings of Parquet. Everything is little-endian and so is every machine this is built for: values are
 * copied as they stand. */
#include "export/parquet_encode.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they stand in memory");

unsigned bits_needed(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* Room for n bytes at the end, and some behind that may be written to; NULL when there is none. */
static uint8_t *room(struct buf *out, size_t n)
{
	return buf_reserve(out, n + 16) ? out->data + out->len : NULL;
}

static void settle(struct buf *out, const uint8_t *end)
{
	out->len = (size_t)(end - out->data);
	out->data[out->len] = 0;
}

static void store64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* nr values, a multiple of 8, of `width` bits each, least significant first. Writes up to 8 bytes too many.
 */
static uint8_t *pack_narrow(uint8_t *p, const uint32_t *v, size_t nr, unsigned width)
{
	uint64_t word = 0;
	unsigned held = 0;

	for (size_t i = 0; i < nr; i++) {
		word |= (uint64_t)v[i] << held;
		held += width;
		if (held < 32)
			continue;
		store64(p, word);
		p += 4;
		word >>= 32;
		held -= 32;
	}
	store64(p, word);
	return p + held / 8;
}

static uint8_t *pack_wide(uint8_t *p, const uint64_t *v, size_t nr, unsigned width)
{
	uint64_t word = 0;
	unsigned held = 0;

	for (size_t i = 0; i < nr; i++) {
		word |= v[i] << held;
		if (held + width < 64) {
			held += width;
			continue;
		}
		store64(p, word);
		p += 8;
		word = held ? v[i] >> (64 - held) : 0;
		held = held + width - 64;
	}
	store64(p, word);
	return p + held / 8;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

/* ---- levels ---- */

#define RUN_BYTES 4 /* as many equal bytes of the bitmap make a run */

static size_t equal_bytes(const uint8_t *p, size_t nr)
{
	size_t n = 1;

	while (n < nr && p[n] == p[0])
		n++;
	return n;
}

static uint8_t *put_literal_bits(uint8_t *p, const uint8_t *bytes, size_t nr)
{
	if (!nr)
		return p;
	p = put_varint(p, (uint64_t)nr << 1 | 1);
	memcpy(p, bytes, nr);
	return p + nr;
}

static uint8_t *put_bit_runs(uint8_t *p, const uint8_t *bits, size_t nr)
{
	size_t nr_bytes = (nr + 7) / 8, whole = nr / 8, literal = 0, i = 0;

	while (i < whole) {
		size_t n = bits[i] == 0 || bits[i] == 0xff ? equal_bytes(bits + i, whole - i) : 0;

		if (n < RUN_BYTES) {
			i += MAX(n, (size_t)1);
			continue;
		}
		p = put_literal_bits(p, bits + literal, i - literal);
		p = put_varint(p, (uint64_t)n * 8 << 1);
		*p++ = bits[i] & 1;
		i += n;
		literal = i;
	}
	return put_literal_bits(p, bits + literal, nr_bytes - literal);
}

void encode_levels(struct buf *out, const uint8_t *bits, size_t nr, bool all)
{
	/* A run takes less room than the bytes it stands for, a literal at most 6 more than its own. */
	uint8_t *start = room(out, nr / 8 + nr / 32 + 32), *p;
	uint32_t len;

	if (!start)
		return;
	p = start + sizeof(len);
	if (all) {
		p = put_varint(p, (uint64_t)nr << 1);
		*p++ = 1;
	} else {
		p = put_bit_runs(p, bits, nr);
	}
	len = (uint32_t)(p - start - sizeof(len));
	memcpy(start, &len, sizeof(len));
	settle(out, p);
}

/* ---- indices ---- */

static uint8_t *put_literals(uint8_t *p, const uint32_t *v, size_t nr, unsigned width)
{
	uint32_t last[8] = {0};
	size_t whole = nr & ~(size_t)7;

	if (!nr)
		return p;
	p = put_varint(p, (uint64_t)(nr + 7) / 8 << 1 | 1);
	p = pack_narrow(p, v, whole, width);
	if (whole == nr)
		return p;
	memcpy(last, v + whole, (nr - whole) * sizeof(*v));
	return pack_narrow(p, last, 8, width);
}

static uint8_t *put_run(uint8_t *p, uint32_t v, size_t nr, unsigned width)
{
	p = put_varint(p, (uint64_t)nr << 1);
	for (unsigned done = 0; done < width; done += 8)
		*p++ = (uint8_t)(v >> done);
	return p;
}

void encode_indices(struct buf *out, const uint32_t *v, size_t nr, unsigned width)
{
	/* Eight values take `width` bytes at most, as literals; a run of eight or more 14 at most, and a
	 * literal before it 5 of its own. */
	uint8_t *p = room(out, 32 + (nr / 8 + 2) * (MAX(width, 1u) + 19));
	size_t literal = 0, i = 0;

	if (!p)
		return;
	*p++ = (uint8_t)width;
	while (i < nr) {
		size_t n = 1;

		while (i + n < nr && v[i + n] == v[i])
			n++;
		if (n < 8) {
			i += MIN((size_t)8, nr - i);
			continue;
		}
		p = put_literals(p, v + literal, i - literal, width);
		p = put_run(p, v[i], n, width);
		i += n;
		literal = i;
	}
	settle(out, put_literals(p, v + literal, nr - literal, width));
}

void encode_index(struct buf *out, uint32_t v, size_t nr, unsigned width)
{
	uint8_t *p = room(out, 32);

	if (!p)
		return;
	*p++ = (uint8_t)width;
	settle(out, put_run(p, v, nr, width));
}

/* ---- deltas ---- */

#define DELTA_BLOCK 128
#define DELTA_PART 32 /* miniblock: as many share a width */
#define DELTA_PARTS (DELTA_BLOCK / DELTA_PART)

static uint8_t *put_delta_block(uint8_t *p, const uint64_t *v, size_t nr)
{
	uint64_t delta[DELTA_BLOCK];
	int64_t least = INT64_MAX;
	uint8_t *width;

	for (size_t i = 0; i < nr; i++) {
		delta[i] = v[i] - v[i - 1];
		least = MIN(least, (int64_t)delta[i]);
	}
	for (size_t i = 0; i < nr; i++)
		delta[i] -= (uint64_t)least;
	memset(delta + nr, 0, (DELTA_BLOCK - nr) * sizeof(*delta));
	p = put_varint(p, zigzag(least));
	width = p;
	p += DELTA_PARTS;
	for (size_t part = 0; part < DELTA_PARTS; part++) {
		const uint64_t *d = delta + part * DELTA_PART;
		uint64_t any = 0;

		for (size_t i = 0; i < DELTA_PART; i++)
			any |= d[i];
		width[part] = (uint8_t)bits_needed(any);
		if (any)
			p = pack_wide(p, d, DELTA_PART, width[part]);
	}
	return p;
}

void encode_delta(struct buf *out, const uint64_t *v, size_t nr)
{
	size_t nr_blocks = nr / DELTA_BLOCK + 1;
	uint8_t *p = room(out, 64 + nr_blocks * (DELTA_BLOCK * sizeof(*v) + 16));

	if (!p)
		return;
	p = put_varint(p, DELTA_BLOCK);
	p = put_varint(p, DELTA_PARTS);
	p = put_varint(p, nr);
	p = put_varint(p, zigzag(nr ? (int64_t)v[0] : 0));
	for (size_t i = 1; i < nr; i += DELTA_BLOCK)
		p = put_delta_block(p, v + i, MIN((size_t)DELTA_BLOCK, nr - i));
	settle(out, p);
}

/* ---- the rest ---- */

/* Eight values to eight words, each of the same byte of all: a transposition by halves. */
static void transpose8(uint64_t x[static 8])
{
	static const uint64_t mask[3] = {0x00000000ffffffffull, 0x0000ffff0000ffffull, 0x00ff00ff00ff00ffull};

	for (unsigned step = 0, half = 4; half; step++, half /= 2)
		for (unsigned i = 0; i < 8; i++) {
			uint64_t low, high;

			if (i & half)
				continue;
			low = x[i];
			high = x[i + half];
			x[i] = (low & mask[step]) | (high & mask[step]) << (half * 8);
			x[i + half] = (low >> (half * 8) & mask[step]) | (high & ~mask[step]);
		}
}

void encode_split(struct buf *out, const uint64_t *v, size_t nr)
{
	uint8_t *p = room(out, nr * sizeof(*v));
	size_t whole = nr & ~(size_t)7, i = 0;

	if (!p)
		return;
	for (; i < whole; i += 8) {
		uint64_t x[8];

		memcpy(x, v + i, sizeof(x));
		transpose8(x);
		for (unsigned k = 0; k < 8; k++)
			store64(p + k * nr + i, x[k]);
	}
	for (; i < nr; i++)
		for (unsigned k = 0; k < 8; k++)
			p[k * nr + i] = (uint8_t)(v[i] >> 8 * k);
	settle(out, p + nr * sizeof(*v));
}

void encode_plain(struct buf *out, const uint64_t *v, size_t nr)
{
	buf_add(out, v, nr * sizeof(*v));
}

void encode_flags(struct buf *out, const uint8_t *v, size_t nr)
{
	uint8_t *p = room(out, nr / 8 + 1);

	if (!p)
		return;
	memset(p, 0, nr / 8 + 1);
	for (size_t i = 0; i < nr; i++)
		p[i / 8] |= (uint8_t)((v[i] != 0) << (i & 7));
	settle(out, p + (nr + 7) / 8);
}
