/* query/: totals, peaks and notes of one recording. Every recording here is made by the
 * store's own writer, with values from which the right answers follow by hand. */
#include "query_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- totals ---- */

static void test_the_tree_is_the_living_and_the_gone(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", 0);
	maker_tick(&m, 1 * MILLI);
	maker_join(&m, 1, 2, 101, 100, SECOND / 2, false);
	maker_set(&m, 0, "proc.cpu.time", 500 * MILLI);
	maker_set(&m, 1, "proc.cpu.time", 400 * MILLI);
	maker_tick(&m, SECOND);
	/* The child ends and is waited for: its parent has its time now. */
	maker_gone(&m, 1, 2, 3 * SECOND / 2, "event");
	maker_set(&m, 0, "proc.cpu.time", 800 * MILLI);
	maker_set(&m, 0, "proc.cpu.children_user", 60);
	maker_set(&m, 0, "proc.cpu.children_system", 10);
	maker_set(&m, 0, "proc.io.read_chars", 5000);
	maker_set(&m, 0, "proc.faults.minor", 7);
	maker_set(&m, 0, "proc.faults.children_minor", 5);
	maker_tick(&m, 2 * SECOND);
	/* We reap the parent: all of it is in what is gone. */
	maker_gone(&m, 0, 1, 5 * SECOND / 2, "reaped");
	maker_set(&m, 0, "tree.gone.user", 1300000);
	maker_set(&m, 0, "tree.gone.system", 300000);
	maker_set(&m, 0, "tree.gone.read_chars", 6000);
	maker_set(&m, 0, "tree.gone.minor_faults", 13);
	maker_set(&m, 0, "tree.gone.max_rss", 2048);
	maker_tick(&m, 5 * SECOND / 2);
	maker_finish(&m, "exit_status", INT64_C(0x300), "end_ns", 5 * SECOND / 2, "ticks", INT64_C(4),
		"missed", INT64_C(1), "self_cpu_ns", 25 * MILLI, "self_peak_rss_kib", INT64_C(3000), NULL);

	s = summary_of(file);
	assert_true(s->complete);
	assert_near(value(s, FIG_CPU), 1.6);
	assert_near(value(s, FIG_WALL), 2.5);
	assert_near(value(s, FIG_MEAN_CORES), 0.64);
	assert_near(value(s, FIG_READ_CHARS), 6000);
	assert_near(value(s, FIG_MINOR), 13);
	assert_near(value(s, FIG_SEEN), 2);
	assert_near(value(s, FIG_PROCESSES), 2);
	assert_near(value(s, FIG_HWM), 2048 * 1024);
	assert_near(value(s, FIG_EXIT_CODE), 3);
	assert_string_equal(s->figure[FIG_EXIT_SIGNAL].why, "");
	assert_near(value(s, FIG_TICKS), 4);
	assert_near(value(s, FIG_MISSED), 1);
	assert_near(value(s, FIG_SELF_PERCENT), 1);
	assert_near(value(s, FIG_SELF_RSS), 3000 * 1024);
	assert_string_equal(s->cpu_source, "rusage");
	assert_false(s->cpu_lower_bound);
	/* 0.9 s in the first second, 0.6 in the second, 0.1 in the sliver after it. */
	assert_near(value(s, FIG_PEAK_CORES), 0.9);
	assert_near(value(s, FIG_PEAK_CORES_AT), 1);
	/* Seen in samples: 0.8 of the parent, 0.4 of the child. */
	assert_near(value(s, FIG_OBSERVED), 1.2 / 1.6);
	/* Never given: not zero. */
	assert_non_null(s->figure[FIG_SWAP].why);
	assert_non_null(s->figure[FIG_READ_BYTES].why);
	summary_free(s);
}

static void test_dips_and_overshoots_of_one_tick_are_settled(void **state)
{
	/* CPU of the parent, of what it has waited for, and of two children, in 10 ms; -1: it is gone. */
	static const int64_t at[][4] = {{0, 0, 0, 0}, {10, 0, 100, 0},
		{20, 200, 200, 0}, /* read before it ended, its parent after it had waited: counted twice */
		{30, 200, -1, 0}, {40, 200, -1, 100},
		{50, 200, -1, -1}, /* gone, and its parent was read before that: not counted at all */
		{60, 300, -1, -1}, {70, 300, -1, -1}};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, 0, false);
	maker_join(&m, 2, 3, 102, 100, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		maker_set(&m, 0, "proc.cpu.time", at[i][0] * 10 * MILLI);
		maker_set(&m, 0, "proc.cpu.children_user", at[i][1]);
		for (uint32_t child = 1; child <= 2; child++) {
			if (at[i][child + 1] >= 0)
				maker_set(&m, child, "proc.cpu.time", at[i][child + 1] * 10 * MILLI);
			else if (at[i - 1][child + 1] >= 0)
				maker_gone(&m, child, child + 1, (int64_t)i * SECOND, "event");
		}
		maker_tick(&m, (int64_t)i * SECOND);
	}
	maker_finish(&m, "end_ns", 7 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CPU), 3.7);
	/* From 1.1 to 2.3 in the second tick; the 4.2 that was read there is not 3.1 cores. */
	assert_near(value(s, FIG_PEAK_CORES), 1.2);
	summary_free(s);
}

static void test_what_was_used_stays_used(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", 2 * SECOND);
	maker_tick(&m, SECOND);
	maker_tick(&m, 2 * SECOND);
	/* Gone at the last tick, and nobody accounts for it. */
	maker_gone(&m, 0, 1, 3 * SECOND, "noticed");
	/* Another is known by its end alone. */
	maker_gone(&m, STORE_NO_ROW, 2, 3 * SECOND, "event");
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CPU), 2);
	assert_near(value(s, FIG_SEEN), 2);
	/* Of a tree that we started, what nobody else waits for comes to us. */
	assert_string_equal(s->cpu_source, "rusage");
	summary_free(s);
}

static void test_a_counter_that_falls_was_reset(void **state)
{
	static const int64_t chars[] = {0, 1000, 1500, 200, 700};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(chars); i++) {
		maker_set(&m, 0, "proc.cpu.time", (int64_t)i * MILLI);
		maker_set(&m, 0, "proc.io.write_chars", chars[i]);
		maker_tick(&m, (int64_t)i * SECOND);
	}
	/* It goes; what is gone is what the kernel knew, and the reset is not taken back. */
	maker_gone(&m, 0, 1, 5 * SECOND, "reaped");
	maker_set(&m, 0, "tree.gone.write_chars", 700);
	maker_set(&m, 0, "tree.gone.user", 4000);
	maker_tick(&m, 5 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_WRITE_CHARS), 1500 + 500);
	assert_near(value(s, FIG_CPU), 0.004);
	summary_free(s);
}

static void test_the_kernels_total_wins(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 4; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND / 4);
		maker_set(&m, 0, "proc.signals.ignored", INT64_C(1) << 16);
		maker_set(&m, 0, "tree.cgroup.cpu", i * SECOND);
		maker_set(&m, 0, "tree.cgroup.user", i * SECOND * 3 / 4);
		maker_set(&m, 0, "tree.cgroup.system", i * SECOND / 4);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CPU), 4);
	assert_near(value(s, FIG_USER), 3);
	assert_near(value(s, FIG_SYSTEM), 1);
	assert_near(value(s, FIG_PEAK_CORES), 1);
	assert_near(value(s, FIG_OBSERVED), 0.25);
	assert_string_equal(s->cpu_source, "cgroup");
	assert_false(s->cpu_lower_bound);
	summary_free(s);
}

/* Of a living process the group may lack what it used since; of one that has ended, nothing. One that is seen
 * outside at once has no group. */
static void test_who_left_the_group_is_counted_by_processes(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		bool left = i > 0;
		struct maker m;
		struct summary *s;

		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_set(&m, 0, "proc.cpu.time", 150 * MILLI);
		maker_set(&m, 0, i == 2 ? "tree.outside" : "tree.cgroup.cpu", i == 2 ? 1 : 10 * MILLI);
		maker_tick(&m, SECOND);
		if (left) {
			maker_gone(&m, 0, 1, 2 * SECOND, "reaped");
			maker_set(&m, 0, "tree.gone.user", 150000);
			maker_tick(&m, 2 * SECOND);
		}
		maker_finish(&m, "end_ns", 2 * SECOND, NULL);
		s = summary_of(file);
		assert_near(value(s, FIG_CPU), left ? 0.15 : 0.01);
		assert_string_equal(
			s->cpu_source, left ? "rusage; the job left tacho's control group" : "cgroup");
		assert_false(s->cpu_lower_bound);
		summary_free(s);
	}
}

/* Whatever the numbers, the parts of the CPU time add up to it and none is less than nothing. */
static void test_a_split_of_the_total_is_never_negative(void **state)
{
	(void)state;
	for (int64_t us = 7000; us < 7200; us++) {
		struct maker m;
		struct summary *s;

		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_set(&m, 0, "proc.cpu.time", us * 1000);
		maker_set(&m, 0, "tree.cgroup.cpu", us * 1000);
		maker_set(&m, 0, "tree.cgroup.user", 6000000);
		maker_set(&m, 0, "tree.cgroup.system", 0);
		maker_tick(&m, 0);
		maker_finish(&m, "end_ns", SECOND, NULL);
		s = summary_of(file);
		assert_false(signbit(value(s, FIG_SYSTEM)));
		assert_true(value(s, FIG_USER) + value(s, FIG_SYSTEM) == value(s, FIG_CPU));
		summary_free(s);
	}
}

static void test_an_ignored_sigchld_makes_a_lower_bound(void **state)
{
	struct maker_options told = {.helpers = "connector,taskstats"};
	struct maker m;
	struct summary *s;

	(void)state;
	for (int i = 0; i < 2;
		i++) { /* exit records miss the last moments: no more than a lower bound either */
		maker_open(&m, file, i ? &told : NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_set(&m, 0, "proc.cpu.time", SECOND);
		maker_set(&m, 0, "proc.signals.ignored", INT64_C(1) << 16);
		maker_tick(&m, SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_true(s->cpu_lower_bound);
		assert_true(has_note(s, "CPU time is a lower bound"));
		assert_string_equal(s->cpu_source, "rusage+last samples");
		summary_free(s);
	}
	/* Any other ignored signal means nothing, nor do threads of the kernel, which ignore all. */
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 2, 0, 0, false);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_set(&m, 0, "proc.signals.ignored", INT64_C(1) << 15 | 1 << 17);
	maker_set(&m, 1, "proc.signals.ignored", -1);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_false(s->cpu_lower_bound);
	summary_free(s);
}

static void test_attached_trees_count_from_then_on(void **state)
{
	struct maker_options o = {.mode = "attach"};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, true);
	maker_set(&m, 0, "proc.cpu.time", 1000 * SECOND);
	maker_set(&m, 0, "proc.cpu.children_user", 5000);
	maker_set(&m, 0, "proc.io.read_chars", 123456);
	maker_tick(&m, 2 * MILLI);
	maker_set(&m, 0, "proc.cpu.time", 1000 * SECOND + SECOND / 2);
	maker_set(&m, 0, "proc.cpu.children_user", 5010);
	maker_set(&m, 0, "proc.io.read_chars", 123556);
	maker_tick(&m, SECOND);
	/* One that lived long before joins late, and brings its past. */
	maker_join(&m, 1, 2, 200, 100, SECOND, true);
	maker_set(&m, 1, "proc.cpu.time", 70 * SECOND);
	maker_set(&m, 1, "proc.io.read_chars", 70000);
	maker_tick(&m, 2 * SECOND);
	maker_set(&m, 1, "proc.cpu.time", 70 * SECOND + SECOND / 4);
	maker_tick(&m, 3 * SECOND);
	/* It ends: a stranger waits for it, and it is gone as last seen. */
	maker_gone(&m, 1, 2, 4 * SECOND, "noticed");
	maker_set(&m, 0, "tree.gone.user", 70250000);
	maker_set(&m, 0, "tree.gone.read_chars", 70000);
	maker_tick(&m, 4 * SECOND);
	maker_finish(&m, "end_ns", 4 * SECOND, "unfinished", INT64_C(1), NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CPU), 0.5 + 0.1 + 0.25);
	assert_near(value(s, FIG_READ_CHARS), 100);
	assert_near(value(s, FIG_OBSERVED), 0.75 / 0.85);
	assert_near(value(s, FIG_PEAK_CORES), 0.6);
	assert_non_null(strstr(s->figure[FIG_EXIT_CODE].why, "attached"));
	assert_true(has_note(s, "1 process still ran"));
	/* Its parent is a member, who waits for it: nothing was missed. */
	assert_string_equal(s->cpu_source, "rusage");
	summary_free(s);
}

static void test_ended_among_strangers_is_as_last_sampled(void **state)
{
	struct maker_options o = {.mode = "attach"};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, true);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_tick(&m, 0);
	maker_set(&m, 0, "proc.cpu.time", 2 * SECOND);
	maker_tick(&m, SECOND);
	maker_gone(&m, 0, 1, 2 * SECOND, "noticed");
	maker_set(&m, 0, "tree.gone.user", 2000000);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_string_equal(s->cpu_source, "rusage+last samples");
	assert_near(value(s, FIG_CPU), 1);
	summary_free(s);
}

/* ---- peaks ---- */

static void test_a_peak_of_cores_is_never_a_sliver(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	/* 4 ms of CPU in the first 0.4 ms, by a clock that was read late; half a core; a sliver at the end.
	 */
	maker_set(&m, 0, "proc.cpu.time", 4 * MILLI);
	maker_tick(&m, 400000);
	for (int64_t i = 1; i <= 10; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND / 2);
		maker_tick(&m, i * SECOND);
	}
	maker_set(&m, 0, "proc.cpu.time", 5 * SECOND + 30 * MILLI);
	maker_tick(&m, 10 * SECOND + 5 * MILLI);
	maker_finish(&m, NULL);
	s = summary_of(file);
	/* The sliver counts with the second before it: 0.53 / 1.005. */
	assert_near(value(s, FIG_PEAK_CORES), 0.53 / 1.005);
	summary_free(s);
}

static void test_a_peak_of_cores_is_possible(void **state)
{
	struct maker_options o = {.nr_cpus = 4, .interval_ns = 100 * MILLI};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	/* Four cores busy all the time; every second tick is read 20 ms late. */
	for (int64_t i = 0; i <= 100; i++) {
		maker_set(&m, 0, "proc.cpu.time", 4 * (i * 100 + (i % 2 ? 20 : 0)) * MILLI);
		maker_tick(&m, i * 100 * MILLI);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PEAK_CORES), 4);
	assert_near(value(s, FIG_PEAK_WINDOW), 0.2);
	assert_false(has_note(s, "above the number of CPUs"));
	summary_free(s);
}

static void test_a_run_shorter_than_an_interval_has_its_mean(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", MILLI);
	maker_tick(&m, MILLI);
	maker_gone(&m, 0, 1, 20 * MILLI, "reaped");
	maker_set(&m, 0, "tree.gone.user", 12000);
	maker_tick(&m, 20 * MILLI);
	maker_finish(&m, "end_ns", 20 * MILLI, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PEAK_CORES), 0.6);
	assert_near(value(s, FIG_MEAN_CORES), 0.6);
	summary_free(s);
}

static void test_memory_peaks_are_of_sums_at_an_instant(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, 0, false);
	/* 100 + 10 pages, then 10 + 60: the peak is 110, not 160. */
	set_memory(&m, 0, 100, 40);
	set_memory(&m, 1, 10, 4);
	set_smaps(&m, 0, 400, 300, 40, 200);
	set_smaps(&m, 1, 40, 30, 4, 20);
	maker_set(&m, 0, "proc.mem.swap", 5);
	maker_set(&m, 0, "proc.threads", 3);
	maker_set(&m, 1, "proc.threads", 1);
	maker_tick(&m, SECOND);
	set_memory(&m, 0, 10, 4);
	set_memory(&m, 1, 60, 4);
	maker_set(&m, 1, "proc.threads", 9);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_RSS), 110 * 4096);
	assert_near(value(s, FIG_RSS_AT), 1);
	assert_near(value(s, FIG_PSS), 330 * 1024);
	assert_near(value(s, FIG_PSS_ESTIMATED), 0);
	assert_near(value(s, FIG_USS), 264 * 1024);
	assert_near(value(s, FIG_SWAP), 5 * 1024);
	assert_near(value(s, FIG_THREADS), 12);
	summary_free(s);
}

static void test_pss_follows_rss_between_readings(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	set_memory(&m, 0, 100, 40);
	set_smaps(&m, 0, 400, 300, 40, 200);
	maker_set(&m, 0, "proc.mem.private_huge", 2048);
	maker_tick(&m, SECOND);
	/* 100 pages more: 300 + 400 KiB, of which 400 are an estimate; USS 2288 + 400. */
	set_memory(&m, 0, 200, 40);
	maker_tick(&m, 2 * SECOND);
	/* It shrinks to less than what was shared: never below nothing. */
	set_memory(&m, 0, 1, 1);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PSS), 700 * 1024);
	assert_near(value(s, FIG_PSS_AT), 2);
	assert_near(value(s, FIG_PSS_ESTIMATED), 400.0 / 700);
	assert_near(value(s, FIG_USS), 2688 * 1024);
	assert_near(value(s, FIG_USS_ESTIMATED), 400.0 / 2688);
	assert_true(has_note(s, "57 %"));
	summary_free(s);
}

static void test_pss_is_neither_above_rss_nor_below_nothing(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 1, 0, false);
	/* 180 KiB read when there were 100, now 200: at most 200. */
	set_memory(&m, 0, 50, 0);
	set_smaps(&m, 0, 100, 180, 0, 180);
	/* 10 KiB of 400, now 40: not -350. */
	set_memory(&m, 1, 10, 0);
	set_smaps(&m, 1, 400, 10, 0, 10);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PSS), 200 * 1024);
	assert_near(value(s, FIG_USS), 200 * 1024);
	summary_free(s);
}

static void test_pss_never_read_is_an_estimate_and_not_recorded_is_null(void **state)
{
	struct maker_options without = {.without = "proc.mem.pss,proc.mem.private_dirty"};
	struct maker_options forbidden = {.forbidden = "proc.mem.pss,proc.mem.private_dirty"};
	struct maker_options *o[] = {NULL, &without, &forbidden};
	struct maker m;
	struct summary *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(o); i++) {
		maker_open(&m, file, o[i]);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		set_memory(&m, 0, 100, 30);
		maker_tick(&m, SECOND);
		maker_gone(&m, 0, 1, 2 * SECOND, "reaped");
		maker_tick(&m, 2 * SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		if (i == 0) {
			assert_near(value(s, FIG_PSS), 70 * 4096);
			assert_near(value(s, FIG_USS), 70 * 4096);
			assert_near(value(s, FIG_PSS_ESTIMATED), 1);
			assert_true(has_note(s, "never read"));
		} else {
			assert_string_equal(
				s->figure[FIG_PSS].why, i == 1 ? "not recorded" : "needs the right to look");
			assert_non_null(s->figure[FIG_USS].why);
			assert_non_null(s->figure[FIG_PSS_ESTIMATED].why);
		}
		summary_free(s);
	}
}

/* Who was just forked counts without its parent's memory, and a reading is marked as far as sharers came
 * since. */
static void test_pss_of_sharers_in_doubt_is_marked(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, 0, false);
	set_memory(&m, 0, 100, 0);
	set_smaps(&m, 0, 400, 400, 0, 400);
	maker_tick(&m, SECOND);
	set_memory(&m, 1, 100, 0);
	maker_set(&m, 0, "proc.smaps.doubt", 100);
	maker_set(&m, 1, "proc.smaps.doubt", 380);
	maker_tick(&m, 2 * SECOND);
	/* Both are read: less than the estimate was. */
	set_smaps(&m, 0, 400, 205, 0, 10);
	set_smaps(&m, 1, 400, 205, 0, 10);
	maker_set(&m, 0, "proc.smaps.doubt", 0);
	maker_set(&m, 1, "proc.smaps.doubt", 0);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PSS), 420 * 1024);
	assert_near(value(s, FIG_PSS_AT), 2);
	assert_near(
		value(s, FIG_PSS_ESTIMATED), 1); /* of 500 KiB it is not known whose they are: at most all */
	assert_near(value(s, FIG_USS), 420 * 1024);
	assert_true(has_note(s, "~ 100 %"));
	summary_free(s);
}

static void test_the_high_water_mark_is_at_least_what_was_seen(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	for (int kept = 0; kept < 2; kept++) {
		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_join(&m, 1, 2, 101, 1, 0, false);
		set_memory(&m, 0, 1000, 0);
		set_memory(&m, 1, 1000, 0);
		if (kept)
			maker_set(&m, 0, "proc.mem.hwm", 3990);
		else /* of none that ended it is known, which is a zero there */
			maker_set(&m, 0, "tree.gone.max_rss", 0);
		maker_tick(&m, SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		if (kept)
			assert_near(value(s, FIG_HWM), 1000 * 4096);
		else
			assert_non_null(s->figure[FIG_HWM].why);
		summary_free(s);
	}
}

static void test_a_spike_between_samples_is_told(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	set_memory(&m, 0, 1000, 0);
	maker_set(&m, 0, "proc.mem.hwm", 4000);
	maker_tick(&m, SECOND);
	maker_gone_with(&m, 0, 1, 2 * SECOND, "reaped", "max_rss_kib", INT64_C(512000), NULL);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_HWM), 512000 * 1024.0);
	assert_near(value(s, FIG_RSS), 1000 * 4096);
	assert_near(value(s, FIG_MEMORY), 512000 * 1024.0);
	assert_string_equal(s->text[TEXT_MEMORY_VIEW], "max_process_hwm_bytes");
	assert_true(has_note(s, "reached 500 MiB"));
	summary_free(s);
}

static void test_births_and_ends_between_two_ticks(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.helpers = "connector,taskstats"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.threads", 2);
	maker_tick(&m, SECOND / 10);
	/* Two at a time, told in the order of their ends, then one that follows at once. */
	maker_join(&m, STORE_NO_ROW, 3, 102, 100, 4 * SECOND / 10, false);
	maker_gone_with(&m, STORE_NO_ROW, 3, 6 * SECOND / 10, "exit-record", "sampled", INT64_C(0), NULL);
	maker_join(&m, STORE_NO_ROW, 2, 101, 100, 2 * SECOND / 10, false);
	maker_gone_with(&m, STORE_NO_ROW, 2, 7 * SECOND / 10, "event", "sampled", INT64_C(0), NULL);
	maker_join(&m, STORE_NO_ROW, 4, 103, 100, 7 * SECOND / 10, false);
	maker_gone_with(&m, STORE_NO_ROW, 4, 8 * SECOND / 10, "event", "sampled", INT64_C(0), NULL);
	maker_gone_with(&m, 0, 1, 9 * SECOND / 10, "reaped", NULL);
	maker_tick(&m, SECOND);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, "end_ns", 2 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_SEEN), 4);
	assert_near(value(s, FIG_PROCESSES), 3);
	assert_near(value(s, FIG_THREADS), 4);
	assert_near(value(s, FIG_ACTIVE), 0.9);
	summary_free(s);
}

/* When it was noticed that somebody is gone says little about when it ended. */
static void test_ends_that_are_not_known(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.threads", 1);
	maker_tick(&m, SECOND);
	maker_join(&m, STORE_NO_ROW, 2, 101, 100, 11 * SECOND / 10, false);
	maker_gone_with(&m, STORE_NO_ROW, 2, 2 * SECOND, "exit-record", "sampled", INT64_C(0), NULL);
	maker_join(&m, STORE_NO_ROW, 3, 102, 100, 12 * SECOND / 10, false);
	maker_gone_with(&m, STORE_NO_ROW, 3, 2 * SECOND, "exit-record", "sampled", INT64_C(0), NULL);
	maker_gone_with(&m, 0, 1, 2 * SECOND, "noticed", NULL);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, "end_ns", 2 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_SEEN), 3);
	assert_near(value(s, FIG_PROCESSES), 1);
	assert_near(value(s, FIG_ACTIVE), 1);
	summary_free(s);
	/* A zombie at the first tick had ended before it: the next child does not live beside it. */
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, SECOND / 2, false);
	maker_set(&m, 0, "proc.threads", 1);
	maker_set(&m, 1, "proc.threads", 1);
	maker_tick(&m, SECOND);
	maker_gone_with(&m, 1, 2, 2 * SECOND, "zombie", "sampled", INT64_C(1), NULL);
	maker_join(&m, 1, 3, 102, 100, 3 * SECOND / 2, false);
	maker_set(&m, 1, "proc.threads", 1);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, "end_ns", 2 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_SEEN), 3);
	assert_near(value(s, FIG_PROCESSES), 2);
	summary_free(s);
}

/* ---- what is missing ---- */

static void test_unfinished_recordings_tell_what_they_know(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 4; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		maker_set(&m, 0, "self.cpu", i * MILLI);
		maker_tick(&m, i * SECOND);
	}
	maker_abandon(&m);
	s = summary_of(file);
	assert_false(s->complete);
	assert_near(value(s, FIG_CPU), 3);
	assert_near(value(s, FIG_WALL), 3);
	assert_near(value(s, FIG_TICKS), 4);
	assert_near(value(s, FIG_SELF_CPU), 0.003);
	assert_non_null(strstr(s->figure[FIG_EXIT_CODE].why, "unfinished"));
	assert_true(has_note(s, "unfinished"));
	summary_free(s);
}

static void test_no_ticks_and_one_tick(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_finish(&m, "exit_status", INT64_C(0), "end_ns", MILLI, NULL);
	s = summary_of(file);
	assert_true(s->complete);
	assert_near(value(s, FIG_EXIT_CODE), 0);
	assert_near(value(s, FIG_TICKS), 0);
	assert_string_equal(s->figure[FIG_CPU].why, "no sample was taken");
	assert_string_equal(s->figure[FIG_RSS].why, "no sample was taken");
	summary_free(s);

	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", 30 * MILLI);
	set_memory(&m, 0, 10, 0);
	maker_tick(&m, 100 * MILLI);
	maker_finish(&m, "exit_status", INT64_C(9), "end_ns", 100 * MILLI, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_EXIT_SIGNAL), 9);
	assert_near(value(s, FIG_CPU), 0.03);
	assert_near(value(s, FIG_PEAK_CORES), 0.3);
	assert_near(value(s, FIG_RSS), 40960);
	summary_free(s);
}

static void test_all_ended_before_their_first_sample(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, STORE_NO_ROW, 1, 100, 1, 0, false);
	maker_gone_with(&m, STORE_NO_ROW, 1, MILLI, "reaped", "sampled", INT64_C(0), "max_rss_kib",
		INT64_C(900), NULL);
	maker_set(&m, 0, "tree.gone.user", 800);
	maker_set(&m, 0, "tree.gone.system", 200);
	maker_set(&m, 0, "tree.unsampled", 1);
	maker_tick(&m, 2 * MILLI);
	maker_finish(&m, "end_ns", 2 * MILLI, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_SEEN), 1);
	assert_near(value(s, FIG_UNSAMPLED), 1);
	assert_false(s->unsampled_is_upper_bound);
	assert_near(value(s, FIG_CPU), 0.001);
	assert_near(value(s, FIG_HWM), 900 * 1024);
	assert_non_null(s->figure[FIG_RSS].why);
	assert_near(value(s, FIG_OBSERVED), 0);
	summary_free(s);
}

static void test_unreadable_io_is_null_and_partly_unreadable_is_noted(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	for (int readable = 0; readable < 2; readable++) {
		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_join(&m, 1, 2, 101, 1, 0, false);
		maker_set(&m, 0, "proc.cpu.time", MILLI);
		maker_set(&m, 1, "proc.cpu.time", MILLI);
		if (readable)
			maker_set(&m, 0, "proc.io.read_chars", 77);
		maker_tick(&m, SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		if (readable)
			assert_near(value(s, FIG_READ_CHARS), 77);
		else /* what is gone is zero, but that is not all */
			assert_string_equal(s->figure[FIG_READ_CHARS].why, "could not be read");
		assert_int_equal(has_note(s, "could not be read"), 1);
		assert_int_equal(has_note(s, "io is a lower bound"), readable);
		assert_string_equal(
			s->figure[FIG_TREE_CGROUP_PEAK].why, "no control group was made for the job");
		summary_free(s);
	}
}

static void test_notes_of_what_went_wrong(void **state)
{
	static const char *const words[] = {"2 readings postponed",
		"process events of the kernel were lost 1 time;", "stopped 1 time",
		"wall clock was set 1 time", "3 processes still ran", "4 ticks left out"};
	struct summary *s;
	struct maker m;

	(void)state;
	for (int trouble = 0; trouble < 2; trouble++) {
		maker_open(&m, file, NULL);
		maker_set(&m, 0, "self.smaps.deferred", trouble * 2);
		maker_set(&m, 0, "self.events_lost", trouble);
		if (trouble) {
			maker_event(&m, SECOND, "stopped", NULL, NULL);
			maker_event(&m, SECOND, "continued", NULL, NULL);
			maker_event(&m, SECOND, "clock", "step_ns", "3600000000000");
		}
		maker_tick(&m, SECOND);
		maker_finish(&m, "unfinished", (int64_t)trouble * 3, "skipped", (int64_t)trouble * 4, NULL);
		s = summary_of(file);
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			assert_int_equal(has_note(s, words[i]), trouble);
		assert_int_equal(s->nr_notes, trouble * ARRAY_SIZE(words));
		summary_free(s);
	}
}

/* 19 of 22 on a machine of two CPUs, with and without a thousand threads that could run. */
static void test_notes_why_ticks_were_missed(void **state)
{
	static const struct {
		int64_t missed, running;
		const char *priority, *note, *group;
	} row[] = {
		{19, 1003, "none",
			"19 of 22 ticks missed: the machine was overloaded (1003 runnable threads on 2 CPUs) "
			"and "
			"tacho had no priority; see tacho doctor"},
		{19, 1003, "nice -20", "(1003 runnable threads on 2 CPUs) and tacho had nice -20;"},
		{19, 1003, "none", "and tacho had a CPU group of its own but no priority;", "v2"},
		{19, 1003, NULL, "(1003 runnable threads on 2 CPUs)"},
		{19, 3, "none", "19 of 22 ticks missed: the recorder was delayed"},
		{0, 1003, "none", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct summary *s;
		struct maker m;

		const char *const meta[] = {
			"priority", row[i].priority, row[i].group ? "cpu_group" : NULL, row[i].group, NULL};

		maker_open(&m, file,
			&(struct maker_options){.nr_cpus = 2, .meta = row[i].priority ? meta : NULL});
		maker_set(&m, 0, "load.running", row[i].running);
		for (int tick = 1; tick <= 3; tick++)
			maker_tick(&m, tick * SECOND);
		maker_finish(&m, "missed", row[i].missed, NULL);
		s = summary_of(file);
		assert_int_equal(s->nr_notes, row[i].note != NULL);
		if (row[i].note)
			assert_true(has_note(s, row[i].note));
		summary_free(s);
	}
}

static void test_reasons_told_while_recording(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	pairs_reset(&m.pairs);
	pairs_str(&m.pairs, "metric", "proc.mem.swap");
	pairs_str(&m.pairs, "why", "the kernel has no swap");
	store_event(m.w, 0, "unavailable", &m.pairs);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_string_equal(s->figure[FIG_SWAP].why, "the kernel has no swap");
	summary_free(s);
}

/* In a tree that we started, processes without a waiting parent become our children. */
static void test_unknown_processes_are_an_upper_bound(void **state)
{
	struct maker_options attach = {.mode = "attach"};
	struct maker m;
	struct summary *s;

	(void)state;
	for (int attached = 0; attached < 2; attached++) {
		maker_open(&m, file, attached ? &attach : NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_set(&m, 0, "proc.cpu.time", SECOND);
		maker_set(&m, 0, "tree.unsampled", 3);
		maker_set(&m, 0, "tree.unknown", 40);
		maker_set(&m, 0, "tree.processes", 17);
		maker_tick(&m, SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_near(value(s, FIG_UNSAMPLED), 43);
		assert_true(s->unsampled_is_upper_bound);
		assert_near(value(s, FIG_PROCESSES), 17);
		assert_int_equal(s->cpu_lower_bound, attached);
		summary_free(s);
	}
}

static void test_no_rate_across_a_gap(void **state)
{
	const char *path = dir;
	struct maker m;
	struct summary *s;
	uint64_t random = 1;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, 0, false);
	/* A tenth of a core, but for a burst of two cores in the middle, where the file will be broken. */
	for (int64_t i = 0, cpu = 0; i <= 3000; i++) {
		cpu += i > 1000 && i <= 2000 ? 2 * SECOND : SECOND / 10;
		maker_set(&m, 0, "proc.cpu.time", cpu);
		for (uint32_t row = 0; row < 2; row++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
			maker_set(&m, row, "proc.io.read_chars", i * 1000 + (int64_t)(random >> 56));
			maker_set(&m, row, "proc.mem.vms", (int64_t)(random >> 40));
		}
		maker_tick(&m, i * SECOND);
		if (i % 10 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_PEAK_CORES), 2);
	assert_near(value(s, FIG_CPU), 2000 + 200.1);
	summary_free(s);

	for (double where = 0.34; where < 0.68; where += 0.002)
		damage(file, where);
	s = summary_of(file);
	assert_true(s->lost_bytes > 0);
	assert_true(has_note(s, "damaged"));
	/* Totals are absolute, so nothing of them is lost; the burst is, and is not spread into a false rate.
	 */
	assert_near(value(s, FIG_CPU), 2000 + 200.1);
	assert_near(value(s, FIG_PEAK_CORES), MAX(0.1, value(s, FIG_MEAN_CORES)));
	assert_near(value(s, FIG_SEEN), 2);
	summary_free(s);

	/* Nor when it is one of two. */
	make_long(file_in("b.tacho"), 3001);
	s = summary_of_paths(&path, 1);
	assert_int_equal(s->nr_nodes, 2);
	assert_true(value(s, FIG_PEAK_CORES) < 1.0);
	summary_free(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_tree_is_the_living_and_the_gone),
		T(test_dips_and_overshoots_of_one_tick_are_settled),
		T(test_what_was_used_stays_used),
		T(test_a_counter_that_falls_was_reset),
		T(test_the_kernels_total_wins),
		T(test_who_left_the_group_is_counted_by_processes),
		T(test_a_split_of_the_total_is_never_negative),
		T(test_an_ignored_sigchld_makes_a_lower_bound),
		T(test_attached_trees_count_from_then_on),
		T(test_ended_among_strangers_is_as_last_sampled),
		T(test_a_peak_of_cores_is_never_a_sliver),
		T(test_a_peak_of_cores_is_possible),
		T(test_a_run_shorter_than_an_interval_has_its_mean),
		T(test_memory_peaks_are_of_sums_at_an_instant),
		T(test_pss_follows_rss_between_readings),
		T(test_pss_is_neither_above_rss_nor_below_nothing),
		T(test_pss_never_read_is_an_estimate_and_not_recorded_is_null),
		T(test_pss_of_sharers_in_doubt_is_marked),
		T(test_the_high_water_mark_is_at_least_what_was_seen),
		T(test_a_spike_between_samples_is_told),
		T(test_births_and_ends_between_two_ticks),
		T(test_ends_that_are_not_known),
		T(test_unfinished_recordings_tell_what_they_know),
		T(test_no_ticks_and_one_tick),
		T(test_all_ended_before_their_first_sample),
		T(test_unreadable_io_is_null_and_partly_unreadable_is_noted),
		T(test_notes_of_what_went_wrong),
		T(test_notes_why_ticks_were_missed),
		T(test_reasons_told_while_recording),
		T(test_unknown_processes_are_an_upper_bound),
		T(test_no_rate_across_a_gap),
	};

	return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}
