/* The pieces of document/html: not for others. */
#ifndef DOCUMENT_HTML_H
#define DOCUMENT_HTML_H

#include "document/document.h"
#include "analysis/outline.h"

struct html {
	const struct analysis *s;
	const struct charts *charts;
	const struct painter *painter;
	struct outline *o;
	bool live; /* the script draws */
	struct buf *out;
};

/* Any text, so that it is nothing but text, also between quotes. */
void add_html(struct buf *out, const char *text);
/* The text between two pieces of markup. */
void add_element(struct buf *out, const char *open, const char *text, const char *close);
/* The chart as an image that stands in the page. */
int html_drawing(struct buf *out, const struct painter *painter, const struct chart *c, bool dark);

void html_header(struct html *h);
void html_tiles(struct html *h);
void html_findings(struct html *h); /* and advice */
void html_statistics(struct html *h);
void html_about(struct html *h);
void html_footer(struct html *h);
#endif
