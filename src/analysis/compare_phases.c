/* Phases of the job, matched by name: what was used and held in each, as the summaries of the runs have it.
 *
 * "epoch" of twelve epochs is compared with "epoch" of ten, and with "epoch 1" of a run that has one. */
#include "analysis/compare.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 200
/* Beside the values: how often, and how long each took. */
enum { PHASE_COUNT = NR_PHASE_VALUES, PHASE_EACH, NR_COMPARED };

struct phase_names {
	struct {
		const char *name, *key;
		bool many; /* it has several repetitions in some run */
	} of[NAMES_MAX];
	size_t nr;
	bool full;					  /* there were more */
	const struct summary_counter *counter[NAMES_MAX]; /* of the processor, in any run */
	size_t nr_counters;
};

/* NAMES_MAX: there is no room for it. */
static size_t name_index(struct phase_names *n, const struct phase *p)
{
	size_t i = 0;

	while (i < n->nr && strcmp(n->of[i].name, p->name) != 0)
		i++;
	for (size_t k = 0; i == n->nr && k < n->nr; k++)
		if (!strcmp(n->of[k].key, p->key) && (n->of[k].many || p->count > 1))
			i = k;
	if (i == NAMES_MAX) {
		n->full = true;
		return i;
	}
	if (i == n->nr || (!n->of[i].many && p->count > 1)) {
		n->of[i].name = p->name;
		n->of[i].key = p->key;
		n->of[i].many = p->count > 1;
	}
	n->nr = MAX(n->nr, i + 1);
	return i;
}

/* How long each took is told of several. */
static bool matters(unsigned value, bool many)
{
	static const enum phase_value first[] = {PHASE_WALL, PHASE_CPU, PHASE_MEMORY, PHASE_READ_CHARS,
		PHASE_WRITE_CHARS, PHASE_GPU_UTIL, PHASE_ENERGY};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		if (value == first[i])
			return true;
	return value == PHASE_COUNT || (value == PHASE_EACH && many);
}

/* What is compared of each: values, then what was counted. */
static size_t nr_columns(const struct phase_names *n)
{
	return NR_COMPARED + n->nr_counters;
}

static void add_counters(struct phase_names *n, const struct summary *s)
{
	for (size_t i = 0; i < s->nr_counters && s->phases; i++) {
		size_t k = 0;

		while (k < n->nr_counters && strcmp(n->counter[k]->name, s->counter[i].name) != 0)
			k++;
		if (k == n->nr_counters && k < NAMES_MAX)
			n->counter[n->nr_counters++] = &s->counter[i];
	}
}

static const char *value_name(size_t value)
{
	return value == PHASE_COUNT   ? "repetitions"
		: value == PHASE_EACH ? "each_s"
				      : phase_column[value].name;
}

static double value_of(const struct phase *p, unsigned value)
{
	if (value == PHASE_COUNT)
		return p->count;
	if (value == PHASE_EACH)
		return p->count > 1 ? p->mean_s : p->value[PHASE_WALL];
	return p->value[value];
}

static double counted(const struct summary *s, const struct phase *p, const char *name)
{
	for (size_t i = 0; i < s->nr_counters; i++)
		if (!strcmp(s->counter[i].name, name))
			return counter_in_phase(s, &s->counter[i], p);
	return NAN;
}

static void add_phase(const struct phase_names *n, struct compare_figure *figure, size_t set,
	const struct summary *s, const struct phase *p)
{
	for (unsigned v = 0; v < NR_COMPARED; v++) {
		compare_values_add(&figure[v].of[set], value_of(p, v));
		figure[v].of[set].guess |= v < NR_PHASE_VALUES && phase_is_guess(p, v);
	}
	for (size_t i = 0; i < n->nr_counters; i++) {
		struct compare_values *of = &figure[NR_COMPARED + i].of[set];
		double value = counted(s, p, n->counter[i]->name);

		compare_values_add(of, value);
		of->guess |= p->interpolated && value > 0;
	}
}

static int make_figures(struct comparison *c, const struct phase_names *n)
{
	char name[6000];

	c->phase = calloc(n->nr * nr_columns(n), sizeof(*c->phase));
	if (!c->phase)
		return -ENOMEM;
	for (size_t i = 0; i < n->nr * nr_columns(n); i++) {
		struct compare_figure *f = &c->phase[i];
		size_t of = i / nr_columns(n), value = i % nr_columns(n);
		const struct summary_counter *counter =
			value < NR_COMPARED ? NULL : n->counter[value - NR_COMPARED];

		snprintf(name, sizeof(name), "phases.%s.%s%s", n->of[of].name, counter ? "perf." : "",
			counter ? counter->name : value_name(value));
		f->name = strdup(name);
		f->of = calloc(c->nr_sets, sizeof(*f->of));
		c->nr_phase_figures++;
		if (!f->name || !f->of)
			return -ENOMEM;
		f->unit = counter ? (struct compare_unit){counter->unit, counter->per_second, false}
				  : compare_unit_of(f->name);
		f->phase = n->of[of].name;
		f->matters = matters((unsigned)value, n->of[of].many);
	}
	return 0;
}

/* What no run knows is left out. */
static void drop_unknown(struct comparison *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->nr_phase_figures; i++) {
		struct compare_figure *f = &c->phase[i];
		bool any = false;

		for (size_t k = 0; k < c->nr_sets; k++)
			any |= f->of[k].nr > 0;
		if (any) {
			c->phase[kept++] = *f;
			continue;
		}
		free(f->name);
		free(f->of);
	}
	c->nr_phase_figures = kept;
}

static const struct summary *summary_at(const struct comparison *c, size_t operand)
{
	const struct compare_set *set = &c->set[c->operand[operand].set];

	return set->run[operand - set->first];
}

static const struct phases *phases_of(const struct comparison *c, size_t operand)
{
	static const struct phases none;
	const struct phases *p = summary_at(c, operand)->phases;

	return p ? p : &none;
}

int compare_phases(struct comparison *c)
{
	struct phase_names n = {.nr = 0};
	int r = 0;

	for (size_t i = 0; i < c->nr_operands; i++) {
		add_counters(&n, summary_at(c, i));
		for (size_t k = 0; k < phases_of(c, i)->nr; k++)
			name_index(&n, &phases_of(c, i)->phase[k]);
	}
	if (n.nr)
		r = make_figures(c, &n);
	for (size_t i = 0; r >= 0 && i < c->nr_operands; i++)
		for (size_t k = 0; k < phases_of(c, i)->nr; k++) {
			const struct phase *p = &phases_of(c, i)->phase[k];
			size_t at = name_index(&n, p);

			if (at < NAMES_MAX)
				add_phase(&n, &c->phase[at * nr_columns(&n)], c->operand[i].set,
					summary_at(c, i), p);
		}
	if (r < 0)
		return r;
	drop_unknown(c);
	return n.full ? compare_warn(c, "only the first %d phases are compared", NAMES_MAX) : 0;
}
