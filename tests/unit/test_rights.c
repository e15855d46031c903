#include "base/rights.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

extern char **environ;

/* A program without rights of its own is what it was. */
static void nothing_is_borrowed(void **state)
{
	char *argv[] = {(char *)"test", NULL};

	(void)state;
	assert_int_equal(rights_begin(1, argv), 0);
	assert_false(rights_borrowed());
	assert_int_equal(rights_held(), 0);
	assert_false(rights_raise(RIGHT_NET_ADMIN));
	assert_ptr_equal(rights_environment(), environ);
	rights_drop();
	rights_lower();
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

static void only_roots_files_are_trusted(void **state)
{
	char real[PATH_MAX], folder[] = "/run/tacho-rights-XXXXXX", file[64], way[64];

	(void)state;
	assert_false(rights_trusted("/no/such/file", real));
	assert_false(rights_trusted("/tmp", real)); /* everybody may write there */
	assert_true(rights_trusted("/etc/../etc/passwd", real));
	assert_string_equal(real, "/etc/passwd");
	if (geteuid() || !mkdtemp(folder)) {
		print_message("files of root's are made by root\n");
		skip();
	}
	chmod(folder, 0755);
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(way, sizeof(way), "%s/way", folder);
	touch(file);
	assert_int_equal(symlink("file", way), 0);
	assert_true(rights_trusted(file, real));
	assert_true(rights_trusted(way, real));
	assert_string_equal(real, file);
	/* The file, and the folder in which it could be replaced. */
	chmod(file, 0646);
	assert_false(rights_trusted(way, real));
	chmod(file, 0644);
	chmod(folder, 01777);
	assert_false(rights_trusted(file, real));
	chmod(folder, 0755);
	assert_int_equal(chown(file, 65534, 0), 0);
	assert_false(rights_trusted(file, real));
	assert_int_equal(chown(file, 0, 65534), 0);
	assert_true(rights_trusted(file, real));
	chmod(file, 0664);
	assert_false(rights_trusted(file, real));
	unlink(way);
	unlink(file);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_borrowed),
		cmocka_unit_test(only_roots_files_are_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
