/* What of a collector this machine has. */
#ifndef CMD_HERE_H
#define CMD_HERE_H

#include "collect/collector.h"

struct here {
	bool available;
	const char *why;		     /* of the whole collector; NULL when available */
	const char *metric_why[METRICS_MAX]; /* NULL: there, as far as can be told before recording */
};

void here_try(const struct collector *c, struct env *env, struct here *ret);
#endif
