/* Parts of the AMD maker: its devices are gpu_amd.c, the binary file of the firmware gpu_amd_metrics.c,
 * compute processes gpu_amd_kfd.c, the vendor's library gpu_rocm.c. */
#ifndef COLLECT_GPU_AMD_H
#define COLLECT_GPU_AMD_H

#include "collect/async_reader.h"
#include "collect/gpu_drm.h"

/* ---- gpu_metrics ---- */

enum amd_field {
	AMD_TEMPERATURE, /* degrees */
	AMD_TEMPERATURE_MEMORY,
	AMD_GFX_ACTIVITY, /* percent */
	AMD_UMC_ACTIVITY,
	AMD_POWER,  /* watts */
	AMD_ENERGY, /* 2^-16 joules */
	AMD_GFXCLK, /* MHz */
	AMD_UCLK,
	AMD_THROTTLE,	     /* the chip's own bits */
	AMD_THROTTLE_COMMON, /* bits that mean the same on all chips */
	/* All cycles of the firmware, and those in which it throttled. */
	AMD_CYCLES,
	AMD_CYCLES_POWER,
	AMD_CYCLES_THERMAL,
	NR_AMD_FIELDS
};

struct amd_metrics {
	uint32_t valid; /* bit by amd_field */
	uint64_t value[NR_AMD_FIELDS];
};

/* -EBADMSG: this is no such table; -EOPNOTSUPP: of a version that is not known. */
int amd_metrics_parse(const void *bytes, size_t len, struct amd_metrics *ret);

/* ---- kfd ---- */

enum { KFD_NODES_MAX = 128, KFD_USES_MAX = 128 };

struct kfd {
	struct gpu_cards *cards;
	bool other_pids;
	int64_t generation; /* of the topology */
	unsigned nr_nodes;
	struct kfd_node {
		uint64_t gpu_id;
		int64_t units; /* compute units */
		struct gpu_card *card;
	} node[KFD_NODES_MAX];
	/* A process with memory on a node. */
	struct kfd_use {
		int64_t pid;
		unsigned node;
		int memory, copy, occupancy; /* handles */
	} use[KFD_USES_MAX];
	unsigned nr_uses;
	int64_t nr_processes[GPU_DEVICES_MAX]; /* by card */
	bool counted, full;
};

void kfd_open(struct kfd *k, struct env *env, struct gpu_cards *cards);
/* Adds what compute processes use to the reading; `look` for new ones. */
void kfd_read(struct kfd *k, struct env *env, const struct gpu_request *request, bool look,
	struct gpu_reading *ret);
void kfd_close(struct kfd *k, struct env *env);

/* ---- ROCm SMI ---- */

struct rocm;

/* NULL: it is not wanted, or not available. */
struct rocm *rocm_open(struct env *env);
/* Fills what the devices lack, as the last round found it, and asks for another. */
void rocm_read(struct rocm *r, const struct gpu_request *request, struct gpu_reading *ret);
struct rocm *rocm_close(struct rocm *r);

#endif
