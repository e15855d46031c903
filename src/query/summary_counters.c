/* The counters' part of a summary: events as they were counted, and what formulas make of them over the whole
 * recording. A rate is what was counted over the time of the recording, a ratio one of totals; so the same
 * formula serves a recording and the sum over nodes. */
#include "query/nodes.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/counters.h"
#include "query/derived.h"
#include "base/expr.h"
#include "query/formulas.h"
#include "query/phases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "perf.";

/* Below that share of the CPU time, people are told what is missing. */
#define ENOUGH_PERCENT 95.0

static struct figure known(double value)
{
	return isfinite(value) ? (struct figure){.value = value}
			       : (struct figure){.value = NAN, .why = "what was recorded makes no number"};
}

static struct figure unknown(const char *why)
{
	return (struct figure){.value = NAN, .why = why};
}

/* ---- the list ---- */

void counters_free(struct summary_counter *counter, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(counter[i].name);
		free(counter[i].expression);
	}
	free(counter);
}

static struct summary_counter *find(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_counters; i++)
		if (!strcmp(s->counter[i].name, name))
			return &s->counter[i];
	return NULL;
}

/* A new one, of this name and formula (NULL: an event); NULL when there is no memory. */
static struct summary_counter *add(struct summary *s, const char *name, const char *expression)
{
	struct summary_counter *c = ARRAY_ADD(s->counter, s->nr_counters);

	if (!c)
		return NULL;
	*c = (struct summary_counter){
		.name = strdup(name), .expression = expression ? strdup(expression) : NULL};
	return c->name && (c->expression || !expression) ? c : NULL;
}

/* The event behind a metric's name in a formula; NULL when it was not recorded. */
static const struct summary_counter *event_of(const struct summary *s, const char *metric)
{
	const struct summary_counter *c =
		str_starts(metric, prefix) ? find(s, metric + sizeof(prefix) - 1) : NULL;

	return c && !c->expression ? c : NULL;
}

/* ---- events ---- */

static void set_share(struct summary_counter *c, bool told)
{
	if (!told)
		c->running_share = unknown("not recorded");
	else if (!(c->enabled_s > 0))
		c->running_share = unknown("none of the counted processes ran");
	else
		c->running_share = known(MIN(1, c->running_s / c->enabled_s));
}

static int fill_event(struct summary *s, const struct ledger *a, const struct counter_event *event)
{
	const struct growth *enabled = &ledger_counters(a)->enabled;
	struct summary_counter *c = add(s, event->metric + sizeof(prefix) - 1, NULL);

	if (!c)
		return -ENOMEM;
	c->unit = event->unit;
	c->enabled_s = enabled->any ? enabled->grown : 0;
	c->running_s = event->running.any ? event->running.grown : 0;
	if (!event->count.any) {
		c->value = unknown(summary_keep(s, ledger_why(a, event->metric)));
		c->running_share = unknown(c->value.why);
		return 0;
	}
	set_share(c, enabled->any && event->running.any);
	if (!c->running_share.why && c->running_share.value == 0)
		c->value = unknown("it never had one of the processor's counters: ask for fewer events");
	else
		c->value = known(event->count.grown);
	return 0;
}

/* ---- formulas ---- */

/* Who did not ask for one of them did not ask for this. */
static bool is_made_of_events(const struct summary *s, const struct expr *e)
{
	for (unsigned i = 0; i < e->nr_names; i++)
		if (!event_of(s, e->name[i]))
			return false;
	return true;
}

/* What is known of what it is made of: its values, and the least share of time in which they were counted. */
static void operands(const struct summary *s, const struct expr *e, double *ret_value,
	struct figure *ret_share, const char **ret_why)
{
	*ret_share = unknown("not recorded");
	*ret_why = NULL;
	for (unsigned i = 0; i < e->nr_names; i++) {
		const struct summary_counter *c = event_of(s, e->name[i]);

		ret_value[i] = c && !c->value.why ? c->value.value : NAN;
		if (isnan(ret_value[i]) && !*ret_why)
			*ret_why = c ? c->value.why : "the metrics it is made of were not recorded";
		if (c && !c->value.why && !c->running_share.why &&
			(ret_share->why || c->running_share.value < ret_share->value))
			*ret_share = c->running_share;
	}
}

/* What stands in a rate() began at what it is of nothing. */
static void rates(const struct expr *e, const double *value, double wall_s, double *ret_rate)
{
	static const double nothing[EXPR_NAMES];
	double from[EXPR_RATES], to[EXPR_RATES];

	expr_arguments(e, nothing, from);
	expr_arguments(e, value, to);
	for (unsigned i = 0; i < e->nr_rates; i++)
		ret_rate[i] = wall_s > 0 ? (to[i] - (isfinite(from[i]) ? from[i] : 0)) / wall_s : NAN;
}

double counter_in_phase(const struct summary *s, const struct summary_counter *c, const struct phase *p)
{
	double value[EXPR_NAMES], rate[EXPR_RATES], result;
	char metric[EXPR_NAME_SIZE + sizeof(prefix)];
	struct expr e;
	const char *why;
	size_t at;

	if (!c->expression) {
		snprintf(metric, sizeof(metric), "%s%s", prefix, c->name);
		return phase_event(s->phases, p, metric);
	}
	if (expr_parse(&e, c->expression, &why, &at) < 0)
		return NAN;
	for (unsigned i = 0; i < e.nr_names; i++)
		value[i] = phase_event(s->phases, p, e.name[i]);
	rates(&e, value, p->value[PHASE_WALL], rate);
	result = expr_value(&e, value, rate);
	return isfinite(result) ? result : NAN;
}

/* Over the whole time of the summary. */
static void evaluate(const struct summary *s, struct summary_counter *c)
{
	double value[EXPR_NAMES], rate[EXPR_RATES], result, wall = s->figure[FIG_WALL].value;
	const char *why = NULL, *missing;
	struct expr e;
	size_t at;

	if (expr_parse(&e, c->expression, &why, &at) < 0) {
		c->value = c->running_share = unknown(why);
		return;
	}
	operands(s, &e, value, &c->running_share, &missing);
	rates(&e, value, wall, rate);
	result = expr_value(&e, value, rate);
	if (!isnan(result))
		c->value = known(result);
	else
		c->value = unknown(missing		    ? missing
				: e.nr_rates && !(wall > 0) ? "it took no time"
							    : "there was nothing to divide by");
	if (c->value.why)
		c->running_share = unknown(c->value.why);
}

static int fill_derived(struct summary *s, const struct derived *row)
{
	struct summary_counter *c = add(s, row->name + sizeof(prefix) - 1, row->expression);

	if (!c)
		return -ENOMEM;
	c->unit = row->unit;
	c->per_second = row->per_second;
	evaluate(s, c);
	return 0;
}

/* Of our own rows those that are about what was counted. */
static int fill_rows(struct summary *s, const struct formulas *own)
{
	int r = 0;

	for (size_t i = 0; i < nr_derived && r >= 0; i++) {
		const char *why;
		struct expr e;
		size_t at;

		if (!str_starts(derived[i].name, prefix) || formulas_find(own, derived[i].name))
			continue;
		if (expr_parse(&e, derived[i].expression, &why, &at) >= 0 && is_made_of_events(s, &e))
			r = fill_derived(s, &derived[i]);
	}
	return r;
}

static int fill_formulas(struct summary *s, const struct formulas *own)
{
	const char *bad = NULL, *why = NULL;
	size_t nr_bad = 0;
	int r = 0;

	for (size_t i = 0; i < own->nr && r >= 0; i++) {
		const struct formula *f = &own->item[i];

		nr_bad += f->why != NULL;
		bad = f->why && !bad ? f->row.name : bad;
		why = f->why && !why ? f->why : why;
		/* An event of the same name was counted: that holds. */
		if (!f->why && str_starts(f->row.name, prefix) && !find(s, f->row.name + sizeof(prefix) - 1))
			r = fill_derived(s, &f->row);
	}
	if (nr_bad)
		summary_note(s, "%zu formula%s of this recording cannot be used (%s: %s)", nr_bad,
			nr_bad == 1 ? "" : "s", bad, why);
	if (own->left_out)
		summary_note(s, "%zu formula%s of this recording left out: too many, or no names",
			own->left_out, own->left_out == 1 ? "" : "s");
	return r;
}

/* ---- the whole ---- */

static void set_counted(struct summary *s, double counted_s, double cpu_s, const char *why)
{
	if (why)
		figure_unset(s, FIG_COUNTED, why);
	else if (!(cpu_s > 0))
		figure_unset(s, FIG_COUNTED, "no CPU time was used");
	else
		figure_set(s, FIG_COUNTED, 100 * counted_s / cpu_s);
}

/* The most that any event was left out of the counters. */
static void note_turns(struct summary *s)
{
	const struct summary_counter *least = NULL;

	for (size_t i = 0; i < s->nr_counters; i++) {
		const struct summary_counter *c = &s->counter[i];

		if (!c->expression && !c->value.why && !c->running_share.why &&
			c->running_share.value < 0.995 &&
			(!least || c->running_share.value < least->running_share.value))
			least = c;
	}
	if (least)
		summary_note(s,
			"~ more events were counted than the processor has counters: they took turns and are "
			"scaled up (%s ran %.0f %% of the time)",
			least->name, 100 * least->running_share.value);
}

static void note_counters(struct summary *s)
{
	double percent = s->figure[FIG_COUNTED].value;

	if (has_figure(s, FIG_COUNTED) && percent > COUNTED_ALL_PERCENT)
		summary_note(s,
			"the counters' clock shows %.0f %% of the CPU time: it goes on while interrupts or "
			"the "
			"host of a virtual machine have the CPU, so a part that they missed would not show",
			percent);
	if (has_figure(s, FIG_COUNTED) && percent < ENOUGH_PERCENT)
		summary_note(s,
			"counters saw %.*f %% of the CPU time: of processes that live very shortly they miss "
			"a "
			"part",
			percent < 9.95 ? 1 : 0, percent);
	note_turns(s);
	if (s->counters_user_only)
		summary_note(s,
			"counters saw programs only, not what the kernel did for them: "
			"kernel.perf_event_paranoid allows no more");
}

int fill_counters(struct summary *s, const struct ledger *a)
{
	const struct counters *counters = ledger_counters(a);
	const struct summary_counter *clock;
	struct formulas own = {0};
	int r = formulas_read(&own, ledger_meta(a));

	for (size_t i = 0; i < counters->nr && r >= 0; i++)
		r = fill_event(s, a, &counters->event[i]);
	if (r >= 0)
		r = fill_rows(s, &own);
	if (r >= 0)
		r = fill_formulas(s, &own);
	formulas_release(&own);
	clock = find(s, "task_clock");
	set_counted(s, clock ? clock->value.value : 0, s->figure[FIG_CPU].value,
		!clock			   ? ledger_why(a, "perf.task_clock")
			: clock->value.why ? clock->value.why
					   : s->figure[FIG_CPU].why);
	s->counters_user_only = counters->user_only;
	if (counters->enabled.any && ledger_told(a, "perf.enabled"))
		summary_note(s, "counters are of a part of the job: %s", ledger_told(a, "perf.enabled"));
	if (s->nr_counters)
		note_counters(s);
	return r;
}

/* ---- several nodes ---- */

static int combine_event(struct summary *total, const struct summary_counter *from)
{
	struct summary_counter *c = find(total, from->name);

	if (!c) {
		c = add(total, from->name, NULL);
		if (!c)
			return -ENOMEM;
		c->unit = from->unit;
		c->value = from->value;
		c->running_share = from->running_share;
	} else if (!from->value.why) {
		c->value = known(from->value.value + (c->value.why ? 0 : c->value.value));
	}
	if (from->value.why)
		return 0;
	c->enabled_s += from->enabled_s;
	c->running_s += from->running_s;
	set_share(c, !from->running_share.why || !c->running_share.why);
	return 0;
}

/* The nodes say it in different ways (they are different processors): what is per second adds up. */
static void combine_different(struct summary *total, const struct parts *of, struct summary_counter *c)
{
	double sum = 0, wall = total->figure[FIG_WALL].value;
	size_t nr = 0;

	c->running_share = unknown("the nodes compute it in different ways");
	for (size_t i = 0; i < of->nr; i++) {
		const struct summary_counter *part = find(of->part[i], c->name);

		if (!part || part->value.why)
			continue;
		sum += part->value.value * of->part[i]->figure[FIG_WALL].value;
		nr++;
		if (!part->running_share.why &&
			(c->running_share.why || part->running_share.value < c->running_share.value))
			c->running_share = part->running_share;
	}
	c->value = nr && c->per_second && wall > 0 ? known(sum / wall)
						   : unknown("the nodes compute it in different ways");
	if (c->value.why)
		c->running_share = unknown(c->value.why);
}

static int combine_derived(struct summary *total, const struct parts *of, const struct summary_counter *from)
{
	struct summary_counter *c;
	bool same = true;

	if (find(total, from->name))
		return 0;
	for (size_t i = 0; i < of->nr; i++) {
		const struct summary_counter *part = find(of->part[i], from->name);

		same = same && (!part || (part->expression && !strcmp(part->expression, from->expression)));
	}
	c = add(total, from->name, from->expression);
	if (!c)
		return -ENOMEM;
	c->unit = from->unit;
	c->per_second = from->per_second;
	if (same)
		evaluate(total, c);
	else
		combine_different(total, of, c);
	return 0;
}

static void combine_counted(struct summary *total, const struct parts *of)
{
	double counted = 0, cpu = 0;
	const char *why = of->nr ? of->part[0]->figure[FIG_COUNTED].why : NULL;

	for (size_t i = 0; i < of->nr; i++) {
		const struct summary *part = of->part[i];

		if (!has_figure(part, FIG_COUNTED))
			continue;
		why = NULL;
		cpu += part->figure[FIG_CPU].value;
		counted += part->figure[FIG_CPU].value * part->figure[FIG_COUNTED].value / 100;
	}
	set_counted(total, counted, cpu, why);
}

int combine_counters(struct summary *total, const struct parts *of)
{
	size_t nr = 0;
	int r = 0;

	for (unsigned derived_ones = 0; derived_ones < 2; derived_ones++)
		for (size_t i = 0; i < of->nr; i++)
			for (size_t k = 0; k < of->part[i]->nr_counters && r >= 0; k++) {
				const struct summary_counter *c = &of->part[i]->counter[k];

				if (derived_ones == (c->expression != NULL))
					r = c->expression ? combine_derived(total, of, c)
							  : combine_event(total, c);
			}
	for (size_t i = 0; i < of->nr; i++) {
		nr += of->part[i]->nr_counters > 0;
		total->counters_user_only |= of->part[i]->counters_user_only;
	}
	combine_counted(total, of);
	if (nr && nr < of->nr)
		summary_note(total, "counters are those of %zu of %zu recordings", nr, of->nr);
	if (nr)
		note_counters(total);
	return r;
}

/* ---- the job's own numbers ---- */

static int add_told(struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_told; i++)
		if (!strcmp(s->told[i], name))
			return 0;
	return texts_take(&s->told, &s->nr_told, strdup(name));
}

int fill_told(struct summary *s, const struct ledger *a)
{
	const struct schema *schema = ledger_schema(a);
	int r = 0;

	for (uint32_t i = 0; schema && i < schema->nr_sets; i++)
		for (uint32_t k = 0;
			r >= 0 && schema->set[i].domain == DOMAIN_APP && k < schema->set[i].nr_metrics; k++)
			r = add_told(s, schema->set[i].metric[k].name);
	return r;
}

int combine_told(struct summary *total, const struct parts *of)
{
	int r = 0;

	for (size_t i = 0; i < of->nr; i++)
		for (size_t k = 0; k < of->part[i]->nr_told && r >= 0; k++)
			r = add_told(total, of->part[i]->told[k]);
	return r;
}
