/* Time series.
 *
 * Every column is an expression (a plain metric is one of a single name), evaluated either for each instance
 * and then folded, or once on the folded values. Rates:
 *
 * - of an instance: growth since its last value over the time that really passed. A fall is a reset: no rate
 * for that step. A process that was born during the recording began at zero, so its first step has a rate
 * too. Nothing is compared across a gap or between two instances.
 * - of a fold: processes come and go, and what an ended one used passes to its parent within a tick, so the
 * sum may dip or overshoot for one tick. It is settled by the tick after it, as in query/account; a line is
 *   therefore given one tick late. Counters are summed steadily (query/steady): a process that lived long
 * before it joined, or an interface that appears with old numbers, makes no step.
 * - of what is read only every few seconds: over at least that time, held in between. Else a counter read
 * every five seconds would show one spike and four zeros.
 *
 * An instance called "total" is the source's own fold (the line "cpu" of /proc/stat, which keeps the past of
 * CPUs that went offline): where there is one, folding means taking it. One that says it stands `apart` (a
 * partition, a bridge) is counted in others, and not added to them. */
#include "query/series_internal.h"

#include <math.h>
#include <string.h>

/* ---- growth ---- */

/* The rate of a value that is `now`; NAN while it cannot be told. */
static double grown_step(struct grown *g, double now, int64_t time_ns, int64_t window_ns)
{
	int64_t elapsed = time_ns - g->time_ns;

	if (isnan(now))
		return NAN;
	if (!g->known || now < g->last) {
		*g = (struct grown){.known = true, .last = now, .time_ns = time_ns, .rate = NAN};
		return NAN;
	}
	if (elapsed <= 0 || elapsed < window_ns)
		return g->rate;
	g->rate = (now - g->last) / ((double)elapsed / 1e9);
	g->last = now;
	g->time_ns = time_ns;
	return g->rate;
}

/* ---- of each instance ---- */

static double cell_value(const struct series_part *c, unsigned name, struct table *t, uint32_t row)
{
	int col = c->name[name].col;

	if (col < 0 || !(t->valid[row] >> col & 1))
		return NAN;
	return (double)table_row(t, row)[col] * c->name[name].scale;
}

static int column_grow(struct series_part *c, uint32_t nr_rows)
{
	unsigned rates = MAX(c->expr.nr_rates, 1u);
	struct grown *grown;
	uint32_t *id;

	if (nr_rows <= c->nr_rows)
		return 0;
	nr_rows = MAX(nr_rows, c->nr_rows * 2);
	grown = reallocarray(c->grown, (size_t)nr_rows * rates, sizeof(*grown));
	if (grown)
		c->grown = grown;
	id = reallocarray(c->id, nr_rows, sizeof(*id));
	if (id)
		c->id = id;
	if (!grown || !id)
		return -ENOMEM;
	memset(id + c->nr_rows, 0, (nr_rows - c->nr_rows) * sizeof(*id));
	c->nr_rows = nr_rows;
	return 0;
}

/* Somebody else sits in the row: it begins without a past, or at zero if it was born since the last tick. */
static void row_begin(const struct series *s, struct series_part *c, uint32_t row, uint32_t id)
{
	static const double zero[EXPR_NAMES];
	const struct series_set *set = &s->set[c->set];
	bool newborn = s->has_last && !s->gap && row < set->nr && set->instance[row].id == id &&
		set->instance[row].newborn;
	double argument[EXPR_RATES];

	expr_arguments(&c->expr, zero, argument);
	for (unsigned i = 0; i < c->expr.nr_rates; i++)
		c->grown[(size_t)row * c->expr.nr_rates + i] = (struct grown){
			.known = newborn, .last = argument[i], .rate = NAN, .time_ns = s->last_ns};
	c->id[row] = id;
}

static double row_value(
	const struct series *s, struct series_part *c, struct table *t, uint32_t row, int64_t time_ns)
{
	double value[EXPR_NAMES], argument[EXPR_RATES], rate[EXPR_RATES];

	for (unsigned i = 0; i < c->expr.nr_names; i++)
		value[i] = cell_value(c, i, t, row);
	if (c->expr.nr_rates) {
		if (c->id[row] != t->id[row])
			row_begin(s, c, row, t->id[row]);
		expr_arguments(&c->expr, value, argument);
		for (unsigned i = 0; i < c->expr.nr_rates; i++)
			rate[i] = grown_step(&c->grown[(size_t)row * c->expr.nr_rates + i], argument[i],
				time_ns, c->window_ns);
	}
	return expr_value(&c->expr, value, rate);
}

/* ---- folds ---- */

struct fold {
	double sum, max, total;
	uint32_t nr, alive;
	bool has_total;
};

static void fold_add(struct fold *f, double value, bool total)
{
	f->alive++;
	if (total) {
		f->has_total = true;
		f->total = value;
	}
	if (isnan(value))
		return;
	f->sum += value;
	f->max = f->nr ? MAX(f->max, value) : value;
	f->nr++;
}

static double fold_end(const struct fold *f, enum metric_fold fold)
{
	if (f->has_total)
		return f->total;
	if (!f->nr) /* nobody there adds up to nothing; somebody who cannot be read does not */
		return f->alive || fold != FOLD_SUM ? NAN : 0;
	return fold == FOLD_MEAN ? f->sum / f->nr : fold == FOLD_SUM ? f->sum : f->max;
}

/* NULL when nothing was said of it. */
static const struct series_instance *instance_of(
	const struct series *s, uint32_t set, uint32_t row, uint32_t id)
{
	const struct series_set *in = &s->set[set];

	return row < in->nr && in->instance[row].id == id ? &in->instance[row] : NULL;
}

static bool is_asked(const struct series *s, const struct series_instance *in)
{
	if (s->query.pid && (!in || in->pid != s->query.pid))
		return false;
	return !s->wanted_group || (in && in->groups & s->wanted_group);
}

static bool is_apart(const struct series_instance *in)
{
	return in && in->apart;
}

static double column_fold_instances(struct series *s, struct series_part *c, int64_t time_ns)
{
	struct table *t = store_reader_table(s->reader, c->set);
	struct fold f = {0};

	if (column_grow(c, t->nr_rows) < 0)
		return NAN;
	for (uint32_t row = 0; row < t->nr_rows; row++) {
		const struct series_instance *in = instance_of(s, c->set, row, t->id[row]);

		if (t->id[row] == ROW_FREE || !is_asked(s, in) || is_apart(in))
			continue;
		fold_add(&f, row_value(s, c, t, row, time_ns), in && in->total);
	}
	/* One process that is not there is not zero. */
	return s->query.pid && !f.alive ? NAN : fold_end(&f, c->fold);
}

/* Does what its children used belong to what is asked for? */
static bool has_family(const struct series *s, const struct series_instance *in)
{
	if (s->wanted_group)
		return !(s->own & s->wanted_group);
	return !in || !in->groups || in->groups & ~s->own;
}

static double name_fold(struct series *s, struct series_part *c, unsigned name)
{
	struct steady *steady = &c->name[name].steady;
	int set = c->name[name].set;
	struct table *t = set < 0 ? NULL : store_reader_table(s->reader, (uint32_t)set);
	bool counter = c->name[name].counter, process = series_is_of(s, set, DOMAIN_PROCESS);
	/* Else only what is there at the first tick counts with its past: its level means something. */
	bool from_zero =
		!s->has_last || series_is_of(s, set, DOMAIN_GROUP) || series_is_of(s, set, DOMAIN_TREE);
	struct fold f = {0};

	if (!t || (counter && steady_reserve(steady, t->nr_rows) < 0))
		return NAN;
	for (uint32_t row = 0; row < MAX(t->nr_rows, steady->nr); row++) {
		uint32_t id = row < t->nr_rows ? t->id[row] : ROW_FREE;
		const struct series_instance *in =
			id == ROW_FREE ? NULL : instance_of(s, (uint32_t)set, row, id);
		struct steady_turn turn = {.row = row,
			.id = id,
			.value = id == ROW_FREE ? NAN : cell_value(c, name, t, row),
			.inside = id != ROW_FREE && is_asked(s, in) && !is_apart(in) &&
				(!c->name[name].of_children || has_family(s, in)),
			.from_zero = process ? !in || !in->late : from_zero,
			.inherited = process};
		double value = counter ? steady_step(steady, &turn) : turn.value;

		if (turn.inside)
			fold_add(&f, value, in && in->total);
	}
	return fold_end(&f, c->name[name].fold) + (counter && !f.has_total ? steady->kept : 0);
}

/* What was used by the tick that waits. */
static double amount_settle(struct series_part *c, bool has_next)
{
	double now = expr_value(&c->expr, c->before, NULL), next = expr_value(&c->expr, c->now, NULL);

	if (isnan(now))
		return NAN;
	if (has_next && !isnan(next))
		now = MIN(now, next);
	c->reached = isnan(c->reached) ? now : MAX(c->reached, now);
	return c->reached;
}

/* The value of the tick that waits, in the light of the one after it (if there is one and nothing was lost).
 */
static double column_settle(struct series *s, struct series_part *c, bool has_next)
{
	double argument[EXPR_RATES], next[EXPR_RATES], rate[EXPR_RATES];

	if (c->cumulative)
		return amount_settle(c, has_next);
	expr_arguments(&c->expr, c->before, argument);
	expr_arguments(&c->expr, c->now, next);
	for (unsigned i = 0; i < c->expr.nr_rates; i++) {
		struct grown *g = &c->whole[i];
		double now = argument[i];

		if (s->waiting_gap)
			g->known = false;
		if (has_next && !isnan(next[i]))
			now = MIN(now, next[i]);
		if (g->known)
			now = MAX(now, g->last);
		rate[i] = grown_step(g, isnan(argument[i]) ? NAN : now, s->waiting_ns, c->window_ns);
	}
	return expr_value(&c->expr, c->before, rate);
}

/* ---- records ---- */

/* One on a GPU is in the groups of its process, wherever the process goes. */
static void follow_process(const struct series *s, const struct series_instance *process)
{
	const struct series_set *on = s->gpu_process_set < 0 ? NULL : &s->set[s->gpu_process_set];

	for (uint32_t i = 0; on && s->wanted_group && i < on->nr; i++)
		if (on->instance[i].process == process->id && process->id)
			on->instance[i].groups = process->groups;
}

static void take_process(
	const struct series *s, const struct store_record *record, struct series_instance *in)
{
	const struct series_set *all = s->process_set < 0 ? NULL : &s->set[s->process_set];
	int64_t process = 0;

	pairs_get_num(record->pairs, "process", &process);
	in->process = process > 0 && process < UINT32_MAX ? (uint32_t)process : 0;
	in->groups = 0;
	for (uint32_t i = 0; all && s->wanted_group && i < all->nr; i++)
		if (all->instance[i].id == in->process && in->process)
			in->groups = all->instance[i].groups;
}

/* The groups of a process; the group itself, and whether its members count without their children. */
static int take_groups(struct series *s, const struct store_record *record, struct series_instance *in)
{
	int64_t own = 0;
	int g;

	if (!series_is_of(s, (int)record->set, DOMAIN_GROUP))
		return groups_mask(&s->group, pairs_find(record->pairs, "groups"), &in->groups);
	g = groups_index(&s->group, in->name, in->name_len);
	in->groups = g < 0 ? 0 : UINT64_C(1) << g;
	if (pairs_get_num(record->pairs, "own", &own) && own)
		s->own |= in->groups;
	return g == -ENOMEM ? g : 0;
}

static int on_instance(struct series *s, const struct store_record *record)
{
	const struct schema *schema = store_reader_schema(s->reader);
	const struct pair *name = pairs_find(record->pairs, "name");
	struct series_instance *in;
	struct series_set *set;
	int64_t late = 0, pid = 0;
	bool known;
	int r;

	if (record->set >= s->nr_sets || record->row == STORE_NO_ROW)
		return 0;
	set = &s->set[record->set];
	if (record->row >= set->nr) {
		uint32_t nr = MAX(record->row + 16, set->nr * 2);

		in = reallocarray(set->instance, nr, sizeof(*in));
		if (!in)
			return -ENOMEM;
		memset(in + set->nr, 0, (nr - set->nr) * sizeof(*in));
		set->instance = in;
		set->nr = nr;
	}
	in = &set->instance[record->row];
	known = in->id == record->id;
	pairs_get_num(record->pairs, "late", &late);
	pairs_get_num(record->pairs, "pid", &pid);
	free(in->name);
	in->name = strndup(name ? name->value : "", name ? name->len : 0);
	in->name_len = in->name ? strlen(in->name) : 0;
	in->newborn = known
		? in->newborn
		: schema->set[record->set].domain == DOMAIN_PROCESS && !late && !record->again && !s->gap;
	in->total = in->name && !strcmp(in->name, "total");
	in->id = record->id;
	in->pid = pid;
	in->late = late != 0;
	in->apart = pairs_find(record->pairs, "apart") != NULL;
	if (series_is_of(s, (int)record->set, DOMAIN_GPU_PROCESS)) {
		take_process(s, record, in);
		return in->name ? 0 : -ENOMEM;
	}
	r = in->name ? take_groups(s, record, in) : -ENOMEM;
	if ((int)record->set == s->process_set)
		follow_process(s, in);
	return MIN(r, 0);
}

static void on_lost(struct series *s)
{
	s->gap = true;
	for (size_t i = 0; i < s->nr; i++)
		if (s->column[i].id)
			memset(s->column[i].id, 0, s->column[i].nr_rows * sizeof(*s->column[i].id));
}

static int on_record(struct series *s, const struct store_record *record)
{
	switch (record->type) {
	case STORE_INSTANCE:
		return on_instance(s, record);
	case STORE_LOST:
		on_lost(s);
		return 0;
	default:
		return 0;
	}
}

/* ---- lines ---- */

static void line_give(struct series *s, bool has_next, struct series_point *ret)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->column[i].at == AT_FOLD)
			s->value[i] = column_settle(s, &s->column[i], has_next);
	*ret = (struct series_point){.time_ns = s->waiting_ns, .value = s->instance_value};
	memcpy(s->instance_value, s->value, sizeof(s->value));
}

/* Takes the tick in; true when the line before it is ready. */
static bool on_tick(struct series *s, int64_t time_ns, struct series_point *ret)
{
	bool ready = s->has_waiting;

	for (size_t i = 0; i < s->nr; i++)
		if (s->column[i].at == AT_FOLD)
			for (unsigned j = 0; j < s->column[i].expr.nr_names; j++)
				s->column[i].now[j] = name_fold(s, &s->column[i], j);
	if (ready)
		line_give(s, !s->gap, ret);
	for (size_t i = 0; i < s->nr; i++) {
		struct series_part *c = &s->column[i];

		if (c->at == AT_FOLD)
			memcpy(c->before, c->now, sizeof(c->now));
		else
			s->value[i] = column_fold_instances(s, c, time_ns);
	}
	s->waiting_gap = s->gap;
	s->gap = false;
	s->waiting_ns = s->last_ns = time_ns;
	s->has_waiting = s->has_last = true;
	return ready;
}

/* The next instance of this tick; false when there is none. */
static bool instance_next(struct series *s, struct series_point *ret)
{
	struct table *t = store_reader_table(s->reader, s->column[0].set);

	for (; s->row < t->nr_rows; s->row++) {
		uint32_t row = s->row;
		const struct series_instance *in = instance_of(s, s->column[0].set, row, t->id[row]);

		if (t->id[row] == ROW_FREE || !is_asked(s, in))
			continue;
		*ret = (struct series_point){.time_ns = s->waiting_ns, .value = s->instance_value};
		if (in) {
			ret->instance = in->name;
			ret->instance_len = in->name_len;
			ret->pid = in->pid;
		}
		for (size_t i = 0; i < s->nr; i++)
			s->instance_value[i] = row_value(s, &s->column[i], t, row, s->waiting_ns);
		s->row++;
		return true;
	}
	s->in_tick = false;
	s->gap = false;
	s->last_ns = s->waiting_ns;
	s->has_last = true;
	return false;
}

static int instances_begin(struct series *s, int64_t time_ns)
{
	s->waiting_ns = time_ns;
	s->in_tick = true;
	s->row = 0;
	for (size_t i = 0; i < s->nr; i++) {
		int r = column_grow(&s->column[i], store_reader_table(s->reader, s->column[i].set)->nr_rows);

		if (r < 0)
			return r;
	}
	return 0;
}

int series_next(struct series *s, struct series_point *ret)
{
	struct store_record record;
	int r;

	if (s->in_tick && instance_next(s, ret))
		return 1;
	while (!s->done && (r = store_next(s->reader, &record)) != 0) {
		if (r < 0)
			return r;
		if (record.type != STORE_TICK) {
			r = on_record(s, &record);
		} else if (!s->query.per_instance) {
			if (on_tick(s, record.time_ns, ret))
				return 1;
		} else {
			r = instances_begin(s, record.time_ns);
			if (r >= 0 && instance_next(s, ret))
				return 1;
		}
		if (r < 0)
			return r;
	}
	s->done = true;
	if (!s->has_waiting || s->query.per_instance)
		return 0;
	line_give(s, false, ret);
	s->has_waiting = false;
	return 1;
}
