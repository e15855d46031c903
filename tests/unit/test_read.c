/* read/: numbers, keys and columns, on good and hostile text. */
#include "read/read.h"
#include "read/textfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define INVALID INT64_MIN

static struct columns_map all_columns(void)
{
	struct columns_map map;

	for (int i = 0; i < METRICS_MAX; i++)
		map.col[i] = (int8_t)i;
	return map;
}

static struct table one_row(uint32_t cols)
{
	struct table t;

	assert_int_equal(table_init(&t, cols, 1), 0);
	table_bind(&t, 0, 1);
	return t;
}

static int64_t cell(struct table *t, uint32_t col)
{
	return t->valid[0] >> col & 1 ? table_row(t, 0)[col] : INVALID;
}

static int64_t number(const char *text, size_t *ret_used)
{
	const char *p = text;
	int64_t v = 0;
	bool found = read_number(&p, text + strlen(text), &v);

	*ret_used = (size_t)(p - text);
	return found ? v : INVALID;
}

static int64_t centi(const char *text, size_t *ret_used)
{
	const char *p = text;
	int64_t v = 0;
	bool found = read_centi(&p, text + strlen(text), &v);

	*ret_used = (size_t)(p - text);
	return found ? v : INVALID;
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
		size_t used;
	} good[] = {
		{"0", 0, 1},
		{"12 kB", 12, 2},
		{"-7", -7, 2},
		{"007x", 7, 3},
		{"12345678", 12345678, 8},
		{"123456789", 123456789, 9},
		{"1234567890123456", 1234567890123456, 16},
		{"9223372036854775807", INT64_MAX, 19},
		{"9223372036854775808", INT64_MIN + 0, 19},
		{"18446744073709551615", -1, 20},
		{"18446744073709551617", 1, 20},
		{"340282366920938463463374607431768211457 ", 1, 39},
		{"", INVALID, 0},
		{"-", INVALID, 0},
		{"--1", INVALID, 0},
		{"x1", INVALID, 0},
		{" 1", INVALID, 0},
		{"+1", INVALID, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t used;

		assert_int_equal(number(good[i].text, &used), good[i].value);
		assert_int_equal(used, good[i].used);
	}
}

static void test_hundredths(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
		size_t used;
	} good[] = {
		{"0.52 0.1", 52, 4},
		{"12.34", 1234, 5},
		{"12", 1200, 2},
		{"12.", 1200, 2},
		{"12.5", 1250, 4},
		{"12.569 ", 1256, 6},
		{"-0.07", -7, 5},
		{"100.00", 10000, 6},
		{".5", INVALID, 0},
		{"", INVALID, 0},
		{"-", INVALID, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t used;

		assert_int_equal(centi(good[i].text, &used), good[i].value);
		assert_int_equal(used, good[i].used);
	}
}

/* clang-format off */
static const struct metric kv_metric[] = {
	{"a.total",  "", {.key = "MemTotal"}, SCALE_KIB},
	{"a.free",   "", {.key = "MemFree"}, SCALE_KIB},
	{"a.mask",   "", {.key = "SigIgn", .arg = 16}},
	{"a.share",  "", {.key = "avg"}, SCALE_CENTI},
	{"a.other",  "", {.key = "other", .source = 1}},
};
/* clang-format on */

static unsigned read_kv(struct kv_reader *r, struct table *t, const char *text)
{
	return kv_read(r, text, strlen(text), t, 0);
}

static void test_keys(void **state)
{
	struct columns_map map = all_columns();
	struct table t = one_row(5);
	struct kv_reader r;

	(void)state;
	kv_init(&r, kv_metric, ARRAY_SIZE(kv_metric), 0, &map);
	assert_int_equal(r.nr_keys, 4);
	table_set(&t, 0, 4, 77); /* not ours to touch */
	for (int again = 0; again < 3; again++) {
		assert_int_equal(read_kv(&r, &t,
					 "Name:\tx y\nMemFree:        12 kB\nMemTotal:  99 kB\nx 1\nSigIgn:\t"
					 "00000000fFfE1000\navg 3.25\n"),
			4);
		assert_int_equal(cell(&t, 0), 99);
		assert_int_equal(cell(&t, 1), 12);
		assert_int_equal(cell(&t, 2), 0xfffe1000);
		assert_int_equal(cell(&t, 3), 325);
		assert_int_equal(cell(&t, 4), 77);
	}
	assert_int_equal(r.key[0].line, 1);

	/* Moved, missing, longer names of which the key is a part, and without a value. */
	assert_int_equal(read_kv(&r, &t, "MemTotal2: 4\nXMemTotal: 4\nMemTotal: 5\n"), 1);
	assert_int_equal(cell(&t, 0), 5);
	assert_int_equal(cell(&t, 1), INVALID);
	assert_int_equal(cell(&t, 4), 77);
	assert_int_equal(read_kv(&r, &t, "MemTotal2: 4\nXMemTotal: 4\nMemTotal: none\n"), 0);
	assert_int_equal(cell(&t, 0), INVALID);
	assert_int_equal(read_kv(&r, &t, "MemTotal2: 4\nXMemTotal: 4\nMemTotal: 6\nMemFree 8\n"), 2);
	assert_int_equal(cell(&t, 0), 6);
	assert_int_equal(cell(&t, 1), 8);
	/* A key that stands twice: the first. */
	assert_int_equal(read_kv(&r, &t, "MemTotal 1\nMemTotal 2\n"), 1);
	assert_int_equal(cell(&t, 0), 1);
	assert_int_equal(read_kv(&r, &t, "MemTotal 3\nMemTotal 4\n"), 1);
	assert_int_equal(cell(&t, 0), 3);
	table_release(&t);
}

/* A key that had never been there and comes later is found, although the known ones stand where they stood.
 */
static void test_a_key_that_appears_is_found(void **state)
{
	struct columns_map map = all_columns();
	struct table t = one_row(5);
	struct kv_reader r;

	(void)state;
	kv_init(&r, kv_metric, ARRAY_SIZE(kv_metric), 0, &map);
	assert_int_equal(read_kv(&r, &t, "MemTotal: 1\nx: 2\n"), 1);
	assert_int_equal(read_kv(&r, &t, "MemTotal: 1\nx: 2\n"), 1);
	assert_int_equal(read_kv(&r, &t, "MemTotal: 1\nx: 2\nMemFree: 3\n"), 2);
	assert_int_equal(cell(&t, 1), 3);
	table_release(&t);
}

/* Keys that are alike in their first eight characters. */
static void test_long_keys(void **state)
{
	/* clang-format off */
	static const struct metric metric[] = {
		{"c.a", "", {.key = "pgscan_direct_throttle"}},
		{"c.b", "", {.key = "pgscan_direct"}},
		{"c.c", "", {.key = "pgscan_d"}},
	};
	/* clang-format on */
	struct columns_map map = all_columns();
	struct table t = one_row(3);
	struct kv_reader r;

	(void)state;
	kv_init(&r, metric, ARRAY_SIZE(metric), 0, &map);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(read_kv(&r, &t,
					 "pgscan_dma 9\npgscan_d 1\npgscan_direcx 8\npgscan_direct 2\n"
					 "pgscan_direct_throttle 3\n"),
			3);
		assert_int_equal(cell(&t, 0), 3);
		assert_int_equal(cell(&t, 1), 2);
		assert_int_equal(cell(&t, 2), 1);
	}
	assert_int_equal(read_kv(&r, &t, "pgscan_dma 9\npgscan_d 1\npgscan_direct 8\npgscan_direcx 2\n"), 2);
	assert_int_equal(cell(&t, 1), 8);
	table_release(&t);
}

/* Every prefix of a text, in memory that ends with it so that the sanitizers see a step too far. */
static void test_keys_cut_anywhere(void **state)
{
	static const char text[] = "MemTotal: 123\nMemFree:\t-45 kB\nSigIgn: ff\navg 1.25\n";
	struct columns_map map = all_columns();
	struct table t = one_row(5);
	struct kv_reader r;

	(void)state;
	for (int learned = 0; learned < 2; learned++) {
		for (size_t len = 0; len < sizeof(text); len++) {
			char *exact = malloc(len ? len : 1);
			unsigned found;

			memcpy(exact, text, len);
			kv_init(&r, kv_metric, ARRAY_SIZE(kv_metric), 0, &map);
			if (learned)
				read_kv(&r, &t, text);
			found = kv_read(&r, exact, len, &t, 0);
			/* A value is there from its first digit on. */
			assert_int_equal(found, (len > 10) + (len > 24) + (len > 38) + (len > 45));
			if (len > 13)
				assert_int_equal(cell(&t, 0), 123);
			free(exact);
		}
	}
	table_release(&t);
}

static void test_rows_that_are_not_recorded_are_not_read(void **state)
{
	struct columns_map map = all_columns();
	struct table t = one_row(5);
	struct kv_reader r;

	(void)state;
	map.col[0] = -1;
	map.col[1] = 0;
	kv_init(&r, kv_metric, ARRAY_SIZE(kv_metric), 0, &map);
	assert_int_equal(read_kv(&r, &t, "MemTotal: 1\nMemFree: 2\n"), 1);
	assert_int_equal(cell(&t, 0), 2);
	assert_int_equal(cell(&t, 1), INVALID);
	table_release(&t);
}

/* clang-format off */
static const struct metric column_metric[] = {
	{"b.fifth",  "", {.col = 5}},
	{"b.state",  "", {.col = 3}},
	{"b.fourth", "", {.col = 4}},
	{"b.last",   "", {.col = 12}},
	{"b.again",  "", {.col = 4}},
	{"b.no",     "", {.source = 1, .col = 6}},
};
/* clang-format on */

static void read_columns(struct table *t, const char *text, unsigned first)
{
	struct columns_map map = all_columns();
	struct columns_reader r;
	size_t len = strlen(text);
	char *exact = malloc(len ? len : 1);

	memcpy(exact, text, len);
	columns_init(&r, column_metric, ARRAY_SIZE(column_metric), 0, &map);
	columns_read(&r, exact, len, first, t, 0);
	free(exact);
}

static void assert_columns(struct table *t, int64_t state, int64_t fourth, int64_t fifth, int64_t last)
{
	assert_int_equal(cell(t, 1), state);
	assert_int_equal(cell(t, 2), fourth);
	assert_int_equal(cell(t, 4), fourth);
	assert_int_equal(cell(t, 0), fifth);
	assert_int_equal(cell(t, 3), last);
	assert_int_equal(cell(t, 5), 66);
}

static void test_columns(void **state)
{
	struct table t = one_row(6);

	(void)state;
	table_set(&t, 0, 5, 66);
	read_columns(&t, " S 1 -2 3 4 5 6 7 8 18446744073709551616000012\n", 3);
	assert_columns(&t, 'S', 1, -2, 12);
	read_columns(&t, "1 2 3 4 5 6 7 8 9 10 11 12 13", 1);
	assert_columns(&t, 3, 4, 5, 12);
	/* Blanks in any number, words that are no numbers, a text that ends early. */
	read_columns(&t, "  1\t\t2   Sleeping 4x -\n", 1);
	assert_columns(&t, INVALID, INVALID, INVALID, INVALID);
	read_columns(&t, "R", 3);
	assert_columns(&t, 'R', INVALID, INVALID, INVALID);
	read_columns(&t, "4 5", 4);
	assert_columns(&t, INVALID, 4, 5, INVALID);
	read_columns(&t, "", 1);
	assert_columns(&t, INVALID, INVALID, INVALID, INVALID);
	read_columns(&t, "7 8 9 10 11 12", 7);
	assert_columns(&t, INVALID, INVALID, INVALID, 12);
	read_columns(&t, "\n", 1);
	assert_columns(&t, INVALID, INVALID, INVALID, INVALID);
	table_release(&t);
}

/* Words of every length, at every distance from the start: what a wide step over the text could get wrong. */
static void test_columns_of_every_width(void **state)
{
	struct table t = one_row(6);

	(void)state;
	table_set(&t, 0, 5, 66);
	for (unsigned lead = 0; lead < 40; lead++) {
		for (unsigned width = 1; width < 24; width++) {
			char text[200], *p = text;

			memset(p, ' ', lead);
			p += lead;
			for (int word = 0; word < 13; word++) {
				memset(p, '0', width);
				p += width;
				p[-1] = (char)('0' + word % 10);
				*p++ = word % 3 ? ' ' : '\t';
				if (p > text + sizeof(text) - 30)
					break;
			}
			*p = 0;
			read_columns(&t, text, 3);
			assert_int_equal(cell(&t, 1), 0);
			assert_int_equal(cell(&t, 2), 1);
			assert_int_equal(cell(&t, 0), 2);
			if (lead + 11 * (width + 1) < 170)
				assert_int_equal(cell(&t, 3), 9);
		}
	}
	table_release(&t);
}

static void write_text(const char *path, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < len; i++)
		fputc('a' + (int)(i % 26), f);
	assert_int_equal(fclose(f), 0);
}

/* A kept file may grow to four times its first size, and says so when it has grown beyond. */
static void test_text_files_grow(void **state)
{
	static const size_t first[] = {0, 1000, 70000, 300000, 3000000};
	char folder[] = "/tmp/tacho-test-read-XXXXXX", path[64];
	struct textfile closed = {0};
	struct env *env;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/text", folder);
	env = env_live(folder);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(first); i++) {
		size_t len = first[i / 2];
		struct textfile f;

		write_text(path, len);
		assert_int_equal(textfile_open(&f, env, "text", i % 2), 0);
		assert_int_equal(strlen(f.text), len);
		write_text(path, len * 4 - len / 16);
		assert_int_equal(textfile_read(&f, env), len * 4 - len / 16);
		assert_int_equal(strlen(f.text), len * 4 - len / 16);
		write_text(path, f.size);
		assert_int_equal(textfile_read(&f, env), -EFBIG);
		write_text(path, 3);
		assert_int_equal(textfile_read(&f, env), 3);
		assert_string_equal(f.text, "abc");
		textfile_close(&f, env);
		textfile_close(&f, env);
	}
	textfile_close(&closed, env);
	assert_int_equal(textfile_open(&closed, env, "none", true), -ENOENT);
	assert_int_equal(textfile_open(&closed, env, ".", true), -EISDIR);
	textfile_close(&closed, env);
	env_free(env);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_hundredths),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_a_key_that_appears_is_found),
		cmocka_unit_test(test_long_keys),
		cmocka_unit_test(test_keys_cut_anywhere),
		cmocka_unit_test(test_rows_that_are_not_recorded_are_not_read),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_columns_of_every_width),
		cmocka_unit_test(test_text_files_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
