/* Pages of a document: A4, a head and a foot on each, text that flows from page to page, tables.
 *
 * "Page 2 of 7" can be written only when all pages are known, so a document is laid out twice by the same
 * code: once to count the pages, and once to draw. */
#ifndef DRAW_PAPER_H
#define DRAW_PAPER_H

#include "draw/pen.h"
#include "analysis/outline.h"

#define PAPER_WIDTH 595.28 /* points: A4 */
#define PAPER_HEIGHT 841.89
#define PAPER_MARGIN 46.0
#define PAPER_TOP 78.0 /* where text begins, below the head */
#define PAPER_BOTTOM (PAPER_HEIGHT - 54.0)
#define PAPER_TEXT (PAPER_WIDTH - 2 * PAPER_MARGIN)

enum font {
	FONT_TEXT,
	FONT_SMALL,
	FONT_STRONG,
	FONT_TITLE,
	FONT_HEADING,
	FONT_FACT,
	FONT_CODE,
	FONT_CODE_SMALL,
	FONT_CELL,
	FONT_CELL_HEAD,
	NR_FONTS
};

struct paper {
	struct pen pen;
	cairo_surface_t *surface;
	bool dry;
	unsigned page, pages; /* from 1; how many there are, once known */
	double y;	      /* where the next thing goes */
	/* Of every page: four pairs above, two texts below. */
	const char *head[4][2];
	const char *foot;
	void (*turned)(void *arg, struct paper *p); /* after a new page has begun; may be NULL */
	void *arg;
};

/* A box of text. */
struct lines {
	const char *text;
	enum font font;
	uint32_t color;
	double x, width;
	double align;  /* 0 left, 1 right */
	unsigned most; /* lines, the last of them cut; 0: all */
};

void paper_open(struct paper *p, cairo_surface_t *surface, bool dry, unsigned pages);
void paper_close(struct paper *p); /* finishes the last page */

double lines_height(struct paper *p, const struct lines *t);
double lines_width(struct paper *p, const char *text, enum font font);
/* At a place of the page: returns the height. */
double lines_put(struct paper *p, const struct lines *t, double y);

/* Begins a new page unless there is so much room. */
void paper_need(struct paper *p, double height);
/* In the flow: below what was last, on the next page when it does not fit. */
void paper_text(struct paper *p, const struct lines *t, double after);
void paper_heading(struct paper *p, const char *text, const char *name, double keep_with);
void paper_table(struct paper *p, const struct text_table *t);
void paper_rows(struct paper *p, const struct text_table *t); /* without its title */

void paper_box(struct paper *p, struct rect r, double radius, uint32_t rgb, double alpha);
/* What stands between begin and end leads to the place of that name. */
void paper_place(struct paper *p, const char *name, double y);
void paper_link_begin(struct paper *p, const char *name);
void paper_link_end(struct paper *p);
#endif
