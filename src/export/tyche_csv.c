/* The files of pytyche's HWMonitor: what nvidia-smi says of each GPU (--query-gpu, and dmon), and the CPUs.
 * Unknown values are written as nvidia-smi writes them, and skipped by the reader. Times are UTC. */
#include "export/legacy_csv.h"

#define MIB (1.0 / (1 << 20))

/* clang-format off */
static const struct legacy_csv_column gpu_column[] = {
	{"timestamp",             "time",             1,    .look = LEGACY_CSV_SLASH},
	{"utilization.gpu",       "gpu.util",         100,  .look = LEGACY_CSV_FIXED},
	{"utilization.memory",    "gpu.mem_util",     100,  .look = LEGACY_CSV_FIXED},
	{"memory.used",           "gpu.memory.used",  MIB,  .look = LEGACY_CSV_WHOLE},
	{"memory.total",          "gpu.memory.total", MIB,  .look = LEGACY_CSV_WHOLE},
	{"power.draw",            "gpu.power",        1,    .look = LEGACY_CSV_FIXED, .digits = 2},
	{"temperature.gpu",       "gpu.temperature",  1,    .look = LEGACY_CSV_FIXED},
	{"clocks.current.sm",     "gpu.clock.sm",     1e-6, .look = LEGACY_CSV_FIXED},
	{"clocks.current.memory", "gpu.clock.memory", 1e-6, .look = LEGACY_CSV_FIXED},
	{NULL},
};

static const struct legacy_csv_column dmon_column[] = {
	{"gpu", "instance",        1,   .look = LEGACY_CSV_NUMBER},
	{"sm",  "gpu.util",        100, .look = LEGACY_CSV_FIXED},
	{"mem", "gpu.mem_util",    100, .look = LEGACY_CSV_FIXED},
	{"fb",  "gpu.memory.used", MIB, .look = LEGACY_CSV_WHOLE},
	{NULL},
};

static const struct legacy_csv_column cpu_column[] = {
	{"timestamp", "time",           1,   .look = LEGACY_CSV_ISO},
	{"usr_pct",   "cpu.user_ratio", 100, .look = LEGACY_CSV_FIXED, .digits = 1},
	{"idle_pct",  "cpu.idle_ratio", 100, .look = LEGACY_CSV_FIXED, .digits = 1},
	{NULL},
};

static const struct legacy_csv_file file[] = {
	{"hw_metrics.csv", "gpu", .between = ", ", .end = "\n", .missing = "[N/A]", .column = gpu_column},
	{"hw_dmon.csv", "gpu", .heading = "# ", .second = "# Idx % % MB", .between = " ", .end = "\n", .missing = "-",
		.column = dmon_column},
	{"cpu_metrics.csv", "cpu", .only = "total", .heading = "", .between = ",", .end = "\n", .missing = "", .column = cpu_column},
};
/* clang-format on */

static int tyche_csv_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	return legacy_csv_open(file, ARRAY_SIZE(file), job, ret, reterr);
}

const struct exporter exporter_tyche_csv = {
	.name = "tyche-csv",
	.suffix = ".csv",
	.help = "hw_metrics.csv, hw_dmon.csv, cpu_metrics.csv, as the HWMonitor of pytyche writes them",
	.shape = EXPORT_OWN_FILES,
	.open = tyche_csv_open,
	.add = legacy_csv_add,
	.close = legacy_csv_close,
	.drop = legacy_csv_drop,
};
