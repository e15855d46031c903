/* --semconv: what OpenTelemetry's conventions call metrics of ours (opentelemetry.io/docs/specs/semconv,
 * system, process and hardware metrics; names as of version 1.43). Only where the meaning is the same. What
 * is of processes is that of the whole job on a node: `process` is then the service.
 *
 * A '+' before the attributes: an UpDownCounter by the conventions, else what the metric itself is. */
#include "push/otlp.h"

#define NODE(name_, metric_, attribute_, unit_)                                                           \
	{                                                                                                 \
		.name = name_, .table = "node", .metric = metric_, .attribute = attribute_, .unit = unit_ \
	}
#define JOB(name_, metric_, unit_)                                                                     \
	{                                                                                              \
		.name = name_, .table = "process", .metric = metric_, .attribute = "+", .unit = unit_, \
		.folded = true                                                                         \
	}
#define CPU(metric_, mode_)                                                   \
	{                                                                     \
		.name = "system.cpu.time", .table = "cpu", .metric = metric_, \
		.attribute = "cpu.mode=" mode_, .unit = "s", .folded = true   \
	}
#define OF(table_, name_, metric_, attribute_, unit_)                                                     \
	{                                                                                                 \
		.name = name_, .table = table_, .metric = metric_, .attribute = attribute_, .unit = unit_ \
	}

#define READ "disk.io.direction=read"
#define WRITE "disk.io.direction=write"
#define RECEIVE "network.io.direction=receive"
#define TRANSMIT "network.io.direction=transmit"

/* clang-format off */
const struct push_name otlp_semconv[] = {
	/* The job. Its CPU time is known as a whole: no mode. */
	OF("tree", "process.cpu.time", "tree.cpu", NULL, "s"),
	JOB("process.memory.usage", "proc.mem.rss", "By"),
	JOB("process.memory.virtual", "proc.mem.vms", "By"),
	JOB("process.thread.count", "proc.threads", "{thread}"),
	JOB("process.unix.file_descriptor.count", "proc.fds", "{file_descriptor}"),
	/* The machine. */
	CPU("cpu.user", "user"),
	CPU("cpu.nice", "nice"),
	CPU("cpu.system", "system"),
	CPU("cpu.idle", "idle"),
	CPU("cpu.iowait", "iowait"),
	CPU("cpu.irq", "interrupt"),
	CPU("cpu.softirq", "softirq"),
	CPU("cpu.steal", "steal"),
	NODE("system.memory.limit", "mem.total", "+", "By"),
	NODE("system.memory.linux.available", "mem.available", "+", "By"),
	NODE("system.memory.linux.shared", "mem.shmem", "+", "By"),
	NODE("system.memory.usage", "mem.free", "+system.memory.state=free", "By"),
	NODE("system.memory.usage", "mem.buffers", "+system.memory.state=buffers", "By"),
	NODE("system.memory.usage", "mem.cached", "+system.memory.state=cached", "By"),
	NODE("system.paging.usage", "mem.swap_free", "+system.paging.state=free", "By"),
	NODE("system.paging.usage", "mem.swap_used", "+system.paging.state=used", "By"),
	NODE("system.paging.faults", "paging.major_faults", "system.paging.fault.type=major", "{fault}"),
	NODE("system.process.created", "kernel.forks", NULL, "{process}"),
	OF("disk", "system.disk.io", "disk.read.bytes", READ, "By"),
	OF("disk", "system.disk.io", "disk.write.bytes", WRITE, "By"),
	OF("disk", "system.disk.operations", "disk.read.ops", READ, "{operation}"),
	OF("disk", "system.disk.operations", "disk.write.ops", WRITE, "{operation}"),
	OF("disk", "system.disk.operation_time", "disk.read.time", READ, "s"),
	OF("disk", "system.disk.operation_time", "disk.write.time", WRITE, "s"),
	OF("disk", "system.disk.io_time", "disk.busy", NULL, "s"),
	OF("net", "system.network.io", "net.rx.bytes", RECEIVE, "By"),
	OF("net", "system.network.io", "net.tx.bytes", TRANSMIT, "By"),
	OF("net", "system.network.packet.count", "net.rx.packets", RECEIVE, "{packet}"),
	OF("net", "system.network.packet.count", "net.tx.packets", TRANSMIT, "{packet}"),
	OF("net", "system.network.packet.dropped", "net.rx.drops", RECEIVE, "{packet}"),
	OF("net", "system.network.packet.dropped", "net.tx.drops", TRANSMIT, "{packet}"),
	OF("net", "system.network.errors", "net.rx.errors", RECEIVE, "{error}"),
	OF("net", "system.network.errors", "net.tx.errors", TRANSMIT, "{error}"),
	OF("filesystem", "system.filesystem.usage", "fs.used", "+system.filesystem.state=used", "By"),
	OF("filesystem", "system.filesystem.usage", "fs.available", "+system.filesystem.state=free", "By"),
	OF("filesystem", "system.filesystem.limit", "fs.total", "+", "By"),
	/* Each GPU. */
	OF("gpu", "hw.gpu.utilization", "gpu.util", NULL, "1"),
	OF("gpu", "hw.gpu.memory.usage", "gpu.memory.used", "+", "By"),
	OF("gpu", "hw.gpu.memory.limit", "gpu.memory.total", "+", "By"),
	OF("gpu", "hw.energy", "gpu.energy", "hw.type=gpu", "J"),
	OF("gpu", "hw.power", "gpu.watts", "hw.type=gpu", "W"),
	OF("gpu", "hw.temperature", "gpu.temperature", "hw.type=gpu", "Cel"),
	{0},
};
/* clang-format on */
