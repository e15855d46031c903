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
#include <string.h>

/* ---- what the instances of a metric did over a recording ---- */

void growth_init(struct growth *g, enum growth_of of)
{
	*g = (struct growth){.set = -1, .col = -1, .of = of};
}

void growth_release(struct growth *g)
{
	free(g->occupant);
	g->occupant = NULL;
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

/* The occupant of a row; NULL when there is no memory. */
static struct growth_occupant *occupant_of(struct growth *g, uint32_t row, uint32_t id)
{
	struct growth_occupant *occupant = array_reach(g->occupant, &g->nr, row, sizeof(*occupant));

	if (!occupant)
		return NULL;
	g->occupant = occupant;
	occupant += row;
	if (occupant->id != id)
		*occupant = (struct growth_occupant){.id = id, .counts = g->of != GROWTH_OWN};
	return occupant;
}

static void copy_text(char *to, size_t size, const struct pair *pair)
{
	size_t n = pair ? MIN(pair->len, size - 1) : 0;

	if (n)
		memcpy(to, pair->value, n);
	to[n] = 0;
}

int growth_instance(struct growth *g, const struct store_record *record)
{
	const struct pair *source;
	struct growth_occupant *occupant;
	int64_t own = 0;

	if (g->set < 0 || record->set != (uint32_t)g->set || record->row == STORE_NO_ROW)
		return 0;
	occupant = occupant_of(g, record->row, record->id);
	if (!occupant)
		return -ENOMEM;
	pairs_get_num(record->pairs, "own", &own);
	occupant->counts = g->of == GROWTH_OWN ? own != 0 : !pairs_find(record->pairs, "apart");
	copy_text(occupant->name, sizeof(occupant->name), pairs_find(record->pairs, "name"));
	source = pairs_find(record->pairs, "source");
	if (!source)
		source = pairs_find(record->pairs, "events");
	copy_text(occupant->source, sizeof(occupant->source), source);
	return 0;
}

static void add_who(struct growth *g, const struct growth_occupant *occupant)
{
	struct growth_name *who = &g->who[g->nr_who];

	if (g->nr_who == GROWTH_NAMES) {
		g->more_who++;
		return;
	}
	memcpy(who->name, occupant->name, sizeof(who->name));
	memcpy(who->source, occupant->source, sizeof(who->source));
	g->nr_who++;
}

static void occupant_step(struct growth *g, struct growth_occupant *occupant, int64_t cell, int64_t time_ns)
{
	double now = (double)cell * g->scale;

	if (!occupant->known) {
		add_who(g, occupant);
		g->grown += g->of == GROWTH_FROM_ZERO ? MAX(now, 0) : 0;
	} else {
		g->grown += (double)counter_grew(occupant->last, cell) * g->scale;
		if (time_ns > occupant->time_ns)
			g->integral += ((double)occupant->last * g->scale + now) / 2 *
				((double)(time_ns - occupant->time_ns) / 1e9);
	}
	g->greatest = g->any ? MAX(g->greatest, now) : now;
	g->first_ns = g->any ? MIN(g->first_ns, time_ns) : time_ns;
	g->last_ns = g->any ? MAX(g->last_ns, time_ns) : time_ns;
	g->any = true;
	occupant->known = true;
	occupant->last = cell;
	occupant->time_ns = time_ns;
}

static int row_step(struct growth *g, struct table *t, uint32_t row, int64_t time_ns)
{
	struct growth_occupant *occupant;

	if (t->id[row] == ROW_FREE || !(t->valid[row] >> g->col & 1))
		return 0;
	occupant = occupant_of(g, row, t->id[row]);
	if (!occupant)
		return -ENOMEM;
	if (occupant->counts)
		occupant_step(g, occupant, table_row(t, row)[g->col], time_ns);
	return 0;
}

int growth_tick(struct growth *g, struct store_reader *reader, int64_t time_ns)
{
	struct table *t = g->col < 0 ? NULL : store_reader_table(reader, (uint32_t)g->set);
	int r = 0;

	/* A counter that did not move adds nothing; a level that did not move lasts. */
	for (uint32_t i = 0; t && r >= 0 && i < (g->counter ? t->nr_touched : t->nr_rows); i++)
		r = row_step(g, t, g->counter ? t->touched[i] : i, time_ns);
	if (g->any)
		g->last_ns = MAX(g->last_ns, time_ns);
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
