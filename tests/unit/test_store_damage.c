/* The recording after accidents: cut anywhere, bits flipped, pieces missing, doubled or foreign, blocks made
 * to hurt. Readers must not crash, hang or lie, and must find everything that is not damaged. Meant to be run
 * under sanitizers too.
 *
 * TACHO_TORTURE=full tries every byte where otherwise some are chosen. */
#include "store_world.h"

#include "base/str.h"
#include "store/crc32c.h"
#include "store/format.h"
#include "store/limits.h"
#include "store/scan.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cmocka.h>

#define BLOCKS_MAX 4096

static char path[200];
static struct world world;
static struct reading reading;
static bool full;

/* The recording under attack, and what each of its blocks holds. */
static struct original {
	struct buf bytes;
	size_t nr;
	struct {
		uint64_t start, end;
		uint16_t type;
		bool first;
		unsigned segment;	     /* counts from 1; 0: not in a segment */
		uint64_t from_tick, to_tick; /* ticks that are whole once this block is there: ]from, to] */
	} block[BLOCKS_MAX];
} original;

static const struct store_limits short_segments = {
	.segment_ns = 6 * NSEC_PER_SEC,
	.segment_bytes = 1 << 20,
	.segment_max_ns = 60 * NSEC_PER_SEC,
	.block_bytes = 256 << 10,
	.pending_bytes = 4 << 20,
};

/* ---- files in memory ---- */

static int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
	return fd;
}

/* 0 and everything in `reading`, or what store_open_fd() said. The log is kept only if asked for: it is slow.
 */
static int read_logged(const void *data, size_t size, bool log)
{
	struct store_reader *r;
	int e;

	memset(&reading, 0, offsetof(struct reading, known));
	memset(reading.known, 0, world.next_id * sizeof(reading.known[0]));
	buf_init(&reading.log, (size_t)64 << 20);
	reading.quiet = !log;
	e = store_open_fd(memory_file(data, size), &r);
	if (e < 0)
		return e;
	reading_go_on(&reading, r, &world);
	store_close(r);
	return 0;
}

static int read_bytes(const void *data, size_t size)
{
	return read_logged(data, size, false);
}

/* ---- the original ---- */

static void map_blocks(void)
{
	struct scan s;
	struct scan_item item;
	unsigned segment = 0;
	uint64_t tick = 0;

	assert_int_equal(scan_init(&s, memory_file(original.bytes.data, original.bytes.len)), 0);
	original.nr = 0;
	while (scan_next(&s, &item) == SCAN_BLOCK) {
		size_t i = original.nr++;

		assert_true(original.nr < BLOCKS_MAX);
		segment += item.header.type == BLOCK_SEGMENT && item.header.flags & BLOCK_FIRST;
		original.block[i].start = item.offset;
		original.block[i].end = item.offset + item.size;
		original.block[i].type = item.header.type;
		original.block[i].first = item.header.flags & BLOCK_FIRST;
		original.block[i].segment = item.header.type == BLOCK_SEGMENT ? segment : 0;
		read_bytes(original.bytes.data, item.offset + item.size);
		original.block[i].from_tick = tick;
		original.block[i].to_tick = tick = reading.last_tick;
		reading_release(&reading);
	}
	assert_int_equal(s.at, original.bytes.len);
	scan_release(&s);
}

static void load_original(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	buf_init(&original.bytes, (size_t)64 << 20);
	assert_true(buf_reserve(&original.bytes, (size_t)st.st_size));
	assert_int_equal(read(fd, original.bytes.data, (size_t)st.st_size), st.st_size);
	original.bytes.len = (size_t)st.st_size;
	close(fd);
	map_blocks();
}

/* Few rows, wide and wild: many bytes for little decoding. */
static void make_original(uint64_t seed, unsigned ticks, unsigned flush_every)
{
	struct pair pair[1];
	char text[10];
	struct pairs meta;

	world_init(&world, seed, path);
	store_set_limits(world.w, &short_segments);
	world.rows = 4;
	world.busy = true;
	pairs_init(&meta, pair, 1, text, sizeof(text));
	pairs_str(&meta, "host", "somewhere");
	assert_int_equal(store_meta(world.w, &meta), 0);
	world_live(&world, ticks, flush_every);
	world_finish(&world);
	load_original();
}

static void drop_original(void)
{
	buf_release(&original.bytes);
	world_release(&world);
}

/* ---- accidents ---- */

/* What was whole before the cut is there, the rest is a tail, and nothing is called damage. */
static void expect_cut(uint64_t size, const struct reading *g)
{
	uint64_t tick = 0, end = 0;

	for (size_t i = 0; i < original.nr && original.block[i].end <= size; i++) {
		tick = original.block[i].to_tick;
		end = original.block[i].end;
	}
	assert_int_equal(g->last_tick, tick);
	assert_int_equal(g->lost, 0);
	assert_int_equal(g->health.damaged, 0);
	assert_int_equal(g->health.good_bytes, end);
	assert_int_equal(g->health.tail_bytes, size - end);
	assert_int_equal(g->health.complete, size == original.bytes.len);
}

static void test_cut_at_every_byte_while_growing(void **state)
{
	size_t from = original.bytes.len > 65536 ? original.bytes.len - 65536 : BLOCK_HEADER;
	int fd = memory_file(original.bytes.data, from);
	struct store_reader *r;

	(void)state;
	assert_true(original.bytes.len > 65536);
	reading_init(&reading);
	assert_int_equal(store_open_fd(dup(fd), &r), 0);
	for (size_t size = from; size <= original.bytes.len; size++) {
		if (size > from)
			assert_int_equal(pwrite(fd, original.bytes.data + size - 1, 1, (off_t)size - 1), 1);
		reading_go_on(&reading, r, &world);
		expect_cut(size, &reading);
	}
	assert_int_equal(reading.log.len, world.log.len);
	assert_memory_equal(reading.log.data, world.log.data, world.log.len);
	reading_release(&reading);
	store_close(r);
	close(fd);
}

/* Chosen bytes: here and there, around the borders of blocks, and each byte of some headers. */
static bool worth_trying(uint64_t at)
{
	if (full || at % 331 == 0)
		return true;
	for (size_t i = 0; i < original.nr; i++) {
		uint64_t start = original.block[i].start;

		if (at + 1 >= start && at <= start + 1)
			return true;
		if (i % 8 == 4 && at >= start && at <= start + BLOCK_HEADER + 1)
			return true;
	}
	return false;
}

static void test_cut_and_opened(void **state)
{
	size_t nr = 0;

	(void)state;
	for (size_t size = 0; size <= original.bytes.len; size++) {
		if (!worth_trying(size))
			continue;
		bool log = size % 20 == 0;
		int e = read_logged(original.bytes.data, size, log);
		if (size < BLOCK_HEADER) {
			assert_int_equal(e, -EBADMSG);
		} else {
			assert_int_equal(e, 0);
			expect_cut(size, &reading);
			assert_true(!log || !reading.ticks || reading.log.len);
			assert_memory_equal(reading.log.data, world.log.data, reading.log.len);
		}
		reading_release(&reading);
		nr++;
	}
	assert_true(nr > 400);
}

/* Ticks of the damaged block, and of the rest of its segment, may be gone; no others. */
static void expect_all_but(size_t damaged)
{
	bool hit[BLOCKS_MAX] = {false};

	hit[damaged] = true;
	for (size_t i = damaged; i < original.nr; i++) /* any damage ends the segment it happens in */
		if (i > damaged && original.block[i].first)
			break;
		else
			hit[i] = original.block[i].type == BLOCK_SEGMENT || i == damaged;
	if (original.block[damaged].type == BLOCK_SCHEMA)
		memset(hit, true, sizeof(hit));
	for (size_t i = 0; i < original.nr; i++)
		for (uint64_t t = original.block[i].from_tick + 1; !hit[i] && t <= original.block[i].to_tick;
			t++)
			if (world.state[t] && !reading.seen[t])
				fail_msg("block %zu was damaged and tick %llu of block %zu is missing",
					damaged, (unsigned long long)t, i);
}

static void test_flipped_bits(void **state)
{
	unsigned nr = 0;

	(void)state;
	for (size_t at = 0, b = 0; at < original.bytes.len; at++) {
		if (!worth_trying(at))
			continue;
		while (original.block[b].end <= at)
			b++;
		original.bytes.data[at] ^= (uint8_t)(1 << at % 8);
		assert_int_equal(read_bytes(original.bytes.data, original.bytes.len), 0);
		original.bytes.data[at] ^= (uint8_t)(1 << at % 8);
		assert_true(reading.health.damaged > 0);
		/* A damaged SUMMARY is no end mark; anything else leaves it alone. */
		assert_int_equal(reading.health.complete, b != original.nr - 1);
		assert_int_equal(reading.health.good_bytes + reading.health.lost_bytes, original.bytes.len);
		expect_all_but(b);
		reading_release(&reading);
		nr++;
	}
	assert_true(nr > 400);
}

static void test_random_surgery(void **state)
{
	size_t size = original.bytes.len;
	uint8_t *copy = malloc(2 * size + 5000);

	(void)state;
	assert_non_null(copy);
	for (unsigned i = 0; i < (full ? 20000 : 300); i++) {
		size_t a = world_random(&world, size),
		       n = world_random(&world, MIN(size - a, (size_t)20000)) + 1, len;

		memcpy(copy, original.bytes.data, a);
		switch (i % 5) {
		case 0: /* a piece is missing */
			memcpy(copy + a, original.bytes.data + a + n, size - a - n);
			len = size - n;
			break;
		case 1: /* a piece is there twice */
			memcpy(copy + a, original.bytes.data + a, size - a);
			memcpy(copy + size, original.bytes.data + a, n);
			len = size + n;
			break;
		case 2: /* a piece became zeros */
			memcpy(copy, original.bytes.data, size);
			memset(copy + a, 0, n);
			len = size;
			break;
		case 3: /* noise was put in */
			for (size_t k = 0; k < 3000; k++)
				copy[a + k] = (uint8_t)world_random(&world, 256);
			memcpy(copy + a + 3000, original.bytes.data + a, size - a);
			len = size + 3000;
			break;
		default: /* cut, and started again from the beginning */
			memcpy(copy + a, original.bytes.data, size);
			len = a + size;
		}
		/* The states of all ticks are compared while reading. */
		if (read_bytes(copy, len) == 0)
			assert_true(reading.health.damaged > 0 || !reading.health.complete);
		reading_release(&reading);
	}
	free(copy);
}

static void test_two_recordings_in_one_file(void **state)
{
	struct buf both;
	struct world first = world;
	struct buf first_bytes = original.bytes;

	(void)state;
	/* A second world in a second file; then the second behind the first. */
	memset(&original, 0, sizeof(original));
	make_original(99, 5, 1);
	buf_init(&both, (size_t)64 << 20);
	buf_add(&both, first_bytes.data, first_bytes.len);
	buf_add(&both, original.bytes.data, original.bytes.len);
	drop_original();
	world = first;
	original.bytes = first_bytes;
	map_blocks();

	assert_int_equal(read_logged(both.data, both.len, true), 0);
	assert_int_equal(reading.log.len, world.log.len);
	assert_int_equal(reading.lost, 1);
	assert_int_equal(reading.summaries, 1);
	assert_false(reading.health.complete);
	assert_int_equal(reading.health.lost_bytes, both.len - first_bytes.len);
	reading_release(&reading);
	buf_release(&both);
}

/* Blocks of another recording are not taken for ours, however well their numbers fit. */
static void test_foreign_blocks(void **state)
{
	struct buf mixed;
	size_t half = original.nr / 2;

	(void)state;
	buf_init(&mixed, (size_t)64 << 20);
	buf_add(&mixed, original.bytes.data, original.bytes.len);
	for (size_t i = half; i < original.nr; i++) {
		uint8_t *p = mixed.data + original.block[i].start;
		struct block_header h;

		assert_true(block_header_get(p, &h));
		h.file ^= 1;
		block_header_put(p, &h);
	}
	assert_int_equal(read_bytes(mixed.data, mixed.len), 0);
	assert_int_equal(reading.last_tick, original.block[half - 1].to_tick);
	assert_int_equal(reading.lost, 1);
	assert_int_equal(reading.summaries, 0);
	assert_int_equal(reading.health.good_bytes, original.block[half].start);
	reading_release(&reading);
	buf_release(&mixed);
}

/* On a network file system a file may have its new length before its new bytes. */
static void test_bytes_that_come_after_the_length(void **state)
{
	size_t half = original.nr / 2;
	uint64_t start = original.block[half].start, end = original.block[half].end;
	struct store_reader *r;

	(void)state;
	/* The whole last block is still zeros; only its payload is; only the end of that. */
	for (unsigned how = 0; how < 3; how++) {
		uint64_t from = how == 0 ? start : how == 1 ? start + BLOCK_HEADER : end - 1;
		int fd = memory_file(original.bytes.data, end);

		memset(&reading, 0, sizeof(reading));
		reading_init(&reading);
		assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
					 (off_t)(end - from)),
			0);
		assert_int_equal(store_open_fd(dup(fd), &r), 0);
		for (unsigned again = 0; again < 3; again++) {
			reading_go_on(&reading, r, &world);
			assert_int_equal(reading.last_tick, original.block[half - 1].to_tick);
			assert_int_equal(reading.lost, 0);
			assert_int_equal(reading.health.lost_bytes, end - start); /* as far as one can tell */
		}
		assert_true(pwrite(fd, original.bytes.data + from, end - from, (off_t)from) > 0);
		reading_go_on(&reading, r, &world);
		assert_int_equal(reading.last_tick, original.block[half].to_tick);
		assert_int_equal(reading.lost, 0);
		assert_int_equal(reading.health.lost_bytes, 0);
		assert_int_equal(reading.health.damaged, 0);
		reading_release(&reading);
		store_close(r);
		close(fd);
	}
}

static void test_blocks_out_of_order(void **state)
{
	struct buf mixed;
	size_t a = original.nr / 2;

	(void)state;
	buf_init(&mixed, (size_t)64 << 20);
	for (size_t i = 0; i < original.nr; i++) {
		size_t k = i == a ? a + 1 : i == a + 1 ? a : i;

		buf_add(&mixed, original.bytes.data + original.block[k].start,
			original.block[k].end - original.block[k].start);
	}
	assert_int_equal(read_bytes(mixed.data, mixed.len), 0);
	assert_true(reading.lost >= 1);
	assert_true(reading.health.complete);
	expect_all_but(a);
	reading_release(&reading);
	buf_release(&mixed);
}

/* ---- blocks made to hurt ---- */

/* A recording of our own making: START and SCHEMA of the original, then blocks of ours. */
struct forgery {
	struct buf bytes, content;
	uint32_t sequence;
};

static void forge_block(struct forgery *f, uint16_t type, uint16_t flags, const void *payload, size_t size)
{
	uint8_t header[BLOCK_HEADER];
	struct block_header h = {.file = get_u32(original.bytes.data + 4),
		.sequence = f->sequence++,
		.type = type,
		.flags = flags,
		.length = (uint32_t)size,
		.crc = crc32c(payload, size)};

	block_header_put(header, &h);
	buf_add(&f->bytes, header, sizeof(header));
	buf_add(&f->bytes, payload, size);
}

static void forge_begin(struct forgery *f)
{
	memset(f, 0, sizeof(*f));
	buf_init(&f->bytes, (size_t)64 << 20);
	buf_init(&f->content, (size_t)256 << 20);
	for (size_t i = 0; i < 2; i++) {
		size_t payload = original.block[i].start + BLOCK_HEADER;

		forge_block(f, original.block[i].type, 0, original.bytes.data + payload,
			original.block[i].end - payload);
	}
}

static void forge_record(struct forgery *f, const char *numbers)
{
	struct buf body;
	uint8_t type = 0;
	int n, used;

	buf_init(&body, 1 << 20);
	if (sscanf(numbers, "%d:%n", &n, &used) == 1) {
		type = (uint8_t)n;
		numbers += used;
	}
	for (unsigned long long v; sscanf(numbers, "%llu%n", &v, &used) == 1; numbers += used)
		buf_add_varint(&body, v);
	buf_add_varint(&f->content, type);
	buf_add_bytes(&f->content, body.data, body.len);
	buf_release(&body);
}

static void forge_segment(struct forgery *f)
{
	size_t bound = ZSTD_compressBound(f->content.len);
	void *packed = malloc(bound);
	size_t n = ZSTD_compress(packed, bound, f->content.data, f->content.len, 1);

	assert_false(ZSTD_isError(n));
	forge_block(f, BLOCK_SEGMENT, BLOCK_FIRST, packed, n);
	free(packed);
	buf_reset(&f->content);
}

/* Records type, count of what is delivered. */
static void read_forgery(struct forgery *f, unsigned *ret_lost, unsigned *ret_ticks, unsigned *ret_instances)
{
	struct store_reader *r;
	struct store_record rec;
	int e;

	*ret_lost = *ret_ticks = *ret_instances = 0;
	assert_int_equal(store_open_fd(memory_file(f->bytes.data, f->bytes.len), &r), 0);
	while ((e = store_next(r, &rec)) > 0) {
		*ret_lost += rec.type == STORE_LOST;
		*ret_ticks += rec.type == STORE_TICK;
		*ret_instances += rec.type == STORE_INSTANCE;
	}
	assert_int_equal(e, 0);
	store_close(r);
	buf_release(&f->bytes);
	buf_release(&f->content);
}

/* SEGMENT tick time wall; INSTANCE set row+1 id flags time pairs; GONE set row+1 id time pairs; EVENT time
 * kind pairs; CELLS set flags n rows... mask columns...; TICK number time. Varints; zigzag is the reader's.
 */
static const char *const good_segment[] = {"1: 0 0 0", "2: 0 1 1 0 0 0", "2: 1 3 2 0 0 0",
	"5: 0 1 1 0 1 1 0 2", "6: 1 2", "5: 1 0 1 4 3 0 1 1 0 7", "6: 1 2", "3: 0 1 1 0 0", NULL};
/* The same with an id that has not ended. */
static const char *const good_again[] = {"1: 0 0 0", "2: 0 1 3 0 0 0", "2: 1 3 2 0 0 0", "5: 0 1 1 0 1 1 0 2",
	"6: 1 2", "5: 1 0 1 4 3 0 1 1 0 7", "6: 1 2", "3: 0 1 3 0 0", NULL};

static const struct {
	const char *what, *record[6];
} bad_segment[] = {
	{"no SEGMENT first", {"6: 1 2"}},
	{"SEGMENT twice", {"1: 0 0 0", "1: 0 0 0"}},
	{"record of type 0", {"1: 0 0 0", "0: 1"}},
	{"instance of an unknown set", {"1: 0 0 0", "2: 4 1 1 0 0 0"}},
	{"instance in a row too far", {"1: 0 0 0", "2: 0 1048577 1 0 0 0"}},
	{"instance with id 0", {"1: 0 0 0", "2: 0 1 0 0 0 0"}},
	{"instance with a huge id", {"1: 0 0 0", "2: 0 1 4294967296 0 0 0"}},
	{"instance with more pairs than bytes", {"1: 0 0 0", "2: 0 1 5 0 0 9 1 65 1 66"}},
	{"instance cut short", {"1: 0 0 0", "2: 0 1"}},
	{"somebody else is gone", {"1: 0 0 0", "2: 0 1 5 0 0 0", "3: 0 1 2 0 0"}},
	{"gone from an empty row", {"1: 0 0 0", "3: 0 1 1 0 0"}},
	{"gone from a row that never was", {"1: 0 0 0", "3: 0 500000 1 0 0"}},
	{"the id of one that has ended", {"1: 0 0 0", "2: 0 1 1 0 0 0"}},
	{"the id of one that has ended, as if known", {"1: 0 0 0", "2: 0 1 1 1 0 0"}},
	{"the id of one that has ended, without a row", {"1: 0 0 0", "2: 0 0 1 0 0 0"}},
	{"one that ends twice", {"1: 0 0 0", "3: 0 0 1 0 0"}},
	{"a row that so few bytes cannot have", {"1: 0 0 0", "2: 2 1048576 5 0 0 0"}},
	{"cells of an unknown set", {"1: 0 0 0", "5: 9 0 0 0"}},
	{"cells of an empty row", {"1: 0 0 0", "5: 0 0 1 0 1 0 2"}},
	{"cells of a row before the first", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 1 1 1 0 2"}},
	{"cells of too many rows", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 4097 0"}},
	{"cells of more rows than there is text", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 100 0 1"}},
	{"a column too many", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 1 0 2 0 2"}},
	{"validity of a column too many", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 1 1 0 2 0"}},
	{"the same row twice at first", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 2 0 1 1 0 2 2"}},
	{"passes over more rows than there are", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 1 0 1 1 1 2"}},
	{"more changes than rows", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 1 0 1 2 0 2 0 2"}},
	{"missing columns", {"1: 0 0 0", "2: 0 1 5 0 0 0", "5: 0 0 1 0 1"}},
	{"tick cut short", {"1: 0 0 0", "6: 1"}},
	{"event whose kind reaches past the end", {"1: 0 0 0", "4: 0 200 0"}},
};

static void test_hostile_records(void **state)
{
	unsigned lost, ticks, instances;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_segment); i++) {
		struct forgery f;

		forge_begin(&f);
		for (size_t k = 0; good_segment[k]; k++)
			forge_record(&f, good_segment[k]);
		forge_segment(&f);
		for (size_t k = 0; k < 6 && bad_segment[i].record[k]; k++)
			forge_record(&f, bad_segment[i].record[k]);
		forge_record(&f, "6: 1 2"); /* too late: the segment is over */
		forge_segment(&f);
		for (size_t k = 0; good_again[k]; k++)
			forge_record(&f, good_again[k]);
		forge_segment(&f);
		read_forgery(&f, &lost, &ticks, &instances);
		if (lost != 1 || ticks != 4)
			fail_msg("%s: lost %u, ticks %u", bad_segment[i].what, lost, ticks);
	}
}

static void test_unknown_things_are_skipped(void **state)
{
	unsigned lost, ticks, instances;
	struct forgery f;

	(void)state;
	forge_begin(&f);
	forge_block(&f, 77, 0xffff, "whatever", 8);
	forge_record(&f, "1: 0 0 0 1 2 3");
	forge_record(&f, "99: 1 2 3");
	forge_record(&f, "2: 0 1 1 0 0 0 5 5");
	forge_record(&f, "6: 1 2 0 9"); /* no set was read late; then what we do not know */
	forge_segment(&f);
	read_forgery(&f, &lost, &ticks, &instances);
	assert_int_equal(lost, 0);
	assert_int_equal(ticks, 1);
	assert_int_equal(instances, 1);
}

/* A kilobyte that would become gigabytes, a window of gigabytes, rows that would fill the memory. */
static void test_bombs(void **state)
{
	static const uint8_t huge_window[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
	unsigned lost, ticks, instances;
	struct forgery f;

	(void)state;
	forge_begin(&f);
	forge_record(&f, "1: 0 0 0");
	for (unsigned i = 0; i < (BLOCK_CONTENT_MAX >> 20) + 2; i++) {
		buf_add_varint(&f.content, 99);
		buf_add_varint(&f.content, 1 << 20);
		assert_true(buf_reserve(&f.content, 1 << 20));
		memset(f.content.data + f.content.len, 0, 1 << 20);
		f.content.len += 1 << 20;
	}
	forge_record(&f, "6: 1 2");
	forge_segment(&f);
	assert_true(f.bytes.len < 100000);
	read_forgery(&f, &lost, &ticks, &instances);
	assert_int_equal(lost, 1);
	assert_int_equal(ticks, 0);

	forge_begin(&f);
	forge_block(&f, BLOCK_SEGMENT, BLOCK_FIRST, huge_window, sizeof(huge_window));
	read_forgery(&f, &lost, &ticks, &instances);
	assert_int_equal(lost, 1);

	/* The wide sets at once: 64 and 40 columns, 2^20 rows each, is more than a gigabyte. So few bytes may
	 * have none of them, and with all limits off only one. */
	for (unsigned limitless = 0; limitless < 2; limitless++) {
		store_set_expansion(limitless ? 0 : STORE_EXPANSION);
		forge_begin(&f);
		forge_record(&f, "1: 0 0 0");
		forge_record(&f, "2: 2 1048576 1 0 0 0");
		forge_record(&f, "2: 1 1048576 1 0 0 0");
		forge_record(&f, "6: 1 2");
		forge_segment(&f);
		read_forgery(&f, &lost, &ticks, &instances);
		assert_int_equal(lost, 1);
		assert_int_equal(instances, limitless);
	}
	store_set_expansion(STORE_EXPANSION);
}

static void test_schema_missing_doubled_or_contradicted(void **state)
{
	unsigned lost, ticks, instances;
	size_t at = original.block[1].start + BLOCK_HEADER, size = original.block[1].end - at;
	struct forgery f;

	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		forge_begin(&f);
		if (how == 0) { /* missing */
			f.bytes.len = original.block[0].end;
			f.sequence = 1;
		} else if (how == 1) { /* the same again */
			forge_block(&f, BLOCK_SCHEMA, 0, original.bytes.data + at, size);
		} else if (how == 2) { /* another */
			uint8_t packed[100];
			size_t n = ZSTD_compress(packed, sizeof(packed), "", 1, 1);

			forge_block(&f, BLOCK_SCHEMA, 0, packed, n);
		} else { /* no zstd at all */
			f.bytes.len = original.block[0].end;
			f.sequence = 1;
			forge_block(&f, BLOCK_SCHEMA, 0, "what?", 5);
		}
		for (size_t k = 0; good_segment[k]; k++)
			forge_record(&f, good_segment[k]);
		forge_segment(&f);
		read_forgery(&f, &lost, &ticks, &instances);
		assert_int_equal(lost, how == 1 ? 0 : how == 3 ? 2 : 1);
		assert_int_equal(ticks, how == 1 || how == 2 ? 2 : 0);
	}
}

static void test_rows_far_apart(void **state)
{
	unsigned lost, ticks, instances;
	struct forgery f;

	(void)state;
	/* Low rows keep their cells when the table grows for a high one. */
	forge_begin(&f);
	forge_record(&f, "1: 0 0 0");
	forge_record(&f, "2: 0 1 1 0 0 0");
	forge_record(&f, "5: 0 1 1 0 1 1 0 86");
	forge_record(&f, "6: 1 2");
	forge_record(&f, "2: 0 500000 2 0 0 0");
	forge_record(&f, "6: 1 2");
	forge_segment(&f);
	struct store_reader *r;
	struct store_record rec;
	assert_int_equal(store_open_fd(memory_file(f.bytes.data, f.bytes.len), &r), 0);
	while (store_next(r, &rec) > 0)
		assert_int_not_equal(rec.type, STORE_LOST);
	assert_int_equal(store_reader_table(r, 0)->cell[0], 43);
	assert_int_equal(store_reader_table(r, 0)->valid[0], 1);
	assert_int_equal(store_reader_table(r, 0)->id[499999], 2);
	store_close(r);
	read_forgery(&f, &lost, &ticks, &instances);
	assert_int_equal(ticks, 2);
}

/* Who is not restated is gone at the first tick, and who has no values there has none. */
static void test_what_a_segment_does_not_restate(void **state)
{
	struct store_reader *r;
	struct store_record rec;
	struct forgery f;
	unsigned ticks = 0;

	(void)state;
	forge_begin(&f);
	forge_record(&f, "1: 0 0 0");
	forge_record(&f, "2: 0 1 1 0 0 0");
	forge_record(&f, "2: 0 2 2 0 0 0");
	forge_record(&f, "2: 0 3 3 0 0 0");
	forge_record(&f, "5: 0 1 3 0 0 0 1 1 1 1 0 10 20 30");
	forge_record(&f, "6: 1 2");
	forge_segment(&f);
	forge_record(&f, "1: 1 2 0");
	forge_record(&f, "2: 0 1 1 1 0 0");
	forge_record(&f, "2: 0 3 3 1 0 0");
	forge_record(&f, "5: 0 1 1 0 1 1 0 10");
	forge_record(&f, "6: 1 2");
	forge_segment(&f);
	assert_int_equal(store_open_fd(memory_file(f.bytes.data, f.bytes.len), &r), 0);
	while (store_next(r, &rec) > 0) {
		const struct table *t = store_reader_table(r, 0);

		assert_int_not_equal(rec.type, STORE_LOST);
		if (rec.type != STORE_TICK || ++ticks < 2)
			continue;
		assert_true(t->id[0] == 1 && t->id[1] == ROW_FREE && t->id[2] == 3);
		assert_true(t->cell[0] == 5 && t->valid[0] == 1); /* said again, and nothing new */
		assert_true(
			t->cell[2] == 0 && t->valid[2] == 0 && t->before[2] == 15 && t->valid_before[2] == 1);
		assert_int_equal(t->nr_touched, 1);
		assert_int_equal(t->touched[0], 2);
	}
	assert_int_equal(ticks, 2);
	store_close(r);
	buf_release(&f.bytes);
	buf_release(&f.content);
}

static void test_no_recording(void **state)
{
	static const char text[] =
		"This is not a recording, though it is long enough to hold a header. \xd5TC1 \xd5TC1";
	struct store_reader *r;

	(void)state;
	assert_int_equal(read_bytes("", 0), -EBADMSG);
	reading_release(&reading);
	assert_int_equal(read_bytes(text, sizeof(text)), -EBADMSG);
	reading_release(&reading);
	assert_int_equal(store_open("/dev/zero", &r), -EBADMSG);
	assert_int_equal(store_open("/", &r), -EISDIR);
	assert_int_equal(store_open("/nonexistent", &r), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_at_every_byte_while_growing),
		cmocka_unit_test(test_cut_and_opened),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_random_surgery),
		cmocka_unit_test(test_two_recordings_in_one_file),
		cmocka_unit_test(test_foreign_blocks),
		cmocka_unit_test(test_bytes_that_come_after_the_length),
		cmocka_unit_test(test_blocks_out_of_order),
		cmocka_unit_test(test_hostile_records),
		cmocka_unit_test(test_unknown_things_are_skipped),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_schema_missing_doubled_or_contradicted),
		cmocka_unit_test(test_rows_far_apart),
		cmocka_unit_test(test_what_a_segment_does_not_restate),
		cmocka_unit_test(test_no_recording),
	};
	const char *dir = getenv("TMPDIR"), *torture = getenv("TACHO_TORTURE");
	int failed;

	full = torture && !strcmp(torture, "full");
	snprintf(path, sizeof(path), "%s/test_store_damage.%d.tacho", dir ? dir : "/tmp", (int)getpid());
	make_original(7, 40, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	drop_original();
	unlink(path);
	return failed;
}
