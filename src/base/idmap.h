/* The hash table: from a 64-bit key to a 32-bit value.
 *
 * For other keys (texts, pairs) use a hash of them as the key and the number of an item as the value. Where
 * that item is another one, try the next key:
 *
 * 	for (key = hash(text); (i = idmap_get(m, key)) != IDMAP_NONE && !same(item[i], text); key++) */
#ifndef BASE_IDMAP_H
#define BASE_IDMAP_H

#include "base/base.h"

#define IDMAP_NONE UINT32_MAX

struct idmap {
	struct idmap_cell {
		uint64_t key;
		uint32_t value1; /* value + 1; 0: free */
	} * cell;
	uint32_t nr, mask; /* mask + 1 cells, a power of two; both 0 when there is no memory yet */
};

int idmap_put(struct idmap *m, uint64_t key, uint32_t value); /* replaces; -ENOMEM */
void idmap_remove(struct idmap *m, uint64_t key);
void idmap_clear(struct idmap *m); /* empty, memory kept */
void idmap_release(struct idmap *m);
/* Room for one key more: 0 or -ENOMEM. */
int idmap_grow(struct idmap *m);

/* Both halves of a long product: every bit of the key reaches the low bits, which keys that differ only at
 * the top (powers of two, round doubles) need. */
static inline uint32_t idmap_home(const struct idmap *m, uint64_t key)
{
	__extension__ unsigned __int128 product =
		(unsigned __int128)(key ^ UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);

	return (uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64)) & m->mask;
}

/* Where the key is or would be. The map has cells, and one of them is free. */
static inline struct idmap_cell *idmap_seek(const struct idmap *m, uint64_t key)
{
	uint32_t i = idmap_home(m, key);

	while (m->cell[i].value1 && m->cell[i].key != key)
		i = (i + 1) & m->mask;
	return &m->cell[i];
}

static inline uint32_t idmap_get(const struct idmap *m, uint64_t key) /* IDMAP_NONE when there is none */
{
	return m->cell ? idmap_seek(m, key)->value1 - 1 : IDMAP_NONE;
}

static inline int idmap_room(struct idmap *m)
{
	return likely(m->nr < m->mask / 3 * 2) ? 0 : idmap_grow(m);
}

/* The value of the key, which is `fresh` when it was not there. idmap_room() was asked before. */
static inline uint32_t idmap_number(struct idmap *m, uint64_t key, uint32_t fresh)
{
	struct idmap_cell *cell = idmap_seek(m, key);

	if (!cell->value1) {
		*cell = (struct idmap_cell){.key = key, .value1 = fresh + 1};
		m->nr++;
	}
	return cell->value1 - 1;
}
#endif
