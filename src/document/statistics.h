/* The statistics of a run for programs. */
#ifndef DOCUMENT_STATISTICS_H
#define DOCUMENT_STATISTICS_H

#include "query/stats.h"

/* A line for each row: `level` (run, node, group, user, process), `name`, `node`, then every statistic in
 * base units; what is not known is empty. */
void stats_csv(const struct stats *s, struct buf *out);
#endif
