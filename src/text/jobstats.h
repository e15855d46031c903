/* A run as one line for programs that read what jobstats keeps of a job. */
#ifndef TEXT_JOBSTATS_H
#define TEXT_JOBSTATS_H

#include "query/summary.h"

/* "JS1:" and base64 of gzip of the JSON, with a newline. -ENOMEM. */
int jobstats_print(const struct summary *s, struct buf *out);
/* The JSON alone. */
int jobstats_json(const struct summary *s, struct buf *out);
#endif
