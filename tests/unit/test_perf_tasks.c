/* Whose counters are opened and how, that nobody is counted twice or lost, and what is said of what cannot be
 * counted. */
#include "perf_job.h"

/* ---- whose counters ---- */

static void test_our_command(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter 0 0 * -1 100 1000 1000\nframe 1\ncounter 0 0 * -1 300 2000 "
			      "1500\ncounter 1 1 * -1 900 2000 2000\n"));
	assert_int_equal(job.lab.collector->before_exec(job.lab.state, &job.lab.ctx, 10), 0);
	assert_int_equal(asked(10), PERF_STATIC);
	for (unsigned i = 0; i < job.pmu->nr_asked; i++) {
		const struct perf_event_attr *a = &job.pmu->asked[i].attr;

		if (job.pmu->asked[i].pid != 10)
			continue;
		assert_true(a->inherit && a->enable_on_exec && a->disabled && !a->inherit_thread);
		assert_int_equal(job.pmu->asked[i].cpu, -1);
	}
	joins(10, 0);
	joins(20, 1); /* its child, threads and all */
	start();
	assert_int_equal(job.pmu->nr_asked, job.since); /* nobody else needs any */
	assert_string_equal(about(&job.lab, "job"), "counts=user and kernel;how=inherited;");
	assert_int_equal(cell("perf.cycles"), 100);
	assert_int_equal(cell("perf.task_clock"), 500);
	joins(30, 1); /* a grandchild, an orphan that came home */
	job.member[0].pid = 0;
	turn_job(1);
	assert_int_equal(job.pmu->nr_asked, job.since);
	/* The command is gone and the counter goes on; it took turns. */
	assert_int_equal(cell("perf.cycles"), 100 + 400);
	assert_int_equal(cell("perf.cycles.running"), 1500);
	assert_int_equal(cell("perf.enabled"), 2000);
	assert_int_equal(cell("perf.task_clock"), 900);
	/* For a moment nobody is there; what comes home then is below the same counters. */
	job.member[1].pid = job.member[2].pid = 0;
	assert_int_equal(lab_sample(&job.lab), 0);
	joins(40, 1);
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(open_of(10), PERF_STATIC);
	assert_int_equal(asked(40), 0);
	end();
}

static void test_threads_of_a_running_process(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter 0 1 21 -1 7 1000 1000\n"
			      "frame 1\ndir proc/20/task/22\n"));
	joins(20, 0);
	start();
	assert_int_equal(open_of(20), PERF_STATIC);
	assert_int_equal(open_of(21), PERF_STATIC);
	assert_int_equal(job.pmu->asked[1].pid, 20); /* the main thread first, after the trial of ourselves */
	for (unsigned i = 0; i < job.pmu->nr_asked; i++)
		if (job.pmu->asked[i].pid >= 20)
			assert_true(job.pmu->asked[i].attr.inherit && !job.pmu->asked[i].attr.disabled &&
				!job.pmu->asked[i].attr.enable_on_exec);
	assert_string_equal(about(&job.lab, "job"), "counts=user and kernel;how=threads;");
	assert_int_equal(cell("perf.instructions"), 100 + 7);
	assert_int_equal(cell("perf.enabled"), 2000);
	turn_job(1);
	assert_int_equal(asked(22), 0); /* made by one that has counters */
	end();
}

/* Readings may have a hundredth of the time; the last one is due whatever it takes. */
static void test_dear_readings(void **state)
{
	unsigned due, reads = 0;

	(void)state;
	begin(film_text(TASKS "frame 1\nframe 2\nframe 30\nframe 31\n"));
	joins(20, 0);
	start();
	due = job.pmu->nr_reads;
	assert_int_equal(due, 2 * PERF_STATIC);
	job.pmu->read_ns = 10 * NSEC_PER_SEC / 1000 / PERF_STATIC;
	turn_job(1); /* one that took long may have been interrupted */
	assert_int_equal(job.pmu->nr_reads, due += 2 * PERF_STATIC);
	turn_job(2);
	assert_int_equal(job.pmu->nr_reads, due += 2 * PERF_STATIC);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(lab_sample(&job.lab), 0);
		reads += job.pmu->nr_reads != due;
	}
	assert_int_equal(reads, 0);
	turn_job(30);
	assert_int_equal(job.pmu->nr_reads, due += 2 * PERF_STATIC);
	job.lab.ctx.last = true;
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(job.pmu->nr_reads, due + 2 * PERF_STATIC);
	end();
}

/* Threads that come while counters are opened may have them or not: all are opened again, once each. */
static void test_threads_that_come_meanwhile(void **state)
{
	(void)state;
	begin(film_text(TASKS));
	joins(20, 0);
	job.pmu->busy = "proc/20/task";
	job.pmu->most_born = 2;
	start();
	assert_int_equal(job.pmu->nr_born, 2);
	for (pid_t tid = 20; tid <= 21; tid++)
		assert_int_equal(open_of(tid), PERF_STATIC);
	for (pid_t tid = 1000; tid <= 1001; tid++)
		assert_int_equal(open_of(tid), PERF_STATIC);
	assert_int_equal(job.pmu->nr_open, 4 * PERF_STATIC);
	end();
	/* One that never rests is counted as far as it can be. */
	begin(film_text(TASKS));
	joins(20, 0);
	job.pmu->busy = "proc/20/task";
	job.pmu->most_born = 1000;
	start();
	assert_in_range(job.pmu->nr_born, 2, 10);
	assert_int_equal(open_of(20), PERF_STATIC);
	assert_int_equal(open_of(1000), PERF_STATIC);
	assert_int_equal(open_of(1000 + (pid_t)job.pmu->nr_born - 1), 0);
	assert_int_equal(job.pmu->nr_open, (1 + job.pmu->nr_born) * PERF_STATIC);
	end();
}

static void test_who_is_covered(void **state)
{
	struct collect_member *m;

	(void)state;
	begin(film_text(TASKS "counter 0 0 40 -1 100 1000 1000\n"
			      "frame 1\nframe 2\ncounter 0 0 40 -1 555 2000 2000\nframe 3\n"
			      "counter 0 0 40 -1 600 3000 3000\nframe 4\n"));
	joins(10, 0);
	joins(20, 1); /* known together with its parent: born before that was covered */
	start();
	assert_int_equal(open_of(10), PERF_STATIC);
	assert_int_equal(open_of(20) + open_of(21), 2 * PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 300);
	turn_job(1);
	joins(30, 1); /* born since */
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(asked(30), 0);
	joins(40, 0); /* of another line: a target of its own, came late */
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(open_of(40), PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 400);
	/* 10 and 20 are gone, 30 may be below either: their counters stay. */
	job.member[0].pid = job.member[1].pid = 0;
	turn_job(2);
	assert_int_equal(open_of(10) + open_of(20), 2 * PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 300 + 555);
	/* With the last of its line all is closed, and kept. */
	job.member[2].pid = job.member[3].pid = 0;
	turn_job(3);
	assert_int_equal(job.pmu->nr_open, 0);
	assert_int_equal(cell("perf.cycles"), 300 + 600); /* to its very end */
	/* Another takes the place, and the PID. */
	m = joins(40, 0);
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(cell("perf.cycles"), 300 + 600 + 600);
	m->pid = 0;
	turn_job(4);
	assert_int_equal(cell("perf.cycles"), 300 + 600 + 600);
	assert_int_equal(job.pmu->nr_open, 0);
	end();
}

static void test_born_before_its_parent_was_covered(void **state)
{
	(void)state;
	begin(film_text(TASKS "frame 1\n"));
	joins(10, 0);
	start();
	turn_job(1);
	joins(20, 1)->born_ns = 100 * NSEC_PER_SEC - 20 * NSEC_PER_MSEC; /* heard of late */
	joins(30, 1)->born_ns = 100 * NSEC_PER_SEC - 5 * NSEC_PER_MSEC;	 /* as far as clock ticks tell */
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(open_of(20), PERF_STATIC);
	assert_int_equal(asked(30), 0);
	end();
}

static void test_without_children(void **state)
{
	(void)state;
	begin(film_text(TASKS));
	joins(10, 0)->family = false;
	joins(20, 1)->family = false; /* a tool that a tool started: each for itself */
	start();
	for (unsigned i = 1; i < job.pmu->nr_asked; i++)
		assert_true(job.pmu->asked[i].attr.inherit && job.pmu->asked[i].attr.inherit_thread);
	joins(30, 1)->family = false;
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(open_of(30), PERF_STATIC);
	end();
	begin(film_text(TASKS));
	job.lab.ctx.children = false;
	assert_int_equal(job.lab.collector->before_exec(job.lab.state, &job.lab.ctx, 10), 0);
	assert_int_equal(open_of(10), PERF_STATIC);
	for (unsigned i = 1; i < job.pmu->nr_asked; i++)
		assert_true(job.pmu->asked[i].attr.inherit_thread || job.pmu->asked[i].pid != 10);
	end();
}

static int refuse_threads(struct env *env, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return attr->inherit_thread ? -EINVAL : perf_lab_counter_open(env, attr, pid, cpu);
}

/* Before Linux 5.13. */
static void test_a_kernel_that_cannot_keep_to_threads(void **state)
{
	struct env_ops ops;

	(void)state;
	begin(film_text(TASKS));
	ops = *job.pmu->env.ops;
	ops.counter_open = refuse_threads;
	job.pmu->env.ops = &ops;
	joins(20, 0)->family = false;
	start();
	assert_int_equal(open_of(20) + open_of(21), 2 * PERF_STATIC);
	for (unsigned i = 0; i < job.pmu->nr_asked; i++)
		assert_false(job.pmu->asked[i].attr.inherit);
	assert_non_null(strstr(job.told, "perf.enabled failed: threads that started later"));
	assert_int_equal(cell("perf.cycles"), 200);
	end();
}

static void test_a_process_that_is_gone(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter_error * * 20 * ESRCH\n"));
	joins(20, 0); /* its main thread has ended, the other has not */
	joins(50, 0); /* nothing of it is left */
	start();
	assert_int_equal(open_of(21), PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 100);
	assert_string_equal(job.told, "");
	end();
}

/* ---- what cannot be counted ---- */

static void test_no_room(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter_error 1 3 21 * EMFILE\n"));
	joins(20, 0);
	joins(30, 0);
	start();
	assert_int_equal(open_of(20), PERF_STATIC);
	assert_int_equal(open_of(21), 0); /* all or nothing */
	assert_int_equal(open_of(30), PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 200);
	assert_non_null(strstr(job.told, "perf.enabled failed: some threads are not counted"));
	assert_null(strstr(job.told, "perf.cycles"));
	end();
	begin(film_text(TASKS));
	job.lab.ctx.max_files = 2 * PERF_STATIC;
	joins(20, 0);
	joins(30, 0);
	start();
	assert_int_equal(job.pmu->nr_open, 2 * PERF_STATIC);
	assert_int_equal(asked(30), 0);
	assert_non_null(strstr(job.told, "some threads are not counted"));
	/* There is room again. */
	job.member[0].pid = 0;
	assert_int_equal(lab_sample(&job.lab), 0);
	joins(40, 0);
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_int_equal(open_of(40), PERF_STATIC);
	assert_int_equal(cell("perf.cycles"), 300);
	end();
}

static void test_a_machine_without_a_pmu(void **state)
{
	(void)state;
	begin(film_text("clock monotonic 100\ndir proc/10/task/10\ndir proc/20/task/20\n"
			"counter 1 * * -1 5 10 10\n"
			"counter_error 0 2 * * EOPNOTSUPP\ncounter_error 0 4 * * EBUSY\n"));
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.page_faults"), 5);
	assert_int_equal(cell("perf.cycles"), INVALID);
	assert_int_equal(cell("perf.cycles.running"), INVALID);
	assert_non_null(strstr(job.told, "perf.cycles absent: the processor's counters"));
	assert_non_null(strstr(job.told, "perf.cache_references absent: the processor or its driver"));
	assert_non_null(strstr(job.told, "perf.branches failed: another program"));
	assert_null(strstr(job.told, "perf.page_faults"));
	/* Said once, tried once. */
	job.told[0] = 0;
	job.since = job.pmu->nr_asked;
	joins(20, 0);
	assert_int_equal(lab_sample(&job.lab), 0);
	assert_string_equal(job.told, "");
	assert_int_equal(asked(20), 4);
	for (unsigned i = job.since; i < job.pmu->nr_asked; i++)
		assert_int_equal(job.pmu->asked[i].attr.type, PERF_TYPE_SOFTWARE);
	end();
}

static void test_user_mode_alone(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter 0:u 0 * -1 60 1000 1000\ncounter_error *:uk * * * EACCES\n"));
	joins(10, 0);
	start();
	assert_string_equal(about(&job.lab, "job"), "counts=user;how=threads;");
	assert_int_equal(cell("perf.cycles"), 60);
	assert_int_equal(cell("perf.task_clock"), 500);
	/* They happen in the kernel: rather no value than 0. */
	assert_int_equal(cell("perf.context_switches"), INVALID);
	assert_int_equal(cell("perf.migrations"), INVALID);
	assert_non_null(strstr(job.told,
		"perf.context_switches forbidden: it happens in the kernel, and only "
		"user mode may be counted|remedy"));
	assert_int_equal(asked(10), PERF_STATIC - 2); /* without trying the other mode again and again */
	end();
}

static void test_processes_of_others(void **state)
{
	(void)state;
	begin(film_text(TASKS "counter_error * * 30 * EACCES\n"));
	joins(30, 0);
	joins(10, 0);
	start();
	assert_int_equal(cell("perf.cycles"), 100);
	assert_non_null(strstr(job.told, "perf.enabled forbidden: some processes may not be counted"));
	end();
	begin(film_text(TASKS "counter_error * * 30 * EACCES\n"));
	joins(30, 0);
	start();
	assert_int_equal(cell("perf.cycles"), INVALID);
	assert_int_equal(cell("perf.enabled"), INVALID);
	assert_non_null(strstr(job.told, "perf.cycles forbidden"));
	end();
}

static void test_probe(void **state)
{
	struct trouble why = {0};
	static const struct {
		const char *film;
		int result;
	} kernel[] = {
		{"counter 1 1 * * 1 1 1\n", 0},
		{"counter 1:u 1 * * 1 1 1\ncounter_error *:uk * * * EACCES\n", 0},
		{"counter_error * * * * EACCES\nfile proc/sys/kernel/perf_event_paranoid\n|3\n", -EACCES},
		{"counter_error * * * * ENOSYS\n", -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernel); i++) {
		struct env *env = film_text(kernel[i].film);

		assert_int_equal(collector_find("perf")->probe(env, &why), kernel[i].result);
		assert_int_equal(why.reason != NULL, kernel[i].result != 0);
		env_free(env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_our_command),
		cmocka_unit_test(test_threads_of_a_running_process),
		cmocka_unit_test(test_dear_readings),
		cmocka_unit_test(test_threads_that_come_meanwhile),
		cmocka_unit_test(test_who_is_covered),
		cmocka_unit_test(test_born_before_its_parent_was_covered),
		cmocka_unit_test(test_without_children),
		cmocka_unit_test(test_a_kernel_that_cannot_keep_to_threads),
		cmocka_unit_test(test_a_process_that_is_gone),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_a_machine_without_a_pmu),
		cmocka_unit_test(test_user_mode_alone),
		cmocka_unit_test(test_processes_of_others),
		cmocka_unit_test(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
