/* Linear probing, at most two thirds full. Removal shifts the followers back, so there are no tombstones and
 * a map that has held a million short processes stays as small as the largest number of them at once. */
#include "base/idmap.h"

#include <string.h>

int idmap_grow(struct idmap *m)
{
	struct idmap bigger = {.mask = m->cell ? m->mask * 2 + 1 : 63, .nr = m->nr};

	if (bigger.mask < m->mask)
		return -ENOMEM;
	bigger.cell = calloc((size_t)bigger.mask + 1, sizeof(*bigger.cell));
	if (!bigger.cell)
		return -ENOMEM;
	for (uint32_t i = 0; m->cell && i <= m->mask; i++)
		if (m->cell[i].value1)
			*idmap_seek(&bigger, m->cell[i].key) = m->cell[i];
	free(m->cell);
	*m = bigger;
	return 0;
}

int idmap_put(struct idmap *m, uint64_t key, uint32_t value)
{
	if (value == IDMAP_NONE) {
		idmap_remove(m, key);
		return 0;
	}
	if (idmap_room(m) < 0)
		return -ENOMEM;
	idmap_number(m, key, value);
	idmap_seek(m, key)->value1 = value + 1;
	return 0;
}

void idmap_remove(struct idmap *m, uint64_t key)
{
	uint32_t hole, i;

	if (!m->cell)
		return;
	hole = i = (uint32_t)(idmap_seek(m, key) - m->cell);
	if (!m->cell[hole].value1)
		return;
	m->nr--;
	for (;;) {
		i = (i + 1) & m->mask;
		if (!m->cell[i].value1)
			break;
		/* A follower may fill the hole unless its home lies behind the hole. */
		if (((i - idmap_home(m, m->cell[i].key)) & m->mask) < ((i - hole) & m->mask))
			continue;
		m->cell[hole] = m->cell[i];
		hole = i;
	}
	m->cell[hole].value1 = 0;
}

void idmap_clear(struct idmap *m)
{
	if (m->cell)
		memset(m->cell, 0, ((size_t)m->mask + 1) * sizeof(*m->cell));
	m->nr = 0;
}

void idmap_release(struct idmap *m)
{
	free(m->cell);
	*m = (struct idmap){0};
}
