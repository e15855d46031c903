/* resource_monitor.csv as the ResourceMonitor of oasislmf writes it: a line for each process of a tool at
 * each tick. Tools are our groups (`tacho attach match:REGEX`); in a run without groups each process is by
 * its name. Its reader skips a line in which a number is empty, and with it the memory and even the existence
 * of a process that was seen once. So the CPU use at a process' first tick, which is not known yet, is
 * written as that tool writes it: 0.0. PSS that is not known is -1 in both. */
#include "export/legacy_csv.h"

/* clang-format off */
static const struct legacy_csv_column process_column[] = {
	{"timestamp",  "time",             1,          .look = LEGACY_CSV_EPOCH},
	{"tool",       "process",          1,          .look = LEGACY_CSV_TOOL},
	{"pid",        "pid",              1,          .look = LEGACY_CSV_WHOLE},
	{"cpu_pct",    "proc.cpu.cores",   100,        .look = LEGACY_CSV_FIXED, .digits = 3, .missing = "0.0"},
	{"cpu_user_s", "proc.cpu.user",    1,          .look = LEGACY_CSV_FIXED, .digits = 3},
	{"cpu_sys_s",  "proc.cpu.system",  1,          .look = LEGACY_CSV_FIXED, .digits = 3},
	{"rss_kb",     "proc.mem.rss",     1.0 / 1024, .look = LEGACY_CSV_WHOLE},
	{"uss_kb",     "proc.mem.uss_now", 1.0 / 1024, .look = LEGACY_CSV_WHOLE},
	{"pss_kb",     "proc.mem.pss_now", 1.0 / 1024, .look = LEGACY_CSV_WHOLE, .missing = "-1"},
	{NULL},
};

static const struct legacy_csv_file file[] = {
	{"resource_monitor.csv", "process", .heading = "", .between = ",", .end = "\r\n", .missing = "", .column = process_column},
};
/* clang-format on */

static int oasis_csv_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	return legacy_csv_open(file, ARRAY_SIZE(file), job, ret, reterr);
}

const struct exporter exporter_oasis_csv = {
	.name = "oasis-csv",
	.suffix = ".csv",
	.help = "resource_monitor.csv, as the ResourceMonitor of oasislmf writes it",
	.shape = EXPORT_OWN_FILES,
	.tables = (const char *const[]){"process", NULL},
	.open = oasis_csv_open,
	.add = legacy_csv_add,
	.close = legacy_csv_close,
	.drop = legacy_csv_drop,
};
