/* A run in progress as text: a line, or an object of JSON, for each interval. */
#ifndef TEXT_FOLLOW_H
#define TEXT_FOLLOW_H

#include "query/follow.h"

/* What is shown unless metrics are named: CPUs, memory, processes, reading and writing, and GPUs where there
 * are some. */
extern const char *const follow_metrics[];
extern const size_t nr_follow_metrics;

struct follow_page {
	bool json, utf8;
	bool several;	 /* recordings: each line says of which host it is */
	unsigned height; /* the heading comes again after so many lines; 0: once */
	/* Kept by follow_print(). */
	unsigned nr_lines, nr_columns;
};

void follow_print(struct follow_page *p, const struct follow_line *line, struct buf *out);
#endif
