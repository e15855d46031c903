/* From an instance's id (never 0) to where it is kept: an open hash of 32-bit keys and values. */
#ifndef QUERY_IDMAP_H
#define QUERY_IDMAP_H

#include "base/base.h"

#define IDMAP_NONE UINT32_MAX

struct idmap {
	struct idmap_cell {
		uint32_t id, value;
	} * cell;
	uint32_t nr, mask; /* mask + 1 cells, a power of two; both 0 when there is no memory yet */
};

int idmap_put(struct idmap *m, uint32_t id, uint32_t value); /* replaces; -ENOMEM */
uint32_t idmap_get(const struct idmap *m, uint32_t id);	     /* IDMAP_NONE when there is none */
void idmap_remove(struct idmap *m, uint32_t id);
void idmap_release(struct idmap *m);
#endif
