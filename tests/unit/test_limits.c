/* What the job may use, on machines of all kinds, and which limit binds. */
#include "node/limits.h"

#include "film_text.h"

#define GIB (1024.0 * 1024 * 1024)
#define MACHINE "file sys/devices/system/cpu/online\n|0-7\nfile proc/meminfo\n|MemTotal: 8388608 kB\n"
#define V2_OF(group)                                                       \
	"file proc/self/cgroup\n|0::" group "\nfile proc/self/mountinfo\n" \
	"|30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define V1_OF(group)                                                                        \
	"file proc/self/cgroup\n|3:cpu,cpuacct:" group "\n|2:memory:" group "\n"            \
	"file proc/self/mountinfo\n|30 23 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n" \
	"|31 23 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"

static void check(const char *what, const struct limits *l, double cpus, const char *cpus_source,
	double memory, const char *memory_source)
{
	if (l->cpus.value != cpus || strcmp(l->cpus.source, cpus_source))
		fail_msg("%s: %g CPUs by %s", what, l->cpus.value, l->cpus.source);
	if (l->memory.value != memory || strcmp(l->memory.source, memory_source))
		fail_msg("%s: %.0f bytes by %s", what, l->memory.value, l->memory.source);
	assert_true(l->cpus.known && l->memory.known);
}

static void test_machines(void **state)
{
	static const struct {
		const char *machine;
		pid_t pid;
		double cpus;
		const char *cpus_source;
		double memory;
		const char *memory_source;
	} c[] = {
		{"container-v2", 17, 1.5,
			"cgroup /kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope cpu.max",
			1.5 * GIB,
			"cgroup /kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope memory.high"},
		{"slurm-v2", 3001, 8, "cpuset /system.slice/slurmstepd.scope/job_4711/step_0/user/task_1",
			60 * GIB, "cgroup /system.slice/slurmstepd.scope/job_4711/step_0/user memory.max"},
		{"slurm-v2", 0, 8, "cpuset /system.slice/slurmstepd.scope/job_4711/step_0/user/task_1",
			60 * GIB, "cgroup /system.slice/slurmstepd.scope/job_4711/step_0/user memory.max"},
		/* Another's job, whose environment is hidden: ours has nothing to do with it. */
		{"slurm-v2", 4001, 128, "machine", 528105012 * 1024.0, "machine"},
		{"slurm26-v2", 3001, 8,
			"cpuset /system.slice/slurmstepd.scope/sFZ3A2KQ0M8W00/step_0/user/task_1", 60 * GIB,
			"cgroup /system.slice/slurmstepd.scope/sFZ3A2KQ0M8W00/step_0/user memory.max"},
		{"slurm-v1", 210, 4, "cpuset /slurm_node1/uid_1000/job_2/step_0", 8 * GIB,
			"cgroup /slurm_node1/uid_1000/job_2/step_0 memory.limit_in_bytes"},
		{"oar", 500, 3, "cpuset /oar/alice_12", 2 * GIB, "ulimit -v (each process)"},
		{"pbs", 700, 3.5, "cgroup /pbs_jobs.service/jobid cpu.cfs_quota_us", 6 * GIB,
			"cgroup /pbs_jobs.service/jobid/3[1].head memory.limit_in_bytes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_of("machines", c[i].machine);
		struct limits l;

		assert_int_equal(limits_read(env, c[i].pid, NULL, &l), 0);
		check(c[i].machine, &l, c[i].cpus, c[i].cpus_source, c[i].memory, c[i].memory_source);
		assert_true(l.machine_cpus >= l.cpus.value && l.machine_memory >= l.memory.value);
		env_free(env);
	}
}

/* One limit at a time: of the machine that a text describes. */
static const struct {
	const char *text;
	double cpus;
	const char *cpus_source;
	double memory;
	const char *memory_source;
} each[] = {
	{MACHINE, 8, "machine", 8 * GIB, "machine"},
	{"file proc/stat\n|cpu  1 2\n|cpu0 1 2\n|cpu3 1 2\n|intr 5\nfile proc/meminfo\n|MemFree: 1 "
	 "kB\n|MemTotal: "
	 "1048576 kB\n",
		2, "machine", GIB, "machine"},
	{MACHINE "file proc/self/status\n|Name:\tx\n|Cpus_allowed_list:\t0-1,6,100-200\n", 3, "affinity",
		8 * GIB, "machine"},
	{MACHINE "file proc/self/status\n|Cpus_allowed_list:\t0-7\n", 8, "machine", 8 * GIB, "machine"},
	/* The same CPUs: the group is why the process may not use more. */
	{MACHINE V2_OF("/a") "file proc/self/status\n|Cpus_allowed_list:\t2-3\n"
			     "file sys/fs/cgroup/cpuset.cpus.effective\n|2-3\n",
		2, "cpuset /", 8 * GIB, "machine"},
	{MACHINE V2_OF("/a/b") "file sys/fs/cgroup/a/cpu.max\n|250000 100000\n"
			       "file sys/fs/cgroup/a/b/cpu.max\n|max 100000\n"
			       "file sys/fs/cgroup/a/memory.max\n|max\nfile "
			       "sys/fs/cgroup/a/b/memory.max\n|1073741824\n",
		2.5, "cgroup /a cpu.max", GIB, "cgroup /a/b memory.max"},
	{MACHINE V2_OF("/a/b") "file sys/fs/cgroup/a/memory.max\n|1073741824\n"
			       "file sys/fs/cgroup/a/b/memory.max\n|2147483648\n",
		8, "machine", GIB, "cgroup /a memory.max"},
	{MACHINE V2_OF("/a/b") "file sys/fs/cgroup/a/b/memory.max\n|1073741824\n"
			       "file sys/fs/cgroup/a/memory.max\n|1073741824\n",
		8, "machine", GIB, "cgroup /a/b memory.max"},
	{MACHINE V2_OF("/a") "file sys/fs/cgroup/a/memory.max\n|0\nfile sys/fs/cgroup/a/cpu.max\n|x\n", 8,
		"machine", 8 * GIB, "machine"},
	{MACHINE V1_OF("/a") "file cg/memory/a/memory.limit_in_bytes\n|9223372036854771712\n"
			     "file cg/cpu/a/cpu.cfs_quota_us\n|-1\nfile "
			     "cg/cpu/a/cpu.cfs_period_us\n|100000\n",
		8, "machine", 8 * GIB, "machine"},
	{MACHINE V1_OF("/a") "file cg/memory/memory.limit_in_bytes\n|1073741824\n"
			     "file cg/cpu/a/cpu.cfs_quota_us\n|50000\nfile "
			     "cg/cpu/a/cpu.cfs_period_us\n|100000\n",
		0.5, "cgroup /a cpu.cfs_quota_us", GIB, "cgroup / memory.limit_in_bytes"},
	/* A group above that a container cannot see. */
	{MACHINE V1_OF("/a") "file cg/memory/a/memory.stat\n|cache 5\n|hierarchical_memory_limit "
			     "1073741824\n",
		8, "machine", GIB, "cgroup above /a"},
	{MACHINE "variable SLURM_JOB_ID=1\nvariable SLURM_CPUS_ON_NODE=4\nvariable "
		 "SLURM_MEM_PER_NODE=2048\n",
		4, "SLURM_CPUS_ON_NODE", 2 * GIB, "SLURM_MEM_PER_NODE"},
	{MACHINE "variable SLURM_JOB_ID=1\nvariable SLURM_CPUS_ON_NODE=4\nvariable "
		 "SLURM_MEM_PER_CPU=512\n",
		4, "SLURM_CPUS_ON_NODE", 2 * GIB, "SLURM_MEM_PER_CPU"},
	{MACHINE "variable SLURM_JOB_ID=1\nvariable SLURM_MEM_PER_NODE=0\n", 8, "machine", 8 * GIB,
		"machine"},
	{MACHINE "variable SLURM_CPUS_ON_NODE=4\nvariable NCPUS=2\n", 8, "machine", 8 * GIB, "machine"},
	{MACHINE "variable SLURM_JOBID=1\nvariable SLURM_JOB_CPUS_PER_NODE=2(x3),5,6\nvariable "
		 "SLURM_NODEID=3\n",
		5, "SLURM_JOB_CPUS_PER_NODE", 8 * GIB, "machine"},
	{MACHINE "variable SLURM_JOBID=1\nvariable SLURM_JOB_CPUS_PER_NODE=2(x3),5\n", 2,
		"SLURM_JOB_CPUS_PER_NODE", 8 * GIB, "machine"},
	{MACHINE "variable SLURM_JOBID=1\nvariable SLURM_JOB_CPUS_PER_NODE=2(x3),5\nvariable "
		 "SLURM_NODEID=4\n",
		8, "machine", 8 * GIB, "machine"},
	{MACHINE "variable SLURM_JOBID=1\nvariable SLURM_JOB_CPUS_PER_NODE=2(x\n", 8, "machine", 8 * GIB,
		"machine"},
	{MACHINE "variable SLURM_JOBID=1\nvariable SLURM_CPUS_ON_NODE=four\nvariable "
		 "SLURM_MEM_PER_NODE=-1\n",
		8, "machine", 8 * GIB, "machine"},
	{MACHINE "variable PBS_JOBID=1\nvariable NCPUS=2\n", 2, "NCPUS of PBS", 8 * GIB, "machine"},
	{MACHINE "variable PBS_JOBID=1\nvariable PBS_NUM_PPN=3\n", 3, "PBS_NUM_PPN", 8 * GIB, "machine"},
	{MACHINE "variable OAR_NODEFILE=/n\nfile n\n|a\n|b.x\n|b\n|bb\nfile "
		 "proc/sys/kernel/hostname\n|b.y\n",
		2, "OAR_NODEFILE", 8 * GIB, "machine"},
	{MACHINE "variable OAR_NODEFILE=/n\nfile proc/sys/kernel/hostname\n|b.y\n", 8, "machine", 8 * GIB,
		"machine"},
	{MACHINE "file proc/self/limits\n|Max data size   1073741824 unlimited bytes\n|Max address "
		 "space  unlimited "
		 "unlimited bytes\n",
		8, "machine", GIB, "ulimit -d (each process)"},
};

static void test_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		struct env *env = film_text(each[i].text);
		struct limits l;

		assert_int_equal(limits_read(env, 0, NULL, &l), 0);
		check(each[i].text, &l, each[i].cpus, each[i].cpus_source, each[i].memory,
			each[i].memory_source);
		env_free(env);
	}
}

static void test_overrides(void **state)
{
	struct env *env = film_of("machines", "slurm-v2");
	struct limits l;

	(void)state;
	assert_int_equal(limits_read(env, 3001, &(struct limits_override){.cpus = 200}, &l), 0);
	assert_true(l.cpus.value == 200);
	assert_string_equal(l.cpus.source, "--max-cpus");
	assert_true(l.memory.value == 60 * GIB);
	assert_true(l.machine_cpus == 128);
	assert_int_equal(limits_read(env, 3001, &(struct limits_override){.memory_bytes = 5}, &l), 0);
	assert_true(l.memory.value == 5 && l.cpus.value == 8);
	assert_string_equal(l.memory.source, "--max-memory");
	env_free(env);
}

static void test_nothing_is_known(void **state)
{
	struct env *env = film_text("file x\n");
	struct limits l;

	(void)state;
	assert_int_equal(limits_read(env, 0, NULL, &l), 0);
	assert_false(l.cpus.known || l.memory.known);
	assert_true(l.machine_cpus == 0 && l.machine_memory == 0);
	env_free(env);
	env = film_text(MACHINE V2_OF("/a"));
	assert_int_equal(limits_read(env, 5, NULL, &l), -ESRCH);
	assert_true(l.cpus.value == 8 && l.memory.value == 8 * GIB);
	env_free(env);
}

/* The same node, seen by a task, its job, a control group, and the machine. */
static void test_levels(void **state)
{
	static const char job[] = "/system.slice/slurmstepd.scope/job_4711";
	static const struct {
		struct limits_subject subject;
		double cpus;
		const char *cpus_source;
		double memory;
		const char *memory_source;
	} c[] = {
		{{LIMITS_PROCESS, 3001, NULL}, 8,
			"cpuset /system.slice/slurmstepd.scope/job_4711/step_0/user/task_1", 60 * GIB,
			"cgroup /system.slice/slurmstepd.scope/job_4711/step_0/user memory.max"},
		{{LIMITS_JOB, 3001, job}, 16, "cpuset /system.slice/slurmstepd.scope/job_4711", 64 * GIB,
			"cgroup /system.slice/slurmstepd.scope/job_4711 memory.max"},
		{{LIMITS_GROUP, 0, job}, 16, "cpuset /system.slice/slurmstepd.scope/job_4711", 64 * GIB,
			"cgroup /system.slice/slurmstepd.scope/job_4711 memory.max"},
		{{LIMITS_GROUP, 0, "/user.slice/user-1000.slice"}, 128, "machine", 528105012 * 1024.0,
			"machine"},
		{{LIMITS_GROUP, 0, "/../system.slice/slurmstepd.scope/job_4711"}, 128, "machine",
			528105012 * 1024.0, "machine"},
		{{LIMITS_GROUP, 0, NULL}, 128, "machine", 528105012 * 1024.0, "machine"},
	};
	struct env *env = film_of("machines", "slurm-v2");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct limits l;

		assert_int_equal(limits_read_of(env, &c[i].subject, NULL, &l), 0);
		check(c[i].subject.group ? c[i].subject.group : "no group", &l, c[i].cpus, c[i].cpus_source,
			c[i].memory, c[i].memory_source);
	}
	env_free(env);
}

/* Of a job on several nodes, seen from a step of ours on one of them. */
static void test_job_from_a_step(void **state)
{
#define STEP                                                                   \
	MACHINE "variable SLURM_JOB_ID=1\nvariable SLURM_STEP_ID=3\nvariable " \
		"SLURM_CPUS_ON_NODE=1\nvariable SLURM_NODEID=0\n"
	static const struct {
		const char *text;
		double cpus;
		const char *cpus_source;
		double memory;
		const char *memory_source;
	} c[] = {
		{STEP "variable SLURMD_NODENAME=n3\nvariable SLURM_JOB_NODELIST=n[1-3]\n"
		      "variable SLURM_JOB_CPUS_PER_NODE=2(x2),5\nvariable SLURM_MEM_PER_CPU=512\n",
			5, "SLURM_JOB_CPUS_PER_NODE", 2.5 * GIB, "SLURM_MEM_PER_CPU"},
		{STEP "variable SLURMD_NODENAME=g1\nvariable SLURM_JOB_NODELIST=g1\n"
		      "variable SLURM_JOB_CPUS_PER_NODE=2\n"
		      "variable SLURM_JOB_NODELIST_HET_GROUP_0=n[1-2]\n"
		      "variable SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=2(x2)\n"
		      "variable SLURM_JOB_NODELIST_HET_GROUP_1=g1\n"
		      "variable SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=7\n",
			7, "SLURM_JOB_CPUS_PER_NODE", 8 * GIB, "machine"},
		/* Where the job's lists say nothing of this node, what the step has is all that is known. */
		{STEP "variable SLURMD_NODENAME=n9\nvariable SLURM_JOB_NODELIST=n[1-3]\n"
		      "variable SLURM_JOB_CPUS_PER_NODE=2(x2),5\n",
			1, "SLURM_CPUS_ON_NODE", 8 * GIB, "machine"},
		{STEP "variable SLURMD_NODENAME=n3\nvariable SLURM_JOB_NODELIST=n[1-\n"
		      "variable SLURM_JOB_CPUS_PER_NODE=2(x2),5\n",
			1, "SLURM_CPUS_ON_NODE", 8 * GIB, "machine"},
		{STEP "variable SLURMD_NODENAME=n3\nvariable SLURM_JOB_NODELIST=n[1-3]\n"
		      "variable SLURM_JOB_CPUS_PER_NODE=2(x2\n",
			1, "SLURM_CPUS_ON_NODE", 8 * GIB, "machine"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_text(c[i].text);
		struct limits l;

		assert_int_equal(
			limits_read_of(env, &(struct limits_subject){.level = LIMITS_JOB}, NULL, &l), 0);
		check(c[i].text, &l, c[i].cpus, c[i].cpus_source, c[i].memory, c[i].memory_source);
		env_free(env);
	}
}

/* A user's slice, when we are elsewhere; and a container that sees its own part of the groups only. */
static void test_groups_by_name(void **state)
{
	struct env *env = film_text(
		MACHINE V2_OF("/a/b") "file sys/fs/cgroup/user.slice/user-7.slice/cgroup.procs\n|5\n"
				      "file sys/fs/cgroup/user.slice/memory.max\n|1073741824\n"
				      "file sys/fs/cgroup/user.slice/user-7.slice/cpu.max\n|150000 100000\n"
				      "file sys/fs/cgroup/cgroup.procs\n|1\n"
				      "file sys/fs/cgroup/a/b/memory.max\n|4096\n");
	struct limits_subject subject = {LIMITS_GROUP, 0, "/user.slice/user-7.slice"};
	struct limits l;

	(void)state;
	assert_int_equal(limits_read_of(env, &subject, NULL, &l), 0);
	check("slice", &l, 1.5, "cgroup /user.slice/user-7.slice cpu.max", GIB,
		"cgroup /user.slice memory.max");
	subject.group = "/";
	assert_int_equal(limits_read_of(env, &subject, NULL, &l), 0);
	check("top", &l, 8, "machine", 8 * GIB, "machine");
	env_free(env);

	env = film_text(MACHINE "file proc/self/cgroup\n|0::/box/a\nfile proc/self/mountinfo\n"
				"|30 23 0:26 /box /cg rw - cgroup2 cgroup2 rw\n"
				"file cg/b/cgroup.procs\n|5\nfile cg/b/memory.max\n|1073741824\n"
				"file cgb/cgroup.procs\n|5\nfile cgb/memory.max\n|4096\n");
	subject.group = "/box/b";
	assert_int_equal(limits_read_of(env, &subject, NULL, &l), 0);
	check("container", &l, 8, "machine", GIB, "cgroup /box/b memory.max");
	subject.group = "/boxb";
	assert_int_equal(limits_read_of(env, &subject, NULL, &l), 0);
	check("outside", &l, 8, "machine", 8 * GIB, "machine");
	env_free(env);
}

/* A long name loses its beginning, never in the midst of a character, and the file stays. */
static void test_long_names(void **state)
{
	static char text[8192], group[1000];

	(void)state;
	for (size_t shift = 0; shift < 2; shift++) {
		struct limits l;
		struct env *env;

		memset(group, 0, sizeof(group));
		memcpy(group, "/ab", 3);
		for (size_t i = 3; i + 2 < sizeof(group) - 1; i += 2)
			memcpy(group + i, i % 200 != 101 ? "\xc3\xa4" : "/x", 2);
		memcpy(group + strlen(group), "z", shift);
		snprintf(text, sizeof(text),
			MACHINE "file proc/self/cgroup\n|0::%s\nfile proc/self/mountinfo\n|30 23 0:26 / /cg "
				"rw - cgroup2 "
				"cgroup2 rw\nfile cg%s/memory.max\n|4096\n",
			group, group);
		env = film_text(text);
		assert_int_equal(limits_read(env, 0, NULL, &l), 0);
		assert_true(l.memory.value == 4096);
		assert_true(!strncmp(l.memory.source, "cgroup \xc3\xa4", 9));
		assert_non_null(strstr(l.memory.source, " memory.max"));
		env_free(env);
	}
}

/* What cannot be read does not limit, and nothing else comes of it. */
static void test_every_call_may_fail(void **state)
{
	static const int errors[] = {-EACCES, -EIO, -ENOENT};
	static const char *const machine[] = {"container-v2", "slurm-v1", "oar"};
	static const pid_t pid[] = {17, 210, 500};

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machine); m++)
		for (size_t e = 0; e < ARRAY_SIZE(errors); e++)
			for (unsigned nth = 1; nth < 60; nth++) {
				struct env *env =
					env_failing(film_of("machines", machine[m]), nth, errors[e]);
				struct limits l;
				int r = limits_read(env, pid[m], NULL, &l);

				assert_true(r == 0 || r == -ESRCH);
				assert_true(!l.cpus.known ||
					(l.cpus.value > 0 && l.cpus.value <= 64 && l.cpus.source[0]));
				assert_true(!l.memory.known || (l.memory.value > 0 && l.memory.source[0]));
				env_free(env);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_nothing_is_known),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_groups_by_name),
		cmocka_unit_test(test_job_from_a_step),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
