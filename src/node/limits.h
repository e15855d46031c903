/* What the job may use: CPUs and memory, each with the name of the limit that binds. */
#ifndef NODE_LIMITS_H
#define NODE_LIMITS_H

#include "env/env.h"

struct cgroups;

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

/* What the limits are of. */
enum limits_level {
	LIMITS_PROCESS, /* a process's own, with those of its control groups and its batch job */
	LIMITS_GROUP,	/* a control group's */
	LIMITS_JOB,	/* a batch job's: its control group's, and what the variables of a process grant it */
};

struct limits_subject {
	enum limits_level level;
	pid_t pid; /* of LIMITS_PROCESS and LIMITS_JOB; 0: ourselves */
	/* Of LIMITS_GROUP and LIMITS_JOB: as proc/PID/cgroup names it. One that does not exist, or NULL: the
	 * machine's limits remain. */
	const char *group;
	const struct cgroups
		*places; /* of LIMITS_PROCESS: the groups it is in, where they are known; or NULL */
};

/* Of a process of the job; 0: of ourselves, which is right for a job that we start: it inherits all, and the
 * kernel no longer shows the groups of a process that is about to end. What cannot be read does not limit.
 * -ESRCH when the process is gone; the machine's numbers are filled in any case. */
int limits_read(struct env *env, pid_t pid, const struct limits_override *override, struct limits *ret);
/* The same of something else than a process. */
int limits_read_of(struct env *env, const struct limits_subject *subject,
	const struct limits_override *override, struct limits *ret);
#endif
