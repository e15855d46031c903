/* Events that have begun and not ended (kinds that end in ".begin" and ".end", identified by the pair
 * `name`): a segment repeats them, so that a reader that begins there knows of them. When there are too many,
 * the oldest are not repeated. Nothing is allocated. */
#ifndef STORE_OPEN_EVENTS_H
#define STORE_OPEN_EVENTS_H

#include "base/pairs.h"

#define OPEN_EVENTS_MOST 64

struct open_events {
	struct open_event {
		int64_t time_ns;
		uint64_t what; /* hash of kind and name */
		size_t size;
		uint8_t text[1000]; /* kind and pairs, as in an EVENT; long values are cut */
	} item[OPEN_EVENTS_MOST];   /* from the oldest on */
	unsigned nr;
};

void open_events_take(struct open_events *o, int64_t time_ns, const char *kind, const struct pairs *data);
#endif
