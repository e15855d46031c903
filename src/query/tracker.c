/* Peaks are peaks of sums at an instant, with the instant: adding up the peaks of processes (or of nodes)
 * that were reached at different times would give a number that never was. */
#include "query/tracker.h"

/* The kernel gives children's CPU time in hundredths of a second: below some of them a rate is mostly
 * rounding. */
#define SHORTEST_STEP 0.05

void tracker_init(struct tracker *t, double interval_s)
{
	*t = (struct tracker){0};
	meter_init(&t->cpu, MAX(interval_s / 2, SHORTEST_STEP));
}

void tracker_begin(struct tracker *t, double time)
{
	tracker_cpu(t, time, 0, false);
	t->level_time = time;
}

void tracker_cpu(struct tracker *t, double time, double cpu_s, bool gap)
{
	if (gap)
		meter_break(&t->cpu);
	meter_add(&t->cpu, time, cpu_s);
	if (t->has_cpu && !gap && time > t->cpu_time)
		spark_add(&t->cpu_shape, t->cpu_time, time, (cpu_s - t->cpu_s) / (time - t->cpu_time));
	t->has_cpu = true;
	t->cpu_s = cpu_s;
	t->cpu_time = time;
}

static double share(const int64_t *level, enum level estimated, enum level all)
{
	return level[all] > 0 ? (double)level[estimated] / (double)level[all] : 0;
}

void tracker_levels(struct tracker *t, double time, const int64_t *level, uint32_t valid)
{
	double since = t->level_time;

	t->level_time = time;
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		bool higher = !t->top[i].has || (double)level[i] > t->top[i].value;

		if (!(valid >> i & 1) || !higher)
			continue;
		top_add(&t->top[i], (double)level[i], time);
		if (i == LEVEL_PSS)
			t->estimated_pss = share(level, LEVEL_PSS_ESTIMATED, LEVEL_PSS);
		if (i == LEVEL_USS)
			t->estimated_uss = share(level, LEVEL_USS_ESTIMATED, LEVEL_USS);
	}
	if (valid >> LEVEL_PROCESSES & 1 && level[LEVEL_PROCESSES] > 0 && time > since)
		t->active_s += time - since;
	if (valid >> LEVEL_PSS & 1)
		spark_add(&t->pss_shape, since, time, (double)level[LEVEL_PSS]);
	if (valid >> LEVEL_RSS & 1)
		spark_add(&t->rss_shape, since, time, (double)level[LEVEL_RSS]);
}
