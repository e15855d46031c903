/* Sums over recordings on a grid of equal steps: see grid.h. */
#include "query/grid.h"

#include "base/owned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_to(int64_t *sum, int64_t value)
{
	*sum = wrap_add(*sum, value);
}

static size_t width(const struct grid_shape *s)
{
	return 2 * s->nr_levels + s->nr_flows + s->nr_tops;
}

static void grid_init(struct grid *g, const struct grid_shape *shape, unsigned octave)
{
	*g = (struct grid){.shape = shape, .octave = octave};
}

static void grid_release(struct grid *g)
{
	free(g->cell);
	g->cell = NULL;
	g->nr = g->cap = 0;
}

static int grid_reserve(struct grid *g, size_t nr)
{
	size_t cap = MAX(nr, MIN(g->cap * 2, g->shape->most)), bytes = width(g->shape) * sizeof(int64_t);
	int64_t *more;

	if (nr > g->cap) {
		more = reallocarray(g->cell, cap, bytes);
		if (!more)
			return -ENOMEM;
		g->cell = more;
		g->cap = cap;
	}
	if (nr > g->nr) {
		memset(grid_levels(g, g->nr), 0, (nr - g->nr) * bytes);
		g->nr = nr;
	}
	return 0;
}

/* Two steps become one, which may be the first of them; the second may not be there. A top is told as by how
 * much it exceeds the level, so it is made before the level. */
static void join_steps(struct grid *g, size_t to, size_t a, size_t b)
{
	const struct grid_shape *s = g->shape;
	int64_t *into = grid_levels(g, to), *from = grid_levels(g, a);
	const int64_t *other = b < g->nr ? grid_levels(g, b) : NULL;
	unsigned flows = 2 * s->nr_levels, tops = flows + s->nr_flows;

	for (unsigned i = 0; i < s->nr_tops; i++) {
		int64_t x = from[i] + from[tops + i], y = other ? other[i] + other[tops + i] : 0;

		into[tops + i] = MAX(MAX(x, y) - MAX(from[i], other ? other[i] : 0), 0);
	}
	for (unsigned i = 0; i < flows; i++)
		into[i] = MAX(from[i], other ? other[i] : 0);
	for (unsigned i = flows; i < tops; i++)
		into[i] = wrap_add(from[i], other ? other[i] : 0);
}

/* Step k of the coarser grid has those that end in it: 2k - 1 and 2k. */
static void grid_coarsen(struct grid *g)
{
	size_t nr = g->nr / 2 + 1;

	for (size_t k = 1; k < nr && g->nr; k++)
		join_steps(g, k, 2 * k - 1, 2 * k);
	g->nr = g->nr ? nr : 0;
	g->octave++;
}

/* Where step `at` of octave 0 is found. */
static size_t step_of(const struct grid *g, int64_t at)
{
	uint64_t wide = UINT64_C(1) << g->octave;

	return (size_t)(((uint64_t)MAX(at, 0) + wide - 1) >> g->octave);
}

/* The step of a grid that has room for it. */
static int grid_reach(struct grid *g, int64_t at, size_t *ret)
{
	while (step_of(g, at) >= g->shape->most && g->octave + 1 < GRID_OCTAVES)
		grid_coarsen(g);
	if (step_of(g, at) >= g->shape->most)
		return -E2BIG;
	*ret = step_of(g, at);
	return grid_reserve(g, *ret + 1);
}

/* ---- one recording ---- */

int grid_pen_init(struct grid_pen *p, const struct grid_shape *shape, int64_t offset_ns, int64_t time_ns)
{
	*p = (struct grid_pen){.offset_ns = offset_ns, .time_ns = time_ns};
	grid_init(&p->grid, shape, 0);
	p->held = calloc(2 * shape->nr_levels + shape->nr_tops + 1, sizeof(int64_t));
	if (!p->held)
		return -ENOMEM;
	p->highest = p->held + shape->nr_levels;
	p->top = p->highest + shape->nr_levels;
	return 0;
}

void grid_pen_release(struct grid_pen *p)
{
	grid_release(&p->grid);
	free(p->held);
	p->held = NULL;
}

/* In a coarser grid several steps of octave 0 come together: the highest stays. */
static int put_levels(
	struct grid_pen *p, int64_t at, const int64_t *level, uint64_t valid, const int64_t *top)
{
	const struct grid_shape *s = p->grid.shape;
	size_t step;
	int r = grid_reach(&p->grid, at, &step);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < s->nr_levels; i++) {
		int64_t *to = &grid_levels(&p->grid, step)[i], *nr = &grid_counts(&p->grid, step)[i];
		int64_t *more = i < s->nr_tops ? &grid_tops(&p->grid, step)[i] : NULL;
		int64_t most = more ? MAX(*to + *more, top ? top[i] : 0) : 0;

		if (!(valid >> i & 1))
			continue;
		*to = *nr ? MAX(*to, level[i]) : level[i];
		*nr = 1;
		if (more)
			*more = MAX(most - *to, 0);
	}
	return 0;
}

static int64_t rounded_steps(int64_t ns, int64_t step_ns)
{
	return ns / step_ns + (ns % step_ns >= step_ns - step_ns / 2);
}

/* From the tick before up to this one, step by step. */
static int put_levels_until(struct grid_pen *p, int64_t at)
{
	int r = put_levels(p, p->at, p->highest, p->highest_valid, p->top);

	for (int64_t i = p->at + 1; i < at && r >= 0; i += INT64_C(1) << p->grid.octave)
		r = put_levels(p, i, p->held, p->held_valid, NULL);
	return r;
}

/* What was used between two moments, spread evenly over the steps. */
static int put_flow(struct grid_pen *p, int64_t from_ns, int64_t to_ns, unsigned flow, int64_t used)
{
	int64_t step_ns = p->grid.shape->step_ns, at = to_ns / step_ns + (to_ns % step_ns > 0);
	size_t last;
	int r = grid_reach(&p->grid, at, &last);

	step_ns <<= p->grid.octave;
	for (size_t step = (size_t)(from_ns / step_ns) + 1; step < last && r >= 0; step++) {
		int64_t end_ns = (int64_t)step * step_ns; /* below to_ns */
		int64_t part = (int64_t)((__int128)used * (end_ns - from_ns) / (to_ns - from_ns));

		add_to(&grid_flows(&p->grid, step)[flow], part);
		used -= part;
		from_ns = end_ns;
	}
	if (r >= 0)
		add_to(&grid_flows(&p->grid, last)[flow], used);
	return r;
}

int grid_pen_tick(struct grid_pen *p, int64_t time_ns, const int64_t *level, uint64_t valid,
	const int64_t *flow, const int64_t *top)
{
	const struct grid_shape *s = p->grid.shape;
	int64_t at = rounded_steps(p->offset_ns, s->step_ns) + rounded_steps(time_ns, s->step_ns);
	bool same = p->begun && at <= p->at;
	int r = p->begun && !same ? put_levels_until(p, at) : 0;

	for (unsigned i = 0; i < s->nr_flows && r >= 0; i++)
		if (flow[i] > 0)
			r = put_flow(p, add_clamped(p->offset_ns, p->time_ns),
				add_clamped(p->offset_ns, time_ns), i, flow[i]);
	for (unsigned i = 0; i < s->nr_levels; i++) {
		bool had = same && p->highest_valid >> i & 1;

		if (i < s->nr_tops) {
			int64_t here = top ? top[i] : level[i];

			p->top[i] = same ? MAX(p->top[i], here) : here;
		}
		if (valid >> i & 1)
			p->highest[i] = had ? MAX(p->highest[i], level[i]) : level[i];
	}
	memcpy(p->held, level, s->nr_levels * sizeof(*level));
	p->held_valid = valid;
	p->highest_valid = same ? p->highest_valid | valid : valid;
	p->at = same ? p->at : at;
	p->begun = true;
	p->time_ns = time_ns;
	p->grid.end_ns = add_clamped(p->offset_ns, time_ns);
	return r;
}

int grid_pen_end(struct grid_pen *p)
{
	return p->begun ? put_levels(p, p->at, p->highest, p->highest_valid, p->top) : 0;
}

/* ---- sums ---- */

void grid_sum_init(struct grid_sum *s, const struct grid_shape *shape)
{
	s->shape = shape;
	for (unsigned i = 0; i < GRID_OCTAVES; i++)
		grid_init(&s->by_octave[i], shape, i);
}

void grid_sum_release(struct grid_sum *s)
{
	for (unsigned i = 0; i < GRID_OCTAVES; i++)
		grid_release(&s->by_octave[i]);
}

int grid_sum_add(struct grid_sum *s, const struct grid *g)
{
	struct grid *to = &s->by_octave[g->octave];
	size_t levels = 2 * g->shape->nr_levels + g->shape->nr_flows;
	int r = grid_reserve(to, g->nr);

	for (size_t k = 0; k < g->nr && r >= 0; k++) {
		int64_t *into = grid_levels(to, k);
		const int64_t *from = grid_levels(g, k);

		for (size_t i = 0; i < levels; i++)
			add_to(&into[i], from[i]);
		for (size_t i = levels; i < width(g->shape); i++)
			into[i] = MAX(into[i], from[i]);
	}
	to->end_ns = MAX(to->end_ns, g->end_ns);
	return r;
}

int grid_sum_merge(struct grid_sum *s, const struct grid_sum *other)
{
	int r = 0;

	for (unsigned i = 0; i < GRID_OCTAVES && r >= 0; i++)
		r = grid_sum_add(s, &other->by_octave[i]);
	return r;
}

int grid_sum_whole(struct grid_sum *s, struct grid **ret)
{
	unsigned coarsest = 0;
	int r = 0;

	for (unsigned i = 0; i < GRID_OCTAVES; i++)
		if (s->by_octave[i].nr)
			coarsest = i;
	for (unsigned i = 0; i < coarsest && r >= 0; i++) {
		struct grid *g = &s->by_octave[i];

		if (!g->nr)
			continue;
		grid_coarsen(g);
		r = grid_sum_add(s, g);
		grid_release(g);
		grid_init(g, s->shape, i);
	}
	*ret = &s->by_octave[coarsest];
	return r;
}

/* ---- several lines ---- */

static bool is_line(const struct grid_total *line, const char *name, size_t number)
{
	return name && line->name ? !strcmp(name, line->name) : name == line->name && number == line->number;
}

int grid_totals_line(struct grid_totals *t, const char *name, size_t number, const struct grid_shape *shape,
	struct grid_total **ret)
{
	struct grid_total *line;

	for (size_t i = 0; i < t->nr; i++)
		if (is_line(&t->line[i], name, number)) {
			*ret = &t->line[i];
			return 0;
		}
	line = ARRAY_ADD(t->line, t->nr);
	if (!line)
		return -ENOMEM;
	*line = (struct grid_total){.name = name ? strdup(name) : NULL, .number = number};
	grid_sum_init(&line->sum, shape);
	*ret = line;
	return name && !line->name ? -ENOMEM : 0;
}

int grid_totals_add(
	struct grid_totals *t, const char *name, size_t number, struct grid_pen *pen, double active_s)
{
	struct grid_total *line = NULL;
	int r = grid_totals_line(t, name, number, pen->grid.shape, &line);

	if (r >= 0)
		r = grid_pen_end(pen);
	if (r >= 0)
		r = grid_sum_add(&line->sum, &pen->grid);
	if (r >= 0)
		line->active_s = MAX(line->active_s, active_s);
	return r;
}

int grid_totals_merge(struct grid_totals *of, size_t nr)
{
	int r = 0;

	for (size_t w = 1; w < nr; w++)
		for (size_t i = 0; i < of[w].nr && r >= 0; i++) {
			struct grid_total *from = &of[w].line[i], *to = NULL;

			r = grid_totals_line(&of[0], from->name, from->number, from->sum.shape, &to);
			if (r < 0)
				break;
			r = grid_sum_merge(&to->sum, &from->sum);
			to->active_s = MAX(to->active_s, from->active_s);
			grid_sum_release(&from->sum);
		}
	return r;
}

void grid_totals_release(struct grid_totals *of, size_t nr)
{
	for (size_t w = 0; w < nr; w++) {
		for (size_t i = 0; i < of[w].nr; i++) {
			grid_sum_release(&of[w].line[i].sum);
			free(of[w].line[i].name);
		}
		free(of[w].line);
		of[w] = (struct grid_totals){0};
	}
}
