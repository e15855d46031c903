/* One list names all CPUs that are online: a short read shows whether any of hundreds came or went. */
#include "collect/online.h"

#include "read/value.h"

#include <stdio.h>
#include <string.h>

/* Every second of 8192 CPUs, and more. */
#define LIST_SIZE 32768

int online_open(struct online *o, struct env *env)
{
	o->handle = env_open(env, CPU_FOLDER "/online");
	if (o->handle < 0)
		return o->handle;
	o->is_open = true;
	return MIN(online_read(o, env), 0);
}

void online_close(struct online *o, struct env *env)
{
	if (o->is_open)
		env_close(env, o->handle);
	o->is_open = false;
}

int online_read(struct online *o, struct env *env)
{
	struct cpu_bits now = {0};
	char text[LIST_SIZE];
	int n = value_read_text(env, o->handle, text, sizeof(text));

	if (n < 0)
		return n;
	if (!cpu_bits_add(&now, text))
		return -EBADMSG;
	if (!memcmp(&now, &o->cpus, sizeof(now)))
		return 0;
	o->cpus = now;
	return 1;
}

bool online_add_list(struct env *env, int cpu, const char *file, struct cpu_bits *set)
{
	char path[CPU_PATH_SIZE], text[LIST_SIZE], *word, *next = text;

	snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/%s", cpu, file);
	if (value_get_text(env, path, text, sizeof(text)) < 0)
		return false;
	/* cpufreq separates them by blanks. */
	while ((word = strsep(&next, " ")))
		cpu_bits_add(set, word);
	return true;
}
