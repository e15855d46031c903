/* Lists of perfmon-json whose rows come late, in other orders and with gaps: no recording of ours has all of
 * that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/exporter.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const text[] = {
	"n1", "package-0", "dram-0", "core", "nvidia-0", "nvidia-0/mig-1", "amd-0", "nvidia-12", "n2"};
enum { N1, PACKAGE, DRAM, CORE, NVIDIA, SLICE, AMD, OTHER, N2 };

#define FIELDS 5

static const struct field energy_field[FIELDS] = {{.name = "time", .type = FIELD_TIME, .scale = 1},
	{.name = "elapsed", .type = FIELD_REAL, .scale = 1}, {.name = "host", .type = FIELD_TEXT, .scale = 1},
	{.name = "instance", .type = FIELD_TEXT, .scale = 1},
	{.name = "energy.used", .type = FIELD_INT, .scale = 1e-6}};
static const struct field gpu_field[FIELDS] = {{.name = "time", .type = FIELD_TIME, .scale = 1},
	{.name = "elapsed", .type = FIELD_REAL, .scale = 1}, {.name = "host", .type = FIELD_TEXT, .scale = 1},
	{.name = "instance", .type = FIELD_TEXT, .scale = 1},
	{.name = "gpu.memory.used", .type = FIELD_INT, .scale = 1}};
static const struct data_table table[] = {
	{.name = "energy", .domain = "energy", .field = energy_field, .nr_fields = FIELDS},
	{.name = "gpu", .domain = "gpu", .field = gpu_field, .nr_fields = FIELDS},
};

struct row {
	double elapsed;
	uint32_t host, instance;
	int64_t value; /* -1: missing */
};

#define ROWS 16

static char folder[64];

static struct texts texts_of(const void *arg, size_t at, size_t field)
{
	static uint32_t len[ARRAY_SIZE(text)];

	(void)arg, (void)at, (void)field;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		len[i] = (uint32_t)strlen(text[i]);
	return (struct texts){.text = text, .len = len, .nr = ARRAY_SIZE(text)};
}

static void give(const struct exporter *x, void *e, size_t at, const struct row *row, uint32_t nr)
{
	int64_t time[ROWS], value[ROWS];
	double elapsed[ROWS];
	uint32_t host[ROWS], instance[ROWS];
	uint8_t valid[ROWS / 8] = {0};
	struct field_cells cell[FIELDS] = {{.integer = time}, {.real = elapsed}, {.text = host},
		{.text = instance}, {.valid = valid, .integer = value}};
	struct data_table_batch b = {.table = at, .nr_rows = nr, .cell = cell, .recording = host};

	for (uint32_t i = 0; i < nr; i++) {
		time[i] = INT64_C(1700000000) * NSEC_PER_SEC + (int64_t)(row[i].elapsed * 1e9);
		elapsed[i] = row[i].elapsed;
		host[i] = row[i].host;
		instance[i] = row[i].instance;
		value[i] = row[i].value;
		if (row[i].value >= 0)
			valid[i / 8] |= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(x->add(e, &b), 0);
}

static void expect_file(const char *name, const char *expected)
{
	char path[96], found[4096];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, found, sizeof(found) - 1);
	assert_true(n >= 0);
	found[n] = 0;
	close(fd);
	unlink(path);
	assert_string_equal(found, expected);
}

static void test_lists_are_on_the_same_ticks(void **state)
{
	static const struct row energy[] = {{1.5, N1, DRAM, 25}, {0, N2, PACKAGE, 7}, {0, N1, CORE, 1},
		{0, N1, PACKAGE, 100}, {1.5, N1, PACKAGE, -1}, {2, N1, PACKAGE, 300}, {3, N1, PACKAGE, 400},
		{3, N1, DRAM, 26}};
	static const struct row gpu[] = {{0, N1, NVIDIA, 1}, {0, N1, SLICE, 2}, {0, N1, AMD, 3},
		{1, N1, OTHER, INT64_MAX}, {1, N1, NVIDIA, 5}};
	const struct exporter *x = exporter_find("perfmon-json");
	struct export_job job = {
		.table = table, .nr_tables = ARRAY_SIZE(table), .path = folder, .texts = texts_of};
	struct buf err;
	void *e = NULL;

	(void)state;
	buf_init(&err, 4096);
	job.reterr = &err;
	assert_int_equal(x->open(&job, &e, &err), 0);
	give(x, e, 0, energy, ARRAY_SIZE(energy));
	give(x, e, 1, gpu, ARRAY_SIZE(gpu));
	assert_int_equal(x->close(e), 0);
	/* dram-0 came first and is shorter; n2 has one tick and no dram-0; a meter without a number is none
	 * of theirs. */
	expect_file("cpu_metrics.json",
		"{\"host_names\":[\"n1\",\"n2\"],\"sampling_frequency\":null,"
		"\"n1\":{\"time_stamps\":[1700000000,1700000001.5,1700000002,1700000003],"
		"\"rapl_powercap\":{\"dram-0\":[null,25,null,26],\"package-0\":[100,null,300,400]},"
		"\"parent_proc_md\":{},\"child_proc_md\":[]},"
		"\"n2\":{\"time_stamps\":[1700000000],\"rapl_powercap\":{\"dram-0\":[null],\"package-0\":[7]}"
		","
		"\"parent_proc_md\":{},\"child_proc_md\":[]}}\n");
	expect_file("perf_metrics.json", "{\"host_names\":[],\"sampling_frequency\":null}\n");
	expect_file(".perf_event_list.json",
		"{\"hardware_events\":{},\"software_events\":{},\"L2\":{},\"L2cache\":{},\"L3\":{},"
		"\"L3cache\":{},"
		"\"FLOPS_SP\":{},\"FLOPS_DP\":{}}\n");
	expect_file("nv_gpu_metrics.json",
		"{\"host_names\":[\"gpu-0.n1\",\"gpu-12.n1\"],\"sampling_frequency\":null,"
		"\"gpu-0.n1\":{\"time_stamps\":[1700000000,1700000001],\"memory_used\":{\"gpu_memory\":[1,5]}"
		"},"
		"\"gpu-12.n1\":{\"time_stamps\":[1700000001],\"memory_used\":{\"gpu_memory\":"
		"[9223372036854775807]}}}\n");
	buf_release(&err);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/perfmon.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists_are_on_the_same_ticks, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
