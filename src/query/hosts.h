/* The machines of a run: recordings of one host are of one machine. */
#ifndef QUERY_HOSTS_H
#define QUERY_HOSTS_H

#include "query/summary.h"

struct host {
	const char *name; /* borrowed from the summary; "" when not known */
	size_t first;	  /* its first recording */
	/* What the job used and held there, by all its recordings; NAN: not known. Peaks of several are
	 * added: they need not have been at once. */
	double cpu_s, memory_bytes;
};

struct hosts {
	struct host *host; /* in the order of their first recordings */
	size_t nr;
	size_t *of; /* of each recording: the index of its host */
	size_t nr_parts;
};

int hosts_make(const struct summary *s, struct hosts *ret); /* -ENOMEM */
void hosts_release(struct hosts *h);
/* A recording of the run; where there is only one, the run itself. */
static inline const struct summary *hosts_part(const struct summary *s, size_t i)
{
	return s->nr_nodes ? &s->node[i] : s;
}
#endif
