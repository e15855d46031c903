/* What the burners share. A burner uses a known amount of something and tells on stdout what it knows of its
 * own use, one `key value` a line; it exits with 2 when it could not do what it was asked. */
#ifndef BURNER_H
#define BURNER_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (INT64_C(1) << 20)

static inline void fail(const char *what)
{
	fprintf(stderr, "burner: %s: %s\n", what, strerror(errno));
	exit(2);
}

static inline double number(int argc, char **argv, int i, double preset)
{
	char *end;
	double value;

	if (i >= argc)
		return preset;
	value = strtod(argv[i], &end);
	if (*end || end == argv[i]) {
		errno = EINVAL;
		fail(argv[i]);
	}
	return value;
}

static inline double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In user mode but for the clock, which is asked rarely. */
static inline void burn(double cpu_s)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + cpu_s;

	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

static inline void sleep_s(double s)
{
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* Until whoever started us closes our standard input; says so before. */
static inline void wait_for_end_of_input(void)
{
	char byte;

	printf("waits 1\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

/* As long as the argument says: seconds, or `-` for as long as standard input lasts. What comes after does
 * not depend on how fast the machine is then. */
static inline void hold(int argc, char **argv, int i, double preset)
{
	if (i < argc && strcmp(argv[i], "-") == 0)
		wait_for_end_of_input();
	else
		sleep_s(number(argc, argv, i, preset));
}

static inline double rusage_s(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		(double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static inline void tell_cpu(void)
{
	printf("cpu_s %.6f\n", rusage_s(RUSAGE_SELF) + rusage_s(RUSAGE_CHILDREN));
	fflush(stdout);
}
#endif
