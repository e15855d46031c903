/* What `top` shows of a node at a tick: one row a number, named by its metric, so that it is what
 * `tacho show --series` says. */
#ifndef TOP_VALUES_H
#define TOP_VALUES_H

#include "base/base.h"

/* clang-format off */
/* X(id, metric, metric of a group of processes (NULL: it has none), of several nodes: SUM, MEAN) */
#define TOP_VALUES(X) \
	X(CORES,        "tree.cores",           "group.cores",         SUM) \
	X(CPUS,         "limit.cpus",           NULL,                  SUM) \
	X(PSS,          "proc.mem.pss_now",     "proc.mem.pss_now",    SUM) \
	X(RSS,          "proc.mem.rss",         "proc.mem.rss",        SUM) \
	X(USS,          "proc.mem.uss_now",     "proc.mem.uss_now",    SUM) \
	X(SWAP,         "proc.mem.swap",        "proc.mem.swap",       SUM) \
	X(LIMIT,        "limit.memory",         NULL,                  SUM) \
	X(INSTALLED,    "mem.total",            NULL,                  SUM) \
	X(PROCESSES,    "tree.processes",       "group.processes",     SUM) \
	X(THREADS,      "proc.threads",         "proc.threads",        SUM) \
	X(READ,         "tree.io.read_rate",    "group.io.read_rate",  SUM) \
	X(WRITE,        "tree.io.write_rate",   "group.io.write_rate", SUM) \
	X(DISK_READ,    "tree.disk.read_rate",  NULL,                  SUM) \
	X(DISK_WRITE,   "tree.disk.write_rate", NULL,                  SUM) \
	X(NET_RX,       "net.rx.rate",          NULL,                  SUM) \
	X(NET_TX,       "net.tx.rate",          NULL,                  SUM) \
	X(IB_RX,        "ib.rx.rate",           NULL,                  SUM) \
	X(IB_TX,        "ib.tx.rate",           NULL,                  SUM) \
	X(GPU,          "gpu.util",             NULL,                  MEAN) \
	X(GPU_MEMORY,   "gpu.memory.used",      NULL,                  SUM) \
	X(GPU_TOTAL,    "gpu.memory.total",     NULL,                  SUM) \
	X(GPU_WATTS,    "gpu.watts",            NULL,                  SUM) \
	X(WATTS,        "energy.watts",         NULL,                  SUM)
/* clang-format on */

enum top_value {
#define X(id, ...) TOP_##id,
	TOP_VALUES(X)
#undef X
		NR_TOP_VALUES
};

enum top_combine { TOP_SUM, TOP_MEAN };

struct top_value_row {
	const char *metric, *of_group;
	enum top_combine combine;
};

extern const struct top_value_row top_value_row[NR_TOP_VALUES];

/* clang-format off */
/* X(id, metric) of each process; the state is a letter. */
#define PROCESS_VALUES(X) \
	X(CORES,   "proc.cpu.cores") \
	X(TIME,    "proc.cpu.time") \
	X(USER,    "proc.cpu.user") \
	X(SYSTEM,  "proc.cpu.system") \
	X(RSS,     "proc.mem.rss") \
	X(PSS,     "proc.mem.pss_now") \
	X(PSS_READ, "proc.mem.pss") \
	X(USS,     "proc.mem.uss_now") \
	X(READ,    "proc.io.read_rate") \
	X(WRITE,   "proc.io.write_rate") \
	X(THREADS, "proc.threads") \
	X(STATE,   "proc.state")
/* clang-format on */

enum top_process_value {
#define X(id, ...) OF_PROCESS_##id,
	PROCESS_VALUES(X)
#undef X
		OF_PROCESS_GPU, /* share of time busy for it, of all GPUs */
	OF_PROCESS_GPU_MEMORY,	/* bytes */
	NR_OF_PROCESS,
	NR_OF_PROCESS_READ = OF_PROCESS_GPU
};

extern const char *const process_value_metric[NR_OF_PROCESS_READ];

/* X(id, metric) of each GPU */
enum top_gpu_value { OF_GPU_UTIL, OF_GPU_MEMORY, OF_GPU_TOTAL, OF_GPU_WATTS, NR_OF_GPU };
extern const char *const gpu_value_metric[NR_OF_GPU];
#endif
