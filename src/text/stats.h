/* Statistics as text: for people, as CSV and as JSON. */
#ifndef TEXT_STATS_H
#define TEXT_STATS_H

#include "query/stats.h"
#include "text/table.h"

extern const char *const stats_level_names[NR_STATS_LEVELS + 1]; /* "run", "node"…; NULL at the end */

struct stats_page {
	struct text_style style;
	unsigned levels; /* a mask: 1 << STATS_RUN and so on */
	size_t limit;	 /* rows of processes; 0: all */
	double length_s; /* of the run, for moments */
};

/* For people: few rows stand side by side, with a line for each statistic; many have a line each.
 * CSV: `level`, `name`, `host`, `pid`, then all columns in base units; what is not known is empty.
 * JSON: a list for each level, and `columns`: what the names mean. */
void stats_write(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out);
#endif
