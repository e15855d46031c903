/* What a careful colleague would add to the numbers: where they are bounds or estimates, and what was lost.
 */
#include "query/nodes.h"

#include "base/str.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *plural(double n)
{
	return n == 1 ? "" : "s";
}

/* The group whose quota it is: with v1 CPUs and memory may be counted in different ones. */
static const char *quota_group(const struct summary *s, char out[static 256])
{
	static const char group[] = "cgroup ";
	const char *source = s->text[TEXT_CPUS_SOURCE];
	const char *end = source && str_starts(source, group) ? strstr(source, " cpu.") : NULL;

	if (!end)
		return s->text[TEXT_CGROUP] ? s->text[TEXT_CGROUP] : "the job's control group";
	source += strlen(group);
	snprintf(out, 256, "%.*s", (int)(end - source), source);
	return out;
}

/* What changes the meaning of everything else. */
void summary_alarms(struct summary *s)
{
	double kills = has_figure(s, FIG_OOM_KILLS) ? s->figure[FIG_OOM_KILLS].value : 0;
	double held = has_figure(s, FIG_THROTTLED) ? s->figure[FIG_THROTTLED].value : 0;
	const char *path = s->text[TEXT_CGROUP];
	size_t others = s->nr_notes;
	char text[UNITS_SIZE], group[256];

	if (kills > 0)
		summary_note(s, "out of memory: the kernel killed %.0f process%s of the control group %s",
			kills, kills == 1 ? "" : "es", path ? path : "of the job");
	if (held >= 0.01)
		summary_note(s, "throttled: the CPU quota of %s made its threads wait %s in total",
			quota_group(s, group), format_duration(text, held));
	s->nr_alarms = s->nr_notes - others;
	for (size_t i = 0; i < s->nr_alarms; i++) {
		char *note = s->note[others + i];

		memmove(&s->note[i + 1], &s->note[i], others * sizeof(*s->note));
		s->note[i] = note;
	}
}

static void note_cpu(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	uint64_t only_sampled = ledger_line(a, 0).only_sampled, uncounted = ledger_line(a, 0).uncounted;
	bool tells_exits = strstr(meta_text(ledger_meta(a), "helpers"), "taskstats");
	char text[UNITS_SIZE];

	if (f->end_missing && (f->ticks || s->cpu_lower_bound))
		summary_note(s, "%s are lower bounds: the end of the recording is missing",
			s->cpu_lower_bound ? "totals"
					   : "bytes, calls, faults and switches, and peaks of cores, threads "
					     "and USS");
	else if (s->cpu_lower_bound && f->dropped_ns > 0)
		summary_note(s,
			"CPU time is a lower bound: a parent ignores SIGCHLD, so what its children used was "
			"dropped by "
			"the kernel (%s of it was seen by sampling or in exit records)",
			format_duration(text, (double)f->dropped_ns * 1e-9));
	else if (s->cpu_lower_bound && ledger_line(a, 0).left && !f->sigchld_ignored)
		summary_note(s,
			"CPU time is a lower bound: a part of the job left the control group that counts it");
	else if (s->cpu_lower_bound && f->escaped)
		summary_note(s,
			"CPU time is a lower bound: %llu process%s may have come from the tree and %s not "
			"counted: the parent had ended before it could be seen",
			(unsigned long long)f->escaped, f->escaped == 1 ? "" : "es",
			f->escaped == 1 ? "is" : "are");
	else if (s->cpu_lower_bound && uncounted)
		summary_note(s,
			"CPU time is a lower bound: %llu process%s not counted: it is not known who waited "
			"for "
			"%s, or how much was used before the recording",
			(unsigned long long)uncounted, uncounted == 1 ? " is" : "es are",
			uncounted == 1 ? "it" : "them");
	else if (s->cpu_lower_bound && only_sampled)
		summary_note(s,
			"CPU time is a lower bound: of %llu process%s that ended outside the tree only "
			"the last sample counts",
			(unsigned long long)only_sampled, only_sampled == 1 ? "" : "es");
	else if (s->cpu_lower_bound && f->attached && f->unknown > 0)
		summary_note(s,
			"CPU time and io are lower bounds: up to %lld process%s lived between two samples; "
			"of "
			"them only what a process of the tree waited for is counted",
			(long long)f->unknown, f->unknown == 1 ? "" : "es");
	else if (s->cpu_lower_bound && (f->lost_bytes || f->lost_places))
		summary_note(s, "totals are lower bounds: a part of the recording is lost");
	else if (s->cpu_lower_bound)
		summary_note(s,
			"CPU time is a lower bound: %llu process%s ignored SIGCHLD, and the kernel drops "
			"what the children "
			"of such a parent used",
			(unsigned long long)f->sigchld_ignored, f->sigchld_ignored == 1 ? "" : "es");
	if (f->assumed)
		summary_note(s,
			"totals may include other processes than the job's: %llu process%s with an "
			"unknown parent %s counted, because user, control group and session or process "
			"group are the same",
			(unsigned long long)f->assumed, f->assumed == 1 ? "" : "es",
			f->assumed == 1 ? "is" : "are");
	if (f->dropped_ns > 0 || f->sigchld_ignored)
		summary_note(s,
			"page faults, context switches and I/O are lower bounds: of the children of a parent "
			"that ignores SIGCHLD only what was sampled or has an exit record is counted%s",
			s->cpu_lower_bound || tells_exits
				? ""
				: "; their CPU time is counted by the control group, "
				  "unless they left it between two samples");
	if (has_figure(s, FIG_PEAK_CORES) && has_figure(s, FIG_CPUS) &&
		s->figure[FIG_PEAK_CORES].value > s->figure[FIG_CPUS].value + 0.005)
		summary_note(s, "the peak of CPUs in use is above the number of CPUs: samples were late");
}

static void note_memory(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	struct account_facts whole = ledger_line(a, 0);
	uint64_t io_unread = whole.io_unread, unknown = whole.peak_unknown;
	double hwm = s->figure[FIG_HWM].value, rss = s->figure[FIG_RSS].value;
	char text[UNITS_SIZE], other[UNITS_SIZE];

	if (has_figure(s, FIG_HWM) && has_figure(s, FIG_RSS) && hwm > rss * 1.05 && hwm - rss > 1 << 20)
		summary_note(s,
			f->attached ? "one process once had %s resident, more than the sum over all of "
				      "them at any sample (%s): between two samples, or before tacho "
				      "attached"
				    : "one process reached %s resident between two samples; at no sample did "
				      "the sum exceed %s",
			format_bytes(text, hwm), format_bytes(other, rss));
	if (s->memory_lower_bound && unknown)
		summary_note(s,
			"memory is a lower bound: of %llu process%s that ended the last sample is known, not "
			"what "
			"came after it",
			(unsigned long long)unknown, unknown == 1 ? "" : "es");
	else if (s->memory_lower_bound && !s->cpu_lower_bound)
		summary_note(s, "memory is a lower bound: some processes were not seen up to their end");
	if (has_figure(s, FIG_PSS) && s->figure[FIG_PSS_ESTIMATED].value > 0.01)
		summary_note(s,
			f->pss_reads
				? "~ %.0f %% of the PSS at its peak is an estimate between two readings"
				: "~ PSS was never read (%.0f %% is an estimate): RSS less what is shared",
			100 * s->figure[FIG_PSS_ESTIMATED].value);
	if (f->deferred > 0)
		summary_note(s,
			"PSS and USS were read less often to stay within the budget (%lld readings "
			"postponed%s)",
			(long long)f->deferred, f->backoff > 1 ? ", and other slow metrics too" : "");
	if (f->turns > 0)
		summary_note(s,
			"details of processes were read in turns: %lld readings were postponed to stay "
			"within the interval or the budget%s",
			(long long)f->turns, f->clock_turns > 0 ? "" : "; CPU time was read for all");
	if (f->clock_turns > 0)
		summary_note(s,
			"CPU time of processes that sleep was read in turns, to stay within the budget: what "
			"one uses that wakes is seen some samples late%s",
			s->cpu_source && !strcmp(s->cpu_source, "cgroup")
				? ""
				: ", and peaks of CPU use may be too high");
	if (io_unread)
		summary_note(s,
			has_figure(s, FIG_READ_CHARS)
				? "io is a lower bound: that of %llu process%s could not be read, or not to "
				  "the end"
				: "io of %llu process%s could not be read",
			(unsigned long long)io_unread, io_unread == 1 ? "" : "es");
}

/* A few ticks are missed anywhere; where it is one in twenty, people want to know why. */
static void note_missed(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	const char *priority = meta_text(ledger_meta(a), "priority");
	const char *group = meta_text(ledger_meta(a), "cpu_group");
	unsigned long long due = f->ticks + (uint64_t)f->missed;
	int64_t cpus = 0;

	if (f->missed < 2 || (uint64_t)f->missed <= f->ticks / 19)
		return;
	meta_num(ledger_meta(a), "nr_cpus", &cpus);
	if (cpus <= 0 || f->most_running / 2 <= cpus)
		summary_note(s,
			"%lld of %llu ticks missed: the recorder was delayed, or the interval is too "
			"short for what it reads",
			(long long)f->missed, due);
	else
		summary_note(s,
			"%lld of %llu ticks missed: the machine was overloaded (%lld runnable threads on "
			"%lld CPUs)%s%s%s",
			(long long)f->missed, due, (long long)f->most_running, (long long)cpus,
			*priority ? " and tacho had " : "",
			strcmp(priority, "none") ? priority
				: *group	 ? "a CPU group of its own but no priority"
						 : "no priority",
			*priority ? "; see tacho doctor" : "");
}

/* What is missing because it could not be written, and what to do about it. */
static void note_not_written(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	const struct meta *ending = ledger_ending(a);
	const char *error = meta_text(ending, "write_error");
	uint64_t all = (uint64_t)MAX(s->figure[FIG_TICKS].value, 0), lost = all - MIN(all, f->ticks);
	char text[WRITE_LOSS_SIZE];

	if (*error)
		summary_note(s, "incomplete: %s%s; to avoid it, %s",
			write_loss(text, error, f->last_ns, lost, all),
			!meta_find(ending, "processes") ? ""
				: meta_find(ending, "cpu_ns")
				? ". CPU time, memory and the number of processes are those of the whole job"
				: ". Memory and the number of processes are those of the whole job",
			write_error_of(error)->remedy);
	else if (f->gaps)
		summary_note(s,
			"incomplete: %s for a while: %llu of %llu ticks are not recorded; to avoid it, %s",
			f->gap_error->what, (unsigned long long)f->gap_ticks, (unsigned long long)all,
			f->gap_error->remedy);
}

static void note_recording(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);
	uint64_t places = f->lost_places - MIN(f->lost_places, f->gaps);
	char text[UNITS_SIZE];

	if (!f->complete)
		summary_note(s,
			f->writing ? "still being written: these are the numbers up to %s"
				   : "unfinished: recorded up to %s; the recorder was killed, or not even "
				     "the end "
				     "of the recording could be written",
			format_duration(text, (double)f->last_ns * 1e-9));
	note_not_written(s, a);
	if (places || f->lost_bytes)
		summary_note(s, "damaged: %s lost in %llu place%s; no rates are computed across them",
			format_bytes(text, (double)f->lost_bytes), (unsigned long long)MAX(places, 1),
			plural((double)MAX(places, 1)));
	if (f->complete && f->unfinished)
		summary_note(s, "%llu process%s still ran when the recording ended",
			(unsigned long long)f->unfinished, f->unfinished == 1 ? "" : "es");
	if (f->events_lost > 0)
		summary_note(s,
			"process events of the kernel were lost %lld time%s; the processes were "
			"listed again",
			(long long)f->events_lost, plural((double)f->events_lost));
	note_missed(s, a);
	if (f->skipped > 0)
		summary_note(s, "%lld tick%s left out to stay within the budget", (long long)f->skipped,
			plural((double)f->skipped));
	if (f->clock_steps)
		summary_note(s, "the wall clock was set %llu time%s during the recording",
			(unsigned long long)f->clock_steps, plural((double)f->clock_steps));
	if (s->figure[FIG_REDACTED].value > 0 && !s->figure[FIG_REDACTED].why)
		summary_note(s, "secrets were blanked in %.0f command line%s (***)",
			s->figure[FIG_REDACTED].value, plural(s->figure[FIG_REDACTED].value));
	for (unsigned i = 0; i < f->nr_left_out; i++)
		summary_note(s, "%s", f->left_out[i]);
	if (f->stops)
		summary_note(s, "the job was stopped %llu time%s", (unsigned long long)f->stops,
			plural((double)f->stops));
}

static void note_limits(struct summary *s)
{
	char text[UNITS_SIZE], other[UNITS_SIZE];

	if (has_figure(s, FIG_CPU_OF_ALLOCATION) && s->figure[FIG_CPU_OF_ALLOCATION].value > 1.05)
		summary_note(s,
			"more CPUs were in use than allocated: the limit does not apply to all of the job");
	if (has_figure(s, FIG_CGROUP_PEAK) && has_figure(s, FIG_LIMIT_MEMORY) &&
		s->figure[FIG_CGROUP_PEAK].value >= 0.98 * s->figure[FIG_LIMIT_MEMORY].value &&
		s->figure[FIG_LIMIT_MEMORY].value < s->figure[FIG_MACHINE_MEMORY].value)
		summary_note(s,
			"the control group reached %s of the %s allowed: file caches count there, too",
			format_bytes(text, s->figure[FIG_CGROUP_PEAK].value),
			format_bytes(other, s->figure[FIG_LIMIT_MEMORY].value));
}

/* The kernel counts a page as written to storage when a program makes it dirty. Whether a disk ever got it is
 * another question. Less than this is nothing to wonder at. */
#define UNWRITTEN_LEAST (16 << 20)
#define UNWRITTEN_SHARE 0.1

static void note_storage(struct summary *s)
{
	double wrote = has_figure(s, FIG_WRITE_BYTES) ? s->figure[FIG_WRITE_BYTES].value : 0;
	double cancelled = has_figure(s, FIG_CANCELLED) ? MIN(s->figure[FIG_CANCELLED].value, wrote) : 0;
	double disks = has_figure(s, FIG_DISK_WRITTEN) ? s->figure[FIG_DISK_WRITTEN].value : NAN;
	double left = wrote - cancelled - disks, least = MAX(UNWRITTEN_SHARE * wrote, UNWRITTEN_LEAST);
	char text[UNITS_SIZE], other[UNITS_SIZE];

	if (cancelled >= least)
		summary_note(s,
			"of the %s written to storage, %s never reached it: the files were cut or removed "
			"first",
			format_bytes(text, wrote), format_bytes(other, cancelled));
	if (left >= least)
		summary_note(s,
			"the node's disks wrote only %s in that time: at least %s that the job wrote was "
			"still in the "
			"page cache at the end, or is not on a local disk",
			format_bytes(text, disks), format_bytes(other, left));
}

static void note_groups(struct summary *s, const struct ledger *a)
{
	const struct ledger_facts *f = ledger_facts(a);

	if (f->others_hidden)
		summary_note(s,
			"processes of other users were hidden (/proc is mounted with hidepid): only those "
			"of this user are counted");
	if (f->unasked)
		summary_note(s,
			"up to %llu process%s ended before the command line could be read: what they used "
			"is not counted for any tool",
			(unsigned long long)f->unasked, f->unasked == 1 ? "" : "es");
	if (f->groups_left_out)
		summary_note(s, "there are more groups than can be recorded: only the first are counted");
}

/* What is recorded wherever it is there is not missed where it is not; what was asked for is. Of counters
 * each event is told. */
static void note_asked(struct summary *s, const struct ledger *a)
{
	const struct meta_item *asked = meta_find(ledger_meta(a), "asked");

	for (size_t at = 0; asked && at < asked->len; at += strlen(asked->value + at) + 1) {
		const char *set = asked->value + at, *why = ledger_set_why(a, set);

		if (why && strcmp(set, "perf"))
			summary_note(s, "%s was requested, but is not available: %s", set, why);
	}
}

int summary_notes(struct summary *s, const struct ledger *a)
{
	note_asked(s, a);
	note_cpu(s, a);
	note_memory(s, a);
	note_limits(s);
	note_storage(s);
	note_groups(s, a);
	note_recording(s, a);
	return 0;
}
