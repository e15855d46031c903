/* env/: the live kernel, machines, films, captures, and the env that fails. */
#include "env/env.h"

#include "base/buf.h"
#include "collect_lab.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <cmocka.h>

static char scratch[] = "/tmp/tacho-test-env-XXXXXX";

static int make_scratch(void **state)
{
	(void)state;
	return mkdtemp(scratch) ? 0 : -1;
}

static const char *scratch_path(const char *name)
{
	static char path[4][200];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", scratch, name);
	return path[turn];
}

static int drop_scratch(void **state)
{
	static const char *const name[] = {"film", "text", "capture", "link"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		unlink(scratch_path(name[i]));
	return rmdir(scratch);
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static struct env *film_of_text(const char *text)
{
	struct env *env = NULL;
	unsigned line;

	write_file(scratch_path("film"), text, strlen(text));
	assert_int_equal(env_film(scratch_path("film"), &env, &line), 0);
	return env;
}

static void assert_text(struct env *env, const char *path, const char *text)
{
	char got[4096];

	assert_int_equal(env_slurp(env, path, got, sizeof(got)), strlen(text));
	assert_string_equal(got, text);
}

/* Names that were listed, joined. */
static int join_names(void *arg, const char *name)
{
	struct buf *b = arg;

	buf_addf(b, "%s%s", b->len ? " " : "", name);
	return strcmp(name, "stop") ? 0 : -ECANCELED;
}

static const char *listing(struct env *env, const char *path)
{
	static char memory[4][4000];
	static int turn;
	struct buf b;
	int r;

	turn = (turn + 1) % 4;
	buf_init_fixed(&b, memory[turn], sizeof(memory[turn]));
	r = env_list(env, path, join_names, &b);
	if (r < 0)
		buf_addf(&b, "(%d)", r);
	return (char *)b.data;
}

/* live */

static void test_live_reads_the_kernel(void **state)
{
	_cleanup_(freep) char *small = malloc(8);
	struct env *env = env_live(NULL);
	char text[4096], want[64];
	int handle;

	(void)state;
	assert_non_null(env);
	assert_true(env->live);
	assert_int_equal(env->page_size, sysconf(_SC_PAGESIZE));
	assert_int_equal(env->clock_tick, sysconf(_SC_CLK_TCK));

	assert_true(env_slurp(env, "proc/self/stat", text, sizeof(text)) > 0);
	snprintf(want, sizeof(want), "%d (", getpid());
	assert_memory_equal(text, want, strlen(want));
	assert_int_equal(env_slurp(env, "proc/self/stat", small, 8), -EFBIG);
	assert_int_equal(env_slurp(env, "proc/no-such-file", text, sizeof(text)), -ENOENT);
	assert_int_equal(env_open(env, "proc/0"), -ENOENT);
	assert_int_equal(env_list(env, "proc/self/stat", join_names, NULL), -ENOTDIR);

	handle = env_open(env, "proc/self/fd");
	assert_true(handle >= 0);
	assert_int_equal(fcntl(handle, F_GETFD), FD_CLOEXEC);
	assert_int_equal(env_read(env, handle, text, sizeof(text)), -EISDIR);
	assert_true(env_size(env, handle) >= 0);
	env_close(env, handle);
	assert_int_equal(env_read(env, handle, text, sizeof(text)), -EBADF);
	env_close(env, -1);

	assert_int_equal(env_readlink(env, "proc/self/none", text, sizeof(text)), -ENOENT);
	assert_non_null(env_getenv(env, "PATH"));
	assert_null(env_getenv(env, "TACHO_NO_SUCH_VARIABLE"));
	assert_null(env_free(env));
	assert_null(env_free(NULL));
}

static void test_live_clocks(void **state)
{
	struct env *env = env_live("/");
	int64_t start = env_now(env, ENV_MONOTONIC), cpu = env_cpu_clock(env, getpid());
	volatile unsigned spin = 0;
	struct timespec ts;
	pid_t child;

	(void)state;
	assert_true(cpu > 0);
	while (env_cpu_clock(env, getpid()) == cpu)
		spin++;
	assert_true(env_cpu_clock(env, getpid()) > cpu);
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(env_cpu_clock(env, child), -ESRCH);

	assert_int_equal(env_sleep_until(env, start + NSEC_PER_MSEC), 0);
	assert_true(env_now(env, ENV_MONOTONIC) >= start + NSEC_PER_MSEC);
	assert_int_equal(env_sleep_until(env, start), 0);
	assert_int_equal(env_sleep_until(env, -5), 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	assert_true(env_now(env, ENV_REALTIME) / NSEC_PER_SEC >= ts.tv_sec);
	assert_true(env_now(env, ENV_BOOTTIME) >= start);
	env_free(env);
}

static void test_live_space(void **state)
{
	struct env *env = env_live(NULL);
	struct env_space space = {0};
	struct statvfs st;

	(void)state;
	assert_int_equal(statvfs("/", &st), 0);
	assert_int_equal(env_space(env, ".", &space), 0);
	assert_int_equal(space.total, (int64_t)(st.f_blocks * st.f_frsize));
	assert_int_equal(space.inodes, (int64_t)st.f_files);
	assert_in_range(space.free, 1, space.total);
	assert_in_range(space.available, 0, space.free);
	assert_in_range(space.free_inodes, 0, space.inodes);
	/* A file system that holds nothing; a file is on one as well as a folder is. */
	assert_int_equal(env_space(env, "proc", &space), 0);
	assert_int_equal(space.total, 0);
	assert_int_equal(env_space(env, "proc/self/exe", &space), 0);
	assert_true(space.total > 0);
	assert_int_equal(env_space(env, "proc/no-such-file", &space), -ENOENT);
	env_free(env);
}

static void test_live_below_another_root(void **state)
{
	struct env *env = env_live(scratch);
	char target[20];

	(void)state;
	write_file(scratch_path("text"), "hello\n", 6);
	assert_non_null(env);
	assert_text(env, "text", "hello\n");
	assert_int_equal(env_open(env, "proc/self/stat"), -ENOENT);
	assert_non_null(strstr(listing(env, "."), "text"));
	assert_null(strstr(listing(env, "."), ".."));
	assert_int_equal(symlink("to there", scratch_path("link")), 0);
	assert_int_equal(env_readlink(env, "link", target, sizeof(target)), 8);
	assert_memory_equal(target, "to there", 8);
	assert_int_equal(env_readlink(env, "text", target, sizeof(target)), -EINVAL);
	env_free(env);
	assert_null(env_live("/no/such/root"));
	assert_null(env_live(scratch_path("text")));
}

/* A text of exactly what fits, and one byte more. */
static void test_slurp_knows_when_it_does_not_fit(void **state)
{
	struct env *env = env_live(scratch);
	char text[7];

	(void)state;
	write_file(scratch_path("text"), "123456", 6);
	assert_int_equal(env_slurp(env, "text", text, 7), 6);
	assert_string_equal(text, "123456");
	assert_int_equal(env_slurp(env, "text", text, 6), -EFBIG);
	assert_int_equal(strlen(text), 5);
	assert_int_equal(env_slurp(env, "text", text, 1), -EFBIG);
	assert_int_equal(env_slurp(env, "text", text, 0), -EINVAL);
	write_file(scratch_path("text"), "", 0);
	assert_int_equal(env_slurp(env, "text", text, 1), 0);
	assert_string_equal(text, "");
	env_free(env);
}

/* machines and films */

static void test_machine(void **state)
{
	struct env *env = film_of_text("# a comment\n"
				       "page_size 65536\nclock_tick 250\n\n"
				       "clock monotonic 5.25\nclock realtime 1000000000.000000001\n"
				       "variable A=b\\x20c\n"
				       "file a/b\n|one\\x00\\\\\\xff\n|\n:two\n:three\n"
				       "file a/b-c\n"
				       "file a/b/c\n"
				       "link a/l /to\\x20there\n"
				       "dir a/d\ndir a/e 12\n"
				       "error a/x open EACCES\n"
				       "file a/y\n|text\nerror a/y read EIO\n"
				       "error a/z list EPERM\nerror a/z readlink ENODATA\n"
				       "file stop\n");
	char text[100];
	int handle;

	(void)state;
	assert_false(env->live);
	assert_int_equal(env->page_size, 65536);
	assert_int_equal(env->clock_tick, 250);
	assert_int_equal(env_now(env, ENV_MONOTONIC), 5250000000);
	assert_int_equal(env_now(env, ENV_REALTIME), 1000000000000000001);
	assert_string_equal(env_getenv(env, "A"), "b c");
	assert_null(env_getenv(env, "B"));

	assert_int_equal(env_slurp(env, "a/b", text, sizeof(text)), 16);
	assert_memory_equal(text, "one\0\\\xff\n\ntwothree", 17);
	handle = env_open(env, "a/b");
	assert_int_equal(env_read_at(env, handle, text, 3, 8), 3);
	assert_memory_equal(text, "two", 3);
	assert_int_equal(env_read_at(env, handle, text, 3, 100), 0);
	assert_int_equal(env_read_at(env, handle, text, 3, -1), -EINVAL);
	env_close(env, handle);
	assert_int_equal(env_read(env, handle, text, 3), -EBADF);
	assert_int_equal(env_read(env, 99, text, 3), -EBADF);
	assert_text(env, "a/b-c", "");

	assert_string_equal(listing(env, "a"), "b b-c d e l x y z");
	assert_string_equal(listing(env, "."), "a stop(-125)");
	assert_string_equal(listing(env, "a/d"), "");
	assert_string_equal(listing(env, "a/z"), "(-1)");
	assert_string_equal(listing(env, "a/y"), "(-20)");
	assert_string_equal(listing(env, "b"), "(-2)");

	assert_int_equal(env_readlink(env, "a/l", text, 5), 5);
	assert_int_equal(env_readlink(env, "a/l", text, sizeof(text)), 9);
	assert_memory_equal(text, "/to there", 9);
	assert_int_equal(env_readlink(env, "a/b", text, sizeof(text)), -EINVAL);
	assert_int_equal(env_readlink(env, "a/q", text, sizeof(text)), -ENOENT);
	assert_int_equal(env_readlink(env, "a/z", text, sizeof(text)), -ENODATA);
	assert_int_equal(env_open(env, "a/l"), -ENOENT);
	assert_int_equal(env_open(env, "a/x"), -EACCES);
	assert_int_equal(env_open(env, "a/q"), -ENOENT);

	handle = env_open(env, "a/e");
	assert_int_equal(env_size(env, handle), 12);
	assert_int_equal(env_read(env, handle, text, 1), -EISDIR);
	handle = env_open(env, "a/y");
	assert_int_equal(env_read(env, handle, text, 1), -EIO);
	/* A machine is a film of one frame. */
	assert_int_equal(env_sleep_until(env, 6000000000), -ENODATA);
	assert_int_equal(env_now(env, ENV_MONOTONIC), 6000000000);
	assert_int_equal(env_now(env, ENV_REALTIME), 1000000000750000001);
	env_free(env);
}

static void test_film_of_reused_pids(void **state)
{
	struct env *env = film_of("films", "pid-reuse");
	const int64_t start = 1000 * NSEC_PER_SEC;
	int first, third, again, fds;
	char text[4000];

	(void)state;
	assert_int_equal(env_now(env, ENV_MONOTONIC), start);
	assert_string_equal(env_getenv(env, "ODD"), "two words");
	assert_string_equal(listing(env, "proc"), "42 50 77 loadavg");
	first = env_open(env, "proc/42/stat");
	third = env_open(env, "proc/77/stat");
	fds = env_open(env, "proc/50/fd");
	assert_true(env_read(env, first, text, sizeof(text)) > 0);
	assert_int_equal(env_size(env, fds), 7);
	assert_int_equal(env_open(env, "proc/42/io"), -EACCES);
	assert_int_equal(env_cpu_clock(env, 42), 150 * NSEC_PER_MSEC);
	assert_int_equal(env_cpu_clock(env, 50), 123456789);
	assert_int_equal(env_cpu_clock(env, 43), -ESRCH);
	assert_int_equal(env_cpu_clock(env, 0), -ESRCH);

	assert_int_equal(env_sleep_until(env, start + NSEC_PER_SEC - 1), 0);
	assert_int_equal(env_cpu_clock(env, 42), 150 * NSEC_PER_MSEC);
	assert_int_equal(env_sleep_until(env, start + NSEC_PER_SEC), 0);
	assert_int_equal(env_cpu_clock(env, 42), 250 * NSEC_PER_MSEC);
	assert_int_equal(env_cpu_clock(env, 50), 1123456789);
	assert_int_equal(env_size(env, fds), 9);

	assert_int_equal(env_sleep_until(env, start + 2 * NSEC_PER_SEC), 0);
	assert_int_equal(env_read(env, first, text, sizeof(text)), -ESRCH);
	assert_int_equal(env_open(env, "proc/42/stat"), -ENOENT);
	assert_int_equal(env_cpu_clock(env, 42), -ESRCH);
	assert_string_equal(listing(env, "proc"), "50 77 loadavg");
	assert_int_equal(env_now(env, ENV_REALTIME), 1800000002 * NSEC_PER_SEC);

	assert_int_equal(env_sleep_until(env, start + 4 * NSEC_PER_SEC), 0);
	assert_int_equal(env_read(env, first, text, sizeof(text)), -ESRCH);
	again = env_open(env, "proc/42/stat");
	assert_true(env_read(env, again, text, sizeof(text)) > 0);
	assert_memory_equal(text, "42 (second)", 11);
	assert_int_equal(env_cpu_clock(env, 42), 10 * NSEC_PER_MSEC);
	assert_int_equal(env_now(env, ENV_REALTIME), 1799996404 * NSEC_PER_SEC);
	assert_int_equal(env_now(env, ENV_BOOTTIME), 1004 * NSEC_PER_SEC);

	assert_int_equal(env_sleep_until(env, start + 9 * NSEC_PER_SEC / 2), 0);
	assert_int_equal(env_read(env, third, text, sizeof(text)), -ESRCH);
	assert_true(env_slurp(env, "proc/77/stat", text, sizeof(text)) > 0);
	assert_memory_equal(text, "77 (fourth)", 11);
	assert_int_equal(env_now(env, ENV_BOOTTIME), 1604500 * NSEC_PER_MSEC);

	/* The sleep that shows the last frame is good, the one after it is not. */
	assert_int_equal(env_sleep_until(env, start + 6 * NSEC_PER_SEC), 0);
	assert_int_equal(env_sleep_until(env, start + 7 * NSEC_PER_SEC), -ENODATA);
	env_free(env);
}

static void test_film_of_a_file_that_comes_and_goes(void **state)
{
	struct env *env = film_of_text("file sys/a/b\n|1\nfile sys/a/c\n"
				       "frame 1\nremove sys/a\n"
				       "frame 2\nfile sys/a/b\n|2\nerror sys/a/b open EACCES\n"
				       "frame 3\nfile sys/a/b\n|3\n");
	int folder = env_open(env, "sys/a"), file = env_open(env, "sys/a/b");
	int64_t start = env_now(env, ENV_MONOTONIC);
	char byte;

	(void)state;
	env_sleep_until(env, start + NSEC_PER_SEC);
	assert_int_equal(env_read(env, file, &byte, 1), -ENODEV);
	assert_int_equal(env_size(env, folder), -ENOENT);
	assert_int_equal(env_open(env, "sys"), -ENOENT);
	env_sleep_until(env, start + 2 * NSEC_PER_SEC);
	assert_int_equal(env_size(env, folder), -ENOENT);
	assert_int_equal(env_open(env, "sys/a/b"), -EACCES);
	env_sleep_until(env, start + 3 * NSEC_PER_SEC);
	assert_text(env, "sys/a/b", "3\n");
	env_free(env);
}

static void assert_space(struct env *env, const char *path, int64_t total, int64_t available)
{
	struct env_space space = {0};

	assert_int_equal(env_space(env, path, &space), 0);
	assert_int_equal(space.total, total);
	assert_int_equal(space.available, available);
}

static void test_film_of_file_systems(void **state)
{
	struct env *env = film_of_text("space . 100 50 40 10 5\nspace mnt/a 200 60 30 0 0\nfile mnt/b\n"
				       "frame 1\nspace mnt/a 200 7 6 0 0\nerror . space EIO\n"
				       "frame 2\nremove mnt/a\nspace . 100 49 39 10 4\n");
	struct env_space space = {0};

	(void)state;
	assert_space(env, ".", 100, 40);
	assert_space(env, "mnt/a", 200, 30);
	assert_int_equal(env_space(env, "mnt/b", &space), -EOPNOTSUPP);
	assert_int_equal(env_space(env, "mnt", &space), -EOPNOTSUPP);
	assert_int_equal(env_space(env, "mnt/c", &space), -ENOENT);
	assert_int_equal(space.total, 0);
	assert_string_equal(listing(env, "."), "mnt");
	assert_string_equal(listing(env, "mnt"), "a b");
	env_sleep_until(env, 101 * NSEC_PER_SEC);
	assert_space(env, "mnt/a", 200, 6);
	assert_int_equal(env_space(env, ".", &space), -EIO);
	env_sleep_until(env, 102 * NSEC_PER_SEC);
	assert_int_equal(env_space(env, "mnt/a", &space), -ENOENT);
	assert_int_equal(env_space(env, ".", &space), 0);
	assert_int_equal(space.free, 49);
	assert_int_equal(space.inodes, 10);
	assert_int_equal(space.free_inodes, 4);
	env_free(env);
}

static void test_bad_films_name_their_line(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
	} bad[] = {
		{"nonsense\n", 1},
		{"# ok\n\npage_size\n", 3},
		{"page_size 0\n", 1},
		{"page_size 4096 1\n", 1},
		{"clock_tick x\n", 1},
		{"file\n", 1},
		{"file /proc/stat\n", 1},
		{"file proc//stat\n", 1},
		{"file proc/../stat\n", 1},
		{"file proc/./stat\n", 1},
		{"file proc/stat/\n", 1},
		{"file proc/stat extra\n", 1},
		{"file a\\x00b\n", 1},
		{"file  a\n", 1},
		{"|text without file\n", 1},
		{"file a\n|ok\n|bad \\q\n", 3},
		{"file a\n|bad \\x4", 2},
		{"file a\n|bad \\", 2},
		{"file a\n|bad \\xg0\n", 2},
		{"link a\n", 1},
		{"dir a -1\n", 1},
		{"dir a x\n", 1},
		{"error a open\n", 1},
		{"error a open EWHAT\n", 1},
		{"error a close EIO\n", 1},
		{"cpu proc/x 5\n", 1},
		{"cpu proc/5/stat 5\n", 1},
		{"cpu proc/5 -5\n", 1},
		{"cpu 5 5\n", 1},
		{"space\n", 1},
		{"space a 1 2 3 4\n", 1},
		{"space a 1 2 3 4 -5\n", 1},
		{"space a 1 2 3 4 x\n", 1},
		{"space a 1 2 3 4 5 6\n", 1},
		{"space /a 1 2 3 4 5\n", 1},
		{"error . open EIO\n", 1},
		{"dir .\n", 1},
		{"variable A\n", 1},
		{"variable =a\n", 1},
		{"clock sidereal 5\n", 1},
		{"clock monotonic 5.1234567890\n", 1},
		{"clock monotonic 5.-5\n", 1},
		{"clock monotonic 99999999999999999999\n", 1},
		{"clock monotonic -1\n", 1},
		{"frame 0\n", 1},
		{"frame 1\nframe 1\n", 2},
		{"frame 2\nframe 1\n", 2},
		{"frame 1\nclock monotonic 7\n", 2},
		{"frame 1\npage_size 4096\n", 2},
		{"file a\nremove a\n", 2},
		{"file a\nframe 1\nremove b\n", 3},
		{"file a/b\nframe 1\nremove a\nframe 2\nremove a/b\nframe 3\n", 5},
	};
	struct env *env = NULL;
	unsigned line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		write_file(scratch_path("film"), bad[i].text, strlen(bad[i].text));
		line = 0;
		if (env_film(scratch_path("film"), &env, &line) != -EINVAL || line != bad[i].line)
			fail_msg("line %u instead of %u: %s", line, bad[i].line, bad[i].text);
	}
	write_file(scratch_path("film"), "page_size 4096\0\n", 16);
	assert_int_equal(env_film(scratch_path("film"), &env, &line), -EINVAL);
	assert_int_equal(env_film(scratch_path("none"), &env, &line), -ENOENT);
	assert_int_equal(line, 0);
	assert_null(env);
}

/* capture */

static void put(struct buf *log, const char *what, int64_t value)
{
	buf_addf(log, "%s %lld\n", what, (long long)value);
}

static void put_space(struct buf *log, struct env *env, const char *path)
{
	struct env_space space = {0};

	put(log, path, env_space(env, path, &space));
	put(log, "total", space.total);
	put(log, "free", space.free);
	put(log, "available", space.available);
	put(log, "inodes", space.inodes);
	put(log, "free inodes", space.free_inodes);
}

/* Asks an env all there is to ask about the film of reused pids, and writes down the answers. */
static void interview(struct env *env, struct buf *log)
{
	static const char *const path[] = {"proc/42/stat", "proc/42/io", "proc/50/stat", "proc/77/stat",
		"proc/none", "proc/loadavg", "proc/42/cmdline"};
	int64_t start = env_now(env, ENV_MONOTONIC);
	int kept[ARRAY_SIZE(path)], r = 0;
	char text[4000];

	for (size_t i = 0; i < ARRAY_SIZE(path); i++)
		kept[i] = env_open(env, path[i]);
	for (int tick = 1; !r && tick < 50; tick++) {
		int folder = env_open(env, "proc/50/fd");

		put(log, "fds", env_size(env, folder));
		put(log, "folder", env_read(env, folder, text, 1));
		env_close(env, folder);
		buf_addf(log, "%s\n", listing(env, "proc"));
		for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
			ssize_t n = kept[i] < 0 ? kept[i] : env_read(env, kept[i], text, sizeof(text));
			int handle = env_open(env, path[i]);

			put(log, path[i], n);
			buf_add(log, text, n > 0 ? (size_t)n : 0);
			put(log, "opened", MIN(handle, 0));
			n = env_read_all(env, handle, text, sizeof(text));
			buf_add(log, text, n > 0 ? (size_t)n : 0);
			if (kept[i] < 0)
				kept[i] = handle;
			else
				env_close(env, handle);
		}
		put(log, "link", env_readlink(env, "proc/42/exe", text, sizeof(text)));
		put_space(log, env, ".");
		put_space(log, env, "scratch");
		put_space(log, env, "proc");
		put_space(log, env, "proc/50/fd");
		put(log, "cpu 42", env_cpu_clock(env, 42));
		put(log, "cpu 50", env_cpu_clock(env, 50));
		put(log, "cpu 99", env_cpu_clock(env, 99));
		put(log, "variable", env_getenv(env, "ODD") != NULL);
		for (int clock = 0; clock < NR_ENV_CLOCKS; clock++)
			put(log, "clock", env_now(env, clock));
		r = env_sleep_until(env, start + tick * NSEC_PER_SEC / 2);
	}
	put(log, "end", r);
}

static void test_the_play_of_a_capture_answers_as_the_capture_did(void **state)
{
	struct buf log[3];
	struct env *env = NULL;
	unsigned line;

	(void)state;
	for (int i = 0; i < 3; i++) {
		buf_init(&log[i], 1 << 20);
		if (i == 0)
			env = film_of("films", "pid-reuse");
		else if (i == 1)
			env = env_capture(film_of("films", "pid-reuse"), scratch_path("capture"));
		else
			assert_int_equal(env_film(scratch_path("capture"), &env, &line), 0);
		assert_non_null(env);
		interview(env, &log[i]);
		env_free(env);
	}
	for (int i = 1; i < 3; i++) {
		assert_int_equal(log[i].len, log[0].len);
		assert_memory_equal(log[i].data, log[0].data, log[0].len);
	}
	assert_non_null(memmem(log[0].data, log[0].len, "(second)", 8));
	assert_non_null(memmem(log[0].data, log[0].len, "end -61", 7));
	assert_non_null(memmem(log[0].data, log[0].len, "scratch -5\n", 11));
	assert_non_null(memmem(log[0].data, log[0].len, "scratch -2\n", 11));
	assert_non_null(memmem(log[0].data, log[0].len, "available 600\n", 14));
	assert_non_null(memmem(log[0].data, log[0].len, "free 499\n", 9));
	for (int i = 0; i < 3; i++)
		buf_release(&log[i]);
}

/* Within a frame the world stands still, whatever the kernel does. */
static void test_capture_of_the_live_kernel(void **state)
{
	struct env *env = env_capture(env_live(NULL), scratch_path("capture"));
	int64_t start, cpu, later, wall;
	char stat[4096], text[4096];
	int kept, handle;
	unsigned line;

	(void)state;
	assert_non_null(env);
	assert_false(env->live);
	start = env_now(env, ENV_MONOTONIC);
	kept = env_open(env, "proc/self/stat");
	handle = env_open(env, "proc/self/stat");
	cpu = env_cpu_clock(env, getpid());
	assert_true(env_read_all(env, kept, stat, sizeof(stat)) > 0);
	while (clock() < 30000)
		;
	assert_int_equal(env_cpu_clock(env, getpid()), cpu);
	assert_int_equal(env_now(env, ENV_MONOTONIC), start);
	assert_true(env_read_all(env, handle, text, sizeof(text)) > 0);
	assert_string_equal(text, stat);
	assert_int_equal(env_sleep_until(env, start + NSEC_PER_MSEC), 0);
	later = env_cpu_clock(env, getpid());
	wall = env_now(env, ENV_REALTIME);
	assert_true(later > cpu);
	assert_true(env_read_all(env, kept, text, sizeof(text)) > 0);
	env_free(env);

	assert_int_equal(env_film(scratch_path("capture"), &env, &line), 0);
	assert_int_equal(env->page_size, sysconf(_SC_PAGESIZE));
	assert_int_equal(env_cpu_clock(env, getpid()), cpu);
	assert_text(env, "proc/self/stat", stat);
	assert_int_equal(env_now(env, ENV_MONOTONIC), start);
	assert_int_equal(env_sleep_until(env, start + NSEC_PER_MSEC), 0);
	assert_int_equal(env_cpu_clock(env, getpid()), later);
	assert_int_equal(env_now(env, ENV_REALTIME), wall);
	assert_text(env, "proc/self/stat", text);
	assert_int_equal(env_sleep_until(env, start + 2 * NSEC_PER_MSEC), -ENODATA);
	env_free(env);
}

static void test_capture_that_cannot_be_written(void **state)
{
	struct env *env;
	char text[100];

	(void)state;
	assert_null(env_capture(env_live(NULL), "/no/such/folder/capture"));
	assert_null(env_capture(NULL, scratch_path("capture")));
	/* A full disk: what was asked is answered all the same. */
	env = env_capture(film_of_text("file a\n|1\n"), "/dev/full");
	assert_non_null(env);
	assert_int_equal(env_slurp(env, "a", text, sizeof(text)), 2);
	env_free(env);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

/* failing */

static void test_failing_counts_calls(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 10; n++) {
		struct env *env = env_failing(film_of("films", "pid-reuse"), n, -EIO);
		struct env_space space;
		char text[100];
		int64_t r[7], handle;
		int failures = 0;

		handle = r[0] = env_open(env, "proc/50/stat");
		if (handle < 0)
			handle = env_open(env, "proc/50/stat"); /* only one call fails */
		r[1] = env_read(env, (int)handle, text, sizeof(text));
		r[2] = env_size(env, (int)handle);
		r[3] = env_list(env, "proc/50", join_names, &(struct buf){0});
		r[4] = env_readlink(env, "proc/42/exe", text, sizeof(text));
		r[5] = env_cpu_clock(env, 50);
		r[6] = env_space(env, "scratch", &space);
		for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
			failures += r[i] == -EIO;
			assert_true(r[i] >= 0 || i + 1 == n);
		}
		assert_int_equal(failures, n <= 7);
		assert_int_equal(env_now(env, ENV_MONOTONIC), 1000 * NSEC_PER_SEC);
		assert_non_null(env_getenv(env, "ODD"));
		assert_int_equal(env_sleep_until(env, 1001 * NSEC_PER_SEC), 0);
		env_close(env, (int)handle);
		env_free(env);
	}
	assert_null(env_failing(NULL, 1, -EIO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_reads_the_kernel),
		cmocka_unit_test(test_live_clocks),
		cmocka_unit_test(test_live_space),
		cmocka_unit_test(test_live_below_another_root),
		cmocka_unit_test(test_slurp_knows_when_it_does_not_fit),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_film_of_reused_pids),
		cmocka_unit_test(test_film_of_a_file_that_comes_and_goes),
		cmocka_unit_test(test_film_of_file_systems),
		cmocka_unit_test(test_bad_films_name_their_line),
		cmocka_unit_test(test_the_play_of_a_capture_answers_as_the_capture_did),
		cmocka_unit_test(test_capture_of_the_live_kernel),
		cmocka_unit_test(test_capture_that_cannot_be_written),
		cmocka_unit_test(test_failing_counts_calls),
	};

	return cmocka_run_group_tests(tests, make_scratch, drop_scratch);
}
