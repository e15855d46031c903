/* Events by name: what people write, and what the kernel takes.
 *
 *   cycles, cache-misses, task-clock …            generic names; capitals and '_' or '-' do not matter
 *   L1-dcache-load-misses, LLC-loads …            the kernel's cache events
 *   r01c0                                         raw: umask 01, event c0
 *   cpu/event=0xc7,umask=0x01/                    terms of a PMU's format; "cpu": the cores' PMU, of ARM too
 *   cpu/mem-loads,ldlat=30/                       an event of its folder, and terms
 *   uncore_imc/cas_count_read/                    all boxes uncore_imc_0, _1 …
 *   sched:sched_switch                            a tracepoint
 *   FP_ARITH_INST_RETIRED.SCALAR_DOUBLE           a name of the manual, where libpfm4 is found
 *
 * A name of a PMU's own event folder needs no slashes (`mem-loads`). Modifiers :u and :k restrict to user or
 * kernel; `NAME=EVENT` gives it another name. Everything is read through the env. */
#ifndef PERF_EVENT_H
#define PERF_EVENT_H

#include "env/env.h"

#include <linux/perf_event.h>

struct perf_event {
	char name[48]; /* [a-z0-9_]+, for the metric: "cache_misses", "r01c0", "cpu_event_0xc7_umask_0x01" */
	char pmu[48];  /* "cpu", "software", "tracepoint", "uncore_imc_0" */
	uint32_t type;
	uint64_t config, config1, config2;
	bool exclude_user, exclude_kernel; /* asked for with a modifier */
	double scale;			   /* of the PMU's NAME.scale; 1 */
	char unit[16];			   /* of NAME.unit, "ns" of task-clock; "" */
	bool of_package; /* the PMU has a cpumask: it counts for CPUs of that list, never for a task */
	bool in_kernel;	 /* it happens in kernel mode alone (context switches, tracepoints): counted for user
			  * mode alone, it would always be 0 */
};

/* One event out of text[0..len). -EINVAL: not understood or no such event here, with a reason for people that
 * names what was probably meant or how to list what there is. -ENODEV: understood, and this machine cannot
 * count it, with the reason; ret has its name. */
int perf_event_parse(
	struct env *env, const char *text, size_t len, struct perf_event *ret, char *err, size_t err_size);
/* All boxes that the text means: one event each for uncore PMUs that come in numbers; on hybrid processors
 * one each for the kinds of cores, whose counts and running times add up (a counter of one kind does not
 * count while its task is on another; their enabled time is the same); else one. At most max. Returns how
 * many. */
int perf_event_boxes(struct env *env, const char *text, size_t len, struct perf_event *ret, size_t max,
	char *err, size_t err_size);
/* "cycles,cpu/event=1,umask=2/,r01" at the commas between events; calls fn for each piece until it returns
 * other than 0. */
int perf_events_split(const char *text, int (*fn)(void *arg, const char *text, size_t len), void *arg);

/* The attr for counting it: inherit, enable_on_exec and disabled are the caller's. */
void perf_event_fill(const struct perf_event *e, struct perf_event_attr *ret);

/* What this machine offers, for `tacho metrics --events`. */
struct perf_offer {
	const char *name;  /* as it can be given to -e */
	const char *kind;  /* "hardware", "software", "cache", "tracepoint", the name of a PMU, "group" */
	const char *about; /* encoding or help; "" */
	bool of_package;
	int error;		     /* 0: it can be counted here; else negative errno of trying */
	const char *reason, *remedy; /* of the error; NULL: none */
};
int perf_offers(struct env *env, int (*fn)(void *arg, const struct perf_offer *offer), void *arg);

/* What may be counted: kernel.perf_event_paranoid and our capabilities, tried out. */
struct perf_access {
	int paranoid;	 /* -1 … 4; INT_MIN: there is no such file, the kernel has no perf events */
	bool tasks;	 /* of our own processes */
	bool kernel_too; /* also in kernel mode; else user mode alone */
	bool packages;	 /* whole CPUs and packages: uncore */
	bool hardware;	 /* there is a PMU that counts cycles */
	const char *reason, *remedy; /* when tasks is false, or hardware is; static text */
};
void perf_access(struct env *env, struct perf_access *ret);
#endif
