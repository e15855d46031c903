/* What is found in the run so far, as a page of text: the findings of the report. */
#ifndef TOP_EXPLAIN_H
#define TOP_EXPLAIN_H

#include "query/run.h"

/* NULL: it cannot be read, and reterr says why. The caller frees the text. */
char *explain_findings(const struct run *run, unsigned width, struct buf *reterr);
#endif
