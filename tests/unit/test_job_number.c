/* Which data of a mark are numbers, in which unit, and what becomes of them in the table of the job's
 * numbers. */
#include "collect/app.h"
#include "target/job_number.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* In memory of exactly that size: a sanitizer sees what lies outside. */
static bool parse(const char *word, const char *unit, struct job_number *ret)
{
	size_t len = strlen(word), unit_len = unit ? strlen(unit) : 0;
	char *copy = malloc(len ? len : 1), *unit_copy = malloc(unit_len ? unit_len : 1);
	bool is;

	assert_non_null(copy);
	assert_non_null(unit_copy);
	memcpy(copy, word, len);
	if (unit)
		memcpy(unit_copy, unit, unit_len);
	is = job_number_parse(copy, len, unit ? unit_copy : NULL, unit_len, ret);
	free(copy);
	free(unit_copy);
	return is;
}

static void test_numbers_and_their_units(void **state)
{
	static const struct {
		const char *word, *unit, *name;
		double value;
		enum metric_unit is;
	} row[] = {
		{"loss=0.31", NULL, "app.loss", 0.31, UNIT_COUNT},
		{"step=-1200", NULL, "app.step", -1200, UNIT_COUNT},
		{"x=+.5e-3", NULL, "app.x", 0.0005, UNIT_COUNT},
		{"x=5.", NULL, "app.x", 5, UNIT_COUNT},
		{"x=    1.2500E-01", NULL, "app.x", 0.125, UNIT_COUNT},
		{"took=  7ms", NULL, "app.took", 0.007, UNIT_SECONDS},
		{"Val-Loss.A=1E2", NULL, "app.val_loss.a", 100, UNIT_COUNT},
		{"size=3G", NULL, "app.size", 3.0 * (1 << 30), UNIT_BYTES},
		{"size=1.5KiB", NULL, "app.size", 1536, UNIT_BYTES},
		{"cache_mb=2", NULL, "app.cache_mb", 2 << 20, UNIT_BYTES},
		{"cache_bytes=7.4", NULL, "app.cache_bytes", 7, UNIT_BYTES},
		{"epoch_s=3", NULL, "app.epoch_s", 3, UNIT_SECONDS},
		{"step_ms=12", NULL, "app.step_ms", 0.012, UNIT_SECONDS},
		{"took=350ms", NULL, "app.took", 0.35, UNIT_SECONDS},
		{"took_s=350ms", "W", "app.took_s", 0.35, UNIT_SECONDS},
		{"gpu=91%", NULL, "app.gpu", 0.91, UNIT_RATIO},
		{"gpu_percent=91", NULL, "app.gpu_percent", 0.91, UNIT_RATIO},
		{"power=12", "kW", "app.power", 12000, UNIT_WATTS},
		{"power_watts=12", "img/s", "app.power_watts", 12, UNIT_WATTS},
		{"tokens_per_s=9", NULL, "app.tokens_per_s", 9, UNIT_COUNT},
		{"loss_min=9", NULL, "app.loss_min", 9, UNIT_COUNT},
		{"s=9", NULL, "app.s", 9, UNIT_COUNT},
		{"x=1e308", NULL, "app.x", 1e308, UNIT_COUNT},
	};
	struct job_number n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_true(parse(row[i].word, row[i].unit, &n));
		assert_string_equal(n.name, row[i].name);
		if (fabs(n.value - row[i].value) > 1e-12 * fabs(row[i].value) || n.unit != row[i].is)
			fail_msg("%s: %g %s", row[i].word, n.value, unit_name(n.unit));
		assert_string_equal(n.unit_text, "");
	}
}

static void test_a_unit_that_is_not_known_is_kept_as_text(void **state)
{
	struct job_number n;

	(void)state;
	assert_true(parse("rate=5", "img/s", &n));
	assert_string_equal(n.unit_text, "img/s");
	assert_int_equal(n.unit, UNIT_COUNT);
	assert_true(parse("rate=5", "an extremely long and spaced one", &n));
	assert_string_equal(n.unit_text, "");
	assert_true(parse("rate=5", "a\tb\n", &n));
	assert_string_equal(n.unit_text, "");
}

static void test_what_is_no_number_stays_text(void **state)
{
	static const char *const word[] = {"loss", "=5", "loss=", "v=1.2.3", "d=2026-01-02", "x=0x10",
		"x=1,5", "x=5m", "x=e5", "x=.", "x=+", "x=1e", "x=5 ", "x=  ", "x= 5 ", "unit=5", "x=nano",
		"", "a_key_that_is_too_long_to_be_the_name_of_a_metric_of_any_kind_=1",
		"x=1111111111111111111111111111111111111111111111111111111111111111111111111"};
	struct job_number n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		if (parse(word[i], NULL, &n))
			fail_msg("%s is taken for %g", word[i], n.value);
}

static void test_what_is_not_finite_is_not_known(void **state)
{
	static const char *const word[] = {"x=nan", "x=NaN", "x=inf", "x=-Infinity", "x=1e999", "x=1e308P"};
	struct job_number n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++) {
		assert_true(parse(word[i], NULL, &n));
		assert_true(isnan(n.value));
	}
}

static void test_keys_get_columns_in_their_order(void **state)
{
	static struct app_numbers a;
	char name[32];

	(void)state;
	app_tell(&a, "app.never", UNIT_COUNT, "", NAN);
	assert_int_equal(a.nr, 0);
	app_tell(&a, "app.loss", UNIT_COUNT, "", 1);
	app_tell(&a, "app.t", UNIT_SECONDS, "", 2);
	app_tell(&a, "app.loss", UNIT_COUNT, "img/s", 3);
	assert_int_equal(a.nr, 2);
	assert_true(a.key[0].value == 3);
	assert_string_equal(a.names, "app.loss\tcount\t\napp.t\tseconds\t\n");
	app_tell(&a, "app.t", UNIT_BYTES, "", 5); /* another unit */
	assert_true(a.key[1].value == 2);
	assert_int_equal(a.left_out, 1);
	app_tell(&a, "app.loss", UNIT_COUNT, "", NAN);
	assert_true(isnan(a.key[0].value));
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "app.k%d", i);
		app_tell(&a, name, UNIT_COUNT, "", i);
	}
	assert_int_equal(a.nr, APP_KEYS);
	assert_int_equal(a.left_out, 1 + 100 - (APP_KEYS - 2));
	assert_int_equal(strlen(a.names), a.names_len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_their_units),
		cmocka_unit_test(test_a_unit_that_is_not_known_is_kept_as_text),
		cmocka_unit_test(test_what_is_no_number_stays_text),
		cmocka_unit_test(test_what_is_not_finite_is_not_known),
		cmocka_unit_test(test_keys_get_columns_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
