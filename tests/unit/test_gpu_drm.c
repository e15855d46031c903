/* Processes on GPUs by DRM's fdinfo and by KFD: old and new kernels, clients that are shared, end, or are
 * taken over, and whom we may not look at. */
#include "collect/gpu_drm.h"
#include "maker_lab.h"

static struct maker_lab lab;
static const pid_t job[] = {1000, 1001, 0};

static bool parse(const char *text, struct drm_info *ret)
{
	return drm_parse(text, strlen(text), ret);
}

static void test_keys_of_amdgpu(void **state)
{
	struct drm_info info;

	(void)state;
	/* Linux 6.1 */
	assert_true(
		parse("pos:\t0\nflags:\t02\npasid:\t32770\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:43:00.0\n"
		      "drm-client-id:\t77\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1024 KiB\n"
		      "amd-memory-visible-vram:\t9 KiB\ndrm-engine-gfx:\t10 ns\ndrm-engine-compute:\t5 ns\n"
		      "drm-engine-dma:\t3 ns\ndrm-engine-enc_1:\t2 ns\ndrm-engine-dec:\t1 ns\n",
			&info));
	assert_string_equal(info.driver, "amdgpu");
	assert_string_equal(info.pdev, "0000:43:00.0");
	assert_int_equal(info.client, 77);
	assert_int_equal(info.memory, 2 << 20);
	assert_int_equal(info.time_ns[DRM_BUSY], 15);
	assert_int_equal(info.time_ns[DRM_COPY], 3);
	assert_int_equal(info.time_ns[DRM_VIDEO], 3);
	assert_false(info.has_cycles);
	/* Linux 5.15: names no driver, no client and no times. */
	assert_true(parse("pdev:\t0000:0b:00.0\npasid:\t32772\nvram mem:\t2048 kB\ngfx0:\t12.5%\n", &info));
	assert_string_equal(info.driver, "amdgpu");
	assert_int_equal(info.client, 32772);
	assert_int_equal(info.memory, 2 << 20);
	assert_false(info.has_time);
	/* Newer: resident memory is what counts, whatever the order; engines that were not used are not told.
	 */
	assert_true(parse("drm-memory-vram:\t5 KiB\ndrm-total-vram:\t9 MiB\ndrm-resident-vram:\t7 KiB\n"
			  "drm-client-id:\t1\ndrm-driver:\tamdgpu\n",
		&info));
	assert_int_equal(info.memory, 7 << 10);
	assert_true(info.has_time);
	assert_int_equal(info.time_ns[DRM_BUSY], 0);
}

static void test_keys_of_intel(void **state)
{
	struct drm_info info;

	(void)state;
	/* i915 of Linux 5.19: times and no memory. */
	assert_true(parse(
		"drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t7\n"
		"drm-engine-render:\t9288864723 ns\ndrm-engine-copy:\t2035071108 ns\n"
		"drm-engine-video:\t10 ns\ndrm-engine-capacity-video:\t2\ndrm-engine-video-enhance:\t5 ns\n",
		&info));
	assert_false(info.has_memory);
	assert_int_equal(info.time_ns[DRM_BUSY], 9288864723);
	assert_int_equal(info.time_ns[DRM_COPY], 2035071108);
	assert_int_equal(info.time_ns[DRM_VIDEO], 15);
	/* A discrete one with two memories. */
	assert_true(parse("drm-driver:\ti915\ndrm-total-local0:\t8 MiB\ndrm-resident-local0:\t4 MiB\n"
			  "drm-resident-local1:\t1 MiB\ndrm-resident-system0:\t99 MiB\n",
		&info));
	assert_int_equal(info.memory, 5 << 20);
	assert_false(info.has_time);
	/* xe */
	assert_true(parse("drm-driver:\txe\ndrm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\n"
			  "drm-cycles-bcs:\t1\ndrm-total-cycles-bcs:\t2\ndrm-total-vram0:\t3 MiB\n",
		&info));
	assert_true(info.has_cycles);
	assert_int_equal(info.cycles[0], 28257900);
	assert_int_equal(info.total[0], 7655183225);
	assert_int_equal(info.memory, 3 << 20);
}

static void test_text_that_is_odd(void **state)
{
	static const char *const odd[] = {"", "\n\n", ":", "drm-driver:", "drm-driver", "pos:\t0\n",
		"drm-driver: a-name-that-is-longer-than-any\n", "vram mem:\t12 kB\n",
		"drm-pdev:\t0000:00:02.0\n"};
	struct drm_info info;
	const char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_false(parse(odd[i], &info));
	assert_true(
		parse("drm-driver:\ti915\ndrm-memory-vram:\t99999999999999999999 KiB\n"
		      "drm-resident-vram:\t-5 KiB\ndrm-total-vram0:\t1 parsec\ndrm-engine-render:\t-1 ns\n"
		      "drm-engine-gfx:\tnone\ndrm-client-id:\tx\ndrm-memory-vram",
			&info));
	assert_false(info.has_memory);
	assert_false(info.has_time);
	assert_false(info.has_client);
	/* Any beginning of a good text is taken. */
	text = "drm-driver:\tamdgpu\ndrm-client-id:\t5\ndrm-memory-vram:\t2048 KiB\ndrm-engine-gfx:\t10 ns\n";
	for (size_t len = 0; len <= strlen(text); len++) {
		char *cut = malloc(len ? len : 1);

		assert_non_null(cut);
		memcpy(cut, text, len);
		drm_parse(cut, len, &info);
		free(cut);
	}
}

static void test_a_client_is_counted_once(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("machines", "gpu-amd"), job);
	/* Two descriptors of it in one process, one in its child; KFD tells of more than fdinfo. */
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 4294967296);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 1005000000);
	/* Copies by both kinds of queues. */
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_COPY), 7000000 + 2000000);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_VIDEO), 300);
	/* 26 of 104 compute units. */
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_UTIL), 25);
	assert_null(process_find(&lab, "amd-0", 1001));
	assert_int_equal(process_value(&lab, "amd-1", 1001, GPU_PROCESS_MEMORY), 8589934592);
	assert_int_equal(process_value(&lab, "amd-1", 1001, GPU_PROCESS_UTIL), 100);
	/* It computes, and nobody times it: a zero would be a lie. */
	assert_int_equal(process_value(&lab, "amd-1", 1001, GPU_PROCESS_BUSY), INVALID);
	assert_int_equal(lab.reading.process_why[GPU_PROCESS_BUSY].availability, ABSENT);
	/* Somebody else's process is counted and not told. */
	assert_int_equal(lab.reading.nr_processes, 2);
	assert_int_equal(device_value(&lab, "amd-1", GPU_PROCESSES), 2);
	assert_int_equal(device_value(&lab, "amd-0", GPU_PROCESSES), 1);
	assert_false(lab.reading.process[0].other_pids);
	maker_close(&lab);
}

static void test_a_client_is_taken_over(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("films", "gpu-amd"), job);
	maker_turn(&lab, 1, false);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 1505000000);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 6442450944);
	maker_turn(&lab, 2, true);
	/* 1000 has ended, and the child goes on: it has used what came after. */
	lab.request.nr_members = 1;
	lab.request.member[0] = 1001;
	maker_turn(&lab, 5, false);
	assert_null(process_find(&lab, "amd-0", 1000));
	assert_int_equal(process_value(&lab, "amd-0", 1001, GPU_PROCESS_BUSY), 200000000);
	assert_int_equal(process_value(&lab, "amd-0", 1001, GPU_PROCESS_MEMORY), 1024000 << 10);
	maker_turn(&lab, 6, false);
	assert_int_equal(process_value(&lab, "amd-0", 1001, GPU_PROCESS_BUSY), 400000000);
	maker_close(&lab);
}

static void test_cycles_become_time(void **state)
{
	(void)state;
	maker_open(&lab, "intel", film_of("films", "gpu-intel"), job);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_BUSY), 0);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_MEMORY), INT64_C(300) << 20);
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_BUSY), 3000000);
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_VIDEO), 4000050);
	/* Its memory is the host's. */
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_MEMORY), INVALID);
	maker_turn(&lab, 1, false);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_BUSY), NSEC_PER_SEC / 2);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_COPY), NSEC_PER_SEC / 4);
	/* Less than before: the larger one stays. */
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_BUSY), 3000000);
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_VIDEO), 5000050);
	maker_turn(&lab, 2, false);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_BUSY), NSEC_PER_SEC / 2);
	maker_turn(&lab, 3, false);
	assert_int_equal(
		process_value(&lab, "intel-1", 1000, GPU_PROCESS_BUSY), NSEC_PER_SEC / 2 + NSEC_PER_SEC / 10);
	/* Nothing has passed. */
	maker_turn(&lab, 4, false);
	assert_int_equal(
		process_value(&lab, "intel-1", 1000, GPU_PROCESS_BUSY), NSEC_PER_SEC / 2 + NSEC_PER_SEC / 10);
	assert_int_equal(process_value(&lab, "intel-1", 1000, GPU_PROCESS_COPY), NSEC_PER_SEC * 3 / 4);
	maker_close(&lab);
}

static void test_an_old_kernel_and_other_drivers(void **state)
{
	static const pid_t render[] = {1000, 0};

	(void)state;
	maker_open(&lab, "amd", film_of("machines", "gpu-mixed"), render);
	assert_int_equal(lab.reading.nr_processes, 1);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 2 << 20);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), INVALID);
	assert_non_null(strstr(lab.reading.process_why[GPU_PROCESS_BUSY].reason, "5.19"));
	maker_close(&lab);
	maker_open(&lab, "intel", film_of("machines", "gpu-mixed"), render);
	assert_int_equal(lab.reading.nr_processes, 1);
	assert_int_equal(process_value(&lab, "intel-0", 1000, GPU_PROCESS_BUSY), 1000);
	maker_close(&lab);
}

#define CARD "sys/class/drm/card0/device/"
#define ONE_CARD                                                                            \
	"clock monotonic 100\nfile " CARD "vendor\n|0x1002\nfile " CARD "device\n|0x73bf\n" \
	"file " CARD "uevent\n|PCI_SLOT_NAME=0000:0a:00.0\n"
#define CLIENT(pid, fd, id, kib, ns)                                                                         \
	"link proc/" pid "/fd/" fd " /dev/dri/renderD128\nfile proc/" pid "/fdinfo/" fd                      \
	"\n|drm-driver:\tamdgpu\n|drm-pdev:\t0000:0a:00.0\n|drm-client-id:\t" id "\n|drm-memory-vram:\t" kib \
	" KiB\n|drm-engine-compute:\t" ns " ns\n"

/* Descriptors of another user. */
static void test_whom_we_may_not_look_at(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD "error proc/1000/fd open EACCES\nerror proc/1000/fd list EACCES\n" CLIENT(
			"1001", "3", "5", "10", "7")),
		job);
	assert_int_equal(lab.reading.nr_processes, 1);
	assert_int_equal(process_value(&lab, "amd-0", 1001, GPU_PROCESS_MEMORY), 10240);
	assert_null(lab.reading.process_why[GPU_PROCESS_MEMORY].reason);
	maker_close(&lab);
	maker_open(&lab, "amd", film_text(ONE_CARD "error proc/1000/fd open EACCES\n"), job);
	assert_int_equal(lab.reading.process_why[GPU_PROCESS_MEMORY].availability, FORBIDDEN);
	assert_non_null(lab.reading.process_why[GPU_PROCESS_MEMORY].remedy);
	maker_close(&lab);
	maker_open(&lab, "amd",
		film_text(ONE_CARD "dir proc/1000/fd 1\nlink proc/1000/fd/3 /dev/dri/card0\n"
				   "error proc/1000/fdinfo/3 open EACCES\n"),
		job);
	assert_int_equal(lab.reading.process_why[GPU_PROCESS_BUSY].availability, FORBIDDEN);
	maker_close(&lab);
}

/* What a closed client used stays; another in its place is another. */
static void test_clients_that_end(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD "dir proc/1000/fd 2\n" CLIENT("1000", "3", "5", "10", "700") CLIENT(
			"1000", "4", "6", "20", "50") "frame 1\n" CLIENT("1000", "3", "9", "1",
			"40") "frame 2\n"
			      "remove proc/1000/fd/4\nremove proc/1000/fdinfo/4\n"
			      "frame 3\nremove proc/1000/fd/3\nremove proc/1000/fdinfo/3\n"
			      "frame 4\ndir proc/1000/fd 1\n" CLIENT("1000", "3", "12", "2", "3")),
		job);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 750);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 30 << 10);
	maker_turn(&lab, 1, false);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 790);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 21 << 10);
	maker_turn(&lab, 2, false);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 790);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 1 << 10);
	maker_turn(&lab, 3, false);
	assert_null(process_find(&lab, "amd-0", 1000));
	maker_turn(&lab, 4, true);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 793);
	maker_close(&lab);
}

/* The device file is opened when the process has run for a while: without a change of its number of
 * descriptors it is found in the end, with one in the next round that looks. */
static void test_a_file_opened_late(void **state)
{
	struct buf film;

	(void)state;
	buf_init(&film, 1 << 16);
	buf_adds(&film, ONE_CARD "dir proc/1000/fd 2\nlink proc/1000/fd/0 /dev/null\n");
	for (int i = 1; i <= 15; i++)
		buf_addf(&film, "frame %d\n", i);
	buf_adds(&film,
		"frame 16\ndir proc/1000/fd 3\n" CLIENT(
			"1000", "3", "5", "10", "700") "frame 17\nframe 18\n");
	maker_open(&lab, "amd", film_buf(&film), job);
	for (int i = 1; i <= 16; i++)
		maker_turn(&lab, i, false);
	assert_int_equal(lab.reading.nr_processes, 0);
	maker_turn(&lab, 17, true);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 700);
	maker_close(&lab);
	/* The kernel does not count descriptors: all are listed. */
	maker_open(&lab, "amd",
		film_text(ONE_CARD
			"link proc/1000/fd/0 /dev/null\nframe 1\n" CLIENT("1000", "3", "5", "10", "700")),
		job);
	maker_turn(&lab, 1, false);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_BUSY), 700);
	maker_close(&lab);
}

/* One that has left the job is not told any more although its files can be read. */
static void test_a_process_that_leaves_the_job(void **state)
{
	(void)state;
	maker_open(&lab, "amd", film_of("machines", "gpu-amd"), job);
	assert_non_null(process_find(&lab, "amd-0", 1000));
	lab.request.nr_members = 0;
	maker_round(&lab, false);
	assert_int_equal(lab.reading.nr_processes, 0);
	maker_close(&lab);
}

/* In a container KFD's PIDs are the host's. */
static void test_pids_of_the_host(void **state)
{
#define KFD_ONE                                                                                            \
	"link proc/self/ns/pid pid:[4026532999]\nfile sys/class/kfd/kfd/topology/nodes/1/gpu_id\n|77\n"    \
	"file sys/class/kfd/kfd/topology/nodes/1/properties\n|simd_count 8\n|simd_per_cu 4\n|location_id " \
	"2560\n"                                                                                           \
	"file sys/class/kfd/kfd/proc/99000/vram_77\n|4096\n"
	(void)state;
	maker_open(&lab, "amd", film_text(ONE_CARD KFD_ONE), job);
	assert_int_equal(process_value(&lab, "amd-0", 99000, GPU_PROCESS_MEMORY), 4096);
	assert_true(lab.reading.process[0].other_pids);
	maker_close(&lab);
	/* The device files of our own processes tell of them: KFD would count them twice. */
	maker_open(&lab, "amd", film_text(ONE_CARD KFD_ONE CLIENT("1000", "3", "5", "4", "7")), job);
	assert_int_equal(lab.reading.nr_processes, 1);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 4096);
	assert_false(lab.reading.process[0].other_pids);
	maker_close(&lab);
}

/* Partitions of one card are nodes of their own: they are added. */
static void test_partitions(void **state)
{
	(void)state;
	maker_open(&lab, "amd",
		film_text(ONE_CARD
			"file sys/class/kfd/kfd/topology/nodes/1/gpu_id\n|77\n"
			"file sys/class/kfd/kfd/topology/nodes/1/properties\n|simd_count 40\n|simd_per_cu 4\n"
			"|location_id 2560\nfile sys/class/kfd/kfd/topology/nodes/2/gpu_id\n|78\n"
			"file sys/class/kfd/kfd/topology/nodes/2/properties\n|simd_count 40\n|simd_per_cu 4\n"
			"|location_id 2560\nfile sys/class/kfd/kfd/proc/1000/vram_77\n|4096\n"
			"file sys/class/kfd/kfd/proc/1000/vram_78\n|1024\n"
			"file sys/class/kfd/kfd/proc/1000/sdma_77\n|30\nfile "
			"sys/class/kfd/kfd/proc/1000/sdma_78\n|4\n"
			"file sys/class/kfd/kfd/proc/1000/stats_77/cu_occupancy\n|5\n"
			"file sys/class/kfd/kfd/proc/1000/stats_78/cu_occupancy\n|10\n"
			"file " CARD "current_compute_partition\n|CPX\n"),
		job);
	assert_int_equal(lab.reading.nr_processes, 1);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), 5120);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_UTIL), 75);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_COPY), 34000);
	assert_string_equal(device_of(&lab, "amd-0")->model, "AMD GPU 1002:73bf (CPX)");
	maker_close(&lab);
}

/* More device files than there is room for: the first are told, and why there are no more. */
static void test_too_many(void **state)
{
	struct buf film;

	(void)state;
	buf_init(&film, 1 << 20);
	buf_adds(&film, ONE_CARD "dir proc/1000/fd 300\n");
	for (int i = 0; i < 300; i++)
		buf_addf(&film,
			"link proc/1000/fd/%d /dev/dri/renderD128\nfile "
			"proc/1000/fdinfo/%d\n|drm-driver:\tamdgpu\n"
			"|drm-pdev:\t0000:0a:00.0\n|drm-client-id:\t%d\n|drm-memory-vram:\t1 KiB\n",
			i, i, i + 1);
	maker_open(&lab, "amd", film_buf(&film), job);
	assert_int_equal(process_value(&lab, "amd-0", 1000, GPU_PROCESS_MEMORY), DRM_CLIENTS_MAX << 10);
	assert_int_equal(lab.reading.process_why[GPU_PROCESS_MEMORY].availability, FAILED);
	maker_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_amdgpu),
		cmocka_unit_test(test_keys_of_intel),
		cmocka_unit_test(test_text_that_is_odd),
		cmocka_unit_test(test_a_client_is_counted_once),
		cmocka_unit_test(test_a_client_is_taken_over),
		cmocka_unit_test(test_cycles_become_time),
		cmocka_unit_test(test_an_old_kernel_and_other_drivers),
		cmocka_unit_test(test_whom_we_may_not_look_at),
		cmocka_unit_test(test_clients_that_end),
		cmocka_unit_test(test_a_file_opened_late),
		cmocka_unit_test(test_a_process_that_leaves_the_job),
		cmocka_unit_test(test_pids_of_the_host),
		cmocka_unit_test(test_partitions),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
