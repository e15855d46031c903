/* GPUs of all makers: the rows, and the devices as instances.
 *
 * The makers read beside the ticks (gpu_source.c); here a reading becomes cells. A device keeps its row as
 * long as it is the same piece of hardware (its name and its uuid): one that falls off the bus, is being
 * reset or is pulled has no values until it answers again, with the reason. For rows that a maker does not
 * have, the maker's reason is reported once.
 *
 * Reading in the tick is not possible: a call of NVML takes from 5 us to 20 ms depending on the value, and
 * seconds when a GPU is in trouble. So a cell holds what was measured at the tick before. */
#include "collect/gpu_source.h"
#include "collect/keyed.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct metric gpu_metric[NR_GPU_ROWS] = {
	[GPU_UTIL]            = {"gpu.util",               "Share of time in which the GPU computed anything, over the driver's own window.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, "gpu", TIER_TICK, false},
	[GPU_MEM_UTIL]        = {"gpu.mem_util",           "Share of time in which the GPU's memory was read or written.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, "gpu", TIER_TICK, false},
	[GPU_ENCODER]         = {"gpu.encoder",            "Share of time in which the video encoder was busy.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, NULL, TIER_TICK, false},
	[GPU_DECODER]         = {"gpu.decoder",            "Share of time in which the video decoder was busy.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_MEAN, UNIT_RATIO, NULL, TIER_TICK, false},
	[GPU_MEMORY_USED]     = {"gpu.memory.used",        "Memory of the GPU in use by all processes.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "gpu memory", TIER_TICK, false},
	[GPU_MEMORY_TOTAL]    = {"gpu.memory.total",       "Memory of the GPU.", {0}, SCALE_ONE, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	[GPU_MEMORY_RESERVED] = {"gpu.memory.reserved",    "Memory of the GPU that driver and firmware keep for themselves.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	[GPU_BAR1_USED]       = {"gpu.bar1.used",          "Part in use of the window through which the host sees the GPU's memory.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	[GPU_BAR1_TOTAL]      = {"gpu.bar1.total",         "Size of the window through which the host sees the GPU's memory.", {0}, SCALE_ONE, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	[GPU_GTT_USED]        = {"gpu.gtt.used",           "Memory of the host that the GPU maps.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "gpu memory", TIER_TICK, false},
	[GPU_CLOCK_GRAPHICS]  = {"gpu.clock.graphics",     "Clock of the graphics engine.", {0}, SCALE_MEGA, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_TICK, false},
	[GPU_CLOCK_SM]        = {"gpu.clock.sm",           "Clock of the streaming multiprocessors or compute units.", {0}, SCALE_MEGA, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, "gpu clocks", TIER_TICK, false},
	[GPU_CLOCK_MEMORY]    = {"gpu.clock.memory",       "Clock of the GPU's memory.", {0}, SCALE_MEGA, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, "gpu clocks", TIER_TICK, false},
	[GPU_CLOCK_VIDEO]     = {"gpu.clock.video",        "Clock of the video encoder and decoder.", {0}, SCALE_MEGA, KIND_GAUGE, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, false},
	[GPU_CLOCK_GRAPHICS_MAX] = {"gpu.clock.graphics_max", "Highest clock of the graphics engine.", {0}, SCALE_MEGA, KIND_CONSTANT, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, false},
	[GPU_CLOCK_SM_MAX]    = {"gpu.clock.sm_max",       "Highest clock of the streaming multiprocessors or compute units.", {0}, SCALE_MEGA, KIND_CONSTANT, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, false},
	[GPU_CLOCK_MEMORY_MAX] = {"gpu.clock.memory_max",  "Highest clock of the GPU's memory.", {0}, SCALE_MEGA, KIND_CONSTANT, FOLD_MEAN, UNIT_HERTZ, NULL, TIER_MEDIUM, false},
	[GPU_TEMPERATURE]     = {"gpu.temperature",        "Temperature of the GPU.", {0}, SCALE_MILLI, KIND_GAUGE, FOLD_MAX, UNIT_CELSIUS, "temperature", TIER_TICK, false},
	[GPU_TEMPERATURE_MEMORY] = {"gpu.temperature_memory", "Temperature of the GPU's memory.", {0}, SCALE_MILLI, KIND_GAUGE, FOLD_MAX, UNIT_CELSIUS, "temperature", TIER_TICK, false},
	[GPU_FAN]             = {"gpu.fan",                "Speed of the fan, of the highest that is meant for it; it may go beyond.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_MAX, UNIT_RATIO, NULL, TIER_MEDIUM, false},
	[GPU_POWER]           = {"gpu.power",              "Power that the board draws.", {0}, SCALE_MILLI, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, "gpu power", TIER_TICK, false},
	[GPU_POWER_LIMIT]     = {"gpu.power_limit",        "Power that the board may draw.", {0}, SCALE_MILLI, KIND_GAUGE, FOLD_SUM, UNIT_WATTS, NULL, TIER_MEDIUM, false},
	[GPU_ENERGY]          = {"gpu.energy",             "Energy that the board used, since the driver was loaded.", {0}, SCALE_MILLI, KIND_COUNTER, FOLD_SUM, UNIT_JOULES, NULL, TIER_TICK, false},
	[GPU_PSTATE]          = {"gpu.pstate",             "Performance state: 0 is the fastest, 15 the slowest.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_TICK, false},
	[GPU_THROTTLE_REASONS] = {"gpu.throttle.reasons",  "Why the clocks are not higher now, as the maker's bits.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_CODE, NULL, TIER_TICK, false},
	[GPU_THROTTLED_POWER] = {"gpu.throttle.power",     "Time for which the power limit held the clocks down.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "gpu throttling", TIER_MEDIUM, false},
	[GPU_THROTTLED_THERMAL] = {"gpu.throttle.thermal", "Time for which heat held the clocks down.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "gpu throttling", TIER_MEDIUM, false},
	[GPU_THROTTLED_SYNC]  = {"gpu.throttle.sync",      "Time for which the clocks were held down to those of other GPUs.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	[GPU_THROTTLED_BOARD] = {"gpu.throttle.board",     "Time for which a limit of the board held the clocks down.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	[GPU_THROTTLED_RELIABILITY] = {"gpu.throttle.reliability", "Time for which the limits of reliable voltages held the clocks down.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	[GPU_THROTTLED_LOW_UTIL] = {"gpu.throttle.low_util", "Time for which the clocks were low because there was little to do.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_MEDIUM, false},
	[GPU_ECC_CORRECTED]   = {"gpu.ecc.corrected",      "Errors of the GPU's memory that were corrected, since the driver was loaded.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	[GPU_ECC_UNCORRECTED] = {"gpu.ecc.uncorrected",    "Errors of the GPU's memory that could not be corrected, since the driver was loaded.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	[GPU_PCIE_TX]         = {"gpu.pcie.tx",            "Bytes a second that the GPU sent over PCIe, in a short window of the driver.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "gpu pcie", TIER_MEDIUM, false},
	[GPU_PCIE_RX]         = {"gpu.pcie.rx",            "Bytes a second that the GPU received over PCIe, in a short window of the driver.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "gpu pcie", TIER_MEDIUM, false},
	[GPU_PCIE_REPLAYS]    = {"gpu.pcie.replays",       "Packets that PCIe had to send again.", {0}, SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_MEDIUM, false},
	[GPU_PROCESSES]       = {"gpu.processes",          "Processes of all users on the GPU.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
};
/* clang-format on */

extern const struct collector collector_gpu;
extern const struct gpu_maker gpu_maker_nvidia, gpu_maker_amd, gpu_maker_intel;

const struct gpu_maker *const gpu_makers[] = {
	&gpu_maker_nvidia,
	&gpu_maker_amd,
	&gpu_maker_intel,
	NULL,
};

enum { GPUS_MAX = 128 };

struct collect_gpus {
	struct gpu_user user; /* first: the other collector finds the source by it */
	unsigned nr;
	struct gpu {
		char name[48], uuid[96];
		unsigned part;
		uint32_t row;
		bool seen;	    /* in the reading that is looked at */
		const char *reason; /* why it has no values, as reported; NULL while it has */
	} gpu[GPUS_MAX];
	bool full;
	uint64_t explained_rows[GPU_MAKERS_MAX];
};

static const char gone[] = "it is not there any more", silent[] = "the driver does not answer";

/* Reports the reason once for all rows that it affects, not for rows that the device never had. */
static void tell_lost(struct collect_gpus *g, struct collect_context *ctx, struct gpu *gpu, const char *why)
{
	char text[200];

	if (gpu->reason == why)
		return;
	gpu->reason = why;
	collect_lost(ctx, gpu->row);
	if (why == silent) /* reported for all devices at once */
		return;
	snprintf(text, sizeof(text), "%s: %s", gpu->name, why);
	for (size_t i = 0; i < NR_GPU_ROWS; i++)
		if (ctx->map.col[i] >= 0 && !(g->explained_rows[gpu->part] >> i & 1))
			ctx->why(ctx, i, FAILED, text, NULL);
}

static int join(
	struct collect_gpus *g, struct collect_context *ctx, unsigned part, const struct gpu_device *d)
{
	static const char *const claim_word[] = {
		[GPU_UNCLAIMED] = "unclaimed", [GPU_OF_JOB] = "yes", [GPU_NOT_OF_JOB] = "no"};
	const struct gpu_part *p = g->user.source->part[part];
	const char *by;
	enum gpu_claim claim = gpu_source_claim(g->user.source, ctx, p, d, &by);
	struct about about[8];
	char index[16];
	size_t nr = 0;

	snprintf(index, sizeof(index), "%d", d->index);
	about[nr++] = (struct about){"vendor", p->maker->name};
	about[nr++] = (struct about){"index", index};
	if (d->model[0])
		about[nr++] = (struct about){"model", d->model};
	if (d->uuid[0])
		about[nr++] = (struct about){"uuid", d->uuid};
	if (d->pci[0])
		about[nr++] = (struct about){"pci", d->pci};
	about[nr++] = (struct about){"job", claim_word[claim]};
	if (by)
		about[nr++] = (struct about){"job_by", by};
	if (d->counted_elsewhere)
		about[nr++] = (struct about){"apart", d->counted_elsewhere};
	return ctx->join_about(ctx, d->name, about, nr);
}

static void drop(struct collect_gpus *g, struct collect_context *ctx, struct gpu *gpu)
{
	ctx->leave(ctx, gpu->row);
	*gpu = g->gpu[--g->nr];
}

/* When all rows are used, that of a lost device is freed. */
static bool make_room(struct collect_gpus *g, struct collect_context *ctx)
{
	for (unsigned i = 0; i < g->nr && g->nr == GPUS_MAX; i++)
		if (g->gpu[i].reason == gone)
			drop(g, ctx, &g->gpu[i]);
	return g->nr < GPUS_MAX;
}

/* The device's place, made if there is none; NULL when there is no room. */
static struct gpu *find(
	struct collect_gpus *g, struct collect_context *ctx, unsigned part, const struct gpu_device *d)
{
	struct gpu *new;
	int row = -ENOSPC;

	for (unsigned i = 0; i < g->nr; i++) {
		struct gpu *gpu = &g->gpu[i];

		if (gpu->part != part || strcmp(gpu->name, d->name))
			continue;
		if (!strcmp(gpu->uuid, d->uuid) || d->lost)
			return gpu;
		drop(g, ctx, gpu); /* another one in its place */
		break;
	}
	if (make_room(g, ctx))
		row = join(g, ctx, part, d);
	if (row < 0) {
		if (!g->full)
			collect_tell(ctx, &collector_gpu, FAILED,
				"there are more GPUs than can be recorded: some are left out", NULL);
		g->full = true;
		return NULL;
	}
	new = &g->gpu[g->nr++];
	*new = (struct gpu){.part = part, .row = (uint32_t)row};
	snprintf(new->name, sizeof(new->name), "%s", d->name);
	snprintf(new->uuid, sizeof(new->uuid), "%s", d->uuid);
	return new;
}

static void put(struct collect_context *ctx, struct gpu *gpu, const struct gpu_device *d, bool medium)
{
	gpu->reason = NULL;
	table_touch(ctx->table, gpu->row);
	for (size_t i = 0; i < NR_GPU_ROWS; i++) {
		bool known = d->valid >> i & 1;

		if (known || medium || gpu_metric[i].tier == TIER_TICK)
			collect_put(ctx, gpu->row, i, known, d->value[i]);
	}
}

static void apply(struct collect_gpus *g, struct collect_context *ctx, unsigned part)
{
	const struct gpu_reading *r = g->user.source->part[part]->latest;

	for (unsigned i = 0; i < g->nr; i++)
		g->gpu[i].seen = false;
	for (unsigned i = 0; i < r->nr_devices; i++) {
		const struct gpu_device *d = &r->device[i];
		struct gpu *gpu = find(g, ctx, part, d);

		if (!gpu)
			continue;
		gpu->seen = true;
		if (d->lost)
			tell_lost(g, ctx, gpu, d->lost);
		else
			put(ctx, gpu, d, r->medium);
	}
	for (unsigned i = 0; i < g->nr; i++)
		if (g->gpu[i].part == part && !g->gpu[i].seen)
			tell_lost(g, ctx, &g->gpu[i], gone);
}

/* Reports once which rows a device of this maker lacks, and why. */
static void explain(struct collect_gpus *g, struct collect_context *ctx, unsigned part)
{
	static const struct gpu_why unknown = {ABSENT, "the driver does not report it", NULL};
	const struct gpu_reading *r = g->user.source->part[part]->latest;
	uint64_t all = ~UINT64_C(0), any = 0, lacking;

	for (unsigned i = 0; i < r->nr_devices; i++) {
		if (r->device[i].lost)
			continue;
		all &= r->device[i].valid;
		any |= r->device[i].valid;
	}
	lacking = g->user.source->rows & ~all & ~g->explained_rows[part];
	for (size_t i = 0; i < NR_GPU_ROWS; i++) {
		const struct gpu_why *why = &r->why[i];

		if (!(lacking >> i & 1) || (any >> i & 1 && !why->reason))
			continue;
		why = why->reason ? why : &unknown;
		ctx->why(ctx, i, why->availability, why->reason, why->remedy);
		g->explained_rows[part] |= UINT64_C(1) << i;
	}
}

static void lose(struct collect_gpus *g, struct collect_context *ctx, unsigned part)
{
	for (unsigned i = 0; i < g->nr; i++)
		if (g->gpu[i].part == part)
			tell_lost(g, ctx, &g->gpu[i], silent);
}

static void sample_part(struct collect_gpus *g, struct collect_context *ctx, unsigned part)
{
	enum gpu_news news = gpu_source_news(&g->user, ctx, &collector_gpu, part);

	if (news == GPU_SILENT)
		lose(g, ctx, part);
	if (news != GPU_FRESH)
		return;
	apply(g, ctx, part);
	if (g->user.source->part[part]->latest->medium)
		explain(g, ctx, part);
}

static int gpu_open(void *state, struct collect_context *ctx)
{
	struct collect_gpus *g = state;
	int r = gpu_source_join(&g->user, ctx, "gpu_process");

	if (r < 0)
		return r;
	g->user.source->rows = gpu_chosen(ctx, NR_GPU_ROWS);
	return 0;
}

static int gpu_sample(void *state, struct collect_context *ctx)
{
	struct collect_gpus *g = state;

	gpu_source_turn(&g->user, ctx);
	for (unsigned i = 0; i < g->user.source->nr; i++)
		sample_part(g, ctx, i);
	return 0;
}

static void gpu_close(void *state, struct collect_context *ctx)
{
	(void)ctx;
	gpu_source_leave(&((struct collect_gpus *)state)->user);
}

const struct collector collector_gpu = {
	.name = "gpu",
	.summary = "GPUs of NVIDIA, AMD and Intel: use, memory, clocks, power, errors",
	.domain = DOMAIN_GPU,
	.metric = gpu_metric,
	.nr_metrics = NR_GPU_ROWS,
	.state_size = sizeof(struct collect_gpus),
	.tier = TIER_TICK,
	.max_rows = GPUS_MAX,
	.async = true,
	.probe = gpu_probe,
	.open = gpu_open,
	.sample = gpu_sample,
	.close = gpu_close,
};
