/* Processes and users over time, found while the accounts of a run's recordings are made (query/ledger): what
 * statistics tell of them. Memory grows with the processes, not with the length of the recordings. */
#ifndef QUERY_COURSES_H
#define QUERY_COURSES_H

#include "query/live_processes.h"
#include "query/process_table.h"
#include "query/tracker.h"

/* One process; times are its recording's. */
struct process_course {
	uint64_t samples;
	double mean[NR_MEMORY_LEVELS], peak[NR_MEMORY_LEVELS],
		peak_at[NR_MEMORY_LEVELS]; /* NAN: never read */
	double cores_peak, cores_peak_at;
	bool sampled;
};

/* What the processes of a user held and used. */
struct course_user {
	double uid;	 /* NAN: of those that never said, and of those beyond COURSE_USERS_MOST */
	char *name;	 /* escaped; NULL: no recording has one */
	size_t named_by; /* the first recording that has */
	struct tracker tracker;
};

#define COURSE_USERS_MOST 1024

struct course_node {
	uint64_t *group_samples; /* by group of the recording's summary */
	unsigned nr_groups;
	double cpu_user_s, cpu_idle_s, cpu_all_s; /* of the machine; NAN */
	bool has_gpus;				  /* there were some, or processes on some */
};

/* Of a run. */
struct courses;
int courses_new(const struct run *run, int64_t interval_ns, struct courses **ret); /* -ENOMEM */
struct courses *courses_free(struct courses *all);
/* When all recordings were read. -ENOMEM */
int courses_finish(struct courses *all);
const struct course_node *courses_node(const struct courses *all, size_t node);
/* NULL: no process of it was seen. */
const struct course_user *courses_user(const struct courses *all, double uid);
/* A user of which no process was there at any tick. */
const struct tracker *courses_nobody(const struct courses *all);

/* One recording, while its table of processes is filled. */
struct course_reading;
int course_open(struct courses *all, uint32_t node, int64_t offset_ns, struct live_processes *live,
	struct course_reading **ret);
void course_meta(struct course_reading *c);
void course_schema(struct course_reading *c);
/* The process in this row of the table was described: it is there from now on. */
int course_bind(struct course_reading *c, uint32_t at, struct process_row *row);
int course_gone(struct course_reading *c, uint32_t at, struct process_row *row, int64_t time_ns);
void course_lost(struct course_reading *c, struct process_row *row);
/* After the processes of a tick were read; the index tells the rows of the table by their ids. */
int course_tick(struct course_reading *c, struct process_row *row, const struct idmap *index);
/* The recording was read, by this of several threads; its rows are whole. */
int course_finish(struct course_reading *c, unsigned worker, struct process_row *row, size_t nr);
struct course_reading *course_close(struct course_reading *c);
#endif
