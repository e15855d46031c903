/* document/terminal and analysis/axis: charts in characters, on charts made by hand. */
#include "document/document.h"
#include "analysis/axis.h"

#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POINTS 6000
#define CURVES 24

static double time_s[POINTS];
static float value[CURVES][POINTS];
static struct chart_curve curve[CURVES];
static char name[CURVES][32];
static struct chart chart;
static struct buf out;

/* `nr` curves of POINTS points over ten minutes, curve k at k + 1. */
static int setup(void **state)
{
	(void)state;
	buf_init(&out, 1 << 24);
	for (size_t i = 0; i < POINTS; i++)
		time_s[i] = (double)i / 10;
	for (unsigned k = 0; k < CURVES; k++) {
		snprintf(name[k], sizeof(name[k]), "curve-%u", k);
		for (size_t i = 0; i < POINTS; i++)
			value[k][i] = (float)k + 1;
		curve[k] = (struct chart_curve){.name = name[k],
			.nr = POINTS,
			.time_s = time_s,
			.mean = value[k],
			.low = value[k],
			.high = value[k],
			.color = k,
			.average = k + 1,
			.most = k + 1};
	}
	chart = (struct chart){.id = "test",
		.title = "Title of it",
		.unit = UNIT_COUNT,
		.from_s = 0,
		.to_s = 600,
		.y_most = NAN,
		.curve = curve,
		.nr_curves = 1};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_release(&out);
	return 0;
}

static const char *draw(unsigned columns, unsigned rows, bool utf8, bool color)
{
	buf_reset(&out);
	assert_int_equal(
		terminal_chart(&chart, &(struct terminal_style){columns, rows, utf8, color}, &out), 0);
	return (char *)out.data;
}

static unsigned nr_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* A line of the answer without its end; the text is overwritten by the next call. */
static const char *line(unsigned at)
{
	static char text[4096];
	const char *p = (char *)out.data;
	size_t n;

	while (at-- && p)
		p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
	assert_non_null(p);
	n = strcspn(p, "\n");
	assert_true(n < sizeof(text));
	memcpy(text, p, n);
	text[n] = 0;
	return text;
}

static unsigned widest(void)
{
	unsigned most = 0;

	for (unsigned i = 0; i < nr_lines((char *)out.data); i++)
		most = MAX(most, (unsigned)utf8_columns(line(i)));
	return most;
}

/* The character in a column, as its code point; a space when the line ends before. */
static unsigned letter(unsigned column, unsigned row)
{
	const uint8_t *p = (const uint8_t *)line(row), *end = p + strlen((const char *)p);

	while (column-- && p < end)
		p += utf8_length(p, end);
	if (p >= end)
		return ' ';
	return utf8_length(p, end) == 3 ? (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu) : *p;
}

static bool is_braille(unsigned c)
{
	return c > 0x2800 && c <= 0x28ff;
}

/* Rows from the top in which a column of the answer has dots: the first one; 1000 when there are none. */
static unsigned highest_dots(unsigned column)
{
	for (unsigned i = 0; i < nr_lines((char *)out.data); i++)
		if (is_braille(letter(column, i)))
			return i;
	return 1000;
}

static void test_it_fits_whatever_the_size(void **state)
{
	static const struct {
		unsigned columns, rows;
	} size[] = {{80, 24}, {120, 40}, {40, 12}, {20, 6}, {500, 100}};
	static const struct chart_band band[] = {{0, 200, "load"}, {200, 600, "a phase with a long name"}};
	static const struct chart_mark mark[] = {{100, "stopped"}, {599, "an event at the very end"}};

	(void)state;
	chart.subtitle =
		"a subtitle that is long enough to need a line of its own in any small terminal, and more";
	chart.footnote = "a footnote";
	chart.band = band;
	chart.nr_bands = 2;
	chart.mark = mark;
	chart.nr_marks = 2;
	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		for (unsigned nr = 0; nr <= CURVES; nr += 12) {
			chart.nr_curves = nr;
			draw(size[i].columns, size[i].rows, true, false);
			assert_in_range(widest(), 10, size[i].columns);
			assert_in_range(nr_lines((char *)out.data), 5, size[i].rows);
		}
	}
}

static void test_letters_and_colours_only_where_they_may_be(void **state)
{
	const char *text;

	(void)state;
	chart.nr_curves = 3;
	chart.unit = UNIT_CELSIUS;
	curve[1].name = "Zür\xc3\xbc"
			"ck";
	text = draw(80, 24, false, false);
	for (const char *p = text; *p; p++)
		assert_true((*p >= ' ' && *p < 0x7f) || *p == '\n');
	assert_non_null(strstr(text, "\\xc3\\xbc"));
	assert_non_null(strstr(text, "2 C")); /* the degree sign goes */
	assert_null(strchr(draw(80, 24, true, false), '\033'));
	assert_non_null(strstr(draw(80, 24, true, true), "\033[0;38;5;"));
	/* Without colours curves have letters, and the legend says whose they are. */
	text = draw(80, 24, true, false);
	assert_non_null(strstr(text, "* curve-0"));
	assert_non_null(strstr(text, "+ curve-2"));
}

static void test_a_peak_of_one_point_is_seen(void **state)
{
	unsigned column, peak = 0;

	(void)state;
	value[0][3000] = 100;
	draw(80, 24, true, false);
	for (column = 10; column < 80; column++)
		if (highest_dots(column) == 1) /* the row below the title: 100 is the end of the axis */
			peak = column;
	/* In the middle of the field: 3000 of 6000. */
	assert_in_range(peak, 40, 46);
	assert_true(highest_dots(20) > 15);
	/* Of reduced curves the range is drawn, not the mean alone. */
	static float high[POINTS];

	value[0][3000] = 1;
	memcpy(high, value[0], sizeof(high));
	high[1500] = 50;
	curve[0].high = high;
	draw(80, 24, true, false);
	peak = 1000;
	for (column = 20; column < 28; column++) /* a quarter of the field, and what its labels take */
		peak = MIN(peak, highest_dots(column));
	assert_in_range(peak, 1, 2);
}

/* Two values, at the ends: a slope, or steps where the first holds until the second is told. */
static void test_a_value_that_is_held_has_no_slope(void **state)
{
	static const double ends[] = {0, 600};
	static const float told[] = {1, 100};

	(void)state;
	curve[0] = (struct chart_curve){
		.name = "told", .nr = 2, .time_s = ends, .mean = told, .low = told, .high = told};
	draw(80, 24, true, false);
	assert_in_range(highest_dots(42), 8, 14);
	curve[0].held = true;
	draw(80, 24, true, false);
	assert_in_range(highest_dots(42), 20, 22);
	assert_in_range(highest_dots(75), 20, 22);
	assert_int_equal(highest_dots(79), 1);
}

static void test_what_is_not_known_is_a_gap(void **state)
{
	(void)state;
	for (size_t i = 2000; i < 4000; i++)
		value[0][i] = NAN;
	draw(80, 24, true, false);
	assert_in_range(highest_dots(15), 1, 10);
	assert_int_equal(highest_dots(42), 1000);
	assert_in_range(highest_dots(70), 1, 10);
}

static void test_the_legend_names_what_there_is_room_for(void **state)
{
	const char *text;

	(void)state;
	chart.nr_curves = 2;
	text = draw(80, 24, true, true);
	assert_non_null(strstr(text, "curve-1  mean 2  max 2"));
	chart.nr_curves = CURVES;
	text = draw(60, 24, true, true);
	assert_non_null(strstr(text, "curve-0  max 1"));
	assert_null(strstr(text, "mean"));
	assert_non_null(strstr(text, "and "));
	assert_non_null(strstr(text, " more"));
	/* Alone and named in the title: no legend. */
	chart.nr_curves = 1;
	chart.title = name[0];
	chart.subtitle = "what it is";
	assert_null(strstr(strstr(draw(80, 24, true, false), "what it is"), "curve-0"));
}

static void test_areas_stand_upon_one_another(void **state)
{
	(void)state;
	chart.form = CHART_STACKED;
	chart.nr_curves = 3; /* 1, 2 and 3: 6 altogether, on an axis to 6 */
	draw(80, 24, false, false);
	/* Of the rows of the field a sixth is the first curve's, a third the second's. */
	unsigned count[128] = {0};

	for (unsigned i = 1; i < nr_lines((char *)out.data) - 3;
		i++) /* the axis has two rows, the legend one */
		count[letter(40, i) & 0x7f]++;
	assert_in_range(count['*'], 2, 4);
	assert_in_range(count['o'], 5, 7);
	assert_in_range(count['+'], 8, 10);
	assert_int_equal(letter(40, 1), '+');
	/* With colours: blocks, the one above as the paper of the cell in which two meet. */
	assert_non_null(strstr(draw(80, 24, true, true), "█"));
	assert_non_null(strstr((char *)out.data, ";48;5;"));
}

static void test_heat_has_a_row_for_each(void **state)
{
	(void)state;
	chart.form = CHART_HEAT;
	chart.nr_curves = 4;
	chart.unit = UNIT_RATIO;
	chart.y_most = 1;
	for (size_t i = 0; i < POINTS; i++) {
		value[0][i] = 0;
		value[1][i] = i < POINTS / 2 ? 0 : 1;
		value[2][i] = 1;
		value[3][i] = NAN;
	}
	draw(80, 8, false, false);
	assert_non_null(strstr(line(1), "curve-3"));
	assert_non_null(strstr(line(4), "curve-0"));
	assert_int_equal(letter(60, 1), ' ');
	assert_int_equal(letter(60, 2), '@');
	assert_int_equal(letter(20, 3), ' ');
	assert_int_equal(letter(60, 3), '@');
	/* More curves than rows: the hottest of each row is shown, none is lost. */
	chart.nr_curves = CURVES;
	for (unsigned k = 4; k < CURVES; k++)
		memcpy(value[k], value[0], sizeof(value[0]));
	draw(80, 8, false, false);
	assert_non_null(strchr((char *)out.data, '@'));
}

static void test_lives_are_bars(void **state)
{
	static const struct chart_span span[] = {
		{"first", 0, 300, 0, 0, 0}, {"second", 300, NAN, UINT32_MAX, 1, 1}};

	(void)state;
	chart.form = CHART_TIMELINE;
	chart.span = span;
	chart.nr_spans = 2;
	chart.nr_lanes = 2;
	draw(80, 24, false, false);
	assert_non_null(strstr(line(1), "first"));
	assert_int_equal(letter(20, 1), '@');
	assert_int_equal(letter(60, 1), ' ');
	assert_int_equal(letter(20, 2), ' ');
	assert_int_equal(letter(60, 2), '-'); /* thin, to the end */
}

static void test_phases_events_limits_and_notes_are_said(void **state)
{
	static const struct chart_band band[] = {
		{0, 200, "load"}, {200, 600, "solve"}, {300, 400, "inner", 1}};
	static const struct chart_mark mark[] = {{500, "stopped"}};
	static const struct chart_level level[] = {{4, "allocated: 4", true}, {400, "too far", false}};
	static const struct chart_note note[] = {{300, 2, "peak 2"}};
	const char *text;

	(void)state;
	chart.band = band;
	chart.nr_bands = 3;
	chart.nr_band_lanes = 2;
	chart.mark = mark;
	chart.nr_marks = 1;
	chart.level = level;
	chart.nr_levels = 2;
	chart.note = note;
	chart.nr_notes = 1;
	text = draw(80, 24, true, false);
	assert_non_null(strstr(line(1), "load"));
	assert_non_null(strstr(line(1), "solve"));
	assert_non_null(strstr(line(2), "inner")); /* below what it lies in */
	assert_non_null(strstr(text, "▾stopped"));
	assert_non_null(strstr(text, "allocated: 4"));
	assert_non_null(strstr(text, "╌"));
	assert_null(strstr(text, "too far"));
	assert_non_null(strstr(text, "peak 2"));
}

static void test_nothing_breaks_it(void **state)
{
	static const float odd[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 0, 1e-38f};
	static double still[POINTS];

	(void)state;
	chart.nr_curves = 0;
	assert_non_null(strstr(draw(80, 24, true, true), "nothing is known here"));
	chart.nr_curves = 2;
	for (unsigned form = CHART_LINES; form <= CHART_TIMELINE; form++) {
		for (unsigned log = 0; log < 2; log++) {
			for (size_t i = 0; i < POINTS; i++) {
				value[0][i] = odd[i % ARRAY_SIZE(odd)];
				value[1][i] = odd[i / 7 % ARRAY_SIZE(odd)];
			}
			chart.form = (enum chart_form)form;
			chart.log = log;
			draw(80, 24, true, true);
			draw(80, 24, false, false);
		}
	}
	/* All points at one time, a range of no length, one that is none. */
	curve[0].time_s = curve[1].time_s = still;
	chart.to_s = 0;
	draw(80, 24, true, true);
	chart.from_s = chart.to_s = NAN;
	draw(80, 24, true, true);
	curve[0].nr = curve[1].nr = 1;
	draw(80, 24, true, true);
	chart.title = NULL;
	curve[0].name = NULL;
	draw(0, 0, true, true);
	/* What lies outside of the range stays outside. */
	curve[0].time_s = time_s;
	curve[0].nr = POINTS;
	chart.nr_curves = 1;
	chart.from_s = -1e9;
	chart.to_s = -1e8;
	chart.form = CHART_LINES;
	draw(80, 24, true, false);
	assert_int_equal(highest_dots(79), 1000);
}

/* ---- axes ---- */

static void test_ticks_are_round(void **state)
{
	struct axis a;

	(void)state;
	value[0][7] = 3.7f;
	axis_of_values(&a, &chart, 4);
	assert_true(a.least == 0 && a.most == 4 && a.step == 1 && a.nr == 5);
	chart.unit = UNIT_BYTES;
	value[0][7] = 700 << 20;
	axis_of_values(&a, &chart, 4);
	assert_true(a.step == 256 << 20 && a.most == 768 << 20);
	value[0][7] = 1;
	value[0][8] = -5;
	chart.unit = UNIT_CELSIUS;
	axis_of_values(&a, &chart, 4);
	assert_true(a.least <= -5 && a.most >= 1);
	chart.to_s = 3600;
	axis_of_time(&a, &chart, 6);
	assert_true(a.step == 600 && a.nr == 7);
	chart.to_s = 0.9;
	axis_of_time(&a, &chart, 5);
	assert_true(a.step == 0.2);
}

static void test_a_logarithmic_axis_has_equal_steps(void **state)
{
	struct axis a;

	(void)state;
	chart.log = true;
	value[0][5] = 1000;
	value[0][6] = 0;
	axis_of_values(&a, &chart, 5);
	assert_true(a.log && a.least == 1 && a.most == 1000);
	assert_true(fabs(axis_place(&a, 10) - 1 / 3.0) < 1e-9);
	assert_true(fabs(axis_place(&a, 100) - 2 / 3.0) < 1e-9);
	assert_true(axis_place(&a, 0) == 0 && axis_place(&a, -4) == 0);
	assert_true(isnan(axis_place(&a, NAN)));
	/* Nothing above zero: an ordinary one. */
	for (size_t i = 0; i < POINTS; i++)
		value[0][i] = 0;
	axis_of_values(&a, &chart, 5);
	assert_false(a.log);
}

static void test_numbers_have_their_units(void **state)
{
	char text[UNITS_SIZE];

	(void)state;
	assert_string_equal(format_value(text, 1.5 * (1 << 30), UNIT_BYTES, true), "1.5 GiB/s");
	assert_string_equal(format_value(text, 0.72, UNIT_RATIO, false), "72 %");
	assert_string_equal(format_value(text, 3.2e-7, UNIT_RATIO, false), "<0.001 %");
	assert_string_equal(format_value(text, 3.2e-5, UNIT_RATIO, false), "0.0032 %");
	assert_string_equal(format_value(text, 3.2e9, UNIT_HERTZ, false), "3.2 GHz");
	assert_string_equal(format_value(text, 41, UNIT_CELSIUS, false), "41 °C");
	assert_string_equal(format_value(text, 2.5, UNIT_COUNT, false), "2.5");
	assert_string_equal(format_value(text, 23934, UNIT_CODE, false), "23934");
	assert_string_equal(format_value(text, 0.0042, UNIT_COUNT, false), "0.0042");
	assert_string_equal(format_value(text, 90, UNIT_SECONDS, false), "1m30s");
	assert_string_equal(format_value(text, NAN, UNIT_BYTES, true), "?");
	assert_string_equal(format_tick_time(text, 5400, 1800), "1h30m");
	assert_string_equal(format_tick_time(text, 45, 15), "45s");
	assert_string_equal(format_tick_time(text, 0.5, 0.1), "0.5s");
	assert_string_equal(format_tick_time(text, 172800, 86400), "2d");
	assert_string_equal(format_tick_time(text, 0, 1), "0");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_it_fits_whatever_the_size),
		TEST(test_letters_and_colours_only_where_they_may_be),
		TEST(test_a_peak_of_one_point_is_seen),
		TEST(test_a_value_that_is_held_has_no_slope),
		TEST(test_what_is_not_known_is_a_gap),
		TEST(test_the_legend_names_what_there_is_room_for),
		TEST(test_areas_stand_upon_one_another),
		TEST(test_heat_has_a_row_for_each),
		TEST(test_lives_are_bars),
		TEST(test_phases_events_limits_and_notes_are_said),
		TEST(test_nothing_breaks_it),
		TEST(test_ticks_are_round),
		TEST(test_a_logarithmic_axis_has_equal_steps),
		TEST(test_numbers_have_their_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
