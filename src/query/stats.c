/* Statistics: the summary's figures where it has them, so that no report contradicts `tacho show`; sums over
 * the table of processes; and what stats_walk.c found over time.
 *
 * Means and quantiles of memory, and quantiles of cores, are over the time in which there were processes. The
 * mean of cores is over the run, so that those of groups and users add up; of a process over its life.
 *
 * What a user's processes read and wrote is told only where he has the run for himself: the kernel adds the
 * bytes of a child to those of its parent, and adding up processes would count them twice. */
#include "query/stats.h"

#include "base/str.h"
#include "query/stats_gpus.h"
#include "query/stats_pass.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define EVERYWHERE  true,  true,  true
#define NO_PROCESS  false, true,  true
#define NODES_ONLY  false, false, true
#define NUMBER UNIT_COUNT, false
#define BYTES UNIT_BYTES, false
#define BYTE_RATE UNIT_BYTES, true
#define SECONDS UNIT_SECONDS, false
#define RATIO UNIT_RATIO, false

/* name, title, help, unit, per second, whole, moment, of processes, of groups, of nodes */
const struct stats_column stats_column[NR_STATS] = {
	[STAT_INSTANCES]      = {"instances",            "processes",        "Processes ever seen.", NUMBER, true, false, NO_PROCESS},
	[STAT_SAMPLES]        = {"samples",              "samples",          "Readings of its processes: ticks at which each was there.", NUMBER, true, false, EVERYWHERE},
	[STAT_DURATION]       = {"duration_s",           "duration",         "Time from its first moment to its last.", SECONDS, false, false, EVERYWHERE},
	[STAT_CPU]            = {"cpu_s",                "CPU time",         "CPU time, what ended processes used included.", SECONDS, false, false, EVERYWHERE},
	[STAT_USER]           = {"user_s",               "user",             "CPU time in programs.", SECONDS, false, false, EVERYWHERE},
	[STAT_SYSTEM]         = {"system_s",             "system",           "CPU time in the kernel.", SECONDS, false, false, EVERYWHERE},
	[STAT_CORES_MEAN]     = {"cores_mean",           "cores mean",       "CPU time by the duration of the run, of a process by its own.", NUMBER, false, false, EVERYWHERE},
	[STAT_CORES_P50]      = {"cores_p50",            "cores median",     "For half of the time no more cores were busy.", NUMBER, false, false, NO_PROCESS},
	[STAT_CORES_P95]      = {"cores_p95",            "cores 95%",        "For 95% of the time no more cores were busy.", NUMBER, false, false, NO_PROCESS},
	[STAT_CORES_PEAK]     = {"cores_peak",           "cores peak",       "The most cores busy at once, over the shortest time that tells.", NUMBER, false, false, EVERYWHERE},
	[STAT_CORES_PEAK_AT]  = {"cores_peak_at_s",      "cores peak at",    "When that was.", SECONDS, false, true, EVERYWHERE},
	[STAT_CORES_ONE_PEAK] = {"cores_one_peak",       "cores of one",     "The most cores that any one process kept busy.", NUMBER, false, false, NO_PROCESS},
	[STAT_MEMORY_PEAK]    = {"memory_peak_bytes",    "memory peak",      "How much memory it had, as far as known: PSS, without that RSS, or what one process had between two samples.", BYTES, true, false, NO_PROCESS},
	[STAT_RSS_MEAN]       = {"rss_mean_bytes",       "RSS mean",         "Resident memory, shared pages counted once per process, mean over time.", BYTES, true, false, EVERYWHERE},
	[STAT_RSS_P50]        = {"rss_p50_bytes",        "RSS median",       "For half of the time it was no more.", BYTES, true, false, NO_PROCESS},
	[STAT_RSS_P95]        = {"rss_p95_bytes",        "RSS 95%",          "For 95% of the time it was no more.", BYTES, true, false, NO_PROCESS},
	[STAT_RSS_PEAK]       = {"rss_peak_bytes",       "RSS peak",         "The most that all its processes had together at a sample; of one process the most that is known.", BYTES, true, false, EVERYWHERE},
	[STAT_RSS_PEAK_AT]    = {"rss_peak_at_s",        "RSS peak at",      "When that was.", SECONDS, false, true, EVERYWHERE},
	[STAT_RSS_ONE_PEAK]   = {"rss_one_peak_bytes",   "RSS of one",       "The most that any one process had.", BYTES, true, false, NO_PROCESS},
	[STAT_RSS_PEAKS_SUM]  = {"rss_peaks_sum_bytes",  "RSS peaks added",  "The sum of every process's own peak, which nobody had at once.", BYTES, true, false, NO_PROCESS},
	[STAT_PSS_MEAN]       = {"pss_mean_bytes",       "PSS mean",         "Fair share of memory, each page divided by its users, mean over time.", BYTES, true, false, EVERYWHERE},
	[STAT_PSS_P95]        = {"pss_p95_bytes",        "PSS 95%",          "For 95% of the time it was no more.", BYTES, true, false, NO_PROCESS},
	[STAT_PSS_PEAK]       = {"pss_peak_bytes",       "PSS peak",         "The most that all its processes had together at one instant.", BYTES, true, false, EVERYWHERE},
	[STAT_PSS_PEAK_AT]    = {"pss_peak_at_s",        "PSS peak at",      "When that was.", SECONDS, false, true, EVERYWHERE},
	[STAT_PSS_ONE_PEAK]   = {"pss_one_peak_bytes",   "PSS of one",       "The most that any one process had.", BYTES, true, false, NO_PROCESS},
	[STAT_PSS_PEAKS_SUM]  = {"pss_peaks_sum_bytes",  "PSS peaks added",  "The sum of every process's own peak, which nobody had at once.", BYTES, true, false, NO_PROCESS},
	[STAT_USS_MEAN]       = {"uss_mean_bytes",       "USS mean",         "Memory that nobody shares, mean over time.", BYTES, true, false, EVERYWHERE},
	[STAT_USS_P95]        = {"uss_p95_bytes",        "USS 95%",          "For 95% of the time it was no more.", BYTES, true, false, NO_PROCESS},
	[STAT_USS_PEAK]       = {"uss_peak_bytes",       "USS peak",         "The most that all its processes had together at one instant.", BYTES, true, false, EVERYWHERE},
	[STAT_USS_PEAK_AT]    = {"uss_peak_at_s",        "USS peak at",      "When that was.", SECONDS, false, true, EVERYWHERE},
	[STAT_USS_ONE_PEAK]   = {"uss_one_peak_bytes",   "USS of one",       "The most that any one process had.", BYTES, true, false, NO_PROCESS},
	[STAT_USS_PEAKS_SUM]  = {"uss_peaks_sum_bytes",  "USS peaks added",  "The sum of every process's own peak, which nobody had at once.", BYTES, true, false, NO_PROCESS},
	[STAT_SWAP_PEAK]      = {"swap_peak_bytes",      "swap peak",        "The most that was swapped out at one instant.", BYTES, true, false, EVERYWHERE},
	[STAT_THREADS_PEAK]   = {"threads_peak",         "threads",          "The most threads at one instant.", NUMBER, true, false, EVERYWHERE},
	[STAT_FDS_PEAK]       = {"fds_peak",             "open files",       "The most open file descriptors at one instant.", NUMBER, true, false, EVERYWHERE},
	[STAT_PROCESSES_PEAK] = {"processes_peak",       "at once",          "The most processes at one instant.", NUMBER, true, false, NO_PROCESS},
	[STAT_READ_BYTES]     = {"read_bytes",           "from storage",     "Bytes fetched from storage.", BYTES, true, false, EVERYWHERE},
	[STAT_WRITE_BYTES]    = {"write_bytes",          "to storage",       "Bytes sent to storage.", BYTES, true, false, EVERYWHERE},
	[STAT_READ_CHARS]     = {"read_chars",           "read",             "Bytes read by system calls.", BYTES, true, false, EVERYWHERE},
	[STAT_WRITE_CHARS]    = {"write_chars",          "written",          "Bytes written by system calls.", BYTES, true, false, EVERYWHERE},
	[STAT_READ_RATE_PEAK] = {"read_peak_bytes_per_s", "from storage peak", "The greatest rate at which bytes came from storage.", BYTE_RATE, false, false, NO_PROCESS},
	[STAT_WRITE_RATE_PEAK] = {"write_peak_bytes_per_s", "to storage peak", "The greatest rate at which bytes went to storage.", BYTE_RATE, false, false, NO_PROCESS},
	[STAT_MAJOR_FAULTS]   = {"major_faults",         "major faults",     "Page faults that waited for storage.", NUMBER, true, false, EVERYWHERE},
	[STAT_GPU_MEMORY_PEAK] = {"gpu_memory_peak_bytes", "GPU memory peak", "The most GPU memory at one instant: of the job's devices, and of the processes of a group or user.", BYTES, true, false, EVERYWHERE},
	[STAT_GPU_UTIL_MEAN]  = {"gpu_util_mean",        "GPU use mean",     "Share of the time in which the job's GPUs worked, mean over devices; of a group, for its processes.", RATIO, false, false, NO_PROCESS},
	[STAT_GPU_UTIL_MAX]   = {"gpu_util_max",         "GPU use peak",     "The highest utilisation of any of the job's GPUs.", RATIO, false, false, NODES_ONLY},
	[STAT_GPU_MEM_UTIL_MEAN] = {"gpu_mem_util_mean", "GPU memory use mean", "Share of the time in which the memory of the job's GPUs was read or written, mean over devices.", RATIO, false, false, NODES_ONLY},
	[STAT_GPU_MEM_UTIL_MAX] = {"gpu_mem_util_max",   "GPU memory use peak", "The highest use of the memory of any of the job's GPUs.", RATIO, false, false, NODES_ONLY},
	[STAT_GPU_POWER_MEAN] = {"gpu_power_mean_w",     "GPU power mean",   "Power of the job's GPUs together, mean over time.", UNIT_WATTS, false, false, false, NODES_ONLY},
	[STAT_GPU_POWER_MAX]  = {"gpu_power_max_w",      "GPU power peak",   "Power of the job's GPUs together, the most at one instant.", UNIT_WATTS, false, false, false, NODES_ONLY},
	[STAT_GPU_ENERGY]     = {"gpu_energy_j",         "GPU energy",       "Energy of the job's GPUs.", UNIT_JOULES, false, false, false, NODES_ONLY},
	[STAT_ENERGY]         = {"energy_j",             "energy",           "Energy of the node, as far as its meters see.", UNIT_JOULES, false, false, false, NODES_ONLY},
	[STAT_NODE_CPU_USER_MEAN] = {"node_cpu_user_mean", "node CPU user", "Share of the CPU time of the whole machine that programs had, whose ever.", RATIO, false, false, NODES_ONLY},
	[STAT_NODE_CPU_IDLE_MEAN] = {"node_cpu_idle_mean", "node CPU idle", "Share of the CPU time of the whole machine in which there was nothing to do.", RATIO, false, false, NODES_ONLY},
};

static const struct {
	enum stats_id stat;
	enum figure_id figure;
} stat_figure[] = {
	{STAT_INSTANCES, FIG_SEEN}, {STAT_CPU, FIG_CPU}, {STAT_USER, FIG_USER}, {STAT_SYSTEM, FIG_SYSTEM},
	{STAT_CORES_MEAN, FIG_MEAN_CORES}, {STAT_CORES_PEAK, FIG_PEAK_CORES}, {STAT_CORES_PEAK_AT, FIG_PEAK_CORES_AT},
	{STAT_MEMORY_PEAK, FIG_MEMORY},
	{STAT_RSS_PEAK, FIG_RSS}, {STAT_RSS_PEAK_AT, FIG_RSS_AT}, {STAT_RSS_ONE_PEAK, FIG_ONE_RSS},
	{STAT_PSS_PEAK, FIG_PSS}, {STAT_PSS_PEAK_AT, FIG_PSS_AT}, {STAT_PSS_ONE_PEAK, FIG_ONE_PSS},
	{STAT_USS_PEAK, FIG_USS}, {STAT_USS_PEAK_AT, FIG_USS_AT}, {STAT_USS_ONE_PEAK, FIG_ONE_USS},
	{STAT_SWAP_PEAK, FIG_SWAP}, {STAT_THREADS_PEAK, FIG_THREADS}, {STAT_FDS_PEAK, FIG_FDS},
	{STAT_PROCESSES_PEAK, FIG_PROCESSES}, {STAT_READ_BYTES, FIG_READ_BYTES}, {STAT_WRITE_BYTES, FIG_WRITE_BYTES},
	{STAT_READ_CHARS, FIG_READ_CHARS}, {STAT_WRITE_CHARS, FIG_WRITE_CHARS}, {STAT_MAJOR_FAULTS, FIG_MAJOR},
};

static const struct {
	enum stats_id stat;
	enum process_value value;
} stat_process[] = {
	{STAT_DURATION, PROCESS_WALL}, {STAT_CPU, PROCESS_CPU}, {STAT_USER, PROCESS_USER}, {STAT_SYSTEM, PROCESS_SYSTEM},
	{STAT_RSS_PEAK, PROCESS_RSS}, {STAT_PSS_PEAK, PROCESS_PSS}, {STAT_USS_PEAK, PROCESS_USS},
	{STAT_THREADS_PEAK, PROCESS_THREADS}, {STAT_FDS_PEAK, PROCESS_FDS},
	{STAT_READ_BYTES, PROCESS_READ_BYTES}, {STAT_WRITE_BYTES, PROCESS_WRITE_BYTES},
	{STAT_READ_CHARS, PROCESS_READ_CHARS}, {STAT_WRITE_CHARS, PROCESS_WRITE_CHARS}, {STAT_MAJOR_FAULTS, PROCESS_MAJOR},
};

/* What the processes' own peaks add up to, and the largest of them. */
static const struct {
	enum process_value value;
	enum stats_id sum, one;
} peak_stat[] = {
	{PROCESS_RSS, STAT_RSS_PEAKS_SUM, STAT_RSS_ONE_PEAK},
	{PROCESS_PSS, STAT_PSS_PEAKS_SUM, STAT_PSS_ONE_PEAK},
	{PROCESS_USS, STAT_USS_PEAKS_SUM, STAT_USS_ONE_PEAK},
};

static const enum stats_id over_mean[NR_OVER] = {[OVER_RSS] = STAT_RSS_MEAN, [OVER_PSS] = STAT_PSS_MEAN, [OVER_USS] = STAT_USS_MEAN};
static const enum stats_id over_p95[NR_OVER] = {
	[OVER_CORES] = STAT_CORES_P95, [OVER_RSS] = STAT_RSS_P95, [OVER_PSS] = STAT_PSS_P95, [OVER_USS] = STAT_USS_P95};
/* clang-format on */

struct filling {
	const struct summary *summary;
	const struct process_table *table;
	struct stats_found found;
	struct stats *stats;
};

/* ---- rows ---- */

static void row_clear(struct stats_row *row)
{
	for (unsigned i = 0; i < NR_STATS; i++)
		row->value[i] = NAN;
}

static int rows_add(struct stats *s, enum stats_level level, size_t nr)
{
	s->row[level] = calloc(MAX(nr, 1), sizeof(**s->row));
	if (!s->row[level])
		return -ENOMEM;
	s->nr[level] = nr;
	for (size_t i = 0; i < nr; i++)
		row_clear(&s->row[level][i]);
	return 0;
}

static int row_name(struct stats_row *row, const char *name, size_t len)
{
	struct buf text;

	buf_init(&text, len * 4 + 16);
	escape_bytes(&text, name, len);
	row->name = text.err ? NULL : strdup((char *)text.data);
	buf_release(&text);
	return row->name ? 0 : -ENOMEM;
}

static void add_known(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

/* ---- what the summary knows ---- */

static void fill_over(struct stats_row *row, const struct summary_over *over)
{
	row->value[STAT_CORES_P50] = over[OVER_CORES].p50;
	row->value[STAT_RSS_P50] = over[OVER_RSS].p50;
	for (unsigned i = 0; i < NR_OVER; i++) {
		row->value[over_p95[i]] = over[i].p95;
		if (i != OVER_CORES)
			row->value[over_mean[i]] = over[i].mean;
	}
}

static void fill_figures(struct stats_row *row, const struct summary *s, double offset_s)
{
	for (size_t i = 0; i < ARRAY_SIZE(stat_figure); i++) {
		const struct figure *f = &s->figure[stat_figure[i].figure];
		double after = stats_column[stat_figure[i].stat].moment ? offset_s : 0;

		row->value[stat_figure[i].stat] = f->why ? NAN : f->value + after;
	}
	fill_over(row, s->over);
	row->value[STAT_READ_RATE_PEAK] = s->rate_peak[FLOW_READ];
	row->value[STAT_WRITE_RATE_PEAK] = s->rate_peak[FLOW_WRITE];
}

void stats_of_summary(const struct summary *s, struct stats_row *ret)
{
	*ret = (struct stats_row){0};
	row_clear(ret);
	fill_figures(ret, s, 0);
}

static double figure_or_nan(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

/* Means over devices, each for as long as it was read; the greatest of any; sums. */
static void fill_gpus(struct stats_row *row, const struct summary *s)
{
	static const struct {
		enum gpu_figure_id mean, max;
		enum stats_id mean_stat, max_stat;
	} use[] = {{GPU_FIG_UTIL_MEAN, GPU_FIG_UTIL_MAX, STAT_GPU_UTIL_MEAN, STAT_GPU_UTIL_MAX},
		{GPU_FIG_MEM_UTIL_MEAN, GPU_FIG_MEM_UTIL_MAX, STAT_GPU_MEM_UTIL_MEAN, STAT_GPU_MEM_UTIL_MAX}};

	for (size_t k = 0; k < ARRAY_SIZE(use); k++) {
		double sum = 0, weight = 0, most = NAN;

		for (size_t i = 0; i < s->nr_gpus; i++) {
			const struct figure *f = s->gpu[i].figure, *seen = &f[GPU_FIG_OBSERVED];
			double observed = seen->why || !(seen->value > 0) ? 0 : seen->value;

			if (!stats_gpu_counts(s, i))
				continue;
			if (!f[use[k].max].why)
				most = known_max(most, f[use[k].max].value);
			if (f[use[k].mean].why)
				continue;
			sum += f[use[k].mean].value * observed;
			weight += observed;
		}
		row->value[use[k].mean_stat] = weight > 0 ? sum / weight / 100 : NAN;
		row->value[use[k].max_stat] = most / 100;
	}
	for (size_t i = 0; i < s->nr_gpus; i++) {
		const struct figure *power = &s->gpu[i].figure[GPU_FIG_POWER_MEAN];

		if (summary_gpu_is_of_job(&s->gpu[i]) && !s->gpu[i].text[GPU_TEXT_PARENT] && !power->why)
			add_known(&row->value[STAT_GPU_POWER_MEAN], power->value);
	}
	row->value[STAT_GPU_ENERGY] = figure_or_nan(s, FIG_JOB_GPU_ENERGY);
}

/* Of the run and of a node: what the machine did beside the processes. */
static void fill_machine(struct stats_row *row, const struct summary *s, double gpu_memory, double gpu_power)
{
	row->value[STAT_DURATION] = figure_or_nan(s, FIG_WALL);
	row->value[STAT_ENERGY] = figure_or_nan(s, FIG_ENERGY);
	fill_gpus(row, s);
	row->value[STAT_GPU_MEMORY_PEAK] = gpu_memory;
	row->value[STAT_GPU_POWER_MAX] = gpu_power;
}

static void fill_cpus(struct stats_row *row, double user, double idle, double all)
{
	row->value[STAT_NODE_CPU_USER_MEAN] = all > 0 ? user / all : NAN;
	row->value[STAT_NODE_CPU_IDLE_MEAN] = all > 0 ? idle / all : NAN;
}

/* Is there an earlier recording of the same machine? Its CPUs are counted once. */
static bool is_seen_before(const struct summary *s, size_t node)
{
	const char *host = s->nr_nodes ? s->node[node].host : NULL;

	for (size_t i = 0; host && *host && i < node; i++)
		if (!strcmp(s->node[i].host, host))
			return true;
	return false;
}

static int fill_nodes(struct filling *f, size_t nr)
{
	struct stats_row *run = f->stats->row[STATS_RUN];
	double user = 0, idle = 0, all = 0;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct summary *s = stats_node_summary(f->summary, i);
		struct stats_row *row = &f->stats->row[STATS_NODE][i];
		const struct stats_pass_node *n = &f->found.node[i];
		const char *host = s->host && *s->host ? s->host : "unknown";

		row->node = (uint32_t)i;
		r = row_name(row, host, strlen(host));
		fill_figures(row, s, n->offset_s);
		fill_machine(row, s, n->gpu_memory_peak, n->gpu_power_peak);
		fill_cpus(row, n->cpu_user_s, n->cpu_idle_s, n->cpu_all_s);
		if (isnan(n->cpu_all_s) || is_seen_before(f->summary, i))
			continue;
		user += n->cpu_user_s;
		idle += n->cpu_idle_s;
		all += n->cpu_all_s;
	}
	fill_cpus(run, user, idle, all);
	return r;
}

static int fill_groups(struct filling *f)
{
	size_t first = SUM_USERS + f->found.nr_users;
	int r = 0;

	for (size_t i = 0; i < f->summary->nr_groups && r >= 0; i++) {
		const struct summary *s = &f->summary->group[i];
		struct stats_row *row = &f->stats->row[STATS_GROUP][i];
		double util = 0;
		size_t devices = 0;

		r = row_name(row, s->name, strlen(s->name));
		fill_figures(row, s, 0);
		row->value[STAT_SAMPLES] = (double)f->found.group_samples[i];
		row->value[STAT_GPU_MEMORY_PEAK] = f->found.sum_peak[first + i];
		for (size_t k = 0; k < s->nr_gpus; k++) {
			const struct figure *mean = &s->gpu[k].figure[GPU_FIG_JOB_UTIL_MEAN];

			util += mean->why ? 0 : mean->value;
			devices += !mean->why;
		}
		row->value[STAT_GPU_UTIL_MEAN] = devices ? util / (double)devices / 100 : NAN;
	}
	return r;
}

/* ---- what the processes add up to ---- */

/* From where to where a group or a user had processes. */
struct stats_extent {
	double from, to;
};

/* One that lived between two ticks ran faster than any tick shows. */
static double cores_of_one(const struct filling *f, size_t process)
{
	const double *value = f->table->row[process].value;
	double mean = value[PROCESS_WALL] >= 0.01 ? value[PROCESS_CPU] / value[PROCESS_WALL] : NAN;

	return known_max(f->found.process[process].cores_peak, mean);
}

static void tally(struct filling *f, struct stats_row *row, struct stats_extent *extent, size_t process)
{
	const struct process_row *p = &f->table->row[process];
	const struct stats_pass_node *n = &f->found.node[p->node];
	double start = known_max(p->value[PROCESS_START], 0);

	for (size_t i = 0; i < ARRAY_SIZE(peak_stat); i++)
		add_known(&row->value[peak_stat[i].sum], p->value[peak_stat[i].value]);
	row->value[STAT_CORES_ONE_PEAK] =
		known_max(row->value[STAT_CORES_ONE_PEAK], cores_of_one(f, process));
	if (!extent)
		return;
	extent->from = known_min(extent->from, n->offset_s + start);
	extent->to = known_max(extent->to, n->offset_s + p->value[PROCESS_START] + p->value[PROCESS_WALL]);
}

static void tally_user(struct stats_row *row, const struct process_row *p)
{
	static const struct {
		enum stats_id stat;
		enum process_value value;
	} amount[] = {{STAT_CPU, PROCESS_CPU}, {STAT_USER, PROCESS_USER}, {STAT_SYSTEM, PROCESS_SYSTEM},
		{STAT_MAJOR_FAULTS, PROCESS_MAJOR}};

	add_known(&row->value[STAT_INSTANCES], 1);
	for (size_t i = 0; i < ARRAY_SIZE(amount); i++)
		add_known(&row->value[amount[i].stat], p->value[amount[i].value]);
	for (size_t i = 0; i < ARRAY_SIZE(peak_stat); i++)
		row->value[peak_stat[i].one] =
			known_max(row->value[peak_stat[i].one], p->value[peak_stat[i].value]);
}

static void fill_extent(struct stats_row *row, const struct stats_extent *extent)
{
	if (extent->to >= extent->from)
		row->value[STAT_DURATION] = extent->to - extent->from;
}

static void fill_one_process(struct filling *f, struct stats_row *row, size_t i)
{
	const struct process_row *p = &f->table->row[i];
	const struct stats_pass_process *w = &f->found.process[i];
	double *value = row->value;

	for (size_t k = 0; k < ARRAY_SIZE(stat_process); k++)
		value[stat_process[k].stat] = p->value[stat_process[k].value];
	value[STAT_SAMPLES] = (double)w->samples;
	if (value[STAT_DURATION] > 0)
		value[STAT_CORES_MEAN] = value[STAT_CPU] / value[STAT_DURATION];
	value[STAT_CORES_PEAK] = w->cores_peak;
	value[STAT_CORES_PEAK_AT] = w->cores_peak_at;
	value[STAT_RSS_MEAN] = w->mean[HELD_RSS];
	value[STAT_PSS_MEAN] = w->mean[HELD_PSS];
	value[STAT_USS_MEAN] = w->mean[HELD_USS];
	value[STAT_RSS_PEAK_AT] = p->rss_between ? NAN : w->peak_at[HELD_RSS];
	value[STAT_PSS_PEAK_AT] = w->peak_at[HELD_PSS];
	value[STAT_USS_PEAK_AT] = w->peak_at[HELD_USS];
	value[STAT_SWAP_PEAK] = w->peak[HELD_SWAP];
	value[STAT_GPU_MEMORY_PEAK] = w->gpu_memory_peak;
}

static int fill_processes(struct filling *f, struct stats_extent *group, struct stats_extent *user)
{
	struct stats *s = f->stats;
	int r = 0, g;

	for (size_t i = 0; i < f->table->nr && r >= 0; i++) {
		const struct process_row *p = &f->table->row[i];
		struct stats_row *row = &s->row[STATS_PROCESS][i];
		size_t u = stats_pass_user_of(&f->found, p), at = 0;

		row->node = p->node;
		row->process = (uint32_t)i;
		r = row_name(row, p->name, p->name_len);
		fill_one_process(f, row, i);
		tally(f, &s->row[STATS_RUN][0], NULL, i);
		tally(f, &s->row[STATS_NODE][p->node], NULL, i);
		tally(f, &s->row[STATS_USER][u], &user[u], i);
		add_known(&s->row[STATS_RUN][0].value[STAT_SAMPLES], row->value[STAT_SAMPLES]);
		add_known(&s->row[STATS_NODE][p->node].value[STAT_SAMPLES], row->value[STAT_SAMPLES]);
		add_known(&s->row[STATS_USER][u].value[STAT_SAMPLES], row->value[STAT_SAMPLES]);
		tally_user(&s->row[STATS_USER][u], p);
		while ((g = stats_pass_group_next(f->summary, p, &at)) >= 0)
			tally(f, &s->row[STATS_GROUP][g], &group[g], i);
	}
	return r;
}

/* ---- users ---- */

static void fill_user_tracked(struct stats_row *row, struct stats_pass_user *u)
{
	static const struct {
		enum level level;
		enum stats_id peak;
		int at;
	} top[] = {{LEVEL_RSS, STAT_RSS_PEAK, STAT_RSS_PEAK_AT}, {LEVEL_PSS, STAT_PSS_PEAK, STAT_PSS_PEAK_AT},
		{LEVEL_USS, STAT_USS_PEAK, STAT_USS_PEAK_AT}, {LEVEL_SWAP, STAT_SWAP_PEAK, -1},
		{LEVEL_THREADS, STAT_THREADS_PEAK, -1}, {LEVEL_FDS, STAT_FDS_PEAK, -1},
		{LEVEL_PROCESSES, STAT_PROCESSES_PEAK, -1}};
	struct summary_over over[NR_OVER];
	double rate, at, window, most[NR_OVER];

	for (size_t i = 0; i < ARRAY_SIZE(top); i++) {
		const struct top *t = &u->tracker.top[top[i].level];

		row->value[top[i].peak] = t->has ? t->value : NAN;
		if (top[i].at >= 0)
			row->value[top[i].at] = t->has ? t->at : NAN;
	}
	if (meter_peak(&u->tracker.cpu, 0, &rate, &at, &window)) {
		row->value[STAT_CORES_PEAK] = rate;
		row->value[STAT_CORES_PEAK_AT] = at;
	}
	most[OVER_CORES] = row->value[STAT_CORES_PEAK];
	most[OVER_RSS] = row->value[STAT_RSS_PEAK];
	most[OVER_PSS] = row->value[STAT_PSS_PEAK];
	most[OVER_USS] = row->value[STAT_USS_PEAK];
	for (unsigned i = 0; i < NR_OVER; i++)
		over[i] = summary_over_of(u->tracker.over[i], most[i]);
	fill_over(row, over);
}

/* By the rules of the summary, which knows no users: of cores what lived between two ticks ran faster than
 * any tick shows. */
static void fill_user_known(double *value, double wall_s)
{
	double alive = value[STAT_CPU] / value[STAT_DURATION];

	value[STAT_CORES_MEAN] = wall_s > 0 ? value[STAT_CPU] / wall_s : NAN;
	if (value[STAT_DURATION] > 0 && alive > value[STAT_CORES_PEAK]) {
		value[STAT_CORES_PEAK] = alive;
		value[STAT_CORES_PEAK_AT] = NAN;
	}
	switch (*memory_answer(value[STAT_RSS_ONE_PEAK], value[STAT_RSS_PEAK], value[STAT_PSS_PEAK])) {
	case 'h':
		value[STAT_MEMORY_PEAK] = value[STAT_RSS_ONE_PEAK];
		break;
	case 'p':
		value[STAT_MEMORY_PEAK] = value[STAT_PSS_PEAK];
		break;
	default:
		value[STAT_MEMORY_PEAK] = value[STAT_RSS_PEAK];
	}
}

/* He who has the run for himself is as well known as it is. */
static void fill_only_user(struct stats_row *row, const struct stats_row *run)
{
	for (unsigned i = 0; i < NR_STATS; i++)
		if (stats_column[i].of_groups && i != STAT_DURATION)
			row->value[i] = run->value[i];
}

static int fill_users(struct filling *f, struct stats_extent *extent)
{
	struct stats *s = f->stats;
	int r = 0;

	for (size_t i = 0; i < f->found.nr_users && r >= 0; i++) {
		struct stats_row *row = &s->row[STATS_USER][i];

		row->name = strdup(f->found.user[i].name);
		r = row->name ? 0 : -ENOMEM;
		if (f->found.nr_users > 1)
			fill_user_tracked(row, &f->found.user[i]);
		else
			fill_only_user(row, s->row[STATS_RUN]);
		row->value[STAT_GPU_MEMORY_PEAK] = f->found.sum_peak[SUM_USERS + i];
		fill_extent(row, &extent[i]);
		if (f->found.nr_users > 1)
			fill_user_known(row->value, figure_or_nan(f->summary, FIG_WALL));
	}
	return r;
}

/* ---- all of it ---- */

static void extents_init(struct stats_extent *e, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		e[i] = (struct stats_extent){.from = INFINITY, .to = -INFINITY};
}

static int stats_fill(struct filling *f, size_t nodes)
{
	size_t groups = f->summary->nr_groups, users = f->found.nr_users;
	struct stats_extent *extent = calloc(groups + users + 1, sizeof(*extent));
	struct stats_row *run = f->stats->row[STATS_RUN];
	int r = extent ? row_name(run, "run", 3) : -ENOMEM;

	if (r >= 0) {
		extents_init(extent, groups + users);
		fill_figures(run, f->summary, 0);
		fill_machine(
			run, f->summary, f->found.sum_peak[SUM_GPU_MEMORY], f->found.sum_peak[SUM_GPU_POWER]);
		r = fill_nodes(f, nodes);
	}
	if (r >= 0)
		r = fill_groups(f);
	if (r >= 0)
		r = fill_processes(f, extent, extent + groups);
	if (r >= 0)
		r = fill_users(f, extent + groups);
	for (size_t i = 0; i < groups && r >= 0; i++)
		fill_extent(&f->stats->row[STATS_GROUP][i], &extent[i]);
	free(extent);
	return r;
}

struct stats_reading {
	struct filling filling;
	const struct run *run;
	struct stats_pass *walking;
};

int stats_guest(const struct run *run, const struct summary *summary, const struct process_table *processes,
	struct stats_reading **ret, struct tour_guest *ret_guest)
{
	struct stats_reading *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->run = run;
	all->filling = (struct filling){.summary = summary, .table = processes};
	r = stats_pass_guest(run, summary, processes, &all->filling.found, &all->walking, ret_guest);
	if (r < 0) {
		stats_reading_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

int stats_finish(struct stats_reading *all, struct stats **ret)
{
	struct filling *f = &all->filling;
	size_t nr[NR_STATS_LEVELS] = {[STATS_RUN] = 1,
		[STATS_NODE] = all->run->nr,
		[STATS_GROUP] = f->summary->nr_groups,
		[STATS_USER] = f->found.nr_users,
		[STATS_PROCESS] = f->table->nr};
	int r = stats_pass_finish(all->walking);

	if (r < 0)
		return r;
	f->stats = calloc(1, sizeof(*f->stats));
	r = f->stats ? 0 : -ENOMEM;
	for (unsigned i = 0; i < NR_STATS_LEVELS && r >= 0; i++)
		r = rows_add(f->stats, i, nr[i]);
	if (r >= 0)
		r = stats_fill(f, all->run->nr);
	if (r >= 0)
		*ret = TAKE_PTR(f->stats);
	return r;
}

struct stats_reading *stats_reading_free(struct stats_reading *all)
{
	if (!all)
		return NULL;
	stats_pass_free(all->walking);
	stats_pass_release(&all->filling.found);
	stats_free(all->filling.stats);
	free(all);
	return NULL;
}

int stats_read(const struct run *run, const struct summary *summary, const struct process_table *processes,
	const struct progress *progress, struct stats **ret, struct buf *reterr)
{
	struct stats_reading *all = NULL;
	struct tour_guest guest;
	int r = stats_guest(run, summary, processes, &all, &guest);

	if (r >= 0)
		r = tour(run, &guest, 1, progress, "statistics", reterr);
	if (r >= 0)
		r = stats_finish(all, ret);
	stats_reading_free(all);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "no statistics: %s", strerror(-r));
	return r;
}

struct stats *stats_free(struct stats *s)
{
	for (unsigned i = 0; s && i < NR_STATS_LEVELS; i++) {
		for (size_t k = 0; k < s->nr[i]; k++)
			free(s->row[i][k].name);
		free(s->row[i]);
	}
	free(s);
	return NULL;
}
