/* A node's collector whose source is one file of keys and values: its rows are all there is to write. */
#ifndef COLLECT_KEYED_H
#define COLLECT_KEYED_H

#include "collect/collector.h"
#include "read/textfile.h"

struct keyed {
	struct textfile file;
	struct kv_reader reader;
	uint32_t row;
};

/* Opens the file, joins the node, and says which rows this kernel does not report. Rows of a source other
 * than 0 are the collector's own business. */
int keyed_open(struct keyed *k, struct collect_context *ctx, const struct collector *c, const char *path,
	bool in_one);
/* Length of the text, or a negative errno: then the row holds no values. */
ssize_t keyed_sample(struct keyed *k, struct collect_context *ctx);
void keyed_close(struct keyed *k, struct collect_context *ctx);

/* Says of every recorded metric of `source` that has no value in the row: not reported here. */
void collect_explain(struct collect_context *ctx, const struct collector *c, int source, uint32_t row);
/* Gives one reason for all recorded metrics. */
void collect_tell(struct collect_context *ctx, const struct collector *c, enum availability availability,
	const char *reason, const char *remedy);
/* The row could not be read: it is written as empty, so that an old value does not pass for a new one. */
void collect_lost(struct collect_context *ctx, uint32_t row);
#endif
