/* Many nodes and ranks: a row for each, with what it does now and did in the last minutes; the one that does
 * much less than the others is marked. Of one node with several groups of processes, a row for each group. */
#include "top/app.h"

#include "base/owned.h"
#include "base/units.h"
#include "text/words.h"
#include "top/parts.h"

#include <math.h>
#include <string.h>

#define STRAGGLER 0.7 /* of the others' mean, over the window */
#define CURVE_MOST 100u
#define FLAG 11 /* columns of "slow: 12 %" */

struct row_numbers {
	double cores, cpus, memory, limit;
	struct node_view view;
	float curve[2][2 * CURVE_MOST]; /* cores, memory */
};

/* ---- which rows ---- */

static long rank_number(const char *name)
{
	return strtol(name + 5, NULL, 10);
}

/* Ranks by their number, other groups as they came. */
static int add_groups(struct top_app *a, size_t node, const struct top_parts *p)
{
	size_t from = a->nr_parts;
	bool ranks = false;

	for (unsigned g = 0; g < parts_nr(p); g++)
		ranks |= part_is_rank(parts_name(p, g));
	if (!ranks && parts_nr(p) < 2) /* the node again */
		return 0;
	for (unsigned g = 0; g < parts_nr(p); g++) {
		const char *name = parts_name(p, g);
		struct part_row *row;
		size_t at;

		if (ranks && !part_is_rank(name))
			continue;
		if (ARRAY_ROOM(a->part, a->cap_parts, a->nr_parts + 1) < 0)
			return -ENOMEM;
		for (at = a->nr_parts++; ranks && at > from; at--) {
			row = &a->part[at - 1];
			if (rank_number(parts_name(p, (unsigned)row->group)) <= rank_number(name))
				break;
			a->part[at] = *row;
		}
		a->part[at] = (struct part_row){node, (int)g, ranks, NAN};
	}
	return 0;
}

static double mean_cores(const struct node_view *v, int group, int64_t window_ns)
{
	double sum = 0;
	size_t nr = 0, at = v->reading ? reading_index(v->reading, v->time_ns) : 0;

	for (size_t i = at + 1; v->now && i--;) {
		double cores = reading_value(v->reading, i, TOP_CORES, group);

		if (reading_point(v->reading, i)->time_ns < v->time_ns - window_ns)
			break;
		if (isnan(cores))
			continue;
		sum += cores;
		nr++;
	}
	return nr ? sum / (double)nr : NAN;
}

/* Unfolded are the groups of few nodes, unless the user wants it otherwise. */
static bool shows_groups(const struct top_app *a)
{
	return a->m.nr == 1 || (a->parts_fold ? a->parts_fold > 0 : a->m.nr <= 16);
}

static int find_rows(struct top_app *a)
{
	int r = 0;

	a->nr_parts = 0;
	for (size_t i = 0; i < a->m.nr && r >= 0; i++) {
		const struct top_reading *known = a->m.node[i].main;
		struct node_view v = model_view(&a->m, i, false);
		size_t from = a->nr_parts;

		r = ARRAY_ROOM(a->part, a->cap_parts, a->nr_parts + 1);
		if (r < 0)
			break;
		a->part[a->nr_parts++] = (struct part_row){i, -1, false, NAN};
		if (shows_groups(a) && known && (v.reading ? v.reading : known)->parts)
			r = add_groups(a, i, (v.reading ? v.reading : known)->parts);
		for (size_t k = from; k < a->nr_parts; k++)
			a->part[k].mean = v.ended ? NAN : mean_cores(&v, a->part[k].group, a->m.window_ns);
	}
	return r;
}

/* Of the nodes, or of the ranks: the one that used least, if that is far below the mean of the others;
 * nr_parts: there is none. */
static size_t straggler(const struct top_app *a, bool ranks, double *ret_share)
{
	double sum = 0, least = INFINITY;
	size_t which = a->nr_parts, known = 0;

	for (size_t i = 0; i < a->nr_parts; i++) {
		const struct part_row *p = &a->part[i];

		if (isnan(p->mean) || (ranks ? !p->is_rank : p->group >= 0))
			continue;
		sum += p->mean;
		known++;
		if (p->mean < least) {
			least = p->mean;
			which = i;
		}
	}
	if (known < 2 || sum - least <= 0.05 * (double)known)
		return a->nr_parts;
	*ret_share = least / ((sum - least) / (double)(known - 1));
	return *ret_share < STRAGGLER ? which : a->nr_parts;
}

/* ---- a row ---- */

static void numbers_of(struct top_app *a, const struct part_row *p, unsigned width, struct row_numbers *n)
{
	n->view = model_view(&a->m, p->node, false);
	n->cores = n->cpus = n->memory = n->limit = NAN;
	if (!n->view.now)
		return;
	if (!n->view.ended) {
		size_t at = reading_index(n->view.reading, n->view.time_ns);

		n->cores = reading_value(n->view.reading, at, TOP_CORES, p->group);
		n->memory = reading_value(n->view.reading, at, TOP_PSS, p->group);
		n->cpus = p->group < 0 ? n->view.now->value[TOP_CPUS] : NAN;
		n->limit = p->group < 0 ? n->view.now->value[TOP_LIMIT] : NAN;
	}
	for (unsigned k = 0; k < 2 && width; k++)
		curve_values(n->view.reading, k ? TOP_PSS : TOP_CORES, p->group, n->view.time_ns,
			a->m.window_ns, width * 2, n->curve[k]);
}

static bool same_host(const struct top_app *a, size_t node)
{
	const char *host = a->m.node[node].host;

	for (size_t i = node ? node - 1 : 1; i < MIN(node + 2, a->m.nr); i++)
		if (i != node && host && a->m.node[i].host && !strcmp(host, a->m.node[i].host))
			return true;
	return false;
}

/* The host; of several recordings of one host the file. */
static void draw_name(
	struct top_app *a, struct screen *s, const struct part_row *p, unsigned row, unsigned width)
{
	const struct top_node *node = &a->m.node[p->node];
	const char *slash = strrchr(node->path, '/'), *name = slash ? slash + 1 : node->path;
	size_t len = strlen(name);

	if (p->group >= 0) {
		name = parts_name(node->main->parts, (unsigned)p->group);
		frame_text(s, 2, row, name, strlen(name), width - 2, INK_PLAIN);
		return;
	}
	if (node->host && *node->host && !same_host(a, p->node)) {
		name = node->host;
		len = strlen(name);
	} else if (len > strlen(RECORDING_SUFFIX) &&
		!strcmp(name + len - strlen(RECORDING_SUFFIX), RECORDING_SUFFIX)) {
		len -= strlen(RECORDING_SUFFIX);
	}
	frame_text(s, 0, row, name, len, width, INK_PLAIN);
}

struct rows_layout {
	unsigned name, memory, curve; /* columns of each */
	double most[2];		      /* what the top of all curves stands for */
};

static void draw_row(struct top_app *a, struct screen *s, const struct part_row *p,
	const struct row_numbers *n, const struct rows_layout *l, unsigned row)
{
	const struct top_node *node = &a->m.node[p->node];
	unsigned column = l->name + 1;
	char cpus[UNITS_SIZE + 1] = "";

	draw_name(a, s, p, row, l->name);
	if (node->why || !n->view.now) {
		frame_words(s, column, row, node->why ? node->why : "nothing is known yet",
			s->columns - MIN(column, s->columns), INK_DIM);
		return;
	}
	if (n->cpus > 0)
		snprintf(cpus, sizeof(cpus), "/%s", format_number(SHOWN, n->cpus));
	frame_printf(s, column, row, 11, INK_PLAIN, "%5s%s",
		isnan(n->cores) ? "-" : format_cores(SHOWN, n->cores), cpus);
	column += 12;
	frame_printf(s, column, row, l->memory, INK_PLAIN, "%s%s%s",
		isnan(n->memory) ? "-" : format_bytes(SHOWN, n->memory), n->limit > 0 ? " of " : "",
		n->limit > 0 ? format_bytes(SHOWN, n->limit) : "");
	column += l->memory + 1;
	for (unsigned k = 0; k < 2 && l->curve; k++) {
		float value[2 * CURVE_MOST];

		for (unsigned h = 0; h < l->curve * 2; h++)
			value[h] = l->most[k] > 0 ? (float)(n->curve[k][h] / l->most[k]) : NAN;
		frame_curve(s, column, row, l->curve, 1, value, true, k ? INK_MEMORY : INK_CPU);
		column += l->curve + 1;
	}
}

static void draw_flag(struct top_app *a, struct screen *s, const struct part_row *p, unsigned row, bool ended,
	bool slow, double share)
{
	const struct top_node *node = &a->m.node[p->node];
	unsigned column = s->columns - FLAG;

	if (slow)
		frame_printf(s, column, row, FLAG, INK_ALARM, "slow: %.0f %%", 100 * share);
	else if (p->group < 0 && ended && node->gone)
		frame_words(s, column, row, "unfinished", FLAG, INK_ALARM);
	else if (p->group < 0 && ended)
		frame_words(s, column, row, "ended", FLAG, INK_DIM);
}

/* At this moment; at the newest one also just now. */
static bool row_has_ended(const struct top_app *a, const struct part_row *p, const struct row_numbers *n)
{
	const struct top_reading *r = a->m.node[p->node].main;

	return n->view.ended || (r && r->state == READING_ENDED && model_now(&a->m) >= model_end(&a->m));
}

static struct rows_layout layout_of(const struct screen *s)
{
	struct rows_layout l = {.name = MIN(MAX(s->columns / 5, 8u), 24u), .memory = 22};
	unsigned used;

	if (s->columns < 64)
		l.memory = 10;
	used = l.name + 1 + 12 + l.memory + 1 + FLAG + 1;
	l.curve = s->columns > used + 8 ? MIN((s->columns - used) / 2 - 1, CURVE_MOST) : 0;
	return l;
}

int draw_nodes(struct top_app *a, struct screen *s, unsigned row, unsigned rows)
{
	struct rows_layout l = layout_of(s);
	struct row_numbers *n;
	double share[2] = {NAN, NAN};
	size_t slow[2], from = 0, nr;
	int r = find_rows(a);

	a->nr_heads = 0;
	if (r < 0 || rows < 2)
		return r;
	for (unsigned k = 0; k < 2; k++)
		slow[k] = straggler(a, k, &share[k]);
	frame_printf(s, 0, row, s->columns, INK_PLAIN, "%-*s %-11s %-*s %s", (int)l.name,
		a->m.nr > 1 ? "NODE" : "GROUP", "CORES", (int)l.memory, "MEMORY",
		l.curve ? "cores, memory over time" : "");
	frame_paper(s, 0, row++, s->columns, PAPER_REVERSE);
	rows--;
	a->node_row = MIN(a->node_row, a->nr_parts ? a->nr_parts - 1 : 0);
	if (a->node_row >= rows)
		from = a->node_row - rows + 1;
	a->list_row = row;
	a->list_rows = rows;
	a->top = (uint32_t)from;
	nr = MIN(a->nr_parts - from, (size_t)rows);
	n = calloc(nr + 1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		numbers_of(a, &a->part[from + i], l.curve, &n[i]);
		for (unsigned k = 0; k < 2 && n[i].view.now; k++)
			for (unsigned h = 0; h < l.curve * 2; h++)
				l.most[k] = known_max(l.most[k], n[i].curve[k][h]);
	}
	for (size_t i = 0; i < nr; i++) {
		const struct part_row *p = &a->part[from + i];
		unsigned at = row + (unsigned)i;

		draw_row(a, s, p, &n[i], &l, at);
		if (s->columns >= 40)
			draw_flag(a, s, p, at, row_has_ended(a, p, &n[i]), from + i == slow[p->is_rank],
				share[p->is_rank]);
		if (from + i == a->node_row)
			frame_paper(s, 0, at, s->columns, PAPER_REVERSE);
	}
	free(n);
	return 0;
}
