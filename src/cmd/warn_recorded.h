/* Recording what is being recorded is allowed, and hardly ever meant. */
#ifndef CMD_ALREADY_H
#define CMD_ALREADY_H

#include "env/env.h"

/* Says in one line that a process (0: we ourselves) belongs to a recording that is being written now. */
void warn_if_recorded(struct env *env, pid_t pid);
/* The same of what another recorder was attached to: a process or one above it, or (pid 0) a batch job. */
void warn_if_attached(struct env *env, pid_t pid, const char *job);
#endif
