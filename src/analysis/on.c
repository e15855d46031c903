/* What is new of a run that was read before: for pages that are kept up to date (src/serve). The first pass
 * is not made again, and of the second only curves and events, from where the page ends. */
#include "analysis/charts_internal.h"

#include <math.h>
#include <string.h>

/* Ticks of an event of a page: more are told by the next one. */
#define POINTS_MOST 65536

static int read_curves(struct analysis *s, double from_s, double to_s, struct buf *reterr)
{
	const struct curves_options options = {.from_s = from_s,
		.to_s = to_s,
		.points = POINTS_MOST,
		.keep = s->keep,
		.nr_keep = s->nr_keep};
	struct curves_reading *curves = NULL;
	struct run_events_reading *events = NULL;
	struct tour_guest guest[2];
	int r = curves_guest(s->run, s->query, s->nr_queries, &options, &curves, &guest[0], reterr);

	if (r >= 0)
		r = run_events_guest(s->run, from_s, to_s, &events, &guest[1], reterr);
	if (r >= 0)
		r = tour(s->run, guest, 2, NULL, "reading", reterr);
	if (r >= 0)
		r = curves_finish(curves, &s->curves);
	if (r >= 0)
		r = run_events_finish(events, &s->events);
	curves_reading_free(curves);
	run_events_reading_free(events);
	return r;
}

static int arrange(struct analysis *s)
{
	int r = curves_arrange(s->curves, s->page->curves);

	s->panel = calloc(s->nr_panels + 1, sizeof(*s->panel));
	if (!s->panel)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_panels; i++) {
		s->panel[i] = s->page->panel[i];
		memset(s->panel[i].all, 0, sizeof(s->panel[i].all));
		memset(s->panel[i].nr_all, 0, sizeof(s->panel[i].nr_all));
	}
	if (r >= 0)
		r = analysis_combine(s);
	if (r >= 0)
		curves_take_numbers(s->curves, s->page->curves);
	return r;
}

int analysis_read_on(const struct analysis *page, int64_t after_ns, int64_t upto_ns, struct analysis **ret,
	struct buf *reterr)
{
	struct analysis *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = *page;
	s->page = page;
	s->curves = NULL;
	s->events = NULL;
	s->panel = NULL;
	s->part = true;
	s->from_s = (double)after_ns / 1e9;
	s->to_s = (double)upto_ns / 1e9;
	r = read_curves(s, analysis_behind_s(after_ns), analysis_behind_s(upto_ns), reterr);
	if (r >= 0)
		r = arrange(s);
	if (r < 0) {
		analysis_free(s);
		return r;
	}
	*ret = s;
	return 0;
}
