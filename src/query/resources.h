/* What a run used on the whole, under the names of pytyche's ResourceSummary, as its reader computes it from
 * the rows of hw_metrics.csv, hw_dmon.csv and cpu_metrics.csv: each row counts once, with the digits that
 * these files have. */
#ifndef QUERY_RESOURCES_H
#define QUERY_RESOURCES_H

#include "query/tables.h"

struct resource_mean {
	double sum, most;
	uint64_t nr;
};

struct resources {
	struct resource_mean gpu_util, vram_mb, watts, mem_util, cpu_user, cpu_idle;
	double jax_peak_mb; /* 0: the job did not report it */
};

/* A row each; NAN: not known. A row of which a needed value is not known does not count. */
void resources_gpu(struct resources *r, double util_percent, double used_mib, double watts);
void resources_memory(struct resources *r, double util_percent);
void resources_cpu(struct resources *r, double user_percent, double idle_percent);
/* KEY=VALUE of a mark, NULs between: jax_peak_bytes_mb, or jax_peak_bytes. */
void resources_mark(struct resources *r, const char *data, size_t len);

/* The names, and the numbers rounded to a tenth. False: not known. */
#define NR_RESOURCES 10
bool resources_number(const struct resources *r, unsigned i, const char **ret_name, double *ret);

/* A batch of the tables "gpu" or "cpu"; others are passed over. */
typedef struct texts resources_texts(const void *arg, size_t table, size_t field);
void resources_batch(struct resources *r, const struct data_table *t, const struct data_table_batch *b,
	const void *arg, resources_texts *texts);
/* Of whole recordings; what marks say is not in it. */
int resources_read(const struct run *run, struct resources *ret, struct buf *reterr);
#endif
