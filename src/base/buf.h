/* A byte buffer with a maximum and a sticky error.
 *
 * Invariants: data is never NULL after init, data[len] is always 0, so that a buf of text can be printed.
 * Once an append fails (maximum reached, no memory) `err` stays set, later appends do nothing, and the
 * caller checks once at the end. A buf made with buf_init_fixed() never allocates: the sampling path uses
 * only those. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

struct buf {
	uint8_t *data;
	size_t len;
	size_t cap; /* bytes available for data, the terminator not counted */
	size_t max; /* never grows past this */
	int err;    /* 0 or a negative errno */
	bool fixed; /* the memory is the caller's */
};

void buf_init(struct buf *b, size_t max);
void buf_init_fixed(struct buf *b, void *memory, size_t size);
void buf_release(struct buf *b);
void buf_reset(struct buf *b); /* empty again, error forgotten, memory kept */

/* Makes room for n more bytes; false (and err set) when that cannot be. */
bool buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *data, size_t n);
void buf_addch(struct buf *b, int c);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* LEB128: seven bits a byte, least significant first. Zigzag puts the sign in bit 0. */
void buf_add_varint(struct buf *b, uint64_t v);
void buf_add_bytes(struct buf *b, const void *data, size_t n); /* varint length, then the bytes */

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Reading side: a view that can only move forward. `bad` is sticky; reads past the end return 0. */
struct view {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct view view_of(const void *p, size_t n)
{
	return (struct view){.p = p, .end = (const uint8_t *)p + n};
}

uint64_t view_varint(struct view *v);
/* Length-prefixed bytes, borrowed from the view. */
const uint8_t *view_bytes(struct view *v, size_t *ret_len);
#endif
