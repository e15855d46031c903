/* The pure part of taskstats.c, apart so that tests can feed it what other kernels send. */
#ifndef TARGET_TASKSTATS_H
#define TARGET_TASKSTATS_H

#include "target/kernel.h"

/* One struct taskstats of any version, as it arrived for task tid; false when it cannot be one. */
bool taskstats_parse(const void *bytes, size_t len, pid_t tid, struct exit_record *ret);
#endif
