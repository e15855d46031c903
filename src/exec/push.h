/* What the parts of tacho-push share. */
#ifndef EXEC_PUSH_H
#define EXEC_PUSH_H

#include "cmd/push.h"

int push_run(const void *args, int argc, char **argv);
/* --status: what was sent of these where. Returns the exit status. */
int push_show_status(int argc, char **argv);
/* --sinks */
int push_list_sinks(void);
#endif
