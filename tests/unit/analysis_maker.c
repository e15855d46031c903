#include "analysis_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void fill_summary(struct summary *s, const char *host, double wall)
{
	for (enum figure_id id = 0; id < NR_FIGURES; id++)
		figure_unset(s, id, "");
	s->host = strdup(host);
	s->mode = strdup("run");
	s->complete = true;
	s->start_wall_ns = INT64_C(1700000000) * NSEC_PER_SEC;
	figure_set(s, FIG_WALL, wall);
	figure_set(s, FIG_EXIT_CODE, 0);
	figure_set(s, FIG_TICKS, 100);
	figure_set(s, FIG_LIMIT_CPUS, 8);
	figure_set(s, FIG_MACHINE_CPUS, 8);
	figure_set(s, FIG_LIMIT_MEMORY, 16 * GIB);
	figure_set(s, FIG_MACHINE_MEMORY, 16 * GIB);
}

void analysis_open(struct analysis_maker *m, size_t nodes, double wall, double step)
{
	size_t nr = (size_t)(wall / step) + 1;
	char host[24];

	memset(m, 0, sizeof(*m));
	m->wall = wall;
	m->step = step;
	fill_summary(&m->summary, "n0", wall);
	for (size_t i = 0; i < nodes; i++) {
		snprintf(host, sizeof(host), "n%zu", i);
		if (nodes > 1)
			fill_summary(&m->node[i], host, wall);
		m->axis[i] = (struct curves_node){.host = "", .nr_times = nr, .step_s = step, .end_s = wall};
		m->axis[i].time_s = calloc(nr, sizeof(double));
		for (size_t k = 0; k < nr; k++)
			m->axis[i].time_s[k] = (double)k * step;
	}
	if (nodes > 1) {
		m->summary.node = m->node;
		m->summary.nr_nodes = nodes;
		figure_set(&m->summary, FIG_LIMIT_CPUS, 8 * (double)nodes);
		figure_set(&m->summary, FIG_MACHINE_CPUS, 8 * (double)nodes);
	}
	m->curves = (struct curves){
		.node = m->axis, .nr_nodes = nodes, .column = m->column, .nr_columns = NR_EVIDENCE + 1};
	/* The panels' question comes first. */
	m->column[0] = (struct curves_column){.name = "proc.mem.pss_now", .known = true};
	for (size_t i = 0; i < NR_EVIDENCE; i++)
		m->column[i + 1] = (struct curves_column){.name = finding_query[i].metric, .known = true};
	m->analysis = (struct analysis){.summary = &m->summary,
		.processes = &m->table,
		.curves = &m->curves,
		.stats = &m->stats,
		.first_finding_query = 1,
		.nr_nodes = nodes};
}

static void release_summary(struct summary *s)
{
	free(s->host);
	free(s->mode);
	for (size_t i = 0; i < NR_TEXTS; i++)
		free(s->text[i]);
	for (size_t i = 0; i < s->nr_environment; i++) {
		free(s->environment[i].name);
		free(s->environment[i].value);
	}
	free(s->environment);
	for (size_t i = 0; i < s->nr_gpus; i++)
		for (unsigned k = 0; k < NR_GPU_TEXTS; k++)
			free(s->gpu[i].text[k]);
	free(s->gpu);
}

void analysis_close(struct analysis_maker *m)
{
	release_summary(&m->summary);
	for (size_t i = 0; i < MAKER_NODES; i++) {
		release_summary(&m->node[i]);
		free(m->axis[i].time_s);
	}
	for (size_t i = 0; i < m->curves.nr_lines; i++) {
		free(m->curves.line[i].mean);
		free(m->curves.line[i].name);
	}
	free(m->curves.line);
	for (size_t i = 0; i < m->table.nr; i++) {
		free(m->table.row[i].name);
		free(m->table.row[i].command);
	}
	free(m->table.row);
	for (unsigned i = 0; i < NR_STATS_LEVELS; i++)
		free(m->stats.row[i]);
	m->found = findings_free(m->found);
}

struct summary *analysis_part(struct analysis_maker *m, size_t node)
{
	return m->summary.nr_nodes ? &m->node[node] : &m->summary;
}

void analysis_set(struct analysis_maker *m, enum figure_id id, double value)
{
	figure_set(&m->summary, id, value);
}

void analysis_text(struct summary *s, enum text_id id, const char *text)
{
	free(s->text[id]);
	s->text[id] = strdup(text);
}

void analysis_fact(struct summary *s, const char *name, const char *value)
{
	assert_int_equal(summary_fact_add(&s->environment, &s->nr_environment, name, value), 0);
}

static void seal(struct curves_line *line, const struct curves_node *axis)
{
	double sum = 0;
	size_t nr = 0;

	line->average = line->least = line->most = line->most_at_s = line->first = line->last = NAN;
	for (size_t i = 0; i < axis->nr_times; i++) {
		double v = line->mean[i];

		if (isnan(v))
			continue;
		if (!nr++)
			line->first = v;
		line->last = v;
		sum += v;
		line->least = line->least <= v ? line->least : v;
		if (line->most >= v)
			continue;
		line->most = v;
		line->most_at_s = axis->time_s[i];
	}
	line->average = sum / (double)nr;
}

static struct curves_line *add_line(struct analysis_maker *m, unsigned query, size_t node, const char *name,
	double (*value)(double t, const double *arg), const double *arg)
{
	const struct curves_node *axis = &m->axis[node];
	struct curves_line *line = reallocarray(m->curves.line, m->curves.nr_lines + 1, sizeof(*line));

	assert_non_null(line);
	m->curves.line = line;
	/* By query, then node, as they are read. */
	size_t at = curves_first_line(&m->curves, query, (uint32_t)node + 1);

	memmove(line + at + 1, line + at, (m->curves.nr_lines - at) * sizeof(*line));
	line += at;
	m->curves.nr_read = ++m->curves.nr_lines;
	*line = (struct curves_line){
		.query = query, .node = (uint32_t)node, .name = strdup(name ? name : "")};
	line->name_len = strlen(line->name);
	line->mean = line->low = line->high = calloc(axis->nr_times, sizeof(float));
	for (size_t i = 0; i < axis->nr_times; i++)
		line->mean[i] = (float)value(axis->time_s[i], arg);
	seal(line, axis);
	return line;
}

void analysis_curve(struct analysis_maker *m, enum evidence_id id, size_t node, const char *name,
	double (*value)(double t, const double *arg), const double *arg)
{
	add_line(m, (unsigned)id + 1, node, name, value, arg);
}

static double same(double t, const double *arg)
{
	(void)t;
	return *arg;
}

void analysis_flat(struct analysis_maker *m, enum evidence_id id, size_t node, const char *name, double value)
{
	analysis_curve(m, id, node, name, same, &value);
}

static double ramp(double t, const double *arg)
{
	return 1000 + t * *arg;
}

void analysis_ramp(struct analysis_maker *m, enum evidence_id id, size_t node, const char *name, double per_s)
{
	analysis_curve(m, id, node, name, ramp, &per_s);
}

void analysis_process_curve(
	struct analysis_maker *m, int64_t pid, const char *name, double (*value)(double t, const double *arg))
{
	add_line(m, 0, 0, name, value, NULL)->pid = pid;
}

struct process_row *analysis_process(struct analysis_maker *m, size_t node, int64_t pid, const char *name,
	double start, double end, double cpu)
{
	struct process_table *t = &m->table;
	struct process_row *row;

	if (t->nr == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 16;
		t->row = reallocarray(t->row, t->cap, sizeof(*t->row));
		assert_non_null(t->row);
	}
	row = &t->row[t->nr++];
	*row = (struct process_row){.name = strdup(name),
		.name_len = strlen(name),
		.command = strdup(name),
		.command_len = strlen(name),
		.exe = "",
		.groups = "",
		.sampled = true,
		.ended = true,
		.status = 0,
		.node = (uint32_t)node};
	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++)
		row->value[i] = NAN;
	row->value[PROCESS_PID] = (double)pid;
	row->value[PROCESS_PPID] = 1;
	row->value[PROCESS_START] = start;
	row->value[PROCESS_END] = end;
	row->value[PROCESS_WALL] = end - start;
	row->value[PROCESS_CPU] = cpu;
	return row;
}

struct summary_gpu *analysis_gpu(
	struct analysis_maker *m, const char *name, double util_mean, double util_max)
{
	struct summary_gpu *gpu = reallocarray(m->summary.gpu, m->summary.nr_gpus + 1, sizeof(*gpu));

	assert_non_null(gpu);
	m->summary.gpu = gpu;
	gpu += m->summary.nr_gpus++;
	*gpu = (struct summary_gpu){.index = (int64_t)m->summary.nr_gpus - 1};
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++)
		gpu->figure[i] = (struct figure){.value = NAN, .why = "not known"};
	gpu->figure[GPU_FIG_UTIL_MEAN] = (struct figure){.value = util_mean};
	gpu->figure[GPU_FIG_UTIL_MAX] = (struct figure){.value = util_max};
	gpu->figure[GPU_FIG_OBSERVED] = (struct figure){.value = m->wall};
	gpu->text[GPU_TEXT_INSTANCE] = strdup(name);
	gpu->text[GPU_TEXT_JOB] = strdup("yes");
	return gpu;
}

void analysis_p95(struct analysis_maker *m, double run, double node)
{
	size_t nodes = m->analysis.nr_nodes;

	free(m->stats.row[STATS_RUN]);
	free(m->stats.row[STATS_NODE]);
	m->stats.row[STATS_RUN] = calloc(1, sizeof(struct stats_row));
	m->stats.row[STATS_NODE] = calloc(nodes, sizeof(struct stats_row));
	m->stats.nr[STATS_RUN] = 1;
	m->stats.nr[STATS_NODE] = nodes;
	m->stats.row[STATS_RUN][0].value[STAT_CORES_P95] = run;
	for (size_t i = 0; i < nodes; i++)
		m->stats.row[STATS_NODE][i].value[STAT_CORES_P95] = node;
}

static void find_anew(struct analysis_maker *m)
{
	m->found = findings_free(m->found);
	assert_int_equal(findings_make(&m->analysis, &m->found), 0);
}

const struct finding *analysis_find(struct analysis_maker *m, const char *id)
{
	find_anew(m);
	for (size_t i = 0; i < m->found->nr; i++)
		if (!strcmp(m->found->item[i].id, id))
			return &m->found->item[i];
	return NULL;
}

const char *analysis_ids(struct analysis_maker *m)
{
	static char ids[1000];
	size_t at = 0;

	find_anew(m);
	ids[0] = 0;
	for (size_t i = 0; i < m->found->nr && at < sizeof(ids); i++)
		at += (size_t)snprintf(
			ids + at, sizeof(ids) - at, "%s%s", i ? " " : "", m->found->item[i].id);
	return ids;
}
