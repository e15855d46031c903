/* One recording to figures. What could not be known says why; what is known with a reservation gets a note.
 */
#include "query/summary.h"

#include "base/owned.h"
#include "base/units.h"
#include "query/nodes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* clang-format off */
const struct summary_row summary_row[NR_FIGURES] = {
	[FIG_WALL]                  = {NULL,           "wall_s",                   false, COMBINE_OWN, .matters = true},
	[FIG_EXIT_CODE]             = {"exit",         "code",                     true,  COMBINE_OWN, .matters = true},
	[FIG_EXIT_SIGNAL]           = {"exit",         "signal",                   true,  COMBINE_OWN, .matters = true},
	[FIG_INTERVAL]              = {NULL,           "interval_s",               false, COMBINE_SAME},
	[FIG_TICKS]                 = {"ticks",        "taken",                    true,  COMBINE_SUM},
	[FIG_MISSED]                = {"ticks",        "missed",                   true,  COMBINE_SUM},
	[FIG_LATE]                  = {"ticks",        "late",                     true,  COMBINE_SUM},
	[FIG_SKIPPED]               = {"ticks",        "skipped",                  true,  COMBINE_SUM},
	[FIG_REDACTED]              = {"redaction",    "command_lines",            true,  COMBINE_SUM},
	[FIG_MEAN_CORES]            = {"cpu",          "mean_cores",               false, COMBINE_OWN, true, .matters = true},
	[FIG_PEAK_CORES]            = {"cpu",          "peak_cores",               false, COMBINE_OWN, true, .matters = true},
	[FIG_PEAK_CORES_AT]         = {"cpu",          "peak_cores_at_s",          false, COMBINE_OWN, true},
	[FIG_PEAK_WINDOW]           = {"cpu",          "peak_window_s",            false, COMBINE_OWN, true},
	[FIG_OBSERVED]              = {"cpu",          "observed_ratio",           false, COMBINE_OWN, true},
	[FIG_COUNTED]               = {"cpu",          "counted_percent",          false, COMBINE_OWN},
	[FIG_CPUS]                  = {"cpu",          "available_cores",          true,  COMBINE_HOSTS},
	[FIG_CPU_OF_ALLOCATION]     = {"cpu",          "of_allocation_ratio",      false, COMBINE_OWN, true},
	[FIG_CPU_OF_NODE]           = {"cpu",          "of_node_ratio",            false, COMBINE_OWN, true},
	[FIG_MEMORY]                = {"memory",       "peak_bytes",               true,  COMBINE_OWN, true, .matters = true},
	[FIG_HWM]                   = {"memory",       "max_process_hwm_bytes",    true,  COMBINE_MAX, true, .matters = true},
	[FIG_TREE_CGROUP_PEAK]      = {"memory",       "cgroup_peak_bytes",        true,  COMBINE_SUM},
	[FIG_MEMORY_TOTAL]          = {"memory",       "installed_bytes",          true,  COMBINE_HOSTS},
	[FIG_MEMORY_OF_ALLOCATION]  = {"memory",       "of_allocation_ratio",      false, COMBINE_OWN, true},
	[FIG_MEMORY_OF_NODE]        = {"memory",       "of_node_ratio",            false, COMBINE_OWN, true},
	[FIG_SEEN]                  = {"processes",    "seen",                     true,  COMBINE_SUM, true, .matters = true},
	[FIG_UNSAMPLED]             = {"processes",    "unsampled",                true,  COMBINE_SUM, true},
	[FIG_ACTIVE]                = {"processes",    "active_s",                 false, COMBINE_OWN, true},
	[FIG_UNFINISHED]            = {"processes",    "unfinished",               true,  COMBINE_SUM},
	[FIG_LIMIT_CPUS]            = {"limits",       "cpus",                     false, COMBINE_HOSTS, true, .matters = true},
	[FIG_LIMIT_MEMORY]          = {"limits",       "memory_bytes",             true,  COMBINE_HOSTS, true, .matters = true},
	[FIG_MACHINE_CPUS]          = {"limits",       "machine_cpus",             true,  COMBINE_HOSTS},
	[FIG_MACHINE_MEMORY]        = {"limits",       "machine_memory_bytes",     true,  COMBINE_HOSTS},
	[FIG_NET_RX_BYTES]          = {"network",      "rx_bytes",                 true,  COMBINE_DONE},
	[FIG_NET_TX_BYTES]          = {"network",      "tx_bytes",                 true,  COMBINE_DONE},
	[FIG_NET_RX_PACKETS]        = {"network",      "rx_packets",               true,  COMBINE_DONE},
	[FIG_NET_TX_PACKETS]        = {"network",      "tx_packets",               true,  COMBINE_DONE},
	[FIG_IB_RX_BYTES]           = {"interconnect", "rx_bytes",                 true,  COMBINE_DONE},
	[FIG_IB_TX_BYTES]           = {"interconnect", "tx_bytes",                 true,  COMBINE_DONE},
	[FIG_IB_RX_PACKETS]         = {"interconnect", "rx_packets",               true,  COMBINE_DONE},
	[FIG_IB_TX_PACKETS]         = {"interconnect", "tx_packets",               true,  COMBINE_DONE},
	[FIG_DISK_READ]             = {"disk",         "read_bytes",               true,  COMBINE_DONE},
	[FIG_DISK_WRITTEN]          = {"disk",         "write_bytes",              true,  COMBINE_DONE},
	[FIG_ENERGY]                = {"energy",       "node_joules",              false, COMBINE_DONE, .matters = true},
	[FIG_POWER]                 = {"energy",       "mean_watts",               false, COMBINE_DONE, .matters = true},
	[FIG_GPU_ENERGY]            = {"energy",       "gpu_joules",               false, COMBINE_DONE},
	[FIG_JOB_GPU_ENERGY]        = {"energy",       "job_gpu_joules",           false, COMBINE_DONE, .matters = true},
	[FIG_MEMBW_READ]            = {"memory_bandwidth", "read_bytes",           true,  COMBINE_DONE},
	[FIG_MEMBW_WRITE]           = {"memory_bandwidth", "write_bytes",          true,  COMBINE_DONE},
	[FIG_MEMBW_TOTAL]           = {"memory_bandwidth", "total_bytes",          true,  COMBINE_DONE, .matters = true},
	[FIG_MEMBW_MEAN]            = {"memory_bandwidth", "mean_bytes_per_s",     false, COMBINE_DONE},
	[FIG_MEMBW_PEAK]            = {"memory_bandwidth", "peak_bytes_per_s",     false, COMBINE_OWN},
	[FIG_CGROUP_PEAK]           = {"cgroup",       "peak_bytes",               true,  COMBINE_MAX, .matters = true},
	[FIG_OOM_KILLS]             = {"cgroup",       "oom_kills",                true,  COMBINE_DONE, .matters = true},
	[FIG_THROTTLED]             = {"cgroup",       "throttled_s",              false, COMBINE_DONE, .matters = true},
	[FIG_SELF_CPU]              = {"self",         "cpu_s",                    false, COMBINE_SUM},
	[FIG_SELF_PERCENT]          = {"self",         "cpu_percent",              false, COMBINE_OWN},
	[FIG_SELF_RSS]              = {"self",         "peak_rss_bytes",           true,  COMBINE_MAX},
#define MATTERS true
#define DETAIL false
#define FIGURE(object, name, matters) object, name
#define MATTERS_FIGURE(object, name, matters) matters
#define ROW(id, name, unit, children, metric, ended, figure, ...) \
	[FIG_##id] = {figure, QUANTITY_UNIT_##unit != UNIT_SECONDS, COMBINE_SUM, true, MATTERS_##figure},
	AMOUNTS(ROW)
#undef ROW
#define LEVEL_VIEW(id, name, matters) LEVEL_MEMORY(id, name, matters) \
	[FIG_ONE_##id] = {"memory", "max_process_" name "_bytes", true, COMBINE_MAX, true},
#define LEVEL_MEMORY(id, name, matters) \
	[FIG_##id] = {"memory", "peak_" name "_bytes", true, COMBINE_OWN, true, matters}, \
	[FIG_##id##_AT] = {"memory", "peak_" name "_at_s", false, COMBINE_OWN, true},
#define LEVEL_COUNT(id, name, matters) [FIG_##id] = {name, "peak", true, COMBINE_OWN, true, matters},
#define ROW(id, name, kind, metric, figure, ...) LEVEL_##kind(id, name, figure)
	LEVELS(ROW)
#undef ROW
#define ROW(id, name, ...) [FIG_##id##_ESTIMATED] = {"memory", "peak_" name "_estimated_ratio", false, COMBINE_OWN, true},
	LEVELS_SHARED(ROW)
#undef ROW
};

const struct summary_text_row summary_text_row[NR_TEXTS] = {
	[TEXT_MEMORY_VIEW]   = {"memory",    "ratio_view",    NULL,                   NULL, FIG_MEMORY_OF_NODE},
	[TEXT_CPUS_SOURCE]   = {"limits",    "cpus_source",   "limits.cpus_source",   NULL, FIG_LIMIT_CPUS},
	[TEXT_MEMORY_SOURCE] = {"limits",    "memory_source", "limits.memory_source", NULL, FIG_LIMIT_MEMORY},
	[TEXT_ENERGY_SOURCE] = {"energy",    "source",        NULL,                   NULL, FIG_ENERGY},
	[TEXT_MEMBW_SOURCE]  = {"memory_bandwidth", "source", NULL,                   NULL, FIG_MEMBW_TOTAL},
	[TEXT_CGROUP]        = {"cgroup",    "path",          NULL,                   "no control group is known as the job's own", -1},
	[TEXT_SCHEDULER]     = {"scheduler", "kind",          "scheduler.kind",       "no batch system was found", -1},
	[TEXT_JOB]           = {"scheduler", "job_id",        "scheduler.job_id",     "no batch system was found", -1},
	[TEXT_FOUND_BY]      = {"scheduler", "found_by",      "scheduler.found_by",   "no batch system was asked for the job's processes", -1},
	[TEXT_JOB_NODES]     = {"reservation", "nodes",       "scheduler.nodes",      "no batch system named them", -1},
	[TEXT_REDACTION]     = {"redaction", "of",            "redact",               NULL, FIG_REDACTED},
	[TEXT_MESSAGE]       = {NULL,        "message",       "message",              "none was given (--message)", -1},
	[TEXT_TARGET]        = {NULL,        "target",        "target",               "tacho did not attach to a single process", -1},
};

static const enum figure_id used_figure[NR_USED] = {
#define ROW(id, ...) [USED_##id] = FIG_##id,
	AMOUNTS(ROW)
#undef ROW
};

static const struct {
	enum figure_id peak;
	int at, one; /* figures of its time and of the most that one process had; -1: none */
} level_figure[] = {
#define AT_VIEW(id) FIG_##id##_AT, FIG_ONE_##id
#define AT_MEMORY(id) FIG_##id##_AT, -1
#define AT_COUNT(id) -1, -1
#define ROW(id, name, kind, ...) [LEVEL_##id] = {FIG_##id, AT_##kind(id)},
	LEVELS(ROW)
#undef ROW
};
/* clang-format on */

static const char why_empty[] = "no sample was taken";
/* Of which how many cores it kept busy can be told: the kernel counts in hundredths. */
#define SHORTEST_LIFE_S 0.01

/* ---- building blocks ---- */

void figure_set(struct summary *s, enum figure_id id, double value)
{
	if (isfinite(value))
		s->figure[id] = (struct figure){.value = value};
	else
		figure_unset(s, id, "the recorded values give no number");
}

void figure_unset(struct summary *s, enum figure_id id, const char *why)
{
	s->figure[id] = (struct figure){.value = NAN, .why = why};
}

int summary_note(struct summary *s, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = texts_addv(&s->note, &s->nr_notes, fmt, ap);
	va_end(ap);
	return r;
}

/* A copy that lives as long as the summary. */
const char *summary_keep(struct summary *s, const char *text)
{
	const char *copy = owned_take(&s->kept, strdup(text));

	return copy ? copy : "no memory";
}

int summary_fact_add(struct summary_fact **list, size_t *nr, const char *name, const char *value)
{
	struct summary_fact *more = ARRAY_ADD(*list, *nr);

	if (!more)
		return -ENOMEM;
	more->name = strdup(name);
	more->value = strdup(value);
	return more->name && more->value ? 0 : -ENOMEM;
}

static void facts_release(struct summary_fact *fact, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(fact[i].name);
		free(fact[i].value);
	}
	free(fact);
}

static void summary_release(struct summary *s)
{
	for (size_t i = 0; i < s->nr_nodes; i++)
		summary_release(&s->node[i]);
	for (size_t i = 0; i < s->nr_groups; i++)
		summary_release(&s->group[i]);
	for (unsigned i = 0; i < NR_TEXTS; i++)
		free(s->text[i]);
	counters_free(s->counter, s->nr_counters);
	texts_free(s->told, s->nr_told);
	summary_gpus_free(s->gpu, s->nr_gpus);
	facts_release(s->hardware, s->nr_hardware);
	facts_release(s->environment, s->nr_environment);
	texts_free(s->note, s->nr_notes);
	phases_free(s->phases);
	attendance_free(s->attendance);
	owned_free(&s->kept);
	free(s->node);
	free(s->group);
	free(s->name);
	free(s->kind);
	free(s->target);
	free(s->path);
	free(s->host);
	free(s->mode);
	free(s->ended);
	free(s->command);
}

struct summary *summary_free(struct summary *s)
{
	if (s)
		summary_release(s);
	free(s);
	return NULL;
}

/* ---- one recording ---- */

/* Negative values are not known. */
static void figure_or(struct summary *s, enum figure_id id, int64_t value, double unit, const char *why)
{
	if (value < 0)
		figure_unset(s, id, why);
	else
		figure_set(s, id, (double)value / unit);
}

static int fill_identity(struct summary *s, const char *path, const struct ledger *a)
{
	const struct meta *meta = ledger_meta(a);
	const struct meta_item *command = meta_find(meta, "command");

	s->path = strdup(path);
	s->host = strdup(meta_text(meta, "host"));
	s->mode = strdup(meta_text(meta, "mode"));
	s->ended = strdup(meta_text(ledger_ending(a), "ended"));
	s->command_len = command ? command->len : 0;
	s->command = malloc(s->command_len + 1);
	if (!s->path || !s->host || !s->mode || !s->ended || !s->command)
		return -ENOMEM;
	if (command)
		memcpy(s->command, command->value, command->len);
	s->command[s->command_len] = 0;
	meta_num(meta, "start_wall_ns", &s->start_wall_ns);
	return 0;
}

static void fill_exit(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	const char *why = !f->complete ? "the recording is unfinished"
		: f->attached	       ? "exit status unknown: tacho only attached to the job"
				       : "the recording ended before the job did";
	int64_t status;

	figure_unset(s, FIG_EXIT_CODE, why);
	figure_unset(s, FIG_EXIT_SIGNAL, why);
	if (!meta_num(ledger_ending(a), "exit_status", &status) || status < 0 || status > 0xffff)
		return;
	if (WIFEXITED((int)status)) {
		figure_set(s, FIG_EXIT_CODE, WEXITSTATUS((int)status));
		figure_unset(s, FIG_EXIT_SIGNAL, "");
	} else if (WIFSIGNALED((int)status)) {
		figure_set(s, FIG_EXIT_SIGNAL, WTERMSIG((int)status));
		figure_unset(s, FIG_EXIT_CODE, "");
	}
}

static void fill_time(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	int64_t end = f->last_ns, interval = -1, ticks = (int64_t)f->ticks, redacted = -1;

	if (meta_num(ledger_ending(a), "end_ns", &end))
		end = MAX(end, 0);
	figure_set(s, FIG_WALL, (double)end / 1e9);
	meta_num(ledger_meta(a), "interval_ns", &interval);
	figure_or(s, FIG_INTERVAL, interval, 1e9, "not recorded");
	meta_num(ledger_ending(a), "ticks", &ticks);
	figure_set(s, FIG_TICKS, (double)ticks);
	figure_or(s, FIG_MISSED, f->missed, 1, ledger_why(a, "self.ticks.missed"));
	figure_or(s, FIG_LATE, f->late, 1, ledger_why(a, "self.ticks.late"));
	figure_or(s, FIG_SKIPPED, f->skipped, 1, ledger_why(a, "self.ticks.skipped"));
	meta_num(ledger_ending(a), "redacted_lines", &redacted);
	figure_or(s, FIG_REDACTED, redacted, 1, "not recorded");
}

/* The total is exact, its split into user and system comes in clock ticks: what those have not seen is shared
 * out as what they have, so that the parts add up to the whole. */
static void fit_split(struct summary *s)
{
	double total = s->figure[FIG_CPU].value, user = s->figure[FIG_USER].value;
	double split = user + s->figure[FIG_SYSTEM].value;

	if (!has_figure(s, FIG_CPU) || !has_figure(s, FIG_USER) || !has_figure(s, FIG_SYSTEM))
		return;
	user = split > 0 ? total * (user / split) : total; /* so rounded, never above the total */
	figure_set(s, FIG_USER, user);
	figure_set(s, FIG_SYSTEM, total - user);
}

static void fill_used(struct summary *s, const struct ledger *a, unsigned line, const struct amounts *last)
{
	for (enum used i = 0; i < NR_USED; i++)
		if (!(last->used_valid >> i & 1))
			figure_unset(s, used_figure[i], ledger_used_why(a, line, i));
		else
			figure_set(
				s, used_figure[i], (double)last->used[i] / (quantity[i].is_time ? 1e9 : 1));
	fit_split(s);
}

struct summary_over summary_over_of(const struct spread *spread, double most)
{
	if (!spread)
		return (struct summary_over){NAN, NAN, NAN};
	return (struct summary_over){.mean = known_min(spread_mean(spread), most),
		.p50 = known_min(spread_quantile(spread, 0.5), most),
		.p95 = known_min(spread_quantile(spread, 0.95), most)};
}

static double rate_of(struct meter *m)
{
	double rate, at, window;

	return meter_peak(m, 0, &rate, &at, &window) ? rate : NAN;
}

static double figure_or_nan(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

/* When the peaks are there. */
static void fill_over(struct summary *s, struct tracker *t)
{
	/* clang-format off */
#define ROW(id, ...) , [OVER_##id] = FIG_##id
	static const enum figure_id most[NR_OVER] = {[OVER_CORES] = FIG_PEAK_CORES LEVELS_VIEWS(ROW)};
#undef ROW
	/* clang-format on */

	for (unsigned i = 0; i < NR_OVER; i++)
		/* Of a single moment there is no time to share out. */
		s->over[i] = i != OVER_CORES && t->spreads && !t->over[i]
			? (struct summary_over){figure_or_nan(s, most[i]), figure_or_nan(s, most[i]),
				  figure_or_nan(s, most[i])}
			: summary_over_of(t->over[i], s->figure[most[i]].value);
	s->rate_peak[FLOW_CPU] = figure_or_nan(s, FIG_PEAK_CORES);
	s->rate_peak[FLOW_READ] = has_figure(s, FIG_READ_BYTES) ? rate_of(&t->read) : NAN;
	s->rate_peak[FLOW_WRITE] = has_figure(s, FIG_WRITE_BYTES) ? rate_of(&t->write) : NAN;
}

static void fill_cores(struct summary *s, struct tracker *t)
{
	double rate, at, window, wall = s->figure[FIG_WALL].value;
	double most = has_figure(s, FIG_CPUS) ? s->figure[FIG_CPUS].value + 0.005 : 0;

	if (!has_figure(s, FIG_CPU) || !(wall > 0)) {
		const char *why = has_figure(s, FIG_CPU) ? "it took no time" : s->figure[FIG_CPU].why;

		for (enum figure_id id = FIG_MEAN_CORES; id <= FIG_PEAK_WINDOW; id++)
			figure_unset(s, id, why);
		return;
	}
	figure_set(s, FIG_MEAN_CORES, s->figure[FIG_CPU].value / wall);
	if (!meter_peak(&t->cpu, most, &rate, &at, &window) || rate < s->figure[FIG_MEAN_CORES].value) {
		rate = s->figure[FIG_MEAN_CORES].value;
		at = window = wall;
	}
	figure_set(s, FIG_PEAK_CORES, rate);
	figure_set(s, FIG_PEAK_CORES_AT, at);
	figure_set(s, FIG_PEAK_WINDOW, window);
}

void raise_peak_cores(struct summary *s, double cores, double window, const char *why_no_time)
{
	double there = figure_or_nan(s, FIG_CPUS);

	/* Half a hundredth of a core above what there is would still be printed as what there is. */
	if (!(cores > figure_or_nan(s, FIG_PEAK_CORES)) || cores > there + 0.005)
		return;
	figure_set(s, FIG_PEAK_CORES, cores);
	figure_set(s, FIG_PEAK_WINDOW, window);
	figure_unset(s, FIG_PEAK_CORES_AT, why_no_time);
	s->rate_peak[FLOW_CPU] = cores;
}

void fill_peaks(struct summary *s, struct tracker *t)
{
	for (unsigned i = 0; i < ARRAY_SIZE(level_figure); i++) {
		const struct top *top = &t->top[i];

		if (!top->has)
			continue;
		figure_set(s, level_figure[i].peak, top->value);
		if (level_figure[i].at >= 0)
			figure_set(s, (enum figure_id)level_figure[i].at, top->at);
	}
	if (t->top[LEVEL_PSS].has)
		figure_set(s, FIG_PSS_ESTIMATED, t->estimated_pss);
	if (t->top[LEVEL_USS].has)
		figure_set(s, FIG_USS_ESTIMATED, t->estimated_uss);
	figure_set(s, FIG_ACTIVE, t->active_s);
	s->cpu_shape = t->cpu_shape;
	s->memory_shape = t->top[LEVEL_PSS].has ? t->pss_shape : t->rss_shape;
	fill_cores(s, t);
	fill_over(s, t);
}

/* Where the last ticks could not be written, the end mark still has the totals of the whole job. */
static bool take_final(
	struct summary *s, const struct ledger *a, enum figure_id id, const char *key, double unit)
{
	int64_t value;

	if (!ledger_facts(a)->end_missing || !meta_num(ledger_ending(a), key, &value) || value < 0 ||
		(has_figure(s, id) && s->figure[id].value >= (double)value / unit))
		return false;
	figure_set(s, id, (double)value / unit);
	return true;
}

static const char *why_not_written(const struct ledger *a)
{
	const char *error = meta_text(ledger_ending(a), "write_error");
	const struct write_error *gap = ledger_facts(a)->gap_error;

	return *error || !gap ? write_error_of(error)->why : gap->why;
}

static void take_final_cpu(struct summary *s, const struct ledger *a)
{
	const char *why = why_not_written(a);

	if (!take_final(s, a, FIG_CPU, "cpu_ns", 1e9))
		return;
	figure_unset(s, FIG_USER, why);
	figure_unset(s, FIG_SYSTEM, why);
}

static void take_final_peaks(struct summary *s, const struct ledger *a)
{
	const char *why = why_not_written(a);

	if (take_final(s, a, FIG_RSS, "peak_rss_bytes", 1))
		figure_unset(s, FIG_RSS_AT, why);
	if (take_final(s, a, FIG_PSS, "peak_pss_bytes", 1)) {
		figure_unset(s, FIG_PSS_AT, why);
		figure_unset(s, FIG_PSS_ESTIMATED, why);
	}
	take_final(s, a, FIG_PROCESSES, "peak_processes", 1);
}

static void fill_share(struct summary *s, enum figure_id id, enum figure_id part, enum figure_id whole)
{
	if (!has_figure(s, part))
		figure_unset(s, id, s->figure[part].why);
	else if (!has_figure(s, whole))
		figure_unset(s, id, s->figure[whole].why);
	else if (!(s->figure[whole].value > 0))
		figure_unset(s, id, "the total is zero");
	else
		figure_set(s, id, s->figure[part].value / s->figure[whole].value);
}

const char *summary_memory_view(const struct summary *s)
{
	double rss = figure_or_nan(s, FIG_RSS), mark = figure_or_nan(s, FIG_HWM);

	/* The kernel keeps no such peak of a group of ours. */
	if (isnan(rss) && isnan(mark) && !s->name &&
		(has_figure(s, FIG_TREE_CGROUP_PEAK) || has_figure(s, FIG_CGROUP_PEAK)))
		return "cgroup";
	return memory_answer(mark, rss, figure_or_nan(s, FIG_PSS));
}

enum figure_id summary_memory(const struct summary *s)
{
	switch (*summary_memory_view(s)) {
	case 'h':
		return FIG_HWM;
	case 'c':
		return has_figure(s, FIG_TREE_CGROUP_PEAK) ? FIG_TREE_CGROUP_PEAK : FIG_CGROUP_PEAK;
	default:
		return has_figure(s, FIG_PSS) ? FIG_PSS : FIG_RSS;
	}
}

/* Percentages are of the allocation, and of the node beside it. */
void fill_shares(struct summary *s)
{
	enum figure_id memory = summary_memory(s);

	s->figure[FIG_MEMORY] = s->figure[memory];
	fill_share(s, FIG_CPU_OF_ALLOCATION, FIG_MEAN_CORES, FIG_LIMIT_CPUS);
	fill_share(s, FIG_CPU_OF_NODE, FIG_MEAN_CORES, FIG_MACHINE_CPUS);
	fill_share(s, FIG_MEMORY_OF_ALLOCATION, FIG_MEMORY, FIG_LIMIT_MEMORY);
	fill_share(s, FIG_MEMORY_OF_NODE, FIG_MEMORY, FIG_MACHINE_MEMORY);
	free(s->text[TEXT_MEMORY_VIEW]);
	s->text[TEXT_MEMORY_VIEW] = !has_figure(s, memory) ? NULL
		: memory == FIG_CGROUP_PEAK		   ? strdup("cgroup.peak_bytes")
							   : strdup(summary_row[memory].name);
}

void take_capacity(struct summary *s, const struct summary *whole)
{
	static const enum figure_id capacity[] = {FIG_WALL, FIG_CPUS, FIG_MACHINE_CPUS, FIG_MACHINE_MEMORY};

	for (size_t i = 0; i < ARRAY_SIZE(capacity); i++)
		s->figure[capacity[i]] = whole->figure[capacity[i]];
}

void fill_self_percent(struct summary *s, double recorded_s)
{
	if (!has_figure(s, FIG_SELF_CPU) || !(recorded_s > 0))
		figure_unset(s, FIG_SELF_PERCENT,
			has_figure(s, FIG_SELF_CPU) ? "it took no time" : s->figure[FIG_SELF_CPU].why);
	else
		figure_set(s, FIG_SELF_PERCENT, 100 * s->figure[FIG_SELF_CPU].value / recorded_s);
}

/* What any one process had at most. */
static void fill_ones(struct summary *s, const struct ledger *a, const struct account_facts *f)
{
	for (unsigned i = 0; i < ARRAY_SIZE(level_figure); i++) {
		if (level_figure[i].one < 0)
			continue;
		if (f->one_valid >> i & 1)
			figure_set(s, (enum figure_id)level_figure[i].one, (double)f->one[i]);
		else
			figure_unset(s, (enum figure_id)level_figure[i].one, ledger_level_why(a, i));
	}
	figure_or(s, FIG_HWM, f->max_hwm_bytes, 1, ledger_why(a, "proc.mem.hwm"));
}

static void fill_cpu(struct summary *s, const struct account_facts *f)
{
#define LEFT "; the job left tacho's control group"
	static const char *const name[][2] = {[CPU_UNKNOWN] = {NULL, NULL},
		[CPU_CGROUP] = {"cgroup", "cgroup" LEFT},
		[CPU_RUSAGE] = {"rusage", "rusage" LEFT},
		[CPU_SAMPLES] = {"rusage+last samples", "rusage+last samples" LEFT}};
	double total = s->figure[FIG_CPU].value;

	s->cpu_source = name[f->cpu_source][f->left];
	if (!s->cpu_source && has_figure(s, FIG_CPU))
		s->cpu_source = "final total";
	s->cpu_lower_bound = f->cpu_is_lower_bound;
	s->io_lower_bound = f->io_is_lower_bound;
	s->memory_lower_bound = f->memory_is_lower_bound;
	if (!has_figure(s, FIG_CPU))
		figure_unset(s, FIG_OBSERVED, s->figure[FIG_CPU].why);
	else if (f->cpu_source == CPU_UNKNOWN)
		figure_unset(s, FIG_OBSERVED, why_empty);
	else if (!(total > 0))
		figure_unset(s, FIG_OBSERVED, "no CPU time was used");
	else
		figure_set(s, FIG_OBSERVED, MIN(1, MAX(0, (double)f->observed_cpu_ns * 1e-9 / total)));
}

/* Totals of the whole job beside shares of what was written would contradict each other. */
static void drop_shares_of_a_part(struct summary *s, const struct ledger *a)
{
	const char *why = why_not_written(a);

	s->end_missing = ledger_facts(a)->end_missing;
	if (!s->end_missing)
		return;
	figure_unset(s, FIG_UNSAMPLED, why);
	figure_unset(s, FIG_OBSERVED, why);
	if (ledger_facts(a)->ticks)
		return;
	figure_unset(s, FIG_PEAK_CORES, why);
	figure_unset(s, FIG_PEAK_CORES_AT, why);
	figure_unset(s, FIG_PEAK_WINDOW, why);
}

/* What the whole and a group have alike. */
static void fill_line(struct summary *s, const struct ledger *a, unsigned line, const struct amounts *last,
	struct tracker *t)
{
	struct account_facts f = ledger_line(a, line);
	int64_t unknown = ledger_facts(a)->unknown;

	for (unsigned i = 0; i < ARRAY_SIZE(level_figure); i++) {
		const char *why = ledger_level_why(a, i);

		figure_unset(s, level_figure[i].peak, why);
		if (level_figure[i].at >= 0)
			figure_unset(s, (enum figure_id)level_figure[i].at, why);
	}
	figure_unset(s, FIG_PSS_ESTIMATED, s->figure[FIG_PSS].why);
	figure_unset(s, FIG_USS_ESTIMATED, s->figure[FIG_USS].why);
	fill_ones(s, a, &f);
	figure_set(s, FIG_SEEN, (double)f.seen);
	if (!line && f.unsampled >= 0 && unknown > 0) {
		f.unsampled += unknown;
		s->unsampled_is_upper_bound = true;
	}
	figure_or(
		s, FIG_UNSAMPLED, f.unsampled, 1, ledger_why(a, line ? "group.unsampled" : "tree.unsampled"));
	if (!line && unknown < 0 && f.unsampled >= 0 && ledger_is_available(a, "tree.unknown"))
		figure_unset(
			s, FIG_UNSAMPLED, "/proc/loadavg could not be read, which tells of new processes");
	fill_used(s, a, line, last);
	if (!line) {
		take_final(s, a, FIG_HWM, "max_process_bytes", 1);
		take_final(s, a, FIG_ONE_RSS, "max_process_bytes", 1);
		take_final(s, a, FIG_SEEN, "processes", 1);
		take_final_cpu(s, a);
	}
	fill_peaks(s, t);
	/* What lived between two samples ran faster than they show. */
	if (t->active_s >= SHORTEST_LIFE_S)
		raise_peak_cores(s, figure_or_nan(s, FIG_CPU) / t->active_s, t->active_s,
			"it was over all the time in which there were processes");
	if (!line)
		take_final_peaks(s, a);
	fill_cpu(s, &f);
	fill_shares(s);
	if (!line)
		drop_shares_of_a_part(s, a);
}

static void fill_facts(struct summary *s, const struct ledger *a)
{
	static const char group_peak[] = "tree.cgroup.memory_peak";
	const struct ledger_facts *f = ledger_facts(a);
	int64_t cpus = -1, memory = -1;

	meta_num(ledger_meta(a), "nr_cpus", &cpus);
	meta_num(ledger_meta(a), "mem_total_bytes", &memory);
	figure_or(s, FIG_CPUS, cpus, 1, "not recorded");
	figure_or(s, FIG_MEMORY_TOTAL, memory, 1, "not recorded");
	figure_or(s, FIG_TREE_CGROUP_PEAK, f->cgroup_peak_bytes, 1,
		f->has_cgroup || !ledger_is_available(a, group_peak)
			? ledger_why(a, group_peak)
			: "no control group was made for the job");
	figure_set(s, FIG_UNFINISHED, (double)f->unfinished);
	figure_or(s, FIG_SELF_CPU, f->self_cpu_ns, 1e9, ledger_why(a, "self.cpu"));
	figure_or(s, FIG_SELF_RSS, f->self_rss_bytes, 1, ledger_why(a, "self.rss"));
	s->complete = f->complete;
	s->lost_bytes = (double)f->lost_bytes;
}

/* Reasons may point into the recording's schema, which is closed before the summary is read. */
static void keep_reasons(struct summary *s, const struct ledger *a)
{
	const char *why = ledger_facts(a)->end_missing ? why_not_written(a) : why_empty;

	if (!ledger_facts(a)->ticks)
		for (enum figure_id id = FIG_USER; id < NR_FIGURES; id++)
			if (s->figure[id].why && *s->figure[id].why)
				s->figure[id].why = why;
	for (enum figure_id id = 0; id < NR_FIGURES; id++)
		if (s->figure[id].why)
			s->figure[id].why = summary_keep(s, s->figure[id].why);
}

int summary_fill(struct summary *s, const char *path, const struct ledger *a, const struct amounts *last,
	struct tracker *t)
{
	int r = fill_identity(s, path, a);

	if (r < 0)
		return r;
	fill_exit(s, a);
	fill_time(s, a);
	fill_facts(s, a);
	r = fill_node(s, a);
	if (r < 0)
		return r;
	fill_line(s, a, 0, last, t);
	fill_self_percent(s, s->figure[FIG_WALL].value);
	r = fill_counters(s, a);
	if (r >= 0)
		r = fill_told(s, a);
	if (r >= 0)
		r = fill_gpus(s, a, 0);
	keep_reasons(s, a);
	if (r >= 0)
		r = summary_notes(s, a);
	summary_alarms(s);
	return r;
}

int summary_fill_group(struct summary *whole, struct summary *s, const struct ledger *a, unsigned line,
	const struct amounts *last, struct tracker *t)
{
	struct account_facts f = ledger_line(a, line);
	int r;

	s->name = strdup(f.name);
	s->kind = strdup(f.kind ? f.kind : "");
	s->target = strdup(f.target ? f.target : "");
	s->host = strdup(whole->host);
	if (!s->name || !s->kind || !s->target || !s->host)
		return -ENOMEM;
	s->own = f.own;
	take_capacity(s, whole);
	r = fill_group_limits(s, whole, ledger_meta(a));
	if (r < 0)
		return r;
	fill_line(s, a, line, last, t);
	keep_reasons(s, a);
	return fill_gpus(s, a, line);
}
