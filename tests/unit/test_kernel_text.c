/* What other kernels and hosts than this one send: records of all versions, mounts of all kinds. */
#include "target/cgroup_place.h"
#include "target/taskstats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <cmocka.h>

/* The kernel's struct has the name of our handle. */
#define taskstats uapi_taskstats
#include <linux/taskstats.h>
#undef taskstats

/* ---- taskstats ---- */

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
	assert_int_equal(e->minor_faults, 66);
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
			assert_int_equal(e.write_bytes, 88);
			assert_int_equal(e.involuntary_switches, 99);
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

/* ---- control groups: where ---- */

struct place_case {
	const char *what, *mountinfo, *groups;
	const char *directory, *path; /* directory NULL: none */
	bool v2;
	unsigned nth;
};

#define V1 "cgroup cgroup rw,cpu,cpuacct\n"
#define V2 "cgroup2 cgroup2 rw,nsdelegate\n"

static const struct place_case place_case[] = {
	{"systemd on v2",
		"22 1 0:20 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - " V2,
		"0::/user.slice/user-1000.slice/session-3.scope\n",
		"/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope",
		"/user.slice/user-1000.slice/session-3.scope", true, 0},
	{"hybrid: v2 first",
		"41 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - " V1
		"42 25 0:27 / /sys/fs/cgroup/unified rw - " V2,
		"4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n", "/sys/fs/cgroup/unified/c", "/c", true, 0},
	{"hybrid: then v1",
		"41 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - " V1
		"42 25 0:27 / /sys/fs/cgroup/unified rw - " V2,
		"4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n", "/sys/fs/cgroup/cpu,cpuacct/a", "/a", false,
		1},
	{"no third", "41 25 0:30 / /c rw - " V1 "42 25 0:27 / /u rw - " V2, "4:cpu,cpuacct:/a\n0::/c\n", NULL,
		NULL, false, 2},
	{"v1 without cpuacct", "41 25 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
		"4:cpuset:/a\n", NULL, NULL, false, 0},
	{"cpuacct counted but mounted elsewhere", "41 25 0:30 / /x rw - cgroup cgroup rw,cpuset\n",
		"4:cpuacct:/a\n", NULL, NULL, false, 0},
	{"a container that sees only its own group",
		"50 40 0:27 /docker/abc /sys/fs/cgroup ro master:3 - " V2, "0::/docker/abc\n",
		"/sys/fs/cgroup", "", true, 0},
	{"a group below the root of the mount", "50 40 0:27 /docker/abc /sys/fs/cgroup ro - " V2,
		"0::/docker/abc/inner\n", "/sys/fs/cgroup/inner", "/inner", true, 0},
	{"a root that only begins alike", "50 40 0:27 /docker/ab /sys/fs/cgroup ro - " V2, "0::/docker/abc\n",
		NULL, NULL, true, 0},
	{"a mount above a cgroup namespace", "50 40 0:27 /.. /sys/fs/cgroup ro - " V2, "0::/\n", NULL, NULL,
		true, 0},
	{"we are outside of the namespace's root", "50 40 0:27 / /sys/fs/cgroup ro - " V2, "0::/../other\n",
		NULL, NULL, true, 0},
	{"at the root", "50 40 0:27 / /cg rw - " V2, "0::/\n", "/cg", "", true, 0},
	{"blanks in the path", "50 40 0:27 / /my\\040cg\\134x rw - " V2, "0::/a b\n", "/my cg\\x/a b", "/a b",
		true, 0},
	{"colons in the path", "50 40 0:27 / /cg rw - " V2, "0::/a:b:c\n", "/cg/a:b:c", "/a:b:c", true, 0},
	{"nothing", "", "", NULL, NULL, true, 0},
	{"cut lines", "50 40 0:27 / /cg rw -", "0::", NULL, NULL, true, 0},
	{"cut lines", "50 40", "0", NULL, NULL, true, 0},
};

static void test_cgroup_places(void **state)
{
	struct cgroup_place p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(place_case); i++) {
		const struct place_case *c = &place_case[i];
		bool found = cgroup_place_find(c->mountinfo, c->groups, c->nth, &p);

		if (found != !!c->directory)
			fail_msg("%s: %s", c->what, found ? p.directory : "not found");
		if (!found)
			continue;
		assert_string_equal(p.directory, c->directory);
		assert_string_equal(p.directory + p.mount_len, c->path);
		assert_int_equal(p.v2, c->v2);
	}
}

static void test_cgroup_place_too_long(void **state)
{
	static char groups[2 * PATH_MAX];
	struct cgroup_place p;

	(void)state;
	memset(groups, 'a', sizeof(groups) - 1);
	memcpy(groups, "0::/", 4);
	assert_false(cgroup_place_find("50 40 0:27 / /cg rw - " V2, groups, 0, &p));
	groups[PATH_MAX] = '\0';
	assert_false(cgroup_place_find("50 40 0:27 / /cg rw - " V2, groups, 0, &p));
	groups[PATH_MAX - 10] = '\0';
	assert_true(cgroup_place_find("50 40 0:27 / /cg rw - " V2, groups, 0, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taskstats_of_all_versions),
		cmocka_unit_test(test_taskstats_version_15),
		cmocka_unit_test(test_taskstats_cpu_without_the_exact_sum),
		cmocka_unit_test(test_cgroup_places),
		cmocka_unit_test(test_cgroup_place_too_long),
	};

	return cmocka_run_group_tests_name("kernel_text", tests, NULL, NULL);
}
