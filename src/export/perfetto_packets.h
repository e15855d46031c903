/* Packets of a Perfetto trace: tracks, and what is on them. Names stand in the descriptor of a track or in
 * the event that begins a slice, never in a sample, so nothing has to be interned. Packets wait for a buffer
 * to be full and are then deflated together, where that is wanted; readers take both.
 *
 * Times are ns since 1970; the trace's own clock is the same. Readers sort packets by time and keep the order
 * of those with the same time. */
#ifndef EXPORT_PERFETTO_PACKETS_H
#define EXPORT_PERFETTO_PACKETS_H

#include "export/exporter.h"

struct perfetto_packets {
	struct outlet *out;
	bool deflate;
	bool has_clock;
	uint64_t nr_tracks;			  /* so many numbers of tracks are given out: 1, 2, … */
	struct buf packet, body, part, note, all; /* all: packets that wait */
	int64_t time;				  /* of the event that is being made */
};

struct perfetto_text {
	const char *text;
	size_t len;
};

enum perfetto_order { PERFETTO_BY_NAME = 1, PERFETTO_BY_RANK = 3 }; /* of the tracks below one */

struct perfetto_track {
	uint64_t number, parent; /* parent 0: none */
	struct perfetto_text name;
	const char *help; /* NULL: none */
	enum perfetto_order order;
	int rank;
	/* Of a process: pid -1 where there is none. */
	int64_t pid;
	struct perfetto_text command;
	int64_t start;
	/* Of a counter: else NULL. */
	const struct field *counter;
};

void perfetto_init(struct perfetto_packets *p, struct outlet *out, bool deflate);
void perfetto_release(struct perfetto_packets *p);
/* Describes a track at a time; `number` 0 gives it the next one. Its number, also where memory is short. */
uint64_t perfetto_track(struct perfetto_packets *p, int64_t time, const struct perfetto_track *track);
void perfetto_integer(struct perfetto_packets *p, uint64_t track, int64_t time, int64_t value);
void perfetto_real(struct perfetto_packets *p, uint64_t track, int64_t time, double value);
/* A slice or a moment: event, then what is known of it, then done. */
enum perfetto_type { PERFETTO_BEGIN = 1, PERFETTO_END = 2, PERFETTO_INSTANT = 3 };
void perfetto_event(struct perfetto_packets *p, enum perfetto_type type, uint64_t track, int64_t time,
	struct perfetto_text category, struct perfetto_text name);
void perfetto_note_text(struct perfetto_packets *p, const char *name, struct perfetto_text value);
void perfetto_note_json(struct perfetto_packets *p, const char *name, struct perfetto_text value);
void perfetto_note_integer(struct perfetto_packets *p, const char *name, int64_t value);
void perfetto_note_real(struct perfetto_packets *p, const char *name, double value);
void perfetto_note_flag(struct perfetto_packets *p, const char *name, bool value);
void perfetto_done(struct perfetto_packets *p);
/* To the outlet what is enough for a buffer, or all of it. Errors of before show here. */
int perfetto_settle(struct perfetto_packets *p, bool all);
#endif
