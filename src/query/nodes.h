/* The pieces of query/summary: not for others. */
#ifndef QUERY_NODES_H
#define QUERY_NODES_H

#include "query/summary.h"
#include "query/tracker.h"

struct level_figure {
	enum level level;
	enum figure_id peak;
	int at; /* figure of its time; -1: none */
};

extern const struct level_figure level_figure[];
extern const size_t nr_level_figures;

/* Everything of one recording; the account is at its end. */
int summary_fill(struct summary *s, const char *path, const struct account *a, const struct point *last,
	struct tracker *t);
int summary_notes(struct summary *s, const struct account *a);
void fill_peaks(struct summary *s, struct tracker *t);
void fill_self_percent(struct summary *s, double recorded_s);
/* The whole run from its nodes, when they are filled. */
int summary_combine(struct summary *total, struct tracker *t);
#endif
