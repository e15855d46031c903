/* The pieces of query/curves: not for others. */
#ifndef QUERY_CURVES_INTERNAL_H
#define QUERY_CURVES_INTERNAL_H

#include "query/column.h"
#include "query/curves.h"
#include "query/split.h"

#define CURVES_POINTS 2000

/* ---- the axis: which point a tick belongs to ---- */

/* A tick on the axis. */
struct clock {
	uint64_t tick;	     /* counts those in the range */
	double time, before; /* s after the run's start; of the tick before, NAN: there is none */
	bool gap;	     /* something was lost between them */
	bool breaks;	     /* runs end here: another slot, or a gap */
	uint32_t slot;
};

struct axis_slot {
	double first, last; /* ticks in it */
	uint32_t ticks;
	bool gap; /* something was lost in it or before it */
};

struct curves_axis {
	struct axis_slot *slot, *spare;
	uint32_t nr, cap, nr_used, nr_gaps;
	double origin, step;	/* step 0: every tick has a slot of its own */
	uint32_t *map;		/* where slots went when they became wider */
	struct clock now, late; /* late: the tick before, for values that come one tick late */
	bool has_now, has_late;
};

int axis_init(struct curves_axis *a, uint32_t points);
void axis_release(struct curves_axis *a);
/* There is no room for a tick at this time: axis_widen() until there is. map[] then says where slots went,
 * and all lines must follow. */
bool axis_is_full(const struct curves_axis *a, double time, bool gap);
void axis_widen(struct curves_axis *a);
void axis_tick(struct curves_axis *a, double time, double before, bool gap);
/* How many slots end with this time, and the axis without so many of its first ones. */
uint32_t axis_upto(const struct curves_axis *a, double time);
void axis_forget(struct curves_axis *a, uint32_t nr);
/* Makes the node's times, and in map[] the index of each slot. -ENOMEM */
int axis_finish(struct curves_axis *a, struct curves_node *node, double interval_s);

/* ---- a line in the making ---- */

struct curve_point {
	double sum;
	float low, high;
	uint32_t nr;
};

/* Values that stay the same for a while are one run, and cost nothing until they change. */
struct curve_reduction {
	bool late;  /* goes by the axis' late clock */
	bool rates; /* a value stands for the time before its tick, not for that after it */
	bool open;  /* a run is going on: */
	uint32_t slot;
	double value, from, before;
	uint64_t from_tick;
	struct curve_point *point; /* from slot `first` on */
	uint32_t first, nr, cap;
	double weighted, weight, plain;
	uint64_t ticks;
	double least, most, most_at, begin, end; /* NAN: nothing yet */
	struct spread *spread;
	int err;
};

/* Arrays of points in a node's memory. Many lines rest, so many arrays are the same: such are kept once. */
struct point_arrays {
	float **array;
	size_t nr;
	struct idmap by_hash;
	float *room; /* for `left` more */
	unsigned left;
};
void point_arrays_release(struct point_arrays *p);

int curve_new(bool late, bool rates, bool spread, struct curve_reduction **ret);
struct curve_reduction *curve_free(struct curve_reduction *t);
void curve_put(struct curve_reduction *t, const struct clock *c, double value);
/* A slot ends before this tick, or something was lost. */
void curve_break(struct curve_reduction *t, const struct clock *c);
void curve_remap(struct curve_reduction *t, const uint32_t *map);
/* Without the first slots of the axis. */
void curve_forget(struct curve_reduction *t, uint32_t nr);
/* The line's numbers and arrays: means are kept apart from ranges. -ENOMEM */
int curve_finish(const struct curve_reduction *t, const struct curves_axis *a, struct curves_node *node,
	struct point_arrays *means, struct point_arrays *ranges, struct curves_line *ret);

/* ---- one recording ---- */

/* What one query gave in one recording. */
struct curves_answer {
	struct curves_line *line;
	size_t nr;
};

/* The question, as all recordings are asked it. */
struct curves_question {
	const struct run *run;
	const struct curves_query *query;
	size_t nr;
	const struct curves_options *options;
};

/* One recording, whose place on the axis is in the node already, while it is read. column[nr]: what it knows
 * of them, or why it has nothing; empty before. answer[nr] */
int curves_node_open(const struct curves_question *q, uint32_t which, struct curves_node *node,
	struct walk *walk, struct curves_column *column, struct walk_observer **ret);
uint32_t curves_node_which(const struct walk_observer *o);
/* Between two ticks, of a recording that is read on: what was read up to that time (the end, when it has
 * ended), as curves_node_close() gives it, and it is forgotten. The node is another than before: the
 * answer's. */
int curves_node_take(struct walk_observer *o, double upto_s, bool ended, struct curves_node *node,
	struct curves_column *column, struct curves_answer *answer);
/* The time up to which later ticks change no value (-INFINITY: none), and how many ticks wait to be taken. */
double curves_node_settled(const struct walk_observer *o, size_t *ret_waiting);
double curves_node_last(const struct walk_observer *o); /* tick; -INFINITY: none yet */
/* It was read (e is 0), or something failed; the observer is gone then. */
int curves_node_close(
	struct walk_observer *o, int e, struct curves_column *column, struct curves_answer *answer);

/* ---- all of them (curves.c) ---- */

int curves_columns(struct curves *s, const struct curves_question *q);
void curves_columns_free(struct curves_column *column, size_t nr);
int curves_nodes(struct curves *s, const struct run *run, struct buf *reterr);
void curves_column_take(struct curves_column *to, struct curves_column *from);
/* From [node][query] to lines by query, then node. */
int curves_gather(struct curves *s, struct curves_answer *answer, size_t nr_queries);
#endif
