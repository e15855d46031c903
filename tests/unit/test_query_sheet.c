/* query/sheet and query/spread: many curves from one pass, reduced without losing peaks. */
#include "query_maker.h"

#include "query/sheet.h"
#include "query/spread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES 4096.0

static struct sheet *sheet_of_paths(const char *const *path, size_t nr_paths, const struct sheet_query *query,
	size_t nr, const struct sheet_options *o)
{
	struct sheet *s = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 1000);
	if (run_open(path, nr_paths, &run, &err) < 0 || sheet_read(run, query, nr, o, &s, &err) < 0)
		fail_msg("%s", (char *)err.data);
	run_close(run);
	buf_release(&err);
	return s;
}

static struct sheet *sheet_of(const struct sheet_query *query, size_t nr, const struct sheet_options *o)
{
	const char *path = file;

	return sheet_of_paths(&path, 1, query, nr, o);
}

static struct sheet_line *line_of(struct sheet *s, unsigned query, const char *name)
{
	for (size_t i = 0; i < s->nr_lines; i++)
		if (s->line[i].query == query && (!name || !strcmp(s->line[i].name, name)))
			return &s->line[i];
	fail_msg("query %u has no line %s", query, name ? name : "");
	return NULL;
}

static void expect_line(
	const struct sheet *s, const struct sheet_line *line, const double *expected, size_t nr)
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
	assert_true(isnan(spread_most(s)));
	spread_add(s, NAN, 1);
	spread_add(s, 5, 0);
	spread_add(s, 5, -1);
	spread_add(s, INFINITY, 1);
	assert_near(spread_weight(s), 0);
	for (int i = 1; i <= 100000; i++)
		spread_add(s, i, 0.1);
	assert_near(spread_weight(s), 10000);
	assert_near(spread_mean(s), 50000.5);
	assert_near(spread_least(s), 1);
	assert_near(spread_most(s), 100000);
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
	assert_near(spread_least(s), -50);
	s = spread_free(s);
	s = spread_new();
	/* More powers of two than are told apart, and a weight that overflows any unit. */
	for (int i = -600; i < 600; i++)
		spread_add(s, ldexp(1, i), 1e12);
	assert_true(spread_quantile(s, 0.99) <= spread_most(s));
	assert_true(spread_quantile(s, 0.01) >= spread_least(s));
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
	static const struct sheet_query query[] = {
		{.metric = "proc.mem.rss"},
		{.metric = "proc.mem.rss", .per = SHEET_GROUP},
		{.metric = "proc.mem.rss", .per = SHEET_USER},
		{.metric = "proc.mem.rss", .per = SHEET_PROCESS},
		{.metric = "proc.mem.rss", .per = SHEET_INSTANCE},
		{.metric = "proc.mem.rss", .group = "b"},
		{.metric = "proc.cpu.cores", .per = SHEET_USER},
	};
	const struct sheet_process keep[] = {{0, 13}, {0, 11}, {1, 12}};
	const struct sheet_options o = {.from_s = NAN, .to_s = NAN, .keep = keep, .nr_keep = 3};
	struct sheet_line *line;
	const double p = PAGE_BYTES;
	struct sheet *s;

	(void)state;
	make_people();
	s = sheet_of(query, ARRAY_SIZE(query), &o);
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
	sheet_free(s);
}

static void test_numbers_of_a_line_are_weighted_by_time(void **state)
{
	static const int64_t at_ms[] = {0, 1000, 1500, 4000, 5000};
	static const int64_t rss[] = {10, 20, 40, 5, 100}, chars[] = {0, 100, 300, 300, 1300};
	static const struct sheet_query query[] = {{.metric = "proc.mem.rss", .spread = true},
		{.metric = "proc.io.read_chars", .rate = true, .spread = true},
		{.metric = "tree.io.read_rate", .spread = true}};
	const struct sheet_options part = {.from_s = 1.2, .to_s = 4.5};
	struct sheet_line *line;
	struct sheet *s;
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
	s = sheet_of(query, 3, NULL);
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
	sheet_free(s);

	s = sheet_of(query, 3, &part);
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
	sheet_free(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_spread),
		cmocka_unit_test(test_a_spread_of_all_kinds_of_numbers),
		T(test_every_way_to_part_processes),
		T(test_numbers_of_a_line_are_weighted_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
