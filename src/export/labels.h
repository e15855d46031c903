/* Sets of labels, numbered as they come: they identify the series of a sample. A label is a text by its
 * number in the dictionary of its field, or an integer; it may be missing. */
#ifndef EXPORT_LABELS_H
#define EXPORT_LABELS_H

#include "base/idmap.h"

struct label {
	uint64_t value;
	uint64_t there;
};

struct label_sets {
	size_t nr_labels; /* of each set: at least one */
	struct label *label;
	uint32_t nr;
	size_t cap;
	struct idmap by_hash; /* numbers */
};

void label_sets_init(struct label_sets *l, size_t nr_labels);
void label_sets_release(struct label_sets *l);
/* The number of a set, which is a new one when it was not there. -ENOMEM, -E2BIG. */
int label_sets_number(struct label_sets *l, const struct label *set, uint32_t *ret);
const struct label *label_sets_get(const struct label_sets *l, uint32_t number);
#endif
