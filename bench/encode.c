/* What the recording costs by itself: CPU and bytes per process and tick, and memory.
 *
 *	encode [PROCESSES [TICKS]]
 *
 * The numbers a process shows are invented after what real trees show: a CPU clock in ns, run-queue waits in
 * ns, bytes written in irregular amounts, a few small counters, now and then a step of memory. Three mixes:
 * every process moves at every tick, 40 % of them, none. One tick a second, flushed each time. */
#include "metric/schema.h"
#include "metric/table.h"
#include "store/store.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define COLUMNS 40

static uint64_t seed = 88172645463325252u;

static uint64_t any(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static long rss_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void be_born(struct store_writer *w, struct table *t, uint32_t row)
{
	struct pair pair[8];
	char text[256], line[200], cgroup[100];
	struct pairs p;

	pairs_init(&p, pair, ARRAY_SIZE(pair), text, sizeof(text));
	snprintf(line, sizeof(line),
		"/usr/bin/python3 /home/someone/project/worker.py --rank %u --config run.yaml", row);
	snprintf(cgroup, sizeof(cgroup), "/user.slice/user-1000.slice/session-%u.scope", row % 7);
	pairs_num(&p, "pid", 10000 + row);
	pairs_num(&p, "parent", 9999);
	pairs_num(&p, "start", 123456789 + (int64_t)any(100000));
	pairs_num(&p, "uid", 1000);
	pairs_str(&p, "name", "python3");
	pairs_str(&p, "exe", "/usr/bin/python3.11");
	pairs_str(&p, "cmdline", line);
	pairs_str(&p, "cgroup", cgroup);
	store_instance(w, 0, row, row + 1, 0, &p);
	table_bind(t, row, row + 1);
	table_touch(t, row);
	for (uint32_t c = 0; c < COLUMNS; c++)
		table_set(t, row, c, c < 30 ? (int64_t)any(c % 3 ? 2000 : 2000000) : 0);
}

static void move(struct table *t, uint32_t row)
{
	int64_t *cell = table_row(t, row), n = (int64_t)any(5);

	table_touch(t, row);
	cell[0] += (int64_t)any(200000);	       /* CPU clock, ns */
	cell[1] += any(100) == 0;		       /* user ticks */
	cell[16] += (int64_t)any(8000);		       /* bytes written */
	cell[18] += n;				       /* calls */
	cell[22] += any(4) ? 0 : (int64_t)any(100000); /* waited, ns */
	cell[23] += n;				       /* slices */
	cell[27] += any(8) ? n : (int64_t)any(5);      /* switches */
	if (any(10) == 0) {
		cell[7] += (int64_t)any(60);	   /* faults */
		cell[13] += (int64_t)any(60) - 30; /* rss */
		cell[14] += any(4) ? 0 : (int64_t)any(5);
	}
}

static void measure(const char *what, uint32_t nr, unsigned ticks, unsigned percent)
{
	const char *path = "/tmp/bench-encode.tacho";
	struct schema *schema = schema_new();
	struct schema_set *set = schema_add_set(schema, "process", "", "process");
	struct store_writer *w;
	struct table t, *tables[1] = {&t};
	struct pairs none = {0};
	int64_t cpu = 0, start;
	uint64_t opening = 0;
	size_t allocated = 0;
	long rss = rss_kib();

	for (unsigned c = 0; c < COLUMNS; c++)
		schema_add_metric(set, "m", "", NULL);
	if (table_init(&t, COLUMNS, nr) < 0 || store_create(path, true, &w) < 0 ||
		store_schema(w, schema) < 0)
		abort();
	for (uint32_t row = 0; row < nr; row++)
		be_born(w, &t, row);
	for (unsigned i = 0; i <= ticks; i++) {
		for (uint32_t row = 0; i && row < nr; row++)
			if (row * 61 % 100 < percent)
				move(&t, row);
		if (i == 1)
			allocated = mallinfo2().uordblks;
		start = cpu_ns();
		store_tick(w, i + 1, i * NSEC_PER_SEC + (int64_t)any(100000), 0, tables);
		store_flush(w);
		if (i)
			cpu += cpu_ns() - start;
		else
			opening = store_bytes(w);
		table_settle(&t);
	}
	allocated = mallinfo2().uordblks - allocated;
	printf("%-12s %6.3f bytes  %5.0f ns  per process and tick; opening %5.1f bytes a process; %5ld KiB; "
	       "%zu bytes by malloc while recording\n",
		what, (double)(store_bytes(w) - opening) / nr / ticks, (double)cpu / nr / ticks,
		(double)opening / nr, rss_kib() - rss - (long)(nr * COLUMNS * 16 / 1024), allocated);
	store_finish(w, &none);
	table_release(&t);
	schema_free(schema);
	unlink(path);
}

int main(int argc, char **argv)
{
	uint32_t nr = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	unsigned ticks = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 600;

	measure("all active", nr, ticks, 100);
	measure("40 % active", nr, ticks, 40);
	measure("all idle", nr, ticks, 0);
	return 0;
}
