/* Whether a signal that reached us has reached the job as well.
 *
 * The job is in our process group. A signal to the group (Ctrl-C, kill -TERM -PGID, a shell that hangs up)
 * reaches both of us, one to our PID reaches us alone and must be passed on, and siginfo is the same for
 * both. So a witness stands beside us: a process of our group that blocks every signal and does nothing. What
 * it has pending was sent to more than us.
 *
 * It shares our memory (clone with CLONE_VM): no pages are copied, it costs some 15 us at the start, 20 us at
 * the end and 26 KiB of the kernel's, and dies with us. Rejected: to look whether the job has the signal
 * pending in /proc/PID/status (it may have handled it already); to guess by the sender (timeout(1) and batch
 * systems send to the group, to single processes, or to both); ptrace and tracepoints (slow, or for root
 * alone); a process group of our own (a shell's `fg` and `kill %1` would no longer reach us). */
#ifndef TARGET_WITNESS_H
#define TARGET_WITNESS_H

#include "base/base.h"

#include <sys/types.h>

struct signal_witness {
	pid_t pid; /* 0: there is none */
};

/* One at a time. 0, or -errno: then it is not known what others received. */
int witness_start(struct signal_witness *w);
/* Whether it has the signal, or gets it within so many milliseconds; takes it away from it. */
bool witness_saw(struct signal_witness *w, int sig, int wait_ms);
void witness_end(struct signal_witness *w);
#endif
