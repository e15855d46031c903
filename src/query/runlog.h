/* The run log: what happened in one recording, entry by entry, in the order in which it became known.
 *
 * It is told what the recording is told: by the recorder while the job runs, or by a walk afterwards
 * (runlog_read()). So both give the same entries; only what a reader finds of damage is not known to the
 * recorder. Nothing is allocated at a tick. text/runlog.h makes lines of entries.
 *
 * Events, beside the marks of the job: `start`, `end`, `oom`, `throttled`, `missed`, `stopped`, `continued`,
 * `lost`, and all that the recording has under the names of docs/format.md (`signal`, `clock`, `backoff`…).
 * What counters tell (`throttled`, `missed`) is told when it begins, and then at most once in ten seconds,
 * with the sum of that time. */
#ifndef QUERY_RUNLOG_H
#define QUERY_RUNLOG_H

#include "query/counter_watch.h"
#include "query/meta.h"
#include "query/resources.h"

struct runlog_entry {
	bool is_phase;	  /* at its end; else an event */
	bool of_job;	  /* a phase or a mark: the name is the job's, bytes as they came */
	bool unfinished;  /* a phase that the end of the recording ended */
	const char *kind; /* "phase", "mark", "start", "oom"… */
	int64_t time_ns;  /* on the recording's clock */
	int64_t length_ns;
	const char *name;
	size_t name_len;
	/* KEY=VALUE of the job, NULs between: of a phase those of its beginning and those of its end. */
	const char *data[2];
	size_t data_len[2];
	const struct pairs *pairs; /* of the recorder's events; NULL: none */
};

struct runlog;

/* A negative result is given back by what told of it. */
typedef int runlog_take(void *arg, const struct runlog *log, const struct runlog_entry *entry);

int runlog_new(runlog_take *take, void *arg, struct runlog **ret);
struct runlog *runlog_free(struct runlog *log);

/* What the recording says of itself, and of its instances; `bind` when sets are described. */
int runlog_meta(struct runlog *log, const struct pairs *meta);
int runlog_bind(struct runlog *log, const struct schema *schema);
void runlog_instance(struct runlog *log, uint32_t set, uint32_t row, const struct pairs *identity);
/* Enough is known for the entry `start`. Does nothing the second time. */
int runlog_start(struct runlog *log);
int runlog_event(struct runlog *log, int64_t time_ns, const char *kind, const struct pairs *pairs);
int runlog_lost(struct runlog *log, const char *reason);
/* The tables are indexed by set. */
int runlog_tick(struct runlog *log, int64_t time_ns, struct table *(*table)(const void *arg, uint32_t set),
	const void *arg);
/* The end mark of the recording; NULL: it has none. `resources` may be NULL. */
int runlog_end(struct runlog *log, const struct pairs *ending, const struct resources *resources);

const struct meta *runlog_about(const struct runlog *log);
const struct meta *runlog_ending(const struct runlog *log);
const struct resources *runlog_resources(const struct runlog *log); /* at the entry `end`; may be NULL */
int64_t runlog_wall(const struct runlog *log, int64_t time_ns);	    /* ns since 1970 */

/* All entries of a recording. */
struct runlog_reading;
int runlog_open(const char *path, runlog_take *take, void *arg, struct runlog_reading **ret);
struct runlog_reading *runlog_close(struct runlog_reading *r);
/* The entry `end` has none, and the recording is not read once more for them. */
void runlog_omit_resources(struct runlog_reading *r);
int runlog_follow(struct runlog_reading *r); /* before the first runlog_read(): to the end of its recorder */
/* 0: that was all; WALK_WAIT of one that is followed: no more yet; a negative errno. */
int runlog_read(struct runlog_reading *r);
bool runlog_complete(const struct runlog_reading *r); /* it has its end mark */
#endif
