/* Remote write 1.0: samples as Prometheus, VictoriaMetrics, Mimir and Thanos take them. */
#ifndef PUSH_PROMETHEUS_WRITE_H
#define PUSH_PROMETHEUS_WRITE_H

#include "push/prometheus_series.h"

struct prometheus_sample {
	struct prometheus_series *series;
	int64_t ms;
	double value;
	size_t at; /* its place among those that came: of one time the later counts */
};

/* By series and time, one for each time; how many stay. */
size_t prometheus_sort(struct prometheus_sample *sample, size_t nr);
/* The message (a prompb.WriteRequest) of samples in this order, not compressed. */
void prometheus_encode(
	struct buf *out, const struct prometheus_all *a, const struct prometheus_sample *sample, size_t nr);

enum prometheus_refusal {
	PROMETHEUS_OTHER,
	PROMETHEUS_OUT_OF_ORDER, /* the series has later ones, or another of that time */
	PROMETHEUS_TOO_OLD,	 /* for the server, whatever the series has */
};
/* What a server means that answers so. */
enum prometheus_refusal prometheus_refusal(long status, const char *words);
/* A sample of this bit pattern says that the series has ended. */
double prometheus_stale(void);
#endif
