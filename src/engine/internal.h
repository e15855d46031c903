/* The engine's state, shared by its files: select.c (what is recorded), members.c (processes that join and
 * leave, and what they used), events.c (the kernel's events), tick.c (one sample, tiers, budget), engine.c
 * (the rest). */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "collect/process.h"
#include "engine/engine.h"
#include "target/job_number.h"
#include "target/kernel.h"
#include "target/scope.h"
#include "target/tree.h"

#define SETS_MAX COLLECTORS_MAX
#define CMDLINE_MAX 4096

struct set {
	const struct collector *collector;
	const struct metric *metric; /* the collector's rows, then the planned ones */
	size_t nr_metrics;
	struct plan plan;
	struct metric *rows; /* of the two together, where there are planned ones; else NULL */
	struct collect_context ctx;
	struct table table;
	void *state;
	bool usable; /* probed and opened */
	bool asked;  /* the user named rows of it */
	uint32_t next_id;
	int64_t next_ns, next_medium_ns; /* when its tier is due, and rows of the medium tier */
	int64_t sampled_ns, medium_ns;	 /* when they were read */
};

struct slot_id {
	uint32_t slot, id;
};

struct engine {
	struct env *env;
	struct engine_options opt;
	struct sink sink;
	struct schema *schema;
	struct set set[SETS_MAX];
	struct table *table[SETS_MAX];
	uint32_t nr_sets;      /* described so far */
	struct choice *choice; /* of rows; NULL when all sets are described */
	int64_t rest_ns;       /* when the rest is due, ENV_MONOTONIC */
	uint32_t process_set;
	struct processes *processes;
	struct tree tree;
	struct feed feed;
	struct scopes *scopes; /* NULL: the roots' trees are all there is */
	int64_t opened_ns;     /* processes that began before this are late */
	int64_t list_ns,
		rescan_ns; /* when scopes are asked for their lists, and all processes looked at, again */

	struct connector *connector;
	struct taskstats *taskstats;
	struct own_cgroup *cgroup;
	char job_group[1024]; /* what feed.job_group points at */
	char helpers[64];

	int64_t start_ns;    /* ENV_MONOTONIC at time 0 */
	int64_t over_ns;     /* where time ends; 0: it goes on */
	int64_t deadline_ns; /* of the next tick */
	int64_t drain_ns;    /* next reading of events */
	int64_t drain_every_ns;
	int64_t look_ns; /* when members are looked at again between ticks */
	int64_t flushed_ns;
	int64_t wall_offset_ns; /* REALTIME - MONOTONIC, to notice steps of the clock */
	uint64_t tick;		/* number of the next tick */
	uint64_t taken;
	unsigned stretch; /* ticks are taken at every stretch-th deadline */
	unsigned ahead;	  /* deadlines before the next tick that are left out, and counted already */

	/* Budget. */
	int64_t tokens_ns;	   /* what the slow tier may spend */
	int64_t self_cpu_ns;	   /* at the last tick */
	int64_t smaps_ns;	   /* spent on smaps since the last tick */
	int64_t page_ns;	   /* what a page of smaps costs, in 1/1024 ns, learned */
	int64_t window_ns;	   /* start of the window in which the budget is judged */
	int64_t window_cpu_ns;	   /* spent in it, smaps not counted */
	int64_t window_details_ns; /* of that, for the members' details */
	uint64_t window_taken;	   /* ticks taken when it began */
	uint64_t window_edges;	   /* ticks taken since then at edges: these have a limit of their own */
	bool hears;		   /* the job has told something: a silent one costs nothing */
	int64_t worked_cpu_ns;	   /* CPU time of this thread when the engine's last work was done */
	int64_t aside_ns;	   /* spent since the last tick on what the job tells */
	int64_t edge_tokens_ns;	   /* what samples at the edges of phases may spend */
	int64_t edge_cost_ns;	   /* what the last of them cost */
	int64_t edge_ns;	   /* when the tokens were counted last */
	int64_t taken_ns;	   /* when the last sample was taken */
	bool at_edge;		   /* the present sample is one */
	int64_t number_ns;	   /* when the job told a number last; 0: never */
	int64_t number_due_ns;	   /* when a sample is to be taken of it; 0: not at all */
	int64_t details_ns;	   /* what the details of a tick may take; 0: what the interval allows */
	unsigned clock_turns;	   /* the clocks of sleepers are taken at every so many ticks */
	int self_statm;
	int64_t reshared; /* up to which sharers were read again */

	bool root_ended;
	int root_status;
	pid_t root;
	int64_t copy_kib; /* the peak of the job's process before its exec; INT64_MAX: not known */
	char program[16]; /* name of the program it became, cut as the kernel cuts names */
	bool as_started;  /* it was that program when it was first read */
	bool need_scan;
	uint64_t unasked;	 /* became another program and ended before the scopes could be asked */
	bool awaits;		 /* a member is known from its exit record alone */
	bool last_tick;		 /* everything is read once more */
	uint32_t nr_opened;	 /* sets whose collectors were asked to open */
	bool gated;		 /* collectors were asked before the job's exec */
	unsigned names_read;	 /* in this reading of events */
	unsigned commands_read;	 /* since the last look */
	bool children_grew;	 /* in this tick: a member has waited for children, or ignores SIGCHLD */
	bool children_grew_last; /* in the tick before */
	int64_t unsuspected;	 /* unknown PIDs of earlier ticks that were not suspected to be the job's */
	int64_t deferred_last;	 /* feed.reads_deferred at the tick before */
	int64_t unknown_ends;	 /* exit records with unknown parents, not yet suspected to be the job's */
	uint32_t *departing;	 /* scratch of a tick: slots */
	struct slot_id
		*lingering; /* ended, and not waited for yet when last checked, in the order of their exits */
	uint32_t nr_lingering;
	struct slot_id *owing; /* parents to be read once all processes that ended together are removed */
	uint32_t nr_owing;
	bool accounts_moved;	 /* in this tick a member's account of its children was found changed */
	int64_t heard_ns;	 /* where there are exit records: ends before this moment are known */
	bool final_tick;	 /* the last tick of an attached recording */
	uint32_t *dirty;	 /* scratch of the slow tier */
	struct slot_id *missing; /* scratch of a tick: members that were found gone */
	uint32_t nr_missing;
	int64_t spread_ns;  /* what reading the totals of a tick usually takes */
	uint32_t next_read; /* id of the member whose details are read first; 0: the first of all */
	bool opening; /* the first tick could not read all members in full; the rest follows in the next */

	/* Scratch for identities and exits. */
	struct pairs pairs;
	struct pair pair_memory[40];
	char pair_text[1024];
	char cmdline[CMDLINE_MAX];
	char groups[2048]; /* names */
	size_t groups_len;
	char exe[1024];
};

static inline int64_t engine_time(const struct engine *e, int64_t monotonic_ns)
{
	int64_t at = e->over_ns ? MIN(monotonic_ns, e->over_ns) : monotonic_ns;

	return at > e->start_ns ? at - e->start_ns : 0;
}

static inline bool still_here(const struct engine *e, const struct slot_id *m)
{
	return e->tree.member[m->slot].id == m->id &&
		tree_find(&e->tree, e->tree.member[m->slot].pid) == m->slot;
}

/* engine.c: the node's collectors are opened in a tick, while the job runs: it does not wait for them.
 * Those that are described and were not opened yet. */
void collectors_open(struct engine *e);
/* Describes the sets that are not described yet, if there are any, and gives the schema to the sink. */
void engine_describe_rest(struct engine *e);

/* select.c */
int select_rows(struct engine *e, char *err, size_t err_size);
/* The rest of the sets, when e->choice is there. Drops the choice. */
int select_rest(struct engine *e, char *err, size_t err_size);
bool choice_has(const struct choice *choice, size_t collector); /* any row of it */
void choice_drop(struct engine *e);

/* announce.c */
void announce_begin(struct engine *e); /* e->pairs are empty */
/* Adds their names, separated by NUL, behind those of the pairs that were added before. */
void announce_groups(struct engine *e, const char *key, uint64_t groups);
void member_announce(struct engine *e, uint32_t slot);

/* members.c */
void member_joined(void *engine, uint32_t slot);
void member_regrouped(void *engine, uint32_t slot, uint64_t before);
/* It has become another program: asks the scopes again. False when it is no member any more. */
bool member_reask(struct engine *e, uint32_t slot);
/* It is in the groups of this user from now on, and in those of no other. */
void member_follow_user(struct engine *e, uint32_t slot, uint32_t uid);
/* Drops a process that was never wanted and was not announced. */
void member_forget(struct engine *e, uint32_t slot);
/* It became another program after it was read: the peak memory that was read is not that of the new
 * program. */
void member_succeeded(struct engine *e, uint32_t slot);
/* Counts of the groups, by the mask. */
#define for_each_group(mask, g)                                                                          \
	for (uint64_t mask_##g = (mask), g; mask_##g && (g = (uint64_t)__builtin_ctzll(mask_##g), true); \
		mask_##g &= mask_##g - 1)
/* Reads it; the first time it is put into its row and announced. 0, or -ESRCH. */
int member_sample(struct engine *e, uint32_t slot, int64_t now, bool final);
/* In the first tick, when there is no time for all: only the values that are added up are read, and it is
 * announced by its name. Its identity and details are read in one of the next ticks. 0, or -ESRCH. */
int member_meet(struct engine *e, uint32_t slot, int64_t now);
/* There is no time to read it: puts only its CPU time, as taken for this tick. True when that has changed. */
bool member_put_clock(struct engine *e, uint32_t slot);
/* It is gone, and we did not reap it. */
void member_depart(struct engine *e, uint32_t slot, const char *how);
/* After members have departed: reads parents of which it is not known whether they waited for them. */
void members_settle(struct engine *e);
/* The recording ends: members that have ended and were not waited for yet leave with their exit records,
 * which came before their end could be seen. */
void members_dismiss_dead(struct engine *e);

/* events.c */
bool member_read_stat(struct engine *e, pid_t pid, struct process_facts *ret);
void member_check_inside(struct engine *e, const struct member *m);
void events_open(struct engine *e);
/* We have started the job: if the kernel did not report its fork, no events arrive at all. */
void events_prove(struct engine *e, pid_t job);
/* The job goes on: has the kernel drop the events that we do not use. */
void events_filter(struct engine *e);
void events_close(struct engine *e);
void events_drain(struct engine *e);
/* Only reads the events, so that it is known which members had not ended yet. */
void events_hear(struct engine *e);

/* tick.c */
void find_new_members(struct engine *e);
/* Adds the processes that the scopes have in lists of their own. */
void list_members(struct engine *e);
/* One sample. `due`: it is the tick of a deadline, and may be late. */
void tick_take(struct engine *e, bool due);
/* One between deadlines, where that is allowed. */
bool tick_take_edge(struct engine *e);
int64_t tick_edge_least(const struct engine *e); /* it takes none before that time */
/* The engine has worked. What this thread spends from now on may be for what the job tells (engine_heard). */
void budget_worked(struct engine *e);
#endif
