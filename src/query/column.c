/* Finding the metric that was asked for, and saying what is wrong with the question. */
#include "query/column.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In a sum over many each is read at its own time. */
#define SLOW_WINDOW_NS (SLOW_PERIOD_NS * 9 / 10)

static const char own_prefix[] = "app.";

void metric_own(const char *name, struct buf *own)
{
	if (str_starts(name, own_prefix))
		buf_addf(own, "%s%s", own->len ? ", " : "", name);
}

void metric_unknown(const struct nearest *n, const struct buf *own, struct buf *reterr)
{
	size_t len = sizeof(own_prefix) - 2;

	buf_addf(reterr, "there is no metric '%s' in this recording", n->word);
	nearest_ask(n, reterr);
	if (strncmp(n->word, own_prefix, len) != 0 || (n->word[len] && n->word[len] != '.'))
		buf_adds(reterr, " ('tacho metrics' lists them)");
	else if (own->len)
		buf_addf(reterr, " (the job's numbers: %s)", (const char *)own->data);
	else
		buf_adds(reterr, " (the job told no numbers)");
}

static void say_unknown(const struct walk *s, const char *name, bool typed, struct buf *reterr)
{
	struct nearest n = nearest_slip(name);
	struct buf own;

	buf_init(&own, 8192);
	for (uint32_t i = 0; typed && i < s->schema->nr_sets; i++)
		for (uint32_t j = 0; j < s->schema->set[i].nr_metrics; j++) {
			nearest_try(&n, s->schema->set[i].metric[j].name);
			metric_own(s->schema->set[i].metric[j].name, &own);
		}
	for (size_t i = 0; typed && i < s->formulas.nr; i++)
		nearest_try(&n, s->formulas.item[i].row.name);
	for (size_t i = 0; typed && i < nr_derived; i++)
		nearest_try(&n, derived[i].name);
	metric_unknown(&n, &own, reterr);
	buf_release(&own);
}

/* The control group that was made for the command of `run` is not the whole where others are watched beside
 * it: then it has a name of its own. */
static bool find_name(
	const struct schema *schema, const char *name, bool others, uint32_t *set, uint32_t *col)
{
	if (!strcmp(name, COMMAND_CPU))
		return others && schema_find(schema, "tree.cgroup.cpu", set, col);
	return !(others && str_starts(name, "tree.cgroup.")) && schema_find(schema, name, set, col);
}

static int bind_names(struct column *c, const struct schema *schema, bool others)
{
	unsigned found = 0;
	bool quick = false;
	uint32_t set, col;

	c->threads = (struct column_name){.set = -1, .fold = FOLD_SUM};
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		struct column_name *arg = &c->arg[i];

		arg->set = arg->col = -1;
		if (!find_name(schema, c->expr.name[i], others, &set, &col))
			continue;
		const struct schema_metric *m = &schema->set[set].metric[col];

		arg->set = (int)set;
		arg->col = (int)col;
		arg->scaling = metric_scaling(m);
		arg->fold = m->fold;
		arg->counter = m->kind == KIND_COUNTER && m->fold != FOLD_MEAN && m->fold != FOLD_MAX;
		arg->of_children = strstr(c->expr.name[i], ".children_") != NULL;
		quick |= m->tier == TIER_TICK;
		if (m->tier != TIER_TICK && m->kind == KIND_COUNTER) /* a level has no rate to wait for */
			c->window_ns = SLOW_WINDOW_NS;
		if (c->at == AT_INSTANCE && found && c->set != set)
			return -EINVAL;
		c->time_set = found && c->time_set != (int)set ? -1 : (int)set;
		c->set = set;
		c->cols |= UINT64_C(1) << col;
		found++;
	}
	if (c->cores && schema_find(schema, "proc.threads", &set, &col) &&
		(c->at == AT_FOLD || set == c->set)) {
		c->threads.set = (int)set;
		c->threads.col = (int)col;
		c->threads.scaling = scaling_of(schema->set[set].metric[col].scale);
	}
	c->slow = c->window_ns && c->at == AT_INSTANCE && !quick;
	return found ? 0 : -ENOENT;
}

/* The recording's own formula comes before ours: it was made for the machine of the recording. */
static const struct derived *derived_of(const struct walk *s, const char *name, const char **ret_why)
{
	const struct formula *own = formulas_find(&s->formulas, name);

	*ret_why = own ? own->why : NULL;
	return own ? &own->row : derived_find(name);
}

static void take_recorded(struct column *c, const struct schema_metric *m, bool rate)
{
	*c = (struct column){.name = m->name,
		.help = m->help,
		.panel = m->panel,
		.unit = m->unit,
		.kind = m->kind,
		.fold = m->fold,
		.at = AT_INSTANCE,
		.per_second = rate && m->kind == KIND_COUNTER};
}

static void take_derived(struct column *c, const struct derived *d)
{
	*c = (struct column){.name = d->name,
		.help = d->help,
		.panel = d->panel,
		.unit = d->unit,
		.kind = d->kind,
		.fold = d->fold,
		.at = d->at,
		.per_second = d->per_second,
		.cumulative = d->at == AT_FOLD && d->kind == KIND_COUNTER,
		.cores = d->unit == UNIT_COUNT && d->panel && !strcmp(d->panel, "cpu")};
}

int column_bind(
	struct column *c, const struct walk *s, const char *metric, bool rate, bool typed, struct buf *reterr)
{
	const char *formula_why;
	const struct derived *d = derived_of(s, metric, &formula_why);
	const char *why = "", *text = metric;
	char grown[EXPR_NAME_SIZE + 8];
	uint32_t set, col;
	size_t at;
	int r;

	if (schema_find(s->schema, metric, &set, &col)) {
		take_recorded(c, &s->schema->set[set].metric[col], rate);
		if (c->per_second) {
			snprintf(grown, sizeof(grown), "rate(%s)", metric);
			text = grown;
		}
	} else if (formula_why) {
		buf_addf(reterr, "%s is not available from this recording: its formula cannot be used: %s",
			metric, formula_why);
		return -EINVAL;
	} else if (d) {
		take_derived(c, d);
		text = d->expression;
	} else {
		say_unknown(s, metric, typed, reterr);
		if (meta_find(&s->meta, "unread"))
			buf_adds(reterr, "; the job ended before the node's metrics were read");
		return -ENOENT;
	}
	r = expr_parse(&c->expr, text, &why, &at);
	c->plain = c->expr.nr_steps == 3 && c->expr.nr_rates == 1 && c->expr.nr_names == 1; /* rate( NAME ) */
	if (r >= 0)
		r = bind_names(c, s->schema, c->at == AT_FOLD && s->has_groups);
	if (r < 0)
		buf_addf(reterr, "%s is not available from this recording: %s", metric,
			*why ? why
				: meta_find(&s->meta, "unread")
				? why_unread
				: "the metrics in its formula were not recorded");
	/* Right after a late tick what passes from process to process within one weighs too much. */
	if (c->at == AT_FOLD)
		c->window_ns = MAX(c->window_ns, s->sliver_ns);
	return r;
}

int column_try(struct column *c, const struct walk *s, const char *metric, bool rate)
{
	struct buf ignored;
	int r;

	buf_init(&ignored, 1024);
	r = column_bind(c, s, metric, rate, false, &ignored);
	buf_release(&ignored);
	return r;
}

bool column_is_of_now(const struct column *c, const struct walk *s)
{
	bool amounts = false;

	for (unsigned i = 0; i < c->expr.nr_names; i++)
		amounts |= c->arg[i].set >= 0 && c->arg[i].counter && c->at == AT_FOLD;
	return !c->slow && !c->cumulative && c->window_ns <= s->sliver_ns && !(amounts && !c->expr.nr_rates);
}

/* All that it is made of is recorded of processes or of groups; and some of it of groups. */
static bool is_of_groups(const struct walk *s, const struct column *c, bool *ret_some)
{
	bool all = true;

	*ret_some = false;
	for (unsigned i = 0; i < c->expr.nr_names; i++) {
		bool group = walk_is_of(s, c->arg[i].set, DOMAIN_GROUP);

		*ret_some |= group;
		all = all && (group || c->arg[i].set < 0 || walk_is_of_processes(s, c->arg[i].set));
	}
	return all;
}

int column_agrees(
	const struct walk *s, const struct column *c, const struct column_use *use, struct buf *reterr)
{
	bool process = c->at == AT_INSTANCE && walk_is_of_processes(s, (int)c->set), group;
	bool of_groups = is_of_groups(s, c, &group), in_group = use->group || use->per == PER_GROUP;

	if ((use->one || use->per == PER_PROCESS) && !process)
		buf_addf(reterr, "%s is not a metric of single processes", c->name);
	else if (use->per == PER_USER && (!of_groups || group))
		buf_addf(reterr, "%s is not known by user", c->name);
	else if (in_group && !of_groups)
		buf_addf(reterr, "%s is not known by group of processes", c->name);
	else if (!in_group && group && c->at == AT_FOLD)
		buf_addf(reterr, "%s belongs to one group: choose it with --group", c->name);
	else if (use->per != PER_EACH && use->per != PER_PROCESS && c->at == AT_INSTANCE &&
		c->fold == FOLD_NONE && !use->one && !(group && in_group))
		buf_addf(reterr, "%s cannot be added up: choose one %s, or --per instance", c->name,
			group ? "group" : "process");
	else if (use->per == PER_EACH && c->at == AT_FOLD)
		buf_addf(reterr, "%s is of the whole tree: it has no instances", c->name);
	else
		return 0;
	return -EINVAL;
}
