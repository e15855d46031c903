/* Event files of TensorBoard: see tfevents.h. */
#include "export/tfevents.h"

#include "export/protobuf.h"
#include "store/crc32c.h"

#include <endian.h>
#include <float.h>
#include <string.h>

#define VERSION "brain.Event:2"

enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2 };

#define HEAD 12 /* length and its checksum */
#define TAIL 4
#define RECORD_MOST ((uint64_t)64 << 20)

void tfevents_init(struct tfevents *t)
{
	*t = (struct tfevents){0};
	buf_init(&t->value, 1 << 20);
	buf_init(&t->summary, 64 << 20);
	buf_init(&t->event, 64 << 20);
}

void tfevents_release(struct tfevents *t)
{
	buf_release(&t->value);
	buf_release(&t->summary);
	buf_release(&t->event);
}

double tfevents_time(int64_t ns)
{
	return (double)ns / 1e9;
}

/* So that a checksum of data with checksums in it is none of zero. */
static uint32_t masked(const void *data, size_t n)
{
	uint32_t crc = crc32c(data, n);

	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static void add_u32(struct buf *out, uint32_t v)
{
	v = htole32(v);
	buf_add(out, &v, sizeof(v));
}

static void add_record(struct buf *out, struct buf *event)
{
	uint64_t len = htole64(event->len);

	buf_add(out, &len, sizeof(len));
	add_u32(out, masked(&len, sizeof(len)));
	buf_add(out, event->data, event->len);
	add_u32(out, masked(event->data, event->len));
	if (event->err && !out->err)
		out->err = event->err;
	buf_reset(event);
}

void tfevents_begin(struct tfevents *t, struct buf *out, int64_t time_ns)
{
	protobuf_double(&t->event, EVENT_TIME, tfevents_time(time_ns));
	protobuf_text(&t->event, EVENT_VERSION, VERSION);
	add_record(out, &t->event);
}

void tfevents_end(struct tfevents *t, struct buf *out)
{
	if (!t->summary.len && !t->summary.err)
		return;
	protobuf_double(&t->event, EVENT_TIME, tfevents_time(t->time_ns));
	protobuf_uint(&t->event, EVENT_STEP, (uint64_t)t->step);
	protobuf_message(&t->event, EVENT_SUMMARY, &t->summary);
	add_record(out, &t->event);
}

static float as_float(double v)
{
	return v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : (float)v;
}

void tfevents_add(
	struct tfevents *t, struct buf *out, const char *tag, int64_t time_ns, int64_t step, double value)
{
	if (t->time_ns != time_ns || t->step != step)
		tfevents_end(t, out);
	t->time_ns = time_ns;
	t->step = step;
	protobuf_text(&t->value, VALUE_TAG, tag);
	protobuf_float(&t->value, VALUE_SIMPLE, as_float(value));
	protobuf_message(&t->summary, SUMMARY_VALUE, &t->value);
}

/* ---- tags ---- */

bool tfevents_is_single(const char *table)
{
	return !strcmp(table, "node") || !strcmp(table, "tree");
}

void tfevents_tag(struct buf *out, const char *table, const char *metric, const char *instance, int64_t pid)
{
	size_t n = strlen(table);

	buf_addf(out, "%s/%s", table,
		!strncmp(metric, table, n) && metric[n] == '.' ? metric + n + 1 : metric);
	if (instance && *instance)
		buf_addf(out, "/%s", instance);
	if (pid)
		buf_addf(out, "%c%lld", instance && *instance ? '-' : '/', (long long)pid);
}

/* ---- reading what was written ---- */

struct event_text {
	double time;
	int64_t step;
	struct view summary;
};

static uint64_t get_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint32_t get_u32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* A field of a message: its number; what is of no use is passed over. 0: the end. */
static unsigned next_field(struct view *v, uint64_t *ret_number, struct view *ret_bytes)
{
	uint64_t key = v->p < v->end ? view_varint(v) : 0;
	size_t len = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;

	*ret_number = 0;
	*ret_bytes = view_of(v->p, 0);
	if (!key)
		return 0;
	if ((key & 7) == 0) {
		*ret_number = view_varint(v);
	} else if ((key & 7) == 2) {
		const uint8_t *p = view_bytes(v, &len);

		*ret_bytes = view_of(p, p ? len : 0);
	} else if (len && (size_t)(v->end - v->p) >= len) {
		*ret_bytes = view_of(v->p, len);
		v->p += len;
	} else {
		v->bad = true;
	}
	return v->bad ? 0 : (unsigned)(key >> 3);
}

static struct event_text read_event(struct view v)
{
	struct event_text e = {0};
	struct view bytes;
	uint64_t number, bits;
	unsigned field;

	while ((field = next_field(&v, &number, &bytes))) {
		if (field == EVENT_TIME && bytes.end - bytes.p == 8) {
			bits = get_u64(bytes.p);
			memcpy(&e.time, &bits, sizeof(e.time));
		} else if (field == EVENT_STEP) {
			e.step = (int64_t)number;
		} else if (field == EVENT_SUMMARY) {
			e.summary = bytes;
		}
	}
	return e;
}

static int take_value(struct view value, const struct event_text *e, tfevents_take *take, void *arg)
{
	struct view bytes;
	uint64_t number;
	unsigned field;

	while ((field = next_field(&value, &number, &bytes)))
		if (field == VALUE_TAG)
			return take(
				arg, (const char *)bytes.p, (size_t)(bytes.end - bytes.p), e->time, e->step);
	return 0;
}

static int take_values(struct event_text e, tfevents_take *take, void *arg)
{
	struct view value;
	uint64_t number;
	unsigned field;
	int r = 0;

	while (r >= 0 && (field = next_field(&e.summary, &number, &value)))
		if (field == SUMMARY_VALUE)
			r = take_value(value, &e, take, arg);
	return r;
}

int64_t tfevents_read(const void *data, size_t n, tfevents_take *take, void *arg)
{
	const uint8_t *p = data;
	size_t at = 0;

	while (n - at >= HEAD + TAIL) {
		uint64_t len = get_u64(p + at);
		int r;

		if (len > RECORD_MOST || len > n - at - HEAD - TAIL ||
			get_u32(p + at + 8) != masked(p + at, 8) ||
			get_u32(p + at + HEAD + len) != masked(p + at + HEAD, (size_t)len))
			break;
		r = take_values(read_event(view_of(p + at + HEAD, (size_t)len)), take, arg);
		if (r < 0)
			return r;
		at += HEAD + (size_t)len + TAIL;
	}
	return (int64_t)at;
}
