/* Control groups: where they lie on all kinds of hosts, and the collector that reads them. */
#include "node/cgroups.h"

#include "film_text.h"

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
	{"whichever comes first", "50 40 0:27 / /all ro - " V2 "51 40 0:27 /a /part rw - " V2, "0::/a/b\n",
		CGROUP_CPU, "all/a/b", "/a/b", true},
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

/* ---- the collector ---- */

/* Names are cut in the lab. */
static const char *shown(const char *name)
{
	static char cut[64];

	memccpy(cut, name, 0, sizeof(cut) - 1);
	return cut;
}

static void open_of(struct lab *lab, struct env *env, pid_t root)
{
	lab_init(lab, env, "cgroup");
	lab->feed.root = root;
	assert_int_equal(lab->collector->open(lab->state, &lab->ctx), 0);
	assert_int_equal(lab->table.nr_touched, 0);
	assert_int_equal(lab_sample(lab), 0);
}

static int64_t of_group(struct lab *lab, const char *group, const char *metric)
{
	return value(lab, shown(group), metric);
}

static const char *about_of(const struct lab *lab, const char *group)
{
	return about(lab, shown(group));
}

static void test_container(void **state)
{
	const char *pod = "/kubepods.slice/kubepods-pod12.slice";
	const char *own = "/kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope";
	struct env *env = film_of("machines", "container-v2");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 17);
	assert_int_equal(nr_instances(&lab), 2);
	assert_int_equal(lab.table.nr_touched, 2);
	/* The innermost group counts CPU and stalls, the one above it has the controllers. */
	assert_string_equal(about_of(&lab, own),
		"own=1;hierarchy=v2;cpuacct=/kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope/"
		"init;"
		"unified=/kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope/init;");
	assert_string_equal(about_of(&lab, pod), "apart=contains the job's own group;");
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.usage"), 7800000000);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.user"), 7000000000);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.system"), 800000000);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.periods"), 500);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.throttled_periods"), 120);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.throttled"), 7500000000);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.quota"), 1500);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.current"), 800000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.peak"), 1100000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.limit"), INVALID);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.anon"), 650000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.file"), 100000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.shmem"), 40000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.slab"), 20000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.swap"), 4096);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.oom"), 1);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.oom_kill"), 1);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.max_hits"), 2);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.high_hits"), 7);
	assert_int_equal(of_group(&lab, own, "cgroup.io.read_bytes"), 1000500);
	assert_int_equal(of_group(&lab, own, "cgroup.io.write_bytes"), 2000600);
	assert_int_equal(of_group(&lab, own, "cgroup.io.read_ops"), 11);
	assert_int_equal(of_group(&lab, own, "cgroup.io.write_ops"), 22);
	assert_int_equal(of_group(&lab, own, "cgroup.pids.current"), 33);
	assert_int_equal(of_group(&lab, own, "cgroup.pids.limit"), 200);
	assert_int_equal(of_group(&lab, own, "cgroup.pids.max_hits"), 5);
	assert_int_equal(of_group(&lab, own, "cgroup.pressure.cpu.some"), 7000);
	assert_int_equal(of_group(&lab, own, "cgroup.pressure.cpu.full"), 3500);
	assert_int_equal(of_group(&lab, own, "cgroup.pressure.memory.some"), 7001);
	assert_int_equal(of_group(&lab, own, "cgroup.pressure.io.full"), 3502);
	assert_int_equal(of_group(&lab, pod, "cgroup.memory.limit"), INT64_C(2) << 30);
	assert_int_equal(of_group(&lab, pod, "cgroup.cpu.usage"), 10000000000);
	assert_int_equal(of_group(&lab, pod, "cgroup.cpu.quota"), INVALID);
	assert_int_equal(of_group(&lab, pod, "cgroup.pids.current"), 40);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

/* A job up to 25.11 and the same from 26.05 on: other names, and a kernel that keeps peaks. */
static void test_slurm_v2(void **state)
{
	static const struct {
		const char *machine, *job;
		bool peak;
	} layout[] = {{"slurm-v2", "/system.slice/slurmstepd.scope/job_4711", false},
		{"slurm26-v2", "/system.slice/slurmstepd.scope/sFZ3A2KQ0M8W00", true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layout); i++) {
		struct env *env = film_of("machines", layout[i].machine);
		char own[128], user[128];
		struct lab lab;

		snprintf(own, sizeof(own), "%s/step_0/user/task_1", layout[i].job);
		snprintf(user, sizeof(user), "%s/step_0/user", layout[i].job);
		open_of(&lab, env, 3001);
		assert_int_equal(nr_instances(&lab), 4); /* up to the job, which has the topmost limit */
		assert_string_equal(about_of(&lab, own), "own=1;hierarchy=v2;");
		assert_int_equal(of_group(&lab, own, "cgroup.memory.current"), INT64_C(13) << 30);
		assert_int_equal(of_group(&lab, own, "cgroup.memory.peak"),
			layout[i].peak ? INT64_C(18) << 30 : INVALID);
		assert_int_equal(of_group(&lab, own, "cgroup.cpu.usage"), 26400000000);
		assert_int_equal(of_group(&lab, own, "cgroup.io.write_bytes"), 8192);
		assert_int_equal(of_group(&lab, user, "cgroup.memory.limit"), INT64_C(60) << 30);
		assert_int_equal(of_group(&lab, layout[i].job, "cgroup.memory.limit"), INT64_C(64) << 30);
		assert_int_equal(of_group(&lab, layout[i].job, "cgroup.memory.max_hits"), 3);
		assert_int_equal(
			availability(&lab, "cgroup.memory.peak"), layout[i].peak ? AVAILABLE : ABSENT);
		assert_int_equal(availability(&lab, "cgroup.cpu.quota"), ABSENT);
		assert_string_equal(lab.why, "no such limit is set");
		lab_release(&lab);
		env_free(env);
	}
}

/* Every controller has another path; those in the root say nothing of the job. */
static void test_slurm_v1(void **state)
{
	const char *own = "/slurm_node1/uid_1000/job_2/step_0/task_0";
	struct env *env = film_of("machines", "slurm-v1");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 210);
	assert_int_equal(nr_instances(&lab), 3);
	assert_string_equal(
		about_of(&lab, own), "own=1;hierarchy=v1;cpuacct=/slurm_node1/uid_1000/job_2/step_0/task_1;");
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.usage"), 123456789000);
	assert_int_equal(
		of_group(&lab, own, "cgroup.cpu.user"), 100000000000); /* in clock ticks on this kernel */
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.system"), 20000000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.current"), INT64_C(3) << 30);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.peak"), INT64_C(4) << 30);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.limit"), INVALID);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.oom_kill"), 2);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.anon"), INT64_C(2) << 30);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.file"), INT64_C(1) << 29);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.shmem"), INT64_C(1) << 28);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.swap"), 4096);
	assert_int_equal(of_group(&lab, "/slurm_node1/uid_1000/job_2/step_0", "cgroup.memory.limit"),
		INT64_C(8) << 30);
	assert_int_equal(of_group(&lab, "/slurm_node1/uid_1000/job_2", "cgroup.memory.max_hits"), 12);
	assert_int_equal(availability(&lab, "cgroup.cpu.throttled"), ABSENT);
	assert_int_equal(availability(&lab, "cgroup.pids.current"), ABSENT);
	assert_int_equal(availability(&lab, "cgroup.memory.slab"), ABSENT);
	assert_int_equal(availability(&lab, "cgroup.pressure.cpu.some"), ABSENT);
	assert_int_equal(availability(&lab, "cgroup.memory.limit"), AVAILABLE);
	lab_release(&lab);
	env_free(env);
}

static void test_oar_and_pbs(void **state)
{
	struct env *env = film_of("machines", "oar");
	const char *job = "/pbs_jobs.service/jobid/3[1].head";
	struct lab lab;

	(void)state;
	open_of(&lab, env, 500);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(of_group(&lab, "/oar/alice_12", "cgroup.cpu.usage"), 5000000000);
	assert_int_equal(of_group(&lab, "/oar/alice_12", "cgroup.cpu.user"), 4000000000);
	assert_int_equal(of_group(&lab, "/oar/alice_12", "cgroup.memory.current"), INVALID);
	assert_int_equal(availability(&lab, "cgroup.memory.current"), ABSENT);
	lab_release(&lab);
	env_free(env);
	env = film_of("machines", "pbs");
	open_of(&lab, env, 700);
	assert_int_equal(nr_instances(&lab), 3); /* up to the limit of memory at pbs_jobs.service */
	assert_int_equal(of_group(&lab, job, "cgroup.memory.limit"), INT64_C(6) << 30);
	assert_int_equal(of_group(&lab, job, "cgroup.cpu.quota"), INVALID);
	assert_int_equal(of_group(&lab, "/pbs_jobs.service/jobid", "cgroup.cpu.quota"), 3500);
	assert_int_equal(of_group(&lab, "/pbs_jobs.service/jobid", "cgroup.cpu.throttled"), 2500000000);
	assert_int_equal(of_group(&lab, "/pbs_jobs.service/jobid", "cgroup.memory.peak"), INT64_C(11) << 30);
	assert_int_equal(of_group(&lab, "/pbs_jobs.service", "cgroup.memory.limit"), INT64_C(48) << 30);
	lab_release(&lab);
	env_free(env);
}

static void next(struct lab *lab, struct env *env, int64_t seconds, bool medium)
{
	int64_t start = env_now(env, ENV_MONOTONIC);

	assert_int_equal(env_sleep_until(env, start + seconds * NSEC_PER_SEC), 0);
	lab->ctx.medium = medium;
	assert_int_equal(lab_sample(lab), 0);
}

/* The job enters another group, is killed there for want of memory, and the group is removed under it. */
static void test_the_job_moves(void **state)
{
	const char *old = "/user.slice/session-1.scope", *own = "/user.slice/job.scope";
	struct env *env = film_of("films", "cgroup-moves");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 100);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(of_group(&lab, old, "cgroup.cpu.usage"), 1100000000);
	next(&lab, env, 1, false);
	assert_int_equal(of_group(&lab, old, "cgroup.cpu.usage"), 2200000000);
	next(&lab, env, 1, false);
	assert_int_equal(row_of(&lab, old), -1);
	assert_int_equal(nr_instances(&lab), 1);
	assert_int_equal(of_group(&lab, own, "cgroup.cpu.throttled"), 250000000);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.limit"), 67108864);
	next(&lab, env, 1, false);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.oom_kill"), 1);
	assert_int_equal(of_group(&lab, own, "cgroup.memory.peak"), 67108864);
	/* Removed: nothing is read any more, and the last values were not overwritten before it left. */
	next(&lab, env, 1, true);
	assert_int_equal(lab.table.nr_touched, 0);
	assert_int_equal(nr_instances(&lab), 0);
	next(&lab, env, 1, true);
	assert_int_equal(nr_instances(&lab), 0);
	lab_release(&lab);
	env_free(env);
}

/* Nobody yet; then the first member is as good as the root. */
static void test_a_job_that_is_still_to_come(void **state)
{
	struct env *env = film_of("machines", "container-v2");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 0);
	assert_int_equal(nr_instances(&lab), 0);
	assert_int_equal(lab.whys, 0);
	lab.member[0] = 17;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(nr_instances(&lab), 2);
	assert_int_equal(lab.table.nr_touched, 2);
	lab_release(&lab);
	open_of(&lab, env, 99999); /* ended already */
	assert_int_equal(nr_instances(&lab), 0);
	lab_release(&lab);
	env_free(env);
}

/* A file is opened only for rows that are recorded, and each only once. */
struct counting {
	struct env env;
	struct env_ops ops;
	struct env *inner;
	char opened[64][80];
	unsigned nr;
};

static int counting_open(struct env *env, const char *path)
{
	struct counting *c = (struct counting *)env;

	if (strstr(path, "cgroup/") && c->nr < ARRAY_SIZE(c->opened))
		snprintf(c->opened[c->nr++], sizeof(c->opened[0]), "%s", strrchr(path, '/') + 1);
	return env_open(c->inner, path);
}

static ssize_t counting_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	return env_read_at(((struct counting *)env)->inner, handle, out, size, offset);
}

static void counting_close(struct env *env, int handle)
{
	env_close(((struct counting *)env)->inner, handle);
}

static bool was_opened(const struct counting *c, const char *file)
{
	for (unsigned i = 0; i < c->nr; i++)
		if (!strcmp(c->opened[i], file))
			return true;
	return false;
}

static void test_only_what_is_recorded_is_opened(void **state)
{
	struct counting c = {.inner = film_of("machines", "container-v2")};
	struct lab lab;
	unsigned found;

	(void)state;
	c.ops = (struct env_ops){.open = counting_open, .read = counting_read, .close = counting_close};
	c.env = (struct env){.ops = &c.ops, .page_size = 4096, .clock_tick = 100};
	lab_init(&lab, &c.env, "cgroup");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "cgroup.memory.peak")] = 0;
	lab.feed.root = 17;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_true(was_opened(&c, "memory.peak"));
	assert_false(was_opened(&c, "memory.stat"));
	assert_false(was_opened(&c, "memory.events"));
	assert_false(was_opened(&c, "io.pressure"));
	found = c.nr;
	lab_sample(&lab);
	assert_int_equal(c.nr, found);
	assert_int_equal(
		of_group(&lab, "/kubepods.slice/kubepods-pod12.slice", "cgroup.memory.peak"), 1200000000);
	lab_release(&lab);
	env_free(c.inner);
}

/* Whatever fails, nothing is wrong afterwards and nothing that was read is lost. */
static void test_every_call_may_fail(void **state)
{
	static const int errors[] = {-EACCES, -EIO, -ENOENT, -ENODEV, -EMFILE};

	(void)state;
	for (size_t e = 0; e < ARRAY_SIZE(errors); e++)
		for (unsigned nth = 1; nth < 120; nth++) {
			struct env *env = env_failing(film_of("machines", "container-v2"), nth, errors[e]);
			struct lab lab;
			int row;

			lab_init(&lab, env, "cgroup");
			lab.feed.root = 17;
			assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
			lab_sample(&lab);
			lab_sample(&lab);
			row = row_of(&lab, "/kubepods.slice/kubepods-pod12.slice");
			if (row >= 0 && value(&lab, lab.name[row], "cgroup.memory.limit") != INVALID)
				assert_int_equal(
					value(&lab, lab.name[row], "cgroup.memory.limit"), INT64_C(2) << 30);
			lab_release(&lab);
			env_free(env);
		}
}

#define HOST                                                       \
	"file proc/self/cgroup\n|0::/\nfile proc/self/mountinfo\n" \
	"|30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"   \
	"file proc/7/stat\n|7 (x) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 1 1\n"

static void test_reasons(void **state)
{
	static const struct {
		const char *what, *text, *metric, *why;
		enum availability availability;
	} c[] = {
		{"the root group",
			HOST "file proc/7/cgroup\n|0::/\nfile sys/fs/cgroup/cpu.stat\n|usage_usec 5\n",
			"cgroup.cpu.usage", "the job is in the root group, which counts the whole machine",
			ABSENT},
		{"no controller",
			HOST "file proc/7/cgroup\n|0::/a\nfile sys/fs/cgroup/a/cgroup.events\n|populated 1\n"
			     "file sys/fs/cgroup/a/cpu.stat\n|usage_usec 5\n",
			"cgroup.memory.current", "the controller is not enabled for the job's group", ABSENT},
		{"nothing mounted",
			"file proc/self/cgroup\n|0::/\nfile proc/self/mountinfo\nfile proc/7/cgroup\n|0::/a\n"
			"file proc/7/stat\n|7 (x) R 1\n",
			"cgroup.memory.current", "no control group that counts it is mounted", ABSENT},
		{"not readable",
			HOST "file proc/7/cgroup\n|0::/a\nfile sys/fs/cgroup/a/cpu.stat\n|usage_usec 5\n"
			     "file sys/fs/cgroup/a/memory.current\n|5\nerror sys/fs/cgroup/a/memory.current "
			     "open EACCES\n",
			"cgroup.memory.current", "the group's files are not readable", FORBIDDEN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_text(c[i].text);
		struct lab lab;

		lab_init(&lab, env, "cgroup");
		for (size_t m = 0; m < lab.collector->nr_metrics; m++)
			lab.ctx.map.col[m] = m == index_of(&lab, c[i].metric) ? 0 : -1;
		lab.feed.root = 7;
		assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
		assert_int_equal(lab_sample(&lab), 0);
		if (lab.whys != 1 || strcmp(lab.why, c[i].why))
			fail_msg("%s: %u reasons, %s", c[i].what, lab.whys, lab.why);
		assert_int_equal(availability(&lab, c[i].metric), c[i].availability);
		assert_true(lab.table.nr_rows == 0 || lab.table.valid[0] == 0);
		lab_release(&lab);
		env_free(env);
	}
}

/* The group is removed when its last process has ended, as ours are. Files of the medium tier are not asked
 * until they are due: it stays so long, with its last values. */
static void test_a_group_that_is_removed(void **state)
{
	struct env *env =
		film_text(HOST "file proc/7/cgroup\n|0::/a\n"
			       "file sys/fs/cgroup/a/cpu.stat\n|usage_usec 5\n"
			       "file sys/fs/cgroup/a/memory.current\n|6\n"
			       "file sys/fs/cgroup/a/memory.max\n|7\n"
			       "frame 1\nremove proc/7\nremove sys/fs/cgroup/a\nframe 2\nframe 3\n");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 7);
	next(&lab, env, 1, false);
	assert_int_equal(lab.table.nr_touched, 0);
	assert_int_equal(of_group(&lab, "/a", "cgroup.cpu.usage"), 5000);
	assert_int_equal(of_group(&lab, "/a", "cgroup.memory.current"), 6);
	next(&lab, env, 1, true);
	assert_int_equal(nr_instances(&lab), 0);
	lab_release(&lab);
	env_free(env);
}

static unsigned leaves;

static void count_leave(struct collect_context *ctx, uint32_t row)
{
	leaves++;
	lab_leave(ctx, row);
}

/* A group that has left does not leave again when the job goes elsewhere, or at any later sample. */
static void test_a_group_leaves_once(void **state)
{
	struct env *env = film_text(HOST "file proc/7/cgroup\n|0::/a\n"
					 "file sys/fs/cgroup/a/cpu.stat\n|usage_usec 5\n"
					 "file sys/fs/cgroup/b/cpu.stat\n|usage_usec 6\n"
					 "frame 1\nremove sys/fs/cgroup/a\nframe 2\n"
					 "frame 3\nfile proc/7/cgroup\n|0::/b\nframe 4\n");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 7);
	lab.ctx.leave = count_leave;
	leaves = 0;
	next(&lab, env, 1, true);
	next(&lab, env, 1, true);
	assert_int_equal(leaves, 1);
	assert_int_equal(nr_instances(&lab), 0);
	next(&lab, env, 1, true);
	assert_int_equal(leaves, 1);
	assert_int_equal(of_group(&lab, "/b", "cgroup.cpu.usage"), 6000);
	lab_release(&lab);
	env_free(env);
}

/* v1 shows a process in the root from the moment it begins to end. */
static void test_a_dying_process_is_not_followed(void **state)
{
	static const char hybrid[] =
		"file proc/self/cgroup\n|2:memory:/\n|1:cpuacct:/\n|0::/\nfile proc/self/mountinfo\n"
		"|30 23 0:26 / /m rw - cgroup cgroup rw,memory\n|31 23 0:27 / /c rw - cgroup cgroup "
		"rw,cpuacct\n"
		"|32 23 0:28 / /u rw - cgroup2 cgroup2 rw\n"
		"file proc/7/cgroup\n|2:memory:/j\n|1:cpuacct:/j\n|0::/v\n"
		"file proc/7/stat\n|7 (x) y) R 1 7 7 0 -1 4194304 0 0\n"
		"file m/release_agent\nfile c/release_agent\nfile m/j/memory.usage_in_bytes\n|11\n"
		"file c/j/cpuacct.usage\n|12\nfile c/j/cpuacct.usage_user\n|8\nfile u/v/cpu.stat\n"
		"|usage_usec 99\n|user_usec 99\n|system_usec 3\n"
		"frame 1\nfile proc/7/cgroup\n|2:memory:/\n|1:cpuacct:/\n|0::/v\n"
		"file proc/7/stat\n|7 (x) y) R 1 7 7 0 -1 4194308 0 0\nfile "
		"m/j/memory.usage_in_bytes\n|13\nframe 2\n";
	struct env *env = film_text(hybrid);
	struct lab lab;

	(void)state;
	open_of(&lab, env, 7);
	assert_string_equal(about_of(&lab, "/j"), "own=1;hierarchy=v1+v2;unified=/v;");
	/* v1 has the first word; v2 gives only what that lacks. */
	assert_int_equal(of_group(&lab, "/j", "cgroup.cpu.usage"), 12);
	assert_int_equal(of_group(&lab, "/j", "cgroup.cpu.user"), 8);
	assert_int_equal(of_group(&lab, "/j", "cgroup.cpu.system"), 3000);
	next(&lab, env, 1, true);
	assert_int_equal(of_group(&lab, "/j", "cgroup.memory.current"), 13);
	assert_int_equal(of_group(&lab, "/j", "cgroup.cpu.usage"), 12);
	assert_int_equal(nr_instances(&lab), 1);
	lab_release(&lab);
	env_free(env);
}

/* What the root counts is the machine's, also when no group below it has the controller. */
static void test_the_root_is_nobodys_group(void **state)
{
	struct env *env =
		film_text(HOST "file proc/7/cgroup\n|0::/a\nfile sys/fs/cgroup/io.stat\n|8:0 rbytes=5\n"
			       "file sys/fs/cgroup/a/cpu.stat\n|usage_usec 5\n");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 7);
	assert_int_equal(of_group(&lab, "/a", "cgroup.cpu.usage"), 5000);
	assert_int_equal(of_group(&lab, "/a", "cgroup.io.read_bytes"), INVALID);
	assert_int_equal(availability(&lab, "cgroup.io.read_bytes"), ABSENT);
	lab_release(&lab);
	env_free(env);
}

/* Files as no kernel writes them. */
static void test_odd_files(void **state)
{
	struct env *env =
		film_text(HOST "file proc/7/cgroup\n|0::/a b\n"
			       "file sys/fs/cgroup/a\\x20b/cpu.stat\n|usage_usec\n|user_usec "
			       "x\n|system_usec 7\n|nr_periods 1"
			       "\nfile sys/fs/cgroup/a\\x20b/cpu.max\n|100000 0\n"
			       "file sys/fs/cgroup/a\\x20b/memory.current\n"
			       "file sys/fs/cgroup/a\\x20b/memory.max\n|99999999999999999999999999\n"
			       "file sys/fs/cgroup/a\\x20b/io.stat\n|8:0 rbytes=\n|8:0 rbytes=5 "
			       "rbytes=6\n|: wbytes=7\n|wbytes=9\n:8:0 wbytes=3\n"
			       "file sys/fs/cgroup/a\\x20b/pids.current\n|-\n"
			       "file sys/fs/cgroup/a\\x20b/pids.max\n|maximum\n"
			       "file sys/fs/cgroup/a\\x20b/cpu.pressure\n|some total=x\n");
	struct lab lab;

	(void)state;
	open_of(&lab, env, 7);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.cpu.usage"), INVALID);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.cpu.user"), INVALID);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.cpu.system"), 7000);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.cpu.quota"), INVALID);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.memory.current"), INVALID);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.io.read_bytes"), 5);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.io.write_bytes"), 7);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.pids.limit"), INVALID);
	assert_int_equal(of_group(&lab, "/a b", "cgroup.pressure.cpu.some"), INVALID);
	lab_release(&lab);
	env_free(env);
}

/* More limits above than there are rows: the nearest are kept. */
static void test_a_deep_tree(void **state)
{
	static char text[64 << 10];
	char path[400] = "";
	size_t n = 0;
	struct env *env;
	struct lab lab;

	(void)state;
	n += (size_t)snprintf(text, sizeof(text), HOST);
	for (int i = 0; i < 30; i++) {
		size_t len = strlen(path);

		snprintf(path + len, sizeof(path) - len, "/%d", i);
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"file sys/fs/cgroup%s/memory.current\n|%d\nfile sys/fs/cgroup%s/memory.max\n|1000\n",
			path, i, path);
	}
	snprintf(text + n, sizeof(text) - n, "file proc/7/cgroup\n|0::%s\n", path);
	env = film_text(text);
	open_of(&lab, env, 7);
	assert_int_equal(nr_instances(&lab), lab.collector->max_rows);
	assert_int_equal(
		table_row(&lab.table, 0)[lab.ctx.map.col[index_of(&lab, "cgroup.memory.current")]], 29);
	lab_release(&lab);
	env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names_are_known_without_mounts),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_up),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_slurm_v2),
		cmocka_unit_test(test_slurm_v1),
		cmocka_unit_test(test_oar_and_pbs),
		cmocka_unit_test(test_the_job_moves),
		cmocka_unit_test(test_a_group_that_is_removed),
		cmocka_unit_test(test_a_group_leaves_once),
		cmocka_unit_test(test_a_dying_process_is_not_followed),
		cmocka_unit_test(test_the_root_is_nobodys_group),
		cmocka_unit_test(test_a_job_that_is_still_to_come),
		cmocka_unit_test(test_only_what_is_recorded_is_opened),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_a_deep_tree),
	};

	return cmocka_run_group_tests_name("cgroups", tests, NULL, NULL);
}
