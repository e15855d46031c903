/* What the kernel may report about processes beyond /proc: all of it is optional.
 *
 * - the proc connector: every fork, exec and exit, as it happens;
 * - taskstats: an accounting record of every task that exits (needs CAP_NET_ADMIN);
 * - a control group of our own: exact CPU of all that ever ran in it.
 *
 * All of this is live-only and never blocks. Nothing allocates after open. */
#ifndef TARGET_KERNEL_H
#define TARGET_KERNEL_H

#include "metric/quantity.h"

#include <sys/types.h>

/* ---- proc connector ---- */

enum kernel_event_type { KERNEL_FORK, KERNEL_EXEC, KERNEL_EXIT };

struct kernel_event {
	enum kernel_event_type type;
	pid_t pid;    /* process (thread group) it happened to; for FORK the child */
	pid_t parent; /* FORK: the process that forked; EXIT: parent at exit, 0 when it has reaped it already
		       */
	int64_t time_ns; /* CLOCK_MONOTONIC */
	int status;	 /* EXIT: as wait(2) gives it */
};

struct connector;

/* Opens, and proves by forking a child that events really arrive (in pid and user namespaces the kernel is
 * silent without an error). -EPERM, -ENOTSUP, -ETIMEDOUT (silent)...; *reterr_why is for people. */
int connector_open(struct connector **ret, const char **reterr_why);
/* The same in two steps, for callers that fork anyway: listens, and later looks for the event of a fork of
 * ours that happened between the two instants. */
int connector_listen(struct connector **ret, const char **reterr_why);
int connector_prove(struct connector *c, pid_t child, int64_t before, int64_t after);
/* Has the kernel drop what connector_next() would leave out: for callers that listen for longer than some
 * moments. */
void connector_filter(struct connector *c);
struct connector *connector_close(struct connector *c);
int connector_fd(const struct connector *c);
/* Next event of processes (threads are left out): 1 and an event, 0 when there is none now,
 * -ENOBUFS once when the kernel dropped events since the last call (the caller must rescan). */
int connector_next(struct connector *c, struct kernel_event *ret);

/* ---- taskstats ---- */

/* Of one task (thread); ns and bytes. The kernel cuts the last ten bits off every io value, calls too, and
 * misses the last moments of CPU: all are lower bounds. Peaks are those of the whole process. */
struct exit_record {
	pid_t tid, tgid, parent;
	uint32_t uid;
	int status; /* as wait(2) gives it */
	char name[32];
	int64_t start_wall_s; /* start, wall clock, seconds */
	int64_t elapsed_ns;
	int64_t user_ns, system_ns;
	struct usage use; /* without CPU time */
	int64_t peak_rss_bytes, peak_vms_bytes;
	int64_t run_delay_ns, block_delay_ns, swap_delay_ns;
};

struct taskstats;

int taskstats_open(struct taskstats **ret, const char **reterr_why);
struct taskstats *taskstats_close(struct taskstats *t);
int taskstats_next(struct taskstats *t, struct exit_record *ret); /* as connector_next() */

/* ---- a control group of our own ---- */

struct cgroup_usage {
	int64_t user_ns, system_ns, total_ns; /* user and system -1 when the kernel keeps only the total */
	int64_t memory_peak_bytes;	      /* -1: not kept here */
};

struct own_cgroup;

/* Makes a child of the group we are in (v2 where mounted, else a v1 cpuacct group of its own hierarchy), so
 * that all limits stay in force, and removes those that dead recorders left behind. Where we may use the cpu
 * controller of v1 and no other process is in our group, also one for the job's share of the CPUs. -EACCES,
 * -ENOENT, -EROFS, -EBUSY... Nothing is moved: the job enters by itself with cgroup_enter(). */
int cgroup_create(struct own_cgroup **ret, const char **reterr_why);
/* The same, for callers that know already where we are (cgroups_read()). */
struct cgroups;
int cgroup_create_in(const struct cgroups *places, struct own_cgroup **ret, const char **reterr_why);
/* fork() whose child is born inside the group (clone3). Use this, not fork and enter: writing to cgroup.procs
 * waits for an RCU grace period, 7 ms measured where this takes 0.2. *ret_inside says whether it worked so,
 * in parent and child; where it did not (v1, kernels before 5.7) it was an ordinary fork, and the child calls
 * cgroup_enter() (0.05 ms on v1). The child may only do what is async-signal-safe, and no raise(): libc knows
 * nothing of this fork. Returns as fork, but -errno; g may be NULL. */
pid_t cgroup_fork(const struct own_cgroup *g, bool *ret_inside);
/* In the child between fork and exec; async-signal-safe. It writes "0" to these files: to the first unless it
 * was born inside, to the second always. -1: there is none. */
void cgroup_doors(const struct own_cgroup *g, int *ret, int *ret_always);
int cgroup_enter(const struct own_cgroup *g, bool inside);
/* When the job is inside: makes job and recorder compete for CPUs as two, which on v2 moves us, and a
 * companion of ours (0: none), into a group beside the job's. It waits for RCU, some ms. The controller is
 * "cpu"; a test takes another. 0 when they do, perhaps since the start; -EBUSY: others are in the group we
 * are in, and would be affected; -ENOENT: no such controller; -EACCES... */
int cgroup_share(struct own_cgroup *g, pid_t companion, const char *controller);
/* While job and recorder compete as two on v2: the group that must be tidied up if we are killed, by a child
 * of ours that is not: cgroup_tidy(), with a copy of that descriptor. -1: nothing is to be done. */
int cgroup_untidy(const struct own_cgroup *g);
void cgroup_tidy(const void *group, int parent);
const char *cgroup_share_why(int error); /* of the recorder: "it is not alone..." */
int cgroup_read(struct own_cgroup *g, struct cgroup_usage *ret);
/* Whether a process is in the group or below it, by the text of its /proc/PID/cgroup. True where that is not
 * known: v1 shows a process that is about to end in the topmost group. */
bool cgroup_holds(const struct own_cgroup *g, const char *text);
const char *cgroup_path(const struct own_cgroup *g); /* below the mount, for the metadata */
const char *cgroup_kind(const struct own_cgroup *g); /* "v2" or "v1" */
/* Moves what still runs in it back to the parent group and removes it. */
struct own_cgroup *cgroup_remove(struct own_cgroup *g);
#endif
