/* cpu_metrics.json, perf_metrics.json, nv_gpu_metrics.json and meta_data.json, as SKA's perfmon writes them:
 * under the name of each host a list of values for each metric, and its time stamps. The table below has all
 * names and units of both sides.
 *
 * Its lists are of the whole node or of the whole job, while the tables that formats get have instances, and
 * what of them may be added up (a bridge and what is bridged may not) is known to tables alone. So these
 * metrics are taken folded as well. Which events of the processor are shown is known from the summary, at the
 * end: until then all of them are kept. */
#include "export/perfmon.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/summary.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define KILO (1.0 / 1000)
#define MEGA 1e-6
#define RAPL "package- core- uncore- dram-"
#define GPU "nvidia-"

/* clang-format off */
static const struct perfmon_list perfmon_list[] = {
	{PERFMON_CPU, NULL, "cpu_time",                    "tree",    "tree.cpu",            NULL, NULL, 1,    PERFMON_LEVEL, NULL},
	{PERFMON_CPU, NULL, "cpu_percent",                 "tree",    "tree.cores",          NULL, NULL, 100,  PERFMON_LEVEL, NULL},
	{PERFMON_CPU, NULL, "cpu_percent_sys",             "cpu",     "cpu.busy",            NULL, NULL, 100,  PERFMON_LEVEL, NULL},
	{PERFMON_CPU, NULL, "memory_percent",              "tree",    "tree.rss.of_node",    NULL, NULL, 100,  PERFMON_LEVEL, NULL},
	{PERFMON_CPU, NULL, "memory_bw",                   "socket",  "membw.read_rate",     NULL, NULL, 1,    PERFMON_LEVEL, NULL},
	{PERFMON_CPU, NULL, "num_threads",                 "process", "proc.threads",        NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, NULL, "num_fds",                     "process", "proc.fds",            NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "memory_info", "rss",                "process", "proc.mem.rss",        NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "memory_info", "vms",                "process", "proc.mem.vms",        NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "memory_info", "shared",             "process", "proc.mem.shared",     NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "memory_full_info", "uss",           "process", "proc.mem.uss_now",    NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "memory_full_info", "swap",          "process", "proc.mem.swap",       NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "io_counters", "read_count",         "process", "proc.io.read_calls",  "tree", "tree.gone.read_calls",  1, PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "io_counters", "write_count",        "process", "proc.io.write_calls", "tree", "tree.gone.write_calls", 1, PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "io_counters", "read_bytes",         "process", "proc.io.read_bytes",  "tree", "tree.gone.read_bytes",  1, PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "io_counters", "write_bytes",        "process", "proc.io.write_bytes", "tree", "tree.gone.write_bytes", 1, PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "net_io_counters", "bytes_sent",     "net",     "net.tx.bytes",        NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "net_io_counters", "bytes_recv",     "net",     "net.rx.bytes",        NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "net_io_counters", "packets_sent",   "net",     "net.tx.packets",      NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "net_io_counters", "packets_recv",   "net",     "net.rx.packets",      NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "ib_io_counters", "port_xmit_data",    "ib",    "ib.tx.bytes",         NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "ib_io_counters", "port_xmit_packets", "ib",    "ib.tx.packets",       NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "ib_io_counters", "port_rcv_data",     "ib",    "ib.rx.bytes",         NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "ib_io_counters", "port_rcv_packets",  "ib",    "ib.rx.packets",       NULL, NULL, 1,    PERFMON_WHOLE, NULL},
	{PERFMON_CPU, "rapl_powercap", NULL,               "energy",  "energy.used",         NULL, NULL, 1e6,  PERFMON_WHOLE, RAPL},

	{PERFMON_PERF, "hardware_events", "cycles",           "perf", "perf.cycles",           NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "hardware_events", "instructions",     "perf", "perf.instructions",     NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "hardware_events", "cache-misses",     "perf", "perf.cache_misses",     NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "hardware_events", "cache-references", "perf", "perf.cache_references", NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "hardware_events", "branches",         "perf", "perf.branches",         NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "hardware_events", "branch-misses",    "perf", "perf.branch_misses",    NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "software_events", "context-switches", "perf", "perf.context_switches", NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "software_events", "cpu-migrations",   "perf", "perf.migrations",       NULL, NULL, 1, PERFMON_GROWTH, NULL},
	{PERFMON_PERF, "L2",       "derv_l2_bandwidth",      "tree", "perf.l2_bandwidth",      NULL, NULL, MEGA, PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "L2",       "derv_l2_load_bandwidth", "tree", "perf.l2_load_bandwidth", NULL, NULL, MEGA, PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "L2cache",  "derv_l2_miss_ratio",     "tree", "perf.l2_miss_ratio",     NULL, NULL, 1,    PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "L3",       "derv_l3_bandwidth",      "tree", "perf.l3_bandwidth",      NULL, NULL, MEGA, PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "L3",       "derv_l3_load_bandwidth", "tree", "perf.l3_load_bandwidth", NULL, NULL, MEGA, PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "FLOPS_SP", "derv_flops_sp",          "tree", "perf.flops_sp",          NULL, NULL, MEGA, PERFMON_LEVEL, NULL},
	{PERFMON_PERF, "FLOPS_DP", "derv_flops_dp",          "tree", "perf.flops_dp",          NULL, NULL, MEGA, PERFMON_LEVEL, NULL},

	{PERFMON_GPU, "clock_info", "graphics",      "gpu", "gpu.clock.graphics",  NULL, NULL, MEGA, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "clock_info", "sm",            "gpu", "gpu.clock.sm",        NULL, NULL, MEGA, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "clock_info", "memory",        "gpu", "gpu.clock.memory",    NULL, NULL, MEGA, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "ecc_errors", "sp",            "gpu", "gpu.ecc.corrected",   NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "ecc_errors", "dp",            "gpu", "gpu.ecc.uncorrected", NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "memory_used", "gpu_memory",   "gpu", "gpu.memory.used",     NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "memory_used", "bar1_memory",  "gpu", "gpu.bar1.used",       NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "utilization_rates", "gpu",    "gpu", "gpu.util",            NULL, NULL, 100,  PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "utilization_rates", "memory", "gpu", "gpu.mem_util",        NULL, NULL, 100,  PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "encoder_util",          "gpu", "gpu.encoder",         NULL, NULL, 100,  PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "decoder_util",          "gpu", "gpu.decoder",         NULL, NULL, 100,  PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "temperature",           "gpu", "gpu.temperature",     NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "fan_speed",             "gpu", "gpu.fan",             NULL, NULL, 100,  PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "num_procs",             "gpu", "gpu.processes",       NULL, NULL, 1,    PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "power_usage",           "gpu", "gpu.power",           NULL, NULL, 1000, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, NULL, "violation",             "gpu", "gpu.throttle.power",  "gpu", "gpu.throttle.thermal", 1e9, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "pci_thgpt", "send",           "gpu", "gpu.pcie.tx",         NULL, NULL, KILO, PERFMON_WHOLE, GPU},
	{PERFMON_GPU, "pci_thgpt", "recv",           "gpu", "gpu.pcie.rx",         NULL, NULL, KILO, PERFMON_WHOLE, GPU},
};
/* clang-format on */

static const char *const perf_groups[] = {
	"hardware_events", "software_events", "L2", "L2cache", "L3", "L3cache", "FLOPS_SP", "FLOPS_DP", NULL};

/* ---- the events of a group ---- */

/* In any group: the reader makes a column of each name, so none may occur twice. */
static bool has_event(const struct perfmon *p, const char *name)
{
	for (size_t i = 0; i < p->nr_lists; i++)
		if (p->list[i].file == PERFMON_PERF && !strcmp(p->list[i].name, name))
			return true;
	return false;
}

/* All events that there are, in no file yet. */
static int add_candidates(struct perfmon *p, const struct data_table *table)
{
	int r = 0;

	for (size_t i = 0; i < table->nr_fields && r >= 0; i++) {
		const char *name = table->field[i].name;

		if (!table->field[i].is_metric || table->field[i].per_second || !str_starts(name, "perf."))
			continue;
		r = ARRAY_RESIZE(p->list, p->nr_lists + 1);
		if (r >= 0)
			p->list[p->nr_lists++] = (struct perfmon_list){.file = PERFMON_NONE,
				.name = name + strlen("perf."),
				.table = "perf",
				.field = name,
				.factor = 1,
				.look = PERFMON_GROWTH};
	}
	return r;
}

static void columns_move(struct perfmon *p, size_t from, size_t to)
{
	for (size_t i = 0; i < p->nr_origins; i++)
		for (size_t k = 0; k < p->origin[i].nr_columns; k++)
			if (p->origin[i].column[k].list == from)
				p->origin[i].column[k].list = to;
}

/* Its list goes behind the others: they stand in the order of the formulas. */
static int add_event(struct perfmon *p, const char *group, const char *name, size_t len)
{
	size_t i = 0;

	while (i < p->nr_lists &&
		!(p->list[i].file == PERFMON_NONE && strlen(p->list[i].field) == len &&
			!memcmp(p->list[i].field, name, len)))
		i++;
	if (i == p->nr_lists || has_event(p, p->list[i].name))
		return 0;
	if (ARRAY_RESIZE(p->list, p->nr_lists + 1) < 0)
		return -ENOMEM;
	p->list[p->nr_lists] = p->list[i];
	p->list[p->nr_lists].file = PERFMON_PERF;
	p->list[p->nr_lists].group = group;
	columns_move(p, i, p->nr_lists++);
	return 0;
}

/* What a group is made of differs with every processor: its formula in the recording names it. */
static int add_events(struct perfmon *p, const struct perfmon_list *l, const struct summary *s)
{
	int r = 0;

	for (size_t i = 0; i < s->nr_counters && r >= 0; i++) {
		const struct summary_counter *c = &s->counter[i];

		if (!c->expression || !str_starts(l->field, "perf.") ||
			strcmp(c->name, l->field + strlen("perf.")) != 0)
			continue;
		for (const char *at = strstr(c->expression, "perf."); at && r >= 0;
			at = strstr(at, "perf.")) {
			size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_.");

			r = add_event(p, l->group, at, len);
			at += len;
		}
	}
	for (size_t i = 0; i < s->nr_nodes && r >= 0; i++)
		r = add_events(p, l, &s->node[i]);
	return r;
}

static int add_groups(struct perfmon *p, const struct summary *s)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(perfmon_list) && r >= 0; i++)
		if (perfmon_list[i].file == PERFMON_PERF && perfmon_list[i].look == PERFMON_LEVEL)
			r = add_events(p, &perfmon_list[i], s);
	return r;
}

/* ---- what is folded ---- */

static bool is_exported(const struct perfmon *p, const char *table, const char *field)
{
	for (size_t i = 0; i < p->job->nr_tables; i++)
		if (!strcmp(p->job->table[i].name, table))
			return legacy_csv_field(&p->job->table[i], field) != NO_FIELD;
	return false;
}

bool perfmon_is_exported(const struct perfmon *p, const struct perfmon_list *l)
{
	return is_exported(p, l->table, l->field) && (!l->table2 || is_exported(p, l->table2, l->field2));
}

static size_t perfmon_folds(const struct tables_options *chosen, struct table_fold *ret)
{
	size_t nr = 0;

	(void)chosen;
	static_assert(2 * ARRAY_SIZE(perfmon_list) + 1 <= EXPORT_FOLDS_MOST, "folds");
	for (size_t i = 0; i < ARRAY_SIZE(perfmon_list); i++) {
		const struct perfmon_list *l = &perfmon_list[i];

		if (l->instances)
			continue;
		ret[nr++] = (struct table_fold){l->table, l->field};
		if (l->table2)
			ret[nr++] = (struct table_fold){l->table2, l->field2};
	}
	ret[nr++] = (struct table_fold){"perf", "perf"};
	return nr;
}

static int bind_folded(struct perfmon *p)
{
	int r = 0;

	for (size_t i = 0; i < p->job->nr_folded && r >= 0; i++)
		if (!strcmp(p->job->folded[i].name, "perf"))
			r = add_candidates(p, &p->job->folded[i]);
	return r < 0 ? r : perfmon_bind(p, false);
}

/* ---- the format ---- */

static void perfmon_drop(void *e)
{
	struct perfmon *p = e;

	perfmon_host_series_release(p);
	perfmon_hosts_release(p);
	spool_file_release(&p->file);
	free(p->list);
	buf_release(&p->text);
	free(p);
}

static int check_tables(const struct perfmon *p, struct buf *reterr)
{
	for (size_t i = 0; i < ARRAY_SIZE(perfmon_list); i++)
		if (perfmon_is_exported(p, &perfmon_list[i]))
			return 0;
	buf_adds(reterr, "it is made of tables that are not there, or not chosen:");
	for (size_t i = 0; i < ARRAY_SIZE(perfmon_list); i++) {
		size_t before = 0;

		while (before < i && strcmp(perfmon_list[before].table, perfmon_list[i].table) != 0)
			before++;
		if (before == i)
			buf_addf(reterr, "%s %s", i ? "," : "", perfmon_list[i].table);
	}
	return -ENODATA;
}

/* Processes are the exception: a host without any uses 0, and that is known. */
static int add_witnesses(struct perfmon *p)
{
	int r = 0;

	for (size_t i = 0; i < p->job->nr_tables && r >= 0; i++) {
		size_t list = 0;

		while (list < p->nr_lists &&
			(p->list[list].instances || strcmp(p->list[list].table, p->job->table[i].name) != 0))
			list++;
		if (list < p->nr_lists && legacy_csv_field(&p->job->table[i], "pid") == NO_FIELD)
			r = perfmon_witness(p, i);
	}
	return r;
}

static int perfmon_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct perfmon *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->job = job;
	p->interval = NAN;
	spool_file_init(&p->file, job->path);
	buf_init(&p->text, SIZE_MAX / 2);
	p->list = malloc(sizeof(perfmon_list));
	r = p->list ? check_tables(p, reterr) : -ENOMEM;
	if (r >= 0) {
		memcpy(p->list, perfmon_list, sizeof(perfmon_list));
		p->nr_lists = ARRAY_SIZE(perfmon_list);
		r = add_witnesses(p);
	}
	if (r >= 0)
		r = perfmon_bind(p, true);
	if (r >= 0)
		r = bind_folded(p);
	if (r < 0)
		perfmon_drop(p);
	else
		*ret = p;
	return r;
}

static int perfmon_add(void *e, const struct data_table_batch *b)
{
	struct perfmon *p = e;
	const struct export_job *job = p->job;
	size_t at = b->table - job->first_table;
	int r = perfmon_see(p, b);

	for (size_t i = 0; i < p->nr_origins && r >= 0; i++)
		if (p->origin[i].at == at)
			r = perfmon_take(p, &p->origin[i], b);
	if (r >= 0 && at < job->nr_tables && !strcmp(job->table[at].name, "processes"))
		r = perfmon_processes(p, &job->table[at], b);
	return r;
}

static int take_summary(struct perfmon *p)
{
	const struct summary *s = p->job->summary;
	const struct tables_options *o = p->job->options;
	const struct figure *interval = &(s->nr_nodes ? s->node : s)->figure[FIG_INTERVAL];
	int r;

	p->interval = o && o->every_ns ? (double)o->every_ns / 1e9 : interval->why ? NAN : interval->value;
	perfmon_drop_unseen(p);
	r = add_groups(p, s);
	return r < 0 ? r : perfmon_metadata(p, s);
}

static int perfmon_close(void *e)
{
	struct perfmon *p = e;
	int r = p->job->run && p->job->summary ? take_summary(p) : 0;

	if (r >= 0)
		r = perfmon_name_hosts(p);
	if (r >= 0)
		r = perfmon_write(p, PERFMON_CPU, "cpu_metrics.json", NULL, true);
	if (r >= 0)
		r = perfmon_write(p, PERFMON_PERF, "perf_metrics.json", perf_groups, true);
	if (r >= 0)
		r = perfmon_write_events(p, perf_groups);
	if (r >= 0)
		r = perfmon_write(p, PERFMON_GPU, "nv_gpu_metrics.json", NULL, false);
	perfmon_drop(p);
	return r;
}

const struct exporter exporter_perfmon_json = {
	.name = "perfmon-json",
	.suffix = ".json",
	.help = "cpu_metrics.json, perf_metrics.json, nv_gpu_metrics.json, meta_data.json, as SKA's perfmon "
		"writes them",
	.shape = EXPORT_OWN_FILES,
	.wants_summary = true,
	.folds = perfmon_folds,
	.open = perfmon_open,
	.add = perfmon_add,
	.close = perfmon_close,
	.drop = perfmon_drop,
};
