/* Temperatures, fans, frequencies and throttling: what is found, once, and what comes and goes. */
#include "film_text.h"

static void test_sensors_of_a_server(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "sensor", film_of("machines", "intel-2s"));
	assert_int_equal(value(&lab, "coretemp/Package id 0", "sensor.temperature"), 61000);
	assert_int_equal(value(&lab, "coretemp/Package id 1", "sensor.temperature"), 64000);
	assert_int_equal(value(&lab, "coretemp/Package id 1", "sensor.high"), 84000);
	assert_int_equal(value(&lab, "coretemp/Package id 1", "sensor.critical"), 94000);
	/* Both sockets have a core 0. */
	assert_int_equal(value(&lab, "coretemp/Core 3", "sensor.temperature"), 55750);
	assert_int_equal(value(&lab, "coretemp-2/Core 3", "sensor.temperature"), 56750);
	assert_int_equal(value(&lab, "nvme/Composite", "sensor.temperature"), 38850);
	assert_int_equal(value(&lab, "nvme/Composite", "sensor.high"), INVALID);
	assert_int_equal(value(&lab, "nct6779/fan1", "sensor.fan"), 8400);
	assert_int_equal(value(&lab, "nct6779/fan2", "sensor.fan"), 0);
	assert_int_equal(value(&lab, "acpitz/temp1", "sensor.critical"), 119000);
	/* Of the four zones acpitz and the packages are chips already. */
	assert_int_equal(value(&lab, "thermal/pch_lewisburg", "sensor.temperature"), 49500);
	assert_int_equal(nr_instances(&lab), 1 + 10 + 1 + 2 + 1);
	assert_int_equal(lab.whys, 0);
	close_machine(&lab);
}

/* A device that sleeps has no temperature, and one when it wakes. */
static void test_a_sensor_that_sleeps(void **state)
{
	static struct lab lab;
	uint32_t id;

	(void)state;
	open_machine(&lab, "sensor",
		film_text("file sys/class/hwmon/hwmon0/name\n|iwlwifi_1\n"
			  "file sys/class/hwmon/hwmon0/temp1_input\n|0\n"
			  "error sys/class/hwmon/hwmon0/temp1_input read ENODATA\n"
			  "frame 1\nfile sys/class/hwmon/hwmon0/temp1_input\n|-5500\n"
			  "frame 2\nerror sys/class/hwmon/hwmon0/temp1_input read EAGAIN\n"));
	id = lab.table.id[row_of(&lab, "iwlwifi_1/temp1")];
	assert_int_equal(value(&lab, "iwlwifi_1/temp1", "sensor.temperature"), INVALID);
	turn(&lab, 1);
	assert_int_equal(value(&lab, "iwlwifi_1/temp1", "sensor.temperature"), -5500);
	turn(&lab, 2);
	assert_int_equal(value(&lab, "iwlwifi_1/temp1", "sensor.temperature"), INVALID);
	assert_int_equal(lab.table.id[row_of(&lab, "iwlwifi_1/temp1")], id);
	close_machine(&lab);
}

static void test_a_laptops_sensors(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "sensor", film_of("machines", "laptop"));
	assert_int_equal(value(&lab, "iwlwifi_1/temp1", "sensor.temperature"), INVALID);
	assert_int_equal(value(&lab, "thermal/B0D4", "sensor.temperature"), 57050);
	assert_int_equal(value(&lab, "coretemp/Core 12", "sensor.temperature"), 55000);
	assert_int_equal(availability(&lab, "sensor.fan"), ABSENT);
	assert_int_equal(nr_instances(&lab), 1 + 5 + 1 + 1);
	close_machine(&lab);
}

#define CHIP(n, name, device, celsius)                                                  \
	"file sys/class/hwmon/hwmon" n "/name\n|" name "\nlink sys/class/hwmon/hwmon" n \
	"/device ../../" device "\nfile sys/class/hwmon/hwmon" n "/temp1_input\n|" celsius "\n"

/* A chip gets another number: it is another instance, its neighbours are the same. A chip that comes is
 * found. */
static void test_chips_are_renumbered(void **state)
{
	static struct lab lab;
	uint32_t id;

	(void)state;
	open_machine(&lab, "sensor",
		film_text(CHIP("0", "a", "a.0", "1000") CHIP(
			"1", "b", "b.0", "2000") "frame 1\nremove sys/class/hwmon/hwmon0\n" CHIP("7", "a",
			"a.0", "1500") "frame 2\n"
				       "frame 3\n" CHIP("0", "c", "c.0", "3000") "frame 4\nframe 5\n"));
	id = lab.table.id[row_of(&lab, "b/temp1")];
	turn(&lab, 1);
	turn(&lab, 2);
	assert_int_equal(value(&lab, "a/temp1", "sensor.temperature"), 1500);
	turn(&lab, 3);
	assert_int_equal(value(&lab, "c/temp1", "sensor.temperature"), 3000);
	assert_int_equal(value(&lab, "b/temp1", "sensor.temperature"), 2000);
	assert_int_equal(lab.table.id[row_of(&lab, "b/temp1")], id);
	assert_int_equal(nr_instances(&lab), 3);
	close_machine(&lab);
}

/* Hundreds of cores: packages and all other chips first, also those that are listed last. */
static void test_more_cores_than_fit(void **state)
{
	static struct lab lab;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int chip = 0; chip < 2; chip++) {
		buf_addf(&text, "file sys/class/hwmon/hwmon%d/name\n|coretemp\n", chip);
		for (int i = 1; i <= 129; i++) {
			buf_addf(&text, "file sys/class/hwmon/hwmon%d/temp%d_input\n|%d\n", chip, i, i * 100);
			buf_addf(&text, "file sys/class/hwmon/hwmon%d/temp%d_label\n|", chip, i);
			buf_addf(&text, i == 1 ? "Package id %d\n" : "Core %d\n", i == 1 ? chip : i - 2);
		}
	}
	buf_adds(&text, CHIP("2", "nvme", "nvme0", "7"));
	open_machine(&lab, "sensor", film_buf(&text));
	assert_int_equal(nr_instances(&lab), lab.collector->max_rows);
	assert_int_equal(value(&lab, "coretemp/Package id 1", "sensor.temperature"), 100);
	assert_int_equal(value(&lab, "nvme/temp1", "sensor.temperature"), 7);
	assert_int_equal(value(&lab, "coretemp/Core 100", "sensor.temperature"), 10200);
	assert_int_equal(availability(&lab, "sensor.temperature"), FAILED);
	close_machine(&lab);
}

static void test_frequencies(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "frequency", film_of("machines", "intel-2s"));
	assert_int_equal(nr_instances(&lab), 16);
	assert_int_equal(value(&lab, "cpu15", "freq.current"), 2115000);
	assert_int_equal(value(&lab, "cpu15", "freq.maximum"), 3900000);
	assert_int_equal(value(&lab, "cpu0", "freq.limit"), 2800000);
	assert_int_equal(lab.whys, 0);
	close_machine(&lab);

	/* Four CPUs share a file. */
	open_machine(&lab, "frequency", film_of("machines", "arm-server"));
	assert_int_equal(nr_instances(&lab), 8);
	assert_int_equal(value(&lab, "cpu3", "freq.current"), 3321000);
	assert_int_equal(value(&lab, "cpu4", "freq.current"), 1234000);
	assert_int_equal(value(&lab, "cpu7", "freq.maximum"), 3447000);
	close_machine(&lab);

	/* No cpufreq. */
	open_machine(&lab, "frequency", film_of("machines", "cray"));
	assert_int_equal(nr_instances(&lab), 4);
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 2000125);
	assert_int_equal(value(&lab, "cpu3", "freq.current"), 2300125);
	assert_int_equal(value(&lab, "cpu3", "freq.maximum"), INVALID);
	assert_int_equal(availability(&lab, "freq.current"), AVAILABLE);
	assert_int_equal(availability(&lab, "freq.maximum"), ABSENT);
	close_machine(&lab);
}

#define ONLINE(list) "file sys/devices/system/cpu/online\n|" list "\n"
#define POLICY(cpu, cpus, khz)                                                   \
	"file sys/devices/system/cpu/cpu" cpu "/cpufreq/scaling_cur_freq\n|" khz \
	"\nfile sys/devices/system/cpu/cpu" cpu "/cpufreq/affected_cpus\n|" cpus \
	"\nfile sys/devices/system/cpu/cpu" cpu "/cpufreq/cpuinfo_max_freq\n|9000\n"

static void test_cpus_of_a_policy_come_and_go(void **state)
{
	static struct lab lab;
	uint32_t id;

	(void)state;
	open_machine(&lab, "frequency",
		film_text(ONLINE("0-3") POLICY("0", "0 1", "1000") POLICY("1", "0 1", "1000") POLICY(
			"2", "2 3", "2000") POLICY("3", "2 3", "2000") "frame 1\n" ONLINE("0,2-3")
				POLICY("0", "0", "1100") "frame 2\n" ONLINE(
					"0") "remove sys/devices/system/cpu/cpu2/cpufreq\n"
					     "remove sys/devices/system/cpu/cpu3/cpufreq\n"
					     "frame 3\n" ONLINE("0-3") POLICY("0", "0 1", "1300") POLICY("1",
						     "0 1",
						     "1300") POLICY("2", "2 3", "2300") POLICY("3", "2 3",
						     "<unknown>") "frame 4\nremove "
								  "sys/devices/system/cpu/cpu0/cpufreq\n"
								  "frame 5\n" POLICY("0", "0 1", "1500")));
	id = lab.table.id[row_of(&lab, "cpu0")];
	turn(&lab, 1);
	assert_int_equal(nr_instances(&lab), 3);
	assert_int_equal(row_of(&lab, "cpu1"), -1);
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 1100);
	turn(&lab, 2);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(lab.table.id[row_of(&lab, "cpu0")], id);
	turn(&lab, 3);
	assert_int_equal(nr_instances(&lab), 4);
	assert_int_equal(value(&lab, "cpu1", "freq.current"), 1300);
	assert_int_equal(value(&lab, "cpu3", "freq.current"), 2300);
	assert_int_equal(value(&lab, "cpu3", "freq.maximum"), 9000);
	/* The driver of CPU 0 is replaced: it has no frequency, and is found again. */
	turn(&lab, 4);
	assert_int_equal(row_of(&lab, "cpu0"), -1);
	turn(&lab, 5);
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 1500);
	assert_int_equal(nr_instances(&lab), 4);
	close_machine(&lab);
}

static void test_a_policy_with_a_cpu_that_is_offline(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "frequency", film_text(ONLINE("0") POLICY("0", "0 1", "1000")));
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 1000);
	close_machine(&lab);
}

static void test_cpus_of_cpuinfo_come_and_go(void **state)
{
	static struct lab lab;

	(void)state;
	open_machine(&lab, "frequency",
		film_text(ONLINE(
			"0-1") "file proc/cpuinfo\n|processor\t: 0\n|cpu MHz\t\t: 2300.5\n|\n"
			       "|processor\t: 1\n|cpu MHz\t\t: 800\n"
			       "frame 1\nfile proc/cpuinfo\n|processor\t: 1\n|cpu MHz\t\t: 900.0019\n"
			       "|processor\t: 99999999999\n|cpu MHz\t\t: 1.0\n|cpu MHz: x\n"
			       "frame 2\nfile proc/cpuinfo\n|nothing\n"
			       "frame 3\nfile proc/cpuinfo\n|processor : 0\n|clock : 3800.000000MHz\n"));
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 2300500);
	assert_int_equal(value(&lab, "cpu1", "freq.current"), 800000);
	turn(&lab, 1);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(value(&lab, "cpu1", "freq.current"), 900001);
	/* Nothing could be read: nothing is known, and nobody has left. */
	assert_int_equal(env_sleep_until(lab.ctx.env, 102 * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(&lab), -EBADMSG);
	assert_int_equal(value(&lab, "cpu1", "freq.current"), INVALID);
	turn(&lab, 3);
	assert_int_equal(value(&lab, "cpu0", "freq.current"), 3800000);
	assert_int_equal(row_of(&lab, "cpu1"), -1);
	close_machine(&lab);
}

/* An env on which every reading takes its time. */
struct slow {
	struct env env;
	struct env_ops ops;
	struct env *inner;
	int64_t now_ns, read_ns;
	unsigned reads;
};

static int slow_open(struct env *env, const char *path)
{
	return env_open(((struct slow *)env)->inner, path);
}

static ssize_t slow_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	struct slow *s = (struct slow *)env;

	s->now_ns += s->read_ns;
	s->reads++;
	return s->inner->ops->read(s->inner, handle, out, size, offset);
}

static void slow_close(struct env *env, int handle)
{
	env_close(((struct slow *)env)->inner, handle);
}

static int slow_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	return env_list(((struct slow *)env)->inner, path, fn, arg);
}

static ssize_t slow_readlink(struct env *env, const char *path, char *out, size_t size)
{
	return env_readlink(((struct slow *)env)->inner, path, out, size);
}

static int64_t slow_now(struct env *env, enum env_clock clock)
{
	(void)clock;
	return ((struct slow *)env)->now_ns;
}

static void slow_init(struct slow *s, struct env *inner)
{
	*s = (struct slow){.inner = inner,
		.env = *inner,
		.ops = {.open = slow_open,
			.read = slow_read,
			.close = slow_close,
			.list = slow_list,
			.readlink = slow_readlink,
			.now = slow_now}};
	s->env.ops = &s->ops;
}

/* Sensors behind a slow bus: no round waits for all of them, and all have their turn. */
static void test_slow_sensors_take_turns(void **state)
{
	static struct lab lab;
	static struct slow slow;
	struct buf text;
	int rounds = 0;

	(void)state;
	buf_init(&text, 1 << 16);
	for (int i = 0; i < 20; i++)
		buf_addf(&text,
			"file sys/class/hwmon/hwmon%d/name\n|chip%d\nfile "
			"sys/class/hwmon/hwmon%d/temp1_input\n|%d\n",
			i, i, i, i + 1);
	slow_init(&slow, film_buf(&text));
	lab_open(&lab, &slow.env, "sensor");
	slow.read_ns = 2 * NSEC_PER_MSEC;
	for (bool all = false; !all && rounds < 40; rounds++) {
		slow.reads = 0;
		assert_int_equal(lab_sample(&lab), 0);
		assert_in_range(slow.reads, 1, 3);
		all = true;
		for (uint32_t row = 0; row < lab.table.nr_rows; row++)
			all &= lab.table.valid[row] & 1;
	}
	assert_in_range(rounds, 7, 20);
	assert_int_equal(value(&lab, "chip19/temp1", "sensor.temperature"), 20);
	lab_release(&lab);
	env_free(slow.inner);
}

/* Kernels that sleep for every CPU are asked once for all. */
static void test_frequencies_that_take_a_sleep(void **state)
{
	static struct lab lab;
	static struct slow slow;

	(void)state;
	slow_init(&slow, film_of("machines", "amd-server"));
	slow.read_ns = 10 * NSEC_PER_MSEC;
	lab_open(&lab, &slow.env, "frequency");
	slow.reads = 0;
	assert_int_equal(lab_sample(&lab), 0);
	assert_in_range(slow.reads, 1, 2);
	assert_int_equal(nr_instances(&lab), 16);
	assert_int_equal(value(&lab, "cpu14", "freq.current"), 3350000);
	assert_int_equal(value(&lab, "cpu15", "freq.current"), 1500000);
	assert_int_equal(value(&lab, "cpu15", "freq.maximum"), 3350000);
	assert_int_equal(availability(&lab, "freq.maximum"), AVAILABLE);
	lab_release(&lab);
	env_free(slow.inner);
}

static void test_256_cpus(void **state)
{
	static struct lab lab;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	buf_adds(&text, ONLINE("0-255"));
	for (int i = 0; i < 256; i++)
		buf_addf(&text, "file sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq\n|%d\n", i,
			1000 + i);
	open_machine(&lab, "frequency", film_buf(&text));
	assert_int_equal(nr_instances(&lab), 256);
	assert_int_equal(lab.table.nr_touched, 256);
	assert_int_equal(value(&lab, "cpu255", "freq.current"), 1255);
	close_machine(&lab);
}

static int64_t sum(struct lab *lab, const char *metric)
{
	int col = lab->ctx.map.col[index_of(lab, metric)];
	int64_t total = 0;

	for (uint32_t row = 0; row < lab->table.nr_rows; row++)
		if (lab->table.id[row] != ROW_FREE && lab->table.valid[row] >> col & 1)
			total += table_row(&lab->table, row)[col];
	return total;
}

/* All CPUs of a package and both threads of a core count the same event. */
static void test_throttling_is_counted_once(void **state)
{
	static struct lab lab;
	struct trouble why = {0};
	struct env *env;

	(void)state;
	open_machine(&lab, "throttle", film_of("machines", "intel-2s"));
	assert_int_equal(nr_instances(&lab), 8 + 2);
	assert_int_equal(sum(&lab, "throttle.core"), 7);
	assert_int_equal(sum(&lab, "throttle.package"), 42);
	assert_int_equal(sum(&lab, "throttle.package_time"), 12345);
	assert_int_equal(value(&lab, "package-1", "throttle.package"), 42);
	assert_int_equal(value(&lab, "package-1", "throttle.core"), INVALID);
	assert_int_equal(value(&lab, "cpu5", "throttle.core_time"), 1500);
	assert_int_equal(row_of(&lab, "cpu13"), -1);
	assert_int_equal(lab.whys, 0);
	close_machine(&lab);

	open_machine(&lab, "throttle", film_of("machines", "laptop"));
	assert_int_equal(sum(&lab, "throttle.package"), 9);
	assert_int_equal(sum(&lab, "throttle.core"), 0 + 1 + 2 + 3);
	assert_int_equal(availability(&lab, "throttle.package_time"), ABSENT);
	close_machine(&lab);

	env = film_of("machines", "amd-server");
	assert_int_equal(collector_find("throttle")->probe(env, &why), -ENOENT);
	assert_non_null(why.reason);
	env_free(env);
}

#define THROTTLE(cpu, all, threads, core, package)                                              \
	"file sys/devices/system/cpu/cpu" cpu "/topology/physical_package_id\n|0\n"             \
	"file sys/devices/system/cpu/cpu" cpu "/topology/core_siblings_list\n|" all             \
	"\nfile sys/devices/system/cpu/cpu" cpu "/topology/thread_siblings_list\n|" threads     \
	"\nfile sys/devices/system/cpu/cpu" cpu "/thermal_throttle/core_throttle_count\n|" core \
	"\nfile sys/devices/system/cpu/cpu" cpu "/thermal_throttle/package_throttle_count\n|" package "\n"

/* The CPU that speaks for its core and package goes offline: its sibling speaks, as an instance of its own.
 */
static void test_the_speaker_goes_offline(void **state)
{
	static struct lab lab;
	uint32_t id;

	(void)state;
	open_machine(&lab, "throttle",
		film_text(ONLINE("0-3") THROTTLE("0", "0-3", "0,2", "5", "50") THROTTLE("1", "0-3", "1,3",
			"6", "50") THROTTLE("2", "0-3", "0,2", "5", "50") THROTTLE("3", "0-3", "1,3", "6",
			"50") "frame 1\n" ONLINE("1-3") "remove sys/devices/system/cpu/cpu0\n" THROTTLE("1",
			"1-3", "1,3", "8", "51") THROTTLE("2", "1-3", "2", "7", "51") "frame 2\n"));
	id = lab.table.id[row_of(&lab, "package-0")];
	assert_int_equal(nr_instances(&lab), 3);
	assert_int_equal(sum(&lab, "throttle.core"), 11);
	turn(&lab, 1);
	assert_int_equal(nr_instances(&lab), 3);
	assert_int_equal(row_of(&lab, "cpu0"), -1);
	assert_int_equal(value(&lab, "cpu2", "throttle.core"), 7);
	assert_int_equal(value(&lab, "cpu1", "throttle.core"), 8);
	assert_int_equal(sum(&lab, "throttle.package"), 51);
	assert_true(lab.table.id[row_of(&lab, "package-0")] != id);
	close_machine(&lab);
}

/* Every call fails once, with any error: none crashes, none lies. */
static void test_every_call_may_fail(void **state)
{
	static const char *const name[] = {"sensor", "frequency", "throttle"};
	static const int error[] = {-EIO, -EACCES, -ENODEV};
	static struct lab lab;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(name) * ARRAY_SIZE(error); i++) {
		for (unsigned n = 1; n <= 150; n++) {
			struct env *env =
				env_failing(film_of("machines", "intel-2s"), n, error[i % ARRAY_SIZE(error)]);

			lab_init(&lab, env, name[i / ARRAY_SIZE(error)]);
			if (lab.collector->open(lab.state, &lab.ctx) == 0)
				for (int tick = 0; tick < 3; tick++)
					assert_int_equal(lab_sample(&lab), 0);
			if (!strcmp(name[i / ARRAY_SIZE(error)], "throttle"))
				assert_true(sum(&lab, "throttle.package") <= 42);
			assert_in_range(nr_instances(&lab), 0, 16 + 2);
			close_machine(&lab);
		}
	}
}

static void test_only_what_is_recorded(void **state)
{
	static struct lab lab;

	(void)state;
	lab_init(&lab, film_of("machines", "intel-2s"), "sensor");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "sensor.fan")] = 0;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 2);
	assert_int_equal(value(&lab, "nct6779/fan1", "sensor.fan"), 8400);
	close_machine(&lab);

	lab_init(&lab, film_of("machines", "intel-2s"), "throttle");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "throttle.package")] = 0;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 2);
	close_machine(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sensors_of_a_server),
		cmocka_unit_test(test_a_sensor_that_sleeps),
		cmocka_unit_test(test_a_laptops_sensors),
		cmocka_unit_test(test_chips_are_renumbered),
		cmocka_unit_test(test_more_cores_than_fit),
		cmocka_unit_test(test_slow_sensors_take_turns),
		cmocka_unit_test(test_frequencies),
		cmocka_unit_test(test_cpus_of_a_policy_come_and_go),
		cmocka_unit_test(test_a_policy_with_a_cpu_that_is_offline),
		cmocka_unit_test(test_cpus_of_cpuinfo_come_and_go),
		cmocka_unit_test(test_frequencies_that_take_a_sleep),
		cmocka_unit_test(test_256_cpus),
		cmocka_unit_test(test_throttling_is_counted_once),
		cmocka_unit_test(test_the_speaker_goes_offline),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_only_what_is_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
