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
 *   therefore given one tick late.
 * - of what is read only every few seconds: over at least that time, held in between. Else a counter read
 * every five seconds would show one spike and four zeros.
 *
 * An instance called "total" is the source's own fold (the line "cpu" of /proc/stat, which keeps the past of
 * CPUs that went offline): where there is one, folding means taking it. One that says it stands `apart` (a
 * partition, a bridge) is counted in others, and not added to them. */
#include "query/series.h"

#include "base/str.h"
#include "query/derived.h"
#include "query/expr.h"
#include "query/meta.h"
#include "store/store.h"

#include <math.h>
#include <string.h>

#define SLOW_WINDOW_NS (INT64_C(9) * NSEC_PER_SEC / 2)

struct grown { /* what a rate() remembers */
	double last, rate;
	int64_t time_ns;
	bool known;
};

struct column {
	struct series_column face;
	struct expr expr;
	struct {
		int set, col; /* -1: not recorded */
		double scale;
		enum metric_fold fold;
	} name[EXPR_NAMES];
	enum derived_at at;
	enum metric_fold fold;
	uint32_t set; /* AT_INSTANCE */
	int64_t window_ns;
	/* AT_INSTANCE: by row */
	struct grown *grown; /* [nr_rows][nr_rates] */
	uint32_t *id;	     /* whose it is */
	uint32_t nr_rows;
	/* AT_FOLD: this tick and the one before, which waits for it */
	double now[EXPR_NAMES], before[EXPR_NAMES];
	struct grown whole[EXPR_RATES];
};

struct instance {
	uint32_t id;
	int64_t pid;
	bool newborn; /* began in this recording, at zero, and nothing was lost since */
	bool total;
	bool apart; /* counted in others: not added to them */
	char *name;
	size_t name_len;
};

struct set {
	struct instance *instance; /* by row */
	uint32_t nr;
};

struct series {
	struct store_reader *reader;
	struct series_query query;
	char **wanted; /* copies of the query's names */
	struct column *column;
	struct series_column face[SERIES_MAX];
	size_t nr;
	struct set *set;
	uint32_t nr_sets;
	struct meta meta;
	double value[SERIES_MAX]; /* of the line that waits */
	double instance_value[SERIES_MAX];
	int64_t waiting_ns, last_ns; /* times of the line that waits and of the last tick */
	bool has_waiting, has_last;
	bool gap, waiting_gap; /* before the next tick; before the waiting one */
	uint32_t row;	       /* per_instance: the next to give in this tick */
	bool in_tick, done;
};

/* ---- opening ---- */

static void suggest(const struct schema *schema, const char *name, struct buf *reterr)
{
	const char *best = NULL;
	unsigned least = (unsigned)strlen(name) / 2 + 1;

	for (uint32_t i = 0; i < schema->nr_sets; i++)
		for (uint32_t j = 0; j < schema->set[i].nr_metrics; j++) {
			unsigned d = str_distance(name, schema->set[i].metric[j].name);

			if (d < least) {
				least = d;
				best = schema->set[i].metric[j].name;
			}
		}
	for (size_t i = 0; i < nr_derived; i++) {
		unsigned d = str_distance(name, derived[i].name);

		if (d < least) {
			least = d;
			best = derived[i].name;
		}
	}
	buf_addf(reterr, "there is no metric '%s' in this recording", name);
	if (best)
		buf_addf(reterr, "; did you mean '%s'?", best);
	buf_adds(reterr, " ('tacho metrics' lists them)");
}

static int column_bind_names(struct column *c, const struct schema *schema)
{
	unsigned found = 0;

	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		uint32_t set, col;

		c->name[i].set = c->name[i].col = -1;
		if (!schema_find(schema, c->expr.name[i], &set, &col))
			continue;
		const struct schema_metric *m = &schema->set[set].metric[col];

		c->name[i].set = (int)set;
		c->name[i].col = (int)col;
		c->name[i].scale = m->scale;
		c->name[i].fold = m->fold;
		if (m->tier != TIER_TICK)
			c->window_ns = SLOW_WINDOW_NS;
		if (c->at == AT_INSTANCE && found && c->set != set)
			return -EINVAL;
		c->set = set;
		found++;
	}
	return found ? 0 : -ENOENT;
}

static int column_init(struct series *s, struct column *c, const char *name, struct buf *reterr)
{
	const struct schema *schema = store_reader_schema(s->reader);
	const struct derived *d = derived_find(name);
	const char *why = "", *text = name;
	char rate[EXPR_NAME_SIZE + 8];
	uint32_t set, col;
	size_t at;
	int r;

	if (schema_find(schema, name, &set, &col)) {
		const struct schema_metric *m = &schema->set[set].metric[col];

		c->face = (struct series_column){.name = m->name, .help = m->help, .unit = m->unit};
		c->fold = m->fold;
		if (s->query.rate && m->kind == KIND_COUNTER) {
			snprintf(rate, sizeof(rate), "rate(%s)", name);
			text = rate;
			c->face.per_second = true;
		}
	} else if (d) {
		c->face = (struct series_column){
			.name = d->name, .help = d->help, .unit = d->unit, .per_second = d->per_second};
		c->at = d->at;
		c->fold = d->fold;
		text = d->expression;
	} else {
		suggest(schema, name, reterr);
		return -ENOENT;
	}
	r = expr_parse(&c->expr, text, &why, &at);
	if (r >= 0)
		r = column_bind_names(c, schema);
	if (r < 0)
		buf_addf(reterr, "%s cannot be had from this recording: %s", name,
			*why ? why : "the metrics it is made of were not recorded");
	return r;
}

static int columns_agree(const struct series *s, struct buf *reterr)
{
	const struct schema *schema = store_reader_schema(s->reader);

	for (size_t i = 0; i < s->nr; i++) {
		const struct column *c = &s->column[i];
		bool process = c->at == AT_INSTANCE && schema->set[c->set].domain == DOMAIN_PROCESS;

		if (s->query.pid && !process) {
			buf_addf(reterr, "%s is not a metric of single processes", c->face.name);
			return -EINVAL;
		}
		if (!s->query.per_instance) {
			if (c->at == AT_INSTANCE && c->fold == FOLD_NONE && !s->query.pid) {
				buf_addf(reterr,
					"%s cannot be added up: ask for one process or for each instance",
					c->face.name);
				return -EINVAL;
			}
			continue;
		}
		if (c->at == AT_FOLD) {
			buf_addf(reterr, "%s is of the whole tree: it has no instances", c->face.name);
			return -EINVAL;
		}
		if (c->set != s->column[0].set) {
			buf_addf(reterr, "%s and %s have different instances: ask for one after the other",
				s->column[0].face.name, c->face.name);
			return -EINVAL;
		}
	}
	return 0;
}

static int on_schema(struct series *s, struct buf *reterr)
{
	const struct schema *schema = store_reader_schema(s->reader);
	int r = 0;

	s->set = calloc(schema->nr_sets, sizeof(*s->set));
	s->column = calloc(s->query.nr, sizeof(*s->column));
	if (!s->set || !s->column)
		return -ENOMEM;
	s->nr_sets = schema->nr_sets;
	for (; s->nr < s->query.nr && r >= 0; s->nr++) {
		r = column_init(s, &s->column[s->nr], s->wanted[s->nr], reterr);
		s->face[s->nr] = s->column[s->nr].face;
	}
	return r < 0 ? r : columns_agree(s, reterr);
}

/* Metadata may stand behind the schema, and is wanted before the first point. */
static int read_meta(const char *path, struct meta *meta)
{
	struct store_reader *reader = NULL;
	struct store_record record;
	int r = store_open(path, &reader);

	if (r < 0)
		return r;
	while ((r = store_next(reader, &record)) > 0 && record.type != STORE_TICK)
		if (record.type == STORE_META && meta_merge(meta, record.pairs) == -ENOMEM) {
			r = -ENOMEM;
			break;
		}
	store_close(reader);
	return MIN(r, 0);
}

int series_open(const char *path, const struct series_query *q, struct series **ret, struct buf *reterr)
{
	struct series *s = calloc(1, sizeof(*s));
	struct store_record record;
	int r = s ? store_open(path, &s->reader) : -ENOMEM;

	if (r >= 0 && (!q->nr || q->nr > SERIES_MAX))
		r = -EINVAL;
	if (r >= 0) {
		s->query = *q;
		s->wanted = calloc(q->nr, sizeof(*s->wanted));
		r = s->wanted ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r >= 0 && i < q->nr; i++) {
		s->wanted[i] = strdup(q->metric[i]);
		r = s->wanted[i] ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = read_meta(path, &s->meta);
	while (r >= 0 && !s->column) {
		r = store_next(s->reader, &record);
		if (r == 0) {
			buf_addf(reterr, "%s ends before it says what it holds", path);
			r = -ENODATA;
		} else if (r > 0 && record.type == STORE_SCHEMA) {
			r = on_schema(s, reterr);
		}
	}
	if (r < 0) {
		if (!reterr->len)
			buf_addf(reterr, "%s: %s", path, strerror(-r));
		series_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct series *series_close(struct series *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->column && i < s->query.nr; i++) {
		free(s->column[i].grown);
		free(s->column[i].id);
	}
	for (uint32_t i = 0; i < s->nr_sets; i++) {
		for (uint32_t j = 0; j < s->set[i].nr; j++)
			free(s->set[i].instance[j].name);
		free(s->set[i].instance);
	}
	for (size_t i = 0; s->wanted && i < s->query.nr; i++)
		free(s->wanted[i]);
	free(s->wanted);
	free(s->set);
	free(s->column);
	meta_release(&s->meta);
	if (s->reader)
		store_close(s->reader);
	free(s);
	return NULL;
}

size_t series_columns(const struct series *s, const struct series_column **ret)
{
	*ret = s->face;
	return s->nr;
}

const char *series_host(const struct series *s)
{
	return meta_text(&s->meta, "host");
}

int64_t series_start(const struct series *s)
{
	int64_t start = 0;

	meta_num(&s->meta, "start_wall_ns", &start);
	return start;
}

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

static double cell_value(const struct column *c, unsigned name, struct table *t, uint32_t row)
{
	int col = c->name[name].col;

	if (col < 0 || !(t->valid[row] >> col & 1))
		return NAN;
	return (double)table_row(t, row)[col] * c->name[name].scale;
}

static int column_grow(struct column *c, uint32_t nr_rows)
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
static void row_begin(const struct series *s, struct column *c, uint32_t row, uint32_t id)
{
	static const double zero[EXPR_NAMES];
	const struct set *set = &s->set[c->set];
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
	const struct series *s, struct column *c, struct table *t, uint32_t row, int64_t time_ns)
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

static bool is_asked(const struct series *s, const struct set *set, uint32_t row, uint32_t id)
{
	if (!s->query.pid)
		return true;
	return row < set->nr && set->instance[row].id == id && set->instance[row].pid == s->query.pid;
}

static bool is_total(const struct set *set, uint32_t row, uint32_t id)
{
	return row < set->nr && set->instance[row].id == id && set->instance[row].total;
}

static bool is_apart(const struct set *set, uint32_t row, uint32_t id)
{
	return row < set->nr && set->instance[row].id == id && set->instance[row].apart;
}

static double column_fold_instances(struct series *s, struct column *c, int64_t time_ns)
{
	struct table *t = store_reader_table(s->reader, c->set);
	const struct set *set = &s->set[c->set];
	struct fold f = {0};

	if (column_grow(c, t->nr_rows) < 0)
		return NAN;
	for (uint32_t row = 0; row < t->nr_rows; row++) {
		if (t->id[row] == ROW_FREE || !is_asked(s, set, row, t->id[row]) ||
			is_apart(set, row, t->id[row]))
			continue;
		fold_add(&f, row_value(s, c, t, row, time_ns), is_total(set, row, t->id[row]));
	}
	/* One process that is not there is not zero. */
	return s->query.pid && !f.alive ? NAN : fold_end(&f, c->fold);
}

static void column_fold_names(struct series *s, struct column *c)
{
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		struct table *t =
			c->name[i].set < 0 ? NULL : store_reader_table(s->reader, (uint32_t)c->name[i].set);
		struct fold f = {0};

		for (uint32_t row = 0; t && row < t->nr_rows; row++)
			if (t->id[row] != ROW_FREE && !is_apart(&s->set[c->name[i].set], row, t->id[row]))
				fold_add(&f, cell_value(c, i, t, row),
					is_total(&s->set[c->name[i].set], row, t->id[row]));
		c->now[i] = t ? fold_end(&f, c->name[i].fold) : NAN;
	}
}

/* The value of the tick that waits, in the light of the one after it (if there is one and nothing was lost).
 */
static double column_settle(struct series *s, struct column *c, bool has_next)
{
	double argument[EXPR_RATES], next[EXPR_RATES], rate[EXPR_RATES];

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

static int on_instance(struct series *s, const struct store_record *record)
{
	const struct schema *schema = store_reader_schema(s->reader);
	const struct pair *name = pairs_find(record->pairs, "name");
	struct instance *in;
	struct set *set;
	int64_t late = 0, pid = 0;
	bool known;

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
	in->apart = pairs_find(record->pairs, "apart") != NULL;
	in->id = record->id;
	in->pid = pid;
	return in->name ? 0 : -ENOMEM;
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
			column_fold_names(s, &s->column[i]);
	if (ready)
		line_give(s, !s->gap, ret);
	for (size_t i = 0; i < s->nr; i++) {
		struct column *c = &s->column[i];

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
	const struct set *set = &s->set[s->column[0].set];

	for (; s->row < t->nr_rows; s->row++) {
		uint32_t row = s->row;

		if (t->id[row] == ROW_FREE || !is_asked(s, set, row, t->id[row]))
			continue;
		*ret = (struct series_point){.time_ns = s->waiting_ns, .value = s->instance_value};
		if (row < set->nr && set->instance[row].id == t->id[row]) {
			ret->instance = set->instance[row].name;
			ret->instance_len = set->instance[row].name_len;
			ret->pid = set->instance[row].pid;
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
