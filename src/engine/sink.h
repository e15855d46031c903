/* Where the engine puts what it found. The store's writer is one; tests have others. */
#ifndef ENGINE_SINK_H
#define ENGINE_SINK_H

#include "base/pairs.h"
#include "metric/schema.h"
#include "metric/table.h"

struct sink {
	void *arg;
	void (*instance)(void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
		const struct pairs *identity);
	void (*gone)(void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
		const struct pairs *last);
	void (*event)(void *arg, int64_t time_ns, const char *kind, const struct pairs *data);
	void (*tick)(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table);
	void (*flush)(void *arg);
	/* The rest of the schema is known: what follows may be of any set. NULL: all of it was known from the
	 * start. */
	void (*schema)(void *arg, const struct schema *schema);
};

/* Takes everything and keeps nothing: for callers that replace the functions they need. */
struct sink sink_to_nowhere(void *arg);
#endif
