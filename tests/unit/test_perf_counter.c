/* One counter: how it is opened, what is made of its readings, and what a refusal means. */
#include "film_text.h"
#include "perf_lab.h"

#include "perf/counter.h"

static const struct perf_event cycles = {.type = PERF_TYPE_HARDWARE, .scale = 1, .pmu = "cpu"};

static void turn_film(struct env *env, int second)
{
	assert_int_equal(env_sleep_until(env, second * NSEC_PER_SEC), 0);
}

static void open_it(struct env *env, struct counter *c)
{
	bool user_only = true;

	assert_int_equal(counter_open(env, &cycles, 42, -1, INHERIT_ALL, false, c, &user_only), 0);
	assert_false(user_only);
}

/* Each frame's reading and what must have been counted then; times in ns. */
static const struct {
	const char *reading;
	uint64_t value, enabled, running;
} turns[] = {
	{"1000 2000 1000", 2000, 2000, 1000}, /* half of the time */
	{"1500 3000 2000", 2500, 3000, 2000}, /* all of it: as it is, whatever was before */
	{"1500 4000 2000", 2500, 4000, 2000}, /* no turn: it waits */
	{"1800 5000 2500", 3700, 5000, 2500}, /* 300 in 500 of the 2000 since */
	{"100 6000 2600", 3700, 5000, 2500},  /* less than there was: not believed */
	{"2000 7000 4500", 3900, 7000, 4500}, /* and back again */
	{"2001 7003 4502", 3902, 7003, 4502}, /* 1 in 2 of 3 is 1.5 */
	{"2001 7003 4502", 3902, 7003, 4502}, /* nothing happened */
	{"2007 7003 4502", 3908, 7003, 4502}, /* counted, though no time has passed */
};

static void test_scaling_by_the_gain_alone(void **state)
{
	struct buf film;
	struct counter c;
	struct env *env;

	(void)state;
	buf_init(&film, 8192);
	buf_adds(&film, "clock monotonic 0\n");
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		if (i)
			buf_addf(&film, "frame %zu\n", i);
		buf_addf(&film, "counter 0 0 42 -1 %s\n", turns[i].reading);
	}
	buf_adds(&film, "frame 99\n");
	env = film_buf(&film);
	open_it(env, &c);
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		turn_film(env, (int)i);
		assert_int_equal(counter_read(env, &c), 0);
		if (c.count.value != turns[i].value || c.count.enabled_ns != turns[i].enabled ||
			c.count.running_ns != turns[i].running)
			fail_msg("reading %zu: %llu", i, (unsigned long long)c.count.value);
	}
	counter_close(env, &c);
	assert_int_equal(counter_read(env, &c), -EBADF);
	env_free(env);
}

static void test_numbers_beyond_all_bounds(void **state)
{
	struct env *env = film_text("clock monotonic 0\n"
				    "counter 0 0 42 -1 9000000000000000000 9000000000000000000 1\n"
				    "frame 1\n"
				    "counter 0 0 42 -1 18446744073709551615 18446744073709551615 2\n"
				    "frame 9\n");
	struct counter c;

	(void)state;
	open_it(env, &c);
	for (int i = 0; i < 2; i++) {
		turn_film(env, i);
		assert_int_equal(counter_read(env, &c), 0);
		assert_int_equal(c.count.value, INT64_MAX); /* a cell has no room for more */
	}
	counter_close(env, &c);
	env_free(env);
}

static void test_a_reading_that_fails(void **state)
{
	struct env *env = film_text("clock monotonic 0\ncounter 0 0 42 -1 10 10 10\n"
				    "frame 1\ncounter_error 0 0 42 -1 EIO\n"
				    "frame 2\ncounter 0 0 42 -1 15 20 20\nframe 9\n");
	static const int result[] = {0, -EIO, 0};
	static const uint64_t value[] = {10, 10, 15};
	struct counter c;

	(void)state;
	open_it(env, &c);
	for (int i = 0; i < 3; i++) {
		turn_film(env, i);
		assert_int_equal(counter_read(env, &c), result[i]);
		assert_int_equal(c.count.value, value[i]);
	}
	counter_close(env, &c);
	env_free(env);
}

static void test_whom_it_goes_on_to(void **state)
{
	static const struct {
		enum counter_inherit inherit;
		bool exec;
		unsigned attr; /* inherit, inherit_thread, disabled, enable_on_exec */
	} want[] = {
		{INHERIT_NONE, false, 00},
		{INHERIT_ALL, false, 01},
		{INHERIT_ALL, true, 015},
		{INHERIT_THREADS, false, 03},
		{INHERIT_THREADS, true, 017},
	};
	struct perf_lab *lab = perf_lab(film_text("counter 0 * * * 1 1 1\n"));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct perf_event_attr *a = &lab->asked[i].attr;
		struct counter c;
		bool user_only;

		assert_int_equal(
			counter_open(&lab->env, &cycles, 7, 3, want[i].inherit, want[i].exec, &c, &user_only),
			0);
		assert_int_equal(
			a->inherit | a->inherit_thread << 1 | a->disabled << 2 | a->enable_on_exec << 3,
			want[i].attr);
		assert_int_equal(lab->asked[i].pid, 7);
		assert_int_equal(lab->asked[i].cpu, 3);
		assert_false(a->exclude_kernel || a->exclude_user || a->exclude_hv);
		counter_close(&lab->env, &c);
	}
	assert_int_equal(lab->nr_open, 0);
	env_free(&lab->env);
}

/* Users may count their own code alone: the kernel says EACCES, older ones EPERM. */
static void test_user_mode_alone(void **state)
{
	const struct perf_event switches = {.type = PERF_TYPE_SOFTWARE, .config = 3, .in_kernel = true};
	const struct perf_event of_kernel = {.type = PERF_TYPE_HARDWARE, .exclude_user = true};
	const struct perf_event of_user = {.type = PERF_TYPE_HARDWARE, .exclude_kernel = true};
	const struct perf_event of_node = {.type = PERF_TYPE_HARDWARE, .of_package = true};
	struct perf_event switches_of_user = switches;
	static const char *const refusal[] = {"EACCES", "EPERM"};

	(void)state;
	switches_of_user.exclude_kernel = true;
	for (size_t i = 0; i < ARRAY_SIZE(refusal); i++) {
		struct perf_lab *lab;
		struct counter c;
		struct buf film;
		bool user_only = false;
		int error = i ? -EPERM : -EACCES;

		buf_init(&film, 1024);
		buf_addf(&film, "counter 0 * * * 1 1 1\ncounter 1 * * * 1 1 1\n");
		buf_addf(&film, "counter_error *:uk * * * %s\ncounter_error *:k * * * %s\n", refusal[i],
			refusal[i]);
		lab = perf_lab(film_buf(&film));
		assert_int_equal(
			counter_open(&lab->env, &cycles, 7, -1, INHERIT_ALL, true, &c, &user_only), 0);
		assert_true(user_only);
		assert_int_equal(lab->nr_asked, 2);
		assert_true(lab->asked[1].attr.exclude_kernel && lab->asked[1].attr.exclude_hv &&
			lab->asked[1].attr.inherit && lab->asked[1].attr.enable_on_exec);
		counter_close(&lab->env, &c);
		/* What would always be 0, or is not what was asked for, is not counted. */
		assert_int_equal(
			counter_open(&lab->env, &switches, 7, -1, INHERIT_ALL, false, &c, &user_only), error);
		assert_int_equal(
			counter_open(&lab->env, &of_kernel, 7, -1, INHERIT_ALL, false, &c, &user_only),
			error);
		assert_int_equal(
			counter_open(&lab->env, &of_node, -1, 0, INHERIT_NONE, false, &c, &user_only), error);
		assert_int_equal(lab->nr_asked, 5);
		assert_int_equal(
			counter_open(&lab->env, &switches_of_user, 7, -1, INHERIT_ALL, false, &c, &user_only),
			-EACCES);
		assert_int_equal(lab->nr_asked, 5);
		assert_int_equal(
			counter_open(&lab->env, &of_user, 7, -1, INHERIT_ALL, false, &c, &user_only), 0);
		assert_true(user_only);
		assert_int_equal(c.handle >= 0, 1);
		counter_close(&lab->env, &c);
		assert_int_equal(lab->nr_open, 0);
		env_free(&lab->env);
	}
}

static void test_a_refusal_closes_nothing(void **state)
{
	struct env *env = film_text("counter_error 0 * * * EMFILE\n");
	struct counter c = {.handle = 17};
	bool user_only;

	(void)state;
	assert_int_equal(counter_open(env, &cycles, 7, -1, INHERIT_NONE, false, &c, &user_only), -EMFILE);
	assert_int_equal(c.handle, -1);
	counter_close(env, &c);
	env_free(env);
}

static void assert_told(const struct perf_event *e, int error, const char *reason, const char *remedy)
{
	const char *why = NULL, *what = "?";

	counter_trouble(e, error, &why, &what);
	assert_non_null(why);
	if (!strstr(why, reason))
		fail_msg("%d: '%s' instead of '%s'", error, why, reason);
	if (remedy && (!what || !strstr(what, remedy)))
		fail_msg("%d: '%s' instead of '%s'", error, what ? what : "no remedy", remedy);
	if (!remedy)
		assert_null(what);
}

static void test_what_a_refusal_means(void **state)
{
	const struct perf_event software = {.type = PERF_TYPE_SOFTWARE};
	const struct perf_event inside = {.type = PERF_TYPE_SOFTWARE, .in_kernel = true};
	const struct perf_event node = {.type = 12, .of_package = true};

	(void)state;
	assert_told(&cycles, -EACCES, "does not let us count", "perf_event_paranoid=2");
	assert_told(&cycles, EPERM, "does not let us count",
		"sudo sysctl kernel.perf_event_paranoid=2"); /* whatever the sign */
	assert_told(&inside, -EACCES, "happens in the kernel", "perf_event_paranoid=1");
	assert_told(&node, -EACCES, "whole node", "perf_event_paranoid=0");
	assert_told(&cycles, -ENOENT, "virtual machine", "virtual PMU");
	assert_told(&software, -ENOENT, "no such event", NULL);
	assert_told(&cycles, -EMFILE, "descriptors", "ulimit -n");
	assert_told(&cycles, -EBUSY, "another program", "nmi_watchdog");
	assert_told(&cycles, -EOPNOTSUPP, "cannot count this", NULL);
	assert_told(&cycles, -ENODEV, "cannot count this", NULL);
	assert_told(&cycles, -EINVAL, "does not take this event", NULL);
	assert_told(&cycles, -ENOSYS, "no performance counters", NULL);
	assert_told(&cycles, -EIO, "Input/output error", NULL);
	assert_told(&cycles, -77777, "unknown error", NULL);
}

static void test_cpus_of_a_package_event(void **state)
{
	struct env *env = film_text("file sys/bus/event_source/devices/uncore_imc_0/cpumask\n|0,4-5\n"
				    "file sys/bus/event_source/devices/uncore_imc_1/cpumask\n|\n");
	struct perf_event e = {.type = 12, .of_package = true, .pmu = "uncore_imc_0"};
	struct cpu_bits cpus;

	(void)state;
	assert_int_equal(counter_cpus(env, &e, &cpus), 0);
	assert_int_equal(cpu_bits_count(&cpus), 3);
	assert_int_equal(cpu_bits_next(&cpus, 1), 4);
	memcpy(e.pmu, "uncore_imc_1", 13);
	assert_int_equal(counter_cpus(env, &e, &cpus), -ENODEV);
	memcpy(e.pmu, "uncore_imc_2", 13);
	assert_int_equal(counter_cpus(env, &e, &cpus), -ENODEV);
	env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scaling_by_the_gain_alone),
		cmocka_unit_test(test_numbers_beyond_all_bounds),
		cmocka_unit_test(test_a_reading_that_fails),
		cmocka_unit_test(test_whom_it_goes_on_to),
		cmocka_unit_test(test_user_mode_alone),
		cmocka_unit_test(test_a_refusal_closes_nothing),
		cmocka_unit_test(test_what_a_refusal_means),
		cmocka_unit_test(test_cpus_of_a_package_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
