/* Rows that the options make: the events of -e and those of the groups that words of -m name (perf/groups.h),
 * with the groups' formulas.
 *
 * An event that is not understood is an error before the job starts. One that this processor does not have is
 * no error: its row is empty and has a reason, so that a job script runs on every kind of node. */
#include "collect/perf.h"

#include "perf/groups.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const perf_words[] = {
	"flops", "flops_sp", "flops_dp", "l2", "l3", "FLOPS_SP", "FLOPS_DP", "L2", "L3", "MEM", NULL};

/* What a group is for: the name of its row where it cannot be counted. */
static const struct {
	const char *group, *number;
	enum metric_unit unit;
} purpose[] = {
	{"FLOPS_SP", "flops_sp", UNIT_FLOP},
	{"FLOPS_DP", "flops_dp", UNIT_FLOP},
	{"L2", "l2_bandwidth", UNIT_BYTES},
	{"L3", "l3_bandwidth", UNIT_BYTES},
};

/* Units of the kernel's scaled events, as we have them. */
static const struct {
	const char *name;
	enum metric_unit unit;
	enum metric_scale scale;
	double factor;
} unit_of[] = {
	{"ns", UNIT_SECONDS, SCALE_NS, 1},
	{"MiB", UNIT_BYTES, SCALE_ONE, 1 << 20},
	{"Joules", UNIT_JOULES, SCALE_MICRO, 1e6},
};

struct planning {
	struct env *env;
	struct plan *plan;
	struct perf_plan *own;
	struct event_file file;
	int file_error; /* 1: not looked for yet */
	char no_file[400];
	struct perf_event found[PERF_BOXES];
	char *err;
	size_t err_size;
};

static void free_plan(void *memory)
{
	struct perf_plan *own = memory;

	if (!own)
		return;
	for (unsigned i = 0; i < own->nr; i++)
		free(own->planned[i].event);
	for (size_t i = 0; i < own->nr_formulas; i++)
		free(own->text[i]);
	free(own->text);
	free(own->formula);
	free(own);
}

/* ---- rows ---- */

static int find_static(const char *name)
{
	for (int i = 0; i < PERF_STATIC; i++)
		if (!strcmp(perf_static_event[i], name))
			return i;
	return -ENOENT;
}

static struct planned *find_planned(struct perf_plan *own, const char *name)
{
	for (unsigned i = 0; i < own->nr; i++)
		if (!strcmp(own->planned[i].name + strlen("perf."), name))
			return &own->planned[i];
	return NULL;
}

static bool are_equal(const struct perf_event *a, unsigned nr_a, const struct perf_event *b, unsigned nr_b)
{
	for (unsigned i = 0; nr_a == nr_b && i < nr_a; i++)
		if (a[i].type != b[i].type || a[i].config != b[i].config || a[i].config1 != b[i].config1 ||
			a[i].config2 != b[i].config2 || a[i].exclude_user != b[i].exclude_user ||
			a[i].exclude_kernel != b[i].exclude_kernel)
			return false;
	return nr_a == nr_b;
}

static struct metric *add_metric(struct perf_plan *own, const char *name, const char *help)
{
	struct metric *m = &own->metric[own->nr_metrics++];

	*m = (struct metric){.name = name,
		.help = help,
		.scale = SCALE_ONE,
		.kind = KIND_COUNTER,
		.fold = FOLD_SUM,
		.unit = UNIT_COUNT,
		.tier = TIER_TICK,
		.on_request = true};
	return m;
}

/* A row for what `found` counts together, or for nothing. */
static int add_row(struct planning *p, const char *name, unsigned nr, struct planned **ret)
{
	struct perf_plan *own = p->own;
	struct planned *row = &own->planned[own->nr];
	struct metric *m;

	if (own->nr == PERF_PLANNED) {
		snprintf(p->err, p->err_size, "at most %d events can be counted at once beside those of perf",
			PERF_PLANNED);
		return -EINVAL;
	}
	*row = (struct planned){
		.nr = nr, .factor = 1, .running = -1, .of_package = nr && p->found[0].of_package};
	row->event = nr ? calloc(nr, sizeof(*row->event)) : NULL;
	if (nr && !row->event)
		return -ENOMEM;
	if (nr)
		memcpy(row->event, p->found, nr * sizeof(*row->event));
	own->nr++;
	snprintf(row->name, sizeof(row->name), "perf.%.48s", name);
	row->value = (int)own->nr_metrics;
	m = add_metric(own, row->name, row->help);
	for (size_t i = 0; nr && i < ARRAY_SIZE(unit_of); i++)
		if (!strcmp(p->found[0].unit, unit_of[i].name)) {
			m->unit = unit_of[i].unit;
			m->scale = unit_of[i].scale;
			row->factor = unit_of[i].factor * p->found[0].scale;
		}
	*ret = row;
	if (!nr)
		return 0;
	m->panel = "perf.events";
	snprintf(row->running_name, sizeof(row->running_name), "perf.%.48s.running", name);
	row->running = (int)own->nr_metrics;
	m = add_metric(own, row->running_name, "Time for which the event before it was on a counter.");
	m->scale = SCALE_NS;
	m->unit = UNIT_SECONDS;
	return 0;
}

static void describe(struct planned *row, const char *what, const char *caution)
{
	size_t n = strlen(caution);

	snprintf(row->help, sizeof(row->help), "%s%s%s%.200s%s", what,
		row->of_package ? ", of the whole node and not of the job alone" : "", n ? ": " : "", caution,
		n && caution[n - 1] == '.' ? "" : ".");
}

/* ---- events of -e ---- */

/* What a static row counts already. */
static int choose_static(struct planning *p, int nr, unsigned nr_found, const char *text)
{
	struct perf_event own[8];
	const char *name = perf_static_event[nr];
	int n = perf_event_boxes(p->env, name, strlen(name), own, ARRAY_SIZE(own), p->err, p->err_size);

	if (n >= 0 && are_equal(own, (unsigned)n, p->found, nr_found)) {
		p->plan->chosen[PERF_FIRST + 2 * nr] = true;
		return 0;
	}
	snprintf(p->err, p->err_size,
		"perf.%s is another event than '%.100s'; give it another name: NAME=EVENT", name, text);
	return -EINVAL;
}

/* Another event has the name: an error unless it is the same event. */
static int refuse_twins(struct planning *p, const struct planned *row, bool same, const char *text)
{
	if (same)
		return 0;
	snprintf(p->err, p->err_size, "two events would be called %s: name them, as in NAME=%.100s",
		row->name, text);
	return -EINVAL;
}

/* An event that this machine cannot count, for the reason in p->err: no error. */
static int plan_lacking(struct planning *p, const char *text)
{
	const char *name = p->found[0].name;
	struct planned *row = find_planned(p->own, name);
	char what[300];
	int r = find_static(name);

	if (r >= 0)
		return choose_static(p, r, 0, text);
	if (row)
		return refuse_twins(p, row, row->nr == 0, text);
	r = add_row(p, name, 0, &row);
	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "Event %.256s", text);
	describe(row, what, "");
	snprintf(row->reason, sizeof(row->reason), "%s", p->err);
	p->err[0] = 0;
	return 0;
}

static int plan_event(struct planning *p, const char *text)
{
	int nr = perf_event_boxes(p->env, text, strlen(text), p->found, PERF_BOXES, p->err, p->err_size), r;
	struct planned *row;
	char what[300];

	if (nr == -ENODEV)
		return plan_lacking(p, text);
	if (nr <= 0)
		return nr < 0 ? nr : -EINVAL;
	r = find_static(p->found[0].name);
	if (r >= 0)
		return choose_static(p, r, (unsigned)nr, text);
	row = find_planned(p->own, p->found[0].name);
	if (row)
		return refuse_twins(p, row, are_equal(row->event, row->nr, p->found, (unsigned)nr), text);
	r = add_row(p, p->found[0].name, (unsigned)nr, &row);
	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "Event %.256s", text);
	describe(row, what, "");
	return 0;
}

/* ---- groups ---- */

static int load_file(struct planning *p)
{
	if (p->file_error == 1)
		p->file_error = event_file_find(p->env, &p->file, p->no_file, sizeof(p->no_file));
	if (p->file_error < 0 && p->file_error != -ENOENT) {
		snprintf(p->err, p->err_size, "%s", p->file_error == -ENOMEM ? "out of memory" : p->no_file);
		return p->file_error;
	}
	return 0;
}

static const struct event_group *find_group(const struct planning *p, const char *name)
{
	return p->file_error == 0 ? event_group_find(&p->file, name) : NULL;
}

/* The number that the group is for, without values. */
static int plan_missing(struct planning *p, const char *group, const char *reason)
{
	struct planned *row;

	for (size_t i = 0; i < ARRAY_SIZE(purpose); i++) {
		int r;

		if (strcasecmp(purpose[i].group, group) || find_planned(p->own, purpose[i].number))
			continue;
		r = add_row(p, purpose[i].number, 0, &row);
		if (r < 0)
			return r;
		p->own->metric[row->value].unit = purpose[i].unit;
		p->own->metric[row->value].kind = KIND_GAUGE;
		snprintf(row->reason, sizeof(row->reason), "%s", reason);
		snprintf(row->help, sizeof(row->help), "What the group %s of events is for.",
			purpose[i].group);
	}
	return 0;
}

static int plan_group_event(struct planning *p, const struct event_group *g, const struct group_event *e)
{
	char what[300], why[400] = "";
	struct planned *row;
	int nr, r;

	if (find_planned(p->own, e->name))
		return 0;
	r = find_static(e->name);
	if (r >= 0) {
		p->plan->chosen[PERF_FIRST + 2 * r] = true;
		return 0;
	}
	nr = group_event_resolve(p->env, e, p->found, PERF_BOXES, why, sizeof(why));
	if (nr == -ENOMEM)
		return nr;
	r = add_row(p, e->name, (unsigned)MAX(nr, 0), &row);
	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "Event %.160s of the group %s", e->code, g->name);
	describe(row, what, e->caution);
	if (nr <= 0)
		snprintf(
			row->reason, sizeof(row->reason), "%s", why[0] ? why : "there is no such event here");
	return 0;
}

static bool has_formula(const struct perf_plan *own, const char *name)
{
	for (size_t i = 0; i < own->nr_formulas; i++)
		if (!strcmp(own->formula[i].name + strlen("perf."), name))
			return true;
	return false;
}

static int plan_formula(struct planning *p, const struct group_formula *f)
{
	struct perf_plan *own = p->own;
	struct planned_text *text = malloc(sizeof(*text)), **texts;
	struct plan_formula *formulas;

	texts = reallocarray(own->text, own->nr_formulas + 1, sizeof(*texts));
	if (texts)
		own->text = texts;
	formulas = reallocarray(own->formula, own->nr_formulas + 1, sizeof(*formulas));
	if (formulas)
		own->formula = formulas;
	if (!text || !texts || !formulas) {
		free(text);
		return -ENOMEM;
	}
	snprintf(text->name, sizeof(text->name), "perf.%s", f->name);
	snprintf(text->help, sizeof(text->help), "%s%s%s", f->help, *f->caution ? " " : "", f->caution);
	snprintf(text->expression, sizeof(text->expression), "%s", f->expression);
	own->text[own->nr_formulas] = text;
	own->formula[own->nr_formulas++] = (struct plan_formula){.name = text->name,
		.help = text->help,
		.expression = text->expression,
		.unit = f->unit,
		.per_second = f->per_second,
		.panel = f->unit == UNIT_FLOP	? "flops"
			: f->unit == UNIT_BYTES ? "perf.bandwidth"
						: NULL};
	return 0;
}

static int plan_group(struct planning *p, const char *name, bool of_tasks_alone)
{
	const struct event_group *g;
	char why[400];
	int r = load_file(p);

	if (r < 0)
		return r;
	g = find_group(p, name);
	if (!g) {
		snprintf(why, sizeof(why), "the events of %.200s have no group %s", p->file.source, name);
		return plan_missing(p, name, p->file_error ? p->no_file : why);
	}
	if (g->missing[0])
		r = plan_missing(p, g->name, g->missing);
	for (unsigned i = 0; i < g->nr_events && r == 0; i++)
		if (!of_tasks_alone || !g->event[i].of_package)
			r = plan_group_event(p, g, &g->event[i]);
	for (unsigned i = 0; i < g->nr_formulas && r == 0; i++)
		if (!has_formula(p->own, g->formula[i].name))
			r = plan_formula(p, &g->formula[i]);
	return r;
}

/* ---- words of -m ---- */

static bool is_memory(const char *word)
{
	return !strcmp(word, "membw") || !strcmp(word, "MEM");
}

static bool has_controllers(struct planning *p)
{
	const struct event_group *g = find_group(p, "MEM");
	char unused[400];

	for (unsigned i = 0; g && i < g->nr_events; i++)
		if (g->event[i].of_package &&
			group_event_resolve(p->env, &g->event[i], p->found, ARRAY_SIZE(p->found), unused,
				sizeof(unused)) > 0)
			return true;
	return false;
}

/* Where there are no memory controllers, or they may not be counted, the cores' events for the tree are
 * used instead. A processor without a file has no such events: its controllers may be known by the
 * kernel's names. */
static int plan_memory(struct planning *p)
{
	struct perf_access access;
	int r = load_file(p);

	if (r < 0)
		return r;
	perf_access(p->env, &access);
	if (access.packages && (p->file_error < 0 || has_controllers(p)))
		return 0;
	return plan_group(p, "MEM", true);
}

static int plan_word(struct planning *p, size_t i)
{
	const char *word = p->plan->word[i];
	bool known = false;
	int r;

	if (is_memory(word)) {
		p->plan->taken[i] = true;
		return plan_memory(p);
	}
	if (p->plan->taken[i])
		return 0;
	for (size_t w = 0; perf_words[w]; w++)
		known |= !strcmp(perf_words[w], word);
	if (!known) { /* a group of the user's own file */
		r = load_file(p);
		if (r < 0 || !find_group(p, word))
			return r;
	}
	p->plan->taken[i] = true;
	if (strcmp(word, "flops"))
		return plan_group(p, word, false);
	r = plan_group(p, "FLOPS_SP", false);
	return r < 0 ? r : plan_group(p, "FLOPS_DP", false);
}

/* Every event is recorded with the time it was on a counter, and with the CPU time that was counted. */
static unsigned choose_companions(struct plan *plan, bool any)
{
	unsigned nr = 0;

	any |= plan->chosen[PERF_ENABLED];
	for (int i = PERF_FIRST; i < PERF_ROWS; i += 2) {
		plan->chosen[i] |= plan->chosen[i + 1];
		any |= plan->chosen[i];
	}
	plan->chosen[PERF_ENABLED] = any;
	plan->chosen[PERF_FIRST + 2 * perf_task_clock] |= any;
	for (int i = PERF_FIRST; i < PERF_ROWS; i += 2) {
		plan->chosen[i + 1] = plan->chosen[i];
		nr += 2 * plan->chosen[i];
	}
	return nr + any;
}

static int plan_all(struct planning *p)
{
	struct perf_plan *own = p->own;
	unsigned nr;
	int r = 0;

	for (size_t i = 0; i < p->plan->nr_events && r == 0; i++)
		r = plan_event(p, p->plan->event[i]);
	for (size_t i = 0; i < p->plan->nr_words && r == 0; i++)
		r = plan_word(p, i);
	if (r < 0)
		return r;
	nr = choose_companions(p->plan, own->nr > 0);
	if (nr + own->nr_metrics > METRICS_MAX) {
		snprintf(p->err, p->err_size,
			"%zu events are too many to be counted at once: there is room for %d, those of -m "
			"perf "
			"included",
			nr / 2 + own->nr_metrics / 2, (METRICS_MAX - 1) / 2);
		return -EINVAL;
	}
	p->plan->metric = own->metric;
	p->plan->nr_metrics = own->nr_metrics;
	p->plan->formula = own->formula;
	p->plan->nr_formulas = own->nr_formulas;
	return 0;
}

static bool is_asked(const struct plan *plan)
{
	for (size_t i = 0; i < plan->nr_words; i++)
		if (!plan->taken[i] || is_memory(plan->word[i]))
			return true;
	return plan->nr_events > 0;
}

int perf_plan(struct env *env, struct plan *plan, char *err, size_t err_size)
{
	struct planning *p;
	int r;

	if (!is_asked(plan)) {
		choose_companions(plan, false);
		return 0;
	}
	p = calloc(1, sizeof(*p));
	plan->own = calloc(1, sizeof(struct perf_plan));
	plan->free_own = free_plan;
	if (!p || !plan->own) {
		free(p);
		return -ENOMEM;
	}
	*p = (struct planning){.env = env,
		.plan = plan,
		.own = plan->own,
		.file_error = 1,
		.err = err,
		.err_size = err_size};
	r = plan_all(p);
	if (p->file_error == 0)
		event_file_release(&p->file);
	free(p);
	return r;
}
