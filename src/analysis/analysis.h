/* A run as a report tells it: the numbers, the curves of every panel, what is to be found in them and what to
 * ask for next time. Read in two passes over the recordings: the first counts (summary, processes), the
 * second draws what is worth it (curves, statistics). */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include "base/owned.h"
#include "query/events.h"
#include "query/curves.h"
#include "query/stats.h"
#include "analysis/chart.h"

struct findings;

/* What is drawn: one row one panel (panels.c). */
enum panel_shape {
	PANEL_LINES, /* each metric a curve */
	PANEL_STACKED,
	PANEL_INSTANCES, /* a curve for each instance of the metric */
	PANEL_GROUPS,	 /* for each group of processes ("tool") */
	PANEL_GROUPS_STACKED,
	PANEL_PROCESSES, /* the top ones, and the others together; stacked */
	PANEL_PROCESSES_LINES,
	PANEL_HEAT,	/* instances as rows */
	PANEL_TIMELINE, /* lives of processes, as thick as the metric says */
};

enum panel_when {
	PANEL_ALWAYS,
	PANEL_WITH_GROUPS, /* the run's processes are in groups */
	PANEL_WITHOUT_GROUPS,
};

#define PANEL_METRICS 8
#define PANEL_LEVELS 3

struct panel {
	const char *id, *title, *quantity;
	const char *section; /* "cpu", "memory", "io", "network", "gpu", "energy", "tools", "processes",
				"perf", "app" */
	enum panel_shape shape;
	enum panel_when when;
	const char *metric[PANEL_METRICS]; /* those that are known are drawn; with none there is no panel */
	const char *label[PANEL_METRICS];  /* of the curve; NULL: the metric's name */
	uint8_t dashed;			   /* mask of metrics */
	uint8_t of_group; /* mask of metrics of the job's control group: left out where others are in it, too
			   */
	uint8_t peak;	  /* the highest point of the so many-th curve is annotated; of stacked ones that of
			   * their sum. 0: none */
	bool rate;	  /* counters as growth per second */
	bool share;	  /* seconds per second are a share of the time, not CPUs */
	bool filled;	  /* areas down to the axis, each before the one above it */
	bool combined; /* of several nodes: another chart of all together, total or average by the fold, and
			* one that compares the nodes */
	uint8_t heat;  /* of several nodes: a heat map, a row for each node. The sum of so many metrics from
			* the first on; 0: none */
	bool when_any; /* curves that are zero all along are left out, and so is the panel without any: what
			* should not happen, and mostly does not */
	const char *without;		 /* name of an instance that is no row of its own */
	const char *level[PANEL_LEVELS]; /* metrics whose last value is drawn as a limit ("limit.cpus") */
	const char *level_label[PANEL_LEVELS];
};

extern const struct panel panels[];
extern const size_t nr_panels;

struct analysis_options {
	double from_s, to_s; /* NAN */
	const char *phase;   /* whose time that is, as the user named it; NULL: of none */
	/* When it began and ended, from the first pass; may end the program. */
	void (*phase_times)(const struct summary *s, const char *phase, double *ret_from_s, double *ret_to_s);
	int64_t upto_ns;  /* curves end with this tick; 0: with the last. Nothing else changes */
	uint32_t points;  /* for each curve; 0: the curves's own choice */
	size_t processes; /* with curves of their own, more than charts name; 0: 500 */
	const struct progress *progress;
};

/* A panel of this run, and where its curves stand: queries of the curves, -1 where there is none. */
struct analysis_panel {
	const struct panel *row;
	int query[PANEL_METRICS]; /* as the shape asks */
	int whole[PANEL_METRICS]; /* one line for each recording: the same as `query` for plain lines */
	int level[PANEL_LEVELS];
	/* Lines of the curves over all nodes together (the first, and how many), and the mean over the nodes
	 * of the first metric that is known (negative: there is none). Nothing of it with one node. */
	size_t all[PANEL_METRICS], nr_all[PANEL_METRICS];
	int mean;
};

struct analysis {
	const struct run *run;
	struct summary *summary;
	struct process_table *processes; /* of most CPU time first */
	struct courses *courses;	 /* while it is read */
	struct run_events *events;
	struct stats *stats;
	struct curves *curves;
	size_t nr_nodes;     /* recordings; the curves's node "all nodes" stands behind them */
	size_t nr_lines;     /* of the curves, by query and node; those over all nodes stand behind them */
	double from_s, to_s; /* of the time axis of all charts; the same when nothing was recorded */
	bool part;	     /* that is not the whole run: only curves and charts are of it */
	const struct phase *phase;   /* whose time that is; NULL: of none */
	struct curves_process *keep; /* processes with curves: those of most CPU and of most memory in turn */
	uint32_t *keep_row;	     /* of each, in the process table */
	size_t nr_keep;
	size_t nr_named;	   /* of them, the first so many have a colour of their own */
	struct findings *findings; /* analysis/finding.h */
	struct analysis_panel *panel;
	size_t nr_panels;
	struct panel *own; /* panels that no table knows: counters that this run asked for */
	size_t nr_own;
	size_t first_finding_query; /* of finding_query[], in the curves */
	struct curves_query *query; /* all that the curves were asked */
	size_t nr_queries;
	const struct analysis
		*page; /* of what is new of a run (analysis/on.c): the whole of which it goes on */
};

int analysis_read(const struct run *run, const struct analysis_options *options, struct analysis **ret,
	struct buf *reterr);
struct analysis *analysis_free(struct analysis *s);
/* What is new of a run that goes on: read from where the last reading ended, so that it costs what is new.
 * `page` was read of all of it and must live as long; ticks up to the time `after_ns` of the run were told.
 */
struct analysis_live;
int analysis_live_open(
	const struct analysis *page, int64_t after_ns, struct analysis_live **ret, struct buf *reterr);
struct analysis_live *analysis_live_close(struct analysis_live *l);
/* A later page has the same questions and processes: its news can come from here, too. */
bool analysis_live_fits(const struct analysis_live *l, const struct analysis *page);
/* Reads on, for analysis_live_node() to say where the recordings are. A negative errno: -ESTALE … */
int analysis_live_look(struct analysis_live *l);
/* As curves_live_node(), in times of the run; -1: none. */
void analysis_live_node(const struct analysis_live *l, size_t i, int64_t *ret_last_ns,
	int64_t *ret_settled_ns, bool *ret_ended);
/* News up to `upto_ns`, or (*ret_upto_ns) up to an earlier tick when there is much: curves, none reduced, and
 * what happened. Lines, panels and names are those of `page`, so that each can be told from it; all that only
 * a whole reading tells is the page's (summary, processes, statistics, findings). Values at the end are
 * settled only if a later tick is there, or the recording has ended. */
int analysis_live_read(struct analysis_live *l, const struct analysis *page, int64_t upto_ns,
	struct analysis **ret, int64_t *ret_upto_ns, struct buf *reterr);
/* When everything is read of the whole run: lines get the numbers of the statistics (settle.c). */
void analysis_settle(struct analysis *s);
/* The same for one line of a metric, by the statistics of whose it is; whether they know the metric at all.
 */
void curves_line_settle(struct curves_line *line, const char *metric, const struct stats_row *row);
bool is_settled(const char *metric);

/* Between that tick and the next: the times of ticks are sums of fractions. */
static inline double analysis_behind_s(int64_t tick_ns)
{
	return ((double)tick_ns + 100) / 1e9;
}

/* The window leaves nothing of the run out. Its length is added up in several ways: a microsecond is nothing.
 */
static inline bool is_whole_run(double from_s, double to_s, double length_s)
{
	return !(from_s > 0) && !(to_s < length_s - 1e-6);
}

/* What the nodes of a panel are compared by: the metric with the peak, or the first that is known; -1: none.
 */
int analysis_main_query(const struct analysis *s, const struct analysis_panel *p);

/* "python3 (4711)", escaped and not too long: its name in every picture. */
void analysis_process_name(const struct process_row *row, struct buf *out);

/* Whose curve it is. */
struct chart_source {
	uint32_t node;	   /* of the curves: its times */
	uint32_t process;  /* row of the process table; UINT32_MAX: of none */
	const char *group; /* escaped; NULL: of none */
	double most_at_s;  /* NAN: not known */
	double drawn_most; /* of the curve, which may be less than the most that is known */
};

/* The charts of a story, in the order of the panels; those without values are left out. With several nodes a
 * panel gives one for each node (id "cpu-HOST"; of many nodes, for those that differ most) and, where it says
 * so, a combined one (id "cpu") and one that compares the nodes (id "cpu-by-node") and a heat map of all (id
 * "cpu-nodes"). */
struct charts {
	struct chart *item;
	const struct analysis_panel **panel; /* of each */
	int64_t *node;			     /* of each; -1: of the whole run */
	const struct chart_source **source;  /* of each: one for each curve */
	size_t nr;
	char *note;	     /* which charts were not made, for people; NULL: all were */
	struct owned memory; /* what they point at */
};

int charts_make(const struct analysis *s, struct charts **ret);
struct charts *charts_free(struct charts *f);
#endif
