/* What all drawings share: inks of the theme, text that fits, straight things. */
#ifndef DRAW_PEN_H
#define DRAW_PEN_H

#include "base/buf.h"
#include "draw/draw.h"

#include <cairo.h>
#include <pango/pangocairo.h>

#define PEN_FONTS "Inter, Noto Sans, Liberation Sans, DejaVu Sans, sans-serif"

enum ink { /* in the order of PALETTE_PAPER */
	INK_PAPER,
	INK_TEXT,
	INK_QUIET,
	INK_GRID,
	INK_AXIS,
	INK_OTHERS,
	INK_BAND,
	INK_MARK,
	INK_LEVEL,
	NR_INKS
};

enum face { FACE_PLAIN, FACE_SMALL, FACE_STRONG, FACE_TITLE, NR_FACES };

struct rect {
	double x, y, w, h;
};

struct pen {
	cairo_t *cr;
	PangoLayout *layout;
	bool dark;
	double size;	   /* of plain text */
	bool snaps;	   /* straight lines stand on pixels: where the surface has them */
	double pixel;	   /* the smallest width that can be seen */
	struct buf *words; /* text goes here as SVG elements; NULL: it is drawn */
};

struct words {
	const char *text;
	double x, y;  /* where its baseline begins, is centred or ends */
	double align; /* 0 begins, 0.5 is centred, 1 ends there */
	double most;  /* at most so wide, cut in the middle; 0: as wide as it is */
	enum face face;
	uint32_t color;
	bool halo; /* paper around the letters, over curves */
};

void pen_open(struct pen *p, cairo_t *cr, bool dark, double size, struct buf *words);
void pen_close(struct pen *p);

uint32_t pen_ink(const struct pen *p, enum ink ink);
uint32_t pen_palette(const struct pen *p, uint32_t index); /* CHART_OTHERS too */
uint32_t pen_heat(const struct pen *p, double value);	   /* 0..1 */
void pen_color(const struct pen *p, uint32_t rgb, double alpha);
void pen_line(const struct pen *p, double x0, double y0, double x1, double y1, double width);
void pen_dash(const struct pen *p, double on, double off); /* 0: no more */
void pen_box(const struct pen *p, struct rect r);	   /* filled */

double pen_measure(struct pen *p, const char *text, enum face face);
double pen_write(struct pen *p, const struct words *w); /* how wide it became */
double face_size(const struct pen *p, enum face face);

/* What can be shown of a text, whatever bytes it is; the same as XML. */
void add_shown(struct buf *out, const char *text);
void add_xml(struct buf *out, const char *text);
#endif
