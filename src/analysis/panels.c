/* What is drawn of a run: one row one panel, in the order of the report. The only table above query/ that
 * names metrics; units, folds and meanings come from the metrics' own rows.
 *
 * A panel whose metrics were not recorded does not appear. The six plots of tools exist twice: for runs
 * whose processes are in groups, and for those where the job itself, or its top processes, stand in. Panels
 * for counters that only a recording knows are made by story.c. */
#include "analysis/analysis.h"

#define LEVEL_CPUS .level = {"limit.cpus"}, .level_label = {"allocated"}
#define LEVEL_MEMORY .level = {"limit.memory", "mem.total"}, .level_label = {"allocated", "installed"}
#define LEVEL_INSTALLED .level = {"mem.total"}, .level_label = {"installed"}
#define JOB_MEMORY                                                     \
	{                                                              \
		"proc.mem.rss", "proc.mem.pss_now", "proc.mem.uss_now" \
	}
#define JOB_MEMORY_LABELS                   \
	{                                   \
		"RSS, summed", "PSS", "USS" \
	}

/* clang-format off */
const struct panel panels[] = {
	{"cpu", "CPU of the job", "cores", "cpu", PANEL_LINES, .metric = {"tree.cores"}, .label = {"the job"},
		.filled = true, .peak = 1, .combined = true, .heat = 1, LEVEL_CPUS},
	{"node-cpu", "CPUs of the node, all processes", NULL, "cpu", PANEL_LINES,
		.metric = {"cpu.busy", "cpu.user_ratio", "cpu.waiting"}, .label = {"busy", "in programs", "idle, waiting for disks"},
		.combined = true},
	{"cores-heat", "Each CPU of the node", NULL, "cpu", PANEL_HEAT, .metric = {"cpu.busy"}, .without = "total"},
	{"load", "Load of the node: threads that run or wait", NULL, "cpu", PANEL_LINES, .metric = {"load.1m", "load.running"},
		.label = {"load, one minute", "running now"}, .combined = true, .level = {"limit.cpus"}, .level_label = {"CPUs allocated"}},
	{"pressure", "Pressure: time in which something waited, node", NULL, "cpu", PANEL_LINES,
		.metric = {"pressure.cpu.some", "pressure.memory.some", "pressure.io.some", "pressure.memory.full", "pressure.io.full"},
		.label = {"for a CPU", "for memory", "for disks", "all for memory", "all for disks"}, .dashed = 0x18, .rate = true,
		.share = true, .combined = true, .when_any = true},
	{"cgroup", "Control group: CPU used, and stopped by the quota", "cores", "cpu", PANEL_LINES,
		.metric = {"cgroup.cpu.usage", "cgroup.cpu.throttled"}, .label = {"used", "stopped by the quota"}, .rate = true,
		.level = {"cgroup.cpu.quota"}, .level_label = {"quota"}},
	{"cgroup-pressure", "Pressure in the control group: time in which something waited", NULL, "cpu", PANEL_LINES,
		.metric = {"cgroup.pressure.cpu.some", "cgroup.pressure.memory.some", "cgroup.pressure.io.some"},
		.label = {"for a CPU", "for memory", "for disks"}, .rate = true, .share = true, .when_any = true},
	{"frequency", "Frequency of the CPUs, mean", NULL, "cpu", PANEL_LINES, .metric = {"freq.current"}, .label = {"mean of the CPUs"},
		.combined = true, .level = {"freq.maximum"}, .level_label = {"highest"}},
	{"throttling", "CPUs slowed down by heat or power", NULL, "cpu", PANEL_LINES, .metric = {"throttle.core_rate"},
		.label = {"times a core was slowed"}, .when_any = true},

	{"memory", "Memory of the job", "memory", "memory", PANEL_LINES, .metric = JOB_MEMORY, .label = JOB_MEMORY_LABELS,
		.filled = true, .peak = 2, .combined = true, .heat = 1, LEVEL_MEMORY},
	{"memory-views", "Memory of the job in all views", "memory", "memory", PANEL_LINES,
		.metric = {"proc.mem.rss", "proc.mem.pss_now", "proc.mem.uss_now", "cgroup.memory.current", "cgroup.memory.anon",
			"cgroup.memory.shmem", "proc.mem.swap"},
		.label = {"RSS, summed", "PSS", "USS", "cgroup, with cache", "cgroup: programs", "cgroup: shared memory", "swapped out"},
		.dashed = 0x38, .of_group = 0x38, .when_any = true, LEVEL_MEMORY},
	{"memory-kinds", "Memory of the job by kind (PSS as last read)", "memory", "memory", PANEL_STACKED,
		.metric = {"proc.mem.pss_anon", "proc.mem.pss_shmem", "proc.mem.pss_file", "proc.mem.swap_pss"},
		.label = {"anonymous", "shared memory", "files", "in swap"}, .when_any = true, LEVEL_MEMORY},
	{"cgroup-memory", "Memory charged to the control group", "memory", "memory", PANEL_STACKED,
		.metric = {"cgroup.memory.anon", "cgroup.memory.file", "cgroup.memory.slab"},
		.label = {"programs", "cache, shared", "kernel"},
		.level = {"cgroup.memory.limit"}, .level_label = {"limit"}},
	{"node-memory", "Memory of the node, all processes", "memory", "memory", PANEL_LINES, .metric = {"mem.used", "mem.cached"},
		.label = {"in use", "page cache"}, .combined = true, LEVEL_INSTALLED},
	{"swap", "Swapping of the node", NULL, "memory", PANEL_LINES, .metric = {"paging.swap_out", "paging.swap_in"},
		.label = {"out", "in"}, .rate = true, .when_any = true, .combined = true},
	{"reclaim", "Memory that the kernel went through to free some, node", NULL, "memory", PANEL_LINES,
		.metric = {"paging.scan_kswapd", "paging.scan_direct"}, .label = {"in the background", "while programs waited"}, .rate = true,
		.when_any = true},
	{"faults", "Page faults of the job", NULL, "memory", PANEL_LINES, .metric = {"tree.faults"}, .label = {"page faults"}},
	{"membw", "Memory bandwidth of the node", NULL, "memory", PANEL_LINES,
		.metric = {"membw.rate", "membw.read_rate", "membw.write_rate"}, .label = {"both ways", "read", "written"}, .peak = 1,
		.combined = true},

	{"processes-cpu", "CPU by process", "cores", "processes", PANEL_PROCESSES, .metric = {"proc.cpu.cores"},
		.peak = 1, LEVEL_CPUS},
	{"processes-memory", "Memory by process (PSS)", "memory", "processes", PANEL_PROCESSES, .metric = {"proc.mem.pss_now"},
		.peak = 1, LEVEL_MEMORY},
	{"timeline", "Lives of the processes, as thick as their CPU use", "cores", "processes", PANEL_TIMELINE, .metric = {"proc.cpu.cores"}},
	{"process-count", "Processes and threads", NULL, "processes", PANEL_LINES, .metric = {"tree.processes", "proc.threads"},
		.label = {"processes", "threads"}, .combined = true},
	{"process-starts", "Processes started", NULL, "processes", PANEL_LINES, .metric = {"tree.starts"}, .label = {"started"},
		.when_any = true},

	{"tool-uss", "Private memory by tool (USS)", "memory", "tools", PANEL_GROUPS, PANEL_WITH_GROUPS, {"proc.mem.uss_now"},
		.filled = true, .combined = true},
	{"tool-rss-uss", "RSS against USS by tool: what lies between is shared", "memory", "tools", PANEL_GROUPS, PANEL_WITH_GROUPS,
		{"proc.mem.rss", "proc.mem.uss_now"}, {"RSS", "USS"}, .dashed = 1},
	{"tool-total", "Private memory of all tools (USS, stacked)", "memory", "tools", PANEL_GROUPS_STACKED, PANEL_WITH_GROUPS,
		{"proc.mem.uss_now"}, .peak = 1, .combined = true, LEVEL_INSTALLED},
	{"tool-cpu", "CPU by tool, in cores (1 is 100 %)", "cores", "tools", PANEL_GROUPS, PANEL_WITH_GROUPS, {"group.cores"},
		.combined = true, LEVEL_CPUS},
	{"tool-cpu-time", "CPU time by tool so far, what has ended included", "CPU time", "tools", PANEL_GROUPS, PANEL_WITH_GROUPS,
		{"group.cpu"}, .combined = true},
	{"tool-instances", "Instances by tool", "processes", "tools", PANEL_GROUPS, PANEL_WITH_GROUPS, {"group.processes"},
		.combined = true},
	{"tool-uss", "Private memory by process (USS)", "memory", "tools", PANEL_PROCESSES_LINES, PANEL_WITHOUT_GROUPS,
		.metric = {"proc.mem.uss_now"}},
	{"tool-rss-uss", "RSS against USS: what lies between is shared", "memory", "tools", PANEL_LINES, PANEL_WITHOUT_GROUPS,
		{"proc.mem.rss", "proc.mem.uss_now"}, {"RSS, summed", "USS, summed"}, .dashed = 1},
	{"tool-total", "Private memory of the job (USS, stacked by process)", "memory", "tools", PANEL_PROCESSES, PANEL_WITHOUT_GROUPS,
		{"proc.mem.uss_now"}, .peak = 1, LEVEL_INSTALLED},
	{"tool-cpu", "CPU by process, in cores (1 is 100 %)", "cores", "tools", PANEL_PROCESSES_LINES, PANEL_WITHOUT_GROUPS, {"proc.cpu.cores"},
		LEVEL_CPUS},
	{"tool-cpu-time", "CPU time of the job so far, what has ended included", "CPU time", "tools", PANEL_LINES, PANEL_WITHOUT_GROUPS,
		{"tree.cpu"}, {"the job"}, .combined = true},
	{"tool-instances", "Processes alive", "processes", "tools", PANEL_LINES, PANEL_WITHOUT_GROUPS, {"tree.processes"}, {"the job"},
		.combined = true},

	{"io", "I/O of the job", NULL, "io", PANEL_LINES,
		.metric = {"tree.io.read_rate", "tree.io.write_rate", "tree.disk.read_rate", "tree.disk.write_rate"},
		.label = {"read by calls", "written by calls", "read from storage", "written to storage"}, .dashed = 0xc, .combined = true},
	{"io-calls", "Read and write calls of the job", NULL, "io", PANEL_LINES, .metric = {"tree.calls"}, .label = {"calls"}},
	{"disk", "Disks of the node", NULL, "io", PANEL_LINES, .metric = {"disk.read.rate", "disk.write.rate"},
		.label = {"read", "written"}, .combined = true},
	{"disk-requests", "Requests to the disks of the node", NULL, "io", PANEL_LINES, .metric = {"disk.read.ops", "disk.write.ops"},
		.label = {"reads", "writes"}, .rate = true, .when_any = true},
	{"disk-busy", "Disks: share of time with something to do", NULL, "io", PANEL_INSTANCES, .metric = {"disk.busy_ratio"},
		.when_any = true},
	{"disk-latency", "Disks: time that a request takes", NULL, "io", PANEL_INSTANCES, .metric = {"disk.latency"}, .when_any = true},
	{"filesystem", "File systems: share in use", NULL, "io", PANEL_INSTANCES, .metric = {"fs.used_ratio"}},
	{"nfs", "NFS of the node", NULL, "io", PANEL_LINES, .metric = {"nfs.read.rate", "nfs.write.rate", "nfs.read.server_rate", "nfs.write.server_rate"},
		.label = {"read", "written", "from the server", "to the server"}, .dashed = 0xc, .combined = true},
	{"nfs-latency", "NFS: time that a request takes", NULL, "io", PANEL_LINES, .metric = {"nfs.latency"}, .label = {"a request"},
		.when_any = true},
	{"lustre", "Lustre of the node", NULL, "io", PANEL_LINES, .metric = {"lustre.read.rate", "lustre.write.rate"},
		.label = {"read", "written"}, .combined = true},

	{"network", "Network of the node", NULL, "network", PANEL_LINES, .metric = {"net.rx.rate", "net.tx.rate"},
		.label = {"in", "out"}, .combined = true, .heat = 2},
	{"network-packets", "Network packets of the node", NULL, "network", PANEL_LINES, .metric = {"net.rx.packet_rate", "net.tx.packet_rate"},
		.label = {"in", "out"}, .combined = true},
	{"network-trouble", "Network troubles of the node", NULL, "network", PANEL_LINES,
		.metric = {"tcp.retransmits", "net.rx.errors", "net.tx.errors", "net.rx.drops", "net.tx.drops"},
		.label = {"TCP retransmits", "errors in", "errors out", "drops in", "drops out"}, .rate = true, .when_any = true},
	{"interconnect", "Interconnect of the node", NULL, "network", PANEL_LINES, .metric = {"ib.rx.rate", "ib.tx.rate"},
		.label = {"in", "out"}, .combined = true, .heat = 2},
	{"interconnect-packets", "Interconnect packets of the node", NULL, "network", PANEL_LINES,
		.metric = {"ib.rx.packet_rate", "ib.tx.packet_rate"}, .label = {"in", "out"}, .combined = true},
	{"interconnect-trouble", "Interconnect troubles of the node", NULL, "network", PANEL_LINES,
		.metric = {"ib.rx.errors", "ib.tx.discards", "ib.symbol_errors", "ib.link_downed", "ib.out_of_sequence"},
		.label = {"errors in", "discarded, out", "symbol errors", "links lost", "out of sequence"}, .rate = true, .when_any = true},
	{"interconnect-wait", "Interconnect: clock ticks in which a port had to wait before it could send", NULL, "network", PANEL_LINES,
		.metric = {"ib.tx.wait"}, .label = {"waited"}, .rate = true, .when_any = true},

	{"gpu-util", "GPUs: share of time busy", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu.util"}, .combined = true, .heat = 1},
	{"gpu-memory", "GPU memory in use", "memory", "gpu", PANEL_INSTANCES, .metric = {"gpu.memory.used"}, .peak = 1, .combined = true},
	{"gpu-memory-util", "GPUs: share of time in which memory was busy", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu.mem_util"}},
	{"gpu-power", "GPU power", "power", "gpu", PANEL_INSTANCES, .metric = {"gpu.watts"}, .combined = true},
	{"gpu-temperature", "GPU temperature", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu.temperature"}},
	{"gpu-clock", "GPU clock", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu.clock.sm", "gpu.clock.graphics"},
		.label = {NULL, "graphics"}, .dashed = 2},
	{"gpu-throttling", "GPUs held back", NULL, "gpu", PANEL_LINES, .metric = {"gpu.throttle.power_share", "gpu.throttle.thermal_share"},
		.label = {"by power", "by temperature"}, .when_any = true},
	{"gpu-pcie", "GPUs: sent and received over PCIe in a second", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu.pcie.tx", "gpu.pcie.rx"},
		.label = {"sent", "received"}, .dashed = 2, .when_any = true},
	{"gpu-process-util", "GPU use by process", NULL, "gpu", PANEL_INSTANCES, .metric = {"gpu_process.busy_ratio"}},
	{"gpu-process-memory", "GPU memory by process", "memory", "gpu", PANEL_INSTANCES, .metric = {"gpu_process.memory"}},

	{"power", "Power by domain", "power", "energy", PANEL_INSTANCES, .metric = {"energy.watts"}, .combined = true},
	{"temperature", "Temperatures", NULL, "energy", PANEL_INSTANCES, .metric = {"sensor.temperature"}},
	{"fans", "Fans, turns per minute", NULL, "energy", PANEL_INSTANCES, .metric = {"sensor.fan"}, .when_any = true},

	{"perf-ipc", "Instructions per cycle", NULL, "perf", PANEL_LINES, .metric = {"perf.ipc"}, .label = {"instructions per cycle"}},
	{"perf-misses", "Cache and branch misses", NULL, "perf", PANEL_LINES, .metric = {"perf.cache_miss_rate", "perf.branch_miss_rate"},
		.label = {"of cache references", "of branches"}},
	{"perf-frequency", "Frequency while the job ran", NULL, "perf", PANEL_LINES, .metric = {"perf.ghz"}, .label = {"the job's CPUs"}},
};
/* clang-format on */
const size_t nr_panels = ARRAY_SIZE(panels);
