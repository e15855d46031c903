/* One open counter and what it has counted, scaled where counters take turns.
 *
 * What was counted between two readings is scaled by the time it was enabled and running between them, so
 * that the sum only grows; a time in which it never ran is counted with the next reading. */
#ifndef PERF_COUNTER_H
#define PERF_COUNTER_H

#include "perf/event.h"
#include "read/cpulist.h"

struct count {
	uint64_t value;	     /* scaled */
	uint64_t enabled_ns; /* as the kernel has it */
	uint64_t running_ns;
};

struct counter {
	int handle;	       /* -1: not open */
	struct env_count last; /* up to which `count` goes */
	struct count count;
};

/* What a counter of a task is inherited by. */
enum counter_inherit {
	INHERIT_NONE,
	INHERIT_ALL,	 /* the threads and processes that the task makes from then on, and theirs */
	INHERIT_THREADS, /* threads alone (Linux 5.13) */
};

/* Falls back to user mode alone where the kernel allows no more (-EACCES, -EPERM), and reports that; events
 * that happen in the kernel alone are then refused rather than counted as 0. */
int counter_open(struct env *env, const struct perf_event *e, pid_t pid, int cpu,
	enum counter_inherit inherit, bool enable_on_exec, struct counter *ret, bool *ret_user_only);
/* Brings `count` up to date; negative errno leaves it as it is. */
int counter_read(struct env *env, struct counter *c);
void counter_close(struct env *env, struct counter *c);

/* The CPUs on which an event of packages is counted, one of each: its PMU's cpumask. -ENODEV: there are none.
 */
int counter_cpus(struct env *env, const struct perf_event *e, struct cpu_bits *ret);

/* For people: what a failure to open means here and what to do about it (static text; no remedy: NULL). */
void counter_trouble(const struct perf_event *e, int error, const char **ret_reason, const char **ret_remedy);
#endif
