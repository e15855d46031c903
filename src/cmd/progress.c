/* One line on the terminal that shows how far a long command is: see progress.h. */
#include "cmd/progress.h"

#include "base/units.h"
#include "cmd/cmd.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE_S 2.0
#define REFRESH_S 0.1
#define REPORTED_S 1.0 /* for this long, reported progress is shown instead of the bytes that were read */
#define CLEAR "\r\033[K"

static struct {
	bool wanted, shown;
	atomic_flag busy; /* readers may be many threads */
	double start_s, last_s, reported_s;
	uint64_t expected;
	_Atomic uint64_t read;
} line = {.busy = ATOMIC_FLAG_INIT};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_line(const char *text, size_t n)
{
	ssize_t done = write(STDERR_FILENO, text, n);

	(void)done; /* an error here cannot be reported */
}

static bool is_due(double now)
{
	return now - line.start_s >= PATIENCE_S && now - line.last_s >= REFRESH_S;
}

static void show(double now, const char *what, const char *how_far)
{
	char text[160];
	int n = snprintf(text, sizeof(text), CLEAR "tacho: %.60s, %s", what, how_far);

	line.last_s = now;
	line.shown = true;
	write_line(text, MIN((size_t)n, sizeof(text) - 1));
}

static void tell(void *arg, const char *what, double done)
{
	char percent[16];
	double now;

	(void)arg;
	if (!line.wanted || atomic_flag_test_and_set(&line.busy))
		return;
	line.reported_s = now = now_s();
	snprintf(percent, sizeof(percent), "%.0f %%", 100 * MAX(0, MIN(done, 1)));
	if (is_due(now))
		show(now, what, percent);
	atomic_flag_clear(&line.busy);
}

static void on_read(uint64_t bytes)
{
	double read = (double)(atomic_fetch_add(&line.read, bytes) + bytes), now;
	char text[2 * UNITS_SIZE + 8], size[2][UNITS_SIZE];

	if (atomic_flag_test_and_set(&line.busy))
		return;
	now = now_s();
	if (is_due(now) && now - line.reported_s >= REPORTED_S) {
		bool within = read <= (double)line.expected; /* false in a second pass */

		snprintf(text, sizeof(text), "%s%s%s", format_bytes(size[0], read), within ? " of " : "",
			within ? format_bytes(size[1], (double)line.expected) : "");
		show(now, "reading", text);
	}
	atomic_flag_clear(&line.busy);
}

const struct progress *progress_show(void)
{
	static const struct progress progress = {.tell = tell};

	if (!line.wanted)
		line.start_s = now_s();
	line.wanted = isatty(STDERR_FILENO);
	progress_on_read = line.wanted ? on_read : NULL;
	return &progress;
}

void progress_expect(uint64_t bytes)
{
	line.expected += bytes;
	line.read = 0;
}

void progress_clear(void)
{
	if (line.shown)
		write_line(CLEAR, sizeof(CLEAR) - 1);
	line.shown = false;
}
