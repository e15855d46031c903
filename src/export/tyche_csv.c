/* The files of pytyche's HWMonitor: what nvidia-smi says of each GPU (--query-gpu, and dmon), and the CPUs.
 * Unknown values are written as nvidia-smi writes them, and skipped by the reader. Times are UTC. */
#include "export/legacy_csv.h"

#include "export/outlet.h"
#include "text/runlog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Beside the files: what pytyche's reader makes of them. */
#define SUMMARY_NAME "resource_summary.json"

struct tyche_csv {
	const struct export_job *job;
	void *files;
	struct resources resources;
};

static int tyche_csv_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct tyche_csv *t = calloc(1, sizeof(*t));
	int r = t ? legacy_csv_open(file, ARRAY_SIZE(file), job, &t->files, reterr) : -ENOMEM;

	if (r < 0) {
		free(t);
		return r;
	}
	t->job = job;
	*ret = t;
	return 0;
}

static struct texts texts_of(const void *arg, size_t table, size_t field)
{
	return export_texts(arg, table, field);
}

static int tyche_csv_add(void *e, const struct data_table_batch *b)
{
	struct tyche_csv *t = e;

	resources_batch(&t->resources, &t->job->table[b->table - t->job->first_table], b, t->job, texts_of);
	return legacy_csv_add(t->files, b);
}

/* Memory that the job reported by marks. */
static int take_mark(void *arg, const struct runlog *log, const struct runlog_entry *entry)
{
	(void)log;
	if (!strcmp(entry->kind, "mark") && entry->data[0])
		resources_mark(arg, entry->data[0], entry->data_len[0]);
	return 0;
}

static int read_marks(struct tyche_csv *t)
{
	int r = 0;

	for (size_t i = 0; t->job->run && i < t->job->run->nr && r >= 0; i++) {
		struct runlog_reading *reading = NULL;

		r = runlog_open(t->job->run->path[i], take_mark, &t->resources, &reading);
		if (r >= 0) {
			runlog_omit_resources(reading); /* they come from the tables */
			r = runlog_read(reading);
		}
		runlog_close(reading);
	}
	return r;
}

static int write_summary(struct tyche_csv *t)
{
	struct outlet out = {.fd = -1};
	struct buf text;
	struct json j;
	int fd, r = read_marks(t);

	if (r < 0)
		return r;
	fd = legacy_csv_create(t->job, SUMMARY_NAME);
	r = fd < 0 ? fd : outlet_open(&out, fd);
	buf_init(&text, 1 << 16);
	json_init(&j, &text, true);
	resources_json(&t->resources, &j, NULL);
	buf_addch(&text, '\n');
	if (r >= 0)
		outlet_add(&out, text.data, text.len);
	if (r >= 0)
		r = outlet_flush(&out);
	outlet_release(&out);
	buf_release(&text);
	if (fd >= 0 && close(fd) < 0 && r >= 0)
		r = -errno;
	return r;
}

static int tyche_csv_close(void *e)
{
	struct tyche_csv *t = e;
	int r = legacy_csv_close(t->files);

	if (r >= 0)
		r = write_summary(t);
	free(t);
	return r;
}

static void tyche_csv_drop(void *e)
{
	struct tyche_csv *t = e;

	legacy_csv_drop(t->files);
	free(t);
}

const struct exporter exporter_tyche_csv = {
	.name = "tyche-csv",
	.suffix = ".csv",
	.help = "hw_metrics.csv, hw_dmon.csv, cpu_metrics.csv of pytyche's HWMonitor, and "
		"resource_summary.json",
	.shape = EXPORT_OWN_FILES,
	.tables = (const char *const[]){"gpu", "cpu", NULL},
	.open = tyche_csv_open,
	.add = tyche_csv_add,
	.close = tyche_csv_close,
	.drop = tyche_csv_drop,
};
