/* The pieces of query/stats: not for others. What only another look at the recordings tells: each process
 * over time, what the processes of a user held at once, memory and power of the job's GPUs, the CPUs of the
 * node. */
#ifndef QUERY_STATS_PASS_H
#define QUERY_STATS_PASS_H

#include "query/stats.h"
#include "query/tracker.h"

struct stats_pass_process {
	uint64_t samples;
	double mean[NR_MEMORY_LEVELS], peak[NR_MEMORY_LEVELS],
		peak_at[NR_MEMORY_LEVELS]; /* NAN: never read; times are the run's */
	double cores_peak, cores_peak_at;
	double gpu_memory_peak;
};

struct stats_pass_user {
	double uid;	 /* first: they are found by it. NAN: theirs who never said */
	char *name;	 /* escaped; a number where no recording has a name */
	size_t named_by; /* the first recording that has */
	struct tracker tracker;
};

struct stats_pass_node {
	double offset_s;			  /* its start after the run's */
	double cpu_user_s, cpu_idle_s, cpu_all_s; /* of the machine; NAN */
	double gpu_memory_peak, gpu_power_peak;	  /* of the sum over the job's devices */
};

struct stats_found {
	struct stats_pass_process *process; /* by row of the process table */
	struct stats_pass_user *user;	    /* by UID */
	size_t nr_users;
	bool users_left_out; /* the last one is several */
	struct stats_pass_node *node;
	uint64_t *group_samples; /* by group of the summary */
	/* Peaks of sums over nodes: memory and power of the job's devices, memory of each user's processes,
	 * of each group's. NAN: there was nothing. */
	double *sum_peak;
};

#define SUM_GPU_MEMORY 0
#define SUM_GPU_POWER 1
#define SUM_USERS 2 /* the first; the groups follow the users */

/* A guest for the tour; when that is over, *ret_found has all of it. */
struct stats_pass;
int stats_pass_guest(const struct run *run, const struct summary *summary,
	const struct process_table *processes, struct stats_found *ret_found, struct stats_pass **ret,
	struct tour_guest *ret_guest);
int stats_pass_finish(struct stats_pass *w);
struct stats_pass *stats_pass_free(struct stats_pass *w);
void stats_pass_release(struct stats_found *w);

/* The user of a process: an index. */
size_t stats_pass_user_of(const struct stats_found *w, const struct process_row *row);
/* The groups of a process, one after the other: indices in the summary; *at begins with 0. Negative: no more.
 */
int stats_pass_group_next(const struct summary *s, const struct process_row *row, size_t *at);
/* The summary of one recording of the run. */
const struct summary *stats_node_summary(const struct summary *s, size_t node);
#endif
