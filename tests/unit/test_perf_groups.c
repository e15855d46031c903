/* Event files: that each is understood, what the kernel is asked for on each family's machines, what each
 * formula gives, and what a wrong file is told. The expectations are written by hand from the makers'
 * manuals; an event or a formula without one fails. */
#include "event_machines.h"
#include "perf/groups.h"
#include "base/expr.h"

#include <math.h>

#define SNB "sandybridge sandybridge-x"
#define HSW "haswell haswell-x"
#define BDW "broadwell broadwell-x"
#define SKX "skylake-x cascadelake-x"
#define ICX "icelake-x icelake"
#define SPR "sapphirerapids graniterapids"
#define ZENS "zen1 zen2 zen3 zen4 zen5"
#define ARMS "neoverse-n1 neoverse-v1 neoverse-v2"
#define SERVERS "sandybridge-x haswell-x broadwell-x skylake-x cascadelake-x"

/* clang-format off */
/* Events of processes: what the attr has, with the kernel's names and without. */
static const struct task_row {
	const char *files, *event;
	uint32_t type;
	uint64_t config;
	uint32_t bare_type; /* 0: the same */
	uint64_t bare_config;
} task_row[] = {
	{SNB, "fp_scalar_double", 4, 0x8010},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_scalar_double", 4, 0x01c7},
	{SNB, "fp_128_double", 4, 0x1010},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_128_double", 4, 0x04c7},
	{SNB, "fp_256_double", 4, 0x0211},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_256_double", 4, 0x10c7},
	{SKX " " ICX " " SPR, "fp_512_double", 4, 0x40c7},
	{SNB, "fp_scalar_single", 4, 0x2010},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_scalar_single", 4, 0x02c7},
	{SNB, "fp_128_single", 4, 0x4010},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_128_single", 4, 0x08c7},
	{SNB, "fp_256_single", 4, 0x0111},
	{BDW " skylake " SKX " " ICX " " SPR, "fp_256_single", 4, 0x20c7},
	{SKX " " ICX " " SPR, "fp_512_single", 4, 0x80c7},
	{HSW, "avx_instructions", 4, 0x07c6},
	{SNB " " HSW " " BDW " skylake " SKX " " ICX " " SPR, "l1d_replacement", 4, 0x0151},
	{SNB " " HSW " " BDW " " ICX, "l1d_writeback", 4, 0x10f0},
	{SPR, "l1d_writeback", 4, 0x1023},
	{"skylake " SKX, "l1d_evictions", 4, 0x0451},
	{HSW " " BDW " skylake " SKX " " ICX " " SPR, "l2_requests", 4, 0xff24},
	{"zen1 zen2 zen3 zen4", "l2_requests", 4, 0xf960},
	{"zen5", "l2_requests", 4, 0xf160},
	{HSW " " BDW " skylake " SKX " " ICX " " SPR, "l2_misses", 4, 0x3f24},
	{ZENS, "l2_misses", 4, 0x0964},
	{ZENS, "l2_lookups", 4, 0xff64},
	{SNB " " HSW " " BDW, "l2_lines_in", 4, 0x07f1},
	{"skylake " SKX " " ICX, "l2_lines_in", 4, 0x1ff1},
	{SPR, "l2_lines_in", 4, 0x1f25},
	{SNB " " HSW " " BDW " skylake " SKX " " ICX, "l2_writeback", 4, 0x40f0},
	{SPR, "l2_lines_out", 4, 0x0226},
	{SNB " " HSW " " BDW " skylake " SKX " " ICX " " SPR, "llc_misses", 4, 0x412e},
	{"zen1", "fp_double_ops", 4, 0xf003},
	{"zen1", "fp_single_ops", 4, 0x0f03},
	{"zen2 zen3", "fp_ops", 4, 0x0f03},
	{"zen4", "fp_ops", 4, 0x1f03},
	{"zen5", "fp_scalar_double_ops", 4, 0x8f03},
	{"zen5", "fp_vector_double_ops", 4, 0xaf03},
	{"zen5", "fp_scalar_single_ops", 4, 0x4f03},
	{"zen5", "fp_vector_single_ops", 4, 0x6f03},
	{"zen1 zen2 zen3", "l2_prefetch_l3_hits", 4, 0xff71},
	{"zen4 zen5", "l2_prefetch_l3_hits", 4, 0x1f71},
	{"zen1 zen2 zen3", "l2_prefetch_l3_misses", 4, 0xff72},
	{"zen4 zen5", "l2_prefetch_l3_misses", 4, 0x1f72},
	{"zen2", "dram_demand_fills", 4, 0x4843},
	{"zen2", "dram_prefetch_fills", 4, 0x485a},
	{"zen3 zen4 zen5", "dram_fills", 4, 0x4844},
	{"neoverse-n1", "vfp_instructions", 4, 0x75},
	{"neoverse-n1", "ase_instructions", 4, 0x74},
	{"neoverse-v1 neoverse-v2", "fp_fixed_ops", 4, 0x80c1},
	{"neoverse-v1 neoverse-v2", "fp_scalable_ops", 4, 0x80c0},
	{"neoverse-v1 neoverse-v2", "fp_double_instructions", 4, 0x801c},
	{"neoverse-v1 neoverse-v2", "fp_single_instructions", 4, 0x8018},
	{"neoverse-v1 neoverse-v2", "fp_half_instructions", 4, 0x8014},
	{ARMS, "l1d_refills", 8, 0xe003, 4, 0x03},
	{ARMS, "l1d_writebacks", 8, 0xe015, 4, 0x15},
	{ARMS, "l1i_refills", 8, 0xe001, 4, 0x01},
	{ARMS, "l2d_accesses", 8, 0xe016, 4, 0x16},
	{ARMS, "l2d_refills", 8, 0xe017, 4, 0x17},
	{ARMS, "l2d_writebacks", 8, 0xe018, 4, 0x18},
	{ARMS, "llc_read_misses", 8, 0xe037, 4, 0x37},
};

/* Events of packages: how many counters that is on the machine, the first and the last of them. */
struct seen {
	int nr;
	uint32_t type;
	uint64_t config, last;
};
static const struct package_row {
	const char *files, *event, *role;
	double bytes;
	struct seen named, bare;
} package_row[] = {
	{SERVERS, "dram_read", "read", 64, {2, 14, 0x01e1, 0x01e1}, {2, 14, 0x0304, 0x0304}},
	{SERVERS, "dram_write", "write", 64, {2, 14, 0x02e2, 0x02e2}, {2, 14, 0x0c04, 0x0c04}},
	{"icelake-x", "dram_read", "read", 64, {2, 14, 0x01e1, 0x01e1}, {2, 14, 0x0f04, 0x0f04}},
	{"icelake-x", "dram_write", "write", 64, {2, 14, 0x02e2, 0x02e2}, {2, 14, 0x3004, 0x3004}},
	{"sapphirerapids", "dram_read", "read", 64, {2, 14, 0x01e1, 0x01e1}, {2, 14, 0xcf05, 0xcf05}},
	{"sapphirerapids", "dram_write", "write", 64, {2, 14, 0x02e2, 0x02e2}, {2, 14, 0xf005, 0xf005}},
	{"graniterapids", "dram_read", "read", 64, {2, 14, 0x01e3, 0x01e4}, {2, 14, 0xcf05, 0xcf06}},
	{"graniterapids", "dram_write", "write", 64, {2, 14, 0x01e5, 0x01e6}, {2, 14, 0xf005, 0xf006}},
	{"sandybridge haswell broadwell skylake icelake", "dram_read", "read", 64, {1, 12, 0xe1, 0xe1}, {1, 12, 0x01, 0x01}},
	{"sandybridge haswell broadwell skylake icelake", "dram_write", "write", 64, {1, 12, 0xe2, 0xe2}, {1, 12, 0x02, 0x02}},
	{"zen1 zen2 zen3", "dram", "both", 64, {8, 11, 0x3807, 0x1000038c7}, {8, 11, 0x3807, 0x1000038c7}},
	{"zen4 zen5", "dram_read", "read", 64, {2, 16, 0x010a, 0x010a}, {2, 16, 0x010a, 0x010a}},
	{"zen4 zen5", "dram_write", "write", 64, {2, 16, 0x020a, 0x020a}, {2, 16, 0x020a, 0x020a}},
	{"neoverse-v2", "dram_read", "read", 32, {1, 18, 0xe1, 0xe1}, {1, 18, 0x1a5, 0x1a5}},
	{"neoverse-v2", "dram_write", "write", 1, {1, 18, 0xe2, 0xe2}, {1, 18, 0x1db, 0x1db}},
};

/* Formulas: what the events counted in two seconds, and what that makes, worked out by hand. */
static const struct formula_row {
	const char *files, *formula, *counts, *unit;
	bool per_second;
	double value;
} formula_row[] = {
	{SNB " " BDW " skylake", "flops_dp", "fp_scalar_double=1000 fp_128_double=200 fp_256_double=30", "flop", true, 760},          /* 1000 + 400 + 120 */
	{SKX " " ICX " " SPR, "flops_dp", "fp_scalar_double=1000 fp_128_double=200 fp_256_double=30 fp_512_double=4", "flop", true, 776}, /* + 32 */
	{SNB " " BDW " skylake", "flops_sp", "fp_scalar_single=1000 fp_128_single=200 fp_256_single=30", "flop", true, 1020},         /* 1000 + 800 + 240 */
	{SKX " " ICX " " SPR, "flops_sp", "fp_scalar_single=1000 fp_128_single=200 fp_256_single=30 fp_512_single=4", "flop", true, 1052}, /* + 64 */
	{SNB " " BDW " skylake", "vectorisation_dp", "fp_scalar_double=50 fp_128_double=30 fp_256_double=20", "ratio", false, 0.5},
	{SKX " " ICX " " SPR, "vectorisation_dp", "fp_scalar_double=20 fp_128_double=10 fp_256_double=20 fp_512_double=50", "ratio", false, 0.8},
	{SNB " " BDW " skylake", "vectorisation_sp", "fp_scalar_single=50 fp_128_single=30 fp_256_single=20", "ratio", false, 0.5},
	{SKX " " ICX " " SPR, "vectorisation_sp", "fp_scalar_single=20 fp_128_single=10 fp_256_single=20 fp_512_single=50", "ratio", false, 0.8},
	{SNB " " HSW " " BDW " " ICX " " SPR, "l2_bandwidth", "l1d_replacement=100 l1d_writeback=50", "bytes", true, 4800},
	{"skylake " SKX, "l2_bandwidth", "l1d_replacement=100 l1d_evictions=50", "bytes", true, 4800},
	{"skylake " SKX " " ICX " " SPR, "l2_load_bandwidth", "l1d_replacement=100", "bytes", true, 3200},
	{HSW, "avx_instruction_rate", "avx_instructions=900", "count", true, 450},
	{HSW " " BDW " skylake " SKX " " ICX " " SPR, "l2_miss_ratio", "l2_misses=25 l2_requests=100", "ratio", false, 0.25},
	{SNB " " HSW " " BDW " skylake " SKX " " ICX, "l3_bandwidth", "l2_lines_in=1000 l2_writeback=250", "bytes", true, 40000},
	{SPR, "l3_bandwidth", "l2_lines_in=1000 l2_lines_out=250", "bytes", true, 40000},
	{SNB " " HSW " " BDW " skylake " SKX " " ICX " " SPR, "mem_proxy_bandwidth", "llc_misses=500", "bytes", true, 16000},
	{"zen1", "flops_dp", "fp_double_ops=4000", "flop", true, 2000},
	{"zen1", "flops_sp", "fp_single_ops=6000", "flop", true, 3000},
	{"zen2 zen3 zen4", "flops", "fp_ops=5000", "flop", true, 2500},
	{"zen5", "flops_dp", "fp_scalar_double_ops=100 fp_vector_double_ops=300", "flop", true, 200},
	{"zen5", "flops_sp", "fp_scalar_single_ops=300 fp_vector_single_ops=500", "flop", true, 400},
	{"zen5", "vectorisation_dp", "fp_scalar_double_ops=100 fp_vector_double_ops=300", "ratio", false, 0.75},
	{"zen5", "vectorisation_sp", "fp_scalar_single_ops=300 fp_vector_single_ops=500", "ratio", false, 0.625},
	{ZENS, "l2_load_bandwidth", "l2_requests=100", "bytes", true, 3200},
	{ZENS, "l2_miss_ratio", "l2_misses=10 l2_lookups=40", "ratio", false, 0.25},
	{ZENS, "l3_load_bandwidth", "l2_misses=100 l2_prefetch_l3_hits=20 l2_prefetch_l3_misses=3", "bytes", true, 3936},
	{"zen1", "mem_proxy_bandwidth", "l2_misses=100 l2_prefetch_l3_misses=20", "bytes", true, 3840},
	{"zen2", "mem_proxy_bandwidth", "dram_demand_fills=100 dram_prefetch_fills=20 l2_prefetch_l3_misses=3", "bytes", true, 3936},
	{"zen3 zen4 zen5", "mem_proxy_bandwidth", "dram_fills=100 l2_prefetch_l3_misses=20", "bytes", true, 3840},
	{"neoverse-n1", "fp_vector_instructions", "vfp_instructions=700 ase_instructions=300", "count", true, 500},
	{"neoverse-v1", "flops", "fp_fixed_ops=1000 fp_scalable_ops=200", "flop", true, 700}, /* vectors of 256 bits */
	{"neoverse-v2", "flops", "fp_fixed_ops=1000 fp_scalable_ops=200", "flop", true, 600}, /* of 128 bits */
	{"neoverse-v1 neoverse-v2", "double_share", "fp_double_instructions=60 fp_single_instructions=30 fp_half_instructions=10", "ratio", false, 0.6},
	{"neoverse-v1 neoverse-v2", "single_share", "fp_double_instructions=60 fp_single_instructions=30 fp_half_instructions=10", "ratio", false, 0.3},
	{ARMS, "l2_bandwidth", "l1d_refills=100 l1d_writebacks=50 l1i_refills=10", "bytes", true, 5120},
	{ARMS, "l3_bandwidth", "l2d_refills=100 l2d_writebacks=50", "bytes", true, 4800},
	{ARMS, "l2_miss_ratio", "l2d_refills=30 l2d_accesses=120", "ratio", false, 0.25},
	{ARMS, "mem_proxy_bandwidth", "llc_read_misses=500", "bytes", true, 16000},
};
/* clang-format on */

static bool lists(const char *files, const char *file)
{
	size_t len = strlen(file);

	for (const char *p = files; *p; p += strcspn(p, " "), p += *p == ' ')
		if (!strncmp(p, file, len) && (p[len] == ' ' || !p[len]))
			return true;
	return false;
}

static void parse_embedded(const struct embedded_events *e, struct event_file *ret)
{
	unsigned line = 0;
	char err[300] = "";

	if (event_file_parse(e->text, strlen(e->text), ret, &line, err, sizeof(err)) < 0)
		fail_msg("%s, line %u: %s", e->name, line, err);
}

#define FOR_FILES(f, i)                                                          \
	for (size_t i = 0; embedded_events[i].name; event_file_release(&f), i++) \
		if (parse_embedded(&embedded_events[i], &f), strcmp(embedded_events[i].name, "unknown"))

static void test_every_file_has_the_five_groups(void **state)
{
	static const char *const five[] = {"FLOPS_DP", "FLOPS_SP", "L2", "L3", "MEM"};
	struct event_file f;
	unsigned files = 0;

	(void)state;
	FOR_FILES(f, i)
	{
		assert_int_equal(f.nr_groups, ARRAY_SIZE(five));
		for (size_t k = 0; k < ARRAY_SIZE(five); k++)
			if (!event_group_find(&f, five[k]))
				fail_msg("%s has no %s", embedded_events[i].name, five[k]);
		assert_non_null(event_group_find(&f, "flops_dp"));
		assert_null(event_group_find(&f, "FLOPS"));
		files++;
	}
	assert_int_equal(files, 21);
}

static const struct task_row *task_expectation(const char *file, const char *event)
{
	const struct task_row *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(task_row); i++)
		if (!strcmp(task_row[i].event, event) && lists(task_row[i].files, file)) {
			assert_null(found);
			found = &task_row[i];
		}
	if (!found)
		fail_msg("%s of %s has no expectation", event, file);
	return found;
}

static const struct package_row *package_expectation(const char *file, const char *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(package_row); i++)
		if (!strcmp(package_row[i].event, event) && lists(package_row[i].files, file))
			return &package_row[i];
	fail_msg("%s of %s has no expectation", event, file);
	return NULL;
}

static void check_task(struct env *env, const char *file, const struct group_event *e, bool bare)
{
	const struct task_row *want = task_expectation(file, e->name);
	bool other = bare && want->bare_type;
	struct perf_event is;
	char err[300] = "";
	struct perf_event_attr attr;

	if (group_event_resolve(env, e, &is, 1, err, sizeof(err)) != 1)
		fail_msg("%s of %s: %s", e->name, file, err);
	perf_event_fill(&is, &attr);
	if (attr.type != (other ? want->bare_type : want->type) ||
		attr.config != (other ? want->bare_config : want->config))
		fail_msg("%s of %s: type %u, config 0x%llx", e->name, file, attr.type,
			(unsigned long long)attr.config);
	assert_int_equal(attr.config1, 0);
	assert_int_equal(attr.config2, 0);
	assert_false(is.of_package);
	assert_string_equal(is.name, e->name);
}

static void check_package(struct env *env, const char *file, const struct group_event *e, bool bare)
{
	const struct package_row *row = package_expectation(file, e->name);
	const struct seen *want = bare ? &row->bare : &row->named;
	struct perf_event is[32];
	char err[300] = "";
	int nr = group_event_resolve(env, e, is, ARRAY_SIZE(is), err, sizeof(err));

	if (nr != want->nr)
		fail_msg("%s of %s: %d counters: %s", e->name, file, nr, err);
	if (is[0].type != want->type || is[0].config != want->config || is[nr - 1].config != want->last)
		fail_msg("%s of %s: type %u, config 0x%llx … 0x%llx", e->name, file, is[0].type,
			(unsigned long long)is[0].config, (unsigned long long)is[nr - 1].config);
	assert_string_equal(e->role, row->role);
	assert_true(e->bytes == row->bytes);
	for (int i = 0; i < nr; i++)
		assert_true(is[i].of_package);
}

/* Each family's machine finds its file, and its events are the ones that were written down. */
static void check_machine(const struct event_machine *m, bool bare)
{
	struct env *env = event_machine_film(m, bare, "");
	struct event_file f;
	char err[400] = "", want[80];

	if (event_file_find(env, &f, err, sizeof(err)) < 0)
		fail_msg("%s: %s", m->file, err);
	snprintf(want, sizeof(want), "%s (built in", m->file);
	assert_memory_equal(f.source, want, strlen(want));
	for (unsigned g = 0; g < f.nr_groups; g++)
		for (unsigned i = 0; i < f.group[g].nr_events; i++) {
			const struct group_event *e = &f.group[g].event[i];

			(e->of_package ? check_package : check_task)(env, m->file, e, bare);
		}
	event_file_release(&f);
	env_free(env);
}

static void test_the_kernel_is_asked_for_the_right_events(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(event_machine); i++) {
		check_machine(&event_machine[i], false);
		check_machine(&event_machine[i], true);
	}
	for (size_t i = 0; embedded_events[i].name; i++)
		if (strcmp(embedded_events[i].name, "unknown") && !event_machine_of(embedded_events[i].name))
			fail_msg("%s has no machine", embedded_events[i].name);
}

static bool has_event(const struct event_file *f, const char *name)
{
	for (unsigned g = 0; g < f->nr_groups; g++)
		for (unsigned i = 0; i < f->group[g].nr_events; i++)
			if (!strcmp(f->group[g].event[i].name, name))
				return true;
	return false;
}

static bool has_formula(const struct event_file *f, const char *name)
{
	for (unsigned g = 0; g < f->nr_groups; g++)
		for (unsigned i = 0; i < f->group[g].nr_formulas; i++)
			if (!strcmp(f->group[g].formula[i].name, name))
				return true;
	return false;
}

static void test_no_expectation_is_left_over(void **state)
{
	struct event_file f;

	(void)state;
	FOR_FILES(f, i)
	{
		const char *file = embedded_events[i].name;

		for (size_t k = 0; k < ARRAY_SIZE(task_row); k++)
			if (lists(task_row[k].files, file) && !has_event(&f, task_row[k].event))
				fail_msg("%s has no %s", file, task_row[k].event);
		for (size_t k = 0; k < ARRAY_SIZE(formula_row); k++)
			if (lists(formula_row[k].files, file) && !has_formula(&f, formula_row[k].formula))
				fail_msg("%s has no %s", file, formula_row[k].formula);
	}
}

/* On kernels without amd_umc, and where the controllers are hidden, other events take their place. */
static void test_older_kernels_have_other_events(void **state)
{
	static const struct pmu_text tiger = {"uncore_imc_free_running_0", 20, X86_TERMS,
		"data_read=event=0xff,umask=0x20;data_write=event=0xff,umask=0x30;", "cpumask", "0"};
	static const struct {
		const char *file;
		struct event_machine machine;
		struct seen read, write;
	} old[] = {
		{"zen4", {NULL, "AuthenticAMD", 0x19, 0x11, 1, {&amd_core, &df_zen4}},
			{12, 11, 0x700fe1f, 0x20700fedf}, {12, 11, 0x700ff1f, 0x20700ffdf}},
		{"zen5", {NULL, "AuthenticAMD", 0x1a, 0x02, 1, {&amd_core, &df_zen4}},
			{12, 11, 0xf00fe1f, 0x20f00fedf}, {12, 11, 0xf00ff1f, 0x20f00ffdf}},
		{"icelake-x", {NULL, "GenuineIntel", 6, 0x6a, 6, {&intel_core, &imc_free}},
			{1, 20, 0x20ff, 0x20ff}, {1, 20, 0x21ff, 0x21ff}},
		{"icelake", {NULL, "GenuineIntel", 6, 0x8c, 1, {&intel_core, &tiger}},
			{1, 20, 0x20ff, 0x20ff}, {1, 20, 0x30ff, 0x30ff}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		struct env *env = event_machine_film(&old[i].machine, false, "");
		const struct event_group *g;
		struct event_file f;
		char err[400] = "";

		assert_int_equal(event_file_find(env, &f, err, sizeof(err)), 0);
		g = event_group_find(&f, "MEM");
		for (unsigned k = 0; k < g->nr_events; k++) {
			const struct seen *want =
				strcmp(g->event[k].role, "read") ? &old[i].write : &old[i].read;
			struct perf_event is[32];
			int nr;

			if (!g->event[k].of_package)
				continue;
			nr = group_event_resolve(env, &g->event[k], is, ARRAY_SIZE(is), err, sizeof(err));
			if (nr != want->nr || is[0].type != want->type || is[0].config != want->config ||
				is[nr - 1].config != want->last)
				fail_msg("%s: %s: %d counters, 0x%llx … 0x%llx", old[i].file,
					g->event[k].name, nr, (unsigned long long)is[0].config,
					(unsigned long long)is[MAX(nr, 1) - 1].config);
		}
		event_file_release(&f);
		env_free(env);
	}
}

/* Of "name=100 other=20". */
static double count_of(const char *counts, const char *metric)
{
	const char *name = metric + strlen("perf.");
	size_t len = strlen(name);

	assert_memory_equal(metric, "perf.", strlen("perf."));
	for (const char *p = counts; *p; p += strcspn(p, " "), p += *p == ' ')
		if (!strncmp(p, name, len) && p[len] == '=')
			return strtod(p + len + 1, NULL);
	return NAN;
}

static double evaluate(const struct group_formula *f, const char *counts)
{
	double value[EXPR_NAMES], rate[EXPR_RATES];
	const char *why = NULL;
	struct expr e;
	size_t at = 0;

	if (expr_parse(&e, f->expression, &why, &at) < 0)
		fail_msg("%s: %s at %zu of %s", f->name, why, at, f->expression);
	for (unsigned i = 0; i < e.nr_names; i++)
		value[i] = count_of(counts, e.name[i]);
	expr_arguments(&e, value, rate);
	for (unsigned i = 0; i < e.nr_rates; i++)
		rate[i] /= 2; /* in two seconds */
	return expr_value(&e, value, rate);
}

static void check_formula(const char *file, const struct group_formula *f)
{
	const struct formula_row *want = NULL;
	double is;

	for (size_t i = 0; i < ARRAY_SIZE(formula_row); i++)
		if (!strcmp(formula_row[i].formula, f->name) && lists(formula_row[i].files, file)) {
			assert_null(want);
			want = &formula_row[i];
		}
	if (!want)
		fail_msg("%s of %s has no expectation", f->name, file);
	assert_string_equal(unit_name(f->unit), want->unit);
	assert_int_equal(f->per_second, want->per_second);
	is = evaluate(f, want->counts);
	if (!(fabs(is - want->value) <= 1e-9 * want->value))
		fail_msg("%s of %s is %g, not %g", f->name, file, is, want->value);
	/* What is not known makes nothing known. */
	assert_true(isnan(evaluate(f, "")));
	assert_true(f->help[0] && f->help[strlen(f->help) - 1] == '.');
}

static void test_every_formula_gives_what_was_worked_out(void **state)
{
	struct event_file f;

	(void)state;
	FOR_FILES(f, i)
	for (unsigned g = 0; g < f.nr_groups; g++)
		for (unsigned k = 0; k < f.group[g].nr_formulas; k++)
			check_formula(embedded_events[i].name, &f.group[g].formula[k]);
}

/* What cannot be counted exactly says so. */
static void test_what_is_doubtful_has_a_caution(void **state)
{
	struct event_file f;

	(void)state;
	FOR_FILES(f, i)
	{
		const struct event_group *mem = event_group_find(&f, "MEM"),
					 *dp = event_group_find(&f, "FLOPS_DP");

		assert_string_equal(mem->formula[0].name, "mem_proxy_bandwidth");
		assert_true(mem->formula[0].caution[0]);
		/* Either a number of operations in double precision, or the reason why there is none. */
		assert_int_equal(dp->missing[0] == 0, has_formula(&f, "flops_dp"));
		for (unsigned g = 0; g < f.nr_groups; g++) {
			unsigned pairs = 0;

			for (unsigned k = 0; k < f.group[g].nr_events; k++)
				pairs += strstr(f.group[g].event[k].code, "cpu/event=0x03,") != NULL;
			assert_true(pairs <= 2);
		}
	}
}

static void check_broken(const char *text, unsigned want_line, const char *want)
{
	struct event_file f;
	unsigned line = 0;
	char err[300] = "";

	assert_int_equal(event_file_parse(text, strlen(text), &f, &line, err, sizeof(err)), -EINVAL);
	if (!strstr(err, want) || line != want_line)
		fail_msg("line %u: %s, not line %u: %s", line, err, want_line, want);
	assert_null(f.group);
}

#define HEAD "cpu mine\ngroup G What it tells\n"
#define TEN "aaaaaaaaaa"

static void test_broken_files_are_told_with_their_line(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *why;
	} broken[] = {
		{"", 1, "`cpu NAME…` is missing"},
		{"cpu mine\n", 2, "no group"},
		{"# nothing\ncpu\n", 2, "micro-architecture is missing"},
		{HEAD, 3, "neither events nor `missing`"},
		{"cpu mine\nwords of mine\n", 2, "words: there is no such keyword"},
		{"cpu mine\nevent a = r1\n", 2, "belongs to no group"},
		{"cpu mine\nmissing nothing\n", 2, "belongs to no group"},
		{"cpu mine\nformula f count = 1\n", 2, "belongs to no group"},
		{"cpu mine\ngroup lower It is\n", 2, "capitals"},
		{"cpu mine\ngroup G\n", 2, "what the group tells is missing"},
		{"cpu mine\ngroup " TEN TEN " x\n", 2, "longer than 15"},
		{HEAD "event a = r1\ngroup G Again\n", 4, "stands here twice"},
		{HEAD "event a r1\n", 3, "'=' is missing"},
		{HEAD "event a =\n", 3, "code is missing"},
		{HEAD "event a = r1 r2\n", 3, "no event; write one a line"},
		{HEAD "event a = r1 | r2\n", 3, "no event"},
		{HEAD "event Big = r1\n", 3, "small letters"},
		{HEAD "event 1st = r1\n", 3, "small letters"},
		{HEAD "event enabled = r1\n", 3, "name of another"},
		{HEAD "event a = r1\nevent a = r2\n", 4, "twice"},
		{HEAD "event " TEN TEN TEN TEN TEN " = r1\n", 3, "longer than 47"},
		{HEAD "or r1\n", 3, "below an event"},
		{HEAD "event a = r1\nand r2\n", 4, "below a `package`"},
		{HEAD "formula f count = 1\nor r1\n", 4, "below an event"},
		{HEAD "package a load 64 = r1\n", 3, "load: the role is"},
		{HEAD "package a read many = r1\n", 3, "many is no number of bytes"},
		{HEAD "package a read 0 = r1\n", 3, "no number of bytes"},
		{HEAD "package a read 1.5 = r1\n", 3, "no number of bytes"},
		{HEAD "event a = r1\nformula f pounds = a\n", 4, "pounds is no unit"},
		{HEAD "event a = r1\nformula f count = b\n", 4, "b: no event of this name"},
		{HEAD "event a = r1\nformula f count = aa + 1\n", 4, "aa: no event of this name"},
		{HEAD "formula f count = a\nevent a = r1\n", 3, "stands above"},
		{HEAD "package a read 64 = r1\nformula f count = a\n", 4, "counted for packages"},
		{HEAD "event a = r1\nformula f count = sin(a)\n", 4, "sin() is no function"},
		{HEAD "event a = r1\nformula f count = (a\n", 4, "parentheses"},
		{HEAD "event a = r1\nformula f count = a)(\n", 4, "parentheses"},
		{HEAD "event a = r1\nformula f count = a ^ 2\n", 4, "strange character"},
		{HEAD "event a = r1\nformula f count =\n", 4, "expression is missing"},
		{HEAD "event a = r1\nformula f count = a a\n", 4, "the expression perf.a perf.a"},
		{HEAD "event a = r1\nformula f count = 2 * + / a\n", 4, "the expression 2"},
		{HEAD "event a = r1\nformula f count = a\n", 5, "f has no `help`"},
		{HEAD "event a = r1\nformula a count = a\nhelp A.\n", 6, "formula in G and an event"},
		{HEAD "event a = r1\nformula f count = a\nhelp A.\nformula f count = a\nhelp A.\n", 8,
			"two formulas"},
		{HEAD "event a = r1\ngroup H Other\nevent a = r2\n", 6, "one code in G and another in H"},
		{HEAD "event a = r1\nhelp A.\n", 4, "below a formula"},
		{HEAD "caution A.\n", 3, "below an event or a formula"},
		{HEAD "event a = r1\ncaution\n", 4, "the text is missing"},
		{"cpu mine\nlike another\n", 2, "no built-in file is called another"},
		{"cpu mine\nlike zen1 zen2\n", 2, "takes one name"},
		{HEAD "like zen1\n", 3, "before the first group"},
		{HEAD "event a = r\x01\n", 3, "no text"},
		{HEAD "caution \xff\n", 3, "no text"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		check_broken(broken[i].text, broken[i].line, broken[i].why);
}

static void test_too_much_is_told(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	buf_adds(&b, HEAD);
	for (int i = 0; i <= GROUP_EVENTS_MAX; i++)
		buf_addf(&b, "event e%d = r%d\n", i, i);
	check_broken((char *)b.data, 3 + GROUP_EVENTS_MAX, "more than 16 events");
	buf_reset(&b);
	buf_adds(&b, "cpu mine\n");
	for (int i = 0; i <= GROUPS_OF_FILE_MAX; i++)
		buf_addf(&b, "group G%d Tells\nmissing all\n", i);
	check_broken((char *)b.data, 2 + 2 * GROUPS_OF_FILE_MAX, "more than 16 groups");
	buf_reset(&b);
	buf_adds(&b, HEAD "event a = r1\n");
	for (int i = 0; i <= GROUP_FORMULAS_MAX; i++)
		buf_addf(&b, "formula f%d count = a\n", i);
	check_broken((char *)b.data, 4 + GROUP_FORMULAS_MAX, "more than 8 formulas");
	buf_reset(&b);
	buf_adds(&b, HEAD "event a = r1\n");
	for (int i = 0; i < 150; i++)
		buf_adds(&b, "or r123\n");
	check_broken((char *)b.data, 4 + 72, "too many codes");
	buf_reset(&b);
	buf_adds(&b, HEAD "event a = r1\nformula f count = a");
	for (int i = 0; i < 200; i++)
		buf_adds(&b, " + a");
	check_broken((char *)b.data, 4, "too long");
	buf_release(&b);
}

static void test_a_group_replaces_that_of_what_it_is_like(void **state)
{
	static const char text[] = "cpu mine my-other\n\tlike\tzen2 \r\n"
				   "group L2 Mine\n event a = r1\n or cpu/event=2/\n caution C\n"
				   "formula f flop/s = 2*rate( a ) - or(a, 0)\n help H.\n caution D\n";
	const struct event_group *g;
	struct event_file f;
	unsigned line;
	char err[300];

	(void)state;
	if (event_file_parse(text, strlen(text), &f, &line, err, sizeof(err)) < 0)
		fail_msg("line %u: %s", line, err);
	assert_int_equal(f.nr_groups, 5);
	assert_string_equal(f.serves, "mine my-other");
	g = event_group_find(&f, "l2");
	assert_string_equal(g->help, "Mine");
	assert_int_equal(g->nr_events, 1);
	assert_string_equal(g->event[0].name, "a");
	assert_string_equal(g->event[0].code, "r1 | cpu/event=2/");
	assert_string_equal(g->event[0].caution, "C");
	assert_int_equal(g->nr_formulas, 1);
	assert_string_equal(g->formula[0].expression, "2*rate( perf.a ) - or(perf.a, 0)");
	assert_string_equal(g->formula[0].caution, "D");
	assert_int_equal(g->formula[0].unit, UNIT_FLOP);
	assert_true(g->formula[0].per_second);
	assert_string_equal(event_group_find(&f, "FLOPS_DP")->event[0].name, "fp_ops");
	event_file_release(&f);
}

#define MINE(cpus) "|cpu " cpus "\n|group L2 Mine\n|event a = r1\n"

static const struct event_machine ivybridge = {NULL, "GenuineIntel", 6, 0x3a, 9, {&intel_core}};
static const struct event_machine zen3 = {NULL, "AuthenticAMD", 0x19, 0x01, 1, {&amd_core}};
static const struct event_machine zen6 = {NULL, "AuthenticAMD", 26, 0x50, 0, {&amd_core}};
static const struct event_machine nobody = {NULL, "NoSuchMaker", 77, 5, 1, {NULL}};

/* `r` and which file it is, or what is said. */
static void check_found(const struct event_machine *m, const char *more, int r, const char *want)
{
	struct env *env = event_machine_film(m, false, more);
	char err[400] = "";
	struct event_file f;

	assert_int_equal(event_file_find(env, &f, err, sizeof(err)), r);
	assert_string_equal(r ? err : f.source, want);
	event_file_release(&f);
	env_free(env);
}

static void test_the_users_folder_comes_first(void **state)
{
	(void)state;
	check_found(&zen3, "", 0, "zen3 (built in)");
	check_found(&ivybridge, "", 0, "sandybridge (built in, serves ivybridge)");
	check_found(&zen3, "variable TACHO_EVENTS=\n", 0, "zen3 (built in)");
	check_found(&zen3, "variable TACHO_EVENTS=/etc/mine\ndir etc/mine\n", 0, "zen3 (built in)");
	check_found(&zen3, "variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n" MINE("zen2 zen3"), 0,
		"/etc/mine/b.txt");
	check_found(&zen3, "variable TACHO_EVENTS=mine\nfile proc/self/cwd/mine/b.txt\n" MINE("zen3"), 0,
		"mine/b.txt");
	/* Not for this processor, no event file; the first in order of several. */
	check_found(&zen3,
		"variable TACHO_EVENTS=//etc/mine/\nfile etc/mine/a.txt\n" MINE(
			"zen") "file etc/mine/b.text\n" MINE("zen3") "file etc/mine/z.txt\n" MINE("zen3") "fi"
													  "le"
													  " e"
													  "tc"
													  "/m"
													  "in"
													  "e/"
													  "y."
													  "tx"
													  "t"
													  "\n" MINE(
														  "zen3"),
		0, "//etc/mine//y.txt");
	check_found(&zen6, "variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n" MINE("zen6"), 0,
		"/etc/mine/b.txt");
	check_found(&nobody,
		"variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n" MINE("\tx NoSuchMaker-77-5"), 0,
		"/etc/mine/b.txt");
}

static void test_what_is_wrong_with_the_users_folder_is_told(void **state)
{
	(void)state;
	check_found(&zen3, "variable TACHO_EVENTS=/etc/none\n", -EINVAL,
		"the folder /etc/none that TACHO_EVENTS names cannot be read: No such file or directory");
	check_found(&zen3,
		"variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n|cpu zen3\n|group L2 Mine\n|evnt\n",
		-EINVAL, "/etc/mine/b.txt, line 3: evnt: there is no such keyword");
	check_found(&zen3,
		"variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n|\nerror etc/mine/b.txt open EACCES\n",
		-EINVAL, "/etc/mine/b.txt cannot be read: Permission denied");
	check_found(&zen3, "variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n|cpu zen3\\x00\n", -EINVAL,
		"/etc/mine/b.txt cannot be read: it is no text");
	/* Of another's file nothing is asked. */
	check_found(&zen3, "variable TACHO_EVENTS=/etc/mine\nfile etc/mine/b.txt\n|cpu zen2\n|evnt\n", 0,
		"zen3 (built in)");
}

static void test_an_unknown_processor_is_told_what_is_missing(void **state)
{
	struct env *env = film_text("clock monotonic 100\n");
	struct event_file f;
	char err[400];

	(void)state;
	check_found(&zen6, "", -ENOENT,
		"no event file for AuthenticAMD family 26 model 80 (zen6): generic events only; write "
		"zen6.txt into a "
		"folder and name that in TACHO_EVENTS (see docs/counters.md)");
	check_found(&nobody, "", -ENOENT,
		"no event file for NoSuchMaker family 77 model 5: generic events only; write "
		"NoSuchMaker-77-5.txt into a "
		"folder and name that in TACHO_EVENTS (see docs/counters.md)");
	assert_int_equal(event_file_find(env, &f, err, sizeof(err)), -ENOENT);
	assert_string_equal(
		err, "the processor is not known: proc/cpuinfo cannot be read (No such file or directory)");
	env_free(env);
	assert_int_equal(event_file_unknown(&f), 0);
	assert_int_equal(f.nr_groups, 1);
	assert_non_null(event_group_find(&f, "MEM"));
	event_file_release(&f);
}

static void test_an_event_that_is_not_there_says_so(void **state)
{
	struct env *env = event_machine_film(&zen3, false, "");
	struct group_event e = {.name = "a", .code = "no-such-thing | amd_df/event=1/ + amd_df/event=2/"};
	struct perf_event is[4];
	char err[300] = "";

	(void)state;
	assert_int_equal(group_event_resolve(env, &e, is, 4, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "no-such-thing"));
	e.of_package = true;
	assert_int_equal(group_event_resolve(env, &e, is, 4, err, sizeof(err)), -EINVAL);
	env_free(env);
}

/* The table of docs/counters.md is made of the files: a cell has the formulas, "—" where there are none, and
 * "!" after what has a caution. */
static void add_cell(struct buf *b, const struct event_group *g)
{
	for (unsigned i = 0; i < g->nr_formulas; i++)
		buf_addf(b, "%s`%s`%s", i ? ", " : "", g->formula[i].name,
			g->formula[i].caution[0] ? " !" : "");
	buf_adds(b, g->nr_formulas ? " |" : "— |");
}

static char *manual(void)
{
	char *text = calloc(1, 1 << 17), path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/../docs/counters.md", getenv("TACHO_TESTS"));
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 17) - 1, file) > 0);
	fclose(file);
	return text;
}

static void test_the_table_of_the_manual_is_true(void **state)
{
	static const char head[] = "\n| processor | FLOPS_DP | FLOPS_SP | L2 | L3 | MEM, for the tree "
				   "|\n|---|---|---|---|---|---|\n";
	_cleanup_(freep) char *text = manual();
	const char *table = strstr(text, head);
	struct event_file f;
	struct buf row;

	(void)state;
	assert_non_null(table);
	table += strlen(head);
	buf_init(&row, 1 << 16);
	FOR_FILES(f, i)
	{
		static const char *const order[] = {"FLOPS_DP", "FLOPS_SP", "L2", "L3", "MEM"};
		char *line;

		buf_reset(&row);
		buf_addf(&row, "| %s |", f.serves);
		for (size_t g = 0; g < ARRAY_SIZE(order); g++) {
			buf_addch(&row, ' ');
			add_cell(&row, event_group_find(&f, order[g]));
		}
		buf_addch(&row, '\n');
		line = strstr(table, (char *)row.data);
		if (!line)
			fail_msg("docs/counters.md lacks this line:\n%s", (char *)row.data);
		memset(line, ' ', row.len);
	}
	/* Every line was one of a file's. */
	assert_int_equal(table[strspn(table, " ")], '\n');
	buf_release(&row);
}

static void test_the_example_of_the_manual_is_right(void **state)
{
	_cleanup_(freep) char *text = manual();
	char *from = strstr(text, "```\ncpu zen6\n"), *to = from ? strstr(from + 4, "```") : NULL;
	struct event_file f;
	unsigned line = 0;
	char err[300] = "";

	(void)state;
	assert_non_null(to);
	if (event_file_parse(from + 4, (size_t)(to - from) - 4, &f, &line, err, sizeof(err)) < 0)
		fail_msg("line %u: %s", line, err);
	assert_string_equal(event_group_find(&f, "STALLS")->formula[0].expression,
		"rate(perf.no_retire) / rate(perf.cycles)");
	event_file_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_file_has_the_five_groups),
		cmocka_unit_test(test_the_kernel_is_asked_for_the_right_events),
		cmocka_unit_test(test_no_expectation_is_left_over),
		cmocka_unit_test(test_older_kernels_have_other_events),
		cmocka_unit_test(test_every_formula_gives_what_was_worked_out),
		cmocka_unit_test(test_what_is_doubtful_has_a_caution),
		cmocka_unit_test(test_broken_files_are_told_with_their_line),
		cmocka_unit_test(test_too_much_is_told),
		cmocka_unit_test(test_a_group_replaces_that_of_what_it_is_like),
		cmocka_unit_test(test_the_users_folder_comes_first),
		cmocka_unit_test(test_what_is_wrong_with_the_users_folder_is_told),
		cmocka_unit_test(test_an_unknown_processor_is_told_what_is_missing),
		cmocka_unit_test(test_an_event_that_is_not_there_says_so),
		cmocka_unit_test(test_the_table_of_the_manual_is_true),
		cmocka_unit_test(test_the_example_of_the_manual_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
