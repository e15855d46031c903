/* The job report: a PDF to print, to file or to send. */
#ifndef DRAW_JOB_REPORT_H
#define DRAW_JOB_REPORT_H

#include "base/progress.h"
#include "analysis/outline.h"
#include "analysis/analysis.h"

int job_report(const struct analysis *s, const struct charts *f, const struct outline *o,
	const struct progress *progress, struct buf *out);
#endif
