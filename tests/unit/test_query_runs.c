/* query/: several recordings as one run, many processes, long recordings. */
#include "query_maker.h"

#include "query/series.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- several ---- */

static void make_node(const char *name, const char *host, int64_t start_s, int64_t cores, bool finish)
{
	struct maker_options o = {.host = host, .start_wall_ns = (1700000000 + start_s) * SECOND};
	struct maker m;

	maker_open(&m, file_in(name), &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 10; i++) {
		maker_set(&m, 0, "proc.cpu.time", cores * i * SECOND);
		maker_set(&m, 0, "proc.mem.rss", i == 5 ? 1000 : 100);
		maker_tick(&m, i * SECOND + 300 * MILLI * (start_s % 2));
	}
	if (!finish) {
		maker_abandon(&m);
		return;
	}
	maker_gone(&m, 0, 1, 11 * SECOND, "reaped");
	maker_set(&m, 0, "tree.gone.user", cores * 10000000);
	maker_tick(&m, 11 * SECOND);
	maker_finish(&m, "exit_status", start_s ? INT64_C(0x100) : INT64_C(0), "end_ns", 11 * SECOND, NULL);
}

static void test_several_recordings_are_one_run(void **state)
{
	const char *path = dir;
	struct summary *s;

	(void)state;
	make_node("n1.tacho", "n1", 0, 2, true);
	make_node("n2.tacho", "n2", 5, 3, true);
	make_node("n3.tacho", "n2", 100, 4, true);
	s = summary_of_paths(&path, 1);
	assert_int_equal(s->nr_nodes, 3);
	assert_near(value(&s->node[0], FIG_CPU), 20);
	assert_near(value(&s->node[2], FIG_CPU), 40);
	assert_near(value(s, FIG_CPU), 90);
	assert_near(value(s, FIG_WALL), 111);
	assert_near(value(s, FIG_MEAN_CORES), 90.0 / 111);
	/* 2 and 3 cores overlap, 4 come later; samples of the two do not fall on the same instants. */
	assert_true(value(s, FIG_PEAK_CORES) > 4.99 && value(s, FIG_PEAK_CORES) < 5.01);
	/* Their peaks of 1000 pages are five seconds apart. */
	assert_near(value(s, FIG_RSS), 1100 * 4096);
	assert_near(value(s, FIG_SEEN), 3);
	assert_near(value(s, FIG_PROCESSES), 2);
	/* Two recordings of one host share its CPUs. */
	assert_near(value(s, FIG_CPUS), 16);
	assert_near(value(s, FIG_EXIT_CODE), 1);
	assert_near(value(s, FIG_INTERVAL), 1);
	assert_null(s->host);
	assert_int_equal(s->command_len, 6);
	assert_true(s->complete);
	summary_free(s);

	make_node("n3.tacho", "n2", 100, 4, false);
	s = summary_of_paths(&path, 1);
	assert_false(s->complete);
	assert_true(has_note(s, "1 of 3 recordings are unfinished"));
	summary_free(s);
}

static void test_nodes_begin_and_end_at_their_own_times(void **state)
{
	struct maker_options o = {.host = "late", .start_wall_ns = (1700000000 + 20) * SECOND};
	const char *path = dir;
	struct summary *s;
	struct maker m;

	(void)state;
	/* One is killed with memory in its hands, after ten seconds. */
	make_node("n1.tacho", "n1", 0, 2, false);
	/* The other begins later, and is first seen ten seconds after its start, with four cores behind it.
	 */
	maker_open(&m, file_in("n2.tacho"), &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.mem.rss", 1000);
	maker_set(&m, 0, "proc.cpu.time", 40 * SECOND);
	maker_tick(&m, 10 * SECOND);
	maker_tick(&m, 11 * SECOND);
	maker_abandon(&m);
	s = summary_of_paths(&path, 1);
	assert_near(value(s, FIG_RSS), 1000 * 4096);
	assert_near(value(s, FIG_RSS_AT), 5);
	assert_near(value(s, FIG_PEAK_CORES), 4);
	assert_near(value(s, FIG_WALL), 31);
	summary_free(s);
}

static void test_operands(void **state)
{
	const char *twice[2], *none = file_in("no.tacho");
	struct run *run = NULL;
	struct buf err;
	FILE *f;

	(void)state;
	buf_init(&err, 1000);
	assert_int_equal(run_open(&none, 1, &run, &err), -ENOENT);
	assert_non_null(strstr((char *)err.data, "no.tacho"));
	buf_reset(&err);
	none = dir;
	assert_int_equal(run_open(&none, 1, &run, &err), -ENOENT);
	buf_reset(&err);
	make_node("n1.tacho", "n1", 0, 2, true);
	/* Said twice is still once. */
	twice[0] = strdup(file_in("n1.tacho"));
	twice[1] = dir;
	assert_int_equal(run_open(twice, 2, &run, &err), 0);
	assert_int_equal(run->nr, 1);
	run_close(run);
	twice[1] = twice[0];
	assert_int_equal(run_open(twice, 2, &run, &err), 0);
	assert_int_equal(run->nr, 1);
	run_close(run);
	twice[1] = dir;
	/* A broken neighbour is skipped in a directory, and refused by name. */
	f = fopen(file_in("broken.tacho"), "w");
	fclose(f);
	assert_int_equal(run_open(&twice[1], 1, &run, &err), 0);
	assert_int_equal(run->nr, 1);
	assert_int_equal(run->nr_skipped, 1);
	run_close(run);
	none = file_in("broken.tacho");
	assert_int_equal(run_open(&none, 1, &run, &err), -EBADMSG);
	free((char *)twice[0]);
	buf_release(&err);
}

/* ---- many and long ---- */

static void test_thousands_of_processes(void **state)
{
	struct maker m;
	struct summary *s;
	int64_t gone = 0;

	(void)state;
	maker_open(&m, file, NULL);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t row = i % 1000;

		if (i >= 1000) {
			maker_gone(&m, row, i - 999, (int64_t)i * MILLI, "reaped");
			gone += 1000;
			maker_set(&m, 0, "tree.gone.user", gone);
		}
		maker_join(&m, row, i + 1, 1000 + i, 1, (int64_t)i * MILLI, false);
		maker_set(&m, row, "proc.cpu.time", MILLI);
		maker_set(&m, row, "proc.mem.rss", 10);
		if (i % 100 == 99)
			maker_tick(&m, (int64_t)i * MILLI);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_SEEN), 5000);
	assert_near(value(s, FIG_PROCESSES), 1000);
	assert_near(value(s, FIG_CPU), 5);
	assert_near(value(s, FIG_RSS), 1000 * 40960.0);
	/* A thousand times a hundred of them came and went between two ticks, and were never seen. */
	assert_near(value(s, FIG_OBSERVED), 1);
	summary_free(s);
}

/* Of AddressSanitizer, where the program is built with it: the C library then has nothing to tell. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t bytes_now(void)
{
	struct mallinfo2 info = mallinfo2();

	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : info.uordblks + info.hblkhd;
}

static size_t series_walk(const char *path, size_t *ret_bytes)
{
	static const char *const metric[] = {"tree.cores", "proc.mem.rss"};
	struct series_query q = {.metric = metric, .nr = 2};
	struct series_point point;
	struct series *series;
	struct buf err;
	size_t n = 0, most = 0;

	buf_init(&err, 1000);
	assert_int_equal(series_open(path, &q, &series, &err), 0);
	while (series_next(series, &point) > 0)
		if (n++ % 64 == 0)
			most = MAX(most, bytes_now());
	series_close(series);
	buf_release(&err);
	*ret_bytes = most;
	return n;
}

/* The greatest number of bytes allocated at once while the points behind a summary are read. */
static size_t account_bytes(const char *path)
{
	struct ledger *a = NULL;
	struct point point;
	size_t n = 0, most = 0;

	assert_int_equal(ledger_open(path, &a), 0);
	while (ledger_next(a, &point) > 0)
		if (n++ % 64 == 0)
			most = MAX(most, bytes_now());
	ledger_close(a);
	return most;
}

static void test_memory_does_not_grow_with_length(void **state)
{
	size_t shorter, longer, a, b;
	struct summary *s;

	(void)state;
	make_long(file_in("short.tacho"), 2000);
	make_long(file_in("long.tacho"), 200000);
	shorter = account_bytes(file_in("short.tacho"));
	longer = account_bytes(file_in("long.tacho"));
	if (!shorter)
		skip(); /* valgrind's allocator keeps no such account */
	assert_true(longer < shorter + 65536);
	assert_int_equal(series_walk(file_in("short.tacho"), &a), 2000);
	assert_int_equal(series_walk(file_in("long.tacho"), &b), 200000);
	assert_true(b < a + 65536);
	s = summary_of(file_in("long.tacho"));
	assert_near(value(s, FIG_TICKS), 200000);
	assert_near(value(s, FIG_CPU), 199.999);
	summary_free(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_several_recordings_are_one_run),
		T(test_nodes_begin_and_end_at_their_own_times),
		T(test_operands),
		T(test_thousands_of_processes),
		T(test_memory_does_not_grow_with_length),
	};

	return cmocka_run_group_tests_name("query_runs", tests, NULL, NULL);
}
