/* Axes: where their ticks stand, and what is written beside them. Shared by all who draw. */
#ifndef ANALYSIS_AXIS_H
#define ANALYSIS_AXIS_H

#include "base/units.h"
#include "analysis/chart.h"

#define AXIS_TICKS 32

struct axis {
	double least, most; /* most is above least, and both are finite */
	bool log;	    /* least is above 0 */
	double step;	    /* between two ticks; of a logarithmic axis 0 */
	double tick[AXIS_TICKS];
	unsigned nr;
};

/* The value axis of a chart, with about `ticks` of them: from 0, or (log) from the least value above 0, to a
 * round number that covers all that is drawn. Of stacked curves that is their sum. */
void axis_of_values(struct axis *ret, const struct chart *f, unsigned ticks);
/* The time axis, with at most `ticks` of them. */
void axis_of_time(struct axis *ret, const struct chart *f, unsigned ticks);
/* Where a value stands on the axis: 0 at its beginning, 1 at its end; NAN for what has no place (zero on a
 * logarithmic axis is at its beginning). */
double axis_place(const struct axis *a, double value);
/* The first point of a curve that is not before the time; `nr` where all are. */
size_t curve_at(const struct chart_curve *c, double time_s);

/* "1.5 GiB/s", "72 %", "3.2 GHz", "41 °C", "2.5". */
char *format_value(char out[static UNITS_SIZE], double value, enum metric_unit unit, bool per_second);
/* As exact as the ticks need: "1h30m", "45s", "0.5s". */
char *format_tick_time(char out[static UNITS_SIZE], double seconds, double step);
#endif
