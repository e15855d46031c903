/* Statistics as text: for people, as CSV and as JSON. */
#ifndef REPORT_STATS_H
#define REPORT_STATS_H

#include "base/json.h"
#include "base/units.h"
#include "query/stats.h"

extern const char *const stats_level_names[NR_STATS_LEVELS + 1]; /* "run", "node"…; NULL at the end */

/* Mask of levels, 1 << STATS_RUN and so on. */
struct stats_page {
	unsigned levels;
	size_t limit;	/* rows of processes; 0: all */
	unsigned width; /* of the screen; 0: lines as long as they are */
	bool utf8, color;
	double length_s; /* of the run, for moments */
};

/* Tables: whole columns of numbers where the rows fit side by side, else a line for each row. */
void stats_print(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out);
/* `level`, `name`, `host`, `pid`, then all columns in base units; what is not known is empty. */
void stats_write_csv(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out);
/* A list for each level, and `columns`: what the names mean. */
void stats_write_json(
	const struct stats *s, const struct process_table *t, const struct stats_page *page, struct buf *out);
#endif
