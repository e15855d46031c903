#include "cmd/progress.h"

#include "cmd/cmd.h"

#include <stdio.h>
#include <time.h>

#define PATIENCE_S 2.0
#define REFRESH_S 0.1
#define CLEAR "\r\033[K"

static struct {
	bool wanted, shown;
	double start_s, last_s;
} line;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_line(const char *text, size_t n)
{
	ssize_t done = write(STDERR_FILENO, text, n);

	(void)done; /* there is nobody left to tell */
}

static void tell(void *arg, const char *what, double done)
{
	double now;
	char text[128];
	int n;

	(void)arg;
	if (!line.wanted)
		return;
	now = now_s();
	if (now - line.start_s < PATIENCE_S || now - line.last_s < REFRESH_S)
		return;
	line.last_s = now;
	n = snprintf(text, sizeof(text), CLEAR "tacho: %.60s, %.0f %%", what, 100 * MAX(0, MIN(done, 1)));
	line.shown = true;
	write_line(text, MIN((size_t)n, sizeof(text) - 1));
}

const struct progress *progress_show(void)
{
	static const struct progress progress = {.tell = tell};

	line.wanted = isatty(STDERR_FILENO);
	line.start_s = now_s();
	line.last_s = 0;
	return &progress;
}

void progress_clear(void)
{
	if (line.shown)
		write_line(CLEAR, sizeof(CLEAR) - 1);
	line.shown = false;
}
