/* Peaks are peaks of sums at an instant, with the instant: adding up the peaks of processes (or of nodes)
 * that were reached at different times would give a number that never was. */
#include "query/tracker.h"

#include <math.h>

/* The kernel gives children's CPU time in hundredths of a second: below some of them a rate is mostly
 * rounding. */
#define SHORTEST_STEP 0.05

const enum used flow_used[NR_FLOWS] = {
	[FLOW_CPU] = USED_CPU, [FLOW_READ] = USED_READ_BYTES, [FLOW_WRITE] = USED_WRITE_BYTES};

void tracker_init(struct tracker *t, double interval_s, bool spreads)
{
	*t = (struct tracker){.spreads = spreads};
	meter_init(&t->cpu, MAX(interval_s / 2, SHORTEST_STEP));
	meter_init(&t->read, t->cpu.step);
	meter_init(&t->write, t->cpu.step);
}

void tracker_release(struct tracker *t)
{
	for (unsigned i = 0; i < NR_OVER; i++)
		t->over[i] = spread_free(t->over[i]);
}

/* Without memory it stays unknown. */
static void over_add(struct tracker *t, enum over which, double value, double seconds)
{
	if (!t->spreads || isnan(value) || !(seconds > 0))
		return;
	if (!t->over[which])
		t->over[which] = spread_new();
	if (t->over[which])
		spread_add(t->over[which], value, seconds);
}

/* Steps as short as a rate can be told over; time without a process does not count. */
static void over_cores(struct tracker *t, double time, double cpu_s, bool gap)
{
	double seconds = time - t->knot_time, used = MAX(cpu_s - t->knot_cpu, 0);

	if (t->has_cpu && !gap && seconds < t->cpu.step)
		return;
	if (t->has_cpu && !gap && (t->active || used > 0))
		over_add(t, OVER_CORES, used / seconds, seconds);
	t->knot_time = time;
	t->knot_cpu = cpu_s;
}

void tracker_begin(struct tracker *t, double time)
{
	tracker_cpu(t, time, 0, false);
	tracker_flow(t, FLOW_READ, time, 0, false);
	tracker_flow(t, FLOW_WRITE, time, 0, false);
	t->level_time = time;
}

void tracker_cpu(struct tracker *t, double time, double cpu_s, bool gap)
{
	tracker_flow(t, FLOW_CPU, time, cpu_s, gap);
	over_cores(t, time, cpu_s, gap);
	if (t->has_cpu && !gap && time > t->cpu_time)
		spark_add(&t->cpu_shape, t->cpu_time, time, (cpu_s - t->cpu_s) / (time - t->cpu_time));
	t->has_cpu = true;
	t->cpu_s = cpu_s;
	t->cpu_time = time;
}

void tracker_flow(struct tracker *t, enum flow flow, double time, double amount, bool gap)
{
	struct meter *meter = flow == FLOW_CPU ? &t->cpu : flow == FLOW_READ ? &t->read : &t->write;

	if (gap)
		meter_break(meter);
	meter_add(meter, time, amount);
}

static double share(const int64_t *level, enum level estimated, enum level all)
{
	/* What an estimate leaves out is uncertain, too. */
	return level[all] > 0 ? MIN((double)level[estimated] / (double)level[all], 1) : 0;
}

/* What the last point had, up to here. */
static void tracker_hold(struct tracker *t, double time)
{
	double seconds = time - t->level_time;

	t->level_time = time;
	for (unsigned i = OVER_RSS; t->active && i < NR_OVER; i++)
		over_add(t, i, t->held[i], seconds);
}

/* Some may not have been read: each had one at least. */
static void count_a_thread_each(struct tracker *t)
{
	const struct top *processes = &t->top[LEVEL_PROCESSES];
	struct top *threads = &t->top[LEVEL_THREADS];

	if (processes->has && threads->has && threads->value < processes->value)
		top_add(threads, processes->value, processes->at);
}

void tracker_levels(struct tracker *t, double time, const int64_t *level, uint32_t valid)
{
#define ROW(id, ...) [OVER_##id] = LEVEL_##id,
	static const enum level spread_level[NR_OVER] = {LEVELS_VIEWS(ROW)};
#undef ROW
	double since = t->level_time;

	tracker_hold(t, time);
	t->active = valid >> LEVEL_PROCESSES & 1 && level[LEVEL_PROCESSES] > 0;
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
	count_a_thread_each(t);
	for (unsigned i = OVER_RSS; i < NR_OVER; i++)
		t->held[i] = t->active && valid >> spread_level[i] & 1 ? (double)level[spread_level[i]] : NAN;
	/* The processes that are there now came at some time since the point before. */
	if (t->active && time > since)
		t->active_s += time - since;
	if (valid >> LEVEL_PSS & 1)
		spark_add(&t->pss_shape, since, time, (double)level[LEVEL_PSS]);
	if (valid >> LEVEL_RSS & 1)
		spark_add(&t->rss_shape, since, time, (double)level[LEVEL_RSS]);
}

static void top_reach(struct tracker *t, enum level level, double time, int64_t value)
{
	if (t->top[level].has && (double)value > t->top[level].value)
		top_add(&t->top[level], (double)value, time);
}

void tracker_between(struct tracker *t, double time, const struct between *between)
{
	top_reach(t, LEVEL_PROCESSES, time, between->processes);
	top_reach(t, LEVEL_THREADS, time, between->threads);
	count_a_thread_each(t);
	t->between_s += (double)between->active_ns / 1e9;
	t->active_s = t->between_s;
}
