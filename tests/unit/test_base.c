/* base/: buffers, varints, pairs, numbers, escapes, JSON, units. */
#include "base/idmap.h"
#include "base/json.h"
#include "base/owned.h"
#include "base/pairs.h"
#include "base/str.h"
#include "base/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_buf_has_a_maximum_and_a_sticky_error(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_adds(&b, "12345");
	buf_adds(&b, "67890");
	assert_int_equal(b.err, 0);
	assert_string_equal((char *)b.data, "1234567890");
	buf_adds(&b, "x");
	assert_int_equal(b.err, -ENOBUFS);
	buf_adds(&b, "");
	assert_int_equal(b.len, 10);
	buf_release(&b);
}

static void test_varints_round_trip(void **state)
{
	static const int64_t value[] = {0, 1, -1, 127, 128, -128, 1 << 20, INT64_MAX, INT64_MIN};
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(value); i++)
		buf_add_varint(&b, zigzag(value[i]));
	struct view v = view_of(b.data, b.len);
	for (size_t i = 0; i < ARRAY_SIZE(value); i++)
		assert_int_equal(unzigzag(view_varint(&v)), value[i]);
	assert_false(v.bad);
	view_varint(&v);
	assert_true(v.bad);
	buf_release(&b);
}

static void test_view_rejects_lengths_past_the_end(void **state)
{
	static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 'a'};
	struct view v = view_of(bytes, sizeof(bytes));
	size_t n;

	(void)state;
	view_bytes(&v, &n);
	assert_true(v.bad);
	assert_int_equal(n, 0);
}

static void test_intervals(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"0.5", 500000000}, {"500ms", 500000000}, {"2s", 2000000000}, {"10Hz", 100000000},
		{"10hz", 100000000}, {"1m", 60000000000}, {"1h", 3600000000000}, {"250us", 250000},
		{".5", 500000000}};
	static const char *const bad[] = {"", "s", "1x", "-1", "1e3", "1..2", "abc", "1 s"};
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_interval(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_interval(bad[i], &ns), -EINVAL);
	assert_int_equal(parse_interval("99999999999d", &ns), -ERANGE);
}

static void test_numbers_do_not_overflow(void **state)
{
	uint64_t u;
	int64_t i;

	(void)state;
	assert_true(parse_u64("18446744073709551615", &u));
	assert_true(u == UINT64_MAX);
	assert_false(parse_u64("18446744073709551616", &u));
	assert_true(parse_i64n("-9223372036854775808", 20, &i));
	assert_true(i == INT64_MIN);
	assert_false(parse_i64n("9223372036854775808", 19, &i));
	assert_false(parse_i64n("", 0, &i));
	assert_false(parse_i64n("-", 1, &i));
}

static void test_escapes_are_lossless(void **state)
{
	static const char weird[] = "a b\n(c)\\x41\t\xff\xc3\xa9\x7f\xc2\x9b\xed\xa0\x80";
	struct buf text, back;

	(void)state;
	buf_init(&text, 1000);
	buf_init(&back, 1000);
	escape_bytes(&text, weird, sizeof(weird) - 1);
	for (size_t i = 0; i < text.len; i++)
		assert_true(text.data[i] >= 0x20 && text.data[i] != 0x7f);
	assert_non_null(strstr((char *)text.data, "\xc3\xa9"));
	unescape_bytes(&back, (char *)text.data, text.len);
	assert_int_equal(back.len, sizeof(weird) - 1);
	assert_memory_equal(back.data, weird, back.len);
	buf_release(&text);
	buf_release(&back);
}

static void expect_shown(const char *bytes, const char *expected)
{
	struct buf text, back;

	buf_init(&text, 1000);
	buf_init(&back, 1000);
	escape_bytes(&text, bytes, strlen(bytes));
	assert_string_equal((char *)text.data, expected);
	unescape_bytes(&back, (char *)text.data, text.len);
	assert_string_equal((char *)back.data, bytes);
	buf_release(&text);
	buf_release(&back);
}

/* What a terminal would obey or a reader could not see is shown by its number, and nothing is lost. */
static void test_hidden_characters_are_shown(void **state)
{
	struct buf out;

	(void)state;
	expect_shown("a\033[2Jb", "a\\x1b[2Jb");
	expect_shown("a\xc2\x9b"
		     "2J",
		"a\\u009b2J"); /* C1: CSI */
	expect_shown("a\xe2\x80\xae"
		     "b",
		"a\\u202eb"); /* right-to-left override */
	expect_shown("\xe2\x81\xa6\xe2\x80\x8e\xd8\x9c", "\\u2066\\u200e\\u061c");
	expect_shown("\xe2\x80\xa8\xe2\x80\x8b\xef\xbb\xbf", "\\u2028\\u200b\\ufeff");
	expect_shown("\xf3\xa0\x81\x81", "\\U000e0041"); /* a tag */
	expect_shown("\\u202e \\x41 \\n", "\\\\u202e \\\\x41 \\\\n");
	expect_shown("\xd7\xa9 \xc3\xa9 \xe2\x80\x8d \xf0\x9f\x9a\x97",
		"\xd7\xa9 \xc3\xa9 \xe2\x80\x8d \xf0\x9f\x9a\x97");
	buf_init(&out, 1000);
	show_bytes(&out, "a\r\nb\rc\t\\\033\xff", 10, "\n\t");
	assert_string_equal((char *)out.data, "a\r\nb\\x0dc\t\\\\x1b\\xff");
	buf_release(&out);
}

static void test_json_hides_nothing(void **state)
{
	struct json j;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	json_init(&j, &out, false);
	json_str(&j, NULL, "\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9");
	assert_string_equal((char *)out.data, "\"\\u009b\\u202e\\udb40\\udc41\xc3\xa9\"");
	buf_release(&out);
}

static void test_formulas_are_known(void **state)
{
	static const char *const yes[] = {"=1+1", "+1", "-bash", "@SUM", "\t=1", "\r", "\n", "'=1", "''@"},
				 *const no[] = {"", "'", "a=1", "'a'", " =1", "1-1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		assert_true(is_formula(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(is_formula(no[i], strlen(no[i])));
}

static void test_pairs_round_trip(void **state)
{
	struct pair memory[8], other[8];
	char text[256], text2[256];
	struct pairs p, q;
	struct buf b;
	int64_t n;

	(void)state;
	pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
	pairs_init(&q, other, ARRAY_SIZE(other), text2, sizeof(text2));
	pairs_str(&p, "name", "a\nb");
	pairs_add(&p, "raw", "\0\xff", 2);
	pairs_num(&p, "pid", -42);
	buf_init(&b, 1000);
	pairs_encode(&p, &b);
	struct view v = view_of(b.data, b.len);
	assert_int_equal(pairs_decode(&q, &v), 0);
	assert_int_equal(q.nr, 3);
	assert_true(pairs_get_num(&q, "pid", &n));
	assert_int_equal(n, -42);
	assert_int_equal(pairs_find(&q, "raw")->len, 2);
	assert_null(pairs_find(&q, "none"));
	for (size_t cut = 0; cut < b.len; cut++) {
		v = view_of(b.data, cut);
		assert_int_equal(pairs_decode(&q, &v), -EBADMSG);
	}
	buf_release(&b);
}

static void test_json(void **state)
{
	struct json j;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	json_init(&j, &b, false);
	json_object(&j, NULL);
	json_str(&j, "s", "q\"\n\\");
	json_bytes(&j, "raw", "\xff", 1);
	json_bytes(&j, "said", "\\xff", 4);
	json_num(&j, "n", 0.1);
	json_num(&j, "nan", 0.0 / 0.0);
	json_array(&j, "a");
	json_int(&j, NULL, 1);
	json_object(&j, NULL);
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
	assert_string_equal((char *)b.data,
		"{\"s\":\"q\\\"\\n\\\\\",\"raw\":\"\\\\xff\",\"said\":\"\\\\\\\\xff\",\"n\":0.1,\"nan\":null,"
		"\"a\":[1,{}]}");
	buf_release(&b);
}

/* Numbers of a recording may be anything: a PID of 2^63 is a double that no int64_t holds. */
static void test_rounding_has_a_range(void **state)
{
	(void)state;
	assert_int_equal(round_i64(2.5), 3);
	assert_int_equal(round_i64(-2.5), -3);
	assert_true(round_i64(0x1p63) == INT64_MAX);
	assert_true(round_i64(-0x1p63) == INT64_MIN);
	assert_true(round_i64(0x1p63 - 1024) == INT64_MAX - 1023);
	assert_true(round_i64(INFINITY) == INT64_MAX);
	assert_int_equal(round_i64(NAN), 0);
}

static void test_nearest_word(void **state)
{
	char longer[300];
	struct nearest n = nearest_to("rsss", 3);
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	nearest_ask(&n, &b);
	assert_int_equal(b.len, 0);
	assert_false(nearest_try(&n, "pss.."));
	assert_true(nearest_try(&n, "uss"));
	assert_true(nearest_try(&n, "rss"));
	assert_false(nearest_try(&n, "rsst")); /* as near, but later */
	assert_false(nearest_offer(&n, "swap", 1));
	nearest_ask(&n, &b);
	assert_string_equal((char *)b.data, "; did you mean 'rss'?");
	n = nearest_slip("nosuch");
	assert_false(nearest_try(&n, "doubt"));
	assert_true(nearest_try(&n, "nosuck"));
	buf_release(&b);
	/* Nothing is near to a word of which nobody can tell the distance. */
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	n = nearest_to(longer, strlen(longer));
	assert_false(nearest_try(&n, "rss"));
	assert_null(n.best);
}

static void test_lists_own_what_they_take(void **state)
{
	struct owned o = {0};
	char **list = NULL, number[16];
	size_t nr = 0;
	struct buf b;

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(number, sizeof(number), "%d", i);
		assert_int_equal(texts_take(&list, &nr, strdup(number)), 0);
		assert_string_equal(owned_take(&o, strdup(number)), number);
	}
	assert_int_equal(texts_take(&list, &nr, NULL), -ENOMEM);
	assert_int_equal(nr, 100);
	for (int i = 0; i < 100; i++) {
		snprintf(number, sizeof(number), "%d", i);
		assert_string_equal(list[i], number);
		assert_string_equal(o.block[i], number);
	}
	texts_free(list, nr);
	buf_init(&b, 4);
	buf_adds(&b, "too long");
	assert_null(owned_text(&o, &b));
	assert_false(o.failed); /* memory is not what it lacked */
	buf_init(&b, 100);
	buf_adds(&b, "text");
	assert_string_equal(owned_text(&o, &b), "text");
	assert_int_equal(*(uint64_t *)owned_alloc(&o, 1, sizeof(uint64_t)), 0);
	assert_null(owned_take(&o, NULL));
	assert_true(o.failed);
	assert_null(owned_take(&o, strdup("never kept")));
	owned_free(&o);
}

static void test_arrays_reach_any_number(void **state)
{
	uint32_t nr = 0, was, *array = NULL;

	(void)state;
	for (uint32_t at = 0; at < 100; at++) {
		array = array_reach(array, &nr, at, sizeof(*array));
		assert_true(array && at < nr);
		for (uint32_t i = at; i < nr; i++)
			assert_int_equal(array[i], 0);
		array[at] = at + 1;
	}
	for (uint32_t at = 0; at < 100; at++)
		assert_int_equal(array[at], at + 1);
	was = nr;
	assert_null(array_reach(array, &nr, UINT32_MAX, sizeof(*array)));
	assert_null(array_reach(array, &nr, UINT32_MAX - 1, SIZE_MAX / 2));
	assert_int_equal(nr, was);
	free(array);
}

static void test_units(void **state)
{
	char o[UNITS_SIZE];

	(void)state;
	assert_string_equal(format_bytes(o, 0), "0 B");
	assert_string_equal(format_bytes(o, 1023), "1023 B");
	assert_string_equal(format_bytes(o, 1024), "1 KiB");
	assert_string_equal(format_bytes(o, 3.1 * (1 << 30)), "3.1 GiB");
	assert_string_equal(format_bytes(o, 212e6), "202 MiB");
	assert_string_equal(format_count(o, 4812), "4,812");
	assert_string_equal(format_count(o, 1.2e6), "1.2 M");
	assert_string_equal(format_count(o, -2847), "-2,847");
	assert_string_equal(format_count(o, -4), "-4");
	assert_string_equal(format_exact(o, 167956480), "167956480");
	assert_string_equal(format_exact(o, -0x1p53 + 1), "-9007199254740991");
	assert_string_equal(format_exact(o, 1e16), "1e+16");
	assert_string_equal(format_exact(o, 0.1), "0.1");
	assert_string_equal(format_duration(o, 102), "1m42s");
	assert_string_equal(format_duration(o, 0.012), "12ms");
	assert_string_equal(format_duration(o, 7384), "2h03m");
	assert_string_equal(format_iso8601(o, INT64_C(1700000000123456789)), "2023-11-14T22:13:20.123Z");
}

static void test_lists_and_arrays_grow(void **state)
{
	static const struct {
		size_t cap, want, most, now;
	} room[] = {{0, 1, SIZE_MAX, 4}, {16, 17, SIZE_MAX, 32}, {16, 100, SIZE_MAX, 100},
		{200, 201, 255, 255}, {255, 256, 255, 0}};
	uint16_t *list = NULL, *item;
	char *text = NULL;
	uint8_t cap = 0;
	uint32_t nr = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		item = ARRAY_ADD(list, nr);
		assert_non_null(item);
		assert_int_equal(*item, 0);
		assert_ptr_equal(item, list + i);
		*item = (uint16_t)i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	assert_null(array_double(list, (size_t)1 << 63, 1));
	free(list);
	for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
		size_t now = room[i].cap;
		void *grown = array_room(NULL, &now, room[i].want, room[i].most, 1);

		assert_int_equal(grown ? now : 0, room[i].now);
		free(grown);
	}
	/* The type of what counts is the limit; nothing is lost when there is no room. */
	assert_int_equal(ARRAY_ROOM(text, cap, 255), 0);
	assert_int_equal(cap, 255);
	assert_int_equal(ARRAY_ROOM(text, cap, 256), -ENOMEM);
	assert_non_null(text);
	assert_int_equal(ARRAY_RESIZE(text, SIZE_MAX), -ENOMEM);
	text[254] = 1;
	free(text);
}

static void test_quoting(void **state)
{
	static const struct {
		const char *text, *csv, *shell;
	} word[] = {{"", "\"\"", "''"}, {"a", "a", "a"}, {"a b", "a b", "'a b'"}, {" a", "\" a\"", "' a'"},
		{"a,b", "\"a,b\"", "a,b"}, {"\"a\"", "\"\"\"a\"\"\"", "'\"a\"'"},
		{"it's", "it's", "'it'\\''s'"}, {"'", "'", "''\\'''"}, {"a\n", "\"a\n\"", "'a\n'"},
		{"\xc3\xa9=1", "\xc3\xa9=1", "\xc3\xa9=1"}, {"$x", "$x", "'$x'"}};
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(word); i++) {
		buf_reset(&out);
		add_csv_field(&out, word[i].text, strlen(word[i].text));
		assert_string_equal((char *)out.data, word[i].csv);
		buf_reset(&out);
		add_shell_word(&out, word[i].text, strlen(word[i].text));
		assert_string_equal((char *)out.data, word[i].shell);
	}
	buf_release(&out);
}

/* Keys that are near to each other, far from each other, and that differ at the top only, against a list. */
static void test_idmap(void **state)
{
	enum { KEYS = 3000 };
	static uint32_t value[KEYS];
	struct idmap m = {0};
	uint32_t nr = 0;

	(void)state;
	srand(7);
	memset(value, 0xff, sizeof(value));
	assert_int_equal(idmap_get(&m, 0), IDMAP_NONE);
	for (unsigned step = 0; step < 40000; step++) {
		uint32_t i = (uint32_t)rand() % KEYS, v = (uint32_t)rand() % 5;
		uint64_t key = i % 3 == 0 ? i
			: i % 3 == 1	  ? (uint64_t)i << 52
					  : i * UINT64_C(0x123456789abcdef1);

		assert_int_equal(idmap_get(&m, key), value[i]);
		if (v == 4) {
			idmap_remove(&m, key);
			v = IDMAP_NONE;
		} else if (v == 3) {
			assert_int_equal(idmap_room(&m), 0);
			v = value[i] == IDMAP_NONE ? step : value[i];
			assert_int_equal(idmap_number(&m, key, step), v);
		} else {
			assert_int_equal(idmap_put(&m, key, v), 0);
		}
		nr += (v != IDMAP_NONE) - (value[i] != IDMAP_NONE);
		value[i] = v;
		assert_int_equal(m.nr, nr);
	}
	assert_int_equal(idmap_put(&m, 0, IDMAP_NONE), 0);
	assert_int_equal(idmap_get(&m, 0), IDMAP_NONE);
	idmap_clear(&m);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(idmap_get(&m, i), IDMAP_NONE);
	idmap_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buf_has_a_maximum_and_a_sticky_error),
		cmocka_unit_test(test_varints_round_trip),
		cmocka_unit_test(test_view_rejects_lengths_past_the_end),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_numbers_do_not_overflow),
		cmocka_unit_test(test_escapes_are_lossless),
		cmocka_unit_test(test_hidden_characters_are_shown),
		cmocka_unit_test(test_json_hides_nothing),
		cmocka_unit_test(test_formulas_are_known),
		cmocka_unit_test(test_pairs_round_trip),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_rounding_has_a_range),
		cmocka_unit_test(test_nearest_word),
		cmocka_unit_test(test_lists_own_what_they_take),
		cmocka_unit_test(test_arrays_reach_any_number),
		cmocka_unit_test(test_lists_and_arrays_grow),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_idmap),
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
