/* The recording: what goes in comes out, whatever happens to the file in between. */
#include "store_world.h"

#include "base/str.h"
#include "store/append.h"
#include "store/crc32c.h"
#include "store/format.h"
#include "store/identity.h"
#include "store/limits.h"
#include "store/scan.h"

#include <fcntl.h>
#include <malloc.h>
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

static void test_schema_meta_wall_and_summary(void **state)
{
	struct pair pair[4];
	char text[100];
	struct pairs meta;
	struct store_reader *r;
	struct store_record rec;
	unsigned metas = 0;
	int64_t offset;

	(void)state;
	world_init(&world, 1, path);
	pairs_init(&meta, pair, ARRAY_SIZE(pair), text, sizeof(text));
	pairs_str(&meta, "command", "true");
	pairs_add(&meta, "bytes", "a\0b\xff\n", 5);
	assert_int_equal(store_meta(world.w, &meta), 0);
	store_wall(world.w, 100, 5000000000);
	world_live(&world, 3, 1);
	assert_int_equal(store_meta(world.w, &meta), 0); /* in the middle of a segment */
	world_live(&world, 3, 0);
	world_finish(&world);

	assert_int_equal(store_open(path, &r), 0);
	assert_null(store_reader_schema(r));
	while (store_next(r, &rec) > 0) {
		assert_int_not_equal(rec.type, STORE_LOST);
		if (rec.type != STORE_META)
			continue;
		metas++;
		assert_int_equal(pairs_find(rec.pairs, "bytes")->len, 5);
		assert_memory_equal(pairs_find(rec.pairs, "bytes")->value, "a\0b\xff\n", 5);
	}
	assert_int_equal(metas, 2);
	assert_true(store_reader_wall(r, &offset));
	assert_int_equal(offset, 5000000000 - 100);

	const struct schema *s = store_reader_schema(r);
	assert_int_equal(s->nr_sets, WORLD_SETS);
	for (uint32_t i = 0; i < WORLD_SETS; i++) {
		const struct schema_set *a = &s->set[i], *b = &world.schema->set[i];

		assert_string_equal(a->name, b->name);
		assert_string_equal(a->summary, b->summary);
		assert_string_equal(a->domain_name, b->domain_name);
		assert_int_equal(a->domain, b->domain);
		assert_int_equal(a->nr_metrics, b->nr_metrics);
		for (uint32_t k = 0; k < a->nr_metrics; k++) {
			const struct schema_metric *m = &a->metric[k], *n = &b->metric[k];

			assert_string_equal(m->name, n->name);
			assert_string_equal(m->help, n->help);
			assert_true(!m->panel == !n->panel && (!m->panel || !strcmp(m->panel, n->panel)));
			assert_true(m->kind == n->kind && m->fold == n->fold && m->unit == n->unit &&
				m->tier == n->tier);
			assert_true(m->scale == n->scale && m->availability == n->availability);
			assert_true(!m->why == !n->why && (!m->why || !strcmp(m->why, n->why)));
		}
	}
	store_close(r);
	world_release(&world);
}

/* After every flush the reader has everything, and says that the recorder lives. */
static void test_following(void **state)
{
	struct store_reader *r;

	(void)state;
	world_init(&world, 21, path);
	store_set_limits(world.w, &small);
	reading_init(&reading);
	assert_int_equal(store_open(path, &r), 0);
	for (unsigned i = 1; i <= 50; i++) {
		world_live(&world, 1, i % 3 == 0);
		reading_go_on(&reading, r, &world);
		assert_int_equal(reading.ticks, i / 3 * 3);
		assert_true(reading.health.writing);
		assert_false(reading.health.complete);
	}
	world_finish(&world);
	reading_go_on(&reading, r, &world);
	assert_same_text(&reading.log, &world.log);
	assert_false(reading.health.writing);
	assert_true(reading.health.complete);
	store_close(r);
	reading_release(&reading);
	world_release(&world);
}

/* The same of a reader that gives file and buffers back after each look. */
static void test_following_with_rests(void **state)
{
	char other[sizeof(path) + 8];
	unsigned rests = 0;
	struct store_reader *r;

	(void)state;
	snprintf(other, sizeof(other), "%s.other", path);
	world_init(&world, 21, path);
	store_set_limits(world.w, &small);
	reading_init(&reading);
	assert_int_equal(store_open(path, &r), 0);
	for (unsigned i = 1; i <= 50; i++) {
		bool rested = store_rest(r, false);

		rests += rested;
		assert_true(!rested || store_reader_fd(r) < 0);
		world_live(&world, 1, i % 3 == 0);
		assert_int_equal(rested ? store_wake(r, path) : 0, 0);
		reading_go_on(&reading, r, &world);
		assert_int_equal(reading.ticks, i / 3 * 3);
	}
	assert_true(rests > 40);
	assert_true(store_rest(r, false));
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(store_wake(r, path), -ESTALE);
	assert_int_equal(store_wake(r, "/dev/null"), -ESTALE);
	assert_int_equal(store_wake(r, other), 0);
	world_finish(&world);
	reading_go_on(&reading, r, &world);
	assert_same_text(&reading.log, &world.log);
	assert_true(reading.health.complete);
	assert_true(store_rest(r, true));
	assert_true(store_wake(r, other) < 0); /* all was read */
	store_close(r);
	unlink(other);
	reading_release(&reading);
	world_release(&world);
}

/* ---- the disk is full ---- */

static void limit_file(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = MIN(bytes, l.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_full_disk_for_a_while(void **state)
{
	(void)state;
	world_init(&world, 31, path);
	store_set_limits(world.w, &small);
	world_live(&world, 5, 1);
	/* Blocks are written in part, down to a single byte, and continued. */
	for (unsigned i = 0; i < 40; i++) {
		limit_file(store_bytes(world.w) + 1 + i * i * 7);
		world_live(&world, 1, 0);
		assert_int_equal(store_flush(world.w), -EFBIG);
		assert_true(store_bytes(world.w) > 0);
	}
	read_all(path); /* what is there is good, the end is unfinished */
	assert_int_equal(reading.lost, 0);
	assert_false(reading.health.complete);
	reading_release(&reading);

	limit_file(RLIM_INFINITY);
	assert_int_equal(store_flush(world.w), 0);
	world_live(&world, 5, 1);
	world_finish(&world);
	read_all(path);
	assert_same_text(&reading.log, &world.log);
	assert_true(reading.health.complete);
	assert_int_equal(reading.health.damaged, 0);
	reading_release(&reading);
	world_release(&world);
}

static uint64_t gap_ticks(void)
{
	const char *gap = strstr((char *)reading.log.data, "event gap");
	unsigned long long ticks = 0;

	assert_non_null(gap);
	assert_int_equal(sscanf(gap, "event gap %*d ticks=%llu", &ticks), 1);
	return ticks;
}

static void test_full_disk_for_long(void **state)
{
	struct store_limits limits = small;
	unsigned missing;

	(void)state;
	limits.pending_bytes = 20000;
	world_init(&world, 32, path);
	store_set_limits(world.w, &limits);
	world.rows = 30;
	world_live(&world, 5, 1);
	limit_file(store_bytes(world.w) + 10);
	for (unsigned i = 0; i < 100; i++) {
		world_live(&world, 1, 0);
		assert_int_equal(store_flush(world.w), -EFBIG);
	}
	limit_file(RLIM_INFINITY);
	assert_int_equal(store_flush(world.w), 0);
	world_live(&world, 10, 1);
	world_finish(&world);
	read_all(path); /* compares the states of all ticks that it finds */
	assert_int_equal(reading.lost, 1);
	assert_int_equal(reading.summaries, 1);
	missing = 115 - reading.ticks;
	assert_true(missing > 10 && missing < 100);
	assert_int_equal(gap_ticks(), missing);
	assert_int_equal(reading.last_tick, world.tick);
	reading_release(&reading);
	world_release(&world);
}

/* What waits cannot be written any more: the last blocks of the file make room for the summary. */
static void test_full_disk_at_the_end(void **state)
{
	struct pair pair[1];
	char text[20];
	struct pairs summary;
	struct stat before, after;

	(void)state;
	pairs_init(&summary, pair, 1, text, sizeof(text));
	pairs_num(&summary, "exit", 0);
	world_init(&world, 33, path);
	world_live(&world, 5, 1);
	assert_int_equal(stat(path, &before), 0);
	limit_file((rlim_t)before.st_size + 10);
	/* Longer than the writer remembers blocks, and with one of another kind among them. */
	for (int i = 0; i < 2 * APPEND_LAST; i++)
		world_live(&world, 1, 1);
	store_meta(world.w, &summary);
	assert_int_equal(store_finish(world.w, &summary), -EFBIG);
	world.w = NULL;
	limit_file(RLIM_INFINITY);
	assert_int_equal(stat(path, &after), 0);
	assert_true(after.st_size <= before.st_size + 10);
	read_all(path);
	assert_int_equal(reading.ticks, 4); /* the last one made room for the end mark */
	assert_int_equal(reading.summaries, 1);
	assert_int_equal(reading.lost, 0); /* the end mark says what is missing: it is no damage */
	reading_release(&reading);
	world_release(&world);
}

/* ---- segments ---- */

static unsigned count_segments(uint64_t *offset, unsigned max)
{
	struct scan s;
	struct scan_item item;
	unsigned nr = 0;

	assert_int_equal(scan_init(&s, open(path, O_RDONLY | O_CLOEXEC)), 0);
	while (scan_next(&s, &item) == SCAN_BLOCK)
		if (item.header.type == BLOCK_SEGMENT && item.header.flags & BLOCK_FIRST) {
			assert_true(nr < max);
			offset[nr++] = item.offset;
		}
	scan_release(&s);
	return nr;
}

/* One set, `nr` instances; at each tick every cell of every instance moves, or none does. */
static unsigned segments_of(bool active, uint32_t nr, unsigned ticks, uint64_t *offset, unsigned max)
{
	struct pair pair[1];
	char text[100];
	struct pairs who;
	struct table t, *tables[1] = {&t};
	struct schema *schema = schema_new();
	struct schema_set *set = schema_add_set(schema, "s", "", "process");
	struct store_limits limits = store_limits_default;
	struct store_writer *w;
	size_t allocated = 0;

	for (unsigned i = 0; i < 8; i++)
		schema_add_metric(set, "m", "", NULL);
	assert_int_equal(table_init(&t, 8, nr), 0);
	assert_int_equal(store_create(path, true, &w), 0);
	if (active)
		limits.prolong = 2;
	store_set_limits(w, &limits);
	assert_int_equal(store_schema(w, schema), 0);
	for (uint32_t row = 0; row < nr; row++) {
		pairs_init(&who, pair, 1, text, sizeof(text));
		pairs_num(&who, "pid", row * 7919 % 32768);
		store_instance(w, 0, row, row + 1, 0, &who);
		table_bind(&t, row, row + 1);
		table_touch(&t, row);
		for (uint32_t c = 0; c < 8; c++)
			table_set(&t, row, c, (int64_t)(row * UINT64_C(0x9e3779b97f4a7c15) >> (20 + c)));
	}
	for (unsigned i = 0; i < ticks; i++) {
		for (uint32_t row = 0; active && row < nr; row++) {
			table_touch(&t, row);
			for (uint32_t c = 0; c < 8; c++)
				t.cell[row * 8 + c] += (int64_t)((row + 1) * (i + 1) * (c + 3) *
						UINT64_C(0x9e3779b97f4a7c15) >>
					47);
		}
		store_tick(w, i, i * NSEC_PER_SEC, 0, tables);
		store_flush(w);
		table_settle(&t);
		if (i == 0)
			allocated = mallinfo2().uordblks;
	}
	/* Nothing is allocated while recording (sanitizers answer 0 twice). */
	assert_int_equal(mallinfo2().uordblks, allocated);
	pairs_reset(&who);
	assert_int_equal(store_finish(w, &who), 0);
	table_release(&t);
	schema_free(schema);
	return count_segments(offset, max);
}

static void test_segments_last_as_long_as_they_pay(void **state)
{
	uint64_t offset[100];
	struct stat st;

	(void)state;
	assert_int_equal(segments_of(true, 100, 600, offset, 100), 10);	  /* one a minute */
	assert_int_equal(segments_of(false, 1000, 3600, offset, 100), 2); /* half an hour at most */
	assert_int_equal(stat(path, &st), 0);
	assert_true((double)st.st_size / 3600 / 1000 < 0.1); /* bytes per idle process and tick */
}

static void test_index_tells_where_segments_start(void **state)
{
	uint64_t offset[100], at = 0;
	unsigned nr = segments_of(true, 100, 600, offset, 100), i;
	struct scan s;
	struct scan_item item;
	struct view v = {0};
	int64_t time = 0;

	(void)state;
	assert_int_equal(scan_init(&s, open(path, O_RDONLY | O_CLOEXEC)), 0);
	while (scan_next(&s, &item) == SCAN_BLOCK && item.header.type != BLOCK_INDEX)
		;
	assert_int_equal(item.header.type, BLOCK_INDEX);
	v = view_of(item.payload, item.header.length);
	assert_int_equal(view_varint(&v), nr);
	for (i = 0; i < nr; i++) {
		at += view_varint(&v);
		time += unzigzag(view_varint(&v));
		assert_int_equal(at, offset[i]);
		assert_int_equal(time, i * 60 * NSEC_PER_SEC);
	}
	assert_false(v.bad);
	assert_true(v.p == v.end);
	scan_release(&s);
}

/* ---- identities ---- */

static size_t make_identity(
	struct pairs *p, uint32_t n, char *line, size_t size, uint8_t *out, size_t out_size)
{
	struct buf b;

	memset(line, 'a' + (int)(n % 26), size);
	pairs_reset(p);
	pairs_num(p, "pid", n);
	pairs_add(p, "cmdline", line, size);
	buf_init_fixed(&b, out, out_size);
	pairs_encode(p, &b);
	assert_int_equal(b.err, 0);
	return b.len;
}

/* Lives come and go for long in little memory, and every text is its owner's. */
static void test_identities_in_bounded_memory(void **state)
{
	static uint32_t owner[1000];
	static char line[10000];
	static uint8_t encoded[12000];
	struct identities all;
	struct pair pair[4];
	char text[64];
	struct pairs p;
	unsigned whole = 0, brief = 0;
	size_t n;

	(void)state;
	pairs_init(&p, pair, ARRAY_SIZE(pair), text, sizeof(text));
	assert_int_equal(identities_init(&all, 2), 0);
	all.bound = 300000;
	for (uint32_t i = 1; i < 20000; i++) {
		uint32_t row = i * 7919 % 1000;

		if (owner[row] && i % 3 == 0) {
			identity_clear(&all, 1, row);
			owner[row] = 0;
			continue;
		}
		n = make_identity(&p, i, line, i % 50 ? i % 600 : 9000, encoded, sizeof(encoded));
		identity_set(&all, 1, row, i, i, &p, encoded, n);
		owner[row] = i;
		assert_true(all.end <= all.bound);
	}
	for (uint32_t row = 0; row < 1000; row++) {
		const struct identity *i = identity_of(&all, 1, row);
		size_t got;
		const uint8_t *said = identity_text(&all, i, &got);

		assert_int_equal(i->id, owner[row]);
		if (!owner[row])
			continue;
		n = make_identity(&p, owner[row], line, owner[row] % 50 ? owner[row] % 600 : 9000, encoded,
			sizeof(encoded));
		assert_int_equal(i->time_ns, owner[row]);
		if (i->shortened) {
			brief++;
			assert_true(got < n || n < 100);
			continue;
		}
		whole++;
		assert_int_equal(got, n);
		assert_memory_equal(said, encoded, n);
	}
	assert_true(whole > 100 && brief > 0);
	assert_null(identity_of(&all, 2, 0));
	assert_null(identity_of(&all, 0, IDENTITY_ROWS_MAX));
	identities_release(&all);
}

/* A very long identity is told whole once; its shortened restatement is not told to those who know better. */
static void test_shortened_identities_do_not_replace_whole_ones(void **state)
{
	static char line[20000];
	struct pair pair[1];
	char text[10];
	struct pairs who;
	struct store_reader *r;
	struct store_record rec;
	unsigned told = 0;

	(void)state;
	memset(line, 'x', sizeof(line));
	world_init(&world, 41, path);
	store_set_limits(world.w, &small);
	pairs_init(&who, pair, 1, text, sizeof(text));
	pairs_add(&who, "cmdline", line, sizeof(line));
	store_instance(world.w, 1, 5, 4000000000, 0, &who);
	for (unsigned i = 0; i < 30; i++)
		store_tick(world.w, i, i * NSEC_PER_SEC, 0, world.tables);
	pairs_reset(&who);
	assert_int_equal(store_finish(world.w, &who), 0);
	world.w = NULL;
	assert_int_equal(store_open(path, &r), 0);
	while (store_next(r, &rec) > 0) {
		assert_int_not_equal(rec.type, STORE_LOST);
		if (rec.type != STORE_INSTANCE)
			continue;
		told++;
		assert_int_equal(rec.pairs->pair[0].len, sizeof(line));
	}
	assert_int_equal(told, 1);
	assert_int_equal(store_reader_table(r, 1)->id[5], 4000000000);
	store_close(r);
	world_release(&world);
}

/* ---- creating ---- */

/* What is recorded before all sets are known follows the schema; until then the file has nothing of it. */
static void test_records_wait_for_the_schema(void **state)
{
	uint64_t before;

	(void)state;
	world_begin(&world, 31, path);
	before = store_bytes(world.w);
	assert_int_equal(store_sets(world.w, world.schema), 0);
	world_live(&world, 20, 0);
	assert_int_equal(store_flush(world.w), 0);
	assert_int_equal(store_bytes(world.w), before);
	assert_int_equal(store_schema(world.w, world.schema), 0);
	assert_int_equal(store_schema(world.w, world.schema), -EALREADY);
	world_live(&world, 20, 7);
	world_finish(&world);
	read_all(path);
	assert_same_text(&reading.log, &world.log);
	assert_int_equal(reading.ticks, 40);
	assert_true(reading.health.complete);
	assert_int_equal(reading.health.damaged, 0);
	reading_release(&reading);
	world_release(&world);
}

/* A set that comes with the schema may be used from then on; more than can be held back is a gap. */
static void test_too_much_before_the_schema_is_a_gap(void **state)
{
	struct schema *schema = schema_new();
	struct store_record rec;
	struct store_reader *r;
	struct store_writer *w;
	struct pair pair[1];
	char text[8], name[4001];
	struct pairs who;
	unsigned seen = 0, gaps = 0, later = 0, lost = 0;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	schema_add_metric(schema_add_set(schema, "s", "", "process"), "m", "", NULL);
	assert_int_equal(store_create(path, true, &w), 0);
	assert_int_equal(store_sets(w, schema), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		pairs_init(&who, pair, 1, text, sizeof(text));
		pairs_str(&who, "name", name);
		store_instance(w, 0, STORE_NO_ROW, i + 1, i, &who);
	}
	schema_add_metric(schema_add_set(schema, "late", "", "node"), "n", "", NULL);
	assert_int_equal(store_schema(w, schema), 0);
	store_instance(w, 1, 0, 1, 4000, &who);
	assert_int_equal(store_finish(w, &who), 0);
	assert_int_equal(store_open(path, &r), 0);
	while (store_next(r, &rec) > 0) {
		seen += rec.type == STORE_INSTANCE && rec.set == 0;
		later += rec.type == STORE_INSTANCE && rec.set == 1;
		gaps += rec.type == STORE_EVENT && !strcmp(rec.kind, "gap") &&
			pairs_find(rec.pairs, "error"); /* not the disk's fault */
		lost += rec.type == STORE_LOST;
	}
	assert_in_range(seen, 1000, 2999);
	assert_int_equal(gaps, 1);
	assert_int_equal(later, 1);
	assert_int_equal(lost, 0);
	store_close(r);
	schema_free(schema);
}

/* What is read back of a recording whose schema was prepared with so many sets, and written with so many. */
static void expect_prepared(unsigned sets_before, unsigned sets)
{
	static const char *const name[] = {"a", "b", "c"};
	struct schema *schema = schema_new();
	struct store_record rec;
	struct store_reader *r;
	struct store_writer *w;
	struct pair pair[1];
	char text[8];
	struct pairs none;
	unsigned schemas = 0;

	pairs_init(&none, pair, 1, text, sizeof(text));
	assert_int_equal(store_create(path, STORE_REPLACE, &w), 0);
	for (unsigned i = 0; i < sets; i++) {
		struct schema_metric *m = schema_add_metric(
			schema_add_set(schema, name[i], "", "node"), name[i], "Help.", NULL);

		m->scale = i + 1;
		if (i + 1 != sets_before)
			continue;
		assert_int_equal(store_sets(w, schema), 0);
		store_prepare(w, schema);
	}
	store_instance(w, 0, 0, 1, 5, &none);
	assert_int_equal(store_schema(w, schema), 0);
	store_prepare(w, schema); /* nothing to prepare any more */
	assert_int_equal(store_finish(w, &none), 0);
	assert_int_equal(store_open(path, &r), 0);
	while (store_next(r, &rec) > 0) {
		assert_int_not_equal(rec.type, STORE_LOST);
		if (rec.type != STORE_SCHEMA)
			continue;
		schemas++;
		assert_int_equal(store_reader_schema(r)->nr_sets, sets);
		for (unsigned i = 0; i < sets; i++) {
			assert_string_equal(store_reader_schema(r)->set[i].metric[0].name, name[i]);
			assert_true(store_reader_schema(r)->set[i].metric[0].scale == i + 1);
		}
	}
	assert_int_equal(schemas, 1);
	store_close(r);
	schema_free(schema);
}

static void test_schema_prepared(void **state)
{
	(void)state;
	expect_prepared(2, 2);
	expect_prepared(2, 3); /* another set came: what was prepared is of no use */
}

static void test_create(void **state)
{
	struct store_writer *w, *other;
	struct store_reader *r;
	struct store_record rec;
	struct stat st;
	char dir[220], link[220];

	(void)state;
	unlink(path);
	umask(0);
	assert_int_equal(store_create(path, false, &w), 0);
	umask(022);
	assert_string_equal(store_path(w), path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_bytes(w), st.st_size);
	/* Empty, valid, alive. */
	assert_int_equal(store_open(path, &r), 0);
	assert_int_equal(store_next(r, &rec), 0);
	store_close(r);
	assert_int_equal(store_create(path, false, &other), -EEXIST);
	assert_int_equal(store_create(path, true, &other), 0);
	store_abandon(other);
	store_abandon(w);

	/* Nothing but a file or a link is ever replaced. */
	snprintf(dir, sizeof(dir), "%s.d", path);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(store_create(dir, true, &w), -EEXIST);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(store_create("/dev/null", true, &w), -EEXIST);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink("/dev/null", link), 0);
	assert_int_equal(store_create(link, false, &w), -EEXIST);
	assert_int_equal(store_create(link, true, &w), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	store_abandon(w);
	unlink(link);
	assert_int_equal(store_create("/nonexistent/x.tacho", true, &w), -ENOENT);
}

static void assert_created(const char *name, unsigned naming, const char *expected, struct store_writer **ret)
{
	char given[300], made[300];

	snprintf(given, sizeof(given), "%s-%s", path, name);
	snprintf(made, sizeof(made), "%s-%s", path, expected);
	assert_int_equal(store_create(given, naming, ret), 0);
	assert_string_equal(store_path(*ret), made);
}

static void test_create_numbered(void **state)
{
	static const char *const made[] = {"x.tacho", "x-2.tacho", "x-3.tacho", "x-4.tacho", "x", "x-2"};
	struct store_writer *w[ARRAY_SIZE(made)], *again;
	char name[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		assert_created(i < 4 ? "x.tacho" : "x", STORE_NUMBER, made[i], &w[i]);
	/* A number that is free, though not always the lowest. */
	snprintf(name, sizeof(name), "%s-x-3.tacho", path);
	assert_int_equal(unlink(name), 0);
	assert_created("x.tacho", STORE_NUMBER, "x-5.tacho", &again);
	store_abandon(again);
	/* A recording that somebody writes is not replaced; one that is over is. */
	assert_created("x.tacho", STORE_REPLACE | STORE_NUMBER, "x-6.tacho", &again);
	store_abandon(again);
	w[0] = store_abandon(w[0]);
	assert_created("x.tacho", STORE_REPLACE | STORE_NUMBER, "x.tacho", &w[0]);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		snprintf(name, sizeof(name), "%s-%s", path, i == 2 ? "x-5.tacho" : made[i]);
		assert_int_equal(unlink(name), 0);
		store_abandon(w[i]);
	}
	snprintf(name, sizeof(name), "%s-x-6.tacho", path);
	assert_int_equal(unlink(name), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_schema_meta_wall_and_summary),
		cmocka_unit_test(test_following),
		cmocka_unit_test(test_following_with_rests),
		cmocka_unit_test(test_full_disk_for_a_while),
		cmocka_unit_test(test_full_disk_for_long),
		cmocka_unit_test(test_full_disk_at_the_end),
		cmocka_unit_test(test_segments_last_as_long_as_they_pay),
		cmocka_unit_test(test_index_tells_where_segments_start),
		cmocka_unit_test(test_identities_in_bounded_memory),
		cmocka_unit_test(test_shortened_identities_do_not_replace_whole_ones),
		cmocka_unit_test(test_records_wait_for_the_schema),
		cmocka_unit_test(test_too_much_before_the_schema_is_a_gap),
		cmocka_unit_test(test_schema_prepared),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_create_numbered),
	};
	const char *dir = getenv("TMPDIR");
	int failed;

	signal(SIGXFSZ, SIG_IGN);
	snprintf(path, sizeof(path), "%s/test_store.%d.tacho", dir ? dir : "/tmp", (int)getpid());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
