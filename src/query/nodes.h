/* The pieces of query/summary: not for others. */
#ifndef QUERY_NODES_H
#define QUERY_NODES_H

#include "query/summary.h"
#include "query/tracker.h"

/* Everything of one recording but its groups; the account is at its end. */
int summary_fill(struct summary *s, const char *path, const struct account *a, const struct amounts *last,
	struct tracker *t);
/* One of its groups. */
int summary_fill_group(struct summary *whole, struct summary *s, const struct account *a, unsigned line,
	const struct amounts *last, struct tracker *t);
/* What the recording says of the machine and the job: limits, traffic, energy, scheduler, hardware. */
int fill_node(struct summary *s, const struct account *a);
void fill_peaks(struct summary *s, struct tracker *t);
void fill_shares(struct summary *s);
void fill_self_percent(struct summary *s, double recorded_s);
/* What a group's shares are shares of. */
void take_capacity(struct summary *s, const struct summary *whole);

int summary_notes(struct summary *s, const struct account *a);
/* The notes that must not be overlooked, before all others. */
void summary_alarms(struct summary *s);

/* The whole run from its nodes, when they are filled; then its groups, one after the other. */
int summary_combine(struct summary *total, struct tracker *t);
int summary_combine_group(struct summary *total, const char *name, struct tracker *t);
#endif
