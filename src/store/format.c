/* The header of a block. It has a checksum of its own beside the payload's, so that after damage a reader can
 * distinguish a whole header from bytes that look like one, and may trust its length. Finding the next block
 * costs one pass over the file, even in a file made to cost more. */
#include "store/format.h"

#include "store/crc32c.h"

void block_header_put(uint8_t *out, const struct block_header *h)
{
	uint8_t *p = out;

	p = put_u32(p, BLOCK_MAGIC);
	p = put_u32(p, h->file);
	p = put_u32(p, h->sequence);
	p = put_u16(p, h->type);
	p = put_u16(p, h->flags);
	p = put_u32(p, h->length);
	p = put_u32(p, h->crc);
	put_u32(p, crc32c(out, BLOCK_HEADER - 4));
}

bool block_header_get(const uint8_t *p, struct block_header *ret)
{
	if (get_u32(p) != BLOCK_MAGIC || get_u32(p + 24) != crc32c(p, BLOCK_HEADER - 4))
		return false;
	*ret = (struct block_header){
		.file = get_u32(p + 4),
		.sequence = get_u32(p + 8),
		.type = get_u16(p + 12),
		.flags = get_u16(p + 14),
		.length = get_u32(p + 16),
		.crc = get_u32(p + 20),
	};
	return ret->length <= BLOCK_MAX;
}
