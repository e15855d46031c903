/* What of a collector this machine has. */
#ifndef CMD_HERE_H
#define CMD_HERE_H

#include "collect/collector.h"

struct here {
	enum availability state;
	struct trouble why; /* of the whole collector, unless AVAILABLE */
	enum availability metric_state[METRICS_MAX];
	struct trouble
		metric_why[METRICS_MAX]; /* reason NULL: there, as far as can be told before recording */
};

void here_try(const struct collector *c, struct env *env, struct here *ret);
#endif
