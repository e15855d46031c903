/* Sums of counters: see counter_sum.h.
 *
 * Growth over a recording: across a gap the same instance goes on: its counter did count meanwhile, and its
 * level is taken to have changed evenly.
 *
 * The sum over the instances of now: each has an offset, by which it begins at nothing and goes on where it
 * was; what it contributed stays behind when it leaves. */
#include "query/counter_sum.h"

#include "base/owned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what the instances of a metric did over a recording ---- */

void growth_init(struct growth *g, enum growth_of of)
{
	*g = (struct growth){.set = -1, .col = -1, .of = of};
}

void growth_release(struct growth *g)
{
	free(g->row);
	g->row = NULL;
	g->nr = 0;
}

void growth_bind(struct growth *g, const struct schema *schema, const char *metric)
{
	uint32_t set, col;

	g->set = g->col = -1;
	if (!schema_find(schema, metric, &set, &col))
		return;
	g->set = (int)set;
	g->col = (int)col;
	g->scale = schema->set[set].metric[col].scale;
	g->counter = schema->set[set].metric[col].kind == KIND_COUNTER;
}

static void add_who(struct growth *g, const struct occupant *in)
{
	struct growth_name *who = &g->who[g->nr_who];

	if (g->nr_who == GROWTH_NAMES) {
		g->more_who++;
		return;
	}
	snprintf(who->name, sizeof(who->name), "%s", in ? in->name : "");
	snprintf(who->source, sizeof(who->source), "%s", in && in->source ? in->source : "");
	g->nr_who++;
}

static void row_step(struct growth *g, struct growth_row *row, int64_t cell, int64_t time_ns)
{
	double now = (double)cell * g->scale;

	g->grown += (double)counter_grew(row->last, cell) * g->scale;
	if (time_ns > row->time_ns)
		g->integral +=
			((double)row->last * g->scale + now) / 2 * ((double)(time_ns - row->time_ns) / 1e9);
	g->greatest = g->any ? MAX(g->greatest, now) : now;
	g->first_ns = g->any ? MIN(g->first_ns, time_ns) : time_ns;
	g->last_ns = g->any ? MAX(g->last_ns, time_ns) : time_ns;
	g->any = true;
	row->last = cell;
	row->time_ns = time_ns;
}

static int growth_look(struct growth *g, const struct walk *walk, const struct table *t, uint32_t at)
{
	struct growth_row *row = at < g->nr ? g->row : array_reach(g->row, &g->nr, at, sizeof(*row));
	const struct occupant *in = walk_occupant(walk, (uint32_t)g->set, at, t->id[at]);
	int64_t cell = t->cell[(size_t)at * t->nr_cols + (size_t)g->col];

	if (!row)
		return -ENOMEM;
	g->row = row;
	row += at;
	if (g->of == GROWTH_OWN ? !in || !in->own : in && in->counted_elsewhere)
		return 0;
	if (row->id != t->id[at]) {
		add_who(g, in);
		*row = (struct growth_row){.id = t->id[at],
			.last = g->of == GROWTH_FROM_ZERO ? MIN(cell, 0) : cell,
			.time_ns = walk->time_ns};
	}
	row_step(g, row, cell, walk->time_ns);
	return 0;
}

/* A counter that was looked at before and did not move. */
static bool rests(const struct growth *g, const struct table *t, uint32_t row)
{
	return g->counter && !(t->changed[row] >> g->col & 1) && row < g->nr && g->row[row].id == t->id[row];
}

int growth_tick(struct growth *g, const struct walk *walk)
{
	const struct table *t = g->col < 0 ? NULL : walk_table(walk, (uint32_t)g->set);
	int r = 0;

	/* A level that did not move lasts. */
	for (uint32_t i = 0; t && r >= 0 && i < (g->counter ? t->nr_touched : t->nr_rows); i++) {
		uint32_t row = g->counter ? t->touched[i] : i;

		if (t->id[row] != ROW_FREE && t->valid[row] >> g->col & 1 && !rests(g, t, row))
			r = growth_look(g, walk, t, row);
	}
	if (g->any)
		g->last_ns = MAX(g->last_ns, walk->time_ns);
	return r;
}

void growth_who(const struct growth *g, struct buf *out)
{
	bool done[GROWTH_NAMES] = {0};

	for (unsigned i = 0; i < g->nr_who; i++) {
		const char *between = ": ";

		if (done[i])
			continue;
		buf_addf(out, "%s%s", i ? "; " : "", *g->who[i].source ? g->who[i].source : "unknown");
		for (unsigned j = i; j < g->nr_who; j++) {
			if (done[j] || strcmp(g->who[i].source, g->who[j].source))
				continue;
			done[j] = true;
			buf_addf(out, "%s%s", between, g->who[j].name);
			between = ", ";
		}
	}
	if (g->more_who)
		buf_addf(out, " and %u more", g->more_who);
}

/* ---- the sum over the instances of now ---- */

int counter_sum_reserve(struct counter_sum *s, uint32_t nr_rows)
{
	struct counter_part *more;

	if (nr_rows <= s->nr)
		return 0;
	more = array_reach(s->part, &s->nr, nr_rows - 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->part = more;
	return 0;
}

void counter_sum_release(struct counter_sum *s)
{
	free(s->part);
	*s = (struct counter_sum){0};
}

static void part_value(struct counter_part *part, double value)
{
	if (isnan(value))
		return;
	if (part->in && part->known && value < part->last)
		part->offset += part->last - value;
	part->last = value;
	part->known = true;
}

double counter_sum_step(struct counter_sum *s, const struct counter_turn *turn)
{
	struct counter_part *part = &s->part[turn->row];

	if (part->id && part->id != turn->id) {
		if (part->in)
			s->kept += part->offset + (turn->inherited ? 0 : part->last);
		*part = (struct counter_part){0};
	}
	if (!turn->id)
		return NAN;
	if (part->in && !turn->inside) {
		s->kept += part->last + part->offset;
		part->in = false;
	}
	if (turn->inside && !part->in && !isnan(turn->value)) {
		double past = part->known && turn->before < turn->value ? turn->before : turn->value;

		part->offset = turn->from_zero && !part->known ? 0 : -past;
		part->in = true;
		part->last = turn->value;
	}
	part->id = turn->id;
	part_value(part, turn->value);
	return part->in ? part->last + part->offset : NAN;
}
