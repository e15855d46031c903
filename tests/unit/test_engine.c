/* The engine on the live kernel and on films: who joins, who leaves, what they used, which ticks are taken.
 */
#include "collect_lab.h"
#include "engine/internal.h"
#include "target/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

/* A sink that remembers. */
struct witness {
	struct engine *engine;
	unsigned instances, gone, ticks, clock_steps;
	unsigned backoffs;
	int64_t aside_ns; /* CPU time that the command spends on what the job tells, each time it looks */
	int64_t last_tick_ns;
	uint64_t last_number;
	struct {
		int64_t pid;
		char name[64], how[16];
		int64_t status, cpu_ns, sampled;
		bool ended;
		uint32_t id;
	} process[4096];
	unsigned nr;
	double cell[2][64]; /* the last values of the sets tree and self */
};

static struct witness witness;

static void copy_text(char *to, size_t size, const struct pairs *p, const char *key)
{
	const struct pair *pair = pairs_find(p, key);

	snprintf(to, size, "%.*s", pair ? (int)pair->len : 0, pair ? pair->value : "");
}

static void on_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *p)
{
	struct witness *w = arg;

	(void)row;
	(void)time_ns;
	w->instances++;
	if (engine_schema(w->engine)->set[set].domain != DOMAIN_PROCESS)
		return;
	for (unsigned i = 0; i < w->nr; i++)
		if (w->process[i].id == id) {
			copy_text(w->process[i].name, 64, p, "name");
			return;
		}
	assert_true(w->nr < ARRAY_SIZE(w->process));
	w->process[w->nr].id = id;
	assert_true(pairs_get_num(p, "pid", &w->process[w->nr].pid));
	copy_text(w->process[w->nr++].name, 64, p, "name");
}

static void on_gone(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *p)
{
	struct witness *w = arg;

	(void)row;
	(void)time_ns;
	w->gone++;
	if (engine_schema(w->engine)->set[set].domain != DOMAIN_PROCESS)
		return;
	for (unsigned i = 0; i < w->nr; i++)
		if (w->process[i].id == id) {
			assert_false(w->process[i].ended);
			w->process[i].ended = true;
			w->process[i].status = -1;
			pairs_get_num(p, "status", &w->process[i].status);
			pairs_get_num(p, "cpu_ns", &w->process[i].cpu_ns);
			pairs_get_num(p, "sampled", &w->process[i].sampled);
			copy_text(w->process[i].how, 16, p, "how");
			return;
		}
	fail_msg("an unannounced process is gone");
}

static void on_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *p)
{
	struct witness *w = arg;

	(void)time_ns;
	(void)p;
	w->clock_steps += !strcmp(kind, "clock");
	w->backoffs += !strcmp(kind, "backoff");
}

static void on_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	struct witness *w = arg;
	const struct schema *s = engine_schema(w->engine);
	int tree = schema_find_domain(s, DOMAIN_TREE);

	(void)at;
	assert_true(w->ticks == 0 || number > w->last_number);
	assert_true(time_ns >= w->last_tick_ns);
	w->last_number = number;
	w->last_tick_ns = time_ns;
	w->ticks++;
	for (uint32_t c = 0; c < s->set[tree].nr_metrics; c++)
		w->cell[0][c] = (double)table_row(table[tree], 0)[c] * s->set[tree].metric[c].scale;
}

static void on_flush(void *arg)
{
	(void)arg;
}

static double tree_value(const char *metric)
{
	uint32_t set, col;

	assert_true(schema_find(engine_schema(witness.engine), metric, &set, &col));
	return witness.cell[0][col];
}

static const struct sink sink = {&witness, on_instance, on_gone, on_event, on_tick, on_flush};

static const struct engine_options options = {
	.interval_ns = 20 * NSEC_PER_MSEC,
	.interval_is_order = true,
	.flush_ns = NSEC_PER_SEC,
	.budget = 0.5,
	.children = true,
	.max_members = 4096,
	.max_files = 512,
};

static struct engine *start(struct env *env, const struct engine_options *o)
{
	char err[512];

	witness = (struct witness){.aside_ns = witness.aside_ns};
	assert_int_equal(engine_new(env, o, &witness.engine, err, sizeof(err)), 0);
	assert_int_equal(engine_open(witness.engine, &sink), 0);
	return witness.engine;
}

static struct env *live; /* of record(), until finish() */

static int64_t own_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void hear(void)
{
	int64_t until = own_cpu() + witness.aside_ns;

	if (!witness.aside_ns)
		return;
	while (own_cpu() < until)
		;
	engine_heard(witness.engine);
}

/* Runs a shell text under the engine to its end; returns its wait status. */
static int record(const char *text, const struct engine_options *o)
{
	char *argv[] = {"/bin/sh", "-c", (char *)text, NULL};
	struct command command;
	struct signalfd_siginfo si;
	int status = -1;

	live = env_live(NULL);
	assert_int_equal(command_prepare(&command), 0);
	start(live, o);
	engine_zero(witness.engine);
	assert_int_equal(command_start(&command, argv, NULL, NULL, NULL), 0);
	assert_int_equal(command_confirm(&command), 0);
	assert_int_equal(engine_add_root(witness.engine, command.pid, true, 1), 0);
	engine_tick(witness.engine);
	while (!engine_root_ended(witness.engine, &status)) {
		struct timespec nap = {.tv_nsec = 2000000};

		nanosleep(&nap, NULL);
		while (command_signal(&command, &si))
			if (si.ssi_signo == SIGCHLD)
				engine_reap(witness.engine);
		hear();
		engine_due(witness.engine);
	}
	engine_last_tick(witness.engine);
	command_release(&command);
	sigprocmask(SIG_SETMASK, &command.mask, NULL);
	return status;
}

static void finish(struct env *env)
{
	witness.engine = engine_free(witness.engine);
	if (env)
		env_free(env);
	if (live)
		live = env_free(live);
}

static void test_exit_status_and_cpu_of_a_command(void **state)
{
	int status = record("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7", &options);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(witness.nr, 1);
	assert_true(witness.process[0].ended);
	assert_string_equal(witness.process[0].how, "reaped");
	assert_true(witness.process[0].cpu_ns > 0);
	/* The account of the ended equals the process's own clock, to the microseconds of rusage. */
	double gone = tree_value("tree.gone.user") + tree_value("tree.gone.system");
	double clock = (double)witness.process[0].cpu_ns * 1e-9;
	assert_true(gone > clock * 0.99 && gone < clock * 1.01 + 0.001);
	assert_true(witness.ticks >= 2);
	finish(NULL);
}

static void test_double_forked_orphans_come_home(void **state)
{
	struct engine_options o = options;

	(void)state;
	for (o.help = 0; o.help <= (HELP_CONNECTOR | HELP_TASKSTATS);
		o.help += HELP_CONNECTOR | HELP_TASKSTATS) {
		/* The inner shell leaves at once; what it started is adopted by us and must be reaped by us.
		 */
		record("f=$(mktemp -u); mkfifo $f; "
		       "(setsid sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo >'$f'; exit "
		       "5' &); "
		       "read x <$f; rm $f; sleep 0.5",
			&o);
		unsigned orphans = 0;
		for (unsigned i = 0; i < witness.nr; i++)
			orphans += witness.process[i].ended && witness.process[i].status == 5 << 8 &&
				!strcmp(witness.process[i].how, "reaped");
		assert_int_equal(orphans, 1);
		finish(NULL);
	}
}

static void test_children_no_is_the_process_alone(void **state)
{
	struct engine_options o = options;

	(void)state;
	o.children = false;
	record("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; exit 0", &o);
	assert_int_equal(witness.nr, 1);
	assert_true(tree_value("tree.gone.user") + tree_value("tree.gone.system") < 0.1);
	finish(NULL);
}

static void test_a_tree_through_everything(void **state)
{
	static const struct {
		int64_t pid;
		const char *name;
		int64_t cpu_ns;
	} expected[] = {
		{100, "a b) (c", 1300000000},
		{101, "child", 500000000},
		{102, "grandchild", 300000000},
		{103, "late", 200000000},
	};
	struct engine_options o = options;
	struct env *env;

	(void)state;
	env = film_of("films", "tree");
	o.interval_ns = NSEC_PER_SEC;
	start(env, &o);
	assert_int_equal(engine_add_root(witness.engine, 4711, false, 1), -ESRCH);
	assert_int_equal(engine_add_root(witness.engine, 100, false, 1), 0);
	assert_int_equal(engine_scan(witness.engine), 0);
	assert_int_equal(engine_live(witness.engine), 2);
	assert_int_equal(engine_play(witness.engine, INT64_MAX), 0);
	assert_int_equal(engine_live(witness.engine), 0);
	assert_int_equal(witness.nr, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(witness.process[i].pid, expected[i].pid);
		assert_string_equal(witness.process[i].name, expected[i].name);
		assert_int_equal(witness.process[i].cpu_ns, expected[i].cpu_ns);
		assert_string_equal(witness.process[i].how, "noticed");
		assert_true(witness.process[i].ended);
	}
	/* 101 is in 100's children's time, 103 ended with its parent, 102 was init's: 1.3 + 0.55 + 0.2 + 0.3
	 * s. */
	assert_true(tree_value("tree.gone.user") + tree_value("tree.gone.system") > 2.3499);
	assert_true(tree_value("tree.gone.user") + tree_value("tree.gone.system") < 2.3501);
	assert_true(tree_value("tree.gone.write_bytes") == 5000);
	assert_true(tree_value("tree.exited") == 4 && tree_value("tree.unsampled") == 0);
	assert_int_equal(witness.ticks, 6);
	assert_int_equal(witness.clock_steps, 1);
	finish(env);
}

static void test_choice_of_metrics(void **state)
{
	static const char *const words[] = {"-smaps,-status", "+proc.nice"};
	struct engine_options o = options;
	struct engine *e;
	char err[512];
	uint32_t set, col;
	struct env *env = env_live(NULL);

	(void)state;
	o.metrics = (const char *const[]){"-pss", "+nice,-mem.total"};
	o.nr_metrics = 2;
	assert_int_equal(engine_new(env, &o, &e, err, sizeof(err)), 0);
	assert_false(schema_find(engine_schema(e), "proc.mem.pss", &set, &col));
	assert_false(schema_find(engine_schema(e), "proc.mem.private_dirty", &set, &col));
	assert_false(schema_find(engine_schema(e), "mem.total", &set, &col));
	assert_true(schema_find(engine_schema(e), "proc.nice", &set, &col));
	assert_true(schema_find(engine_schema(e), "proc.mem.rss", &set, &col));
	engine_free(e);
	o.metrics = words;
	o.nr_metrics = 1;
	assert_int_equal(engine_new(env, &o, &e, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "'status'"));
	env_free(env);
}

/* ---- a recorder that is preempted ---- */

/* The live files on a clock of its own: each call takes a microsecond, and one call of a tick 30 ms more. */
struct jumpy {
	struct env env;
	struct env *inner;
	int64_t now_ns;
	unsigned calls, jump_at;
};

static struct jumpy jumpy;

static struct env *pass(void)
{
	jumpy.now_ns += NSEC_PER_USEC;
	if (++jumpy.calls == jumpy.jump_at)
		jumpy.now_ns += 30 * NSEC_PER_MSEC;
	return jumpy.inner;
}

static int jumpy_open(struct env *env, const char *path)
{
	(void)env;
	return env_open(pass(), path);
}

static ssize_t jumpy_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	(void)env;
	return env_read_at(pass(), handle, out, size, offset);
}

static void jumpy_close(struct env *env, int handle)
{
	(void)env;
	env_close(jumpy.inner, handle);
}

static int64_t jumpy_size(struct env *env, int handle)
{
	(void)env;
	return env_size(pass(), handle);
}

static int jumpy_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	(void)env;
	return env_list(pass(), path, fn, arg);
}

static ssize_t jumpy_readlink(struct env *env, const char *path, char *out, size_t size)
{
	(void)env;
	return env_readlink(pass(), path, out, size);
}

static int jumpy_space(struct env *env, const char *path, struct env_space *ret)
{
	(void)env;
	return env_space(pass(), path, ret);
}

/* It computes all the time, from the start of the clock on. */
static int64_t jumpy_cpu_clock(struct env *env, pid_t pid)
{
	(void)env;
	(void)pid;
	pass();
	return jumpy.now_ns;
}

static int64_t jumpy_now(struct env *env, enum env_clock clock)
{
	(void)env;
	(void)clock;
	return jumpy.now_ns;
}

static const char *jumpy_getenv(struct env *env, const char *name)
{
	(void)env;
	return env_getenv(jumpy.inner, name);
}

static const struct env_ops jumpy_ops = {
	.open = jumpy_open,
	.read = jumpy_read,
	.close = jumpy_close,
	.size = jumpy_size,
	.list = jumpy_list,
	.readlink = jumpy_readlink,
	.space = jumpy_space,
	.cpu_clock = jumpy_cpu_clock,
	.now = jumpy_now,
	.getenv = jumpy_getenv,
};

/* The CPU time in the recording is that of the tick's time, wherever in the tick it was preempted. */
static void check_instant(
	void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	uint32_t set, col;
	int64_t used_ns;

	(void)arg;
	(void)number;
	(void)at;
	assert_true(schema_find(engine_schema(witness.engine), "proc.cpu.time", &set, &col));
	used_ns = table_row(table[set], 0)[col] * 1000;
	if (witness.ticks++ && llabs(used_ns - time_ns) > NSEC_PER_MSEC)
		fail_msg("preempted at call %u: %lld us used in %lld us", jumpy.jump_at,
			(long long)used_ns / 1000, (long long)time_ns / 1000);
}

/* The first tick of ourselves, at time 0 of a clock that we set. */
static void jump_from_zero(const char *const *metrics, size_t nr, const struct sink *to)
{
	struct engine_options o = options;
	char err[512];

	o.metrics = metrics;
	o.nr_metrics = nr;
	jumpy = (struct jumpy){.inner = env_live(NULL)};
	jumpy.env = *jumpy.inner;
	jumpy.env.ops = &jumpy_ops;
	jumpy.env.live = false;
	witness = (struct witness){0};
	assert_int_equal(engine_new(&jumpy.env, &o, &witness.engine, err, sizeof(err)), 0);
	assert_int_equal(engine_open(witness.engine, to), 0);
	jumpy.now_ns = 0;
	engine_zero(witness.engine);
	assert_int_equal(engine_add_root(witness.engine, getpid(), false, 1), 0);
	engine_tick(witness.engine);
}

static void test_the_time_of_a_tick_is_that_of_its_totals(void **state)
{
	static const char *const metrics[] = {"process", "tree", "load"};
	const struct sink judge = {&witness, on_instance, on_gone, on_event, check_instant, on_flush};

	(void)state;
	jump_from_zero(metrics, ARRAY_SIZE(metrics), &judge);
	for (unsigned at = 1; at <= 40; at++) {
		jumpy.now_ns = MAX(jumpy.now_ns, engine_next(witness.engine));
		jumpy.calls = 0;
		jumpy.jump_at = at;
		engine_due(witness.engine);
	}
	assert_int_equal(witness.ticks, 41);
	finish(NULL);
	env_free(jumpy.inner);
}

/* At every fourth deadline: those between are left out, not missed, and none is counted that did not come.
 * From 0 to the end each deadline is taken, missed or left out. */
static void check_stretched(double end, unsigned missed, unsigned skipped, unsigned number)
{
	static const char *const metrics[] = {"tree"};
	int64_t interval = options.interval_ns;
	struct engine_counts counts;

	jump_from_zero(metrics, ARRAY_SIZE(metrics), &sink);
	witness.engine->stretch = 4;
	jumpy.now_ns = interval;
	engine_due(witness.engine); /* the next is due at 5 */
	jumpy.now_ns = 14 * interval;
	engine_due(witness.engine); /* those at 9 and 13 were missed; the next is due at 17 */
	jumpy.now_ns = (int64_t)(end * (double)interval);
	engine_last_tick(witness.engine);
	engine_counts(witness.engine, &counts);
	assert_int_equal(counts.ticks, 4);
	assert_int_equal(counts.missed, missed);
	assert_int_equal(counts.skipped, skipped);
	assert_int_equal(witness.last_number, number);
	finish(NULL);
	env_free(jumpy.inner);
}

/* Also of a source of which the other rows were read just before. */
static void test_rows_of_the_medium_tier_are_read_at_the_end(void **state)
{
	static const char *const metrics[] = {"tree"};
	const struct set *set;

	(void)state;
	jump_from_zero(metrics, ARRAY_SIZE(metrics), &sink);
	set = &witness.engine->set[schema_find_domain(engine_schema(witness.engine), DOMAIN_TREE)];
	jumpy.now_ns = NSEC_PER_SEC;
	engine_due(witness.engine);
	assert_true(set->sampled_ns >= NSEC_PER_SEC);
	assert_true(set->medium_ns < NSEC_PER_SEC);
	jumpy.now_ns += NSEC_PER_MSEC;
	engine_last_tick(witness.engine);
	assert_true(set->medium_ns > NSEC_PER_SEC);
	finish(NULL);
	env_free(jumpy.inner);
}

static void test_ticks_that_are_left_out_are_not_missed(void **state)
{
	(void)state;
	check_stretched(14.5, 2, 10, 15);     /* 2 to 4, 6 to 8, 10 to 12, 14 */
	check_stretched(15.5, 2, 11, 16);     /* and 15 */
	check_stretched(16.5, 2, 12, 17);     /* and 16 */
	check_stretched(17.5, 2, 12, 17);     /* the last one is that of 17 */
	check_stretched(23.5, 4, 12 + 4, 23); /* 17 and 21 are missed, 18 to 20 and 22 left out */
}

/* Messages would be far beyond this budget, and fewer ticks would not make them fewer. */
static void test_what_the_job_tells_leaves_no_tick_out(void **state)
{
	struct engine_options o = options;
	struct engine_counts counts;

	(void)state;
	o.interval_is_order = false;
	o.budget = 0.1;
	witness.aside_ns = 4 * NSEC_PER_MSEC;
	record("sleep 3", &o);
	engine_counts(witness.engine, &counts);
	assert_int_equal(witness.backoffs, 0);
	assert_int_equal(counts.skipped, 0);
	witness.aside_ns = 0;
	finish(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status_and_cpu_of_a_command),
		cmocka_unit_test(test_double_forked_orphans_come_home),
		cmocka_unit_test(test_children_no_is_the_process_alone),
		cmocka_unit_test(test_a_tree_through_everything),
		cmocka_unit_test(test_choice_of_metrics),
		cmocka_unit_test(test_the_time_of_a_tick_is_that_of_its_totals),
		cmocka_unit_test(test_what_the_job_tells_leaves_no_tick_out),
		cmocka_unit_test(test_ticks_that_are_left_out_are_not_missed),
		cmocka_unit_test(test_rows_of_the_medium_tier_are_read_at_the_end),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
