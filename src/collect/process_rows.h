/* The rows of the process collector. `source` is the file of /proc/PID a value comes from: what is not
 * recorded is not opened. Counters of a process cover all its threads, and are in the kernel's own units. */
#ifndef COLLECT_PROCESS_ROWS_H
#define COLLECT_PROCESS_ROWS_H

#include "metric/metric.h"

enum process_source {
	FROM_CLOCK,	/* the process's CPU clock: no file */
	FROM_STAT,	/* col: field number in proc(5) */
	FROM_STATM,	/* col: field number */
	FROM_IO,	/* key */
	FROM_SCHEDSTAT, /* col */
	FROM_FD,	/* size of the directory */
	FROM_STATUS,	/* key */
	FROM_SMAPS,	/* key in smaps_rollup */
	FROM_DOUBT,	/* how much of PSS is in doubt: no file */
	NR_PROCESS_SOURCES
};

/* clang-format off */
#define CLOCK {.source = FROM_CLOCK}
#define STAT(n) {.source = FROM_STAT, .col = n}
#define STATM(n) {.source = FROM_STATM, .col = n}
#define SCHED(n) {.source = FROM_SCHEDSTAT, .col = n}
#define IO(k) {.source = FROM_IO, .key = k}
#define STATUS(k) {.source = FROM_STATUS, .key = k}
#define SMAPS(k) {.source = FROM_SMAPS, .key = k}

static const struct metric process_metric[] = {
	{"proc.cpu.time",            "CPU time of the process itself, exact to the microsecond.", CLOCK, SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cpu", TIER_TICK, false},
	{"proc.cpu.user",            "CPU time in user mode (the kernel splits user and system by sampling).", STAT(14), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cpu", TIER_TICK, false},
	{"proc.cpu.system",          "CPU time in the kernel on behalf of the process.", STAT(15), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cpu", TIER_TICK, false},
	{"proc.cpu.children_user",   "User CPU time of the children it has waited for, and theirs.", STAT(16), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"proc.cpu.children_system", "System CPU time of the children it has waited for, and theirs.", STAT(17), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"proc.state",               "State: the letter of proc(5) as a character code (R running, S sleeping, D waiting for a disk, T stopped, Z zombie).", STAT(3), SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_TICK, false},
	{"proc.threads",             "Threads.", STAT(20), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "threads", TIER_TICK, false},
	{"proc.faults.minor",        "Page faults that needed no reading from disk.", STAT(10), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "faults", TIER_TICK, false},
	{"proc.faults.major",        "Page faults that waited for a disk.", STAT(12), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "faults", TIER_TICK, false},
	{"proc.faults.children_minor", "Minor faults of the children it has waited for.", STAT(11), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"proc.faults.children_major", "Major faults of the children it has waited for.", STAT(13), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"proc.io.block_delay",      "Time spent waiting for block devices (0 unless the kernel does delay accounting).", STAT(42), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"proc.mem.vms",             "Virtual memory: all that is mapped.", STATM(1), SCALE_PAGES, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"proc.mem.rss",             "Resident memory; summed over processes it counts shared pages several times.", STATM(2), SCALE_PAGES, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "memory", TIER_TICK, false},
	{"proc.mem.shared",          "Resident memory backed by files or shared memory.", STATM(3), SCALE_PAGES, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"proc.io.read_chars",       "Bytes asked of read calls, cache and pipes included; with those of waited-for children.", IO("rchar"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "io", TIER_TICK, false},
	{"proc.io.write_chars",      "Bytes given to write calls; with those of waited-for children.", IO("wchar"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "io", TIER_TICK, false},
	{"proc.io.read_calls",       "Read system calls; with those of waited-for children.", IO("syscr"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "calls", TIER_TICK, false},
	{"proc.io.write_calls",      "Write system calls; with those of waited-for children.", IO("syscw"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "calls", TIER_TICK, false},
	{"proc.io.read_bytes",       "Bytes fetched from storage; with those of waited-for children.", IO("read_bytes"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "disk", TIER_TICK, false},
	{"proc.io.write_bytes",      "Bytes sent to storage (pages made dirty); with those of waited-for children.", IO("write_bytes"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "disk", TIER_TICK, false},
	{"proc.io.cancelled_bytes",  "Bytes that were never written because the file was cut or removed first.", IO("cancelled_write_bytes"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"proc.sched.wait",          "Time the main thread was ready and waited for a CPU.", SCHED(2), SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"proc.sched.slices",        "Times the main thread was put on a CPU.", SCHED(3), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"proc.fds",                 "Open file descriptors.", {.source = FROM_FD}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "fds", TIER_TICK, false},
	{"proc.mem.hwm",             "Largest resident memory so far, as the kernel keeps it.", STATUS("VmHWM"), SCALE_KIB, KIND_PEAK, FOLD_MAX, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"proc.mem.swap",            "Memory swapped out.", STATUS("VmSwap"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "memory", TIER_MEDIUM, false},
	{"proc.switches.voluntary",  "Times the main thread gave up the CPU to wait.", STATUS("voluntary_ctxt_switches"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "switches", TIER_MEDIUM, false},
	{"proc.switches.involuntary", "Times the main thread was taken off the CPU.", STATUS("nonvoluntary_ctxt_switches"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "switches", TIER_MEDIUM, false},
	{"proc.signals.ignored",     "Mask of ignored signals; bit 16 is SIGCHLD, whose ignoring hides the children's CPU time.", {.source = FROM_STATUS, .key = "SigIgn", .arg = 16}, SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_MEDIUM, false},
	{"proc.smaps.rss",           "Resident memory at the moment PSS was read.", SMAPS("Rss"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.smaps.anon",          "Anonymous memory at the moment PSS was read.", SMAPS("Anonymous"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.smaps.doubt",         "Memory that others began or ceased to share since PSS was read; negative: so much of the reading is theirs by now; before the first reading: what it shares with its parent since the fork, less its part of that.", {.source = FROM_DOUBT}, SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.pss",             "Proportional memory: shared pages divided by the number of processes that share them. As last read; proc.mem.pss_now follows RSS in between.", SMAPS("Pss"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "memory", TIER_SLOW, false},
	{"proc.mem.pss_anon",        "The anonymous part of PSS.", SMAPS("Pss_Anon"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.pss_file",        "The part of PSS backed by files.", SMAPS("Pss_File"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.pss_shmem",       "The part of PSS in shared memory.", SMAPS("Pss_Shmem"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.private_clean",   "Private pages that are as on disk: part of USS.", SMAPS("Private_Clean"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.private_dirty",   "Private pages that were written: part of USS.", SMAPS("Private_Dirty"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.private_huge",    "Private hugetlb pages: part of USS, not in RSS.", SMAPS("Private_Hugetlb"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.swap_pss",        "Proportional share of swapped-out memory.", SMAPS("SwapPss"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, false},
	{"proc.mem.locked",          "Memory locked into RAM, proportional.", SMAPS("Locked"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, true},
	{"proc.mem.anon_huge",       "Anonymous memory in transparent huge pages.", SMAPS("AnonHugePages"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_SLOW, true},
	{"proc.nice",                "Nice value.", STAT(19), SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_TICK, true},
	{"proc.processor",           "CPU the main thread ran on last.", STAT(39), SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_TICK, true},
};
/* clang-format on */
#undef CLOCK
#undef STAT
#undef STATM
#undef SCHED
#undef IO
#undef STATUS
#undef SMAPS
#endif
