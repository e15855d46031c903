/* What several recordings held and used, added up on a grid of equal steps of the run's time.
 *
 * A recording is put onto a grid of its own, tick by tick: a level stands at the step of its tick and at
 * those after it up to the next tick; of several ticks in one step the highest counts. What was used between
 * two ticks is spread over the steps between them. Then the grid is added to that of all recordings.
 * Everything is an integer, so the sum is the same in any order.
 *
 * A grid that outgrows GRID_MOST cells has steps of twice the length from then on: the higher of two levels,
 * the sum of what was used. */
#ifndef QUERY_GRID_H
#define QUERY_GRID_H

#include "base/base.h"

#include <stddef.h>

#define GRID_MOST 65536
#define GRID_OCTAVES 40 /* steps of up to 2^39 times the first length */

struct grid_shape {
	int64_t step_ns;
	size_t most; /* steps of one grid */
	unsigned nr_levels, nr_flows;
	unsigned nr_tops; /* of the first levels there is also the most that any one recording had more than
			     at its tick */
};

struct grid {
	const struct grid_shape *shape;
	unsigned octave; /* a step is shape->step_ns << octave long */
	size_t nr, cap;
	/* Per step: levels, how many recordings have each, what was used, tops. */
	int64_t *cell;
	int64_t end_ns; /* the last moment that is known */
};

/* Puts one recording onto a grid. */
struct grid_pen {
	struct grid grid;
	int64_t offset_ns; /* its start on the grid */
	bool begun;
	int64_t at;		 /* its present step, in those of octave 0 */
	int64_t time_ns;	 /* of the tick before, or its start */
	int64_t *held, *highest; /* levels: of the tick before, of its step so far */
	uint64_t held_valid, highest_valid;
	int64_t *top;
};

/* From `time_ns` of the recording on, which began `offset_ns` after the grid. */
int grid_pen_init(struct grid_pen *p, const struct grid_shape *shape, int64_t offset_ns, int64_t time_ns);
void grid_pen_release(struct grid_pen *p);
/* A tick: levels with a mask of those that are known, what was used since the tick before it, tops (as
 * absolute levels; NULL: not known). */
int grid_pen_tick(struct grid_pen *p, int64_t time_ns, const int64_t *level, uint64_t valid,
	const int64_t *flow, const int64_t *top);
/* There are no more ticks: the recording's levels end with the step of the last. */
int grid_pen_end(struct grid_pen *p);

/* Grids of one sum, by octave: what is added is of any. */
struct grid_sum {
	const struct grid_shape *shape;
	struct grid by_octave[GRID_OCTAVES];
};

void grid_sum_init(struct grid_sum *s, const struct grid_shape *shape);
void grid_sum_release(struct grid_sum *s);
int grid_sum_add(struct grid_sum *s, const struct grid *g);
int grid_sum_merge(struct grid_sum *s, const struct grid_sum *other);
/* All of it on the coarsest grid, which stays the sum's. */
int grid_sum_whole(struct grid_sum *s, struct grid **ret);

/* Sums of several lines, of the recordings that one thread has read: a line is found by its name, or where
 * that is NULL by its number. */
struct grid_totals {
	struct grid_total {
		char *name;
		size_t number;
		struct grid_sum sum;
		double active_s; /* the longest of any recording */
	} * line;
	size_t nr;
};

int grid_totals_line(struct grid_totals *t, const char *name, size_t number, const struct grid_shape *shape,
	struct grid_total **ret); /* made when it is new; -ENOMEM */
/* The recording has no more ticks: adds its grid. */
int grid_totals_add(
	struct grid_totals *t, const char *name, size_t number, struct grid_pen *pen, double active_s);
/* Those of all threads become the first's. */
int grid_totals_merge(struct grid_totals *of, size_t nr);
void grid_totals_release(struct grid_totals *of, size_t nr);

static inline int64_t *grid_levels(const struct grid *g, size_t step)
{
	const struct grid_shape *s = g->shape;

	return g->cell + step * (2 * s->nr_levels + s->nr_flows + s->nr_tops);
}
static inline int64_t *grid_counts(const struct grid *g, size_t step)
{
	return grid_levels(g, step) + g->shape->nr_levels;
}
static inline int64_t *grid_flows(const struct grid *g, size_t step)
{
	return grid_levels(g, step) + 2 * g->shape->nr_levels;
}
static inline int64_t *grid_tops(const struct grid *g, size_t step)
{
	return grid_flows(g, step) + g->shape->nr_flows;
}
/* When the step ends, which is when its levels were there; of the last, when anything was last known. */
static inline int64_t grid_time_ns(const struct grid *g, size_t step)
{
	int64_t time;

	if (__builtin_mul_overflow((int64_t)step, g->shape->step_ns << g->octave, &time))
		time = INT64_MAX;
	return step + 1 == g->nr ? MIN(time, g->end_ns) : time;
}
#endif
