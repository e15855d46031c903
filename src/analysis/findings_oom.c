/* How the run ended, when it did not end well: out of memory (who, when, which limit), killed by another
 * process else, a signal, an exit code.
 *
 * The kernel does not tell which process it killed when memory ran out; a counter of the control group rises,
 * and a process ends by SIGKILL at that time. Where the status of the dead could not be had, the largest that
 * vanished in that moment is named as what it is: probable. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/phases.h"
#include "text/words.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A group that is killed at its limit was this near to it. */
#define AT_LIMIT 0.95
/* A machine with so little left is out of memory. */
#define NOTHING_AVAILABLE 0.05
/* A rise is seen at the tick after the kill, and the end may be noticed a tick later. */
#define SAME_MOMENT_S 1.0

/* ---- when ---- */

struct rise { /* of a counter: between these two */
	double from_s, to_s, by;
};

static bool first_rise(const struct curve *c, struct rise *ret)
{
	double before = NAN, before_s = NAN;

	for (size_t i = 0; i < c->axis->nr_times; i++) {
		double now = c->line->high[i];

		if (isnan(now))
			continue;
		if (now > before) {
			*ret = (struct rise){
				.from_s = before_s, .to_s = c->axis->time_s[i], .by = curve_grown(c)};
			return true;
		}
		before = now;
		before_s = c->axis->time_s[i];
	}
	return false;
}

/* In the job's own group; otherwise anywhere on the node. */
static bool find_kill(const struct look *l, size_t i, struct rise *ret, bool *ret_own)
{
	const struct summary *part = part_of(l, i);
	double end = run_time(l->analysis, i, figure_of(part, FIG_WALL));
	struct curve c;

	*ret_own = true;
	if (figure_of(part, FIG_OOM_KILLS) > 0) {
		if (!curve_named(l->analysis, EV_CG_OOM_KILL, i, part->text[TEXT_CGROUP], &c) ||
			!first_rise(&c, ret))
			*ret = (struct rise){.from_s = run_time(l->analysis, i, 0),
				.to_s = end,
				.by = figure_of(part, FIG_OOM_KILLS)};
		return true;
	}
	*ret_own = false;
	return isnan(figure_of(part, FIG_OOM_KILLS)) && curve_of(l->analysis, EV_NODE_OOM_KILLS, i, &c) &&
		first_rise(&c, ret);
}

/* ---- who ---- */

static bool is_killed(const struct process_row *row)
{
	return row->status >= 0 && WIFSIGNALED(row->status) && WTERMSIG(row->status) == SIGKILL;
}

/* How far from that moment it ended. */
static double away(const struct look *l, const struct process_row *row, const struct rise *when)
{
	double end = run_time(l->analysis, row->node, row->value[PROCESS_END]);

	if (end < when->from_s - SAME_MOMENT_S)
		return when->from_s - SAME_MOMENT_S - end;
	if (end > when->to_s + SAME_MOMENT_S)
		return end - when->to_s - SAME_MOMENT_S;
	return 0;
}

static const struct process_row *find_victim(
	const struct look *l, size_t node, const struct rise *when, bool killed)
{
	const struct process_table *t = l->analysis->processes;
	const struct process_row *best = NULL;

	for (size_t i = 0; t && i < t->nr; i++) {
		const struct process_row *row = &t->row[i];

		if (row->node != node || !row->ended || !(away(l, row, when) == 0) ||
			(killed ? !is_killed(row) : row->status >= 0))
			continue;
		if (!best || !(row->value[PROCESS_RSS] <= best->value[PROCESS_RSS]))
			best = row;
	}
	return best;
}

/* ---- which limit ---- */

struct bound {
	char group[NAME_SIZE]; /* "": the machine */
	double limit;	       /* NAN: not known */
};

/* The innermost group that the counter accuses; names grow towards it. */
static bool accused(const struct look *l, size_t node, enum evidence_id by, struct curve *ret)
{
	bool any = false;
	struct curve c, limit;
	size_t at = 0;

	while (curve_next(l->analysis, by, node, &at, &c)) {
		if (!(curve_grown(&c) > 0) || !c.line->name ||
			!curve_named(l->analysis, EV_CG_LIMIT, node, c.line->name, &limit) ||
			(any && limit.line->name_len <= ret->line->name_len))
			continue;
		*ret = limit;
		any = true;
	}
	return any;
}

static bool is_full(const struct look *l, size_t node, struct curve *ret)
{
	struct curve c, now;
	size_t at = 0;

	while (curve_next(l->analysis, EV_CG_LIMIT, node, &at, &c))
		if (c.line->name && curve_named(l->analysis, EV_CG_CURRENT, node, c.line->name, &now) &&
			now.line->most >= AT_LIMIT * c.line->last) {
			*ret = c;
			return true;
		}
	return false;
}

/* False: nothing says which. */
static bool find_bound(const struct look *l, size_t i, struct bound *ret)
{
	const struct summary *part = part_of(l, i);
	const char *source = part->text[TEXT_MEMORY_SOURCE];
	double limit = figure_of(part, FIG_LIMIT_MEMORY);
	struct curve c;

	*ret = (struct bound){.limit = NAN};
	if (accused(l, i, EV_CG_OOM, &c) || accused(l, i, EV_CG_LIMIT_HITS, &c) || is_full(l, i, &c)) {
		name_shown(ret->group, c.line->name, c.line->name_len);
		ret->limit = c.line->last;
		return true;
	}
	if (source && str_starts(source, "cgroup ") && figure_of(part, FIG_CGROUP_PEAK) >= AT_LIMIT * limit) {
		name_shown(ret->group, source + strlen("cgroup "), strlen(source) - strlen("cgroup "));
		ret->limit = limit;
		return true;
	}
	ret->limit = figure_of(part, FIG_MACHINE_MEMORY);
	return curve_of(l->analysis, EV_AVAILABLE, i, &c) && c.line->least < NOTHING_AVAILABLE * ret->limit;
}

/* ---- out of memory ---- */

static void say_victim(struct look *l, struct finding *f, const struct process_row *victim, bool sure)
{
	const char *name;

	if (!victim) {
		found_say(l, f,
			"Which process it was could not be seen: none that is known ended at that time by "
			"SIGKILL.");
		return;
	}
	name = NAME_SHOWN(victim->name, victim->name_len);
	if (!sure)
		found_say(l, f, "It was probably %s (PID %.0f), the largest that vanished at that time.",
			name, victim->value[PROCESS_PID]);
	if (victim->value[PROCESS_RSS] > 0)
		found_say(l, f, "%s had up to %s resident.", name,
			format_bytes(SHOWN, victim->value[PROCESS_RSS]));
	found_evidence(l, f, "pid", victim->value[PROCESS_PID], UNIT_CODE);
	found_evidence(l, f, "peak_rss_bytes", victim->value[PROCESS_RSS], UNIT_BYTES);
}

static void say_bound(struct look *l, struct finding *f, size_t i, const struct bound *known)
{
	const struct summary *part = part_of(l, i);
	const char *scheduler = part->text[TEXT_SCHEDULER], *job = part->text[TEXT_JOB];
	struct bound bound = known ? *known : (struct bound){.limit = NAN};

	if (!known) {
		found_say(l, f,
			"Which limit it was is not known: no control group was seen at its limit, and the "
			"machine had memory left.");
		return;
	}
	if (*bound.group) {
		found_say(l, f,
			"The control group %s was at its limit of %s, and nothing could be reclaimed.",
			bound.group, format_bytes(SHOWN, bound.limit));
		if (scheduler)
			found_say(l, f, "It is the limit of job %s of %s.", job ? TEXT_SHOWN(job) : "?",
				TEXT_SHOWN(scheduler));
	} else {
		found_say(l, f,
			"No limit of a control group was reached: the machine itself, with %s, had nothing "
			"left, whichever process used it.",
			format_bytes(SHOWN, bound.limit));
	}
	l->oom_limit = MAX(bound.limit, isnan(l->oom_limit) ? 0 : l->oom_limit);
	found_evidence(l, f, *bound.group ? "cgroup.memory.limit" : "limits.machine_memory_bytes",
		bound.limit, UNIT_BYTES);
}

/* Less than that is no growth, and fewer points are none either. */
#define OOM_GROWTH_BYTES (16.0 * 1048576)
#define OOM_GROWTH_POINTS 3

/* How memory went before: a leak looks other than one large allocation. */
static void say_growth_before(struct look *l, struct finding *f, size_t i, double at)
{
	double first = NAN, first_s = NAN, last = NAN, last_s = NAN;
	size_t points = 0;
	struct curve c;

	if (!curve_of(l->analysis, EV_PSS, i, &c) && !curve_of(l->analysis, EV_RSS, i, &c))
		return;
	for (size_t k = 0; k < c.axis->nr_times && c.axis->time_s[k] <= at; k++) {
		double now = c.line->mean[k];

		if (isnan(now) || !(now >= last * 0.99 || isnan(last))) { /* it fell: growth begins anew */
			first = NAN;
			points = 0;
		}
		if (isnan(now))
			continue;
		first_s = isnan(first) ? c.axis->time_s[k] : first_s;
		first = isnan(first) ? now : first;
		last = now;
		last_s = c.axis->time_s[k];
		points++;
	}
	if (points < OOM_GROWTH_POINTS || !(last - first >= OOM_GROWTH_BYTES) || !(last_s > first_s))
		return;
	found_say(l, f, "Before that, memory grew by %s/s: from %s at %s to %s at %s.",
		format_bytes(SHOWN, (last - first) / (last_s - first_s)), format_bytes(SHOWN, first),
		format_duration(SHOWN, first_s), format_bytes(SHOWN, last), format_duration(SHOWN, last_s));
	found_evidence(l, f, "slope_bytes_per_s", (last - first) / (last_s - first_s), UNIT_BYTES);
	if (f && f->nr_evidence)
		f->evidence[f->nr_evidence - 1].per_second = true;
}

/* The most that is known to have counted there; NAN: nothing is. */
static double used_of_bound(const struct look *l, size_t i, const struct bound *b)
{
	const struct summary *part = part_of(l, i);
	double peak = figure_of(part, FIG_CGROUP_PEAK);
	struct curve c;

	if (part->text[TEXT_CGROUP] && !strcmp(b->group, part->text[TEXT_CGROUP]) && peak <= b->limit)
		return peak;
	return curve_named(l->analysis, EV_CG_CURRENT, i, b->group, &c) ? MIN(c.line->most, b->limit) : NAN;
}

/* ": limit 200 MiB of /job, used 199.8 MiB" */
static const char *bound_shown(char out[static 256], const struct look *l, size_t i, const struct bound *b)
{
	double used = used_of_bound(l, i, b);

	*out = 0;
	if (*b->group && b->limit > 0)
		snprintf(out, 256, ": limit %s of %s%s%s", format_bytes(SHOWN, b->limit), b->group,
			used > 0 ? ", used " : "", used > 0 ? format_bytes(SHOWN, used) : "");
	return out;
}

static void say_oom(struct look *l, size_t i, const struct rise *when, bool own)
{
	const struct process_row *sure = find_victim(l, i, when, true),
				 *victim = sure ? sure : find_victim(l, i, when, false);
	double at = sure ? MIN(run_time(l->analysis, i, sure->value[PROCESS_END]), when->to_s) : when->to_s;
	const char *name = sure ? NAME_SHOWN(sure->name, sure->name_len) : "a process";
	char pid[32] = "", limit[256];
	struct bound bound;
	bool bounded;
	struct finding *f;
	struct buf where;

	/* A counter of the whole node may have risen for anybody. */
	if (!own && !sure)
		return;
	if (sure)
		snprintf(pid, sizeof(pid), " (PID %.0f)", sure->value[PROCESS_PID]);
	buf_init(&where, 1 << 16);
	add_when(l->run->phases, at, figure_of(l->run, FIG_WALL), &where);
	bounded = find_bound(l, i, &bound);
	bound_shown(limit, l, i, &bound);
	/* Others may be in the group: of a run that succeeded and lost no process it may be theirs. */
	f = found_on(l, i, "oom",
		sure || figure_of(l->run, FIG_EXIT_CODE) != 0 ? FINDING_SERIOUS : FINDING_WARNING, "memory",
		"Out of memory: the kernel killed %s%s%s%s", name, pid, (char *)where.data,
		bounded ? limit : "");
	buf_release(&where);
	say_victim(l, f, victim, sure);
	if (when->by > 1)
		found_say(l, f, "In all, %.0f processes were killed.", when->by);
	say_bound(l, f, i, bounded ? &bound : NULL);
	say_growth_before(l, f, i, at);
	found_say(l, f,
		"Ask for more memory, or do less at a time. The peak that was seen is only a lower bound of "
		"what the job needs.");
	found_where(f, isnan(when->from_s) ? at : when->from_s, when->to_s);
	found_evidence(l, f, own ? "cgroup.oom_kills" : "paging.oom_kills", when->by, UNIT_COUNT);
	found_figures(l, f, part_of(l, i), FIG_CGROUP_PEAK);
}

void look_oom(struct look *l, size_t i)
{
	struct rise when;
	bool own;

	if (find_kill(l, i, &when, &own))
		say_oom(l, i, &when, own);
}

/* ---- killed, but not for that ---- */

/* The batch system's end of the job, if the run ended there. */
#define AT_TIME_LIMIT_S 60.0

static bool ended_at_time_limit(const struct summary *s)
{
	double wall = figure_of(s, FIG_WALL), end = (double)s->start_wall_ns / 1e9 + wall;
	const char *text = fact_of(s, "SLURM_JOB_END_TIME");
	uint64_t value;

	if (text && parse_u64(text, &value))
		return end >= (double)value - 1 && end <= (double)value + AT_TIME_LIMIT_S;
	text = fact_of(s, "OAR_JOB_WALLTIME_SECONDS");
	text = text ? text : fact_of(s, "PBS_WALLTIME");
	return text && parse_u64(text, &value) && wall >= (double)value - AT_TIME_LIMIT_S;
}

static void say_killed(struct look *l, struct finding *f)
{
	struct memory_view v = memory_view_of(l->analysis, part_of(l, 0), 0, false);
	double limit = figure_of(part_of(l, 0), FIG_LIMIT_MEMORY), kills = figure_of(l->run, FIG_OOM_KILLS);

	if (kills == 0)
		found_say(l, f,
			"Memory had not run out: the kernel's counter of such kills did not rise in "
			"the job's control group. SIGKILL was sent: the batch system at the end of the "
			"time asked for, a user, or a program that ends others.");
	else
		found_say(l, f,
			"Whether memory had run out is not known: the kernel's counter of such kills "
			"could not be read.");
	if (v.bytes / limit >= 0)
		found_say(l, f, "The memory peak was %s of %s allowed.", format_bytes(SHOWN, v.bytes),
			format_bytes(SHOWN, limit));
}

static void say_signal(struct look *l, struct finding *f, int signal)
{
	static const struct {
		int signal;
		const char *meaning;
	} known[] = {{SIGSEGV,
			     "The program touched memory that is not its own: a bug in it, or a stack that "
			     "was too small (ulimit -s)."},
		{SIGBUS,
			"A mapped file was cut short, or there was no room for a page of it (/dev/shm, huge "
			"pages)."},
		{SIGABRT, "The program gave up by itself: see its last words."},
		{SIGILL, "The program was built for another processor (-march=native on another node?)."},
		{SIGFPE, "The program divided by zero, or asked to be stopped at such."},
		{SIGXCPU, "It had used up the CPU time that a limit allows (ulimit -t)."},
		{SIGXFSZ, "A file grew beyond what a limit allows (ulimit -f)."},
		{SIGTERM,
			"It was asked to end: so do batch systems at the end of the time asked for, and "
			"users."},
		{SIGINT, "Ctrl-C was pressed."}, {SIGHUP, "Its terminal went away."},
		{SIGPIPE, "It wrote to a program that had ended."}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].signal == signal)
			found_say(l, f, "%s", known[i].meaning);
}

static void say_code(struct look *l, int code)
{
	struct finding *f =
		found(l, "failed", FINDING_WARNING, NULL, "The job failed with exit code %d", code);

	if (code == 127)
		found_say(l, f, "So a shell says that a command was not found.");
	else if (code == 126)
		found_say(l, f, "So a shell says that a file could not be executed.");
	else if (code > 128 && code < 128 + 65)
		found_say(l, f, "So a shell says that its last command was ended by signal %d.", code - 128);
	found_say(l, f, "What it did up to there is told here; a run that succeeds may need more.");
	found_figures(l, f, l->run, FIG_EXIT_CODE);
}

/* A shell tells of its child's signal by a code above 128. */
void look_exit(struct look *l)
{
	double code = figure_of(l->run, FIG_EXIT_CODE), number = figure_of(l->run, FIG_EXIT_SIGNAL);
	int signal = !isnan(number) ? (int)number : code == 128 + SIGKILL ? SIGKILL : 0;
	const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
	struct finding *f;

	if (!signal && code > 0)
		say_code(l, (int)code);
	if (signal <= 0 || (signal == SIGKILL && found_has(l, "oom")))
		return;
	f = found(l, signal == SIGKILL ? "killed" : "signal", FINDING_SERIOUS, NULL,
		name ? "The job was ended by the signal SIG%s" : "The job was ended by signal %s",
		name ? name : format_number(SHOWN, signal));
	if (signal == SIGKILL)
		say_killed(l, f);
	else
		say_signal(l, f, signal);
	if (ended_at_time_limit(part_of(l, 0)))
		found_say(l, f, "It ended when the time that was asked for was over: ask for more.");
	found_figures(l, f, l->run, FIG_EXIT_SIGNAL, FIG_EXIT_CODE, FIG_WALL);
}
