/* A sink that ignores everything, for callers that replace some of its functions. */
#include "engine/sink.h"

static void ignore_instance(
	void *arg, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns, const struct pairs *pairs)
{
	(void)arg;
	(void)set;
	(void)row;
	(void)id;
	(void)time_ns;
	(void)pairs;
}

static void ignore_event(void *arg, int64_t time_ns, const char *kind, const struct pairs *data)
{
	(void)arg;
	(void)time_ns;
	(void)kind;
	(void)data;
}

static void ignore_tick(void *arg, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	(void)arg;
	(void)number;
	(void)time_ns;
	(void)at;
	(void)table;
}

static void ignore_flush(void *arg)
{
	(void)arg;
}

struct sink sink_to_nowhere(void *arg)
{
	return (struct sink){
		arg, ignore_instance, ignore_instance, ignore_event, ignore_tick, ignore_flush, NULL};
}
