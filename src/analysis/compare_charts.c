/* The panels of the report with one curve for each run, so that what is different can be seen.
 *
 * Of a panel the metric that is its point is taken (the one whose peak it annotates), else its first two,
 * each as a chart of its own: two metrics of several runs in one could not be told apart. Runs of a set have
 * one colour. Several nodes are combined as the metric folds.
 *
 * Aligned by phases, the time of a run is mapped piece by piece: beginnings and ends of phases that both have
 * are put onto one another, and what lies between is stretched. Putting each phase at a zero of its own was
 * rejected: it would be as many plots as phases, and none of the whole. */
#include "analysis/compare_charts.h"

#include "text/words.h"
#include "analysis/analysis.h"
#include "analysis/bands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PER_PANEL 2
#define ANCHORS_MAX 2000

struct wish {
	const struct panel *panel;
	unsigned metric; /* of the panel */
	bool several;	 /* the panel has another chart */
};

struct compare_charts_work {
	const struct comparison *c;
	struct compare_charts *f;
	struct wish *wish;
	size_t nr_wishes;
	double **time; /* of each operand: its points as they are drawn */
	size_t *nr_times;
};

/* ---- what is drawn ---- */

static bool is_comparable(const struct panel *p)
{
	return (p->shape == PANEL_LINES || p->shape == PANEL_INSTANCES) && p->when == PANEL_ALWAYS;
}

static int choose_wishes(struct compare_charts_work *w)
{
	w->wish = calloc(nr_panels * PER_PANEL, sizeof(*w->wish));
	if (!w->wish)
		return -ENOMEM;
	for (size_t i = 0; i < nr_panels; i++) {
		const struct panel *p = &panels[i];
		unsigned first = p->peak ? p->peak - 1u : 0, last = p->peak ? first + 1 : PER_PANEL;

		for (unsigned k = first; is_comparable(p) && k < last && p->metric[k]; k++)
			w->wish[w->nr_wishes++] = (struct wish){p, k, !p->peak && p->metric[1] != NULL};
	}
	return 0;
}

static int read_run(
	struct compare_charts_work *w, size_t operand, const struct progress *progress, struct buf *reterr)
{
	struct curves_query *query = calloc(w->nr_wishes, sizeof(*query));
	struct curves_options options = {.from_s = NAN, .to_s = NAN, .progress = progress};
	int r;

	if (!query)
		return -ENOMEM;
	for (size_t i = 0; i < w->nr_wishes; i++)
		query[i] = (struct curves_query){.metric = w->wish[i].panel->metric[w->wish[i].metric],
			.per = CURVES_WHOLE,
			.rate = w->wish[i].panel->rate};
	r = curves_read(
		w->c->operand[operand].run, query, w->nr_wishes, &options, &w->f->curves[operand], reterr);
	free(query);
	return r;
}

/* ---- time ---- */

struct anchor {
	double base, own;
};

/* The phase of that name that comes as the so many-th in this run. */
static const struct run_event *phase_like(
	const struct run_events *m, const struct run_event *like, size_t occurrence)
{
	for (size_t i = 0; i < m->nr_phases; i++)
		if (m->phase[i].node == m->phase[0].node && !strcmp(m->phase[i].label, like->label) &&
			!occurrence--)
			return &m->phase[i];
	return NULL;
}

static size_t occurrence_of(const struct run_events *m, size_t phase)
{
	size_t nr = 0;

	for (size_t i = 0; i < phase; i++)
		nr += m->phase[i].node == m->phase[phase].node &&
			!strcmp(m->phase[i].label, m->phase[phase].label);
	return nr;
}

static int by_base(const void *a, const void *b)
{
	const struct anchor *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base ? 1 : x->own < y->own ? -1 : x->own > y->own;
}

/* Beginnings and ends of phases of both, where their order is the same. */
static size_t anchors_of(const struct run_events *base, const struct run_events *own, struct anchor *ret)
{
	size_t nr = 0, kept = 0;

	for (size_t i = 0; own->nr_phases && i < base->nr_phases && nr + 2 <= ANCHORS_MAX; i++) {
		const struct run_event *a = &base->phase[i], *b;

		if (a->node != base->phase[0].node)
			continue;
		b = phase_like(own, a, occurrence_of(base, i));
		if (!b)
			continue;
		ret[nr++] = (struct anchor){a->time_s, b->time_s};
		if (a->end_s > a->time_s && b->end_s > b->time_s)
			ret[nr++] = (struct anchor){a->end_s, b->end_s};
	}
	qsort(ret, nr, sizeof(*ret), by_base);
	for (size_t i = 0; i < nr; i++)
		if (!kept || (ret[i].base > ret[kept - 1].base && ret[i].own > ret[kept - 1].own))
			ret[kept++] = ret[i];
	return kept;
}

static double mapped(double t, const struct anchor *anchor, size_t nr)
{
	size_t i = 0;

	if (!nr)
		return t;
	while (i < nr && anchor[i].own < t)
		i++;
	if (i == 0)
		return t - anchor[0].own + anchor[0].base;
	if (i == nr)
		return t - anchor[nr - 1].own + anchor[nr - 1].base;
	return anchor[i - 1].base +
		(t - anchor[i - 1].own) / (anchor[i].own - anchor[i - 1].own) *
		(anchor[i].base - anchor[i - 1].base);
}

/* The line of a run: of its only recording, or of all together. */
static int line_of(struct compare_charts_work *w, size_t operand, unsigned query)
{
	struct curves *s = w->f->curves[operand];

	if (!s->column[query].known)
		return -ENOENT;
	if (w->c->operand[operand].run->nr > 1)
		return curves_combine(s, query, false);
	for (size_t i = 0; i < s->nr_lines; i++)
		if (s->line[i].query == query && !isnan(s->line[i].most))
			return (int)i;
	return -ENOENT;
}

static int map_times(struct compare_charts_work *w, size_t operand, const struct curves_node *node,
	const struct anchor *anchor, size_t nr)
{
	double *time;

	if (w->time[operand])
		return 0;
	time = owned_alloc(&w->f->kept, node->nr_times + 1, sizeof(*time));
	if (!time)
		return -ENOMEM;
	for (size_t i = 0; i < node->nr_times; i++)
		time[i] = mapped(node->time_s[i], anchor, nr);
	w->time[operand] = time;
	w->nr_times[operand] = node->nr_times;
	return 0;
}

/* ---- one chart ---- */

/* "before", of several runs "before run1.tacho". */
static char *name_of(struct compare_charts_work *w, size_t operand)
{
	const struct compare_operand *o = &w->c->operand[operand];
	const struct compare_set *set = &w->c->set[o->set];
	const char *slash = strrchr(o->name, '/'), *name = slash && slash[1] ? slash + 1 : o->name;
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_adds(&text, set->title);
	if (set->nr > 1) {
		buf_addch(&text, ' ');
		add_text(&text, name, strlen(name), LETTERS_UTF8);
	}
	return owned_text(&w->f->kept, &text);
}

static int add_curve(
	struct compare_charts_work *w, struct chart *chart, struct chart_curve *c, size_t operand, int line)
{
	const struct compare_set *set = &w->c->set[w->c->operand[operand].set];
	struct curves_line *l = &w->f->curves[operand]->line[line];
	struct stats_row known;

	stats_of_summary(set->run[operand - set->first], &known);
	curves_line_settle(l, w->f->curves[operand]->column[l->query].name, &known);
	*c = (struct chart_curve){.name = name_of(w, operand),
		.nr = w->nr_times[operand],
		.time_s = w->time[operand],
		.mean = l->mean,
		.low = l->low,
		.high = l->high,
		.color = w->c->operand[operand].set,
		.average = l->average,
		.most = l->most};
	if (c->nr)
		chart->to_s = MAX(chart->to_s, c->time_s[c->nr - 1]);
	return c->name ? 0 : -ENOMEM;
}

static int name_chart(struct compare_charts_work *w, struct chart *chart, size_t wish)
{
	const struct wish *from = &w->wish[wish];
	const char *label = from->panel->label[from->metric];
	bool told = from->several || (from->panel->peak && from->panel->metric[1]);

	label = label ? label : from->panel->metric[from->metric];
	chart->title =
		owned_printf(&w->f->kept, "%s%s%s", from->panel->title, told ? ": " : "", told ? label : "");
	chart->id = owned_printf(&w->f->kept, from->metric && from->several ? "compare-%s-%u" : "compare-%s",
		from->panel->id, from->metric + 1);
	return w->f->kept.failed ? -ENOMEM : 0;
}

static int make_chart(
	struct compare_charts_work *w, size_t wish, struct anchor *const *anchor, const size_t *nr_anchors)
{
	struct chart *chart = &w->f->item[w->f->nr];
	struct chart_curve *curve = owned_alloc(&w->f->kept, w->c->nr_operands, sizeof(*curve));
	bool any = false;
	int r = curve ? 0 : -ENOMEM;

	*chart = (struct chart){.form = CHART_LINES,
		.quantity = w->wish[wish].panel->quantity,
		.y_most = NAN,
		.curve = curve};
	for (size_t i = 0; r >= 0 && i < w->c->nr_operands; i++) {
		const struct curves_column *column = &w->f->curves[i]->column[wish];
		int line = line_of(w, i, (unsigned)wish);
		const struct curves_line *l;

		if (line < 0) {
			r = line == -ENOMEM ? line : 0;
			continue;
		}
		l = &w->f->curves[i]->line[line];
		any |= l->most != 0;
		chart->unit = column->unit;
		chart->per_second = column->per_second;
		r = map_times(w, i, &w->f->curves[i]->node[l->node], anchor ? anchor[i] : NULL,
			anchor ? nr_anchors[i] : 0);
		if (r >= 0)
			r = add_curve(w, chart, &curve[chart->nr_curves++], i, line);
	}
	if (r >= 0)
		r = name_chart(w, chart, wish);
	if (r >= 0 && chart->nr_curves && (any || !w->wish[wish].panel->when_any))
		w->f->nr++;
	return r;
}

/* ---- phases ---- */

/* Names are copied: the events do not last. */
static int add_bands(struct compare_charts_work *w, const struct run_events *m)
{
	struct chart_bands bands = {0};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < w->f->nr; i++) {
		struct chart *c = &w->f->item[i];

		if (!i || c->from_s != c[-1].from_s || c->to_s != c[-1].to_s) {
			r = bands_make(m, bands_node(m), c->from_s, c->to_s, &w->f->kept, &bands);
			for (size_t k = 0; r >= 0 && k < bands.nr; k++) {
				bands.band[k].label = owned_take(&w->f->kept, strdup(bands.band[k].label));
				r = bands.band[k].label ? 0 : -ENOMEM;
			}
		}
		chart_set_bands(c, &bands);
	}
	return r;
}

static int make_charts(struct compare_charts_work *w, bool by_phases, struct buf *reterr)
{
	size_t nr = w->c->nr_operands, *nr_anchors = calloc(nr, sizeof(*nr_anchors)), found = 0;
	struct anchor **anchor = calloc(nr, sizeof(struct anchor *));
	struct run_events **m = calloc(nr, sizeof(struct run_events *));
	int r = anchor && nr_anchors && m ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && by_phases && i < nr; i++) {
		r = run_events_read(w->c->operand[i].run, &m[i], reterr);
		anchor[i] = calloc(ANCHORS_MAX, sizeof(**anchor));
		if (r >= 0 && !anchor[i])
			r = -ENOMEM;
		if (r >= 0)
			nr_anchors[i] = anchors_of(m[0], m[i], anchor[i]);
		found += i && nr_anchors[i];
	}
	if (r >= 0 && by_phases && !found)
		w->f->note =
			strdup("No phase has the same name in these runs: they are aligned by elapsed time.");
	for (size_t i = 0; r >= 0 && i < w->nr_wishes; i++)
		r = make_chart(w, i, by_phases ? anchor : NULL, nr_anchors);
	if (r >= 0 && by_phases && found)
		r = add_bands(w, m[0]);
	for (size_t i = 0; i < nr; i++) {
		if (anchor)
			free(anchor[i]);
		if (m)
			run_events_free(m[i]);
	}
	free(m);
	free(anchor);
	free(nr_anchors);
	return r;
}

int compare_charts_make(const struct comparison *c, bool by_phases, const struct progress *progress,
	struct compare_charts **ret, struct buf *reterr)
{
	struct compare_charts *f = calloc(1, sizeof(*f));
	struct compare_charts_work w = {.c = c, .f = f};
	int r = f ? choose_wishes(&w) : -ENOMEM;

	if (r >= 0) {
		f->item = calloc(w.nr_wishes + 1, sizeof(*f->item));
		f->curves = calloc(c->nr_operands, sizeof(struct curves *));
		f->nr_curve_sets = c->nr_operands;
		w.time = calloc(c->nr_operands, sizeof(double *));
		w.nr_times = calloc(c->nr_operands, sizeof(*w.nr_times));
		r = f->item && f->curves && w.time && w.nr_times ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r >= 0 && i < c->nr_operands; i++)
		r = read_run(&w, i, progress, reterr);
	if (r >= 0)
		r = make_charts(&w, by_phases, reterr);
	free(w.wish);
	free(w.time);
	free(w.nr_times);
	if (r < 0) {
		if (!reterr->len)
			buf_adds(reterr, strerror(-r));
		compare_charts_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct compare_charts *compare_charts_free(struct compare_charts *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; f->curves && i < f->nr_curve_sets; i++)
		if (f->curves[i])
			curves_free(f->curves[i]);
	owned_free(&f->kept);
	free(f->curves);
	free(f->item);
	free(f->note);
	free(f);
	return NULL;
}
