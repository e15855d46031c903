/* Keeps the events that have begun and not ended: see open_events.h. */
#include "store/open_events.h"

#include "store/identity.h"

#include <string.h>

#define VALUE_MOST 600

static uint64_t mix(uint64_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(1099511628211);
	return (hash ^ len) * UINT64_C(1099511628211);
}

static uint64_t hash_of(const char *kind, size_t len, const struct pairs *data)
{
	const struct pair *name = pairs_find(data, "name");
	uint64_t hash = mix(UINT64_C(14695981039346656037), kind, len);

	return name ? mix(hash, name->value, name->len) : hash;
}

static bool ends_in(const char *kind, const char *ending, size_t *ret_stem)
{
	size_t n = strlen(kind), m = strlen(ending);

	*ret_stem = n - MIN(n, m);
	return n > m && !strcmp(kind + n - m, ending);
}

static void forget(struct open_events *o, unsigned i)
{
	o->nr--;
	memmove(&o->item[i], &o->item[i + 1], (o->nr - i) * sizeof(o->item[0]));
}

static void begin(
	struct open_events *o, int64_t time_ns, uint64_t what, const char *kind, const struct pairs *data)
{
	struct open_event *event;
	struct buf text;

	if (o->nr == OPEN_EVENTS_MOST)
		forget(o, 0);
	event = &o->item[o->nr];
	buf_init_fixed(&text, event->text, sizeof(event->text));
	buf_add_bytes(&text, kind, strlen(kind));
	pairs_encode_short(data, VALUE_MOST, &text);
	if (text.err)
		return;
	event->time_ns = time_ns;
	event->what = what;
	event->size = text.len;
	o->nr++;
}

void open_events_take(struct open_events *o, int64_t time_ns, const char *kind, const struct pairs *data)
{
	size_t stem;
	uint64_t what;
	unsigned i;

	if (ends_in(kind, ".begin", &stem)) {
		begin(o, time_ns, hash_of(kind, stem, data), kind, data);
		return;
	}
	if (!ends_in(kind, ".end", &stem))
		return;
	what = hash_of(kind, stem, data);
	for (i = o->nr; i && o->item[i - 1].what != what;)
		i--;
	if (i)
		forget(o, i - 1);
}
