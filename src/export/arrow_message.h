/* Messages of Arrow's IPC, which are FlatBuffers that describe a body. Every call makes one in `flat`, which
 * is then ready to be written. */
#ifndef EXPORT_ARROW_MESSAGE_H
#define EXPORT_ARROW_MESSAGE_H

#include "export/arrow_body.h"
#include "export/flat.h"

/* Columns of texts have dictionaries, whose id is the number of the column. */
int arrow_schema_message(struct flat *flat, const struct data_table *table);
int arrow_batch_message(struct flat *flat, const struct arrow_body *body, uint32_t nr_rows);
int arrow_dictionary_message(struct flat *flat, const struct arrow_body *body, size_t id, uint32_t nr_texts);

struct arrow_block { /* where a message stands in the file; little-endian, as in the footer */
	int64_t at;
	int32_t meta_len, unused;
	int64_t body_len;
};

int arrow_footer(struct flat *flat, const struct data_table *table, const struct buf *dictionaries,
	const struct buf *batches);
#endif
