/* Counters that are not the kernel's: those of films, of captures and of the env that fails. */
#include "film_text.h"
#include "perf_lab.h"

enum { USER = 1, KERNEL, BOTH };

static struct perf_event_attr attr_of(uint32_t type, uint64_t config, int mode)
{
	return (struct perf_event_attr){.type = type,
		.config = config,
		.exclude_kernel = mode == USER,
		.exclude_user = mode == KERNEL};
}

static int try_open(struct env *env, uint32_t type, uint64_t config, int mode, pid_t pid, int cpu)
{
	struct perf_event_attr attr = attr_of(type, config, mode);

	return env_counter_open(env, &attr, pid, cpu);
}

/* What an opened counter holds; the error when it cannot be opened or read. */
static int64_t look(struct env *env, uint32_t type, uint64_t config, int mode, pid_t pid, int cpu)
{
	int handle = try_open(env, type, config, mode, pid, cpu);
	struct env_count count;
	int r;

	if (handle < 0)
		return handle;
	r = env_counter_read(env, handle, &count);
	env_close(env, handle);
	return r < 0 ? r : (int64_t)count.value;
}

static const char pmu_film[] = "file proc/loadavg\n|0.1\n"
			       "counter 0 0 * * 1 10 10\n"
			       "counter 0 0x0 42 * 2 10 5\n"
			       "counter 0 0 42 3 3 10 10\n"
			       "counter 0:u 0 * * 4 10 10\n"
			       "counter 4 0x1c7 * -1 5 10 10\n"
			       "counter 4 0x1b7:0x10001 * -1 6 10 10\n"
			       "counter 4 0x1b7:0:0x7 * -1 7 10 10\n"
			       "counter 12 * -1 0 8 10 10\n"
			       "counter_error 12 * -1 4 EACCES\n"
			       "counter_error 13 * * * EMFILE\n"
			       "counter 14 * * * 18446744073709551615 10 10\n"
			       "frame 1\n"
			       "counter 0 0 * * 11 20 20\n"
			       "counter_error 0 0 42 * ENODEV\n"
			       "counter 13 * * * 13 1 1\n"
			       "frame 2\n"
			       "counter 0 0 42 * 22 30 20\n";

static void test_the_most_exact_line_answers(void **state)
{
	struct env *env = film_text(pmu_film);

	(void)state;
	assert_int_equal(look(env, 0, 0, BOTH, 1, -1), 1);
	assert_int_equal(look(env, 0, 0, KERNEL, 1, -1), 1);
	assert_int_equal(look(env, 0, 0, BOTH, 42, -1), 2);
	assert_int_equal(look(env, 0, 0, BOTH, 42, 3), 3);
	assert_int_equal(look(env, 0, 0, USER, 42, 3), 4);
	assert_int_equal(look(env, 0, 1, BOTH, 1, -1), -ENOENT);
	assert_int_equal(look(env, 4, 0x1c7, BOTH, 1, -1), 5);
	assert_int_equal(look(env, 4, 0x1c7, BOTH, 1, 0), -ENOENT);
	assert_int_equal(look(env, 4, 0x1b7, BOTH, 1, -1), -ENOENT); /* the second word is another */
	assert_int_equal(look(env, 12, 0xabc, BOTH, -1, 0), 8);
	assert_int_equal(look(env, 12, 0xabc, BOTH, -1, 4), -EACCES);
	assert_int_equal(look(env, 13, 1, BOTH, 1, -1), -EMFILE);
	env_free(env);
}

static void test_other_words_of_config(void **state)
{
	struct env *env = film_text(pmu_film);
	struct perf_event_attr attr = attr_of(4, 0x1b7, BOTH);
	struct env_count count;
	int handle;

	(void)state;
	attr.config1 = 0x10001;
	handle = env_counter_open(env, &attr, 1, -1);
	assert_int_equal(env_counter_read(env, handle, &count), 0);
	assert_int_equal(count.value, 6);
	attr.config1 = 0;
	attr.config2 = 7;
	handle = env_counter_open(env, &attr, 1, -1);
	assert_int_equal(env_counter_read(env, handle, &count), 0);
	assert_int_equal(count.value, 7);
	handle = try_open(env, 14, 9, BOTH, 1, 1);
	assert_int_equal(env_counter_read(env, handle, &count), 0);
	assert_true(count.value == UINT64_MAX);
	env_free(env);
}

/* A machine whose kernel counts user mode alone, whatever the event. */
static void test_one_line_refuses_a_mode_for_all(void **state)
{
	struct env *env = film_text("counter 0 0 * * 1 1 1\ncounter 1 1 5 -1 2 1 1\n"
				    "counter_error *:uk * * * EACCES\ncounter_error *:k * * * EPERM\n");

	(void)state;
	assert_int_equal(look(env, 0, 0, BOTH, 5, -1), -EACCES);
	assert_int_equal(look(env, 1, 1, KERNEL, 5, -1), -EPERM);
	assert_int_equal(look(env, 0, 0, USER, 5, -1), 1);
	assert_int_equal(look(env, 1, 1, USER, 5, -1), 2);
	assert_int_equal(look(env, 1, 1, USER, 6, -1), -ENOENT);
	env_free(env);
}

static void test_counters_change_by_frame(void **state)
{
	struct env *env = film_text(pmu_film);
	struct env_count count = {0};
	int any = try_open(env, 0, 0, BOTH, 1, -1), one = try_open(env, 0, 0, BOTH, 42, -1);

	(void)state;
	assert_true(any >= 0 && one >= 0 && any != one);
	assert_int_equal(env_counter_read(env, one, &count), 0);
	assert_int_equal(count.value, 2);
	assert_int_equal(count.enabled_ns, 10);
	assert_int_equal(count.running_ns, 5);
	assert_int_equal(env_sleep_until(env, 101 * NSEC_PER_SEC), 0);
	assert_int_equal(env_counter_read(env, any, &count), 0);
	assert_int_equal(count.value, 11);
	assert_int_equal(env_counter_read(env, one, &count), -ENODEV);
	assert_int_equal(look(env, 13, 1, BOTH, 1, -1), 13);
	assert_int_equal(env_sleep_until(env, 102 * NSEC_PER_SEC), 0);
	assert_int_equal(env_counter_read(env, one, &count), 0);
	assert_int_equal(count.value, 22);
	assert_int_equal(count.running_ns, 20);
	env_free(env);
}

/* Files and counters have one space of handles, in a film and in its capture. */
static void files_and_counters(struct env *env)
{
	struct env_count count = {0};
	int counter = try_open(env, 0, 0, BOTH, 1, -1), file = env_open(env, "proc/loadavg");
	int again;
	char text[8];

	assert_true(counter >= 0 && file >= 0 && counter != file);
	assert_int_equal(env_read(env, file, text, sizeof(text)), 4);
	assert_int_equal(env_counter_read(env, counter, &count), 0);
	assert_int_equal(count.value, 1);
	assert_int_equal(env_counter_read(env, file, &count), -EBADF);
	assert_int_equal(env_read(env, counter, text, sizeof(text)), -EBADF);
	assert_int_equal(env_size(env, counter), -EBADF);
	assert_int_equal(env_counter_read(env, -1, &count), -EBADF);
	assert_int_equal(env_counter_read(env, 1000, &count), -EBADF);
	env_close(env, counter);
	assert_int_equal(env_counter_read(env, counter, &count), -EBADF);
	assert_int_equal(env_read(env, file, text, sizeof(text)), 4);
	again = env_open(env, "proc/loadavg");
	assert_int_equal(again, counter);
	env_close(env, again);
	env_close(env, again); /* nobody's any more */
	env_free(env);
}

static void test_handles_are_shared_with_files(void **state)
{
	(void)state;
	files_and_counters(film_text(pmu_film));
	files_and_counters(env_capture(film_text(pmu_film), "/dev/null"));
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {"counter\n", "counter 0\n", "counter 0 0 1 -1 1 1\n",
		"counter 0 0 1 -1 1 1 1 1\n", "counter x 0 1 -1 1 1 1\n", "counter 0 0x 1 -1 1 1 1\n",
		"counter 0 0x-1 1 -1 1 1 1\n", "counter 0 1:2:3:4 1 -1 1 1 1\n", "counter 0 1: 1 -1 1 1 1\n",
		"counter 0 0x10000000000000000 1 -1 1 1 1\n", "counter 4294967296 0 1 -1 1 1 1\n",
		"counter 0: 0 1 -1 1 1 1\n", "counter 0:q 0 1 -1 1 1 1\n", "counter 0 0 -2 -1 1 1 1\n",
		"counter 0 0 1 -2 1 1 1\n", "counter 0 0 1 -1 -1 1 1\n", "counter 0 * * * 1 1 0x1\n",
		"counter_error 0 0 1 -1\n", "counter_error 0 0 1 -1 EWHAT\n",
		"counter_error 0 0 1 -1 EIO 1\n", "counter 0 0 1 -1 18446744073709551616 1 1\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int fd = memfd_create("film", MFD_CLOEXEC);
		struct env *env = NULL;
		unsigned line = 0;
		char path[40];

		assert_int_equal(write(fd, bad[i], strlen(bad[i])), strlen(bad[i]));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (env_film(path, &env, &line) != -EINVAL || line != 1)
			fail_msg("taken: %s", bad[i]);
		close(fd);
	}
}

/* All that the film can be asked for, in each of its frames. */
static void ask_all(struct env *env, int64_t *answer)
{
	int held = try_open(env, 0, 0, BOTH, 7, -1);

	for (int frame = 1; frame <= 4; frame++) {
		struct env_count count = {0};

		for (uint32_t type = 0; type < 16; type++)
			for (int mode = USER; mode <= BOTH; mode++)
				*answer++ = look(env, type, type == 4 ? 0x1c7 : 0, mode, type == 12 ? -1 : 42,
					type == 12 ? 4 : -1);
		*answer++ = env_counter_read(env, held, &count);
		*answer++ = (int64_t)count.value;
		*answer++ = (int64_t)count.running_ns;
		*answer++ = env_sleep_until(env, (100 + frame) * NSEC_PER_SEC);
	}
	env_free(env);
}

static void test_the_play_of_a_capture_counts_as_the_capture_did(void **state)
{
	enum { ANSWERS = 4 * (16 * 3 + 4) };
	char path[] = "/tmp/tacho-capture-XXXXXX";
	int fd = mkstemp(path);
	int64_t film[ANSWERS] = {0}, capture[ANSWERS] = {0}, play[ANSWERS] = {0};
	struct env *env = NULL;
	unsigned line;

	(void)state;
	ask_all(film_text(pmu_film), film);
	ask_all(env_capture(film_text(pmu_film), path), capture);
	assert_int_equal(env_film(path, &env, &line), 0);
	ask_all(env, play);
	assert_memory_equal(film, capture, sizeof(film));
	assert_memory_equal(film, play, sizeof(film));
	unlink(path);
	close(fd);
}

static void burn(void)
{
	for (volatile int i = 0; i < 3000000; i++)
		;
}

/* The kernel's own counter through a capture: what was read is what the play shows. */
static void test_capture_of_a_live_counter(void **state)
{
	struct env *env;
	struct env_count live[2], again[2];
	char path[] = "/tmp/tacho-capture-XXXXXX";
	int fd = mkstemp(path), handle;
	unsigned line;

	(void)state;
	env = env_capture(env_live(NULL), path);
	assert_non_null(env);
	handle = try_open(env, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, USER, 0, -1);
	if (handle < 0) {
		env_free(env);
		unlink(path);
		close(fd);
		printf("the kernel refuses a counter of our own task\n");
		skip();
	}
	burn();
	assert_int_equal(env_counter_read(env, handle, &live[0]), 0);
	assert_true(live[0].value > 0);
	burn();
	/* The world stands still until the next sleep. */
	assert_int_equal(env_counter_read(env, handle, &live[1]), 0);
	assert_memory_equal(&live[0], &live[1], sizeof(live[0]));
	assert_int_equal(env_sleep_until(env, env_now(env, ENV_MONOTONIC) + NSEC_PER_MSEC), 0);
	assert_int_equal(env_counter_read(env, handle, &live[1]), 0);
	assert_true(live[1].value > live[0].value);
	env_free(env);

	assert_int_equal(env_film(path, &env, &line), 0);
	handle = try_open(env, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, USER, 0, -1);
	assert_true(handle >= 0);
	assert_int_equal(env_counter_read(env, handle, &again[0]), 0);
	env_sleep_until(env, env_now(env, ENV_MONOTONIC) + NSEC_PER_MSEC);
	assert_int_equal(env_counter_read(env, handle, &again[1]), 0);
	assert_memory_equal(live, again, sizeof(live));
	env_free(env);
	unlink(path);
	close(fd);
}

static void test_failing_counts_them(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 3; nth++) {
		struct env *env = env_failing(film_text(pmu_film), nth, -EINTR);
		struct env_count count = {0};
		int handle = try_open(env, 0, 0, BOTH, 1, -1);

		assert_int_equal(MIN(handle, 0), nth == 1 ? -EINTR : 0);
		if (handle >= 0) {
			assert_int_equal(env_counter_read(env, handle, &count), nth == 2 ? -EINTR : 0);
			assert_int_equal(env_counter_read(env, handle, &count), nth == 3 ? -EINTR : 0);
		}
		env_free(env);
	}
}

static void test_the_lab_sees_what_is_asked_for(void **state)
{
	struct perf_lab *lab = perf_lab(film_text(pmu_film));
	int handle = try_open(&lab->env, 4, 0x1c7, USER, 9, -1);

	(void)state;
	assert_int_equal(try_open(&lab->env, 4, 0x1c8, BOTH, 9, -1), -ENOENT);
	assert_int_equal(lab->nr_asked, 2);
	assert_int_equal(lab->asked[0].attr.config, 0x1c7);
	assert_int_equal(lab->asked[0].attr.exclude_kernel, 1);
	assert_int_equal(lab->asked[0].pid, 9);
	assert_int_equal(lab->asked[1].handle, -ENOENT);
	assert_int_equal(lab->nr_open, 1);
	env_close(&lab->env, handle);
	assert_int_equal(lab->nr_open, 0);
	env_free(&lab->env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_most_exact_line_answers),
		cmocka_unit_test(test_other_words_of_config),
		cmocka_unit_test(test_one_line_refuses_a_mode_for_all),
		cmocka_unit_test(test_counters_change_by_frame),
		cmocka_unit_test(test_handles_are_shared_with_files),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_the_play_of_a_capture_counts_as_the_capture_did),
		cmocka_unit_test(test_capture_of_a_live_counter),
		cmocka_unit_test(test_failing_counts_them),
		cmocka_unit_test(test_the_lab_sees_what_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
