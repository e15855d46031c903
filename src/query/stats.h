/* Statistics of a run: for the whole, each node, group of processes, user, phase and process the same
 * columns.
 *
 * Amounts (CPU seconds, bytes) keep what ended processes used. `peak` is the peak of the sum at an instant,
 * `one_peak` the largest any one process had, `peaks_sum` the sum of every process's own peak: more
 * than was ever held at once. What is not known is NAN. */
#ifndef QUERY_STATS_H
#define QUERY_STATS_H

#include "base/progress.h"
#include "query/process_table.h"
#include "query/summary.h"
#include "query/tour.h"

/* clang-format off */
#define STAT_AMOUNT(id, name, unit, children, metric, ended, figure, stats, ...) IF_##stats(STAT_##id,)
#define STATS_VIEW(id, if_median) STAT_##id##_MEAN, if_median(STAT_##id##_P50,) STAT_##id##_P95, STAT_##id##_PEAK, \
	STAT_##id##_PEAK_AT, STAT_##id##_ONE_PEAK, STAT_##id##_PEAKS_SUM,
#define STATS_MEMORY(id, if_median) STAT_##id##_PEAK,
#define STATS_COUNT(id, if_median) STAT_##id##_PEAK,
#define IF_MEDIAN_STATS(title, help, mean_help, median) IF_##median
#define STAT_LEVEL(id, name, kind, metric, figure, stats, process) IF_##stats(STATS_##kind(id, IF_MEDIAN_##stats))
enum stats_id {
	STAT_INSTANCES, /* processes ever seen */
	STAT_SAMPLES,	/* readings of its processes: ticks x processes */
	STAT_DURATION,	/* from the first to the last moment with a process */
	AMOUNTS_CPU(STAT_AMOUNT)
	AMOUNTS_CPU_PARTS(STAT_AMOUNT)
	STAT_CORES_MEAN, /* over the run; of a node and of a process over its own time */
	STAT_CORES_P50,
	STAT_CORES_P95,
	STAT_CORES_PEAK,
	STAT_CORES_PEAK_AT,
	STAT_CORES_ONE_PEAK,
	STAT_MEMORY_PEAK, /* the largest that is known */
	LEVELS(STAT_LEVEL)
	AMOUNTS_STORAGE(STAT_AMOUNT)
	AMOUNTS_CALLS(STAT_AMOUNT)
	STAT_READ_RATE_PEAK,
	STAT_WRITE_RATE_PEAK,
	AMOUNTS_MAJOR(STAT_AMOUNT)
	AMOUNTS_MINOR(STAT_AMOUNT)
	AMOUNTS_SWITCHES(STAT_AMOUNT)
	STAT_GPU_MEMORY_PEAK, /* of its processes; of nodes and the run of the job's devices */
	STAT_GPU_UTIL_MEAN,
	STAT_GPU_UTIL_MAX,
	STAT_GPU_MEM_UTIL_MEAN, /* of devices: nodes and the run */
	STAT_GPU_MEM_UTIL_MAX,
	STAT_GPU_POWER_MEAN,
	STAT_GPU_POWER_MAX,
	STAT_GPU_ENERGY,
	STAT_ENERGY,		 /* node energy: nodes and the run */
	STAT_NODE_CPU_USER_MEAN, /* of the whole machine, of 1: nodes and the run (T3) */
	STAT_NODE_CPU_IDLE_MEAN,
	NR_STATS
};
/* clang-format on */

struct stats_column {
	const char *name;  /* for programs: "rss_peak_bytes" */
	const char *title; /* for people: "RSS peak" */
	const char *help;  /* one sentence */
	enum metric_unit unit;
	bool per_second;
	bool whole;				/* an integer */
	bool moment;				/* a time of the run */
	bool of_processes, of_groups, of_nodes; /* where it has a meaning */
};

extern const struct stats_column stats_column[NR_STATS];

enum stats_level {
	STATS_RUN,
	STATS_NODE,
	STATS_GROUP,
	STATS_USER,
	STATS_PHASE,
	STATS_PROCESS,
	NR_STATS_LEVELS
};

struct stats_row {
	char *name;	  /* host, group, user name (or UID), command name; escaped for people */
	uint32_t node;	  /* of processes and nodes */
	uint32_t process; /* index in the process table */
	double value[NR_STATS];
};

struct stats {
	struct stats_row *row[NR_STATS_LEVELS];
	size_t nr[NR_STATS_LEVELS];
};

/* What summary_read_with_courses() found of a run. */
struct stats_input {
	const struct run *run;
	const struct summary *summary;
	const struct process_table *processes; /* in any order */
	const struct courses *courses;
};

/* Without GPUs nothing more is read. */
int stats_read(const struct stats_input *in, const struct progress *progress, struct stats **ret,
	struct buf *reterr);
struct stats *stats_free(struct stats *s);
/* While recordings are read for other purposes, too: 1 and a guest for the tour, or 0 where none is needed;
 * when that is over, the statistics. */
struct stats_reading;
int stats_guest(const struct stats_input *in, struct stats_reading **ret, struct tour_guest *ret_guest);
int stats_finish(struct stats_reading *r, struct stats **ret);
struct stats_reading *stats_reading_free(struct stats_reading *r);
/* What the summary alone tells of the whole; it has no name. */
void stats_of_summary(const struct summary *s, struct stats_row *ret);
#endif
