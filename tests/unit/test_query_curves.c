/* query/curves and query/spread: many curves from one pass, reduced without losing peaks. */
#include "long_recording.h"
#include "query_maker.h"

#include "query/curves.h"
#include "query/spread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PAGE_BYTES 4096.0

static struct curves *curves_of_paths(const char *const *path, size_t nr_paths,
	const struct curves_query *query, size_t nr, const struct curves_options *o)
{
	struct curves *s = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 1000);
	if (run_open(path, nr_paths, &run, &err) < 0 || curves_read(run, query, nr, o, &s, &err) < 0)
		fail_msg("%s", (char *)err.data);
	run_close(run);
	buf_release(&err);
	return s;
}

static struct curves *curves_of(const struct curves_query *query, size_t nr, const struct curves_options *o)
{
	const char *path = file;

	return curves_of_paths(&path, 1, query, nr, o);
}

static struct curves_line *line_of(struct curves *s, unsigned query, const char *name)
{
	for (size_t i = 0; i < s->nr_lines; i++)
		if (s->line[i].query == query && (!name || !strcmp(s->line[i].name, name)))
			return &s->line[i];
	fail_msg("query %u has no line %s", query, name ? name : "");
	return NULL;
}

static void expect_line(
	const struct curves *s, const struct curves_line *line, const double *expected, size_t nr)
{
	assert_int_equal(s->node[line->node].nr_times, nr);
	for (size_t i = 0; i < nr; i++)
		if (isnan(expected[i]) ? !isnan(line->mean[i])
				       : !(fabs((double)line->mean[i] - expected[i]) <=
						 1e-6 * MAX(1, fabs(expected[i]))))
			fail_msg("line %s of query %u at %zu is %g, not %g", line->name, line->query, i,
				(double)line->mean[i], expected[i]);
}

#define EXPECT(s, line, ...) \
	expect_line(s, line, (double[]){__VA_ARGS__}, ARRAY_SIZE(((double[]){__VA_ARGS__})))

/* ---- spread ---- */

static void test_a_spread(void **state)
{
	struct spread *s = spread_new();

	(void)state;
	assert_true(isnan(spread_quantile(s, 0.5)));
	assert_true(isnan(spread_mean(s)));
	spread_add(s, NAN, 1);
	spread_add(s, 5, 0);
	spread_add(s, 5, -1);
	spread_add(s, INFINITY, 1);
	assert_near(spread_weight(s), 0);
	for (int i = 1; i <= 100000; i++)
		spread_add(s, i, 0.1);
	assert_near(spread_weight(s), 10000);
	assert_near(spread_mean(s), 50000.5);
	for (double q = 0.001; q < 1; q += 0.001) {
		double got = spread_quantile(s, q), wanted = q * 100000;

		if (fabs(got - wanted) > 0.01 * wanted + 1)
			fail_msg("quantile %g is %g, not %g", q, got, wanted);
	}
	assert_near(spread_quantile(s, 0), 1);
	assert_near(spread_quantile(s, 1), 100000);
	spread_free(s);
}

static void test_a_spread_of_all_kinds_of_numbers(void **state)
{
	struct spread *s = spread_new();

	(void)state;
	/* Weighted by time: an hour of nothing, a minute of much. */
	spread_add(s, 0, 3600);
	spread_add(s, 2e9, 60);
	assert_near(spread_quantile(s, 0.5), 0);
	assert_near(spread_quantile(s, 0.999), 2e9);
	s = spread_free(s);
	s = spread_new();
	for (int i = -50; i <= 50; i++)
		spread_add(s, i, 1);
	assert_true(fabs(spread_quantile(s, 0.5)) <= 1);
	assert_true(fabs(spread_quantile(s, 0.1) + 40) <= 1);
	assert_true(fabs(spread_quantile(s, 0.9) - 40) <= 1);
	assert_near(spread_quantile(s, 0), -50);
	s = spread_free(s);
	s = spread_new();
	/* More powers of two than are told apart, and a weight that overflows any unit. */
	for (int i = -600; i < 600; i++)
		spread_add(s, ldexp(1, i), 1e12);
	assert_true(spread_quantile(s, 0.99) <= spread_quantile(s, 1));
	assert_true(spread_quantile(s, 0.01) >= spread_quantile(s, 0));
	spread_free(s);
}

/* ---- lines ---- */

/* Two users, two groups, three processes that come and go; a tick a second.
 *	pid   rss (pages) by tick      uid   groups
 *	100   10 20 30 40 50           1000  a
 *	101      5  5  5               1000  a b
 *	102         7  7  7            2000  b (late)
 */
static void make_people(void)
{
	static const char both[] = "a\0b";
	struct maker m;

	maker_open(&m, file, &(struct maker_options){.groups = both, .groups_len = sizeof(both)});
	maker_group(&m, 0, "a", "tree", false);
	maker_group(&m, 1, "b", "tree", false);
	maker_user = 1000;
	maker_join_in(&m, 0, 11, 100, 1, 0, false, "a", 1);
	for (int64_t i = 0; i < 5; i++) {
		if (i == 1)
			maker_join_in(&m, 1, 12, 101, 100, i * SECOND, false, both, 3);
		if (i == 2) {
			maker_user = 2000;
			maker_join_in(&m, 2, 13, 102, 1, 0, true, "b", 1);
		}
		if (i == 4)
			maker_gone(&m, 1, 12, i * SECOND, "event");
		maker_set(&m, 0, "proc.mem.rss", 10 * (i + 1));
		maker_set(&m, 0, "proc.cpu.time", i * SECOND / 2);
		if (i >= 1 && i < 4) {
			maker_set(&m, 1, "proc.mem.rss", 5);
			maker_set(&m, 1, "proc.cpu.time", i * SECOND);
		}
		if (i >= 2) {
			maker_set(&m, 2, "proc.mem.rss", 7);
			maker_set(&m, 2, "proc.cpu.time", 100 * SECOND + i * SECOND / 4);
		}
		maker_tick(&m, i * SECOND);
	}
	maker_user = -1;
	maker_finish(&m, NULL);
}

static void test_every_way_to_part_processes(void **state)
{
	static const struct curves_query query[] = {
		{.metric = "proc.mem.rss"},
		{.metric = "proc.mem.rss", .per = CURVES_GROUP},
		{.metric = "proc.mem.rss", .per = CURVES_USER},
		{.metric = "proc.mem.rss", .per = CURVES_PROCESS},
		{.metric = "proc.mem.rss", .per = CURVES_INSTANCE},
		{.metric = "proc.mem.rss", .group = "b"},
		{.metric = "proc.cpu.cores", .per = CURVES_USER},
	};
	const struct curves_process keep[] = {{0, 13}, {0, 11}, {1, 12}};
	const struct curves_options o = {.from_s = NAN, .to_s = NAN, .keep = keep, .nr_keep = 3};
	struct curves_line *line;
	const double p = PAGE_BYTES;
	struct curves *s;

	(void)state;
	make_people();
	s = curves_of(query, ARRAY_SIZE(query), &o);
	assert_int_equal(s->nr_nodes, 1);
	assert_int_equal(s->node[0].ticks, 5);
	assert_false(s->node[0].reduced);
	assert_near(s->node[0].step_s, 1);
	assert_near(s->node[0].end_s, 4);
	EXPECT(s, line_of(s, 0, "here"), 10 * p, 25 * p, 42 * p, 52 * p, 57 * p);
	EXPECT(s, line_of(s, 1, "a"), 10 * p, 25 * p, 35 * p, 45 * p, 50 * p);
	EXPECT(s, line_of(s, 1, "b"), NAN, 5 * p, 12 * p, 12 * p, 7 * p);
	EXPECT(s, line_of(s, 2, "1000"), 10 * p, 25 * p, 35 * p, 45 * p, 50 * p);
	EXPECT(s, line_of(s, 2, "2000"), NAN, NAN, 7 * p, 7 * p, 7 * p);
	line = line_of(s, 3, NULL); /* in the order of those who are kept */
	assert_int_equal(line[0].pid, 102);
	assert_int_equal(line[0].id, 13);
	assert_int_equal(line[1].pid, 100);
	assert_true(line[2].others);
	assert_int_equal(line[3].query, 4);
	EXPECT(s, &line[0], NAN, NAN, 7 * p, 7 * p, 7 * p);
	EXPECT(s, &line[1], 10 * p, 20 * p, 30 * p, 40 * p, 50 * p);
	EXPECT(s, &line[2], NAN, 5 * p, 5 * p, 5 * p, NAN);
	line = line_of(s, 4, NULL);
	assert_int_equal(line[1].id, 12);
	EXPECT(s, &line[1], NAN, 5 * p, 5 * p, 5 * p, NAN);
	EXPECT(s, line_of(s, 5, NULL), NAN, 5 * p, 12 * p, 12 * p, 7 * p);
	EXPECT(s, line_of(s, 6, "1000"), NAN, 1.5, 1.5, 1.5, 0.5);
	EXPECT(s, line_of(s, 6, "2000"), NAN, NAN, NAN, 0.25, 0.25);
	assert_ptr_equal(line->mean, line->high);
	curves_free(s);
}

static void test_numbers_of_a_line_are_weighted_by_time(void **state)
{
	static const int64_t at_ms[] = {0, 1000, 1500, 4000, 5000};
	static const int64_t rss[] = {10, 20, 40, 5, 100}, chars[] = {0, 100, 300, 300, 1300};
	static const struct curves_query query[] = {{.metric = "proc.mem.rss", .spread = true},
		{.metric = "proc.io.read_chars", .rate = true, .spread = true},
		{.metric = "tree.io.read_rate", .spread = true}};
	const struct curves_options part = {.from_s = 1.2, .to_s = 4.5};
	struct curves_line *line;
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(rss); i++) {
		maker_set(&m, 0, "proc.mem.rss", rss[i]);
		maker_set(&m, 0, "proc.io.read_chars", chars[i]);
		maker_tick(&m, at_ms[i] * MILLI);
	}
	maker_finish(&m, NULL);
	s = curves_of(query, 3, NULL);
	line = line_of(s, 0, NULL);
	/* Levels hold until the next tick. */
	assert_near(line->average, PAGE_BYTES * (10 * 1 + 20 * 0.5 + 40 * 2.5 + 5 * 1) / 5);
	assert_near(line->least, 5 * PAGE_BYTES);
	assert_near(line->most, 100 * PAGE_BYTES);
	assert_near(line->most_at_s, 5);
	assert_near(line->first, 10 * PAGE_BYTES);
	assert_near(line->last, 100 * PAGE_BYTES);
	assert_true(fabs(spread_quantile(line->spread, 0.6) / PAGE_BYTES / 40 - 1) < 0.01);
	/* Rates stand for the time before: their mean is what grew over all. */
	for (unsigned i = 1; i < 3; i++) {
		line = line_of(s, i, NULL);
		assert_near(line->average, 1300.0 / 5);
		assert_near(line->most, 1000);
		assert_near(line->most_at_s, 5);
		assert_near(line->least, 0);
		assert_near(spread_quantile(line->spread, 0.25), 0);
		EXPECT(s, line, NAN, 100, 400, 0, 1000);
	}
	curves_free(s);

	s = curves_of(query, 3, &part);
	assert_int_equal(s->node[0].ticks, 2);
	assert_near(s->node[0].time_s[0], 1.5);
	line = line_of(s, 0, NULL);
	EXPECT(s, line, 40 * PAGE_BYTES, 5 * PAGE_BYTES);
	assert_near(line->average, PAGE_BYTES * (40 * 2.5 + 5 * 0.5) / 3);
	assert_near(line->most, 40 * PAGE_BYTES);
	for (unsigned i = 1; i < 3; i++) {
		line = line_of(s, i, NULL);
		EXPECT(s, line, 400, 0);
		assert_near(line->average, 400 * 0.3 / 2.8);
	}
	curves_free(s);
}

static void test_who_rests_has_no_rate_until_he_moves(void **state)
{
	static const struct curves_query query[] = {{.metric = "proc.io.read_chars", .rate = true},
		{.metric = "proc.io.read_chars", .rate = true, .per = CURVES_INSTANCE}};
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 7; i++) {
		if (i != 2 && i != 3 && i != 4)
			maker_set(&m, 0, "proc.io.read_chars", 100 * i);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = curves_of(query, 2, NULL);
	EXPECT(s, line_of(s, 0, NULL), NAN, 100, 0, 0, 0, 400, 100);
	EXPECT(s, line_of(s, 1, NULL), NAN, 100, 0, 0, 0, 400, 100);
	assert_near(line_of(s, 0, NULL)->average, 100);
	curves_free(s);
}

static void test_a_group_that_is_found_later(void **state)
{
	static const struct curves_query query[] = {{.metric = "group.cores", .per = CURVES_GROUP},
		{.metric = "proc.mem.rss", .per = CURVES_GROUP}, {.metric = "group.cores", .group = "tool"},
		{.metric = "group.cpu", .per = CURVES_GROUP}};
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 6; i++) {
		if (i == 3) { /* what it did before is not the group's */
			maker_group(&m, 0, "tool", "expression", false);
			maker_join_in(&m, 0, 1, 100, 1, 0, false, "tool", 4);
		}
		maker_set(&m, 0, "proc.cpu.time", (10 + i) * SECOND);
		maker_set(&m, 0, "proc.mem.rss", 1);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = curves_of(query, ARRAY_SIZE(query), NULL);
	EXPECT(s, line_of(s, 0, "tool"), NAN, NAN, NAN, NAN, 1, 1);
	EXPECT(s, line_of(s, 3, "tool"), NAN, NAN, NAN, 1, 2, 3);
	assert_near(line_of(s, 0, "tool")->most, 1);
	EXPECT(s, line_of(s, 1, "tool"), NAN, NAN, NAN, PAGE_BYTES, PAGE_BYTES, PAGE_BYTES);
	EXPECT(s, line_of(s, 2, NULL), NAN, NAN, NAN, NAN, 1, 1);
	curves_free(s);
}

/* ---- reduction ---- */

static void make_work(const char *path, uint64_t seconds, uint32_t processes)
{
	const struct long_recording r = {.seconds = seconds, .hz = 1, .processes = processes};

	assert_int_equal(long_recording_write(path, &r), 0);
}

/* Points rise in time, and are between what was least and most there. */
static void expect_sound(const struct curves *s)
{
	for (size_t i = 0; i < s->nr_nodes; i++)
		for (size_t j = 1; j < s->node[i].nr_times; j++)
			assert_true(s->node[i].time_s[j] > s->node[i].time_s[j - 1]);
	for (size_t i = 0; i < s->nr_lines; i++) {
		const struct curves_line *line = &s->line[i];
		const struct curves_node *node = &s->node[line->node];

		for (size_t j = 0; j < node->nr_times; j++) {
			assert_int_equal(isnan(line->mean[j]) != 0, isnan(line->high[j]) != 0);
			if (node->lost[j])
				assert_true(isnan(line->mean[j]));
			if (isnan(line->mean[j]))
				continue;
			assert_true(line->low[j] <= line->mean[j] * 1.00001f + 1e-6f);
			assert_true(line->high[j] * 1.00001f + 1e-6f >= line->mean[j]);
			assert_true((double)line->high[j] <= line->most * 1.00001 + 1e-6);
			assert_true((double)line->low[j] * 1.00001 + 1e-6 >= line->least);
		}
	}
}

static void test_reduced_without_losing_peaks(void **state)
{
	static const struct curves_query query[] = {{.metric = "proc.mem.rss", .spread = true},
		{.metric = "proc.mem.rss", .per = CURVES_PROCESS}, {.metric = "tree.cores"},
		{.metric = "cpu.busy", .per = CURVES_INSTANCE}};
	const struct curves_options few = {.from_s = NAN, .to_s = NAN, .points = 100},
				    all = {.from_s = NAN, .to_s = NAN, .points = 5000};
	struct curves *s, *whole;
	struct curves_line *line, *same;
	double sum = 0, most = 0;

	(void)state;
	make_work(file, 3000, 6);
	whole = curves_of(query, ARRAY_SIZE(query), &all);
	s = curves_of(query, ARRAY_SIZE(query), &few);
	assert_false(whole->node[0].reduced);
	assert_int_equal(whole->node[0].nr_times, 3000);
	assert_true(s->node[0].reduced);
	assert_true(s->node[0].nr_times > 50 && s->node[0].nr_times <= 100);
	assert_int_equal(s->node[0].ticks, 3000);
	expect_sound(s);
	expect_sound(whole);
	assert_int_equal(s->nr_lines, whole->nr_lines);
	for (size_t i = 0; i < s->nr_lines; i++) { /* the numbers are of all ticks, whatever is drawn */
		line = &s->line[i];
		same = &whole->line[i];
		assert_string_equal(line->name, same->name);
		assert_near(line->average, same->average);
		assert_near(line->most, same->most);
		assert_near(line->most_at_s, same->most_at_s);
		assert_near(line->least, same->least);
	}
	line = line_of(s, 0, NULL);
	same = line_of(whole, 0, NULL);
	for (size_t i = 0; i < s->node[0].nr_times; i++)
		most = MAX(most, (double)line->high[i]);
	assert_near(most, (double)(float)line->most);
	assert_near(line->most_at_s, 1500); /* one tick of 16 GiB */
	assert_true(line->most > 16.0 * 1024 * 1024 * 1024);
	for (size_t i = 0; i < 2999; i++)
		sum += (double)same->mean[i];
	assert_true(fabs(sum / 2999 / line->average - 1) < 1e-6);
	assert_true(spread_quantile(line->spread, 0.5) < line->most / 2);
	curves_free(s);
	curves_free(whole);
}

static void test_what_is_lost_is_a_gap(void **state)
{
	static const struct curves_query query[] = {
		{.metric = "proc.mem.rss"}, {.metric = "tree.cores"}, {.metric = "net.rx.rate"}};
	const uint32_t points[] = {100, 5000};

	(void)state;
	make_work(file, 3000, 6);
	damage(file, 0.4);
	damage(file, 0.7);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		struct curves_options o = {.from_s = NAN, .to_s = NAN, .points = points[i]};
		struct curves *s = curves_of(query, ARRAY_SIZE(query), &o);
		size_t lost = 0;

		for (size_t j = 0; j < s->node[0].nr_times; j++)
			lost += s->node[0].lost[j];
		assert_int_equal(lost, 2);
		assert_true(s->node[0].nr_times <= points[i]);
		assert_true(s->node[0].ticks < 2999);
		expect_sound(s);
		/* What grew while nothing was seen is no peak. */
		assert_true(line_of(s, 2, NULL)->most < 260000);
		assert_true(line_of(s, 1, NULL)->most < 6);
		curves_free(s);
	}
}

/* ---- several recordings ---- */

static void make_node(const char *path, const char *host, int64_t start_s, const int64_t *rss, size_t nr)
{
	struct maker_options o = {.host = host, .start_wall_ns = (INT64_C(1700000000) + start_s) * SECOND};
	struct maker m;

	maker_open(&m, path, &o);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, "a", 1);
	for (size_t i = 0; i < nr; i++) {
		maker_set(&m, 0, "proc.mem.rss", rss[i]);
		maker_tick(&m, (int64_t)i * SECOND);
	}
	maker_finish(&m, NULL);
}

static void test_nodes_together(void **state)
{
	static const struct curves_query query[] = {{.metric = "proc.mem.rss"},
		{.metric = "proc.mem.rss", .per = CURVES_GROUP},
		{.metric = "proc.mem.rss", .per = CURVES_PROCESS}, {.metric = "no.such.metric"}};
	const double p = PAGE_BYTES;
	const char *path[2];
	struct curves *s;
	char second[128];
	int at;

	(void)state;
	snprintf(second, sizeof(second), "%s", file_in("b.tacho"));
	make_node(file, "one", 0, (int64_t[]){1, 2, 3, 4}, 4);
	make_node(second, "two", 2, (int64_t[]){10, 20, 30, 40}, 4);
	path[0] = file;
	path[1] = second;
	s = curves_of_paths(path, 2, query, ARRAY_SIZE(query), NULL);
	assert_int_equal(s->nr_nodes, 2);
	assert_string_equal(s->node[1].host, "two");
	assert_near(s->node[1].offset_s, 2);
	assert_near(s->node[1].time_s[0], 2);
	assert_near(s->node[1].end_s, 5);
	assert_string_equal(s->line[0].name, "one");
	assert_string_equal(s->line[1].name, "two");
	at = curves_combine(s, 0, false);
	assert_int_equal(at, s->nr_lines - 1);
	assert_int_equal(s->nr_nodes, 3);
	assert_true(s->node[2].all);
	EXPECT(s, &s->line[at], 1 * p, 2 * p, 13 * p, 24 * p, 30 * p, 40 * p);
	assert_near(s->line[at].most, 40 * p);
	assert_near(s->line[at].most_at_s, 5);
	assert_string_equal(s->line[at].name, "all nodes");
	at = curves_combine(s, 0, true);
	EXPECT(s, &s->line[at], 1 * p, 2 * p, 6.5 * p, 12 * p, 30 * p, 40 * p);
	at = curves_combine(s, 1, false);
	assert_string_equal(s->line[at].name, "a");
	EXPECT(s, &s->line[at], 1 * p, 2 * p, 13 * p, 24 * p, 30 * p, 40 * p);
	at = curves_combine(s, 2, false);
	assert_true(s->line[at].others);
	assert_int_equal(s->nr_nodes, 3);
	assert_int_equal(curves_combine(s, 3, false), -ENODATA);
	assert_int_equal(curves_combine(s, 4, false), -EINVAL);
	curves_free(s);
	s = curves_of(query, 1, NULL);
	at = curves_combine(s, 0, false);
	EXPECT(s, &s->line[at], 1 * p, 2 * p, 3 * p, 4 * p);
	curves_free(s);
}

static void test_what_one_node_lost_is_not_known_of_all(void **state)
{
	static const struct curves_query query = {.metric = "proc.mem.rss"};
	struct long_recording r = {.seconds = 1500, .hz = 1, .processes = 4, .host = "one"};
	struct curves_line *line;
	const char *path[2];
	struct curves *s;
	size_t unknown = 0;
	char second[128];
	int at;

	(void)state;
	snprintf(second, sizeof(second), "%s", file_in("b.tacho"));
	assert_int_equal(long_recording_write(file, &r), 0);
	assert_int_equal(long_recording_write(second, &r), 0);
	damage(second, 0.5);
	path[0] = file;
	path[1] = second;
	s = curves_of_paths(path, 2, &query, 1, NULL);
	at = curves_combine(s, 0, false);
	line = &s->line[at];
	for (size_t i = 0; i < s->node[2].nr_times; i++) {
		unknown += isnan(line->mean[i]);
		if (!isnan(line->mean[i])) /* both are the same */
			assert_true(fabs((double)line->mean[i] / (double)s->line[0].mean[i] - 2) < 1e-5);
	}
	assert_true(unknown > 0 && unknown < 1000);
	curves_free(s);
}

/* ---- what may come ---- */

static void test_questions_without_an_answer(void **state)
{
	static const struct {
		struct curves_query query;
		const char *why;
	} bad[] = {
		{{.metric = "proc.mem.rsss"}, "did you mean 'proc.mem.rss'?"},
		{{.metric = "mem.used"}, "were not recorded"},
		{{.metric = "tree.cores", .per = CURVES_PROCESS}, "not a metric of single processes"},
		{{.metric = "tree.cores", .per = CURVES_INSTANCE}, "no instances"},
		{{.metric = "tree.cores", .per = CURVES_USER}, "not known by user"},
		{{.metric = "cpu.user", .per = CURVES_GROUP}, "not known by group"},
		{{.metric = "proc.state"}, "cannot be added up"},
		{{.metric = "proc.mem.rss", .group = "nobody"}, "no such group"},
		{{.metric = "perf.cycles"}, "needs the right to look"},
		{{.metric = "gpu.watts"}, "never had a value"},
	};
	struct curves_query query[ARRAY_SIZE(bad)];
	struct maker m;
	struct curves *s;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.forbidden = "perf.cycles"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.mem.rss", 1);
	maker_set(&m, 0, "proc.state", 'R');
	maker_tick(&m, 0);
	maker_abandon(&m); /* as one that is still written */
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		query[i] = bad[i].query, query[i].typed = true;
	s = curves_of(query, ARRAY_SIZE(query), NULL);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(s->column[i].known);
		if (!strstr(s->column[i].why, bad[i].why))
			fail_msg("%s: '%s' does not say '%s'", query[i].metric, s->column[i].why, bad[i].why);
	}
	curves_free(s);
	s = curves_of(&(struct curves_query){.metric = "proc.mem.rss"}, 1,
		&(struct curves_options){.from_s = 3600, .to_s = NAN});
	assert_false(s->column[0].known);
	assert_non_null(strstr(s->column[0].why, "in this part of the run"));
	curves_free(s);
}

static const struct curves_query everything[] = {{.metric = "proc.mem.rss", .spread = true},
	{.metric = "tree.cores", .spread = true}, {.metric = "proc.cpu.cores", .per = CURVES_PROCESS},
	{.metric = "proc.mem.pss_now", .per = CURVES_USER}, {.metric = "group.cores", .per = CURVES_GROUP},
	{.metric = "proc.io.read_chars", .rate = true, .per = CURVES_GROUP},
	{.metric = "cpu.busy", .per = CURVES_INSTANCE}, {.metric = "cpu.busy"},
	{.metric = "group.cpu", .group = "loaders"}, {.metric = "tree.cpu"},
	{.metric = "proc.switches.voluntary", .rate = true},
	{.metric = "proc.threads", .per = CURVES_INSTANCE, .spread = true}};

static void test_one_tick_none_and_less(void **state)
{
	static const struct curves_query query[] = {{.metric = "proc.mem.rss", .spread = true},
		{.metric = "tree.cpu"}, {.metric = "proc.cpu.cores"}};
	const struct curves_options none = {.from_s = 5, .to_s = 3};
	struct store_writer *w;
	struct curves_line *line;
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.mem.rss", 3);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = curves_of(query, 3, NULL);
	line = line_of(s, 0, NULL);
	EXPECT(s, line, 3 * PAGE_BYTES);
	assert_near(line->average, 3 * PAGE_BYTES);
	assert_near(spread_quantile(line->spread, 0.5), 3 * PAGE_BYTES);
	assert_near(line_of(s, 1, NULL)->most, 1);
	assert_true(isnan(line_of(s, 2, NULL)->most));
	assert_false(s->column[2].known);
	curves_free(s);
	s = curves_of(query, 3, &none);
	assert_int_equal(s->node[0].nr_times, 0);
	assert_int_equal(s->node[0].ticks, 0);
	assert_int_equal(curves_combine(s, 0, false), -ENODATA);
	curves_free(s);
	assert_int_equal(store_create(file, true, &w), 0); /* nothing but a beginning */
	store_abandon(w);
	s = curves_of(everything, ARRAY_SIZE(everything), NULL);
	assert_int_equal(s->nr_lines, 0);
	assert_string_equal(s->column[0].why, why_young);
	curves_free(s);
}

static void test_time_may_do_what_it_likes(void **state)
{
	static const int64_t at_s[] = {5, 5, 3, 1000000000, 1000000001, 7, 2000000000};
	const struct curves_options few = {.from_s = NAN, .to_s = NAN, .points = 16};
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < 50; i++) {
		maker_set(&m, 0, "proc.mem.rss", (int64_t)i);
		maker_set(&m, 0, "proc.cpu.time", i == 20 ? 5 : (int64_t)i * SECOND);
		maker_tick(&m, at_s[MIN(i / 6, ARRAY_SIZE(at_s) - 1)] * SECOND + (int64_t)i);
	}
	maker_finish(&m, NULL);
	s = curves_of(everything, ARRAY_SIZE(everything), &few);
	assert_true(s->node[0].nr_times >= 2 && s->node[0].nr_times <= 16);
	assert_int_equal(s->node[0].ticks, 50);
	assert_near(line_of(s, 0, NULL)->most, 49 * PAGE_BYTES);
	curves_free(s);
}

static void test_damage_anywhere(void **state)
{
	const struct curves_process keep[] = {{0, 1}, {0, 3}, {0, 999999}};
	const struct curves_options o = {
		.from_s = 100, .to_s = 900, .points = 50, .keep = keep, .nr_keep = ARRAY_SIZE(keep)};
	struct curves *s;
	char command[200];

	(void)state;
	make_work(file_in("whole.tacho"), 1000, 5);
	for (int i = 1; i < 20; i++) {
		snprintf(command, sizeof(command), "cp %s/whole.tacho %s", dir, file);
		assert_int_equal(system(command), 0);
		damage(file, i / 20.0);
		if (i % 3 == 0)
			assert_int_equal(truncate(file, 4000 * i), 0);
		s = curves_of(everything, ARRAY_SIZE(everything), &o);
		for (size_t j = 0; j < s->nr_lines; j++)
			assert_true(s->line[j].name && s->line[j].mean);
		curves_combine(s, 0, false);
		curves_free(s);
	}
}

static void test_more_instances_than_lines(void **state)
{
	static const struct curves_query query[] = {
		{.metric = "proc.mem.rss", .per = CURVES_INSTANCE}, {.metric = "proc.mem.rss"}};
	const struct curves_options o = {.from_s = NAN, .to_s = NAN, .points = 16};
	struct curves *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	for (uint32_t i = 0; i < 3000; i++) {
		maker_join(&m, i, i + 1, 100 + i, 1, 0, false);
		maker_set(&m, i, "proc.mem.rss", 1);
	}
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	s = curves_of(query, 2, &o);
	assert_int_equal(s->nr_lines - 1 + s->column[0].left_out, 3000);
	assert_true(s->column[0].left_out > 0);
	assert_near(line_of(s, 1, NULL)->most, 3000 * PAGE_BYTES);
	curves_free(s);
}

/* The most memory that a process had who read this. */
static long peak_of_reading(const char *path)
{
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* Without the last: a line for each process that ever was. */
		curves_free(curves_of_paths(&path, 1, everything, ARRAY_SIZE(everything) - 1, NULL));
		_exit(0);
	}
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_int_equal(status, 0);
	return usage.ru_maxrss;
}

static void test_memory_does_not_grow_with_length(void **state)
{
	char longer[128];
	long little, much;

	(void)state;
	snprintf(longer, sizeof(longer), "%s", file_in("long.tacho"));
	make_work(file, 4000, 5);
	make_work(longer, 40000, 5);
	little = peak_of_reading(file);
	much = peak_of_reading(longer);
	if (much > little + little / 4)
		fail_msg("%ld KiB for 4000 ticks, %ld KiB for 40000", little, much);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_spread),
		cmocka_unit_test(test_a_spread_of_all_kinds_of_numbers),
		T(test_every_way_to_part_processes),
		T(test_numbers_of_a_line_are_weighted_by_time),
		T(test_reduced_without_losing_peaks),
		T(test_what_is_lost_is_a_gap),
		T(test_nodes_together),
		T(test_what_one_node_lost_is_not_known_of_all),
		T(test_who_rests_has_no_rate_until_he_moves),
		T(test_a_group_that_is_found_later),
		T(test_questions_without_an_answer),
		T(test_one_tick_none_and_less),
		T(test_time_may_do_what_it_likes),
		T(test_damage_anywhere),
		T(test_more_instances_than_lines),
		T(test_memory_does_not_grow_with_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
