/* analysis/findings: memory against its limit and by which view, growth, swap. */
#include "analysis_maker.h"

#include <math.h>
#include <setjmp.h>
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

/* ---- against the limit ---- */

static void with_memory(double pss, double limit)
{
	analysis_open(&m, 1, 100, 1);
	analysis_set(&m, FIG_PSS, pss);
	analysis_set(&m, FIG_PSS_AT, 70);
	analysis_set(&m, FIG_RSS, pss * 1.5);
	analysis_set(&m, FIG_LIMIT_MEMORY, limit);
}

static void test_near_the_limit(void **state)
{
	const struct finding *f;

	(void)state;
	with_memory(3.8 * GIB, 4 * GIB);
	analysis_text(&m.summary, TEXT_MEMORY_SOURCE, "SLURM_MEM_PER_NODE");
	f = analysis_find(&m, "memory-near-limit");
	assert_non_null(f);
	assert_string_equal(f->title, "The memory peak of 3.8 GiB is 95 % of the limit of 4 GiB");
	assert_says(f->text, "set by SLURM_MEM_PER_NODE");
	assert_says(f->text, "The number is the PSS.");
	assert_true(f->from_s == 70);
	assert_string_equal(f->evidence[0].name, "memory.peak_pss_bytes");
	assert_string_equal(f->evidence[1].name, "limits.memory_bytes");
	assert_int_equal(f->evidence[1].unit, UNIT_BYTES);
}

static void test_far_from_the_limit(void **state)
{
	(void)state;
	/* A grant of which little was used, and the same without a grant. */
	with_memory(0.5 * GIB, 8 * GIB);
	assert_says(analysis_find(&m, "unused-memory")->title, "512 MiB of the 8 GiB of memory asked for");
	analysis_set(&m, FIG_LIMIT_MEMORY, 16 * GIB);
	assert_string_equal(analysis_ids(&m), "");
	/* Little of little. */
	analysis_set(&m, FIG_LIMIT_MEMORY, 1 * GIB);
	analysis_set(&m, FIG_PSS, 0.1 * GIB);
	assert_string_equal(analysis_ids(&m), "");
	/* Well chosen; and neither. */
	analysis_set(&m, FIG_PSS, 0.7 * GIB);
	assert_string_equal(analysis_ids(&m), "memory-used");
	analysis_set(&m, FIG_PSS, 0.4 * GIB);
	assert_string_equal(analysis_ids(&m), "");
	figure_unset(&m.summary, FIG_PSS, "forbidden");
	figure_unset(&m.summary, FIG_RSS, "forbidden");
	assert_string_equal(analysis_ids(&m), "");
}

static double hill(double t, const double *arg)
{
	return t < 50 ? arg[0] * t / 50 : arg[0] * (100 - t) / 50;
}

static void test_views(void **state)
{
	const struct finding *f;
	double anon = 3.7 * GIB;

	(void)state;
	with_memory(3.8 * GIB, 4 * GIB);
	figure_unset(&m.summary, FIG_PSS, "forbidden");
	analysis_set(&m, FIG_RSS, 3.9 * GIB);
	f = analysis_find(&m, "memory-near-limit");
	assert_says(f->text, "RSS, summed over processes, an upper bound");
	assert_string_equal(f->evidence[0].name, "memory.peak_rss_bytes");
	analysis_close(&m);

	/* Programs in a control group that has the limit: the kernel counts them, not our processes. */
	with_memory(2 * GIB, 4 * GIB);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_curve(&m, EV_CG_ANON, 0, MAKER_CGROUP, hill, &anon);
	analysis_flat(&m, EV_CG_SHMEM, 0, MAKER_CGROUP, 0.2 * GIB);
	assert_string_equal(analysis_ids(&m), "memory-used");
	analysis_text(&m.summary, TEXT_MEMORY_SOURCE, "cgroup " MAKER_CGROUP " memory.max");
	f = analysis_find(&m, "memory-near-limit");
	assert_non_null(f);
	assert_says(f->title, "3.9 GiB is 98 %");
	assert_string_equal(f->evidence[0].name, "cgroup.memory.anon+shmem");
	assert_true(f->from_s == 50);
	analysis_close(&m);

	/* What one process has by libraries that it shares was seen in RSS. */
	with_memory(1 * GIB, 1.6 * GIB);
	analysis_set(&m, FIG_HWM, 1.5 * GIB);
	assert_string_equal(analysis_ids(&m), "memory-used");
	analysis_close(&m);

	/* A process that had more between two samples; libraries that it shares do not make it so. */
	with_memory(1 * GIB, 4 * GIB);
	analysis_set(&m, FIG_HWM, 1.5 * GIB);
	assert_string_equal(analysis_ids(&m), "");
	analysis_set(&m, FIG_HWM, 3.7 * GIB);
	assert_says(analysis_find(&m, "memory-near-limit")->text, "high-water mark of one process");
}

static void test_the_fullest_node_tells(void **state)
{
	const struct finding *f;

	(void)state;
	analysis_open(&m, 3, 100, 1);
	m.axis[1].offset_s = 5;
	for (size_t i = 0; i < 3; i++) {
		figure_set(&m.node[i], FIG_PSS, (i == 1 ? 15.5 : 2) * GIB);
		figure_set(&m.node[i], FIG_PSS_AT, 30);
	}
	f = analysis_find(&m, "memory-near-limit");
	assert_non_null(f);
	assert_int_equal(f->node, 1);
	assert_says(f->title, "on n1");
	/* Its time of 30 s is the run's 35th. */
	assert_true(f->from_s == 35);
}

/* ---- growth ---- */

static double leak(double t, const double *arg)
{
	(void)arg;
	return (100 + 4 * t) * MIB;
}

static double warm_up(double t, const double *arg)
{
	(void)arg;
	return (t < 30 ? 20 * t : 600 + 0.05 * t) * MIB;
}

static double cache(double t, const double *arg)
{
	(void)arg;
	return 1000 * (1 - exp(-t / 20)) * MIB;
}

static double steps_that_end(double t, const double *arg)
{
	(void)arg;
	return (100 + 100 * (t < 60 ? floor(t / 10) : 6)) * MIB + t;
}

static double few_steps(double t, const double *arg)
{
	(void)arg;
	return (100 + 100 * floor(t / 25)) * MIB;
}

static double many_steps(double t, const double *arg)
{
	(void)arg;
	return (100 + 100 * floor(t / 12)) * MIB;
}

static double little(double t, const double *arg)
{
	(void)arg;
	return (1 + t / 10) * MIB;
}

static double teeth(double t, const double *arg)
{
	(void)arg;
	return (200 + 30 * fmod(t, 10)) * MIB;
}

static double teeth_of_a_leak(double t, const double *arg)
{
	return teeth(t, arg) + 5 * t * MIB;
}

static double jump_at_the_end(double t, const double *arg)
{
	(void)arg;
	return (t < 90 ? 100 : 1000) * MIB;
}

static double freed_in_time(double t, const double *arg)
{
	(void)arg;
	return (t < 60 ? 100 + 10 * t : 100) * MIB;
}

static double noise(double t, const double *arg)
{
	(void)arg;
	return (500 + 40 * sin(t * 1.7) + 30 * sin(t * 0.31)) * MIB;
}

static double slow_leak(double t, const double *arg)
{
	(void)arg;
	return (100 + t / 120) * MIB;
}

static double one_gib(double t, const double *arg)
{
	(void)t;
	(void)arg;
	return GIB;
}

static void with_curve(double wall, double step, double (*value)(double t, const double *arg))
{
	analysis_open(&m, 1, wall, step);
	analysis_curve(&m, EV_PSS, 0, NULL, value, NULL);
}

static void test_growth(void **state)
{
	const struct finding *f;

	(void)state;
	with_curve(100, 1, leak);
	analysis_process_curve(&m, 11, "quiet", one_gib);
	analysis_process_curve(&m, 12, "leaky", leak);
	f = analysis_find(&m, "memory-growth");
	assert_non_null(f);
	assert_int_equal(f->weight, FINDING_WARNING);
	assert_string_equal(f->title, "Memory grew steadily by 4 MiB/s up to the end");
	/* Number by number: 300 MiB in 75 s are 4 MiB/s. */
	assert_says(f->text, " in 1m15s (PSS)");
	assert_true(fabs(f->evidence[1].value - 300 * MIB) < MIB);
	assert_says(f->text, "leaky (PID 12)");
	assert_says(f->text, "limit of 16 GiB is reached");
	assert_true(fabs(f->evidence[0].value - 4 * MIB) < 0.01 * MIB && f->evidence[0].per_second);
	assert_true(f->from_s >= 19 && f->from_s <= 21 && f->to_s == 100);
}

static void test_growth_under_teeth(void **state)
{
	(void)state;
	with_curve(400, 1, teeth_of_a_leak);
	assert_says(analysis_find(&m, "memory-growth")->title, "5.02 MiB/s");
}

static void test_slow_growth_is_told_by_the_hour(void **state)
{
	(void)state;
	with_curve(7200, 10, slow_leak);
	assert_says(analysis_find(&m, "memory-growth")->title, "30 MiB/h");
}

static void test_growth_from_twenty_ticks_on(void **state)
{
	(void)state;
	with_curve(22, 1, leak);
	assert_finds(&m, "memory-growth");
}

static double half(double t, const double *arg)
{
	return t < 1e9 ? arg[0] : NAN;
}

/* A session's group beside the job: 841 MiB are not the job's 173. */
static void test_a_group_with_others_in_it(void **state)
{
	struct memory_view v;

	(void)state;
	analysis_open(&m, 1, 100, 1);
	analysis_set(&m, FIG_PSS, 173 * MIB);
	analysis_set(&m, FIG_LIMIT_MEMORY, GIB);
	analysis_text(&m.summary, TEXT_CGROUP, "/session");
	analysis_text(&m.summary, TEXT_MEMORY_SOURCE, "cgroup /session memory.max");
	analysis_curve(&m, EV_RSS, 0, NULL, half, (double[]){180 * MIB});
	analysis_flat(&m, EV_CG_ANON, 0, "/session", 841 * MIB);
	assert_true(group_has_others(&m.analysis, &m.summary, 0));
	v = memory_view_of(&m.analysis, &m.summary, 0, true);
	assert_true(v.bytes == 173 * MIB);
	/* Against the limit all of it counts, and it is said what it is. */
	v = memory_view_of(&m.analysis, &m.summary, 0, false);
	assert_true(v.bytes == 841 * MIB);
	assert_says(v.name, "others than the job's included");
	/* What a batch system made for the job is the job's. */
	analysis_text(&m.summary, TEXT_SCHEDULER, "slurm");
	assert_false(group_has_others(&m.analysis, &m.summary, 0));
	analysis_close(&m);
	/* A little more than what was read a moment earlier is the job's own. */
	analysis_open(&m, 1, 100, 1);
	analysis_text(&m.summary, TEXT_CGROUP, "/job");
	analysis_curve(&m, EV_RSS, 0, NULL, half, (double[]){180 * MIB});
	analysis_flat(&m, EV_CG_ANON, 0, "/job", 190 * MIB);
	assert_false(group_has_others(&m.analysis, &m.summary, 0));
}

static void test_growth_by_rss(void **state)
{
	(void)state;
	analysis_open(&m, 1, 20, 0.1);
	analysis_curve(&m, EV_RSS, 0, NULL, leak, NULL);
	assert_says(analysis_find(&m, "memory-growth")->text, "RSS, summed over processes");
	/* Of twenty seconds it is a note only. */
	assert_int_equal(analysis_find(&m, "memory-growth")->weight, FINDING_NOTE);
}

static void test_no_growth(void **state)
{
	static double (*const value[])(double t, const double *arg) = {warm_up, cache, steps_that_end,
		few_steps, many_steps, little, teeth, jump_at_the_end, freed_in_time, noise, one_gib,
		slow_leak};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(value); i++) {
		with_curve(100, 0.5, value[i]);
		if (analysis_find(&m, "memory-growth"))
			fail_msg("curve %zu: %s", i, analysis_find(&m, "memory-growth")->title);
		analysis_close(&m);
	}
	/* Of nine seconds everything is start-up; and of few points. */
	with_curve(9.9, 0.1, leak);
	assert_finds_not(&m, "memory-growth");
	analysis_close(&m);
	with_curve(90, 5, leak);
	assert_finds_not(&m, "memory-growth");
}

static double leak_with_a_gap(double t, const double *arg)
{
	return t > 40 && t < 55 ? NAN : leak(t, arg);
}

static void test_no_growth_across_a_gap(void **state)
{
	(void)state;
	with_curve(100, 0.5, leak_with_a_gap);
	assert_finds_not(&m, "memory-growth");
}

/* Where points stand for longer times their least values count: what is left after each tooth. */
static void test_no_growth_of_means_alone(void **state)
{
	float low[201];

	(void)state;
	with_curve(100, 0.5, leak);
	for (size_t i = 0; i < ARRAY_SIZE(low); i++)
		low[i] = (float)(100 * MIB);
	m.curves.line[0].low = low;
	assert_finds_not(&m, "memory-growth");
}

static double leak_for_nine_seconds(double t, const double *arg)
{
	return t > 9 ? NAN : leak(5 * t, arg);
}

static void test_no_growth_on_a_node_that_ended_soon(void **state)
{
	(void)state;
	analysis_open(&m, 2, 100, 0.1);
	figure_set(&m.node[1], FIG_WALL, 9);
	analysis_curve(&m, EV_PSS, 1, NULL, leak_for_nine_seconds, NULL);
	assert_finds_not(&m, "memory-growth");
	figure_set(&m.node[1], FIG_WALL, 10);
	assert_finds(&m, "memory-growth");
}

/* ---- swap ---- */

static void test_swapping(void **state)
{
	(void)state;
	with_memory(GIB, 8 * GIB);
	analysis_set(&m, FIG_SWAP, 300 * MIB);
	analysis_set(&m, FIG_SWAP_AT, 60);
	analysis_set(&m, FIG_MAJOR, 5000);
	assert_says(
		analysis_find(&m, "swapping")->title, "Up to 300 MiB of the job's memory were swapped out");
	assert_says(analysis_find(&m, "swapping")->text, "5,000 times");
	analysis_set(&m, FIG_SWAP, 10 * MIB);
	assert_finds_not(&m, "swapping");
	/* Little beside much. */
	analysis_set(&m, FIG_SWAP, 20 * MIB);
	analysis_set(&m, FIG_RSS, 10 * GIB);
	assert_finds_not(&m, "swapping");
	figure_unset(&m.summary, FIG_SWAP, "forbidden");
	assert_finds_not(&m, "swapping");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_near_the_limit, teardown),
		cmocka_unit_test_teardown(test_far_from_the_limit, teardown),
		cmocka_unit_test_teardown(test_views, teardown),
		cmocka_unit_test_teardown(test_the_fullest_node_tells, teardown),
		cmocka_unit_test_teardown(test_growth, teardown),
		cmocka_unit_test_teardown(test_growth_under_teeth, teardown),
		cmocka_unit_test_teardown(test_slow_growth_is_told_by_the_hour, teardown),
		cmocka_unit_test_teardown(test_growth_by_rss, teardown),
		cmocka_unit_test_teardown(test_growth_from_twenty_ticks_on, teardown),
		cmocka_unit_test_teardown(test_a_group_with_others_in_it, teardown),
		cmocka_unit_test_teardown(test_no_growth, teardown),
		cmocka_unit_test_teardown(test_no_growth_across_a_gap, teardown),
		cmocka_unit_test_teardown(test_no_growth_of_means_alone, teardown),
		cmocka_unit_test_teardown(test_no_growth_on_a_node_that_ended_soon, teardown),
		cmocka_unit_test_teardown(test_swapping, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
