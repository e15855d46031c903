/* What the recorder knows at the end without reading its recording: the highest sums over processes, and the
 * CPU time. It goes into the last block, so that a list of recordings need not read their ticks. */
#ifndef CMD_TALLY_H
#define CMD_TALLY_H

#include "base/pairs.h"
#include "metric/schema.h"
#include "metric/table.h"

struct tally;

/* NULL: no memory; the recording is then without these numbers. */
struct tally *tally_new(const struct schema *schema, uint32_t max_members, bool attached);
struct tally *tally_free(struct tally *t);
/* As the sink gets it. `t` may be NULL. */
void tally_instance(struct tally *t, uint32_t set, uint32_t row, const struct pairs *identity);
void tally_gone(struct tally *t, uint32_t set, uint32_t row, const struct pairs *last);
void tally_tick(struct tally *t, struct table *const *table);
/* `whole`: everything that was used is the job's, and all its processes have ended. `seen`: how many
 * processes. */
void tally_describe(const struct tally *t, bool whole, uint64_t seen, struct pairs *p);
#endif
