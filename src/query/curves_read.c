/* One pass over one recording for all questions. What they have in common is computed once: a metric's values
 * by row (query/rows), sums over processes (query/sums), which row belongs to which line (query/split). */
#include "query/curves_internal.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

/* A metric that was asked for. */
struct asked {
	struct asked *next;
	const char *metric;
	bool rate;
	struct column column;
	struct rows rows;	   /* AT_INSTANCE */
	const struct split *split; /* how all who ask want it; NULL: they differ */
	bool has_taker;
	uint32_t place; /* in the list of those that are looked at, AT_INSTANCE */
};

/* What decides at a tick whether a metric is looked at: most are not, so it stands close together. */
struct asked_look {
	struct asked *asked;
	uint64_t cols;
	uint32_t set;
	bool rests; /* no value changes before a cell does */
	bool moved; /* some value, or an instance, at this tick */
};

struct shared_split {
	struct shared_split *next;
	struct split split;
};

/* A query and its lines. */
struct taker {
	unsigned query;
	bool spread, is_fold; /* AT_FOLD */
	struct asked *asked;
	const struct asked_look *look;
	struct split *split;
	struct curve_reduction **curve; /* by class */
	struct fold *fold;		/* AT_INSTANCE */
	const struct taker *same;	/* an earlier one whose folds are these, too; NULL: none */
	struct whole *whole;		/* AT_FOLD */
	uint32_t nr;
};

struct curves_row {
	struct walk_observer observer;
	const struct curves_question *question;
	uint32_t which;
	struct curves_node *node;
	struct walk *walk;
	struct asked *asked;
	struct asked_look *look;
	size_t nr_looks;
	struct shared_split *split;
	struct sums sums;
	struct taker *taker;
	size_t nr_takers;
	struct idmap keep;
	uint32_t *kept; /* ids, by class */
	uint32_t nr_keep;
	struct curves_axis axis;
	struct point_arrays means, ranges; /* of the answers */
	double from, to, interval_s;
	bool before_in_range;
};

/* ---- the questions ---- */

static struct asked *asked_find(struct curves_row *r, const char *metric, bool rate)
{
	for (struct asked *a = r->asked; a; a = a->next)
		if (a->rate == rate && !strcmp(a->metric, metric))
			return a;
	return NULL;
}

static int asked_get(struct curves_row *r, const struct curves_query *q, struct buf *why, struct asked **ret)
{
	struct asked *a = asked_find(r, q->metric, q->rate);
	int e;

	if (a) {
		*ret = a;
		return 0;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	e = column_bind(&a->column, r->walk, q->metric, q->rate, q->typed, why);
	if (e < 0) {
		free(a);
		return e;
	}
	a->metric = q->metric;
	a->rate = q->rate;
	rows_init(&a->rows, &a->column);
	a->next = r->asked;
	r->asked = *ret = a;
	return 0;
}

static bool same_group(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static struct split *split_get(struct curves_row *r, const struct split_query *q, uint32_t set)
{
	struct shared_split *shared;

	for (shared = r->split; shared; shared = shared->next)
		if (shared->split.set == set && shared->split.q.per == q->per &&
			same_group(shared->split.q.group, q->group))
			return &shared->split;
	shared = calloc(1, sizeof(*shared));
	if (!shared || split_init(&shared->split, q, set) < 0) {
		free(shared);
		return NULL;
	}
	shared->next = r->split;
	r->split = shared;
	return &shared->split;
}

static int taker_add(struct curves_row *r, unsigned query, struct buf *why)
{
	static const enum column_per per[] = {[CURVES_WHOLE] = PER_ALL,
		[CURVES_INSTANCE] = PER_EACH,
		[CURVES_GROUP] = PER_GROUP,
		[CURVES_USER] = PER_USER,
		[CURVES_PROCESS] = PER_PROCESS};
	const struct curves_query *q = &r->question->query[query];
	const struct column_use use = {.per = per[q->per], .group = q->group};
	struct taker *t = &r->taker[r->nr_takers];
	struct asked *asked = NULL;
	int e = asked_get(r, q, why, &asked);

	if (e >= 0)
		e = column_agrees(r->walk, &asked->column, &use, why);
	if (e < 0)
		return e == -ENOMEM ? e : 0;
	*t = (struct taker){
		.query = query, .asked = asked, .spread = q->spread, .is_fold = asked->column.at == AT_FOLD};
	t->split = split_get(r,
		&(struct split_query){
			.per = use.per, .group = q->group, .keep = &r->keep, .nr_keep = r->nr_keep},
		asked->column.at == AT_FOLD && r->walk->process_set >= 0 ? (uint32_t)r->walk->process_set
									 : asked->column.set);
	if (!t->split)
		return -ENOMEM;
	asked->split = asked->has_taker && asked->split != t->split ? NULL : t->split;
	asked->has_taker = true;
	r->nr_takers++;
	return 1;
}

/* The filter of a class of a fold; false: it cannot be told yet. */
static bool class_filter(const struct split *p, uint32_t class, struct filter *ret)
{
	*ret = (struct filter){0};
	if (p->q.per == PER_GROUP)
		ret->groups = UINT64_C(1) << class;
	else
		ret->groups = p->mask;
	if (p->q.per == PER_USER) {
		ret->of_user = true;
		ret->uid = (int64_t)p->face[class].id - 1;
	}
	return !p->q.group || p->mask;
}

/* A line for each class that came. */
static int taker_grow(struct curves_row *r, struct taker *t)
{
	const struct column *c = &t->asked->column;
	uint32_t nr = t->split->nr;
	struct filter filter;

	if (nr == t->nr || (c->at == AT_FOLD && !class_filter(t->split, 0, &filter)))
		return 0;
	if (ARRAY_RESIZE(t->curve, nr) < 0 ||
		(c->at == AT_FOLD ? ARRAY_RESIZE(t->whole, nr) : ARRAY_RESIZE(t->fold, nr)) < 0)
		return -ENOMEM;
	for (; t->nr < nr; t->nr++) {
		bool rates = c->expr.nr_rates > 0;
		int e = curve_new(c->at == AT_FOLD, rates, t->spread, &t->curve[t->nr]);

		if (e >= 0 && c->at == AT_FOLD) {
			class_filter(t->split, t->nr, &filter);
			e = whole_init(&t->whole[t->nr], c, &filter, &r->sums);
			if (e < 0)
				curve_free(t->curve[t->nr]);
		}
		if (e < 0)
			return e;
	}
	return 0;
}

/* ---- ticks ---- */

/* Where the source has a fold of its own and nothing else is asked for. */
static uint32_t only_row(const struct asked *a)
{
	return a->split && a->split->q.per == PER_ALL && a->split->total != CLASS_NONE ? a->split->total
										       : ROWS_ALL;
}

/* Nothing can be other than it was, as at most ticks. */
static bool is_as_before(const struct curves_row *r, const struct asked_look *l)
{
	const struct walk_set *set = &r->walk->set[l->set];

	return l->rests && !r->walk->gap && !set->occupants_changed && !(set->any_cols & l->cols);
}

static int look(struct curves_row *r, struct asked_look *l)
{
	struct rows *rows = &l->asked->rows;
	int e;

	l->moved = false;
	if (is_as_before(r, l))
		return 0;
	e = rows_tick(rows, r->walk, only_row(l->asked));
	l->rests = !rows->nr_busy && !rows->c->window_ns;
	l->moved = rows->changed;
	return e;
}

static int compute(struct curves_row *r)
{
	int e = 0;

	for (struct shared_split *p = r->split; p && e >= 0; p = p->next)
		e = split_tick(&p->split, r->walk);
	for (size_t i = 0; i < r->nr_takers && e >= 0; i++)
		e = taker_grow(r, &r->taker[i]);
	if (e >= 0)
		e = sums_tick(&r->sums, r->walk);
	for (size_t i = 0; i < r->nr_looks && e >= 0; i++)
		e = look(r, &r->look[i]);
	return e;
}

static double class_value(const struct taker *t, uint32_t class)
{
	const struct fold *f = &t->fold[class];
	enum metric_fold fold = t->asked->column.fold;

	if (!f->alive && !(t->split->q.per == PER_ALL && t->split->face[class].seen))
		return NAN;
	return fold == FOLD_NONE && f->alive > 1 ? NAN : fold_end(f, fold);
}

static void put_folds(struct curves_row *r, struct taker *t, bool all)
{
	struct split *p = t->split;
	const uint32_t *line;
	const struct rows *rows;
	uint32_t nr;

	if (!t->look->moved && !p->changed && !all)
		return;
	if (t->same && t->nr == 1) {
		curve_put(t->curve[0], &r->axis.now, class_value(t->same, 0));
		return;
	}
	rows = &t->asked->rows;
	if (p->changed || all) {
		if (t->nr)
			memset(t->fold, 0, t->nr * sizeof(*t->fold));
		split_fold(p, r->walk, rows->value, t->fold);
		for (uint32_t i = 0; i < t->nr; i++)
			curve_put(t->curve[i], &r->axis.now, class_value(t, i));
		return;
	}
	nr = split_fold_rows(p, r->walk, rows->value, rows->news, rows->nr_news, t->fold, &line);
	for (uint32_t i = 0; i < nr; i++)
		curve_put(t->curve[line[i]], &r->axis.now, class_value(t, line[i]));
}

/* Values of the tick before this one. */
static void put_wholes(struct curves_row *r, struct taker *t, const struct clock *clock)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		double value;

		if (whole_tick(&t->whole[i], r->walk, &value) && clock)
			curve_put(t->curve[i], clock, value);
	}
}

static void break_runs(struct curves_row *r, bool late, const struct clock *c)
{
	if (!c->breaks)
		return;
	for (size_t i = 0; i < r->nr_takers; i++)
		for (uint32_t j = 0; r->taker[i].is_fold == late && j < r->taker[i].nr; j++)
			curve_break(r->taker[i].curve[j], c);
}

static void remap_lines(struct curves_row *r)
{
	for (size_t i = 0; i < r->nr_takers; i++)
		for (uint32_t j = 0; j < r->taker[i].nr; j++)
			curve_remap(r->taker[i].curve[j], r->axis.map);
}

/* The axis takes the tick, and all lines follow. */
static void advance(struct curves_row *r, double time)
{
	const struct walk *s = r->walk;
	double before = s->has_last ? r->node->offset_s + (double)s->last_ns / 1e9 : NAN;

	if (!isnan(r->from) && before < r->from)
		before = r->from;
	while (axis_is_full(&r->axis, time, s->gap)) {
		axis_widen(&r->axis);
		remap_lines(r);
	}
	axis_tick(&r->axis, time, before, s->gap);
	break_runs(r, false, &r->axis.now);
	if (r->axis.has_late)
		break_runs(r, true, &r->axis.late);
}

/* Something would have to be known that was passed over: whether there was ever an instance, and what the
 * ticks before were. */
static bool is_unsure(const struct curves_row *r)
{
	bool unsure = !walk_is_warm(r->walk);

	for (size_t i = 0; i < r->nr_takers && r->walk->sought; i++)
		unsure |= r->taker[i].asked->column.at == AT_INSTANCE && !r->taker[i].split->face[0].seen;
	return unsure;
}

/* 0: it is behind the range; -EAGAIN: nothing may be passed over. */
static int on_tick(struct curves_row *r)
{
	double time = r->node->offset_s + (double)r->walk->time_ns / 1e9;
	bool past = time > r->to, inside = !past && !(time < r->from), first = !r->axis.has_now;
	const struct clock *late = NULL;
	int e = compute(r);

	if (e < 0)
		return e;
	if (!(time < r->from) && first && is_unsure(r))
		return -EAGAIN;
	if (inside)
		advance(r, time);
	if (r->before_in_range)
		late = inside ? &r->axis.late : &r->axis.now;
	if (late && past)
		break_runs(r, true, late);
	for (size_t i = 0; i < r->nr_takers; i++) {
		struct taker *t = &r->taker[i];

		if (t->is_fold)
			put_wholes(r, t, late);
		else if (inside)
			put_folds(r, t, first);
	}
	r->before_in_range = inside;
	return !past;
}

/* What waits is settled, and runs end: at the end of the range, or with the last tick. */
static void end_lines(struct curves_row *r, bool past)
{
	struct clock end = {
		.tick = r->axis.now.tick + 1, .time = r->to, .before = r->axis.now.time, .gap = !past};

	if (!r->axis.has_now)
		return;
	if (r->before_in_range)
		break_runs(r, true, &r->axis.now);
	for (size_t i = 0; i < r->nr_takers; i++) {
		struct taker *t = &r->taker[i];

		for (uint32_t j = 0; j < t->nr; j++) {
			double value;

			if (r->before_in_range && t->curve[j]->late && whole_end(&t->whole[j], &value))
				curve_put(t->curve[j], &r->axis.now, value);
			curve_break(t->curve[j], &end);
		}
	}
}

/* Folds of what is known at a tick, and rates of them, need not be read from the first tick on. */
static int64_t needed_from(const struct curves_row *r)
{
	bool may = !r->question->options->whole && isfinite(r->from) && r->nr_takers;

	for (size_t i = 0; i < r->nr_takers; i++)
		may = may && r->taker[i].split->q.per == PER_ALL && !r->taker[i].split->q.group &&
			column_is_of_now(&r->taker[i].asked->column, r->walk);
	if (!may || !(r->from > r->node->offset_s) || r->from - r->node->offset_s > 9e9)
		return 0;
	return round_i64((r->from - r->node->offset_s) * 1e9);
}

static int observe(struct walk_observer *o, const struct store_record *record)
{
	struct curves_row *r = (struct curves_row *)o;
	int more = record->type == STORE_TICK && !o->done ? on_tick(r) : 1;

	o->done |= !more;
	return MIN(more, 0);
}

static int reading_end(struct curves_row *r)
{
	end_lines(r, r->observer.done);
	for (size_t i = 0; i < r->nr_takers; i++)
		for (uint32_t j = 0; j < r->taker[i].nr; j++)
			if (r->taker[i].curve[j]->err < 0)
				return r->taker[i].curve[j]->err;
	return 0;
}

/* ---- answers ---- */

static int line_make(struct curves_row *r, struct taker *t, uint32_t class, struct curves_line *ret)
{
	const struct class_face *face = &t->split->face[class];
	const char *name = face->name ? face->name : t->split->q.per == PER_ALL ? r->node->host : "";
	size_t len = face->name ? face->name_len : strlen(name);
	struct curve_reduction *curve = t->curve[class];
	int e = curve_finish(curve, &r->axis, r->node, &r->means, &r->ranges, ret);

	ret->query = t->query;
	ret->node = r->which;
	ret->pid = face->pid;
	ret->id = face->id;
	ret->others = face->others;
	ret->counted_elsewhere = face->counted_elsewhere;
	if (t->split->q.per == PER_PROCESS && !face->others)
		ret->id = r->kept[class];
	if (t->split->q.per == PER_GROUP || t->split->q.per == PER_USER)
		ret->id = 0;
	ret->name = malloc(len + 1);
	if (!ret->name || e < 0)
		return -ENOMEM;
	memcpy(ret->name, name, len);
	ret->name[len] = 0;
	ret->name_len = len;
	ret->spread = TAKE_PTR(curve->spread);
	if (ret->spread && !(spread_weight(ret->spread) > 0))
		spread_add(ret->spread, ret->last, 1);
	return 0;
}

/* Kept processes have a line even if they never came; others only if there were some. */
static bool has_line(const struct split *p, uint32_t class)
{
	if (p->q.per == PER_PROCESS && class < p->q.nr_keep)
		return true;
	return p->face[class].seen || p->q.per == PER_ALL;
}

static int answer_make(struct curves_row *r, struct taker *t, struct curves_answer *ret)
{
	ret->line = calloc(MAX(t->nr, 1u), sizeof(*ret->line));
	if (!ret->line)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nr; i++)
		if (has_line(t->split, i)) {
			int e = line_make(r, t, i, &ret->line[ret->nr++]);

			if (e < 0)
				return e;
		}
	return 0;
}

/* Why a metric that was recorded never had a value. */
static const char *why_empty(const struct curves_row *r, const struct taker *t)
{
	const struct column *c = &t->asked->column;

	if (t->split->q.group && !t->split->mask)
		return "there is no such group in this recording";
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		const struct schema_metric *m =
			c->arg[i].set < 0 ? NULL : &r->walk->schema->set[c->arg[i].set].metric[c->arg[i].col];

		if (m && m->why)
			return m->why;
	}
	return isinf(r->from) && isinf(r->to) ? "it never had a value"
					      : "it has no value in this part of the run";
}

static bool has_values(const struct taker *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		if (t->curve[i]->ticks)
			return true;
	return false;
}

static char *copy_text(const char *text)
{
	return strdup(text ? text : "");
}

static int column_why(struct curves_column *column, const char *why)
{
	if (column->known || column->why)
		return 0;
	column->why = copy_text(why);
	return column->why ? 0 : -ENOMEM;
}

/* All that it is computed from is of the machine. */
static bool is_of_machine(const struct column *c, const struct walk *s)
{
	const uint64_t machine = UINT64_C(1) << DOMAIN_NODE | UINT64_C(1) << DOMAIN_CPU |
		UINT64_C(1) << DOMAIN_NET | UINT64_C(1) << DOMAIN_IB | UINT64_C(1) << DOMAIN_DISK |
		UINT64_C(1) << DOMAIN_FILESYSTEM | UINT64_C(1) << DOMAIN_ENERGY |
		UINT64_C(1) << DOMAIN_SENSOR | UINT64_C(1) << DOMAIN_GPU | UINT64_C(1) << DOMAIN_SOCKET;
	uint64_t domains = 0;

	for (unsigned i = 0; i < c->expr.nr_names; i++)
		if (c->arg[i].set >= 0)
			domains |= UINT64_C(1) << s->schema->set[c->arg[i].set].domain;
	return domains && !(domains & ~machine);
}

static int column_face(struct curves_column *column, const struct curves_row *r, const struct taker *t)
{
	const struct column *c = &t->asked->column;

	column->name = copy_text(c->name);
	column->help = copy_text(c->help);
	column->panel = copy_text(c->panel);
	if (!column->name || !column->help || !column->panel)
		return -ENOMEM;
	column->unit = c->unit;
	column->kind = c->kind;
	column->fold = c->fold;
	column->per_second = c->per_second;
	column->rates = c->expr.nr_rates > 0;
	column->of_machine = is_of_machine(c, r->walk);
	column->left_out = t->split->nr_left_out;
	column->known = has_values(t);
	return column_why(column, why_empty(r, t));
}

static int take_answers(struct curves_row *r, struct curves_column *column, struct curves_answer *answer)
{
	int e = axis_finish(&r->axis, r->node, r->interval_s);

	for (size_t i = 0; i < r->nr_takers && e >= 0; i++) {
		struct taker *t = &r->taker[i];

		e = column_face(&column[t->query], r, t);
		if (e >= 0)
			e = answer_make(r, t, &answer[t->query]);
	}
	return e;
}

/* ---- one recording ---- */

static int take_keep(struct curves_row *r)
{
	const struct curves_options *o = r->question->options;
	int e = 0;

	r->kept = calloc(o->nr_keep + 1, sizeof(*r->kept));
	if (!r->kept)
		return -ENOMEM;
	for (size_t i = 0; i < o->nr_keep && e >= 0; i++) {
		if (o->keep[i].node != r->which || !o->keep[i].id ||
			idmap_get(&r->keep, o->keep[i].id) != IDMAP_NONE)
			continue;
		r->kept[r->nr_keep] = o->keep[i].id;
		e = idmap_put(&r->keep, o->keep[i].id, r->nr_keep++);
	}
	return e;
}

/* Some metrics are asked for twice, with and without a spread. */
static const struct taker *same_folds(const struct curves_row *r, size_t nr)
{
	const struct taker *t = &r->taker[nr];

	for (size_t i = 0; i < nr; i++)
		if (r->taker[i].asked == t->asked && r->taker[i].split == t->split)
			return &r->taker[i];
	return NULL;
}

static int list_looks(struct curves_row *r)
{
	size_t nr = 0;

	for (const struct asked *a = r->asked; a; a = a->next)
		nr++;
	r->look = calloc(nr + 1, sizeof(*r->look));
	if (!r->look)
		return -ENOMEM;
	for (struct asked *a = r->asked; a; a = a->next) {
		if (a->column.at != AT_INSTANCE || !a->has_taker)
			continue;
		a->place = (uint32_t)r->nr_looks;
		r->look[r->nr_looks++] =
			(struct asked_look){.asked = a, .cols = a->column.cols, .set = a->column.set};
	}
	for (size_t i = 0; i < r->nr_takers; i++)
		if (!r->taker[i].is_fold) {
			r->taker[i].look = &r->look[r->taker[i].asked->place];
			r->taker[i].same = same_folds(r, i);
		}
	return 0;
}

static int take_queries(struct curves_row *r, struct curves_column *column)
{
	struct buf why;
	int e = 0;

	buf_init(&why, 4096);
	for (unsigned i = 0; i < r->question->nr && e >= 0; i++) {
		buf_reset(&why);
		if (r->walk->schema)
			e = taker_add(r, i, &why);
		else
			buf_adds(&why, why_young);
		if (e == 0)
			e = column_why(&column[i], (const char *)why.data);
	}
	buf_release(&why);
	return e < 0 ? e : list_looks(r);
}

static int reading_open(struct curves_row *r)
{
	const struct curves_options *o = r->question->options;
	int64_t interval_ns = 0;
	int e;

	meta_num(&r->walk->meta, "interval_ns", &interval_ns);
	r->interval_s = (double)MAX(interval_ns, 0) / 1e9;
	r->from = isnan(o->from_s) ? -INFINITY : o->from_s;
	r->to = isnan(o->to_s) ? INFINITY : o->to_s;
	r->taker = calloc(r->question->nr + 1, sizeof(*r->taker));
	if (!r->taker)
		return -ENOMEM;
	e = take_keep(r);
	return e < 0 ? e : axis_init(&r->axis, o->points ? o->points : CURVES_POINTS);
}

static void taker_release(struct taker *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		curve_free(t->curve[i]);
	free(t->curve);
	free(t->fold);
	free(t->whole);
}

static void reading_release(struct curves_row *r)
{
	for (size_t i = 0; i < r->nr_takers; i++)
		taker_release(&r->taker[i]);
	free(r->taker);
	for (struct asked *a = r->asked, *next; a; a = next) {
		next = a->next;
		rows_release(&a->rows);
		free(a);
	}
	for (struct shared_split *p = r->split, *next; p; p = next) {
		next = p->next;
		split_release(&p->split);
		free(p);
	}
	free(r->look);
	sums_release(&r->sums);
	idmap_release(&r->keep);
	free(r->kept);
	axis_release(&r->axis);
	point_arrays_release(&r->means);
	point_arrays_release(&r->ranges);
	free(r);
}

int curves_node_open(const struct curves_question *q, uint32_t which, struct curves_node *node,
	struct walk *walk, struct curves_column *column, struct walk_observer **ret)
{
	struct curves_row *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	*r = (struct curves_row){
		.observer = {.record = observe}, .question = q, .which = which, .node = node, .walk = walk};
	e = reading_open(r);
	if (e >= 0)
		e = take_queries(r, column);
	if (e < 0) {
		reading_release(r);
		return e;
	}
	r->observer.from_ns = needed_from(r);
	*ret = &r->observer;
	return 0;
}

uint32_t curves_node_which(const struct walk_observer *o)
{
	return ((const struct curves_row *)o)->which;
}

int curves_node_close(
	struct walk_observer *o, int e, struct curves_column *column, struct curves_answer *answer)
{
	struct curves_row *r = (struct curves_row *)o;

	if (e >= 0)
		e = reading_end(r);
	if (e >= 0)
		e = take_answers(r, column, answer);
	reading_release(r);
	return MIN(e, 0);
}

/* ---- one recording that is read on ---- */

static void forget(struct curves_row *r, double upto_s)
{
	uint32_t nr = axis_upto(&r->axis, upto_s);

	axis_forget(&r->axis, nr);
	for (size_t i = 0; i < r->nr_takers; i++)
		for (uint32_t j = 0; j < r->taker[i].nr; j++)
			curve_forget(r->taker[i].curve[j], nr);
	point_arrays_release(&r->means);
	point_arrays_release(&r->ranges);
	r->means = r->ranges = (struct point_arrays){0};
}

/* What waits beyond that time is not told yet. */
static void cut_times(struct curves_node *node, double upto_s)
{
	size_t nr = node->nr_times;

	while (nr && (node->time_s[nr - 1] > upto_s || node->lost[nr - 1]))
		nr--;
	node->ticks = node->nr_times = nr;
	if (nr)
		node->end_s = node->time_s[nr - 1];
}

int curves_node_take(struct walk_observer *o, double upto_s, bool ended, struct curves_node *node,
	struct curves_column *column, struct curves_answer *answer)
{
	struct curves_row *r = (struct curves_row *)o;
	struct curves_node *own = r->node;
	int e = 0;

	if (ended)
		e = reading_end(r);
	else if (r->before_in_range)
		break_runs(r, true, &r->axis.now);
	r->node = node;
	if (e >= 0)
		e = take_answers(r, column, answer);
	r->node = own;
	if (ended) /* once */
		r->axis.has_now = r->before_in_range = false;
	if (e >= 0) {
		cut_times(node, upto_s);
		forget(r, upto_s);
	}
	return MIN(e, 0);
}

double curves_node_settled(const struct walk_observer *o, size_t *ret_waiting)
{
	const struct curves_row *r = (const struct curves_row *)o;

	*ret_waiting = r->axis.nr;
	return r->axis.has_late ? r->axis.late.time : -INFINITY;
}

double curves_node_last(const struct walk_observer *o)
{
	const struct curves_row *r = (const struct curves_row *)o;

	return r->axis.has_now || r->axis.has_late ? r->axis.now.time : -INFINITY;
}
