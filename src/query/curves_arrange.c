/* A later part of a run in the lines of an earlier reading: so that what is drawn, named and folded is
 * decided by the earlier one, and a part of a few ticks can be told line by line (analysis/on.c). */
#include "query/curves_internal.h"

#include <math.h>
#include <string.h>

static bool is_same(const struct curves_line *a, const struct curves_line *b)
{
	return a->id == b->id && a->pid == b->pid && a->others == b->others && a->name_len == b->name_len &&
		!memcmp(a->name, b->name, a->name_len);
}

/* Mostly at the same place in its query and node. NULL: there is none. */
static struct curves_line *find_line(struct curves *s, const struct curves_line *as, size_t at)
{
	size_t first = curves_first_line(s, as->query, as->node);

	for (size_t i = first + at;
		i < s->nr_read && s->line[i].query == as->query && s->line[i].node == as->node; i++)
		if (s->line[i].name && is_same(&s->line[i], as))
			return &s->line[i];
	for (size_t i = first; i < s->nr_read && i < first + at; i++)
		if (s->line[i].name && is_same(&s->line[i], as))
			return &s->line[i];
	return NULL;
}

static void take_numbers(struct curves_line *to, const struct curves_line *as)
{
	to->average = as->average;
	to->least = as->least;
	to->most = as->most;
	to->most_at_s = as->most_at_s;
	to->highest = as->highest;
	to->first = as->first;
	to->last = as->last;
}

/* Nothing, as long as the node's axis. NULL: no memory. */
static float *nothing_of(struct curves_node *node, float **kept)
{
	if (!*kept) {
		*kept = owned_alloc(&node->points, MAX(node->nr_times, (size_t)1), sizeof(**kept));
		for (size_t i = 0; *kept && i < node->nr_times; i++)
			(*kept)[i] = NAN;
	}
	return *kept;
}

static int line_without(struct curves_line *to, const struct curves_line *as, float *nothing)
{
	*to = (struct curves_line){.query = as->query,
		.node = as->node,
		.id = as->id,
		.pid = as->pid,
		.others = as->others,
		.counted_elsewhere = as->counted_elsewhere,
		.name = malloc(as->name_len + 1),
		.name_len = as->name_len,
		.mean = nothing,
		.low = nothing,
		.high = nothing};
	if (!to->name || !nothing)
		return -ENOMEM;
	memcpy(to->name, as->name, as->name_len + 1);
	return 0;
}

static int take_lines(struct curves *s, const struct curves *as, struct curves_line *line, size_t *nr)
{
	_cleanup_(freep) float **nothing = calloc(s->nr_nodes + 1, sizeof(*nothing));
	size_t first = 0;

	if (!nothing)
		return -ENOMEM;
	for (size_t i = 0; i < as->nr_read; i++) {
		const struct curves_line *old = &as->line[i];
		struct curves_line *own, *to = &line[*nr];
		int r = 0;

		if (!i || as->line[first].query != old->query || as->line[first].node != old->node)
			first = i;
		own = find_line(s, old, i - first);
		(*nr)++;
		if (own) {
			*to = *own;
			own->name = NULL;
			own->spread = NULL;
		} else {
			r = line_without(to, old, nothing_of(&s->node[old->node], &nothing[old->node]));
		}
		if (r < 0)
			return r;
		take_numbers(to, old);
	}
	return 0;
}

static void take_columns(struct curves *s, const struct curves *as)
{
	for (size_t i = 0; i < s->nr_columns && i < as->nr_columns; i++) {
		const struct curves_column *from = &as->column[i];
		struct curves_column *to = &s->column[i];

		to->per = from->per;
		to->unit = from->unit;
		to->kind = from->kind;
		to->fold = from->fold;
		to->per_second = from->per_second;
		to->rates = from->rates;
		to->of_machine = from->of_machine;
		to->known = from->known;
	}
}

int curves_arrange(struct curves *s, const struct curves *as)
{
	struct curves_line *line = calloc(as->nr_read + 1, sizeof(*line));
	size_t nr = 0, nr_nodes = as->nr_nodes - (as->nr_nodes && as->node[as->nr_nodes - 1].all);
	int r;

	if (!line || s->nr_nodes != nr_nodes) {
		free(line);
		return line ? -ESTALE : -ENOMEM;
	}
	r = take_lines(s, as, line, &nr);
	for (size_t i = 0; i < s->nr_lines; i++) {
		free(s->line[i].name);
		spread_free(s->line[i].spread);
	}
	free(s->line);
	s->line = line;
	s->nr_lines = s->nr_read = nr;
	take_columns(s, as);
	return r;
}

void curves_take_numbers(struct curves *s, const struct curves *as)
{
	for (size_t i = s->nr_read; i < s->nr_lines && i < as->nr_lines; i++)
		take_numbers(&s->line[i], &as->line[i]);
}
