/* Metrics that are computed when read: rows with an expression. A new one is a row in derived.c. */
#ifndef QUERY_DERIVED_H
#define QUERY_DERIVED_H

#include "metric/metric.h"

enum derived_at {
	AT_INSTANCE, /* of each instance, then folded: all names are of one set */
	AT_FOLD, /* of the folded values. What passes from one process to another when it ends is only whole
		  * in the sum, so rates of the tree must be taken there */
};

/* The name of tree.cgroup.cpu where that is of the command of `run` alone, since others are watched beside
 * it. There tree.cgroup.cpu has no value, and everywhere else this one has none. */
#define COMMAND_CPU "command.cgroup.cpu"

struct derived {
	const char *name, *help, *expression;
	enum derived_at at;
	enum metric_kind kind;
	enum metric_fold fold; /* AT_INSTANCE */
	enum metric_unit unit;
	bool per_second; /* the unit is per second */
	const char *panel;
};

extern const struct derived derived[];
extern const size_t nr_derived;
const struct derived *derived_find(const char *name);
#endif
