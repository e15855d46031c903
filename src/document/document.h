/* Reports as text: Markdown, the page, its data. What needs drawings gets them from a painter, so that
 * nothing here knows cairo. */
#ifndef DOCUMENT_DOCUMENT_H
#define DOCUMENT_DOCUMENT_H

#include "analysis/finding.h"
#include "analysis/analysis.h"

/* A chart as an SVG element. */
struct painter {
	int (*svg)(void *arg, const struct chart *f, bool dark, struct buf *out);
	void *arg;
};

/* docs/page-data.md: all that the page shows, as one JSON object. */
int page_data(const struct analysis *s, const struct charts *f, struct buf *out);
/* One file that needs nothing else: the built-in page with the data in it, or, when it was built without npm
 * (page_is_live() is false) or `still` is asked for, the same page with drawings. */
int page_html(const struct analysis *s, const struct charts *f, const struct painter *painter, bool still,
	struct buf *out);
bool page_is_live(void);

/* A page that a server keeps up to date (src/serve): what its data have beside all else. */
struct page_live {
	int64_t after_ns;  /* up to which tick of the run they are */
	const char *state; /* "recording", "ended", "lost" */
};
int page_html_live(
	const struct analysis *s, const struct charts *f, const struct page_live *live, struct buf *out);
/* What is new, as one JSON object: {from_s, to_s, nodes, panels, phases, events} (docs/serve.md). Of what
 * analysis_read_on() gave. */
int page_news(const struct analysis *s, const struct charts *f, struct buf *out);
/* Another page of that server: from the beginning to the open body, which has that class; and the script. The
 * policy is that of the header Content-Security-Policy; `hash` of another script may be in it (NULL: none).
 */
void page_served_head(struct buf *out, const char *title, const char *kind);
void page_served_script(struct buf *out);
void page_served_policy(struct buf *out, const char *hash);
/* The report with its tables; `picture` says where the drawings are: "plots/%s.png" with the chart's id. */
int markdown_report(const struct analysis *s, const struct charts *f, const char *picture, struct buf *out);
/* Its beginning: what was run, what is found in it and what to ask for next time. */
int markdown_note(const struct analysis *s, struct buf *out);
/* The report for the summary of a job on GitHub: charts that GitHub draws itself, tables folded, and no
 * longer than `most` bytes; -ENOBUFS when there is no room at all. */
int github_report(const struct analysis *s, const struct charts *f, size_t most, struct buf *out);

/* A link to the chart's drawing: `pattern` with its id for the %s. */
void markdown_picture(struct buf *out, const struct chart *c, const char *pattern);

struct terminal_style {
	unsigned columns, rows;
	bool utf8, color;
};

/* The chart in characters. */
int terminal_chart(const struct chart *f, const struct terminal_style *style, struct buf *out);
#endif
