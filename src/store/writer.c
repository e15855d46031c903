/* The writing side: records into segments, segments into a zstd stream, the stream into blocks.
 *
 * A segment is one zstd frame that decodes by itself: it begins with its time and with the instances of all
 * rows, and its first tick has absolute values. Flushing ends a zstd block, not the frame, so the window
 * keeps working across flushes and a flush costs a few bytes. How long a segment lasts is a compromise: a
 * damaged block costs the rest of its segment, and an opening costs about 80 bytes a process. The second
 * matters only where little else is written, hence the rule that a segment is prolonged (to half an hour at
 * most) until its opening is less than a twentieth of it.
 *
 * When the disk is full, blocks wait (append.c) up to a bound. Past it the segment is given up, ticks are
 * counted and thrown away, and when everything that waited has reached the file a new segment begins, with a
 * jump of the sequence before it and an event "gap" in it. The oldest part is kept and not the newest,
 * because it is written already in part and because a segment is worth nothing without its beginning.
 *
 * Until the schema is written, records are held back in memory as they are: a job of milliseconds ends before
 * most of the sets are known, and its file then describes only those that it has.
 *
 * After store_schema() nothing is allocated: zstd gets its memory from a first, useless compression, and all
 * else lies in mappings that become real as they are filled. */
#include "store/limits.h"

#include "store/append.h"
#include "store/cells.h"
#include "store/identity.h"
#include "store/open_events.h"
#include "store/schema_codec.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#define INDEX_MAX 65536
#define SHORT_VALUE 256
#define HEAD 16 /* room before a record's body for its type and length */
#define BLOCK_RAW (BLOCK_CONTENT_MAX / 2)
#define HELD_MAX ((size_t)8 << 20) /* records before the schema; more are lost, and counted as lost */
#define HELD_LEAST ((size_t)128 << 10)

const struct store_limits store_limits_default = {
	.segment_ns = 60 * NSEC_PER_SEC,
	.segment_bytes = 1 << 20,
	.prolong = 20,
	.segment_max_ns = 30 * 60 * NSEC_PER_SEC,
	.block_bytes = 256 << 10,
	.pending_bytes = 4 << 20,
};

struct index_entry {
	uint64_t offset;
	int64_t time_ns;
};

struct store_writer {
	struct append out;
	struct store_limits limits;
	ZSTD_CCtx *zstd;
	uint8_t *scratch; /* HEAD, then the body of the record in the making */
	struct identities live;
	uint32_t nr_sets;
	uint8_t nr_cols[SETS_MAX];
	bool has_schema;
	uint8_t *prepared; /* the schema, packed, as long as it has no more sets than these; NULL: none */
	size_t prepared_size;
	uint32_t prepared_sets;
	uint8_t *held; /* records that wait for the schema; NULL: none yet */
	size_t nr_held, held_size;

	size_t filled;	     /* payload bytes in the open block */
	size_t raw;	     /* content bytes since the last block */
	bool first_block;    /* the open block is its segment's first */
	bool unflushed;	     /* zstd may hold something back */
	uint64_t open_ticks; /* in the open block */

	bool in_segment, first_tick;
	int64_t start_ns, clock_ns;
	uint64_t segment_bytes, opening_bytes;

	uint64_t tick;
	int64_t wall_ns, wall_at_ns;
	bool paused; /* the disk was full for too long */
	uint64_t lost_ticks, lost_records;
	int64_t lost_since_ns;
	bool no_memory;	    /* that is why they were lost, and not the disk */
	uint64_t gap_ticks; /* lost in all gaps that are noted in the file */

	struct open_events open;
	struct index_entry *index;
	uint32_t nr_index, index_step, index_skip;
	struct cells cells;
};

static void *reserve(size_t size)
{
	void *m =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

/* Small windows and tables: the recorder's memory is counted in single megabytes, and columns of small
 * numbers gain next to nothing from larger ones. */
static int zstd_set_up(struct store_writer *w)
{
	/* clang-format off */
	static const struct { ZSTD_cParameter what; int value; } parameter[] = {
		{ZSTD_c_compressionLevel, 1},
		{ZSTD_c_strategy, ZSTD_dfast},
		{ZSTD_c_windowLog, 16},
		{ZSTD_c_hashLog, 12},
		{ZSTD_c_chainLog, 12},
		{ZSTD_c_minMatch, 5},
		{ZSTD_c_contentSizeFlag, 0},
	};
	/* clang-format on */
	ZSTD_inBuffer in = {"warm", 4, 0};
	ZSTD_outBuffer out = {w->scratch, 1024, 0};

	w->zstd = ZSTD_createCCtx();
	if (!w->zstd)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(parameter); i++)
		ZSTD_CCtx_setParameter(w->zstd, parameter[i].what, parameter[i].value);
	if (ZSTD_isError(ZSTD_compressStream2(w->zstd, &out, &in, ZSTD_e_flush)))
		return -ENOMEM;
	ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	return 0;
}

int store_create(const char *path, unsigned naming, struct store_writer **ret)
{
	struct store_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->limits = store_limits_default;
	w->index_step = 1;
	w->out.fd = -1;
	w->scratch = reserve(HEAD + RECORD_MAX);
	w->index = reserve(INDEX_MAX * sizeof(*w->index));
	r = w->scratch && w->index ? zstd_set_up(w) : -ENOMEM;
	if (r == 0) /* the last step: a file that has its name stays */
		r = append_open(&w->out, path, naming);
	if (r < 0) {
		store_abandon(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct store_writer *store_abandon(struct store_writer *w)
{
	if (!w)
		return NULL;
	ZSTD_freeCCtx(w->zstd);
	identities_release(&w->live);
	append_close(&w->out);
	if (w->scratch)
		munmap(w->scratch, HEAD + RECORD_MAX);
	if (w->index)
		munmap(w->index, INDEX_MAX * sizeof(*w->index));
	if (w->held)
		munmap(w->held, w->held_size);
	free(w->prepared);
	free(w);
	return NULL;
}

void store_set_limits(struct store_writer *w, const struct store_limits *limits)
{
	w->limits = *limits;
	w->out.bound = MIN(limits->pending_bytes, store_limits_default.pending_bytes);
}

/* ---- from records to blocks ---- */

/* A full index keeps every second entry: coarse, and bounded. */
static void index_add(struct store_writer *w, uint64_t offset)
{
	if (w->index_skip) {
		w->index_skip--;
		return;
	}
	if (w->nr_index == INDEX_MAX) {
		for (uint32_t i = 0; i < INDEX_MAX / 2; i++)
			w->index[i] = w->index[2 * i];
		w->nr_index /= 2;
		w->index_step *= 2;
	}
	assert(w->nr_index < INDEX_MAX && w->index_step);
	w->index[w->nr_index++] = (struct index_entry){offset, w->start_ns};
	w->index_skip = w->index_step - 1;
}

static void close_block(struct store_writer *w)
{
	uint64_t offset;

	if (!w->filled)
		return;
	offset = append_block(&w->out, BLOCK_SEGMENT, w->first_block ? BLOCK_FIRST : 0, w->filled);
	if (w->first_block)
		index_add(w, offset);
	w->first_block = false;
	w->filled = 0;
	w->raw = 0;
	w->open_ticks = 0;
}

/* Too much waits for the disk: gives the segment up. Its whole blocks stay readable. */
static void pause_writing(struct store_writer *w)
{
	ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	w->filled = w->raw = 0;
	w->unflushed = w->in_segment = false;
	w->paused = true;
	w->lost_ticks = w->open_ticks;
	w->lost_records = 1; /* at least the record that did not fit */
	w->lost_since_ns = w->clock_ns;
	w->no_memory = false;
	w->open_ticks = 0;
	w->out.sequence++;
}

static bool compress(struct store_writer *w, const void *data, size_t size, ZSTD_EndDirective mode)
{
	ZSTD_inBuffer in = {data, size, 0};
	bool done = false;

	while (!done) {
		size_t room, left;
		ZSTD_outBuffer out = {append_payload(&w->out, &room), 0, w->filled};

		out.size = room;
		left = room > w->filled ? ZSTD_compressStream2(w->zstd, &out, &in, mode) : 0;
		if (room <= w->filled || ZSTD_isError(left)) {
			pause_writing(w);
			return false;
		}
		assert(out.pos >= w->filled && out.pos <= room && in.pos <= in.size);
		w->segment_bytes += out.pos - w->filled;
		w->filled = out.pos;
		done = mode == ZSTD_e_continue ? in.pos == in.size : left == 0;
	}
	w->unflushed = mode == ZSTD_e_continue;
	return true;
}

/* What was recorded so far becomes a whole block, with nothing held back in zstd. */
static void finish_block(struct store_writer *w)
{
	if (w->in_segment && w->unflushed)
		compress(w, NULL, 0, ZSTD_e_flush);
	close_block(w);
}

/* Sets are known, and the schema that has them is not written yet. */
static bool is_holding(const struct store_writer *w)
{
	return w->nr_sets && !w->has_schema;
}

/* Keeps the bytes of a record until the schema is there. */
static void hold(struct store_writer *w, const void *data, size_t size)
{
	/* Under a memory limit a smaller buffer must do, which is enough for a small job. Much smaller, to
	 * leave room for the schema. */
	for (size_t most = HELD_MAX; !w->held && most >= HELD_LEAST; most /= 8) {
		w->held = reserve(most);
		w->held_size = most;
	}
	if (!w->held || size > w->held_size - w->nr_held) {
		w->in_segment = false;
		w->paused = true;
		w->lost_ticks = w->open_ticks = 0;
		w->lost_records = 1;
		w->lost_since_ns = w->clock_ns;
		w->no_memory = true;
		return;
	}
	memcpy(w->held + w->nr_held, data, size);
	w->nr_held += size;
	assert(w->nr_held <= w->held_size);
}

/* The body stands in scratch after HEAD; type and length are put right before it. */
static void put_record(struct store_writer *w, enum record_type type, size_t size)
{
	uint8_t head[HEAD], *end = put_varint(put_varint(head, type), size);
	size_t n = (size_t)(end - head);

	assert(n <= HEAD);
	memcpy(w->scratch + HEAD - n, head, n);
	if (is_holding(w)) {
		hold(w, w->scratch + HEAD - n, n + size);
		return;
	}
	w->raw += n + size;
	if (!compress(w, w->scratch + HEAD - n, n + size, ZSTD_e_continue))
		return;
	if (w->filled < w->limits.block_bytes && w->raw < BLOCK_RAW)
		return;
	finish_block(w);
	if (!w->out.failing)
		append_push(&w->out);
}

static void body_init(struct store_writer *w, struct buf *body)
{
	buf_init_fixed(body, w->scratch + HEAD, RECORD_MAX);
}

static void add_time(struct store_writer *w, struct buf *body, int64_t time_ns)
{
	buf_add_varint(body, zigzag((int64_t)((uint64_t)time_ns - (uint64_t)w->clock_ns)));
}

/* All of them, or all with their values cut when they do not fit. False: not even those. */
static bool add_pairs(struct buf *body, const struct pairs *pairs, bool *ret_shortened)
{
	size_t start = body->len;

	pairs_encode(pairs, body);
	*ret_shortened = body->err;
	if (!body->err)
		return true;
	body->len = start;
	body->err = 0;
	pairs_encode_short(pairs, SHORT_VALUE, body);
	return !body->err;
}

/* ---- segments ---- */

static void put_segment_start(struct store_writer *w)
{
	struct buf body;

	body_init(w, &body);
	buf_add_varint(&body, w->tick);
	buf_add_varint(&body, zigzag(w->clock_ns));
	buf_add_varint(&body, zigzag(w->wall_ns ? w->wall_ns + (w->clock_ns - w->wall_at_ns) : 0));
	put_record(w, RECORD_SEGMENT, body.len);
}

static void begin_instance(struct store_writer *w, struct buf *body, uint32_t set, uint32_t row, uint32_t id)
{
	body_init(w, body);
	buf_add_varint(body, set);
	buf_add_varint(body, (uint64_t)(uint32_t)(row + 1)); /* 0: no row */
	buf_add_varint(body, id);
}

static void restate(struct store_writer *w, uint32_t set, uint32_t row)
{
	const struct identity *i = identity_of(&w->live, set, row);
	struct buf body;
	size_t size;
	const uint8_t *text = identity_text(&w->live, i, &size);

	begin_instance(w, &body, set, row, i->id);
	buf_add_varint(&body, INSTANCE_AGAIN | (i->shortened ? INSTANCE_SHORTENED : 0));
	add_time(w, &body, i->time_ns);
	buf_add(&body, text, size);
	put_record(w, RECORD_INSTANCE, body.len);
}

static void put_open_events(struct store_writer *w)
{
	for (unsigned i = 0; i < w->open.nr && w->in_segment; i++) {
		const struct open_event *event = &w->open.item[i];
		struct buf body;

		body_init(w, &body);
		add_time(w, &body, event->time_ns);
		buf_add(&body, event->text, event->size);
		put_record(w, RECORD_OPEN, body.len);
	}
}

static void put_gap(struct store_writer *w)
{
	struct pair pair[4];
	char text[100];
	struct pairs data;
	struct buf body;
	bool shortened;

	pairs_init(&data, pair, ARRAY_SIZE(pair), text, sizeof(text));
	pairs_num(&data, "ticks", (int64_t)w->lost_ticks);
	pairs_num(&data, "records", (int64_t)w->lost_records);
	pairs_num(&data, "since_ns", w->lost_since_ns);
	if (w->no_memory)
		pairs_str(&data, "error", "ENOMEM");
	w->gap_ticks += w->lost_ticks;
	w->lost_ticks = w->lost_records = 0;
	body_init(w, &body);
	add_time(w, &body, w->clock_ns);
	buf_add_bytes(&body, "gap", 3);
	add_pairs(&body, &data, &shortened);
	put_record(w, RECORD_EVENT, body.len);
}

/* True when a record can be written. */
static bool segment_begin(struct store_writer *w, int64_t time_ns)
{
	if (w->paused || w->in_segment)
		return !w->paused;
	w->in_segment = w->first_tick = w->first_block = true;
	w->start_ns = w->clock_ns = time_ns;
	w->segment_bytes = w->opening_bytes = 0;
	put_segment_start(w);
	for (uint32_t set = 0; set < w->live.nr_sets && w->in_segment; set++)
		for (uint32_t row = 0; row < w->live.nr_rows[set] && w->in_segment; row++)
			if (w->live.row[set][row].id != ROW_FREE)
				restate(w, set, row);
	put_open_events(w);
	if (w->in_segment && (w->lost_ticks || w->lost_records))
		put_gap(w);
	return w->in_segment;
}

static void segment_end(struct store_writer *w)
{
	if (!w->in_segment || !compress(w, NULL, 0, ZSTD_e_end))
		return;
	close_block(w);
	w->in_segment = false;
}

static bool segment_is_over(const struct store_writer *w, int64_t time_ns)
{
	const struct store_limits *l = &w->limits;
	int64_t age = time_ns - w->start_ns;

	if (!w->in_segment || w->first_tick || is_holding(w))
		return false;
	if (age >= l->segment_max_ns)
		return true;
	if (age < l->segment_ns && w->segment_bytes < l->segment_bytes)
		return false;
	return w->segment_bytes - w->opening_bytes >= l->prolong * w->opening_bytes;
}

/* ---- the interface ---- */

static int put_pairs_block(struct store_writer *w, enum block_type type, const struct pairs *pairs)
{
	struct buf body;
	size_t room;
	uint8_t *p;

	finish_block(w);
	p = append_payload(&w->out, &room);
	if (!room)
		return -ENOSPC;
	buf_init_fixed(&body, p, room);
	pairs_encode(pairs, &body);
	if (body.err)
		return body.err;
	append_block(&w->out, type, 0, body.len);
	return 0;
}

int store_meta(struct store_writer *w, const struct pairs *meta)
{
	int r = put_pairs_block(w, BLOCK_META, meta);

	return r < 0 ? r : append_push(&w->out);
}

int store_note(struct store_writer *w, const struct pairs *meta)
{
	return put_pairs_block(w, BLOCK_META, meta);
}

int store_sets(struct store_writer *w, const struct schema *schema)
{
	int r = 0;

	if (w->has_schema || schema->nr_sets > SETS_MAX)
		return w->has_schema ? -EALREADY : -E2BIG;
	if (!w->live.row)
		r = identities_init(&w->live, SETS_MAX);
	if (r < 0)
		return r;
	if (!w->nr_sets)
		segment_end(w); /* of what came before any set */
	for (uint32_t i = 0; i < schema->nr_sets; i++)
		w->nr_cols[i] = (uint8_t)schema->set[i].nr_metrics;
	w->nr_sets = schema->nr_sets;
	return 0;
}

/* Writes the records that were held back, as one block. If there were too many the segment is over. */
static void release_held(struct store_writer *w)
{
	bool whole = !w->paused;

	if (w->nr_held) {
		w->in_segment = w->first_block = true;
		if (compress(w, w->held, w->nr_held, ZSTD_e_flush) && whole)
			w->opening_bytes = w->first_tick ? 0 : w->segment_bytes;
		if (!whole) {
			segment_end(w);
			w->paused = false;
		}
	}
	if (w->held)
		munmap(w->held, w->held_size);
	w->held = NULL;
	w->nr_held = 0;
}

/* The size of the schema as it is written, or a negative errno. */
static ssize_t pack_schema(struct store_writer *w, const struct schema *schema, uint8_t *out, size_t room)
{
	struct buf raw;
	ssize_t r;
	size_t n;

	buf_init(&raw, SCHEMA_MAX);
	schema_encode(schema, &raw);
	n = raw.err ? 0 : ZSTD_compress2(w->zstd, out, room, raw.data, raw.len);
	r = raw.err ? raw.err : ZSTD_isError(n) ? -ENOSPC : (ssize_t)n;
	buf_release(&raw);
	return r;
}

void store_prepare(struct store_writer *w, const struct schema *schema)
{
	size_t room;
	uint8_t *p = append_payload(&w->out, &room);
	ssize_t n = is_holding(w) && !w->prepared ? pack_schema(w, schema, p, room) : 0;

	if (n <= 0)
		return;
	w->prepared = malloc((size_t)n);
	if (!w->prepared)
		return;
	memcpy(w->prepared, p, (size_t)n);
	w->prepared_size = (size_t)n;
	w->prepared_sets = schema->nr_sets;
}

static ssize_t put_schema(struct store_writer *w, const struct schema *schema)
{
	size_t room;
	uint8_t *p = append_payload(&w->out, &room);

	if (!w->prepared || w->prepared_sets != schema->nr_sets || w->prepared_size > room)
		return pack_schema(w, schema, p, room);
	memcpy(p, w->prepared, w->prepared_size);
	return (ssize_t)w->prepared_size;
}

int store_schema(struct store_writer *w, const struct schema *schema)
{
	int r = store_sets(w, schema);
	ssize_t n;

	if (r < 0)
		return r;
	n = put_schema(w, schema);
	free(w->prepared);
	w->prepared = NULL;
	if (n < 0)
		return (int)n;
	append_block(&w->out, BLOCK_SCHEMA, 0, (size_t)n);
	w->has_schema = true;
	if (!w->held)
		return append_push(&w->out);
	release_held(w); /* they reach the file together */
	return 0;
}

void store_wall(struct store_writer *w, int64_t time_ns, int64_t wall_ns)
{
	w->wall_at_ns = time_ns;
	w->wall_ns = wall_ns;
}

void store_instance(struct store_writer *w, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *identity)
{
	const struct identity *i = identity_of(&w->live, set, row);
	bool open = segment_begin(w, time_ns), shortened;
	unsigned flags = i && i->id == id ? INSTANCE_AGAIN : 0;
	struct buf body;
	size_t start;

	if (set >= w->nr_sets || (row >= IDENTITY_ROWS_MAX && row != STORE_NO_ROW))
		return;
	begin_instance(w, &body, set, row, id);
	buf_add_varint(&body, flags);
	add_time(w, &body, time_ns);
	start = body.len;
	if (!add_pairs(&body, identity, &shortened))
		return;
	identity_set(&w->live, set, row, id, time_ns, identity, body.data + start, body.len - start);
	if (open)
		put_record(w, RECORD_INSTANCE, body.len);
	else
		w->lost_records++;
}

void store_gone(struct store_writer *w, uint32_t set, uint32_t row, uint32_t id, int64_t time_ns,
	const struct pairs *last)
{
	bool open = segment_begin(w, time_ns), shortened;
	struct buf body;

	if (set >= w->nr_sets || (row >= IDENTITY_ROWS_MAX && row != STORE_NO_ROW))
		return;
	identity_clear(&w->live, set, row);
	begin_instance(w, &body, set, row, id);
	add_time(w, &body, time_ns);
	if (open && add_pairs(&body, last, &shortened))
		put_record(w, RECORD_GONE, body.len);
	else
		w->lost_records++;
}

void store_event(struct store_writer *w, int64_t time_ns, const char *kind, const struct pairs *data)
{
	bool open = segment_begin(w, time_ns), shortened;
	struct buf body;

	body_init(w, &body);
	add_time(w, &body, time_ns);
	buf_add_bytes(&body, kind, strlen(kind));
	if (open && add_pairs(&body, data, &shortened)) {
		put_record(w, RECORD_EVENT, body.len);
		open_events_take(&w->open, time_ns, kind, data);
	} else {
		w->lost_records++;
	}
}

static void put_cells(struct store_writer *w, uint32_t set, const struct table *t)
{
	if (w->cells.nr && w->in_segment)
		put_record(
			w, RECORD_CELLS, cells_encode(&w->cells, set, t, w->first_tick, w->scratch + HEAD));
	w->cells.nr = 0;
	w->cells.flips = w->cells.columns = 0;
}

/* Leaves out rows that were freed in this tick and rows whose instance was not announced. */
static void put_set(struct store_writer *w, uint32_t set, const struct table *t)
{
	uint32_t nr = w->first_tick ? t->nr_rows : t->nr_touched;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t row = w->first_tick ? i : t->touched[i];
		const struct identity *known = identity_of(&w->live, set, row);

		if (t->id[row] == ROW_FREE || !known || known->id != t->id[row])
			continue;
		cells_add(&w->cells, t, row, w->first_tick);
		if (w->cells.nr == CELLS_GROUP)
			put_cells(w, set, t);
	}
	put_cells(w, set, t);
}

/* Sets that were read later than the tick says, and what the tick is beside others. */
static void add_delays(struct store_writer *w, struct buf *body, unsigned at, struct table *const *table)
{
	uint32_t nr = 0;

	for (uint32_t set = 0; set < w->nr_sets; set++)
		nr += table[set] && table[set]->delay_ns > 0;
	if (!nr && !at)
		return;
	buf_add_varint(body, nr);
	for (uint32_t set = 0; set < w->nr_sets; set++)
		if (table[set] && table[set]->delay_ns > 0) {
			buf_add_varint(body, set);
			buf_add_varint(body, (uint64_t)MIN(table[set]->delay_ns, DELAY_MAX_NS));
		}
	if (at)
		buf_add_varint(body, at);
}

void store_tick(
	struct store_writer *w, uint64_t number, int64_t time_ns, unsigned at, struct table *const *table)
{
	struct buf body;

	if (segment_is_over(w, time_ns))
		segment_end(w);
	if (!segment_begin(w, time_ns)) {
		w->lost_ticks++;
		w->tick = number;
		return;
	}
	for (uint32_t set = 0; set < w->nr_sets && w->in_segment; set++)
		if (table[set] && table[set]->nr_cols == w->nr_cols[set])
			put_set(w, set, table[set]);
	body_init(w, &body);
	buf_add_varint(&body, number - w->tick);
	add_time(w, &body, time_ns);
	add_delays(w, &body, at, table);
	w->tick = number;
	w->clock_ns = time_ns;
	if (w->in_segment)
		put_record(w, RECORD_TICK, body.len);
	if (w->in_segment && w->first_tick && !is_holding(w) && compress(w, NULL, 0, ZSTD_e_flush))
		w->opening_bytes = w->segment_bytes;
	if (w->in_segment)
		w->open_ticks++;
	else
		w->lost_ticks++;
	w->first_tick = false;
}

int store_flush(struct store_writer *w)
{
	int r;

	finish_block(w);
	r = append_push(&w->out);
	if (r == 0 && !is_holding(w))
		w->paused = false;
	return r;
}

static void put_index(struct store_writer *w)
{
	uint64_t offset = 0, time = 0;
	struct buf body;
	size_t room;
	uint8_t *p = append_payload(&w->out, &room);

	if (!room)
		return;
	buf_init_fixed(&body, p, room);
	buf_add_varint(&body, w->nr_index);
	for (uint32_t i = 0; i < w->nr_index; i++) {
		buf_add_varint(&body, w->index[i].offset - offset);
		buf_add_varint(&body, zigzag((int64_t)((uint64_t)w->index[i].time_ns - time)));
		offset = w->index[i].offset;
		time = (uint64_t)w->index[i].time_ns;
	}
	if (!body.err)
		append_block(&w->out, BLOCK_INDEX, 0, body.len);
}

/* The end mark is worth more than the last ticks: without it a full disk looks like a recorder that was
 * killed. It is small, and may fit where the segment does not; else the last blocks make room for it. */
static int put_end(struct store_writer *w, struct pairs *summary, int error)
{
	uint32_t last = w->out.nr_spare;
	int r;

	if (error < 0 && !pairs_find(summary, "write_error"))
		pairs_str(summary, "write_error", strerrorname_np(-error));
	if (w->gap_ticks)
		pairs_num(summary, "gap_ticks", (int64_t)w->gap_ticks);
	do {
		r = put_pairs_block(w, BLOCK_SUMMARY, summary);
		w->out.nr_spare = last;
		if (r == 0)
			r = append_push(&w->out);
		if (r == 0 || append_cut(&w->out) < 0)
			return r;
		last = w->out.nr_spare;
	} while (true);
}

int store_finish(struct store_writer *w, struct pairs *summary)
{
	int r, s;

	segment_end(w);
	r = append_push(&w->out);
	if (r == 0 && w->paused) { /* a last segment, with the event "gap" */
		w->paused = false;
		segment_begin(w, w->clock_ns);
		segment_end(w);
	}
	if (r == 0)
		put_index(w);
	else if (append_drop(&w->out) < 0)
		goto out;
	s = put_end(w, summary, r);
	if (close(w->out.fd) < 0 && s == 0)
		s = -errno;
	w->out.fd = -1;
	if (r == 0)
		r = s;
out:
	store_abandon(w);
	return r;
}

uint64_t store_bytes(const struct store_writer *w)
{
	return w->out.written;
}

const char *store_path(const struct store_writer *w)
{
	return w->out.path;
}
