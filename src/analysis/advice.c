/* What to ask for next time: lines for the job scripts of the three batch systems, that of the run first.
 *
 * Numbers are of one node, the one that needed most: batch systems give all nodes of a job the same. Of a run
 * that did not come to its end nothing can be learned but that it needs more: killed because it ran out of
 * memory it is advised more than it had, otherwise nothing. The headroom is said with the numbers, so that no
 * reader adds to it again. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0

/* A shorter run may not have come to what it is about. */
#define ADVICE_LEAST_S 10.0
#define MEMORY_ROOM 0.2
#define MEMORY_ROOM_LEAST (256 * MIB)
/* Of the limit at which it was killed. */
#define MEMORY_AFTER_OOM 1.5
#define TIME_ROOM 0.25

struct needs {
	size_t hosts, tasks; /* that worked; tasks 0: not known */
	size_t idle;	     /* hosts that did not */
	double cores;	     /* of a node, whole */
	double cores_all;    /* of the run */
	double cores_seen;
	bool cores_kept; /* as they were given: the run could not show what it can use */
	double memory;	 /* of a node; NAN: not known */
	double memory_seen, memory_limit;
	const char *view, *reservation;
	bool oom;
	double time_s; /* NAN: not known */
	double machine_cpus, machine_memory;
	struct gpu_count gpus; /* of a node */
};

/* ---- what it needs ---- */

static bool is_same_host(const struct summary *run, size_t a, size_t b)
{
	return a == b ||
		(run->node[a].host && run->node[b].host && !strcmp(run->node[a].host, run->node[b].host));
}

static bool is_first_of_host(const struct summary *run, size_t i)
{
	for (size_t k = 0; run->nr_nodes && k < i; k++)
		if (is_same_host(run, k, i))
			return false;
	return true;
}

static double cores_of(const struct analysis *s, const struct summary *part, size_t i)
{
	double cores = stat_of(s, STATS_NODE, i, STAT_CORES_P95);

	return isnan(cores) ? figure_of(part, FIG_PEAK_CORES) : cores;
}

/* Adds up the recordings of one host. */
static void add_host(const struct look *l, size_t first, struct needs *n)
{
	double cores = 0, memory = 0, given = figure_of(part_of(l, first), FIG_LIMIT_CPUS);
	struct memory_view view = {0};

	for (size_t i = first; i < nr_parts(l); i++) {
		struct memory_view v;

		if (!is_same_host(l->run, first, i))
			continue;
		v = memory_view_of(l->analysis, part_of(l, i), i, true);
		cores += cores_of(l->analysis, part_of(l, i), i);
		memory += v.bytes;
		view = view.name && view.bytes >= v.bytes ? view : v;
	}
	n->hosts++;
	/* Never more than there is: samples that came late show too much. */
	if (n->cores_kept || cores > given)
		cores = given;
	if (!isnan(cores))
		n->cores_all += cores;
	if (cores > n->cores_seen || isnan(n->cores_seen))
		n->cores_seen = cores;
	if (memory > n->memory_seen || isnan(n->memory_seen)) {
		n->memory_seen = memory;
		n->view = view.name;
		n->reservation = view.reservation;
		n->memory_limit = figure_of(part_of(l, first), FIG_LIMIT_MEMORY);
	}
}

static double round_up_to(double v, double step)
{
	return whole_up(v / step) * step;
}

static double memory_step(double bytes)
{
	return bytes < GIB ? 64 * MIB : bytes < 8 * GIB ? 256 * MIB : bytes < 64 * GIB ? GIB : 4 * GIB;
}

static double round_memory(double bytes)
{
	return round_up_to(bytes, memory_step(bytes));
}

static double time_step(double seconds)
{
	return seconds <= 3600 ? 300 : seconds <= 36000 ? 900 : 3600;
}

static double memory_needed(const struct needs *n)
{
	double bytes = n->memory_seen + MAX(MEMORY_ROOM * n->memory_seen, MEMORY_ROOM_LEAST);

	if (n->oom && n->memory_limit * MEMORY_AFTER_OOM > bytes)
		bytes = n->memory_limit * MEMORY_AFTER_OOM;
	return round_memory(bytes);
}

static size_t ranks_of(const struct summary *run)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->nr_groups; i++)
		nr += run->group[i].kind && !strcmp(run->group[i].kind, "rank");
	return nr;
}

/* A recorder that looks on from a step of its own has the variables of that one, not of the job. */
static bool is_of_own_step(const struct summary *s)
{
	return s->mode && strcmp(s->mode, "run") != 0 && fact_of(s, "SLURM_STEP_ID");
}

static size_t tasks_of(const struct summary *s)
{
	static const char *const variable[] = {
		"SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
	uint64_t value;

	if (is_of_own_step(s))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(variable); i++) {
		const char *text = fact_of(s, variable[i]);

		if (text && parse_u64(text, &value) && value > 0 && value < 10000000)
			return (size_t)value;
	}
	return 0;
}

/* Nodes that did nothing are not asked for again, nor their tasks where each had as many. */
static void leave_out_idle(const struct look *l, struct needs *n)
{
	size_t per_node = n->tasks % n->hosts ? 0 : n->tasks / n->hosts;

	n->idle = idle_nodes(l);
	if (!n->idle || n->idle >= n->hosts) {
		n->idle = 0;
		return;
	}
	n->hosts -= n->idle;
	if (per_node)
		n->tasks = per_node * n->hosts;
}

static struct gpu_count gpus_of_node(const struct look *l)
{
	struct gpu_count most = {0};

	for (size_t i = 0; i < nr_parts(l); i++) {
		struct gpu_count n = gpus_count(part_of(l, i));

		if (n.given > most.given || (n.given == most.given && n.idle < most.idle))
			most = n;
	}
	return most;
}

/* False: neither CPU nor memory is known. */
static bool needs_of(const struct look *l, struct needs *ret)
{
	const struct summary *first = part_of(l, 0);
	double time = figure_of(l->run, FIG_WALL) * (1 + TIME_ROOM);

	*ret = (struct needs){
		.cores_seen = NAN, .memory_seen = NAN, .time_s = NAN, .tasks = ranks_of(l->run)};
	if (!ret->tasks)
		ret->tasks = tasks_of(first);
	ret->oom = found_has(l, "oom");
	ret->cores_kept = cores_not_shown(l);
	for (size_t i = 0; i < nr_parts(l); i++)
		if (is_first_of_host(l->run, i))
			add_host(l, i, ret);
	leave_out_idle(l, ret);
	ret->cores = ret->cores_kept ? MAX(whole_up(ret->cores_seen), 1) : cores_to_ask(ret->cores_seen);
	if (ret->oom && !isnan(l->oom_limit))
		ret->memory_limit = l->oom_limit;
	ret->memory = memory_needed(ret);
	if (!ret->oom && first->mode && !strcmp(first->mode, "run"))
		ret->time_s = round_up_to(time, time_step(time));
	ret->machine_cpus = figure_of(first, FIG_MACHINE_CPUS);
	ret->machine_memory = figure_of(first, FIG_MACHINE_MEMORY);
	ret->gpus = gpus_of_node(l);
	return !isnan(ret->cores_seen) || !isnan(ret->memory_seen);
}

/* ---- the lines ---- */

static void add_line(struct advice *a, const char *fmt, ...) _printf_(2, 3);

static void add_line(struct advice *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	a->failed |= texts_addv(&a->line, &a->nr_lines, fmt, ap) < 0;
	va_end(ap);
}

static const char *clock_shown(char out[static UNITS_SIZE], double s, bool days)
{
	long minutes = (long)round_i64(s / 60);

	if (days && minutes >= 24 * 60)
		snprintf(out, UNITS_SIZE, "%ld-%02ld:%02ld:00", minutes / 1440, minutes / 60 % 24,
			minutes % 60);
	else
		snprintf(out, UNITS_SIZE, "%02ld:%02ld:00", minutes / 60, minutes % 60);
	return out;
}

static const char *size_shown(char out[static UNITS_SIZE], double bytes, const char *gib, const char *mib)
{
	bool whole = bytes >= GIB && round_up_to(bytes, GIB) == bytes;

	snprintf(out, UNITS_SIZE, "%.0f%s", bytes / (whole ? GIB : MIB), whole ? gib : mib);
	return out;
}

static double cores_of_task(const struct needs *n)
{
	return cores_to_ask(n->cores_all / (double)n->tasks);
}

/* What a node must have so that its tasks fit. */
static double cores_of_node(const struct needs *n)
{
	double tasks = whole_up((double)n->tasks / (double)n->hosts);

	return n->tasks > 1 ? MAX(n->cores, tasks * cores_of_task(n)) : n->cores;
}

static size_t gpus_used(const struct needs *n)
{
	return n->gpus.given - n->gpus.idle;
}

static void slurm_lines(const struct needs *n, struct advice *a)
{
	if (n->hosts > 1)
		add_line(a, "#SBATCH --nodes=%zu", n->hosts);
	if (n->tasks > 1)
		add_line(a, "#SBATCH --ntasks=%zu", n->tasks);
	if (!isnan(n->cores_seen))
		add_line(a, "#SBATCH --cpus-per-task=%.0f", n->tasks > 1 ? cores_of_task(n) : n->cores);
	if (!isnan(n->memory))
		add_line(a, "#SBATCH --mem=%s", size_shown(SHOWN, n->memory, "G", "M"));
	if (gpus_used(n))
		add_line(a, "#SBATCH --gpus-per-node=%zu", gpus_used(n));
	if (!isnan(n->time_s))
		add_line(a, "#SBATCH --time=%s", clock_shown(SHOWN, n->time_s, true));
}

static void pbs_lines(const struct needs *n, struct advice *a)
{
	struct buf chunk;

	buf_init(&chunk, 4096);
	buf_addf(&chunk, "select=%zu", n->hosts);
	if (!isnan(n->cores_seen))
		buf_addf(&chunk, ":ncpus=%.0f", cores_of_node(n));
	if (n->tasks > 1)
		buf_addf(&chunk, ":mpiprocs=%.0f", whole_up((double)n->tasks / (double)n->hosts));
	if (!isnan(n->memory))
		buf_addf(&chunk, ":mem=%s", size_shown(SHOWN, n->memory, "gb", "mb"));
	if (gpus_used(n))
		buf_addf(&chunk, ":ngpus=%zu", gpus_used(n));
	add_line(a, "#PBS -l %s", (char *)chunk.data);
	buf_release(&chunk);
	if (!isnan(n->time_s))
		add_line(a, "#PBS -l walltime=%s", clock_shown(SHOWN, n->time_s, false));
}

/* OAR gives memory with cores: so many that their part of the node's memory suffices. */
static double oar_cores(const struct needs *n)
{
	double by_memory = n->memory / (n->machine_memory / n->machine_cpus), cores = cores_of_node(n);

	if (!isfinite(by_memory))
		return cores;
	by_memory = MIN(whole_up(by_memory), n->machine_cpus);
	return MAX(by_memory, cores);
}

static void oar_lines(const struct needs *n, struct advice *a)
{
	bool timed = !isnan(n->time_s);

	add_line(a, "#OAR -l /nodes=%zu/core=%.0f%s%s", n->hosts, oar_cores(n), timed ? ",walltime=" : "",
		timed ? clock_shown(SHOWN, n->time_s, false) : "");
}

/* ---- where they come from ---- */

static void say_memory_room(const struct needs *n, struct buf *out)
{
	if (isnan(n->memory)) {
		buf_adds(out, " Memory: not known.");
		return;
	}
	if (n->oom)
		buf_addf(out,
			" Memory: the run was killed because it ran out%s%s; half as much again, and at "
			"least %s above its peak (%s, %s), rounded up to %s. The peak is only a lower bound: "
			"it may still be too little.",
			n->memory_limit > 0 ? " at a limit of " : "",
			n->memory_limit > 0 ? format_bytes(SHOWN, n->memory_limit) : "",
			format_bytes(SHOWN, MEMORY_ROOM_LEAST), n->view, format_bytes(SHOWN, n->memory_seen),
			format_bytes(SHOWN, n->memory));
	else
		buf_addf(out,
			" Memory: peak %s of %s, plus %s of headroom (%.0f %%, at least %s), rounded up to "
			"%s%s%s.",
			n->view, format_bytes(SHOWN, n->memory_seen),
			format_bytes(SHOWN, MAX(MEMORY_ROOM * n->memory_seen, MEMORY_ROOM_LEAST)),
			100 * MEMORY_ROOM, format_bytes(SHOWN, MEMORY_ROOM_LEAST),
			format_bytes(SHOWN, n->memory), n->reservation ? "; the peak is " : "",
			n->reservation ? n->reservation : "");
}

static char *headroom_of(const struct look *l, const struct needs *n)
{
	struct buf out;
	char *result;

	buf_init(&out, 4096);
	if (n->cores_kept && !isnan(n->cores_seen))
		buf_adds(
			&out, "Cores: as they were given, since the run could not show how many it can use.");
	else if (!isnan(n->cores_seen))
		buf_addf(&out, "Cores: 95 %% of the time no more than %s were in use%s%s.",
			cores_shown(SHOWN, n->cores_seen), n->hosts > 1 ? " on a node" : "",
			n->cores > n->cores_seen + 0.05 ? ", rounded up" : "");
	else
		buf_adds(&out, "Cores: not known.");
	say_memory_room(n, &out);
	if (!isnan(n->time_s))
		buf_addf(&out, " Time: %s + %.0f %%, rounded up to a multiple of %s.",
			format_duration(SHOWN, figure_of(l->run, FIG_WALL)), 100 * TIME_ROOM,
			format_duration(SHOWN, time_step(figure_of(l->run, FIG_WALL) * (1 + TIME_ROOM))));
	else
		buf_adds(&out,
			n->oom ? " Time: not known, since the run was killed before its end."
			       : " Time: not known, since the run was not seen from its start to its end.");
	if (n->idle)
		buf_addf(&out, " Nodes: %zu of %zu worked.", n->hosts, n->hosts + n->idle);
	if (n->hosts > 1)
		buf_addf(&out, " All for one node: the one of %zu that needed most.", n->hosts);
	if (n->gpus.given && !gpus_used(n))
		buf_adds(&out, " GPUs: none, since none was used.");
	else if (n->gpus.idle)
		buf_addf(&out, " GPUs: %zu of %zu were used.", gpus_used(n), n->gpus.given);
	result = out.err ? NULL : strdup((char *)out.data);
	buf_release(&out);
	return result;
}

/* ---- all of it ---- */

/* NULL: there can be advice. */
static const char *why_none(const struct look *l)
{
	if (found_has(l, "oom"))
		return NULL;
	if (!l->run->complete)
		return "The recording is unfinished: what the job needs up to its end is not known.";
	if (found_has(l, "killed") || found_has(l, "signal"))
		return "The job was ended by a signal: what it needs up to its end is not known.";
	if (found_has(l, "failed"))
		return "The job failed: what it needs when it succeeds is not known.";
	if (!(figure_of(l->run, FIG_WALL) >= ADVICE_LEAST_S))
		return "The run was too short to tell what a longer one needs (less than 10 s).";
	return NULL;
}

int advice_make(struct look *l)
{
	static const struct {
		const char *name;
		void (*lines)(const struct needs *n, struct advice *a);
	} kind[] = {{"slurm", slurm_lines}, {"pbs", pbs_lines}, {"oar", oar_lines}};
	struct findings *f = l->found;
	const char *why = why_none(l), *own = part_of(l, 0)->text[TEXT_SCHEDULER];
	struct needs n;
	bool failed = false;

	if (!why && !needs_of(l, &n))
		why = "Neither the CPUs nor the memory that the job used are known.";
	if (why) {
		f->why_no_advice = strdup(why);
		return f->why_no_advice ? 0 : -ENOMEM;
	}
	f->advice = calloc(ARRAY_SIZE(kind), sizeof(*f->advice));
	f->headroom = headroom_of(l, &n);
	if (!f->advice || !f->headroom)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < ARRAY_SIZE(kind); i++) {
			struct advice *a = &f->advice[f->nr_advice];
			bool is_own = own && !strcmp(own, kind[i].name);

			if (is_own != !pass)
				continue;
			*a = (struct advice){.scheduler = kind[i].name, .own = is_own};
			f->nr_advice++;
			kind[i].lines(&n, a);
			failed |= a->failed;
		}
	return failed ? -ENOMEM : 0;
}
