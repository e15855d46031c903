/* The reading side: blocks to records, records to tables, one at a time.
 *
 * Memory depends on how many instances are live at once, never on the length of the file. Nothing in the file
 * is trusted: lengths, rows, sets and masks are checked where they are used, and a record that does not fit
 * ends its segment with STORE_LOST, as damage does. What was delivered before stays delivered.
 *
 * At the start of a segment rows and values are stated anew. Where nothing was lost in between the reader
 * keeps the tables as they are and compares, so that segments leave no trace in what callers see, except
 * INSTANCE records marked `again`. `epoch` tells which rows the present segment has confirmed. */
#include "store/store.h"

#include "store/cells.h"
#include "store/find.h"
#include "store/format.h"
#include "store/guard.h"
#include "store/scan.h"
#include "store/schema_codec.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#define STEP ((size_t)64 << 10)		     /* content decoded at a time */
#define RAW_CAP (RECORD_MAX + 32 + 2 * STEP) /* content waiting to be parsed */
#define JUNK_MAX ((uint64_t)64 << 20)	     /* before the first block: beyond it is no recording */
#define CELLS_MAX ((uint64_t)96 << 20)	     /* cells in all tables: 1.6 GB, if they were all used */

struct reader_set {
	struct table table;
	uint32_t *epoch; /* [table.cap]: 2 x segment when restated, + 1 when its first values came */
};

struct store_reader {
	struct scan scan;
	struct schema *schema;
	struct buf schema_bytes; /* as decoded, to compare a repeated schema with */
	struct reader_set *set;
	uint64_t nr_cells;

	bool known; /* file and sequence were learnt from a first block */
	uint32_t file, sequence, minor;
	bool landed;	/* the present segment is the first that is read: all that it restates is new */
	bool in_damage; /* LOST was delivered and no block has followed in order */
	bool has_item;	/* a block that waits for a LOST to be delivered before it */
	struct scan_item item;
	uint64_t item_at; /* where the last block, or the bytes that are no block, began */

	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	uint64_t content;     /* decoded from the present block */
	uint64_t block_bytes; /* its size in the file */
	uint8_t *raw;
	size_t raw_start, raw_end;

	bool in_segment, frame_ended, has_start, first_tick;
	uint32_t segment; /* counts */
	int64_t clock_ns;
	uint64_t tick;
	bool has_wall;
	int64_t wall_offset_ns;

	/* To do in the next call, once the caller has seen the record. */
	bool settle, unbind;
	uint32_t unbind_set, unbind_row;

	struct guard guard;
	const char *why; /* a record was refused; NULL: it contradicts what came before */

	struct store_health health;
	struct pairs pairs;
	struct pair pair[PAIRS_MAX];
	char keys[16384];
	char kind[256];
	uint32_t row[CELLS_ROWS_MAX];
};

/* Says why a record is refused. */
static int refuse(struct store_reader *r, const char *why)
{
	r->why = why;
	return -EBADMSG;
}

/* Counts what a record adds to what readers have to keep or to do. */
static int count(struct store_reader *r, enum guard_item item, uint64_t n)
{
	return guard_count(&r->guard, item, n, r->scan.at) < 0 ? refuse(r, guard_reason(item)) : 0;
}

/* ---- tables ---- */

/* Only live rows: the free rows between them are not touched, so that their memory is not used. */
static void copy_rows(struct table *to, const struct table *from)
{
	size_t size = from->nr_cols * sizeof(int64_t);

	for (uint32_t i = 0; i < from->nr_rows; i++) {
		size_t at = (size_t)i * from->nr_cols;

		if (from->id[i] == ROW_FREE && !from->is_touched[i])
			continue;
		memcpy(to->cell + at, from->cell + at, size);
		memcpy(to->before + at, from->before + at, size);
		to->valid[i] = from->valid[i];
		to->valid_before[i] = from->valid_before[i];
		to->id[i] = from->id[i];
	}
	for (uint32_t i = 0; i < from->nr_touched; i++) {
		to->touched[i] = from->touched[i];
		to->changed[from->touched[i]] = from->changed[from->touched[i]];
		to->is_touched[from->touched[i]] = 1;
	}
	to->nr_rows = from->nr_rows;
	to->occupancy = from->occupancy;
	to->nr_touched = from->nr_touched;
}

static int set_grow(struct store_reader *r, struct reader_set *s, uint32_t row)
{
	struct table *old = &s->table, bigger;
	uint32_t cap = old->cap, weight = old->nr_cols + 4; /* a row costs memory even without columns */
	uint32_t *epoch;

	while (cap <= row)
		cap *= 2;
	if (r->nr_cells + (uint64_t)(cap - old->cap) * weight > CELLS_MAX)
		return refuse(r, "it has more rows than can be read");
	if (count(r, GUARD_TABLES, (uint64_t)(cap - old->cap) * weight * 2 * sizeof(int64_t)) < 0)
		return -EBADMSG;
	epoch = reallocarray(s->epoch, cap, sizeof(*epoch));
	if (!epoch)
		return -ENOMEM;
	memset(epoch + old->cap, 0, (cap - old->cap) * sizeof(*epoch));
	s->epoch = epoch;
	if (table_init(&bigger, old->nr_cols, cap) < 0)
		return -ENOMEM;
	copy_rows(&bigger, old);
	r->nr_cells += (uint64_t)(cap - old->cap) * weight;
	table_release(old);
	s->table = bigger;
	assert(row < s->table.cap && s->table.nr_rows <= s->table.cap && r->nr_cells <= CELLS_MAX);
	return 0;
}

static void unbind_all(struct store_reader *r)
{
	for (uint32_t i = 0; r->set && i < r->schema->nr_sets; i++) {
		struct table *t = &r->set[i].table;

		table_settle(t);
		for (uint32_t row = t->nr_rows; row--;)
			if (row < t->nr_rows && t->id[row] != ROW_FREE)
				table_unbind(t, row);
	}
}

static int make_tables(struct store_reader *r)
{
	r->set = calloc(r->schema->nr_sets + 1, sizeof(*r->set));
	if (!r->set || guard_init(&r->guard, r->schema->nr_sets) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->schema->nr_sets; i++) {
		const struct schema_set *of = &r->schema->set[i];
		struct reader_set *s = &r->set[i];
		const uint32_t cap = 64;

		s->epoch = calloc(cap, sizeof(*s->epoch));
		if (!s->epoch || table_init(&s->table, of->nr_metrics + of->nr_spare, cap) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- records ---- */

static int deliver(struct store_record *ret, enum store_type type, int64_t time_ns)
{
	*ret = (struct store_record){.type = type, .time_ns = time_ns, .row = STORE_NO_ROW};
	return 1;
}

static void lived_until(struct store_reader *r, int64_t time_ns)
{
	r->health.last_ns = MAX(r->health.last_ns, time_ns);
}

/* Times are kept so far from the ends of their range that the difference of any two has room. */
static int64_t bounded_time(struct view *v, int64_t time_ns)
{
	if (time_ns <= -TIME_MOST || time_ns >= TIME_MOST)
		v->bad = true;
	return v->bad ? 0 : time_ns;
}

static int64_t get_time(struct store_reader *r, struct view *v)
{
	return bounded_time(v, (int64_t)((uint64_t)r->clock_ns + (uint64_t)unzigzag(view_varint(v))));
}

/* All decoders: 1 and a record for the caller, 0 and none, or a negative errno when it does not fit. */

static int on_segment(struct store_reader *r, struct view *v, struct store_record *ret)
{
	int64_t wall;

	(void)ret;
	if (r->has_start)
		return -EBADMSG;
	r->tick = view_varint(v);
	r->clock_ns = bounded_time(v, unzigzag(view_varint(v)));
	wall = unzigzag(view_varint(v));
	if (wall) {
		r->has_wall = true;
		r->wall_offset_ns = (int64_t)((uint64_t)wall - (uint64_t)r->clock_ns);
	}
	r->has_start = r->first_tick = true;
	return v->bad ? -EBADMSG : 0;
}

static int get_place(struct store_reader *r, struct view *v, struct store_record *ret)
{
	uint64_t set = view_varint(v), row = view_varint(v), id = view_varint(v);

	if (v->bad || !r->set || set >= r->schema->nr_sets || row > FORMAT_ROWS_MAX || id > UINT32_MAX || !id)
		return -EBADMSG;
	ret->set = (uint32_t)set;
	ret->row = (uint32_t)row - 1; /* 0 becomes STORE_NO_ROW */
	ret->id = (uint32_t)id;
	return 0;
}

/* An id is never used again: callers that keep instances would take each use for another instance. */
static int name_instance(struct store_reader *r, const struct store_record *rec, bool ends)
{
	int e = guard_instance(&r->guard, rec->set, rec->id, ends, r->scan.at);

	if (e == -EDQUOT)
		return refuse(r, guard_reason(GUARD_INSTANCES));
	return e == -EBADMSG ? refuse(r, "an instance has the id of one that had ended") : e;
}

/* True when the record is delivered to the caller. */
static int bind(struct store_reader *r, struct store_record *rec, uint64_t flags)
{
	struct reader_set *s = &r->set[rec->set];
	struct table *t = &s->table;
	bool same;
	int e;

	if (rec->row >= t->cap) {
		e = set_grow(r, s, rec->row);
		if (e < 0)
			return e;
	}
	same = rec->row < t->nr_rows && t->id[rec->row] == rec->id;
	if (!same)
		table_bind(t, rec->row, rec->id);
	if (s->epoch[rec->row] / 2 != r->segment || !same)
		s->epoch[rec->row] = 2 * r->segment;
	rec->again = same || flags & INSTANCE_AGAIN;
	return !(same && flags & INSTANCE_SHORTENED);
}

static int on_instance(struct store_reader *r, struct view *v, struct store_record *ret)
{
	uint64_t flags;
	int e;

	deliver(ret, STORE_INSTANCE, 0);
	e = get_place(r, v, ret);
	if (e < 0)
		return e;
	flags = view_varint(v);
	ret->time_ns = get_time(r, v);
	e = pairs_decode(&r->pairs, v);
	if (e < 0)
		return e;
	e = name_instance(r, ret, false);
	if (e < 0)
		return e;
	lived_until(r, ret->time_ns);
	ret->pairs = &r->pairs;
	ret->again = flags & INSTANCE_AGAIN;
	return ret->row == STORE_NO_ROW ? 1 : bind(r, ret, flags);
}

static int on_gone(struct store_reader *r, struct view *v, struct store_record *ret)
{
	const struct table *t;
	int e;

	deliver(ret, STORE_GONE, 0);
	e = get_place(r, v, ret);
	if (e < 0)
		return e;
	ret->time_ns = get_time(r, v);
	e = pairs_decode(&r->pairs, v);
	if (e < 0)
		return e;
	t = &r->set[ret->set].table;
	if (ret->row != STORE_NO_ROW && (ret->row >= t->nr_rows || t->id[ret->row] != ret->id))
		return -EBADMSG;
	e = name_instance(r, ret, true);
	if (e < 0)
		return e;
	ret->pairs = &r->pairs;
	lived_until(r, ret->time_ns);
	if (ret->row == STORE_NO_ROW)
		return 1;
	r->unbind = true;
	r->unbind_set = ret->set;
	r->unbind_row = ret->row;
	return 1;
}

static int on_event(struct store_reader *r, struct view *v, struct store_record *ret)
{
	const uint8_t *kind;
	size_t len;
	int e;

	deliver(ret, STORE_EVENT, get_time(r, v));
	kind = view_bytes(v, &len);
	e = pairs_decode(&r->pairs, v);
	if (e >= 0)
		e = count(r, GUARD_EVENTS, 1);
	if (e < 0)
		return e;
	len = MIN(len, sizeof(r->kind) - 1);
	memcpy(r->kind, kind, len);
	r->kind[len] = 0;
	ret->kind = r->kind;
	ret->pairs = &r->pairs;
	lived_until(r, ret->time_ns);
	return 1;
}

/* A caller that read the segments before this one knows of the event. */
static int on_open(struct store_reader *r, struct view *v, struct store_record *ret)
{
	return r->landed ? on_event(r, v, ret) : 0;
}

/* As table_settle(), of cells that are known to have changed: most rows have few of these. */
static void settle(struct table *t)
{
	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];
		size_t at = (size_t)row * t->nr_cols;

		for (uint64_t rest = t->changed[row]; rest; rest &= rest - 1) {
			size_t cell = at + (size_t)__builtin_ctzll(rest);

			t->before[cell] = t->cell[cell];
		}
		t->valid_before[row] = t->valid[row];
		t->is_touched[row] = 0;
	}
	t->nr_touched = 0;
	t->delay_ns = 0;
}

/* The first values of a row in a segment are against zero; `before` keeps what the row held. */
static void clear_row(struct reader_set *s, uint32_t row)
{
	struct table *t = &s->table;

	memset(table_row(t, row), 0, t->nr_cols * sizeof(int64_t));
	t->valid[row] = 0;
}

static void touch_if_changed(struct table *t, uint32_t row)
{
	const int64_t *now = table_row(t, row), *before = t->before + (size_t)row * t->nr_cols;

	t->changed[row] = t->valid[row] ^ t->valid_before[row];
	for (uint32_t i = 0; i < t->nr_cols; i++)
		t->changed[row] |= (uint64_t)(now[i] != before[i]) << i;
	if (t->changed[row])
		table_touch(t, row);
}

static int on_cells(struct store_reader *r, struct view *v, struct store_record *ret)
{
	uint64_t set = view_varint(v), flags;
	struct reader_set *s;
	int nr, e;

	(void)ret;
	if (v->bad || !r->set || set >= r->schema->nr_sets)
		return -EBADMSG;
	s = &r->set[set];
	nr = cells_decode_rows(v, &s->table, r->row, &flags);
	if (nr < 0)
		return nr;
	for (int i = 0; i < nr; i++) {
		uint32_t row = r->row[i];

		if (!r->first_tick) {
			if (!s->table.is_touched[row])
				s->table.changed[row] = 0;
			table_touch(&s->table, row);
			continue;
		}
		if (s->epoch[row] != 2 * r->segment)
			return -EBADMSG; /* not restated, or twice */
		s->epoch[row]++;
		clear_row(s, row);
	}
	e = cells_decode(v, &s->table, r->row, (uint32_t)nr, flags);
	for (int i = 0; r->first_tick && i < nr; i++)
		touch_if_changed(&s->table, r->row[i]);
	return e;
}

/* After the first tick of a segment: instances that were not restated are gone, rows that got no values have
 * none. */
static void confirm(struct store_reader *r, struct reader_set *s)
{
	struct table *t = &s->table;

	for (uint32_t row = t->nr_rows; row--;) {
		if (row >= t->nr_rows || t->id[row] == ROW_FREE || s->epoch[row] == 2 * r->segment + 1)
			continue;
		if (s->epoch[row] != 2 * r->segment) {
			table_unbind(t, row);
			continue;
		}
		clear_row(s, row);
		touch_if_changed(t, row);
	}
}

/* Takes rows that were freed after they were written out of the list. */
static void forget_freed(struct table *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_touched; i++) {
		uint32_t row = t->touched[i];

		if (row < t->nr_rows && t->id[row] != ROW_FREE)
			t->touched[nr++] = row;
		else
			t->is_touched[row] = 0;
	}
	t->nr_touched = nr;
}

static int read_delays(struct store_reader *r, struct view *v)
{
	uint32_t nr_sets = r->set ? r->schema->nr_sets : 0;
	uint64_t nr;

	for (uint32_t i = 0; i < nr_sets; i++)
		r->set[i].table.delay_ns = 0;
	nr = v->p < v->end ? view_varint(v) : 0;
	if (nr > nr_sets)
		return -EBADMSG;
	while (nr--) {
		uint64_t set = view_varint(v), delay = view_varint(v);

		if (v->bad || set >= nr_sets || delay > DELAY_MAX_NS)
			return -EBADMSG;
		r->set[set].table.delay_ns = (int64_t)delay;
	}
	return 0;
}

static int on_tick(struct store_reader *r, struct view *v, struct store_record *ret)
{
	uint64_t at;

	r->tick += view_varint(v);
	r->clock_ns = get_time(r, v);
	if (v->bad || read_delays(r, v) < 0)
		return -EBADMSG;
	at = v->p < v->end ? view_varint(v) : 0;
	if (v->bad || count(r, GUARD_TICKS, 1) < 0)
		return -EBADMSG;
	for (uint32_t i = 0; r->set && i < r->schema->nr_sets; i++) {
		if (r->first_tick)
			confirm(r, &r->set[i]);
		forget_freed(&r->set[i].table);
	}
	r->first_tick = r->landed = false;
	r->settle = true;
	r->health.ticks++;
	lived_until(r, r->clock_ns);
	deliver(ret, STORE_TICK, r->clock_ns);
	ret->tick = r->tick;
	ret->at = (unsigned)at;
	return 1;
}

typedef int record_fn(struct store_reader *r, struct view *body, struct store_record *ret);

static record_fn *const on_record[] = {
	[RECORD_SEGMENT] = on_segment,
	[RECORD_INSTANCE] = on_instance,
	[RECORD_GONE] = on_gone,
	[RECORD_EVENT] = on_event,
	[RECORD_CELLS] = on_cells,
	[RECORD_TICK] = on_tick,
	[RECORD_OPEN] = on_open,
};

/* 1 and a record, 0 when more content is needed, or a negative errno. */
static int next_record(struct store_reader *r, struct store_record *ret)
{
	for (;;) {
		size_t have = r->raw_end - r->raw_start;
		struct view v = view_of(r->raw + r->raw_start, have);
		uint64_t type = view_varint(&v), size = view_varint(&v);

		if (v.bad)
			return have < 20 ? 0 : -EBADMSG;
		if (!type || size > RECORD_MAX || (!r->has_start && type != RECORD_SEGMENT))
			return -EBADMSG;
		if ((size_t)(v.end - v.p) < size)
			return 0;
		v.end = v.p + size;
		r->raw_start = (size_t)(v.end - r->raw);
		if (type >= ARRAY_SIZE(on_record))
			continue;
		int e = on_record[type](r, &v, ret);
		if (e)
			return e;
	}
}

/* ---- blocks ---- */

/* All that follows up to the next segment is of no use. */
static int lose(struct store_reader *r, uint64_t bytes, const char *reason, struct store_record *ret)
{
	bool first = !r->in_damage;

	r->health.lost_bytes += bytes;
	r->health.complete = false;
	r->in_segment = false;
	r->in = (ZSTD_inBuffer){0};
	r->raw_start = r->raw_end = 0;
	r->settle = r->unbind = false;
	r->in_damage = true;
	unbind_all(r);
	if (!first)
		return 0;
	r->health.damaged++;
	deliver(ret, STORE_LOST, r->health.last_ns);
	ret->lost_bytes = bytes;
	ret->lost_at = r->item_at;
	ret->reason = reason;
	return 1;
}

/* A block that was counted as good is of no use. */
static int lose_good(struct store_reader *r, uint64_t bytes, const char *reason, struct store_record *ret)
{
	r->health.good_bytes -= bytes;
	return lose(r, bytes, reason, ret);
}

static int take_schema(struct store_reader *r, const struct scan_item *item, struct store_record *ret)
{
	struct buf bytes;
	int e;

	buf_init(&bytes, SCHEMA_MAX);
	e = schema_inflate(item->payload, item->header.length, &bytes);
	if (e == 0 && r->schema) {
		bool same = bytes.len == r->schema_bytes.len &&
			!memcmp(bytes.data, r->schema_bytes.data, bytes.len);

		buf_release(&bytes);
		return same ? 0
			    : lose_good(r, item->size,
				      "a second description of the columns contradicts the first", ret);
	}
	if (e == 0)
		e = schema_decode(bytes.data, bytes.len, &r->schema);
	if (e == 0)
		e = make_tables(r);
	if (e < 0) {
		buf_release(&bytes);
		return e == -ENOMEM
			? e
			: lose_good(r, item->size, "the description of the columns is damaged", ret);
	}
	r->schema_bytes = bytes;
	r->health.has_schema = true;
	return deliver(ret, STORE_SCHEMA, r->health.last_ns);
}

static int take_pairs(struct store_reader *r, const struct scan_item *item, struct store_record *ret)
{
	struct view v = view_of(item->payload, item->header.length);
	bool summary = item->header.type == BLOCK_SUMMARY;

	if (pairs_decode(&r->pairs, &v) < 0)
		return lose_good(r, item->size, "a block of metadata cannot be understood", ret);
	r->health.complete = summary;
	deliver(ret, summary ? STORE_SUMMARY : STORE_META, r->health.last_ns);
	ret->pairs = &r->pairs;
	return 1;
}

static int take_segment(struct store_reader *r, const struct scan_item *item, struct store_record *ret)
{
	if (item->header.flags & BLOCK_FIRST) {
		if (r->in_segment && r->raw_end > r->raw_start) {
			r->has_item = true;
			r->item = *item;
			r->sequence = item->header.sequence;
			r->health.good_bytes -= item->size;
			return lose(r, 0, "a segment ends inside a record", ret);
		}
		ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
		r->in_segment = true;
		r->frame_ended = r->has_start = false;
		r->raw_start = r->raw_end = 0;
		r->segment++;
	}
	if (!r->in_segment) { /* its beginning is lost, which was reported */
		r->health.good_bytes -= item->size;
		r->health.lost_bytes += item->size;
		return 0;
	}
	r->in = (ZSTD_inBuffer){item->payload, item->header.length, 0};
	r->content = 0;
	r->block_bytes = item->size;
	return 0;
}

static int take_block(struct store_reader *r, const struct scan_item *item, struct store_record *ret)
{
	const struct block_header *h = &item->header;
	uint32_t ahead;

	if (!r->known)
		r->file = h->file;
	r->known = true;
	ahead = h->sequence - r->sequence;
	if (h->file != r->file)
		return lose(r, item->size, "another recording is mixed in", ret);
	if (ahead > INT32_MAX)
		return lose(r, item->size, "a block is repeated or out of order", ret);
	if (ahead && !r->in_damage) {
		r->has_item = true;
		r->item = *item;
		return lose(r, 0, "blocks are missing", ret);
	}
	r->in_damage = false;
	r->sequence = h->sequence + 1;
	r->health.good_bytes += item->size;
	r->health.complete = false;
	if (h->type == BLOCK_START && h->length >= sizeof(r->minor))
		r->minor = get_u32(item->payload);
	if (h->type == BLOCK_SEGMENT)
		return take_segment(r, item, ret);
	if (h->type == BLOCK_SCHEMA)
		return take_schema(r, item, ret);
	if (h->type == BLOCK_META || h->type == BLOCK_SUMMARY)
		return take_pairs(r, item, ret);
	return 0;
}

/* More content from the present block: 1 when there is some, 0 when the block is used up. */
static int decode_more(struct store_reader *r)
{
	ZSTD_outBuffer out;
	size_t left;

	if (r->raw_start) {
		memmove(r->raw, r->raw + r->raw_start, r->raw_end - r->raw_start);
		r->raw_end -= r->raw_start;
		r->raw_start = 0;
	}
	if (!r->in.src)
		return 0;
	if (r->frame_ended && r->in.pos < r->in.size)
		return -EBADMSG;
	if (r->frame_ended) {
		r->in = (ZSTD_inBuffer){0};
		return 0;
	}
	out = (ZSTD_outBuffer){r->raw, MIN(r->raw_end + STEP, RAW_CAP), r->raw_end};
	left = ZSTD_decompressStream(r->zstd, &out, &r->in);
	if (ZSTD_isError(left))
		return -EBADMSG;
	r->frame_ended = left == 0;
	r->content += out.pos - r->raw_end;
	if (r->content > BLOCK_CONTENT_MAX)
		return refuse(r, "a block unpacks to more than a block may hold");
	if (count(r, GUARD_CONTENT, out.pos - r->raw_end) < 0)
		return -EBADMSG;
	if (out.pos == r->raw_end && r->in.pos == r->in.size) {
		r->in = (ZSTD_inBuffer){0};
		return 0;
	}
	r->raw_end = out.pos;
	return 1;
}

static int next_block(struct store_reader *r, struct store_record *ret, bool *ret_end)
{
	struct scan_item item;
	int e;

	if (r->has_item) {
		item = r->item;
		r->has_item = false;
		return take_block(r, &item, ret);
	}
	e = scan_next(&r->scan, &item);
	if (e == SCAN_BLOCK || e == SCAN_DAMAGE)
		r->item_at = item.offset;
	if (e == SCAN_BLOCK)
		return take_block(r, &item, ret);
	if (e == SCAN_DAMAGE)
		return lose(r, item.size,
			item.known ? "a block is damaged" : "there are bytes that are no block", ret);
	*ret_end = true;
	return e;
}

/* Does what had to wait until the caller was done with the last record. */
static void clean_up(struct store_reader *r)
{
	if (r->unbind)
		table_unbind(&r->set[r->unbind_set].table, r->unbind_row);
	for (uint32_t i = 0; r->settle && r->set && i < r->schema->nr_sets; i++)
		settle(&r->set[i].table);
	r->unbind = r->settle = false;
}

int store_next(struct store_reader *r, struct store_record *ret)
{
	bool end = false;

	clean_up(r);
	r->why = NULL;
	while (!end) {
		int e = r->in_segment ? next_record(r, ret) : 0;

		if (e == 0 && r->in_segment)
			e = decode_more(r);
		else if (e > 0)
			return e;
		if (e == -ENOMEM)
			return e;
		if (e < 0) {
			return lose_good(r, r->block_bytes,
				r->why		    ? r->why
					: r->schema ? "a segment contradicts itself"
						    : "the description of the columns is missing",
				ret);
		}
		if (e > 0)
			continue;
		e = next_block(r, ret, &end);
		if (e)
			return e;
	}
	return 0;
}

/* ---- passing over ---- */

/* Drops all state of the present segment: the next block begins a segment and has the expected sequence.
 */
static void land(struct store_reader *r, const struct segment_place *place)
{
	clean_up(r);
	unbind_all(r);
	r->in_segment = r->has_item = r->in_damage = false;
	r->in = (ZSTD_inBuffer){0};
	r->raw_start = r->raw_end = 0;
	r->health.complete = false;
	r->landed = true;
	r->sequence = place->sequence;
	scan_go(&r->scan, place->offset);
}

static int find_segment(const struct store_reader *r, int64_t time_ns, struct segment_place *ret)
{
	struct stat st;

	if (!r->known || !r->set)
		return 0;
	if (fstat(r->scan.fd, &st) < 0)
		return -errno;
	return segment_find(r->scan.fd, r->file, r->scan.at, (uint64_t)MAX(st.st_size, 0), time_ns, ret);
}

int store_segment(const struct store_reader *r, int64_t time_ns, int64_t *ret_start_ns)
{
	struct segment_place place = {0};
	int e = find_segment(r, time_ns, &place);

	*ret_start_ns = place.time_ns;
	return e;
}

int store_seek(struct store_reader *r, int64_t time_ns)
{
	struct segment_place place;
	int e = find_segment(r, time_ns, &place);

	if (e > 0)
		land(r, &place);
	return e;
}

int store_seek_end(struct store_reader *r)
{
	struct segment_place place;
	struct stat st;
	int e;

	if (!r->known)
		return 0;
	if (fstat(r->scan.fd, &st) < 0)
		return -errno;
	e = summary_find(r->scan.fd, r->file, r->scan.at, (uint64_t)MAX(st.st_size, 0), &place);
	if (e > 0)
		land(r, &place);
	return e;
}

/* ---- the rest of the interface ---- */

/* At least one whole header, or the file is no recording. The search is bounded, since a device may have no
 * end. */
static int recognize(struct scan *s)
{
	struct scan_item item = {0};
	struct stat st;
	int e;

	if (fstat(s->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
	s->patience = JUNK_MAX;
	do {
		e = scan_next(s, &item);
	} while (e == SCAN_DAMAGE && !item.known);
	if (e < 0)
		return e;
	if (e == SCAN_END && (s->tail < BLOCK_HEADER || (s->tail_damaged && !item.known)))
		return -EBADMSG;
	scan_go(s, 0);
	s->patience = 0;
	return 0;
}

int store_open_fd(int fd, struct store_reader **ret)
{
	struct store_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r) {
		close(fd);
		return -ENOMEM;
	}
	pairs_init(&r->pairs, r->pair, PAIRS_MAX, r->keys, sizeof(r->keys));
	buf_init(&r->schema_bytes, SCHEMA_MAX);
	e = scan_init(&r->scan, fd);
	if (e == 0)
		e = recognize(&r->scan);
	if (e == 0) {
		r->raw = malloc(RAW_CAP);
		r->zstd = ZSTD_createDCtx();
		if (!r->raw || !r->zstd)
			e = -ENOMEM;
	}
	if (e < 0) {
		store_close(r);
		return e;
	}
	ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	*ret = r;
	return 0;
}

int store_open(const char *path, struct store_reader **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : store_open_fd(fd, ret);
}

bool store_rest(struct store_reader *r, bool ended)
{
	if (r->has_item || r->in.src || r->raw_end > r->raw_start || scan_rest(&r->scan) < 0)
		return false;
	clean_up(r);
	free(r->raw);
	r->raw = NULL;
	r->raw_start = r->raw_end = 0;
	if (ended) {
		ZSTD_freeDCtx(r->zstd);
		r->zstd = NULL;
	}
	return true;
}

int store_wake(struct store_reader *r, const char *path)
{
	if (!r->raw && r->zstd)
		r->raw = malloc(RAW_CAP);
	return r->raw ? scan_wake(&r->scan, path) : -ENOMEM;
}

struct store_reader *store_close(struct store_reader *r)
{
	if (!r)
		return NULL;
	for (uint32_t i = 0; r->set && i < r->schema->nr_sets; i++) {
		table_release(&r->set[i].table);
		free(r->set[i].epoch);
	}
	free(r->set);
	guard_release(&r->guard);
	schema_free(r->schema);
	buf_release(&r->schema_bytes);
	ZSTD_freeDCtx(r->zstd);
	scan_release(&r->scan);
	free(r->raw);
	free(r);
	return NULL;
}

const struct schema *store_reader_schema(const struct store_reader *r)
{
	return r->set ? r->schema : NULL;
}

int store_reader_name(
	struct store_reader *r, uint32_t set, const char *name, const char *help, enum metric_unit unit)
{
	return schema_name_metric(&r->schema->set[set], name, help, unit);
}

struct table *store_reader_table(struct store_reader *r, uint32_t set)
{
	return r->set && set < r->schema->nr_sets ? &r->set[set].table : NULL;
}

uint64_t store_reader_at(const struct store_reader *r)
{
	return r->scan.at;
}

uint64_t store_reader_seen(const struct store_reader *r)
{
	return r->scan.at + r->scan.tail;
}

bool store_reader_complete(const struct store_reader *r)
{
	return r->health.complete && !r->scan.tail;
}

bool store_reader_restates(const struct store_reader *r)
{
	return r->minor >= MINOR_RESTATES_EVENTS;
}

int store_reader_fd(const struct store_reader *r)
{
	return r->scan.fd;
}

bool store_reader_wall(const struct store_reader *r, int64_t *ret_offset_ns)
{
	if (r->has_wall)
		*ret_offset_ns = r->wall_offset_ns;
	return r->has_wall;
}

void store_health(const struct store_reader *r, struct store_health *ret)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	*ret = r->health;
	ret->bytes = r->scan.at + r->scan.tail;
	if (r->scan.tail_damaged) {
		ret->lost_bytes += r->scan.tail;
		ret->damaged += !r->in_damage;
	} else {
		ret->tail_bytes = r->scan.tail;
	}
	if (r->scan.tail)
		ret->complete = false;
	ret->writing = fcntl(r->scan.fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
