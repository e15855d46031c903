/* query/ and report/: groups of processes. What a group used is the sum over its members while they were in
 * it, the ended ones included; the whole counts everybody once. */
#include "query_maker.h"

#include "query/groups.h"
#include "text/processes.h"
#include "text/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IN(names) names, sizeof(names) - 1

static const struct summary *group_of(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->nr_groups; i++)
		if (!strcmp(s->group[i].name, name))
			return &s->group[i];
	fail_msg("there is no group '%s'", name);
	return NULL;
}

static void set_cpu(struct maker *m, uint32_t row, int64_t ms)
{
	maker_set(m, row, "proc.cpu.time", ms * MILLI);
}

/* ---- sums ---- */

/* Three tools, whose instances come and go; a driver that waits for all of them is none. */
static void make_tools(const char *path, const char *host)
{
	struct maker_options o = {.groups = "alpha\0beta\0gamma", .groups_len = 16, .host = host};
	struct maker m;

	maker_open(&m, path, &o);
	maker_group(&m, 0, "alpha", "match", true);
	maker_group(&m, 1, "beta", "match", true);
	maker_group(&m, 2, "gamma", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("alpha"));
	maker_join_in(&m, 1, 2, 101, 1, 0, false, IN("alpha"));
	maker_join_in(&m, 2, 3, 102, 1, 0, false, IN("beta"));
	for (uint32_t row = 0; row < 3; row++) {
		set_cpu(&m, row, 0);
		set_memory(&m, row, 100, 0);
	}
	maker_tick(&m, 0);
	set_cpu(&m, 0, 1000);
	set_cpu(&m, 1, 500);
	set_cpu(&m, 2, 250);
	set_memory(&m, 0, 300, 0);
	maker_tick(&m, SECOND);
	/* One of alpha ends with 600 ms; nobody of the group has it. Another of beta comes. */
	maker_gone_with(
		&m, 1, 2, 3 * SECOND / 2, "exit-record", "sampled", INT64_C(1), "cpu_ns", 600 * MILLI, NULL);
	maker_set(&m, 0, "group.gone.user", 600000);
	maker_set(&m, 0, "group.gone.max_rss", 5000);
	maker_set(&m, 0, "tree.gone.user", 600000);
	maker_join_in(&m, 3, 4, 103, 1, 3 * SECOND / 2, false, IN("beta"));
	set_cpu(&m, 0, 2000);
	set_cpu(&m, 2, 500);
	set_cpu(&m, 3, 400);
	set_memory(&m, 0, 50, 0);
	set_memory(&m, 3, 400, 0);
	maker_tick(&m, 2 * SECOND);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, "end_ns", 3 * SECOND, NULL);
}

static void test_tools_add_up_to_their_processes(void **state)
{
	const struct summary *alpha, *beta, *gamma;
	struct process_table *t;
	struct summary *s;
	double sum = 0;

	(void)state;
	make_tools(file, "here");
	s = summary_of(file);
	assert_int_equal(s->nr_groups, 3);
	alpha = group_of(s, "alpha");
	beta = group_of(s, "beta");
	gamma = group_of(s, "gamma");
	assert_string_equal(alpha->kind, "match");
	assert_string_equal(alpha->target, "of the test");
	assert_true(alpha->own);
	assert_near(value(alpha, FIG_CPU), 2.6);
	assert_near(value(beta, FIG_CPU), 0.9);
	assert_near(value(gamma, FIG_CPU), 0);
	assert_near(value(s, FIG_CPU), 3.5);
	assert_near(value(alpha, FIG_MEAN_CORES), 2.6 / 3);
	/* 1.5 s in the first second, 1.1 in the next. */
	assert_near(value(alpha, FIG_PEAK_CORES), 1.5);
	assert_near(value(alpha, FIG_PEAK_CORES_AT), 1);
	assert_near(value(beta, FIG_PEAK_CORES), 0.65);
	/* The sum of alpha was highest at 1 s; what one process had at most the kernel kept. */
	assert_near(value(alpha, FIG_RSS), 400 * 4096);
	assert_near(value(alpha, FIG_RSS_AT), 1);
	assert_near(value(alpha, FIG_ONE_RSS), 5000 * 1024);
	assert_near(value(alpha, FIG_HWM), 5000 * 1024);
	assert_near(value(alpha, FIG_MEMORY), 5000 * 1024);
	assert_near(value(beta, FIG_RSS), 500 * 4096);
	assert_near(value(beta, FIG_RSS_AT), 2);
	assert_near(value(s, FIG_RSS), 550 * 4096);
	assert_near(value(alpha, FIG_SEEN), 2);
	assert_near(value(alpha, FIG_PROCESSES), 2);
	assert_near(value(beta, FIG_SEEN), 2);
	assert_near(value(gamma, FIG_SEEN), 0);
	assert_near(value(gamma, FIG_PROCESSES), 0);
	assert_near(value(gamma, FIG_ACTIVE), 0);
	assert_near(value(beta, FIG_ACTIVE), 3);
	assert_near(value(s, FIG_SEEN), 4);
	assert_string_equal(alpha->cpu_source, "rusage");
	assert_near(value(alpha, FIG_OBSERVED), 1);
	/* A group that never had a process has no memory, which is not none. */
	assert_non_null(gamma->figure[FIG_RSS].why);
	t = table_of(file);
	for (size_t i = 0; i < t->nr; i++)
		sum += t->row[i].value[PROCESS_CPU];
	assert_near(sum, value(alpha, FIG_CPU) + value(beta, FIG_CPU) + value(gamma, FIG_CPU));
	process_table_free(t);
	summary_free(s);
}

static void test_in_two_groups_and_once_in_the_whole(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "me", "user", false);
	maker_group(&m, 1, "all", "system", false);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("me\0all"));
	maker_join_in(&m, 1, 2, 101, 1, 0, false, IN("all"));
	for (int64_t i = 0; i <= 2; i++) {
		set_cpu(&m, 0, i * 1000);
		set_cpu(&m, 1, i * 100);
		set_memory(&m, 0, 10, 0);
		set_memory(&m, 1, 1, 0);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(group_of(s, "me"), FIG_CPU), 2);
	assert_near(value(group_of(s, "all"), FIG_CPU), 2.2);
	assert_near(value(s, FIG_CPU), 2.2);
	assert_near(value(s, FIG_RSS), 11 * 4096);
	assert_near(value(s, FIG_PROCESSES), 2);
	assert_near(value(group_of(s, "all"), FIG_RSS), 11 * 4096);
	assert_near(value(group_of(s, "me"), FIG_RSS), 10 * 4096);
	assert_false(group_of(s, "me")->own);
	summary_free(s);
}

static void test_a_group_has_what_was_used_while_in_it(void **state)
{
	/* CPU by tick; in the group from tick 2 to tick 3, and again from tick 5 on. */
	static const int64_t ms[] = {0, 1000, 2000, 2300, 3000, 4000, 4050, 4060};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "tool", "match", true);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < (int64_t)ARRAY_SIZE(ms); i++) {
		if (i == 3 || i == 6)
			maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("tool"));
		if (i == 4)
			maker_join(&m, 0, 1, 100, 1, 0, false);
		set_cpu(&m, 0, ms[i]);
		set_memory(&m, 0, 100 + i, 0);
		maker_tick(&m, i * SECOND);
	}
	/* It ends: all that it ever used is gone with it, in the group and in the whole. */
	maker_gone(&m, 0, 1, 8 * SECOND, "reaped");
	maker_set(&m, 0, "group.gone.user", 4060000);
	maker_set(&m, 0, "tree.gone.user", 4060000);
	maker_tick(&m, 8 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CPU), 4.06);
	assert_near(value(group_of(s, "tool"), FIG_CPU), 0.3 + 0.05 + 0.01);
	assert_near(value(group_of(s, "tool"), FIG_PEAK_CORES), 0.3);
	assert_near(value(group_of(s, "tool"), FIG_RSS), 107 * 4096);
	assert_near(value(group_of(s, "tool"), FIG_SEEN), 1);
	assert_near(value(group_of(s, "tool"), FIG_ACTIVE), 3);
	assert_near(value(group_of(s, "tool"), FIG_OBSERVED), 1);
	summary_free(s);
}

static void make_found_later(const char *path, const char *host)
{
	struct maker_options o = {.host = host, .helpers = "connector"};
	struct maker m;

	maker_open(&m, path, &o);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 10; i++) {
		if (i == 6) {
			maker_group(&m, 0, "tool", "match", true);
			maker_join_in(&m, 1, 2, 101, 1, 5 * SECOND, false, IN("tool"));
		}
		set_cpu(&m, 0, i * 100);
		if (i >= 6)
			set_cpu(&m, 1, i == 6 ? 1000 : 1200);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 10 * SECOND, NULL);
}

static void test_a_group_that_is_found_later_begins_then(void **state)
{
	const char *path = dir;
	struct summary *s;

	(void)state;
	make_found_later(file, "n1");
	s = summary_of(file);
	assert_near(value(group_of(s, "tool"), FIG_CPU), 1.2);
	/* It used a second within a second, not within six. */
	assert_near(value(group_of(s, "tool"), FIG_PEAK_CORES), 1);
	assert_near(value(group_of(s, "tool"), FIG_ACTIVE), 5);
	summary_free(s);

	make_found_later(file_in("b.tacho"), "n2");
	s = summary_of_paths(&path, 1);
	assert_near(value(group_of(s, "tool"), FIG_PEAK_CORES), 2);
	assert_near(value(group_of(s, "tool"), FIG_ACTIVE), 5);
	summary_free(s);
}

static void test_the_past_of_a_latecomer_is_nobodys(void **state)
{
	struct maker_options o = {.mode = "attach"};
	struct maker m;
	struct summary *s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		/* Attached to all, or beside a command that we run. */
		maker_open(&m, file, i ? &o : NULL);
		maker_group(&m, 0, "old", "user", false);
		maker_join_in(&m, 0, 1, 100, 1, 0, true, IN("old"));
		set_cpu(&m, 0, 70000);
		maker_set(&m, 0, "proc.cpu.children_user", 12345);
		maker_tick(&m, 0);
		set_cpu(&m, 0, 71000);
		maker_set(&m, 0, "proc.cpu.children_user", 12355);
		maker_join_in(&m, 1, 2, 101, 1, 0, true, IN("old"));
		set_cpu(&m, 1, 50000);
		maker_tick(&m, SECOND);
		set_cpu(&m, 1, 50500);
		maker_tick(&m, 2 * SECOND);
		maker_gone(&m, 1, 2, 3 * SECOND, "noticed");
		maker_set(&m, 0, "group.gone.user", 50500000);
		maker_set(&m, 0, "tree.gone.user", 50500000);
		maker_tick(&m, 3 * SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_near(value(s, FIG_CPU), 1.6);
		assert_near(value(group_of(s, "old"), FIG_CPU), 1.6);
		assert_near(value(group_of(s, "old"), FIG_PEAK_CORES), 1.1);
		assert_string_equal(group_of(s, "old")->cpu_source, "rusage+last samples");
		summary_free(s);
	}
}

static void test_families_and_loners(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "family", "pid", false);
	maker_group(&m, 1, "loners", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("family"));
	maker_join_in(&m, 1, 2, 200, 1, 0, false, IN("loners"));
	maker_join_in(&m, 2, 3, 201, 200, 0, false, IN("loners"));
	for (uint32_t row = 0; row < 3; row++)
		set_cpu(&m, row, 0);
	maker_tick(&m, 0);
	/* Both have waited for a child that nobody saw. Only the family is asked for it. */
	for (uint32_t row = 0; row < 3; row++) {
		set_cpu(&m, row, 1000);
		maker_set(&m, row, "proc.io.read_chars", 1000);
	}
	maker_set(&m, 0, "proc.cpu.children_user", 300);
	maker_set(&m, 1, "proc.cpu.children_user", 500);
	maker_tick(&m, SECOND);
	/* A loner's child, itself a loner, ends: its CPU time is gone with it, and passes to its parent, who
	 * is not asked; its bytes are gone with it and are now its parent's, too. */
	maker_gone(&m, 2, 3, 3 * SECOND / 2, "event");
	maker_set(&m, 1, "group.gone.user", 1000000);
	maker_set(&m, 1, "group.gone.read_chars", 1000);
	maker_set(&m, 0, "tree.gone.user", 1000000);
	maker_set(&m, 0, "tree.gone.read_chars", 1000);
	maker_set(&m, 1, "proc.cpu.children_user", 600);
	maker_set(&m, 1, "proc.io.read_chars", 2500);
	set_cpu(&m, 1, 1500);
	maker_tick(&m, 2 * SECOND);
	/* And so does its parent. */
	maker_gone(&m, 1, 2, 5 * SECOND / 2, "noticed");
	maker_set(&m, 1, "group.gone.user", 2500000);
	maker_set(&m, 1, "group.gone.read_chars", 3500);
	maker_set(&m, 0, "tree.gone.user", 2500000);
	maker_set(&m, 0, "tree.gone.read_chars", 3500);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(group_of(s, "family"), FIG_CPU), 1 + 3);
	assert_near(value(group_of(s, "loners"), FIG_CPU), 1 + 1.5);
	assert_near(value(s, FIG_CPU), 4 + 2.5);
	assert_near(value(group_of(s, "loners"), FIG_READ_CHARS), 2500);
	assert_near(value(group_of(s, "family"), FIG_READ_CHARS), 1000);
	assert_near(value(s, FIG_READ_CHARS), 3500);
	summary_free(s);
}

static void test_children_pass_to_their_parents_in_the_group(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "job", "job", false);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("job"));
	maker_join_in(&m, 1, 2, 101, 100, 0, false, IN("job"));
	set_cpu(&m, 0, 100);
	set_cpu(&m, 1, 1000);
	for (uint32_t row = 0; row < 2; row++) {
		maker_set(&m, row, "proc.cpu.children_user", 0);
		maker_set(&m, row, "proc.cpu.children_system", 0);
	}
	maker_tick(&m, SECOND);
	/* Read before it ended, its parent after that: for one tick it is there twice. */
	set_cpu(&m, 1, 2000);
	maker_set(&m, 0, "proc.cpu.children_user", 200);
	maker_tick(&m, 2 * SECOND);
	maker_gone(&m, 1, 2, 2 * SECOND, "event");
	set_cpu(&m, 0, 200);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(group_of(s, "job"), FIG_CPU), 2.2);
	assert_near(value(group_of(s, "job"), FIG_PEAK_CORES), 1.1);
	assert_string_equal(group_of(s, "job")->cpu_source, "rusage");
	summary_free(s);
	expect_series("group.cpu", &(struct series_query){.group = "job"}, (double[]){1.1, 2.2, 2.2}, 3);
}

static void open_two_users(struct maker *m)
{
	maker_open(m, file, NULL);
	maker_group(m, 0, "ann", "user", false);
	maker_group(m, 1, "bob", "user", false);
}

/* With the CPU seconds of the whole and of both users. */
static struct summary *summary_of_users(double whole, double ann, double bob)
{
	struct summary *s = summary_of(file);

	assert_near(value(s, FIG_CPU), whole);
	assert_near(value(group_of(s, "ann"), FIG_CPU), ann);
	assert_near(value(group_of(s, "bob"), FIG_CPU), bob);
	return s;
}

/* A child of ann's becomes bob's, and its parent, still ann's, waits for it: what it used counts for each of
 * them as far as it was theirs, and once in the whole. */
static void test_one_that_changes_its_user_counts_once(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_two_users(&m);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("ann"));
	maker_join_in(&m, 1, 2, 101, 100, 0, false, IN("ann"));
	for (uint32_t row = 0; row < 2; row++) {
		set_cpu(&m, row, row ? 300 : 100);
		maker_set(&m, row, "proc.io.write_chars", row ? 3000 : 1000);
		maker_set(&m, row, "proc.cpu.children_user", 0);
		maker_set(&m, row, "proc.cpu.children_system", 0);
	}
	maker_tick(&m, 0);
	maker_join_in(&m, 1, 2, 101, 100, 0, false, IN("bob"));
	set_cpu(&m, 1, 700);
	maker_set(&m, 1, "proc.io.write_chars", 7000);
	maker_tick(&m, SECOND);
	maker_foreign = "ann";
	maker_gone_with(&m, 1, 2, 3 * SECOND / 2, "noticed", "sampled", INT64_C(1), "account.user_us",
		INT64_C(700000), "account.write_chars", INT64_C(7000), NULL);
	maker_foreign = NULL;
	maker_set(&m, 1, "group.gone.user", 700000);
	maker_set(&m, 1, "group.gone.write_chars", 7000);
	maker_set(&m, 0, "proc.cpu.children_user", 70);
	maker_set(&m, 0, "proc.io.write_chars", 8000);
	maker_tick(&m, 2 * SECOND);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, "end_ns", 3 * SECOND, NULL);
	s = summary_of_users(0.8, 0.4, 0.4);
	assert_near(value(s, FIG_WRITE_CHARS), 8000);
	assert_near(value(group_of(s, "ann"), FIG_WRITE_CHARS), 4000);
	assert_near(value(group_of(s, "bob"), FIG_WRITE_CHARS), 4000);
	summary_free(s);
}

/* A parent is found to be of another user after children left to it, whose use comes to its account later: it
 * counts where it was. */
static void test_children_that_left_before_their_parent_changed_its_user(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_two_users(&m);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	set_cpu(&m, 0, 100);
	maker_set(&m, 0, "proc.cpu.children_user", 0);
	maker_set(&m, 0, "proc.cpu.children_system", 0);
	maker_tick(&m, 0);
	/* Its parent was in no group: it is in the account of the ended. */
	maker_join_in(&m, STORE_NO_ROW, 2, 101, 100, SECOND / 2, false, IN("ann"));
	maker_gone_with(&m, STORE_NO_ROW, 2, SECOND / 2, "exit-record", "sampled", INT64_C(0), "heir",
		INT64_C(1), "due", INT64_C(1), "account.user_us", INT64_C(300000), NULL);
	maker_set(&m, 0, "group.gone.user", 300000);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("ann"));
	set_cpu(&m, 0, 150);
	maker_set(&m, 0, "proc.cpu.children_user", 30);
	maker_tick(&m, SECOND);
	/* Its parent was in the same group: it is in no account yet. */
	maker_join_in(&m, STORE_NO_ROW, 3, 102, 100, 3 * SECOND / 2, false, IN("ann"));
	maker_gone_with(&m, STORE_NO_ROW, 3, 3 * SECOND / 2, "exit-record", "sampled", INT64_C(0), "heir",
		INT64_C(1), "due", INT64_C(1), "account.user_us", INT64_C(200000), NULL);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("bob"));
	set_cpu(&m, 0, 200);
	maker_set(&m, 0, "proc.cpu.children_user", 50);
	maker_tick(&m, 2 * SECOND);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, "end_ns", 3 * SECOND, NULL);
	s = summary_of_users(0.7, 0.55, 0.05);
	summary_free(s);
}

/* Less is known of a process at its end than while it lived: the rest is in its parent's account, who is of
 * another user. */
static void test_what_one_user_was_seen_to_use_is_no_others(void **state)
{
	struct summary *s;
	struct maker m;

	(void)state;
	open_two_users(&m);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("bob"));
	maker_join_in(&m, 1, 2, 101, 100, 0, false, IN("ann"));
	for (uint32_t row = 0; row < 2; row++) {
		set_cpu(&m, row, row ? 300 : 100);
		maker_set(&m, row, "proc.cpu.children_user", 0);
		maker_set(&m, row, "proc.cpu.children_system", 0);
	}
	maker_tick(&m, 0);
	maker_tick(&m, SECOND);
	maker_foreign = "bob";
	maker_gone_with(&m, 1, 2, 3 * SECOND / 2, "noticed", "sampled", INT64_C(1), "heir", INT64_C(1),
		"account.user_us", INT64_C(100000), NULL);
	maker_foreign = NULL;
	maker_set(&m, 0, "group.gone.user", 100000);
	maker_set(&m, 0, "proc.cpu.children_user", 30);
	maker_tick(&m, 2 * SECOND);
	maker_tick(&m, 3 * SECOND);
	maker_finish(&m, "end_ns", 3 * SECOND, NULL);
	s = summary_of_users(0.4, 0.3, 0.1);
	summary_free(s);
}

static void test_the_kernels_total_is_the_commands(void **state)
{
	struct maker_options o = {.groups = "make\0db", .groups_len = 7};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &o);
	maker_group(&m, 0, "make", "command", false);
	maker_group(&m, 1, "db", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("make"));
	maker_join_in(&m, 1, 2, 200, 1, 0, true, IN("db"));
	for (int64_t i = 0; i <= 4; i++) {
		/* Half of what the command used is never seen in a process. */
		set_cpu(&m, 0, i * 500);
		set_cpu(&m, 1, 9000 + i * 250);
		maker_set(&m, 0, "tree.cgroup.cpu", i * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
	s = summary_of(file);
	assert_near(value(group_of(s, "make"), FIG_CPU), 4);
	assert_string_equal(group_of(s, "make")->cpu_source, "cgroup");
	assert_near(value(group_of(s, "db"), FIG_CPU), 1);
	assert_string_equal(group_of(s, "db")->cpu_source, "rusage");
	assert_near(value(s, FIG_CPU), 5);
	assert_near(value(s, FIG_PEAK_CORES), 1.25);
	summary_free(s);
	/* A series of the whole is of the processes, where not all are the command's; but no less than the
	 * command's. */
	expect_series("tree.cores", NULL, (double[]){NAN, 1, 1, 1, 1}, 5);
}

/* ---- what goes wrong ---- */

static void test_counters_that_fall_and_groups_that_change_in_a_gap(void **state)
{
	struct maker m;
	struct summary *s;
	uint64_t random = 1;
	double first;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "first", "pid", false);
	maker_group(&m, 1, "second", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("first"));
	/* 10 ms a tick, and 50 ms of children, which the second group does not ask for. It changes its group
	 * in the middle, where the file will be broken. */
	for (int64_t i = 0; i <= 3000; i++) {
		if (i == 1500)
			maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("second"));
		set_cpu(&m, 0, i * 10);
		maker_set(&m, 0, "proc.cpu.children_user", i * 5);
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
		maker_set(&m, 0, "proc.mem.vms", (int64_t)(random >> 20));
		maker_set(&m, 0, "proc.io.write_chars", i % 1000 * 10);
		maker_tick(&m, i * SECOND);
		if (i % 10 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(group_of(s, "first"), FIG_CPU), 14.99 * 6);
	assert_near(value(group_of(s, "second"), FIG_CPU), 15.01);
	assert_near(value(s, FIG_CPU), 14.99 * 6 + 15.01);
	/* Three times from 0 to 9990; the third fall is the last tick. */
	assert_near(value(s, FIG_WRITE_CHARS), 3 * 9990);
	assert_near(value(group_of(s, "first"), FIG_WRITE_CHARS), 9990 + 4990);
	summary_free(s);

	for (double where = 0.40; where < 0.60; where += 0.002)
		damage(file, where);
	s = summary_of(file);
	assert_true(s->lost_bytes > 0);
	/* When it changed is lost: what was used in the gap goes to the group after it. */
	first = value(group_of(s, "first"), FIG_CPU);
	assert_true(first < 14.9 * 6);
	assert_near(first / 6 + value(group_of(s, "second"), FIG_CPU), 30);
	assert_near(first + value(group_of(s, "second"), FIG_CPU), value(s, FIG_CPU));
	summary_free(s);
}

static void add_group_names(struct buf *out, unsigned nr)
{
	buf_reset(out);
	for (unsigned i = 0; i < nr; i++) {
		buf_addf(out, "g%u", i);
		buf_addch(out, 0);
	}
}

static void test_more_groups_than_can_be_told_apart(void **state)
{
	struct maker m;
	struct summary *s;
	struct buf names;

	(void)state;
	buf_init(&names, 10000);
	add_group_names(&names, 70);
	maker_open(&m, file, NULL);
	for (uint32_t i = 0; i < 70; i++) {
		char name[8];

		snprintf(name, sizeof(name), "g%u", i);
		maker_group(&m, i, name, "match", true);
	}
	maker_join_in(&m, 0, 1, 100, 1, 0, false, (char *)names.data, names.len);
	for (int64_t i = 0; i <= 2; i++) {
		set_cpu(&m, 0, i * 1000);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	buf_release(&names);
	s = summary_of(file);
	assert_int_equal(s->nr_groups, GROUPS_MOST);
	assert_near(value(group_of(s, "g0"), FIG_CPU), 2);
	assert_near(value(group_of(s, "g63"), FIG_CPU), 2);
	assert_near(value(s, FIG_CPU), 2);
	assert_true(has_note(s, "more groups than can be recorded"));
	summary_free(s);
}

static void test_names_of_any_bytes(void **state)
{
	static const char odd[] = "\0\0a \"b\"\\,\n\xff\xfe\0\xe2\x82\xac\0";
	struct maker_options o = {.groups = odd, .groups_len = sizeof(odd) - 1};
	struct summary_style style = {.width = 80};
	struct process_table *t;
	struct summary *s;
	struct maker m;
	struct buf out;

	(void)state;
	maker_open(&m, file, &o);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, odd, sizeof(odd) - 1);
	set_cpu(&m, 0, 1000);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_groups, 2); /* empty names are none */
	assert_string_equal(s->group[1].name, "\xe2\x82\xac");
	/* Nothing is told of these groups but their names: no account, and that is not zero. */
	assert_string_equal(s->group[0].kind, "");
	assert_non_null(s->group[0].figure[FIG_CPU].why);
	buf_init(&out, 1 << 20);
	summary_json(s, &out);
	assert_non_null(strstr((char *)out.data, "\"a \\\"b\\\"\\\\,\\n\\\\xff\\\\xfe\": {"));
	buf_reset(&out);
	assert_int_equal(summary_print(s, &style, &out), 0);
	for (size_t i = 0; i < out.len; i++)
		assert_true(out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] < 0x7f));
	summary_free(s);
	t = table_of(file);
	assert_true(t->has_groups);
	buf_reset(&out);
	processes_write(t, 0, &(struct text_style){.width = 200, .utf8 = true}, &out);
	assert_non_null(strstr((char *)out.data, "GROUPS"));
	buf_reset(&out);
	processes_write(t, 0, &(struct text_style){FORM_JSON}, &out);
	assert_non_null(strstr((char *)out.data, "\"\xe2\x82\xac\""));
	process_table_free(t);
	buf_release(&out);
}

static void test_groups_without_their_account(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("lone"));
	set_cpu(&m, 0, 1000);
	set_memory(&m, 0, 7, 0);
	maker_tick(&m, SECOND);
	maker_gone(&m, STORE_NO_ROW, 9, SECOND, "event");
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_non_null(group_of(s, "lone")->figure[FIG_CPU].why);
	assert_near(value(group_of(s, "lone"), FIG_RSS), 7 * 4096);
	assert_near(value(group_of(s, "lone"), FIG_SEEN), 1);
	assert_near(value(s, FIG_SEEN), 2);
	summary_free(s);

	/* No groups at all. */
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_int_equal(s->nr_groups, 0);
	summary_free(s);
}

/* ---- limits ---- */

static void make_limited(const char *path, const char *host, const char *cpus_of_alpha)
{
	static const char *const meta[] = {"limits.cpus", "8", "limits.cpus_source", "machine",
		"limits.memory_bytes", "1048576", "limits.memory_source", "cgroup /a memory.max", NULL};
	struct maker_options o = {
		.groups = "alpha\0beta\0gamma", .groups_len = 16, .host = host, .meta = meta};
	char numbers[8], alpha[64];
	struct pair memory[4];
	struct pairs p;
	struct maker m;
	int n;

	maker_open(&m, path, &o);
	n = snprintf(
		alpha, sizeof(alpha), "alpha%c%s%caffinity%c524288%culimit -v", 0, cpus_of_alpha, 0, 0, 0);
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_add(&p, "limits.group.7", alpha, (size_t)n);
	pairs_add(&p, "limits.group.0",
		"beta\0"
		"many",
		9); /* damaged: ends early, and is no number */
	pairs_add(&p, "limits.group.1", "", 0);
	assert_int_equal(store_meta(m.w, &p), 0);
	maker_group(&m, 0, "alpha", "match", true);
	maker_group(&m, 1, "beta", "match", true);
	maker_group(&m, 2, "gamma", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("alpha"));
	set_cpu(&m, 0, 0);
	set_memory(&m, 0, 64, 0);
	maker_tick(&m, 0);
	set_cpu(&m, 0, 1000);
	maker_tick(&m, SECOND);
	maker_finish(&m, "end_ns", SECOND, NULL);
}

static void test_a_group_has_limits_of_its_own(void **state)
{
	static const char *const others[] = {"beta", "gamma"};
	const struct summary *g;
	struct summary *s;

	(void)state;
	make_limited(file, "one", "2.5");
	s = summary_of(file);
	g = group_of(s, "alpha");
	assert_near(value(g, FIG_LIMIT_CPUS), 2.5);
	assert_near(value(g, FIG_LIMIT_MEMORY), 524288);
	assert_string_equal(g->text[TEXT_CPUS_SOURCE], "affinity");
	assert_string_equal(g->text[TEXT_MEMORY_SOURCE], "ulimit -v");
	assert_near(value(g, FIG_CPU_OF_ALLOCATION), 1 / 2.5);
	assert_near(value(g, FIG_MEMORY_OF_ALLOCATION), 0.5);
	assert_near(value(s, FIG_CPU_OF_ALLOCATION), 1 / 8.0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		g = group_of(s, others[i]);
		assert_near(value(g, FIG_LIMIT_CPUS), 8);
		assert_near(value(g, FIG_LIMIT_MEMORY), 1048576);
		assert_string_equal(g->text[TEXT_MEMORY_SOURCE], "cgroup /a memory.max");
	}
	summary_free(s);
	remove(file);

	/* Of several nodes they add up, of two recordings of one host the greater counts. */
	make_limited(file_in("a.tacho"), "one", "2.5");
	make_limited(file_in("b.tacho"), "two", "1");
	make_limited(file_in("c.tacho"), "two", "2");
	s = summary_of(dir);
	g = group_of(s, "alpha");
	assert_near(value(g, FIG_LIMIT_CPUS), 4.5);
	assert_near(value(g, FIG_LIMIT_MEMORY), 1048576);
	assert_string_equal(g->text[TEXT_CPUS_SOURCE], "affinity");
	summary_free(s);
	remove(file_in("a.tacho"));
	remove(file_in("b.tacho"));
	remove(file_in("c.tacho"));
}

/* ---- several recordings ---- */

static void test_groups_of_several_nodes_are_one_by_name(void **state)
{
	const char *path = dir;
	struct summary *s;
	struct maker m;

	(void)state;
	make_tools(file, "n1");
	make_tools(file_in("b.tacho"), "n2");
	maker_open(&m, file_in("c.tacho"), &(struct maker_options){.host = "n3"});
	maker_group(&m, 0, "delta", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("delta"));
	set_cpu(&m, 0, 0);
	set_memory(&m, 0, 1, 0);
	maker_tick(&m, 0);
	set_cpu(&m, 0, 2000);
	maker_tick(&m, 2 * SECOND);
	maker_finish(&m, "end_ns", 2 * SECOND, NULL);
	s = summary_of_paths(&path, 1);
	assert_int_equal(s->nr_nodes, 3);
	assert_int_equal(s->nr_groups, 4);
	assert_near(value(group_of(s, "alpha"), FIG_CPU), 5.2);
	assert_near(value(group_of(s, "alpha"), FIG_PEAK_CORES), 3);
	assert_near(value(group_of(s, "alpha"), FIG_RSS), 800 * 4096);
	assert_near(value(group_of(s, "alpha"), FIG_ONE_RSS), 5000 * 1024);
	assert_near(value(group_of(s, "alpha"), FIG_SEEN), 4);
	assert_near(value(group_of(s, "beta"), FIG_PROCESSES), 4);
	assert_near(value(group_of(s, "delta"), FIG_CPU), 2);
	assert_near(value(group_of(s, "delta"), FIG_PEAK_CORES), 1);
	assert_near(value(s, FIG_CPU), 9);
	assert_near(value(group_of(&s->node[1], "alpha"), FIG_CPU), 2.6);
	assert_string_equal(group_of(s, "alpha")->kind, "match");
	/* That not every node has the group is not worth a note. */
	assert_false(has_note(s, "is that of"));
	summary_free(s);
}

/* ---- series ---- */

static void test_what_is_not_counted_is_told(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	for (int64_t uncounted = 0; uncounted < 2; uncounted++) {
		maker_open(&m, file, NULL);
		maker_join(&m, STORE_NO_ROW, 1, 100, 1, 0, false);
		maker_gone_with(&m, STORE_NO_ROW, 1, MILLI, "exit-record", "sampled", INT64_C(0), "io_least",
			INT64_C(0), "uncounted", uncounted, NULL);
		maker_tick(&m, SECOND);
		maker_finish(&m, NULL);
		s = summary_of(file);
		assert_int_equal(s->cpu_lower_bound, uncounted);
		assert_int_equal(s->io_lower_bound, uncounted);
		summary_free(s);
	}
}

static void test_series_of_a_group(void **state)
{
	struct series_query group = {.group = "tool"}, none = {.group = "nobody"};
	const char *metric = "group.cores";
	struct series *series = NULL;
	struct maker m;
	struct buf err;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "tool", "match", true);
	maker_group(&m, 1, "other", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("tool"));
	maker_join_in(&m, 1, 2, 101, 1, 0, false, IN("other"));
	maker_join_in(&m, 2, 3, 102, 1, 0, true, IN("tool")); /* with a long past */
	for (int64_t i = 0; i <= 5; i++) {
		if (i == 3) /* the other becomes one, too */
			maker_join_in(&m, 1, 2, 101, 1, 0, false, IN("tool"));
		set_memory(&m, 0, 10, 0);
		set_memory(&m, 1, 5, 0);
		set_cpu(&m, 0, i * 100);
		set_cpu(&m, 1, i * 1000);
		if (i < 5)
			set_cpu(&m, 2, 90000 + i * 200);
		maker_set(&m, 0, "proc.cpu.children_user", i * 700); /* not asked of tools */
		if (i == 5) {
			maker_gone(&m, 2, 3, 5 * SECOND, "noticed");
			maker_set(&m, 0, "group.gone.user", 90800000);
			maker_set(&m, 0, "tree.gone.user", 90800000);
		}
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	/* It joins between two ticks: what it used up to the first is not the group's. */
	expect_series("group.cores", &group, (double[]){NAN, 0.3, 0.3, 1.3, 1.3, 1.1}, 6);
	expect_series("group.cpu", &group, (double[]){0, 0.3, 0.6, 1.9, 3.2, 4.3}, 6);
	expect_series("proc.mem.rss", &group,
		(double[]){10 * 4096, 10 * 4096, 10 * 4096, 15 * 4096, 15 * 4096, 15 * 4096}, 6);
	expect_series("group.gone.user", &group, (double[]){0, 0, 0, 0, 0, 90.8}, 6);
	/* The whole counts loners without their children, too, and no past. */
	expect_series("tree.cores", NULL, (double[]){NAN, 1.3, 1.3, 1.3, 1.3, 1.1}, 6);

	buf_init(&err, 1000);
	none.metric = group.metric = &metric;
	none.nr = group.nr = 1;
	assert_int_equal(series_open(file, &none, &series, &err), -ENOENT);
	assert_non_null(strstr((char *)err.data, "no group 'nobody'"));
	metric = "tree.cores";
	buf_reset(&err);
	assert_int_equal(series_open(file, &group, &series, &err), -EINVAL);
	metric = "cpu.user";
	assert_int_equal(series_open(file, &group, &series, &err), -EINVAL);
	metric = "group.cores";
	group.group = NULL;
	buf_reset(&err);
	assert_int_equal(series_open(file, &group, &series, &err), -EINVAL);
	assert_non_null(strstr((char *)err.data, "--group"));
	group.group = "";
	assert_int_equal(series_open(file, &group, &series, &err), -EINVAL);
	buf_release(&err);
}

static void test_children_count_in_one_group_and_not_in_another(void **state)
{
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_group(&m, 0, "family", "pid", false);
	maker_group(&m, 1, "tool", "match", true);
	maker_join_in(&m, 0, 1, 100, 1, 0, false, IN("family\0tool"));
	for (int64_t i = 0; i <= 2; i++) {
		set_cpu(&m, 0, i * 100);
		maker_set(&m, 0, "proc.cpu.children_user", i * 30);
		maker_set(&m, 0, "proc.cpu.children_system", i * 10);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("group.cores", &(struct series_query){.group = "family"}, (double[]){NAN, 0.5, 0.5}, 3);
	expect_series("group.cores", &(struct series_query){.group = "tool"}, (double[]){NAN, 0.1, 0.1}, 3);
	expect_series("tree.cores", NULL, (double[]){NAN, 0.5, 0.5}, 3);
}

/* ---- for people ---- */

static void test_a_table_of_groups(void **state)
{
	static const unsigned width[] = {120, 80, 60, 40};
	struct summary *s;
	struct buf out;

	(void)state;
	make_tools(file, "here");
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(width); i++) {
		struct summary_style style = {.width = width[i]};
		const char *at, *end;

		buf_reset(&out);
		assert_int_equal(summary_print(s, &style, &out), 0);
		at = strstr((char *)out.data, width[i] > 40 ? "  groups   name   procs" : "  groups   name ");
		assert_non_null(at);
		assert_int_equal(!!strstr(at, "wrote\n"), width[i] >= 80);
		/* All rows of the table are as wide as its heading. */
		end = strchr(at, '\n');
		for (unsigned row = 0; row < 3; row++) {
			const char *next = strchr(end + 1, '\n');

			assert_int_equal(next - end - 1, strchr(at, '\n') - at);
			end = next;
		}
		assert_true((size_t)(strchr(at, '\n') - at) <= width[i]);
		assert_non_null(strstr(at,
			width[i] > 40 ? "\n           alpha      2    2.60s"
				      : "\n           alpha    2.60s"));
		assert_non_null(strstr(at, "       0s"));
	}
	summary_free(s);
	buf_release(&out);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_tools_add_up_to_their_processes),
		T(test_in_two_groups_and_once_in_the_whole),
		T(test_a_group_has_what_was_used_while_in_it),
		T(test_a_group_that_is_found_later_begins_then),
		T(test_the_past_of_a_latecomer_is_nobodys),
		T(test_families_and_loners),
		T(test_children_pass_to_their_parents_in_the_group),
		T(test_one_that_changes_its_user_counts_once),
		T(test_children_that_left_before_their_parent_changed_its_user),
		T(test_what_one_user_was_seen_to_use_is_no_others),
		T(test_the_kernels_total_is_the_commands),
		T(test_counters_that_fall_and_groups_that_change_in_a_gap),
		T(test_more_groups_than_can_be_told_apart),
		T(test_names_of_any_bytes),
		T(test_groups_without_their_account),
		T(test_a_group_has_limits_of_its_own),
		T(test_groups_of_several_nodes_are_one_by_name),
		T(test_what_is_not_counted_is_told),
		T(test_series_of_a_group),
		T(test_children_count_in_one_group_and_not_in_another),
		T(test_a_table_of_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
