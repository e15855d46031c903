/* NVIDIA's GPUs by the fake NVML: every row, every kind of refusal, old and odd drivers, slices, devices that
 * are lost and come back, processes in all the layouts that drivers have written. */
#include "nvml_lab.h"

extern const struct gpu_maker gpu_maker_nvidia;

struct maker {
	struct env *env;
	void *state;
	struct gpu_request request;
	struct gpu_reading r;
	struct trouble why;
	int opened;
};

static void start(struct maker *m, const char *film, const char *values)
{
	m->env = nvml_env(film, values);
	m->state = calloc(1, gpu_maker_nvidia.state_size);
	m->request = (struct gpu_request){.rows = ~UINT64_C(0), .process_rows = ~UINT64_C(0), .medium = true};
	m->why = (struct trouble){0};
}

static void open_maker(struct maker *m)
{
	m->opened = gpu_maker_nvidia.open(m->state, m->env, &m->why);
}

static void read_maker(struct maker *m)
{
	memset(&m->r, 0, sizeof(m->r));
	gpu_maker_nvidia.read(m->state, m->env, &m->request, &m->r);
}

static struct maker *begin(const char *values)
{
	static struct maker m;

	start(&m, NVIDIA_FILM FRAMES, values);
	open_maker(&m);
	assert_int_equal(m.opened, 0);
	read_maker(&m);
	return &m;
}

static void end(struct maker *m)
{
	gpu_maker_nvidia.close(m->state, m->env);
	free(m->state);
	nvml_clean(m->env);
}

static const struct gpu_device *device(const struct maker *m, const char *name)
{
	for (unsigned i = 0; i < m->r.nr_devices; i++)
		if (!strcmp(m->r.device[i].name, name))
			return &m->r.device[i];
	fail_msg("no device %s", name);
	return NULL;
}

static int64_t of(const struct maker *m, const char *name, enum gpu_row row)
{
	const struct gpu_device *d = device(m, name);

	return d->valid >> row & 1 ? d->value[row] : INVALID;
}

static const struct gpu_process *process(const struct maker *m, const char *gpu, int64_t pid)
{
	for (unsigned i = 0; i < m->r.nr_processes; i++)
		if (m->r.process[i].pid == pid && !strcmp(m->r.device[m->r.process[i].device].name, gpu))
			return &m->r.process[i];
	return NULL;
}

static int64_t use(const struct maker *m, int64_t pid, enum gpu_process_row row)
{
	const struct gpu_process *p = process(m, "nvidia-0", pid);

	if (!p)
		fail_msg("no process %lld", (long long)pid);
	return p->valid >> row & 1 ? p->value[row] : INVALID;
}

static const char all_values[] =
	"count 2\n" GPU0 GPU1 "0.bar1_total 65536\n0.bar1_used 4096\n"
	"0.clock0 1410\n0.clock1 1400\n0.clock2 1593\n0.clock3 1275\n"
	"0.maxclock0 1980\n0.maxclock1 1970\n0.maxclock2 1600\n0.temp 45\n0.memtemp 61\n0.fan 130\n"
	"0.power 151234\n0.power_limit 400000\n0.energy 987654321012\n0.pstate 2\n0.reasons 0x44\n"
	"0.viol_0 11\n0.viol_1 12\n0.viol_2 13\n0.viol_3 14\n0.viol_4 15\n0.viol_5 16\n"
	"0.ecc_0 7\n0.ecc_1 2\n0.enc 3\n0.dec 4\n0.pcie_tx 1024\n0.pcie_rx 2048\n0.replays 9\n"
	"0.proc 4242 900 30 5 1 2\n";

static void test_every_row(void **state)
{
	static const struct {
		enum gpu_row row;
		int64_t value;
	} want[] = {{GPU_UTIL, 37}, {GPU_MEM_UTIL, 12}, {GPU_ENCODER, 3}, {GPU_DECODER, 4},
		{GPU_MEMORY_USED, 1000}, {GPU_MEMORY_TOTAL, 40000}, {GPU_MEMORY_RESERVED, 500},
		{GPU_BAR1_USED, 4096}, {GPU_BAR1_TOTAL, 65536}, {GPU_GTT_USED, INVALID},
		{GPU_CLOCK_GRAPHICS, 1410}, {GPU_CLOCK_SM, 1400}, {GPU_CLOCK_MEMORY, 1593},
		{GPU_CLOCK_VIDEO, 1275}, {GPU_CLOCK_GRAPHICS_MAX, 1980}, {GPU_CLOCK_SM_MAX, 1970},
		{GPU_CLOCK_MEMORY_MAX, 1600}, {GPU_TEMPERATURE, 45000}, {GPU_TEMPERATURE_MEMORY, 61000},
		{GPU_FAN, 130}, {GPU_POWER, 151234}, {GPU_POWER_LIMIT, 400000}, {GPU_ENERGY, 987654321012},
		{GPU_PSTATE, 2}, {GPU_THROTTLE_REASONS, 0x44}, {GPU_THROTTLED_POWER, 11},
		{GPU_THROTTLED_THERMAL, 12}, {GPU_THROTTLED_SYNC, 13}, {GPU_THROTTLED_BOARD, 14},
		{GPU_THROTTLED_LOW_UTIL, 15}, {GPU_THROTTLED_RELIABILITY, 16}, {GPU_ECC_CORRECTED, 7},
		{GPU_ECC_UNCORRECTED, 2}, {GPU_PCIE_TX, 1024000}, {GPU_PCIE_RX, 2048000},
		{GPU_PCIE_REPLAYS, 9}, {GPU_PROCESSES, 1}};
	struct maker *m = begin(all_values);
	const struct gpu_device *d;

	(void)state;
	assert_int_equal(ARRAY_SIZE(want), NR_GPU_ROWS);
	assert_int_equal(m->r.nr_devices, 2);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (of(m, "nvidia-0", want[i].row) != want[i].value)
			fail_msg("row %u: %lld", want[i].row, (long long)of(m, "nvidia-0", want[i].row));
	d = device(m, "nvidia-0");
	assert_string_equal(d->model, "NVIDIA FAKE-100");
	assert_string_equal(d->uuid, "GPU-00000000-0000-0000");
	assert_string_equal(d->pci, "0000:3b:00.0");
	assert_int_equal(d->index, 0);
	assert_int_equal(d->minor, 3);
	assert_null(d->counted_elsewhere);
	d = device(m, "nvidia-1");
	assert_string_equal(d->pci, "0001:5e:00.0");
	assert_int_equal(d->minor, -1);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	assert_int_equal(of(m, "nvidia-1", GPU_POWER), INVALID);
	end(m);
}

static void test_refusals(void **state)
{
	struct maker *m =
		begin("count 1\n" GPU0 "0.power !4\n0.temp !999\n0.clock1 !10\n0.fan !3\n0.energy !13\n");

	(void)state;
	assert_int_equal(m->r.why[GPU_POWER].availability, FORBIDDEN);
	assert_non_null(m->r.why[GPU_POWER].remedy);
	assert_int_equal(m->r.why[GPU_TEMPERATURE].availability, FAILED);
	assert_int_equal(m->r.why[GPU_CLOCK_SM].availability, FAILED);
	assert_non_null(strstr(m->r.why[GPU_CLOCK_SM].reason, "in time"));
	assert_int_equal(m->r.why[GPU_FAN].availability, ABSENT);
	assert_int_equal(m->r.why[GPU_ENERGY].availability, ABSENT);
	assert_null(m->r.why[GPU_UTIL].reason);
	assert_null(device(m, "nvidia-0")->lost);
	for (enum gpu_row row = GPU_CLOCK_GRAPHICS; row < GPU_PROCESSES; row++)
		assert_int_equal(of(m, "nvidia-0", row), INVALID);
	end(m);
}

static void test_values_that_cannot_be(void **state)
{
	struct maker *m = begin("count 1\n0.util 4294967295\n0.memutil 101\n0.mem_total 10\n0.mem_used 11\n"
				"0.pstate 32\n0.temp 5000\n0.enc 200\n0.energy 18446744073709551615\n"
				"0.bar1_total 1\n0.bar1_used 2\n0.fan 100000\n0.clock0 4294967295\n");
	static const enum gpu_row row[] = {GPU_UTIL, GPU_MEM_UTIL, GPU_MEMORY_USED, GPU_MEMORY_TOTAL,
		GPU_PSTATE, GPU_TEMPERATURE, GPU_ENCODER, GPU_ENERGY, GPU_BAR1_USED, GPU_BAR1_TOTAL, GPU_FAN,
		GPU_CLOCK_GRAPHICS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(of(m, "nvidia-0", row[i]), INVALID);
		assert_int_equal(m->r.why[row[i]].availability, FAILED);
	}
	assert_string_equal(device(m, "nvidia-0")->uuid, "");
	end(m);
}

static void test_only_what_is_asked_is_called(void **state)
{
	struct maker *m = begin(all_values);

	(void)state;
	assert_int_equal(calls_made("nvmlDeviceGetPcieThroughput"), 4); /* two GPUs, two ways */
	m->request.medium = false;
	unlink(nvml_log_path);
	read_maker(m);
	assert_int_equal(calls_made("nvmlDeviceGetPcieThroughput"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetTotalEccErrors"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetMaxClockInfo"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetCount_v2"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetUtilizationRates"), 2);
	/* What the second GPU did not support is not asked again now. */
	assert_int_equal(calls_made("nvmlDeviceGetPowerUsage"), 1);
	assert_int_equal(of(m, "nvidia-0", GPU_POWER), 151234);
	m->request.rows = UINT64_C(1) << GPU_POWER;
	m->request.process_rows = 0;
	m->request.medium = true;
	unlink(nvml_log_path);
	read_maker(m);
	assert_int_equal(calls_made("nvmlDeviceGetPowerUsage"), 2);
	assert_int_equal(calls_made("nvmlDeviceGetUtilizationRates"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetMemoryInfo_v2"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetComputeRunningProcesses_v2"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetPcieThroughput"), 0);
	assert_int_equal(device(m, "nvidia-0")->valid, UINT64_C(1) << GPU_POWER);
	end(m);
}

static struct maker *begin_with(const char *variant, const char *values)
{
	static struct maker m;

	start(&m, NVIDIA_FILM FRAMES, values);
	nvml_variant = variant;
	open_maker(&m);
	assert_int_equal(m.opened, 0);
	read_maker(&m);
	return &m;
}

static void test_an_old_driver(void **state)
{
	struct maker *m = begin_with("libnvidia-ml-old.so.1", all_values);

	(void)state;
	/* Its memory in use includes what is reserved. */
	assert_int_equal(of(m, "nvidia-0", GPU_MEMORY_USED), 1500);
	assert_int_equal(of(m, "nvidia-0", GPU_MEMORY_RESERVED), INVALID);
	assert_int_equal(m->r.why[GPU_MEMORY_RESERVED].availability, ABSENT);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), 1);
	assert_int_equal(use(m, 4242, GPU_PROCESS_MEMORY), 900);
	assert_true(calls_made("nvmlDeviceGetComputeRunningProcesses") > 0);
	assert_int_equal(calls_made("nvmlInit"), 1);
	end(m);
}

#define THREE "0.proc 4242 900 0 0 0 0\n0.proc 4243 800 0 0 0 0\n0.proc 4244 - 0 0 0 0\n"

static void test_layouts_of_processes(void **state)
{
	static const struct {
		const char *variant, *stride;
	} driver[] = {{"libnvidia-ml.so.1", "24"}, {"libnvidia-ml-old.so.1", "24"},
		{"libnvidia-ml-v3.so.1", "24"}, {"libnvidia-ml-v3.so.1", "32"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(driver); i++) {
		struct maker *m = begin_with(driver[i].variant, "count 1\n" GPU0);

		setenv("FAKE_NVML_STRIDE", driver[i].stride, 1);
		set_values("count 1\n" GPU0 THREE);
		read_maker(m);
		assert_int_equal(m->r.nr_processes, 3);
		assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), 3);
		assert_int_equal(use(m, 4242, GPU_PROCESS_MEMORY), 900);
		assert_int_equal(use(m, 4243, GPU_PROCESS_MEMORY), 800);
		assert_int_equal(use(m, 4244, GPU_PROCESS_MEMORY), INVALID);
		assert_int_equal(m->r.process_why[GPU_PROCESS_MEMORY].availability, ABSENT);
		end(m);
	}
}

static void test_a_layout_of_tomorrow(void **state)
{
	struct maker *m = begin_with("libnvidia-ml-v3.so.1", "count 1\n" GPU0 THREE);

	(void)state;
	setenv("FAKE_NVML_STRIDE", "40", 1);
	read_maker(m);
	assert_int_equal(m->r.nr_processes, 0);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), INVALID);
	assert_int_equal(m->r.why[GPU_PROCESSES].availability, FAILED);
	assert_int_equal(m->r.process_why[GPU_PROCESS_MEMORY].availability, FAILED);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	end(m);
}

static void test_one_process_in_three_lists(void **state)
{
	struct maker *m = begin(
		"count 1\n" GPU0 "0.proc 10 100 0 0 0 0 CG\n0.proc 10 150 0 0 0 0 M\n0.proc 11 70 0 0 0 0 G\n"
		"0.proc 12 - 0 0 0 0 G\n0.proc 12 60 0 0 0 0 C\n");

	(void)state;
	assert_int_equal(m->r.nr_processes, 3);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), 3);
	assert_int_equal(use(m, 10, GPU_PROCESS_MEMORY), 150);
	assert_int_equal(use(m, 11, GPU_PROCESS_MEMORY), 70);
	assert_int_equal(use(m, 12, GPU_PROCESS_MEMORY), 60);
	end(m);
}

static void test_lists_that_are_refused(void **state)
{
	struct maker *m = begin("count 1\n" GPU0 "0.procs !4\n" THREE);

	(void)state;
	assert_int_equal(m->r.nr_processes, 0);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), INVALID);
	assert_int_equal(m->r.why[GPU_PROCESSES].availability, FORBIDDEN);
	for (unsigned i = 0; i < NR_GPU_PROCESS_ROWS; i++)
		assert_int_equal(m->r.process_why[i].availability, FORBIDDEN);
	end(m);
	/* One that is lost says so itself: of the others nothing becomes doubtful. */
	m = begin("count 1\n" GPU0 "0.procs !15\n" THREE);
	assert_non_null(m->r.device[0].lost);
	for (unsigned i = 0; i < NR_GPU_PROCESS_ROWS; i++)
		assert_null(m->r.process_why[i].reason);
	end(m);
}

static void test_more_processes_than_there_is_room_for(void **state)
{
	static char values[64 * 1400];
	size_t at = (size_t)snprintf(values, sizeof(values), "count 1\n" GPU0);
	struct maker *m;

	(void)state;
	for (int i = 0; i < 700; i++)
		at += (size_t)snprintf(values + at, sizeof(values) - at, "0.proc %d 10 50 0 0 0\n", 100 + i);
	m = begin(values);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), 700);
	assert_int_equal(m->r.nr_processes, GPU_PROCESSES_MAX);
	assert_non_null(strstr(m->r.process_why[GPU_PROCESS_MEMORY].reason, "left out"));
	for (int i = 700; i < 1300; i++)
		at += (size_t)snprintf(values + at, sizeof(values) - at, "0.proc %d 10 50 0 0 0\n", 100 + i);
	set_values(values);
	read_maker(m);
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), INVALID);
	assert_int_equal(m->r.why[GPU_PROCESSES].availability, FAILED);
	end(m);
}

static void wait_until(struct maker *m, double second)
{
	assert_int_equal(env_sleep_until(m->env, (int64_t)((100 + second) * NSEC_PER_SEC)), 0);
}

static void test_utilisation_of_processes(void **state)
{
	struct maker *m = begin("count 1\n" GPU0 "0.proc 10 100 30 5 1 2\n0.proc 11 100 0 0 0 0\n");

	(void)state;
	/* The first samples may be of any age. */
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), INVALID);
	wait_until(m, 0.5);
	read_maker(m);
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), 30);
	assert_int_equal(use(m, 10, GPU_PROCESS_MEM_UTIL), 5);
	assert_int_equal(use(m, 10, GPU_PROCESS_ENCODER), 1);
	assert_int_equal(use(m, 10, GPU_PROCESS_DECODER), 2);
	assert_int_equal(use(m, 11, GPU_PROCESS_UTIL), INVALID);
	/* No new sample: the value stands for a second, then it has been idle. */
	set_values("count 1\n" GPU0 "0.samples !6\n0.proc 10 100 30 5 1 2\n0.proc 11 100 0 0 0 0\n");
	wait_until(m, 1.2);
	read_maker(m);
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), 30);
	assert_int_equal(use(m, 11, GPU_PROCESS_UTIL), 0);
	wait_until(m, 1.5);
	read_maker(m);
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), 0);
	assert_int_equal(use(m, 10, GPU_PROCESS_DECODER), 0);
	/* A new one is believed at once, nonsense is not. */
	set_values("count 1\n" GPU0 "0.proc 10 100 77 5 1 2\n0.proc 11 100 4000000 1 0 0\n");
	wait_until(m, 3);
	read_maker(m);
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), 77);
	assert_int_equal(use(m, 11, GPU_PROCESS_UTIL), 0);
	end(m);
}

static void test_utilisation_that_is_refused(void **state)
{
	struct maker *m = begin("count 1\n" GPU0 "0.samples !4\n0.proc 10 100 30 5 1 2\n");

	(void)state;
	wait_until(m, 5);
	read_maker(m);
	assert_int_equal(use(m, 10, GPU_PROCESS_UTIL), INVALID);
	assert_int_equal(use(m, 10, GPU_PROCESS_MEMORY), 100);
	assert_int_equal(m->r.process_why[GPU_PROCESS_UTIL].availability, FORBIDDEN);
	assert_int_equal(m->r.process_why[GPU_PROCESS_DECODER].availability, FORBIDDEN);
	end(m);
}

#define SLICES                                                             \
	"0.mig 1\n0/1.name NVIDIA FAKE-100 MIG 1g\n0/1.uuid MIG-aaaa\n"    \
	"0/1.mem_total 5000\n0/1.mem_used 700\n0/1.proc 10 600 40 1 0 0\n" \
	"0/4.uuid MIG-bbbb\n0/4.mem_total 10000\n0/4.mem_used 0\n0.proc 10 600 0 0 0 0\n"

static void test_slices(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 GPU1 SLICES);
	const struct gpu_device *d;

	(void)state;
	assert_int_equal(m->r.nr_devices, 4);
	d = device(m, "nvidia-0/mig-1");
	assert_non_null(d->counted_elsewhere);
	assert_string_equal(d->uuid, "MIG-aaaa");
	assert_string_equal(d->pci, "0000:3b:00.0");
	assert_int_equal(d->index, 0);
	assert_int_equal(d->minor, 3);
	assert_int_equal(of(m, "nvidia-0/mig-1", GPU_MEMORY_USED), 700);
	assert_int_equal(of(m, "nvidia-0/mig-4", GPU_MEMORY_TOTAL), 10000);
	/* Nobody measures their utilisation: that is not idleness. */
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), INVALID);
	assert_int_equal(of(m, "nvidia-0/mig-1", GPU_UTIL), INVALID);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	assert_non_null(strstr(m->r.why[GPU_UTIL].reason, "MIG"));
	/* A process counts once, on its slice. */
	assert_int_equal(m->r.nr_processes, 1);
	assert_non_null(process(m, "nvidia-0/mig-1", 10));
	assert_int_equal(process(m, "nvidia-0/mig-1", 10)->value[GPU_PROCESS_MEMORY], 600);
	assert_int_equal(process(m, "nvidia-0/mig-1", 10)->valid, 1 << GPU_PROCESS_MEMORY);
	assert_non_null(strstr(m->r.process_why[GPU_PROCESS_UTIL].reason, "MIG"));
	assert_int_equal(of(m, "nvidia-0", GPU_PROCESSES), 1);
	/* One is removed while we look on, then all. */
	set_values("count 2\n" GPU0 GPU1 "0.mig 1\n0/4.uuid MIG-bbbb\n0/4.mem_total 10000\n0/4.mem_used 5\n");
	read_maker(m);
	assert_int_equal(m->r.nr_devices, 3);
	assert_int_equal(of(m, "nvidia-0/mig-4", GPU_MEMORY_USED), 5);
	set_values("count 2\n" GPU0 GPU1);
	read_maker(m);
	assert_int_equal(m->r.nr_devices, 2);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	end(m);
}

static void test_a_gpu_is_lost_and_comes_back(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 GPU1);

	(void)state;
	set_values("count 2\n" GPU0
		   "1.uuid GPU-11111111-1111-1111\n1.handle !15\n1.util !15\n1.mem_total !15\n");
	m->request.medium = false;
	read_maker(m);
	assert_non_null(strstr(device(m, "nvidia-1")->lost, "fallen off the bus"));
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	/* It is left alone until the next search, which finds nothing better. */
	unlink(nvml_log_path);
	read_maker(m);
	assert_int_equal(calls_made("nvmlDeviceGetUtilizationRates"), 1);
	m->request.medium = true;
	read_maker(m);
	assert_int_equal(calls_made("nvmlInit_v2"), 1);
	assert_non_null(device(m, "nvidia-1")->lost);
	assert_string_equal(device(m, "nvidia-1")->uuid, "GPU-11111111-1111-1111");
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	/* Handles from before the reset are not good any more: the library has started anew. */
	set_values("count 2\n" GPU0 GPU1);
	read_maker(m);
	assert_null(device(m, "nvidia-1")->lost);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	assert_int_equal(m->r.nr_devices, 2);
	end(m);
}

static void test_one_that_stays_lost_is_tried_less_and_less(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 GPU1);

	(void)state;
	set_values("count 2\n" GPU0
		   "1.uuid GPU-11111111-1111-1111\n1.handle !15\n1.util !15\n1.mem_total !15\n");
	unlink(nvml_log_path);
	for (int i = 0; i < 100; i++)
		read_maker(m);
	/* After 1, 2, 4, 8 ... rounds; the first round is the one in which it is lost. */
	assert_int_equal(calls_made("nvmlInit_v2"), 7);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	assert_non_null(device(m, "nvidia-1")->lost);
	set_values("count 2\n" GPU0 GPU1);
	for (int i = 0; i < 64; i++)
		read_maker(m);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	/* And with the next trouble it begins again. */
	unlink(nvml_log_path);
	set_values("count 2\n" GPU0 "1.handle !15\n1.util !15\n1.mem_total !15\n");
	read_maker(m);
	read_maker(m);
	assert_int_equal(calls_made("nvmlInit_v2"), 1);
	end(m);
}

static void test_one_that_was_pulled_costs_nothing(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 GPU1);

	(void)state;
	set_values("count 1\n" GPU0);
	read_maker(m);
	unlink(nvml_log_path);
	for (int i = 0; i < 9; i++)
		read_maker(m);
	assert_int_equal(calls_made("nvmlInit_v2"), 0);
	assert_non_null(device(m, "nvidia-1")->lost);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	end(m);
}

static void test_a_thousand_short_processes(void **state)
{
	struct maker *m = begin("count 1\n" GPU0);
	char values[400];

	(void)state;
	m->request.rows = 0;
	m->request.medium = false;
	for (int i = 0; i < GPU_PROCESSES_MAX + 10; i++) {
		snprintf(values, sizeof(values), "count 1\n" GPU0 "0.proc %d 100 0 0 0 0\n", 1000 + i);
		set_values(values);
		read_maker(m);
		assert_int_equal(use(m, 1000 + i, GPU_PROCESS_MEMORY), 100);
	}
	end(m);
}

static void test_a_gpu_is_pulled_and_another_one_comes(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 GPU1);

	(void)state;
	/* What was the second is the first now; it keeps its name. */
	set_values("count 1\n0.uuid GPU-11111111-1111-1111\n0.util 5\n0.memutil 6\n");
	read_maker(m);
	assert_non_null(device(m, "nvidia-0")->lost);
	assert_null(device(m, "nvidia-1")->lost);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 5);
	assert_int_equal(m->r.nr_devices, 2);
	/* Another one in the place of the first gets a name that nobody had. */
	set_values("count 2\n0.uuid GPU-22222222\n0.util 1\n0.memutil 1\n" GPU1);
	read_maker(m);
	assert_int_equal(m->r.nr_devices, 3);
	assert_non_null(device(m, "nvidia-0")->lost);
	assert_string_equal(device(m, "nvidia-2")->uuid, "GPU-22222222");
	assert_int_equal(of(m, "nvidia-2", GPU_UTIL), 1);
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	end(m);
}

static void test_the_driver_goes_and_comes(void **state)
{
	struct maker *m = begin("count 1\n" GPU0);

	(void)state;
	set_values("count !9\n0.util !9\n0.mem_total !9\ninit !9\n");
	read_maker(m);
	assert_non_null(strstr(device(m, "nvidia-0")->lost, "unloaded"));
	read_maker(m);
	assert_non_null(strstr(device(m, "nvidia-0")->lost, "unloaded"));
	set_values("count 1\n" GPU0);
	read_maker(m);
	read_maker(m);
	assert_null(device(m, "nvidia-0")->lost);
	assert_int_equal(of(m, "nvidia-0", GPU_UTIL), 37);
	end(m);
}

static void test_reset_in_the_midst_of_a_round(void **state)
{
	struct maker *m = begin("count 1\n" GPU0 "0.power 100 !16\n0.temp 40\n");

	(void)state;
	assert_int_equal(of(m, "nvidia-0", GPU_POWER), 100);
	unlink(nvml_log_path);
	m->request.medium = false;
	read_maker(m);
	assert_non_null(strstr(device(m, "nvidia-0")->lost, "reset"));
	assert_int_equal(calls_made("nvmlDeviceGetTotalEnergyConsumption"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetComputeRunningProcesses_v2"), 0);
	end(m);
}

static void test_a_gpu_that_is_not_ours_to_open(void **state)
{
	struct maker *m = begin("count 2\n" GPU0 "0.handle !4\n" GPU1);

	(void)state;
	assert_non_null(strstr(device(m, "nvidia-0")->lost, "may not open"));
	assert_int_equal(of(m, "nvidia-1", GPU_UTIL), 99);
	end(m);
}

static void refuse(const char *variant, const char *values, int code, const char *words)
{
	struct maker m;

	start(&m, NVIDIA_FILM FRAMES, values);
	nvml_variant = variant;
	open_maker(&m);
	assert_int_equal(m.opened, code);
	if (!m.why.reason || !strstr(m.why.reason, words))
		fail_msg("'%s' instead of '%s'", m.why.reason ? m.why.reason : "", words);
	end(&m);
}

static void test_reasons_not_to_start(void **state)
{
	(void)state;
	refuse(NULL, "", -ENOENT, "not its library");
	refuse("libnvidia-ml.so.1", "", -ENOENT, "not loaded");
	refuse("libnvidia-ml.so.1", "count 1\ninit !9\n", -ENOENT, "not loaded");
	refuse("libnvidia-ml.so.1", "count 1\ninit !18\n", -EIO, "different versions");
	refuse("libnvidia-ml.so.1", "count 1\ninit !4\n", -EACCES, "may not use");
	refuse("libnvidia-ml.so.1", "count 1\ninit !999\n", -EIO, "does not start");
	refuse("libnvidia-ml.so.1", "count 0\n", -ENOENT, "no GPU");
	refuse("libnvidia-ml.so.1", "count !15\n", -EIO, "fallen off");
	refuse("/lib/x86_64-linux-gnu/libm.so.6", "count 1\n", -EIO, "not NVIDIA's");
}

static int probe(const char *film, struct trouble *ret)
{
	struct env *env = film_text(film);
	int r = gpu_maker_nvidia.probe(env, ret);

	env_free(env);
	return r;
}

static void test_is_there_a_driver(void **state)
{
	struct trouble why = {0};

	(void)state;
	assert_int_equal(probe("file proc/x\n", &why), -ENOENT);
	assert_non_null(strstr(why.reason, "/dev/nvidiactl"));
	assert_int_equal(probe("file dev/nvidiactl\n", &why), 0);
	assert_int_equal(probe("file dev/dxg\n", &why), 0);
	assert_int_equal(probe("file dev/nvidiactl\nerror dev/nvidiactl open EACCES\n", &why), 0);
	assert_int_equal(probe("variable TACHO_NVML=/lib/x.so\n", &why), 0);
	assert_int_equal(probe("variable TACHO_NVML=\n", &why), -ENOENT);
}

/* We are in a container; 10 is the host's number of somebody, 11 is a process of ours that uses the GPU, 12
 * one of ours that does not, 13 one that is not of the job. */
static void test_pids_of_another_namespace(void **state)
{
	static struct maker m;

	(void)state;
	start(&m,
		"clock monotonic 100\nlink proc/self/ns/pid pid:[4026532300]\n"
		"link proc/11/fd/0 /dev/null\nlink proc/11/fd/7 /dev/nvidia0\n"
		"link proc/12/fd/0 /dev/null\nlink proc/13/fd/7 /dev/nvidia0\n",
		"count 1\n" GPU0
		"0.proc 10 1 0 0 0 0\n0.proc 11 1 0 0 0 0\n0.proc 12 1 0 0 0 0\n0.proc 13 1 0 0 0 0\n");
	m.request.nr_members = 2;
	m.request.member[0] = 12;
	m.request.member[1] = 11;
	open_maker(&m);
	assert_int_equal(m.opened, 0);
	read_maker(&m);
	assert_true(process(&m, "nvidia-0", 10)->other_pids);
	assert_false(process(&m, "nvidia-0", 11)->other_pids);
	assert_true(process(&m, "nvidia-0", 12)->other_pids);
	assert_true(process(&m, "nvidia-0", 13)->other_pids);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_values_that_cannot_be),
		cmocka_unit_test(test_only_what_is_asked_is_called),
		cmocka_unit_test(test_an_old_driver),
		cmocka_unit_test(test_layouts_of_processes),
		cmocka_unit_test(test_a_layout_of_tomorrow),
		cmocka_unit_test(test_one_process_in_three_lists),
		cmocka_unit_test(test_lists_that_are_refused),
		cmocka_unit_test(test_more_processes_than_there_is_room_for),
		cmocka_unit_test(test_utilisation_of_processes),
		cmocka_unit_test(test_utilisation_that_is_refused),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_a_gpu_is_lost_and_comes_back),
		cmocka_unit_test(test_one_that_stays_lost_is_tried_less_and_less),
		cmocka_unit_test(test_one_that_was_pulled_costs_nothing),
		cmocka_unit_test(test_a_thousand_short_processes),
		cmocka_unit_test(test_a_gpu_is_pulled_and_another_one_comes),
		cmocka_unit_test(test_the_driver_goes_and_comes),
		cmocka_unit_test(test_reset_in_the_midst_of_a_round),
		cmocka_unit_test(test_a_gpu_that_is_not_ours_to_open),
		cmocka_unit_test(test_reasons_not_to_start),
		cmocka_unit_test(test_is_there_a_driver),
		cmocka_unit_test(test_pids_of_another_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
