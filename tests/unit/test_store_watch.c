/* When a recording that grows has ended: its recorder is gone, or nothing came for three flushes where the
 * file system has no locks. The clock and the locks are those of the test. */
#include "store_world.h"

#include "store/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define FLUSH_NS (2 * NSEC_PER_SEC)

static char path[200];
static struct world world;
static struct store_reader *reader;
static struct store_watch watch;
static bool has_locks;
static int64_t now_ns;

/* ---- the outside world ---- */

static int fcntl_here(int fd, int command, void *arg)
{
	if (!has_locks && (command == F_OFD_GETLK || command == F_OFD_SETLK)) {
		errno = ENOLCK;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list more;
	void *arg;

	va_start(more, command);
	arg = va_arg(more, void *);
	va_end(more);
	return fcntl_here(fd, command, arg);
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list more;
	void *arg;

	va_start(more, command);
	arg = va_arg(more, void *);
	va_end(more);
	return fcntl_here(fd, command, arg);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){.tv_sec = now_ns / NSEC_PER_SEC, .tv_nsec = now_ns % NSEC_PER_SEC};
	return 0;
}

/* ---- a recording, and one who follows it ---- */

static int begin(void **state)
{
	(void)state;
	has_locks = false;
	now_ns = 1000 * NSEC_PER_SEC;
	return 0;
}

static void grow(void)
{
	world_live(&world, 3, 0);
	assert_int_equal(store_flush(world.w), 0);
}

static void follow(uint64_t seed)
{
	world_init(&world, seed, path);
	grow();
	assert_int_equal(store_open(path, &reader), 0);
	watch = (struct store_watch){.path = path, .flush_ns = FLUSH_NS};
}

static void leave(void)
{
	reader = store_close(reader);
	world_release(&world);
}

static void read_on(void)
{
	struct store_record record;
	int r;

	while ((r = store_next(reader, &record)) > 0)
		;
	assert_int_equal(r, 0);
}

/* What it says when all is read that there is. One who waits asks first. */
static int verdict(void)
{
	int r = watch.grew_ns ? store_watch(&watch, reader) : WATCH_MORE;

	for (unsigned i = 0; i < 4 && r == WATCH_MORE; i++) {
		read_on();
		r = store_watch(&watch, reader);
	}
	return r;
}

/* Whether this machine is the recorder's makes no difference: its locks are not seen. */
static void test_without_locks_three_flushes_may_be_missed(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		follow(1);
		watch.local = local;
		assert_int_equal(verdict(), WATCH_WAIT);
		now_ns += 3 * FLUSH_NS - 1;
		assert_int_equal(verdict(), WATCH_WAIT);
		grow();
		assert_int_equal(verdict(), WATCH_WAIT);
		now_ns += 3 * FLUSH_NS - 1;
		assert_int_equal(verdict(), WATCH_WAIT);
		now_ns += NSEC_PER_SEC; /* it looks once a second */
		assert_int_equal(verdict(), WATCH_END);
		assert_false(store_reader_complete(reader));
		leave();
	}
}

static void test_it_grows_all_the_same(void **state)
{
	(void)state;
	follow(2);
	assert_int_equal(verdict(), WATCH_WAIT);
	now_ns += 3 * FLUSH_NS;
	read_on();
	assert_int_equal(store_watch(&watch, reader), WATCH_MORE); /* to be read a last time */
	grow();
	read_on();
	assert_int_equal(verdict(), WATCH_WAIT);
	now_ns += 3 * FLUSH_NS;
	assert_int_equal(verdict(), WATCH_END);
	leave();
}

static void test_without_locks_the_end_mark_ends_it(void **state)
{
	(void)state;
	follow(3);
	assert_int_equal(verdict(), WATCH_WAIT);
	world_finish(&world);
	assert_int_equal(verdict(), WATCH_END);
	assert_true(store_reader_complete(reader));
	leave();
}

static void test_with_locks_only_the_lock_counts(void **state)
{
	(void)state;
	has_locks = true;
	follow(4);
	assert_int_equal(verdict(), WATCH_WAIT);
	now_ns += 3600 * NSEC_PER_SEC;
	assert_int_equal(verdict(), WATCH_WAIT);
	world_release(&world); /* gone, without an end mark */
	now_ns += NSEC_PER_SEC;
	assert_int_equal(verdict(), WATCH_END);
	assert_false(store_reader_complete(reader));
	reader = store_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_without_locks_three_flushes_may_be_missed, begin),
		cmocka_unit_test_setup(test_it_grows_all_the_same, begin),
		cmocka_unit_test_setup(test_without_locks_the_end_mark_ends_it, begin),
		cmocka_unit_test_setup(test_with_locks_only_the_lock_counts, begin),
	};
	int fd, failed;

	snprintf(path, sizeof(path), "/tmp/test_store_watch_XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
