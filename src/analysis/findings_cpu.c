/* How the job used its CPUs: of those it was given, how many; and who held it back. */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below half of what was given, and a whole core at least, the next run can do with less. */
#define CORES_FEW 0.5
/* From there on less is not worth asking for. */
#define CORES_WELL 0.8
/* One core in use, with what the recorder's rounding and a helper process add or take. */
#define ONE_CORE_LOW 0.75
#define ONE_CORE_HIGH 1.25

/* ---- used against given ---- */

struct few_cores {
	double used, given;
	double wanted; /* what the job would have used had others not been there */
	double p95;    /* of the cores in use; where it is not known, the peak */
	bool sure;     /* nothing held it back */
};

/* What to ask for is said where the advice says the same. */
static void say_why_few(struct look *l, struct finding *f, const struct few_cores *c)
{
	if (c->wanted < 0.3)
		found_say(l, f,
			"The job hardly computed: it slept, or waited for input, disks or other processes.");
	else if (c->p95 >= 0.75 * c->given)
		found_say(l, f,
			"At times %s were in use: the work is there, in parts of the run. See in the plot "
			"where few are busy.",
			cores_shown(SHOWN, c->p95));
	else if (c->wanted <= ONE_CORE_HIGH && !(cores_to_ask(c->p95) > 1))
		found_say(l, f, "%s.%s",
			c->used >= ONE_CORE_LOW
				? "One core was busy nearly all the time: the program runs serially"
				: c->wanted >= ONE_CORE_LOW
				? "It had work for one core nearly all the time: the program runs serially"
				: "It never had work for more than about one core, and part of the time for "
				  "none: it slept, or waited for input, disks or other processes",
			c->sure ? " Ask for one, or tell it how many to use (OMP_NUM_THREADS, -j, mpirun "
				  "-np)."
				: "");
	else if (!isnan(c->p95))
		found_say(l, f, "95 %% of the time no more than %s were in use.%s",
			cores_shown(SHOWN, c->p95),
			c->sure ? " Ask for so many, or start more threads or processes." : "");
	else if (c->sure)
		found_say(l, f, "Ask for fewer, or start more threads or processes.");
	if (!c->sure)
		found_say(l, f, "How many it can use is not sure, since it was held back.");
}

void look_cores(struct look *l)
{
	double used = figure_of(l->run, FIG_MEAN_CORES), given = figure_of(l->run, FIG_LIMIT_CPUS);
	double p95 = stat_of(l->analysis, STATS_RUN, 0, STAT_CORES_P95);
	bool granted = is_granted(l->run, FIG_LIMIT_CPUS, FIG_MACHINE_CPUS),
	     well = used >= CORES_WELL * given;
	double wanted = used + l->lost_cpu_s / figure_of(l->run, FIG_WALL);
	struct finding *f;

	/* What others took is told of them; what they may have taken says nothing of the job. */
	if (!(given > 0) || isnan(used) ||
		(!well && (l->contended || wanted >= CORES_FEW * given || given - wanted < 1)))
		return;
	f = found(l, well ? "cores-used" : "unused-cores",
		well		  ? FINDING_FINE
			: granted ? FINDING_WARNING
				  : FINDING_NOTE,
		"cpu", "%s of %s were in use on average", format_cores(SHOWN, used),
		cores_shown(SHOWN, given));
	if (well)
		found_say(l, f, "The job used well the CPUs that it was given.");
	else
		say_why_few(l, f,
			&(struct few_cores){.used = used,
				.given = given,
				.wanted = wanted,
				.p95 = isnan(p95) ? figure_of(l->run, FIG_PEAK_CORES) : p95,
				.sure = !cores_not_shown(l)});
	if (!well && !granted)
		found_say(l, f, "The cores were the machine's: no limit was set.");
	found_figures(l, f, l->run, FIG_MEAN_CORES, FIG_LIMIT_CPUS, FIG_PEAK_CORES);
	found_evidence(l, f, "cores_p95", p95, UNIT_COUNT);
}

/* ---- what of the node others took ---- */

/* A quarter of a thread waiting is noise of the scheduler. */
#define WAITING_LEAST 0.25
/* Below that the job does not have what it was given. */
#define HAS_ITS_CPUS 0.85
/* Of the CPU time that it could have had. */
#define STARVED_LEAST 0.1
/* And of the time of the run: one that mostly sleeps lost a second of its minute at most. */
#define STARVED_LEAST_OF_TIME 0.05
#define CROWDED_LEAST 0.25
#define STARVED_LEAST_S 3.0
/* Fewer points than that are no sign of anything. */
#define QUEUE_LEAST 3
/* All CPUs of the node have work. */
#define NODE_FULL 0.9
/* A job that has more to do than CPUs for it for so much of the time may have used more of them. */
#define CONTENDED_LEAST 0.2
/* The share of the job's CPU time that makes a process one of those that compute. */
#define COMPUTES_LEAST 0.1

struct queue { /* what is known of a moment */
	struct curve cores, busy, ready;
	bool has_busy, has_ready;
	bool hidden; /* threads may wait that no curve shows */
	double given, machine;
};

/* The kernel tells the waiting time of each thread apart, and the recorder reads that of main threads: those
 * of a program whose main thread sleeps wait unseen. */
static bool computes_in_threads(const struct look *l, size_t node)
{
	const struct process_table *t = l->analysis->processes;
	double cpu = figure_of(part_of(l, node), FIG_CPU);

	for (size_t i = 0; t && i < t->nr; i++)
		if (t->row[i].node == node && t->row[i].value[PROCESS_THREADS] >= 2 &&
			t->row[i].value[PROCESS_CPU] >= COMPUTES_LEAST * cpu)
			return true;
	return false;
}

static bool queue_of(const struct look *l, size_t i, struct queue *ret)
{
	const struct summary *part = part_of(l, i);

	*ret = (struct queue){
		.given = figure_of(part, FIG_LIMIT_CPUS), .machine = figure_of(part, FIG_MACHINE_CPUS)};
	ret->has_busy = curve_of(l->analysis, EV_BUSY, i, &ret->busy);
	ret->has_ready = curve_of(l->analysis, EV_READY, i, &ret->ready);
	ret->hidden = computes_in_threads(l, i);
	return curve_of(l->analysis, EV_CORES, i, &ret->cores);
}

/* CPUs that other processes of the node used at this point; NAN: not known. */
static double used_by_others(const struct queue *q, size_t i)
{
	return q->has_busy ? q->busy.line->mean[i] * q->machine - q->cores.line->mean[i] : NAN;
}

/* CPU time per second that the job could have had at this point and others took; 0: none. */
static double taken_by_others(const struct queue *q, size_t i)
{
	double cores = q->cores.line->mean[i], ready = q->ready.line->mean[i];
	double others = used_by_others(q, i);

	if (!(ready >= WAITING_LEAST) || !(others >= WAITING_LEAST) || !(cores < HAS_ITS_CPUS * q->given))
		return 0;
	return MIN(MIN(ready, others), q->given - cores);
}

/* The CPUs were full, others had a part of them, and the job may have had threads that waited. */
static double hidden_by_others(const struct queue *q, size_t i)
{
	double cores = q->cores.line->mean[i], others = used_by_others(q, i);

	return q->hidden && others >= WAITING_LEAST && cores < HAS_ITS_CPUS * q->given &&
			q->busy.line->mean[i] >= NODE_FULL
		? MIN(others, q->given - cores)
		: 0;
}

/* How many cores the job could use at this point cannot be seen in how many it used. */
static bool is_contended(const struct queue *q, size_t i)
{
	return (q->has_ready && q->has_busy && taken_by_others(q, i) > 0) || hidden_by_others(q, i) > 0;
}

/* The kernel's own word: for how much of the time something of the job waited for a CPU. It counts where the
 * group is the job's alone, and where it did not have its CPUs: else its own threads were in each other's
 * way. */
static bool is_pressed(const struct look *l, size_t i, const struct queue *q)
{
	const struct summary *part = part_of(l, i);
	struct curve c;

	return curve_named(l->analysis, EV_CG_PRESSURE_CPU, i, part->text[TEXT_CGROUP], &c) &&
		!group_has_others(l->analysis, part, i) && curve_per_s(&c) >= CONTENDED_LEAST &&
		q->cores.line->average < HAS_ITS_CPUS * q->given;
}

static bool is_hidden(const void *arg, size_t i)
{
	return hidden_by_others(arg, i) > 0;
}

/* ---- a serial section ---- */

/* Shorter ones are start-up and clean-up. */
#define SERIAL_LEAST_S 10.0
#define SERIAL_LEAST_SHARE 0.2
/* Elsewhere it is parallel; a run that is serial throughout is told by its mean. */
#define PARALLEL_CORES 1.5
#define PARALLEL_LEAST_SHARE 0.1
#define SERIAL_PAUSE_S 1.0

static bool is_one_core(const void *arg, size_t i)
{
	const struct queue *q = arg;
	double cores = q->cores.line->mean[i];

	return cores >= ONE_CORE_LOW && cores <= ONE_CORE_HIGH && !is_contended(q, i);
}

static bool is_parallel(const void *arg, size_t i)
{
	const struct queue *q = arg;

	return q->cores.line->mean[i] >= PARALLEL_CORES;
}

/* The longest on any node: what all wait for. */
static bool find_serial(struct look *l, size_t *ret_part, struct span *ret)
{
	bool any = false;

	*ret = (struct span){0};
	for (size_t i = 0; i < nr_parts(l); i++) {
		const struct summary *part = part_of(l, i);
		double wall = figure_of(part, FIG_WALL);
		struct span one, many;
		struct queue q;

		if (!(figure_of(part, FIG_LIMIT_CPUS) >= 2) || !queue_of(l, i, &q) || is_pressed(l, i, &q))
			continue;
		one = curve_where(&q.cores, SERIAL_PAUSE_S, is_one_core, &q);
		many = curve_where(&q.cores, SERIAL_PAUSE_S, is_parallel, &q);
		if (!(one.to_s - one.from_s >= SERIAL_LEAST_S) || one.total_s < SERIAL_LEAST_SHARE * wall ||
			many.total_s < PARALLEL_LEAST_SHARE * wall || one.total_s <= ret->total_s)
			continue;
		any = true;
		*ret = one;
		*ret_part = i;
	}
	return any;
}

void look_serial(struct look *l)
{
	const struct summary *part;
	struct span where;
	struct finding *f;
	double given;
	size_t i;

	if (!find_serial(l, &i, &where))
		return;
	part = part_of(l, i);
	given = figure_of(part, FIG_LIMIT_CPUS);
	f = found_on(l, i, "serial",
		is_granted(part, FIG_LIMIT_CPUS, FIG_MACHINE_CPUS) ? FINDING_WARNING : FINDING_NOTE, "cpu",
		"For %s (%.0f %% of the time) one core was busy and %.0f idle",
		format_duration(SHOWN, where.total_s), 100 * where.total_s / figure_of(part, FIG_WALL),
		given - 1);
	found_say(l, f,
		"A part of the job runs serially, elsewhere it is parallel. However many cores it gets, it "
		"cannot take less than this; meanwhile %s of the others' time were paid for and not used.",
		format_duration(SHOWN, where.total_s * (given - 1)));
	found_where(f, where.from_s, where.to_s);
	found_evidence(l, f, "serial_s", where.total_s, UNIT_SECONDS);
	found_evidence(l, f, "longest_serial_s", where.to_s - where.from_s, UNIT_SECONDS);
	found_figures(l, f, part, FIG_LIMIT_CPUS);
}

/* ---- held back by a quota ---- */

/* Of the CPU time that it wanted; a period cut short now and then costs nothing. */
#define THROTTLED_LEAST 0.05
#define THROTTLED_LEAST_S 0.5

static bool is_above_before(const void *arg, size_t i)
{
	const struct curve *c = arg;

	return i && c->line->mean[i] > c->line->mean[i - 1];
}

/* The group whose quota held back most: the job's own, or one above it. */
static bool most_throttled(const struct look *l, size_t part, struct curve *ret)
{
	bool any = false;
	struct curve c;
	size_t at = 0;

	while (curve_next(l->analysis, EV_CG_THROTTLED, part, &at, &c)) {
		if (!(curve_grown(&c) > 0) || (any && curve_grown(&c) <= curve_grown(ret)))
			continue;
		*ret = c;
		any = true;
	}
	return any;
}

/* Where every controller has a hierarchy of its own, the group of the quota is another than that by which the
 * job's is called: the limit knows it. */
static const char *whose_quota(const struct summary *part, const struct curve *c, char out[static NAME_SIZE])
{
	const char *source = part->text[TEXT_CPUS_SOURCE], *name, *end;

	if (!source || !str_starts(source, "cgroup "))
		return name_shown(out, c->line->name, c->line->name_len);
	name = source + strlen("cgroup ");
	end = strrchr(name, ' ');
	return name_shown(out, name, end ? (size_t)(end - name) : strlen(name));
}

void look_throttled(struct look *l, size_t i)
{
	const struct summary *part = part_of(l, i);
	double cpu = figure_of(part, FIG_CPU), held, share, limit = NAN;
	char quota[UNITS_SIZE] = "", name[NAME_SIZE];
	struct curve c, other;
	struct finding *f;
	struct span where;

	if (!most_throttled(l, i, &c))
		return;
	held = curve_grown(&c);
	share = held / (held + cpu);
	if (!(share >= THROTTLED_LEAST) || held < THROTTLED_LEAST_S)
		return;
	where = curve_where(&c, INFINITY, is_above_before, &c);
	f = found_on(l, i, "throttled", FINDING_WARNING, "cgroup", "A CPU quota held the job back for %s",
		format_duration(SHOWN, held));
	if (curve_named(l->analysis, EV_CG_QUOTA, i, c.line->name, &other)) {
		limit = other.line->last;
		snprintf(quota, sizeof(quota), " of %.30s", cores_shown(SHOWN, limit));
	}
	found_say(l, f,
		"The control group %s used up its CPU quota%s again and again, and its threads were stopped: "
		"%.0f %% of the CPU time that they wanted. Ask for more CPUs, or start no more threads than "
		"the quota has.",
		whose_quota(part, &c, name), quota, 100 * share);
	found_where(f, where.from_s, where.to_s);
	found_evidence(l, f, "cgroup.cpu.throttled", held, UNIT_SECONDS);
	found_evidence(l, f, "cgroup.cpu.quota", limit, UNIT_COUNT);
	if (curve_named(l->analysis, EV_CG_THROTTLED_PERIODS, i, c.line->name, &other))
		found_evidence(l, f, "cgroup.cpu.throttled_periods", curve_grown(&other), UNIT_COUNT);
	if (curve_named(l->analysis, EV_CG_PERIODS, i, c.line->name, &other))
		found_evidence(l, f, "cgroup.cpu.periods", curve_grown(&other), UNIT_COUNT);
	found_figures(l, f, part, FIG_CPU);
}

/* ---- ready, and no CPU to be had ---- */

static bool is_starved(const void *arg, size_t i)
{
	return taken_by_others(arg, i) > 0;
}

/* Threads that wait while the job has all its CPUs: its own are in each other's way. */
static double waits_for_itself(const struct queue *q, size_t i)
{
	double ready = q->ready.line->mean[i];

	return ready >= WAITING_LEAST && q->cores.line->mean[i] >= HAS_ITS_CPUS * q->given ? ready : 0;
}

static double over_time(const struct queue *q, double (*amount)(const struct queue *q, size_t i))
{
	double sum = 0;

	for (size_t i = 0; i < q->cores.axis->nr_times; i++) {
		double add = amount(q, i) * curve_width(&q->cores, i);

		sum += isfinite(add) ? add : 0;
	}
	return sum;
}

static void say_starved(struct look *l, size_t i, const struct queue *q, double lost)
{
	struct span where = curve_where(&q->cores, SERIAL_PAUSE_S, is_starved, q);
	struct finding *f;
	struct curve c;

	if (where.total_s < STARVED_LEAST_S)
		return;
	f = found_on(l, i, "starved", FINDING_WARNING, "node-cpu",
		"Other processes of the node took %s of CPU time that the job was ready to use",
		format_duration(SHOWN, lost));
	found_say(l, f,
		"For %s the job's processes waited for a CPU and had fewer than they were given, while "
		"others "
		"computed on the node. Ask for the node alone (--exclusive), or find out who else runs "
		"there.",
		format_duration(SHOWN, where.total_s));
	found_where(f, where.from_s, where.to_s);
	found_evidence(l, f, "lost_cpu_s", lost, UNIT_SECONDS);
	found_evidence(l, f, "proc.sched.waiting", q->ready.line->average, UNIT_COUNT);
	found_evidence(l, f, "cpu.busy", q->busy.line->average, UNIT_RATIO);
	found_figures(l, f, part_of(l, i), FIG_MEAN_CORES, FIG_LIMIT_CPUS);
	if (curve_of(l->analysis, EV_PRESSURE_CPU, i, &c))
		found_evidence(l, f, "pressure.cpu.some", curve_per_s(&c), UNIT_RATIO);
}

static void say_crowded(struct look *l, size_t i, const struct queue *q, double waited)
{
	struct finding *f =
		found_on(l, i, "crowded", FINDING_NOTE, "cpu", "The job's own processes waited %s for its %s",
			format_duration(SHOWN, waited), cores_shown(SHOWN, q->given));

	found_say(l, f,
		"More of them were ready than there are CPUs for the job. That is well where they finish "
		"sooner together; start fewer at a time where they share memory or caches.");
	found_evidence(l, f, "waited_s", waited, UNIT_SECONDS);
	found_figures(l, f, part_of(l, i), FIG_MEAN_CORES, FIG_LIMIT_CPUS);
}

/* What others used may have been what the job's threads waited for: nothing tells. */
static void say_node_full(struct look *l, size_t i, const struct queue *q)
{
	struct span where = curve_where(&q->cores, SERIAL_PAUSE_S, is_hidden, q);
	double others = q->busy.line->average * q->machine - q->cores.line->average;
	struct finding *f;

	if (where.total_s < STARVED_LEAST_S)
		return;
	f = found_on(l, i, "node-full", FINDING_WARNING, "node-cpu",
		"For %s all CPUs of the node were busy, and other processes used %s of its %.0f",
		format_duration(SHOWN, where.total_s), format_cores(SHOWN, others), q->machine);
	found_say(l, f,
		"The job computes in several threads and had %s on average of the %s that it was given. How "
		"many it "
		"could have used is not known: the waiting time of threads other than the main thread is not "
		"recorded. Ask for the node alone (--exclusive), or find out what else runs there.",
		cores_shown(SHOWN, q->cores.line->average), cores_shown(SHOWN, q->given));
	found_where(f, where.from_s, where.to_s);
	found_evidence(l, f, "full_s", where.total_s, UNIT_SECONDS);
	found_evidence(l, f, "others_cores", others, UNIT_COUNT);
	found_evidence(l, f, "cpu.busy", q->busy.line->average, UNIT_RATIO);
	found_figures(l, f, part_of(l, i), FIG_MEAN_CORES, FIG_LIMIT_CPUS);
}

/* Threads that a quota stopped wait for no neighbour. */
void look_starved(struct look *l, size_t i)
{
	const struct summary *part = part_of(l, i);
	double cpu = figure_of(part, FIG_CPU), wall = figure_of(part, FIG_WALL), lost = 0, waited = 0,
	       hidden = 0;
	struct queue q;

	if (found_has(l, "throttled") || !queue_of(l, i, &q) || q.cores.axis->nr_times < QUEUE_LEAST)
		return;
	l->contended |= is_pressed(l, i, &q);
	if (!q.has_busy)
		return;
	if (q.has_ready) {
		lost = over_time(&q, taken_by_others);
		waited = over_time(&q, waits_for_itself);
	}
	hidden = over_time(&q, hidden_by_others);
	l->lost_cpu_s += lost;
	l->contended |= hidden >= CONTENDED_LEAST * wall;
	if (lost >= STARVED_LEAST * (cpu + lost) && lost >= STARVED_LEAST_OF_TIME * wall)
		say_starved(l, i, &q, lost);
	else if (waited >= CROWDED_LEAST * cpu && waited >= STARVED_LEAST_S)
		say_crowded(l, i, &q, waited);
	else if (hidden >= CONTENDED_LEAST * wall)
		say_node_full(l, i, &q);
}

/* ---- taken by the hypervisor ---- */

/* Of the time in which the node had work. */
#define STOLEN_LEAST 0.1
#define STOLEN_LEAST_CORES 0.1

void look_stolen(struct look *l, size_t i)
{
	double machine = figure_of(part_of(l, i), FIG_MACHINE_CPUS), stolen, share;
	struct curve steal, busy;
	struct finding *f;

	if (!curve_of(l->analysis, EV_STEAL, i, &steal) || !curve_of(l->analysis, EV_BUSY, i, &busy))
		return;
	stolen = curve_per_s(&steal);
	share = stolen / (stolen + busy.line->average * machine);
	if (!(share >= STOLEN_LEAST) || stolen < STOLEN_LEAST_CORES)
		return;
	f = found_on(l, i, "stolen", FINDING_WARNING, "node-cpu",
		"The hypervisor gave %.0f %% of the CPU time to other guests", 100 * share);
	found_say(l, f,
		"On average %s were taken away while there was work. The machine is virtual and shares its "
		"processors with others; nothing in the job changes that.",
		cores_shown(SHOWN, stolen));
	found_evidence(l, f, "cpu.steal", stolen, UNIT_COUNT);
	found_evidence(l, f, "cpu.busy", busy.line->average, UNIT_RATIO);
}
