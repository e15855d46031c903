/* Starts the command and becomes it, passes signals on, and ends as the command did: see command.h. */
#include "target/command.h"

#include "base/rights.h"
#include "base/sigmask.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Not read from the signalfd, and not passed on: what cannot be caught, our own faults, and stops for a
 * terminal that we have used ourselves. */
static const int not_handled[] = {
	SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGTTIN, SIGTTOU};

int command_prepare(struct command *c)
{
	struct sigaction fallback = {.sa_handler = SIG_DFL};
	sigset_t set;
	int r;

	*c = (struct command){.signal_fd = -1, .heap = sbrk(0)};
	sigmask_fill(&set);
	for (size_t i = 0; i < ARRAY_SIZE(not_handled); i++)
		sigdelset(&set, not_handled[i]);
	r = sigmask_change(SIG_BLOCK, &set, &c->mask);
	if (r < 0)
		return r;
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

/* Searches as execvp(3) does: a name with a slash as it is, others in PATH, skipping what may not be
 * executed. */
static int find(const char *name, char path[static PATH_MAX])
{
	const char *list = getenv("PATH"), *end;
	int found = -ENOENT;

	if (strchr(name, '/') || !*name)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? executable(name) : -ENAMETOOLONG;
	for (list = list ? list : "/bin:/usr/bin";; list = end + 1) {
		int length, r;

		end = strchrnul(list, ':');
		length = snprintf(
			path, PATH_MAX, "%.*s%s%s", (int)(end - list), list, end > list ? "/" : "", name);
		r = length < PATH_MAX ? executable(path) : -ENAMETOOLONG;
		if (r == 0)
			return 0;
		if (r == -EACCES)
			found = r;
		if (!*end)
			return found;
	}
}

int command_find(const char *name)
{
	char path[PATH_MAX];

	return find(name, path);
}

/* What the child needs, in a mapping of its own: the child has no copy of our heap. */
struct start {
	size_t size;
	sigset_t mask;
	int door, cpu_door;  /* of the control groups, -1: none */
	int report, other;   /* to us; our own end of it, which is closed in the child */
	char path[PATH_MAX]; /* "": execvpe() shall look for it */
	char **argv, **env;
};

static size_t text_size(char *const *text, size_t *ret_nr)
{
	size_t size = 0, nr = 0;

	for (; text && text[nr]; nr++)
		size += strlen(text[nr]) + 1;
	*ret_nr = nr;
	return size;
}

/* Returns where the next text goes. */
static char *copy_text(char **list, const char *text, char *to)
{
	size_t len = strlen(text) + 1;

	*list = to;
	memcpy(to, text, len);
	return to + len;
}

/* The variable is among these: name and '=' are the same. */
static bool is_set_by(char *const *variables, const char *text)
{
	size_t name = strcspn(text, "=") + 1;

	for (; variables && *variables; variables++)
		if (!strncmp(*variables, text, name))
			return true;
	return false;
}

static struct start *start_new(char *const *argv, char *const *variables)
{
	char **given = rights_environment();
	size_t nr_args, nr_env, nr_set,
		n = 0,
		size = text_size(argv, &nr_args) + text_size(given, &nr_env) + text_size(variables, &nr_set);
	struct start *s;
	char *to;

	size += sizeof(*s) + (nr_args + nr_env + nr_set + 2) * sizeof(char *);
	s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return NULL;
	s->size = size;
	s->argv = (char **)(s + 1);
	s->env = s->argv + nr_args + 1;
	to = (char *)(s->env + nr_env + nr_set + 1);
	for (size_t i = 0; i < nr_args; i++)
		to = copy_text(&s->argv[i], argv[i], to);
	for (size_t i = 0; i < nr_env; i++)
		if (!is_set_by(variables, given[i]))
			to = copy_text(&s->env[n++], given[i], to);
	for (size_t i = 0; i < nr_set; i++)
		to = copy_text(&s->env[n++], variables[i], to);
	if (find(argv[0], s->path) < 0)
		*s->path = 0;
	return s;
}

/* In the child: waits until the recorder lets it go on, or is dead. Signals to our process group that come
 * meanwhile are pending here, and later also at the witness. */
static uint64_t wait_at_gate(const struct start *s)
{
	uint64_t pending = 0;
	char byte;

	syscall(SYS_close, s->other);
	while (syscall(SYS_recvfrom, s->report, &byte, 1, 0, NULL, NULL) < 0 && errno == EINTR)
		;
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending;
}

/* What the job's process reports before its exec, and why the exec failed. */
struct command_report {
	int64_t kib;	  /* its own largest memory so far */
	uint64_t pending; /* its pending signals, which the job will have too */
	int error;
};

/* In the child. The kernel keeps the largest memory of a process over its exec, so the copy of us that
 * becomes the job must be small and of known size: otherwise the memory of a small command could not be
 * distinguished from it. Every other function of libc that runs here would add 64 KiB: hence bare system
 * calls up to the exec. The I/O counters are kept over the exec, too. They count read() and write(), but not
 * what goes through a socket. */
static void become(const struct start *s, bool inside, bool huge_pages)
{
	struct rusage usage = {0};
	struct command_report report;
	int error;

	if (s->door >= 0 && !inside)
		syscall(SYS_write, s->door, "0", 1);
	if (s->cpu_door >= 0)
		syscall(SYS_write, s->cpu_door, "0", 1);
	/* Inherited over exec: the job shall have the setting that it would have without us. */
	if (huge_pages)
		syscall(SYS_prctl, PR_SET_THP_DISABLE, 0, 0, 0, 0);
	report.pending = wait_at_gate(s);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &s->mask, NULL, _NSIG / 8);
	syscall(SYS_getrusage, RUSAGE_SELF, &usage);
	report.kib = usage.ru_maxrss;
	syscall(SYS_sendto, s->report, &report, offsetof(struct command_report, error), 0, NULL, 0);
	if (*s->path)
		syscall(SYS_execve, s->path, s->argv, s->env);
	execvpe(s->argv[0], s->argv, s->env); /* also runs a script without #! */
	error = errno;
	while (write(s->report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(EXIT_FAILURE);
}

/* Memory that was allocated since command_prepare() is not copied into children (the job's process, then the
 * witness), or is copied again, by the advice. */
static void leave_heap(const struct command *c, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
		  from = ((uintptr_t)c->heap + page - 1) / page * page, to = (uintptr_t)sbrk(0);

	if (c->heap && to > from)
		madvise((void *)from, to - from, advice);
}

static int start_child(struct command *c, const struct start *s, const struct own_cgroup *group,
	const struct command_gate *gate)
{
	bool inside, huge_pages = c->has_huge_pages;
	pid_t pid;

	leave_heap(c, MADV_WIPEONFORK);
	pid = cgroup_fork(group, &inside);
	if (pid == 0)
		become(s, inside, huge_pages);
	if (pid > 0 && gate)
		gate->pass(gate->arg, pid);
	return pid;
}

int command_start(struct command *c, char *const *argv, char *const *variables,
	const struct own_cgroup *group, const struct command_gate *gate)
{
	struct start *start;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	start = start_new(argv, variables);
	if (start) {
		start->mask = c->mask;
		cgroup_doors(group, &start->door, &start->cpu_door);
		start->report = ends[1];
		start->other = ends[0];
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		pid = start_child(c, start, group, gate);
		munmap(start, start->size);
	} else {
		pid = -ENOMEM;
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return pid;
	}
	c->report = ends[0];
	c->held = true;
	c->pid = pid;
	return 0;
}

static void let_go(struct command *c)
{
	if (c->held)
		shutdown(c->report, SHUT_WR);
	c->held = false;
}

/* Signals that were sent to our process group before there was a witness. */
static void job_has_already(struct command *c, uint64_t pending)
{
	uint64_t ours = 0;

	if (pending && syscall(SYS_rt_sigpending, &ours, sizeof(ours)) == 0)
		c->witness.seen |= pending & ours;
}

/* The other end closes when the new program runs. */
int command_confirm(struct command *c)
{
	struct command_report report = {0};
	size_t got = 0;
	ssize_t n;

	let_go(c);
	while ((n = read(c->report, (char *)&report + got, sizeof(report) - got)) != 0 &&
		got < sizeof(report)) {
		if (n < 0 && errno != EINTR)
			break;
		got += (size_t)MAX(n, 0);
	}
	close(c->report);
	c->before_exec_kib = got >= offsetof(struct command_report, error) ? report.kib : -1;
	if (got >= offsetof(struct command_report, error))
		job_has_already(c, report.pending);
	if (!report.error)
		return 0;
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
	witness_end(&c->witness);
	return -report.error;
}

int command_become(struct command *c, char *const *argv)
{
	static const int of_writes[] = {SIGXFSZ, SIGPIPE};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, found;

	if (c->prepared) {
		/* A signal caused by a write of ours is pending: ignoring it removes it. */
		for (size_t i = 0; i < ARRAY_SIZE(of_writes); i++) {
			sigaction(of_writes[i], &ignore, &found);
			sigaction(of_writes[i], &found, NULL);
		}
		sigaction(SIGCHLD, &c->child, NULL);
		prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
		if (c->has_huge_pages)
			prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
		sigmask_change(SIG_SETMASK, &c->mask, NULL);
	}
	rights_drop();
	execvpe(argv[0], argv, rights_environment());
	return -errno;
}

unsigned command_privileges(struct command *c)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit more = c->files;

	if (c->pid) { /* without a witness, signals to the group reach the job twice */
		witness_start(&c->witness);
		let_go(c);
		leave_heap(c, MADV_KEEPONFORK);
	}
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	more.rlim_cur = more.rlim_max;
	if (!more.rlim_max || setrlimit(RLIMIT_NOFILE, &more) < 0)
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

	pid = pid_in_proc(pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = pid ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

/* A signal caused by our own write has us as its sender; one caused by our own CPU time comes from the
 * kernel. */
static bool is_our_own(const struct signalfd_siginfo *si)
{
	switch (si->ssi_signo) {
	case SIGPIPE:
	case SIGXFSZ:
		return si->ssi_code == SI_KERNEL || (pid_t)si->ssi_pid == getpid();
	case SIGXCPU:
		return si->ssi_code == SI_KERNEL;
	}
	return false;
}

/* Whether the kernel has sent it to our whole process group, if *ret_known. Signals of a terminal's keys and
 * size go to the group. A hangup goes to the leader of the session alone (__tty_hangup()); when the leader
 * ends, or when a group becomes an orphan, the whole group gets it. Others, for instance of a timer that was
 * set before our exec (alarm(2)), may have been sent to us alone. */
static bool kernel_sent_to_group(int sig, bool *ret_known)
{
	*ret_known = true;
	switch (sig) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGWINCH:
		return true;
	case SIGHUP:
	case SIGCONT:
		return getsid(0) != getpid();
	}
	*ret_known = false;
	return false;
}

static bool job_has_it(struct command *c, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;
	bool in_group = getpgid(c->pid) == getpgrp();
	/* Asked in any case: a signal that the witness saw must not be taken for the next one. */
	bool seen = witness_saw(&c->witness, sig), known = false, sent = false;

	if (!in_group)
		return false;
	if (si->ssi_code == SI_KERNEL)
		sent = kernel_sent_to_group(sig, &known);
	return known ? sent : seen;
}

/* With its value, and with its sender where the kernel allows us to set it. */
static int pass_on(pid_t pid, const struct signalfd_siginfo *si)
{
	siginfo_t info = {.si_signo = (int)si->ssi_signo, .si_code = SI_QUEUE};

	info.si_pid = (pid_t)si->ssi_pid;
	info.si_uid = si->ssi_uid;
	info.si_value.sival_ptr = (void *)(uintptr_t)si->ssi_ptr;
	if (si->ssi_code == SI_QUEUE && syscall(SYS_rt_sigqueueinfo, pid, info.si_signo, &info) == 0)
		return 0;
	return kill(pid, info.si_signo);
}

bool command_forward(struct command *c, const struct signalfd_siginfo *si, bool sender_is_member)
{
	if (c->pid <= 0)
		return false;
	if (is_our_own(si) || job_has_it(c, si) || sender_is_member)
		return false;
	/* A shell's `fg` continues the whole group: the job runs already. */
	if (si->ssi_signo == SIGCONT && c->stopped_with_it) {
		c->stopped_with_it = false;
		if (job_state(c->pid) != 'T')
			return false;
	}
	return pass_on(c->pid, si) == 0;
}

void command_ended(struct command *c)
{
	witness_dismiss(&c->witness);
}

void command_stop_by(int sig)
{
	struct sigaction fallback = {.sa_handler = SIG_DFL}, found;
	sigset_t one, blocked;

	sigemptyset(&one);
	sigaddset(&one, sig);
	sigaction(sig, &fallback, &found);
	kill(getpid(), sig);
	sigmask_change(SIG_UNBLOCK, &one, &blocked);
	sigmask_change(SIG_SETMASK, &blocked, NULL);
	sigaction(sig, &found, NULL);
}

enum command_stop command_stop_with_job(struct command *c, void (*before)(void *arg), void *arg)
{
	siginfo_t info = {0};

	if (c->pid <= 0 || waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
		info.si_pid != c->pid)
		return STOP_NONE;
	if (info.si_code == CLD_CONTINUED)
		return STOP_CONTINUED;
	if (info.si_status != SIGTSTP && info.si_status != SIGTTIN && info.si_status != SIGTTOU)
		return STOP_ALONE;
	if (before)
		before(arg);
	c->stopped_with_it = true;
	command_stop_by(info.si_status);
	return STOP_WITH_IT;
}

int command_exit_as(struct command *c, int status)
{
	struct rlimit no_core = {0};
	struct sigaction fallback = {.sa_handler = SIG_DFL};
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	sigset_t set;

	witness_end(&c->witness);
	if (!sig)
		return WEXITSTATUS(status);
	/* The job has written its core file; ours could overwrite it. */
	getrlimit(RLIMIT_CORE, &no_core);
	no_core.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &no_core);
	sigaction(sig, &fallback, NULL);
	/* All others stay blocked: we must not die of a signal that came meanwhile. */
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
