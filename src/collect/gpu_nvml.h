/* NVIDIA's management library, declared by ourselves: its header is not free and changes its layouts by
 * version. The calls we make, with the names that libraries of all ages have for them, and the state of the
 * maker.
 *
 * gpu_nvml.c loads the library and finds devices, gpu_nvml_rows.c reads the values of devices,
 * gpu_nvml_processes.c those of processes. */
#ifndef COLLECT_GPU_NVML_H
#define COLLECT_GPU_NVML_H

#include "collect/gpu.h"

typedef struct nvml_handle_s *nvml_handle; /* opaque */

/* What calls return; those that make a difference to us. */
enum nvml_error {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_INSUFFICIENT_POWER = 8,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_IRQ_ISSUE = 11,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_GPU_NOT_FOUND = 28,
	NVML_NO_SYMBOL = -1, /* ours: this library has no such call */
	NVML_NONSENSE = -2,  /* ours: it gave an impossible value */
};

struct nvml_utilization {
	unsigned gpu, memory; /* percent */
};

struct nvml_memory {
	unsigned long long total, free, used; /* what is reserved counts as used */
};

struct nvml_memory_v2 {
	unsigned version; /* size and 2 << 24 */
	unsigned long long total, reserved, free, used;
};

struct nvml_violation {
	unsigned long long reference_us, violation_ns;
};

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_temperature {
	unsigned version; /* size and 1 << 24 */
	int sensor, celsius;
};

struct nvml_field {
	unsigned id, scope;
	long long timestamp, latency;
	int type, error;
	union {
		double real;
		unsigned word;
		unsigned long long quad;
		int number;
	} value;
};

struct nvml_process_sample {
	unsigned pid;
	unsigned long long timestamp_us;
	unsigned sm, memory, encoder, decoder; /* percent */
};

/* Records of running processes by version of the call: 16, 24, 24 or 32 bytes. The beginning is the same. */
struct nvml_process {
	unsigned pid;
	unsigned long long memory;
	unsigned gpu_instance, compute_instance; /* not in the oldest */
};

enum { NVML_LISTS = 3 }; /* compute, graphics, MPS */

struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *ret);
	int (*by_index)(unsigned index, nvml_handle *ret);
	int (*name)(nvml_handle d, char *ret, unsigned size);
	int (*uuid)(nvml_handle d, char *ret, unsigned size);
	int (*minor)(nvml_handle d, unsigned *ret);
	int (*pci)(nvml_handle d, struct nvml_pci *ret);
	int (*mig_mode)(nvml_handle d, unsigned *current, unsigned *pending);
	int (*mig_max)(nvml_handle d, unsigned *ret);
	int (*mig_by_index)(nvml_handle d, unsigned index, nvml_handle *ret);
	int (*utilization)(nvml_handle d, struct nvml_utilization *ret);
	int (*memory)(nvml_handle d, struct nvml_memory *ret);
	int (*memory_v2)(nvml_handle d, struct nvml_memory_v2 *ret);
	int (*bar1)(nvml_handle d, struct nvml_memory *ret);
	int (*temperature_v)(nvml_handle d, struct nvml_temperature *ret);
	int (*fields)(nvml_handle d, int nr, struct nvml_field *field);
	int (*process_utilization)(nvml_handle d, struct nvml_process_sample *ret, unsigned *nr,
		unsigned long long last_seen_us);
	int (*running[NVML_LISTS])(nvml_handle d, unsigned *nr, void *ret);
	unsigned running_version[NVML_LISTS]; /* 1, 2 or 3 */
	void *row[NR_GPU_ROWS];		      /* calls that give one row: gpu_nvml_rows.c */
};

struct nvml_gpu {
	nvml_handle handle;
	struct gpu_device self; /* what it is; no values */
	int parent;		/* of a slice: its GPU; -1: a whole GPU */
	unsigned mig_index;	/* of a slice */
	bool is_mig;		/* it is cut into slices */
	bool found;		/* in this search */
	uint64_t absent;	/* rows that it did not support when last asked */
	unsigned long long last_seen_us;
};

/* A process on a GPU, between readings. */
struct nvml_use {
	unsigned gpu;
	unsigned pid;
	bool here, checked, ours;
	int64_t since_ns; /* of the value */
	bool sampled;
	unsigned value[4]; /* percent: SM, memory, encoder, decoder */
};

enum { NVML_RECORDS_MAX = 1024, NVML_RECORD_SIZE = 32 };

struct nvml {
	struct nvml_calls call;
	bool is_up;
	bool is_searched;
	unsigned count;		    /* of GPUs, when they were last looked for */
	unsigned tries, tries_left; /* rounds until the library is started anew again */
	bool other_pids;	    /* we are in a PID namespace, the driver gives the host's PIDs */
	unsigned nr;
	struct nvml_gpu gpu[GPU_DEVICES_MAX];
	unsigned nr_uses;
	struct nvml_use use[GPU_PROCESSES_MAX];
	/* Room for the answers of calls. */
	unsigned nr_found;
	struct nvml_process found[NVML_RECORDS_MAX];
	unsigned char record[NVML_RECORDS_MAX * NVML_RECORD_SIZE];
	struct nvml_process_sample sample[NVML_RECORDS_MAX];
};

/* The reason, if the error means that the device does not work any more; NULL: it does. */
const char *nvml_lost(int error);
/* Why there is no value. */
struct gpu_why nvml_why(int error);

/* gpu_nvml_rows.c */
void nvml_load_rows(struct nvml *n, struct env *env, void *library);
/* Fills d->valid, d->value and what is missing into `ret->why`; d->lost when it turned out so. */
void nvml_read_rows(struct nvml *n, struct nvml_gpu *gpu, const struct gpu_request *request,
	struct gpu_reading *ret, struct gpu_device *d);

/* gpu_nvml_processes.c */
void nvml_load_processes(struct nvml *n, struct env *env, void *library);
void nvml_read_processes(struct nvml *n, struct env *env, unsigned gpu, const struct gpu_request *request,
	struct gpu_reading *ret, int64_t now_ns);
#endif
