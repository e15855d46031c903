/* A directory of our own beside the place where files go. They are made in it and renamed when they are
 * whole, so however we end there is only one thing to remove, and two programs that write to the same place
 * never conflict.
 *
 * Its name is random and its mode 0700. A file in it names its owner and is locked as long as that process
 * runs: a stage whose lock is free was left by a process that was killed, and the next stage in the same
 * directory removes it. */
#ifndef CMD_STAGE_H
#define CMD_STAGE_H

#include "base/base.h"

struct stage {
	char *directory; /* in which it is */
	char *path;	 /* NULL: there is none */
	int lock;
};

/* The directory must exist. 0 or a negative errno. */
int stage_open(struct stage *s, const char *directory);
/* Removes it with everything that is in it. */
void stage_close(struct stage *s);
#endif
