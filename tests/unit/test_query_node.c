/* query/: what the node did meanwhile, what the job was allowed, and the shares; in figures, JSON and words.
 */
#include "query_maker.h"

#include "query/counter_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (INT64_C(1) << 20)

/* ---- totals ---- */

static void set_traffic(struct maker *m, uint32_t row, int64_t bytes)
{
	maker_set(m, row, "net.rx.bytes", bytes);
	maker_set(m, row, "net.tx.bytes", 2 * bytes);
	maker_set(m, row, "net.rx.packets", bytes / 100);
	maker_set(m, row, "net.tx.packets", bytes / 50);
}

static void test_traffic_is_the_growth_of_all_interfaces(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_instance(&m, MAKER_NET, 1, 0, "br0", "apart", "bridge over eth0", NULL);
	set_traffic(&m, 0, 1000000); /* what it has done so far is not ours */
	set_traffic(&m, 1, 1000000);
	maker_tick(&m, 0);
	set_traffic(&m, 0, 1000500);
	set_traffic(&m, 1, 1000500);
	maker_tick(&m, SECOND);
	/* Another comes, with a past. */
	maker_instance(&m, MAKER_NET, 2, 0, "eth1", NULL);
	set_traffic(&m, 2, 7000000);
	maker_tick(&m, 2 * SECOND);
	set_traffic(&m, 2, 7000300);
	maker_tick(&m, 3 * SECOND);
	/* It was reset, and counts on. */
	set_traffic(&m, 2, 100);
	maker_tick(&m, 4 * SECOND);
	set_traffic(&m, 2, 200);
	maker_tick(&m, 5 * SECOND);
	/* It goes, another sits in its row. */
	maker_leave(&m, MAKER_NET, 2, 5 * SECOND);
	maker_instance(&m, MAKER_NET, 2, 1, "eth2", NULL);
	set_traffic(&m, 2, 5000);
	maker_tick(&m, 6 * SECOND);
	set_traffic(&m, 2, 5100);
	/* One that cannot be read for a while has counted meanwhile. */
	maker_unset(&m, 0, "net.rx.bytes");
	maker_tick(&m, 7 * SECOND);
	maker_set(&m, 0, "net.rx.bytes", 1001000);
	maker_tick(&m, 8 * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_NET_RX_BYTES), 500 + 300 + 100 + 100 + 500);
	assert_near(value(s, FIG_NET_TX_BYTES), 2 * (500 + 300 + 100 + 100));
	assert_near(value(s, FIG_NET_RX_PACKETS), 5 + 3 + 1 + 1);
	assert_near(value(s, FIG_NET_TX_PACKETS), 10 + 6 + 2 + 2);
	/* There is no such thing here: not zero. */
	assert_non_null(s->figure[FIG_IB_RX_BYTES].why);
	summary_free(s);
}

static void test_disks_and_ports(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_DISK, 0, 0, "sda", NULL);
	maker_instance(&m, MAKER_DISK, 1, 0, "sda1", "apart", "part of sda", NULL);
	maker_instance(&m, MAKER_IB, 0, 0, "mlx5_0/1", NULL);
	for (int64_t i = 0; i <= 3; i++) {
		for (uint32_t row = 0; row < 2; row++) {
			maker_set(&m, row, "disk.read.bytes", 10 * i);
			maker_set(&m, row, "disk.write.bytes", 100 * i);
		}
		maker_set(&m, 0, "ib.rx.bytes", INT64_C(1) << (40 + i));
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_DISK_READ), 30 * 512);
	assert_near(value(s, FIG_DISK_WRITTEN), 300 * 512);
	assert_near(value(s, FIG_IB_RX_BYTES), (double)((INT64_C(1) << 43) - (INT64_C(1) << 40)));
	/* Never given. */
	assert_non_null(s->figure[FIG_IB_TX_BYTES].why);
	summary_free(s);
}

static void test_energy_is_counted_and_says_what_it_contains(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_ENERGY, 0, 0, "package-0", "source", "rapl", NULL);
	maker_instance(
		&m, MAKER_ENERGY, 1, 0, "core-0", "source", "rapl", "apart", "part of package-0", NULL);
	maker_instance(&m, MAKER_ENERGY, 2, 0, "dram-0", "source", "rapl", NULL);
	maker_instance(&m, MAKER_ENERGY, 3, 0, "silent", "source", "hwmon", NULL);
	for (int64_t i = 0; i <= 4; i++) {
		maker_set(&m, 0, "energy.used", 123456789 + i * 50500000);
		maker_set(&m, 1, "energy.used", 1 + i * 40000000);
		maker_set(&m, 2, "energy.used", 7 + i * 10000000);
		maker_set(&m, 3, "energy.power", 999000000); /* power is not added to what was counted */
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_ENERGY), 4 * 60.5);
	assert_near(value(s, FIG_POWER), 60.5);
	assert_string_equal(s->text[TEXT_ENERGY_SOURCE], "rapl: package-0, dram-0");
	summary_free(s);
}

static void test_power_over_time_where_nothing_counts_energy(void **state)
{
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_ENERGY, 0, 0, "node", "source", "cray", NULL);
	maker_instance(&m, MAKER_ENERGY, 1, 0, "psu", "source", "hwmon", NULL);
	maker_set(&m, 0, "energy.power", 100000000);
	maker_set(&m, 1, "energy.power", 10000000);
	maker_tick(&m, 0);
	/* From 100 W to 200 W in two seconds, then so for eight; the other as before. */
	maker_set(&m, 0, "energy.power", 200000000);
	maker_tick(&m, 2 * SECOND);
	for (int64_t i = 3; i <= 10; i++)
		maker_tick(&m, i * SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_ENERGY), 300 + 1600 + 100);
	assert_near(value(s, FIG_POWER), 200);
	assert_string_equal(s->text[TEXT_ENERGY_SOURCE], "cray: node; hwmon: psu");
	summary_free(s);

	/* One reading has no duration. */
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_ENERGY, 0, 0, "node", NULL);
	maker_set(&m, 0, "energy.power", 100000000);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_ENERGY), 0);
	assert_non_null(s->figure[FIG_POWER].why);
	assert_string_equal(s->text[TEXT_ENERGY_SOURCE], "unknown: node");
	summary_free(s);
}

static void test_totals_go_on_across_a_gap(void **state)
{
	uint64_t random = 1;
	struct summary *s;
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 3000; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
		maker_set(&m, 0, "proc.mem.vms", (int64_t)(random >> 20));
		maker_set(&m, 0, "net.rx.bytes", i * 1000);
		maker_tick(&m, i * SECOND);
		if (i % 10 == 0)
			assert_int_equal(store_flush(m.w), 0);
	}
	maker_finish(&m, NULL);
	for (double where = 0.40; where < 0.60; where += 0.002)
		damage(file, where);
	s = summary_of(file);
	assert_true(s->lost_bytes > 0);
	assert_near(value(s, FIG_NET_RX_BYTES), 3000000);
	summary_free(s);
}

/* ---- the job's own control group ---- */

static void test_the_jobs_own_control_group(void **state)
{
	struct maker m;
	struct summary *s;
	struct buf out;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_CGROUP, 0, 0, "/slurm", NULL);
	maker_instance(&m, MAKER_CGROUP, 1, 0, "/slurm/job_7", "own", "1", NULL);
	for (int64_t i = 0; i <= 2; i++) {
		for (uint32_t row = 0; row < 2; row++) {
			maker_set(&m, row, "cgroup.memory.peak", (row ? 10 : 1000) * MIB);
			maker_set(&m, row, "cgroup.memory.current", (row ? 5 : 900) * MIB);
			maker_set(&m, row, "cgroup.memory.oom_kill", 4 + (row ? i : 10 * i));
			maker_set(&m, row, "cgroup.cpu.throttled", 1000000 + (row ? i * 750000 : 0));
		}
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_string_equal(s->text[TEXT_CGROUP], "/slurm/job_7");
	assert_near(value(s, FIG_CGROUP_PEAK), 10 * MIB);
	assert_near(value(s, FIG_OOM_KILLS), 2);
	assert_near(value(s, FIG_THROTTLED), 1.5);
	/* What must not be overlooked stands before everything else. */
	assert_int_equal(s->nr_alarms, 2);
	assert_non_null(strstr(s->note[0], "the kernel killed 2 processes"));
	assert_non_null(strstr(s->note[1], "throttled"));
	buf_init(&out, 1 << 20);
	assert_non_null(strstr(words_of(s, 80, false, &out), "\n  alarm    out of memory"));
	assert_non_null(strstr((char *)out.data, "\n  alarm    throttled: the CPU quota of /slurm/job_7"));
	assert_true(strstr((char *)out.data, "alarm") < strstr((char *)out.data, "  cpu "));
	buf_release(&out);
	summary_free(s);

	/* Kernels without a mark of their own: as sampled. */
	maker_open(&m, file, &(struct maker_options){.without = "cgroup.memory.peak"});
	maker_instance(&m, MAKER_CGROUP, 0, 0, "/a", "own", "1", NULL);
	maker_set(&m, 0, "cgroup.memory.current", 3 * MIB);
	maker_tick(&m, 0);
	maker_set(&m, 0, "cgroup.memory.current", 1 * MIB);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_near(value(s, FIG_CGROUP_PEAK), 3 * MIB);
	assert_int_equal(s->nr_alarms, 0);
	assert_non_null(s->figure[FIG_OOM_KILLS].why);
	summary_free(s);
}

/* ---- limits and shares ---- */

static const char *const allowed[] = {"limits.cpus", "1.5", "limits.cpus_source", "cgroup /job_7",
	"limits.memory_bytes", "1048576", "limits.memory_source", "SLURM_MEM_PER_NODE", "limits.machine_cpus",
	"64", "limits.machine_memory_bytes", "8388608", "scheduler.kind", "slurm", "scheduler.job_id", "4711",
	"scheduler.found_by", "cgroup", "hw.cpu_model", "Fast \"1\"", "hw.cores", "32", "hw.boot", "007",
	"hw.size", "272629760", "env.SLURM_JOB_ID", "4711", "env.", "no name", NULL};

static void make_allowed(const char *path, const char *host, bool pss)
{
	struct maker_options o = {.meta = allowed, .host = host, .without = pss ? NULL : "proc.mem.pss"};
	struct maker m;

	maker_open(&m, path, &o);
	maker_instance(&m, MAKER_LIMITS, 0, 0, "limits", NULL);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 4; i++) {
		maker_set(&m, 0, "limit.cpus", 1500);
		maker_set(&m, 0, "limit.memory", MIB);
		maker_set(&m, 0, "proc.cpu.time", i * 1200 * MILLI);
		maker_set(&m, 0, "net.rx.bytes", i * 10 * MIB);
		maker_set(&m, 0, "net.tx.bytes", i * MIB);
		set_memory(&m, 0, 128, 0);
		if (pss)
			set_smaps(&m, 0, 512, 256, 0, 256);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, "end_ns", 4 * SECOND, NULL);
}

static void test_shares_are_of_the_allocation_and_of_the_node(void **state)
{
	struct summary *s;

	(void)state;
	make_allowed(file, "here", true);
	s = summary_of(file);
	assert_near(value(s, FIG_LIMIT_CPUS), 1.5);
	assert_near(value(s, FIG_LIMIT_MEMORY), 1048576);
	assert_near(value(s, FIG_MACHINE_CPUS), 64);
	assert_near(value(s, FIG_CPU_OF_ALLOCATION), 0.8);
	assert_near(value(s, FIG_CPU_OF_NODE), 1.2 / 64);
	assert_near(value(s, FIG_MEMORY_OF_ALLOCATION), 0.25);
	assert_near(value(s, FIG_MEMORY_OF_NODE), 1.0 / 32);
	assert_string_equal(s->text[TEXT_MEMORY_VIEW], "peak_pss_bytes");
	summary_free(s);
	make_allowed(file, "here", false);
	s = summary_of(file);
	assert_near(value(s, FIG_MEMORY_OF_ALLOCATION), 0.5);
	assert_string_equal(s->text[TEXT_MEMORY_VIEW], "peak_rss_bytes");
	summary_free(s);

	expect_series("tree.cpu.of_allocation", NULL, (double[]){NAN, 0.8, 0.8, 0.8, 0.8}, 5);
	expect_series("tree.rss.of_allocation", NULL, (double[]){0.5, 0.5, 0.5, 0.5, 0.5}, 5);
}

static void test_limits_that_are_none(void **state)
{
	static const char *const bad[] = {"limits.cpus", "many", "limits.memory_bytes", "-1",
		"limits.machine_cpus", "0", "limits.machine_memory_bytes", "1e999", NULL};
	struct maker m;
	struct summary *s;

	(void)state;
	maker_open(&m, file, &(struct maker_options){.meta = bad});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.cpu.time", SECOND);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	s = summary_of(file);
	assert_non_null(s->figure[FIG_LIMIT_CPUS].why);
	assert_non_null(s->figure[FIG_LIMIT_MEMORY].why);
	assert_non_null(s->figure[FIG_CPU_OF_ALLOCATION].why);
	assert_non_null(s->figure[FIG_MEMORY_OF_NODE].why);
	/* The number of CPUs is known otherwise. */
	assert_near(value(s, FIG_MACHINE_CPUS), 8);
	assert_near(value(s, FIG_CPU_OF_NODE), 0.125);
	assert_null(s->text[TEXT_SCHEDULER]);
	summary_free(s);
}

static void test_two_nodes_and_two_recordings_of_one(void **state)
{
	const char *path = dir;
	struct summary *s;

	(void)state;
	make_allowed(file, "n1", true);
	make_allowed(file_in("b.tacho"), "n2", true);
	make_allowed(file_in("c.tacho"), "n2", true);
	s = summary_of_paths(&path, 1);
	assert_near(value(s, FIG_CPU), 3 * 4.8);
	/* What a machine has and does is not doubled by looking twice. */
	assert_near(value(s, FIG_LIMIT_CPUS), 3);
	assert_near(value(s, FIG_MACHINE_CPUS), 128);
	assert_near(value(s, FIG_NET_RX_BYTES), (double)(2 * 40 * MIB));
	assert_near(value(s, FIG_CPU_OF_ALLOCATION), 3.6 / 3);
	assert_string_equal(s->text[TEXT_JOB], "4711");
	assert_int_equal(s->nr_hardware, 4);
	assert_int_equal(s->nr_environment, 1);
	summary_free(s);
}

/* ---- the contract and the words ---- */

static void test_the_new_objects_in_json(void **state)
{
	struct summary *s;
	struct buf out;
	const char *json;

	(void)state;
	make_allowed(file, "here", true);
	s = summary_of(file);
	buf_init(&out, 1 << 20);
	json = json_of(s, &out);
	assert_non_null(strstr(json, "\"limits\": {\n    \"cpus\": 1.5,\n    \"memory_bytes\": 1048576,"));
	assert_non_null(strstr(
		json, "\"cpus_source\": \"cgroup /job_7\",\n    \"memory_source\": \"SLURM_MEM_PER_NODE\""));
	assert_non_null(strstr(json, "\"network\": {\n    \"rx_bytes\": 41943040,"));
	assert_non_null(strstr(json, "\"interconnect\": {\n    \"rx_bytes\": null,"));
	assert_non_null(
		strstr(json, "\"scheduler\": {\n    \"kind\": \"slurm\",\n    \"job_id\": \"4711\","));
	assert_non_null(strstr(
		json, "\"cpu_model\": \"Fast \\\"1\\\"\",\n    \"cores\": 32,\n    \"boot\": \"007\""));
	assert_non_null(strstr(json, "\"size\": 272629760\n"));
	assert_non_null(strstr(json, "\"environment\": {\n    \"SLURM_JOB_ID\": \"4711\"\n  }"));
	assert_non_null(strstr(json, "\"groups\": {}"));
	assert_non_null(strstr(json, "\"interconnect.rx_bytes\": \""));
	assert_non_null(strstr(json, "\"energy.source\": \""));
	assert_non_null(strstr(json, "\"cgroup.path\": \""));
	assert_null(strstr(json, "\"scheduler.kind\": \""));
	summary_free(s);
	buf_release(&out);
}

static void test_the_new_lines_in_words(void **state)
{
	static const unsigned width[] = {80, 60, 40};
	struct summary *s;
	struct maker m;
	struct buf out;
	const char *text;

	(void)state;
	buf_init(&out, 1 << 20);
	make_allowed(file, "here", true);
	s = summary_of(file);
	text = words_of(s, 80, false, &out);
	assert_non_null(strstr(text, "\n  job      slurm 4711, its processes found by cgroup\n"));
	assert_non_null(strstr(text, "1.2 cores mean, 1.2 peak, of 1.5\n"));
	assert_non_null(strstr(
		text, "\n           80 % of the 1.5 CPUs allowed (cgroup /job_7), 1.9 % of the node\n"));
	assert_non_null(strstr(
		text, "\n           25 % of the 1 MiB allowed (SLURM_MEM_PER_NODE), 3.1 % of the node\n"));
	assert_non_null(strstr(text, "\n  net      received 40 MiB  sent 4 MiB (all of the node)\n"));
	assert_null(strstr(text, "\n  ib "));
	assert_null(strstr(text, "\n  disk "));
	assert_null(strstr(text, "\n  energy "));
	assert_null(strstr(text, "\n  groups "));
	for (size_t i = 0; i < ARRAY_SIZE(width); i++) {
		text = strchr(words_of(s, width[i], false, &out), '\n') + 1; /* the head is never broken */
		while (*text) {
			/* The file's own name is one long word; all else keeps to the terminal. */
			if (!strstr(text, "kept in") || strstr(text, "kept in") > strchr(text, '\n'))
				if (strcspn(text, "\n") > width[i])
					fail_msg("%u columns: %s", width[i], text);
			text = strchr(text, '\n') + 1;
		}
	}
	summary_free(s);

	/* All of the machine is no limit, and a little traffic no news. */
	maker_open(&m, file,
		&(struct maker_options){
			.meta = (const char *const[]){"limits.cpus", "8", "limits.machine_cpus", "8", NULL}});
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_instance(&m, MAKER_ENERGY, 0, 0, "package-0", "source", "rapl", NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 2; i++) {
		set_traffic(&m, 0, i * 100);
		maker_set(&m, 0, "energy.used", i * 61700000000);
		maker_set(&m, 0, "proc.cpu.time", i * SECOND);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	s = summary_of(file);
	text = words_of(s, 80, false, &out);
	assert_null(strstr(text, "allowed"));
	assert_null(strstr(text, "\n  net "));
	assert_null(strstr(text, "\n  job "));
	assert_non_null(strstr(text, "\n  energy   123 kJ, 61700 W mean (rapl: package-0)\n"));
	summary_free(s);
	buf_release(&out);
}

/* ---- sums of counters in series ---- */

static double step(struct counter_sum *s, uint32_t id, double v, bool inside, bool from_zero, bool inherited)
{
	struct counter_turn turn = {.id = id,
		.value = v,
		.before = NAN,
		.inside = inside,
		.from_zero = from_zero,
		.inherited = inherited};

	return counter_sum_step(s, &turn);
}

static void test_sums_without_steps(void **state)
{
	struct counter_sum s = {0};

	(void)state;
	assert_int_equal(counter_sum_reserve(&s, 1), 0);
	assert_near(step(&s, 7, 1000, true, false, false), 0); /* no past */
	assert_near(step(&s, 7, 1010, true, false, false), 10);
	assert_near(step(&s, 7, NAN, true, false, false), 10);
	assert_near(step(&s, 7, 3, true, false, false), 10); /* a reset */
	assert_near(step(&s, 7, 5, true, false, false), 12);
	assert_true(isnan(step(&s, 0, NAN, false, false, false))); /* gone */
	assert_near(s.kept, 12);
	assert_near(step(&s, 8, 50, true, true, true), 50); /* born here */
	assert_true(isnan(step(&s, 8, 60, false, true, true)));
	assert_near(s.kept, 62);
	assert_true(isnan(step(&s, 8, 100, false, true, true)));
	assert_near(step(&s, 8, 130, true, true, true), 0); /* again, from now on */
	assert_near(step(&s, 8, 131, true, true, true), 1);
	assert_true(isnan(step(&s, 0, NAN, false, false, true))); /* others account for all of it */
	assert_near(s.kept, 62 - 130);
	counter_sum_release(&s);
}

static void test_folds_of_instances_that_come_and_go(void **state)
{
	static const struct series_query rate = {.rate = true};
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_instance(&m, MAKER_NET, 1, 0, "bond0", "apart", "made of eth0", NULL);
	for (int64_t i = 0; i <= 5; i++) {
		if (i == 2)
			maker_instance(&m, MAKER_NET, 2, 0, "eth1", NULL);
		if (i == 4)
			maker_leave(&m, MAKER_NET, 2, i * SECOND);
		set_traffic(&m, 0, i * 100);
		set_traffic(&m, 1, i * 100);
		if (i == 2 || i == 3)
			set_traffic(&m, 2, 1000000 + i * 10);
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	/* Neither a spike when one comes with old numbers, nor a gap when it goes. */
	expect_series("net.rx.bytes", &rate, (double[]){NAN, 100, 100, 110, 100, 100}, 6);
	expect_series("net.rx.rate", NULL, (double[]){NAN, 100, 100, 110, 100, 100}, 6);
	/* For itself, the one that stands apart is there. */
	{
		struct series *s = series_of("net.rx.bytes", &(struct series_query){.per_instance = true});
		struct series_point point;
		unsigned bonds = 0;

		while (series_next(s, &point) > 0)
			bonds += point.instance_len == 5 && !memcmp(point.instance, "bond0", 5);
		assert_int_equal(bonds, 6);
		series_close(s);
	}
}

static void test_latecomers_make_no_spike_in_the_tree(void **state)
{
	struct maker m;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i <= 5; i++) {
		if (i == 2)
			maker_join(&m, 1, 2, 101, 100, 0, true);
		maker_set(&m, 0, "proc.cpu.time", i * SECOND / 2);
		if (i >= 2 && i < 5)
			maker_set(&m, 1, "proc.cpu.time", 500 * SECOND + i * SECOND / 4);
		if (i == 5) {
			maker_gone(&m, 1, 2, 5 * SECOND, "noticed");
			maker_set(&m, 0, "tree.gone.user", 501000000);
		}
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	expect_series("tree.cores", NULL, (double[]){NAN, 0.5, 0.5, 0.75, 0.75, 0.5}, 6);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
	const struct CMUnitTest tests[] = {
		T(test_traffic_is_the_growth_of_all_interfaces),
		T(test_disks_and_ports),
		T(test_energy_is_counted_and_says_what_it_contains),
		T(test_power_over_time_where_nothing_counts_energy),
		T(test_totals_go_on_across_a_gap),
		T(test_the_jobs_own_control_group),
		T(test_shares_are_of_the_allocation_and_of_the_node),
		T(test_limits_that_are_none),
		T(test_two_nodes_and_two_recordings_of_one),
		T(test_the_new_objects_in_json),
		T(test_the_new_lines_in_words),
		T(test_sums_without_steps),
		T(test_folds_of_instances_that_come_and_go),
		T(test_latecomers_make_no_spike_in_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
