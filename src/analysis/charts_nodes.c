/* All nodes of a run in one picture: a row of colour for each, the first on top, sorted as people count.
 *
 * A chart has no more than NODE_ROWS rows, so that each is at least a pixel high: of more nodes, neighbours
 * share one, and it is their mean. Their ticks fall at different instants, so such rows stand on the axis of
 * all nodes together. The colours reach to what each node was given where that is the same for all and not
 * far from what was used, else to the most of all rows. */
#include "analysis/charts_internal.h"

#include "text/words.h"

#include <math.h>
#include <string.h>

struct heat_row {
	const struct curves_line *line;
	const char *name;
};

static int by_name(const void *a, const void *b)
{
	const struct heat_row *x = a, *y = b;
	int order = strverscmp(x->name, y->name);

	return order ? order : x->line->node < y->line->node ? -1 : 1;
}

/* ---- what a row shows ---- */

/* The main metric of one node, or the sum of so many from it on: in and out. */
static const struct curves_line *line_of_node(struct draft *d, uint32_t node, unsigned first)
{
	const struct curves_line *line[PANEL_METRICS];
	size_t nr = 0;

	for (unsigned k = first; k < first + d->p->row->heat && k < PANEL_METRICS; k++) {
		size_t n;
		const struct curves_line *own = lines_of(d->s, d->p->whole[k], node, &n);

		if (n && !isnan(own->most))
			line[nr++] = own;
	}
	return nr > 1 ? fold_lines(d, line, nr, FOLD_SUM) : nr ? line[0] : NULL;
}

static size_t gather_rows(struct draft *d, struct heat_row *row)
{
	int query = analysis_main_query(d->s, d->p);
	unsigned first = 0;
	size_t nr = 0;

	while (first + 1 < PANEL_METRICS && d->p->whole[first] != query)
		first++;
	for (uint32_t node = 0; query >= 0 && node < d->s->nr_nodes; node++) {
		const struct curves_line *line = line_of_node(d, node, first);

		if (line && d->s->curves->node[node].nr_times)
			row[nr++] = (struct heat_row){line, line_label(d->m, line, NULL)};
	}
	qsort(row, nr, sizeof(*row), by_name);
	return nr;
}

/* ---- several nodes in a row ---- */

/* Adds what the node had at each point of the axis: its last value up to there. */
static void add_to_row(const struct curves_node *axis, const struct curves_node *node,
	const struct curves_line *line, float *sum, float *known)
{
	size_t at = 0;

	for (size_t i = 0; i < axis->nr_times; i++) {
		double until = axis->time_s[i] + axis->step_s / 2;

		while (at < node->nr_times && node->time_s[at] <= until)
			at++;
		if (!at || node->time_s[at - 1] < axis->time_s[i] - axis->step_s - node->step_s ||
			isnan(line->mean[at - 1]))
			continue;
		sum[i] += line->mean[at - 1];
		known[i] += 1;
	}
}

static const struct curves_line *mean_of_rows(struct draft *d, const struct heat_row *row, size_t nr)
{
	const struct curves_node *axis = &d->s->curves->node[d->s->nr_nodes];
	struct curves_line *line = owned_alloc(d->m, 1, sizeof(*line));
	float *mean = owned_alloc(d->m, axis->nr_times, sizeof(*mean));
	float *known = owned_alloc(d->m, axis->nr_times, sizeof(*known));
	struct point_sum points = POINT_SUM_NONE;

	if (!line || !mean || !known)
		return NULL;
	*line = *row[0].line;
	line->node = (uint32_t)d->s->nr_nodes;
	line->mean = line->low = line->high = mean;
	for (size_t i = 0; i < nr; i++)
		add_to_row(axis, &d->s->curves->node[row[i].line->node], row[i].line, mean, known);
	for (size_t i = 0; i < axis->nr_times; i++) {
		mean[i] = known[i] > 0 ? mean[i] / known[i] : NAN;
		point_sum_add(&points, axis, i, d->rates, (double)mean[i], (double)mean[i]);
	}
	line->average = point_sum_mean(&points);
	line->most = line->highest = points.most;
	line->most_at_s = points.most_at_s;
	return line;
}

/* ---- words and colours ---- */

void node_heat_subtitle(struct draft *d)
{
	const struct heat_row *row = d->heat_row, *most = NULL, *least = NULL;
	double sum = 0, known = 0;
	struct buf text;
	bool counted;

	for (size_t i = 0; i < d->nr_heat_rows; i++) {
		double mean = row[i].line->average;

		if (isnan(mean))
			continue;
		sum += mean;
		known++;
		most = most && most->line->average >= mean ? most : &row[i];
		least = least && least->line->average <= mean ? least : &row[i];
	}
	if (!most)
		return;
	buf_init(&text, 4096);
	counted = d->p->row->quantity && d->chart.unit == UNIT_COUNT;
	buf_addf(&text, "a node: mean %s%s%s", chart_value(SHOWN, d, sum / known), counted ? " " : "",
		counted ? d->p->row->quantity : "");
	if (most->line->average > least->line->average)
		buf_addf(&text, " · highest mean %s: %s · lowest %s: %s",
			chart_value(SHOWN, d, most->line->average), most->name,
			chart_value(SHOWN, d, least->line->average), least->name);
	if (d->nodes_in_row > 1)
		buf_addf(&text, " · a row is the mean of %zu nodes", d->nodes_in_row);
	d->chart.subtitle = charts_text(d->m, &text);
}

/* The most of what is drawn: peaks between samples would make all else pale. */
double heat_most(const struct draft *d)
{
	double most = 0;

	for (size_t i = 0; i < d->nr; i++)
		for (size_t at = 0; at < d->curve[i].nr; at++)
			if ((double)d->curve[i].mean[at] > most)
				most = (double)d->curve[i].mean[at];
	return most;
}

void curves_node_heat(struct draft *d)
{
	struct heat_row *row = owned_alloc(d->m, d->s->nr_nodes + 1, sizeof(*row));
	size_t nr = row ? gather_rows(d, row) : 0, each = (nr + NODE_ROWS - 1) / NODE_ROWS, last;

	if (nr < HEAT_NODES)
		return;
	d->nodes_in_row = each;
	d->heat_row = row;
	d->nr_heat_rows = nr;
	/* Charts begin at the bottom. */
	last = (nr - 1) / each * each;
	for (size_t i = last + each; i >= each; i -= each) {
		const struct heat_row *first = &row[i - each];
		size_t n = MIN(each, nr - (i - each));
		const struct curves_line *line = each > 1 ? mean_of_rows(d, first, n) : first->line;
		const char *name = n > 1
			? owned_printf(d->m, "%.100s – %.100s", first->name, first[n - 1].name)
			: first->name;

		if (line && name)
			draft_add(d, line, name, 0);
	}
}
