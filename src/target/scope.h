/* Targets: every way of saying which processes to watch, and the groups they form.
 *
 *	PID           that process and its descendants
 *	match:REGEX   processes by their command line; the first capture group, else the matched text, is the
 *	              name of the tool, and each tool is a group
 *	user:NAME     the processes of a user (nothing behind the colon: our own)
 *	cgroup:PATH   the processes of a control group and of those below it
 *	container:ID  those of a container, when the path of its control group tells
 *	job[:ID]      those of a batch system's job on this node
 *	system        all there are
 *	NAME=TARGET   any of them, its group under this name
 *
 * A process belongs to every group it matches. A scope inherits when what its processes start belongs to it
 * too (PID, job, the command of `run`); the others look at each process by itself.
 *
 * What is asked of a new process costs at most one small file for each kind of scope in use: all scopes share
 * what was read of it. */
#ifndef TARGET_SCOPE_H
#define TARGET_SCOPE_H

#include "base/buf.h"
#include "env/env.h"
#include "target/job.h"

#include <regex.h>

#define SCOPES_MAX 32
#define SCOPE_GROUPS_MAX 64 /* a process's groups are one 64-bit mask */

enum scope_kind {
	SCOPE_COMMAND, /* of `tacho run` */
	SCOPE_PID,
	SCOPE_MATCH,
	SCOPE_USER,
	SCOPE_CGROUP,
	SCOPE_CONTAINER,
	SCOPE_JOB,
	SCOPE_SYSTEM,
	NR_SCOPE_KINDS
};

struct scope {
	enum scope_kind kind;
	char target[256]; /* as written; longer ones are cut here only */
	char name[128];	  /* of its group; "": by the target, or by the tool */
	pid_t pid;
	uint32_t uid;
	regex_t regex;
	char *path; /* cgroup: as /proc/PID/cgroup names it; container and job: the id */
	struct job *job;
	const char *found_by; /* job */
	bool listed;	      /* once, at the start */
	int group;	      /* index of its group; -1: none yet (match: one for each tool) */
	int procs;	      /* cgroup: its cgroup.procs, kept open; -1 */
};

struct scope_group {
	char name[128];
	unsigned scope;	  /* that it belongs to */
	const char *part; /* "step" or "rank" of a job; NULL: it is what the scope names */
};

struct scopes {
	struct env *env;
	struct redact *redact; /* for names of tools, which are parts of command lines; NULL: none */
	unsigned nr, nr_groups;
	uint64_t inheriting; /* groups whose members' children belong to them */
	uint64_t matching;   /* groups of tools: they go by the command line alone */
	uint64_t users;	     /* groups of users: a process is in those of one user at a time */
	bool asks;	     /* a scope is there that looks at processes: new ones must be asked about */
	bool by_cmdline;     /* ... and may give another answer after an exec */
	/* A job that has no processes here yet exists all the same, and its steps and ranks are groups. */
	bool expects;
	/* What was read of the process that is asked about. */
	pid_t pid;
	unsigned has; /* mask of texts */
	size_t cmdline_len, cgroup_len;
	uint32_t uid;
	/* From here on scopes_init() leaves memory untouched: most recordings have no scopes. */
	struct scope scope[SCOPES_MAX];
	struct scope_group group[SCOPE_GROUPS_MAX];
	char cmdline[4096], cgroup[8192];
};

const char *scope_kind_name(enum scope_kind kind); /* "match"; "command" for that of run */

void scopes_init(struct scopes *s, struct env *env);
void scopes_release(struct scopes *s);
/* The command of `run`, as the first. -ENOSPC. */
int scopes_add_command(struct scopes *s, const char *name);
/* Understands a target and looks up what it names without looking for processes (users, expressions).
 * -EINVAL: not understood, -ENOENT: no such user; -ENOSPC: too many. The message for people is added to err.
 */
int scopes_add(struct scopes *s, const char *target, struct buf *err);

/* Does what the scope names exist? 0; -ESRCH: no such process, group or job now; -ENODATA: it has ended;
 * -EACCES: hidden from us; -ENOENT: we are in no job. For a match always 0: it may come. The message for
 * people is added to err. Looks at all processes once for a container. */
int scope_open(struct scopes *s, unsigned scope, struct buf *err);

/* The groups that want this process for itself; the caller adds inherited ones. */
uint64_t scopes_ask(struct scopes *s, pid_t pid);
/* The groups of this user. */
uint64_t scopes_of_user(const struct scopes *s, uint32_t uid);
/* Its groups by step and by rank, where a job has these. scopes_ask() has them in its answer, lists have not.
 */
uint64_t scopes_parts(struct scopes *s, pid_t pid);
/* Processes that scopes have in lists: the roots of PIDs, a control group's and a job's own lists. To be
 * called at the start and every few seconds; fn gets the groups. */
void scopes_list(struct scopes *s, void (*fn)(void *arg, pid_t pid, uint64_t groups), void *arg);
/* Never a member: a daemon of the scheduler among the job's processes. */
bool scopes_refuse(struct scopes *s, pid_t pid);

/* It is of a batch job, and only waits for us (job_waits_for_us()). */
bool scopes_wait_for_us(struct scopes *s, pid_t pid);

/* Is there a scope whose processes /proc may hide from us, as it does when it shows only processes of our own
 * user? */
bool scopes_hide(const struct scopes *s);
/* The recording ends with the last process, unless a scope may find new ones at any time. */
bool scopes_end(const struct scopes *s);
#endif
