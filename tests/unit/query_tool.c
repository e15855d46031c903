/* Writes recordings of machines that a test machine is not, for tests/e2e/test_show_devices.py: one with
 * counters and GPUs whose every value is known, and one of any length (long_recording.h).
 *
 *	query_tool FILE HOST [GPUS]
 *	query_tool long FILE SECONDS HZ PROCESSES [HOST [START_WALL_NS [GROUP GROUP]]]
 *	query_tool node FILE HOST [KEY=VALUE...]	a node of a run of many: see node_key[]
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
	for (int i = 0; i < 2 && argc > 9; i++)
		r.group[i] = argv[8 + i];
	r.processes = (uint32_t)processes;
	r.start_wall_ns = (int64_t)start;
	e = long_recording_write(argv[2], &r);
	if (e < 0)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-e));
	return e < 0;
}

/* ---- a node of a run of many ---- */

enum node_value {
	SECONDS,
	CORES,
	UNTIL,
	MEMORY,
	CPUS,
	GIVEN,
	IN,
	OUT,
	GPUS,
	UTIL,
	MHZ,
	IO,
	RANK,
	NR_NODE_VALUES
};

static const struct {
	const char *name;
	double preset;
} node_key[NR_NODE_VALUES] = {
	[SECONDS] = {"seconds", 30}, /* a tick a second */
	[CORES] = {"cores", 4},	     /* in use, up to the second `until` */
	[UNTIL] = {"until", 1e9},
	[MEMORY] = {"memory", 1024}, /* MiB */
	[CPUS] = {"cpus", 8},	     /* given, and there */
	[GIVEN] = {"given", 16384},  /* MiB */
	[IN] = {"in", 10},	     /* MiB/s */
	[OUT] = {"out", 5},
	[GPUS] = {"gpus", 0},
	[UTIL] = {"util", 50}, /* percent */
	[MHZ] = {"mhz", 3000},
	[IO] = {"io", 0},      /* share of the time in which something waits for a disk */
	[RANK] = {"rank", -1}, /* of a job in which each has a recording */
};

static bool node_values(int argc, char **argv, double *value)
{
	for (unsigned k = 0; k < NR_NODE_VALUES; k++)
		value[k] = node_key[k].preset;
	for (int i = 0; i < argc; i++) {
		size_t n = strcspn(argv[i], "=");
		unsigned k = 0;

		while (k < NR_NODE_VALUES &&
			(strlen(node_key[k].name) != n || strncmp(node_key[k].name, argv[i], n) != 0))
			k++;
		if (k == NR_NODE_VALUES || !argv[i][n] || !parse_decimal(argv[i] + n + 1, &value[k]))
			return false;
	}
	return true;
}

static void node_tick(struct maker *m, const double *v, int64_t at)
{
	double busy_s = MIN((double)at, v[UNTIL]);

	maker_set(m, 0, "proc.cpu.time", (int64_t)(busy_s * v[CORES] * 1e9));
	set_memory(m, 0, (int64_t)(v[MEMORY] * 256), 0);
	maker_set(m, 0, "net.rx.bytes", (int64_t)(v[IN] * (double)(at * MIB)));
	maker_set(m, 0, "net.tx.bytes", (int64_t)(v[OUT] * (double)(at * MIB)));
	maker_set(m, 0, "limit.cpus", (int64_t)(v[CPUS] * 1000));
	maker_set(m, 0, "limit.memory", (int64_t)v[GIVEN] * MIB);
	maker_set(m, 0, "freq.current", (int64_t)(v[MHZ] * 1000));
	maker_set(m, 0, "pressure.io.some", (int64_t)(v[IO] * (double)at * 1e6));
	for (uint32_t k = 0; k < (uint32_t)v[GPUS]; k++) {
		maker_set(m, k, "gpu.util", (int64_t)v[UTIL]);
		maker_set(m, k, "gpu.memory.used", GIB);
		maker_set(m, k, "gpu.memory.total", 40 * GIB);
	}
	maker_tick(m, at * SECOND);
}

static int write_node(int argc, char **argv)
{
	double v[NR_NODE_VALUES];
	char name[32], index[16], cpus[32], bytes[32], rank[32];
	const char *meta[] = {"limits.cpus", cpus, "limits.machine_cpus", cpus, "limits.memory_bytes", bytes,
		"limits.machine_memory_bytes", bytes, "scheduler", "slurm", "job", "4711", NULL, rank, NULL};
	struct maker m;

	if (argc < 4 || !node_values(argc - 4, argv + 4, v))
		return 2;
	snprintf(cpus, sizeof(cpus), "%.0f", v[CPUS]);
	snprintf(rank, sizeof(rank), "%.0f", v[RANK]);
	if (v[RANK] >= 0)
		meta[ARRAY_SIZE(meta) - 3] = "env.SLURM_PROCID";
	snprintf(bytes, sizeof(bytes), "%lld", (long long)v[GIVEN] * MIB);
	maker_open(&m, argv[2],
		&(struct maker_options){.host = argv[3], .nr_cpus = (int64_t)v[CPUS], .meta = meta});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_instance(&m, MAKER_LIMITS, 0, 0, "job", NULL);
	maker_instance(&m, MAKER_CPU, 0, 0, "total", NULL);
	for (uint32_t k = 0; k < (uint32_t)v[GPUS]; k++) {
		snprintf(name, sizeof(name), "nvidia-%u", k);
		snprintf(index, sizeof(index), "%u", k);
		maker_instance(&m, MAKER_GPU, k, 0, name, "vendor", "nvidia", "index", index, "uuid", name,
			"job", "yes", "job_by", "CUDA_VISIBLE_DEVICES", NULL);
	}
	for (int64_t at = 0; at <= (int64_t)v[SECONDS]; at++)
		node_tick(&m, v, at);
	maker_finish(&m, "exit_status", INT64_C(0), NULL);
	return 0;
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
	if (!strcmp(argv[1], "node"))
		return write_node(argc, argv);
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
