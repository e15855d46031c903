/* Finds the directories of the control groups of a process.
 *
 * proc/PID/cgroup names its group in each hierarchy, from the root of the hierarchy; mountinfo says where
 * hierarchies are mounted and which group each mount shows as its root (containers often see only theirs). A
 * mount leads to the group when that root is the group or above it. A controller is in the v1 hierarchy that
 * names it, else in v2.
 *
 * The mounts are always our own, also for another process: that is where we can open files, and the kernel
 * names groups and roots as the reader's cgroup namespace shows them. The other process's mountinfo was
 * rejected: on a host, what a container calls /sys/fs/cgroup is another directory. */
#include "node/cgroups.h"

#include "base/str.h"
#include "read/mountinfo.h"
#include "read/read.h"

#include <stdio.h>
#include <string.h>

/* No host has as many hierarchies as would fill this. */
#define GROUPS_TEXT (64 << 10)

static const char *const v1_name[NR_CGROUP_CONTROLLERS] = {
	"cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "freezer", NULL};

static bool list_has(struct text list, const char *word)
{
	while (list.len > 0)
		if (text_is(text_cut(&list, ','), word))
			return true;
	return false;
}

/* The group of one controller (NULL: of v2 itself) in the text of a proc/PID/cgroup, borrowed from it; false:
 * in none. */
static bool find_group(const char *groups, const char *controller, bool *ret_v2, struct text *ret)
{
	struct text rest = text_of(groups);
	bool found = false;

	while (rest.len > 0) {
		struct text line = text_cut(&rest, '\n');
		struct text id = text_cut(&line, ':');
		struct text controllers = text_cut(&line, ':');
		bool v2 = text_is(id, "0") && controllers.len == 0;
		bool v1 = !v2 && controller && list_has(controllers, controller);

		if ((!v1 && !v2) || line.len == 0 || line.p[0] != '/')
			continue;
		*ret = line;
		*ret_v2 = v2;
		found = true;
		if (v1)
			break;
	}
	return found;
}

/* A cgroup namespace shows what is above its root as /.. : such a group cannot be reached by names. */
static bool goes_up(struct text path)
{
	while (path.len > 0)
		if (text_is(text_cut(&path, '/'), ".."))
			return true;
	return false;
}

/* What of the group's path is below the root of the mount; false when the mount does not show the group. */
static bool below_root(struct text group, const char *root, size_t root_len, struct text *ret)
{
	if (root_len == 1 && root[0] == '/')
		root_len = 0;
	if (group.len < root_len || memcmp(group.p, root, root_len) != 0)
		return false;
	*ret = (struct text){group.p + root_len, group.len - root_len};
	if (text_is(*ret, "/"))
		ret->len = 0;
	return (ret->len == 0 || ret->p[0] == '/') && !goes_up(*ret);
}

/* The directory of the group below this mount; false when it does not lead there. */
static bool make_path(
	const struct mount *m, const struct cgroup_dir *dir, char *path, size_t size, size_t *ret_len)
{
	struct text point = {m->point.p + 1, m->point.len - 1}, group = {dir->group, strlen(dir->group)},
		    rest;
	char root[PATH_MAX];

	if (!mount_unescape(m->root, root, sizeof(root)) || !below_root(group, root, strlen(root), &rest) ||
		!mount_unescape(point, path, size))
		return false;
	*ret_len = strlen(path);
	if (*ret_len + rest.len >= size)
		return false;
	memcpy(path + *ret_len, rest.p, rest.len);
	path[*ret_len + rest.len] = '\0';
	return true;
}

/* What is known of the best mount so far: the one that shows most of what is above the group, then one that
 * may be written to. */
struct best {
	size_t depth; /* of the group below the mount */
	bool writable;
};

static void offer(const struct mount *m, struct cgroup_dir *dir, struct best *best)
{
	bool writable = list_has(m->options, "rw");
	char path[PATH_MAX];
	size_t len, depth;

	if (!make_path(m, dir, path, sizeof(path), &len))
		return;
	depth = strlen(path + len);
	if (dir->found && (depth < best->depth || (depth == best->depth && (best->writable || !writable))))
		return;
	*best = (struct best){depth, writable};
	memcpy(dir->path, path, len + depth + 1);
	dir->mount_len = len;
	dir->found = true;
}

/* The directories of `nr` controllers by name, of zeroed ones; which hierarchies are mounted at all. */
static void find_dirs(const char *groups, const char *mountinfo, const char *const *name, size_t nr,
	struct cgroup_dir *dir, bool *ret_v1, bool *ret_v2)
{
	const char *at = mountinfo, *end = mountinfo + strlen(mountinfo);
	struct best best[NR_CGROUP_CONTROLLERS] = {0};
	struct mount m;

	for (size_t c = 0; c < nr; c++) {
		struct text group = {"", 0};

		if (find_group(groups, name[c], &dir[c].v2, &group) && group.len < sizeof(dir[c].group))
			memcpy(dir[c].group, group.p, group.len);
	}
	while (mountinfo_next(&at, end, &m)) {
		bool v2 = text_is(m.type, "cgroup2");

		if ((!v2 && !text_is(m.type, "cgroup")) || mountinfo_is_hidden(end, &m))
			continue;
		*(v2 ? ret_v2 : ret_v1) = true;
		for (size_t c = 0; c < nr; c++)
			if (dir[c].group[0] && dir[c].v2 == v2 && (v2 || list_has(m.super, name[c])))
				offer(&m, &dir[c], &best[c]);
	}
}

void cgroups_parse(const char *groups, const char *mountinfo, struct cgroups *ret)
{
	memset(ret, 0, sizeof(*ret));
	find_dirs(groups, mountinfo, v1_name, NR_CGROUP_CONTROLLERS, ret->dir, &ret->has_v1, &ret->has_v2);
}

/* -ENOENT is a process that is gone, or a kernel without control groups. */
static ssize_t read_groups(struct env *env, pid_t pid, char *text, size_t size)
{
	char path[48] = "proc/self/cgroup";
	ssize_t n;

	if (!pid)
		return env_slurp(env, path, text, size);
	snprintf(path, sizeof(path), "proc/%d/cgroup", (int)pid);
	n = env_slurp(env, path, text, size);
	if (n != -ENOENT)
		return n;
	return env_try(env, "proc/self/cgroup") < 0 ? -ENOENT : -ESRCH;
}

static int read_dirs(struct env *env, pid_t pid, const char *const *name, size_t nr, struct cgroup_dir *dir,
	bool *ret_v1, bool *ret_v2)
{
	_cleanup_(freep) char *groups = malloc(GROUPS_TEXT);
	struct textfile mounts = {0};
	ssize_t n;

	if (!groups)
		return -ENOMEM;
	n = read_groups(env, pid, groups, GROUPS_TEXT);
	if (n == -ENOENT)
		return 0;
	if (n < 0)
		return (int)n;
	n = textfile_open(&mounts, env, "proc/self/mountinfo", false);
	find_dirs(groups, n < 0 ? "" : mounts.text, name, nr, dir, ret_v1, ret_v2);
	textfile_close(&mounts, env);
	return 0;
}

int cgroups_read(struct env *env, pid_t pid, struct cgroups *ret)
{
	memset(ret, 0, sizeof(*ret));
	return read_dirs(env, pid, v1_name, NR_CGROUP_CONTROLLERS, ret->dir, &ret->has_v1, &ret->has_v2);
}

int cgroup_dir_find(struct env *env, pid_t pid, const char *controller, struct cgroup_dir *ret)
{
	bool v1 = false, v2 = false;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = read_dirs(env, pid, &controller, 1, ret, &v1, &v2);
	return r < 0 ? r : ret->found ? 0 : -ENOENT;
}

/* Cuts the last name off; the top of a hierarchy is "/" to the kernel and "" to us. */
static void cut_last(char *path, size_t keep)
{
	char *slash = strrchr(path, '/');

	if (slash && (size_t)(slash - path) >= keep)
		*slash = '\0';
}

bool cgroup_next(struct text *rest, struct text *ret_group)
{
	if (!rest->len)
		return false;
	*ret_group = text_cut(rest, '\n');
	text_cut(ret_group, ':');
	text_cut(ret_group, ':');
	return true;
}

bool cgroup_dir_up(struct cgroup_dir *dir)
{
	if (!dir->path[dir->mount_len])
		return false;
	cut_last(dir->path, dir->mount_len);
	cut_last(dir->group, 0);
	if (!dir->group[0])
		memcpy(dir->group, "/", 2);
	return true;
}

pid_t cgroup_recorder(const char *name)
{
	const char *p = name + strlen(CGROUP_RECORDERS);
	int64_t pid;

	if (!str_starts(name, CGROUP_RECORDERS) || !parse_i64n(p, strcspn(p, "-"), &pid) || pid <= 0 ||
		pid > INT32_MAX)
		return 0;
	return (pid_t)pid;
}

size_t cgroup_root_length(const struct cgroup_dir *dir)
{
	size_t below = strlen(dir->path + dir->mount_len), n = strlen(dir->group);

	while (n && dir->group[n - 1] == '/')
		n--;
	return n > below ? n - below : 0;
}

bool cgroup_dir_move(struct cgroup_dir *dir, const char *group)
{
	size_t root = cgroup_root_length(dir), n = strlen(group);

	if (n >= sizeof(dir->group) || strncmp(group, dir->group, root) || goes_up(text_of(group)) ||
		(group[root] && group[root] != '/'))
		return false;
	if (n - root == 1 && group[root] == '/') /* the top */
		dir->path[dir->mount_len] = '\0';
	else if (dir->mount_len + n - root < sizeof(dir->path))
		memcpy(dir->path + dir->mount_len, group + root, n - root + 1);
	else
		return false;
	memcpy(dir->group, group, n + 1);
	return true;
}

/* One PID a line. They come in pieces, and the end of a piece may cut a number. */
int cgroup_pids(struct env *env, int handle, int (*fn)(void *arg, pid_t pid), void *arg)
{
	char text[4096];
	off_t offset = 0;
	pid_t pid = 0;
	ssize_t n;

	while ((n = env_read_at(env, handle, text, sizeof(text), offset)) > 0) {
		offset += n;
		for (ssize_t i = 0; i < n; i++) {
			int r;

			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid < PID_LIMIT ? pid * 10 + (text[i] - '0') : pid;
				continue;
			}
			r = pid > 0 && pid <= PID_LIMIT ? fn(arg, pid) : 0;
			if (r)
				return r;
			pid = 0;
		}
	}
	return (int)n;
}

ssize_t cgroup_text(struct env *env, const struct cgroup_dir *dir, const char *file, char *out, size_t size)
{
	char path[PATH_MAX + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/%s", dir->path, file);
	return env_slurp(env, path, out, size);
}

int cgroup_number(struct env *env, const struct cgroup_dir *dir, const char *file, int64_t *ret)
{
	char path[PATH_MAX + NAME_MAX + 2], text[64];
	const char *p = text;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir->path, file);
	n = env_peek(env, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (!strncmp(text, "max", 3) && (unsigned char)text[3] <= ' ') {
		*ret = INT64_MAX;
		return 0;
	}
	return read_number(&p, text + n, ret) ? 0 : -EINVAL;
}

bool cgroups_by_systemd(struct env *env)
{
	int handle = env_open(env, "run/systemd/system"); /* as sd_booted(3) checks */

	env_close(env, handle);
	return handle >= 0;
}
