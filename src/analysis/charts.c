/* The charts of a story: for every panel that has values, of every node that is shown, one picture with its
 * title, what it amounts to, the limits, the phases and events, and a word on what was reduced.
 *
 * Everything here is numbers and texts; what it looks like is decided by who draws it. */
#include "analysis/charts_internal.h"

#include "text/phases.h"
#include "text/words.h"
#include "analysis/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Nodes with charts of their own. */
#define NODES_SHOWN 16
#define STRETCH 8      /* an axis is stretched to a limit that is at most so many times what was reached */
#define HEAT_STRETCH 4 /* the colours of a heat map likewise */
#define TOLD 3	       /* curves whose numbers stand in the subtitle */

/* ---- memory ---- */

const char *charts_text(struct owned *m, struct buf *text)
{
	const char *copy = owned_text(m, text);

	return copy ? copy : "";
}

/* ---- what it amounts to ---- */

struct charts_sum {
	double mean, most, most_at_s;
	double drawn; /* the most of what is drawn */
};

#define NO_SUM ((struct charts_sum){NAN, NAN, NAN, NAN})

/* A number that the job told is older than its first sample: that may be in the phase after it. */
static struct charts_sum sum_of_curve(const struct draft *d, size_t i)
{
	double at_s = d->curve[i].held ? NAN : d->source[i].most_at_s;

	return (struct charts_sum){d->curve[i].average, d->curve[i].most, at_s, d->source[i].drawn_most};
}

/* Of curves upon one another, as drawn: all of a node stand on one axis. What was read of the sum itself is
 * better than the sum of what is drawn. */
static struct charts_sum sum_of_stack(const struct draft *d)
{
	const struct curves_node *node = d->nr ? &d->s->curves->node[d->source[0].node] : NULL;
	struct point_sum sum = POINT_SUM_NONE;

	if (d->total && !isnan(d->total->most))
		return (struct charts_sum){
			d->total->average, d->total->most, d->total->most_at_s, d->total->highest};
	for (size_t at = 0; d->nr && at < d->curve[0].nr; at++) {
		double here = NAN;

		for (size_t i = 0; i < d->nr; i++)
			if (!isnan(d->curve[i].mean[at]))
				here = (isnan(here) ? 0 : here) + (double)d->curve[i].mean[at];
		point_sum_add(&sum, node, at, d->rates, here, here);
	}
	return (struct charts_sum){point_sum_mean(&sum), sum.most, sum.most_at_s, sum.most};
}

/* The curve that reached furthest; -1: none. */
static int highest_curve(const struct draft *d)
{
	int top = -1;

	for (size_t i = 0; i < d->nr; i++)
		if (!isnan(d->curve[i].most) && (top < 0 || d->curve[i].most > d->curve[top].most))
			top = (int)i;
	return top;
}

static double highest(const struct draft *d)
{
	int top = highest_curve(d);

	if (d->chart.form == CHART_STACKED)
		return sum_of_stack(d).most;
	return top < 0 ? NAN : d->curve[top].most;
}

const char *chart_value(char out[static UNITS_SIZE], const struct draft *d, double value)
{
	return format_value(out, value, d->chart.unit, d->chart.per_second);
}

/* A curve is sampled: where it does not reach what is known, it says so; and where single samples, too short
 * to tell how much it was, show more. */
static void add_drawn(struct buf *out, const struct draft *d, const struct charts_sum *sum)
{
	const char *seen = chart_value(SHOWN, d, sum->drawn);

	if (sum->most != 0 && !isnan(sum->most_at_s))
		add_when(d->s->summary->phases, sum->most_at_s, d->s->to_s - d->s->from_s, out);
	if (!isnan(sum->drawn) && strcmp(chart_value(SHOWN, d, sum->most), seen) != 0)
		buf_addf(out, sum->drawn < sum->most ? " (the curve shows %s)" : " (single samples up to %s)",
			seen);
}

static void add_sum(struct buf *out, const struct draft *d, const char *name, struct charts_sum sum)
{
	buf_addf(out, "%s%smean %s, max %s", name ? name : "", name ? ": " : "",
		chart_value(SHOWN, d, sum.mean), chart_value(SHOWN, d, sum.most));
	add_drawn(out, d, &sum);
}

/* The curve whose highest point is annotated; -1: there is none. */
static int peak_curve(const struct draft *d)
{
	unsigned at = d->p->row->peak;

	for (size_t i = 0; at && d->of != DRAFT_BY_NODE && d->of != DRAFT_NODE_HEAT && i < d->nr; i++)
		if (d->nr == 1 || (d->p->row->shape == PANEL_LINES && d->curve[i].color == at - 1))
			return (int)i;
	return -1;
}

/* Of many curves the one that reached furthest. */
static void add_highest(struct buf *out, const struct draft *d)
{
	int top = highest_curve(d);
	struct charts_sum sum;

	if (top < 0)
		return;
	sum = sum_of_curve(d, (size_t)top);
	buf_addf(out, "highest %s: %s", chart_value(SHOWN, d, sum.most), d->curve[top].name);
	add_drawn(out, d, &sum);
}

/* The part of the run whose memory the chart shows; NULL: it shows something else, or several. */
static const struct summary *memory_part(const struct draft *d)
{
	const char *metric = d->p->row->metric[0];
	enum panel_shape shape = d->p->row->shape;

	if (d->of == DRAFT_BY_NODE || d->of == DRAFT_NODE_HEAT || !metric ||
		strncmp(metric, "proc.mem.", 9) != 0 || shape == PANEL_GROUPS ||
		shape == PANEL_PROCESSES_LINES)
		return NULL;
	return d->of == DRAFT_NODE && d->s->summary->nr_nodes ? &d->s->summary->node[d->node] : d->s->summary;
}

/* What one process had between two samples is in no curve. */
static bool is_peak_between(const struct draft *d)
{
	const struct summary *part = memory_part(d);

	return part && *summary_memory_view(part) == 'h';
}

static void set_subtitle(struct draft *d)
{
	enum panel_shape shape = d->p->row->shape;
	int peak = peak_curve(d);
	struct buf text;

	if (d->of == DRAFT_NODE_HEAT)
		node_heat_subtitle(d);
	if (shape == PANEL_TIMELINE || shape == PANEL_HEAT || d->of == DRAFT_NODE_HEAT)
		return;
	buf_init(&text, 4096);
	if (d->chart.form == CHART_STACKED) {
		add_sum(&text, d, "sum", sum_of_stack(d));
	} else if (d->nr > 1 && peak >= 0) {
		add_sum(&text, d, d->curve[peak].name, sum_of_curve(d, (size_t)peak));
	} else if (d->nr == 1 || (shape == PANEL_LINES && d->nr <= TOLD)) {
		/* Where others could have stood beside it, it is told which one it is. */
		bool named = d->nr > 1 || (shape == PANEL_LINES && d->p->row->metric[1]);

		for (size_t i = 0; i < d->nr; i++) {
			buf_adds(&text, i ? " · " : "");
			add_sum(&text, d, named ? d->curve[i].name : NULL, sum_of_curve(d, i));
		}
	} else {
		add_highest(&text, d);
	}
	if (is_peak_between(d))
		buf_addf(&text, "; one process had %s, between samples",
			chart_value(SHOWN, d, memory_part(d)->figure[FIG_MEMORY].value));
	d->chart.subtitle = charts_text(d->m, &text);
}

static void set_peak(struct draft *d)
{
	struct charts_sum sum = NO_SUM;
	int peak = peak_curve(d);
	struct chart_note *note;

	if (d->chart.form == CHART_STACKED && d->p->row->peak)
		sum = sum_of_stack(d);
	else if (peak >= 0)
		sum = sum_of_curve(d, (size_t)peak);
	if (!(sum.most > 0) || isnan(sum.most_at_s))
		return;
	note = owned_alloc(d->m, 1, sizeof(*note));
	if (!note)
		return;
	*note = (struct chart_note){sum.most_at_s, sum.most,
		owned_printf(d->m, "%s %s", is_peak_between(d) ? "highest sample" : "peak",
			chart_value(SHOWN, d, sum.most))};
	d->chart.note = note;
	d->chart.nr_notes = 1;
}

/* ---- limits ---- */

static bool is_first_of_host(const struct analysis *s, uint32_t node)
{
	for (uint32_t i = 0; i < node; i++)
		if (!strcmp(s->curves->node[i].host, s->curves->node[node].host))
			return false;
	return true;
}

/* Of one node; or of all hosts together, and to compare nodes where all have the same. NAN: there is none. */
static double level_value(const struct draft *d, int query)
{
	bool sums = query >= 0 && d->of == DRAFT_ALL && d->s->curves->column[query].fold == FOLD_SUM;
	double value = NAN;

	for (uint32_t node = 0; query >= 0 && node < d->s->nr_nodes; node++) {
		size_t nr;
		const struct curves_line *line = lines_of(d->s, query, node, &nr);
		double last = nr ? line->last : NAN;

		if (d->of == DRAFT_NODE && node == d->node)
			return last;
		if (d->of == DRAFT_NODE || (sums && !is_first_of_host(d->s, node)))
			continue;
		if (isnan(last) || (!sums && !isnan(value) && last != value))
			return NAN;
		value = sums && !isnan(value) ? value + last : last;
	}
	return value;
}

static void set_levels(struct draft *d)
{
	const struct panel *row = d->p->row;
	struct chart_level *level = owned_alloc(d->m, PANEL_LEVELS, sizeof(*level));
	double most = highest(d);

	for (unsigned i = 0; level && i < PANEL_LEVELS; i++) {
		double value = level_value(d, d->p->level[i]);
		bool counted = row->quantity && d->chart.unit == UNIT_COUNT;

		/* A job that may use all that is installed: one line says it. */
		if (!(value > 0) || (d->chart.nr_levels && level[d->chart.nr_levels - 1].value == value))
			continue;
		level[d->chart.nr_levels++] = (struct chart_level){.value = value,
			.label = owned_printf(d->m, "%s: %s%s%s", row->level_label[i],
				chart_value(SHOWN, d, value), counted ? " " : "",
				counted ? row->quantity : ""),
			.stretch = value <= most * STRETCH};
	}
	d->chart.level = level;
}

/* ---- titles ---- */

static void add_host(struct buf *out, const struct analysis *s, uint32_t node)
{
	const char *host = s->curves->node[node].host;
	size_t from = out->len;

	if (!*host)
		buf_addf(out, "recording %u", node + 1);
	else
		add_text(out, host, strlen(host), LETTERS_UTF8);
	clip(out, from, 80, true);
}

/* As an id: small letters and digits of the text, the rest as -. */
void id_from(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text - 'A' + 'a');
		else if ((*text < 'a' || *text > 'z') && (*text < '0' || *text > '9'))
			*text = '-';
}

static void set_id(struct draft *d)
{
	struct buf text;
	size_t from;

	d->chart.id = d->p->row->id;
	if (d->of == DRAFT_ALL || d->s->nr_nodes < 2)
		return;
	buf_init(&text, 1024);
	buf_addf(&text, "%s-", d->p->row->id);
	from = text.len;
	if (d->of == DRAFT_BY_NODE) {
		buf_adds(&text, "by-node");
	} else if (d->of == DRAFT_NODE_HEAT) {
		buf_adds(&text, "nodes");
	} else {
		add_host(&text, d->s, d->node);
		id_from((char *)text.data + from);
		if (*d->s->curves->node[d->node].host && !is_first_of_host(d->s, d->node))
			buf_addf(&text, "-%u", d->node + 1);
	}
	d->chart.id = charts_text(d->m, &text);
}

/* By what, where the panel has several. */
static void add_compared(struct buf *out, const struct draft *d)
{
	int query = analysis_main_query(d->s, d->p);

	for (unsigned k = 0; k < PANEL_METRICS && d->p->row->metric[1]; k++)
		if (d->p->whole[k] == query && d->p->row->label[k])
			buf_addf(out, "%s, ", d->p->row->label[k]);
	buf_adds(out, "node by node");
}

static void add_rows(struct buf *out, const struct draft *d)
{
	for (unsigned k = 0; d->p->row->heat > 1 && k < d->p->row->heat; k++)
		buf_addf(out, "%s%s", k ? " and " : "", d->p->row->label[k]);
	buf_addf(out, "%severy node over time", d->p->row->heat > 1 ? ", " : "");
}

static void set_title(struct draft *d, enum metric_fold fold)
{
	static const char *const how[NR_FOLDS] = {[FOLD_SUM] = "total",
		[FOLD_MEAN] = "average",
		[FOLD_MAX] = "highest",
		[FOLD_NONE] = "average"};
	struct buf text;

	d->chart.title = d->p->row->title;
	if (d->s->nr_nodes < 2)
		return;
	buf_init(&text, 4096);
	buf_addf(&text, "%s – ", d->p->row->title);
	if (d->of == DRAFT_NODE)
		add_host(&text, d->s, d->node);
	else if (d->of == DRAFT_BY_NODE)
		add_compared(&text, d);
	else if (d->of == DRAFT_NODE_HEAT)
		add_rows(&text, d);
	else
		buf_addf(&text, "%s of %zu nodes", how[d->p->row->share ? FOLD_MEAN : fold], d->s->nr_nodes);
	d->chart.title = charts_text(d->m, &text);
}

static void set_footnote(struct draft *d)
{
	const struct curves_node *node = NULL;
	bool range = false;

	for (size_t i = 0; i < d->nr; i++) {
		const struct curves_node *n = &d->s->curves->node[d->source[i].node];

		if (n->reduced && (!node || n->step_s > node->step_s))
			node = n;
		range |= d->curve[i].low != d->curve[i].mean;
	}
	if (!node)
		return;
	d->chart.footnote =
		owned_printf(d->m, "each point stands for %s%s", format_duration(SHOWN, node->step_s),
			range && d->chart.form == CHART_LINES ? "; the band is its range"
				: d->chart.total && d->chart.total->high != d->chart.total->mean
				? "; grey above: the most of the sum"
				: "");
}

/* The areas are means; what they came to at most is in the sum as it was read. */
static void set_total(struct draft *d)
{
	const struct curves_line *line = d->chart.form == CHART_STACKED ? d->total : NULL;
	struct chart_curve *total = line ? owned_alloc(d->m, 1, sizeof(*total)) : NULL;

	if (!total)
		return;
	*total = curve_of_line(d, line, "sum", CHART_OTHERS);
	d->chart.total = total;
}

/* ---- one chart ---- */

static enum chart_form form_of(const struct draft *d)
{
	if (d->of == DRAFT_BY_NODE)
		return CHART_LINES;
	if (d->of == DRAFT_NODE_HEAT)
		return CHART_HEAT;
	switch (d->p->row->shape) {
	case PANEL_STACKED:
	case PANEL_GROUPS_STACKED:
	case PANEL_PROCESSES:
		return CHART_STACKED;
	case PANEL_HEAT:
		return CHART_HEAT;
	case PANEL_TIMELINE:
		return CHART_TIMELINE;
	default:
		return CHART_LINES;
	}
}

static const struct curves_column *column_of(const struct draft *d)
{
	for (unsigned k = 0; k < PANEL_METRICS; k++)
		if (d->p->query[k] >= 0 && d->s->curves->column[d->p->query[k]].known)
			return &d->s->curves->column[d->p->query[k]];
	return NULL;
}

static void set_unit(struct draft *d, const struct curves_column *column)
{
	bool time_share = column->unit == UNIT_SECONDS && column->per_second;

	d->chart.unit = column->unit;
	d->chart.per_second = column->per_second && !time_share;
	if (time_share)
		d->chart.unit = d->p->row->share ? UNIT_RATIO : UNIT_COUNT;
	d->chart.quantity = d->p->row->quantity;
}

/* What a full colour stands for. */
static double heat_scale(const struct draft *d)
{
	double most = heat_most(d), given = level_value(d, d->p->level[0]);

	if (d->chart.unit == UNIT_RATIO)
		return 1;
	return given >= most && given <= most * HEAT_STRETCH ? given : most > 0 ? most : 1;
}

/* Shares that come near the whole are shown against it. */
static void set_scale(struct draft *d)
{
	double most = highest(d);

	d->chart.y_most = NAN;
	if (d->of == DRAFT_NODE_HEAT)
		d->chart.y_most = heat_scale(d);
	else if (d->chart.form == CHART_HEAT ||
		(d->chart.unit == UNIT_RATIO && d->chart.form == CHART_LINES && most >= 0.25 &&
			most <= 1.001))
		d->chart.y_most = 1;
}

/* 1: there is a chart, 0: nothing to draw, or -ENOMEM. */
static int draft_make(struct draft *d)
{
	const struct curves_column *column = column_of(d);
	int r;

	if (!column)
		return 0;
	d->rates = column->rates;
	r = draft_curves(d);
	if (r >= 0 && d->p->row->shape == PANEL_TIMELINE)
		r = draft_spans(d);
	if (r < 0)
		return r;
	if (!(d->p->row->shape == PANEL_TIMELINE ? d->chart.nr_spans : d->nr))
		return 0;
	d->chart.form = form_of(d);
	if (d->p->row->when_any && !(highest(d) > 0))
		return 0;
	d->chart.from_s = d->s->from_s;
	d->chart.to_s = d->s->to_s;
	d->chart.curve = d->curve;
	d->chart.nr_curves = d->nr;
	set_unit(d, column);
	set_scale(d);
	set_id(d);
	set_title(d, column->fold);
	set_subtitle(d);
	set_peak(d);
	set_levels(d);
	chart_set_bands(&d->chart, d->bands);
	chart_set_marks(&d->chart, d->s->events, d->of == DRAFT_NODE ? (int64_t)d->node : -1, d->m);
	set_total(d);
	set_footnote(d);
	return d->m->failed ? -ENOMEM : 1;
}

static int charts_add(struct charts *f, const struct analysis *s, const struct analysis_panel *p,
	enum draft_of of, uint32_t node, const struct chart_bands *bands)
{
	struct draft d = {.s = s, .p = p, .m = &f->memory, .of = of, .node = node, .bands = bands};
	int r = draft_make(&d);

	if (r <= 0)
		return r;
	f->item[f->nr] = d.chart;
	f->panel[f->nr] = p;
	f->source[f->nr] = d.source;
	f->node[f->nr++] = of == DRAFT_NODE && s->nr_nodes > 1 ? (int64_t)node : -1;
	return 0;
}

/* ---- all of them ---- */

/* Those of which charts are made: all, or of many those that differ most in what the first panel shows. */
static size_t nodes_shown(const struct analysis *s, uint32_t *ret)
{
	size_t nr = 0;

	if (s->page)
		return nodes_shown(s->page, ret);
	if (s->nr_nodes > NODES_SHOWN && s->nr_panels)
		return nodes_pick(s, s->panel[0].whole[0], NODES_SHOWN, ret);
	for (uint32_t i = 0; i < s->nr_nodes; i++)
		if (s->curves->node[i].nr_times > 1)
			ret[nr++] = i;
	return nr;
}

static int panel_charts(struct charts *f, const struct analysis *s, const struct analysis_panel *p,
	const uint32_t *node, size_t nr, const struct chart_bands *bands)
{
	int r = 0;

	if (p->row->combined && s->nr_nodes > 1) {
		r = charts_add(f, s, p, DRAFT_ALL, 0, &bands[nr]);
		if (r >= 0 && nr > 1)
			r = charts_add(f, s, p, DRAFT_BY_NODE, 0, &bands[nr]);
		if (r >= 0 && p->row->heat && s->nr_nodes >= HEAT_NODES)
			r = charts_add(f, s, p, DRAFT_NODE_HEAT, 0, &bands[nr]);
	}
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = charts_add(f, s, p, DRAFT_NODE, node[i], &bands[i]);
	return r;
}

static int charts_room(struct charts *f, const struct analysis *s)
{
	size_t most = s->nr_panels * (MIN(s->nr_nodes, (size_t)NODES_SHOWN) + 3) + 1;

	f->item = calloc(most, sizeof(*f->item));
	f->panel = calloc(most, sizeof(*f->panel));
	f->source = calloc(most, sizeof(*f->source));
	f->node = calloc(most, sizeof(*f->node));
	return f->item && f->panel && f->source && f->node ? 0 : -ENOMEM;
}

/* Of each node, and behind them of all together: the same for all their charts. */
static int make_bands(
	struct charts *f, const struct analysis *s, const uint32_t *node, size_t nr, struct chart_bands *ret)
{
	int r = 0;

	for (size_t i = 0; i <= nr && r >= 0; i++)
		r = bands_make(s->events, i < nr ? node[i] : bands_node(s->events), s->from_s, s->to_s,
			&f->memory, &ret[i]);
	return r;
}

int charts_make(const struct analysis *s, struct charts **ret)
{
	struct charts *f = calloc(1, sizeof(*f));
	struct chart_bands bands[NODES_SHOWN + 1];
	uint32_t node[NODES_SHOWN];
	size_t nr = 0;
	int r;

	if (!f)
		return -ENOMEM;
	r = charts_room(f, s);
	if (r >= 0 && (s->page || s->to_s > s->from_s))
		nr = nodes_shown(s, node);
	if (r >= 0 && nr && nr < s->nr_nodes && s->nr_nodes > NODES_SHOWN &&
		asprintf(&f->note, "of %zu nodes the %zu that differ most have charts of their own",
			s->nr_nodes, nr) < 0)
		r = -ENOMEM;
	if (r >= 0)
		r = make_bands(f, s, node, nr, bands);
	for (size_t i = 0; nr && i < s->nr_panels && r >= 0; i++)
		r = panel_charts(f, s, &s->panel[i], node, nr, bands);
	if (r < 0) {
		charts_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct charts *charts_free(struct charts *f)
{
	if (!f)
		return NULL;
	owned_free(&f->memory);
	free(f->item);
	free(f->panel);
	free(f->source);
	free(f->node);
	free(f->note);
	free(f);
	return NULL;
}
