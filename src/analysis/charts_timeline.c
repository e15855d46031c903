/* Lives of processes: one bar from birth to death, as thick as the process was busy. Those that matter (the
 * ones with curves, then the longest) get a lane in that order, sharing lanes with those that lived at other
 * times; everybody else is folded into a last lane, where bars are the times in which any of them lived.
 * Lanes stand in the order of their first birth, so that a tree grows downwards. */
#include "analysis/charts_internal.h"

#include "text/words.h"

#include <math.h>
#include <string.h>

#define LANES 32
#define SPANS 400
#define MANY 64 /* of more than so many, those that lived shorter than so many gaps have no lane */
#define BRIEF 4
#define GAP 0.004 /* of the time axis, between two bars of a lane; closer ones of the others become one */

struct timeline_span {
	uint32_t row;  /* of the process table */
	uint32_t rank; /* among those kept; UINT32_MAX: not kept */
	uint32_t lane;
	uint32_t curve;
	double from_s, to_s; /* NAN: not ended */
};

struct lives {
	struct draft *d;
	struct timeline_span *item;
	size_t nr, placed;
	double gap_s;
	uint32_t nr_lanes;
};

static double end_of(const struct lives *l, const struct timeline_span *life)
{
	return isnan(life->to_s) ? l->d->s->to_s : life->to_s;
}

/* Those kept in their order, then by length. */
static int by_weight(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;
	double wx, wy;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	wx = isnan(x->to_s) ? INFINITY : x->to_s - x->from_s;
	wy = isnan(y->to_s) ? INFINITY : y->to_s - y->from_s;
	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int by_birth(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;

	if (x->from_s != y->from_s)
		return x->from_s < y->from_s ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int lives_gather(struct lives *l)
{
	const struct analysis *s = l->d->s;
	double offset = s->curves->node[l->d->node].offset_s;

	l->item = calloc(s->processes->nr + 1, sizeof(*l->item));
	if (!l->item)
		return -ENOMEM;
	for (size_t i = 0; i < s->processes->nr; i++) {
		const struct process_row *row = &s->processes->row[i];
		struct timeline_span life = {.row = (uint32_t)i,
			.rank = UINT32_MAX,
			.curve = UINT32_MAX,
			.from_s = row->value[PROCESS_START] + offset,
			.to_s = row->value[PROCESS_END] + offset};

		if (row->node != l->d->node || isnan(life.from_s) || life.from_s > s->to_s ||
			life.to_s < s->from_s)
			continue;
		life.from_s = MAX(life.from_s, s->from_s);
		l->item[l->nr++] = life;
	}
	return 0;
}

/* The table is large and few are kept: from these to the lives. */
static void lives_rank(struct lives *l)
{
	const struct analysis *s = l->d->s;
	_cleanup_(freep) uint32_t *rank = malloc((s->processes->nr + 1) * sizeof(*rank));

	if (!rank) {
		l->d->m->failed = true;
		return;
	}
	memset(rank, 0xff, (s->processes->nr + 1) * sizeof(*rank));
	for (size_t i = 0; i < s->nr_keep; i++)
		rank[s->keep_row[i]] = (uint32_t)i;
	for (size_t i = 0; i < l->nr; i++)
		l->item[i].rank = rank[l->item[i].row];
}

static bool fits(const struct lives *l, uint32_t lane, const struct timeline_span *life)
{
	for (size_t i = 0; i < l->placed; i++) {
		const struct timeline_span *other = &l->item[i];

		if (other->lane == lane && life->from_s < end_of(l, other) + l->gap_s &&
			other->from_s < end_of(l, life) + l->gap_s)
			return false;
	}
	return true;
}

/* Those with a lane come first in the list. */
static void lives_place(struct lives *l)
{
	for (size_t i = 0; i < l->nr && l->placed < SPANS; i++) {
		uint32_t lane = 0;
		struct timeline_span life = l->item[i];

		if (l->nr > MANY && life.rank >= l->d->s->nr_named &&
			end_of(l, &life) - life.from_s < l->gap_s * BRIEF)
			continue;
		while (lane < l->nr_lanes && !fits(l, lane, &life))
			lane++;
		if (lane == LANES)
			continue;
		life.lane = lane;
		l->nr_lanes = MAX(l->nr_lanes, lane + 1);
		l->item[i] = l->item[l->placed];
		l->item[l->placed++] = life;
	}
}

static void lanes_order(struct lives *l)
{
	uint32_t place[LANES], next = 0;

	memset(place, 0xff, sizeof(place));
	qsort(l->item, l->placed, sizeof(*l->item), by_birth);
	for (size_t i = 0; i < l->placed; i++) {
		uint32_t *to = &place[l->item[i].lane];

		if (*to == UINT32_MAX)
			*to = next++;
		l->item[i].lane = *to;
	}
}

static uint32_t color_of(const struct analysis *s, uint32_t rank)
{
	return rank < s->nr_named ? rank : CHART_OTHERS;
}

/* The curves of those that have one; returns that of all who have no lane, UINT32_MAX: there is none. */
static uint32_t lives_curves(struct lives *l)
{
	struct draft *d = l->d;
	size_t nr;
	const struct curves_line *line = lines_of(d->s, d->p->query[0], d->node, &nr);
	uint32_t others = UINT32_MAX;

	for (size_t k = 0; k < nr; k++) {
		if (line[k].others && !isnan(line[k].most)) {
			others = (uint32_t)d->nr;
			draft_add(d, &line[k], "others", CHART_OTHERS);
		}
		for (size_t i = 0; i < l->placed && !line[k].others; i++) {
			struct timeline_span *life = &l->item[i];

			if (life->rank == UINT32_MAX || d->s->keep[life->rank].id != line[k].id)
				continue;
			life->curve = (uint32_t)d->nr;
			draft_add(d, &line[k], process_label(d->m, &d->s->processes->row[life->row]),
				color_of(d->s, life->rank));
			d->source[d->nr - 1].process = life->row;
		}
	}
	return others;
}

/* The times in which any of the folded lived, one bar each. */
static size_t fold_lives(struct lives *l, struct chart_span *span, uint32_t curve)
{
	struct timeline_span *rest = l->item + l->placed;
	size_t nr_rest = l->nr - l->placed, nr = 0;
	const char *name;

	if (!nr_rest)
		return 0;
	name = others_label(l->d->m, nr_rest);
	qsort(rest, nr_rest, sizeof(*rest), by_birth);
	for (size_t i = 0; i < nr_rest; i++) {
		double to = end_of(l, &rest[i]);

		if (nr && rest[i].from_s <= span[nr - 1].to_s + l->gap_s) {
			span[nr - 1].to_s = MAX(span[nr - 1].to_s, to);
			continue;
		}
		span[nr++] = (struct chart_span){.name = name,
			.from_s = rest[i].from_s,
			.to_s = to,
			.curve = curve,
			.lane = l->nr_lanes,
			.color = CHART_OTHERS};
	}
	return nr;
}

static int lives_spans(struct lives *l)
{
	struct draft *d = l->d;
	struct chart_span *span;
	uint32_t others;
	size_t nr = 0;

	qsort(l->item, l->nr, sizeof(*l->item), by_weight);
	lives_place(l);
	lanes_order(l);
	others = lives_curves(l);
	/* Folded bars are further apart than the gap. */
	span = owned_alloc(d->m, l->placed + (size_t)(1 / GAP) + 2, sizeof(*span));
	if (!span)
		return -ENOMEM;
	for (; nr < l->placed; nr++)
		span[nr] = (struct chart_span){
			.name = process_label(d->m, &d->s->processes->row[l->item[nr].row]),
			.from_s = l->item[nr].from_s,
			.to_s = l->item[nr].to_s,
			.curve = l->item[nr].curve,
			.lane = l->item[nr].lane,
			.color = color_of(d->s, l->item[nr].rank)};
	nr += fold_lives(l, span + nr, others);
	d->chart.span = span;
	d->chart.nr_spans = nr;
	d->chart.nr_lanes = l->nr_lanes + (l->nr > l->placed);
	return d->m->failed ? -ENOMEM : 0;
}

int draft_spans(struct draft *d)
{
	struct lives l = {.d = d, .gap_s = (d->s->to_s - d->s->from_s) * GAP};
	int r;

	d->nr = 0;
	r = lives_gather(&l);
	if (r >= 0)
		lives_rank(&l);
	if (r >= 0 && l.nr)
		r = lives_spans(&l);
	free(l.item);
	return r;
}
