/* Reading JSON of others, and times as logs have them. */
#include "base/iso_time.h"
#include "base/json.h"
#include "base/json_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct buf seen;

static int take(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	static const char mark[] = {'#', '"', 't', 'f', '0', '['};

	(void)arg;
	buf_addf(&seen, "%s%c", path, mark[leaf]);
	buf_add(&seen, text, len);
	buf_addch(&seen, '|');
	return 0;
}

static int read_json(const char *text)
{
	buf_release(&seen);
	buf_init(&seen, 1 << 16);
	return json_read(text, strlen(text), take, NULL);
}

static void expect(const char *text, const char *leaves)
{
	assert_int_equal(read_json(text), 0);
	assert_string_equal((char *)seen.data, leaves);
}

static void test_leaves(void **state)
{
	(void)state;
	expect("{}", "");
	expect(" { \"a\" : 1 , \"b\":{\"c\":-0.5e+3,\"d\":{}} }\r", "a#1|b.c#-0.5e+3|");
	expect("{\"l\":[1,{\"x\":[\"]\"]}],\"t\":true,\"f\":false,\"n\":null}",
		"l[[1,{\"x\":[\"]\"]}]|tttrue|fffalse|n0null|");
	expect("\"\\u00e4\\ud83d\\ude00\\n\\\\\\/\"", "\"\xc3\xa4\xf0\x9f\x98\x80\n\\/|");
	expect("\"\\ud83d x\"", "\"\xef\xbf\xbd x|");
}

static void expect_list(const char *text, const char *leaves)
{
	buf_release(&seen);
	buf_init(&seen, 1 << 16);
	assert_int_equal(json_read_list(text, strlen(text), take, NULL), leaves ? 0 : -EBADMSG);
	if (leaves)
		assert_string_equal((char *)seen.data, leaves);
}

static void test_items_of_lists(void **state)
{
	(void)state;
	expect_list("[]", "");
	expect_list(" [ 1, \"a\" ,[2] ] ", "0#1|1\"a|2[[2]|");
	expect_list("[{\"x\":1,\"y\":{\"z\":\"b\"}},{\"x\":2}]", "0.x#1|0.y.z\"b|1.x#2|");
	expect_list("[1,]", NULL);
	expect_list("[1", NULL);
	expect_list("{}", NULL);
	expect_list("[] 1", NULL);
	expect_list("", NULL);
}

static void test_what_is_no_json(void **state)
{
	static const char *const bad[] = {"", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1,]",
		"[1", "01", "1.", "-", "1e", "+1", "\"", "\"\\x41\"", "\"\\u12\"", "\"\\ud83d\\u0041\"",
		"\"\n\"", "tru", "nul", "1 2", "{\"a\":1}{}", "{\"a\\u0000b\":1}", "NaN", "'a'"};
	char deep[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (read_json(bad[i]) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	assert_int_equal(read_json(deep), -EBADMSG);
}

/* What our writer writes the reader gives back, whatever the bytes were. */
static void test_what_we_write_is_read(void **state)
{
	uint8_t bytes[64];
	struct buf out;
	struct json j;

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(rand() % (i % 2 ? 256 : 128));
		buf_init(&out, 4096);
		json_init(&j, &out, i % 3 == 0);
		json_object(&j, NULL);
		json_bytes(&j, "a", bytes, sizeof(bytes));
		json_end_object(&j);
		assert_int_equal(read_json((char *)out.data), 0);
		assert_memory_equal(seen.data, "a\"", 2);
		buf_release(&out);
	}
}

static void expect_time(const char *text, int64_t ns)
{
	int64_t found = -1;

	assert_true(parse_iso_time(text, strlen(text), &found));
	assert_int_equal(found, ns);
}

static void test_times(void **state)
{
	static const char *const bad[] = {"", "2026", "2026-11-18", "2026-13-01T00:00:00Z",
		"2026-02-29T00:00:00Z", "2026-11-18T25:00:00Z", "2026-11-18T10:60:00Z",
		"2026-11-18T10:00:00X", "2026-11-18T10:00:00+1", "2026-11-18T10:00:00Z ",
		"9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "18.11.2026 10:00"};
	int64_t ns = 7;

	(void)state;
	expect_time("1970-01-01T00:00:00Z", 0);
	expect_time("2026-11-18T10:06:04.039+00:00", INT64_C(1794996364039000000));
	expect_time("2026-11-18 11:06:04,039123456+0100", INT64_C(1794996364039123456));
	expect_time("2026-11-18T04:36:04-05:30", INT64_C(1794996364000000000));
	expect_time("2024-02-29T12:00", INT64_C(1709208000000000000));
	expect_time("1969-12-31T23:59:59.5Z", -500000000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse_iso_time(bad[i], strlen(bad[i]), &ns))
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(ns, 7);
	assert_true(parse_epoch_time("1794996364.039123456", 20, &ns));
	assert_int_equal(ns, INT64_C(1794996364039123456));
	assert_true(parse_seconds("2.5e-3", 6, &ns));
	assert_int_equal(ns, 2500000);
	assert_false(parse_seconds("-1", 2, &ns) || parse_epoch_time("nan", 3, &ns) ||
		parse_epoch_time("0x10", 4, &ns) || parse_epoch_time("1e99", 4, &ns) ||
		parse_epoch_time("", 0, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_items_of_lists),
		cmocka_unit_test(test_what_is_no_json),
		cmocka_unit_test(test_what_we_write_is_read),
		cmocka_unit_test(test_times),
	};
	int failed;

	buf_init(&seen, 1 << 16);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_release(&seen);
	return failed;
}
