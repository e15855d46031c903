/* Whether a signal that reached us has reached the job as well.
 *
 * The job is in our process group. A signal to the group (Ctrl-C, kill -TERM -PGID, a shell that hangs up)
 * reaches us and the job, one to our PID reaches us alone and must be passed on, and siginfo is the same for
 * both. So there is a witness: a process of our group that blocks every signal and does nothing. Its pending
 * signals (/proc/PID/status) were not sent to us alone. There is no waiting: the kernel signals the youngest
 * process of a group first (attach_pid() adds at the head of the list), so the witness has a signal to the
 * group before we do.
 *
 * Before there is a witness the job's process waits, with every signal blocked (command.c): signals that it
 * has pending when it goes on were sent to it, too.
 *
 * A signal stays pending for ever, so a witness that has some is replaced by a new one: some 100 us for each
 * signal to the group. Its name and command line are not ours: `pkill tacho` is for us alone. When it was
 * killed, or there can be none, every signal is passed on: then one to the group reaches the job twice. So do
 * real-time signals that come to the group faster than we look, all but the first: how many of one kind are
 * pending cannot be read.
 *
 * Rejected: to look whether the job has the signal pending (it may have handled it already); to guess by the
 * sender; a witness that takes its signals and tells us (we would have to wait for it); ptrace and
 * tracepoints (slow, or for root alone); a process group of our own (a shell's `fg` and `kill %1` would no
 * longer reach us). */
#ifndef TARGET_WITNESS_H
#define TARGET_WITNESS_H

#include "base/base.h"

#include <sys/types.h>

struct signal_witness {
	pid_t pid;     /* 0: there is none */
	uint64_t seen; /* signals that earlier witnesses had and that were not asked about yet */
	/* What it does when we were killed, with a directory for it; NULL: nothing. It allocates nothing. */
	void (*tidy)(const void *arg, int dir);
	const void *arg;
	int dir;
};

/* The number that a child of ours has in /proc, which may be that of another PID namespace: `unshare -p`
 * without --mount-proc. 0: it has none there, or cannot be found. */
pid_t pid_in_proc(pid_t pid);

/* 0, or -errno: then it is not known which signals others received. */
int witness_start(struct signal_witness *w);
/* Whether the witness has the signal; the next call says no. */
bool witness_saw(struct signal_witness *w, int sig);
/* Another one takes its place, which tidies up if we are killed. */
void witness_entrust(
	struct signal_witness *w, void (*tidy)(const void *arg, int dir), const void *arg, int dir);
/* Begins to end it, which takes some moments. witness_end() waits for that; other work can be done in
 * between. */
void witness_dismiss(const struct signal_witness *w);
void witness_end(struct signal_witness *w);
#endif
