/* What a machine is said to be, on machines that are known, on hostile ones and on this one. */
#include "film_text.h"
#include "hardware_facts.h"

#include "node/hardware.h"

#include "base/buf.h"
#include "node/microarch.h"
#include "read/cpulist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What was said, in order. */
struct said {
	unsigned nr;
	char key[256][64];
	char value[256][FACT_TEXT_MAX];
};
static struct said said;

static void hear(void *arg, const char *key, const char *value)
{
	struct said *s = arg;

	assert_true(s->nr < ARRAY_SIZE(s->key));
	assert_true(strlen(key) < sizeof(s->key[0]) && strlen(value) < FACT_TEXT_MAX);
	snprintf(s->key[s->nr], sizeof(s->key[0]), "%s", key);
	snprintf(s->value[s->nr++], FACT_TEXT_MAX, "%s", value);
}

static const char *heard(const char *key)
{
	for (unsigned i = 0; i < said.nr; i++)
		if (!strcmp(said.key[i], key))
			return said.value[i];
	return NULL;
}

/* Of whatever machine: facts of the list, each once, numbers that are numbers, one printable line of text. */
static void assert_sound(void)
{
	for (unsigned i = 0; i < said.nr; i++) {
		const char *value = said.value[i];
		size_t n = 0;

		assert_memory_equal(said.key[i], "hw.", 3);
		while (n < nr_hardware_facts && strcmp(hardware_fact[n].name, said.key[i] + 3))
			n++;
		if (n == nr_hardware_facts)
			fail_msg("%s is not in the list", said.key[i]);
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(said.key[i], said.key[j]))
				fail_msg("%s was said twice", said.key[i]);
		assert_true(*value);
		assert_true(value[0] != ' ' && value[strlen(value) - 1] != ' ');
		if (hardware_fact[n].type == FACT_NUMBER)
			assert_int_equal(strspn(value + (*value == '-'), "0123456789"),
				strlen(value + (*value == '-')));
		for (const char *p = value; *p; p++)
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				fail_msg("%s has a byte 0x%02x", said.key[i], (unsigned char)*p);
	}
}

static void describe(struct env *env)
{
	said.nr = 0;
	hardware_describe(env, hear, &said);
	assert_sound();
}

static void describe_text(const char *text)
{
	struct env *env = film_text(text);

	describe(env);
	env_free(env);
}

/* The machines */

static const struct {
	const char *name;
	const struct known *fact;
	size_t nr;
} machines[] = {
	{"numa-256", facts_numa_256, ARRAY_SIZE(facts_numa_256)},
	{"intel-2s", facts_intel_2s, ARRAY_SIZE(facts_intel_2s)},
	{"amd-server", facts_amd_server, ARRAY_SIZE(facts_amd_server)},
	{"laptop", facts_laptop, ARRAY_SIZE(facts_laptop)},
	{"arm-server", facts_arm_server, ARRAY_SIZE(facts_arm_server)},
};

static void test_every_fact_of_the_machines(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct env *env = film_of("machines", machines[m].name);
		char key[80];

		describe(env);
		for (size_t i = 0; i < machines[m].nr; i++) {
			snprintf(key, sizeof(key), "hw.%s", machines[m].fact[i].name);
			if (!heard(key))
				fail_msg("%s: nothing of %s", machines[m].name, key);
			assert_string_equal(heard(key), machines[m].fact[i].value);
		}
		assert_int_equal(said.nr, machines[m].nr);
		env_free(env);
	}
}

/* A row that no machine has is a row that nothing reads. */
static void test_every_row_is_said_somewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < nr_hardware_facts; i++) {
		const char *name = hardware_fact[i].name;
		/* A system call, of live machines alone: see test_hardware.py. */
		bool found = !strcmp(name, "clock_synchronized") || !strcmp(name, "clock_error_us");

		for (size_t m = 0; m < ARRAY_SIZE(machines); m++)
			for (size_t j = 0; j < machines[m].nr; j++)
				found |= !strcmp(machines[m].fact[j].name, name);
		if (!found)
			fail_msg("no machine has %s", name);
		assert_true(strlen(name) < 32);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
		assert_true(*hardware_fact[i].label);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(hardware_fact[j].name, name);
	}
}

/* Poor machines have few facts, and none that is made up. */
static void test_what_is_not_there_is_not_said(void **state)
{
	struct env *env = film_of("machines", "tiny-arm");

	(void)state;
	describe(env);
	assert_int_equal(said.nr, 3);
	assert_string_equal(heard("hw.memory_bytes"), "62672896");
	assert_string_equal(heard("hw.swap_bytes"), "67104768");
	assert_non_null(heard("hw.boot_time"));
	env_free(env);
	describe_text("clock realtime 0\n");
	assert_int_equal(said.nr, 0);
}

/* An env that counts, or spoils what is read. */

struct spy {
	struct env env;
	struct env *inner;
	unsigned opens;
	size_t cut;	 /* no file is longer; 0: as it is */
	unsigned garble; /* every so many bytes another one; 0: none */
	uint32_t random;
};

static struct env *spied(struct env *env)
{
	return ((struct spy *)env)->inner;
}

static int spy_open(struct env *env, const char *path)
{
	((struct spy *)env)->opens++;
	return env_open(spied(env), path);
}

static ssize_t spy_read(struct env *env, int handle, void *out, size_t size, off_t offset)
{
	struct spy *s = (struct spy *)env;
	ssize_t n;

	if (s->cut && (size_t)offset >= s->cut)
		return 0;
	n = env_read_at(s->inner, handle, out, s->cut ? MIN(size, s->cut - (size_t)offset) : size, offset);
	for (ssize_t i = 0; s->garble && i < n; i++) {
		s->random = s->random * 1664525 + 1013904223;
		if ((s->random >> 8 & 0xffff) % s->garble == 0)
			((uint8_t *)out)[i] = (uint8_t)(s->random >> 24);
	}
	return n;
}

static void spy_close(struct env *env, int handle)
{
	env_close(spied(env), handle);
}

static int spy_list(struct env *env, const char *path, env_list_fn *fn, void *arg)
{
	((struct spy *)env)->opens++;
	return env_list(spied(env), path, fn, arg);
}

static ssize_t spy_readlink(struct env *env, const char *path, char *out, size_t size)
{
	return env_readlink(spied(env), path, out, size);
}

static int64_t spy_now(struct env *env, enum env_clock clock)
{
	return env_now(spied(env), clock);
}

static const char *spy_getenv(struct env *env, const char *name)
{
	return env_getenv(spied(env), name);
}

static const struct env_ops spy_ops = {
	.open = spy_open,
	.read = spy_read,
	.close = spy_close,
	.list = spy_list,
	.readlink = spy_readlink,
	.now = spy_now,
	.getenv = spy_getenv,
};

static struct spy spy_on(struct env *inner)
{
	return (struct spy){.env = {.ops = &spy_ops, .page_size = 4096, .clock_tick = 100}, .inner = inner};
}

/* 256 CPUs, 8 NUMA nodes (two files each), a hundred PCI devices: one more is one too many. */
static void test_few_files_of_a_large_machine(void **state)
{
	struct env *env = film_of("machines", "numa-256");
	struct spy spy = spy_on(env);

	(void)state;
	describe(&spy.env);
	assert_string_equal(heard("hw.threads"), "256");
	assert_in_range(spy.opens, 40, 87);
	env_free(env);

	/* On Intel's own platforms most devices are Intel's: those without a driver of GPUs are left alone.
	 */
	env = film_of("machines", "intel-2s");
	spy = spy_on(env);
	describe(&spy.env);
	assert_string_equal(heard("hw.threads"), "16");
	assert_in_range(spy.opens, 40, 72);
	env_free(env);
}

/* Hostile machines */

static void test_files_that_end_anywhere(void **state)
{
	struct env *env = film_of("machines", "numa-256");
	struct spy spy = spy_on(env);

	(void)state;
	for (spy.cut = 1; spy.cut < 3000; spy.cut += spy.cut < 200 ? 1 : 37)
		describe(&spy.env);
	env_free(env);
}

static void test_files_of_garbage(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct env *env = film_of("machines", machines[m].name);
		struct spy spy = spy_on(env);

		for (unsigned i = 0; i < 100; i++) {
			spy.garble = 1 + i;
			spy.random = i;
			describe(&spy.env);
		}
		env_free(env);
	}
}

/* Whichever call of the kernel fails, the rest is said. */
static void test_every_call_fails_once(void **state)
{
	unsigned least = UINT32_MAX, most = 0;

	(void)state;
	for (unsigned nth = 1; nth < 400; nth++) {
		struct env *env = env_failing(film_of("machines", "intel-2s"), nth, -EIO);

		describe(env);
		least = MIN(least, said.nr);
		most = MAX(most, said.nr);
		env_free(env);
	}
	assert_int_equal(most, ARRAY_SIZE(facts_intel_2s));
	assert_in_range(least, ARRAY_SIZE(facts_intel_2s) - 18, ARRAY_SIZE(facts_intel_2s) - 1);
}

static void test_strings_of_firmware(void **state)
{
	(void)state;
	describe_text("file sys/class/dmi/id/sys_vendor\n|  ACME\\x1b[31m\n|\n|Corp.\\x00\n"
		      "file sys/class/dmi/id/product_name\n|Box\t\\xff\\xfe 1\\x7f\n");
	assert_string_equal(heard("hw.machine"), "ACME [31m Corp. Box ?? 1");
	describe_text("file sys/class/dmi/id/sys_vendor\n|To Be Filled By O.E.M.\n"
		      "file sys/class/dmi/id/product_name\n|Box\t\\xff\\xfe 1\\x7f\n");
	assert_string_equal(heard("hw.machine"), "Box ?? 1");
	describe_text("file sys/class/dmi/id/sys_vendor\n|System manufacturer\n"
		      "file sys/class/dmi/id/product_name\n|Default string\n"
		      "file proc/device-tree/model\n:Raspberry Pi 4 Model B Rev 1.4\\x00\n");
	assert_string_equal(heard("hw.machine"), "Raspberry Pi 4 Model B Rev 1.4");
	describe_text("file sys/class/dmi/id/sys_vendor\n|Intel\n"
		      "file sys/class/dmi/id/product_name\n|Intel NUC\n");
	assert_string_equal(heard("hw.machine"), "Intel NUC");
}

static void test_names_of_distributions(void **state)
{
	static const struct known release[] = {
		{"PRETTY_NAME=Gentoo/Linux", "Gentoo/Linux"},
		{"PRETTY_NAME=\"A \\\"B\\\" C\"", "A \"B\" C"},
		{"PRETTY_NAME='A B' C", "A B"},
		{"PRETTY_NAME='A\\B'", "A\\B"},
		{"PRETTY_NAME=\"cut", "cut"},
		{"PRETTY_NAME=\"cut\\", "cut\\"},
		{"NAME=plain", "plain"},
		{"# PRETTY_NAME=x\nXPRETTY_NAME=y\nPRETTY_NAME=z", "z"},
		{"PRETTY_NAME=", NULL},
		{"PRETTY_NAME", NULL},
		{"\x01\x02", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(release); i++) {
		char text[400];
		struct buf b;

		buf_init_fixed(&b, text, sizeof(text));
		buf_adds(&b, "file etc/os-release\n|");
		for (const char *p = release[i].name; *p; p++) {
			if (*p == '\n')
				buf_adds(&b, "\n|");
			else if (*p == '\\')
				buf_adds(&b, "\\\\");
			else
				buf_addch(&b, *p);
		}
		buf_addch(&b, '\n');
		assert_int_equal(b.err, 0);
		describe_text(text);
		if (!release[i].value)
			assert_null(heard("hw.distribution"));
		else
			assert_string_equal(heard("hw.distribution"), release[i].value);
	}
}

#define GUEST "file proc/cpuinfo\n|flags\t\t: lm hypervisor\n"
#define CLOCKS "file sys/devices/system/clocksource/clocksource0/available_clocksource\n|"
#define MAKER "file sys/class/dmi/id/sys_vendor\n|"
#define PRODUCT "file sys/class/dmi/id/product_name\n|"

static void test_hypervisors(void **state)
{
	static const struct known guest[] = {
		{"file proc/cpuinfo\n|flags\t\t: lm\n" MAKER "Amazon EC2\n" PRODUCT "c5.metal\n", "none"},
		{GUEST, "unknown"},
		{GUEST CLOCKS "tsc kvm-clock acpi_pm\n" MAKER "Xen\n", "KVM"},
		{GUEST CLOCKS "tsc not-kvm-clock acpi_pm\n", "unknown"},
		{GUEST CLOCKS "hyperv_clocksource_tsc_page acpi_pm\n", "Hyper-V"},
		{GUEST "file sys/hypervisor/type\n|xen\n", "Xen"},
		{GUEST MAKER "VMware, Inc.\n" PRODUCT "VMware Virtual Platform\n", "VMware"},
		{GUEST MAKER "Microsoft Corporation\n" PRODUCT "Virtual Machine\n", "Hyper-V"},
		{GUEST MAKER "innotek GmbH\n" PRODUCT "VirtualBox\n", "VirtualBox"},
		{GUEST MAKER "QEMU\n" PRODUCT "Standard PC (Q35 + ICH9, 2009)\n", "QEMU"},
		{GUEST MAKER "Amazon EC2\n" PRODUCT "m5.large\n", "KVM"},
		{"file proc/cpuinfo\n|Features\t: fp asimd\n", NULL},
		{"file proc/cpuinfo\n|Features\t: fp asimd\n" MAKER "QEMU\n" PRODUCT "KVM Virtual Machine\n",
			"Hyper-V"},
		{"file proc/cpuinfo\n|Features\t: fp asimd\nfile "
		 "proc/device-tree/compatible\n:linux,dummy-virt\\x00\n",
			"QEMU"},
		{"file proc/device-tree/hypervisor/compatible\n:xen,xen-4.11\\x00\n", "Xen"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(guest); i++) {
		describe_text(guest[i].name);
		if (!guest[i].value)
			assert_null(heard("hw.virtualization"));
		else
			assert_string_equal(heard("hw.virtualization"), guest[i].value);
	}
}

static void test_containers(void **state)
{
	static const struct known container[] = {
		{"file .dockerenv\n", "docker"},
		{"file run/.containerenv\n|engine=\"podman-4.3.1\"\nfile .dockerenv\n", "podman"},
		{"variable KUBERNETES_SERVICE_HOST=10.0.0.1\nfile .dockerenv\n", "kubernetes"},
		{"variable KUBERNETES_SERVICE_HOST=10.0.0.1\nvariable APPTAINER_NAME=a.sif\n", "apptainer"},
		{"variable SINGULARITY_CONTAINER=/a.sif\n", "singularity"},
		{"file proc/self/cgroup\n|12:memory:/docker/0123456789ab\n", "docker"},
		{"file proc/self/cgroup\n|0::/kubepods.slice/kubepods-pod1.slice/x.scope\n", "kubernetes"},
		{"file proc/self/cgroup\n|0::/machine.slice/libpod-0123.scope\n", "podman"},
		{"file proc/self/cgroup\n|1:name=systemd:/lxc/c1\n", "lxc"},
		{"file proc/self/cgroup\n|0::/user.slice/user-1000.slice/session-3.scope\n", NULL},
		{"file run/systemd/container\n|systemd-nspawn\n", "systemd-nspawn"},
		{"variable container=lxc\n", "lxc"},
		{"variable container=\n", NULL},
		{"file run/systemd/container\nerror run/systemd/container open EACCES\n", NULL},
		{"file proc/1/environ\n:container=lxc\\x00\n", NULL},
		{"file proc/self/cgroup\n|0::/system.slice/slurmstepd.scope/job_7\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(container); i++) {
		describe_text(container[i].name);
		if (!container[i].value)
			assert_null(heard("hw.container"));
		else
			assert_string_equal(heard("hw.container"), container[i].value);
	}
}

/* Two kinds of cores: the number of cores is told by cpuinfo, the number of private caches by nobody. */
static void test_cores_of_two_kinds(void **state)
{
	(void)state;
	describe_text("file proc/cpuinfo\n|processor\t: 0\n|vendor_id\t: GenuineIntel\n|cpu family\t: 6\n"
		      "|model\t\t: 183\n|model name\t: 13th Gen Intel(R) Core(TM) i9-13900K\n|stepping\t: 1\n"
		      "|siblings\t: 32\n|cpu cores\t: 24\n|flags\t\t: lm avx2 avx_vnni\n"
		      "file sys/devices/system/cpu/online\n|0-31\n"
		      "file sys/devices/system/cpu/cpu0/topology/core_cpus_list\n|0-1\n"
		      "file sys/devices/system/cpu/cpu0/topology/package_cpus_list\n|0-31\n"
		      "file sys/devices/system/cpu/cpu0/cache/index0/level\n|2\n"
		      "file sys/devices/system/cpu/cpu0/cache/index0/size\n|2048K\n"
		      "file sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list\n|0-1\n"
		      "file sys/devices/system/cpu/cpu0/cache/index1/level\n|3\n"
		      "file sys/devices/system/cpu/cpu0/cache/index1/size\n|36M\n"
		      "file sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list\n|0-31\n");
	assert_string_equal(heard("hw.microarchitecture"), "raptorlake");
	assert_string_equal(heard("hw.threads"), "32");
	assert_string_equal(heard("hw.cores"), "24");
	assert_string_equal(heard("hw.threads_per_core"), "2");
	assert_string_equal(heard("hw.cache_l2_bytes"), "2097152");
	assert_null(heard("hw.cache_l2_count"));
	assert_string_equal(heard("hw.cache_l3_bytes"), "37748736");
	assert_string_equal(heard("hw.cache_l3_count"), "1");
}

/* Lists that lie: a socket without its own CPU would be hopped to for ever. */
static void test_topology_that_lies(void **state)
{
	(void)state;
	describe_text("file sys/devices/system/cpu/online\n|0-3\n"
		      "file sys/devices/system/cpu/cpu0/topology/package_cpus_list\n|1\n"
		      "file sys/devices/system/cpu/cpu2/topology/package_cpus_list\n|1\n"
		      "file sys/devices/system/cpu/cpu3/topology/package_cpus_list\n|1\n");
	assert_string_equal(heard("hw.threads"), "4");
	assert_null(heard("hw.sockets"));
	describe_text("file sys/devices/system/cpu/online\n|0-99999999999999999999\n");
	assert_string_equal(heard("hw.threads"), "8192");
}

/* Many of everything: the text says how many are left out. */
static void test_more_devices_than_are_told(void **state)
{
	_cleanup_(freep) char *text = malloc(1 << 16);
	struct buf b;

	(void)state;
	assert_non_null(text);
	buf_init_fixed(&b, text, 1 << 16);
	for (int i = 0; i < 60; i++)
		buf_addf(&b,
			"link sys/block/sd%d ../devices/pci0000:00/ata1/block/sd%d\nfile "
			"sys/block/sd%d/size\n|2048\n"
			"link sys/class/net/eth%d ../../devices/pci0000:00/net/eth%d\n",
			i, i, i, i, i);
	buf_adds(&b, "file sys/devices/system/node/online\n|0-19\n");
	for (int i = 0; i < 20; i++)
		buf_addf(&b,
			"file sys/devices/system/node/node%d/cpulist\n|%d\n"
			"file sys/devices/system/node/node%d/meminfo\n|Node %d MemTotal: 1024 kB\n",
			i, i, i, i);
	assert_int_equal(b.err, 0);
	describe_text(text);
	assert_string_equal(heard("hw.numa_nodes"), "20");
	assert_non_null(strstr(heard("hw.numa_cpus"), "; node15 15; 4 more"));
	assert_non_null(strstr(heard("hw.numa_memory"), ", node15 1 MiB, 4 more"));
	assert_memory_equal(heard("hw.disks"), "sd0 1 MiB, sd1 1 MiB, sd2 1 MiB,", 32);
	assert_non_null(strstr(heard("hw.disks"), "sd7 1 MiB, 52 more"));
	assert_non_null(strstr(heard("hw.network"), "eth9, eth10, "));
	assert_non_null(strstr(heard("hw.network"), "eth15, 44 more"));
}

/* Without proc/bus/pci every device is looked at. */
static void test_gpus_without_a_list_of_devices(void **state)
{
	(void)state;
	describe_text("file sys/bus/pci/devices/0000:00:02.0/uevent\n|PCI_CLASS=38000\n|PCI_ID=8086:0BD5\n"
		      "file sys/bus/pci/devices/0000:00:03.0/uevent\n|PCI_CLASS=120000\n|PCI_ID=1002:74A1\n"
		      "file sys/bus/pci/devices/0000:00:04.0/uevent\n|PCI_CLASS=120000\n|PCI_ID=1002:74A1\n"
		      "file sys/bus/pci/devices/0000:00:05.0/uevent\n|PCI_CLASS=40300\n|PCI_ID=10DE:0001\n"
		      "file sys/bus/pci/devices/0000:00:06.0/uevent\n|PCI_CLASS=30000\n|PCI_ID=1A03:2000\n"
		      "file sys/bus/pci/devices/nonsense/uevent\n|PCI_CLASS=30000\n|PCI_ID=10DE:2000\n");
	assert_string_equal(heard("hw.gpus"), "3");
	assert_string_equal(
		heard("hw.gpu_models"), "Intel Data Center GPU Max 1550, 2 x AMD Instinct MI300X");
}

/* Processors */

static void test_micro_architectures(void **state)
{
	static const struct {
		struct cpu_identity cpu;
		const char *name;
	} cpu[] = {
		{{"GenuineIntel", 6, 0x2d, 7}, "sandybridge-x"},
		{{"GenuineIntel", 6, 0x3f, 2}, "haswell-x"},
		{{"GenuineIntel", 6, 0x4f, 1}, "broadwell-x"},
		{{"GenuineIntel", 6, 0x5e, 3}, "skylake"},
		{{"GenuineIntel", 6, 0x55, 4}, "skylake-x"},
		{{"GenuineIntel", 6, 0x55, 5}, "cascadelake-x"},
		{{"GenuineIntel", 6, 0x55, 7}, "cascadelake-x"},
		{{"GenuineIntel", 6, 0x55, 11}, "cooperlake-x"},
		{{"GenuineIntel", 6, 0x6a, 6}, "icelake-x"},
		{{"GenuineIntel", 6, 0x8f, 8}, "sapphirerapids"},
		{{"GenuineIntel", 6, 0xcf, 2}, "emeraldrapids"},
		{{"GenuineIntel", 6, 0x9e, 9}, "kabylake"},
		{{"GenuineIntel", 6, 0x9e, 13}, "coffeelake"},
		{{"GenuineIntel", 6, 0xff, 0}, NULL},
		{{"AuthenticAMD", 6, 0x55, 4}, NULL},
		{{"AuthenticAMD", 0x15, 2, 0}, "piledriver"},
		{{"AuthenticAMD", 0x17, 1, 2}, "zen1"},
		{{"AuthenticAMD", 0x17, 8, 2}, "zen+"},
		{{"AuthenticAMD", 0x17, 0x31, 0}, "zen2"},
		{{"AuthenticAMD", 0x19, 0x01, 1}, "zen3"},
		{{"AuthenticAMD", 0x19, 0x11, 1}, "zen4"},
		{{"AuthenticAMD", 0x19, 0x21, 0}, "zen3"},
		{{"AuthenticAMD", 0x19, 0xa0, 2}, "zen4"},
		{{"AuthenticAMD", 0x1a, 0x02, 1}, "zen5"},
		{{"ARM", 8, 0xd0c, 1}, "neoverse-n1"},
		{{"ARM", 8, 0xd40, 1}, "neoverse-v1"},
		{{"ARM", 8, 0xd4f, 0}, "neoverse-v2"},
		{{"Fujitsu", 8, 1, 0}, "a64fx"},
		{{"ARM", 8, 1, 0}, NULL},
		{{"", -1, -1, -1}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpu); i++) {
		const char *name = microarch_name(&cpu[i].cpu);

		if (!cpu[i].name)
			assert_null(name);
		else if (!name)
			fail_msg("no name instead of %s", cpu[i].name);
		else
			assert_string_equal(name, cpu[i].name);
	}
	assert_string_equal(arm_vendor(0x41), "ARM");
	assert_string_equal(arm_vendor(0xc0), "Ampere");
	assert_null(arm_vendor(0x141));
	assert_null(arm_vendor(-1));
}

static void test_lists_of_cpus(void **state)
{
	struct cpu_bits set = {0};

	(void)state;
	assert_int_equal(cpu_bits_next(&set, 0), -1);
	assert_int_equal(cpu_bits_add(&set, "0-3,8,126-129\n"), 9);
	assert_int_equal(cpu_bits_next(&set, 0), 0);
	assert_int_equal(cpu_bits_next(&set, 4), 8);
	assert_int_equal(cpu_bits_next(&set, 9), 126);
	assert_int_equal(cpu_bits_next(&set, 128), 128);
	assert_int_equal(cpu_bits_next(&set, 130), -1);
	assert_int_equal(cpu_bits_next(&set, CPU_SET_MAX), -1);
	assert_int_equal(cpu_bits_add(&set, "2-9"), 14); /* 4-7 and 9 are new */
	assert_int_equal(cpu_bits_add(&set, ""), 14);
	assert_int_equal(cpu_bits_add(&set, "-1"), 14);
	assert_int_equal(cpu_bits_add(&set, "x,20"), 14);
	assert_int_equal(cpu_bits_add(&set, "20,x,21"), 15);
	assert_int_equal(cpu_bits_add(&set, "30-"), 15);
	assert_int_equal(cpu_bits_add(&set, "30-25"), 15);
	assert_int_equal(cpu_bits_add(&set, "8190-9000"), 17);
	assert_int_equal(cpu_bits_add(&set, "18446744073709551615"), 17);
	assert_int_equal(cpu_bits_next(&set, 8191), 8191);
}

/* The environment */

static void test_variables_that_name_the_job(void **state)
{
	struct env *env = film_text("variable SLURM_JOB_ID=4711\n"
				    "variable SLURM_JOB_NODELIST=node[1-2]\n"
				    "variable OMPI_COMM_WORLD_RANK=3\n"
				    "variable PMIX_RANK=3\n"
				    "variable OMP_NUM_THREADS=8\n"
				    "variable CUDA_VISIBLE_DEVICES=0,1\n"
				    "variable PBS_JOBID=7.head\n"
				    "variable OAR_JOB_ID=9\n"
				    "variable LSB_JOBID=11\n"
				    "variable SLURM_JOB_NAME=\n");

	(void)state;
	said.nr = 0;
	environment_describe(env, hear, &said);
	assert_int_equal(said.nr, 10);
	assert_string_equal(heard("env.SLURM_JOB_ID"), "4711");
	assert_string_equal(heard("env.SLURM_JOB_NODELIST"), "node[1-2]");
	assert_string_equal(heard("env.OMPI_COMM_WORLD_RANK"), "3");
	assert_string_equal(heard("env.PMIX_RANK"), "3");
	assert_string_equal(heard("env.OMP_NUM_THREADS"), "8");
	assert_string_equal(heard("env.CUDA_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(heard("env.PBS_JOBID"), "7.head");
	assert_string_equal(heard("env.OAR_JOB_ID"), "9");
	assert_string_equal(heard("env.LSB_JOBID"), "11");
	assert_string_equal(heard("env.SLURM_JOB_NAME"), "");
	env_free(env);
}

/* An env whose every variable is set: what is asked for is all that can ever be told. */
static struct names_asked {
	unsigned nr;
	char name[512][64];
} asked;

static const char *spy_any_variable(struct env *env, const char *name)
{
	(void)env;
	assert_true(asked.nr < ARRAY_SIZE(asked.name));
	snprintf(asked.name[asked.nr++], sizeof(asked.name[0]), "%s", name);
	return "secret";
}

static void test_no_variable_may_hold_a_secret(void **state)
{
	static const struct env_ops ops = {.getenv = spy_any_variable};
	static const char *const tempting[] = {"TOKEN", "SECRET", "PASS", "KEY", "COOKIE", "JWT", "CRED",
		"AUTH", "CERT", "PRIVATE", "SPANK", "URI", "URL", "PORT", "COMMENT", "PATH", "PROXY", "SSH",
		"AWS", "SESSION"};
	struct env env = {.ops = &ops};

	(void)state;
	asked.nr = said.nr = 0;
	environment_describe(&env, hear, &said);
	assert_int_equal(said.nr, asked.nr);
	assert_true(
		asked.nr > 100 && asked.nr < 200); /* they share one record of at most 256 with other facts */
	for (unsigned i = 0; i < asked.nr; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(tempting); j++)
			if (strstr(asked.name[i], tempting[j]))
				fail_msg("%s may hold a secret", asked.name[i]);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(asked.name[i], asked.name[j]);
	}
}

static void test_secrets_in_the_environment(void **state)
{
	static const char *const name[] = {"PBS_JOBCOOKIE", "SLURM_JWT", "SLURM_TOKEN", "SLURM_JOB_TOKEN",
		"SLURM_JOB_COMMENT", "SLURM_JOB_ID_KEY", "SLURM_SPANK_X11", "SLURM_SRUN_COMM_PORT", "OAR_KEY",
		"OAR_JOB_KEY_FILE", "PMIX_SERVER_URI4", "PMIX_SECURITY_MODE", "PMI_FD",
		"OMPI_MCA_orte_hnp_uri", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KRB5CCNAME",
		"SSH_AUTH_SOCK", "PBS_O_PATH", "LSB_JOB_PASSWORD", "OMP_TOKEN", "slurm_job_id", "HOME",
		"PATH", "LD_PRELOAD"};
	_cleanup_(freep) char *text = malloc(8192);
	struct env *env;
	struct buf b;

	(void)state;
	assert_non_null(text);
	buf_init_fixed(&b, text, 8192);
	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		buf_addf(&b, "variable %s=hunter%zu\n", name[i], i);
	buf_adds(&b, "variable SLURM_JOB_ID=7\n");
	env = film_text(text);
	said.nr = 0;
	environment_describe(env, hear, &said);
	hardware_describe(env, hear, &said);
	assert_string_equal(heard("env.SLURM_JOB_ID"), "7");
	for (unsigned i = 0; i < said.nr; i++)
		assert_null(strstr(said.value[i], "hunter"));
	env_free(env);
}

/* The kernel's command line may hold a password; one word of it is told. */
static void test_only_one_word_of_the_command_line(void **state)
{
	(void)state;
	describe_text(
		"file proc/cmdline\n|password=hunter2 nomitigations=x mitigations=auto,nosmt secret=y\n");
	assert_int_equal(said.nr, 1 + (heard("hw.boot_time") != NULL));
	assert_string_equal(heard("hw.mitigations"), "auto,nosmt");
	describe_text("file proc/cmdline\n|mitigations=off\n");
	assert_string_equal(heard("hw.mitigations"), "off");
	describe_text("file proc/cmdline\n|nomitigations=off\n");
	assert_null(heard("hw.mitigations"));
}

/* This machine */

static void test_this_machine(void **state)
{
	struct env *env = env_live(NULL);
	char want[64], text[4096];

	(void)state;
	describe(env);
	snprintf(want, sizeof(want), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	assert_string_equal(heard("hw.threads"), want);
	assert_true(env_slurp(env, "proc/sys/kernel/osrelease", text, sizeof(text)) > 0);
	text[strcspn(text, "\n")] = 0;
	assert_string_equal(heard("hw.kernel"), text);
	assert_non_null(heard("hw.memory_bytes"));
	assert_non_null(heard("hw.cpu_model"));
	env_free(env);
}

/* What was read here plays back as the same machine: a capture has all that is needed. */
static void test_a_capture_is_the_same_machine(void **state)
{
	static struct said live;
	char path[] = "/tmp/tacho-test-hardware-XXXXXX";
	int fd = mkstemp(path);
	struct env *env;
	unsigned line;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	env = env_capture(env_live(NULL), path);
	assert_non_null(env);
	describe(env);
	environment_describe(env, hear, &said);
	environment_describe(env, hear, &(struct said){0}); /* asked twice */
	live = said;
	env_free(env);
	assert_int_equal(env_film(path, &env, &line), 0);
	unlink(path);
	describe(env);
	environment_describe(env, hear, &said);
	assert_int_equal(said.nr, live.nr);
	for (unsigned i = 0; i < said.nr; i++) {
		assert_string_equal(said.key[i], live.key[i]);
		assert_string_equal(said.value[i], live.value[i]);
	}
	env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_fact_of_the_machines),
		cmocka_unit_test(test_every_row_is_said_somewhere),
		cmocka_unit_test(test_what_is_not_there_is_not_said),
		cmocka_unit_test(test_few_files_of_a_large_machine),
		cmocka_unit_test(test_files_that_end_anywhere),
		cmocka_unit_test(test_files_of_garbage),
		cmocka_unit_test(test_every_call_fails_once),
		cmocka_unit_test(test_strings_of_firmware),
		cmocka_unit_test(test_names_of_distributions),
		cmocka_unit_test(test_hypervisors),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_cores_of_two_kinds),
		cmocka_unit_test(test_topology_that_lies),
		cmocka_unit_test(test_more_devices_than_are_told),
		cmocka_unit_test(test_gpus_without_a_list_of_devices),
		cmocka_unit_test(test_micro_architectures),
		cmocka_unit_test(test_lists_of_cpus),
		cmocka_unit_test(test_variables_that_name_the_job),
		cmocka_unit_test(test_no_variable_may_hold_a_secret),
		cmocka_unit_test(test_secrets_in_the_environment),
		cmocka_unit_test(test_only_one_word_of_the_command_line),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_a_capture_is_the_same_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
