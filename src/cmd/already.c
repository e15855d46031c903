/* A recording is under way when its writer holds the lock on the file, so that a name inherited from a
 * recorder that is long dead warns nobody. Only the first block of the file is read. */
#include "cmd/already.h"

#include "cmd/cmd.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define VARIABLE "TACHO_RECORDING"
#define ENVIRON_MAX (256 << 10)

/* The value of the variable in NAME=VALUE texts parted by NULs. */
static const char *find_variable(const char *text, size_t len)
{
	const size_t n = strlen(VARIABLE "=");

	for (const char *p = text; p < text + len; p += strlen(p) + 1)
		if (!strncmp(p, VARIABLE "=", n))
			return p + n;
	return NULL;
}

static bool is_written(const char *path)
{
	struct store_reader *r = NULL;
	struct store_health health = {0};

	if (store_open(path, &r) < 0)
		return false;
	store_health(r, &health);
	store_close(r);
	return health.writing;
}

/* The recording that a process belongs to, by TACHO_RECORDING in its environment, when that is being written
 * now. False when there is none, or its environment is hidden from us. */
static bool already_recorded(struct env *env, pid_t pid, char *ret_path, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	const char *path = NULL;
	char file[40];
	ssize_t n;

	if (!pid) {
		path = env_getenv(env, VARIABLE);
	} else {
		text = malloc(ENVIRON_MAX);
		snprintf(file, sizeof(file), "proc/%d/environ", (int)pid);
		n = text ? env_slurp(env, file, text, ENVIRON_MAX) : -ENOMEM;
		path = n > 0 ? find_variable(text, (size_t)n) : NULL;
	}
	if (!path || !is_written(path))
		return false;
	snprintf(ret_path, size, "%s", path);
	return true;
}

void warn_if_recorded(struct env *env, pid_t pid)
{
	char path[1024];

	if (!already_recorded(env, pid, path, sizeof(path)))
		return;
	if (pid)
		warning("process %d is recorded already, in %s; it will be in both", (int)pid, path);
	else
		warning("this job is recorded already, in %s; what it runs will be in both", path);
}
