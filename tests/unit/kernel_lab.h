/* For tests that ask the kernel which runs them: CPU time, children, and what is not possible here. Behind
 * cmocka.h. */
#ifndef TESTS_KERNEL_LAB_H
#define TESTS_KERNEL_LAB_H

#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534

static inline int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static inline void burn_ns(int64_t ns)
{
	int64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static inline int wait_for(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void missing(const char *what, int r, const char *why)
{
	print_message("[  SKIPPED ] %s: %s (%s)\n", what, why, strerror(-r));
	skip();
}

/* Runs f in a child and gives its exit code, so that a test can change namespaces or user without harm. The
 * child must not assert: cmocka would run on in it. */
static inline int in_child(int (*f)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(f());
	status = wait_for(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define CANNOT 77 /* exit code: the set-up itself is not possible here */
#endif
