/* What a recording may cost its readers (store/guard.h). The writer itself makes both kinds of files: those
 * that a recorder can make are far within the limits, those that only somebody with bad intentions makes are
 * refused where they pass them. */
#include "store/guard.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

struct maker {
	char path[64];
	struct schema *schema;
	struct table table, *tables[1];
	struct store_writer *w;
	struct pair memory[16];
	char text[512];
	struct pairs pairs;
};

static void begin(struct maker *m)
{
	struct schema_set *set;

	*m = (struct maker){0};
	snprintf(m->path, sizeof(m->path), "/tmp/test_store_guard.%d.tacho", (int)getpid());
	m->schema = schema_new();
	set = schema_add_set(m->schema, "process", "", "process");
	for (unsigned i = 0; i < 30; i++)
		assert_non_null(schema_add_metric(set, "proc.metric", "", NULL));
	assert_int_equal(table_init(&m->table, 30, 1 << 17), 0);
	m->tables[0] = &m->table;
	pairs_init(&m->pairs, m->memory, ARRAY_SIZE(m->memory), m->text, sizeof(m->text));
	assert_int_equal(store_create(m->path, true, &m->w), 0);
	assert_int_equal(store_schema(m->w, m->schema), 0);
}

struct found {
	uint64_t bytes, lost, ticks, instances, events, ids;
	char reason[200];
};

static struct found end(struct maker *m)
{
	struct store_reader *r = NULL;
	struct store_record rec;
	struct found f = {0};
	struct stat st;
	int e;

	pairs_reset(&m->pairs);
	assert_int_equal(store_finish(m->w, &m->pairs), 0);
	assert_int_equal(stat(m->path, &st), 0);
	f.bytes = (uint64_t)st.st_size;
	assert_int_equal(store_open(m->path, &r), 0);
	while ((e = store_next(r, &rec)) > 0) {
		f.ticks += rec.type == STORE_TICK;
		f.events += rec.type == STORE_EVENT;
		f.instances += rec.type == STORE_INSTANCE;
		f.ids += rec.type == STORE_INSTANCE && !rec.again;
		if (rec.type == STORE_LOST && !f.lost++)
			snprintf(f.reason, sizeof(f.reason), "%s", rec.reason);
	}
	assert_int_equal(e, 0);
	store_close(r);
	table_release(&m->table);
	schema_free(m->schema);
	unlink(m->path);
	return f;
}

/* A process with a command line of so many bytes; only its numbers differ from those of others. */
static void join(struct maker *m, uint32_t row, uint32_t id, int64_t now, size_t cmdline)
{
	static char command[4096];

	memset(command, 'x', sizeof(command));
	pairs_reset(&m->pairs);
	pairs_num(&m->pairs, "pid", id);
	pairs_num(&m->pairs, "start_ns", now / 10000000 * 10000000);
	pairs_str(&m->pairs, "name", "worker");
	pairs_add(&m->pairs, "cmdline", command, cmdline);
	if (row != STORE_NO_ROW)
		table_bind(&m->table, row, id);
	store_instance(m->w, 0, row, id, now, &m->pairs);
}

/* ---- what a recorder writes ---- */

static void test_an_idle_day_is_far_within(void **state)
{
	struct maker m;
	struct found f;

	(void)state;
	store_set_expansion(STORE_EXPANSION / 16);
	begin(&m);
	join(&m, 0, 1, 0, 20);
	for (uint64_t i = 1; i <= 86400; i++) {
		store_tick(m.w, i, (int64_t)i * SECOND, 0, m.tables);
		store_flush(m.w);
	}
	f = end(&m);
	store_set_expansion(STORE_EXPANSION);
	assert_int_equal(f.lost, 0);
	assert_int_equal(f.ticks, 86400);
}

/* A millisecond between ticks that are exact to the ns, and nothing in them: as only a film has it. */
static void test_quick_ticks_are_within(void **state)
{
	struct maker m;
	struct found f;

	(void)state;
	begin(&m);
	join(&m, 0, 1, 0, 20);
	for (uint64_t i = 1; i <= 60000; i++) {
		store_tick(m.w, i, (int64_t)i * SECOND / 1000, 0, m.tables);
		if (i % 1000 == 0)
			store_flush(m.w);
	}
	f = end(&m);
	assert_int_equal(f.lost, 0);
	assert_int_equal(f.ticks, 60000);
}

/* Processes that differ in nothing but PID and time, with the longest command lines that are recorded; all
 * are said again with every segment. */
static void test_ten_thousand_like_processes_are_within(void **state)
{
	const uint32_t nr = 10000;
	uint64_t seed = 1;
	struct maker m;
	struct found f;

	(void)state;
	begin(&m);
	for (uint32_t i = 0; i < nr; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		join(&m, i, i + 1, (int64_t)(i * UINT64_C(20000) + (seed >> 50)), 4095);
		for (uint32_t k = 0; k < 30; k++)
			table_set(&m.table, i, k, 1);
		table_touch(&m.table, i);
		if (i % 1000 == 999)
			store_flush(m.w);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		store_tick(m.w, i, (int64_t)i * 3600 * SECOND, 0, m.tables);
		table_settle(&m.table);
		store_flush(m.w);
	}
	f = end(&m);
	print_message("%llu bytes\n", (unsigned long long)f.bytes);
	assert_int_equal(f.lost, 0);
	assert_int_equal(f.ids, nr);
	assert_int_equal(f.ticks, 3);
}

/* ---- what nobody records ---- */

static void assert_refused(const struct found *f, enum guard_item item)
{
	if (f->lost != 1 || strcmp(f->reason, guard_reason(item)))
		fail_msg("lost %llu: %s", (unsigned long long)f->lost, f->reason);
	assert_non_null(strstr(f->reason, "--max-expansion"));
}

static void test_more_than_its_size_explains(void **state)
{
	struct maker m;
	struct found f;

	(void)state;
	begin(&m);
	for (unsigned i = 0; i < 1000000; i++)
		store_tick(m.w, 1, SECOND, 0, m.tables);
	f = end(&m);
	assert_refused(&f, GUARD_TICKS);
	assert_in_range(f.ticks, 65536, 65536 + 64 * f.bytes);

	begin(&m);
	pairs_str(&m.pairs, "name", "a");
	for (unsigned i = 0; i < 1000000; i++)
		store_event(m.w, 0, "mark", &m.pairs);
	f = end(&m);
	assert_refused(&f, GUARD_EVENTS);
	assert_in_range(f.events, 65536, 65536 + f.bytes / 2);

	begin(&m);
	for (unsigned i = 0; i < 100000; i++)
		join(&m, 0, 1, 0, 4095);
	f = end(&m);
	assert_refused(&f, GUARD_CONTENT);
	assert_in_range(f.instances, 4000, ((16 << 20) + 1024 * f.bytes) / 4096);

	begin(&m);
	pairs_reset(&m.pairs);
	for (unsigned i = 0; i < 1000000; i++)
		store_instance(m.w, 0, STORE_NO_ROW, i + 1, 0, &m.pairs);
	f = end(&m);
	assert_refused(&f, GUARD_INSTANCES);
	assert_in_range(f.instances, 65536, 65536 + f.bytes / 2);
}

static void test_an_id_that_ended_is_not_used_again(void **state)
{
	struct maker m;
	struct found f;

	(void)state;
	for (unsigned row = 0; row < 2; row++) {
		begin(&m);
		for (unsigned i = 0; i < 1000; i++) {
			join(&m, row ? 0 : STORE_NO_ROW, 7, 0, 10);
			store_gone(m.w, 0, row ? 0 : STORE_NO_ROW, 7, 0, &m.pairs);
		}
		f = end(&m);
		assert_int_equal(f.instances, 1);
		assert_int_equal(f.lost, 1);
		assert_string_equal(f.reason, "an instance has the id of one that had ended");
	}
}

/* ---- ids ---- */

static void test_ids_of_any_order(void **state)
{
	struct guard g = {0};

	(void)state;
	assert_int_equal(guard_init(&g, 2), 0);
	for (uint32_t i = 1; i < 20000; i++) {
		uint32_t id = i * UINT32_C(0x9e3779b1);

		assert_int_equal(guard_instance(&g, 1, id, false, 0), 0);
		assert_int_equal(guard_instance(&g, 1, id, false, 0), 0);
		assert_int_equal(guard_instance(&g, 1, id, true, 0), 0);
		assert_int_equal(guard_instance(&g, 0, id, i % 2, 0), 0);
	}
	assert_int_equal(g.nr[GUARD_INSTANCES], 2 * 19999);
	for (uint32_t i = 1; i < 20000; i++) {
		uint32_t id = i * UINT32_C(0x9e3779b1);

		assert_int_equal(guard_instance(&g, 1, id, i % 2, 0), -EBADMSG);
		assert_int_equal(guard_instance(&g, 0, id, false, 0), i % 2 ? -EBADMSG : 0);
	}
	guard_release(&g);
}

static void test_counts_do_not_overflow(void **state)
{
	struct guard g = {0};

	(void)state;
	assert_int_equal(guard_count(&g, GUARD_CONTENT, UINT64_C(1) << 62, UINT64_MAX), 0);
	assert_int_equal(guard_count(&g, GUARD_CONTENT, 0, 1000), -EDQUOT);
	store_set_expansion(0);
	assert_int_equal(guard_count(&g, GUARD_CONTENT, 0, 1000), 0);
	store_set_expansion(STORE_EXPANSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_idle_day_is_far_within),
		cmocka_unit_test(test_quick_ticks_are_within),
		cmocka_unit_test(test_ten_thousand_like_processes_are_within),
		cmocka_unit_test(test_more_than_its_size_explains),
		cmocka_unit_test(test_an_id_that_ended_is_not_used_again),
		cmocka_unit_test(test_ids_of_any_order),
		cmocka_unit_test(test_counts_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
