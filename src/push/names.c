/* The usual choice of metrics: see names.h. */
#include "push/names.h"

#define OF(table_, metric_)                                                        \
	{                                                                          \
		.name = metric_, .table = table_, .metric = metric_, .usual = true \
	}
#define OF_PEAK(table_, metric_)                                                                     \
	{                                                                                            \
		.name = metric_, .table = table_, .metric = metric_, .greatest = true, .usual = true \
	}
#define SUM(table_, metric_)                                                                       \
	{                                                                                          \
		.name = metric_, .table = table_, .metric = metric_, .folded = true, .usual = true \
	}
#define SUM_PEAK(table_, metric_)                                                                      \
	{                                                                                              \
		.name = metric_, .table = table_, .metric = metric_, .folded = true, .greatest = true, \
		.usual = true                                                                          \
	}

const struct push_name push_usual[] = {
	/* The job. */
	OF_PEAK("tree", "tree.cores"),
	OF("tree", "tree.cpu"),
	OF("tree", "tree.cpu.of_allocation"),
	SUM_PEAK("process", "proc.mem.rss"),
	SUM_PEAK("process", "proc.mem.pss_now"),
	SUM("process", "proc.mem.swap"),
	OF("tree", "tree.processes"),
	SUM("process", "proc.threads"),
	OF("tree", "tree.io.read_rate"),
	OF("tree", "tree.io.write_rate"),
	OF("tree", "tree.disk.read_rate"),
	OF("tree", "tree.disk.write_rate"),
	OF("tree", "tree.faults"),
	/* Its own numbers. */
	OF("app", "app"),
	/* The machine. */
	SUM("cpu", "cpu.busy"),
	SUM("cpu", "cpu.waiting"),
	OF_PEAK("node", "mem.used"),
	OF("node", "mem.swap_used"),
	OF("node", "load.1m"),
	OF("node", "pressure.cpu.some_avg10"),
	OF("node", "pressure.memory.some_avg10"),
	OF("node", "pressure.io.some_avg10"),
	SUM("disk", "disk.read.rate"),
	SUM("disk", "disk.write.rate"),
	SUM("disk", "disk.busy_ratio"),
	SUM("net", "net.rx.rate"),
	SUM("net", "net.tx.rate"),
	SUM("ib", "ib.rx.rate"),
	SUM("ib", "ib.tx.rate"),
	SUM_PEAK("energy", "energy.watts"),
	SUM("energy", "energy.used"),
	/* Each GPU. */
	OF("gpu", "gpu.util"),
	OF("gpu", "gpu.mem_util"),
	OF_PEAK("gpu", "gpu.memory.used"),
	OF_PEAK("gpu", "gpu.watts"),
	OF("gpu", "gpu.energy"),
	OF("gpu", "gpu.temperature"),
	OF("gpu", "gpu.clock.sm"),
	{0},
};

const struct push_name push_usual_process[] = {
	OF_PEAK("process", "proc.cpu.cores"),
	OF_PEAK("process", "proc.mem.rss"),
	OF("process", "proc.mem.pss_now"),
	OF("process", "proc.threads"),
	OF("process", "proc.io.read_rate"),
	OF("process", "proc.io.write_rate"),
	OF("gpu_process", "gpu_process.busy_ratio"),
	OF("gpu_process", "gpu_process.memory"),
	{0},
};

const struct push_name push_usual_group[] = {
	OF_PEAK("group", "group.cores"),
	OF("group", "group.cpu"),
	OF_PEAK("process", "proc.mem.rss"),
	OF_PEAK("process", "proc.mem.pss_now"),
	OF("process", "proc.threads"),
	OF("group", "group.io.read_rate"),
	OF("group", "group.io.write_rate"),
	{0},
};
