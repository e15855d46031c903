/* Throttling: how often and how long Intel's CPUs were slowed down because they were too hot or drew too much
 * (sys/devices/system/cpu/cpuN/thermal_throttle, Documentation/ABI/testing/sysfs-devices-system-cpu).
 *
 * The kernel counts in every CPU, but an event belongs to the core or to the package, and all CPUs of it
 * count it. So one CPU is read for its core ("cpu4"), one for its package ("package-1"), and sums are right.
 * When that CPU goes offline another one is read, as a new instance: it has a count of its own. */
#include "collect/collector.h"
#include "collect/online.h"

#include "read/value.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct metric throttle_metric[] = {
	{"throttle.core",         "Times a core was slowed down.", {.source = 0, .file = "core_throttle_count"}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "throttling", TIER_MEDIUM, false},
	{"throttle.core_time",    "Time for which a core was slowed down.", {.source = 0, .file = "core_throttle_total_time_ms"}, SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, true},
	{"throttle.package",      "Times a package was slowed down.", {.source = 1, .file = "package_throttle_count"}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "throttling", TIER_MEDIUM, false},
	{"throttle.package_time", "Time for which a package was slowed down.", {.source = 1, .file = "package_throttle_total_time_ms"}, SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
};

/* What an instance is, by at.source. */
enum { OF_CORE, OF_PACKAGE, NR_PLACES };
static const char *const siblings[NR_PLACES] = {"topology/thread_siblings_list", "topology/core_siblings_list"};
/* clang-format on */

#define ROWS_MAX (CPU_SET_MAX + 64)

struct throttle {
	struct online online;
	bool search;
	uint32_t nr;
	struct throttle_unit {
		int16_t cpu; /* the CPU that is read for it */
		uint8_t level;
		bool gone;
		uint16_t row;
		int handle[2]; /* of the level's rows, in their order; or negative */
	} unit[ROWS_MAX];
};

static const char *find_name(struct env *env, int cpu, int level, char *out, size_t size)
{
	char path[CPU_PATH_SIZE];
	int64_t package;

	snprintf(out, size, "cpu%d", cpu);
	if (level == OF_CORE)
		return out;
	snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/physical_package_id", cpu);
	if (value_get(env, path, &package) < 0 || package < 0)
		package = 0;
	snprintf(out, size, "package-%lld", (long long)package);
	return out;
}

/* Opens the wanted files of the CPU; false when there are none. */
static bool open_files(struct throttle_unit *u, struct collect_context *ctx)
{
	bool any = false;
	int nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(throttle_metric); i++) {
		const struct metric *m = &throttle_metric[i];
		char path[CPU_PATH_SIZE];

		if (m->at.source != u->level)
			continue;
		snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/thermal_throttle/%s", u->cpu, m->at.file);
		u->handle[nr] = ctx->map.col[i] < 0 ? -1 : env_open(ctx->env, path);
		any |= u->handle[nr++] >= 0;
	}
	return any;
}

static void close_files(struct throttle_unit *u, struct env *env)
{
	for (size_t i = 0; i < ARRAY_SIZE(u->handle); i++)
		env_close(env, u->handle[i]);
}

static void add_unit(struct throttle *t, struct collect_context *ctx, int cpu, int level)
{
	struct throttle_unit *u = &t->unit[t->nr];
	char name[32];
	int row;

	if (t->nr == ROWS_MAX)
		return;
	*u = (struct throttle_unit){.cpu = (int16_t)cpu, .level = (uint8_t)level};
	if (!open_files(u, ctx))
		return;
	row = ctx->join(ctx, find_name(ctx->env, cpu, level, name, sizeof(name)));
	if (row < 0) {
		close_files(u, ctx->env);
		return;
	}
	u->row = (uint16_t)row;
	t->nr++;
}

/* Takes one CPU of each core and package that has none yet. */
static void find_units(struct throttle *t, struct collect_context *ctx, int level)
{
	struct cpu_bits spoken = {0};

	for (uint32_t i = 0; i < t->nr; i++)
		if (t->unit[i].level == level)
			online_add_list(ctx->env, t->unit[i].cpu, siblings[level], &spoken);
	for (int c = -1; (c = cpu_bits_next(&t->online.cpus, c + 1)) >= 0;) {
		if (cpu_is_in(&spoken, c))
			continue;
		/* Without the list of siblings a CPU counts as a core, but not as a package: each of its CPUs
		 * would count that. */
		if (online_add_list(ctx->env, c, siblings[level], &spoken) || level == OF_CORE)
			add_unit(t, ctx, c, level);
	}
}

static bool is_recorded(const struct collect_context *ctx, int level)
{
	for (size_t i = 0; i < ARRAY_SIZE(throttle_metric); i++)
		if (throttle_metric[i].at.source == level && ctx->map.col[i] >= 0)
			return true;
	return false;
}

static void find_all(struct throttle *t, struct collect_context *ctx)
{
	t->search = false;
	for (int level = 0; level < NR_PLACES; level++)
		if (is_recorded(ctx, level))
			find_units(t, ctx, level);
}

static void drop_gone(struct throttle *t, struct collect_context *ctx)
{
	for (uint32_t i = t->nr; i--;) {
		struct throttle_unit *u = &t->unit[i];

		if (!u->gone && cpu_is_in(&t->online.cpus, u->cpu))
			continue;
		close_files(u, ctx->env);
		ctx->leave(ctx, u->row);
		*u = t->unit[--t->nr];
	}
}

static void explain(const struct throttle *t, struct collect_context *ctx)
{
	int nr[NR_PLACES] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(throttle_metric); i++) {
		int level = throttle_metric[i].at.source, at = nr[level]++;
		bool has = false;

		for (uint32_t u = 0; u < t->nr && !has; u++)
			has = t->unit[u].level == level && t->unit[u].handle[at] >= 0;
		if (!has)
			ctx->why(ctx, i, ABSENT, "this kernel does not count it for these CPUs", NULL);
	}
}

static int throttle_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_folder(env, CPU_FOLDER "/cpu0/thermal_throttle",
		(struct trouble){"these CPUs do not count when they are throttled", NULL}, reterr_why);
}

static int throttle_open(void *state, struct collect_context *ctx)
{
	struct throttle *t = state;
	int r = online_open(&t->online, ctx->env);

	if (r < 0)
		return r;
	find_all(t, ctx);
	explain(t, ctx);
	return 0;
}

static void read_unit(struct throttle *t, struct collect_context *ctx, struct throttle_unit *u)
{
	int nr = 0;

	table_touch(ctx->table, u->row);
	for (size_t i = 0; i < ARRAY_SIZE(throttle_metric); i++) {
		int64_t value = 0;
		int handle, r;

		if (throttle_metric[i].at.source != u->level)
			continue;
		handle = u->handle[nr++];
		if (handle < 0)
			continue;
		r = value_read(ctx->env, handle, &value);
		collect_put(ctx, u->row, i, r == 0, value);
		u->gone |= r == -ENODEV;
	}
	t->search |= u->gone;
}

static int throttle_sample(void *state, struct collect_context *ctx)
{
	struct throttle *t = state;
	bool changed = online_read(&t->online, ctx->env) > 0;

	if (changed || t->search) {
		drop_gone(t, ctx);
		find_all(t, ctx);
	}
	for (uint32_t i = 0; i < t->nr; i++)
		read_unit(t, ctx, &t->unit[i]);
	return 0;
}

static void throttle_close(void *state, struct collect_context *ctx)
{
	struct throttle *t = state;

	while (t->nr)
		close_files(&t->unit[--t->nr], ctx->env);
	online_close(&t->online, ctx->env);
}

const struct collector collector_throttle = {
	.name = "throttle",
	.summary = "throttling of cores and packages",
	.domain = DOMAIN_CPU,
	.metric = throttle_metric,
	.nr_metrics = ARRAY_SIZE(throttle_metric),
	.state_size = sizeof(struct throttle),
	.tier = TIER_MEDIUM,
	.max_rows = ROWS_MAX,
	.probe = throttle_probe,
	.open = throttle_open,
	.sample = throttle_sample,
	.close = throttle_close,
};
