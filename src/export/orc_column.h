/* One column of a stripe of ORC: its values, in streams, and their statistics. */
#ifndef EXPORT_ORC_COLUMN_H
#define EXPORT_ORC_COLUMN_H

#include "export/orc_stream.h"
#include "export/parquet_distinct.h"
#include "export/exporter.h"

#define STRIPE_ROWS (128u << 10) /* a stripe ends with the batch that reaches this */

struct orc_statistics {
	uint64_t nr; /* values that are there */
	bool missing;
	bool unordered;	       /* it has NaNs: no bounds are written */
	bool overflown;	       /* the sum of integers is too large */
	int64_t min, max, sum; /* texts: their numbers, and the sum of lengths; flags: how many are set */
	double real_min, real_max, real_sum;
};

struct orc_column {
	enum field_type type;
	struct orc_stream present, data;
	struct orc_stream second;     /* times: parts of seconds; texts: lengths of the dictionary */
	struct orc_stream dictionary; /* texts */
	uint8_t *bits, *flags;	      /* of all rows of the stripe, and of the values that are there */
	struct text_numbers texts;
	struct orc_statistics stripe, file;
};

/* Values that are there, without those that are not; shared by all columns. */
struct orc_scratch {
	union {
		int64_t integer[DATA_TABLE_ROWS_MOST];
		double real[DATA_TABLE_ROWS_MOST];
	};
	int64_t second[DATA_TABLE_ROWS_MOST];
	uint32_t text[DATA_TABLE_ROWS_MOST], number[DATA_TABLE_ROWS_MOST];
};

int orc_column_init(struct orc_column *c, enum field_type type); /* release also after a failure */
void orc_column_release(struct orc_column *c);
void orc_column_clear(struct orc_column *c); /* for the next stripe */
/* `at`: rows of the stripe before these. */
int orc_column_add(struct orc_column *c, struct orc_press *p, struct orc_scratch *scratch,
	const struct field_cells *cells, uint32_t nr_rows, uint32_t at, const struct texts *texts);
/* Ends the streams and adds the statistics to those of the file. */
int orc_column_end(struct orc_column *c, struct orc_press *p, uint32_t nr_rows, const struct texts *texts);
size_t orc_column_waiting(const struct orc_column *c); /* bytes in memory */

/* As a message ColumnStatistics. */
void orc_statistics_put(
	struct buf *out, const struct orc_statistics *s, enum field_type type, const struct texts *texts);
#endif
