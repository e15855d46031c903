/* The comparison for programs: docs/compare.md. */
#include "document/compare.h"

#include "base/json.h"
#include "base/units.h"
#include "text/summary.h"

#include <math.h>
#include <string.h>

static void add_run(struct json *j, const char *name, const struct summary *s)
{
	char start[UNITS_SIZE];

	json_object(j, NULL);
	json_bytes(j, "path", name, strlen(name));
	json_command(j, s);
	json_name(j, "host", s->host);
	json_str(j, "start", s->start_wall_ns ? format_iso8601(start, s->start_wall_ns) : NULL);
	json_bool(j, "complete", s->complete);
	json_end_object(j);
}

static void add_sets(struct json *j, const struct comparison *c)
{
	json_array(j, "sets");
	for (size_t k = 0; k < c->nr_sets; k++) {
		json_object(j, NULL);
		json_str(j, "title", c->set[k].title);
		json_array(j, "runs");
		for (size_t i = 0; i < c->set[k].nr; i++)
			add_run(j, c->set[k].name[i], c->set[k].run[i]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void add_values(struct json *j, const struct compare_values *v, bool of_phase)
{
	json_object(j, NULL);
	json_uint(j, "runs", v->nr);
	json_num(j, "mean", v->mean);
	json_num(j, "min", v->least);
	json_num(j, "max", v->most);
	json_num(j, "deviation", v->deviation);
	if (!v->nr)
		json_str(j, "unavailable", v->why ? v->why : "not recorded");
	if (of_phase)
		json_bool(j, "interpolated", v->guess);
	json_end_object(j);
}

static void add_change(struct json *j, const struct compare_figure *f, size_t set)
{
	struct compare_change change = compare_change(f, set);

	json_object(j, NULL);
	json_num(j, "difference", change.difference);
	json_num(j, "ratio", change.ratio); /* null when there was nothing before */
	if (change.has_spread)
		json_bool(j, "beyond_spread", change.stands_out);
	else
		json_null(j, "beyond_spread");
	json_end_object(j);
}

static void add_figures(struct json *j, const char *key, const struct comparison *c,
	const struct compare_figure *f, size_t nr)
{
	json_object(j, key);
	for (size_t i = 0; i < nr; i++) {
		json_object(j, f[i].name);
		json_str(j, "unit", f[i].unit.percent ? "percent" : unit_name(f[i].unit.unit));
		json_bool(j, "per_second", f[i].unit.per_second);
		json_array(j, "sets");
		for (size_t k = 0; k < c->nr_sets; k++)
			add_values(j, &f[i].of[k], f[i].phase != NULL);
		json_end_array(j);
		json_array(j, "changes");
		for (size_t k = 1; k < c->nr_sets; k++)
			add_change(j, &f[i], k);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_object(j);
}

static void add_verdicts(struct json *j, const struct compare_page *p)
{
	json_array(j, "conditions");
	for (size_t i = 0; i < p->nr_verdicts; i++) {
		const struct compare_verdict *v = &p->verdict[i];

		json_object(j, NULL);
		json_bytes(j, "condition", v->rule, strlen(v->rule));
		json_str(j, "figure", v->figure->name);
		json_str(j, "set", p->c->set[v->set].title);
		json_bool(j, "failed", v->met);
		json_end_object(j);
	}
	json_end_array(j);
}

int compare_json(const struct compare_page *p, struct buf *out)
{
	const struct comparison *c = p->c;
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_int(&j, "format", 1);
	add_sets(&j, c);
	add_figures(&j, "figures", c, c->figure, c->nr_figures);
	add_figures(&j, "phases", c, c->phase, c->nr_phase_figures);
	add_verdicts(&j, p);
	json_array(&j, "warnings");
	for (size_t i = 0; i < c->nr_warnings; i++)
		json_str(&j, NULL, c->warning[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
	return out->err;
}
