/* What the columns are called in which the job's own numbers stand (docs/format.md, `told`). The names come
 * in the course of the recording; readers want them before the first tick, so they are looked for at its end.
 */
#ifndef QUERY_TOLD_H
#define QUERY_TOLD_H

#include "store/store.h"

/* Is it one of the job's own numbers, which hold until the next is told? */
bool told_is(const char *metric);

struct told_names {
	char *list; /* NULL: there are none */
	size_t len;
};

void told_release(struct told_names *t);
/* Keeps the list of the record, if it has one. -ENOMEM. */
int told_take(struct told_names *t, const struct store_record *record);
/* Looks at the end of the recording, of which the beginning was read: the reader is of no other use then.
 * -ENOMEM, or another errno. */
int told_find(struct told_names *t, struct store_reader *reader);
/* Names the columns of the set that have no name yet. -ENOMEM. */
int told_apply(const char *list, size_t len, struct store_reader *reader, uint32_t set);
#endif
