/* What Prometheus calls a series: the name of its family and its labels, which together are distinct. Names
 * are those of exports (export/openmetrics_names.h). */
#ifndef PUSH_PROMETHEUS_SERIES_H
#define PUSH_PROMETHEUS_SERIES_H

#include "base/idmap.h"
#include "export/openmetrics_names.h"
#include "push/sink.h"

struct prometheus_label {
	char *name, *value;
};

struct prometheus_family {
	char *table, *metric, *help; /* which metric of ours it is */
	enum metric_unit unit;
	enum metric_kind kind;
	bool per_second;
	bool counter;
	const char *name; /* "tacho_net_rx_bytes" */
	char *sample;	  /* "tacho_net_rx_bytes_total" */
	char unit_text[48];
};

struct prometheus_all;

struct prometheus_series {		/* push_series.own */
	struct prometheus_all *all;	/* NULL: that is closed */
	size_t refs;			/* of push_series */
	uint64_t number;		/* they count as they come */
	size_t family;			/* its number */
	struct prometheus_label *label; /* sorted by name; `host` is one of them */
	size_t nr_labels;
	unsigned node;
	/* The last value that was sent, or is shown. */
	bool there;
	int64_t last_ms, step;
	struct push_point last;
	/* Of remote write. */
	bool sure;	  /* this pusher had a sample of it taken */
	bool closed;	  /* the server refused its last one as too early */
	int64_t tried_ms; /* up to there a request went unanswered */
};

struct prometheus_all {
	struct names names;
	struct prometheus_family *family;
	size_t nr_families;
	struct prometheus_label *label; /* of all series */
	size_t nr_labels;
	bool target, own_instance;
	struct prometheus_series **series;
	size_t nr;
	uint64_t made;
	struct idmap by_hash; /* numbers of series */
	size_t purge_at;
};

/* -EINVAL: a label of the user's is one of ours; reterr says which. */
int prometheus_all_init(struct prometheus_all *a, const struct push *p, bool target, struct buf *reterr);
void prometheus_all_release(struct prometheus_all *a);
/* The series of a point's series, which is a new one when it was not there; NULL: no memory. */
struct prometheus_series *prometheus_series_of(struct prometheus_all *a, struct push_series *s);
void prometheus_series_forget(void *own);
/* Drops those that no push_series has any more, and whose last value is before that time. The numbers of the
 * others change. */
int prometheus_purge(struct prometheus_all *a, int64_t before_ms);
/* "2026-11-18T19:30:00.123Z": the milliseconds of Prometheus. */
void prometheus_start_text(char *out, size_t size, int64_t ns);
/* `name{label="value"}`. */
void prometheus_series_text(
	struct buf *out, const struct prometheus_all *a, const struct prometheus_series *s);
#endif
