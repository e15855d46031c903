/* What is read of a process when its memory moves between two readings: a child of ours that does what it is
 * told. */
#include "collect_lab.h"

#include "collect/process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MIB (INT64_C(1) << 20)
#define ROW 0
#define FORKED 1
#define SECOND_FORKED 2

static struct lab lab;
static struct processes *processes;
static int told[2], done[2];
static pid_t child, forked;

/* '+': takes 32 MiB more, '-': gives the last ones back, 'f': forks a child and tells its PID, 'x': ends it.
 */
static void obey(void)
{
	char *memory[4], what;
	pid_t own = 0, parent = getpid();
	int nr = 0;

	while (read(told[0], &what, 1) == 1) {
		if (what == '+') {
			memory[nr] = mmap(
				NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(memory[nr], 32 * MIB, MADV_NOHUGEPAGE);
			memset(memory[nr++], 1, 32 * MIB);
		} else if (what == '-') {
			munmap(memory[--nr], 32 * MIB);
		} else if (what == 'f') {
			own = fork();
			if (own == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				while (getppid() == parent) /* else it had ended before */
					pause();
				_exit(0);
			}
			if (write(done[1], &own, sizeof(own)) != sizeof(own))
				break;
			continue;
		} else {
			kill(own, SIGKILL);
			waitpid(own, NULL, 0);
		}
		if (write(done[1], &what, 1) != 1)
			break;
	}
	_exit(0);
}

static void tell(const char *what)
{
	char answer;

	for (; *what; what++) {
		assert_int_equal(write(told[1], what, 1), 1);
		assert_int_equal(read(done[0], &answer, 1), 1);
	}
}

static int begin(void **state)
{
	(void)state;
	if (pipe(told) < 0 || pipe(done) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(told[1]);
		obey();
	}
	lab_init(&lab, env_live(NULL), "process");
	if (processes_open(&processes, &lab.ctx, 100) < 0)
		return -1;
	table_bind(&lab.table, ROW, 1);
	process_bind(processes, ROW, child);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(told[0]);
	close(told[1]);
	close(done[0]);
	close(done[1]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	processes_close(processes);
	free(lab.state);
	table_release(&lab.table);
	env_free(lab.ctx.env);
	return 0;
}

static int64_t bytes_at(uint32_t row, const char *metric)
{
	int64_t v, unit = strcmp(metric, "proc.mem.rss") ? 1024 : lab.ctx.env->page_size;

	return process_cell(processes, row, metric, &v) ? v * unit : INVALID;
}

static int64_t bytes_of(const char *metric)
{
	return bytes_at(ROW, metric);
}

/* As at a tick between two of those that read everything. */
static bool sample(bool follow)
{
	struct process_facts facts;

	assert_int_equal(process_read(processes, ROW, env_cpu_clock(lab.ctx.env, child), false, follow,
				 READ_IF_MOVED, &facts),
		1);
	return facts.has_status;
}

static void first(void)
{
	struct process_facts facts;

	assert_int_equal(
		process_read(processes, ROW, env_cpu_clock(lab.ctx.env, child), true, true, READ_ALL, &facts),
		1);
	assert_true(facts.has_status);
}

static void test_page_faults_tell_of_a_spike(void **state)
{
	int64_t before;

	(void)state;
	first();
	before = bytes_of("proc.mem.hwm");
	tell("+-");
	assert_true(sample(true));
	assert_true(bytes_of("proc.mem.hwm") >= before + 28 * MIB);
	assert_true(bytes_of("proc.mem.rss") < before + 8 * MIB);
	tell("++--");
	assert_false(sample(false)); /* too soon: */
	assert_true(sample(true));   /* it is remembered, though the process sleeps now */
	assert_true(bytes_of("proc.mem.hwm") >= before + 60 * MIB);
}

static void test_rss_is_of_the_moment_of_pss(void **state)
{
	int64_t rss;

	(void)state;
	tell("+");
	first();
	rss = bytes_of("proc.mem.rss");
	tell("-");
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	assert_true(bytes_of("proc.mem.rss") < rss - 28 * MIB);
	assert_true(bytes_of("proc.mem.rss") < bytes_of("proc.smaps.rss") + 2 * MIB);
}

static void test_one_that_has_ended_has_no_memory(void **state)
{
	siginfo_t info;

	(void)state;
	tell("+");
	first();
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_read_smaps(processes, ROW) < 0);
	assert_int_equal(bytes_of("proc.mem.rss"), INVALID);
}

/* The sanitizers' own memory is shared as well. */
#ifdef __SANITIZE_ADDRESS__
#define MORE_MIB 12
#else
#define MORE_MIB 3
#endif

static void assert_about(int64_t bytes, int64_t mib)
{
	assert_in_range(bytes, mib * MIB - 3 * MIB, mib * MIB + MORE_MIB * MIB);
}

/* It forks, and the child is seen for the first time. */
static void fork_into(uint32_t row)
{
	struct process_facts facts;

	assert_int_equal(write(told[1], "f", 1), 1);
	assert_int_equal(read(done[0], &forked, sizeof(forked)), sizeof(forked));
	table_bind(&lab.table, row, row + 1);
	process_bind(processes, row, forked);
	assert_int_equal(process_read(processes, row, env_cpu_clock(lab.ctx.env, forked), true, true,
				 READ_ALL, &facts),
		1);
	sample(true);
}

/* It has 32 MiB and is read, then it forks. */
static void fork_after_reading(void)
{
	tell("+");
	first();
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	fork_into(FORKED);
}

static void test_forked_child_has_its_parents_memory(void **state)
{
	int64_t before;

	(void)state;
	fork_after_reading();
	before = processes_reshared(processes);
	assert_int_equal(process_smaps_drift(processes, FORKED), INT64_MAX);
	process_inherit(processes, FORKED, ROW);
	/* The parent's reading is in doubt, and it is the first to be read again. */
	assert_about((processes_reshared(processes) - before) * 1024, 32);
	assert_about(bytes_at(FORKED, "proc.smaps.doubt"), 32);
	assert_true(process_is_outshared(processes, ROW));
	assert_true(process_smaps_drift(processes, FORKED) <= process_rss_pages(processes, FORKED) / 8);
	process_tell_doubt(processes, ROW, NO_PARENT);
	process_tell_doubt(processes, FORKED, ROW);
	assert_about(bytes_of("proc.smaps.doubt"), 32);
	assert_about(bytes_at(FORKED, "proc.smaps.doubt"), 32);
	/* The parent bears half of it now, so does the child. */
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	process_tell_family(processes, ROW, NO_PARENT);
	process_tell_doubt(processes, FORKED, ROW);
	assert_int_equal(bytes_of("proc.smaps.doubt"), 0);
	assert_about(bytes_at(FORKED, "proc.smaps.doubt"), 16);
	assert_int_equal(process_read_smaps(processes, FORKED), 0);
	assert_int_equal(bytes_at(FORKED, "proc.smaps.doubt"), 0);
	assert_about(bytes_at(FORKED, "proc.mem.pss"), 16);
}

/* Two were read when they were two. Then there are three, and one of them is read, whichever. */
static void test_what_others_bear_by_now_is_told(void **state)
{
	static const uint32_t reader[] = {ROW, FORKED};

	(void)state;
	fork_after_reading();
	process_inherit(processes, FORKED, ROW);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(process_read_smaps(processes, reader[i]), 0);
		process_tell_family(processes, reader[i], reader[i] == ROW ? NO_PARENT : ROW);
	}
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	fork_into(SECOND_FORKED);
	process_inherit(processes, SECOND_FORKED, ROW);
	for (int i = 0; i < 2; i++) {
		uint32_t other = reader[!i];

		assert_int_equal(process_read_smaps(processes, reader[i]), 0);
		process_tell_family(processes, reader[i], reader[i] == ROW ? NO_PARENT : ROW);
		process_tell_doubt(processes, other, other == ROW ? NO_PARENT : ROW);
		process_tell_doubt(processes, SECOND_FORKED, ROW);
		assert_about(bytes_at(SECOND_FORKED, "proc.smaps.doubt"), 21);
		if (i == 0)
			assert_about(-bytes_at(other, "proc.smaps.doubt"), 5);
	}
}

static void test_sharer_that_left_is_not_counted_beside_its_heir(void **state)
{
	(void)state;
	fork_after_reading();
	process_inherit(processes, FORKED, ROW);
	assert_int_equal(process_read_smaps(processes, FORKED), 0);
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	assert_int_equal(process_read_smaps(processes, FORKED), 0);
	assert_true(processes_are_wary(processes)); /* first readings */
	process_recheck(processes, FORKED);
	assert_about(bytes_at(FORKED, "proc.mem.rss"), 33);
	assert_false(process_is_outshared(processes, FORKED));
	assert_false(processes_are_wary(processes));
	tell("x");
	assert_int_equal(process_read_smaps(processes, ROW), 0);
	assert_true(processes_are_wary(processes));
	process_recheck(processes, FORKED);
	assert_int_equal(bytes_at(FORKED, "proc.mem.rss"), INVALID);
	assert_true(process_is_outshared(processes, ROW)); /* whoever was read before it was found out */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page_faults_tell_of_a_spike, begin, end),
		cmocka_unit_test_setup_teardown(test_rss_is_of_the_moment_of_pss, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_has_ended_has_no_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_forked_child_has_its_parents_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_what_others_bear_by_now_is_told, begin, end),
		cmocka_unit_test_setup_teardown(
			test_sharer_that_left_is_not_counted_beside_its_heir, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
