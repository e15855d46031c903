#include "target/command.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static const int handled[] = {
	SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, SIGCHLD};

int command_prepare(struct command *c)
{
	struct sigaction fallback = {.sa_handler = SIG_DFL};
	sigset_t set, limit;

	*c = (struct command){.signal_fd = -1};
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
		sigaddset(&set, handled[i]);
	sigprocmask(SIG_BLOCK, &set, &c->mask);
	/* What we write before the job starts may meet a limit: until it is ignored it waits. */
	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &limit, NULL);
	/* Where huge pages are given unasked, the first byte of each of our tables would cost 2 MiB. */
	c->has_huge_pages =
		prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
	getrlimit(RLIMIT_NOFILE, &c->files);
	/* An ignored SIGCHLD is inherited over exec, and the kernel then drops the CPU time of children. */
	sigaction(SIGCHLD, &fallback, &c->child);
	c->prepared = true;
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return -errno;
	return 0;
}

static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* As execvp(3) looks: a name with a slash as it is, others in PATH, where what may not be run is passed over.
 */
int command_find(const char *name)
{
	const char *list = getenv("PATH"), *end;
	int found = -ENOENT;
	char path[PATH_MAX];

	if (strchr(name, '/') || !*name)
		return executable(name);
	for (list = list ? list : "/bin:/usr/bin";; list = end + 1) {
		int length, r;

		end = strchrnul(list, ':');
		length = snprintf(
			path, sizeof(path), "%.*s%s%s", (int)(end - list), list, end > list ? "/" : "", name);
		r = length < (int)sizeof(path) ? executable(path) : -ENAMETOOLONG;
		if (r == 0)
			return 0;
		if (r == -EACCES)
			found = r;
		if (!*end)
			return found;
	}
}

static char **environment_with(char *variable)
{
	size_t nr = 0, n = 0;
	char **copy;

	while (environ && environ[nr])
		nr++;
	copy = calloc(nr + 2, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		if (!variable || strncmp(environ[i], "TACHO_RECORDING=", 16))
			copy[n++] = environ[i];
	if (variable)
		copy[n] = variable;
	return copy;
}

/* Waits until the other side of the pipe is closed: by whoever has passed the gate, or by its death. */
static void wait_at_gate(const int ends[2])
{
	char byte;

	if (ends[0] < 0)
		return;
	close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
}

/* In the child: only system calls from here on. */
static void become(const struct command *c, char *const *argv, char *const *env,
	const struct own_cgroup *group, bool inside, int report, const int gate[2])
{
	int error;

	if (group && !inside)
		cgroup_enter(group);
	/* Inherited over exec: the job shall have what it would have without us. */
	if (c->has_huge_pages)
		prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	wait_at_gate(gate);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
	execvpe(argv[0], argv, env);
	error = errno;
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(EXIT_FAILURE);
}

static int start_child(struct command *c, char *const *argv, char *const *env, const struct own_cgroup *group,
	const struct command_gate *gate, int report)
{
	int ends[2] = {-1, -1};
	bool inside;
	pid_t pid;

	if (gate && pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = cgroup_fork(group, &inside);
	if (pid == 0)
		become(c, argv, env, group, inside, report, ends);
	if (gate) {
		if (pid > 0)
			gate->pass(gate->arg, pid);
		close(ends[0]);
		close(ends[1]);
	}
	return pid;
}

int command_start(struct command *c, char *const *argv, const char *recording, const struct own_cgroup *group,
	const struct command_gate *gate, bool *ret_before_exec)
{
	_cleanup_(freep) char *variable = NULL;
	_cleanup_(freep) char **env = NULL;
	_cleanup_(closep) int read_end = -1;
	int ends[2], error = 0;
	pid_t pid;

	*ret_before_exec = true;
	if (recording && asprintf(&variable, "TACHO_RECORDING=%s", recording) < 0)
		return -ENOMEM;
	env = environment_with(variable);
	if (!env)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	read_end = ends[0];
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = start_child(c, argv, env, group, gate, ends[1]);
	close(ends[1]);
	if (pid < 0)
		return pid;
	/* The other end closes when the new program runs: an empty pipe is success. */
	while (read(read_end, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	if (error) {
		waitpid(pid, NULL, 0);
		*ret_before_exec = false;
		return -error;
	}
	c->pid = pid;
	return 0;
}

int command_become(struct command *c, char *const *argv)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, found;

	if (c->prepared) {
		/* A limit that a write of ours has met waits for us as a signal: ignoring it takes it away.
		 */
		sigaction(SIGXFSZ, &ignore, &found);
		sigaction(SIGXFSZ, &found, NULL);
		sigaction(SIGCHLD, &c->child, NULL);
		prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
		if (c->has_huge_pages)
			prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
		sigprocmask(SIG_SETMASK, &c->mask, NULL);
	}
	execvp(argv[0], argv);
	return -errno;
}

unsigned command_privileges(struct command *c)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit more = c->files;

	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	more.rlim_cur = more.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		more = c->files;
	return more.rlim_cur > (1 << 20) ? 1 << 20 : (unsigned)more.rlim_cur;
}

int command_signal(struct command *c, struct signalfd_siginfo *ret)
{
	return read(c->signal_fd, ret, sizeof(*ret)) == sizeof(*ret);
}

/* State letter of the job in /proc, 0 when it is gone. */
static char job_state(pid_t pid)
{
	char path[32], text[512], *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

bool command_forward(struct command *c, const struct signalfd_siginfo *si, bool sender_is_member)
{
	if (c->pid <= 0 || si->ssi_code == SI_KERNEL || sender_is_member)
		return false;
	/* A shell's `fg` continues the whole group: the job runs already. */
	if (si->ssi_signo == SIGCONT && c->stopped_with_it) {
		c->stopped_with_it = false;
		if (job_state(c->pid) != 'T')
			return false;
	}
	return kill(c->pid, (int)si->ssi_signo) == 0;
}

void command_stop_by(int sig)
{
	struct sigaction fallback = {.sa_handler = SIG_DFL}, found;
	sigset_t one, blocked;

	sigemptyset(&one);
	sigaddset(&one, sig);
	sigaction(sig, &fallback, &found);
	kill(getpid(), sig);
	sigprocmask(SIG_UNBLOCK, &one, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(sig, &found, NULL);
}

bool command_stop_with_job(struct command *c, void (*before)(void *arg), void *arg)
{
	siginfo_t info = {0};

	if (c->pid <= 0 || waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOHANG) < 0 ||
		info.si_pid != c->pid)
		return false;
	if (info.si_status != SIGTSTP && info.si_status != SIGTTIN && info.si_status != SIGTTOU)
		return false;
	before(arg);
	c->stopped_with_it = true;
	command_stop_by(info.si_status);
	return true;
}

int command_exit_as(struct command *c, int status)
{
	struct rlimit no_core = {0};
	struct sigaction fallback = {.sa_handler = SIG_DFL};
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	sigset_t set;

	if (!sig)
		return WEXITSTATUS(status);
	/* The job has left its core; ours would only bury it. */
	getrlimit(RLIMIT_CORE, &no_core);
	no_core.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &no_core);
	sigaction(sig, &fallback, NULL);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

void command_release(struct command *c)
{
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	c->signal_fd = -1;
}
