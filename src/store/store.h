/* The recording: an append-only file with one writer and any number of readers, also while it is written.
 * docs/format.md is the specification; nothing here knows collectors.
 *
 * Times are ns of the recording's own clock: CLOCK_MONOTONIC, 0 at start. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/pairs.h"
#include "metric/schema.h"
#include "metric/table.h"

#define STORE_NO_ROW UINT32_MAX

/* ---- writing: no allocation after store_create() and store_schema() ---- */

struct store_writer;

/* What is done when a file of this name exists. Both: it is replaced, unless a recorder is writing to it. */
enum store_naming {
	STORE_NEW = 0,	   /* -EEXIST */
	STORE_REPLACE = 1, /* a regular file or a link is replaced, never anything else: -EEXIST */
	STORE_NUMBER = 2,  /* "-2", "-3" and so on, before the ending ".tacho": see store_path() */
};

/* The file is made with mode 0600 and is a valid, empty recording from the first moment on. */
int store_create(const char *path, unsigned naming, struct store_writer **ret);
/* Metadata: may be written at any time; a later value of a key replaces the earlier. Written at once. */
int store_meta(struct store_writer *w, const struct pairs *meta);
/* The same, written with the next flush. */
int store_note(struct store_writer *w, const struct pairs *meta);
/* The sets that are known so far: records of them may come from now on. They wait in memory until the schema
 * is written, which may describe more sets behind these. May be called again. */
int store_sets(struct store_writer *w, const struct schema *schema);
/* While there is time: packs the schema, for the case that no more sets come before it is written. */
void store_prepare(struct store_writer *w, const struct schema *schema);
/* Once. Written at once, unless records were held back: these follow it, and reach the file with the next
 * flush. */
int store_schema(struct store_writer *w, const struct schema *schema);

/* An instance appears in a row of set's table, or (same id) its identity changed. row STORE_NO_ROW: it was
 * known only by name (a process that ended before its first sample). */
void store_instance(struct store_writer *w, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *identity);
/* It is gone; `last` is its final accounting. row STORE_NO_ROW: it never had one. */
void store_gone(struct store_writer *w, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *last);
void store_event(struct store_writer *w, int64_t time_ns, const char *kind, const struct pairs *data);
/* One tick: what changed in the touched rows of all tables (an array of nr_sets) since table_settle(). Rows
 * whose instance was not announced by store_instance() are left out. A touched row in which nothing changed
 * is not written: the reader does not show it as touched. `at`: a mask of enum tick_at. */
void store_tick(
	struct store_writer *w, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table);

/* What the wall clock (ns since 1970) says at an instant of the recording's clock: noted at the start of the
 * segments that follow. */
void store_wall(struct store_writer *w, int64_t time_ns, int64_t wall_ns);

/* Everything so far reaches the file. On a full disk (-ENOSPC, -EDQUOT, -EFBIG) what is pending stays in
 * memory up to a bound and is written by a later flush; past the bound whole segments are dropped and the
 * recording says so. */
int store_flush(struct store_writer *w);
/* Marks the recording complete and closes it. Where the last ticks could not be written, `write_error` is
 * added to the summary, and ticks are given up for it if need be; where others are missing, `gap_ticks`.
 * Frees w in any case. */
int store_finish(struct store_writer *w, struct pairs *summary);
/* For the torture tests and exec failures: frees without another write. */
struct store_writer *store_abandon(struct store_writer *w);

uint64_t store_bytes(const struct store_writer *w); /* in the file so far */
const char *store_path(const struct store_writer *w);

/* ---- reading ---- */

enum store_type {
	STORE_META,
	STORE_SCHEMA,	/* r's schema and tables are there from now on */
	STORE_INSTANCE, /* bound to its row in the table */
	STORE_GONE,	/* delivered before the row is unbound: its last cells can be read */
	STORE_EVENT,
	STORE_TICK, /* touched rows of the tables hold new cells, `before` the old ones */
	STORE_LOST, /* damage or a gap was skipped: all rows of all tables are unbound, instances of the next
		     * segment appear anew under their old ids */
	STORE_SUMMARY, /* the recording is complete */
};

struct store_record {
	enum store_type type;
	int64_t time_ns;
	uint64_t tick; /* number */
	unsigned at;   /* TICK: a mask of enum tick_at */
	uint32_t set, row, id;
	/* INSTANCE: known before (its identity changed, or it was restated at a segment's start). After LOST
	 * all live instances are restated: one that began in the gap is marked `again` though it is new to
	 * the caller, and one that is not restated before the next tick is gone. */
	bool again;
	const char *kind;	   /* EVENT */
	const struct pairs *pairs; /* META, INSTANCE, GONE, EVENT, SUMMARY; valid until the next call */
	uint64_t lost_bytes;	   /* LOST: known so far; store_health() has the sum in the end */
	uint64_t lost_at;	   /* LOST: byte of the file where the block begins */
	const char *reason;	   /* LOST: for people */
};

struct store_reader;

/* A recording that unpacks to more than so many times its size, or has more rows, instances, events or ticks
 * than a file of its size can hold (store/guard.h), is not read from there on: STORE_LOST says why. Holds for
 * all readers of this process; 0: no limit. */
#define STORE_EXPANSION 1024
void store_set_expansion(uint64_t times);

/* -ENOENT..., or -EBADMSG when the file is no recording. */
int store_open(const char *path, struct store_reader **ret);
int store_open_fd(int fd, struct store_reader **ret); /* takes the descriptor, also when it fails */
struct store_reader *store_close(struct store_reader *r);
/* 1 and a record; 0 when there is no more for now (a file still being written may give more later).
 * Never fails on damage: it skips and says so with STORE_LOST. <0 only when the file cannot be read. */
int store_next(struct store_reader *r, struct store_record *ret);

/* For those who read many recordings, each now and then: when store_next() has returned 0, gives back the
 * descriptor and the buffers (`ended`: no more is read). False: it is in the midst of something, and nothing
 * was done. Before it is read on, or anything is asked that needs the file, it is woken: -ESTALE when another
 * file has the name now. */
bool store_rest(struct store_reader *r, bool ended);
int store_wake(struct store_reader *r, const char *path);

/* Goes on at the last segment that begins neither before what was read so far nor after the time (INT64_MAX:
 * the last that there is), and does not read what lies between: metadata and damage in it are passed over
 * without a record. Instances that are live then are restated, as after STORE_LOST; nothing is known of the
 * tick before. 1; 0: there is no such segment, or no schema yet, and nothing was done; a negative errno. */
int store_seek(struct store_reader *r, int64_t time_ns);
/* The same without going there: when that segment begins. */
int store_segment(const struct store_reader *r, int64_t time_ns, int64_t *ret_start_ns);

/* Goes on at the end mark: 1; 0: there is none, and nothing was done; a negative errno. */
int store_seek_end(struct store_reader *r);

/* Where columns have no names yet (schema_set.nr_spare): the name of the next. -ENOSPC: there is none. */
int store_reader_name(
	struct store_reader *r, uint32_t set, const char *name, const char *help, enum metric_unit unit);
const struct schema *store_reader_schema(const struct store_reader *r); /* NULL before STORE_SCHEMA */
struct table *store_reader_table(struct store_reader *r, uint32_t set);
uint64_t store_reader_at(const struct store_reader *r);	  /* bytes of the file that were read */
uint64_t store_reader_seen(const struct store_reader *r); /* with those of an unfinished block */
bool store_reader_complete(const struct store_reader *r); /* as in store_health */
/* After store_seek() what has begun before and not ended (EVENT "….begin") is delivered before the first tick
 * there, with the time of its beginning. Older recordings do not have that. */
bool store_reader_restates(const struct store_reader *r);
int store_reader_fd(const struct store_reader *r); /* the reader's */
/* Wall clock minus the recording's clock, as last noted; false when the recording does not say. */
bool store_reader_wall(const struct store_reader *r, int64_t *ret_offset_ns);

/* What `tacho check` reports; final when store_next() has returned 0. */
struct store_health {
	bool complete;	     /* a summary was read and nothing follows */
	uint64_t bytes;	     /* of the file */
	uint64_t good_bytes; /* in whole blocks */
	uint64_t lost_bytes; /* in damaged ones */
	uint64_t tail_bytes; /* of an unfinished last block */
	uint32_t damaged;    /* places */
	uint64_t ticks;
	int64_t last_ns; /* time of the last record */
	bool has_schema;
	bool writing; /* a recorder holds the file open (false also where the file system knows no locks) */
};

void store_health(const struct store_reader *r, struct store_health *ret);
#endif
