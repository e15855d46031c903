/* analysis/: the table of panels, what is read for it, and the charts that come of it. The jobs' use of the
 * machine is known, so every curve can be said beforehand. */
#include "job_maker.h"

#include "collect/collector.h"
#include "query/derived.h"
#include "analysis/palette.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const one[] = {file};

static struct charts *charts_of(const struct analysis *s)
{
	struct charts *f = NULL;

	assert_int_equal(charts_make(s, &f), 0);
	return f;
}

/* ---- the table ---- */

static bool is_metric(const char *name)
{
	if (derived_find(name))
		return true;
	for (const struct collector *const *c = collectors; *c; c++)
		for (size_t i = 0; i < (*c)->nr_metrics; i++)
			if (!strcmp((*c)->metric[i].name, name))
				return true;
	return false;
}

static void expect_metric(const struct panel *p, const char *name)
{
	if (name && !is_metric(name))
		fail_msg("panel %s: there is no metric %s", p->id, name);
}

static void test_every_panel_is_of_metrics_that_exist(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_panels; i++) {
		assert_non_null(panels[i].metric[0]);
		for (unsigned k = 0; k < PANEL_METRICS; k++)
			expect_metric(&panels[i], panels[i].metric[k]);
		for (unsigned k = 0; k < PANEL_LEVELS; k++) {
			expect_metric(&panels[i], panels[i].level[k]);
			assert_int_equal(!panels[i].level[k], !panels[i].level_label[k]);
		}
	}
}

static void test_panels_have_ids_of_their_own_and_stand_by_section(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_panels; i++) {
		const struct panel *p = &panels[i];

		assert_int_equal(strspn(p->id, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(p->id));
		for (size_t k = 0; k < i; k++) {
			bool together = p->when == PANEL_ALWAYS || panels[k].when == PANEL_ALWAYS ||
				p->when == panels[k].when;

			if (together && !strcmp(p->id, panels[k].id))
				fail_msg("two panels are called %s", p->id);
			if (!strcmp(p->section, panels[k].section) &&
				strcmp(p->section, panels[i - 1].section))
				fail_msg("section %s is in two pieces", p->section);
		}
	}
}

static void test_the_ids_that_others_rely_on(void **state)
{
	static const char *const agreed[] = {"cpu", "cores-heat", "memory", "memory-views", "io", "disk",
		"network", "network-packets", "interconnect", "interconnect-packets", "membw", "pressure",
		"cgroup", "gpu-util", "gpu-memory", "gpu-power", "power", "processes-cpu", "processes-memory",
		"process-count", "timeline", "tool-uss", "tool-rss-uss", "tool-total", "tool-cpu",
		"tool-cpu-time", "tool-instances", "perf-ipc"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(agreed); i++) {
		size_t k = 0;

		while (k < nr_panels && strcmp(panels[k].id, agreed[i]))
			k++;
		if (k == nr_panels)
			fail_msg("there is no panel %s", agreed[i]);
	}
}

/* ---- one node ---- */

static void test_cpu_of_a_job_with_its_limit_and_peak(void **state)
{
	(void)state;
	make_job(file, &(struct job){.ticks = 20, .workers = 3});
	{
		struct analysis *s = analysis_of(one, 1, NULL);
		struct charts *f = charts_of(s);
		const struct chart *c = chart_named(f, "cpu");

		assert_non_null(c);
		assert_int_equal(c->nr_curves, 1);
		/* 0.1 + 0.2 + 0.3 CPUs. */
		assert_near(c->curve[0].average, 0.6);
		assert_near(c->curve[0].most, 0.6);
		assert_int_equal(c->curve[0].nr, 20);
		assert_non_null(strstr(c->subtitle, "mean 0.6, max 0.6 at "));
		assert_int_equal(c->nr_levels, 1);
		assert_near(c->level[0].value, 2);
		assert_string_equal(c->level[0].label, "allocated: 2 cores");
		assert_true(c->level[0].stretch);
		assert_int_equal(c->nr_notes, 1);
		assert_string_equal(c->note[0].text, "peak 0.6");
		assert_near(c->to_s, 19);
		assert_null(c->footnote);
		charts_free(f);
		analysis_end(s);
	}
}

static void test_limits_far_above_do_not_flatten_the_curve(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 5, .workers = 1});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "memory");
	assert_non_null(c);
	/* A MiB of a GiB. */
	assert_near(c->level[0].value, 1 << 30);
	assert_false(c->level[0].stretch);
	assert_non_null(chart_curve_named(c, "RSS, summed"));
	assert_near(chart_curve_named(c, "RSS, summed")->most, 1 << 20);
	charts_free(f);
	analysis_end(s);
}

static void test_the_heat_map_is_of_cpus_not_of_their_sum(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 5, .workers = 1});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "cores-heat");
	assert_non_null(c);
	assert_int_equal(c->form, CHART_HEAT);
	assert_int_equal(c->nr_curves, 2);
	assert_string_equal(c->curve[0].name, "cpu0");
	assert_near(c->curve[0].most, 1);
	assert_near(c->curve[1].most, 0);
	assert_near(c->y_most, 1);
	charts_free(f);
	analysis_end(s);
}

static void test_what_was_not_recorded_has_no_panel(void **state)
{
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 5, .workers = 1});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	assert_null(chart_named(f, "gpu-util"));
	assert_null(chart_named(f, "interconnect"));
	assert_null(chart_named(f, "power"));
	assert_null(chart_named(f, "perf-ipc"));
	/* No process was started after the first: zero all along. */
	assert_null(chart_named(f, "process-starts"));
	charts_free(f);
	analysis_end(s);
}

static void test_too_short_to_draw(void **state)
{
	(void)state;
	for (int64_t ticks = 0; ticks < 2; ticks++) {
		struct charts *f;
		struct analysis *s;

		make_job(file, &(struct job){.ticks = ticks, .workers = 1});
		s = analysis_of(one, 1, NULL);
		f = charts_of(s);
		assert_int_equal(f->nr, 0);
		charts_free(f);
		analysis_end(s);
	}
}

static void test_only_a_part_of_the_time(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 50, .workers = 1});
	s = analysis_of(one, 1, &(struct analysis_options){.from_s = 10, .to_s = 20});
	f = charts_of(s);
	c = chart_named(f, "memory");
	assert_non_null(c);
	assert_near(c->from_s, 10);
	assert_near(c->to_s, 20);
	for (size_t i = 0; i < c->curve[0].nr; i++)
		assert_in_range((int)c->curve[0].time_s[i], 10, 20);
	charts_free(f);
	analysis_end(s);
}

static void test_a_reduced_chart_says_so(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 600, .workers = 2});
	s = analysis_of(one, 1, &(struct analysis_options){.from_s = NAN, .to_s = NAN, .points = 100});
	f = charts_of(s);
	c = chart_named(f, "memory");
	assert_non_null(c);
	assert_in_range(c->curve[0].nr, 50, 200);
	assert_non_null(c->footnote);
	assert_non_null(strstr(c->footnote, "each point stands for "));
	assert_non_null(strstr(c->footnote, "the band is its range"));
	/* Areas are means: what they came to at most is in the sum. */
	c = chart_named(f, "processes-cpu");
	assert_non_null(c);
	assert_non_null(c->total);
	assert_int_equal(c->total->nr, c->curve[0].nr);
	assert_ptr_not_equal(c->total->high, c->total->mean);
	assert_non_null(strstr(c->footnote, "the most of the sum"));
	assert_near(c->total->most, c->note[0].value);
	charts_free(f);
	analysis_end(s);
}

/* ---- processes ---- */

static void test_top_processes_are_named_and_the_rest_is_one(void **state)
{
	const struct chart *c;
	double sum = 0;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 40});
	s = analysis_of(one, 1, &(struct analysis_options){.from_s = NAN, .to_s = NAN, .processes = 12});
	f = charts_of(s);
	c = chart_named(f, "processes-cpu");
	assert_non_null(c);
	assert_int_equal(c->form, CHART_STACKED);
	assert_int_equal(c->nr_curves, PALETTE_SIZE + 1);
	/* The last worker uses most: 4 CPUs. */
	assert_string_equal(c->curve[0].name, "worker (1039)");
	assert_near(c->curve[0].most, 4.0);
	assert_int_equal(c->curve[0].color, 0);
	assert_string_equal(c->curve[PALETTE_SIZE].name, "28 others");
	assert_int_equal(c->curve[PALETTE_SIZE].color, CHART_OTHERS);
	for (size_t i = 0; i < c->nr_curves; i++)
		sum += c->curve[i].most;
	assert_near(sum, 82.0);
	assert_non_null(strstr(c->subtitle, "sum: mean 82, max 82"));
	charts_free(f);
	analysis_end(s);
}

static void test_those_kept_beyond_the_palette_are_folded(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 40});
	s = analysis_of(one, 1, &(struct analysis_options){.from_s = NAN, .to_s = NAN, .processes = 30});
	assert_int_equal(s->nr_keep, 30);
	f = charts_of(s);
	c = chart_named(f, "processes-memory");
	assert_non_null(c);
	assert_int_equal(c->nr_curves, PALETTE_SIZE + 1);
	assert_string_equal(c->curve[PALETTE_SIZE].name, "28 others");
	/* 1 + 2 + ... + 28 MiB. */
	assert_near(c->curve[PALETTE_SIZE].most, 406.0 * (1 << 20));
	charts_free(f);
	analysis_end(s);
}

static void test_a_process_has_one_colour_everywhere(void **state)
{
	size_t seen = 0;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 5});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	for (size_t i = 0; i < f->nr; i++) {
		const struct chart_curve *c = chart_curve_named(&f->item[i], "worker (1002)");

		if (!c)
			continue;
		seen++;
		assert_int_equal(
			c->color, chart_curve_named(chart_named(f, "processes-cpu"), "worker (1002)")->color);
		assert_int_equal(f->source[i][c - f->item[i].curve].process, 2);
	}
	assert_in_range(seen, 4, 20);
	charts_free(f);
	analysis_end(s);
}

static void test_hostile_names_are_escaped(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 5, .workers = 1, .name = "a\n\x1b[31m\xff</script>"});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "processes-cpu");
	assert_string_equal(c->curve[0].name, "a\\n\\x1b[31m\\xff</script> (1000)");
	charts_free(f);
	analysis_end(s);
}

static void test_lanes_of_the_timeline_do_not_overlap(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 100, .workers = 5, .brief = 3000});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "timeline");
	assert_non_null(c);
	assert_int_equal(c->form, CHART_TIMELINE);
	assert_in_range(c->nr_lanes, 6, 40);
	assert_in_range(c->nr_spans, 6, 800);
	for (size_t i = 0; i < c->nr_spans; i++)
		for (size_t k = 0; k < i; k++) {
			const struct chart_span *a = &c->span[i], *b = &c->span[k];
			double end_a = isnan(a->to_s) ? c->to_s : a->to_s;
			double end_b = isnan(b->to_s) ? c->to_s : b->to_s;

			if (a->lane == b->lane && a->from_s < end_b && b->from_s < end_a)
				fail_msg("%s and %s are in one lane at once", a->name, b->name);
		}
	for (size_t i = 0; i < c->nr_spans; i++)
		assert_true(c->span[i].lane < c->nr_lanes);
	charts_free(f);
	analysis_end(s);
}

static void test_the_workers_of_a_timeline_have_their_curves(void **state)
{
	const struct chart *c;
	size_t found = 0, others = 0;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 100, .workers = 5, .brief = 3000});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "timeline");
	for (size_t i = 0; i < c->nr_spans; i++) {
		const struct chart_span *span = &c->span[i];

		others += strstr(span->name, "others") != NULL;
		if (strcmp(span->name, "worker (1004)"))
			continue;
		found++;
		assert_true(isnan(span->to_s));
		assert_true(span->curve < c->nr_curves);
		assert_string_equal(c->curve[span->curve].name, span->name);
		assert_near(c->curve[span->curve].most, 0.5);
	}
	assert_int_equal(found, 1);
	assert_true(others > 0);
	charts_free(f);
	analysis_end(s);
}

/* ---- tools ---- */

static const char *const tool[] = {
	"tool-uss", "tool-rss-uss", "tool-total", "tool-cpu", "tool-cpu-time", "tool-instances"};

static void test_six_plots_by_tool(void **state)
{
	const struct chart_curve *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 4, .groups = true});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	for (size_t i = 0; i < ARRAY_SIZE(tool); i++) {
		const char *name = !strcmp(tool[i], "tool-rss-uss") ? "odd USS" : "odd";

		if (!chart_curve_named(chart_named(f, tool[i]), name))
			fail_msg("%s has no curve '%s'", tool[i], name);
		assert_int_equal(chart_curve_named(chart_named(f, tool[i]), name)->color, 1);
		assert_false(chart_curve_named(chart_named(f, tool[i]), name)->dashed);
	}
	c = chart_curve_named(chart_named(f, "tool-rss-uss"), "odd RSS");
	assert_non_null(c);
	assert_true(c->dashed);
	assert_int_equal(c->color, 1);
	/* Workers 1 and 3: 0.2 + 0.4 CPUs, 2 + 4 MiB. */
	assert_near(chart_curve_named(chart_named(f, "tool-cpu"), "odd")->most, 0.6);
	assert_near(chart_curve_named(chart_named(f, "tool-uss"), "odd")->most, 6 << 20);
	assert_near(chart_curve_named(chart_named(f, "tool-instances"), "odd")->most, 2);
	assert_int_equal(chart_named(f, "tool-total")->form, CHART_STACKED);
	assert_string_equal(chart_named(f, "tool-total")->note[0].text, "peak 10 MiB");
	charts_free(f);
	analysis_end(s);
}

static void test_cpu_time_by_tool_never_falls(void **state)
{
	const struct chart_curve *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 30, .workers = 4, .groups = true});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_curve_named(chart_named(f, "tool-cpu-time"), "even");
	assert_non_null(c);
	for (size_t i = 1; i < c->nr; i++)
		assert_true(c->mean[i] >= c->mean[i - 1]);
	/* 0.1 + 0.3 CPUs for 29 s. */
	assert_true(fabs(c->most - 11.6) < 1e-6);
	charts_free(f);
	analysis_end(s);
}

static void test_without_groups_the_job_stands_in(void **state)
{
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 4});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	for (size_t i = 0; i < ARRAY_SIZE(tool); i++)
		if (!chart_named(f, tool[i]))
			fail_msg("there is no %s", tool[i]);
	assert_near(chart_named(f, "tool-cpu-time")->curve[0].most, 9.0);
	assert_non_null(chart_curve_named(chart_named(f, "tool-uss"), "worker (1003)"));
	assert_string_equal(chart_named(f, "tool-uss")->subtitle, "highest 4 MiB: worker (1003) at 0s");
	charts_free(f);
	analysis_end(s);
}

/* ---- several nodes ---- */

#define NODES 20

static void make_nodes(unsigned nr, char (*path)[128], const char **list)
{
	for (unsigned i = 0; i < nr; i++) {
		char host[16];

		snprintf(host, sizeof(host), "n%02u", i);
		snprintf(path[i], sizeof(path[i]), "%s", file_in(host));
		list[i] = path[i];
		make_job(path[i], &(struct job){.ticks = 10, .workers = i + 1, .host = host});
	}
}

static void test_nodes_have_charts_of_their_own_and_one_together(void **state)
{
	char path[3][128];
	const char *list[3];
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_nodes(3, path, list);
	s = analysis_of(list, 3, NULL);
	f = charts_of(s);
	c = chart_named(f, "cpu");
	assert_non_null(c);
	assert_string_equal(c->title, "CPU of the job – total of 3 nodes");
	/* 0.1, 0.3 and 0.6. */
	assert_true(fabs(c->curve[0].most - 1.0) < 1e-6);
	assert_near(c->level[0].value, 6);
	assert_near(chart_named(f, "cpu-n01")->curve[0].most, 0.3);
	assert_near(chart_named(f, "cpu-n01")->level[0].value, 2);
	assert_string_equal(chart_named(f, "cpu-n01")->title, "CPU of the job – n01");
	c = chart_named(f, "cpu-by-node");
	assert_int_equal(c->nr_curves, 3);
	assert_string_equal(c->curve[2].name, "n02");
	assert_near(c->level[0].value, 2);
	/* Memory is compared by PSS, and said so. */
	assert_non_null(strstr(chart_named(f, "memory-by-node")->title, "PSS"));
	assert_near(chart_named(f, "memory-by-node")->curve[1].most, 3 << 20);
	/* Shares are averaged. */
	assert_non_null(strstr(chart_named(f, "node-cpu")->title, "average of 3 nodes"));
	charts_free(f);
	analysis_end(s);
}

static void test_of_many_nodes_those_that_differ_most(void **state)
{
	static char path[NODES][128];
	const char *list[NODES];
	size_t own = 0;
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_nodes(NODES, path, list);
	s = analysis_of(list, NODES, NULL);
	f = charts_of(s);
	for (size_t i = 0; i < f->nr; i++)
		own += f->node[i] >= 0 && !strcmp(f->panel[i]->row->id, "cpu");
	assert_int_equal(own, 16);
	assert_non_null(chart_named(f, "cpu-n00"));
	assert_non_null(chart_named(f, "cpu-n19"));
	c = chart_named(f, "cpu-by-node");
	assert_non_null(c);
	assert_int_equal(c->nr_curves, 9);
	assert_string_equal(c->curve[8].name, "mean of all nodes");
	assert_int_equal(c->curve[8].color, CHART_OTHERS);
	assert_non_null(chart_curve_named(c, "n19"));
	assert_non_null(f->note);
	charts_free(f);
	analysis_end(s);
}

static void test_every_chart_has_an_id_of_its_own(void **state)
{
	const char *list[2] = {NULL, NULL};
	char path[2][128];
	struct charts *f;
	struct analysis *s;

	(void)state;
	/* Two recordings of one host whose name is no file name. */
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s", file_in(i ? "b" : "a"));
		list[i] = path[i];
		make_job(path[i], &(struct job){.ticks = 5, .workers = 1, .host = "N/0 <1>"});
	}
	s = analysis_of(list, 2, NULL);
	f = charts_of(s);
	assert_true(f->nr > 10);
	/* What the host has is not twice there. */
	assert_near(chart_named(f, "cpu")->level[0].value, 2);
	for (size_t i = 0; i < f->nr; i++) {
		const char *id = f->item[i].id;

		assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(id));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(id, f->item[k].id);
	}
	charts_free(f);
	analysis_end(s);
}

/* ---- events, counters ---- */

static void test_hundreds_of_events_become_few_marks(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 300, .workers = 1, .events = 900});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "cpu");
	assert_in_range(c->nr_marks, 10, 80);
	for (size_t i = 1; i < c->nr_marks; i++)
		assert_true(c->mark[i].time_s > c->mark[i - 1].time_s);
	assert_non_null(strstr(c->mark[0].label, "here"));
	assert_non_null(strstr(c->mark[0].label, " ×"));
	charts_free(f);
	analysis_end(s);
}

static void test_phases_are_bands(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 100, .workers = 1, .phase = true});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "cpu");
	assert_int_equal(c->nr_bands, 1);
	assert_string_equal(c->band[0].label, "build <i>");
	assert_near(c->band[0].from_s, 25);
	assert_near(c->band[0].to_s, 50);
	charts_free(f);
	analysis_end(s);
}

/* Whatever is left of a recording is told, and nothing falls over. */
static void test_damaged_recordings(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct charts *f;
		struct analysis *s;

		make_job(file,
			&(struct job){.ticks = 400, .workers = 9, .brief = 200, .events = 9, .groups = true});
		damage(file, 0.1 + 0.045 * i);
		s = analysis_of(one, 1, NULL);
		f = charts_of(s);
		for (size_t k = 0; k < f->nr; k++)
			assert_true(f->item[k].nr_curves > 0 || f->item[k].nr_spans > 0);
		charts_free(f);
		analysis_end(s);
	}
}

static void test_counters_of_this_run_have_panels(void **state)
{
	const struct chart *c;
	struct charts *f;
	struct analysis *s;

	(void)state;
	make_job(file, &(struct job){.ticks = 10, .workers = 1, .counters = true});
	s = analysis_of(one, 1, NULL);
	f = charts_of(s);
	c = chart_named(f, "perf-cycles");
	assert_non_null(c);
	assert_true(c->per_second);
	assert_string_equal(c->title, "Event cycles");
	assert_true(fabs(c->curve[0].average - 1000) < 1e-6);
	charts_free(f);
	analysis_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_panel_is_of_metrics_that_exist),
		cmocka_unit_test(test_panels_have_ids_of_their_own_and_stand_by_section),
		cmocka_unit_test(test_the_ids_that_others_rely_on),
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, maker_setup, maker_teardown)
		WITH_FILES(test_cpu_of_a_job_with_its_limit_and_peak),
		WITH_FILES(test_limits_far_above_do_not_flatten_the_curve),
		WITH_FILES(test_the_heat_map_is_of_cpus_not_of_their_sum),
		WITH_FILES(test_what_was_not_recorded_has_no_panel),
		WITH_FILES(test_too_short_to_draw),
		WITH_FILES(test_only_a_part_of_the_time),
		WITH_FILES(test_a_reduced_chart_says_so),
		WITH_FILES(test_top_processes_are_named_and_the_rest_is_one),
		WITH_FILES(test_those_kept_beyond_the_palette_are_folded),
		WITH_FILES(test_a_process_has_one_colour_everywhere),
		WITH_FILES(test_hostile_names_are_escaped),
		WITH_FILES(test_lanes_of_the_timeline_do_not_overlap),
		WITH_FILES(test_the_workers_of_a_timeline_have_their_curves),
		WITH_FILES(test_six_plots_by_tool),
		WITH_FILES(test_cpu_time_by_tool_never_falls),
		WITH_FILES(test_without_groups_the_job_stands_in),
		WITH_FILES(test_nodes_have_charts_of_their_own_and_one_together),
		WITH_FILES(test_of_many_nodes_those_that_differ_most),
		WITH_FILES(test_every_chart_has_an_id_of_its_own),
		WITH_FILES(test_hundreds_of_events_become_few_marks),
		WITH_FILES(test_phases_are_bands),
		WITH_FILES(test_damaged_recordings),
		WITH_FILES(test_counters_of_this_run_have_panels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
