/* The common time axis of all lines of a recording. While there are few ticks each has a slot of its own.
 * When they become too many, slots of equal width take their place, and get twice as wide whenever they
 * become too many again: so one pass suffices, and nothing need be known of the recording's length. In the
 * end between half and all of the points are used. (Counting the ticks first would use all of them, and read
 * everything twice.) */
#include "query/curves_internal.h"

#include <math.h>
#include <string.h>

#define POINTS_LEAST 16u

int axis_init(struct curves_axis *a, uint32_t points)
{
	*a = (struct curves_axis){.cap = MAX(points, POINTS_LEAST)};
	a->slot = calloc(a->cap, sizeof(*a->slot));
	a->spare = calloc(a->cap, sizeof(*a->spare));
	a->map = calloc(a->cap, sizeof(*a->map));
	return a->slot && a->spare && a->map ? 0 : -ENOMEM;
}

void axis_release(struct curves_axis *a)
{
	free(a->slot);
	free(a->spare);
	free(a->map);
	*a = (struct curves_axis){0};
}

/* Times that go backwards stay where they are. */
static uint32_t slot_at(const struct curves_axis *a, double time)
{
	double at = (time - a->origin) / a->step;

	return !(at > 0) ? 0 : at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;
}

static uint32_t slot_next(const struct curves_axis *a, double time)
{
	if (a->step == 0)
		return a->nr;
	return MAX(slot_at(a, time), a->nr ? a->nr - 1 : 0);
}

bool axis_is_full(const struct curves_axis *a, double time, bool gap)
{
	uint32_t slot = slot_next(a, time);
	bool is_new = slot >= a->nr;

	if (slot >= a->cap)
		return true;
	return a->nr_used + a->nr_gaps + is_new + (gap && (is_new || !a->slot[slot].gap)) > a->cap;
}

static void slot_merge(struct axis_slot *to, const struct axis_slot *from)
{
	to->first = to->ticks ? to->first : from->first;
	to->last = from->ticks ? from->last : to->last;
	to->ticks += from->ticks;
	to->gap |= from->gap;
}

static uint32_t slot_widened(const struct curves_axis *a, bool first, uint32_t i)
{
	uint32_t to = first ? MIN(slot_at(a, a->slot[i].first), a->cap - 1) : i / 2;

	return i ? MAX(to, a->map[i - 1]) : to;
}

void axis_widen(struct curves_axis *a)
{
	bool first = a->step == 0;
	struct axis_slot *old = a->slot;

	if (first) {
		a->origin = a->slot[0].first;
		a->step = MAX((a->slot[a->nr - 1].last - a->origin) * 2 / a->cap, 1e-9);
	} else {
		a->step *= 2;
	}
	memset(a->spare, 0, a->cap * sizeof(*a->spare));
	for (uint32_t i = 0; i < a->nr; i++) {
		a->map[i] = slot_widened(a, first, i);
		slot_merge(&a->spare[a->map[i]], &a->slot[i]);
	}
	a->nr = a->map[a->nr - 1] + 1;
	a->slot = a->spare;
	a->spare = old;
	a->nr_used = a->nr_gaps = 0;
	for (uint32_t i = 0; i < a->nr; i++) {
		a->nr_used += a->slot[i].ticks > 0;
		a->nr_gaps += a->slot[i].gap;
	}
	a->now.slot = a->map[a->now.slot];
	if (a->has_late)
		a->late.slot = a->map[a->late.slot];
}

void axis_tick(struct curves_axis *a, double time, double before, bool gap)
{
	uint32_t at = slot_next(a, time);
	struct axis_slot *slot = &a->slot[at];
	bool breaks = gap || !a->has_now || a->now.slot != at;

	for (; a->nr <= at; a->nr++)
		a->slot[a->nr] = (struct axis_slot){0};
	a->nr_used += !slot->ticks;
	a->nr_gaps += gap && !slot->gap;
	slot_merge(slot, &(struct axis_slot){.first = time, .last = time, .ticks = 1, .gap = gap});
	a->late = a->now;
	a->has_late = a->has_now;
	a->now = (struct clock){.tick = a->has_now ? a->now.tick + 1 : 0,
		.time = time,
		.before = before,
		.gap = gap,
		.breaks = breaks,
		.slot = at};
	a->has_now = true;
}

uint32_t axis_upto(const struct curves_axis *a, double time)
{
	uint32_t nr = 0;

	while (nr < a->nr && a->slot[nr].last <= time)
		nr++;
	return nr;
}

void axis_forget(struct curves_axis *a, uint32_t nr)
{
	memmove(a->slot, a->slot + nr, (a->nr - nr) * sizeof(*a->slot));
	a->nr -= nr;
	a->nr_used = a->nr_gaps = 0;
	for (uint32_t i = 0; i < a->nr; i++) {
		a->nr_used += a->slot[i].ticks > 0;
		a->nr_gaps += a->slot[i].gap;
	}
	a->now.slot -= MIN(a->now.slot, nr);
	a->late.slot -= MIN(a->late.slot, nr);
}

/* A point for what was lost stands between its neighbours. */
static double gap_time(const struct curves_axis *a, uint32_t slot, double last)
{
	if (a->step > 0)
		return MAX(a->origin + a->step * slot, last);
	return isnan(last) ? a->slot[slot].first : (last + a->slot[slot].first) / 2;
}

int axis_finish(struct curves_axis *a, struct curves_node *node, double interval_s)
{
	size_t room = (size_t)a->nr_used + a->nr_gaps + 1;
	double last = NAN;

	node->time_s = calloc(room, sizeof(*node->time_s));
	node->lost = calloc(room, sizeof(*node->lost));
	if (!node->time_s || !node->lost)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->nr; i++) {
		const struct axis_slot *slot = &a->slot[i];

		if (slot->gap && !isnan(last)) {
			node->lost[node->nr_times] = true;
			node->time_s[node->nr_times++] = gap_time(a, i, last);
		}
		a->map[i] = (uint32_t)node->nr_times;
		if (!slot->ticks)
			continue;
		node->time_s[node->nr_times++] = (slot->first + slot->last) / 2;
		last = slot->last;
	}
	node->reduced = a->step > 0;
	node->step_s = node->reduced ? a->step : interval_s;
	node->end_s = a->has_now ? a->now.time : node->offset_s;
	node->ticks = a->has_now ? a->now.tick + 1 : 0;
	return 0;
}
