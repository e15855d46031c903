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

static void test_many_idle_nodes(void **state)
{
	const struct finding *f;

	(void)state;
	with_nodes((double[]){7.8, 0.01, 0.02, 0, 0.01, 0, 7.7, 7.6}, 8);
	f = analysis_find(&m, "idle-node");
	assert_string_equal(f->title, "5 of 8 nodes did nothing");
	assert_says(f->text, "n1, n2, n3 and 2 more");
	assert_null(strstr(analysis_ids(&m), "idle-node idle-node"));
}

/* ---- what holds a node back ---- */

/* One of four nodes has the trouble; all work alike. */
static const struct finding *held_back(enum evidence_id id, double usual, double own, bool counter)
{
	with_nodes((double[]){7.8, 7.6, 7.7, 7.5}, 4);
	for (size_t i = 0; i < 4; i++)
		(counter ? analysis_ramp : analysis_flat)(&m, id, i, NULL, i == 2 ? own : usual);
	return analysis_find(&m, "slow-node");
}

static void test_a_node_is_held_back(void **state)
{
	static const struct {
		enum evidence_id id;
		double usual, little, much;
		bool counter;
		const char *words;
	} row[] = {
		{EV_CLOCK, 3e9, 2.8e9, 1.2e9, false, "its CPUs ran at 1.2 GHz (the others: 3 GHz)"},
		{EV_HEAT, 0, 0.5, 40, true, "heat or power slowed its CPUs down at 40/s (the others: 0/s)"},
		{EV_STEAL, 0.01, 0.2, 1.6, true, "the hypervisor took of its CPUs 20 %"},
		{EV_SWAP_IN, 0, 0.2 * MIB, 5 * MIB, true, "it brought back from swap 5 MiB/s"},
		{EV_PRESSURE_IO, 0.01, 0.05, 0.4, true,
			"tasks waited for disks for this share of the time: 40 %"},
		{EV_PRESSURE_MEMORY, 0, 0.02, 0.3, true,
			"waited for memory for this share of the time: 30 %"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct finding *f = held_back(row[i].id, row[i].usual, row[i].much, row[i].counter);

		assert_non_null(f);
		assert_string_equal(f->title, "The node n2 was held back, the others were not");
		assert_says(f->text, row[i].words);
		assert_int_equal(f->node, 2);
		assert_int_equal(f->nr_evidence, 2);
		analysis_close(&m);
		assert_null(held_back(row[i].id, row[i].usual, row[i].little, row[i].counter));
		analysis_close(&m);
		/* What all have is none of one. */
		assert_null(held_back(row[i].id, row[i].much, row[i].much, row[i].counter));
		analysis_close(&m);
	}
	with_nodes((double[]){7.8, 7.6, 7.7}, 3);
	for (size_t i = 0; i < 3; i++)
		figure_set(&m.node[i], FIG_THROTTLED, i == 1 ? 30 : 0);
	assert_says(analysis_find(&m, "slow-node")->text,
		"a CPU quota stopped it for this share of the time: 30 %");
}

static void test_the_straggler_and_why(void **state)
{
	const struct finding *f;

	(void)state;
	/* Fewer CPUs explain it, and more memory is worth knowing. */
	with_nodes((double[]){7.8, 7.9, 7.8, 1.9}, 4);
	figure_set(&m.node[3], FIG_LIMIT_CPUS, 2);
	assert_finds_not(&m, "node-imbalance");
	analysis_close(&m);
	with_nodes((double[]){7.8, 3.9, 3.8, 1.9}, 4);
	figure_set(&m.node[3], FIG_LIMIT_CPUS, 2);
	figure_set(&m.node[3], FIG_PSS, 4 * GIB);
	f = analysis_find(&m, "node-imbalance");
	assert_says(f->text, "CPUs that it was given: 2 (the others: 8)");
	assert_says(f->text, "it held 4 GiB (the others: 1 GiB)");
	/* It is no trouble of the node. */
	assert_finds_not(&m, "slow-node");
	/* What was told with it is not told again. */
	for (size_t i = 0; i < 4; i++)
		analysis_ramp(&m, EV_PRESSURE_IO, i, NULL, i == 3 ? 0.6 : 0);
	assert_says(analysis_find(&m, "node-imbalance")->text, "waited for disks");
	assert_finds_not(&m, "slow-node");
	analysis_close(&m);
	/* CPUs that have nothing to do run slowly. */
	with_nodes((double[]){7.8, 7.7, 7.8, 1}, 4);
	for (size_t i = 0; i < 4; i++)
		analysis_flat(&m, EV_CLOCK, i, NULL, i == 3 ? 8e8 : 3e9);
	assert_finds_not(&m, "slow-node");
	analysis_close(&m);
	/* Two nodes are enough. */
	with_nodes((double[]){7.8, 7.7}, 2);
	analysis_flat(&m, EV_CLOCK, 0, NULL, 3e9);
	analysis_flat(&m, EV_CLOCK, 1, NULL, 1.5e9);
	assert_says(analysis_find(&m, "slow-node")->title, "The node n1 was held back");
	analysis_close(&m);
	/* Many are one finding. */
	with_nodes((double[]){7.8, 7.7, 7.6, 7.7, 7.8, 7.7, 7.8, 7.6}, 8);
	for (size_t i = 0; i < 8; i++)
		figure_set(&m.node[i], FIG_THROTTLED, i % 2 ? 0 : i ? 30 : 0);
	assert_finds(&m, "slow-node");
	for (size_t i = 0; i < 8; i++)
		analysis_ramp(&m, EV_PRESSURE_IO, i, NULL, i == 1 ? 0.5 : 0);
	f = analysis_find(&m, "slow-node");
	assert_string_equal(f->title, "4 of 8 nodes were held back, the others were not");
	assert_says(f->text, "n1: tasks waited for disks");
	assert_says(f->text, "n2: a CPU quota stopped it");
	assert_says(f->text, "1 more");
}

/* ---- GPUs, network, phases ---- */

static void give_gpu(size_t node, double util)
{
	struct summary_gpu *gpu = calloc(1, sizeof(*gpu));

	assert_non_null(gpu);
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++)
		gpu->figure[i] = (struct figure){.value = NAN, .why = "not known"};
	gpu->figure[GPU_FIG_UTIL_MEAN] = (struct figure){.value = util};
	gpu->text[GPU_TEXT_JOB] = strdup("yes");
	m.node[node].gpu = gpu;
	m.node[node].nr_gpus = 1;
}

static void test_uneven_gpus_and_network(void **state)
{
	(void)state;
	with_nodes((double[]){7, 7, 7, 7}, 4);
	for (size_t i = 0; i < 4; i++) {
		give_gpu(i, i ? 20 : 90);
		figure_set(&m.node[i], FIG_NET_RX_BYTES, i ? GIB : 40 * GIB);
		figure_set(&m.node[i], FIG_NET_TX_BYTES, 10 * GIB);
		figure_set(&m.node[i], FIG_IB_TX_BYTES, i == 1 ? 90 * GIB : 0);
	}
	assert_string_equal(analysis_find(&m, "gpu-imbalance")->title,
		"The GPUs of the nodes worked unevenly: on n0 90 % busy, on n1 20 %");
	assert_string_equal(analysis_find(&m, "network-imbalance")->title,
		"The node n0 received 40 GiB, a node on average 10.8 GiB");
	assert_string_equal(analysis_ids(&m), "gpu-imbalance network-imbalance network-imbalance cores-used");
	analysis_close(&m);
	with_nodes((double[]){7, 7, 7, 7}, 4);
	for (size_t i = 0; i < 4; i++) {
		give_gpu(i, 80 + (double)i);
		figure_set(&m.node[i], FIG_NET_RX_BYTES, GIB);
	}
	assert_string_equal(analysis_ids(&m), "cores-used");
}

static struct phase phase_of[4];
static struct phases phases_of[4];

static void with_phase(size_t i, struct summary *s, double wall, double cpu)
{
	phase_of[i] = (struct phase){.name = "solve", .key = "solve"};
	for (unsigned k = 0; k < NR_PHASE_VALUES; k++)
		phase_of[i].value[k] = NAN;
	phase_of[i].value[PHASE_WALL] = wall;
	phase_of[i].value[PHASE_CPU] = cpu;
	phases_of[i] = (struct phases){.phase = &phase_of[i], .nr = 1};
	s->phases = &phases_of[i];
}

static void test_an_uneven_phase(void **state)
{
	const struct finding *f;

	(void)state;
	with_nodes((double[]){7, 7, 7}, 3);
	for (size_t i = 0; i < 3; i++)
		with_phase(i, &m.node[i], 40, i == 1 ? 40 : 280);
	with_phase(3, &m.summary, 40, 600);
	f = analysis_find(&m, "phase-imbalance");
	assert_non_null(f);
	assert_string_equal(
		f->title, "In phase solve the nodes worked unevenly: n0 used 4m40s of CPU time, n1 40.0s");
	assert_says(f->text, "71 %");
	/* Too short to matter. */
	phase_of[3].value[PHASE_WALL] = 3;
	assert_finds_not(&m, "phase-imbalance");
	/* Told on one node only: there is nothing to compare. */
	phase_of[3].value[PHASE_WALL] = 40;
	m.node[0].phases = m.node[2].phases = NULL;
	assert_finds_not(&m, "phase-imbalance");
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
		cmocka_unit_test_teardown(test_many_idle_nodes, teardown),
		cmocka_unit_test_teardown(test_a_node_is_held_back, teardown),
		cmocka_unit_test_teardown(test_the_straggler_and_why, teardown),
		cmocka_unit_test_teardown(test_uneven_gpus_and_network, teardown),
		cmocka_unit_test_teardown(test_an_uneven_phase, teardown),
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
