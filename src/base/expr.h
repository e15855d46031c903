/* Small expressions over metrics: names, numbers, + - * / ( ), rate(x), max(x, y...), min(x, y...), or(x, y).
 *
 * What is not known is NAN, and so is everything made of it; or(x, y) is y where x is not known. rate(x) is
 * the growth of x per second; an expression only says of what: the caller, which knows the times, computes
 * the rate. */
#ifndef BASE_EXPR_H
#define BASE_EXPR_H

#include "base/base.h"

#define EXPR_STEPS 96
#define EXPR_NAMES 18
#define EXPR_NAME_SIZE 64
#define EXPR_RATES 4

struct expr {
	struct expr_step {
		uint8_t op;
		uint8_t index; /* of the name or the rate */
		double number;
	} step[EXPR_STEPS]; /* in postfix order */
	unsigned nr_steps;
	char name[EXPR_NAMES][EXPR_NAME_SIZE];
	unsigned nr_names, nr_rates;
};

/* -EINVAL with a reason for people and where it was found; -E2BIG when it is too long. */
int expr_parse(struct expr *e, const char *text, const char **reterr_why, size_t *reterr_at);

/* value[] is by name. What stands in each rate(). */
void expr_arguments(const struct expr *e, const double *value, double *ret_argument);
/* rate[] are the rates of those. */
double expr_value(const struct expr *e, const double *value, const double *rate);

/* The same for up to EXPR_LANES at once: value[name][lane], argument and rate[rate][lane], value[lane]. */
#define EXPR_LANES 32
void expr_arguments_of_lanes(const struct expr *e, const double *value, unsigned nr, double *ret_argument);
void expr_value_of_lanes(
	const struct expr *e, const double *value, const double *rate, unsigned nr, double *ret_value);
#endif
