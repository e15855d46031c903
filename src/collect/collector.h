/* A collector is one source of numbers: one file, its rows first, and one line in registry.c.
 *
 * It delivers the source's own integers into the cells of its table, never rates, and knows nothing of disks,
 * files or screens. What could not be read is left invalid; the reason is given once, through probe() or
 * `why`. A collector that fails never stops the recording. */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include "collect/feed.h"
#include "env/env.h"
#include "metric/metric.h"
#include "metric/schema.h"
#include "metric/table.h"
#include "read/read.h"

/* Why something is not available, for people: the reason, and the one command or setting that would change it
 * (NULL: none would). Static text. */
struct trouble {
	const char *reason, *remedy;
};

/* What is known of an instance beyond its name. One key has a meaning for all readers: `apart` says why
 * the instance is not added to the others (a bridge over interfaces that count already, a partition of a
 * disk). */
struct about {
	const char *key, *value;
};

/* A live process of the job. */
struct collect_member {
	pid_t pid, parent; /* the parent it had when it became known */
	uint32_t id;	   /* its instance in the process set */
	uint64_t groups;   /* mask */
	int64_t born_ns;   /* ENV_MONOTONIC, when it was first known or earlier */
	uint32_t origin;   /* its first known ancestor whose children belong to the job; its own id when there
			      is none */
	bool family;	   /* its children belong to the job as well */
};

/* Rows that depend on the machine and on the user's options: counters of named events. They follow the
 * collector's own rows, and all are chosen. */
struct plan {
	/* What is asked for: the words of -m, and the events of -e. A word that is taken is marked; those
	 * that name static rows of some collector are marked already. All are freed after the call. */
	const char *const *word;
	size_t nr_words;
	bool *taken;
	const char *const *event;
	size_t nr_events;
	bool *chosen; /* by static row of the collector: rows that belong to a chosen one may be added */
	/* The answer; `own` has everything it points at and is freed with free_own(). */
	struct metric *metric;
	size_t nr_metrics;
	struct plan_formula {
		const char *name, *help, *expression; /* as in base/expr.h, over names of metrics */
		enum metric_unit unit;
		bool per_second;
		const char *panel;
	} * formula;
	size_t nr_formulas;
	void *own;
	void (*free_own)(void *own);
};

/* Handed to open(): what this recording wants of the collector, and where answers go. */
struct collect_context {
	struct env *env;
	struct columns_map map; /* row of the collector's table of metrics -> column, -1: not recorded */
	struct table *table;
	const struct feed *feed; /* the engine's own numbers; feed->root is the job's first process */
	bool medium;		 /* in sample(): rows of TIER_MEDIUM are due as well */
	bool last;	    /* in sample(): there may be no other sample: what was postponed is read now */
	bool children;	    /* the descendants of the job's first process belong to it */
	unsigned max_files; /* descriptors that a collector of many may keep open */
	void *engine;	    /* opaque */
	/* Puts a named instance into a new row and returns the row, or -ENOSPC. For open() and sample(). */
	int (*join)(struct collect_context *ctx, const char *name);
	/* The same, with more facts about it. */
	int (*join_about)(
		struct collect_context *ctx, const char *name, const struct about *about, size_t nr);
	/* What is known of the instance in this row has changed. */
	void (*describe)(struct collect_context *ctx, uint32_t row, const char *name,
		const struct about *about, size_t nr);
	/* Calls fn for the live processes of the job until it returns other than 0, which is returned. */
	int (*members)(
		struct collect_context *ctx, int (*fn)(void *arg, const struct collect_member *m), void *arg);
	/* The state of another collector of this recording; NULL when it is not recorded or did not open. */
	void *(*sibling)(struct collect_context *ctx, const char *collector);
	const struct plan *plan; /* NULL: the collector has no plan() */
	/* The instance in this row is gone (a CPU went offline, a disk was pulled). */
	void (*leave)(struct collect_context *ctx, uint32_t row);
	/* Says why a metric has no values; row index in the collector's own table. remedy may be NULL. */
	void (*why)(struct collect_context *ctx, size_t metric, enum availability availability,
		const char *reason, const char *remedy);
};

struct collector {
	const char *name;    /* for -m, logs, tests */
	const char *summary; /* one line in `tacho metrics` */
	enum domain domain;
	const struct metric *metric;
	size_t nr_metrics;
	size_t state_size;     /* the engine allocates it, zeroed */
	enum metric_tier tier; /* how often sample() is called */
	uint32_t max_rows;     /* 0: 1 for a node's collector */
	bool named_later;      /* its columns get their names in the course of the recording: `told` of its
				* instance
				*/
	bool async; /* it has threads: it is closed when the recording ends, not with the program */

	/* 0: usable. -ENOENT: not on this machine. -EACCES: hidden from us. The job waits for all probes: one
	 * or two system calls, the rest is open()'s business. */
	int (*probe)(struct env *env, struct trouble *reterr_why);
	/* Makes the rows that the static ones do not cover. -EINVAL with a message for people when an event
	 * cannot be understood; what cannot be counted here is no error: its row gets a reason. NULL: there
	 * are none. */
	int (*plan)(struct env *env, struct plan *plan, char *err, size_t err_size);
	const char *const *words; /* that plan() may take, for suggestions; NULL at the end, or none */
	/* Called when a command of ours is about to run and waits for it (before open(), in time for its
	 * first instruction). NULL: nothing to do. Only where this is set and rows are chosen does the
	 * command wait at all. */
	int (*before_exec)(void *state, struct collect_context *ctx, pid_t pid);
	/* Opens what will be read again and again, joins the instances that are there. */
	int (*open)(void *state, struct collect_context *ctx);
	/* Touches and fills rows. No allocation, no path lookup (except for new instances), no log line. */
	int (*sample)(void *state, struct collect_context *ctx);
	void (*close)(void *state, struct collect_context *ctx); /* accepts a half-opened state */
};

/* All of them, in the order in which they are sampled; NULL at the end. */
extern const struct collector *const collectors[];
extern const size_t
	collectors_of_job; /* the number of those that are about the job itself, which come first */
const struct collector *collector_find(const char *name);

/* The cell of one of the collector's rows, where that is recorded: the value, or none when it is not known.
 */
static inline void collect_put(
	struct collect_context *ctx, uint32_t row, size_t metric, bool known, int64_t value)
{
	int col = ctx->map.col[metric];

	if (col < 0)
		return;
	if (known)
		table_set(ctx->table, row, (uint32_t)col, value);
	else
		table_unset(ctx->table, row, (uint32_t)col);
}

/* Probe helper: tries to open and read the file once. */
int probe_file(struct env *env, const char *path, struct trouble absent, struct trouble *reterr_why);
/* The same for a folder: is there anything in it? */
int probe_folder(struct env *env, const char *path, struct trouble absent, struct trouble *reterr_why);
#endif
