/* Targets: what is understood, what they take in, how their groups are named; on a machine with processes of
 * many kinds. */
#include "target/scope.h"

#include "collect_lab.h"
#include "target/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct scopes s; /* large */

static int add(const char *target)
{
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = scopes_add(&s, target, &err);
	if (r < 0)
		assert_true(err.len > 10); /* whoever is refused is told why */
	buf_release(&err);
	return r;
}

static int open_scope(unsigned i)
{
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = scope_open(&s, i, &err);
	if (r < 0)
		assert_true(err.len > 10);
	buf_release(&err);
	return r;
}

static void assert_in(pid_t pid, const char *group, bool in)
{
	uint64_t groups = scopes_ask(&s, pid);
	bool found = false;

	for (unsigned i = 0; i < s.nr_groups; i++)
		if (!strcmp(s.group[i].name, group))
			found = groups >> i & 1;
	if (found != in)
		fail_msg("%d is %s '%s'", (int)pid, found ? "in" : "not in", group);
}

static void test_what_is_no_target(void **state)
{
	static const char *const bad[] = {"", "0", "-1", "4194305", "99999999999999999999", "12x",
		"match:", "match:(", "match:[", "cgroup:", "container:", "job7", "systems", "system:", "user",
		"pid:7", "no=thing", "nobody"};
	struct env *env = film_of("machines", "scopes");

	(void)state;
	scopes_init(&s, env);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (strcmp(bad[i], "user") && add(bad[i]) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	assert_int_equal(add("user:there is no such user"), -ENOENT);
	assert_int_equal(s.nr, 0);
	assert_int_equal(s.nr_groups, 0);
	scopes_release(&s);
	env_free(env);
}

static void test_tools_by_expression(void **state)
{
	struct env *env = film_of("machines", "scopes");

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(add("match:bin/(tool_[a-z])"), 0);
	assert_int_equal(s.nr_groups, 0); /* tools are named by their processes */
	assert_in(100, "tool_a", true);
	assert_in(101, "tool_a", true);
	assert_in(102, "tool_b", true);
	assert_in(102, "tool_a", false);
	assert_int_equal(scopes_ask(&s, 103), 0); /* it is about us */
	assert_int_equal(scopes_ask(&s, 104), 0);
	assert_int_equal(scopes_ask(&s, 4711), 0);
	assert_int_equal(s.nr_groups, 2);
	assert_true(s.asks && s.by_cmdline);
	assert_false(scopes_end(&s));
	scopes_release(&s);
	/* Without parentheses the matched text is the name; with a name of its own all are one group. */
	assert_int_equal(add("match:--in [a-z]"), 0);
	assert_int_equal(add("all=match:tool"), 0);
	assert_in(100, "--in x", true);
	assert_in(101, "--in y", true);
	assert_in(101, "all", true);
	assert_in(102, "all", true);
	assert_int_equal(s.nr_groups, 3);
	scopes_release(&s);
	env_free(env);
}

/* Every process its own tool, and more of them than there are groups. */
static void test_more_tools_than_groups(void **state)
{
	struct env *env = film_of("machines", "scopes");
	char target[32];

	(void)state;
	scopes_init(&s, env);
	for (int i = 0; i < SCOPES_MAX - 2; i++) {
		snprintf(target, sizeof(target), "n%d=%d", i, 1000 + i);
		assert_int_equal(add(target), 0);
	}
	assert_int_equal(add("match:^.*$"), 0);
	s.nr_groups = SCOPE_GROUPS_MAX - 2;
	for (unsigned i = SCOPES_MAX - 2; i < s.nr_groups; i++)
		snprintf(s.group[i].name, sizeof(s.group[i].name), "filled %u", i);
	assert_in(100, "/opt/bin/tool_a --in x.dat", true);
	assert_in(101, "(other tools)", true);
	assert_in(102, "(other tools)", true);
	assert_int_equal(s.nr_groups, SCOPE_GROUPS_MAX);
	assert_int_equal(add("5"), 0 - ENOSPC);
	scopes_release(&s);
	env_free(env);
}

static void test_users_and_all(void **state)
{
	struct env *env = film_of("machines", "scopes");

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(add("user:1000"), 0);
	assert_int_equal(add("two=user:1001"), 0);
	assert_int_equal(add("system"), 0);
	assert_in(100, "user:1000", true);
	assert_in(101, "user:1000", false);
	assert_in(101, "two", true);
	assert_in(104, "user:1000", false);
	assert_in(105, "user:1000", false); /* its status does not say */
	assert_in(104, "system", true);
	assert_int_equal(s.inheriting, 0);
	assert_false(scopes_end(&s));
	scopes_release(&s);
	env_free(env);
}

struct list {
	pid_t pid[8];
	uint64_t groups[8];
	unsigned nr;
};

static void listed(void *arg, pid_t pid, uint64_t groups)
{
	struct list *l = arg;

	l->pid[l->nr] = pid;
	l->groups[l->nr++] = groups;
}

static void test_control_groups(void **state)
{
	struct env *env = film_of("machines", "scopes");
	struct list list = {.nr = 0};

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(add("cgroup:/grp"), 0);
	assert_int_equal(add("dir=cgroup:/sys/fs/cgroup/memory/grp/"), 0);
	assert_int_equal(add("v2=cgroup:/sys/fs/cgroup/unified/user.slice"), 0);
	assert_int_equal(add("cgroup:/nowhere"), 0);
	assert_int_equal(open_scope(0), 0);
	assert_int_equal(open_scope(1), 0);
	assert_int_equal(open_scope(2), 0);
	assert_int_equal(open_scope(3), -ESRCH);
	assert_in(100, "cgroup:/grp", true);
	assert_in(101, "cgroup:/grp", true);  /* below it */
	assert_in(103, "cgroup:/grp", false); /* "/grpx" is another */
	assert_in(105, "cgroup:/grp", false);
	assert_in(101, "dir", true);
	assert_in(103, "dir", false);
	/* The mount shows /top as its root. */
	assert_in(100, "v2", true);
	assert_in(102, "v2", false);
	assert_true(scopes_end(&s));
	scopes_list(&s, listed, &list);
	assert_int_equal(list.nr, 7);
	assert_int_equal(list.pid[1], 102);
	assert_int_equal(list.groups[1], 1);
	assert_int_equal(list.pid[6], 1);
	assert_int_equal(list.groups[6], 4);
	scopes_release(&s);
	env_free(env);
}

static void test_containers(void **state)
{
	struct env *env = film_of("machines", "scopes");

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(add("container:0123456789ab"), 0);
	assert_int_equal(add("container:web"), 0);
	assert_int_equal(add("container:01234"), 0); /* too short to be sure */
	assert_int_equal(add("container:we"), 0);
	assert_int_equal(open_scope(0), 0);
	assert_int_equal(open_scope(1), 0);
	assert_int_equal(open_scope(2), -ESRCH);
	assert_int_equal(open_scope(3), -ESRCH);
	assert_in(106, "container:0123456789ab", true);
	assert_in(107, "container:0123456789ab", false);
	assert_in(107, "container:web", true);
	scopes_release(&s);
	env_free(env);
}

static void test_names_are_shared_only_by_equals(void **state)
{
	struct env *env = film_of("machines", "scopes");

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(scopes_add_command(&s, "make"), 0);
	assert_int_equal(add("both=100"), 0);
	assert_int_equal(add("both=102"), 0);
	assert_int_equal(s.nr_groups, 2);
	assert_int_equal(s.inheriting, 3);
	assert_int_equal(add("both=user:1000"), -EINVAL);
	assert_int_equal(open_scope(1), 0);
	assert_int_equal(add("4711"), 0);
	assert_int_equal(open_scope(3), -ESRCH);
	scopes_release(&s);
	env_free(env);
}

/* The tree asks about new processes and hands down what is inherited. */
static uint64_t ask(void *arg, pid_t pid)
{
	(void)arg;
	return scopes_ask(&s, pid);
}

static void test_the_tree_unites_groups(void **state)
{
	struct env *env = film_of("machines", "scopes");
	struct tree t;
	uint32_t slot;

	(void)state;
	scopes_init(&s, env);
	assert_int_equal(add("one=42"), 0);
	assert_int_equal(add("match:bin/(tool_[a-z])"), 0);
	assert_int_equal(tree_init(&t, env, 64), 0);
	t.inheriting = s.inheriting;
	t.ask = ask;
	assert_int_equal(tree_add(&t, 42, 0, 1, &slot), 0);
	assert_int_equal(tree_scan(&t), 0);
	/* All but the kernel's thread descend from 42; the tools are in a second group. */
	assert_int_equal(t.nr, 8);
	assert_int_equal(t.member[tree_find(&t, 100)].groups, 1 | 2);
	assert_int_equal(t.member[tree_find(&t, 102)].groups, 1 | 4);
	assert_int_equal(t.member[tree_find(&t, 103)].groups, 1);
	assert_true(tree_find(&t, 104) == NO_SLOT);
	/* A child is what its parent is until its exec. */
	assert_true(tree_forked(&t, 100, 500) != NO_SLOT);
	assert_int_equal(t.member[tree_find(&t, 500)].groups, 1 | 2);
	assert_true(tree_forked(&t, 104, 501) == NO_SLOT);
	tree_release(&t);
	scopes_release(&s);
	env_free(env);
}

static void put_file(const char *root, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Where PIDs are few the last one says nothing about how often they came round; the number of forks does. */
static void test_new_processes_are_counted_when_pids_come_round(void **state)
{
	static const char *const folder[] = {"", "/proc", "/proc/sys", "/proc/sys/kernel"};
	static const char *const file[] = {"proc/loadavg", "proc/stat", "proc/sys/kernel/pid_max"};
	char root[] = "/tmp/tacho-scope-XXXXXX", path[256], interrupts[9000];
	struct env *env;
	struct tree t;

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 1; i < ARRAY_SIZE(folder); i++) {
		snprintf(path, sizeof(path), "%s%s", root, folder[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	memset(interrupts, '0', sizeof(interrupts));
	memcpy(interrupts, "cpu 1\nintr ", 11);
	memcpy(interrupts + sizeof(interrupts) - 21, "\nprocesses 100000\nx\n", 21);
	put_file(root, "proc/sys/kernel/pid_max", "1000\n");
	put_file(root, "proc/loadavg", "0.1 0.1 0.1 1/9 500\n");
	put_file(root, "proc/stat", interrupts);
	env = env_live(root);
	assert_int_equal(tree_init(&t, env, 64), 0);
	tree_cursor_set(&t, 0);

	put_file(root, "proc/loadavg", "0.1 0.1 0.1 1/9 600\n"); /* none but those that it shows */
	put_file(root, "proc/stat", "intr 0\nprocesses 100120\n");
	t.polled_ns -= NSEC_PER_SEC;
	assert_int_equal(tree_poll(&t), 0);
	assert_int_equal(t.strangers, 100);
	put_file(root, "proc/loadavg", "0.1 0.1 0.1 1/9 700\n"); /* four times round */
	put_file(root, "proc/stat", "intr 0\nprocesses 103120\n");
	t.polled_ns -= NSEC_PER_SEC;
	assert_int_equal(tree_poll(&t), 0);
	assert_int_equal(t.strangers, 100 + 3000);

	tree_release(&t);
	env_free(env);
	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, file[i]);
		assert_int_equal(unlink(path), 0);
	}
	for (size_t i = ARRAY_SIZE(folder); i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", root, folder[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_target),
		cmocka_unit_test(test_tools_by_expression),
		cmocka_unit_test(test_more_tools_than_groups),
		cmocka_unit_test(test_users_and_all),
		cmocka_unit_test(test_control_groups),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_names_are_shared_only_by_equals),
		cmocka_unit_test(test_the_tree_unites_groups),
		cmocka_unit_test(test_new_processes_are_counted_when_pids_come_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
