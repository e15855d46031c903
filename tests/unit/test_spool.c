/* What formats keep on disk while they wait: spools, shelves of samples, sets of labels; and the names of
 * families. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/labels.h"
#include "export/openmetrics_names.h"
#include "export/outlet.h"
#include "export/column_sorter.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64], beside[96];

static uint64_t random_next(uint64_t *n)
{
	*n ^= *n << 13, *n ^= *n >> 7, *n ^= *n << 17;
	return *n;
}

/* Two spools that take turns come out whole, and leave nothing in the folder. */
static void test_spools_keep_their_order(void **state)
{
	struct spool_file f;
	struct spool s[2];
	struct outlet out;
	uint32_t back[200000];
	int fd = open(beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	spool_file_init(&f, beside);
	spool_init(&s[0]);
	spool_init(&s[1]);
	for (uint32_t i = 0; i < 200000; i++) {
		buf_add(&s[i % 2].held, &i, sizeof(i));
		assert_int_equal(spool_settle(&s[i % 2], &f), 0);
	}
	assert_true(s[0].nr_pieces > 1 && f.end > SPOOL_BUFFER);
	assert_int_equal(outlet_open(&out, fd), 0);
	assert_int_equal(spool_pour(&s[0], &f, &out), 0);
	assert_int_equal(spool_pour(&s[1], &f, &out), 0);
	assert_int_equal(outlet_flush(&out), 0);
	assert_int_equal(pread(fd, back, sizeof(back), 0), sizeof(back));
	for (uint32_t i = 0; i < 200000; i++)
		assert_int_equal(back[i], i < 100000 ? 2 * i : 2 * (i - 100000) + 1);
	outlet_release(&out);
	spool_release(&s[0]);
	spool_release(&s[1]);
	spool_file_release(&f);
	close(fd);
	unlink(beside);
	assert_int_equal(rmdir(folder), 0); /* nothing else is there */
	assert_int_equal(mkdir(folder, 0700), 0);
}

/* Records come back one by one, over the edges of pieces, of which some are short; then it is the end. */
static void test_spools_are_read_by_record(void **state)
{
	struct record {
		uint32_t number;
		uint8_t more[16]; /* 20 bytes: pieces end within one */
	} one, expected = {0};
	static struct spool_reader r;
	struct spool_file f;
	struct spool s[2];

	(void)state;
	spool_file_init(&f, beside);
	spool_init(&s[0]);
	spool_init(&s[1]);
	for (uint32_t i = 0; i < 10000; i++) {
		one = (struct record){.number = i};
		buf_add(&s[0].held, &one, sizeof(one));
		buf_add(&s[1].held, &one, sizeof(one));
		assert_int_equal(i % 999 ? spool_settle(&s[0], &f) : spool_rest(&s[0], &f), 0);
		assert_int_equal(spool_settle(&s[1], &f), 0);
	}
	assert_true(s[0].nr_pieces > 3 && s[0].held.len);
	spool_reader_init(&r, &s[0], &f);
	for (; expected.number < 10000; expected.number++) {
		assert_int_equal(spool_reader_next(&r, &one, sizeof(one)), 1);
		assert_memory_equal(&one, &expected, sizeof(one));
	}
	assert_int_equal(spool_reader_next(&r, &one, sizeof(one)), 0);
	buf_add(&s[0].held, "half", 4);
	spool_reader_init(&r, &s[0], &f);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(spool_reader_next(&r, &one, sizeof(one)), 1);
	assert_int_equal(spool_reader_next(&r, &one, sizeof(one)), -EIO);
	assert_int_equal(spool_rest(&s[0], &f), 0);
	assert_int_equal(spool_rest(&s[0], &f), 0); /* nothing is no piece */
	assert_int_equal(s[0].held.len, 0);
	assert_true(s[0].piece[s[0].nr_pieces - 1].len);
	spool_release(&s[0]);
	spool_release(&s[1]);
	spool_file_release(&f);
}

static void test_what_is_small_makes_no_file(void **state)
{
	struct spool_file f;
	struct spool s;

	(void)state;
	spool_file_init(&f, "/nowhere/at/all");
	spool_init(&s);
	buf_adds(&s.held, "small");
	assert_int_equal(spool_settle(&s, &f), 0);
	assert_int_equal(f.fd, -1);
	while (s.held.len < SPOOL_BUFFER)
		buf_adds(&s.held, "and then it is not");
	assert_int_equal(spool_settle(&s, &f), -ENOENT);
	spool_release(&s);
	spool_file_release(&f);
}

/* ---- shelves ---- */

#define ROWS 20000
#define SERIES 37

static uint32_t series_of_row[ROWS];
static int64_t time_of_row[ROWS];

struct checking {
	bool seen[ROWS];
	size_t nr;
	struct column_sorter_point last;
};

/* The value is the number of the row, so that it says where it belongs. */
static int check_point(void *arg, const struct column_sorter_point *p)
{
	struct checking *c = arg;

	assert_true(p->value < ROWS && !c->seen[p->value]);
	assert_int_equal(p->series, series_of_row[p->value]);
	assert_int_equal(p->time, time_of_row[p->value]);
	c->seen[p->value] = true;
	if (c->nr) {
		assert_true(p->series >= c->last.series);
		if (p->series == c->last.series)
			assert_true(p->time > c->last.time ||
				(p->time == c->last.time && p->value > c->last.value));
	}
	c->last = *p;
	c->nr++;
	return 0;
}

static void fill(struct column_sorter *s, struct spool_file *f, size_t flush_every)
{
	uint64_t n = 4711;

	for (size_t i = 0; i < ROWS; i++) {
		size_t at = s->nr_rows;

		assert_int_equal(column_sorter_reserve(s, 1), 0);
		series_of_row[i] = s->series[at] = (uint32_t)(random_next(&n) % SERIES);
		time_of_row[i] = s->time[at] = (int64_t)(random_next(&n) % 1000) - 500;
		s->column[0].value[at] = i;
		s->column[0].there[at] = i % 3 != 0;
		s->column[1].value[at] = 0;
		s->column[1].there[at] = false;
		s->nr_rows++;
		if (flush_every && i % flush_every == flush_every - 1)
			assert_int_equal(column_sorter_flush(s, f), 0);
	}
	assert_int_equal(column_sorter_flush(s, f), 0);
}

static void test_shelves_sort_by_series_and_time(void **state)
{
	static const size_t flush_every[] = {0, 7000, 100, 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flush_every); i++) {
		struct checking *c = calloc(1, sizeof(*c)), *none = calloc(1, sizeof(*none));
		struct spool_file f;
		struct column_sorter s;

		spool_file_init(&f, beside);
		assert_int_equal(column_sorter_init(&s, 2), 0);
		fill(&s, &f, flush_every[i]);
		assert_int_equal(column_sorter_merge(&s, 0, &f, check_point, c), 0);
		for (size_t row = 0; row < ROWS; row++)
			assert_int_equal(c->seen[row], row % 3 != 0);
		assert_int_equal(column_sorter_merge(&s, 1, &f, check_point, none), 0);
		assert_int_equal(none->nr, 0);
		column_sorter_release(&s);
		spool_file_release(&f);
		free(c);
		free(none);
	}
}

static int refuse(void *arg, const struct column_sorter_point *p)
{
	(void)p;
	return ++*(int *)arg == 5 ? -ENOSPC : 0;
}

static void test_merging_ends_with_the_first_error(void **state)
{
	struct spool_file f;
	struct column_sorter s;
	int calls = 0;

	(void)state;
	spool_file_init(&f, beside);
	assert_int_equal(column_sorter_init(&s, 2), 0);
	fill(&s, &f, 100);
	assert_int_equal(column_sorter_merge(&s, 0, &f, refuse, &calls), -ENOSPC);
	assert_int_equal(calls, 5);
	assert_int_equal(ftruncate(f.fd, 1000), 0);
	assert_int_equal(column_sorter_merge(&s, 0, &f, refuse, &calls), -EIO);
	column_sorter_release(&s);
	spool_file_release(&f);
}

/* ---- labels ---- */

static void test_sets_of_labels_have_one_number_each(void **state)
{
	struct label_sets l;
	uint32_t number;

	(void)state;
	label_sets_init(&l, 2);
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 50000; i++) {
			struct label set[2] = {{i / 7, 1}, {i % 7, i % 7 != 0}};

			assert_int_equal(label_sets_number(&l, set, &number), 0);
			assert_int_equal(number, i);
			assert_memory_equal(label_sets_get(&l, number), set, sizeof(set));
		}
	assert_int_equal(l.nr, 50000);
	label_sets_release(&l);
}

/* ---- names ---- */

static void test_families_have_names_by_the_rules(void **state)
{
	/* clang-format off */
	static const struct { const char *name; enum metric_kind kind; enum metric_unit unit; bool rate; double scale; const char *family; } row[] = {
		{"net.rx", KIND_COUNTER, UNIT_BYTES, false, 1, "tacho_net_rx_bytes"},
		{"net.rx_bytes", KIND_GAUGE, UNIT_BYTES, false, 1, "tacho_lab_net_rx_bytes"}, /* taken */
		{"net.rx-bytes", KIND_GAUGE, UNIT_BYTES, false, 1, "tacho_lab_2_net_rx_bytes"},
		{"net.rx.rate", KIND_GAUGE, UNIT_BYTES, true, 1, "tacho_net_rx_rate_bytes_per_second"},
		{"forks.rate", KIND_GAUGE, UNIT_COUNT, true, 1, "tacho_forks_rate_per_second"},
		{"errors.total", KIND_COUNTER, UNIT_COUNT, false, 1, "tacho_errors"},
		{"errors_total", KIND_GAUGE, UNIT_COUNT, false, 1, "tacho_lab_errors_total"}, /* a sample of the one before */
		{"energy.total", KIND_COUNTER, UNIT_JOULES, false, 1, "tacho_energy_joules"},
		{"memory.total", KIND_GAUGE, UNIT_BYTES, false, 1, "tacho_memory_total_bytes"},
		{"megabytes", KIND_GAUGE, UNIT_BYTES, false, 1, "tacho_megabytes_bytes"},
		{"ticks", KIND_COUNTER, UNIT_SECONDS, false, 0.01, "tacho_ticks"},
		{"a{b}\n\xff \"", KIND_GAUGE, UNIT_CODE, false, 1, "tacho_a_b_____"},
		{"", KIND_GAUGE, UNIT_COUNT, false, 1, "tacho_"},
		{"", KIND_GAUGE, UNIT_COUNT, false, 1, "tacho_lab_"},
	};
	/* clang-format on */
	const struct data_table table = {.name = "lab"};
	struct names names = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct field f = {.name = row[i].name,
			.type = FIELD_INT,
			.unit = row[i].unit,
			.per_second = row[i].rate,
			.kind = row[i].kind,
			.is_metric = true,
			.scale = row[i].scale};

		assert_string_equal(family_name(&names, &table, &f), row[i].family);
	}
	names_release(&names);
}

static void test_long_names_stay_apart(void **state)
{
	static char name[3000];
	struct field f = {.name = name, .unit = UNIT_BYTES, .kind = KIND_COUNTER, .scale = 1};
	const struct data_table table = {.name = "lab"};
	struct names names = {0};
	const char *first, *second;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	first = family_name(&names, &table, &f);
	second = family_name(&names, &table, &f);
	assert_true(first && second && strlen(first) < 500);
	assert_string_not_equal(first, second);
	names_release(&names);
}

static void test_labels_have_names_by_the_rules(void **state)
{
	static const char *const field[] = {"host", "a.b", "a_b", "0", "", "__name__"};
	static const char *const label[] = {"host", "a_b", "a_b_2", "label_0", "label_", "label___name__"};
	char *name[ARRAY_SIZE(field)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		name[i] = label_name(field[i], name, i);
		assert_string_equal(name[i], label[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		free(name[i]);
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/tacho-spool-%d", (int)getpid());
	snprintf(beside, sizeof(beside), "%s/file", folder);
	return mkdir(folder, 0700);
}

static int teardown(void **state)
{
	(void)state;
	unlink(beside);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spools_keep_their_order),
		cmocka_unit_test(test_spools_are_read_by_record),
		cmocka_unit_test(test_what_is_small_makes_no_file),
		cmocka_unit_test(test_shelves_sort_by_series_and_time),
		cmocka_unit_test(test_merging_ends_with_the_first_error),
		cmocka_unit_test(test_sets_of_labels_have_one_number_each),
		cmocka_unit_test(test_families_have_names_by_the_rules),
		cmocka_unit_test(test_long_names_stay_apart),
		cmocka_unit_test(test_labels_have_names_by_the_rules),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
