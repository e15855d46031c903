/* A piece of query/stats: what the job's GPUs hold and take at each tick of one recording, and what of it
 * each process holds. */
#ifndef QUERY_STATS_GPUS_H
#define QUERY_STATS_GPUS_H

#include "query/gpus.h"
#include "base/idmap.h"
#include "query/summary.h"
#include "store/store.h"

struct stats_gpus {
	int set, process_set; /* -1: not recorded */
	struct gpu_column used, power, memory;
	struct stats_gpu_occupant {
		uint32_t id;
		bool memory, power; /* it is one whose memory and power are the job's */
	} * occupant;		    /* by row */
	uint32_t nr_occupants;
	struct stats_gpu_client {
		uint32_t id, use; /* index of what its process uses */
		bool slice;
	} * client; /* by row */
	uint32_t nr_clients;
	struct stats_gpu_use {
		uint32_t process;     /* its id in the process set */
		double whole, slices; /* bytes, now */
		double memory;	      /* of both, what holds */
	} * use;
	uint32_t nr_uses, cap_uses;
	struct idmap use_of;	      /* process -> index */
	double memory_now, power_now; /* NAN: not known */
};

void stats_gpus_init(struct stats_gpus *g);
void stats_gpus_release(struct stats_gpus *g);
void stats_gpus_bind(struct stats_gpus *g, const struct schema *schema);
/* The summary is that of the recording. */
int stats_gpus_instance(struct stats_gpus *g, const struct store_record *record, const struct summary *s);
void stats_gpus_tick(struct stats_gpus *g, struct store_reader *reader);

/* Among the GPUs of a summary: the job's, and of a device of which slices are the job's only those. */
bool stats_gpu_counts(const struct summary *s, size_t gpu);
#endif
