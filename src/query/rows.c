/* The values of a column for each instance, kept up to date.
 *
 * Rates of an instance: growth since its last value over the time that really passed. A fall is a reset: no
 * rate for that step. A process that was born during the recording began at zero, so its first step has a
 * rate too. Nothing is compared across a gap or between two instances. Of what is read only every few seconds
 * rates are from one reading to the next, and held in between: else a counter read every five seconds would
 * show one spike and four zeros. The recording does not say when something was read that had not moved: then
 * the readings are taken to have gone on at their pace.
 *
 * A row is computed again only when it moved. Its rates are known without: once it was looked at and had not
 * moved they are nothing, and when it moves again they are over the time since the tick before. */
#include "query/column.h"

#include <math.h>
#include <string.h>

void rows_init(struct rows *r, const struct column *c)
{
	*r = (struct rows){.c = c, .only = ROWS_ALL};
}

void rows_release(struct rows *r)
{
	free(r->value);
	free(r->grown);
	free(r->id);
	free(r->rests);
	free(r->busy);
	*r = (struct rows){0};
}

static int rows_reserve(struct rows *r, uint32_t nr)
{
	size_t rates = MAX(r->c->expr.nr_rates, 1u);
	uint32_t cap = r->cap;
	struct rows more;

	if (nr <= cap)
		return 0;
	nr = MAX(nr + 16, cap * 2);
	more.value = reallocarray(r->value, nr, sizeof(*r->value));
	r->value = more.value ? more.value : r->value;
	more.grown = reallocarray(r->grown, nr * rates, sizeof(*r->grown));
	r->grown = more.grown ? more.grown : r->grown;
	more.id = reallocarray(r->id, nr, sizeof(*r->id));
	r->id = more.id ? more.id : r->id;
	more.rests = realloc(r->rests, nr);
	r->rests = more.rests ? more.rests : r->rests;
	more.busy = reallocarray(r->busy, nr, sizeof(*r->busy));
	r->busy = more.busy ? more.busy : r->busy;
	if (!more.value || !more.grown || !more.id || !more.rests || !more.busy)
		return -ENOMEM;
	for (uint32_t i = cap; i < nr; i++) {
		r->value[i] = NAN;
		r->id[i] = ROW_FREE;
		r->rests[i] = 0;
	}
	r->cap = nr;
	return 0;
}

/* The rate of a value that is `now`; NAN while it cannot be told. */
double grown_step(struct grown *g, double now, int64_t time_ns, int64_t window_ns)
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

/* The same of what is read every few seconds: when it moved it was read. */
static double grown_slowly(struct grown *g, double now, int64_t time_ns)
{
	int64_t elapsed = time_ns - g->time_ns;

	if (!g->known || !(now == g->last))
		return grown_step(g, now, time_ns, 0);
	if (elapsed >= SLOW_PERIOD_NS + SLOW_PERIOD_NS / 2) {
		g->time_ns += elapsed / SLOW_PERIOD_NS * SLOW_PERIOD_NS;
		g->rate = 0;
	}
	return g->rate;
}

/* Somebody else sits in the row: it begins without a past, or at zero if it was born since the last tick. */
static void row_begin(struct rows *r, const struct scene *s, uint32_t row, uint32_t id)
{
	static const double zero[EXPR_NAMES];
	const struct scene_instance *in = scene_instance(s, r->c->set, row, id);
	bool newborn = s->has_last && !s->gap && in && in->newborn;
	unsigned nr = r->c->expr.nr_rates;
	double argument[EXPR_RATES];

	expr_arguments(&r->c->expr, zero, argument);
	for (unsigned i = 0; i < nr; i++)
		r->grown[(size_t)row * nr + i] = (struct grown){
			.known = newborn, .last = argument[i], .rate = NAN, .time_ns = s->last_ns};
	r->id[row] = id;
}

static void row_rates(
	struct rows *r, const struct scene *s, uint32_t row, const double *value, double *ret_rate)
{
	struct grown *g = r->grown + (size_t)row * r->c->expr.nr_rates;
	double argument[EXPR_RATES];
	unsigned known = 0;

	if (r->id[row] != s->set[r->c->set].id[row])
		row_begin(r, s, row, s->set[r->c->set].id[row]);
	expr_arguments(&r->c->expr, value, argument);
	for (unsigned i = 0; i < r->c->expr.nr_rates; i++, g++) {
		if (r->rests[row] >> i & 1)
			g->time_ns = s->last_ns;
		ret_rate[i] = r->c->slow ? grown_slowly(g, argument[i], s->time_ns)
					 : grown_step(g, argument[i], s->time_ns, r->c->window_ns);
		known |= (unsigned)!isnan(argument[i]) << i;
	}
	r->rests[row] = r->c->slow || r->c->window_ns ? 0 : (uint8_t)known;
}

static double row_value(struct rows *r, const struct scene *s, struct table *t, uint32_t row)
{
	double value[EXPR_NAMES], rate[EXPR_RATES];
	const struct column *c = r->c;

	if (s->set[c->set].id[row] == ROW_FREE)
		return NAN;
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		int col = c->arg[i].col;

		value[i] = col < 0 || !(t->valid[row] >> col & 1)
			? NAN
			: (double)table_row(t, row)[col] * c->arg[i].scale;
	}
	if (c->expr.nr_rates)
		row_rates(r, s, row, value, rate);
	return expr_value(&c->expr, value, rate);
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void row_look(struct rows *r, const struct scene *s, struct table *t, uint32_t row)
{
	double value = row_value(r, s, t, row);

	r->changed |= !same(value, r->value[row]);
	r->value[row] = value;
}

static bool is_wanted(const struct rows *r, uint32_t row)
{
	return r->only == ROWS_ALL || r->only == row;
}

/* Those that were busy and did not move now come to rest. Windows run by the ticks: nobody rests. */
static void look_at_busy(struct rows *r, const struct scene *s, struct table *t)
{
	const struct scene_set *set = &s->set[r->c->set];

	for (uint32_t i = 0; i < r->nr_busy; i++) {
		uint32_t row = r->busy[i];

		if (is_wanted(r, row) && !scene_row_moved(set, t, row, r->c->cols))
			row_look(r, s, t, row);
	}
	r->nr_busy = 0;
}

static void look_at_all(struct rows *r, const struct scene *s, struct table *t)
{
	const struct scene_set *set = &s->set[r->c->set];

	for (uint32_t row = 0; row < set->nr_rows; row++)
		if (set->id[row] != ROW_FREE && is_wanted(r, row) &&
			!scene_row_moved(set, t, row, r->c->cols))
			row_look(r, s, t, row);
}

static void look_at_moved(struct rows *r, const struct scene *s, struct table *t)
{
	const struct scene_set *set = &s->set[r->c->set];
	bool rests = r->c->expr.nr_rates && !r->c->window_ns;

	for (uint32_t i = 0; i < set->nr_moved; i++) {
		uint32_t row = set->moved[i];

		if (!is_wanted(r, row) || !scene_row_moved(set, t, row, r->c->cols))
			continue;
		row_look(r, s, t, row);
		r->rests[row] = 0;
		if (rests)
			r->busy[r->nr_busy++] = row;
	}
}

/* Rows that were left out begin anew. */
static void look_anew(struct rows *r, const struct scene *s, struct table *t)
{
	memset(r->id, 0, r->cap * sizeof(*r->id));
	memset(r->rests, 0, r->cap);
	r->nr_busy = 0;
	r->changed = true;
	for (uint32_t row = 0; row < s->set[r->c->set].nr_rows; row++)
		if (is_wanted(r, row)) {
			row_look(r, s, t, row);
			r->rests[row] = 0;
			r->busy[r->nr_busy++] = row;
		}
}

int rows_tick(struct rows *r, const struct scene *s, uint32_t only)
{
	struct table *t = scene_table(s, r->c->set);
	bool more = r->only != ROWS_ALL && only != r->only;

	if (rows_reserve(r, s->set[r->c->set].cap) < 0)
		return -ENOMEM;
	r->changed = s->set[r->c->set].reseated;
	r->only = only;
	if (!r->cap) /* nobody was ever there */
		return 0;
	if (s->gap)
		memset(r->id, 0, r->cap * sizeof(*r->id));
	if (more) {
		look_anew(r, s, t);
		return 0;
	}
	if (r->c->expr.nr_rates && r->c->window_ns)
		look_at_all(r, s, t);
	else if (r->c->expr.nr_rates)
		look_at_busy(r, s, t);
	look_at_moved(r, s, t);
	return 0;
}

double fold_end(const struct fold *f, enum metric_fold fold)
{
	if (f->has_total)
		return f->total;
	if (!f->nr) /* nobody there adds up to nothing; somebody who cannot be read does not */
		return f->alive || fold != FOLD_SUM ? NAN : 0;
	return fold == FOLD_MEAN ? f->sum / f->nr : fold == FOLD_SUM ? f->sum : f->max;
}
