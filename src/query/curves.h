/* Curves of a run on a time axis, reduced for display: every recording is read once, however many curves are
 * asked for, and memory does not grow with its length.
 *
 * Times are seconds after the start of the run, which is that of its earliest recording by the wall clock.
 * All curves of one recording stand on one common axis. Up to `points` ticks are kept as they are; of longer
 * recordings each point stands for the same time (curves_node.step_s) and has the mean, the least and the
 * most of what was there, so that no peak is lost. What is not known is NAN: before a process was born, after
 * it died, and across a gap (a point of its own without a value says where something was lost). */
#ifndef QUERY_CURVES_H
#define QUERY_CURVES_H

#include "base/owned.h"
#include "base/progress.h"
#include "metric/metric.h"
#include "query/tour.h"
#include "query/spread.h"

enum curves_per {
	CURVES_WHOLE,	 /* one line for each recording: the metric's fold over its instances */
	CURVES_INSTANCE, /* one for each instance that the recording ever had (a CPU, an interface, a GPU) */
	CURVES_GROUP,	 /* one for each group of processes */
	CURVES_USER, /* one for each user who had processes; name is the recording's, else the UID as text */
	CURVES_PROCESS, /* one for each process that is kept, and one for all others together */
};

struct curves_query {
	const char *metric; /* recorded or derived */
	enum curves_per per;
	bool rate;	   /* counters as growth per second */
	const char *group; /* only of processes in this group; NULL: of all */
	bool spread;	   /* quantiles of each line are wanted */
	bool typed;	   /* by a user: when there is no such metric, a similar one is named */
};

/* A process as the process table counts: recording, and identity in it. */
struct curves_process {
	uint32_t node, id;
};

struct curves_options {
	double from_s, to_s;		   /* NAN: from the start, to the end */
	uint32_t points;		   /* at most so many for each line; 0: 2000 */
	const struct curves_process *keep; /* CURVES_PROCESS: these have lines of their own */
	size_t nr_keep;
	bool whole; /* read all, also where what is before from_s makes no difference */
	const struct progress *progress;
};

struct curves_line {
	unsigned query;		/* its index in the question */
	uint32_t node;		/* index of the recording in the run */
	uint32_t id;		/* of the instance; 0: a fold */
	int64_t pid;		/* of a process; else 0 */
	bool others;		/* all processes that are not kept: their fold */
	bool counted_elsewhere; /* counted in others of its set, and not to be added to them */
	char *name; /* of the instance, group or user, as recorded (any bytes); of a fold the host */
	size_t name_len;
	/* [nr_times of the node], in its memory; lines that are the same share them. Without reduction low
	 * and high are the same array as mean, with it never. */
	float *mean, *low, *high;
	/* Of all ticks in the range, not only of what is drawn; NAN: never known. The most that is known may
	 * be more than any tick had (analysis/settle.c): `highest` is that of the ticks. */
	double average, least, most, most_at_s, highest, first, last;
	struct spread *spread; /* when asked for */
};

struct curves_node {
	const char *host; /* "" when not known */
	uint32_t same;	  /* the first recording of the same machine: itself, unless there are several */
	double offset_s;  /* of its start after the run's */
	double end_s;	  /* of its last tick in the range, in the run's time */
	size_t nr_times;
	double *time_s; /* middles of what the points stand for */
	bool *lost;	/* the point stands for what was lost there: no line has a value */
	bool reduced;
	double step_s;	     /* time for which one point stands; when not reduced the recording's interval */
	uint64_t ticks;	     /* that were read in the range */
	bool all;	     /* made by curves_combine(): all nodes together; the last one */
	struct owned points; /* of its lines */
};

/* What each query turned out to be. */
struct curves_column {
	enum curves_per per;		 /* as asked */
	const char *name, *help, *panel; /* panel "": none */
	enum metric_unit unit;
	enum metric_kind kind;
	enum metric_fold fold;
	bool per_second;
	bool rates;	 /* a value stands for the time before its tick, else for that behind it */
	bool of_machine; /* not of the job: several recordings of one machine saw the same */
	bool known;	 /* some recording has a value of it */
	char *why;	 /* when not: the reason, for people */
	size_t left_out; /* instances or users beyond those that can have lines */
};

struct curves {
	struct curves_node *node;
	size_t nr_nodes;
	struct curves_line *line; /* by query, then node; groups, users and instances in order of appearance,
				   * processes as in `keep`, the others behind them */
	size_t nr_lines;
	size_t nr_read;		      /* of the lines: those behind them were made by curves_combine() */
	struct curves_column *column; /* one for each query */
	size_t nr_columns;
};

/* A metric that no recording has is no error: its column is not known and says why. 0 or a negative errno. */
int curves_read(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves **ret, struct buf *reterr);
struct curves *curves_free(struct curves *s);
/* The first line of this query and recording, or of what comes after it. */
size_t curves_first_line(const struct curves *s, unsigned query, uint32_t node);
/* While recordings are read for other purposes, too: a guest for the tour; when that is over, the curves. The
 * queries must live until then. options->progress is not told. */
struct curves_reading;
int curves_guest(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves_reading **ret, struct tour_guest *ret_guest,
	struct buf *reterr);
int curves_finish(struct curves_reading *r, struct curves **ret);
struct curves_reading *curves_reading_free(struct curves_reading *r);
/* Recordings that grow, read on from where they were: curves of what came since the last time. The queries,
 * the run and what the options point at must live as long. */
struct curves_live;
int curves_live_open(const struct run *run, const struct curves_query *query, size_t nr,
	const struct curves_options *options, struct curves_live **ret, struct buf *reterr);
/* Reads what is there, but no more than some thousand ticks of a recording that were not taken yet; nothing
 * behind `upto_s`, but for the tick that settles what is before it. Gives the time up to which all of them
 * were read: then it is upto_s. An event was among it. A negative errno: -EBADMSG, -ESTALE … */
int curves_live_read(struct curves_live *l, double upto_s, double *ret_read_s, bool *ret_events);
/* Where one of them is: its last tick, up to which one its values are settled (-INFINITY: none), and whether
 * its recorder has ended. */
void curves_live_node(
	const struct curves_live *l, size_t i, double *ret_last_s, double *ret_settled_s, bool *ret_ended);
/* The curves up to that time, which was read, without what was taken before. */
int curves_live_take(struct curves_live *l, double upto_s, struct curves **ret);
struct curves_live *curves_live_close(struct curves_live *l);
/* The lines of another reading of the same run with the same questions, in its order, with what this one has
 * of them: nothing, where it has no such line; its own others are dropped. Columns and the lines' numbers
 * (average, most …) are those of the other. -ENOMEM */
int curves_arrange(struct curves *s, const struct curves *as);
/* The numbers of the lines that were combined since then, likewise. */
void curves_take_numbers(struct curves *s, const struct curves *as);
/* Lines over all nodes: one for the whole, one for each group, user or instance that some node has by that
 * name, and one for the others of processes, on the axis of a new node that is added to the curves once
 * (named "all nodes"). Of what several recordings of one machine saw of it, the most counts. By the column's
 * fold, or with `average` the mean over the nodes. Where one node has lost something nothing is known of all.
 * Numbers are those of what is drawn; with reduction `high` and `most` of a sum are bounds: the nodes' peaks
 * in a point need not have been at once. Returns the index of the first of these lines, which are the last of
 * the curves, or negative (-ENODATA: there is nothing to combine). */
int curves_combine(struct curves *s, unsigned query, bool average);
#endif
