/* A recording with all that a report shows, for the tests of analysis/ and document/: two CPUs, a job of
 * workers whose use is known, limits, events; by wish groups, or thousands of processes that lived for a
 * moment. */
#ifndef JOB_MAKER_H
#define JOB_MAKER_H

#include "query_maker.h"

#include "analysis/finding.h"
#include "analysis/analysis.h"

#define WORKER_PID 1000

struct job {
	const char *host;
	int64_t ticks;	  /* one a second, from 0 on */
	unsigned workers; /* worker k keeps (k + 1) / 10 of a CPU busy and has k + 1 MiB of its own */
	unsigned brief;	  /* processes of a tenth of a second, evenly over the run */
	bool groups;	  /* the workers are in "even" and "odd" by turns */
	unsigned events;  /* marks, evenly over the run */
	bool phase;	  /* "build <i>" from a quarter of the ticks to their half */
	const char *name; /* of the processes; NULL: "worker" */
	bool counters;	  /* 1000 cycles a second */
};

void make_job(const char *path, const struct job *job);
/* The story of these recordings; options NULL: as they are by default. analysis_end() closes the run as well.
 */
struct analysis *analysis_of(const char *const *path, size_t nr, const struct analysis_options *options);
void analysis_end(struct analysis *s);

const struct chart *chart_named(const struct charts *f, const char *id); /* NULL: there is none */
const struct chart_curve *chart_curve_named(const struct chart *c, const char *name);
#endif
