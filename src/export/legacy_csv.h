/* Files of older tools, for the scripts that read them: lines of text whose columns have a name there and a
 * field here. A format is a table of such columns; the names of that tool are there and nowhere else. */
#ifndef EXPORT_LEGACY_CSV_H
#define EXPORT_LEGACY_CSV_H

#include "export/exporter.h"

enum legacy_csv_look {
	LEGACY_CSV_FIXED, /* with so many digits */
	LEGACY_CSV_WHOLE, /* cut to an integer */
	LEGACY_CSV_TOOL, /* of a process, by its number: the last of its groups (a job's comes before those of
		       its tools), and a process that is in none has no line; in a run without groups the
		       process' name */
	LEGACY_CSV_NUMBER, /* of a text: in the order in which they came */
	LEGACY_CSV_EPOCH,  /* times: 1763200000.123456789 */
	LEGACY_CSV_ISO,	   /* 2026-11-15T19:30:00.123+00:00 */
	LEGACY_CSV_SLASH,  /* 2026/11/15 19:30:00.123 */
};

struct legacy_csv_column {
	const char *name, *field;
	double factor; /* our unit x factor = theirs */
	enum legacy_csv_look look;
	int digits;
	const char *missing; /* NULL: that of the file */
};

struct legacy_csv_file {
	const char *name, *table;
	const char *only;    /* rows of this instance; NULL: all */
	const char *heading; /* what stands before the names; NULL: there are no names */
	const char *second;  /* a line behind the heading; NULL: none */
	const char *between, *end, *missing;
	const struct legacy_csv_column *column; /* name NULL at the end */
};

#define NO_FIELD SIZE_MAX
size_t legacy_csv_field(const struct data_table *f, const char *name); /* NO_FIELD: it is not exported */
/* A new file in the job's folder: its descriptor, or a negative errno. */
int legacy_csv_create(const struct export_job *job, const char *name);

/* The files of a format, those whose table is not exported left out; -ENODATA when that is all of them. */
int legacy_csv_open(const struct legacy_csv_file *file, size_t nr_files, const struct export_job *job,
	void **ret, struct buf *reterr);
int legacy_csv_add(void *e, const struct data_table_batch *b);
int legacy_csv_close(void *e);
void legacy_csv_drop(void *e);
#endif
