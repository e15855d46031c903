/* CPU time of the node by kind (proc/stat), and its counts of switches, forks and interrupts from the same
 * file.
 *
 * Each CPU is an instance, and so is their sum as the kernel gives it, "total": when a CPU is unplugged its
 * counts are gone, while the total keeps them. The two collectors share no reading: kernel counts are asked
 * for once a second, CPU time at every tick.
 *
 * Of all columns only idle and iowait may fall: the kernel computes them from another CPU's half-finished
 * accounting (Documentation/filesystems/proc.rst warns of it). A counter here only grows, so such a step back
 * is held at the last value until it is made up; when the other columns fall as well it is a reset, and taken
 * as it is. */
#include "collect/keyed.h"

#include <string.h>

/* clang-format off */
#define COLUMN(n) {.col = n}
#define KEY(k) {.key = k}

static const struct metric cpu_metric[] = {
	{"cpu.user",       "CPU time of programs, guests of virtual machines included.", COLUMN(2), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.nice",       "CPU time of programs that were given a positive nice value, their guests included.", COLUMN(3), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.system",     "CPU time in the kernel.", COLUMN(4), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.idle",       "Time without work.", COLUMN(5), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.iowait",     "Time without work while a task of this CPU waited for a disk: a hint, not a measure.", COLUMN(6), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.irq",        "CPU time in interrupts.", COLUMN(7), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.softirq",    "CPU time in deferred interrupt work.", COLUMN(8), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.steal",      "Time the hypervisor gave to others.", COLUMN(9), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "node.cpu", TIER_TICK, false},
	{"cpu.guest",      "CPU time of guests of virtual machines; part of user.", COLUMN(10), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"cpu.guest_nice", "CPU time of niced guests; part of nice.", COLUMN(11), SCALE_TICKS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
};

static const struct metric kernel_metric[] = {
	{"kernel.switches",   "Context switches.", KEY("ctxt"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.switches", TIER_MEDIUM, false},
	{"kernel.interrupts", "Interrupts.", KEY("intr"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.interrupts", TIER_MEDIUM, false},
	{"kernel.softirqs",   "Deferred interrupt work.", KEY("softirq"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"kernel.forks",      "Processes and threads made since boot.", KEY("processes"), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "node.forks", TIER_MEDIUM, false},
	{"kernel.running",    "Threads that run or could run.", KEY("procs_running"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	{"kernel.blocked",    "Threads that wait for a disk.", KEY("procs_blocked"), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
};
/* clang-format on */

/* The kernel's own limit for x86 (CONFIG_NR_CPUS). */
#define CPUS_MAX 8192

extern const struct collector collector_cpu, collector_kernel;

struct cpu {
	struct textfile file;
	struct columns_reader reader;
	int user, system, idle, iowait; /* columns in the table, or -1 */
	uint8_t turn;			/* changes with every reading */
	unsigned nr_slots;
	struct cpu_slot {
		uint16_t row_plus_1; /* 0: not there */
		uint8_t turn;
	} slot[CPUS_MAX + 1]; /* 0 is the total, then by number */
};

/* "cpu " is slot 0, "cpu12 " slot 13, anything else none. */
static int slot_of(const char *line, const char *end)
{
	int64_t number;

	if (end - line < 4 || memcmp(line, "cpu", 3))
		return -ENOENT;
	line += 3;
	if (*line == ' ')
		return 0;
	if (*line == '-' || !read_number(&line, end, &number) || line == end || *line != ' ')
		return -ENOENT;
	return number >= 0 && number < CPUS_MAX ? (int)number + 1 : -ERANGE;
}

static int join_slot(struct cpu *c, struct collect_context *ctx, unsigned slot)
{
	char name[16] = "total";
	int row;

	if (slot)
		snprintf(name, sizeof(name), "cpu%u", slot - 1);
	row = ctx->join(ctx, name);
	if (row < 0)
		return row;
	c->slot[slot].row_plus_1 = (uint16_t)(row + 1);
	c->nr_slots = MAX(c->nr_slots, slot + 1);
	return 0;
}

static bool fell(int col, uint64_t valid, const int64_t *before, const int64_t *now)
{
	return col >= 0 && valid >> col & 1 && now[col] < before[col];
}

static void read_row(struct cpu *c, struct table *t, uint32_t row, const char *line, const char *end)
{
	int64_t *now = table_row(t, row), before[METRICS_MAX];
	uint64_t valid = t->valid[row];

	memcpy(before, now, t->nr_cols * sizeof(*now));
	columns_read(&c->reader, line, (size_t)(end - line), 1, t, row);
	valid &= t->valid[row];
	if (fell(c->user, valid, before, now) || fell(c->system, valid, before, now))
		return;
	if (fell(c->idle, valid, before, now))
		now[c->idle] = before[c->idle];
	if (fell(c->iowait, valid, before, now))
		now[c->iowait] = before[c->iowait];
}

/* The lines of CPUs open the file. Returns how many there were. */
static unsigned read_lines(struct cpu *c, struct collect_context *ctx, size_t len, bool in_tick)
{
	const char *line = c->file.text, *end = line + len, *stop;
	unsigned nr = 0;

	c->turn++;
	for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
		int i = slot_of(line, stop);
		struct cpu_slot *slot;

		if (i == -ENOENT)
			break;
		if (i < 0)
			continue;
		slot = c->slot + i;
		if (!slot->row_plus_1 && join_slot(c, ctx, (unsigned)i) < 0)
			continue;
		slot->turn = c->turn;
		if (in_tick)
			table_touch(ctx->table, slot->row_plus_1 - 1u);
		read_row(c, ctx->table, slot->row_plus_1 - 1u, line, stop);
		nr++;
	}
	return nr;
}

static int cpu_column(const struct collect_context *ctx, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpu_metric); i++)
		if (!strcmp(cpu_metric[i].name, name))
			return ctx->map.col[i];
	return -1;
}

static int cpu_probe(struct env *env, struct trouble *reterr_why)
{
	return probe_file(env, "proc/stat", (struct trouble){"proc/stat cannot be read", NULL}, reterr_why);
}

static int cpu_open(void *state, struct collect_context *ctx)
{
	struct cpu *c = state;
	int r = textfile_open(&c->file, ctx->env, "proc/stat", true);

	if (r < 0)
		return r;
	columns_init(&c->reader, cpu_metric, ARRAY_SIZE(cpu_metric), 0, &ctx->map);
	c->user = cpu_column(ctx, "cpu.user");
	c->system = cpu_column(ctx, "cpu.system");
	c->idle = cpu_column(ctx, "cpu.idle");
	c->iowait = cpu_column(ctx, "cpu.iowait");
	if (!read_lines(c, ctx, strlen(c->file.text), false) || !c->slot[0].row_plus_1)
		return -EBADMSG;
	collect_explain(ctx, &collector_cpu, 0, c->slot[0].row_plus_1 - 1u);
	return 0;
}

static int cpu_sample(void *state, struct collect_context *ctx)
{
	struct cpu *c = state;
	ssize_t n = textfile_read(&c->file, ctx->env);

	if (n >= 0 && !read_lines(c, ctx, (size_t)n, true))
		n = -EBADMSG;
	for (unsigned i = 0; i < c->nr_slots; i++) {
		struct cpu_slot *slot = c->slot + i;

		if (!slot->row_plus_1 || (n >= 0 && slot->turn == c->turn))
			continue;
		if (n < 0 || !i) {
			collect_lost(ctx, slot->row_plus_1 - 1u);
			continue;
		}
		ctx->leave(ctx, slot->row_plus_1 - 1u);
		slot->row_plus_1 = 0;
	}
	return (int)MIN(n, 0);
}

static void cpu_close(void *state, struct collect_context *ctx)
{
	textfile_close(&((struct cpu *)state)->file, ctx->env);
}

const struct collector collector_cpu = {
	.name = "cpu",
	.summary = "CPU time of the node, by CPU and kind",
	.domain = DOMAIN_CPU,
	.metric = cpu_metric,
	.nr_metrics = ARRAY_SIZE(cpu_metric),
	.state_size = sizeof(struct cpu),
	.tier = TIER_TICK,
	.max_rows = CPUS_MAX + 1,
	.probe = cpu_probe,
	.open = cpu_open,
	.sample = cpu_sample,
	.close = cpu_close,
};

static int kernel_open(void *state, struct collect_context *ctx)
{
	return keyed_open(state, ctx, &collector_kernel, "proc/stat", true);
}

static int kernel_sample(void *state, struct collect_context *ctx)
{
	ssize_t n = keyed_sample(state, ctx);

	return n < 0 ? (int)n : 0;
}

static void kernel_close(void *state, struct collect_context *ctx)
{
	keyed_close(state, ctx);
}

const struct collector collector_kernel = {
	.name = "kernel",
	.summary = "switches, interrupts and forks of the node",
	.domain = DOMAIN_NODE,
	.metric = kernel_metric,
	.nr_metrics = ARRAY_SIZE(kernel_metric),
	.state_size = sizeof(struct keyed),
	.tier = TIER_MEDIUM,
	.probe = cpu_probe,
	.open = kernel_open,
	.sample = kernel_sample,
	.close = kernel_close,
};
