/* Numbers that the job tells of itself while it is recorded. Each key is a column; it gets its name when it
 * is told for the first time. What was told last is the value of the next tick. */
#ifndef COLLECT_APP_H
#define COLLECT_APP_H

#include "metric/metric.h"

#define APP_KEYS METRICS_MAX
#define APP_LINE 128 /* bytes that describe a key, at most */

struct app_key {
	char name[64]; /* of the metric */
	enum metric_unit unit;
	double value; /* NAN: not known */
};

struct app_numbers {
	uint32_t nr;
	uint64_t told; /* changes with each that is */
	uint64_t left_out;
	struct app_key key[APP_KEYS];
	/* What the recording says of the columns: a line for each, NAME TAB UNIT TAB TEXT. */
	char names[APP_KEYS * APP_LINE];
	size_t names_len;
};

/* `unit_text`: a unit that we do not know, for people; may be empty. NAN: not known from now on. What finds
 * no column, or has another unit than before, is counted. */
void app_tell(
	struct app_numbers *a, const char *name, enum metric_unit unit, const char *unit_text, double value);
#endif
