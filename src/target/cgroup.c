/* A control group of our own, for two things that nothing else gives: the exact CPU time of all that ever ran
 * in it, also of children whose parent ignored their end; and, where no other process is in our group, that
 * job and recorder compete for CPUs as two tasks and not as a thousand and one.
 *
 * It is a child of the group we are in, so that every limit above stays in force, and it sets none itself. v2
 * counts CPU in every group without any controller enabled, so nothing of the host's set-up is changed. On v1
 * a group in cpuacct's hierarchy does the same. Only the job enters; the recorder stays outside and is not
 * counted.
 *
 * In the hierarchy of the cpu controller a group weighs as much as one process, whatever runs in it: beside
 * other processes the job would lose. So it gets a group there only when the recorder is alone in the group
 * we are in (its parent below), as in a scope of systemd's with Delegate=yes. What the parent gets of the
 * machine stays the same, and inside it are only job and recorder. On v1 that is a group for the job; the
 * recorder stays in the parent. On v2 processes and groups cannot be side by side in one group: there the
 * recorder moves to a group beside the job's, and the controller is switched on in the parent (and off again
 * at the end, by the witness if we alone are killed: a group whose controllers are on for others takes no
 * processes).
 *
 * Rejected: where others are in the parent, a heavy group for the recorder alone (v1, cpu.shares 262144):
 * 8 of 89 ticks missed among 1,000 processes, where two groups missed none of 132; a threaded group for it
 * (v2), which would forbid the job and the others to make groups of processes.
 *
 * Rejected: a v1 memory group for the true peak. Before Linux 5.11 v1 memory groups need not be hierarchical,
 * and a job in a group of ours could then escape the limit of its parent.
 *
 * A group stays when the recorder that made it is killed. So the recorder holds a lock on the directory, and
 * each new recorder removes the groups beside its own whose recorder's pid is gone and whose lock is free:
 * neither a reused pid nor a recorder in another pid namespace misleads it. Removing means rmdir, which the
 * kernel refuses while anything runs in the group: an orphaned job keeps its group until it ends. */
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

#define NAME_TRIES 8   /* the same pid in several pid namespaces */
#define MOVE_ROUNDS 64 /* forks race with our moving */
#define RMDIR_TRIES 20 /* a task just reaped may still be on its way out */
#define NEST_MAX 8     /* recorders in recorders */
#define TEXT_MAX (1 << 20)

/* One directory that we made. */
struct made_cgroup {
	int parent;    /* directory of the group we are in, or -1 */
	int dir;       /* of ours; holds the lock */
	char name[48]; /* "": there is none */
};

struct own_cgroup {
	bool v2;
	struct made_cgroup job;	     /* which counts */
	struct made_cgroup cpu;	     /* v1: of the cpu controller, for the job */
	struct made_cgroup recorder; /* v2: beside the job's, with the cpu controller switched on */
	const char *controller;	     /* v2: what is switched on */
	bool shares;		     /* job and recorder compete as two */
	int share_error;	     /* why not, if that is known at the start */
	int enter, enter_cpu;	     /* where a process writes 0 to enter; -1: not needed */
	int usage;		     /* cpu.stat or cpuacct.usage */
	int split;		     /* v1: cpuacct.stat */
	int peak;		     /* memory.peak, or -1 */
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

static void stop_sharing(struct own_cgroup *g);

static bool is_populated(int dir)
{
	struct buf text;
	bool populated = true;

	buf_init(&text, 65536);
	if (read_at(dir, "cgroup.events", &text) == 0) /* v2 only; counts the whole subtree */
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
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
			(any || cgroup_recorder(entry->d_name)))
			remove_group(dirfd(d), entry->d_name, depth + 1);
	closedir(d);
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static bool is_abandoned(int parent, const char *name)
{
	_cleanup_(closep) int fd = -1;
	pid_t pid = cgroup_recorder(name);

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
static int move_members(const struct made_cgroup *g, int to)
{
	const char *p;
	struct buf text;
	int moved = 0;

	buf_init(&text, TEXT_MAX);
	if (read_at(g->dir, "cgroup.procs", &text) < 0)
		text.len = 0;
	for (p = text.len ? (char *)text.data : ""; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		int64_t pid;

		/* 0 is a process outside our pid namespace: writing it back would move ourselves. */
		if (parse_i64n(p, strcspn(p, "\n"), &pid) && pid > 0 && write_pid(to, (pid_t)pid) == 0)
			moved++;
	}
	buf_release(&text);
	return moved;
}

/* Moves what still runs in it back to the parent. */
static void group_remove(struct made_cgroup *g)
{
	const struct timespec pause = {.tv_nsec = 1000 * 1000};
	_cleanup_(closep) int to = -1;

	if (g->name[0] && unlinkat(g->parent, g->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		to = openat(g->parent, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		for (int i = 0; i < MOVE_ROUNDS && move_members(g, to) > 0; i++)
			;
		for (int i = 0; i < RMDIR_TRIES && remove_group(g->parent, g->name, 0) == -EBUSY; i++)
			nanosleep(&pause, NULL);
	}
	closep(&g->parent);
	closep(&g->dir);
	g->name[0] = '\0';
}

struct own_cgroup *cgroup_remove(struct own_cgroup *g)
{
	if (!g)
		return NULL;
	stop_sharing(g);
	group_remove(&g->job);
	group_remove(&g->cpu);
	closep(&g->enter);
	closep(&g->enter_cpu);
	closep(&g->usage);
	closep(&g->split);
	closep(&g->peak);
	free(g);
	return NULL;
}

/* ---- making ---- */

static struct own_cgroup *cgroup_new(void)
{
	static const struct made_cgroup none = {.parent = -1, .dir = -1};
	struct own_cgroup *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->job = g->cpu = g->recorder = none;
	g->enter = g->enter_cpu = g->usage = g->split = g->peak = -1;
	g->share_error = -ENOENT;
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

static int open_parent(struct made_cgroup *g, const struct cgroup_dir *place)
{
	char path[PATH_MAX + 1];

	snprintf(path, sizeof(path), "/%s", place->path);
	g->parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->parent < 0)
		return -errno;
	remove_abandoned(g->parent);
	/* We may be allowed to make a group and still not to move processes between it and this one. */
	return faccessat(g->parent, "cgroup.procs", W_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int make_directory(struct made_cgroup *g, const char *suffix)
{
	char name[sizeof(g->name)];

	for (int i = 0; i < NAME_TRIES; i++) {
		snprintf(name, sizeof(name), i ? CGROUP_RECORDERS "%d%s-%d" : CGROUP_RECORDERS "%d%s",
			getpid(), suffix, i);
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

/* Whether only we, and a companion (0: none), are in the group, and it has no child group except one of this
 * name ("": none at all). */
static bool is_alone(int parent, pid_t companion, const char *name)
{
	DIR *d = directory_open(parent, ".");
	struct dirent *entry;
	struct buf text;
	bool alone = d;

	while (alone && (entry = readdir(d)))
		alone = entry->d_type != DT_DIR || entry->d_name[0] == '.' || !strcmp(entry->d_name, name);
	if (d)
		closedir(d);
	buf_init(&text, TEXT_MAX);
	alone = alone && read_at(parent, "cgroup.procs", &text) == 0;
	for (const char *p = alone ? (char *)text.data : ""; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		int64_t pid;

		alone = alone && parse_i64n(p, strcspn(p, "\n"), &pid) &&
			(pid == getpid() || (companion && pid == companion));
	}
	buf_release(&text);
	return alone;
}

static int open_files(struct own_cgroup *g)
{
	int dir = g->job.dir;

	/* "tasks" takes a single-threaded process as well, and without the lock that makes cgroup.procs slow.
	 */
	g->enter = openat(dir, g->v2 ? "cgroup.procs" : "tasks", O_WRONLY | O_CLOEXEC);
	g->usage = openat(dir, g->v2 ? "cpu.stat" : "cpuacct.usage", O_RDONLY | O_CLOEXEC);
	if (g->enter < 0 || g->usage < 0)
		return -errno;
	if (g->v2)
		g->peak = openat(dir, "memory.peak", O_RDONLY | O_CLOEXEC);
	else
		g->split = openat(dir, "cpuacct.stat", O_RDONLY | O_CLOEXEC);
	return 0;
}

/* v1, the cpu controller in a hierarchy of its own. The topmost group is the whole machine's. */
static int make_cpu_group(struct own_cgroup *g, const struct cgroup_dir *place)
{
	int r;

	if (!place->found || place->v2)
		return -ENOENT;
	if (!place->path[place->mount_len])
		return -EBUSY;
	r = open_parent(&g->cpu, place);
	if (r >= 0 && !is_alone(g->cpu.parent, 0, ""))
		r = -EBUSY;
	if (r >= 0)
		r = make_directory(&g->cpu, "");
	if (r < 0)
		return r;
	g->enter_cpu = openat(g->cpu.dir, "tasks", O_WRONLY | O_CLOEXEC);
	return g->enter_cpu < 0 ? -errno : 0;
}

static int create_at(struct own_cgroup *g, const struct cgroup_dir *place, const struct cgroup_dir *cpu)
{
	bool same = cpu->found && !cpu->v2 && !strcmp(cpu->path, place->path);
	int r;

	g->v2 = place->v2;
	r = open_parent(&g->job, place);
	/* cpu and cpuacct are one hierarchy: the group that counts the job's CPU time would limit it, too. */
	if (r >= 0 && same && !is_alone(g->job.parent, 0, ""))
		r = -EBUSY;
	if (r >= 0)
		r = make_directory(&g->job, "");
	if (r >= 0 && g->v2)
		r = check_type(g->job.dir);
	if (r >= 0)
		r = open_files(g);
	if (r < 0)
		return r;
	g->share_error = same ? 0 : make_cpu_group(g, cpu);
	g->shares = g->share_error == 0;
	if (!g->shares)
		group_remove(&g->cpu);
	snprintf(g->path, sizeof(g->path), "%s/%s", place->path + place->mount_len, g->job.name);
	return 0;
}

static const char *why_not(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return "tacho's control group is not delegated to this user";
	case -EROFS:
		return "control groups are mounted read-only";
	case -ENOENT:
		return "no control group that counts CPU time is mounted here";
	case -EOPNOTSUPP:
		return "tacho's control group is threaded";
	case -EBUSY:
		return "beside other processes a control group would change the job's part of the CPUs (cpu "
		       "and cpuacct are one hierarchy here)";
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
		r = g ? create_at(g, dir, &groups->dir[CGROUP_CPU]) : -ENOMEM;
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

/* ---- competing as two ---- */

static int write_at(int dir, const char *name, const char *text)
{
	_cleanup_(closep) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int move_at(int dir, pid_t pid)
{
	_cleanup_(closep) int fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_pid(fd, pid);
}

static bool has_controller(int dir, const char *name)
{
	const char *p;
	struct buf text;
	size_t len = strlen(name);
	bool has = false;

	buf_init(&text, 2 * 4096);
	if (read_at(dir, "cgroup.controllers", &text) < 0)
		text.len = 0;
	for (p = text.len ? (char *)text.data : ""; *p && !has; p += strcspn(p, " \n"), p += *p != '\0')
		has = strcspn(p, " \n") == len && !memcmp(p, name, len);
	buf_release(&text);
	return has;
}

/* The order matters: nothing can be moved into a group whose controllers are switched on for others. */
static void stop_sharing(struct own_cgroup *g)
{
	char off[32];

	if (!g->recorder.name[0])
		return;
	snprintf(off, sizeof(off), "-%s", g->controller);
	write_at(g->job.parent, "cgroup.subtree_control", off);
	group_remove(&g->recorder);
	g->shares = false;
}

static int enter_own_group(struct own_cgroup *g, pid_t companion)
{
	char on[32];
	int r;

	g->recorder.parent = fcntl(g->job.parent, F_DUPFD_CLOEXEC, 0);
	r = g->recorder.parent < 0 ? -errno : make_directory(&g->recorder, "-recorder");
	if (r >= 0)
		r = move_at(g->recorder.dir, getpid());
	if (r >= 0 && companion)
		r = move_at(g->recorder.dir, companion);
	if (r < 0)
		return r;
	snprintf(on, sizeof(on), "+%s", g->controller);
	return write_at(g->job.parent, "cgroup.subtree_control", on);
}

int cgroup_share(struct own_cgroup *g, pid_t companion, const char *controller)
{
	int r;

	if (g->shares || !g->v2 || !has_controller(g->job.parent, controller))
		return g->shares ? 0 : g->share_error;
	if (!is_alone(g->job.parent, companion, g->job.name))
		return -EBUSY;
	g->controller = controller;
	r = enter_own_group(g, companion);
	g->shares = r >= 0;
	if (r < 0)
		stop_sharing(g);
	return r < 0 ? r : 0;
}

int cgroup_untidy(const struct own_cgroup *g)
{
	return g->recorder.name[0] ? g->job.parent : -1;
}

/* As stop_sharing(), for the witness when we were killed: allocates nothing. The job may go on: then its
 * group stays. */
void cgroup_tidy(const void *group, int parent)
{
	const struct own_cgroup *g = group;
	char off[32];

	snprintf(off, sizeof(off), "-%s", g->controller);
	write_at(parent, "cgroup.subtree_control", off);
	move_at(parent, getpid());
	unlinkat(parent, g->recorder.name, AT_REMOVEDIR);
	unlinkat(parent, g->job.name, AT_REMOVEDIR);
}

const char *cgroup_share_why(int error)
{
	switch (error) {
	case -EBUSY:
		return "it is not alone in its control group";
	case -ENOENT:
		return "its control group has no cpu controller";
	case -EPERM:
	case -EACCES:
	case -EROFS:
		return "its control group is not delegated to this user";
	default:
		return "it got no control group";
	}
}

/* ---- using ---- */

static pid_t fork_into(const struct own_cgroup *g, bool *ret_inside)
{
	struct clone_args inside = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD},
			  plain = {.exit_signal = SIGCHLD};
	pid_t pid;

	if (g && g->v2) {
		inside.cgroup = (uint64_t)g->job.dir;
		*ret_inside = true; /* set before the fork, for the child's copy */
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

void cgroup_doors(const struct own_cgroup *g, int *ret, int *ret_always)
{
	*ret = g ? g->enter : -1;
	*ret_always = g ? g->enter_cpu : -1;
}

pid_t cgroup_fork(const struct own_cgroup *g, bool *ret_inside)
{
	bool rights = rights_held() != 0; /* read before the fork: the child shall touch little memory */
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

int cgroup_enter(const struct own_cgroup *g, bool inside)
{
	if ((!inside && write(g->enter, "0", 1) < 0) ||
		(g->enter_cpu >= 0 && write(g->enter_cpu, "0", 1) < 0))
		return -errno;
	return 0;
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

/* cpuacct.usage is exact; cpuacct.stat, in ticks, shows how to divide it. */
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
	size_t name = strlen(g->job.name);

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		const char *path = path_of_line(g, text, len), *end = text + len;

		if (!path || (!g->v2 && end - path == 1))
			continue;
		for (const char *at = path; at < end; at += strcspn(at + 1, "/\n") + 1)
			if (strcspn(at + 1, "/\n") == name && !memcmp(at + 1, g->job.name, name))
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
