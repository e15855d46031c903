#include "cmd/sink.h"

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
	store_instance(store_of(arg), set, row, id, time_ns, identity);
}

static void sink_gone(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *last)
{
	store_gone(store_of(arg), set, row, id, time_ns, last);
}

static void sink_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *data)
{
	store_event(store_of(arg), time_ns, kind, data);
}

static void sink_tick(void *arg, uint64_t number, int64_t time_ns, struct table *const *table)
{
	store_tick(store_of(arg), number, time_ns, table);
}

static void sink_flush(void *arg)
{
	struct store_sink *s = arg;
	int error = store_flush(s->store);

	if (error < 0 && !s->error)
		s->error = error;
}

struct sink sink_to_store(struct store_sink *s)
{
	return (struct sink){s, sink_instance, sink_gone, sink_event, sink_tick, sink_flush};
}
