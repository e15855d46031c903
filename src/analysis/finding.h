/* What a careful colleague sees in a run, each with its evidence; and what to ask for next time.
 *
 * A rule is a row of rules[] in findings.c: a function that looks at the story and adds what it finds. No
 * finding without evidence, and none on a run that is too short to tell. */
#ifndef ANALYSIS_FINDING_H
#define ANALYSIS_FINDING_H

#include "analysis/analysis.h"
#include "base/json.h"

enum finding_weight {
	FINDING_FINE,	 /* all is well, and worth saying */
	FINDING_NOTE,	 /* good to know */
	FINDING_WARNING, /* costs time, memory or money */
	FINDING_SERIOUS, /* the run failed of it, or the next will */
};

struct finding_evidence {
	char *name; /* "cpu.mean_cores": as in the summary's JSON where it is there */
	double value;
	enum metric_unit unit;
	bool per_second;
};

struct finding {
	const char *id; /* the rule's: "unused-cores" */
	enum finding_weight weight;
	char *title; /* one line, with the number that matters: "3.1 of 16 cores were used" */
	char *text;  /* why that is, what it means, what to do; sentences */
	struct finding_evidence *evidence;
	size_t nr_evidence;
	const char *panel;   /* id of the panel in which it is to be seen; NULL: none */
	double from_s, to_s; /* where in it; NAN: all of it */
	char *phase;	     /* of the job, which holds all of that: "backward of epoch 5"; NULL: none */
	int64_t node;	     /* -1: the whole run */
};

struct advice {		       /* lines to paste into the next job script */
	const char *scheduler; /* "slurm", "pbs", "oar" */
	char **line;
	size_t nr_lines;
	bool own;    /* the run was under this one */
	bool failed; /* there was no memory for a line */
};

struct findings {
	struct finding *item; /* gravest first */
	size_t nr;
	struct advice *advice;
	size_t nr_advice;
	char *headroom;	     /* how the advised numbers were made: "memory: peak PSS 3.2 GiB + 20 %, …" */
	char *why_no_advice; /* when there is none */
	char **unmeasured;   /* what was not measured, and why: sentences */
	size_t nr_unmeasured;
};

/* What the rules ask the curves for, beside what the panels do. In the curves of a story they stand one after
 * the other from first_finding_query on. */
extern const struct curves_query finding_query[];
extern const size_t nr_finding_queries;

/* Everything of the story but its findings is there. */
int findings_make(const struct analysis *s, struct findings **ret);
struct findings *findings_free(struct findings *f);
/* Members "findings", "advice" and "unmeasured" of the open object. */
void findings_json(struct json *j, const struct findings *f);
const char *findings_none(const struct analysis *s);	     /* what is said when there is none */
const char *finding_weight_name(enum finding_weight weight); /* "fine", "note", "warning", "serious" */
#endif
