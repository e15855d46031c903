/* The numbers of the format: docs/format.md is the specification, this is its C side.
 *
 *	file    = block*
 *	block   = header payload
 *	segment = the payloads of the SEGMENT blocks from one marked FIRST up to the next: one zstd frame
 *	content of a segment = record*,  record = varint type, varint length, body */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include "base/base.h"

#define FORMAT_MINOR 1
#define MINOR_RESTATES_EVENTS 1 /* from this one on segments begin with OPEN records */

#define BLOCK_MAGIC UINT32_C(0x314354d5) /* bytes d5 'T' 'C' '1'; the digit is the major version */
#define BLOCK_HEADER 28
#define BLOCK_MAX (UINT32_C(4) << 20) /* most bytes of payload */
/* Most bytes that one block may decode to. Without this limit a kilobyte of file could cause gigabytes of
 * work. */
#define BLOCK_CONTENT_MAX (UINT32_C(32) << 20)

enum block_type {
	BLOCK_START = 1,   /* minor version, file id */
	BLOCK_META = 2,	   /* pairs */
	BLOCK_SCHEMA = 3,  /* sets and metrics, one zstd frame */
	BLOCK_SEGMENT = 4, /* a piece of a segment's zstd frame */
	BLOCK_INDEX = 5,   /* where segments start */
	BLOCK_SUMMARY = 6, /* pairs; the recording is complete */
};

enum block_flag {
	BLOCK_FIRST = 1, /* SEGMENT: the first block of a segment */
};

enum record_type {
	RECORD_SEGMENT = 1,  /* tick number, time, wall clock: the base of what follows */
	RECORD_INSTANCE = 2, /* set, row, id, flags, time, pairs */
	RECORD_GONE = 3,     /* set, row, id, time, pairs */
	RECORD_EVENT = 4,    /* time, kind, pairs */
	RECORD_CELLS = 5,    /* what changed in some rows of one set */
	RECORD_TICK =
		6, /* the tick that the CELLS before it belong to is whole; which sets were read later */
	RECORD_OPEN =
		7, /* as EVENT: one of an earlier segment that has not ended; for readers that begin here */
};

enum instance_flag {
	INSTANCE_AGAIN = 1,	/* it was known before */
	INSTANCE_SHORTENED = 2, /* values of the identity may be cut or missing */
};

enum cells_flag {
	CELLS_VALIDITY = 1, /* the validity of some cell changed */
};

#define DELAY_MAX_NS (INT64_C(1) << 40)	    /* of a set behind its tick */
#define RECORD_MAX (UINT32_C(1) << 20)	    /* bytes of a record's body */
#define WINDOW_LOG_MAX 20		    /* zstd window a reader must offer */
#define SETS_MAX 256			    /* sets of a schema */
#define FORMAT_ROWS_MAX (UINT32_C(1) << 20) /* rows of a set */
#define CELLS_ROWS_MAX 4096		    /* rows of one CELLS record */
#define TIME_MOST (INT64_C(1) << 61)	    /* ns before and after 0 that a time may be: 73 years */
#define SCHEMA_MAX (UINT32_C(4) << 20)	    /* bytes of a decoded schema */

struct block_header {
	uint32_t file;	   /* first four bytes of the file id: shows blocks of other recordings */
	uint32_t sequence; /* counts blocks from 0; a jump is a gap */
	uint16_t type, flags;
	uint32_t length; /* of the payload */
	uint32_t crc;	 /* of the payload */
};

/* Out must have BLOCK_HEADER bytes. */
void block_header_put(uint8_t *out, const struct block_header *h);
/* False when the BLOCK_HEADER bytes at p are no header: magic, checksum or length are wrong. */
bool block_header_get(const uint8_t *p, struct block_header *ret);

static inline uint8_t *put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	return p + 2;
}

static inline uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	return put_u16(put_u16(p, (uint16_t)v), (uint16_t)(v >> 16));
}

static inline uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	return put_u32(put_u32(p, (uint32_t)v), (uint32_t)(v >> 32));
}

static inline uint16_t get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
	return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

/* A varint without a check of room: the caller has reserved 10 bytes. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}
#endif
