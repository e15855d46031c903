/* Findings, advice and what was not measured as members of a JSON object, as docs/page-data.md describes
 * them. */
#include "analysis/finding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* As many digits as are meant. */
static void findings_number(struct json *j, const char *key, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.7g", value);
	json_num(j, key, isfinite(value) ? strtod(text, NULL) : NAN);
}

static void add_finding(struct json *j, const struct finding *f)
{
	json_object(j, NULL);
	json_str(j, "id", f->id);
	json_str(j, "weight", finding_weight_name(f->weight));
	json_str(j, "title", f->title);
	json_str(j, "text", f->text);
	json_array(j, "evidence");
	for (size_t i = 0; i < f->nr_evidence; i++) {
		json_object(j, NULL);
		json_str(j, "name", f->evidence[i].name);
		findings_number(j, "value", f->evidence[i].value);
		json_str(j, "unit", unit_name(f->evidence[i].unit));
		json_bool(j, "per_second", f->evidence[i].per_second);
		json_end_object(j);
	}
	json_end_array(j);
	json_str(j, "panel", f->panel);
	findings_number(j, "from_s", f->from_s);
	findings_number(j, "to_s", f->to_s);
	json_str(j, "phase", f->phase);
	json_int(j, "node", f->node);
	json_end_object(j);
}

static void add_advice(struct json *j, const struct findings *f)
{
	json_object(j, "advice");
	json_str(j, "headroom", f->headroom);
	json_str(j, "why_none", f->why_no_advice);
	json_array(j, "schedulers");
	for (size_t i = 0; i < f->nr_advice; i++) {
		json_object(j, NULL);
		json_str(j, "scheduler", f->advice[i].scheduler);
		json_bool(j, "own", f->advice[i].own);
		json_array(j, "lines");
		for (size_t k = 0; k < f->advice[i].nr_lines; k++)
			json_str(j, NULL, f->advice[i].line[k]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

void findings_json(struct json *j, const struct findings *f)
{
	json_array(j, "findings");
	for (size_t i = 0; i < f->nr; i++)
		add_finding(j, &f->item[i]);
	json_end_array(j);
	add_advice(j, f);
	json_array(j, "unmeasured");
	for (size_t i = 0; i < f->nr_unmeasured; i++)
		json_str(j, NULL, f->unmeasured[i]);
	json_end_array(j);
}
