/* The values of a column for each instance, kept up to date.
 *
 * Rates of an instance: growth since its last value over the time that really passed. A fall is a reset: no
 * rate for that step. A process that was born during the recording began at zero, so its first step has a
 * rate too. Nothing is compared across a gap or between two instances. Of what is read only every few seconds
 * rates are from one reading to the next, and held in between: else a counter read every five seconds would
 * show one spike and four zeros. The recording does not say when something was read that had not moved: then
 * the readings are taken to have gone on at their pace.
 *
 * Where the job told something a tick was taken between two others, and may be close to one of them. Many
 * counters of the node are brought up to date seldom (by the kernel's clock, by drivers and devices, by
 * threads of ours): over so little time what has grown since long would be a peak. There a rate is not higher
 * than it was before; the rest of the growth counts in the next step, so that none is lost. Where rates are
 * divided by others all growth counts in the next step, and the ratio stays. The last tick has no next one:
 * there all counts.
 *
 * A row is computed again only when it moved. Its rates are known without: once it was looked at and had not
 * moved they are nothing, and when it moves again they are over the time since the tick before. */
#include "query/column.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

void rows_init(struct rows *r, const struct column *c)
{
	*r = (struct rows){.c = c,
		.set = c->set,
		.cols = c->cols,
		.window_ns = c->window_ns,
		.nr_rates = c->expr.nr_rates,
		.plain = c->plain,
		.slow = c->slow,
		.cores = c->cores,
		.col = c->arg[0].col,
		.scaling = c->arg[0].scaling,
		.only = ROWS_ALL,
		.due_ns = INT64_MIN,
		.latest_ns = INT64_MIN};
}

void rows_release(struct rows *r)
{
	free(r->value);
	free(r->grown);
	free(r->id);
	free(r->rests);
	free(r->busy);
	free(r->look);
	free(r->news);
	*r = (struct rows){0};
}

static int rows_reserve(struct rows *r, uint32_t nr)
{
	size_t rates = MAX(r->nr_rates, 1u);
	uint32_t cap = r->cap;

	if (nr <= cap)
		return 0;
	nr = MAX(nr + 16, cap * 2);
	if (ARRAY_RESIZE(r->value, nr) < 0 || ARRAY_RESIZE(r->grown, nr * rates) < 0 ||
		ARRAY_RESIZE(r->id, nr) < 0 || ARRAY_RESIZE(r->rests, nr) < 0 ||
		ARRAY_RESIZE(r->busy, nr) < 0 || ARRAY_RESIZE(r->look, nr) < 0 ||
		ARRAY_RESIZE(r->news, nr) < 0)
		return -ENOMEM;
	memset(r->grown + cap * rates, 0, (nr - cap) * rates * sizeof(*r->grown));
	for (uint32_t i = cap; i < nr; i++) {
		r->value[i] = NAN;
		r->id[i] = ROW_FREE;
		r->rests[i] = 0;
	}
	r->cap = nr;
	return 0;
}

/* A running task's CPU time grows at the ticks of the kernel's clock, of which the slowest has 100 a second.
 */
#define KERNEL_TICK_S 0.01

/* Mostly the same for all rows of a tick, and a division takes long. */
struct lapse {
	int64_t ns;
	double s;
};

static inline double lapse_s(struct lapse *l, int64_t ns)
{
	if (l->ns != ns)
		*l = (struct lapse){ns, (double)ns / 1e9};
	return l->s;
}

static inline double step(struct grown *g, double now, int64_t time_ns, int64_t window_ns, double most,
	double late_s, struct lapse *lapse)
{
	int64_t elapsed = time_ns - g->time_ns;
	double amount, seconds, excess = 0;

	if (isnan(now))
		return NAN;
	if (!g->known || now < g->last) {
		*g = (struct grown){.known = true, .last = now, .time_ns = time_ns, .rate = NAN};
		return NAN;
	}
	if (elapsed <= 0 || elapsed < window_ns)
		return g->rate;
	amount = now - g->last;
	seconds = lapse_s(lapse, elapsed);
	if (most < INFINITY)
		excess = amount - most * seconds;
	if (excess > 0)
		amount -= MIN(excess, most * (KERNEL_TICK_S + late_s));
	g->rate = amount / seconds;
	g->last = excess > 0 ? g->last + amount : now;
	g->time_ns = time_ns;
	return g->rate;
}

double grown_step(struct grown *g, double now, int64_t time_ns, int64_t window_ns, double most, double late_s)
{
	struct lapse lapse = {0};

	return step(g, now, time_ns, window_ns, most, late_s, &lapse);
}

/* What has not moved for so long was read meanwhile. */
#define SLOW_PATIENCE_NS (SLOW_PERIOD_NS + SLOW_PERIOD_NS / 2)

/* The same of what is read every few seconds: when it moved it was read. */
static double grown_slowly(struct grown *g, double now, int64_t time_ns)
{
	int64_t elapsed = time_ns - g->time_ns;

	if (!g->known || !(now == g->last))
		return grown_step(g, now, time_ns, 0, INFINITY, 0);
	if (elapsed >= SLOW_PATIENCE_NS) {
		g->time_ns += elapsed / SLOW_PERIOD_NS * SLOW_PERIOD_NS;
		g->rate = 0;
	}
	return g->rate;
}

/* Another instance is in the row: it begins without a past, or at zero if it was born since the last tick. */
static void row_begin(struct rows *r, const struct walk *s, uint32_t row, uint32_t id)
{
	static const double zero[EXPR_NAMES];
	const struct occupant *in = walk_occupant(s, r->set, row, id);
	bool newborn = s->has_last && !s->gap && in && in->newborn;
	unsigned nr = r->nr_rates;
	double argument[EXPR_RATES];

	expr_arguments(&r->c->expr, zero, argument);
	for (unsigned i = 0; i < nr; i++)
		r->grown[(size_t)row * nr + i] = (struct grown){.known = newborn,
			.last = argument[i],
			.rate = NAN,
			.time_ns = s->set[r->set].last_ns};
	r->id[row] = id;
}

/* ---- some rows at once ---- */

struct lanes { /* of as many rows: what the expression is made of, by name and by rate */
	uint32_t nr;
	double value[EXPR_NAMES][EXPR_LANES], argument[EXPR_RATES][EXPR_LANES], rate[EXPR_RATES][EXPR_LANES];
	double result[EXPR_LANES];
};

static void take_cells(struct lanes *l, const struct column *c, const struct table *t, const uint32_t *row)
{
	const int64_t *cell[EXPR_LANES];
	uint64_t valid[EXPR_LANES];

	for (uint32_t k = 0; k < l->nr; k++) {
		cell[k] = t->cell + (size_t)row[k] * t->nr_cols;
		valid[k] = t->valid[row[k]];
	}
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		const struct scaling scaling = c->arg[i].scaling;
		double *value = l->value[i];
		int col = c->arg[i].col;

		for (uint32_t k = 0; k < l->nr; k++)
			value[k] = col < 0 || !(valid[k] >> col & 1) ? NAN
				: scaling.real			     ? real_of_cell(cell[k][col])
								     : (double)cell[k][col];
		/* A loop of its own each, so that several are done at once. */
		if (!scaling.real && scaling.per == 1)
			for (uint32_t k = 0; k < l->nr; k++)
				value[k] = value[k] * scaling.times;
		else if (!scaling.real)
			for (uint32_t k = 0; k < l->nr; k++)
				value[k] = value[k] * scaling.times / scaling.per;
	}
}

/* Ticks that are closer than this to one at an edge, and than a quarter of an interval. */
#define SLIVER_NS (100 * NSEC_PER_MSEC)

/* What the engine counts itself is exact at edges, too; and a process may be gone at the next tick. */
static bool is_exact(enum domain domain)
{
	return domain == DOMAIN_PROCESS || domain == DOMAIN_TREE || domain == DOMAIN_GROUP ||
		domain == DOMAIN_PERF || domain == DOMAIN_GPU_PROCESS || domain == DOMAIN_APP ||
		domain == DOMAIN_COLLECTOR;
}

static bool is_sliver(const struct rows *r, const struct walk *s)
{
	uint32_t set = r->set;

	return (s->at | s->last_at) & TICK_AT_EDGE && !(s->at & TICK_AT_END) && s->has_last &&
		walk_time(s, set) - s->set[set].last_ns < MIN(SLIVER_NS, s->sliver_ns / 2) &&
		!is_exact(s->schema->set[set].domain);
}

/* At most at the rate before; where there was none yet, it is not known. */
static double grown_over_sliver(struct grown *g, double now, int64_t time_ns)
{
	bool grows = g->known && now > g->last;

	if (grows && isnan(g->rate))
		return NAN;
	if (grows)
		now = MIN(now, g->last + g->rate * ((double)(time_ns - g->time_ns) / 1e9));
	return grown_step(g, now, time_ns, 0, INFINITY, 0);
}

static double rate_over_sliver(const struct rows *r, struct grown *g, double now, int64_t time_ns)
{
	return r->nr_rates > 1 && g->known && now >= g->last ? g->rate : grown_over_sliver(g, now, time_ns);
}

static inline double rate_step(const struct rows *r, struct grown *g, double now, int64_t time_ns,
	double most, double late_s, struct lapse *lapse)
{
	double rate;

	if (r->slow)
		rate = grown_slowly(g, now, time_ns);
	else if (unlikely(r->sliver))
		rate = rate_over_sliver(r, g, now, time_ns);
	else
		rate = step(g, now, time_ns, r->window_ns, most, late_s, lapse);
	g->owes = now > g->last;
	return rate;
}

/* CPUs that the instance in the row can use at once; for columns of `cores`. */
static double most_of(const struct rows *r, const struct walk *s, const struct table *t, uint32_t row)
{
	int col = r->c->threads.set < 0 ? -1 : r->c->threads.col;
	int64_t threads;

	if (col < 0 || !(t->valid[row] >> col & 1))
		return s->cpus;
	/* Some may have ended since the tick before. */
	threads = MAX(t->cell[(size_t)row * t->nr_cols + (size_t)col],
		t->valid_before[row] >> col & 1 ? t->before[(size_t)row * t->nr_cols + (size_t)col] : 0);
	return MIN(s->cpus, (double)MAX(threads, 1));
}

/* The growth of a counter alone is taken from its integers, since doubles have gaps beyond 2^53: what it was
 * is kept in `cell`, and `last` is always nothing. */
static inline double counter_step(
	const struct rows *r, struct grown *g, int64_t cell, int64_t time_ns, struct lapse *lapse)
{
	double now = 0, rate;
	int64_t more;

	if (g->known)
		now = scaled(r->scaling,
			__builtin_sub_overflow(cell, g->cell, &more) ? (double)cell - (double)g->cell
								     : (double)more);
	rate = rate_step(r, g, now, time_ns, INFINITY, 0, lapse);
	if (g->last == now) {
		g->cell = cell;
		g->last = 0;
	}
	return rate;
}

static void take_rates(struct lanes *l, struct rows *r, const struct walk *s, const uint32_t *row)
{
	const uint32_t *id = s->set[r->set].id;
	const struct table *t = walk_table(s, r->set);
	unsigned nr = r->nr_rates;
	bool rests = !r->slow && !r->window_ns;
	int64_t time_ns = walk_time(s, r->set);
	double late_s = walk_late(s);
	struct lapse lapse = {0};

	expr_arguments_of_lanes(&r->c->expr, l->value[0], l->nr, l->argument[0]);
	for (uint32_t k = 0; k < l->nr; k++) {
		struct grown *g = r->grown + (size_t)row[k] * nr;
		bool free = id[row[k]] == ROW_FREE;
		double most = r->cores ? most_of(r, s, t, row[k]) : INFINITY;
		unsigned known = 0;

		if (!free && r->id[row[k]] != id[row[k]])
			row_begin(r, s, row[k], id[row[k]]);
		for (unsigned i = 0; i < nr; i++, g++) {
			double argument = l->argument[i][k];

			if (r->rests[row[k]] >> i & 1)
				g->time_ns = s->set[r->set].last_ns;
			l->rate[i][k] = free ? NAN : rate_step(r, g, argument, time_ns, most, late_s, &lapse);
			known |= (unsigned)!isnan(argument) << i;
		}
		r->rests[row[k]] = rests && !free ? (uint8_t)known : 0;
	}
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void row_put(struct rows *r, uint32_t row, double value)
{
	if (same(value, r->value[row]))
		return;
	r->value[row] = value;
	r->news[r->nr_news++] = row;
	r->changed = true;
}

/* Computes them anew. */
static void rows_look(struct rows *r, const struct walk *s, const uint32_t *row, uint32_t nr)
{
	const uint32_t *id = s->set[r->set].id;
	struct lanes l;

	l.nr = nr; /* the rest is written where it is read */
	take_cells(&l, r->c, walk_table(s, r->set), row);
	if (r->nr_rates)
		take_rates(&l, r, s, row);
	expr_value_of_lanes(&r->c->expr, l.value[0], l.rate[0], nr, l.result);
	for (uint32_t k = 0; k < nr; k++)
		row_put(r, row[k], id[row[k]] == ROW_FREE ? NAN : l.result[k]);
}

/* The same where the expression is plain. */
static void rows_look_plainly(struct rows *r, const struct walk *s, const uint32_t *rows, uint32_t nr)
{
	const struct table *t = walk_table(s, r->set);
	const uint32_t *id = s->set[r->set].id;
	bool rests = !r->slow && !r->window_ns;
	int64_t time_ns = walk_time(s, r->set);
	unsigned col = (unsigned)r->col;
	struct lapse lapse = {0};

	for (uint32_t k = 0; k < nr; k++) {
		uint32_t row = rows[k];
		bool known = id[row] != ROW_FREE && t->valid[row] >> col & 1;
		double rate = NAN;

		if (id[row] != ROW_FREE && r->id[row] != id[row])
			row_begin(r, s, row, id[row]);
		if (r->rests[row])
			r->grown[row].time_ns = s->set[r->set].last_ns;
		if (known)
			rate = counter_step(
				r, &r->grown[row], t->cell[(size_t)row * t->nr_cols + col], time_ns, &lapse);
		r->rests[row] = rests && known;
		row_put(r, row, isfinite(rate) ? rate : NAN);
	}
}

static bool is_wanted(const struct rows *r, uint32_t row)
{
	return r->only == ROWS_ALL || r->only == row;
}

/* ---- which rows ---- */

/* Those that were busy and did not move now come to rest. Windows run by the ticks: no row rests. */
static uint32_t take_busy(struct rows *r, const struct walk_set *set)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr_busy; i++)
		if (is_wanted(r, r->busy[i]) && !walk_row_moved(set, r->busy[i], r->cols))
			r->look[nr++] = r->busy[i];
	r->nr_busy = 0;
	return nr;
}

static uint32_t take_all(struct rows *r, const struct walk_set *set)
{
	uint32_t nr = 0;

	for (uint32_t row = 0; row < set->nr_rows; row++)
		if (set->id[row] != ROW_FREE && is_wanted(r, row) && !walk_row_moved(set, row, r->cols))
			r->look[nr++] = row;
	return nr;
}

static uint32_t take_moved(struct rows *r, const struct walk_set *set, uint32_t nr)
{
	for (uint32_t i = 0; set->any_cols & r->cols && i < set->nr_moved; i++)
		if (walk_row_moved(set, set->moved[i], r->cols) && is_wanted(r, set->moved[i]))
			r->look[nr++] = set->moved[i];
	return nr;
}

/* Rows that were left out begin anew. */
static uint32_t take_anew(struct rows *r, const struct walk_set *set)
{
	uint32_t nr = 0;

	memset(r->id, 0, r->cap * sizeof(*r->id));
	memset(r->rests, 0, r->cap);
	r->nr_busy = 0;
	r->changed = true;
	for (uint32_t row = 0; row < set->nr_rows; row++)
		if (is_wanted(r, row))
			r->look[nr++] = row;
	return nr;
}

/* Something was carried over to a tick in which it did not move: it has a rate there, and not for ever. Or
 * it will have one at the next. */
static bool goes_on(const struct rows *r, uint32_t row)
{
	unsigned nr = r->slow ? 0 : r->nr_rates;

	for (unsigned i = 0; i < nr; i++)
		if (r->grown[(size_t)row * nr + i].rate > 0 || r->grown[(size_t)row * nr + i].owes)
			return true;
	return false;
}

/* Rows that are looked at in the next tick though they do not move: the first `resting` did not move in this.
 */
static void keep_busy(struct rows *r, uint32_t resting, uint32_t nr)
{
	r->nr_busy = 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (i < resting && !goes_on(r, r->look[i]))
			continue;
		r->rests[r->look[i]] = 0;
		r->busy[r->nr_busy++] = r->look[i];
	}
}

/* Of what is read every few seconds nothing becomes other by the time alone before that. */
static bool is_due(const struct rows *r, const struct walk *s)
{
	return !r->slow || walk_time(s, r->set) >= r->due_ns;
}

/* The first `nr` of `look` were computed: all that there are, or some. Where the clock stood, all of them
 * wait for the next tick. */
static void due_put(struct rows *r, const struct walk *s, uint32_t nr, bool all)
{
	int64_t time_ns = walk_time(s, r->set), due;
	unsigned rates = r->nr_rates;

	if (all)
		r->due_ns = INT64_MAX;
	for (uint32_t i = 0; i < nr; i++) {
		const struct grown *g = r->grown + (size_t)r->look[i] * rates;

		if (s->set[r->set].id[r->look[i]] == ROW_FREE)
			continue;
		for (const struct grown *end = g + rates; g < end; g++)
			if (g->known && !__builtin_add_overflow(g->time_ns, SLOW_PATIENCE_NS, &due))
				r->due_ns = MIN(r->due_ns, due);
	}
	if (time_ns <= r->latest_ns)
		r->due_ns = INT64_MIN;
	r->latest_ns = MAX(r->latest_ns, time_ns);
}

int rows_tick(struct rows *r, const struct walk *s, uint32_t only)
{
	const struct walk_set *set = &s->set[r->set];
	bool anew = r->only != ROWS_ALL && only != r->only, rates = r->nr_rates, windows;
	uint32_t resting = 0, nr;

	if (rows_reserve(r, set->cap) < 0)
		return -ENOMEM;
	r->changed = set->occupants_changed;
	r->only = only;
	r->sliver = is_sliver(r, s);
	r->nr_news = 0;
	/* There was never an instance; or nothing can be other than it was, as at most ticks. */
	windows = r->window_ns && (anew || s->gap || is_due(r, s));
	if (!r->cap || (!anew && !s->gap && !(set->any_cols & r->cols) && !r->nr_busy && !windows))
		return 0;
	if (s->gap)
		memset(r->id, 0, r->cap * sizeof(*r->id));
	if (!anew && rates)
		resting = windows ? take_all(r, set) : take_busy(r, set);
	nr = anew ? take_anew(r, set) : take_moved(r, set, resting);
	if (r->plain)
		rows_look_plainly(r, s, r->look, nr);
	for (uint32_t i = 0; !r->plain && i < nr; i += EXPR_LANES)
		rows_look(r, s, r->look + i, MIN(nr - i, (uint32_t)EXPR_LANES));
	if (anew || (rates && !r->window_ns))
		keep_busy(r, resting, nr);
	if (r->slow)
		due_put(r, s, nr, windows);
	return 0;
}

double fold_end(const struct fold *f, enum metric_fold fold)
{
	if (f->has_total)
		return f->total;
	if (!f->nr) /* no instance adds up to 0; one that cannot be read is not known */
		return f->alive || fold != FOLD_SUM ? NAN : 0;
	return fold == FOLD_MEAN ? f->sum / f->nr : fold == FOLD_SUM ? f->sum : f->max;
}
