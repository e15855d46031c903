/* Beginning in the middle: what is read from there on is what a whole reading has there, nothing before it is
 * read, and damage that lies before it is not met. */
#include "store_world.h"

#include "store/crc32c.h"
#include "store/format.h"
#include "store/limits.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "bytes_read.h"

static char path[200];
static struct world world;
static struct reading whole, part;

static const struct store_limits short_segments = {
	.segment_ns = 2 * NSEC_PER_SEC,
	.segment_bytes = 1 << 20,
	.segment_max_ns = 60 * NSEC_PER_SEC,
	.block_bytes = 256 << 10,
	.pending_bytes = 4 << 20,
};

static void make(uint64_t seed, unsigned ticks, bool finish)
{
	world_init(&world, seed, path);
	store_set_limits(world.w, &short_segments);
	world.rows = 4;
	world.busy = true;
	world_live(&world, ticks, 3);
	assert_int_equal(store_flush(world.w), 0);
	if (finish)
		world_finish(&world);
}

static struct store_reader *open_at_schema(void)
{
	struct store_reader *r;
	struct store_record rec;

	assert_int_equal(store_open(path, &r), 0);
	do
		assert_int_equal(store_next(r, &rec), 1);
	while (rec.type != STORE_SCHEMA);
	return r;
}

/* The index of the finished recording, changed: bytes of its payload, `at` bytes behind so many numbers, with
 * a checksum that is right unless it shall not be. */
static void change_index(size_t numbers, size_t at, const void *bytes, size_t size, bool right)
{
	static uint8_t payload[1 << 16];
	uint8_t header[BLOCK_HEADER];
	struct block_header h = {0};
	off_t place = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	for (;; place += BLOCK_HEADER + (off_t)h.length) {
		assert_int_equal(pread(fd, header, sizeof(header), place), sizeof(header));
		assert_true(block_header_get(header, &h));
		if (h.type == BLOCK_INDEX)
			break;
	}
	assert_true(h.length < sizeof(payload));
	assert_int_equal(pread(fd, payload, h.length, place + BLOCK_HEADER), h.length);
	for (size_t i = 0; numbers; i++, at++)
		numbers -= payload[i] < 0x80;
	assert_true(at + size <= h.length);
	memcpy(payload + at, bytes, size);
	if (right)
		h.crc = crc32c(payload, h.length);
	block_header_put(header, &h);
	assert_int_equal(pwrite(fd, header, sizeof(header), place), sizeof(header));
	assert_int_equal(pwrite(fd, payload, h.length, place + BLOCK_HEADER), h.length);
	close(fd);
}

/* Segments, by the headers of all blocks. */
static size_t segments_of_file(void)
{
	uint8_t bytes[BLOCK_HEADER];
	struct block_header h;
	uint64_t at = 0;
	size_t nr = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	for (; pread(fd, bytes, sizeof(bytes), (off_t)at) == BLOCK_HEADER; at += BLOCK_HEADER + h.length) {
		assert_true(block_header_get(bytes, &h));
		nr += h.type == BLOCK_SEGMENT && h.flags & BLOCK_FIRST;
	}
	close(fd);
	return nr;
}

static int64_t first_tick_from(int64_t time_ns)
{
	struct store_reader *r = open_at_schema();
	struct store_record rec;
	int e = store_seek(r, time_ns);

	assert_true(e >= 0);
	while ((e = store_next(r, &rec)) > 0 && rec.type != STORE_TICK)
		assert_int_not_equal(rec.type, STORE_LOST);
	store_close(r);
	assert_true(e > 0);
	return rec.time_ns;
}

static void read_whole(void)
{
	struct store_reader *r = open_at_schema();

	reading_init(&whole);
	whole.quiet = true;
	reading_go_on(&whole, r, &world);
	store_close(r);
}

/* All ticks that a whole reading has from there on, with their states, and no others. */
static void compare_from(int64_t time_ns, bool damaged)
{
	struct store_reader *r = open_at_schema();
	uint64_t first = 0;

	reading_init(&part);
	part.quiet = true;
	part.lost = 1; /* so that nobody is taken for known */
	assert_true(store_seek(r, time_ns) >= 0);
	reading_go_on(&part, r, &world);
	store_close(r);
	for (uint64_t t = 0; t < WORLD_TICKS; t++) {
		if (!first && part.seen[t])
			first = t;
		if (first)
			assert_int_equal(part.seen[t], whole.seen[t]);
	}
	assert_int_equal(part.last_tick, whole.last_tick);
	assert_int_equal(part.summaries, whole.summaries);
	assert_int_equal(part.health.complete, whole.health.complete);
	assert_int_equal(part.health.last_ns, whole.health.last_ns);
	if (!damaged)
		assert_int_equal(part.lost, 1);
	reading_release(&part);
}

/* Each tick's time leads to the segment that has the tick: no segment is left out, and none is behind. */
static void test_lands_at_the_latest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct store_record rec;
		struct store_reader *r;
		int64_t at, last = INT64_MIN, first = INT64_MAX;
		size_t landings = 0;

		make(seed, 300, seed % 2);
		r = open_at_schema();
		while (store_next(r, &rec) > 0) {
			if (rec.type != STORE_TICK)
				continue;
			first = MIN(first, rec.time_ns);
			at = first_tick_from(rec.time_ns);
			assert_true(at <= rec.time_ns && at >= last);
			landings += at != last;
			last = at;
		}
		store_close(r);
		assert_true(landings > 10);
		assert_int_equal(landings, segments_of_file());
		assert_int_equal(first_tick_from(INT64_MAX), last);
		assert_int_equal(first_tick_from(INT64_MIN), first); /* there is none: all of it */
		world_release(&world);
	}
}

static void test_the_rest_is_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		make(seed, 300, seed % 2);
		read_whole();
		for (int64_t at = 0; at < whole.health.last_ns; at += whole.health.last_ns / 15)
			compare_from(at, false);
		compare_from(INT64_MAX, false);
		reading_release(&whole);
		world_release(&world);
	}
}

/* Bytes are changed, or the end is cut off. */
static void test_of_a_damaged_file(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 9; seed++) {
		struct stat st;
		int fd;

		make(seed, 300, true);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0 && fstat(fd, &st) == 0);
		for (unsigned i = 0; i < seed; i++) {
			off_t at = st.st_size / 10 +
				(off_t)world_random(&world, (uint64_t)st.st_size * 9 / 10 - 20);

			assert_int_equal(pwrite(fd, "0123456789", 10, at), 10);
		}
		if (seed % 3 == 0)
			assert_int_equal(ftruncate(fd, st.st_size * 7 / 10), 0);
		close(fd);
		read_whole();
		for (int64_t at = 0; at < whole.health.last_ns; at += whole.health.last_ns / 15 + 1)
			compare_from(at, true);
		compare_from(INT64_MAX, true);
		reading_release(&whole);
		world_release(&world);
	}
}

/* About 6 MiB, for what 140 would show, too: the bytes go with the logarithm. */
static void test_what_is_passed_over_is_not_read(void **state)
{
	struct store_record rec;
	struct store_reader *r;
	struct stat st;
	uint64_t before, nr = 0;

	(void)state;
	world_init(&world, 3, path);
	store_set_limits(world.w, &short_segments);
	world.rows = 100;
	world.busy = true;
	world_live(&world, 1000, 1);
	store_flush(world.w);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 4 << 20);
	before = bytes_read();
	r = open_at_schema();
	assert_int_equal(store_seek(r, INT64_MAX), 1);
	while (store_next(r, &rec) > 0)
		nr += rec.type == STORE_TICK;
	assert_true(nr >= 1);
	assert_true(bytes_read() - before < (uint64_t)st.st_size / 4);
	/* What comes then is read at the price of what came. */
	before = bytes_read();
	world_live(&world, 1, 1);
	nr = store_bytes(world.w) - (uint64_t)st.st_size;
	while (store_next(r, &rec) > 0)
		;
	assert_true(bytes_read() - before <= nr + 4096);
	store_close(r);
	world_release(&world);
}

static uint64_t bytes_to_seek(int64_t time_ns)
{
	struct store_reader *r = open_at_schema();
	uint64_t before = bytes_read(), bytes;

	assert_int_equal(store_seek(r, time_ns), 1);
	bytes = bytes_read() - before;
	store_close(r);
	return bytes;
}

/* It saves most of what bisection reads, which is there when the index is damaged. */
static void test_the_index_is_used(void **state)
{
	uint64_t with, without;

	(void)state;
	world_init(&world, 3, path);
	store_set_limits(world.w, &short_segments);
	world.rows = 100;
	world.busy = true;
	world_live(&world, 1000, 1);
	world_finish(&world);
	with = bytes_to_seek(INT64_MAX);
	change_index(1, 0, "\xff", 1, false);
	without = bytes_to_seek(INT64_MAX);
	print_message("%zu bytes with the index, %zu without\n", (size_t)with, (size_t)without);
	assert_true(with < without / 2);
	world_release(&world);
}

/* An index that has the right checksum and says what is not so: as if there were none. */
static void test_of_a_wrong_index(void **state)
{
	static const struct {
		const char *what, *bytes;
		size_t numbers, at, size;
	} lie[] = {
		{"there are no segments", "\0", 0, 0, 1},
		{"there are more than there are", "\x7f", 0, 0, 1},
		{"the first begins in the middle of a block", "\x01", 1, 0, 1},
		{"the offset is no number", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 1, 0, 11},
		{"one begins behind the end", "\xff\xff\xff\xff\xff\x01", 1, 0, 6},
		{"the second began more than a second earlier", "\x04", 4, 4, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lie); i++) {
		int64_t right[15];

		make(i + 1, 300, true);
		read_whole();
		for (int k = 0; k < 15; k++)
			right[k] = first_tick_from(whole.health.last_ns / 15 * k + NSEC_PER_SEC);
		change_index(lie[i].numbers, lie[i].at, lie[i].bytes, lie[i].size, true);
		for (int k = 0; k < 15; k++) {
			int64_t at = whole.health.last_ns / 15 * k + NSEC_PER_SEC;

			compare_from(at, false);
			assert_int_equal(first_tick_from(at), right[k]);
		}
		reading_release(&whole);
		world_release(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lands_at_the_latest),
		cmocka_unit_test(test_the_rest_is_the_same),
		cmocka_unit_test(test_of_a_damaged_file),
		cmocka_unit_test(test_what_is_passed_over_is_not_read),
		cmocka_unit_test(test_the_index_is_used),
		cmocka_unit_test(test_of_a_wrong_index),
	};
	int fd, failed;

	snprintf(path, sizeof(path), "/tmp/test_store_seek_XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
