/* Births and ends are told in the order in which the recorder heard of them. Those of one interval are kept
 * until its tick, put in the order of time and counted from what there was at the tick before. At every tick
 * counting begins anew from the processes that live, so that nothing drifts, whatever was lost. */
#include "query/census.h"

#include "base/owned.h"

#include <stdlib.h>
#include <string.h>

void census_release(struct census *c)
{
	free(c->event);
	*c = (struct census){0};
}

static int add(struct census *c, const struct census_event *event)
{
	if (ARRAY_ROOM(c->event, c->cap, c->nr + 1) < 0)
		return -ENOMEM;
	c->event[c->nr++] = *event;
	return 0;
}

int census_birth(struct census *c, uint32_t id, int64_t time_ns, uint64_t groups)
{
	return add(c, &(struct census_event){time_ns, groups, id, 1, 1});
}

/* Its birth in this interval, where it was born in it. Who ends unsampled was announced just before. */
static struct census_event *birth_of(struct census *c, uint32_t id)
{
	for (size_t i = c->nr; i-- > 0 && c->nr - i < 1000;)
		if (c->event[i].id == id && c->event[i].processes > 0)
			return &c->event[i];
	return NULL;
}

int census_end(struct census *c, uint32_t id, int64_t time_ns, uint64_t groups, bool sampled, int64_t threads,
	bool exact)
{
	struct census_event *birth = sampled ? NULL : birth_of(c, id);

	if (!sampled && !birth)
		return 0;
	if (!sampled && !exact) {
		birth->processes = birth->threads = 0;
		return 0;
	}
	return add(c,
		&(struct census_event){exact ? MAX(time_ns, birth ? birth->time_ns : 0) : c->from_ns, groups,
			id, -1, sampled ? -(int32_t)MIN(threads, INT32_MAX) : -1});
}

void census_lost(struct census *c)
{
	c->nr = 0;
	c->gap = true;
}

/* Of one moment, ends first: who waits for a child before it starts the next has one at a time. But a life of
 * no time begins before it ends. */
static int compare(const void *x, const void *y)
{
	const struct census_event *a = x, *b = y;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->id == b->id)
		return b->processes - a->processes;
	return a->processes - b->processes;
}

static void apply(struct census *c, unsigned line, int64_t since_ns[static ACCOUNTS_MOST], int64_t time_ns,
	const struct census_event *event)
{
	struct between *now = &c->now[line], *most = &c->most[line];

	if (now->processes > 0)
		most->active_ns += time_ns - since_ns[line];
	since_ns[line] = time_ns;
	if (event) {
		now->processes += event->processes;
		now->threads += event->threads;
	}
	most->processes = MAX(most->processes, now->processes);
	most->threads = MAX(most->threads, now->threads);
}

static void sweep(struct census *c, int64_t time_ns, unsigned nr_lines)
{
	int64_t since_ns[ACCOUNTS_MOST];

	for (unsigned i = 0; i < ACCOUNTS_MOST; i++)
		since_ns[i] = c->from_ns;
	if (c->nr)
		qsort(c->event, c->nr, sizeof(*c->event), compare);
	for (size_t i = 0; i < c->nr; i++) {
		const struct census_event *event = &c->event[i];
		int64_t at_ns = MIN(MAX(event->time_ns, c->from_ns), time_ns);

		apply(c, 0, since_ns, at_ns, event);
		for (unsigned line = 1; line < nr_lines; line++)
			if (event->groups >> (line - 1) & 1)
				apply(c, line, since_ns, at_ns, event);
	}
	for (unsigned line = 0; line < nr_lines; line++)
		apply(c, line, since_ns, time_ns, NULL);
}

void census_tick(struct census *c, int64_t time_ns, const struct between *now, unsigned nr_lines)
{
	time_ns = MAX(time_ns, c->from_ns);
	memset(c->most, 0, sizeof(c->most));
	if (!c->gap)
		sweep(c, time_ns, nr_lines);
	for (unsigned i = 0; i < nr_lines; i++) {
		c->most[i].processes = MAX(c->most[i].processes, now[i].processes);
		c->most[i].threads = MAX(c->most[i].threads, now[i].threads);
		if (c->gap && now[i].processes > 0)
			c->most[i].active_ns = time_ns - c->from_ns;
		c->now[i] = now[i];
	}
	c->nr = 0;
	c->gap = false;
	c->ticks++;
	c->from_ns = time_ns;
}
