/* Sets of labels, each with a number: see labels.h. */
#include "export/labels.h"

#include "base/owned.h"

#include <string.h>

void label_sets_init(struct label_sets *l, size_t nr_labels)
{
	*l = (struct label_sets){.nr_labels = nr_labels};
}

void label_sets_release(struct label_sets *l)
{
	free(l->label);
	idmap_release(&l->by_hash);
}

const struct label *label_sets_get(const struct label_sets *l, uint32_t number)
{
	return l->label + number * l->nr_labels;
}

static uint64_t hash(const struct label_sets *l, const struct label *set)
{
	uint64_t h = 0;

	for (size_t i = 0; i < l->nr_labels; i++) {
		h = (h ^ set[i].value ^ set[i].there << 63) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

int label_sets_number(struct label_sets *l, const struct label *set, uint32_t *ret)
{
	size_t size = l->nr_labels * sizeof(*set);
	uint64_t key = hash(l, set);

	for (; (*ret = idmap_get(&l->by_hash, key)) != IDMAP_NONE; key++)
		if (!memcmp(label_sets_get(l, *ret), set, size))
			return 0;
	if (l->nr == IDMAP_NONE)
		return -E2BIG;
	if (ARRAY_ROOM(l->label, l->cap, (l->nr + 1) * l->nr_labels) < 0 ||
		idmap_put(&l->by_hash, key, l->nr) < 0)
		return -ENOMEM;
	memcpy(l->label + l->nr * l->nr_labels, set, size);
	*ret = l->nr++;
	return 0;
}
