/* The summary as JSON: what was counted, and the GPUs. */
#include "text/json_parts.h"

#include <stdio.h>

void json_figure(struct json *j, const char *key, const struct figure *f, bool whole)
{
	if (f->why)
		json_null(j, key);
	else if (whole)
		json_whole(j, key, f->value);
	else
		json_num(j, key, f->value);
}

/* ---- counters ---- */

void json_counters(struct json *j, const struct summary *s)
{
	char unit[32];

	json_object(j, "perf");
	for (size_t i = 0; i < s->nr_counters; i++) {
		const struct summary_counter *c = &s->counter[i];

		snprintf(unit, sizeof(unit), "%s%s", unit_name(c->unit), c->per_second ? "/s" : "");
		json_object(j, c->name);
		json_figure(j, "value", &c->value, !c->expression && c->unit == UNIT_COUNT);
		json_str(j, "unit", unit);
		json_figure(j, "running_share", &c->running_share, false);
		json_end_object(j);
	}
	json_end_object(j);
}

void json_counters_reasons(struct json *j, const struct summary *s)
{
	char name[160];

	for (size_t i = 0; i < s->nr_counters; i++) {
		const struct summary_counter *c = &s->counter[i];
		const char *why = c->value.why ? c->value.why : c->running_share.why;

		if (!why)
			continue;
		snprintf(name, sizeof(name), "perf.%s%s", c->name, c->value.why ? "" : ".running_share");
		json_str(j, name, why);
	}
}

/* ---- GPUs ---- */

static const struct {
	const char *name;
	bool expected;	/* without one, there is a reason to be given */
	bool of_groups; /* stands in the lists of groups, too */
} text_row[NR_GPU_TEXTS] = {[GPU_TEXT_HOST] = {"host", true, true},
	[GPU_TEXT_INSTANCE] = {"instance", true, true},
	[GPU_TEXT_VENDOR] = {"vendor", true, true},
	[GPU_TEXT_NAME] = {"name", true, true},
	[GPU_TEXT_UUID] = {"uuid", true, true},
	[GPU_TEXT_PCI] = {"pci", true, false},
	[GPU_TEXT_PARENT] = {"parent", false, true},
	[GPU_TEXT_COUNTED_ELSEWHERE] = {"apart", false, false},
	[GPU_TEXT_JOB] = {"job", true, false},
	[GPU_TEXT_JOB_BY] = {"job_by", false, false},
	[GPU_TEXT_ENERGY_SOURCE] = {"energy_source", false, false},
	[GPU_TEXT_LOST] = {"lost", false, false}};

static void add_gpu_reasons(struct json *j, const struct summary_gpu *gpu, bool group)
{
	json_object(j, "unavailable");
	if (gpu->index < 0)
		json_str(j, "index", "not recorded");
	for (unsigned i = 0; i < NR_GPU_TEXTS; i++)
		if (!gpu->text[i] && text_row[i].expected && (!group || text_row[i].of_groups))
			json_str(j, text_row[i].name, "not recorded");
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++) {
		const char *name = group ? summary_gpu_row[i].of_group : summary_gpu_row[i].name;
		const char *why = gpu->figure[i].why;

		if (name && why && *why)
			json_str(j, name, why);
	}
	json_end_object(j);
}

static void add_gpu_texts(
	struct json *j, const struct summary_gpu *gpu, unsigned from, unsigned to, bool group)
{
	for (unsigned i = from; i < to; i++)
		if (!group || text_row[i].of_groups)
			json_name(j, text_row[i].name, gpu->text[i]);
}

static void add_gpu(struct json *j, const struct summary_gpu *gpu, bool group)
{
	json_object(j, NULL);
	if (gpu->index < 0)
		json_null(j, "index");
	else
		json_int(j, "index", gpu->index);
	add_gpu_texts(j, gpu, GPU_TEXT_VENDOR, GPU_TEXT_PCI, group);
	for (unsigned i = 0; i < NR_GPU_FIGURES; i++) {
		const char *name = group ? summary_gpu_row[i].of_group : summary_gpu_row[i].name;

		if (name)
			json_figure(j, name, &gpu->figure[i], summary_gpu_row[i].whole);
	}
	add_gpu_texts(j, gpu, GPU_TEXT_HOST, GPU_TEXT_VENDOR, group);
	add_gpu_texts(j, gpu, GPU_TEXT_PCI, NR_GPU_TEXTS, group);
	add_gpu_reasons(j, gpu, group);
	json_end_object(j);
}

void json_gpus(struct json *j, const struct summary *s)
{
	json_array(j, "gpus");
	for (size_t i = 0; i < s->nr_gpus; i++)
		add_gpu(j, &s->gpu[i], s->name != NULL);
	json_end_array(j);
}
