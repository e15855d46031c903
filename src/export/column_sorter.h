/* Rows of a table waiting to be given out column by column, each column series by series, each series in
 * order of time: what comes as (time, series, values) leaves as (series, time, value).
 *
 * Rows are collected in memory; when there are enough they are sorted, and of each column a run goes to the
 * spool's file. In the end the runs of a column are merged. So every value is written and read once, however
 * long the recording is. A spool for each series was rejected: of a hundred thousand processes there are
 * millions. */
#ifndef EXPORT_COLUMN_SORTER_H
#define EXPORT_COLUMN_SORTER_H

#include "export/spool.h"

struct column_sorter_point { /* bits of an integer or of a double: the column's owner knows */
	int64_t time;
	uint64_t value;
	uint32_t series;
} __attribute__((packed));

struct column_sorter_run {
	uint64_t at, nr;
};

struct column_sorter_column {
	uint64_t *value; /* of the rows in memory */
	bool *there;
	struct column_sorter_run *run;
	size_t nr_runs, cap_runs;
};

struct column_sorter {
	int64_t *time; /* of the rows in memory */
	uint32_t *series;
	struct column_sorter_column *column;
	size_t nr_columns, nr_rows, cap_rows;
};

int column_sorter_init(struct column_sorter *s, size_t nr_columns); /* release also after a failure */
void column_sorter_release(struct column_sorter *s);
/* Room for nr rows more, to be filled at nr_rows. */
int column_sorter_reserve(struct column_sorter *s, size_t nr);
size_t column_sorter_size(const struct column_sorter *s); /* bytes of the rows in memory */
int column_sorter_flush(struct column_sorter *s, struct spool_file *f);
/* All values of a column that were flushed, in order. */
int column_sorter_merge(const struct column_sorter *s, size_t column, const struct spool_file *f,
	int (*each)(void *arg, const struct column_sorter_point *p), void *arg);
#endif
