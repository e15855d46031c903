/* query/ and report/ on recordings that no machine would make: cells of any value, scales that are no
 * numbers, instances that come and go without rhyme, files cut and broken anywhere. Nothing is right here;
 * nothing may be undefined, endless or untidy either. Meant for the builds with sanitizers, and quick enough
 * for all. */
#include "query_maker.h"

#include "query/process_table.h"
#include "query/series.h"
#include "text/processes.h"
#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static int64_t any_value(void)
{
	static const int64_t extreme[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1 << 16};

	if (any(3) == 0)
		return extreme[any(ARRAY_SIZE(extreme))];
	return (int64_t)(any(UINT64_MAX) >> any(64));
}

/* All questions, of a file that may be anything. False when it is no recording. */
static bool ask_everything(const char *path)
{
	static const char *const metric[] = {"tree.cores", "proc.mem.pss_now", "proc.cpu.time",
		"proc.cpu.cores", "tree.cpu.of_allocation", "net.rx.rate"};
	static const char *const group_metric[] = {"group.cores", "proc.cpu.time", "group.io.read_rate"};
	struct summary_style style = {.color = true, .utf8 = true, .width = 120};
	struct series_query q = {.metric = metric, .nr = ARRAY_SIZE(metric), .rate = true};
	struct process_table *t = NULL;
	struct series_point point;
	struct series *series = NULL;
	struct summary *s = NULL;
	struct run *run = NULL;
	struct buf out;

	buf_init(&out, 64 << 20);
	if (run_open(&path, 1, &run, &out) < 0) {
		buf_release(&out);
		return false;
	}
	assert_int_equal(summary_read(run, &s, &out), 0);
	assert_int_equal(summary_print(s, &style, &out), 0);
	summary_json(s, &out);
	for (enum figure_id id = 0; id < NR_FIGURES; id++) {
		assert_true(s->figure[id].why || isfinite(s->figure[id].value));
		for (size_t i = 0; i < s->nr_groups; i++)
			assert_true(!summary_row[id].of_groups || s->group[i].figure[id].why ||
				isfinite(s->group[i].figure[id].value));
	}
	assert_int_equal(process_table_read(run, &t, &out), 0);
	for (unsigned order = 0; order < NR_ORDERS; order++)
		process_table_sort(t, order, order % 2);
	for (enum text_form form = FORM_TEXT; form <= FORM_JSON; form++)
		processes_write(t, 0, &(struct text_style){form, .width = 100, .utf8 = true}, &out);
	assert_int_equal(out.err, 0);
	if (series_open(path, &q, &series, &out) >= 0) {
		while (series_next(series, &point) > 0)
			for (size_t i = 0; i < q.nr; i++)
				assert_true(isnan(point.value[i]) || isfinite(point.value[i]));
		series_close(series);
	}
	q = (struct series_query){.metric = &metric[1], .nr = 3, .per_instance = true};
	if (series_open(path, &q, &series, &out) >= 0) {
		while (series_next(series, &point) > 0)
			;
		series_close(series);
	}
	q = (struct series_query){.metric = group_metric, .nr = 3, .group = "a"};
	if (series_open(path, &q, &series, &out) >= 0) {
		while (series_next(series, &point) > 0)
			;
		series_close(series);
	}
	process_table_free(t);
	summary_free(s);
	run_close(run);
	buf_release(&out);
	return true;
}

static void spoil_schema(struct maker *m)
{
	static const double strange[] = {NAN, INFINITY, -1, 0, 1e300, 1e-300};

	for (unsigned set = 0; set < MAKER_SETS; set++)
		for (uint32_t i = 0; i < m->schema->set[set].nr_metrics; i++)
			if (any(8) == 0)
				m->schema->set[set].metric[i].scale = strange[any(ARRAY_SIZE(strange))];
}

static void any_cells(struct maker *m, uint32_t set, uint32_t row)
{
	const struct schema_set *s = &m->schema->set[set];

	for (uint32_t i = 0; i < s->nr_metrics; i++) {
		if (any(3) == 0)
			maker_set(m, row, s->metric[i].name, any_value());
		else if (any(9) == 0)
			maker_unset(m, row, s->metric[i].name);
	}
}

static void any_leaving(struct maker *m, uint32_t row, uint32_t id, int64_t now)
{
	static const char *const how[] = {
		"reaped", "noticed", "event", "exit-record", "", "a way nobody knows of yet"};

	maker_gone_with(m, row, id, now, how[any(ARRAY_SIZE(how))], "cpu_ns", any_value(), "sampled",
		any_value(), "status", any_value(), "max_rss_kib", any_value(), "user_us", any_value(),
		"read_bytes", any_value(), "max_rss_least", any_value(), "max_rss_most", any_value(), NULL);
}

/* Into groups of its own choice, or others from now on. */
static void any_joining(struct maker *m, uint32_t row, uint32_t id)
{
	static const char *const groups[] = {"a", "b", "a\0b", "a\0", "\0", "\xff\0b\0a", "c\0c\0c"};
	static const size_t len[] = {1, 1, 3, 2, 1, 5, 5};
	size_t i = any(ARRAY_SIZE(groups) + 2);

	maker_execs = any(2) ? any_value() : 0;
	maker_join_in(m, row, id, (int64_t)any(20), (int64_t)any(20), any_value(), any(2),
		i < ARRAY_SIZE(groups) ? groups[i] : NULL, i < ARRAY_SIZE(groups) ? len[i] : 0);
}

/* Instances of the other sets, with any reason to be left out or taken for the job's own. */
static void any_others(struct maker *m, uint32_t *generation, int64_t now)
{
	static const char *const key[] = {"apart", "own", "source", "kind", "target"};
	static const char *const text[] = {
		"", "1", "match", "command", "a long word that means nothing", "-1"};
	static const char *const name[] = {"a", "b", "total", "", "\xff\n"};

	for (unsigned set = MAKER_GROUP; set < MAKER_SETS; set++)
		for (uint32_t row = 0; row < 3; row++) {
			if (m->table[set].id[row] && any(8) == 0)
				maker_leave(m, set, row, now);
			if (!m->table[set].id[row] && any(3) == 0)
				maker_instance(m, set, row, (*generation)++, name[any(ARRAY_SIZE(name))],
					key[any(ARRAY_SIZE(key))], text[any(ARRAY_SIZE(text))],
					key[any(ARRAY_SIZE(key))], text[any(ARRAY_SIZE(text))], NULL);
			if (m->table[set].id[row])
				any_cells(m, set, row);
		}
}

static void make_world(const char *path)
{
	enum { ROWS = 12 };
	static const char *const meta[] = {"limits.cpus", "0.000001", "limits.memory_bytes",
		"99999999999999999999", "limits.machine_cpus", "nan", "scheduler.kind", "\xff", "hw.a", "1",
		"env.b", "\n", NULL};
	struct maker_options o = {.mode = any(2) ? "attach" : "run",
		.interval_ns = any_value(),
		.nr_cpus = any_value(),
		.start_wall_ns = any_value(),
		.meta = any(2) ? meta : NULL,
		.groups = any(2) ? "b\0a" : NULL,
		.groups_len = 3};
	uint32_t id[ROWS] = {0}, next = 1, generation = 1;
	struct maker m;
	int64_t now = 0;

	maker_open_with(&m, path, &o, spoil_schema);
	for (unsigned tick = 0; tick < 40; tick++) {
		for (uint32_t row = 0; row < ROWS; row++) {
			if (id[row] && any(6) == 0) {
				any_leaving(&m, row, id[row], now);
				id[row] = 0;
			}
			if (!id[row] && any(3) == 0) {
				id[row] = next++;
				any_joining(&m, row, id[row]);
			} else if (id[row] && any(9) == 0) {
				any_joining(&m, row, id[row]);
			}
			if (id[row])
				any_cells(&m, MAKER_PROCESS, row);
		}
		if (any(4) == 0) {
			maker_join(&m, STORE_NO_ROW, next, any_value(), any_value(), now, any(2));
			any_leaving(&m, STORE_NO_ROW, next++, now);
		}
		any_others(&m, &generation, now);
		any_cells(&m, MAKER_TREE, 0);
		any_cells(&m, MAKER_SELF, 0);
		now += (int64_t)any(3) * (int64_t)any((uint64_t)2 * SECOND);
		maker_tick(&m, now);
	}
	if (any(2))
		maker_finish(&m, "exit_status", any_value(), "end_ns", any_value(), "ticks", any_value(),
			"missed", any_value(), "self_cpu_ns", any_value(), "self_peak_rss_kib", any_value(),
			"unfinished", any_value(), NULL);
	else
		maker_abandon(&m);
}

/* The build that watches itself takes eight times as long: it has a part of what the other one has. */
#ifdef __SANITIZE_ADDRESS__
#define PART 3
#else
#define PART 1
#endif

static void test_worlds_without_sense(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 60 / PART; i++) {
		seed = i * UINT64_C(0x9e3779b97f4a7c15);
		make_world(file);
		assert_true(ask_everything(file));
	}
}

static void test_nodes_without_sense(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 30 / PART; i++) {
		seed = i * UINT64_C(0xda942042e4dd58b5);
		make_world(file_in("a.tacho"));
		make_world(file_in("b.tacho"));
		make_world(file_in("c.tacho"));
		assert_true(ask_everything(dir));
	}
}

static void write_file(const char *path, const uint8_t *data, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
}

static void test_files_cut_and_broken_anywhere(void **state)
{
	static uint8_t data[1 << 20];
	struct stat st;
	FILE *f;
	size_t n;

	(void)state;
	seed = 42;
	make_world(file);
	assert_int_equal(stat(file, &st), 0);
	f = fopen(file, "r");
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	assert_int_equal(n, st.st_size);
	for (size_t cut = 0; cut < n; cut += 1 + n * PART / 300) {
		write_file(file, data, cut);
		ask_everything(file);
	}
	for (size_t at = 0; at < n; at += 1 + n * PART / 300) {
		data[at] ^= (uint8_t)(1 << at % 8);
		write_file(file, data, n);
		ask_everything(file);
		data[at] ^= (uint8_t)(1 << at % 8);
	}
}

/* Names and command lines of any bytes: one line a process, printable, and nothing lost in JSON. */
static void test_names_of_any_bytes(void **state)
{
	static const char name[] = "a\nb\x1b[31m\xff)\t(\x7f\xc2\x9b", words[] = "\0\x01 '\"\\\0\0é,\r\n\0";
	struct process_table *t = NULL;
	const char *path = file;
	struct run *run = NULL;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join_as(&m, 0, 1, 77, name, sizeof(name) - 1, words, sizeof(words) - 1);
	maker_join_as(&m, 1, 2, 78, name, sizeof(name) - 1, "", 0);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	buf_init(&out, 100000);
	assert_int_equal(run_open(&path, 1, &run, &out), 0);
	assert_int_equal(process_table_read(run, &t, &out), 0);
	for (int form = 0; form < 3; form++) {
		unsigned lines = 0;

		buf_reset(&out);
		processes_write(t, 0,
			&(struct text_style){form == 1 ? FORM_CSV : FORM_TEXT, .utf8 = form == 0}, &out);
		for (size_t i = 0; i < out.len; i++) {
			lines += out.data[i] == '\n';
			assert_true(out.data[i] == '\n' || (out.data[i] >= 0x20 && out.data[i] != 0x7f));
			assert_true(form < 2 || out.data[i] < 0x80);
		}
		assert_int_equal(lines, 3);
	}
	buf_reset(&out);
	processes_write(t, 0, &(struct text_style){FORM_JSON}, &out);
	assert_non_null(strstr((char *)out.data, "\\u0001 '\\\"\\\\"));
	process_table_free(t);
	run_close(run);
	buf_release(&out);
	ask_everything(file);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_worlds_without_sense),
		T(test_nodes_without_sense),
		T(test_files_cut_and_broken_anywhere),
		T(test_names_of_any_bytes),
	};

	return cmocka_run_group_tests_name("query_hostile", tests, NULL, NULL);
}
