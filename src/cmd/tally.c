/* Keeps sums while a recording is made: see tally.h. They are kept as query/live_processes keeps them, and
 * the values of a process are computed by the same function, so that the numbers are those of the summary. A
 * tick costs what changed in it; nothing is allocated for it.
 *
 * The CPU time of a job that we started, and that has ended, is what wait() gave us. Of any other it is added
 * up from live and ended processes as query/accounts.c does it, whose comment has the arithmetic.
 *
 * Rejected: reading the recording back at the end. It would take seconds after a long job, even for users who
 * asked for no summary. */
#include "cmd/tally.h"

#include "query/accounts.h"

#include <string.h>

enum { SUM_RSS, SUM_PSS, NR_SUMS };

static const struct {
	enum level level;
	const char *key;
} sum_of[NR_SUMS] = {[SUM_RSS] = {LEVEL_RSS, "peak_rss_bytes"}, [SUM_PSS] = {LEVEL_PSS, "peak_pss_bytes"}};

enum { /* one row has these */
	TREE_GONE_USER,
	TREE_GONE_SYSTEM,
	TREE_CGROUP_CPU,
	TREE_OUTSIDE,
	TREE_PROCESSES,
	TREE_MAX_RSS,
	NR_TREE
};

static const char *const tree_metric[NR_TREE] = {"tree.gone.user", "tree.gone.system", "tree.cgroup.cpu",
	"tree.outside", "tree.processes", "tree.gone.max_rss"};

static const unsigned time_part[] = {USED_CPU, PART_CHILD_USER, PART_CHILD_SYSTEM};

#define NR_TIMES ARRAY_SIZE(time_part)

struct amount {
	int64_t ns;
	bool known;
};

struct tally {
	struct process_columns columns;
	struct held {
		bool bound, late;
		uint8_t read; /* mask of times that had a value at least once */
		uint64_t groups;
		int64_t time[NR_TIMES], offset[NR_TIMES]; /* as raw and offset of struct process */
		int64_t level[NR_SUMS];
	} * held; /* by row of the table of processes */
	uint32_t cap, bound;
	int64_t sum[NR_SUMS], peak[NR_SUMS];
	bool known[NR_SUMS];
	struct cell_column tree_column[NR_TREE];
	int64_t tree[NR_TREE], tree_offset[NR_TREE]; /* last value; sum of all falls */
	bool tree_known[NR_TREE];
	int64_t most;
	int64_t mark; /* the most memory of any one process, as the kernel keeps it; 0: not known */

	bool attached, has_command; /* a command beside other targets: readers compute its part */
	int group_set;
	struct groups groups;
	uint64_t own;	    /* mask of groups: without what members' children used */
	int64_t live_ns;    /* of live processes, and what remains of their corrections */
	uint64_t part_cols; /* columns that are parts of amounts */
	bool was_read, cpu_read;
	int64_t base_ns; /* used before the recording began */
	uint64_t ticks;
	struct amount waiting, given;
};

struct tally *tally_new(const struct schema *schema, uint32_t max_members, bool attached)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->held = calloc(max_members, sizeof(*t->held));
	if (!t->held)
		return tally_free(t);
	t->cap = max_members;
	t->attached = attached;
	t->columns = process_columns_of(schema);
	t->group_set = schema_find_domain(schema, DOMAIN_GROUP);
	for (unsigned i = 0; i < NR_PARTS; i++)
		if (t->columns.column[i].col >= 0)
			t->part_cols |= UINT64_C(1) << t->columns.column[i].col;
	for (unsigned i = 0; i < NR_TREE; i++)
		t->tree_column[i] = column_find(schema, tree_metric[i]);
	return t;
}

struct tally *tally_free(struct tally *t)
{
	if (t) {
		free(t->held);
		groups_release(&t->groups);
	}
	free(t);
	return NULL;
}

static bool is_process(const struct tally *t, uint32_t set)
{
	return t && t->columns.set >= 0 && set == (uint32_t)t->columns.set;
}

static void take_group(struct tally *t, const struct pairs *about)
{
	const struct pair *name = pairs_find(about, "name"), *kind = pairs_find(about, "kind");
	int g = name ? groups_index(&t->groups, name->value, name->len) : -EINVAL;
	int64_t own = 0;

	if (g >= 0 && pairs_get_num(about, "own", &own) && own)
		t->own |= UINT64_C(1) << g;
	t->has_command |=
		kind && kind->len == strlen("command") && !memcmp(kind->value, "command", kind->len);
}

void tally_instance(struct tally *t, uint32_t set, uint32_t row, const struct pairs *identity)
{
	int64_t late = 0;

	if (t && t->group_set >= 0 && set == (uint32_t)t->group_set)
		take_group(t, identity);
	if (!is_process(t, set) || row >= t->cap)
		return;
	groups_mask(&t->groups, pairs_find(identity, "groups"), &t->held[row].groups);
	pairs_get_num(identity, "late", &late);
	t->held[row].late |= late != 0;
}

/* For a process that was chosen without its children, their times are not counted. */
static bool is_counted(const struct tally *t, const struct held *h, unsigned time)
{
	return time_part[time] == USED_CPU || !h->groups || h->groups & ~t->own;
}

static void time_set(struct tally *t, struct held *h, unsigned time, int64_t ns)
{
	bool first = !(h->read >> time & 1);
	int64_t before = h->time[time] + h->offset[time];

	if (!first && ns < h->time[time])
		h->offset[time] += h->time[time] - ns;
	h->read |= (uint8_t)(1 << time);
	h->time[time] = ns;
	t->cpu_read |= time_part[time] == USED_CPU;
	if (!(first && h->late) && is_counted(t, h, time))
		t->live_ns += ns + h->offset[time] - before;
}

static void hold(struct tally *t, struct held *held, bool bound, const int64_t *level)
{
	t->bound += (uint32_t)bound - (uint32_t)held->bound;
	held->bound = bound;
	for (unsigned i = 0; i < NR_SUMS; i++) {
		t->sum[i] += level[i] - held->level[i];
		held->level[i] = level[i];
	}
}

void tally_gone(struct tally *t, uint32_t set, uint32_t row, const struct pairs *last)
{
	int64_t kib = 0, most = 0, sampled = 0, cpu_ns = 0;
	struct held *h;

	if (!is_process(t, set))
		return;
	pairs_get_num(last, "max_rss_kib", &kib);
	pairs_get_num(last, "max_rss_most", &most);
	if (!most)
		t->mark = MAX(t->mark, kib * 1024);
	if (row >= t->cap)
		return;
	h = &t->held[row];
	pairs_get_num(last, "sampled", &sampled);
	if (sampled && pairs_get_num(last, "cpu_ns", &cpu_ns) && cpu_ns > h->time[0])
		time_set(t, h, 0, cpu_ns);
	/* What it used is in the accounts of others, except what we had to add because a counter fell. */
	for (unsigned i = 0; i < NR_TIMES; i++)
		t->live_ns -= is_counted(t, h, i) ? h->time[i] : -h->offset[i];
	hold(t, h, false, (const int64_t[NR_SUMS]){0});
	*h = (struct held){0};
}

static void take_times(struct tally *t, struct held *h, const int64_t *cell, uint64_t valid)
{
	t->was_read |= (valid & t->part_cols) != 0;
	for (unsigned i = 0; i < NR_TIMES; i++) {
		int64_t ns;

		if (process_part(&t->columns, cell, valid, time_part[i], &ns))
			time_set(t, h, i, ns);
	}
}

static void tick_processes(struct tally *t, struct table *table)
{
	const struct cell_column *mark = &t->columns.column[COL_HWM];

	for (uint32_t i = 0; i < table->nr_touched; i++) {
		uint32_t row = table->touched[i];
		int64_t level[NR_LEVELS] = {0}, now[NR_SUMS];
		uint32_t valid = process_levels(&t->columns, table_row(table, row), table->valid[row], level);

		for (unsigned k = 0; k < NR_SUMS; k++) {
			bool known = valid >> sum_of[k].level & 1;

			now[k] = known ? level[sum_of[k].level] : 0;
			t->known[k] |= known;
		}
		if (table->id[row] != ROW_FREE && row < t->cap) {
			hold(t, &t->held[row], true, now);
			take_times(t, &t->held[row], table_row(table, row), table->valid[row]);
		}
		if (mark->col >= 0 && table->valid[row] >> mark->col & 1)
			t->mark = MAX(t->mark, column_value(mark, table_row(table, row)[mark->col]));
	}
	for (unsigned k = 0; k < NR_SUMS; k++)
		t->peak[k] = MAX(t->peak[k], t->sum[k]);
	t->most = MAX(t->most, (int64_t)t->bound);
}

static void tick_tree(struct tally *t, struct table *const *table)
{
	for (unsigned i = 0; i < NR_TREE; i++) {
		const struct cell_column *c = &t->tree_column[i];
		struct table *tree = c->col < 0 ? NULL : table[c->set];
		int64_t v;

		if (!tree || !tree->nr_rows || tree->id[0] == ROW_FREE || !(tree->valid[0] >> c->col & 1))
			continue;
		v = column_value(c, table_row(tree, 0)[c->col]);
		if (t->tree_known[i] && v < t->tree[i])
			t->tree_offset[i] += t->tree[i] - v;
		t->tree[i] = v;
		t->tree_known[i] = true;
	}
	t->mark = MAX(t->mark, t->tree[TREE_MAX_RSS]);
	if (t->tree_known[TREE_PROCESSES])
		t->most = MAX(t->most, t->tree[TREE_PROCESSES]);
}

static int64_t tree_total(const struct tally *t, unsigned which)
{
	return t->tree[which] + t->tree_offset[which];
}

static struct amount added_up(const struct tally *t)
{
	if ((t->was_read && !t->cpu_read) || !t->tree_known[TREE_GONE_USER] ||
		!t->tree_known[TREE_GONE_SYSTEM])
		return (struct amount){0};
	return (struct amount){
		t->live_ns + tree_total(t, TREE_GONE_USER) + tree_total(t, TREE_GONE_SYSTEM), true};
}

/* As used_now() of query/ledger.c. */
static struct amount used_now(const struct tally *t)
{
	struct amount added = added_up(t),
		      counted = {tree_total(t, TREE_CGROUP_CPU), t->tree_known[TREE_CGROUP_CPU]};
	bool is_read = t->columns.column[USED_CPU].col >= 0;
	bool left = t->tree_known[TREE_OUTSIDE] && t->tree[TREE_OUTSIDE] > 0;

	if (!is_read && t->attached)
		return (struct amount){0};
	if (counted.known) {
		left |= group_lacks_cpu(counted.ns, added.ns, !t->bound);
		if (!left || added.ns <= counted.ns)
			return counted;
	}
	return is_read || !t->bound ? added : (struct amount){0};
}

static struct amount settled(const struct tally *t, const struct amount *next)
{
	struct amount now = t->waiting;

	if (!now.known)
		return t->given;
	if (next && next->known)
		now.ns = MIN(now.ns, next->ns);
	now.ns = MAX(now.ns, t->given.ns);
	return now;
}

void tally_tick(struct tally *t, struct table *const *table)
{
	struct amount next;

	if (!t)
		return;
	if (t->columns.set >= 0)
		tick_processes(t, table[t->columns.set]);
	tick_tree(t, table);
	next = used_now(t);
	if (next.known && !t->ticks && t->attached)
		t->base_ns = tree_total(t, TREE_GONE_USER) + tree_total(t, TREE_GONE_SYSTEM);
	next.ns -= t->base_ns;
	if (t->ticks++)
		t->given = settled(t, &next);
	t->waiting = next;
}

static void describe_cpu(const struct tally *t, bool whole, struct pairs *p)
{
	int64_t gone_ns = t->tree[TREE_GONE_USER] + t->tree[TREE_GONE_SYSTEM];
	bool gone = t->tree_known[TREE_GONE_USER] && t->tree_known[TREE_GONE_SYSTEM];
	struct amount used = settled(t, NULL);

	if (whole && t->tree_known[TREE_CGROUP_CPU] &&
		!(gone && group_lacks_cpu(t->tree[TREE_CGROUP_CPU], gone_ns, true)))
		pairs_num(p, "cpu_ns", t->tree[TREE_CGROUP_CPU]);
	else if (whole && gone)
		pairs_num(p, "cpu_ns", gone_ns);
	else if (used.known && !t->has_command)
		pairs_num(p, "cpu_seen_ns", used.ns);
}

void tally_describe(const struct tally *t, bool whole, uint64_t seen, struct pairs *p)
{
	if (!t)
		return;
	for (unsigned i = 0; i < NR_SUMS; i++)
		if (t->known[i])
			pairs_num(p, sum_of[i].key, t->peak[i]);
	if (t->mark > 0)
		pairs_num(p, "max_process_bytes", t->mark);
	if (t->columns.set >= 0) {
		pairs_num(p, "processes", (int64_t)seen);
		pairs_num(p, "peak_processes", t->most);
	}
	describe_cpu(t, whole, p);
}
