/* Hardware counters and GPUs: what the recording of a moment found of them, and where it found nothing, which
 * of the many things that must be in place is not.
 *
 * The collectors say why a metric has no value; this file says what the user can do about it. A driver that
 * answered is trusted, whatever its files look like. */
#include "cmd/doctor.h"

#include "perf/event.h"
#include "perf/groups.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- counters ---- */

/* Nothing at all is counted, and why. */
static void refuse_counters(const struct perf_access *a, struct permit *p)
{
	permit_refuse(p, a->paranoid == INT_MIN ? ABSENT : FORBIDDEN, a->reason, a->remedy);
}

static void find_kernel_mode(const struct perf_access *a, struct permit *p)
{
	char reason[160];

	if (!a->tasks) {
		refuse_counters(a, p);
	} else if (a->kernel_too) {
		permit_grant(p, "kernel mode is counted too");
	} else {
		snprintf(reason, sizeof(reason),
			"kernel.perf_event_paranoid is %d: what processes do in the kernel is not counted",
			a->paranoid);
		permit_refuse(p, FORBIDDEN, reason, "sudo sysctl kernel.perf_event_paranoid=1");
	}
}

/* Where there is no hardware to count with, permission does not help. */
static void find_packages(const struct perf_access *a, struct permit *p)
{
	char reason[160];

	if (a->packages) {
		permit_grant(p, "whole CPUs and packages may be counted, as memory bandwidth needs");
	} else if (!a->tasks) {
		refuse_counters(a, p);
	} else if (!a->hardware) {
		permit_refuse(p, ABSENT, a->reason, NULL);
	} else {
		snprintf(reason, sizeof(reason),
			"kernel.perf_event_paranoid is %d: no counters of whole CPUs and packages, as memory "
			"bandwidth needs",
			a->paranoid);
		permit_refuse(p, FORBIDDEN, reason, "sudo sysctl kernel.perf_event_paranoid=0");
	}
}

static void find_events(struct env *env, struct permit *p)
{
	struct event_file file = {0};
	char err[240] = "", text[200];

	if (event_file_find(env, &file, err, sizeof(err)) < 0) {
		permit_refuse(p, ABSENT, err, NULL);
		return;
	}
	snprintf(text, sizeof(text), "events and formulas of this processor: %.150s", file.source);
	permit_grant(p, text);
	event_file_release(&file);
}

void doctor_counters(struct env *env, struct permit ret[static NR_COUNTER_FINDINGS])
{
	static const char *const name[NR_COUNTER_FINDINGS] = {
		"processes", "kernel", "hardware", "packages", "events", "names"};
	struct perf_access a = {0};

	for (unsigned i = 0; i < NR_COUNTER_FINDINGS; i++)
		ret[i] = (struct permit){.source = "counters", .metric = name[i]};
	perf_access(env, &a);
	if (a.tasks)
		permit_grant(&ret[COUNTERS_TASKS], "events of this user's processes can be counted");
	else
		refuse_counters(&a, &ret[COUNTERS_TASKS]);
	find_kernel_mode(&a, &ret[COUNTERS_KERNEL]);
	if (a.hardware)
		permit_grant(&ret[COUNTERS_HARDWARE], "there is a PMU that counts cycles");
	else if (a.tasks)
		permit_refuse(&ret[COUNTERS_HARDWARE], ABSENT, a.reason, a.remedy);
	else
		refuse_counters(&a, &ret[COUNTERS_HARDWARE]);
	find_packages(&a, &ret[COUNTERS_PACKAGES]);
	/* One setting that is enough for both, not two that undo each other. */
	if (a.tasks && ret[COUNTERS_KERNEL].state == FORBIDDEN && ret[COUNTERS_PACKAGES].state == FORBIDDEN)
		memcpy(ret[COUNTERS_KERNEL].remedy, ret[COUNTERS_PACKAGES].remedy,
			sizeof(ret[COUNTERS_KERNEL].remedy));
	find_events(env, &ret[COUNTERS_EVENTS]);
	if (env_library(env, "libpfm.so.4", NULL))
		permit_grant(
			&ret[COUNTERS_NAMES], "libpfm4 knows the events' names in the processors' manuals");
	else
		permit_refuse(&ret[COUNTERS_NAMES], ABSENT,
			"libpfm4 is not installed: names of the processors' manuals are not understood",
			"sudo apt install libpfm4");
}

/* ---- GPUs ---- */

/* "2 x NVIDIA A100-SXM4-40GB, Tesla T4"; how many there are. */
static unsigned name_gpus(const struct self_test *h, const char *vendor, struct buf *out)
{
	bool named[SELF_TEST_GPUS_MAX] = {0};
	unsigned nr = 0;

	for (unsigned i = 0; i < h->nr_gpus; i++) {
		unsigned same = 0;

		if (strcmp(h->gpu[i].vendor, vendor) != 0)
			continue;
		nr++;
		for (unsigned k = i; k < h->nr_gpus && !named[i]; k++) {
			bool equal = !strcmp(h->gpu[k].vendor, vendor) &&
				!strcmp(h->gpu[k].model, h->gpu[i].model);

			same += equal;
			named[k] = named[k] || (equal && k > i);
		}
		if (same)
			buf_adds(out, out->len ? ", " : "");
		if (same > 1)
			buf_addf(out, "%u x ", same);
		if (same)
			buf_addf(out, "%.80s", *h->gpu[i].model ? h->gpu[i].model : vendor);
	}
	return nr;
}

/* The first reason given for GPUs without values. */
static const struct self_test_metric *find_trouble(const struct self_test *h)
{
	for (size_t s = 0; s < h->nr; s++)
		for (size_t m = 0; h->source[s].collector->domain == DOMAIN_GPU &&
			m < h->source[s].collector->nr_metrics;
			m++)
			if (h->source[s].metric[m].state != AVAILABLE && h->source[s].metric[m].reason)
				return &h->source[s].metric[m];
	return NULL;
}

void doctor_gpu(const struct self_test *h, struct permit *p)
{
	const struct self_test_metric *trouble = find_trouble(h);
	struct buf names;

	buf_init(&names, 4096);
	if (name_gpus(h, p->metric, &names)) {
		if (p->state != FORBIDDEN) {
			*p->reason = *p->remedy = 0;
			permit_grant(p, (char *)names.data);
		}
	} else if (p->state == AVAILABLE && h->works && trouble) {
		*p->detail = 0;
		permit_refuse(p, FAILED, trouble->reason, trouble->remedy);
	}
	buf_release(&names);
}
