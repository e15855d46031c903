/* A list of recordings: for people, as CSV and as JSON. What cannot be read stands in the JSON only. */
#ifndef REPORT_LISTING_H
#define REPORT_LISTING_H

#include "query/listing.h"

struct listing_page {
	size_t limit;	/* 0: all */
	unsigned width; /* of the screen; 0: lines as long as they are */
	bool utf8, color;
	int64_t now_ns; /* wall clock: dates of this year are without it */
};

void listing_text(const struct listing *l, const struct listing_page *page, struct buf *out);
void listing_csv(const struct listing *l, const struct listing_page *page, struct buf *out);
void listing_json(const struct listing *l, const struct listing_page *page, struct buf *out);
#endif
