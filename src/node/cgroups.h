/* Where the control groups of a process lie: what proc/PID/cgroup and our mountinfo say, and nothing assumed.
 * v1, v2 and hybrid; containers that see only their own part; cgroup namespaces. All through env, so that the
 * layouts of other hosts are tests. */
#ifndef NODE_CGROUPS_H
#define NODE_CGROUPS_H

#include "base/text.h"
#include "env/env.h"

#include <limits.h>

enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT, /* of v2: in cpu.stat, always there */
	CGROUP_CPUSET,
	CGROUP_MEMORY,
	CGROUP_IO, /* blkio of v1 */
	CGROUP_PIDS,
	CGROUP_FREEZER, /* v1; where SLURM keeps a job's processes together */
	CGROUP_UNIFIED, /* the v2 hierarchy itself, also where all controllers are v1: it counts CPU and
			   pressure */
	NR_CGROUP_CONTROLLERS
};

struct cgroup_dir {
	bool found, v2;
	char path[PATH_MAX]; /* of the group's directory, as env takes it: no leading slash */
	size_t mount_len;    /* path + mount_len is what is below the mount, "" at its top */
	char group[1024]; /* as proc/PID/cgroup names it: "/system.slice/job_7"; "" when it is in none. Also
			     there when the hierarchy is mounted nowhere */
};

struct cgroups {
	struct cgroup_dir dir[NR_CGROUP_CONTROLLERS];
	bool has_v1, has_v2; /* hierarchies that are mounted */
};

/* Of a process; 0: of ourselves. Needs about PATH_MAX x 10 bytes: keep it off deep stacks. 0 also when
 * nothing is mounted; -ESRCH when the process is gone, -EACCES. */
int cgroups_read(struct env *env, pid_t pid, struct cgroups *ret);
/* The group of one controller by its name on v1 ("devices"); where that hierarchy has none, of v2. -ENOENT:
 * in none that is mounted. */
int cgroup_dir_find(struct env *env, pid_t pid, const char *controller, struct cgroup_dir *ret);
/* As cgroups_read(), from the two texts. */
void cgroups_parse(const char *groups, const char *mountinfo, struct cgroups *ret);
/* The group that the next line of a proc/PID/cgroup names, cut off the front of *rest; false at the end. */
bool cgroup_next(struct text *rest, struct text *ret_group);
/* Makes `dir` its parent; false at the top of what is mounted. */
bool cgroup_dir_up(struct cgroup_dir *dir);
/* Groups that a recorder makes are named after it: this and its pid. */
#define CGROUP_RECORDERS "tacho-"
/* The pid in such a name, 0 for other names. */
pid_t cgroup_recorder(const char *name);
/* How much of a group's name the mount leaves out: what it shows as its top need not be the hierarchy's. */
size_t cgroup_root_length(const struct cgroup_dir *dir);
/* Makes `dir` that of another group of the same hierarchy, named as in proc/PID/cgroup; it need not exist.
 * False, and nothing is changed, when the mount does not show it. */
bool cgroup_dir_move(struct cgroup_dir *dir, const char *group);
/* One number from a file of the directory: "max" gives INT64_MAX. -ENOENT..., -EINVAL when it is no number.
 */
int cgroup_number(struct env *env, const struct cgroup_dir *dir, const char *file, int64_t *ret);
/* Calls fn for each process of an open cgroup.procs until it returns other than 0, which is returned. Those
 * that our PID namespace does not show are passed over. */
int cgroup_pids(struct env *env, int handle, int (*fn)(void *arg, pid_t pid), void *arg);
/* The text of a file of the directory, as env_slurp() gives it. */
ssize_t cgroup_text(struct env *env, const struct cgroup_dir *dir, const char *file, char *out, size_t size);
/* What gives a user a group that tacho may divide; only where systemd is the first process. */
#define CGROUP_OF_SYSTEMD "systemd-run --user --scope -p Delegate=yes tacho run ..."
bool cgroups_by_systemd(struct env *env);
#endif
