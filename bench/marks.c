/* What a mark costs a program: the time of tacho_mark(), call by call.
 *
 *	marks NUMBER PAUSE_US
 *
 * Prints the nanoseconds of a call, of the fastest tenth and of the median, and of all calls. With a pause,
 *the recorder keeps up; without one, many find its socket full. */
#include "tacho_mark.h"

#include <stdint.h>
#include <time.h>

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? strtol(argv[1], NULL, 10) : 100000,
	     pause = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	int64_t *took = calloc((size_t)nr, sizeof(*took)), all = 0;

	for (long i = 0; took && i < nr; i++) {
		int64_t t = now();

		tacho_mark("checkpoint written", "loss=0.31", NULL);
		took[i] = now() - t;
		all += took[i];
		if (pause)
			usleep((useconds_t)pause);
	}
	if (!took)
		return 1;
	qsort(took, (size_t)nr, sizeof(*took), by_value);
	printf("%lld %lld %lld\n", (long long)took[nr / 10], (long long)took[nr / 2], (long long)all);
	return 0;
}
