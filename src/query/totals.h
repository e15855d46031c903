/* What the node did in the course of a recording: traffic, disks, energy, and the job's control group. */
#ifndef QUERY_TOTALS_H
#define QUERY_TOTALS_H

#include "query/counter_sum.h"
#include "query/meter.h"

enum total {
	TOTAL_NET_RX_BYTES,
	TOTAL_NET_TX_BYTES,
	TOTAL_NET_RX_PACKETS,
	TOTAL_NET_TX_PACKETS,
	TOTAL_IB_RX_BYTES,
	TOTAL_IB_TX_BYTES,
	TOTAL_IB_RX_PACKETS,
	TOTAL_IB_TX_PACKETS,
	TOTAL_DISK_READ,
	TOTAL_DISK_WRITTEN,
	TOTAL_ENERGY,
	TOTAL_POWER,
	TOTAL_CGROUP_PEAK,
	TOTAL_CGROUP_MEMORY,
	TOTAL_CGROUP_OOM_KILLS,
	TOTAL_CGROUP_THROTTLED,
	TOTAL_MEMBW_READ,
	TOTAL_MEMBW_WRITE,
	TOTAL_MEMBW_BOTH,
	NR_TOTALS
};

struct node_totals {
	struct growth growth[NR_TOTALS];
	struct meter bandwidth; /* of memory, both ways */
	int cgroup_set;
	char *incomplete; /* what of the memory bandwidth is missing; NULL: nothing */
	char *cgroup;	  /* path of the job's own; NULL: not known */
};

void totals_init(struct node_totals *t);
void totals_release(struct node_totals *t);
void totals_bind(struct node_totals *t, const struct schema *schema);
int totals_instance(struct node_totals *t, const struct store_record *record);
int totals_tick(struct node_totals *t, const struct walk *walk);

const char *total_metric(enum total which);
#endif
