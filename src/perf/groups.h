/* Groups of events with the formulas that make numbers of them, one text file per family of processors: see
 * share/events/README.md for the format. The files are in the binary; a folder named in TACHO_EVENTS comes
 * first. */
#ifndef PERF_GROUPS_H
#define PERF_GROUPS_H

#include "env/env.h"
#include "metric/metric.h"

enum { GROUP_EVENTS_MAX = 16, GROUP_FORMULAS_MAX = 8 };

struct group_event {
	char name[48];	   /* the metric is "perf." + name */
	char code[128];	   /* for perf_event_parse() */
	char caution[200]; /* "" : documented and exact */
	bool of_package;   /* counted by uncore boxes for the node, not for the tree */
	double bytes;	   /* of_package: what one count moves, 64 for a line of the cache */
	char role[8];	   /* of_package: "read", "write", "both" */
};

struct group_formula {
	char name[48]; /* the metric is "perf." + name */
	char help[200];
	char expression[400]; /* query/expr.h over "perf.NAME" */
	char caution[200];
	enum metric_unit unit;
	bool per_second;
};

struct event_group {
	char name[16]; /* "FLOPS_DP" */
	char help[160];
	struct group_event event[GROUP_EVENTS_MAX];
	unsigned nr_events;
	struct group_formula formula[GROUP_FORMULAS_MAX];
	unsigned nr_formulas;
};

struct event_file {
	char source[256]; /* "skylake-x (built in)", or the path of the file */
	struct event_group *group;
	unsigned nr_groups;
};

/* A text in our format. -EINVAL with the line and a reason for people. */
int event_file_parse(const char *text, size_t len, struct event_file *ret, unsigned *reterr_line, char *err,
	size_t err_size);
/* The file for this machine's processor. -ENOENT: there is none, and err says which would be needed. */
int event_file_find(struct env *env, struct event_file *ret, char *err, size_t err_size);
void event_file_release(struct event_file *f);
const struct event_group *event_group_find(const struct event_file *f, const char *name); /* any case */

/* The names of all files in the binary, for tests and lists; NULL at the end. */
struct embedded_events {
	const char *name; /* "skylake-x" */
	const char *text;
};
extern const struct embedded_events embedded_events[];
#endif
