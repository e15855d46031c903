/* The groups of processes of one recording (targets, tools, steps, ranks) side by side: the cores and the
 * memory of each at every tick that a reading keeps, as `tacho show --series … --group` has them. */
#ifndef TOP_PARTS_H
#define TOP_PARTS_H

#include "query/walk.h"

enum part_value { PART_CORES, PART_MEMORY, NR_PART_VALUES };

struct top_parts;

/* *ret is NULL where there is nothing to tell of groups. -ENOMEM. */
int parts_open(struct walk *walk, struct top_parts **ret);
void parts_close(struct top_parts *p);
/* After each tick of the walk. -ENOMEM. */
int parts_tick(struct top_parts *p);
/* The numbers of that tick, which is the one before that of the walk, or the last, go to this place of so
 * many. -ENOMEM. */
int parts_take(struct top_parts *p, ptrdiff_t place, size_t places, int64_t time_ns);
unsigned parts_nr(const struct top_parts *p); /* groups so far; p may be NULL */
/* Borrowed, any bytes but NUL. */
const char *parts_name(const struct top_parts *p, unsigned group);
bool part_is_rank(const char *name);
/* NAN: not known. */
double parts_value(const struct top_parts *p, ptrdiff_t place, unsigned group, enum part_value which);
#endif
