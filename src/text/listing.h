/* A list of recordings: for people, as CSV and as JSON. What cannot be read stands in the JSON only. */
#ifndef TEXT_LISTING_H
#define TEXT_LISTING_H

#include "query/listing.h"
#include "text/table.h"

struct listing_page {
	struct text_style style;
	size_t limit;	/* 0: all */
	int64_t now_ns; /* wall clock: dates of this year are without it */
};

void listing_write(const struct listing *l, const struct listing_page *page, struct buf *out);
const char *listed_trouble(const struct listed *l); /* why it cannot be read */
#endif
