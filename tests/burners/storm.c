/* Forks COUNT children, WIDTH of them at a time, and reaps each: storm COUNT [WIDTH [MS [MORE]]]. A child
 * burns MS milliseconds of CPU (0: nothing). Where MORE is said it then waits for the end of its standard
 * input, and forks MORE children in the same way. */
#include "burner.h"

static int storm(long count, long width, double cpu_s)
{
	long started = 0, running = 0;

	while (started < count || running) {
		if (started < count && running < width) {
			pid_t pid = fork();

			if (pid == 0) {
				if (cpu_s > 0)
					burn(cpu_s);
				_exit(0);
			}
			if (pid > 0) {
				started++;
				running++;
				continue;
			}
			if (errno != EAGAIN || !running)
				return -errno;
		}
		if (wait(NULL) > 0)
			running--;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long width = (long)number(argc, argv, 2, 1);
	double cpu_s = number(argc, argv, 3, 0) / 1e3;

	if (storm((long)number(argc, argv, 1, 1000), width, cpu_s) < 0)
		return 1;
	if (argc > 4) {
		wait_for_end_of_input();
		if (storm((long)number(argc, argv, 4, 0), width, cpu_s) < 0)
			return 1;
	}
	if (cpu_s > 0)
		tell_cpu();
	return 0;
}
