/* Interfaces, TCP and InfiniBand ports, on machines and films: what counts and what stands apart, what comes,
 * goes, is renamed, starts anew or is full, and in which network namespace. */
#include "film_text.h"

/* Why it stands apart, or "" when it counts. */
static const char *counted_elsewhere(struct lab *lab, const char *instance)
{
	int row = row_of(lab, instance);

	if (row < 0)
		fail_msg("no instance %s", instance);
	return lab->about[row];
}

#define assert_counts(lab, instance) assert_string_equal(counted_elsewhere(lab, instance), "")
#define assert_apart(lab, instance, word) assert_non_null(strstr(counted_elsewhere(lab, instance), word))

/* What a total would be: the sum over the instances that are not apart. */
static int64_t total(struct lab *lab, const char *metric)
{
	size_t col = index_of(lab, metric);
	int64_t sum = 0;

	for (uint32_t row = 0; row < lab->table.nr_rows; row++)
		if (lab->table.id[row] != ROW_FREE && !lab->about[row][0] && lab->table.valid[row] >> col & 1)
			sum += table_row(&lab->table, row)[col];
	return sum;
}

static void test_a_server(void **state)
{
	struct env *env = film_of("machines", "net-server");
	struct trouble why;
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "net");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(value(&lab, "eno1", "net.rx.bytes"), 81000000000);
	assert_int_equal(value(&lab, "eno1", "net.rx.packets"), 81000000);
	assert_int_equal(value(&lab, "eno1", "net.rx.errors"), 1);
	assert_int_equal(value(&lab, "eno1", "net.rx.drops"), 22);
	assert_int_equal(value(&lab, "eno1", "net.rx.overruns"), 3);
	assert_int_equal(value(&lab, "eno1", "net.rx.multicast"), 44);
	assert_int_equal(value(&lab, "eno1", "net.tx.bytes"), 2000000000);
	assert_int_equal(value(&lab, "eno1", "net.tx.packets"), 3000000);
	assert_int_equal(value(&lab, "eno1", "net.tx.errors"), 5);
	assert_int_equal(value(&lab, "eno1", "net.tx.drops"), 66);
	assert_int_equal(value(&lab, "eno1", "net.tx.carrier"), 7);
	assert_counts(&lab, "eno1");
	assert_counts(&lab, "eno2");
	assert_counts(&lab, "ens5f0np0"); /* RoCE is not in its counters */
	assert_apart(&lab, "lo", "loopback");
	assert_apart(&lab, "ib0", "InfiniBand");
	assert_apart(&lab, "bond0", "virtual");
	assert_apart(&lab, "bond0.100", "virtual");
	assert_apart(&lab, "br0", "virtual");
	assert_apart(&lab, "veth1a2b", "virtual");
	assert_apart(&lab, "docker0", "virtual");
	assert_int_equal(total(&lab, "net.rx.bytes"), 81000000000 + 4000 + 50000);
	assert_int_equal(lab.table.nr_touched, 11);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

static void test_a_server_with_two_sockets(void **state)
{
	struct env *env = film_of("machines", "intel-2s");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "net");
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, "eno1");
	assert_apart(&lab, "bond0", "virtual");
	assert_apart(&lab, "ib0", "InfiniBand");
	assert_int_equal(total(&lab, "net.rx.bytes"), 81000000000);
	lab_release(&lab);
	lab_open(&lab, env, "ib");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(total(&lab, "ib.rx.bytes"), INT64_C(4) << 40);
	lab_release(&lab);
	env_free(env);
}

static void test_a_container(void **state)
{
	struct env *env = film_of("machines", "net-container");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "net");
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, "eth0");
	assert_apart(&lab, "docker0", "made of other");
	assert_apart(&lab, "eth0.7", "made of other");
	assert_apart(&lab, "vethA", "virtual");
	assert_apart(&lab, "tap0", "virtual");
	assert_apart(&lab, "tun0", "virtual");
	assert_apart(&lab, "ifb0", "virtual");
	assert_int_equal(total(&lab, "net.rx.bytes"), 1000);
	assert_int_equal(total(&lab, "net.tx.bytes"), 2000);
	lab_release(&lab);
	env_free(env);
}

static void test_hardware_that_counts_twice(void **state)
{
	struct env *env = film_of("machines", "net-odd");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "net");
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, "eth0");
	assert_apart(&lab, "enP1", "belongs to another");
	assert_counts(&lab, "eth1");
	assert_apart(&lab, "swp1", "made of other");
	assert_counts(&lab, "ens1");
	assert_apart(&lab, "pf0vf3", "virtual function");
	assert_counts(&lab, "ib1"); /* whose port has no counters */
	assert_apart(&lab, "hsn0", "Slingshot");
	assert_int_equal(value(&lab, "eth0", "net.rx.bytes"), 4294967295);
	assert_int_equal(value(&lab, "w:\xff\x01|%s", "net.tx.bytes"), 9001);
	assert_int_equal(value(&lab, "../../x", "net.tx.bytes"), 9);
	assert_int_equal(value(&lab, "short", "net.rx.packets"), 2);
	assert_int_equal(value(&lab, "short", "net.rx.errors"), INVALID);
	assert_int_equal(value(&lab, "short", "net.tx.bytes"), INVALID);
	assert_int_equal(row_of(&lab, "cut"), -1);
	assert_int_equal(lab.table.nr_rows, 12);
	lab_release(&lab);

	lab_open(&lab, env, "tcp");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "tcp.retransmits"), INVALID);
	assert_int_equal(node(&lab, "tcp.rx.segments"), 1);
	assert_int_equal(node(&lab, "udp.rx.datagrams"), INVALID);
	assert_int_equal(availability(&lab, "tcp.tx.segments"), ABSENT);
	assert_int_equal(availability(&lab, "tcp.timeouts"), ABSENT);
	assert_int_equal(availability(&lab, "tcp.rx.segments"), AVAILABLE);
	lab_release(&lab);
	env_free(env);
}

static void test_interfaces_come_go_and_are_renamed(void **state)
{
	struct env *env = film_of("films", "net-renamed");
	struct lab lab;
	uint32_t id, old, lan0, eth2;

	(void)state;
	lab_open(&lab, env, "net");
	lab.ctx.medium = false;
	assert_int_equal(lab_sample(&lab), 0);
	old = (uint32_t)row_of(&lab, "eth0");
	id = lab.table.id[row_of(&lab, "eth1")];

	/* The old name ends with what the new one begins with: nothing is lost between them. */
	turn_to(&lab, 1, 0);
	assert_int_equal(value(&lab, "eth0", "net.rx.bytes"), 1500000);
	assert_int_equal(lab.table.before[old * lab.table.nr_cols], 1000000);
	assert_true(lab.table.is_touched[old]);
	assert_int_equal(value(&lab, "lan0", "net.rx.bytes"), 1500000);
	assert_counts(&lab, "lan0");

	turn_to(&lab, 2, 0);
	assert_int_equal(row_of(&lab, "eth0"), -1);
	assert_int_equal(value(&lab, "lan0", "net.rx.bytes"), 1600000);
	assert_int_equal(lab.table.id[row_of(&lab, "eth1")], id);
	assert_int_equal(value(&lab, "usb0", "net.tx.bytes"), 70000);
	assert_counts(&lab, "usb0");
	assert_apart(&lab, "veth0", "virtual");

	/* A reset and a wrap are falls: the reader of the counter knows what they mean. */
	turn_to(&lab, 3, 0);
	assert_int_equal(value(&lab, "usb0", "net.rx.bytes"), 300);
	assert_int_equal(value(&lab, "eth1", "net.rx.bytes"), 100);

	turn_to(&lab, 4, 0);
	assert_int_equal(row_of(&lab, "usb0"), -1);
	assert_int_equal(lab.table.id[row_of(&lab, "eth1")], id);

	turn_to(&lab, 5, -EIO);
	assert_int_equal(value(&lab, "eth1", "net.rx.bytes"), INVALID);
	assert_int_equal(value(&lab, "lan0", "net.tx.packets"), INVALID);
	turn_to(&lab, 6, 0);
	assert_int_equal(value(&lab, "eth1", "net.rx.bytes"), 600);
	assert_int_equal(value(&lab, "lan0", "net.rx.bytes"), 1700000);

	turn_to(&lab, 7, 0);
	assert_int_equal(row_of(&lab, "eth1"), -1);
	assert_int_equal(value(&lab, "eth2", "net.rx.bytes"), 70);
	id = lab.table.id[row_of(&lab, "eth2")];

	/* One of the two lines counts, and what stands behind them is read. */
	turn_to(&lab, 8, 0);
	assert_int_equal(lab.table.id[row_of(&lab, "eth2")], id);
	assert_int_equal(value(&lab, "eth2", "net.rx.bytes"), 170);
	assert_int_equal(value(&lab, "veth0", "net.rx.bytes"), 20000);
	assert_int_equal(lab.table.nr_touched, 4);

	/* Two names are exchanged: each counter goes on under the other name, and none has jumped. */
	lan0 = (uint32_t)row_of(&lab, "lan0");
	eth2 = (uint32_t)row_of(&lab, "eth2");
	turn_to(&lab, 9, 0);
	assert_int_equal(table_row(&lab.table, lan0)[0], 1700200);
	assert_int_equal(table_row(&lab.table, eth2)[0], 270);
	assert_int_equal(lab.table.nr_touched, 6);
	turn_to(&lab, 10, 0);
	assert_int_equal(value(&lab, "eth2", "net.rx.bytes"), 1700300);
	assert_int_equal(value(&lab, "lan0", "net.rx.bytes"), 370);
	assert_int_equal(lab.table.nr_touched, 4);
	lab_release(&lab);
	env_free(env);
}

static void test_the_namespace_of_the_job(void **state)
{
	struct env *env = film_of("films", "net-namespace");
	struct lab net, tcp;

	(void)state;
	lab_init(&net, env, "net");
	lab_init(&tcp, env, "tcp");
	net.feed.root = tcp.feed.root = 100;
	assert_int_equal(net.collector->open(net.state, &net.ctx), 0);
	assert_int_equal(tcp.collector->open(tcp.state, &tcp.ctx), 0);
	net.ctx.medium = tcp.ctx.medium = false;
	assert_int_equal(lab_sample(&net), 0);
	assert_int_equal(lab_sample(&tcp), 0);
	assert_int_equal(value(&net, "eth0", "net.rx.bytes"), 777000);
	assert_int_equal(node(&tcp, "tcp.retransmits"), 1000);
	assert_int_equal(node(&tcp, "tcp.timeouts"), 57);

	turn_to(&net, 1, 0);
	assert_int_equal(lab_sample(&tcp), 0);
	assert_int_equal(value(&net, "eth0", "net.rx.bytes"), 105);
	assert_int_equal(net.table.before[row_of(&net, "eth0") * (int)net.table.nr_cols], 0);
	assert_int_equal(node(&tcp, "tcp.retransmits"), 5);
	assert_int_equal(node(&tcp, "tcp.timeouts"), 3); /* at once, though it is of the medium tier */
	assert_int_equal(tcp.table.id[row_of(&tcp, "node")], 2); /* other counters: another instance */
	assert_counts(&net, "eth0");
	assert_counts(&net, "eth1");
	assert_apart(&net, "lo", "loopback");
	assert_apart(&net, "bond0", "made of other");
	assert_apart(&net, "bond0.5", "made of other");
	assert_int_equal(total(&net, "net.rx.bytes"), 115);

	turn_to(&net, 2, 0);
	assert_int_equal(lab_sample(&tcp), 0);
	assert_int_equal(value(&net, "eth0", "net.rx.bytes"), 1105);
	assert_int_equal(node(&tcp, "tcp.retransmits"), 1005);

	/* The film's handles die with the process, the kernel's do not; nothing of ours takes their place. */
	turn_to(&net, 3, -ESRCH);
	assert_int_equal(value(&net, "eth0", "net.rx.bytes"), INVALID);
	assert_int_equal(lab_sample(&tcp), -ESRCH);
	assert_int_equal(node(&tcp, "tcp.retransmits"), INVALID);
	lab_release(&net);
	lab_release(&tcp);
	env_free(env);
}

/* The job's own sysfs tells of its namespace; what an interface is may be settled only after it came. */
static void test_a_namespace_with_a_bridge(void **state)
{
	struct env *env = film_of("films", "net-bridged");
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "net");
	lab.feed.root = 200;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	lab.ctx.medium = false;
	assert_counts(&lab, "eth0");
	assert_apart(&lab, "br0", "made of other");
	turn_to(&lab, 1, 0);
	assert_counts(&lab, "vethA");
	turn_to(&lab, 2, 0);
	assert_counts(&lab, "vethA");
	lab.ctx.medium = true;
	turn_to(&lab, 3, 0);
	assert_apart(&lab, "vethA", "virtual");
	assert_int_equal(value(&lab, "vethA", "net.rx.bytes"), 50);
	assert_int_equal(total(&lab, "net.rx.bytes"), 1100);

	/* Something better has come: now that counts, and only that. */
	turn_to(&lab, 5, 0);
	assert_counts(&lab, "hw0");
	assert_apart(&lab, "eth0", "virtual");
	assert_int_equal(total(&lab, "net.rx.bytes"), 7);
	assert_int_equal(lab.table.nr_touched, 5);
	lab_release(&lab);
	env_free(env);
}

static void test_the_sysfs_of_another_namespace(void **state)
{
	struct env *env = film_of("films", "net-bridged");
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "net");
	lab.feed.root = 300;
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, "eth0");
	assert_int_equal(value(&lab, "eth0", "net.rx.bytes"), 33);
	lab_release(&lab);
	env_free(env);
}

/* A process that has ended before the first sample, or never was, leaves our own namespace. */
static void test_a_job_without_a_namespace(void **state)
{
	struct env *env = film_of("films", "net-namespace");
	struct lab lab;

	(void)state;
	for (int root = 0; root < 200; root += 199) {
		lab_init(&lab, env, "net");
		lab.feed.root = root;
		assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
		assert_int_equal(lab_sample(&lab), 0);
		assert_int_equal(value(&lab, "eth0", "net.rx.bytes"), 777000);
		lab_release(&lab);
	}
	env_free(env);
}

/* A container host: far more interfaces than are recorded. Those that count are, and the file is read in
 * time. */
static void test_more_interfaces_than_rows(void **state)
{
	struct env *env;
	struct buf film;
	struct lab lab;
	unsigned whys;

	(void)state;
	buf_init(&film, 1 << 20);
	buf_addf(&film, "file proc/net/dev\n|head\n|head\n");
	for (int i = 0; i < 5000; i++)
		buf_addf(&film, "|veth%d: %d 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n", i, i);
	buf_addf(&film, "|lo: 1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n");
	for (int i = 0; i < 5000; i++)
		buf_addf(&film, "link sys/class/net/veth%d ../../devices/%s/net/veth%d\n", i,
			i == 4000 ? "pci0000:00" : "virtual", i);
	env = film_buf(&film);
	lab_open(&lab, env, "net");
	assert_int_equal(lab.table.nr_rows, 256);
	assert_int_equal(availability(&lab, "net.rx.bytes"), FAILED);
	assert_non_null(strstr(lab.why, "256"));
	whys = lab.whys;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_counts(&lab, "veth4000");
	assert_int_equal(value(&lab, "veth4000", "net.rx.bytes"), 4000);
	assert_apart(&lab, "veth3", "virtual");
	assert_int_equal(lab.whys, whys);
	lab_release(&lab);
	env_free(env);
}

/* More interfaces than rows: one is renamed, then one comes that counts in place of all others. */
static void test_a_full_table(void **state)
{
	struct env *env;
	struct buf film;
	struct lab lab;

	(void)state;
	buf_init(&film, 1 << 20);
	buf_addf(&film, "clock monotonic 100\n");
	for (int second = 0; second < 4; second++) {
		if (second)
			buf_addf(&film, "frame %d\n", second);
		buf_addf(&film, "file proc/net/dev\n|head\n|head\n");
		for (int i = 0; i < 258; i++)
			buf_addf(&film, "|%s%d: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0\n",
				second && i == 7 ? "new" : "veth", i);
		if (second > 2)
			buf_addf(&film,
				"|hw0: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\nlink sys/class/net/hw0 "
				"../pci/net/hw0\n");
	}
	buf_addf(&film, "frame 4\n");
	env = film_buf(&film);
	lab_open(&lab, env, "net");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(total(&lab, "net.rx.bytes"), 256 * 5);
	turn_to(&lab, 1, 0);
	turn_to(&lab, 2, 0);
	assert_int_equal(row_of(&lab, "veth7"), -1);
	assert_counts(&lab, "new7");
	assert_int_equal(total(&lab, "net.rx.bytes"), 256 * 5);
	turn_to(&lab, 3, 0);
	assert_counts(&lab, "hw0");
	assert_apart(&lab, "new7", "virtual");
	assert_int_equal(total(&lab, "net.rx.bytes"), 9);
	lab_release(&lab);
	env_free(env);
}

static void test_tcp(void **state)
{
	struct env *env = film_of("machines", "net-server");
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "tcp");
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "tcp.retransmits"), 77);
	assert_int_equal(node(&lab, "tcp.rx.segments"), 14443);
	assert_int_equal(node(&lab, "tcp.tx.segments"), 9173);
	assert_int_equal(node(&lab, "tcp.errors"), 5);
	assert_int_equal(node(&lab, "tcp.resets"), 16);
	assert_int_equal(node(&lab, "tcp.broken"), 1);
	assert_int_equal(node(&lab, "tcp.failed"), 3);
	assert_int_equal(node(&lab, "tcp.opened"), 222);
	assert_int_equal(node(&lab, "tcp.accepted"), 6);
	assert_int_equal(node(&lab, "tcp.connections"), 42);
	assert_int_equal(node(&lab, "udp.rx.datagrams"), 443); /* not UdpLite's */
	assert_int_equal(node(&lab, "udp.tx.datagrams"), 446);
	assert_int_equal(node(&lab, "udp.errors"), 7);
	assert_int_equal(node(&lab, "udp.overruns"), 6);
	assert_int_equal(node(&lab, "tcp.timeouts"), 57);
	assert_int_equal(node(&lab, "tcp.syn_retransmits"), 78);
	assert_int_equal(node(&lab, "tcp.listen_drops"), 31);
	assert_int_equal(node(&lab, "tcp.memory_pressure"), 6);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

/* Rows that are not recorded open no file: here netstat cannot be opened, and nobody notices. */
static void test_tcp_without_netstat(void **state)
{
	struct env *env = film_of("machines", "net-container");
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "tcp");
	for (size_t i = 0; i < lab.collector->nr_metrics; i++)
		lab.ctx.map.col[i] = (int8_t)(lab.collector->metric[i].on_request ? -1 : (int)i);
	assert_int_equal(lab.collector->open(lab.state, &lab.ctx), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(node(&lab, "tcp.retransmits"), 77);
	assert_int_equal(lab.whys, 0);
	lab_release(&lab);
	env_free(env);
}

static void test_ports_of_a_server(void **state)
{
	struct env *env = film_of("machines", "net-server");
	struct trouble why;
	struct lab lab;

	(void)state;
	lab_open(&lab, env, "ib");
	assert_int_equal(lab.collector->probe(env, &why), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.table.nr_rows, 2);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.bytes"), INT64_C(4) << 40);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.tx.bytes"), 4 * ((INT64_C(1) << 33) + 1));
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.packets"), 4295000000);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.tx.packets"), 123456);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.tx.wait"), 123456789);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.errors"), 4);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.tx.discards"), 5);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.symbol_errors"), 3);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.link_recoveries"), 2);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.link_downed"), 1);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.integrity_errors"), 6);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.overruns"), 7);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.out_of_sequence"), 11);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.cnp_sent"), INVALID);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rate"), 12500000000);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.rx.bytes"), 4000);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.cnp_sent"), 21);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.cnp_handled"), 22);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.out_of_buffer"), 12);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.ack_timeouts"), 13);
	/* The port that is down is no instance; the one without counters is none either, and it is said. */
	assert_int_equal(availability(&lab, "ib.rx.bytes"), ABSENT);
	assert_int_equal(availability(&lab, "ib.cnp_sent"), AVAILABLE);
	assert_string_equal(lab.why, "port mlx5_3/1: it has no counters");
	lab_release(&lab);
	env_free(env);
}

static void test_every_kind_of_port(void **state)
{
	struct env *env = film_of("machines", "ib-kinds");
	struct lab lab;
	unsigned whys;

	(void)state;
	lab_open(&lab, env, "ib");
	whys = lab.whys;
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(lab.whys, whys); /* said once */

	/* 64 bits where there are some: 4294967295 is a number there. */
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.bytes"), 4 * 9000000000);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.tx.bytes"), 4 * 8000000000);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.packets"), 70);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.tx.packets"), 4294967295);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rate"), 5000000000);

	assert_int_equal(value(&lab, "mlx4_1/2", "ib.rx.bytes"), INVALID);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.tx.bytes"), 4000);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.rx.packets"), INVALID);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.tx.packets"), 6);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.tx.wait"), INVALID);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.symbol_errors"), 65535);
	assert_int_equal(value(&lab, "mlx4_1/2", "ib.rate"), 312500000);
	assert_int_equal(availability(&lab, "ib.tx.wait"), ABSENT); /* mlx5_9 had the last word */

	assert_int_equal(value(&lab, "hfi1_0/1", "ib.rx.bytes"), 8000);
	assert_int_equal(value(&lab, "hfi1_0/1", "ib.tx.bytes"), 24000);
	assert_int_equal(value(&lab, "hfi1_0/1", "ib.rx.packets"), 10); /* packets are packets */
	assert_int_equal(value(&lab, "opa1/1", "ib.rx.bytes"), 8008);
	assert_int_equal(value(&lab, "qib0/1", "ib.rx.bytes"), 4008);
	assert_int_equal(value(&lab, "qib1/1", "ib.rx.bytes"), 4012);

	assert_int_equal(value(&lab, "mlx5_9/1", "ib.rx.bytes"), INVALID);
	assert_int_equal(value(&lab, "mlx5_9/1", "ib.symbol_errors"), INVALID);
	assert_int_equal(value(&lab, "mlx5_9/1", "ib.rate"), 12500000000);
	assert_int_equal(row_of(&lab, "bnxt_re0/1"), -1);
	assert_int_equal(row_of(&lab, "vf0/1"), -1);

	assert_int_equal(value(&lab, "broken0/1", "ib.rx.bytes"), INVALID);
	assert_int_equal(value(&lab, "broken0/1", "ib.tx.bytes"), INVALID);
	assert_int_equal(
		value(&lab, "broken0/1", "ib.rx.packets"), -1); /* 2^64 - 1, as the kernel's own wrap */
	assert_int_equal(value(&lab, "broken0/1", "ib.rate"), INVALID);

	assert_int_equal(value(&lab, "cxi0", "ib.rx.bytes"), 123456789012);
	assert_int_equal(value(&lab, "cxi0", "ib.tx.bytes"), 4294967295);
	assert_int_equal(value(&lab, "cxi0", "ib.rx.packets"), INVALID);
	assert_int_equal(value(&lab, "cxi1", "ib.tx.bytes"), 6);
	lab_release(&lab);
	env_free(env);
}

static void sample_at(struct lab *lab, int second)
{
	lab->ctx.medium = second % 5 == 0;
	turn_to(lab, second, 0);
}

static void test_ports_come_and_go(void **state)
{
	struct env *env = film_of("films", "ib-ports");
	struct lab lab;
	uint32_t id;

	(void)state;
	lab_open(&lab, env, "ib");
	assert_int_equal(lab.whys, 5); /* the rows of hw_counters */
	assert_int_equal(lab_sample(&lab), 0);
	assert_int_equal(row_of(&lab, "mlx5_0/2"), -1);
	sample_at(&lab, 1);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.bytes"), 4 * ((INT64_C(1) << 34) + 1000));
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.bytes"), 4 * INT64_C(4294967294));
	sample_at(&lab, 3);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.bytes"), INVALID);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.tx.bytes"), 360);
	assert_int_equal(availability(&lab, "ib.rx.bytes"), FAILED);
	assert_non_null(strstr(lab.why, "mlx4_0/1"));
	assert_non_null(strstr(lab.remedy, "perfquery"));
	assert_int_equal(lab.whys, 6);

	/* Vanished: no values at once, and no instance when the list is read again. */
	sample_at(&lab, 4);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.rx.bytes"), INVALID);
	sample_at(&lab, 5);
	assert_int_equal(row_of(&lab, "mlx5_1/1"), -1);
	assert_int_equal(lab.whys, 6);

	sample_at(&lab, 7);
	assert_int_equal(row_of(&lab, "mlx5_0/2"), -1); /* up, but the list is old */
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.symbol_errors"), 0);
	sample_at(&lab, 9);
	assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.bytes"), 100);
	assert_int_equal(value(&lab, "mlx5_2/1", "ib.rx.bytes"), INVALID);
	sample_at(&lab, 10);
	assert_int_equal(value(&lab, "mlx5_0/1", "ib.symbol_errors"), 9);
	assert_int_equal(value(&lab, "mlx5_0/2", "ib.rx.bytes"), 28);
	assert_int_equal(value(&lab, "mlx5_2/1", "ib.rx.bytes"), 4); /* its driver was loaded again */
	sample_at(&lab, 12);
	assert_int_equal(row_of(&lab, "mlx5_3/1"), -1);
	assert_int_equal(value(&lab, "mlx5_0/2", "ib.rx.bytes"), 428);
	sample_at(&lab, 15);
	assert_int_equal(value(&lab, "mlx5_3/1", "ib.rx.bytes"), 120);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.rx.bytes"), 16);
	id = lab.table.id[row_of(&lab, "mlx5_1/1")];
	/* A listing that fails tells of no port that it is gone. */
	sample_at(&lab, 20);
	assert_int_equal(lab.table.id[row_of(&lab, "mlx5_1/1")], id);
	assert_int_equal(row_of(&lab, "mlx5_0/2"), -1);
	assert_int_equal(value(&lab, "mlx5_1/1", "ib.rx.bytes"), 56);
	lab_release(&lab);
	env_free(env);
}

static void test_a_machine_without_ports(void **state)
{
	struct env *env = film_of("machines", "tiny-arm");
	struct trouble why;
	struct lab lab;

	(void)state;
	lab_init(&lab, env, "ib");
	assert_int_equal(lab.collector->probe(env, &why), -ENOENT);
	assert_non_null(strstr(why.reason, "InfiniBand"));
	lab_release(&lab);
	env_free(env);
}

static const struct walk {
	const char *collector, *kind, *film;
	int until; /* seconds */
} everything[] = {
	{"net", "machines", "net-server", 0},
	{"net", "machines", "net-container", 0},
	{"net", "films", "net-renamed", 4},
	{"net", "films", "net-namespace", 2},
	{"net", "films", "net-bridged", 5},
	{"tcp", "machines", "net-server", 0},
	{"tcp", "films", "net-namespace", 2},
	{"ib", "machines", "net-server", 0},
	{"ib", "films", "ib-ports", 15},
};

#define CALLS 100

struct outcome {
	bool opened;
	unsigned rows;
	int64_t sum; /* of the first metric */
};

static struct outcome play(const struct walk *walk, unsigned nth, int error)
{
	struct env *env = env_failing(film_of(walk->kind, walk->film), nth, error);
	struct outcome o = {0};
	struct lab lab;

	lab_init(&lab, env, walk->collector);
	lab.feed.root = strcmp(walk->film, "net-bridged") ? 100 : 200;
	o.opened = lab.collector->open(lab.state, &lab.ctx) == 0;
	/* The last samples come after the failure: each makes a call at least. */
	for (int second = 0; o.opened && second <= walk->until + CALLS; second++) {
		if (second && second <= walk->until)
			env_sleep_until(env, (100 + second) * NSEC_PER_SEC);
		lab_sample(&lab);
	}
	for (uint32_t row = 0; row < lab.table.nr_rows; row++) {
		if (lab.table.id[row] == ROW_FREE)
			continue;
		o.rows++;
		if (lab.table.valid[row] & 1)
			o.sum += table_row(&lab.table, row)[0];
	}
	lab_release(&lab);
	env_free(env);
	return o;
}

/* Whichever call fails, in the end the same numbers are there, unless nothing could be opened. Of a port a
 * counter that could not be opened is missing. */
static void test_every_call_may_fail(void **state)
{
	static const int error[] = {-EIO, -ENOENT, -EMFILE, -EACCES};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(everything); i++) {
		const struct walk *walk = &everything[i];
		struct outcome want = play(walk, 0, 0);
		unsigned refused = 0;

		assert_true(want.opened && want.rows && want.sum);
		for (unsigned nth = 1; nth < CALLS; nth++) {
			struct outcome got = play(walk, nth, error[nth % ARRAY_SIZE(error)]);

			refused += !got.opened;
			if (got.opened && got.rows != want.rows)
				fail_msg("%s: call %u: %u rows", walk->film, nth, got.rows);
			if (got.opened && got.sum != want.sum && strcmp(walk->collector, "ib"))
				fail_msg("%s: call %u: other numbers", walk->film, nth);
		}
		assert_true(refused < 8);
	}
}

/* Where descriptors or permissions are missing, that is what is said: of the counter that could not be
 * opened. */
static bool opening_fails(unsigned nth, int error, enum availability want)
{
	struct env *env = env_failing(film_of("films", "ib-ports"), nth, error);
	struct lab lab;
	bool said;

	lab_open(&lab, env, "ib");
	said = availability(&lab, "ib.rx.errors") == want;
	if (said) {
		assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.errors"), INVALID);
		assert_int_equal(value(&lab, "mlx4_0/1", "ib.rx.packets"), 1);
		assert_int_equal(value(&lab, "mlx5_0/1", "ib.rx.errors"), 0);
	}
	lab_release(&lab);
	env_free(env);
	return said;
}

static void test_ports_that_cannot_be_opened(void **state)
{
	unsigned nth = 1;

	(void)state;
	while (nth < 200 && !opening_fails(nth, -EMFILE, FAILED))
		nth++;
	assert_in_range(nth, 2, 199);
	assert_true(opening_fails(nth, -EACCES, FORBIDDEN));
}

/* This machine's interfaces, as its own capture shows them again: links, folders behind them and all. */
static unsigned describe(struct env *env, char *out, size_t size)
{
	struct lab lab;
	size_t at = 0;

	lab_open(&lab, env, "net");
	assert_int_equal(lab_sample(&lab), 0);
	for (uint32_t row = 0; row < lab.table.nr_rows && at < size; row++)
		at += (size_t)snprintf(out + at, size - at, "%s %s %lld\n", lab.name[row], lab.about[row],
			(long long)table_row(&lab.table, row)[0]);
	size = lab.table.nr_rows;
	lab_release(&lab);
	return (unsigned)size;
}

static void test_the_play_of_a_capture(void **state)
{
	char path[] = "/tmp/tacho-test-net-XXXXXX";
	static char seen[20000], played[20000];
	struct env *env;
	unsigned line;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	env = env_capture(env_live(NULL), path);
	assert_true(describe(env, seen, sizeof(seen)) > 0);
	env_free(env);
	assert_int_equal(env_film(path, &env, &line), 0);
	describe(env, played, sizeof(played));
	env_free(env);
	unlink(path);
	assert_non_null(strstr(seen, "lo apart=loopback"));
	assert_string_equal(played, seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_server),
		cmocka_unit_test(test_a_server_with_two_sockets),
		cmocka_unit_test(test_a_container),
		cmocka_unit_test(test_hardware_that_counts_twice),
		cmocka_unit_test(test_interfaces_come_go_and_are_renamed),
		cmocka_unit_test(test_the_namespace_of_the_job),
		cmocka_unit_test(test_a_namespace_with_a_bridge),
		cmocka_unit_test(test_the_sysfs_of_another_namespace),
		cmocka_unit_test(test_a_job_without_a_namespace),
		cmocka_unit_test(test_a_full_table),
		cmocka_unit_test(test_more_interfaces_than_rows),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_tcp_without_netstat),
		cmocka_unit_test(test_ports_of_a_server),
		cmocka_unit_test(test_every_kind_of_port),
		cmocka_unit_test(test_ports_come_and_go),
		cmocka_unit_test(test_a_machine_without_ports),
		cmocka_unit_test(test_every_call_may_fail),
		cmocka_unit_test(test_ports_that_cannot_be_opened),
		cmocka_unit_test(test_the_play_of_a_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
