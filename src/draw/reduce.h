/* Curves as the paper can show them: no more points than it has room for, and no peak lost. */
#ifndef DRAW_REDUCE_H
#define DRAW_REDUCE_H

#include "analysis/chart.h"

struct drawn_point {
	double time_s, mean, low, high; /* mean NAN: a gap */
};

/* Most points that a curve becomes on so many columns. */
#define REDUCED_MAX(columns) (2 * (columns) + 4)

/* The points of a curve from one time to the other, and one on either side so that lines run out of the
 * picture. Those of one column become one where there are more than two for each. */
size_t curve_reduce(
	const struct chart_curve *c, double from_s, double to_s, size_t columns, struct drawn_point *ret);
/* Its value in the middle of each of the columns; NAN where it has none. */
void curve_resample(const struct chart_curve *c, double from_s, double to_s, size_t columns, double *ret);
/* The top of its range in each of the columns; false when it has none. */
bool curve_highs(const struct chart_curve *c, double from_s, double to_s, size_t columns, double *ret);
/* The most that curves on one time axis came to together in each column, at the moments when they were
 * measured; false when they have several axes, or no more points than columns. */
bool curves_most(
	const struct chart_curve *c, size_t nr, double from_s, double to_s, size_t columns, double *ret);
#endif
