/* N processes that start and compute, all of them, until so many seconds of the wall clock have passed:
 * hogs N SECONDS. Says how much they have done together, and in how many seconds of CPU time. */
#include "burner.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void compute(atomic_ullong *done, double until_s)
{
	volatile unsigned x = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (seconds(CLOCK_MONOTONIC) < until_s) {
		for (int i = 0; i < 10000; i++)
			x = x * 1664525 + 1013904223;
		atomic_fetch_add(done, 1);
	}
	_exit(0);
}

static double children_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	long count = (long)number(argc, argv, 1, 100);
	double until_s = seconds(CLOCK_MONOTONIC) + number(argc, argv, 2, 5);
	atomic_ullong *done =
		mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (done == MAP_FAILED)
		fail("mmap");
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0)
			compute(done, until_s);
	}
	while (wait(NULL) > 0)
		;
	printf("%llu %.6f\n", atomic_load(done), seconds(CLOCK_PROCESS_CPUTIME_ID) + children_s());
	return 0;
}
