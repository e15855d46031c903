/* One line of a curves in the making: points for display, and exact numbers of all its ticks beside them.
 *
 * Most lines rest most of the time (a process that sleeps, a limit that never changes). So a value is not
 * taken at every tick but when it changes: until then it is a run, with as many ticks and as much time as
 * passed. Runs end where a point ends.
 *
 * A level holds from its tick to the next, a rate stands for the time since the tick before; averages and
 * quantiles are weighted with that. Over what was lost nothing holds. */
#include "query/curves_internal.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

int curve_new(bool late, bool rates, bool spread, struct curve_reduction **ret)
{
	struct curve_reduction *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->late = late;
	t->rates = rates;
	t->least = t->most = t->most_at = t->begin = t->end = NAN;
	t->spread = spread ? spread_new() : NULL;
	if (spread && !t->spread) {
		curve_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

struct curve_reduction *curve_free(struct curve_reduction *t)
{
	if (!t)
		return NULL;
	free(t->point);
	spread_free(t->spread);
	free(t);
	return NULL;
}

/* NULL: no memory. */
static struct curve_point *point_of(struct curve_reduction *t, uint32_t slot)
{
	uint32_t at;

	if (!t->nr)
		t->first = slot;
	at = slot - t->first;
	if (ARRAY_ROOM(t->point, t->cap, (size_t)at + 1) < 0)
		return NULL;
	if (at >= t->nr) {
		memset(t->point + t->nr, 0, (at + 1 - t->nr) * sizeof(*t->point));
		t->nr = at + 1;
	}
	return &t->point[at];
}

static void point_merge(struct curve_point *to, const struct curve_point *from)
{
	if (!from->nr)
		return;
	to->low = to->nr ? MIN(to->low, from->low) : from->low;
	to->high = to->nr ? MAX(to->high, from->high) : from->high;
	to->sum += from->sum;
	to->nr += from->nr;
}

static void count_ticks(struct curve_reduction *t, uint64_t ticks, double weight)
{
	double v = t->value;

	t->plain += v * (double)ticks;
	t->ticks += ticks;
	if (weight > 0) {
		t->weighted += v * weight;
		t->weight += weight;
		if (t->spread)
			spread_add(t->spread, v, weight);
	}
	if (!(t->most >= v)) {
		t->most = v;
		t->most_at = t->from;
	}
	t->least = t->least <= v ? t->least : v;
	if (isnan(t->begin))
		t->begin = v;
	t->end = v;
}

/* The run ends before this tick. */
static void run_end(struct curve_reduction *t, const struct clock *c)
{
	uint64_t ticks = c->tick - t->from_tick;
	struct curve_point *point;
	double weight;

	t->open = false;
	if (!ticks || isnan(t->value))
		return;
	point = point_of(t, t->slot);
	if (!point) {
		t->err = -ENOMEM;
		return;
	}
	point_merge(point,
		&(struct curve_point){.sum = t->value * (double)ticks,
			.low = (float)t->value,
			.high = (float)t->value,
			.nr = (uint32_t)MIN(ticks, UINT32_MAX)});
	if (t->rates)
		weight = c->before - (isnan(t->before) ? t->from : t->before);
	else
		weight = (c->gap ? c->before : c->time) - t->from;
	count_ticks(t, ticks, weight);
}

static void run_begin(struct curve_reduction *t, const struct clock *c, double value)
{
	t->open = true;
	t->value = value;
	t->from = c->time;
	t->before = c->gap ? NAN : c->before;
	t->from_tick = c->tick;
	t->slot = c->slot;
}

void curve_put(struct curve_reduction *t, const struct clock *c, double value)
{
	if (t->open && (value == t->value || (isnan(value) && isnan(t->value))))
		return;
	if (t->open)
		run_end(t, c);
	run_begin(t, c, value);
}

void curve_break(struct curve_reduction *t, const struct clock *c)
{
	if (!t->open)
		return;
	run_end(t, c);
	run_begin(t, c, t->value);
}

void curve_remap(struct curve_reduction *t, const uint32_t *map)
{
	uint32_t first = t->nr ? map[t->first] : 0;
	uint32_t nr = t->nr ? map[t->first + t->nr - 1] - first + 1 : 0;
	struct curve_point *point = calloc(MAX(nr, 1u), sizeof(*point));

	if (t->open)
		t->slot = map[t->slot];
	for (uint32_t i = 0; point && i < t->nr; i++)
		point_merge(&point[map[t->first + i] - first], &t->point[i]);
	if (!point) {
		t->err = -ENOMEM;
		nr = 0;
	}
	free(t->point);
	t->point = point;
	t->first = first;
	t->nr = nr;
	t->cap = point ? MAX(nr, 1u) : 0;
}

static int line_arrays(
	const struct curve_reduction *t, const struct curves_axis *a, size_t nr, struct curves_line *ret)
{
	bool reduced = a->step > 0;

	ret->mean = calloc(nr + 1, sizeof(*ret->mean));
	ret->low = reduced ? calloc(nr + 1, sizeof(*ret->low)) : ret->mean;
	ret->high = reduced ? calloc(nr + 1, sizeof(*ret->high)) : ret->mean;
	if (!ret->mean || !ret->low || !ret->high)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		ret->mean[i] = ret->low[i] = ret->high[i] = NAN;
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct curve_point *p = &t->point[i];
		uint32_t at = a->map[t->first + i];

		if (!p->nr)
			continue;
		ret->low[at] = p->low;
		ret->high[at] = p->high;
		ret->mean[at] = (float)(p->sum / p->nr);
	}
	return 0;
}

int curve_finish(const struct curve_reduction *t, const struct curves_axis *a, const struct curves_node *node,
	struct curves_line *ret)
{
	ret->average = t->weight > 0 ? t->weighted / t->weight : t->ticks ? t->plain / (double)t->ticks : NAN;
	ret->least = t->least;
	ret->most = ret->highest = t->most;
	ret->most_at_s = t->most_at;
	ret->first = t->begin;
	ret->last = t->end;
	return line_arrays(t, a, node->nr_times, ret);
}
