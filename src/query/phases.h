/* The job's phases in numbers: what the job used and held in each of them, and what the node did meanwhile.
 *
 * A phase is told by `phase.begin` and `phase.end` (query/events.h has the rules of pairing). Its numbers are
 * those of the whole job on that node while it was open:
 *
 * - An amount is the difference of the ledger's running sums at its two edges. An edge between two ticks
 * takes the share of what was used between them; a tick at the edge makes that exact. A phase with fewer than
 * two ticks in it is `interpolated`, and so is one of which the edges make more than a twentieth of its CPU
 * time or of what it read or wrote unsure.
 * - A level is the highest at a tick in it, and the mean over its time. The mark that the kernel keeps of a
 *   process counts where the process began and ended in the phase.
 *
 * A phase comes again: the same name, or one in which only numbers differ ("epoch 1", "epoch 2"), is another
 * repetition of one phase ("epoch"). Processes that tell the same name at the same time (ranks), on one node
 * or several, are in one repetition. Time that several repetitions share counts once.
 *
 * Over nodes the longest time counts, and all else is added; what is of the machine counts once a host.
 *
 * All is gathered in the pass that makes the summary. Memory does not grow with the recording. */
#ifndef QUERY_PHASES_H
#define QUERY_PHASES_H

#include "query/ledger.h"

/* clang-format off */
/* ROW(id, name, unit, of several nodes, title, help) */
#define PHASE_OF_NODE(ROW) \
	ROW(NET_RX_BYTES, "net_rx_bytes", BYTES, HOSTS, "received", "Bytes that the node received.") \
	ROW(NET_TX_BYTES, "net_tx_bytes", BYTES, HOSTS, "sent", "Bytes that the node sent.") \
	ROW(NET_RX_PACKETS, "net_rx_packets", COUNT, HOSTS, NULL, "Packets that the node received.") \
	ROW(NET_TX_PACKETS, "net_tx_packets", COUNT, HOSTS, NULL, "Packets that the node sent.") \
	ROW(IB_RX_BYTES, "ib_rx_bytes", BYTES, HOSTS, "IB received", "Bytes that the node received by InfiniBand.") \
	ROW(IB_TX_BYTES, "ib_tx_bytes", BYTES, HOSTS, "IB sent", "Bytes that the node sent by InfiniBand.") \
	ROW(IB_RX_PACKETS, "ib_rx_packets", COUNT, HOSTS, NULL, "Packets that the node received by InfiniBand.") \
	ROW(IB_TX_PACKETS, "ib_tx_packets", COUNT, HOSTS, NULL, "Packets that the node sent by InfiniBand.") \
	ROW(DISK_READ, "disk_read_bytes", BYTES, HOSTS, NULL, "Bytes that the node's disks read.") \
	ROW(DISK_WRITTEN, "disk_written_bytes", BYTES, HOSTS, NULL, "Bytes that the node's disks wrote.") \
	ROW(CGROUP_OOM_KILLS, "oom_kills", COUNT, ADD, NULL, "Processes that the kernel killed because memory ran out.") \
	ROW(CGROUP_THROTTLED, "throttled_s", SECONDS, ADD, "throttled", "Time for which the CPU quota held the job back.") \
	ROW(MEMBW_READ, "membw_read_bytes", BYTES, HOSTS, NULL, "Bytes read from memory.") \
	ROW(MEMBW_WRITE, "membw_write_bytes", BYTES, HOSTS, NULL, "Bytes written to memory.") \
	ROW(MEMBW_BOTH, "membw_both_bytes", BYTES, HOSTS, NULL, "Bytes moved from and to memory, where the ways cannot be told apart.")

/* What may have held it back. */
#define PHASE_CAUSES(ROW) \
	ROW(CPU_PRESSURE, "cpu_pressure_s", SECONDS, MAX, NULL, "Time in which some task waited for a CPU: of the job's control group, else of the node.") \
	ROW(IO_PRESSURE, "io_pressure_s", SECONDS, MAX, NULL, "Time in which some task waited for a disk.") \
	ROW(MEMORY_PRESSURE, "memory_pressure_s", SECONDS, MAX, NULL, "Time in which some task waited for memory.") \
	ROW(RUN_QUEUE, "run_queue_s", SECONDS, ADD, NULL, "Time for which main threads of the job were ready and waited for a CPU.") \
	ROW(SWAP_IN, "swap_in_bytes", BYTES, HOSTS, NULL, "Memory that the node brought back from swap.") \
	ROW(THERMAL, "package_throttled_s", SECONDS, HOSTS, NULL, "Time for which processors were slowed down by heat or power, summed over packages.") \
	ROW(CLOCK, "cpu_clock_hz", HERTZ, MEAN_WALL, NULL, "Frequency of the node's CPUs, mean.")

#define PHASE_OF_GPUS(ROW) \
	ROW(GPU_UTIL, "gpu_util_percent", PLAIN, MEAN_GPU, "GPU", "Utilisation of the job's GPUs, mean over time and devices.") \
	ROW(GPU_SECONDS, "gpu_observed_s", SECONDS, ADD, NULL, "Time for which that was observed, summed over devices.") \
	ROW(GPU_MEMORY, "gpu_memory_peak_bytes", BYTES, ADD, "GPU mem", "The most memory on the job's GPUs at one sample, summed over devices.") \
	ROW(GPU_ENERGY, "gpu_energy_joules", JOULES, ADD, NULL, "Energy that the job's GPUs used.") \
	ROW(GPU_THROTTLED, "gpu_throttled_s", SECONDS, ADD, NULL, "Time for which the job's GPUs were slowed down, summed over devices and causes.")

#define PHASE_PEAK_HELP "The most at a sample."
#define PHASE_MEAN_HELP "The mean over time."

/* All of them, in the order of the columns. AMOUNT and LEVEL get rows of metric/quantity.h: of a level there are
 * the peak and the mean. */
#define PHASE_COLUMNS(ROW, AMOUNT, LEVEL) \
	ROW(WALL, "duration_s", SECONDS, MAX, "wall", "Time in which it was open; of several nodes the longest.") \
	ROW(CORES, "cores", PLAIN, OWN, "cores", "CPU time by that time.") \
	ROW(MEMORY, "peak_memory_bytes", BYTES, ADD, "peak mem", \
		"The most memory: PSS, where that is not known RSS, or what one process had between two samples.") \
	AMOUNTS(AMOUNT) LEVELS(LEVEL) \
	ROW(ENERGY, "energy_joules", JOULES, HOSTS, "energy", "Energy that the node used.") \
	PHASE_OF_GPUS(ROW) PHASE_OF_NODE(ROW) PHASE_CAUSES(ROW)

#define PHASE_LEVEL(id, ...) PHASE_##id##_PEAK, PHASE_##id##_MEAN,
#define PHASE_ROW(id, ...) PHASE_##id,
enum phase_value { /* NAN: not known */
	PHASE_COLUMNS(PHASE_ROW, PHASE_ROW, PHASE_LEVEL)
	NR_PHASE_VALUES
};
#undef PHASE_ROW
#undef PHASE_LEVEL
/* clang-format on */

enum phase_join { JOIN_ADD, JOIN_MAX, JOIN_HOSTS, JOIN_MEAN_WALL, JOIN_MEAN_GPU, JOIN_OWN };

struct phase_column {
	const char *name; /* for programs */
	const char *title, *help;
	enum metric_unit unit;
	bool whole;
	bool level;	      /* what was held, not an amount */
	enum phase_join join; /* of several nodes */
};

extern const struct phase_column phase_column[NR_PHASE_VALUES];

/* Events of the processor: more than a recording can have. */
#define PHASE_EVENTS 32

/* A phase, or one repetition of it. */
struct phase {
	char *name;	       /* escaped: "epoch" of "epoch 1", "epoch 2"; of a repetition as it was told */
	char *key;	       /* the name with # for its numbers: the same in another run */
	uint32_t fold;	       /* of a repetition: the index of its phase */
	uint32_t number;       /* of a repetition: which one, from 1 */
	uint32_t count;	       /* repetitions */
	uint32_t senders;      /* processes that told it at the same time, at most; over nodes added */
	uint32_t nodes;	       /* on so many: hosts */
	int parent;	       /* index of the phase that all its repetitions lie in; -1: none */
	unsigned depth;	       /* of such phases around it */
	double begin_s, end_s; /* after the start of the run: of the first, of the last */
	bool cut;	       /* it was not ended: the recording was */
	bool brief;	       /* fewer than two ticks lie in it, or in each of its repetitions */
	bool interpolated;     /* between ticks: what its edges took is a guess */
	double value[NR_PHASE_VALUES];
	double event[PHASE_EVENTS]; /* what was counted of each of phases.event; NAN: not known */
	/* Of several repetitions; NAN with one. */
	double mean_s, sd_s;
	uint32_t slowest;	/* its number; 0: none stands out */
	double slower;		/* by this share of the others' mean */
	const char *slower_why; /* as far as is known; NULL: it is not */
};

struct phases {
	struct phase *phase; /* by first begin, each before those in it */
	size_t nr;
	struct phase *repetition; /* by begin */
	size_t nr_repetitions;
	size_t left_out; /* repetitions that are not kept one by one; they are in their phase's sums */
	size_t ignored;	 /* too many names, or too many open at once: they are in no phase */
	char *event[PHASE_EVENTS]; /* "perf.cycles" */
	unsigned nr_events;
};

struct phases *phases_free(struct phases *p);
/* What was counted in it of an event, "perf.cycles". NAN: not known. */
double phase_event(const struct phases *all, const struct phase *p, const char *metric);
/* It is interpolated between samples: an amount by the edges; what was held, where no two samples lie in it.
 * How long it took is known. */
bool phase_is_guess(const struct phase *p, enum phase_value which);
/* By name, or "NAME#3": the third repetition. NULL: there is none. */
const struct phase *phases_find(const struct phases *p, const char *name);

/* The time from the beginning of a phase to this moment of the run: of several repetitions, of the one in
 * which it lies. NAN: it lies in none. */
double phases_since(const struct phases *p, const struct phase *of, double time_s);

/* The name with # for each number that stands by itself or ends a word. */
void phase_key(const char *name, struct buf *key);
/* Marks the numbers of `other` that differ from those of `name`; both have the same key. */
uint64_t phase_numbers_differ(const char *name, const char *other);
/* "epoch" of "epoch 1"; "epoch #/12" of "epoch 1/12". */
void phase_general_name(const char *name, uint64_t varied, struct buf *out);

/* ---- while a recording is read ---- */

struct phase_reading;
/* Observes the ledger's walk, which has read nothing yet. At most so many repetitions are kept. NULL: no
 * memory. */
struct phase_reading *phase_reading_new(struct ledger *a, int64_t offset_ns, size_t most);
/* To be called with each point of the ledger. */
int phase_reading_point(struct phase_reading *r, const struct point *point);
/* When all are through. *ret is NULL where the job told of no phase. */
int phase_reading_finish(struct phase_reading *r, struct phases **ret);
struct phase_reading *phase_reading_free(struct phase_reading *r);

/* Those of several recordings, each of which may be NULL, as one; host: of each. *ret is NULL where all are.
 */
int phases_combine(
	const struct phases *const *of, const char *const *host, size_t nr, size_t most, struct phases **ret);
#endif
