/* The events that the kernel names for every machine: hardware, software, and the cache events, which combine
 * a cache, an operation and its result. The names are those of the perf tool, which people know; capitals and
 * '-' or '_' make no difference. The first name of a row is the metric's. */
#include "perf/event_internal.h"

#include "base/str.h"

#include <ctype.h>

#define SW_CGROUP_SWITCHES 11 /* since Linux 5.12, and older headers */

/* clang-format off */
#define HW(id) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id
#define SW(id) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id

static const struct named_event fixed_event[] = {
	{"cycles", "cpu-cycles", HW(CPU_CYCLES), false, NULL, "cycles of the core, at the frequency it has"},
	{"instructions", NULL, HW(INSTRUCTIONS), false, NULL, "instructions that were completed"},
	{"cache-references", NULL, HW(CACHE_REFERENCES), false, NULL, "accesses to the last level of cache"},
	{"cache-misses", NULL, HW(CACHE_MISSES), false, NULL, "accesses that the last level of cache did not have"},
	{"branches", "branch-instructions", HW(BRANCH_INSTRUCTIONS), false, NULL, "branches that were completed"},
	{"branch-misses", NULL, HW(BRANCH_MISSES), false, NULL, "branches that were predicted wrong"},
	{"bus-cycles", NULL, HW(BUS_CYCLES), false, NULL, "cycles of the bus"},
	{"stalled-cycles-frontend", "idle-cycles-frontend", HW(STALLED_CYCLES_FRONTEND), false, NULL,
		"cycles in which no instruction came"},
	{"stalled-cycles-backend", "idle-cycles-backend", HW(STALLED_CYCLES_BACKEND), false, NULL,
		"cycles in which none could be completed"},
	{"ref-cycles", NULL, HW(REF_CPU_CYCLES), false, NULL, "cycles at a fixed frequency"},
	{"task-clock", NULL, SW(TASK_CLOCK), false, "ns", "time on a CPU"},
	{"cpu-clock", NULL, SW(CPU_CLOCK), false, "ns", "time on a CPU, by its timer"},
	{"page-faults", "faults", SW(PAGE_FAULTS), false, NULL, "pages that were not mapped when needed"},
	{"minor-faults", NULL, SW(PAGE_FAULTS_MIN), false, NULL, "of these, found in memory"},
	{"major-faults", NULL, SW(PAGE_FAULTS_MAJ), false, NULL, "of these, read from a file or swap"},
	{"context-switches", "cs", SW(CONTEXT_SWITCHES), true, NULL, "times that a CPU went to another task"},
	{"migrations", "cpu-migrations", SW(CPU_MIGRATIONS), true, NULL, "moves from one CPU to another"},
	{"cgroup-switches", NULL, PERF_TYPE_SOFTWARE, SW_CGROUP_SWITCHES, true, NULL, "times that a CPU went to another control group"},
	{"alignment-faults", NULL, SW(ALIGNMENT_FAULTS), false, NULL, "misaligned accesses that the kernel corrected"},
	{"emulation-faults", NULL, SW(EMULATION_FAULTS), false, NULL, "instructions that the kernel emulated"},
};

/* What can be done to each: a TLB of instructions is only read, and nothing is stored into a branch unit. */
enum { LOAD = 1 << PERF_COUNT_HW_CACHE_OP_READ, STORE = 1 << PERF_COUNT_HW_CACHE_OP_WRITE,
	PREFETCH = 1 << PERF_COUNT_HW_CACHE_OP_PREFETCH };

static const struct {
	const char *name, *alias;
	unsigned id, ops;
	const char *about;
} cache[] = {
	{"L1-dcache", "L1d", PERF_COUNT_HW_CACHE_L1D, LOAD | STORE | PREFETCH, "first level of cache, data"},
	{"L1-icache", "L1i", PERF_COUNT_HW_CACHE_L1I, LOAD | PREFETCH, "first level of cache, instructions"},
	{"LLC", "L2", PERF_COUNT_HW_CACHE_LL, LOAD | STORE | PREFETCH, "last level of cache"},
	{"dTLB", "data-tlb", PERF_COUNT_HW_CACHE_DTLB, LOAD | STORE | PREFETCH, "translation of addresses, data"},
	{"iTLB", "instruction-tlb", PERF_COUNT_HW_CACHE_ITLB, LOAD, "translation of addresses, instructions"},
	{"branch", "bpu", PERF_COUNT_HW_CACHE_BPU, LOAD, "prediction of branches"},
	{"node", NULL, PERF_COUNT_HW_CACHE_NODE, LOAD | STORE | PREFETCH, "memory of this NUMA node"},
};

static const struct {
	const char *all, *misses;
	unsigned id;
} cache_op[] = {
	{"loads", "load-misses", PERF_COUNT_HW_CACHE_OP_READ},
	{"stores", "store-misses", PERF_COUNT_HW_CACHE_OP_WRITE},
	{"prefetches", "prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH},
};
/* clang-format on */

#define NAME_MEMORY 48

static char folded(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

bool name_equal(struct text a, const char *b)
{
	if (a.len != strlen(b))
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (folded(a.p[i]) != folded(b[i]))
			return false;
	return true;
}

/* The cache events in the order of the tables, misses after all. */
static bool cache_event_at(size_t i, struct named_event *ret, char memory[static NAME_MEMORY])
{
	for (size_t c = 0; c < ARRAY_SIZE(cache); c++) {
		for (size_t o = 0; o < ARRAY_SIZE(cache_op); o++) {
			if (!(cache[c].ops & 1u << cache_op[o].id))
				continue;
			if (i >= 2) {
				i -= 2;
				continue;
			}
			snprintf(memory, NAME_MEMORY, "%s-%s", cache[c].name,
				i ? cache_op[o].misses : cache_op[o].all);
			*ret = (struct named_event){.name = memory,
				.type = PERF_TYPE_HW_CACHE,
				.config = cache[c].id | (uint64_t)cache_op[o].id << 8 | (uint64_t)i << 16,
				.about = cache[c].about};
			return true;
		}
	}
	return false;
}

bool named_event_at(size_t i, struct named_event *ret, char memory[static NAME_MEMORY])
{
	if (i >= ARRAY_SIZE(fixed_event))
		return cache_event_at(i - ARRAY_SIZE(fixed_event), ret, memory);
	*ret = fixed_event[i];
	return true;
}

/* "l1d-load-misses" is "L1-dcache-load-misses". */
static size_t spell_out(struct text name, char *out, size_t size)
{
	for (size_t c = 0; c < ARRAY_SIZE(cache); c++) {
		size_t n = cache[c].alias ? strlen(cache[c].alias) : name.len;

		if (name.len > n && folded(name.p[n]) == '-' &&
			name_equal((struct text){name.p, n}, cache[c].alias))
			return (size_t)snprintf(
				out, size, "%s%.*s", cache[c].name, (int)(name.len - n), name.p + n);
	}
	return 0;
}

bool named_event_find(struct text name, struct named_event *ret, char memory[static NAME_MEMORY])
{
	char spelt[NAME_MEMORY];
	size_t n = name.len < sizeof(spelt) / 2 ? spell_out(name, spelt, sizeof(spelt)) : 0;

	if (n)
		name = (struct text){spelt, n};
	for (size_t i = 0; named_event_at(i, ret, memory); i++)
		if (name_equal(name, ret->name) || (ret->alias && name_equal(name, ret->alias)))
			return true;
	return false;
}
