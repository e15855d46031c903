/* query/stats: every number of small recordings is worked out by hand. Pages of memory are 4096 bytes. */
#include "query_maker.h"

#include "query/courses.h"
#include "query/stats.h"
#include "query/tracker.h"
#include "text/stats.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define PAGE 4096.0
#define GIB (INT64_C(1) << 30)

struct facts {
	struct run *run;
	struct summary *summary;
	struct process_table *table;
	struct courses *courses;
	struct stats *stats;
};

static struct facts facts_of(const char *path)
{
	struct facts f = {0};
	struct buf err;

	buf_init(&err, 4096);
	assert_int_equal(run_open(&path, 1, &f.run, &err), 0);
	assert_int_equal(summary_read_with_courses(f.run, &f.summary, &f.table, &f.courses, &err), 0);
	assert_int_equal(
		stats_read(&(struct stats_input){f.run, f.summary, f.table, f.courses}, NULL, &f.stats, &err),
		0);
	buf_release(&err);
	return f;
}

static void facts_free(struct facts *f)
{
	stats_free(f->stats);
	courses_free(f->courses);
	process_table_free(f->table);
	summary_free(f->summary);
	run_close(f->run);
}

static const struct stats_row *row_of(const struct facts *f, enum stats_level level, const char *name)
{
	for (size_t i = 0; i < f->stats->nr[level]; i++)
		if (!strcmp(f->stats->row[level][i].name, name))
			return &f->stats->row[level][i];
	fail_msg("there is no '%s'", name);
	return NULL;
}

static const struct stats_row *process_of(const struct facts *f, double pid)
{
	for (size_t i = 0; i < f->table->nr; i++)
		if (f->table->row[i].value[PROCESS_PID] == pid)
			return &f->stats->row[STATS_PROCESS][i];
	fail_msg("there is no process %.0f", pid);
	return NULL;
}

/* Quantiles are within a hundredth. */
static void assert_about(double a, double b)
{
	if (!(fabs(a - b) <= 0.011 * fabs(b)))
		fail_msg("%.12g is not about %.12g", a, b);
}

static void set_io(struct maker *m, uint32_t row, int64_t bytes)
{
	maker_set(m, row, "proc.io.read_bytes", bytes);
	maker_set(m, row, "proc.io.read_chars", 2 * bytes);
}

/* Three processes over ten seconds, a tick each second.
 *
 *	tick        0    1    2    3    4    5    6    7    8    9   10
 *	A (ann)   100  100  100  100  100  100  100  100  100  100  100   one core, tool sim
 *	B (ann)              300  300  300  300                           one core from 1.5 to 5.5 s, tool sim
 *	C (bob)                        200  200  250  250                 half a core from 3.5 to 7.5 s, tool
 *post all       100  100  400  400  600  600  350  350  100  100  100 */
static void make_three(const char *path, const char *host, int64_t start_s)
{
	const char *const meta[] = {"user", "ann", "uid", "1000", NULL};
	struct maker_options o = {.host = host,
		.groups = "sim\0post",
		.groups_len = 8,
		.meta = meta,
		.nr_cpus = 8,
		.start_wall_ns = (1700000000 + start_s) * SECOND};
	struct maker m;

	maker_open(&m, path, &o);
	maker_group(&m, 0, "sim", "match", true);
	maker_group(&m, 1, "post", "match", true);
	maker_instance(&m, MAKER_CPU, 0, 0, "cpu0", NULL);
	for (int64_t i = 0; i <= 10; i++) {
		maker_user = 1000;
		if (!i)
			maker_join_in(&m, 0, 1, 100, 1, 0, false, "sim", 3);
		if (i == 2)
			maker_join_in(&m, 1, 2, 101, 100, 1500 * MILLI, false, "sim", 3);
		maker_user = 2000;
		if (i == 4)
			maker_join_in(&m, 2, 3, 102, 100, 3500 * MILLI, false, "post", 4);
		if (i == 6) {
			maker_gone_with(&m, 1, 2, 5500 * MILLI, "exit-record", "cpu_ns", 4 * SECOND,
				"user_us", INT64_C(4000000), "system_us", INT64_C(0), NULL);
			maker_set(&m, 0, "tree.gone.user", 4000000);
			maker_set(&m, 0, "group.gone.user", 4000000);
		}
		if (i == 8) {
			maker_gone_with(&m, 2, 3, 7500 * MILLI, "exit-record", "cpu_ns", 2 * SECOND,
				"user_us", INT64_C(2000000), "system_us", INT64_C(0), NULL);
			maker_set(&m, 0, "tree.gone.user", 6000000);
			maker_set(&m, 1, "group.gone.user", 2000000);
		}
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		maker_set(&m, 0, "proc.cpu.user", i * 100);
		maker_set(&m, 0, "proc.cpu.system", 0);
		maker_set(&m, 0, "proc.mem.rss", 100);
		set_io(&m, 0, i * 1000 + (i >= 5 ? 4000 : 0));
		if (i >= 2 && i <= 5) {
			maker_set(&m, 1, "proc.cpu.time", (i - 2) * SECOND + 500 * MILLI);
			maker_set(&m, 1, "proc.cpu.user", (i - 2) * 100 + 50);
			maker_set(&m, 1, "proc.cpu.system", 0);
			maker_set(&m, 1, "proc.mem.rss", 300);
		}
		if (i >= 4 && i <= 7) {
			maker_set(&m, 2, "proc.cpu.time", (i - 4) * SECOND / 2 + 250 * MILLI);
			maker_set(&m, 2, "proc.cpu.user", (i - 4) * 50 + 25);
			maker_set(&m, 2, "proc.cpu.system", 0);
			maker_set(&m, 2, "proc.mem.rss", i < 6 ? 200 : 250);
		}
		maker_set(&m, 0, "cpu.user", i * 60);
		maker_set(&m, 0, "cpu.idle", i * 40);
		maker_tick(&m, i * SECOND);
	}
	maker_user = -1;
	maker_finish(&m, "end_ns", 10 * SECOND, NULL);
}

static void test_the_run(void **state)
{
	struct facts f;
	const double *v;

	(void)state;
	make_three(file, "here", 0);
	f = facts_of(file);
	assert_int_equal(f.stats->nr[STATS_RUN], 1);
	v = f.stats->row[STATS_RUN][0].value;
	assert_near(v[STAT_INSTANCES], 3);
	assert_near(v[STAT_SAMPLES], 11 + 4 + 4);
	assert_near(v[STAT_DURATION], 10);
	assert_near(v[STAT_CPU], 16);
	assert_near(v[STAT_CORES_MEAN], 1.6);
	assert_near(v[STAT_CORES_PEAK], 2.5);
	/* By seconds: 1, 1.5, 2, 2.25, 2.5, 2, 1.5, 1.25, 1, 1 cores. */
	assert_about(v[STAT_CORES_P50], 1.5);
	assert_about(v[STAT_CORES_P95], 2.5);
	assert_near(v[STAT_RSS_MEAN], 310 * PAGE);
	assert_about(v[STAT_RSS_P50], 350 * PAGE);
	assert_about(v[STAT_RSS_P95], 600 * PAGE);
	assert_near(v[STAT_RSS_PEAK], 600 * PAGE);
	assert_near(v[STAT_RSS_PEAK_AT], 4);
	/* The peak of the sum, the largest of one, and the sum of the peaks are three things. */
	assert_near(v[STAT_RSS_ONE_PEAK], 300 * PAGE);
	assert_near(v[STAT_RSS_PEAKS_SUM], 650 * PAGE);
	assert_near(v[STAT_PROCESSES_PEAK], 3);
	assert_near(v[STAT_READ_BYTES], 14000);
	assert_near(v[STAT_READ_CHARS], 28000);
	assert_near(v[STAT_READ_RATE_PEAK], 5000);
	assert_near(v[STAT_NODE_CPU_USER_MEAN], 0.6);
	assert_near(v[STAT_NODE_CPU_IDLE_MEAN], 0.4);
	/* Nobody wrote, nobody measured: that is not nothing. */
	assert_true(isnan(v[STAT_WRITE_BYTES]));
	assert_true(isnan(v[STAT_ENERGY]));
	assert_true(isnan(v[STAT_GPU_MEMORY_PEAK]));
	facts_free(&f);
}

static void test_groups(void **state)
{
	struct facts f;
	const double *sim, *post;

	(void)state;
	make_three(file, "here", 0);
	f = facts_of(file);
	sim = row_of(&f, STATS_GROUP, "sim")->value;
	post = row_of(&f, STATS_GROUP, "post")->value;
	assert_near(sim[STAT_INSTANCES], 2);
	assert_near(sim[STAT_SAMPLES], 15);
	assert_near(sim[STAT_CPU], 14);
	assert_near(sim[STAT_DURATION], 10);
	assert_near(sim[STAT_CORES_MEAN], 1.4);
	assert_near(sim[STAT_CORES_PEAK], 2);
	assert_near(sim[STAT_RSS_MEAN], 220 * PAGE);
	assert_near(sim[STAT_RSS_PEAK], 400 * PAGE);
	assert_near(sim[STAT_RSS_ONE_PEAK], 300 * PAGE);
	assert_near(sim[STAT_RSS_PEAKS_SUM], 400 * PAGE);
	/* It lived for four seconds: its means of memory are over those, that of cores is the summary's. */
	assert_near(post[STAT_CPU], 2);
	assert_near(post[STAT_DURATION], 4);
	assert_near(post[STAT_CORES_MEAN], 0.2);
	assert_near(post[STAT_RSS_MEAN], 225 * PAGE);
	assert_about(post[STAT_RSS_P50], 200 * PAGE);
	assert_near(post[STAT_RSS_PEAK_AT], 6);
	assert_near(post[STAT_PROCESSES_PEAK], 1);
	/* A machine's numbers are not a tool's. */
	assert_true(isnan(post[STAT_NODE_CPU_USER_MEAN]));
	facts_free(&f);
}

static void test_users_and_their_names(void **state)
{
	struct facts f;
	const double *ann, *bob;

	(void)state;
	make_three(file, "here", 0);
	f = facts_of(file);
	assert_int_equal(f.stats->nr[STATS_USER], 2);
	ann = row_of(&f, STATS_USER, "ann")->value;
	/* The recording has no name for 2000: whoever has that number here is somebody else. */
	bob = row_of(&f, STATS_USER, "2000")->value;
	assert_near(ann[STAT_INSTANCES], 2);
	assert_near(ann[STAT_CPU], 14);
	assert_near(bob[STAT_CPU], 2);
	assert_near(ann[STAT_RSS_PEAK], 400 * PAGE);
	assert_near(ann[STAT_RSS_PEAK_AT], 2);
	assert_near(bob[STAT_RSS_PEAK], 250 * PAGE);
	assert_near(bob[STAT_RSS_MEAN], 225 * PAGE);
	assert_near(bob[STAT_RSS_ONE_PEAK], 250 * PAGE);
	assert_near(bob[STAT_DURATION], 4);
	assert_near(bob[STAT_CORES_MEAN], 0.2);
	assert_near(bob[STAT_CORES_PEAK], 0.5);
	assert_near(ann[STAT_CORES_PEAK], 2);
	assert_near(ann[STAT_PROCESSES_PEAK], 2);
	facts_free(&f);
}

static void make_one_user(void)
{
	struct maker m;

	maker_user = 0;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 4; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		maker_set(&m, 0, "proc.mem.rss", 10 + i);
		set_io(&m, 0, 100 * i);
		maker_set(&m, 0, "tree.gone.user", 500000); /* what nobody saw in a process */
		maker_tick(&m, i * SECOND);
	}
	maker_user = -1;
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
}

static void test_a_single_user_is_the_run(void **state)
{
	struct facts f;
	const double *v;

	(void)state;
	make_one_user();
	f = facts_of(file);
	assert_int_equal(f.stats->nr[STATS_USER], 1);
	v = row_of(&f, STATS_USER, "root")->value;
	assert_near(v[STAT_CPU], value(f.summary, FIG_CPU));
	assert_near(v[STAT_CPU], 4.5);
	assert_near(v[STAT_READ_BYTES], 400);
	assert_near(v[STAT_RSS_PEAK], 14 * PAGE);
	assert_near(v[STAT_SAMPLES], 5);
	facts_free(&f);
}

static void test_processes(void **state)
{
	const char *path = file;
	const double *a, *b, *c;
	struct facts f;
	struct buf err;

	(void)state;
	make_three(file, "here", 0);
	/* Rows follow the table, in whatever order it is. */
	buf_init(&err, 4096);
	assert_int_equal(run_open(&path, 1, &f.run, &err), 0);
	assert_int_equal(summary_read_with_courses(f.run, &f.summary, &f.table, &f.courses, &err), 0);
	process_table_sort(f.table, ORDER_PID, true);
	assert_int_equal(
		stats_read(&(struct stats_input){f.run, f.summary, f.table, f.courses}, NULL, &f.stats, &err),
		0);
	buf_release(&err);
	assert_near(f.table->row[0].value[PROCESS_PID], 102);
	a = process_of(&f, 100)->value;
	b = process_of(&f, 101)->value;
	c = process_of(&f, 102)->value;
	assert_near(a[STAT_SAMPLES], 11);
	assert_near(b[STAT_SAMPLES], 4);
	assert_near(b[STAT_DURATION], 4);
	assert_near(b[STAT_CPU], 4);
	assert_near(b[STAT_CORES_MEAN], 1);
	assert_near(b[STAT_CORES_PEAK], 1);
	assert_near(c[STAT_CORES_PEAK], 0.5);
	/* 200 pages for two seconds, then 250 until it ended after another 1.5. */
	assert_near(c[STAT_RSS_MEAN], 775 * PAGE / 3.5);
	assert_near(c[STAT_RSS_PEAK], 250 * PAGE);
	assert_near(c[STAT_RSS_PEAK_AT], 6);
	assert_near(a[STAT_READ_CHARS], 28000);
	assert_true(isnan(c[STAT_RSS_P95]));
	assert_string_equal(process_of(&f, 102)->name, "worker");
	facts_free(&f);
}

/* What a process did in one step stands out, however long it did nothing before. */
static void test_a_burst_after_idleness(void **state)
{
	struct maker m;
	struct facts f;
	const double *v;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.nr_cpus = 8});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 20; i++) {
		maker_set(&m, 0, "proc.cpu.time", i < 15 ? SECOND : 4 * SECOND);
		maker_set(&m, 0, "proc.mem.rss", 1);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 20 * SECOND, NULL);
	f = facts_of(file);
	v = process_of(&f, 100)->value;
	assert_near(v[STAT_CORES_PEAK], 3);
	assert_near(v[STAT_CORES_PEAK_AT], 15);
	assert_near(v[STAT_RSS_MEAN], PAGE);
	facts_free(&f);
}

static void test_nodes_in_the_time_of_the_run(void **state)
{
	struct facts f;
	const double *v;

	(void)state;
	make_three(file_in("n1.tacho"), "n1", 0);
	make_three(file_in("n2.tacho"), "n2", 100);
	f = facts_of(dir);
	assert_int_equal(f.stats->nr[STATS_NODE], 2);
	v = row_of(&f, STATS_NODE, "n2")->value;
	assert_near(v[STAT_RSS_PEAK_AT], 104);
	assert_near(v[STAT_CPU], 16);
	assert_near(v[STAT_RSS_MEAN], 310 * PAGE);
	assert_near(row_of(&f, STATS_NODE, "n1")->value[STAT_RSS_PEAK_AT], 4);
	v = f.stats->row[STATS_RUN][0].value;
	assert_near(v[STAT_CPU], 32);
	assert_near(v[STAT_SAMPLES], 38);
	assert_near(v[STAT_RSS_PEAKS_SUM], 1300 * PAGE);
	assert_near(v[STAT_RSS_PEAK], 600 * PAGE); /* one after the other */
	assert_near(v[STAT_NODE_CPU_USER_MEAN], 0.6);
	/* A tool of both: from 3.5 s of the first to 7.5 s of the second. */
	v = row_of(&f, STATS_GROUP, "post")->value;
	assert_near(v[STAT_CPU], 4);
	assert_near(v[STAT_DURATION], 104);
	assert_near(v[STAT_RSS_MEAN], 225 * PAGE);
	v = row_of(&f, STATS_USER, "2000")->value;
	assert_near(v[STAT_CPU], 4);
	assert_near(v[STAT_RSS_PEAK], 250 * PAGE);
	facts_free(&f);

	/* At the same time their users' memory adds up. */
	make_three(file_in("n2.tacho"), "n2", 0);
	f = facts_of(dir);
	assert_near(row_of(&f, STATS_USER, "2000")->value[STAT_RSS_PEAK], 500 * PAGE);
	assert_near(row_of(&f, STATS_USER, "2000")->value[STAT_RSS_ONE_PEAK], 250 * PAGE);
	facts_free(&f);
}

static void add_gpu(struct maker *m, uint32_t row, const char *name, const char *job)
{
	maker_instance(m, MAKER_GPU, row, 0, name, "vendor", "nvidia", "index", row ? "1" : "0", "model", "X",
		"job", job, "job_by", "CUDA_VISIBLE_DEVICES", NULL);
}

static void test_gpus(void **state)
{
	static const int64_t used[2][5] = {{1, 4, 2, 1, 1}, {3, 1, 4, 1, 1}}; /* GiB; sums: 4 5 6 2 2 */
	static const int64_t power[2][5] = {{100, 300, 100, 100, 100}, {100, 100, 200, 100, 100}};
	struct maker m;
	struct facts f;
	const double *v;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.groups = "sim", .groups_len = 3});
	maker_group(&m, 0, "sim", "match", true);
	add_gpu(&m, 0, "nvidia-0", "yes");
	add_gpu(&m, 1, "nvidia-1", "yes");
	add_gpu(&m, 2, "nvidia-2", "no");
	maker_join_in(&m, 0, 1, 100, 1, 0, false, "sim", 3);
	maker_instance(
		&m, MAKER_GPU_PROCESS, 0, 0, "a", "gpu", "nvidia-0", "pid", "100", "process", "1", NULL);
	maker_instance(
		&m, MAKER_GPU_PROCESS, 1, 0, "b", "gpu", "nvidia-1", "pid", "100", "process", "1", NULL);
	for (int64_t i = 0; i < 5; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		for (uint32_t k = 0; k < 2; k++) {
			maker_set(&m, k, "gpu.util", k ? 40 : 80);
			maker_set(&m, k, "gpu.mem_util", 10);
			maker_set(&m, k, "gpu.memory.used", used[k][i] * GIB);
			maker_set(&m, k, "gpu.power", power[k][i] * 1000);
			maker_set(&m, k, "gpu_process.memory", used[k][i] * GIB / 2);
		}
		maker_set(&m, 2, "gpu.memory.used", 40 * GIB); /* somebody else's */
		maker_set(&m, 2, "gpu.power", 900000);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
	f = facts_of(file);
	v = f.stats->row[STATS_RUN][0].value;
	assert_near(v[STAT_GPU_MEMORY_PEAK], (double)(6 * GIB));
	assert_near(v[STAT_GPU_POWER_MAX], 400);
	assert_near(v[STAT_GPU_UTIL_MEAN], 0.6);
	assert_near(v[STAT_GPU_UTIL_MAX], 0.8);
	assert_near(v[STAT_GPU_MEM_UTIL_MEAN], 0.1);
	/* Trapezia: 100 + 300... of the first (4 s): 600 J, 500 J of the second. */
	assert_near(v[STAT_GPU_POWER_MEAN], 150 + 125);
	assert_near(f.stats->row[STATS_NODE][0].value[STAT_GPU_MEMORY_PEAK], (double)(6 * GIB));
	assert_near(process_of(&f, 100)->value[STAT_GPU_MEMORY_PEAK], (double)(3 * GIB));
	assert_near(row_of(&f, STATS_GROUP, "sim")->value[STAT_GPU_MEMORY_PEAK], (double)(3 * GIB));
	assert_near(row_of(&f, STATS_USER, "unknown")->value[STAT_GPU_MEMORY_PEAK], (double)(3 * GIB));
	assert_true(isnan(process_of(&f, 100)->value[STAT_GPU_UTIL_MEAN]));
	facts_free(&f);
}

static void test_many_short_processes(void **state)
{
	const uint32_t nr = 100000;
	struct maker m;
	struct facts f;
	const double *v;

	(void)state;
	maker_open(&m, file, NULL);
	maker_user = 1000;
	maker_join(&m, 0, 1, 1, 0, 0, false);
	for (uint32_t i = 0; i < nr; i++) {
		maker_user = 1000 + i % 3;
		maker_join(&m, STORE_NO_ROW, i + 2, 1000 + i % 30000, 1, i * MILLI, false);
		maker_gone_with(
			&m, STORE_NO_ROW, i + 2, (i + 1) * MILLI, "exit-record", "cpu_ns", MILLI, NULL);
		if (i % 1000 == 0) {
			maker_set(&m, 0, "proc.cpu.time", 0);
			maker_set(&m, 0, "tree.gone.user", (int64_t)(i + 1) * 1000);
			maker_tick(&m, i * MILLI);
		}
	}
	maker_user = -1;
	maker_finish(&m, "end_ns", 100 * SECOND, NULL);
	f = facts_of(file);
	assert_int_equal(f.stats->nr[STATS_PROCESS], nr + 1);
	assert_near(f.stats->row[STATS_RUN][0].value[STAT_INSTANCES], nr + 1);
	v = row_of(&f, STATS_USER, "1001")->value;
	assert_near(v[STAT_INSTANCES], 33333);
	assert_near(v[STAT_CPU], 33.333);
	facts_free(&f);
}

static struct {
	size_t most;
	uint64_t bytes;
} watched;

static void watch_memory(uint64_t bytes)
{
	watched.most = MAX(watched.most, mallinfo2().uordblks);
	watched.bytes += bytes;
}

/* All is found in one reading; beginnings are looked at to find out what a file is. */
static size_t walk_bytes(const char *path)
{
	size_t before = mallinfo2().uordblks;
	struct facts f;
	struct stat st;

	watched.most = watched.bytes = 0;
	progress_on_read = watch_memory;
	f = facts_of(path);
	progress_on_read = NULL;
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(watched.bytes, st.st_size / 2, st.st_size + 262144);
	facts_free(&f);
	return watched.most - before;
}

static void test_memory_does_not_grow_with_length(void **state)
{
	size_t shorter, longer;

	(void)state;
	if (!mallinfo2().uordblks) {
		print_message("this allocator keeps no account of its memory\n");
		skip();
	}
	make_long(file_in("short.tacho"), 1000);
	make_long(file_in("long.tacho"), 50000);
	shorter = walk_bytes(file_in("short.tacho"));
	longer = walk_bytes(file_in("long.tacho"));
	assert_true(longer < shorter + 65536);
}

/* Nothing is above its peak, whatever is lost; and what is lost is not invented. */
static void test_damage(void **state)
{
	struct facts f;

	(void)state;
	for (double where = 0.15; where < 1; where += 0.05) {
		const double *v;

		make_three(file, "here", 0);
		damage(file, where);
		f = facts_of(file);
		v = f.stats->row[STATS_RUN][0].value;
		assert_false(v[STAT_RSS_MEAN] > v[STAT_RSS_PEAK]);
		assert_false(v[STAT_RSS_P95] > v[STAT_RSS_PEAK]);
		assert_false(v[STAT_SAMPLES] > 19);
		facts_free(&f);
	}
}

static void test_an_empty_recording(void **state)
{
	struct maker m;
	struct facts f;

	(void)state;
	maker_open(&m, file, NULL);
	maker_abandon(&m);
	f = facts_of(file);
	assert_int_equal(f.stats->nr[STATS_PROCESS], 0);
	assert_int_equal(f.stats->nr[STATS_USER], 0);
	assert_true(isnan(f.stats->row[STATS_RUN][0].value[STAT_RSS_MEAN]));
	assert_true(isnan(f.stats->row[STATS_RUN][0].value[STAT_SAMPLES]));
	facts_free(&f);
}

static void test_a_single_moment(void **state)
{
	struct maker m;
	struct facts f;
	const double *v;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", MILLI);
	maker_set(&m, 0, "proc.mem.rss", 7);
	maker_tick(&m, 0);
	maker_finish(&m, "end_ns", 20 * MILLI, NULL);
	f = facts_of(file);
	v = f.stats->row[STATS_RUN][0].value;
	assert_near(v[STAT_RSS_PEAK], 7 * PAGE);
	assert_near(v[STAT_RSS_MEAN], 7 * PAGE);
	assert_near(v[STAT_RSS_P95], 7 * PAGE);
	assert_true(isnan(v[STAT_CORES_P95]));
	assert_near(process_of(&f, 100)->value[STAT_RSS_MEAN], 7 * PAGE);
	facts_free(&f);
}

/* ---- as text ---- */

static void test_text(void **state)
{
	struct stats_page page = {.style.utf8 = true, .levels = (1u << NR_STATS_LEVELS) - 1, .length_s = 10};
	struct facts f;
	struct buf out;

	(void)state;
	make_three(file, "here", 0);
	f = facts_of(file);
	buf_init(&out, 1 << 20);
	stats_write(f.stats, f.table, &page, &out);
	assert_non_null(strstr((char *)out.data, "RSS peak              2.34 MiB\n"));
	assert_non_null(strstr((char *)out.data, "Groups                       sim        post\n"));
	/* Columns that nobody has are left out. */
	assert_null(strstr((char *)out.data, "GPU"));
	buf_reset(&out);
	page.levels = 1u << STATS_GROUP;
	page.style.form = FORM_CSV;
	stats_write(f.stats, f.table, &page, &out);
	assert_non_null(strstr((char *)out.data, "level,name,host,pid,instances,samples,duration_s,cpu_s"));
	assert_non_null(strstr((char *)out.data, "\ngroup,sim,,,2,15,10,14"));
	buf_reset(&out);
	page.style.form = FORM_JSON;
	stats_write(f.stats, f.table, &page, &out);
	assert_non_null(strstr((char *)out.data, "\"rss_peaks_sum_bytes\": 1638400"));
	assert_null(strstr((char *)out.data, "\"run\": {"));
	buf_release(&out);
	facts_free(&f);
}

/* Of a process that was not read the threads are not known, but it has one. */
static void test_no_fewer_threads_than_processes(void **state)
{
	const uint32_t valid = 1u << LEVEL_PROCESSES | 1u << LEVEL_THREADS;
	struct between between = {.processes = 7, .threads = 4};
	int64_t level[NR_LEVELS] = {[LEVEL_PROCESSES] = 5, [LEVEL_THREADS] = 3};
	struct tracker t;

	(void)state;
	tracker_init(&t, 1, false);
	tracker_begin(&t, 0);
	tracker_levels(&t, 1, level, valid);
	assert_int_equal((int)t.top[LEVEL_THREADS].value, 5);
	tracker_between(&t, 2, &between);
	assert_int_equal((int)t.top[LEVEL_THREADS].value, 7);
	tracker_release(&t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_no_fewer_threads_than_processes),
		T(test_the_run),
		T(test_groups),
		T(test_users_and_their_names),
		T(test_a_single_user_is_the_run),
		T(test_processes),
		T(test_a_burst_after_idleness),
		T(test_nodes_in_the_time_of_the_run),
		T(test_gpus),
		T(test_many_short_processes),
		T(test_memory_does_not_grow_with_length),
		T(test_damage),
		T(test_an_empty_recording),
		T(test_a_single_moment),
		T(test_text),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
