/* Finds the ticks at which counters rise: see counter_watch.h. */
#include "query/counter_watch.h"

#include "base/owned.h"

#include <stdlib.h>

/* The node's counter may be read so much later than a group's. */
#define NODE_COUNTER_LATE_NS (15 * NSEC_PER_SEC)

void counter_watch_bind(struct counter_watch *w, const struct schema *schema, const char *metric)
{
	uint32_t set, col;

	w->set = w->col = -1;
	if (!schema || !schema_find(schema, metric, &set, &col))
		return;
	w->set = (int)set;
	w->col = (int)col;
}

void counter_watch_release(struct counter_watch *w)
{
	free(w->row);
	*w = (struct counter_watch){.set = -1, .col = -1};
}

/* By how much the row's counter rose; of one that was not there before nothing is known. */
static int64_t rise_of_row(struct counter_watch *w, struct table *t, uint32_t row)
{
	struct watched_row *before = &w->row[row];
	int64_t now, rose;

	if (t->id[row] == ROW_FREE || !(t->valid[row] >> w->col & 1))
		return 0;
	now = table_row(t, row)[w->col];
	rose = before->id == t->id[row] && now > before->last ? wrap_sub(now, before->last) : 0;
	*before = (struct watched_row){t->id[row], now};
	return MAX(rose, 0);
}

int counter_watch_tick(
	struct counter_watch *w, const struct tick_view *view, bool deepest, struct counter_rise *ret)
{
	struct table *t = w->set < 0 ? NULL : view->table(view->arg, (uint32_t)w->set);
	struct watched_row *more;
	size_t most = 0;

	*ret = (struct counter_rise){0};
	if (!t || !t->nr_touched)
		return 0;
	more = t->nr_rows > w->cap ? array_reach(w->row, &w->cap, t->nr_rows - 1, sizeof(*more)) : w->row;
	if (!more)
		return -ENOMEM;
	w->row = more;
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];
		int64_t by = row < w->cap ? rise_of_row(w, t, row) : 0;
		size_t len = 0, weight;
		const char *name = by ? view->name(view->arg, (uint32_t)w->set, row, &len) : NULL;

		weight = deepest ? len + 1 : (size_t)by;
		if (!by || weight <= most)
			continue;
		most = weight;
		*ret = (struct counter_rise){by, name, len};
	}
	return 0;
}

void kills_bind(struct kills *k, const struct schema *schema)
{
	counter_watch_bind(&k->group, schema, "cgroup.memory.oom_kill");
	counter_watch_bind(&k->node, schema, "paging.oom_kills");
}

void kills_release(struct kills *k)
{
	counter_watch_release(&k->group);
	counter_watch_release(&k->node);
}

int kills_tick(struct kills *k, const struct tick_view *view, int64_t time_ns, struct counter_rise *ret_group,
	int64_t *ret_node)
{
	struct counter_rise node = {0};
	int r = counter_watch_tick(&k->group, view, true, ret_group);

	*ret_node = 0;
	if (r >= 0 && ret_group->by) {
		k->group_rose = true;
		k->group_ns = time_ns;
		k->group_kills += ret_group->by;
	}
	if (r >= 0)
		r = counter_watch_tick(&k->node, view, true, &node);
	if (r < 0 || !node.by)
		return r;
	if (k->group_rose && time_ns - k->group_ns < NODE_COUNTER_LATE_NS)
		node.by -= MIN(node.by, k->group_kills);
	k->group_kills = 0;
	*ret_node = node.by;
	return 0;
}
