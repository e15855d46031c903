/* The name of a processor's micro-architecture: what decides which events it counts and how it behaves. */
#ifndef NODE_MICROARCH_H
#define NODE_MICROARCH_H

#include "env/env.h"

struct cpu_identity {
	const char *vendor;		 /* vendor_id of cpuinfo, or arm_vendor() */
	int64_t family, model, stepping; /* of ARM: anything, part, revision */
};

/* "skylake-x", "zen3", "neoverse-n1"; NULL when it is not known. */
const char *microarch_name(const struct cpu_identity *cpu);
/* Of "CPU implementer" in cpuinfo; NULL when it is not known. */
const char *arm_vendor(int64_t implementer);

struct cpu_identified {
	struct cpu_identity cpu; /* -1: not known */
	char vendor[64];
	const char *name; /* microarch_name() */
};
/* The processor of this machine: the first block of cpuinfo. */
int cpu_identify(struct env *env, struct cpu_identified *ret);
#endif
