/* The running kernel. Paths are opened below a root descriptor, so that a chroot, a container's tree or a
 * test's folder can replace "/"; handles are file descriptors, and every call is one system call (the listing
 * of a folder aside). The CPU clock of a process needs neither a file nor permission: its clock id is the pid
 * itself (see MAKE_PROCESS_CPUCLOCK in the kernel's posix-timers headers). */
#include "env/env.h"

#include "base/rights.h"
#include "base/str.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>

struct live {
	struct env env;
	int root;
};

static int live_root(struct env *env)
{
	return ((struct live *)env)->root;
}

/* Which borrowed rights a refused path may be tried with: numbers of other users' processes, and energy.
 * Names, command lines, environments and the targets of descriptors are read only as far as the user may read
 * them without these rights. */
static uint64_t rights_for(const char *path)
{
	static const char *const files[] = {"io", "smaps_rollup", "fd"};
	const char *file;

	if (str_starts(path, "sys/class/powercap/"))
		return strstr(path, "..") ? 0 : RIGHT_READ;
	if (!str_starts(path, "proc/"))
		return 0;
	file = path + strlen("proc/");
	file += strspn(file, "0123456789");
	for (size_t i = 0; *file == '/' && i < ARRAY_SIZE(files); i++)
		if (!strcmp(file + 1, files[i]))
			return RIGHT_SYS_PTRACE | RIGHT_READ;
	return 0;
}

/* A file of a process, where /proc has other processes under our numbers. */
static bool is_other(const struct env *env, const char *path)
{
	return env->other_pids && str_starts(path, "proc/") && path[5] >= '1' && path[5] <= '9';
}

static int open_file(struct env *env, const char *path, int flags)
{
	int fd = openat(live_root(env), path, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r = fd < 0 ? -errno : fd;

	if (!is_refused(r) || !rights_raise(rights_for(path)))
		return r;
	fd = openat(live_root(env), path, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	r = fd < 0 ? -errno : fd;
	rights_lower();
	return r;
}

static int open_for(struct env *env, const char *path, int flags)
{
	return is_other(env, path) ? -ENOENT : open_file(env, path, flags);
}

static int live_open(struct env *env, const char *path)
{
	return open_for(env, path, 0);
}

/* The kernel checks the rights again when proc/PID/io is read: a file that could be opened may need the right
 * once more. */
static ssize_t live_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	ssize_t n = pread(handle, out, size, offset);

	(void)env;
	if (n >= 0)
		return n;
	n = -errno;
	if (!is_refused((int)n) || !rights_raise(RIGHT_SYS_PTRACE))
		return n;
	n = pread(handle, out, size, offset);
	n = n < 0 ? -errno : n;
	rights_lower();
	return n;
}

static void live_close(struct env *env, int handle)
{
	(void)env;
	close(handle);
}

static int64_t live_size(struct env *env, int handle)
{
	struct stat st;

	(void)env;
	return fstat(handle, &st) < 0 ? -errno : (int64_t)st.st_size;
}

/* getdents64 on the stack rather than opendir: a scan of /proc may fall into a tick, where nothing allocates.
 */
static int live_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	_cleanup_(closep) int fd = open_for(env, path, O_DIRECTORY);
	char block[16384] __attribute__((aligned(8)));

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = getdents64(fd, block, sizeof(block));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (ssize_t at = 0; at < n;) {
			const struct dirent *entry = (const struct dirent *)(block + at);
			int r;

			at += entry->d_reclen;
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
				continue;
			r = fn(arg, entry->d_name);
			if (r)
				return r;
		}
	}
}

static ssize_t live_readlink(struct env *env, const char *path, char *out, size_t size)
{
	ssize_t n;

	if (is_other(env, path))
		return -ENOENT;
	n = readlinkat(live_root(env), path, out, size);
	return n < 0 ? -errno : n;
}

/* A virtual file system may report more than a number holds. */
static int64_t blocks(uint64_t nr, uint64_t size)
{
	uint64_t bytes;

	return __builtin_mul_overflow(nr, size, &bytes) || bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* O_PATH needs no permission on the directory itself, starts no automount, and holds nothing once closed. */
static int live_space(struct env *env, const char *path, struct env_space *ret)
{
	_cleanup_(closep) int fd = -1;
	struct statvfs st;

	if (is_other(env, path))
		return -ENOENT;
	fd = openat(live_root(env), path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstatvfs(fd, &st) < 0)
		return -errno;
	*ret = (struct env_space){
		.total = blocks(st.f_blocks, st.f_frsize),
		.free = blocks(st.f_bfree, st.f_frsize),
		.available = blocks(st.f_bavail, st.f_frsize),
		.inodes = blocks(st.f_files, 1),
		.free_inodes = blocks(st.f_ffree, 1),
	};
	return 0;
}

static int64_t to_ns(const struct timespec *ts)
{
	return ts->tv_sec * NSEC_PER_SEC + ts->tv_nsec;
}

static int64_t live_cpu_clock(struct env *env, pid_t pid)
{
	struct timespec ts;

	(void)env;
	/* For a pid that is not there the kernel says EINVAL: it cannot distinguish such a clock from a
	 * malformed one. */
	if (clock_gettime((clockid_t)((~(unsigned)pid << 3) | 2), &ts) < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	return to_ns(&ts);
}

static int64_t live_now(struct env *env, enum env_clock clock)
{
	static const clockid_t id[NR_ENV_CLOCKS] = {
		[ENV_MONOTONIC] = CLOCK_MONOTONIC,
		[ENV_REALTIME] = CLOCK_REALTIME,
		[ENV_BOOTTIME] = CLOCK_BOOTTIME,
	};
	struct timespec ts;

	(void)env;
	clock_gettime(id[clock], &ts);
	return to_ns(&ts);
}

static int live_sleep_until(struct env *env, int64_t deadline_ns)
{
	struct timespec ts = {.tv_sec = deadline_ns / NSEC_PER_SEC, .tv_nsec = deadline_ns % NSEC_PER_SEC};

	(void)env;
	return deadline_ns <= 0 ? 0 : -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Variables that lead to files, folders and libraries. With borrowed rights the user must not choose them.
 * TACHO_RECORDING only shows that the job is recorded already. */
static bool leads_somewhere(const char *name)
{
	return (str_starts(name, "TACHO_") && strcmp(name, "TACHO_RECORDING")) || str_starts(name, "LD_") ||
		str_starts(name, "XDG_") || !strcmp(name, "TMPDIR") || !strcmp(name, "HOME") ||
		!strcmp(name, "PATH");
}

static const char *live_getenv(struct env *env, const char *name)
{
	(void)env;
	return rights_borrowed() && leads_somewhere(name) ? NULL : getenv(name);
}

static int live_counter_open(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct perf_event_attr with_times = *attr;
	int fd, r;

	(void)env;
	with_times.size = sizeof(with_times);
	with_times.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = (int)syscall(SYS_perf_event_open, &with_times, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	r = fd < 0 ? -errno : fd;
	if (!is_refused(r) || !rights_raise(RIGHT_PERFMON | RIGHT_SYS_PTRACE))
		return r;
	fd = (int)syscall(SYS_perf_event_open, &with_times, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	r = fd < 0 ? -errno : fd;
	rights_lower();
	return r;
}

static int live_counter_read(struct env *env, int handle, struct env_count *ret)
{
	uint64_t number[3];
	ssize_t n = read(handle, number, sizeof(number)); /* it has no position: pread is refused */

	(void)env;
	if (n != sizeof(number))
		return n < 0 ? -errno : -EIO;
	*ret = (struct env_count){.value = number[0], .enabled_ns = number[1], .running_ns = number[2]};
	return 0;
}

static void *live_library(struct env *env, const char *name, const char **reterr)
{
	char real[PATH_MAX];
	void *library;

	(void)env;
	/* A plain name is looked for by the loader, which then knows the system's folders alone. */
	if (rights_borrowed() && strchr(name, '/')) {
		if (!rights_trusted(name, real)) {
			if (reterr)
				*reterr = "others than root could change it, and tacho has rights of its own";
			return NULL;
		}
		name = real;
	}
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library && reterr)
		*reterr = dlerror();
	return library;
}

static void *live_symbol(struct env *env, void *library, const char *name)
{
	(void)env;
	return dlsym(library, name);
}

static void live_free(struct env *env)
{
	close(live_root(env));
	free(env);
}

static const struct env_ops live_ops = {
	.open = live_open,
	.read = live_read,
	.close = live_close,
	.size = live_size,
	.list = live_list,
	.readlink = live_readlink,
	.space = live_space,
	.cpu_clock = live_cpu_clock,
	.now = live_now,
	.sleep_until = live_sleep_until,
	.getenv = live_getenv,
	.counter_open = live_counter_open,
	.counter_read = live_counter_read,
	.library = live_library,
	.symbol = live_symbol,
	.free = live_free,
};

/* In the /proc of a PID namespace above ours we have another number (a larger one, as long as PIDs did not
 * wrap around); in one below or beside ours we have none. The same is true of our processes. */
static bool has_other_pids(struct env *env)
{
	char self[16];
	ssize_t n = live_readlink(env, "proc/self", self, sizeof(self) - 1);

	if (n < 0)
		return true;
	self[n] = 0;
	return strtol(self, NULL, 10) != getpid();
}

struct env *env_live(const char *root)
{
	struct live *live = malloc(sizeof(*live));

	if (!live)
		return NULL;
	live->root = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (live->root < 0) {
		free(live);
		return NULL;
	}
	live->env = (struct env){
		.ops = &live_ops,
		.page_size = sysconf(_SC_PAGESIZE),
		.clock_tick = sysconf(_SC_CLK_TCK),
		.live = true,
	};
	live->env.other_pids = !root && has_other_pids(&live->env);
	return &live->env;
}
