/* Phases of the job, matched by name: how long they took, the CPU time in them, their peak of memory.
 *
 * Each recording is walked once, whatever the number of phases: what was used between two ticks goes to the
 * phases that were open then, by the share of the time that they were. Of several occurrences in a run times
 * are added and the highest peak counts; of several nodes the longest counts as the duration, and CPU time
 * and peaks are added. Which metrics are the job's CPU and memory the panels say. */
#include "analysis/compare.h"

#include "base/str.h"
#include "query/series.h"
#include "analysis/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 200
#define CPU_PANEL "cpu"
#define MEMORY_PANEL "memory"

/* What one run, or one recording of it, did in each phase; by the index of its name. */
struct phase_sums {
	double value[NAMES_MAX][NR_PHASE_VALUES]; /* NAN: not known */
};

struct phases {
	char *name[NAMES_MAX];
	uint64_t hash[NAMES_MAX];
	size_t nr;
	bool full; /* there were more */
};

/* ---- names ---- */

static int name_index(struct phases *p, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));

	for (size_t i = 0; i < p->nr; i++)
		if (p->hash[i] == hash && !strcmp(p->name[i], name))
			return (int)i;
	if (p->nr == NAMES_MAX) {
		p->full = true;
		return -ENOSPC;
	}
	p->name[p->nr] = strdup(name);
	if (!p->name[p->nr])
		return -ENOMEM;
	p->hash[p->nr] = hash;
	return (int)p->nr++;
}

static void phases_release(struct phases *p)
{
	for (size_t i = 0; i < p->nr; i++)
		free(p->name[i]);
}

/* ---- one recording ---- */

static const char *panel_metric(const char *id, bool peak)
{
	for (size_t i = 0; i < nr_panels; i++)
		if (!strcmp(panels[i].id, id))
			return panels[i].metric[peak && panels[i].peak > 0 ? panels[i].peak - 1 : 0];
	return NULL;
}

/* NAN is nothing yet. */
static void add(double *to, double value)
{
	if (!isnan(value))
		*to = isnan(*to) ? value : *to + value;
}

static void raise_to(double *to, double value)
{
	if (!isnan(value))
		*to = isnan(*to) ? value : MAX(*to, value);
}

struct phase_usage {
	const struct run_event *phase; /* by time */
	size_t nr, next;
	size_t *open; /* those that have begun and not ended */
	size_t nr_open;
	const int *name; /* of each phase */
	uint32_t node;
	struct phase_sums *sums;
};

/* What there was at `time_s`, and in the time since `last_s`. */
static void phase_usage_tick(struct phase_usage *w, double last_s, double time_s, double cores, double memory)
{
	size_t kept = 0;

	for (; w->next < w->nr && w->phase[w->next].time_s < time_s; w->next++)
		if (w->phase[w->next].node == w->node && w->name[w->next] >= 0)
			w->open[w->nr_open++] = w->next;
	for (size_t i = 0; i < w->nr_open; i++) {
		const struct run_event *m = &w->phase[w->open[i]];
		double *value = w->sums->value[w->name[w->open[i]]];
		double from = MAX(m->time_s, last_s), to = MIN(m->end_s, time_s);

		if (to > from)
			add(&value[PHASE_CPU], cores * (to - from));
		if (m->end_s >= time_s)
			raise_to(&value[PHASE_MEMORY], memory);
		if (m->end_s > time_s)
			w->open[kept++] = w->open[i];
	}
	w->nr_open = kept;
}

static int phase_usage_of_recording(struct phase_usage *w, const char *path, int64_t start_ns)
{
	const char *metric[] = {panel_metric(CPU_PANEL, false), panel_metric(MEMORY_PANEL, true)};
	struct series_query query = {.metric = metric, .nr = 2};
	struct series_point point;
	struct series *s = NULL;
	double offset = 0, last = 0;
	struct buf why;
	int r;

	buf_init(&why, 10000);
	r = metric[0] && metric[1] ? series_open(path, &query, &s, &why) : -ENOENT;
	buf_release(&why);
	if (r < 0) /* without these metrics the durations are still known */
		return r == -ENOMEM ? r : 0;
	if (start_ns > 0 && series_start(s) > 0)
		offset = (double)(series_start(s) - start_ns) / 1e9;
	while ((r = series_next(s, &point)) > 0) {
		double time = offset + (double)point.time_ns / 1e9;

		phase_usage_tick(w, last, time, point.value[0], point.value[1]);
		last = time;
	}
	series_close(s);
	return r == -ENOMEM ? r : 0; /* damage ends what can be known, not the comparison */
}

/* ---- one run ---- */

static void sums_clear(struct phase_sums *s)
{
	for (size_t i = 0; i < NAMES_MAX; i++)
		for (int k = 0; k < NR_PHASE_VALUES; k++)
			s->value[i][k] = NAN;
}

static int run_sums(const struct run *run, const struct run_events *m, const int *name, int64_t start_ns,
	struct phase_sums *ret)
{
	struct phase_sums *own = malloc(sizeof(*own));
	size_t *open = calloc(MAX(m->nr_phases, (size_t)1), sizeof(*open));
	int r = own && open ? 0 : -ENOMEM;

	sums_clear(ret);
	for (size_t n = 0; r >= 0 && n < run->nr; n++) {
		struct phase_usage w = {
			m->phase, m->nr_phases, .open = open, .name = name, .node = (uint32_t)n, .sums = own};

		sums_clear(own);
		for (size_t i = 0; i < m->nr_phases; i++)
			if (m->phase[i].node == n && name[i] >= 0)
				add(&own->value[name[i]][PHASE_DURATION],
					m->phase[i].end_s - m->phase[i].time_s);
		r = phase_usage_of_recording(&w, run->path[n], start_ns);
		for (size_t i = 0; i < NAMES_MAX; i++) {
			raise_to(&ret->value[i][PHASE_DURATION], own->value[i][PHASE_DURATION]);
			add(&ret->value[i][PHASE_CPU], own->value[i][PHASE_CPU]);
			add(&ret->value[i][PHASE_MEMORY], own->value[i][PHASE_MEMORY]);
		}
	}
	free(open);
	free(own);
	return r;
}

/* ---- all of them ---- */

static int make_figures(struct comparison *c, const struct phases *p)
{
	static const char *const value_name[] = {"duration_s", "cpu_s", "peak_memory_bytes"};
	char name[600];

	c->phase = calloc(p->nr * NR_PHASE_VALUES, sizeof(*c->phase));
	if (!c->phase)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr * NR_PHASE_VALUES; i++) {
		struct compare_figure *f = &c->phase[i];

		snprintf(name, sizeof(name), "phases.%.500s.%s", p->name[i / NR_PHASE_VALUES],
			value_name[i % NR_PHASE_VALUES]);
		f->name = strdup(name);
		f->of = calloc(c->nr_sets, sizeof(*f->of));
		c->nr_phase_figures++;
		if (!f->name || !f->of)
			return -ENOMEM;
		f->unit = compare_unit_of(f->name);
		f->matters = true;
	}
	return 0;
}

static int add_run(struct comparison *c, size_t operand, const struct run_events *m, const int *name,
	struct phase_sums *sums)
{
	const struct compare_operand *o = &c->operand[operand];
	const struct compare_set *set = &c->set[o->set];
	const struct summary *s = set->run[operand - set->first];
	int r = run_sums(o->run, m, name, s->start_wall_ns, sums);

	for (size_t i = 0; r >= 0 && i < c->nr_phase_figures; i++)
		compare_values_add(
			&c->phase[i].of[o->set], sums->value[i / NR_PHASE_VALUES][i % NR_PHASE_VALUES]);
	return r;
}

static int name_phases(struct phases *p, const struct run_events *m, int **ret)
{
	int *name = calloc(MAX(m->nr_phases, (size_t)1), sizeof(*name));

	if (!name)
		return -ENOMEM;
	*ret = name;
	for (size_t i = 0; i < m->nr_phases; i++) {
		name[i] = name_index(p, m->phase[i].label);
		if (name[i] == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

int compare_phases(struct comparison *c, struct buf *reterr)
{
	struct run_events **m = calloc(c->nr_operands, sizeof(struct run_events *));
	int **name = calloc(c->nr_operands, sizeof(int *));
	struct phase_sums *sums = malloc(sizeof(*sums));
	struct phases p = {.nr = 0};
	int r = m && name && sums ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < c->nr_operands; i++) {
		r = run_events_read(c->operand[i].run, &m[i], reterr);
		if (r >= 0)
			r = name_phases(&p, m[i], &name[i]);
	}
	if (r >= 0 && p.nr)
		r = make_figures(c, &p);
	for (size_t i = 0; r >= 0 && p.nr && i < c->nr_operands; i++)
		r = add_run(c, i, m[i], name[i], sums);
	if (r >= 0 && p.full)
		r = compare_warn(c, "only the first %d phases are compared", NAMES_MAX);
	for (size_t i = 0; i < c->nr_operands; i++) {
		if (m)
			run_events_free(m[i]);
		if (name)
			free(name[i]);
	}
	phases_release(&p);
	free(sums);
	free(name);
	free(m);
	return r;
}
