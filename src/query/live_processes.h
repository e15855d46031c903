/* The live processes of a recording and the sums over them, of the whole and of each group, kept up to date
 * by what each tick changed.
 *
 * A sum is never recomputed: when a row changes, its old contribution is taken out and the new one put in, so
 * a tick costs what changed in it. Contributions are integers; nothing drifts. */
#ifndef QUERY_LIVE_PROCESSES_H
#define QUERY_LIVE_PROCESSES_H

#include "query/ledger.h"
#include "query/census.h"
#include "query/counter_sum.h"
#include "query/walk.h"

/* clang-format off */
enum process_part { /* counters of a process: its own by enum used, then those of the children it waited for */
	PART_CHILDREN = NR_USED - 1,
#define CHILD_APART(id) PART_CHILD_##id,
#define CHILD_WITHIN(id)
#define CHILD_NOWHERE(id)
#define CHILD_SUM(id)
#define ROW(id, name, unit, children, ...) CHILD_##children(id)
	AMOUNTS(ROW)
#undef ROW
	NR_PARTS
};

enum process_column { /* after the parts: what levels are made of */
	COL_LEVELS = NR_PARTS - 1,
#define ROW(id, name, kind, metric, ...) IF_##metric(COL_##id,)
	LEVELS(ROW)
#undef ROW
	COL_SHARED,
	COL_SMAPS_RSS,
	COL_SMAPS_ANON,
	COL_SMAPS_DOUBT,
	COL_PSS,
	COL_PRIVATE_CLEAN,
	COL_PRIVATE_DIRTY,
	COL_PRIVATE_HUGE,
	COL_HWM,
	COL_SIGNALS_IGNORED,
	NR_PROCESS_COLUMNS
};
/* clang-format on */
_Static_assert(NR_PARTS <= 32 && NR_LEVELS <= 32, "masks of them have 32 bits");

/* A column of the recording, found by the metric's name. Values come out in ns, bytes and counts. */
struct cell_column {
	int set, col; /* -1: not recorded */
	double factor;
};

struct cell_column column_find(const struct schema *schema, const char *metric);
/* A cell in whole units, kept far from overflow whatever the file says. */
int64_t column_value(const struct cell_column *c, int64_t cell);

struct process_sums {		/* over the live processes of one line */
	int64_t part[NR_PARTS]; /* of the bound, and what resets, latecomers and changes of group correct */
	uint32_t part_seen;	/* mask: any process ever */
	int64_t level[NR_LEVELS];
	uint32_t level_nr[NR_LEVELS]; /* processes that contribute */
	uint32_t level_seen;	      /* mask: any process ever */
	int64_t one[NR_LEVELS];	      /* the most that any one process had */
	int64_t max_hwm_bytes;	      /* of any one process, as the kernel kept it; -1: not known */
	uint32_t nr;		      /* bound */
	uint64_t seen;
	uint64_t only_sampled; /* ended, and their last moments are known to no process of this line */
	uint64_t uncounted;    /* ended, and nothing of them is in the account */
	uint64_t io_unread;    /* bytes and calls of these are missing in it */
	/* Programs that ended and whose largest memory is not known; likewise, but what was waited for has it
	 * in its own. */
	uint64_t peak_unknown, peak_inherited;
	int64_t observed_cpu_ns;
};

/* Where the cells of a process stand. */
struct process_columns {
	int set;	/* -1: processes are not recorded */
	bool is_read;	/* something of them is */
	uint32_t parts; /* mask of those that can be known */
	struct cell_column column[NR_PROCESS_COLUMNS];
	/* By column of the set, masks of the parts that are made of it; of those that others are made of. */
	uint32_t parts_of[METRICS_MAX];
	uint64_t part_cols, level_cols, other_cols;
	bool estimates_pss, estimates_uss; /* processes not yet read count by estimate */
};

struct process_columns process_columns_of(const struct schema *schema);
/* What it has used itself, or its children. */
bool process_part(
	const struct process_columns *c, const int64_t *cell, uint64_t valid, unsigned part, int64_t *ret);
/* What a process holds, by the cells of its row: the mask of the levels that are known, and these. */
uint32_t process_levels(const struct process_columns *c, const int64_t *cell, uint64_t valid,
	int64_t level[static NR_LEVELS]);

struct live_processes {
	struct walk *walk; /* has the groups */
	struct process_columns at;
	struct live_process {
		uint32_t id, row; /* STORE_NO_ROW: not bound now */
		uint32_t pid, ppid;
		int64_t born_ns; /* 0: not known */
		bool late, ignores_sigchld;
		/* Its row of the table of processes, for what reads along: index + 1; 0: not looked for. */
		uint32_t place;
		bool anew;	       /* it was described, or bound: all of its cells are to be looked at */
		uint64_t groups, ever; /* masks: now, at any time */
		uint32_t part_seen;    /* mask: had a value at least once */
		uint32_t level_valid;
		bool had_pss;
		uint64_t since;			     /* ticks that there were before it */
		struct counter_track part[NR_PARTS]; /* it contributes the sum */
		int64_t from[NR_PARTS]; /* what it had when we first saw it, if that was before our time */
		/* By children since its account was read: it will be in there, or is already; of this, what
		 * certainly was not in there. */
		int64_t left[NR_PARTS], due[NR_PARTS];
		bool is_heir; /* something of it may be there */
		int64_t level[NR_LEVELS], peak[NR_LEVELS];
		uint32_t peak_seen; /* mask: levels that had a value at least once */
		int64_t hwm;	    /* of the program that it is now; -1: not known */
		int64_t execs;	    /* programs that it was before */
		bool peak_counted;  /* the largest memory of one of these is not known */
	} * process;
	uint32_t nr, cap; /* dense */
	uint32_t *by_row; /* row -> index + 1 */
	uint32_t nr_by_row;
	struct idmap by_id, by_pid;
	bool loose; /* after a loss: the unbound have not been given up yet */

	uint64_t beside[GROUPS_MOST]; /* masks of the other groups that a member of this one was in, too */
	struct process_sums line[ACCOUNTS_MOST];
	struct census census;
	bool tells_ends; /* the kernel told when each began and ended */
	uint64_t sigchld_ignored, pss_reads;
};

void live_init(struct live_processes *l, struct walk *walk);
void live_release(struct live_processes *l);
void live_bind(struct live_processes *l, const struct schema *schema);
static inline bool live_is_of(const struct live_processes *l, const struct store_record *record)
{
	return l->at.set >= 0 && record->set == (uint32_t)l->at.set;
}

/* A process was described. */
int live_join(struct live_processes *l, const struct store_record *record);
/* After a tick: its touched rows. */
void live_tick(struct live_processes *l);
int live_gone(struct live_processes *l, uint32_t id, int64_t time_ns, const struct pairs *last);
/* NULL: no live process has this id. Valid until one comes or goes. */
const struct live_process *live_find(const struct live_processes *l, uint32_t id);
/* The process that this row of the table is of; NULL: none that is known. */
static inline struct live_process *live_in_row(
	const struct live_processes *l, const struct table *t, uint32_t row)
{
	struct live_process *p =
		row < l->nr_by_row && l->by_row[row] ? &l->process[l->by_row[row] - 1] : NULL;

	return p && t->id[row] == p->id ? p : NULL;
}

/* What it used while it was recorded. */
int64_t process_used(const struct live_process *p, enum used used);
void live_lost(struct live_processes *l);
/* The recording is over: what is not known of those still alive is counted. */
void live_finish(struct live_processes *l);
#endif
