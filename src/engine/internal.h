/* The engine's state, shared by its files: select.c (what is recorded), members.c (who joins, leaves and what
 * they used), events.c (what the kernel tells), tick.c (one sample, tiers, budget), engine.c (the rest). */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "collect/process.h"
#include "engine/engine.h"
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
	bool asked;  /* the user named rows of it, rather than to get what there is */
	uint32_t next_id;
	int64_t next_ns, next_medium_ns; /* when its tier is due, and rows of the medium tier */
	int64_t sampled_ns;
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
	int64_t opened_ns;     /* who was born before is late */
	int64_t list_ns,
		rescan_ns; /* when scopes are asked for their lists, and all processes looked at, again */

	struct connector *connector;
	struct taskstats *taskstats;
	struct own_cgroup *cgroup;
	char helpers[64];

	int64_t start_ns;    /* ENV_MONOTONIC at time 0 */
	int64_t deadline_ns; /* of the next tick */
	int64_t drain_ns;    /* next hearing of events */
	int64_t drain_every_ns;
	int64_t look_ns; /* when members are looked at again between ticks */
	int64_t flushed_ns;
	int64_t wall_offset_ns; /* REALTIME - MONOTONIC, to notice steps of the clock */
	uint64_t tick;		/* number of the next tick */
	uint64_t taken;
	unsigned stretch; /* ticks are taken at every stretch-th deadline */

	/* Budget. */
	int64_t tokens_ns;	   /* what the slow tier may spend */
	int64_t self_cpu_ns;	   /* at the last tick */
	int64_t smaps_ns;	   /* spent on smaps since the last tick */
	int64_t page_ns;	   /* what a page of smaps costs, in 1/1024 ns, learned */
	int64_t window_ns;	   /* start of the window in which the budget is judged */
	int64_t window_cpu_ns;	   /* spent in it, smaps not counted */
	int64_t window_details_ns; /* of that, for the members' details */
	uint64_t window_taken;	   /* ticks taken when it began */
	int64_t details_ns;	   /* what the details of a tick may take; 0: what the interval allows */
	unsigned clock_turns;	   /* the clocks of sleepers are taken at every so many ticks */
	int self_statm;
	int64_t reshared; /* up to which sharers were read again */

	bool root_ended;
	int root_status;
	pid_t root;
	int64_t copy_kib; /* the peak of the job's process before its exec; INT64_MAX: not known */
	char program[16]; /* what it became, as the kernel cuts names */
	bool as_started;  /* when it was first read it was that */
	bool need_scan;
	uint64_t unasked;	 /* became another program and ended before the scopes could be asked */
	bool awaits;		 /* a member is known from its exit record alone */
	bool last_tick;		 /* everything is read once more */
	uint32_t nr_opened;	 /* sets whose collectors were asked to open */
	bool gated;		 /* collectors were asked before the job's exec */
	unsigned names_read;	 /* in this hearing */
	unsigned commands_read;	 /* since the last look */
	bool children_grew;	 /* in this tick: a member has waited for children, or drops them */
	bool children_grew_last; /* in the tick before */
	int64_t unsuspected;	 /* strangers of the ticks before that were not taken for the job's */
	int64_t deferred_last;	 /* feed.reads_deferred at the tick before */
	int64_t unknown_ends; /* exit records, not yet taken for members', of processes with unknown parents
			       */
	uint32_t *departing;  /* scratch of a tick: slots */
	struct slot_id
		*lingering; /* ended, and not waited for yet when they were last asked, in this order */
	uint32_t nr_lingering;
	struct slot_id *owing; /* parents to be read when all that left together have left */
	uint32_t nr_owing;
	bool accounts_moved; /* what a member has of its children was first read as it is now, in this tick */
	int64_t heard_ns;    /* who ended before this moment has been heard of, where exit records tell */
	bool final_tick;     /* the last tick of an attached recording */
	uint32_t *dirty;     /* scratch of the slow tier */
	struct slot_id *missing; /* scratch of a tick: who was found gone */
	uint32_t nr_missing;
	int64_t spread_ns;  /* what reading the totals of a tick usually takes */
	uint32_t next_read; /* id of the member whose details are read first; 0: the first of all */
	bool opening;	    /* the first tick could not read all of everyone; the rest follows in the next */

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
	return monotonic_ns > e->start_ns ? monotonic_ns - e->start_ns : 0;
}

static inline bool still_here(const struct engine *e, const struct slot_id *m)
{
	return e->tree.member[m->slot].id == m->id &&
		tree_find(&e->tree, e->tree.member[m->slot].pid) == m->slot;
}

/* engine.c: the node's collectors are opened in a tick, while the job runs: it does not wait for them.
 * Those that are described and were not opened yet. */
void collectors_open(struct engine *e);
/* Describes the sets that are not described yet, if there are any, and tells the sink. */
void engine_describe_rest(struct engine *e);

/* select.c */
int select_rows(struct engine *e, char *err, size_t err_size);
/* The rest of the sets, when e->choice is there. Drops the choice. */
int select_rest(struct engine *e, char *err, size_t err_size);
bool choice_has(const struct choice *choice, size_t collector); /* any row of it */
void choice_drop(struct engine *e);

/* announce.c */
void announce_begin(struct engine *e); /* e->pairs are empty */
/* Adds their names, parted by NUL, which stand behind those of the pairs that were added before. */
void announce_groups(struct engine *e, const char *key, uint64_t groups);
void member_announce(struct engine *e, uint32_t slot);

/* members.c */
void member_joined(void *engine, uint32_t slot);
void member_regrouped(void *engine, uint32_t slot, uint64_t before);
/* It has become another program: is it still wanted, and as what? False when it is a member no more. */
bool member_reask(struct engine *e, uint32_t slot);
/* It is in the groups of this user from now on, and in those of no other. */
void member_follow_user(struct engine *e, uint32_t slot, uint32_t uid);
/* It was never what we are looking for, and nobody has heard of it. */
void member_forget(struct engine *e, uint32_t slot);
/* It became another program after it was read: what was read of its largest memory is not that one's. */
void member_succeeded(struct engine *e, uint32_t slot);
/* Counts of the groups, by the mask. */
#define for_each_group(mask, g)                                                                          \
	for (uint64_t mask_##g = (mask), g; mask_##g && (g = (uint64_t)__builtin_ctzll(mask_##g), true); \
		mask_##g &= mask_##g - 1)
/* Reads it; the first time it is put into its row and announced. 0, or -ESRCH. */
int member_sample(struct engine *e, uint32_t slot, int64_t now, bool final);
/* In the first tick, when there is no time for all: what is added up is read, and it is announced by its
 * name. Who it is and its details are read in one of the next ticks. 0, or -ESRCH. */
int member_meet(struct engine *e, uint32_t slot, int64_t now);
/* There is no time to read it: its CPU time alone, as taken for this tick. Whether it has moved. */
bool member_put_clock(struct engine *e, uint32_t slot);
/* It is gone without our reaping it. */
void member_depart(struct engine *e, uint32_t slot, const char *how);
/* After some have departed: parents of which it is not known whether they waited for them are read. */
void members_settle(struct engine *e);
/* The recording ends: who has ended and was not waited for yet leaves with what the kernel told of its end,
 * which it did before the end could be seen. */
void members_dismiss_dead(struct engine *e);

/* events.c */
bool member_read_stat(struct engine *e, pid_t pid, struct process_facts *ret);
void member_check_inside(struct engine *e, const struct member *m);
void events_open(struct engine *e);
/* We have started the job: the kernel must have told of it, or it tells nothing. */
void events_prove(struct engine *e, pid_t job);
/* The job goes on: the kernel shall keep to itself what we have no use for. */
void events_filter(struct engine *e);
void events_close(struct engine *e);
void events_drain(struct engine *e);
/* Only hears, so that it is known who had not ended yet. */
void events_hear(struct engine *e);

/* tick.c */
void find_new_members(struct engine *e);
/* Takes in whom the scopes know by lists of their own. */
void list_members(struct engine *e);
/* One sample. `due`: it belongs to the deadline, and may be late. */
void tick_take(struct engine *e, bool due);
#endif
