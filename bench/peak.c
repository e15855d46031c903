/* Runs a command and prints one JSON object: seconds, seconds of CPU, peak of its memory.
 *
 *	peak COMMAND [ARGUMENT...]
 *
 * A small process between Python and what is measured: the kernel's high-water mark survives exec, so that a
 * child of a Python program begins with Python's. What the command prints goes nowhere. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double time_s(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	double start = now_s();
	struct rusage used;
	int status, null;
	pid_t child;

	if (argc < 2)
		return 2;
	child = fork();
	if (!child) {
		null = open("/dev/null", O_WRONLY);
		if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
			_exit(127);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &used) != child || !WIFEXITED(status))
		return 1;
	printf("{\"seconds\": %.3f, \"cpu_s\": %.3f, \"peak_bytes\": %ld}\n", now_s() - start,
		time_s(used.ru_utime) + time_s(used.ru_stime), used.ru_maxrss * 1024L);
	return WEXITSTATUS(status);
}
