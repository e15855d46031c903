/* Starts the command with everything as it would be without us: same stdin, stdout, terminal, process group,
 * limits, signal mask and dispositions (except an ignored SIGCHLD, which would hide its children's CPU time),
 * same environment except TACHO_RECORDING and TACHO_SOCKET.
 *
 * Signals that reach the recorder are for the job: all that can be caught, except our own faults, are read
 * from a signalfd and passed on, unless the job has them already (they were sent to the process group: see
 * witness.h) or sent them itself, or the kernel sent them for what we did (a write to a closed pipe, a
 * limit). A job that stops for the terminal (Ctrl-Z) stops us too, so that the shell sees what it would see
 * without us. */
#ifndef TARGET_COMMAND_H
#define TARGET_COMMAND_H

#include "base/base.h"
#include "target/kernel.h"
#include "target/witness.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

struct command {
	pid_t pid; /* 0: none (attach) */
	int signal_fd;
	bool prepared;		 /* the following were saved as we found them, and changed */
	sigset_t mask;		 /* as we found it */
	struct sigaction child;	 /* likewise */
	void *heap;		 /* where ours ended when this began */
	struct rlimit files;	 /* as we found it */
	bool has_huge_pages;	 /* the kernel may give the job huge pages; we have switched them off for
				    ourselves */
	int64_t before_exec_kib; /* the most memory that the job's process had while it was a copy of us; -1:
				    not known */
	int report;		 /* where its process says why it could not be executed */
	bool held;		 /* it waits before its exec, until the witness is there */
	bool stopped_with_it;	 /* we stopped ourselves together with the job */
	struct signal_witness witness;
};

/* Blocks the signals we handle and becomes the subreaper of what will be started. */
int command_prepare(struct command *c);
/* Whether there is such a command: 0, -ENOENT or -EACCES. So a mistyped name is found before any file is
 * touched; command_start() may still fail. */
int command_find(const char *name);
/* What is to be done while the new process has its PID and waits, before it executes anything. */
struct command_gate {
	void (*pass)(void *arg, pid_t pid);
	void *arg;
};
/* Starts argv in a new process, which waits before its exec. -errno: there is no new process. `variables`
 * (NAME=VALUE, the last one NULL; may be NULL) are set in its environment. The gate may be NULL. */
int command_start(struct command *c, char *const *argv, char *const *variables,
	const struct own_cgroup *group, const struct command_gate *gate);
/* Lets the new process go on, if it still waits, and returns once the new program runs. -errno: it cannot be
 * executed, and its process is gone. */
int command_confirm(struct command *c);
/* Puts everything back and becomes argv in our place. Returns only if that fails: -errno. */
int command_become(struct command *c, char *const *argv);
/* After the start: makes the witness and lets the new process go on to its exec. Meanwhile it sets what is
 * only for us (limits of descriptors, timer slack, ignored SIGPIPE and SIGXFSZ). */
unsigned command_privileges(struct command *c);

/* Next signal: 1 and the signal, or 0. */
int command_signal(struct command *c, struct signalfd_siginfo *ret);
/* Passes it to the job unless it has it. is_member says whether a PID belongs to the job. Returns whether it
 * did. */
bool command_forward(struct command *c, const struct signalfd_siginfo *si, bool sender_is_member);
/* The job is over: no signal is passed on any more. */
void command_ended(struct command *c);
/* Stops us by this signal: a shell distinguishes them ($? is 128 + its number). To the process, not by
 * raise(): one that the terminal sent us and that is still pending must not stop us a second time. */
void command_stop_by(int sig);
/* What the command did of stopping and going on, after a SIGCHLD. If it stopped for the terminal, we stop as
 * well; `before` (may be NULL) is called first, and this returns when we are continued. */
enum command_stop {
	STOP_NONE,
	STOP_WITH_IT,	/* it and we were stopped, and go on */
	STOP_ALONE,	/* it was stopped, not for the terminal: we go on */
	STOP_CONTINUED, /* it goes on */
};

enum command_stop command_stop_with_job(struct command *c, void (*before)(void *arg), void *arg);
/* Puts back what was found and dies as the job did; returns the exit status if it ended by itself. */
int command_exit_as(struct command *c, int status);
void command_release(struct command *c);
#endif
