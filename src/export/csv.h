/* Inside of the CSV formats. */
#ifndef EXPORT_CSV_H
#define EXPORT_CSV_H

#include "export/text.h"

/* "proc.mem.rss [bytes]", behind an instance when there is one (NULL, "": none). */
void csv_add_heading(
	struct buf *out, const struct export_job *job, const char *instance, const struct field *f);
/* A value of a table's batch; nothing when it is missing. */
void csv_add_cell(struct buf *out, const struct export_job *job, const struct data_table_batch *b,
	size_t field, uint32_t row);

/* Instances side by side. */
struct csv_wide;
int csv_wide_open(const struct export_job *job, struct csv_wide **ret);
void csv_wide_free(struct csv_wide *w);
/* -E2BIG: too many instances, with a message. */
int csv_wide_row(struct csv_wide *w, const struct data_table_batch *b, uint32_t row);
/* All of it, to the outlet. */
int csv_wide_end(struct csv_wide *w);
#endif
