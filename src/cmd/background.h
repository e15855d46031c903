/* A recorder that goes on when its caller has returned: attach --background. */
#ifndef CMD_BACKGROUND_H
#define CMD_BACKGROUND_H

#include "cmd/record.h"

/* Comes back in a process of its own session; the caller's process waits until that one has begun to record,
 * or ends as it does. Returns its PID, which is none of the job. Before anything is opened. */
pid_t background_enter(void);
/* It records: says where, and lets go of what the caller had open for us. */
void background_announce(struct recording *r);
#endif
