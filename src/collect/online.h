/* Which CPUs are online, for collectors that have a file a CPU. */
#ifndef COLLECT_ONLINE_H
#define COLLECT_ONLINE_H

#include "env/env.h"
#include "read/cpulist.h"

#define CPU_FOLDER "sys/devices/system/cpu"
#define CPU_PATH_SIZE 128

struct online {
	bool is_open; /* so that a zeroed one is closed */
	int handle;
	struct cpu_bits cpus;
};

int online_open(struct online *o, struct env *env);
/* 1 when other CPUs are online than at the last call, else 0, or a negative errno: then nothing has changed.
 */
int online_read(struct online *o, struct env *env);
void online_close(struct online *o, struct env *env);
/* The CPUs in a list of cpuN's folder ("topology/thread_siblings_list") are added; false when it cannot be
 * read. */
bool online_add_list(struct env *env, int cpu, const char *file, struct cpu_bits *set);

static inline bool cpu_is_in(const struct cpu_bits *set, int cpu)
{
	return set->word[cpu / 64] >> cpu % 64 & 1;
}

static inline void cpu_put_in(struct cpu_bits *set, int cpu)
{
	set->word[cpu / 64] |= UINT64_C(1) << cpu % 64;
}
#endif
