/* Counters over time and over instances that come and go.
 *
 * The one rule for a counter that falls: it was reset. Counting goes on from the new value, and the step in
 * which it fell adds nothing (a collector that knows where its counter wraps has undone that already). */
#ifndef QUERY_COUNTER_SUM_H
#define QUERY_COUNTER_SUM_H

#include "query/walk.h"

/* By how much it grew. */
static inline uint64_t counter_grew(int64_t before, int64_t now)
{
	return now > before ? (uint64_t)now - (uint64_t)before : 0;
}

struct counter_track {
	int64_t last, sum; /* its value; what it would be without resets */
};

/* Takes the next value: how much it adds. The first one counts whole. Sums of a forged file may overflow;
 * they are not undefined. */
static inline int64_t counter_take(struct counter_track *c, bool first, int64_t now)
{
	uint64_t grew = first ? (uint64_t)now : counter_grew(c->last, now);

	c->last = now;
	c->sum = wrap_add(c->sum, (int64_t)grew);
	return (int64_t)grew;
}

/* ---- what the instances of a metric did over a recording ---- */

/* The growth of a counter, the integral of a level over time, the highest value. Each instance counts from
 * its first value on, and what it did stays when it leaves. */
enum growth_of {
	GROWTH_ADDED,	  /* all instances but those that are contained in others */
	GROWTH_OWN,	  /* the job's own */
	GROWTH_FROM_ZERO, /* as added, and each began at zero in our time: its first value counts */
};

#define GROWTH_NAMES 32

struct growth {
	int set, col; /* -1: not recorded */
	double scale;
	bool counter;
	enum growth_of of;
	struct growth_row {
		uint32_t id; /* of the instance; 0: it had no value yet */
		int64_t last, time_ns;
	} * row;
	uint32_t nr;
	bool any;			  /* there was a value */
	double grown, integral, greatest; /* in the metric's unit; its unit x s */
	int64_t first_ns, last_ns;	  /* of the values */
	/* The instances that had a value, in the order of coming. */
	struct growth_name {
		char name[48], source[64];
	} who[GROWTH_NAMES];
	unsigned nr_who, more_who;
};

void growth_init(struct growth *g, enum growth_of of);
void growth_release(struct growth *g);
void growth_bind(struct growth *g, const struct schema *schema, const char *metric);
int growth_tick(struct growth *g, const struct walk *walk);
/* "rapl: package-0, dram-0; hwmon: node": the instances that had a value by their source. */
void growth_who(const struct growth *g, struct buf *out);

/* ---- the sum over the instances of now ---- */

/* As if each had been there all the time: an instance that comes brings no past along, one that leaves takes
 * nothing away, and a counter that falls or cannot be read for a while makes no step. So the growth of the
 * sum is the growth of what the instances did. */
struct counter_sum {
	struct counter_part {
		uint32_t id; /* 0: the row is empty */
		bool known, in;
		double last, offset; /* contribution = last + offset */
	} * part;		     /* by row */
	uint32_t nr;
	double kept; /* of those that left */
};

int counter_sum_reserve(struct counter_sum *s, uint32_t nr_rows); /* -ENOMEM */
void counter_sum_release(struct counter_sum *s);

/* What is to be said of the instance in a row at this tick. */
struct counter_turn {
	uint32_t row, id; /* id 0: the row is empty */
	double value;	  /* NAN: cannot be read now */
	double before;	  /* at the tick before, if what came since then counts; else NAN */
	bool inside;	  /* it is one of those that are summed */
	bool from_zero;	  /* it began at zero, in our time */
	bool inherited;	  /* when it ends, others account for what it used: it takes its own along */
};

/* Its contribution; NAN when it has none (yet). */
double counter_sum_step(struct counter_sum *s, const struct counter_turn *turn);

/* The same of an instance that is summed already, stays, and has not fallen: most turns are of that kind.
 * False: it is not so, nothing was done. */
static inline bool counter_goes_on(struct counter_sum *s, uint32_t row, double value, double *ret)
{
	struct counter_part *part = &s->part[row];

	if (!part->in || !(value >= part->last))
		return false;
	part->last = value;
	*ret = value + part->offset;
	return true;
}
#endif
