/* Which GPUs are the job's: what the batch system, the control group and the variables of the makers'
 * runtimes say. */
#ifndef NODE_GPUS_H
#define NODE_GPUS_H

#include "env/env.h"

struct gpu_identity {
	const char *vendor; /* "nvidia", "amd", "intel" */
	int index;	    /* as the maker's tools count */
	int minor;	    /* of its device file; -1: not known */
	const char *uuid, *pci;
};

enum gpu_claim {
	GPU_UNCLAIMED, /* not known: any process may use it */
	GPU_OF_JOB,
	GPU_NOT_OF_JOB,
};

struct gpu_claims;

/* Of the job whose first process this is (0: of ourselves). NULL: no memory. */
struct gpu_claims *gpu_claims_read(struct env *env, pid_t root);
struct gpu_claims *gpu_claims_free(struct gpu_claims *c);
/* *ret_by is the source of the answer, for people ("CUDA_VISIBLE_DEVICES=0,1"); valid as long as the
 * claims. */
enum gpu_claim gpu_claims_ask(
	const struct gpu_claims *c, const struct gpu_identity *gpu, const char **ret_by);
#endif
