/* `tacho metrics --events`: what this machine can count. */
#ifndef CMD_METRICS_EVENTS_H
#define CMD_METRICS_EVENTS_H

#include "base/buf.h"
#include "env/env.h"

struct events_ask {
	int nr_words; /* kinds, or parts of a name or its description, ignoring case; 0: all */
	char **word;
	bool json, names, verbose;
	bool color;
	unsigned width;
};

/* 0, or -ENOENT when nothing is called so, or -ENOMEM. */
int events_list(struct env *env, const struct events_ask *ask, struct buf *out);
#endif
