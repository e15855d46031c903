/* A maker of GPUs as its thread would hold it: rounds are asked for and values looked up by name. */
#ifndef TESTS_MAKER_LAB_H
#define TESTS_MAKER_LAB_H

#include "collect/gpu.h"
#include "film_text.h"

struct maker_lab {
	const struct gpu_maker *maker;
	struct env *env;
	void *state;
	struct gpu_request request;
	struct gpu_reading reading;
	struct trouble trouble;
	int second;
};

static inline const struct gpu_maker *maker_of(const char *name)
{
	for (const struct gpu_maker *const *m = gpu_makers; *m; m++)
		if (!strcmp((*m)->name, name))
			return *m;
	fail_msg("no maker %s", name);
	return NULL;
}

static inline void maker_round(struct maker_lab *l, bool medium)
{
	memset(&l->reading, 0, sizeof(l->reading));
	l->request.medium = medium;
	l->maker->read(l->state, l->env, &l->request, &l->reading);
}

static inline int maker_try(struct maker_lab *l, const char *name, struct env *env)
{
	*l = (struct maker_lab){.maker = maker_of(name), .env = env};
	l->state = calloc(1, l->maker->state_size);
	assert_non_null(l->state);
	l->request.rows = (UINT64_C(1) << NR_GPU_ROWS) - 1;
	l->request.process_rows = (UINT64_C(1) << NR_GPU_PROCESS_ROWS) - 1;
	return l->maker->open(l->state, env, &l->trouble);
}

/* All rows, and a first round with these processes (0 at the end). */
static inline void maker_open(struct maker_lab *l, const char *name, struct env *env, const pid_t *member)
{
	struct trouble why = {0};

	assert_int_equal(maker_try(l, name, env), 0);
	assert_int_equal(l->maker->probe(env, &why), 0);
	for (; member && *member; member++)
		l->request.member[l->request.nr_members++] = *member;
	maker_round(l, true);
}

static inline void maker_close(struct maker_lab *l)
{
	l->maker->close(l->state, l->env);
	free(l->state);
	env_free(l->env);
}

/* To the frame of that second. */
static inline void maker_turn(struct maker_lab *l, int second, bool medium)
{
	assert_int_equal(env_sleep_until(l->env, (100 + second) * NSEC_PER_SEC), 0);
	maker_round(l, medium);
}

static inline const struct gpu_device *device_find(const struct maker_lab *l, const char *name)
{
	for (unsigned i = 0; i < l->reading.nr_devices; i++)
		if (!strcmp(l->reading.device[i].name, name))
			return &l->reading.device[i];
	return NULL;
}

static inline const struct gpu_device *device_of(const struct maker_lab *l, const char *name)
{
	const struct gpu_device *d = device_find(l, name);

	if (!d)
		fail_msg("no device %s", name);
	return d;
}

static inline int64_t device_value(const struct maker_lab *l, const char *name, enum gpu_row row)
{
	const struct gpu_device *d = device_of(l, name);

	return d->valid >> row & 1 ? d->value[row] : INVALID;
}

static inline const struct gpu_process *process_find(
	const struct maker_lab *l, const char *device, int64_t pid)
{
	for (unsigned i = 0; i < l->reading.nr_processes; i++) {
		const struct gpu_process *p = &l->reading.process[i];

		assert_true(p->device < l->reading.nr_devices);
		if (p->pid == pid && !strcmp(l->reading.device[p->device].name, device))
			return p;
	}
	return NULL;
}

static inline int64_t process_value(
	const struct maker_lab *l, const char *device, int64_t pid, enum gpu_process_row row)
{
	const struct gpu_process *p = process_find(l, device, pid);

	if (!p)
		fail_msg("no process %lld on %s", (long long)pid, device);
	return p->valid >> row & 1 ? p->value[row] : INVALID;
}
#endif
