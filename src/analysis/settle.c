/* A curve is sampled, and says what its points say. What all of it amounts to (the mean, the most) is known
 * better: by totals, births and ends, and the kernel's own marks. So the numbers beside the curve of a run, a
 * node, a group or a process are those of the statistics, which have them from the summary; each row here
 * says which. Titles, legends and annotations take them from the line, and tell what is drawn where that is
 * less. Of a part of the run (--from, --to) the curve is all that is known. */
#include "analysis/analysis.h"

#include <math.h>
#include <string.h>

#define OWN NR_STATS /* the curve's own number is the only one */

static const struct settle_known {
	const char *metric;
	enum stats_id mean, most, at;
} known[] = {
	{"tree.cores", STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_CORES_PEAK_AT},
	{"group.cores", STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_CORES_PEAK_AT},
	{"proc.cpu.cores", STAT_CORES_MEAN, STAT_CORES_PEAK, STAT_CORES_PEAK_AT},
	{"tree.cpu", OWN, STAT_CPU, OWN},
	{"group.cpu", OWN, STAT_CPU, OWN},
	{"proc.mem.rss", STAT_RSS_MEAN, STAT_RSS_PEAK, STAT_RSS_PEAK_AT},
	{"proc.mem.pss_now", STAT_PSS_MEAN, STAT_PSS_PEAK, STAT_PSS_PEAK_AT},
	{"proc.mem.uss_now", STAT_USS_MEAN, STAT_USS_PEAK, STAT_USS_PEAK_AT},
	{"proc.mem.swap", OWN, STAT_SWAP_PEAK, OWN},
	{"tree.processes", OWN, STAT_PROCESSES_PEAK, OWN},
	{"group.processes", OWN, STAT_PROCESSES_PEAK, OWN},
	{"proc.threads", OWN, STAT_THREADS_PEAK, OWN},
	{"tree.disk.read_rate", OWN, STAT_READ_RATE_PEAK, OWN},
	{"tree.disk.write_rate", OWN, STAT_WRITE_RATE_PEAK, OWN},
};

/* Of each device. */
static const struct known_gpu {
	const char *metric;
	int mean; /* -1: the curve's own */
	enum gpu_figure_id most;
	double scale;
} known_gpu[] = {
	{"gpu.util", GPU_FIG_UTIL_MEAN, GPU_FIG_UTIL_MAX, 0.01},
	{"gpu.mem_util", GPU_FIG_MEM_UTIL_MEAN, GPU_FIG_MEM_UTIL_MAX, 0.01},
	{"gpu.memory.used", -1, GPU_FIG_MEMORY_PEAK, 1},
	{"gpu.watts", GPU_FIG_POWER_MEAN, GPU_FIG_POWER_MAX, 1},
	{"gpu.temperature", -1, GPU_FIG_TEMPERATURE_MAX, 1},
	{"gpu.clock.sm", GPU_FIG_CLOCK_MEAN, GPU_FIG_CLOCK_MAX, 1},
};

static const struct settle_known *known_of(const char *metric)
{
	for (size_t i = 0; metric && i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].metric, metric))
			return &known[i];
	return NULL;
}

bool is_settled(const char *metric)
{
	return known_of(metric);
}

static const struct stats_row *group_row(const struct analysis *s, const struct curves_line *line)
{
	for (size_t i = 0; i < s->summary->nr_groups; i++) {
		const char *name = s->summary->group[i].name;

		if (strlen(name) == line->name_len && !memcmp(name, line->name, line->name_len))
			return &s->stats->row[STATS_GROUP][i];
	}
	return NULL;
}

static const struct stats_row *process_row(const struct analysis *s, const struct curves_line *line)
{
	for (size_t i = 0; i < s->nr_keep && !line->others; i++)
		if (s->keep[i].node == line->node && s->keep[i].id == line->id)
			return &s->stats->row[STATS_PROCESS][s->keep_row[i]];
	return NULL;
}

/* Whose line it is; NULL: the statistics have nothing of it. */
static const struct stats_row *row_of(const struct analysis *s, const struct curves_line *line)
{
	bool all = s->curves->node[line->node].all;

	switch (s->curves->column[line->query].per) {
	case CURVES_WHOLE:
		return all ? s->stats->row[STATS_RUN] : &s->stats->row[STATS_NODE][line->node];
	case CURVES_GROUP: /* on one of several nodes it is not told */
		return all || s->nr_nodes == 1 ? group_row(s, line) : NULL;
	case CURVES_PROCESS:
		return process_row(s, line);
	default:
		return NULL;
	}
}

/* Of several nodes the mean over them: a curve of its own. */
static bool is_mean(const struct analysis *s, size_t line)
{
	for (size_t i = 0; i < s->nr_panels; i++)
		if (s->panel[i].mean >= 0 && (size_t)s->panel[i].mean == line)
			return true;
	return false;
}

/* The time of the curve's own most is that of what is known when they are the same. */
static void settle(struct curves_line *line, double mean, double most, double at)
{
	if (!isnan(mean))
		line->average = mean;
	if (isnan(most))
		return;
	if (!isnan(at) || !(fabs(most - line->most) <= 1e-9 * fabs(most)))
		line->most_at_s = at;
	line->most = most;
}

void curves_line_settle(struct curves_line *line, const char *metric, const struct stats_row *row)
{
	const struct settle_known *k = known_of(metric);

	if (k)
		settle(line, k->mean == OWN ? NAN : row->value[k->mean], row->value[k->most],
			k->at == OWN ? NAN : row->value[k->at]);
}

static bool is_gpu(const struct summary_gpu *gpu, const struct curves_line *line, const char *host)
{
	const char *name = gpu->text[GPU_TEXT_INSTANCE], *on = gpu->text[GPU_TEXT_HOST];

	return name && strlen(name) == line->name_len && !memcmp(name, line->name, line->name_len) &&
		(!on || !strcmp(on, host));
}

static void settle_gpu(const struct analysis *s, struct curves_line *line, const char *metric)
{
	const struct curves_node *node = &s->curves->node[line->node];
	const struct known_gpu *k = known_gpu;

	while (k < known_gpu + ARRAY_SIZE(known_gpu) && strcmp(k->metric, metric) != 0)
		k++;
	if (k == known_gpu + ARRAY_SIZE(known_gpu) || node->all)
		return;
	for (size_t i = 0; i < s->summary->nr_gpus; i++) {
		const struct figure *f = s->summary->gpu[i].figure;

		if (is_gpu(&s->summary->gpu[i], line, node->host))
			settle(line, k->mean < 0 || f[k->mean].why ? NAN : f[k->mean].value * k->scale,
				f[k->most].why ? NAN : f[k->most].value * k->scale, NAN);
	}
}

void analysis_settle(struct analysis *s)
{
	for (size_t i = 0; i < s->curves->nr_lines; i++) {
		struct curves_line *line = &s->curves->line[i];
		const struct curves_column *column = &s->curves->column[line->query];
		const struct stats_row *row;

		if (line->query >= s->first_finding_query || isnan(line->most) || is_mean(s, i))
			continue;
		row = row_of(s, line);
		if (row)
			curves_line_settle(line, column->name, row);
		else if (column->per == CURVES_INSTANCE)
			settle_gpu(s, line, column->name);
	}
}
