/* Machines for event files: the processor and the PMUs that kernels show for it. The names of events that a
 * kernel lists stand for codes that no file has, so that it can be seen which of the two was used. */
#ifndef TESTS_EVENT_MACHINES_H
#define TESTS_EVENT_MACHINES_H

#include "film_text.h"

#define PMU_FOLDER "sys/bus/event_source/devices/"
#define MORE_MAX 6

struct pmu_text {
	const char *name;
	unsigned type;
	const char *format, *events; /* "name=value;…" */
	const char *file, *list;     /* `cpus` or `cpumask` and what is in it */
};

#define TWO_SOCKETS "cpumask", "0,4"
#define X86_TERMS "event=config:0-7;umask=config:8-15;"
#define IMC_NAMES "cas_count_read=event=0xe1,umask=0x01;cas_count_write=event=0xe2,umask=0x02;"

/* clang-format off */
static const struct pmu_text
	intel_core = {"cpu", 4, X86_TERMS "inv=config:23;cmask=config:24-31;", "mem-loads=event=0xcd,umask=0x1;"},
	amd_core = {"cpu", 4, "event=config:0-7,32-35;umask=config:8-15;", ""},
	arm_core = {"armv8_pmuv3_0", 8, "event=config:0-15;",
		"l1d_cache_refill=event=0xe003;l1d_cache_wb=event=0xe015;l1i_cache_refill=event=0xe001;l2d_cache=event=0xe016;"
		"l2d_cache_refill=event=0xe017;l2d_cache_wb=event=0xe018;ll_cache_miss_rd=event=0xe037;", "cpus", "0-7"},
	imc_0 = {"uncore_imc_0", 14, X86_TERMS, IMC_NAMES, TWO_SOCKETS},
	imc_1 = {"uncore_imc_1", 15, X86_TERMS, IMC_NAMES, TWO_SOCKETS},
	imc_gnr = {"uncore_imc_0", 14, X86_TERMS, "cas_count_read_sch0=event=0xe3,umask=0x1;cas_count_read_sch1=event=0xe4,umask=0x1;"
		"cas_count_write_sch0=event=0xe5,umask=0x1;cas_count_write_sch1=event=0xe6,umask=0x1;", TWO_SOCKETS},
	imc_client = {"uncore_imc", 12, "event=config:0-7;", "data_reads=event=0xe1;data_writes=event=0xe2;", "cpumask", "0"},
	/* Not to be taken for a box of uncore_imc. */
	imc_free = {"uncore_imc_free_running_0", 20, X86_TERMS, "read=event=0xff,umask=0x20;write=event=0xff,umask=0x21;", TWO_SOCKETS},
	df = {"amd_df", 11, "event=config:0-7,32-35,59-60;umask=config:8-15;", "", TWO_SOCKETS},
	df_zen4 = {"amd_df", 11, "event=config:0-7,32-37;umask=config:8-15,24-27;", "", TWO_SOCKETS},
	umc_0 = {"amd_umc_0", 16, "event=config:0-7;rdwrmask=config:8-9;", "", "cpumask", "0"},
	umc_1 = {"amd_umc_1", 17, "event=config:0-7;rdwrmask=config:8-9;", "", "cpumask", "4"},
	scf = {"nvidia_scf_pmu_0", 18, "event=config:0-63;", "cmem_rd_data=event=0xe1;cmem_wr_total_bytes=event=0xe2;", "cpumask", "0"};

static const struct event_machine {
	const char *file; /* that serves it */
	const char *vendor;
	int family, model, stepping; /* of ARM: part, revision */
	const struct pmu_text *pmu[MORE_MAX];
} event_machine[] = {
	{"sandybridge",    "GenuineIntel", 6, 0x2a, 7, {&intel_core, &imc_client}},
	{"sandybridge",    "GenuineIntel", 6, 0x3a, 9, {&intel_core, &imc_client}},
	{"sandybridge-x",  "GenuineIntel", 6, 0x2d, 7, {&intel_core, &imc_0, &imc_1}},
	{"sandybridge-x",  "GenuineIntel", 6, 0x3e, 4, {&intel_core, &imc_0, &imc_1}},
	{"haswell",        "GenuineIntel", 6, 0x3c, 3, {&intel_core, &imc_client}},
	{"haswell-x",      "GenuineIntel", 6, 0x3f, 2, {&intel_core, &imc_0, &imc_1}},
	{"broadwell",      "GenuineIntel", 6, 0x3d, 4, {&intel_core, &imc_client}},
	{"broadwell-x",    "GenuineIntel", 6, 0x4f, 1, {&intel_core, &imc_0, &imc_1}},
	{"broadwell-x",    "GenuineIntel", 6, 0x56, 3, {&intel_core, &imc_0, &imc_1}},
	{"skylake",        "GenuineIntel", 6, 0x5e, 3, {&intel_core, &imc_client}},
	{"skylake",        "GenuineIntel", 6, 0x8e, 9, {&intel_core, &imc_client}},
	{"skylake",        "GenuineIntel", 6, 0x9e, 10, {&intel_core, &imc_client}},
	{"skylake",        "GenuineIntel", 6, 0x8e, 12, {&intel_core, &imc_client}},
	{"skylake",        "GenuineIntel", 6, 0xa5, 5, {&intel_core, &imc_client}},
	{"skylake-x",      "GenuineIntel", 6, 0x55, 4, {&intel_core, &imc_0, &imc_1}},
	{"cascadelake-x",  "GenuineIntel", 6, 0x55, 7, {&intel_core, &imc_0, &imc_1}},
	{"cascadelake-x",  "GenuineIntel", 6, 0x55, 11, {&intel_core, &imc_0, &imc_1}},
	{"icelake-x",      "GenuineIntel", 6, 0x6a, 6, {&intel_core, &imc_0, &imc_1, &imc_free}},
	{"icelake-x",      "GenuineIntel", 6, 0x6c, 1, {&intel_core, &imc_0, &imc_1, &imc_free}},
	{"icelake",        "GenuineIntel", 6, 0x7e, 5, {&intel_core, &imc_client}},
	{"icelake",        "GenuineIntel", 6, 0x8c, 1, {&intel_core, &imc_client}},
	{"icelake",        "GenuineIntel", 6, 0xa7, 1, {&intel_core, &imc_client}},
	{"sapphirerapids", "GenuineIntel", 6, 0x8f, 8, {&intel_core, &imc_0, &imc_1}},
	{"sapphirerapids", "GenuineIntel", 6, 0xcf, 2, {&intel_core, &imc_0, &imc_1}},
	{"graniterapids",  "GenuineIntel", 6, 0xad, 1, {&intel_core, &imc_gnr}},
	{"zen1",           "AuthenticAMD", 0x17, 0x01, 2, {&amd_core, &df}},
	{"zen1",           "AuthenticAMD", 0x17, 0x08, 2, {&amd_core, &df}},
	{"zen1",           "HygonGenuine", 0x18, 0x01, 1, {&amd_core, &df}},
	{"zen2",           "AuthenticAMD", 0x17, 0x31, 0, {&amd_core, &df}},
	{"zen3",           "AuthenticAMD", 0x19, 0x01, 1, {&amd_core, &df}},
	{"zen4",           "AuthenticAMD", 0x19, 0x11, 1, {&amd_core, &df_zen4, &umc_0, &umc_1}},
	{"zen5",           "AuthenticAMD", 0x1a, 0x02, 1, {&amd_core, &df_zen4, &umc_0, &umc_1}},
	{"neoverse-n1",    NULL, 8, 0xd0c, 1, {&arm_core}},
	{"neoverse-v1",    NULL, 8, 0xd40, 1, {&arm_core}},
	{"neoverse-v2",    NULL, 8, 0xd4f, 0, {&arm_core, &scf}},
	{"neoverse-v2",    NULL, 8, 0xd49, 0, {&arm_core, &scf}},
};
/* clang-format on */

static inline void write_terms(struct buf *b, const char *pmu, const char *folder, const char *terms)
{
	while (*terms) {
		size_t name = strcspn(terms, "="), all = strcspn(terms, ";");

		buf_addf(b, "file " PMU_FOLDER "%s/%s/%.*s\n|%.*s\n", pmu, folder, (int)name, terms,
			(int)(all - name - 1), terms + name + 1);
		terms += all + 1;
	}
}

/* `bare`: a kernel that lists no events by name. */
static inline void write_pmu(struct buf *b, const struct pmu_text *p, bool bare)
{
	buf_addf(b, "file " PMU_FOLDER "%s/type\n|%u\n", p->name, p->type);
	write_terms(b, p->name, "format", p->format);
	write_terms(b, p->name, "events", bare ? "" : p->events);
	if (p->file)
		buf_addf(b, "file " PMU_FOLDER "%s/%s\n|%s\n", p->name, p->file, p->list);
}

static inline void write_cpu(struct buf *b, const struct event_machine *m)
{
	if (m->vendor)
		buf_addf(b,
			"file proc/cpuinfo\n|processor\t: 0\n|vendor_id\t: %s\n|cpu family\t: "
			"%d\n|model\t\t: %d\n"
			"|model name\t: of a test\n|stepping\t: %d\n",
			m->vendor, m->family, m->model, m->stepping);
	else
		buf_addf(b,
			"file proc/cpuinfo\n|processor\t: 0\n|CPU implementer\t: 0x41\n|CPU architecture: "
			"%d\n"
			"|CPU part\t: 0x%x\n|CPU revision\t: %d\n",
			m->family, m->model, m->stepping);
	for (int cpu = 0; cpu < 8; cpu++)
		buf_addf(b, "file sys/devices/system/cpu/cpu%d/topology/physical_package_id\n|%d\n", cpu,
			cpu / 4);
}

/* Goes on with `more`, lines of a film. */
static inline struct env *event_machine_film(const struct event_machine *m, bool bare, const char *more)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_adds(&b, "clock monotonic 100\n");
	write_cpu(&b, m);
	for (size_t i = 0; i < MORE_MAX && m->pmu[i]; i++)
		write_pmu(&b, m->pmu[i], bare);
	buf_adds(&b, more);
	return film_buf(&b);
}

static inline const struct event_machine *event_machine_of(const char *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(event_machine); i++)
		if (!strcmp(event_machine[i].file, file))
			return &event_machine[i];
	return NULL;
}
#endif
