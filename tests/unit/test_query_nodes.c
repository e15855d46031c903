/* query/: the directory of a run of many nodes: which recordings it means, their clocks, who is missing. */
#include "query_maker.h"

#include "base/str.h"
#include "query/align.h"
#include "query/curves.h"
#include "query/events.h"
#include "query/length.h"
#include "query/run_directory.h"
#include "query/walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define START (INT64_C(1700000000) * SECOND)
#define BOUND (400 * INT64_C(1000)) /* of each exchange: 0.4 ms */

static void make_directories(const char *run)
{
	static const char *const part[] = {"", "/nodes", "/clock"};
	char path[256];

	for (unsigned i = 0; i < ARRAY_SIZE(part); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, run, part[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(file_in(name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A node whose clock is ahead by `skew_ns` at the start of the run, and gains `ppm`. */
struct node {
	const char *file, *host;
	int64_t skew_ns;
	double ppm;
	int64_t begins_s, ends_s, peak_s; /* of the run's time; the peak lasts for one tick */
	bool unfinished;
	const char *const *meta;
};

static int64_t clock_shows(const struct node *n, int64_t run_ns)
{
	return START + run_ns + n->skew_ns + (int64_t)llround((double)run_ns * n->ppm * 1e-6);
}

static void make_node(const struct node *n)
{
	int64_t begin = clock_shows(n, n->begins_s * SECOND);
	struct maker_options o = {.host = n->host, .start_wall_ns = begin, .meta = n->meta};
	struct maker m;

	maker_open(&m, file_in(n->file), &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = n->begins_s; i <= n->ends_s; i++) {
		maker_set(&m, 0, "proc.cpu.time", (i - n->begins_s) * SECOND);
		maker_set(&m, 0, "proc.mem.rss", i == n->peak_s ? 1000 : 100);
		if (i == n->peak_s)
			maker_event(&m, clock_shows(n, i * SECOND) - begin, "mark", "name", "peak");
		maker_tick(&m, clock_shows(n, i * SECOND) - begin);
	}
	if (n->unfinished)
		maker_abandon(&m);
	else
		maker_finish(&m, "exit_status", INT64_C(0), "end_ns",
			clock_shows(n, n->ends_s * SECOND) - begin, NULL);
}

/* Every `every_s` an exchange, each wrong by up to its bound. */
static void measure(const char *name, const struct node *n, int64_t until_s, int64_t every_s)
{
	FILE *f = fopen(file_in(name), "w");

	assert_non_null(f);
	for (int64_t i = 0; i <= until_s; i += every_s) {
		int64_t wrong = (i / every_s * 7919 % 19 - 9) * BOUND / 10;

		fprintf(f, "{\"launcher_ns\":%jd,\"offset_ns\":%jd,\"bound_ns\":%jd}\n",
			(intmax_t)(START + i * SECOND),
			(intmax_t)(clock_shows(n, i * SECOND) - START - i * SECOND + wrong), (intmax_t)BOUND);
	}
	fclose(f);
}

static struct run *open_run(const char *path, const char *job)
{
	struct run *run = NULL;
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = run_open_job(&path, 1, job, &run, &err);
	if (r < 0)
		fail_msg("%s: %s", path, (char *)err.data);
	buf_release(&err);
	return run;
}

static struct summary *summary_of_run_in(const char *name)
{
	const char *path = file_in(name);

	return summary_of_paths(&path, 1);
}

/* ---- clocks ---- */

#define LENGTH 40000
#define PEAK 30000

static void check_times(const char *name, double within)
{
	char path[128];
	struct walk *w = NULL;
	struct run_events *events = NULL;
	struct run *run;
	struct buf err;
	int64_t at = -1;
	double length;

	buf_init(&err, 4096);
	snprintf(path, sizeof(path), "%s/nodes/n2.tacho", file_in(name));
	assert_int_equal(walk_open(path, NULL, &w), 0);
	assert_true(fabs((double)(walk_start(w) - START)) <= within * 1e9);
	assert_int_equal(walk_seek(w, PEAK * SECOND), 0);
	while (walk_next(w) == 1 && at < 0)
		at = w->time_ns >= PEAK * SECOND - SECOND / 2 ? w->time_ns : -1;
	assert_true(fabs((double)(at - PEAK * SECOND)) <= within * 2e9);
	walk_close(w);
	run = open_run(file_in(name), NULL);
	assert_int_equal(run_length(run, &length, &err), 0);
	assert_true(fabs(length - LENGTH) <= 2 * within);
	assert_int_equal(run_events_read(run, &events, &err), 0);
	assert_int_equal(events->nr_events, 2);
	assert_true(fabs(events->event[0].time_s - PEAK) <= 2 * within);
	assert_true(fabs(events->event[1].time_s - PEAK) <= 2 * within);
	run_events_free(events);
	run_close(run);
	buf_release(&err);
}

static void skewed(int64_t skew_ns, double ppm)
{
	struct node a = {.file = "7/nodes/n1.tacho", .host = "n1", .ends_s = LENGTH, .peak_s = PEAK}, b = a;
	struct clock_found found;
	struct summary *s;

	b.file = "7/nodes/n2.tacho";
	b.host = "n2";
	b.skew_ns = skew_ns;
	b.ppm = ppm;
	make_directories("7");
	make_node(&a);
	make_node(&b);
	s = summary_of_run_in("7");
	assert_near(value(s, FIG_RSS), 1100 * 4096); /* the peaks are at different times */
	assert_false(s->node[1].clock.measured);
	summary_free(s);

	measure("7/clock/n1.jsonl", &a, LENGTH, 60);
	measure("7/clock/n2.jsonl", &b, LENGTH, 60);
	s = summary_of_run_in("7");
	found = s->node[1].clock;
	assert_true(found.measured);
	assert_true(found.bound_s >= BOUND / 1e9 && found.bound_s <= 2 * BOUND / 1e9);
	assert_true(fabs(found.offset_s - (double)skew_ns / 1e9) <= found.bound_s);
	assert_true(fabs(found.drift_ppm - ppm) < 0.1);
	assert_near(value(s, FIG_RSS), 2000 * 4096);
	assert_true(fabs(value(s, FIG_RSS_AT) - PEAK) <= 0.6);
	assert_true(fabs(value(s, FIG_WALL) - LENGTH) <= 2 * found.bound_s);
	assert_true(llabs(s->start_wall_ns - START) <= (int64_t)(found.bound_s * 1e9));
	assert_true(has_note(s, "clocks within ±0."));
	summary_free(s);
	check_times("7", found.bound_s);
}

static void test_clock_off_by_seconds(void **state)
{
	(void)state;
	skewed(5 * SECOND, 0);
}

static void test_clock_off_by_an_hour(void **state)
{
	(void)state;
	skewed(-3600 * SECOND, 0);
}

static void test_clock_that_drifts(void **state)
{
	(void)state;
	skewed(5 * SECOND, 50);
}

/* The wall clock was set during the run: times of the recording did not follow. */
static void test_clock_that_was_set(void **state)
{
	struct node n = {.file = "7/nodes/n1.tacho", .host = "n1", .skew_ns = 90 * SECOND, .ends_s = 600};
	struct node_clock *c = NULL;
	struct run_node *node = NULL;
	struct run *run;
	struct buf text;
	struct pair pair;
	struct pairs pairs = {.pair = &pair, .nr = 1, .cap = 1};
	char start[32];

	(void)state;
	make_directories("7");
	make_node(&n);
	buf_init(&text, 1 << 20);
	for (int64_t i = 0; i <= 600; i += 10)
		buf_addf(&text, "{\"launcher_ns\":%jd,\"offset_ns\":%jd,\"bound_ns\":1000}\n",
			(intmax_t)(START + i * SECOND), (intmax_t)(i < 300 ? 90 * SECOND : SECOND / 10));
	write_file("7/clock/n1.jsonl", (char *)text.data);
	assert_int_equal(clock_open(file_in("7/nodes/n1.tacho"), &c, NULL), 0);
	assert_non_null(c);
	snprintf(start, sizeof(start), "%jd", (intmax_t)(START + 90 * SECOND));
	pair = (struct pair){"start_wall_ns", start, strlen(start)};
	clock_pairs(c, &pairs);
	assert_true(llabs(clock_time(c, 600 * SECOND) - 600 * SECOND) <= 2000);
	assert_true(llabs(clock_time_back(c, 600 * SECOND) - 600 * SECOND) <= 2000);
	clock_close(c);
	run = open_run(file_in("7"), NULL);
	buf_reset(&text);
	assert_int_equal(run_align(run, &node, &text), 0);
	assert_true(llabs(node[0].start_ns - START) <= 2000);
	run_align_free(node, run->nr);
	run_close(run);
	buf_release(&text);
}

/* Whatever the file holds: a line that says nothing is passed over, and nothing breaks. */
static void test_hostile_clocks(void **state)
{
	static const char *const text[] = {"", "\n\n", "{}\n", "[1,2]\n", "{\"launcher_ns\":1",
		"{\"launcher_ns\":-5,\"offset_ns\":1,\"bound_ns\":1}\n",
		"{\"launcher_ns\":5,\"offset_ns\":1,\"bound_ns\":-1}\n",
		"{\"launcher_ns\":99999999999999999999,\"offset_ns\":1,\"bound_ns\":1}\n",
		"{\"launcher_ns\":1e9,\"offset_ns\":1,\"bound_ns\":1}\n",
		"{\"launcher_ns\":\"5\",\"offset_ns\":1,\"bound_ns\":1}\n", "\xff\xfe\x00\n",
		"[[[[[[[[[[[[\n"};
	struct node n = {.file = "7/nodes/n1.tacho", .host = "n1", .ends_s = 10};
	uint64_t seed = 12345;
	struct buf lines;
	struct summary *s;

	(void)state;
	make_directories("7");
	make_node(&n);
	for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
		struct node_clock *c = NULL;

		write_file("7/clock/n1.jsonl", text[i]);
		assert_int_equal(clock_open(file_in(n.file), &c, NULL), 0);
		assert_null(c);
	}
	buf_init(&lines, 1 << 20);
	for (unsigned round = 0; round < 200; round++) {
		buf_reset(&lines);
		for (unsigned i = 0; i < 40; i++) {
			int64_t v[3];

			for (unsigned k = 0; k < 3; k++) {
				seed = seed * 6364136223846793005 + 1442695040888963407;
				v[k] = (int64_t)seed >> (seed >> 58);
			}
			buf_addf(&lines, "{\"launcher_ns\":%jd,\"offset_ns\":%jd,\"bound_ns\":%jd}\n",
				(intmax_t)(v[0] & INT64_MAX), (intmax_t)v[1],
				(intmax_t)((v[2] & INT64_MAX) % (70 * SECOND)));
		}
		write_file("7/clock/n1.jsonl", (char *)lines.data);
		s = summary_of_run_in("7");
		assert_true(value(s, FIG_WALL) >= 0);
		summary_free(s);
	}
	buf_release(&lines);
}

/* ---- which recordings ---- */

static void expect_paths(const struct run *run, size_t nr, const char *const *end)
{
	assert_int_equal(run->nr, nr);
	for (size_t i = 0; i < nr; i++)
		if (strlen(run->path[i]) < strlen(end[i]) ||
			strcmp(run->path[i] + strlen(run->path[i]) - strlen(end[i]), end[i]))
			fail_msg("%s is not %s", run->path[i], end[i]);
}

static void expect_refused(const char *path, const char *job, int error, const char *words)
{
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 4096);
	assert_int_equal(run_open_job(&path, 1, job, &run, &err), error);
	if (!err.data || !strstr((char *)err.data, words))
		fail_msg("'%s' is not what is said", words);
	buf_release(&err);
}

static void test_directories_of_runs(void **state)
{
	static const char *const made[] = {"7/nodes/n10.tacho", "7/nodes/n2.tacho", "7/nodes/n2-2.tacho"};
	static const char *const order[] = {"/n2.tacho", "/n2-2.tacho", "/n10.tacho"};
	struct run *run;

	(void)state;
	make_directories("7");
	for (unsigned i = 0; i < ARRAY_SIZE(made); i++)
		make_node(&(struct node){.file = made[i], .host = "x", .ends_s = 2});
	run = open_run(file_in("7"), NULL);
	expect_paths(run, 3, order);
	assert_null(run->about);
	run_close(run);
	run = open_run(dir, NULL); /* the only one in it */
	expect_paths(run, 3, order);
	run_close(run);
	make_directories("8");
	write_file("8/run.json",
		"{\"format\":\"tacho-run\",\"version\":1,\"job\":\"8\",\"array_job\":\"5\","
		"\"array_task\":\"3\",\"nodes\":[\"a\",\"b\",\"a\"]}");
	expect_refused(dir, NULL, -ENOTUNIQ, "2 jobs: 7, 8");
	expect_refused(dir, "9", -ENOENT, "");
	expect_refused(dir, "8", -ENOENT, "there is no recording");
	make_node(&(struct node){.file = "8/nodes/a.tacho", .host = "a", .ends_s = 2});
	for (unsigned i = 0; i < 2; i++) {
		run = open_run(dir, i ? "5_3" : "8");
		expect_paths(run, 1, &(const char *const){"8/nodes/a.tacho"});
		assert_int_equal(run->about->nr_nodes, 2);
		run_close(run);
	}
	run = open_run(dir, "7");
	expect_paths(run, 3, order);
	run_close(run);
}

static void test_recordings_of_several_jobs(void **state)
{
	static const char *const one[] = {"scheduler.kind", "slurm", "scheduler.job_id", "1", NULL};
	static const char *const two[] = {"scheduler.kind", "slurm", "scheduler.job_id", "2", NULL};
	static const char *const both[] = {"/a-rank0.tacho", "/a-rank10.tacho"};
	struct run *run;
	struct summary *s;
	const char *path = dir;

	(void)state;
	make_node(&(struct node){.file = "a-rank10.tacho", .host = "a", .ends_s = 5, .meta = one});
	make_node(&(struct node){.file = "a-rank0.tacho", .host = "a", .ends_s = 5, .meta = one});
	run = open_run(dir, NULL);
	expect_paths(run, 2, both);
	run_close(run);
	s = summary_of_paths(&path, 1); /* two ranks share the CPUs of their node */
	assert_near(value(s, FIG_CPUS), 8);
	assert_near(value(s, FIG_CPU), 10);
	summary_free(s);
	make_node(&(struct node){.file = "b.tacho", .host = "a", .ends_s = 5});
	run = open_run(dir, NULL); /* one without a job goes with the only one */
	assert_int_equal(run->nr, 3);
	run_close(run);
	make_node(&(struct node){.file = "c.tacho", .host = "a", .ends_s = 5, .meta = two});
	expect_refused(dir, NULL, -ENOTUNIQ, "2 jobs: 1, 2; choose one with --job ID");
	expect_refused(dir, "3", -ENOENT, "there is no job 3");
	run = open_run(dir, "1");
	expect_paths(run, 2, both);
	run_close(run);
}

/* ---- who is missing ---- */

static void test_attendance(void **state)
{
	struct summary *s;

	(void)state;
	make_directories("7");
	write_file("7/run.json",
		"{\"format\":\"tacho-run\",\"version\":1,\"job\":\"7\",\"command\":[\"srun\",\"./x y\"],"
		"\"nodes\":[\"n10\",\"n2\",\"n3.cluster\",\"n4\",\"n5\"],\"start_wall_ns\":"
		"1700000000000000000,"
		"\"end_wall_ns\":1700000060000000000,\"exit_status\":3,"
		"\"missing\":[{\"node\":\"n10\",\"why\":\"did not start within 10 s\"}]}");
	make_node(&(struct node){.file = "7/nodes/n2.tacho", .host = "n2", .ends_s = 60});
	make_node(&(struct node){.file = "7/nodes/n3.tacho", .host = "n3", .begins_s = 7, .ends_s = 60});
	make_node(&(struct node){.file = "7/nodes/n4.tacho", .host = "n4", .ends_s = 20, .unfinished = true});
	/* The second recorder of a node went on when the first was lost. */
	make_node(&(struct node){.file = "7/nodes/n5.tacho", .host = "n5", .ends_s = 20, .unfinished = true});
	make_node(&(struct node){.file = "7/nodes/n5-2.tacho", .host = "n5", .begins_s = 25, .ends_s = 60});
	s = summary_of_run_in("7");
	assert_int_equal(s->attendance->expected, 5);
	assert_int_equal(s->attendance->nr[NODES_MISSING], 1);
	assert_int_equal(s->attendance->nr[NODES_LATE], 1);
	assert_int_equal(s->attendance->nr[NODES_EARLY], 1);
	assert_true(has_note(s, "1 of 5 nodes is missing: n10 (did not start within 10 s)"));
	assert_true(has_note(s, "1 of 5 nodes began late: n3.cluster after 7"));
	assert_true(has_note(s, "1 of 5 nodes ended early: n4 40"));
	assert_near(value(s, FIG_EXIT_CODE), 3);
	assert_int_equal(s->command_len, 10);
	assert_memory_equal(s->command, "srun\0./x y", 11);
	summary_free(s);
}

static void test_thousands_are_named_briefly(void **state)
{
	struct run_about about = {.nr_nodes = 1000};
	struct attendance *a = NULL;
	struct buf words;

	(void)state;
	about.node = calloc(about.nr_nodes, sizeof(char *));
	for (size_t i = 0; i < about.nr_nodes; i++)
		assert_true(asprintf(&about.node[i], "node%zu", about.nr_nodes - i) > 0);
	assert_int_equal(attendance_take(&about, NULL, 0, &a), 0);
	buf_init(&words, 4096);
	assert_true(attendance_words(a, NODES_MISSING, &words));
	assert_string_equal((char *)words.data,
		"1,000 of 1,000 nodes are missing: node1, node2, node3, node4, node5, node6 and 994 more");
	buf_release(&words);
	attendance_free(a);
	for (size_t i = 0; i < about.nr_nodes; i++)
		free(about.node[i]);
	free(about.node);
}

static void read_with(const char *run_json, bool is_told)
{
	struct summary *s;
	struct buf out;

	buf_init(&out, 1 << 22);
	write_file("7/run.json", run_json);
	s = summary_of_run_in("7");
	assert_near(value(s, FIG_WALL), 3);
	assert_int_equal(has_note(s, "run.json is"), is_told);
	json_of(s, &out);
	buf_reset(&out);
	words_of(s, 80, true, &out);
	buf_release(&out);
	summary_free(s);
}

static void test_hostile_run_files(void **state)
{
	static const char *const no_run[] = {"", "{", "[]", "7", "{\"format\":\"other\",\"version\":1}",
		"{\"format\":\"tacho-run\",\"version\":2}", "{\"format\":\"tacho-run\"}"};
	static const char *const odd[] = {"\"nodes\":\"n1\",\"command\":{\"a\":1},\"labels\":[],\"name\":7",
		"\"missing\":[1,[2],{\"node\":5}],\"start_wall_ns\":-9,\"exit_status\":1e400",
		"\"nodes\":[\"\",\"a\\u0000b\",[\"n\"],{\"n\":\"m\"},null],\"exit_status\":99999",
		"\"nodes\":[\"n1\"],\"missing\":[{\"why\":\"x\"},{\"node\":\"n1\",\"node\":\"n2\"}]",
		"\"nodes\":[\"\xff\xfe\",\"\\ud800\"],\"command\":[\"\",\"\",3]",
		"\"nodes\":[\"n1\"],\"start_wall_ns\":9223372036854775807,\"end_wall_ns\":1"};
	char text[1024];

	(void)state;
	make_directories("7");
	make_node(&(struct node){.file = "7/nodes/n1.tacho", .host = "n1", .ends_s = 3});
	for (unsigned i = 0; i < ARRAY_SIZE(no_run); i++)
		read_with(no_run[i], true);
	for (unsigned i = 0; i < ARRAY_SIZE(odd); i++) {
		snprintf(text, sizeof(text), "{\"format\":\"tacho-run\",\"version\":1,%s}", odd[i]);
		read_with(text, false);
	}
}

/* ---- machines ---- */

static void make_meter(const char *name, const char *host, int64_t begins_s)
{
	struct maker_options o = {.host = host, .start_wall_ns = START + begins_s * SECOND};
	struct maker m;

	maker_open(&m, file_in(name), &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_ENERGY, 0, 1, "meter", NULL);
	for (int64_t i = 0; i <= 10; i++) {
		maker_set(&m, 0, "proc.mem.rss", 10);
		maker_set(&m, 0, "energy.power", 100 * 1000000);
		maker_set(&m, 0, "energy.used", i * 100 * 1000000);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "exit_status", INT64_C(0), "end_ns", 10 * SECOND, NULL);
}

/* Two ranks of one node and one of another: what the nodes do counts once a node. */
static void test_a_machine_counts_once(void **state)
{
	static const struct curves_query query[] = {{.metric = "energy.power"}, {.metric = "proc.mem.rss"}};
	struct curves *curves = NULL;
	struct summary *s;
	const char *path = dir;
	struct run *run;
	struct buf err;
	int at;

	(void)state;
	make_meter("a-rank0.tacho", "a", 0);
	make_meter("a-rank1.tacho", "a", 0);
	make_meter("b-rank2.tacho", "b", 0);
	buf_init(&err, 4096);
	run = open_run(dir, NULL);
	assert_int_equal(curves_read(run, query, ARRAY_SIZE(query), NULL, &curves, &err), 0);
	at = curves_combine(curves, 0, false);
	assert_true(at >= 0);
	assert_near(curves->line[at].average, 200);
	at = curves_combine(curves, 1, false);
	assert_near(curves->line[at].average, 30 * 4096);
	curves_free(curves);
	run_close(run);
	buf_release(&err);
	s = summary_of_paths(&path, 1);
	assert_near(value(s, FIG_ENERGY), 2000);
	summary_free(s);
}

/* In a run's directory the second recorder of a node goes on where the first was lost. */
static void test_a_second_recorder_of_a_node(void **state)
{
	struct summary *s;

	(void)state;
	make_directories("7");
	write_file("7/run.json", "{\"format\":\"tacho-run\",\"version\":1}");
	make_meter("7/nodes/a.tacho", "a", 0);
	make_meter("7/nodes/a-2.tacho", "a", 20);
	s = summary_of_run_in("7");
	assert_near(value(s, FIG_ENERGY), 2000);
	assert_near(value(s, FIG_WALL), 30);
	summary_free(s);
}

static void test_order_of_names(void **state)
{
	static const char *const name[] = {"", "a", "a1", "a01", "a1b", "a2", "a10", "a10-2", "a10b3",
		"a10b20", "a99999999999999999999998", "a99999999999999999999999", "b"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(name); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(name); k++) {
			int c = str_order(name[i], name[k]);

			if ((c > 0) - (c < 0) != (i > k) - (i < k))
				fail_msg("%s and %s: %d", name[i], name[k], c);
		}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_clock_off_by_seconds),
		T(test_clock_off_by_an_hour),
		T(test_clock_that_drifts),
		T(test_clock_that_was_set),
		T(test_hostile_clocks),
		T(test_directories_of_runs),
		T(test_recordings_of_several_jobs),
		T(test_attendance),
		T(test_thousands_are_named_briefly),
		T(test_hostile_run_files),
		T(test_a_machine_counts_once),
		T(test_a_second_recorder_of_a_node),
		T(test_order_of_names),
	};

	return cmocka_run_group_tests_name("query_nodes", tests, NULL, NULL);
}
