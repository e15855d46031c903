/* The core of the recorder: ticks at absolute deadlines, members, tiers and the budget. It reads through an
 * env and passes what it found to a sink; it knows neither recordings nor screens. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/sink.h"
#include "env/env.h"
#include "metric/schema.h"

#include <sys/types.h>

struct own_cgroup;
struct job_number;
struct scopes;
struct plan_formula;
struct redact;
struct engine;

enum { HELP_CONNECTOR = 1, HELP_TASKSTATS = 2, HELP_CGROUP = 4 };

struct engine_options {
	int64_t interval_ns;
	bool interval_is_order; /* asked for by the user: the budget may not stretch it */
	int64_t flush_ns;
	double budget; /* share of one core */
	bool children;
	unsigned help; /* HELP_*: what of the kernel's help may be used */
	bool attach;   /* the processes were not started by us */
	/* The node's sets are described and opened when the job has run for this long: a shorter job does not
	 * need them. 0: at once. If a set was asked for by name, all of them are opened at once.
	 */
	int64_t rest_ns;
	uint32_t max_members;
	unsigned max_files;	    /* descriptors we may have open in all */
	const char *const *metrics; /* words of -m */
	size_t nr_metrics;
	const char *const *events; /* of -e, one each */
	size_t nr_events;
	struct redact *redact; /* secrets in command lines; borrowed. NULL: nothing is blanked */
	struct scopes *scopes; /* targets beside the roots, and the groups; borrowed. NULL: none */
};

/* Chooses rows, asks every collector whether it can work here, and makes the schema. err (at least 256 bytes)
 * gets a message for people. Takes nothing. */
int engine_new(struct env *env, const struct engine_options *options, struct engine **ret, char *err,
	size_t err_size);
struct engine *engine_free(struct engine *e);
uint32_t engine_max_members(const struct engine *e);
/* Without the node's sets as long as these are not described (rest_ns); the sink gets the whole schema. */
const struct schema *engine_schema(const struct engine *e);
bool engine_is_whole(const struct engine *e);
/* The name of a set that is not described yet; NULL when there are no more. */
const char *engine_unread(const struct engine *e, size_t i);
/* What can be made of planned rows (collect/collector.h); NULL when there are no more. */
const struct plan_formula *engine_formula(const struct engine *e, size_t i);
/* The sets of which rows were asked for by name; NULL when there are no more. */
const char *engine_asked(const struct engine *e, size_t i);

/* Opens what will be read, and those helpers of the kernel that are allowed and available. */
int engine_open(struct engine *e, const struct sink *sink);
/* Time 0 of the recording is now: just before the job starts. */
void engine_zero(struct engine *e);
/* The kernel's helpers in use, with commas ("connector,taskstats"); "none" when there is none. */
const char *engine_helpers(const struct engine *e);
void engine_use_cgroup(struct engine *e, struct own_cgroup *group); /* borrowed */
void engine_count_bytes(struct engine *e, uint64_t written);

/* Whether a collector must be there before the job's first instruction; then the command waits for this,
 * which is called when it has its PID and has executed nothing. */
bool engine_wants_gate(const struct engine *e);
void engine_before_exec(struct engine *e, pid_t pid);

/* Leaves a process of our own out of the job. */
void engine_leave_out(struct engine *e, pid_t pid);
void engine_leave_out_too(struct engine *e, pid_t pid); /* further ones, of which up to eight are kept */
/* Roots of the tree, before the first tick, with the groups they are in (a mask; 1 without scopes). `ours`:
 * we are its parent. */
int engine_add_root(struct engine *e, pid_t pid, bool ours, uint64_t groups);
/* The most memory that the command's process had before its exec, as a copy of us (negative: not known), and
 * the program that it became then. */
void engine_set_copy(struct engine *e, int64_t kib, const char *program);
/* Of an attached tree: all that is there already. */
int engine_scan(struct engine *e);
/* Looks for members without taking a sample: while none has come yet. */
void engine_seek(struct engine *e);
/* What the job may use; 0: not known. Before the first tick. */
void engine_set_limits(struct engine *e, double cpus, double memory_bytes);
/* The control group of the batch job, of which those of its steps are parts. Before the first tick. */
void engine_set_job_group(struct engine *e, const char *group);
pid_t engine_root(const struct engine *e); /* the first of all members; 0: none yet */

/* The first sample, right after the start. */
void engine_tick(struct engine *e);
/* Reads the kernel's events; reaps our children. To be called when SIGCHLD came and between ticks. */
void engine_reap(struct engine *e);
void engine_event(struct engine *e, const char *kind, const char *key, const char *value);
/* The same with any data; in the order of time. */
void engine_tell(struct engine *e, const char *kind, const struct pairs *data);
/* A number that the job tells: the value of its metric from the next tick on. Where none was told for an
 * interval that is a tick of its own (engine_next()), as at an edge. */
void engine_number(struct engine *e, const struct job_number *n);
/* What all of them are called, as the recording has it (collect/app.h); NULL: there are none. And how many
 * were told that have no metric. */
const char *engine_told(const struct engine *e, uint64_t *ret_left_out);
/* A phase of the job begins or ends now: takes a sample between deadlines, unless one was just taken or is
 * due soon, or the budget has no room for it. */
void engine_edge(struct engine *e);
/* The command has read what the job tells. Its cost since the engine's last work is not judged by the budget:
 * it has limits of its own, and fewer ticks would not make it less. */
void engine_heard(struct engine *e);
void engine_flush(struct engine *e);

/* When the loop must call again: the next tick or the next reading of events, ENV_MONOTONIC. */
int64_t engine_next(const struct engine *e);
/* Does what is due at this moment: a tick, or a drain. */
void engine_due(struct engine *e);
/* Time passed in which ticks were not wanted (we were stopped with the job): they are not missed. */
void engine_resumed(struct engine *e);
/* A sample that reads everything once more: a root has ended. */
void engine_last_tick(struct engine *e);
/* The recording ends now: what is told and sampled after this call has this time. */
void engine_over(struct engine *e);
/* As engine_last_tick(), at the end of the recording. */
void engine_final_tick(struct engine *e);
/* After the last tick: ends the collectors' threads, before the libraries that they run in are unloaded with
 * the program. */
void engine_end_threads(struct engine *e);
/* Samples on the env's own clock until the tree or the film ends, or that much time has passed. */
int engine_play(struct engine *e, int64_t until_ns);

bool engine_is_member(const struct engine *e, pid_t pid);
uint32_t engine_live(const struct engine *e);			    /* members now */
uint32_t engine_group_live(const struct engine *e, unsigned group); /* of them, those of a group */
bool engine_is_running(const struct engine *e);			    /* a member has not ended */
/* fn is true of every member that has not ended, and there is one. */
bool engine_every(const struct engine *e, bool (*fn)(void *arg, pid_t pid), void *arg);
uint64_t engine_taken(const struct engine *e);			 /* samples so far */
pid_t engine_group_root(const struct engine *e, unsigned group); /* the first of them; 0: none now */
uint32_t engine_runs(const struct engine *e);			 /* members that have not ended */
bool engine_root_ended(const struct engine *e, int *ret_status); /* the first root was reaped by us */
int64_t engine_elapsed(const struct engine *e);			 /* ns since time 0 */
/* The same of an instant of ENV_MONOTONIC; negative: before time 0. */
int64_t engine_when(const struct engine *e, int64_t monotonic_ns);
/* CPU time of the recorder at the last tick. */
int64_t engine_own_cpu(const struct engine *e);

struct engine_counts {
	uint64_t ticks, missed, late, skipped;
	uint64_t seen;	  /* processes that were reported to the sink */
	uint64_t unasked; /* ended before their command lines could be read: 0 unless these are asked for */
	int64_t self_cpu_ns, self_peak_rss_kib;
};
void engine_counts(const struct engine *e, struct engine_counts *ret);
/* Time spent so far in the collector with this place in the registry, ns. */
int64_t engine_cost(const struct engine *e, size_t collector);
#endif
