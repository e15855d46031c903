/* What the machine is: the list of facts, and what the parts that find them share.
 *
 * A fact is one row here; those that are the only line of a file have nothing else. The others are found by
 * hardware_cpu.c (processor, caches), hardware_memory.c (memory, NUMA), hardware_host.c (system, hypervisor,
 * container) and hardware_devices.c (network, GPUs, disks).
 *
 * The job runs beside this, so that it must not cost: one block of cpuinfo is read and not all (a host of 256
 * CPUs would be asked for the frequency of each), sockets are found by hopping over their lists, caches are
 * those of one CPU, and a folder of hundreds of devices is looked into only where a device may be of
 * interest. lscpu(1), lspci(8) and libraries like hwloc know more but open some thousand files on such a
 * host.
 *
 * Every text goes through fact_text(): firmware is known to put newlines, blanks and worse into its strings.
 */
#include "node/facts.h"

#include "base/str.h"
#include "read/value.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#define CPU0 "sys/devices/system/cpu/cpu0/"

/* clang-format off */
const struct fact hardware_fact[] = {
	{"machine",                FACT_TEXT,   "Machine",               NULL},
	{"architecture",           FACT_TEXT,   "Architecture",          NULL},
	{"kernel",                 FACT_TEXT,   "Kernel",                "proc/sys/kernel/osrelease"},
	{"distribution",           FACT_TEXT,   "Distribution",          NULL},
	{"virtualization",         FACT_TEXT,   "Virtualisation",        NULL},
	{"container",              FACT_TEXT,   "Container",             NULL},
	{"boot_time",              FACT_TEXT,   "Booted",                NULL},
	{"clock_source",           FACT_TEXT,   "Clock source",          "sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"clock_synchronized",     FACT_TEXT,   "Clock synchronized",    NULL},
	{"clock_error_us",         FACT_NUMBER, "Clock error, at most (µs)", NULL},
	{"cpu_model",              FACT_TEXT,   "CPU model",             NULL},
	{"cpu_vendor",             FACT_TEXT,   "CPU vendor",            NULL},
	{"cpu_family",             FACT_NUMBER, "CPU family",            NULL},
	{"cpu_model_number",       FACT_NUMBER, "CPU model number",      NULL},
	{"cpu_stepping",           FACT_NUMBER, "CPU stepping",          NULL},
	{"cpu_microcode",          FACT_TEXT,   "CPU microcode",         NULL},
	{"microarchitecture",      FACT_TEXT,   "Micro-architecture",    NULL},
	{"cpu_flags",              FACT_TEXT,   "CPU flags of interest", NULL},
	{"cpu_all_flags",          FACT_TEXT,   "CPU flags",             NULL},
	{"cpu_modes",              FACT_TEXT,   "CPU op-modes",          NULL},
	{"cpu_address_sizes",      FACT_TEXT,   "Address sizes",         NULL},
	{"byte_order",             FACT_TEXT,   "Byte order",            NULL},
	{"cpu_bogomips",           FACT_NUMBER,  "BogoMIPS",              NULL},
	{"cpu_virtualization",     FACT_TEXT,   "CPU virtualisation",    NULL},
	{"cpu_vulnerabilities",    FACT_TEXT,   "CPU vulnerabilities",   NULL},
	{"sockets",                FACT_NUMBER, "Sockets",               NULL},
	{"cores",                  FACT_NUMBER, "Cores",                 NULL},
	{"threads",                FACT_NUMBER, "Threads (CPUs online)", NULL},
	{"threads_per_core",       FACT_NUMBER, "Threads per core",      NULL},
	{"cpus_online",            FACT_TEXT,   "CPUs online",           NULL},
	{"cpus_present",           FACT_TEXT,   "CPUs present",          "sys/devices/system/cpu/present"},
	{"cpus_isolated",          FACT_TEXT,   "CPUs isolated",         "sys/devices/system/cpu/isolated"},
	{"smt",                    FACT_TEXT,   "SMT",                   "sys/devices/system/cpu/smt/control"},
	{"cpu_base_hz",            FACT_NUMBER, "CPU base frequency",    NULL},
	{"cpu_min_hz",             FACT_NUMBER, "CPU minimal frequency", NULL},
	{"cpu_max_hz",             FACT_NUMBER, "CPU maximal frequency", NULL},
	{"cpu_turbo",              FACT_TEXT,   "CPU turbo",             NULL},
	{"cpu_governor",           FACT_TEXT,   "CPU governor",          CPU0 "cpufreq/scaling_governor"},
	{"cpu_frequency_driver",   FACT_TEXT,   "CPU frequency driver",  CPU0 "cpufreq/scaling_driver"},
	{"mitigations",            FACT_TEXT,   "Mitigations ordered",   NULL},
	{"cache_l1d_bytes",        FACT_NUMBER, "L1d cache, each",       NULL},
	{"cache_l1d_count",        FACT_NUMBER, "L1d caches",            NULL},
	{"cache_l1i_bytes",        FACT_NUMBER, "L1i cache, each",       NULL},
	{"cache_l1i_count",        FACT_NUMBER, "L1i caches",            NULL},
	{"cache_l2_bytes",         FACT_NUMBER, "L2 cache, each",        NULL},
	{"cache_l2_count",         FACT_NUMBER, "L2 caches",             NULL},
	{"cache_l3_bytes",         FACT_NUMBER, "L3 cache, each",        NULL},
	{"cache_l3_count",         FACT_NUMBER, "L3 caches",             NULL},
	{"memory_bytes",           FACT_NUMBER, "Memory",                NULL},
	{"swap_bytes",             FACT_NUMBER, "Swap",                  NULL},
	{"huge_page_bytes",        FACT_NUMBER, "Huge page",             NULL},
	{"huge_pages",             FACT_NUMBER, "Huge pages reserved",   NULL},
	{"transparent_huge_pages", FACT_TEXT,   "Transparent huge pages", NULL},
	{"numa_nodes",             FACT_NUMBER, "NUMA nodes",            NULL},
	{"numa_cpus",              FACT_TEXT,   "CPUs of NUMA nodes",    NULL},
	{"numa_memory",            FACT_TEXT,   "Memory of NUMA nodes",  NULL},
	{"numa_balancing",         FACT_NUMBER, "NUMA balancing",        "proc/sys/kernel/numa_balancing"},
	{"network",                FACT_TEXT,   "Network devices",       NULL},
	{"interconnect",           FACT_TEXT,   "Interconnect devices",  NULL},
	{"gpus",                   FACT_NUMBER, "GPUs",                  NULL},
	{"gpu_models",             FACT_TEXT,   "GPU models",            NULL},
	{"disks",                  FACT_TEXT,   "Disks",                 NULL},
};
/* clang-format on */
const size_t nr_hardware_facts = ARRAY_SIZE(hardware_fact);
_Static_assert(ARRAY_SIZE(hardware_fact) <= 64, "facts.given has a bit for each");

/* The first value counts: a machine with wrong data may have two L1d caches. */
static void say(struct facts *f, const char *name, const char *value)
{
	char key[64];
	size_t i = 0;

	while (i < nr_hardware_facts && strcmp(hardware_fact[i].name, name))
		i++;
	if (i == nr_hardware_facts || f->given >> i & 1)
		return;
	f->given |= UINT64_C(1) << i;
	snprintf(key, sizeof(key), "hw.%s", name);
	f->fn(f->arg, key, value);
}

/* A control character or a blank becomes one blank, several one, those at the ends none; what is not UTF-8
 * becomes a question mark. */
void fact_text(struct facts *f, const char *name, const char *text)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	char line[FACT_TEXT_MAX];
	bool blank = false;
	struct buf out;

	buf_init_fixed(&out, line, sizeof(line));
	while (p < end) {
		size_t n = shown_length(p, end);

		if (*p <= ' ' || *p == 0x7f) {
			blank = true;
			p++;
			continue;
		}
		if (blank && out.len)
			buf_addch(&out, ' ');
		blank = false;
		buf_add(&out, n ? (const void *)p : "?", MAX(n, 1));
		p += MAX(n, 1);
	}
	if (out.len)
		say(f, name, line);
}

void fact_number(struct facts *f, const char *name, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", (long long)value);
	say(f, name, digits);
}

static ssize_t read_path(struct facts *f, char *out, size_t size, const char *path)
{
	ssize_t n = env_peek(f->env, path, out, size);

	for (; n > 0 && ((unsigned char)out[n - 1] <= ' '); n--)
		;
	out[MAX(n, 0)] = 0;
	return n;
}

ssize_t fact_read(struct facts *f, char *out, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return read_path(f, out, size, path);
}

bool fact_read_number(struct facts *f, int64_t *ret, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return value_get(f->env, path, ret) == 0;
}

bool text_value(const char *text, const char *key, char mark, char *out, size_t size)
{
	size_t key_len = strlen(key), len;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *p = line + strspn(line, " \t");

		if (strncmp(p, key, key_len))
			continue;
		p += key_len;
		p += strspn(p, " \t");
		if (*p != mark)
			continue;
		p++;
		p += strspn(p, " \t");
		len = MIN(strcspn(p, "\n"), size - 1);
		memcpy(out, p, len);
		while (len && (unsigned char)out[len - 1] <= ' ')
			len--;
		out[len] = 0;
		return true;
	}
	return false;
}

/* Decimal, or hexadecimal after 0x; a unit may follow. */
bool text_number(const char *text, const char *key, char mark, int64_t *ret)
{
	char value[64], *end;
	long long v;

	if (!text_value(text, key, mark, value, sizeof(value)) || *value < '0' || *value > '9')
		return false;
	errno = 0;
	v = strtoll(value, &end, str_starts(value, "0x") ? 16 : 10);
	if (errno || end == value || (*end && *end != ' '))
		return false;
	*ret = v;
	return true;
}

bool text_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		size_t n;

		text += strspn(text, " \t\n");
		n = strcspn(text, " \t\n");
		if (n == len && !memcmp(text, word, len))
			return true;
		text += n;
	}
	return false;
}

struct hardware_listing {
	struct fact_names *names;
	bool (*wanted)(void *arg, const char *name);
	void *arg;
};

static int take_name(void *arg, const char *name)
{
	struct hardware_listing *l = arg;
	struct fact_names *names = l->names;

	if (strlen(name) >= NAME_SIZE || (l->wanted && !l->wanted(l->arg, name)))
		return 0;
	if (names->nr == NAMES_MAX)
		names->more++;
	else
		snprintf(names->name[names->nr++], NAME_SIZE, "%s", name);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(a, b);
}

void names_list(struct facts *f, struct fact_names *ret, const char *path,
	bool (*wanted)(void *arg, const char *name), void *arg)
{
	struct hardware_listing l = {ret, wanted, arg};

	ret->nr = ret->more = 0;
	env_list(f->env, path, take_name, &l);
	qsort(ret->name, ret->nr, NAME_SIZE, compare_names);
}

static void lines_of_files(struct facts *f)
{
	for (size_t i = 0; i < nr_hardware_facts; i++) {
		const struct fact *fact = &hardware_fact[i];
		char text[FACT_TEXT_MAX];
		int64_t value;

		if (!fact->path)
			continue;
		if (fact->type == FACT_TEXT && fact_read(f, text, sizeof(text), "%s", fact->path) > 0)
			fact_text(f, fact->name, text);
		if (fact->type == FACT_NUMBER && fact_read_number(f, &value, "%s", fact->path))
			fact_number(f, fact->name, value);
	}
}

void hardware_describe(struct env *env, describe_fn *fn, void *arg)
{
	struct facts f = {.env = env, .fn = fn, .arg = arg};

	lines_of_files(&f);
	hardware_cpu(&f);
	hardware_memory(&f);
	hardware_host(&f);
	hardware_devices(&f);
}
