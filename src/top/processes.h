/* The table of processes: which there are at the moment that is looked at, in which order, and which of them
 * are shown. Identities are those of the recording, so a PID that was given out again is another process. */
#ifndef TOP_PROCESSES_H
#define TOP_PROCESSES_H

#include "query/process_table.h"
#include "top/reading.h"

/* In the order of the columns. */
enum process_order_by {
	BY_PID,
	BY_USER,
	BY_STATE,
	BY_CPU,
	BY_TIME,
	BY_MEMORY, /* PSS, else RSS */
	BY_RSS,
	BY_USS,
	BY_READ,
	BY_WRITE,
	BY_GPU,
	BY_GPU_MEMORY,
	BY_THREADS,
	BY_AGE,
	BY_COMMAND,
	NR_BY
};

struct process_line {
	uint32_t id;
	int64_t pid, ppid, uid;
	const char *name, *command, *user; /* borrowed until the next processes_set(); may be NULL */
	size_t name_len, command_len;
	double value[NR_BY]; /* NAN: not known; of BY_USER the UID, of BY_STATE the letter */
	bool estimated;	     /* the memory is */
	bool late;	     /* it lived before it was recorded */
	bool ended;
	double end_s;
	int status; /* of one that ended; -1: not known */
	/* Set by processes_arrange(). */
	unsigned depth;
	bool last_child, folded, has_children, kin; /* kin: shown only because a descendant is */
	uint64_t rails;				    /* by depth: a line goes on there */
	uint32_t parent;			    /* index + 1; 0: none */
};

struct top_table {
	struct process_line *line;
	uint32_t nr, cap;
	uint32_t *shown, nr_shown, cap_shown; /* indices of lines, from the top */
	/* How. */
	bool tree, inverted, full_commands;
	int threads; /* the column of them: 1: is shown, -1: is not, 0: where there is room */
	enum process_order_by by;
	bool sorted; /* the user chose an order: children of one parent have it, too */
	char filter[80], user[40];
	struct idmap tagged, folded; /* by id */
	/* The rank that each had when they were sorted last: orders change every few seconds only. */
	struct idmap rank;
	double sorted_s;
	bool sort_now;
	/* Ended ones. */
	struct process_table *all; /* NULL: not asked for */
};

void processes_init(struct top_table *p);
void processes_release(struct top_table *p);
/* Takes the processes of the tick, and those that had ended by then where they are asked for. -ENOMEM. */
int processes_set(
	struct top_table *p, const struct snapshot *now, double time_s, uint64_t groups, const char *group);
/* Filters, sorts, and puts children below their parents. -ENOMEM. */
int processes_arrange(struct top_table *p, double time_s);
/* Index in `shown` of the process; nr_shown: it is not there. */
uint32_t processes_find(const struct top_table *p, uint32_t id);
/* The next one whose name or command has the text, after this place; nr_shown: there is none. */
uint32_t processes_search(const struct top_table *p, const char *text, uint32_t after);
bool processes_is_tagged(const struct top_table *p, uint32_t id);
void processes_tag(struct top_table *p, uint32_t id);
void processes_fold(struct top_table *p, uint32_t id, bool fold);
#endif
