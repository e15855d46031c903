/* Runs on the same axes. */
#ifndef ANALYSIS_COMPARE_CHARTS_H
#define ANALYSIS_COMPARE_CHARTS_H

#include "base/owned.h"
#include "analysis/chart.h"
#include "analysis/compare.h"

struct compare_charts {
	struct chart *item; /* of each panel that some run has, in the order of the panels */
	size_t nr;
	struct curves **curves; /* of each operand */
	size_t nr_curve_sets;
	struct owned kept; /* what the charts point at */
	char *note;	   /* what is to be said of all; may be NULL */
};

/* With `by_phases` each phase of a run is stretched to where the phase of that name stands in the first run.
 */
int compare_charts_make(const struct comparison *c, bool by_phases, const struct progress *progress,
	struct compare_charts **ret, struct buf *reterr);
struct compare_charts *compare_charts_free(struct compare_charts *f);
#endif
