/* What the job's phases show: which repetition stands out and why, which phase leaves memory behind, starves
 * or lets GPUs idle. And the phase in which any other finding is to be seen. */
#include "analysis/rule.h"

#include "text/phases.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "epoch 5", "backward of epoch 5": as long as the block in which it stands; "" where there is none. */
#define PHASE_SHOWN(p, from_s, to_s) phase_shown((char[2 *NAME_SIZE]){0}, p, from_s, to_s)

static const char *phase_shown(
	char out[static 2 * NAME_SIZE], const struct phases *p, double from_s, double to_s)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	if (p && add_phase_at(p, from_s, to_s, &text)) {
		clip(&text, 0, 60, true);
		snprintf(out, 2 * NAME_SIZE, "%s", (char *)text.data);
	}
	buf_release(&text);
	return out;
}

static const char *name_of(char out[static NAME_SIZE], const struct phase *p)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	buf_adds(&text, p->name);
	clip(&text, 0, 40, true);
	snprintf(out, NAME_SIZE, "%s", (char *)text.data);
	buf_release(&text);
	return out;
}
#define NAME_OF(p) name_of((char[NAME_SIZE]){0}, p)

static const struct phase *repetition_of(const struct phases *p, size_t fold, uint32_t number)
{
	for (size_t i = 0; i < p->nr_repetitions; i++)
		if (p->repetition[i].fold == fold && p->repetition[i].number == number)
			return &p->repetition[i];
	return NULL;
}

/* ---- the repetition that stands out ---- */

/* Less than that of the run, or of a second, is not worth a look. */
#define OUTLIER_LEAST 0.01
#define OUTLIER_LEAST_S 0.3
#define OUTLIER_GRAVE 0.05

/* Of the phases in this one that stand out at the same time, the one that explains most. */
static const struct phase *cause_within(const struct phases *p, size_t fold, const struct phase *slow)
{
	const struct phase *best = NULL;
	double most = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct phase *in = &p->phase[i], *rep;

		if (in->parent != (int)fold || !in->slowest)
			continue;
		rep = repetition_of(p, i, in->slowest);
		if (!rep || rep->begin_s < slow->begin_s || rep->end_s > slow->end_s ||
			in->slower * in->mean_s <= most)
			continue;
		most = in->slower * in->mean_s;
		best = in;
	}
	return best;
}

/* It is told of the phase around it, which stands out by it. */
static bool is_told_around(const struct phases *p, size_t fold, const struct phase *slow)
{
	int around = p->phase[fold].parent;
	const struct phase *rep = around < 0 || !p->phase[around].slowest
		? NULL
		: repetition_of(p, (size_t)around, p->phase[around].slowest);

	return rep && rep->begin_s <= slow->begin_s && rep->end_s >= slow->end_s;
}

static void look_outlier(struct look *l, const struct phases *p, size_t fold)
{
	const struct phase *of = &p->phase[fold],
			   *slow = of->slowest ? repetition_of(p, fold, of->slowest) : NULL, *within;
	double wall = figure_of(l->run, FIG_WALL), took, extra;
	struct finding *f;

	if (!slow || of->brief || is_told_around(p, fold, slow))
		return;
	took = slow->value[PHASE_WALL];
	extra = took - took / (1 + of->slower);
	if (!(extra >= OUTLIER_LEAST * wall) || extra < OUTLIER_LEAST_S)
		return;
	f = found(l, "phase-outlier", extra >= OUTLIER_GRAVE * wall ? FINDING_WARNING : FINDING_NOTE, "cpu",
		"%s took %s longer than the other %u", PHASE_SHOWN(p, slow->begin_s, slow->end_s),
		format_duration(SHOWN, extra), of->count - 1);
	found_say(l, f, "%s instead of %s: %s.", format_duration(SHOWN, took),
		format_duration(SHOWN, took - extra), format_slower(SHOWN, of->slower));
	within = cause_within(p, fold, slow);
	if (within)
		found_say(l, f, "Most of it was in %s.", NAME_OF(within));
	if (of->slower_why || (within && within->slower_why))
		found_say(l, f, "What differed: %s.", of->slower_why ? of->slower_why : within->slower_why);
	else
		found_say(l, f, "Nothing that was measured explains it: it may have had other work to do.");
	found_where(f, slow->begin_s, slow->end_s);
	found_evidence(l, f, "phases.each.mean_s", of->mean_s, UNIT_SECONDS);
	found_evidence(l, f, "phases.each.slower_percent", of->slower, UNIT_RATIO);
	found_evidence(l, f, "phases.cpu_pressure_s", slow->value[PHASE_CPU_PRESSURE], UNIT_SECONDS);
	found_evidence(l, f, "phases.run_queue_s", slow->value[PHASE_RUN_QUEUE], UNIT_SECONDS);
}

/* ---- memory that is left behind ---- */

#define LEAK_REPETITIONS 5 /* without the first, which fills caches */
#define LEAK_STEADY 0.75   /* of the steps are upwards */
#define LEAK_LEAST_BYTES (16.0 * (1 << 20))
#define LEAK_LEAST_SHARE 0.1
#define LEAK_KEEPS 0.5 /* the second half against the first: what flattens is filling a cache */
#define LEAK_LONG_S 60.0

struct leak {
	double first, last;
	uint32_t from, to; /* numbers of repetitions */
};

static double held(const struct phase *p)
{
	return isnan(p->value[PHASE_PSS_MEAN]) ? p->value[PHASE_RSS_MEAN] : p->value[PHASE_PSS_MEAN];
}

static bool find_leak(const struct phases *p, size_t fold, struct leak *ret)
{
	double before = NAN, middle = NAN;
	size_t steps = 0, up = 0;

	*ret = (struct leak){.first = NAN};
	for (size_t i = 0; i < p->nr_repetitions; i++) {
		const struct phase *rep = &p->repetition[i];
		double now = held(rep);

		if (rep->fold != fold || rep->number < 2 || isnan(now))
			continue;
		if (isnan(ret->first)) {
			ret->first = now;
			ret->from = rep->number;
		} else {
			steps++;
			up += now > before;
		}
		if (rep->number <= p->phase[fold].count / 2 + 1)
			middle = now;
		before = ret->last = now;
		ret->to = rep->number;
	}
	return steps >= LEAK_REPETITIONS - 1 && (double)up >= LEAK_STEADY * (double)steps &&
		ret->last - ret->first >= MAX(LEAK_LEAST_BYTES, LEAK_LEAST_SHARE * ret->last) &&
		ret->last - middle >= LEAK_KEEPS * (middle - ret->first);
}

/* The memory of the job at the last sample before a moment; NAN: not known. */
static double memory_at(const struct curve *c, double time_s)
{
	size_t low = 0, high = c->axis->nr_times;

	while (low < high) {
		size_t at = (low + high) / 2;

		if (c->axis->time_s[at] <= time_s)
			low = at + 1;
		else
			high = at;
	}
	return low ? (double)c->line->mean[low - 1] : NAN;
}

/* The sample that an edge asks for comes right after it. */
#define EDGE_S 0.02

/* By so much all repetitions of a phase together raised the memory of the job, each from its begin to its
 * end. */
static double raised_in(const struct phases *p, size_t fold, const struct curve *c)
{
	double sum = 0;

	for (size_t i = 0; i < p->nr_repetitions; i++) {
		const struct phase *rep = &p->repetition[i];
		double grew = rep->fold != fold
			? 0
			: memory_at(c, rep->end_s + EDGE_S) - memory_at(c, rep->begin_s + EDGE_S);

		sum += isfinite(grew) ? grew : 0;
	}
	return sum;
}

/* Of the phases in this one the one that raised memory by most of what it was raised by. */
#define RAISED_MOST 0.6

static void say_where_raised(
	struct look *l, struct finding *f, const struct phases *p, int fold, double grown)
{
	struct curve c;

	if (nr_parts(l) > 1 ||
		(!curve_of(l->analysis, EV_PSS, 0, &c) && !curve_of(l->analysis, EV_RSS, 0, &c)))
		return;
	for (size_t i = 0; i < p->nr; i++) {
		double raised;

		if (p->phase[i].parent != fold || p->phase[i].brief)
			continue;
		raised = raised_in(p, i, &c);
		if (raised >= RAISED_MOST * grown)
			found_say(l, f, "It grows in %s.", NAME_OF(&p->phase[i]));
	}
}

static void look_leak(struct look *l, const struct phases *p, size_t fold)
{
	const struct phase *of = &p->phase[fold];
	double wall = figure_of(l->run, FIG_WALL), each;
	struct leak leak;
	struct finding *f;

	if (found_has(l, "phase-leak") || !find_leak(p, fold, &leak))
		return;
	each = (leak.last - leak.first) / (leak.to - leak.from);
	f = found(l, "phase-leak", wall >= LEAK_LONG_S ? FINDING_WARNING : FINDING_NOTE, "memory",
		"Each repetition of %s left %s more memory behind", NAME_OF(of), format_bytes(SHOWN, each));
	found_say(l, f, "From %s in the %u%s to %s in the %u%s, on average.", format_bytes(SHOWN, leak.first),
		leak.from, ordinal(leak.from), format_bytes(SHOWN, leak.last), leak.to, ordinal(leak.to));
	say_where_raised(l, f, p, (int)fold, leak.last - leak.first);
	found_say(l, f,
		"That is a leak, or data that the program gathers; twice as many repetitions need %s more.",
		format_bytes(SHOWN, each * of->count));
	found_where(f, of->begin_s, of->end_s);
	found_evidence(l, f, "grown_bytes", leak.last - leak.first, UNIT_BYTES);
	found_evidence(l, f, "phases.repetitions", of->count, UNIT_COUNT);
}

/* ---- waiting for CPUs ---- */

#define STARVED_SHARE 0.25
#define HELD_BACK_SHARE 0.1
#define STARVED_WAIT_S 1.0
/* So much more than in the rest of the phases: else the run is told of, not the phase. */
#define STARVED_MORE 1.3

static double waited(const struct phase *p)
{
	return isnan(p->value[PHASE_RUN_QUEUE]) ? 0 : p->value[PHASE_RUN_QUEUE];
}

static double held_back(const struct phase *p)
{
	return isnan(p->value[PHASE_CGROUP_THROTTLED]) ? 0 : p->value[PHASE_CGROUP_THROTTLED];
}

/* The one without others in it that waited longest; NULL: none waited for so much of its time. */
static const struct phase *most_waiting(
	const struct phases *p, double (*wait)(const struct phase *), double share)
{
	const struct phase *best = NULL;
	double all_s = 0, all_wall = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct phase *of = &p->phase[i];
		bool outer = i + 1 < p->nr && p->phase[i + 1].parent == (int)i;

		all_s += of->depth ? 0 : wait(of);
		all_wall += of->depth ? 0 : of->value[PHASE_WALL];
		if (!outer && wait(of) >= STARVED_WAIT_S && wait(of) >= share * of->value[PHASE_WALL] &&
			(!best || wait(of) > wait(best)))
			best = of;
	}
	if (best && all_wall > best->value[PHASE_WALL] &&
		wait(best) / best->value[PHASE_WALL] <
			STARVED_MORE * (all_s - wait(best)) / (all_wall - best->value[PHASE_WALL]))
		return NULL;
	return best;
}

static struct finding *finding_of(struct look *l, const char *id)
{
	for (size_t i = 0; i < l->found->nr; i++)
		if (!strcmp(l->found->item[i].id, id))
			return &l->found->item[i];
	return NULL;
}

static void look_waiting(struct look *l, const struct phases *p)
{
	const struct phase *quota = most_waiting(p, held_back, HELD_BACK_SHARE),
			   *queue = most_waiting(p, waited, STARVED_SHARE);
	const struct phase *of = quota ? quota : queue;
	struct finding *f;
	double wait;

	if (!of)
		return;
	wait = quota ? held_back(of) : waited(of);
	f = finding_of(l, quota ? "throttled" : "starved");
	if (f) {
		found_say(l, f, "Most of it was in phase %s: %s.", NAME_OF(of), format_duration(SHOWN, wait));
		return;
	}
	f = found(l, "phase-starved", FINDING_NOTE, quota ? "cgroup" : "cpu",
		quota ? "The CPU quota held phase %s back for %s" : "Phase %s waited %s for CPUs",
		NAME_OF(of), format_duration(SHOWN, wait));
	found_say(l, f, "That is %.0f %% of its %s, and more than in the rest of the run. %s",
		100 * wait / of->value[PHASE_WALL], format_duration(SHOWN, of->value[PHASE_WALL]),
		quota ? "Ask for more CPUs, or start fewer threads there."
		      : "Its threads, or other processes of the node, were in each other's way.");
	found_where(f, of->begin_s, of->end_s);
	found_evidence(l, f, quota ? "phases.throttled_s" : "phases.run_queue_s", wait, UNIT_SECONDS);
	found_evidence(l, f, "phases.cpu_pressure_s", of->value[PHASE_CPU_PRESSURE], UNIT_SECONDS);
	found_evidence(l, f, "phases.duration_s", of->value[PHASE_WALL], UNIT_SECONDS);
}

/* ---- GPUs that idle ---- */

#define GPU_IDLE_PERCENT 10.0
#define GPU_BUSY_PERCENT 40.0 /* elsewhere */
#define GPU_IDLE_SHARE 0.1    /* of the run */
#define GPU_IDLE_LEAST_S 2.0

static void look_idle_gpu(struct look *l, const struct phases *p)
{
	double wall = figure_of(l->run, FIG_WALL), busiest = 0;
	const struct phase *idle = NULL;
	struct finding *f;

	for (size_t i = 0; i < p->nr; i++) {
		const struct phase *of = &p->phase[i];
		double util = of->value[PHASE_GPU_UTIL], took = of->value[PHASE_WALL];

		busiest = isnan(util) ? busiest : MAX(busiest, util);
		if (util <= GPU_IDLE_PERCENT && took >= GPU_IDLE_SHARE * wall && took >= GPU_IDLE_LEAST_S &&
			(!idle || took > idle->value[PHASE_WALL]))
			idle = of;
	}
	if (!idle || busiest < GPU_BUSY_PERCENT)
		return;
	f = found(l, "phase-idle-gpu", FINDING_NOTE, "gpu-util",
		"The GPUs idled in phase %s: %.0f %% busy for %s", NAME_OF(idle), idle->value[PHASE_GPU_UTIL],
		format_duration(SHOWN, idle->value[PHASE_WALL]));
	found_say(l, f,
		"Elsewhere they were busy for up to %.0f %% of the time. Do that part without GPUs, in a job "
		"of its own, or "
		"while they compute.",
		busiest);
	found_where(f, idle->begin_s, idle->end_s);
	found_evidence(l, f, "phases.gpu_util_percent", idle->value[PHASE_GPU_UTIL] / 100, UNIT_RATIO);
	found_evidence(l, f, "phases.duration_s", idle->value[PHASE_WALL], UNIT_SECONDS);
}

/* ---- all of it ---- */

/* Outer phases come first: what they tell is not told again of those in them. */
void look_phases(struct look *l)
{
	const struct phases *p = l->run->phases;

	if (!p)
		return;
	for (size_t i = 0; i < p->nr; i++) {
		look_outlier(l, p, i);
		look_leak(l, p, i);
	}
	look_waiting(l, p);
	look_idle_gpu(l, p);
}

void name_phases(struct look *l)
{
	for (size_t i = 0; i < l->found->nr; i++) {
		struct finding *f = &l->found->item[i];
		const char *name = isnan(f->from_s) || isnan(f->to_s)
			? ""
			: PHASE_SHOWN(l->run->phases, f->from_s, f->to_s);

		if (!*name)
			continue;
		f->phase = strdup(name);
		if (!f->phase)
			l->err = -ENOMEM;
		else if (strncmp(f->id, "phase-", 6) != 0 && !strstr(f->title, name))
			found_say(l, f, "It is in phase %s.", name);
	}
}
