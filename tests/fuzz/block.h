/* A block with a right header and checksum, for targets that make recordings. */
#ifndef FUZZ_BLOCK_H
#define FUZZ_BLOCK_H

#include "base/buf.h"
#include "store/crc32c.h"
#include "store/format.h"

static inline void fuzz_add_block(
	struct buf *file, uint32_t sequence, unsigned type, unsigned flags, const void *payload, size_t size)
{
	struct block_header h = {.file = 7,
		.sequence = sequence,
		.type = (uint16_t)type,
		.flags = (uint16_t)flags,
		.length = (uint32_t)size,
		.crc = crc32c(payload, size)};
	uint8_t header[BLOCK_HEADER];

	block_header_put(header, &h);
	buf_add(file, header, sizeof(header));
	buf_add(file, payload, size);
}
#endif
