/* Figures of runs, set by set. */
#include "analysis/compare.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What people look for first; what matters of a group and of a GPU when it is different. */
static const enum figure_id first_figure[] = {FIG_WALL, FIG_CPU, FIG_MEMORY};
static const enum figure_id figure_of_group[] = {FIG_CPU, FIG_MEMORY, FIG_PSS, FIG_RSS};
static const enum gpu_figure_id figure_of_gpu[] = {GPU_FIG_UTIL_MEAN, GPU_FIG_MEMORY_PEAK, GPU_FIG_ENERGY,
	GPU_FIG_JOB_MEMORY_PEAK, GPU_FIG_JOB_UTIL_MEAN, GPU_FIG_THROTTLED};

int compare_warn(struct comparison *c, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = texts_addv(&c->warning, &c->nr_warnings, fmt, ap);
	va_end(ap);
	return r;
}

/* ---- values ---- */

/* deviation holds the sum of squares until compare_values_close(): Welford's way, which loses no digits. */
void compare_values_add(struct compare_values *v, double value)
{
	double away;

	if (!isfinite(value))
		return;
	if (!v->nr)
		*v = (struct compare_values){.least = value, .most = value};
	v->nr++;
	away = value - v->mean;
	v->mean += away / (double)v->nr;
	v->deviation += away * (value - v->mean);
	v->least = MIN(v->least, value);
	v->most = MAX(v->most, value);
}

static void values_close(struct compare_values *v)
{
	const char *why = v->why;

	if (!v->nr)
		*v = (struct compare_values){
			.mean = NAN, .least = NAN, .most = NAN, .deviation = NAN, .why = why};
	else
		v->deviation = v->nr > 1 ? square_root(v->deviation / (double)(v->nr - 1)) : NAN;
}

#define ROUNDING 1e-9 /* of sums: no measurement is that exact */

struct compare_change compare_change(const struct compare_figure *f, size_t set)
{
	const struct compare_values *a = &f->of[0], *b = &f->of[set];
	double spread = MAX(a->most - a->least, b->most - b->least), size;
	struct compare_change ret = {.known = a->nr && b->nr, .difference = NAN, .ratio = NAN};

	if (!ret.known)
		return ret;
	ret.difference = b->mean - a->mean;
	if (fabs(ret.difference) <= ROUNDING * MAX(fabs(a->mean), fabs(b->mean)))
		ret.difference = 0;
	if (a->mean != 0 && ret.difference == 0)
		ret.ratio = 1;
	else if (a->mean != 0)
		ret.ratio = b->mean / a->mean;
	else if (b->mean != 0)
		ret.ratio = INFINITY;
	ret.has_spread = a->nr > 1 || b->nr > 1;
	size = fabs(ret.difference);
	ret.stands_out = ret.has_spread && size > spread;
	ret.differs = size > 0 && size >= fabs(a->mean) / 100 && (!ret.has_spread || ret.stands_out);
	return ret;
}

/* ---- gathering ---- */

struct gather {
	struct comparison *c;
	size_t set;
	size_t next; /* where the figure probably is: runs name theirs in the same order */
	bool failed;
};

static struct compare_figure *figure_of(struct gather *g, const char *name)
{
	struct comparison *c = g->c;
	struct compare_figure *f;

	if (g->next < c->nr_figures && !strcmp(c->figure[g->next].name, name))
		return &c->figure[g->next++];
	for (size_t i = 0; i < c->nr_figures; i++) {
		if (strcmp(c->figure[i].name, name) != 0)
			continue;
		g->next = i + 1;
		return &c->figure[i];
	}
	f = ARRAY_ADD(c->figure, c->nr_figures);
	if (!f)
		return NULL;
	*f = (struct compare_figure){.name = strdup(name), .of = calloc(c->nr_sets, sizeof(*f->of))};
	if (!f->name || !f->of)
		return NULL;
	f->unit = compare_unit_of(name);
	g->next = c->nr_figures;
	return f;
}

static struct compare_figure *gather_one(
	struct gather *g, const char *name, const struct figure *value, bool matters)
{
	struct compare_figure *f;

	if (value->why && !*value->why) /* there is no such thing */
		return NULL;
	f = figure_of(g, name);
	if (!f) {
		g->failed = true;
		return NULL;
	}
	f->matters |= matters;
	if (value->why && !f->of[g->set].why)
		f->of[g->set].why = value->why;
	compare_values_add(&f->of[g->set], value->why ? NAN : value->value);
	return f;
}

static bool is_in(int id, const void *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (((const int *)list)[i] == id)
			return true;
	return false;
}

#define IS_IN(id, list) is_in((int)(id), list, ARRAY_SIZE(list))

static void gather_figures(struct gather *g, const struct summary *s, const char *prefix)
{
	char name[400];

	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		const struct summary_row *row = &summary_row[id];
		struct compare_figure *f;

		if (s->name && !row->of_groups)
			continue;
		snprintf(name, sizeof(name), "%s%s%s%s", prefix, row->group ? row->group : "",
			row->group ? "." : "", row->name);
		f = gather_one(g, name, &s->figure[id], s->name ? IS_IN(id, figure_of_group) : row->matters);
		if (f && !s->name)
			f->first = IS_IN(id, first_figure);
	}
}

static void add_part(struct buf *out, const char *text)
{
	size_t from = out->len;

	add_text(out, text, strlen(text), LETTERS_UTF8);
	clip(out, from, 80, true);
}

static void gather_counters(struct gather *g, const struct summary *s)
{
	for (size_t i = 0; i < s->nr_counters; i++) {
		const struct summary_counter *counter = &s->counter[i];
		struct compare_figure *f;
		struct buf name;

		buf_init(&name, 1000);
		buf_adds(&name, "perf.");
		add_part(&name, counter->name);
		f = gather_one(g, (char *)name.data, &counter->value, true);
		if (f)
			f->unit = (struct compare_unit){counter->unit, .per_second = counter->per_second};
		buf_release(&name);
	}
}

static void gather_gpus(struct gather *g, const struct summary *s)
{
	for (size_t i = 0; i < s->nr_gpus; i++) {
		const char *instance = s->gpu[i].text[GPU_TEXT_INSTANCE];

		for (enum gpu_figure_id id = 0; instance && id < NR_GPU_FIGURES; id++) {
			struct buf name;

			buf_init(&name, 1000);
			buf_adds(&name, "gpus.");
			add_part(&name, instance);
			buf_addf(&name, ".%s", summary_gpu_row[id].name);
			gather_one(g, (char *)name.data, &s->gpu[i].figure[id], IS_IN(id, figure_of_gpu));
			buf_release(&name);
		}
	}
}

static void gather_groups(struct gather *g, const struct summary *s)
{
	for (size_t i = 0; i < s->nr_groups; i++) {
		struct buf prefix;

		buf_init(&prefix, 1000);
		buf_adds(&prefix, "groups.");
		add_part(&prefix, s->group[i].name);
		buf_addch(&prefix, '.');
		gather_figures(g, &s->group[i], (char *)prefix.data);
		buf_release(&prefix);
	}
}

static int compare_figures(struct comparison *c)
{
	struct gather g = {.c = c};

	for (g.set = 0; g.set < c->nr_sets; g.set++) {
		for (size_t i = 0; i < c->set[g.set].nr; i++) {
			const struct summary *s = c->set[g.set].run[i];

			g.next = 0;
			gather_figures(&g, s, "");
			gather_counters(&g, s);
			gather_gpus(&g, s);
			gather_groups(&g, s);
		}
	}
	for (size_t i = 0; i < c->nr_figures; i++)
		for (size_t k = 0; k < c->nr_sets; k++)
			values_close(&c->figure[i].of[k]);
	return g.failed ? -ENOMEM : 0;
}

/* ---- what makes them hard to compare ---- */

#define COMMAND_SHOWN 60

enum text_differs { TEXT_OF_HOST, TEXT_OF_MODEL, TEXT_OF_KERNEL };

static const char *text_of(const struct summary *s, enum text_differs which)
{
	const char *name = which == TEXT_OF_MODEL ? "cpu_model" : "kernel";

	if (which == TEXT_OF_HOST)
		return s->host ? s->host : "";
	for (size_t i = 0; i < s->nr_hardware; i++)
		if (!strcmp(s->hardware[i].name, name))
			return s->hardware[i].value;
	return "";
}

static const struct summary *summary_of(const struct comparison *c, size_t operand)
{
	const struct compare_set *set = &c->set[c->operand[operand].set];

	return set->run[operand - set->first];
}

/* The runs were not under one and the same of these. */
static int warn_of_text(struct comparison *c, const char *what, enum text_differs which)
{
	const char *first = text_of(summary_of(c, 0), which), *other = first;
	struct buf words;
	int r;

	for (size_t i = 0; i < c->nr_operands && (!*other || !strcmp(first, other)); i++)
		other = text_of(summary_of(c, i), which);
	if (!*first || !*other || !strcmp(first, other))
		return 0;
	buf_init(&words, 10000);
	add_text(&words, first, strlen(first), LETTERS_UTF8);
	buf_adds(&words, " and ");
	add_text(&words, other, strlen(other), LETTERS_UTF8);
	r = compare_warn(c, "%s differ: %s", what, (char *)words.data);
	buf_release(&words);
	return r;
}

/* Of what another command did, a difference says nothing about the machine or the version. */
static int warn_of_commands(struct comparison *c)
{
	const struct summary *first = summary_of(c, 0);

	for (size_t i = 1; i < c->nr_operands && first->command_len; i++) {
		const struct summary *other = summary_of(c, i);
		struct buf words;
		size_t from;
		int r;

		if (!other->command_len ||
			(other->command_len == first->command_len &&
				!memcmp(other->command, first->command, first->command_len)))
			continue;
		buf_init(&words, 100000);
		add_command(&words, first->command, first->command_len, LETTERS_UTF8);
		clip(&words, 0, COMMAND_SHOWN, true);
		buf_adds(&words, " and ");
		from = words.len;
		add_command(&words, other->command, other->command_len, LETTERS_UTF8);
		clip(&words, from, COMMAND_SHOWN, true);
		r = compare_warn(c, "commands differ: %s", (char *)words.data);
		buf_release(&words);
		return r;
	}
	return 0;
}

static int warn_of_figure(struct comparison *c, const char *what, enum figure_id id)
{
	const struct figure *first = &summary_of(c, 0)->figure[id];
	struct compare_unit unit = compare_unit_of(summary_row[id].name);
	char a[64], b[64];

	for (size_t i = 0; i < c->nr_operands; i++) {
		const struct figure *other = &summary_of(c, i)->figure[id];

		if (first->why || other->why || fabs(first->value - other->value) <= 1e-9)
			continue;
		return compare_warn(c, "%s differ: %s and %s", what,
			compare_format(a, &unit, first->value, false),
			compare_format(b, &unit, other->value, false));
	}
	return 0;
}

/* Recordings of several nodes are made at the same time; repeated runs are not. */
static bool is_repeated(const struct summary *s)
{
	for (size_t i = 0; i < s->nr_nodes; i++) {
		for (size_t k = 0; k < s->nr_nodes; k++) {
			const struct summary *a = &s->node[i], *b = &s->node[k];
			double gap = (double)(b->start_wall_ns - a->start_wall_ns) / 1e9;

			if (i != k && a->start_wall_ns && b->start_wall_ns && has_figure(a, FIG_WALL) &&
				gap >= a->figure[FIG_WALL].value)
				return true;
		}
	}
	return false;
}

static int warn_of_run(struct comparison *c, const struct summary *s, const char *name)
{
	struct buf shown;
	int r = 0;

	buf_init(&shown, 100000);
	add_text(&shown, name, strlen(name), LETTERS_UTF8);
	if (is_repeated(s))
		r = compare_warn(c,
			"the recordings in %s were made one after the other and are taken as one run; if "
			"they repeat it, name each of them",
			(char *)shown.data);
	if (r >= 0 && !s->complete)
		r = compare_warn(c, "%s is unfinished: its figures are of a part", (char *)shown.data);
	if (r >= 0 && has_figure(s, FIG_EXIT_SIGNAL))
		r = compare_warn(c, "%s was killed by signal %.0f", (char *)shown.data,
			s->figure[FIG_EXIT_SIGNAL].value);
	else if (r >= 0 && has_figure(s, FIG_EXIT_CODE) && s->figure[FIG_EXIT_CODE].value != 0)
		r = compare_warn(
			c, "%s exited with %.0f", (char *)shown.data, s->figure[FIG_EXIT_CODE].value);
	buf_release(&shown);
	return r;
}

static int add_warnings(struct comparison *c)
{
	int r = warn_of_commands(c);

	if (r >= 0)
		r = warn_of_text(c, "hosts", TEXT_OF_HOST);

	if (r >= 0)
		r = warn_of_text(c, "CPU models", TEXT_OF_MODEL);
	if (r >= 0)
		r = warn_of_text(c, "kernels", TEXT_OF_KERNEL);
	if (r >= 0)
		r = warn_of_figure(c, "sampling intervals", FIG_INTERVAL);
	if (r >= 0)
		r = warn_of_figure(c, "the CPUs that the runs might use", FIG_LIMIT_CPUS);
	for (size_t i = 0; r >= 0 && i < c->nr_operands; i++)
		r = warn_of_run(c, summary_of(c, i), c->operand[i].name);
	return r;
}

/* ---- all of it ---- */

static char *title_of(const struct comparison *c, const struct compare_operand *o)
{
	static const char *const two[] = {"before", "after"};
	const char *slash = strrchr(o->name, '/');
	const char *name = c->nr_sets == 2 ? two[o->set] : slash && slash[1] ? slash + 1 : o->name;
	struct buf text;
	char *ret;

	buf_init(&text, 100000);
	add_text(&text, name, strlen(name), LETTERS_UTF8);
	ret = strdup((char *)text.data);
	buf_release(&text);
	return ret;
}

static int make_sets(struct comparison *c)
{
	for (size_t i = 0; i < c->nr_operands; i++)
		c->nr_sets = MAX(c->nr_sets, (size_t)c->operand[i].set + 1);
	c->set = calloc(c->nr_sets, sizeof(*c->set));
	if (!c->set)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_operands; i++) {
		struct compare_set *set = &c->set[c->operand[i].set];

		if (!set->nr++)
			set->first = i;
	}
	for (size_t k = 0; k < c->nr_sets; k++) {
		struct compare_set *set = &c->set[k];

		if (!set->nr)
			return -EINVAL;
		set->run = calloc(set->nr, sizeof(struct summary *));
		set->name = calloc(set->nr, sizeof(*set->name));
		set->title = title_of(c, &c->operand[set->first]);
		if (!set->run || !set->name || !set->title)
			return -ENOMEM;
		for (size_t i = 0; i < set->nr; i++)
			set->name[i] = c->operand[set->first + i].name;
	}
	return 0;
}

int compare_read(const struct compare_operand *operand, size_t nr, const struct progress *progress,
	struct comparison **ret, struct buf *reterr)
{
	struct comparison *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	if (c) {
		c->operand = operand;
		c->nr_operands = nr;
		r = make_sets(c);
	}
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		struct compare_set *set = &c->set[operand[i].set];

		progress_tell(progress, "reading the runs", (double)i / (double)nr);
		r = summary_read(operand[i].run, &set->run[i - set->first], reterr);
	}
	if (r >= 0)
		r = compare_figures(c);
	if (r >= 0)
		r = compare_phases(c);
	for (size_t i = 0; r >= 0 && i < c->nr_phase_figures; i++)
		for (size_t k = 0; k < c->nr_sets; k++)
			values_close(&c->phase[i].of[k]);
	if (r >= 0)
		r = add_warnings(c);
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		compare_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void figures_free(struct compare_figure *f, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(f[i].name);
		free(f[i].of);
	}
	free(f);
}

struct comparison *compare_free(struct comparison *c)
{
	if (!c)
		return NULL;
	for (size_t k = 0; c->set && k < c->nr_sets; k++) {
		for (size_t i = 0; c->set[k].run && i < c->set[k].nr; i++)
			summary_free(c->set[k].run[i]);
		free(c->set[k].run);
		free(c->set[k].name);
		free(c->set[k].title);
	}
	free(c->set);
	figures_free(c->figure, c->nr_figures);
	figures_free(c->phase, c->nr_phase_figures);
	texts_free(c->warning, c->nr_warnings);
	free(c);
	return NULL;
}
