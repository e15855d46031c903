/* How evenly the work is spread over the nodes of a run, and which of them were held back by what. Recordings
 * of one host count as one.
 *
 * What a node has is held against the middle of all (the median), so that one or a few that differ are found,
 * whatever is usual for the job. Of many nodes with the same trouble the first few are named in one finding:
 * a list of hundreds is read by no one. */
#include "analysis/rule.h"

#include "analysis/axis.h"
#include "base/str.h"
#include "query/balance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A node that is given and does nothing, while others work. */
#define NODE_IDLE 0.05
#define NODE_BUSY 0.3
/* Mean over greatest: what the run would take if all worked alike, as a share of what it takes. */
#define BALANCE_LEAST 0.75
#define BALANCE_LEAST_CORES 1.0
#define MEMORY_UNEVEN 2.0
#define MEMORY_UNEVEN_BYTES 1073741824.0
#define NETWORK_UNEVEN 2.0
#define NETWORK_UNEVEN_BYTES 1073741824.0
#define GPU_BUSY_PERCENT 30.0
/* Of a phase: shorter ones are not worth the work. */
#define PHASE_LEAST_S 5.0
#define PHASE_LEAST_SHARE 0.1
#define NAMED 3

enum cause {
	CAUSE_CLOCK,
	CAUSE_HEAT,
	CAUSE_QUOTA,
	CAUSE_STEAL,
	CAUSE_SWAP,
	CAUSE_IO,
	CAUSE_MEMORY_PRESSURE,
	CAUSE_CPUS, /* from here on: no trouble of the node, but it may explain why it did less */
	CAUSE_MEMORY,
	NR_CAUSES
};

struct node {
	const char *name;
	size_t part; /* its first recording */
	double cores, given, memory;
	double cause[NR_CAUSES];
	bool idle;
	bool told;
};

/* ---- what may hold a node back ---- */

/* clang-format off */
static const struct cause_row {
	const char *words;     /* before the value */
	const char *evidence;
	enum metric_unit unit;
	bool per_second, lower;
	double ratio, margin;  /* it stands out from the middle by so many times, and by so much */
} cause_row[NR_CAUSES] = {
	[CAUSE_CLOCK]           = {"its CPUs ran at",                          "freq.current",         UNIT_HERTZ,   false, true,  0.85, 1e8},
	[CAUSE_HEAT]            = {"heat or power slowed its CPUs down at",    "throttle.core",        UNIT_COUNT,   true,  false, 3,    1},
	[CAUSE_QUOTA]           = {"a CPU quota stopped it for this share of the time:", "cgroup.throttled_s", UNIT_RATIO, false, false, 1.5, 0.1},
	[CAUSE_STEAL]           = {"the hypervisor took of its CPUs",          "cpu.steal",            UNIT_RATIO,   false, false, 1.5,  0.05},
	[CAUSE_SWAP]            = {"it brought back from swap",                "paging.swap_in",       UNIT_BYTES,   true,  false, 2,    1048576},
	[CAUSE_IO]              = {"tasks waited for disks for this share of the time:", "pressure.io.some", UNIT_RATIO, false, false, 1.5, 0.1},
	[CAUSE_MEMORY_PRESSURE] = {"tasks waited for memory for this share of the time:", "pressure.memory.some", UNIT_RATIO, false, false, 1.5, 0.05},
	[CAUSE_CPUS]            = {"CPUs that it was given:",                  "limits.cpus",          UNIT_COUNT,   false, true,  0.9,  1},
	[CAUSE_MEMORY]          = {"it held",                                  "memory_bytes",         UNIT_BYTES,   false, false, 1.5,  1073741824},
};
/* clang-format on */

static double evidence_per_s(const struct look *l, enum evidence_id id, size_t part)
{
	struct curve c;

	return curve_of(l->analysis, id, part, &c) ? curve_per_s(&c) : NAN;
}

static void gather_causes(const struct look *l, struct node *n)
{
	const struct summary *part = part_of(l, n->part);
	struct curve clock;

	/* CPUs without work run slowly, too. */
	n->cause[CAUSE_CLOCK] =
		n->cores >= NODE_BUSY * n->given && curve_of(l->analysis, EV_CLOCK, n->part, &clock)
		? clock.line->average
		: NAN;
	n->cause[CAUSE_HEAT] = evidence_per_s(l, EV_HEAT, n->part);
	n->cause[CAUSE_QUOTA] = figure_of(part, FIG_THROTTLED) / figure_of(part, FIG_WALL);
	n->cause[CAUSE_STEAL] = evidence_per_s(l, EV_STEAL, n->part) / figure_of(part, FIG_MACHINE_CPUS);
	n->cause[CAUSE_SWAP] = evidence_per_s(l, EV_SWAP_IN, n->part);
	n->cause[CAUSE_IO] = evidence_per_s(l, EV_PRESSURE_IO, n->part);
	n->cause[CAUSE_MEMORY_PRESSURE] = evidence_per_s(l, EV_PRESSURE_MEMORY, n->part);
	n->cause[CAUSE_CPUS] = n->given;
	n->cause[CAUSE_MEMORY] = n->memory;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct nodes_seen {
	struct node *node;
	size_t nr;
	double middle[NR_CAUSES]; /* median; NAN: not known of two */
	double *sorted;		  /* room for one value of each */
};

static void find_middles(struct nodes_seen *s)
{
	for (unsigned k = 0; k < NR_CAUSES; k++) {
		size_t nr = 0;

		for (size_t i = 0; i < s->nr; i++)
			if (!isnan(s->node[i].cause[k]))
				s->sorted[nr++] = s->node[i].cause[k];
		qsort(s->sorted, nr, sizeof(*s->sorted), by_value);
		/* Of an even number the one that makes fewer stand out. */
		s->middle[k] = nr < 2 ? NAN : s->sorted[cause_row[k].lower ? (nr - 1) / 2 : nr / 2];
		if (nr == 2) /* there is only the other to compare with */
			s->middle[k] = s->sorted[cause_row[k].lower ? 1 : 0];
	}
}

static bool stands_out(const struct nodes_seen *s, const struct node *n, enum cause k)
{
	const struct cause_row *row = &cause_row[k];
	double value = n->cause[k], middle = s->middle[k];

	if (row->lower)
		return value <= row->ratio * middle && middle - value >= row->margin;
	return value >= row->ratio * middle && value - middle >= row->margin;
}

static bool is_held_back(const struct nodes_seen *s, const struct node *n)
{
	for (unsigned k = 0; k < CAUSE_CPUS; k++)
		if (stands_out(s, n, k))
			return true;
	return false;
}

/* "its CPUs ran at 1.2 GHz (the others: 3 GHz); …"; how many that are. */
static size_t add_causes(
	struct buf *out, const struct nodes_seen *s, const struct node *n, unsigned nr_causes)
{
	size_t nr = 0;

	for (unsigned k = 0; k < nr_causes; k++) {
		const struct cause_row *row = &cause_row[k];

		if (!stands_out(s, n, k))
			continue;
		buf_addf(out, "%s%s %s (the others: %s)", nr++ ? "; " : "", row->words,
			format_value(SHOWN, n->cause[k], row->unit, row->per_second),
			format_value(SHOWN, s->middle[k], row->unit, row->per_second));
	}
	return nr;
}

static void add_evidence(struct look *l, struct finding *f, const struct nodes_seen *s, const struct node *n)
{
	for (unsigned k = 0; k < NR_CAUSES; k++)
		if (stands_out(s, n, k)) {
			char name[80];

			snprintf(name, sizeof(name), "%s.middle", cause_row[k].evidence);
			found_evidence(l, f, cause_row[k].evidence, n->cause[k], cause_row[k].unit);
			found_evidence(l, f, name, s->middle[k], cause_row[k].unit);
		}
}

/* ---- the nodes ---- */

static int gather_nodes(const struct look *l, struct nodes_seen *ret)
{
	struct hosts hosts;

	if (hosts_make(l->run, &hosts) < 0)
		return -ENOMEM;
	ret->nr = hosts.nr;
	ret->node = calloc(hosts.nr, sizeof(*ret->node));
	ret->sorted = calloc(hosts.nr, sizeof(*ret->sorted));
	for (size_t i = 0; ret->node && ret->sorted && i < hosts.nr; i++)
		ret->node[i] = (struct node){.name = hosts.host[i].name,
			.part = hosts.host[i].first,
			.given = figure_of(part_of(l, hosts.host[i].first), FIG_LIMIT_CPUS)};
	for (size_t i = 0; ret->node && ret->sorted && i < hosts.nr_parts; i++) {
		struct node *n = &ret->node[hosts.of[i]];

		n->cores += figure_of(part_of(l, i), FIG_MEAN_CORES);
		n->memory += memory_view_of(l->analysis, part_of(l, i), i, true).bytes;
	}
	hosts_release(&hosts);
	return ret->node && ret->sorted ? 0 : -ENOMEM;
}

/* "n1, n5, n9 and 12 more". */
static void add_name(struct buf *out, const struct node *n, size_t at)
{
	if (at < NAMED)
		buf_addf(out, "%s%s", at ? ", " : "", TEXT_SHOWN(n->name));
}

static void add_more(struct buf *out, size_t nr)
{
	if (nr > NAMED)
		buf_addf(out, " and %zu more", nr - NAMED);
}

static void say_idle_node(struct look *l, struct node *n)
{
	struct finding *f = found(l, "idle-node", FINDING_WARNING, "cpu",
		"The node %s did nothing: %.2f of its %.0f cores were in use", TEXT_SHOWN(n->name), n->cores,
		n->given);

	found_say(l, f,
		"The others worked. Is the program started on all nodes (srun, mpirun with the node "
		"file), and does it have work for so many?");
	found_node(f, n->part);
	found_evidence(l, f, "cpu.mean_cores", n->cores, UNIT_COUNT);
	found_evidence(l, f, "limits.cpus", n->given, UNIT_COUNT);
}

static void mark_idle(struct nodes_seen *s)
{
	double most = 0;

	for (size_t i = 0; i < s->nr; i++)
		most = s->node[i].cores > most ? s->node[i].cores : most;
	for (size_t i = 0; i < s->nr; i++)
		s->node[i].idle = s->node[i].cores < NODE_IDLE * s->node[i].given &&
			most >= NODE_BUSY * s->node[i].given;
}

size_t idle_nodes(const struct look *l)
{
	struct nodes_seen s = {0};
	size_t nr = 0;

	if (gather_nodes(l, &s) >= 0) {
		mark_idle(&s);
		for (size_t i = 0; i < s.nr; i++)
			nr += s.node[i].idle;
	}
	free(s.node);
	free(s.sorted);
	return nr;
}

static void look_idle_nodes(struct look *l, struct nodes_seen *s)
{
	struct finding *f;
	struct buf names;
	size_t nr = 0;

	buf_init(&names, 4096);
	mark_idle(s);
	for (size_t i = 0; i < s->nr; i++)
		if (s->node[i].idle)
			add_name(&names, &s->node[i], nr++);
	for (size_t i = 0; nr <= NAMED && i < s->nr; i++)
		if (s->node[i].idle)
			say_idle_node(l, &s->node[i]);
	if (nr > NAMED) {
		add_more(&names, nr);
		f = found(l, "idle-node", FINDING_WARNING, "cpu", "%zu of %zu nodes did nothing", nr, s->nr);
		found_say(l, f,
			"%s: the others worked. Is the program started on all nodes (srun, mpirun with the "
			"node file), and does it have work for so many?",
			(char *)names.data);
		found_evidence(l, f, "nodes.idle", (double)nr, UNIT_COUNT);
		found_evidence(l, f, "nodes", (double)s->nr, UNIT_COUNT);
	}
	buf_release(&names);
}

static void say_why(struct look *l, struct finding *f, const struct nodes_seen *s, struct node *n)
{
	struct buf why;

	buf_init(&why, 4096);
	if (add_causes(&why, s, n, NR_CAUSES)) {
		found_say(l, f, "What %s has that the others have not: %s.", TEXT_SHOWN(n->name),
			(char *)why.data);
		add_evidence(l, f, s, n);
		n->told = true;
	}
	buf_release(&why);
}

static void look_balance(struct look *l, struct nodes_seen *s)
{
	struct node *most = NULL, *least = NULL;
	double sum = 0, balance;
	struct finding *f;
	size_t working = 0;

	for (size_t i = 0; i < s->nr; i++) {
		struct node *n = &s->node[i];

		if (n->idle || isnan(n->cores))
			continue;
		working++;
		sum += n->cores;
		most = most && most->cores >= n->cores ? most : n;
		least = least && least->cores <= n->cores ? least : n;
	}
	if (working < 2 || most->cores - least->cores < BALANCE_LEAST_CORES)
		return;
	balance = sum / (double)working / most->cores;
	if (!(balance < BALANCE_LEAST))
		return;
	f = found(l, "node-imbalance", FINDING_WARNING, "cpu",
		"The nodes worked unevenly: %s used %.1f cores, %s %.1f", TEXT_SHOWN(most->name), most->cores,
		TEXT_SHOWN(least->name), least->cores);
	found_say(l, f,
		"On average a node did %.0f %% of what the busiest did; where they wait for each other, that "
		"is the share of the time in which the allocation works. Spread the work evenly, or give "
		"nodes work as they become free.",
		100 * balance);
	found_node(f, least->part);
	found_evidence(l, f, "balance_ratio", balance, UNIT_RATIO);
	found_evidence(l, f, "most_cores", most->cores, UNIT_COUNT);
	found_evidence(l, f, "least_cores", least->cores, UNIT_COUNT);
	say_why(l, f, s, least);
}

static void look_memory_balance(struct look *l, const struct nodes_seen *s)
{
	const struct node *most = &s->node[0];
	struct finding *f;
	double mean = 0;

	for (size_t i = 0; i < s->nr; i++) {
		mean += s->node[i].memory / (double)s->nr;
		most = s->node[i].memory > most->memory ? &s->node[i] : most;
	}
	if (!(most->memory >= MEMORY_UNEVEN * mean) || most->memory - mean < MEMORY_UNEVEN_BYTES)
		return;
	f = found(l, "memory-imbalance", FINDING_NOTE, "memory",
		"The node %s needed %s of memory, a node on average %s", TEXT_SHOWN(most->name),
		format_bytes(SHOWN, most->memory), format_bytes(SHOWN, mean));
	found_say(l, f, "Every node must be given what that one needs.");
	found_node(f, most->part);
	found_evidence(l, f, "most_bytes", most->memory, UNIT_BYTES);
	found_evidence(l, f, "mean_bytes", mean, UNIT_BYTES);
}

/* ---- stragglers ---- */

static void say_held_back(struct look *l, const struct nodes_seen *s, const struct node *n)
{
	struct finding *f = found(l, "slow-node", FINDING_WARNING, "cpu",
		"The node %s was held back, the others were not", TEXT_SHOWN(n->name));
	struct buf why;

	buf_init(&why, 4096);
	add_causes(&why, s, n, NR_CAUSES);
	found_say(l, f,
		"%s: %s. Where nodes wait for each other, all go at its pace. Leave it out next time "
		"(--exclude), and tell the people who run it.",
		TEXT_SHOWN(n->name), (char *)why.data);
	found_node(f, n->part);
	add_evidence(l, f, s, n);
	buf_release(&why);
}

static void say_many_held_back(struct look *l, const struct nodes_seen *s, size_t nr)
{
	struct finding *f = found(l, "slow-node", FINDING_WARNING, "cpu",
		"%zu of %zu nodes were held back, the others were not", nr, s->nr);
	size_t at = 0;
	struct buf why;

	buf_init(&why, 8192);
	for (size_t i = 0; i < s->nr && at < NAMED; i++) {
		const struct node *n = &s->node[i];

		if (n->idle || n->told || !is_held_back(s, n))
			continue;
		buf_addf(&why, "%s%s: ", at++ ? ". " : "", TEXT_SHOWN(n->name));
		add_causes(&why, s, n, CAUSE_CPUS);
	}
	found_say(l, f, "%s. %zu more. Where nodes wait for each other, all go at the pace of the slowest.",
		(char *)why.data, nr - NAMED);
	found_evidence(l, f, "nodes.held_back", (double)nr, UNIT_COUNT);
	found_evidence(l, f, "nodes", (double)s->nr, UNIT_COUNT);
	buf_release(&why);
}

static void look_held_back(struct look *l, const struct nodes_seen *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		nr += !s->node[i].idle && !s->node[i].told && is_held_back(s, &s->node[i]);
	if (nr > NAMED) {
		say_many_held_back(l, s, nr);
		return;
	}
	for (size_t i = 0; nr && i < s->nr; i++)
		if (!s->node[i].idle && !s->node[i].told && is_held_back(s, &s->node[i]))
			say_held_back(l, s, &s->node[i]);
}

/* ---- GPUs, network, phases ---- */

static void look_gpu_balance(struct look *l, const struct balance_row *row)
{
	const struct balance_value *v = &row->value[BALANCE_GPU];
	double ratio = balance_ratio(v);
	struct finding *f;

	if (!(ratio < BALANCE_LEAST) || v->most < GPU_BUSY_PERCENT)
		return;
	f = found(l, "gpu-imbalance", FINDING_WARNING, "gpu-util",
		"The GPUs of the nodes worked unevenly: on %s %.0f %% busy, on %s %.0f %%",
		TEXT_SHOWN(v->most_on), v->most, TEXT_SHOWN(v->least_on), v->least);
	found_say(l, f,
		"On average the GPUs of a node were busy for %.0f %% of the time for which those of the "
		"busiest were. Spread the work evenly.",
		100 * ratio);
	found_evidence(l, f, "balance_ratio", ratio, UNIT_RATIO);
	found_evidence(l, f, "most", v->most / 100, UNIT_RATIO);
	found_evidence(l, f, "least", v->least / 100, UNIT_RATIO);
}

static void look_network(struct look *l, const struct balance_row *row)
{
	static const struct {
		enum balance_id id;
		const char *verb;
	} way[] = {{BALANCE_IN, "received"}, {BALANCE_OUT, "sent"}};

	for (size_t i = 0; i < ARRAY_SIZE(way); i++) {
		const struct balance_value *v = &row->value[way[i].id];
		struct finding *f;

		/* Of two nodes the mean is never less than half of the most. */
		if (v->nr < 3 || !(v->most >= NETWORK_UNEVEN * v->mean) ||
			v->most - v->mean < NETWORK_UNEVEN_BYTES)
			continue;
		f = found(l, "network-imbalance", FINDING_NOTE, "network",
			"The node %s %s %s, a node on average %s", TEXT_SHOWN(v->most_on), way[i].verb,
			format_bytes(SHOWN, v->most), format_bytes(SHOWN, v->mean));
		found_say(l, f,
			"It is all traffic of the node. One that reads or writes for all, or gathers their "
			"results, may be what the others wait for.");
		found_evidence(l, f, "most_bytes", v->most, UNIT_BYTES);
		found_evidence(l, f, "mean_bytes", v->mean, UNIT_BYTES);
	}
}

static const struct phase *phase_named(const struct phases *p, const char *name)
{
	for (size_t i = 0; p && i < p->nr; i++)
		if (!strcmp(p->phase[i].name, name))
			return &p->phase[i];
	return NULL;
}

/* The most uneven one that is worth it, where it is worse than the run as a whole. */
static void look_phase_balance(struct look *l, const struct balance *b)
{
	double wall = figure_of(l->run, FIG_WALL), worst = BALANCE_LEAST, whole = 1;
	const struct balance_row *row = NULL;
	const struct balance_value *v;
	struct finding *f;

	for (size_t i = 0; i < b->nr; i++) {
		const struct phase *p = b->row[i].name ? phase_named(l->run->phases, b->row[i].name) : NULL;
		double ratio = balance_ratio(&b->row[i].value[BALANCE_CPU]), took;

		if (!b->row[i].name && !strcmp(b->row[i].over, "nodes"))
			whole = ratio;
		if (!p || strcmp(b->row[i].of, "phase") != 0)
			continue;
		v = &b->row[i].value[BALANCE_CPU];
		took = p->value[PHASE_WALL];
		if (ratio < worst && took >= PHASE_LEAST_S && took >= PHASE_LEAST_SHARE * wall &&
			v->most - v->least >= BALANCE_LEAST_CORES * took) {
			row = &b->row[i];
			worst = ratio;
		}
	}
	if (!row || (found_has(l, "node-imbalance") && !(worst < whole - 0.05)))
		return;
	v = &row->value[BALANCE_CPU];
	f = found(l, "phase-imbalance", FINDING_WARNING, "cpu",
		"In phase %s the nodes worked unevenly: %s used %s of CPU time, %s %s", TEXT_SHOWN(row->name),
		TEXT_SHOWN(v->most_on), format_duration(SHOWN, v->most), TEXT_SHOWN(v->least_on),
		format_duration(SHOWN, v->least));
	found_say(l, f, "On average a node did %.0f %% of what the busiest did in it.", 100 * worst);
	found_evidence(l, f, "balance_ratio", worst, UNIT_RATIO);
	found_evidence(l, f, "most_s", v->most, UNIT_SECONDS);
	found_evidence(l, f, "least_s", v->least, UNIT_SECONDS);
}

/* ---- all of them ---- */

static void look_all(struct look *l, struct nodes_seen *s)
{
	struct balance b;

	for (size_t i = 0; i < s->nr; i++)
		gather_causes(l, &s->node[i]);
	find_middles(s);
	look_idle_nodes(l, s);
	look_balance(l, s);
	look_held_back(l, s);
	look_memory_balance(l, s);
	if (balance_make(l->run, &b) < 0) {
		l->err = -ENOMEM;
		return;
	}
	if (b.nr && !b.row[0].name && !strcmp(b.row[0].over, "nodes")) {
		look_gpu_balance(l, &b.row[0]);
		look_network(l, &b.row[0]);
	}
	look_phase_balance(l, &b);
	balance_release(&b);
}

void look_nodes(struct look *l)
{
	struct nodes_seen s = {0};

	if (gather_nodes(l, &s) < 0)
		l->err = -ENOMEM;
	else if (s.nr >= 2)
		look_all(l, &s);
	free(s.node);
	free(s.sorted);
}

/* Nodes whose part is in no sum of this run, or not all of it. */
void look_absent_nodes(struct look *l)
{
	static const struct {
		const char *id, *means;
		enum finding_weight weight;
	} kind[NR_ABSENCES] = {
		[NODES_MISSING] = {"missing-nodes", "What they did is in no number of this run.",
			FINDING_WARNING},
		[NODES_LATE] = {"late-nodes", "What they did before is in no number of this run.",
			FINDING_NOTE},
		[NODES_EARLY] = {"early-nodes", "What they did afterwards is in no number of this run.",
			FINDING_WARNING},
	};

	for (enum absence i = 0; l->run->attendance && i < NR_ABSENCES; i++) {
		struct finding *f;
		const char *names;
		struct buf words, text;

		buf_init(&words, 1 << 16);
		buf_init(&text, 1 << 18);
		if (attendance_words(l->run->attendance, i, &words) &&
			(names = strstr((char *)words.data, ": "))) {
			f = found(l, kind[i].id, kind[i].weight, NULL, "%.*s",
				(int)(names - (char *)words.data), (char *)words.data);
			escape_bytes(&text, names + 2, strlen(names + 2));
			found_say(l, f, "%s. %s The file tacho.log of the run says more.", (char *)text.data,
				kind[i].means);
		}
		buf_release(&text);
		buf_release(&words);
	}
}
