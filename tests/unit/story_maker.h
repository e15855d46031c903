/* Stories for the tests of findings, filled by hand: every number is the test's, and what it does not set is
 * not known. Times of the run are seconds from its start, a point at every step. */
#ifndef STORY_MAKER_H
#define STORY_MAKER_H

#include "story/rule.h"

#define MAKER_NODES 8
#define MAKER_CGROUP "/slurm/job_7"
#define MIB 1048576.0
#define GIB 1073741824.0

struct story_maker {
	struct story story;
	struct summary summary, node[MAKER_NODES];
	struct process_table table;
	struct sheet sheet;
	struct sheet_node axis[MAKER_NODES];
	struct sheet_column column[NR_EVIDENCE + 1];
	struct stats stats;
	struct findings *found;
	double wall, step;
};

/* A finished run of exit code 0 on nodes with 8 CPUs and 16 GiB each, all of them the job's. */
void story_open(struct story_maker *m, size_t nodes, double wall, double step);
void story_close(struct story_maker *m);
/* The recording, or with one node the run. */
struct summary *story_part(struct story_maker *m, size_t node);
void story_set(struct story_maker *m, enum figure_id id, double value); /* of the run, and of its only node */
void story_text(struct summary *s, enum text_id id, const char *text);
void story_fact(struct summary *s, const char *name, const char *value);
/* A curve by what it is at each time; of a control group with its name. */
void story_curve(struct story_maker *m, enum evidence_id id, size_t node, const char *name,
	double (*value)(double t, const double *arg), const double *arg);
void story_flat(struct story_maker *m, enum evidence_id id, size_t node, const char *name, double value);
/* A counter that grows evenly. */
void story_ramp(struct story_maker *m, enum evidence_id id, size_t node, const char *name, double per_s);
/* A process with a curve of its memory. */
void story_process_curve(
	struct story_maker *m, int64_t pid, const char *name, double (*value)(double t, const double *arg));
struct process_row *story_process(struct story_maker *m, size_t node, int64_t pid, const char *name,
	double start, double end, double cpu);
struct summary_gpu *story_gpu(struct story_maker *m, const char *name, double util_mean, double util_max);
void story_p95(struct story_maker *m, double run, double node);

/* Finds; anew at every call. */
const struct finding *story_find(struct story_maker *m, const char *id); /* NULL: no such */
/* All of them with a space between, gravest first. */
const char *story_ids(struct story_maker *m);

#define assert_finds(m, id)                                                        \
	do {                                                                       \
		if (!story_find(m, id))                                            \
			fail_msg("%s is not found, but \"%s\"", id, story_ids(m)); \
	} while (0)
#define assert_finds_not(m, id)                                         \
	do {                                                            \
		const struct finding *found_ = story_find(m, id);       \
		if (found_)                                             \
			fail_msg("%s is found: %s", id, found_->title); \
	} while (0)
#define assert_says(text, words)                                             \
	do {                                                                 \
		if (!strstr(text, words))                                    \
			fail_msg("\"%s\" does not say \"%s\"", text, words); \
	} while (0)
#endif
