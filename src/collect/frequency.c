/* Frequency of the CPUs, from cpufreq or, where a virtual machine has none, from proc/cpuinfo.
 *
 * CPUs that share a frequency domain (a policy) have the same file: it is read once and written into the rows
 * of all its CPUs. Many files are read in turn (round_robin.h).
 *
 * x86 kernels from 4.13 to 5.17 measure the frequency when they are read: a reading of one CPU then sleeps
 * for ten milliseconds, which is seconds for a large node. proc/cpuinfo sleeps once for all CPUs, so where
 * the first reading is found to sleep, that is taken instead. */
#include "collect/keyed.h"
#include "collect/online.h"
#include "collect/round_robin.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

enum { ROW_CURRENT, ROW_MAXIMUM, ROW_LIMIT };

/* clang-format off */
static const struct metric frequency_metric[] = {
	{"freq.current", "Frequency at which a CPU runs, or ran last.", {.file = "scaling_cur_freq"}, SCALE_KILO, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, "frequency", TIER_MEDIUM, false},
	{"freq.maximum", "Highest frequency of a CPU, boosted if it can be.", {.file = "cpuinfo_max_freq"}, SCALE_KILO, KIND_CONSTANT, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, false},
	{"freq.limit",   "Highest frequency that the system allows a CPU now.", {.file = "scaling_max_freq"}, SCALE_KILO, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, true},
};
/* clang-format on */

#define NONE UINT16_MAX
/* Longer than any reading that does not sleep. */
#define SLEEPS_NS (4 * NSEC_PER_MSEC)

struct policy {
	int handle[ARRAY_SIZE(frequency_metric)]; /* ROW_MAXIMUM is read once and not kept */
	int64_t maximum;			  /* or -1 */
	uint16_t first;				  /* of its CPUs; NONE: the policy is free */
};

struct frequency {
	struct online online;
	struct round_robin turns;
	bool search;
	bool from_cpuinfo;
	struct textfile cpuinfo;
	uint8_t turn; /* of the readings of cpuinfo */
	uint32_t nr_policies;
	int nr_cpus; /* highest number, plus 1 */
	struct {
		uint16_t row_plus_1; /* 0: not there */
		uint16_t next;	     /* CPU of the same policy */
		uint8_t turn;
	} cpu[CPU_SET_MAX];
	struct policy policy[CPU_SET_MAX];
};

static int join_cpu(struct frequency *f, struct collect_context *ctx, int cpu)
{
	char name[16];
	int row;

	snprintf(name, sizeof(name), "cpu%d", cpu);
	row = ctx->join(ctx, name);
	if (row < 0)
		return row;
	f->cpu[cpu].row_plus_1 = (uint16_t)(row + 1);
	f->cpu[cpu].next = NONE;
	f->nr_cpus = MAX(f->nr_cpus, cpu + 1);
	return row;
}

static void leave_cpu(struct frequency *f, struct collect_context *ctx, int cpu)
{
	ctx->leave(ctx, f->cpu[cpu].row_plus_1 - 1u);
	f->cpu[cpu].row_plus_1 = 0;
}

static void put(struct collect_context *ctx, uint32_t row, size_t metric, int error, int64_t khz)
{
	collect_put(ctx, row, metric, error == 0 && khz > 0, khz);
}

static void close_policy(struct policy *p, struct env *env)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->handle); i++) {
		env_close(env, p->handle[i]);
		p->handle[i] = -1;
	}
	p->first = NONE;
}

static int open_policy(struct policy *p, struct collect_context *ctx, int cpu)
{
	char path[CPU_PATH_SIZE];
	int64_t maximum = -1;
	int r = -ENOENT;

	*p = (struct policy){.first = NONE, .maximum = -1};
	for (int i = 0; i < (int)ARRAY_SIZE(p->handle); i++) {
		p->handle[i] = -1;
		snprintf(
			path, sizeof(path), CPU_FOLDER "/cpu%d/cpufreq/%s", cpu, frequency_metric[i].at.file);
		if (ctx->map.col[i] < 0)
			continue;
		if (i == ROW_MAXIMUM && value_get(ctx->env, path, &maximum) == 0)
			p->maximum = maximum;
		else if (i != ROW_MAXIMUM)
			p->handle[i] = env_open(ctx->env, path);
		if (p->handle[i] >= 0 || maximum > 0)
			r = 0;
	}
	return r;
}

/* Adds the CPU's policy with all its CPUs that are online. */
static void add_policy(struct frequency *f, struct collect_context *ctx, int cpu)
{
	struct cpu_bits shared = {0};
	uint32_t i = 0;

	while (i < f->nr_policies && f->policy[i].first != NONE)
		i++;
	if (i == CPU_SET_MAX || open_policy(&f->policy[i], ctx, cpu) < 0)
		return;
	f->nr_policies = MAX(f->nr_policies, i + 1);
	cpu_put_in(&shared, cpu);
	online_add_list(ctx->env, cpu, "cpufreq/affected_cpus", &shared);
	for (int c = -1; (c = cpu_bits_next(&shared, c + 1)) >= 0;) {
		int row;

		if (f->cpu[c].row_plus_1 || !cpu_is_in(&f->online.cpus, c))
			continue;
		row = join_cpu(f, ctx, c);
		if (row < 0)
			continue;
		f->cpu[c].next = f->policy[i].first;
		f->policy[i].first = (uint16_t)c;
		put(ctx, (uint32_t)row, ROW_MAXIMUM, 0, f->policy[i].maximum);
	}
	if (f->policy[i].first == NONE)
		close_policy(&f->policy[i], ctx->env);
}

static void find_policies(struct frequency *f, struct collect_context *ctx)
{
	f->search = false;
	for (int c = -1; (c = cpu_bits_next(&f->online.cpus, c + 1)) >= 0;)
		if (!f->cpu[c].row_plus_1)
			add_policy(f, ctx, c);
}

/* CPUs that went offline leave their policy; a policy without CPUs is closed. */
static void drop_offline(struct frequency *f, struct collect_context *ctx)
{
	for (uint32_t i = 0; i < f->nr_policies; i++) {
		struct policy *p = &f->policy[i];
		uint16_t *link = &p->first;

		if (p->first == NONE)
			continue;
		while (*link != NONE) {
			uint16_t c = *link;

			if (cpu_is_in(&f->online.cpus, c)) {
				link = &f->cpu[c].next;
				continue;
			}
			*link = f->cpu[c].next;
			leave_cpu(f, ctx, c);
		}
		if (p->first == NONE)
			close_policy(p, ctx->env);
	}
}

static void drop_policy(struct frequency *f, struct collect_context *ctx, struct policy *p)
{
	for (uint16_t c = p->first; c != NONE; c = f->cpu[c].next)
		leave_cpu(f, ctx, c);
	close_policy(p, ctx->env);
	f->search = true;
}

static void read_policy(struct frequency *f, struct collect_context *ctx, struct policy *p)
{
	static const size_t read[] = {ROW_CURRENT, ROW_LIMIT};

	for (uint16_t c = p->first; c != NONE; c = f->cpu[c].next)
		table_touch(ctx->table, f->cpu[c].row_plus_1 - 1u);
	for (size_t i = 0; i < ARRAY_SIZE(read) && p->first != NONE; i++) {
		int64_t khz = 0;
		int r;

		if (p->handle[read[i]] < 0)
			continue;
		r = value_read(ctx->env, p->handle[read[i]], &khz);
		for (uint16_t c = p->first; c != NONE; c = f->cpu[c].next)
			put(ctx, f->cpu[c].row_plus_1 - 1u, read[i], r, khz);
		if (r == -ENODEV)
			drop_policy(f, ctx, p);
	}
}

/* "2300.000" MHz as kHz. */
static bool read_khz(const char *at, const char *end, int64_t *ret)
{
	if (!read_number(&at, end, ret) || *ret < 0 || *ret > 1000000)
		return false;
	*ret *= 1000;
	if (at < end && *at == '.')
		for (int64_t place = 100; ++at < end && *at >= '0' && *at <= '9'; place /= 10)
			*ret += (*at - '0') * place;
	return true;
}

/* What stands behind "key : " on the line; NULL when that is not its key. */
static const char *value_of(const char *line, const char *end, const char *key)
{
	size_t len = strlen(key);

	if ((size_t)(end - line) <= len || memcmp(line, key, len))
		return NULL;
	for (line += len; line < end && (*line == ' ' || *line == '\t'); line++)
		;
	if (line == end || *line++ != ':')
		return NULL;
	return line < end && *line == ' ' ? line + 1 : line;
}

/* Returns how many CPUs had a frequency. */
static unsigned read_cpuinfo(struct frequency *f, struct collect_context *ctx, size_t len, bool in_tick)
{
	const char *line = f->cpuinfo.text, *end = line + len, *stop, *at;
	int64_t cpu = -1, khz;
	unsigned nr = 0;

	f->turn++;
	for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
		at = value_of(line, stop, "processor");
		if (at) {
			cpu = read_number(&at, stop, &cpu) && cpu >= 0 && cpu < CPU_SET_MAX ? cpu : -1;
			continue;
		}
		at = value_of(line, stop, "cpu MHz");
		if (!at)
			at = value_of(line, stop, "clock"); /* POWER */
		if (!at || cpu < 0 || !read_khz(at, stop, &khz))
			continue;
		if (!f->cpu[cpu].row_plus_1 && join_cpu(f, ctx, (int)cpu) < 0)
			continue;
		f->cpu[cpu].turn = f->turn;
		if (in_tick)
			table_touch(ctx->table, f->cpu[cpu].row_plus_1 - 1u);
		put(ctx, f->cpu[cpu].row_plus_1 - 1u, ROW_CURRENT, 0, khz);
		nr++;
	}
	return nr;
}

static int sample_cpuinfo(struct frequency *f, struct collect_context *ctx)
{
	ssize_t n = textfile_read(&f->cpuinfo, ctx->env);

	if (n >= 0 && !read_cpuinfo(f, ctx, (size_t)n, true))
		n = -EBADMSG;
	for (int c = 0; c < f->nr_cpus; c++) {
		if (!f->cpu[c].row_plus_1 || (n >= 0 && f->cpu[c].turn == f->turn))
			continue;
		if (n >= 0) {
			leave_cpu(f, ctx, c);
			continue;
		}
		table_touch(ctx->table, f->cpu[c].row_plus_1 - 1u);
		put(ctx, f->cpu[c].row_plus_1 - 1u, ROW_CURRENT, (int)n, 0);
	}
	return (int)MIN(n, 0);
}

static void open_cpuinfo(struct frequency *f, struct collect_context *ctx)
{
	if (ctx->map.col[ROW_CURRENT] < 0 || textfile_open(&f->cpuinfo, ctx->env, "proc/cpuinfo", false) < 0)
		return;
	f->from_cpuinfo = read_cpuinfo(f, ctx, strlen(f->cpuinfo.text), false) > 0;
	if (!f->from_cpuinfo)
		textfile_close(&f->cpuinfo, ctx->env);
	while (f->from_cpuinfo && f->nr_policies)
		close_policy(&f->policy[--f->nr_policies], ctx->env);
}

/* Whether a reading of one CPU sleeps. */
static bool reading_sleeps(const struct frequency *f, struct env *env)
{
	int64_t before = env_now(env, ENV_MONOTONIC), khz;

	return f->policy[0].handle[ROW_CURRENT] >= 0 &&
		value_read(env, f->policy[0].handle[ROW_CURRENT], &khz) == 0 &&
		env_now(env, ENV_MONOTONIC) - before > SLEEPS_NS;
}

static void explain(const struct frequency *f, struct collect_context *ctx)
{
	static const char *const absent[] = {"neither cpufreq nor proc/cpuinfo has the CPUs' frequency here",
		"cpufreq does not have the CPUs' highest frequency here",
		"cpufreq does not have the CPUs' limit here"};
	const struct policy *p = &f->policy[0]; /* the first that was tried, even if that failed */

	for (int i = 0; i < (int)ARRAY_SIZE(absent); i++) {
		bool has = i == ROW_MAXIMUM ? p->maximum > 0 : p->handle[i] >= 0;

		if (!has && !(i == ROW_CURRENT && f->from_cpuinfo))
			ctx->why(ctx, (size_t)i, ABSENT, absent[i], NULL);
	}
}

static int frequency_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, CPU_FOLDER "/online",
		(struct trouble){CPU_FOLDER "/online cannot be read", NULL}, reterr_why);
}

static int frequency_open(void *state, struct collect_context *ctx)
{
	struct frequency *f = state;
	int r = online_open(&f->online, ctx->env);

	if (r < 0)
		return r;
	find_policies(f, ctx);
	if (!f->nr_policies || reading_sleeps(f, ctx->env))
		open_cpuinfo(f, ctx);
	explain(f, ctx);
	return 0;
}

static int frequency_sample(void *state, struct collect_context *ctx)
{
	struct frequency *f = state;
	uint32_t i;
	int changed;

	if (f->from_cpuinfo)
		return sample_cpuinfo(f, ctx);
	changed = online_read(&f->online, ctx->env);
	if (changed > 0)
		drop_offline(f, ctx);
	if (changed > 0 || f->search)
		find_policies(f, ctx);
	round_robin_begin(&f->turns, ctx->env, f->nr_policies);
	while (round_robin_turn(&f->turns, ctx->env, f->nr_policies, &i))
		read_policy(f, ctx, &f->policy[i]);
	return 0;
}

static void frequency_close(void *state, struct collect_context *ctx)
{
	struct frequency *f = state;

	textfile_close(&f->cpuinfo, ctx->env);
	for (uint32_t i = 0; i < f->nr_policies; i++)
		if (f->policy[i].first != NONE)
			close_policy(&f->policy[i], ctx->env);
	online_close(&f->online, ctx->env);
}

const struct collector collector_frequency = {
	.name = "frequency",
	.summary = "frequency of the node's CPUs",
	.domain = DOMAIN_CPU,
	.metric = frequency_metric,
	.nr_metrics = ARRAY_SIZE(frequency_metric),
	.state_size = sizeof(struct frequency),
	.tier = TIER_MEDIUM,
	.max_rows = CPU_SET_MAX,
	.probe = frequency_probe,
	.open = frequency_open,
	.sample = frequency_sample,
	.close = frequency_close,
};
