/* What the kernel tells beyond /proc, asked of the kernel that runs the tests. Where it does not tell
 * (containers, no privilege) a test is skipped and says why. What only other kernels and hosts send is fed to
 * the pure parts. */
#include "node/cgroups.h"
#include "target/kernel.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "kernel_lab.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* ---- proc connector ---- */

static struct connector *connector_or_skip(void)
{
	struct connector *c = NULL;
	const char *why = NULL;
	int r = connector_open(&c, &why);

	if (r < 0)
		missing("proc connector", r, why);
	return c;
}

/* connector_next(), but waits for what is still to come. */
static int next_event(struct connector *c, struct kernel_event *ret)
{
	struct pollfd p = {.fd = connector_fd(c), .events = POLLIN};
	int r;

	while ((r = connector_next(c, ret)) == 0)
		if (poll(&p, 1, 10000) <= 0)
			return 0;
	return r;
}

static void test_connector_tells_fork_exec_exit(void **state)
{
	struct connector *c = connector_or_skip();
	struct kernel_event e;
	int64_t before = now_ns(CLOCK_MONOTONIC), after;
	enum kernel_event_type expected = KERNEL_FORK;
	pid_t pid = fork();
	int r, status;

	(void)state;
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 3", NULL);
		_exit(127);
	}
	status = wait_for(pid);
	after = now_ns(CLOCK_MONOTONIC);
	while (expected <= KERNEL_EXIT && (r = next_event(c, &e)) > 0) {
		if (e.pid != pid)
			continue;
		assert_int_equal(e.type, expected);
		assert_true(e.time_ns >= before && (e.time_ns <= after || e.type == KERNEL_EXIT));
		if (e.type == KERNEL_FORK)
			assert_int_equal(e.parent, getpid());
		if (e.type == KERNEL_EXIT) {
			assert_int_equal(e.status, status);
			assert_int_equal(WEXITSTATUS(e.status), 3);
		}
		before = e.time_ns;
		expected++;
	}
	assert_int_equal(r, 1);
	assert_int_equal(expected, KERNEL_EXIT + 1);
	assert_null(connector_close(c));
}

static void *no_op(void *arg)
{
	return arg;
}

static void expect_no_threads(struct connector *c)
{
	struct kernel_event e;
	unsigned nr = 0;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 20; i++) {
			pthread_t t;

			pthread_create(&t, NULL, no_op, NULL);
			pthread_join(t, NULL);
		}
		_exit(0);
	}
	wait_for(pid);
	do {
		assert_int_equal(next_event(c, &e), 1);
		nr += e.pid == pid || e.parent == pid;
	} while (e.type != KERNEL_EXIT || e.pid != pid);
	assert_int_equal(nr, 2); /* its fork and its exit */
}

/* Whether the kernel drops them or we. */
static void test_connector_leaves_threads_out(void **state)
{
	struct connector *c = connector_or_skip();
	const char *why;

	(void)state;
	expect_no_threads(c);
	connector_close(c);
	assert_int_equal(connector_listen(&c, &why), 0);
	expect_no_threads(c);
	connector_filter(c);
	expect_no_threads(c);
	connector_close(c);
}

static void test_connector_loses_nothing_in_a_storm(void **state)
{
	enum { NR = 2000, FORK = 1, EXIT = 2 };
	static uint8_t told[1 << 22]; /* by pid; the largest there can be */
	static pid_t child[NR];
	struct connector *c = connector_or_skip();
	struct kernel_event e = {0};
	unsigned nr = 0;
	int r = 0;

	(void)state;
	for (int i = 0; i < NR; i++) {
		child[i] = fork();
		if (child[i] == 0)
			_exit(0);
		wait_for(child[i]);
		while ((r = connector_next(c, &e)) > 0) /* others may have a storm of their own */
			told[e.pid] |= e.type == KERNEL_FORK ? FORK : e.type == KERNEL_EXIT ? EXIT : 0;
		assert_int_equal(r, 0);
	}
	while (!(told[child[NR - 1]] & EXIT) && next_event(c, &e) == 1)
		told[e.pid] |= e.type == KERNEL_EXIT ? EXIT : 0;
	for (int i = 0; i < NR; i++)
		nr += told[child[i]] == (FORK | EXIT);
	assert_int_equal(nr, NR);
	connector_close(c);
}

static unsigned drain(struct connector *c, pid_t wanted, bool *ret_seen)
{
	struct kernel_event e;
	unsigned lost = 0;
	int r;

	*ret_seen = false;
	while ((r = connector_next(c, &e)) != 0) {
		if (r == -ENOBUFS)
			lost++;
		else if (e.pid == wanted)
			*ret_seen = true;
	}
	return lost;
}

static void test_connector_tells_a_loss_once(void **state)
{
	struct connector *c = connector_or_skip();
	const int little = 2048, much = 1 << 20;
	bool seen;
	pid_t pid;

	(void)state;
	assert_int_equal(setsockopt(connector_fd(c), SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	for (int i = 0; i < 100; i++) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		wait_for(pid);
	}
	/* From here on there is room for whatever others fork meanwhile. */
	assert_int_equal(setsockopt(connector_fd(c), SOL_SOCKET, SO_RCVBUF, &much, sizeof(much)), 0);
	assert_int_equal(drain(c, pid, &seen), 1);
	assert_int_equal(drain(c, pid, &seen), 0);

	pid = fork();
	if (pid == 0)
		_exit(0);
	wait_for(pid);
	drain(c, pid, &seen);
	assert_true(seen);
	connector_close(c);
}

static int open_connector_code(void)
{
	struct connector *c = NULL;
	const char *why = NULL;
	int r = connector_open(&c, &why);

	connector_close(c);
	return r < 0 && !why ? 254 : -r;
}

static int connector_in_pid_namespace(void)
{
	return unshare(CLONE_NEWPID) < 0 ? CANNOT : in_child(open_connector_code);
}

static int connector_in_net_namespace(void)
{
	return unshare(CLONE_NEWNET) < 0 ? CANNOT : open_connector_code();
}

static void test_connector_notices_namespaces(void **state)
{
	int r = in_child(connector_in_pid_namespace);

	(void)state;
	if (r == CANNOT)
		missing("pid namespace", -EPERM, "cannot be made here");
	assert_true(r == ETIMEDOUT || r == EPERM || r == EPROTONOSUPPORT);
	r = in_child(connector_in_net_namespace);
	assert_true(r == ECONNREFUSED || r == EPROTONOSUPPORT || r == EPERM);
}

static int connector_in_time_namespace(void)
{
	static const char shift[] = "monotonic 5000 0";
	int fd, r = CANNOT;

	if (unshare(CLONE_NEWTIME) < 0)
		return CANNOT;
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	if (fd < 0 || write(fd, shift, strlen(shift)) < 0)
		return CANNOT;
	close(fd);
	pid_t pid = fork(); /* children are in the new one, we are not */
	if (pid == 0) {
		struct connector *c = NULL;
		const char *why;
		struct kernel_event e;
		int64_t before;

		if (connector_open(&c, &why) < 0)
			_exit(CANNOT);
		before = now_ns(CLOCK_MONOTONIC);
		pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		while (connector_next(c, &e) > 0)
			if (e.pid == pid) /* the shift is 5,000 s */
				_exit(e.time_ns > before - 1000 * NSEC_PER_SEC &&
							e.time_ns < before + 1000 * NSEC_PER_SEC
						? 0
						: 1);
		_exit(2);
	}
	waitpid(pid, &r, 0);
	return WEXITSTATUS(r);
}

static void test_connector_keeps_our_clock_in_a_time_namespace(void **state)
{
	int r;

	(void)state;
	connector_close(connector_or_skip());
	r = in_child(connector_in_time_namespace);
	if (r == CANNOT)
		missing("time namespace", -EPERM, "cannot be made here");
	assert_int_equal(r, 0);
}

/* ---- taskstats ---- */

static struct taskstats *taskstats_or_skip(void)
{
	struct taskstats *t = NULL;
	const char *why = NULL;
	int r = taskstats_open(&t, &why);

	if (r < 0)
		missing("taskstats", r, why);
	return t;
}

static void use_known_amounts(void)
{
	const size_t size = 64 << 20;
	int null = open("/dev/null", O_WRONLY);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_NAME, "odd name) (\xff");
	for (size_t i = 0; i < size; i += 4096)
		memory[i] = 1;
	for (int i = 0; i < 3000; i++)
		if (write(null, memory, 1000) != 1000)
			_exit(1);
	burn_ns(100 * NSEC_PER_MSEC);
	_exit(7);
}

/* The records of one process: how many came, and the leader's. */
static unsigned records_of(struct taskstats *t, pid_t pid, struct exit_record *ret)
{
	struct exit_record e;
	unsigned nr = 0;

	while (taskstats_next(t, &e) > 0) {
		if (e.tgid != pid)
			continue;
		nr++;
		if (e.tid == pid)
			*ret = e;
	}
	return nr;
}

static void test_taskstats_has_the_accounts_of_an_exit(void **state)
{
	struct taskstats *t = taskstats_or_skip();
	struct exit_record e = {0};
	struct rusage used;
	int64_t cpu_ns;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		use_known_amounts();
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	assert_int_equal(records_of(t, pid, &e), 1);
	assert_int_equal(e.parent, getpid());
	assert_int_equal(e.uid, getuid());
	assert_int_equal(e.status, status);
	assert_string_equal(e.name, "odd name) (\xff");
	assert_in_range(e.start_wall_s, time(NULL) - 1000, time(NULL) + 1);
	cpu_ns = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NSEC_PER_SEC +
		(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * NSEC_PER_USEC;
	/* The record is made just before the address space is torn down, which wait4 counts. */
	assert_in_range(e.user_ns + e.system_ns, 100 * NSEC_PER_MSEC, cpu_ns);
	assert_true(e.elapsed_ns >= 100 * NSEC_PER_MSEC);
	/* The kernel cuts the last ten bits off; valgrind writes some, too. */
	assert_in_range(e.use.used[USED_WRITE_CHARS], 3000000 & ~1023, 3100000);
	assert_true(
		e.use.used[USED_WRITE_CALLS] >= (3000 & ~1023) && e.use.used[USED_WRITE_CALLS] % 1024 == 0);
	assert_in_range(e.use.used[USED_MINOR], 1, used.ru_minflt);
	assert_in_range(e.peak_rss_bytes, 64 << 20, used.ru_maxrss * 1024);
	assert_true(e.peak_vms_bytes >= e.peak_rss_bytes);
	assert_in_range(e.use.used[USED_VOLUNTARY], 0, used.ru_nvcsw);
	assert_null(taskstats_close(t));
}

static void test_taskstats_has_a_record_per_thread(void **state)
{
	struct taskstats *t = taskstats_or_skip();
	struct exit_record e = {0};
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		for (int i = 0; i < 5; i++) {
			pthread_t thread;

			pthread_create(&thread, NULL, no_op, NULL);
			pthread_join(thread, NULL);
		}
		_exit(0);
	}
	wait_for(pid);
	assert_int_equal(records_of(t, pid, &e), 6);
	taskstats_close(t);
}

static void test_taskstats_loses_nothing_in_a_storm(void **state)
{
	enum { NR = 1000 };
	struct taskstats *t = taskstats_or_skip();
	struct exit_record e;
	unsigned nr = 0;

	(void)state;
	for (int i = 0; i < NR; i++) {
		pid_t pid = fork();
		int r;

		if (pid == 0)
			_exit(0);
		wait_for(pid);
		while ((r = taskstats_next(t, &e)) > 0) /* others may have a storm of their own */
			nr += e.parent == getpid();
		assert_int_equal(r, 0);
	}
	assert_int_equal(nr, NR);
	taskstats_close(t);
}

static int taskstats_as_nobody(void)
{
	struct taskstats *t = NULL;
	const char *why = NULL;
	int r;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return CANNOT;
	r = taskstats_open(&t, &why);
	taskstats_close(t);
	return r == -EPERM && strstr(why, "CAP_NET_ADMIN") ? 0 : 1;
}

static void test_taskstats_refused_says_what_it_needs(void **state)
{
	int r;

	(void)state;
	taskstats_close(taskstats_or_skip());
	r = in_child(taskstats_as_nobody);
	if (r == CANNOT)
		missing("another user", -EPERM, "needs root");
	assert_int_equal(r, 0);
}

/* ---- control groups: live ---- */

static struct own_cgroup *cgroup_or_skip(void)
{
	struct own_cgroup *g = NULL;
	const char *why = NULL;
	int r = cgroup_create(&g, &why);

	if (r < 0)
		missing("control group", r, why);
	return g;
}

/* Forks into g and waits until the child is there; returns 0 in the child, which lives a minute at most. */
static pid_t fork_into(const struct own_cgroup *g)
{
	int entered[2];
	bool inside;
	char byte;
	pid_t pid;

	if (pipe(entered) < 0)
		return -1;
	pid = cgroup_fork(g, &inside);
	if (pid == 0) {
		alarm(60);
		if (cgroup_enter(g, inside) < 0 || write(entered[1], "", 1) != 1)
			_exit(99);
	}
	close(entered[1]);
	if (pid > 0 && read(entered[0], &byte, 1) != 1)
		pid = -1;
	close(entered[0]);
	return pid;
}

/* A parent that ignores SIGCHLD: wait and rusage know nothing of its children's CPU. */
static void burn_in_unreaped_children(int nr, int64_t ns)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			burn_ns(ns);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static int64_t total_of(struct own_cgroup *g)
{
	struct cgroup_usage u;

	assert_int_equal(cgroup_read(g, &u), 0);
	if (u.user_ns >= 0)
		assert_true(llabs(u.user_ns + u.system_ns - u.total_ns) <= 2000);
	return u.total_ns;
}

static void test_cgroup_counts_what_nobody_waits_for(void **state)
{
	struct own_cgroup *g = cgroup_or_skip();
	int64_t idle;
	pid_t pid;

	(void)state;
	burn_ns(20 * NSEC_PER_MSEC); /* ours, outside */
	idle = total_of(g);
	assert_int_equal(idle, 0);
	pid = fork_into(g);
	if (pid == 0)
		burn_in_unreaped_children(4, 50 * NSEC_PER_MSEC);
	assert_int_equal(wait_for(pid), 0);
	/* 200 ms of burning, and what the forks themselves took */
	assert_in_range(total_of(g), 200 * NSEC_PER_MSEC, 2000 * NSEC_PER_MSEC);
	assert_null(cgroup_remove(g));
}

static bool group_of(pid_t pid, char *ret, size_t size)
{
	char name[64];
	int fd;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return false;
	n = read(fd, ret, size - 1);
	ret[MAX(n, 0)] = '\0';
	close(fd);
	return n > 0;
}

static void test_cgroup_gives_back_what_still_runs(void **state)
{
	struct own_cgroup *g = cgroup_or_skip();
	char before[4096], ours[4096], after[4096], path[PATH_MAX];
	pid_t pid = fork_into(g);

	(void)state;
	if (pid == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "%s\n", cgroup_path(g));
	assert_true(group_of(getpid(), before, sizeof(before)));
	assert_true(group_of(pid, ours, sizeof(ours)));
	assert_null(strstr(before, path));
	assert_non_null(strstr(ours, path));
	cgroup_remove(g);
	assert_true(group_of(pid, after, sizeof(after)));
	assert_string_equal(after, before);
	kill(pid, SIGKILL);
	wait_for(pid);
}

/* The directory in which g was made. */
static int parent_directory(struct own_cgroup *g, char *ret)
{
	static struct cgroups all;
	struct env *env = env_live(NULL);

	assert_int_equal(cgroups_read(env, 0, &all), 0);
	env_free(env);
	for (int c = 0; c < NR_CGROUP_CONTROLLERS; c++) {
		const struct cgroup_dir *d = &all.dir[c];

		snprintf(ret, PATH_MAX, "/%.*s%s", (int)d->mount_len, d->path, cgroup_path(g));
		if (d->found && access(ret, F_OK) == 0) {
			*strrchr(ret, '/') = '\0';
			return 0;
		}
	}
	return -ENOENT;
}

static void test_cgroup_is_v2_where_that_is_mounted(void **state)
{
	struct own_cgroup *g = cgroup_or_skip();
	static struct cgroups all;
	struct env *env = env_live(NULL);
	char path[PATH_MAX + 1];

	(void)state;
	assert_int_equal(cgroups_read(env, 0, &all), 0);
	env_free(env);
	snprintf(path, sizeof(path), "/%s", all.dir[CGROUP_UNIFIED].path);
	if (all.dir[CGROUP_UNIFIED].found && access(path, W_OK) == 0)
		assert_string_equal(cgroup_kind(g), "v2");
	cgroup_remove(g);
}

static bool exists_in(const char *parent, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	return access(path, F_OK) == 0;
}

static void make_in(const char *parent, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	wait_for(pid);
	return pid;
}

static void test_cgroup_cleans_up_after_the_dead(void **state)
{
	struct own_cgroup *g = cgroup_or_skip();
	char parent[PATH_MAX], dead[64], inner[128], alive[64];

	(void)state;
	assert_int_equal(parent_directory(g, parent), 0);
	cgroup_remove(g);
	snprintf(dead, sizeof(dead), "tacho-%d", dead_pid());
	snprintf(inner, sizeof(inner), "%s/tacho-1", dead);
	snprintf(alive, sizeof(alive), "tacho-%d", getppid());
	make_in(parent, dead);
	make_in(parent, inner);
	make_in(parent, alive);
	make_in(parent, "tacho-test-x");

	g = cgroup_or_skip();
	assert_false(exists_in(parent, dead));
	assert_true(exists_in(parent, alive));
	assert_true(exists_in(parent, "tacho-test-x"));
	cgroup_remove(g);

	char path[2 * PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", parent, alive);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/tacho-test-x", parent);
	assert_int_equal(rmdir(path), 0);
}

static void test_cgroup_of_an_orphaned_job_stays(void **state)
{
	struct own_cgroup *g = cgroup_or_skip(), *next;
	char parent[PATH_MAX], group[4096], name[64], path[2 * PATH_MAX];
	pid_t job = -1;
	int pipe_fd[2];
	pid_t recorder;

	(void)state;
	assert_int_equal(parent_directory(g, parent), 0);
	cgroup_remove(g);
	assert_int_equal(pipe(pipe_fd), 0);
	recorder = fork(); /* dies without removing its group, its job lives on */
	if (recorder == 0) {
		const char *why;

		if (cgroup_create(&g, &why) < 0)
			_exit(1);
		job = fork_into(g);
		if (job == 0)
			for (;;)
				pause();
		_exit(write(pipe_fd[1], &job, sizeof(job)) != sizeof(job));
	}
	assert_int_equal(wait_for(recorder), 0);
	assert_int_equal(read(pipe_fd[0], &job, sizeof(job)), sizeof(job));
	snprintf(name, sizeof(name), "tacho-%d", recorder);

	next = cgroup_or_skip();
	assert_true(group_of(job, group, sizeof(group)));
	assert_non_null(strstr(group, name));
	cgroup_remove(next);

	kill(job, SIGKILL);
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	for (int i = 0; i < 1000 && exists_in(parent, name); i++) { /* until init has reaped it */
		next = cgroup_or_skip();
		cgroup_remove(next);
		usleep(10000);
	}
	assert_false(exists_in(parent, name));
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void test_cgroup_of_a_locked_namesake_stays(void **state)
{
	struct own_cgroup *g = cgroup_or_skip(), *second = NULL;
	char parent[PATH_MAX];
	const char *why;

	(void)state;
	/* The same pid, as a recorder in another pid namespace would have it. */
	assert_int_equal(parent_directory(g, parent), 0);
	assert_int_equal(cgroup_create(&second, &why), 0);
	assert_string_not_equal(cgroup_path(g), cgroup_path(second));
	assert_true(exists_in(parent, strrchr(cgroup_path(g), '/') + 1));
	cgroup_remove(g);
	cgroup_remove(second);
}

static int cgroup_as_nobody(void)
{
	struct own_cgroup *g = NULL;
	const char *why = NULL;
	int r;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return CANNOT;
	r = cgroup_create(&g, &why);
	cgroup_remove(g);
	return r == -EACCES && strstr(why, "delegated") ? 0 : 1;
}

static void test_cgroup_refused_says_why(void **state)
{
	int r;

	(void)state;
	cgroup_remove(cgroup_or_skip());
	r = in_child(cgroup_as_nobody);
	if (r == CANNOT)
		missing("another user", -EPERM, "needs root");
	assert_int_equal(r, 0);
}

/* Removes the cgroup2 mounts from a mount namespace of its own. */
static bool hide_v2(void)
{
	char line[4096], mount_point[PATH_MAX];
	FILE *f;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, " - cgroup2 ") &&
			(sscanf(line, "%*s %*s %*s %*s %4095s", mount_point) != 1 ||
				umount2(mount_point, MNT_DETACH) < 0)) {
			fclose(f);
			return false;
		}
	fclose(f);
	return true;
}

static int cgroup_on_v1(void)
{
	struct own_cgroup *g = NULL;
	struct cgroup_usage u = {0};
	const char *why = "";
	pid_t pid;

	if (!hide_v2())
		return CANNOT;
	if (cgroup_create(&g, &why) < 0)
		return strstr(why, "mounted here") ? CANNOT : 1;
	if (strcmp(cgroup_kind(g), "v1") != 0)
		return 2;
	pid = fork_into(g);
	if (pid == 0)
		burn_in_unreaped_children(4, 50 * NSEC_PER_MSEC);
	waitpid(pid, NULL, 0);
	if (cgroup_read(g, &u) < 0)
		return 3;
	cgroup_remove(g);
	if (u.total_ns < 200 * NSEC_PER_MSEC || u.total_ns > 2000 * NSEC_PER_MSEC)
		return 4;
	return u.user_ns >= 0 && u.user_ns + u.system_ns != u.total_ns ? 5 : 0;
}

static void test_cgroup_v1(void **state)
{
	int r = in_child(cgroup_on_v1);

	(void)state;
	if (r == CANNOT)
		missing("v1 cpuacct", -ENOENT, "not mounted here, or no mount namespace");
	assert_int_equal(r, 0);
}

/* The group of this process and the v2 mount's own; false where there is none. */
static bool v2_mount(char ret[PATH_MAX])
{
	static struct cgroups all;
	struct env *env = env_live(NULL);
	bool found = env && cgroups_read(env, 0, &all) == 0 && all.dir[CGROUP_UNIFIED].found;

	if (found)
		snprintf(ret, PATH_MAX, "/%.*s", (int)all.dir[CGROUP_UNIFIED].mount_len,
			all.dir[CGROUP_UNIFIED].path);
	env_free(env);
	return found;
}

static bool put(const char *folder, const char *name, const char *text)
{
	char path[3 * PATH_MAX];
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	good = f && fputs(text, f) >= 0;
	return f && fclose(f) == 0 && good;
}

static bool says(const char *folder, const char *name, const char *word)
{
	char path[3 * PATH_MAX], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return word ? strstr(text, word) != NULL : text[0] != '\0';
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		pause();
		_exit(0);
	}
	return pid;
}

static char scope[PATH_MAX + 32];

/* In the scope: first beside another process, then with a companion of its own. The kernel does the same with
 * every controller; cpu may be on v1 here. */
static int share_in_scope(void)
{
	char own[64], group[4096] = "", name[32] = "";
	pid_t other, companion, job;
	struct own_cgroup *g = NULL;
	const char *why;
	char path[2 * PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.controllers", scope);
	f = fopen(path, "re");
	if (!put(scope, "cgroup.procs", "0") || !f || fscanf(f, "%31s", name) != 1)
		return CANNOT;
	fclose(f);
	other = start_sleeper();
	if (cgroup_create(&g, &why) < 0 || strcmp(cgroup_kind(g), "v2") != 0)
		return 1;
	job = fork_into(g);
	if (job == 0)
		for (;;)
			pause();
	if (cgroup_share(g, 0, name) != -EBUSY || says(scope, "cgroup.subtree_control", NULL))
		return 2;
	if (cgroup_share(g, other, "none") != -ENOENT && cgroup_share(g, other, "none") != -EBUSY)
		return 3;
	companion = other;
	if (cgroup_share(g, companion, name) != 0 || cgroup_share(g, companion, name) != 0)
		return 4;
	snprintf(own, sizeof(own), "/tacho-%d-recorder", getpid());
	if (!group_of(getpid(), group, sizeof(group)) || !strstr(group, own) ||
		!group_of(companion, group, sizeof(group)) || !strstr(group, own))
		return 5;
	snprintf(own, sizeof(own), "/tacho-%d\n", getpid());
	if (!group_of(job, group, sizeof(group)) || !strstr(group, own))
		return 6;
	if (!says(scope, "cgroup.subtree_control", name))
		return 7;
	cgroup_remove(g); /* the job runs on, where it would be without us */
	if (says(scope, "cgroup.subtree_control", NULL) || !group_of(job, group, sizeof(group)) ||
		strstr(group, "/tacho-") != strrchr(group, '/'))
		return 8;
	kill(job, SIGKILL);
	kill(other, SIGKILL);
	while (wait(NULL) > 0)
		;
	snprintf(path, sizeof(path), "%s/..", scope);
	return put(path, "cgroup.procs", "0") ? 0 : 9;
}

static void test_cgroup_job_and_recorder_compete_as_two(void **state)
{
	char mount[PATH_MAX];
	int r = CANNOT;

	(void)state;
	if (!v2_mount(mount))
		missing("v2", -ENOENT, "not mounted here");
	snprintf(scope, sizeof(scope), "%s/tacho-scope-%d", mount, getpid());
	if (mkdir(scope, 0755) == 0)
		r = in_child(share_in_scope);
	for (int i = 0; i < 1000 && rmdir(scope) < 0 && errno == EBUSY; i++)
		usleep(10000);
	if (r == CANNOT)
		missing("v2 with a controller", -EPERM, "needs root, and one in the root's subtree_control");
	assert_int_equal(r, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connector_tells_fork_exec_exit),
		cmocka_unit_test(test_connector_leaves_threads_out),
		cmocka_unit_test(test_connector_loses_nothing_in_a_storm),
		cmocka_unit_test(test_connector_tells_a_loss_once),
		cmocka_unit_test(test_connector_notices_namespaces),
		cmocka_unit_test(test_connector_keeps_our_clock_in_a_time_namespace),
		cmocka_unit_test(test_taskstats_has_the_accounts_of_an_exit),
		cmocka_unit_test(test_taskstats_has_a_record_per_thread),
		cmocka_unit_test(test_taskstats_loses_nothing_in_a_storm),
		cmocka_unit_test(test_taskstats_refused_says_what_it_needs),
		cmocka_unit_test(test_cgroup_is_v2_where_that_is_mounted),
		cmocka_unit_test(test_cgroup_counts_what_nobody_waits_for),
		cmocka_unit_test(test_cgroup_gives_back_what_still_runs),
		cmocka_unit_test(test_cgroup_cleans_up_after_the_dead),
		cmocka_unit_test(test_cgroup_of_an_orphaned_job_stays),
		cmocka_unit_test(test_cgroup_of_a_locked_namesake_stays),
		cmocka_unit_test(test_cgroup_refused_says_why),
		cmocka_unit_test(test_cgroup_v1),
		cmocka_unit_test(test_cgroup_job_and_recorder_compete_as_two),
	};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
