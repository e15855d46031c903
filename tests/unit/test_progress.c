/* Progress: a terminal sees it once somebody has waited for two seconds, and nothing of it stays. */

#include "cmd/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct screen {
	int ours, saved;
};

static void screen_open(struct screen *s)
{
	int theirs;

	assert_int_equal(openpty(&s->ours, &theirs, NULL, NULL, NULL), 0);
	assert_int_equal(fcntl(s->ours, F_SETFL, O_NONBLOCK), 0);
	s->saved = dup(STDERR_FILENO);
	dup2(theirs, STDERR_FILENO);
	close(theirs);
}

/* What was written on it so far. */
static const char *screen_read(struct screen *s)
{
	static char text[4096];
	ssize_t n = read(s->ours, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void screen_close(struct screen *s)
{
	dup2(s->saved, STDERR_FILENO);
	close(s->saved);
	close(s->ours);
}

static void wait_s(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (long)seconds) * 1e9)};

	while (nanosleep(&t, &t) < 0)
		continue;
}

static void test_shown_after_a_while(void **state)
{
	const struct progress *p;
	struct screen s;
	char early[4096], later[4096], cleared[4096];

	(void)state;
	screen_open(&s);
	p = progress_show();
	progress_tell(p, "reading", 0.25);
	progress_clear();
	snprintf(early, sizeof(early), "%s", screen_read(&s));
	wait_s(2.1);
	progress_tell(p, "reading", 0.5);
	snprintf(later, sizeof(later), "%s", screen_read(&s));
	progress_clear();
	snprintf(cleared, sizeof(cleared), "%s", screen_read(&s));
	screen_close(&s);
	assert_string_equal(early, "");
	assert_non_null(strstr(later, "reading, 50 %"));
	assert_null(strchr(later, '\n'));
	assert_string_equal(cleared, "\r\033[K");
}

static void test_never_where_nobody_looks(void **state)
{
	int saved = dup(STDERR_FILENO), ends[2];
	const struct progress *p;
	struct pollfd look;
	int r;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	p = progress_show();
	wait_s(2.1);
	progress_tell(p, "reading", 0.5);
	progress_clear();
	look = (struct pollfd){.fd = ends[0], .events = POLLIN};
	r = poll(&look, 1, 0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(r, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown_after_a_while),
		cmocka_unit_test(test_never_where_nobody_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
