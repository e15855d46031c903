/* A picture before it is drawn: what stands in it, without a word on how. Drawn by draw/ (PNG, SVG, PDF), by
 * document/terminal.c (braille) and, as numbers, by the page. Everything is borrowed but what `owned` keeps.
 */
#ifndef ANALYSIS_CHART_H
#define ANALYSIS_CHART_H

#include "metric/metric.h"

enum chart_form {
	CHART_LINES,
	CHART_STACKED,	/* areas upon one another, in the order given from below */
	CHART_HEAT,	/* one row of colour for each curve, first at the bottom: values of 0..y_most */
	CHART_TIMELINE, /* one bar for each span, thickness by its curve */
};

#define CHART_OTHERS UINT32_MAX /* the colour of what has no name of its own */

struct chart_curve {
	const char *name; /* UTF-8, escaped */
	size_t nr;
	const double *time_s;
	const float *mean, *low, *high; /* NAN: nothing there. low and high may be mean itself */
	uint32_t color;			/* index into the palette, taken modulo its size; or CHART_OTHERS */
	bool dashed, filled;
	bool held;	      /* each value holds until the next one: steps instead of slopes */
	double average, most; /* for the legend; NAN: not told */
};

struct chart_span { /* of a timeline */
	const char *name;
	double from_s, to_s; /* to_s NAN: it had not ended */
	uint32_t curve;	     /* index: its thickness; UINT32_MAX: thin */
	uint32_t lane;	     /* row from the top */
	uint32_t color;
};

struct chart_band { /* a phase, behind the curves */
	double from_s, to_s;
	const char *label; /* of several too narrow to be told apart: "epoch ×500" */
	uint32_t lane;	   /* row of its name, from the top: phases within others stand below them */
	bool odd;	   /* every second one of its lane: told apart by its tint */
};

struct chart_mark { /* an event: a line across */
	double time_s;
	const char *label;
};

struct chart_level { /* a limit: "allocated: 4 cores" */
	double value;
	const char *label;
	bool stretch; /* the axis must reach it; else it is drawn only where it fits */
};

struct chart_note { /* "peak 1.2 GiB" at a point */
	double time_s, value;
	const char *text;
};

struct chart {
	const char *id;		      /* [a-z0-9-]: file name and anchor */
	const char *title, *subtitle; /* subtitle: "mean 3.2, max 4.0 cores"; may be NULL */
	enum chart_form form;
	enum metric_unit unit;
	bool per_second;
	const char *quantity; /* on the axis before the unit: "cores", "memory"; may be NULL */
	double from_s, to_s;  /* of the time axis */
	bool log;	      /* the value axis */
	double y_most; /* fixed end of the value axis; NAN: by the values (it begins at 0 unless log) */
	const struct chart_curve *curve;
	size_t nr_curves;
	const struct chart_curve *total; /* of areas: their sum, with its range; NULL: not known */
	const struct chart_span *span;
	size_t nr_spans;
	uint32_t nr_lanes;
	const struct chart_band *band;
	size_t nr_bands;
	uint32_t nr_band_lanes;
	size_t phases_left_out; /* phases without a band */
	const struct chart_mark *mark;
	size_t nr_marks;
	const struct chart_level *level;
	size_t nr_levels;
	const struct chart_note *note;
	size_t nr_notes;
	const char *footnote; /* "each point is 3.6 s: mean, with the range"; may be NULL */
};
#endif
