/* query/: GPUs over a recording, what of them was for the job and for its groups; in figures, JSON, words and
 * series. All values are worked out by hand. */
#include "query_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static const struct summary_gpu *gpu_of(const struct summary *s, const char *instance)
{
	for (size_t i = 0; i < s->nr_gpus; i++)
		if (!strcmp(s->gpu[i].text[GPU_TEXT_INSTANCE], instance))
			return &s->gpu[i];
	fail_msg("there is no %s", instance);
	return NULL;
}

static double of(const struct summary_gpu *gpu, enum gpu_figure_id id)
{
	if (gpu->figure[id].why)
		fail_msg("%s has no value: %s", summary_gpu_row[id].name, gpu->figure[id].why);
	return gpu->figure[id].value;
}

static void add_gpu(struct maker *m, uint32_t row, const char *name, const char *job)
{
	char index[2] = {(char)('0' + row), 0};

	maker_instance(m, MAKER_GPU, row, 0, name, "vendor", "nvidia", "index", index, "model",
		"NVIDIA A100-SXM4-40GB", "uuid", "GPU-1234", "pci", "0000:03:00.0", "job", job, "job_by",
		"CUDA_VISIBLE_DEVICES=0", NULL);
}

static void open_with_gpu(struct maker *m, const char *job)
{
	maker_open(m, file, NULL);
	add_gpu(m, 0, "nvidia-0", job);
}

static void add_client(
	struct maker *m, uint32_t row, uint32_t generation, const char *gpu, const char *process)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%s", gpu, process);
	maker_instance(m, MAKER_GPU_PROCESS, row, generation, name, "gpu", gpu, "pid", "100", "process",
		process, NULL);
}

static void set_client(struct maker *m, uint32_t row, int64_t memory, int64_t util)
{
	maker_set(m, row, "gpu_process.memory", memory);
	maker_set(m, row, "gpu_process.util", util);
}

/* Two GPUs for 4 s, the first at 0, 50, 100, 50 and 0 %; the second is not the job's and tells little. */
static void make_gpus(const char *path, const char *host)
{
	static const int64_t util[] = {0, 50, 100, 50, 0}, power[] = {50, 150, 250, 150, 50};
	struct maker m;

	maker_open(&m, path, &(struct maker_options){.host = host, .forbidden = "gpu.ecc.corrected"});
	maker_join_in(&m, 0, 1, 100, 1, 0, false, "a", 1);
	maker_join_in(&m, 1, 2, 101, 100, 0, false, "b", 1);
	add_gpu(&m, 0, "nvidia-0", "yes");
	add_gpu(&m, 1, "nvidia-1", "no");
	for (int64_t i = 0; i < 5; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND / 2);
		maker_set(&m, 0, "gpu.util", util[i]);
		maker_set(&m, 0, "gpu.mem_util", util[i] / 2);
		maker_set(&m, 0, "gpu.memory.used", GIB + util[i] * MIB);
		maker_set(&m, 0, "gpu.memory.total", 40 * GIB);
		maker_set(&m, 0, "gpu.clock.sm", 1000 + 100 * i);
		maker_set(&m, 0, "gpu.temperature", 40000 + 1000 * i);
		maker_set(&m, 0, "gpu.power", power[i] * 1000);
		maker_set(&m, 0, "gpu.power_limit", 400000);
		maker_set(&m, 0, "gpu.energy", 777000 + 151000 * i);
		maker_set(&m, 0, "gpu.throttle.power", 5 * SECOND + i * SECOND / 4);
		maker_set(&m, 0, "gpu.throttle.thermal", 0);
		maker_set(&m, 0, "gpu.ecc.uncorrected", 7 + (i > 2));
		maker_set(&m, 1, "gpu.power", 20000 + 10000 * i);
		if (i == 1) {
			add_client(&m, 0, 0, "nvidia-0", "1");
			add_client(&m, 1, 0, "nvidia-0", "2");
		}
		if (i >= 1 && i <= 3)
			set_client(&m, 0, 100 * MIB * i, 40);
		if (i >= 1 && i <= 2)
			set_client(&m, 1, 200 * MIB, 20);
		if (i == 3)
			maker_leave(&m, MAKER_GPU_PROCESS, 1, i * SECOND);
		if (i == 4)
			maker_leave(&m, MAKER_GPU_PROCESS, 0, i * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
}

static void test_what_a_gpu_did(void **state)
{
	const struct summary_gpu *gpu;
	struct summary *s;

	(void)state;
	make_gpus(file, "here");
	s = summary_of(file);
	assert_int_equal(s->nr_gpus, 2);
	gpu = gpu_of(s, "nvidia-0");
	assert_int_equal(gpu->index, 0);
	assert_string_equal(gpu->text[GPU_TEXT_VENDOR], "nvidia");
	assert_string_equal(gpu->text[GPU_TEXT_NAME], "NVIDIA A100-SXM4-40GB");
	assert_string_equal(gpu->text[GPU_TEXT_UUID], "GPU-1234");
	assert_string_equal(gpu->text[GPU_TEXT_JOB], "yes");
	assert_string_equal(gpu->text[GPU_TEXT_JOB_BY], "CUDA_VISIBLE_DEVICES=0");
	assert_null(gpu->text[GPU_TEXT_PARENT]);
	/* 25 + 75 + 75 + 25, over 4 s */
	assert_near(of(gpu, GPU_FIG_UTIL_MEAN), 50);
	assert_near(of(gpu, GPU_FIG_UTIL_MAX), 100);
	assert_near(of(gpu, GPU_FIG_MEM_UTIL_MEAN), 25);
	assert_near(of(gpu, GPU_FIG_MEM_UTIL_MAX), 50);
	assert_near(of(gpu, GPU_FIG_MEMORY_PEAK), (double)(GIB + 100 * MIB));
	assert_near(of(gpu, GPU_FIG_MEMORY_TOTAL), (double)(40 * GIB));
	assert_near(of(gpu, GPU_FIG_POWER_MEAN), 150);
	assert_near(of(gpu, GPU_FIG_POWER_MAX), 250);
	assert_near(of(gpu, GPU_FIG_POWER_LIMIT), 400);
	assert_near(of(gpu, GPU_FIG_ENERGY), 604);
	assert_string_equal(gpu->text[GPU_TEXT_ENERGY_SOURCE], "counter");
	assert_near(of(gpu, GPU_FIG_TEMPERATURE_MAX), 44);
	assert_near(of(gpu, GPU_FIG_CLOCK_MEAN), 1.2e9);
	assert_near(of(gpu, GPU_FIG_CLOCK_MAX), 1.4e9);
	assert_near(of(gpu, GPU_FIG_THROTTLED), 1);
	assert_near(of(gpu, GPU_FIG_THROTTLED_POWER), 1);
	assert_near(of(gpu, GPU_FIG_ECC_UNCORRECTED), 1);
	assert_string_equal(gpu->figure[GPU_FIG_ECC_CORRECTED].why, "needs the right to look");
	assert_string_equal(gpu->figure[GPU_FIG_LOST_AT].why, "");
	assert_true(has_note(s, "GPU nvidia-0 had 1 memory error that"));

	gpu = gpu_of(s, "nvidia-1");
	/* 20 to 60 W in 4 s */
	assert_near(of(gpu, GPU_FIG_ENERGY), 160);
	assert_string_equal(gpu->text[GPU_TEXT_ENERGY_SOURCE], "power over time");
	assert_non_null(gpu->figure[GPU_FIG_UTIL_MEAN].why);
	assert_near(of(gpu, GPU_FIG_JOB_MEMORY_PEAK), 0);
	assert_near(value(s, FIG_GPU_ENERGY), 764);
	assert_near(value(s, FIG_JOB_GPU_ENERGY), 604);
	assert_non_null(s->figure[FIG_ENERGY].why); /* and never added to the node's */
	summary_free(s);
}

/* Processes that are gone count nothing, in the sum as in the mean. */
static void test_what_the_job_and_its_groups_used(void **state)
{
	const struct summary_gpu *gpu;
	struct summary *s;

	(void)state;
	make_gpus(file, "here");
	s = summary_of(file);
	gpu = gpu_of(s, "nvidia-0");
	/* 300, 400, 300, 0 MiB */
	assert_near(of(gpu, GPU_FIG_JOB_MEMORY_PEAK), (double)(400 * MIB));
	/* sums 0, 60, 60, 40, 0: 30 + 60 + 50 + 20 percent seconds over 4 s */
	assert_near(of(gpu, GPU_FIG_JOB_UTIL_MEAN), 40);
	assert_near(of(gpu, GPU_FIG_JOB_BUSY), 1.6);
	assert_int_equal(s->nr_groups, 2);
	assert_int_equal(s->group[0].nr_gpus, 1);
	gpu = gpu_of(&s->group[0], "nvidia-0");
	assert_near(of(gpu, GPU_FIG_JOB_MEMORY_PEAK), (double)(300 * MIB));
	/* 0, 40, 40, 40, 0 */
	assert_near(of(gpu, GPU_FIG_JOB_UTIL_MEAN), 30);
	assert_near(of(gpu, GPU_FIG_JOB_BUSY), 1.2);
	gpu = gpu_of(&s->group[1], "nvidia-0");
	assert_near(of(gpu, GPU_FIG_JOB_MEMORY_PEAK), (double)(200 * MIB));
	/* 0, 20, 20, 0, 0 */
	assert_near(of(gpu, GPU_FIG_JOB_UTIL_MEAN), 10);
	summary_free(s);
}

/* Drivers that tell time on their engines: of a process born here all of it, of a latecomer what it adds. */
static void test_engine_time(void **state)
{
	const struct summary_gpu *gpu;
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.without = "gpu_process.util"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 1, 0, true);
	maker_instance(&m, MAKER_GPU, 0, 0, "amd-0", "vendor", "amd", "job", "unclaimed", NULL);
	add_client(&m, 0, 0, "amd-0", "1");
	add_client(&m, 1, 0, "amd-0", "2");
	for (int64_t i = 0; i < 5; i++) {
		maker_set(&m, 0, "gpu.util", 90);
		maker_set(&m, 0, "gpu_process.busy", 500 * MILLI + i * 100 * MILLI);
		maker_set(&m, 1, "gpu_process.busy", 70 * SECOND + i * 200 * MILLI);
		maker_tick(&m, i * 2 * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	gpu = gpu_of(s, "amd-0");
	assert_int_equal(gpu->index, -1);
	assert_near(of(gpu, GPU_FIG_JOB_BUSY), 0.9 + 0.8);
	assert_near(of(gpu, GPU_FIG_JOB_UTIL_MEAN), 100 * 1.7 / 8);
	assert_string_equal(gpu->figure[GPU_FIG_JOB_MEMORY_PEAK].why, "could not be read");
	summary_free(s);
	expect_series("gpu_process.busy_ratio", NULL, (double[]){NAN, 0.15, 0.15, 0.15, 0.15}, 5);
}

/* Some drivers tell nothing of the device and all of its users. */
static void test_only_processes_are_told_of(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_GPU, 0, 0, "intel-0", "vendor", "intel", "model", "Flex", NULL);
	add_client(&m, 0, 0, "intel-0", "1");
	for (int64_t i = 0; i < 5; i++) {
		maker_set(&m, 0, "gpu.energy", i * 2500);
		maker_set(&m, 0, "gpu_process.busy", i * 150 * MILLI);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(of(gpu_of(s, "intel-0"), GPU_FIG_POWER_MEAN), 2.5);
	buf_init(&out, 1 << 20);
	assert_non_null(strstr(words_of(s, 100, false, &out),
		"\n  gpu      Flex  util by the job 15 %, 2.5 W mean, 10 J\n"));
	buf_release(&out);
	summary_free(s);
}

/* What cannot be read for a while counts neither as nothing nor as what it was. */
static void test_unknown_time_is_left_out(void **state)
{
	static const int64_t util[] = {20, 40, -1, -1, 40, 100}, energy[] = {100, 300, 600, 50, 80, 90};
	const struct summary_gpu *gpu;
	struct summary *s;
	struct maker m;

	(void)state;
	open_with_gpu(&m, "yes");
	for (int64_t i = 0; i < 6; i++) {
		if (util[i] < 0)
			maker_unset(&m, 0, "gpu.util");
		else
			maker_set(&m, 0, "gpu.util", util[i]);
		maker_set(&m, 0, "gpu.memory.used", MIB);
		maker_set(&m, 0, "gpu.energy", energy[i]);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	gpu = gpu_of(s, "nvidia-0");
	/* (30 + 70) / 2 s */
	assert_near(of(gpu, GPU_FIG_UTIL_MEAN), 50);
	/* A driver that is loaded again counts from zero: 500 and 40 mJ are seen. */
	assert_near(of(gpu, GPU_FIG_ENERGY), 0.54);
	assert_string_equal(gpu->figure[GPU_FIG_LOST_AT].why, "");
	summary_free(s);
}

static void test_a_number_stays_with_its_unit(void **state)
{
	struct summary *s;
	struct buf out;

	(void)state;
	make_gpus(file, "here");
	s = summary_of(file);
	for (unsigned width = 40; width < 140; width++) {
		char *text, *line, *rest;

		buf_init(&out, 1 << 20);
		words_of(s, width, false, &out);
		text = strstr((char *)out.data, "  gpu 0 ");
		assert_non_null(text);
		*strstr(text, " other in the node") = 0;
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			char last = line[strlen(line) - 1];

			if (last >= '0' && last <= '9' && *rest)
				fail_msg("at a width of %u: %s", width, line);
		}
		buf_release(&out);
	}
	summary_free(s);
}

static void tell(struct maker *m, int64_t time_ns, const char *metric, const char *why)
{
	pairs_reset(&m->pairs);
	pairs_str(&m->pairs, "metric", metric);
	pairs_str(&m->pairs, "why", why);
	store_event(m->w, time_ns, "unavailable", &m->pairs);
}

static void tell_gpu(struct maker *m, int64_t time_ns, const char *why)
{
	tell(m, time_ns, "gpu.util", why);
}

/* One falls off the bus, another is pulled and comes back. */
static void test_lost_devices(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	open_with_gpu(&m, "yes");
	add_gpu(&m, 1, "nvidia-1", "yes");
	for (int64_t i = 0; i < 6; i++) {
		if (i < 3)
			maker_set(&m, 0, "gpu.util", 50);
		else
			maker_unset(&m, 0, "gpu.util");
		if (i == 2)
			maker_leave(&m, MAKER_GPU, 1, i * SECOND);
		if (i == 4)
			maker_instance(&m, MAKER_GPU, 1, 1, "nvidia-1", "vendor", "nvidia", NULL);
		if (i == 5) /* what is known of it is said again: it is lost as before */
			maker_instance(
				&m, MAKER_GPU, 0, 0, "nvidia-0", "vendor", "nvidia", "job", "yes", NULL);
		if (i == 3)
			tell_gpu(&m, i * SECOND, "nvidia-0: it fell off the bus");
		if (i < 2 || i >= 4)
			maker_set(&m, 1, "gpu.util", i < 2 ? 20 : 60);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_gpus, 2);
	assert_near(of(gpu_of(s, "nvidia-0"), GPU_FIG_LOST_AT), 3);
	assert_near(of(gpu_of(s, "nvidia-0"), GPU_FIG_OBSERVED), 2);
	assert_near(of(gpu_of(s, "nvidia-0"), GPU_FIG_UTIL_MEAN), 50);
	assert_true(has_note(s, "GPU nvidia-0 was lost after 3.00s: it fell off the bus"));
	assert_string_equal(gpu_of(s, "nvidia-1")->figure[GPU_FIG_LOST_AT].why, "");
	assert_near(of(gpu_of(s, "nvidia-1"), GPU_FIG_UTIL_MEAN), 40);
	buf_init(&out, 1 << 20);
	assert_non_null(strstr(words_of(s, 200, false, &out), ", lost at 3.00s\n"));
	buf_release(&out);
	summary_free(s);
}

/* Nothing is known of one that never answered, and whose it is nobody says: it is told, and not as the job's.
 */
static void test_lost_from_the_start(void **state)
{
	static const char *const name[] = {"nvidia-0", "nvidia-1", "nvidia-2", "nvidia-3"};
	const struct summary_gpu *gpu;
	struct summary *s;
	struct maker m;
	struct buf out;
	const char *text;

	(void)state;
	maker_open(&m, file, NULL);
	for (uint32_t i = 0; i < ARRAY_SIZE(name); i++)
		add_gpu(&m, i, name[i], i == 3 ? "no" : "unclaimed");
	tell_gpu(&m, SECOND, "nvidia-1: it fell off the bus");
	tell_gpu(&m, SECOND, "nvidia-2: it needs a reset");
	tell_gpu(&m, SECOND, "nvidia-3: we may not open it");
	for (int64_t i = 1; i < 4; i++) {
		maker_set(&m, 0, "gpu.util", 50);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(of(gpu_of(s, "nvidia-0"), GPU_FIG_JOB_BUSY), 0);
	gpu = gpu_of(s, "nvidia-1");
	assert_string_equal(gpu->figure[GPU_FIG_UTIL_MEAN].why, "it fell off the bus");
	assert_string_equal(gpu->figure[GPU_FIG_JOB_UTIL_MEAN].why, "it fell off the bus");
	assert_string_equal(gpu->figure[GPU_FIG_JOB_BUSY].why, "it fell off the bus");
	assert_string_equal(gpu->figure[GPU_FIG_JOB_MEMORY_PEAK].why, "it fell off the bus");
	assert_near(of(gpu, GPU_FIG_OBSERVED), 0);
	assert_near(of(gpu, GPU_FIG_LOST_AT), 1);
	assert_string_equal(gpu->text[GPU_TEXT_LOST], "it fell off the bus");
	assert_string_equal(gpu_of(s, "nvidia-2")->text[GPU_TEXT_LOST], "it needs a reset");
	assert_true(has_note(s, "GPU nvidia-1 could not be read at any time: it fell off the bus"));
	assert_false(has_note(s, "nvidia-3"));
	buf_init(&out, 1 << 20);
	text = words_of(s, 200, false, &out);
	assert_null(strstr(text, "nothing could be read"));
	assert_non_null(strstr(text, "2 in the node, not used by the job; 2 more could not be read\n"));
	buf_release(&out);
	summary_free(s);
}

/* That one thing of its users cannot be told is no reason to doubt that a GPU has none. */
static void test_nobody_on_it(void **state)
{
	static const char *const metric[] = {
		"gpu_process.util", "gpu_process.busy", "gpu_process.memory", NULL};
	const struct summary_gpu *on, *off;
	struct summary *s;
	struct maker m;

	(void)state;
	for (unsigned told = 1; told <= 3; told += 2) {
		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		add_gpu(&m, 0, "nvidia-0", "unclaimed");
		add_gpu(&m, 1, "nvidia-1", "unclaimed");
		add_client(&m, 0, 0, "nvidia-0", "1");
		for (unsigned i = 0; i < told; i++)
			tell(&m, 0, metric[i], "a slice");
		for (int64_t i = 0; i < 3; i++) {
			maker_set(&m, 0, "gpu.util", 50);
			maker_set(&m, 1, "gpu.util", 50);
			maker_set(&m, 0, "gpu_process.memory", MIB);
			maker_tick(&m, i * SECOND);
		}
		maker_finish(&m, NULL);
		s = summary_of(file);
		on = gpu_of(s, "nvidia-0");
		off = gpu_of(s, "nvidia-1");
		assert_near(of(on, GPU_FIG_JOB_MEMORY_PEAK), (double)MIB);
		assert_string_equal(on->figure[GPU_FIG_JOB_UTIL_MEAN].why, "a slice");
		if (told == 1) {
			assert_near(of(off, GPU_FIG_JOB_MEMORY_PEAK), 0);
			assert_near(of(off, GPU_FIG_JOB_UTIL_MEAN), 0);
		} else {
			assert_string_equal(off->figure[GPU_FIG_JOB_MEMORY_PEAK].why, "a slice");
			assert_string_equal(off->figure[GPU_FIG_JOB_BUSY].why, "a slice");
		}
		summary_free(s);
	}
}

/* A GPU that has none of what was chosen is silent, not lost. */
static void test_silent_is_not_lost(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_with_gpu(&m, "yes");
	for (int64_t i = 0; i < 3; i++)
		maker_tick(&m, i * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_string_equal(gpu_of(s, "nvidia-0")->figure[GPU_FIG_LOST_AT].why, "");
	assert_near(of(gpu_of(s, "nvidia-0"), GPU_FIG_OBSERVED), 2);
	summary_free(s);
}

/* A job that was given a slice: its line stands for itself, and its GPU is no other one. */
static void test_a_slice_alone(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;
	const char *text;

	(void)state;
	open_with_gpu(&m, "no");
	add_gpu(&m, 1, "nvidia-1", "no");
	maker_instance(&m, MAKER_GPU, 2, 0, "nvidia-0/mig-1", "vendor", "nvidia", "index", "0", "apart",
		"a slice", "job", "yes", "model", "NVIDIA A100 MIG 1g.5gb", NULL);
	for (int64_t i = 0; i < 3; i++) {
		for (uint32_t row = 0; row < 3; row++)
			maker_set(&m, row, "gpu.memory.used", GIB);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	text = words_of(s, 200, false, &out);
	assert_non_null(strstr(text, "  gpu 0    NVIDIA A100 MIG 1g.5gb  memory peak 1 GiB"));
	assert_non_null(strstr(text, "           1 other in the node, not the job's\n"));
	buf_release(&out);
	summary_free(s);
}

/* Slices stand behind their device; what is on them is on it, and counts once. */
static void test_slices(void **state)
{
	static const char counted_elsewhere[] = "a slice of nvidia-0";
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	add_gpu(&m, 0, "nvidia-0", "yes");
	add_gpu(&m, 1, "nvidia-1", "yes");
	maker_instance(&m, MAKER_GPU, 2, 0, "nvidia-0/mig-1", "vendor", "nvidia", "index", "0", "apart",
		counted_elsewhere, "job", "yes", NULL);
	maker_instance(&m, MAKER_GPU, 3, 0, "nvidia-0/mig-2", "vendor", "nvidia", "index", "0", "apart",
		counted_elsewhere, "job", "no", NULL);
	add_client(&m, 0, 0, "nvidia-0/mig-1", "1");
	add_client(&m, 1, 0, "nvidia-0/mig-2", "1");
	for (int64_t i = 0; i < 3; i++) {
		for (uint32_t row = 0; row < 4; row++)
			maker_set(&m, row, "gpu.energy", i * 1000);
		maker_set(&m, 0, "gpu_process.memory", 100 * MIB);
		maker_set(&m, 1, "gpu_process.memory", 50 * MIB);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_gpus, 4);
	assert_string_equal(s->gpu[1].text[GPU_TEXT_INSTANCE], "nvidia-0/mig-1");
	assert_string_equal(s->gpu[1].text[GPU_TEXT_PARENT], "nvidia-0");
	assert_string_equal(s->gpu[1].text[GPU_TEXT_COUNTED_ELSEWHERE], counted_elsewhere);
	assert_string_equal(s->gpu[3].text[GPU_TEXT_INSTANCE], "nvidia-1");
	assert_near(of(&s->gpu[0], GPU_FIG_JOB_MEMORY_PEAK), (double)(150 * MIB));
	assert_near(of(&s->gpu[1], GPU_FIG_JOB_MEMORY_PEAK), (double)(100 * MIB));
	assert_near(of(&s->gpu[3], GPU_FIG_JOB_MEMORY_PEAK), 0);
	assert_near(value(s, FIG_GPU_ENERGY), 4);
	buf_init(&out, 1 << 20);
	assert_non_null(
		strstr(words_of(s, 120, false, &out), "\n           mig-1  memory of the job 100 MiB, "));
	buf_release(&out);
	summary_free(s);
}

static void test_several_hosts_and_two_recordings_of_one(void **state)
{
	const char *path = dir;
	struct summary *s;

	(void)state;
	make_gpus(file, "n1");
	make_gpus(file_in("b.tacho"), "n2");
	make_gpus(file_in("c.tacho"), "n2");
	s = summary_of_paths(&path, 1);
	assert_int_equal(s->nr_gpus, 4);
	assert_string_equal(s->gpu[0].text[GPU_TEXT_HOST], "n1");
	assert_string_equal(s->gpu[2].text[GPU_TEXT_HOST], "n2");
	assert_near(of(&s->gpu[2], GPU_FIG_ENERGY), 604);
	assert_near(of(&s->gpu[2], GPU_FIG_UTIL_MEAN), 50);
	assert_near(of(&s->gpu[2], GPU_FIG_JOB_BUSY), 3.2);
	assert_near(of(&s->gpu[2], GPU_FIG_JOB_MEMORY_PEAK), (double)(800 * MIB));
	assert_near(of(&s->gpu[0], GPU_FIG_JOB_MEMORY_PEAK), (double)(400 * MIB));
	assert_near(value(s, FIG_GPU_ENERGY), 2 * 764);
	assert_true(has_note(s, "several recordings saw the same GPUs"));
	assert_int_equal(s->group[0].nr_gpus, 2);
	summary_free(s);
}

static void test_gpus_in_json(void **state)
{
	static const char *const key[] = {"index", "vendor", "name", "uuid", "util_mean_percent",
		"util_max_percent", "mem_util_mean_percent", "mem_util_max_percent", "memory_peak_bytes",
		"memory_total_bytes", "power_mean_w", "power_max_w", "energy_j", "job_memory_peak_bytes",
		"job_util_mean_percent"};
	struct summary *s;
	struct maker m;
	struct buf out;
	const char *json, *at;

	(void)state;
	make_gpus(file, "here");
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	json = json_of(s, &out);
	at = strstr(json, "\"gpus\": [\n    {\n");
	assert_non_null(at);
	for (size_t i = 0; i < ARRAY_SIZE(key); i++) {
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "\n      \"%s\": ", key[i]);
		at = strstr(at, quoted);
		if (!at)
			fail_msg("%s is not there, or not in order", key[i]);
	}
	assert_non_null(
		strstr(json, "\"job_memory_peak_bytes\": 419430400,\n      \"job_util_mean_percent\": 40,"));
	assert_non_null(strstr(json, "\n        \"ecc_corrected\": \"needs the right to look\""));
	/* of a group */
	assert_non_null(
		strstr(json, "\"memory_peak_bytes\": 314572800,\n          \"util_mean_percent\": 30,"));
	summary_free(s);

	/* None, and why. */
	maker_open(&m, file, &(struct maker_options){.forbidden = "gpu.util"});
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	s = summary_of(file);
	json = json_of(s, &out);
	assert_non_null(strstr(json, "\"gpus\": [],"));
	assert_non_null(strstr(json, "\"gpus\": \"needs the right to look\""));
	assert_false(has_note(s, "GPUs could not be read"));
	summary_free(s);
	buf_release(&out);
}

static void test_gpus_in_words(void **state)
{
	static const unsigned width[] = {80, 60, 40};
	struct summary *s;
	struct buf out;
	const char *text;

	(void)state;
	make_gpus(file, "here");
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	text = words_of(s, 300, true, &out);
	assert_non_null(strstr(text,
		"\n  gpu 0    NVIDIA A100-SXM4-40GB  util 50 % mean (job 40 %), 100 % max · "
		"memory peak 1.1 GiB of 40 GiB (job 400 MiB) · 150 W mean, 250 W max · 604 J · "
		"44 C · throttled 1.00s (power)\n"));
	assert_non_null(strstr(text, "\n           1 other in the node, not the job's\n"));
	assert_null(strstr(text, "gpu 1"));
	assert_non_null(strstr(text, "\n  energy   GPUs 764 J (nothing else of the node is measured)\n"));
	assert_non_null(strstr(text, "      gpu "));
	assert_non_null(strstr(text, "\n           a "));
	for (size_t i = 0; i < ARRAY_SIZE(width); i++) {
		text = strstr(words_of(s, width[i], false, &out), "\n  gpu 0") + 1;
		for (; strncmp(text, "  io", 4); text = strchr(text, '\n') + 1)
			assert_true(strcspn(text, "\n") <= width[i]);
	}
	summary_free(s);
	buf_release(&out);
}

static void make_many(unsigned nr, const char *job)
{
	struct maker m;
	char name[32];

	maker_open(&m, file, NULL);
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "nvidia-%u", i);
		maker_instance(
			&m, MAKER_GPU, i, 0, name, "vendor", "nvidia", "model", "H100", "job", job, NULL);
	}
	for (int64_t t = 0; t < 2; t++) {
		for (uint32_t i = 0; i < nr; i++) {
			maker_set(&m, i, "gpu.util", i);
			maker_set(&m, i, "gpu.energy", t * 1000);
		}
		maker_tick(&m, t * SECOND);
	}
	maker_finish(&m, NULL);
}

static void test_many_and_others_gpus_in_words(void **state)
{
	struct summary *s;
	struct buf out;
	const char *text;
	unsigned lines = 0;

	(void)state;
	buf_init(&out, 1 << 20);
	make_many(20, "yes");
	s = summary_of(file);
	text = words_of(s, 100, false, &out);
	assert_non_null(strstr(
		text, "\n  gpus     20 of them: util 9.5 % mean (0 % the least, 19 % the most), 20 J\n"));
	assert_non_null(strstr(text, "\n           and 12 more\n"));
	for (const char *at = text; (at = strstr(at, "H100  util")); at++)
		lines++;
	assert_int_equal(lines, 8);
	summary_free(s);
	/* Nobody's, and the job was not there. */
	make_many(2, "unclaimed");
	s = summary_of(file);
	assert_non_null(
		strstr(words_of(s, 100, false, &out), "\n  gpus     2 in the node, not used by the job\n"));
	assert_null(strstr((char *)out.data, "H100"));
	summary_free(s);
	buf_release(&out);
}

static void test_series_of_gpus(void **state)
{
	struct series_query of_a = {.group = "a"}, of_pid = {.pid = 100};

	(void)state;
	make_gpus(file, "here");
	expect_series("gpu.watts", NULL, (double[]){70, 181, 191, 201, 211}, 5);
	expect_series("gpu_process.memory", NULL,
		(double[]){0, (double)(300 * MIB), (double)(400 * MIB), (double)(300 * MIB), 0}, 5);
	expect_series("gpu_process.busy_ratio", NULL, (double[]){0, 0.6, 0.6, 0.4, 0}, 5);
	/* Of a group, and of one process. */
	expect_series("gpu_process.memory", &of_a,
		(double[]){0, (double)(100 * MIB), (double)(200 * MIB), (double)(300 * MIB), 0}, 5);
	expect_series("gpu_process.util", &of_pid, (double[]){NAN, 0.6, 0.6, 0.4, NAN}, 5);
	expect_series("gpu.memory.used_ratio", NULL,
		(double[]){1.0 / 40, (1 + 50.0 / 1024) / 40, (1 + 100.0 / 1024) / 40, (1 + 50.0 / 1024) / 40,
			1.0 / 40},
		5);
}

/* It is in the groups of its process, from when that joins them. */
static void test_groups_that_change(void **state)
{
	struct series_query of_a = {.group = "a"}, of_b = {.group = "b"};
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, "a", 1);
	add_gpu(&m, 0, "nvidia-0", "yes");
	add_client(&m, 0, 0, "nvidia-0", "1");
	for (int64_t i = 0; i < 4; i++) {
		if (i == 2)
			maker_join_in(&m, 0, 1, 100, 1, 0, false, "b", 1);
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		maker_set(&m, 0, "gpu.util", 50);
		set_client(&m, 0, (i + 1) * MIB, 10);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("gpu_process.memory", &of_a, (double[]){(double)MIB, (double)(2 * MIB), 0, 0}, 4);
	expect_series("gpu_process.memory", &of_b, (double[]){0, 0, (double)(3 * MIB), (double)(4 * MIB)}, 4);
	s = summary_of(file);
	assert_near(of(gpu_of(&s->group[0], "nvidia-0"), GPU_FIG_JOB_MEMORY_PEAK), (double)(2 * MIB));
	assert_near(of(gpu_of(&s->group[1], "nvidia-0"), GPU_FIG_JOB_MEMORY_PEAK), (double)(4 * MIB));
	summary_free(s);
}

/* A file may say anything. */
static void test_hostile_recordings(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;
	char name[64];

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), i % 3 ? "x\033[31m%u" : "%u/a/b", i);
		maker_instance(&m, MAKER_GPU, i, 0, name, "index", "99999999999999999999", "model",
			"\033[2J\xff", "uuid", "", "job", "perhaps", NULL);
	}
	maker_instance(&m, MAKER_GPU, 100, 0, "x\033[31m1", NULL); /* the same twice */
	add_client(&m, 0, 0, "nowhere", "1");
	add_client(&m, 1, 0, "x\033[31m1", "99999999999999999999");
	add_client(&m, 2, 0, "x\033[31m1", "-5");
	for (int64_t i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < 101; k++) {
			maker_set(&m, k, "gpu.util", i & 1 ? INT64_MAX : INT64_MIN);
			maker_set(&m, k, "gpu.energy", i & 1 ? INT64_MIN : INT64_MAX);
			maker_set(&m, k, "gpu.power", INT64_MAX);
			maker_set(&m, k, "gpu.memory.used", -i);
		}
		for (uint32_t k = 0; k < 3; k++) {
			set_client(&m, k, INT64_MAX, INT64_MIN);
			maker_set(&m, k, "gpu_process.busy", i & 1 ? INT64_MAX : INT64_MIN);
		}
		maker_tick(&m, i == 3 ? 0 : i * SECOND);
	}
	maker_leave(&m, MAKER_GPU_PROCESS, 0, SECOND);
	maker_leave(&m, MAKER_GPU, 100, -SECOND);
	maker_tick(&m, 9 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_gpus, 100);
	buf_init(&out, 1 << 24);
	assert_null(strchr(json_of(s, &out), '\033'));
	assert_null(strstr(json_of(s, &out), "inf"));
	assert_null(strchr(words_of(s, 80, true, &out), '\033'));
	assert_int_equal(out.err, 0);
	buf_release(&out);
	summary_free(s);
}

/* Damage loses ticks, never what is known of a device. */
static void test_damaged_recordings(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_with_gpu(&m, "yes");
	for (int64_t i = 0; i < 4000; i++) {
		maker_set(&m, 0, "gpu.util", 50);
		maker_set(&m, 0, "gpu.energy", i * 100000);
		maker_set(&m, 0, "gpu.memory.used", (i * 7919) % 10007);
		maker_tick(&m, i * SECOND);
		if (i % 10 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
	damage(file, 0.5);
	s = summary_of(file);
	assert_true(has_note(s, "damaged"));
	assert_int_equal(s->nr_gpus, 1);
	assert_near(of(&s->gpu[0], GPU_FIG_UTIL_MEAN), 50);
	assert_near(of(&s->gpu[0], GPU_FIG_ENERGY), 399900);
	assert_string_equal(s->gpu[0].figure[GPU_FIG_LOST_AT].why, "");
	summary_free(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_what_a_gpu_did),
		T(test_what_the_job_and_its_groups_used),
		T(test_engine_time),
		T(test_only_processes_are_told_of),
		T(test_unknown_time_is_left_out),
		T(test_a_number_stays_with_its_unit),
		T(test_lost_devices),
		T(test_lost_from_the_start),
		T(test_silent_is_not_lost),
		T(test_nobody_on_it),
		T(test_a_slice_alone),
		T(test_slices),
		T(test_several_hosts_and_two_recordings_of_one),
		T(test_gpus_in_json),
		T(test_gpus_in_words),
		T(test_many_and_others_gpus_in_words),
		T(test_series_of_gpus),
		T(test_groups_that_change),
		T(test_hostile_recordings),
		T(test_damaged_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
