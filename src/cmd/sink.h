/* The engine's findings go to the store as they are. */
#ifndef CMD_SINK_H
#define CMD_SINK_H

#include "cmd/tally.h"
#include "engine/sink.h"
#include "store/store.h"

struct store_sink {
	struct store_writer *store;
	int error;	 /* something is not in the file for good: 0 or a negative errno */
	int flush_error; /* of the first flush that failed; what waited may have been written later */
	/* Makes the store when there is something to keep; NULL: it is there. */
	void (*create)(void *arg);
	void *arg;
	struct tally *tally; /* NULL: nobody wants it */
};

struct sink sink_to_store(struct store_sink *s);

struct engine;
/* What was asked for: the sets' names in the metadata `asked`, and what can be made of rows that no version
 * knows beforehand, `derived.NAME`. */
void store_wishes(struct store_writer *store, const struct engine *e);
#endif
