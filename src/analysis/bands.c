/* Phases as bands behind curves: see bands.h. */
#include "analysis/bands.h"

#include "query/phases.h"

#include <math.h>
#include <string.h>

#define NARROW (1 / 40.0)      /* of the time axis: there is no room for a name */
#define MARKS_APART (1 / 67.0) /* closer events become one mark */

/* Names that become one. */
struct name_fold {
	const char *first;
	uint64_t varied; /* numbers in which they differ */
	size_t count;
	bool mixed; /* in more than that */
};

struct lane {
	double free_from_s;
	size_t last; /* the band that was begun last */
	bool any;
	struct name_fold name;
};

struct band_maker {
	struct owned *kept;
	struct chart_bands *to;
	double narrow_s;
	struct lane lane[BAND_LANES];
};

static bool same_phase(const char *a, const char *b)
{
	struct buf first, second;
	bool same;

	if (!strcmp(a, b))
		return true;
	buf_init(&first, 1 << 16);
	buf_init(&second, 1 << 16);
	phase_key(a, &first);
	phase_key(b, &second);
	same = first.len == second.len && !memcmp(first.data, second.data, first.len);
	buf_release(&first);
	buf_release(&second);
	return same;
}

static void take_name(struct name_fold *f, const char *name)
{
	f->mixed = f->mixed || !same_phase(f->first, name);
	if (!f->mixed)
		f->varied |= phase_numbers_differ(f->first, name);
	f->count++;
}

/* The name of several in one; NULL: not known, or no memory. */
static const char *folded_name(const struct name_fold *f, struct owned *kept)
{
	struct buf name;

	if (f->count < 2 || f->mixed)
		return f->count < 2 ? f->first : NULL;
	buf_init(&name, 1 << 16);
	phase_general_name(f->first, f->varied, &name);
	buf_addf(&name, " ×%zu", f->count);
	return owned_text(kept, &name);
}

static void name_lane(struct band_maker *m, const struct lane *l)
{
	if (l->any)
		m->to->band[l->last].label = l->name.mixed
			? owned_printf(m->kept, "%zu phases", l->name.count)
			: folded_name(&l->name, m->kept);
}

static bool goes_on(const struct band_maker *m, const struct lane *l, const struct chart_band *b)
{
	const struct chart_band *last = &m->to->band[l->last];

	return l->any && b->to_s - b->from_s < m->narrow_s && b->from_s - last->to_s < m->narrow_s &&
		(l->name.count > 1 || last->to_s - last->from_s < m->narrow_s);
}

static void lane_add(struct band_maker *m, struct lane *l, const struct chart_band *b)
{
	if (goes_on(m, l, b)) {
		take_name(&l->name, b->label);
		m->to->band[l->last].to_s = MAX(m->to->band[l->last].to_s, b->to_s);
		return;
	}
	name_lane(m, l);
	l->last = m->to->nr;
	l->any = true;
	l->name = (struct name_fold){.first = b->label, .count = 1};
	m->to->band[m->to->nr++] = *b;
}

static int by_lane(const void *a, const void *b)
{
	const struct chart_band *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->from_s > y->from_s) - (x->from_s < y->from_s);
}

static void finish(struct band_maker *m)
{
	struct chart_bands *to = m->to;

	for (uint32_t i = 0; i < to->nr_lanes; i++)
		name_lane(m, &m->lane[i]);
	if (to->nr)
		qsort(to->band, to->nr, sizeof(*to->band), by_lane);
	for (size_t i = 1; i < to->nr; i++)
		to->band[i].odd = to->band[i].lane == to->band[i - 1].lane && !to->band[i - 1].odd;
}

int bands_make(const struct run_events *m, uint32_t node, double from_s, double to_s, struct owned *kept,
	struct chart_bands *ret)
{
	struct band_maker maker = {.kept = kept, .to = ret, .narrow_s = (to_s - from_s) * NARROW};

	*ret = (struct chart_bands){.band = owned_alloc(kept, m->nr_phases + 1, sizeof(*ret->band))};
	if (!ret->band)
		return -ENOMEM;
	for (uint32_t i = 0; i < BAND_LANES; i++)
		maker.lane[i].free_from_s = -INFINITY;
	for (size_t i = 0; i < m->nr_phases; i++) {
		const struct run_event *p = &m->phase[i];
		struct chart_band b = {
			.from_s = p->time_s, .to_s = isnan(p->end_s) ? to_s : p->end_s, .label = p->label};

		if (p->node != node || b.from_s > to_s || b.to_s < from_s)
			continue;
		while (b.lane < BAND_LANES && maker.lane[b.lane].free_from_s > b.from_s)
			b.lane++;
		if (b.lane == BAND_LANES) {
			ret->left_out++;
			continue;
		}
		maker.lane[b.lane].free_from_s = b.to_s;
		ret->nr_lanes = MAX(ret->nr_lanes, b.lane + 1);
		lane_add(&maker, &maker.lane[b.lane], &b);
	}
	finish(&maker);
	return kept->failed ? -ENOMEM : 0;
}

uint32_t bands_node(const struct run_events *m)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < m->nr_phases; i++)
		least = MIN(least, m->phase[i].node);
	return least;
}

void chart_set_bands(struct chart *c, const struct chart_bands *b)
{
	c->band = b->band;
	c->nr_bands = b->nr;
	c->nr_band_lanes = b->nr_lanes;
	c->phases_left_out = b->left_out;
}

static void name_mark(struct chart_mark *mark, const struct name_fold *name, struct owned *kept)
{
	mark->label = name->mixed ? owned_printf(kept, "%s, and %zu more", name->first, name->count - 1)
				  : folded_name(name, kept);
}

void chart_set_marks(struct chart *c, const struct run_events *m, int64_t node, struct owned *kept)
{
	size_t most = (size_t)(1 / MARKS_APART) + 2, nr = 0;
	struct chart_mark *mark = owned_alloc(kept, most, sizeof(*mark));
	struct name_fold name = {0};

	for (size_t i = 0; mark && i < m->nr_events; i++) {
		const struct run_event *e = &m->event[i];

		if (e->numbers || (node >= 0 && e->node != node) || e->time_s > c->to_s ||
			(isnan(e->end_s) ? e->time_s : e->end_s) < c->from_s)
			continue;
		if (nr &&
			(nr == most ||
				e->time_s < mark[nr - 1].time_s + (c->to_s - c->from_s) * MARKS_APART)) {
			take_name(&name, e->label);
			continue;
		}
		if (nr)
			name_mark(&mark[nr - 1], &name, kept);
		name = (struct name_fold){.first = e->label, .count = 1};
		mark[nr++] = (struct chart_mark){.time_s = e->time_s};
	}
	if (nr)
		name_mark(&mark[nr - 1], &name, kept);
	c->mark = mark;
	c->nr_marks = nr;
}
