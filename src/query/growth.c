/* One occupant a row. A counter that falls was reset: the step in which it fell adds nothing (a collector
 * that knows where its counter wraps has undone that already). Across a gap in the recording the same
 * instance goes on: its counter did count meanwhile, and its level is taken to have changed evenly. */
#include "query/growth.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

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
		if (cell > occupant->last)
			g->grown += (double)((uint64_t)cell - (uint64_t)occupant->last) * g->scale;
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
