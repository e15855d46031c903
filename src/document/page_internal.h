/* The pieces of document/page_data: not for others. */
#ifndef DOCUMENT_PAGE_INTERNAL_H
#define DOCUMENT_PAGE_INTERNAL_H

#include "base/json.h"
#include "document/document.h"

void page_panels(struct json *j, const struct analysis *s, const struct charts *f); /* "panels" */
void page_nodes(struct json *j, const struct analysis *s);			    /* "nodes" */
void page_processes(struct json *j, const struct analysis *s);
void page_stats_column(struct json *j, const struct stats_column *c);
/* Text from the recording, escaped for people. */
void page_text(struct json *j, const char *key, const char *text, size_t len);
/* Enough digits for a page: a millionth of it. */
void page_number(struct json *j, const char *key, double value);

/* Those of what is new: lines with their values alone. */
void page_news_panels(struct json *j, const struct analysis *s, const struct charts *f);
void page_events(struct json *j, const char *key, const struct run_event *m, size_t nr);
int page_data_live(
	const struct analysis *s, const struct charts *f, const struct page_live *live, struct buf *out);
/* In a script element no `<` may stand: \u003c means the same. */
void page_hide_sharps(struct buf *out, size_t from);

#define PAGE_PROCESSES 5000 /* rows of the table */
#endif
