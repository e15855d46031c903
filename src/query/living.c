/* The arithmetic of one process, and the sums.
 *
 * - A counter that falls was reset: counting goes on from the new value, and the interval in which it fell
 * adds nothing. (Adding the new value, as one does for counters that surely began again at zero, would count
 * all of it twice when a kernel takes back a single tick.)
 * - A counter that cannot be read any more (a zombie's io) keeps its last value: it was used. A level that
 * cannot be read is absent.
 * - PSS and USS are read seldom, RSS at every tick. In between they follow RSS: most memory that comes and
 * goes is private. A process whose PSS was never read counts with its anonymous memory. Both are estimates
 * and are summed up as such, beside the sum. */
#include "query/living.h"

#include <math.h>
#include <string.h>

#define SIGCHLD_BIT (INT64_C(1) << 16)
#define LARGEST (INT64_C(1) << 60)

/* clang-format off */
static const char *const metric_of[NR_PROCESS_COLUMNS] = {
	[PART_CPU] = "proc.cpu.time",
	[PART_USER] = "proc.cpu.user",
	[PART_SYSTEM] = "proc.cpu.system",
	[PART_CHILD_USER] = "proc.cpu.children_user",
	[PART_CHILD_SYSTEM] = "proc.cpu.children_system",
	[PART_MINOR] = "proc.faults.minor",
	[PART_MAJOR] = "proc.faults.major",
	[PART_CHILD_MINOR] = "proc.faults.children_minor",
	[PART_CHILD_MAJOR] = "proc.faults.children_major",
	[PART_VOLUNTARY] = "proc.switches.voluntary",
	[PART_INVOLUNTARY] = "proc.switches.involuntary",
	[PART_READ_CHARS] = "proc.io.read_chars",
	[PART_WRITE_CHARS] = "proc.io.write_chars",
	[PART_READ_CALLS] = "proc.io.read_calls",
	[PART_WRITE_CALLS] = "proc.io.write_calls",
	[PART_READ_BYTES] = "proc.io.read_bytes",
	[PART_WRITE_BYTES] = "proc.io.write_bytes",
	[COL_VMS] = "proc.mem.vms",
	[COL_RSS] = "proc.mem.rss",
	[COL_SHARED] = "proc.mem.shared",
	[COL_SWAP] = "proc.mem.swap",
	[COL_SMAPS_RSS] = "proc.smaps.rss",
	[COL_SMAPS_ANON] = "proc.smaps.anon",
	[COL_PSS] = "proc.mem.pss",
	[COL_PRIVATE_CLEAN] = "proc.mem.private_clean",
	[COL_PRIVATE_DIRTY] = "proc.mem.private_dirty",
	[COL_PRIVATE_HUGE] = "proc.mem.private_huge",
	[COL_THREADS] = "proc.threads",
	[COL_FDS] = "proc.fds",
	[COL_HWM] = "proc.mem.hwm",
	[COL_SIGNALS_IGNORED] = "proc.signals.ignored",
};
/* clang-format on */

const char *process_column_metric(unsigned column)
{
	return metric_of[column];
}

struct column column_find(const struct schema *schema, const char *metric)
{
	uint32_t set, col;
	const struct schema_metric *m;

	if (!schema_find(schema, metric, &set, &col))
		return (struct column){.set = -1, .col = -1};
	m = &schema->set[set].metric[col];
	return (struct column){
		.set = (int)set, .col = (int)col, .factor = m->scale * (m->unit == UNIT_SECONDS ? 1e9 : 1)};
}

int64_t column_value(const struct column *c, int64_t cell)
{
	double v;

	if (c->factor == 1)
		return MIN(MAX(cell, -LARGEST), LARGEST);
	v = (double)cell * c->factor;
	if (!(v > (double)-LARGEST)) /* NAN too */
		return isnan(v) ? 0 : -LARGEST;
	return v < (double)LARGEST ? round_i64(v) : LARGEST;
}

/* Sums of a forged file may overflow; they must not be undefined. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

void living_init(struct living *l)
{
	*l = (struct living){.set = -1, .max_hwm_bytes = -1};
	for (unsigned i = 0; i < NR_PROCESS_COLUMNS; i++)
		l->column[i] = (struct column){.set = -1, .col = -1};
}

void living_release(struct living *l)
{
	free(l->process);
	free(l->by_row);
	idmap_release(&l->by_id);
	idmap_release(&l->by_pid);
	living_init(l);
}

static bool is_available(const struct schema *schema, const struct column *c)
{
	return c->col >= 0 && schema->set[c->set].metric[c->col].availability == AVAILABLE;
}

void living_bind(struct living *l, const struct schema *schema)
{
	living_lost(l);
	l->set = -1;
	for (uint32_t i = 0; i < schema->nr_sets && l->set < 0; i++)
		if (schema->set[i].domain == DOMAIN_PROCESS)
			l->set = (int)i;
	for (unsigned i = 0; i < NR_PROCESS_COLUMNS; i++) {
		l->column[i] = column_find(schema, metric_of[i]);
		if (l->column[i].set != l->set)
			l->column[i].col = -1;
	}
	l->estimates_pss = is_available(schema, &l->column[COL_PSS]);
	l->estimates_uss = is_available(schema, &l->column[COL_PRIVATE_DIRTY]);
}

/* ---- one process ---- */

struct cells {
	const struct living *l;
	const int64_t *cell;
	uint64_t valid;
};

static bool cell_get(const struct cells *c, unsigned column, int64_t *ret)
{
	const struct column *at = &c->l->column[column];

	if (at->col < 0 || !(c->valid >> at->col & 1))
		return false;
	*ret = column_value(at, c->cell[at->col]);
	return true;
}

static bool part_get(const struct cells *c, unsigned part, int64_t *ret)
{
	int64_t user, system;

	if (cell_get(c, part, ret))
		return true;
	if (part != PART_CPU || !cell_get(c, PART_USER, &user) || !cell_get(c, PART_SYSTEM, &system))
		return false;
	*ret = user + system;
	return true;
}

static void part_set(struct living *l, struct process *p, unsigned part, int64_t raw)
{
	uint32_t bit = UINT32_C(1) << part;
	int64_t before = add(p->raw[part], p->offset[part]);

	if (!(p->part_seen & bit)) {
		p->part_seen |= bit;
		l->part_seen |= bit;
		/* What a latecomer did before it joined is not the job's. */
		if (p->late)
			p->from[part] = raw;
		if (p->late && l->started)
			l->part[part] = sub(l->part[part], raw);
	} else if (raw < p->raw[part]) {
		p->offset[part] = add(p->offset[part], p->raw[part] - raw);
	}
	p->raw[part] = raw;
	l->part[part] = add(l->part[part], sub(add(raw, p->offset[part]), before));
}

static void level_put(int64_t *level, uint32_t *valid, enum level which, int64_t value)
{
	level[which] = value;
	*valid |= UINT32_C(1) << which;
}

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

struct resident { /* at the moment of a reading, and now */
	int64_t rss_then, anon_then, rss, anon;
	bool split; /* the anonymous part is known for both */
};

/* A reading brought forward to the present RSS. What grew anonymously is the process's own; of what grew
 * shared it bears the share it bore at the reading. */
static int64_t bring_forward(int64_t reading, const struct resident *r)
{
	int64_t shared_then = r->rss_then - r->anon_then;
	double bears = shared_then > 0 ? (double)(reading - r->anon_then) / (double)shared_then : 1;

	if (!r->split)
		return reading + (r->rss - r->rss_then);
	bears = MIN(MAX(bears, 0), 1);
	return reading + (r->anon - r->anon_then) +
		(int64_t)(bears * (double)(r->rss - r->anon - shared_then));
}

static void follow_rss(int64_t *level, uint32_t *valid, enum level which, int64_t reading,
	const struct resident *r, int64_t most)
{
	int64_t now = MIN(MAX(bring_forward(reading, r), 0), most);
	enum level estimated = which == LEVEL_PSS ? LEVEL_PSS_ESTIMATED : LEVEL_USS_ESTIMATED;

	level_put(level, valid, which, now);
	level_put(level, valid, estimated, MIN(distance(now, reading), now));
}

static void shares_get(const struct cells *c, int64_t rss, int64_t *level, uint32_t *valid)
{
	int64_t pss, clean, dirty, huge = 0, shared = 0;
	struct resident r = {.rss = rss};
	bool read = cell_get(c, COL_SMAPS_RSS, &r.rss_then);

	r.split = cell_get(c, COL_SHARED, &shared) && cell_get(c, COL_SMAPS_ANON, &r.anon_then);
	r.anon = MAX(rss - shared, 0);
	if (read && cell_get(c, COL_PSS, &pss)) {
		follow_rss(level, valid, LEVEL_PSS, pss, &r, rss);
	} else if (c->l->estimates_pss) {
		level_put(level, valid, LEVEL_PSS, r.anon);
		level_put(level, valid, LEVEL_PSS_ESTIMATED, r.anon);
	}
	if (read && cell_get(c, COL_PRIVATE_CLEAN, &clean) && cell_get(c, COL_PRIVATE_DIRTY, &dirty)) {
		cell_get(c, COL_PRIVATE_HUGE, &huge);
		follow_rss(level, valid, LEVEL_USS, clean + dirty + huge, &r, rss + huge);
	} else if (c->l->estimates_uss) {
		level_put(level, valid, LEVEL_USS, r.anon);
		level_put(level, valid, LEVEL_USS_ESTIMATED, r.anon);
	}
}

static uint32_t levels_get(const struct cells *c, int64_t *level)
{
	static const struct {
		unsigned column;
		enum level level;
	} plain[] = {{COL_RSS, LEVEL_RSS}, {COL_VMS, LEVEL_VMS}, {COL_SWAP, LEVEL_SWAP},
		{COL_THREADS, LEVEL_THREADS}, {COL_FDS, LEVEL_FDS}};
	uint32_t valid = 0;
	int64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (cell_get(c, plain[i].column, &v))
			level_put(level, &valid, plain[i].level, v);
	if (valid >> LEVEL_RSS & 1)
		shares_get(c, level[LEVEL_RSS], level, &valid);
	return valid;
}

static void levels_set(struct living *l, struct process *p, const int64_t *level, uint32_t valid)
{
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		if (p->level_valid >> i & 1) {
			l->level[i] = sub(l->level[i], p->level[i]);
			l->level_nr[i]--;
		}
		if (valid >> i & 1) {
			l->level[i] = add(l->level[i], level[i]);
			l->level_nr[i]++;
			p->level[i] = level[i];
			p->peak[i] = p->peak_seen >> i & 1 ? MAX(p->peak[i], level[i]) : level[i];
		}
	}
	p->level_valid = valid;
	p->peak_seen |= valid;
	l->level_seen |= valid;
}

static void process_update(struct living *l, struct process *p, const int64_t *cell, uint64_t valid)
{
	struct cells c = {.l = l, .cell = cell, .valid = valid};
	int64_t level[NR_LEVELS], v;
	uint32_t level_valid;

	for (unsigned part = 0; part < NR_PARTS; part++)
		if (part_get(&c, part, &v))
			part_set(l, p, part, v);
	level_valid = levels_get(&c, level);
	levels_set(l, p, level, level_valid);
	if (cell_get(&c, COL_HWM, &v))
		p->hwm = MAX(p->hwm, v);
	/* The kernel brings its mark up to date now and then only: what was seen was reached. */
	if (p->peak_seen >> LEVEL_RSS & 1)
		l->max_rss_bytes = MAX(l->max_rss_bytes, p->peak[LEVEL_RSS]);
	l->max_hwm_bytes = MAX(l->max_hwm_bytes, p->hwm);
	if (cell_get(&c, COL_SIGNALS_IGNORED, &v) && v & SIGCHLD_BIT && !p->ignores_sigchld) {
		p->ignores_sigchld = true;
		l->sigchld_ignored++;
	}
	if (!p->had_pss && cell_get(&c, COL_PSS, &v)) {
		p->had_pss = true;
		l->pss_reads++;
	}
}

/* ---- coming and going ---- */

static struct process *process_of_row(struct living *l, uint32_t row)
{
	return row < l->nr_by_row && l->by_row[row] ? &l->process[l->by_row[row] - 1] : NULL;
}

static int by_row_grow(struct living *l, uint32_t row)
{
	uint32_t *more, nr = MAX(l->nr_by_row * 2, row + 64);

	if (row < l->nr_by_row)
		return 0;
	if (row == STORE_NO_ROW || nr < row)
		return -E2BIG;
	more = reallocarray(l->by_row, nr, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + l->nr_by_row, 0, (nr - l->nr_by_row) * sizeof(*more));
	l->by_row = more;
	l->nr_by_row = nr;
	return 0;
}

/* Takes its contributions out of the sums; it stays known until it is forgotten. */
static void process_unbind(struct living *l, struct process *p)
{
	if (p->row == STORE_NO_ROW)
		return;
	l->by_row[p->row] = 0;
	p->row = STORE_NO_ROW;
	l->nr_bound--;
	levels_set(l, p, NULL, 0);
	for (unsigned i = 0; i < NR_PARTS; i++)
		l->part[i] = sub(l->part[i], add(p->raw[i], p->offset[i]));
}

static int process_bind(struct living *l, struct process *p, uint32_t row)
{
	uint32_t index = (uint32_t)(p - l->process);
	int r = by_row_grow(l, row);

	if (r < 0)
		return r;
	if (p->row == row)
		return 0;
	process_unbind(l, p);
	if (l->by_row[row])
		process_unbind(l, &l->process[l->by_row[row] - 1]);
	p->row = row;
	l->by_row[row] = index + 1;
	l->nr_bound++;
	for (unsigned i = 0; i < NR_PARTS; i++)
		l->part[i] = add(l->part[i], add(p->raw[i], p->offset[i]));
	return 0;
}

int64_t process_used(const struct process *p, enum part part)
{
	return sub(add(p->raw[part], p->offset[part]), p->from[part]);
}

const struct process *living_find(const struct living *l, uint32_t id)
{
	uint32_t index = idmap_get(&l->by_id, id);

	return index == IDMAP_NONE ? NULL : &l->process[index];
}

static void process_forget(struct living *l, uint32_t index)
{
	struct process *p = &l->process[index];

	process_unbind(l, p);
	/* Others account for what it used, but not for what we had to add because a counter fell. */
	for (unsigned i = 0; i < NR_PARTS; i++)
		l->part[i] = add(l->part[i], p->offset[i]);
	if (p->part_seen & 1 << PART_CPU)
		l->observed_cpu_ns = add(l->observed_cpu_ns, process_used(p, PART_CPU));
	if (p->part_seen && !(p->part_seen & 1 << PART_READ_CHARS) && l->column[PART_READ_CHARS].col >= 0)
		l->io_unread++;
	idmap_remove(&l->by_id, p->id);
	if (idmap_get(&l->by_pid, p->pid) == p->id)
		idmap_remove(&l->by_pid, p->pid);
	if (index != --l->nr) {
		*p = l->process[l->nr];
		idmap_put(&l->by_id, p->id, index); /* replaces: cannot fail */
		if (p->row != STORE_NO_ROW)
			l->by_row[p->row] = index + 1;
	}
}

static int process_new(struct living *l, uint32_t id, uint32_t *ret_index)
{
	int r;

	if (l->nr == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 64;
		struct process *more = reallocarray(l->process, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->process = more;
		l->cap = cap;
	}
	r = idmap_put(&l->by_id, id, l->nr);
	if (r < 0)
		return r;
	l->process[l->nr] = (struct process){.id = id, .row = STORE_NO_ROW, .hwm = -1};
	l->seen++;
	*ret_index = l->nr++;
	return 0;
}

int living_join(struct living *l, uint32_t row, uint32_t id, const struct pairs *identity)
{
	uint32_t index = idmap_get(&l->by_id, id);
	int64_t late = 0, pid = 0, ppid = 0;
	struct process *p;
	int r = index == IDMAP_NONE ? process_new(l, id, &index) : 0;

	if (r < 0)
		return r;
	p = &l->process[index];
	pairs_get_num(identity, "late", &late);
	pairs_get_num(identity, "pid", &pid);
	pairs_get_num(identity, "ppid", &ppid);
	p->late |= late != 0;
	p->pid = (uint32_t)pid;
	p->ppid = (uint32_t)ppid;
	if (p->pid) {
		r = idmap_put(&l->by_pid, p->pid, id);
		if (r < 0)
			return r;
	}
	return row == STORE_NO_ROW ? 0 : process_bind(l, p, row);
}

bool living_has_parent(const struct living *l, uint32_t id)
{
	const struct process *p = living_find(l, id);

	return p && idmap_get(&l->by_pid, p->ppid) != IDMAP_NONE;
}

void living_gone(struct living *l, uint32_t id, const struct pairs *last)
{
	uint32_t index = idmap_get(&l->by_id, id);
	int64_t kib, cpu_ns, sampled = 0;

	if (pairs_get_num(last, "max_rss_kib", &kib) && kib > 0)
		l->max_hwm_bytes = MAX(l->max_hwm_bytes, MIN(kib, LARGEST >> 10) * 1024);
	if (index == IDMAP_NONE) {
		l->seen++; /* its whole story is this one record */
		return;
	}
	/* It was read once more after its last tick. */
	pairs_get_num(last, "sampled", &sampled);
	if (sampled && pairs_get_num(last, "cpu_ns", &cpu_ns) && cpu_ns > l->process[index].raw[PART_CPU])
		part_set(l, &l->process[index], PART_CPU, MIN(cpu_ns, LARGEST));
	process_forget(l, index);
}

void living_tick(struct living *l, struct table *t)
{
	for (uint32_t i = l->loose ? l->nr : 0; i-- > 0;)
		if (l->process[i].row == STORE_NO_ROW)
			process_forget(l, i);
	l->loose = false;
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];
		struct process *p = process_of_row(l, row);

		if (p && t->id[row] == p->id)
			process_update(l, p, table_row(t, row), t->valid[row]);
	}
}

void living_lost(struct living *l)
{
	for (uint32_t i = 0; i < l->nr; i++)
		process_unbind(l, &l->process[i]);
	l->loose = true;
}

void living_start(struct living *l, bool attached)
{
	l->started = true;
	if (!attached)
		return;
	for (uint32_t i = 0; i < l->nr; i++)
		memcpy(l->process[i].from, l->process[i].raw, sizeof(l->process[i].from));
}

void living_finish(struct living *l)
{
	while (l->nr)
		process_forget(l, l->nr - 1);
}
