/* An earlier run of the same command, laid over this one: phases that both have told, each repetition by its
 * number, begin and end together; between them time runs as it did then. Behind all nodes stands the sum of
 * its nodes, behind one node the one of that name or place, behind a group its group of that name. */
#include "top/model.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GHOST_POINTS ((size_t)1 << 20) /* of all its nodes together */
#define GHOST_POINTS_LEAST ((size_t)4096)

struct ghost {
	struct ghost_node {
		struct top_reading *reading;
		char *path, *host;
		int64_t offset_ns;
	} * node;
	size_t nr;
	/* What it is behind now: nodes from `first` on, or one that was read for a group. */
	size_t first, nr_shown;
	struct top_reading *of_group; /* NULL: no group is shown */
	size_t focus;		      /* of the model, with its group, when that was chosen */
	char *group;
	bool chosen;
	char why[160]; /* nothing is shown */
};

static int read_whole(
	const char *path, const char *group, size_t points, struct top_reading **ret, struct buf *reterr)
{
	const struct reading_options o = {.group = group, .points = points};
	int r = reading_open(path, &o, ret, reterr);

	while (r >= 0 && (r = reading_step(*ret)) == 1)
		;
	if (r >= 0 && !(*ret)->nr_points) {
		buf_addf(reterr, "%s has no ticks to compare with", path);
		r = -ENODATA;
	}
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "%s: %s", path, strerror(-r));
	return r;
}

static int read_nodes(struct ghost *g, const struct run *run, struct buf *reterr)
{
	int64_t first = INT64_MAX;
	int r = 0;

	for (size_t i = 0; i < run->nr && r >= 0; i++) {
		struct ghost_node *n = &g->node[g->nr];

		r = read_whole(run->path[i], NULL, MAX(GHOST_POINTS / run->nr, GHOST_POINTS_LEAST),
			&n->reading, reterr);
		if (r < 0)
			break;
		g->nr++;
		n->path = strdup(run->path[i]);
		n->host = strdup(meta_text(reading_meta(n->reading), "host"));
		n->offset_ns = walk_start(n->reading->walk);
		first = MIN(first, n->offset_ns);
		r = n->path && n->host ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < g->nr; i++)
		g->node[i].offset_ns -= first;
	return r;
}

int ghost_open(const char *path, struct ghost **ret, struct buf *reterr)
{
	struct ghost *g = calloc(1, sizeof(*g));
	struct run *run = NULL;
	int r = g ? run_open(&path, 1, &run, reterr) : -ENOMEM;

	if (r >= 0) {
		g->node = calloc(run->nr + 1, sizeof(*g->node));
		r = g->node ? read_nodes(g, run, reterr) : -ENOMEM;
	}
	run_close(run);
	if (r < 0) {
		if (!reterr->len)
			buf_addf(reterr, "%s: %s", path, strerror(-r));
		ghost_close(g);
		return r;
	}
	*ret = g;
	return 0;
}

struct ghost *ghost_close(struct ghost *g)
{
	for (size_t i = 0; g && g->node && i <= g->nr; i++) {
		reading_close(g->node[i].reading);
		free(g->node[i].path);
		free(g->node[i].host);
	}
	if (g) {
		reading_close(g->of_group);
		free(g->node);
		free(g->group);
	}
	free(g);
	return NULL;
}

/* ---- behind what ---- */

static void choose_group(struct ghost *g, const char *group)
{
	struct buf ignored;

	buf_init(&ignored, 4096);
	if (read_whole(g->node[g->first].path, group, GHOST_POINTS, &g->of_group, &ignored) < 0) {
		g->of_group = reading_close(g->of_group);
		g->nr_shown = 0;
		snprintf(g->why, sizeof(g->why), "no such group in the earlier run");
	}
	buf_release(&ignored);
}

static void choose_node(struct ghost *g, const struct model *m)
{
	const char *host = m->node[m->focus].host;

	g->nr_shown = 1;
	for (size_t i = 0; i < g->nr && host && *host; i++)
		if (!strcmp(g->node[i].host, host)) {
			g->first = i;
			return;
		}
	g->first = m->focus;
	if (g->nr == m->nr)
		return;
	g->nr_shown = g->first = 0;
	snprintf(g->why, sizeof(g->why), "no such node in the earlier run, which had %zu", g->nr);
}

const char *ghost_look(struct ghost *g, const struct model *m)
{
	bool same_group = !strcmp(g->group ? g->group : "", m->group ? m->group : "");

	if (g->chosen && g->focus == m->focus && same_group)
		return *g->why ? g->why : NULL;
	g->of_group = reading_close(g->of_group);
	free(g->group);
	g->group = m->group ? strdup(m->group) : NULL;
	g->focus = m->focus;
	g->chosen = true;
	*g->why = 0;
	g->first = 0;
	g->nr_shown = g->nr;
	if (m->focus < m->nr && (m->nr > 1 || g->nr > 1))
		choose_node(g, m);
	if (m->group && g->nr_shown)
		choose_group(g, m->group);
	return *g->why ? g->why : NULL;
}

static const struct top_reading *shown(const struct ghost *g, size_t i)
{
	return g->of_group ? g->of_group : g->node[g->first + i].reading;
}

bool ghost_is_shown(const struct ghost *g)
{
	return g && g->nr_shown;
}

double ghost_length(const struct ghost *g)
{
	double length = 0;

	for (size_t i = 0; i < g->nr_shown; i++)
		length = MAX(length,
			(double)(reading_last(shown(g, i))->time_ns + g->node[g->first + i].offset_ns -
				g->node[g->first].offset_ns) /
				1e9);
	return length;
}

/* The so many-th phase of that name. */
static const struct run_event *nth(const struct run_events *e, const char *label, unsigned n)
{
	for (size_t i = 0; i < e->nr_phases; i++)
		if (!strcmp(e->phase[i].label, label) && !n--)
			return &e->phase[i];
	return NULL;
}

static unsigned number_of(const struct run_events *e, size_t phase)
{
	unsigned n = 0;

	for (size_t i = 0; i < phase; i++)
		n += !strcmp(e->phase[i].label, e->phase[phase].label);
	return n;
}

double ghost_time(const struct ghost *g, const struct run_events *events, double time_s)
{
	const struct run_events *then = &shown(g, 0)->events;
	double best = -1, ret = time_s;

	/* The edge that both have and that is nearest before the moment decides. */
	for (size_t i = 0; events && i < events->nr_phases; i++) {
		const struct run_event *p = &events->phase[i];
		const struct run_event *q =
			p->time_s <= time_s ? nth(then, p->label, number_of(events, i)) : NULL;
		double in, length, end;

		if (!q)
			continue;
		end = isnan(q->end_s) ? ghost_length(g) : q->end_s;
		length = end - q->time_s;
		in = time_s - p->time_s;
		if (!isnan(p->end_s) && p->end_s <= time_s) { /* it has ended */
			if (p->end_s >= best) {
				best = p->end_s;
				ret = end + (time_s - p->end_s);
			}
		} else if (p->time_s >= best) {
			best = p->time_s;
			if (!isnan(p->end_s) && p->end_s > p->time_s)
				ret = q->time_s + in / (p->end_s - p->time_s) * length;
			else
				ret = q->time_s + MIN(in, length);
		}
	}
	return MIN(ret, ghost_length(g));
}

double ghost_value(const struct ghost *g, double time_s, enum top_value which)
{
	double sum = NAN;
	unsigned nr = 0;

	for (size_t i = 0; i < g->nr_shown; i++) {
		int64_t before = g->node[g->first + i].offset_ns - g->node[g->first].offset_ns;
		const struct top_reading *r = shown(g, i);
		size_t at = reading_index(r, round_i64(time_s * 1e9) - before);
		double value = at < r->nr_points ? reading_value(r, at, which, -1) : NAN;

		if (isnan(value))
			continue;
		sum = nr++ ? sum + value : value;
	}
	return nr && top_value_row[which].combine == TOP_MEAN ? sum / nr : sum;
}
