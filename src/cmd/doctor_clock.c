/* The clock and the timers, measured: what a reading costs, how small its steps are, how late a sleep
 * ends. */
#include "cmd/doctor.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define READINGS 20000
#define WAKES 100
#define SLEEP_NS (2 * NSEC_PER_MSEC)

static int64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *value, size_t nr)
{
	if (!nr)
		return 0;
	qsort(value, nr, sizeof(*value), ascending);
	return nr % 2 ? value[nr / 2] : (value[nr / 2 - 1] + value[nr / 2]) / 2;
}

static void read_clock(struct clock_facts *c)
{
	int64_t first = monotonic_ns(), before = first, least = INT64_MAX;

	for (unsigned i = 0; i < READINGS; i++) {
		int64_t now = monotonic_ns();

		if (now > before)
			least = MIN(least, now - before);
		before = now;
	}
	c->read_s = (double)(before - first) / READINGS * 1e-9;
	c->step_s = least == INT64_MAX ? 0 : (double)least * 1e-9;
}

/* As the recorder's loop does: ppoll with what is left until an absolute deadline, timers as sharp as
 * allowed. */
static void sleep_often(struct clock_facts *c)
{
	double late[WAKES];
	int64_t deadline = monotonic_ns();

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	for (unsigned i = 0; i < WAKES; i++) {
		struct timespec left = {0};

		deadline = MAX(deadline + SLEEP_NS, monotonic_ns());
		left.tv_nsec = deadline - monotonic_ns();
		left.tv_nsec = MAX(left.tv_nsec, 0);
		ppoll(NULL, 0, &left, NULL);
		late[i] = (double)MAX(monotonic_ns() - deadline, 0) * 1e-9;
	}
	c->wakes = WAKES;
	c->late_median_s = median(late, WAKES);
	c->late_worst_s = late[WAKES - 1];
}

void doctor_clock(struct env *env, struct clock_facts *ret)
{
	*ret = (struct clock_facts){0};
	if (env_slurp(env, "sys/devices/system/clocksource/clocksource0/current_clocksource", ret->source,
		    sizeof(ret->source)) < 0)
		ret->source[0] = 0;
	ret->source[strcspn(ret->source, "\n")] = 0;
	read_clock(ret);
	sleep_often(ret);
}
