/* Charts on paper: cairo and pango, one drawing code for PNG, SVG and PDF. */
#ifndef DRAW_DRAW_H
#define DRAW_DRAW_H

#include "base/buf.h"
#include "analysis/chart.h"

struct _cairo; /* cairo_t */

enum draw_form { DRAW_PNG, DRAW_SVG, DRAW_PDF };

struct draw_style {
	bool dark;
	double width, height; /* points (of PNG: pixels at scale 1); 0: 960 x 360, more for what needs it */
	double scale;	      /* of PNG, for sharp screens; 0: 2 */
	bool transparent;     /* no background */
};

/* Into any cairo surface: the chart fills the rectangle, of at least 120 x 90. 0, -EINVAL (no such size),
 * -ENOMEM, or the error of the surface. */
int draw_chart(struct _cairo *cr, const struct chart *f, double x, double y, double width, double height,
	const struct draw_style *style);
/* How high it should be at that width, with its legend and lanes. */
double draw_height(const struct chart *f, double width);
/* A whole picture. An SVG is one element with real text in it and with ids that begin with the chart's, so
 * that several may stand in one page; the same chart gives the same bytes. */
int draw_picture(const struct chart *f, enum draw_form form, const struct draw_style *style, struct buf *out);
/* Colour of a curve as 0xrrggbb; all of them are in analysis/palette.h. */
uint32_t draw_palette(uint32_t index, bool dark);
/* What a cairo_status_t means as a negative errno. */
int draw_status(int status);
#endif
