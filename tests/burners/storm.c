/* Forks COUNT children, WIDTH of them at a time, and reaps each: storm COUNT [WIDTH [MS]]. A child burns MS
 * milliseconds of CPU (0: nothing). */
#include "burner.h"

int main(int argc, char **argv)
{
	long count = (long)number(argc, argv, 1, 1000);
	long width = (long)number(argc, argv, 2, 1);
	double cpu_s = number(argc, argv, 3, 0) / 1e3;
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
				return 1;
		}
		if (wait(NULL) > 0)
			running--;
	}
	if (cpu_s > 0)
		tell_cpu();
	return 0;
}
