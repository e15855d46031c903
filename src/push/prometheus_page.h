/* The last values of all series as text, for those who ask (push/listen.h) and for files. */
#ifndef PUSH_PROMETHEUS_PAGE_H
#define PUSH_PROMETHEUS_PAGE_H

#include "push/prometheus_series.h"

/* Keeps the values of points that are newer. */
int prometheus_keep(struct prometheus_all *a, const struct push_point *point, size_t nr);
/* OpenMetrics, or the text format that came before it, which node_exporter reads from files. No times: the
 * values are those of now. What had no value lately is left out. */
void prometheus_page(struct buf *out, const struct prometheus_all *a, bool openmetrics);
#endif
