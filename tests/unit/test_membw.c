/* Memory bandwidth on machines with two sockets: boxes added up, counters that take turns, boxes that fail,
 * and why there is nothing where there is nothing. */
#include "event_machines.h"
#include "perf_lab.h"

/* Type, config, CPU, and what the counter shows. */
#define COUNTER(type, config, cpu, value) "counter " type " " config " -1 " cpu " " value " 1000 1000\n"
#define READ "0x1e1"
#define WRITE "0x2e2"

/* What the boxes of both sockets show at the start: reads 1 2 3 4, writes 10 20 30 40. */
#define START                           \
	COUNTER("14", READ, "0", "1")   \
	COUNTER("15", READ, "0", "2")   \
	COUNTER("14", READ, "4", "3")   \
	COUNTER("15", READ, "4", "4")   \
	COUNTER("14", WRITE, "0", "10") \
	COUNTER("15", WRITE, "0", "20") COUNTER("14", WRITE, "4", "30") COUNTER("15", WRITE, "4", "40")

static void open_film(struct lab *lab, const char *file, const char *more)
{
	const struct event_machine *m = event_machine_of(file);

	assert_non_null(m);
	open_machine(lab, "membw", event_machine_film(m, false, more));
}

static void test_boxes_add_up_to_their_socket(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "skylake-x",
		START "frame 1\n" COUNTER("14", READ, "0", "101")
			COUNTER("15", WRITE, "4", "1040") "frame 2\n");
	assert_int_equal(nr_instances(&lab), 2);
	assert_int_equal(value(&lab, "socket-0", "membw.read"), 3 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.read"), 7 * 64);
	assert_int_equal(value(&lab, "socket-0", "membw.write"), 30 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.write"), 70 * 64);
	assert_int_equal(value(&lab, "socket-0", "membw.both"), INVALID);
	assert_string_equal(about(&lab, "socket-0"), "events=skylake-x (built in);");
	assert_int_equal(availability(&lab, "membw.read"), AVAILABLE);
	assert_int_equal(availability(&lab, "membw.both"), ABSENT);
	assert_string_equal(lab.why, "reading and writing are counted apart here: membw.read, membw.write");
	turn(&lab, 1);
	assert_int_equal(value(&lab, "socket-0", "membw.read"), 103 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.read"), 7 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.write"), 1070 * 64);
	close_machine(&lab);
}

/* For everybody, on a CPU of the box's list, in all modes: drivers of boxes refuse anything else. */
static void test_what_the_kernel_is_asked_for(void **state)
{
	struct perf_lab *perf = perf_lab(event_machine_film(event_machine_of("skylake-x"), false, START));
	static struct lab lab;

	(void)state;
	open_machine(&lab, "membw", &perf->env);
	assert_int_equal(perf->nr_asked, 8);
	for (unsigned i = 0; i < perf->nr_asked; i++) {
		const struct asked_counter *a = &perf->asked[i];

		assert_int_equal(a->pid, -1);
		assert_int_equal(a->cpu, i % 2 ? 4 : 0);
		assert_int_equal(a->attr.type, 14 + i / 2 % 2);
		assert_int_equal(a->attr.config, i < 4 ? 0x1e1 : 0x2e2);
		assert_false(a->attr.exclude_kernel || a->attr.exclude_user || a->attr.exclude_hv);
		assert_false(a->attr.inherit || a->attr.enable_on_exec || a->attr.disabled);
	}
	lab_release(&lab);
	assert_int_equal(perf->nr_open, 0);
	env_free(&perf->env);
}

static void test_what_is_not_recorded_is_not_opened(void **state)
{
	struct perf_lab *perf = perf_lab(event_machine_film(event_machine_of("skylake-x"), false, START));
	static struct lab lab;

	(void)state;
	lab_init(&lab, &perf->env, "membw");
	lab.ctx.map.col[index_of(&lab, "membw.write")] = -1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(perf->nr_asked, 4);
	assert_int_equal(value(&lab, "socket-1", "membw.read"), 7 * 64);
	lab_release(&lab);
	env_free(&perf->env);
}

/* Eight channels on four counters: each ran half of the time, and counted half of what was. */
static void test_channels_that_take_turns_are_scaled(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "zen2",
		"counter 11 * -1 0 0 0 0\ncounter 11 * -1 4 7 2000 1000\n"
		"frame 1\ncounter 11 * -1 0 100 1000 500\ncounter 11 * -1 4 7 3000 1000\n"
		"frame 2\ncounter 11 * -1 0 160 2000 1000\ncounter 11 * -1 4 27 4000 2000\nframe 3\n");
	assert_int_equal(nr_instances(&lab), 2);
	assert_int_equal(value(&lab, "socket-0", "membw.both"), 0);
	assert_int_equal(value(&lab, "socket-1", "membw.both"), 8 * 14 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.read"), INVALID);
	assert_int_equal(availability(&lab, "membw.read"), ABSENT);
	turn(&lab, 1);
	assert_int_equal(value(&lab, "socket-0", "membw.both"), 8 * 200 * 64);
	/* It had no turn: what happened is told later. */
	assert_int_equal(value(&lab, "socket-1", "membw.both"), 8 * 14 * 64);
	turn(&lab, 2);
	assert_int_equal(value(&lab, "socket-0", "membw.both"), 8 * 320 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.both"), 8 * (14 + 40) * 64);
	close_machine(&lab);
}

/* What is said of membw.read. */
static const char *why_nothing(const struct event_machine *m, const char *more, enum availability want)
{
	static struct lab lab;
	static char why[420];

	lab_init(&lab, event_machine_film(m, false, more), "membw");
	for (size_t i = 1; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab.whys, 1);
	assert_int_equal(nr_instances(&lab), 0);
	assert_int_equal(availability(&lab, "membw.read"), want);
	snprintf(why, sizeof(why), "%s: %s", lab.why, lab.remedy);
	close_machine(&lab);
	return why;
}

static char why_read[420];

static void keep_why_of_read(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	(void)ctx;
	(void)availability;
	if (metric == 0)
		snprintf(why_read, sizeof(why_read), "%s: %s", reason, remedy ? remedy : "");
}

/* What is said of membw.read where all rows are recorded. */
static const char *why_of_read(const struct event_machine *m, const char *more)
{
	static struct lab lab;

	lab_init(&lab, event_machine_film(m, false, more), "membw");
	lab.ctx.why = keep_why_of_read;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	close_machine(&lab);
	return why_read;
}

static void test_without_rights_the_remedy_is_told(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "skylake-x", "counter_error * * * * EACCES\n");
	assert_int_equal(nr_instances(&lab), 0);
	assert_int_equal(availability(&lab, "membw.read"), FORBIDDEN);
	assert_int_equal(availability(&lab, "membw.write"), FORBIDDEN);
	assert_int_equal(availability(&lab, "membw.both"), ABSENT);
	close_machine(&lab);
	/* Of what was asked for the first row's reason is told: it leads to the remedy, too. */
	open_film(&lab, "zen3", "counter_error * * * * EACCES\n");
	assert_int_equal(availability(&lab, "membw.both"), FORBIDDEN);
	assert_int_equal(availability(&lab, "membw.read"), ABSENT);
	close_machine(&lab);
	assert_string_equal(why_of_read(event_machine_of("zen3"), "counter_error * * * * EACCES\n"),
		"reading and writing are counted together here: membw.both; only privileged users may count "
		"for the whole node: sudo sysctl kernel.perf_event_paranoid=0");
	assert_non_null(
		strstr(why_nothing(event_machine_of("skylake-x"), "counter_error * * * * EPERM\n", FORBIDDEN),
			"only privileged users may count for the whole node: sudo sysctl "
			"kernel.perf_event_paranoid=0"));
}

static void test_a_box_that_fails_is_told(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "skylake-x", START "counter_error 15 0x1e1 -1 4 EBUSY\n");
	assert_int_equal(nr_instances(&lab), 2);
	assert_string_equal(about(&lab, "socket-0"), "events=skylake-x (built in);");
	assert_string_equal(about(&lab, "socket-1"),
		"events=skylake-x (built in);incomplete=1 of 4 counters of memory channels could not be "
		"opened;");
	assert_int_equal(value(&lab, "socket-1", "membw.read"), 3 * 64);
	assert_int_equal(availability(&lab, "membw.read"), AVAILABLE);
	close_machine(&lab);
}

static void test_a_sum_without_a_part_is_no_sum(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "skylake-x",
		START "frame 1\ncounter_error 14 " READ
		      " -1 0 EIO\nframe 2\n" COUNTER("14", READ, "0", "51") "frame 3\n");
	turn(&lab, 1);
	assert_int_equal(value(&lab, "socket-0", "membw.read"), INVALID);
	assert_int_equal(value(&lab, "socket-0", "membw.write"), 30 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.read"), 7 * 64);
	turn(&lab, 2);
	assert_int_equal(value(&lab, "socket-0", "membw.read"), 53 * 64);
	close_machine(&lab);
}

static void test_machines_without_counters_say_why(void **state)
{
	static const struct event_machine vm = {NULL, "GenuineIntel", 6, 0x55, 4, {&intel_core}};
	static const struct event_machine zen3_vm = {NULL, "AuthenticAMD", 0x19, 0x01, 1, {&amd_core}};
	static const struct event_machine altra = {NULL, NULL, 8, 0xd0c, 1, {&arm_core}};
	static const struct event_machine zen6 = {NULL, "AuthenticAMD", 26, 0x50, 0, {&amd_core}};

	(void)state;
	assert_non_null(strstr(why_nothing(&vm, "", ABSENT),
		"the kernel shows no counters of the memory controllers, as in a virtual machine: "));
	assert_non_null(strstr(
		why_of_read(&zen3_vm, ""), "as in a virtual machine: this machine has no PMU 'amd_df'"));
	assert_non_null(strstr(why_nothing(&altra, "", ABSENT), "PMUs of the system's maker"));
	assert_non_null(strstr(
		why_nothing(&zen6, "", ABSENT), "no event file for AuthenticAMD family 26 model 80 (zen6)"));
	assert_non_null(strstr(
		why_nothing(&vm, "variable TACHO_EVENTS=/mine\nfile mine/a.txt\n|cpu skylake-x\n|nonsense\n",
			FAILED),
		"/mine/a.txt, line 2: nonsense"));
}

static void test_a_kernel_without_counters(void **state)
{
	struct env *env = film_text("clock monotonic 100\n");
	struct trouble why = {0};

	(void)state;
	assert_int_equal(collector_find("membw")->probe(env, &why), -ENOENT);
	assert_string_equal(why.reason, "this kernel has no performance counters");
	env_free(env);
}

/* A server of tomorrow: the kernel knows its events, and calls them as always. */
static void test_an_unknown_processor_with_the_usual_names(void **state)
{
	static const struct event_machine next = {NULL, "GenuineIntel", 6, 0xfe, 0, {&intel_core, &imc_0}};
	static struct lab lab;

	(void)state;
	open_machine(&lab, "membw", event_machine_film(&next, false, START));
	assert_int_equal(value(&lab, "socket-0", "membw.read"), 1 * 64);
	assert_int_equal(value(&lab, "socket-1", "membw.write"), 30 * 64);
	assert_string_equal(about(&lab, "socket-0"), "events=unknown (built in);");
	close_machine(&lab);
}

static void test_grace_counts_reads_and_writes_in_other_units(void **state)
{
	static struct lab lab;

	(void)state;
	open_film(&lab, "neoverse-v2", COUNTER("18", "0xe1", "0", "10") COUNTER("18", "0xe2", "0", "5000"));
	assert_int_equal(value(&lab, "socket-0", "membw.read"), 320);
	assert_int_equal(value(&lab, "socket-0", "membw.write"), 5000);
	close_machine(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boxes_add_up_to_their_socket),
		cmocka_unit_test(test_what_the_kernel_is_asked_for),
		cmocka_unit_test(test_what_is_not_recorded_is_not_opened),
		cmocka_unit_test(test_channels_that_take_turns_are_scaled),
		cmocka_unit_test(test_without_rights_the_remedy_is_told),
		cmocka_unit_test(test_a_box_that_fails_is_told),
		cmocka_unit_test(test_a_sum_without_a_part_is_no_sum),
		cmocka_unit_test(test_machines_without_counters_say_why),
		cmocka_unit_test(test_a_kernel_without_counters),
		cmocka_unit_test(test_an_unknown_processor_with_the_usual_names),
		cmocka_unit_test(test_grace_counts_reads_and_writes_in_other_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
