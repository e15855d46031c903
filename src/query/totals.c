/* One row a number: the metric it comes from and how that becomes a number of the whole recording. Instances
 * that stand apart are left out; of control groups only the job's own counts. */
#include "query/totals.h"

#include <string.h>

/* clang-format off */
static const struct {
	const char *metric;
	enum growth_of of;
} total[NR_TOTALS] = {
	[TOTAL_NET_RX_BYTES]     = {"net.rx.bytes",            GROWTH_ADDED},
	[TOTAL_NET_TX_BYTES]     = {"net.tx.bytes",            GROWTH_ADDED},
	[TOTAL_NET_RX_PACKETS]   = {"net.rx.packets",          GROWTH_ADDED},
	[TOTAL_NET_TX_PACKETS]   = {"net.tx.packets",          GROWTH_ADDED},
	[TOTAL_IB_RX_BYTES]      = {"ib.rx.bytes",             GROWTH_ADDED},
	[TOTAL_IB_TX_BYTES]      = {"ib.tx.bytes",             GROWTH_ADDED},
	[TOTAL_IB_RX_PACKETS]    = {"ib.rx.packets",           GROWTH_ADDED},
	[TOTAL_IB_TX_PACKETS]    = {"ib.tx.packets",           GROWTH_ADDED},
	[TOTAL_DISK_READ]        = {"disk.read.bytes",         GROWTH_ADDED},
	[TOTAL_DISK_WRITTEN]     = {"disk.write.bytes",        GROWTH_ADDED},
	[TOTAL_ENERGY]           = {"energy.used",             GROWTH_ADDED},
	[TOTAL_POWER]            = {"energy.power",            GROWTH_ADDED},
	[TOTAL_CGROUP_PEAK]      = {"cgroup.memory.peak",      GROWTH_OWN},
	[TOTAL_CGROUP_MEMORY]    = {"cgroup.memory.current",   GROWTH_OWN},
	[TOTAL_CGROUP_OOM_KILLS] = {"cgroup.memory.oom_kill",  GROWTH_OWN},
	[TOTAL_CGROUP_THROTTLED] = {"cgroup.cpu.throttled",    GROWTH_OWN},
	[TOTAL_MEMBW_READ]       = {"membw.read",              GROWTH_ADDED},
	[TOTAL_MEMBW_WRITE]      = {"membw.write",             GROWTH_ADDED},
	[TOTAL_MEMBW_BOTH]       = {"membw.both",              GROWTH_ADDED},
};
/* clang-format on */

/* Rates over less are those of the ticks' own unevenness. */
#define SHORTEST_STEP 0.05

const char *total_metric(enum total which)
{
	return total[which].metric;
}

void totals_init(struct node_totals *t)
{
	*t = (struct node_totals){.cgroup_set = -1};
	for (unsigned i = 0; i < NR_TOTALS; i++)
		growth_init(&t->growth[i], total[i].of);
	meter_init(&t->bandwidth, SHORTEST_STEP);
}

void totals_release(struct node_totals *t)
{
	for (unsigned i = 0; i < NR_TOTALS; i++)
		growth_release(&t->growth[i]);
	free(t->cgroup);
	free(t->incomplete);
	t->cgroup = t->incomplete = NULL;
}

void totals_bind(struct node_totals *t, const struct schema *schema)
{
	t->cgroup_set = schema_find_domain(schema, DOMAIN_CGROUP);
	for (unsigned i = 0; i < NR_TOTALS; i++)
		growth_bind(&t->growth[i], schema, total[i].metric);
}

static int take_cgroup(struct node_totals *t, const struct store_record *record)
{
	const struct pair *name = pairs_find(record->pairs, "name");
	int64_t own = 0;
	char *path;

	if (t->cgroup_set < 0 || record->set != (uint32_t)t->cgroup_set || !name)
		return 0;
	if (!pairs_get_num(record->pairs, "own", &own) || !own)
		return 0;
	path = strndup(name->value, name->len);
	if (!path)
		return -ENOMEM;
	free(t->cgroup);
	t->cgroup = path;
	return 0;
}

/* Some memory channels could not be counted. */
static int take_incomplete(struct node_totals *t, const struct store_record *record)
{
	const struct pair *text = pairs_find(record->pairs, "incomplete");
	bool of_memory = false;

	for (unsigned i = TOTAL_MEMBW_READ; i <= TOTAL_MEMBW_BOTH; i++)
		of_memory |= t->growth[i].set >= 0 && record->set == (uint32_t)t->growth[i].set;
	if (!of_memory || !text || t->incomplete)
		return 0;
	t->incomplete = strndup(text->value, text->len);
	return t->incomplete ? 0 : -ENOMEM;
}

int totals_instance(struct node_totals *t, const struct store_record *record)
{
	int r = take_cgroup(t, record);

	return r < 0 ? r : take_incomplete(t, record);
}

int totals_tick(struct node_totals *t, const struct walk *walk)
{
	double moved = 0;
	bool any = false;
	int r = 0;

	for (unsigned i = 0; i < NR_TOTALS && r >= 0; i++)
		r = growth_tick(&t->growth[i], walk);
	for (unsigned i = TOTAL_MEMBW_READ; i <= TOTAL_MEMBW_BOTH; i++) {
		any |= t->growth[i].any;
		moved += t->growth[i].grown;
	}
	if (any)
		meter_add(&t->bandwidth, (double)walk->time_ns / 1e9, moved);
	return r;
}
