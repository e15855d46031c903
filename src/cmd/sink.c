/* Writes what the engine found to the store: see sink.h. */
#include "cmd/sink.h"

#include "collect/collector.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

/* NULL after the end of the recording: the job may go on without being recorded. */
static struct store_writer *store_of(void *arg)
{
	struct store_sink *s = arg;

	if (!s->store && s->create)
		s->create(s->arg);
	return s->store;
}

static void sink_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *identity)
{
	struct store_sink *s = arg;
	struct store_writer *store = store_of(arg);

	if (!store)
		return;
	store_instance(store, set, row, id, time_ns, identity);
	tally_instance(s->tally, set, row, identity);
}

static void sink_gone(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *last)
{
	struct store_sink *s = arg;
	struct store_writer *store = store_of(arg);

	if (!store)
		return;
	store_gone(store, set, row, id, time_ns, last);
	tally_gone(s->tally, set, row, last);
}

static void sink_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *data)
{
	struct store_writer *store = store_of(arg);

	if (store)
		store_event(store, time_ns, kind, data);
}

static void sink_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	struct store_sink *s = arg;
	struct store_writer *store = store_of(arg);

	if (!store)
		return;
	store_tick(store, number, time_ns, at, table);
	tally_tick(s->tally, table);
}

static void sink_flush(void *arg)
{
	struct store_sink *s = arg;
	int error = s->store ? store_flush(s->store) : 0;

	if (error < 0 && !s->flush_error)
		s->flush_error = error;
}

static void sink_schema(void *arg, const struct schema *schema)
{
	struct store_sink *s = arg;
	int error = s->store ? store_schema(s->store, schema) : 0;

	if (error < 0 && !s->error)
		s->error = error;
}

struct sink sink_to_store(struct store_sink *s)
{
	return (struct sink){s, sink_instance, sink_gone, sink_event, sink_tick, sink_flush, sink_schema};
}

static void store_asked(struct store_writer *store, const struct engine *e)
{
	struct pair memory[1];
	struct pairs p;
	struct buf names;
	const char *name;
	char text[8];

	buf_init(&names, 8192);
	for (size_t i = 0; (name = engine_asked(e, i)); i++)
		buf_add(&names, name, strlen(name) + 1);
	pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
	if (names.len && !names.err) {
		pairs_add(&p, "asked", names.data, names.len - 1);
		store_meta(store, &p);
	}
	buf_release(&names);
}

void store_wishes(struct store_writer *store, const struct engine *e)
{
	const struct plan_formula *f;

	store_asked(store, e);
	for (size_t i = 0; (f = engine_formula(e, i)); i++) {
		struct pair memory[1];
		struct pairs p;
		struct buf value;
		char key[96], text[8];

		buf_init(&value, 8192);
		buf_add(&value, unit_name(f->unit), strlen(unit_name(f->unit)) + 1);
		buf_add(&value, f->per_second ? "1" : "0", 2);
		buf_add(&value, f->panel ? f->panel : "", strlen(f->panel ? f->panel : "") + 1);
		buf_add(&value, f->expression, strlen(f->expression) + 1);
		buf_add(&value, f->help, strlen(f->help));
		snprintf(key, sizeof(key), "derived.%s", f->name);
		pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
		pairs_add(&p, key, value.data, value.len);
		if (!value.err)
			store_meta(store, &p);
		buf_release(&value);
	}
}
