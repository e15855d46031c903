/* analysis/compare and document/compare: runs of known figures against one another. */
#include "query_maker.h"

#include "document/compare.h"
#include "analysis/compare_charts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)
#define RUNS 8

/* One process for so many seconds. */
struct recipe {
	int64_t seconds;
	double cores;
	int64_t mib; /* in the middle third three times as much */
	int64_t begin_ms,
		phase_ms; /* when "load" begins, and when it ends and "solve" begins; 0: no phases */
	int64_t read;	  /* bytes, at the end */
	const char *host, *group, *without;
	int64_t start_wall_ns;
};

static char path[RUNS][128];
static struct run *run[RUNS];
static struct compare_operand operand[RUNS];
static size_t nr;
static struct comparison *c;
static struct buf text;

static int setup(void **state)
{
	buf_init(&text, 1 << 24);
	nr = 0;
	c = NULL;
	return maker_setup(state);
}

static int teardown(void **state)
{
	compare_free(c);
	for (size_t i = 0; i < nr; i++)
		run_close(run[i]);
	buf_release(&text);
	return maker_teardown(state);
}

static void make(const char *to, const struct recipe *r)
{
	const char *group = r->group ? r->group : "tool";
	struct maker m;

	maker_open(&m, to,
		&(struct maker_options){.host = r->host ? r->host : "node1",
			.without = r->without,
			.start_wall_ns = r->start_wall_ns,
			.interval_ns = SECOND,
			.groups = group,
			.groups_len = strlen(group)});
	maker_group(&m, 0, group, "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, group, strlen(group));
	for (int64_t i = 0; i <= r->seconds; i++) {
		bool middle = i * 3 > r->seconds && i * 3 < 2 * r->seconds;

		if (r->phase_ms && i * 1000 >= r->begin_ms && (i - 1) * 1000 < r->begin_ms)
			maker_event(&m, r->begin_ms * MILLI, "phase.begin", "name", "load");
		if (r->phase_ms && i * 1000 >= r->phase_ms && (i - 1) * 1000 < r->phase_ms) {
			maker_event(&m, r->phase_ms * MILLI, "phase.end", "name", "load");
			maker_event(&m, r->phase_ms * MILLI, "phase.begin", "name", "solve");
		}
		maker_set(&m, 0, "proc.io.read_chars", i == r->seconds ? r->read : 0);
		maker_set(&m, 0, "proc.cpu.time", (int64_t)((double)i * r->cores * 1e9));
		if (!r->without)
			set_memory(&m, 0, r->mib * MIB / 4096 * (middle ? 3 : 1), 0);
		maker_tick(&m, i * SECOND);
	}
	if (r->phase_ms)
		maker_event(&m, r->seconds * SECOND, "phase.end", "name", "solve");
	maker_finish(&m, "exit_status", INT64_C(0), NULL);
}

static void add(unsigned set, const struct recipe *r)
{
	const char *at = path[nr];
	struct buf err;

	snprintf(path[nr], sizeof(path[nr]), "%s/run-%zu.tacho", dir, nr);
	make(at, r);
	buf_init(&err, 1000);
	assert_int_equal(run_open(&at, 1, &run[nr], &err), 0);
	operand[nr] = (struct compare_operand){.name = at, .run = run[nr], .set = set};
	buf_release(&err);
	nr++;
}

static void compare(void)
{
	if (compare_read(operand, nr, NULL, &c, &text) < 0)
		fail_msg("%s", (char *)text.data);
}

static const struct compare_figure *figure(const char *name)
{
	const struct compare_figure *f = compare_find(c, name, &text);

	if (!f)
		fail_msg("%s", (char *)text.data);
	return f;
}

static bool warned(const char *words)
{
	for (size_t i = 0; i < c->nr_warnings; i++)
		if (strstr(c->warning[i], words))
			return true;
	return false;
}

static void test_figures_of_two_runs(void **state)
{
	struct compare_change change;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110});
	compare();
	assert_string_equal(c->set[0].title, "before");
	assert_string_equal(c->set[1].title, "after");
	change = compare_change(figure("wall"), 1);
	assert_near(change.difference, 30);
	assert_near(change.ratio, 2);
	assert_true(change.differs && !change.has_spread && !change.stands_out);
	change = compare_change(figure("cpu.total_s"), 1);
	assert_near(change.difference, 45);
	assert_near(change.ratio, 4);
	assert_near(figure("memory.rss")->of[0].mean, 300.0 * MIB);
	assert_near(compare_change(figure("memory.peak_rss_bytes"), 1).difference, 30.0 * MIB);
	/* Of groups, too. */
	assert_near(compare_change(figure("groups.tool.cpu.total_s"), 1).difference, 45);
	assert_int_equal(c->nr_warnings, 0);
	assert_int_equal(c->nr_phase_figures, 0);
}

static void test_repeated_runs_have_a_spread(void **state)
{
	const struct compare_figure *wall;

	(void)state;
	for (int64_t i = 0; i < 3; i++)
		add(0, &(struct recipe){.seconds = 30 + 2 * i, .cores = 1, .mib = 100});
	for (int64_t i = 0; i < 2; i++)
		add(1, &(struct recipe){.seconds = 33 + 2 * i, .cores = 2, .mib = 100});
	compare();
	wall = figure("wall_s");
	assert_int_equal(wall->of[0].nr, 3);
	assert_near(wall->of[0].mean, 32);
	assert_near(wall->of[0].least, 30);
	assert_near(wall->of[0].most, 34);
	assert_near(wall->of[0].deviation, 2);
	assert_near(wall->of[1].deviation, sqrt(2));
	/* Two seconds more where runs differ by four. */
	assert_true(compare_change(wall, 1).has_spread);
	assert_false(compare_change(wall, 1).stands_out);
	assert_false(compare_change(wall, 1).differs);
	/* Twice the CPU time is more than that. */
	assert_true(compare_change(figure("cpu.time"), 1).stands_out);
	assert_true(compare_change(figure("cpu.time"), 1).differs);
}

static void test_conditions(void **state)
{
	/* wall 30 → 60, CPU 15 → 60, RSS 300 MiB → 330 MiB */
	static const struct {
		const char *rule;
		bool met;
	} want[] = {
		{"memory.rss>+9%", true},
		{"memory.rss>+10%", false},
		{"memory.rss>=+10%", true},
		{"  memory.rss  >  +9.5 %", true},
		{"memory.rss<+10%", false},
		{"memory.rss<=+10%", true},
		{"memory.rss<-10%", false},
		{"memory.peak>+9%", true}, /* PSS is not known: RSS */
		{"memory.rss>+29MiB", true},
		{"memory.rss>+30MiB", false},
		{"memory.rss>330M", false},
		{"memory.rss>=330MiB", true},
		{"memory.rss<1G", true},
		{"wall>x1.9", true},
		{"wall>x2", false},
		{"wall>=x2", true},
		{"wall>+29s", true},
		{"wall>+1m", false},
		{"wall>59", true},
		{"wall_s>1m", false},
		{"cpu.total_s>x3.9", true},
		{"cores>0.9", true},
		{"cores<0.9", false},
		{"exit>0", false},
		{"exit>+5%", false}, /* nothing, and nothing more than nothing */
		{"exit>=+0%", true},
		{"io.read>+1000%", true}, /* from nothing to something */
		{"io.read>x1000", true},
		{"io.read<+10%", false},
		{"cpu.of_node_ratio>90%", false},
		{"groups.tool.cpu.total_s>+100%", true},
	};
	static const struct {
		const char *rule, *words;
	} wrong[] = {
		{"", "a condition is"},
		{"wall", "a condition is"},
		{">5", "a condition is"},
		{"wall>", "limit is missing"},
		{"wall>+", "limit is missing"},
		{"wall>+10 percent", "no number"},
		{"wall>10%", "say +10%"},
		{"wall>x", "limit is missing"},
		{"wall>xx2", "no number"},
		{"wall>+1e3", "no number"},
		{"memory.peaks>+10%", "did you mean 'memory.peak'?"},
		{"zzz>1", "there is no figure 'zzz'"},
		{"memory.peak_pss_bytes>+10%", "is not known of"},
	};
	struct compare_verdict v;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110, .read = 7000000});
	compare();
	for (size_t i = 0; i < c->nr_figures; i++) /* as on a kernel that does not tell it */
		if (!strcmp(c->figure[i].name, "memory.peak_pss_bytes"))
			c->figure[i].of[1] = (struct compare_values){.mean = NAN, .why = "forbidden"};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		if (compare_judge(c, want[i].rule, &v, &text) < 0)
			fail_msg("%s: %s", want[i].rule, (char *)text.data);
		if (v.met != want[i].met)
			fail_msg("%s is %s", want[i].rule, v.met ? "met" : "not met");
		assert_int_equal(v.set, 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		buf_reset(&text);
		assert_int_equal(compare_judge(c, wrong[i].rule, &v, &text), -EINVAL);
		if (!strstr((char *)text.data, wrong[i].words))
			fail_msg("'%s': %s", wrong[i].rule, (char *)text.data);
	}
}

static void test_means_decide_and_every_set_is_judged(void **state)
{
	struct compare_verdict v[2];

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100});
	add(1, &(struct recipe){.seconds = 20, .cores = 1, .mib = 100});
	add(2, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100});
	add(2, &(struct recipe){.seconds = 50, .cores = 1, .mib = 100});
	compare();
	assert_int_equal(c->nr_sets, 3);
	assert_string_equal(c->set[2].title, "run-2.tacho");
	assert_int_equal(compare_judge(c, "wall>+33%", v, &text), 0);
	assert_false(v[0].met);
	assert_true(v[1].met); /* 40 on average */
	assert_int_equal(compare_judge(c, "wall>+34%", v, &text), 0);
	assert_false(v[1].met);
}

static void test_what_makes_comparing_doubtful_is_said(void **state)
{
	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100});
	add(1, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100, .host = "node2"});
	compare();
	assert_true(warned("hosts differ: node1 and node2"));
}

/* A directory of runs that were made one after the other is hardly one run on several nodes. */
static void test_repeated_runs_in_a_directory_are_noticed(void **state)
{
	const char *both[] = {path[0], path[1]};
	struct buf err;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100, .start_wall_ns = 1000 * SECOND});
	add(1, &(struct recipe){.seconds = 30, .cores = 1, .mib = 100, .start_wall_ns = 2000 * SECOND});
	run_close(run[0]);
	buf_init(&err, 1000);
	assert_int_equal(run_open(both, 2, &run[0], &err), 0);
	buf_release(&err);
	operand[0].run = run[0];
	compare();
	assert_true(warned("one after the other"));
}

static void test_phases_by_name(void **state)
{
	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .phase_ms = 10500});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110, .phase_ms = 40000});
	compare();
	assert_true(c->nr_phase_figures > 2 * 3);
	assert_near(figure("phases.load.duration_s")->of[0].mean, 10.5);
	assert_near(figure("phases.load.duration_s")->of[1].mean, 40);
	assert_near(figure("phases.solve.duration_s")->of[1].mean, 20);
	assert_near(figure("phases.load.cpu_s")->of[0].mean, 5.25);
	assert_near(figure("phases.load.cpu_s")->of[1].mean, 40);
	assert_near(figure("phases.solve.cpu_s")->of[0].mean, 9.75);
	/* The middle third is in the second phase of the one, from its first tick on, and in the first of the
	 * other. */
	assert_near(figure("phases.load.peak_memory_bytes")->of[0].mean, 100.0 * MIB);
	assert_near(figure("phases.load.peak_memory_bytes")->of[1].mean, 330.0 * MIB);
	assert_near(figure("phases.solve.peak_memory_bytes")->of[0].mean, 300.0 * MIB);
	assert_near(figure("phases.solve.peak_memory_bytes")->of[1].mean, 110.0 * MIB);
}

/* What is the same is not told, and a phase of one side in a line. */
static void test_phases_that_matter_are_told(void **state)
{
	struct compare_page p = {0};
	const struct compare_style plain = {.utf8 = true}, all = {.utf8 = true, .all = true};

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .phase_ms = 10500});
	add(1, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .phase_ms = 10500});
	add(2, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100});
	compare();
	p.c = c;
	assert_int_equal(compare_text(&p, &plain, &text), 0);
	assert_null(strstr((char *)text.data, "phases."));
	assert_non_null(strstr((char *)text.data, ": load, solve\n"));
	assert_null(strstr((char *)text.data, "not known"));
	buf_reset(&text);
	assert_int_equal(compare_text(&p, &all, &text), 0);
	assert_non_null(strstr((char *)text.data, "phases.load.duration_s"));
	buf_reset(&text);
	assert_int_equal(compare_markdown(&p, &plain, &text), 0);
	assert_null(strstr((char *)text.data, "| phases."));
	assert_non_null(strstr((char *)text.data, ": load, solve\n"));
}

static void test_no_digits_of_noise(void **state)
{
	struct compare_values of[] = {{.nr = 1, .mean = 0.3, .least = 0.3, .most = 0.3},
		{.nr = 1, .mean = 0.1 + 0.2, .least = 0.1 + 0.2, .most = 0.1 + 0.2}};
	const struct compare_figure f = {.of = of};
	const struct compare_unit hertz = {.unit = UNIT_HERTZ};
	char shown[64];

	(void)state;
	assert_true(of[1].mean != of[0].mean);
	assert_true(compare_change(&f, 1).difference == 0);
	assert_true(compare_change(&f, 1).ratio == 1);
	assert_string_equal(compare_format(shown, &hertz, -0.0001, true), "0 Hz");
	assert_string_equal(compare_format(shown, &hertz, -20, true), "-20 Hz");
}

static const struct chart *chart_of(const struct compare_charts *f, const char *id)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->item[i].id, id))
			return &f->item[i];
	fail_msg("there is no chart %s", id);
	return NULL;
}

static void test_curves_by_time_and_by_phases(void **state)
{
	struct compare_charts *f = NULL;
	const struct chart *cpu;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .phase_ms = 10000});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110, .begin_ms = 20000, .phase_ms = 40000});
	compare();
	assert_int_equal(compare_charts_make(c, false, NULL, &f, &text), 0);
	cpu = chart_of(f, "compare-cpu");
	assert_int_equal(cpu->nr_curves, 2);
	assert_string_equal(cpu->curve[0].name, "before");
	assert_true(cpu->curve[0].color != cpu->curve[1].color);
	assert_near(cpu->to_s, 60);
	assert_near(cpu->curve[0].average, 0.5);
	assert_near(cpu->curve[1].average, 1);
	assert_int_equal(cpu->nr_bands, 0);
	compare_charts_free(f);
	/* By phases: what was from 20 s to 40 s stands from 0 s to 10 s; the other 20 s keep their length. */
	assert_int_equal(compare_charts_make(c, true, NULL, &f, &text), 0);
	cpu = chart_of(f, "compare-cpu");
	assert_int_equal(cpu->nr_bands, 2);
	assert_near(cpu->to_s, 30);
	assert_near(cpu->curve[1].time_s[10], -10);
	assert_near(cpu->curve[1].time_s[20], 0);
	assert_near(cpu->curve[1].time_s[30], 5);
	assert_near(cpu->curve[1].time_s[40], 10);
	assert_near(cpu->curve[1].time_s[50], 20);
	assert_near(cpu->curve[0].time_s[20], 20);
	assert_null(f->note);
	compare_charts_free(f);
}

static void test_without_common_phases_time_is_kept(void **state)
{
	struct compare_charts *f = NULL;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .phase_ms = 10000});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110});
	compare();
	assert_int_equal(compare_charts_make(c, true, NULL, &f, &text), 0);
	assert_non_null(strstr(f->note, "No phase has the same name"));
	assert_near(chart_of(f, "compare-cpu")->curve[1].time_s[40], 40);
	compare_charts_free(f);
}

/* ---- documents ---- */

static int paint(void *arg, const struct chart *f, bool dark, struct buf *out)
{
	(void)arg;
	buf_addf(out, "<svg id=\"%s\" class=\"%d\"/>", f->id, dark);
	return 0;
}

static const struct compare_style plain = {.utf8 = true, .width = 80};

static void test_the_table_tells_what_matters_and_differs(void **state)
{
	struct compare_verdict v;
	struct compare_page page = {.verdict = &v, .nr_verdicts = 1};
	struct compare_style all = {.all = true, .width = 80};

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110});
	compare();
	page.c = c;
	assert_int_equal(compare_judge(c, "wall>+50%", &v, &text), 0);
	buf_reset(&text);
	assert_int_equal(compare_text(&page, &plain, &text), 0);
	assert_non_null(strstr((char *)text.data, "+30.0s  x2.00"));
	assert_non_null(strstr((char *)text.data, "+30 MiB  x1.10"));
	assert_non_null(
		strstr((char *)text.data, "failed  wall>+50%: wall time was 30.0s and is 1m00s: +100.0 %"));
	assert_null(strstr((char *)text.data, "interval_s"));	  /* the same, and of no interest */
	assert_null(strstr((char *)text.data, "processes.seen")); /* of interest, and the same */
	assert_null(strchr((char *)text.data, '\033'));
	buf_reset(&text);
	assert_int_equal(compare_text(&page, &all, &text), 0);
	assert_non_null(strstr((char *)text.data, "interval_s"));
	for (const char *p = (char *)text.data; *p; p++)
		assert_true((*p >= ' ' && *p < 0x7f) || *p == '\n');
}

static void test_spread_is_told(void **state)
{
	struct compare_page page = {.nr_verdicts = 0};

	(void)state;
	for (int64_t i = 0; i < 2; i++)
		add(0, &(struct recipe){.seconds = 30 + 2 * i, .cores = 1, .mib = 100});
	for (int64_t i = 0; i < 2; i++)
		add(1, &(struct recipe){.seconds = 31 + 2 * i, .cores = 2, .mib = 100});
	compare();
	page.c = c;
	assert_int_equal(compare_text(&page, &plain, &text), 0);
	assert_non_null(strstr((char *)text.data, "31.0s ±4.6%"));
	assert_non_null(strstr((char *)text.data, "x1.03  ~"));
	assert_non_null(strstr((char *)text.data, "x2.06  *"));
	assert_non_null(strstr((char *)text.data, "standard deviation"));
	/* In a narrow terminal the ratio goes before a line is broken. */
	buf_reset(&text);
	assert_int_equal(compare_text(&page, &(struct compare_style){.utf8 = true, .width = 60}, &text), 0);
	assert_null(strstr((char *)text.data, "x2.06  *"));
	assert_non_null(strstr((char *)text.data, "difference"));
}

/* Ratios have two digits, however small; what is next to nothing is not nothing. */
static void test_small_ratios(void **state)
{
	struct compare_page page = {.nr_verdicts = 0};

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 1, .mib = 1000});
	add(1, &(struct recipe){.seconds = 30, .cores = 1, .mib = 90});
	compare();
	page.c = c;
	assert_int_equal(compare_text(&page, &plain, &text), 0);
	assert_non_null(strstr((char *)text.data, "x0.09"));
	buf_reset(&text);
	compare_free(c);
	c = NULL;
	add(2, &(struct recipe){.seconds = 30, .cores = 1, .mib = 2});
	compare();
	page.c = c;
	assert_int_equal(compare_text(&page, &plain, &text), 0);
	assert_non_null(strstr((char *)text.data, "<x0.01"));
}

static void test_names_do_no_harm(void **state)
{
	struct compare_page page = {.painter = &(struct painter){.svg = paint}, .picture = "plots/%s.png"};
	struct compare_charts *f = NULL;

	(void)state;
	add(0, &(struct recipe){.seconds = 30, .cores = 0.5, .mib = 100, .group = "<script>|`*\"\x01\xff"});
	add(1, &(struct recipe){.seconds = 60, .cores = 1, .mib = 110, .group = "<script>|`*\"\x01\xff"});
	compare();
	assert_int_equal(compare_charts_make(c, false, NULL, &f, &text), 0);
	page.c = c;
	page.chart = f->item;
	page.nr_charts = f->nr;
	assert_int_equal(compare_html(&page, &plain, &text), 0);
	assert_null(strstr((char *)text.data, "<script"));
	assert_non_null(strstr((char *)text.data, "&#60;script&#62;|"));
	assert_non_null(strstr((char *)text.data, "data:image/svg+xml,"));
	assert_non_null(strstr((char *)text.data, "class=\"dark\""));
	buf_reset(&text);
	assert_int_equal(compare_markdown(&page, &plain, &text), 0);
	assert_non_null(strstr((char *)text.data, "groups: \\<script\\>\\|\\`\\*"));
	assert_non_null(strstr((char *)text.data, "](plots/compare-cpu.png)"));
	buf_reset(&text);
	assert_int_equal(compare_text(&page, &plain, &text), 0);
	assert_null(strchr((char *)text.data, '\x01'));
	buf_reset(&text);
	assert_int_equal(compare_json(&page, &text), 0);
	assert_null(strchr((char *)text.data, '\x01'));
	compare_charts_free(f);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_figures_of_two_runs),
		TEST(test_repeated_runs_have_a_spread),
		TEST(test_conditions),
		TEST(test_means_decide_and_every_set_is_judged),
		TEST(test_what_makes_comparing_doubtful_is_said),
		TEST(test_repeated_runs_in_a_directory_are_noticed),
		TEST(test_phases_by_name),
		TEST(test_phases_that_matter_are_told),
		TEST(test_no_digits_of_noise),
		TEST(test_curves_by_time_and_by_phases),
		TEST(test_without_common_phases_time_is_kept),
		TEST(test_the_table_tells_what_matters_and_differs),
		TEST(test_spread_is_told),
		TEST(test_small_ratios),
		TEST(test_names_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
