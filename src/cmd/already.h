/* Recording what is being recorded is allowed, and hardly ever meant. */
#ifndef CMD_ALREADY_H
#define CMD_ALREADY_H

#include "env/env.h"

/* The recording that a process belongs to (0: we ourselves), by TACHO_RECORDING in its environment, when that
 * is being written now. False when there is none, or its environment is hidden from us. */
bool already_recorded(struct env *env, pid_t pid, char *ret_path, size_t size);
/* Says so in one line. */
void warn_if_recorded(struct env *env, pid_t pid);
#endif
