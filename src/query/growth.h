/* What the instances of one metric add up to over a recording: the growth of a counter, the integral of a
 * level over time, the highest value. Instances come and go; each counts from its first value on, and what it
 * did stays when it leaves. */
#ifndef QUERY_GROWTH_H
#define QUERY_GROWTH_H

#include "metric/schema.h"
#include "store/store.h"

enum growth_of {
	GROWTH_ADDED,	  /* all instances but those that stand apart (they are contained in others) */
	GROWTH_OWN,	  /* the job's own */
	GROWTH_FROM_ZERO, /* as added, and each began at zero in our time: its first value counts */
};

#define GROWTH_NAMES 32

struct growth {
	int set, col; /* -1: not recorded */
	double scale;
	bool counter;
	enum growth_of of;
	struct growth_occupant {
		uint32_t id;
		bool counts, known;
		int64_t last, time_ns;
		char name[48], source[64];
	} * occupant; /* by row */
	uint32_t nr;
	bool any;			  /* there was a value */
	double grown, integral, greatest; /* in the metric's unit; its unit x s */
	int64_t first_ns, last_ns;	  /* of the values */
	/* Who had a value, in the order of coming. */
	struct growth_name {
		char name[48], source[64];
	} who[GROWTH_NAMES];
	unsigned nr_who, more_who;
};

void growth_init(struct growth *g, enum growth_of of);
void growth_release(struct growth *g);
void growth_bind(struct growth *g, const struct schema *schema, const char *metric);
int growth_instance(struct growth *g, const struct store_record *record);
int growth_tick(struct growth *g, struct store_reader *reader, int64_t time_ns);
/* "rapl: package-0, dram-0; hwmon: node": the instances that had a value by their source. */
void growth_who(const struct growth *g, struct buf *out);
#endif
