/* What other kernels than this one send: records of all versions. */
#include "target/taskstats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <cmocka.h>

/* The kernel's struct has the name of our handle. */
#define taskstats uapi_taskstats
#include <linux/taskstats.h>
#undef taskstats

/* A record as version 13 has it. */
static struct uapi_taskstats sample_record(void)
{
	struct uapi_taskstats s = {
		.version = 13,
		.ac_exitcode = 0x300,
		.cpu_delay_total = 11,
		.blkio_delay_total = 22,
		.swapin_delay_total = 33,
		.cpu_run_virtual_total = 4000000,
		.ac_comm = "thirty-one bytes of a name and ",
		.ac_uid = 1000,
		.ac_pid = 42,
		.ac_ppid = 7,
		.ac_btime = 1700000000,
		.ac_etime = 5000,
		.ac_utime = 3000,
		.ac_stime = 1000,
		.ac_minflt = 66,
		.hiwater_rss = 77,
		.write_bytes = 88,
		.nivcsw = 99,
		.ac_btime64 = 1700000001,
		.ac_tgid = 41,
	};
	return s;
}

static void check_sample(const struct exit_record *e)
{
	assert_int_equal(e->tid, 42);
	assert_int_equal(e->parent, 7);
	assert_int_equal(e->uid, 1000);
	assert_int_equal(WEXITSTATUS(e->status), 3);
	assert_string_equal(e->name, "thirty-one bytes of a name and ");
	assert_int_equal(e->run_delay_ns, 11);
	assert_int_equal(e->block_delay_ns, 22);
	assert_int_equal(e->swap_delay_ns, 33);
	assert_int_equal(e->user_ns, 3000000);
	assert_int_equal(e->system_ns, 1000000);
	assert_int_equal(e->elapsed_ns, 5000000);
	assert_int_equal(e->use.used[USED_MINOR], 66);
}

static void test_taskstats_of_all_versions(void **state)
{
	struct uapi_taskstats s = sample_record();
	uint8_t longer[sizeof(s) + 100] = {0};
	struct exit_record e;

	(void)state;
	memcpy(longer, &s, sizeof(s));
	for (size_t len = 0; len <= sizeof(longer); len++) {
		bool ok = taskstats_parse(longer, len, 42, &e);

		assert_int_equal(ok, len >= offsetof(struct uapi_taskstats, ac_minflt));
		if (len < offsetof(struct uapi_taskstats, hiwater_rss))
			continue;
		check_sample(&e);
		if (len < offsetof(struct uapi_taskstats, ac_btime64)) {
			assert_int_equal(e.tgid, 42);
			assert_int_equal(e.start_wall_s, 1700000000);
		}
		if (len >= sizeof(s)) {
			assert_int_equal(e.tgid, 41);
			assert_int_equal(e.start_wall_s, 1700000001);
			assert_int_equal(e.peak_rss_bytes, 77 * 1024);
			assert_int_equal(e.use.used[USED_WRITE_BYTES], 88);
			assert_int_equal(e.use.used[USED_INVOLUNTARY], 99);
		}
	}
	assert_false(taskstats_parse(&s, sizeof(s), 43, &e));
}

/* Version 15 put a maximum and a minimum after each delay. */
static size_t make_version_15(uint8_t *out)
{
	static const size_t cut[] = {
		offsetof(struct uapi_taskstats, blkio_count),
		offsetof(struct uapi_taskstats, swapin_count),
		offsetof(struct uapi_taskstats, cpu_run_real_total),
		offsetof(struct uapi_taskstats, thrashing_count),
		offsetof(struct uapi_taskstats, ac_btime64),
		offsetof(struct uapi_taskstats, ac_tgid),
		sizeof(struct uapi_taskstats),
	};
	struct uapi_taskstats s = sample_record();
	size_t from = 0, at = 0;

	s.version = 15;
	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		memcpy(out + at, (uint8_t *)&s + from, cut[i] - from);
		at += cut[i] - from;
		from = cut[i];
		memset(out + at, 0xee, 16);
		at += 16;
	}
	return at;
}

static void test_taskstats_version_15(void **state)
{
	uint8_t bytes[sizeof(struct uapi_taskstats) + 7 * 16];
	size_t len = make_version_15(bytes);
	struct exit_record e;

	(void)state;
	assert_true(taskstats_parse(bytes, len, 42, &e));
	check_sample(&e);
	assert_int_equal(e.tgid, 41);
	assert_int_equal(e.start_wall_s, 1700000001);
	assert_int_equal(e.peak_rss_bytes, 77 * 1024);
	for (size_t i = 0; i < len; i++)
		taskstats_parse(bytes, i, 42, &e); /* sanitizers watch */
}

static void test_taskstats_cpu_without_the_exact_sum(void **state)
{
	struct uapi_taskstats s = sample_record();
	struct exit_record e;

	(void)state;
	s.cpu_run_virtual_total = 0;
	assert_true(taskstats_parse(&s, sizeof(s), 42, &e));
	assert_int_equal(e.user_ns, 3000000);
	assert_int_equal(e.system_ns, 1000000);
	s.cpu_run_virtual_total = 123456;
	s.ac_utime = s.ac_stime = 0;
	assert_true(taskstats_parse(&s, sizeof(s), 42, &e));
	assert_int_equal(e.user_ns + e.system_ns, 123456);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taskstats_of_all_versions),
		cmocka_unit_test(test_taskstats_version_15),
		cmocka_unit_test(test_taskstats_cpu_without_the_exact_sum),
	};

	return cmocka_run_group_tests_name("kernel_text", tests, NULL, NULL);
}
