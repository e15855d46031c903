/* What replaces functions of the C library does what they do. */
#include "base/base.h"

#include <signal.h>
#include <string.h>

/* Before the names mean ours. */
static const char *libc_error(int error)
{
	return strerrorname_np(error);
}

static const char *libc_description(int error)
{
	return strerrordesc_np(error);
}

static const char *libc_signal(int signal)
{
	return sigabbrev_np(signal);
}

#define LACKS_REALLOCARRAY
#define LACKS_EXPLICIT_BZERO
#define LACKS_GETRANDOM
#define LACKS_GETDENTS64
#define LACKS_RENAMEAT2
#define LACKS_STRERRORNAME_NP
#define LACKS_STRERRORDESC_NP
#define LACKS_SIGABBREV_NP
#define reallocarray own_reallocarray
#define explicit_bzero own_explicit_bzero
#define getrandom own_getrandom
#define getdents64 own_getdents64
#define renameat2 own_renameat2
#define strerrorname_np own_strerrorname_np
#define strerrordesc_np own_strerrordesc_np
#define sigabbrev_np own_sigabbrev_np
#include "base/libc_missing.h"

#include "base/libc_missing.c"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void same(const char *own, const char *libc)
{
	if (libc)
		assert_string_equal(own ? own : "none", libc);
	else
		assert_null(own);
}

static void test_errors(void **state)
{
	(void)state;
	for (int i = -2; i < 200; i++) {
		same(strerrorname_np(i), libc_error(i));
		same(strerrordesc_np(i), libc_description(i));
	}
}

static void test_signals(void **state)
{
	(void)state;
	for (int i = -2; i < 80; i++)
		same(sigabbrev_np(i), libc_signal(i));
}

static void test_memory(void **state)
{
	char secret[32], zeros[32] = {0};
	int *array = reallocarray(NULL, 4, sizeof(*array));

	(void)state;
	assert_non_null(array);
	array[3] = 7;
	assert_null(reallocarray(array, SIZE_MAX / 2, 4));
	assert_int_equal(errno, ENOMEM);
	array = reallocarray(array, 8, sizeof(*array));
	assert_int_equal(array[3], 7);
	free(array);
	memset(secret, 'x', sizeof(secret));
	explicit_bzero(secret, sizeof(secret));
	assert_memory_equal(secret, zeros, sizeof(secret));
	assert_int_equal(getrandom(secret, sizeof(secret), 0), sizeof(secret));
	assert_memory_not_equal(secret, zeros, sizeof(secret));
}

static void test_files(void **state)
{
	char directory[] = "/tmp/libc-missing-XXXXXX", block[1024], a[64], b[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(a, sizeof(a), "%s/a", directory);
	snprintf(b, sizeof(b), "%s/b", directory);
	close(open(a, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(open(b, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE), -1);
	assert_int_equal(errno, EEXIST);
	unlink(b);
	assert_int_equal(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE), 0);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(getdents64(fd, block, sizeof(block)) > 0);
	close(fd);
	unlink(b);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
