/* proc/PID/environ is what was handed over at exec: what a program changes of its own environment later is
 * not in it, but what its children were given is in theirs. It may hold secrets, so the text is freed as soon
 * as the variables are read, and nothing is kept that was not asked for by name. */
#include "node/variables.h"

#include <stdio.h>
#include <string.h>

int variables_open(struct variables *v, struct env *env, pid_t pid)
{
	char path[48];
	ssize_t n;
	int r;

	*v = (struct variables){.env = env, .pid = pid};
	if (!pid)
		return 0;
	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	r = textfile_open(&v->file, env, path, false);
	if (r < 0)
		return r;
	n = textfile_read(&v->file, env);
	v->len = n < 0 ? 0 : (size_t)n;
	return (int)MIN(n, 0);
}

const char *variable_get(const struct variables *v, const char *name)
{
	size_t len = strlen(name);

	if (!v->pid)
		return env_getenv(v->env, name);
	for (const char *p = v->file.text; p && p < v->file.text + v->len; p += strlen(p) + 1)
		if (!strncmp(p, name, len) && p[len] == '=')
			return p + len + 1;
	return NULL;
}

void variables_close(struct variables *v)
{
	textfile_close(&v->file, v->env);
}
