/* A line's use of anything at time t is
 *
 *	T(t) = sum over its live processes of (own + waited-for children's) + what ended without a living heir
 *
 * in the whole and likewise in a group, where the heir must be a member. A group of processes chosen one by
 * one (tools by their name) counts members without their children: those are members themselves, or are
 * not counted.
 *
 * Processes are read one after the other, so T can be wrong for one tick when a child dies in the middle:
 * read before its parent and reaped in between, it is counted twice; read after, not at all. Looking one tick
 * ahead settles both: T'(k) = max(T'(k-1), min(T(k), T(k+1))). So a point is given when the tick after it
 * was read.
 *
 * Of an attached tree, what its processes used before we came is taken off, by their exact clocks. A child
 * that has left since is in its parent's account, which the kernel tells in whole clock ticks: T may lack one
 * of these, and be below zero by that much. No line has used less than nothing: T'(-1) = 0.
 *
 * What is not known of an ended process stays with the parent that has its account, whose user may be
 * another. So T of one user may fall, when less is known of a process at its end than while it lived, and
 * that of another grow by as much. (The division into user and system time, which the kernel estimates anew
 * at each reading, moves likewise.) T' does not fall: what a user was seen to use, it has used. Then it is no
 * other's: of what T' of all users have in excess of the whole's, those lose that have just grown. */
#include "query/accounts.h"

#include <assert.h>
#include <string.h>

/* clang-format off */
static const char *const cell_metric[NR_ACCOUNT_CELLS - NR_USED][2] = {
	{"tree.processes", "group.processes"}, {"tree.unsampled", "group.unsampled"}, {"tree.gone.max_rss", "group.gone.max_rss"}};

#define BIT(x) (UINT32_C(1) << (x))
#define RECIPE_APART(id) BIT(PART_CHILD_##id), BIT(USED_##id)
#define RECIPE_WITHIN(id) 0, BIT(USED_##id)
#define RECIPE_NOWHERE(id) 0, BIT(USED_##id)
#define RECIPE_SUM(id) BIT(PART_CHILD_USER) | BIT(PART_CHILD_SYSTEM), BIT(USED_USER) | BIT(USED_SYSTEM)

/* Which parts of the children that the living waited for, and which amounts of the gone, belong to an amount. */
static const struct {
	uint32_t children, gone;
} recipe[NR_USED] = {
#define ROW(id, name, unit, children, ...) [USED_##id] = {RECIPE_##children(id)},
	AMOUNTS(ROW)
#undef ROW
};
/* clang-format on */

void accounts_init(struct accounts *s)
{
	*s = (struct accounts){.set = -1};
	for (unsigned i = 0; i < NR_ACCOUNT_CELLS; i++)
		s->tree[i].col = s->group[i].col = -1;
}

void accounts_release(struct accounts *s)
{
	for (unsigned i = 0; i < ACCOUNTS_MOST; i++) {
		free(s->line[i].kind);
		free(s->line[i].target);
	}
	idmap_release(&s->by_id);
}

void accounts_bind(struct accounts *s, const struct schema *schema)
{
	s->set = schema_find_domain(schema, DOMAIN_GROUP);
	for (unsigned i = 0; i < NR_ACCOUNT_CELLS; i++) {
		const char *tree = i < NR_USED ? quantity[i].tree_gone : cell_metric[i - NR_USED][0];
		const char *group = i < NR_USED ? quantity[i].group_gone : cell_metric[i - NR_USED][1];

		s->tree[i] = column_find(schema, tree);
		s->group[i] = column_find(schema, group);
		if (s->group[i].set != s->set)
			s->group[i].col = -1;
	}
}

static int take_text(char **to, const struct pair *pair)
{
	char *copy = pair ? strndup(pair->value, pair->len) : NULL;

	if (!pair)
		return 0;
	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

int accounts_instance(struct accounts *s, const struct walk *walk, const struct store_record *record)
{
	struct account *line;
	int g;

	if (!walk->said.groups)
		return 0;
	g = __builtin_ctzll(walk->said.groups);
	line = &s->line[g + 1];
	if (take_text(&line->kind, pairs_find(record->pairs, "kind")) < 0 ||
		take_text(&line->target, pairs_find(record->pairs, "target")) < 0)
		return -ENOMEM;
	if (line->kind && !strcmp(line->kind, "command") && !s->command)
		s->command = g + 1;
	if (line->kind && !strcmp(line->kind, "user"))
		s->users |= UINT64_C(1) << g;
	return idmap_put(&s->by_id, record->id, (uint32_t)g + 1);
}

/* ---- values ---- */

static void cell_take(struct account *s, unsigned which, int64_t v)
{
	uint32_t bit = UINT32_C(1) << which;

	counter_take(&s->cell[which], !(s->seen & bit), v);
	s->seen |= bit;
}

/* The tree has one row; a forged file may have more, and then the first that has a value is taken. */
static void tree_read(struct accounts *s, const struct walk *walk)
{
	for (unsigned i = 0; i < NR_ACCOUNT_CELLS; i++) {
		const struct cell_column *c = &s->tree[i];
		struct table *t = c->col < 0 ? NULL : walk_table(walk, (uint32_t)c->set);

		for (uint32_t row = 0; t && row < t->nr_rows; row++)
			if (t->id[row] != ROW_FREE && t->valid[row] >> c->col & 1) {
				cell_take(&s->line[0], i, column_value(c, table_row(t, row)[c->col]));
				break;
			}
	}
}

void accounts_read(struct accounts *s, const struct walk *walk)
{
	struct table *t = s->set < 0 ? NULL : walk_table(walk, (uint32_t)s->set);

	tree_read(s, walk);
	for (uint32_t n = 0; t && n < t->nr_touched; n++) {
		uint32_t row = t->touched[n], line = idmap_get(&s->by_id, t->id[row]);

		for (unsigned i = 0; line != IDMAP_NONE && i < NR_ACCOUNT_CELLS; i++) {
			const struct cell_column *c = &s->group[i];

			if (c->col >= 0 && t->valid[row] >> c->col & 1)
				cell_take(&s->line[line], i, column_value(c, table_row(t, row)[c->col]));
		}
	}
}

int64_t account_cell_or(const struct account *s, enum line_cell which, int64_t otherwise)
{
	return s->seen >> which & 1 ? s->cell[which].last : otherwise;
}

/* ---- amounts ---- */

static uint64_t parts_sum(const struct process_sums *sums, uint32_t parts)
{
	uint64_t sum = 0;

	for (; parts; parts &= parts - 1)
		sum += (uint64_t)sums->part[__builtin_ctz(parts)];
	return sum;
}

int64_t account_gone(const struct accounts *s, unsigned line, enum used used)
{
	const struct account *said = &s->line[line];
	uint64_t sum = 0;

	for (uint32_t rest = recipe[used].gone & said->seen >> ACCOUNT_GONE; rest; rest &= rest - 1)
		sum += (uint64_t)said->cell[ACCOUNT_GONE + __builtin_ctz(rest)].sum;
	return (int64_t)sum;
}

bool account_used(
	const struct accounts *s, const struct live_processes *l, unsigned line, enum used used, int64_t *ret)
{
	const struct process_sums *sums = &l->line[line];
	bool own = line && l->walk->own >> (line - 1) & 1;
	uint64_t sum;

	/* No process was ever read: only when none was sampled at all do the ended ones tell everything. */
	if (sums->part_seen && !(sums->part_seen >> used & 1))
		return false;
	if (recipe[used].gone & ~(s->line[line].seen >> ACCOUNT_GONE))
		return false;
	sum = parts_sum(sums, BIT(used) | (own ? 0 : recipe[used].children));
	*ret = (int64_t)(sum + (uint64_t)account_gone(s, line, used));
	return true;
}

void account_levels(
	const struct accounts *s, const struct live_processes *l, unsigned line, struct amounts *ret)
{
	const struct process_sums *sums = &l->line[line];
	const struct account *said = &s->line[line];

	for (unsigned i = 0; i < NR_LEVELS; i++) {
		/* With no process alive any more it is zero; with one alive that cannot be read it is not
		 * known. */
		if (!sums->level_nr[i] && (sums->nr || !(sums->level_seen >> i & 1)))
			continue;
		ret->level[i] = sums->level[i];
		ret->level_valid |= UINT32_C(1) << i;
	}
	if (l->at.set >= 0 || said->seen >> ACCOUNT_PROCESSES & 1) {
		ret->level[LEVEL_PROCESSES] =
			MAX((int64_t)sums->nr, account_cell_or(said, ACCOUNT_PROCESSES, 0));
		ret->level_valid |= UINT32_C(1) << LEVEL_PROCESSES;
	}
}

void account_settle(struct accounts *s, unsigned line, const struct amounts *next)
{
	struct amounts *now = &s->waiting[line], *given = &s->given[line];

	s->before[line] = *given;
	for (unsigned i = 0; i < NR_USED; i++) {
		uint32_t bit = UINT32_C(1) << i;

		if (!(now->used_valid & bit)) {
			/* What was used stays used. */
			now->used[i] = given->used[i];
			now->used_valid |= given->used_valid & bit;
			continue;
		}
		if (next && next->used_valid & bit)
			now->used[i] = MIN(now->used[i], next->used[i]);
		now->used[i] = MAX(now->used[i], given->used_valid & bit ? given->used[i] : 0);
	}
	*given = *now;
}

/* No process was of two of them at a time. (One user may be named twice.) */
static bool are_apart(const struct live_processes *l, uint64_t groups)
{
	for (uint64_t rest = groups; rest; rest &= rest - 1)
		if (l->beside[__builtin_ctzll(rest)] & groups)
			return false;
	return true;
}

static void share_one(struct accounts *s, unsigned used)
{
	uint64_t over = 0 - (uint64_t)s->given[0].used[used];

	if (!(s->given[0].used_valid >> used & 1))
		return;
	for (uint64_t rest = s->users; rest; rest &= rest - 1)
		over += (uint64_t)s->given[__builtin_ctzll(rest) + 1].used[used];
	for (uint64_t rest = s->users; rest && (int64_t)over > 0; rest &= rest - 1) {
		unsigned line = (unsigned)__builtin_ctzll(rest) + 1;
		int64_t given = s->given[line].used[used], before = s->before[line].used[used];
		uint64_t cut = given > before ? MIN((uint64_t)given - (uint64_t)before, over) : 0;

		s->given[line].used[used] = (int64_t)((uint64_t)given - cut);
		assert(s->given[line].used[used] >= MIN(given, before));
		over -= cut;
	}
}

void accounts_share(struct accounts *s, const struct live_processes *l)
{
	if (!(s->users & (s->users - 1)) || !are_apart(l, s->users))
		return;
	for (unsigned i = 0; i < NR_USED; i++)
		share_one(s, i);
}
