/* Metrics of a fold. Processes come and go, and what an ended one used passes to its parent within a tick, so
 * the sum may dip or overshoot for one tick. It is settled by the tick after it, as in query/ledger; a value
 * is therefore given one tick late. Counters are summed steadily (query/counter_sum): a process that lived
 * long before it joined, or an interface that appears with old numbers, makes no step.
 *
 * An instance called "total" is the source's own fold (the line "cpu" of /proc/stat, which keeps the past of
 * CPUs that went offline): where there is one, folding means taking it. One that says it stands `apart` (a
 * partition, a bridge) is counted in others, and not added to them.
 *
 * What each row adds is kept, and computed again when the row moved; the sums are then taken anew from the
 * first row to the last, all of a set at once. (Adding differences to a running sum would be less work, but
 * its rounding errors grow with the recording.) */
#include "query/column.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

enum { PART_NOT, PART_IS, PART_TOTAL, PART_KNOWN = 4 };

/* ---- one sum ---- */

static int sum_reserve(struct sum *sum, uint32_t nr)
{
	if (nr <= sum->cap)
		return 0;
	if (ARRAY_RESIZE(sum->part, nr) < 0 ||
		(sum->arg.counter && counter_sum_reserve(&sum->counted, nr) < 0))
		return -ENOMEM;
	memset(sum->part + sum->cap, PART_NOT, nr - sum->cap);
	sum->cap = nr;
	return 0;
}

/* What the row adds from now on; NAN: it is not known. */
static inline void sum_put(struct set_sums *o, struct sum *sum, uint32_t row, unsigned part, double value)
{
	unsigned now = part && value == value ? part | PART_KNOWN : part, before = sum->part[row];

	o->value[row * o->nr_lanes + sum->lane] = now & PART_KNOWN ? value : 0;
	if (now == before)
		return;
	sum->nr_members += (uint32_t)(now != PART_NOT) - (before != PART_NOT);
	sum->nr_known += (uint32_t) !!(now & PART_KNOWN) - !!(before & PART_KNOWN);
	sum->nr_totals += (uint32_t) !!(now & PART_TOTAL) - !!(before & PART_TOTAL);
	sum->part[row] = (uint8_t)now;
}

static bool is_asked(const struct filter *f, const struct occupant *in)
{
	if (f->of_user && (!in || in->uid != f->uid))
		return false;
	return !f->groups || (in && in->groups & f->groups);
}

/* Does what its children used belong to what is asked for? */
static bool has_family(const struct walk *s, const struct filter *f, const struct occupant *in)
{
	if (f->groups)
		return !(s->own & f->groups);
	return !in || !in->groups || in->groups & ~s->own;
}

static double row_value(const struct sum *sum, const struct table *t, const int64_t *cell,
	const uint64_t *valid, uint32_t row)
{
	size_t at = (size_t)row * t->nr_cols + (size_t)sum->arg.col;

	return valid[row] >> sum->arg.col & 1 ? cell_in_unit(sum->arg.scaling, cell[at]) : NAN;
}

static void sum_look(struct set_sums *o, struct sum *sum, const struct walk *s, struct table *t, uint32_t row)
{
	uint32_t which = (uint32_t)sum->arg.set, id = s->set[which].id[row];
	const struct occupant *in = id == ROW_FREE ? NULL : walk_occupant(s, which, row, id);
	enum domain domain = s->schema->set[which].domain;
	bool process = domain == DOMAIN_PROCESS;
	/* Else only what is there at the first tick counts with its past: its level means something. */
	bool from_zero = !s->has_last || domain == DOMAIN_GROUP || domain == DOMAIN_TREE;
	struct counter_turn turn = {.row = row,
		.id = id,
		.value = id == ROW_FREE ? NAN : row_value(sum, t, t->cell, t->valid, row),
		.inside = id != ROW_FREE && is_asked(&sum->filter, in) && !(in && in->counted_elsewhere) &&
			(!sum->arg.of_children || has_family(s, &sum->filter, in)),
		/* A process in another group counts there from the tick before. */
		.before = process && s->has_last ? row_value(sum, t, t->before, t->valid_before, row) : NAN,
		.from_zero = process ? !in || !in->late : from_zero,
		.inherited = process};

	sum_put(o, sum, row,
		!turn.inside		  ? PART_NOT
			: in && in->total ? PART_TOTAL
					  : PART_IS,
		sum->arg.counter ? counter_sum_step(&sum->counted, &turn) : turn.value);
}

/* Only cells moved in the row, so that it is part of the sum or is not, as before. False: more has to be
 * looked at. */
static inline bool sum_look_at_cell(struct set_sums *o, struct sum *sum, uint32_t row, double value)
{
	if (sum->part[row] == PART_NOT && (!sum->arg.counter || sum->counted.part[row].known))
		return true;
	if (sum->arg.counter && !counter_goes_on(&sum->counted, row, value, &value))
		return false;
	sum_put(o, sum, row, sum->part[row] & ~(unsigned)PART_KNOWN, value);
	return true;
}

/* A sum that is asked for in the midst of things (of a group that was just found): processes that
 * lived before bring no past along. */
static void sum_begin(struct set_sums *o, struct sum *sum, const struct walk *s, struct table *t)
{
	const struct walk_set *set = &s->set[sum->arg.set];

	for (uint32_t row = 0; row < set->nr_rows; row++) {
		struct counter_turn turn = {.row = row, .id = set->id[row], .before = NAN};

		if (set->id[row] == ROW_FREE)
			continue;
		turn.value = row_value(sum, t, t->before, t->valid_before, row);
		if (sum->arg.counter && s->has_last)
			counter_sum_step(&sum->counted, &turn);
		sum_look(o, sum, s, t, row);
	}
	sum->begun = true;
}

/* Of those that are not just added up. */
static double fold_members(const struct set_sums *o, const struct sum *sum, uint32_t nr_rows)
{
	struct fold f = {0};

	for (uint32_t row = 0; row < nr_rows; row++)
		if (sum->part[row])
			fold_add(&f,
				sum->part[row] & PART_KNOWN ? o->value[row * o->nr_lanes + sum->lane] : NAN,
				sum->part[row] & PART_TOTAL);
	return fold_end(&f, sum->arg.fold) + (sum->arg.counter && !f.has_total ? sum->counted.kept : 0);
}

static void sum_settle(const struct set_sums *o, struct sum *sum, uint32_t nr_rows)
{
	struct fold f = {.alive = sum->nr_members, .nr = sum->nr_known, .sum = o->added[sum->lane]};

	if (sum->nr_totals || sum->arg.fold != FOLD_SUM)
		sum->now = fold_members(o, sum, nr_rows);
	else
		sum->now = fold_end(&f, FOLD_SUM) + (sum->arg.counter ? sum->counted.kept : 0);
}

/* ---- those of one set ---- */

static void add_up(struct set_sums *o, uint32_t nr_rows)
{
	const double *restrict value = o->value;
	double *restrict added = o->added;
	size_t nr = o->nr_lanes;

	memset(added, 0, nr * sizeof(*added));
	for (uint32_t row = 0; row < nr_rows; row++, value += nr)
		for (size_t i = 0; i < nr; i++)
			added[i] += value[i];
}

/* Room for the rows, and a lane for each sum. */
static int set_sums_reserve(struct set_sums *o, uint32_t nr)
{
	double *value;

	if (nr <= o->cap && o->nr == o->nr_lanes)
		return 0;
	nr = MAX(nr, o->cap);
	if (ARRAY_RESIZE(o->added, o->nr) < 0)
		return -ENOMEM;
	value = calloc((size_t)nr + 1, o->nr * sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (size_t row = 0; o->nr_lanes && row < o->cap; row++)
		memcpy(value + row * o->nr, o->value + row * o->nr_lanes, o->nr_lanes * sizeof(*value));
	free(o->value);
	o->value = value;
	o->cap = nr;
	o->nr_lanes = o->nr;
	return 0;
}

/* One row, for all sums of columns that moved in it. */
static void row_look(struct set_sums *o, const struct walk *s, struct table *t, uint32_t row)
{
	const struct walk_set *set = &s->set[o->set];

	for (uint64_t cols = set->cols[row] & o->cols; cols; cols &= cols - 1) {
		struct sum *sum = o->of_col[__builtin_ctzll(cols)];
		double value = row_value(sum, t, t->cell, t->valid, row); /* a column has one scale */

		for (; sum; sum = sum->next_of_col) {
			if (set->is_moved[row] != MOVED_CELLS || !sum_look_at_cell(o, sum, row, value)) {
				sum_look(o, sum, s, t, row);
				sum->changed = true;
			}
			sum->changed |= sum->part[row] != PART_NOT;
		}
	}
}

static int set_sums_tick(struct set_sums *o, const struct walk *s)
{
	const struct walk_set *set = &s->set[o->set];
	struct table *t = walk_table(s, (uint32_t)o->set);
	bool any = false;

	if (set_sums_reserve(o, set->cap) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < o->nr; i++) {
		if (sum_reserve(o->sum[i], set->cap) < 0)
			return -ENOMEM;
		o->sum[i]->changed = !o->sum[i]->begun;
		if (!o->sum[i]->begun)
			sum_begin(o, o->sum[i], s, t);
	}
	for (uint32_t i = 0; set->any_cols & o->cols && i < set->nr_moved; i++)
		row_look(o, s, t, set->moved[i]);
	for (size_t i = 0; i < o->nr; i++)
		any |= o->sum[i]->changed;
	if (any)
		add_up(o, set->nr_rows);
	for (size_t i = 0; any && i < o->nr; i++)
		if (o->sum[i]->changed)
			sum_settle(o, o->sum[i], set->nr_rows);
	return 0;
}

/* ---- all of them ---- */

static bool same_filter(const struct filter *a, const struct filter *b)
{
	return a->groups == b->groups && a->of_user == b->of_user && a->uid == b->uid;
}

static struct set_sums *set_sums_get(struct sums *all, int set)
{
	struct set_sums *o;

	for (size_t i = 0; i < all->nr; i++)
		if (all->set[i].set == set)
			return &all->set[i];
	o = ARRAY_ADD(all->set, all->nr);
	if (o)
		*o = (struct set_sums){.set = set};
	return o;
}

static struct sum *sums_get(struct sums *all, const struct column_name *arg, const struct filter *f)
{
	struct set_sums *o = set_sums_get(all, arg->set);
	struct sum **more, *sum;

	for (sum = o ? o->of_col[arg->col] : NULL; sum; sum = sum->next_of_col)
		if (same_filter(&sum->filter, f))
			return sum;
	sum = o ? calloc(1, sizeof(*sum)) : NULL;
	more = sum ? ARRAY_ADD(o->sum, o->nr) : NULL;
	if (!more) {
		free(sum);
		return NULL;
	}
	*sum = (struct sum){
		.arg = *arg, .filter = *f, .lane = (uint32_t)o->nr - 1, .next_of_col = o->of_col[arg->col]};
	o->of_col[arg->col] = sum;
	o->cols |= UINT64_C(1) << arg->col;
	return *more = sum;
}

int sums_tick(struct sums *all, const struct walk *s)
{
	int r = 0;

	for (size_t i = 0; i < all->nr && r >= 0; i++)
		r = set_sums_tick(&all->set[i], s);
	return r;
}

void sums_release(struct sums *all)
{
	for (size_t i = 0; i < all->nr; i++) {
		struct set_sums *o = &all->set[i];

		for (size_t k = 0; k < o->nr; k++) {
			counter_sum_release(&o->sum[k]->counted);
			free(o->sum[k]->part);
			free(o->sum[k]);
		}
		free(o->sum);
		free(o->value);
		free(o->added);
	}
	free(all->set);
	*all = (struct sums){0};
}

/* ---- what is made of them ---- */

int whole_go_on(struct whole *w, const struct whole *nothing, const struct filter *f, struct sums *all)
{
	struct whole made;
	int r = whole_init(&made, nothing->c, f, all);

	*w = *nothing;
	memcpy(w->sum, made.sum, sizeof(w->sum));
	w->threads = made.threads;
	return r;
}

int whole_init(struct whole *w, const struct column *c, const struct filter *f, struct sums *all)
{
	*w = (struct whole){.c = c, .reached = NAN};
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		if (c->arg[i].set < 0)
			continue;
		w->sum[i] = sums_get(all, &c->arg[i], f);
		if (!w->sum[i])
			return -ENOMEM;
	}
	if (c->threads.set < 0)
		return 0;
	w->threads = sums_get(all, &c->threads, f);
	return w->threads ? 0 : -ENOMEM;
}

/* What was used by the tick that waits. */
static double amount_settle(struct whole *w, bool has_next)
{
	double now = w->before.argument[0], next = w->now.argument[0];

	if (isnan(now))
		return NAN;
	if (has_next && !isnan(next))
		now = MIN(now, next);
	w->reached = isnan(w->reached) ? now : MAX(w->reached, now);
	return w->reached;
}

/* The value of the tick that waits, in the light of the one after it (if there is one and nothing was lost).
 */
static double settle(struct whole *w, bool has_next)
{
	const double *argument = w->before.argument, *next = w->now.argument;
	double rate[EXPR_RATES];

	if (w->c->cumulative)
		return amount_settle(w, has_next);
	for (unsigned i = 0; i < w->c->expr.nr_rates; i++) {
		struct grown *g = &w->grown[i];
		double now = argument[i];

		if (w->gap)
			g->known = false;
		if (has_next && !isnan(next[i]))
			now = MIN(now, next[i]);
		if (g->known)
			now = MAX(now, g->last);
		rate[i] = grown_step(g, isnan(argument[i]) ? NAN : now, w->before_ns, w->c->window_ns,
			w->c->cores ? w->most : INFINITY, w->late_s);
	}
	return expr_value(&w->c->expr, w->before.value, rate);
}

/* Sums that stayed as they were leave all that is made of them. */
static void take_sums(struct whole *w)
{
	bool changed = !w->waits;

	for (unsigned i = 0; i < w->c->expr.nr_names && !changed; i++)
		changed = w->sum[i] && w->sum[i]->changed;
	if (!changed)
		return;
	for (unsigned i = 0; i < w->c->expr.nr_names; i++)
		w->now.value[i] = w->sum[i] ? w->sum[i]->now : NAN;
	if (w->c->cumulative)
		w->now.argument[0] = expr_value(&w->c->expr, w->now.value, NULL);
	else
		expr_arguments(&w->c->expr, w->now.value, w->now.argument);
}

/* CPUs that could be used since the tick before: threads may have begun or ended since. Where more were used
 * by threads that lived between the ticks, grown_step() delays at most a hundredth of a second for each. */
static double most_since(struct whole *w, const struct walk *s)
{
	double before = w->waits && !s->gap ? w->nr_threads : NAN, threads;

	w->nr_threads = w->threads ? w->threads->now : NAN;
	threads = known_max(w->nr_threads, before);
	return isnan(threads) ? s->cpus : MIN(s->cpus, MAX(threads, 1));
}

bool whole_tick(struct whole *w, const struct walk *s, double *ret)
{
	bool ready = w->waits;

	take_sums(w);
	if (ready)
		*ret = settle(w, !s->gap);
	memcpy(w->before.value, w->now.value, w->c->expr.nr_names * sizeof(w->now.value[0]));
	memcpy(w->before.argument, w->now.argument, sizeof(w->now.argument));
	w->before_ns = column_time(w->c, s);
	w->most = most_since(w, s);
	w->late_s = walk_late(s);
	w->gap = s->gap;
	w->waits = true;
	return ready;
}

bool whole_end(struct whole *w, double *ret)
{
	if (!w->waits)
		return false;
	*ret = settle(w, false);
	w->waits = false;
	return true;
}
