/* The pieces of query/stats: not for others. Which users a run has; and what only another look at the
 * recordings tells, because which devices are the job's is known at the end: memory and power of these
 * together at each tick, and what of the memory each process held. */
#ifndef QUERY_STATS_GPUS_H
#define QUERY_STATS_GPUS_H

#include "query/stats.h"

struct stats_users {
	double *uid; /* rising; NAN: of those that never said */
	size_t nr;
	bool left_out; /* the last one is several */
};

/* The user of a process: an index. */
size_t stats_user_of(const struct stats_users *u, const struct process_row *row);
/* The groups of a process, one after the other: indices in the summary; *at begins with 0. Negative: no more.
 */
int stats_group_next(const struct summary *s, const struct process_row *row, size_t *at);
/* The summary of one recording of the run, and how long after the run it began. */
const struct summary *stats_node_summary(const struct summary *s, size_t node);
double stats_node_offset(const struct summary *s, size_t node);

/* NAN: there was nothing. */
struct stats_gpus_found {
	double *process;		  /* by row of the process table: its most memory */
	double *node_memory, *node_power; /* of the sum over the job's devices, by recording */
	/* Peaks of sums over nodes: memory and power of the job's devices, memory of each user's processes,
	 * of each group's. */
	double *sum;
};

#define SUM_GPU_MEMORY 0
#define SUM_GPU_POWER 1
#define SUM_USERS 2 /* the first; the groups follow the users */

/* A guest for the tour; when that is over, *ret_found has all of it. */
struct stats_gpus;
int stats_gpus_guest(const struct run *run, const struct summary *summary,
	const struct process_table *processes, const struct stats_users *users,
	struct stats_gpus_found *found, struct stats_gpus **ret, struct tour_guest *ret_guest);
int stats_gpus_finish(struct stats_gpus *w);
struct stats_gpus *stats_gpus_free(struct stats_gpus *w);
void stats_gpus_release(struct stats_gpus_found *found);

/* Among the GPUs of a summary: the job's, and of a device of which slices are the job's only those. */
bool stats_gpu_counts(const struct summary *s, size_t gpu);
#endif
