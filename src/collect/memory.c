/* Memory of the node (proc/meminfo) and its paging (proc/vmstat). What the keys mean is in the kernel's
 * Documentation/filesystems/proc.rst; which of them exist depends on its version and configuration. */
#include "collect/keyed.h"

#include <string.h>

enum { FROM_KEYS, FROM_ALLOCSTALL };

/* clang-format off */
#define KEY(k) {.key = k}

static const struct metric memory_metric[] = {
	{"mem.total",              "Usable memory: what the firmware and the kernel's image left over.", KEY("MemTotal"), SCALE_KIB, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.free",               "Memory that is not used at all, not even as cache.", KEY("MemFree"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.available",          "The kernel's estimate of what new programs can have without swapping.", KEY("MemAvailable"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.memory", TIER_MEDIUM, false},
	{"mem.buffers",            "Cache of raw block devices.", KEY("Buffers"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.cached",             "Page cache and shared memory.", KEY("Cached"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.memory", TIER_MEDIUM, false},
	{"mem.swap_cached",        "Memory that is in RAM and still in swap.", KEY("SwapCached"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.active",             "Memory used recently.", KEY("Active"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.inactive",           "Memory not used recently: the first to be reclaimed.", KEY("Inactive"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.unevictable",        "Memory that cannot be reclaimed.", KEY("Unevictable"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.locked",             "Memory locked by mlock.", KEY("Mlocked"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.anon",               "Anonymous memory of programs: heaps and stacks.", KEY("AnonPages"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.memory", TIER_MEDIUM, false},
	{"mem.mapped",             "Files mapped by programs.", KEY("Mapped"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.shmem",              "Shared memory and tmpfs.", KEY("Shmem"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.memory", TIER_MEDIUM, false},
	{"mem.slab",               "The kernel's own objects.", KEY("Slab"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.slab_reclaimable",   "The part of the kernel's objects that can be freed, as inode caches.", KEY("SReclaimable"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.slab_unreclaimable", "The part of the kernel's objects that cannot be freed.", KEY("SUnreclaim"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.kernel_stack",       "Kernel stacks of all threads.", KEY("KernelStack"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.page_tables",        "Page tables.", KEY("PageTables"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.vmalloc",            "Virtually contiguous memory of the kernel.", KEY("VmallocUsed"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.percpu",             "Per-CPU memory of the kernel.", KEY("Percpu"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.dirty",              "Memory waiting to be written to disk.", KEY("Dirty"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.writeback", TIER_MEDIUM, false},
	{"mem.writeback",          "Memory being written to disk.", KEY("Writeback"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "node.writeback", TIER_MEDIUM, false},
	{"mem.swap_total",         "Swap space.", KEY("SwapTotal"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.swap_free",          "Unused swap space.", KEY("SwapFree"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.zswap",              "Memory that compressed swap takes.", KEY("Zswap"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.zswapped",           "Memory before it was compressed into that.", KEY("Zswapped"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.commit_limit",       "Memory that may be promised to programs under strict overcommit.", KEY("CommitLimit"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.committed",          "Memory promised to programs.", KEY("Committed_AS"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.huge_anon",          "Anonymous memory in transparent huge pages.", KEY("AnonHugePages"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.huge_shmem",         "Shared memory in transparent huge pages.", KEY("ShmemHugePages"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.huge_file",          "Page cache in transparent huge pages.", KEY("FileHugePages"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.huge_total",         "Huge pages in the pool of hugetlb.", KEY("HugePages_Total"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"mem.huge_free",          "Unused huge pages in that pool.", KEY("HugePages_Free"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"mem.huge_reserved",      "Huge pages promised but not yet taken.", KEY("HugePages_Rsvd"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"mem.huge_surplus",       "Huge pages beyond the pool's size.", KEY("HugePages_Surp"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"mem.huge_size",          "Size of one huge page.", KEY("Hugepagesize"), SCALE_KIB, KIND_CONSTANT, FOLD_MAX, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.hugetlb",            "Memory in hugetlb pools of all page sizes.", KEY("Hugetlb"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"mem.corrupted",          "Memory taken out of use after hardware errors.", KEY("HardwareCorrupted"), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
};

static const struct metric paging_metric[] = {
	{"paging.in",               "Bytes read from block devices.", KEY("pgpgin"), SCALE_KIB, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.paging", TIER_MEDIUM, false},
	{"paging.out",              "Bytes written to block devices.", KEY("pgpgout"), SCALE_KIB, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.paging", TIER_MEDIUM, false},
	{"paging.swap_in",          "Memory brought back from swap.", KEY("pswpin"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.swap", TIER_MEDIUM, false},
	{"paging.swap_out",         "Memory put out to swap.", KEY("pswpout"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.swap", TIER_MEDIUM, false},
	{"paging.zswap_in",         "Memory brought back from compressed swap.", KEY("zswpin"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.zswap_out",        "Memory put into compressed swap.", KEY("zswpout"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.faults",           "Page faults, major ones included.", KEY("pgfault"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.faults", TIER_MEDIUM, false},
	{"paging.major_faults",     "Page faults that waited for a disk.", KEY("pgmajfault"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.faults", TIER_MEDIUM, false},
	{"paging.freed",            "Memory freed.", KEY("pgfree"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.scan_kswapd",      "Memory looked at by the background reclaimer.", KEY("pgscan_kswapd"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.reclaim", TIER_MEDIUM, false},
	{"paging.scan_direct",      "Memory looked at by programs that had to reclaim before they got any.", KEY("pgscan_direct"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.reclaim", TIER_MEDIUM, false},
	{"paging.steal_kswapd",     "Memory reclaimed in the background.", KEY("pgsteal_kswapd"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.steal_direct",     "Memory reclaimed by programs that had to wait for it.", KEY("pgsteal_direct"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.alloc_stalls",     "Times a program had to reclaim memory before it got any.", {.source = FROM_ALLOCSTALL}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.refault_anon",     "Anonymous memory needed again soon after it was swapped out.", KEY("workingset_refault_anon"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.refault_file",     "Page cache needed again soon after it was dropped: the cache is too small.", KEY("workingset_refault_file"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.oom_kills",        "Processes killed because memory ran out.", KEY("oom_kill"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.compact_stalls",   "Times a program waited for memory to be compacted for huge pages.", KEY("compact_stall"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.migrated",         "Memory moved to other places or NUMA nodes.", KEY("pgmigrate_success"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.thp_faults",       "Transparent huge pages given on a page fault.", KEY("thp_fault_alloc"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.thp_fallbacks",    "Page faults that wanted a huge page and got small ones.", KEY("thp_fault_fallback"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.thp_collapses",    "Huge pages made from small ones in the background.", KEY("thp_collapse_alloc"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.thp_splits",       "Huge pages split into small ones.", KEY("thp_split_page"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.numa_hit",         "Memory allocated on the NUMA node that was wanted.", KEY("numa_hit"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.numa", TIER_MEDIUM, false},
	{"paging.numa_miss",        "Memory allocated on a NUMA node because the wanted one was full.", KEY("numa_miss"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, "node.numa", TIER_MEDIUM, false},
	{"paging.numa_foreign",     "Memory wanted on a NUMA node and allocated on another.", KEY("numa_foreign"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.numa_local",       "Memory allocated on the NUMA node of the running CPU.", KEY("numa_local"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.numa_other",       "Memory allocated on another NUMA node than that of the running CPU.", KEY("numa_other"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"paging.numa_hint_faults", "Page faults made by the kernel to learn which CPUs use which memory.", KEY("numa_hint_faults"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.numa_hint_local",  "Of these, those on the NUMA node of the memory.", KEY("numa_hint_faults_local"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"paging.numa_migrated",    "Memory moved to the NUMA node that uses it.", KEY("numa_pages_migrated"), SCALE_PAGES, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

extern const struct collector collector_memory, collector_paging;

static int memory_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(
		env, "proc/meminfo", (struct trouble){"proc/meminfo cannot be read", NULL}, reterr_why);
}

static int memory_open(void *state, struct collect_context *ctx)
{
	return keyed_open(state, ctx, &collector_memory, "proc/meminfo", true);
}

static int memory_sample(void *state, struct collect_context *ctx)
{
	ssize_t n = keyed_sample(state, ctx);

	return n < 0 ? (int)n : 0;
}

static void memory_close(void *state, struct collect_context *ctx)
{
	keyed_close(state, ctx);
}

const struct collector collector_memory = {
	.name = "memory",
	.summary = "memory of the node",
	.domain = DOMAIN_NODE,
	.metric = memory_metric,
	.nr_metrics = ARRAY_SIZE(memory_metric),
	.state_size = sizeof(struct keyed),
	.tier = TIER_MEDIUM,
	.probe = memory_probe,
	.open = memory_open,
	.sample = memory_sample,
	.close = memory_close,
};

struct paging {
	struct keyed keyed;
	int stall_col; /* of paging.alloc_stalls, or -1 */
};

/* Stalls are counted by zone since Linux 4.8 (allocstall_dma32, allocstall_normal...) and as one before: all
 * lines that begin with the word add up. */
static void sum_stalls(const struct paging *p, struct collect_context *ctx)
{
	static const char word[] = "\nallocstall";
	const char *text = p->keyed.file.text, *end = text + strlen(text), *at = text;
	uint64_t sum = 0;
	bool found = false;

	if (p->stall_col < 0)
		return;
	while ((at = strstr(at, word))) {
		int64_t value;

		at += sizeof(word) - 1;
		at += strcspn(at, " \n");
		if (*at++ != ' ' || !read_number(&at, end, &value))
			break;
		sum += (uint64_t)value;
		found = true;
	}
	if (found)
		table_set(ctx->table, p->keyed.row, (uint32_t)p->stall_col, (int64_t)sum);
	else
		table_unset(ctx->table, p->keyed.row, (uint32_t)p->stall_col);
}

static int paging_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(
		env, "proc/vmstat", (struct trouble){"this kernel has no proc/vmstat", NULL}, reterr_why);
}

static int paging_open(void *state, struct collect_context *ctx)
{
	struct paging *p = state;
	int r = keyed_open(&p->keyed, ctx, &collector_paging, "proc/vmstat", false);

	if (r < 0)
		return r;
	p->stall_col = -1;
	for (size_t i = 0; i < ARRAY_SIZE(paging_metric); i++)
		if (paging_metric[i].at.source == FROM_ALLOCSTALL)
			p->stall_col = ctx->map.col[i];
	sum_stalls(p, ctx);
	collect_explain(ctx, &collector_paging, FROM_ALLOCSTALL, p->keyed.row);
	return 0;
}

static int paging_sample(void *state, struct collect_context *ctx)
{
	struct paging *p = state;
	ssize_t n = keyed_sample(&p->keyed, ctx);

	if (n < 0)
		return (int)n;
	sum_stalls(p, ctx);
	return 0;
}

static void paging_close(void *state, struct collect_context *ctx)
{
	keyed_close(&((struct paging *)state)->keyed, ctx);
}

const struct collector collector_paging = {
	.name = "paging",
	.summary = "paging, reclaim and NUMA traffic of the node",
	.domain = DOMAIN_NODE,
	.metric = paging_metric,
	.nr_metrics = ARRAY_SIZE(paging_metric),
	.state_size = sizeof(struct paging),
	.tier = TIER_MEDIUM,
	.probe = paging_probe,
	.open = paging_open,
	.sample = paging_sample,
	.close = paging_close,
};
