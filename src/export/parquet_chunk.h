/* One column of one row group: values are gathered until they make a page, pages are kept, compressed, until
 * the row group is written. So memory holds a page of values as they are and a row group of compressed ones.
 */
#ifndef EXPORT_PARQUET_CHUNK_H
#define EXPORT_PARQUET_CHUNK_H

#include "base/buf.h"
#include "export/parquet_distinct.h"
#include "query/frames.h"

#include <zstd.h>

enum parquet_encoding { /* as the format numbers them */
	ENCODING_PLAIN = 0,
	ENCODING_RLE = 3,
	ENCODING_DELTA = 5,
	ENCODING_DICTIONARY = 8,
	ENCODING_SPLIT = 9,
	ENCODING_NONE = 31, /* not chosen yet */
};

/* What all columns share: they are worked on one after the other. */
struct press {
	ZSTD_CCtx *zstd; /* NULL: nothing is compressed */
	struct buf raw, packed[2];
	uint32_t *id;
	size_t nr_ids;
};

int press_init(struct press *p, bool compress);
void press_release(struct press *p);

struct chunk {
	enum field_type type;
	/* The page being filled. */
	uint8_t *bits; /* which rows have a value; nothing while all have */
	size_t cap_bits;
	void *value; /* those that are there: 8 bytes each, 4 for texts, 1 for flags */
	size_t cap_values;
	uint32_t nr_rows, nr_values;
	bool missing; /* some of the page's rows are: `bits` are in use */
	/* Of the chunk. */
	enum parquet_encoding choice;
	uint32_t age; /* chunks since it was chosen */
	struct distinct dictionary;
	struct text_numbers texts;
	uint64_t text_bytes;
	struct buf first, pages; /* the page of the dictionary, and the others */
	uint64_t raw_size;	 /* of both, before compression, with their headers */
	uint64_t nr_all, nr_missing;
	uint32_t encodings; /* mask of those in use */
	uint64_t min, max;  /* as their bits */
	bool bounded;	    /* min and max are of something */
};

void chunk_init(struct chunk *c, enum field_type type);
void chunk_release(struct chunk *c);
int chunk_add(struct chunk *c, struct press *p, const struct field_cells *cells, uint32_t nr_rows,
	const struct texts *texts);
/* Everything into `first` and `pages`. */
int chunk_end(struct chunk *c, struct press *p, const struct texts *texts);
void chunk_clear(struct chunk *c); /* for the next row group */
/* Numbers of the texts that are first and last in the order of their bytes; false: there are none. */
bool chunk_text_bounds(
	const struct chunk *c, const struct texts *texts, uint32_t *ret_min, uint32_t *ret_max);
#endif
