/* What the launcher of a run of many nodes says of it: run.json in the run's directory (docs/format.md). */
#ifndef QUERY_RUN_ABOUT_H
#define QUERY_RUN_ABOUT_H

#include "base/buf.h"

enum about_text { /* each a key of run.json */
	ABOUT_JOB,
	ABOUT_SCHEDULER,
	ABOUT_ARRAY_JOB,
	ABOUT_ARRAY_TASK,
	ABOUT_NAME,
	ABOUT_USER,
	ABOUT_LAUNCHER,
	NR_ABOUT_TEXTS
};

struct run_about {
	char *text[NR_ABOUT_TEXTS]; /* "" when not said */
	char **node;		    /* expected, in the scheduler's order; each once */
	size_t nr_nodes;
	struct about_missing {
		char *node, *why; /* why: "" when not said */
	} * missing;
	size_t nr_missing;
	struct about_label {
		char *key, *value;
	} * label;
	size_t nr_labels;
	char *command; /* argv, NUL-joined; NULL: there is none */
	size_t command_len;
	int64_t start_ns, end_ns; /* by the launcher's clock; 0: not said, or not yet */
	int64_t exit_status;	  /* -1: not said */
};

/* -ENOENT: there is none. -EBADMSG and others: `why` (unless NULL) has half a sentence: "is damaged". */
int about_read(const char *directory, struct run_about **ret, struct buf *why);
struct run_about *about_free(struct run_about *a);

/* Whether a job of that name is meant: its own number, or that of its array with the task's ("4700_11"). */
bool about_is_job(const struct run_about *a, const char *job);
/* Its name to people: "4711", "4700_11"; "" when not said. The text lives as long as the other. */
const char *about_job(const struct run_about *a, struct buf *memory);
#endif
