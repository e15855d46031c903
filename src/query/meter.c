/* The peak of a rate is the number that sampling spoils most easily: it is a maximum, so it picks the worst
 * error. Three things spoil it. A sample right after exec or at exit makes a sliver of an interval: slivers
 * are merged with their neighbour. The kernel keeps children's CPU time in hundredths of a second, so that it
 * arrives in lumps: the caller gives a step no shorter than a few of them. And a process may be read late
 * within its tick, which moves use from one interval to the next, up to more cores than the machine has:
 * windows of 2, 4, 8... steps slide along too, and the answer is that of the shortest window that is possible
 * at all. The window is part of the answer, so nothing is hidden; clamping to the number of CPUs would be a
 * lie of its own. */
#include "query/meter.h"

#include <math.h>
#include <string.h>

void meter_init(struct meter *m, double step)
{
	*m = (struct meter){.step = step};
}

static void meter_try(
	struct meter *m, unsigned level, const struct meter_knot *from, const struct meter_knot *to)
{
	double elapsed = to->time - from->time, rate = (to->amount - from->amount) / elapsed;

	if (!(elapsed > 0) || (m->has[level] && rate <= m->peak[level]))
		return;
	m->has[level] = true;
	m->peak[level] = rate;
	m->peak_at[level] = to->time;
	m->window[level] = elapsed;
}

static const struct meter_knot *meter_back(const struct meter *m, unsigned n)
{
	return &m->knot[(m->at + METER_RING - n) % METER_RING];
}

void meter_add(struct meter *m, double time, double amount)
{
	struct meter_knot knot = {.time = time, .amount = amount};

	if (m->nr && time - meter_back(m, 1)->time < m->step) {
		m->held = knot;
		m->holds = true;
		return;
	}
	m->holds = false;
	for (unsigned level = 0; level < METER_LEVELS && (1u << level) <= m->nr; level++)
		meter_try(m, level, meter_back(m, 1u << level), &knot);
	m->knot[m->at] = knot;
	m->at = (m->at + 1) % METER_RING;
	m->nr = MIN(m->nr + 1, (unsigned)METER_RING);
}

/* A sliver at the end belongs to the interval before it. */
static void meter_settle(struct meter *m)
{
	if (m->holds)
		for (unsigned level = 0; level < METER_LEVELS && (1u << level) < m->nr; level++)
			meter_try(m, level, meter_back(m, (1u << level) + 1), &m->held);
	m->holds = false;
}

void meter_break(struct meter *m)
{
	meter_settle(m);
	m->nr = m->at = 0;
}

bool meter_peak(struct meter *m, double most, double *ret_rate, double *ret_at, double *ret_window)
{
	unsigned level = 0;

	meter_settle(m);
	if (!m->has[0])
		return false;
	while (most > 0 && m->peak[level] > most && level + 1 < METER_LEVELS && m->has[level + 1])
		level++;
	*ret_rate = m->peak[level];
	*ret_at = m->peak_at[level];
	*ret_window = m->window[level];
	return true;
}

void top_add(struct top *t, double value, double at)
{
	if (t->has && value <= t->value)
		return;
	*t = (struct top){.has = true, .value = value, .at = at};
}

static void spark_halve(struct spark *s)
{
	for (unsigned i = 0; i < SPARK_BUCKETS / 2; i++) {
		__typeof__(s->bucket[0]) a = s->bucket[2 * i], b = s->bucket[2 * i + 1];

		if (!a.weight)
			a.max = b.max;
		s->bucket[i].max = b.weight ? MAX(a.max, b.max) : a.max;
		s->bucket[i].sum = a.sum + b.sum;
		s->bucket[i].weight = a.weight + b.weight;
	}
	memset(&s->bucket[SPARK_BUCKETS / 2], 0, sizeof(s->bucket) / 2);
	s->width *= 2;
}

void spark_add(struct spark *s, double from, double to, double value)
{
	from = MAX(from, 0);
	if (!(to > from) || !isfinite(to) || !isfinite(value))
		return;
	if (s->width == 0)
		s->width = 0.001;
	while (to > s->width * SPARK_BUCKETS)
		spark_halve(s);
	for (unsigned i = (unsigned)(from / s->width); i < SPARK_BUCKETS && i * s->width < to; i++) {
		double part = MIN(to, (i + 1) * s->width) - MAX(from, i * s->width);

		if (!(part > 0))
			continue;
		s->bucket[i].max = s->bucket[i].weight ? MAX(s->bucket[i].max, value) : value;
		s->bucket[i].sum += value * part;
		s->bucket[i].weight += part;
	}
}

void spark_draw(const struct spark *s, double end, bool greatest, double *out, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		double from = end * i / nr, to = end * (i + 1) / nr, sum = 0, weight = 0, max = 0;

		for (unsigned b = 0; b < SPARK_BUCKETS && s->width > 0; b++) {
			double part = MIN(to, (b + 1) * s->width) - MAX(from, b * s->width);

			if (part <= 0 || !s->bucket[b].weight)
				continue;
			max = weight ? MAX(max, s->bucket[b].max) : s->bucket[b].max;
			/* A bucket that is partly known counts only with what is known of it. */
			part *= s->bucket[b].weight / s->width;
			sum += part * s->bucket[b].sum / s->bucket[b].weight;
			weight += part;
		}
		out[i] = weight ? (greatest ? max : sum / weight) : NAN;
	}
}
