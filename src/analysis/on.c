/* What is new of a run that was read before: for pages that are kept up to date (src/serve). The first pass
 * is not made again, and of the second only curves and events, from where the page ends. */
#include "analysis/charts_internal.h"

#include <math.h>
#include <string.h>

struct analysis_live {
	struct curves_live *curves;
	const struct analysis *opened; /* whose questions and processes are read */
	int64_t at_ns;
	bool events; /* there was one that was not told */
};

int analysis_live_open(
	const struct analysis *page, int64_t after_ns, struct analysis_live **ret, struct buf *reterr)
{
	const struct curves_options options = {.from_s = analysis_behind_s(after_ns),
		.to_s = NAN,
		.keep = page->keep,
		.nr_keep = page->nr_keep};
	struct analysis_live *l = calloc(1, sizeof(*l));
	int r = l ? curves_live_open(page->run, page->query, page->nr_queries, &options, &l->curves, reterr)
		  : -ENOMEM;

	if (r < 0) {
		free(l);
		return r;
	}
	l->opened = page;
	l->at_ns = after_ns;
	*ret = l;
	return 0;
}

struct analysis_live *analysis_live_close(struct analysis_live *l)
{
	if (l)
		curves_live_close(l->curves);
	free(l);
	return NULL;
}

static bool is_same_question(const struct curves_query *a, const struct curves_query *b)
{
	return a->per == b->per && a->rate == b->rate && !strcmp(a->metric, b->metric);
}

bool analysis_live_fits(const struct analysis_live *l, const struct analysis *page)
{
	const struct analysis *had = l->opened;
	bool fits = had->run->nr == page->run->nr && had->nr_queries == page->nr_queries &&
		had->nr_keep == page->nr_keep;

	for (size_t i = 0; fits && i < page->nr_queries; i++)
		fits = is_same_question(&had->query[i], &page->query[i]);
	/* In whatever order: lines are found by what they are. */
	for (size_t i = 0; fits && i < page->nr_keep; i++) {
		size_t k = 0;

		while (k < had->nr_keep &&
			(had->keep[k].node != page->keep[i].node || had->keep[k].id != page->keep[i].id))
			k++;
		fits = k < had->nr_keep;
	}
	return fits;
}

int analysis_live_look(struct analysis_live *l)
{
	double read_s;
	bool events = false;
	int r = curves_live_read(l->curves, INFINITY, &read_s, &events);

	l->events |= events;
	return r;
}

static int64_t moment(double s)
{
	return s > -1e9 ? round_i64(s * 1e9) : -1;
}

void analysis_live_node(const struct analysis_live *l, size_t i, int64_t *ret_last_ns,
	int64_t *ret_settled_ns, bool *ret_ended)
{
	double last_s, settled_s;

	curves_live_node(l->curves, i, &last_s, &settled_s, ret_ended);
	*ret_last_ns = moment(last_s);
	*ret_settled_ns = moment(settled_s);
}

/* ---- news ---- */

static int read_events(struct analysis *s, bool any, int64_t after_ns, int64_t upto_ns, struct buf *reterr)
{
	if (any)
		return run_events_read_range(
			s->run, analysis_behind_s(after_ns), analysis_behind_s(upto_ns), &s->events, reterr);
	s->events = calloc(1, sizeof(*s->events));
	return s->events ? 0 : -ENOMEM;
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

static int read_on(struct analysis_live *l, struct analysis *s, int64_t upto_ns, int64_t *ret_upto_ns,
	struct buf *reterr)
{
	double wanted_s = analysis_behind_s(upto_ns), read_s;
	bool events = false;
	int r = curves_live_read(l->curves, wanted_s, &read_s, &events);

	if (r < 0)
		return r;
	*ret_upto_ns = read_s < wanted_s ? round_i64(read_s * 1e9) : upto_ns;
	r = curves_live_take(l->curves, analysis_behind_s(*ret_upto_ns), &s->curves);
	if (r >= 0)
		r = read_events(s, l->events || events, l->at_ns, *ret_upto_ns, reterr);
	l->events = *ret_upto_ns < upto_ns && (l->events || events);
	s->from_s = (double)l->at_ns / 1e9;
	s->to_s = (double)*ret_upto_ns / 1e9;
	l->at_ns = *ret_upto_ns;
	return r;
}

int analysis_live_read(struct analysis_live *l, const struct analysis *page, int64_t upto_ns,
	struct analysis **ret, int64_t *ret_upto_ns, struct buf *reterr)
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
	r = read_on(l, s, upto_ns, ret_upto_ns, reterr);
	if (r >= 0)
		r = arrange(s);
	if (r < 0) {
		analysis_free(s);
		return r;
	}
	*ret = s;
	return 0;
}
