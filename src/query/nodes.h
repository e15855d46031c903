/* The pieces of query/summary: not for others. */
#ifndef QUERY_NODES_H
#define QUERY_NODES_H

#include "query/align.h"
#include "query/summary.h"

/* Everything of one recording but its groups; the account is at its end. */
int summary_fill(struct summary *s, const char *path, const struct ledger *a, const struct amounts *last,
	struct tracker *t);
/* One of its groups. */
int summary_fill_group(struct summary *whole, struct summary *s, const struct ledger *a, unsigned line,
	const struct amounts *last, struct tracker *t);
/* What the recording says of the machine and the job: limits, traffic, energy, scheduler, hardware. */
int fill_node(struct summary *s, const struct ledger *a);
/* A group's own limits; where the recording has none for it, it keeps those of the whole. */
int fill_group_limits(struct summary *s, const struct summary *whole, const struct meta *meta);
/* What was counted for the job, and the share of its CPU time in which it was; when FIG_CPU is there. */
int fill_counters(struct summary *s, const struct ledger *a);
int fill_told(struct summary *s, const struct ledger *a);
/* Of the whole (line 0) all devices, of a group those that it used. */
int fill_gpus(struct summary *s, const struct ledger *a, unsigned line);
void fill_peaks(struct summary *s, struct tracker *t);
/* One part of it is known to have used so many cores over that time; when is not known. */
void raise_peak_cores(struct summary *s, double cores, double window, const char *why_no_time);
void fill_shares(struct summary *s);
void fill_self_percent(struct summary *s, double recorded_s);
/* What a group's shares are shares of, beside its limits. */
void take_capacity(struct summary *s, const struct summary *whole);

int summary_notes(struct summary *s, const struct ledger *a);
/* The notes that must not be overlooked, before all others. */
void summary_alarms(struct summary *s);

/* What the directory of the run tells: command, exit status, nodes that are missing, late or ended early; and
 * what was measured of the clocks, or is strange about them. `node` is what run_align() has found. */
int summary_of_run(struct summary *s, const struct run *run, const struct run_node *node);

/* A copy that lives as long as the summary; words about memory when there is none. */
const char *summary_keep(struct summary *s, const char *text);
void counters_free(struct summary_counter *counter, size_t nr);
void summary_gpus_free(struct summary_gpu *gpu, size_t nr);

/* What is combined: the nodes of a run, or one group on those that have it. */
struct parts {
	const struct summary **part;
	size_t nr;
};

int combine_counters(struct summary *total, const struct parts *of);
int combine_told(struct summary *total, const struct parts *of);
int combine_gpus(struct summary *total, const struct parts *of);

/* The whole run from its nodes, when they are filled; then its groups, one after the other. */
int summary_combine(struct summary *total, struct tracker *t);
int summary_combine_group(struct summary *total, const char *name, struct tracker *t);
#endif
