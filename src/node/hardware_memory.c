/* Memory and its share of each NUMA node. */
#include "node/facts.h"

#include "base/buf.h"
#include "base/units.h"
#include "read/cpulist.h"

#include <string.h>

#define NODES "sys/devices/system/node"
#define NODES_MAX 16 /* described one by one; the rest are counted */

static void say_kilobytes(struct facts *f, const char *meminfo, const char *key, const char *fact)
{
	int64_t kilobytes;

	if (text_number(meminfo, key, ':', &kilobytes) && kilobytes <= INT64_MAX / 1024)
		fact_number(f, fact, kilobytes * 1024);
}

/* "always [madvise] never" */
static void say_transparent_huge_pages(struct facts *f)
{
	char text[128], *open, *close;

	if (fact_read(f, text, sizeof(text), "sys/kernel/mm/transparent_hugepage/enabled") <= 0)
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return;
	*close = 0;
	fact_text(f, "transparent_huge_pages", open + 1);
}

/* "node0 0-15,128-143; node1 16-31", and "node0 62.8 GiB, node1 63.0 GiB". Memory of its own kind (CXL, HBM)
 * is a node without CPUs. */
static void add_node(struct facts *f, int node, struct buf *cpus, struct buf *memory)
{
	char text[4096], key[32], amount[UNITS_SIZE];
	int64_t kilobytes;

	if (fact_read(f, text, sizeof(text), NODES "/node%d/cpulist", node) >= 0)
		buf_addf(cpus, "%snode%d %s", cpus->len ? "; " : "", node, *text ? text : "none");
	fact_read(f, text, sizeof(text), NODES "/node%d/meminfo", node);
	snprintf(key, sizeof(key), "Node %d MemTotal", node);
	if (text_number(text, key, ':', &kilobytes) && kilobytes <= INT64_MAX / 1024)
		buf_addf(memory, "%snode%d %s", memory->len ? ", " : "", node,
			format_bytes(amount, (double)kilobytes * 1024));
}

static void say_nodes(struct facts *f)
{
	char list[1024], cpus_text[FACT_TEXT_MAX], memory_text[FACT_TEXT_MAX];
	struct cpu_bits online = {0};
	struct buf cpus, memory;
	unsigned nr, listed = 0;

	if (fact_read(f, list, sizeof(list), NODES "/online") <= 0)
		return;
	nr = cpu_bits_add(&online, list);
	if (!nr)
		return;
	fact_number(f, "numa_nodes", nr);
	buf_init_fixed(&cpus, cpus_text, sizeof(cpus_text));
	buf_init_fixed(&memory, memory_text, sizeof(memory_text));
	for (int node = cpu_bits_next(&online, 0); node >= 0 && listed < NODES_MAX;
		node = cpu_bits_next(&online, node + 1), listed++)
		add_node(f, node, &cpus, &memory);
	if (listed < nr && cpus.len)
		buf_addf(&cpus, "; %u more", nr - listed);
	if (listed < nr && memory.len)
		buf_addf(&memory, ", %u more", nr - listed);
	fact_text(f, "numa_cpus", cpus_text);
	fact_text(f, "numa_memory", memory_text);
}

void hardware_memory(struct facts *f)
{
	char meminfo[4096];
	int64_t pages;

	fact_read(f, meminfo, sizeof(meminfo), "proc/meminfo");
	say_kilobytes(f, meminfo, "MemTotal", "memory_bytes");
	say_kilobytes(f, meminfo, "SwapTotal", "swap_bytes");
	say_kilobytes(f, meminfo, "Hugepagesize", "huge_page_bytes");
	if (text_number(meminfo, "HugePages_Total", ':', &pages))
		fact_number(f, "huge_pages", pages);
	say_transparent_huge_pages(f);
	say_nodes(f);
}
