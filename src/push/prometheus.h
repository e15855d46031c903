/* Prometheus' other ways: the last values, for those who ask and in a file (push/prometheus_last.c). */
#ifndef PUSH_PROMETHEUS_H
#define PUSH_PROMETHEUS_H

#include "push/prometheus_series.h"

struct prometheus_last;

/* By --listen, --textfile or both. */
int prometheus_last_new(
	struct push *p, struct prometheus_all *all, struct prometheus_last **ret, struct buf *reterr);
struct prometheus_last *prometheus_last_free(struct prometheus_last *l);
void prometheus_last_send(
	struct prometheus_last *l, const struct push_point *point, size_t nr, struct push_answer *ret);
/* Those who ask now and then shall see the last values too: LATER for as long as that may take. */
void prometheus_last_finish(struct prometheus_last *l, struct push_answer *ret);
void prometheus_last_where(const struct prometheus_last *l, struct buf *out);
#endif
