/* Intel GPUs of i915 and xe: files of old and new kernels, and how busy the device is where it may be
 * counted. */
#include "maker_lab.h"

static struct maker_lab lab;

static void test_on_the_die_and_discrete(void **state)
{
	(void)state;
	maker_open(&lab, "intel", film_of("machines", "gpu-intel"), NULL);
	assert_int_equal(lab.reading.nr_devices, 2);
	assert_string_equal(device_of(&lab, "intel-0")->pci, "0000:00:02.0");
	assert_string_equal(device_of(&lab, "intel-0")->model, "Intel GPU 8086:a7a0");
	assert_string_equal(device_of(&lab, "intel-1")->model, "Intel Data Center GPU Flex 170");
	assert_int_equal(device_value(&lab, "intel-0", GPU_CLOCK_GRAPHICS), 1300);
	assert_int_equal(device_value(&lab, "intel-0", GPU_CLOCK_GRAPHICS_MAX), 1500);
	assert_int_equal(device_value(&lab, "intel-0", GPU_MEMORY_TOTAL), INVALID);
	assert_int_equal(device_value(&lab, "intel-0", GPU_ENERGY), INVALID);
	assert_int_equal(device_value(&lab, "intel-1", GPU_CLOCK_GRAPHICS), 2050);
	assert_int_equal(device_value(&lab, "intel-1", GPU_MEMORY_TOTAL), 17179869184);
	assert_int_equal(device_value(&lab, "intel-1", GPU_ENERGY), 123456);
	assert_int_equal(device_value(&lab, "intel-1", GPU_POWER_LIMIT), 120000);
	assert_int_equal(device_value(&lab, "intel-1", GPU_TEMPERATURE), 51000);
	assert_int_equal(device_value(&lab, "intel-1", GPU_TEMPERATURE_MEMORY), 49000);
	/* Not known is not zero. */
	assert_int_equal(device_value(&lab, "intel-1", GPU_UTIL), INVALID);
	assert_int_equal(lab.reading.why[GPU_UTIL].availability, ABSENT);
	assert_int_equal(device_value(&lab, "intel-1", GPU_MEMORY_USED), INVALID);
	maker_close(&lab);
}

static void test_an_old_kernel(void **state)
{
	(void)state;
	maker_open(&lab, "intel", film_of("machines", "gpu-mixed"), NULL);
	assert_int_equal(lab.reading.nr_devices, 1);
	assert_int_equal(device_value(&lab, "intel-0", GPU_CLOCK_GRAPHICS), 350);
	assert_int_equal(device_value(&lab, "intel-0", GPU_CLOCK_GRAPHICS_MAX), 1450);
	maker_close(&lab);
}

static void test_energy_counts(void **state)
{
	(void)state;
	maker_open(&lab, "intel", film_of("films", "gpu-intel"), NULL);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "intel-1", GPU_ENERGY), 133456);
	maker_close(&lab);
}

#define CARD "sys/class/drm/card0/device/"
#define PMU "sys/bus/event_source/devices/"
#define ONE_CARD(pci)                                                                       \
	"clock monotonic 100\nfile " CARD "vendor\n|0x8086\nfile " CARD "device\n|0x9a49\n" \
	"file " CARD "uevent\n|PCI_SLOT_NAME=" pci "\n"
#define ENGINES(pmu)                                                                                    \
	"file " PMU pmu "/type\n|17\nfile " PMU pmu "/cpumask\n|0\n"                                    \
	"file " PMU pmu "/events/rcs0-busy\n|config=0x0\nfile " PMU pmu "/events/rcs0-busy.unit\n|ns\n" \
	"file " PMU pmu "/events/rcs0-wait\n|config=0x1\nfile " PMU pmu                                 \
	"/events/vcs0-busy\n|config=0x2000\n"

/* The busiest engine in the time that passed, as a share. */
static void test_how_busy_it_is(void **state)
{
	(void)state;
	maker_open(&lab, "intel",
		film_text(ONE_CARD("0000:00:02.0") ENGINES(
			"i915") "counter 17 0x0 -1 0 1000 1000 1000\ncounter 17 0x2000 -1 0 5000 1000 1000\n"
				"frame 1\ncounter 17 0x0 -1 0 400001000 2000 2000\n"
				"counter 17 0x2000 -1 0 100005000 2000 2000\n"
				"frame 3\ncounter 17 0x0 -1 0 400001000 2000 2000\n"
				"counter 17 0x2000 -1 0 1700005000 2000 2000\n"),
		NULL);
	assert_int_equal(device_value(&lab, "intel-0", GPU_UTIL), INVALID);
	maker_turn(&lab, 1, false);
	assert_int_equal(device_value(&lab, "intel-0", GPU_UTIL), 40);
	assert_null(lab.reading.why[GPU_UTIL].reason);
	maker_turn(&lab, 3, false);
	assert_int_equal(device_value(&lab, "intel-0", GPU_UTIL), 80);
	maker_close(&lab);
}

static void test_counting_is_forbidden(void **state)
{
	(void)state;
	maker_open(&lab, "intel",
		film_text(ONE_CARD("0000:03:00.0")
				ENGINES("i915_0000_03_00.0") "counter_error * * * * EACCES\n"),
		NULL);
	assert_int_equal(device_value(&lab, "intel-0", GPU_UTIL), INVALID);
	assert_int_equal(lab.reading.why[GPU_UTIL].availability, FORBIDDEN);
	assert_non_null(strstr(lab.reading.why[GPU_UTIL].remedy, "perf_event_paranoid"));
	maker_close(&lab);
}

/* One that is not asked for is not opened. */
static void test_use_that_is_not_recorded(void **state)
{
	(void)state;
	assert_int_equal(
		maker_try(&lab, "intel",
			film_text(ONE_CARD("0000:00:02.0") ENGINES("i915") "counter_error * * * * EACCES\n")),
		0);
	lab.request.rows = UINT64_C(1) << GPU_CLOCK_GRAPHICS;
	maker_round(&lab, true);
	assert_null(lab.reading.why[GPU_UTIL].reason);
	maker_close(&lab);
}

static void test_no_card(void **state)
{
	struct trouble why = {0};
	struct env *env = film_of("machines", "gpu-amd");

	(void)state;
	assert_int_equal(maker_of("intel")->probe(env, &why), -ENOENT);
	assert_non_null(why.reason);
	env_free(env);
}

static void test_every_call_may_fail(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 100; n++) {
		struct env *env = env_failing(film_of("machines", "gpu-intel"), n, -EIO);

		assert_non_null(env);
		if (maker_try(&lab, "intel", env) == 0) {
			lab.request.member[lab.request.nr_members++] = 1000;
			maker_round(&lab, true);
			maker_round(&lab, false);
		}
		maker_close(&lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_the_die_and_discrete),
		cmocka_unit_test(test_an_old_kernel),
		cmocka_unit_test(test_energy_counts),
		cmocka_unit_test(test_how_busy_it_is),
		cmocka_unit_test(test_counting_is_forbidden),
		cmocka_unit_test(test_use_that_is_not_recorded),
		cmocka_unit_test(test_no_card),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
