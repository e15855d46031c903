/* A run in numbers: what `tacho show` prints, what `tacho show --json` gives to programs.
 *
 * Every number is a figure: it holds, or it carries the reason why it does not. The rows in summary_row[]
 * give each its place in the JSON, its unit and how it is combined over nodes; nothing else lists them.
 *
 * The nodes of a run and the groups of its processes are summaries themselves: of a part. */
#ifndef QUERY_SUMMARY_H
#define QUERY_SUMMARY_H

#include "base/owned.h"
#include "query/attendance.h"
#include "query/clock.h"
#include "query/ledger.h"
#include "query/phases.h"
#include "query/process_table.h"
#include "query/run.h"
#include "query/tracker.h"

#include <math.h>

struct figure {
	double value;
	const char *
		why; /* NULL: the value holds. "": there is no such thing (the signal of a job that exited) */
};

/* clang-format off */
#define FIGURE_AMOUNT(id, ...) FIG_##id,
#define FIGURES_VIEW(id) FIG_##id, FIG_##id##_AT,
#define FIGURES_MEMORY(id) FIG_##id, FIG_##id##_AT,
#define FIGURES_COUNT(id) FIG_##id,
#define FIGURE_LEVEL(id, name, kind, ...) FIGURES_##kind(id)
#define FIGURE_SHARED(id, ...) FIG_##id, FIG_##id##_AT, FIG_##id##_ESTIMATED,
#define FIGURE_ONE(id, ...) FIG_ONE_##id,
enum figure_id { /* in the order of the JSON */
	FIG_WALL,
	FIG_EXIT_CODE,
	FIG_EXIT_SIGNAL,
	FIG_INTERVAL,
	FIG_TICKS,
	FIG_MISSED,
	FIG_LATE,
	FIG_SKIPPED,
	FIG_REDACTED,
	AMOUNTS_CPU_PARTS(FIGURE_AMOUNT)
	AMOUNTS_CPU(FIGURE_AMOUNT)
	FIG_MEAN_CORES,
	FIG_PEAK_CORES,
	FIG_PEAK_CORES_AT,
	FIG_PEAK_WINDOW,
	FIG_OBSERVED,
	FIG_COUNTED,
	FIG_CPUS,
	FIG_CPU_OF_ALLOCATION,
	FIG_CPU_OF_NODE,
	FIG_MEMORY,
	LEVELS_RSS(FIGURE_LEVEL)
	LEVELS_SHARED(FIGURE_SHARED)
	LEVELS_MEMORY(FIGURE_LEVEL)
	LEVELS_VIEWS(FIGURE_ONE)
	FIG_HWM,
	FIG_TREE_CGROUP_PEAK,
	FIG_MEMORY_TOTAL,
	FIG_MEMORY_OF_ALLOCATION,
	FIG_MEMORY_OF_NODE,
	AMOUNTS_STORAGE(FIGURE_AMOUNT)
	AMOUNTS_CALLS(FIGURE_AMOUNT)
	AMOUNTS_MAJOR(FIGURE_AMOUNT)
	AMOUNTS_MINOR(FIGURE_AMOUNT)
	AMOUNTS_SWITCHES(FIGURE_AMOUNT)
	FIG_SEEN,
	LEVELS_ALIVE(FIGURE_LEVEL)
	FIG_UNSAMPLED,
	FIG_ACTIVE,
	FIG_UNFINISHED,
	LEVELS_COUNTS(FIGURE_LEVEL)
	FIG_LIMIT_CPUS,
	FIG_LIMIT_MEMORY,
	FIG_MACHINE_CPUS,
	FIG_MACHINE_MEMORY,
	FIG_NET_RX_BYTES,
	FIG_NET_TX_BYTES,
	FIG_NET_RX_PACKETS,
	FIG_NET_TX_PACKETS,
	FIG_IB_RX_BYTES,
	FIG_IB_TX_BYTES,
	FIG_IB_RX_PACKETS,
	FIG_IB_TX_PACKETS,
	FIG_DISK_READ,
	FIG_DISK_WRITTEN,
	FIG_ENERGY,
	FIG_POWER,
	FIG_GPU_ENERGY,
	FIG_JOB_GPU_ENERGY,
	FIG_MEMBW_READ,
	FIG_MEMBW_WRITE,
	FIG_MEMBW_TOTAL,
	FIG_MEMBW_MEAN,
	FIG_MEMBW_PEAK,
	FIG_CGROUP_PEAK,
	FIG_OOM_KILLS,
	FIG_THROTTLED,
	FIG_SELF_CPU,
	FIG_SELF_PERCENT,
	FIG_SELF_RSS,
	NR_FIGURES
};
/* clang-format on */

enum combine { /* several nodes to one */
	COMBINE_SUM,
	COMBINE_MAX,
	COMBINE_SAME,  /* one value if all agree */
	COMBINE_HOSTS, /* sum over hosts: two recordings of one machine share its CPUs. All must be known */
	COMBINE_DONE, /* sum over hosts of what they did, as far as known: two recordings saw the same, unless
		       * they are of a run (of_run) and one began when the other had ended */
	COMBINE_OWN,  /* computed for the whole run, not from the nodes' values */
};

struct summary_row {
	const char *group; /* object in the JSON; NULL: at the top */
	const char *name;
	bool whole; /* an integer */
	enum combine combine;
	bool of_groups; /* has a meaning for a group of processes, too */
	bool matters; /* people want to hear of it when two runs differ in it; the rest is for `compare --all`
		       */
};

extern const struct summary_row summary_row[NR_FIGURES];

enum text_id { /* words that stand beside the figures; NULL when there are none */
	TEXT_MEMORY_VIEW,
	TEXT_CPUS_SOURCE,
	TEXT_MEMORY_SOURCE,
	TEXT_ENERGY_SOURCE,
	TEXT_MEMBW_SOURCE,
	TEXT_CGROUP,
	TEXT_SCHEDULER,
	TEXT_JOB,
	TEXT_FOUND_BY,
	TEXT_JOB_NODES,
	TEXT_REDACTION,
	TEXT_MESSAGE,
	TEXT_TARGET,
	NR_TEXTS
};

struct summary_text_row {
	const char *group, *name; /* group NULL: of the recording itself */
	const char *meta;	  /* its key in the recording's metadata; NULL: made otherwise */
	const char *why;	  /* when there is none; NULL: as that of the figure */
	int figure;		  /* -1: none */
};

extern const struct summary_text_row summary_text_row[NR_TEXTS];

struct summary_fact { /* of the hardware or the environment */
	char *name, *value;
};

/* An event that the processor counted for the job, or what a formula makes of some. */
struct summary_counter {
	char *name;	  /* without "perf." */
	char *expression; /* over names with "perf."; NULL: it is an event */
	enum metric_unit unit;
	bool per_second;
	struct figure value;
	struct figure running_share; /* of the time in which it should have been counted; of 1 */
	double enabled_s, running_s; /* of an event */
};

/* What was counted of it in a phase of that summary, or what its formula makes of what was. NAN: not known.
 */
struct summary;
struct phase;
double counter_in_phase(const struct summary *s, const struct summary_counter *c, const struct phase *p);

enum gpu_figure_id {
	GPU_FIG_UTIL_MEAN,
	GPU_FIG_UTIL_MAX,
	GPU_FIG_MEM_UTIL_MEAN,
	GPU_FIG_MEM_UTIL_MAX,
	GPU_FIG_MEMORY_PEAK,
	GPU_FIG_MEMORY_TOTAL,
	GPU_FIG_POWER_MEAN,
	GPU_FIG_POWER_MAX,
	GPU_FIG_ENERGY,
	GPU_FIG_JOB_MEMORY_PEAK,
	GPU_FIG_JOB_UTIL_MEAN,
	GPU_FIG_JOB_BUSY,
	GPU_FIG_POWER_LIMIT,
	GPU_FIG_TEMPERATURE_MAX,
	GPU_FIG_CLOCK_MEAN,
	GPU_FIG_CLOCK_MAX,
	GPU_FIG_ENCODER_MEAN,
	GPU_FIG_DECODER_MEAN,
	GPU_FIG_THROTTLED,
	GPU_FIG_THROTTLED_POWER,
	GPU_FIG_THROTTLED_THERMAL,
	GPU_FIG_ECC_CORRECTED,
	GPU_FIG_ECC_UNCORRECTED,
	GPU_FIG_OBSERVED,
	GPU_FIG_LOST_AT,
	NR_GPU_FIGURES
};

struct summary_gpu_row {
	const char *name;
	bool whole;
	const char *of_group; /* its name in a group's list; NULL: not told there */
};

extern const struct summary_gpu_row summary_gpu_row[NR_GPU_FIGURES];

enum gpu_text_id {
	GPU_TEXT_HOST,
	GPU_TEXT_INSTANCE, /* "nvidia-0", "nvidia-0/mig-1" */
	GPU_TEXT_VENDOR,
	GPU_TEXT_NAME, /* the model */
	GPU_TEXT_UUID,
	GPU_TEXT_PCI,
	GPU_TEXT_PARENT,	    /* the instance that it is a slice of */
	GPU_TEXT_COUNTED_ELSEWHERE, /* why it is not added to the others */
	GPU_TEXT_JOB,		    /* "yes", "no", "unclaimed" */
	GPU_TEXT_JOB_BY,
	GPU_TEXT_ENERGY_SOURCE, /* "counter", "power over time" */
	GPU_TEXT_LOST,		/* why it told nothing any more */
	NR_GPU_TEXTS
};

struct summary_gpu {
	int64_t index;		  /* as the maker's tools count; -1: not known */
	char *text[NR_GPU_TEXTS]; /* NULL: there is none */
	struct figure figure[NR_GPU_FIGURES];
};

/* How something was spread over the time in which there were processes; NAN: not known. */
struct summary_over {
	double mean, p50, p95;
};

struct summary {
	char *name, *kind, *target;	  /* of a group; NULL for a recording or a run */
	bool own;			  /* without what its members' children used */
	char *path, *host, *mode, *ended; /* "" when unknown; host NULL when several differ */
	char *command;			  /* argv, NUL-joined; NULL when several differ */
	size_t command_len;
	int64_t start_wall_ns; /* 0: unknown */
	struct figure figure[NR_FIGURES];
	char *text[NR_TEXTS];
	struct summary_fact *hardware, *environment; /* of several nodes: what they have in common */
	size_t nr_hardware, nr_environment;
	const char *cpu_source; /* NULL: unknown */
	bool cpu_lower_bound, io_lower_bound, memory_lower_bound, unsampled_is_upper_bound, complete;
	bool end_missing; /* peaks of cores and USS are those of the ticks that could be written */
	double lost_bytes;
	struct spark cpu_shape, memory_shape;
	struct summary_over over[NR_OVER]; /* of a group on one of several nodes: not known */
	double rate_peak[NR_FLOWS];	   /* bytes/s from and to storage; NAN: not known */
	char **note;			   /* sentences for people, without full stop */
	size_t nr_notes;
	size_t nr_alarms;		 /* of them, the first so many must not be overlooked */
	struct owned kept;		 /* texts that figures point at */
	struct summary_counter *counter; /* events, then what is made of them */
	size_t nr_counters;
	bool counters_user_only; /* nothing was counted in the kernel */
	struct summary_gpu *gpu; /* slices behind their device; of a group, those that it used */
	size_t nr_gpus;
	const char *gpus_why; /* when there are none; NULL: not asked for */
	bool of_run; /* of the directory of a run: a second recording of a node came after the first */
	struct summary *node; /* of several recordings: each of them; NULL when this is of one */
	size_t nr_nodes;
	struct clock_found clock; /* of a recording: what was measured of its clock */
	struct attendance
		*attendance;   /* of a run with run.json: who is missing, late, ended early; else NULL */
	struct summary *group; /* in the order of the targets */
	size_t nr_groups;
	struct phases *phases; /* that the job told of; NULL: none */
	char **told;	       /* metrics of the job's own numbers: "app.loss" */
	size_t nr_told;
};

/* Reads the recordings of the run once, all at the same pace. */
int summary_read(const struct run *run, struct summary **ret, struct buf *reterr);
/* The same, and the table of processes (query/process_table.h) without another reading. */
int summary_read_with_processes(const struct run *run, struct summary **ret,
	struct process_table **ret_processes, struct buf *reterr);
/* And what each process and each user did over time (query/courses.h), for statistics. */
struct courses;
int summary_read_with_courses(const struct run *run, struct summary **ret,
	struct process_table **ret_processes, struct courses **ret_courses, struct buf *reterr);
struct summary *summary_free(struct summary *s);

/* Above that, the counters' clock has seen more than the CPU time that was used. */
#define COUNTED_ALL_PERCENT 102.0

static inline bool has_figure(const struct summary *s, enum figure_id id)
{
	return !s->figure[id].why;
}

/* Which figure answers "how much memory", FIG_MEMORY: by memory_answer(). Where nothing is known of
 * processes, the peak of their control group, which has cached files in it ("cgroup"). */
enum figure_id summary_memory(const struct summary *s);
const char *summary_memory_view(const struct summary *s);

/* The job's processes used it; that, or it was given to the job. */
bool summary_gpu_is_used(const struct summary_gpu *gpu);
bool summary_gpu_is_of_job(const struct summary_gpu *gpu);
/* It gave some value at some time. */
bool summary_gpu_was_read(const struct summary_gpu *gpu);

/* For those who fill summaries (query/combine.c) and statistics. */
void figure_set(struct summary *s, enum figure_id id, double value);
void figure_unset(struct summary *s, enum figure_id id, const char *why); /* why is kept as it is */
/* Quantiles are within a hundredth of the value; nothing is above `most` (NAN: not known). */
struct summary_over summary_over_of(const struct spread *spread, double most);
int summary_note(struct summary *s, const char *fmt, ...) _printf_(2, 3);
int summary_fact_add(struct summary_fact **list, size_t *nr, const char *name, const char *value);
#endif
