/* A summary with the finding that matters most, as a report would begin. */
#ifndef ANALYSIS_TOP_FINDING_H
#define ANALYSIS_TOP_FINDING_H

#include "query/summary.h"

/* As summary_read(). *ret_finding is one line, without full stop, for the caller to free; NULL: nothing
 * stands out. An alarm of memory that ran out gets the process, the time and the limit. */
int summary_read_with_finding(
	const struct run *run, struct summary **ret, char **ret_finding, struct buf *reterr);
#endif
