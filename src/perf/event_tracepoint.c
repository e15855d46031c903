/* Tracepoints: events/SYSTEM/NAME/id of the tracing file system, which is mounted in one of two places, for
 * root alone on most machines. */
#include "perf/event_internal.h"

#include "read/value.h"

#include <ctype.h>

static const char *const folder[] = {"sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"};

const char *tracepoint_folder(struct env *env, int *reterr)
{
	*reterr = -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(folder); i++) {
		int r = env_try(env, folder[i]);

		if (r == 0)
			return folder[i];
		if (is_refused(r))
			*reterr = r;
	}
	return NULL;
}

static bool is_name(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (!isalnum((unsigned char)t.p[i]) && t.p[i] != '_' && t.p[i] != '-')
			return false;
	return t.len > 0 && t.len < 100;
}

/* Without the folder a tracepoint can only be distinguished from a processor's event and its mask by
 * capitals: the latter have some, the former none. */
static bool looks_like_one(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (isupper((unsigned char)t.p[i]))
			return false;
	return true;
}

int tracepoint_parse(struct event_ask *a, struct text text)
{
	struct perf_event e = {
		.type = PERF_TYPE_TRACEPOINT, .in_kernel = true, .scale = 1, .pmu = "tracepoint"};
	struct text name = text, system = text_cut(&name, ':');
	const char *below;
	char path[300];
	int64_t id;
	int r;

	if (!is_name(system) || !is_name(name))
		return 0;
	below = tracepoint_folder(a->env, &r);
	if (!below && !looks_like_one(text))
		return 0;
	if (!below && r == -ENOENT)
		return event_lack(a,
			"tracepoints cannot be looked up: /sys/kernel/tracing is not mounted "
			"(mount -t tracefs nodev /sys/kernel/tracing)");
	if (!below)
		return event_lack(a, "tracepoints cannot be looked up: /sys/kernel/tracing is for root");
	snprintf(path, sizeof(path), "%s/%.*s/%.*s/id", below, (int)system.len, system.p, (int)name.len,
		name.p);
	r = value_get(a->env, path, &id);
	if (is_refused(r))
		return event_refuse(
			a, "the tracepoint '%.*s' may be looked up by root only", (int)text.len, text.p);
	if (r < 0 || id < 0)
		return 0;
	e.config = (uint64_t)id;
	return event_add(a, &e);
}
