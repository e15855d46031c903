/* Files of older tools, for the scripts that read them: lines of text whose columns have a name there and a
 * field here. A format is a table of such columns; its names stand there and nowhere else. */
#ifndef EXPORT_OLDER_H
#define EXPORT_OLDER_H

#include "export/exporter.h"

enum older_look {
	OLDER_FIXED, /* with so many digits */
	OLDER_WHOLE, /* cut to an integer */
	OLDER_TOOL,  /* of a process, by its number: the last of its groups (a job's comes before those of its
			tools), and a process that is in none has no line; in a run without groups the process'
			name */
	OLDER_NUMBER, /* of a text: in the order in which they came */
	OLDER_EPOCH,  /* times: 1763200000.123456789 */
	OLDER_ISO,    /* 2026-11-15T19:30:00.123+00:00 */
	OLDER_SLASH,  /* 2026/11/15 19:30:00.123 */
};

struct older_column {
	const char *name, *field;
	double factor; /* our unit x factor = theirs */
	enum older_look look;
	int digits;
	const char *missing; /* NULL: that of the file */
};

struct older_file {
	const char *name, *frame;
	const char *only;    /* rows of this instance; NULL: all */
	const char *heading; /* what stands before the names; NULL: there are no names */
	const char *second;  /* a line behind the heading; NULL: none */
	const char *between, *end, *missing;
	const struct older_column *column; /* name NULL at the end */
};

#define NO_FIELD SIZE_MAX
size_t older_field(const struct frame *f, const char *name); /* NO_FIELD: it is not exported */
/* A new file in the job's folder: its descriptor, or a negative errno. */
int older_create(const struct export_job *job, const char *name);

/* The files of a format, those whose table is not exported left out; -ENODATA when that is all of them. */
int older_open(const struct older_file *file, size_t nr_files, const struct export_job *job, void **ret,
	struct buf *reterr);
int older_add(void *e, const struct frame_batch *b);
int older_close(void *e);
void older_drop(void *e);
#endif
