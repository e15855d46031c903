/* Sets of CPUs (or NUMA nodes) from the kernel's lists: "0-63,128-191". */
#ifndef READ_CPULIST_H
#define READ_CPULIST_H

#include "base/base.h"

#define CPU_SET_MAX 8192 /* the kernel's largest NR_CPUS */

struct cpu_bits {
	uint64_t word[CPU_SET_MAX / 64];
};

/* Adds what the list names, up to the first thing that is no list; numbers beyond CPU_SET_MAX are left out.
 * Returns how many the set has now. */
unsigned cpu_bits_add(struct cpu_bits *set, const char *list);
unsigned cpu_bits_count(const struct cpu_bits *set);
/* The first of the set that is not below `from`; -1 when there is none. */
int cpu_bits_next(const struct cpu_bits *set, int from);
#endif
