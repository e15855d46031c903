#include "target/witness.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STACK_SIZE 16384
/* An answer that takes longer never comes: somebody has killed or stopped the witness. */
#define PATIENCE_MS 2000

/* What we and the witness share: all else of our memory it leaves alone. */
static struct {
	pid_t parent;
	uint32_t asked, answered; /* numbers of questions; futexes */
	int sig, wait_ms;
	bool saw;
	char stack[STACK_SIZE] __attribute__((aligned(64)));
} shared;

static struct timespec timespec_of(int ms)
{
	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
}

static void wait_for_change(uint32_t *word, uint32_t from, const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT, from, timeout, NULL, 0);
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A call that may fail while we work: the witness has our errno, and leaves it alone. */
static long quiet_syscall(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
	return syscall(number, a, b, c);
#endif
}

/* The witness. Its other calls fail, if at all, while we wait for its answer. */
__attribute__((no_sanitize("address", "undefined"))) static int watch(void *arg)
{
	uint32_t done = 0;

	(void)arg;
	quiet_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	if (quiet_syscall(SYS_getppid, 0, 0, 0) != shared.parent)
		quiet_syscall(SYS_exit_group, 0, 0, 0);
	/* Our files shall be closed when we are killed. Before Linux 5.9 it keeps them some moments longer.
	 */
	quiet_syscall(SYS_close_range, 0, UINT32_MAX, 0);
	for (;;) {
		uint64_t set;
		struct timespec timeout;

		wait_for_change(&shared.asked, done, NULL);
		if (__atomic_load_n(&shared.asked, __ATOMIC_ACQUIRE) == done)
			continue;
		set = UINT64_C(1) << (shared.sig - 1);
		timeout = timespec_of(shared.wait_ms);
		shared.saw = syscall(SYS_rt_sigtimedwait, &set, NULL, &timeout, sizeof(set)) == shared.sig;
		__atomic_store_n(&shared.answered, ++done, __ATOMIC_RELEASE);
		wake(&shared.answered);
	}
	return 0;
}

/* False: no answer came. */
static bool wait_for_answer(uint32_t number, int wait_ms)
{
	struct timespec timeout = timespec_of(wait_ms + PATIENCE_MS), start, now;
	uint32_t last;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while ((last = __atomic_load_n(&shared.answered, __ATOMIC_ACQUIRE)) != number) {
		wait_for_change(&shared.answered, last, &timeout);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 > wait_ms + 2 * PATIENCE_MS)
			return false;
	}
	return true;
}

int witness_start(struct signal_witness *w)
{
	const char *preloaded = getenv("LD_PRELOAD");
	sigset_t all, found;

	*w = (struct signal_witness){0};
	/* Valgrind cannot follow such a process and would end us. */
	if (preloaded && strstr(preloaded, "/vgpreload"))
		return -ENOTSUP;
	shared.parent = getpid();
	shared.asked = shared.answered = 0;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &found) < 0)
		return -errno;
	/* No signal at its end, and not found by a wait for our children. */
	w->pid = clone(watch, shared.stack + STACK_SIZE, CLONE_VM, NULL);
	if (w->pid < 0)
		w->pid = 0;
	sigprocmask(SIG_SETMASK, &found, NULL);
	return w->pid ? 0 : -EAGAIN;
}

bool witness_saw(struct signal_witness *w, int sig, int wait_ms)
{
	if (!w->pid)
		return false;
	shared.sig = sig;
	shared.wait_ms = wait_ms;
	__atomic_add_fetch(&shared.asked, 1, __ATOMIC_RELEASE);
	wake(&shared.asked);
	if (wait_for_answer(shared.asked, wait_ms))
		return shared.saw;
	witness_end(w);
	return false;
}

void witness_end(struct signal_witness *w)
{
	if (!w->pid)
		return;
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, __WCLONE);
	w->pid = 0;
}
