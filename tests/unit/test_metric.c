/* metric/metric: cells become the numbers that people expect. */
#include "metric/metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_cell_is_the_nearest_decimal(void **state)
{
	/* A product with 1e-9 or 0.01 lies beside some of these. */
	static const struct {
		double scale, cell, unit;
	} row[] = {
		{1e-9, 4981000, 0.004981},
		{1e-6, 11106, 0.011106},
		{0.01, 29, 0.29},
		{1e-3, 1009, 1.009},
		{1, -7, -7},
		{4096, 3, 12288},
		{1.0 / 3, 9, 3},
		{2.5, 2, 5},
		{0.7, 10, 7}, /* one by no whole number */
		{1e-20, 5, 5e-20},
		{0, 5, 0},
		{-0.5, 4, -2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_true(scaled(scaling_of(row[i].scale), row[i].cell) == row[i].unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cell_is_the_nearest_decimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
