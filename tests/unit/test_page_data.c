/* document/page_data: the curves come back from their packed form as they were, names cannot leave the script
 * element, and the size stays within what a page can load. That it is JSON is checked by a reader of our own,
 * which also finds things in it. */
#include "job_maker.h"

#include "document/document.h"
#include "analysis/palette.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const one[] = {file};

/* ---- a reader of JSON ----
 * It asks the C library for nothing that takes a whole text: AddressSanitizer's strict checks measure a
 * megabyte of page at each such call. */

static const char *skip_value(const char *p);

static const char *space(const char *p)
{
	while (*p == ' ' || *p == '\n')
		p++;
	return p;
}

static const char *skip_text(const char *p)
{
	assert_int_equal(*p, '"');
	for (p++; *p != '"'; p++) {
		assert_true((unsigned char)*p >= 0x20);
		p += *p == '\\';
		assert_true(*p);
	}
	return p + 1;
}

/* The value of a key, or of the so many-th in a list; neither: what follows all of it. */
static const char *walk(const char *p, const char *want, size_t at)
{
	bool keys = *p == '{';
	char end = keys ? '}' : ']';

	p = space(p + 1);
	for (size_t i = 0; *p != end; i++) {
		const char *key = p;

		if (keys) {
			p = space(skip_text(p));
			assert_int_equal(*p, ':');
			p = space(p + 1);
		}
		if ((want && !strncmp(key + 1, want, strlen(want)) && key[1 + strlen(want)] == '"') ||
			(!want && i == at))
			return p;
		p = space(skip_value(p));
		if (*p == end)
			break;
		assert_int_equal(*p, ',');
		p = space(p + 1);
		assert_int_not_equal(*p, end);
	}
	return want || at != SIZE_MAX ? NULL : p + 1;
}

/* A number that stands at the front of a long text, and how long it is. */
static double number_at(const char *p, size_t *ret_len)
{
	char digits[48] = "", *end;
	double value;

	for (size_t i = 0; i + 1 < sizeof(digits) && p[i] && memchr("+-.0123456789eE", p[i], 15); i++)
		digits[i] = p[i];
	value = strtod(digits, &end);
	assert_true(end > digits);
	if (ret_len)
		*ret_len = (size_t)(end - digits);
	return value;
}

static const char *skip_value(const char *p)
{
	size_t len;

	if (*p == '"')
		return skip_text(p);
	if (*p == '{' || *p == '[')
		return walk(p, NULL, SIZE_MAX);
	if (!strncmp(p, "null", 4) || !strncmp(p, "true", 4))
		return p + 4;
	if (!strncmp(p, "false", 5))
		return p + 5;
	number_at(p, &len);
	return p + len;
}

static const char *get(const char *object, const char *key)
{
	assert_non_null(object);
	assert_int_equal(*object, '{');
	return walk(object, key, 0);
}

static const char *item(const char *list, size_t i)
{
	assert_non_null(list);
	assert_int_equal(*list, '[');
	return walk(list, NULL, i);
}

/* What stands behind this one in its list; NULL: nothing. */
static const char *next_item(const char *value)
{
	const char *p = space(skip_value(value));

	return *p == ',' ? space(p + 1) : NULL;
}

static size_t length(const char *list)
{
	size_t n = 0;

	for (const char *at = item(list, 0); at; at = next_item(at))
		n++;
	return n;
}

static double number(const char *object, const char *key)
{
	const char *p = get(object, key);

	assert_non_null(p);
	return strncmp(p, "null", 4) ? number_at(p, NULL) : NAN;
}

static bool is_text(const char *p, const char *text)
{
	return p && *p == '"' && !strncmp(p + 1, text, strlen(text)) && p[1 + strlen(text)] == '"';
}

/* The one of a list whose key has this text; NULL: there is none. */
static const char *with(const char *list, const char *key, const char *text)
{
	for (const char *at = item(list, 0); at; at = next_item(at))
		if (is_text(get(at, key), text))
			return at;
	return NULL;
}

static const char *panel_of(const char *data, const char *id)
{
	const char *p = with(get(data, "panels"), "id", id);

	if (!p)
		fail_msg("there is no panel %s", id);
	return p;
}

/* ---- packed numbers ---- */

static unsigned digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(digits, c);

	assert_true(c && at);
	return (unsigned)(at - digits);
}

/* As docs/page-data.md says. */
static void unpack(const char *packed, double *value, size_t nr)
{
	size_t at = (size_t)number(packed, "at"), n = (size_t)number(packed, "n");
	size_t every = get(packed, "every") ? (size_t)number(packed, "every") : 1, len = 0;
	double lo = number(packed, "lo"), hi = number(packed, "hi");
	const char *q = get(packed, "q") + 1;
	uint8_t *byte = calloc(n * 2 + 3, 1);

	for (size_t i = 0; i < nr; i++)
		value[i] = NAN;
	for (; *q != '"' && len < n * 2; q += 4) {
		unsigned v = digit(q[0]) << 18 | digit(q[1]) << 12 | (q[2] == '=' ? 0 : digit(q[2])) << 6 |
			(q[3] == '=' ? 0 : digit(q[3]));

		byte[len++] = v >> 16 & 0xff;
		byte[len++] = v >> 8 & 0xff;
		byte[len++] = v & 0xff;
	}
	assert_int_equal(*q, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned v = byte[2 * i] | (unsigned)byte[2 * i + 1] << 8;

		for (size_t k = 0; v != 65535 && k < every && at + i * every + k < nr; k++)
			value[at + i * every + k] = lo + v * (hi - lo) / 65534;
	}
	free(byte);
}

/* ---- what the tests read ---- */

static struct analysis *analysis;
static struct charts *charts;
static struct buf out;

static const char *data_of(const char *const *path, size_t nr, const struct analysis_options *options)
{
	const char *data;

	analysis = analysis_of(path, nr, options);
	assert_int_equal(charts_make(analysis, &charts), 0);
	buf_init(&out, 256 << 20);
	assert_int_equal(page_data(analysis, charts, &out), 0);
	data = (const char *)out.data;
	assert_int_equal(*skip_value(data), 0);
	assert_null(memchr(data, '<', out.len));
	return data;
}

static void data_end(void)
{
	charts = charts_free(charts);
	analysis_end(analysis);
	buf_release(&out);
}

/* ---- tests ---- */

static void test_all_fields_are_there(void **state)
{
	static const char *const field[] = {"title", "summary", "findings", "advice", "unmeasured", "nodes",
		"phases", "events", "panels", "stats", "processes", "note"};
	const char *data;

	(void)state;
	make_job(file, &(struct job){.ticks = 20, .workers = 3, .events = 2});
	data = data_of(one, 1, NULL);
	assert_near(number(data, "format"), 1);
	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		if (!get(data, field[i]))
			fail_msg("there is no '%s'", field[i]);
	assert_true(is_text(get(data, "title"), "job -x"));
	assert_non_null(get(get(data, "summary"), "cpu"));
	assert_int_equal(length(get(data, "nodes")), 1);
	assert_int_equal(length(get(data, "events")), 2);
	assert_near(number(item(get(data, "events"), 0), "time_s"), 0.25);
	assert_int_equal(length(get(data, "panels")), charts->nr);
	assert_int_equal(length(get(get(data, "stats"), "columns")), NR_STATS);
	assert_int_equal(length(get(item(get(get(data, "stats"), "run"), 0), "values")), NR_STATS);
	data_end();
}

static void test_curves_come_back(void **state)
{
	const char *data, *line;
	double value[60], times;

	(void)state;
	make_job(file, &(struct job){.ticks = 60, .workers = 3});
	data = data_of(one, 1, NULL);
	times = number(get(item(get(data, "nodes"), 0), "times"), "n");
	assert_near(times, 60);
	line = item(get(panel_of(data, "tool-cpu-time"), "lines"), 0);
	unpack(get(line, "mean"), value, 60);
	for (size_t i = 0; i < 60; i++)
		assert_true(fabs(value[i] - 0.6 * (double)i) < 35.4 / 65534);
	/* A rate has no first value. */
	line = item(get(panel_of(data, "cpu"), "lines"), 0);
	assert_near(number(get(line, "mean"), "at"), 1);
	assert_near(number(get(line, "mean"), "n"), 59);
	unpack(get(line, "mean"), value, 60);
	assert_true(isnan(value[0]));
	assert_true(fabs(value[1] - 0.6) < 1e-6);
	assert_null(get(line, "low"));
	data_end();
}

static void test_reduced_curves_have_their_range(void **state)
{
	const char *data, *line;
	double low[200], mean[200], high[200];
	size_t n;

	(void)state;
	make_job(file, &(struct job){.ticks = 1000, .workers = 1});
	data = data_of(one, 1, &(struct analysis_options){.from_s = NAN, .to_s = NAN, .points = 100});
	n = (size_t)number(get(item(get(data, "nodes"), 0), "times"), "n");
	assert_in_range(n, 50, 200);
	line = item(get(panel_of(data, "tool-cpu-time"), "lines"), 0);
	unpack(get(line, "low"), low, n);
	unpack(get(line, "mean"), mean, n);
	unpack(get(line, "high"), high, n);
	for (size_t i = 1; i + 1 < n; i++)
		assert_true(low[i] < mean[i] && mean[i] < high[i]);
	/* Nothing of the end is lost. */
	assert_true(fabs(high[n - 1] - 99.9) < 0.01);
	/* Nor of the sum of areas, whose lines are means alone. */
	unpack(get(panel_of(data, "processes-cpu"), "total_high"), high, n);
	assert_true(high[n / 2] > 0);
	assert_int_equal(*get(data, "note"), '"');
	data_end();
}

static void test_every_process_kept_has_a_line_with_fewer_numbers(void **state)
{
	const char *data, *lines, *line;
	double value[4000];
	size_t own = 0, fewer = 0, n;

	(void)state;
	make_job(file, &(struct job){.ticks = 4000, .workers = 120});
	data = data_of(one, 1,
		&(struct analysis_options){.from_s = NAN, .to_s = NAN, .points = 4000, .processes = 110});
	lines = get(panel_of(data, "processes-cpu"), "lines");
	assert_int_equal(length(lines), 111);
	assert_int_equal(*get(item(lines, 110), "process"), 'n');
	for (line = item(lines, 0); line; line = next_item(line)) {
		own += number(line, "color") >= 0;
		fewer += get(get(line, "mean"), "every") != NULL;
		n = (size_t)number(get(line, "mean"), "n");
		assert_in_range(n, 1000, 4000);
		assert_null(get(line, "low"));
	}
	assert_int_equal(own, PALETTE_SIZE);
	assert_int_equal(fewer, 110 - PALETTE_SIZE);
	line = item(lines, 60);
	unpack(get(line, "mean"), value, 4000);
	/* It uses more CPUs than there are: at first some of it may be a matter of the kernel's clock. */
	for (size_t i = 8; i < 4000; i++)
		assert_true(fabs(value[i] - number(line, "average")) < 1e-4);
	data_end();
}

static void test_lines_name_rows_of_the_table(void **state)
{
	const char *data, *line, *rows;
	size_t checked = 0;

	(void)state;
	make_job(file, &(struct job){.ticks = 20, .workers = 7});
	data = data_of(one, 1, NULL);
	rows = get(get(data, "processes"), "rows");
	for (line = item(get(panel_of(data, "processes-cpu"), "lines"), 0); line; line = next_item(line)) {
		char name[64];
		const char *row;

		if (*get(line, "process") == 'n')
			continue;
		row = item(rows, (size_t)number(line, "process"));
		snprintf(name, sizeof(name), "worker (%.0f)", number_at(item(row, 0), NULL));
		assert_true(is_text(get(line, "name"), name));
		assert_near(number_at(item(row, 10), NULL), number(line, "process"));
		checked++;
	}
	assert_int_equal(checked, 7);
	data_end();
}

static void test_rows_have_as_many_cells_as_there_are_columns(void **state)
{
	const char *data, *table, *row;
	size_t columns;

	(void)state;
	make_job(file, &(struct job){.ticks = 20, .workers = 3, .brief = 50, .groups = true});
	data = data_of(one, 1, NULL);
	table = get(data, "processes");
	columns = length(get(table, "columns"));
	assert_true(columns > 15);
	assert_near(number(table, "total"), 53);
	assert_near(number(table, "shown"), 53);
	for (row = item(get(table, "rows"), 0); row; row = next_item(row))
		assert_int_equal(length(row), columns);
	/* The busiest is first, and in its group. */
	row = item(get(table, "rows"), 0);
	assert_near(number_at(item(row, 0), NULL), 1002);
	assert_true(is_text(item(item(row, 5), 0), "even"));
	assert_true(is_text(item(row, 9), "running"));
	data_end();
}

static void test_a_table_of_too_many_processes_says_so(void **state)
{
	const char *data, *table;

	(void)state;
	make_job(file, &(struct job){.ticks = 100, .workers = 3, .brief = 6000});
	data = data_of(one, 1, NULL);
	table = get(data, "processes");
	assert_near(number(table, "total"), 6003);
	assert_near(number(table, "shown"), 5000);
	assert_int_equal(length(get(table, "rows")), 5000);
	assert_in_range(out.len, 100000, 4000000);
	data_end();
}

static void test_names_cannot_leave_the_script(void **state)
{
	const char *data;

	(void)state;
	make_job(file,
		&(struct job){.ticks = 5,
			.workers = 1,
			.events = 1,
			.name = "</script>\"\\\n\x7f\xfe",
			.host = "<!--<script>"});
	/* No `<` at all: checked where the data are made. */
	data = data_of(one, 1, NULL);
	assert_true(is_text(get(item(get(panel_of(data, "processes-cpu"), "lines"), 0), "name"),
		"\\u003c/script>\\\"\\\\\\\\\\\\n\\\\x7f\\\\xfe (1000)"));
	assert_true(is_text(get(item(get(data, "nodes"), 0), "host"), "\\u003c!--\\u003cscript>"));
	data_end();
}

static void test_without_a_tick_there_are_no_panels(void **state)
{
	(void)state;
	for (int64_t ticks = 0; ticks < 2; ticks++) {
		const char *data;

		make_job(file, &(struct job){.ticks = ticks, .workers = 1});
		data = data_of(one, 1, NULL);
		assert_int_equal(length(get(data, "panels")), 0);
		assert_int_equal(length(get(data, "nodes")), 1);
		data_end();
	}
}

static void test_several_nodes_have_one_more_behind_them(void **state)
{
	char path[2][128];
	const char *list[2], *data, *panel, *line;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s", file_in(i ? "b" : "a"));
		list[i] = path[i];
		make_job(path[i], &(struct job){.ticks = 10, .workers = 2, .host = i ? "b" : "a"});
	}
	data = data_of(list, 2, NULL);
	assert_int_equal(length(get(data, "nodes")), 3);
	assert_true(is_text(get(item(get(data, "nodes"), 2), "host"), "all nodes"));
	panel = panel_of(data, "cpu");
	line = item(get(panel, "lines"), 0);
	assert_near(number(panel, "node"), -1);
	assert_near(number(line, "node"), 2);
	panel = panel_of(data, "cpu-b");
	assert_near(number(panel, "node"), 1);
	assert_near(number(item(get(panel, "lines"), 0), "node"), 1);
	data_end();
}

static void test_spans_of_the_timeline(void **state)
{
	const char *data, *panel, *span;

	(void)state;
	make_job(file, &(struct job){.ticks = 30, .workers = 2});
	data = data_of(one, 1, NULL);
	panel = panel_of(data, "timeline");
	assert_int_equal(length(get(panel, "spans")), 2);
	span = with(get(panel, "spans"), "name", "worker (1001)");
	assert_non_null(span);
	assert_near(number(span, "from_s"), 0);
	assert_true(isnan(number(span, "to_s")));
	assert_true(is_text(
		get(item(get(panel, "lines"), (size_t)number(span, "line")), "name"), "worker (1001)"));
	data_end();
}

int main(void)
{
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		WITH_FILES(test_all_fields_are_there),
		WITH_FILES(test_curves_come_back),
		WITH_FILES(test_reduced_curves_have_their_range),
		WITH_FILES(test_every_process_kept_has_a_line_with_fewer_numbers),
		WITH_FILES(test_lines_name_rows_of_the_table),
		WITH_FILES(test_rows_have_as_many_cells_as_there_are_columns),
		WITH_FILES(test_a_table_of_too_many_processes_says_so),
		WITH_FILES(test_names_cannot_leave_the_script),
		WITH_FILES(test_without_a_tick_there_are_no_panels),
		WITH_FILES(test_several_nodes_have_one_more_behind_them),
		WITH_FILES(test_spans_of_the_timeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
