/* analysis/findings: how a run ended, what was not measured, and stories that mean harm. */
#include "analysis_maker.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct analysis_maker m;

static int teardown(void **state)
{
	(void)state;
	analysis_close(&m);
	return 0;
}

static void ended_by(int number)
{
	figure_unset(&m.summary, FIG_EXIT_CODE, "");
	analysis_set(&m, FIG_EXIT_SIGNAL, number);
}

/* ---- out of memory ---- */

static double rises(double t, const double *arg)
{
	return t < arg[0] ? arg[1] : arg[1] + arg[2];
}

static struct process_row *killed_process(int64_t pid, const char *name, double end, double rss, int status)
{
	struct process_row *row = analysis_process(&m, 0, pid, name, 0, end, 1);

	row->status = status;
	row->value[PROCESS_RSS] = rss;
	return row;
}

/* Killed between 1.5 s and 2 s, in a run of two: any length will do. */
static void with_kill(void)
{
	double kill[] = {2, 4, 1};

	analysis_open(&m, 1, 2, 0.5);
	analysis_set(&m, FIG_OOM_KILLS, 1);
	analysis_set(&m, FIG_CGROUP_PEAK, 64 * MIB);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_curve(&m, EV_CG_OOM_KILL, 0, MAKER_CGROUP, rises, kill);
	ended_by(SIGKILL);
}

static void with_victims(int status)
{
	killed_process(10, "wrapper", 2, 2 * MIB, 0);
	killed_process(11, "child", 1.9, 5 * MIB, status);
	killed_process(12, "hungry", 1.9, 60 * MIB, status);
	killed_process(13, "earlier", 0.2, 500 * MIB, status);
}

static void test_who_when_and_which_limit(void **state)
{
	double hits[] = {1.5, 0, 10};
	const struct finding *f;

	(void)state;
	with_kill();
	with_victims(SIGKILL);
	analysis_text(&m.summary, TEXT_SCHEDULER, "slurm");
	analysis_text(&m.summary, TEXT_JOB, "7");
	analysis_flat(&m, EV_CG_LIMIT, 0, MAKER_CGROUP, 64 * MIB);
	analysis_flat(&m, EV_CG_LIMIT, 0, "/slurm", GIB);
	analysis_curve(&m, EV_CG_LIMIT_HITS, 0, MAKER_CGROUP, rises, hits);
	analysis_curve(&m, EV_CG_LIMIT_HITS, 0, "/slurm", rises, hits);
	/* Once: what killed the job is not told again as its signal. */
	assert_string_equal(analysis_ids(&m), "oom");
	f = analysis_find(&m, "oom");
	assert_int_equal(f->weight, FINDING_SERIOUS);
	assert_string_equal(f->title,
		"Out of memory: the kernel killed hungry (PID 12) at 1.90s: limit 64 MiB of " MAKER_CGROUP
		", used 64 MiB");
	assert_says(f->text, "hungry had up to 60 MiB resident");
	assert_says(f->text, "The control group " MAKER_CGROUP " was at its limit of 64 MiB");
	assert_says(f->text, "job 7 of slurm");
	assert_true(f->from_s == 1.5 && f->to_s == 2);
	assert_string_equal(f->panel, "memory");
	assert_string_equal(f->evidence[0].name, "pid");
	assert_true(f->evidence[0].value == 12);
}

static void test_the_group_that_was_full(void **state)
{
	double out[] = {1.5, 0, 1};

	(void)state;
	/* No hits are counted: one is as full as it may be, the other is not. */
	with_kill();
	with_victims(SIGKILL);
	analysis_flat(&m, EV_CG_LIMIT, 0, MAKER_CGROUP, GIB);
	analysis_flat(&m, EV_CG_CURRENT, 0, MAKER_CGROUP, 63 * MIB);
	analysis_flat(&m, EV_CG_LIMIT, 0, "/slurm", 64 * MIB);
	analysis_flat(&m, EV_CG_CURRENT, 0, "/slurm", 63 * MIB);
	assert_says(analysis_find(&m, "oom")->text, "The control group /slurm was at its limit of 64 MiB");
	/* The kernel's own word goes before. */
	analysis_curve(&m, EV_CG_OOM, 0, MAKER_CGROUP, rises, out);
	assert_says(analysis_find(&m, "oom")->text,
		"The control group " MAKER_CGROUP " was at its limit of 1 GiB");
}

static void test_the_machine_was_full(void **state)
{
	(void)state;
	with_kill();
	with_victims(SIGKILL);
	analysis_flat(&m, EV_AVAILABLE, 0, NULL, 3 * GIB);
	assert_says(analysis_find(&m, "oom")->text, "Which limit it was is not known");
	analysis_flat(&m, EV_AVAILABLE, 0, NULL, 3 * GIB);
	analysis_close(&m);
	with_kill();
	with_victims(SIGKILL);
	analysis_flat(&m, EV_AVAILABLE, 0, NULL, 100 * MIB);
	assert_says(analysis_find(&m, "oom")->text, "the machine itself, with 16 GiB, had nothing left");
}

static void test_a_limit_that_only_the_summary_knows(void **state)
{
	(void)state;
	with_kill();
	with_victims(SIGKILL);
	analysis_set(&m, FIG_LIMIT_MEMORY, 65 * MIB);
	analysis_text(&m.summary, TEXT_MEMORY_SOURCE, "cgroup above /box");
	assert_says(
		analysis_find(&m, "oom")->text, "The control group above /box was at its limit of 65 MiB");
}

static void test_whom_is_not_known(void **state)
{
	const struct finding *f;

	(void)state;
	with_kill();
	with_victims(-1);
	f = analysis_find(&m, "oom");
	assert_says(f->title, "the kernel killed a process at 2.00s");
	assert_says(f->text, "probably hungry (PID 12)");
	analysis_close(&m);
	with_kill();
	killed_process(10, "wrapper", 2, 2 * MIB, 0);
	assert_says(analysis_find(&m, "oom")->text, "could not be seen");
	assert_int_equal(analysis_find(&m, "oom")->weight, FINDING_SERIOUS);
	/* In a run that succeeded it was somebody else of the group. */
	figure_unset(&m.summary, FIG_EXIT_SIGNAL, "");
	analysis_set(&m, FIG_EXIT_CODE, 0);
	assert_int_equal(analysis_find(&m, "oom")->weight, FINDING_WARNING);
}

static void test_a_kill_that_the_node_counts(void **state)
{
	double kill[] = {2, 4, 1};

	(void)state;
	/* The group's counter is not to be had; the node's rose, and one of ours was killed then. */
	analysis_open(&m, 1, 2, 0.5);
	ended_by(SIGKILL);
	analysis_curve(&m, EV_NODE_OOM_KILLS, 0, NULL, rises, kill);
	with_victims(SIGKILL);
	assert_says(analysis_find(&m, "oom")->title, "hungry (PID 12)");
	analysis_close(&m);
	/* None of ours was: it is not our business. */
	analysis_open(&m, 1, 2, 0.5);
	analysis_curve(&m, EV_NODE_OOM_KILLS, 0, NULL, rises, kill);
	with_victims(0);
	assert_finds_not(&m, "oom");
	analysis_close(&m);
	/* Our group's counter is known, and did not. */
	analysis_open(&m, 1, 2, 0.5);
	analysis_set(&m, FIG_OOM_KILLS, 0);
	analysis_curve(&m, EV_NODE_OOM_KILLS, 0, NULL, rises, kill);
	with_victims(SIGKILL);
	assert_finds_not(&m, "oom");
}

static double fills(double t, const double *arg)
{
	return t < arg[0] ? t * arg[1] : NAN;
}

/* A leak is told from one large allocation, however few ticks there were. */
static void test_growth_before_it(void **state)
{
	const struct finding *f;

	(void)state;
	with_kill();
	with_victims(SIGKILL);
	analysis_curve(&m, EV_PSS, 0, NULL, fills, (double[]){2, 30 * MIB});
	f = analysis_find(&m, "oom");
	assert_says(f->text, "Before that, memory grew by 30 MiB/s: from 0 B at 0s to 45 MiB at 1.50s.");
	analysis_close(&m);
	with_kill();
	with_victims(SIGKILL);
	analysis_flat(&m, EV_PSS, 0, NULL, 60 * MIB);
	assert_null(strstr(analysis_find(&m, "oom")->text, "grew"));
}

/* The limit that was reached is that of a group further in, not that which the run was given. */
static void test_advice_by_the_limit_that_was_reached(void **state)
{
	(void)state;
	with_kill();
	with_victims(SIGKILL);
	analysis_set(&m, FIG_PSS, 60 * MIB);
	analysis_flat(&m, EV_CG_LIMIT, 0, MAKER_CGROUP, 64 * MIB);
	analysis_flat(&m, EV_CG_CURRENT, 0, MAKER_CGROUP, 64 * MIB);
	assert_finds(&m, "oom");
	assert_says(m.found->headroom, "at a limit of 64 MiB");
	assert_says(m.found->headroom, "rounded up to 320 MiB");
}

static void test_several_kills(void **state)
{
	double kill[] = {1, 0, 3};

	(void)state;
	analysis_open(&m, 1, 2, 0.5);
	analysis_set(&m, FIG_OOM_KILLS, 3);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_curve(&m, EV_CG_OOM_KILL, 0, MAKER_CGROUP, rises, kill);
	assert_says(analysis_find(&m, "oom")->text, "In all, 3 processes were killed.");
}

/* ---- other ends ---- */

static void test_killed_by_somebody(void **state)
{
	const struct finding *f;

	(void)state;
	analysis_open(&m, 1, 2, 0.5);
	analysis_set(&m, FIG_OOM_KILLS, 0);
	analysis_set(&m, FIG_PSS, GIB);
	ended_by(SIGKILL);
	f = analysis_find(&m, "killed");
	assert_non_null(f);
	assert_string_equal(f->title, "The job was ended by the signal SIGKILL");
	assert_says(f->text, "Memory had not run out");
	assert_says(f->text, "1 GiB of 16 GiB allowed");
	assert_null(strstr(f->text, "time that was asked for was over"));
	/* Nobody knows. */
	figure_unset(&m.summary, FIG_OOM_KILLS, "no group");
	assert_says(analysis_find(&m, "killed")->text, "is not known");
	/* A shell says it so. */
	figure_unset(&m.summary, FIG_EXIT_SIGNAL, "");
	analysis_set(&m, FIG_EXIT_CODE, 137);
	assert_string_equal(analysis_ids(&m), "killed");
}

static void test_the_time_was_over(void **state)
{
	(void)state;
	analysis_open(&m, 1, 3600, 60);
	ended_by(SIGTERM);
	analysis_fact(&m.summary, "SLURM_JOB_END_TIME", "1700003599");
	assert_says(analysis_find(&m, "signal")->text, "time that was asked for was over");
	m.summary.start_wall_ns -= 1000 * NSEC_PER_SEC;
	assert_null(strstr(analysis_find(&m, "signal")->text, "was over"));
	analysis_close(&m);
	analysis_open(&m, 1, 3600, 60);
	ended_by(SIGKILL);
	analysis_fact(&m.summary, "OAR_JOB_WALLTIME_SECONDS", "3600");
	assert_says(analysis_find(&m, "killed")->text, "time that was asked for was over");
}

static void test_signals_and_codes(void **state)
{
	(void)state;
	analysis_open(&m, 1, 1, 0.5);
	ended_by(SIGSEGV);
	assert_says(analysis_find(&m, "signal")->title, "SIGSEGV");
	assert_says(analysis_find(&m, "signal")->text, "not its own");
	assert_int_equal(analysis_find(&m, "signal")->weight, FINDING_SERIOUS);
	ended_by(60);
	assert_says(analysis_find(&m, "signal")->title, "signal 60");
	figure_unset(&m.summary, FIG_EXIT_SIGNAL, "");
	analysis_set(&m, FIG_EXIT_CODE, 1);
	assert_string_equal(analysis_find(&m, "failed")->title, "The job failed with exit code 1");
	assert_int_equal(analysis_find(&m, "failed")->weight, FINDING_WARNING);
	analysis_set(&m, FIG_EXIT_CODE, 127);
	assert_says(analysis_find(&m, "failed")->text, "not found");
	analysis_set(&m, FIG_EXIT_CODE, 139);
	assert_says(analysis_find(&m, "failed")->text, "signal 11");
	analysis_set(&m, FIG_EXIT_CODE, 0);
	assert_string_equal(analysis_ids(&m), "");
	figure_unset(&m.summary, FIG_EXIT_CODE, "we attached");
	assert_string_equal(analysis_ids(&m), "");
}

/* ---- not measured ---- */

static void test_unmeasured(void **state)
{
	(void)state;
	analysis_open(&m, 1, 60, 1);
	assert_string_equal(analysis_ids(&m), "");
	assert_int_equal(m.found->nr_unmeasured, 0);
	figure_unset(&m.summary, FIG_ENERGY, "only root may read the meters");
	figure_unset(&m.summary, FIG_PSS, "no right to look");
	figure_unset(&m.summary, FIG_READ_CHARS, "no right to look");
	/* A kernel without pressure has no value of it, and a reason. */
	m.column[1 + EV_PRESSURE_IO] =
		(struct curves_column){.name = "pressure.io.some", .why = "not in this kernel"};
	analysis_set(&m, FIG_MISSED, 100);
	analysis_ids(&m);
	assert_int_equal(m.found->nr_unmeasured, 4);
	assert_string_equal(m.found->unmeasured[0],
		"Memory without counting shared pages twice (PSS) and I/O of the job: no right to look.");
	assert_string_equal(m.found->unmeasured[1], "Energy: only root may read the meters.");
	assert_says(m.found->unmeasured[2], "(pressure): not in this kernel.");
	assert_says(m.found->unmeasured[3], "100 of 200 samples");
	m.summary.gpus_why = "the driver\nis broken";
	analysis_ids(&m);
	assert_string_equal(m.found->unmeasured[3], "GPUs: the driver\\nis broken.");
}

/* ---- what may come ---- */

static void test_order(void **state)
{
	(void)state;
	analysis_open(&m, 1, 100, 1);
	ended_by(SIGSEGV);
	analysis_set(&m, FIG_MEAN_CORES, 7.5);
	analysis_set(&m, FIG_CPU, 750);
	analysis_set(&m, FIG_ENERGY, 750);
	analysis_set(&m, FIG_PSS, 15.9 * GIB);
	assert_string_equal(analysis_ids(&m), "signal memory-near-limit energy cores-used");
	for (size_t i = 0; i < m.found->nr; i++) {
		assert_non_null(m.found->item[i].title);
		assert_non_null(m.found->item[i].text);
		assert_true(m.found->item[i].nr_evidence > 0);
	}
	assert_string_equal(finding_weight_name(FINDING_SERIOUS), "serious");
	assert_string_equal(finding_weight_name(FINDING_FINE), "fine");
}

static void test_names_mean_harm(void **state)
{
	const char bad[] =
		"</script>\n\x1b[31m\xff\xfe and a very long name that goes on and on and on and on";
	struct process_row *row;
	const char *title;

	(void)state;
	with_kill();
	row = killed_process(12, "x", 1.9, 60 * MIB, SIGKILL);
	free(row->name);
	row->name = strdup(bad);
	row->name_len = strlen(bad);
	title = analysis_find(&m, "oom")->title;
	assert_says(title, "\\n\\x1b[31m\\xff\\xfe");
	for (const char *p = title; *p; p++)
		assert_true((unsigned char)*p >= ' ');
	assert_true(strlen(title) < 140);
	/* No name at all. */
	row->name_len = 0;
	assert_finds(&m, "oom");
}

static void test_next_to_nothing(void **state)
{
	static const double odd[] = {0, -1, NAN, INFINITY, 1e300};

	(void)state;
	/* No curves, no processes, no statistics. */
	analysis_open(&m, 1, 0, 1);
	figure_unset(&m.summary, FIG_WALL, "empty");
	assert_string_equal(analysis_ids(&m), "");
	m.analysis.curves = NULL;
	m.analysis.stats = NULL;
	m.analysis.processes = NULL;
	assert_string_equal(analysis_ids(&m), "");
	analysis_close(&m);
	/* Numbers that no machine has: whatever is said, nothing breaks. */
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		analysis_open(&m, 2, 100, 1);
		for (enum figure_id id = FIG_TICKS; id < NR_FIGURES; id++) {
			figure_set(&m.summary, id, odd[i]);
			figure_set(&m.node[0], id, odd[i]);
			figure_set(&m.node[1], id, odd[(i + 1) % ARRAY_SIZE(odd)]);
		}
		for (enum evidence_id id = 0; id < NR_EVIDENCE; id++)
			for (size_t node = 0; node < 2; node++)
				analysis_flat(&m, id, node, MAKER_CGROUP, odd[(i + id) % ARRAY_SIZE(odd)]);
		for (int k = 0; k < 4; k++)
			analysis_process(&m, 0, k, "p", odd[i], odd[(i + 1) % ARRAY_SIZE(odd)], odd[i]);
		analysis_ids(&m);
		assert_non_null(m.found);
		if (i + 1 < ARRAY_SIZE(odd))
			analysis_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_who_when_and_which_limit, teardown),
		cmocka_unit_test_teardown(test_the_group_that_was_full, teardown),
		cmocka_unit_test_teardown(test_the_machine_was_full, teardown),
		cmocka_unit_test_teardown(test_a_limit_that_only_the_summary_knows, teardown),
		cmocka_unit_test_teardown(test_whom_is_not_known, teardown),
		cmocka_unit_test_teardown(test_a_kill_that_the_node_counts, teardown),
		cmocka_unit_test_teardown(test_several_kills, teardown),
		cmocka_unit_test_teardown(test_growth_before_it, teardown),
		cmocka_unit_test_teardown(test_advice_by_the_limit_that_was_reached, teardown),
		cmocka_unit_test_teardown(test_killed_by_somebody, teardown),
		cmocka_unit_test_teardown(test_the_time_was_over, teardown),
		cmocka_unit_test_teardown(test_signals_and_codes, teardown),
		cmocka_unit_test_teardown(test_unmeasured, teardown),
		cmocka_unit_test_teardown(test_order, teardown),
		cmocka_unit_test_teardown(test_names_mean_harm, teardown),
		cmocka_unit_test_teardown(test_next_to_nothing, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
