/* Packets of a Perfetto trace: see perfetto_packets.h. The numbers of fields are those of perfetto's
 * protos/perfetto/trace. */
#include "export/perfetto_packets.h"

#include "export/protobuf.h"
#include "export/text.h"

#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define BUFFER (256u << 10)
#define LEVEL 2	   /* of zlib: half the time of its default, a tenth larger */
#define SEQUENCE 1 /* all packets are of one writer */
enum { CLOCK_OF_DAY = 1, CLOCK_OF_TRACE = 6 };

enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_COMPRESSED = 50,
	PACKET_TRACK = 60
};
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum {
	TRACK_NUMBER = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_ORDER = 11,
	TRACK_RANK = 12,
	TRACK_HELP = 14
};
enum {
	PROCESS_DESCRIPTOR_PID = 1,
	PROCESS_DESCRIPTOR_COMMAND = 2,
	PROCESS_DESCRIPTOR_NAME = 6,
	PROCESS_DESCRIPTOR_START = 7
};
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, COUNTER_AXIS = 7 };
enum { UNIT_OF_COUNT = 2, UNIT_OF_BYTES = 3 };
enum {
	EVENT_NOTE = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_INTEGER = 30,
	EVENT_REAL = 44
};
enum { TYPE_COUNTER = 4 };
enum { NOTE_FLAG = 2, NOTE_INTEGER = 4, NOTE_REAL = 5, NOTE_TEXT = 6, NOTE_JSON = 9, NOTE_NAME = 10 };

void perfetto_init(struct perfetto_packets *p, struct outlet *out, bool deflate)
{
	*p = (struct perfetto_packets){.out = out, .deflate = deflate};
	buf_init(&p->packet, SIZE_MAX / 2);
	buf_init(&p->body, SIZE_MAX / 2);
	buf_init(&p->part, SIZE_MAX / 2);
	buf_init(&p->note, SIZE_MAX / 2);
	buf_init(&p->all, SIZE_MAX / 2);
}

void perfetto_release(struct perfetto_packets *p)
{
	buf_release(&p->packet);
	buf_release(&p->body);
	buf_release(&p->part);
	buf_release(&p->note);
	buf_release(&p->all);
}

/* ---- packets ---- */

/* The body as field `what` of a packet. */
static void add_packet(struct perfetto_packets *p, int64_t time, unsigned what)
{
	protobuf_uint(&p->packet, PACKET_TIME, (uint64_t)time);
	protobuf_uint(&p->packet, PACKET_SEQUENCE, SEQUENCE);
	protobuf_message(&p->packet, what, &p->body);
	protobuf_message(&p->all, TRACE_PACKET, &p->packet);
}

/* The clock of the trace is the time of day, so that viewers can show dates. */
static void add_clocks(struct perfetto_packets *p, int64_t time)
{
	static const unsigned clock[] = {CLOCK_OF_TRACE, CLOCK_OF_DAY};

	p->has_clock = true;
	for (size_t i = 0; i < ARRAY_SIZE(clock); i++) {
		protobuf_uint(&p->part, CLOCK_ID, clock[i]);
		protobuf_uint(&p->part, CLOCK_TIME, (uint64_t)time);
		protobuf_message(&p->body, CLOCKS_CLOCK, &p->part);
	}
	add_packet(p, time, PACKET_CLOCKS);
}

/* ---- tracks ---- */

static void add_process(struct perfetto_packets *p, const struct perfetto_track *t)
{
	protobuf_uint(&p->part, PROCESS_DESCRIPTOR_PID, (uint64_t)t->pid);
	if (t->command.len)
		protobuf_bytes(&p->part, PROCESS_DESCRIPTOR_COMMAND, t->command.text, t->command.len);
	protobuf_bytes(&p->part, PROCESS_DESCRIPTOR_NAME, t->name.text, t->name.len);
	if (t->start > 0)
		protobuf_uint(&p->part, PROCESS_DESCRIPTOR_START, (uint64_t)t->start);
	protobuf_message(&p->body, TRACK_PROCESS, &p->part);
}

/* Counters of one name have one axis, so that processes can be compared. */
static void add_counter(struct perfetto_packets *p, const struct field *f)
{
	char text[EXPORT_TEXT];
	const char *unit = field_unit(f, text);

	if (!*unit || !strcmp(unit, "bytes"))
		protobuf_uint(&p->part, COUNTER_UNIT, *unit ? UNIT_OF_BYTES : UNIT_OF_COUNT);
	else
		protobuf_text(&p->part, COUNTER_UNIT_NAME, unit);
	protobuf_text(&p->part, COUNTER_AXIS, f->name);
	protobuf_message(&p->body, TRACK_COUNTER, &p->part);
}

uint64_t perfetto_track(struct perfetto_packets *p, int64_t time, const struct perfetto_track *t)
{
	uint64_t number = t->number ? t->number : ++p->nr_tracks;

	if (!p->has_clock)
		add_clocks(p, time);
	protobuf_uint(&p->body, TRACK_NUMBER, number);
	protobuf_bytes(&p->body, TRACK_NAME, t->name.text, t->name.len);
	if (t->parent)
		protobuf_uint(&p->body, TRACK_PARENT, t->parent);
	if (t->pid >= 0 && t->pid <= INT32_MAX)
		add_process(p, t);
	if (t->counter)
		add_counter(p, t->counter);
	if (t->order)
		protobuf_uint(&p->body, TRACK_ORDER, t->order);
	if (t->rank)
		protobuf_uint(&p->body, TRACK_RANK, (uint64_t)t->rank);
	if (t->help)
		protobuf_text(&p->body, TRACK_HELP, t->help);
	add_packet(p, time, PACKET_TRACK);
	return number;
}

/* ---- events ---- */

static void begin_event(struct perfetto_packets *p, unsigned type, uint64_t track)
{
	protobuf_uint(&p->body, EVENT_TYPE, type);
	protobuf_uint(&p->body, EVENT_TRACK, track);
}

void perfetto_integer(struct perfetto_packets *p, uint64_t track, int64_t time, int64_t value)
{
	begin_event(p, TYPE_COUNTER, track);
	protobuf_uint(&p->body, EVENT_INTEGER, (uint64_t)value);
	add_packet(p, time, PACKET_EVENT);
}

void perfetto_real(struct perfetto_packets *p, uint64_t track, int64_t time, double value)
{
	begin_event(p, TYPE_COUNTER, track);
	protobuf_double(&p->body, EVENT_REAL, value);
	add_packet(p, time, PACKET_EVENT);
}

void perfetto_event(struct perfetto_packets *p, enum perfetto_type type, uint64_t track, int64_t time,
	struct perfetto_text category, struct perfetto_text name)
{
	p->time = time;
	begin_event(p, type, track);
	if (category.len)
		protobuf_bytes(&p->body, EVENT_CATEGORY, category.text, category.len);
	if (type != PERFETTO_END)
		protobuf_bytes(&p->body, EVENT_NAME, name.text, name.len);
}

static void add_note(struct perfetto_packets *p, const char *name)
{
	protobuf_text(&p->note, NOTE_NAME, name);
	protobuf_message(&p->body, EVENT_NOTE, &p->note);
}

void perfetto_note_text(struct perfetto_packets *p, const char *name, struct perfetto_text value)
{
	protobuf_bytes(&p->note, NOTE_TEXT, value.text, value.len);
	add_note(p, name);
}

void perfetto_note_json(struct perfetto_packets *p, const char *name, struct perfetto_text value)
{
	protobuf_bytes(&p->note, NOTE_JSON, value.text, value.len);
	add_note(p, name);
}

void perfetto_note_integer(struct perfetto_packets *p, const char *name, int64_t value)
{
	protobuf_uint(&p->note, NOTE_INTEGER, (uint64_t)value);
	add_note(p, name);
}

void perfetto_note_real(struct perfetto_packets *p, const char *name, double value)
{
	protobuf_double(&p->note, NOTE_REAL, value);
	add_note(p, name);
}

void perfetto_note_flag(struct perfetto_packets *p, const char *name, bool value)
{
	protobuf_uint(&p->note, NOTE_FLAG, value);
	add_note(p, name);
}

void perfetto_done(struct perfetto_packets *p)
{
	add_packet(p, p->time, PACKET_EVENT);
}

/* ---- the file ---- */

#ifdef HAVE_ZLIB
static int add_deflated(struct perfetto_packets *p)
{
	uLongf len = compressBound((uLong)p->all.len);

	if (!buf_reserve(&p->body, len))
		return -ENOMEM;
	if (compress2(p->body.data, &len, p->all.data, (uLong)p->all.len, LEVEL) != Z_OK)
		return -ENOMEM;
	p->body.len = len;
	protobuf_message(&p->packet, PACKET_COMPRESSED, &p->body);
	buf_reset(&p->all);
	protobuf_message(&p->all, TRACE_PACKET, &p->packet);
	return p->all.err;
}
#else
static int add_deflated(struct perfetto_packets *p)
{
	(void)p;
	return -EOPNOTSUPP;
}
#endif

int perfetto_settle(struct perfetto_packets *p, bool all)
{
	int r = p->all.err;

	if (r < 0 || !p->all.len || (!all && p->all.len < BUFFER))
		return r;
	if (p->deflate)
		r = add_deflated(p);
	if (r >= 0)
		r = outlet_add(p->out, p->all.data, p->all.len);
	buf_reset(&p->all);
	return r;
}
