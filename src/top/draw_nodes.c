/* Many nodes: a row for each, with what it does now and did in the last minutes; the one that does much less
 * than the others is marked. */
#include "top/app.h"

#include "base/units.h"
#include "text/words.h"

#include <math.h>
#include <string.h>

#define STRAGGLER 0.7 /* of the others' mean, over the window */

struct node_numbers {
	double cores, cpus, memory, limit, mean; /* mean: cores over the window */
	struct node_view view;
};

static double mean_cores(const struct node_view *v, int64_t window_ns)
{
	double sum = 0;
	size_t nr = 0, at = v->reading ? reading_index(v->reading, v->time_ns) : 0;

	for (size_t i = at + 1; v->now && i--;) {
		const struct top_point *p = reading_point(v->reading, i);

		if (p->time_ns < v->time_ns - window_ns)
			break;
		if (isnan(p->value[TOP_CORES]))
			continue;
		sum += p->value[TOP_CORES];
		nr++;
	}
	return nr ? sum / (double)nr : NAN;
}

static struct node_numbers numbers_of(struct top_app *a, size_t i)
{
	struct node_numbers n = {NAN, NAN, NAN, NAN, NAN, model_view(&a->m, i, false)};

	if (!n.view.now)
		return n;
	n.cores = n.view.now->value[TOP_CORES];
	n.cpus = n.view.now->value[TOP_CPUS];
	n.memory = point_memory(n.view.now);
	n.limit = n.view.now->value[TOP_LIMIT];
	n.mean = mean_cores(&n.view, a->m.window_ns);
	return n;
}

/* The node that used least, if that is far below the mean of the others; TOP_ALL: there is none. */
static size_t straggler(const struct node_numbers *n, size_t nr, double *ret_share)
{
	double sum = 0, least = INFINITY;
	size_t which = TOP_ALL, known = 0;

	for (size_t i = 0; i < nr; i++) {
		if (isnan(n[i].mean))
			continue;
		sum += n[i].mean;
		known++;
		if (n[i].mean < least) {
			least = n[i].mean;
			which = i;
		}
	}
	if (known < 2 || sum - least <= 0.05 * (double)known)
		return TOP_ALL;
	*ret_share = least / ((sum - least) / (double)(known - 1));
	return *ret_share < STRAGGLER ? which : TOP_ALL;
}

static void draw_node(
	struct top_app *a, struct screen *s, size_t i, const struct node_numbers *n, unsigned row)
{
	const struct top_node *node = &a->m.node[i];
	unsigned name = MIN(MAX(s->columns / 5, 8u), 24u), column = name + 1, width;
	const char *host = node->host && *node->host ? node->host : node->path;
	float value[512];

	frame_text(s, 0, row, host, strlen(host), name, INK_PLAIN);
	if (node->why || !n->view.now) {
		frame_words(s, column, row, node->why ? node->why : "nothing is recorded yet",
			s->columns - MIN(column, s->columns), INK_DIM);
		return;
	}
	frame_printf(s, column, row, 12, INK_PLAIN, "%5s/%-4s", format_cores(SHOWN, n->cores),
		n->cpus > 0 ? format_number(SHOWN, n->cpus) : "-");
	column += 12;
	frame_printf(s, column, row, 22, INK_PLAIN, "%s%s%s", format_bytes(SHOWN, n->memory),
		n->limit > 0 ? " of " : "", n->limit > 0 ? format_bytes(SHOWN, n->limit) : "");
	column += 23;
	if (column + 12 >= s->columns)
		return;
	width = MIN((s->columns - column - 12) / 2, 100u);
	for (unsigned k = 0; k < 2 && width > 2; k++) {
		double most = k ? (n->limit > 0 ? n->limit : 0) : (n->cpus > 0 ? n->cpus : 0);

		curve_values(n->view.reading, k ? TOP_PSS : TOP_CORES, n->view.time_ns, a->m.window_ns,
			width * 2, value);
		for (unsigned h = 0; h < width * 2 && !(most > 0); h++)
			most = known_max(most, value[h]);
		for (unsigned h = 0; h < width * 2; h++)
			value[h] = most > 0 ? (float)(value[h] / most) : NAN;
		frame_curve(s, column, row, width, 1, value, true, k ? INK_MEMORY : INK_CPU);
		column += width + 1;
	}
}

void draw_nodes(struct top_app *a, struct screen *s, unsigned row, unsigned rows)
{
	struct node_numbers *n = calloc(a->m.nr + 1, sizeof(*n));
	double share = NAN;
	size_t slow, from = 0;

	a->nr_heads = 0;
	if (!n || rows < 2) {
		free(n);
		return;
	}
	for (size_t i = 0; i < a->m.nr; i++)
		n[i] = numbers_of(a, i);
	slow = straggler(n, a->m.nr, &share);
	frame_printf(s, 0, row, s->columns, INK_PLAIN, "%-*s %-11s %-22s %s",
		(int)MIN(MAX(s->columns / 5, 8u), 24u), "NODE", "CORES", "MEMORY", "cores, memory over time");
	frame_paper(s, 0, row, s->columns, PAPER_REVERSE);
	row++;
	rows--;
	a->node_row = MIN(a->node_row, a->m.nr ? a->m.nr - 1 : 0);
	if (a->node_row >= rows)
		from = a->node_row - rows + 1;
	a->list_row = row;
	a->list_rows = rows;
	a->top = (uint32_t)from;
	for (size_t i = from; i < a->m.nr && i - from < rows; i++) {
		unsigned at = row + (unsigned)(i - from);

		draw_node(a, s, i, &n[i], at);
		if (i == slow && s->columns > 24)
			frame_printf(s, s->columns - 14, at, 14, INK_ALARM, "slow: %.0f %%", 100 * share);
		else if (a->m.node[i].gone && s->columns > 24)
			frame_words(s, s->columns - 14, at, "unfinished", 14, INK_ALARM);
		else if (a->m.node[i].main && a->m.node[i].main->state == READING_ENDED && s->columns > 24)
			frame_words(s, s->columns - 14, at, "ended", 14, INK_DIM);
		if (i == a->node_row)
			frame_paper(s, 0, at, s->columns, PAPER_REVERSE);
	}
	free(n);
}
