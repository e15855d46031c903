/* Folds of a series of unknown length into a few numbers, in constant memory: its greatest rate, its highest
 * level with its time, and its shape. */
#ifndef QUERY_METER_H
#define QUERY_METER_H

#include "base/base.h"

/* ---- the greatest rate of a growing amount ---- */

#define METER_LEVELS 7 /* windows of 1, 2, 4 ... 64 steps */
#define METER_RING 65

struct meter {
	double step; /* points closer than this to the one before are merged with the next */
	struct meter_knot {
		double time, amount;
	} knot[METER_RING], held;
	unsigned nr, at; /* knots so far (at most METER_RING), where the next goes */
	bool holds;
	bool has[METER_LEVELS];
	double peak[METER_LEVELS], peak_at[METER_LEVELS], window[METER_LEVELS];
};

void meter_init(struct meter *m, double step);
/* The amount used up to this time; times ascend. */
void meter_add(struct meter *m, double time, double amount);
/* What follows has no connection with what came before. */
void meter_break(struct meter *m);
/* The greatest rate over the shortest window that shows no more than `most` (0: no limit): a sample that came
 * a little late shows more than the machine has, over a longer window the error vanishes. False when there
 * were not two points far enough apart. */
bool meter_peak(struct meter *m, double most, double *ret_rate, double *ret_at, double *ret_window);

/* ---- the highest level ---- */

struct top {
	bool has;
	double value, at;
};

void top_add(struct top *t, double value, double at);

/* ---- the shape: a row of little bars ---- */

#define SPARK_BUCKETS 64

struct spark {
	double width; /* of a bucket; doubles whenever the series outgrows them */
	unsigned nr;
	struct {
		double sum, weight, max;
	} bucket[SPARK_BUCKETS];
};

/* `value` held from `from` to `to`. */
void spark_add(struct spark *s, double from, double to, double value);
/* Means (or the greatest values) of nr equal parts of [0, end); NAN where nothing is known. */
void spark_draw(const struct spark *s, double end, bool greatest, double *out, unsigned nr);
#endif
