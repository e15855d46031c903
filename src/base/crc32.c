/* Eight bytes at a time through eight tables, which are made at the first call: the time that it takes is a
 * small part of what compressing takes. zlib has the same, but gzip and Parquet are to be there without it.
 */
#include "base/crc32.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0xedb88320) /* 0x04c11db7, bits reversed */

static uint32_t remainder_of[8][256]; /* of a byte with so many zero bytes behind it */

static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		remainder_of[0][byte] = crc;
	}
	for (unsigned behind = 1; behind < 8; behind++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = remainder_of[behind - 1][byte];

			remainder_of[behind][byte] = crc >> 8 ^ remainder_of[0][crc & 0xff];
		}
}

uint32_t crc32_of(const void *data, size_t n)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	const uint8_t *p = data;
	uint32_t crc = UINT32_MAX;

	pthread_once(&made, make_tables);
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word, sum = 0;

		memcpy(&word, p, sizeof(word));
		word = le64toh(word) ^ crc;
		for (unsigned i = 0; i < 8; i++)
			sum ^= remainder_of[7 - i][word >> 8 * i & 0xff];
		crc = (uint32_t)sum;
	}
	while (n--)
		crc = crc >> 8 ^ remainder_of[0][(uint8_t)crc ^ *p++];
	return ~crc;
}
