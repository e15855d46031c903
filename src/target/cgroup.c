/* A control group of our own, for the one thing that nothing else gives: the exact CPU time of all that ever
 * ran in it, also of children whose parent ignored their end.
 *
 * It is a child of the group we are in, so that every limit above stays in force, and it sets none itself. v2
 * counts CPU in every group without any controller enabled, so nothing of the host's set-up is changed. On v1
 * a group in cpuacct's hierarchy does the same. Only the job enters; the recorder stays outside and is not
 * counted.
 *
 * Rejected: a v1 memory group for the true peak. Before Linux 5.11 v1 memory groups need not be hierarchical,
 * and a job in a group of ours could then escape the limit of its parent.
 *
 * A group outlives its maker when that is killed. So the maker holds a lock on the directory, and each new
 * recorder removes the groups beside its own whose maker's pid is gone and whose lock is free: neither a
 * reused pid nor a recorder in another pid namespace is mistaken. Removing means rmdir, which the kernel
 * refuses while anything runs in the group: an orphaned job keeps its group until it ends. */
#include "target/kernel.h"
#include "base/buf.h"
#include "base/rights.h"
#include "base/str.h"
#include "node/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define PREFIX "tacho-"
#define NAME_TRIES 8   /* the same pid in several pid namespaces */
#define MOVE_ROUNDS 64 /* forks race with our moving */
#define RMDIR_TRIES 20 /* a task just reaped may still be on its way out */
#define NEST_MAX 8     /* recorders in recorders */
#define TEXT_MAX (1 << 20)

struct own_cgroup {
	bool v2;
	int parent; /* directory of the group we are in */
	int dir;    /* of ours; holds the lock */
	int enter;  /* where a process writes 0 to come in */
	int usage;  /* cpu.stat or cpuacct.usage */
	int split;  /* v1: cpuacct.stat */
	int peak;   /* memory.peak, or -1 */
	char name[48];
	char path[PATH_MAX];
};

static int read_at(int dir, const char *name, struct buf *out)
{
	_cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		if (!buf_reserve(out, 4096))
			return out->err;
		n = read(fd, out->data + out->len, out->cap - out->len);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	out->data[out->len] = '\0';
	return n < 0 ? -errno : 0;
}

static int write_pid(int fd, pid_t pid)
{
	char text[24];
	size_t len = format_i64(text, pid);

	return write(fd, text, len) < 0 ? -errno : 0;
}

/* ---- removing ---- */

/* The pid in a name of ours, 0 for other names. */
static pid_t maker_of(const char *name)
{
	const char *p = name + strlen(PREFIX);
	int64_t pid;

	if (!str_starts(name, PREFIX) || !parse_i64n(p, strcspn(p, "-"), &pid) || pid <= 0 || pid > INT32_MAX)
		return 0;
	return (pid_t)pid;
}

static bool is_populated(int dir)
{
	struct buf text;
	bool populated = true;

	buf_init(&text, 65536);
	if (read_at(dir, "cgroup.events", &text) == 0) /* v2 only; it speaks for the whole subtree */
		populated = !strstr((char *)text.data, "populated 0");
	buf_release(&text);
	return populated;
}

static DIR *directory_open(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		closep(&fd);
	return d;
}

/* rmdir, and first of what lies inside: groups of recorders in the job, and on v2, where nothing runs in any
 * of them, groups that the job left. */
static int remove_group(int parent, const char *name, unsigned depth)
{
	struct dirent *entry;
	bool any;
	DIR *d;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (depth == NEST_MAX)
		return -EBUSY;
	d = directory_open(parent, name);
	if (!d)
		return -errno;
	any = !is_populated(dirfd(d));
	while ((entry = readdir(d)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && (any || maker_of(entry->d_name)))
			remove_group(dirfd(d), entry->d_name, depth + 1);
	closedir(d);
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static bool is_abandoned(int parent, const char *name)
{
	_cleanup_(closep) int fd = -1;
	pid_t pid = maker_of(name);

	if (!pid || (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH)))
		return false;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void remove_abandoned(int parent)
{
	DIR *d = directory_open(parent, ".");
	struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (is_abandoned(parent, entry->d_name))
			remove_group(parent, entry->d_name, 0);
	closedir(d);
}

/* One pass over the members; returns how many were moved. */
static int move_members(struct own_cgroup *g, int to)
{
	const char *p;
	struct buf text;
	int moved = 0;

	buf_init(&text, TEXT_MAX);
	if (read_at(g->dir, "cgroup.procs", &text) < 0)
		text.len = 0;
	for (p = (char *)text.data; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		int64_t pid;

		/* 0 is a process outside our pid namespace: writing it back would move ourselves. */
		if (parse_i64n(p, strcspn(p, "\n"), &pid) && pid > 0 && write_pid(to, (pid_t)pid) == 0)
			moved++;
	}
	buf_release(&text);
	return moved;
}

struct own_cgroup *cgroup_remove(struct own_cgroup *g)
{
	const struct timespec pause = {.tv_nsec = 1000 * 1000};
	_cleanup_(closep) int to = -1;

	if (!g)
		return NULL;
	if (g->name[0] && unlinkat(g->parent, g->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		to = openat(g->parent, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		for (int i = 0; i < MOVE_ROUNDS && move_members(g, to) > 0; i++)
			;
		for (int i = 0; i < RMDIR_TRIES && remove_group(g->parent, g->name, 0) == -EBUSY; i++)
			nanosleep(&pause, NULL);
	}
	closep(&g->parent);
	closep(&g->dir);
	closep(&g->enter);
	closep(&g->usage);
	closep(&g->split);
	closep(&g->peak);
	free(g);
	return NULL;
}

/* ---- making ---- */

static struct own_cgroup *cgroup_new(void)
{
	struct own_cgroup *g = calloc(1, sizeof(*g));

	if (g)
		g->parent = g->dir = g->enter = g->usage = g->split = g->peak = -1;
	return g;
}

/* A group in a threaded subtree takes no processes, and would say so only when the job enters. */
static int check_type(int dir)
{
	struct buf text;
	int r;

	buf_init(&text, 2 * 4096);
	r = read_at(dir, "cgroup.type", &text);
	if (r == 0 && strcmp((char *)text.data, "domain\n") != 0)
		r = -EOPNOTSUPP;
	buf_release(&text);
	return r;
}

static int make_directory(struct own_cgroup *g)
{
	char name[sizeof(g->name)];

	for (int i = 0; i < NAME_TRIES; i++) {
		snprintf(name, sizeof(name), i ? PREFIX "%d-%d" : PREFIX "%d", getpid(), i);
		if (mkdirat(g->parent, name, 0755) < 0) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		memcpy(g->name, name, sizeof(name));
		g->dir = openat(g->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (g->dir < 0 || flock(g->dir, LOCK_EX | LOCK_NB) < 0)
			return -errno;
		return 0;
	}
	return -EEXIST;
}

static int open_files(struct own_cgroup *g)
{
	/* "tasks" takes a single-threaded process as well, and without the lock that makes cgroup.procs slow.
	 */
	g->enter = openat(g->dir, g->v2 ? "cgroup.procs" : "tasks", O_WRONLY | O_CLOEXEC);
	g->usage = openat(g->dir, g->v2 ? "cpu.stat" : "cpuacct.usage", O_RDONLY | O_CLOEXEC);
	if (g->enter < 0 || g->usage < 0)
		return -errno;
	if (g->v2)
		g->peak = openat(g->dir, "memory.peak", O_RDONLY | O_CLOEXEC);
	else
		g->split = openat(g->dir, "cpuacct.stat", O_RDONLY | O_CLOEXEC);
	return 0;
}

static int create_at(struct own_cgroup *g, const struct cgroup_dir *place)
{
	char path[PATH_MAX + 1];
	int r;

	g->v2 = place->v2;
	snprintf(path, sizeof(path), "/%s", place->path);
	g->parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->parent < 0)
		return -errno;
	remove_abandoned(g->parent);
	/* Who may make a group may still not be allowed to move processes between it and this one. */
	if (faccessat(g->parent, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return -errno;
	r = make_directory(g);
	if (r >= 0 && g->v2)
		r = check_type(g->dir);
	if (r >= 0)
		r = open_files(g);
	if (r < 0)
		return r;
	snprintf(g->path, sizeof(g->path), "%s/%s", place->path + place->mount_len, g->name);
	return 0;
}

static const char *why_not(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return "the control group we are in is not delegated to this user";
	case -EROFS:
		return "control groups are mounted read-only";
	case -ENOENT:
		return "no control group that counts CPU time is mounted here";
	case -EOPNOTSUPP:
		return "the control group we are in is threaded";
	default:
		return "a control group could not be made";
	}
}

/* v2 first: it counts CPU time whatever else is mounted. */
static int try_places(struct own_cgroup **ret, const struct cgroups *groups)
{
	static const enum cgroup_controller place[] = {CGROUP_UNIFIED, CGROUP_CPUACCT};
	int first = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		const struct cgroup_dir *dir = &groups->dir[place[i]];
		struct own_cgroup *g;
		int r;

		if (!dir->found || (i > 0 && dir->v2))
			continue;
		g = cgroup_new();
		r = g ? create_at(g, dir) : -ENOMEM;
		if (r >= 0) {
			*ret = g;
			return 0;
		}
		cgroup_remove(g);
		if (first == -ENOENT)
			first = r;
	}
	return first;
}

int cgroup_create_in(const struct cgroups *places, struct own_cgroup **ret, const char **reterr_why)
{
	int r = try_places(ret, places);

	if (r < 0)
		*reterr_why = why_not(r);
	return r;
}

int cgroup_create(struct own_cgroup **ret, const char **reterr_why)
{
	_cleanup_(freep) struct cgroups *places = malloc(sizeof(*places));
	struct buf mounts, groups;
	int r;

	buf_init(&mounts, 16 * TEXT_MAX);
	buf_init(&groups, TEXT_MAX);
	r = places ? read_at(AT_FDCWD, "/proc/self/mountinfo", &mounts) : -ENOMEM;
	if (r >= 0)
		r = read_at(AT_FDCWD, "/proc/self/cgroup", &groups);
	if (r >= 0) {
		cgroups_parse((char *)groups.data, (char *)mounts.data, places);
		r = try_places(ret, places);
	}
	buf_release(&mounts);
	buf_release(&groups);
	if (r < 0)
		*reterr_why = why_not(r);
	return r;
}

/* ---- using ---- */

static pid_t fork_into(const struct own_cgroup *g, bool *ret_inside)
{
	struct clone_args inside = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD},
			  plain = {.exit_signal = SIGCHLD};
	pid_t pid;

	if (g && g->v2) {
		inside.cgroup = (uint64_t)g->dir;
		*ret_inside = true; /* before, for the child's copy of it */
		pid = (pid_t)syscall(SYS_clone3, &inside, sizeof(inside));
		if (pid >= 0)
			return pid;
	}
	*ret_inside = false;
	/* Without what fork(3) does in the child, whose memory must stay small: see target/command.c. */
	pid = (pid_t)syscall(SYS_clone3, &plain, sizeof(plain));
	if (pid < 0)
		pid = fork();
	return pid < 0 ? -errno : pid;
}

int cgroup_door(const struct own_cgroup *g)
{
	return g->enter;
}

pid_t cgroup_fork(const struct own_cgroup *g, bool *ret_inside)
{
	bool rights = rights_held() != 0; /* asked before: the child shall touch little memory */
	pid_t pid;

	if (rights)
		rights_before_fork();
	pid = fork_into(g, ret_inside);
	if (pid == 0 && rights)
		rights_drop();
	else if (rights)
		rights_after_fork();
	return pid;
}

int cgroup_enter(const struct own_cgroup *g)
{
	return write(cgroup_door(g), "0", 1) < 0 ? -errno : 0;
}

/* The number after a key at the start of a line ("" takes the first line); -1 when there is none. */
static int64_t value_of(const char *text, const char *key)
{
	size_t len = strlen(key);
	int64_t value;

	while (*text && strncmp(text, key, len) != 0) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if (!*text || !parse_i64n(text + len, strcspn(text + len, "\n"), &value))
		return -1;
	return value;
}

static int read_text(int fd, char *ret, size_t size)
{
	ssize_t n = pread(fd, ret, size - 1, 0);

	ret[MAX(n, 0)] = '\0';
	return n < 0 ? -errno : 0;
}

static int64_t microseconds(const char *text, const char *key)
{
	int64_t value = value_of(text, key);

	return value < 0 ? -1 : value * NSEC_PER_USEC;
}

/* cpuacct.usage is exact; cpuacct.stat, in ticks, tells how to divide it. */
static void divide_v1(const struct own_cgroup *g, struct cgroup_usage *ret)
{
	char text[256];
	int64_t user, system;

	if (g->split < 0 || read_text(g->split, text, sizeof(text)) < 0)
		return;
	user = value_of(text, "user ");
	system = value_of(text, "system ");
	if (user < 0 || system < 0 || user + system == 0)
		return;
	ret->system_ns = (int64_t)((double)ret->total_ns * (double)system / (double)(user + system));
	ret->user_ns = ret->total_ns - ret->system_ns;
}

int cgroup_read(struct own_cgroup *g, struct cgroup_usage *ret)
{
	struct cgroup_usage u = {-1, -1, -1, -1};
	char text[4096];
	int r = read_text(g->usage, text, sizeof(text));

	if (r < 0)
		return r;
	if (g->v2) {
		u.total_ns = microseconds(text, "usage_usec ");
		u.user_ns = microseconds(text, "user_usec ");
		u.system_ns = microseconds(text, "system_usec ");
	} else {
		u.total_ns = value_of(text, "");
		divide_v1(g, &u);
	}
	if (u.total_ns < 0)
		return -EBADMSG;
	if (g->peak >= 0 && read_text(g->peak, text, sizeof(text)) == 0)
		u.memory_peak_bytes = value_of(text, "");
	*ret = u;
	return 0;
}

/* The path in a line "ID:CONTROLLERS:PATH" of the hierarchy that our group is in; NULL: another one. */
static const char *path_of_line(const struct own_cgroup *g, const char *line, size_t len)
{
	const char *controllers = memchr(line, ':', len), *path;

	if (!controllers++)
		return NULL;
	path = memchr(controllers, ':', len - (size_t)(controllers - line));
	if (!path++)
		return NULL;
	if (g->v2)
		return str_starts(line, "0::") ? path : NULL;
	for (const char *at = controllers; at < path; at += strcspn(at, ",:") + 1)
		if (strcspn(at, ",:") == strlen("cpuacct") && str_starts(at, "cpuacct"))
			return path;
	return NULL;
}

bool cgroup_holds(const struct own_cgroup *g, const char *text)
{
	size_t name = strlen(g->name);

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		const char *path = path_of_line(g, text, len), *end = text + len;

		if (!path || (!g->v2 && end - path == 1))
			continue;
		for (const char *at = path; at < end; at += strcspn(at + 1, "/\n") + 1)
			if (strcspn(at + 1, "/\n") == name && !memcmp(at + 1, g->name, name))
				return true;
		return false;
	}
	return true;
}

const char *cgroup_path(const struct own_cgroup *g)
{
	return g->path;
}

const char *cgroup_kind(const struct own_cgroup *g)
{
	return g->v2 ? "v2" : "v1";
}
