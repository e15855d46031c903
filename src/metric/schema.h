/* What one recording holds: its sets of columns. Made by the engine from the chosen rows, written into the
 * file, and rebuilt from the file by the reader, so that a reader does not need the metric tables of the
 * version that recorded.
 *
 * A set is what one collector records: one domain, some metrics, and a table of rows (instances). */
#ifndef METRIC_SCHEMA_H
#define METRIC_SCHEMA_H

#include "metric/metric.h"

enum availability {
	AVAILABLE,
	ABSENT,	   /* this machine or kernel has no such thing */
	FORBIDDEN, /* it has, and we may not read it; `why` carries the remedy */
	FAILED,	   /* reading went wrong; `why` says how */
	NR_AVAILABILITY
};

struct schema_metric {
	char *name, *help, *panel; /* panel may be NULL */
	enum metric_kind kind;
	enum metric_fold fold;
	enum metric_unit unit;
	enum metric_tier tier;
	double scale;
	bool real; /* cells are doubles */
	enum availability availability;
	char *why; /* NULL when available */
};

struct schema_set {
	char *name, *summary;
	enum domain domain; /* NR_DOMAINS: one this version does not know; domain_name has its name */
	char *domain_name;
	uint32_t nr_metrics;
	/* Columns behind these that have no name yet: they get one when the job tells the first number. */
	uint32_t nr_spare;
	bool named_later; /* all of them, in the file */
	struct schema_metric *metric;
};

struct schema {
	uint32_t nr_sets;
	struct schema_set *set;
};

struct schema *schema_new(void);
struct schema *schema_free(struct schema *s); /* takes NULL, returns NULL */
/* Both copy their strings. The pointers returned are valid until the next addition of the same kind. */
struct schema_set *schema_add_set(
	struct schema *s, const char *name, const char *summary, const char *domain);
struct schema_metric *schema_add_metric(
	struct schema_set *set, const char *name, const char *help, const char *panel);
/* The next spare column of the set is a metric of this name from now on; pointers stay valid. -ENOSPC. */
int schema_name_metric(struct schema_set *set, const char *name, const char *help, enum metric_unit unit);
/* How its cells become numbers. */
struct scaling metric_scaling(const struct schema_metric *m);
int schema_metric_why(struct schema_metric *m, enum availability availability, const char *why);

const char *availability_name(enum availability a);
int availability_from_name(const char *name, size_t len);

/* A metric by name; false when the recording has none of that name. */
bool schema_find(const struct schema *s, const char *metric, uint32_t *ret_set, uint32_t *ret_col);
int schema_find_domain(const struct schema *s, enum domain domain); /* the first set of it, or -1 */
#endif
