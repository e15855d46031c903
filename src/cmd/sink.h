/* The engine's findings go to the store as they are. */
#ifndef CMD_SINK_H
#define CMD_SINK_H

#include "cmd/tally.h"
#include "engine/sink.h"
#include "store/store.h"

struct store_sink {
	struct store_writer *store;
	int error;	 /* why something will never be in the file: 0 or a negative errno */
	int flush_error; /* of the first flush that failed; what waited may have been written later */
	/* Makes the store when there is something to keep; NULL: it is there. */
	void (*create)(void *arg);
	void *arg;
	struct tally *tally; /* NULL: not wanted */
};

struct sink sink_to_store(struct store_sink *s);

struct engine;
/* What the user asked for: the names of sets in the metadata `asked`, and the formulas of planned rows, which
 * no reader can know, as `derived.NAME`. */
void store_wishes(struct store_writer *store, const struct engine *e);
#endif
