/* Entries of the run log, told as the recorder tells them: counters that rise, phases, the end. */
#include "text/runlog.h"
#include "query/speaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct table tables[3];
static struct schema *schema;
static struct runlog *runlog;
static struct buf lines, last;

static struct table *table_of(const void *arg, uint32_t set)
{
	(void)arg;
	return &tables[set];
}

static int take(void *arg, const struct runlog *l, const struct runlog_entry *e)
{
	(void)arg;
	buf_addf(&lines, "%lld ", (long long)(e->time_ns / NSEC_PER_SEC));
	buf_reset(&last);
	runlog_json(l, e, NULL, &last);
	buf_adds(&lines, strstr((char *)last.data, "\"type\":") + strlen("\"type\":"));
	return 0;
}

static void add_set(const char *name, const char *domain, const char *metric)
{
	schema_add_metric(schema_add_set(schema, name, "", domain), metric, "", NULL)->scale = 1;
}

static int setup(void **state)
{
	(void)state;
	schema = schema_new();
	add_set("cgroup", "cgroup", "cgroup.memory.oom_kill");
	schema_add_metric(&schema->set[0], "cgroup.cpu.throttled", "", NULL)->scale = 1e-9;
	add_set("paging", "node", "paging.oom_kills");
	add_set("self", "collector", "self.ticks.missed");
	for (unsigned i = 0; i < ARRAY_SIZE(tables); i++) {
		assert_int_equal(table_init(&tables[i], i ? 1 : 2, 8), 0);
		table_bind(&tables[i], 0, 1);
		tables[i].nr_rows = 1;
	}
	table_bind(&tables[0], 1, 2);
	tables[0].nr_rows = 2;
	buf_init(&lines, 1 << 20);
	buf_init(&last, 1 << 20);
	assert_int_equal(runlog_new(take, NULL, &runlog), 0);
	assert_int_equal(runlog_bind(runlog, schema), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	runlog = runlog_free(runlog);
	for (unsigned i = 0; i < ARRAY_SIZE(tables); i++)
		table_release(&tables[i]);
	schema = schema_free(schema);
	buf_release(&lines);
	buf_release(&last);
	return 0;
}

static void name_row(uint32_t set, uint32_t row, const char *name)
{
	struct pair memory[1];
	char text[8];
	struct pairs p;

	pairs_init(&p, memory, 1, text, sizeof(text));
	pairs_str(&p, "name", name);
	runlog_instance(runlog, set, row, &p);
}

static void put(uint32_t set, uint32_t row, uint32_t col, int64_t value)
{
	table_touch(&tables[set], row);
	table_set(&tables[set], row, col, value);
}

static void tick(int64_t second)
{
	assert_int_equal(runlog_tick(runlog, second * NSEC_PER_SEC, table_of, NULL), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(tables); i++)
		table_settle(&tables[i]);
}

static void tell_as(int64_t second, const char *kind, const char *name, const struct speaker *s)
{
	struct pair memory[4];
	char text[96];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
	if (s->pid)
		pairs_num(&p, "pid", s->pid);
	if (s->thread)
		pairs_num(&p, "thread", s->thread);
	if (s->parent)
		pairs_num(&p, "parent", s->parent);
	if (name)
		pairs_str(&p, "name", name);
	assert_int_equal(runlog_event(runlog, second * NSEC_PER_SEC, kind, &p), 0);
}

static int64_t teller; /* the process; 0: not said */

static void tell(int64_t second, const char *kind, const char *name)
{
	tell_as(second, kind, name, &(struct speaker){.pid = teller});
}

/* What was told since the last call. */
static const char *told(void)
{
	static char text[65536];

	snprintf(text, sizeof(text), "%s", (char *)lines.data);
	buf_reset(&lines);
	return text;
}

static void test_the_deepest_group_tells_of_kills_once(void **state)
{
	(void)state;
	name_row(0, 0, "/job");
	name_row(0, 1, "/job/step");
	put(0, 0, 0, 5); /* from before: nothing is known of it */
	put(0, 1, 0, 5);
	put(1, 0, 0, 40);
	tick(1);
	assert_string_equal(told(), "");
	put(0, 0, 0, 7);
	put(0, 1, 0, 7);
	tick(2);
	assert_string_equal(
		told(), "2 \"event\",\"event\":\"oom\",\"data\":{\"kills\":2,\"where\":\"/job/step\"}}\n");
	put(1, 0, 0, 42); /* the node's counter has the same two */
	tick(3);
	assert_string_equal(told(), "");
	put(1, 0, 0, 43);
	tick(4);
	assert_string_equal(told(),
		"4 \"event\",\"event\":\"oom\",\"data\":{\"kills\":1,\"where\":\"this node, outside the "
		"groups that are "
		"watched\"}}\n");
}

static void test_throttling_is_told_when_it_begins_and_then_seldom(void **state)
{
	(void)state;
	name_row(0, 0, "7");
	put(0, 0, 1, 0);
	tick(1);
	for (int64_t s = 2; s <= 15; s++) {
		put(0, 0, 1, (s - 1) * NSEC_PER_SEC / 4);
		tick(s);
	}
	assert_string_equal(told(),
		"2 \"event\",\"event\":\"throttled\",\"data\":{\"what\":\"CPU "
		"quota\",\"where\":\"7\",\"seconds\":0.250}}\n"
		"12 \"event\",\"event\":\"throttled\",\"data\":{\"what\":\"CPU "
		"quota\",\"where\":\"7\",\"seconds\":2.500}}\n");
	assert_int_equal(runlog_end(runlog, NULL, NULL), 0); /* the rest */
	assert_non_null(strstr(told(), "\"where\":\"7\",\"seconds\":0.750}}\n"));
}

static void test_missed_ticks(void **state)
{
	(void)state;
	put(2, 0, 0, 0);
	tick(1);
	put(2, 0, 0, 3);
	tick(5);
	assert_string_equal(told(), "5 \"event\",\"event\":\"missed\",\"data\":{\"ticks\":3}}\n");
}

/* The last ticks may be missed after the counter was read for the last time: the end mark says how many. */
static void test_ticks_that_are_missed_at_the_end(void **state)
{
	struct pair memory[1];
	char text[8];
	struct pairs p;

	(void)state;
	put(2, 0, 0, 0);
	tick(1);
	put(2, 0, 0, 3);
	tick(5);
	told();
	pairs_init(&p, memory, 1, text, sizeof(text));
	pairs_num(&p, "missed", 70);
	assert_int_equal(runlog_end(runlog, &p, NULL), 0);
	assert_non_null(strstr(told(), "5 \"event\",\"event\":\"missed\",\"data\":{\"ticks\":67}}\n"));
}

static void test_an_end_closes_the_youngest_of_its_name(void **state)
{
	(void)state;
	tell(1, "phase.begin", "a");
	tell(2, "phase.begin", "b");
	tell(3, "phase.begin", "a");
	tell(4, "phase.end", "a");
	tell(5, "phase.end", "none");
	tell(9, "phase.end", "a");
	assert_string_equal(told(),
		"4 \"phase\",\"name\":\"a\",\"seconds\":1}\n9 \"phase\",\"name\":\"a\",\"seconds\":8}\n");
	assert_int_equal(runlog_end(runlog, NULL, NULL), 0);
	assert_non_null(strstr(told(), "9 \"phase\",\"name\":\"b\",\"seconds\":7,\"unfinished\":true}\n"));
}

static void test_a_process_ends_its_own_phase(void **state)
{
	(void)state;
	teller = 11;
	tell(1, "phase.begin", "a");
	teller = 12;
	tell(2, "phase.begin", "a");
	teller = 11;
	tell(4, "phase.end", "a");
	teller = 13; /* none of its own: the youngest */
	tell(9, "phase.end", "a");
	teller = 0;
	assert_string_equal(told(),
		"4 \"phase\",\"name\":\"a\",\"seconds\":3}\n9 \"phase\",\"name\":\"a\",\"seconds\":7}\n");
}

/* Threads of one process, and subshells that call tacho phase: the last command of a subshell may be the
 * subshell itself. */
static void test_a_thread_ends_its_own_phase(void **state)
{
	static const struct speaker thread[] = {{11, 21, 0}, {11, 22, 0}, {11, 23, 0}},
				    shell[] = {{31, 31, 41}, {32, 32, 42}, {33, 33, 43}},
				    shell_end[] = {{34, 34, 41}, {42, 42, 40}, {35, 35, 43}};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		tell_as(1 + i, "phase.begin", "a", &thread[i]);
	for (unsigned i = 0; i < 3; i++)
		tell_as(11 + i, "phase.end", "a", &thread[i]);
	for (unsigned i = 0; i < 3; i++)
		tell_as(21 + i, "phase.begin", "b", &shell[i]);
	for (unsigned i = 0; i < 3; i++)
		tell_as(31 + i, "phase.end", "b", &shell_end[i]);
	assert_string_equal(told(),
		"11 \"phase\",\"name\":\"a\",\"seconds\":10}\n12 \"phase\",\"name\":\"a\",\"seconds\":10}\n"
		"13 \"phase\",\"name\":\"a\",\"seconds\":10}\n31 \"phase\",\"name\":\"b\",\"seconds\":10}\n"
		"32 \"phase\",\"name\":\"b\",\"seconds\":10}\n33 \"phase\",\"name\":\"b\",\"seconds\":10}\n");
}

/* Times of a recording that was made to harm. */
static void test_all_of_time_fits(void **state)
{
	struct pairs none;
	struct pair memory[1];
	char text[8];

	(void)state;
	pairs_init(&none, memory, 1, text, sizeof(text));
	assert_int_equal(runlog_event(runlog, 0, "phase.begin", &none), 0);
	assert_int_equal(runlog_event(runlog, INT64_MAX, "phase.end", &none), 0);
	assert_string_equal(told(), "9223372036 \"phase\",\"name\":\"\",\"seconds\":9223372036.855}\n");
}

/* As many as there is room for; the oldest is given up first. */
static void test_too_many_phases_at_once(void **state)
{
	char name[16];

	(void)state;
	for (int i = 0; i < 257; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		tell(i, "phase.begin", name);
	}
	assert_string_equal(told(), "256 \"phase\",\"name\":\"p0\",\"seconds\":256,\"unfinished\":true}\n");
	tell(300, "phase.end", "p1");
	assert_string_equal(told(), "300 \"phase\",\"name\":\"p1\",\"seconds\":299}\n");
}

static void test_the_start_is_told_once_and_before_the_end(void **state)
{
	struct pair memory[1];
	char text[8];
	struct pairs p;

	(void)state;
	pairs_init(&p, memory, 1, text, sizeof(text));
	pairs_str(&p, "ended", "duration");
	assert_int_equal(runlog_start(runlog), 0);
	assert_int_equal(runlog_start(runlog), 0);
	assert_int_equal(runlog_end(runlog, &p, NULL), 0);
	assert_string_equal(told(),
		"0 \"event\",\"event\":\"start\",\"data\":{\"hardware\":{},\"limits\":{}}}\n"
		"0 \"event\",\"event\":\"end\",\"data\":{\"ended\":\"duration\"}}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_deepest_group_tells_of_kills_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_throttling_is_told_when_it_begins_and_then_seldom, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missed_ticks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_of_time_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ticks_that_are_missed_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_end_closes_the_youngest_of_its_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_process_ends_its_own_phase, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_thread_ends_its_own_phase, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_phases_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_start_is_told_once_and_before_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
