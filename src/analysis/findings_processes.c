/* What the process table tells: ranks that do not share the work evenly, and thousands that hardly live.
 *
 * Ranks are processes with the same command that live side by side, without those that started others of
 * them: the parent of a pool runs the same command line and waits. Names alone were rejected: a shell script
 * starts many processes of one name that have nothing to do with each other. */
#include "analysis/rule.h"

#include <math.h>
#include <string.h>

/* Of a rank: shorter ones are no ranks. */
#define RANK_LEAST_S 10.0
/* Side by side: each lives for most of the time of the longest. */
#define RANK_TOGETHER 0.8
/* Mean over greatest CPU time, and the time that could be won. */
#define RANK_BALANCE 0.75
#define RANK_LEAST_GAIN_S 3.0
/* The busiest computes, and they are what the run is about. */
#define RANK_BUSY 0.5
#define RANK_SHARE 0.2

static int by_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = a_len && b_len ? memcmp(a, b, MIN(a_len, b_len)) : 0;

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int by_command(const void *a, const void *b)
{
	const struct process_row *x = *(const struct process_row *const *)a,
				 *y = *(const struct process_row *const *)b;
	int r = by_bytes(x->name, x->name_len, y->name, y->name_len);

	return r ? r : by_bytes(x->command, x->command_len, y->command, y->command_len);
}

static int by_place(const void *a, const void *b)
{
	const struct process_row *x = *(const struct process_row *const *)a,
				 *y = *(const struct process_row *const *)b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->value[PROCESS_PID] != y->value[PROCESS_PID])
		return x->value[PROCESS_PID] < y->value[PROCESS_PID] ? -1 : 1;
	return 0;
}

/* Those that pass, sorted; NULL: none, or no memory. */
static const struct process_row **pick(struct look *l, bool (*is_wanted)(const struct process_row *row),
	int (*by)(const void *a, const void *b), size_t *ret_nr)
{
	const struct process_table *t = l->analysis->processes;
	const struct process_row **row;
	size_t nr = 0;

	*ret_nr = 0;
	for (size_t i = 0; t && i < t->nr; i++)
		nr += is_wanted(&t->row[i]);
	if (!nr)
		return NULL;
	row = calloc(nr, sizeof(*row));
	if (!row) {
		l->err = -ENOMEM;
		return NULL;
	}
	for (size_t i = 0; i < t->nr; i++)
		if (is_wanted(&t->row[i]))
			row[(*ret_nr)++] = &t->row[i];
	qsort(row, nr, sizeof(*row), by);
	return row;
}

/* ---- ranks ---- */

static bool is_long(const struct process_row *row)
{
	return row->value[PROCESS_WALL] >= RANK_LEAST_S && isfinite(row->value[PROCESS_CPU]) &&
		row->command_len;
}

struct ranks {
	size_t nr;
	double sum, most, least, longest_s, from_s, to_s;
	const struct process_row *busiest;
};

/* Drops those that are parents of others; the rest closes up. There are as many places again behind them, all
 * NULL, in which the parents are marked. */
static size_t without_parents(const struct process_row **row, size_t nr)
{
	size_t kept = 0;

	qsort(row, nr, sizeof(*row), by_place);
	for (size_t i = 0; i < nr; i++) {
		struct process_row parent = {.node = row[i]->node};
		const struct process_row *key = &parent, **at;

		parent.value[PROCESS_PID] = row[i]->value[PROCESS_PPID];
		at = bsearch(&key, row, nr, sizeof(*row), by_place);
		if (at && *at != row[i])
			row[nr + (size_t)(at - row)] = *at;
	}
	for (size_t i = 0; i < nr; i++)
		if (!row[nr + i])
			row[kept++] = row[i];
	return kept;
}

static struct ranks together(const struct look *l, const struct process_row **row, size_t nr)
{
	struct ranks r = {.least = INFINITY, .from_s = INFINITY};

	for (size_t i = 0; i < nr; i++) {
		r.longest_s = MAX(r.longest_s, row[i]->value[PROCESS_WALL]);
		r.from_s = MIN(r.from_s, run_time(l->analysis, row[i]->node, row[i]->value[PROCESS_START]));
	}
	for (size_t i = 0; i < nr; i++) {
		const double *v = row[i]->value;

		if (v[PROCESS_WALL] < RANK_TOGETHER * r.longest_s ||
			run_time(l->analysis, row[i]->node, v[PROCESS_START]) - r.from_s >
				(1 - RANK_TOGETHER) * r.longest_s)
			continue;
		r.nr++;
		r.sum += v[PROCESS_CPU];
		r.least = MIN(r.least, v[PROCESS_CPU]);
		if (r.busiest && v[PROCESS_CPU] <= r.most)
			continue;
		r.most = v[PROCESS_CPU];
		r.busiest = row[i];
	}
	r.to_s = r.from_s + r.longest_s;
	return r;
}

static bool is_uneven(const struct ranks *r, double all_cpu)
{
	double mean = r->nr ? r->sum / (double)r->nr : NAN;

	return r->nr >= 2 && mean < RANK_BALANCE * r->most && r->most - mean >= RANK_LEAST_GAIN_S &&
		r->most >= RANK_BUSY * r->longest_s && r->sum >= RANK_SHARE * all_cpu;
}

static void say_ranks(struct look *l, const struct ranks *r)
{
	double mean = r->sum / (double)r->nr;
	struct finding *f = found(l, "rank-imbalance", FINDING_WARNING, "timeline",
		"%zu processes %s share the work unevenly: from %s to %s of CPU time", r->nr,
		NAME_SHOWN(r->busiest->name, r->busiest->name_len), format_duration(SHOWN, r->least),
		format_duration(SHOWN, r->most));

	found_say(l, f,
		"They run the same command side by side, and on average one did %.0f %% of what the busiest "
		"did (PID %.0f). Where the others wait for it, that is time won by spreading the work "
		"evenly: up to %s.",
		100 * r->sum / (double)r->nr / r->most, r->busiest->value[PROCESS_PID],
		format_duration(SHOWN, r->most - mean));
	if (nr_parts(l) > 1)
		found_node(f, r->busiest->node);
	found_where(f, r->from_s, r->to_s);
	found_evidence(l, f, "processes", (double)r->nr, UNIT_COUNT);
	found_evidence(l, f, "balance_ratio", mean / r->most, UNIT_RATIO);
	found_evidence(l, f, "most_cpu_s", r->most, UNIT_SECONDS);
	found_evidence(l, f, "least_cpu_s", r->least, UNIT_SECONDS);
}

/* The group of most CPU time that is uneven. */
void look_ranks(struct look *l)
{
	struct ranks worst = {0};
	size_t nr, to;
	const struct process_row **row = pick(l, is_long, by_command, &nr), **members;

	if (!row)
		return;
	members = calloc(2 * nr, sizeof(*members));
	if (!members)
		l->err = -ENOMEM;
	for (size_t from = 0; members && from < nr; from = to) {
		struct ranks r;

		for (to = from + 1; to < nr && !by_command(&row[from], &row[to]); to++)
			;
		if (to - from < 2)
			continue;
		memcpy(members, row + from, (to - from) * sizeof(*row));
		memset(members + (to - from), 0, (to - from) * sizeof(*row));
		r = together(l, members, without_parents(members, to - from));
		if (is_uneven(&r, figure_of(l->run, FIG_CPU)) && r.sum > worst.sum)
			worst = r;
	}
	if (worst.busiest)
		say_ranks(l, &worst);
	free(members);
	free(row);
}

/* ---- short lives ---- */

#define SHORT_S 0.5
#define SHORT_LEAST 1000
#define SHORT_LEAST_PER_S 5.0
/* Of the CPU time in the kernel: starting processes is its work. */
#define SHORT_SYSTEM 0.25

static bool is_short(const struct process_row *row)
{
	return row->ended && row->value[PROCESS_WALL] < SHORT_S;
}

static int by_name(const void *a, const void *b)
{
	const struct process_row *x = *(const struct process_row *const *)a,
				 *y = *(const struct process_row *const *)b;

	return by_bytes(x->name, x->name_len, y->name, y->name_len);
}

static const struct process_row *most_frequent(const struct process_row **row, size_t nr, size_t *ret_times)
{
	const struct process_row *best = row[0];
	size_t to;

	*ret_times = 0;
	for (size_t from = 0; from < nr; from = to) {
		for (to = from + 1; to < nr && !by_name(&row[from], &row[to]); to++)
			;
		if (to - from <= *ret_times)
			continue;
		*ret_times = to - from;
		best = row[from];
	}
	return best;
}

void look_short_processes(struct look *l)
{
	double wall = figure_of(l->run, FIG_WALL), cpu = figure_of(l->run, FIG_CPU), per_s;
	double kernel = figure_of(l->run, FIG_SYSTEM) / cpu;
	size_t nr, times;
	const struct process_row **row = pick(l, is_short, by_name, &nr), *most;
	struct finding *f;

	if (!row)
		return;
	per_s = (double)nr / wall;
	if (nr >= SHORT_LEAST && per_s >= SHORT_LEAST_PER_S) {
		most = most_frequent(row, nr, &times);
		f = found(l, "short-processes", kernel >= SHORT_SYSTEM ? FINDING_WARNING : FINDING_NOTE,
			"process-starts", "%s processes lived for less than half a second",
			format_count(SHOWN, (double)nr));
		found_say(l, f, "%s each second; the most frequent was %s (%s).", format_count(SHOWN, per_s),
			NAME_SHOWN(most->name, most->name_len), format_count(SHOWN, (double)times));
		if (!isnan(kernel))
			found_say(l, f, "%.0f %% of the CPU time was spent in the kernel.", 100 * kernel);
		found_say(l, f,
			"Starting a process costs more than what a short one does: do more in each, by loops "
			"inside a program or with many files in one call (xargs).");
		found_evidence(l, f, "short_processes", (double)nr, UNIT_COUNT);
		found_figures(l, f, l->run, FIG_SEEN, FIG_SYSTEM, FIG_CPU);
	}
	free(row);
}

/* ---- no more processes allowed ---- */

void look_process_limit(struct look *l, size_t i)
{
	struct finding *f;
	struct curve c;
	size_t at = 0;

	while (curve_next(l->analysis, EV_CG_PIDS_HITS, i, &at, &c)) {
		double hits = curve_grown(&c);

		if (!(hits > 0))
			continue;
		f = found_on(l, i, "process-limit", FINDING_SERIOUS, "process-count",
			"%s time%s no process or thread could be started", format_count(SHOWN, hits),
			hits == 1 ? "" : "s");
		found_say(l, f,
			"The control group %s had as many as it may (pids.max). Start fewer threads, or ask "
			"the "
			"administrators for a higher limit.",
			NAME_SHOWN(c.line->name, c.line->name_len));
		found_evidence(l, f, "cgroup.pids.max_hits", hits, UNIT_COUNT);
		return;
	}
}
