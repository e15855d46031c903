/* Where our control group lies: what proc/self/mountinfo and proc/self/cgroup say, and nothing assumed. Pure
 * text in and out, so that the layouts of other hosts and of containers can be tested. */
#ifndef TARGET_CGROUP_PLACE_H
#define TARGET_CGROUP_PLACE_H

#include "base/base.h"

#include <limits.h>

struct cgroup_place {
	bool v2;
	char directory[PATH_MAX]; /* of the group we are in */
	size_t mount_len; /* directory + mount_len is its path below the mount ("" at the mount itself) */
};

/* The nth (from 0) place that leads to our group: all of v2 first, then v1 hierarchies that count CPU time
 * (cpuacct), each in the order of mounting. false when there are no more. */
bool cgroup_place_find(const char *mountinfo, const char *groups, unsigned nth, struct cgroup_place *ret);
#endif
