/* One column of one row group: pages are encoded and compressed as they come, and kept until the row group is
 * written. So memory holds a page or two of values as they are, and a row group of compressed ones. */
#ifndef EXPORT_PARQUET_CHUNK_H
#define EXPORT_PARQUET_CHUNK_H

#include "export/parquet_gather.h"

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
	uint32_t *id; /* room for a page's numbers of values in a dictionary */
};

int press_init(struct press *p, bool compress);
void press_release(struct press *p);

struct chunk {
	enum field_type type;
	enum parquet_encoding choice;
	uint32_t age; /* row groups since it was chosen */
	struct distinct dictionary;
	struct text_page texts;
	struct buf first, pages; /* the page of the dictionary, and the others */
	uint64_t raw_size;	 /* of both, before compression, with their headers */
	uint64_t nr_rows, nr_missing;
	uint32_t encodings; /* mask of those in use */
	uint64_t min, max;  /* as their bits */
	bool bounded;	    /* min and max are set */
	bool only_same;	    /* it was chosen by pages of one value each, which say nothing of others */
};

void chunk_init(struct chunk *c, enum field_type type);
void chunk_release(struct chunk *c);
int chunk_add(struct chunk *c, struct press *p, struct parquet_page *page);
/* Makes `first`, of what c->texts hold or of the dictionary of numbers. */
int chunk_end(struct chunk *c, struct press *p);
void chunk_clear(struct chunk *c); /* for the next row group */
#endif
