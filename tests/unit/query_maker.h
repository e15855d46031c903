/* Recordings for the tests of query/: a small tree of processes whose every value is chosen by the test,
 * written with the store's own writer. Values are given in the recording's units: ns, clock ticks of 10 ms,
 * pages of 4096 bytes, KiB. */
#ifndef QUERY_MAKER_H
#define QUERY_MAKER_H

#include "base/pairs.h"
#include "metric/schema.h"
#include "metric/table.h"
#include "query/process_table.h"
#include "query/series.h"
#include "query/summary.h"
#include "store/store.h"

#define MAKER_ROWS 4096
#define SECOND INT64_C(1000000000)
#define MILLI INT64_C(1000000)

enum {
	MAKER_PROCESS,
	MAKER_TREE,
	MAKER_SELF,
	MAKER_CPU,
	MAKER_GROUP,
	MAKER_NET,
	MAKER_IB,
	MAKER_DISK,
	MAKER_ENERGY,
	MAKER_CGROUP,
	MAKER_LIMITS,
	MAKER_GPU,
	MAKER_GPU_PROCESS,
	MAKER_PERF,
	MAKER_SOCKET,
	MAKER_SETS
};

struct maker {
	char path[128];
	struct schema *schema;
	struct table table[MAKER_SETS];
	struct table *tables[MAKER_SETS];
	struct store_writer *w;
	uint64_t tick;
	struct pair memory[64];
	char text[1024];
	struct pairs pairs;
};

/* What is left out of the schema, or declared unavailable: names parted by commas. */
struct maker_options {
	const char *mode, *host, *command;
	size_t command_len;
	int64_t start_wall_ns, interval_ns, nr_cpus;
	const char *without, *forbidden;
	const char *helpers;
	const char *const *meta; /* more metadata: keys and values, NULL at the end */
	const char *groups;	 /* names, NUL-parted */
	size_t groups_len;
};

/* `change` may change the schema before it is written. */
void maker_open_with(
	struct maker *m, const char *path, const struct maker_options *o, void (*change)(struct maker *m));
void maker_open(struct maker *m, const char *path, const struct maker_options *o);
/* Whose are the processes that join from now on (-1: not told), and how often they became another program. */
extern int64_t maker_user, maker_execs;
/* Another process; its cells are unset. */
void maker_join(
	struct maker *m, uint32_t row, uint32_t id, int64_t pid, int64_t ppid, int64_t time_ns, bool late);
/* In groups (names, NUL-parted); the same id again: its groups are these from now on. */
void maker_join_in(struct maker *m, uint32_t row, uint32_t id, int64_t pid, int64_t ppid, int64_t time_ns,
	bool late, const char *groups, size_t groups_len);
/* An instance of another set, with more to say of it: keys and texts, NULL at the end. Its id is the row's of
 * the moment: `generation` tells those that follow one another in a row apart. */
void maker_instance(struct maker *m, unsigned set, uint32_t row, uint32_t generation, const char *name, ...);
void maker_leave(struct maker *m, unsigned set, uint32_t row, int64_t time_ns);
/* A group with nothing in it yet. */
void maker_group(struct maker *m, uint32_t row, const char *name, const char *kind, bool own);
void maker_join_as(struct maker *m, uint32_t row, uint32_t id, int64_t pid, const void *name, size_t name_len,
	const void *cmdline, size_t cmdline_len);
void maker_gone(struct maker *m, uint32_t row, uint32_t id, int64_t time_ns, const char *how);
/* A group in which the parents of those that leave have their accounts, and they are not; NULL: none. */
extern const char *maker_foreign;
/* With more to say: keys and numbers, NULL at the end. */
void maker_gone_with(struct maker *m, uint32_t row, uint32_t id, int64_t time_ns, const char *how, ...);
/* A cell of a row, by the metric's name. Unset with maker_unset. */
void maker_set(struct maker *m, uint32_t row, const char *metric, int64_t value);
/* An event of the job: what was counted, and the time for which it was. */
void maker_set_event(struct maker *m, const char *name, int64_t count, int64_t running_ns);
void maker_unset(struct maker *m, uint32_t row, const char *metric);
/* In pages, and in KiB as smaps_rollup has it. */
void set_memory(struct maker *m, uint32_t at, int64_t rss, int64_t shared);
void set_smaps(struct maker *m, uint32_t at, int64_t rss, int64_t pss, int64_t clean, int64_t dirty);
void maker_event(struct maker *m, int64_t time_ns, const char *kind, const char *key, const char *value);
/* More metadata, any bytes. */
void maker_meta(struct maker *m, const char *key, const void *value, size_t len);
void maker_tick(struct maker *m, int64_t time_ns);
void maker_tick_at(struct maker *m, int64_t time_ns, unsigned at); /* a mask of enum tick_at */
/* keys and numbers, NULL at the end; closes. */
void maker_finish(struct maker *m, ...);
/* As if killed: what was flushed stays. */
void maker_abandon(struct maker *m);

/* ---- around them ---- */

/* One process, a tick a second, 1 ms of CPU each. */
void make_long(const char *path, int64_t ticks);
/* Three ticks, and a process of 10 pages that is there at the second alone. */
void make_one_in_between(const char *path);

/* Each test has a directory of its own, and in it a file to write into. */
extern char dir[64], file[96];
int maker_setup(void **state);
int maker_teardown(void **state);
const char *file_in(const char *name); /* the text is overwritten by the next call */

struct process_table *table_of(const char *path);
/* Of the test's file, one metric; the rest of the question as in `like` (NULL: nothing more). */
struct series *series_of(const char *metric, const struct series_query *like);
void expect_series(const char *metric, const struct series_query *like, const double *expected, size_t nr);
/* Overwrites a few bytes at this part of the file's length. */
void damage(const char *path, double where);

/* The summary as text; the buffer is the caller's, initialised. */
const char *json_of(const struct summary *s, struct buf *out);
const char *words_of(const struct summary *s, unsigned width, bool utf8, struct buf *out);

struct summary *summary_of_paths(const char *const *path, size_t nr);
struct summary *summary_of(const char *path);
double value(const struct summary *s, enum figure_id id); /* fails the test when there is none */
bool has_note(const struct summary *s, const char *words);

#define assert_near(a, b)                                               \
	do {                                                            \
		double a_ = (a), b_ = (b);                              \
		if (!(fabs(a_ - b_) <= 1e-9 * MAX(1, fabs(b_))))        \
			fail_msg("%s is %.12g, not %.12g", #a, a_, b_); \
	} while (0)
#endif
