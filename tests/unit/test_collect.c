/* The node's collectors, on machines and films: what they read, what they say is missing, what they survive.
 */
#include "collect_lab.h"

#include "base/buf.h"

static const char *const node_collectors[] = {"cpu", "kernel", "memory", "paging", "load", "pressure"};

static void test_cpus_of_a_large_node(void **state)
{
	struct env *env = film_of("machines", "numa-192");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "cpu");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_rows, 193);
	assert_int_equal(lab.table.nr_touched, 193);
	assert_int_equal(value(&lab, "cpu0", "cpu.user"), 1000000);
	assert_int_equal(value(&lab, "cpu191", "cpu.user"), 1000000 + 191 * 37);
	assert_int_equal(value(&lab, "cpu100", "cpu.system"), 200000 + 100 * 11);
	assert_int_equal(value(&lab, "cpu100", "cpu.idle"), 90000000 - 100 * 1000);
	assert_int_equal(value(&lab, "cpu100", "cpu.nice"), 1);
	assert_int_equal(value(&lab, "cpu100", "cpu.iowait"), 600);
	assert_int_equal(value(&lab, "cpu100", "cpu.softirq"), 1300);
	assert_int_equal(value(&lab, "total", "cpu.user"), 192 * 1000000 + 37 * 191 * 96);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

static void test_memory_and_paging_of_a_large_node(void **state)
{
	struct env *env = film_of("machines", "numa-192");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "memory");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "mem.total"), 1585204312);
	assert_int_equal(node(&lab, "mem.available"), 802345678);
	assert_int_equal(node(&lab, "mem.active"), 500000000); /* not Active(anon) */
	assert_int_equal(node(&lab, "mem.swap_free"), 8388604);
	assert_int_equal(node(&lab, "mem.committed"), 456789012);
	assert_int_equal(node(&lab, "mem.huge_total"), 4096);
	assert_int_equal(node(&lab, "mem.huge_size"), 2048);
	assert_int_equal(node(&lab, "mem.corrupted"), 4);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);

	lab_open(&lab, env, "paging");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "paging.in"), 123456789012);
	assert_int_equal(node(&lab, "paging.swap_out"), 4);
	assert_int_equal(node(&lab, "paging.scan_direct"), 678901);
	assert_int_equal(node(&lab, "paging.alloc_stalls"), 1234);
	assert_int_equal(node(&lab, "paging.oom_kills"), 2);
	assert_int_equal(node(&lab, "paging.numa_miss"), 1234567);
	assert_int_equal(node(&lab, "paging.numa_hint_local"), 300000);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

static void test_load_pressure_and_counts(void **state)
{
	struct env *env = film_of("machines", "numa-192");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "load");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "load.1m"), 18125);
	assert_int_equal(node(&lab, "load.5m"), 17050);
	assert_int_equal(node(&lab, "load.15m"), 9999);
	assert_int_equal(node(&lab, "load.running"), 180);
	assert_int_equal(node(&lab, "load.threads"), 4321);
	lab_release(&lab);

	lab_open(&lab, env, "pressure");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "pressure.cpu.some"), 123456789012);
	assert_int_equal(node(&lab, "pressure.cpu.some_avg10"), 1234);
	assert_int_equal(node(&lab, "pressure.cpu.full"), 0);
	assert_int_equal(node(&lab, "pressure.memory.full"), 44);
	assert_int_equal(node(&lab, "pressure.io.some_avg10"), 350);
	assert_int_equal(node(&lab, "pressure.io.full_avg10"), 225);
	assert_int_equal(node(&lab, "pressure.io.full"), 55443322);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);

	lab_open(&lab, env, "kernel");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "kernel.switches"), 123456789012);
	assert_int_equal(node(&lab, "kernel.interrupts"), 99887766554);
	assert_int_equal(node(&lab, "kernel.forks"), 7654321);
	assert_int_equal(node(&lab, "kernel.running"), 180);
	assert_int_equal(node(&lab, "kernel.blocked"), 3);
	lab_release(&lab);
	env_free(env);
}

/* Keys as a real kernel spells them: only what its configuration lacks is missing. */
static void test_a_real_kernel(void **state)
{
	struct env *env = film_of("films", "vm-2cpu");
	struct lab lab;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(node_collectors); i++) {
		bool is_memory = !strcmp(node_collectors[i], "memory");

		lab_open(&lab, env, node_collectors[i]);
		assert_int_equal(lab_sample(&lab), 0);
		assert_int_equal(lab.whys, is_memory);
		if (is_memory) {
			assert_int_equal(availability(&lab, "mem.corrupted"), ABSENT);
			assert_int_equal(node(&lab, "mem.total"), 24682416);
		}
		lab_release(&lab);
	}
	lab_open(&lab, env, "cpu");
	assert_int_equal(lab_sample(&lab), 0);
	for (int frame = 1; frame < 4; frame++) {
		int64_t user = value(&lab, "total", "cpu.user");

		assert_int_equal(env_sleep_until(env, env_now(env, ENV_MONOTONIC) + 20 * NSEC_PER_MSEC), 0);
		assert_int_equal(lab_sample(&lab), 0);
		assert_true(value(&lab, "total", "cpu.user") >= user);
	}
	assert_int_equal(env_sleep_until(env, env_now(env, ENV_MONOTONIC)), -ENODATA);
	lab_release(&lab);
	env_free(env);
}

/* What an old kernel does not have is said once, and is no zero. */
static void test_a_small_old_machine(void **state)
{
	struct env *env = film_of("machines", "tiny-arm");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "memory");
	assert_int_equal(availability(&lab, "mem.available"), ABSENT);
	assert_string_equal(lab.why, "this kernel does not report it");
	assert_int_equal(availability(&lab, "mem.free"), AVAILABLE);
	for (int i = 0; i < 3; i++) {
		unsigned whys = lab.whys;

		assert_int_equal(lab_sample(&lab), 0);
		assert_int_equal(node(&lab, "mem.available"), INVALID);
		assert_int_equal(node(&lab, "mem.free"), 2312);
		assert_int_equal(lab.whys, whys);
	}
	lab_release(&lab);

	lab_open(&lab, env, "cpu");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_rows, 2);
	assert_int_equal(value(&lab, "cpu0", "cpu.guest"), 0);
	assert_int_equal(value(&lab, "cpu0", "cpu.guest_nice"), INVALID);
	assert_int_equal(availability(&lab, "cpu.guest_nice"), ABSENT);
	assert_int_equal(lab.whys, 1);
	lab_release(&lab);

	lab_open(&lab, env, "paging");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "paging.alloc_stalls"), 17);
	assert_int_equal(availability(&lab, "paging.numa_hit"), ABSENT);
	assert_int_equal(availability(&lab, "paging.alloc_stalls"), AVAILABLE);
	lab_release(&lab);

	lab_init(&lab, env, "pressure");
	assert_int_equal(lab.collector->probe(env, &why), -ENOENT);
	assert_non_null(strstr(why.remedy, "psi=1"));
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), -ENOENT);
	lab_release(&lab);
	env_free(env);
}

static void test_broken_files(void **state)
{
	struct env *env = film_of("machines", "broken");
	struct trouble why = {0};
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "cpu");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_rows, 2);
	assert_int_equal(value(&lab, "total", "cpu.user"), 0); /* 2^64 wraps */
	assert_int_equal(value(&lab, "total", "cpu.nice"), 10);
	assert_int_equal(value(&lab, "total", "cpu.system"), -5);
	assert_int_equal(value(&lab, "total", "cpu.iowait"), INT64_MAX);
	assert_int_equal(value(&lab, "cpu0", "cpu.user"), 1);
	assert_int_equal(value(&lab, "cpu0", "cpu.system"), INVALID);
	lab_release(&lab);

	lab_open(&lab, env, "memory");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "mem.total"), 24682416);
	assert_int_equal(node(&lab, "mem.free"), INVALID);
	assert_int_equal(node(&lab, "mem.available"), INVALID);
	assert_int_equal(node(&lab, "mem.buffers"), 12);
	assert_int_equal(node(&lab, "mem.cached"), 1);
	assert_int_equal(node(&lab, "mem.swap_free"), INVALID);
	lab_release(&lab);

	lab_open(&lab, env, "paging");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "paging.in"), INVALID);
	assert_int_equal(node(&lab, "paging.out"), 5);
	assert_int_equal(node(&lab, "paging.alloc_stalls"), INVALID);
	lab_release(&lab);

	lab_open(&lab, env, "load");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "load.1m"), 50);
	assert_int_equal(node(&lab, "load.5m"), INVALID);
	assert_int_equal(node(&lab, "load.threads"), INVALID);
	lab_release(&lab);

	lab_open(&lab, env, "kernel");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "kernel.switches"), INVALID);
	assert_int_equal(node(&lab, "kernel.running"), -3);
	lab_release(&lab);

	lab_init(&lab, env, "pressure");
	assert_int_equal(lab.collector->probe(env, &why), -ENOENT);
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), -EOPNOTSUPP);
	lab_release(&lab);
	env_free(env);
}

static void turn(struct env *env, struct lab *lab, int second, int want)
{
	assert_int_equal(env_sleep_until(env, (100 + second) * NSEC_PER_SEC), 0);
	assert_int_equal(lab_sample(lab), want);
}

static void test_cpus_come_and_go(void **state)
{
	struct env *env = film_of("films", "cpu-hotplug");
	struct lab lab;
	uint32_t id;

	(void)state;
	lab_open(&lab, env, "cpu");
	assert_int_equal(lab_sample(&lab), 0);
	id = lab.table.id[row_of(&lab, "cpu2")];
	turn(env, &lab, 1, 0);
	assert_int_equal(value(&lab, "cpu1", "cpu.iowait"), 12);

	turn(env, &lab, 2, 0);
	assert_int_equal(row_of(&lab, "cpu2"), -1);
	assert_true(row_of(&lab, "cpu3") >= 0);
	assert_int_equal(value(&lab, "cpu1", "cpu.idle"), 1100);
	assert_int_equal(value(&lab, "total", "cpu.user"), 520);

	/* Idle and iowait step back and are held; the total likewise. */
	turn(env, &lab, 3, 0);
	assert_int_equal(value(&lab, "cpu1", "cpu.user"), 250);
	assert_int_equal(value(&lab, "cpu1", "cpu.idle"), 1100);
	assert_int_equal(value(&lab, "cpu1", "cpu.iowait"), 14);
	assert_int_equal(value(&lab, "total", "cpu.iowait"), 44);

	turn(env, &lab, 4, 0);
	assert_int_equal(value(&lab, "cpu1", "cpu.iowait"), 16);
	assert_int_equal(value(&lab, "cpu2", "cpu.user"), 105);
	assert_int_equal(value(&lab, "total", "cpu.user"), 646);
	assert_int_equal(value(&lab, "total", "cpu.idle"), 4769);
	assert_int_equal(value(&lab, "cpu2", "cpu.idle"), 7);
	assert_int_equal(value(&lab, "cpu4", "cpu.iowait"), 3);
	assert_true(lab.table.id[row_of(&lab, "cpu2")] != id);

	/* All start anew: a reset, for the query to see. */
	turn(env, &lab, 5, 0);
	assert_int_equal(value(&lab, "cpu1", "cpu.user"), 2);
	assert_int_equal(value(&lab, "cpu1", "cpu.idle"), 21);
	assert_int_equal(value(&lab, "cpu1", "cpu.iowait"), 0);

	/* Nothing could be read: nothing is known, and nobody has left. */
	id = lab.table.id[row_of(&lab, "cpu4")];
	turn(env, &lab, 6, -EIO);
	assert_int_equal(value(&lab, "cpu1", "cpu.user"), INVALID);
	assert_int_equal(value(&lab, "total", "cpu.user"), INVALID);
	assert_int_equal(lab.table.nr_touched, 6);

	turn(env, &lab, 7, 0);
	assert_int_equal(value(&lab, "cpu4", "cpu.user"), 15);
	assert_int_equal(lab.table.id[row_of(&lab, "cpu4")], id);
	lab_release(&lab);
	env_free(env);
}

/* Only what is wanted is there, and where the map says. */
static void test_chosen_rows_only(void **state)
{
	struct env *env = film_of("films", "cpu-hotplug");
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "cpu");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = -1;
	lab.ctx.map.col[index_of(&lab, "cpu.iowait")] = 0;
	lab.ctx.map.col[index_of(&lab, "cpu.user")] = 1;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "cpu3", "cpu.iowait"), 10);
	assert_int_equal(value(&lab, "cpu3", "cpu.user"), 100);
	assert_int_equal(lab.table.valid[row_of(&lab, "cpu3")], 3);
	lab_release(&lab);
	env_free(env);
}

/* All cells of all collectors, over the length of a film or for a few turns of a live machine. */
static void record(struct env *env, int turns, struct buf *log)
{
	static struct lab lab[ARRAY_SIZE(node_collectors)];
	bool opened[ARRAY_SIZE(node_collectors)];
	int64_t start = env_now(env, ENV_MONOTONIC);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lab); i++) {
		struct trouble why;

		lab_init(&lab[i], env, node_collectors[i]);
		opened[i] = lab[i].collector->probe(env, &why) == 0 &&
			lab[i].collector->open(lab[i].state, &lab[i].ctx) == 0;
	}
	for (int t = 1; !r && t <= turns; t++) {
		for (size_t i = 0; i < ARRAY_SIZE(lab); i++) {
			int error = opened[i] ? lab_sample(&lab[i]) : 0;

			buf_addf(log, "%s %d %d\n", node_collectors[i], t, error);
			for (uint32_t row = 0; row < lab[i].table.nr_rows; row++) {
				buf_addf(log, "%s %llx:", lab[i].name[row],
					(unsigned long long)lab[i].table.valid[row]);
				for (uint32_t c = 0; c < lab[i].table.nr_cols; c++)
					buf_addf(log, " %lld", (long long)table_row(&lab[i].table, row)[c]);
				buf_addch(log, '\n');
			}
		}
		r = env_sleep_until(env, start + t * 20 * NSEC_PER_MSEC);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lab); i++)
		lab_release(&lab[i]);
}

static void test_the_play_of_a_capture_gives_the_same_cells(void **state)
{
	char path[] = "/tmp/tacho-test-collect-XXXXXX";
	struct buf seen, played;
	struct env *env;
	unsigned line;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	buf_init(&seen, 1 << 24);
	buf_init(&played, 1 << 24);
	env = env_capture(env_live(NULL), path);
	record(env, 4, &seen);
	env_free(env);
	assert_int_equal(env_film(path, &env, &line), 0);
	record(env, 4, &played);
	env_free(env);
	unlink(path);
	assert_int_equal(seen.err, 0);
	assert_string_equal((char *)played.data, (char *)seen.data);
	/* Time has passed on the real machine. */
	assert_non_null(strstr((char *)seen.data, "cpu 4 0\ntotal"));
	buf_release(&seen);
	buf_release(&played);
}

/* Every call fails once, in all collectors: none crashes, none lies, and all recover with the next reading.
 */
static void test_every_call_may_fail(void **state)
{
	static struct lab lab;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(node_collectors); i++) {
		for (unsigned n = 1; n <= 10; n++) {
			struct env *env = env_failing(film_of("machines", "numa-192"), n, -EIO);
			struct trouble why = {0};
			int failures = 0, r;

			lab_init(&lab, env, node_collectors[i]);
			r = lab.collector->probe(env, &why);
			if (r < 0) {
				assert_non_null(why.reason);
				failures++;
			}
			r = lab.collector->open(lab.state, &lab.ctx);
			failures += r < 0;
			for (int tick = 0; r == 0 && tick < 8; tick++) {
				int sampled = lab_sample(&lab);

				assert_true(lab.table.nr_touched > 0);
				for (uint32_t row = 0; row < lab.table.nr_rows; row++)
					if (sampled < 0)
						assert_true(lab.table.valid[row] !=
							UINT64_MAX >> (64 - lab.table.nr_cols));
					else
						assert_int_equal(lab.table.valid[row],
							UINT64_MAX >> (64 - lab.table.nr_cols));
				failures += sampled < 0;
			}
			if (failures != 1)
				fail_msg("%s: %d failures at call %u", node_collectors[i], failures, n);
			lab_release(&lab);
			env_free(env);
		}
	}
}

static bool name_is_good(const char *name)
{
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(name) && strchr(name, '.');
}

/* Names are for ever, so a slip must not get in: of all collectors, not only ours. */
static void test_rows_are_well_formed(void **state)
{
	(void)state;
	for (size_t c = 0; collectors[c]; c++) {
		assert_true(collectors[c]->nr_metrics <= METRICS_MAX);
		assert_ptr_equal(collector_find(collectors[c]->name), collectors[c]);
		for (size_t i = 0; i < collectors[c]->nr_metrics; i++) {
			const struct metric *m = &collectors[c]->metric[i];
			size_t len = strlen(m->help);

			if (!name_is_good(m->name) || !len || m->help[len - 1] != '.' ||
				m->kind >= NR_KINDS || m->fold >= NR_FOLDS || m->unit >= NR_UNITS ||
				m->tier >= NR_TIERS)
				fail_msg("%s", m->name);
			for (size_t d = 0; d <= c; d++)
				for (size_t j = 0; j < (d < c ? collectors[d]->nr_metrics : i); j++)
					assert_string_not_equal(m->name, collectors[d]->metric[j].name);
		}
	}
	assert_null(collector_find("none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus_of_a_large_node),
		cmocka_unit_test(test_memory_and_paging_of_a_large_node),
		cmocka_unit_test(test_load_pressure_and_counts),
		cmocka_unit_test(test_a_real_kernel),
		cmocka_unit_test(test_a_small_old_machine),
		cmocka_unit_test(test_broken_files),
		cmocka_unit_test(test_cpus_come_and_go),
		cmocka_unit_test(test_chosen_rows_only),
		cmocka_unit_test(test_the_play_of_a_capture_gives_the_same_cells),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_rows_are_well_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
