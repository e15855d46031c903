/* Tables made by hand, for the tests of the formats: every type, values that are missing, the edges of 64-bit
 * integers and of doubles, texts that try to break out, a table without rows, one without anything missing,
 * several batches, a dictionary that grows between them.
 *
 * What is in which row is a function of (table, row, field): the same one makes the batches and tells a test
 * what to expect. lab_write() pushes it all through an exporter into one file, and is all that most tests
 * need; export_tool.c does that from the command line, for readers in Python. */
#ifndef EXPORT_LAB_H
#define EXPORT_LAB_H

#include "export/exporter.h"

#define LAB_FRAMES 4

enum { LAB_MIXED, LAB_EMPTY, LAB_WHOLE, LAB_PROPERTIES }; /* indexes of tables */

struct lab_value {
	bool valid;
	enum field_type type;
	int64_t integer; /* time, integer, flag */
	double real;
	const char *text;
};

extern const struct data_table lab_frame[LAB_FRAMES];

uint32_t lab_rows(size_t table);
struct lab_value lab_value(size_t table, uint32_t row, size_t field);

struct lab_options {
	uint32_t batch_rows; /* rows of a batch; 0: 1000 */
	enum export_layout layout;
	const char *compression;
};

/* Table `only` for formats with a file each; others take all. The file is made, whole or not at all (by_path
 * and OWN_FILES: at that path). Returns what the exporter did. */
int lab_write(const struct exporter *x, size_t only, const struct lab_options *options, const char *path);
/* The same from bytes: rows, missing values, numbers and texts are what they say. For fuzzers. */
int lab_write_fuzz(const struct exporter *x, const uint8_t *data, size_t len, const char *path);
/* What lab_frame holds as JSON, for readers in Python: [{"name", "fields": [{"name", "type", "unit", …}],
 * "rows": [[…]]}]. */
void lab_json(struct buf *out);
#endif
