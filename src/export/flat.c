/* Writes FlatBuffers from the back to the front: see flat.h. */
#include "export/flat.h"

#include <endian.h>
#include <string.h>

#define FLAT_MOST ((size_t)INT32_MAX / 2)

void flat_reset(struct flat *f)
{
	f->len = f->table = 0;
	f->align = 4;
	f->nr_slots = 0;
	f->err = 0;
}

void flat_release(struct flat *f)
{
	free(f->memory);
	*f = (struct flat){0};
}

static bool grow(struct flat *f, size_t n)
{
	size_t cap = MAX(f->cap, (size_t)512);
	uint8_t *memory;

	if (f->err)
		return false;
	if (n > FLAT_MOST || f->len + n > FLAT_MOST) {
		f->err = -EFBIG;
		return false;
	}
	if (f->cap - f->len >= n)
		return true;
	while (cap - f->len < n)
		cap *= 2;
	memory = malloc(cap);
	if (!memory) {
		f->err = -ENOMEM;
		return false;
	}
	if (f->len)
		memcpy(memory + (cap - f->len), flat_data(f), f->len);
	free(f->memory);
	f->memory = memory;
	f->cap = cap;
	return true;
}

static void put(struct flat *f, const void *data, size_t n)
{
	if (!n || !grow(f, n))
		return;
	f->len += n;
	memcpy(f->memory + (f->cap - f->len), data, n);
}

/* So that what is put after `n` more bytes stands on a multiple of `align`, seen from the end. */
static void pad(struct flat *f, size_t n, size_t align)
{
	static const uint8_t zero[16];

	f->align = MAX(f->align, align);
	put(f, zero, -(f->len + n) & (align - 1));
}

static void put32(struct flat *f, uint32_t v)
{
	v = htole32(v);
	put(f, &v, sizeof(v));
}

static void put16(struct flat *f, uint32_t v)
{
	uint16_t little = htole16((uint16_t)v);

	put(f, &little, sizeof(little));
}

uint32_t flat_text(struct flat *f, const char *text)
{
	size_t len = strlen(text);

	pad(f, len + 1, 4);
	put(f, "", 1);
	put(f, text, len);
	put32(f, (uint32_t)len);
	return (uint32_t)f->len;
}

uint32_t flat_vector(struct flat *f, const uint32_t *position, size_t nr)
{
	if (nr > FLAT_MOST / 4)
		f->err = -EFBIG;
	pad(f, 0, 4);
	for (size_t i = nr; i-- && !f->err;)
		put32(f, (uint32_t)f->len + 4 - position[i]);
	put32(f, (uint32_t)nr);
	return (uint32_t)f->len;
}

uint32_t flat_structs(struct flat *f, const void *data, size_t nr, size_t size, size_t align)
{
	size_t n = 0;

	if (__builtin_mul_overflow(nr, size, &n) || n > FLAT_MOST)
		f->err = -EFBIG;
	pad(f, n, MAX(align, (size_t)4));
	put(f, data, n);
	put32(f, (uint32_t)nr);
	return (uint32_t)f->len;
}

void flat_begin(struct flat *f)
{
	memset(f->slot, 0, sizeof(f->slot));
	f->nr_slots = 0;
	f->table = f->len;
}

static void take_slot(struct flat *f, uint32_t slot)
{
	if (slot >= FLAT_SLOTS) {
		f->err = -EINVAL;
		return;
	}
	f->slot[slot] = (uint32_t)f->len;
	f->nr_slots = MAX(f->nr_slots, slot + 1);
}

void flat_number(struct flat *f, uint32_t slot, int64_t v, size_t size)
{
	uint64_t little = htole64((uint64_t)v);

	pad(f, size, size);
	put(f, &little, size);
	take_slot(f, slot);
}

void flat_refer(struct flat *f, uint32_t slot, uint32_t position)
{
	if (!position)
		return;
	pad(f, 4, 4);
	put32(f, (uint32_t)f->len + 4 - position);
	take_slot(f, slot);
}

/* The table of offsets stands right before the table, which begins with the distance to it. */
uint32_t flat_end(struct flat *f)
{
	uint32_t start, nr = f->nr_slots;

	pad(f, 4, 4);
	put32(f, 4 + 2 * nr);
	start = (uint32_t)f->len;
	/* Seen from the front the offsets come in order of the slots, behind the two sizes. */
	for (uint32_t i = nr; i--;)
		put16(f, f->slot[i] ? start - f->slot[i] : 0);
	put16(f, start - (uint32_t)f->table);
	put16(f, 4 + 2 * nr);
	f->nr_slots = 0;
	return start;
}

int flat_finish(struct flat *f, uint32_t root)
{
	pad(f, 4, MAX(f->align, (size_t)8));
	put32(f, (uint32_t)f->len + 4 - root);
	return f->err;
}
