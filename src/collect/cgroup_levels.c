/* Levels of control groups. On v2 a controller that is not enabled for a group counts in the nearest group
 * above for which it is: `tacho run` makes such a group for its job, and shells under systemd are in one. The
 * root of a hierarchy counts the whole machine, so a job in it has no group. A root is known by the files
 * that only it has or lacks: in a cgroup namespace "/" is an ordinary group. */
#include "collect/cgroup_levels.h"

#include <stdio.h>
#include <string.h>

/* On v2, a file that is there where the controller is enabled. */
static const char *const sign[NR_CGROUP_CONTROLLERS] = {
	[CGROUP_CPU] = "cpu.max",
	[CGROUP_CPUACCT] = "cpu.stat",
	[CGROUP_CPUSET] = "cpuset.cpus.effective",
	[CGROUP_MEMORY] = "memory.current",
	[CGROUP_IO] = "io.stat",
	[CGROUP_PIDS] = "pids.current",
	[CGROUP_FREEZER] = "cgroup.freeze",
	[CGROUP_UNIFIED] = "cpu.stat",
};

static bool has_file(struct env *env, const struct cgroup_dir *dir, const char *file)
{
	char path[PATH_MAX + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/%s", dir->path, file);
	return env_try(env, path) != -ENOENT;
}

static bool is_root(struct env *env, const struct cgroup_dir *dir)
{
	if (strcmp(dir->group, "/"))
		return false;
	return dir->v2 ? !has_file(env, dir, "cgroup.events") : has_file(env, dir, "release_agent");
}

static enum level_state settle(struct env *env, struct cgroup_dir *dir, const char *file)
{
	if (!dir->found)
		return LEVEL_UNMOUNTED;
	if (is_root(env, dir))
		return LEVEL_ROOT;
	if (!dir->v2)
		return LEVEL_FOUND;
	while (!has_file(env, dir, file))
		if (!cgroup_dir_up(dir))
			return LEVEL_DISABLED;
	return is_root(env, dir) ? LEVEL_DISABLED : LEVEL_FOUND;
}

/* A group that a recorder made for its job's share of the CPUs limits nothing: the one above may. */
static void leave_recorders(struct cgroup_dir *dir)
{
	const char *name;

	while (dir->found && (name = strrchr(dir->group, '/')) && cgroup_recorder(name + 1))
		if (!cgroup_dir_up(dir))
			return;
}

static void rise_to(struct cgroup_dir *dir, const char *group)
{
	size_t len = strlen(group);

	if (!dir->found || strncmp(dir->group, group, len) != 0 || dir->group[len] != '/')
		return;
	while (strlen(dir->group) > len)
		if (!cgroup_dir_up(dir))
			return;
}

int cgroup_levels_find(struct env *env, pid_t pid, const char *job, struct cgroup_levels *ret)
{
	int r = cgroups_read(env, pid, &ret->own);

	for (int c = 0; job && c < NR_CGROUP_CONTROLLERS; c++)
		rise_to(&ret->own.dir[c], job);
	leave_recorders(&ret->own.dir[CGROUP_CPU]);
	for (int c = 0; c < NR_CGROUP_CONTROLLERS; c++) {
		ret->state[c] = settle(env, &ret->own.dir[c], sign[c]);
		ret->own.dir[c].found = ret->state[c] == LEVEL_FOUND;
	}
	return r;
}

const char *cgroup_levels_name(const struct cgroup_levels *l)
{
	static const enum cgroup_controller order[] = {
		CGROUP_MEMORY, CGROUP_CPU, CGROUP_CPUACCT, CGROUP_PIDS, CGROUP_IO, CGROUP_UNIFIED};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (l->own.dir[order[i]].found)
			return l->own.dir[order[i]].group;
	return NULL;
}

const char *cgroup_levels_kind(const struct cgroup_levels *l)
{
	bool v1 = false, v2 = false;

	for (int c = 0; c < NR_CGROUP_CONTROLLERS; c++) {
		v1 = v1 || (l->own.dir[c].found && !l->own.dir[c].v2);
		v2 = v2 || (l->own.dir[c].found && l->own.dir[c].v2);
	}
	return v1 && v2 ? "v1+v2" : v1 ? "v1" : "v2";
}

static bool is_below(struct env *env, const struct cgroup_dir *dir, const char *file, int64_t bound)
{
	int64_t value;

	return cgroup_number(env, dir, file, &value) == 0 && value >= 0 && value < bound;
}

static bool limits(struct env *env, const struct cgroup_dir *dir, enum cgroup_controller controller)
{
	switch (controller) {
	case CGROUP_CPU:
		return is_below(env, dir, dir->v2 ? "cpu.max" : "cpu.cfs_quota_us", INT64_MAX);
	case CGROUP_MEMORY:
		if (!dir->v2)
			return is_below(env, dir, "memory.limit_in_bytes", CGROUP_UNLIMITED);
		return is_below(env, dir, "memory.max", INT64_MAX) ||
			is_below(env, dir, "memory.high", INT64_MAX);
	default:
		return is_below(env, dir, "pids.max", INT64_MAX);
	}
}

/* How far up from the own group the topmost limit is. */
static unsigned steps_to_top(struct env *env, struct cgroup_dir dir, enum cgroup_controller controller)
{
	unsigned top = 0;

	for (unsigned step = 1; cgroup_dir_up(&dir); step++)
		if (limits(env, &dir, controller))
			top = step;
	return top;
}

int cgroup_levels_above(
	struct env *env, const struct cgroup_levels *l, int (*fn)(void *arg, const char *group), void *arg)
{
	static const enum cgroup_controller limiting[] = {CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS};

	for (size_t i = 0; i < ARRAY_SIZE(limiting); i++) {
		struct cgroup_dir dir = l->own.dir[limiting[i]];
		unsigned top = dir.found ? steps_to_top(env, dir, limiting[i]) : 0;

		while (top-- && cgroup_dir_up(&dir)) {
			int r = fn(arg, dir.group);

			if (r)
				return r;
		}
	}
	return 0;
}

bool cgroup_levels_dir(const struct cgroup_levels *l, enum cgroup_controller controller, const char *group,
	struct cgroup_dir *ret)
{
	*ret = l->own.dir[controller];
	if (!ret->found)
		return false;
	while (strcmp(ret->group, group))
		if (!cgroup_dir_up(ret))
			return false;
	return true;
}
