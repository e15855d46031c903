/* The pieces of analysis/charts: not for others. */
#ifndef ANALYSIS_CHARTS_INTERNAL_H
#define ANALYSIS_CHARTS_INTERNAL_H

#include "base/buf.h"
#include "base/owned.h"
#include "base/units.h"
#include "analysis/bands.h"
#include "analysis/palette.h"
#include "analysis/analysis.h"

/* Curves with names of their own in one chart; the rest is folded into one. */
#define CURVES_NAMED PALETTE_SIZE
#define INSTANCES_NAMED 8
#define NODES_NAMED 8
#define HEAT_ROWS 256
#define NODE_ROWS 1024 /* a chart of them has a pixel for each */
#define HEAT_NODES 3   /* fewer are told apart well enough by their curves */

/* A copy of what is in the buffer, which is released. Never NULL. */
const char *charts_text(struct owned *m, struct buf *text);

enum draft_of { DRAFT_NODE, DRAFT_ALL, DRAFT_BY_NODE, DRAFT_NODE_HEAT };

/* A chart in the making. */
struct draft {
	const struct analysis *s;
	const struct analysis_panel *p;
	struct owned *m;
	enum draft_of of;
	uint32_t node; /* DRAFT_NODE */
	const struct chart_bands *bands;
	struct chart chart;
	struct chart_curve *curve;
	struct chart_source *source;
	size_t nr, cap;
	/* DRAFT_NODE_HEAT: all nodes, in order, and how many share a row of the chart */
	const struct heat_row *heat_row;
	size_t nr_heat_rows, nodes_in_row;
	bool rates; /* its values stand for the time before them */
	const struct curves_line
		*total; /* of stacked curves: their sum as it was read; NULL: not asked for */
};

/* Lines of one recording that answer a query. */
const struct curves_line *lines_of(const struct analysis *s, int query, uint32_t node, size_t *ret_nr);
/* What the panel shows: fills curve and source. 0 or -ENOMEM; no curves: there is nothing to draw. */
int draft_curves(struct draft *d);
/* The lives of processes: fills span. */
int draft_spans(struct draft *d);

/* The mean and the most of points as they come. */
struct point_sum {
	double added, known_s, plain, points;
	double most, most_at_s; /* NAN: there was none */
};
#define POINT_SUM_NONE ((struct point_sum){.most = NAN, .most_at_s = NAN})
void point_sum_add(struct point_sum *sum, const struct curves_node *node, size_t at, bool rates, double value,
	double high);
double point_sum_mean(const struct point_sum *sum);

/* A curve of a line, in this colour. The name is kept by `m`. */
struct chart_curve curve_of_line(
	const struct draft *d, const struct curves_line *line, const char *name, uint32_t color);
void draft_add(struct draft *d, const struct curves_line *line, const char *name, uint32_t color);
/* Several lines of one recording as one: a line like any other, but for the names. */
const struct curves_line *fold_lines(
	struct draft *d, const struct curves_line *const *line, size_t nr, enum metric_fold fold);
const char *line_label(struct owned *m, const struct curves_line *line, const char *more);
/* A row for each node (charts_nodes.c); and the most that they show. */
void curves_node_heat(struct draft *d);
void node_heat_subtitle(struct draft *d);
double heat_most(const struct draft *d);
const char *chart_value(char out[static UNITS_SIZE], const struct draft *d, double value);
const char *process_label(struct owned *m, const struct process_row *row);
const char *others_label(struct owned *m, size_t nr); /* "12 others" */
void id_from(char *text);
/* All nodes together, where a panel asks for it. */
int analysis_combine(struct analysis *s);
/* The nodes whose line of this query differs most from the others', in their own order. Returns how many. */
size_t nodes_pick(const struct analysis *s, int query, size_t most, uint32_t *ret);
#endif
