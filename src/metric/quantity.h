/* The numbers that are shown of a job, of its groups and of its processes: one row each.
 *
 * An amount is used up (CPU time, bytes); a level is held (memory, threads). From a row come the account of
 * the recorder (struct usage, tree.gone.*, group.gone.*), the ledger's sums, the summary and its JSON,
 * statistics, the table of processes, exports, comparisons and the page: their enums and tables are made by
 * naming the lists below, so nothing has to be written beside the row. CONTRIBUTING.md has the recipe.
 *
 * A row is ROW(...), where ROW is a macro of the place that needs something of it. Each output names the
 * lists in the order that it has had from its beginning: names and orders of outputs are for ever. */
#ifndef METRIC_QUANTITY_H
#define METRIC_QUANTITY_H

#include "metric/metric.h"

/* clang-format off */

/* ---- amounts ----
 *
 * ROW(id, name, unit, children, metric, ended, figure, stats, process)
 *
 * name      in metrics of ended processes and in exports; in tables with the unit's suffix: "user_s"
 * unit      SECONDS, BYTES or NUMBER
 * children  those that a process has waited for are
 *             APART    in a metric of its own: "proc." area ".children_" leaf
 *             WITHIN   in its own counter: the kernel adds them there
 *             NOWHERE  in no file of the parent: they count when they leave
 *             SUM      as those of its parts; it has no account of its own
 * metric    METRIC(area, leaf): "proc." area "." leaf, which the collector of processes records
 * ended     ENDED(key, a unit is so many of it, help of tree.gone.NAME as far as "ended processes"): what the recorder
 *           says of a process that has ended, and keeps of those that no living one accounts for
 * figure    FIGURE(object, name, MATTERS or DETAIL): its place in the summary's JSON; `compare` tells what matters
 *           when it differs, the rest with --all
 * stats     STATS(title, help) or NO_STATS
 * process   PROCESS(heading or NULL: for programs only, width, help) or NO_PROCESS */

#define AMOUNTS_CPU(ROW) \
	ROW(CPU, "cpu", SECONDS, SUM, METRIC("cpu", "time"), ENDED("cpu_ns", 1000000000, NULL), \
		FIGURE("cpu", "total_s", MATTERS), STATS("CPU time", "CPU time, what ended processes used included."), \
		PROCESS("CPU", 8, "Its own CPU time."))

#define AMOUNTS_CPU_PARTS(ROW) \
	ROW(USER, "user", SECONDS, APART, METRIC("cpu", "user"), ENDED("user_us", 1000000, "User CPU time of"), \
		FIGURE("cpu", "user_s", MATTERS), STATS("user", "CPU time in programs."), \
		PROCESS("USER", 8, "CPU time in user mode.")) \
	ROW(SYSTEM, "system", SECONDS, APART, METRIC("cpu", "system"), ENDED("system_us", 1000000, "System CPU time of"), \
		FIGURE("cpu", "system_s", MATTERS), STATS("system", "CPU time in the kernel."), \
		PROCESS("SYS", 8, "CPU time in the kernel."))

#define AMOUNTS_MINOR(ROW) \
	ROW(MINOR, "minor_faults", NUMBER, APART, METRIC("faults", "minor"), ENDED("minor_faults", 1, "Minor faults of"), \
		FIGURE("faults", "minor", DETAIL), NO_STATS, PROCESS(NULL, 0, "Page faults without a disk."))

#define AMOUNTS_MAJOR(ROW) \
	ROW(MAJOR, "major_faults", NUMBER, APART, METRIC("faults", "major"), ENDED("major_faults", 1, "Major faults of"), \
		FIGURE("faults", "major", MATTERS), STATS("major faults", "Page faults that waited for storage."), \
		PROCESS(NULL, 0, "Page faults that waited for a disk."))

#define AMOUNTS_SWITCHES(ROW) \
	ROW(VOLUNTARY, "voluntary", NUMBER, NOWHERE, METRIC("switches", "voluntary"), \
		ENDED("voluntary_switches", 1, "Voluntary context switches of"), \
		FIGURE("switches", "voluntary", DETAIL), NO_STATS, NO_PROCESS) \
	ROW(INVOLUNTARY, "involuntary", NUMBER, NOWHERE, METRIC("switches", "involuntary"), \
		ENDED("involuntary_switches", 1, "Involuntary context switches of"), \
		FIGURE("switches", "involuntary", MATTERS), NO_STATS, NO_PROCESS)

#define AMOUNTS_CALLS(ROW) \
	ROW(READ_CHARS, "read_chars", BYTES, WITHIN, METRIC("io", "read_chars"), \
		ENDED("read_chars", 1, "Bytes read by system calls of"), FIGURE("io", "read_chars", MATTERS), \
		STATS("read", "Bytes read by system calls."), PROCESS("READ", 9, "Read by system calls.")) \
	ROW(WRITE_CHARS, "write_chars", BYTES, WITHIN, METRIC("io", "write_chars"), \
		ENDED("write_chars", 1, "Bytes written by system calls of"), FIGURE("io", "write_chars", MATTERS), \
		STATS("written", "Bytes written by system calls."), PROCESS("WROTE", 9, "Written by system calls.")) \
	ROW(READ_CALLS, "read_calls", NUMBER, WITHIN, METRIC("io", "read_calls"), \
		ENDED("read_calls", 1, "Read system calls of"), FIGURE("io", "read_calls", MATTERS), NO_STATS, NO_PROCESS) \
	ROW(WRITE_CALLS, "write_calls", NUMBER, WITHIN, METRIC("io", "write_calls"), \
		ENDED("write_calls", 1, "Write system calls of"), FIGURE("io", "write_calls", MATTERS), NO_STATS, NO_PROCESS)

#define AMOUNTS_STORAGE(ROW) \
	ROW(READ_BYTES, "read_bytes", BYTES, WITHIN, METRIC("io", "read_bytes"), \
		ENDED("read_bytes", 1, "Bytes fetched from storage by"), FIGURE("io", "read_bytes", MATTERS), \
		STATS("from storage", "Bytes fetched from storage."), PROCESS(NULL, 0, "Fetched from storage.")) \
	ROW(WRITE_BYTES, "write_bytes", BYTES, WITHIN, METRIC("io", "write_bytes"), \
		ENDED("write_bytes", 1, "Bytes sent to storage by"), FIGURE("io", "write_bytes", MATTERS), \
		STATS("to storage", "Bytes sent to storage."), PROCESS(NULL, 0, "Sent to storage.")) \
	ROW(CANCELLED, "cancelled_bytes", BYTES, WITHIN, METRIC("io", "cancelled_bytes"), \
		ENDED("cancelled_bytes", 1, "Bytes that were never written, because the file was cut or removed first, of"), \
		FIGURE("io", "cancelled_bytes", DETAIL), NO_STATS, \
		PROCESS(NULL, 0, "Never written: the file was cut or removed first."))

#define AMOUNTS(ROW) \
	AMOUNTS_CPU(ROW) AMOUNTS_CPU_PARTS(ROW) AMOUNTS_MINOR(ROW) AMOUNTS_MAJOR(ROW) AMOUNTS_SWITCHES(ROW) AMOUNTS_CALLS(ROW) AMOUNTS_STORAGE(ROW)

/* ---- levels ----
 *
 * ROW(id, name, kind, metric, figure, stats, process)
 *
 * name     in tables, with what it is the peak or mean of: "rss_peak"
 * kind     VIEW    one of several ways to count memory: peak, when that was, mean, quantiles, the most of one process,
 *                  the sum of processes' peaks
 *          MEMORY  peak and when that was; memory of the program that a process is now
 *          COUNT   peak
 * metric   READ("proc.mem.rss"): recorded as such; FROM("proc.mem.pss"): made of this and others
 *          (query/live_processes.c)
 * figure   MATTERS or DETAIL, as above
 * stats    STATS(title, help of the peak, help of the mean; VIEW: MEDIAN or NO_MEDIAN) or NO_STATS
 * process  as above: the peak of each process */

#define LEVELS_RSS(ROW) \
	ROW(RSS, "rss", VIEW, READ("proc.mem.rss"), MATTERS, \
		STATS("RSS", "The most that all its processes had together at a sample; of one process the most that is known.", \
			"Resident memory, shared pages counted once per process, mean over time.", MEDIAN), \
		PROCESS("RSS", 9, "Most resident memory that is known of it, at a tick or as the kernel kept it."))

/* These are estimates in part. */
#define LEVELS_SHARED(ROW) \
	ROW(PSS, "pss", VIEW, FROM("proc.mem.pss"), MATTERS, \
		STATS("PSS", "The most that all its processes had together at one instant.", \
			"Fair share of memory, each page divided by its users, mean over time.", NO_MEDIAN), \
		PROCESS("PSS", 9, "Most memory with shared pages divided among who has them.")) \
	ROW(USS, "uss", VIEW, FROM("proc.mem.private_dirty"), MATTERS, \
		STATS("USS", "The most that all its processes had together at one instant.", \
			"Memory that is not shared, mean over time.", NO_MEDIAN), \
		PROCESS(NULL, 0, "Most memory that was not shared."))

#define LEVELS_MEMORY(ROW) \
	ROW(VMS, "vms", MEMORY, READ("proc.mem.vms"), DETAIL, NO_STATS, NO_PROCESS) \
	ROW(SWAP, "swap", MEMORY, READ("proc.mem.swap"), MATTERS, \
		STATS("swap peak", "The most that was swapped out at one instant.", NULL, NO_MEDIAN), NO_PROCESS)

#define LEVELS_COUNTS(ROW) \
	ROW(THREADS, "threads", COUNT, READ("proc.threads"), MATTERS, \
		STATS("threads", "The most threads at one instant.", NULL, NO_MEDIAN), \
		PROCESS("THR", 4, "Most threads at a tick.")) \
	ROW(FDS, "fds", COUNT, READ("proc.fds"), MATTERS, \
		STATS("open files", "The most open file descriptors at one instant.", NULL, NO_MEDIAN), \
		PROCESS("FDS", 5, "Most open descriptors at a tick."))

#define LEVELS_ALIVE(ROW) \
	ROW(PROCESSES, "processes", COUNT, FROM("proc.mem.rss"), MATTERS, \
		STATS("at once", "The most processes at one instant.", NULL, NO_MEDIAN), NO_PROCESS)

#define LEVELS_VIEWS(ROW) LEVELS_RSS(ROW) LEVELS_SHARED(ROW)
#define LEVELS(ROW) LEVELS_VIEWS(ROW) LEVELS_MEMORY(ROW) LEVELS_COUNTS(ROW) LEVELS_ALIVE(ROW)

/* ---- for those who name the lists ---- */

/* IF_##stats(this) is nothing where the row has NO_STATS; likewise of the others. */
#define QUANTITY_KEEP(...) __VA_ARGS__
#define QUANTITY_DROP(...)
#define IF_STATS(...) QUANTITY_KEEP
#define IF_NO_STATS QUANTITY_DROP
#define IF_PROCESS(...) QUANTITY_KEEP
#define IF_NO_PROCESS QUANTITY_DROP
#define IF_READ(...) QUANTITY_KEEP
#define IF_FROM(...) QUANTITY_DROP
#define IF_MEDIAN(...) __VA_ARGS__
#define IF_NO_MEDIAN(...)
#define UNLESS_SUM_APART QUANTITY_KEEP
#define UNLESS_SUM_WITHIN QUANTITY_KEEP
#define UNLESS_SUM_NOWHERE QUANTITY_KEEP
#define UNLESS_SUM_SUM QUANTITY_DROP
#define QUANTITY_UNIT_SECONDS UNIT_SECONDS
#define QUANTITY_UNIT_BYTES UNIT_BYTES
#define QUANTITY_UNIT_NUMBER UNIT_COUNT
#define QUANTITY_UNIT_VIEW UNIT_BYTES
#define QUANTITY_UNIT_MEMORY UNIT_BYTES
#define QUANTITY_UNIT_COUNT UNIT_COUNT
#define QUANTITY_SUFFIX_SECONDS "_s"
#define QUANTITY_SUFFIX_BYTES ""
#define QUANTITY_SUFFIX_NUMBER ""
#define QUANTITY_SUFFIX_VIEW "_bytes"
#define QUANTITY_SUFFIX_MEMORY "_bytes"
#define QUANTITY_SUFFIX_COUNT ""

enum used { /* amounts that only grow: ns, bytes and counts */
#define ROW(id, ...) USED_##id,
	AMOUNTS(ROW)
#undef ROW
	NR_USED
};

enum level { /* sums over the live processes */
#define ROW(id, ...) LEVEL_##id,
	LEVELS_VIEWS(ROW) LEVELS_MEMORY(ROW)
	NR_MEMORY_LEVELS,
	LEVELS_BEFORE_COUNTS = NR_MEMORY_LEVELS - 1,
	LEVELS_COUNTS(ROW) LEVELS_ALIVE(ROW)
#undef ROW
	/* The bytes of which it is an estimate what of them is in LEVEL_PSS, LEVEL_USS. */
#define ROW(id, ...) LEVEL_##id##_ESTIMATED,
	LEVELS_SHARED(ROW)
#undef ROW
	NR_LEVELS
};
/* clang-format on */

enum quantity_children { CHILDREN_APART, CHILDREN_WITHIN, CHILDREN_NOWHERE, CHILDREN_SUM };

struct quantity {			      /* what those need who go over all amounts */
	const char *metric, *children_metric; /* the latter of CHILDREN_APART alone */
	enum quantity_children children;
	const char *key, *account_key; /* of an ended process: its own; with what its children left to it */
	int64_t per_unit;	       /* of the key */
	const char *tree_gone, *group_gone; /* metrics; not of CHILDREN_SUM */
	bool is_time;
	bool of_processes; /* the table of processes has it */
};

extern const struct quantity quantity[NR_USED];
extern const char *const level_metric[NR_LEVELS]; /* without it the level is not known */

/* Amounts that a process uses up, together with the children it has waited for: µs, bytes and counts. Those
 * that are sums of others stay 0. */
struct usage {
	int64_t used[NR_USED];
};

static inline void usage_add(struct usage *to, const struct usage *u)
{
	for (unsigned i = 0; i < NR_USED; i++)
		to->used[i] += u->used[i];
}

static inline int64_t usage_cpu_us(const struct usage *u)
{
	return u->used[USED_USER] + u->used[USED_SYSTEM];
}

/* Neither CPU time nor page faults. */
static inline bool usage_is_none(const struct usage *u)
{
	return !u->used[USED_USER] && !u->used[USED_SYSTEM] && !u->used[USED_MINOR] && !u->used[USED_MAJOR];
}
#endif
