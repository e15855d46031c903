/* The rules, one row each, and how what they find is kept.
 *
 * A rule sees the whole story and is silent where a number is missing. Shortness is decided here, for all:
 * what a rule would say of a run that is shorter than its row asks is chance. How a run ended can be told of
 * any.
 *
 * Rejected: thresholds in a file of the user's. A finding that cannot be explained by its number in the
 * report and a line of code is worth nothing, and sites differ less than one thinks. */
#include "analysis/rule.h"

#include "analysis/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
/* Counters are asked for as they are: what is read every few seconds has no rate in a short run, and its growth tells
 * the mean as well. */
#define CG(metric) {metric, CURVES_INSTANCE, false, NULL, false}

const struct curves_query finding_query[NR_EVIDENCE] = {
	[EV_CORES]                = {"tree.cores",           CURVES_WHOLE, false, NULL, true},
	[EV_PSS]                  = {"proc.mem.pss_now",     CURVES_WHOLE, false, NULL, false},
	[EV_RSS]                  = {"proc.mem.rss",         CURVES_WHOLE, false, NULL, false},
	[EV_BUSY]                 = {"cpu.busy",             CURVES_WHOLE, false, NULL, false},
	[EV_IOWAIT]               = {"cpu.waiting",          CURVES_WHOLE, false, NULL, false},
	[EV_STEAL]                = {"cpu.steal",            CURVES_WHOLE, false, NULL, false},
	[EV_READY]                = {"proc.sched.waiting",   CURVES_WHOLE, false, NULL, false},
	[EV_AVAILABLE]            = {"mem.available",        CURVES_WHOLE, false, NULL, false},
	[EV_NODE_OOM_KILLS]       = {"paging.oom_kills",     CURVES_WHOLE, false, NULL, false},
	[EV_SWAP_IN]              = {"paging.swap_in",       CURVES_WHOLE, false, NULL, false},
	[EV_PRESSURE_CPU]         = {"pressure.cpu.some",    CURVES_WHOLE, false, NULL, false},
	[EV_PRESSURE_MEMORY]      = {"pressure.memory.some", CURVES_WHOLE, false, NULL, false},
	[EV_PRESSURE_IO]          = {"pressure.io.some",     CURVES_WHOLE, false, NULL, false},
	[EV_CLOCK]                = {"freq.current",         CURVES_WHOLE, false, NULL, false},
	[EV_HEAT]                 = {"throttle.core",        CURVES_WHOLE, false, NULL, false},
	[EV_CG_PERIODS]           = CG("cgroup.cpu.periods"),
	[EV_CG_THROTTLED_PERIODS] = CG("cgroup.cpu.throttled_periods"),
	[EV_CG_THROTTLED]         = CG("cgroup.cpu.throttled"),
	[EV_CG_QUOTA]             = CG("cgroup.cpu.quota"),
	[EV_CG_CURRENT]           = CG("cgroup.memory.current"),
	[EV_CG_OOM]               = CG("cgroup.memory.oom"),
	[EV_CG_OOM_KILL]          = CG("cgroup.memory.oom_kill"),
	[EV_CG_LIMIT_HITS]        = CG("cgroup.memory.max_hits"),
	[EV_CG_LIMIT]             = CG("cgroup.memory.limit"),
	[EV_CG_ANON]              = CG("cgroup.memory.anon"),
	[EV_CG_SHMEM]             = CG("cgroup.memory.shmem"),
	[EV_CG_PRESSURE_CPU]      = CG("cgroup.pressure.cpu.some"),
	[EV_CG_PRESSURE_MEMORY]   = CG("cgroup.pressure.memory.some"),
	[EV_CG_PRESSURE_IO]       = CG("cgroup.pressure.io.some"),
	[EV_CG_PIDS_HITS]         = CG("cgroup.pids.max_hits"),
};
const size_t nr_finding_queries = NR_EVIDENCE;

/* In the order in which equally grave ones are told. Without curves only the plain ones are asked. */
static const struct rule rule[] = {
	{"oom",             0,           .look_part = look_oom, .plain = true},
	{"exit",            0,           look_exit, .plain = true},
	{"process-limit",   0,           .look_part = look_process_limit, .plain = true},
	{"absent-nodes",    0,           look_absent_nodes, .plain = true},
	{"memory",          USE_LEAST_S, look_memory, .plain = true},
	{"memory-growth",   10,          .look_part = look_growth},
	{"swap",            USE_LEAST_S, .look_part = look_swap, .plain = true},
	{"throttled",       USE_LEAST_S, .look_part = look_throttled},
	{"starved",         USE_LEAST_S, .look_part = look_starved},
	{"cores",           USE_LEAST_S, look_cores},
	{"stolen",          USE_LEAST_S, .look_part = look_stolen},
	{"serial",          20,          look_serial},
	{"memory-pressure", USE_LEAST_S, .look_part = look_memory_pressure},
	{"io-pressure",     USE_LEAST_S, .look_part = look_io_pressure},
	{"io-wait",         USE_LEAST_S, .look_part = look_io_wait},
	{"gpus",            10,          look_gpus, .plain = true},
	{"nodes",           10,          look_nodes},
	{"ranks",           10,          look_ranks},
	{"short-processes", USE_LEAST_S, look_short_processes},
	{"energy",          USE_LEAST_S, look_energy},
	{"phases",          USE_LEAST_S, look_phases, .plain = true},
};
/* clang-format on */

const char *finding_weight_name(enum finding_weight weight)
{
	static const char *const name[] = {[FINDING_FINE] = "fine",
		[FINDING_NOTE] = "note",
		[FINDING_WARNING] = "warning",
		[FINDING_SERIOUS] = "serious"};

	return weight <= FINDING_SERIOUS ? name[weight] : "note";
}

/* That nothing stands out is a judgement: where little was seen, it is none. */
const char *findings_none(const struct analysis *s)
{
	if (isnan(figure_of(s->summary, FIG_CPU)) && isnan(figure_of(s->summary, FIG_RSS)))
		return "Nothing can be told of this run: there is no measurement that can be read.";
	if (figure_of(s->summary, FIG_WALL) < USE_LEAST_S)
		return "Nothing stands out, but the run was too short to tell.";
	return "Nothing stands out.";
}

/* ---- what is kept ---- */

void found_add(struct look *l, char **text, const char *fmt, ...)
{
	char *sentence = NULL, *whole = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = text ? vasprintf(&sentence, fmt, ap) : -1;
	va_end(ap);
	if (n >= 0 && *text && asprintf(&whole, "%s %s", *text, sentence) < 0)
		n = -1;
	if (n < 0) {
		l->err = -ENOMEM;
		return;
	}
	if (whole) {
		free(sentence);
		free(*text);
	}
	*text = whole ? whole : sentence;
}

struct finding *found_on(struct look *l, size_t part, const char *id, enum finding_weight weight,
	const char *panel, const char *title, ...)
{
	const char *host = part != WHOLE_RUN && nr_parts(l) > 1 ? part_of(l, part)->host : NULL;
	struct finding *f = ARRAY_ADD(l->found->item, l->found->nr);
	va_list ap;

	if (!f) {
		l->err = -ENOMEM;
		return NULL;
	}
	*f = (struct finding){
		.id = id, .weight = weight, .panel = panel, .from_s = NAN, .to_s = NAN, .node = -1};
	va_start(ap, title);
	if (vasprintf(&f->title, title, ap) < 0)
		l->err = -ENOMEM;
	va_end(ap);
	if (host && *host)
		found_add(l, &f->title, "on %.80s", TEXT_SHOWN(host));
	if (part != WHOLE_RUN)
		f->node = node_of(l, part);
	return f;
}

void found_where(struct finding *f, double from_s, double to_s)
{
	if (!f)
		return;
	f->from_s = from_s;
	f->to_s = to_s;
}

void found_node(struct finding *f, size_t node)
{
	if (f)
		f->node = (int64_t)node;
}

void found_evidence(struct look *l, struct finding *f, const char *name, double value, enum metric_unit unit)
{
	struct finding_evidence *more;

	if (!f || !isfinite(value))
		return;
	more = ARRAY_ADD(f->evidence, f->nr_evidence);
	if (more)
		*more = (struct finding_evidence){.name = strdup(name), .value = value, .unit = unit};
	if (!more || !more->name)
		l->err = -ENOMEM;
}

void found_figure_list(
	struct look *l, struct finding *f, const struct summary *s, const enum figure_id *id, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct summary_row *row = &summary_row[id[i]];
		char name[80];

		snprintf(name, sizeof(name), "%s%s%s", row->group ? row->group : "", row->group ? "." : "",
			row->name);
		found_evidence(l, f, name, figure_of(s, id[i]), compare_unit_of(name).unit);
	}
}

bool found_has(const struct look *l, const char *id)
{
	for (size_t i = 0; i < l->found->nr; i++)
		if (!strcmp(l->found->item[i].id, id))
			return true;
	return false;
}

struct findings *findings_free(struct findings *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->nr; i++) {
		for (size_t j = 0; j < f->item[i].nr_evidence; j++)
			free(f->item[i].evidence[j].name);
		free(f->item[i].evidence);
		free(f->item[i].title);
		free(f->item[i].text);
		free(f->item[i].phase);
	}
	for (size_t i = 0; i < f->nr_advice; i++)
		texts_free(f->advice[i].line, f->advice[i].nr_lines);
	texts_free(f->unmeasured, f->nr_unmeasured);
	free(f->item);
	free(f->advice);
	free(f->headroom);
	free(f->why_no_advice);
	free(f);
	return NULL;
}

/* ---- all of them ---- */

/* Stable, so that the rules' order decides between equals; there are a few dozen at most. */
static void gravest_first(struct findings *f)
{
	for (size_t i = 1; i < f->nr; i++) {
		struct finding one = f->item[i];
		size_t at = i;

		for (; at && f->item[at - 1].weight < one.weight; at--)
			f->item[at] = f->item[at - 1];
		f->item[at] = one;
	}
}

int findings_make(const struct analysis *s, struct findings **ret)
{
	struct look l = {
		.analysis = s, .run = s->summary, .found = calloc(1, sizeof(*l.found)), .oom_limit = NAN};
	double wall;
	int r;

	if (!l.found)
		return -ENOMEM;
	wall = figure_of(l.run, FIG_WALL);
	for (size_t i = 0; i < ARRAY_SIZE(rule) && !l.err; i++) {
		if ((rule[i].least_s && !(wall >= rule[i].least_s)) || (!s->curves && !rule[i].plain))
			continue;
		if (rule[i].look)
			rule[i].look(&l);
		for (size_t part = 0; rule[i].look_part && part < nr_parts(&l); part++)
			rule[i].look_part(&l, part);
	}
	if (!l.err)
		name_phases(&l);
	if (!l.err)
		look_unmeasured(&l);
	gravest_first(l.found);
	r = l.err ? l.err : advice_make(&l);
	if (r < 0) {
		findings_free(l.found);
		return r;
	}
	*ret = l.found;
	return 0;
}
