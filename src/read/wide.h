/* Eight characters at a time. The texts of a thousand processes differ in the width of every number, so a
 * loop over characters is mispredicted at nearly each word; here a word costs a few multiplications whatever
 * its width. Plain C on 64-bit words rather than vector instructions: the same code on every machine, and
 * fast enough that the system calls around it are what counts. */
#ifndef READ_WIDE_H
#define READ_WIDE_H

#include "base/base.h"

#include <string.h>

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

/* First character in the lowest byte. */
static inline uint64_t wide_load(const char *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x;
}

/* Eight bytes holding 0 to 9 as a number. */
static inline uint64_t wide_value(uint64_t digits)
{
	digits = (digits * 10 + (digits >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
	digits = (digits * 100 + (digits >> 16)) & UINT64_C(0x0000ffff0000ffff);
	return (digits * 10000 + (digits >> 32)) & UINT64_C(0xffffffff);
}

/* The digits at p as a number, modulo 2^64; returns what follows them. */
static inline const char *wide_digits(const char *p, const char *end, uint64_t *ret)
{
	static const uint32_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
	uint64_t v = 0;

	while (likely(end - p >= 8)) {
		uint64_t x = wide_load(p) ^ EACH_BYTE('0');
		uint64_t others = (((x & EACH_BYTE(0x7f)) + EACH_BYTE(0x76)) | x) & EACH_BYTE(0x80);
		unsigned n;

		if (!others) {
			v = v * 100000000 + wide_value(x);
			p += 8;
			continue;
		}
		n = (unsigned)__builtin_ctzll(others) / 8;
		/* Leading zeros take the place of what is no digit; in two steps, as n may be 0. */
		*ret = v * power[n] + wide_value(x << 8 * (7 - n) << 8);
		return p + n;
	}
	for (; p < end && (unsigned char)(*p - '0') <= 9; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*ret = v;
	return p;
}

/* As read_number(), within the loops of this folder. */
static inline bool wide_number(const char **p, const char *end, int64_t *ret)
{
	bool negative = *p < end && **p == '-';
	const char *start = *p + negative, *stop;
	uint64_t v;

	stop = wide_digits(start, end, &v);
	if (stop == start)
		return false;
	*p = stop;
	*ret = (int64_t)(negative ? -v : v);
	return true;
}

/* Bit i is set when character i of eight is a blank: a space or a control character. */
static inline uint64_t wide_blanks(const char *p)
{
	uint64_t x = wide_load(p);
	uint64_t dark = (((x & EACH_BYTE(0x7f)) + EACH_BYTE(0x7f - ' ')) | x) & EACH_BYTE(0x80);

	return ((dark ^ EACH_BYTE(0x80)) >> 7) * UINT64_C(0x0102040810204080) >> 56;
}
#endif
