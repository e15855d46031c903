/* The pieces of document/html: not for others. */
#ifndef DOCUMENT_HTML_H
#define DOCUMENT_HTML_H

#include "document/document.h"
#include "analysis/outline.h"
#include "text/table.h"

struct html {
	const struct analysis *s;
	const struct charts *charts;
	const struct painter *painter;
	struct outline *o;
	bool live;			/* the script draws */
	const struct page_live *served; /* by a server, which keeps it up to date; NULL: a file */
	struct buf *out;
};

/* From the beginning to the open body. */
void html_head(struct buf *out, const char *title, bool live);
/* The chart as images that stand in the page: a light one and a dark one. */
int html_drawing(struct buf *out, const struct painter *painter, const struct chart *c);

void html_header(struct html *h);
void html_tiles(struct html *h);
void html_findings(struct html *h); /* and advice */
void html_phases(struct html *h);
void html_statistics(struct html *h);
void html_about(struct html *h);
void html_footer(struct html *h);
#endif
