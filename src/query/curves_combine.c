/* Lines of several nodes as one. Their ticks fall at different instants, so the common axis has points of the
 * coarsest node's width, and each node gives what it had there: the mean of its points in it, or where it has
 * none what it had before. A node that has not begun or has ended adds nothing. */
#include "query/curves_internal.h"

#include <math.h>
#include <string.h>

#define COMBINED_POINTS 4000.0

enum given { GIVEN_NOTHING, GIVEN_LOST, GIVEN_VALUE };

/* What all nodes gave to one point. */
struct mix {
	double mean, low, high;
	uint32_t nr;
	bool lost;
};

/* ---- the axis ---- */

static size_t nr_real(const struct curves *s)
{
	return s->nr_nodes - (s->nr_nodes && s->node[s->nr_nodes - 1].all);
}

static int all_times(const struct curves *s, struct curves_node *all)
{
	double from = INFINITY, to = -INFINITY, step = 0, nr;

	for (size_t i = 0; i < s->nr_nodes; i++) {
		const struct curves_node *n = &s->node[i];

		if (!n->nr_times)
			continue;
		from = MIN(from, n->time_s[0]);
		to = MAX(to, n->time_s[n->nr_times - 1]);
		step = MAX(step, n->step_s);
		all->reduced |= n->reduced;
	}
	if (!(to >= from))
		return -ENODATA;
	step = MAX(MAX(step, (to - from) / COMBINED_POINTS), 1e-9);
	nr = (to - from) / step + 1.5;
	all->time_s = calloc((size_t)nr, sizeof(*all->time_s));
	all->lost = calloc((size_t)nr, sizeof(*all->lost));
	if (!all->time_s || !all->lost)
		return -ENOMEM;
	all->nr_times = (size_t)nr;
	for (size_t i = 0; i < all->nr_times; i++)
		all->time_s[i] = from + (double)i * step;
	all->step_s = step;
	all->end_s = to;
	return 0;
}

/* One node's axis is its own. */
static int one_times(const struct curves_node *n, struct curves_node *all)
{
	all->time_s = calloc(n->nr_times + 1, sizeof(*all->time_s));
	all->lost = calloc(n->nr_times + 1, sizeof(*all->lost));
	if (!all->time_s || !all->lost)
		return -ENOMEM;
	all->nr_times = n->nr_times;
	for (size_t i = 0; i < n->nr_times; i++) {
		all->time_s[i] = n->time_s[i];
		all->lost[i] = n->lost[i];
	}
	all->reduced = n->reduced;
	all->step_s = n->step_s;
	all->offset_s = n->offset_s;
	all->end_s = n->end_s;
	all->ticks = n->ticks;
	return n->nr_times ? 0 : -ENODATA;
}

static int add_node(struct curves *s)
{
	struct curves_node all = {.all = true, .host = strdup("all nodes")}, *more;
	int r = s->nr_nodes == 1 ? one_times(&s->node[0], &all) : all_times(s, &all);

	more = r < 0 || !all.host ? NULL : reallocarray(s->node, s->nr_nodes + 1, sizeof(*more));
	if (!more) {
		free((char *)all.host);
		free(all.time_s);
		free(all.lost);
		return r < 0 ? r : -ENOMEM;
	}
	s->node = more;
	s->node[s->nr_nodes++] = all;
	return 0;
}

/* ---- lines ---- */

/* Those that are told together. */
static bool belongs(const struct curves *s, const struct curves_line *a, const struct curves_line *b)
{
	enum curves_per per = s->column[a->query].per;

	if (a->query != b->query || a->others != b->others)
		return false;
	if (per == CURVES_WHOLE || (per == CURVES_PROCESS && a->others))
		return true;
	return per != CURVES_PROCESS && a->name_len == b->name_len && !memcmp(a->name, b->name, a->name_len);
}

struct combine_cursor { /* along the points of a node's line */
	const struct curves_node *node;
	const struct curves_line *line;
	size_t at;
	enum given held;
	double mean, low, high; /* of the point that holds */
};

static void cursor_take(struct combine_cursor *w)
{
	size_t i = w->at++;

	w->held = w->node->lost[i] ? GIVEN_LOST : isnan(w->line->mean[i]) ? GIVEN_NOTHING : GIVEN_VALUE;
	w->mean = (double)w->line->mean[i];
	w->low = (double)w->line->low[i];
	w->high = (double)w->line->high[i];
}

/* What it has up to that time. */
static enum given cursor_to(struct combine_cursor *w, double time, struct mix *ret)
{
	struct mix m = {0};
	bool lost = false, over = w->at == w->node->nr_times;

	while (w->at < w->node->nr_times && w->node->time_s[w->at] <= time) {
		cursor_take(w);
		lost |= w->held == GIVEN_LOST;
		if (w->held != GIVEN_VALUE)
			continue;
		m.low = m.nr ? MIN(m.low, w->low) : w->low;
		m.high = m.nr ? MAX(m.high, w->high) : w->high;
		m.mean += w->mean;
		m.nr++;
	}
	/* Nothing holds until the point that says it was lost. */
	if (lost ||
		(!m.nr && !over &&
			(w->held == GIVEN_LOST || (w->at < w->node->nr_times && w->node->lost[w->at]))))
		return GIVEN_LOST;
	if (!m.nr && (w->held != GIVEN_VALUE || over))
		return GIVEN_NOTHING;
	*ret = m.nr ? (struct mix){.mean = m.mean / m.nr, .low = m.low, .high = m.high}
		    : (struct mix){.mean = w->mean, .low = w->low, .high = w->high};
	return GIVEN_VALUE;
}

static void mix_add(struct mix *m, const struct mix *one, bool most)
{
	if (!m->nr) {
		m->mean = one->mean;
		m->low = one->low;
		m->high = one->high;
	} else if (most) {
		m->mean = MAX(m->mean, one->mean);
		m->low = MAX(m->low, one->low);
		m->high = MAX(m->high, one->high);
	} else {
		m->mean += one->mean;
		m->low += one->low;
		m->high += one->high;
	}
	m->nr++;
}

static void mix_line(const struct curves *s, const struct curves_line *line, bool most, struct mix *mix)
{
	const struct curves_node *all = &s->node[s->nr_nodes - 1];
	struct combine_cursor w = {.node = &s->node[line->node], .line = line};
	bool same = nr_real(s) == 1;

	for (size_t i = 0; i < all->nr_times; i++) {
		double until = all->time_s[i] + (same ? 0 : all->step_s / 2);
		struct mix one = {0};
		enum given given = cursor_to(&w, until, &one);

		mix[i].lost |= given == GIVEN_LOST;
		if (given == GIVEN_VALUE)
			mix_add(&mix[i], &one, most);
	}
}

/* All lines that belong to the one at `first`, or of these only those of one machine. */
#define ANY_MACHINE UINT32_MAX

static void mix_lines(const struct curves *s, size_t first, uint32_t machine, bool most, struct mix *mix)
{
	for (size_t i = first; i < s->nr_lines; i++)
		if (s->line[i].node < nr_real(s) && belongs(s, &s->line[first], &s->line[i]) &&
			(machine == ANY_MACHINE || s->node[s->line[i].node].same == machine))
			mix_line(s, &s->line[i], most, mix);
}

static bool shares_machines(const struct curves *s)
{
	for (uint32_t i = 0; i < nr_real(s); i++)
		if (s->node[i].same != i)
			return true;
	return false;
}

/* Each machine once: at every point what that recording says of it which says most. */
static int mix_machines(const struct curves *s, size_t first, bool most, struct mix *mix)
{
	size_t nr = s->node[s->nr_nodes - 1].nr_times;
	struct mix *one = calloc(nr + 1, sizeof(*one));

	for (uint32_t machine = 0; one && machine < nr_real(s); machine++) {
		if (s->node[machine].same != machine)
			continue;
		memset(one, 0, nr * sizeof(*one));
		mix_lines(s, first, machine, true, one);
		for (size_t i = 0; i < nr; i++) {
			mix[i].lost |= one[i].lost && !one[i].nr;
			if (one[i].nr)
				mix_add(&mix[i], &one[i], most);
		}
	}
	free(one);
	return one ? 0 : -ENOMEM;
}

static int line_arrays(struct curves_line *line, struct curves_node *all)
{
	size_t nr = all->nr_times;

	line->mean = owned_alloc(&all->points, nr, sizeof(*line->mean));
	line->low = all->reduced ? owned_alloc(&all->points, nr, sizeof(*line->low)) : line->mean;
	line->high = all->reduced ? owned_alloc(&all->points, nr, sizeof(*line->high)) : line->mean;
	return line->mean && line->low && line->high ? 0 : -ENOMEM;
}

/* The line and its numbers from what all gave; shares of `nr` when it is a mean. */
static int line_fill(struct curves_line *line, struct curves_node *all, const struct mix *mix, bool mean)
{
	double sum = 0;
	size_t known = 0;

	line->average = line->least = line->most = line->highest = line->most_at_s = NAN;
	line->first = line->last = NAN;
	if (line_arrays(line, all) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < all->nr_times; i++) {
		const struct mix *m = &mix[i];
		bool is_known = m->nr && !m->lost;
		double part = mean && m->nr ? m->nr : 1, value = is_known ? m->mean / part : NAN;

		line->low[i] = is_known ? (float)(m->low / part) : NAN;
		line->high[i] = is_known ? (float)(m->high / part) : NAN;
		line->mean[i] = (float)value;
		if (!is_known)
			continue;
		if (!(line->most >= (all->reduced ? m->high / part : value))) {
			line->most = line->highest = all->reduced ? m->high / part : value;
			line->most_at_s = all->time_s[i];
		}
		if (!(line->least <= (all->reduced ? m->low / part : value)))
			line->least = all->reduced ? m->low / part : value;
		line->first = isnan(line->first) ? value : line->first;
		line->last = value;
		if (line->spread)
			spread_add(line->spread, value, all->step_s > 0 ? all->step_s : 1);
		sum += value;
		known++;
	}
	line->average = known ? sum / (double)known : NAN;
	return 0;
}

static int add_line(struct curves *s, size_t first, bool average)
{
	const struct curves_column *column = &s->column[s->line[first].query];
	struct curves_node *all = &s->node[s->nr_nodes - 1];
	bool most = !average && (column->fold == FOLD_MAX || column->fold == FOLD_NONE);
	struct mix *mix = calloc(all->nr_times + 1, sizeof(*mix));
	struct curves_line *more = reallocarray(s->line, s->nr_lines + 1, sizeof(*more)), *line;
	const char *name;
	int r;

	if (more)
		s->line = more;
	if (!mix || !more) {
		free(mix);
		return -ENOMEM;
	}
	line = &s->line[s->nr_lines];
	*line = (struct curves_line){.query = s->line[first].query,
		.node = (uint32_t)s->nr_nodes - 1,
		.others = s->line[first].others,
		.counted_elsewhere = s->line[first].counted_elsewhere,
		.spread = s->line[first].spread ? spread_new() : NULL};
	name = column->per == CURVES_WHOLE ? all->host : s->line[first].name;
	line->name_len = column->per == CURVES_WHOLE ? strlen(name) : s->line[first].name_len;
	line->name = malloc(line->name_len + 1);
	if (line->name)
		memcpy(line->name, name, line->name_len + 1);
	r = 0;
	if (column->of_machine && shares_machines(s))
		r = mix_machines(s, first, most, mix);
	else
		mix_lines(s, first, ANY_MACHINE, most, mix);
	if (r >= 0)
		r = line_fill(line, all, mix, average || column->fold == FOLD_MEAN);
	free(mix);
	s->nr_lines++;
	return line->name ? r : -ENOMEM;
}

/* A line of a node that no line before it belongs to; its query's begin at `from`. */
static bool is_first(const struct curves *s, size_t from, size_t at)
{
	for (size_t i = from; i < at; i++)
		if (s->line[i].node < nr_real(s) && belongs(s, &s->line[i], &s->line[at]))
			return false;
	return s->line[at].node < nr_real(s) && belongs(s, &s->line[at], &s->line[at]);
}

int curves_combine(struct curves *s, unsigned query, bool average)
{
	size_t before = s->nr_lines, from = 0;
	int r = 0;

	if (query >= s->nr_columns || !s->nr_nodes)
		return -EINVAL;
	if (!s->node[s->nr_nodes - 1].all)
		r = add_node(s);
	while (from < before && s->line[from].query != query)
		from++;
	for (size_t i = from; i < before && r >= 0; i++)
		if (s->line[i].query == query && is_first(s, from, i))
			r = add_line(s, i, average);
	if (r < 0)
		return r;
	return s->nr_lines > before ? (int)before : -ENODATA;
}
