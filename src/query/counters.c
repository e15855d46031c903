/* The set has for each event X a row perf.X and a row perf.X.running, and for all of them perf.enabled.
 *
 * Counters start at nothing when we open them, so the first reading counts, too: between the first
 * instruction of a command and the first tick much may happen. */
#include "query/counters.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char running_suffix[] = ".running";

void counters_init(struct counters *c)
{
	*c = (struct counters){.set = -1};
	growth_init(&c->enabled, GROWTH_FROM_ZERO);
}

void counters_release(struct counters *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		growth_release(&c->event[i].count);
		growth_release(&c->event[i].running);
	}
	growth_release(&c->enabled);
	free(c->event);
	c->event = NULL;
	c->nr = 0;
}

bool counters_is_event(const char *metric)
{
	size_t len = strlen(metric), tail = sizeof(running_suffix) - 1;

	if (!str_starts(metric, "perf.") || !strcmp(metric, "perf.enabled"))
		return false;
	return len < tail || strcmp(metric + len - tail, running_suffix) != 0;
}

int counters_bind(struct counters *c, const struct schema *schema)
{
	const struct schema_set *set;
	char name[80];

	counters_release(c);
	counters_init(c);
	c->set = schema_find_domain(schema, DOMAIN_PERF);
	if (c->set < 0 || !schema->set[c->set].nr_metrics)
		return 0;
	set = &schema->set[c->set];
	c->event = calloc(MIN(set->nr_metrics, (uint32_t)COUNTERS_MAX), sizeof(*c->event));
	if (!c->event)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nr_metrics && c->nr < COUNTERS_MAX; i++) {
		struct counter_event *event = &c->event[c->nr];

		if (!counters_is_event(set->metric[i].name))
			continue;
		*event = (struct counter_event){.metric = set->metric[i].name, .unit = set->metric[i].unit};
		growth_init(&event->count, GROWTH_FROM_ZERO);
		growth_init(&event->running, GROWTH_FROM_ZERO);
		growth_bind(&event->count, schema, event->metric);
		snprintf(name, sizeof(name), "%.64s%s", event->metric, running_suffix);
		growth_bind(&event->running, schema, name);
		c->nr++;
	}
	growth_bind(&c->enabled, schema, "perf.enabled");
	return 0;
}

void counters_instance(struct counters *c, const struct store_record *record)
{
	const struct pair *counts;

	if (c->set < 0 || record->set != (uint32_t)c->set)
		return;
	counts = pairs_find(record->pairs, "counts");
	c->user_only |= counts && counts->len == 4 && !memcmp(counts->value, "user", 4);
}

int counters_tick(struct counters *c, const struct walk *walk)
{
	int r = growth_tick(&c->enabled, walk);

	for (size_t i = 0; i < c->nr && r >= 0; i++) {
		r = growth_tick(&c->event[i].count, walk);
		if (r >= 0)
			r = growth_tick(&c->event[i].running, walk);
	}
	return r;
}
