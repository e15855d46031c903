/* What each process of the job uses of each GPU: the makers know which processes are on a device, the engine
 * knows which belong to the job. A process on a device is an instance, "nvidia-0/1234"; others are left out.
 *
 * A maker may only know the PIDs of another namespace: a driver in the host, we in a container. Such a PID
 * means nothing here. If only the job uses the device, every process on it is taken for the job's, and the
 * instance says why; if not, it is left out and the reason is reported once. */
#include "collect/gpu_source.h"
#include "collect/keyed.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct metric gpu_process_metric[NR_GPU_PROCESS_ROWS] = {
	[GPU_PROCESS_MEMORY]   = {"gpu_process.memory",   "Memory of the GPU that the process has.", {0}, SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, "gpu memory", TIER_TICK, false},
	[GPU_PROCESS_UTIL]     = {"gpu_process.util",     "Share of time in which the process computed on the GPU.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, "gpu", TIER_TICK, false},
	[GPU_PROCESS_MEM_UTIL] = {"gpu_process.mem_util", "Share of time in which the process read or wrote the GPU's memory.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, NULL, TIER_TICK, false},
	[GPU_PROCESS_ENCODER]  = {"gpu_process.encoder",  "Share of time in which the process used the video encoder.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, NULL, TIER_TICK, false},
	[GPU_PROCESS_DECODER]  = {"gpu_process.decoder",  "Share of time in which the process used the video decoder.", {0}, SCALE_CENTI, KIND_GAUGE, FOLD_SUM, UNIT_RATIO, NULL, TIER_TICK, false},
	[GPU_PROCESS_BUSY]     = {"gpu_process.busy",     "Time for which the process kept the GPU's graphics and compute engines busy.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	[GPU_PROCESS_COPY]     = {"gpu_process.copy",     "Time for which the process kept the GPU's copy engines busy.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	[GPU_PROCESS_VIDEO]    = {"gpu_process.video",    "Time for which the process kept the GPU's video engines busy.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
};
/* clang-format on */

extern const struct collector collector_gpu_process;

/* The process of a PID that a driver named. */
struct match {
	int64_t pid;
	uint32_t id; /* 0: not of the job */
};

struct gpu_processes {
	struct gpu_user user; /* first: the other collector finds the source by it */
	unsigned nr;
	struct gpu_process_place {
		char gpu[48];
		unsigned part;
		int64_t pid;
		uint32_t id, row;
		bool seen, lost;
	} place[GPU_PROCESSES_MAX];
	unsigned nr_matches;
	struct match match[GPU_PROCESSES_MAX]; /* by PID */
	bool full, told_strangers;
	uint64_t explained_rows[GPU_MAKERS_MAX];
};

static struct match *match_find(struct gpu_processes *g, int64_t pid)
{
	unsigned low = 0, high = g->nr_matches;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (g->match[middle].pid == pid)
			return &g->match[middle];
		if (g->match[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Few, and mostly in order: qsort() may allocate. */
static void match_add(struct gpu_processes *g, int64_t pid)
{
	unsigned at = g->nr_matches;

	if (match_find(g, pid))
		return;
	for (; at && g->match[at - 1].pid > pid; at--)
		g->match[at] = g->match[at - 1];
	g->match[at] = (struct match){.pid = pid};
	g->nr_matches++;
}

static int match_member(void *arg, const struct collect_member *m)
{
	struct match *match = match_find(arg, m->pid);

	if (match)
		match->id = m->id;
	return 0;
}

/* Finds the members that the PIDs of the reading belong to. */
static void match_all(struct gpu_processes *g, struct collect_context *ctx, const struct gpu_reading *r)
{
	g->nr_matches = 0;
	for (unsigned i = 0; i < r->nr_processes; i++)
		if (!r->process[i].other_pids)
			match_add(g, r->process[i].pid);
	if (g->nr_matches)
		ctx->members(ctx, match_member, g);
}

static int join(struct collect_context *ctx, const struct gpu_process_place *at, const char *assumed)
{
	char name[80], pid[24], process[16];
	struct about about[4] = {{"gpu", at->gpu}, {"pid", pid}};
	size_t nr = 2;

	snprintf(name, sizeof(name), "%s/%lld", at->gpu, (long long)at->pid);
	snprintf(pid, sizeof(pid), "%lld", (long long)at->pid);
	snprintf(process, sizeof(process), "%u", at->id);
	if (at->id)
		about[nr++] = (struct about){"process", process};
	if (assumed)
		about[nr++] = (struct about){"assumed", assumed};
	return ctx->join_about(ctx, name, about, nr);
}

static struct gpu_process_place *find(struct gpu_processes *g, struct collect_context *ctx,
	const struct gpu_process_place *wanted, const char *assumed)
{
	struct gpu_process_place *new;
	int row = -ENOSPC;

	for (unsigned i = 0; i < g->nr; i++) {
		struct gpu_process_place *p = &g->place[i];

		if (p->pid == wanted->pid && p->id == wanted->id && p->part == wanted->part &&
			!strcmp(p->gpu, wanted->gpu))
			return p;
	}
	if (g->nr < GPU_PROCESSES_MAX)
		row = join(ctx, wanted, assumed);
	if (row < 0) {
		if (!g->full)
			collect_tell(ctx, &collector_gpu_process, FAILED,
				"there are more processes on GPUs than can be recorded: some are left out",
				NULL);
		g->full = true;
		return NULL;
	}
	new = &g->place[g->nr++];
	*new = *wanted;
	new->row = (uint32_t)row;
	return new;
}

/* Why a process whose PID is of another namespace is taken for the job's; NULL: it is not. */
static const char *assume(struct gpu_processes *g, struct collect_context *ctx, unsigned part,
	const struct gpu_device *d, char *out, size_t size)
{
	const char *by;

	if (gpu_source_claim(g->user.source, ctx, g->user.source->part[part], d, &by) == GPU_OF_JOB) {
		snprintf(out, size, "the driver reports PIDs of another namespace; the GPU is the job's%s%s",
			by ? " by " : "", by ? by : "");
		return out;
	}
	if (!g->told_strangers)
		collect_tell(ctx, &collector_gpu_process, FAILED,
			"the driver reports PIDs of another namespace (a container's host), and nothing says "
			"that "
			"the GPU is the job's alone",
			"record in the host, or share its PID namespace (docker --pid=host)");
	g->told_strangers = true;
	return NULL;
}

static struct gpu_process_place *place_of(struct gpu_processes *g, struct collect_context *ctx, unsigned part,
	const struct gpu_reading *r, const struct gpu_process *p)
{
	const struct gpu_device *d = &r->device[p->device];
	struct gpu_process_place wanted = {.part = part, .pid = p->pid};
	const char *assumed = NULL;
	char text[200];

	memcpy(wanted.gpu, d->name, sizeof(wanted.gpu));
	if (p->other_pids) {
		assumed = assume(g, ctx, part, d, text, sizeof(text));
		if (!assumed)
			return NULL;
	} else {
		const struct match *match = match_find(g, p->pid);

		wanted.id = match ? match->id : 0;
		if (!wanted.id)
			return NULL;
	}
	return find(g, ctx, &wanted, assumed);
}

static void drop_unseen(struct gpu_processes *g, struct collect_context *ctx, unsigned part)
{
	for (unsigned i = g->nr; i--;) {
		if (g->place[i].part != part || g->place[i].seen)
			continue;
		ctx->leave(ctx, g->place[i].row);
		g->place[i] = g->place[--g->nr];
	}
}

static void apply(struct gpu_processes *g, struct collect_context *ctx, unsigned part)
{
	const struct gpu_reading *r = g->user.source->part[part]->latest;

	for (unsigned i = 0; i < g->nr; i++)
		g->place[i].seen = false;
	match_all(g, ctx, r);
	for (unsigned i = 0; i < r->nr_processes; i++) {
		const struct gpu_process *p = &r->process[i];
		struct gpu_process_place *at =
			p->device < r->nr_devices ? place_of(g, ctx, part, r, p) : NULL;

		if (!at)
			continue;
		at->seen = true;
		at->lost = false;
		table_touch(ctx->table, at->row);
		for (size_t k = 0; k < NR_GPU_PROCESS_ROWS; k++)
			collect_put(ctx, at->row, k, p->valid >> k & 1, p->value[k]);
	}
	drop_unseen(g, ctx, part);
}

static void explain(struct gpu_processes *g, struct collect_context *ctx, unsigned part)
{
	const struct gpu_reading *r = g->user.source->part[part]->latest;

	for (size_t i = 0; i < NR_GPU_PROCESS_ROWS; i++) {
		const struct gpu_why *why = &r->process_why[i];

		if (!why->reason || g->explained_rows[part] >> i & 1)
			continue;
		ctx->why(ctx, i, why->availability, why->reason, why->remedy);
		g->explained_rows[part] |= UINT64_C(1) << i;
	}
}

static void lose(struct gpu_processes *g, struct collect_context *ctx, unsigned part)
{
	for (unsigned i = 0; i < g->nr; i++) {
		if (g->place[i].part != part || g->place[i].lost)
			continue;
		g->place[i].lost = true;
		collect_lost(ctx, g->place[i].row);
	}
}

static void sample_part(struct gpu_processes *g, struct collect_context *ctx, unsigned part)
{
	enum gpu_news news = gpu_source_news(&g->user, ctx, &collector_gpu_process, part);

	if (news == GPU_SILENT)
		lose(g, ctx, part);
	if (news != GPU_FRESH)
		return;
	apply(g, ctx, part);
	explain(g, ctx, part);
}

static int gpu_process_open(void *state, struct collect_context *ctx)
{
	struct gpu_processes *g = state;
	int r = gpu_source_join(&g->user, ctx, "gpu");

	if (r < 0)
		return r;
	g->user.source->process_rows = gpu_chosen(ctx, NR_GPU_PROCESS_ROWS);
	return 0;
}

static int gpu_process_sample(void *state, struct collect_context *ctx)
{
	struct gpu_processes *g = state;

	gpu_source_turn(&g->user, ctx);
	for (unsigned i = 0; i < g->user.source->nr; i++)
		sample_part(g, ctx, i);
	return 0;
}

static void gpu_process_close(void *state, struct collect_context *ctx)
{
	(void)ctx;
	gpu_source_leave(&((struct gpu_processes *)state)->user);
}

const struct collector collector_gpu_process = {
	.name = "gpu_process",
	.summary = "what each process of the job uses of each GPU",
	.domain = DOMAIN_GPU_PROCESS,
	.metric = gpu_process_metric,
	.nr_metrics = NR_GPU_PROCESS_ROWS,
	.state_size = sizeof(struct gpu_processes),
	.tier = TIER_TICK,
	.max_rows = GPU_PROCESSES_MAX,
	.async = true,
	.probe = gpu_probe,
	.open = gpu_process_open,
	.sample = gpu_process_sample,
	.close = gpu_process_close,
};
