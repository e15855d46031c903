/* query/events: phases and events on the run's time axis. */
#include "query_maker.h"

#include "query/events.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct run_events *run_events_of(const char *const *path, size_t nr)
{
	struct run_events *m = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 1000);
	if (run_open(path, nr, &run, &err) < 0 || run_events_read(run, &m, &err) < 0)
		fail_msg("%s", (char *)err.data);
	run_close(run);
	buf_release(&err);
	return m;
}

static struct run_events *run_events_of_file(void)
{
	const char *path = file;

	return run_events_of(&path, 1);
}

static void expect(
	const struct run_event *m, const char *kind, const char *label, double time_s, double end_s)
{
	assert_string_equal(m->kind, kind);
	assert_string_equal(m->label, label);
	assert_near(m->time_s, time_s);
	if (isnan(end_s))
		assert_true(isnan(m->end_s));
	else
		assert_near(m->end_s, end_s);
}

static void test_phases_nest_overlap_and_may_never_end(void **state)
{
	struct run_events *all;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_tick(&m, 0);
	maker_event(&m, 1 * SECOND, "phase.begin", "name", "outer");
	maker_event(&m, 2 * SECOND, "phase.begin", "name", "inner\n<b>");
	maker_event(&m, 3 * SECOND, "phase.begin", "name", "outer");
	maker_event(&m, 4 * SECOND, "phase.end", "name", "outer"); /* the youngest of that name */
	maker_event(&m, 5 * SECOND, "phase.end", "name", "nobody");
	maker_event(&m, 6 * SECOND, "phase.end", "name", "outer");
	maker_event(&m, 6 * SECOND, "phase.end", NULL, NULL);
	maker_event(&m, 7 * SECOND, "mark", "name", "here");
	maker_tick(&m, 9 * SECOND);
	maker_finish(&m, NULL);
	all = run_events_of_file();
	assert_int_equal(all->nr_phases, 3);
	expect(&all->phase[0], "phase", "outer", 1, 6);
	expect(&all->phase[1], "phase", "inner\\n<b>", 2, 9);
	expect(&all->phase[2], "phase", "outer", 3, 4);
	assert_int_equal(all->nr_events, 1);
	expect(&all->event[0], "mark", "here", 7, NAN);
	run_events_free(all);
}

static void test_events_of_the_recorder(void **state)
{
	struct run_events *all;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_tick(&m, 0);
	maker_event(&m, 1 * SECOND, "unavailable", "metric", "perf.cycles");
	maker_event(&m, 2 * SECOND, "stopped", NULL, NULL);
	maker_event(&m, 5 * SECOND, "continued", NULL, NULL);
	maker_event(&m, 6 * SECOND, "signal", "name", "TERM");
	maker_event(&m, 7 * SECOND, "clock", "step_ns", "-90000000000");
	maker_event(&m, 8 * SECOND, "backoff", "every", "4");
	maker_event(&m, 9 * SECOND, "backoff", "every", "1");
	maker_event(&m, 10 * SECOND, "of\x01tomorrow", NULL, NULL);
	maker_event(&m, 11 * SECOND, "continued", NULL, NULL);
	maker_event(&m, 12 * SECOND, "stopped", NULL, NULL);
	maker_tick(&m, 13 * SECOND);
	maker_finish(&m, NULL);
	all = run_events_of_file();
	assert_int_equal(all->nr_events, 7);
	expect(&all->event[0], "stopped", "stopped", 2, 5);
	expect(&all->event[1], "signal", "SIGTERM", 6, NAN);
	expect(&all->event[2], "clock", "the clock was set back by 1m30s", 7, NAN);
	expect(&all->event[3], "backoff", "sampled 4 times less often, to stay within the budget", 8, NAN);
	expect(&all->event[4], "backoff", "sampled as often as asked again", 9, NAN);
	expect(&all->event[5], "of\\x01tomorrow", "of\\x01tomorrow", 10, NAN);
	expect(&all->event[6], "stopped", "stopped", 12, NAN);
	run_events_free(all);
}

static void test_killed_for_want_of_memory(void **state)
{
	static const int64_t inner[] = {0, 0, 2, 2, 1, 3}, outer[] = {5, 5, 7, 7, 8, 8};
	struct run_events *all;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_CGROUP, 0, 0, "/", NULL);
	maker_instance(&m, MAKER_CGROUP, 1, 0, "/jobs/1", NULL);
	for (int64_t i = 0; i < 6; i++) {
		maker_set(&m, 0, "cgroup.memory.oom_kill", outer[i]);
		maker_set(&m, 1, "cgroup.memory.oom_kill", inner[i]); /* it falls once, which is nothing */
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	all = run_events_of_file();
	assert_int_equal(all->nr_events, 3);
	expect(&all->event[0], "oom", "out of memory: 2 processes were killed in /jobs/1", 2, NAN);
	expect(&all->event[1], "oom", "out of memory: a process was killed in /", 4, NAN);
	expect(&all->event[2], "oom", "out of memory: 2 processes were killed in /jobs/1", 5, NAN);
	run_events_free(all);
}

static void test_what_is_lost_lasts_until_the_next_tick(void **state)
{
	struct run_events *all;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 4000; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * i * 7919 % 1000003);
		maker_tick(&m, i * SECOND);
		if (i % 10 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
	damage(file, 0.5);
	all = run_events_of_file();
	assert_int_equal(all->nr_events, 1);
	assert_string_equal(all->event[0].kind, "lost");
	assert_true(all->event[0].time_s > 100 && all->event[0].end_s < 3900);
	assert_true(all->event[0].end_s > all->event[0].time_s);
	run_events_free(all);
}

static void test_nodes_have_one_axis(void **state)
{
	struct maker_options o = {.start_wall_ns = INT64_C(1700000010) * SECOND};
	const char *path[2];
	struct run_events *all;
	struct maker m;
	char later[128];

	(void)state;
	snprintf(later, sizeof(later), "%s", file_in("b.tacho"));
	maker_open(&m, later, &o);
	maker_event(&m, SECOND, "mark", "name", "later");
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	maker_open(&m, file, NULL);
	maker_event(&m, 2 * SECOND, "mark", "name", "earlier");
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
	path[0] = later;
	path[1] = file;
	all = run_events_of(path, 2);
	assert_int_equal(all->nr_events, 2);
	expect(&all->event[0], "mark", "earlier", 2, NAN);
	assert_int_equal(all->event[0].node, 1);
	expect(&all->event[1], "mark", "later", 11, NAN);
	run_events_free(all);
}

static void test_no_number_of_events_is_too_many(void **state)
{
	struct run_events *all;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	for (int64_t i = 0; i < 6000; i++) {
		maker_event(&m, i * MILLI, "mark", "name", "x");
		maker_event(&m, i * MILLI, "phase.begin", "name", i % 2 ? "x" : "y");
	}
	maker_tick(&m, 10 * SECOND);
	maker_finish(&m, NULL);
	all = run_events_of_file();
	assert_int_equal(all->nr_events, MOMENTS_MOST);
	assert_int_equal(all->nr_phases, MOMENTS_MOST);
	assert_int_equal(all->left_out, 2 * (6000 - MOMENTS_MOST));
	run_events_free(all);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_phases_nest_overlap_and_may_never_end),
		T(test_events_of_the_recorder),
		T(test_killed_for_want_of_memory),
		T(test_what_is_lost_lasts_until_the_next_tick),
		T(test_nodes_have_one_axis),
		T(test_no_number_of_events_is_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
