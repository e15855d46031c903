/* Any metrics of a run as charts: those of one unit share one, others stand below it on the same time axis.
 */
#ifndef ANALYSIS_PLOT_H
#define ANALYSIS_PLOT_H

#include "base/owned.h"
#include "query/events.h"
#include "query/curves.h"
#include "analysis/chart.h"

enum plot_per { PLOT_TOTAL, PLOT_NODE, PLOT_INSTANCE, PLOT_GROUP, PLOT_USER, PLOT_PROCESS };

struct plot_query {
	const char *const *metric;
	size_t nr;
	enum plot_per per;
	bool rate, log, stacked;
	const char *group;   /* only of its processes; NULL: of all */
	int64_t pid;	     /* only of this process; 0: of all */
	size_t top;	     /* most curves of one metric; the others are one more */
	double from_s, to_s; /* NAN: all of it */
	const char *title;   /* NULL: the metrics' names */
	const struct progress *progress;
};

struct plot {
	struct chart *chart; /* by unit, in the order of the metrics */
	size_t nr;
	char **note; /* sentences: metrics that are not drawn, and why */
	size_t nr_notes;
	struct curves *curves;
	struct run_events *events;
	struct owned kept; /* what the charts point at */
};

/* -ENOENT: there is no such metric, group or process; -EINVAL: the question does not fit the metric; reterr
 * says what is wrong. */
int plot_make(const struct run *run, const struct plot_query *q, struct plot **ret, struct buf *reterr);
struct plot *plot_free(struct plot *p);
#endif
