/* An earlier run of the same command, laid over this one: phases that both have told, each repetition by its
 * number, begin and end together; between them time runs as it did then. */
#include "top/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ghost {
	struct top_reading *reading;
};

int ghost_open(const char *path, struct ghost **ret, struct buf *reterr)
{
	const struct reading_options o = {.points = (size_t)1 << 20};
	struct ghost *g = calloc(1, sizeof(*g));
	int r = g ? reading_open(path, &o, &g->reading, reterr) : -ENOMEM;

	while (r >= 0 && (r = reading_step(g->reading)) == 1)
		;
	if (r >= 0 && !g->reading->nr_points) {
		buf_addf(reterr, "%s has no ticks to compare with", path);
		r = -ENODATA;
	}
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
	if (g)
		reading_close(g->reading);
	free(g);
	return NULL;
}

double ghost_length(const struct ghost *g)
{
	return (double)reading_last(g->reading)->time_ns / 1e9;
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
	const struct run_events *then = &g->reading->events;
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
	const struct top_point *p = reading_at(g->reading, round_i64(time_s * 1e9));

	return p ? p->value[which] : NAN;
}
