/* The sums are kept as query/living keeps them, and what a process holds is computed by the very same
 * function, so that the numbers are those of the summary. A tick costs what changed in it; nothing is
 * allocated after the first.
 *
 * Rejected: reading the recording back at the end. It would take seconds after a long job, and who asked for
 * no summary would wait for nothing. */
#include "cmd/tally.h"

#include "query/lines.h"

enum { SUM_RSS, SUM_PSS, NR_SUMS };

static const struct {
	enum level level;
	const char *key;
} sum_of[NR_SUMS] = {[SUM_RSS] = {LEVEL_RSS, "peak_rss_bytes"}, [SUM_PSS] = {LEVEL_PSS, "peak_pss_bytes"}};

enum { TREE_GONE_USER, TREE_GONE_SYSTEM, TREE_CGROUP_CPU, TREE_PROCESSES, TREE_MAX_RSS, NR_TREE };

static const char *const tree_metric[NR_TREE] = {
	"tree.gone.user", "tree.gone.system", "tree.cgroup.cpu", "tree.processes", "tree.gone.max_rss"};

struct tally {
	struct process_columns columns;
	struct held {
		bool bound;
		int64_t level[NR_SUMS];
	} * held; /* by row of the table of processes */
	uint32_t cap, bound;
	int64_t sum[NR_SUMS], peak[NR_SUMS];
	bool known[NR_SUMS];
	struct column tree_column[NR_TREE];
	int64_t tree[NR_TREE];
	bool tree_known[NR_TREE];
	uint32_t seen;
	int64_t most;
	int64_t mark; /* the most memory of any one process, as the kernel keeps it; 0: not known */
};

struct tally *tally_new(const struct schema *schema)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->columns = process_columns_of(schema);
	for (unsigned i = 0; i < NR_TREE; i++)
		t->tree_column[i] = column_find(schema, tree_metric[i]);
	return t;
}

struct tally *tally_free(struct tally *t)
{
	if (t)
		free(t->held);
	free(t);
	return NULL;
}

static bool is_process(const struct tally *t, uint32_t set)
{
	return t && t->columns.set >= 0 && set == (uint32_t)t->columns.set;
}

/* Ids are given from 1 on in turn, so the highest is how many there were. They are not heard in turn: who
 * ends within a tick is told of before those who go on. */
static void see(struct tally *t, uint32_t id)
{
	t->seen = MAX(t->seen, id);
}

void tally_instance(struct tally *t, uint32_t set, uint32_t id)
{
	if (is_process(t, set))
		see(t, id);
}

static void hold(struct tally *t, uint32_t row, bool bound, const int64_t *level)
{
	struct held *held = &t->held[row];

	t->bound += (uint32_t)bound - (uint32_t)held->bound;
	held->bound = bound;
	for (unsigned i = 0; i < NR_SUMS; i++) {
		t->sum[i] += level[i] - held->level[i];
		held->level[i] = level[i];
	}
}

void tally_gone(struct tally *t, uint32_t set, uint32_t row, uint32_t id)
{
	if (!is_process(t, set))
		return;
	see(t, id);
	if (t->held && row < t->cap)
		hold(t, row, false, (const int64_t[NR_SUMS]){0});
}

static void tick_processes(struct tally *t, struct table *table)
{
	const struct column *mark = &t->columns.column[COL_HWM];

	if (!t->held) {
		t->held = calloc(table->cap, sizeof(*t->held));
		t->cap = t->held ? table->cap : 0;
	}
	for (uint32_t i = 0; t->held && i < table->nr_touched; i++) {
		uint32_t row = table->touched[i];
		int64_t level[NR_LEVELS] = {0}, now[NR_SUMS];
		uint32_t valid = process_levels(&t->columns, table_row(table, row), table->valid[row], level);

		for (unsigned k = 0; k < NR_SUMS; k++) {
			bool known = valid >> sum_of[k].level & 1;

			now[k] = known ? level[sum_of[k].level] : 0;
			t->known[k] |= known;
		}
		if (table->id[row] != ROW_FREE && row < t->cap)
			hold(t, row, true, now);
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
		const struct column *c = &t->tree_column[i];
		struct table *tree = c->col < 0 ? NULL : table[c->set];

		if (!tree || !tree->nr_rows || tree->id[0] == ROW_FREE || !(tree->valid[0] >> c->col & 1))
			continue;
		t->tree[i] = column_value(c, table_row(tree, 0)[c->col]);
		t->tree_known[i] = true;
	}
	t->mark = MAX(t->mark, t->tree[TREE_MAX_RSS]);
	if (t->tree_known[TREE_PROCESSES])
		t->most = MAX(t->most, t->tree[TREE_PROCESSES]);
}

void tally_tick(struct tally *t, struct table *const *table)
{
	if (!t)
		return;
	if (t->columns.set >= 0)
		tick_processes(t, table[t->columns.set]);
	tick_tree(t, table);
}

void tally_describe(const struct tally *t, bool whole, struct pairs *p)
{
	int64_t gone_ns = t ? t->tree[TREE_GONE_USER] + t->tree[TREE_GONE_SYSTEM] : 0;
	bool gone;

	if (!t)
		return;
	for (unsigned i = 0; i < NR_SUMS; i++)
		if (t->known[i])
			pairs_num(p, sum_of[i].key, t->peak[i]);
	if (t->mark > 0)
		pairs_num(p, "max_process_bytes", t->mark);
	if (t->columns.set >= 0) {
		pairs_num(p, "processes", t->seen);
		pairs_num(p, "peak_processes", t->most);
	}
	gone = t->tree_known[TREE_GONE_USER] && t->tree_known[TREE_GONE_SYSTEM];
	if (whole && t->tree_known[TREE_CGROUP_CPU] &&
		!(gone && group_lacks_cpu(t->tree[TREE_CGROUP_CPU], gone_ns, true)))
		pairs_num(p, "cpu_ns", t->tree[TREE_CGROUP_CPU]);
	else if (whole && gone)
		pairs_num(p, "cpu_ns", gone_ns);
}
