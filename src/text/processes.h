/* The table of processes: for people, as CSV and as JSON. */
#ifndef TEXT_PROCESSES_H
#define TEXT_PROCESSES_H

#include "query/process_table.h"
#include "text/table.h"

void processes_write(const struct process_table *p, size_t limit, /* 0: all of them */
	const struct text_style *style, struct buf *out);
#endif
