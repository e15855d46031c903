/* An env between a test and another that keeps every attr that a counter was asked for with, so that the test
 * can compare them with what it wrote down itself. */
#ifndef TESTS_PERF_LAB_H
#define TESTS_PERF_LAB_H

#include "collect_lab.h"
#include "env/env.h"

#include <linux/perf_event.h>

struct asked_counter {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	int handle; /* or the negative errno it got */
};

struct perf_lab {
	struct env env; /* first: the calls find the lab by it */
	struct env *inner;
	struct asked_counter asked[256];
	unsigned nr_asked;
	unsigned nr_open; /* counters that were opened and not yet closed */
	/* Between every second listing of this folder and the next, one more comes: 1000, 1001... */
	const char *busy;
	unsigned nr_lists, nr_born, most_born;
	unsigned nr_reads;
	int64_t read_ns, spent_ns; /* what a reading takes, and has taken so far */
};

static inline struct perf_lab *perf_lab_of(struct env *env)
{
	return (struct perf_lab *)env;
}

static inline int perf_lab_open(struct env *env, const char *path)
{
	return env_open(perf_lab_of(env)->inner, path);
}

static inline ssize_t perf_lab_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	return env_read_at(perf_lab_of(env)->inner, handle, out, size, offset);
}

static inline void perf_lab_close(struct env *env, int handle)
{
	struct perf_lab *lab = perf_lab_of(env);

	for (unsigned i = lab->nr_asked; i-- > 0;) {
		if (lab->asked[i].handle != handle)
			continue;
		lab->asked[i].handle = -EBADF;
		lab->nr_open--;
		break;
	}
	env_close(lab->inner, handle);
}

static inline int64_t perf_lab_size(struct env *env, int handle)
{
	return env_size(perf_lab_of(env)->inner, handle);
}

static inline int perf_lab_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	struct perf_lab *lab = perf_lab_of(env);
	int r = env_list(lab->inner, path, fn, arg);
	char name[16];

	if (!lab->busy || strcmp(path, lab->busy))
		return r;
	lab->nr_born += ++lab->nr_lists % 2 == 0 && lab->nr_born < lab->most_born;
	for (unsigned i = 0; i < lab->nr_born && r == 0; i++) {
		snprintf(name, sizeof(name), "%u", 1000 + i);
		r = fn(arg, name);
	}
	return r;
}

static inline ssize_t perf_lab_readlink(struct env *env, const char *path, char *out, size_t size)
{
	return env_readlink(perf_lab_of(env)->inner, path, out, size);
}

static inline int perf_lab_space(struct env *env, const char *path, struct env_space *ret)
{
	return env_space(perf_lab_of(env)->inner, path, ret);
}

static inline int64_t perf_lab_cpu_clock(struct env *env, pid_t pid)
{
	return env_cpu_clock(perf_lab_of(env)->inner, pid);
}

static inline int64_t perf_lab_now(struct env *env, enum env_clock clock)
{
	return env_now(perf_lab_of(env)->inner, clock) + perf_lab_of(env)->spent_ns;
}

static inline int perf_lab_sleep_until(struct env *env, int64_t deadline_ns)
{
	return env_sleep_until(perf_lab_of(env)->inner, deadline_ns);
}

static inline const char *perf_lab_getenv(struct env *env, const char *name)
{
	return env_getenv(perf_lab_of(env)->inner, name);
}

static inline int perf_lab_counter_open(
	struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct perf_lab *lab = perf_lab_of(env);
	int handle = env_counter_open(lab->inner, attr, pid, cpu);

	assert_true(lab->nr_asked < ARRAY_SIZE(lab->asked));
	lab->asked[lab->nr_asked++] =
		(struct asked_counter){.attr = *attr, .pid = pid, .cpu = cpu, .handle = handle};
	lab->nr_open += handle >= 0;
	return handle;
}

static inline int perf_lab_counter_read(struct env *env, int handle, struct env_count *ret)
{
	struct perf_lab *lab = perf_lab_of(env);

	lab->nr_reads++;
	lab->spent_ns += lab->read_ns;
	return env_counter_read(lab->inner, handle, ret);
}

static inline void *perf_lab_library(struct env *env, const char *name, const char **reterr)
{
	return env_library(perf_lab_of(env)->inner, name, reterr);
}

static inline void *perf_lab_symbol(struct env *env, void *library, const char *name)
{
	return env_symbol(perf_lab_of(env)->inner, library, name);
}

static inline void perf_lab_free(struct env *env)
{
	env_free(perf_lab_of(env)->inner);
	free(env);
}

/* Takes the inner env; env_free(&lab->env) frees both. */
static inline struct perf_lab *perf_lab(struct env *inner)
{
	static const struct env_ops ops = {
		.open = perf_lab_open,
		.read = perf_lab_read,
		.close = perf_lab_close,
		.size = perf_lab_size,
		.list = perf_lab_list,
		.readlink = perf_lab_readlink,
		.space = perf_lab_space,
		.cpu_clock = perf_lab_cpu_clock,
		.now = perf_lab_now,
		.sleep_until = perf_lab_sleep_until,
		.getenv = perf_lab_getenv,
		.counter_open = perf_lab_counter_open,
		.counter_read = perf_lab_counter_read,
		.library = perf_lab_library,
		.symbol = perf_lab_symbol,
		.free = perf_lab_free,
	};
	struct perf_lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	assert_non_null(inner);
	lab->env = *inner;
	lab->env.ops = &ops;
	lab->inner = inner;
	return lab;
}
#endif
