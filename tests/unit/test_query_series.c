/* query/ and report/: the table of processes, time series, expressions, and the summary in words. */
#include "query_maker.h"

#include "query/derived.h"
#include "base/expr.h"
#include "query/process_table.h"
#include "query/series.h"
#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- processes ---- */

static void test_the_table_of_processes(void **state)
{
	struct process_table *t;
	struct process_row *row;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, SECOND / 2, false);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_set(&m, 0, "proc.cpu.user", 90);
	maker_set(&m, 0, "proc.cpu.system", 10);
	maker_set(&m, 0, "proc.cpu.children_user", 1000);
	set_memory(&m, 0, 100, 0);
	maker_set(&m, 1, "proc.cpu.time", 2 * SECOND);
	maker_set(&m, 1, "proc.fds", 12);
	maker_tick(&m, SECOND);
	set_memory(&m, 0, 30, 0);
	maker_set(&m, 1, "proc.fds", 4);
	maker_tick(&m, 2 * SECOND);
	maker_gone_with(&m, 1, 2, 5 * SECOND / 2, "exit-record", "sampled", INT64_C(1), "cpu_ns", 3 * SECOND,
		"user_us", INT64_C(2500000), "system_us", INT64_C(500000), "status", INT64_C(11),
		"max_rss_kib", INT64_C(777), NULL);
	maker_join(&m, STORE_NO_ROW, 3, 102, 100, 2 * SECOND, false);
	maker_gone_with(&m, STORE_NO_ROW, 3, 2 * SECOND + 5 * MILLI, "event", "sampled", INT64_C(0), "status",
		INT64_C(0x700), NULL);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);

	t = table_of(file);
	assert_int_equal(t->nr, 3);
	process_table_sort(t, ORDER_PID, false);
	row = &t->row[0];
	assert_near(row->value[PROCESS_CPU], 1);
	assert_near(row->value[PROCESS_USER], 0.9);
	assert_near(row->value[PROCESS_RSS], 409600);
	assert_false(row->ended);
	assert_near(row->value[PROCESS_WALL], 3);
	assert_true(isnan(row->value[PROCESS_FDS]));
	assert_int_equal(row->command_len, 9);
	row = &t->row[1];
	assert_near(row->value[PROCESS_CPU], 3);
	assert_near(row->value[PROCESS_SYSTEM], 0.5);
	assert_near(row->value[PROCESS_FDS], 12);
	assert_near(row->value[PROCESS_HWM], 777 * 1024);
	assert_near(row->value[PROCESS_WALL], 2);
	assert_int_equal(row->status, 11);
	assert_string_equal(row->how, "exit-record");
	row = &t->row[2];
	assert_false(row->sampled);
	assert_true(row->ended);
	assert_near(row->value[PROCESS_START], 2);
	assert_near(row->value[PROCESS_WALL], 0.005);
	assert_true(isnan(row->value[PROCESS_CPU]));

	process_table_sort(t, ORDER_CPU, false);
	assert_near(t->row[0].value[PROCESS_PID], 101);
	assert_near(t->row[2].value[PROCESS_PID], 102);
	process_table_sort(t, ORDER_CPU, true);
	assert_near(t->row[0].value[PROCESS_PID], 100);
	assert_near(t->row[2].value[PROCESS_PID], 102); /* what is not known stays last */
	process_table_free(t);
}

/* Its largest memory up to its end is not known (1), or is in that of those who waited for it (2). */
static void test_memory_that_nobody_saw_makes_a_lower_bound(void **state)
{
	static const struct {
		const char *mode, *key;
		int64_t value, dropped;
		bool is_lower;
	} of[] = {{"attach", "max_rss_least", 1, 0, true}, {"attach", "sampled", 1, 0, false},
		{"run", "max_rss_least", 2, 0, false}, {"run", "max_rss_least", 2, SECOND, true},
		{"run", "max_rss_least", 1, 0, true}};
	struct process_table *t;
	struct maker m;
	struct summary *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		maker_open(&m, file, &(struct maker_options){.mode = of[i].mode});
		maker_join(&m, 0, 1, 100, 1, 0, false);
		set_memory(&m, 0, 1000, 0);
		maker_set(&m, 0, "proc.mem.hwm", 4000);
		maker_set(&m, 0, "tree.dropped", of[i].dropped);
		maker_tick(&m, SECOND);
		maker_gone_with(&m, 0, 1, 2 * SECOND, "noticed", "max_rss_kib", INT64_C(4000), of[i].key,
			of[i].value, NULL);
		maker_tick(&m, 2 * SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_int_equal(s->memory_lower_bound, of[i].is_lower);
		assert_int_equal(has_note(s, "memory is a lower bound"), of[i].is_lower && !of[i].dropped);
		summary_free(s);
		t = table_of(file);
		assert_int_equal(t->row[0].hwm_least, strcmp(of[i].key, "sampled") != 0);
		process_table_free(t);
	}
}

/* The same number told again, as where a segment starts, is no exec. */
static void test_memory_after_an_exec_is_that_of_the_new_program(void **state)
{
	struct process_table *t;
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	for (int i = 0; i < 3; i++) {
		maker_execs = i > 0;
		maker_join(&m, 0, 1, 100, 1, i * SECOND, false);
		set_memory(&m, 0, i == 0 ? 50000 : i == 1 ? 2000 : 1000, 0);
		maker_set(&m, 0, "proc.mem.hwm", i ? 8000 : 200000);
		maker_tick(&m, (i + 1) * SECOND);
	}
	maker_execs = 0;
	maker_gone_with(&m, 0, 1, 4 * SECOND, "reaped", "max_rss_kib", INT64_C(8400), NULL);
	maker_tick(&m, 4 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_HWM), 50000 * 4096.0);
	summary_free(s);
	t = table_of(file);
	assert_int_equal(t->nr, 1);
	assert_near(t->row[0].value[PROCESS_HWM], 8400 * 1024);
	/* Older recorders did not say whether children are in it. */
	assert_true(t->row[0].hwm_most);
	assert_near(t->row[0].value[PROCESS_RSS], 2000 * 4096);
	process_table_free(t);
}

static void test_attached_processes_have_used_what_they_used_since(void **state)
{
	struct maker_options o = {.mode = "attach"};
	struct process_table *t;
	struct maker m;

	(void)state;
	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, -100 * SECOND, true);
	maker_set(&m, 0, "proc.cpu.time", 50 * SECOND);
	maker_set(&m, 0, "proc.io.read_chars", 1000);
	maker_tick(&m, 0);
	maker_set(&m, 0, "proc.cpu.time", 51 * SECOND);
	maker_set(&m, 0, "proc.io.read_chars", 1700);
	maker_tick(&m, SECOND);
	maker_gone_with(&m, 0, 1, 2 * SECOND, "noticed", "sampled", INT64_C(1), "cpu_ns", 52 * SECOND, NULL);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, NULL);
	t = table_of(file);
	assert_int_equal(t->nr, 1);
	assert_true(t->row[0].late);
	assert_near(t->row[0].value[PROCESS_CPU], 2);
	assert_near(t->row[0].value[PROCESS_READ_CHARS], 700);
	process_table_free(t);
}

/* ---- series ---- */

static void test_rates_are_over_the_time_that_passed(void **state)
{
	static const int64_t time_ms[] = {0, 1000, 1500, 3500, 4500, 5500};
	static const int64_t chars[] = {1000, 2000, 3000, 5000, 100, 300};
	static const double rate[] = {NAN, 1000, 2000, 1000, NAN, 200};
	static const double raw[] = {1000, 2000, 3000, 5000, 100, 300};
	struct series_query q = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(chars); i++) {
		maker_set(&m, 0, "proc.io.read_chars", chars[i]);
		maker_tick(&m, time_ms[i] * MILLI);
	}
	maker_finish(&m, NULL);
	expect_series("proc.io.read_chars", &q, rate, ARRAY_SIZE(rate));
	expect_series("proc.io.read_chars", NULL, raw, ARRAY_SIZE(raw));
}

/* A set that was read 500 ms after the tick's time has its growth of 1.5 s, and the next of half a second. */
static void test_the_time_of_a_rate_is_that_of_the_reading(void **state)
{
	static const int64_t bytes[] = {0, 1000, 2500, 3000, 4000};
	static const double rate[] = {NAN, 1000, 1000, 1000, 1000};
	struct series_query q = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++) {
		maker_set(&m, 0, "net.rx.bytes", bytes[i]);
		m.table[MAKER_NET].delay_ns = i == 2 ? 500 * MILLI : 0;
		maker_tick(&m, (int64_t)i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("net.rx.bytes", &q, rate, ARRAY_SIZE(rate));
	expect_series("net.rx.rate", NULL, rate, ARRAY_SIZE(rate));
}

/* The kernel adds CPU time at its own ticks: of 100 ms on one CPU 104 or 96 are counted. What is impossible
 * is carried over; what is far beyond that is no matter of ticks, and is shown. */
static void expect_no_more_than_one(int64_t cpus, int64_t threads)
{
	static const int64_t used_ms[] = {100, 204, 300, 400, 600};
	static const double cores[] = {NAN, 1, 1, 1, 1, 1.9};
	struct maker_options o = {.interval_ns = 100 * MILLI};
	struct maker m;

	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_LIMITS, 0, 0, "job", NULL);
	maker_set(&m, 0, "limit.cpus", cpus * 1000);
	maker_set(&m, 0, "proc.threads", threads);
	maker_set(&m, 0, "proc.cpu.time", 0);
	maker_tick(&m, 0);
	for (size_t i = 0; i < ARRAY_SIZE(used_ms); i++) {
		maker_set(&m, 0, "proc.cpu.time", used_ms[i] * MILLI);
		maker_tick(&m, (int64_t)(i + 1) * 100 * MILLI);
	}
	maker_finish(&m, NULL);
	expect_series("proc.cpu.cores", NULL, cores, ARRAY_SIZE(cores));
	expect_series("tree.cores", NULL, cores, ARRAY_SIZE(cores));
}

static void test_no_more_cpus_than_there_are(void **state)
{
	(void)state;
	expect_no_more_than_one(1, 4);
	expect_no_more_than_one(8, 1); /* one thread is on one CPU at a time */
}

/* What one used that sleeps then: what is carried over shows in the next ticks, and not for ever. The clocks
 * of those who sleep may be read at one of four ticks: what one used that woke is found late. */
static void expect_carried(int64_t used_ms, bool turns, const double *cores, size_t nr)
{
	struct maker_options o = {.interval_ns = 100 * MILLI};
	struct maker m;

	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_LIMITS, 0, 0, "job", NULL);
	maker_set(&m, 0, "limit.cpus", 8000);
	maker_set(&m, 0, "proc.threads", 1);
	maker_set(&m, 0, "proc.cpu.time", 0);
	for (size_t i = 0; i < nr; i++) {
		if (i == 2)
			maker_set(&m, 0, "proc.cpu.time", used_ms * MILLI);
		maker_tick(&m, (int64_t)i * 100 * MILLI);
		if (!i && turns)
			maker_event(&m, 50 * MILLI, "turns", "clocks_every", "4");
	}
	maker_finish(&m, NULL);
	expect_series("proc.cpu.cores", NULL, cores, nr);
	expect_series("tree.cores", NULL, cores, nr);
}

static void test_what_is_carried_over_comes_to_an_end(void **state)
{
	static const double tick[] = {NAN, 0, 1, 0.04, 0, 0}, woke[] = {NAN, 0, 1, 1, 1, 0.5, 0, 0};
	static const double more[] = {NAN, 0, 5, 1, 1, 1, 1, 0.1, 0};

	(void)state;
	expect_carried(104, false, tick, ARRAY_SIZE(tick));
	expect_carried(350, true, woke, ARRAY_SIZE(woke));
	expect_carried(910, true, more, ARRAY_SIZE(more)); /* that is not explained by turns */
}

static void test_absent_is_not_zero_and_nobody_is(void **state)
{
	static const double rss[] = {NAN, 40960, NAN, 40960 * 2, 0};
	static const double rate[] = {NAN, NAN, NAN, 150, 0};
	struct series_query q = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, true);
	maker_set(&m, 0, "proc.threads", 1);
	maker_set(&m, 0, "proc.cpu.time", 0);
	maker_tick(&m, 0);
	maker_set(&m, 0, "proc.mem.rss", 10);
	maker_set(&m, 0, "proc.io.read_chars", 100);
	maker_tick(&m, SECOND);
	maker_unset(&m, 0, "proc.mem.rss");
	maker_unset(&m, 0, "proc.io.read_chars");
	maker_tick(&m, 2 * SECOND);
	maker_set(&m, 0, "proc.mem.rss", 20);
	maker_set(&m, 0, "proc.io.read_chars", 400);
	maker_tick(&m, 3 * SECOND);
	maker_gone(&m, 0, 1, 4 * SECOND, "reaped");
	maker_tick(&m, 4 * SECOND);
	maker_finish(&m, NULL);
	expect_series("proc.mem.rss", NULL, rss, ARRAY_SIZE(rss));
	/* Two seconds passed since the value before. */
	expect_series("proc.io.read_chars", &q, rate, ARRAY_SIZE(rate));
}

/* GPUs, for instance, are there when their driver has answered. */
static void test_before_the_first_was_there_nothing_is_known(void **state)
{
	static const double rss[] = {NAN, 40960, 0};

	(void)state;
	make_one_in_between(file);
	expect_series("proc.mem.rss", NULL, rss, ARRAY_SIZE(rss));
}

static void test_rates_of_processes_that_come_and_go(void **state)
{
	/* One of 1 core all the time; one born in the third second that burns half a core; a latecomer. */
	static const double own[] = {NAN, 1, 1.5, 1.5, 1.25, 1};
	static const double one[] = {NAN, NAN, 0.5, 0.5, NAN, NAN};
	struct series_query pid = {.pid = 101};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 6; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		if (i == 2)
			maker_join(&m, 1, 2, 101, 100, 2 * SECOND, false);
		if (i == 2 || i == 3)
			maker_set(&m, 1, "proc.cpu.time", (i - 1) * SECOND / 2);
		if (i == 4)
			maker_gone(&m, 1, 2, i * SECOND, "event");
		if (i == 3) {
			maker_join(&m, 2, 3, 102, 100, 0, true);
			maker_set(&m, 2, "proc.cpu.time", 1000 * SECOND);
		}
		if (i == 4)
			maker_set(&m, 2, "proc.cpu.time", 1000 * SECOND + SECOND / 4);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("proc.cpu.cores", NULL, own, ARRAY_SIZE(own));
	expect_series("proc.cpu.cores", &pid, one, ARRAY_SIZE(one));
}

static void test_the_trees_rate_is_taken_of_the_sum(void **state)
{
	/* A child burns one core for two seconds and is then waited for. Its parent's children's time jumps
	 * by two seconds, which is no burst; missing for a tick, it is no dip either. */
	static const double cores[] = {NAN, 1, 1, 0, 0, 0.5};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 1, 2, 101, 100, 0, false);
	for (int64_t i = 0; i < 6; i++) {
		maker_set(&m, 0, "proc.cpu.time", 0);
		maker_set(&m, 0, "proc.cpu.children_user", i < 2 ? 0 : i < 5 ? 200 : 250);
		maker_set(&m, 0, "proc.cpu.children_system", 0);
		if (i < 3)
			maker_set(&m, 1, "proc.cpu.time", i * SECOND);
		if (i == 3)
			maker_gone(&m, 1, 2, i * SECOND, "event");
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("tree.cores", NULL, cores, ARRAY_SIZE(cores));
}

/* A late tick is followed too closely by the next: together they are one step. */
static void test_slivers_are_no_steps_of_the_tree(void **state)
{
	static const int64_t time_ms[] = {0, 1000, 2900, 3000, 4000};
	static const int64_t cpu_ms[] = {0, 500, 1450, 1550, 2050};
	static const double cores[] = {NAN, 0.5, 0.5, 0.5, 600 / 1100.0};
	struct maker m;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.interval_ns = SECOND});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(cpu_ms); i++) {
		maker_set(&m, 0, "proc.cpu.time", cpu_ms[i] * MILLI);
		maker_tick(&m, time_ms[i] * MILLI);
	}
	maker_finish(&m, NULL);
	expect_series("tree.cores", NULL, cores, ARRAY_SIZE(cores));
}

static void make_net(
	const int64_t *time_ms, const unsigned *at, const int64_t *received, const int64_t *sent, size_t nr)
{
	struct maker m;

	maker_open(&m, file, &(struct maker_options){.interval_ns = SECOND});
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	for (size_t i = 0; i < nr; i++) {
		maker_set(&m, 0, "net.rx.bytes", received[i]);
		maker_set(&m, 0, "net.tx.bytes", sent[i]);
		maker_tick_at(&m, time_ms[i] * MILLI, at[i]);
	}
	maker_finish(&m, NULL);
}

/* A tick at the edge of a phase is close to another, and a device counted in one go what it had done in half
 * a second: no peak, and nothing is lost. Also where nothing had moved before, or moves after it. */
static void test_ticks_at_edges_make_no_peaks_of_devices(void **state)
{
	enum { E = TICK_AT_EDGE, END = TICK_AT_END };
	static const int64_t time_ms[] = {
		0, 1000, 1020, 2000, 2980, 3000, 4000, 4050, 4100, 5000, 6000, 6010, 6020};
	static const unsigned at[] = {0, 0, E, 0, E, 0, 0, E, E, 0, 0, E, END};
	static const int64_t bytes[] = {
		0, 1000, 1500, 2000, 2980, 3500, 4000, 4000, 4000, 4000, 4000, 4300, 4300};
	static const double rate[] = {NAN, 1000, 1000, 1000, 1000, 1000, 1000, 0, 0, 0, 0, 0, 30000};
	static const int64_t still[] = {7, 7, 7, 7, 7, 7, 7, 997, 997, 997, 997, 997, 997};
	static const double rise[] = {NAN, 0, 0, 0, 0, 0, 0, 0, 0, 1100, 0, 0, 0};

	(void)state;
	make_net(time_ms, at, bytes, still, ARRAY_SIZE(bytes));
	expect_series("net.rx.rate", NULL, rate, ARRAY_SIZE(rate));
	expect_series("net.tx.rate", NULL, rise, ARRAY_SIZE(rise));
}

/* A ratio of two rates stays as it was, and then is that of all that grew: never of one part of each. */
static void test_ticks_at_edges_make_no_false_ratios(void **state)
{
	static const int64_t time_ms[] = {0, 1000, 1020, 2000, 3000};
	static const int64_t busy[] = {0, 20, 22, 30, 130}, idle[] = {0, 80, 82, 170, 170};
	static const double ratio[] = {NAN, 0.2, 0.2, 0.1, 1};
	static const char *const others[] = {
		"cpu.nice", "cpu.system", "cpu.iowait", "cpu.irq", "cpu.softirq"};
	struct maker m;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.interval_ns = SECOND});
	for (size_t i = 0; i < ARRAY_SIZE(ratio); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(others); k++)
			maker_set(&m, 0, others[k], 0);
		maker_set(&m, 0, "cpu.user", busy[i]);
		maker_set(&m, 0, "cpu.idle", idle[i]);
		maker_tick_at(&m, time_ms[i] * MILLI, i == 2 ? TICK_AT_EDGE : 0);
	}
	maker_finish(&m, NULL);
	expect_series("cpu.idle_ratio", NULL, (double[]){NAN, 0.8, 0.8, 0.9, 0}, ARRAY_SIZE(ratio));
	expect_series("cpu.busy", NULL, ratio, ARRAY_SIZE(ratio));
}

/* The first rate that there is: over more than a sliver. */
static void test_the_first_rate_of_a_device_is_over_no_sliver(void **state)
{
	static const int64_t time_ms[] = {0, 20, 1000, 2000};
	static const unsigned at[] = {0, TICK_AT_EDGE, 0, 0};
	static const int64_t bytes[] = {0, 500, 1000, 2000};
	static const double rate[] = {NAN, NAN, 1000, 1000};

	(void)state;
	make_net(time_ms, at, bytes, bytes, ARRAY_SIZE(bytes));
	expect_series("net.rx.rate", NULL, rate, ARRAY_SIZE(rate));
}

static void test_what_is_read_seldom_has_rates_over_that_time(void **state)
{
	/* Read every five seconds, 100 more each time; ticks of one second. */
	static const double rate[] = {NAN, NAN, NAN, NAN, NAN, 20, 20, 20, 20, 20, 20, 20};
	struct series_query q = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 12; i++) {
		maker_set(&m, 0, "proc.switches.voluntary", i / 5 * 100);
		maker_set(&m, 0, "proc.threads", i);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("proc.switches.voluntary", &q, rate, ARRAY_SIZE(rate));
}

/* From reading to reading, wherever they fall: no zero before the second, none too high after it. What did
 * not move was read all the same. */
static void test_what_is_read_seldom_is_measured_between_readings(void **state)
{
	static const int64_t time_ms[] = {
		0, 2000, 4600, 5200, 9000, 10000, 12000, 17600, 19000, 20000, 20500};
	static const int64_t value[] = {0, 0, 0, 52, 52, 100, 100, 100, 100, 150, 155};
	static const double rate[] = {NAN, NAN, NAN, 10, 10, 10, 10, 0, 0, 10, 10};
	struct series_query q = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(value); i++) {
		maker_set(&m, 0, "proc.switches.voluntary", value[i]);
		maker_set(&m, 0, "proc.threads", (int64_t)i);
		maker_tick(&m, time_ms[i] * MILLI);
	}
	maker_finish(&m, NULL);
	expect_series("proc.switches.voluntary", &q, rate, ARRAY_SIZE(rate));
}

static void test_a_total_of_the_source_is_the_fold(void **state)
{
	static const double busy[] = {NAN, 0.25}, user[] = {3, 3.5};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	for (int64_t i = 0; i < 2; i++) {
		for (uint32_t cpu = 0; cpu < 3; cpu++) {
			static const char *const other[] = {
				"cpu.nice", "cpu.system", "cpu.iowait", "cpu.irq", "cpu.softirq"};

			for (size_t j = 0; j < ARRAY_SIZE(other); j++)
				maker_set(&m, cpu, other[j], 0);
		}
		maker_set(&m, 0, "cpu.user", 300 + i * 50); /* with what an unplugged CPU did */
		maker_set(&m, 0, "cpu.idle", 1000 + i * 150);
		maker_set(&m, 1, "cpu.user", 100 + i * 50);
		maker_set(&m, 1, "cpu.idle", 500 + i * 50);
		maker_set(&m, 2, "cpu.user", 100);
		maker_set(&m, 2, "cpu.idle", 500 + i * 100);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("cpu.busy", NULL, busy, 2);
	expect_series("cpu.user", NULL, user, 2);
}

static void test_a_line_for_each_instance(void **state)
{
	struct series_query q = {.per_instance = true};
	struct series_point point;
	struct series *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_join(&m, 3, 2, 101, 100, 0, false);
	maker_set(&m, 0, "proc.state", 'R');
	maker_set(&m, 3, "proc.state", 'S');
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = series_of("proc.state", &q);
	assert_int_equal(series_next(s, &point), 1);
	assert_int_equal(point.pid, 100);
	assert_near(point.value[0], 'R');
	assert_int_equal(series_next(s, &point), 1);
	assert_int_equal(point.pid, 101);
	assert_string_equal(point.instance, "worker");
	assert_near(point.value[0], 'S');
	assert_int_equal(series_next(s, &point), 0);
	series_close(s);
}

static void test_questions_that_make_no_sense(void **state)
{
	static const struct {
		const char *metric[2];
		bool per_instance;
		int64_t pid;
		const char *words;
	} bad[] = {
		{{"proc.mem.rsss"}, false, 0, "did you mean 'proc.mem.rss'?"},
		{{"nothing.like.it.at.all"}, false, 0, "tacho metrics"},
		{{"proc.state"}, false, 0, "cannot be added up"},
		{{"cpu.user"}, false, 100, "not a metric of single processes"},
		{{"tree.cores"}, true, 0, "whole tree"},
		{{"proc.mem.rss", "cpu.user"}, true, 0, "different instances"},
		{{"mem.used"}, false, 0, "not recorded"},
	};
	struct maker m;
	struct buf err;

	(void)state;
	maker_open(&m, file, NULL);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	buf_init(&err, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct series_query q = {.metric = bad[i].metric,
			.nr = bad[i].metric[1] ? 2 : 1,
			.per_instance = bad[i].per_instance,
			.pid = bad[i].pid};
		struct series *s = NULL;

		buf_reset(&err);
		assert_true(series_open(file, &q, &s, &err) < 0);
		if (!strstr((char *)err.data, bad[i].words))
			fail_msg("'%s' does not say '%s'", (char *)err.data, bad[i].words);
	}
	buf_release(&err);
}

/* A job of milliseconds has no schema yet. */
static void test_a_recording_that_has_just_begun(void **state)
{
	struct series_query q = {.metric = (const char *const[]){"tree.cpu"}, .nr = 1};
	struct series *s = NULL;
	struct store_writer *w = NULL;
	struct buf err;

	(void)state;
	assert_int_equal(store_create(file, true, &w), 0);
	store_abandon(w);
	buf_init(&err, 1000);
	assert_int_equal(series_open(file, &q, &s, &err), -ENODATA);
	assert_non_null(strstr((char *)err.data, ": the recording ends before its list of metrics"));
	buf_release(&err);
}

/* The derived metrics of PSS and the summary's are one definition. */
static void test_pss_now_as_a_series(void **state)
{
	static const double pss[] = {50 * 4096, 300 * 1024, 640 * 1024, 0};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	set_memory(&m, 0, 100, 30);
	maker_set(&m, 0, "proc.smaps.doubt", 80); /* its parent's */
	maker_tick(&m, 0);
	set_smaps(&m, 0, 400, 300, 40, 200);
	maker_tick(&m, SECOND);
	maker_set(&m, 0, "proc.smaps.doubt", -60); /* others bear that much of the reading by now */
	set_memory(&m, 0, 200, 30);
	maker_tick(&m, 2 * SECOND);
	set_memory(&m, 0, 0, 0);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	expect_series("proc.mem.pss_now", NULL, pss, 4);
	s = summary_of(file);
	assert_near(value(s, FIG_PSS), 640 * 1024);
	summary_free(s);
}

/* ---- expressions ---- */

static double evaluate(const char *text, double a, double b)
{
	double value[EXPR_NAMES] = {a, b}, rate[EXPR_RATES] = {10, 20};
	const char *why;
	struct expr e;
	size_t at;

	if (expr_parse(&e, text, &why, &at) < 0)
		fail_msg("%s: %s at %zu", text, why, at);
	return expr_value(&e, value, rate);
}

static void test_expressions(void **state)
{
	static const char *const bad[] = {"", "1 +", "(1", "1)", "a b", "max(1)", "rate()", "rate(rate(a))",
		"foo(1)", "1.2.3", "1x", "-", "--1", "a,b", "max(1,)", "rate(a, b)", "A", "1 / * 2", "or(a)",
		"((((((((((((((((((((((((((1"};
	double argument[EXPR_RATES], value[EXPR_NAMES] = {3, 4};
	const char *why;
	struct expr e;
	char big[2000];
	size_t at;

	(void)state;
	assert_near(evaluate("1 + 2 * 3", 0, 0), 7);
	assert_near(evaluate("(1 + 2) * 3", 0, 0), 9);
	assert_near(evaluate("8 / 4 / 2", 0, 0), 1);
	assert_near(evaluate("8 - 4 - 2", 0, 0), 2);
	assert_near(evaluate("-a + b", 3, 5), 2);
	assert_near(evaluate("a.b_c1 * 2 + x", 3, 5), 11);
	assert_near(evaluate("max(1, a, b)", 3, 5), 5);
	assert_near(evaluate("min(1, a, b)", 3, 5), 1);
	assert_near(evaluate("or(a, b)", NAN, 5), 5);
	assert_near(evaluate("or(a, b)", 3, 5), 3);
	assert_near(evaluate("0.5 * 3.25", 0, 0), 1.625);
	assert_true(isnan(evaluate("a + b", NAN, 5)));
	assert_true(isnan(evaluate("max(a, b)", NAN, 5)));
	assert_true(isnan(evaluate("a / b", 1, 0)));
	assert_near(evaluate("or(1 / a, b)", 0, 5), 5);
	assert_near(evaluate("rate(a) + 2 * rate(b)", 0, 0), 50);
	assert_int_equal(expr_parse(&e, "rate(a + 1) / rate(b * a)", &why, &at), 0);
	assert_int_equal(e.nr_names, 2);
	expr_arguments(&e, value, argument);
	assert_near(argument[0], 4);
	assert_near(argument[1], 12);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (expr_parse(&e, bad[i], &why, &at) >= 0)
			fail_msg("'%s' was accepted", bad[i]);
	memset(big, '(', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	assert_int_equal(expr_parse(&e, big, &why, &at), -E2BIG);
	for (size_t i = 0; i + 1 < sizeof(big); i++)
		big[i] = i % 2 ? '+' : '1';
	assert_int_equal(expr_parse(&e, big, &why, &at), -E2BIG);
}

static void test_every_derived_metric_can_be_computed(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_derived; i++) {
		const char *why;
		struct expr e;
		size_t at;

		if (expr_parse(&e, derived[i].expression, &why, &at) < 0)
			fail_msg("%s: %s at %zu", derived[i].name, why, at);
		assert_true(e.nr_names > 0);
		assert_ptr_equal(derived_find(derived[i].name), &derived[i]);
		assert_true(
			derived[i].name[strspn(derived[i].name, "abcdefghijklmnopqrstuvwxyz0123456789_.")] ==
			0);
		assert_int_equal(derived[i].help[strlen(derived[i].help) - 1], '.');
	}
}

/* ---- for people ---- */

static void print_summary(struct buf *out, bool utf8, unsigned width)
{
	struct summary_style style = {.utf8 = utf8, .width = width};
	struct summary *s = summary_of(file);

	buf_reset(out);
	assert_int_equal(summary_print(s, &style, out), 0);
	summary_free(s);
}

static void test_the_summary_in_words(void **state)
{
	struct maker_options o = {.command = "sh\0-c\0echo 'a b'\n\xff", .command_len = 18};
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 102; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * 6 * SECOND);
		maker_set(&m, 0, "proc.cpu.user", i * 500);
		maker_set(&m, 0, "proc.cpu.system", i * 100);
		set_memory(&m, 0, i == 58 ? 262144 : 1000, 10);
		maker_set(&m, 0, "proc.threads", 1);
		maker_tick(&m, i * SECOND);
	}
	maker_gone(&m, 0, 1, 102 * SECOND, "reaped");
	maker_set(&m, 0, "tree.gone.user", 102 * 5 * 1000000);
	maker_set(&m, 0, "tree.gone.system", 102 * 1000000);
	maker_set(&m, 0, "tree.unsampled", 3977);
	maker_tick(&m, 102 * SECOND);
	maker_finish(&m, "exit_status", INT64_C(0), "end_ns", 102 * SECOND, "missed", INT64_C(0),
		"self_cpu_ns", 306 * MILLI, NULL);
	buf_init(&out, 100000);
	print_summary(&out, true, 120);
	assert_non_null(strstr((char *)out.data, "exit 0   wall 1m42s\n"));
	assert_non_null(
		strstr((char *)out.data, "10m12s (user 8m30s, sys 1m42s)   6.0 cores mean, 6.0 peak, of 8"));
	assert_non_null(strstr((char *)out.data, "peak ~1 GiB PSS at 0m58s"));
	assert_non_null(strstr((char *)out.data,
		"1 process, 1 at once, 1 thread; 3,977 too short to be sampled: all counted"));
	assert_non_null(strstr((char *)out.data, "0.3 % of one core"));
	assert_non_null(strstr((char *)out.data, "sh -c 'echo '\\''a b'\\''\\n\\xff'"));
	assert_non_null(strstr((char *)out.data, "▁"));
	assert_null(strstr((char *)out.data, "\033"));
	print_summary(&out, false, 120);
	for (size_t i = 0; i < out.len; i++)
		assert_true(out.data[i] < 0x7f);
	assert_non_null(strstr((char *)out.data, "#"));
	/* Too narrow for the shape. */
	print_summary(&out, true, 90);
	assert_null(strstr((char *)out.data, "▁"));
	buf_release(&out);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_table_of_processes),
		T(test_memory_that_nobody_saw_makes_a_lower_bound),
		T(test_memory_after_an_exec_is_that_of_the_new_program),
		T(test_attached_processes_have_used_what_they_used_since),
		T(test_rates_are_over_the_time_that_passed),
		T(test_the_time_of_a_rate_is_that_of_the_reading),
		T(test_no_more_cpus_than_there_are),
		T(test_what_is_carried_over_comes_to_an_end),
		T(test_absent_is_not_zero_and_nobody_is),
		T(test_before_the_first_was_there_nothing_is_known),
		T(test_rates_of_processes_that_come_and_go),
		T(test_the_trees_rate_is_taken_of_the_sum),
		T(test_slivers_are_no_steps_of_the_tree),
		T(test_ticks_at_edges_make_no_peaks_of_devices),
		T(test_ticks_at_edges_make_no_false_ratios),
		T(test_the_first_rate_of_a_device_is_over_no_sliver),
		T(test_what_is_read_seldom_has_rates_over_that_time),
		T(test_what_is_read_seldom_is_measured_between_readings),
		T(test_a_total_of_the_source_is_the_fold),
		T(test_a_line_for_each_instance),
		T(test_questions_that_make_no_sense),
		T(test_a_recording_that_has_just_begun),
		T(test_pss_now_as_a_series),
		T(test_expressions),
		T(test_every_derived_metric_can_be_computed),
		T(test_the_summary_in_words),
	};

	return cmocka_run_group_tests_name("query_series", tests, NULL, NULL);
}
