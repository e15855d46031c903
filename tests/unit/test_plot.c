/* analysis/plot: charts of any metrics, of jobs whose every value is known. */
#include "job_maker.h"

#include "analysis/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)

static struct run *run;
static struct plot *p;
static struct buf err;

static int setup(void **state)
{
	buf_init(&err, 1 << 16);
	run = NULL;
	p = NULL;
	return maker_setup(state);
}

static int teardown(void **state)
{
	plot_free(p);
	run_close(run);
	buf_release(&err);
	return maker_teardown(state);
}

static void open_run(const char *const *path, size_t nr)
{
	run = run_close(run);
	assert_int_equal(run_open(path, nr, &run, &err), 0);
}

/* Worker k keeps (k + 1) / 10 of a CPU busy and has k + 1 MiB. */
static void make_workers(unsigned workers, bool groups)
{
	const char *path = file;

	make_job(file,
		&(struct job){
			.host = "node1", .ticks = 20, .workers = workers, .groups = groups, .events = 2});
	open_run(&path, 1);
}

static int ask(const char *metric, struct plot_query q)
{
	const char *name[4];
	char *words = strdup(metric), *at = words, *word;
	int r;

	q.metric = name;
	while ((word = strsep(&at, ",")))
		name[q.nr++] = word;
	q.top = q.top ? q.top : 10;
	q.from_s = q.to_s = NAN;
	p = plot_free(p);
	buf_reset(&err);
	r = plot_make(run, &q, &p, &err);
	free(words);
	return r;
}

static const struct chart *chart(const char *metric, struct plot_query q)
{
	if (ask(metric, q) < 0)
		fail_msg("%s", (char *)err.data);
	return &p->chart[0];
}

static const struct chart_curve *named(const struct chart *f, const char *name)
{
	for (size_t i = 0; i < f->nr_curves; i++)
		if (!strcmp(f->curve[i].name, name))
			return &f->curve[i];
	fail_msg("there is no curve %s", name);
	return NULL;
}

static void test_one_metric_is_one_curve(void **state)
{
	const struct chart *f;

	(void)state;
	make_workers(4, false);
	f = chart("proc.mem.rss", (struct plot_query){.nr = 0});
	assert_int_equal(p->nr, 1);
	assert_int_equal(f->nr_curves, 1);
	assert_string_equal(f->title, "proc.mem.rss");
	assert_non_null(strstr(f->subtitle, "mean 10 MiB, max 10 MiB: "));
	assert_int_equal(f->unit, UNIT_BYTES);
	assert_near(f->curve[0].most, 10.0 * MIB);
	assert_int_equal(f->nr_marks, 2);
	assert_true(f->to_s >= 19);
	assert_near(chart("tree.cores", (struct plot_query){.nr = 0})->curve[0].average, 1);
}

static void test_units_have_charts_of_their_own(void **state)
{
	(void)state;
	make_workers(2, false);
	chart("proc.mem.rss,tree.cores,proc.mem.vms,proc.mem.pss_now", (struct plot_query){.nr = 0});
	assert_int_equal(p->nr, 2);
	assert_string_equal(p->chart[0].title, "proc.mem.rss, proc.mem.pss_now");
	assert_int_equal(p->chart[0].nr_curves, 2);
	assert_string_equal(p->chart[1].title, "tree.cores");
	assert_near(p->chart[0].to_s, p->chart[1].to_s);
	/* One that was recorded and never had a value is said and left out. */
	assert_int_equal(p->nr_notes, 1);
	assert_non_null(strstr(p->note[0], "proc.mem.vms: "));
}

static void test_the_largest_keep_their_names(void **state)
{
	const struct chart *f;
	double sum = 0;

	(void)state;
	make_workers(8, false);
	f = chart("proc.mem.rss", (struct plot_query){.per = PLOT_PROCESS, .top = 3});
	assert_int_equal(f->nr_curves, 4);
	assert_near(named(f, "worker 1007")->most, 8.0 * MIB);
	assert_near(named(f, "worker 1006")->most, 7.0 * MIB);
	assert_near(named(f, "worker 1005")->most, 6.0 * MIB);
	assert_near(named(f, "others")->most, 15.0 * MIB); /* 5 + 4 + 3 + 2 + 1 */
	assert_int_equal(named(f, "others")->color, CHART_OTHERS);
	/* Whatever is named, the sum is the whole. */
	for (size_t i = 0; i < f->nr_curves; i++)
		sum += f->curve[i].average;
	assert_near(sum, 36.0 * MIB);
	f = chart("proc.mem.rss", (struct plot_query){.per = PLOT_PROCESS, .top = 8});
	assert_int_equal(f->nr_curves, 8);
}

static void test_one_process(void **state)
{
	const struct chart *f;

	(void)state;
	make_workers(8, false);
	f = chart("proc.mem.rss", (struct plot_query){.pid = WORKER_PID + 2});
	assert_int_equal(f->nr_curves, 1);
	assert_near(f->curve[0].most, 3.0 * MIB);
	assert_string_equal(f->curve[0].name, "worker 1002");
	assert_int_equal(ask("proc.mem.rss", (struct plot_query){.pid = 77}), -ENOENT);
	assert_non_null(strstr((char *)err.data, "no process 77"));
}

static void test_groups(void **state)
{
	const struct chart *f;

	(void)state;
	make_workers(4, true);
	f = chart("proc.mem.rss", (struct plot_query){.per = PLOT_GROUP});
	assert_int_equal(f->nr_curves, 2);
	assert_near(named(f, "even")->most, 4.0 * MIB);
	assert_near(named(f, "odd")->most, 6.0 * MIB);
	f = chart("proc.mem.rss", (struct plot_query){.group = "odd"});
	assert_near(f->curve[0].most, 6.0 * MIB);
	make_workers(4, false);
	assert_int_equal(ask("proc.mem.rss", (struct plot_query){.per = PLOT_GROUP}), -ENOENT);
	assert_non_null(strstr((char *)err.data, "no groups of processes"));
}

static void test_many_instances_of_a_share_are_a_heat_map(void **state)
{
	const struct chart *f;

	(void)state;
	make_workers(1, false);
	f = chart("cpu.busy", (struct plot_query){.per = PLOT_INSTANCE, .top = 3});
	assert_int_equal(f->form, CHART_LINES);
	assert_near(named(f, "cpu0")->average, 1);
	f = chart("cpu.busy", (struct plot_query){.per = PLOT_INSTANCE, .top = 2});
	assert_int_equal(f->form, CHART_HEAT);
	assert_int_equal(f->nr_curves, 2); /* the total is no CPU */
	assert_near(f->y_most, 1);
}

static void test_nodes(void **state)
{
	char other[128];
	const char *path[] = {file, other};
	const struct chart *f;

	(void)state;
	snprintf(other, sizeof(other), "%s", file_in("other.tacho"));
	make_job(file, &(struct job){.host = "node1", .ticks = 20, .workers = 2});
	make_job(other, &(struct job){.host = "node2", .ticks = 20, .workers = 4});
	open_run(path, 2);
	f = chart("proc.mem.rss", (struct plot_query){.per = PLOT_NODE});
	assert_near(named(f, "node1")->most, 3.0 * MIB);
	assert_near(named(f, "node2")->most, 10.0 * MIB);
	f = chart("proc.mem.rss", (struct plot_query){.nr = 0});
	assert_int_equal(f->nr_curves, 1);
	assert_near(f->curve[0].most, 13.0 * MIB);
	f = chart("proc.mem.rss", (struct plot_query){.per = PLOT_PROCESS, .top = 2});
	assert_near(named(f, "node2: worker 1003")->most, 4.0 * MIB);
	assert_near(named(f, "others: node1")->most, 3.0 * MIB);
	assert_near(named(f, "others: node2")->most, 3.0 * MIB);
}

static void test_wrong_questions(void **state)
{
	static const struct {
		const char *metric;
		struct plot_query q;
		const char *words;
	} wrong[] = {
		{"tree.core", {.nr = 0}, "did you mean 'tree.cores'?"},
		{"tree.core", {.per = PLOT_USER}, "did you mean 'tree.cores'?"},
		{"proc.state", {.nr = 0}, "cannot be added up"},
		{"tree.cores", {.per = PLOT_INSTANCE}, "has no instances"},
		{"cpu.busy", {.per = PLOT_PROCESS}, "not a metric of single processes"},
		{"proc.mem.rss", {.group = "nobody"}, "no group 'nobody'"},
		{"net.rx.bytes", {.nr = 0}, "net.rx.bytes: "},
	};

	(void)state;
	make_workers(2, false);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int r = ask(wrong[i].metric, wrong[i].q);

		assert_true(r == -ENOENT || r == -EINVAL);
		if (!strstr((char *)err.data, wrong[i].words))
			fail_msg("%s: %s", wrong[i].metric, (char *)err.data);
	}
}

static void test_names_are_escaped_and_empty_runs_are_no_trouble(void **state)
{
	const char *path = file;
	struct maker m;

	(void)state;
	make_job(file,
		&(struct job){.host = "no\x01"
				      "de",
			.ticks = 5,
			.workers = 2,
			.name = "bad\n\xff<b>"});
	open_run(&path, 1);
	assert_non_null(strstr(chart("proc.mem.rss", (struct plot_query){.per = PLOT_PROCESS})->curve[0].name,
		"bad\\n\\xff<b> 100"));
	/* No tick, and one. */
	for (int64_t ticks = 0; ticks < 2; ticks++) {
		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		set_memory(&m, 0, 256, 0);
		if (ticks)
			maker_tick(&m, 0);
		maker_finish(&m, NULL);
		open_run(&path, 1);
		assert_int_equal(ask("proc.mem.rss", (struct plot_query){.nr = 0}), ticks ? 0 : -ENOENT);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_one_metric_is_one_curve),
		TEST(test_units_have_charts_of_their_own),
		TEST(test_the_largest_keep_their_names),
		TEST(test_one_process),
		TEST(test_groups),
		TEST(test_many_instances_of_a_share_are_a_heat_map),
		TEST(test_nodes),
		TEST(test_wrong_questions),
		TEST(test_names_are_escaped_and_empty_runs_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
