/* The metrics that are computed when read: a row each. */
#include "query/derived.h"

#include <string.h>

/* clang-format off */
#define PRIVATE "(proc.mem.private_clean + proc.mem.private_dirty + or(proc.mem.private_huge, 0))"
/* As live_processes.c follows a reading: what grew anonymously is its own, of what grew shared it bears its share. Recordings
 * without the anonymous part of the reading follow RSS as a whole. */
#define SHARED_THEN "(proc.smaps.rss - proc.smaps.anon)"
#define BEARS(reading) "or(min(1, max(0, (" reading " - proc.smaps.anon) / " SHARED_THEN ")), 1)"
#define GROWN(reading) "or(" ANONYMOUS " - proc.smaps.anon + (proc.mem.shared - " SHARED_THEN ") * " BEARS(reading) \
	", proc.mem.rss - proc.smaps.rss)"
#define ANONYMOUS "max(0, proc.mem.rss - proc.mem.shared)"
/* Less what others of it bear by now. */
#define PSS "(proc.mem.pss + min(0, or(proc.smaps.doubt, 0)))"
/* Without what it shares with its parent. */
#define UNREAD "max(0, " ANONYMOUS " - or(proc.smaps.doubt, 0))"
/* Beside other targets the control group of the command is not the whole, but exact: the whole is no less. */
#define TREE_CPU "or(tree.cgroup.cpu, max(or(" COMMAND_CPU ", 0), or(proc.cpu.time, proc.cpu.user + proc.cpu.system) + " \
	"or(proc.cpu.children_user + proc.cpu.children_system, 0) + tree.gone.user + tree.gone.system))"
#define GROUP_CPU "or(proc.cpu.time, proc.cpu.user + proc.cpu.system) + " \
	"or(proc.cpu.children_user + proc.cpu.children_system, 0) + group.gone.user + group.gone.system"
#define CPU_ALL CPU_BUSY " + cpu.idle + cpu.iowait + or(cpu.steal, 0)"
#define CPU_BUSY "cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq"

const struct derived derived[] = {
	{"proc.cpu.cores",     "CPUs that the process itself keeps busy.", "rate(or(proc.cpu.time, proc.cpu.user + proc.cpu.system))", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, false, "cpu"},
	{"proc.mem.uss",       "Memory that no other process shares, as last read.", PRIVATE, AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, "memory"},
	{"proc.mem.pss_now",   "PSS as last read, followed by RSS since; an estimate between two readings.", "or(min(max(0, " PSS " + " GROWN(PSS) "), proc.mem.rss), " UNREAD ")", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, "memory"},
	{"proc.mem.uss_now",   "USS as last read, followed by RSS since; an estimate between two readings.", "or(min(max(0, " PRIVATE " + " GROWN(PRIVATE) "), proc.mem.rss + or(proc.mem.private_huge, 0)), " UNREAD ")", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, "memory"},
	{"proc.io.read_rate",  "Bytes a process reads by system calls.", "rate(proc.io.read_chars)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"proc.io.write_rate", "Bytes a process writes by system calls.", "rate(proc.io.write_chars)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"proc.sched.waiting", "Share of time the main thread was ready and waited for a CPU.", "rate(proc.sched.wait)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, NULL},
	{"tree.cpu",           "CPU time of the whole tree so far, what has ended included.", TREE_CPU, AT_FOLD, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, false, NULL},
	{"tree.cores",         "CPUs that the whole tree keeps busy.", "rate(" TREE_CPU ")", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, false, "cpu"},
	{"tree.cpu.of_allocation", "CPUs that the whole tree keeps busy, as a share of those it may use.", "rate(" TREE_CPU ") / limit.cpus", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, NULL},
	{"tree.cpu.of_node",   "CPU time of the whole tree as a share of all CPU time there is in the node.", "rate(" TREE_CPU ") / rate(" CPU_ALL ")", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, NULL},
	{"tree.rss.of_allocation", "Resident memory of the whole tree, shared pages counted once per process, as a share of what it may use.", "proc.mem.rss / limit.memory", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, NULL},
	{"tree.rss.of_node",   "Resident memory of the whole tree, shared pages counted once per process, as a share of the node's.", "proc.mem.rss / mem.total", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, NULL},
	{"tree.io.read_rate",  "Bytes the whole tree reads by system calls.", "rate(proc.io.read_chars + tree.gone.read_chars)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"tree.io.write_rate", "Bytes the whole tree writes by system calls.", "rate(proc.io.write_chars + tree.gone.write_chars)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"tree.disk.read_rate",  "Bytes fetched from storage for the whole tree.", "rate(proc.io.read_bytes + tree.gone.read_bytes)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "disk"},
	{"tree.disk.write_rate", "Bytes sent to storage for the whole tree.", "rate(proc.io.write_bytes + tree.gone.write_bytes)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "disk"},
	{"tree.calls",         "Read and write calls of the whole tree.", "rate(proc.io.read_calls + proc.io.write_calls + tree.gone.read_calls + tree.gone.write_calls)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "calls"},
	{"tree.faults",        "Page faults of the whole tree.", "rate(proc.faults.minor + proc.faults.major + proc.faults.children_minor + proc.faults.children_major + tree.gone.minor_faults + tree.gone.major_faults)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "faults"},
	{"tree.starts",        "Processes that join the tree.", "rate(tree.joined)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "forks"},
	{"group.cpu",          "CPU time of a group of processes so far, what has ended included.", GROUP_CPU, AT_FOLD, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, false, NULL},
	{"group.cores",        "CPUs that a group of processes keeps busy.", "rate(" GROUP_CPU ")", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, false, "cpu"},
	{"group.io.read_rate", "Bytes that a group of processes reads by system calls.", "rate(proc.io.read_chars + group.gone.read_chars)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"group.io.write_rate", "Bytes that a group of processes writes by system calls.", "rate(proc.io.write_chars + group.gone.write_chars)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "io"},
	{"cpu.busy",           "Share of time in which a CPU works.", "rate(" CPU_BUSY ") / rate(" CPU_ALL ")", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, "node.cpu"},
	{"cpu.waiting",        "Share of time in which a CPU has no work while a task waits for a disk.", "rate(cpu.iowait) / rate(" CPU_ALL ")", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, "node.cpu"},
	{"cpu.user_ratio",     "Share of time that a CPU spends in programs, outside the kernel.", "rate(cpu.user + cpu.nice) / rate(" CPU_ALL ")", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, "node.cpu"},
	{"cpu.idle_ratio",     "Share of time in which a CPU has nothing to do and no task waits for a disk.", "rate(cpu.idle) / rate(" CPU_ALL ")", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, NULL},
	{"mem.used",           "Memory that is not available to new programs.", "mem.total - mem.available", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, "node.memory"},
	{"mem.used_ratio",     "Share of the memory that is not available to new programs.", "1 - mem.available / mem.total", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, NULL},
	{"mem.swap_used",      "Swap space in use.", "mem.swap_total - mem.swap_free", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, NULL},
	{"net.rx.rate",          "Bytes that an interface receives.", "rate(net.rx.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "net"},
	{"net.tx.rate",          "Bytes that an interface sends.", "rate(net.tx.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "net"},
	{"net.rx.packet_rate",   "Packets that an interface receives.", "rate(net.rx.packets)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "net.packets"},
	{"net.tx.packet_rate",   "Packets that an interface sends.", "rate(net.tx.packets)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "net.packets"},
	{"ib.rx.rate",           "Bytes that a port receives.", "rate(ib.rx.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "ib"},
	{"ib.tx.rate",           "Bytes that a port sends.", "rate(ib.tx.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "ib"},
	{"ib.rx.packet_rate",    "Packets that a port receives.", "rate(ib.rx.packets)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "ib.packets"},
	{"ib.tx.packet_rate",    "Packets that a port sends.", "rate(ib.tx.packets)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "ib.packets"},
	{"disk.read.rate",       "Bytes that a disk reads.", "rate(disk.read.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.disk"},
	{"disk.write.rate",      "Bytes that a disk writes.", "rate(disk.write.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.disk"},
	{"disk.iops",            "Reads and writes that a disk completes.", "rate(disk.read.ops + disk.write.ops)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "node.iops"},
	{"disk.busy_ratio",      "Share of time in which a disk has something to do; of several, the busiest.", "rate(disk.busy)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "node.disk_busy"},
	{"disk.latency",         "Time that a read or write takes on average; of several disks, the slowest.", "rate(disk.read.time + disk.write.time) / rate(disk.read.ops + disk.write.ops)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_SECONDS, false, "node.disk_latency"},
	{"fs.used",              "Bytes in use on the file systems that the job writes to.", "fs.total - fs.free", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, false, "node.space"},
	{"fs.used_ratio",        "Share of the space for users that is in use; of several file systems, the fullest.", "(fs.total - fs.free) / (fs.total - fs.free + fs.available)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "node.space_ratio"},
	{"nfs.read.rate",        "Bytes that programs read from NFS.", "rate(nfs.read.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.nfs"},
	{"nfs.write.rate",       "Bytes that programs write to NFS.", "rate(nfs.write.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.nfs"},
	{"nfs.read.server_rate", "Bytes that come from NFS servers.", "rate(nfs.read.server_bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.nfs"},
	{"nfs.write.server_rate", "Bytes that go to NFS servers.", "rate(nfs.write.server_bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.nfs"},
	{"nfs.latency",          "Time that a read or write request takes on average; of several mounts, the slowest.", "rate(nfs.read.time + nfs.write.time) / rate(nfs.read.ops + nfs.write.ops)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_SECONDS, false, "node.nfs_latency"},
	{"lustre.read.rate",     "Bytes that programs read from Lustre.", "rate(lustre.read.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.lustre"},
	{"lustre.write.rate",    "Bytes that programs write to Lustre.", "rate(lustre.write.bytes)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "node.lustre"},
	{"energy.watts",         "Power of what a meter measures; the node's is the sum of all meters that do not stand apart.", "or(rate(energy.used), energy.power)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, false, "power"},
	{"freq.ratio",           "Frequency of a CPU as a share of its highest.", "freq.current / freq.maximum", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, NULL},
	{"sensor.margin",        "Degrees below the temperature at which a chip protects itself.", "sensor.critical - sensor.temperature", AT_INSTANCE, KIND_GAUGE, FOLD_NONE, UNIT_CELSIUS, false, NULL},
	{"throttle.core_rate",   "Times a core is slowed down.", "rate(throttle.core)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, true, "throttling"},
	{"throttle.package_share", "Share of time for which a package is slowed down.", "rate(throttle.package_time)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "throttling.time"},
	{"perf.ipc",             "Instructions that a CPU completes in a cycle.", "rate(perf.instructions) / rate(perf.cycles)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, false, "perf.ipc"},
	{"perf.cache_miss_rate", "Share of the references to the last cache that found nothing there.", "rate(perf.cache_misses) / rate(perf.cache_references)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, "perf.misses"},
	{"perf.branch_miss_rate", "Share of the branches that were mispredicted.", "rate(perf.branch_misses) / rate(perf.branches)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, "perf.misses"},
	{"perf.ghz",             "Frequency of the CPUs while they work for the job.", "rate(perf.cycles) / rate(perf.task_clock)", AT_FOLD, KIND_GAUGE, FOLD_SUM, UNIT_HERTZ, false, "perf.frequency"},
	{"membw.read_rate",      "Bytes that come from the memory of a socket.", "rate(membw.read)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "membw"},
	{"membw.write_rate",     "Bytes that go to the memory of a socket.", "rate(membw.write)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "membw"},
	{"membw.rate",           "Bytes between a socket and its memory, both ways.", "rate(or(membw.read + membw.write, membw.both))", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, true, "membw"},
	{"gpu.watts",            "Power of a GPU; of several, their sum.", "or(rate(gpu.energy), gpu.power)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, false, "gpu power"},
	{"gpu.memory.used_ratio", "Share of a GPU's memory that is in use; of several, the fullest.", "gpu.memory.used / gpu.memory.total", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "gpu"},
	{"gpu.clock.ratio",      "Frequency of a GPU as a share of its highest.", "or(gpu.clock.sm / gpu.clock.sm_max, gpu.clock.graphics / gpu.clock.graphics_max)", AT_INSTANCE, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, false, NULL},
	{"gpu.throttle.power_share", "Share of time in which a GPU is held back by its power limit; of several, the most.", "rate(gpu.throttle.power)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "gpu throttling"},
	{"gpu.throttle.thermal_share", "Share of time in which a GPU is held back by its temperature; of several, the most.", "rate(gpu.throttle.thermal)", AT_INSTANCE, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, false, "gpu throttling"},
	{"gpu_process.busy_ratio", "Share of time in which a GPU works for a process; of several, their sum.", "or(gpu_process.util, rate(gpu_process.busy))", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, "gpu"},
	{"self.cores",         "CPUs that the recorder keeps busy.", "rate(self.cpu)", AT_INSTANCE, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, false, "self"},
};
const size_t nr_derived = ARRAY_SIZE(derived);
/* clang-format on */

const struct derived *derived_find(const char *name)
{
	for (size_t i = 0; i < nr_derived; i++)
		if (!strcmp(derived[i].name, name))
			return &derived[i];
	return NULL;
}
