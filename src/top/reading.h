/* One recording as `top` sees it while it is read: the numbers of each tick, its processes, its events.
 *
 * The numbers are those of a series (query/series.h), which has them when the tick after is known; the
 * processes are rows of the same walk. Of the last ticks the tables of processes are kept, of the last
 * thousands the numbers, of all the events. */
#ifndef TOP_READING_H
#define TOP_READING_H

#include "base/idmap.h"
#include "query/events.h"
#include "query/series.h"
#include "query/walk.h"
#include "top/values.h"

struct who { /* a process, as long as some tick that is kept knows it */
	uint32_t id, refs;
	int64_t pid, ppid, uid;
	double start_s;
	bool late; /* it lived before it was recorded */
	char *name, *command, *user;
	size_t name_len, command_len; /* command: words parted by NULs; its length 0: not known */
};

struct top_process {
	struct who *who;
	double value[NR_OF_PROCESS]; /* NAN: not known */
	uint64_t groups;
};

struct top_gpu {
	char name[32];
	double value[NR_OF_GPU];
};

#define TOP_GPUS_MOST 32

struct snapshot { /* the processes of one tick */
	int64_t time_ns;
	struct top_process *process;
	uint32_t nr, cap;
	struct top_gpu gpu[TOP_GPUS_MOST];
	unsigned nr_gpus;
};

struct top_point { /* the numbers of one tick */
	int64_t time_ns;
	double value[NR_TOP_VALUES];
};

/* Memory as the answer to "how much": PSS, else RSS. */
static inline double point_memory(const struct top_point *p)
{
	return p->value[TOP_PSS] == p->value[TOP_PSS] ? p->value[TOP_PSS] : p->value[TOP_RSS];
}

#define SNAPSHOTS 16
#define SNAPSHOT_BYTES ((size_t)24 << 20) /* of all of a reading's */
#define OVERVIEW 256

enum reading_state { READING_ON, READING_WAITS, READING_ENDED };

struct reading_rows;
struct top_parts;

struct top_reading {
	struct walk_observer observer; /* first */
	char *path, *group;	       /* group NULL: of all */
	struct series *series;
	struct walk *walk;
	enum top_value of_column[SERIES_MAX];
	bool has[NR_TOP_VALUES]; /* the recording has it */
	struct reading_rows *rows;
	struct top_parts *parts;  /* its groups of processes; NULL: it has none */
	struct run_events events; /* times on the recording's clock */
	struct gathering *gathering;
	struct idmap who_by_id;
	struct who **who;
	uint32_t nr_who, cap_who;
	struct snapshot snapshot[SNAPSHOTS];
	unsigned nr_snapshots, last_snapshot;
	int64_t from_ns;	/* the first tick that was asked for */
	int64_t tables_from_ns; /* tables of earlier ticks are not wanted */
	bool tables, wants_parts;
	struct top_point *point; /* a ring */
	size_t nr_points, cap_points, most_points, first_point;
	uint64_t ticks;
	/* All of it from its first tick on, in few steps. */
	struct overview {
		float cores, memory;
	} overview[OVERVIEW];
	double overview_step_s; /* 0: nothing yet */
	enum reading_state state;
	bool complete, rests; /* rests: files are not kept open while nothing is read */
	int error;	      /* negative errno: it cannot be read on */
	double peak[2];	      /* of the memory, PSS and RSS, as the end of the recording has it; NAN */
	int status;	      /* of the job, as of waitpid(); -1: it is not said */
};

struct reading_options {
	const char *group; /* NULL: all */
	int64_t from_ns;   /* 0: the first tick; INT64_MAX: the last that there is */
	int64_t tables_from_ns;
	bool tables, follow, parts, rests;
	bool near;     /* soon: what only the time before could tell is not known */
	size_t points; /* at most so many are kept */
};

/* -ENODATA: it has no schema yet. */
int reading_open(const char *path, const struct reading_options *options, struct top_reading **ret,
	struct buf *reterr);
struct top_reading *reading_close(struct top_reading *r);
/* Reads one tick: 1; 0: no more, and `state` says whether for now; negative errno, which stays. */
int reading_step(struct top_reading *r);
/* The tick at that time or the last before it; NULL: none that is kept. */
const struct top_point *reading_at(const struct top_reading *r, int64_t time_ns);
const struct top_point *reading_last(const struct top_reading *r);
const struct top_point *reading_point(const struct top_reading *r, size_t index); /* 0: the oldest */
/* Memory (TOP_PSS) is RSS where PSS is not known. Of a group, if not negative, there are cores and memory. */
double reading_value(const struct top_reading *r, size_t index, enum top_value which, int group);
size_t reading_index(const struct top_reading *r, int64_t time_ns); /* of that tick; nr_points: none */
const struct snapshot *reading_snapshot(const struct top_reading *r, int64_t time_ns);
const struct meta *reading_meta(const struct top_reading *r);
/* A mark that was set now, which the recording's file does not have. -ENOMEM. */
int reading_mark(struct top_reading *r, double time_s, const char *label);
/* How much of the file was read, of 1. */
double reading_share(const struct top_reading *r);
double reading_interval(const struct top_reading *r); /* seconds between two ticks */
#endif
