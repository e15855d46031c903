#include "store_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t widths[WORLD_SETS] = {1, 40, 64, 7};
static const char *const domains[WORLD_SETS] = {"node", "process", "cpu", "moon"};

uint64_t world_random(struct world *x, uint64_t below)
{
	x->random ^= x->random << 13;
	x->random ^= x->random >> 7;
	x->random ^= x->random << 17;
	return (x->random >> 8) % below;
}

static struct schema *make_schema(void)
{
	struct schema *s = schema_new();
	char name[40];

	for (uint32_t i = 0; i < WORLD_SETS; i++) {
		snprintf(name, sizeof(name), "set%u", i);
		struct schema_set *set = schema_add_set(s, name, "A set.", domains[i]);
		for (uint32_t j = 0; j < widths[i]; j++) {
			snprintf(name, sizeof(name), "set%u.metric%u", i, j);
			struct schema_metric *m =
				schema_add_metric(set, name, "Help.", j % 3 ? "panel" : NULL);
			m->kind = (enum metric_kind)(j % NR_KINDS);
			m->fold = (enum metric_fold)(j % NR_FOLDS);
			m->unit = (enum metric_unit)(j % NR_UNITS);
			m->tier = (enum metric_tier)(j % NR_TIERS);
			m->scale = 1.0 / (j + 1);
			if (j % 5 == 4)
				schema_metric_why(m, FORBIDDEN, "ask root");
		}
	}
	return s;
}

void world_begin(struct world *x, uint64_t seed, const char *path)
{
	memset(x, 0, sizeof(*x));
	x->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	x->next_id = 1;
	x->rows = WORLD_ROWS;
	x->schema = make_schema();
	buf_init(&x->log, (size_t)256 << 20);
	for (uint32_t i = 0; i < WORLD_SETS; i++) {
		assert_int_equal(table_init(&x->table[i], widths[i], WORLD_ROWS), 0);
		x->tables[i] = &x->table[i];
	}
	assert_int_equal(store_create(path, true, &x->w), 0);
}

void world_init(struct world *x, uint64_t seed, const char *path)
{
	world_begin(x, seed, path);
	assert_int_equal(store_schema(x->w, x->schema), 0);
}

void world_release(struct world *x)
{
	store_abandon(x->w);
	schema_free(x->schema);
	buf_release(&x->log);
	for (uint32_t i = 0; i < WORLD_SETS; i++)
		table_release(&x->table[i]);
}

static void log_pairs(struct buf *log, const struct pairs *p)
{
	for (uint32_t i = 0; p && i < p->nr; i++) {
		buf_addf(log, " %s=", p->pair[i].key);
		escape_bytes(log, p->pair[i].value, p->pair[i].len);
	}
	buf_addch(log, '\n');
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool row_changed(const struct table *t, uint32_t row)
{
	size_t at = (size_t)row * t->nr_cols;

	return t->id[row] != ROW_FREE &&
		(t->valid[row] != t->valid_before[row] ||
			memcmp(t->cell + at, t->before + at, t->nr_cols * sizeof(int64_t)));
}

/* Changed rows by number, with old and new cells: the order of `touched` is nobody's business. */
static void log_tick(
	struct buf *log, const struct store_record *rec, struct table *const *table, uint32_t nr_sets)
{
	static uint32_t row[WORLD_ROWS];

	buf_addf(log, "tick %llu %lld %u\n", (unsigned long long)rec->tick, (long long)rec->time_ns, rec->at);
	for (uint32_t set = 0; set < nr_sets; set++) {
		const struct table *t = table[set];
		uint32_t nr = 0;

		for (uint32_t i = 0; i < t->nr_touched; i++)
			if (row_changed(t, t->touched[i]))
				row[nr++] = t->touched[i];
		qsort(row, nr, sizeof(*row), by_number);
		for (uint32_t i = 0; i < nr; i++) {
			size_t at = (size_t)row[i] * t->nr_cols;

			buf_addf(log, " %u.%u #%u %llx<%llx", set, row[i], t->id[row[i]],
				(unsigned long long)t->valid[row[i]],
				(unsigned long long)t->valid_before[row[i]]);
			for (uint32_t c = 0; c < t->nr_cols; c++)
				if (t->cell[at + c] != t->before[at + c])
					buf_addf(log, " %u:%lld<%lld", c, (long long)t->cell[at + c],
						(long long)t->before[at + c]);
			buf_addch(log, '\n');
		}
	}
}

void log_record(struct buf *log, const struct store_record *rec, struct table *const *table, uint32_t nr_sets)
{
	switch (rec->type) {
	case STORE_INSTANCE:
		buf_addf(
			log, "instance %u.%u #%u %lld", rec->set, rec->row, rec->id, (long long)rec->time_ns);
		break;
	case STORE_GONE:
		buf_addf(log, "gone %u.%u #%u %lld", rec->set, rec->row, rec->id, (long long)rec->time_ns);
		break;
	case STORE_EVENT:
		buf_addf(log, "event %s %lld", rec->kind, (long long)rec->time_ns);
		break;
	case STORE_TICK:
		log_tick(log, rec, table, nr_sets);
		return;
	default:
		return;
	}
	log_pairs(log, rec->pairs);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 32;
}

uint64_t state_hash(struct table *const *table, uint32_t nr_sets)
{
	uint64_t h = 1;

	for (uint32_t set = 0; set < nr_sets; set++) {
		const struct table *t = table[set];

		h = mix(mix(h, set), (uint64_t)t->delay_ns);
		for (uint32_t row = 0; row < t->nr_rows; row++) {
			if (t->id[row] == ROW_FREE)
				continue;
			h = mix(mix(mix(h, row), t->id[row]), t->valid[row]);
			for (uint32_t c = 0; c < t->nr_cols; c++)
				h = mix(h, (uint64_t)t->cell[(size_t)row * t->nr_cols + c]);
		}
	}
	return h | 1;
}

/* ---- life ---- */

static void random_identity(struct world *x, struct pairs *p, char *bytes, size_t size)
{
	size_t n = world_random(x, 50) ? world_random(x, 60) : world_random(x, size);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(world_random(x, 9) ? 'a' + world_random(x, 5) : world_random(x, 256));
	pairs_reset(p);
	pairs_num(p, "pid", (int64_t)world_random(x, 4000000));
	pairs_add(p, "cmdline", bytes, n);
	pairs_str(p, "state.of_mind", "calm");
}

struct scribe {
	struct pairs pairs;
	struct pair pair[8];
	char text[256], bytes[5000];
};

static struct store_record place(
	struct world *x, enum store_type type, uint32_t set, uint32_t row, uint32_t id, struct scribe *s)
{
	pairs_init(&s->pairs, s->pair, ARRAY_SIZE(s->pair), s->text, sizeof(s->text));
	random_identity(x, &s->pairs, s->bytes, sizeof(s->bytes));
	return (struct store_record){
		.type = type, .set = set, .row = row, .id = id, .time_ns = x->time_ns, .pairs = &s->pairs};
}

static void appear(struct world *x, uint32_t set, uint32_t row, uint32_t id)
{
	struct scribe s;
	struct store_record rec = place(x, STORE_INSTANCE, set, row, id, &s);

	store_instance(x->w, set, row, id, rec.time_ns, rec.pairs);
	log_record(&x->log, &rec, NULL, 0);
	if (row != STORE_NO_ROW && x->table[set].id[row] != id)
		table_bind(&x->table[set], row, id);
}

static void disappear(struct world *x, uint32_t set, uint32_t row, uint32_t id)
{
	struct scribe s;
	struct store_record rec = place(x, STORE_GONE, set, row, id, &s);

	store_gone(x->w, set, row, id, rec.time_ns, rec.pairs);
	log_record(&x->log, &rec, NULL, 0);
	if (row != STORE_NO_ROW)
		table_unbind(&x->table[set], row);
}

static void populate(struct world *x, uint32_t set)
{
	struct table *t = &x->table[set];
	uint32_t rows = set == 0 ? 1 : set == 1 ? x->rows : MIN(x->rows, 20);

	for (unsigned n = world_random(x, 10); n--;) {
		uint32_t row = (uint32_t)world_random(x, rows);

		if (t->id[row] == ROW_FREE)
			appear(x, set, row, x->next_id++);
		else if (world_random(x, 3) == 0)
			appear(x, set, row, t->id[row]);
		else if (world_random(x, 2) == 0)
			disappear(x, set, row, t->id[row]);
	}
	if (world_random(x, 4) == 0) {
		appear(x, set, STORE_NO_ROW, x->next_id);
		disappear(x, set, STORE_NO_ROW, x->next_id++);
	}
}

static int64_t random_value(struct world *x, int64_t old)
{
	switch (world_random(x, 6)) {
	case 0:
		return old;
	case 1:
		return (int64_t)((uint64_t)old + world_random(x, 100));
	case 2:
		return (int64_t)((uint64_t)old - world_random(x, 10000000));
	case 3:
		return (int64_t)(world_random(x, UINT64_C(1) << 32) << 32 |
			world_random(x, UINT64_C(1) << 32));
	case 4:
		return world_random(x, 2) ? INT64_MIN : INT64_MAX;
	default:
		return 0;
	}
}

static void sample(struct world *x, uint32_t set)
{
	struct table *t = &x->table[set];

	for (uint32_t k = t->nr_rows; k--;) {
		uint32_t row = set == 3 ? t->nr_rows - 1 - k : k; /* descending: the order is free */

		if (t->id[row] == ROW_FREE || (!x->busy && world_random(x, 3)))
			continue;
		table_touch(t, row);
		for (uint32_t c = 0; c < t->nr_cols; c++) {
			if (!x->busy && world_random(x, 4))
				continue;
			/* A cell may change while it is not valid, too. */
			t->cell[(size_t)row * t->nr_cols + c] =
				random_value(x, t->cell[(size_t)row * t->nr_cols + c]);
			if (world_random(x, 8))
				t->valid[row] |= UINT64_C(1) << c;
			else
				table_unset(t, row, c);
		}
	}
}

static void one_tick(struct world *x)
{
	struct store_record rec = {.type = STORE_TICK};
	uint32_t doomed = (uint32_t)world_random(x, x->rows);

	for (uint32_t set = 0; set < WORLD_SETS; set++)
		populate(x, set);
	for (uint32_t set = 0; set < WORLD_SETS; set++)
		sample(x, set);
	/* Touched, and gone before the tick is over. */
	if (x->table[1].id[doomed] != ROW_FREE)
		disappear(x, 1, doomed, x->table[1].id[doomed]);
	x->tick += 1 + (world_random(x, 10) == 0);
	x->time_ns += NSEC_PER_SEC + (int64_t)world_random(x, 100000);
	/* Now and then a set is read late. */
	x->table[x->tick % WORLD_SETS].delay_ns = x->tick % 3 ? 0 : (int64_t)(x->tick << x->tick % 24);
	rec.at = x->tick % 5 ? 0 : (unsigned)(x->tick % 4);
	store_tick(x->w, x->tick, x->time_ns, rec.at, x->tables);
	rec.tick = x->tick;
	rec.time_ns = x->time_ns;
	log_record(&x->log, &rec, x->tables, WORLD_SETS);
	if (x->tick < WORLD_TICKS)
		x->state[x->tick] = state_hash(x->tables, WORLD_SETS);
	for (uint32_t set = 0; set < WORLD_SETS; set++)
		table_settle(&x->table[set]);
}

void world_live(struct world *x, unsigned ticks, unsigned flush_every)
{
	for (unsigned i = 1; i <= ticks; i++) {
		one_tick(x);
		if (world_random(x, 5) == 0) {
			struct scribe s;
			struct store_record rec = place(x, STORE_EVENT, 0, 0, 0, &s);

			rec.kind = "test.event";
			store_event(x->w, rec.time_ns, rec.kind, rec.pairs);
			log_record(&x->log, &rec, NULL, 0);
		}
		if (flush_every && i % flush_every == 0)
			store_flush(x->w);
	}
}

void world_finish(struct world *x)
{
	struct pair pair[2];
	char text[64];
	struct pairs p;

	pairs_init(&p, pair, ARRAY_SIZE(pair), text, sizeof(text));
	pairs_num(&p, "ticks", (int64_t)x->tick);
	assert_int_equal(store_finish(x->w, &p), 0);
	x->w = NULL;
}

/* ---- reading ---- */

void reading_init(struct reading *g)
{
	memset(g, 0, sizeof(*g));
	buf_init(&g->log, (size_t)256 << 20);
}

void reading_release(struct reading *g)
{
	buf_release(&g->log);
}

static void reading_tick(
	struct reading *g, const struct store_record *rec, struct table *const *table, const struct world *x)
{
	assert_true(rec->tick < WORLD_TICKS);
	assert_true(rec->tick > g->last_tick);
	if (x->state[rec->tick] != state_hash(table, WORLD_SETS))
		fail_msg("tick %llu is not what was recorded", (unsigned long long)rec->tick);
	g->seen[rec->tick] = 1;
	g->last_tick = rec->tick;
	g->ticks++;
}

/* True when the instance is merely said again, at the start of a segment. */
static bool restated(struct reading *g, const struct store_record *rec)
{
	uint64_t hash = 1;

	assert_true(rec->id < WORLD_IDS);
	for (uint32_t i = 0; i < rec->pairs->nr; i++)
		for (size_t k = 0; k < rec->pairs->pair[i].len; k++)
			hash = mix(hash, (uint8_t)rec->pairs->pair[i].value[k]);
	if (g->known[rec->id].hash == hash) {
		assert_true(rec->again);
		assert_int_equal(rec->time_ns, g->known[rec->id].time_ns);
		g->again++;
		return true;
	}
	if (!g->known[rec->id].hash)
		g->known[rec->id].time_ns = rec->time_ns;
	assert_true(g->lost || rec->again == (g->known[rec->id].hash != 0));
	g->known[rec->id].hash = hash;
	return false;
}

void reading_go_on(struct reading *g, struct store_reader *r, const struct world *x)
{
	struct table *table[WORLD_SETS];
	struct store_record rec;
	int e;

	while ((e = store_next(r, &rec)) > 0) {
		for (uint32_t i = 0; i < WORLD_SETS; i++)
			table[i] = store_reader_table(r, i);
		if (rec.type == STORE_TICK)
			reading_tick(g, &rec, table, x);
		for (uint32_t i = 0; rec.type == STORE_LOST && i < WORLD_SETS && table[i]; i++)
			assert_int_equal(table[i]->nr_rows, 0);
		g->lost += rec.type == STORE_LOST;
		g->summaries += rec.type == STORE_SUMMARY;
		if ((rec.type != STORE_INSTANCE || !restated(g, &rec)) && !g->quiet)
			log_record(&g->log, &rec, table, WORLD_SETS);
	}
	assert_int_equal(e, 0);
	store_health(r, &g->health);
}
