/* The environment that a process was started with, for variables that are asked for by name. */
#ifndef NODE_VARIABLES_H
#define NODE_VARIABLES_H

#include "env/env.h"
#include "read/textfile.h"

struct variables {
	struct env *env;
	pid_t pid; /* 0: our own */
	struct textfile file;
	size_t len;
};

/* Of a process (0: of ourselves). -EACCES, -ENOENT...: it has none that we may see, and all are unset. */
int variables_open(struct variables *v, struct env *env, pid_t pid);
/* NULL: not set. Valid until the variables are closed. */
const char *variable_get(const struct variables *v, const char *name);
void variables_close(struct variables *v);
#endif
