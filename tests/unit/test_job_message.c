/* What the job tells its recorder: well-formed messages, and whatever else may arrive. */
#include "target/job_message.h"

#include <tacho_mark.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* In memory of exactly that size: a sanitizer sees what lies outside. */
static int parse(const void *bytes, size_t len, char **ret_memory, struct job_message *m)
{
	*ret_memory = malloc(len ? len : 1);
	assert_non_null(*ret_memory);
	memcpy(*ret_memory, bytes, len);
	return job_message_parse(*ret_memory, len, m);
}

static void test_a_mark_with_data(void **state)
{
	static const char text[] = "mark a\\nb\\\\c\n@time=123\n@lost=7\nsize=3.1G\nnot a pair\nnote=x=y\\n";
	struct job_message m;
	char *memory;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &memory, &m), 0);
	assert_string_equal(m.kind, "mark");
	assert_int_equal(m.text_len, 5);
	assert_memory_equal(m.text, "a\nb\\c", 5);
	assert_int_equal(m.time_ns, 123);
	assert_int_equal(m.lost, 7);
	assert_int_equal(m.data_len, sizeof("size=3.1G\0note=x=y\n") - 1);
	assert_memory_equal(m.data, "size=3.1G\0note=x=y\n", m.data_len);
	free(memory);
}

static void test_what_senders_count(void **state)
{
	static const char text[] = "count\n@lost=2\n@within=41\n@thread=12\n@parent=-3";
	struct job_message m;
	char *memory;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &memory, &m), 0);
	assert_string_equal(m.kind, "");
	assert_int_equal(m.lost, 2);
	assert_int_equal(m.within, 41);
	assert_int_equal(m.thread, 12);
	assert_int_equal(m.parent, 0);
	assert_int_equal(m.data_len, 0);
	free(memory);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *text, *kind;
	} row[] = {{"begin load", "phase.begin"}, {"end load\n", "phase.end"}, {"mark ", "mark"},
		{"count\n@within=3", ""}, {"mark", NULL}, {"", NULL}, {"\n", NULL}, {"phase load", NULL},
		{"@time=1\nmark x", NULL}};
	struct job_message m;
	char *memory;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		int r = parse(row[i].text, strlen(row[i].text), &memory, &m);

		assert_int_equal(r, row[i].kind ? 0 : -EBADMSG);
		if (row[i].kind)
			assert_string_equal(m.kind, row[i].kind);
		free(memory);
	}
}

/* Neither numbers that are none, nor keys that could be taken for something else. */
static void test_what_is_not_understood_is_left_out(void **state)
{
	static const char text[] = "mark x\n@time=-1\n@lost=99999999999999999999\n=1\na b=1\nk\303\244=1\n"
				   "nul\0=1\nv=a\0b\nempty=\nok=1";
	struct job_message m;
	char *memory;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &memory, &m), 0);
	assert_int_equal(m.time_ns, -1);
	assert_int_equal(m.lost, 0);
	assert_int_equal(m.data_len, sizeof("empty=\0ok=1") - 1);
	assert_memory_equal(m.data, "empty=\0ok=1", m.data_len);
	free(memory);
}

/* Any bytes: nothing is read or written outside, and all that is given back lies within. */
static void test_random_bytes(void **state)
{
	static const char letters[] = "mark begin end \n\n\n\\\\n=a@time0\0";
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char text[80];
		size_t len;
		struct job_message m;
		char *memory;

		seed = seed * UINT64_C(6364136223846793005) + 1;
		len = seed >> 33 & 63;
		for (size_t k = 0; k < len; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			text[k] = letters[(seed >> 33) % sizeof(letters)];
		}
		memcpy(text, "mark ", MIN(len, (size_t)5));
		if (parse(text, len, &memory, &m) == 0) {
			assert_true(m.text >= memory && m.text + m.text_len <= memory + len);
			assert_true(m.data >= memory && m.data + m.data_len <= memory + len);
		}
		free(memory);
	}
}

/* As tacho_send() puts it together. */
static void read_message(
	struct tacho_message *made, const char *kind, const char *text, struct job_message *m)
{
	static char bytes[sizeof(made->bytes)];
	size_t first = tacho_put(made->bytes, 0, sizeof(made->bytes) - made->end, kind, text, 1),
	       rest = made->end - TACHO_MESSAGE_MOST;

	assert_true(first + rest <= TACHO_MESSAGE_MOST);
	memcpy(bytes, made->bytes, first);
	memcpy(bytes + first, made->bytes + TACHO_MESSAGE_MOST, rest);
	assert_int_equal(job_message_parse(bytes, first + rest, m), 0);
}

static void test_the_header_writes_what_is_read(void **state)
{
	char long_text[2 * TACHO_MESSAGE_MOST];
	struct tacho_message made;
	struct job_message m;

	(void)state;
	tacho_lost = 3;
	tacho_lost_by = getpid();
	tacho_start(&made);
	tacho_add(&made, "", "key=a\nb");
	read_message(&made, "begin ", "two\nlines \\n", &m);
	assert_memory_equal(m.text, "two\nlines \\n", m.text_len);
	assert_memory_equal(m.data, "key=a\nb", m.data_len);
	assert_int_equal(m.lost, 3);
	assert_true(m.time_ns > 0);
	assert_int_equal(m.thread, getpid());
	memset(long_text, '\\', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	tacho_start(&made);
	tacho_add(&made, "", long_text);
	read_message(&made, "mark ", long_text, &m);
	assert_int_equal(m.lost, 0);
	assert_int_equal(m.data_len, 0); /* it has no room, and a part of it is something else */
	assert_memory_equal(m.text + m.text_len - 3, "\342\200\246", 3);
	/* The data is kept, and the text is cut between two characters. */
	for (size_t i = 0; i + 2 < sizeof(long_text); i += 2)
		memcpy(long_text + i, "\303\244", 2);
	for (size_t shift = 0; shift < 2; shift++) {
		tacho_start(&made);
		tacho_add(&made, "", shift ? "n=12" : "n=1");
		read_message(&made, "mark ", long_text, &m);
		assert_int_equal(m.text_len % 2, 1);
		assert_true(m.text_len > 3000);
		assert_memory_equal(m.text + m.text_len - 5, "\303\244\342\200\246", 5);
		assert_int_equal(m.data_len, shift ? 4 : 3);
	}
	assert_int_equal(tacho_mark("no listener", "a=1", NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mark_with_data),
		cmocka_unit_test(test_what_senders_count),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_what_is_not_understood_is_left_out),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_the_header_writes_what_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
