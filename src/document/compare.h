/* A comparison for people and programs. */
#ifndef DOCUMENT_COMPARE_H
#define DOCUMENT_COMPARE_H

#include "document/document.h"
#include "analysis/compare.h"
#include "text/table.h"

struct compare_style {
	bool all;	  /* every figure, not only those that matter and differ */
	bool color, utf8; /* of text in the terminal */
	unsigned width;
};

/* What is said of the whole: the comparison, and what was demanded of it. */
struct compare_page {
	const struct comparison *c;
	const struct compare_verdict *verdict;
	size_t nr_verdicts;
	const struct chart *chart; /* runs laid over one another: of the page and of Markdown */
	size_t nr_charts;
	const struct painter *painter; /* of the page */
	const char *note;	       /* of the charts; may be NULL */
	const char *picture; /* of Markdown: "plots/%s.png" with the chart's id; NULL: no pictures */
};

int compare_text(const struct compare_page *p, const struct compare_style *style, struct buf *out);
int compare_markdown(const struct compare_page *p, const struct compare_style *style, struct buf *out);
int compare_json(const struct compare_page *p, struct buf *out);
int compare_html(const struct compare_page *p, const struct compare_style *style, struct buf *out);

/* ---- the pieces, not for others ---- */

enum {
	COLUMN_NAME,
	COLUMN_BASE,
	COLUMN_OTHER,
	COLUMN_DIFFERENCE,
	COLUMN_RATIO,
	COLUMN_MARK,
	NR_COMPARE_COLUMNS
};

/* One set against the base. */
struct compare_table {
	struct text_table t;
	struct text_column column[NR_COMPARE_COLUMNS];
	struct compare_row *row;
	bool has_spread, has_marks, has_guess; /* of some row */
	struct buf only[2]; /* "only in before: load, save": names of phases; empty: none */
};

int compare_table_make(const struct comparison *c, size_t set, bool phases, const struct compare_style *style,
	struct compare_table *ret);
void compare_table_free(struct compare_table *t);
/* "memory.peak>+10%: memory.peak_pss_bytes was 1.0 GiB and is 1.2 GiB: +18 %" */
void compare_verdict_words(const struct compare_page *p, const struct compare_verdict *v, struct buf *out);
/* "a.tacho, b.tacho, c.tacho": escaped, at most a few. */
void compare_set_names(const struct compare_set *set, struct buf *out);
/* What the marks and the ± mean; nothing when there are none. */
void compare_legend(const struct compare_table *t, struct buf *out);
#endif
