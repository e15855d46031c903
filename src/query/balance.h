/* How evenly a run is spread over its nodes and ranks: of the whole run, of each phase and of each group of
 * processes. Balance is mean over most: where all wait for the one that has most to do, it is the share of
 * the time in which the others work. */
#ifndef QUERY_BALANCE_H
#define QUERY_BALANCE_H

#include "query/hosts.h"

enum balance_id {
	BALANCE_CPU,	/* CPU time of the job */
	BALANCE_MEMORY, /* its peak there */
	BALANCE_GPU,	/* use of its GPUs, mean */
	BALANCE_IN,	/* what the node received, by network and interconnect */
	BALANCE_OUT,
	NR_BALANCE
};

struct balance_column {
	const char *name;  /* for programs */
	const char *title; /* for people */
	enum metric_unit unit;
};

extern const struct balance_column balance_column[NR_BALANCE];

struct balance_value {
	size_t nr; /* of those for which it is known; below 2 there is nothing to compare */
	double mean, most, least;
	const char *most_on, *least_on; /* names of nodes or ranks */
};

struct balance_row {
	const char *of;	  /* "run", "phase", "group" */
	const char *name; /* of the phase or group; NULL: the run */
	const char *over; /* "nodes", "ranks" */
	struct balance_value value[NR_BALANCE];
};

struct balance {
	struct balance_row *row; /* the whole run over its nodes first */
	size_t nr;
	struct owned kept;
};

/* No rows where there is nothing to compare. The summary must live as long. -ENOMEM. */
int balance_make(const struct summary *s, struct balance *ret);
void balance_release(struct balance *b);

/* Mean over most, of 1; NAN: not known, or there was nothing to spread. */
static inline double balance_ratio(const struct balance_value *v)
{
	return v->nr >= 2 && v->most > 0 ? v->mean / v->most : NAN;
}
#endif
