/* Linear probing, at most two thirds full. Removal shifts the followers back, so there are no tombstones and
 * a map that lives through a million short processes stays as small as the largest number alive at once. */
#include "query/idmap.h"

static uint32_t idmap_home(const struct idmap *m, uint32_t id)
{
	return (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & m->mask;
}

static uint32_t idmap_seek(const struct idmap *m, uint32_t id)
{
	uint32_t i = idmap_home(m, id);

	while (m->cell[i].id && m->cell[i].id != id)
		i = (i + 1) & m->mask;
	return i;
}

static int idmap_grow(struct idmap *m)
{
	struct idmap bigger = {.mask = m->cell ? m->mask * 2 + 1 : 63, .nr = m->nr};

	bigger.cell = calloc((size_t)bigger.mask + 1, sizeof(*bigger.cell));
	if (!bigger.cell)
		return -ENOMEM;
	for (uint32_t i = 0; m->cell && i <= m->mask; i++)
		if (m->cell[i].id)
			bigger.cell[idmap_seek(&bigger, m->cell[i].id)] = m->cell[i];
	free(m->cell);
	*m = bigger;
	return 0;
}

int idmap_put(struct idmap *m, uint32_t id, uint32_t value)
{
	uint32_t i;

	if (!m->cell || m->nr >= m->mask / 3 * 2) {
		int r = idmap_grow(m);

		if (r < 0)
			return r;
	}
	i = idmap_seek(m, id);
	m->nr += !m->cell[i].id;
	m->cell[i] = (struct idmap_cell){.id = id, .value = value};
	return 0;
}

uint32_t idmap_get(const struct idmap *m, uint32_t id)
{
	uint32_t i;

	if (!m->cell || !id)
		return IDMAP_NONE;
	i = idmap_seek(m, id);
	return m->cell[i].id ? m->cell[i].value : IDMAP_NONE;
}

void idmap_remove(struct idmap *m, uint32_t id)
{
	uint32_t hole, i;

	if (!m->cell || !id)
		return;
	hole = i = idmap_seek(m, id);
	if (!m->cell[hole].id)
		return;
	m->nr--;
	for (;;) {
		i = (i + 1) & m->mask;
		if (!m->cell[i].id)
			break;
		/* A follower may fill the hole unless its home lies behind the hole. */
		if (((i - idmap_home(m, m->cell[i].id)) & m->mask) < ((i - hole) & m->mask))
			continue;
		m->cell[hole] = m->cell[i];
		hole = i;
	}
	m->cell[hole].id = 0;
}

void idmap_release(struct idmap *m)
{
	free(m->cell);
	*m = (struct idmap){0};
}
