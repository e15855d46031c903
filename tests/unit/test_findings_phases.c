/* analysis/findings: what the job's phases show, and the phase in which a finding is. */
#include "analysis_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct analysis_maker m;
static struct phase fold[8], repetition[64];
static struct phases phases;
static char name[64][32];

static int teardown(void **state)
{
	(void)state;
	m.summary.phases = NULL; /* the test's own */
	analysis_close(&m);
	return 0;
}

static void unknown(struct phase *p)
{
	for (unsigned i = 0; i < NR_PHASE_VALUES; i++)
		p->value[i] = NAN;
}

static struct phase *add_fold(const char *called, int parent, double begin_s, double end_s)
{
	struct phase *p = &fold[phases.nr++];

	*p = (struct phase){.name = (char *)called,
		.parent = parent,
		.depth = parent >= 0,
		.begin_s = begin_s,
		.end_s = end_s,
		.nodes = 1};
	unknown(p);
	p->value[PHASE_WALL] = end_s - begin_s;
	p->mean_s = p->sd_s = NAN;
	return p;
}

static struct phase *add_repetition(unsigned of, double begin_s, double end_s, const char *called)
{
	struct phase *p = &repetition[phases.nr_repetitions];

	snprintf(name[phases.nr_repetitions], sizeof(name[0]), "%s", called);
	*p = (struct phase){.name = name[phases.nr_repetitions++],
		.fold = of,
		.number = ++fold[of].count,
		.begin_s = begin_s,
		.end_s = end_s};
	unknown(p);
	p->value[PHASE_WALL] = end_s - begin_s;
	return p;
}

/* load 0..10, ten epochs of 8 s but for one, save. */
static void open_run(void)
{
	double at = 10;

	phases = (struct phases){.phase = fold, .repetition = repetition};
	analysis_open(&m, 1, 130, 1);
	m.summary.phases = &phases;
	add_fold("load", -1, 0, 10);
	add_fold("epoch", -1, 10, 110);
	add_fold("backward", 1, 12, 110);
	add_fold("save", -1, 110, 120);
	add_repetition(0, 0, 10, "load");
	for (unsigned i = 1; i <= 10; i++) {
		double took = i == 7 ? 28 : 8;
		char called[32];

		snprintf(called, sizeof(called), "epoch %u", i);
		add_repetition(1, at, at + took, called);
		add_repetition(2, at + 2, at + took, "backward");
		at += took;
	}
	add_repetition(3, 110, 120, "save");
}

static void test_the_repetition_that_stands_out(void **state)
{
	const struct finding *f;

	(void)state;
	open_run();
	assert_finds_not(&m, "phase-outlier");
	fold[1].slowest = 7;
	fold[1].slower = 2.5;
	fold[1].mean_s = 10;
	fold[1].slower_why = "CPU pressure";
	fold[2].slowest = 7;
	fold[2].slower = 3.3;
	fold[2].mean_s = 8;
	f = analysis_find(&m, "phase-outlier");
	assert_non_null(f);
	assert_string_equal(f->title, "epoch 7 took 20.0s longer than the other 9");
	assert_says(f->text, "28.0s instead of 8.00s");
	assert_says(f->text, "Most of it was in backward.");
	assert_says(f->text, "What differed: CPU pressure.");
	assert_string_equal(f->phase, "epoch 7");
	assert_true(f->from_s == 58 && f->to_s == 86);
	/* Once, though the phase in it stands out as well. */
	assert_null(strstr(strstr(analysis_ids(&m), "phase-outlier") + 1, "phase-outlier"));
	/* A moment is not worth it. */
	fold[1].slower = fold[2].slower = 0.01;
	assert_finds_not(&m, "phase-outlier");
}

static double in_steps(double t, const double *arg)
{
	(void)arg;
	/* It rises with the begin of each backward, two seconds into its epoch. */
	return 100 * MIB +
		10 * MIB *
		(t < 12			   ? 0
				: t < 60.5 ? 1 + floor((t - 12.5) / 8)
				: t < 88.5 ? 7
					   : MIN(8 + floor((t - 88.5) / 8), 10));
}

static void test_memory_that_is_left_behind(void **state)
{
	const struct finding *f;

	(void)state;
	open_run();
	analysis_curve(&m, EV_PSS, 0, NULL, in_steps, NULL);
	for (size_t i = 0; i < phases.nr_repetitions; i++)
		if (repetition[i].fold == 1)
			repetition[i].value[PHASE_PSS_MEAN] = 100 * MIB + 10 * MIB * repetition[i].number;
	f = analysis_find(&m, "phase-leak");
	assert_non_null(f);
	assert_string_equal(f->title, "Each repetition of epoch left 10 MiB more memory behind");
	assert_says(f->text, "From 120 MiB in the 2nd to 200 MiB in the 10th");
	assert_says(f->text, "It grows in backward.");
	assert_int_equal(f->weight, FINDING_WARNING);
	/* What it takes just before its end is seen by the sample that its end asks for, a moment later. */
	for (size_t i = 0; i < phases.nr_repetitions; i++)
		if (repetition[i].fold == 2)
			repetition[i].end_s = repetition[i].begin_s + 0.99;
	assert_says(analysis_find(&m, "phase-leak")->text, "It grows in backward.");
	/* A cache that is full after three of them is none. */
	for (size_t i = 0; i < phases.nr_repetitions; i++)
		if (repetition[i].fold == 1)
			repetition[i].value[PHASE_PSS_MEAN] =
				100 * MIB + 30 * MIB * MIN(repetition[i].number, 3);
	assert_finds_not(&m, "phase-leak");
}

static void test_waiting_for_cpus(void **state)
{
	const struct finding *f;

	(void)state;
	open_run();
	fold[2].value[PHASE_RUN_QUEUE] = 40;
	fold[1].value[PHASE_RUN_QUEUE] = 41;
	f = analysis_find(&m, "phase-starved");
	assert_non_null(f);
	assert_string_equal(f->title, "Phase backward waited 40.0s for CPUs");
	assert_says(f->text, "41 % of its 1m38s");
	/* All of the run alike is told of the run. */
	fold[0].value[PHASE_RUN_QUEUE] = fold[3].value[PHASE_RUN_QUEUE] = 5;
	assert_finds_not(&m, "phase-starved");
	fold[2].value[PHASE_CGROUP_THROTTLED] = 30;
	assert_string_equal(analysis_find(&m, "phase-starved")->title,
		"The CPU quota held phase backward back for 30.0s");
}

static void test_gpus_that_idle(void **state)
{
	const struct finding *f;

	(void)state;
	open_run();
	fold[0].value[PHASE_GPU_UTIL] = 3;
	fold[0].value[PHASE_WALL] = 30;
	fold[1].value[PHASE_GPU_UTIL] = 91;
	f = analysis_find(&m, "phase-idle-gpu");
	assert_non_null(f);
	assert_string_equal(f->title, "The GPUs idled in phase load: 3 % busy for 30.0s");
	assert_says(f->text, "up to 91 %");
	/* Idle everywhere is another finding. */
	fold[1].value[PHASE_GPU_UTIL] = 5;
	assert_finds_not(&m, "phase-idle-gpu");
}

static void test_findings_name_their_phase(void **state)
{
	const struct finding *f;

	(void)state;
	open_run();
	analysis_set(&m, FIG_PSS, 3.8 * GIB);
	analysis_set(&m, FIG_PSS_AT, 115);
	analysis_set(&m, FIG_LIMIT_MEMORY, 4 * GIB);
	f = analysis_find(&m, "memory-near-limit");
	assert_non_null(f);
	assert_says(f->text, "It is in phase save.");
	assert_string_equal(f->phase, "save");
	analysis_set(&m, FIG_PSS_AT, 25);
	assert_says(analysis_find(&m, "memory-near-limit")->text, "It is in phase backward of epoch 2.");
	analysis_set(&m, FIG_PSS_AT, 125);
	assert_null(analysis_find(&m, "memory-near-limit")->phase);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_the_repetition_that_stands_out, teardown),
		cmocka_unit_test_teardown(test_memory_that_is_left_behind, teardown),
		cmocka_unit_test_teardown(test_waiting_for_cpus, teardown),
		cmocka_unit_test_teardown(test_gpus_that_idle, teardown),
		cmocka_unit_test_teardown(test_findings_name_their_phase, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
