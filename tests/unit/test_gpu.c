/* The collectors of GPUs, over the fake NVML: instances that come, are lost and come back, reasons that are
 * told once, processes that are joined to the job's, and a driver that blocks. */
#include "nvml_lab.h"

#include <pthread.h>

static struct lab *other; /* the other collector, when both are recorded */

static void *find_sibling(struct collect_context *ctx, const char *collector)
{
	(void)ctx;
	return other && !strcmp(other->collector->name, collector) ? other->state : NULL;
}

static void open_one(struct lab *lab, struct env *env, const char *collector)
{
	lab_init(lab, env, collector);
	lab->ctx.sibling = find_sibling;
	assert_int_equal(lab->collector->open(lab->state, &lab->ctx), 0);
}

static struct lab *begin(const char *collector, const char *film, const char *values)
{
	static struct lab lab;

	other = NULL;
	open_one(&lab, nvml_env(film, values), collector);
	assert_int_equal(lab_sample(&lab), 0);
	return &lab;
}

static void end(struct lab *lab)
{
	lab_release(lab);
	nvml_clean(lab->ctx.env);
}

static void test_instances(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES, "count 2\n" GPU0 GPU1 "0.mig 1\n0/2.uuid MIG-x\n");

	(void)state;
	assert_int_equal(nr_instances(lab), 3);
	assert_int_equal(value(lab, "nvidia-1", "gpu.util"), 99);
	assert_int_equal(value(lab, "nvidia-0", "gpu.memory.used"), 1000);
	assert_string_equal(about(lab, "nvidia-0"),
		"vendor=nvidia;index=0;model=NVIDIA FAKE-100;uuid=GPU-00000000-0000-0000;pci=0000:3b:00.0;"
		"job=unclaimed;");
	assert_non_null(strstr(about(lab, "nvidia-0/mig-2"), "uuid=MIG-x;"));
	assert_non_null(strstr(about(lab, "nvidia-0/mig-2"), "apart="));
	assert_int_equal(value(lab, "nvidia-0/mig-2", "gpu.util"), INVALID);
	assert_int_equal(value(lab, "nvidia-0", "gpu.util"), INVALID);
	end(lab);
}

static void test_whose_they_are(void **state)
{
	struct lab *lab =
		begin("gpu", "variable CUDA_VISIBLE_DEVICES=1\n" NVIDIA_FILM, "count 2\n" GPU0 GPU1);

	(void)state;
	assert_non_null(strstr(about(lab, "nvidia-0"), "job=no;job_by=CUDA_VISIBLE_DEVICES"));
	assert_non_null(strstr(about(lab, "nvidia-1"), "job=yes;job_by=CUDA_VISIBLE_DEVICES"));
	end(lab);
}

static void test_rows_that_change_slowly(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES, "count 1\n" GPU0 "0.fan 30\n0.power 5\n");

	(void)state;
	assert_int_equal(value(lab, "nvidia-0", "gpu.fan"), 30);
	/* Not looked at: it stays. */
	set_values("count 1\n" GPU0 "0.power !999\n");
	lab->ctx.medium = false;
	turn(lab, 1);
	assert_int_equal(value(lab, "nvidia-0", "gpu.fan"), 30);
	assert_int_equal(value(lab, "nvidia-0", "gpu.power"), INVALID);
	assert_int_equal(value(lab, "nvidia-0", "gpu.util"), 37);
	/* Looked at, and not there. */
	lab->ctx.medium = true;
	turn(lab, 2);
	assert_int_equal(value(lab, "nvidia-0", "gpu.fan"), INVALID);
	end(lab);
}

static void test_reasons_are_told_once(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES, "count 2\n" GPU0 GPU1 "0.power !4\n1.power 3\n");
	unsigned told = lab->whys;

	(void)state;
	assert_int_equal(availability(lab, "gpu.fan"), ABSENT);
	assert_int_equal(availability(lab, "gpu.power"), FORBIDDEN);
	assert_int_equal(availability(lab, "gpu.gtt.used"), ABSENT);
	assert_int_equal(availability(lab, "gpu.util"), AVAILABLE);
	turn(lab, 1);
	turn(lab, 2);
	assert_int_equal(lab->whys, told);
	end(lab);
}

static void test_what_is_not_recorded_is_not_asked(void **state)
{
	static struct lab lab;

	(void)state;
	other = NULL;
	lab_init(&lab, nvml_env(NVIDIA_FILM FRAMES, "count 1\n" GPU0 "0.pcie_tx 1\n"), "gpu");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "gpu.memory.used")] = 0;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "nvidia-0", "gpu.memory.used"), 1000);
	assert_int_equal(calls_made("nvmlDeviceGetMemoryInfo_v2"), 1);
	assert_int_equal(calls_made("nvmlDeviceGetUtilizationRates"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetPcieThroughput"), 0);
	assert_int_equal(calls_made("nvmlDeviceGetComputeRunningProcesses_v2"), 0);
	assert_int_equal(lab.whys, 0);
	end(&lab);
}

static void test_lost_and_back(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES, "count 2\n" GPU0 GPU1);
	uint32_t id = lab->table.id[row_of(lab, "nvidia-1")];
	unsigned told;

	(void)state;
	set_values("count 2\n" GPU0 "1.handle !15\n1.util !15\n1.mem_total !15\n");
	turn(lab, 1);
	assert_int_equal(value(lab, "nvidia-1", "gpu.util"), INVALID);
	assert_int_equal(value(lab, "nvidia-1", "gpu.memory.total"), INVALID);
	assert_int_equal(value(lab, "nvidia-0", "gpu.util"), 37);
	assert_int_equal(availability(lab, "gpu.util"), FAILED);
	assert_non_null(strstr(lab->why, "nvidia-1: it has fallen off the bus"));
	told = lab->whys;
	turn(lab, 2);
	assert_int_equal(lab->whys, told);
	/* The same piece of hardware goes on in its row. */
	set_values("count 2\n" GPU0 GPU1);
	turn(lab, 3);
	assert_int_equal(value(lab, "nvidia-1", "gpu.util"), 99);
	assert_int_equal(lab->table.id[row_of(lab, "nvidia-1")], id);
	assert_int_equal(nr_instances(lab), 2);
	/* The second time it is news again. */
	set_values("count 2\n" GPU0 "1.handle !15\n1.util !15\n1.mem_total !15\n");
	turn(lab, 4);
	assert_int_equal(value(lab, "nvidia-1", "gpu.util"), INVALID);
	assert_true(lab->whys > told);
	end(lab);
}

static void test_slices_that_change(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES,
		"count 1\n" GPU0 "0.mig 1\n0/0.uuid MIG-a\n"
		"0/0.mem_total 9\n0/0.mem_used 3\n");
	uint32_t id = lab->table.id[row_of(lab, "nvidia-0/mig-0")];

	(void)state;
	assert_int_equal(value(lab, "nvidia-0/mig-0", "gpu.memory.used"), 3);
	/* Gone: it keeps its row, without values. */
	set_values("count 1\n" GPU0 "0.mig 1\n");
	turn(lab, 1);
	assert_int_equal(value(lab, "nvidia-0/mig-0", "gpu.memory.used"), INVALID);
	assert_non_null(strstr(lab->why, "nvidia-0/mig-0: it is not there any more"));
	/* Another one in its place is another instance. */
	set_values("count 1\n" GPU0 "0.mig 1\n0/0.uuid MIG-b\n0/0.mem_total 9\n0/0.mem_used 4\n");
	turn(lab, 2);
	assert_int_equal(value(lab, "nvidia-0/mig-0", "gpu.memory.used"), 4);
	assert_int_not_equal(lab->table.id[row_of(lab, "nvidia-0/mig-0")], id);
	assert_non_null(strstr(about(lab, "nvidia-0/mig-0"), "uuid=MIG-b;"));
	assert_int_equal(nr_instances(lab), 2);
	end(lab);
}

static void test_a_driver_that_does_not_start(void **state)
{
	struct lab *lab = begin("gpu", NVIDIA_FILM FRAMES, "count 1\ninit !18\n");
	unsigned told = lab->whys;

	(void)state;
	assert_int_equal(nr_instances(lab), 0);
	assert_int_equal(told, NR_GPU_ROWS);
	assert_int_equal(availability(lab, "gpu.util"), FAILED);
	assert_non_null(strstr(lab->why, "different versions"));
	assert_non_null(strstr(lab->remedy, "reboot"));
	turn(lab, 1);
	assert_int_equal(lab->whys, told);
	assert_int_equal(calls_made("nvmlInit_v2"), 1); /* it is not asked again */
	end(lab);
}

static void test_no_gpu(void **state)
{
	struct env *env = film_text("file proc/x\n");
	const struct collector *c = collector_find("gpu");
	struct trouble why = {0};

	(void)state;
	assert_int_equal(c->probe(env, &why), -ENOENT);
	assert_non_null(strstr(why.reason, "no GPU: no NVIDIA driver"));
	assert_non_null(strstr(why.reason, "AMD"));
	assert_int_equal(collector_find("gpu_process")->probe(env, &why), -ENOENT);
	env_free(env);
}

/* ---- processes ---- */

#define PROCESSES             \
	"count 2\n" GPU0 GPU1 \
	"0.proc 10 100 30 5 0 0\n0.proc 11 200 0 0 0 0\n0.proc 99 700 9 9 0 0\n1.proc 10 50 0 0 0 0\n"

static struct lab *begin_processes(const char *film, const char *values)
{
	static struct lab lab;

	other = NULL;
	lab_init(&lab, nvml_env(film, values), "gpu_process");
	lab.member[0] = 11;
	lab.member[1] = 10;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	return &lab;
}

static void test_processes_of_the_job(void **state)
{
	struct lab *lab = begin_processes(NVIDIA_FILM FRAMES, PROCESSES);
	unsigned told;

	(void)state;
	assert_int_equal(nr_instances(lab), 3);
	assert_int_equal(value(lab, "nvidia-0/10", "gpu_process.memory"), 100);
	assert_int_equal(value(lab, "nvidia-0/11", "gpu_process.memory"), 200);
	assert_int_equal(value(lab, "nvidia-1/10", "gpu_process.memory"), 50);
	assert_string_equal(about(lab, "nvidia-0/10"), "gpu=nvidia-0;pid=10;process=2;");
	assert_string_equal(about(lab, "nvidia-0/11"), "gpu=nvidia-0;pid=11;process=1;");
	assert_int_equal(value(lab, "nvidia-0/10", "gpu_process.busy"), INVALID);
	turn(lab, 1);
	assert_int_equal(value(lab, "nvidia-0/10", "gpu_process.util"), 30);
	assert_int_equal(value(lab, "nvidia-0/10", "gpu_process.mem_util"), 5);
	told = lab->whys;
	/* One leaves the GPU, the other leaves the job. */
	set_values("count 2\n" GPU0 GPU1 "0.proc 11 200 0 0 0 0\n1.proc 10 60 0 0 0 0\n");
	turn(lab, 2);
	assert_int_equal(nr_instances(lab), 2);
	assert_int_equal(value(lab, "nvidia-1/10", "gpu_process.memory"), 60);
	lab->member[0] = 12;
	turn(lab, 3);
	assert_int_equal(nr_instances(lab), 1);
	assert_int_equal(row_of(lab, "nvidia-0/11"), -1);
	assert_int_equal(lab->whys, told);
	end(lab);
}

static void test_a_pid_that_is_used_again(void **state)
{
	struct lab *lab = begin_processes(NVIDIA_FILM FRAMES, "count 1\n" GPU0 "0.proc 10 100 0 0 0 0\n");
	uint32_t id = lab->table.id[row_of(lab, "nvidia-0/10")];

	(void)state;
	assert_string_equal(about(lab, "nvidia-0/10"), "gpu=nvidia-0;pid=10;process=2;");
	lab->member[0] = 10; /* another process of that number: the first of the list is 1 */
	lab->member[1] = 0;
	turn(lab, 1);
	assert_int_equal(nr_instances(lab), 1);
	assert_string_equal(about(lab, "nvidia-0/10"), "gpu=nvidia-0;pid=10;process=1;");
	assert_int_not_equal(lab->table.id[row_of(lab, "nvidia-0/10")], id);
	end(lab);
}

#define CONTAINER "clock monotonic 100\nfile dev/nvidiactl\nlink proc/self/ns/pid pid:[4026532300]\n"

static void test_a_container_whose_gpu_is_the_jobs(void **state)
{
	struct lab *lab = begin_processes("variable CUDA_VISIBLE_DEVICES=0\n" CONTAINER FRAMES, PROCESSES);

	(void)state;
	/* All on the job's own device, nobody on the other, although 10 is a number of the job's, too. */
	assert_int_equal(nr_instances(lab), 3);
	assert_int_equal(value(lab, "nvidia-0/99", "gpu_process.memory"), 700);
	assert_int_equal(row_of(lab, "nvidia-1/10"), -1);
	assert_null(strstr(about(lab, "nvidia-0/10"), "process="));
	assert_non_null(strstr(about(lab, "nvidia-0/10"), "assumed="));
	assert_non_null(strstr(about(lab, "nvidia-0/10"), "CUDA_VISIBLE_DEVICES"));
	end(lab);
}

static void test_a_container_whose_gpu_is_anybodys(void **state)
{
	struct lab *lab = begin_processes(CONTAINER FRAMES, PROCESSES);

	(void)state;
	assert_int_equal(nr_instances(lab), 0);
	assert_int_equal(availability(lab, "gpu_process.memory"), FAILED);
	end(lab);
}

/* Both together: one source, one round a turn. */
static void test_both_share_a_source(void **state)
{
	static struct lab gpu, processes;
	struct env *env = nvml_env(NVIDIA_FILM FRAMES, PROCESSES);

	(void)state;
	other = NULL;
	open_one(&gpu, env, "gpu");
	other = &gpu;
	lab_init(&processes, env, "gpu_process");
	processes.ctx.sibling = gpu.ctx.sibling = find_sibling;
	processes.member[0] = gpu.member[0] = 10;
	assert_int_equal(processes.collector->open(processes.state, &processes.ctx), 0);
	for (int i = 0; i < 2; i++) {
		unlink(nvml_log_path);
		assert_int_equal(lab_sample(&gpu), 0);
		assert_int_equal(lab_sample(&processes), 0);
		assert_int_equal(calls_made("nvmlDeviceGetUtilizationRates"), 2);
		assert_int_equal(calls_made("nvmlDeviceGetComputeRunningProcesses_v2"), 2);
		assert_int_equal(env_sleep_until(env, (101 + i) * NSEC_PER_SEC), 0);
	}
	assert_int_equal(value(&gpu, "nvidia-0", "gpu.util"), 37);
	assert_int_equal(value(&processes, "nvidia-0/10", "gpu_process.util"), 30);
	assert_int_equal(calls_made("nvmlShutdown"), 0);
	lab_release(&gpu);
	assert_int_equal(calls_made("nvmlShutdown"), 0);
	lab_release(&processes);
	assert_int_equal(calls_made("nvmlShutdown"), 1);
	nvml_clean(env);
}

/* ---- on a live machine ---- */

/* The clock of this test's live env, which the thread reads too. */
static int64_t live_ns;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t pass(int64_t ns)
{
	int64_t now;

	pthread_mutex_lock(&live_lock);
	now = live_ns += ns;
	pthread_mutex_unlock(&live_lock);
	return now;
}

static int64_t own_clock(struct env *env, enum env_clock clock)
{
	(void)env;
	(void)clock;
	return pass(0);
}

/* The probe finds the fake, whatever is the case here. */
static const char *fake_variable(struct env *env, const char *name)
{
	(void)env;
	return strcmp(name, "TACHO_NVML") ? getenv(name) : "libnvidia-ml.so.1";
}

static struct env *live_env(const char *values)
{
	struct env *film = nvml_env("file x\n", values), *env = env_live(NULL);

	env_free(film);
	assert_non_null(env);
	nvml_ops = *env->ops;
	nvml_ops.library = open_fake;
	nvml_ops.now = own_clock;
	nvml_ops.getenv = fake_variable;
	env->ops = &nvml_ops;
	pass(100 * NSEC_PER_SEC);
	return env;
}

static void sample_until(struct lab *lab, const char *instance, const char *metric, int64_t want)
{
	while (row_of(lab, instance) < 0 || value(lab, instance, metric) != want) {
		pass(200 * NSEC_PER_MSEC);
		assert_int_equal(lab_sample(lab), 0);
		usleep(2000);
	}
}

static void test_a_thread_reads(void **state)
{
	static struct lab lab;
	struct env *env = live_env("count 1\n" GPU0);

	(void)state;
	other = NULL;
	open_one(&lab, env, "gpu");
	sample_until(&lab, "nvidia-0", "gpu.util", 37);
	set_values("count 1\n" GPU1 "0.util 55\n0.memutil 1\n0.uuid GPU-00000000-0000-0000\n");
	sample_until(&lab, "nvidia-0", "gpu.util", 55);
	lab_release(&lab);
	assert_int_equal(calls_made("nvmlShutdown"), 1);
	nvml_clean(env);
}

static void test_a_wish_made_while_the_driver_works_is_kept(void **state)
{
	static struct lab lab;
	struct env *env = live_env("count 1\n" GPU0 "0.fan 30\n0.power 5 ~500:5 6\n");

	(void)state;
	other = NULL;
	open_one(&lab, env, "gpu");
	lab.ctx.medium = false;
	/* The first round reads everything unasked. */
	sample_until(&lab, "nvidia-0", "gpu.fan", 30);
	while (calls_made("nvmlDeviceGetPowerUsage") < 2) {
		pass(200 * NSEC_PER_MSEC);
		assert_int_equal(lab_sample(&lab), 0);
		usleep(2000);
	}
	set_values("count 1\n" GPU0 "0.fan 31\n0.power 5 ~500:5 6\n");
	lab.ctx.medium = true;
	assert_int_equal(lab_sample(&lab), 0);
	lab.ctx.medium = false;
	sample_until(&lab, "nvidia-0", "gpu.fan", 31);
	end(&lab);
}

static void test_a_driver_that_blocks(void **state)
{
	static struct lab lab;
	struct env *env = live_env("count 1\n" GPU0 "0.power 5 ~100000000:5\n");

	(void)state;
	other = NULL;
	open_one(&lab, env, "gpu");
	sample_until(&lab, "nvidia-0", "gpu.power", 5);
	/* From the second round on it sleeps for a day; the ticks do not. */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "nvidia-0", "gpu.util"), 37);
	while (calls_made("nvmlDeviceGetPowerUsage") < 2) {
		pass(100 * NSEC_PER_MSEC);
		assert_int_equal(lab_sample(&lab), 0);
		usleep(2000);
	}
	/* What is old does not pass for new. */
	for (int i = 0; i < 12; i++) {
		pass(NSEC_PER_SEC);
		assert_int_equal(lab_sample(&lab), 0);
	}
	assert_int_equal(value(&lab, "nvidia-0", "gpu.util"), INVALID);
	assert_non_null(strstr(lab.why, "nvidia: the driver has not answered for "));
	assert_int_equal(availability(&lab, "gpu.util"), FAILED);
	/* Closing gives up on it; what the thread has is left to it, the env included. */
	lab_release(&lab);
	unlink(nvml_path);
	unlink(nvml_log_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_whose_they_are),
		cmocka_unit_test(test_rows_that_change_slowly),
		cmocka_unit_test(test_reasons_are_told_once),
		cmocka_unit_test(test_what_is_not_recorded_is_not_asked),
		cmocka_unit_test(test_lost_and_back),
		cmocka_unit_test(test_slices_that_change),
		cmocka_unit_test(test_a_driver_that_does_not_start),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_processes_of_the_job),
		cmocka_unit_test(test_a_pid_that_is_used_again),
		cmocka_unit_test(test_a_container_whose_gpu_is_the_jobs),
		cmocka_unit_test(test_a_container_whose_gpu_is_anybodys),
		cmocka_unit_test(test_both_share_a_source),
		cmocka_unit_test(test_a_thread_reads),
		cmocka_unit_test(test_a_wish_made_while_the_driver_works_is_kept),
		cmocka_unit_test(test_a_driver_that_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
