/* Jobs that tell of phases, for the tests of query/phases and of what is written of it: one process whose
 * numbers follow by hand. Include it after cmocka.h. */
#ifndef PHASES_LAB_H
#define PHASES_LAB_H

#include "query_maker.h"

#include "query/phases.h"

#define PAGE 4096.0

/* "phase.begin" or "phase.end" of a process; sent_ns < 0: it does not tell. */
static inline void tell(
	struct maker *m, int64_t time_ns, const char *kind, const char *name, int64_t pid, int64_t sent_ns)
{
	pairs_reset(&m->pairs);
	pairs_str(&m->pairs, "name", name);
	if (pid)
		pairs_num(&m->pairs, "pid", pid);
	if (sent_ns >= 0)
		pairs_num(&m->pairs, "sent_ns", sent_ns);
	store_event(m->w, time_ns, kind, &m->pairs);
}

static inline void begin(struct maker *m, int64_t milli, const char *name)
{
	tell(m, milli * MILLI, "phase.begin", name, 0, -1);
}

static inline void end(struct maker *m, int64_t milli, const char *name)
{
	tell(m, milli * MILLI, "phase.end", name, 0, -1);
}

/* One process that computes half of the time, and has 100 pages, from the fourth second on 300. */
static inline void tick(struct maker *m, int64_t milli)
{
	maker_set(m, 0, "proc.cpu.time", milli * MILLI / 2);
	maker_set(m, 0, "proc.io.read_chars", milli * 1000);
	set_memory(m, 0, milli < 4000 ? 100 : 300, 0);
	maker_tick(m, milli * MILLI);
}

static inline void open_job(struct maker *m, const char *path)
{
	maker_open(m, path, &(struct maker_options){.host = "n1", .interval_ns = SECOND});
	maker_join(m, 0, 1, 100, 1, 0, false);
}

static inline const struct phase *phase_at(const struct summary *s, size_t i, const char *name)
{
	assert_non_null(s->phases);
	assert_true(i < s->phases->nr);
	assert_string_equal(s->phases->phase[i].name, name);
	return &s->phases->phase[i];
}
#endif
