/* What the parts of `tacho doctor` share. */
#ifndef CMD_DOCTOR_H
#define CMD_DOCTOR_H

#include "base/buf.h"
#include "cmd/self_test.h"
#include "node/privileges.h"
#include "text/summary.h"

/* One entry that is not a collector's metric. */
struct doctor_finding {
	struct permit permit;
	const char *unit; /* NULL: it has no value */
	double value;
};

#define FINDINGS_MAX 32

struct clock_facts {
	char source[32]; /* "tsc"; "" when the kernel does not say */
	double step_s, read_s;
	double late_median_s, late_worst_s;
	unsigned wakes;
};

/* What sampling every process of the machine costs at one rate. */
struct cost {
	unsigned hz, ticks;
	uint32_t processes;
	double tick_s, share;	   /* CPU time of a tick, and share of one core */
	double by[COLLECTORS_MAX]; /* time in each collector, seconds a tick */
};

#define NR_COSTS 3

struct doctor {
	struct self_test *self_test;
	struct doctor_finding finding[FINDINGS_MAX]; /* the kernel's help and permissions */
	size_t nr_findings;
	struct clock_facts clock;
	struct cost cost[NR_COSTS]; /* ascending rates; ticks 0: not measured */
	char host[72], system[80];
	unsigned cpus;
};

/* The kernel's help, permissions, and whether a recording can be made in this folder. */
void doctor_check(struct doctor *d, struct env *env);
/* Hardware counters: what may be counted, by what, and what events are known. */
enum counter_finding {
	COUNTERS_TASKS,
	COUNTERS_KERNEL,
	COUNTERS_HARDWARE,
	COUNTERS_PACKAGES,
	COUNTERS_EVENTS,
	COUNTERS_NAMES,
	NR_COUNTER_FINDINGS
};
void doctor_counters(struct env *env, struct permit ret[static NR_COUNTER_FINDINGS]);
/* What the self-test found of a maker's GPUs is used rather than what its files say. */
void doctor_gpu(const struct self_test *h, struct permit *p);
/* The clock and how timers wake us, as the recorder sleeps. Some 0.3 s. */
void doctor_clock(struct env *env, struct clock_facts *ret);
/* Measures at d->cost[].hz; calls `progress` from time to time with the seconds that are left. Some 3.5 s. */
void doctor_cost(struct env *env, struct cost cost[static NR_COSTS], void (*progress)(double left_s));

/* The default budget of a recording, and how it changes the default interval: samples at every n-th second
 * (1: at each). */
#define DEFAULT_BUDGET 0.01
unsigned budget_stretch(double share, double budget);
/* The median; sorts. 0 of none. */
double median(double *value, size_t nr);

/* For people. `verbose`: every metric by itself. */
void doctor_text(const struct doctor *d, const struct summary_style *style, bool verbose, struct buf *out);
#endif
