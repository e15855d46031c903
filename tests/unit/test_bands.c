/* analysis/bands: rows of names for phases within others, and what is too narrow or too close to be told
 * apart. */
#include "analysis/bands.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096

static struct run_event phase[MOST], event[MOST];
static struct run_events told = {.phase = phase, .event = event};
static struct owned kept;

static void tell(struct run_event *list, size_t *nr, double from_s, double to_s, const char *name)
{
	list[(*nr)++] = (struct run_event){.time_s = from_s, .end_s = to_s, .label = strdup(name)};
}

static struct chart_bands bands_of(double from_s, double to_s)
{
	struct chart_bands b;

	assert_int_equal(bands_make(&told, 0, from_s, to_s, &kept, &b), 0);
	return b;
}

static int forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < told.nr_phases; i++)
		free(phase[i].label);
	for (size_t i = 0; i < told.nr_events; i++)
		free(event[i].label);
	told.nr_phases = told.nr_events = 0;
	owned_free(&kept);
	kept = (struct owned){0};
	return 0;
}

static void expect_band(
	const struct chart_band *b, const char *label, uint32_t lane, double from_s, double to_s)
{
	assert_string_equal(b->label, label);
	assert_int_equal(b->lane, lane);
	assert_true(fabs(b->from_s - from_s) < 1e-9 && fabs(b->to_s - to_s) < 1e-9);
}

static void test_phases_within_others_stand_below_them(void **state)
{
	struct chart_bands b;

	(void)state;
	tell(phase, &told.nr_phases, 0, 50, "epoch 1");
	tell(phase, &told.nr_phases, 0, 20, "forward");
	tell(phase, &told.nr_phases, 20, 50, "backward");
	tell(phase, &told.nr_phases, 50, NAN, "epoch 2");
	b = bands_of(0, 100);
	assert_int_equal(b.nr, 4);
	assert_int_equal(b.nr_lanes, 2);
	expect_band(&b.band[0], "epoch 1", 0, 0, 50);
	expect_band(&b.band[1], "epoch 2", 0, 50, 100);
	expect_band(&b.band[2], "forward", 1, 0, 20);
	expect_band(&b.band[3], "backward", 1, 20, 50);
	assert_true(!b.band[0].odd && b.band[1].odd && !b.band[2].odd && b.band[3].odd);
}

static void test_hundreds_become_one_and_the_slow_one_stays(void **state)
{
	double at = 0;
	struct chart_bands b;
	char name[32];

	(void)state;
	for (unsigned i = 1; i <= 500; i++) {
		double length = i == 250 ? 50 : 0.1;

		snprintf(name, sizeof(name), "epoch %u", i);
		tell(phase, &told.nr_phases, at, at + length, name);
		at += length;
	}
	b = bands_of(0, at);
	assert_int_equal(b.nr, 3);
	expect_band(&b.band[0], "epoch ×249", 0, 0, 24.9);
	expect_band(&b.band[1], "epoch 250", 0, 24.9, 74.9);
	expect_band(&b.band[2], "epoch ×250", 0, 74.9, at);
	/* Near by they are told apart. */
	b = bands_of(0, 1.05);
	assert_int_equal(b.nr, 11);
	expect_band(&b.band[2], "epoch 3", 0, 0.2, 0.3);
}

static void test_different_ones_are_counted(void **state)
{
	struct chart_bands b;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		tell(phase, &told.nr_phases, i, i + 1, i % 2 ? "backward" : "forward");
	b = bands_of(0, 100);
	assert_int_equal(b.nr, 1);
	expect_band(&b.band[0], "100 phases", 0, 0, 100);
}

static void test_too_deep_is_left_out(void **state)
{
	struct chart_bands b;

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		tell(phase, &told.nr_phases, i, 100, "deep");
	b = bands_of(0, 100);
	assert_int_equal(b.nr_lanes, BAND_LANES);
	assert_int_equal(b.left_out, 7 - BAND_LANES);
}

static void test_marks_that_are_close_become_one(void **state)
{
	struct chart c = {.from_s = 0, .to_s = 1000};
	char name[32];

	(void)state;
	for (unsigned i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), "written %u", i);
		tell(event, &told.nr_events, 10 + i * 0.1, NAN, name);
	}
	tell(event, &told.nr_events, 500, NAN, "loss=0.5");
	event[told.nr_events - 1].numbers = true;
	tell(event, &told.nr_events, 600, NAN, "written 9");
	tell(event, &told.nr_events, 601, NAN, "stopped");
	chart_set_marks(&c, &told, -1, &kept);
	assert_int_equal(c.nr_marks, 2);
	assert_string_equal(c.mark[0].label, "written ×8");
	assert_string_equal(c.mark[1].label, "written 9, and 1 more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_phases_within_others_stand_below_them, forget),
		cmocka_unit_test_teardown(test_hundreds_become_one_and_the_slow_one_stays, forget),
		cmocka_unit_test_teardown(test_different_ones_are_counted, forget),
		cmocka_unit_test_teardown(test_too_deep_is_left_out, forget),
		cmocka_unit_test_teardown(test_marks_that_are_close_become_one, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
