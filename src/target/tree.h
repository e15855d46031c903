/* The processes of the job ("members"), in the order in which they joined.
 *
 * A member belongs to one group or several. It joins when its parent is in a group that children inherit (or
 * when it is a root, or an orphan that we adopted as the subreaper), or when the callback that is asked about
 * every new process wants it; it leaves when it has been reaped. The tree knows PIDs, parents and groups; the
 * collector decides what is read of a member, the engine when.
 *
 * Three ways of noticing new members: the kernel's events (tree_forked, exact), the last PID in /proc/loadavg
 * as a cursor (one small read per tick says whether anything forked; only new PIDs are probed), and a scan of
 * /proc (at the start of an attachment, after lost events, and on films). */
#ifndef TARGET_TREE_H
#define TARGET_TREE_H

#include "env/env.h"
#include "metric/quantity.h"

#define NO_SLOT UINT32_MAX
#define TREE_YOUNG 1024
/* A PID is given out before its process can be seen; the last PIDs of a range are probed again. */
#define CURSOR_OVERLAP 64

struct member {
	pid_t pid, ppid;
	uint64_t groups; /* mask */
	uint32_t id;	 /* instance in the recording: ascending, never used again */
	uint32_t origin; /* id of its first known ancestor whose children belong to its groups, or its own */
	uint32_t next, prev;
	int64_t born_ns;  /* ENV_MONOTONIC; when it was first seen, or as the kernel reported it */
	int64_t ended_ns; /* when the kernel reported it; else 0 */
	int64_t read_ns, status_read_ns, announced_ns;
	/* The last moment at which it had certainly not been waited for, as its birth or a reading showed.
	 * (Its exit event does not: the kernel sends it when the parent may have waited already.) */
	int64_t unwaited_ns;
	int64_t quiet_ns; /* when its account of waited-for children was first read with its present values */
	int64_t clock_ns; /* its CPU time at the instant of a tick; negative: it was gone */
	uint64_t clock_tick; /* of the tick that is the clock_tick-th to be taken */
	uint64_t moved_tick; /* in which it was last found to have used CPU time */
	int status;	     /* as wait(2) gives it, if has_status */
	bool root, late, bound, announced, ended, has_status, ignores_sigchld, identity_stale, zombie;
	bool dead;	 /* all its threads have ended: its account does not grow any more */
	bool brief;	 /* its account was read, the rest of its first reading is to come */
	bool replaced;	 /* it became another program after it was announced, and the scopes were not asked
			    about that yet */
	bool succeeded;	 /* it seems to have become another program since it was last read */
	bool gone;	 /* its files cannot be read any more */
	bool departing;	 /* its end is being written: its PID may belong to another process */
	uint8_t awaited; /* known from its exit record: its events may still come in so many readings */
	bool forks;	 /* the kernel reported a fork of it */
	bool waits;	 /* it has waited for children: what they used is in its account */
	bool regrouped;	 /* its groups changed since it was announced, or it was not announced yet */
	/* Its parent was a member when it was last known; the kernel reported its parent at its end. */
	bool had_parent, parent_known;
	char name[64];
	uint32_t execs;	    /* how often it became another program since it was announced */
	uint8_t peak_least; /* as in struct ending, of its former programs; 0: known */
	/* What its children used that have left since `quiet_ns`. It is not yet in its account, where it
	 * appears when the process has waited for them. `owes`: it is enough to be visible there. */
	struct usage pending;
	bool owes, has_pending;
	bool has_passed; /* some of that was used by children of those children */
	bool is_vague;	 /* a child has left since then that may or may not be in the account */
	uint64_t
		pending_groups; /* groups that all of these children were in and that have not counted them */
	/* Switches of its departed descendants that are counted already, though the kernel adds them to its
	 * own rusage when it is waited for. */
	int64_t counted_voluntary, counted_involuntary;
	bool ignored_sigchld; /* when it was read, at any time */
	/* Sums of the exit records of its threads, where the kernel gives them. */
	struct {
		int64_t user_ns, system_ns, peak_rss_bytes;
		struct usage use; /* without CPU time */
		uint32_t nr, uid;
	} record;
};

/* The user and control group of an attached root, and the groups of the roots that have them. */
struct tree_owner {
	uint64_t hash, groups;
	bool ambiguous; /* these roots are not in the same groups */
};

struct tree {
	struct env *env;
	struct member *member; /* [cap], lazily mapped */
	uint32_t *slot_of;     /* [pid_max + 1]: slot + 1, 0 for processes that are no members */
	int32_t *parent_of;    /* [pid_max + 1]: scratch of a scan, all 0 between scans */
	int32_t *scanned;      /* [pid_max + 1]: the PIDs of a scan */
	uint32_t nr_scanned;
	uint32_t *free_slot; /* a stack */
	uint32_t nr_free, high, cap, nr, first, last, next_id;
	pid_t pid_max;
	pid_t beside[8]; /* other processes of ours: likewise */
	unsigned nr_beside;
	pid_t self, helper;	/* this process and a helper of ours (0: none): never members */
	pid_t reaper;		/* orphans whose parent is this are members; 0: none */
	uint64_t reaper_groups; /* theirs */
	uint32_t reaper_origin;
	uint64_t inheriting; /* groups whose members' children belong to them */
	uint64_t exclusive;  /* groups of users: a process that is found in one of them leaves the others */
	/* The groups that want this process for its own sake; NULL: none does. */
	uint64_t (*ask)(void *arg, pid_t pid);
	/* Never a member, whatever its parents are; NULL: no process is refused. */
	bool (*refuse)(void *arg, pid_t pid);
	/* Its groups have changed, in joining (from 0) or later. */
	void (*regrouped)(void *arg, uint32_t slot, uint64_t before);
	/* Recent processes that are no members: their first exec may make them wanted. */
	struct {
		pid_t pid;
		uint8_t looks; /* left */
	} young[TREE_YOUNG];
	uint32_t nr_young;
	uint64_t overflow; /* joins refused because all slots were taken */
	int loadavg, stat;
	bool blind; /* the last PID given out cannot be read */
	/* PIDs can be given out more than once between two polls. Then forks are counted: their number since
	 * boot at the last reading, and how many of them are known by the cursor. */
	int64_t polled_ns;
	uint64_t forks, forks_known;
	pid_t cursor, cursor_before;
	pid_t attached_at; /* the last PID given out when we attached */
	struct tree_owner owner[8];
	pid_t above[32]; /* ancestors of attached roots: one of them, or init, adopts orphans */
	uint32_t nr_owners, nr_above;
	pid_t process_group; /* of the process whose parent was read last */
	pid_t escaped_pid[CURSOR_OVERLAP];
	uint64_t escaped; /* orphans of an attached tree's owner that may have come from it */
	uint64_t assumed; /* orphans that joined by evidence alone: their parent was not seen */
	/* Since they were last zeroed: PIDs given out, in our PID namespace, whose process was gone when it
	 * was looked for (or was a thread); and members that were counted so at the poll before. */
	uint64_t strangers, latecomers;
	uint64_t vanished; /* processes that were gone before it was known whether they are wanted */
	void (*joined)(void *arg, uint32_t slot);
	void *arg;
};

int tree_init(struct tree *t, struct env *env, uint32_t cap);
void tree_release(struct tree *t);

/* -EEXIST, -ESRCH (PID out of range), -ENOSPC. */
int tree_add(struct tree *t, pid_t pid, pid_t ppid, uint64_t groups, uint32_t *ret_slot);
void tree_remove(struct tree *t, uint32_t slot);

static inline uint32_t tree_find(const struct tree *t, pid_t pid)
{
	return pid > 0 && pid <= t->pid_max ? t->slot_of[pid] - 1 : NO_SLOT;
}

/* Safe against removal of the current member. */
#define tree_for_each(t, slot, after)                                                                      \
	for (uint32_t slot = (t)->first, after; slot != NO_SLOT && (after = (t)->member[slot].next, true); \
		slot = after)

/* The kernel reported that parent forked child. Until its first exec the child is in all groups of its
 * parent. Returns its slot, or NO_SLOT when it is no member. */
uint32_t tree_forked(struct tree *t, pid_t parent, pid_t child);
/* It is wanted in these groups, whatever its parent is; a member gets them in addition. */
void tree_include(struct tree *t, pid_t pid, uint64_t groups);
void tree_set_groups(struct tree *t, uint32_t slot, uint64_t groups);
/* The groups of a process that was in `before` and is now found to be in `asked`. */
static inline uint64_t tree_merge(const struct tree *t, uint64_t before, uint64_t asked)
{
	return (asked & t->exclusive ? before & ~t->exclusive : before) | asked;
}
/* A process that is no member has become another program. */
void tree_reconsider(struct tree *t, pid_t pid);
/* Looks for new members, cheaply: nothing to do when no PID was given out since the last call. */
int tree_poll(struct tree *t);
/* All processes that existed are known: orphans that appear from now on may belong to the tree. */
void tree_attached(struct tree *t);
/* Looks at every process there is. */
int tree_scan(struct tree *t);
/* PIDs up to this one (0: up to the last given out) need not be looked at. */
void tree_cursor_set(struct tree *t, pid_t pid);
#endif
