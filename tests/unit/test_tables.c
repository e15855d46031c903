/* query/tables: a run as tables. Every value is beside that of a series of the same recording, or worked out
 * by hand. */
#include "counted.h"
#include "tables_rows.h"
#include "long_recording.h"
#include "query_maker.h"

#include "base/str.h"
#include "query/events.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IN(names) names, sizeof(names) - 1
#define START (INT64_C(1700000000) * SECOND)

static const struct tables_options everything = {.from_s = NAN, .to_s = NAN};

static struct tables_options of_domain(const char *const *domain)
{
	struct tables_options o = everything;

	o.domain = domain;
	o.nr_domains = 1;
	return o;
}

/* ---- recordings ---- */

static const char flops[] = "flop\0001\0perf.flops\0rate(perf.fp_scalar + 4 * perf.fp_packed)\0Operations.";

static void begin_rich(struct maker *m, const char *path)
{
	maker_open(m, path,
		&(struct maker_options){.groups = "alpha\0beta",
			.groups_len = 10,
			.forbidden =
				"perf.cache_misses,ib.rx.bytes,ib.tx.bytes,ib.rx.packets,ib.tx.packets"});
	maker_meta(m, "derived.perf.flops_dp", flops, sizeof(flops));
	maker_group(m, 0, "alpha", "match", true);
	maker_join_in(m, 0, 1, 100, 1, 0, false, IN("alpha"));
	maker_join_in(m, 1, 2, 101, 100, 0, true, IN("alpha\0beta"));
	maker_instance(m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_instance(m, MAKER_NET, 1, 0, "br0", "apart", "a bridge", NULL);
	maker_instance(m, MAKER_LIMITS, 0, 0, "job", NULL);
	maker_instance(m, MAKER_PERF, 0, 0, "job", NULL);
	maker_instance(m, MAKER_GPU, 0, 0, "nvidia-0", NULL);
	maker_instance(m, MAKER_GPU_PROCESS, 0, 0, "nvidia-0/100", "pid", "100", "process", "1", NULL);
}

static void tick_rich(struct maker *m, int64_t i)
{
	for (uint32_t row = 0; row < 2; row++) {
		maker_set(m, row, "proc.cpu.time", i * (row + 1) * 300 * MILLI);
		set_memory(m, row, 1000 + i * 10, 100);
		maker_set(m, row, "proc.io.read_chars", i * i * 1000);
		maker_set(m, row, "proc.switches.voluntary", i * 7);
	}
	for (uint32_t cpu = 0; cpu < 3; cpu++) {
		maker_set(m, cpu, "cpu.user", i * (cpu ? 20 : 40));
		maker_set(m, cpu, "cpu.idle", i * (cpu ? 80 : 160));
		for (const char *const *at = (const char *const[]){"cpu.nice", "cpu.system", "cpu.iowait",
			     "cpu.irq", "cpu.softirq", NULL};
			*at; at++)
			maker_set(m, cpu, *at, 0);
	}
	maker_set(m, 0, "group.processes", 2);
	maker_set(m, 0, "net.rx.bytes", i == 5 ? 0 : i * 1000); /* falls once */
	maker_set(m, 1, "net.rx.bytes", i * 1000);
	maker_set(m, 0, "limit.cpus", 2500);
	maker_set(m, 0, "self.rss", 4096 + i);
	maker_set(m, 0, "gpu.util", 10 * i);
	maker_set(m, 0, "gpu.energy", i * 1000);
	maker_set(m, 0, "gpu_process.memory", 100 + i);
	maker_set_event(m, "cycles", i * 3000, i * SECOND);
	maker_set_event(m, "instructions", i * 6000, i * SECOND);
	maker_set_event(m, "fp_scalar", i * 100, i * SECOND);
	maker_set_event(m, "fp_packed", i * 10, i * SECOND);
	if (i == 3)
		maker_unset(m, 1, "proc.io.read_chars");
}

/* People come and go, a group is found late, a counter falls. */
static void write_rich(struct maker *m)
{
	for (int64_t i = 0; i < 8; i++) {
		if (i == 3) {
			maker_group(m, 1, "gamma", "match", false);
			maker_join_in(m, 2, 3, 102, 100, 2500 * MILLI, false, IN("gamma"));
		}
		if (i == 6) {
			maker_gone_with(m, 2, 3, 5500 * MILLI, "reaped", "sampled", INT64_C(1), "status",
				INT64_C(0x0300), "cpu_ns", 700 * MILLI, NULL);
			maker_join(m, 2, 4, 103, 100, 5600 * MILLI, false);
		}
		if (i >= 3)
			maker_set(m, 2, "proc.cpu.time", (i >= 6 ? i - 5 : i - 2) * 100 * MILLI);
		tick_rich(m, i);
		maker_tick(m, i * SECOND + (i % 3) * 100 * MILLI);
	}
}

static void make_rich(const char *path)
{
	struct maker m;

	begin_rich(&m, path);
	write_rich(&m);
	maker_event(&m, 7 * SECOND, "mark", "name", "done\xff");
	maker_finish(&m, "exit_status", INT64_C(0), NULL);
}

static void make_small(const char *path, uint64_t seconds, uint32_t processes)
{
	struct long_recording r = {.seconds = seconds, .hz = 2, .processes = processes};

	assert_int_equal(long_recording_write(path, &r), 0);
}

/* ---- beside series ---- */

static void values_are_those_of_series(void **state)
{
	static const char *const domain[] = {"process", "cpu", "tree", "group"};
	struct tables_options o = everything;

	(void)state;
	make_rich(file);
	assert_true(same_as_series(file, NULL) > 3000);
	make_small(file_in("small"), 10, 12);
	o.domain = domain;
	o.nr_domains = ARRAY_SIZE(domain);
	assert_true(same_as_series(file_in("small"), &o) > 10000);
}

static void folds_are_those_of_series(void **state)
{
	struct tables_options node = everything, group = everything;

	(void)state;
	node.per = TABLES_NODE;
	group.per = TABLES_GROUP;
	make_rich(file);
	assert_true(same_as_series(file, &node) > 1000);
	assert_true(same_as_series(file, &group) > 1000);
	make_small(file_in("small"), 8, 12);
	node.domain = group.domain = (const char *const[]){"process", "cpu"};
	node.nr_domains = 2;
	group.nr_domains = 1;
	assert_true(same_as_series(file_in("small"), &node) > 1000);
	assert_true(same_as_series(file_in("small"), &group) > 1000);
}

static void damaged_and_unfinished_ones_as_far_as_they_go(void **state)
{
	static const char *const metric[] = {"proc.cpu", "tree.cores", "group.cpu"};
	struct tables_options o = everything;
	struct maker m;
	struct kept *k;

	(void)state;
	for (int i = 3; i < 10; i += 3) {
		make_rich(file);
		damage(file, i / 10.0);
		same_as_series(file, NULL);
	}
	make_small(file_in("small"), 400, 5);
	damage(file_in("small"), 0.7);
	o.metric = metric;
	o.nr_metrics = ARRAY_SIZE(metric);
	k = keep(file_in("small"), &o);
	assert_in_range(kept_table(k, "tree")->nr_rows, 100, 799); /* a part is lost */
	kept_free(k);
	assert_true(same_as_series(file_in("small"), &o) > 1000);
	begin_rich(&m, file);
	write_rich(&m);
	assert_int_equal(store_flush(m.w), 0);
	assert_true(same_as_series(file, NULL) > 3000); /* it is still being written */
	maker_abandon(&m);
	assert_true(same_as_series(file, NULL) > 3000);
}

static void one_tick_and_none(void **state)
{
	struct maker m;
	struct kept *k;

	(void)state;
	begin_rich(&m, file);
	tick_rich(&m, 4);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	assert_true(same_as_series(file, NULL) > 200);
	k = keep(file, NULL);
	assert_int_equal(kept_table(k, "tree")->nr_rows, 1);
	assert_int_equal(kept_table(k, "process")->nr_rows, 2);
	assert_true(isnan(kept_number(k, "process", "proc.cpu.time.rate", 0)));
	kept_free(k);
	begin_rich(&m, file);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_int_equal(kept_table(k, "process")->nr_rows, 0);
	assert_int_equal(kept_table(k, "tree")->nr_rows, 0);
	assert_true(kept_table(k, "metrics")->nr_rows > 100);
	assert_true(kept_table(k, "summary")->nr_rows > 50);
	kept_free(k);
	/* Not even a schema. */
	assert_int_equal(truncate(file, 100), 0);
	k = keep(file, NULL);
	assert_null(kept_find(k, "process"));
	assert_int_equal(kept_table(k, "metrics")->nr_rows, 0);
	kept_free(k);
}

/* ---- lines ---- */

static void sets_of_a_domain_are_one_table(void **state)
{
	struct kept *k;

	(void)state;
	make_rich(file);
	k = keep(file, NULL);
	/* limits and self are sets of their own with names of their own. */
	assert_int_equal(kept_table(k, "node")->nr_rows, 8);
	assert_string_equal(kept_text(k, "node", "instance", 3), "node");
	assert_near(kept_number(k, "node", "limit.cpus", 3), 2.5);
	assert_near(kept_number(k, "node", "self.rss", 3), (4096 + 3) * 1024);
	/* What nobody may read is no column, a domain without any no frame; "metrics" has the reasons. */
	assert_null(kept_find(k, "ib"));
	assert_false(has_field(kept_table(k, "perf"), "perf.cache_misses"));
	for (size_t i = 0;; i++) {
		if (strcmp(kept_text(k, "metrics", "name", i), "ib.rx.bytes") != 0)
			continue;
		assert_string_equal(kept_text(k, "metrics", "why", i), "needs the right to look");
		assert_int_equal(kept_cell(k, "metrics", "available", i)->integer, 0);
		break;
	}
	kept_free(k);
}

/* Two sets of CPUs: what has one name is one line, also where only one set has it or a name comes twice. */
static void rename_sets(struct maker *m)
{
	free(m->schema->set[MAKER_DISK].domain_name);
	m->schema->set[MAKER_DISK].domain_name = strdup("net");
}

static void instances_of_one_name_are_one_line(void **state)
{
	static const char *const expected[] = {"a", "b", "c", "b"};
	struct tables_options o = of_domain((const char *const[]){"net"});
	struct maker m;
	struct kept *k;

	(void)state;
	maker_open_with(&m, file, NULL, rename_sets);
	maker_instance(&m, MAKER_NET, 0, 0, "a", NULL);
	maker_instance(&m, MAKER_NET, 1, 0, "b", NULL);
	maker_instance(&m, MAKER_DISK, 0, 0, "b", NULL);
	maker_instance(&m, MAKER_DISK, 1, 0, "c", NULL);
	maker_instance(&m, MAKER_DISK, 2, 0, "b", NULL);
	for (uint32_t row = 0; row < 3; row++) {
		if (row < 2)
			maker_set(&m, row, "net.rx.bytes", 10 + row);
		maker_set(&m, row, "disk.read.bytes", 20 + row);
	}
	maker_tick(&m, 0);
	maker_leave(&m, MAKER_NET, 0, SECOND / 2);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_null(kept_find(k, "disk"));
	assert_int_equal(kept_table(k, "net")->nr_rows, 7);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(kept_text(k, "net", "instance", i), expected[i]);
	assert_near(kept_number(k, "net", "net.rx.bytes", 1), 11);
	assert_near(kept_number(k, "net", "disk.read.bytes", 1), 20 * 512);
	assert_true(isnan(kept_number(k, "net", "disk.read.bytes", 0)));
	assert_true(isnan(kept_number(k, "net", "net.rx.bytes", 2)));
	assert_near(kept_number(k, "net", "disk.read.bytes", 3), 22 * 512);
	assert_string_equal(kept_text(k, "net", "instance", 4), "b");
	assert_near(kept_number(k, "net", "net.rx.bytes", 4), 11);
	kept_free(k);
	assert_true(same_as_series(file, &o) > 20);
}

static void more_lines_than_a_batch_takes(void **state)
{
	struct tables_options o = of_domain((const char *const[]){"process"});
	struct kept_frame *f;
	struct kept *k;

	(void)state;
	make_small(file, 1, 10000);
	k = keep(file, &o);
	f = kept_table(k, "process");
	assert_int_equal(f->nr_rows, 20000);
	assert_int_equal(f->nr_batches, 3);
	for (size_t row = 0; row < f->nr_rows; row++) {
		assert_int_equal(kept_cell(k, "process", "pid", row)->integer, 1001 + (int64_t)row % 10000);
		assert_int_equal(kept_cell(k, "process", "process", row)->integer, (int64_t)row % 10000);
		assert_int_equal(kept_cell(k, "process", "proc.fds", row)->integer, 12);
	}
	kept_free(k);
}

/* ---- numbers ---- */

static void counts_are_exact(void **state)
{
	struct tables_options raw = everything;
	struct maker m;
	struct kept *k;

	(void)state;
	raw.raw = true;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_instance(&m, MAKER_NET, 0, 0, "eth0", NULL);
	maker_set(&m, 0, "net.rx.bytes", INT64_MAX);
	maker_set(&m, 0, "net.tx.bytes", (INT64_C(1) << 53) + 1);
	maker_set(&m, 0, "proc.mem.rss", (INT64_C(1) << 50) + 1); /* pages */
	maker_set(&m, 0, "proc.mem.vms", (INT64_C(1) << 60));	  /* beyond 64 bits as bytes */
	maker_set(&m, 0, "proc.cpu.time", 1234567891);
	maker_set(&m, 0, "proc.state", 'S');
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_true(kept_cell(k, "net", "net.rx.bytes", 0)->integer == INT64_MAX);
	assert_true(kept_cell(k, "net", "net.tx.bytes", 0)->integer == (INT64_C(1) << 53) + 1);
	assert_true(kept_cell(k, "process", "proc.mem.rss", 0)->integer == ((INT64_C(1) << 50) + 1) * 4096);
	assert_false(kept_cell(k, "process", "proc.mem.vms", 0)->known);
	assert_near(kept_number(k, "process", "proc.cpu.time", 0), 1.234567891);
	assert_int_equal(kept_cell(k, "process", "proc.state", 0)->integer, 'S');
	kept_free(k);
	k = keep(file, &raw);
	assert_true(kept_cell(k, "process", "proc.mem.vms", 0)->integer == INT64_C(1) << 60);
	assert_int_equal(kept_cell(k, "process", "proc.cpu.time", 0)->integer, 1234567891);
	assert_near(
		kept_table(k, "process")->field[kept_field(kept_table(k, "process"), "proc.cpu.time")].scale,
		1e-9);
	assert_false(has_field(kept_table(k, "process"), "proc.cpu.time.rate"));
	assert_false(has_field(kept_table(k, "process"), "proc.cpu.cores"));
	kept_free(k);
}

static void sums_of_counts_are_exact(void **state)
{
	struct tables_options o = everything;
	struct maker m;
	struct kept *k;

	(void)state;
	o.per = TABLES_NODE;
	maker_open(&m, file, NULL);
	for (uint32_t row = 0; row < 2; row++) {
		maker_instance(&m, MAKER_NET, row, 0, row ? "b" : "a", NULL);
		maker_set(&m, row, "net.rx.bytes", (INT64_C(1) << 53) + row);
		maker_set(&m, row, "net.tx.bytes", INT64_MAX - 1);
	}
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	k = keep(file, &o);
	assert_false(has_field(kept_table(k, "net"), "instance"));
	assert_true(kept_cell(k, "net", "net.rx.bytes", 0)->integer == (INT64_C(1) << 54) + 1);
	assert_false(kept_cell(k, "net", "net.tx.bytes", 0)->known);
	kept_free(k);
}

static void keys_tell_when_where_and_who(void **state)
{
	struct kept *k;

	(void)state;
	make_rich(file);
	k = keep(file, NULL);
	assert_true(kept_cell(k, "tree", "time", 1)->integer == START + 1100 * MILLI);
	assert_near(kept_number(k, "tree", "elapsed", 1), 1.1);
	assert_string_equal(kept_text(k, "tree", "host", 1), "here");
	assert_int_equal(kept_cell(k, "process", "pid", 1)->integer, 101);
	assert_string_equal(kept_text(k, "process", "instance", 1), "worker");
	assert_int_equal(kept_cell(k, "process", "process", 1)->integer, 1);
	assert_int_equal(kept_cell(k, "gpu_process", "pid", 0)->integer, 100);
	assert_int_equal(kept_cell(k, "gpu_process", "process", 0)->integer, 0);
	assert_string_equal(kept_text(k, "gpu_process", "instance", 0), "nvidia-0/100");
	kept_free(k);
}

/* ---- several recordings ---- */

static void pages_of_16k(struct maker *m)
{
	uint32_t set, col;

	assert_true(schema_find(m->schema, "proc.mem.rss", &set, &col));
	m->schema->set[set].metric[col].scale = 16384;
}

static void several_nodes_are_one_table(void **state)
{
	struct tables_options raw = everything;
	const char *path[2] = {file};
	char second[128];
	struct maker m;
	struct kept *k;

	(void)state;
	raw.raw = true;
	snprintf(second, sizeof(second), "%s", file_in("second"));
	path[1] = second;
	maker_open(&m, file, &(struct maker_options){.host = "n1", .without = "proc.threads"});
	maker_join(&m, 0, 1, 100, 1, 0, false);
	maker_set(&m, 0, "proc.mem.rss", 10);
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	maker_open_with(&m, second,
		&(struct maker_options){
			.host = "n2", .start_wall_ns = START + 2 * SECOND, .without = "proc.fds"},
		pages_of_16k);
	maker_join(&m, 0, 1, 200, 1, 0, false);
	maker_set(&m, 0, "proc.mem.rss", 10);
	maker_set(&m, 0, "proc.threads", 3);
	maker_tick(&m, SECOND);
	maker_finish(&m, NULL);
	k = keep_paths(path, 2, NULL);
	assert_int_equal(kept_table(k, "process")->nr_rows, 2);
	assert_string_equal(kept_text(k, "process", "host", 0), "n1");
	assert_string_equal(kept_text(k, "process", "host", 1), "n2");
	assert_near(kept_number(k, "process", "elapsed", 1), 3);
	assert_true(kept_cell(k, "process", "time", 1)->integer == START + 3 * SECOND);
	assert_int_equal(kept_cell(k, "process", "process", 1)->integer, 1);
	assert_int_equal(kept_cell(k, "processes", "pid", 1)->integer, 200);
	assert_false(kept_cell(k, "process", "proc.threads", 0)->known);
	assert_int_equal(kept_cell(k, "process", "proc.threads", 1)->integer, 3);
	assert_int_equal(kept_cell(k, "process", "proc.mem.rss", 0)->integer, 40960);
	assert_int_equal(kept_cell(k, "process", "proc.mem.rss", 1)->integer, 163840);
	kept_free(k);
	/* Raw integers of different scales cannot stand in one column: they are bytes then. */
	k = keep_paths(path, 2, &raw);
	assert_near(
		kept_table(k, "process")->field[kept_field(kept_table(k, "process"), "proc.mem.rss")].scale,
		1);
	assert_int_equal(kept_cell(k, "process", "proc.mem.rss", 1)->integer, 163840);
	kept_free(k);
}

/* ---- what is asked for ---- */

static void expect_refusal(const struct tables_options *o, const char *words)
{
	const char *path = file;
	struct tables *f = NULL;
	struct run *run = NULL;
	struct buf err;

	buf_init(&err, 4096);
	assert_int_equal(run_open(&path, 1, &run, &err), 0);
	assert_int_equal(tables_open(run, o, &f, &err), -ENOENT);
	if (!strstr((char *)err.data, words))
		fail_msg("\"%s\" does not say \"%s\"", (char *)err.data, words);
	buf_release(&err);
	run_close(run);
}

static size_t nr_columns(const char *word)
{
	struct tables_options o = everything;
	struct kept *k;
	size_t nr = 0;

	o.metric = &word;
	o.nr_metrics = 1;
	k = keep(file, &o);
	for (size_t i = 0; i < k->nr; i++)
		for (size_t j = 0; j < k->table[i].nr_fields; j++)
			nr += k->table[i].field[j].is_metric;
	kept_free(k);
	return nr;
}

static void metrics_and_domains_are_chosen(void **state)
{
	static const char *const two[] = {"net", "processes"}, *const wrong[] = {"proces"},
				 *const misspelt[] = {"net.rx.byte"}, *const ib[] = {"ib"},
				 *const stranger[] = {"x"};
	struct tables_options o = everything;
	struct kept *k;

	(void)state;
	make_rich(file);
	assert_int_equal(nr_columns("net.rx.bytes"), 2);
	assert_int_equal(nr_columns("net.rx.bytes.rate"), 1);
	assert_int_equal(nr_columns("net.rx"), 6);
	assert_int_equal(nr_columns("net.rx."), 6);
	assert_int_equal(nr_columns("net"), 12);
	assert_int_equal(nr_columns("tree.cores"), 1);
	assert_int_equal(nr_columns("perf.flops_dp"), 1);
	assert_int_equal(nr_columns("rss"), 3);		/* of proc.mem, proc.smaps and self */
	assert_int_equal(nr_columns("ib.rx.bytes"), 2); /* by its name, though nobody may read it */
	o.domain = two;
	o.nr_domains = 2;
	k = keep(file, &o);
	assert_int_equal(k->nr, 2);
	assert_int_equal(kept_table(k, "net")->nr_rows, 16);
	assert_int_equal(kept_table(k, "processes")->nr_rows, 4);
	kept_free(k);
	o.domain = ib;
	o.nr_domains = 1;
	k = keep(file, &o);
	assert_int_equal(kept_table(k, "ib")->nr_rows, 0);
	kept_free(k);
	o.domain = wrong;
	expect_refusal(&o, "did you mean 'process'? It has ");
	o.domain = stranger;
	expect_refusal(&o, "no domain 'x' in this recording; it has ");
	o = everything;
	o.metric = misspelt;
	o.nr_metrics = 1;
	expect_refusal(&o, "did you mean 'net.rx.bytes'?");
	o = everything;
	o.per = TABLES_PROCESS;
	k = keep(file, &o);
	assert_int_equal(k->nr, 3);
	assert_non_null(kept_find(k, "process"));
	assert_non_null(kept_find(k, "gpu_process"));
	assert_non_null(kept_find(k, "processes"));
	kept_free(k);
}

static void part_of_the_time(void **state)
{
	struct tables_options o = everything;
	struct kept *all, *k;

	(void)state;
	make_rich(file);
	all = keep(file, NULL);
	o.from_s = 2;
	o.to_s = 4.1;
	k = keep(file, &o);
	assert_int_equal(kept_table(k, "tree")->nr_rows, 3);
	assert_int_equal(kept_table(k, "node")->nr_rows, 3);
	assert_near(kept_number(k, "tree", "elapsed", 0), 2.2);
	assert_near(kept_number(k, "tree", "elapsed", 2), 4.1);
	/* Rates are those of the whole, at the edges, too. */
	for (size_t i = 0; i < 3; i++) {
		assert_near(kept_number(k, "tree", "tree.cores", i),
			kept_number(all, "tree", "tree.cores", i + 2));
		assert_near(kept_number(k, "perf", "perf.cycles.rate", i),
			kept_number(all, "perf", "perf.cycles.rate", i + 2));
	}
	kept_free(k);
	kept_free(all);
}

/* ---- windows ---- */

static void rows_that_stand_for_several_ticks(void **state)
{
	struct tables_options o = everything;
	struct maker m;
	struct kept *k;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (int64_t i = 0; i < 6; i++) {
		if (i == 4) {
			maker_gone(&m, 0, 1, 3500 * MILLI, "noticed");
			maker_join(&m, 0, 2, 101, 1, 3600 * MILLI, false);
		}
		maker_set(&m, 0, "proc.threads", 1 + i);
		maker_set(&m, 0, "proc.io.read_chars", i * i);
		maker_set(&m, 0, "proc.mem.hwm", i == 1 ? 9 : 5);
		maker_set(&m, 0, "proc.state", i % 2 ? 'R' : 'S');
		maker_set(&m, 0, "tree.joined", i * 2);
		if (i == 2)
			maker_unset(&m, 0, "proc.threads");
		maker_tick(&m, i * SECOND);
	}
	maker_finish(&m, NULL);
	o.every_ns = 3 * SECOND;
	k = keep(file, &o);
	assert_int_equal(kept_table(k, "process")->nr_rows, 3); /* who left in the window, and who came */
	assert_int_equal(kept_cell(k, "process", "pid", 0)->integer, 100);
	assert_true(kept_cell(k, "process", "time", 0)->integer == START);
	assert_near(kept_number(k, "process", "proc.threads", 0), 1.5); /* 1, 2, not known */
	assert_int_equal(kept_cell(k, "process", "proc.io.read_chars", 0)->integer, 4);
	assert_near(kept_number(k, "process", "proc.io.read_chars.rate", 0), 2); /* -, 1, 3 */
	assert_int_equal(kept_cell(k, "process", "proc.mem.hwm", 0)->integer, 9 * 1024);
	assert_int_equal(kept_cell(k, "process", "proc.state", 0)->integer, 'S');
	assert_near(kept_number(k, "process", "elapsed", 1), 3);
	assert_true(kept_cell(k, "process", "time", 1)->integer == START + 3 * SECOND);
	assert_int_equal(kept_cell(k, "process", "pid", 1)->integer, 100);
	assert_near(kept_number(k, "process", "proc.threads", 1), 4);
	assert_int_equal(kept_cell(k, "process", "pid", 2)->integer, 101);
	assert_near(kept_number(k, "process", "proc.threads", 2), 5.5);
	assert_int_equal(kept_table(k, "tree")->nr_rows, 2);
	assert_near(kept_number(k, "tree", "tree.starts", 0), 2);
	assert_near(kept_number(k, "tree", "tree.joined", 1), 10);
	kept_free(k);
	o.per = TABLES_NODE;
	k = keep(file, &o);
	assert_int_equal(kept_table(k, "process")->nr_rows, 2);
	assert_near(kept_number(k, "process", "proc.threads", 1), 5);
	kept_free(k);
}

/* The recorder was held up: one rate is of four seconds, the others are of one. */
static void rates_weigh_as_much_as_their_time(void **state)
{
	static const int64_t at_s[] = {0, 1, 2, 6, 7}, read[] = {0, 10, 20, 4020, 4030};
	struct tables_options o = everything;
	struct maker m;
	struct kept *k;

	(void)state;
	maker_open(&m, file, NULL);
	maker_join(&m, 0, 1, 100, 1, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(at_s); i++) {
		maker_set(&m, 0, "proc.io.read_chars", read[i]);
		maker_set(&m, 0, "proc.threads", i < 3 ? 1 : 6);
		maker_set(&m, 0, "tree.joined", i < 3 ? 0 : 8);
		maker_tick(&m, at_s[i] * SECOND);
	}
	maker_finish(&m, NULL);
	o.every_ns = 10 * SECOND;
	k = keep(file, &o);
	assert_int_equal(kept_cell(k, "process", "proc.io.read_chars", 0)->integer, 4030);
	assert_near(kept_number(k, "process", "proc.io.read_chars.rate", 0), 4030 / 7.0);
	assert_near(kept_number(k, "process", "proc.io.read_rate", 0), 4030 / 7.0);
	assert_near(kept_number(k, "process", "proc.threads", 0), 3);	/* levels are as they were seen */
	assert_near(kept_number(k, "tree", "tree.starts", 0), 8 / 7.0); /* comes late */
	kept_free(k);
}

/* GPUs, for instance, are there when their driver has answered: before that their sum is not zero. */
static void before_the_first_was_there_nothing_is_known(void **state)
{
	struct tables_options o = everything;
	struct kept *k;

	(void)state;
	make_one_in_between(file);
	o.per = TABLES_NODE;
	k = keep(file, &o);
	assert_int_equal(kept_table(k, "process")->nr_rows, 3);
	assert_false(kept_cell(k, "process", "proc.mem.rss", 0)->known);
	assert_false(kept_cell(k, "process", "proc.cpu.cores", 0)->known);
	assert_int_equal(kept_cell(k, "process", "proc.mem.rss", 1)->integer, 40960);
	assert_true(kept_cell(k, "process", "proc.mem.rss", 2)->known);
	assert_int_equal(kept_cell(k, "process", "proc.mem.rss", 2)->integer, 0);
	kept_free(k);
}

/* ---- what is not of time ---- */

static size_t row_of(struct kept *k, const char *table, const char *field, const char *text)
{
	for (size_t i = 0; i < kept_table(k, table)->nr_rows; i++) {
		const char *here = kept_text(k, table, field, i);

		if (here && !strcmp(here, text))
			return i;
	}
	fail_msg("no row of %s has %s %s", table, field, text);
	return 0;
}

static void processes_with_their_ends(void **state)
{
	struct maker m;
	struct kept *k;

	(void)state;
	make_rich(file);
	k = keep(file, NULL);
	assert_int_equal(kept_table(k, "processes")->nr_rows, 4);
	assert_int_equal(kept_cell(k, "processes", "process", 2)->integer, 2);
	assert_int_equal(kept_cell(k, "processes", "pid", 2)->integer, 102);
	assert_int_equal(kept_cell(k, "processes", "ppid", 2)->integer, 100);
	assert_true(kept_cell(k, "processes", "start", 2)->integer == START + 2500 * MILLI);
	assert_true(kept_cell(k, "processes", "end", 2)->integer == START + 5500 * MILLI);
	assert_int_equal(kept_cell(k, "processes", "exit_code", 2)->integer, 3);
	assert_false(kept_cell(k, "processes", "exit_signal", 2)->known);
	assert_near(kept_number(k, "processes", "cpu", 2), 0.7);
	assert_string_equal(kept_text(k, "processes", "command", 2), "worker -v");
	assert_string_equal(kept_text(k, "processes", "groups", 1), "alpha,beta");
	assert_string_equal(kept_text(k, "processes", "how", 2), "reaped");
	assert_null(kept_text(k, "processes", "how", 0));
	assert_false(kept_cell(k, "processes", "end", 0)->known);
	assert_int_equal(kept_cell(k, "processes", "ended", 0)->integer, 0);
	assert_int_equal(kept_cell(k, "processes", "late", 1)->integer, 1);
	assert_int_equal(kept_cell(k, "processes", "rss_peak", 0)->integer, 1070 * 4096);
	kept_free(k);
	maker_open(&m, file, NULL);
	maker_join_as(&m, 0, 1, 100, "\xff\\x41", 5, "a b\0it's\0\0\xc3", 12);
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_string_equal(kept_text(k, "processes", "name", 0), "\\xff\\\\x41");
	assert_string_equal(kept_text(k, "process", "instance", 0), "\\xff\\\\x41");
	assert_string_equal(kept_text(k, "processes", "command", 0), "'a b' 'it'\\''s' '' \\xc3");
	kept_free(k);
}

static void events_metrics_meta_and_summary(void **state)
{
	struct kept *k;
	size_t row, nr = 0;

	(void)state;
	make_rich(file);
	k = keep(file, NULL);
	assert_int_equal(kept_table(k, "events")->nr_rows, 1);
	assert_string_equal(kept_text(k, "events", "kind", 0), "mark");
	assert_string_equal(kept_text(k, "events", "label", 0), "done\\xff");
	assert_true(kept_cell(k, "events", "time", 0)->integer == START + 7 * SECOND);
	assert_near(kept_number(k, "events", "elapsed", 0), 7);
	assert_false(kept_cell(k, "events", "end", 0)->known);
	/* One for each column, and those that could not be read. */
	for (size_t i = 0; i < k->nr; i++)
		for (size_t j = 0; j < k->table[i].nr_fields; j++)
			nr += k->table[i].field[j].is_metric;
	assert_int_equal(kept_table(k, "metrics")->nr_rows, nr + 5);
	row = row_of(k, "metrics", "name", "net.rx.bytes.rate");
	assert_string_equal(kept_text(k, "metrics", "frame", row), "net");
	assert_string_equal(kept_text(k, "metrics", "unit", row), "bytes");
	assert_int_equal(kept_cell(k, "metrics", "per_second", row)->integer, 1);
	assert_string_equal(kept_text(k, "metrics", "kind", row), "gauge");
	assert_string_equal(kept_text(k, "metrics", "resample", row), "mean");
	assert_string_equal(kept_text(k, "metrics", "resample", row - 1), "last");
	assert_string_equal(kept_text(k, "metrics", "help", row_of(k, "metrics", "name", "tree.cores")),
		"CPUs that the whole tree keeps busy.");
	row = row_of(k, "meta", "key", "command");
	assert_string_equal(kept_text(k, "meta", "value", row), "job\\x00-x");
	row = row_of(k, "summary", "name", "memory.peak_rss_bytes");
	assert_near(kept_number(k, "summary", "value", row), 2 * 1070 * 4096);
	assert_string_equal(kept_text(k, "summary", "unit", row), "bytes");
	assert_string_equal(kept_text(k, "summary", "host", row), "here");
	row_of(k, "summary", "name", "groups.alpha.cpu.total_s");
	row_of(k, "summary", "name", "perf.instructions");
	row_of(k, "summary", "name", "gpus.nvidia-0.util_mean_percent");
	kept_free(k);
}

/* Those of the time that was asked for; and that there were more than are kept is told. */
static void events_have_their_limits(void **state)
{
	struct tables_options part = of_domain((const char *const[]){"events"});
	struct maker m;
	struct kept *k;

	(void)state;
	maker_open(&m, file, NULL);
	maker_event(&m, 1 * SECOND, "phase.begin", "name", "first");
	maker_event(&m, 2 * SECOND, "phase.end", "name", "first");
	maker_event(&m, 3 * SECOND, "phase.begin", "name", "endless");
	for (int64_t i = 0; i < MOMENTS_MOST + 3; i++)
		maker_event(&m, 4 * SECOND + i, "mark", "name", "x");
	maker_tick(&m, 9 * SECOND);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_int_equal(kept_table(k, "events")->nr_rows, 2 + MOMENTS_MOST + 1);
	assert_string_equal(kept_text(k, "events", "kind", 2 + MOMENTS_MOST), "left_out");
	assert_string_equal(kept_text(k, "events", "label", 2 + MOMENTS_MOST), "3 more are left out");
	kept_free(k);
	part.from_s = 2.5;
	part.to_s = 3.5;
	k = keep(file, &part);
	assert_int_equal(kept_table(k, "events")->nr_rows, 2);
	assert_string_equal(kept_text(k, "events", "label", 0), "endless");
	kept_free(k);
	part.from_s = 1.5;
	part.to_s = 2.5;
	k = keep(file, &part);
	assert_string_equal(kept_text(k, "events", "label", 0), "first");
	assert_int_equal(kept_table(k, "events")->nr_rows, 2);
	kept_free(k);
}

/* ---- texts ---- */

/* All texts of up to six of these bytes. */
static void texts_are_escaped_without_loss(void **state)
{
	static const uint8_t letter[] = {'\\', 'x', '4', '1', 0xff, 0, 0xc3, 0xa9};
	struct buf text, back;

	(void)state;
	buf_init(&text, 1000);
	buf_init(&back, 1000);
	for (uint32_t n = 0, all = 1; n <= 6; n++, all *= ARRAY_SIZE(letter))
		for (uint32_t i = 0; i < all; i++) {
			uint8_t bytes[6];
			uint32_t rest = i;

			for (uint32_t j = 0; j < n; j++, rest /= ARRAY_SIZE(letter))
				bytes[j] = letter[rest % ARRAY_SIZE(letter)];
			buf_reset(&text);
			buf_reset(&back);
			utf8_escape(&text, bytes, n);
			utf8_unescape(&back, (char *)text.data, text.len);
			assert_int_equal(back.len, n);
			assert_memory_equal(back.data, bytes, n);
		}
	buf_reset(&text);
	utf8_escape(&text, "C:\\temp\\\xff", 9);
	assert_string_equal(text.data, "C:\\temp\\\\\\xff");
	buf_release(&text);
	buf_release(&back);
}

/* Domains of any name: those that could be paths are none; metrics of any name. */
static void hostile_names(struct maker *m)
{
	static const struct {
		unsigned set;
		const char *domain;
	} of[] = {
		{MAKER_NET, "../../x"}, {MAKER_IB, "metrics"}, {MAKER_DISK, ""}, {MAKER_ENERGY, "new_kind"}};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		free(m->schema->set[of[i].set].domain_name);
		m->schema->set[of[i].set].domain_name = strdup(of[i].domain);
		m->schema->set[of[i].set].domain = NR_DOMAINS;
	}
	free(m->schema->set[MAKER_ENERGY].metric[0].name);
	m->schema->set[MAKER_ENERGY].metric[0].name = strdup("a\n\"\xff,<b>");
	free(m->schema->set[MAKER_ENERGY].metric[1].name);
	m->schema->set[MAKER_ENERGY].metric[1].name = strdup("time");
}

static void names_of_any_kind(void **state)
{
	struct maker m;
	struct kept *k;

	(void)state;
	maker_open_with(&m, file, NULL, hostile_names);
	maker_instance(&m, MAKER_ENERGY, 0, 0, "x", NULL);
	table_touch(&m.table[MAKER_ENERGY], 0);
	table_set(&m.table[MAKER_ENERGY], 0, 0, 5000000);
	maker_tick(&m, 0);
	maker_finish(&m, NULL);
	k = keep(file, NULL);
	assert_null(kept_find(k, "../../x"));
	assert_null(kept_find(k, ""));
	assert_int_equal(kept_table(k, "new_kind")->nr_rows, 1);
	assert_near(kept_number(k, "new_kind", "a\n\"\\xff,<b>", 0), 5);
	assert_int_equal(kept_table(k, "new_kind")->nr_fields, 5); /* "time" is the key */
	assert_true(has_field(kept_table(k, "metrics"), "help"));
	kept_free(k);
}

/* ---- memory ---- */

/* Those while time passes: not what opening takes, nor what grows with the number of processes. */
static size_t allocations_of(uint64_t seconds)
{
	static const char *const domain[] = {"node", "cpu", "tree"};
	struct tables_options o = everything;
	const char *path = file_in("long");
	struct tables *f = NULL;
	struct data_table_batch b;
	struct run *run = NULL;
	struct buf err;
	size_t from;

	o.domain = domain;
	o.nr_domains = ARRAY_SIZE(domain);
	make_small(path, seconds, 3);
	buf_init(&err, 1000);
	assert_int_equal(run_open(&path, 1, &run, &err), 0);
	assert_int_equal(tables_open(run, &o, &f, &err), 0);
	from = allocations;
	while (tables_next(f, &b) > 0)
		;
	from = allocations - from;
	tables_close(f);
	run_close(run);
	buf_release(&err);
	return from;
}

static void memory_does_not_grow_with_the_length(void **state)
{
	size_t some = allocations_of(200), more = allocations_of(2000);

	(void)state;
	printf("# allocations: %zu, %zu\n", some, more);
	assert_true(some > 0);
	assert_in_range(more, some, some + some / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_those_of_series, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(folds_are_those_of_series, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			damaged_and_unfinished_ones_as_far_as_they_go, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(one_tick_and_none, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(sets_of_a_domain_are_one_table, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			instances_of_one_name_are_one_line, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(more_lines_than_a_batch_takes, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(counts_are_exact, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(sums_of_counts_are_exact, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(keys_tell_when_where_and_who, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(several_nodes_are_one_table, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(metrics_and_domains_are_chosen, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(part_of_the_time, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			rows_that_stand_for_several_ticks, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			rates_weigh_as_much_as_their_time, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			before_the_first_was_there_nothing_is_known, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(processes_with_their_ends, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(events_metrics_meta_and_summary, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(events_have_their_limits, maker_setup, maker_teardown),
		cmocka_unit_test(texts_are_escaped_without_loss),
		cmocka_unit_test_setup_teardown(names_of_any_kind, maker_setup, maker_teardown),
		cmocka_unit_test_setup_teardown(
			memory_does_not_grow_with_the_length, maker_setup, maker_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
