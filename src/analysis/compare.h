/* Runs against runs: every figure of the summary, before and after, with how it varies between repeated runs.
 *
 * Runs of the same thing are a set. The first set is the base; each other is compared with it. A difference
 * stands out when it is larger than the spread: than the distance from the least to the most within either
 * set. Where no set has several runs, nothing is known about the spread, and nothing is said about it. */
#ifndef ANALYSIS_COMPARE_H
#define ANALYSIS_COMPARE_H

#include "query/events.h"
#include "query/curves.h"
#include "query/summary.h"

struct compare_operand {
	const char *name; /* as the user gave it */
	const struct run *run;
	unsigned set; /* sets are counted from 0; operands of a set stand together */
};

struct compare_values {			     /* of one figure in one set */
	size_t nr;			     /* runs that have it */
	double mean, least, most, deviation; /* NAN when there is none; the deviation with fewer than two */
	const char *why;		     /* when no run has it; may be NULL */
	bool guess;			     /* of a phase, interpolated between samples in some run */
};

struct compare_unit {
	enum metric_unit unit;
	bool per_second, percent; /* percent: of 100 rather than of 1 */
};

struct compare_figure {
	char *name;	   /* as in the summary's JSON: "memory.peak_pss_bytes"; escaped */
	const char *phase; /* of a phase: its name; NULL: of the run */
	struct compare_unit unit;
	bool matters, first;	   /* shown when it differs; shown in any case */
	struct compare_values *of; /* [sets] */
};

struct compare_set {
	char *title;	   /* "before", "after", or the file; escaped */
	const char **name; /* of its runs, as given */
	struct summary **run;
	size_t nr;
	size_t first; /* index of its first operand */
};

struct comparison {
	const struct compare_operand *operand;
	size_t nr_operands;
	struct compare_set *set;
	size_t nr_sets;
	struct compare_figure *figure; /* in the order of the summary */
	size_t nr_figures;
	struct compare_figure *phase; /* of each phase that some run has: "phases.NAME.cpu_s" */
	size_t nr_phase_figures;
	char **warning; /* sentences: what makes the runs hard to compare */
	size_t nr_warnings;
};

int compare_read(const struct compare_operand *operand, size_t nr, const struct progress *progress,
	struct comparison **ret, struct buf *reterr);
struct comparison *compare_free(struct comparison *c);

struct compare_change {
	bool known;
	double difference, ratio; /* ratio: INFINITY from nothing to something, NAN from nothing to nothing */
	bool has_spread;	  /* some set has several runs with it */
	bool stands_out;	  /* it is larger than the spread */
	bool differs;		  /* by a hundredth at least, and not within the spread */
};

/* Of a set against the base. What only the rounding of sums makes different is the same. */
struct compare_change compare_change(const struct compare_figure *f, size_t set);
/* "1.2 GiB", with a sign "+1.2 GiB". */
char *compare_format(char out[static 64], const struct compare_unit *u, double value, bool sign);
/* By its name or a short one ("memory.peak"); NULL and the nearest name in reterr. */
const struct compare_figure *compare_find(const struct comparison *c, const char *name, struct buf *reterr);

/* "memory, peak", "load: CPU time": what people read in place of the name. */
void compare_title(const struct compare_figure *f, struct buf *out);
/* "12 % slower, CPU time +3 %, memory unchanged; slower in phase load: disk wait +9.8s": a set against the
 * base. */
void compare_in_words(const struct comparison *c, size_t set, struct buf *out);

struct compare_alias {
	const char *name, *of[2]; /* the first that all sets have */
};
extern const struct compare_alias compare_alias[];
extern const size_t nr_compare_aliases;

/* `memory.peak>+10%`: what must not be. */
struct compare_verdict {
	const char *rule;
	const struct compare_figure *figure;
	size_t set;
	bool met; /* the condition holds: it has failed */
};

/* -EINVAL with the reason: it cannot be read, there is no such figure, or it was not measured. Else a verdict
 * for each set but the base. */
int compare_judge(
	const struct comparison *c, const char *rule, struct compare_verdict *ret, struct buf *reterr);

/* For compare_*.c. */
int compare_phases(struct comparison *c);
int compare_warn(struct comparison *c, const char *fmt, ...) _printf_(2, 3);
void compare_values_add(struct compare_values *v, double value);
struct compare_unit compare_unit_of(const char *name);
#endif
