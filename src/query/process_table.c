/* The table of processes, filled while an account reads its recording (query/ledger). Counters and levels of
 * the living are kept by query/live_processes; a row is brought up to date from there when its process
 * leaves, when something was lost, and at the end. What its farewell says (the final account, the status) is
 * better than the last sample and replaces it. */
#include "query/process_table.h"

#include "query/align.h"
#include "base/owned.h"
#include "base/parallel.h"
#include "query/courses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	enum process_value value;
	enum used used;
} amount_value[] = {
#define ROW(id, name, unit, children, metric, ended, figure, stats, process) IF_##process({PROCESS_##id, USED_##id},)
	AMOUNTS(ROW)
#undef ROW
};

static const struct {
	enum process_value value;
	enum level level;
} peak_value[] = {
#define ROW(id, name, kind, metric, figure, stats, process) IF_##process({PROCESS_##id, LEVEL_##id},)
	LEVELS(ROW)
#undef ROW
};
/* clang-format on */

struct process_filling {
	struct walk_observer observer;
	struct process_table t;
	struct live_processes *live; /* the ledger's */
	struct process_numbers numbers;
	uint32_t node;
	struct course_reading *course; /* NULL: not asked for */
};

int process_numbers_take(struct process_numbers *n, uint32_t id, uint32_t *ret)
{
	*ret = idmap_get(&n->now, id);
	if (*ret != IDMAP_NONE)
		return 0;
	if (n->nr >= IDMAP_NONE - n->first)
		return -ENOMEM;
	*ret = n->first + n->nr;
	if (idmap_put(&n->now, id, *ret) < 0 || (n->keeps_all && idmap_put(&n->all, id, *ret) < 0))
		return -ENOMEM;
	n->nr++;
	return 0;
}

int process_number_record(struct process_numbers *n, const struct store_record *record)
{
	uint32_t number;
	int r = 0;

	if (record->type == STORE_INSTANCE || record->type == STORE_GONE)
		r = process_numbers_take(n, record->id, &number);
	if (record->type == STORE_GONE)
		idmap_remove(&n->now, record->id);
	return r;
}

void process_numbers_release(struct process_numbers *n)
{
	idmap_release(&n->now);
	idmap_release(&n->all);
	*n = (struct process_numbers){0};
}

static int copy_bytes(char **to, size_t *len, const struct pair *pair)
{
	char *copy;

	if (!pair)
		return 0;
	copy = malloc(pair->len + 1);
	if (!copy)
		return -ENOMEM;
	if (pair->len)
		memcpy(copy, pair->value, pair->len);
	copy[pair->len] = 0;
	free(*to);
	*to = copy;
	*len = pair->len;
	return 0;
}

static struct process_row *row_new(struct process_filling *f)
{
	struct process_table *t = &f->t;
	struct process_row *row;

	if (ARRAY_ROOM(t->row, t->cap, t->nr + 1) < 0)
		return NULL;
	row = &t->row[t->nr];
	*row = (struct process_row){.status = -1, .node = f->node};
	for (unsigned i = 0; i < NR_PROCESS_VALUES; i++)
		row->value[i] = NAN;
	row->name = strdup("");
	row->exe = strdup("");
	row->command = strdup("");
	row->groups = strdup("");
	t->nr++;
	return row->name && row->exe && row->command && row->groups ? row : NULL;
}

/* The row of an instance; made when it is new. */
static struct process_row *row_of(struct process_filling *f, uint32_t id, int64_t time_ns)
{
	struct process_row *row;
	uint32_t at;

	if (process_numbers_take(&f->numbers, id, &at) < 0)
		return NULL;
	if (at < f->t.nr)
		return &f->t.row[at];
	row = row_new(f);
	if (!row)
		return NULL;
	row->id = id;
	row->value[PROCESS_START] = (double)time_ns / 1e9;
	return row;
}

static void take_number(struct process_row *row, enum process_value which, const struct pairs *pairs,
	const char *key, double unit)
{
	int64_t v;

	if (pairs_get_num(pairs, key, &v))
		row->value[which] = (double)v / unit;
}

/* The memory of a row is that of the program which it names. */
static void take_execs(struct process_row *row, const struct pairs *pairs)
{
	int64_t execs;

	if (!pairs_get_num(pairs, "execs", &execs) || execs <= row->execs)
		return;
	row->execs = execs;
	row->value[PROCESS_HWM] = NAN;
	for (size_t i = 0; i < ARRAY_SIZE(peak_value); i++)
		if (peak_value[i].level < NR_MEMORY_LEVELS)
			row->value[peak_value[i].value] = NAN;
}

static int on_instance(struct process_filling *f, const struct store_record *record)
{
	struct process_row *row = row_of(f, record->id, record->time_ns);
	const struct pairs *p = record->pairs;
	int64_t flag = 0;

	if (!row)
		return -ENOMEM;
	take_number(row, PROCESS_PID, p, "pid", 1);
	take_number(row, PROCESS_PPID, p, "ppid", 1);
	take_number(row, PROCESS_UID, p, "uid", 1);
	take_number(row, PROCESS_START, p, "start_ns", 1e9);
	row->late |= pairs_get_num(p, "late", &flag) && flag;
	take_execs(row, p);
	flag = 0;
	if (pairs_find(p, "cmdline"))
		row->command_cut = pairs_get_num(p, "cmdline_cut", &flag) && flag;
	if (copy_bytes(&row->name, &row->name_len, pairs_find(p, "name")) < 0 ||
		copy_bytes(&row->exe, &row->exe_len, pairs_find(p, "exe")) < 0 ||
		copy_bytes(&row->command, &row->command_len, pairs_find(p, "cmdline")) < 0)
		return -ENOMEM;
	/* The kernel ends every word with a NUL; here they are parted by them. */
	if (row->command_len && !row->command[row->command_len - 1])
		row->command_len--;
	if (!f->course || record->row == STORE_NO_ROW)
		return 0;
	return course_bind(f->course, (uint32_t)(row - f->t.row), row);
}

/* The names of these groups. */
static int take_groups(struct process_filling *f, struct process_row *row, uint64_t mask)
{
	const struct groups *all = &f->live->walk->group;
	struct buf names;
	int r;

	if (!mask)
		return 0;
	buf_init(&names, 1 << 20);
	for (unsigned i = 0; i < all->nr; i++)
		if (mask >> i & 1) {
			if (names.len)
				buf_addch(&names, 0);
			buf_add(&names, all->item[i].name, all->item[i].len);
		}
	r = names.err ? -ENOMEM
		      : copy_bytes(&row->groups, &row->groups_len,
				&(struct pair){.value = (char *)names.data, .len = names.len});
	buf_release(&names);
	f->t.has_groups = true;
	return r;
}

static int harvest(struct process_filling *f, const struct live_process *p)
{
	uint32_t at = idmap_get(&f->numbers.now, p->id);
	struct process_row *row = at == IDMAP_NONE ? NULL : &f->t.row[at];

	if (!row)
		return 0;
	row->sampled |= p->part_seen || p->peak_seen;
	for (size_t i = 0; i < ARRAY_SIZE(amount_value); i++) {
		enum used used = amount_value[i].used;

		if (p->part_seen >> used & 1)
			row->value[amount_value[i].value] =
				(double)process_used(p, used) / (quantity[used].is_time ? 1e9 : 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(peak_value); i++)
		if (p->peak_seen >> peak_value[i].level & 1)
			row->value[peak_value[i].value] = (double)p->peak[peak_value[i].level];
	if (p->hwm >= 0)
		row->value[PROCESS_HWM] = MAX((double)p->hwm, (double)p->peak[LEVEL_RSS]);
	return take_groups(f, row, p->ever);
}

/* A final amount, less what it had before our time; never less than what was sampled. */
static void take_final(struct process_row *row, enum process_value which, const struct pairs *pairs,
	const char *key, double unit, int64_t from_ns)
{
	double final;
	int64_t v;

	if (!pairs_get_num(pairs, key, &v))
		return;
	final = (double)v / unit - (double)from_ns / 1e9;
	if (isnan(row->value[which]) || final > row->value[which])
		row->value[which] = final;
}

static int on_gone(struct process_filling *f, const struct store_record *record)
{
	const struct live_process *p = live_find(f->live, record->id);
	struct process_row *row = row_of(f, record->id, record->time_ns);
	const struct pair *how = pairs_find(record->pairs, "how");
	int64_t status = -1, sampled = 0, least = 0;
	uint64_t groups;

	if (!row || (p && harvest(f, p) < 0))
		return -ENOMEM;
	if (!p &&
		(groups_mask(&f->live->walk->group, pairs_find(record->pairs, "groups"), &groups) < 0 ||
			take_groups(f, row, groups) < 0))
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(amount_value); i++) {
		enum used used = amount_value[i].used;
		const struct quantity *q = &quantity[used];

		if (q->is_time || !row->late)
			take_final(row, amount_value[i].value, record->pairs, q->key, (double)q->per_unit,
				p && q->is_time ? p->from[used] : 0);
	}
	row->cpu_least = pairs_get_num(record->pairs, "cpu_least", &least) && least;
	take_final(row, PROCESS_HWM, record->pairs, "max_rss_kib", 1.0 / 1024, 0);
	least = 0;
	row->hwm_least = pairs_get_num(record->pairs, "max_rss_least", &least) && least;
	least = 0;
	row->hwm_most = pairs_get_num(record->pairs, "max_rss_most", &least) && least;
	/* Older recorders took what wait4() tells, children included, for its own. */
	row->hwm_most |= how && how->len == 6 && !memcmp(how->value, "reaped", 6) &&
		!pairs_find(record->pairs, "io_least");
	row->sampled |= pairs_get_num(record->pairs, "sampled", &sampled) && sampled;
	if (pairs_get_num(record->pairs, "status", &status) && status >= 0 && status <= 0xffff)
		row->status = (int)status;
	if (how)
		memcpy(row->how, how->value, MIN(how->len, sizeof(row->how) - 1));
	row->ended = true;
	row->value[PROCESS_END] = (double)record->time_ns / 1e9;
	idmap_remove(&f->numbers.now, record->id);
	if (!f->course)
		return 0;
	return course_gone(f->course, (uint32_t)(row - f->t.row), row, record->time_ns);
}

static int harvest_all(struct process_filling *f)
{
	int r = 0;

	for (uint32_t i = 0; i < f->live->nr && r >= 0; i++)
		r = harvest(f, &f->live->process[i]);
	return r;
}

/* Those that are not there any more and never said farewell. */
static void mark_lost(struct process_filling *f)
{
	const struct idmap *now = &f->numbers.now;

	for (uint32_t i = 0; now->cell && i <= now->mask; i++) {
		const struct idmap_cell *cell = &now->cell[i];

		if (cell->value1 && !live_find(f->live, (uint32_t)cell->key))
			memcpy(f->t.row[cell->value1 - 1].how, "lost", 5);
	}
}

/* Of a process that became a program whose name was not read before it ended: its parent's tells at least
 * whence it came. Of those that had the PID, the last; if it lived then. */
static int name_parents(struct process_table *t)
{
	struct idmap by_pid = {0};
	int r = 0;

	for (size_t i = 0; i < t->nr && r >= 0; i++) {
		double pid = t->row[i].value[PROCESS_PID];

		if (pid > 0 && pid < UINT32_MAX && t->row[i].name_len)
			r = idmap_put(&by_pid, (uint32_t)pid, (uint32_t)i);
	}
	for (size_t i = 0; i < t->nr && r >= 0; i++) {
		struct process_row *row = &t->row[i];
		double pid = row->value[PROCESS_PPID], start = row->value[PROCESS_START];
		uint32_t at = !row->name_len && pid > 0 && pid < UINT32_MAX
			? idmap_get(&by_pid, (uint32_t)pid)
			: IDMAP_NONE;
		const double *parent = at == IDMAP_NONE ? NULL : t->row[at].value;

		if (parent && parent[PROCESS_START] <= start && !(parent[PROCESS_END] < start))
			snprintf(row->started_by, sizeof(row->started_by), "%s", t->row[at].name);
	}
	idmap_release(&by_pid);
	return MIN(r, 0);
}

/* As in the summary: what the kernel's clock ticks, which divide it, have not seen is divided as the rest. */
static void fit_split(double *value)
{
	double split = value[PROCESS_USER] + value[PROCESS_SYSTEM], total = value[PROCESS_CPU];

	if (isnan(split) || isnan(total))
		return;
	value[PROCESS_USER] = split > 0 ? total * (value[PROCESS_USER] / split) : total;
	value[PROCESS_SYSTEM] = total - value[PROCESS_USER];
}

/* The one place that says how much a process had. A mark that may be another's is not taken for its own where
 * there are samples of it. */
static void settle_memory(struct process_row *row)
{
	double rss = row->value[PROCESS_RSS], hwm = row->value[PROCESS_HWM];

	if (row->hwm_most && !isnan(rss))
		return;
	row->rss_between = is_between_samples(hwm, rss);
	row->value[PROCESS_RSS] = known_max(rss, hwm);
}

static int recording_end(struct process_filling *f, int64_t last_ns)
{
	int r = harvest_all(f);

	mark_lost(f);
	for (size_t i = 0; i < f->t.nr; i++) {
		double *value = f->t.row[i].value;

		value[PROCESS_WALL] = (f->t.row[i].ended ? value[PROCESS_END] : (double)last_ns / 1e9) -
			value[PROCESS_START];
		fit_split(value);
		settle_memory(&f->t.row[i]);
	}
	return r < 0 ? r : name_parents(&f->t);
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct process_filling *f = (struct process_filling *)o;

	switch (record->type) {
	case STORE_INSTANCE:
		return live_is_of(f->live, record) ? on_instance(f, record) : 0;
	case STORE_GONE:
		return live_is_of(f->live, record) ? on_gone(f, record) : 0;
	case STORE_LOST:
		if (f->course)
			course_lost(f->course, f->t.row);
		return harvest_all(f);
	case STORE_META:
		if (f->course)
			course_meta(f->course);
		return 0;
	case STORE_SCHEMA:
		if (f->course)
			course_schema(f->course);
		return 0;
	default:
		return 0;
	}
}

static int after_tick(struct walk_observer *o)
{
	struct process_filling *f = (struct process_filling *)o;

	return course_tick(f->course, f->t.row, &f->numbers.now);
}

int process_filling_courses(struct process_filling *f, struct courses *all, int64_t offset_ns)
{
	f->observer.after_tick = after_tick;
	return course_open(all, f->node, offset_ns, f->live, &f->course);
}

struct process_filling *process_filling_new(struct ledger *a, uint32_t node)
{
	struct process_filling *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->observer.record = observe;
	f->live = ledger_live(a);
	f->node = node;
	walk_observe(ledger_walk(a), &f->observer);
	return f;
}

static void row_release(struct process_row *row)
{
	free(row->name);
	free(row->exe);
	free(row->command);
	free(row->groups);
	free(row->course);
}

static void rows_free(struct process_row *row, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		row_release(&row[i]);
	free(row);
}

struct process_filling *process_filling_free(struct process_filling *f)
{
	if (!f)
		return NULL;
	rows_free(f->t.row, f->t.nr);
	course_close(f->course);
	process_numbers_release(&f->numbers);
	free(f);
	return NULL;
}

/* Of a recording whose whole was counted by its control group. */
static double cpu_in_no_row(const struct process_table *t, const struct ledger *a)
{
	struct account_facts whole = ledger_line(a, 0);
	double rest = (double)whole.cpu_ns / 1e9;

	if (whole.cpu_source != CPU_CGROUP || whole.cpu_is_lower_bound || whole.cpu_ns < 0)
		return NAN;
	for (size_t i = 0; i < t->nr; i++)
		if (!isnan(t->row[i].value[PROCESS_CPU]))
			rest -= t->row[i].value[PROCESS_CPU];
	return MAX(rest, 0);
}

int process_filling_finish(
	struct process_filling *f, const struct ledger *a, unsigned worker, struct process_table **ret)
{
	struct process_table *t;
	int r = recording_end(f, ledger_facts(a)->last_ns);

	if (r >= 0 && f->course)
		r = course_finish(f->course, worker, f->t.row, f->t.nr);
	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->host = calloc(1, sizeof(*t->host));
	if (!t->host || !(t->host[0] = strdup(meta_text(ledger_meta(a), "host")))) {
		process_table_free(t);
		return -ENOMEM;
	}
	t->nr_hosts = 1;
	t->row = TAKE_PTR(f->t.row);
	t->nr = f->t.nr;
	t->cap = f->t.cap;
	t->has_groups = f->t.has_groups;
	t->cpu_in_no_row = cpu_in_no_row(t, a);
	f->t.nr = 0;
	*ret = t;
	return 0;
}

int process_tables_join(struct process_table **table, size_t nr, struct process_table **ret)
{
	size_t rows = 1, hosts = 0;
	struct process_table *t = table[0];
	struct process_row *row;
	char **host;

	for (size_t i = 0; i < nr; i++) {
		rows += table[i]->nr;
		hosts += table[i]->nr_hosts;
	}
	row = reallocarray(t->row, rows, sizeof(*row));
	if (row)
		t->row = row;
	host = reallocarray(t->host, hosts, sizeof(*host));
	if (host)
		t->host = host;
	if (!row || !host)
		return -ENOMEM;
	t->cap = rows;
	for (size_t i = 1; i < nr; i++) {
		struct process_table *from = table[i];

		if (from->nr)
			memcpy(row + t->nr, from->row, from->nr * sizeof(*row));
		memcpy(host + t->nr_hosts, from->host, from->nr_hosts * sizeof(*host));
		t->nr += from->nr;
		t->nr_hosts += from->nr_hosts;
		t->cpu_in_no_row += from->cpu_in_no_row;
		t->has_groups |= from->has_groups;
		from->nr = from->nr_hosts = 0;
	}
	*ret = t;
	table[0] = NULL;
	return 0;
}

struct process_table_reading {
	const struct run *run;
	struct process_table **table; /* by recording */
};

static int read_recording(void *arg, unsigned worker, size_t i)
{
	struct process_table_reading *all = arg;
	struct process_filling *f = NULL;
	struct ledger *a = NULL;
	struct point ignored;
	int r = ledger_open(all->run->path[i], &a);

	if (r < 0)
		return r;
	f = process_filling_new(a, (uint32_t)i);
	r = f ? 0 : -ENOMEM;
	while (r >= 0 && (r = ledger_next(a, &ignored)) > 0)
		;
	if (r >= 0)
		r = process_filling_finish(f, a, worker, &all->table[i]);
	process_filling_free(f);
	ledger_close(a);
	return r;
}

int process_table_read(const struct run *run, struct process_table **ret, struct buf *reterr)
{
	struct process_table_reading all = {.run = run, .table = calloc(run->nr, sizeof(*all.table))};
	size_t at = 0;
	int r = all.table ? parallel_each(run->nr, read_recording, &all, &at) : -ENOMEM;

	if (r < 0)
		buf_addf(reterr, "%s: %s", run->path[at], strerror(-r));
	else
		r = process_tables_join(all.table, run->nr, ret);
	for (size_t i = 0; all.table && i < run->nr; i++)
		process_table_free(all.table[i]);
	free(all.table);
	return r;
}

struct process_table *process_table_free(struct process_table *t)
{
	if (!t)
		return NULL;
	rows_free(t->row, t->nr);
	for (size_t i = 0; i < t->nr_hosts; i++)
		free(t->host[i]);
	free(t->host);
	free(t);
	return NULL;
}

/* ---- a part of the time ---- */

int process_table_cut(
	struct process_table *t, const struct run *run, double from_s, double to_s, struct buf *reterr)
{
	struct run_node *node = NULL;
	int r = run_align(run, &node, reterr);
	size_t kept = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < t->nr; i++) {
		double start = run_node_offset_s(&node[t->row[i].node]) +
			known_max(t->row[i].value[PROCESS_START], 0);

		if (start > to_s || start + t->row[i].value[PROCESS_WALL] < from_s)
			row_release(&t->row[i]);
		else
			t->row[kept++] = t->row[i];
	}
	t->nr = kept;
	t->cpu_in_no_row = NAN;
	run_align_free(node, run->nr);
	return 0;
}

/* ---- order ---- */

const char *const process_order_names[NR_ORDERS + 1] = {
	"cpu", "rss", "pss", "io", "wall", "threads", "fds", "faults", "start", "end", "pid", "name", NULL};

/* The value, or the sum of two, that an order goes by. */
static const struct {
	enum process_value a, b;
} order_value[ORDER_NAME] = {
	[ORDER_CPU] = {PROCESS_CPU, PROCESS_CPU},
	[ORDER_RSS] = {PROCESS_RSS, PROCESS_RSS},
	[ORDER_PSS] = {PROCESS_PSS, PROCESS_PSS},
	[ORDER_IO] = {PROCESS_READ_CHARS, PROCESS_WRITE_CHARS},
	[ORDER_WALL] = {PROCESS_WALL, PROCESS_WALL},
	[ORDER_THREADS] = {PROCESS_THREADS, PROCESS_THREADS},
	[ORDER_FDS] = {PROCESS_FDS, PROCESS_FDS},
	[ORDER_FAULTS] = {PROCESS_MINOR, PROCESS_MAJOR},
	[ORDER_START] = {PROCESS_START, PROCESS_START},
	[ORDER_END] = {PROCESS_END, PROCESS_END},
	[ORDER_PID] = {PROCESS_PID, PROCESS_PID},
};

struct process_table_order {
	enum process_order by;
	bool reverse;
};

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

/* Among equals: in the order in which they began. */
static int compare_origin(const struct process_row *x, const struct process_row *y)
{
	int c = compare_numbers(x->node, y->node);

	if (!c)
		c = compare_numbers(x->value[PROCESS_START], y->value[PROCESS_START]);
	return c ? c : compare_numbers(x->value[PROCESS_PID], y->value[PROCESS_PID]);
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct process_row *x = a, *y = b;
	const struct process_table_order *order = arg;
	int c;

	if (order->by == ORDER_NAME) {
		c = strcmp(x->name, y->name);
	} else {
		enum process_value i = order_value[order->by].a, j = order_value[order->by].b;
		double p = x->value[i] + x->value[j], q = y->value[i] + y->value[j];

		if (isnan(p) || isnan(q))
			return isnan(p) != isnan(q) ? isnan(p) - isnan(q) : compare_origin(x, y);
		c = order->by < ORDER_START ? compare_numbers(q, p) : compare_numbers(p, q);
	}
	if (!c)
		return compare_origin(x, y);
	return order->reverse ? -c : c;
}

void process_table_sort(struct process_table *t, enum process_order by, bool reverse)
{
	struct process_table_order order = {.by = by, .reverse = reverse};

	if (t->nr)
		qsort_r(t->row, t->nr, sizeof(*t->row), compare, &order);
}
