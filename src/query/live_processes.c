/* The arithmetic of one process, and the sums.
 *
 * - A counter that falls was reset (query/counter_sum). Adding the new value, as one does for counters that
 * surely began again at zero, would count all of it twice when a kernel takes back a single tick.
 * - What a latecomer did before it joined is not the job's, and what a process did before it joined a group
 * is not the group's: its first value is taken off. What it did in a group that it left alive stays there.
 * When a process ends, the account of the gone takes over all that it ever used, and these corrections
 * remain.
 * - A counter that cannot be read any more (a zombie's io) keeps its last value: it was used. A level that
 * cannot be read is absent.
 * - PSS and USS are read seldom, RSS at every tick. In between they follow RSS: most memory that comes and
 * goes is private. A process whose PSS was never read counts with its anonymous memory, without what it
 * shares with its parent since the fork. Both are estimates and are summed up as such, beside the sum; so is
 * a reading, as far as others began or ceased to share since. */
#include "query/live_processes.h"

#include "base/owned.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define SIGCHLD_BIT (INT64_C(1) << 16)
#define SIGKILL_BIT (INT64_C(1) << 8)
#define LARGEST (INT64_C(1) << 60)

/* clang-format off */
#define METRIC(area, leaf) "proc." area "." leaf
#define OF_CHILDREN_METRIC(area, leaf) "proc." area ".children_" leaf
#define OF_CHILD_APART(id, metric) [PART_CHILD_##id] = metric,
#define OF_CHILD_WITHIN(...)
#define OF_CHILD_NOWHERE(...)
#define OF_CHILD_SUM(...)
#define READ(metric) metric

static const char *const metric_of[NR_PROCESS_COLUMNS] = {
#define ROW(id, name, unit, children, metric, ...) [USED_##id] = metric, OF_CHILD_##children(id, OF_CHILDREN_##metric)
	AMOUNTS(ROW)
#undef ROW
#define ROW(id, name, kind, metric, ...) IF_##metric([COL_##id] = metric,)
	LEVELS(ROW)
#undef ROW
	[COL_SHARED] = "proc.mem.shared",
	[COL_SMAPS_RSS] = "proc.smaps.rss",
	[COL_SMAPS_ANON] = "proc.smaps.anon",
	[COL_SMAPS_DOUBT] = "proc.smaps.doubt",
	[COL_PSS] = "proc.mem.pss",
	[COL_PRIVATE_CLEAN] = "proc.mem.private_clean",
	[COL_PRIVATE_DIRTY] = "proc.mem.private_dirty",
	[COL_PRIVATE_HUGE] = "proc.mem.private_huge",
	[COL_HWM] = "proc.mem.hwm",
	[COL_SIGNALS_IGNORED] = "proc.signals.ignored",
};

/* Levels that are recorded as such. */
static const struct {
	unsigned column;
	enum level level;
} plain_level[] = {
#define ROW(id, name, kind, metric, ...) IF_##metric({COL_##id, LEVEL_##id},)
	LEVELS(ROW)
#undef ROW
};

#define BIT(x) (UINT32_C(1) << (x))
/* Of the program that a process is now. */
static const uint32_t memory_levels = (BIT(NR_MEMORY_LEVELS) - 1) | BIT(LEVEL_PSS_ESTIMATED) | BIT(LEVEL_USS_ESTIMATED);
/* clang-format on */

struct cell_column column_find(const struct schema *schema, const char *metric)
{
	uint32_t set, col;
	const struct schema_metric *m;

	if (!metric || !schema_find(schema, metric, &set, &col))
		return (struct cell_column){.set = -1, .col = -1};
	m = &schema->set[set].metric[col];
	return (struct cell_column){
		.set = (int)set, .col = (int)col, .factor = m->scale * (m->unit == UNIT_SECONDS ? 1e9 : 1)};
}

int64_t column_value(const struct cell_column *c, int64_t cell)
{
	double v;

	if (c->factor == 1)
		return MIN(MAX(cell, -LARGEST), LARGEST);
	v = (double)cell * c->factor;
	if (!(v > (double)-LARGEST)) /* NAN too */
		return isnan(v) ? 0 : -LARGEST;
	return v < (double)LARGEST ? round_i64(v) : LARGEST;
}

void live_init(struct live_processes *l, struct walk *walk)
{
	*l = (struct live_processes){.walk = walk, .at.set = -1};
	for (unsigned i = 0; i < ACCOUNTS_MOST; i++)
		l->line[i].max_hwm_bytes = -1;
	for (unsigned i = 0; i < NR_PROCESS_COLUMNS; i++)
		l->at.column[i] = (struct cell_column){.set = -1, .col = -1};
}

void live_release(struct live_processes *l)
{
	free(l->process);
	free(l->by_row);
	idmap_release(&l->by_id);
	idmap_release(&l->by_pid);
	census_release(&l->census);
	live_init(l, l->walk);
}

static bool is_available(const struct schema *schema, const struct cell_column *c)
{
	return c->col >= 0 && schema->set[c->set].metric[c->col].availability == AVAILABLE;
}

/* What is made of the column. CPU time may be that of both its parts. */
static void column_use(struct process_columns *c, unsigned column)
{
	int col = c->column[column].col;
	uint64_t bit = col < 0 ? 0 : UINT64_C(1) << col;

	if (col < 0)
		return;
	if (column == COL_HWM || column == COL_SIGNALS_IGNORED) {
		c->other_cols |= bit;
	} else if (column >= NR_PARTS) {
		c->level_cols |= bit;
	} else {
		c->part_cols |= bit;
		c->parts_of[col] |= BIT(column);
		if (column == USED_USER || column == USED_SYSTEM)
			c->parts_of[col] |= c->parts & BIT(USED_CPU);
	}
}

struct process_columns process_columns_of(const struct schema *schema)
{
	struct process_columns c = {.set = schema_find_domain(schema, DOMAIN_PROCESS)};

	for (unsigned i = 0; i < NR_PROCESS_COLUMNS; i++) {
		c.column[i] = column_find(schema, metric_of[i]);
		if (c.column[i].set != c.set || !is_available(schema, &c.column[i]))
			c.column[i].col = -1;
		c.is_read |= c.column[i].col >= 0;
	}
	for (unsigned i = 0; i < NR_PARTS; i++)
		c.parts |= (uint32_t)(c.column[i].col >= 0) << i;
	if (c.column[USED_USER].col >= 0 && c.column[USED_SYSTEM].col >= 0)
		c.parts |= UINT32_C(1) << USED_CPU;
	for (unsigned i = 0; i < NR_PROCESS_COLUMNS; i++)
		column_use(&c, i);
	c.estimates_pss = is_available(schema, &c.column[COL_PSS]);
	c.estimates_uss = is_available(schema, &c.column[COL_PRIVATE_DIRTY]);
	return c;
}

void live_bind(struct live_processes *l, const struct schema *schema)
{
	live_lost(l);
	l->at = process_columns_of(schema);
}

/* ---- one process ---- */

struct live_processes_cells {
	const struct process_columns *at;
	const int64_t *cell;
	uint64_t valid;
};

static inline bool cell_get(const struct live_processes_cells *c, unsigned column, int64_t *ret)
{
	const struct cell_column *at = &c->at->column[column];

	if (at->col < 0 || !(c->valid >> at->col & 1))
		return false;
	*ret = column_value(at, c->cell[at->col]);
	return true;
}

static bool part_get(const struct live_processes_cells *c, unsigned part, int64_t *ret)
{
	int64_t user, system;

	if (cell_get(c, part, ret))
		return true;
	if (part != USED_CPU || !cell_get(c, USED_USER, &user) || !cell_get(c, USED_SYSTEM, &system))
		return false;
	*ret = user + system;
	return true;
}

/* The next line that a process of these groups is in. */
static unsigned line_after(uint64_t groups, unsigned line)
{
	uint64_t rest = line < GROUPS_MOST ? groups >> line << line : 0;

	return rest ? (unsigned)__builtin_ctzll(rest) + 1 : ACCOUNTS_MOST;
}

#define for_each_group_line(line, groups) \
	for (unsigned line = line_after(groups, 0); line < ACCOUNTS_MOST; line = line_after(groups, line))
#define for_each_line(line, groups) \
	for (unsigned line = 0; line < ACCOUNTS_MOST; line = line_after(groups, line))

/* All parts that are not its own. */
#define CHILD_PARTS (BIT(NR_PARTS) - BIT(NR_USED))

/* A process that is watched for itself alone (a tool, chosen by its name) is not asked what its children
 * used: they are watched themselves, or do not count. */
static bool has_family(const struct live_processes *l, uint64_t groups)
{
	return !groups || groups & ~l->walk->own;
}

static uint32_t parts_counted(const struct live_processes *l, uint64_t groups, unsigned line)
{
	bool children = line ? !(l->walk->own >> (line - 1) & 1) : has_family(l, groups);

	return children ? UINT32_MAX : ~CHILD_PARTS;
}

static void part_set(struct live_processes *l, struct live_process *p, unsigned part, int64_t raw)
{
	uint32_t bit = UINT32_C(1) << part;
	bool first = !(p->part_seen & bit);
	int64_t growth = counter_take(&p->part[part], first, raw);

	p->part_seen |= bit;
	if (first && p->late) {
		p->from[part] = raw;
		growth = 0;
	}
	for_each_line(i, p->groups)
	{
		l->line[i].part_seen |= bit;
		if (p->row != STORE_NO_ROW && parts_counted(l, p->groups, i) & bit)
			l->line[i].part[part] = wrap_add(l->line[i].part[part], growth);
		if (part == USED_CPU)
			l->line[i].observed_cpu_ns = wrap_add(l->line[i].observed_cpu_ns, growth);
	}
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
	int64_t doubt;
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
	level_put(level, valid, estimated, MIN(MAX(distance(now, reading), r->doubt), now));
}

static void guess_unread(int64_t *level, uint32_t *valid, enum level which, const struct resident *r)
{
	enum level estimated = which == LEVEL_PSS ? LEVEL_PSS_ESTIMATED : LEVEL_USS_ESTIMATED;

	level_put(level, valid, which, MAX(r->anon - MAX(r->doubt, 0), 0));
	level_put(level, valid, estimated, r->anon);
}

static void shares_get(const struct live_processes_cells *c, int64_t rss, int64_t *level, uint32_t *valid)
{
	int64_t pss, clean, dirty, huge = 0, shared = 0, excess = 0;
	struct resident r = {.rss = rss};
	bool read = cell_get(c, COL_SMAPS_RSS, &r.rss_then);

	r.split = cell_get(c, COL_SHARED, &shared) && cell_get(c, COL_SMAPS_ANON, &r.anon_then);
	/* Below 0: others bear so much of the reading by now. */
	if (cell_get(c, COL_SMAPS_DOUBT, &r.doubt) && r.doubt < 0) {
		excess = read ? -r.doubt : 0;
		r.doubt = excess;
	}
	r.anon = MAX(rss - shared, 0);
	if (read && cell_get(c, COL_PSS, &pss)) {
		follow_rss(level, valid, LEVEL_PSS, pss - excess, &r, rss);
	} else if (c->at->estimates_pss) {
		guess_unread(level, valid, LEVEL_PSS, &r);
	}
	if (read && cell_get(c, COL_PRIVATE_CLEAN, &clean) && cell_get(c, COL_PRIVATE_DIRTY, &dirty)) {
		cell_get(c, COL_PRIVATE_HUGE, &huge);
		follow_rss(level, valid, LEVEL_USS, clean + dirty + huge, &r, rss + huge);
	} else if (c->at->estimates_uss) {
		guess_unread(level, valid, LEVEL_USS, &r);
	}
}

static uint32_t levels_get(const struct live_processes_cells *c, int64_t *level)
{
	uint32_t valid = 0;
	int64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(plain_level); i++)
		if (cell_get(c, plain_level[i].column, &v))
			level_put(level, &valid, plain_level[i].level, v);
	if (valid >> LEVEL_RSS & 1)
		shares_get(c, level[LEVEL_RSS], level, &valid);
	return valid;
}

uint32_t process_levels(
	const struct process_columns *c, const int64_t *cell, uint64_t valid, int64_t level[static NR_LEVELS])
{
	return levels_get(&(struct live_processes_cells){.at = c, .cell = cell, .valid = valid}, level);
}

bool process_part(
	const struct process_columns *c, const int64_t *cell, uint64_t valid, unsigned part, int64_t *ret)
{
	return part_get(&(struct live_processes_cells){.at = c, .cell = cell, .valid = valid}, part, ret);
}

/* Puts what the process holds into the sums of a line (or takes it out). */
static void levels_count(struct process_sums *s, const struct live_process *p, bool in)
{
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		if (!(p->level_valid >> i & 1))
			continue;
		assert(in || s->level_nr[i]);
		s->level[i] = in ? wrap_add(s->level[i], p->level[i]) : wrap_sub(s->level[i], p->level[i]);
		s->level_nr[i] += in ? 1 : -1u;
		if (in)
			s->one[i] = s->level_seen >> i & 1 ? MAX(s->one[i], p->level[i]) : p->level[i];
	}
	s->level_seen |= in ? p->level_valid : 0;
}

/* The same levels, with other values. */
static void levels_change(struct live_processes *l, struct live_process *p, const int64_t *level)
{
	for (uint32_t rest = p->level_valid; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		int64_t more = wrap_sub(level[i], p->level[i]);

		if (!more)
			continue;
		for_each_line(line, p->groups)
		{
			l->line[line].level[i] = wrap_add(l->line[line].level[i], more);
			l->line[line].one[i] = MAX(l->line[line].one[i], level[i]);
		}
		p->level[i] = level[i];
		p->peak[i] = MAX(p->peak[i], level[i]);
	}
}

static void levels_set(struct live_processes *l, struct live_process *p, const int64_t *level, uint32_t valid)
{
	if (valid == p->level_valid && !(valid & ~p->peak_seen)) {
		levels_change(l, p, level);
		return;
	}
	for_each_line(i, p->groups) levels_count(&l->line[i], p, false);
	for (unsigned i = 0; i < NR_LEVELS; i++) {
		if (!(valid >> i & 1))
			continue;
		p->level[i] = level[i];
		p->peak[i] = p->peak_seen >> i & 1 ? MAX(p->peak[i], level[i]) : level[i];
	}
	p->level_valid = valid;
	p->peak_seen |= valid;
	for_each_line(i, p->groups) levels_count(&l->line[i], p, true);
}

static void hwm_set(struct live_processes *l, uint64_t groups, int64_t bytes)
{
	for_each_line(i, groups) l->line[i].max_hwm_bytes = MAX(l->line[i].max_hwm_bytes, bytes);
}

static void ignores_sigchld(struct live_processes *l, struct live_process *p)
{
	l->sigchld_ignored += !p->ignores_sigchld;
	p->ignores_sigchld = true;
}

/* The mask of parts that these columns change. */
static uint32_t parts_in(const struct process_columns *at, uint64_t cols)
{
	uint32_t parts = 0;

	for (uint64_t rest = cols & at->part_cols; rest; rest &= rest - 1)
		parts |= at->parts_of[__builtin_ctzll(rest)];
	return parts;
}

static void parts_update(struct live_processes *l, struct live_process *p,
	const struct live_processes_cells *c, uint32_t parts)
{
	bool is_read = false; /* more than its clock */
	int64_t v;

	for (uint32_t rest = parts; rest; rest &= rest - 1) {
		unsigned part = (unsigned)__builtin_ctz(rest);

		if (!part_get(c, part, &v) || (v == p->part[part].last && p->part_seen >> part & 1))
			continue;
		is_read |= part != USED_CPU && v != p->part[part].last;
		part_set(l, p, part, v);
	}
	if (is_read && p->is_heir) {
		memset(p->left, 0, sizeof(p->left));
		memset(p->due, 0, sizeof(p->due));
		p->is_heir = false;
	}
}

static void others_update(
	struct live_processes *l, struct live_process *p, const struct live_processes_cells *c)
{
	int64_t v;

	if (cell_get(c, COL_HWM, &v))
		p->hwm = MAX(p->hwm, v);
	hwm_set(l, p->groups, p->hwm);
	/* Who ignores SIGKILL, too, is a thread of the kernel and has no children that count. */
	if (cell_get(c, COL_SIGNALS_IGNORED, &v) && v & SIGCHLD_BIT && !(v & SIGKILL_BIT))
		ignores_sigchld(l, p);
}

/* Some of its cells (a mask) are other than they were. */
static void process_update(
	struct live_processes *l, struct live_process *p, const int64_t *cell, uint64_t valid, uint64_t cols)
{
	struct live_processes_cells c = {.at = &l->at, .cell = cell, .valid = valid};
	int64_t level[NR_LEVELS], v;

	if (p->anew)
		cols = UINT64_MAX;
	p->anew = false;
	if (cols & l->at.part_cols)
		parts_update(l, p, &c, parts_in(&l->at, cols));
	if (cols & l->at.other_cols)
		others_update(l, p, &c);
	if (!(cols & l->at.level_cols))
		return;
	levels_set(l, p, level, levels_get(&c, level));
	if (!p->had_pss && cell_get(&c, COL_PSS, &v)) {
		p->had_pss = true;
		l->pss_reads++;
	}
}

/* ---- coming and going ---- */

static struct live_process *process_of_row(struct live_processes *l, uint32_t row)
{
	return row < l->nr_by_row && l->by_row[row] ? &l->process[l->by_row[row] - 1] : NULL;
}

static int by_row_grow(struct live_processes *l, uint32_t row)
{
	uint32_t *more;

	if (row == STORE_NO_ROW)
		return -E2BIG;
	more = array_reach(l->by_row, &l->nr_by_row, row, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->by_row = more;
	return 0;
}

/* Its contribution to the amounts of a line, put in or taken out. */
static void parts_count(struct process_sums *s, const struct live_process *p, uint32_t parts, bool in)
{
	for (unsigned i = 0; i < NR_PARTS; i++) {
		int64_t has = parts >> i & 1 ? p->part[i].sum : 0;

		s->part[i] = in ? wrap_add(s->part[i], has) : wrap_sub(s->part[i], has);
	}
}

/* Takes its contributions out of the sums; it stays known until it is forgotten. */
static void process_unbind(struct live_processes *l, struct live_process *p)
{
	if (p->row == STORE_NO_ROW)
		return;
	assert(process_of_row(l, p->row) == p);
	l->by_row[p->row] = 0;
	p->row = STORE_NO_ROW;
	levels_set(l, p, NULL, 0);
	for_each_line(i, p->groups)
	{
		assert(l->line[i].nr);
		l->line[i].nr--;
		parts_count(&l->line[i], p, parts_counted(l, p->groups, i), false);
	}
}

static int process_bind(struct live_processes *l, struct live_process *p, uint32_t row)
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
	for_each_line(i, p->groups)
	{
		l->line[i].nr++;
		parts_count(&l->line[i], p, parts_counted(l, p->groups, i), true);
	}
	return 0;
}

static void parts_add(struct process_sums *s, const int64_t *amount)
{
	for (unsigned i = 0; i < NR_PARTS; i++)
		s->part[i] = wrap_add(s->part[i], amount[i]);
}

static void parts_take_off(struct process_sums *s, const int64_t *amount)
{
	for (unsigned i = 0; i < NR_PARTS; i++)
		s->part[i] = wrap_sub(s->part[i], amount[i]);
}

/* It is in other groups from now on. What it has used so far goes with it to no group: a sum that has it
 * keeps it, one that has not does not get it. That is also true of what children left to it and will be in
 * its account at the next reading. (Where it may be in there already, neither sum has it: then it is marked.)
 * While it is not bound it is in no sum, and will be in the new ones when it is bound again. */
static void process_regroup(struct live_processes *l, struct live_process *p, uint64_t groups)
{
	uint64_t joins = groups & ~p->groups, leaves = p->groups & ~groups;
	bool bound = p->row != STORE_NO_ROW;

	for_each_group_line(i, joins)
	{
		struct process_sums *s = &l->line[i];

		s->part_seen |= p->part_seen;
		s->seen += !(p->ever >> (i - 1) & 1);
		s->nr += bound;
		s->max_hwm_bytes = MAX(s->max_hwm_bytes, p->hwm);
		if (bound)
			levels_count(s, p, true);
		else
			parts_count(s, p, parts_counted(l, groups, i), false);
		if (l->walk->own >> (i - 1) & 1)
			continue;
		parts_take_off(s, p->left);
		s->only_sampled += memcmp(p->left, p->due, sizeof(p->due)) != 0;
	}
	for_each_group_line(i, leaves)
	{
		struct process_sums *s = &l->line[i];

		s->nr -= bound;
		if (bound)
			levels_count(s, p, false);
		else
			parts_count(s, p, parts_counted(l, p->groups, i), true);
		if (l->walk->own >> (i - 1) & 1)
			continue;
		parts_add(s, p->due);
		s->only_sampled += memcmp(p->left, p->due, sizeof(p->due)) != 0;
	}
	if (!bound && has_family(l, groups) != has_family(l, p->groups))
		parts_count(&l->line[0], p, CHILD_PARTS, !has_family(l, groups));
	p->groups = groups;
	p->ever |= groups;
	for_each_group_line(i, groups) l->beside[i - 1] |= groups & ~(UINT64_C(1) << (i - 1));
}

int64_t process_used(const struct live_process *p, enum used used)
{
	return wrap_sub(p->part[used].sum, p->from[used]);
}

const struct live_process *live_find(const struct live_processes *l, uint32_t id)
{
	uint32_t index = idmap_get(&l->by_id, id);

	return index == IDMAP_NONE ? NULL : &l->process[index];
}

/* Its end is not known: it was read, but not its io. */
static void count_misses_io(struct live_processes *l, const struct live_process *p)
{
	if (p && p->part_seen && !(p->part_seen & 1 << USED_READ_CHARS) &&
		l->at.column[USED_READ_CHARS].col >= 0)
		for_each_line(i, p->groups) l->line[i].io_unread++;
}

static void process_forget(struct live_processes *l, uint32_t index)
{
	struct live_process *p = &l->process[index];

	assert(index < l->nr && idmap_get(&l->by_id, p->id) == index);
	process_unbind(l, p);
	/* Others account for what it used, but not for what we had to add because a counter fell. */
	for_each_line(line, p->groups) for (unsigned i = 0; i < NR_PARTS; i++) l->line[line].part[i] =
		wrap_add(l->line[line].part[i], wrap_sub(p->part[i].sum, p->part[i].last));
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

static int process_new(struct live_processes *l, uint32_t id, uint32_t *ret_index)
{
	int r;

	if (l->nr == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 64;
		struct live_process *more = reallocarray(l->process, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->process = more;
		l->cap = cap;
	}
	r = idmap_put(&l->by_id, id, l->nr);
	if (r < 0)
		return r;
	l->process[l->nr] =
		(struct live_process){.id = id, .row = STORE_NO_ROW, .hwm = -1, .since = l->census.ticks};
	l->line[0].seen++;
	*ret_index = l->nr++;
	return 0;
}

/* The largest memory of a program is known as last sampled. 2: not of it alone, but what is told of those
 * that waited for it has it. Groups that count members without their children have no such. */
static void count_peak_unknown(struct live_processes *l, uint64_t groups, int64_t least)
{
	if (least != 1 && least != 2)
		return;
	for_each_line(i, groups)
	{
		if (least == 1 || (i && l->walk->own >> (i - 1) & 1))
			l->line[i].peak_unknown++;
		else
			l->line[i].peak_inherited++;
	}
}

/* It may have become another program: what it has of memory is that one's from now on. Lines keep what was
 * there before. */
static void take_execs(
	struct live_processes *l, struct live_process *p, bool is_new, const struct pairs *identity)
{
	int64_t execs = 0, least = 0;

	pairs_get_num(identity, "execs", &execs);
	pairs_get_num(identity, "execs_least", &least);
	if (!is_new && execs > p->execs) {
		p->hwm = -1;
		p->peak[LEVEL_RSS] = 0;
		p->peak_seen &= ~memory_levels;
	}
	p->execs = MAX(p->execs, execs);
	if (!p->peak_counted)
		count_peak_unknown(l, p->groups, least);
	p->peak_counted |= least != 0;
}

/* Where the kernel has not told, the time is that of its own start time, in whole clock ticks before it. */
#define START_TICK_NS INT64_C(10000000)

int live_join(struct live_processes *l, const struct store_record *record)
{
	const struct occupant *said = &l->walk->said;
	const struct pairs *identity = record->pairs;
	uint32_t id = record->id, index = idmap_get(&l->by_id, id);
	int64_t ppid = 0, start_ns = 0;
	bool is_new = index == IDMAP_NONE;
	struct live_process *p;
	int r = is_new ? process_new(l, id, &index) : 0;

	pairs_get_num(identity, "start_ns", &start_ns);
	start_ns = MIN(MAX(start_ns, 0), LARGEST);
	if (r >= 0 && is_new)
		r = census_birth(&l->census, id,
			start_ns && !l->tells_ends ? start_ns + START_TICK_NS : start_ns, said->groups);
	if (r < 0)
		return r;
	p = &l->process[index];
	p->anew = true;
	process_regroup(l, p, said->groups);
	take_execs(l, p, is_new, identity);
	pairs_get_num(identity, "ppid", &ppid);
	p->late |= said->late;
	p->pid = (uint32_t)said->pid;
	p->ppid = (uint32_t)ppid;
	p->born_ns = start_ns ? start_ns : p->born_ns;
	if (p->pid) {
		r = idmap_put(&l->by_pid, p->pid, id);
		if (r < 0)
			return r;
	}
	return record->row == STORE_NO_ROW ? 0 : process_bind(l, p, record->row);
}

/* ---- the end of a process ---- */

static const struct live_process *parent_of(const struct live_processes *l, const struct live_process *p)
{
	uint32_t id = p->ppid ? idmap_get(&l->by_pid, p->ppid) : IDMAP_NONE;

	return id == IDMAP_NONE ? NULL : live_find(l, id);
}

static bool pair_is(const struct pair *pair, const char *text)
{
	return pair && pair->len == strlen(text) && !memcmp(pair->value, text, pair->len);
}

/* Reaped by us, told by the kernel with its account, or waited for by a living member of the same line, which
 * has its times from then on: else its last moments were not seen. */
static void count_only_sampled(struct live_processes *l, uint64_t groups, const struct live_process *parent,
	const struct pairs *last)
{
	const struct pair *how = pairs_find(last, "how");
	uint64_t heir = parent ? parent->groups & ~l->walk->own : 0;
	int64_t uncounted = 0;

	if (pairs_get_num(last, "uncounted", &uncounted) && uncounted)
		for_each_line(i, groups) l->line[i].uncounted++;
	if (pair_is(how, "reaped") || pair_is(how, "exit-record") || pair_is(how, "zombie"))
		return;
	l->line[0].only_sampled += !parent || !has_family(l, parent->groups);
	for_each_group_line(i, groups & ~heir) l->line[i].only_sampled++;
}

/* In the whole its recorder knows whether bytes and calls of it are missing; older ones do not tell. In a
 * group they are where no member got them, unless its last account was read. */
static void count_io_unread(struct live_processes *l, uint64_t groups, const struct live_process *p,
	const struct live_process *parent, const struct pairs *last)
{
	const struct pair *how = pairs_find(last, "how");
	uint64_t heir = parent ? parent->groups & ~l->walk->own : 0;
	int64_t least;

	if (l->at.column[USED_READ_CHARS].col < 0)
		return;
	if (!pairs_get_num(last, "io_least", &least)) {
		count_misses_io(l, p);
		return;
	}
	l->line[0].io_unread += least != 0;
	if (least || !(pair_is(how, "reaped") || pair_is(how, "zombie")))
		for_each_group_line(i, groups & ~heir) l->line[i].io_unread++;
}

/* A parent's io counters take in those of the children it waits for. Where members count without their
 * children, what is known of these is taken off again. */
static void take_off_children_io(struct live_processes *l, const struct live_process *p,
	const struct live_process *parent, const struct pairs *last)
{
	if (!parent || parent->ignores_sigchld)
		return;
	for_each_line(line, parent->groups)
	{
		if (parts_counted(l, parent->groups, line) == UINT32_MAX)
			continue;
		for (unsigned i = 0; i < NR_USED; i++) {
			int64_t io = p->part[i].last;

			if (quantity[i].children != CHILDREN_WITHIN)
				continue;
			pairs_get_num(last, quantity[i].key, &io);
			io = MIN(MAX(io, p->part[i].last), LARGEST);
			l->line[line].part[i] = wrap_sub(l->line[line].part[i], io);
		}
	}
}

/* What its parent has of it. */
static void account_get(const struct pairs *last, int64_t ret[static NR_PARTS])
{
	int64_t v;

	memset(ret, 0, NR_PARTS * sizeof(*ret));
	for (unsigned i = 0; i < NR_USED; i++)
		if (pairs_get_num(last, quantity[i].account_key, &v))
			ret[i] = MIN(MAX(v, 0), LARGEST / 1000) * (quantity[i].is_time ? 1000 : 1);
	ret[USED_CPU] = ret[USED_USER] + ret[USED_SYSTEM];
}

/* An unknown member has its account. It is not known whether that member is in these groups, too. */
static int count_unclaimed(struct live_processes *l, const struct pairs *last)
{
	const struct pair *names = pairs_find(last, "unclaimed");
	uint64_t groups = 0;

	if (names && groups_mask(&l->walk->group, names, &groups) < 0)
		return -ENOMEM;
	for_each_group_line(i, groups) l->line[i].only_sampled++;
	return 0;
}

/* Its parent gets what it used, also in groups that it is not in, as one that has changed its user: there it
 * is taken off. What is not known of it stays with the parent. Until the parent is read it is remembered. */
static int leave_to_heir(struct live_processes *l, const struct live_process *p, const struct pairs *last)
{
	const struct pair *names = pairs_find(last, "foreign");
	int64_t account[NR_PARTS], id, due = 0;
	uint32_t heir = IDMAP_NONE;
	uint64_t foreign = 0;

	if (names && groups_mask(&l->walk->group, names, &foreign) < 0)
		return -ENOMEM;
	account_get(last, account);
	for_each_group_line(i, foreign & ~p->groups & ~l->walk->own) parts_take_off(&l->line[i], account);
	if (pairs_get_num(last, "heir", &id) && id > 0 && id < UINT32_MAX)
		heir = idmap_get(&l->by_id, (uint32_t)id);
	pairs_get_num(last, "due", &due);
	for (unsigned i = 0; heir != IDMAP_NONE && i < NR_PARTS; i++) {
		struct live_process *q = &l->process[heir];

		/* What its own children left to it is in its account, as far as that is known. */
		q->left[i] = wrap_add(q->left[i], wrap_add(account[i], wrap_sub(p->left[i], p->due[i])));
		q->due[i] = wrap_add(q->due[i], due ? account[i] : 0);
		q->is_heir = true;
	}
	return 0;
}

/* The most memory that it told at its end. An upper bound may be another's. */
static void take_last_peak(struct live_processes *l, uint64_t groups, const struct pairs *last)
{
	int64_t kib = 0, least = 0, most = 0;

	pairs_get_num(last, "max_rss_kib", &kib);
	pairs_get_num(last, "max_rss_least", &least);
	pairs_get_num(last, "max_rss_most", &most);
	if (kib > 0 && !most)
		hwm_set(l, groups, MIN(kib, LARGEST >> 10) * 1024);
	count_peak_unknown(l, groups, least);
}

/* Its whole story is this one record. */
static int unknown_gone(struct live_processes *l, const struct pairs *last)
{
	uint64_t groups;
	int r = groups_mask(&l->walk->group, pairs_find(last, "groups"), &groups);

	if (r < 0)
		return r;
	take_last_peak(l, groups, last);
	count_only_sampled(l, groups, NULL, last);
	count_io_unread(l, groups, NULL, NULL, last);
	for_each_line(i, groups) l->line[i].seen++;
	return 0;
}

int live_gone(struct live_processes *l, uint32_t id, int64_t time_ns, const struct pairs *last)
{
	uint32_t index = idmap_get(&l->by_id, id);
	int64_t cpu_ns, sampled = 0, ignored = 0;
	const struct live_process *parent;
	const struct pair *how;
	struct live_process *p;
	int r;

	if (index == IDMAP_NONE)
		return unknown_gone(l, last);
	p = &l->process[index];
	take_last_peak(l, p->groups, last);
	/* It was read once more after its last tick. */
	pairs_get_num(last, "sampled", &sampled);
	if (sampled && pairs_get_num(last, "cpu_ns", &cpu_ns) && cpu_ns > p->part[USED_CPU].last)
		part_set(l, p, USED_CPU, MIN(cpu_ns, LARGEST));
	/* A short one may never have been asked before. */
	if (pairs_get_num(last, "sigchld_ignored", &ignored) && ignored)
		ignores_sigchld(l, p);
	parent = parent_of(l, p);
	count_only_sampled(l, p->groups, parent, last);
	count_io_unread(l, p->groups, p, parent, last);
	take_off_children_io(l, p, parent, last);
	r = leave_to_heir(l, p, last);
	if (r >= 0)
		r = count_unclaimed(l, last);
	if (r < 0)
		return r;
	how = pairs_find(last, "how");
	r = census_end(&l->census, id, time_ns, p->groups,
		p->row != STORE_NO_ROW && p->since != l->census.ticks,
		p->level_valid >> LEVEL_THREADS & 1 ? p->level[LEVEL_THREADS] : 0,
		pair_is(how, "reaped") || pair_is(how, "left") ||
			(l->tells_ends && !pair_is(how, "noticed")));
	process_forget(l, index);
	return r;
}

/* ---- time ---- */

static void count_at_once(struct live_processes *l, int64_t time_ns)
{
	struct between now[ACCOUNTS_MOST];
	unsigned nr = 1 + l->walk->group.nr;

	for (unsigned i = 0; i < nr; i++) {
		assert(l->line[i].nr <= l->line[0].nr && l->line[0].nr <= l->nr);
		now[i] = (struct between){
			.processes = l->line[i].nr, .threads = l->line[i].level[LEVEL_THREADS]};
	}
	census_tick(&l->census, time_ns, now, nr);
}

void live_tick(struct live_processes *l)
{
	struct table *t = l->at.set < 0 ? NULL : walk_table(l->walk, (uint32_t)l->at.set);

	if (!t)
		return;
	for (uint32_t i = l->loose ? l->nr : 0; i-- > 0;)
		if (l->process[i].row == STORE_NO_ROW) {
			count_misses_io(l, &l->process[i]);
			process_forget(l, i);
		}
	l->loose = false;
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];
		struct live_process *p = live_in_row(l, t, row);

		if (p)
			process_update(l, p, table_row(t, row), t->valid[row], t->changed[row]);
	}
	count_at_once(l, l->walk->time_ns);
}

/* Without a process nothing is held: sums are kept up by differences, and nothing of them may stay behind. */
static void check_empty(const struct live_processes *l)
{
	for (unsigned i = 0; i < ACCOUNTS_MOST; i++) {
		assert(!l->line[i].nr);
		for (unsigned k = 0; k < NR_LEVELS; k++)
			assert(!l->line[i].level_nr[k] && !l->line[i].level[k]);
	}
}

void live_lost(struct live_processes *l)
{
	for (uint32_t i = 0; i < l->nr; i++)
		process_unbind(l, &l->process[i]);
	check_empty(l);
	census_lost(&l->census);
	l->loose = l->nr > 0;
}

void live_finish(struct live_processes *l)
{
	for (uint32_t i = 0; i < l->nr; i++)
		count_misses_io(l, &l->process[i]);
}
