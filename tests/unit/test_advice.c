/* analysis/advice: the lines for the next job script, and when there are none. */
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

/* All lines of one batch system, with newlines. */
static const char *lines_of(const char *scheduler)
{
	static char text[1000];

	text[0] = 0;
	analysis_ids(&m);
	for (size_t i = 0; i < m.found->nr_advice; i++)
		for (size_t k = 0;
			!strcmp(m.found->advice[i].scheduler, scheduler) && k < m.found->advice[i].nr_lines;
			k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n",
				m.found->advice[i].line[k]);
	return text;
}

static void with_run(size_t nodes, double wall, double p95, double pss)
{
	analysis_open(&m, nodes, wall, wall / 100);
	analysis_p95(&m, p95 * (double)nodes, p95);
	for (size_t i = 0; i < nodes; i++) {
		figure_set(analysis_part(&m, i), FIG_PSS, pss);
		figure_set(analysis_part(&m, i), FIG_MEAN_CORES, p95);
		figure_set(analysis_part(&m, i), FIG_CPU, p95 * wall);
	}
}

static void test_lines(void **state)
{
	(void)state;
	with_run(1, 3700, 3.05, 3 * GIB);
	assert_string_equal(lines_of("slurm"),
		"#SBATCH --cpus-per-task=3\n#SBATCH --mem=3840M\n#SBATCH --time=01:30:00\n");
	assert_string_equal(
		lines_of("pbs"), "#PBS -l select=1:ncpus=3:mem=3840mb\n#PBS -l walltime=01:30:00\n");
	assert_string_equal(lines_of("oar"), "#OAR -l /nodes=1/core=3,walltime=01:30:00\n");
	assert_null(m.found->why_no_advice);
	assert_says(m.found->headroom, "Cores: 95 % of the time no more than 3.0 cores were in use.");
	assert_says(m.found->headroom,
		"Memory: peak PSS of 3 GiB, plus 614 MiB of headroom (20 %, at least 256 MiB), rounded up to "
		"3.75 GiB.");
	assert_says(m.found->headroom, "Time: 1h01m + 25 %, rounded up to a multiple of 15m00s.");
	for (size_t i = 0; i < m.found->nr_advice; i++)
		assert_false(m.found->advice[i].own);
}

static void test_own_batch_system_first(void **state)
{
	(void)state;
	with_run(1, 3700, 3.05, 3 * GIB);
	analysis_text(&m.summary, TEXT_SCHEDULER, "oar");
	analysis_ids(&m);
	assert_int_equal(m.found->nr_advice, 3);
	assert_string_equal(m.found->advice[0].scheduler, "oar");
	assert_true(m.found->advice[0].own);
	assert_string_equal(m.found->advice[1].scheduler, "slurm");
	assert_false(m.found->advice[1].own);
}

static void test_rounding(void **state)
{
	(void)state;
	/* A few MiB become what is added at least; a run of a minute five. */
	with_run(1, 61, 0.2, 10 * MIB);
	assert_string_equal(lines_of("slurm"),
		"#SBATCH --cpus-per-task=1\n#SBATCH --mem=320M\n#SBATCH --time=00:05:00\n");
	analysis_close(&m);
	/* A fifth of much; days have their own form in SLURM. */
	with_run(1, 100 * 3600, 7.5, 100 * GIB);
	analysis_set(&m, FIG_LIMIT_MEMORY, 256 * GIB);
	assert_string_equal(lines_of("slurm"),
		"#SBATCH --cpus-per-task=8\n#SBATCH --mem=120G\n#SBATCH --time=5-05:00:00\n");
	assert_says(lines_of("pbs"), "walltime=125:00:00");
	assert_says(lines_of("pbs"), "mem=120gb");
	analysis_close(&m);
	/* Late samples show more than there is. */
	with_run(1, 100, 9.7, GIB);
	assert_says(lines_of("slurm"), "--cpus-per-task=8\n");
}

static void test_nodes_and_tasks_are_counted(void **state)
{
	(void)state;
	/* One of four did nothing: three are enough, and their tasks. */
	with_run(4, 3600, 7.9, 3 * GIB);
	analysis_fact(&m.node[0], "SLURM_NTASKS", "32");
	figure_set(&m.node[2], FIG_MEAN_CORES, 0.01);
	m.stats.row[STATS_NODE][2].value[STAT_CORES_P95] = 0.01;
	assert_says(lines_of("slurm"), "#SBATCH --nodes=3\n#SBATCH --ntasks=24\n#SBATCH --cpus-per-task=1\n");
	assert_says(lines_of("pbs"), "select=3:ncpus=8:mpiprocs=8:");
	assert_says(m.found->headroom, "Nodes: 3 of 4 worked.");
	assert_says(m.found->headroom, "the one of 3 that needed most");
	analysis_close(&m);
	/* The recorders' own step, one on each node, is not the job. */
	with_run(2, 3600, 7.9, 3 * GIB);
	for (size_t i = 0; i < 2; i++) {
		free(m.node[i].mode);
		m.node[i].mode = strdup("attach");
	}
	analysis_fact(&m.node[0], "SLURM_NTASKS", "2");
	assert_says(lines_of("slurm"), "--ntasks=2\n");
	analysis_fact(&m.node[0], "SLURM_STEP_ID", "3");
	assert_says(lines_of("slurm"), "#SBATCH --nodes=2\n#SBATCH --cpus-per-task=8\n");
	/* Ranks that were recorded are. */
	m.summary.group = calloc(4, sizeof(struct summary));
	m.summary.nr_groups = 4;
	for (size_t i = 0; i < 4; i++) {
		m.summary.group[i].kind = "rank";
		m.summary.group[i].name = "";
	}
	assert_says(lines_of("slurm"), "#SBATCH --nodes=2\n#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=4\n");
	free(m.summary.group);
	m.summary.nr_groups = 0;
}

static void test_tasks(void **state)
{
	(void)state;
	with_run(2, 3600, 7.9, 3 * GIB);
	analysis_text(&m.node[0], TEXT_SCHEDULER, "slurm");
	analysis_fact(&m.node[0], "SLURM_NTASKS", "8");
	assert_string_equal(lines_of("slurm"),
		"#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --cpus-per-task=2\n#SBATCH --mem=3840M\n"
		"#SBATCH --time=01:15:00\n");
	assert_says(lines_of("pbs"), "select=2:ncpus=8:mpiprocs=4:mem=3840mb");
	assert_says(lines_of("oar"), "/nodes=2/core=8");
	assert_says(m.found->headroom, "the one of 2 that needed most");
	assert_true(m.found->advice[0].own);
}

static void test_the_node_that_needs_most(void **state)
{
	(void)state;
	with_run(3, 600, 2, GIB);
	figure_set(&m.node[1], FIG_PSS, 5 * GIB);
	m.stats.row[STATS_NODE][2].value[STAT_CORES_P95] = 6;
	assert_string_equal(lines_of("slurm"),
		"#SBATCH --nodes=3\n#SBATCH --cpus-per-task=6\n#SBATCH --mem=6G\n#SBATCH --time=00:15:00\n");
	/* Recordings of one host add up, to no more than it has. */
	m.node[1].host[1] = m.node[2].host[1] = '0';
	assert_string_equal(
		lines_of("slurm"), "#SBATCH --cpus-per-task=8\n#SBATCH --mem=9G\n#SBATCH --time=00:15:00\n");
}

static void test_oar_gives_memory_with_cores(void **state)
{
	(void)state;
	/* 9 GiB of 16 are the memory of five of eight cores. */
	with_run(1, 600, 1, 7.5 * GIB);
	assert_says(lines_of("oar"), "/nodes=1/core=5,");
	assert_says(lines_of("slurm"), "--cpus-per-task=1\n");
}

static void test_gpus(void **state)
{
	struct summary_gpu *gpu;

	(void)state;
	with_run(1, 600, 1, GIB);
	gpu = analysis_gpu(&m, "nvidia-0", 90, 100);
	gpu->figure[GPU_FIG_JOB_MEMORY_PEAK] = (struct figure){.value = GIB};
	analysis_gpu(&m, "nvidia-1", 0, 0);
	assert_says(lines_of("slurm"), "--gpus-per-node=1\n");
	assert_says(lines_of("pbs"), ":ngpus=1");
	assert_says(m.found->headroom, "GPUs: 1 of 2 were used.");
	m.summary.gpu[0].figure[GPU_FIG_JOB_MEMORY_PEAK].value = 0;
	m.summary.gpu[0].figure[GPU_FIG_UTIL_MAX].value = 0;
	assert_null(strstr(lines_of("slurm"), "gpus"));
	assert_says(m.found->headroom, "GPUs: none, since none was used.");
}

static void test_after_a_kill_more(void **state)
{
	(void)state;
	/* Killed at 4 GiB after three seconds, with 3.9 seen: more than before, and no time. */
	with_run(1, 3, 1, 3.9 * GIB);
	analysis_set(&m, FIG_LIMIT_MEMORY, 4 * GIB);
	analysis_set(&m, FIG_OOM_KILLS, 1);
	figure_unset(&m.summary, FIG_EXIT_CODE, "");
	analysis_set(&m, FIG_EXIT_SIGNAL, SIGKILL);
	assert_string_equal(lines_of("slurm"), "#SBATCH --cpus-per-task=8\n#SBATCH --mem=6G\n");
	assert_says(m.found->headroom, "killed because it ran out at a limit of 4 GiB");
	assert_says(m.found->headroom, "only a lower bound");
	assert_says(m.found->headroom, "at least 256 MiB above its peak");
	assert_says(m.found->headroom, "Time: not known, since the run was killed before its end.");
}

static void test_cores_that_it_could_not_have(void **state)
{
	(void)state;
	with_run(1, 600, 4, GIB);
	analysis_flat(&m, EV_CORES, 0, NULL, 4);
	analysis_flat(&m, EV_BUSY, 0, NULL, 1);
	analysis_flat(&m, EV_READY, 0, NULL, 4);
	assert_finds(&m, "starved");
	assert_says(lines_of("slurm"), "--cpus-per-task=8\n");
	assert_says(m.found->headroom, "as they were given");
}

/* What a finding says to ask for is what the lines ask for. */
static void test_findings_and_advice_agree(void **state)
{
	const struct finding *f;

	(void)state;
	/* One thread that often has to wait: how many it could use is not known. */
	with_run(1, 20, 0.6, GIB);
	analysis_flat(&m, EV_CORES, 0, NULL, 0.5);
	analysis_flat(&m, EV_BUSY, 0, NULL, 1);
	analysis_flat(&m, EV_READY, 0, NULL, 0.6);
	analysis_set(&m, FIG_MEAN_CORES, 0.5);
	assert_finds(&m, "starved");
	f = analysis_find(&m, "unused-cores");
	assert_non_null(f);
	assert_null(strstr(f->text, "Ask for"));
	assert_says(f->text, "not sure, since it was held back");
	assert_says(lines_of("slurm"), "--cpus-per-task=8\n");
	analysis_close(&m);
	/* One core and a helper, one and a third. */
	with_run(1, 600, 1.05, GIB);
	assert_says(analysis_find(&m, "unused-cores")->text, "Ask for one,");
	assert_says(lines_of("slurm"), "--cpus-per-task=1\n");
	analysis_close(&m);
	with_run(1, 600, 1.3, GIB);
	analysis_set(&m, FIG_MEAN_CORES, 1.1);
	assert_says(analysis_find(&m, "unused-cores")->text,
		"no more than 1.3 cores were in use. Ask for so many");
	assert_says(lines_of("slurm"), "--cpus-per-task=2\n");
	/* Too short for a percentile: the peak counts for both. */
	analysis_p95(&m, NAN, NAN);
	analysis_set(&m, FIG_PEAK_CORES, 1.9);
	assert_null(strstr(analysis_find(&m, "unused-cores")->text, "Ask for one"));
	assert_says(lines_of("slurm"), "--cpus-per-task=2\n");
}

static void test_views(void **state)
{
	(void)state;
	with_run(1, 600, 1, GIB);
	figure_unset(&m.summary, FIG_PSS, "forbidden");
	analysis_set(&m, FIG_RSS, 2 * GIB);
	assert_says(lines_of("slurm"), "--mem=2560M\n");
	assert_says(m.found->headroom,
		"peak RSS, summed over processes of 2 GiB, plus 410 MiB of headroom (20 %, at least 256 "
		"MiB), "
		"rounded up to 2.5 GiB; the peak is an upper bound");
	figure_unset(&m.summary, FIG_RSS, "forbidden");
	assert_null(strstr(lines_of("slurm"), "--mem"));
	assert_says(m.found->headroom, "Memory: not known.");
}

static void expect_none(const char *words)
{
	analysis_ids(&m);
	assert_int_equal(m.found->nr_advice, 0);
	assert_null(m.found->headroom);
	assert_non_null(m.found->why_no_advice);
	assert_says(m.found->why_no_advice, words);
}

static void test_no_advice(void **state)
{
	(void)state;
	with_run(1, 9.9, 1, GIB);
	expect_none("too short");
	analysis_close(&m);
	with_run(1, 600, 1, GIB);
	m.summary.complete = false;
	expect_none("unfinished");
	m.summary.complete = true;
	analysis_set(&m, FIG_EXIT_CODE, 1);
	expect_none("failed");
	figure_unset(&m.summary, FIG_EXIT_CODE, "");
	analysis_set(&m, FIG_EXIT_SIGNAL, SIGTERM);
	expect_none("signal");
	figure_unset(&m.summary, FIG_EXIT_SIGNAL, "");
	analysis_set(&m, FIG_EXIT_CODE, 0);
	assert_says(lines_of("slurm"), "--mem");
	figure_unset(&m.summary, FIG_PSS, "no");
	m.analysis.stats = NULL;
	expect_none("Neither");
}

static void test_attached_knows_no_time(void **state)
{
	(void)state;
	with_run(1, 600, 1, GIB);
	free(m.summary.mode);
	m.summary.mode = strdup("attach");
	figure_unset(&m.summary, FIG_EXIT_CODE, "we attached");
	assert_string_equal(lines_of("slurm"), "#SBATCH --cpus-per-task=1\n#SBATCH --mem=1280M\n");
	assert_says(lines_of("oar"), "#OAR -l /nodes=1/core=1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_lines, teardown),
		cmocka_unit_test_teardown(test_own_batch_system_first, teardown),
		cmocka_unit_test_teardown(test_rounding, teardown),
		cmocka_unit_test_teardown(test_nodes_and_tasks_are_counted, teardown),
		cmocka_unit_test_teardown(test_tasks, teardown),
		cmocka_unit_test_teardown(test_the_node_that_needs_most, teardown),
		cmocka_unit_test_teardown(test_oar_gives_memory_with_cores, teardown),
		cmocka_unit_test_teardown(test_gpus, teardown),
		cmocka_unit_test_teardown(test_after_a_kill_more, teardown),
		cmocka_unit_test_teardown(test_cores_that_it_could_not_have, teardown),
		cmocka_unit_test_teardown(test_findings_and_advice_agree, teardown),
		cmocka_unit_test_teardown(test_views, teardown),
		cmocka_unit_test_teardown(test_no_advice, teardown),
		cmocka_unit_test_teardown(test_attached_knows_no_time, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
