/* All rows of a run's tables in memory, for tests: every batch is checked as it comes. */
#ifndef TABLES_ROWS_H
#define TABLES_ROWS_H

#include "query/tables.h"

struct kept_frame {
	const char *name;
	const struct field *field;
	size_t nr_fields, nr_rows, cap, nr_batches;
	struct kept_cell {
		bool known;
		union {
			int64_t integer;
			double real;
			uint32_t text;
		};
	} * cell; /* [nr_rows][nr_fields] */
};

struct kept {
	struct run *run;
	struct tables *tables;
	struct kept_frame *table;
	size_t nr;
	int status; /* what the last tables_next() returned */
};

/* NULL options: everything. */
struct kept *keep_paths(const char *const *path, size_t nr, const struct tables_options *o);
struct kept *keep(const char *path, const struct tables_options *o);
void kept_free(struct kept *k);

/* NULL when there is none. */
struct kept_frame *kept_find(struct kept *k, const char *name);
struct kept_frame *kept_table(struct kept *k, const char *name); /* fails the test */
size_t kept_field(const struct kept_frame *f, const char *name); /* fails the test */
bool has_field(const struct kept_frame *f, const char *name);
const struct kept_cell *kept_cell(struct kept *k, const char *table, const char *field, size_t row);
/* NAN: missing. */
double kept_number(struct kept *k, const char *table, const char *field, size_t row);
/* NULL: missing. */
const char *kept_text(struct kept *k, const char *table, const char *field, size_t row);

/* Every column of every table of time is value by value what a series of the recording gives; returns how
 * many values were compared. */
size_t same_as_series(const char *path, const struct tables_options *o);
#endif
