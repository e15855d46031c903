/* A counter summed over instances that come and go, as if each had been there all the time: who comes brings
 * no past along, who leaves takes nothing away, and a counter that falls or cannot be read for a while makes
 * no step. So the growth of the sum is the growth of what the instances did. */
#ifndef QUERY_STEADY_H
#define QUERY_STEADY_H

#include "base/base.h"

struct steady {
	struct steady_occupant {
		uint32_t id; /* 0: nobody */
		bool known, in;
		double last, offset; /* contribution = last + offset */
	} * occupant;		     /* by row */
	uint32_t nr;
	double kept; /* of those who left */
};

int steady_reserve(struct steady *s, uint32_t nr_rows); /* -ENOMEM */
void steady_release(struct steady *s);

/* What is to be said of the instance in a row at this tick. */
struct steady_turn {
	uint32_t row, id; /* id 0: the row is empty */
	double value;	  /* NAN: cannot be read now */
	double before;	  /* at the tick before, if what came since then counts; else NAN */
	bool inside;	  /* it is one of those that are summed */
	bool from_zero;	  /* it began at zero, in our time */
	bool inherited;	  /* when it ends, others account for what it used: it takes its own along */
};

/* Its contribution; NAN when it has none (yet). */
double steady_step(struct steady *s, const struct steady_turn *turn);

/* The same of who is summed already, stays, and has not fallen: most turns are of that kind. False: it is not
 * so, nothing was done. */
static inline bool steady_goes_on(struct steady *s, uint32_t row, double value, double *ret)
{
	struct steady_occupant *occupant = &s->occupant[row];

	if (!occupant->in || !(value >= occupant->last))
		return false;
	occupant->last = value;
	*ret = value + occupant->offset;
	return true;
}
#endif
