/* Groups of events with the formulas that make numbers of them, one text file per family of processors: see
 * share/events/README.md for the format. The files are in the binary; a folder named in TACHO_EVENTS comes
 * first. */
#ifndef PERF_GROUPS_H
#define PERF_GROUPS_H

#include "metric/metric.h"
#include "perf/event.h"

enum { GROUP_EVENTS_MAX = 16, GROUP_FORMULAS_MAX = 8, GROUPS_OF_FILE_MAX = 16 };

/* An event of a group. One name has one code in all groups of a file: with several groups it is counted
 * once. */
struct group_event {
	char name[48];	/* the metric is "perf." + name */
	char code[512]; /* for group_event_resolve(): "A | B + C" is A, or where there is no A both B and C */
	char caution[200]; /* "" : documented and exact */
	bool of_package;   /* counted by uncore boxes for the node, not for the tree */
	double bytes;	   /* of_package: what one count moves, 64 for a line of the cache */
	char role[8];	   /* of_package: "read", "write", "both" */
};

struct group_formula {
	char name[48]; /* the metric is "perf." + name */
	char help[200];
	char expression[400]; /* base/expr.h over "perf.NAME" */
	char caution[200];
	enum metric_unit unit;
	bool per_second;
};

struct event_group {
	char name[16]; /* "FLOPS_DP" */
	char help[160];
	char missing[240]; /* why the processor cannot count what the group is for; "": it can. There may
			      still be events, for something else */
	struct group_event event[GROUP_EVENTS_MAX];
	unsigned nr_events;
	struct group_formula formula[GROUP_FORMULAS_MAX];
	unsigned nr_formulas;
};

struct event_file {
	char source[600]; /* "skylake-x (built in)", or the path of the file */
	char serves[400]; /* names of micro-architectures, separated by blanks */
	struct event_group *group;
	unsigned nr_groups;
};

/* A text in our format. -EINVAL with the line and a reason for people; what it is `like` is looked for among
 * the built-in files. */
int event_file_parse(const char *text, size_t len, struct event_file *ret, unsigned *reterr_line, char *err,
	size_t err_size);
/* The file for this machine's processor. -ENOENT: there is none, and err says which would be needed; -EINVAL:
 * that in the user's folder is wrong, and err says where. */
int event_file_find(struct env *env, struct event_file *ret, char *err, size_t err_size);
/* For memory bandwidth alone, by the names that kernels give: of processors that have no file. */
int event_file_unknown(struct event_file *ret);
void event_file_release(struct event_file *f);
const struct event_group *event_group_find(const struct event_file *f, const char *name); /* any case */

/* What the event is on this machine, under its name in the group: one, or of uncore events one a box. At most
 * max. Returns how many; -EINVAL with a reason for people when it is not available here. */
int group_event_resolve(struct env *env, const struct group_event *e, struct perf_event *ret, size_t max,
	char *err, size_t err_size);

/* The names of all files in the binary, for tests and lists; NULL at the end. */
struct embedded_events {
	const char *name; /* "skylake-x" */
	const char *text;
};
extern const struct embedded_events embedded_events[];
#endif
