/* The witness process that shows which signals were sent to our whole process group: see witness.h. */
#include "target/witness.h"

#include "base/sigmask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

/* Longer than any list of arguments: if the distance is larger, they are not where the kernel put them. */
#define ARGUMENTS_MAX (INT64_C(8) << 20)

/* Arguments stand in one piece, before the environment. */
static void forget_arguments(void)
{
	char *begin = program_invocation_name, *end = environ ? environ[0] : NULL;

	if (begin && end > begin && end - begin < ARGUMENTS_MAX)
		memset(begin, 0, (size_t)(end - begin));
}

static void close_all(unsigned from, unsigned to)
{
	if (from <= to)
		syscall(SYS_close_range, from, to, 0);
}

/* Our files shall be closed when we are killed. Before Linux 5.9 the witness keeps them some moments
 * longer. */
static void close_all_but(unsigned a, unsigned b)
{
	unsigned low = MIN(a, b), high = MAX(a, b);

	if (low)
		close_all(0, low - 1);
	close_all(low + 1, high - 1);
	close_all(high + 1, UINT32_MAX);
}

/* The witness: a copy of us, the first without our heap (command.c). It makes system calls, and allocates
 * nothing. */
static void __attribute__((noreturn)) stand_by(const struct signal_witness *w, pid_t parent)
{
	struct pollfd end = {.fd = w->tidy ? (int)syscall(SYS_pidfd_open, parent, 0) : -1, .events = POLLIN};

	if (end.fd < 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (end.fd < 0 && getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "signal-witness");
	forget_arguments();
	if (end.fd < 0)
		close_all(0, UINT32_MAX);
	else
		close_all_but((unsigned)end.fd, (unsigned)w->dir);
	while (!end.revents)
		poll(&end, end.fd >= 0, -1);
	w->tidy(w->arg, w->dir);
	_exit(0);
}

int witness_start(struct signal_witness *w)
{
	/* It sends no signal at its end, and a wait for our children does not find it. */
	struct clone_args plain = {.exit_signal = 0};
	const char *preloaded = getenv("LD_PRELOAD");
	pid_t self = getpid(), pid;
	sigset_t all, found;
	int r;

	w->pid = 0;
	/* Valgrind does not know this kind of child, and would print a report for it as well. */
	if (preloaded && strstr(preloaded, "/vgpreload"))
		return -ENOTSUP;
	sigmask_fill(&all);
	r = sigmask_change(SIG_SETMASK, &all, &found);
	if (r < 0)
		return r;
	pid = (pid_t)syscall(SYS_clone3, &plain, sizeof(plain));
	if (pid == 0)
		stand_by(w, self);
	if (pid > 0)
		w->pid = pid;
	sigmask_change(SIG_SETMASK, &found, NULL);
	return w->pid ? 0 : -EAGAIN;
}

static uint64_t bit_of(int sig)
{
	return UINT64_C(1) << (sig - 1);
}

static bool read_text(const char *path, char *text, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[MAX(n, 0)] = 0;
	return n > 0;
}

pid_t pid_in_proc(pid_t pid)
{
	static const char key[] = "\nPid:";
	char path[48], text[512], *at;
	_cleanup_(closep) int fd = -1;
	ssize_t n = readlink("/proc/self", text, 16);

	text[MAX(n, 0)] = 0;
	if (strtol(text, NULL, 10) == getpid())
		return pid;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	at = fd >= 0 && read_text(path, text, sizeof(text)) ? strstr(text, key) : NULL;
	return at ? (pid_t)MAX(strtol(at + strlen(key), NULL, 10), 0) : 0;
}

/* Signals that it got and blocks. False when it is gone, or cannot be found. */
static bool read_pending(pid_t pid, uint64_t *ret)
{
	static const char key[] = "\nShdPnd:";
	char path[32], text[4096], *at;

	pid = pid_in_proc(pid);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!pid || !read_text(path, text, sizeof(text)))
		return false;
	at = strstr(text, key);
	if (!at || strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX"))
		return false;
	*ret = strtoull(at + strlen(key), NULL, 16) & ~(bit_of(SIGKILL) | bit_of(SIGSTOP));
	return true;
}

static void replace(struct signal_witness *w)
{
	witness_end(w);
	witness_start(w);
}

bool witness_saw(struct signal_witness *w, int sig)
{
	uint64_t pending = 0;
	bool seen;

	if (w->pid && (!read_pending(w->pid, &pending) || pending))
		replace(w);
	w->seen |= pending;
	seen = w->seen & bit_of(sig);
	w->seen &= ~bit_of(sig);
	return seen;
}

void witness_entrust(
	struct signal_witness *w, void (*tidy)(const void *arg, int dir), const void *arg, int dir)
{
	uint64_t pending = 0;

	w->tidy = tidy;
	w->arg = arg;
	w->dir = dir;
	if (w->pid && read_pending(w->pid, &pending))
		w->seen |= pending;
	replace(w);
}

void witness_dismiss(const struct signal_witness *w)
{
	if (w->pid)
		kill(w->pid, SIGKILL);
}

void witness_end(struct signal_witness *w)
{
	if (!w->pid)
		return;
	witness_dismiss(w);
	waitpid(w->pid, NULL, __WCLONE);
	w->pid = 0;
}
