/* The counters of a job on films: whose are opened and how, that nobody is counted twice or lost, what is
 * said of what cannot be counted, and the rows that wishes make. */
#include "film_text.h"
#include "perf_lab.h"

#include "collect/perf.h"
#include "engine/engine.h"
#include "target/command.h"

#include <sys/wait.h>
#include <time.h>

#define MEMBERS 16

/* A job as the collector sees it, with the counters it asks for. */
struct job {
	struct lab lab; /* first: the callbacks find the job by it */
	struct perf_lab *pmu;
	struct collect_member member[MEMBERS];
	unsigned nr;
	struct plan plan;
	bool chosen[CHOICES_MAX], taken[8];
	struct metric metric[CHOICES_MAX];
	unsigned since;	 /* counters asked for earlier are not looked at */
	char told[2000]; /* "metric reason;" for each that was */
};

static struct job job;

static int job_members(
	struct collect_context *ctx, int (*fn)(void *arg, const struct collect_member *m), void *arg)
{
	struct job *j = (struct job *)ctx;
	int r = 0;

	for (unsigned i = 0; i < j->nr && !r; i++)
		if (j->member[i].pid)
			r = fn(arg, &j->member[i]);
	return r;
}

static void job_why(struct collect_context *ctx, size_t metric, enum availability availability,
	const char *reason, const char *remedy)
{
	struct job *j = (struct job *)ctx;
	size_t n = strlen(j->told);

	if (ctx->map.col[metric] < 0)
		return;
	snprintf(j->told + n, sizeof(j->told) - n, "%s %s: %.60s|%s;", j->metric[metric].name,
		availability_name(availability), reason, remedy ? "remedy" : "");
}

static struct collect_member *joins(pid_t pid, uint32_t origin)
{
	struct collect_member *m = &job.member[job.nr++];

	*m = (struct collect_member){.pid = pid,
		.id = job.nr,
		.origin = origin ? origin : job.nr,
		.groups = 1,
		.family = true,
		.born_ns = env_now(&job.pmu->env, ENV_MONOTONIC)};
	if (!job.lab.feed.root) {
		job.lab.feed.root = pid;
		job.lab.feed.root_id = m->id;
	}
	return m;
}

/* Words with commas; events likewise. 0, or the error with its message in told. */
static int plan_job(const char *const *word, size_t nr_words, const char *const *event, size_t nr_events)
{
	char err[256] = "";
	int r;

	for (size_t i = 0; i < nr_words; i++)
		if (!strcmp(word[i], "perf")) {
			job.taken[i] = true;
			memset(job.chosen, true, PERF_ROWS);
		}
	job.plan = (struct plan){.word = word,
		.nr_words = nr_words,
		.taken = job.taken,
		.event = event,
		.nr_events = nr_events,
		.chosen = job.chosen};
	r = job.lab.collector->plan(&job.pmu->env, &job.plan, err, sizeof(err));
	snprintf(job.told, sizeof(job.told), "%s", err);
	return r;
}

static void settle_rows(void)
{
	size_t nr = PERF_ROWS + job.plan.nr_metrics;
	int8_t col = 0;

	memcpy(job.metric, job.lab.collector->metric, PERF_ROWS * sizeof(struct metric));
	if (job.plan.nr_metrics)
		memcpy(job.metric + PERF_ROWS, job.plan.metric, job.plan.nr_metrics * sizeof(struct metric));
	for (size_t i = 0; i < nr; i++)
		job.lab.ctx.map.col[i] = (int8_t)(i >= PERF_ROWS || job.chosen[i] ? col++ : -1);
	table_release(&job.lab.table);
	assert_int_equal(table_init(&job.lab.table, (uint32_t)col, 1), 0);
	job.lab.ctx.plan = &job.plan;
	job.lab.ctx.members = job_members;
	job.lab.ctx.why = job_why;
	job.lab.ctx.children = true;
	job.lab.ctx.max_files = 1000;
}

static void make_job(struct env *film)
{
	memset(&job, 0, sizeof(job));
	job.pmu = perf_lab(film);
	lab_init(&job.lab, &job.pmu->env, "perf");
}

/* A job that asks for the static rows. */
static void begin(struct env *film)
{
	static const char *const perf[] = {"perf"};

	make_job(film);
	assert_int_equal(plan_job(perf, 1, NULL, 0), 0);
	settle_rows();
}

static void begin_with(struct env *film, const char *event)
{
	make_job(film);
	assert_int_equal(plan_job(NULL, 0, &event, 1), 0);
	settle_rows();
}

static void start(void)
{
	job.since = job.pmu->nr_asked;
	job.told[0] = 0;
	assert_int_equal(job.lab.collector->open(job.lab.state, &job.lab.ctx), 0);
	assert_int_equal(lab_sample(&job.lab), 0);
}

static void end(void)
{
	lab_release(&job.lab);
	assert_int_equal(job.pmu->nr_open, 0); /* every counter was closed */
	if (job.plan.free_own)
		job.plan.free_own(job.plan.own);
	env_free(&job.pmu->env);
}

static void turn_job(int second)
{
	assert_int_equal(env_sleep_until(&job.pmu->env, (100 + second) * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(&job.lab), 0);
}

static int64_t cell(const char *name)
{
	for (size_t i = 0; i < PERF_ROWS + job.plan.nr_metrics; i++) {
		int col = job.lab.ctx.map.col[i];

		if (strcmp(job.metric[i].name, name))
			continue;
		if (col < 0)
			fail_msg("%s is not recorded", name);
		return job.lab.table.valid[0] >> col & 1 ? table_row(&job.lab.table, 0)[col] : INVALID;
	}
	fail_msg("no metric %s", name);
	return 0;
}

/* How many counters were asked for of this task since then; those that are open. */
static unsigned asked(pid_t pid)
{
	unsigned nr = 0;

	for (unsigned i = job.since; i < job.pmu->nr_asked; i++)
		nr += job.pmu->asked[i].pid == pid;
	return nr;
}

static unsigned open_of(pid_t pid)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < job.pmu->nr_asked; i++)
		nr += job.pmu->asked[i].pid == pid && job.pmu->asked[i].handle >= 0;
	return nr;
}

/* ---- whose counters ---- */

#define TASKS                                        \
	"clock monotonic 100\n"                      \
	"dir proc/10/task/10\ndir proc/20/task/20\n" \
	"dir proc/20/task/21\ndir proc/30/task/30\n" \
	"dir proc/40/task/40\n"                      \
	"counter * * * -1 100 1000 1000\n"           \
	"counter 1 1 * -1 500 1000 1000\n" /* the task clock */

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
	assert_non_null(strstr(job.told, "perf.branches failed: somebody else"));
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

static void test_wishes_that_are_mistakes(void **state)
{
	static const struct {
		const char *event[2], *says;
	} mistake[] = {
		{{"cylces", NULL}, "did you mean 'cycles'"},
		{{"cycles=r3c", NULL}, "perf.cycles is another event"},
		{{"x=r01", "x=r02"}, "two events would be called perf.x"},
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
	bool before;
	int status;

	(void)state;
	assert_int_equal(command_prepare(&command), 0);
	assert_int_equal(command_start(&command, argv, NULL, NULL,
				 &(struct command_gate){look_at_gate, looks}, &before),
		0);
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
		cmocka_unit_test(test_only_what_is_asked_for_is_opened),
		cmocka_unit_test(test_events_of_ones_own),
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
