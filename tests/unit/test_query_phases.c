/* query/phases: what was used and held in each phase, by recordings whose numbers follow by hand. */
#include "query_maker.h"

#include "query/phases.h"
#include "text/phases.h"
#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "phases_lab.h"

/* ---- amounts and levels ---- */

static void test_edges_take_their_share_of_a_tick(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	for (int64_t i = 0; i <= 10; i++) {
		tick(&m, i * 1000);
		if (i == 1)
			begin(&m, 1500, "load");
		if (i == 4)
			end(&m, 4250, "load");
		if (i == 5) {
			begin(&m, 5200, "tiny");
			end(&m, 5600, "tiny");
		}
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "load");
	assert_near(p->begin_s, 1.5);
	assert_near(p->end_s, 4.25);
	assert_near(p->value[PHASE_WALL], 2.75);
	assert_near(p->value[PHASE_CPU], 1.375);
	assert_near(p->value[PHASE_CORES], 0.5);
	assert_near(p->value[PHASE_READ_CHARS], 2750e3);
	assert_near(p->value[PHASE_RSS_PEAK], 300 * PAGE);
	/* 100 pages for 2.5 s, 300 for a quarter. */
	assert_near(p->value[PHASE_RSS_MEAN], (100 * 2.5 + 300 * 0.25) / 2.75 * PAGE);
	assert_false(p->brief);
	assert_true(p->interpolated); /* three quarters of a second of 2.75 s may be on the wrong side */
	assert_false(p->cut);
	p = phase_at(s, 1, "tiny");
	assert_near(p->value[PHASE_WALL], 0.4);
	assert_near(p->value[PHASE_CPU], 0.2);
	assert_near(p->value[PHASE_RSS_PEAK], 300 * PAGE);
	assert_true(p->interpolated);
	assert_int_equal(s->phases->nr, 2);
	summary_free(s);
}

/* Ticks at the edges: nothing is a guess, though the phase is shorter than two intervals. */
static void test_ticks_at_the_edges_make_it_exact(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 1000);
	begin(&m, 1300, "burst");
	maker_set(&m, 0, "proc.cpu.time", 500 * MILLI); /* nothing was used before it */
	maker_tick(&m, 1301 * MILLI);
	end(&m, 1700, "burst");
	maker_set(&m, 0, "proc.cpu.time", 900 * MILLI);
	maker_tick(&m, 1701 * MILLI);
	maker_tick(&m, 5000 * MILLI);
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "burst");
	assert_false(p->interpolated);
	assert_true(fabs(p->value[PHASE_CPU] - 0.4) < 0.0011);
	summary_free(s);
}

/* What is written between two ticks may be before the edge or behind it. */
static void test_amounts_at_the_edges_are_marked(void **state)
{
	/* When it begins, how much was written before each tick, when it ends. */
	static const struct {
		int64_t begin_ms, end_ms, mib[5];
		bool interpolated;
	} row[] = {
		{1200, 4000, {0, 0, 40, 40, 40}, true},	 /* nearly all of it near the beginning */
		{1200, 4000, {0, 0, 1, 40, 40}, false},	 /* nearly nothing of it there */
		{1000, 3600, {0, 0, 0, 1, 40}, true},	 /* all of it near the end, and no tick at it */
		{1005, 3995, {0, 0, 12, 25, 40}, false}, /* ticks at the edges */
		{1000, 4000, {0, 10, 20, 30, 40}, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct summary *s;
		struct maker m;

		open_job(&m, file);
		for (int64_t k = 0; k < 5; k++) {
			if (k == 2)
				begin(&m, row[i].begin_ms, "write");
			if (k == 4)
				end(&m, row[i].end_ms, "write");
			maker_set(&m, 0, "proc.io.write_chars", row[i].mib[k] << 20);
			maker_tick(&m, k * SECOND);
		}
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_false(phase_at(s, 0, "write")->brief);
		assert_int_equal(phase_at(s, 0, "write")->interpolated, row[i].interpolated);
		assert_int_equal(s->phases->repetition[0].interpolated, row[i].interpolated);
		summary_free(s);
		unlink(file);
	}
}

/* What is told late belongs to the time at which it was sent. */
static void test_the_senders_time_counts(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	for (int64_t i = 0; i <= 20; i++) {
		tick(&m, i * 1000);
		if (i == 6) {
			tell(&m, 6100 * MILLI, "phase.begin", "a", 7, 2500 * MILLI);
			tell(&m, 6100 * MILLI, "phase.end", "a", 7, 3500 * MILLI);
		}
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "a");
	assert_near(p->begin_s, 2.5);
	assert_near(p->value[PHASE_CPU], 0.5);
	assert_near(p->value[PHASE_RSS_PEAK], 100 * PAGE); /* not what was held when it arrived */
	summary_free(s);
}

/* A mark of the kernel counts for the phase in which the process began and ended. */
static void test_marks_of_processes_that_lived_in_it(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	begin(&m, 100, "outer");
	tick(&m, 1000);
	begin(&m, 1100, "inner");
	maker_join(&m, 1, 2, 200, 100, 1200 * MILLI, false);
	maker_gone_with(
		&m, 1, 2, 1300 * MILLI, "reaped", "max_rss_kib", INT64_C(5000), "io_least", INT64_C(0), NULL);
	end(&m, 1500, "inner");
	tick(&m, 2000);
	begin(&m, 2100, "after");
	/* It had begun before. */
	maker_join(&m, 1, 3, 201, 100, 1900 * MILLI, false);
	maker_gone_with(
		&m, 1, 3, 2300 * MILLI, "reaped", "max_rss_kib", INT64_C(9000), "io_least", INT64_C(0), NULL);
	end(&m, 2500, "after");
	tick(&m, 3000);
	end(&m, 3000, "outer");
	tick(&m, 4000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(phase_at(s, 0, "outer")->value[PHASE_MEMORY], 9000 * 1024);
	assert_near(phase_at(s, 1, "inner")->value[PHASE_MEMORY], 5000 * 1024);
	assert_int_equal(phase_at(s, 1, "inner")->parent, 0);
	assert_near(phase_at(s, 2, "after")->value[PHASE_MEMORY], 100 * PAGE);
	summary_free(s);
}

/* ---- repetitions ---- */

static void test_names_that_differ_in_numbers(void **state)
{
	static const char *const name[][3] = {{"epoch 1", "epoch 2", "epoch"},
		{"epoch 3/12", "epoch 4/12", "epoch #/12"}, {"conv2d", "conv3d", NULL},
		{"step_001", "step_002", "step"}, {"lr 0.1", "lr 0.01", "lr"}, {"7", "8", "#"},
		{"same", "same", "same"}, {"a 1 b 2", "a 2 b 2", "a # b 2"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		struct summary *s;
		struct maker m;

		open_job(&m, file);
		tick(&m, 0);
		begin(&m, 100, name[i][0]);
		end(&m, 200, name[i][0]);
		begin(&m, 300, name[i][1]);
		end(&m, 500, name[i][1]);
		tick(&m, 1000);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_int_equal(s->phases->nr, name[i][2] ? 1 : 2);
		assert_string_equal(s->phases->phase[0].name, name[i][2] ? name[i][2] : name[i][0]);
		assert_int_equal(s->phases->phase[0].count, name[i][2] ? 2 : 1);
		assert_int_equal(s->phases->nr_repetitions, 2);
		assert_string_equal(s->phases->repetition[1].name, name[i][1]);
		if (name[i][2])
			assert_near(s->phases->phase[0].mean_s, 0.15);
		summary_free(s);
		unlink(file);
	}
}

static void test_the_slow_one_and_why(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;
	struct buf text;
	char name[16];

	(void)state;
	maker_open(&m, file, &(struct maker_options){.host = "n1", .interval_ns = SECOND});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_CGROUP, 0, 0, "/job", "own", "1", NULL);
	for (int64_t i = 0, second = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "epoch %d", (int)i + 1);
		begin(&m, second * 1000, name);
		for (int64_t end_s = second + (i == 2 ? 4 : 2); second < end_s;) {
			maker_set(&m, 0, "cgroup.cpu.throttled",
				i == 2		? (second - 4) * 900000
					: i > 2 ? 2700000
						: 0);
			tick(&m, second++ * 1000);
		}
		end(&m, second * 1000, name);
	}
	maker_set(&m, 0, "cgroup.cpu.throttled", 2700000);
	tick(&m, 12000);
	tick(&m, 13000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "epoch");
	assert_int_equal(p->count, 5);
	assert_near(p->value[PHASE_WALL], 12);
	assert_near(p->mean_s, 2.4);
	assert_int_equal(p->slowest, 3);
	assert_near(p->slower, 1);
	assert_string_equal(p->slower_why, "held back by the CPU quota");
	buf_init(&text, 1000);
	phase_title(p, true, &text);
	buf_adds(&text, " (");
	phase_remark(p, true, &text);
	assert_string_equal((char *)text.data,
		"epoch ×5 (each 2.40s ± 894ms; the 3rd 100 % slower: held back by the CPU quota");
	buf_release(&text);
	summary_free(s);
}

/* Five repetitions of a second, which use 900 ms of CPU time; the third takes 805 ms longer and uses so much
 * more CPU time. In each of them the metric grows by `usual`, in the third by `slow` (of a level: it is). */
struct slow_one {
	int64_t cpu_ms;
	const char *metric;
	int64_t usual, slow;
	const char *why; /* NULL: not known */
};

static const char *why_of(const struct slow_one *o, struct summary **s)
{
	bool level = o->metric && !strcmp(o->metric, "freq.current");
	int64_t now = 0, cpu = 0, grown = 0;
	struct maker m;
	char name[16];

	maker_open(&m, file, &(struct maker_options){.host = "n1", .interval_ns = SECOND});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_CGROUP, 0, 0, "/job", "own", "1", NULL);
	maker_instance(&m, MAKER_GPU, 0, 0, "nvidia-0", "vendor", "nvidia", "index", "0", "job", "yes", NULL);
	if (level)
		maker_instance(&m, MAKER_CPU, 1, 0, "0", NULL);
	if (o->metric)
		maker_set(&m, level, o->metric, level ? o->usual : 0);
	maker_set(&m, 0, "gpu.util", 50);
	maker_tick(&m, 0);
	for (int64_t i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "epoch %d", (int)i + 1);
		begin(&m, now, name);
		now += i == 2 ? 1805 : 1000;
		cpu += i == 2 ? 900 + o->cpu_ms : 900;
		/* A level is the mean of what is read at both ends. */
		grown = (level ? 0 : grown) + (i == 2 || (level && i == 1) ? o->slow : o->usual);
		maker_set(&m, 0, "proc.cpu.time", cpu * MILLI);
		if (o->metric)
			maker_set(&m, level, o->metric, grown);
		maker_tick(&m, now * MILLI);
		end(&m, now, name);
	}
	maker_tick(&m, 6000 * MILLI);
	maker_finish(&m, NULL);
	*s = summary_of(file);
	unlink(file);
	assert_int_equal(phase_at(*s, 0, "epoch")->slowest, 3);
	return (*s)->phases->phase[0].slower_why;
}

static void expect_why(const struct slow_one *row, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct summary *s;
		const char *why = why_of(&row[i], &s);

		if ((why == NULL) != (row[i].why == NULL) || (why && strcmp(why, row[i].why) != 0))
			fail_msg("%zu, %s: \"%s\" instead of \"%s\"", i, row[i].metric, why, row[i].why);
		summary_free(s);
	}
}

static void test_what_explains_most_is_told(void **state)
{
	/* In the units of the recording: us, ns, ms, a count. */
	static const struct slow_one row[] = {
		{531, "cgroup.cpu.throttled", 0, 274000, "it used more CPU time"},
		{274, "cgroup.cpu.throttled", 0, 531000, "held back by the CPU quota"},
		{250, "cgroup.cpu.throttled", 0, 250000, NULL},
		{0, NULL, 0, 0, NULL},
		{805, NULL, 0, 0, "it used more CPU time"},
		{0, "cgroup.pressure.cpu.some", 10000, 700000, "CPU pressure"},
		{0, "pressure.cpu.some", 10000, 700000, "CPU pressure"},
		{0, "cgroup.pressure.memory.some", 10000, 700000, "memory pressure"},
		{0, "pressure.memory.some", 10000, 700000, "memory pressure"},
		{0, "cgroup.pressure.io.some", 10000, 700000, "I/O pressure"},
		{0, "pressure.io.some", 10000, 700000, "I/O pressure"},
		{0, "pressure.io.some", 10000, 200000, NULL},
		{0, "proc.sched.wait", 10 * MILLI, 700 * MILLI, "waiting for a CPU"},
		{0, "throttle.package_time", 10, 700, "processors slowed down"},
		{0, "gpu.throttle.power", 10 * MILLI, 700 * MILLI, "GPU slowed down"},
		{0, "gpu.throttle.thermal", 10 * MILLI, 700 * MILLI, "GPU slowed down"},
		{0, "proc.faults.major", 10, 700, "page faults that waited for storage"},
		/* The same work at half the clock takes 900 ms more, and as much more CPU time. */
		{700, "freq.current", 3000000, 1500000, "a lower clock"},
		{700, "freq.current", 3000000, 3000000, "it used more CPU time"},
	};

	(void)state;
	expect_why(row, ARRAY_SIZE(row));
}

/* On a busy machine all of them wait, and the one with more work waits longer. The work is what differs. */
static void test_waiting_that_comes_with_the_work(void **state)
{
	static const struct slow_one row[] = {
		{300, "cgroup.pressure.cpu.some", 900000, 900000 + 505000, "it used more CPU time"},
		{300, "proc.sched.wait", 900 * MILLI, (900 + 505) * MILLI, "it used more CPU time"},
		{300, "cgroup.cpu.throttled", 900000, 900000 + 505000, "it used more CPU time"},
		/* As much work as in the others, and more waiting. */
		{0, "cgroup.pressure.cpu.some", 900000, 900000 + 505000, "CPU pressure"},
		{100, "cgroup.pressure.cpu.some", 900000, 900000 + 705000, "CPU pressure"},
	};

	(void)state;
	expect_why(row, ARRAY_SIZE(row));
}

static void test_how_much_slower(void **state)
{
	static const struct {
		double share;
		const char *text;
	} row[] = {{0.11, "11 % slower"}, {1, "100 % slower"}, {1.68, "2.7 times as long"},
		{67.61, "69 times as long"}};
	char text[UNITS_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		assert_string_equal(format_slower(text, row[i].share), row[i].text);
}

/* ---- GPUs ---- */

#define MIB (INT64_C(1) << 20)

static void add_gpu(struct maker *m, uint32_t row, const char *name, const char *job)
{
	char index[2] = {(char)('0' + row), 0};

	maker_instance(m, MAKER_GPU, row, 0, name, "vendor", "nvidia", "index", index, "job", job, NULL);
}

/* Two GPUs, a phase of 4 s in which they work and one of 2 s in which they do not. The first has a counter of
 * energy, of the second only the power is known. */
static struct summary *summary_of_gpus(const char *job, const char *other)
{
	struct maker m;

	open_job(&m, file);
	add_gpu(&m, 0, "nvidia-0", job);
	add_gpu(&m, 1, "nvidia-1", other);
	tick(&m, 0);
	begin(&m, 0, "train");
	for (int64_t second = 0; second <= 6; second++) {
		if (second == 4) {
			end(&m, 4000, "train");
			begin(&m, 4000, "save");
		}
		maker_set(&m, 0, "gpu.util", second < 4 ? 90 : 10);
		maker_set(&m, 1, "gpu.util", second < 4 ? 50 : 10);
		maker_set(&m, 0, "gpu.memory.used", (1000 + 100 * second) * MIB);
		maker_set(&m, 1, "gpu.memory.used", 500 * MIB);
		maker_set(&m, 0, "gpu.energy", MIN(second, 4) * 300000);
		maker_set(&m, 1, "gpu.power", 50000);
		maker_set(&m, 0, "gpu.throttle.power", MIN(second, 4) * SECOND / 4);
		maker_set(&m, 0, "gpu.throttle.thermal", MIN(second, 2) * SECOND / 2);
		tick(&m, second * 1000);
	}
	end(&m, 6000, "save");
	maker_finish(&m, NULL);
	return summary_of(file);
}

static void test_gpus_of_a_phase(void **state)
{
	struct summary *s = summary_of_gpus("yes", "yes");
	const struct phase *p = phase_at(s, 0, "train");

	(void)state;
	assert_near(p->value[PHASE_GPU_SECONDS], 8);
	/* 90 % and 50 %, and half of the way down to 10 % in the last second */
	assert_near(p->value[PHASE_GPU_UTIL], ((3 * 90 + 50) + (3 * 50 + 30)) / 8.0);
	assert_near(p->value[PHASE_GPU_MEMORY], (1400.0 + 500) * MIB);
	assert_near(p->value[PHASE_GPU_ENERGY], 4 * 300 + 4 * 50);
	assert_near(p->value[PHASE_GPU_THROTTLED], 1 + 1);
	p = phase_at(s, 1, "save");
	assert_near(p->value[PHASE_GPU_UTIL], 10);
	assert_near(p->value[PHASE_GPU_MEMORY], (1600.0 + 500) * MIB);
	assert_near(p->value[PHASE_GPU_ENERGY], 2 * 50);
	assert_near(p->value[PHASE_GPU_THROTTLED], 0);
	summary_free(s);
}

/* What others do on the node is not the phase's, where the job's GPUs are known; GPUs that are not known as
 * another's count where none is. */
static void test_which_gpus_are_of_a_phase(void **state)
{
	static const struct {
		const char *job, *other;
		double util, joules;
	} row[] = {{"yes", "no", 80, 1200}, {"unclaimed", "no", 80, 1200}, {"no", "yes", 45, 200},
		{"yes", "unclaimed", 80, 1200}, {"unclaimed", "unclaimed", 62.5, 1400},
		{"no", "no", NAN, NAN}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct summary *s = summary_of_gpus(row[i].job, row[i].other);
		const struct phase *p = phase_at(s, 0, "train");

		if (isnan(row[i].util)) {
			assert_true(isnan(p->value[PHASE_GPU_UTIL]));
			assert_true(isnan(p->value[PHASE_GPU_MEMORY]));
		} else {
			assert_near(p->value[PHASE_GPU_UTIL], row[i].util);
			assert_near(p->value[PHASE_GPU_ENERGY], row[i].joules);
		}
		summary_free(s);
		unlink(file);
	}
}

/* ---- hardware counters ---- */

static void test_counters_of_a_phase(void **state)
{
	const struct phase *p;
	int formulas = 0;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	maker_instance(&m, MAKER_PERF, 0, 0, "job", NULL);
	maker_set_event(&m, "instructions", 0, 0);
	tick(&m, 0);
	begin(&m, 0, "train");
	for (int64_t second = 0; second <= 6; second++) {
		if (second == 4) {
			end(&m, 4000, "train");
			begin(&m, 4000, "save");
		}
		maker_set_event(&m, "instructions", 700 * MIN(second, 4) + second, second * SECOND);
		maker_set_event(&m, "cycles", 1000 * second, second * SECOND);
		tick(&m, second * 1000);
	}
	end(&m, 6000, "save");
	maker_finish(&m, "end_ns", 6 * SECOND, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "train");
	assert_near(phase_event(s->phases, p, "perf.instructions"), 4 * 701);
	assert_true(isnan(phase_event(s->phases, p, "perf.none")));
	assert_near(phase_event(s->phases, phase_at(s, 1, "save"), "perf.instructions"), 2);
	for (size_t i = 0; i < s->nr_counters; i++)
		if (!strcmp(s->counter[i].name, "ipc")) { /* a formula, over the time of the phase */
			assert_near(counter_in_phase(s, &s->counter[i], p), 0.701);
			assert_near(counter_in_phase(s, &s->counter[i], phase_at(s, 1, "save")), 0.001);
			formulas++;
		}
	assert_int_equal(formulas, 1);
	summary_free(s);
}

/* ---- nested, overlapping, of several processes ---- */

static void test_nested_and_overlapping(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	begin(&m, 1000, "outer");
	begin(&m, 2000, "inner");
	end(&m, 3000, "inner");
	begin(&m, 4000, "over"); /* it lasts longer than what it began in */
	end(&m, 5000, "outer");
	end(&m, 6000, "over");
	end(&m, 6500, "never began");
	tick(&m, 10000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->phases->nr, 3);
	assert_int_equal(phase_at(s, 0, "outer")->depth, 0);
	assert_int_equal(phase_at(s, 1, "inner")->depth, 1);
	assert_int_equal(phase_at(s, 2, "over")->depth, 0);
	/* Consecutive or not, each has what was used while it was open. */
	assert_near(s->phases->phase[0].value[PHASE_CPU], 2);
	assert_near(s->phases->phase[2].value[PHASE_CPU], 1);
	summary_free(s);
}

/* Two ranks that tell the same: one repetition, whose time counts once. */
static void test_ranks_are_in_one_repetition(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	maker_join(&m, 1, 2, 200, 100, 0, false);
	maker_join(&m, 2, 3, 300, 100, 0, false);
	tick(&m, 0);
	for (int64_t i = 0; i < 3; i++) {
		int64_t at = 1000 + i * 2000;

		tell(&m, at * MILLI, "phase.begin", "step", 200, -1);
		tell(&m, (at + 200) * MILLI, "phase.begin", "step", 300, -1);
		tick(&m, at + 500);
		tell(&m, (at + 1000) * MILLI, "phase.end", "step", 200, -1);
		tell(&m, (at + 1500) * MILLI, "phase.end", "step", 300, -1);
		tick(&m, at + 1800);
	}
	tick(&m, 9000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "step");
	assert_int_equal(s->phases->nr, 1);
	assert_int_equal(p->count, 3);
	assert_int_equal(p->senders, 2);
	assert_near(p->value[PHASE_WALL], 4.5);
	assert_near(p->value[PHASE_CPU], 2.25);
	summary_free(s);
}

/* ---- cut, hostile ---- */

static void test_open_at_the_end(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	begin(&m, 1000, "train");
	begin(&m, 2000, "epoch 1");
	tick(&m, 5000);
	maker_abandon(&m);
	s = summary_of(file);
	p = phase_at(s, 0, "train");
	assert_true(p->cut);
	assert_near(p->value[PHASE_WALL], 4);
	assert_near(p->value[PHASE_CPU], 2);
	assert_true(phase_at(s, 1, "epoch 1")->cut);
	assert_int_equal(s->phases->phase[1].parent, 0);
	summary_free(s);
}

/* With the run, which is a little longer than its last sample, and as its log has it. */
static void test_an_open_phase_ends_with_the_run(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	begin(&m, 1000, "train");
	tick(&m, 5000);
	maker_finish(&m, "end_ns", INT64_C(5250) * MILLI, NULL);
	s = summary_of(file);
	assert_true(phase_at(s, 0, "train")->cut);
	assert_near(phase_at(s, 0, "train")->end_s, 5.25);
	assert_near(s->figure[FIG_WALL].value, 5.25);
	summary_free(s);
}

static void test_hostile(void **state)
{
	struct summary *s;
	struct maker m;
	char name[40];

	(void)state;
	open_job(&m, file);
	for (int64_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%c%c%c open", 'a' + (int)(i % 26), 'a' + (int)(i / 26 % 26),
			'a' + (int)(i / 676));
		begin(&m, i, name);
	}
	tell(&m, 3000 * MILLI, "phase.begin", "early", 1, INT64_MIN);
	tell(&m, 3000 * MILLI, "phase.begin", "\033[31m\n\xff", -5, INT64_MAX);
	maker_event(&m, 3 * SECOND, "phase.end", NULL, NULL);
	tick(&m, 4000);
	tick(&m, 2000); /* back */
	for (int64_t i = 0; i < 10000; i++) {
		begin(&m, 5000 + i, "loop");
		end(&m, 5000 + i, "loop");
	}
	tick(&m, 20000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_non_null(s->phases);
	assert_true(s->phases->ignored > 0);
	assert_true(s->phases->nr_repetitions <= 4096);
	for (size_t i = 0; i < s->phases->nr; i++)
		for (const char *c = s->phases->phase[i].name; *c; c++)
			assert_true((unsigned char)*c >= ' ');
	summary_free(s);
}

/* More repetitions than are kept: all count. */
static void test_many_repetitions(void **state)
{
	const struct phase *p;
	struct summary *s;
	struct buf text;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	for (int64_t i = 1; i <= 10000; i++) {
		begin(&m, i, "step");
		end(&m, i + 1, "step");
		if (i % 500 == 0)
			tick(&m, i + 1);
	}
	tick(&m, 20000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	p = phase_at(s, 0, "step");
	assert_int_equal(p->count, 10000);
	assert_near(p->value[PHASE_WALL], 10);
	assert_near(p->value[PHASE_CPU], 5);
	assert_int_equal(s->phases->nr_repetitions, 4096);
	assert_int_equal(s->phases->left_out, 10000 - 4096);
	/* In a page, fewer. */
	buf_init(&text, 100 << 20);
	summary_json_brief(s, 500, &text);
	assert_non_null(strstr((char *)text.data, "\"number\": 500,"));
	assert_null(strstr((char *)text.data, "\"number\": 501,"));
	assert_non_null(strstr((char *)text.data, "\"phases_left_out\": 9500"));
	buf_release(&text);
	summary_free(s);
}

/* ---- nodes ---- */

static void test_nodes(void **state)
{
	const char *path[] = {NULL, NULL, NULL};
	char *name[3];
	const struct phase *p;
	struct summary *s;
	struct maker m;

	(void)state;
	for (int k = 0; k < 3; k++) {
		char text[20];

		snprintf(text, sizeof(text), "n%d.tacho", k);
		name[k] = strdup(file_in(text));
		path[k] = name[k];
		maker_open(&m, path[k],
			&(struct maker_options){.host = k ? "n2" : "n1",
				.interval_ns = SECOND,
				.start_wall_ns = (1000 + k) * SECOND});
		maker_join(&m, 0, 1, 100, 1, 0, false);
		maker_instance(&m, MAKER_ENERGY, 0, 0, "package-0", NULL);
		maker_set(&m, 0, "energy.used", 0);
		for (int64_t i = 0; i <= 10; i++) {
			if (i == 1 || i == 5)
				begin(&m, i * 1000, i == 1 ? "epoch 1" : "epoch 2");
			maker_set(&m, 0, "energy.used", i * 100000000);
			tick(&m, i * 1000);
			if (i == 3 || i == 7 + k)
				end(&m, i * 1000, i == 3 ? "epoch 1" : "epoch 2");
		}
		maker_finish(&m, NULL);
	}
	s = summary_of_paths(path, 3);
	p = phase_at(s, 0, "epoch");
	assert_int_equal(s->phases->nr, 1);
	assert_int_equal(p->count, 2);
	assert_int_equal(p->nodes, 2); /* two recordings are of one host */
	assert_int_equal(s->phases->nr_repetitions, 2);
	assert_near(p->value[PHASE_WALL], 6);		     /* the longest: 2 s and 4 s on the third */
	assert_near(p->value[PHASE_CPU], (4 + 5 + 6) / 2.0); /* added */
	assert_near(p->value[PHASE_CORES], 7.5 / 6);
	/* Two recordings of one host saw one meter. */
	assert_near(p->value[PHASE_ENERGY], 400 + 600);
	assert_near(s->phases->repetition[1].value[PHASE_CPU], (2 + 3 + 4) / 2.0);
	assert_near(p->begin_s, 1);
	assert_near(s->node[2].phases->phase[0].begin_s, 3);
	for (int k = 0; k < 3; k++)
		free(name[k]);
	summary_free(s);
}

static void test_found_by_name(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	begin(&m, 100, "epoch 1");
	end(&m, 200, "epoch 1");
	begin(&m, 300, "epoch 2");
	end(&m, 500, "epoch 2");
	tick(&m, 1000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(phases_find(s->phases, "epoch")->end_s, 0.5);
	assert_near(phases_find(s->phases, "epoch#2")->begin_s, 0.3);
	assert_near(phases_find(s->phases, "epoch 1")->end_s, 0.2);
	assert_null(phases_find(s->phases, "epoch#3"));
	assert_null(phases_find(s->phases, "epo"));
	summary_free(s);
}

static void test_none(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_job(&m, file);
	tick(&m, 0);
	end(&m, 100, "x");
	tick(&m, 1000);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_null(s->phases);
	summary_free(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_edges_take_their_share_of_a_tick),
		T(test_ticks_at_the_edges_make_it_exact),
		T(test_amounts_at_the_edges_are_marked),
		T(test_the_senders_time_counts),
		T(test_marks_of_processes_that_lived_in_it),
		T(test_names_that_differ_in_numbers),
		T(test_the_slow_one_and_why),
		T(test_what_explains_most_is_told),
		T(test_waiting_that_comes_with_the_work),
		T(test_how_much_slower),
		T(test_gpus_of_a_phase),
		T(test_which_gpus_are_of_a_phase),
		T(test_counters_of_a_phase),
		T(test_nested_and_overlapping),
		T(test_ranks_are_in_one_repetition),
		T(test_open_at_the_end),
		T(test_an_open_phase_ends_with_the_run),
		T(test_hostile),
		T(test_many_repetitions),
		T(test_nodes),
		T(test_found_by_name),
		T(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
