/* A chart being drawn: what its parts share. */
#ifndef DRAW_CANVAS_H
#define DRAW_CANVAS_H

#include "draw/labels.h"
#include "draw/pen.h"
#include "draw/reduce.h"

#define TAKEN_MAX 64

struct canvas {
	struct pen pen;
	const struct chart *f;
	struct rect all, plot, legend; /* legend.w 0: none */
	struct rect strip;	       /* above the plot: names of phases and events */
	bool bare;		       /* too small for a legend and the names of phases */
	struct axis time, value;
	struct value_labels labels;
	double *scratch; /* 4 x columns */
	struct drawn_point *point;
	size_t columns;
	struct rect taken[TAKEN_MAX]; /* by labels in the plot */
	size_t nr_taken;
};

/* Places on the paper. */
double canvas_x(const struct canvas *c, double time_s);
double canvas_y(const struct canvas *c, double value); /* NAN for NAN; within reach of the plot */
bool canvas_is_free(const struct canvas *c, struct rect r);
void canvas_take(struct canvas *c, struct rect r);
double canvas_line(const struct canvas *c); /* height of a line of small text */
bool canvas_has_caption(const struct canvas *c);
double canvas_caption_y(const struct canvas *c); /* of the line with the unit of values */

void draw_lines(struct canvas *c);
void draw_stack(struct canvas *c);
void draw_heat(struct canvas *c);
void draw_heat_rows(struct canvas *c); /* names beside them */
void draw_heat_scale(struct canvas *c);
void draw_timeline(struct canvas *c);
void timeline_caption(struct canvas *c); /* what the thickness means */

void draw_bands(struct canvas *c);
/* So many rows of names of phases stand above the plot; bands of further lanes are tints alone. */
uint32_t canvas_lanes(const struct canvas *c);
double bands_height(const struct canvas *c); /* of their names */
void draw_marks(struct canvas *c);
void draw_levels(struct canvas *c);
void draw_notes(struct canvas *c);

/* draw_chart(), with its text as SVG elements in `words`. */
int draw_chart_words(struct _cairo *cr, const struct chart *f, struct rect where,
	const struct draw_style *style, struct buf *words);

/* An image surface as PNG. 0, -ENOMEM, or the error of the buffer. */
int png_of(cairo_surface_t *surface, struct buf *out);

/* How much room a legend takes when it has at most `most`: to the right in one column, below in several. */
double legend_width(struct canvas *c, double most);
double legend_height(struct canvas *c, double width, double most);
void draw_legend(struct canvas *c);
double heat_names_width(struct canvas *c);
#endif
