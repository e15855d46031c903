/* A part of a recording is the same whether all was read or what lies before it was passed over; and then it
 * was not read. Finished, cut off, damaged, and as an early version wrote it. */
#include "long_recording.h"

#include "query/tables.h"
#include "query/length.h"
#include "query/events.h"
#include "query/series.h"
#include "query/curves.h"
#include "query/summary.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "bytes_read.h"

#define SECONDS 900

static char dir[] = "/tmp/test_query_seek_XXXXXX";
static char finished[100], cut[100], damaged[100], golden[400];
static const char *const file[] = {finished, cut, damaged, golden};

static const char *const metric[] = {"tree.cores", "proc.mem.rss", "tree.io.read_rate", "proc.mem.pss_now",
	"proc.faults.minor", "tree.cpu", "tree.processes", "cpu.busy", "net.rx.rate", "gpu.util",
	"energy.watts", "mem.available", "proc.cores", "tree.faults", "limit.cpus", "proc.io.read_rate",
	"disk.busy"};

static void copy(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

static int make_files(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(finished, sizeof(finished), "%s/finished.tacho", dir);
	snprintf(cut, sizeof(cut), "%s/cut.tacho", dir);
	snprintf(damaged, sizeof(damaged), "%s/damaged.tacho", dir);
	snprintf(golden, sizeof(golden), "%s/golden/format-1.tacho", getenv("TACHO_TESTS"));
	if (long_recording_write(
		    finished, &(struct long_recording){.seconds = SECONDS, .hz = 2, .processes = 40}) < 0)
		return -1;
	copy(finished, cut);
	copy(finished, damaged);
	assert_int_equal(stat(finished, &st), 0);
	assert_int_equal(truncate(cut, st.st_size - st.st_size / 7), 0);
	fd = open(damaged, O_WRONLY | O_CLOEXEC);
	for (off_t at = st.st_size / 9; at < st.st_size - 100; at += st.st_size / 9)
		assert_int_equal(pwrite(fd, "damage", 6, at), 6);
	close(fd);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(finished);
	unlink(cut);
	unlink(damaged);
	return rmdir(dir);
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* NULL: the recording does not have the metric. */
static struct series *open_series(const char *path, struct series_query *q, double from_s, double to_s)
{
	struct series *s = NULL;
	struct buf err;

	buf_init(&err, 1 << 16);
	if (series_open(path, q, &s, &err) < 0)
		s = NULL;
	else
		assert_true(series_range(s, (int64_t)(from_s * 1e9), (int64_t)(to_s * 1e9)) >= 0);
	buf_release(&err);
	return s;
}

static size_t compare_series(const char *path, struct series_query q, double from_s, double to_s)
{
	struct series_point x, y;
	struct series *part = open_series(path, &q, from_s, to_s), *whole;
	size_t nr = 0;
	int r;

	if (!part)
		return 0;
	q.whole = true;
	whole = open_series(path, &q, from_s, to_s);
	assert_non_null(whole);
	while ((r = series_next(part, &x)) == 1) {
		assert_int_equal(series_next(whole, &y), 1);
		assert_int_equal(x.time_ns, y.time_ns);
		assert_int_equal(x.pid, y.pid);
		if (!same(x.value[0], y.value[0]))
			fail_msg("%s of %s at %lld: %.17g and %.17g", q.metric[0], path, (long long)x.time_ns,
				x.value[0], y.value[0]);
		nr++;
	}
	if (r != -EAGAIN || nr) { /* else it knows that it must be read as a whole */
		assert_int_equal(r, 0);
		assert_int_equal(series_next(whole, &y), 0);
	}
	series_close(part);
	series_close(whole);
	return nr;
}

static void test_series(void **state)
{
	size_t nr = 0;

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(file); f++)
		for (size_t m = 0; m < ARRAY_SIZE(metric); m++)
			for (double from = 1.1; from < SECONDS; from = from * 2.7 + 30) {
				struct series_query q = {.metric = &metric[m], .nr = 1};

				nr += compare_series(file[f], q, from, from + 9);
				q.rate = true;
				nr += compare_series(file[f], q, from, from + 9);
				q.per_instance = true;
				nr += compare_series(file[f], q, from, from + 1);
			}
	assert_true(nr > 1000);
}

static struct curves *read_curves(const char *path, double from_s, double to_s, bool whole)
{
	char *name = (char *)path;
	const struct run run = {.path = &name, .nr = 1};
	struct curves_query q[ARRAY_SIZE(metric)] = {0};
	const struct curves_options options = {.from_s = from_s, .to_s = to_s, .whole = whole};
	struct curves *s = NULL;
	struct buf err;

	buf_init(&err, 1 << 16);
	/* Those of which all is of now come first: they alone let anything be passed over. */
	for (size_t i = 0; i < ARRAY_SIZE(q); i++)
		q[i].metric = metric[i];
	assert_int_equal(curves_read(&run, q, whole || from_s < 100 ? 4 : 2, &options, &s, &err), 0);
	buf_release(&err);
	return s;
}

static void test_curves(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(file); f++)
		for (double from = 1.1; from < SECONDS; from = from * 2 + 40) {
			struct curves *part = read_curves(file[f], from, from + 30, false),
				      *whole = read_curves(file[f], from, from + 30, true);

			assert_int_equal(part->node[0].nr_times, whole->node[0].nr_times);
			for (size_t i = 0; i < part->nr_lines; i++) {
				const struct curves_line *x = &part->line[i], *y = &whole->line[i];

				assert_int_equal(x->query, y->query);
				assert_true(same(x->average, y->average) && same(x->most, y->most) &&
					same(x->most_at_s, y->most_at_s) && same(x->first, y->first) &&
					same(x->last, y->last));
				for (size_t k = 0; k < part->node[0].nr_times; k++)
					assert_true(same(x->mean[k], y->mean[k]));
			}
			curves_free(part);
			curves_free(whole);
		}
}

static struct tables *open_tables(const struct run *run, double from_s, bool whole)
{
	static const char *const chosen[] = {
		"proc.mem.rss", "proc.cpu.time", "tree.cores", "mem.available", "net.rx.bytes"};
	const struct tables_options options = {.from_s = from_s,
		.to_s = from_s + 20,
		.metric = chosen,
		.nr_metrics = ARRAY_SIZE(chosen),
		.whole = whole};
	struct tables *f = NULL;
	struct buf err;

	buf_init(&err, 1 << 16);
	if (tables_open(run, &options, &f, &err) < 0)
		fail_msg("%s", (char *)err.data);
	buf_release(&err);
	return f;
}

static bool same_cell(const struct tables *f, const struct tables *g, const struct data_table_batch *x,
	const struct data_table_batch *y, size_t field, uint32_t row)
{
	const struct field_cells *a = &x->cell[field], *b = &y->cell[field];
	bool known = !a->valid || a->valid[row / 8] >> row % 8 & 1;
	const struct data_table *all;
	enum field_type type;

	tables_list(f, &all);
	type = all[x->table].field[field].type;
	if (known != (!b->valid || b->valid[row / 8] >> row % 8 & 1))
		return false;
	if (!known)
		return true;
	if (type == FIELD_TEXT)
		return !strcmp(tables_texts(f, x->table, field).text[a->text[row]],
			tables_texts(g, y->table, field).text[b->text[row]]);
	return type == FIELD_REAL ? a->real[row] == b->real[row] : a->integer[row] == b->integer[row];
}

static void test_tables(void **state)
{
	uint64_t rows = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(file) - 1; i++) /* the golden one has none of these metrics */
		for (double from = 1.1; from < SECONDS; from = from * 2 + 40) {
			char *name = (char *)file[i];
			const struct run run = {.path = &name, .nr = 1};
			struct tables *f = open_tables(&run, from, false), *g = open_tables(&run, from, true);
			struct data_table_batch x, y;
			const struct data_table *all;

			tables_list(f, &all);
			while (tables_next(f, &x) == 1) {
				assert_int_equal(tables_next(g, &y), 1);
				assert_int_equal(x.table, y.table);
				assert_int_equal(x.nr_rows, y.nr_rows);
				rows += x.nr_rows;
				for (size_t k = 0; k < all[x.table].nr_fields; k++)
					for (uint32_t row = 0; row < x.nr_rows; row++)
						if (!same_cell(f, g, &x, &y, k, row))
							fail_msg("%s of %s at row %u from %g",
								all[x.table].field[k].name, name, row, from);
			}
			assert_int_equal(tables_next(g, &y), 0);
			tables_close(f);
			tables_close(g);
		}
	assert_true(rows > 1000);
}

static bool touches(const struct run_event *m, double from_s, double to_s)
{
	return !(m->time_s > to_s) && !((isnan(m->end_s) ? m->time_s : m->end_s) < from_s);
}

/* What reaches into the range, in the same order. */
static void compare_moments(const struct run_event *x, size_t nr_x, const struct run_event *y, size_t nr_y,
	double from_s, double to_s)
{
	size_t k = 0;

	for (size_t i = 0; i < nr_x; i++) {
		if (!touches(&x[i], from_s, to_s))
			continue;
		while (k < nr_y && !touches(&y[k], from_s, to_s))
			k++;
		if (k == nr_y)
			fail_msg("%s %g..%g of %g..%g", x[i].label, x[i].time_s, x[i].end_s, from_s, to_s);
		assert_string_equal(x[i].label, y[k].label);
		assert_true(same(x[i].time_s, y[k].time_s));
		assert_true(same(MIN(x[i].end_s, to_s), MIN(y[k].end_s, to_s)));
		k++;
	}
	for (; k < nr_y; k++)
		assert_false(touches(&y[k], from_s, to_s));
}

static void test_moments(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(file); f++) {
		char *name = (char *)file[f];
		const struct run run = {.path = &name, .nr = 1};
		struct run_events *part = NULL, *whole = NULL;
		struct buf err;

		buf_init(&err, 1 << 16);
		assert_int_equal(run_events_read(&run, &whole, &err), 0);
		for (double from = 1; from < SECONDS; from = from * 1.5 + 10) {
			assert_int_equal(run_events_read_range(&run, from, from + 5, &part, &err), 0);
			/* Where the end of a phase is lost, segments behind it know better. */
			if (file[f] != damaged)
				compare_moments(whole->phase, whole->nr_phases, part->phase, part->nr_phases,
					from, from + 5);
			compare_moments(
				whole->event, whole->nr_events, part->event, part->nr_events, from, from + 5);
			run_events_free(part);
		}
		run_events_free(whole);
		buf_release(&err);
	}
}

static void test_length(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(file); f++) {
		char *name = (char *)file[f];
		const struct run run = {.path = &name, .nr = 1};
		struct summary *s = NULL;
		double length_s;
		struct buf err;

		buf_init(&err, 1 << 16);
		assert_int_equal(summary_read(&run, &s, &err), 0);
		assert_int_equal(run_length(&run, &length_s, &err), 0);
		assert_true(s->figure[FIG_WALL].value == length_s);
		summary_free(s);
		buf_release(&err);
	}
}

static void test_what_is_before_is_not_read(void **state)
{
	char path[120];
	const struct run run = {.path = (char *[]){path}, .nr = 1};
	struct run_events *m = NULL;
	uint64_t before;
	double length_s;
	struct buf err;

	(void)state;
	buf_init(&err, 1 << 16);
	snprintf(path, sizeof(path), "%s/long.tacho", dir);
	assert_int_equal(long_recording_write(
				 path, &(struct long_recording){.seconds = 3600, .hz = 10, .processes = 100}),
		0);
	assert_int_equal(truncate(path, 18 << 20), 0); /* of 20: it has no end */
	before = bytes_read();
	assert_int_equal(run_length(&run, &length_s, &err), 0);
	curves_free(read_curves(path, length_s * 0.99, NAN, false));
	assert_int_equal(run_events_read_range(&run, length_s * 0.99, NAN, &m, &err), 0);
	run_events_free(m);
	/* The beginning and the end of it, some times. */
	assert_true(bytes_read() - before < 13 << 20);
	before = bytes_read();
	curves_free(read_curves(path, length_s * 0.99, NAN, true));
	assert_true(bytes_read() - before >= 18 << 20);
	unlink(path);
	buf_release(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_curves),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_what_is_before_is_not_read),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
