/* A small invented machine for the tests of the store: sets of several widths, instances that come and go,
 * cells that jump, crawl, wrap and lose their validity; all from one seed.
 *
 * It remembers what it told the writer: a log of lines, and for every tick a hash of all that lives with all
 * cells. What the reader says is brought into the same form and compared. */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include "base/buf.h"
#include "metric/schema.h"
#include "metric/table.h"
#include "store/store.h"

#define WORLD_SETS 4
#define WORLD_ROWS 700
#define WORLD_TICKS 4096
#define WORLD_IDS 65536

struct world {
	uint64_t random;
	struct schema *schema;
	struct table table[WORLD_SETS];
	struct table *tables[WORLD_SETS];
	struct store_writer *w;
	struct buf log;
	uint32_t next_id;
	uint64_t tick;
	int64_t time_ns;
	uint64_t state[WORLD_TICKS]; /* hash by tick number; 0: no such tick */
	bool busy;		     /* most cells change in every tick */
	uint32_t rows;		     /* of the set of processes; WORLD_ROWS at most */
};

void world_init(struct world *x, uint64_t seed, const char *path);
/* The same before the schema. */
void world_begin(struct world *x, uint64_t seed, const char *path);
void world_release(struct world *x);
void world_live(struct world *x, unsigned ticks, unsigned flush_every);
/* Writes the summary and closes. */
void world_finish(struct world *x);
uint64_t world_random(struct world *x, uint64_t below);

/* Adds the record to the log; instances that are merely restated are left out by the caller. */
void log_record(
	struct buf *log, const struct store_record *rec, struct table *const *table, uint32_t nr_sets);
/* Of all live rows and cells. */
uint64_t state_hash(struct table *const *table, uint32_t nr_sets);

/* Everything the reader says, in the form of the world's log, without META, SCHEMA and SUMMARY. Fails the
 * test when a tick's state is not what it was. */
struct reading {
	struct buf log;
	struct store_health health;
	unsigned lost, ticks, summaries, again;
	uint8_t seen[WORLD_TICKS];
	uint64_t last_tick;
	bool quiet; /* no log */
	struct {
		uint64_t hash;
		int64_t time_ns;
	} known[WORLD_IDS]; /* identities by id */
};

void reading_init(struct reading *g);
void reading_release(struct reading *g);
/* Until store_next() has no more. */
void reading_go_on(struct reading *g, struct store_reader *r, const struct world *x);
#endif
