/* Writes recordings of machines that a test machine is not, for tests/e2e/test_show_devices.py: one with
 * counters and GPUs whose every value is known, and one of any length (long_recording.h).
 *
 *	query_tool FILE HOST [GPUS]
 *	query_tool long FILE SECONDS HZ PROCESSES [HOST [START_WALL_NS]]
 */
#include "long_recording.h"
#include "query_maker.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static const char flops[] = "flop\0001\0perf.flops\0rate(perf.fp_scalar + 4 * perf.fp_packed)\0Operations.";
static const char broken[] = "flop\0001\0\0rate(perf.fp_scalar\0Broken.";

static void counters(struct maker *m, int64_t i)
{
	maker_set(m, 0, "perf.enabled", i * SECOND);
	maker_set_event(m, "cycles", i * 3000000000, i * SECOND);
	maker_set_event(m, "instructions", i * 6000000000, i * SECOND / 2);
	maker_set_event(m, "fp_scalar", i * 1000000000, i * SECOND);
	maker_set_event(m, "fp_packed", i * 500000000, i * SECOND);
	maker_set_event(m, "task_clock", i * SECOND, i * SECOND);
}

static void gpus(struct maker *m, int64_t i, uint32_t nr)
{
	for (uint32_t k = 0; k < nr; k++) {
		maker_set(m, k, "gpu.util", 20 + 10 * i);
		maker_set(m, k, "gpu.mem_util", 10);
		maker_set(m, k, "gpu.memory.used", GIB + i * 100 * MIB);
		maker_set(m, k, "gpu.memory.total", 40 * GIB);
		maker_set(m, k, "gpu.power", 150000);
		maker_set(m, k, "gpu.energy", 1000000 + i * 150000);
		maker_set(m, k, "gpu.temperature", 60000 + 1000 * i);
	}
	maker_set(m, 0, "gpu_process.memory", 512 * MIB);
	maker_set(m, 0, "gpu_process.util", 25);
}

static int write_long(int argc, char **argv)
{
	struct long_recording r = {.host = argc > 6 ? argv[6] : NULL};
	uint64_t processes = 0, start = 0;
	int e;

	if (argc < 6 || (argc > 7 && !parse_u64(argv[7], &start)) || !parse_u64(argv[3], &r.seconds) ||
		!parse_decimal(argv[4], &r.hz) || !(r.hz > 0) || !parse_u64(argv[5], &processes) ||
		!processes || processes > 100000)
		return 2;
	r.processes = (uint32_t)processes;
	r.start_wall_ns = (int64_t)start;
	e = long_recording_write(argv[2], &r);
	if (e < 0)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-e));
	return e < 0;
}

int main(int argc, char **argv)
{
	uint32_t nr = argc > 3 ? (uint32_t)(argv[3][0] - '0') : 2;
	struct maker m;
	char name[32], index[16];

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "long"))
		return write_long(argc, argv);
	maker_open(&m, argv[1],
		&(struct maker_options){
			.host = argv[2], .forbidden = "perf.cache_misses,perf.cache_references"});
	maker_meta(&m, "derived.perf.flops_dp", flops, sizeof(flops));
	maker_meta(&m, "derived.perf.broken", broken, sizeof(broken));
	maker_join_in(&m, 0, 1, 100, 1, 0, false, "train", 5);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", "counts", "user and kernel", "how", "inherited", NULL);
	for (uint32_t k = 0; k < nr; k++) {
		snprintf(name, sizeof(name), "nvidia-%u", k);
		snprintf(index, sizeof(index), "%u", k);
		maker_instance(&m, MAKER_GPU, k, 0, name, "vendor", "nvidia", "index", index, "model",
			"NVIDIA A100-SXM4-40GB", "uuid", name, "pci", "0000:03:00.0", "job", k ? "no" : "yes",
			"job_by", "CUDA_VISIBLE_DEVICES=0", NULL);
	}
	maker_instance(&m, MAKER_GPU_PROCESS, 0, 0, "nvidia-0/100", "gpu", "nvidia-0", "pid", "100",
		"process", "1", NULL);
	maker_instance(&m, MAKER_SOCKET, 0, 0, "socket-0", "events", "skylake-x (built in)", NULL);
	for (int64_t i = 0; i <= 4; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * 1010 * MILLI);
		set_memory(&m, 0, 25600, 0);
		counters(&m, i);
		gpus(&m, i, nr);
		maker_set(&m, 0, "membw.read", i * GIB);
		maker_set(&m, 0, "membw.write", i * GIB / 2);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "exit_status", INT64_C(0), NULL);
	return 0;
}
