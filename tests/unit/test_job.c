/* Jobs of SLURM, PBS and OAR: the texts that tell them apart, machines on which each way of knowing is the
 * one that works, and a scontrol that answers, babbles, floods or hangs. */
#include "film_text.h"
#include "node/host_list.h"
#include "target/job.h"
#include "target/job_scontrol.h"
#include "target/job_text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- names ---- */

static void test_names(void **state)
{
	static const struct {
		const char *text;
		enum scheduler kind;
		const char *id; /* NULL: refused */
	} c[] = {
		{"7", SCHEDULER_NONE, "7"},
		{"slurm:7", SCHEDULER_SLURM, "7"},
		{"oar:12", SCHEDULER_OAR, "12"},
		{"lsf:7", SCHEDULER_LSF, "7"},
		{"sge:8", SCHEDULER_SGE, "8"},
		{"pbs:0.head", SCHEDULER_PBS, "0.head"},
		{"pbs:7", SCHEDULER_PBS, "7"},
		{"7.head", SCHEDULER_PBS, "7.head"},
		{"3[1].head-2.site_a", SCHEDULER_PBS, "3[1].head-2.site_a"},
		{"sAB12", SCHEDULER_NONE, "sAB12"},
		{"slurm:sAB12", SCHEDULER_SLURM, "sAB12"},
		{"", 0, NULL},
		{"slurm:", 0, NULL},
		{"pbs:", 0, NULL},
		{"oar:x", 0, NULL},
		{"slurm:7.0", 0, NULL},
		{"7_3", 0, NULL},
		{"-7", 0, NULL},
		{"7;reboot", 0, NULL},
		{"7/..", 0, NULL},
		{"7 8", 0, NULL},
		{"cobalt:7", 0, NULL},
		{"\xff", 0, NULL},
	};
	static char longest[200];
	struct job_name name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		bool ok = job_name_parse(c[i].text, &name);

		if (ok != !!c[i].id)
			fail_msg("'%s': %s", c[i].text, ok ? name.id : "refused");
		if (!ok)
			continue;
		assert_string_equal(name.id, c[i].id);
		assert_int_equal(name.kind, c[i].kind);
	}
	memset(longest, '1', 127);
	assert_true(job_name_parse(longest, &name));
	longest[127] = '1';
	assert_false(job_name_parse(longest, &name));
}

static void test_names_that_match(void **state)
{
	struct job_name any = {SCHEDULER_NONE, "7"}, slurm = {SCHEDULER_SLURM, "7"},
			pbs = {SCHEDULER_PBS, "7.head"}, none = {SCHEDULER_NONE, ""};

	(void)state;
	assert_true(job_name_is(&any, SCHEDULER_SLURM, "7", 1));
	assert_true(job_name_is(&any, SCHEDULER_OAR, "7", 1));
	assert_true(job_name_is(&any, SCHEDULER_PBS, "7.head", 6));
	assert_false(job_name_is(&any, SCHEDULER_PBS, "70.head", 7));
	assert_false(job_name_is(&any, SCHEDULER_PBS, "7[1].head", 9));
	assert_false(job_name_is(&any, SCHEDULER_SLURM, "70", 2));
	assert_false(job_name_is(&slurm, SCHEDULER_OAR, "7", 1));
	assert_false(job_name_is(&slurm, SCHEDULER_SLURM, "7.head", 6));
	assert_true(job_name_is(&pbs, SCHEDULER_PBS, "7.head", 6));
	assert_true(job_name_is(&pbs, SCHEDULER_PBS, "7.head.example.org", 18));
	assert_false(job_name_is(&pbs, SCHEDULER_PBS, "7.heads", 7));
	assert_false(job_name_is(&pbs, SCHEDULER_PBS, "7", 1));
	assert_false(job_name_is(&none, SCHEDULER_SLURM, "", 0));
}

/* ---- control groups ---- */

static void test_groups_of_all_layouts(void **state)
{
	static const struct {
		const char *path;
		enum scheduler kind; /* SCHEDULER_NONE: no job's */
		const char *id, *group;
		bool by_name;
	} c[] = {
		{"/slurm/uid_0/job_7/step_0/task_1", SCHEDULER_SLURM, "7", "/slurm/uid_0/job_7", false},
		{"/slurm_n1/uid_1000/job_7", SCHEDULER_SLURM, "7", "/slurm_n1/uid_1000/job_7", false},
		{"/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0", SCHEDULER_SLURM, "12",
			"/system.slice/slurmstepd.scope/job_12", false},
		{"/x.slice/n1_slurmstepd.scope/job_12", SCHEDULER_SLURM, "12",
			"/x.slice/n1_slurmstepd.scope/job_12", false},
		{"/job_12/step_extern/user", SCHEDULER_SLURM, "12", "/job_12", false},
		{"/docker/ab/system.slice/slurmstepd.scope/job_3/step_0/slurm", SCHEDULER_SLURM, "3",
			"/docker/ab/system.slice/slurmstepd.scope/job_3", false},
		{"/system.slice/slurmstepd.scope/sAB12/step_0/user/task_0", SCHEDULER_SLURM, "sAB12",
			"/system.slice/slurmstepd.scope/sAB12", true},
		{"/system.slice/slurmstepd.scope/system", SCHEDULER_NONE, NULL, NULL, false},
		{"/job_7", SCHEDULER_NONE, NULL, NULL, false},
		{"/ci/job_7/work", SCHEDULER_NONE, NULL, NULL, false},
		{"/slurm/uid_0/job_", SCHEDULER_NONE, NULL, NULL, false},
		{"/slurm/uid_0/job_7x/step_0", SCHEDULER_NONE, NULL, NULL, false},
		{"/slurm/uid_0", SCHEDULER_NONE, NULL, NULL, false},
		{"/oar/jane_12", SCHEDULER_OAR, "12", "/oar/jane_12", false},
		{"/node1/oar/jane_doe_12/inner", SCHEDULER_OAR, "12", "/node1/oar/jane_doe_12", false},
		{"/oar", SCHEDULER_NONE, NULL, NULL, false},
		{"/oar/jane", SCHEDULER_NONE, NULL, NULL, false},
		{"/oar/jane_", SCHEDULER_NONE, NULL, NULL, false},
		{"/oar.slice/oar-u1000.slice/oar-u1000-j12.slice/a.scope", SCHEDULER_OAR, "12",
			"/oar.slice/oar-u1000.slice/oar-u1000-j12.slice", false},
		{"/oar.slice/oar-u1000.slice", SCHEDULER_NONE, NULL, NULL, false},
		{"/pbs_jobs.service/jobid/0.head", SCHEDULER_PBS, "0.head", "/pbs_jobs.service/jobid/0.head",
			false},
		{"/pbs_jobs.service/jobid/3[1].head", SCHEDULER_PBS, "3[1].head",
			"/pbs_jobs.service/jobid/3[1].head", false},
		{"/pbs_jobs.service/jobid", SCHEDULER_NONE, NULL, NULL, false},
		{"/torque/45.master", SCHEDULER_PBS, "45.master", "/torque/45.master", false},
		{"/torque/tools", SCHEDULER_NONE, NULL, NULL, false},
		{"/", SCHEDULER_NONE, NULL, NULL, false},
		{"", SCHEDULER_NONE, NULL, NULL, false},
		{"//", SCHEDULER_NONE, NULL, NULL, false},
		{"/user.slice/user-1000.slice/session-3.scope", SCHEDULER_NONE, NULL, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct job_group g;
		bool found = job_group_find(c[i].path, strlen(c[i].path), &g);

		if (found != (c[i].kind != SCHEDULER_NONE))
			fail_msg("'%s': %s", c[i].path, found ? "a job's" : "no job's");
		if (!found)
			continue;
		assert_int_equal(g.kind, c[i].kind);
		assert_int_equal(g.by_name, c[i].by_name);
		assert_int_equal(g.id_len, strlen(c[i].id));
		assert_memory_equal(g.id, c[i].id, g.id_len);
		assert_int_equal(g.end, strlen(c[i].group));
		/* A path that is cut anywhere is never read past its end. */
		for (size_t len = 0; len < strlen(c[i].path); len++) {
			char *copy = malloc(len + 1);

			memcpy(copy, c[i].path, len);
			job_group_find(copy, len, &g);
			free(copy);
		}
	}
}

static void test_groups_in_any_hierarchy(void **state)
{
	static const char text[] =
		"9:freezer:/\n8:cpuset:/slurm/uid_0/job_7/step_0\n7:name=a:b:/oar/x_3\nrubbish\n:::\n"
		"0::/system.slice/slurmstepd.scope/job_9/step_0";
	struct job_group g;
	size_t at = 0;

	(void)state;
	assert_true(job_group_next(text, &at, &g));
	assert_memory_equal(g.id, "7", 1);
	assert_true(job_group_next(text, &at, &g));
	assert_memory_equal(g.id, "3", 1);
	assert_true(job_group_next(text, &at, &g));
	assert_memory_equal(g.id, "9", 1);
	assert_false(job_group_next(text, &at, &g));
	at = 0;
	assert_false(job_group_next("", &at, &g));
}

/* ---- environments ---- */

static void test_environments(void **state)
{
	static const char text[] =
		"A=SLURM_JOB_ID=7\0SLURM_JOB_ID_X=7\0=\0SLURM_JOB_ID\0\0PBS_JOBID=7.head\0OAR_JOBID=8";
	struct job_name seven = {SCHEDULER_NONE, "7"}, slurm = {SCHEDULER_SLURM, "7"},
			oar = {SCHEDULER_OAR, "8"}, ret = {0};
	size_t rest = 0;

	(void)state;
	assert_true(job_environ_has(text, sizeof(text), &seven, &ret, &rest));
	assert_int_equal(ret.kind, SCHEDULER_PBS);
	assert_string_equal(ret.id, "7.head");
	assert_false(job_environ_has(text, sizeof(text), &slurm, NULL, &rest));
	assert_int_equal(rest, sizeof(text));
	assert_true(job_environ_has(text, sizeof(text), &oar, NULL, &rest));
	/* Without its end the last variable is not judged: more of it may come. */
	assert_false(job_environ_has(text, sizeof(text) - 1, &oar, NULL, &rest));
	assert_int_equal(rest, sizeof(text) - sizeof("OAR_JOBID=8"));
	assert_false(job_environ_has(text, 0, &oar, NULL, &rest));
	assert_int_equal(rest, 0);
	assert_false(job_environ_has("SLURM_JOB_ID=7 8", 17, &slurm, NULL, &rest));
	assert_true(job_environ_has("SLURM_JOBID=7", 14, &slurm, NULL, &rest));
}

/* ---- scontrol's rows, processes, names ---- */

static void check_rows(const char *text, size_t len, const char *id, const char *expected)
{
	char got[256] = "";
	size_t at = 0, n = 0;
	pid_t pid;

	while ((pid = job_listpids_next(text, len, &at, id)) > 0)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%d ", (int)pid);
	assert_string_equal(got, expected);
}

static void test_rows_of_scontrol(void **state)
{
	static const char good[] =
		"PID      JOBID    STEPID   LOCALID GLOBALID\n53       2        0        0       0\n"
		"33       2        batch    0       0\n40       2        batch    -       -\n"
		"60       3        extern   0       0\n61       2        interactive 0    0\n";
	static const char bad[] = "\n\n  \n-1 2 0\n0 2 0\n99999999999999999999 2 0\n4194305 2 "
				  "0\n18446744073709551669 2 0\n7x 2 0\n"
				  "7\n7 \n7 22 0\n- 2 0 - -\n\0\0 2\n \t 8\t 2 0\n9 2";

	(void)state;
	check_rows(good, sizeof(good) - 1, "2", "53 33 40 61 ");
	check_rows(good, sizeof(good) - 1, "3", "60 ");
	check_rows(good, sizeof(good) - 1, "4", "");
	check_rows(good, 0, "2", "");
	check_rows(bad, sizeof(bad) - 1, "2", "9 ");
	for (size_t len = 0; len < sizeof(good); len++) {
		char *copy = malloc(len + 1);
		size_t at = 0;

		memcpy(copy, good, len);
		while (job_listpids_next(copy, len, &at, "2"))
			;
		free(copy);
	}
}

static void test_processes(void **state)
{
	static const char good[] = "42 (a) b) S 7 40 41 0 -1 4194304";
	static const char *const bad[] = {"", "42", "42 (a", "42 (a) S", "42 (a) S x 1 1", "42 a) ( S 1 1 1",
		"42 (a) S 1 1", "42 (a) S 1 1 ", "42 (a) S -1 1 1", "42 (a) S 99999999999 1 1"};
	struct job_process p;

	(void)state;
	assert_true(job_process_parse(good, sizeof(good) - 1, &p));
	assert_string_equal(p.name, "a) b");
	assert_int_equal(p.parent, 7);
	assert_int_equal(p.session, 41);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (job_process_parse(bad[i], strlen(bad[i]), &p))
			fail_msg("taken: '%s'", bad[i]);
}

static void test_who_is_left_out(void **state)
{
#define CMDLINE(words) words, sizeof(words)
	(void)state;
	assert_true(job_daemon_name("slurmstepd"));
	assert_true(job_daemon_name("tacho"));
	assert_false(job_daemon_name("tachometer"));
	assert_false(job_daemon_name("srun"));
	assert_true(job_daemon_cmdline(CMDLINE("srun\0--overlap\0/opt/bin/tacho\0attach\0job")));
	assert_false(job_daemon_cmdline(CMDLINE("srun\0tacho\0run\0./attach")));
	assert_false(job_daemon_cmdline(CMDLINE("srun\0mytacho\0attach")));
	assert_true(job_daemon_cmdline(CMDLINE("perl\0-\0"
					       "12\0OAREXEC")));
	assert_false(job_daemon_cmdline(CMDLINE("perl\0-\0x\0OAREXEC")));
	assert_true(job_daemon_cmdline(CMDLINE("/usr/bin/perl\0-e\0 $ENV{OAR_STDOUT} = 'x';")));
	assert_false(job_daemon_cmdline(CMDLINE("perl\0-e\0print 1")));
	assert_false(job_daemon_cmdline("", 0));
	assert_false(job_daemon_cmdline("tacho", 5));
	assert_true(job_launcher_name("mpirun.openmpi"));
	assert_true(job_launcher_name("mpiexec.hydra"));
	assert_true(job_launcher_name("hydra_pmi_proxy"));
	assert_false(job_launcher_name("bash"));
	assert_true(job_doorkeeper_name("sshd"));
	assert_false(job_doorkeeper_name("bash"));
}

/* ---- machines ---- */

struct pids {
	char text[512];
	size_t len;
	int stop_at;
};

static int add_pid(void *arg, pid_t pid)
{
	struct pids *p = arg;

	p->len += (size_t)snprintf(p->text + p->len, sizeof(p->text) - p->len, "%d ", (int)pid);
	return p->stop_at == pid ? -ECANCELED : 0;
}

static void check_list(struct job *job, const char *expected)
{
	struct pids pids = {0};

	assert_int_equal(job_list(job, add_pid, &pids), 0);
	assert_string_equal(pids.text, expected);
}

static void test_jobs_on_machines(void **state)
{
	static const struct {
		const char *machine, *id;
		int error;
		const char *found_by, *name;
		enum scheduler kind;
		const char *pids;
		pid_t takes, refuses;
	} c[] = {
		{"job-slurm-25", NULL, 0, "cgroup", "7", SCHEDULER_SLURM, "222 223 210 214 216 218 ", 223,
			242},
		{"job-slurm-25", "7", 0, "cgroup", "7", SCHEDULER_SLURM, "222 223 210 214 216 218 ", 216,
			300},
		{"job-slurm-25", "slurm:9", 0, "cgroup", "9", SCHEDULER_SLURM, "242 ", 242, 222},
		{"job-slurm-25", "8", -ESRCH, NULL, NULL, 0, NULL, 0, 0},
		{"job-slurm-25", "pbs:7", -ESRCH, NULL, NULL, 0, NULL, 0, 0},
		{"job-slurm-25", "7_1", -EINVAL, NULL, NULL, 0, NULL, 0, 0},
		{"job-slurm-26", NULL, 0, "cgroup", "7", SCHEDULER_SLURM, "222 223 210 214 216 218 ", 223,
			242},
		{"job-slurm-26", "9", 0, "cgroup", "9", SCHEDULER_SLURM, "242 ", 242, 222},
		{"job-slurm-26", "8", -ESRCH, NULL, NULL, 0, NULL, 0, 0},
		{"job-slurm-v1", "7", 0, "cgroup", "7", SCHEDULER_SLURM, "101 102 ", 102, 111},
		{"job-slurm-v1", "70", 0, "cgroup", "70", SCHEDULER_SLURM, "111 ", 111, 102},
		{"job-slurm-v1", NULL, -ENOENT, NULL, NULL, 0, NULL, 0, 0},
		{"job-oar", "", 0, "cgroup", "12", SCHEDULER_OAR, "239 242 243 245 ", 245, 339},
		{"job-oar", "oar:13", 0, "cgroup", "13", SCHEDULER_OAR, "339 ", 339, 245},
		{"job-oar", "slurm:13", -ESRCH, NULL, NULL, 0, NULL, 0, 0},
		{"job-pbs", NULL, 0, "environment", "7.head", SCHEDULER_PBS, "120 122 124 125 126 ", 124,
			131},
		{"job-pbs", "7", 0, "environment", "7.head", SCHEDULER_PBS, "120 122 124 125 126 ", 120, 140},
		{"job-pbs", "70", 0, "environment", "70.head", SCHEDULER_PBS, "130 131 ", 131, 120},
		{"job-pbs", "8", -ESRCH, NULL, NULL, 0, NULL, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_of("machines", c[i].machine);
		const char *found_by = NULL;
		struct job *job = NULL;
		char err[256] = "";
		int r = job_open(env, c[i].id, &job, &found_by, err, sizeof(err));

		if (r != c[i].error)
			fail_msg("%s %s: %d %s", c[i].machine, c[i].id ? c[i].id : "(ours)", r, err);
		assert_int_equal(!!err[0], r < 0);
		if (r == 0) {
			assert_string_equal(found_by, c[i].found_by);
			assert_string_equal(job_name(job)->id, c[i].name);
			assert_int_equal(job_name(job)->kind, c[i].kind);
			check_list(job, c[i].pids);
			check_list(job, c[i].pids);
			assert_true(job_takes(job, c[i].takes));
			assert_false(job_takes(job, c[i].refuses));
			assert_false(job_takes(job, 4000000));
			assert_int_equal(job_needs_listing(job), !strcmp(found_by, "cgroup"));
		}
		job_close(job);
		env_free(env);
	}
}

/* Where its limits are; a job that is found otherwise has none. */
static void test_its_control_group(void **state)
{
	static const struct {
		const char *machine;
		pid_t pid;
		const char *group;
	} c[] = {{"job-slurm-25", 210, "/system.slice/slurmstepd.scope/job_7"},
		{"job-oar", 245, "/oar/jane_12"}, {"job-pbs", 124, ""}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_of("machines", c[i].machine);
		const char *found_by = NULL;
		struct job *job = NULL;
		char err[256], group[1024] = "", small[4];

		assert_int_equal(job_open(env, NULL, &job, &found_by, err, sizeof(err)), 0);
		assert_int_equal(job_cgroup(job, c[i].pid, group, sizeof(group)), c[i].group[0] != 0);
		assert_string_equal(group, c[i].group);
		assert_false(job_cgroup(job, c[i].pid, small, sizeof(small)));
		job_close(job);
		env_free(env);
	}
}

static void test_daemons_on_machines(void **state)
{
	struct env *env = film_of("machines", "job-slurm-25");
	const char *found_by;
	struct job *job = NULL;
	char err[256];

	(void)state;
	assert_int_equal(job_open(env, NULL, &job, &found_by, err, sizeof(err)), 0);
	assert_true(job_is_daemon(job, 200));
	assert_true(job_is_daemon(job, 212));
	assert_false(job_is_daemon(job, 210));
	assert_false(job_is_daemon(job, 4000000));
	assert_true(job_takes(job, 200)); /* it is in the group: that it is a daemon is another question */
	assert_false(job_takes(job, 212));
	job_close(job);
	env_free(env);
}

static void test_listing_stops_when_told(void **state)
{
	static const struct {
		const char *machine;
		int stop_at;
		const char *pids;
	} c[] = {{"job-slurm-25", 223, "222 223 "}, {"job-pbs", 122, "120 122 "},
		{"job-oar", 242, "239 242 "}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_of("machines", c[i].machine);
		struct pids pids = {.stop_at = c[i].stop_at};
		const char *found_by;
		struct job *job = NULL;
		char err[256];

		assert_int_equal(job_open(env, NULL, &job, &found_by, err, sizeof(err)), 0);
		assert_int_equal(job_list(job, add_pid, &pids), -ECANCELED);
		assert_string_equal(pids.text, c[i].pids);
		pids = (struct pids){0};
		assert_int_equal(job_list(job, add_pid, &pids), 0);
		job_close(job);
		env_free(env);
	}
}

/* What a job can be found by never depends on a single call. */
static void test_any_call_may_fail(void **state)
{
	static const char *const names[] = {"job-slurm-26", "job-pbs", "job-oar"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (unsigned nth = 1; nth < 120; nth++) {
			struct env *env = env_failing(film_of("machines", names[i]), nth, -EIO);
			struct pids pids = {0};
			const char *found_by = NULL;
			struct job *job = NULL;
			char err[256];
			int r = job_open(env, NULL, &job, &found_by, err, sizeof(err));

			if (r == 0)
				job_list(job, add_pid, &pids);
			else
				assert_true(r == -ESRCH || r == -EACCES);
			job_close(job);
			env_free(env);
		}
}

static void test_self_test(void **state)
{
	static const struct {
		const char *text;
		enum scheduler kind;
		const char *id;
	} c[] = {
		{"variable PBS_JOBID=3[1].head\nvariable OAR_JOB_ID=1\n", SCHEDULER_PBS, "3[1].head"},
		{"variable SLURM_JOBID=5\n", SCHEDULER_SLURM, "5"},
		{"variable SLURM_JOB_ID=\nvariable OAR_JOBID=6\n", SCHEDULER_OAR, "6"},
		{"variable SLURM_JOB_ID=7;x\nfile proc/self/cgroup\n|3:cpuset:/oar/jane_12\n", SCHEDULER_OAR,
			"12"},
		{"file proc/self/cgroup\n|0::/system.slice/slurmstepd.scope/job_7/step_0/user\n",
			SCHEDULER_SLURM, "7"},
		{"file proc/self/cgroup\n|0::/pbs_jobs.service/jobid/0.head\n", SCHEDULER_PBS, "0.head"},
		{"file proc/self/cgroup\n|0::/\n", SCHEDULER_NONE, NULL},
		{"page_size 4096\n", SCHEDULER_NONE, NULL},
	};
	struct job_name name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct env *env = film_text(c[i].text);
		bool here = job_here(env, &name);

		if (here != !!c[i].id)
			fail_msg("%s: %d", c[i].text, here);
		if (here) {
			assert_int_equal(name.kind, c[i].kind);
			assert_string_equal(name.id, c[i].id);
		}
		env_free(env);
	}
	assert_string_equal(scheduler_name(SCHEDULER_OAR), "oar");
	assert_null(scheduler_name(SCHEDULER_NONE));
}

/* ---- the weaker ways ---- */

#define PROCESS(pid, name, parent, session, uid, cmdline, environ)                                \
	"file proc/" #pid "/stat\n|" #pid " (" name ") S " #parent " 1 " #session " 0\n"          \
	"file proc/" #pid "/comm\n|" name "\nfile proc/" #pid "/cmdline\n:" cmdline "\\x00\n"     \
	"file proc/" #pid "/status\n|Name:\t" name "\n|Uid:\t" #uid "\t" #uid "\nfile proc/" #pid \
	"/cgroup\n|0::/\n"                                                                        \
	"file proc/" #pid "/environ\n" environ
#define ENVIRON(words) ":" words "\\x00\n"
#define INIT PROCESS(1, "init", 0, 1, 0, "init", "error proc/1/environ open EACCES\n")

static void check_open(
	const char *text, const char *id, int error, const char *found_by_expected, const char *pids)
{
	struct env *env = film_text(text);
	const char *found_by = NULL;
	struct job *job = NULL;
	char err[256] = "";
	int r = job_open(env, id, &job, &found_by, err, sizeof(err));

	if (r != error)
		fail_msg("%d %s", r, err);
	if (r == 0) {
		assert_string_equal(found_by, found_by_expected);
		check_list(job, pids);
		assert_false(job_needs_listing(job));
	}
	job_close(job);
	env_free(env);
}

static void test_session(void **state)
{
	/* Nobody else's environment has the job; the one in our session is of it, though its cannot be read.
	 */
	(void)state;
	check_open("variable PBS_JOBID=7.head\nlink proc/self 12\n" INIT PROCESS(10, "script", 1, 10, 5,
			   "script", "error proc/10/environ open EACCES\n") PROCESS(12, "tacho", 10, 10, 5,
			   "tacho", "") PROCESS(20, "other", 1, 20, 5, "other", ENVIRON("A=b")),
		NULL, 0, "session", "10 ");
}

static void test_launcher(void **state)
{
#define BESIDE                                        \
	PROCESS(5, "sshd", 1, 5, 5, "sshd: jane", "") \
	PROCESS(6, "bash", 5, 6, 5, "-bash", "")      \
	PROCESS(10, "run.sh", 6, 6, 5, "run.sh", "")  \
	PROCESS(11, "mpirun", 10, 6, 5, "mpirun", "") \
	PROCESS(12, "rank", 11, 12, 5, "rank", "")    \
	PROCESS(13, "rank", 11, 13, 5, "rank", "") PROCESS(20, "mpirun", 1, 20, 5, "mpirun", "")
	(void)state;
	/* Below it, among the ranks. */
	check_open("link proc/self 14\n" INIT BESIDE PROCESS(14, "tacho", 11, 14, 5, "tacho", ""), NULL, 0,
		"launcher", "11 12 13 ");
	/* Beside it, in the same script. */
	check_open("link proc/self 14\n" INIT BESIDE PROCESS(14, "tacho", 10, 6, 5, "tacho", ""), NULL, 0,
		"launcher", "11 12 13 ");
	/* Elsewhere. */
	check_open("link proc/self 14\n" INIT BESIDE PROCESS(14, "tacho", 6, 99, 5, "tacho", ""), NULL,
		-ENOENT, NULL, NULL);
	/* A job whose processes have neither its environment nor our session: up to the login, which is not
	 * of it. */
	check_open("variable PBS_JOBID=7\nlink proc/self 14\n" INIT BESIDE PROCESS(
			   14, "tacho", 10, 14, 5, "tacho", ""),
		NULL, 0, "launcher", "10 11 12 13 ");
	/* Up to what another user runs, as a service of the node may. */
	check_open("variable PBS_JOBID=7\nlink proc/self 14\n" INIT PROCESS(5, "agent", 1, 5, 0, "agent", "")
			   PROCESS(10, "run.sh", 5, 10, 5, "run.sh", "")
				   PROCESS(14, "tacho", 10, 14, 5, "tacho", ""),
		NULL, 0, "launcher", "10 ");
	/* ... but not for a job that we are not in. */
	check_open("variable PBS_JOBID=7\nlink proc/self 14\n" INIT BESIDE PROCESS(
			   14, "tacho", 10, 14, 5, "tacho", ""),
		"8", -ESRCH, NULL, NULL);
	/* Parents that lead in a circle. */
	check_open("variable PBS_JOBID=7\nlink proc/self 14\n" PROCESS(13, "a", 14, 13, 5, "a", "")
			   PROCESS(14, "tacho", 13, 14, 5, "tacho", ""),
		NULL, 0, "launcher", "13 ");
}

static void test_hidden(void **state)
{
#define MOUNT "file proc/self/mountinfo\n|30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\nlink proc/self 14\n"
#define OWN PROCESS(14, "renamed", 1, 14, 5, "renamed", "")
	(void)state;
	/* A PBS job that is on this node, and whose processes' environments we may not read. */
	check_open("link proc/self 14\nfile var/spool/pbs/aux/7.head\n|n1\n" INIT OWN, "7.head", -EACCES,
		NULL, NULL);
	check_open("link proc/self 14\nfile var/spool/pbs/aux/8.head\n|n1\n" INIT OWN, "7.head", -ESRCH, NULL,
		NULL);
	/* Our control group lists processes that /proc does not show: hidepid. */
	check_open(MOUNT OWN
		"file proc/self/cgroup\n|0::/jobid/7.head\nfile cg/jobid/7.head/cgroup.procs\n|14\n|77\n",
		NULL, -EACCES, NULL, NULL);
	/* They are not hidden but gone. */
	check_open(MOUNT INIT OWN
		"file proc/self/cgroup\n|0::/jobid/7.head\nfile cg/jobid/7.head/cgroup.procs\n|14\n|77\n",
		NULL, -ESRCH, NULL, NULL);
	/* We are alone in it: it is starting, and who else is in our session does not matter. */
	check_open("variable PBS_JOBID=7.head\n" MOUNT INIT OWN PROCESS(
			   15, "x", 1, 14, 5, "x", "") "file proc/self/cgroup\n|0::/jobid/7.head\nfile "
						       "cg/jobid/7.head/cgroup.procs\n|0\n|14\n",
		NULL, -ESRCH, NULL, NULL);
}

struct crowd {
	int nr, next;
};

static int in_order(void *arg, pid_t pid)
{
	struct crowd *c = arg;

	assert_int_equal(pid, c->next++);
	c->nr++;
	return 0;
}

/* More PIDs than one reading of cgroup.procs, none lost or torn where a number is cut in two. */
static void test_many_processes(void **state)
{
	static char text[400000];
	struct crowd crowd = {.next = 100};
	const char *found_by;
	struct job *job = NULL;
	struct env *env;
	char err[256];
	size_t n;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text),
		"variable PBS_JOBID=7.head\n" MOUNT
		"file proc/self/cgroup\n|0::/jobid/7.head\nfile cg/jobid/7.head/cgroup.procs\n");
	for (int pid = 100; pid < 5000; pid++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "|%d\n", pid);
	for (int pid = 100; pid < 5000; pid++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "file proc/%d/comm\n|x\n", pid);
	env = film_text(text);
	assert_int_equal(job_open(env, NULL, &job, &found_by, err, sizeof(err)), 0);
	assert_int_equal(job_list(job, in_order, &crowd), 0);
	assert_int_equal(crowd.nr, 4900);
	job_close(job);
	env_free(env);
}

/* Environments longer than our room, with what we look for at every place within. */
static void test_long_environments(void **state)
{
	static char text[200000];

	(void)state;
	for (size_t before = 32700; before < 32800; before += 3) {
		size_t n = (size_t)snprintf(text, sizeof(text),
			"link proc/self 14\n" INIT OWN "file proc/20/comm\n|x\nfile proc/20/stat\n|20 (x) S "
			"1 20 20\nfile proc/20/environ\n:");

		for (size_t i = 0; i < before; i++) /* one that does not fit, when it is long enough */
			text[n++] = i == 16 ? '=' : 'A';
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "SLURM_JOB_ID=8\\x00\n:SLURM_JOB_ID=7\\x00\n:B=");
		for (size_t i = 0; i < 70000; i++)
			text[n++] = 'B';
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n:SLURM_JOB_ID=9\\x00\n:PBS_JOBID=6\n");
		check_open(text, "7", 0, "environment", "20 ");
		check_open(text, "8", -ESRCH, NULL, NULL);
		check_open(text, "9", -ESRCH, NULL, NULL);
		check_open(text, "6", 0, "environment", "20 ");
	}
}

/* What looks like a variable in the midst of one that is longer than two of our readings. */
static void test_text_within_a_long_variable(void **state)
{
	static char text[100000];
	size_t n = (size_t)snprintf(text, sizeof(text),
		"link proc/self 14\n" INIT OWN "file proc/20/comm\n|x\nfile proc/20/stat\n|20 (x) S 1 20 20\n"
		"file proc/20/environ\n:");

	(void)state;
	memset(text + n, 'B', 2 * 32767);
	n += 2 * 32767;
	snprintf(text + n, sizeof(text) - n, "SLURM_JOB_ID=9\\x00\n:SLURM_JOB_ID=7\\x00\n");
	check_open(text, "9", -ESRCH, NULL, NULL);
	check_open(text, "7", 0, "environment", "20 ");
}

/* ---- scontrol itself ---- */

static char tools[] = "/tmp/test_job_tools.XXXXXX";

static int make_tools(void **state)
{
	const char *path = getenv("PATH");
	char with[8192];

	(void)state;
	if (!mkdtemp(tools))
		return -1;
	snprintf(with, sizeof(with), "%s:%s", tools, path ? path : "/usr/bin:/bin");
	return setenv("PATH", with, 1);
}

static int remove_tools(void **state)
{
	char path[100];

	(void)state;
	snprintf(path, sizeof(path), "%s/scontrol", tools);
	unlink(path);
	return rmdir(tools);
}

static void make_scontrol(const char *script)
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "%s/scontrol", tools);
	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
}

static void test_scontrol_answers(void **state)
{
	struct scontrol *s = NULL;
	const char *text;
	size_t len;

	(void)state;
	make_scontrol("echo \"$@\"; echo noise >&2; read line && echo $line");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 30000, &text, &len), 1);
	assert_int_equal(len, strlen("listpids 7\n"));
	assert_memory_equal(text, "listpids 7\n", len);
	assert_int_equal(scontrol_answer(s, 0, &text, &len), 1); /* it stays */
	assert_int_equal(len, strlen("listpids 7\n"));
	scontrol_end(s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void test_scontrol_floods_and_hangs(void **state)
{
	struct scontrol *s = NULL;
	const char *text;
	size_t len;

	(void)state;
	make_scontrol("yes '1 7 0'");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 30000, &text, &len), -EFBIG);
	scontrol_end(s);
	make_scontrol("sleep 1000");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 0, &text, &len), 0);
	assert_int_equal(scontrol_answer(s, 10, &text, &len), 0);
	scontrol_end(s);
	/* Its output ends, but it does not. */
	make_scontrol("echo 1 7; exec >&-; sleep 1000");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 30000, &text, &len), 1);
	assert_int_equal(len, 4);
	scontrol_end(s);
	assert_null(scontrol_end(NULL));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static bool lives(int pid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	state = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return state && state[2] != 'Z' && state[2] != 'X';
}

static void test_scontrol_ends_with_all_it_started(void **state)
{
	struct scontrol *s = NULL;
	const char *text;
	size_t len;
	int pid = 0;

	(void)state;
	make_scontrol("sleep 1000 >/dev/null & echo $!; exec >&-; wait");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 30000, &text, &len), 1);
	for (size_t i = 0; i < len && text[i] != '\n'; i++)
		pid = 10 * pid + text[i] - '0';
	scontrol_end(s);
	assert_true(pid > 1);
	while (lives(pid)) /* the runner ends a test that hangs */
		usleep(1000);
}

static void test_scontrol_takes_too_long(void **state)
{
	struct scontrol *s = NULL;
	const char *text;
	size_t len;

	(void)state;
	make_scontrol("exec sleep 1000");
	assert_int_equal(scontrol_start(&s, "7"), 0);
	assert_int_equal(scontrol_answer(s, 30000, &text, &len), -ETIME);
	scontrol_end(s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Two processes as scontrol names them: found by it on the live machine, and known by environment from then
 * on. */
static void test_job_by_scontrol(void **state)
{
	struct env *env = env_live(NULL);
	const char *found_by = NULL;
	struct job *job = NULL;
	struct pids pids = {0};
	char err[256] = "", script[200], expected[32];
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		char *const argv[] = {(char *)"sleep", (char *)"1000", NULL};
		char *const with[] = {(char *)"SLURM_JOB_ID=4000000", NULL};

		execve("/bin/sleep", argv, with);
		_exit(1);
	}
	snprintf(script, sizeof(script), "echo PID JOBID STEPID; echo %d 4000000 0 - -; echo 1 4000001 0 - -",
		(int)pid);
	snprintf(expected, sizeof(expected), "%d ", (int)pid);
	make_scontrol(script);
	for (int r = -1; r != 0;) { /* until the child is sleep */
		job = job_close(job);
		r = job_open(env, "4000000", &job, &found_by, err, sizeof(err));
		if (r == 0 && !job_takes(job, pid))
			r = -EAGAIN;
	}
	assert_string_equal(found_by, "scontrol");
	assert_int_equal(job_name(job)->kind, SCHEDULER_SLURM);
	assert_int_equal(job_list(job, add_pid, &pids), 0);
	assert_string_equal(pids.text, expected);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	job_close(job);
	env_free(env);
}

/* ---- names of nodes ---- */

static void expand(const char *list, int result, const char *expected)
{
	struct host_list h = {0};
	char all[4096] = "";
	size_t used = 0;

	assert_int_equal(host_list_add_list(&h, list), result);
	for (size_t i = 0; result == 0 && i < h.nr; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? " " : "", h.name[i]);
	assert_string_equal(all, expected);
	host_list_release(&h);
}

static void test_lists_of_hosts(void **state)
{
	(void)state;
	expand("", 0, "");
	expand("one", 0, "one");
	expand("node[1-3,07],gpu1", 0, "node1 node2 node3 node07 gpu1");
	expand("r[1-2]n[08-10]-ib.x", 0, "r1n08-ib.x r1n09-ib.x r1n10-ib.x r2n08-ib.x r2n09-ib.x r2n10-ib.x");
	expand("a,b,a,a[1],a1", 0, "a b a1");
	expand("[3-4]x", 0, "3x 4x");
	expand("n[1-", -EINVAL, "");
	expand("n[]", -EINVAL, "");
	expand("n[3-1]", -EINVAL, "");
	expand("n[1-x]", -EINVAL, "");
	expand("n[-1]", -EINVAL, "");
	expand("-oProxyCommand=x", -EINVAL, "");
	expand("a b", -EINVAL, "");
	expand("../up", -EINVAL, "");
	expand("n[0-99999999]", -E2BIG, "");
	expand("n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]", -E2BIG, "");
}

static void test_files_of_hosts(void **state)
{
	static const char text[] = "# all\nn1 slots=4\nn1\n\n  n2:8\nn3";
	struct host_list h = {0};

	(void)state;
	assert_int_equal(host_list_add_file(&h, text, sizeof(text) - 1), 0);
	assert_int_equal(h.nr, 3);
	assert_string_equal(h.name[0], "n1");
	assert_string_equal(h.name[1], "n2");
	assert_int_equal(host_list_find(&h, "n3"), 2);
	assert_int_equal(host_list_find(&h, "n4"), -1);
	host_list_release(&h);
}

/* ---- steps and ranks ---- */

static void part_of(const char *text, size_t len, const char *step, const char *rank)
{
	struct job_part part = {0};
	size_t rest;

	job_environ_part(text, len, &part, &rest);
	assert_int_equal(rest, len);
	job_part_settle(&part);
	assert_string_equal(part.step, step);
	assert_string_equal(part.rank, rank);
}

#define PART_OF(text, step, rank) part_of(text, sizeof(text), step, rank)

static void test_steps_and_ranks(void **state)
{
	(void)state;
	PART_OF("HOME=/", "", "");
	PART_OF("SLURM_JOB_ID=7\0SLURM_PROCID=0", "batch", "");
	PART_OF("SLURM_PROCID=3\0SLURM_JOB_ID=7\0SLURM_STEP_ID=2", "2", "3");
	PART_OF("SLURM_PROCID=1\0SLURM_STEP_ID=2\0OMPI_COMM_WORLD_RANK=12", "2", "12");
	PART_OF("OMPI_COMM_WORLD_RANK=12\0SLURM_PROCID=1\0SLURM_STEP_ID=2", "2", "12");
	PART_OF("PBS_JOBID=3.head\0PMI_RANK=4", "", "4");
	PART_OF("SLURM_STEP_ID=x\0PMIX_RANK=-1", "", "");
	PART_OF("SLURM_STEP_ID=12345678901234567890", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_of_hosts),
		cmocka_unit_test(test_files_of_hosts),
		cmocka_unit_test(test_steps_and_ranks),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_that_match),
		cmocka_unit_test(test_groups_of_all_layouts),
		cmocka_unit_test(test_groups_in_any_hierarchy),
		cmocka_unit_test(test_environments),
		cmocka_unit_test(test_rows_of_scontrol),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_who_is_left_out),
		cmocka_unit_test(test_jobs_on_machines),
		cmocka_unit_test(test_its_control_group),
		cmocka_unit_test(test_daemons_on_machines),
		cmocka_unit_test(test_listing_stops_when_told),
		cmocka_unit_test(test_any_call_may_fail),
		cmocka_unit_test(test_self_test),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_launcher),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_many_processes),
		cmocka_unit_test(test_long_environments),
		cmocka_unit_test(test_text_within_a_long_variable),
		cmocka_unit_test(test_scontrol_answers),
		cmocka_unit_test(test_scontrol_floods_and_hangs),
		cmocka_unit_test(test_scontrol_ends_with_all_it_started),
		cmocka_unit_test(test_scontrol_takes_too_long),
		cmocka_unit_test(test_job_by_scontrol),
	};

	return cmocka_run_group_tests_name("job", tests, make_tools, remove_tools);
}
