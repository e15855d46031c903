/* Our own place in the queue for CPUs, asked of the kernel that runs the tests. */
#include "target/priority.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "kernel_lab.h"

static int policy_of_a_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(sched_getscheduler(0) * 64 + getpriority(PRIO_PROCESS, 0) + 20);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *policy_of_a_thread(void *ret)
{
	*(int *)ret = sched_getscheduler(0);
	return NULL;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = NSEC_PER_MSEC};

	nanosleep(&pause, NULL);
}

/* A second later it is taken back; a test that waits longer is killed. */
static bool is_realtime_again(void)
{
	while (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK)) {
		nap();
		priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	}
	return true;
}

/* SIGXCPU that is sent to us is not the kernel's word about our time: it waits for the reader of signals. */
static bool sent_signal_waits(const sigset_t *one)
{
	struct timespec at_once = {0};
	siginfo_t info;

	kill(getpid(), SIGXCPU);
	if (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK))
		return false;
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID)); /* it was not read yet */
	return sigtimedwait(one, &info, &at_once) == SIGXCPU && info.si_code == SI_USER &&
		info.si_pid == getpid() && sigtimedwait(one, &info, &at_once) < 0;
}

/* In a process of its own; 0, or the number of what is wrong. */
static int priority_trial(void)
{
	struct priority p;
	pthread_t thread;
	int policy = -1;
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGXCPU);
	sigprocmask(SIG_BLOCK, &one, NULL); /* as the recorder does */
	priority_raise(&p);
	if (p.kind != PRIORITY_REALTIME)
		return 77;
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	if (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK))
		return 1;
	if (policy_of_a_child() != SCHED_OTHER * 64 + 20)
		return 2;
	if (pthread_create(&thread, NULL, policy_of_a_thread, &policy) || pthread_join(thread, NULL) ||
		policy)
		return 3;
	if (!sent_signal_waits(&one))
		return 8;
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	burn_ns(NSEC_PER_SEC / 2); /* ten times what it may have at once */
	if (sched_getscheduler(0) != (SCHED_OTHER | SCHED_RESET_ON_FORK) ||
		getpriority(PRIO_PROCESS, 0) != -20)
		return 4;
	if (!is_realtime_again())
		return 5;
	burn_ns(NSEC_PER_SEC / 2); /* the kernel adds a second to the limit whenever it is reached */
	if (sched_getscheduler(0) != (SCHED_OTHER | SCHED_RESET_ON_FORK))
		return 6;
	priority_lower();
	return sched_getscheduler(0) == SCHED_OTHER && !getpriority(PRIO_PROCESS, 0) ? 0 : 7;
}

/* Never long without sleeping, but most of the time: the kernel sees nothing wrong. */
static int priority_in_pieces(void)
{
	struct priority p;

	priority_raise(&p);
	if (p.kind != PRIORITY_REALTIME)
		return 77;
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	for (int i = 0; i < 1000 && sched_getscheduler(0) == (SCHED_RR | SCHED_RESET_ON_FORK); i++) {
		burn_ns(5 * NSEC_PER_MSEC);
		nap();
		priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	}
	if (sched_getscheduler(0) != (SCHED_OTHER | SCHED_RESET_ON_FORK))
		return 1;
	return is_realtime_again() ? 0 : 2;
}

static pid_t start_realtime_hog(void)
{
	const struct sched_param above = {.sched_priority = 2};
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(20);
	signal(SIGXCPU, SIG_IGN); /* our limit is not its */
	if (sched_setscheduler(0, SCHED_FIFO, &above) < 0)
		_exit(1);
	for (;;)
		;
}

/* On one CPU that a task of higher priority never leaves. */
static int priority_below_a_hog(void)
{
	struct priority p;
	cpu_set_t one;
	pid_t hog;

	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return 77;
	priority_raise(&p);
	if (p.kind != PRIORITY_REALTIME)
		return 77;
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	hog = start_realtime_hog();
	while (sched_getscheduler(0) == (SCHED_RR | SCHED_RESET_ON_FORK)) {
		nap();
		if (waitpid(hog, NULL, WNOHANG) != 0) /* we have waited for its end, or it was none */
			return 1;
	}
	priority_keep(now_ns(CLOCK_THREAD_CPUTIME_ID));
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	return sched_getscheduler(0) == (SCHED_OTHER | SCHED_RESET_ON_FORK) &&
			getpriority(PRIO_PROCESS, 0) == -20
		? 0
		: 2;
}

static void try_priority(int (*trial)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(60);
		setpriority(PRIO_PROCESS, 0, 0);
		_exit(trial());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		missing("priority", -EPERM, "no real-time priority is given here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Real-time, not inherited, lost by who computes too long, and given back. */
static void test_priority_is_ours_alone(void **state)
{
	(void)state;
	try_priority(priority_trial);
}

static void test_priority_is_limited_in_a_second(void **state)
{
	(void)state;
	try_priority(priority_in_pieces);
}

static void test_priority_that_starves_is_given_up(void **state)
{
	(void)state;
	try_priority(priority_below_a_hog);
}

/* Who has no right gets none, and nothing fails. */
static void test_priority_without_rights(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		struct rlimit none = {0, 0};
		struct priority p;

		setrlimit(RLIMIT_RTPRIO, &none);
		setrlimit(RLIMIT_NICE, &none);
		if (!geteuid() && setuid(NOBODY) < 0)
			_exit(77);
		priority_raise(&p);
		priority_lower();
		_exit(p.kind != PRIORITY_NONE || strcmp(p.text, "none") ||
			(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_priority_is_ours_alone),
		cmocka_unit_test(test_priority_is_limited_in_a_second),
		cmocka_unit_test(test_priority_that_starves_is_given_up),
		cmocka_unit_test(test_priority_without_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
