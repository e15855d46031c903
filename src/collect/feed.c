/* The engine's own numbers as metrics: the job's tree as a whole, and what recording it costs.
 *
 * Their source is the struct feed that the engine keeps, so a row names its field. */
#include "collect/collector.h"

#include <stddef.h>

#define FIELD(f)                                \
	{                                       \
		.arg = offsetof(struct feed, f) \
	}

/* clang-format off */
#define ENDED(key, per, help) help
#define GONE_SCALE_SECONDS SCALE_US
#define GONE_SCALE_BYTES SCALE_ONE
#define GONE_SCALE_NUMBER SCALE_ONE
#define GONE(domain, fold, whose, id, name, unit, children, ended) \
	UNLESS_SUM_##children({domain ".gone." name, ended whose, FIELD(gone.used[USED_##id]), GONE_SCALE_##unit, KIND_COUNTER, \
		fold, QUANTITY_UNIT_##unit, NULL, TIER_TICK, false},)
#define TREE_GONE(id, name, unit, children, metric, ended, ...) \
	GONE("tree", FOLD_SUM, " ended processes that no living one accounts for.", id, name, unit, children, ended)
#define GROUP_GONE(id, name, unit, children, metric, ended, ...) \
	GONE("group", FOLD_NONE, " the group's ended processes that no living one of it accounts for.", id, name, unit, children, ended)

static const struct metric tree_metric[] = {
	{"tree.processes",            "Processes of the tree alive now.", FIELD(live), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, "processes", TIER_TICK, false},
	{"tree.joined",               "Processes known one by one so far.", FIELD(joined), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "forks", TIER_TICK, false},
	{"tree.exited",               "Of them, those that have ended.", FIELD(exited), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, "forks", TIER_TICK, false},
	{"tree.unsampled",            "Of them, those that ended before their first sample.", FIELD(unsampled), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tree.unknown",              "Processes that may have run between two samples without being noticed: an upper bound, 0 when the kernel reports every fork.", FIELD(unknown), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	AMOUNTS(TREE_GONE)
	{"tree.gone.max_rss",         "Largest resident size of any one ended process, as the kernel kept it.", FIELD(gone_max_rss_kib), SCALE_KIB, KIND_PEAK, FOLD_MAX, UNIT_BYTES, NULL, TIER_TICK, false},
	{"tree.dropped",              "CPU time of children whose parent ignored SIGCHLD, as far as it was seen.", FIELD(dropped_us), SCALE_US, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"tree.assumed",              "Orphans taken for the attached tree's by user, control group, session and process group: no parent was seen.", FIELD(assumed), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tree.escaped",              "Orphans that may have come from the attached tree and are not counted.", FIELD(escaped), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tree.outside",              "Processes of the job that were found outside the control group made for it; after the first of them its CPU time is counted by processes.", FIELD(outside), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"tree.cgroup.user",          "User CPU time of the control group made for the job.", FIELD(cgroup_user_ns), SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"tree.cgroup.system",        "System CPU time of the control group made for the job.", FIELD(cgroup_system_ns), SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"tree.cgroup.cpu",           "CPU time of all that ever ran in the control group made for the job: exact.", FIELD(cgroup_total_ns), SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "cpu", TIER_TICK, false},
	{"tree.cgroup.memory_peak",   "Peak memory charged to the control group made for the job, page cache included.", FIELD(cgroup_memory_peak), SCALE_ONE, KIND_PEAK, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
};

static const struct metric self_metric[] = {
	{"self.cpu",                  "CPU time the recorder has used.", FIELD(self_cpu_ns), SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, "self", TIER_TICK, false},
	{"self.rss",                  "Resident memory of the recorder.", FIELD(self_rss_kib), SCALE_KIB, KIND_GAUGE, FOLD_SUM, UNIT_BYTES, NULL, TIER_MEDIUM, false},
	{"self.late",                 "How late this tick began.", FIELD(late_ns), SCALE_NS, KIND_GAUGE, FOLD_MAX, UNIT_SECONDS, NULL, TIER_TICK, false},
	{"self.ticks.late",           "Ticks that began more than a tenth of an interval late.", FIELD(late_ticks), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.ticks.missed",         "Ticks that could not be taken at all.", FIELD(missed_ticks), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.ticks.skipped",        "Ticks left out to stay within the budget.", FIELD(skipped_ticks), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.reads.deferred",       "Readings of processes put off to the next tick, so that it comes in time; their CPU time was read.", FIELD(reads_deferred), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.clocks.deferred",      "Readings of the CPU time of processes that sleep, put off to one of the next ticks to stay within the budget.", FIELD(clocks_deferred), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.smaps.reads",          "Readings of PSS and USS.", FIELD(smaps_reads), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.smaps.deferred",       "Readings of PSS and USS put off to stay within the budget.", FIELD(smaps_deferred), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.backoff",              "The slow tiers run at one part in this many of their cadence.", FIELD(backoff), SCALE_ONE, KIND_GAUGE, FOLD_MAX, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.written",              "Bytes in the recording.", FIELD(written_bytes), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_BYTES, NULL, TIER_TICK, false},
	{"self.events_lost",          "Times that process events of the kernel were lost because the buffer was full; the processes were listed again.", FIELD(events_lost), SCALE_ONE, KIND_COUNTER, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
	{"self.files",                "Files the recorder keeps open.", FIELD(open_files), SCALE_ONE, KIND_GAUGE, FOLD_SUM, UNIT_COUNT, NULL, TIER_TICK, false},
};

#undef FIELD
#define FIELD(f)                                      \
	{                                             \
		.arg = offsetof(struct group_feed, f) \
	}
static const struct metric group_metric[] = {
	{"group.processes",           "Processes of the group alive now.", FIELD(live), SCALE_ONE, KIND_GAUGE, FOLD_NONE, UNIT_COUNT, "processes", TIER_TICK, false},
	{"group.joined",              "Processes of the group known one by one so far.", FIELD(joined), SCALE_ONE, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, NULL, TIER_TICK, false},
	{"group.exited",              "Of them, those that have ended.", FIELD(exited), SCALE_ONE, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, NULL, TIER_TICK, false},
	{"group.unsampled",           "Of them, those that ended before their first sample.", FIELD(unsampled), SCALE_ONE, KIND_COUNTER, FOLD_NONE, UNIT_COUNT, NULL, TIER_TICK, false},
	AMOUNTS(GROUP_GONE)
	{"group.gone.max_rss",        "Largest resident size of any one ended process of the group, as the kernel kept it.", FIELD(gone_max_rss_kib), SCALE_KIB, KIND_PEAK, FOLD_NONE, UNIT_BYTES, NULL, TIER_TICK, false},
};
#undef FIELD
#define FIELD(f)                                \
	{                                       \
		.arg = offsetof(struct feed, f) \
	}

static const struct metric limits_metric[] = {
	{"limit.cpus",                "CPUs that the job may use: the least of affinity, control groups and the batch system's grant.", FIELD(limit_cpus_milli), SCALE_MILLI, KIND_CONSTANT, FOLD_SUM, UNIT_COUNT, "cpu", TIER_TICK, false},
	{"limit.memory",              "Memory that the job may use: the least of control groups, the batch system's grant and what is installed.", FIELD(limit_memory_bytes), SCALE_ONE, KIND_CONSTANT, FOLD_SUM, UNIT_BYTES, "memory", TIER_TICK, false},
};

static const struct metric cost_metric[] = {
	{"self.cost",                 "Time spent in this collector.", {0}, SCALE_NS, KIND_COUNTER, FOLD_SUM, UNIT_SECONDS, NULL, TIER_TICK, false},
};
/* clang-format on */

static int feed_open(void *state, struct collect_context *ctx, const char *instance)
{
	int row = ctx->join(ctx, instance);

	(void)state;
	return row < 0 ? row : 0;
}

static int tree_open(void *state, struct collect_context *ctx)
{
	return feed_open(state, ctx, "job");
}

static int self_open(void *state, struct collect_context *ctx)
{
	return feed_open(state, ctx, "tacho");
}

/* `from` is what the rows' fields are members of. */
static void row_fill(
	struct collect_context *ctx, uint32_t row, const void *from, const struct metric *metric, size_t nr)
{
	table_touch(ctx->table, row);
	for (size_t i = 0; i < nr; i++) {
		int64_t value = *(const int64_t *)((const char *)from + metric[i].at.arg);

		collect_put(ctx, row, i, value >= 0, value);
	}
}

static void feed_fill(struct collect_context *ctx, const struct metric *metric, size_t nr)
{
	row_fill(ctx, 0, ctx->feed, metric, nr);
}

static int group_open(void *state, struct collect_context *ctx)
{
	(void)state;
	(void)ctx;
	return 0;
}

/* Groups appear in the order of their numbers, which are also their rows; none is ever removed. */
static int group_sample(void *state, struct collect_context *ctx)
{
	(void)state;
	for (uint32_t i = 0; i < ctx->feed->nr_groups; i++) {
		const struct group_feed *g = &ctx->feed->group[i];
		const struct about about[] = {{"kind", g->kind}, {"target", g->target}, {"own", "1"}};

		if (i >= ctx->table->nr_rows &&
			ctx->join_about(ctx, g->name, about, ARRAY_SIZE(about) - !g->own) < 0)
			return -ENOSPC;
		row_fill(ctx, i, g, group_metric, ARRAY_SIZE(group_metric));
	}
	return 0;
}

static int limits_open(void *state, struct collect_context *ctx)
{
	return feed_open(state, ctx, "job");
}

/* Nothing is limited to zero: a zero means that it is not known. */
static int limits_sample(void *state, struct collect_context *ctx)
{
	const int64_t known[] = {ctx->feed->limit_cpus_milli, ctx->feed->limit_memory_bytes};

	(void)state;
	feed_fill(ctx, limits_metric, ARRAY_SIZE(limits_metric));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!known[i])
			collect_put(ctx, 0, i, false, 0);
	return 0;
}

static int tree_sample(void *state, struct collect_context *ctx)
{
	(void)state;
	feed_fill(ctx, tree_metric, ARRAY_SIZE(tree_metric));
	return 0;
}

static int self_sample(void *state, struct collect_context *ctx)
{
	(void)state;
	feed_fill(ctx, self_metric, ARRAY_SIZE(self_metric));
	return 0;
}

/* One row per collector, in the registry's order, so that row and index agree. */
static int cost_open(void *state, struct collect_context *ctx)
{
	(void)state;
	for (size_t i = 0; collectors[i]; i++) {
		int row = ctx->join(ctx, collectors[i]->name);

		if (row < 0)
			return row;
	}
	return 0;
}

static int cost_sample(void *state, struct collect_context *ctx)
{
	(void)state;
	for (uint32_t row = 0; row < ctx->table->nr_rows; row++) {
		table_touch(ctx->table, row);
		collect_put(ctx, row, 0, true, ctx->feed->cost_ns[row]);
	}
	return 0;
}

static void feed_close(void *state, struct collect_context *ctx)
{
	(void)state;
	(void)ctx;
}

const struct collector collector_tree = {
	.name = "tree",
	.summary = "the job's processes as one: how many, and what the ended ones used",
	.domain = DOMAIN_TREE,
	.metric = tree_metric,
	.nr_metrics = ARRAY_SIZE(tree_metric),
	.tier = TIER_TICK,
	.open = tree_open,
	.sample = tree_sample,
	.close = feed_close,
};

const struct collector collector_group = {
	.name = "group",
	.summary = "each group of processes that a target names: how many, and what the ended ones used",
	.domain = DOMAIN_GROUP,
	.metric = group_metric,
	.nr_metrics = ARRAY_SIZE(group_metric),
	.tier = TIER_TICK,
	.max_rows = GROUPS_MAX,
	.open = group_open,
	.sample = group_sample,
	.close = feed_close,
};

const struct collector collector_limits = {
	.name = "limits",
	.summary = "what the job may use",
	.domain = DOMAIN_NODE,
	.metric = limits_metric,
	.nr_metrics = ARRAY_SIZE(limits_metric),
	.tier = TIER_TICK,
	.open = limits_open,
	.sample = limits_sample,
	.close = feed_close,
};

const struct collector collector_self = {
	.name = "self",
	.summary = "what the recorder itself costs",
	.domain = DOMAIN_NODE,
	.metric = self_metric,
	.nr_metrics = ARRAY_SIZE(self_metric),
	.tier = TIER_TICK,
	.open = self_open,
	.sample = self_sample,
	.close = feed_close,
};

const struct collector collector_cost = {
	.name = "cost",
	.summary = "what each collector costs",
	.domain = DOMAIN_COLLECTOR,
	.metric = cost_metric,
	.nr_metrics = ARRAY_SIZE(cost_metric),
	.tier = TIER_MEDIUM,
	.max_rows = COLLECTORS_MAX,
	.open = cost_open,
	.sample = cost_sample,
	.close = feed_close,
};
