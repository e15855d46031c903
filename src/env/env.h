/* The machine as an argument.
 *
 * Everything the recorder learns from the machine passes through an env, so that the same code runs on the
 * live kernel, on a captured machine (a plain-text archive of files), on a film (a machine plus frames of
 * changes on the film's own clock), under a recorder that writes such a capture, and under an env whose n-th
 * call fails.
 *
 * Paths are relative to the root and have no leading slash: "proc/meminfo". Handles are small non-negative
 * integers; on the live env they are file descriptors (O_CLOEXEC). All calls return a negative errno on
 * failure. Calls to the live env may be made from several threads at once; the others belong to one. */
#ifndef ENV_ENV_H
#define ENV_ENV_H

#include "base/base.h"

#include <sys/types.h>

enum env_clock { ENV_MONOTONIC, ENV_REALTIME, ENV_BOOTTIME, NR_ENV_CLOCKS };

struct env;
struct perf_event_attr;

/* What a file system holds: bytes, and files it has room for. A file system that counts no files has 0 of
 * them.
 */
struct env_space {
	int64_t total, free, available; /* free for root, and of that for all users */
	int64_t inodes, free_inodes;
};

/* One reading of a counter of events. Where counters take turns, it ran for a part of the time it was
 * enabled. */
struct env_count {
	uint64_t value, enabled_ns, running_ns;
};

/* Returns 0 to go on; anything else ends the listing and is returned by env_list(). */
typedef int env_list_fn(void *arg, const char *name);

struct env_ops {
	int (*open)(struct env *env, const char *path);
	/* Reads from the start of the file, as much as one pread gives: text files of /proc and /sys. */
	ssize_t (*read)(struct env *env, int handle, void *out, size_t size, off_t offset);
	void (*close)(struct env *env, int handle);
	/* st_size of an open directory: the number of descriptors for proc/PID/fd since Linux 6.2, else 0. */
	int64_t (*size)(struct env *env, int handle);
	int (*list)(struct env *env, const char *path, env_list_fn *fn, void *arg);
	ssize_t (*readlink)(struct env *env, const char *path, char *out, size_t size);
	/* Space of the file system that the path, "." for the root, lies on. The call may block for ever if
	 * the server of a network file system does not answer. */
	int (*space)(struct env *env, const char *path, struct env_space *ret);
	/* CPU time of a process in ns: one cheap call, no file. -ESRCH when there is none. A film without its
	 * own value takes it from proc/PID/stat. */
	int64_t (*cpu_clock)(struct env *env, pid_t pid);
	int64_t (*now)(struct env *env, enum env_clock clock);
	/* Lets time pass until the absolute ENV_MONOTONIC instant: sleeps on the live env, turns frames on a
	 * film. 0, or -EINTR early, or -ENODATA when the film has ended. */
	int (*sleep_until)(struct env *env, int64_t deadline_ns);
	const char *(*getenv)(struct env *env, const char *name);
	/* perf_event_open(2) with close-on-exec: a task (cpu -1), or with pid -1 all that a CPU does. The
	 * attr's read_format is set by the env: a reading has the three numbers below. Closed by close(). */
	int (*counter_open)(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu);
	int (*counter_read)(struct env *env, int handle, struct env_count *ret);
	/* dlopen(3) and dlsym(3) of a vendor's library, by name or absolute path; NULL when there is none.
	 * Libraries stay loaded: most cannot be unloaded safely. *reterr (may be NULL) is the loader's
	 * reason, valid until the next call. */
	void *(*library)(struct env *env, const char *name, const char **reterr);
	void *(*symbol)(struct env *env, void *library, const char *name);
	void (*free)(struct env *env);
};

struct env {
	const struct env_ops *ops;
	long page_size;
	long clock_tick;
	bool live; /* processes can be started, signals and netlink exist */
	/* /proc is of another PID namespace, or there is none: its PIDs are not ours, and none of its files
	 * is opened. */
	bool other_pids;
};

struct env *env_live(const char *root); /* NULL means "/" */
/* A machine or a film: the format is in tests/machines/README.md. *reterr_line is the line that is wrong. */
int env_film(const char *path, struct env **ret, unsigned *reterr_line);
/* Both pass calls on to `inner`, and own it. */
/* Writes what is read, as a machine or film. As in a film, nothing changes until the next sleep_until(),
 * clocks included: what is read again before that is what was read first. So it is not `live`. NULL when the
 * file cannot be made. */
struct env *env_capture(struct env *inner, const char *path);
/* The nth open, read, size, list, readlink, space, cpu_clock, counter_open or counter_read fails. */
struct env *env_failing(struct env *inner, unsigned nth, int error);
struct env *env_free(struct env *env);

static inline int env_open(struct env *env, const char *path)
{
	return env->ops->open(env, path);
}

static inline ssize_t env_read(struct env *env, int handle, void *out, size_t size)
{
	return env->ops->read(env, handle, out, size, 0);
}

static inline ssize_t env_read_at(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	return env->ops->read(env, handle, out, size, offset);
}

static inline void env_close(struct env *env, int handle)
{
	if (handle >= 0)
		env->ops->close(env, handle);
}

static inline int64_t env_size(struct env *env, int handle)
{
	return env->ops->size(env, handle);
}

static inline int env_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	return env->ops->list(env, path, fn, arg);
}

static inline ssize_t env_readlink(struct env *env, const char *path, char *out, size_t size)
{
	return env->ops->readlink(env, path, out, size);
}

static inline int env_space(struct env *env, const char *path, struct env_space *ret)
{
	return env->ops->space(env, path, ret);
}

static inline int64_t env_cpu_clock(struct env *env, pid_t pid)
{
	return env->ops->cpu_clock(env, pid);
}

static inline int64_t env_now(struct env *env, enum env_clock clock)
{
	return env->ops->now(env, clock);
}

static inline int env_sleep_until(struct env *env, int64_t deadline_ns)
{
	return env->ops->sleep_until(env, deadline_ns);
}

static inline const char *env_getenv(struct env *env, const char *name)
{
	return env->ops->getenv(env, name);
}

static inline int env_counter_open(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return env->ops->counter_open(env, attr, pid, cpu);
}

static inline int env_counter_read(struct env *env, int handle, struct env_count *ret)
{
	return env->ops->counter_read(env, handle, ret);
}

static inline void *env_library(struct env *env, const char *name, const char **reterr)
{
	return env->ops->library(env, name, reterr);
}

static inline void *env_symbol(struct env *env, void *library, const char *name)
{
	return env->ops->symbol(env, library, name);
}

/* Opens, reads to end of file, closes. The text is NUL-terminated; -EFBIG when it does not fit. */
ssize_t env_slurp(struct env *env, const char *path, char *out, size_t size);
/* The same of a file whose beginning is enough: one read, cut to size. */
ssize_t env_peek(struct env *env, const char *path, char *out, size_t size);
/* Whether there is something to open: 0, or a negative errno. */
int env_try(struct env *env, const char *path);
/* Reads an open handle to end of file (long files of /proc come in parts), NUL-terminated. */
ssize_t env_read_all(struct env *env, int handle, char *out, size_t size);
#endif
