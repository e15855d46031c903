/* What stands at the end of a Parquet file: the schema, where each chunk of each row group is with its
 * statistics, and what the columns mean. */
#ifndef EXPORT_PARQUET_FOOTER_H
#define EXPORT_PARQUET_FOOTER_H

#include "export/exporter.h"
#include "export/parquet_chunk.h"

struct footer {
	const struct export_job *job;
	bool compressed;
	struct buf groups; /* the row groups, as it has them */
	size_t nr_groups;
	uint64_t nr_rows;
};

/* Of the row group that begins at `start` of the file: one chunk for each field. Returns groups.err. */
int footer_add_group(struct footer *f, const struct chunk *chunk, uint64_t nr_rows, uint64_t start);
/* All of it, with its length and the magic behind it. */
int footer_put(struct buf *out, const struct footer *f);
#endif
