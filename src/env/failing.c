/* An env whose n-th call fails, to lead a test through every error path: for n from 1 until a run makes fewer
 * calls than that. Calls that the kernel can refuse are counted (open, read, size, list, readlink, space,
 * cpu_clock, and those of counters); close, the clocks and the environment cannot fail. */
#include "env/env.h"

struct failing {
	struct env env;
	struct env *inner;
	unsigned left; /* calls until the failure; 0: it has happened */
	int error;
};

static struct failing *failing_of(struct env *env)
{
	return (struct failing *)env;
}

/* 0, or the error when this is the call. */
static int count(struct env *env)
{
	struct failing *f = failing_of(env);

	if (!f->left || --f->left)
		return 0;
	return f->error;
}

static int failing_open(struct env *env, const char *path)
{
	int r = count(env);

	return r ? r : env_open(failing_of(env)->inner, path);
}

static ssize_t failing_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	int r = count(env);

	return r ? r : env_read_at(failing_of(env)->inner, handle, out, size, offset);
}

static void failing_close(struct env *env, int handle)
{
	env_close(failing_of(env)->inner, handle);
}

static int64_t failing_size(struct env *env, int handle)
{
	int r = count(env);

	return r ? r : env_size(failing_of(env)->inner, handle);
}

static int failing_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	int r = count(env);

	return r ? r : env_list(failing_of(env)->inner, path, fn, arg);
}

static ssize_t failing_readlink(struct env *env, const char *path, char *out, size_t size)
{
	int r = count(env);

	return r ? r : env_readlink(failing_of(env)->inner, path, out, size);
}

static int failing_space(struct env *env, const char *path, struct env_space *ret)
{
	int r = count(env);

	return r ? r : env_space(failing_of(env)->inner, path, ret);
}

static int64_t failing_cpu_clock(struct env *env, pid_t pid)
{
	int r = count(env);

	return r ? r : env_cpu_clock(failing_of(env)->inner, pid);
}

static int64_t failing_now(struct env *env, enum env_clock clock)
{
	return env_now(failing_of(env)->inner, clock);
}

static int failing_sleep_until(struct env *env, int64_t deadline_ns)
{
	return env_sleep_until(failing_of(env)->inner, deadline_ns);
}

static const char *failing_getenv(struct env *env, const char *name)
{
	return env_getenv(failing_of(env)->inner, name);
}

static int failing_counter_open(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int r = count(env);

	return r ? r : env_counter_open(failing_of(env)->inner, attr, pid, cpu);
}

static int failing_counter_read(struct env *env, int handle, struct env_count *ret)
{
	int r = count(env);

	return r ? r : env_counter_read(failing_of(env)->inner, handle, ret);
}

static void *failing_library(struct env *env, const char *name, const char **reterr)
{
	return env_library(failing_of(env)->inner, name, reterr);
}

static void *failing_symbol(struct env *env, void *library, const char *name)
{
	return env_symbol(failing_of(env)->inner, library, name);
}

static void failing_free(struct env *env)
{
	env_free(failing_of(env)->inner);
	free(env);
}

static const struct env_ops failing_ops = {
	.open = failing_open,
	.read = failing_read,
	.close = failing_close,
	.size = failing_size,
	.list = failing_list,
	.readlink = failing_readlink,
	.space = failing_space,
	.cpu_clock = failing_cpu_clock,
	.now = failing_now,
	.sleep_until = failing_sleep_until,
	.getenv = failing_getenv,
	.counter_open = failing_counter_open,
	.counter_read = failing_counter_read,
	.library = failing_library,
	.symbol = failing_symbol,
	.free = failing_free,
};

struct env *env_failing(struct env *inner, unsigned nth, int error)
{
	struct failing *f = inner ? malloc(sizeof(*f)) : NULL;

	if (!f) {
		env_free(inner);
		return NULL;
	}
	*f = (struct failing){.env = *inner, .inner = inner, .left = nth, .error = error};
	f->env.ops = &failing_ops;
	return &f->env;
}
