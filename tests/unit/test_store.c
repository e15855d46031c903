/* The recording: what goes in comes out, whatever happens to the file in between. */
#include "store_world.h"

#include "base/str.h"
#include "store/crc32c.h"
#include "store/format.h"
#include "store/limits.h"
#include "store/scan.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

static char path[200];
static struct world world;
static struct reading reading;

static const struct store_limits small = {
	.segment_ns = 10 * NSEC_PER_SEC,
	.segment_bytes = 1 << 20,
	.prolong = 0,
	.segment_max_ns = 60 * NSEC_PER_SEC,
	.block_bytes = 256 << 10,
	.pending_bytes = 4 << 20,
};

static void assert_same_text(const struct buf *a, const struct buf *b)
{
	size_t n = MIN(a->len, b->len), line = 1;

	for (size_t i = 0; i < n; i++) {
		line += a->data[i] == '\n';
		if (a->data[i] != b->data[i])
			fail_msg("line %zu differs: ...%.60s | ...%.60s", line, a->data + i, b->data + i);
	}
	assert_int_equal(a->len, b->len);
}

static void read_all(const char *from)
{
	struct store_reader *r;

	reading_init(&reading);
	assert_int_equal(store_open(from, &r), 0);
	reading_go_on(&reading, r, &world);
	store_close(r);
}

static void test_crc32c(void **state)
{
	uint8_t bytes[200];

	(void)state;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283); /* the check value of the catalogue */
	assert_int_equal(crc32c_portable("123456789", 9), 0xe3069283);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * 37);
		assert_int_equal(crc32c(bytes, i), crc32c_portable(bytes, i));
	}
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		world_init(&world, seed, path);
		if (seed % 3)
			store_set_limits(world.w, &small);
		world.busy = seed % 4 == 0;
		world_live(&world, seed == 1 ? 0 : 60, (unsigned)(seed % 5));
		world_finish(&world);
		read_all(path);
		assert_same_text(&reading.log, &world.log);
		assert_int_equal(reading.lost, 0);
		assert_int_equal(reading.summaries, 1);
		assert_true(reading.health.complete);
		assert_int_equal(reading.health.good_bytes, reading.health.bytes);
		assert_true(seed % 3 == 0 || seed == 1 || reading.again > 0);
		reading_release(&reading);
		world_release(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_round_trip),
	};
	const char *dir = getenv("TMPDIR");
	int failed;

	snprintf(path, sizeof(path), "%s/test_store.%d.tacho", dir ? dir : "/tmp", (int)getpid());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
