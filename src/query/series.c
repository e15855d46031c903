/* Time series, printed as they are read: one question about one recording. Values are those of query/rows and
 * query/sums; here they are folded (query/split) and put on lines. Values of a fold come one tick
 * late, so lines do, too. */
#include "query/series.h"

#include "query/split.h"

#include <math.h>
#include <string.h>

struct series_part {
	struct column column;
	struct rows rows;   /* AT_INSTANCE */
	struct split split; /* the same, unless each instance is a line */
	struct whole whole; /* AT_FOLD */
	bool seen;	    /* AT_INSTANCE: an instance was there, at some time */
};

struct series {
	struct walk *walk;
	bool shared; /* the walk is the caller's */
	struct series_query query;
	uint64_t wanted_group; /* 0: all */
	struct sums sums;
	struct series_part *part;
	struct series_column face[SERIES_MAX];
	size_t nr;
	double value[SERIES_MAX]; /* of the line that waits */
	double given[SERIES_MAX];
	int64_t waiting_ns;
	bool has_waiting;
	uint32_t row; /* per_instance: the next to give in this tick */
	bool in_tick, done;
	int64_t from_ns, to_ns;
	bool unsure; /* whether there was a process before what was read */
	bool given_one;
};

/* ---- lines ---- */

static bool is_asked(const struct series *s, const struct occupant *in)
{
	if (s->query.pid && (!in || in->pid != s->query.pid))
		return false;
	return !s->wanted_group || (in && in->groups & s->wanted_group);
}

static double fold_rows(struct series *s, struct series_part *p)
{
	struct fold f = {0};

	split_fold(&p->split, s->walk, p->rows.value, &f);
	p->seen |= f.alive > 0;
	s->unsure |= !p->seen && s->walk->sought && s->walk->time_ns >= s->from_ns;
	/* One process that is not there is not zero; nor is a metric of which no instance has appeared
	 * yet, but for use of GPUs, where there need not be any. */
	if (!f.alive &&
		(s->query.pid ||
			(!p->seen && !s->wanted_group &&
				!walk_is_of(s->walk, p->column.set, DOMAIN_GPU_PROCESS))))
		return NAN;
	return fold_end(&f, p->column.fold);
}

static void line_give(struct series *s, struct series_point *ret)
{
	memcpy(s->given, s->value, sizeof(s->value));
	*ret = (struct series_point){.time_ns = s->waiting_ns, .value = s->given};
	s->has_waiting = false;
}

static int columns_tick(struct series *s)
{
	int r = sums_tick(&s->sums, s->walk);

	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		if (s->part[i].column.at != AT_INSTANCE)
			continue;
		r = rows_tick(&s->part[i].rows, s->walk, ROWS_ALL);
		if (r >= 0 && !s->query.per_instance)
			r = split_tick(&s->part[i].split, s->walk);
	}
	return r;
}

/* Takes the tick in; true when the line before it is ready. */
static bool on_tick(struct series *s, struct series_point *ret)
{
	bool ready = s->has_waiting;

	for (size_t i = 0; i < s->nr; i++)
		if (s->part[i].column.at == AT_FOLD)
			whole_tick(&s->part[i].whole, s->walk, &s->value[i]);
	if (ready)
		line_give(s, ret);
	for (size_t i = 0; i < s->nr; i++)
		if (s->part[i].column.at == AT_INSTANCE)
			s->value[i] = fold_rows(s, &s->part[i]);
	s->waiting_ns = s->walk->time_ns;
	s->has_waiting = true;
	return ready;
}

/* The last line: nothing follows that could settle it. */
static bool on_end(struct series *s, struct series_point *ret)
{
	s->done = true;
	if (!s->has_waiting)
		return false;
	for (size_t i = 0; i < s->nr; i++)
		if (s->part[i].column.at == AT_FOLD)
			whole_end(&s->part[i].whole, &s->value[i]);
	line_give(s, ret);
	return true;
}

/* The next instance of this tick; false when there is none. */
static bool instance_next(struct series *s, struct series_point *ret)
{
	uint32_t which = s->part[0].column.set;
	const struct walk_set *set = &s->walk->set[which];

	for (; s->row < set->nr_rows; s->row++) {
		uint32_t row = s->row;
		const struct occupant *in = walk_occupant(s->walk, which, row, set->id[row]);

		if (set->id[row] == ROW_FREE || !is_asked(s, in))
			continue;
		*ret = (struct series_point){.time_ns = s->walk->time_ns, .value = s->given};
		if (in) {
			ret->instance = in->name;
			ret->instance_len = in->name_len;
			ret->pid = in->pid;
		}
		for (size_t i = 0; i < s->nr; i++)
			s->given[i] = s->part[i].rows.value[row];
		s->row++;
		return true;
	}
	s->in_tick = false;
	return false;
}

int series_more(struct series *s, struct series_point *ret)
{
	return s->in_tick && instance_next(s, ret);
}

int series_tick(struct series *s, struct series_point *ret)
{
	int r = columns_tick(s);

	if (r < 0)
		return r;
	if (s->walk->time_ns >= s->from_ns && !walk_is_warm(s->walk) && !s->given_one)
		return -EAGAIN;
	s->row = 0;
	s->in_tick = s->query.per_instance;
	return s->in_tick ? series_more(s, ret) : on_tick(s, ret);
}

int series_end(struct series *s, struct series_point *ret)
{
	return on_end(s, ret);
}

static int next_point(struct series *s, struct series_point *ret)
{
	int r;

	if (series_more(s, ret))
		return 1;
	while (!s->done && (r = walk_next(s->walk)) != 0) {
		if (r == WALK_WAIT)
			return SERIES_WAIT;
		r = r < 0 ? r : series_tick(s, ret);
		if (r)
			return r;
	}
	return on_end(s, ret);
}

int series_next(struct series *s, struct series_point *ret)
{
	int r;

	do {
		r = next_point(s, ret);
		if (r == 1 && ret->time_ns > s->to_ns) {
			s->done = true;
			return 0;
		}
	} while (r == 1 && ret->time_ns < s->from_ns);
	if (r == 1 && s->unsure && !s->given_one && !s->query.near)
		return -EAGAIN;
	s->given_one |= r == 1;
	return r;
}

static bool may_seek(const struct series *s)
{
	bool may = !s->query.group && !s->query.whole;

	for (size_t i = 0; i < s->nr; i++)
		may = may && column_is_of_now(&s->part[i].column, s->walk);
	return may;
}

int series_range(struct series *s, int64_t from_ns, int64_t to_ns)
{
	s->from_ns = from_ns;
	s->to_ns = to_ns;
	return from_ns > 0 && may_seek(s) ? walk_seek(s->walk, from_ns) : 0;
}

int series_follow(struct series *s, const char *path, bool end)
{
	int r = end && may_seek(s) ? walk_seek(s->walk, INT64_MAX) : 0;

	s->given_one = end; /* what needs more than the end is not known */
	return r < 0 ? r : walk_follow(s->walk, path);
}

/* ---- opening ---- */

/* Some of what it is made of could be read. */
static bool is_available(const struct series *s, const struct column *c)
{
	for (unsigned i = 0; i < c->expr.nr_names; i++)
		if (c->arg[i].set >= 0 && !s->walk->schema->set[c->arg[i].set].metric[c->arg[i].col].why)
			return true;
	return false;
}

static int part_open(struct series *s, struct series_part *p, const char *metric, struct buf *reterr)
{
	const struct filter filter = {.groups = s->wanted_group};
	int r = column_bind(&p->column, s->walk, metric, s->query.rate, true, reterr);

	if (s->query.if_known && (r == -ENOENT || (r >= 0 && !is_available(s, &p->column)))) {
		buf_reset(reterr);
		return 0;
	}
	if (r < 0)
		return r;
	rows_init(&p->rows, &p->column);
	s->face[s->nr++] = (struct series_column){.name = p->column.name,
		.help = p->column.help,
		.unit = p->column.unit,
		.per_second = p->column.per_second};
	if (p->column.at == AT_FOLD)
		return whole_init(&p->whole, &p->column, &filter, &s->sums);
	return split_init(&p->split,
		&(struct split_query){.per = PER_ALL, .group = s->query.group, .pid = s->query.pid},
		p->column.set);
}

static int parts_agree(const struct series *s, struct buf *reterr)
{
	const struct column_use use = {.per = s->query.per_instance ? PER_EACH : PER_ALL,
		.one = s->query.pid != 0,
		.group = s->query.group};

	for (size_t i = 0; i < s->nr; i++) {
		const struct column *c = &s->part[i].column, *first = &s->part[0].column;
		int r = column_agrees(s->walk, c, &use, reterr);

		if (r < 0)
			return r;
		if (s->query.per_instance && c->set != first->set) {
			buf_addf(reterr, "%s and %s have different instances: ask for one after the other",
				first->name, c->name);
			return -EINVAL;
		}
	}
	return 0;
}

static int want_group(struct series *s, struct buf *reterr)
{
	int g;

	if (!s->query.group)
		return 0;
	g = groups_index(&s->walk->group, s->query.group, strlen(s->query.group));
	if (g >= 0)
		s->wanted_group = UINT64_C(1) << g;
	else
		buf_addf(reterr, "'%s' cannot be the name of a group", s->query.group);
	return MIN(g, 0);
}

static int parts_open(struct series *s, struct buf *reterr)
{
	int r = want_group(s, reterr);

	for (size_t i = 0; i < s->query.nr && r >= 0; i++)
		r = part_open(s, &s->part[s->nr], s->query.metric[i], reterr);
	s->query.metric = NULL; /* the caller's: not needed any more */
	return r < 0 ? r : parts_agree(s, reterr);
}

static int series_new(const struct series_query *q, struct series **ret, struct buf *reterr)
{
	struct series *s;

	if (!q->nr || q->nr > SERIES_MAX)
		return -EINVAL;
	if (q->group && !*q->group) {
		buf_adds(reterr, "'' cannot be the name of a group");
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->query = *q;
	s->from_ns = INT64_MIN;
	s->to_ns = INT64_MAX;
	s->part = calloc(q->nr, sizeof(*s->part));
	*ret = s;
	return s->part ? 0 : -ENOMEM;
}

int series_open_on(struct walk *walk, const struct series_query *q, struct series **ret, struct buf *reterr)
{
	struct series *s = NULL;
	int r = walk->schema ? series_new(q, &s, reterr) : -ENODATA;

	if (r >= 0) {
		s->walk = walk;
		s->shared = true;
		r = parts_open(s, reterr);
	}
	if (r < 0)
		series_close(s);
	else
		*ret = s;
	return r;
}

int series_open(const char *path, const struct series_query *q, struct series **ret, struct buf *reterr)
{
	struct series *s = NULL;
	int r = series_new(q, &s, reterr);

	if (r >= 0)
		r = walk_open(path, q->group, &s->walk);
	if (r == -ENOENT && q->group && access(path, F_OK) == 0)
		buf_addf(reterr, "there is no group '%s' in this recording", q->group);
	if (r >= 0 && !s->walk->schema) {
		buf_addf(reterr, "%s: %s", path, why_young);
		r = -ENODATA;
	}
	if (r >= 0)
		r = parts_open(s, reterr);
	if (r < 0) {
		if (!reterr->len)
			buf_addf(reterr, "%s: %s", path, strerror(-r));
		series_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void know_of(struct walk *walk, const char *const *metric, size_t nr, bool *known)
{
	for (size_t i = 0; i < nr; i++) {
		struct column column;
		struct buf why;

		buf_init(&why, 8192);
		known[i] = known[i] && walk->schema &&
			column_bind(&column, walk, metric[i], false, true, &why) >= 0;
		buf_release(&why);
	}
}

int series_known(const struct run *run, const char *const *metric, size_t nr, bool *ret, struct buf *reterr)
{
	for (size_t i = 0; i < nr; i++)
		ret[i] = true;
	for (size_t k = 0; k < run->nr; k++) {
		struct walk *walk = NULL;
		int r = walk_open(run->path[k], NULL, &walk);

		if (r < 0) {
			buf_addf(reterr, "%s: %s", run->path[k], strerror(-r));
			return r;
		}
		know_of(walk, metric, nr, ret);
		walk_close(walk);
	}
	return 0;
}

struct series *series_close(struct series *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->part && i < s->nr; i++) {
		rows_release(&s->part[i].rows);
		split_release(&s->part[i].split);
	}
	sums_release(&s->sums);
	free(s->part);
	if (!s->shared)
		walk_close(s->walk);
	free(s);
	return NULL;
}

bool series_complete(const struct series *s)
{
	return store_reader_complete(s->walk->reader);
}

size_t series_columns(const struct series *s, const struct series_column **ret)
{
	*ret = s->face;
	return s->nr;
}

const char *series_host(const struct series *s)
{
	return meta_text(&s->walk->meta, "host");
}

int64_t series_start(const struct series *s)
{
	return walk_start(s->walk);
}

struct walk *series_walk_of(struct series *s)
{
	return s->walk;
}
