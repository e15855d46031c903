/* What stands beside the ticks: the number there, the unit once. */
#ifndef DRAW_LABELS_H
#define DRAW_LABELS_H

#include "analysis/axis.h"

/* "1:30" of minutes, "1:30" of hours, "250" of milliseconds; the last tick has the unit behind it. */
char *label_of_time(char out[static UNITS_SIZE], const struct axis *a, unsigned tick);

struct value_labels {
	double divisor;
	int digits;
	enum metric_unit unit;
	bool per_second;
	bool whole;    /* each label has its unit */
	bool suffixed; /* prefixes stand behind the numbers: "20k" of counts */
	char suffix[4];
	char caption[UNITS_SIZE * 2]; /* above the axis: "memory, GiB" */
};

void value_labels(struct value_labels *ret, const struct chart *f, const struct axis *a);
char *label_of_value(char out[static UNITS_SIZE], const struct value_labels *l, double value);
/* A number by itself, for the legend. */
char *label_of_number(char out[static UNITS_SIZE], const struct value_labels *l, double value);
#endif
