/* GPUs of all makers, one shape: what a maker's part reads, and the rows that it fills.
 *
 * collect/gpu.c has the rows and the instances, collect/gpu_process.c joins processes to the tree, and each
 * maker is one file: gpu_nvml.c, gpu_amd.c, gpu_intel.c. A maker's open() and read() run beside the ticks,
 * each maker in a thread of its own: they may block, allocate and call libraries. Values are the source's own
 * integers in the scale of the row. */
#ifndef COLLECT_GPU_H
#define COLLECT_GPU_H

#include "collect/collector.h"

enum {
	GPU_DEVICES_MAX = 64, /* of one maker, slices (MIG) included */
	GPU_PROCESSES_MAX = 512,
	GPU_MEMBERS_MAX = 4096, /* of the job's processes that are looked at */
};

enum gpu_row {
	GPU_UTIL,	     /* percent */
	GPU_MEM_UTIL,	     /* percent of time the memory is read or written */
	GPU_ENCODER,	     /* percent */
	GPU_DECODER,	     /* percent */
	GPU_MEMORY_USED,     /* bytes */
	GPU_MEMORY_TOTAL,    /* bytes */
	GPU_MEMORY_RESERVED, /* bytes, by driver and firmware */
	GPU_BAR1_USED,	     /* bytes */
	GPU_BAR1_TOTAL,	     /* bytes */
	GPU_GTT_USED,	     /* bytes of the host's memory that the GPU maps */
	GPU_CLOCK_GRAPHICS,  /* MHz */
	GPU_CLOCK_SM,	     /* MHz */
	GPU_CLOCK_MEMORY,    /* MHz */
	GPU_CLOCK_VIDEO,     /* MHz */
	GPU_CLOCK_GRAPHICS_MAX,
	GPU_CLOCK_SM_MAX,
	GPU_CLOCK_MEMORY_MAX,
	GPU_TEMPERATURE,	   /* millidegrees */
	GPU_TEMPERATURE_MEMORY,	   /* millidegrees */
	GPU_FAN,		   /* percent */
	GPU_POWER,		   /* milliwatts */
	GPU_POWER_LIMIT,	   /* milliwatts */
	GPU_ENERGY,		   /* millijoules since the driver was loaded */
	GPU_PSTATE,		   /* 0 fastest … 15 */
	GPU_THROTTLE_REASONS,	   /* the maker's bits */
	GPU_THROTTLED_POWER,	   /* ns */
	GPU_THROTTLED_THERMAL,	   /* ns */
	GPU_THROTTLED_SYNC,	   /* ns */
	GPU_THROTTLED_BOARD,	   /* ns */
	GPU_THROTTLED_RELIABILITY, /* ns */
	GPU_THROTTLED_LOW_UTIL,	   /* ns */
	GPU_ECC_CORRECTED,	   /* since the driver was loaded */
	GPU_ECC_UNCORRECTED,
	GPU_PCIE_TX, /* bytes a second, over the driver's own window */
	GPU_PCIE_RX,
	GPU_PCIE_REPLAYS,
	GPU_PROCESSES, /* on the device, of all users */
	NR_GPU_ROWS
};

enum gpu_process_row {
	GPU_PROCESS_MEMORY,   /* bytes */
	GPU_PROCESS_UTIL,     /* percent: SM or compute units */
	GPU_PROCESS_MEM_UTIL, /* percent */
	GPU_PROCESS_ENCODER,  /* percent */
	GPU_PROCESS_DECODER,  /* percent */
	GPU_PROCESS_BUSY,     /* ns: time on graphics and compute engines */
	GPU_PROCESS_COPY,     /* ns: on copy engines */
	GPU_PROCESS_VIDEO,    /* ns: on video engines */
	NR_GPU_PROCESS_ROWS
};

/* Why a row has no value: for this reason, on all devices of the maker where it has none. */
struct gpu_why {
	enum availability availability;
	const char *reason, *remedy; /* static text */
};

struct gpu_device {
	char name[48];	/* of the instance, for ever: "nvidia-0", "nvidia-0/mig-1", "amd-1", "intel-0" */
	char model[96]; /* "NVIDIA A100-SXM4-40GB" */
	char uuid[96];
	char pci[32];		       /* "0000:03:00.0" */
	int index;		       /* the maker's own */
	int minor;		       /* of /dev/nvidiaN, /dev/dri/cardN; -1: not known */
	const char *counted_elsewhere; /* a slice of another; NULL */
	const char *lost;	       /* it does not answer any more, and why; NULL: it does */
	uint64_t valid;		       /* bit by gpu_row */
	int64_t value[NR_GPU_ROWS];
};

struct gpu_process {
	unsigned device; /* index into device[] */
	int64_t pid;	 /* as the driver gives it */
	bool other_pids; /* the driver's PIDs are of another PID namespace than ours */
	uint64_t valid;	 /* bit by gpu_process_row */
	int64_t value[NR_GPU_PROCESS_ROWS];
};

/* One round of a maker. */
struct gpu_reading {
	unsigned nr_devices;
	struct gpu_device device[GPU_DEVICES_MAX];
	unsigned nr_processes;
	struct gpu_process process[GPU_PROCESSES_MAX];
	struct gpu_why why[NR_GPU_ROWS], process_why[NR_GPU_PROCESS_ROWS];
	/* Set by the caller: rows of TIER_MEDIUM that are not valid are not known. In other rounds they were
	 * not read, and keep their values. */
	bool medium;
};

/* What the round is asked for. */
struct gpu_request {
	uint64_t rows,
		process_rows; /* those that are recorded: calls that only other rows need are not made */
	bool medium;	      /* what changes slowly is due as well */
	unsigned nr_members;  /* the job's processes now */
	pid_t member[GPU_MEMBERS_MAX];
};

struct gpu_maker {
	const char *name; /* "nvidia" */
	size_t state_size;
	/* As a collector's: one or two system calls. */
	int (*probe)(struct env *env, struct trouble *reterr_why);
	/* Beside the ticks: finds devices, loads libraries. -errno with the reason when nothing can be read;
	 * it is not called again then. */
	int (*open)(void *state, struct env *env, struct trouble *reterr_why);
	/* Beside the ticks. Fills `ret`, which is zeroed. */
	void (*read)(
		void *state, struct env *env, const struct gpu_request *request, struct gpu_reading *ret);
	void (*close)(void *state, struct env *env);
};

extern const struct gpu_maker *const gpu_makers[]; /* NULL at the end; in gpu.c */
#endif
