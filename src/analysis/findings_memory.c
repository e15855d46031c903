/* Memory: how much against what was allowed, and by which view; growth that does not end; swap. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0

/* ---- which view ---- */

/* What programs have in the group can be no more than the job's resident memory when it is the job's alone.
 * Memory that was read at another moment, and processes too short to be seen, are a little. */
#define GROUP_MORE 1.1
#define GROUP_MORE_BYTES (16 * MIB)

bool group_has_others(const struct analysis *s, const struct summary *part, size_t node)
{
	size_t more = 0, known = 0;
	struct curve anon, rss;

	/* What a batch system started for the job is the job's, whether it is watched or not. */
	if (part->text[TEXT_SCHEDULER] || !curve_named(s, EV_CG_ANON, node, part->text[TEXT_CGROUP], &anon) ||
		!curve_of(s, EV_RSS, node, &rss))
		return false;
	for (size_t i = 0; i < anon.axis->nr_times; i++) {
		double in_group = anon.line->mean[i], own = rss.line->mean[i];

		known += !isnan(in_group) && !isnan(own);
		more += in_group > GROUP_MORE * own + GROUP_MORE_BYTES;
	}
	return 2 * more > known;
}

/* What programs hold of a control group: what the kernel cannot take back when the limit is reached. Page
 * cache can be, so memory.peak is no measure of need. */
static bool group_view(
	const struct analysis *s, const struct summary *part, size_t node, struct memory_view *ret)
{
	const char *source = part->text[TEXT_MEMORY_SOURCE];
	struct curve anon, shmem;
	bool shared;

	if (!source || !str_starts(source, "cgroup ") ||
		!curve_named(s, EV_CG_ANON, node, part->text[TEXT_CGROUP], &anon))
		return false;
	shared = curve_named(s, EV_CG_SHMEM, node, part->text[TEXT_CGROUP], &shmem);
	*ret = (struct memory_view){.bytes = -1,
		.name = group_has_others(s, part, node)
			? "memory of all programs in the control group, others than the job's included"
			: "memory of programs in the control group",
		.evidence = "cgroup.memory.anon+shmem"};
	for (size_t i = 0; i < anon.axis->nr_times; i++) {
		double sum = anon.line->high[i];

		if (shared && !isnan(shmem.line->high[i]))
			sum += shmem.line->high[i];
		if (!(sum > ret->bytes))
			continue;
		ret->bytes = sum;
		ret->at_s = anon.axis->time_s[i];
	}
	return ret->bytes >= 0;
}

/* The summary's answer; where a control group limits the job and its programs hold more (others are in it, or
 * it was read at a better moment), that. RSS counts shared pages once for each process: too much, but never
 * too little. */
struct memory_view memory_view_of(
	const struct analysis *s, const struct summary *part, size_t node, bool alone)
{
	struct memory_view v = {.bytes = figure_of(part, summary_memory(part)), .at_s = NAN}, group;

	switch (summary_memory(part)) {
	case FIG_HWM:
		v.name = "high-water mark of one process";
		v.evidence = "memory.max_process_hwm_bytes";
		v.reservation = "reached between two samples; what others had at that moment comes on top";
		break;
	case FIG_PSS:
		v.at_s = run_time(s, node, figure_of(part, FIG_PSS_AT));
		v.name = "PSS";
		v.evidence = "memory.peak_pss_bytes";
		if (figure_of(part, FIG_PSS_ESTIMATED) > 0.5)
			v.reservation = "more than half of it estimated between two readings";
		break;
	case FIG_RSS:
		v.at_s = run_time(s, node, figure_of(part, FIG_RSS_AT));
		v.name = "RSS, summed over processes";
		v.evidence = "memory.peak_rss_bytes";
		v.reservation = "an upper bound: pages that processes share count once for each";
		break;
	default:
		v.name = "peak of the control group";
		v.evidence = "memory.peak_bytes";
		v.reservation = "an upper bound: cached files are in it";
	}
	if (group_view(s, part, node, &group) && !(group.bytes <= v.bytes) &&
		!(alone && group_has_others(s, part, node)))
		v = group;
	if (part->memory_lower_bound && !v.reservation)
		v.reservation = "a lower bound: what processes had between their last sample and their end "
				"is not known";
	return v;
}

/* ---- against the limit ---- */

#define MEMORY_NEAR 0.9
/* Less than a quarter, and a GiB at least, is worth giving back. */
#define MEMORY_LITTLE 0.25
#define MEMORY_LITTLE_BYTES GIB
#define MEMORY_WELL 0.5

static void say_memory(struct look *l, size_t i, const struct memory_view *v, double limit)
{
	const struct summary *part = part_of(l, i);
	bool granted = is_granted(part, FIG_LIMIT_MEMORY, FIG_MACHINE_MEMORY);
	const char *peak = format_bytes(SHOWN, v->bytes), *allowed = format_bytes(SHOWN, limit);
	const char *source = part->text[TEXT_MEMORY_SOURCE];
	double share = v->bytes / limit;
	struct finding *f;

	if (share >= MEMORY_NEAR) {
		f = found_on(l, i, "memory-near-limit", FINDING_WARNING, "memory",
			"The memory peak of %s is %.0f %% of the limit of %s", peak, 100 * share, allowed);
		found_say(l, f,
			"A little more and the job is killed. Ask for more memory; the limit is set by %s.",
			source ? TEXT_SHOWN(source) : "what is installed");
	} else if (granted && share < MEMORY_LITTLE && limit - v->bytes >= MEMORY_LITTLE_BYTES) {
		f = found_on(l, i, "unused-memory", FINDING_NOTE, "memory",
			"%s of the %s of memory asked for were used", peak, allowed);
		found_say(l, f, "Ask for less: others can use it, and the job may start sooner.");
	} else if (granted && share >= MEMORY_WELL) {
		f = found_on(l, i, "memory-used", FINDING_FINE, "memory",
			"The memory peak of %s fits the %s allowed", peak, allowed);
		found_say(l, f, "There is room for a somewhat larger run, and little is wasted.");
	} else {
		return;
	}
	found_say(l, f, "The number is the %s%s%s.", v->name, v->reservation ? ", " : "",
		v->reservation ? v->reservation : "");
	found_where(f, v->at_s, v->at_s);
	found_evidence(l, f, v->evidence, v->bytes, UNIT_BYTES);
	found_figures(l, f, part, FIG_LIMIT_MEMORY);
}

/* Of several nodes the one that comes nearest: it decides what to ask for. */
void look_memory(struct look *l)
{
	struct memory_view best = {.bytes = NAN};
	double best_limit = NAN;
	size_t best_at = 0;

	for (size_t i = 0; i < nr_parts(l); i++) {
		struct memory_view v = memory_view_of(l->analysis, part_of(l, i), i, false);
		double limit = figure_of(part_of(l, i), FIG_LIMIT_MEMORY);

		if (!(limit > 0) || isnan(v.bytes) || v.bytes / limit <= best.bytes / best_limit)
			continue;
		best = v;
		best_limit = limit;
		best_at = i;
	}
	if (!isnan(best.bytes) && !found_has(l, "oom"))
		say_memory(l, best_at, &best, best_limit);
}

/* ---- steady growth ---- */

/* The first fifth is warm-up; the rest is seen as this many parts of equal length, each as its least value,
 * so that the teeth of a garbage collector do not count, only what is left after it. Of a run of few ticks
 * there are fewer parts: each must have two of them. */
#define GROWTH_PARTS 16
#define GROWTH_PARTS_LEAST 8
#define GROWTH_TICKS_LEAST 20
#define GROWTH_WARM_UP 0.2
/* Where the highest point lies earlier the growth has ended. */
#define GROWTH_TO_THE_END 0.8
/* Of the parts so many must grow, each by a quarter of what is fair: steps are no slope. */
#define GROWTH_STEADY 0.75
#define GROWTH_FAIR 0.25
/* The second half against the first: what flattens is filling a cache. */
#define GROWTH_KEEPS 0.6
/* Of a shorter run all is start-up. */
#define GROWTH_LEAST_S 10.0
#define GROWTH_LEAST_BYTES (16 * MIB)
#define GROWTH_LEAST_SHARE 0.1
/* From here on it is a matter of concern, not only of note. */
#define GROWTH_LONG_S 60.0

struct slope {
	double from_s, to_s, per_s;
	unsigned parts;
	double first, last; /* of the first part and of the last one: so far apart as all but one are long */
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The least value of each part of [from, to]; false when one has none. */
static bool parts_least(const struct curve *c, double from, double to, unsigned parts, double *ret_least)
{
	double length = (to - from) / parts;

	for (unsigned i = 0; i < parts; i++)
		ret_least[i] = INFINITY;
	for (size_t i = 0; i < c->axis->nr_times; i++) {
		double at = c->axis->time_s[i], value = c->line->low[i];
		unsigned part;

		if (!(at >= from) || at > to || isnan(value))
			continue;
		part = (unsigned)MIN((at - from) / length, parts - 1);
		ret_least[part] = MIN(ret_least[part], value);
	}
	for (unsigned i = 0; i < parts; i++)
		if (!isfinite(ret_least[i]))
			return false;
	return true;
}

/* Theil and Sen: the median of the slopes between all pairs. A few odd points do not move it. */
static double median_slope(const double *value, unsigned parts, double length)
{
	double slope[GROWTH_PARTS * (GROWTH_PARTS - 1) / 2];
	size_t nr = 0;

	for (unsigned i = 0; i < parts; i++)
		for (unsigned j = i + 1; j < parts; j++)
			slope[nr++] = (value[j] - value[i]) / ((j - i) * length);
	qsort(slope, nr, sizeof(*slope), by_size);
	return (slope[nr / 2] + slope[(nr - 1) / 2]) / 2;
}

static bool is_steady(const double *value, unsigned parts, double per_part)
{
	unsigned middle = parts / 2, grown = 0;
	double before = value[middle] - value[0], after = value[parts - 1] - value[middle - 1];

	for (unsigned i = 1; i < parts; i++)
		grown += value[i] - value[i - 1] >= GROWTH_FAIR * per_part;
	return grown >= GROWTH_STEADY * (parts - 1) && after >= GROWTH_KEEPS * before;
}

static unsigned parts_of(const struct curve *c)
{
	size_t two_each = (size_t)((1 - GROWTH_WARM_UP) * (double)c->axis->nr_times) / 2;

	return (unsigned)MIN(MAX(two_each, (size_t)GROWTH_PARTS_LEAST), (size_t)GROWTH_PARTS);
}

static bool find_slope(const struct curve *c, double from, double to, struct slope *ret)
{
	unsigned parts = parts_of(c);
	double length = (to - from) / parts, least[GROWTH_PARTS], per_s;

	if (!(length > 0) || !parts_least(c, from, to, parts, least))
		return false;
	per_s = median_slope(least, parts, length);
	if (!(per_s > 0) || !is_steady(least, parts, per_s * length) ||
		per_s * (to - from) < GROWTH_LEAST_BYTES ||
		per_s * (to - from) < GROWTH_LEAST_SHARE * c->line->most)
		return false;
	*ret = (struct slope){.from_s = from,
		.to_s = to,
		.first = least[0],
		.parts = parts,
		.last = least[parts - 1],
		.per_s = per_s};
	return true;
}

/* The process whose own curve grew by more than half of it. */
static const struct curves_line *who_grew(const struct look *l, size_t node, const struct slope *all)
{
	const struct curves *curves = l->analysis->curves;
	const char *metric = finding_query[EV_PSS].metric;

	for (size_t i = 0; i < curves->nr_lines; i++) {
		const struct curves_line *line = &curves->line[i];
		struct curve c = {.line = line};
		struct slope own;

		if (!line->pid || line->others || line->node != node || line->query >= curves->nr_columns ||
			!curves->column[line->query].name ||
			strcmp(curves->column[line->query].name, metric) || isnan(line->most) || !line->mean)
			continue;
		c.axis = &curves->node[node];
		if (find_slope(&c, all->from_s, all->to_s, &own) && own.per_s > all->per_s / 2)
			return line;
	}
	return NULL;
}

static void say_growth(struct look *l, size_t i, const struct curve *c, const struct slope *g)
{
	const struct summary *part = part_of(l, i);
	double limit = figure_of(part, FIG_LIMIT_MEMORY), length = g->to_s - g->from_s;
	double left_s = (limit - c->line->most) / g->per_s;
	bool concern =
		length >= GROWTH_LONG_S && (g->per_s * length >= 0.25 * c->line->most || left_s < 4 * length);
	bool pss = c->line->query == l->analysis->first_finding_query + EV_PSS;
	const struct curves_line *who = who_grew(l, i, g);
	double hour = g->per_s < MIB ? 3600 : 1;
	struct finding *f = found_on(l, i, "memory-growth", concern ? FINDING_WARNING : FINDING_NOTE,
		"memory", "Memory grew steadily by %s/%s up to the end", format_bytes(SHOWN, g->per_s * hour),
		hour > 1 ? "h" : "s");

	found_say(l, f, "From %s to %s in %s (%s).", format_bytes(SHOWN, g->first),
		format_bytes(SHOWN, g->last), format_duration(SHOWN, length * (g->parts - 1) / g->parts),
		pss ? "PSS" : "RSS, summed over processes");
	if (who)
		found_say(l, f, "It is the process %s (PID %lld).", NAME_SHOWN(who->name, who->name_len),
			(long long)who->pid);
	found_say(l, f, "That is a leak, or data that the program gathers; a longer run will need more.");
	if (left_s > 0 && left_s < 1e9)
		found_say(l, f, "At this rate the limit of %s is reached %s later.",
			format_bytes(SHOWN, limit), format_duration(SHOWN, left_s));
	found_where(f, g->from_s, g->to_s);
	found_evidence(l, f, "slope_bytes_per_s", g->per_s, UNIT_BYTES);
	if (f && f->nr_evidence)
		f->evidence[f->nr_evidence - 1].per_second = true;
	found_evidence(l, f, "grown_bytes", g->last - g->first, UNIT_BYTES);
	found_figures(l, f, part, FIG_LIMIT_MEMORY);
}

void look_growth(struct look *l, size_t i)
{
	double wall = figure_of(part_of(l, i), FIG_WALL), start;
	struct curve c;
	struct slope g;

	if (!curve_of(l->analysis, EV_PSS, i, &c) && !curve_of(l->analysis, EV_RSS, i, &c))
		return;
	start = c.axis->offset_s;
	if (wall >= GROWTH_LEAST_S && c.axis->nr_times >= GROWTH_TICKS_LEAST &&
		c.line->most_at_s >= start + GROWTH_TO_THE_END * wall &&
		find_slope(&c, start + GROWTH_WARM_UP * wall, c.line->most_at_s, &g))
		say_growth(l, i, &c, &g);
}

/* ---- swap ---- */

/* A few pages that are not needed are swapped out on every machine. */
#define SWAP_LEAST_BYTES (16 * MIB)
#define SWAP_LEAST_SHARE 0.02

void look_swap(struct look *l, size_t i)
{
	const struct summary *part = part_of(l, i);
	double swap = figure_of(part, FIG_SWAP), rss = figure_of(part, FIG_RSS),
	       at = run_time(l->analysis, i, figure_of(part, FIG_SWAP_AT));
	struct finding *f;
	struct curve c;

	if (!(swap >= SWAP_LEAST_BYTES) || swap < SWAP_LEAST_SHARE * rss)
		return;
	f = found_on(l, i, "swapping", FINDING_WARNING, "memory-views",
		"Up to %s of the job's memory were swapped out", format_bytes(SHOWN, swap));
	found_say(l, f,
		"Memory did not suffice, and what is in swap comes back at the pace of a disk. Ask for more "
		"memory, or do less at a time.");
	if (figure_of(part, FIG_MAJOR) > 0)
		found_say(l, f, "%s times a process waited for a page.",
			format_count(SHOWN, figure_of(part, FIG_MAJOR)));
	found_where(f, at, at);
	found_figures(l, f, part, FIG_SWAP, FIG_MAJOR);
	if (curve_of(l->analysis, EV_SWAP_IN, i, &c))
		found_evidence(l, f, "paging.swap_in", curve_grown(&c), UNIT_BYTES);
	found_figures(l, f, part, FIG_RSS);
}
