/* What a recording may cost its readers, by the bytes of the file that were read so far: a small file must
 * not be able to take much memory or time. docs/format.md, section 9, states the limits; they are far from
 * what a recorder can write.
 *
 * It also knows every instance that was ever named, because an id that is used again would look like a new
 * instance to every reader that keeps a row per instance. */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include "base/idmap.h"

enum guard_item {
	GUARD_CONTENT,	 /* bytes that segments decode to */
	GUARD_TABLES,	 /* bytes of all tables */
	GUARD_INSTANCES, /* ids */
	GUARD_EVENTS,
	GUARD_TICKS,
	NR_GUARD_ITEMS
};

struct guard_page; /* of 256 ids */

struct guard_set {
	struct guard_page *page;
	uint32_t nr, cap;
	struct idmap by_number;
};

struct guard {
	uint64_t nr[NR_GUARD_ITEMS];
	struct guard_set *set;
	uint32_t nr_sets;
};

int guard_init(struct guard *g, uint32_t nr_sets); /* the schema is known: 0 or -ENOMEM */
void guard_release(struct guard *g);

/* Counts n more. -EDQUOT when that is more than so many bytes of file may hold. */
int guard_count(struct guard *g, enum guard_item item, uint64_t n, uint64_t file_bytes);
/* Why the limit was hit: a sentence for people, for STORE_LOST. */
const char *guard_reason(enum guard_item item);

/* An instance is named, or ends. -EBADMSG when it has ended before; -EDQUOT when there are too many. */
int guard_instance(struct guard *g, uint32_t set, uint32_t id, bool ends, uint64_t file_bytes);
#endif
