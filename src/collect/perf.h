/* What the files of the collector `perf` share: perf.c (rows, cells), perf_plan.c (rows for -e and -m),
 * perf_tasks.c (for which threads counters are open). */
#ifndef COLLECT_PERF_H
#define COLLECT_PERF_H

#include "collect/collector.h"
#include "perf/counter.h"

enum {
	PERF_STATIC = 10,  /* events that have rows on every machine */
	PERF_PLANNED = 32, /* others, at most: every one takes two columns */
	PERF_EVENTS = PERF_STATIC + PERF_PLANNED,
	PERF_PIECES = 96, /* counters of a task, at most */
	PERF_BOXES = 256, /* of one event of the node */
};

/* The static rows: the time enabled, then for each event its count and its time on a counter. */
enum { PERF_ENABLED, PERF_FIRST, PERF_ROWS = PERF_FIRST + 2 * PERF_STATIC };

extern const char
	*const perf_static_event[PERF_STATIC]; /* names, as in the rows and for perf_event_boxes() */
extern const size_t perf_task_clock;	       /* among them: counted with any other */

/* ---- perf_plan.c ---- */

/* A row that was asked for, with what counts for it: several of the kernel's events where one number takes
 * them all (boxes, kinds of cores). */
struct planned {
	struct perf_event *event; /* none: it cannot be counted here, and `reason` says why */
	unsigned nr;
	char name[64], running_name[72], help[640];
	char reason[512];
	bool of_package;
	double factor;	    /* cell = count x factor */
	int value, running; /* rows, counted from the first planned one; running -1: none */
};

struct perf_plan {
	struct planned planned[PERF_PLANNED];
	unsigned nr;
	struct metric metric[2 * PERF_PLANNED];
	size_t nr_metrics;
	struct plan_formula *formula;
	size_t nr_formulas;
	struct planned_text {
		char name[64], help[512], expression[512];
	} * *text; /* of the formulas */
};

int perf_plan(struct env *env, struct plan *plan, char *err, size_t err_size);
extern const char *const perf_words[];

/* ---- perf_tasks.c ---- */

/* One of the kernel's events, counted for every covered thread. */
struct perf_piece {
	struct perf_event event;
	int error;	   /* why it is not counted; 0: it is, or there was no process yet */
	bool opened;	   /* at least once */
	struct count gone; /* of counters that are closed */
	struct count sum;  /* of all, as of the last reading */
};

/* A process that got counters of its own, and with it all that inherit them. */
struct perf_tasks_unit;

struct tasks {
	struct env *env;
	struct perf_piece piece[PERF_PIECES];
	unsigned nr_pieces;
	bool user_only;
	bool keeps_threads; /* the kernel cannot limit inheritance to threads: nothing is inherited */
	int denied, full;   /* a process was left out for this reason */
	/* Threads that have counters: [max_threads][nr_pieces], and lists of them. */
	struct counter *counter;
	uint32_t *next;
	uint32_t free, high, max_threads;
	struct perf_tasks_unit *unit; /* by ascending id */
	uint32_t nr_units, pass, last_id;
	pid_t command; /* started by us: covered before its first instruction; 0: none */
	pid_t *scratch;
	uint32_t nr_scratch, at_scratch;
};

/* Pieces are filled in before; no memory is taken for those that cannot be counted at all. */
int tasks_init(struct tasks *t, struct env *env, unsigned max_files);
void tasks_release(struct tasks *t);
/* Our command, which has not executed anything yet. */
void tasks_command(struct tasks *t, pid_t pid, bool children);
/* Opens counters for new processes and closes those of processes that are gone. */
void tasks_follow(struct tasks *t, struct collect_context *ctx);
void tasks_read(struct tasks *t);
#endif
