/* analysis/findings: nodes, ranks, short processes: spread evenly or not. */
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

/* ---- nodes ---- */

static void with_nodes(const double *cores, size_t nr)
{
	double sum = 0;

	analysis_open(&m, nr, 100, 1);
	for (size_t i = 0; i < nr; i++) {
		figure_set(&m.node[i], FIG_MEAN_CORES, cores[i]);
		figure_set(&m.node[i], FIG_CPU, cores[i] * 100);
		figure_set(&m.node[i], FIG_PSS, GIB);
		sum += cores[i];
	}
	analysis_set(&m, FIG_MEAN_CORES, sum);
	analysis_set(&m, FIG_CPU, sum * 100);
}

static void test_uneven_nodes(void **state)
{
	const struct finding *f;

	(void)state;
	with_nodes((double[]){7.8, 3, 4, 3}, 4);
	f = analysis_find(&m, "node-imbalance");
	assert_non_null(f);
	assert_string_equal(f->title, "The nodes worked unevenly: n0 used 7.8 cores, n1 3.0");
	assert_says(f->text, "57 %");
	assert_int_equal(f->node, 1);
	assert_finds_not(&m, "idle-node");
}

static void test_an_idle_node(void **state)
{
	const struct finding *f;

	(void)state;
	with_nodes((double[]){7.8, 7.7, 0.02}, 3);
	f = analysis_find(&m, "idle-node");
	assert_non_null(f);
	assert_says(f->title, "The node n2 did nothing");
	assert_int_equal(f->node, 2);
	/* The others are even. */
	assert_finds_not(&m, "node-imbalance");
}

static void test_even_nodes(void **state)
{
	(void)state;
	with_nodes((double[]){7.8, 7, 6.5}, 3);
	assert_string_equal(analysis_ids(&m), "cores-used");
	analysis_close(&m);
	/* Half a core is no imbalance, whatever the ratio. */
	with_nodes((double[]){0.8, 0.4, 0.4}, 3);
	assert_string_equal(analysis_ids(&m), "unused-cores");
	analysis_close(&m);
	/* All idle: the whole says it. */
	with_nodes((double[]){0.01, 0.01}, 2);
	assert_finds_not(&m, "idle-node");
	analysis_close(&m);
	/* Two recordings of one host are one node. */
	with_nodes((double[]){7.8, 1, 0.02}, 3);
	for (size_t i = 1; i < 3; i++)
		m.node[i].host[1] = '0';
	assert_finds_not(&m, "node-imbalance");
	assert_finds_not(&m, "idle-node");
}

static void test_uneven_memory(void **state)
{
	(void)state;
	with_nodes((double[]){7, 7, 7, 7}, 4);
	figure_set(&m.node[3], FIG_PSS, 9 * GIB);
	assert_says(analysis_find(&m, "memory-imbalance")->title,
		"n3 needed 9 GiB of memory, a node on average 3 GiB");
	figure_set(&m.node[3], FIG_PSS, 1.5 * GIB);
	assert_finds_not(&m, "memory-imbalance");
}

/* ---- ranks ---- */

static void with_ranks(const double *cpu, size_t nr)
{
	double sum = 0;

	analysis_open(&m, 1, 100, 1);
	for (size_t i = 0; i < nr; i++) {
		analysis_process(&m, 0, 100 + (int64_t)i, "solver", 1, 99, cpu[i]);
		sum += cpu[i];
	}
	analysis_set(&m, FIG_CPU, sum);
}

static void test_uneven_ranks(void **state)
{
	const struct finding *f;

	(void)state;
	with_ranks((double[]){95, 40, 40, 40}, 4);
	f = analysis_find(&m, "rank-imbalance");
	assert_non_null(f);
	assert_says(f->title, "4 processes solver share the work unevenly");
	assert_says(f->text, "PID 100");
	assert_true(f->from_s == 1 && f->to_s == 99);
	assert_string_equal(f->panel, "timeline");
}

static void test_even_ranks(void **state)
{
	struct process_row *parent;

	(void)state;
	with_ranks((double[]){95, 90, 85, 80}, 4);
	assert_finds_not(&m, "rank-imbalance");
	/* The parent of a pool runs the same command and waits. */
	parent = analysis_process(&m, 0, 50, "solver", 0, 100, 1);
	for (size_t i = 0; i < 4; i++)
		m.table.row[i].value[PROCESS_PPID] = 50;
	parent = &m.table.row[4];
	parent->value[PROCESS_PPID] = 1;
	assert_finds_not(&m, "rank-imbalance");
	/* Not its parent: then it is one of them. */
	m.table.row[4].value[PROCESS_PID] = 51;
	m.table.row[0].value[PROCESS_CPU] = 98;
	for (size_t i = 1; i < 4; i++)
		m.table.row[i].value[PROCESS_CPU] = 60;
	assert_finds(&m, "rank-imbalance");
}

static void test_these_are_no_ranks(void **state)
{
	(void)state;
	/* Other command lines. */
	with_ranks((double[]){95, 10}, 2);
	free(m.table.row[0].command);
	m.table.row[0].command = strdup("solve2");
	assert_finds_not(&m, "rank-imbalance");
	analysis_close(&m);
	/* One after the other. */
	with_ranks((double[]){48, 10}, 2);
	m.table.row[0].value[PROCESS_WALL] = 49;
	m.table.row[1].value[PROCESS_START] = 51;
	m.table.row[1].value[PROCESS_WALL] = 49;
	assert_finds_not(&m, "rank-imbalance");
	analysis_close(&m);
	/* Shells that wait: none of them computes. */
	with_ranks((double[]){9, 0, 0, 0}, 4);
	assert_finds_not(&m, "rank-imbalance");
	analysis_close(&m);
	/* A side show. */
	with_ranks((double[]){95, 10}, 2);
	analysis_set(&m, FIG_CPU, 10000);
	assert_finds_not(&m, "rank-imbalance");
	analysis_close(&m);
	/* Too short. */
	with_ranks((double[]){95, 10}, 2);
	m.table.row[0].value[PROCESS_WALL] = m.table.row[1].value[PROCESS_WALL] = 9;
	assert_finds_not(&m, "rank-imbalance");
	analysis_close(&m);
	/* Not known. */
	with_ranks((double[]){95, NAN}, 2);
	assert_finds_not(&m, "rank-imbalance");
}

/* ---- short lives ---- */

static void with_short(size_t nr, double wall)
{
	analysis_open(&m, 1, wall, wall / 100);
	analysis_set(&m, FIG_CPU, 100);
	analysis_set(&m, FIG_SYSTEM, 60);
	for (size_t i = 0; i < nr; i++)
		analysis_process(&m, 0, (int64_t)i, i % 3 ? "grep" : "sed", 1, 1.02, 0.001);
}

static void test_short_processes(void **state)
{
	const struct finding *f;

	(void)state;
	with_short(3000, 60);
	f = analysis_find(&m, "short-processes");
	assert_non_null(f);
	assert_string_equal(f->title, "3,000 processes lived for less than half a second");
	assert_says(f->text, "50 each second; the most frequent was grep (2,000)");
	assert_int_equal(f->weight, FINDING_WARNING);
	analysis_set(&m, FIG_SYSTEM, 10);
	assert_int_equal(analysis_find(&m, "short-processes")->weight, FINDING_NOTE);
}

static void test_no_short_processes(void **state)
{
	(void)state;
	/* A build has hundreds. */
	with_short(900, 60);
	assert_finds_not(&m, "short-processes");
	analysis_close(&m);
	/* Thousands in a day are none. */
	with_short(3000, 3600);
	assert_finds_not(&m, "short-processes");
	analysis_close(&m);
	/* They live. */
	with_short(3000, 60);
	for (size_t i = 0; i < m.table.nr; i++)
		m.table.row[i].value[PROCESS_WALL] = 2;
	assert_finds_not(&m, "short-processes");
}

static double counts(double t, const double *arg)
{
	return t < 50 ? 0 : *arg;
}

static void test_no_more_processes(void **state)
{
	double hits = 3;

	(void)state;
	analysis_open(&m, 1, 100, 1);
	analysis_flat(&m, EV_CG_PIDS_HITS, 0, "/other", 5);
	assert_string_equal(analysis_ids(&m), "");
	analysis_curve(&m, EV_CG_PIDS_HITS, 0, MAKER_CGROUP, counts, &hits);
	assert_says(
		analysis_find(&m, "process-limit")->title, "3 times no process or thread could be started");
	assert_says(analysis_find(&m, "process-limit")->text, MAKER_CGROUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_uneven_nodes, teardown),
		cmocka_unit_test_teardown(test_an_idle_node, teardown),
		cmocka_unit_test_teardown(test_even_nodes, teardown),
		cmocka_unit_test_teardown(test_uneven_memory, teardown),
		cmocka_unit_test_teardown(test_uneven_ranks, teardown),
		cmocka_unit_test_teardown(test_even_ranks, teardown),
		cmocka_unit_test_teardown(test_these_are_no_ranks, teardown),
		cmocka_unit_test_teardown(test_short_processes, teardown),
		cmocka_unit_test_teardown(test_no_short_processes, teardown),
		cmocka_unit_test_teardown(test_no_more_processes, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
