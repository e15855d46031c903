/* FlatBuffers, as far as Arrow's messages need them: written from the back to the front, so that what is
 * referred to is there before what refers to it, and nothing has to be patched.
 *
 * A position is the distance from the end, which stays true while the front grows; 0 is no position. Errors
 * stick: all that follows does nothing, and `err` is looked at once, at the end. */
#ifndef EXPORT_FLAT_H
#define EXPORT_FLAT_H

#include "base/base.h"

#define FLAT_SLOTS 8 /* most fields of a table */

struct flat {
	uint8_t *memory;
	size_t cap, len; /* the last `len` of `cap` bytes are written */
	size_t align;	 /* the largest alignment used */
	int err;
	size_t table;		   /* where the open table began */
	uint32_t slot[FLAT_SLOTS]; /* positions of its fields; 0: left out */
	uint32_t nr_slots;
};

void flat_reset(struct flat *f); /* empty again, memory kept */
void flat_release(struct flat *f);

uint32_t flat_text(struct flat *f, const char *text);
/* Of positions, in the order given. */
uint32_t flat_vector(struct flat *f, const uint32_t *position, size_t nr);
/* Of structs without pointers, little-endian already. `align` of 8 at most. */
uint32_t flat_structs(struct flat *f, const void *data, size_t nr, size_t size, size_t align);

/* One table at a time: what its fields refer to is written before it is begun. Fields in any order. */
void flat_begin(struct flat *f);
void flat_number(struct flat *f, uint32_t slot, int64_t v, size_t size); /* of 1, 2, 4 or 8 bytes */
void flat_refer(struct flat *f, uint32_t slot, uint32_t position);	 /* nothing when it is 0 */
uint32_t flat_end(struct flat *f);

/* The root; the bytes are at flat_data(), f->len of them, a multiple of 8. */
int flat_finish(struct flat *f, uint32_t root);

static inline const uint8_t *flat_data(const struct flat *f)
{
	return f->memory + (f->cap - f->len);
}
#endif
