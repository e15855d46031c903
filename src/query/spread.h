/* How values are spread: mean, quantiles and extremes of weighted values in small fixed memory.
 * Extremes and the mean are exact, quantiles are within one hundredth of the value. */
#ifndef QUERY_SPREAD_H
#define QUERY_SPREAD_H

#include "base/base.h"

struct spread;

struct spread *spread_new(void); /* NULL: no memory */
struct spread *spread_free(struct spread *s);
/* NAN and weights that are not above zero are nothing. The weight is the time for which the value held. */
void spread_add(struct spread *s, double value, double weight);
double spread_quantile(const struct spread *s, double q); /* q in 0..1; NAN while there is nothing */
double spread_mean(const struct spread *s);
double spread_weight(const struct spread *s); /* of all values */
#endif
