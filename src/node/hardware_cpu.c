/* The processor: what it is called, how many there are, and its caches.
 *
 * From the first block of cpuinfo and the topology of CPU 0 and one CPU a socket; the others are taken to be
 * the same. Where they are not (cores of two kinds, CPUs that are off), the number of cores is still right on
 * x86, where cpuinfo tells it, and the numbers of caches, which would have to be counted, are left out. */
#include "node/facts.h"

#include "base/str.h"
#include "node/microarch.h"
#include "read/cpulist.h"

#include <string.h>

#define CPUS "sys/devices/system/cpu"
#define SOCKETS_MAX 32
#define CACHES_MAX 8
#define KHZ_MAX 100000000 /* more is no frequency of a CPU */

/* Those that decide which code runs and what can be measured. */
static const char *const flag_of_interest[] = {
	"sse4_2", "popcnt", "avx", "f16c", "fma", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl",
	"avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "aes",
	"vaes", "sha_ni", "pdpe1gb", "ht", "constant_tsc", "nonstop_tsc", "arch_perfmon", "rdt_a",
	"hypervisor", /* x86 */
	"neon", "asimd", "asimdhp", "asimddp", "atomics", "crc32", "sha2", "sve", "sve2", "sme", "bf16",
	"i8mm",		 /* ARM */
	"altivec", "vx", /* others */
};

/* What the kernels call the same thing on other processors; the first that is there counts. */
static const char *const model_key[] = {"model name", "cpu model", "Processor", "cpu", "uarch", "Hardware"};
static const char *const family_key[] = {"cpu family", "CPU architecture"};
static const char *const number_key[] = {"model", "CPU part"};
static const char *const stepping_key[] = {"stepping", "CPU revision"};

static bool first_number(const char *info, const char *const *key, size_t nr, int64_t *ret)
{
	for (size_t i = 0; i < nr; i++)
		if (text_number(info, key[i], ':', ret))
			return true;
	return false;
}

static bool first_value(const char *info, const char *const *key, size_t nr, char *out, size_t size)
{
	for (size_t i = 0; i < nr; i++)
		if (text_value(info, key[i], ':', out, size) && *out)
			return true;
	return false;
}

/* uname's machine is in no file before Linux 6.1, and a capture has no uname. */
static const char *architecture_of(const struct facts *f, const char *info)
{
	char value[64];
	int64_t version;

	if (text_number(info, "CPU architecture", ':', &version))
		return version >= 8 ? "aarch64" : "arm";
	if (text_value(info, "isa", ':', value, sizeof(value)))
		return str_starts(value, "rv64") ? "riscv64" : "riscv32";
	if (text_value(info, "cpu", ':', value, sizeof(value)) && str_starts(value, "POWER"))
		return "ppc64le";
	if (!f->is_x86)
		return "";
	return text_has_word(f->cpu_flags, "lm") ? "x86_64" : "i686";
}

static void say_architecture(struct facts *f, const char *info)
{
	char arch[64];

	if (fact_read(f, arch, sizeof(arch), "proc/sys/kernel/arch") > 0)
		fact_text(f, "architecture", arch);
	fact_text(f, "architecture", architecture_of(f, info)); /* unless it is known already */
}

static void say_flags(struct facts *f)
{
	char list[FACT_TEXT_MAX];
	struct buf out;

	buf_init_fixed(&out, list, sizeof(list));
	for (size_t i = 0; i < ARRAY_SIZE(flag_of_interest); i++)
		if (text_has_word(f->cpu_flags, flag_of_interest[i]))
			buf_addf(&out, "%s%s", out.len ? ", " : "", flag_of_interest[i]);
	fact_text(f, "cpu_flags", list);
}

static void say_bogomips(struct facts *f, const char *text)
{
	double value;

	if (parse_decimal(text, &value) && value < 1e9)
		fact_number(f, "cpu_bogomips", round_i64(value));
}

/* What lscpu shows besides. */
static void say_modes(struct facts *f, const char *info)
{
	char text[128];

	fact_text(f, "cpu_all_flags", f->cpu_flags);
	if (f->is_x86) {
		fact_text(f, "cpu_modes", text_has_word(f->cpu_flags, "lm") ? "32-bit, 64-bit" : "32-bit");
		if (text_has_word(f->cpu_flags, "vmx"))
			fact_text(f, "cpu_virtualization", "VT-x");
		else if (text_has_word(f->cpu_flags, "svm"))
			fact_text(f, "cpu_virtualization", "AMD-V");
	}
	if (text_value(info, "address sizes", ':', text, sizeof(text)))
		fact_text(f, "cpu_address_sizes", text);
	if (text_value(info, "bogomips", ':', text, sizeof(text)) ||
		text_value(info, "BogoMIPS", ':', text, sizeof(text)))
		say_bogomips(f, text);
	/* In no file before Linux 6.2; what we know by their flags is little-endian. */
	if (fact_read(f, text, sizeof(text), "sys/kernel/cpu_byteorder") > 0)
		fact_text(f, "byte_order", text);
	else if (f->is_x86)
		fact_text(f, "byte_order", "little");
}

/* "spectre_v1: Mitigation: usercopy barriers | …": those that the processor has, as the kernel words them,
 * which is with commas and semicolons; of the others only how many they are. */
static void say_vulnerabilities(struct facts *f)
{
	struct fact_names v = {.nr = 0};
	char list[FACT_TEXT_MAX];
	unsigned none = 0;
	struct buf out;

	buf_init_fixed(&out, list, sizeof(list));
	names_list(f, &v, CPUS "/vulnerabilities", NULL, NULL);
	for (unsigned i = 0; i < v.nr; i++) {
		char state[256];

		if (fact_read(f, state, sizeof(state), CPUS "/vulnerabilities/%s", v.name[i]) <= 0)
			continue;
		state[strcspn(state, "\n")] = 0;
		none += str_starts(state, "Not affected");
		if (!str_starts(state, "Not affected"))
			buf_addf(&out, "%s%s: %s", out.len ? " | " : "", v.name[i], state);
	}
	if (none)
		buf_addf(&out, "%s%u not affecting it", out.len ? " | " : "", none);
	fact_text(f, "cpu_vulnerabilities", list);
}

static void read_identity(const char *info, struct cpu_identified *ret)
{
	int64_t implementer;

	*ret = (struct cpu_identified){.cpu = {ret->vendor, -1, -1, -1}};
	if (!text_value(info, "vendor_id", ':', ret->vendor, sizeof(ret->vendor)) &&
		text_number(info, "CPU implementer", ':', &implementer) && arm_vendor(implementer))
		ret->cpu.vendor = arm_vendor(implementer);
	first_number(info, family_key, ARRAY_SIZE(family_key), &ret->cpu.family);
	first_number(info, number_key, ARRAY_SIZE(number_key), &ret->cpu.model);
	first_number(info, stepping_key, ARRAY_SIZE(stepping_key), &ret->cpu.stepping);
	ret->name = microarch_name(&ret->cpu);
}

int cpu_identify(struct env *env, struct cpu_identified *ret)
{
	char info[8192];
	ssize_t n = env_peek(env, "proc/cpuinfo", info, sizeof(info));

	if (n < 0)
		return (int)n;
	read_identity(info, ret);
	return 0;
}

static void say_known(struct facts *f, const char *name, int64_t number)
{
	if (number >= 0)
		fact_number(f, name, number);
}

static void say_identity(struct facts *f, const char *info)
{
	char model[256] = "", microcode[64];
	struct cpu_identified is;

	read_identity(info, &is);
	fact_text(f, "cpu_vendor", is.cpu.vendor);
	say_known(f, "cpu_family", is.cpu.family);
	say_known(f, "cpu_model_number", is.cpu.model);
	say_known(f, "cpu_stepping", is.cpu.stepping);
	if (text_value(info, "microcode", ':', microcode, sizeof(microcode)))
		fact_text(f, "cpu_microcode", microcode);
	if (is.name)
		fact_text(f, "microarchitecture", is.name);
	/* 64-bit ARM has numbers only. */
	if (!first_value(info, model_key, ARRAY_SIZE(model_key), model, sizeof(model)) && is.name)
		snprintf(model, sizeof(model), "%s %s", is.cpu.vendor, is.name);
	fact_text(f, "cpu_model", model);
}

/* "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz" */
static bool frequency_in_name(const char *info, int64_t *ret_khz)
{
	char model[256], *at, *unit;
	double ghz;

	if (!text_value(info, "model name", ':', model, sizeof(model)) || !(at = strrchr(model, '@')))
		return false;
	at += 1 + strspn(at + 1, " ");
	unit = strstr(at, "GHz");
	if (!unit)
		return false;
	*unit = 0;
	if (!parse_decimal(at, &ghz) || ghz * 1e6 > KHZ_MAX)
		return false;
	*ret_khz = round_i64(ghz * 1e6);
	return true;
}

static void say_khz(struct facts *f, const char *name, int64_t khz)
{
	if (khz > 0 && khz < KHZ_MAX)
		fact_number(f, name, khz * 1000);
}

static void say_frequency(struct facts *f, const char *info)
{
	int64_t khz, turbo;

	if (fact_read_number(f, &khz, CPUS "/cpu0/cpufreq/cpuinfo_max_freq"))
		say_khz(f, "cpu_max_hz", khz);
	if (fact_read_number(f, &khz, CPUS "/cpu0/cpufreq/cpuinfo_min_freq"))
		say_khz(f, "cpu_min_hz", khz);
	if (fact_read_number(f, &khz, CPUS "/cpu0/cpufreq/base_frequency") || frequency_in_name(info, &khz))
		say_khz(f, "cpu_base_hz", khz);
	if (fact_read_number(f, &turbo, CPUS "/intel_pstate/no_turbo"))
		fact_text(f, "cpu_turbo", turbo ? "off" : "on");
	else if (fact_read_number(f, &turbo, CPUS "/cpufreq/boost"))
		fact_text(f, "cpu_turbo", turbo ? "on" : "off");
}

struct hardware_cpu_topology {
	unsigned threads, sockets, cores, threads_per_core;
	unsigned socket_threads; /* of the first */
};

/* The list that a file of the topology holds; kernels before 5.3 know the second name only. */
static bool read_siblings(
	struct facts *f, int cpu, const char *name, const char *old_name, struct cpu_bits *ret)
{
	char list[4096];

	if (fact_read(f, list, sizeof(list), CPUS "/cpu%d/topology/%s", cpu, name) <= 0 &&
		fact_read(f, list, sizeof(list), CPUS "/cpu%d/topology/%s", cpu, old_name) <= 0)
		return false;
	return cpu_bits_add(ret, list) > 0;
}

/* From each CPU that is in no socket seen so far to all of its socket. 0: not known. */
static unsigned count_sockets(struct facts *f, const struct cpu_bits *online, unsigned *ret_first)
{
	struct cpu_bits seen = {0};
	unsigned nr = 0, before = 0;
	int cpu = cpu_bits_next(online, 0);

	while (cpu >= 0 && nr < SOCKETS_MAX) {
		unsigned now;

		if (!read_siblings(f, cpu, "package_cpus_list", "core_siblings_list", &seen))
			return 0;
		now = cpu_bits_count(&seen);
		if (now == before) /* a list without the CPU it is of */
			return 0;
		before = now;
		if (!nr++)
			*ret_first = now;
		do
			cpu = cpu_bits_next(online, cpu + 1);
		while (cpu >= 0 && cpu_bits_next(&seen, cpu) == cpu);
	}
	return cpu < 0 ? nr : 0;
}

static void read_topology(struct facts *f, const char *info, struct hardware_cpu_topology *ret)
{
	struct cpu_bits online = {0}, core = {0};
	int64_t cores, siblings;
	char list[4096];
	int first;

	*ret = (struct hardware_cpu_topology){0};
	if (fact_read(f, list, sizeof(list), CPUS "/online") <= 0)
		return;
	fact_text(f, "cpus_online", list);
	ret->threads = cpu_bits_add(&online, list);
	ret->sockets = count_sockets(f, &online, &ret->socket_threads);
	first = cpu_bits_next(&online, 0);
	if (first >= 0 && read_siblings(f, first, "core_cpus_list", "thread_siblings_list", &core))
		ret->threads_per_core = cpu_bits_count(&core);
	if (text_number(info, "cpu cores", ':', &cores) && text_number(info, "siblings", ':', &siblings) &&
		cores > 0 && cores <= siblings && siblings <= CPU_SET_MAX)
		ret->cores = (unsigned)(ret->threads * cores / siblings);
	else if (ret->threads_per_core)
		ret->cores = ret->threads / ret->threads_per_core;
}

static void say_topology(struct facts *f, const struct hardware_cpu_topology *t)
{
	if (t->threads)
		fact_number(f, "threads", t->threads);
	if (t->sockets)
		fact_number(f, "sockets", t->sockets);
	if (t->cores)
		fact_number(f, "cores", t->cores);
	if (t->threads_per_core)
		fact_number(f, "threads_per_core", t->threads_per_core);
}

/* How many caches there are of which `sharers` CPUs share one; 0 when that is not known. */
static unsigned count_caches(const struct hardware_cpu_topology *t, unsigned sharers)
{
	if (t->sockets && sharers == t->socket_threads)
		return t->sockets;
	if (!sharers || t->cores * t->threads_per_core != t->threads || t->threads % sharers)
		return 0;
	return t->threads / sharers;
}

static void say_cache(struct facts *f, const struct hardware_cpu_topology *t, int index, const char *name)
{
	char size[32], list[4096], fact[32], *unit;
	struct cpu_bits sharing = {0};
	unsigned nr = 0;
	long long n;

	if (fact_read(f, size, sizeof(size), CPUS "/cpu0/cache/index%d/size", index) <= 0)
		return;
	n = strtoll(size, &unit, 10);
	if (n <= 0 || n > INT64_C(1) << 40)
		return;
	n <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
	snprintf(fact, sizeof(fact), "cache_%s_bytes", name);
	fact_number(f, fact, n);
	if (fact_read(f, list, sizeof(list), CPUS "/cpu0/cache/index%d/shared_cpu_list", index) > 0)
		nr = count_caches(t, cpu_bits_add(&sharing, list));
	snprintf(fact, sizeof(fact), "cache_%s_count", name);
	if (nr)
		fact_number(f, fact, nr);
}

static void say_caches(struct facts *f, const struct hardware_cpu_topology *t)
{
	static const char *const name[] = {"", "l1d", "l2", "l3"};

	for (int i = 0; i < CACHES_MAX; i++) {
		char type[32] = "";
		int64_t level;

		if (!fact_read_number(f, &level, CPUS "/cpu0/cache/index%d/level", i))
			return;
		if (level < 1 || level >= (int64_t)ARRAY_SIZE(name))
			continue;
		if (level == 1 && fact_read(f, type, sizeof(type), CPUS "/cpu0/cache/index%d/type", i) <= 0)
			continue;
		say_cache(f, t, i, strcmp(type, "Instruction") ? name[level] : "l1i");
	}
}

void hardware_cpu(struct facts *f)
{
	struct hardware_cpu_topology topology;
	char info[8192];

	fact_read(f, info, sizeof(info), "proc/cpuinfo");
	f->is_x86 = text_value(info, "flags", ':', f->cpu_flags, sizeof(f->cpu_flags));
	if (!f->is_x86)
		text_value(info, "Features", ':', f->cpu_flags, sizeof(f->cpu_flags));
	say_architecture(f, info);
	say_identity(f, info);
	say_flags(f);
	say_modes(f, info);
	say_vulnerabilities(f);
	say_frequency(f, info);
	read_topology(f, info, &topology);
	say_topology(f, &topology);
	say_caches(f, &topology);
}
