/* query/: what the processor counted, the formulas that a recording brings along, memory bandwidth; in
 * figures, JSON, words and series. All values are worked out by hand. */
#include "query_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)
#define BILLION INT64_C(1000000000)

/* The value of a key derived.NAME. */
#define FORMULA(unit, per_second, expression, help) unit "\0" per_second "\0\0" expression "\0" help
#define PUT(m, name, formula) maker_meta(m, "derived." name, formula, sizeof(formula) - 1)

static const char flops[] =
	FORMULA("flop", "1", "rate(perf.fp_scalar + 4 * perf.fp_packed)", "Floating-point operations.");
static const char vectorised[] = FORMULA(
	"ratio", "0", "rate(4 * perf.fp_packed) / rate(perf.fp_scalar + 4 * perf.fp_packed)", "Share.");

static const struct summary_counter *counter(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_counters; i++)
		if (!strcmp(s->counter[i].name, name))
			return &s->counter[i];
	return NULL;
}

static void expect_counter(const struct summary *s, const char *name, double expected, double share)
{
	const struct summary_counter *c = counter(s, name);

	assert_non_null(c);
	if (c->value.why)
		fail_msg("%s has no value: %s", name, c->value.why);
	if (c->running_share.why)
		fail_msg("%s has no share: %s", name, c->running_share.why);
	assert_near(c->value.value, expected);
	assert_near(c->running_share.value, share);
}

static void expect_missing(const struct summary *s, const char *name, const char *words)
{
	const struct summary_counter *c = counter(s, name);

	assert_non_null(c);
	assert_non_null(c->value.why);
	assert_true(c->running_share.why || c->running_share.value == 0);
	if (!strstr(c->value.why, words))
		fail_msg("%s: %s", name, c->value.why);
}

/* Thirds of: 6 G cycles, 9 G instructions (counted half of the time), 2 G scalar and 1.5 G packed operations
 * in 3 s of CPU time; what the processes used is 3.2 s, the recording took 4 s. */
static void make_counted(const char *path, const char *host, const struct maker_options *like)
{
	struct maker_options o = like ? *like : (struct maker_options){0};
	struct maker m;

	o.host = host;
	maker_open(&m, path, &o);
	PUT(&m, "perf.flops_dp", flops);
	PUT(&m, "perf.vectorisation_dp", vectorised);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", "counts", "user and kernel", "how", "inherited", NULL);
	for (int64_t i = 1; i <= 3; i++) {
		maker_set(&m, 0, "proc.cpu.time", i * 3200 * MILLI / 3);
		maker_set(&m, 0, "perf.enabled", i * SECOND);
		maker_set_event(&m, "cycles", i * 2 * BILLION, i * SECOND);
		maker_set_event(&m, "instructions", i * 3 * BILLION, i * SECOND / 2);
		maker_set_event(&m, "cache_references", i * 100000, i * SECOND);
		maker_set_event(&m, "cache_misses", i * 2100, i * SECOND);
		maker_set_event(&m, "fp_scalar", i * 2 * BILLION / 3, i * SECOND * 3 / 4);
		maker_set_event(&m, "fp_packed", i * BILLION / 2, i * SECOND);
		maker_set_event(&m, "task_clock", i * SECOND, i * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
}

/* ---- figures ---- */

static void test_events_and_what_is_made_of_them(void **state)
{
	struct summary *s;

	(void)state;
	make_counted(file, "here", NULL);
	s = summary_of(file);
	/* The first reading counts: counters start at nothing when they are opened. */
	expect_counter(s, "cycles", 6e9, 1);
	expect_counter(s, "instructions", 9e9, 0.5);
	expect_counter(s, "task_clock", 3, 1);
	assert_int_equal(counter(s, "task_clock")->unit, UNIT_SECONDS);
	expect_counter(s, "ipc", 1.5, 0.5);
	expect_counter(s, "ghz", 2e9, 1);
	assert_int_equal(counter(s, "ghz")->unit, UNIT_HERTZ);
	expect_counter(s, "cache_miss_rate", 0.021, 1);
	/* (2 G + 4 x 1.5 G - a rounding) / 4 s */
	expect_counter(s, "flops_dp", (1999999998.0 + 4 * 1.5e9) / 4, 0.75);
	assert_true(counter(s, "flops_dp")->per_second);
	assert_int_equal(counter(s, "flops_dp")->unit, UNIT_FLOP);
	expect_counter(s, "vectorisation_dp", 6e9 / (1999999998.0 + 6e9), 0.75);
	/* Of branches nothing was counted: no row about them. The time that counters ran is no event. */
	assert_null(counter(s, "branch_miss_rate"));
	assert_null(counter(s, "enabled"));
	assert_null(counter(s, "cycles.running"));
	assert_near(value(s, FIG_COUNTED), 93.75);
	assert_true(has_note(s, "counters saw 94 % of the CPU time"));
	assert_true(has_note(s, "instructions ran 50 % of the time"));
	summary_free(s);
}

static void test_what_could_not_be_counted(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.forbidden = "perf.cycles"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", "counts", "user", NULL);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_set(&m, 0, "perf.enabled", SECOND);
	maker_set_event(&m, "instructions", 100, SECOND);
	maker_set_event(&m, "cache_references", 0, 0);
	maker_set_event(&m, "task_clock", SECOND, SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	expect_missing(s, "cycles", "needs the right to look");
	expect_missing(s, "ipc", "needs the right to look");
	expect_missing(s, "ghz", "needs the right to look");
	/* Zero counts of an event that never had a counter are not zero. */
	expect_missing(s, "cache_references", "never had one of the processor's counters");
	expect_missing(s, "cache_misses", "could not be read");
	expect_counter(s, "instructions", 100, 1);
	assert_near(value(s, FIG_COUNTED), 100);
	assert_false(has_note(s, "counters saw 100"));
	assert_true(has_note(s, "counters saw programs only"));
	summary_free(s);

	/* Who asks for one event is not told what others would have given. */
	maker_open(&m, file, &(struct maker_options){.without = "perf.cycles,perf.cycles.running"});
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	maker_set(&m, 0, "perf.enabled", SECOND);
	maker_set_event(&m, "task_clock", SECOND, SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_null(counter(s, "ghz"));
	assert_null(counter(s, "ipc"));
	assert_non_null(counter(s, "cache_miss_rate"));
	summary_free(s);

	/* Nobody asked. */
	maker_open(&m, file,
		&(struct maker_options){.without = "perf.enabled,perf.cycles,perf.cycles.running,"
						   "perf.instructions,perf.instructions.running,"
						   "perf.cache_references,perf.cache_references.running,"
						   "perf.cache_misses,perf.cache_misses.running,"
						   "perf.fp_scalar,perf.fp_scalar.running,"
						   "perf.fp_packed,perf.fp_packed.running,"
						   "perf.task_clock,perf.task_clock.running"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_counters, 0);
	assert_string_equal(s->figure[FIG_COUNTED].why, "not recorded");
	summary_free(s);
}

static void test_resets_and_gaps_lose_nothing_else(void **state)
{
	static const int64_t cycles[] = {1000, 3000, 500, 700};
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	for (int64_t i = 0; i < 4; i++) {
		maker_set(&m, 0, "perf.enabled", (i + 1) * SECOND);
		maker_set_event(&m, "cycles", cycles[i], (i + 1) * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	expect_counter(s, "cycles", 1000 + 2000 + 200, 1);
	summary_free(s);
}

static void test_several_nodes_add_up(void **state)
{
	const char *path = dir;
	struct summary *s;
	double one = 1999999998.0 + 6e9;

	(void)state;
	make_counted(file, "n1", NULL);
	make_counted(file_in("b.tacho"), "n2", NULL);
	s = summary_of_paths(&path, 1);
	expect_counter(s, "cycles", 12e9, 1);
	expect_counter(s, "instructions", 18e9, 0.5);
	expect_counter(s, "ipc", 1.5, 0.5);
	expect_counter(s, "ghz", 2e9, 1); /* of each CPU still */
	expect_counter(s, "flops_dp", 2 * one / 4, 0.75);
	assert_near(value(s, FIG_COUNTED), 93.75);
	assert_int_equal(s->nr_nodes, 2);
	expect_counter(&s->node[1], "cycles", 6e9, 1);
	summary_free(s);
}

/* Another processor counts other events: what is per second adds up, a ratio of both cannot be said. */
static void test_nodes_with_different_processors(void **state)
{
	static const char other[] = FORMULA("flop", "1", "rate(2 * perf.cycles)", "");
	static const char share[] = FORMULA("ratio", "0", "rate(perf.cycles) / rate(perf.instructions)", "");
	const char *path = dir;
	struct summary *s;
	struct maker m;

	(void)state;
	make_counted(file, "n1", NULL);
	maker_open(&m, file_in("b.tacho"), &(struct maker_options){.host = "n2"});
	PUT(&m, "perf.flops_dp", other);
	PUT(&m, "perf.vectorisation_dp", share);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	maker_set(&m, 0, "perf.enabled", SECOND);
	maker_set_event(&m, "cycles", 1000, SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, "end_ns", 2 * SECOND, NULL);
	s = summary_of_paths(&path, 1);
	expect_counter(&s->node[1], "flops_dp", 1000, 1);
	/* 8 G - 2 operations of one and 2000 of the other, in 4 s */
	expect_counter(s, "flops_dp", (1999999998.0 + 6e9 + 2000) / 4, 0.75);
	expect_missing(s, "vectorisation_dp", "different ways");
	summary_free(s);
}

static void test_memory_bandwidth(void **state)
{
	static const int64_t read[] = {5000, 5000 + 3 * MIB, 5000 + 4 * MIB};
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.forbidden = "membw.both"});
	maker_instance(&m, MAKER_SOCKET, 0, 0, "socket-0", "source", "uncore_imc", NULL);
	maker_instance(&m, MAKER_SOCKET, 1, 0, "socket-1", "source", "uncore_imc", NULL);
	for (int64_t i = 0; i < 3; i++) {
		maker_set(&m, 0, "membw.read", read[i]);
		maker_set(&m, 0, "membw.write", i * MIB);
		maker_set(&m, 1, "membw.read", 0);
		maker_set(&m, 1, "membw.write", i * MIB);
		maker_tick(&m, i * 2 * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_MEMBW_READ), (double)(4 * MIB));
	assert_near(value(s, FIG_MEMBW_WRITE), (double)(4 * MIB));
	assert_near(value(s, FIG_MEMBW_TOTAL), (double)(8 * MIB));
	assert_near(value(s, FIG_MEMBW_MEAN), (double)(2 * MIB));
	/* 3 + 2 MiB in the first two seconds */
	assert_near(value(s, FIG_MEMBW_PEAK), 2.5 * MIB);
	assert_string_equal(s->text[TEXT_MEMBW_SOURCE], "uncore_imc: socket-0, socket-1");
	buf_init(&out, 1 << 20);
	assert_non_null(strstr(words_of(s, 80, false, &out),
		"\n  membw    2 MiB/s mean, 2.5 MiB/s peak   8 MiB moved (read 4 MiB, wrote 4 MiB),"));
	assert_non_null(strstr(json_of(s, &out), "\"memory_bandwidth\": {\n    \"read_bytes\": 4194304,\n"));
	buf_release(&out);
	summary_free(s);
	expect_series("membw.rate", NULL, (double[]){NAN, 2.5 * MIB, 1.5 * MIB}, 3);
	expect_series("membw.read_rate", NULL, (double[]){NAN, 1.5 * MIB, 0.5 * MIB}, 3);
}

/* A source that cannot tell reads from writes. */
static void test_memory_bandwidth_both_ways(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.forbidden = "membw.read,membw.write"});
	maker_instance(&m, MAKER_SOCKET, 0, 0, "socket-0", NULL);
	for (int64_t i = 0; i < 3; i++) {
		maker_set(&m, 0, "membw.both", i * MIB);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_string_equal(s->figure[FIG_MEMBW_READ].why, "needs the right to look");
	assert_near(value(s, FIG_MEMBW_TOTAL), (double)(2 * MIB));
	assert_near(value(s, FIG_MEMBW_MEAN), (double)MIB);
	summary_free(s);
	expect_series("membw.rate", NULL, (double[]){NAN, MIB, MIB}, 3);
}

/* ---- the contract and the words ---- */

static void test_counters_in_json(void **state)
{
	struct summary *s;
	struct buf out;
	const char *json;

	(void)state;
	make_counted(file, "here", &(struct maker_options){.forbidden = "perf.cache_misses"});
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	json = json_of(s, &out);
	assert_non_null(strstr(json,
		"\"perf\": {\n    \"cycles\": {\n      \"value\": 6000000000,\n"
		"      \"unit\": \"count\",\n      \"running_share\": 1\n    }"));
	assert_non_null(strstr(json, "\"task_clock\": {\n      \"value\": 3,\n      \"unit\": \"seconds\","));
	assert_non_null(strstr(json, "\"ghz\": {\n      \"value\": 2000000000,\n      \"unit\": \"hertz\","));
	assert_non_null(strstr(json, "\"unit\": \"flop/s\",\n      \"running_share\": 0.75"));
	assert_non_null(strstr(json, "\"counted_percent\": 93.75"));
	summary_free(s);
	buf_release(&out);
}

static void test_counters_in_words(void **state)
{
	static const unsigned width[] = {100, 80, 60, 40};
	struct summary *s;
	struct buf out;
	const char *text;

	(void)state;
	make_counted(file, "here", NULL);
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	text = words_of(s, 120, true, &out);
	assert_non_null(strstr(text,
		"\n  counters IPC 1.5 · cache misses 2.1 % · 2 GHz · 2 GFLOP/s DP · "
		"DP vectorised 75 %\n"));
	assert_non_null(strstr(text, "\n           cycles 6 G · instructions 9 G · "));
	assert_non_null(strstr(text, " · task_clock 3.00s\n"));
	assert_non_null(
		strstr(text, "\n           counters saw 94 % of the CPU time; running 50 % of that\n"));
	assert_null(strstr(text, "not counted"));
	text = words_of(s, 120, false, &out);
	assert_non_null(strstr(text, "\n  counters IPC 1.5, cache misses 2.1 %, 2 GHz, "));
	for (size_t i = 0; i < ARRAY_SIZE(width); i++) {
		text = strstr(words_of(s, width[i], false, &out), "\n  counters") + 1;
		for (; strncmp(text, "  io", 4); text = strchr(text, '\n') + 1)
			assert_true(strcspn(text, "\n") <= width[i]);
	}
	summary_free(s);
	buf_release(&out);
}

/* The counters' clock goes on while the CPU is somebody else's. */
static void test_more_than_the_cpu_time(void **state)
{
	static const struct {
		int64_t clock_ms;
		const char *words;
		bool noted;
	} row[] = {{991, "saw 99 % of the CPU time;", false}, {996, "saw all of the CPU time;", false},
		{1019, "saw all of the CPU time;", false},
		{2400, "saw all of the CPU time as far as can be told;", true}};
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct summary *s;
		struct maker m;

		maker_open(&m, file, NULL);
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
		maker_set(&m, 0, "proc.cpu.time", 1000 * MILLI);
		maker_set(&m, 0, "perf.enabled", SECOND);
		maker_set_event(&m, "task_clock", row[i].clock_ms * 1000000, SECOND);
		maker_tick(&m, SECOND);
		maker_finish(&m, "end_ns", 4 * SECOND, NULL);
		s = summary_of(file);
		assert_near(value(s, FIG_COUNTED), (double)row[i].clock_ms / 10);
		assert_non_null(strstr(words_of(s, 200, false, &out), row[i].words));
		assert_int_equal(
			has_note(s, "the counters' clock shows 240 % of the CPU time"), row[i].noted);
		assert_false(has_note(s, "live very shortly"));
		summary_free(s);
	}
	buf_release(&out);
}

/* Not a word where nothing was counted, and one reason for many events. */
static void test_reasons_in_words(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	maker_open(&m, file,
		&(struct maker_options){.forbidden = "perf.cycles,perf.instructions,perf.cache_references"});
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_non_null(strstr(words_of(s, 200, false, &out),
		"\n  counters not counted: cycles, instructions, cache_references (needs the right to "
		"look); "));
	assert_non_null(strstr(json_of(s, &out), "\"perf.cycles\": \"needs the right to look\""));
	assert_non_null(strstr(json_of(s, &out), "\"cpu.counted_percent\": \""));
	summary_free(s);
	make_long(file, 3);
	s = summary_of(file);
	assert_null(strstr(words_of(s, 200, false, &out), "IPC"));
	summary_free(s);
	buf_release(&out);
}

/* ---- series ---- */

static void test_series_of_formulas(void **state)
{
	static const int64_t at[] = {0, 1000, 1500, 4500}, count[] = {0, 1000, 2000, 2600};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	PUT(&m, "perf.flops_dp", flops);
	/* The recording's own word counts: its IPC is the inverse. */
	maker_meta(&m, "derived.perf.ipc",
		FORMULA("count", "0", "rate(perf.cycles) / rate(perf.instructions)", ""),
		sizeof(FORMULA("count", "0", "rate(perf.cycles) / rate(perf.instructions)", "")) - 1);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		maker_set(&m, 0, "perf.enabled", at[i] * MILLI);
		maker_set_event(&m, "cycles", 2 * count[i], at[i] * MILLI);
		maker_set_event(&m, "instructions", count[i], at[i] * MILLI);
		maker_set_event(&m, "fp_scalar", count[i], at[i] * MILLI);
		maker_set_event(&m, "fp_packed", count[i], at[i] * MILLI);
		maker_set_event(&m, "task_clock", at[i] * MILLI, at[i] * MILLI);
		maker_tick(&m, at[i] * MILLI);
	}
	maker_finish(&m, NULL);
	/* 5 operations a count, over the time that really passed. */
	expect_series("perf.flops_dp", NULL, (double[]){NAN, 5000, 10000, 1000}, 4);
	expect_series("perf.ipc", NULL, (double[]){NAN, 2, 2, 2}, 4);
	expect_series("perf.ghz", NULL, (double[]){NAN, 2000, 4000, 400}, 4);
	expect_series(
		"perf.cycles", &(struct series_query){.rate = true}, (double[]){NAN, 2000, 4000, 400}, 4);
}

/* The message about a series that cannot be had. */
static void expect_refusal(const char *metric, const char *words)
{
	struct series_query q = {.metric = &metric, .nr = 1};
	struct series *s = NULL;
	struct buf err;

	buf_init(&err, 4000);
	assert_true(series_open(file, &q, &s, &err) < 0);
	if (!strstr((char *)err.data, words))
		fail_msg("%s: %s", metric, (char *)err.data);
	buf_release(&err);
}

static void test_formulas_that_are_of_no_use(void **state)
{
	static const char cyclic_a[] = FORMULA("ratio", "0", "perf.b", ""),
			  cyclic_b[] = FORMULA("ratio", "0", "perf.a", "");
	static const char odd[] = FORMULA("zorkmids", "0", "rate(perf.cycles)", "");
	static const char zero[] = FORMULA("ratio", "0", "perf.cycles / 0", "");
	static char deep[4096];
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	memcpy(deep, "flop\0001\0\0", 8);
	memset(deep + 8, '(', sizeof(deep) - 8);
	maker_open(&m, file, NULL);
	PUT(&m, "perf.flops_dp", flops);
	PUT(&m, "perf.broken", FORMULA("flop", "1", "rate(perf.cycles", ""));
	maker_meta(&m, "derived.perf.deep", deep, sizeof(deep));
	maker_meta(&m, "derived.perf.short", "flop\0001", 6);
	maker_meta(&m, "derived.perf.empty", "", 0);
	maker_meta(&m, "derived.", "flop\0001\0\0perf.cycles", 20);
	maker_meta(&m, "derived.perf.\033[31m", flops, sizeof(flops) - 1);
	PUT(&m, "perf.a", cyclic_a);
	PUT(&m, "perf.b", cyclic_b);
	PUT(&m, "perf.odd", odd);
	PUT(&m, "perf.shifted", FORMULA("count", "1", "rate(perf.cycles + 1000)", ""));
	PUT(&m, "perf.zero", zero);
	/* A formula must not hide what was counted. */
	PUT(&m, "perf.cycles", FORMULA("count", "0", "perf.instructions", ""));
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	for (int64_t i = 0; i < 3; i++) {
		maker_set(&m, 0, "perf.enabled", i * SECOND);
		maker_set_event(&m, "cycles", i * 100, i * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	expect_counter(s, "cycles", 200, 1);
	expect_counter(s, "odd", 100, 1);
	assert_int_equal(counter(s, "odd")->unit, UNIT_CODE);
	expect_counter(s, "shifted", 100, 1);
	expect_missing(s, "a", "were not recorded");
	expect_missing(s, "zero", "nothing to divide by");
	assert_null(counter(s, "broken"));
	assert_true(has_note(s, "4 formulas of this recording cannot be used (perf.broken: "));
	assert_true(has_note(s, "2 formulas of this recording left out"));
	buf_init(&out, 1 << 20);
	assert_null(strchr(json_of(s, &out), '\033'));
	assert_null(strchr(words_of(s, 80, false, &out), '\033'));
	buf_release(&out);
	summary_free(s);
	expect_series("perf.cycles", NULL, (double[]){0, 100, 200}, 3);
	expect_refusal("perf.broken", "its formula cannot be used: ");
	expect_refusal("perf.deep", "nested too deeply");
	expect_refusal("perf.short", "it is incomplete");
	expect_refusal("perf.empty", "it is incomplete");
	expect_refusal("perf.a", "were not recorded");
	expect_refusal("perf.flops_pd", "did you mean 'perf.flops_dp'?");
	expect_refusal("perf.brokn", "did you mean 'perf.broken'?");
}

static void test_thousands_of_formulas(void **state)
{
	struct summary *s;
	struct maker m;
	char key[64];

	(void)state;
	maker_open(&m, file, NULL);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "derived.perf.f%d", i);
		maker_meta(&m, key, flops, sizeof(flops) - 1);
	}
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	maker_set(&m, 0, "perf.enabled", SECOND);
	maker_set_event(&m, "fp_scalar", 100, SECOND);
	maker_set_event(&m, "fp_packed", 100, SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	expect_counter(s, "f7", 500, 1);
	assert_non_null(counter(s, "f255"));
	assert_null(counter(s, "f256"));
	assert_true(has_note(s, "of this recording left out: too many"));
	summary_free(s);
	expect_series("perf.f7", NULL, (double[]){NAN}, 1);
}

/* Numbers that no processor counts. */
static void test_numbers_out_of_this_world(void **state)
{
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, NULL);
	PUT(&m, "perf.flops_dp", flops);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", "counts", "", NULL);
	maker_instance(&m, MAKER_PERF, 1, 0, "job", NULL);
	for (int64_t i = 0; i < 3; i++) {
		maker_set(&m, 0, "perf.enabled", i == 1 ? INT64_MIN : INT64_MAX);
		maker_set_event(&m, "cycles", i == 1 ? INT64_MAX : INT64_MIN, -1);
		maker_set_event(&m, "instructions", i == 1 ? -1 : INT64_MAX, INT64_MAX);
		maker_set_event(&m, "fp_scalar", INT64_MAX, INT64_MAX);
		maker_set_event(&m, "fp_packed", INT64_MAX, INT64_MAX);
		maker_tick(&m, i == 2 ? 0 : i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	assert_null(strstr(json_of(s, &out), "nan"));
	assert_null(strstr(json_of(s, &out), "inf"));
	words_of(s, 80, true, &out);
	assert_int_equal(out.err, 0);
	for (size_t i = 0; i < s->nr_counters; i++)
		assert_true(s->counter[i].value.why || isfinite(s->counter[i].value.value));
	buf_release(&out);
	summary_free(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_events_and_what_is_made_of_them),
		T(test_what_could_not_be_counted),
		T(test_resets_and_gaps_lose_nothing_else),
		T(test_several_nodes_add_up),
		T(test_nodes_with_different_processors),
		T(test_memory_bandwidth),
		T(test_memory_bandwidth_both_ways),
		T(test_counters_in_json),
		T(test_counters_in_words),
		T(test_more_than_the_cpu_time),
		T(test_reasons_in_words),
		T(test_series_of_formulas),
		T(test_formulas_that_are_of_no_use),
		T(test_thousands_of_formulas),
		T(test_numbers_out_of_this_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
