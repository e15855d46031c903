/* text/phases: the table by phase, and where it stands in the summary. */
#include "query_maker.h"

#include "text/phases.h"
#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "phases_lab.h"

/* Too many for the table: those that took longest, in their order. */
static void test_the_longest_are_in_the_table(void **state)
{
	struct text_table t;
	struct summary *s;
	struct maker m;
	char name[8];

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	for (int64_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%c", 'a' + (int)i);
		begin(&m, i * 1000, name);
		end(&m, i * 1000 + (i % 3 ? 100 + i : 900), name);
		tick(&m, (i + 1) * 1000);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_true(phases_table(s->phases, 8, true, "", &t) >= 0);
	assert_int_equal(t.nr_rows, 8);
	assert_string_equal(t.cell[0], "a");
	assert_string_equal(t.cell[t.nr_columns], "d");
	assert_string_equal(t.cell[6 * t.nr_columns], "s");
	assert_string_equal(t.cell[7 * t.nr_columns], "t"); /* 119 ms; seven others took 900 ms */
	assert_string_equal(t.note, "~ interpolated between samples; 12 more phases took less time");
	phases_table_free(&t);
	summary_free(s);
}

/* A job of nine seconds: a phase of seven, and one that begins between two ticks and ends then; 0: it does
 * not. */
static struct summary *long_and(const char *name, int64_t end_ms)
{
	struct maker m;

	open_job(&m, file);
	for (int64_t i = 0; i <= 9; i++) {
		if (i == 1)
			begin(&m, 1000, "long");
		tick(&m, i * 1000);
		if (i != 8)
			continue;
		end(&m, 8000, "long");
		begin(&m, 8200, name);
		if (end_ms)
			end(&m, end_ms, name);
	}
	maker_finish(&m, NULL);
	return summary_of(file);
}

/* What is interpolated is marked, and how long a phase took is never that. */
static void test_a_guess_has_a_tilde(void **state)
{
	struct text_table t;
	struct summary *s;

	(void)state;
	s = long_and("brief", 8400);
	assert_true(phases_table(s->phases, 8, true, "", &t) >= 0);
	assert_string_equal(t.column[1].title, "wall");
	assert_string_equal(t.column[5].title, "read");
	assert_string_equal(t.cell[1], "7.00s");
	assert_string_equal(t.cell[2], "3.50s");
	assert_string_equal(t.cell[4], "1.17 MiB");
	assert_string_equal(t.cell[t.nr_columns + 1], "200ms");
	assert_string_equal(t.cell[t.nr_columns + 2], "~100ms");
	assert_string_equal(t.cell[t.nr_columns + 3], "~0.50");
	assert_string_equal(t.cell[t.nr_columns + 4], "~1.17 MiB");
	assert_string_equal(t.cell[t.nr_columns + 5], "~195 KiB");
	assert_string_equal(t.note, "~ interpolated between samples");
	phases_table_free(&t);
	summary_free(s);
}

static void make_repetitions(bool gpu)
{
	struct maker m;
	char name[16];

	open_job(&m, file);
	if (gpu) {
		maker_instance(&m, MAKER_GPU, 0, 0, "nvidia-0", "vendor", "nvidia", "index", "0", "job",
			"yes", NULL);
		maker_set(&m, 0, "gpu.util", 50);
		maker_set(&m, 0, "gpu.memory.used", INT64_C(1) << 30);
		maker_instance(&m, MAKER_ENERGY, 0, 0, "package-0", NULL);
		maker_set(&m, 0, "energy.used", 0);
	}
	maker_set(&m, 0, "proc.io.write_chars", 0);
	tick(&m, 0);
	begin(&m, 0, "train");
	for (int64_t i = 1, now = 0; i <= 3; i++) {
		snprintf(name, sizeof(name), "epoch %d", (int)i);
		begin(&m, now, name);
		for (int64_t to = now + (i == 3 ? 6000 : 3000); now < to;) {
			now += 1000;
			maker_set(&m, 0, "proc.io.write_chars", now * 1000);
			if (gpu)
				maker_set(&m, 0, "energy.used", now * 1000);
			tick(&m, now);
		}
		end(&m, now, name);
	}
	end(&m, 12000, "train");
	tick(&m, 13000);
	maker_finish(&m, NULL);
}

/* The lines from "by phase" on, so many. */
static const char *table_in(const char *text, unsigned lines)
{
	static char part[2000];
	const char *from = strstr(text, "  by phase"), *to = from;

	assert_non_null(from);
	while (lines-- && strchr(to, '\n'))
		to = strchr(to, '\n') + 1;
	snprintf(part, sizeof(part), "%.*s", (int)(to - from), from);
	return part;
}

/* Behind the numbers, or else below them. */
static void test_remarks_stand_where_there_is_room(void **state)
{
	struct summary *s;
	struct buf text;

	(void)state;
	make_repetitions(false);
	s = summary_of(file);
	buf_init(&text, 100000);
	assert_string_equal(table_in(words_of(s, 132, true, &text), 3),
		"  by phase     wall    cpu  cores  peak mem      read     wrote\n"
		"  train       12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB\n"
		"    epoch ×3  12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB  "
		"(each 4.00s ± 1.73s; the 3rd 100 % slower: it used more CPU time)\n");
	buf_reset(&text);
	assert_string_equal(table_in(words_of(s, 80, true, &text), 4),
		"  by phase     wall    cpu  cores  peak mem      read     wrote\n"
		"  train       12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB\n"
		"    epoch ×3  12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB\n"
		"        (each 4.00s ± 1.73s; the 3rd 100 % slower: it used more CPU time)\n");
	buf_reset(&text);
	assert_string_equal(table_in(words_of(s, 66, true, &text), 5),
		"  by phase     wall    cpu  cores  peak mem      read     wrote\n"
		"  train       12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB\n"
		"    epoch ×3  12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB\n"
		"        (each 4.00s ± 1.73s; the 3rd 100 % slower: it used more\n"
		"        CPU time)\n");
	buf_release(&text);
	summary_free(s);
}

/* No line is longer than the terminal is wide: columns that have no room are named below. */
static void test_columns_without_room(void **state)
{
	struct summary *s;
	struct buf text;

	(void)state;
	make_repetitions(true);
	s = summary_of(file);
	buf_init(&text, 100000);
	assert_string_equal(table_in(words_of(s, 92, true, &text), 1),
		"  by phase     wall    cpu  cores  peak mem      read     wrote   GPU  GPU mem  energy\n");
	buf_reset(&text);
	assert_string_equal(table_in(words_of(s, 80, true, &text), 5),
		"  by phase     wall    cpu  cores  peak mem      read     wrote   GPU  energy\n"
		"  train       12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB  50 %    12 J\n"
		"    epoch ×3  12.0s  6.00s   0.50  1.17 MiB  11.4 MiB  11.4 MiB  50 %    12 J\n"
		"        (each 4.00s ± 1.73s; the 3rd 100 % slower: it used more CPU time)\n"
		"  (no room for: GPU mem)\n");
	buf_release(&text);
	summary_free(s);
}

/* Where nothing is to be said of a phase, nothing stands there, and no dash. */
static void test_no_remark_is_nothing(void **state)
{
	struct text_table t;
	struct summary *s;
	struct buf text;

	(void)state;
	s = long_and("open", 0);
	assert_true(phases_table(s->phases, 8, true, "", &t) >= 0);
	buf_init(&text, 10000);
	table_write(&t, &(struct text_style){.utf8 = true}, &text);
	table_write(&t, &(struct text_style){.form = FORM_HTML}, &text);
	assert_non_null(strstr((char *)text.data, "open at the end"));
	assert_null(strstr((char *)text.data, " -\n"));
	assert_null(strstr((char *)text.data, "–"));
	buf_release(&text);
	phases_table_free(&t);
	summary_free(s);
}

/* Two that overlap under one name are not one in the other. */
static void test_the_phase_of_a_moment(void **state)
{
	struct phase fold[] = {{.name = (char *)"step", .count = 3}, {.name = (char *)"inner", .count = 1}};
	struct phase rep[] = {
		{.name = (char *)"step 1", .number = 1, .begin_s = 0, .end_s = 10},
		{.name = (char *)"step 1", .number = 2, .begin_s = 1, .end_s = 9},
		{.name = (char *)"step 2", .number = 3, .begin_s = 10, .end_s = 20},
		{.name = (char *)"inner", .fold = 1, .number = 1, .begin_s = 12, .end_s = 14},
	};
	const struct phases p = {.phase = fold, .nr = 2, .repetition = rep, .nr_repetitions = 4};
	static const struct {
		double at_s;
		const char *name;
	} row[] = {{5, "step 1"}, {13, "inner of step 2"}, {15, "step 2"}};

	(void)state;
	/* Since the beginning of the repetition that is on; of the overlapping ones, the younger. */
	assert_near(phases_since(&p, &fold[0], 0.5), 0.5);
	assert_near(phases_since(&p, &fold[0], 3), 2);
	assert_near(phases_since(&p, &rep[0], 3), 3);
	assert_near(phases_since(&p, &fold[1], 13.5), 1.5);
	assert_true(isnan(phases_since(&p, &fold[1], 15)));
	assert_true(isnan(phases_since(&p, &rep[2], 3)));
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct buf text;

		buf_init(&text, 100);
		assert_true(add_phase_at(&p, row[i].at_s, row[i].at_s, &text));
		assert_string_equal((char *)text.data, row[i].name);
		buf_release(&text);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_longest_are_in_the_table),
		T(test_a_guess_has_a_tilde),
		T(test_remarks_stand_where_there_is_room),
		T(test_columns_without_room),
		T(test_no_remark_is_nothing),
		T(test_the_phase_of_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
