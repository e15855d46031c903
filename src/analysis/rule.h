/* What the rules share: the evidence they look at, and how they say what they see. Not for others.
 *
 * Rules never ask how a number came about: what is not known is NAN or NULL, and a rule that lacks a number
 * is silent. */
#ifndef ANALYSIS_RULE_H
#define ANALYSIS_RULE_H

#include "base/units.h"
#include "analysis/finding.h"

enum evidence_id { /* rows of finding_query[] */
	EV_CORES,
	EV_PSS,
	EV_RSS,
	EV_BUSY,
	EV_IOWAIT,
	EV_STEAL,
	EV_READY, /* main threads that are ready and wait for a CPU */
	EV_AVAILABLE,
	EV_NODE_OOM_KILLS,
	EV_SWAP_IN,
	EV_PRESSURE_CPU,
	EV_PRESSURE_MEMORY,
	EV_PRESSURE_IO,
	EV_CLOCK,      /* of the CPUs */
	EV_HEAT,       /* times a core was slowed down */
	EV_CG_PERIODS, /* from here on of each control group */
	EV_CG_THROTTLED_PERIODS,
	EV_CG_THROTTLED,
	EV_CG_QUOTA,
	EV_CG_CURRENT,
	EV_CG_OOM,
	EV_CG_OOM_KILL,
	EV_CG_LIMIT_HITS,
	EV_CG_LIMIT,
	EV_CG_ANON,
	EV_CG_SHMEM,
	EV_CG_PRESSURE_CPU,
	EV_CG_PRESSURE_MEMORY,
	EV_CG_PRESSURE_IO,
	EV_CG_PIDS_HITS,
	NR_EVIDENCE
};

struct look {
	const struct analysis *analysis;
	const struct summary *run;
	struct findings *found;
	double lost_cpu_s; /* that others took: the job would have used more */
	double oom_limit;  /* at which the kernel killed processes; NAN: it did not, or is not known */
	bool contended; /* it may have used more CPUs, had they been free: how many it can use is not known */
	int err;
};

struct rule {
	const char *id;
	double least_s; /* of a run that can tell; 0: any */
	void (*look)(struct look *l);
	void (*look_part)(struct look *l, size_t part); /* instead, for each recording */
	bool plain; /* right with the summary alone, where no curve is known */
};

/* Means over a few seconds are chance: start-up and the first readings weigh too much. */
#define USE_LEAST_S 5.0
/* Fewer points are no curve. */
#define CURVE_LEAST 10

void look_cores(struct look *l);
void look_serial(struct look *l);
void look_throttled(struct look *l, size_t i);
void look_starved(struct look *l, size_t i);
void look_stolen(struct look *l, size_t i);
void look_memory(struct look *l);
void look_growth(struct look *l, size_t i);
void look_swap(struct look *l, size_t i);
void look_memory_pressure(struct look *l, size_t i);
void look_io_pressure(struct look *l, size_t i);
void look_io_wait(struct look *l, size_t i);
void look_gpus(struct look *l);
void look_nodes(struct look *l);
void look_absent_nodes(struct look *l);
size_t idle_nodes(const struct look *l); /* how many did nothing while others worked */
void look_ranks(struct look *l);
void look_short_processes(struct look *l);
void look_process_limit(struct look *l, size_t i);
void look_energy(struct look *l);
void look_oom(struct look *l, size_t i);
void look_exit(struct look *l);
void look_phases(struct look *l);
void name_phases(struct look *l); /* says of each finding in which phase it is */
void look_unmeasured(struct look *l);
int advice_make(struct look *l); /* when all rules have looked */

/* ---- the run and its recordings ---- */

size_t nr_parts(const struct look *l);
/* One of the run's recordings; where there is only one, the run itself. */
const struct summary *part_of(const struct look *l, size_t i);
/* For finding.node: the recording, or the run where that is the same. */
int64_t node_of(const struct look *l, size_t i);
double figure_of(const struct summary *s, enum figure_id id); /* NAN: not known */
/* A time of a recording as a time of the run. */
double run_time(const struct analysis *s, size_t node, double at_s);
double stat_of(const struct analysis *s, enum stats_level level, size_t i, enum stats_id id);
/* The allocation was chosen: a batch system's grant, or less than the machine has. */
bool is_granted(const struct summary *s, enum figure_id limit, enum figure_id machine);
const char *fact_of(const struct summary *s, const char *variable); /* of the environment; NULL */
double whole_up(double v); /* the next whole number, or the number itself when it is a hair above one */

/* The memory that counts against a limit, at its peak. */
struct memory_view {
	double bytes; /* NAN: none is known */
	double at_s;
	const char *name;	 /* for people: "PSS" */
	const char *evidence;	 /* "memory.peak_pss_bytes" */
	const char *reservation; /* what to keep in mind, or NULL */
};

/* What counts against its limit; `alone`: what the job itself needs, without others in its control group. */
struct memory_view memory_view_of(
	const struct analysis *s, const struct summary *part, size_t node, bool alone);
/* The control group that is called the job's holds more than the job: a session, a container with other
 * programs. */
bool group_has_others(const struct analysis *s, const struct summary *part, size_t node);
struct gpu_count {
	size_t given, idle; /* to the job, and read for long enough; of them, those it did not use */
};

struct gpu_count gpus_count(const struct summary *s);

/* ---- curves ---- */

struct curve { /* never NULL pointers where there is a curve at all */
	const struct curves_line *line;
	const struct curves_node *axis;
};

bool curve_of(const struct analysis *s, enum evidence_id id, size_t node, struct curve *ret);
/* That of one control group, by its path. */
bool curve_named(
	const struct analysis *s, enum evidence_id id, size_t node, const char *name, struct curve *ret);
/* All lines of a question in a recording: starts with at = 0; false when there are no more. */
bool curve_next(const struct analysis *s, enum evidence_id id, size_t node, size_t *at, struct curve *ret);
/* For how long the point stands. */
double curve_width(const struct curve *c, size_t i);
double curve_grown(const struct curve *c); /* of a counter; 0 when not known */
double curve_per_s(
	const struct curve *c); /* of a counter, over the time in which it was known; NAN: of none */

struct span {
	double from_s, to_s, total_s; /* longest stretch; and all of them */
};

/* Where test() holds; interruptions of up to `pause_s` do not part a stretch. */
struct span curve_where(
	const struct curve *c, double pause_s, bool (*test)(const void *arg, size_t i), const void *arg);

/* ---- saying it ---- */

#define WHOLE_RUN SIZE_MAX
/* A new finding with its title, of one recording or of the whole run; what follows adds to it. Of one of
 * several recordings the title ends in " on HOST". NULL without memory, which all below take. Valid until
 * the next is made. */
struct finding *found_on(struct look *l, size_t part, const char *id, enum finding_weight weight,
	const char *panel, const char *title, ...) _printf_(6, 7);
#define found(l, ...) found_on(l, WHOLE_RUN, __VA_ARGS__)
/* Appends a sentence; a space goes before all but the first. */
#define found_say(l, f, ...) found_add(l, (f) ? &(f)->text : NULL, __VA_ARGS__)
void found_add(struct look *l, char **text, const char *fmt, ...) _printf_(3, 4);
void found_where(struct finding *f, double from_s, double to_s);
void found_node(struct finding *f, size_t node);
void found_evidence(struct look *l, struct finding *f, const char *name, double value, enum metric_unit unit);
/* By their names in the summary's JSON; left out when not known. */
#define found_figures(l, f, s, ...)                                       \
	found_figure_list(l, f, s, (const enum figure_id[]){__VA_ARGS__}, \
		ARRAY_SIZE(((const enum figure_id[]){__VA_ARGS__})))
void found_figure_list(
	struct look *l, struct finding *f, const struct summary *s, const enum figure_id *id, size_t nr);
bool found_has(const struct look *l, const char *id);

#define NAME_SIZE 96
/* Any bytes as text for people, cut when long; as long as the block in which it stands. */
#define NAME_SHOWN(bytes, len) name_shown((char[NAME_SIZE]){0}, bytes, len)
#define TEXT_SHOWN(text) NAME_SHOWN(text, strlen(text))
const char *name_shown(char out[static NAME_SIZE], const void *bytes, size_t len);
/* "1 core", "3.2 cores". */
const char *cores_shown(char out[static UNITS_SIZE], double cores);
/* How many to ask for, when so many were in use 95 % of the time: findings and advice say the same. */
double cores_to_ask(double used);
/* The run could not show how many cores it can use: then those that it was given are right. */
bool cores_not_shown(const struct look *l);
#endif
