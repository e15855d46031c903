/* Which control groups concern the job: for each controller the one that counts it, and those above that
 * limit it. */
#ifndef COLLECT_CGROUP_LEVELS_H
#define COLLECT_CGROUP_LEVELS_H

#include "node/cgroups.h"

#define CGROUP_UNLIMITED (INT64_C(1) << 60) /* from here on v1 means "no limit" */

enum level_state { LEVEL_FOUND, LEVEL_UNMOUNTED, LEVEL_ROOT, LEVEL_DISABLED, NR_LEVEL_STATES };

struct cgroup_levels {
	struct cgroups own; /* of each controller the group that counts the job, found or not */
	enum level_state state[NR_CGROUP_CONTROLLERS];
};

/* Of a process of the job; errors as of cgroups_read(). `job`: the group of a batch job; where the process is
 * in a part of it (a step, a task), the whole counts. May be NULL. */
int cgroup_levels_find(struct env *env, pid_t pid, const char *job, struct cgroup_levels *ret);
/* The name of the job's own group: the memory controller's, else another's; NULL when it has none. Borrowed.
 */
const char *cgroup_levels_name(const struct cgroup_levels *l);
/* "v1", "v2" or "v1+v2": where the own groups are. */
const char *cgroup_levels_kind(const struct cgroup_levels *l);
/* Calls fn for the groups above own ones up to the topmost that limits, by controller, until it returns other
 * than 0, which is returned. A group that several controllers name comes several times. */
int cgroup_levels_above(
	struct env *env, const struct cgroup_levels *l, int (*fn)(void *arg, const char *group), void *arg);
/* The directory of this group in the hierarchy of a controller; false when it is neither own nor above. */
bool cgroup_levels_dir(const struct cgroup_levels *l, enum cgroup_controller controller, const char *group,
	struct cgroup_dir *ret);
#endif
