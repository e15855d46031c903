#include "export/labels.h"

#include <string.h>

#define SLOTS_LEAST 64

void label_sets_init(struct label_sets *l, size_t nr_labels)
{
	*l = (struct label_sets){.nr_labels = nr_labels};
}

void label_sets_release(struct label_sets *l)
{
	free(l->label);
	free(l->slot);
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

/* The slot of the set, or the free one where it would be. */
static uint32_t *find(const struct label_sets *l, const struct label *set)
{
	uint32_t mask = l->nr_slots - 1;

	for (uint32_t i = (uint32_t)hash(l, set) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &l->slot[i];

		if (!*slot || !memcmp(label_sets_get(l, *slot - 1), set, l->nr_labels * sizeof(*set)))
			return slot;
	}
}

static int slots_double(struct label_sets *l)
{
	uint32_t nr = l->nr_slots ? 2 * l->nr_slots : SLOTS_LEAST;
	uint32_t *slot;

	if (l->nr_slots > UINT32_MAX / 4)
		return -E2BIG;
	slot = calloc(nr, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(l->slot);
	l->slot = slot;
	l->nr_slots = nr;
	for (uint32_t i = 0; i < l->nr; i++)
		*find(l, label_sets_get(l, i)) = i + 1;
	return 0;
}

static int sets_double(struct label_sets *l)
{
	uint32_t cap = MAX(2 * l->cap, (uint32_t)SLOTS_LEAST);
	struct label *more = reallocarray(l->label, cap, l->nr_labels * sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->label = more;
	l->cap = cap;
	return 0;
}

int label_sets_number(struct label_sets *l, const struct label *set, uint32_t *ret)
{
	uint32_t *slot;
	int r = l->nr >= l->nr_slots / 2 ? slots_double(l) : 0;

	if (r >= 0 && l->nr == l->cap)
		r = sets_double(l);
	if (r < 0)
		return r;
	slot = find(l, set);
	if (!*slot) {
		memcpy(l->label + l->nr * l->nr_labels, set, l->nr_labels * sizeof(*set));
		*slot = ++l->nr;
	}
	*ret = *slot - 1;
	return 0;
}
