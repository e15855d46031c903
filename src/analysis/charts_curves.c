/* From lines of the curves to curves of a chart: who gets a name and a colour, and what is folded into
 * "others".
 *
 * A colour belongs to who it stands for, not to its place in one picture: a process has that of its rank
 * among those kept, a group that of its name, in every chart. Folding is by the metric's own fold and of the
 * means alone: ranges of several curves do not add up to a range. */
#include "analysis/charts_internal.h"
#include "analysis/rule.h"

#include "query/told.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS 48

/* ---- lines ---- */

const struct curves_line *lines_of(const struct analysis *s, int query, uint32_t node, size_t *ret_nr)
{
	const struct curves_line *line = s->curves->line;
	size_t first = query < 0 ? s->nr_lines : curves_first_line(s->curves, (unsigned)query, node),
	       end = first;

	while (end < s->nr_lines && line[end].query == (unsigned)query && line[end].node == node)
		end++;
	*ret_nr = end - first;
	return *ret_nr ? &line[first] : NULL;
}

static bool is_known(const struct curves_line *line)
{
	return !isnan(line->most);
}

/* It has values, and the panel wants to show them. */
static bool is_drawn(const struct draft *d, const struct curves_line *line)
{
	return is_known(line) && (line->most > 0 || !d->p->row->when_any);
}

/* ---- names ---- */

const char *line_label(struct owned *m, const struct curves_line *line, const char *more)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	add_text(&text, line->name ? line->name : "", line->name_len, LETTERS_UTF8);
	clip(&text, 0, NAME_COLUMNS, true);
	if (more)
		buf_addf(&text, " %s", more);
	return charts_text(m, &text);
}

void analysis_process_name(const struct process_row *row, struct buf *out)
{
	size_t from = out->len;

	if (row->name_len)
		add_text(out, row->name, row->name_len, LETTERS_UTF8);
	else
		buf_adds(out, "?");
	clip(out, from, NAME_COLUMNS, true);
	if (!isnan(row->value[PROCESS_PID]))
		buf_addf(out, " (%.0f)", row->value[PROCESS_PID]);
}

const char *process_label(struct owned *m, const struct process_row *row)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	analysis_process_name(row, &text);
	return charts_text(m, &text);
}

/* Of the processes that are kept: their place in that list; UINT32_MAX: not kept. */
static uint32_t keep_rank(const struct analysis *s, uint32_t node, uint32_t id)
{
	for (size_t i = 0; i < s->nr_keep; i++)
		if (s->keep[i].node == node && s->keep[i].id == id)
			return (uint32_t)i;
	return UINT32_MAX;
}

/* ---- curves ---- */

struct chart_curve curve_of_line(
	const struct draft *d, const struct curves_line *line, const char *name, uint32_t color)
{
	const struct curves_node *node = &d->s->curves->node[line->node];
	/* A share of the time is no more than all of it: what is above was read a little late. */
	double whole = d->p->row->share ? 1 : INFINITY;

	return (struct chart_curve){.name = name,
		.nr = node->nr_times,
		.time_s = node->time_s,
		.mean = line->mean,
		.low = line->low,
		.high = line->high,
		.color = color,
		.average = line->average > whole ? whole : line->average,
		.most = line->most > whole ? whole : line->most,
		.filled = d->p->row->filled,
		.held = told_is(d->s->curves->column[line->query].name)};
}

void draft_add(struct draft *d, const struct curves_line *line, const char *name, uint32_t color)
{
	if (d->nr == d->cap)
		return;
	d->source[d->nr] = (struct chart_source){.node = line->node,
		.process = UINT32_MAX,
		.most_at_s = line->most_at_s,
		.drawn_most = line->highest};
	d->curve[d->nr++] = curve_of_line(d, line, name, color);
}

/* How long a point of the curves stands for what it shows. */
static double point_seconds(const struct curves_node *node, size_t at, bool rates)
{
	if (node->reduced)
		return node->step_s;
	if (rates)
		return at ? node->time_s[at] - node->time_s[at - 1] : 0;
	return at + 1 < node->nr_times ? node->time_s[at + 1] - node->time_s[at] : 0;
}

void point_sum_add(struct point_sum *sum, const struct curves_node *node, size_t at, bool rates, double value,
	double high)
{
	double seconds = point_seconds(node, at, rates);

	if (isnan(value))
		return;
	sum->added += value * seconds;
	sum->known_s += seconds;
	sum->plain += value;
	sum->points++;
	if (isnan(sum->most) || high > sum->most) {
		sum->most = high;
		sum->most_at_s = node->time_s[at];
	}
}

double point_sum_mean(const struct point_sum *sum)
{
	return sum->known_s > 0	  ? sum->added / sum->known_s
		: sum->points > 0 ? sum->plain / sum->points
				  : NAN;
}

static void fold_point(float *to, float *weight, float value, enum metric_fold fold)
{
	if (isnan(value))
		return;
	if (isnan(*to))
		*to = value;
	else if (fold == FOLD_MAX)
		*to = MAX(*to, value);
	else
		*to += value;
	*weight += 1;
}

const struct curves_line *fold_lines(
	struct draft *d, const struct curves_line *const *line, size_t nr, enum metric_fold fold)
{
	const struct curves_node *node = &d->s->curves->node[line[0]->node];
	struct curves_line *sum = owned_alloc(d->m, 1, sizeof(*sum));
	float *mean = owned_alloc(d->m, node->nr_times, sizeof(*mean));
	float *weight = owned_alloc(d->m, node->nr_times, sizeof(*weight));
	struct point_sum points = POINT_SUM_NONE;

	if (!sum || !mean || !weight)
		return NULL;
	*sum = *line[0];
	sum->mean = sum->low = sum->high = mean;
	for (size_t at = 0; at < node->nr_times; at++) {
		mean[at] = NAN;
		for (size_t i = 0; i < nr; i++)
			fold_point(&mean[at], &weight[at], line[i]->mean[at], fold);
		if (fold == FOLD_MEAN || fold == FOLD_NONE)
			mean[at] /= weight[at];
		point_sum_add(&points, node, at, d->rates, (double)mean[at], (double)mean[at]);
	}
	sum->average = point_sum_mean(&points);
	sum->most_at_s = points.most_at_s;
	sum->most = points.most;
	if (!isnan(points.most))
		sum->highest = points.most;
	return sum;
}

const char *others_label(struct owned *m, size_t nr)
{
	return owned_printf(m, "%s %s", format_count(SHOWN, (double)nr), nr == 1 ? "other" : "others");
}

/* The rest of a list as one curve. */
static void add_rest(struct draft *d, const struct curves_line *const *line, size_t nr, enum metric_fold fold)
{
	const struct curves_line *rest = nr ? fold_lines(d, line, nr, fold) : NULL;

	if (rest)
		draft_add(d, rest, others_label(d->m, nr), CHART_OTHERS);
}

/* ---- whole recordings ---- */

/* Beside what the job has, that of a group with others in it would be taken for the job's. */
static bool is_of_others(const struct draft *d, unsigned k)
{
	const struct summary *run = d->s->summary;

	return d->p->row->of_group >> k & 1 &&
		group_has_others(
			d->s, run->nr_nodes ? &run->node[MIN(d->node, run->nr_nodes - 1)] : run, d->node);
}

static void add_dashed(struct draft *d, unsigned k)
{
	if (d->nr)
		d->curve[d->nr - 1].dashed |= d->p->row->dashed >> k & 1;
}

static void curves_whole(struct draft *d)
{
	const struct panel *row = d->p->row;

	for (unsigned k = 0; k < PANEL_METRICS; k++) {
		size_t nr;
		const struct curves_line *line = d->of == DRAFT_ALL
			? &d->s->curves->line[d->p->all[k]]
			: lines_of(d->s, d->p->whole[k], d->node, &nr);

		if (d->of == DRAFT_ALL)
			nr = d->p->nr_all[k];
		if (!nr || !is_drawn(d, line) || is_of_others(d, k))
			continue;
		draft_add(d, line, row->label[k] ? row->label[k] : row->metric[k], k);
		add_dashed(d, k);
	}
}

/* ---- instances ---- */

static int by_most(const void *a, const void *b)
{
	const struct curves_line *x = *(const struct curves_line *const *)a;
	const struct curves_line *y = *(const struct curves_line *const *)b;
	int order = x->most > y->most ? -1 : x->most < y->most;

	return order ? order : x < y ? -1 : x > y;
}

static int by_place(const void *a, const void *b)
{
	const struct curves_line *x = *(const struct curves_line *const *)a;
	const struct curves_line *y = *(const struct curves_line *const *)b;

	return x < y ? -1 : x > y;
}

static bool is_left_out(const struct panel *row, const struct curves_line *line)
{
	return row->without && line->name && line->name_len == strlen(row->without) &&
		!memcmp(line->name, row->without, line->name_len);
}

/* Lines of a query that have values; in `ret`, which the memory keeps. */
static const struct curves_line **known_lines(
	struct draft *d, const struct curves_line *line, size_t nr, size_t *ret_nr)
{
	const struct curves_line **list = owned_alloc(d->m, nr + 1, sizeof(*list));

	*ret_nr = 0;
	for (size_t i = 0; list && i < nr; i++)
		if (is_drawn(d, &line[i]) && !is_left_out(d->p->row, &line[i]))
			list[(*ret_nr)++] = &line[i];
	return list;
}

/* The highest come first, in their own order; the rest behind. Returns how many are named. */
static size_t put_highest_first(const struct curves_line **list, size_t nr, size_t most)
{
	if (nr <= most)
		return nr;
	qsort(list, nr, sizeof(*list), by_most);
	qsort(list, most - 1, sizeof(*list), by_place);
	return most - 1;
}

static void curves_instances(struct draft *d)
{
	const struct panel *row = d->p->row;

	for (unsigned k = 0; k < PANEL_METRICS; k++) {
		size_t nr, named;
		const struct curves_line *first = lines_of(d->s, d->p->query[k], d->node, &nr);
		const struct curves_line **list = nr ? known_lines(d, first, nr, &nr) : NULL;

		if (!list || !nr)
			continue;
		named = put_highest_first(list, nr, INSTANCES_NAMED);
		for (size_t i = 0; i < named; i++) {
			draft_add(d, list[i], line_label(d->m, list[i], row->label[k]), (uint32_t)i);
			add_dashed(d, k);
			d->curve[d->nr - 1].dashed |= list[i]->counted_elsewhere;
		}
		add_rest(d, list + named, nr - named, d->s->curves->column[d->p->query[k]].fold);
	}
}

static void curves_heat(struct draft *d)
{
	size_t nr, each;
	const struct curves_line *first = lines_of(d->s, d->p->query[0], d->node, &nr);
	const struct curves_line **list = nr ? known_lines(d, first, nr, &nr) : NULL;

	if (!list)
		return;
	each = (nr + HEAT_ROWS - 1) / HEAT_ROWS;
	for (size_t i = 0; i < nr; i += MAX(each, 1u)) {
		size_t n = MIN(each, nr - i);
		const struct curves_line *line = n > 1 ? fold_lines(d, list + i, n, FOLD_MEAN) : list[i];
		const char *last = n > 1 ? line_label(d->m, list[i + n - 1], NULL) : NULL;

		if (line)
			draft_add(d, line,
				line_label(d->m, list[i], last ? owned_printf(d->m, "– %.100s", last) : NULL),
				0);
	}
}

/* ---- groups ---- */

/* By name, in the order in which the summary has them: the same in every chart and on every node. */
static uint32_t group_color(const struct analysis *s, const struct curves_line *line)
{
	for (size_t i = 0; i < s->summary->nr_groups; i++) {
		const char *name = s->summary->group[i].name;

		if (name && strlen(name) == line->name_len && !memcmp(name, line->name, line->name_len))
			return (uint32_t)i;
	}
	return 0;
}

static void curves_groups(struct draft *d)
{
	const struct panel *row = d->p->row;
	bool several = row->metric[1];

	for (unsigned k = 0; k < PANEL_METRICS; k++) {
		size_t nr, named;
		const struct curves_line *first = d->of == DRAFT_ALL
			? &d->s->curves->line[d->p->all[k]]
			: lines_of(d->s, d->p->query[k], d->node, &nr);
		const struct curves_line **list;

		if (d->of == DRAFT_ALL)
			nr = d->p->nr_all[k];
		list = nr ? known_lines(d, first, nr, &nr) : NULL;
		if (!list || !nr)
			continue;
		named = put_highest_first(list, nr, CURVES_NAMED);
		for (size_t i = 0; i < named; i++) {
			draft_add(d, list[i], line_label(d->m, list[i], several ? row->label[k] : NULL),
				group_color(d->s, list[i]));
			add_dashed(d, k);
			d->source[d->nr - 1].group = line_label(d->m, list[i], NULL);
		}
		add_rest(d, list + named, nr - named, FOLD_SUM);
		if (named < nr)
			add_dashed(d, k);
	}
}

/* ---- processes ---- */

static void add_process(struct draft *d, const struct curves_line *line, uint32_t rank)
{
	uint32_t at = d->s->keep_row[rank];

	draft_add(d, line, process_label(d->m, &d->s->processes->row[at]), rank);
	d->source[d->nr - 1].process = at;
}

static size_t processes_of_node(const struct analysis *s, uint32_t node)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->processes->nr; i++)
		nr += s->processes->row[i].node == node;
	return nr;
}

static void curves_processes(struct draft *d)
{
	size_t nr, nr_rest = 0, named = 0;
	const struct curves_line *line = lines_of(d->s, d->p->query[0], d->node, &nr), *others;
	const struct curves_line **rest = owned_alloc(d->m, nr + 1, sizeof(*rest));

	if (!rest)
		return;
	for (size_t i = 0; i < nr; i++) {
		uint32_t rank = line[i].others ? UINT32_MAX : keep_rank(d->s, d->node, line[i].id);

		if (!is_known(&line[i]))
			continue;
		if (rank < d->s->nr_named)
			add_process(d, &line[i], rank), named++;
		else
			rest[nr_rest++] = &line[i];
	}
	if (!nr_rest)
		return;
	others = nr_rest > 1 ? fold_lines(d, rest, nr_rest, d->s->curves->column[d->p->query[0]].fold)
			     : rest[0];
	nr = processes_of_node(d->s, d->node);
	if (others)
		draft_add(d, others, nr > named ? others_label(d->m, nr - named) : "others", CHART_OTHERS);
}

/* ---- nodes ---- */

struct distance {
	uint32_t node;
	double far;
};

static int by_distance(const void *a, const void *b)
{
	const struct distance *x = a, *y = b;

	if (x->far != y->far)
		return x->far > y->far ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

size_t nodes_pick(const struct analysis *s, int query, size_t most, uint32_t *ret)
{
	_cleanup_(freep) struct distance *all = NULL;
	double sum = 0;
	size_t nr = 0;

	if (s->page)
		return nodes_pick(s->page, query, most, ret);
	all = calloc(s->nr_nodes + 1, sizeof(*all));
	for (uint32_t node = 0; all && node < s->nr_nodes; node++) {
		size_t n;
		const struct curves_line *line = lines_of(s, query, node, &n);

		if (!n || !is_known(line) || isnan(line->average) || s->curves->node[node].nr_times < 2)
			continue;
		all[nr++] = (struct distance){node, line->average};
		sum += line->average;
	}
	for (size_t i = 0; i < nr; i++)
		all[i].far = fabs(all[i].far - sum / (double)nr);
	if (nr)
		qsort(all, nr, sizeof(*all), by_distance);
	nr = MIN(nr, most);
	for (size_t i = 0; i < nr; i++)
		ret[i] = all[i].node;
	qsort(ret, nr, sizeof(*ret), by_number);
	return nr;
}

/* One metric, a curve for each node; of many, those that differ most and the mean of all. */
static void curves_nodes(struct draft *d)
{
	uint32_t node[NODES_NAMED];
	int query = analysis_main_query(d->s, d->p);
	size_t nr, n;

	if (query < 0)
		return;
	nr = nodes_pick(d->s, query, NODES_NAMED, node);
	for (size_t i = 0; i < nr; i++) {
		const struct curves_line *line = lines_of(d->s, query, node[i], &n);

		draft_add(d, line, line_label(d->m, line, NULL), (uint32_t)i);
	}
	for (size_t i = 0; i < d->nr; i++)
		d->curve[i].filled = false;
	if (nr < 2) {
		d->nr = 0;
		return;
	}
	if (d->p->mean >= 0 && is_known(&d->s->curves->line[d->p->mean]) && d->s->nr_nodes > nr) {
		draft_add(d, &d->s->curves->line[d->p->mean], "mean of all nodes", CHART_OTHERS);
		d->curve[d->nr - 1].filled = false;
		d->curve[d->nr - 1].dashed = true;
	}
}

/* ---- all of them ---- */

/* No fewer than there will be. */
static size_t count_most(const struct draft *d)
{
	size_t most = PANEL_METRICS + NODES_NAMED + (d->of == DRAFT_NODE_HEAT ? NODE_ROWS : 0) + 1;

	for (unsigned k = 0; k < PANEL_METRICS; k++) {
		size_t nr;

		lines_of(d->s, d->p->query[k], d->node, &nr);
		most += nr + d->p->nr_all[k] + 1;
	}
	return most;
}

int draft_curves(struct draft *d)
{
	enum panel_shape shape = d->p->row->shape;

	d->cap = count_most(d);
	d->curve = owned_alloc(d->m, d->cap, sizeof(*d->curve));
	d->source = owned_alloc(d->m, d->cap, sizeof(*d->source));
	if (!d->curve || !d->source)
		return -ENOMEM;
	if (d->of == DRAFT_BY_NODE)
		curves_nodes(d);
	else if (d->of == DRAFT_NODE_HEAT)
		curves_node_heat(d);
	else if (shape == PANEL_GROUPS || shape == PANEL_GROUPS_STACKED)
		curves_groups(d);
	else if (d->of == DRAFT_ALL || shape == PANEL_LINES || shape == PANEL_STACKED)
		curves_whole(d);
	else if (shape == PANEL_INSTANCES)
		curves_instances(d);
	else if (shape == PANEL_HEAT)
		curves_heat(d);
	else
		curves_processes(d);
	if (shape == PANEL_PROCESSES && d->of == DRAFT_NODE) {
		size_t nr;

		d->total = lines_of(d->s, d->p->whole[0], d->node, &nr);
	}
	return d->m->failed ? -ENOMEM : 0;
}
