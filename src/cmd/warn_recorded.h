/* Warns when a process is recorded already: that is allowed, but rarely intended. */
#ifndef CMD_WARN_RECORDED_H
#define CMD_WARN_RECORDED_H

#include "env/env.h"

/* Prints one line if a process (0: ourselves) belongs to a recording that is being written now. */
void warn_if_recorded(struct env *env, pid_t pid);
/* The same of what another recorder was attached to: a process or one above it, or (pid 0) a batch job. */
void warn_if_attached(struct env *env, pid_t pid, const char *job);
#endif
