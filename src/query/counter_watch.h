/* Counters of which it matters when they rise: processes killed because memory ran out, throttling. Only the
 * schema and the tables of a tick are looked at, so the recorder can use it as readers do. */
#ifndef QUERY_COUNTER_WATCH_H
#define QUERY_COUNTER_WATCH_H

#include "metric/schema.h"
#include "metric/table.h"

/* How a tick is seen: by a walk, or by the recorder itself. */
struct tick_view {
	const struct schema *schema;
	struct table *(*table)(const void *arg, uint32_t set);
	/* What the instance in the row is called; NULL: not known. */
	const char *(*name)(const void *arg, uint32_t set, uint32_t row, size_t *ret_len);
	const void *arg;
};

struct counter_watch {
	int set, col; /* -1: not recorded */
	struct watched_row {
		uint32_t id;
		int64_t last;
	} * row;
	uint32_t cap;
};

struct counter_rise {
	int64_t by; /* 0: it did not rise */
	const char *name;
	size_t name_len;
};

void counter_watch_bind(struct counter_watch *w, const struct schema *schema, const char *metric);
void counter_watch_release(struct counter_watch *w);
/* Of those that rose the one with the longest name (the deepest of control groups), or the one that rose
 * most. -ENOMEM. */
int counter_watch_tick(
	struct counter_watch *w, const struct tick_view *view, bool deepest, struct counter_rise *ret);

/* Processes that the kernel killed because memory ran out. A control group counts what happens in the groups
 * below it, too, so of those that rise at once the one deepest down is named; the node's own counter is read
 * seldom and counts the same kills again, so it only speaks where no group did. */
struct kills {
	struct counter_watch group, node;
	bool group_rose;
	int64_t group_ns;    /* when a group's counter rose last */
	int64_t group_kills; /* that the node's counter has not told yet */
};

void kills_bind(struct kills *k, const struct schema *schema);
void kills_release(struct kills *k);
/* In a group, and in the node outside the groups that are watched. -ENOMEM. */
int kills_tick(struct kills *k, const struct tick_view *view, int64_t time_ns, struct counter_rise *ret_group,
	int64_t *ret_node);
#endif
