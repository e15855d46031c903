/* document/mermaid: charts as text that GitHub draws, on charts made by hand. */
#include "document/mermaid.h"

#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POINTS 111

static double time_s[POINTS];
static float value[POINTS];
static struct chart_curve curve;
static struct chart chart;
static struct buf out;

/* Samples of 200 ms, and at times two that are close together: of a hundred parts some have none. */
static int setup(void **state)
{
	(void)state;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < POINTS; i++) {
		time_s[i] = 0.2 * (double)(i - i / 6) + (i % 6 || !i ? 0 : -0.19);
		value[i] = 2;
	}
	curve = (struct chart_curve){.name = "all of it",
		.nr = POINTS,
		.time_s = time_s,
		.mean = value,
		.low = value,
		.high = value,
		.average = 2,
		.most = 2};
	chart = (struct chart){.id = "test",
		.title = "Title of it",
		.unit = UNIT_COUNT,
		.to_s = time_s[POINTS - 1],
		.y_most = NAN,
		.curve = &curve,
		.nr_curves = 1};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_release(&out);
	return 0;
}

static const char *drawn(enum chart_form form)
{
	chart.form = form;
	buf_reset(&out);
	assert_true(mermaid_curves(&chart, &out));
	assert_non_null(strstr((char *)out.data, "  line [2.000, 2.000"));
	return (char *)out.data;
}

static void test_no_zero_between_samples(void **state)
{
	(void)state;
	assert_null(strstr(drawn(CHART_STACKED), "0.000,"));
	assert_null(strstr(drawn(CHART_LINES), "0.000,"));
	assert_null(strstr((char *)out.data, "nothing is known"));
}

static void test_what_is_not_there_is_an_empty_area_or_a_gap(void **state)
{
	(void)state;
	for (size_t i = 40; i < 60; i++)
		value[i] = NAN;
	assert_non_null(strstr(drawn(CHART_STACKED), "0.000, 0.000, 0.000"));
	assert_null(strstr(drawn(CHART_LINES), "0.000,"));
	assert_non_null(strstr((char *)out.data, "nothing is known"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_zero_between_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_is_not_there_is_an_empty_area_or_a_gap, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
