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
	if (!t->open || isnan(t->value)) /* what is not known leaves nothing in any slot */
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

void curve_forget(struct curve_reduction *t, uint32_t nr)
{
	uint32_t gone = t->first < nr ? MIN(nr - t->first, t->nr) : 0;

	if (gone && gone < t->nr)
		memmove(t->point, t->point + gone, (t->nr - gone) * sizeof(*t->point));
	t->nr -= gone;
	t->first = t->first + gone > nr ? t->first + gone - nr : 0;
	t->slot -= MIN(t->slot, nr);
}

/* ---- what is kept ---- */

enum point_part { PART_MEAN, PART_LOW, PART_HIGH };

/* In one piece of memory. */
#define ARRAYS_AT_ONCE 8

void point_arrays_release(struct point_arrays *p)
{
	free(p->array);
	idmap_release(&p->by_hash);
}

static uint64_t hash_points(const float *value, size_t nr)
{
	uint64_t hash = nr;
	uint32_t bits;

	for (size_t i = 0; i < nr; i++) {
		memcpy(&bits, &value[i], sizeof(bits));
		hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static void fill_points(const struct curve_reduction *t, const struct curves_axis *a, size_t nr,
	enum point_part part, float *ret)
{
	for (size_t i = 0; i < nr; i++)
		ret[i] = NAN;
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct curve_point *p = &t->point[i];

		if (p->nr)
			ret[a->map[t->first + i]] = part == PART_LOW ? p->low
				: part == PART_HIGH		     ? p->high
								     : (float)(p->sum / p->nr);
	}
}

/* What was filled in last, or what is the same and was there before. NULL: no memory. */
static float *keep_points(struct point_arrays *p, size_t nr)
{
	uint64_t key = hash_points(p->room, nr);
	uint32_t same;
	float **more;

	while ((same = idmap_get(&p->by_hash, key)) != IDMAP_NONE &&
		memcmp(p->array[same], p->room, nr * sizeof(*p->room)) != 0)
		key++;
	if (same != IDMAP_NONE)
		return p->array[same];
	if (idmap_put(&p->by_hash, key, (uint32_t)p->nr) < 0)
		return NULL;
	more = ARRAY_ADD(p->array, p->nr);
	if (!more)
		return NULL;
	*more = p->room;
	p->room += MAX(nr, (size_t)1);
	p->left--;
	return *more;
}

static float *points_of(const struct curve_reduction *t, const struct curves_axis *a,
	struct curves_node *node, struct point_arrays *p, enum point_part part)
{
	size_t nr = node->nr_times;

	if (!p->left) {
		p->room = owned_alloc(&node->points, ARRAYS_AT_ONCE * MAX(nr, (size_t)1), sizeof(*p->room));
		if (!p->room)
			return NULL;
		p->left = ARRAYS_AT_ONCE;
	}
	fill_points(t, a, nr, part, p->room);
	return keep_points(p, nr);
}

int curve_finish(const struct curve_reduction *t, const struct curves_axis *a, struct curves_node *node,
	struct point_arrays *means, struct point_arrays *ranges, struct curves_line *ret)
{
	bool reduced = a->step > 0;

	ret->average = t->weight > 0 ? t->weighted / t->weight : t->ticks ? t->plain / (double)t->ticks : NAN;
	ret->least = t->least;
	ret->most = ret->highest = t->most;
	ret->most_at_s = t->most_at;
	ret->first = t->begin;
	ret->last = t->end;
	ret->mean = points_of(t, a, node, means, PART_MEAN);
	ret->low = reduced ? points_of(t, a, node, ranges, PART_LOW) : ret->mean;
	ret->high = reduced ? points_of(t, a, node, ranges, PART_HIGH) : ret->mean;
	return ret->mean && ret->low && ret->high ? 0 : -ENOMEM;
}
