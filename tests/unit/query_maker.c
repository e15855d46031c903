#include "query_maker.h"

#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 4096.0
#define CLOCK 0.01

/* clang-format off */
static const struct {
	const char *name;
	unsigned set;
	enum metric_kind kind;
	enum metric_fold fold;
	enum metric_unit unit;
	double scale;
	enum metric_tier tier;
} row[] = {
	{"proc.cpu.time", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"proc.cpu.user", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"proc.cpu.system", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"proc.cpu.children_user", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"proc.cpu.children_system", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"proc.state", MAKER_PROCESS, KIND_GAUGE, FOLD_NONE, UNIT_CODE, 1, TIER_TICK},
	{"proc.threads", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.faults.minor", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.faults.major", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.faults.children_minor", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.faults.children_major", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.mem.vms", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, PAGE, TIER_TICK},
	{"proc.mem.rss", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, PAGE, TIER_TICK},
	{"proc.mem.shared", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, PAGE, TIER_TICK},
	{"proc.io.read_chars", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"proc.io.write_chars", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"proc.io.read_calls", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.io.write_calls", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.io.read_bytes", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"proc.io.write_bytes", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"proc.sched.wait", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"proc.fds", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"proc.mem.hwm", MAKER_PROCESS, KIND_PEAK, FOLD_MAX, UNIT_BYTES, 1024, TIER_MEDIUM},
	{"proc.mem.swap", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_MEDIUM},
	{"proc.switches.voluntary", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_MEDIUM},
	{"proc.switches.involuntary", MAKER_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_MEDIUM},
	{"proc.signals.ignored", MAKER_PROCESS, KIND_GAUGE, FOLD_NONE, UNIT_CODE, 1, TIER_MEDIUM},
	{"proc.smaps.rss", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"proc.smaps.doubt", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"proc.mem.pss", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"proc.mem.private_clean", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"proc.mem.private_dirty", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"proc.mem.private_huge", MAKER_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_SLOW},
	{"tree.processes", MAKER_TREE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.joined", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.unsampled", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.unknown", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.user", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"tree.gone.system", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"tree.gone.minor_faults", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.major_faults", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.voluntary", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.involuntary", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.read_chars", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"tree.gone.write_chars", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"tree.gone.read_calls", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.write_calls", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.gone.read_bytes", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"tree.gone.write_bytes", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"tree.gone.max_rss", MAKER_TREE, KIND_PEAK, FOLD_MAX, UNIT_BYTES, 1024, TIER_TICK},
	{"tree.dropped", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"tree.outside", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"tree.cgroup.user", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"tree.cgroup.system", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"tree.cgroup.cpu", MAKER_TREE, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"tree.cgroup.memory_peak", MAKER_TREE, KIND_PEAK, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"self.cpu", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"self.rss", MAKER_SELF, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1024, TIER_TICK},
	{"self.ticks.missed", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"self.smaps.deferred", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"self.events_lost", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"load.running", MAKER_SELF, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"pressure.cpu.some", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"pressure.io.some", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"pressure.memory.some", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"throttle.package_time", MAKER_SELF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-3, TIER_MEDIUM},
	{"cpu.user", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.nice", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.system", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.idle", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.iowait", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.irq", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"cpu.softirq", MAKER_CPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, CLOCK, TIER_TICK},
	{"freq.current", MAKER_CPU, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, 1e3, TIER_MEDIUM},
	{"group.processes", MAKER_GROUP, KIND_GAUGE, FOLD_NONE, UNIT_COUNT, 1, TIER_TICK},
	{"group.unsampled", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, 1, TIER_TICK},
	{"group.gone.user", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"group.gone.system", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"group.gone.minor_faults", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, 1, TIER_TICK},
	{"group.gone.major_faults", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, 1, TIER_TICK},
	{"group.gone.read_chars", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_BYTES, 1, TIER_TICK},
	{"group.gone.write_chars", MAKER_GROUP, KIND_COUNTER, FOLD_NONE, UNIT_BYTES, 1, TIER_TICK},
	{"group.gone.max_rss", MAKER_GROUP, KIND_PEAK, FOLD_NONE, UNIT_BYTES, 1024, TIER_TICK},
	{"net.rx.bytes", MAKER_NET, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"net.tx.bytes", MAKER_NET, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"net.rx.packets", MAKER_NET, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"net.tx.packets", MAKER_NET, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"ib.rx.bytes", MAKER_IB, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"ib.tx.bytes", MAKER_IB, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"ib.rx.packets", MAKER_IB, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"ib.tx.packets", MAKER_IB, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"disk.read.bytes", MAKER_DISK, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 512, TIER_TICK},
	{"disk.write.bytes", MAKER_DISK, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 512, TIER_TICK},
	{"energy.used", MAKER_ENERGY, KIND_COUNTER, FOLD_SUM, UNIT_JOULES, 1e-6, TIER_TICK},
	{"energy.power", MAKER_ENERGY, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, 1e-6, TIER_MEDIUM},
	{"cgroup.memory.current", MAKER_CGROUP, KIND_GAUGE, FOLD_NONE, UNIT_BYTES, 1, TIER_TICK},
	{"cgroup.memory.peak", MAKER_CGROUP, KIND_PEAK, FOLD_NONE, UNIT_BYTES, 1, TIER_TICK},
	{"cgroup.memory.oom_kill", MAKER_CGROUP, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, 1, TIER_TICK},
	{"cgroup.cpu.throttled", MAKER_CGROUP, KIND_COUNTER, FOLD_NONE, UNIT_SECONDS, 1e-6, TIER_TICK},
	{"cgroup.pressure.cpu.some", MAKER_CGROUP, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"cgroup.pressure.io.some", MAKER_CGROUP, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"cgroup.pressure.memory.some", MAKER_CGROUP, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-6, TIER_MEDIUM},
	{"limit.cpus", MAKER_LIMITS, KIND_CONSTANT, FOLD_SUM, UNIT_COUNT, 1e-3, TIER_TICK},
	{"limit.memory", MAKER_LIMITS, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"gpu.util", MAKER_GPU, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, 0.01, TIER_TICK},
	{"gpu.mem_util", MAKER_GPU, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, 0.01, TIER_TICK},
	{"gpu.memory.used", MAKER_GPU, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"gpu.memory.total", MAKER_GPU, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, 1, TIER_MEDIUM},
	{"gpu.clock.sm", MAKER_GPU, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, 1e6, TIER_TICK},
	{"gpu.clock.graphics", MAKER_GPU, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, 1e6, TIER_TICK},
	{"gpu.temperature", MAKER_GPU, KIND_GAUGE, FOLD_MAX, UNIT_CELSIUS, 1e-3, TIER_TICK},
	{"gpu.power", MAKER_GPU, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, 1e-3, TIER_TICK},
	{"gpu.power_limit", MAKER_GPU, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, 1e-3, TIER_MEDIUM},
	{"gpu.energy", MAKER_GPU, KIND_COUNTER, FOLD_SUM, UNIT_JOULES, 1e-3, TIER_TICK},
	{"gpu.throttle.power", MAKER_GPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"gpu.throttle.thermal", MAKER_GPU, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"gpu.ecc.corrected", MAKER_GPU, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"gpu.ecc.uncorrected", MAKER_GPU, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK},
	{"gpu_process.memory", MAKER_GPU_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"gpu_process.util", MAKER_GPU_PROCESS, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, 0.01, TIER_TICK},
	{"gpu_process.busy", MAKER_GPU_PROCESS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"perf.enabled", MAKER_PERF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
#define EVENT(name) {"perf." name, MAKER_PERF, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, 1, TIER_TICK}, \
	{"perf." name ".running", MAKER_PERF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK}
	EVENT("cycles"),
	EVENT("instructions"),
	EVENT("cache_references"),
	EVENT("cache_misses"),
	EVENT("fp_scalar"),
	EVENT("fp_packed"),
#undef EVENT
	{"perf.task_clock", MAKER_PERF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"perf.task_clock.running", MAKER_PERF, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, 1e-9, TIER_TICK},
	{"membw.read", MAKER_SOCKET, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"membw.write", MAKER_SOCKET, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
	{"membw.both", MAKER_SOCKET, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, 1, TIER_TICK},
};
/* clang-format on */

static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

static void make_schema(struct maker *m, const struct maker_options *o)
{
	static const char *const name[MAKER_SETS][2] = {{"process", "process"}, {"tree", "tree"},
		{"self", "node"}, {"cpu", "cpu"}, {"group", "group"}, {"net", "net"}, {"ib", "ib"},
		{"disk", "disk"}, {"energy", "energy"}, {"cgroup", "cgroup"}, {"limits", "node"},
		{"gpu", "gpu"}, {"gpu_process", "gpu_process"}, {"perf", "perf"}, {"membw", "socket"}};

	m->schema = schema_new();
	for (unsigned set = 0; set < MAKER_SETS; set++) {
		struct schema_set *s = schema_add_set(m->schema, name[set][0], "of the tests", name[set][1]);

		for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
			struct schema_metric *metric;

			if (row[i].set != set || listed(o->without, row[i].name))
				continue;
			metric = schema_add_metric(s, row[i].name, "A metric.", NULL);
			metric->kind = row[i].kind;
			metric->fold = row[i].fold;
			metric->unit = row[i].unit;
			metric->scale = row[i].scale;
			metric->tier = row[i].tier;
			if (listed(o->forbidden, row[i].name))
				schema_metric_why(metric, FORBIDDEN, "needs the right to look");
		}
	}
	for (unsigned set = 0; set < MAKER_SETS; set++) {
		assert_int_equal(table_init(&m->table[set], m->schema->set[set].nr_metrics,
					 set == MAKER_PROCESS ? MAKER_ROWS : 128),
			0);
		m->tables[set] = &m->table[set];
	}
}

static void single(struct maker *m, unsigned set, uint32_t at, const char *name)
{
	table_bind(&m->table[set], at, at + 1);
	pairs_reset(&m->pairs);
	pairs_str(&m->pairs, "name", name);
	store_instance(m->w, set, at, at + 1, 0, &m->pairs);
}

void maker_open_with(
	struct maker *m, const char *path, const struct maker_options *o, void (*change)(struct maker *m))
{
	static const struct maker_options plain;

	o = o ? o : &plain;
	memset(m, 0, sizeof(*m));
	snprintf(m->path, sizeof(m->path), "%s", path);
	pairs_init(&m->pairs, m->memory, ARRAY_SIZE(m->memory), m->text, sizeof(m->text));
	make_schema(m, o);
	if (change)
		change(m);
	assert_int_equal(store_create(path, true, &m->w), 0);
	pairs_str(&m->pairs, "mode", o->mode ? o->mode : "run");
	pairs_str(&m->pairs, "host", o->host ? o->host : "here");
	pairs_add(&m->pairs, "command", o->command ? o->command : "job\0-x", o->command ? o->command_len : 6);
	pairs_str(&m->pairs, "helpers", o->helpers ? o->helpers : "none");
	pairs_num(&m->pairs, "interval_ns", o->interval_ns ? o->interval_ns : SECOND);
	pairs_num(&m->pairs, "nr_cpus", o->nr_cpus ? o->nr_cpus : 8);
	pairs_num(&m->pairs, "start_wall_ns",
		o->start_wall_ns ? o->start_wall_ns : INT64_C(1700000000) * SECOND);
	for (const char *const *at = o->meta; at && *at; at += 2)
		pairs_str(&m->pairs, at[0], at[1]);
	if (o->groups)
		pairs_add(&m->pairs, "groups", o->groups, o->groups_len);
	assert_int_equal(store_meta(m->w, &m->pairs), 0);
	assert_int_equal(store_schema(m->w, m->schema), 0);
	single(m, MAKER_TREE, 0, "job");
	single(m, MAKER_SELF, 0, "tacho");
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].set == MAKER_TREE && strncmp(row[i].name, "tree.cgroup", 11) &&
			!listed(o->without, row[i].name))
			maker_set(m, 0, row[i].name, 0);
}

void maker_open(struct maker *m, const char *path, const struct maker_options *o)
{
	maker_open_with(m, path, o, NULL);
}

static void join(struct maker *m, uint32_t at, uint32_t id, int64_t time_ns)
{
	if (at != STORE_NO_ROW && m->table[MAKER_PROCESS].id[at] != id)
		table_bind(&m->table[MAKER_PROCESS], at, id);
	store_instance(m->w, MAKER_PROCESS, at, id, time_ns, &m->pairs);
}

int64_t maker_user = -1, maker_execs;

void maker_join(
	struct maker *m, uint32_t at, uint32_t id, int64_t pid, int64_t ppid, int64_t time_ns, bool late)
{
	maker_join_in(m, at, id, pid, ppid, time_ns, late, NULL, 0);
}

void maker_join_in(struct maker *m, uint32_t at, uint32_t id, int64_t pid, int64_t ppid, int64_t time_ns,
	bool late, const char *groups, size_t groups_len)
{
	pairs_reset(&m->pairs);
	pairs_num(&m->pairs, "pid", pid);
	pairs_num(&m->pairs, "ppid", ppid);
	pairs_num(&m->pairs, "start_ns", time_ns);
	if (late)
		pairs_num(&m->pairs, "late", 1);
	if (maker_user >= 0)
		pairs_num(&m->pairs, "uid", maker_user);
	if (maker_execs)
		pairs_num(&m->pairs, "execs", maker_execs);
	pairs_str(&m->pairs, "name", "worker");
	pairs_add(&m->pairs, "cmdline", "worker\0-v\0", 10);
	if (groups)
		pairs_add(&m->pairs, "groups", groups, groups_len);
	join(m, at, id, time_ns);
}

void maker_instance(struct maker *m, unsigned set, uint32_t at, uint32_t generation, const char *name, ...)
{
	uint32_t id = at + 1 + generation * 1000;
	va_list ap;

	table_bind(&m->table[set], at, id);
	pairs_reset(&m->pairs);
	pairs_str(&m->pairs, "name", name);
	va_start(ap, name);
	for (const char *key; (key = va_arg(ap, const char *));)
		pairs_str(&m->pairs, key, va_arg(ap, const char *));
	va_end(ap);
	store_instance(m->w, set, at, id, 0, &m->pairs);
}

void maker_leave(struct maker *m, unsigned set, uint32_t at, int64_t time_ns)
{
	pairs_reset(&m->pairs);
	store_gone(m->w, set, at, m->table[set].id[at], time_ns, &m->pairs);
	table_unbind(&m->table[set], at);
}

void maker_group(struct maker *m, uint32_t at, const char *name, const char *kind, bool own)
{
	if (own)
		maker_instance(
			m, MAKER_GROUP, at, 0, name, "kind", kind, "target", "of the test", "own", "1", NULL);
	else
		maker_instance(m, MAKER_GROUP, at, 0, name, "kind", kind, "target", "of the test", NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].set == MAKER_GROUP)
			maker_set(m, at, row[i].name, 0);
}

void maker_join_as(struct maker *m, uint32_t at, uint32_t id, int64_t pid, const void *name, size_t name_len,
	const void *cmdline, size_t cmdline_len)
{
	pairs_reset(&m->pairs);
	pairs_num(&m->pairs, "pid", pid);
	pairs_num(&m->pairs, "start_ns", 0);
	pairs_add(&m->pairs, "name", name, name_len);
	pairs_add(&m->pairs, "cmdline", cmdline, cmdline_len);
	join(m, at, id, 0);
}

static void add_numbers(struct maker *m, va_list ap)
{
	for (const char *key; (key = va_arg(ap, const char *));)
		pairs_num(&m->pairs, key, va_arg(ap, int64_t));
}

const char *maker_foreign;

void maker_gone_with(struct maker *m, uint32_t at, uint32_t id, int64_t time_ns, const char *how, ...)
{
	va_list ap;

	pairs_reset(&m->pairs);
	pairs_str(&m->pairs, "how", how);
	if (maker_foreign)
		pairs_str(&m->pairs, "foreign", maker_foreign);
	va_start(ap, how);
	add_numbers(m, ap);
	va_end(ap);
	store_gone(m->w, MAKER_PROCESS, at, id, time_ns, &m->pairs);
	if (at != STORE_NO_ROW)
		table_unbind(&m->table[MAKER_PROCESS], at);
}

void maker_gone(struct maker *m, uint32_t at, uint32_t id, int64_t time_ns, const char *how)
{
	maker_gone_with(m, at, id, time_ns, how, "sampled", (int64_t)(at != STORE_NO_ROW), NULL);
}

static struct table *find(struct maker *m, const char *metric, uint32_t *ret_col)
{
	uint32_t set;

	assert_true(schema_find(m->schema, metric, &set, ret_col));
	return &m->table[set];
}

void maker_set(struct maker *m, uint32_t at, const char *metric, int64_t value)
{
	uint32_t col;
	struct table *t = find(m, metric, &col);

	if (t == &m->table[MAKER_CPU] && t->id[at] == ROW_FREE) {
		char name[16];

		snprintf(name, sizeof(name), at ? "cpu%u" : "total", at - 1);
		single(m, MAKER_CPU, at, name);
	}
	table_touch(t, at);
	table_set(t, at, col, value);
}

void maker_set_event(struct maker *m, const char *name, int64_t count, int64_t running_ns)
{
	char metric[80];

	snprintf(metric, sizeof(metric), "perf.%s", name);
	maker_set(m, 0, metric, count);
	snprintf(metric, sizeof(metric), "perf.%s.running", name);
	maker_set(m, 0, metric, running_ns);
}

void maker_unset(struct maker *m, uint32_t at, const char *metric)
{
	uint32_t col;
	struct table *t = find(m, metric, &col);

	table_touch(t, at);
	table_unset(t, at, col);
}

void set_memory(struct maker *m, uint32_t at, int64_t rss, int64_t shared)
{
	maker_set(m, at, "proc.mem.rss", rss);
	maker_set(m, at, "proc.mem.shared", shared);
}

void set_smaps(struct maker *m, uint32_t at, int64_t rss, int64_t pss, int64_t clean, int64_t dirty)
{
	maker_set(m, at, "proc.smaps.rss", rss);
	maker_set(m, at, "proc.mem.pss", pss);
	maker_set(m, at, "proc.mem.private_clean", clean);
	maker_set(m, at, "proc.mem.private_dirty", dirty);
}

void maker_event(struct maker *m, int64_t time_ns, const char *kind, const char *key, const char *value)
{
	pairs_reset(&m->pairs);
	if (key)
		pairs_str(&m->pairs, key, value);
	store_event(m->w, time_ns, kind, &m->pairs);
}

void maker_meta(struct maker *m, const char *key, const void *value, size_t len)
{
	pairs_reset(&m->pairs);
	pairs_add(&m->pairs, key, value, len);
	assert_int_equal(store_meta(m->w, &m->pairs), 0);
}

void maker_tick(struct maker *m, int64_t time_ns)
{
	maker_tick_at(m, time_ns, 0);
}

void maker_tick_at(struct maker *m, int64_t time_ns, unsigned at)
{
	store_tick(m->w, m->tick++, time_ns, at, m->tables);
	for (unsigned i = 0; i < MAKER_SETS; i++)
		table_settle(&m->table[i]);
}

static void release(struct maker *m)
{
	for (unsigned i = 0; i < MAKER_SETS; i++)
		table_release(&m->table[i]);
	m->schema = schema_free(m->schema);
}

void maker_finish(struct maker *m, ...)
{
	va_list ap;

	pairs_reset(&m->pairs);
	va_start(ap, m);
	add_numbers(m, ap);
	va_end(ap);
	assert_int_equal(store_flush(m->w), 0);
	assert_int_equal(store_finish(m->w, &m->pairs), 0);
	release(m);
}

void maker_abandon(struct maker *m)
{
	assert_int_equal(store_flush(m->w), 0);
	m->w = store_abandon(m->w);
	release(m);
}

/* ---- around them ---- */

char dir[64], file[96];

const char *file_in(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%.60s/%.60s", dir, name);
	return path;
}

int maker_setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_query.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/a.tacho", dir);
	return 0;
}

int maker_teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

const char *json_of(const struct summary *s, struct buf *out)
{
	buf_reset(out);
	summary_json(s, out);
	return (char *)out->data;
}

const char *words_of(const struct summary *s, unsigned width, bool utf8, struct buf *out)
{
	struct summary_style style = {.width = width, .utf8 = utf8};

	buf_reset(out);
	assert_int_equal(summary_print(s, &style, out), 0);
	return (char *)out->data;
}

struct summary *summary_of_paths(const char *const *path, size_t nr)
{
	struct summary *s = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 1000);
	assert_int_equal(run_open(path, nr, &run, &err), 0);
	assert_int_equal(summary_read(run, &s, &err), 0);
	run_close(run);
	buf_release(&err);
	return s;
}

struct summary *summary_of(const char *path)
{
	return summary_of_paths(&path, 1);
}

double value(const struct summary *s, enum figure_id id)
{
	if (s->figure[id].why)
		fail_msg("%s has no value: %s", summary_row[id].name, s->figure[id].why);
	return s->figure[id].value;
}

bool has_note(const struct summary *s, const char *words)
{
	for (size_t i = 0; i < s->nr_notes; i++)
		if (strstr(s->note[i], words))
			return true;
	return false;
}

struct process_table *table_of(const char *path)
{
	struct process_table *t = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 1000);
	assert_int_equal(run_open(&path, 1, &run, &err), 0);
	assert_int_equal(process_table_read(run, &t, &err), 0);
	run_close(run);
	buf_release(&err);
	return t;
}

struct series *series_of(const char *metric, const struct series_query *like)
{
	struct series_query q = like ? *like : (struct series_query){0};
	struct series *s = NULL;
	struct buf err;

	buf_init(&err, 1000);
	q.metric = &metric;
	q.nr = 1;
	if (series_open(file, &q, &s, &err) < 0)
		fail_msg("%s", (char *)err.data);
	buf_release(&err);
	return s;
}

void expect_series(const char *metric, const struct series_query *like, const double *expected, size_t nr)
{
	struct series *s = series_of(metric, like);
	struct series_point point;

	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(series_next(s, &point), 1);
		if (isnan(expected[i]) ? !isnan(point.value[0])
				       : !(fabs(point.value[0] - expected[i]) < 1e-9))
			fail_msg("%s at %zu is %g, not %g", metric, i, point.value[0], expected[i]);
	}
	assert_int_equal(series_next(s, &point), 0);
	series_close(s);
}

void damage(const char *path, double where)
{
	FILE *f = fopen(path, "r+");
	long size;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	fseek(f, (long)((double)size * where), SEEK_SET);
	fwrite("################", 1, 16, f);
	fclose(f);
}

void make_long(const char *path, int64_t ticks)
{
	struct maker m;

	maker_open(&m, path, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < ticks; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * MILLI);
		maker_set(&m, 0, "proc.mem.rss", 100 + i % 7);
		maker_tick(&m, i * SECOND);
		if (i % 100 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
}

void make_one_in_between(const char *path)
{
	struct maker m;

	maker_open(&m, path, NULL);
	maker_tick(&m, 0);
	maker_join(&m, 0, 1, 100, 1, SECOND / 2, false);
	maker_set(&m, 0, "proc.mem.rss", 10);
	maker_tick(&m, SECOND);
	maker_gone(&m, 0, 1, 2 * SECOND, "reaped");
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
}
