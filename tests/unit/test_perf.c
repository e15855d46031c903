/* The counters of a job on films: the rows that wishes make of them, and the engine's part. */
#include "perf_job.h"

#include "engine/engine.h"
#include "target/command.h"

#include <sys/wait.h>
#include <time.h>

/* ---- rows that wishes make ---- */

static void test_only_what_is_asked_for_is_opened(void **state)
{
	static const char *const event[] = {"page-faults"};

	(void)state;
	begin_with(film_text(TASKS), event[0]);
	assert_int_equal(job.plan.nr_metrics, 0); /* it is a static row */
	joins(10, 0);
	start();
	assert_int_equal(asked(10), 2); /* the task clock goes with it */
	assert_int_equal(cell("perf.page_faults"), 100);
	assert_int_equal(cell("perf.page_faults.running"), 1000);
	assert_int_equal(cell("perf.task_clock"), 500);
	assert_int_equal(job.lab.ctx.map.col[PERF_FIRST], -1);
	end();
}

static void test_events_of_ones_own(void **state)
{
	static const char *const event[] = {"r01c0", "stalls=r0a0e", "r01c0", "cycles", "instructions:u"};

	(void)state;
	make_job(film_text(TASKS "counter 4 0x1c0 * -1 44 1000 250\ncounter_error 4 0xa0e * -1 EINVAL\n"));
	assert_int_equal(plan_job(NULL, 0, event, ARRAY_SIZE(event)), 0);
	settle_rows();
	assert_int_equal(job.plan.nr_metrics, 6);
	assert_string_equal(job.metric[PERF_ROWS].help, "Event r01c0.");
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.r01c0"), 176);
	assert_int_equal(cell("perf.r01c0.running"), 250);
	assert_int_equal(cell("perf.stalls"), INVALID);
	assert_non_null(strstr(job.told, "perf.stalls absent: the kernel does not take this event"));
	assert_int_equal(cell("perf.instructions_u"), 100);
	assert_int_equal(cell("perf.cycles"), 100);
	assert_int_equal(asked(10), 5);
	end();
}

/* A job script runs on every kind of node: what one of them lacks is missing there, with its reason. */
static void test_events_that_the_machine_lacks(void **state)
{
	static const char *const event[] = {
		"fp=cpu/event=0xc7,umask=1/", "sched:sched_switch", "sched:sched_switch", "instructions:u"};

	(void)state;
	make_job(film_text(TASKS "file sys/bus/event_source/devices/msr/type\n|9\n"));
	assert_int_equal(plan_job(NULL, 0, event, ARRAY_SIZE(event)), 0);
	settle_rows();
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.fp"), INVALID);
	assert_non_null(strstr(job.told, "perf.fp absent: the processor's counters are not available here"));
	assert_int_equal(cell("perf.sched_sched_switch"), INVALID);
	assert_non_null(strstr(job.told, "perf.sched_sched_switch absent: tracepoints cannot be looked up"));
	assert_int_equal(cell("perf.instructions_u"), 100);
	end();
}

static void test_wishes_that_are_mistakes(void **state)
{
	static const struct {
		const char *event[2], *says;
	} mistake[] = {
		{{"cylces", NULL}, "did you mean 'cycles'"},
		{{"cycles=r3c", NULL}, "perf.cycles is another event"},
		{{"x=r01", "x=r02"}, "two events would be called perf.x"},
		{{"x=r01", "x=sched:sched_switch"}, "two events would be called perf.x"},
		{{"x=sched:sched_switch", "x=r01"}, "two events would be called perf.x"},
		{{"cycles=sched:sched_switch", NULL}, "perf.cycles is another event"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistake); i++) {
		make_job(film_text(TASKS));
		assert_int_equal(plan_job(NULL, 0, mistake[i].event, mistake[i].event[1] ? 2 : 1), -EINVAL);
		if (!strstr(job.told, mistake[i].says))
			fail_msg("'%s' instead of '%s'", job.told, mistake[i].says);
		settle_rows();
		end();
	}
}

static void test_more_than_there_is_room_for(void **state)
{
	static char text[40][16];
	const char *event[40];

	(void)state;
	for (int i = 0; i < 40; i++) {
		snprintf(text[i], sizeof(text[i]), "r%02x", i + 1);
		event[i] = text[i];
	}
	make_job(film_text(TASKS));
	assert_int_equal(plan_job(NULL, 0, event, 30), 0); /* 61 columns and the two of the task clock */
	assert_int_equal(job.plan.nr_metrics, 60);
	settle_rows();
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.r1e"), 100);
	end();
	for (size_t nr = 31; nr <= 40; nr += 9) {
		make_job(film_text(TASKS));
		assert_int_equal(plan_job(NULL, 0, event, nr), -EINVAL);
		assert_non_null(strstr(job.told, "at once"));
		settle_rows();
		end();
	}
}

#define IMC                                                                                    \
	"clock monotonic 100\ndir proc/10/task/10\ncounter 1 * * -1 1000 1000 1000\n"          \
	"file sys/bus/event_source/devices/uncore_imc_0/type\n|20\n"                           \
	"file sys/bus/event_source/devices/uncore_imc_0/cpumask\n|0,8\n"                       \
	"file sys/bus/event_source/devices/uncore_imc_0/format/event\n|config:0-7\n"           \
	"file sys/bus/event_source/devices/uncore_imc_0/events/reads\n|event=0x4\n"            \
	"file sys/bus/event_source/devices/uncore_imc_0/events/reads.scale\n|6.103515625e-5\n" \
	"file sys/bus/event_source/devices/uncore_imc_0/events/reads.unit\n|MiB\n"             \
	"file sys/bus/event_source/devices/uncore_imc_1/type\n|21\n"                           \
	"file sys/bus/event_source/devices/uncore_imc_1/cpumask\n|0,8\n"                       \
	"file sys/bus/event_source/devices/uncore_imc_1/format/event\n|config:0-7\n"           \
	"file sys/bus/event_source/devices/uncore_imc_1/events/reads\n|event=0x4\n"            \
	"file sys/bus/event_source/devices/uncore_imc_1/events/reads.scale\n|6.103515625e-5\n" \
	"file sys/bus/event_source/devices/uncore_imc_1/events/reads.unit\n|MiB\n"

static void test_events_of_the_node(void **state)
{
	(void)state;
	begin_with(film_text(IMC "counter 20 4 -1 0 1 10 10\ncounter 20 4 -1 8 2 10 5\n"
				 "counter 21 4 -1 * 10 10 10\n"),
		"reads=uncore_imc/reads/");
	assert_non_null(strstr(job.metric[PERF_ROWS].help, "of the whole node"));
	assert_int_equal(job.metric[PERF_ROWS].unit, UNIT_BYTES);
	joins(10, 0);
	start();
	assert_int_equal(asked(-1), 4); /* two boxes of two packages, and nothing of the task */
	assert_int_equal(asked(10), 1);
	/* One ran half of its time. Lines of 64 bytes. */
	assert_int_equal(cell("perf.reads"), (1 + 4 + 10 + 10) * 64);
	assert_int_equal(cell("perf.reads.running"), 1000 * 35 / 40); /* a share of the job's time */
	end();
	begin_with(film_text(IMC "counter_error 20 * * * EACCES\ncounter_error 21 * * * EACCES\n"),
		"reads=uncore_imc/reads/");
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.reads"), INVALID);
	assert_non_null(strstr(job.told, "perf.reads forbidden: only privileged users"));
	end();
}

/* Kinds of cores take turns with their task: their running times add up to one. */
static void test_kinds_of_cores(void **state)
{
	(void)state;
	begin_with(film_text("clock monotonic 100\ndir proc/10/task/10\ncounter 1 * * -1 900 1000 1000\n"
			     "file sys/bus/event_source/devices/cpu_core/type\n|4\n"
			     "file sys/bus/event_source/devices/cpu_core/cpus\n|0-3\n"
			     "file sys/bus/event_source/devices/cpu_atom/type\n|10\n"
			     "file sys/bus/event_source/devices/cpu_atom/cpus\n|4-7\n"
			     "counter 0 0x400000000 10 -1 70 1000 700\n"
			     "counter 0 0xa00000000 10 -1 30 1000 300\n"),
		"cycles");
	joins(10, 0);
	start();
	assert_int_equal(asked(10), 3);
	assert_int_equal(cell("perf.cycles"), 100 + 100);
	assert_int_equal(cell("perf.cycles.running"), 1000);
	end();
}

#define ZEN3                                                                            \
	TASKS "file proc/cpuinfo\n|vendor_id\t: AuthenticAMD\n|cpu family\t: 25\n"      \
	      "|model\t\t: 1\n|model name\t: AMD EPYC 7763\n|stepping\t: 1\n"           \
	      "file sys/bus/event_source/devices/cpu/type\n|4\n"                        \
	      "file sys/bus/event_source/devices/cpu/format/event\n|config:0-7,32-35\n" \
	      "file sys/bus/event_source/devices/cpu/format/umask\n|config:8-15\n"

/* The counters of its memory controllers. */
#define FABRIC                                                                             \
	"file sys/bus/event_source/devices/amd_df/type\n|11\n"                             \
	"file sys/bus/event_source/devices/amd_df/cpumask\n|0\n"                           \
	"file sys/bus/event_source/devices/amd_df/format/event\n|config:0-7,32-35,59-60\n" \
	"file sys/bus/event_source/devices/amd_df/format/umask\n|config:8-15\n"

static const struct plan_formula *formula(const char *name)
{
	for (size_t i = 0; i < job.plan.nr_formulas; i++)
		if (!strcmp(job.plan.formula[i].name, name))
			return &job.plan.formula[i];
	return NULL;
}

static void test_a_group_of_events(void **state)
{
	static const char *const word[] = {"flops"};

	(void)state;
	make_job(film_text(ZEN3 "counter 4 0xf03 * -1 4000 1000 500\n"));
	assert_int_equal(plan_job(word, 1, NULL, 0), 0);
	assert_true(job.taken[0]);
	settle_rows();
	joins(10, 0);
	start();
	/* Both groups have the event, which is counted once; what is told apart elsewhere has its reason. */
	assert_int_equal(asked(10), 2);
	assert_int_equal(cell("perf.fp_ops"), 8000);
	assert_non_null(strstr(job.told, "perf.flops_dp absent: Zen 3 counts operations"));
	assert_non_null(strstr(job.told, "perf.flops_sp absent: Zen 3 counts operations"));
	assert_int_equal(cell("perf.flops_dp"), INVALID);
	assert_non_null(formula("perf.flops"));
	assert_true(formula("perf.flops")->per_second && formula("perf.flops")->unit == UNIT_FLOP);
	assert_non_null(strstr(formula("perf.flops")->expression, "perf.fp_ops"));
	assert_non_null(strstr(formula("perf.flops")->help, "both precisions"));
	assert_int_equal(job.plan.nr_formulas, 1);
	end();
}

static void test_a_processor_that_is_not_known(void **state)
{
	static const char *const word[] = {"perf", "l3", "FLOPS_DP", "nonsense"};

	(void)state;
	make_job(film_text(TASKS "file proc/cpuinfo\n|vendor_id\t: Unheard\n|model name\t: Of\n"));
	assert_int_equal(plan_job(word, 4, NULL, 0), 0);
	assert_true(job.taken[1] && job.taken[2]);
	assert_false(job.taken[3]);
	settle_rows();
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.cycles"), 100); /* the generic events are counted */
	assert_int_equal(cell("perf.l3_bandwidth"), INVALID);
	assert_non_null(strstr(job.told, "perf.l3_bandwidth absent: "));
	assert_non_null(strstr(job.told, "perf.flops_dp absent: "));
	end();
}

/* Memory bandwidth is membw's; where that is not allowed or has nothing to count, what the cores tell of the
 * job must do. */
static void test_memory_bandwidth_by_proxy(void **state)
{
	static const char *const words[] = {"membw", "MEM"};
	static const char *const film[] = {ZEN3 FABRIC "counter_error * * -1 * EACCES\n",
		ZEN3 "counter * * -1 * 1 1 1\n", ZEN3 FABRIC "counter * * -1 * 1 1 1\n"};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < ARRAY_SIZE(film); k++) {
			bool allowed = k == 2;

			make_job(film_text(film[k]));
			assert_int_equal(plan_job(&words[i], 1, NULL, 0), 0);
			assert_int_equal(formula("perf.mem_proxy_bandwidth") != NULL, !allowed);
			assert_int_equal(job.chosen[PERF_ENABLED], !allowed);
			settle_rows();
			if (!allowed) {
				joins(10, 0);
				start();
				assert_int_equal(cell("perf.dram_fills"), 100);
				assert_int_equal(asked(-1), 0);
			}
			end();
		}
}

static void test_running_rows_go_with_their_events(void **state)
{
	(void)state;
	make_job(film_text(TASKS));
	job.chosen[PERF_FIRST + 3] = true; /* instructions.running */
	assert_int_equal(plan_job(NULL, 0, NULL, 0), 0);
	for (int i = 0; i < PERF_ROWS; i++)
		assert_int_equal(job.chosen[i],
			i == PERF_ENABLED || i == PERF_FIRST + 2 || i == PERF_FIRST + 3 ||
				i >= PERF_ROWS - 2);
	settle_rows();
	end();
	make_job(film_text(TASKS)); /* of nothing comes nothing */
	assert_int_equal(plan_job(NULL, 0, NULL, 0), 0);
	for (int i = 0; i < PERF_ROWS; i++)
		assert_false(job.chosen[i]);
	assert_null(job.plan.own);
	settle_rows();
	end();
}

/* ---- the engine's part ---- */

static int try_wishes(
	struct env *env, const char *words, const char *event, struct engine **ret, char err[256])
{
	struct engine_options o = {.interval_ns = NSEC_PER_SEC,
		.flush_ns = NSEC_PER_SEC,
		.budget = 1,
		.children = true,
		.max_members = 64,
		.max_files = 256,
		.metrics = &words,
		.nr_metrics = words != NULL,
		.events = &event,
		.nr_events = event != NULL};

	return engine_new(env, &o, ret, err, 256);
}

static bool records(const struct engine *e, const char *metric)
{
	uint32_t set, col;

	return schema_find(engine_schema(e), metric, &set, &col);
}

static void test_words_and_rows(void **state)
{
	static const struct {
		const char *words, *event, *has, *has_not;
		bool gate;
	} good[] = {
		{"none", NULL, NULL, "perf.cycles", false}, {"mem", NULL, "mem.total", "perf.enabled", false},
		{"perf", NULL, "perf.branch_misses.running", "perf.fp_ops", true},
		{"perf,-perf", NULL, NULL, "perf.enabled", false},
		{"cycles", NULL, "perf.cycles.running", "perf.instructions", true},
		{"flops", NULL, "perf.fp_ops.running", "perf.cycles", true},
		{"flops,-flops", NULL, NULL, "perf.fp_ops", false},
		{"flops,none", NULL, NULL, "perf.enabled", false},
		{"-flops", NULL, NULL, "perf.fp_ops", false},
		{"none", "r01c0", "perf.r01c0.running", "mem.total", true},
		{"MEM", NULL, "membw.read", "perf.cycles", false},
		{"none,memory", NULL, "mem.total", "gpu.clock.memory", false}, /* the collector alone */
	};
	static const struct {
		const char *words, *event, *says;
	} bad[] = {
		{"flosp", NULL, "did you mean 'flops'"},
		{"flops,nonsense_word", NULL, "no metric or group 'nonsense_word'"},
		{"-nonsense_word", NULL, "no metric or group 'nonsense_word'"},
		{"perf", "nonsense", "no event is called 'nonsense'"},
	};
	struct env *env = film_text(ZEN3 FABRIC "counter * * -1 * 1 1 1\n");
	struct engine *e;
	char err[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (try_wishes(env, good[i].words, good[i].event, &e, err) < 0)
			fail_msg("%s: %s", good[i].words, err);
		if ((good[i].has && !records(e, good[i].has)) || records(e, good[i].has_not) ||
			engine_wants_gate(e) != good[i].gate)
			fail_msg("%s", good[i].words);
		assert_int_equal(engine_formula(e, 0) != NULL, good[i].has && strstr(good[i].has, "fp_ops"));
		engine_free(e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(try_wishes(env, bad[i].words, bad[i].event, &e, err), -EINVAL);
		if (!strstr(err, bad[i].says))
			fail_msg("'%s' instead of '%s'", err, bad[i].says);
	}
	env_free(env);
}

static void look_at_gate(void *arg, pid_t pid)
{
	struct timespec pause = {.tv_nsec = 30 * NSEC_PER_MSEC};
	char path[32];
	FILE *file;

	nanosleep(&pause, NULL);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(arg, 1, 3, file) > 0);
	fclose(file);
}

/* It has its PID, and is still what we are. */
static void test_the_command_waits_at_the_gate(void **state)
{
	char *argv[] = {"sh", "-c", "exit 7", NULL};
	char looks[4] = "";
	struct command command;
	int status;

	(void)state;
	assert_int_equal(command_prepare(&command), 0);
	assert_int_equal(
		command_start(&command, argv, NULL, NULL, &(struct command_gate){look_at_gate, looks}), 0);
	assert_int_equal(command_confirm(&command), 0);
	assert_int_equal(waitpid(command.pid, &status, 0), command.pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_string_not_equal(looks, "sh");
	command_release(&command);
	sigprocmask(SIG_SETMASK, &command.mask, NULL);
}

/* Whatever call fails, nothing stays open and nothing is touched that is not there. */
static void test_every_call_may_fail(void **state)
{
	static const int error[] = {-EIO, -EACCES, -EMFILE, -ESRCH, -EINVAL};

	(void)state;
	for (unsigned nth = 1; nth <= 160; nth++) {
		const char *event = "reads=uncore_imc/reads/";
		struct env *film = film_text(IMC "counter 20 4 -1 * 1 10 10\ncounter 21 4 -1 * 10 10 10\n");

		make_job(env_failing(film, nth, error[nth % ARRAY_SIZE(error)]));
		if (plan_job(NULL, 0, &event, 1) == 0) {
			settle_rows();
			job.lab.collector->before_exec(job.lab.state, &job.lab.ctx, 10);
			joins(10, 0);
			joins(20, 0);
			if (job.lab.collector->open(job.lab.state, &job.lab.ctx) == 0) {
				lab_sample(&job.lab);
				job.member[1].pid = 0;
				lab_sample(&job.lab);
			}
		} else {
			settle_rows();
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_is_asked_for_is_opened),
		cmocka_unit_test(test_events_of_ones_own),
		cmocka_unit_test(test_events_that_the_machine_lacks),
		cmocka_unit_test(test_wishes_that_are_mistakes),
		cmocka_unit_test(test_more_than_there_is_room_for),
		cmocka_unit_test(test_events_of_the_node),
		cmocka_unit_test(test_kinds_of_cores),
		cmocka_unit_test(test_a_group_of_events),
		cmocka_unit_test(test_a_processor_that_is_not_known),
		cmocka_unit_test(test_memory_bandwidth_by_proxy),
		cmocka_unit_test(test_running_rows_go_with_their_events),
		cmocka_unit_test(test_words_and_rows),
		cmocka_unit_test(test_the_command_waits_at_the_gate),
		cmocka_unit_test(test_every_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
