/* GPUs over a recording: what each of them did, and how much of that was for the job and for each of its
 * groups.
 *
 * A device is known by the name of its instance: one that was lost and came back is the same. */
#ifndef QUERY_GPUS_H
#define QUERY_GPUS_H

#include "query/live_processes.h"
#include "query/meta.h"

enum gpu_course { /* metrics of a device that are followed */
	COURSE_UTIL,
	COURSE_MEM_UTIL,
	COURSE_ENCODER,
	COURSE_DECODER,
	COURSE_MEMORY_USED,
	COURSE_MEMORY_TOTAL,
	COURSE_POWER,
	COURSE_POWER_LIMIT,
	COURSE_ENERGY,
	COURSE_TEMPERATURE,
	COURSE_CLOCK_SM,
	COURSE_CLOCK_GRAPHICS,
	COURSE_THROTTLED_POWER,
	COURSE_THROTTLED_THERMAL,
	COURSE_THROTTLED_BOARD,
	COURSE_THROTTLED_RELIABILITY,
	COURSE_ECC_CORRECTED,
	COURSE_ECC_UNCORRECTED,
	NR_COURSES
};

struct course { /* in the metric's unit, and its unit x s */
	bool any, known;
	int64_t last, time_ns;
	double value; /* the last */
	double grown, integral, elapsed, greatest;
};

struct gpu_use { /* of one device, by the whole job or by one group */
	bool any, has_memory, has_util;
	bool counted; /* some of it as time on engines, which is exact, not as a share that the driver tells
		       */
	double memory_now, memory_peak; /* bytes */
	double util_now, util_last;	/* of 1 */
	double busy_s;			/* utilisation over time, and engine time */
};

/* More than any machine has; a slice counts as one. */
#define GPUS_MOST 256

struct gpu_track {
	char *name;	   /* of the instance */
	uint32_t row, id;  /* where it is, or was last */
	struct meta about; /* vendor, model, uuid… */
	int parent;	   /* the device that it is a slice of; -1: none */
	bool sliced;	   /* it has such parts */
	bool lives, lived; /* now; at the last tick */
	double observed_s; /* for which it was there */
	bool had_values;
	int64_t lost_ns; /* since when it is gone or tells nothing; -1: it does */
	char *told;	 /* why it tells nothing, as was said last; NULL: not said */
	struct course course[NR_COURSES];
	struct gpu_use use[ACCOUNTS_MOST];
};

struct gpu_column {
	int col; /* -1: not recorded */
	double scale;
};

/* The metric's column in this set. */
struct gpu_column gpu_column_in(const struct schema *schema, int set, const char *name);

struct gpus {
	int set, process_set; /* -1: not recorded */
	struct gpu_column column[NR_COURSES], memory, util, busy;
	struct gpu_track **device; /* in the order of coming */
	size_t nr, left_out;
	int64_t tick_ns;    /* of the last tick */
	struct gpu_client { /* what the walk does not say of a process on a device */
		uint32_t id;
		uint32_t device; /* index; beyond them: not followed */
		bool known;
		int64_t busy;
	} * client; /* by row */
	uint32_t nr_clients;
	char *assumed; /* why processes were taken for the job's; NULL: they are */
};

void gpus_init(struct gpus *g);
void gpus_release(struct gpus *g);
void gpus_bind(struct gpus *g, const struct schema *schema);
int gpus_instance(struct gpus *g, const struct store_record *record);
void gpus_gone(struct gpus *g, const struct store_record *record);
/* A reason was recorded. */
int gpus_told(struct gpus *g, const char *why);
bool gpu_is_lost(const struct gpu_track *d);
/* After the processes of the tick were read. */
void gpus_tick(struct gpus *g, const struct live_processes *live);

const char *course_metric(enum gpu_course which);
#endif
