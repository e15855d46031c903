/* What several rules look at: figures with their absence, curves of the curves, names and times for people.
 */
#include "analysis/rule.h"

#include "base/str.h"
#include "text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t nr_parts(const struct look *l)
{
	return MAX(l->run->nr_nodes, 1);
}

const struct summary *part_of(const struct look *l, size_t i)
{
	return l->run->nr_nodes ? &l->run->node[i] : l->run;
}

int64_t node_of(const struct look *l, size_t i)
{
	return l->run->nr_nodes > 1 ? (int64_t)i : -1;
}

double figure_of(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) && isfinite(s->figure[id].value) ? s->figure[id].value : NAN;
}

double run_time(const struct analysis *s, size_t node, double at_s)
{
	return s->curves && node < s->curves->nr_nodes ? at_s + s->curves->node[node].offset_s : at_s;
}

double stat_of(const struct analysis *s, enum stats_level level, size_t i, enum stats_id id)
{
	if (!s->stats || i >= s->stats->nr[level])
		return NAN;
	return s->stats->row[level][i].value[id];
}

bool is_granted(const struct summary *s, enum figure_id limit, enum figure_id machine)
{
	return s->text[TEXT_SCHEDULER] || figure_of(s, limit) < figure_of(s, machine);
}

const char *fact_of(const struct summary *s, const char *variable)
{
	for (size_t i = 0; i < s->nr_environment; i++)
		if (!strcmp(s->environment[i].name, variable))
			return s->environment[i].value;
	return NULL;
}

double whole_up(double v)
{
	double whole = v < 9e15 ? (double)(int64_t)v : v;

	return v - whole > 1e-6 ? whole + 1 : whole;
}

/* ---- curves ---- */

static bool curve_at(const struct analysis *s, size_t i, struct curve *ret)
{
	const struct curves_line *line = &s->curves->line[i];

	if (line->node >= s->curves->nr_nodes || !line->mean)
		return false;
	*ret = (struct curve){.line = line, .axis = &s->curves->node[line->node]};
	return true;
}

bool curve_next(const struct analysis *s, enum evidence_id id, size_t node, size_t *at, struct curve *ret)
{
	if (s->curves)
		*at = MAX(*at,
			curves_first_line(s->curves, (unsigned)s->first_finding_query + id, (uint32_t)node));
	while (s->curves && *at < s->curves->nr_lines) {
		size_t i = (*at)++;
		const struct curves_line *line = &s->curves->line[i];

		if (line->query != s->first_finding_query + id || line->node != node)
			return false;
		if (!isnan(line->most) && curve_at(s, i, ret))
			return true;
	}
	return false;
}

bool curve_of(const struct analysis *s, enum evidence_id id, size_t node, struct curve *ret)
{
	size_t at = 0;

	return curve_next(s, id, node, &at, ret);
}

bool curve_named(
	const struct analysis *s, enum evidence_id id, size_t node, const char *name, struct curve *ret)
{
	size_t at = 0;

	while (name && curve_next(s, id, node, &at, ret))
		if (ret->line->name && ret->line->name_len == strlen(name) &&
			!memcmp(ret->line->name, name, ret->line->name_len))
			return true;
	return false;
}

double curve_width(const struct curve *c, size_t i)
{
	if (c->axis->reduced)
		return c->axis->step_s;
	return i ? c->axis->time_s[i] - c->axis->time_s[i - 1] : 0;
}

double curve_grown(const struct curve *c)
{
	double grown = c->line->last - c->line->first;

	return grown > 0 ? grown : 0;
}

double curve_per_s(const struct curve *c)
{
	double from = NAN, to = NAN;

	for (size_t i = 0; i < c->axis->nr_times; i++) {
		if (isnan(c->line->mean[i]))
			continue;
		to = c->axis->time_s[i];
		from = isnan(from) ? to : from;
	}
	return to > from ? curve_grown(c) / (to - from) : NAN;
}

struct span curve_where(
	const struct curve *c, double pause_s, bool (*test)(const void *arg, size_t i), const void *arg)
{
	struct span best = {.from_s = NAN, .to_s = NAN};
	double from = NAN, to = NAN;

	for (size_t i = 0; i < c->axis->nr_times; i++) {
		double at = c->axis->time_s[i], width = curve_width(c, i);

		if (isnan(c->line->mean[i]) || !test(arg, i))
			continue;
		best.total_s += width;
		if (!(at - width - to <= pause_s))
			from = at - width;
		to = at;
		if (!(to - from <= best.to_s - best.from_s)) {
			best.from_s = from;
			best.to_s = to;
		}
	}
	return best;
}

/* ---- words ---- */

const char *name_shown(char out[static NAME_SIZE], const void *bytes, size_t len)
{
	struct buf text;

	buf_init(&text, NAME_SIZE * 4);
	escape_bytes(&text, bytes, MIN(len, (size_t)NAME_SIZE));
	text.err = 0;
	clip(&text, 0, 40, true);
	snprintf(out, NAME_SIZE, "%s", (char *)text.data);
	buf_release(&text);
	return out;
}

/* A tenth of a core more than a whole number is a helper process, not a core to ask for. */
#define CORES_TOLERANCE 0.1

double cores_to_ask(double used)
{
	return MAX(whole_up(used - CORES_TOLERANCE), 1);
}

bool cores_not_shown(const struct look *l)
{
	return l->contended || found_has(l, "oom") || found_has(l, "starved") || found_has(l, "throttled");
}

const char *cores_shown(char out[static UNITS_SIZE], double cores)
{
	char number[UNITS_SIZE];

	if (cores < 0.95)
		format_number(number, cores);
	else
		snprintf(number, sizeof(number), cores < 9.95 && cores != whole_up(cores) ? "%.1f" : "%.0f",
			cores);
	snprintf(out, UNITS_SIZE, "%.30s %s", number,
		strcmp(number, "1") && strcmp(number, "1.0") ? "cores" : "core");
	return out;
}
