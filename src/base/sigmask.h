/* sigprocmask(2) as the kernel has it. Those of the C library leave out two signals that it may use for its
 * threads (32 and 33): they could not be blocked, and would be unblocked by putting a mask back. */
#ifndef BASE_SIGMASK_H
#define BASE_SIGMASK_H

#include "base/base.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

/* ret (may be NULL) is the mask as it was. */
static inline int sigmask_change(int how, const sigset_t *set, sigset_t *ret)
{
	if (ret)
		sigemptyset(ret);
	return syscall(SYS_rt_sigprocmask, how, set, ret, _NSIG / 8) < 0 ? -errno : 0;
}

static inline void sigmask_fill(sigset_t *ret)
{
	memset(ret, 0xff, sizeof(*ret));
}

#endif
