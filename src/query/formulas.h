/* Formulas that a recording brings along: metrics computed of the counters of the processor it was made on,
 * which no table of ours can know. They are read from its metadata (docs/format.md, keys `derived.NAME`) and
 * used like the rows of derived.c. */
#ifndef QUERY_FORMULAS_H
#define QUERY_FORMULAS_H

#include "query/derived.h"
#include "query/meta.h"

/* More are left out. */
#define FORMULAS_MAX 256

struct formula {
	struct derived row; /* AT_FOLD; its texts are in `own` */
	const char *why;    /* it cannot be used; NULL: it can */
	char *own;
};

struct formulas {
	struct formula *item; /* in the order of the recording */
	size_t nr;
	size_t left_out; /* beyond the maximum, or without a name that a metric could have */
};

int formulas_read(struct formulas *f, const struct meta *meta); /* -ENOMEM */
void formulas_release(struct formulas *f);
const struct formula *formulas_find(const struct formulas *f, const char *name);
#endif
