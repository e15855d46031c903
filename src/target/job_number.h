/* Numbers among the data of a mark: KEY=NUMBER becomes a metric `app.KEY` (docs/marks.md). */
#ifndef TARGET_JOB_NUMBER_H
#define TARGET_JOB_NUMBER_H

#include "metric/metric.h"

#define JOB_NUMBER_PREFIX "app."
/* With the prefix it is the name of a metric, which expressions can have. */
#define JOB_NUMBER_NAME 64
#define JOB_NUMBER_UNIT 24

struct job_number {
	char name[JOB_NUMBER_NAME]; /* of the metric: [a-z0-9_.] */
	double value; /* in its base unit; NAN: the job says that it is not known, or infinite */
	enum metric_unit unit;
	char unit_text[JOB_NUMBER_UNIT]; /* of `unit=` where it is no unit that we know; may be empty */
};

/* False: the word (KEY=VALUE) is no number. `unit`: the value of the word `unit=` of the same message, NULL:
 * there is none. */
bool job_number_parse(
	const char *word, size_t len, const char *unit, size_t unit_len, struct job_number *ret);
#endif
