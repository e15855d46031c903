/* Opening series: finding the metrics that were asked for, and saying what is wrong with the question. */
#include "query/series_internal.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define SLOW_WINDOW_NS (INT64_C(9) * NSEC_PER_SEC / 2)

struct nearest {
	const char *name, *best;
	unsigned least;
};

static void nearest_try(struct nearest *n, const char *other)
{
	unsigned d = str_distance(n->name, other);

	if (d < n->least) {
		n->least = d;
		n->best = other;
	}
}

static void suggest(const struct series *s, const char *name, struct buf *reterr)
{
	const struct schema *schema = store_reader_schema(s->reader);
	struct nearest n = {.name = name, .least = (unsigned)strlen(name) / 2 + 1};

	for (uint32_t i = 0; i < schema->nr_sets; i++)
		for (uint32_t j = 0; j < schema->set[i].nr_metrics; j++)
			nearest_try(&n, schema->set[i].metric[j].name);
	for (size_t i = 0; i < s->formulas.nr; i++)
		nearest_try(&n, s->formulas.item[i].row.name);
	for (size_t i = 0; i < nr_derived; i++)
		nearest_try(&n, derived[i].name);
	buf_addf(reterr, "there is no metric '%s' in this recording", name);
	if (n.best)
		buf_addf(reterr, "; did you mean '%s'?", n.best);
	buf_adds(reterr, " ('tacho metrics' lists them)");
}

/* The control group that was made for the command of `run` is not the whole where others are watched beside
 * it.
 */
static bool is_of_command(const char *metric)
{
	return str_starts(metric, "tree.cgroup.");
}

static int column_bind_names(struct series_part *c, const struct schema *schema, bool others)
{
	unsigned found = 0;

	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		uint32_t set, col;

		c->name[i].set = c->name[i].col = -1;
		if (!schema_find(schema, c->expr.name[i], &set, &col) ||
			(others && is_of_command(c->expr.name[i])))
			continue;
		const struct schema_metric *m = &schema->set[set].metric[col];

		c->name[i].set = (int)set;
		c->name[i].col = (int)col;
		c->name[i].scale = m->scale;
		c->name[i].fold = m->fold;
		c->name[i].counter = m->kind == KIND_COUNTER && m->fold != FOLD_MEAN && m->fold != FOLD_MAX;
		c->name[i].of_children = strstr(c->expr.name[i], ".children_") != NULL;
		if (m->tier != TIER_TICK && m->kind == KIND_COUNTER) /* a level has no rate to wait for */
			c->window_ns = SLOW_WINDOW_NS;
		if (c->at == AT_INSTANCE && found && c->set != set)
			return -EINVAL;
		c->set = set;
		found++;
	}
	return found ? 0 : -ENOENT;
}

/* The recording's own formula comes before ours: it was made for the machine that it tells of. */
static const struct derived *derived_of(const struct series *s, const char *name, const char **ret_why)
{
	const struct formula *own = formulas_find(&s->formulas, name);

	*ret_why = own ? own->why : NULL;
	return own ? &own->row : derived_find(name);
}

static int column_init(struct series *s, struct series_part *c, const char *name, struct buf *reterr)
{
	const struct schema *schema = store_reader_schema(s->reader);
	const char *formula_why;
	const struct derived *d = derived_of(s, name, &formula_why);
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
	} else if (formula_why) {
		buf_addf(reterr, "%s cannot be had from this recording, its formula is of no use: %s", name,
			formula_why);
		return -EINVAL;
	} else if (d) {
		c->face = (struct series_column){
			.name = d->name, .help = d->help, .unit = d->unit, .per_second = d->per_second};
		c->at = d->at;
		c->fold = d->fold;
		c->cumulative = d->at == AT_FOLD && d->kind == KIND_COUNTER;
		c->reached = NAN;
		text = d->expression;
	} else {
		suggest(s, name, reterr);
		return -ENOENT;
	}
	r = expr_parse(&c->expr, text, &why, &at);
	if (r >= 0)
		r = column_bind_names(c, schema, c->at == AT_FOLD && meta_find(&s->meta, "groups"));
	if (r < 0)
		buf_addf(reterr, "%s cannot be had from this recording: %s", name,
			*why ? why : "the metrics it is made of were not recorded");
	return r;
}

bool series_is_of(const struct series *s, int set, enum domain domain)
{
	return set >= 0 && store_reader_schema(s->reader)->set[set].domain == domain;
}

/* Its instances are processes, or processes on GPUs: each has a PID, and is in the groups of its process. */
static bool is_of_processes(const struct series *s, int set)
{
	return series_is_of(s, set, DOMAIN_PROCESS) || series_is_of(s, set, DOMAIN_GPU_PROCESS);
}

/* All that it is made of is told of processes and of groups; and some of it of groups. */
static bool is_of_groups(const struct series *s, const struct series_part *c, bool *ret_some)
{
	bool all = true;

	*ret_some = false;
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		bool group = series_is_of(s, c->name[i].set, DOMAIN_GROUP);

		*ret_some |= group;
		all = all && (group || c->name[i].set < 0 || is_of_processes(s, c->name[i].set));
	}
	return all;
}

static int column_agrees(const struct series *s, const struct series_part *c, struct buf *reterr)
{
	bool process = c->at == AT_INSTANCE && is_of_processes(s, (int)c->set), group;
	bool of_groups = is_of_groups(s, c, &group);

	if (s->query.pid && !process)
		buf_addf(reterr, "%s is not a metric of single processes", c->face.name);
	else if (s->query.group && !of_groups)
		buf_addf(reterr, "%s is not told of groups of processes", c->face.name);
	else if (!s->query.group && group && c->at == AT_FOLD)
		buf_addf(reterr, "%s is of one group: say which with --group", c->face.name);
	else if (!s->query.per_instance && c->at == AT_INSTANCE && c->fold == FOLD_NONE && !s->query.pid &&
		!(group && s->query.group))
		buf_addf(reterr, "%s cannot be added up: ask for one %s or for each instance", c->face.name,
			group ? "group" : "process");
	else if (s->query.per_instance && c->at == AT_FOLD)
		buf_addf(reterr, "%s is of the whole tree: it has no instances", c->face.name);
	else if (s->query.per_instance && c->set != s->column[0].set)
		buf_addf(reterr, "%s and %s have different instances: ask for one after the other",
			s->column[0].face.name, c->face.name);
	else
		return 0;
	return -EINVAL;
}

static int columns_agree(const struct series *s, struct buf *reterr)
{
	int r = 0;

	for (size_t i = 0; i < s->nr && r >= 0; i++)
		r = column_agrees(s, &s->column[i], reterr);
	return r;
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
	s->process_set = schema_find_domain(schema, DOMAIN_PROCESS);
	s->gpu_process_set = schema_find_domain(schema, DOMAIN_GPU_PROCESS);
	r = formulas_read(&s->formulas, &s->meta);
	for (; s->nr < s->query.nr && r >= 0; s->nr++) {
		r = column_init(s, &s->column[s->nr], s->wanted[s->nr], reterr);
		s->face[s->nr] = s->column[s->nr].face;
	}
	return r < 0 ? r : columns_agree(s, reterr);
}

/* Metadata may stand behind the schema, and is wanted before the first point. A group may be found only in
 * the course of the recording: it is looked for to the end. */
static int read_ahead(struct series *s, const char *path)
{
	struct store_reader *reader = NULL;
	struct store_record record;
	bool ticked = false, found = !s->query.group;
	int r = store_open(path, &reader);

	if (r < 0)
		return r;
	while ((!ticked || !found) && (r = store_next(reader, &record)) > 0) {
		const struct pair *groups = record.pairs ? pairs_find(record.pairs, "groups") : NULL;

		ticked |= record.type == STORE_TICK;
		found |= (record.type == STORE_META || record.type == STORE_INSTANCE) && s->query.group &&
			groups_hold(groups, s->query.group);
		if (record.type == STORE_META && meta_merge(&s->meta, record.pairs) == -ENOMEM) {
			r = -ENOMEM;
			break;
		}
	}
	store_close(reader);
	return r < 0 ? r : found ? 0 : -ENOENT;
}

static int want_group(struct series *s, struct buf *reterr)
{
	int g;

	if (!s->query.group)
		return 0;
	g = groups_index(&s->group, s->query.group, strlen(s->query.group));
	if (g >= 0)
		s->wanted_group = UINT64_C(1) << g;
	else
		buf_addf(reterr, "'%s' cannot be the name of a group", s->query.group);
	return MIN(g, 0);
}

static int copy_query(struct series *s, const struct series_query *q)
{
	s->query = *q;
	s->wanted = calloc(q->nr, sizeof(*s->wanted));
	if (!s->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < q->nr; i++) {
		s->wanted[i] = strdup(q->metric[i]);
		if (!s->wanted[i])
			return -ENOMEM;
	}
	return 0;
}

int series_open(const char *path, const struct series_query *q, struct series **ret, struct buf *reterr)
{
	struct series *s = calloc(1, sizeof(*s));
	struct store_record record;
	int r = s ? store_open(path, &s->reader) : -ENOMEM;

	if (s)
		s->process_set = s->gpu_process_set = -1;
	if (r >= 0 && (!q->nr || q->nr > SERIES_MAX))
		r = -EINVAL;
	if (r >= 0)
		r = copy_query(s, q);
	if (r >= 0)
		r = want_group(s, reterr);
	if (r >= 0) {
		r = read_ahead(s, path);
		if (r == -ENOENT)
			buf_addf(reterr, "there is no group '%s' in this recording", q->group);
	}
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
		for (unsigned j = 0; j < EXPR_NAMES; j++)
			steady_release(&s->column[i].name[j].steady);
	}
	groups_release(&s->group);
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
	formulas_release(&s->formulas);
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
