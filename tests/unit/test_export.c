/* What the formats share: numbers and times as text, the outlet, the list. Each format has tests of its own;
 * readers of others judge them in tests/e2e/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/outlet.h"
#include "export/text.h"
#include "export_lab.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char path[64];

static const char *real(double v)
{
	static char text[EXPORT_TEXT + 1];

	text[format_real(text, v)] = 0;
	return text;
}

static void test_reals_read_back_the_same(void **state)
{
	/* clang-format off */
	static const struct { double v; const char *text; } row[] = {
		{0, "0"}, {-0.0, "-0"}, {1, "1"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {0.001, "0.001"}, {1e-7, "1e-07"},
		{123456.789, "123456.789"}, {0.000000001, "1e-09"}, {0.123456789, "0.123456789"}, {1e14, "100000000000000"},
		{1e300, "1e+300"}, {9007199254740993.0, "9007199254740992"}, {INFINITY, ""}, {NAN, ""},
	};
	/* clang-format on */
	uint64_t n = 88172645463325252u;
	char shortest[EXPORT_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		assert_string_equal(real(row[i].v), row[i].text);
	for (int i = -12; i < 17; i++) { /* where the number of digits changes */
		double v = pow(10, i);

		assert_true(strtod(real(v), NULL) == v);
		assert_true(strtod(real(nextafter(v, 0)), NULL) == nextafter(v, 0));
		assert_true(strtod(real(nextafter(v, 1e99)), NULL) == nextafter(v, 1e99));
		assert_true(strtod(real(-ldexp(1, 3 * i)), NULL) == -ldexp(1, 3 * i));
	}
	for (unsigned i = 0; i < 60000; i++) {
		double v;

		n ^= n << 13, n ^= n >> 7, n ^= n << 17;
		if (i % 3 == 0)
			memcpy(&v, &n, sizeof(v));
		else if (i % 3 == 1)
			v = (double)(int64_t)(n >> 20) / (i % 2 ? 1e6 : 1e9);
		else
			v = (double)(n >> 11) / (double)(UINT64_C(1) << i % 64);
		if (isfinite(v) && strtod(real(v), NULL) != v)
			fail_msg("%.17g became %s", v, real(v));
		snprintf(shortest, sizeof(shortest), "%.15g", v);
		if (isfinite(v) && strtod(shortest, NULL) == v &&
			strlen(real(v)) > MAX(strlen(shortest), 17u))
			fail_msg("%s is %s", shortest, real(v));
	}
}

static void test_times_are_those_of_the_calendar(void **state)
{
	(void)state;
	for (int64_t day = -100000; day < 100000; day += 37) {
		int64_t ns = day * 86400 * NSEC_PER_SEC + (day * 7919 % 86400) * NSEC_PER_SEC + 987654321;
		time_t t = (time_t)(ns / NSEC_PER_SEC - (ns % NSEC_PER_SEC < 0));
		char text[EXPORT_TEXT + 1], expected[EXPORT_TEXT];
		struct tm tm;

		text[format_time(text, ns)] = 0;
		strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.987654321Z", gmtime_r(&t, &tm));
		assert_string_equal(text, expected);
	}
}

static void test_units_say_what_one_is(void **state)
{
	char text[EXPORT_TEXT];
	struct field f = {.type = FIELD_INT, .unit = UNIT_BYTES, .scale = 1};

	(void)state;
	assert_string_equal(field_unit(&f, text), "bytes");
	f.per_second = true;
	assert_string_equal(field_unit(&f, text), "bytes/s");
	f = (struct field){.type = FIELD_REAL, .unit = UNIT_COUNT, .scale = 1, .per_second = true};
	assert_string_equal(field_unit(&f, text), "1/s");
	f = (struct field){.type = FIELD_INT, .unit = UNIT_SECONDS, .scale = 0.01};
	assert_string_equal(field_unit(&f, text), "0.01 s");
	f = (struct field){.type = FIELD_TEXT, .scale = 1};
	assert_string_equal(field_unit(&f, text), "");
}

static void test_outlet_keeps_order_and_counts(void **state)
{
	static uint8_t large[3 * OUTLET_BUFFER], back[4 * OUTLET_BUFFER];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct outlet o;

	(void)state;
	memset(large, 'x', sizeof(large));
	assert_int_equal(outlet_open(&o, fd), 0);
	assert_int_equal(outlet_add(&o, "begin", 5), 0);
	assert_int_equal(outlet_add(&o, large, sizeof(large)), 0);
	assert_int_equal(outlet_add(&o, "end", 3), 0);
	assert_int_equal(outlet_at(&o), sizeof(large) + 8);
	assert_int_equal(outlet_flush(&o), 0);
	assert_int_equal(pread(fd, back, sizeof(back), 0), sizeof(large) + 8);
	assert_memory_equal(back, "beginx", 6);
	assert_memory_equal(back + 5 + sizeof(large), "end", 3);
	outlet_release(&o);
	close(fd);
}

static void test_outlet_keeps_its_first_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct outlet o;

	(void)state;
	assert_int_equal(outlet_open(&o, fd), 0);
	assert_int_equal(outlet_add(&o, "a", 1), 0);
	assert_int_equal(outlet_flush(&o), -ENOSPC);
	assert_int_equal(outlet_add(&o, "a", 1), -ENOSPC);
	assert_int_equal(outlet_flush(&o), -ENOSPC);
	outlet_release(&o);
	close(fd);
}

static void test_formats_have_names_of_their_own(void **state)
{
	(void)state;
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *x = exporters[i];

		assert_ptr_equal(exporter_find(x->name), x);
		assert_non_null(x->help);
		assert_true(x->suffix && (x->suffix[0] == '.' || x->shape == EXPORT_OWN_FILES));
		if (!x->missing)
			assert_true(x->open && x->add && x->close && x->drop);
		assert_true(!x->streams || !x->by_path);
	}
	assert_null(exporter_find("none"));
}

/* Nothing may depend on where the batches end. */
static char *bytes_of(size_t *len)
{
	FILE *f = fopen(path, "r");
	char *bytes = malloc(1 << 24);

	assert_non_null(f);
	assert_non_null(bytes);
	*len = fread(bytes, 1, 1 << 24, f);
	assert_true(*len < 1 << 24);
	fclose(f);
	return bytes;
}

/* Pieces of these formats are batches, or end with them: their readers judge them elsewhere. */
static bool is_cut_by_batches(const struct exporter *x)
{
	static const char *const name[] = {"arrow", "feather", "arrow-stream", "orc", "pickle", "perfetto"};

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (!strcmp(x->name, name[i]))
			return true;
	return false;
}

static void write_in_batches(const struct exporter *x, size_t table, uint32_t rows)
{
	assert_int_equal(lab_write(x, table, &(struct lab_options){.batch_rows = rows}, path), 0);
}

static void test_batches_make_no_difference(void **state)
{
	(void)state;
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *x = exporters[i];

		if (x->missing || x->shape == EXPORT_OWN_FILES || x->by_path)
			continue;
		for (size_t k = 0; k < (x->shape == EXPORT_FILE_EACH ? LAB_FRAMES : 1); k++) {
			size_t len, others;
			char *bytes, *other;

			write_in_batches(x, k, 1);
			bytes = bytes_of(&len);
			for (uint32_t rows = 9; rows <= 2500; rows = rows * 7 + 2) {
				write_in_batches(x, k, rows);
				other = bytes_of(&others);
				if (!is_cut_by_batches(x) &&
					(len != others || memcmp(bytes, other, len) != 0))
					fail_msg("%s in batches of %u is another", x->name, rows);
				free(other);
			}
			free(bytes);
		}
	}
	unlink(path);
}

/* Random frames: that it ends well is what the sanitizers say. */
static void test_hostile_tables(void **state)
{
	uint64_t n = 42;

	(void)state;
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *x = exporters[i];

		for (unsigned round = 0; round < 40 && !x->missing && x->shape != EXPORT_OWN_FILES; round++) {
			uint8_t data[600];
			size_t len = 1 + round * 13;

			for (size_t k = 0; k < len; k++) {
				n = n * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
				data[k] = (uint8_t)(n >> 56);
			}
			lab_write_fuzz(x, data, len, path);
			unlink(path);
		}
	}
}

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/tacho-export-%d", (int)getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reals_read_back_the_same),
		cmocka_unit_test(test_times_are_those_of_the_calendar),
		cmocka_unit_test(test_units_say_what_one_is),
		cmocka_unit_test(test_outlet_keeps_order_and_counts),
		cmocka_unit_test(test_outlet_keeps_its_first_error),
		cmocka_unit_test(test_formats_have_names_of_their_own),
		cmocka_unit_test(test_batches_make_no_difference),
		cmocka_unit_test(test_hostile_tables),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
