/* A run as a report tells it: the numbers, the curves of every panel, what is to be found in them and what to
 * ask for next time. Read in two passes over the recordings: the first counts (summary, processes), the
 * second draws what is worth it (sheet, statistics). */
#ifndef STORY_STORY_H
#define STORY_STORY_H

#include "query/moments.h"
#include "query/sheet.h"
#include "query/stats.h"
#include "story/chart.h"

struct findings;

/* What is drawn: one row one panel (panels.c). */
enum panel_shape {
	PANEL_LINES, /* each metric a curve; of several nodes one for each node */
	PANEL_STACKED,
	PANEL_INSTANCES, /* a curve for each instance of the metric */
	PANEL_GROUPS,	 /* for each group of processes ("tool"); where there are none, for the job */
	PANEL_GROUPS_STACKED,
	PANEL_PROCESSES, /* the top ones, and the others together; stacked */
	PANEL_HEAT,	 /* instances as rows */
	PANEL_TIMELINE,	 /* lives of processes */
};

#define PANEL_METRICS 8

struct panel {
	const char *id, *title, *quantity;
	const char *section; /* "cpu", "memory", "io", "network", "gpu", "energy", "tools", "processes" */
	enum panel_shape shape;
	const char *metric[PANEL_METRICS]; /* the first that is known decides whether there is a panel */
	const char *label[PANEL_METRICS];  /* of the curve; NULL: the metric's name */
	bool rate;
	bool peak;	   /* the highest point is annotated */
	bool combined;	   /* of several nodes: another chart of all together, total or average by the fold */
	const char *level; /* metric whose last value is drawn as a limit ("limit.cpus"); may be NULL */
	const char *level_label;
};

extern const struct panel panels[];
extern const size_t nr_panels;

struct story_options {
	double from_s, to_s; /* NAN */
	uint32_t points;     /* for each curve; 0: the sheet's own choice */
	size_t processes;    /* with curves of their own; 0: 12 */
	const struct progress *progress;
};

struct story {
	const struct run *run;
	struct summary *summary;
	struct process_table *processes;
	struct moments *moments;
	struct stats *stats;
	struct sheet *sheet;
	struct sheet_process *keep; /* processes with curves: those of most CPU and of most memory */
	size_t nr_keep;
	struct findings *findings; /* story/finding.h */
	/* First query of each panel's metric in the sheet; -1: it has none. */
	int (*query_of)[PANEL_METRICS];
};

int story_read(
	const struct run *run, const struct story_options *options, struct story **ret, struct buf *reterr);
struct story *story_free(struct story *s);

/* The charts of a story, in the order of the panels; those without values are left out. With several nodes a
 * panel gives one for each node (id "cpu-HOST") and, where it says so, a combined one (id "cpu"). */
struct charts {
	struct chart *item;
	const struct panel **panel; /* of each */
	int64_t *node;		    /* of each; -1: of the whole run */
	size_t nr;
	struct charts_memory *memory;
};

int charts_make(const struct story *s, struct charts **ret);
struct charts *charts_free(struct charts *f);
#endif
