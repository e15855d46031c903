/* The job: a master, and workers of two groups and two users on 16 CPUs, of whom every third is busy at a
 * time. Workers live for some minutes each. It loads, computes and writes, as three phases; memory grows, and
 * peaks once, for a single tick. */
#include "long_recording.h"

#include "collect/collector.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define CPUS 16u
#define GIB (INT64_C(1) << 30)
#define WORKER_LIFE_S 300

enum cell {
	CPU_TIME,
	CPU_USER,
	CPU_SYSTEM,
	CHILDREN_USER,
	CHILDREN_SYSTEM,
	STATE,
	THREADS,
	MINOR,
	MAJOR,
	VMS,
	RSS,
	SHARED,
	READ_CHARS,
	WRITE_CHARS,
	READ_CALLS,
	WRITE_CALLS,
	READ_BYTES,
	WRITE_BYTES,
	FDS,
	SMAPS_RSS,
	SMAPS_ANON,
	PSS,
	CLEAN,
	DIRTY,
	NR_PROCESS_CELLS,
	TREE_PROCESSES = NR_PROCESS_CELLS,
	TREE_JOINED,
	TREE_EXITED,
	TREE_USER,
	TREE_SYSTEM,
	TREE_READ_CHARS,
	TREE_WRITE_CHARS,
	GROUP_PROCESSES,
	GROUP_USER,
	GROUP_SYSTEM,
	NODE_USER,
	NODE_NICE,
	NODE_SYSTEM,
	NODE_IDLE,
	NODE_IOWAIT,
	NODE_IRQ,
	NODE_SOFTIRQ,
	MEM_TOTAL,
	MEM_FREE,
	MEM_AVAILABLE,
	MEM_CACHED,
	LOAD,
	RX_BYTES,
	TX_BYTES,
	RX_PACKETS,
	TX_PACKETS,
	DISK_READ,
	DISK_WRITE,
	DISK_READ_OPS,
	DISK_WRITE_OPS,
	DISK_BUSY,
	ENERGY,
	LIMIT_CPUS,
	LIMIT_MEMORY,
	SELF_CPU,
	SELF_RSS,
	NR_CELLS
};

static const char *const cell_name[NR_CELLS] = {[CPU_TIME] = "proc.cpu.time",
	[CPU_USER] = "proc.cpu.user",
	[CPU_SYSTEM] = "proc.cpu.system",
	[CHILDREN_USER] = "proc.cpu.children_user",
	[CHILDREN_SYSTEM] = "proc.cpu.children_system",
	[STATE] = "proc.state",
	[THREADS] = "proc.threads",
	[MINOR] = "proc.faults.minor",
	[MAJOR] = "proc.faults.major",
	[VMS] = "proc.mem.vms",
	[RSS] = "proc.mem.rss",
	[SHARED] = "proc.mem.shared",
	[READ_CHARS] = "proc.io.read_chars",
	[WRITE_CHARS] = "proc.io.write_chars",
	[READ_CALLS] = "proc.io.read_calls",
	[WRITE_CALLS] = "proc.io.write_calls",
	[READ_BYTES] = "proc.io.read_bytes",
	[WRITE_BYTES] = "proc.io.write_bytes",
	[FDS] = "proc.fds",
	[SMAPS_RSS] = "proc.smaps.rss",
	[SMAPS_ANON] = "proc.smaps.anon",
	[PSS] = "proc.mem.pss",
	[CLEAN] = "proc.mem.private_clean",
	[DIRTY] = "proc.mem.private_dirty",
	[TREE_PROCESSES] = "tree.processes",
	[TREE_JOINED] = "tree.joined",
	[TREE_EXITED] = "tree.exited",
	[TREE_USER] = "tree.gone.user",
	[TREE_SYSTEM] = "tree.gone.system",
	[TREE_READ_CHARS] = "tree.gone.read_chars",
	[TREE_WRITE_CHARS] = "tree.gone.write_chars",
	[GROUP_PROCESSES] = "group.processes",
	[GROUP_USER] = "group.gone.user",
	[GROUP_SYSTEM] = "group.gone.system",
	[NODE_USER] = "cpu.user",
	[NODE_NICE] = "cpu.nice",
	[NODE_SYSTEM] = "cpu.system",
	[NODE_IDLE] = "cpu.idle",
	[NODE_IOWAIT] = "cpu.iowait",
	[NODE_IRQ] = "cpu.irq",
	[NODE_SOFTIRQ] = "cpu.softirq",
	[MEM_TOTAL] = "mem.total",
	[MEM_FREE] = "mem.free",
	[MEM_AVAILABLE] = "mem.available",
	[MEM_CACHED] = "mem.cached",
	[LOAD] = "load.1m",
	[RX_BYTES] = "net.rx.bytes",
	[TX_BYTES] = "net.tx.bytes",
	[RX_PACKETS] = "net.rx.packets",
	[TX_PACKETS] = "net.tx.packets",
	[DISK_READ] = "disk.read.bytes",
	[DISK_WRITE] = "disk.write.bytes",
	[DISK_READ_OPS] = "disk.read.ops",
	[DISK_WRITE_OPS] = "disk.write.ops",
	[DISK_BUSY] = "disk.busy",
	[ENERGY] = "energy.used",
	[LIMIT_CPUS] = "limit.cpus",
	[LIMIT_MEMORY] = "limit.memory",
	[SELF_CPU] = "self.cpu",
	[SELF_RSS] = "self.rss"};

static const char *const group_name[2] = {"solvers", "loaders"}; /* unless others are given */

struct worker {
	uint32_t id;
	uint64_t until;				     /* tick */
	int64_t cpu_us, read, written, faults, base; /* base: pages */
};

struct world {
	const struct long_recording *r;
	struct schema *schema;
	struct table *table;
	struct table **tables;
	struct store_writer *w;
	struct {
		int set, col; /* -1: there is none */
	} cell[NR_CELLS];
	struct worker *worker;
	uint64_t random, ticks, tick;
	uint32_t next_id;
	int64_t tick_us, alive[2], gone_us[2], tree_us, tree_read, tree_written, exited;
	int64_t busy_us; /* of all, in this tick */
	int64_t user, system, idle, rss;
	struct pair memory[32];
	char text[512];
	struct pairs pairs;
};

static uint32_t rnd(struct world *w, uint32_t below)
{
	w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(w->random >> 33) % below;
}

/* ---- what there is ---- */

static int make_schema(struct world *w)
{
	w->schema = schema_new();
	for (size_t c = 0; w->schema && collectors[c]; c++) {
		const struct collector *from = collectors[c];
		struct schema_set *set =
			schema_add_set(w->schema, from->name, from->summary, domain_name(from->domain));

		for (size_t i = 0; set && i < from->nr_metrics; i++) {
			const struct metric *row = &from->metric[i];
			struct schema_metric *m;

			if (row->on_request || set->nr_metrics == METRICS_MAX)
				continue;
			m = schema_add_metric(set, row->name, row->help, row->panel);
			if (!m)
				return -ENOMEM;
			m->kind = row->kind;
			m->fold = row->fold;
			m->unit = row->unit;
			m->tier = row->tier;
			m->scale = scale_factor(row->scale, 4096, 100);
		}
		if (!set)
			return -ENOMEM;
	}
	return w->schema ? 0 : -ENOMEM;
}

static int make_tables(struct world *w)
{
	uint32_t nr = w->schema->nr_sets;

	w->table = calloc(nr, sizeof(*w->table));
	w->tables = calloc(nr, sizeof(struct table *));
	w->worker = calloc(w->r->processes + 1, sizeof(*w->worker));
	if (!w->table || !w->tables || !w->worker)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		int r = table_init(&w->table[i], w->schema->set[i].nr_metrics, MAX(w->r->processes + 1, 64u));

		if (r < 0)
			return r;
		w->tables[i] = &w->table[i];
	}
	for (unsigned i = 0; i < NR_CELLS; i++) {
		uint32_t set, col;

		w->cell[i].set = -1;
		if (!schema_find(w->schema, cell_name[i], &set, &col))
			continue;
		w->cell[i].set = (int)set;
		w->cell[i].col = (int)col;
	}
	return 0;
}

static const char *name_of_group(const struct world *w, unsigned group)
{
	return w->r->group[group] ? w->r->group[group] : group_name[group];
}

static void put(struct world *w, enum cell cell, uint32_t row, int64_t value)
{
	struct table *t;

	if (w->cell[cell].set < 0)
		return;
	t = &w->table[w->cell[cell].set];
	table_touch(t, row);
	table_set(t, row, (uint32_t)w->cell[cell].col, value);
}

/* An instance beside the processes: its set is that of one of its cells. */
static void join(struct world *w, enum cell of, uint32_t row, const char *name)
{
	if (w->cell[of].set < 0)
		return;
	pairs_reset(&w->pairs);
	pairs_str(&w->pairs, "name", name);
	table_bind(&w->table[w->cell[of].set], row, row + 1);
	store_instance(w->w, (uint32_t)w->cell[of].set, row, row + 1, 0, &w->pairs);
}

static int begin(struct world *w, const char *path)
{
	int r = store_create(path, true, &w->w), len;
	char groups[200];

	if (r < 0)
		return r;
	pairs_reset(&w->pairs);
	pairs_str(&w->pairs, "mode", "run");
	pairs_str(&w->pairs, "host", w->r->host ? w->r->host : "node01");
	pairs_add(&w->pairs, "command", "train\0--epochs\0003", 16);
	pairs_num(&w->pairs, "interval_ns", w->tick_us * 1000);
	pairs_num(&w->pairs, "nr_cpus", CPUS);
	pairs_num(&w->pairs, "start_wall_ns",
		w->r->start_wall_ns ? w->r->start_wall_ns : INT64_C(1700000000) * NSEC_PER_SEC);
	len = snprintf(groups, sizeof(groups), "%s%c%s", name_of_group(w, 0), 0, name_of_group(w, 1));
	pairs_add(&w->pairs, "groups", groups, (size_t)len);
	r = store_meta(w->w, &w->pairs);
	if (r >= 0)
		r = store_schema(w->w, w->schema);
	join(w, TREE_USER, 0, "job");
	join(w, SELF_CPU, 0, "tacho");
	join(w, MEM_TOTAL, 0, "node");
	join(w, LOAD, 0, "node");
	join(w, LIMIT_CPUS, 0, "job");
	join(w, RX_BYTES, 0, "eth0");
	join(w, DISK_READ, 0, "nvme0n1");
	join(w, ENERGY, 0, "package-0");
	join(w, GROUP_USER, 0, name_of_group(w, 0));
	join(w, GROUP_USER, 1, name_of_group(w, 1));
	for (uint32_t i = 0; i <= CPUS; i++) {
		char name[16];

		snprintf(name, sizeof(name), i ? "cpu%u" : "total", i - 1);
		join(w, NODE_USER, i, name);
	}
	return r;
}

/* ---- processes ---- */

static int64_t time_ns(const struct world *w)
{
	return (int64_t)w->tick * w->tick_us * 1000;
}

static unsigned group_of(uint32_t row)
{
	return row % 4 == 0;
}

static void worker_begin(struct world *w, uint32_t row)
{
	struct worker *p = &w->worker[row];
	uint64_t life = (uint64_t)WORKER_LIFE_S * 1000000 / (uint64_t)w->tick_us;

	*p = (struct worker){.id = ++w->next_id,
		.until = row ? w->tick + life / 2 + rnd(w, (uint32_t)life + 1) : UINT64_MAX,
		.base = 2000 + rnd(w, 60000)};
	pairs_reset(&w->pairs);
	pairs_num(&w->pairs, "pid", 1000 + p->id);
	pairs_num(&w->pairs, "ppid", row ? 1001 : 1);
	pairs_num(&w->pairs, "uid", row % 10 == 9 ? 1001 : 1000);
	pairs_num(&w->pairs, "start_ns", time_ns(w));
	pairs_str(&w->pairs, "name", !row ? "train" : group_of(row) ? "loader" : "solver");
	pairs_add(&w->pairs, "cmdline", "worker\0-v\0", 10);
	if (row)
		pairs_str(&w->pairs, "groups", name_of_group(w, group_of(row)));
	table_bind(&w->table[w->cell[RSS].set], row, p->id);
	store_instance(w->w, (uint32_t)w->cell[RSS].set, row, p->id, time_ns(w), &w->pairs);
	put(w, CHILDREN_USER, row, 0);
	put(w, CHILDREN_SYSTEM, row, 0);
	put(w, STATE, row, 'S');
	put(w, FDS, row, 12);
	put(w, THREADS, row, 1);
	put(w, MAJOR, row, 0);
	if (row)
		w->alive[group_of(row)]++;
}

static void worker_end(struct world *w, uint32_t row)
{
	struct worker *p = &w->worker[row];

	pairs_reset(&w->pairs);
	pairs_str(&w->pairs, "how", "event");
	pairs_num(&w->pairs, "sampled", 1);
	pairs_num(&w->pairs, "status", 0);
	pairs_num(&w->pairs, "cpu_ns", p->cpu_us * 1000);
	store_gone(w->w, (uint32_t)w->cell[RSS].set, row, p->id, time_ns(w), &w->pairs);
	table_unbind(&w->table[w->cell[RSS].set], row);
	w->alive[group_of(row)]--;
	w->gone_us[group_of(row)] += p->cpu_us;
	w->tree_us += p->cpu_us;
	w->tree_read += p->read;
	w->tree_written += p->written;
	w->exited++;
}

/* Busy for half a minute, idle for a minute, each at its own time; in the middle of the run one tick of
 * much memory. */
static void worker_tick(struct world *w, uint32_t row)
{
	struct worker *p = &w->worker[row];
	uint64_t turn = time_ns(w) / (30 * NSEC_PER_SEC) + row;
	int64_t us = (int64_t)rnd(w, (uint32_t)w->tick_us / 4 + 1), grown;
	bool peak = w->tick == w->ticks / 2 && row == 1, loader = group_of(row);

	grown = p->base + (int64_t)(w->tick % 6000) * p->base / 12000;
	w->rss += grown;
	if (turn % 3 && !peak && p->cpu_us)
		return;
	us = MAX(loader ? us / 3 : us * 2, 1);
	p->cpu_us += us;
	w->busy_us += us;
	p->read += loader ? us * 40 : us / 8;
	p->written += us / 2;
	p->faults += us / 50;
	put(w, CPU_TIME, row, p->cpu_us);
	put(w, CPU_USER, row, p->cpu_us * 9 / 100000);
	put(w, CPU_SYSTEM, row, p->cpu_us / 100000);
	put(w, MINOR, row, p->faults);
	put(w, VMS, row, p->base * 6);
	put(w, RSS, row, peak ? 16 * GIB / 4096 : grown);
	put(w, SHARED, row, 900);
	put(w, READ_CHARS, row, p->read);
	put(w, WRITE_CHARS, row, p->written);
	put(w, READ_CALLS, row, p->read / 4096);
	put(w, WRITE_CALLS, row, p->written / 4096);
	put(w, READ_BYTES, row, p->read / 4);
	put(w, WRITE_BYTES, row, p->written / 2);
	if ((w->tick + row) % 50)
		return;
	put(w, THREADS, row, 1 + rnd(w, 4));
	put(w, SMAPS_RSS, row, grown * 4);
	put(w, SMAPS_ANON, row, grown * 4 - 3600);
	put(w, PSS, row, grown * 4 - 2000);
	put(w, CLEAN, row, 400);
	put(w, DIRTY, row, grown * 4 - 3600);
}

/* ---- the rest of the machine ---- */

static void machine_tick(struct world *w)
{
	int64_t share, n = (int64_t)w->tick, passed = n * w->tick_us / 10000;

	for (uint32_t i = 1; i <= CPUS; i++) {
		put(w, NODE_USER, i, passed * (i % 5 + 1) / 8);
		put(w, NODE_IDLE, i, passed - passed * (i % 5 + 1) / 8);
		for (enum cell c = NODE_NICE; c <= NODE_SOFTIRQ; c++)
			if (c != NODE_IDLE)
				put(w, c, i, 0);
	}
	w->user += w->busy_us * 9 / 10;
	w->system += w->busy_us / 10;
	share = CPUS * w->tick_us - w->busy_us;
	w->idle += MAX(share, 0);
	put(w, NODE_USER, 0, w->user / 10000);
	put(w, NODE_SYSTEM, 0, w->system / 10000);
	put(w, NODE_IDLE, 0, w->idle / 10000);
	for (enum cell c = NODE_NICE; c <= NODE_SOFTIRQ; c++)
		if (c != NODE_IDLE && c != NODE_SYSTEM)
			put(w, c, 0, 0);
	put(w, MEM_TOTAL, 0, 64 * GIB / 1024);
	put(w, MEM_AVAILABLE, 0, (60 * GIB - w->rss * 4096) / 1024);
	put(w, MEM_FREE, 0, (40 * GIB - w->rss * 4096) / 1024);
	put(w, MEM_CACHED, 0, 20 * GIB / 1024);
	put(w, LOAD, 0, 100 * w->busy_us / w->tick_us);
	put(w, RX_BYTES, 0, n * 150000 + rnd(w, 100000));
	put(w, TX_BYTES, 0, n * 20000);
	put(w, RX_PACKETS, 0, n * 120);
	put(w, TX_PACKETS, 0, n * 40);
	put(w, DISK_READ, 0, n * 900);
	put(w, DISK_WRITE, 0, n * 300 + (int64_t)(w->tick / 100) * 20000);
	put(w, DISK_READ_OPS, 0, n * 6);
	put(w, DISK_WRITE_OPS, 0, n * 2);
	put(w, DISK_BUSY, 0, n * w->tick_us / 9000);
	put(w, ENERGY, 0, n * w->tick_us * 80 + (w->user + w->system) * 12);
	put(w, LIMIT_CPUS, 0, 12000);
	put(w, LIMIT_MEMORY, 0, 48 * GIB);
	put(w, SELF_CPU, 0, n * 300000);
	put(w, SELF_RSS, 0, 4200);
}

static void job_tick(struct world *w)
{
	put(w, TREE_PROCESSES, 0, w->r->processes);
	put(w, TREE_JOINED, 0, w->next_id);
	put(w, TREE_EXITED, 0, w->exited);
	put(w, TREE_USER, 0, w->tree_us);
	put(w, TREE_SYSTEM, 0, 0);
	put(w, TREE_READ_CHARS, 0, w->tree_read);
	put(w, TREE_WRITE_CHARS, 0, w->tree_written);
	for (uint32_t i = 0; i < 2; i++) {
		put(w, GROUP_PROCESSES, i, w->alive[i]);
		put(w, GROUP_USER, i, w->gone_us[i]);
		put(w, GROUP_SYSTEM, i, 0);
	}
}

static void event(struct world *w, const char *kind, const char *name)
{
	pairs_reset(&w->pairs);
	pairs_str(&w->pairs, "name", name);
	store_event(w->w, time_ns(w), kind, &w->pairs);
}

static void phases_tick(struct world *w)
{
	static const char *const phase[] = {"load", "solve", "write"};
	const uint64_t from[] = {0, w->ticks / 10, w->ticks * 9 / 10};

	for (unsigned i = 0; i < ARRAY_SIZE(from); i++) {
		if (w->tick != from[i])
			continue;
		if (i)
			event(w, "phase.end", phase[i - 1]);
		event(w, "phase.begin", phase[i]);
	}
	if (w->tick == w->ticks / 3)
		event(w, "mark", "checkpoint");
}

static int tick(struct world *w)
{
	int r = 0;

	w->busy_us = w->rss = 0;
	phases_tick(w);
	for (uint32_t row = 0; row < w->r->processes; row++) {
		if (w->tick && w->worker[row].until <= w->tick)
			worker_end(w, row);
		if (!w->tick || w->worker[row].until <= w->tick)
			worker_begin(w, row);
		worker_tick(w, row);
	}
	job_tick(w);
	machine_tick(w);
	store_tick(w->w, w->tick, time_ns(w), 0, w->tables);
	for (uint32_t i = 0; i < w->schema->nr_sets; i++)
		table_settle(&w->table[i]);
	if (w->tick % MAX((uint64_t)(w->r->hz + 0.5), 1) == 0)
		r = store_flush(w->w);
	w->tick++;
	return r;
}

int long_recording_write(const char *path, const struct long_recording *r)
{
	struct world w = {.r = r, .random = 42, .tick_us = (int64_t)(1e6 / r->hz)};
	int e;

	w.ticks = (uint64_t)((double)r->seconds * r->hz);
	pairs_init(&w.pairs, w.memory, ARRAY_SIZE(w.memory), w.text, sizeof(w.text));
	e = make_schema(&w);
	if (e >= 0)
		e = make_tables(&w);
	if (e >= 0)
		e = begin(&w, path);
	while (e >= 0 && w.tick < w.ticks)
		e = tick(&w);
	if (w.w && e >= 0) {
		pairs_reset(&w.pairs);
		pairs_num(&w.pairs, "exit_status", 0);
		e = store_finish(w.w, &w.pairs);
		w.w = NULL;
	}
	if (w.w)
		store_abandon(w.w);
	for (uint32_t i = 0; w.table && i < w.schema->nr_sets; i++)
		table_release(&w.table[i]);
	free(w.table);
	free(w.tables);
	free(w.worker);
	schema_free(w.schema);
	return e;
}
