/* Stories for the tests of findings, filled by hand: every number is the test's, and what it does not set is
 * not known. Times of the run are seconds from its start, a point at every step. */
#ifndef ANALYSIS_MAKER_H
#define ANALYSIS_MAKER_H

#include "analysis/rule.h"

#define MAKER_NODES 8
#define MAKER_CGROUP "/slurm/job_7"
#define MIB 1048576.0
#define GIB 1073741824.0

struct analysis_maker {
	struct analysis analysis;
	struct summary summary, node[MAKER_NODES];
	struct process_table table;
	struct curves curves;
	struct curves_node axis[MAKER_NODES];
	struct curves_column column[NR_EVIDENCE + 1];
	struct stats stats;
	struct findings *found;
	double wall, step;
};

/* A finished run of exit code 0 on nodes with 8 CPUs and 16 GiB each, all of them the job's. */
void analysis_open(struct analysis_maker *m, size_t nodes, double wall, double step);
void analysis_close(struct analysis_maker *m);
/* The recording, or with one node the run. */
struct summary *analysis_part(struct analysis_maker *m, size_t node);
void analysis_set(
	struct analysis_maker *m, enum figure_id id, double value); /* of the run, and of its only node */
void analysis_text(struct summary *s, enum text_id id, const char *text);
void analysis_fact(struct summary *s, const char *name, const char *value);
/* A curve by what it is at each time; of a control group with its name. */
void analysis_curve(struct analysis_maker *m, enum evidence_id id, size_t node, const char *name,
	double (*value)(double t, const double *arg), const double *arg);
void analysis_flat(
	struct analysis_maker *m, enum evidence_id id, size_t node, const char *name, double value);
/* A counter that grows evenly. */
void analysis_ramp(
	struct analysis_maker *m, enum evidence_id id, size_t node, const char *name, double per_s);
/* A process with a curve of its memory. */
void analysis_process_curve(struct analysis_maker *m, int64_t pid, const char *name,
	double (*value)(double t, const double *arg));
struct process_row *analysis_process(struct analysis_maker *m, size_t node, int64_t pid, const char *name,
	double start, double end, double cpu);
struct summary_gpu *analysis_gpu(
	struct analysis_maker *m, const char *name, double util_mean, double util_max);
void analysis_p95(struct analysis_maker *m, double run, double node);

/* Finds; anew at every call. */
const struct finding *analysis_find(struct analysis_maker *m, const char *id); /* NULL: no such */
/* All of them with a space between, gravest first. */
const char *analysis_ids(struct analysis_maker *m);

#define assert_finds(m, id)                                                           \
	do {                                                                          \
		if (!analysis_find(m, id))                                            \
			fail_msg("%s is not found, but \"%s\"", id, analysis_ids(m)); \
	} while (0)
#define assert_finds_not(m, id)                                         \
	do {                                                            \
		const struct finding *found_ = analysis_find(m, id);    \
		if (found_)                                             \
			fail_msg("%s is found: %s", id, found_->title); \
	} while (0)
#define assert_says(text, words)                                             \
	do {                                                                 \
		if (!strstr(text, words))                                    \
			fail_msg("\"%s\" does not say \"%s\"", text, words); \
	} while (0)
#endif
