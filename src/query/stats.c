/* Statistics: the summary's figures where it has them, so that no report contradicts `tacho show`; sums over
 * the table of processes; and what query/courses found over time.
 *
 * Means and quantiles of memory, and quantiles of cores, are over the time in which there were processes. The
 * mean of cores is over the run, so that those of groups and users add up; of a process over its life.
 *
 * What a user's processes read and wrote is told only where the run has no other user: the kernel adds the
 * bytes of a child to those of its parent, and adding up processes would count them twice. */
#include "query/stats.h"

#include "base/str.h"
#include "query/courses.h"
#include "query/stats_gpus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define EVERYWHERE  true,  true,  true
#define NOT_OF_ONE  false, true,  true
#define NODES_ONLY  false, false, true
#define IN_COUNT UNIT_COUNT, false
#define IN_BYTES UNIT_BYTES, false
#define IN_BYTE_RATE UNIT_BYTES, true
#define IN_SECONDS UNIT_SECONDS, false
#define IN_RATIO UNIT_RATIO, false

/* name, title, help, unit, per second, whole, moment, of processes, of groups, of nodes */
const struct stats_column stats_column[NR_STATS] = {
	[STAT_INSTANCES]      = {"instances",            "processes",        "Processes ever seen.", IN_COUNT, true, false, NOT_OF_ONE},
	[STAT_SAMPLES]        = {"samples",              "samples",          "Readings of its processes: ticks at which each was there.", IN_COUNT, true, false, EVERYWHERE},
	[STAT_DURATION]       = {"duration_s",           "duration",         "Time from its first moment to its last.", IN_SECONDS, false, false, EVERYWHERE},
	[STAT_CORES_MEAN]     = {"cores_mean",           "cores mean",       "CPU time by the duration of the run, of a process by its own.", IN_COUNT, false, false, EVERYWHERE},
	[STAT_CORES_P50]      = {"cores_p50",            "cores median",     "For half of the time no more cores were busy.", IN_COUNT, false, false, NOT_OF_ONE},
	[STAT_CORES_P95]      = {"cores_p95",            "cores 95%",        "For 95% of the time no more cores were busy.", IN_COUNT, false, false, NOT_OF_ONE},
	[STAT_CORES_PEAK]     = {"cores_peak",           "cores peak",       "The most cores busy at once, over the shortest time that tells.", IN_COUNT, false, false, EVERYWHERE},
	[STAT_CORES_PEAK_AT]  = {"cores_peak_at_s",      "cores peak at",    "When that was.", IN_SECONDS, false, true, EVERYWHERE},
	[STAT_CORES_ONE_PEAK] = {"cores_one_peak",       "cores of one",     "The most cores that any one process kept busy.", IN_COUNT, false, false, NOT_OF_ONE},
	[STAT_MEMORY_PEAK]    = {"memory_peak_bytes",    "memory peak",      "How much memory it had, as far as known: PSS, without that RSS, or what one process had between two samples.", IN_BYTES, true, false, NOT_OF_ONE},
	[STAT_READ_RATE_PEAK] = {"read_peak_bytes_per_s", "from storage peak", "The greatest rate at which bytes came from storage.", IN_BYTE_RATE, false, false, NOT_OF_ONE},
	[STAT_WRITE_RATE_PEAK] = {"write_peak_bytes_per_s", "to storage peak", "The greatest rate at which bytes went to storage.", IN_BYTE_RATE, false, false, NOT_OF_ONE},
	[STAT_GPU_MEMORY_PEAK] = {"gpu_memory_peak_bytes", "GPU memory peak", "The most GPU memory at one instant: of the job's devices, and of the processes of a group or user.", IN_BYTES, true, false, EVERYWHERE},
	[STAT_GPU_UTIL_MEAN]  = {"gpu_util_mean",        "GPU use mean",     "Share of the time in which the job's GPUs worked, mean over devices; of a group, for its processes.", IN_RATIO, false, false, NOT_OF_ONE},
	[STAT_GPU_UTIL_MAX]   = {"gpu_util_max",         "GPU use peak",     "The highest utilisation of any of the job's GPUs.", IN_RATIO, false, false, NODES_ONLY},
	[STAT_GPU_MEM_UTIL_MEAN] = {"gpu_mem_util_mean", "GPU memory use mean", "Share of the time in which the memory of the job's GPUs was read or written, mean over devices.", IN_RATIO, false, false, NODES_ONLY},
	[STAT_GPU_MEM_UTIL_MAX] = {"gpu_mem_util_max",   "GPU memory use peak", "The highest use of the memory of any of the job's GPUs.", IN_RATIO, false, false, NODES_ONLY},
	[STAT_GPU_POWER_MEAN] = {"gpu_power_mean_w",     "GPU power mean",   "Power of the job's GPUs together, mean over time.", UNIT_WATTS, false, false, false, NODES_ONLY},
	[STAT_GPU_POWER_MAX]  = {"gpu_power_max_w",      "GPU power peak",   "Power of the job's GPUs together, the most at one instant.", UNIT_WATTS, false, false, false, NODES_ONLY},
	[STAT_GPU_ENERGY]     = {"gpu_energy_j",         "GPU energy",       "Energy of the job's GPUs.", UNIT_JOULES, false, false, false, NODES_ONLY},
	[STAT_ENERGY]         = {"energy_j",             "energy",           "Energy of the node, as far as its meters see.", UNIT_JOULES, false, false, false, NODES_ONLY},
	[STAT_NODE_CPU_USER_MEAN] = {"node_cpu_user_mean", "node CPU user", "Share of the CPU time of the whole machine that programs of all users had.", IN_RATIO, false, false, NODES_ONLY},
	[STAT_NODE_CPU_IDLE_MEAN] = {"node_cpu_idle_mean", "node CPU idle", "Share of the CPU time of the whole machine in which there was nothing to do.", IN_RATIO, false, false, NODES_ONLY},
#define WHERE_PROCESS(...) EVERYWHERE
#define WHERE_NO_PROCESS NOT_OF_ONE
#define COLUMN_STATS(title, help) title, help
#define ROW(id, name, unit, children, metric, ended, figure, stats, process) \
	IF_##stats([STAT_##id] = {name QUANTITY_SUFFIX_##unit, COLUMN_##stats, QUANTITY_UNIT_##unit, false, \
		QUANTITY_UNIT_##unit != UNIT_SECONDS, false, WHERE_##process},)
	AMOUNTS(ROW)
#undef ROW
#undef COLUMN_STATS
#define COLUMNS_VIEW(id, name, title, help, mean_help, median, ...) \
	[STAT_##id##_MEAN] = {name "_mean_bytes", title " mean", mean_help, IN_BYTES, true, false, EVERYWHERE}, \
	IF_##median([STAT_##id##_P50] = {name "_p50_bytes", title " median", "For half of the time it was no more.", IN_BYTES, true, false, NOT_OF_ONE},) \
	[STAT_##id##_P95] = {name "_p95_bytes", title " 95%", "For 95% of the time it was no more.", IN_BYTES, true, false, NOT_OF_ONE}, \
	[STAT_##id##_PEAK] = {name "_peak_bytes", title " peak", help, IN_BYTES, true, false, EVERYWHERE}, \
	[STAT_##id##_PEAK_AT] = {name "_peak_at_s", title " peak at", "When that was.", IN_SECONDS, false, true, EVERYWHERE}, \
	[STAT_##id##_ONE_PEAK] = {name "_one_peak_bytes", title " of one", "The most that any one process had.", IN_BYTES, true, false, NOT_OF_ONE}, \
	[STAT_##id##_PEAKS_SUM] = {name "_peaks_sum_bytes", title " peaks added", "The sum of every process's own peak: more than was ever held at once.", IN_BYTES, true, false, NOT_OF_ONE},
#define COLUMNS_MEMORY(id, name, title, help, mean_help, median, ...) \
	[STAT_##id##_PEAK] = {name "_peak_bytes", title, help, IN_BYTES, true, false, EVERYWHERE},
#define COLUMNS_COUNT(id, name, title, help, mean_help, median, ...) \
	[STAT_##id##_PEAK] = {name "_peak", title, help, IN_COUNT, true, false, __VA_ARGS__},
#define COLUMN_STATS(title, help, mean_help, median) title, help, mean_help, median
#define COLUMNS(columns, ...) columns(__VA_ARGS__)
#define ROW(id, name, kind, metric, figure, stats, process) \
	IF_##stats(COLUMNS(COLUMNS_##kind, id, name, COLUMN_##stats, WHERE_##process))
	LEVELS(ROW)
#undef ROW
};

static const struct {
	enum stats_id stat;
	enum figure_id figure;
} stat_figure[] = {
	{STAT_INSTANCES, FIG_SEEN}, {STAT_CORES_MEAN, FIG_MEAN_CORES}, {STAT_CORES_PEAK, FIG_PEAK_CORES},
	{STAT_CORES_PEAK_AT, FIG_PEAK_CORES_AT}, {STAT_MEMORY_PEAK, FIG_MEMORY},
#define ROW(id, name, unit, children, metric, ended, figure, stats, process) IF_##stats({STAT_##id, FIG_##id},)
	AMOUNTS(ROW)
#undef ROW
#define ROW(id, name, kind, metric, figure, stats, process) IF_##stats({STAT_##id##_PEAK, FIG_##id},)
	LEVELS(ROW)
#undef ROW
#define ROW(id, ...) {STAT_##id##_PEAK_AT, FIG_##id##_AT}, {STAT_##id##_ONE_PEAK, FIG_ONE_##id},
	LEVELS_VIEWS(ROW)
#undef ROW
};

static const struct {
	enum stats_id stat;
	enum process_value value;
	int used; /* -1: it is no amount */
} stat_process[] = {
	{STAT_DURATION, PROCESS_WALL, -1},
#define ROW(id, name, unit, children, metric, ended, figure, stats, process) \
	IF_##stats(IF_##process({STAT_##id, PROCESS_##id, USED_##id},))
	AMOUNTS(ROW)
#undef ROW
#define ROW(id, name, kind, metric, figure, stats, process) IF_##stats(IF_##process({STAT_##id##_PEAK, PROCESS_##id, -1},))
	LEVELS(ROW)
#undef ROW
};

static const struct {
	enum level level;
	enum stats_id peak;
	int at; /* -1: not told */
} level_stat[] = {
#define AT_VIEW(id) STAT_##id##_PEAK_AT
#define AT_MEMORY(id) -1
#define AT_COUNT(id) -1
#define ROW(id, name, kind, metric, figure, stats, process) IF_##stats({LEVEL_##id, STAT_##id##_PEAK, AT_##kind(id)},)
	LEVELS(ROW)
#undef ROW
};

/* How memory can be counted: over time, and what the processes' own peaks add up to and the largest of them. */
static const struct {
	enum level level;
	enum over over;
	enum process_value value;
	enum stats_id mean, p95, peak, at, sum, one;
} view_stat[] = {
#define ROW(id, ...) {LEVEL_##id, OVER_##id, PROCESS_##id, STAT_##id##_MEAN, STAT_##id##_P95, STAT_##id##_PEAK, \
	STAT_##id##_PEAK_AT, STAT_##id##_PEAKS_SUM, STAT_##id##_ONE_PEAK},
	LEVELS_VIEWS(ROW)
#undef ROW
};
/* clang-format on */

struct filling {
	const struct summary *summary;
	const struct process_table *table;
	const struct courses *courses;
	struct stats_users users;
	struct stats_gpus_found gpus; /* empty: there is none */
	struct stats *stats;
};

/* clang-format off */
#define UNKNOWN {[0 ... NR_MEMORY_LEVELS - 1] = NAN}
/* clang-format on */
static const struct process_course no_course = {
	.cores_peak = NAN, .cores_peak_at = NAN, .mean = UNKNOWN, .peak = UNKNOWN, .peak_at = UNKNOWN};

static const struct process_course *course_of(const struct process_row *row)
{
	return row->course ? row->course : &no_course;
}

/* Of a list that may not be there. */
static double gpu_peak(const double *peak, size_t at)
{
	return peak ? peak[at] : NAN;
}

const struct summary *stats_node_summary(const struct summary *s, size_t node)
{
	return s->nr_nodes ? &s->node[node] : s;
}

double stats_node_offset(const struct summary *s, size_t node)
{
	int64_t start_ns = stats_node_summary(s, node)->start_wall_ns;

	return s->start_wall_ns > 0 && start_ns > 0 ? (double)(start_ns - s->start_wall_ns) / 1e9 : 0;
}

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
	row->value[STAT_CORES_P95] = over[OVER_CORES].p95;
	row->value[STAT_RSS_P50] = over[OVER_RSS].p50;
	for (size_t i = 0; i < ARRAY_SIZE(view_stat); i++) {
		row->value[view_stat[i].mean] = over[view_stat[i].over].mean;
		row->value[view_stat[i].p95] = over[view_stat[i].over].p95;
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
		const struct course_node *n = courses_node(f->courses, i);
		const char *host = s->host && *s->host ? s->host : "unknown";

		row->node = (uint32_t)i;
		r = row_name(row, host, strlen(host));
		fill_figures(row, s, stats_node_offset(f->summary, i));
		fill_machine(row, s, gpu_peak(f->gpus.node_memory, i), gpu_peak(f->gpus.node_power, i));
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

/* In all recordings. */
static uint64_t group_samples(const struct filling *f, const char *name, size_t nodes)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < nodes; i++) {
		const struct summary *s = stats_node_summary(f->summary, i);
		const struct course_node *n = courses_node(f->courses, i);

		for (size_t k = 0; k < MIN(s->nr_groups, (size_t)n->nr_groups); k++)
			samples += strcmp(s->group[k].name, name) ? 0 : n->group_samples[k];
	}
	return samples;
}

static int fill_groups(struct filling *f, size_t nodes)
{
	size_t first = SUM_USERS + f->users.nr;
	int r = 0;

	for (size_t i = 0; i < f->summary->nr_groups && r >= 0; i++) {
		const struct summary *s = &f->summary->group[i];
		struct stats_row *row = &f->stats->row[STATS_GROUP][i];
		double util = 0;
		size_t devices = 0;

		r = row_name(row, s->name, strlen(s->name));
		fill_figures(row, s, 0);
		row->value[STAT_SAMPLES] = (double)group_samples(f, s->name, nodes);
		row->value[STAT_GPU_MEMORY_PEAK] = gpu_peak(f->gpus.sum, first + i);
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

	return known_max(course_of(&f->table->row[process])->cores_peak, mean);
}

static void tally(struct filling *f, struct stats_row *row, struct stats_extent *extent, size_t process)
{
	const struct process_row *p = &f->table->row[process];
	double start = known_max(p->value[PROCESS_START], 0),
	       offset_s = stats_node_offset(f->summary, p->node);

	for (size_t i = 0; i < ARRAY_SIZE(view_stat); i++)
		add_known(&row->value[view_stat[i].sum], p->value[view_stat[i].value]);
	row->value[STAT_CORES_ONE_PEAK] =
		known_max(row->value[STAT_CORES_ONE_PEAK], cores_of_one(f, process));
	if (!extent)
		return;
	extent->from = known_min(extent->from, offset_s + start);
	extent->to = known_max(extent->to, offset_s + p->value[PROCESS_START] + p->value[PROCESS_WALL]);
}

static void tally_user(struct stats_row *row, const struct process_row *p)
{
	add_known(&row->value[STAT_INSTANCES], 1);
	for (size_t i = 0; i < ARRAY_SIZE(stat_process); i++)
		if (stat_process[i].used >= 0 && quantity[stat_process[i].used].children != CHILDREN_WITHIN)
			add_known(&row->value[stat_process[i].stat], p->value[stat_process[i].value]);
	for (size_t i = 0; i < ARRAY_SIZE(view_stat); i++)
		row->value[view_stat[i].one] =
			known_max(row->value[view_stat[i].one], p->value[view_stat[i].value]);
}

static void fill_extent(struct stats_row *row, const struct stats_extent *extent)
{
	if (extent->to >= extent->from)
		row->value[STAT_DURATION] = extent->to - extent->from;
}

static void fill_one_process(struct filling *f, struct stats_row *row, size_t i)
{
	const struct process_row *p = &f->table->row[i];
	const struct process_course *w = course_of(p);
	double *value = row->value, offset_s = stats_node_offset(f->summary, p->node);

	for (size_t k = 0; k < ARRAY_SIZE(level_stat); k++)
		if (level_stat[k].level < NR_MEMORY_LEVELS)
			value[level_stat[k].peak] = w->peak[level_stat[k].level];
	for (size_t k = 0; k < ARRAY_SIZE(stat_process); k++)
		value[stat_process[k].stat] = p->value[stat_process[k].value];
	value[STAT_SAMPLES] = (double)w->samples;
	if (value[STAT_DURATION] > 0)
		value[STAT_CORES_MEAN] = value[STAT_CPU] / value[STAT_DURATION];
	value[STAT_CORES_PEAK] = w->cores_peak;
	value[STAT_CORES_PEAK_AT] = offset_s + w->cores_peak_at;
	for (size_t k = 0; k < ARRAY_SIZE(view_stat); k++) {
		value[view_stat[k].mean] = w->mean[view_stat[k].level];
		value[view_stat[k].at] = offset_s + w->peak_at[view_stat[k].level];
	}
	if (p->rss_between)
		value[STAT_RSS_PEAK_AT] = NAN;
	value[STAT_GPU_MEMORY_PEAK] = gpu_peak(f->gpus.process, i);
}

static int fill_processes(struct filling *f, struct stats_extent *group, struct stats_extent *user)
{
	struct stats *s = f->stats;
	int r = 0, g;

	for (size_t i = 0; i < f->table->nr && r >= 0; i++) {
		const struct process_row *p = &f->table->row[i];
		struct stats_row *row = &s->row[STATS_PROCESS][i];
		size_t u = stats_user_of(&f->users, p), at = 0;

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
		while ((g = stats_group_next(f->summary, p, &at)) >= 0)
			tally(f, &s->row[STATS_GROUP][g], &group[g], i);
	}
	return r;
}

/* ---- users ---- */

/* What is no number comes last. */
static int compare_uids(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

size_t stats_user_of(const struct stats_users *u, const struct process_row *row)
{
	const double *found = bsearch(&row->value[PROCESS_UID], u->uid, u->nr, sizeof(*found), compare_uids);

	return found ? (size_t)(found - u->uid) : u->nr - 1;
}

/* Each once. Beyond COURSE_USERS_MOST they are one, behind all others, together with those that have no
 * number: all that no course is known of. */
static int list_users(struct filling *f)
{
	struct stats_users *u = &f->users;
	size_t nr = 0, kept = 0;

	u->uid = calloc(f->table->nr + 1, sizeof(*u->uid));
	if (!u->uid)
		return -ENOMEM;
	for (size_t i = 0; i < f->table->nr; i++)
		u->uid[i] = f->table->row[i].value[PROCESS_UID];
	qsort(u->uid, f->table->nr, sizeof(*u->uid), compare_uids);
	for (size_t i = 0; i < f->table->nr; i++)
		if (!nr || compare_uids(&u->uid[nr - 1], &u->uid[i]))
			u->uid[nr++] = u->uid[i];
	u->left_out = nr > COURSE_USERS_MOST;
	for (size_t i = 0; u->left_out && i < nr && kept + 1 < COURSE_USERS_MOST; i++)
		if (!isnan(u->uid[i]) && courses_user(f->courses, u->uid[i]))
			u->uid[kept++] = u->uid[i];
	if (u->left_out)
		u->uid[kept++] = NAN;
	u->nr = u->left_out ? kept : nr;
	return 0;
}

static int name_user(
	struct stats_row *row, const struct stats_users *users, const struct course_user *u, double uid)
{
	char number[32];

	snprintf(number, sizeof(number), "%.0f", uid);
	row->name = strdup(u && u->name	  ? u->name
			: !isnan(uid)	  ? number
			: users->left_out ? "others"
					  : "unknown");
	return row->name ? 0 : -ENOMEM;
}

static void fill_user_tracked(struct stats_row *row, const struct tracker *tracker)
{
	struct meter cpu = tracker->cpu; /* it settles what it holds back */
	struct summary_over over[NR_OVER];
	double rate, at, window, most[NR_OVER];

	for (size_t i = 0; i < ARRAY_SIZE(level_stat); i++) {
		const struct top *t = &tracker->top[level_stat[i].level];

		row->value[level_stat[i].peak] = t->has ? t->value : NAN;
		if (level_stat[i].at >= 0)
			row->value[level_stat[i].at] = t->has ? t->at : NAN;
	}
	if (meter_peak(&cpu, 0, &rate, &at, &window)) {
		row->value[STAT_CORES_PEAK] = rate;
		row->value[STAT_CORES_PEAK_AT] = at;
	}
	most[OVER_CORES] = row->value[STAT_CORES_PEAK];
	for (size_t i = 0; i < ARRAY_SIZE(view_stat); i++)
		most[view_stat[i].over] = row->value[view_stat[i].peak];
	for (unsigned i = 0; i < NR_OVER; i++)
		over[i] = summary_over_of(tracker->over[i], most[i]);
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

/* The only user of a run is as well known as the run. */
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

	for (size_t i = 0; i < f->users.nr && r >= 0; i++) {
		const struct course_user *u = courses_user(f->courses, f->users.uid[i]);
		struct stats_row *row = &s->row[STATS_USER][i];

		r = name_user(row, &f->users, u, f->users.uid[i]);
		if (f->users.nr > 1)
			fill_user_tracked(row, u ? &u->tracker : courses_nobody(f->courses));
		else
			fill_only_user(row, s->row[STATS_RUN]);
		row->value[STAT_GPU_MEMORY_PEAK] = gpu_peak(f->gpus.sum, SUM_USERS + i);
		fill_extent(row, &extent[i]);
		if (f->users.nr > 1)
			fill_user_known(row->value, figure_or_nan(f->summary, FIG_WALL));
	}
	return r;
}

/* ---- phases ---- */

/* As the summary has them (query/phases.h). */
static int fill_phases(struct filling *f)
{
	int r = 0;

	for (size_t i = 0; i < f->stats->nr[STATS_PHASE] && r >= 0; i++) {
		const struct phase *p = &f->summary->phases->phase[i];
		struct stats_row *row = &f->stats->row[STATS_PHASE][i];

		row->name = strdup(p->name);
		r = row->name ? 0 : -ENOMEM;
		/* clang-format off */
#define AMOUNT(id, name, unit, children, metric, ended, figure, stats, process) IF_##stats(row->value[STAT_##id] = p->value[PHASE_##id];)
#define LEVEL(id, name, kind, metric, figure, stats, process) IF_##stats(row->value[STAT_##id##_PEAK] = p->value[PHASE_##id##_PEAK];)
#define VIEW(id, ...) row->value[STAT_##id##_MEAN] = p->value[PHASE_##id##_MEAN];
		AMOUNTS(AMOUNT)
		LEVELS(LEVEL)
		LEVELS_VIEWS(VIEW)
#undef VIEW
#undef LEVEL
#undef AMOUNT
		/* clang-format on */
		row->value[STAT_DURATION] = p->value[PHASE_WALL];
		row->value[STAT_CORES_MEAN] = p->value[PHASE_CORES];
		row->value[STAT_MEMORY_PEAK] = p->value[PHASE_MEMORY];
		row->value[STAT_GPU_MEMORY_PEAK] = p->value[PHASE_GPU_MEMORY];
		row->value[STAT_GPU_UTIL_MEAN] = p->value[PHASE_GPU_UTIL] / 100;
		row->value[STAT_GPU_ENERGY] = p->value[PHASE_GPU_ENERGY];
		row->value[STAT_ENERGY] = p->value[PHASE_ENERGY];
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
	size_t groups = f->summary->nr_groups, users = f->users.nr;
	struct stats_extent *extent = calloc(groups + users + 1, sizeof(*extent));
	struct stats_row *run = f->stats->row[STATS_RUN];
	int r = extent ? row_name(run, "run", 3) : -ENOMEM;

	if (r >= 0) {
		extents_init(extent, groups + users);
		fill_figures(run, f->summary, 0);
		fill_machine(run, f->summary, gpu_peak(f->gpus.sum, SUM_GPU_MEMORY),
			gpu_peak(f->gpus.sum, SUM_GPU_POWER));
		r = fill_nodes(f, nodes);
	}
	if (r >= 0)
		r = fill_groups(f, nodes);
	if (r >= 0)
		r = fill_processes(f, extent, extent + groups);
	if (r >= 0)
		r = fill_users(f, extent + groups);
	if (r >= 0)
		r = fill_phases(f);
	for (size_t i = 0; i < groups && r >= 0; i++)
		fill_extent(&f->stats->row[STATS_GROUP][i], &extent[i]);
	free(extent);
	return r;
}

static int group_find(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_groups; i++)
		if (!strcmp(s->group[i].name, name))
			return (int)i;
	return -1;
}

int stats_group_next(const struct summary *s, const struct process_row *row, size_t *at)
{
	while (*at < row->groups_len) {
		const char *name = row->groups + *at;
		int group = group_find(s, name);

		*at += strlen(name) + 1;
		if (group >= 0)
			return group;
	}
	return -1;
}

struct stats_reading {
	struct filling filling;
	const struct run *run;
	struct stats_gpus *gpus; /* NULL: there is none */
};

static bool has_gpus(const struct stats_input *in)
{
	for (size_t i = 0; i < in->run->nr; i++)
		if (courses_node(in->courses, i)->has_gpus)
			return true;
	return false;
}

int stats_guest(const struct stats_input *in, struct stats_reading **ret, struct tour_guest *ret_guest)
{
	struct stats_reading *all = calloc(1, sizeof(*all));
	bool gpus = has_gpus(in);
	struct filling *f;
	int r;

	if (!all)
		return -ENOMEM;
	f = &all->filling;
	all->run = in->run;
	*f = (struct filling){.summary = in->summary, .table = in->processes, .courses = in->courses};
	r = list_users(f);
	if (r >= 0 && gpus)
		r = stats_gpus_guest(
			in->run, in->summary, in->processes, &f->users, &f->gpus, &all->gpus, ret_guest);
	if (r < 0) {
		stats_reading_free(all);
		return r;
	}
	*ret = all;
	return gpus;
}

int stats_finish(struct stats_reading *all, struct stats **ret)
{
	struct filling *f = &all->filling;
	size_t nr[NR_STATS_LEVELS] = {[STATS_RUN] = 1,
		[STATS_NODE] = all->run->nr,
		[STATS_GROUP] = f->summary->nr_groups,
		[STATS_USER] = f->users.nr,
		[STATS_PHASE] = f->summary->phases ? f->summary->phases->nr : 0,
		[STATS_PROCESS] = f->table->nr};
	int r = all->gpus ? stats_gpus_finish(all->gpus) : 0;

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
	stats_gpus_free(all->gpus);
	stats_gpus_release(&all->filling.gpus);
	free(all->filling.users.uid);
	stats_free(all->filling.stats);
	free(all);
	return NULL;
}

int stats_read(
	const struct stats_input *in, const struct progress *progress, struct stats **ret, struct buf *reterr)
{
	struct stats_reading *all = NULL;
	struct tour_guest guest;
	int r = stats_guest(in, &all, &guest);

	if (r > 0)
		r = tour(in->run, &guest, 1, progress, "statistics", reterr);
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
