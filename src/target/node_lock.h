/* One of a kind on this node: a lock that ends with its process. */
#ifndef TARGET_NODE_LOCK_H
#define TARGET_NODE_LOCK_H

#include "base/base.h"

struct node_lock {
	int fd; /* -1: not held */
	char path[512];
};

/* `name` becomes a part of a path: slashes in it are replaced. 0; -EBUSY: another process has it; a negative
 * errno: no place for it, which need not keep anybody from working. */
int node_lock_take(struct node_lock *l, const char *name);
void node_lock_release(struct node_lock *l);
#endif
