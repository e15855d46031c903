/* Disks, on machines and films: which are counted, which stand apart, which come and go. */
#include "storage_lab.h"

static void assert_counts(const struct lab *lab, const char *const *name, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (*about(lab, name[i]))
			fail_msg("%s should count: %s", name[i], about(lab, name[i]));
}

static void assert_apart(const struct lab *lab, const char *const *name, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strncmp(about(lab, name[i]), "apart=", 6) != 0)
			fail_msg("%s should stand apart", name[i]);
}

static void test_disks_of_a_server(void **state)
{
	static const char *const counted[] = {
		"nvme0n1", "dm-1", "sda", "sdb", "nvme2n1", "nvme3c1n1", "cciss/c0d0", "odd\xff%s\x1b"};
	static const char *const counted_elsewhere[] = {
		"dm-0", "md127", "nvme2c0n1", "loop0", "zram0", "zd0", "cciss/c1d0"};
	struct env *env = film_of("machines", "disk-server");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "disk");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, counted, ARRAY_SIZE(counted));
	assert_apart(&lab, counted_elsewhere, ARRAY_SIZE(counted_elsewhere));
	/* Neither partitions nor what has never worked. */
	assert_int_equal(nr_instances(&lab), ARRAY_SIZE(counted) + ARRAY_SIZE(counted_elsewhere));
	assert_int_equal(lab.table.nr_touched, nr_instances(&lab));
	assert_int_equal(value(&lab, "nvme0n1", "disk.read.ops"), 1000);
	assert_int_equal(value(&lab, "nvme0n1", "disk.read.merged"), 10);
	assert_int_equal(value(&lab, "nvme0n1", "disk.read.bytes"), 80000);
	assert_int_equal(value(&lab, "nvme0n1", "disk.read.time"), 500);
	assert_int_equal(value(&lab, "nvme0n1", "disk.write.ops"), 2000);
	assert_int_equal(value(&lab, "nvme0n1", "disk.write.merged"), 20);
	assert_int_equal(value(&lab, "nvme0n1", "disk.write.bytes"), 160000);
	assert_int_equal(value(&lab, "nvme0n1", "disk.write.time"), 900);
	assert_int_equal(value(&lab, "nvme0n1", "disk.queue"), 3);
	assert_int_equal(value(&lab, "nvme0n1", "disk.busy"), 1200);
	assert_int_equal(value(&lab, "nvme0n1", "disk.queue_time"), 1400);
	assert_int_equal(value(&lab, "nvme0n1", "disk.discard.ops"), 50);
	assert_int_equal(value(&lab, "nvme0n1", "disk.discard.merged"), 1);
	assert_int_equal(value(&lab, "nvme0n1", "disk.discard.bytes"), 4096);
	assert_int_equal(value(&lab, "nvme0n1", "disk.discard.time"), 7);
	assert_int_equal(value(&lab, "nvme0n1", "disk.flush.ops"), 60);
	assert_int_equal(value(&lab, "nvme0n1", "disk.flush.time"), 8);
	/* A count that fell below zero is no count. */
	assert_int_equal(value(&lab, "odd\xff%s\x1b", "disk.queue"), INVALID);
	assert_int_equal(value(&lab, "odd\xff%s\x1b", "disk.busy"), 1);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

static void test_an_old_kernel_without_sysfs(void **state)
{
	static const char *const counted[] = {"sda", "sdaa", "xvdf1", "mmcblk0", "mmcblk0boot0", "nvme0n1"};
	static const char *const counted_elsewhere[] = {"dm-1", "dm-10", "md0", "loop0", "nvme0c0n1"};
	struct env *env = film_of("machines", "disk-old");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "disk");
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, counted, ARRAY_SIZE(counted));
	assert_apart(&lab, counted_elsewhere, ARRAY_SIZE(counted_elsewhere));
	assert_int_equal(nr_instances(&lab), ARRAY_SIZE(counted) + ARRAY_SIZE(counted_elsewhere));
	assert_int_equal(value(&lab, "sda", "disk.queue_time"), 140);
	assert_int_equal(value(&lab, "sda", "disk.discard.ops"), INVALID);
	assert_int_equal(value(&lab, "sda", "disk.flush.ops"), INVALID);
	assert_int_equal(availability(&lab, "disk.discard.bytes"), ABSENT);
	assert_int_equal(availability(&lab, "disk.flush.ops"), ABSENT);
	assert_int_equal(availability(&lab, "disk.busy"), AVAILABLE);
	assert_string_equal(lab.why, "this kernel does not report it");
	assert_int_equal(lab.whys, 6);
	lab_release(&lab);
	env_free(env);
}

static void test_disks_come_and_go(void **state)
{
	struct env *env = film_of("films", "disk-pulled");
	struct lab lab;
	uint32_t id;

	(void)state;
	lab_open(&lab, env, "disk");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 3);
	assert_non_null(strstr(about(&lab, "md0"), "apart="));
	id = lab.table.id[row_of(&lab, "sdb")];

	turn_to(&lab, 1, 0);
	assert_int_equal(row_of(&lab, "sdb"), -1);
	assert_int_equal(value(&lab, "sda", "disk.busy"), 32);

	/* What comes is seen at once, also between two rounds of the medium tier. */
	lab.ctx.medium = false;
	turn_to(&lab, 2, 0);
	assert_int_equal(value(&lab, "sdb", "disk.read.ops"), 7);
	assert_true(lab.table.id[row_of(&lab, "sdb")] != id);
	id = lab.table.id[row_of(&lab, "sda")];

	/* A reset is for the query to see. */
	turn_to(&lab, 3, 0);
	assert_int_equal(value(&lab, "sda", "disk.read.bytes"), 24);
	turn_to(&lab, 4, -EIO);
	assert_int_equal(value(&lab, "sda", "disk.read.bytes"), INVALID);
	assert_int_equal(value(&lab, "md0", "disk.read.bytes"), INVALID);
	assert_int_equal(lab.table.nr_touched, 3);
	turn_to(&lab, 5, 0);
	assert_int_equal(value(&lab, "sda", "disk.read.bytes"), 104);
	assert_int_equal(lab.table.id[row_of(&lab, "sda")], id);
	assert_int_equal(value(&lab, "loop0", "disk.read.ops"), 5);
	assert_non_null(strstr(about(&lab, "loop0"), "apart="));
	assert_int_equal(nr_instances(&lab), 4);
	turn_to(&lab, 6, 0);
	assert_int_equal(nr_instances(&lab), 0);
	lab_release(&lab);
	env_free(env);
}

/* Lines that are cut short, and lines that are none: nothing is read past its end, and no word is taken for
 * a number. */
static void test_broken_text(void **state)
{
	static const char text[] =
		"   8       0 sda 10 1 80 4 12 1 96 6 0 8 10 0 0 0 0 2 1\n"
		"\n   \n 8\n 8 16\n 8 16 sdb\n 8 32 sdc xx yy 3 zz\n"
		"8 48 averyveryveryveryveryveryveryveryveryveryveryverylongnameofadisk 1 2 3\n"
		" 8 64 sdd 18446744073709551615 -1 99999999999999999999999 1\n"
		"   8       0 sda 10 1 80 4 12 1 96 6 0 8 10 0 0 0 0 2 1\n";

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		struct env *env = machine_of("proc/diskstats", text, len);
		struct lab lab;

		lab_open(&lab, env, "disk");
		assert_int_equal(lab_sample(&lab), 0);
		if (len > (size_t)(strchr(text, '\n') - text)) {
			assert_int_equal(value(&lab, "sda", "disk.read.bytes"), 80);
			assert_int_equal(value(&lab, "sda", "disk.flush.time"), 1);
		} else {
			assert_int_equal(nr_instances(&lab), 0);
		}
		if (row_of(&lab, "sdc") >= 0) {
			assert_int_equal(value(&lab, "sdc", "disk.read.ops"), INVALID);
			assert_int_equal(value(&lab, "sdc", "disk.read.bytes"), 3);
		}
		assert_int_equal(row_of(&lab, "sdb"), -1);
		assert_in_range(nr_instances(&lab), 0, 3);
		lab_release(&lab);
		env_free(env);
	}
}

/* More than there is room for: the first are counted, and it is said once. */
static void test_too_many_disks(void **state)
{
	struct env *env;
	struct buf text;
	struct lab lab;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 2000; i++)
		buf_addf(&text, "%d %d d%dx %d 0 8 1 0 0 0 0 0 1 1\n", 8 + i / 256, i % 256, i, i + 1);
	env = machine_of("proc/diskstats", (char *)text.data, text.len);
	lab_init(&lab, env, "disk");
	assert_int_equal(lab.table.cap, 256);
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 256);
	assert_int_equal(value(&lab, "d255x", "disk.read.ops"), 256);
	assert_int_equal(row_of(&lab, "d256x"), -1);
	assert_int_equal(availability(&lab, "disk.read.ops"), FAILED);
	assert_non_null(strstr(lab.why, "more disks"));
	assert_int_equal(lab.whys, lab.collector->nr_metrics + 6);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.whys, lab.collector->nr_metrics + 6);
	lab_release(&lab);
	env_free(env);
	buf_release(&text);
}

static void test_every_call_may_fail(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 60; n++) {
		struct env *env = env_failing(film_of("machines", "disk-server"), n, -EIO);
		struct lab lab;
		int r;

		lab_init(&lab, env, "disk");
		r = lab.collector->open(lab.state, &lab.ctx);
		assert_true(r == 0 || r == -EIO);
		for (int i = 0; r == 0 && i < 30; i++)
			lab_sample(&lab);
		if (r == 0) {
			assert_int_equal(lab_sample(&lab), 0);
			assert_int_equal(value(&lab, "nvme0n1", "disk.busy"), 1200);
		}
		lab_release(&lab);
		env_free(env);
	}
}

/* The file read before and after bounds what is read in between. */
static void test_the_real_machine(void **state)
{
	struct env *env = env_live(NULL);
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "disk");
	if (lab.collector->probe(env, &why) < 0) {
		print_message("there is no /proc/diskstats\n");
		lab_release(&lab);
		env_free(env);
		skip();
	}
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(lab_sample(&lab), 0);
	for (uint32_t row = 0; row < lab.table.nr_rows; row++)
		assert_true(value(&lab, lab.name[row], "disk.busy") >= 0);
	lab_release(&lab);
	env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disks_of_a_server),
		cmocka_unit_test(test_an_old_kernel_without_sysfs),
		cmocka_unit_test(test_disks_come_and_go),
		cmocka_unit_test(test_broken_text),
		cmocka_unit_test(test_too_many_disks),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_the_real_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
