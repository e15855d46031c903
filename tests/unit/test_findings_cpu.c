/* analysis/findings: CPUs, I/O, GPUs, energy: runs that show something, and runs that must not. */
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

static void with_cores(double used, double p95)
{
	analysis_open(&m, 1, 100, 1);
	analysis_set(&m, FIG_MEAN_CORES, used);
	analysis_set(&m, FIG_CPU, used * 100);
	analysis_set(&m, FIG_PEAK_CORES, p95);
	analysis_p95(&m, p95, p95);
}

/* ---- used against given ---- */

static void test_unused_cores(void **state)
{
	const struct finding *f;

	(void)state;
	with_cores(1.02, 1.1);
	/* The machine's own: worth a note. A grant: it costs. */
	f = analysis_find(&m, "unused-cores");
	assert_non_null(f);
	assert_int_equal(f->weight, FINDING_NOTE);
	assert_says(f->text, "no limit was set");
	analysis_text(&m.summary, TEXT_SCHEDULER, "slurm");
	f = analysis_find(&m, "unused-cores");
	assert_int_equal(f->weight, FINDING_WARNING);
	assert_string_equal(f->title, "1.0 of 8 cores were in use on average");
	assert_says(f->text, "runs serially");
	assert_string_equal(f->panel, "cpu");
	assert_string_equal(f->evidence[0].name, "cpu.mean_cores");
	assert_true(f->evidence[0].value == 1.02 && f->evidence[0].unit == UNIT_COUNT);
}

static void test_unused_cores_say_why(void **state)
{
	(void)state;
	with_cores(3, 7.9);
	assert_says(analysis_find(&m, "unused-cores")->text, "At times 7.9 cores were in use");
	analysis_set(&m, FIG_MEAN_CORES, 0.05);
	assert_says(analysis_find(&m, "unused-cores")->text, "hardly computed");
	analysis_set(&m, FIG_MEAN_CORES, 2.5);
	m.stats.row[STATS_RUN][0].value[STAT_CORES_P95] = 3;
	assert_says(analysis_find(&m, "unused-cores")->text, "no more than 3 cores");
}

/* What was not in use all the time was not busy all the time. */
static void test_half_a_core_is_not_one(void **state)
{
	const struct finding *f;

	(void)state;
	with_cores(0.52, 0.9);
	f = analysis_find(&m, "unused-cores");
	assert_string_equal(f->title, "0.52 of 8 cores were in use on average");
	assert_says(f->text, "never had work for more than about one core");
	assert_null(strstr(f->text, "serially"));
	analysis_set(&m, FIG_MEAN_CORES, 0.98);
	assert_says(analysis_find(&m, "unused-cores")->text, "One core was busy nearly all the time");
}

static void test_cores_well_used(void **state)
{
	(void)state;
	with_cores(7.2, 8);
	assert_string_equal(analysis_ids(&m), "cores-used");
	assert_int_equal(analysis_find(&m, "cores-used")->weight, FINDING_FINE);
	/* Neither well nor badly. */
	analysis_set(&m, FIG_MEAN_CORES, 5);
	assert_string_equal(analysis_ids(&m), "");
	/* Half a core of one is no core to give back. */
	analysis_set(&m, FIG_LIMIT_CPUS, 1);
	analysis_set(&m, FIG_MEAN_CORES, 0.3);
	assert_string_equal(analysis_ids(&m), "");
	/* Nothing is said of what is not known. */
	figure_unset(&m.summary, FIG_LIMIT_CPUS, "not recorded");
	analysis_set(&m, FIG_MEAN_CORES, 1);
	assert_string_equal(analysis_ids(&m), "");
}

static void test_no_use_of_a_short_run(void **state)
{
	(void)state;
	analysis_open(&m, 1, 4.9, 0.1);
	analysis_set(&m, FIG_MEAN_CORES, 1);
	analysis_set(&m, FIG_CPU, 5);
	analysis_set(&m, FIG_PSS, 15.9 * GIB);
	analysis_set(&m, FIG_SWAP, GIB);
	analysis_set(&m, FIG_ENERGY, 1000);
	analysis_ramp(&m, EV_PRESSURE_MEMORY, 0, NULL, 0.9);
	analysis_ramp(&m, EV_STEAL, 0, NULL, 4);
	analysis_flat(&m, EV_BUSY, 0, NULL, 0.5);
	assert_string_equal(analysis_ids(&m), "");
	analysis_set(&m, FIG_WALL, 5);
	assert_string_equal(
		analysis_ids(&m), "memory-near-limit swapping stolen memory-pressure unused-cores energy");
}

/* ---- a serial section ---- */

static double serial_then_parallel(double t, const double *arg)
{
	return t < arg[0] ? 1.0 + 0.05 * sin(t) : 7.5;
}

static double staircase(double t, const double *arg)
{
	(void)arg;
	return 1 + floor(t / 15);
}

static void test_serial_section(void **state)
{
	const struct finding *f;
	double until = 40;

	(void)state;
	with_cores(5, 7.5);
	analysis_curve(&m, EV_CORES, 0, NULL, serial_then_parallel, &until);
	f = analysis_find(&m, "serial");
	assert_non_null(f);
	assert_says(f->title, "one core was busy and 7 idle");
	assert_says(f->title, "(39 % of the time)");
	assert_true(f->from_s <= 1 && f->to_s >= 38 && f->to_s <= 40);
	assert_true(f->evidence[0].value > 38 && f->evidence[0].value < 41);
}

static void test_no_serial_section(void **state)
{
	double until = 8;

	(void)state;
	/* Too short, and no share of the time worth speaking of. */
	with_cores(7, 7.5);
	analysis_curve(&m, EV_CORES, 0, NULL, serial_then_parallel, &until);
	assert_finds_not(&m, "serial");
	analysis_close(&m);
	/* Serial throughout is no section: its mean says it. */
	until = 1000;
	with_cores(1, 1);
	analysis_curve(&m, EV_CORES, 0, NULL, serial_then_parallel, &until);
	assert_string_equal(analysis_ids(&m), "unused-cores");
	analysis_close(&m);
	/* Passing through one core on the way up. */
	with_cores(4, 7);
	analysis_curve(&m, EV_CORES, 0, NULL, staircase, NULL);
	assert_finds_not(&m, "serial");
	analysis_close(&m);
	/* One core is all it has. */
	until = 40;
	with_cores(1, 1);
	analysis_set(&m, FIG_LIMIT_CPUS, 1);
	analysis_curve(&m, EV_CORES, 0, NULL, serial_then_parallel, &until);
	assert_finds_not(&m, "serial");
}

/* ---- a quota ---- */

static double grows(double t, const double *arg)
{
	return t < arg[0] ? 0 : (t - arg[0]) * arg[1];
}

static void test_throttled(void **state)
{
	double held[] = {20, 0.5};
	const struct finding *f;

	(void)state;
	with_cores(2, 2);
	analysis_curve(&m, EV_CG_THROTTLED, 0, MAKER_CGROUP, grows, held);
	analysis_flat(&m, EV_CG_QUOTA, 0, MAKER_CGROUP, 2);
	analysis_curve(&m, EV_CG_PERIODS, 0, MAKER_CGROUP, grows, (double[]){0, 10});
	f = analysis_find(&m, "throttled");
	assert_non_null(f);
	assert_says(f->title, "held the job back for 40.0s");
	assert_says(f->text, MAKER_CGROUP);
	assert_says(f->text, "quota of 2 cores");
	assert_says(f->text, "17 %");
	assert_true(f->from_s >= 20 && f->from_s <= 21 && f->to_s == 100);
	/* On v1 the CPU controller has a hierarchy of its own. */
	analysis_text(&m.summary, TEXT_CPUS_SOURCE, "cgroup /cpus/of_7 cpu.cfs_quota_us");
	assert_says(analysis_find(&m, "throttled")->text, "The control group /cpus/of_7 used");
}

static void test_hardly_throttled(void **state)
{
	double little[] = {0, 0.05}, before[] = {0, 0};

	(void)state;
	/* 5 s beside 200 s of CPU time. */
	with_cores(2, 2);
	analysis_curve(&m, EV_CG_THROTTLED, 0, MAKER_CGROUP, grows, little);
	assert_finds_not(&m, "throttled");
	analysis_close(&m);
	/* Much, but all before the recording. */
	with_cores(2, 2);
	analysis_flat(&m, EV_CG_THROTTLED, 0, MAKER_CGROUP, 1000);
	analysis_curve(&m, EV_CG_THROTTLED, 0, "/slurm", grows, before);
	assert_finds_not(&m, "throttled");
}

/* ---- starved ---- */

static void with_queue(double cores, double busy, double ready)
{
	with_cores(cores, cores);
	analysis_flat(&m, EV_CORES, 0, NULL, cores);
	analysis_flat(&m, EV_BUSY, 0, NULL, busy);
	analysis_flat(&m, EV_READY, 0, NULL, ready);
}

/* From then on so many more with each second. */
static void waits_from(double cores, double time_s, double slope)
{
	with_cores(cores, cores);
	analysis_flat(&m, EV_CORES, 0, NULL, cores);
	analysis_flat(&m, EV_BUSY, 0, NULL, 1);
	analysis_curve(&m, EV_READY, 0, NULL, grows, (double[]){time_s, slope});
}

static void test_starved(void **state)
{
	const struct finding *f;

	(void)state;
	/* Eight ready to run have five of eight CPUs: others have the rest. */
	with_queue(5, 1, 3);
	f = analysis_find(&m, "starved");
	assert_non_null(f);
	assert_true(f->evidence[0].value > 295 && f->evidence[0].value < 305);
	assert_says(f->title, "Other processes");
	assert_finds_not(&m, "crowded");
	analysis_close(&m);
	/* It has two of eight and would use them all: then they are not unused. */
	with_queue(2, 1, 6);
	assert_string_equal(analysis_ids(&m), "starved");
	analysis_close(&m);
	/* One thread that shares its CPU: it runs serially, but no core was its own. */
	with_queue(0.3, 1, 0.7);
	assert_finds(&m, "starved");
	assert_says(analysis_find(&m, "unused-cores")->text, "It had work for one core nearly all the time");
}

static void with_threads(double cores, double busy, double wall, double step)
{
	analysis_open(&m, 1, wall, step);
	analysis_set(&m, FIG_MEAN_CORES, cores);
	analysis_set(&m, FIG_CPU, cores * wall);
	analysis_p95(&m, cores, cores);
	analysis_flat(&m, EV_CORES, 0, NULL, cores);
	analysis_flat(&m, EV_BUSY, 0, NULL, busy);
	analysis_flat(&m, EV_READY, 0, NULL, 0);
	analysis_process(&m, 0, 11, "solver", 0, wall, cores * wall)->value[PROCESS_THREADS] = 9;
}

/* The main thread sleeps, so nothing shows that the others wait: where others have the CPUs, nothing is said
 * of what the program could use. */
static void test_threads_that_may_have_waited(void **state)
{
	(void)state;
	with_threads(1, 1, 100, 1);
	assert_string_equal(analysis_ids(&m), "node-full");
	assert_says(analysis_find(&m, "node-full")->title,
		"For 1m40s all CPUs of the node were busy, and other processes used 7.0 of its 8");
	assert_says(m.found->headroom, "Cores: as they were given");
	analysis_close(&m);
	/* In six ticks as well. */
	with_threads(1, 1, 6, 1);
	assert_string_equal(analysis_ids(&m), "node-full");
	analysis_close(&m);
	/* CPUs were free: then they had no more to do. */
	with_threads(1, 0.3, 100, 1);
	assert_says(analysis_find(&m, "unused-cores")->text, "runs serially");
	analysis_close(&m);
	/* The kernel says that the job waited for CPUs. */
	with_threads(1, 0.6, 100, 1);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_ramp(&m, EV_CG_PRESSURE_CPU, 0, MAKER_CGROUP, 0.6);
	assert_string_equal(analysis_ids(&m), "");
}

static void test_no_serial_section_among_others(void **state)
{
	double until = 60;

	(void)state;
	with_cores(3, 7.5);
	analysis_curve(&m, EV_CORES, 0, NULL, serial_then_parallel, &until);
	analysis_flat(&m, EV_BUSY, 0, NULL, 1);
	analysis_process(&m, 0, 11, "solver", 0, 100, 300)->value[PROCESS_THREADS] = 8;
	assert_finds_not(&m, "serial");
}

static double stops(double t, const double *arg)
{
	return t < 50 ? arg[0] : NAN;
}

static void test_not_starved(void **state)
{
	(void)state;
	/* Others are busy, the job does not wait. */
	with_queue(3, 1, 0.1);
	assert_string_equal(analysis_ids(&m), "unused-cores");
	analysis_close(&m);
	/* It waits while it has all its CPUs: its own processes are too many. */
	with_queue(8, 1, 4);
	assert_finds_not(&m, "starved");
	assert_int_equal(analysis_find(&m, "crowded")->weight, FINDING_NOTE);
	analysis_close(&m);
	/* It waits, and nobody else computes. */
	with_queue(5, 0.625, 1);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* One moment of it. */
	waits_from(5, 98, 3);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* The same in a run that hardly computes: two seconds are too few all the same. */
	waits_from(0.05, 98, 3);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* And seven seconds of a hundred, in which it could have had a few more than it did. */
	waits_from(0.05, 90, 0.08);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* It has nearly all that it was given: others may have the rest of the machine. */
	with_queue(1.75, 1, 4);
	analysis_set(&m, FIG_LIMIT_CPUS, 2);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* A fifth of a core is what any machine does beside. */
	with_queue(0.5, 0.7 / 8, 0.5);
	assert_finds_not(&m, "starved");
	analysis_close(&m);
	/* Held back by a quota, it waits for no neighbour. */
	with_queue(5, 1, 3);
	analysis_curve(&m, EV_CG_THROTTLED, 0, MAKER_CGROUP, grows, (double[]){0, 2});
	assert_finds_not(&m, "starved");
	assert_finds(&m, "throttled");
	analysis_close(&m);
	/* Nothing is known of the waiting from the middle on: no number, no harm. */
	with_cores(5, 5);
	analysis_curve(&m, EV_CORES, 0, NULL, stops, (double[]){5});
	analysis_flat(&m, EV_BUSY, 0, NULL, 1);
	analysis_curve(&m, EV_READY, 0, NULL, stops, (double[]){0});
	assert_finds_not(&m, "starved");
}

static void test_stolen(void **state)
{
	(void)state;
	with_queue(6, 0.75, 0);
	analysis_ramp(&m, EV_STEAL, 0, NULL, 1.5);
	assert_says(analysis_find(&m, "stolen")->title, "20 %");
	analysis_close(&m);
	with_queue(6, 0.75, 0);
	analysis_ramp(&m, EV_STEAL, 0, NULL, 0.3);
	assert_finds_not(&m, "stolen");
	analysis_close(&m);
	/* An idle machine loses little of nothing. */
	with_queue(0.01, 0.01, 0);
	analysis_ramp(&m, EV_STEAL, 0, NULL, 0.05);
	assert_finds_not(&m, "stolen");
}

/* ---- memory and disks that are waited for ---- */

static void test_pressure(void **state)
{
	const struct finding *f;

	(void)state;
	with_cores(6, 6);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_ramp(&m, EV_CG_PRESSURE_MEMORY, 0, MAKER_CGROUP, 0.07);
	analysis_ramp(&m, EV_CG_PRESSURE_IO, 0, MAKER_CGROUP, 0.4);
	f = analysis_find(&m, "memory-pressure");
	assert_non_null(f);
	assert_says(f->title, "7 % of the time something waited for memory");
	assert_string_equal(f->panel, "cgroup-pressure");
	assert_says(analysis_find(&m, "io-pressure")->title, "40 % of the time something waited for disks");
}

static void test_no_pressure(void **state)
{
	(void)state;
	/* Of a node more is needed than of the own group, and I/O must be the job's. */
	with_cores(6, 6);
	analysis_ramp(&m, EV_PRESSURE_MEMORY, 0, NULL, 0.07);
	analysis_ramp(&m, EV_PRESSURE_IO, 0, NULL, 0.5);
	assert_string_equal(analysis_ids(&m), "");
	analysis_set(&m, FIG_READ_BYTES, 100 * MIB);
	assert_string_equal(analysis_ids(&m), "io-pressure");
	/* Others move ten times as much. */
	analysis_set(&m, FIG_DISK_READ, GIB);
	analysis_set(&m, FIG_DISK_WRITTEN, 0);
	assert_string_equal(analysis_ids(&m), "");
	analysis_close(&m);
	/* The own group has none, whatever the node has. */
	with_cores(6, 6);
	analysis_text(&m.summary, TEXT_CGROUP, MAKER_CGROUP);
	analysis_set(&m, FIG_READ_BYTES, 100 * MIB);
	analysis_ramp(&m, EV_PRESSURE_IO, 0, NULL, 0.9);
	analysis_ramp(&m, EV_CG_PRESSURE_IO, 0, MAKER_CGROUP, 0.01);
	analysis_ramp(&m, EV_PRESSURE_MEMORY, 0, NULL, 0.9);
	analysis_ramp(&m, EV_CG_PRESSURE_MEMORY, 0, MAKER_CGROUP, 0.01);
	assert_string_equal(analysis_ids(&m), "");
}

static void test_io_wait(void **state)
{
	(void)state;
	with_cores(1, 1);
	analysis_set(&m, FIG_LIMIT_CPUS, 1);
	analysis_set(&m, FIG_WRITE_BYTES, GIB);
	analysis_flat(&m, EV_IOWAIT, 0, NULL, 0.1);
	assert_says(analysis_find(&m, "io-wait")->title, "0.8 cores on average idle because of disks");
	/* The kernel's own measure says the same better. */
	analysis_ramp(&m, EV_PRESSURE_IO, 0, NULL, 0.9);
	assert_finds_not(&m, "io-wait");
	assert_finds(&m, "io-pressure");
}

static void test_no_io_wait(void **state)
{
	(void)state;
	/* CPUs wait for disks, but the job has none to wait for. */
	with_cores(1, 1);
	analysis_flat(&m, EV_IOWAIT, 0, NULL, 0.1);
	assert_finds_not(&m, "io-wait");
	analysis_close(&m);
	/* A little beside much computing. */
	with_cores(6, 6);
	analysis_set(&m, FIG_WRITE_BYTES, GIB);
	analysis_flat(&m, EV_IOWAIT, 0, NULL, 0.05);
	assert_finds_not(&m, "io-wait");
}

/* ---- GPUs ---- */

static void use_gpu(struct summary_gpu *gpu)
{
	gpu->figure[GPU_FIG_JOB_MEMORY_PEAK] = (struct figure){.value = GIB};
}

static void test_idle_gpu(void **state)
{
	const struct finding *f;

	(void)state;
	with_cores(6, 6);
	use_gpu(analysis_gpu(&m, "nvidia-0", 90, 100));
	analysis_gpu(&m, "nvidia-1", 0, 0);
	f = analysis_find(&m, "idle-gpu");
	assert_non_null(f);
	assert_string_equal(f->title, "1 of 2 GPUs that the job was given were not used");
	assert_says(f->text, "nvidia-1");
	assert_null(strstr(f->text, "nvidia-0"));
	assert_finds(&m, "gpu-used");
}

static void test_gpu_that_others_use(void **state)
{
	struct summary_gpu *gpu;

	(void)state;
	with_cores(6, 6);
	gpu = analysis_gpu(&m, "nvidia-0", 90, 100);
	/* Busy, and nothing is known of whom: no finding of idleness. */
	assert_string_equal(analysis_ids(&m), "gpu-used");
	/* Busy with others. */
	gpu->figure[GPU_FIG_JOB_MEMORY_PEAK] = gpu->figure[GPU_FIG_JOB_BUSY] = (struct figure){.value = 0};
	assert_string_equal(analysis_ids(&m), "idle-gpu");
}

static void test_no_idle_gpu(void **state)
{
	struct summary_gpu *gpu;

	(void)state;
	with_cores(6, 6);
	/* Not the job's. */
	gpu = analysis_gpu(&m, "nvidia-0", 0, 0);
	gpu->text[GPU_TEXT_JOB][0] = 'n';
	assert_string_equal(analysis_ids(&m), "");
	/* Not looked at for long enough. */
	gpu->text[GPU_TEXT_JOB][0] = 'y';
	gpu->figure[GPU_FIG_OBSERVED].value = 3;
	assert_string_equal(analysis_ids(&m), "");
	/* Not known. */
	gpu->figure[GPU_FIG_OBSERVED].value = 100;
	gpu->figure[GPU_FIG_UTIL_MAX] = gpu->figure[GPU_FIG_UTIL_MEAN] =
		(struct figure){.value = NAN, .why = "no"};
	assert_string_equal(analysis_ids(&m), "");
	/* In use now and then. */
	gpu->figure[GPU_FIG_UTIL_MAX] = (struct figure){.value = 80};
	gpu->figure[GPU_FIG_UTIL_MEAN] = (struct figure){.value = 40};
	assert_string_equal(analysis_ids(&m), "");
	gpu->figure[GPU_FIG_UTIL_MEAN].value = 5;
	assert_string_equal(analysis_ids(&m), "gpu-underused");
}

static void test_slices_tell_for_their_device(void **state)
{
	struct summary_gpu *slice;

	(void)state;
	with_cores(6, 6);
	analysis_gpu(&m, "nvidia-0", 0, 0);
	slice = analysis_gpu(&m, "nvidia-0/mig-1", 80, 90);
	slice->text[GPU_TEXT_PARENT] = strdup("nvidia-0");
	use_gpu(slice);
	assert_string_equal(analysis_ids(&m), "gpu-used");
}

/* ---- energy ---- */

static void test_energy(void **state)
{
	const struct finding *f;

	(void)state;
	with_cores(6, 6);
	analysis_set(&m, FIG_ENERGY, 12000);
	analysis_set(&m, FIG_POWER, 120);
	analysis_set(&m, FIG_CPU_OF_NODE, 0.75);
	analysis_text(&m.summary, TEXT_ENERGY_SOURCE, "rapl: package-0");
	f = analysis_find(&m, "energy");
	assert_string_equal(f->title, "12 kJ of energy, 20 Wh for each CPU-hour");
	assert_says(f->text, "120 W on average");
	assert_says(f->text, "rapl: package-0");
	assert_null(strstr(f->text, "idle cores"));
	assert_int_equal(f->weight, FINDING_NOTE);
	analysis_set(&m, FIG_CPU_OF_NODE, 0.1);
	assert_says(analysis_find(&m, "energy")->text, "most of the energy went into idle cores");
	/* Nothing was computed, or nothing measured. */
	analysis_set(&m, FIG_CPU, 0.2);
	assert_finds_not(&m, "energy");
	analysis_set(&m, FIG_CPU, 600);
	figure_unset(&m.summary, FIG_ENERGY, "no meter");
	assert_finds_not(&m, "energy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_unused_cores, teardown),
		cmocka_unit_test_teardown(test_unused_cores_say_why, teardown),
		cmocka_unit_test_teardown(test_half_a_core_is_not_one, teardown),
		cmocka_unit_test_teardown(test_cores_well_used, teardown),
		cmocka_unit_test_teardown(test_no_use_of_a_short_run, teardown),
		cmocka_unit_test_teardown(test_serial_section, teardown),
		cmocka_unit_test_teardown(test_no_serial_section, teardown),
		cmocka_unit_test_teardown(test_throttled, teardown),
		cmocka_unit_test_teardown(test_hardly_throttled, teardown),
		cmocka_unit_test_teardown(test_starved, teardown),
		cmocka_unit_test_teardown(test_not_starved, teardown),
		cmocka_unit_test_teardown(test_threads_that_may_have_waited, teardown),
		cmocka_unit_test_teardown(test_no_serial_section_among_others, teardown),
		cmocka_unit_test_teardown(test_stolen, teardown),
		cmocka_unit_test_teardown(test_pressure, teardown),
		cmocka_unit_test_teardown(test_no_pressure, teardown),
		cmocka_unit_test_teardown(test_io_wait, teardown),
		cmocka_unit_test_teardown(test_no_io_wait, teardown),
		cmocka_unit_test_teardown(test_idle_gpu, teardown),
		cmocka_unit_test_teardown(test_gpu_that_others_use, teardown),
		cmocka_unit_test_teardown(test_no_idle_gpu, teardown),
		cmocka_unit_test_teardown(test_slices_tell_for_their_device, teardown),
		cmocka_unit_test_teardown(test_energy, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
