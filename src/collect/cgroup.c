/* The control groups that the job runs in: what they count, and where they limit it.
 *
 * One instance is the job's own group, the others are the groups above it up to the topmost that limits CPU,
 * memory or the number of processes: they contain the own one and stand apart, so that nothing is added
 * twice.
 *
 * On v1 every controller has a hierarchy of its own, in which the job's group may have another path; on v2 a
 * controller counts in the nearest group above for which it is enabled. So "own" is decided by controller:
 * the own instance has the name of the memory controller's group, whose peak and kills matter most, and takes
 * each number from the group that its controller has the job in. One instance for each path was rejected:
 * SLURM on v1 names the same task task_0 here and task_1 there. Hierarchies in which the job is in the root
 * group do not count it separately, and are left out.
 *
 * A row has several places, of v1, of older kernels and of v2, and is taken from the first that has it. All
 * times of CPUs are kept in nanoseconds as v1 has them; v2's microseconds are multiplied.
 *
 * Files that cost little and explain how a job ended (CPU, throttling, memory, kills, failed forks) are read
 * at every tick; memory.stat, which makes the kernel add up the counters of all CPUs, and the rest every few
 * seconds. */
#include "collect/cgroup_levels.h"
#include "collect/collector.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define LIMIT {.arg = 1} /* no value where no limit is set */

static const struct metric cgroup_metric[] = {
	{"cgroup.cpu.usage",             "CPU time of all that ran in the group.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.cpu", TIER_TICK, false},
	{"cgroup.cpu.user",              "CPU time of programs in the group.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.cpu", TIER_TICK, false},
	{"cgroup.cpu.system",            "CPU time in the kernel for the group.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.cpu", TIER_TICK, false},
	{"cgroup.cpu.periods",           "Periods of the CPU quota in which the group had work.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.cpu.throttled_periods", "Periods in which the group used up its CPU quota and was stopped.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.cpu.throttled",         "Time for which the group was stopped because its CPU quota was used up, summed over CPUs.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.cpu", TIER_TICK, false},
	{"cgroup.cpu.quota",             "CPUs that the group may use.", LIMIT, SCALE_MILLI, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "cgroup.cpu", TIER_MEDIUM, false},
	{"cgroup.memory.current",        "Memory charged to the group, page cache included.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_TICK, false},
	{"cgroup.memory.peak",           "The most memory ever charged to the group.", {0}, SCALE_ONE, KIND_PEAK, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_TICK, false},
	{"cgroup.memory.oom",            "Times the group was out of memory: at its limit, and nothing left to reclaim.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.memory.oom_kill",       "Processes of the group that were killed because memory ran out.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.memory.max_hits",       "Times the group ran into its memory limit.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.memory.high_hits",      "Times the group was slowed down for using more than memory.high.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.memory.limit",          "Memory that the group may use.", LIMIT, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.memory.anon",           "Memory of programs: heaps, stacks, anonymous mappings.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.memory.file",           "Page cache, shared memory included.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.memory.shmem",          "Shared memory and tmpfs; part of the page cache.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.memory.slab",           "The kernel's own objects for the group.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.memory.swap",           "Swap space that the group uses.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "cgroup.memory", TIER_MEDIUM, false},
	{"cgroup.io.read_bytes",         "Bytes fetched from disks for the group.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "cgroup.io", TIER_MEDIUM, false},
	{"cgroup.io.write_bytes",        "Bytes sent to disks for the group.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "cgroup.io", TIER_MEDIUM, false},
	{"cgroup.io.read_ops",           "Reads from disks for the group.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"cgroup.io.write_ops",          "Writes to disks for the group.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"cgroup.pids.current",          "Processes and threads in the group.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.pids.limit",            "Processes and threads that the group may have.", LIMIT, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"cgroup.pids.max_hits",         "Forks that failed because the group had as many processes as it may.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"cgroup.pressure.cpu.some",     "Time in which some task of the group waited for a CPU.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
	{"cgroup.pressure.cpu.full",     "Time in which every task of the group that had work waited for a CPU.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
	{"cgroup.pressure.memory.some",  "Time in which some task of the group waited for memory.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
	{"cgroup.pressure.memory.full",  "Time in which every task of the group that had work waited for memory.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
	{"cgroup.pressure.io.some",      "Time in which some task of the group waited for a disk.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
	{"cgroup.pressure.io.full",      "Time in which every task of the group that had work waited for a disk.", {0}, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cgroup.pressure", TIER_MEDIUM, false},
};
/* clang-format on */

enum form {
	KEYS,	  /* a key and its number a line */
	NUMBER,	  /* one number; "max" is none */
	BOUND,	  /* the same of v1, which writes a number close to the largest one for none */
	QUOTA,	  /* v2: quota and period; "max" is none */
	PERIOD,	  /* v1: what the next file's quota is to be divided by */
	QUOTA_V1, /* -1 is none */
	DEVICES,  /* "8:0 rbytes=1 wbytes=2", "8:0 Read 1": added up */
	STALLS,
};

enum version { ANY, V1, V2 };

/* In the order in which they are tried: a file is opened only for rows that no file before it gave. */
/* clang-format off */
enum source_id {
	V1_USAGE, V1_USER, V1_SYSTEM, V1_TIMES, V1_CPU_STAT, CPU_STAT, CPU_STAT_ABOVE, V1_PERIOD, V1_QUOTA, CPU_MAX,
	V1_CURRENT, MEMORY_CURRENT, V1_PEAK, MEMORY_PEAK, V1_FAILCNT, V1_OOM, MEMORY_EVENTS, V1_LIMIT, MEMORY_MAX,
	V1_STAT, MEMORY_STAT, SWAP_CURRENT, V1_IO_BYTES, V1_IO_OPS, IO_STAT, PIDS_CURRENT, PIDS_MAX, PIDS_EVENTS,
	CPU_STALLS, MEMORY_STALLS, IO_STALLS,
	NR_SOURCES
};

static const struct source {
	const char *file, *older; /* older: where the file has no such name yet */
	enum cgroup_controller controller;
	enum version version;
	enum metric_tier tier;
	enum form form;
} source[NR_SOURCES] = {
	[V1_USAGE]       = {"cpuacct.usage", NULL, CGROUP_CPUACCT, V1, TIER_TICK, NUMBER},
	[V1_USER]        = {"cpuacct.usage_user", NULL, CGROUP_CPUACCT, V1, TIER_TICK, NUMBER},
	[V1_SYSTEM]      = {"cpuacct.usage_sys", NULL, CGROUP_CPUACCT, V1, TIER_TICK, NUMBER},
	[V1_TIMES]       = {"cpuacct.stat", NULL, CGROUP_CPUACCT, V1, TIER_TICK, KEYS},
	[V1_CPU_STAT]    = {"cpu.stat", NULL, CGROUP_CPU, V1, TIER_TICK, KEYS},
	[CPU_STAT]       = {"cpu.stat", NULL, CGROUP_UNIFIED, V2, TIER_TICK, KEYS},
	[CPU_STAT_ABOVE] = {"cpu.stat", NULL, CGROUP_CPU, V2, TIER_TICK, KEYS},
	[V1_PERIOD]      = {"cpu.cfs_period_us", NULL, CGROUP_CPU, V1, TIER_MEDIUM, PERIOD},
	[V1_QUOTA]       = {"cpu.cfs_quota_us", NULL, CGROUP_CPU, V1, TIER_MEDIUM, QUOTA_V1},
	[CPU_MAX]        = {"cpu.max", NULL, CGROUP_CPU, V2, TIER_MEDIUM, QUOTA},
	[V1_CURRENT]     = {"memory.usage_in_bytes", NULL, CGROUP_MEMORY, V1, TIER_TICK, NUMBER},
	[MEMORY_CURRENT] = {"memory.current", NULL, CGROUP_MEMORY, V2, TIER_TICK, NUMBER},
	[V1_PEAK]        = {"memory.max_usage_in_bytes", NULL, CGROUP_MEMORY, V1, TIER_TICK, NUMBER},
	[MEMORY_PEAK]    = {"memory.peak", NULL, CGROUP_MEMORY, V2, TIER_TICK, NUMBER},
	[V1_FAILCNT]     = {"memory.failcnt", NULL, CGROUP_MEMORY, V1, TIER_TICK, NUMBER},
	[V1_OOM]         = {"memory.oom_control", NULL, CGROUP_MEMORY, V1, TIER_TICK, KEYS},
	[MEMORY_EVENTS]  = {"memory.events", NULL, CGROUP_MEMORY, V2, TIER_TICK, KEYS},
	[V1_LIMIT]       = {"memory.limit_in_bytes", NULL, CGROUP_MEMORY, V1, TIER_MEDIUM, BOUND},
	[MEMORY_MAX]     = {"memory.max", NULL, CGROUP_MEMORY, V2, TIER_MEDIUM, NUMBER},
	[V1_STAT]        = {"memory.stat", NULL, CGROUP_MEMORY, V1, TIER_MEDIUM, KEYS},
	[MEMORY_STAT]    = {"memory.stat", NULL, CGROUP_MEMORY, V2, TIER_MEDIUM, KEYS},
	[SWAP_CURRENT]   = {"memory.swap.current", NULL, CGROUP_MEMORY, V2, TIER_MEDIUM, NUMBER},
	[V1_IO_BYTES]    = {"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes", CGROUP_IO, V1, TIER_MEDIUM, DEVICES},
	[V1_IO_OPS]      = {"blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced", CGROUP_IO, V1, TIER_MEDIUM, DEVICES},
	[IO_STAT]        = {"io.stat", NULL, CGROUP_IO, V2, TIER_MEDIUM, DEVICES},
	[PIDS_CURRENT]   = {"pids.current", NULL, CGROUP_PIDS, ANY, TIER_TICK, NUMBER},
	[PIDS_MAX]       = {"pids.max", NULL, CGROUP_PIDS, ANY, TIER_MEDIUM, NUMBER},
	[PIDS_EVENTS]    = {"pids.events", NULL, CGROUP_PIDS, ANY, TIER_TICK, KEYS},
	[CPU_STALLS]     = {"cpu.pressure", NULL, CGROUP_UNIFIED, V2, TIER_MEDIUM, STALLS},
	[MEMORY_STALLS]  = {"memory.pressure", NULL, CGROUP_UNIFIED, V2, TIER_MEDIUM, STALLS},
	[IO_STALLS]      = {"io.pressure", NULL, CGROUP_UNIFIED, V2, TIER_MEDIUM, STALLS},
};

#define TICKS 0 /* times a clock tick in nanoseconds, which is the machine's */

/* Where each row is to be found; in the order of the sources. */
static const struct cgroup_place {
	const char *metric;
	enum source_id source;
	const char *key;
	int64_t times;
} place[] = {
	{"cgroup.cpu.usage", V1_USAGE, NULL, 1},
	{"cgroup.cpu.user", V1_USER, NULL, 1},
	{"cgroup.cpu.system", V1_SYSTEM, NULL, 1},
	{"cgroup.cpu.user", V1_TIMES, "user", TICKS},
	{"cgroup.cpu.system", V1_TIMES, "system", TICKS},
	{"cgroup.cpu.periods", V1_CPU_STAT, "nr_periods", 1},
	{"cgroup.cpu.throttled_periods", V1_CPU_STAT, "nr_throttled", 1},
	{"cgroup.cpu.throttled", V1_CPU_STAT, "throttled_time", 1},
	{"cgroup.cpu.usage", CPU_STAT, "usage_usec", 1000},
	{"cgroup.cpu.user", CPU_STAT, "user_usec", 1000},
	{"cgroup.cpu.system", CPU_STAT, "system_usec", 1000},
	{"cgroup.cpu.periods", CPU_STAT, "nr_periods", 1},
	{"cgroup.cpu.throttled_periods", CPU_STAT, "nr_throttled", 1},
	{"cgroup.cpu.throttled", CPU_STAT, "throttled_usec", 1000},
	{"cgroup.cpu.periods", CPU_STAT_ABOVE, "nr_periods", 1},
	{"cgroup.cpu.throttled_periods", CPU_STAT_ABOVE, "nr_throttled", 1},
	{"cgroup.cpu.throttled", CPU_STAT_ABOVE, "throttled_usec", 1000},
	{"cgroup.cpu.quota", V1_PERIOD, NULL, 1},
	{"cgroup.cpu.quota", V1_QUOTA, NULL, 1},
	{"cgroup.cpu.quota", CPU_MAX, NULL, 1},
	{"cgroup.memory.current", V1_CURRENT, NULL, 1},
	{"cgroup.memory.current", MEMORY_CURRENT, NULL, 1},
	{"cgroup.memory.peak", V1_PEAK, NULL, 1},
	{"cgroup.memory.peak", MEMORY_PEAK, NULL, 1},
	{"cgroup.memory.max_hits", V1_FAILCNT, NULL, 1},
	{"cgroup.memory.oom_kill", V1_OOM, "oom_kill", 1},
	{"cgroup.memory.oom", MEMORY_EVENTS, "oom", 1},
	{"cgroup.memory.oom_kill", MEMORY_EVENTS, "oom_kill", 1},
	{"cgroup.memory.max_hits", MEMORY_EVENTS, "max", 1},
	{"cgroup.memory.high_hits", MEMORY_EVENTS, "high", 1},
	{"cgroup.memory.limit", V1_LIMIT, NULL, 1},
	{"cgroup.memory.limit", MEMORY_MAX, NULL, 1},
	{"cgroup.memory.anon", V1_STAT, "total_rss", 1},
	{"cgroup.memory.file", V1_STAT, "total_cache", 1},
	{"cgroup.memory.shmem", V1_STAT, "total_shmem", 1},
	{"cgroup.memory.swap", V1_STAT, "total_swap", 1},
	{"cgroup.memory.anon", MEMORY_STAT, "anon", 1},
	{"cgroup.memory.file", MEMORY_STAT, "file", 1},
	{"cgroup.memory.shmem", MEMORY_STAT, "shmem", 1},
	{"cgroup.memory.slab", MEMORY_STAT, "slab", 1},
	{"cgroup.memory.swap", SWAP_CURRENT, NULL, 1},
	{"cgroup.io.read_bytes", V1_IO_BYTES, "Read", 1},
	{"cgroup.io.write_bytes", V1_IO_BYTES, "Write", 1},
	{"cgroup.io.read_ops", V1_IO_OPS, "Read", 1},
	{"cgroup.io.write_ops", V1_IO_OPS, "Write", 1},
	{"cgroup.io.read_bytes", IO_STAT, "rbytes", 1},
	{"cgroup.io.write_bytes", IO_STAT, "wbytes", 1},
	{"cgroup.io.read_ops", IO_STAT, "rios", 1},
	{"cgroup.io.write_ops", IO_STAT, "wios", 1},
	{"cgroup.pids.current", PIDS_CURRENT, NULL, 1},
	{"cgroup.pids.limit", PIDS_MAX, NULL, 1},
	{"cgroup.pids.max_hits", PIDS_EVENTS, "max", 1},
	{"cgroup.pressure.cpu.some", CPU_STALLS, "some", 1},
	{"cgroup.pressure.cpu.full", CPU_STALLS, "full", 1},
	{"cgroup.pressure.memory.some", MEMORY_STALLS, "some", 1},
	{"cgroup.pressure.memory.full", MEMORY_STALLS, "full", 1},
	{"cgroup.pressure.io.some", IO_STALLS, "some", 1},
	{"cgroup.pressure.io.full", IO_STALLS, "full", 1},
};
/* clang-format on */

/* The own group and ten above: deeper trees have limits further down. */
#define LEVELS_MAX 11
#define TEXT_SIZE (64 << 10)
#define MAJORS 4096
#define EXITING 4 /* PF_EXITING, in the flags of proc/PID/stat */
/* The first samples check whether the job has moved; later ones only when the medium tier is due. */
#define ASK_SAMPLES 16

extern const struct collector collector_cgroup;

struct cgroup_group {
	uint32_t row;
	bool here; /* its row is still its own */
	unsigned nr_open;
	int64_t period_us;
	int handle[NR_SOURCES];
	uint64_t gives[NR_SOURCES]; /* columns that are filled from the file */
	char name[sizeof(((struct cgroup_dir *)0)->group)];
};

struct cgroup {
	struct cgroup_levels levels;
	int8_t col[ARRAY_SIZE(place)];
	unsigned first[NR_SOURCES + 1]; /* places of each source */
	uint64_t wanted[NR_SOURCES];	/* columns */
	uint64_t stacked[MAJORS / 64];	/* block devices whose traffic is counted again by the disks below */
	struct cgroup_group group[LEVELS_MAX];
	unsigned nr;
	pid_t pid;	       /* the process whose groups these are; 0: none yet */
	const char *job_group; /* with regard to this one */
	int watch;	       /* its proc/PID/cgroup */
	unsigned asked;
	bool denied, explained;
	char seen[4096], text[TEXT_SIZE];
};

/* ---- one file ---- */

static bool quota_value(const char *p, const char *end, int64_t *ret)
{
	int64_t quota, period;

	if (!read_number(&p, end, &quota) || p == end || *p++ != ' ' || !read_number(&p, end, &period) ||
		period <= 0 || quota < 0 || quota > INT64_MAX / 1000)
		return false;
	*ret = quota * 1000 / period;
	return true;
}

static bool quota_v1_value(const char *p, const char *end, int64_t period, int64_t *ret)
{
	int64_t quota;

	if (!read_number(&p, end, &quota) || quota < 0 || quota > INT64_MAX / 1000 || period <= 0)
		return false;
	*ret = quota * 1000 / period;
	return true;
}

static bool is_stacked(const struct cgroup *s, const char *line, const char *end)
{
	int64_t major;

	return read_number(&line, end, &major) && major >= 0 && major < MAJORS &&
		s->stacked[major / 64] >> major % 64 & 1;
}

/* No line is no traffic; the last line of v1, "Total 0", has no device. */
static int64_t sum_devices(const struct cgroup *s, const char *text, const char *end, const char *key)
{
	size_t len = strlen(key);
	uint64_t sum = 0;

	for (const char *line = text, *stop; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			break;
		if (is_stacked(s, line, stop))
			continue;
		for (const char *p = line; (p = memchr(p, ' ', (size_t)(stop - p)));) {
			int64_t value;

			p++;
			if ((size_t)(stop - p) <= len || memcmp(p, key, len) ||
				(p[len] != '=' && p[len] != ' '))
				continue;
			p += len + 1;
			if (read_number(&p, stop, &value))
				sum += (uint64_t)value;
			break;
		}
	}
	return (int64_t)sum;
}

static bool value_of(const struct cgroup *s, struct cgroup_group *g, const struct cgroup_place *at,
	const char *end, int64_t *ret)
{
	const char *p = s->text;

	switch (source[at->source].form) {
	case KEYS:
		return read_key(p, end, at->key, ret);
	case NUMBER:
		return read_number(&p, end, ret);
	case BOUND:
		return read_number(&p, end, ret) && *ret >= 0 && *ret < CGROUP_UNLIMITED;
	case QUOTA:
		return quota_value(p, end, ret);
	case PERIOD:
		g->period_us = read_number(&p, end, ret) ? *ret : 0;
		return false;
	case QUOTA_V1:
		return quota_v1_value(p, end, g->period_us, ret);
	case DEVICES:
		*ret = sum_devices(s, p, end, at->key);
		return true;
	case STALLS:
		return read_pressure(p, end, at->key, PSI_TOTAL, ret);
	}
	return false;
}

/* The text has been read: its numbers into the cells. */
static void fill(
	struct cgroup *s, struct collect_context *ctx, struct cgroup_group *g, enum source_id id, size_t len)
{
	int64_t tick_ns = NSEC_PER_SEC / MAX(ctx->env->clock_tick, 1);

	for (unsigned i = s->first[id]; i < s->first[id + 1]; i++) {
		int col = s->col[i];
		int64_t value;

		if (col < 0 || !(g->gives[id] >> col & 1))
			continue;
		if (value_of(s, g, &place[i], s->text + len, &value))
			table_set(ctx->table, g->row, (uint32_t)col,
				(int64_t)((uint64_t)value *
					(uint64_t)(place[i].times ? place[i].times : tick_ns)));
		else
			table_unset(ctx->table, g->row, (uint32_t)col);
	}
}

static ssize_t read_source(struct cgroup *s, struct collect_context *ctx, int handle)
{
	ssize_t n = env_read(ctx->env, handle, s->text, sizeof(s->text) - 1);

	if (n >= 0)
		s->text[n] = 0;
	return n == sizeof(s->text) - 1 ? -EFBIG : n;
}

static int open_file(struct collect_context *ctx, const struct cgroup_dir *dir, const char *file)
{
	char path[PATH_MAX + NAME_MAX + 2];

	if (!file)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", dir->path, file);
	return env_open(ctx->env, path);
}

static void open_source(struct cgroup *s, struct collect_context *ctx, struct cgroup_group *g,
	enum source_id id, const struct cgroup_dir *dir)
{
	uint64_t gives = s->wanted[id] & ~ctx->table->valid[g->row];
	int handle;
	ssize_t n;

	if (!gives || (source[id].version != ANY && dir->v2 != (source[id].version == V2)))
		return;
	handle = open_file(ctx, dir, source[id].file);
	if (handle == -ENOENT)
		handle = open_file(ctx, dir, source[id].older);
	n = handle < 0 ? handle : read_source(s, ctx, handle);
	s->denied = s->denied || is_refused(n);
	if (n < 0) {
		env_close(ctx->env, handle);
		return;
	}
	g->handle[id] = handle;
	g->gives[id] = gives;
	g->nr_open++;
	fill(s, ctx, g, id, (size_t)n);
}

static void close_source(struct cgroup_group *g, struct collect_context *ctx, enum source_id id)
{
	if (g->handle[id] < 0)
		return;
	env_close(ctx->env, g->handle[id]);
	g->handle[id] = -1;
	g->nr_open--;
}

/* ---- groups ---- */

static bool group_is_known(const struct cgroup *s, const char *name)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (!strcmp(s->group[i].name, name))
			return true;
	return false;
}

static int add_group(
	struct cgroup *s, struct collect_context *ctx, const char *name, const struct about *about, size_t nr)
{
	bool own = s->nr == 0;
	struct cgroup_group *g = &s->group[s->nr];
	int row;

	if (s->nr == LEVELS_MAX)
		return -ENOSPC;
	row = ctx->join_about(ctx, name, about, nr);
	if (row < 0)
		return row;
	*g = (struct cgroup_group){.row = (uint32_t)row, .here = true};
	snprintf(g->name, sizeof(g->name), "%s", name);
	s->nr++;
	for (int id = 0; id < NR_SOURCES; id++) {
		enum cgroup_controller c = source[id].controller;
		struct cgroup_dir dir;

		g->handle[id] = -1;
		if (own && s->levels.own.dir[c].found)
			open_source(s, ctx, g, id, &s->levels.own.dir[c]);
		else if (!own && cgroup_levels_dir(&s->levels, c, name, &dir))
			open_source(s, ctx, g, id, &dir);
	}
	return 0;
}

struct adding {
	struct cgroup *s;
	struct collect_context *ctx;
};

static int add_above(void *arg, const char *name)
{
	const struct about about[] = {{"apart", "contains the job's own group"}};
	struct adding *a = arg;

	return group_is_known(a->s, name) ? 0 : add_group(a->s, a->ctx, name, about, ARRAY_SIZE(about));
}

/* Where the numbers of a controller come from, when that is not the group that gave the instance its name. */
static size_t describe(const struct cgroup *s, const char *name, struct about *about)
{
	static const struct {
		enum cgroup_controller controller;
		const char *key;
	} named[] = {{CGROUP_CPU, "cpu"}, {CGROUP_CPUACCT, "cpuacct"}, {CGROUP_IO, "io"},
		{CGROUP_PIDS, "pids"}, {CGROUP_UNIFIED, "unified"}};
	size_t nr = 0;

	about[nr++] = (struct about){"own", "1"};
	about[nr++] = (struct about){"hierarchy", cgroup_levels_kind(&s->levels)};
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		const struct cgroup_dir *dir = &s->levels.own.dir[named[i].controller];

		if (dir->found && strcmp(dir->group, name))
			about[nr++] = (struct about){named[i].key, dir->group};
	}
	return nr;
}

static void drop_groups(struct cgroup *s, struct collect_context *ctx, bool leave)
{
	for (; s->nr > 0; s->nr--) {
		struct cgroup_group *g = &s->group[s->nr - 1];

		for (int id = 0; id < NR_SOURCES; id++)
			close_source(g, ctx, id);
		if (leave && g->here)
			ctx->leave(ctx, g->row);
	}
}

static void add_groups(struct cgroup *s, struct collect_context *ctx)
{
	const char *name = cgroup_levels_name(&s->levels);
	struct adding a = {s, ctx};
	struct about about[8];

	if (name && add_group(s, ctx, name, about, describe(s, name, about)) == 0)
		cgroup_levels_above(ctx->env, &s->levels, add_above, &a);
}

/* ---- reasons ---- */

static const struct trouble level_trouble[NR_LEVEL_STATES] = {
	[LEVEL_FOUND] = {"this kernel does not report it", NULL},
	[LEVEL_UNMOUNTED] = {"no control group that counts it is mounted", NULL},
	[LEVEL_ROOT] = {"the job is in the root group, which counts the whole machine", CGROUP_OF_SYSTEMD},
	[LEVEL_DISABLED] = {"the controller is not enabled for the job's group",
		"# as root: enable it in cgroup.subtree_control of the groups above"},
};

/* The best state of all places of the metric. */
static enum level_state state_of(const struct cgroup *s, const char *metric)
{
	enum level_state best = LEVEL_UNMOUNTED;

	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		enum level_state state = s->levels.state[source[place[i].source].controller];

		if (!strcmp(place[i].metric, metric) && (state == LEVEL_FOUND || best == LEVEL_UNMOUNTED))
			best = state;
	}
	return best;
}

static void explain(struct cgroup *s, struct collect_context *ctx)
{
	uint64_t valid = 0;

	for (unsigned i = 0; i < s->nr; i++)
		valid |= ctx->table->valid[s->group[i].row];
	for (size_t i = 0; i < ARRAY_SIZE(cgroup_metric); i++) {
		enum level_state state = state_of(s, cgroup_metric[i].name);
		const struct trouble *why = &level_trouble[state];
		bool denied = s->denied && state == LEVEL_FOUND;

		if (ctx->map.col[i] < 0 || valid >> ctx->map.col[i] & 1)
			continue;
		if (cgroup_metric[i].at.arg && state == LEVEL_FOUND && !denied)
			ctx->why(ctx, i, ABSENT, "no such limit is set", NULL);
		else if (denied)
			ctx->why(ctx, i, FORBIDDEN, "the group's files are not readable", "run as root");
		else
			ctx->why(ctx, i, ABSENT, why->reason,
				state != LEVEL_ROOT || cgroups_by_systemd(ctx->env) ? why->remedy : NULL);
	}
	s->explained = true;
}

/* ---- finding the job ---- */

static int first_member(void *arg, const struct collect_member *m)
{
	*(pid_t *)arg = m->pid;
	return 1;
}

/* What proc/PID/cgroup says now; false when it cannot be read or has not changed. */
static bool has_moved(struct cgroup *s, struct collect_context *ctx)
{
	ssize_t n = s->watch < 0 ? s->watch : env_read(ctx->env, s->watch, s->text, sizeof(s->seen) - 1);

	if (n <= 0)
		return false;
	s->text[n] = 0;
	if (!strcmp(s->text, s->seen))
		return false;
	memcpy(s->seen, s->text, (size_t)n + 1);
	return true;
}

/* From the moment a process begins to end, long before it is a zombie, the kernel shows it in the roots of
 * v1. */
static bool is_alive(struct cgroup *s, struct collect_context *ctx, pid_t pid)
{
	char path[48];
	const char *p, *end;
	int64_t flags;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	n = env_slurp(ctx->env, path, s->text, sizeof(s->text));
	p = n < 0 ? NULL : strrchr(s->text, ')');
	end = s->text + MAX(n, 0);
	for (int word = 2; p && word < 9; word++) {
		p = strchr(p, ' ');
		p += !!p;
	}
	return p && read_number(&p, end, &flags) && !(flags & EXITING);
}

/* Joins the groups of the job's first process, or of any; later only checks whether it has moved. */
static void follow(struct cgroup *s, struct collect_context *ctx)
{
	pid_t pid = ctx->feed->root;
	char path[48];

	if (s->pid && s->job_group == ctx->feed->job_group &&
		(!has_moved(s, ctx) || !is_alive(s, ctx, s->pid)))
		return;
	s->job_group = ctx->feed->job_group;
	if (s->pid)
		pid = s->pid;
	else if (!pid || !is_alive(s, ctx, pid))
		ctx->members(ctx, first_member, &pid);
	if (!pid || cgroup_levels_find(ctx->env, pid, s->job_group, &s->levels) < 0)
		return;
	drop_groups(s, ctx, true);
	if (!s->pid) {
		snprintf(path, sizeof(path), "proc/%d/cgroup", (int)pid);
		s->watch = env_open(ctx->env, path);
		s->pid = pid;
		has_moved(s, ctx);
	}
	add_groups(s, ctx);
	if (!s->explained)
		explain(s, ctx);
}

/* ---- the collector ---- */

/* Device mapper, RAID and loop devices hand their traffic on to disks, where it is counted again. */
static void find_stacked(struct cgroup *s, struct collect_context *ctx)
{
	static const char *const name[] = {"device-mapper", "md", "mdp", "loop"};
	ssize_t n = env_slurp(ctx->env, "proc/devices", s->text, sizeof(s->text));
	const char *p = n < 0 ? NULL : strstr(s->text, "Block devices:\n"), *end = s->text + MAX(n, 0);

	for (p = p ? strchr(p, '\n') : NULL; p && p < end; p = strchr(p, '\n')) {
		int64_t major;

		p += 1 + strspn(p + 1, " ");
		if (!read_number(&p, end, &major) || major < 0 || major >= MAJORS || *p++ != ' ')
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(name); i++)
			if (strlen(name[i]) == strcspn(p, "\n") && !strncmp(p, name[i], strlen(name[i])))
				s->stacked[major / 64] |= UINT64_C(1) << major % 64;
	}
}

static int column_of(const struct collect_context *ctx, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(cgroup_metric); i++)
		if (!strcmp(cgroup_metric[i].name, name))
			return ctx->map.col[i];
	return -1;
}

static int cgroup_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/self/cgroup",
		(struct trouble){"this kernel has no control groups", NULL}, reterr_why);
}

static int cgroup_open(void *state, struct collect_context *ctx)
{
	struct cgroup *s = state;
	bool io = false;

	s->watch = -1;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		enum source_id id = place[i].source;

		s->col[i] = (int8_t)column_of(ctx, place[i].metric);
		s->first[id + 1] = (unsigned)i + 1;
		if (s->col[i] >= 0)
			s->wanted[id] |= UINT64_C(1) << s->col[i];
		io = io || (s->col[i] >= 0 && source[id].form == DEVICES);
	}
	for (int id = 0; id < NR_SOURCES; id++)
		s->first[id + 1] = MAX(s->first[id + 1], s->first[id]);
	if (io)
		find_stacked(s, ctx);
	follow(s, ctx);
	return 0;
}

/* A removed group gives ENODEV; its last values are its final ones. False when nothing of it is left. */
static bool sample_group(struct cgroup *s, struct collect_context *ctx, struct cgroup_group *g)
{
	for (int id = 0; id < NR_SOURCES; id++) {
		ssize_t n;

		if (g->handle[id] < 0 || (source[id].tier != TIER_TICK && !ctx->medium))
			continue;
		n = read_source(s, ctx, g->handle[id]);
		if (n == -ENODEV) {
			close_source(g, ctx, id);
			continue;
		}
		table_touch(ctx->table, g->row);
		if (n >= 0)
			fill(s, ctx, g, id, (size_t)n);
		else
			ctx->table->valid[g->row] &= ~g->gives[id];
	}
	return g->nr_open > 0;
}

static int cgroup_sample(void *state, struct collect_context *ctx)
{
	struct cgroup *s = state;

	if (s->asked < ASK_SAMPLES || ctx->medium) {
		s->asked = MIN(s->asked + 1, ASK_SAMPLES);
		follow(s, ctx);
	}
	for (unsigned i = 0; i < s->nr; i++) {
		struct cgroup_group *g = &s->group[i];

		if (!g->here || sample_group(s, ctx, g))
			continue;
		ctx->leave(ctx, g->row);
		g->here = false;
	}
	return 0;
}

static void cgroup_close(void *state, struct collect_context *ctx)
{
	struct cgroup *s = state;

	drop_groups(s, ctx, false);
	env_close(ctx->env, s->watch);
}

const struct collector collector_cgroup = {
	.name = "cgroup",
	.summary = "the job's control groups: what they count, where they limit",
	.domain = DOMAIN_CGROUP,
	.metric = cgroup_metric,
	.nr_metrics = ARRAY_SIZE(cgroup_metric),
	.state_size = sizeof(struct cgroup),
	.tier = TIER_TICK,
	.max_rows = LEVELS_MAX,
	.probe = cgroup_probe,
	.open = cgroup_open,
	.sample = cgroup_sample,
	.close = cgroup_close,
};
