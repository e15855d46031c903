/* Forks COUNT children that do nothing, WIDTH of them at a time, and reaps each: storm COUNT [WIDTH] */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	long width = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	long started = 0, running = 0;

	while (started < count || running) {
		if (started < count && running < width) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
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
	return 0;
}
