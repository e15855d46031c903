/* The node's part of a summary: what the job may use, what the machine did meanwhile, what it is, and which
 * job it was. */
#include "query/nodes.h"

#include "base/str.h"
#include "query/totals.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

static void from_meta(struct summary *s, enum figure_id id, const struct meta *meta, const char *key,
	enum figure_id otherwise)
{
	const char *text = meta_text(meta, key);
	double value;

	if (parse_decimal(text, &value) && isfinite(value) && value > 0)
		figure_set(s, id, value);
	else if (otherwise != NR_FIGURES)
		s->figure[id] = s->figure[otherwise];
	else
		figure_unset(s, id, "not recorded");
}

static void fill_limits(struct summary *s, const struct ledger *a)
{
	const struct meta *meta = ledger_meta(a);

	from_meta(s, FIG_LIMIT_CPUS, meta, "limits.cpus", NR_FIGURES);
	from_meta(s, FIG_LIMIT_MEMORY, meta, "limits.memory_bytes", NR_FIGURES);
	from_meta(s, FIG_MACHINE_CPUS, meta, "limits.machine_cpus", FIG_CPUS);
	from_meta(s, FIG_MACHINE_MEMORY, meta, "limits.machine_memory_bytes", FIG_MEMORY_TOTAL);
}

/* The limits of the group of this name: CPUs, their source, bytes, their source. */
static bool find_group_limits(const struct meta *meta, const char *name, const char *ret[static 4])
{
	for (uint32_t i = 0; i < meta->nr; i++) {
		const struct meta_item *item = &meta->item[i];
		const char *at = item->value, *end = item->value + item->len;

		if (!str_starts(item->key, "limits.group.") || strcmp(at, name) != 0)
			continue;
		for (unsigned part = 0; part < 4; part++) {
			at += strlen(at);
			ret[part] = at < end ? ++at : "";
		}
		return true;
	}
	return false;
}

static int set_source(struct summary *s, enum text_id id, const char *text)
{
	if (!text || !*text)
		return 0;
	s->text[id] = strdup(text);
	return s->text[id] ? 0 : -ENOMEM;
}

int fill_group_limits(struct summary *s, const struct summary *whole, const struct meta *meta)
{
	static const struct {
		enum figure_id figure;
		enum text_id source;
	} row[] = {{FIG_LIMIT_CPUS, TEXT_CPUS_SOURCE}, {FIG_LIMIT_MEMORY, TEXT_MEMORY_SOURCE}};
	const char *part[4];
	bool own = find_group_limits(meta, s->name, part);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(row) && r >= 0; i++) {
		double value;

		if (own && parse_decimal(part[2 * i], &value) && isfinite(value) && value > 0) {
			figure_set(s, row[i].figure, value);
			r = set_source(s, row[i].source, part[2 * i + 1]);
		} else {
			s->figure[row[i].figure] = whole->figure[row[i].figure];
			r = set_source(s, row[i].source, whole->text[row[i].source]);
		}
	}
	return r;
}

static void set_grown(struct summary *s, const struct ledger *a, enum figure_id figure, enum total total)
{
	const struct growth *g = &ledger_totals(a)->growth[total];

	if (g->any)
		figure_set(s, figure, g->grown);
	else
		figure_unset(s, figure, ledger_why(a, total_metric(total)));
}

static void fill_growth(struct summary *s, const struct ledger *a)
{
	static const struct {
		enum figure_id figure;
		enum total total;
	} row[] = {{FIG_NET_RX_BYTES, TOTAL_NET_RX_BYTES}, {FIG_NET_TX_BYTES, TOTAL_NET_TX_BYTES},
		{FIG_NET_RX_PACKETS, TOTAL_NET_RX_PACKETS}, {FIG_NET_TX_PACKETS, TOTAL_NET_TX_PACKETS},
		{FIG_IB_RX_BYTES, TOTAL_IB_RX_BYTES}, {FIG_IB_TX_BYTES, TOTAL_IB_TX_BYTES},
		{FIG_IB_RX_PACKETS, TOTAL_IB_RX_PACKETS}, {FIG_IB_TX_PACKETS, TOTAL_IB_TX_PACKETS},
		{FIG_DISK_READ, TOTAL_DISK_READ}, {FIG_DISK_WRITTEN, TOTAL_DISK_WRITTEN},
		{FIG_OOM_KILLS, TOTAL_CGROUP_OOM_KILLS}, {FIG_THROTTLED, TOTAL_CGROUP_THROTTLED}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		set_grown(s, a, row[i].figure, row[i].total);
}

/* The kernel's mark, or where it keeps none the most that was seen at a tick. */
static void fill_cgroup_peak(struct summary *s, const struct ledger *a)
{
	const struct node_totals *t = ledger_totals(a);
	const struct growth *peak = &t->growth[TOTAL_CGROUP_PEAK], *now = &t->growth[TOTAL_CGROUP_MEMORY];

	if (!peak->any && !now->any)
		figure_unset(s, FIG_CGROUP_PEAK, ledger_why(a, total_metric(TOTAL_CGROUP_PEAK)));
	else
		figure_set(s, FIG_CGROUP_PEAK,
			MAX(peak->any ? peak->greatest : 0, now->any ? now->greatest : 0));
}

static int take_sources(const struct growth *from, char **ret)
{
	struct buf text;

	buf_init(&text, 8192);
	growth_who(from, &text);
	*ret = strdup((char *)text.data);
	buf_release(&text);
	return *ret ? 0 : -ENOMEM;
}

/* Counters of energy where there are any, else power over time. */
static int fill_energy(struct summary *s, const struct ledger *a)
{
	const struct node_totals *t = ledger_totals(a);
	const struct growth *used = &t->growth[TOTAL_ENERGY], *power = &t->growth[TOTAL_POWER];
	const struct growth *from = used->any ? used : power;
	double joules = used->any ? used->grown : power->integral;
	double elapsed = (double)(from->last_ns - from->first_ns) / 1e9;

	if (!from->any) {
		figure_unset(s, FIG_ENERGY, ledger_why(a, total_metric(TOTAL_ENERGY)));
		figure_unset(s, FIG_POWER, s->figure[FIG_ENERGY].why);
		return 0;
	}
	figure_set(s, FIG_ENERGY, joules);
	if (elapsed > 0)
		figure_set(s, FIG_POWER, joules / elapsed);
	else
		figure_unset(s, FIG_POWER, "it was read only once");
	return take_sources(from, &s->text[TEXT_ENERGY_SOURCE]);
}

/* Both ways, where a source cannot tell them apart or tells of each. */
static int fill_bandwidth(struct summary *s, const struct ledger *a)
{
	static const struct {
		enum figure_id figure;
		enum total total;
	} row[] = {{FIG_MEMBW_READ, TOTAL_MEMBW_READ}, {FIG_MEMBW_WRITE, TOTAL_MEMBW_WRITE}};
	const struct node_totals *t = ledger_totals(a);
	const struct growth *from = &t->growth[TOTAL_MEMBW_BOTH];
	struct meter meter = t->bandwidth;
	double total = from->any ? from->grown : 0, rate, at, window;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct growth *g = &t->growth[row[i].total];

		set_grown(s, a, row[i].figure, row[i].total);
		total += g->any ? g->grown : 0;
		from = g->any ? g : from;
	}
	if (!from->any) {
		for (enum figure_id id = FIG_MEMBW_TOTAL; id <= FIG_MEMBW_PEAK; id++)
			figure_unset(s, id, s->figure[FIG_MEMBW_READ].why);
		return 0;
	}
	figure_set(s, FIG_MEMBW_TOTAL, total);
	figure_unset(s, FIG_MEMBW_MEAN, "it was read only once");
	figure_unset(s, FIG_MEMBW_PEAK, "it was read only once");
	if (from->last_ns > from->first_ns)
		figure_set(s, FIG_MEMBW_MEAN, total / ((double)(from->last_ns - from->first_ns) / 1e9));
	if (t->incomplete)
		summary_note(s, "memory bandwidth is a lower bound: %s", t->incomplete);
	if (meter_peak(&meter, 0, &rate, &at, &window))
		figure_set(s, FIG_MEMBW_PEAK, rate);
	return take_sources(from, &s->text[TEXT_MEMBW_SOURCE]);
}

/* ---- words ---- */

static int fill_texts(struct summary *s, const struct ledger *a)
{
	const struct node_totals *t = ledger_totals(a);

	for (unsigned i = 0; i < NR_TEXTS; i++) {
		const char *key = summary_text_row[i].meta, *text = key ? meta_text(ledger_meta(a), key) : "";

		if (i == TEXT_CGROUP && t->cgroup)
			text = t->cgroup;
		if (!*text)
			continue;
		s->text[i] = strdup(text);
		if (!s->text[i])
			return -ENOMEM;
	}
	return 0;
}

/* All keys that begin so, without that beginning. */
static int take_facts(const struct meta *meta, const char *prefix, struct summary_fact **ret, size_t *ret_nr)
{
	int r = 0;

	for (uint32_t i = 0; i < meta->nr && r >= 0; i++) {
		const struct meta_item *item = &meta->item[i];

		if (str_starts(item->key, prefix) && item->key[strlen(prefix)])
			r = summary_fact_add(ret, ret_nr, item->key + strlen(prefix), item->value);
	}
	return r;
}

int fill_node(struct summary *s, const struct ledger *a)
{
	const struct meta *meta = ledger_meta(a);
	int r = fill_texts(s, a);

	fill_limits(s, a);
	fill_growth(s, a);
	fill_cgroup_peak(s, a);
	if (r >= 0)
		r = fill_energy(s, a);
	if (r >= 0)
		r = fill_bandwidth(s, a);
	if (r >= 0)
		r = take_facts(meta, "hw.", &s->hardware, &s->nr_hardware);
	if (r >= 0)
		r = take_facts(meta, "env.", &s->environment, &s->nr_environment);
	return r;
}
