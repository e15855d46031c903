/* What the job may use: CPUs and memory, each with the name of the limit that binds. */
#ifndef NODE_LIMITS_H
#define NODE_LIMITS_H

#include "env/env.h"

struct limit {
	bool known;
	double value;	  /* CPUs (a quota may be 1.5), or bytes */
	char source[200]; /* which one binds: "cgroup /slurm/uid_0/job_7", "SLURM_MEM_PER_NODE", "machine"...
			   */
};

struct limits {
	struct limit cpus, memory;	     /* the least that holds */
	double machine_cpus, machine_memory; /* of the whole node; 0: not known */
};

struct limits_override { /* 0: none; --max-cpus and --max-memory */
	double cpus, memory_bytes;
};

/* Of a process of the job; 0: of ourselves, which is right for a job that we start: it inherits all, and of a
 * process that is about to end the kernel no longer tells the groups. What cannot be read does not limit.
 * -ESRCH when the process is gone; the machine's numbers are there all the same. */
int limits_read(struct env *env, pid_t pid, const struct limits_override *override, struct limits *ret);
#endif
