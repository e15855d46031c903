/* Events by name, against encodings worked out by hand from the formats of real kernels. */
#include "film_text.h"
#include "perf/event.h"
#include "perf_lab.h"

#include <limits.h>

#define PMU "sys/bus/event_source/devices/"
#define ENTRY(path, text) "file " PMU path "\n|" text "\n"

/* clang-format off */
/* A processor with two kinds of cores. */
static const char hybrid[] =
	ENTRY("cpu_core/type", "4")
	ENTRY("cpu_core/cpus", "0-15")
	ENTRY("cpu_core/format/event", "config:0-7")
	ENTRY("cpu_core/format/umask", "config:8-15")
	ENTRY("cpu_core/events/mem-loads", "event=0xcd,umask=0x1")
	ENTRY("cpu_core/events/topdown-heavy", "event=0x00,umask=0x84")
	ENTRY("cpu_atom/type", "10")
	ENTRY("cpu_atom/cpus", "16-23")
	ENTRY("cpu_atom/format/event", "config:0-7")
	ENTRY("cpu_atom/format/umask", "config:8-15")
	ENTRY("cpu_atom/events/mem-loads", "event=0xd0,umask=0x5")
	ENTRY("software/type", "1");

/* Zen 4: more bits for codes of the data fabric, a PMU for each memory controller. */
static const char zen4[] =
	ENTRY("cpu/type", "4")
	ENTRY("cpu/format/event", "config:0-7,32-35")
	ENTRY("cpu/format/umask", "config:8-15")
	ENTRY("amd_df/type", "13")
	ENTRY("amd_df/cpumask", "0,96")
	ENTRY("amd_df/format/event", "config:0-7,32-37")
	ENTRY("amd_df/format/umask", "config:8-15,24-27")
	ENTRY("amd_umc_0/type", "15")
	ENTRY("amd_umc_0/cpumask", "0")
	ENTRY("amd_umc_0/format/event", "config:0-7")
	ENTRY("amd_umc_0/format/rdwrmask", "config:8-9")
	ENTRY("amd_umc_2/type", "16")
	ENTRY("amd_umc_2/cpumask", "0")
	ENTRY("amd_umc_2/format/event", "config:0-7")
	ENTRY("amd_umc_2/format/rdwrmask", "config:8-9")
	ENTRY("amd_umc_10/type", "25")
	ENTRY("amd_umc_10/cpumask", "96")
	ENTRY("amd_umc_10/format/event", "config:0-7")
	ENTRY("amd_umc_10/format/rdwrmask", "config:8-9");

/* Formats and events that are wrong or odd. */
static const char odd[] =
	ENTRY("cpu/type", "4")
	ENTRY("cpu/format/none", "")
	ENTRY("cpu/format/where", "config9:0-7")
	ENTRY("cpu/format/far", "config:60-64")
	ENTRY("cpu/format/back", "config:7-0")
	ENTRY("cpu/format/word", "config:a-b")
	ENTRY("cpu/format/empty", "config:")
	ENTRY("cpu/format/event", "config:0-7")
	ENTRY("cpu/format/all", "config2:0-63")
	ENTRY("cpu/format/chip", "config1:0-15")
	ENTRY("cpu/format/r9", "config1:63")
	ENTRY("cpu/events/vague", "event=0x3,chip=?")
	ENTRY("cpu/events/wrong", "event=0x3,colour=2")
	ENTRY("cpu/events/loud", "event=0x5")
	ENTRY("cpu/events/loud.scale", "-3")
	ENTRY("cpu/events/loud.unit", "a unit of a rather long name")
	ENTRY("cpu/events/big", "event=0x100")
	ENTRY("cpu/events/flag", "r9,event=1")
	ENTRY("ddr7/type", "40")
	ENTRY("ddr7/format/event", "config:0-7")
	ENTRY("badtype/type", "-3")
	ENTRY("badtype/format/event", "config:0-7")
	ENTRY("notype/format/event", "config:0-7");
/* clang-format on */

struct expected {
	const char *text, *name, *pmu;
	uint32_t type;
	uint64_t config, config1, config2;
	int boxes;
	bool of_package;
};

static void check_all(struct env *env, const struct expected *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct perf_event e[8] = {0};
		char err[400] = "x";
		int r = perf_event_boxes(env, want[i].text, strlen(want[i].text), e, 8, err, sizeof(err));

		if (r != want[i].boxes)
			fail_msg("%s: %d boxes for %d: %s", want[i].text, r, want[i].boxes, err);
		assert_string_equal(err, "");
		assert_string_equal(e[0].name, want[i].name);
		assert_string_equal(e[0].pmu, want[i].pmu);
		if (e[0].type != want[i].type || e[0].config != want[i].config ||
			e[0].config1 != want[i].config1 || e[0].config2 != want[i].config2)
			fail_msg("%s: type %u config %llx:%llx:%llx", want[i].text, e[0].type,
				(unsigned long long)e[0].config, (unsigned long long)e[0].config1,
				(unsigned long long)e[0].config2);
		assert_int_equal(e[0].of_package, want[i].of_package);
	}
	env_free(env);
}

#define CHECK(env, want) check_all(env, want, ARRAY_SIZE(want))

/* clang-format off */
static const struct expected on_any[] = {
	{"cycles", "cycles", "cpu", 0, 0, 0, 0, 1, false},
	{"cpu-cycles", "cycles", "cpu", 0, 0, 0, 0, 1, false},
	{"CPU_Cycles", "cycles", "cpu", 0, 0, 0, 0, 1, false},
	{"instructions", "instructions", "cpu", 0, 1, 0, 0, 1, false},
	{"cache-references", "cache_references", "cpu", 0, 2, 0, 0, 1, false},
	{"cache_misses", "cache_misses", "cpu", 0, 3, 0, 0, 1, false},
	{"branches", "branches", "cpu", 0, 4, 0, 0, 1, false},
	{"branch-instructions", "branches", "cpu", 0, 4, 0, 0, 1, false},
	{"branch-misses", "branch_misses", "cpu", 0, 5, 0, 0, 1, false},
	{"bus-cycles", "bus_cycles", "cpu", 0, 6, 0, 0, 1, false},
	{"stalled-cycles-frontend", "stalled_cycles_frontend", "cpu", 0, 7, 0, 0, 1, false},
	{"stalled-cycles-backend", "stalled_cycles_backend", "cpu", 0, 8, 0, 0, 1, false},
	{"ref-cycles", "ref_cycles", "cpu", 0, 9, 0, 0, 1, false},
	{"cpu-clock", "cpu_clock", "software", 1, 0, 0, 0, 1, false},
	{"task-clock", "task_clock", "software", 1, 1, 0, 0, 1, false},
	{"faults", "page_faults", "software", 1, 2, 0, 0, 1, false},
	{"cs", "context_switches", "software", 1, 3, 0, 0, 1, false},
	{"cpu-migrations", "migrations", "software", 1, 4, 0, 0, 1, false},
	{"minor-faults", "minor_faults", "software", 1, 5, 0, 0, 1, false},
	{"major-faults", "major_faults", "software", 1, 6, 0, 0, 1, false},
	{"alignment-faults", "alignment_faults", "software", 1, 7, 0, 0, 1, false},
	{"emulation-faults", "emulation_faults", "software", 1, 8, 0, 0, 1, false},
	{"cgroup-switches", "cgroup_switches", "software", 1, 11, 0, 0, 1, false},
	/* cache | operation << 8 | miss << 16 */
	{"L1-dcache-loads", "l1_dcache_loads", "cpu", 3, 0x00000, 0, 0, 1, false},
	{"L1-dcache-load-misses", "l1_dcache_load_misses", "cpu", 3, 0x10000, 0, 0, 1, false},
	{"l1d-store-misses", "l1_dcache_store_misses", "cpu", 3, 0x10100, 0, 0, 1, false},
	{"L1-icache-load-misses", "l1_icache_load_misses", "cpu", 3, 0x10001, 0, 0, 1, false},
	{"LLC-prefetches", "llc_prefetches", "cpu", 3, 0x00202, 0, 0, 1, false},
	{"LLC_store_misses", "llc_store_misses", "cpu", 3, 0x10102, 0, 0, 1, false},
	{"dTLB-load-misses", "dtlb_load_misses", "cpu", 3, 0x10003, 0, 0, 1, false},
	{"iTLB-loads", "itlb_loads", "cpu", 3, 0x00004, 0, 0, 1, false},
	{"branch-load-misses", "branch_load_misses", "cpu", 3, 0x10005, 0, 0, 1, false},
	{"node-stores", "node_stores", "cpu", 3, 0x00106, 0, 0, 1, false},
	{"r1a8", "r1a8", "cpu", 4, 0x1a8, 0, 0, 1, false},
	{"rFFFFFFFFFFFFFFFF", "rffffffffffffffff", "cpu", 4, UINT64_MAX, 0, 0, 1, false},
	{"mine=cycles", "mine", "cpu", 0, 0, 0, 0, 1, false},
	{"My.Own-name=r10", "my_own_name", "cpu", 4, 0x10, 0, 0, 1, false},
};

static const struct expected on_intel[] = {
	{"cpu/event=0xc7,umask=0x01/", "cpu_event_0xc7_umask_0x01", "cpu", 4, 0x1c7, 0, 0, 1, false},
	{"cpu/umask=1,event=199/", "cpu_umask_1_event_199", "cpu", 4, 0x1c7, 0, 0, 1, false},
	{"cpu/event=0xc7,umask=0x01,cmask=2,inv,edge/u", "cpu_event_0xc7_umask_0x01_cmask_2_inv_edge_u", "cpu", 4,
		0x28401c7, 0, 0, 1, false},
	{"cpu/mem-loads/", "cpu_mem_loads", "cpu", 4, 0x1cd, 3, 0, 1, false},
	{"cpu/mem-loads,ldlat=30/", "cpu_mem_loads_ldlat_30", "cpu", 4, 0x1cd, 30, 0, 1, false},
	{"cpu/ldlat=30,mem-loads/", "cpu_ldlat_30_mem_loads", "cpu", 4, 0x1cd, 3, 0, 1, false},
	{"mem-loads", "mem_loads", "cpu", 4, 0x1cd, 3, 0, 1, false},
	{"MEM_STORES:u", "mem_stores_u", "cpu", 4, 0x82d0, 0, 0, 1, false},
	{"cpu/cycles-ct/", "cpu_cycles_ct", "cpu", 4, 0x30000003c, 0, 0, 1, false},
	{"cpu/topdown-total-slots/", "cpu_topdown_total_slots", "cpu", 4, 0x20003c, 0, 0, 1, false},
	{"cpu/event=0xb7,umask=1,offcore_rsp=0x3fbc000001/", "cpu_event_0xb7_umask_1_offcore_rsp_0x3fbc000001", "cpu",
		4, 0x1b7, 0x3fbc000001, 0, 1, false},
	{"cpu/config=0x1c7/", "cpu_config_0x1c7", "cpu", 4, 0x1c7, 0, 0, 1, false},
	{"cpu/config1=5,config2=6,r3c/", "cpu_config1_5_config2_6_r3c", "cpu", 4, 0x3c, 5, 6, 1, false},
	{"cpu/event=0xc7,umask=4,name=fp_128/", "fp_128", "cpu", 4, 0x4c7, 0, 0, 1, false},
	{"mine=cpu/event=0xc7,name=fp_128/k", "mine", "cpu", 4, 0xc7, 0, 0, 1, false},
	{"uncore_imc/cas_count_read/", "uncore_imc_cas_count_read", "uncore_imc_0", 14, 0x304, 0, 0, 3, true},
	{"imc/cas_count_read/", "imc_cas_count_read", "uncore_imc_0", 14, 0x304, 0, 0, 3, true},
	{"uncore_imc_1/cas_count_write/", "uncore_imc_1_cas_count_write", "uncore_imc_1", 15, 0xc04, 0, 0, 1, true},
	{"cas_count_write", "cas_count_write", "uncore_imc_0", 14, 0xc04, 0, 0, 3, true},
	{"cha/event=0x35,umask=0x21,filter_opc0=0x203/", "cha_event_0x35_umask_0x21_filter_opc0_0x203", "uncore_cha_0", 20,
		0x2135, 0x203ull << 41, 0, 2, true},
	{"power/energy-pkg/", "power_energy_pkg", "power", 30, 2, 0, 0, 1, true},
};

static const struct expected on_amd[] = {
	{"cpu/event=0xcb,umask=0x7/", "cpu_event_0xcb_umask_0x7", "cpu", 4, 0x7cb, 0, 0, 1, false},
	/* Twelve bits of code in two places. */
	{"cpu/event=0x1d0/", "cpu_event_0x1d0", "cpu", 4, 0x1000000d0, 0, 0, 1, false},
	{"cpu/event=0xfff,umask=0xff/", "cpu_event_0xfff_umask_0xff", "cpu", 4, 0xf0000ffff, 0, 0, 1, false},
	{"cpu/stalled-cycles-backend/", "cpu_stalled_cycles_backend", "cpu", 4, 0x100000087, 0, 0, 1, false},
	/* Fourteen in three: 0x3f07 is 07, then f, then 3. */
	{"amd_df/event=0x3f07,umask=0x38/", "amd_df_event_0x3f07_umask_0x38", "amd_df", 11, 0x1800000f00003807, 0, 0, 1, true},
	{"amd_df/event=0x7,umask=0x38/", "amd_df_event_0x7_umask_0x38", "amd_df", 11, 0x3807, 0, 0, 1, true},
	{"amd_l3/event=0x04,umask=0xff,slicemask=0xf,threadmask=0xff/",
		"amd_l3_event_0x04_umask_0xff_slicemask_0_612aa5", "amd_l3", 12, 0xff0f00000000ff04, 0, 0, 1, true},
};

static const struct expected on_zen4[] = {
	{"amd_df/event=0x1f,umask=0x7fe/", "amd_df_event_0x1f_umask_0x7fe", "amd_df", 13, 0x700fe1f, 0, 0, 1, true},
	{"amd_df/event=0x3fff,umask=0xfff/", "amd_df_event_0x3fff_umask_0xfff", "amd_df", 13, 0x3f0f00ffff, 0, 0, 1, true},
	{"amd_umc/event=0x0a,rdwrmask=1/", "amd_umc_event_0x0a_rdwrmask_1", "amd_umc_0", 15, 0x10a, 0, 0, 3, true},
	{"amd_umc_2/event=0x0a,rdwrmask=2/", "amd_umc_2_event_0x0a_rdwrmask_2", "amd_umc_2", 16, 0x20a, 0, 0, 1, true},
};

static const struct expected on_arm[] = {
	{"armv8_pmuv3_0/event=0x74/", "armv8_pmuv3_0_event_0x74", "armv8_pmuv3_0", 10, 0x74, 0, 0, 1, false},
	{"armv8_pmuv3/event=0x74/", "armv8_pmuv3_event_0x74", "armv8_pmuv3_0", 10, 0x74, 0, 0, 1, false},
	{"cpu/event=0x8012/", "cpu_event_0x8012", "armv8_pmuv3_0", 10, 0x8012, 0, 0, 1, false},
	{"inst_retired", "inst_retired", "armv8_pmuv3_0", 10, 8, 0, 0, 1, false},
	{"cpu/long,event=0x11/", "cpu_long_event_0x11", "armv8_pmuv3_0", 10, 0x11, 1, 0, 1, false},
	{"cycles", "cycles", "cpu", 0, 0, 0, 0, 1, false},
	{"r74", "r74", "cpu", 4, 0x74, 0, 0, 1, false},
	{"nvidia_scf_pmu/cycles/", "nvidia_scf_pmu_cycles", "nvidia_scf_pmu_0", 12, 0x100000000, 0, 0, 1, true},
};

/* The type of each kind's PMU is in the upper half of config. */
static const struct expected on_hybrid[] = {
	{"cycles", "cycles", "cpu_core", 0, 0x400000000, 0, 0, 2, false},
	{"LLC-load-misses", "llc_load_misses", "cpu_core", 3, 0x400010002, 0, 0, 2, false},
	{"task-clock", "task_clock", "software", 1, 1, 0, 0, 1, false},
	{"r1c0", "r1c0", "cpu_core", 4, 0x1c0, 0, 0, 2, false},
	{"cpu/event=0xc0/", "cpu_event_0xc0", "cpu_core", 4, 0xc0, 0, 0, 2, false},
	{"cpu_atom/event=0xc0/", "cpu_atom_event_0xc0", "cpu_atom", 10, 0xc0, 0, 0, 1, false},
	{"mem-loads", "mem_loads", "cpu_core", 4, 0x1cd, 0, 0, 2, false},
	{"topdown-heavy", "topdown_heavy", "cpu_core", 4, 0x8400, 0, 0, 1, false},
	{"cpu/topdown-heavy/", "cpu_topdown_heavy", "cpu_core", 4, 0x8400, 0, 0, 1, false},
};

static const struct expected on_odd[] = {
	{"cpu/all=0xffffffffffffffff/", "cpu_all_0xffffffffffffffff", "cpu", 4, 0, 0, UINT64_MAX, 1, false},
	{"cpu/vague,chip=7/", "cpu_vague_chip_7", "cpu", 4, 3, 7, 0, 1, false},
	{"cpu/loud/", "cpu_loud", "cpu", 4, 5, 0, 0, 1, false},
	{"cpu/flag/", "cpu_flag", "cpu", 4, 1, 1ull << 63, 0, 1, false},
	{"cpu/r9/", "cpu_r9", "cpu", 4, 0, 1ull << 63, 0, 1, false},
	{"cpu/r8/", "cpu_r8", "cpu", 4, 8, 0, 0, 1, false},
};
/* clang-format on */

static void test_names_that_every_machine_has(void **state)
{
	(void)state;
	CHECK(film_text("file proc/loadavg\n|1\n"), on_any);
	CHECK(film_of("machines", "intel-2s"), on_any);
}

static void test_encodings_of_intel(void **state)
{
	(void)state;
	CHECK(film_of("machines", "intel-2s"), on_intel);
}

static void test_encodings_of_amd(void **state)
{
	(void)state;
	CHECK(film_of("machines", "amd-server"), on_amd);
	CHECK(film_text(zen4), on_zen4);
}

static void test_encodings_of_arm(void **state)
{
	(void)state;
	CHECK(film_of("machines", "arm-server"), on_arm);
}

static void test_odd_formats(void **state)
{
	(void)state;
	CHECK(film_text(odd), on_odd);
}

static void test_hybrid_processors(void **state)
{
	struct env *env = film_text(hybrid);
	struct perf_event e[4];
	char err[200];

	(void)state;
	assert_int_equal(perf_event_boxes(env, "instructions:u", 14, e, 4, err, sizeof(err)), 2);
	assert_string_equal(e[1].name, "instructions_u");
	assert_string_equal(e[1].pmu, "cpu_atom");
	assert_int_equal(e[1].type, PERF_TYPE_HARDWARE);
	assert_true(e[1].config == 0xa00000001);
	assert_true(e[1].exclude_kernel && e[0].exclude_kernel);
	assert_int_equal(perf_event_boxes(env, "mem-loads", 9, e, 4, err, sizeof(err)), 2);
	assert_int_equal(e[1].type, 10);
	assert_int_equal(e[1].config, 0x5d0);
	assert_int_equal(perf_event_boxes(env, "r1c0", 4, e, 4, err, sizeof(err)), 2);
	assert_int_equal(e[1].type, 10);
	/* One alone is that of the larger cores. */
	assert_int_equal(perf_event_parse(env, "cycles", 6, e, err, sizeof(err)), 0);
	assert_true(e[0].config == 0x400000000);
	CHECK(env, on_hybrid);
}

/* Boxes come in the order of their numbers, not of their letters. */
static void test_boxes(void **state)
{
	struct env *env = film_text(zen4);
	struct perf_event e[4];
	char err[200];

	(void)state;
	assert_int_equal(perf_event_boxes(env, "amd_umc/event=0x0a/", 19, e, 4, err, sizeof(err)), 3);
	assert_string_equal(e[0].pmu, "amd_umc_0");
	assert_string_equal(e[1].pmu, "amd_umc_2");
	assert_string_equal(e[2].pmu, "amd_umc_10");
	assert_string_equal(e[2].name, "amd_umc_event_0x0a");
	assert_int_equal(e[2].type, 25);
	/* No more than there is room for. */
	assert_int_equal(perf_event_boxes(env, "amd_umc/event=0x0a/", 19, e, 2, err, sizeof(err)), 2);
	assert_string_equal(e[1].name, "amd_umc_event_0x0a");
	assert_int_equal(perf_event_boxes(env, "cycles", 6, e, 0, err, sizeof(err)), -EINVAL);
	env_free(env);
}

static struct perf_event one(struct env *env, const char *text)
{
	struct perf_event e;
	char err[400];

	if (perf_event_parse(env, text, strlen(text), &e, err, sizeof(err)) < 0)
		fail_msg("%s: %s", text, err);
	return e;
}

static void test_units_and_scales(void **state)
{
	struct env *env = film_of("machines", "intel-2s");
	struct perf_event e = one(env, "uncore_imc/cas_count_read/");

	(void)state;
	assert_true(e.scale == 6.103515625e-5);
	assert_string_equal(e.unit, "MiB");
	e = one(env, "power/energy-ram/");
	assert_true(e.scale == 2.3283064365386962890625e-10);
	assert_string_equal(e.unit, "Joules");
	e = one(env, "topdown-total-slots");
	assert_true(e.scale == 2);
	assert_string_equal(e.unit, "");
	e = one(env, "task-clock");
	assert_true(e.scale == 1);
	assert_string_equal(e.unit, "ns");
	e = one(env, "cpu/event=1/");
	assert_true(e.scale == 1);
	env_free(env);
	env = film_text(odd);
	e = one(env, "loud");
	assert_true(e.scale == 1);
	assert_string_equal(e.unit, "a unit of a rat");
	env_free(env);
}

static void test_modifiers(void **state)
{
	static const struct {
		const char *text, *name;
		bool user, kernel;
	} want[] = {
		{"cycles", "cycles", true, true},
		{"cycles:u", "cycles_u", true, false},
		{"cycles:k", "cycles_k", false, true},
		{"cycles:uk", "cycles", true, true},
		{"cycles:ku", "cycles", true, true},
		{"x=cycles:k", "x", false, true},
		{"r3c:u", "r3c_u", true, false},
		{"mem-loads:u", "mem_loads_u", true, false},
		{"cpu/event=1/u", "cpu_event_1_u", true, false},
		{"cpu/event=1/:k", "cpu_event_1_k", false, true},
		{"cpu/event=1/", "cpu_event_1", true, true},
	};
	struct env *env = film_of("machines", "intel-2s");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct perf_event e = one(env, want[i].text);
		struct perf_event_attr attr;

		assert_string_equal(e.name, want[i].name);
		perf_event_fill(&e, &attr);
		assert_int_equal(attr.exclude_user, !want[i].user);
		assert_int_equal(attr.exclude_kernel, !want[i].kernel);
		assert_int_equal(attr.exclude_hv, !want[i].user || !want[i].kernel);
		assert_int_equal(attr.inherit, 0);
		assert_int_equal(attr.disabled, 0);
		assert_int_equal(attr.size, sizeof(attr));
	}
	env_free(env);
}

static void test_attr(void **state)
{
	struct env *env = film_of("machines", "intel-2s");
	struct perf_event e = one(env, "cpu/event=0xb7,umask=1,offcore_rsp=0x10003,config2=9/");
	struct perf_event_attr attr,
		want = {.type = 4, .size = sizeof(want), .config = 0x1b7, .config1 = 0x10003, .config2 = 9};

	(void)state;
	memset(&attr, 0xff, sizeof(attr));
	perf_event_fill(&e, &attr);
	assert_memory_equal(&attr, &want, sizeof(attr));
	env_free(env);
}

/* Switches and tracepoints are of the kernel: of them user mode alone sees nothing. */
static void test_what_happens_in_the_kernel(void **state)
{
	struct env *env = film_text("file sys/kernel/tracing/events/sched/sched_switch/id\n|316\n"
				    "file sys/kernel/tracing/events/enable\n|0\n");
	struct perf_event e = one(env, "sched:sched_switch");

	(void)state;
	assert_string_equal(e.name, "sched_sched_switch");
	assert_string_equal(e.pmu, "tracepoint");
	assert_int_equal(e.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(e.config, 316);
	assert_true(e.in_kernel);
	assert_true(one(env, "cs").in_kernel);
	assert_true(one(env, "migrations").in_kernel);
	assert_false(one(env, "page-faults").in_kernel);
	assert_false(one(env, "task-clock").in_kernel);
	assert_false(one(env, "cycles").in_kernel);
	assert_string_equal(one(env, "sched:sched_switch:k").name, "sched_sched_switch_k");
	env_free(env);
	env = film_text("file sys/kernel/debug/tracing/events/sched/sched_switch/id\n|317\n");
	assert_int_equal(one(env, "sched:sched_switch").config, 317);
	env_free(env);
}

/* Two long names do not become one. */
static void test_long_names(void **state)
{
	static const char *const text[] = {"cpu/event=0x00000000000000000001,umask=0x000000000000001/",
		"cpu/event=0x00000000000000000001,umask=0x000000000000002/"};
	struct env *env = film_of("machines", "intel-2s");
	struct perf_event a = one(env, text[0]), b = one(env, text[1]);

	(void)state;
	assert_true(strlen(a.name) == sizeof(a.name) - 1);
	assert_string_not_equal(a.name, b.name);
	assert_memory_equal(a.name, b.name, 30);
	assert_string_equal(one(env, text[0]).name, a.name);
	env_free(env);
}

struct refused {
	const char *text, *why;
};

static void check_refused_as(int error, struct env *env, const struct refused *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct perf_event e;
		char err[400] = "";
		int r = perf_event_parse(env, want[i].text, strlen(want[i].text), &e, err, sizeof(err));

		if (r != error || !strstr(err, want[i].why))
			fail_msg("'%s': %d, %s", want[i].text, r, err);
		assert_int_equal(
			perf_event_parse(env, want[i].text, strlen(want[i].text), &e, NULL, 0), error);
	}
	env_free(env);
}

static void check_refused(struct env *env, const struct refused *want, size_t nr)
{
	check_refused_as(-EINVAL, env, want, nr);
}

static void test_refusals_say_what_was_meant(void **state)
{
	static const struct refused on_any_machine[] = {
		{"", "printable"},
		{" ", "printable"},
		{"cycles\n", "printable"},
		{"cyc\xc3\xa4s", "printable"},
		{"cyles", "did you mean 'cycles'? `tacho metrics --events`"},
		{"cache-mises", "did you mean 'cache-misses'?"},
		{"task_clok", "'task-clock'"},
		{"mem-load", "did you mean 'mem-loads'?"},
		{"no.such.thing.at.all", "`tacho metrics --events` lists what there is"},
		{"no.such.thing.at.all", "libpfm4"},
		{"cycles:p", "there are :u and :k"},
		{"cycles:", "there are :u and :k"},
		{"cpu/event=1/p", "there are u and k"},
		{"cpu/event=1", "no second slash"},
		{"cpu//", "no terms"},
		{"/", "no second slash"},
		{"//", "no terms"},
		{"/event=1/", "no PMU ''"},
		{"gpu/event=1/",
			"no PMU 'gpu' (it has: cpu, power, software, tracepoint, uncore_cha, uncore_imc)"},
		{"../cpu/event=1/", "no PMU '..'"},
		{"cpu/../", "no event or term '..'"},
		{"cpu/evnt=1/", "no event or term 'evnt' (its terms: any, cmask, edge, event"},
		{"cpu/event=0x100/", "does not fit into its bits (config:0-7)"},
		{"cpu/edge=2/", "does not fit"},
		{"cpu/event=/", "is no number"},
		{"cpu/event=0x/", "is no number"},
		{"cpu/event=-1/", "is no number"},
		{"cpu/event=1x/", "is no number"},
		{"cpu/event=0x1ffffffffffffffff/", "is no number"},
		{"cpu/config=18446744073709551616/", "is no number"},
		{"cpu/,/", "no event or term ''"},
		{"r", "no event"},
		{"r123456789abcdef01", "no event"},
		{"rxyz", "no event"},
		{"=cycles", "no event"},
		{"a=", "no event"},
		{"uncore_imc/cas_count_read/u", "whole packages"},
		{"uncore_imc_7/cas_count_read/", "no PMU"},
		{"SCHED:SWITCH", "no event"},
	};
	static const struct refused lacking[] = {
		{"sched:sched_switch", "mount -t tracefs nodev /sys/kernel/tracing"},
		{"cpu/event=0xc7,umask=1/", "give the virtual machine a virtual PMU"},
		{"cpu/any-name/u", "give the virtual machine a virtual PMU"},
	};
	static const struct refused on_odd_machine[] = {
		{"cpu/none=1/", "no event or term 'none'"},
		{"cpu/where=1/", "not understood (config9:0-7)"},
		{"cpu/far=1/", "not understood"},
		{"cpu/back=1/", "not understood"},
		{"cpu/word=1/", "not understood"},
		{"cpu/empty=1/", "not understood"},
		{"vague", "needs the term 'chip='"},
		{"cpu/wrong/", "no event or term 'colour'"},
		{"cpu/big/", "does not fit"},
		{"dd/event=1/", "no PMU"}, /* ddr7 is no box of it */
		{"badtype/event=1/", "no PMU"},
		{"notype/event=1/", "no PMU"},
	};
	static const struct refused on_closed_tracing[] = {
		{"sched:sched_switch", "is for root"},
	};
	static const struct refused on_tracing[] = {
		{"sched:no_such_thing", "no event"},
		{"sched:secret", "by root only"},
		{"sched:text", "no event"},
		{"../sched:sched_switch", "no second slash"},
	};

	(void)state;
	check_refused(film_of("machines", "intel-2s"), on_any_machine, ARRAY_SIZE(on_any_machine));
	check_refused(film_text(odd), on_odd_machine, ARRAY_SIZE(on_odd_machine));
	check_refused_as(-ENODEV, film_text("file sys/bus/event_source/devices/msr/type\n|9\n"), lacking,
		ARRAY_SIZE(lacking));
	check_refused_as(-ENODEV, film_text("error sys/kernel/tracing/events open EACCES\n"),
		on_closed_tracing, ARRAY_SIZE(on_closed_tracing));
	check_refused(film_text("file sys/kernel/tracing/events/sched/secret/id\n|7\n"
				"error sys/kernel/tracing/events/sched/secret/id open EACCES\n"
				"file sys/kernel/tracing/events/sched/text/id\n|none\n"),
		on_tracing, ARRAY_SIZE(on_tracing));
}

static void test_too_long(void **state)
{
	struct env *env = film_of("machines", "intel-2s");
	struct perf_event e;
	char text[1000], err[20] = "";

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(perf_event_parse(env, text, 256, &e, err, sizeof(err)), -EINVAL);
	assert_int_equal(strlen(err), sizeof(err) - 1);
	assert_int_equal(perf_event_parse(env, text, 255, &e, err, sizeof(err)), -EINVAL);
	memcpy(text, "cpu/event=", 10);
	memset(text + 10, '0', 100);
	memcpy(text + 110, "7/", 2);
	assert_int_equal(perf_event_parse(env, text, 112, &e, err, sizeof(err)), 0);
	assert_int_equal(e.config, 7);
	env_free(env);
}

/* ---- lists ---- */

struct pieces {
	char text[400];
	int stop_at, nr;
};

static int add_piece(void *arg, const char *text, size_t len)
{
	struct pieces *p = arg;
	size_t at = strlen(p->text);

	snprintf(p->text + at, sizeof(p->text) - at, "[%.*s]", (int)len, text);
	return ++p->nr == p->stop_at ? -ECANCELED : 0;
}

static void test_split(void **state)
{
	static const struct {
		const char *text, *pieces;
	} want[] = {
		{"", ""},
		{",", ""},
		{"cycles", "[cycles]"},
		{"cycles,cpu/event=1,umask=2/u,r01", "[cycles][cpu/event=1,umask=2/u][r01]"},
		{",a,,b,", "[a][b]"},
		{"cpu/a,b", "[cpu/a,b]"},
		{"x=cpu/a=1,b/,y=p/c,d/k", "[x=cpu/a=1,b/][y=p/c,d/k]"},
	};
	struct pieces p = {.stop_at = 2};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct pieces all = {0};

		assert_int_equal(perf_events_split(want[i].text, add_piece, &all), 0);
		assert_string_equal(all.text, want[i].pieces);
	}
	assert_int_equal(perf_events_split("a,b,c", add_piece, &p), -ECANCELED);
	assert_string_equal(p.text, "[a][b]");
}

/* ---- what there is ---- */

struct offers {
	char text[40000];
	size_t len;
	unsigned nr;
};

static int add_offer(void *arg, const struct perf_offer *o)
{
	struct offers *all = arg;

	all->nr++;
	all->len += (size_t)snprintf(all->text + all->len, sizeof(all->text) - all->len, "%s|%s|%s|%d|%d\n",
		o->name, o->kind, o->about, o->of_package, o->error);
	assert_true(all->len < sizeof(all->text));
	return 0;
}

static void has_offer(const struct offers *all, const char *line)
{
	if (!strstr(all->text, line))
		fail_msg("no %s in:\n%s", line, all->text);
}

static int stop_offer(void *arg, const struct perf_offer *o)
{
	(void)o;
	return ++*(int *)arg == 30 ? -ECANCELED : 0;
}

static void test_offers(void **state)
{
	struct env *env = machine_and("intel-2s",
		"counter 0 0 0 -1 1 1 1\ncounter 1 * 0 -1 1 1 1\ncounter 4 0x1cd:0x3 0 -1 1 1 1\n"
		"counter 14 0x304 -1 0 1 1 1\ncounter_error 14 0xc04 -1 0 EACCES\n"
		"counter_error *:uk 0x3 0 -1 EACCES\ncounter_error 20 * -1 0 EINVAL\n"
		"file sys/kernel/tracing/events/sched/sched_switch/id\n|316\n"
		"file sys/kernel/tracing/events/sched/enable\n|0\n"
		"file sys/kernel/tracing/events/header_page\n|0\n"
		"counter 2 316 0 -1 0 0 0\n");
	struct offers all = {0};
	int seen = 0;

	(void)state;
	assert_int_equal(perf_offers(env, add_offer, &all), 0);
	has_offer(&all, "cycles|hardware|cycles of the core, at the frequency it has (or cpu-cycles)|0|0\n");
	has_offer(&all, "\ninstructions|hardware|instructions that were completed|0|-2\n");
	has_offer(&all, "\ntask-clock|software|time on a CPU|0|0\n");
	/* Allowed in user mode alone, where it never happens; the file says so of config 3. */
	has_offer(&all, "\ncontext-switches|software|times that a CPU went to another task (or cs)|0|-13\n");
	has_offer(&all, "\nL1-dcache-load-misses|cache|first level of cache, data|0|-2\n");
	has_offer(&all, "\ncpu/mem-loads/|cpu|event=0xcd,umask=0x1,ldlat=3|0|0\n");
	has_offer(&all, "\nuncore_imc/cas_count_read/|uncore_imc|event=0x04,umask=0x03|1|0\n");
	has_offer(&all, "\nuncore_imc/cas_count_write/|uncore_imc|event=0x04,umask=0x0c|1|-13\n");
	has_offer(&all,
		"\nuncore_cha/edge=…,event=…,filter_opc0=…,filter_state=…,inv=…,thresh=…,umask=…/|"
		"uncore_cha|any event of the manual, by its terms|1|0\n");
	has_offer(&all, "\nsched:sched_switch|tracepoint||0|0\n");
	assert_null(strstr(all.text, "cpu/cpu-cycles/")); /* that is `cycles` */
	assert_null(strstr(all.text, "uncore_imc_1"));
	assert_null(strstr(all.text, ".scale"));
	assert_null(strstr(all.text, "header_page"));
	assert_int_equal(perf_offers(env, stop_offer, &seen), -ECANCELED);
	assert_int_equal(seen, 30);
	env_free(env);
}

static void test_offers_of_nothing(void **state)
{
	struct env *env = film_text("file proc/loadavg\n|1\n");
	struct offers all = {0};

	(void)state;
	assert_int_equal(perf_offers(env, add_offer, &all), 0);
	has_offer(&all, "\ntask-clock|software|time on a CPU|0|-2\n");
	/* What could be there if something were done about it is said once. */
	has_offer(&all, "\nSYSTEM:NAME…|tracepoint||0|-2\n");
	has_offer(&all, "\nNAME.OF.THE.MANUAL…|libpfm4||0|-2\n");
	env_free(env);
	env = film_text("error sys/kernel/tracing/events open EACCES\n");
	all = (struct offers){0};
	assert_int_equal(perf_offers(env, add_offer, &all), 0);
	has_offer(&all, "\nSYSTEM:NAME…|tracepoint||0|-13\n");
	env_free(env);
}

/* Everything that is listed can be asked for by that name. */
static int ask_for_it(void *arg, const struct perf_offer *o)
{
	struct perf_event e;
	char err[400];

	if (!strstr(o->name, "…") &&
		perf_event_parse(arg, o->name, strlen(o->name), &e, err, sizeof(err)) < 0)
		fail_msg("%s: %s", o->name, err);
	return 0;
}

static void test_offers_can_be_asked_for(void **state)
{
	static const char *const machine[] = {"intel-2s", "amd-server", "arm-server", "tiny-arm", "broken"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machine); i++) {
		struct env *env = film_of("machines", machine[i]);

		assert_int_equal(perf_offers(env, ask_for_it, env), 0);
		env_free(env);
	}
}

/* ---- what may be counted ---- */

#define PARANOID(n) "file proc/sys/kernel/perf_event_paranoid\n|" n "\n"

static void test_access(void **state)
{
	static const struct {
		const char *film;
		struct perf_access want;
	} c[] = {
		{"file proc/loadavg\n|1\n",
			{INT_MIN, false, false, false, false, "no perf_event_open", NULL}},
		{PARANOID("-1") "counter * * * * 1 1 1\n", {-1, true, true, true, true, NULL, NULL}},
		{PARANOID("2") "counter * * * * 1 1 1\ncounter_error *:uk * * * EACCES\n",
			{2, true, false, false, true, NULL, NULL}},
		{PARANOID("1") "counter * * * * 1 1 1\ncounter_error 1:uk 0 -1 0 EACCES\n",
			{1, true, true, false, true, NULL, NULL}},
		{PARANOID("2") "counter 1 * * * 1 1 1\n",
			{2, true, true, true, false, "no hardware counters", "virtual PMU"}},
		{PARANOID("4") "counter_error * * * * EACCES\n",
			{4, false, false, false, false, "perf_event_paranoid is above 2",
				"sudo sysctl kernel.perf_event_paranoid=2"}},
		{PARANOID("4") "counter_error * * * * EACCES\n" ENTRY("cpu/type", "4"),
			{4, false, false, false, true, "perf_event_paranoid is above 2",
				"sudo sysctl kernel.perf_event_paranoid=2"}},
		{PARANOID("1") "counter_error * * * * EPERM\n",
			{1, false, false, false, false, "container", "--cap-add PERFMON"}},
		{PARANOID("1") "counter_error * * * * ENOSYS\n",
			{1, false, false, false, false, "no perf_event_open", NULL}},
		{PARANOID("1") "counter_error * * * * EMFILE\n",
			{1, false, false, false, false, "too many files", "ulimit"}},
		{PARANOID("1") "counter_error * * * * EINVAL\n",
			{1, false, false, false, false, "no counter of our own process", NULL}},
		{PARANOID("0") "counter * * * * 1 1 1\ncounter_error 1:uk 0 -1 0 ENODEV\n",
			{0, true, true, true, true, NULL, NULL}},
		{PARANOID("0") "counter * * * * 1 1 1\ncounter_error 0 * * * EBUSY\n",
			{0, true, true, true, true, NULL, NULL}},
		{PARANOID("text") "counter * * * * 1 1 1\n", {INT_MIN, true, true, true, true, NULL, NULL}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct perf_lab *lab = perf_lab(film_text(c[i].film));
		const struct perf_access *want = &c[i].want;
		struct perf_access got;

		perf_access(&lab->env, &got);
		assert_int_equal(got.paranoid, want->paranoid);
		assert_int_equal(got.tasks, want->tasks);
		assert_int_equal(got.kernel_too, want->kernel_too);
		assert_int_equal(got.packages, want->packages);
		assert_int_equal(got.hardware, want->hardware);
		assert_int_equal(got.reason != NULL, want->reason != NULL);
		assert_int_equal(got.remedy != NULL, want->remedy != NULL);
		if (want->reason && !strstr(got.reason, want->reason))
			fail_msg("%s", got.reason);
		if (want->remedy && !strstr(got.remedy, want->remedy))
			fail_msg("%s", got.remedy);
		assert_int_equal(lab->nr_open, 0);
		env_free(&lab->env);
	}
}

/* ---- on this kernel ---- */

static void test_live_software_events_count(void **state)
{
	static const char *const text[] = {"task-clock:u", "cpu-clock:u", "page-faults:u", "minor-faults:u"};
	struct env *env = env_live(NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		struct perf_event e = one(env, text[i]);
		struct perf_event_attr attr;
		struct env_count before, after;
		char *memory;
		int handle;

		perf_event_fill(&e, &attr);
		handle = env_counter_open(env, &attr, 0, -1);
		if (handle == -EACCES || handle == -EPERM || handle == -ENOSYS) {
			env_free(env);
			printf("the kernel refuses counters of our own process\n");
			skip();
		}
		assert_true(handle >= 0);
		assert_int_equal(env_counter_read(env, handle, &before), 0);
		memory = mmap(NULL, 100 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(memory != MAP_FAILED);
		for (size_t k = 0; k < 100; k++)
			((volatile char *)memory)[k * 65536] = 1;
		munmap(memory, 100 * 65536);
		assert_int_equal(env_counter_read(env, handle, &after), 0);
		if (after.value <= before.value)
			fail_msg("%s: %llu", text[i], (unsigned long long)after.value);
		env_close(env, handle);
	}
	env_free(env);
}

/* An event with masks is listed with each of them, one without by its name. */
static int find_manual(void *arg, const struct perf_offer *o)
{
	int *found = arg;

	if (!strcmp(o->name, "skx::FP_ARITH:SCALAR_DOUBLE") && strstr(o->about, "scalar double"))
		++*found;
	if (!strcmp(o->name, "skx::UNHALTED_CORE_CYCLES") && !strcmp(o->kind, "skx"))
		++*found;
	return 0;
}

/* libpfm4 takes a model from LIBPFM_FORCE_PMU when it is first asked, so this is the last of the tests. */
static void test_names_of_the_manual(void **state)
{
	static const struct expected want[] = {
		{"FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", "fp_arith_inst_retired_scalar_double", "cpu", 4,
			0x1c7, 0, 0, 1, false},
		{"FP_ARITH:512B_PACKED_DOUBLE:u", "fp_arith_512b_packed_double_u", "cpu", 4, 0x40c7, 0, 0, 1,
			false},
		{"l3miss=skx::MEM_LOAD_RETIRED:L3_MISS", "l3miss", "cpu", 4, 0x20d1, 0, 0, 1, false},
	};
	static const struct refused bad[] = {
		{"FP_ARITH:NO_SUCH_MASK", "libpfm4 says of 'FP_ARITH:NO_SUCH_MASK'"},
		{"NO_SUCH_EVENT_OF_ANY_KIND", "lists what there is"},
	};
	struct env *env = env_live(NULL);
	int found = 0;

	(void)state;
	if (!env_library(env, "libpfm.so.4", NULL)) {
		env_free(env);
		printf("libpfm4 is not installed\n");
		skip();
	}
	setenv("LIBPFM_FORCE_PMU", "skx", 1);
	CHECK(env, want);
	check_refused(env_live(NULL), bad, ARRAY_SIZE(bad));
	env = env_live(NULL);
	assert_int_equal(perf_offers(env, find_manual, &found), 0);
	assert_int_equal(found, 2);
	env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_that_every_machine_has),
		cmocka_unit_test(test_encodings_of_intel),
		cmocka_unit_test(test_encodings_of_amd),
		cmocka_unit_test(test_encodings_of_arm),
		cmocka_unit_test(test_odd_formats),
		cmocka_unit_test(test_hybrid_processors),
		cmocka_unit_test(test_boxes),
		cmocka_unit_test(test_units_and_scales),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_attr),
		cmocka_unit_test(test_what_happens_in_the_kernel),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_refusals_say_what_was_meant),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_offers_of_nothing),
		cmocka_unit_test(test_offers_can_be_asked_for),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_live_software_events_count),
		cmocka_unit_test(test_names_of_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
