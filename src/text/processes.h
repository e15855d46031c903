/* The table of processes: for people, as CSV and as JSON. `limit` 0: all of them. */
#ifndef REPORT_PROCESSES_H
#define REPORT_PROCESSES_H

#include "query/process_table.h"

/* width 0: lines as long as they are. */
void processes_text(const struct process_table *t, size_t limit, unsigned width, bool utf8, struct buf *out);
void processes_csv(const struct process_table *t, size_t limit, struct buf *out);
void processes_json(const struct process_table *t, size_t limit, struct buf *out);
#endif
