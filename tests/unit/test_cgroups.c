/* Where control groups lie: mounts and groups of all kinds of hosts, as text and as machines. */
#include "node/cgroups.h"

#include "collect_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct place_case {
	const char *what, *mountinfo, *groups;
	enum cgroup_controller controller;
	const char *path, *below; /* path NULL: none */
	bool v2;
};

#define V1 "cgroup cgroup rw,cpu,cpuacct\n"
#define V2 "cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID                                                                                            \
	"41 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - " V1 "42 25 0:27 / /sys/fs/cgroup/unified rw - " V2 \
	"43 25 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
#define HYBRID_GROUPS "5:memory:/m\n4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n"

static const struct place_case place_case[] = {
	{"systemd on v2",
		"22 1 0:20 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - " V2,
		"0::/user.slice/user-1000.slice/session-3.scope\n", CGROUP_MEMORY,
		"sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope",
		"/user.slice/user-1000.slice/session-3.scope", true},
	{"hybrid: v1 has it", HYBRID, HYBRID_GROUPS, CGROUP_CPU, "sys/fs/cgroup/cpu,cpuacct/a", "/a", false},
	{"hybrid: mounted with another", HYBRID, HYBRID_GROUPS, CGROUP_CPUACCT, "sys/fs/cgroup/cpu,cpuacct/a",
		"/a", false},
	{"hybrid: v2 itself", HYBRID, HYBRID_GROUPS, CGROUP_UNIFIED, "sys/fs/cgroup/unified/c", "/c", true},
	{"hybrid: v1 names it but it is mounted nowhere", HYBRID, HYBRID_GROUPS, CGROUP_MEMORY, NULL, NULL,
		false},
	{"hybrid: a controller that v1 does not name is v2's", HYBRID, HYBRID_GROUPS, CGROUP_PIDS,
		"sys/fs/cgroup/unified/c", "/c", true},
	{"v1 only", "41 25 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n", "4:cpuset:/a\n",
		CGROUP_CPUSET, "sys/fs/cgroup/cpuset/a", "/a", false},
	{"v1 without it", "41 25 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
		"4:cpuset:/a\n", CGROUP_CPU, NULL, NULL, false},
	{"cpuset is not cpu", "41 25 0:30 / /x rw - cgroup cgroup rw,cpuset\n", "4:cpu:/a\n", CGROUP_CPU,
		NULL, NULL, false},
	{"blkio is io", "41 25 0:30 / /x rw - cgroup cgroup rw,blkio\n", "4:blkio:/a\n", CGROUP_IO, "x/a",
		"/a", false},
	{"a named hierarchy is no controller", "41 25 0:30 / /x rw - cgroup cgroup rw,name=cpu\n",
		"4:name=cpu:/a\n", CGROUP_CPU, NULL, NULL, false},
	{"a container that sees only its own group",
		"50 40 0:27 /docker/abc /sys/fs/cgroup ro master:3 - " V2, "0::/docker/abc\n", CGROUP_CPU,
		"sys/fs/cgroup", "", true},
	{"a group below the root of the mount", "50 40 0:27 /docker/abc /sys/fs/cgroup ro - " V2,
		"0::/docker/abc/inner\n", CGROUP_CPU, "sys/fs/cgroup/inner", "/inner", true},
	{"a root that only begins alike", "50 40 0:27 /docker/ab /sys/fs/cgroup ro - " V2, "0::/docker/abc\n",
		CGROUP_CPU, NULL, NULL, true},
	{"a mount above a cgroup namespace", "50 40 0:27 /.. /sys/fs/cgroup ro - " V2, "0::/\n", CGROUP_CPU,
		NULL, NULL, true},
	{"a neighbour seen through such a mount", "50 40 0:27 /.. /sys/fs/cgroup ro - " V2, "0::/../other\n",
		CGROUP_CPU, "sys/fs/cgroup/other", "/other", true},
	{"outside of the namespace's root", "50 40 0:27 / /sys/fs/cgroup ro - " V2, "0::/../other\n",
		CGROUP_CPU, NULL, NULL, true},
	{"further outside", "50 40 0:27 /.. /sys/fs/cgroup ro - " V2, "0::/../../x\n", CGROUP_CPU, NULL, NULL,
		true},
	{"no way up from within", "50 40 0:27 / /cg ro - " V2, "0::/a/../../etc\n", CGROUP_CPU, NULL, NULL,
		true},
	{"dots in a name", "50 40 0:27 / /cg ro - " V2, "0::/..a/b..\n", CGROUP_CPU, "cg/..a/b..", "/..a/b..",
		true},
	{"at the root", "50 40 0:27 / /cg rw - " V2, "0::/\n", CGROUP_CPU, "cg", "", true},
	{"blanks in the path", "50 40 0:27 / /my\\040cg\\134x rw - " V2, "0::/a b\n", CGROUP_CPU,
		"my cg\\x/a b", "/a b", true},
	{"blanks in the root", "50 40 0:27 /a\\040b /cg rw - " V2, "0::/a b/c\n", CGROUP_CPU, "cg/c", "/c",
		true},
	{"colons in the path", "50 40 0:27 / /cg rw - " V2, "0::/a:b:c\n", CGROUP_CPU, "cg/a:b:c", "/a:b:c",
		true},
	{"the mount that shows most", "50 40 0:27 /a /part rw - " V2 "51 40 0:27 / /all ro - " V2,
		"0::/a/b\n", CGROUP_CPU, "all/a/b", "/a/b", true},
	{"the mount that may be written", "50 40 0:27 / /ro ro - " V2 "51 40 0:27 / /rw rw - " V2,
		"0::/a/b\n", CGROUP_CPU, "rw/a/b", "/a/b", true},
	{"the first of equals", "50 40 0:27 / /one rw - " V2 "51 40 0:27 / /two rw - " V2, "0::/a/b\n",
		CGROUP_CPU, "one/a/b", "/a/b", true},
	{"hidden by a later mount", "50 40 0:27 / /cg rw - " V2 "51 50 0:40 / /cg rw - tmpfs tmpfs rw\n",
		"0::/a\n", CGROUP_CPU, NULL, NULL, true},
	{"nothing", "", "", CGROUP_CPU, NULL, NULL, true},
	{"cut lines", "50 40 0:27 / /cg rw -", "0::", CGROUP_CPU, NULL, NULL, true},
	{"cut lines", "50 40", "0", CGROUP_CPU, NULL, NULL, true},
	{"a mount on everything", "50 40 0:27 / / rw - " V2, "0::/a\n", CGROUP_CPU, NULL, NULL, true},
	{"a relative group", "50 40 0:27 / /cg rw - " V2, "0::a\n", CGROUP_CPU, NULL, NULL, true},
};

static void test_places(void **state)
{
	static struct cgroups all;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(place_case); i++) {
		const struct place_case *c = &place_case[i];
		const struct cgroup_dir *d = &all.dir[c->controller];

		cgroups_parse(c->groups, c->mountinfo, &all);
		if (d->found != !!c->path)
			fail_msg("%s: %s", c->what, d->found ? d->path : "not found");
		if (!d->found)
			continue;
		if (strcmp(d->path, c->path) || strcmp(d->path + d->mount_len, c->below) || d->v2 != c->v2)
			fail_msg("%s: %s", c->what, d->path);
	}
}

static void test_names_are_known_without_mounts(void **state)
{
	static struct cgroups all;

	(void)state;
	cgroups_parse(HYBRID_GROUPS, "", &all);
	assert_string_equal(all.dir[CGROUP_MEMORY].group, "/m");
	assert_string_equal(all.dir[CGROUP_UNIFIED].group, "/c");
	assert_false(all.dir[CGROUP_MEMORY].found);
	assert_false(all.has_v1 || all.has_v2);
	cgroups_parse(HYBRID_GROUPS, HYBRID, &all);
	assert_true(all.has_v1 && all.has_v2);
}

static void test_too_long(void **state)
{
	static char groups[2 * PATH_MAX], mounts[3 * PATH_MAX];
	static struct cgroups all;

	(void)state;
	memset(groups, 'a', sizeof(groups) - 1);
	memcpy(groups, "0::/", 4);
	cgroups_parse(groups, "50 40 0:27 / /cg rw - " V2, &all);
	assert_false(all.dir[CGROUP_CPU].found);
	groups[3 + 1024] = '\0';
	cgroups_parse(groups, "50 40 0:27 / /cg rw - " V2, &all);
	assert_false(all.dir[CGROUP_CPU].found);
	groups[3 + 1023] = '\0';
	cgroups_parse(groups, "50 40 0:27 / /cg rw - " V2, &all);
	assert_true(all.dir[CGROUP_CPU].found);
	for (int len = PATH_MAX - 1023 - 2; len < PATH_MAX - 1023 + 2; len++) {
		snprintf(mounts, sizeof(mounts), "50 40 0:27 / /%0*d rw - " V2, len, 0);
		cgroups_parse(groups, mounts, &all);
		assert_int_equal(all.dir[CGROUP_CPU].found, len + 1023 < PATH_MAX);
	}
}

static void test_up(void **state)
{
	static struct cgroups all;
	struct cgroup_dir *d = &all.dir[CGROUP_CPU];

	(void)state;
	cgroups_parse("0::/docker/abc/in ner\n", "50 40 0:27 /docker /sys/fs/cgroup ro - " V2, &all);
	assert_string_equal(d->path, "sys/fs/cgroup/abc/in ner");
	assert_true(cgroup_dir_up(d));
	assert_string_equal(d->path, "sys/fs/cgroup/abc");
	assert_string_equal(d->group, "/docker/abc");
	assert_true(cgroup_dir_up(d));
	assert_string_equal(d->path, "sys/fs/cgroup");
	assert_string_equal(d->group, "/docker");
	assert_false(cgroup_dir_up(d));
	assert_string_equal(d->path, "sys/fs/cgroup");
	cgroups_parse("0::/a\n", "50 40 0:27 / /cg ro - " V2, &all);
	assert_true(cgroup_dir_up(d));
	assert_string_equal(d->group, "/");
	assert_string_equal(d->path, "cg");
	assert_false(cgroup_dir_up(d));
}

/* Whatever the texts are cut to, nothing is read behind their end. */
static void test_cut_anywhere(void **state)
{
	static struct cgroups all;

	(void)state;
	for (size_t n = 0; n <= strlen(HYBRID); n++) {
		char *mounts = strndup(HYBRID, n), *groups = strndup(HYBRID_GROUPS, n);

		cgroups_parse(HYBRID_GROUPS, mounts, &all);
		cgroups_parse(groups, HYBRID, &all);
		free(mounts);
		free(groups);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names_are_known_without_mounts),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_up),
		cmocka_unit_test(test_cut_anywhere),
	};

	return cmocka_run_group_tests_name("cgroups", tests, NULL, NULL);
}
