/* The account of one recording, made while a walk reads it from its beginning to its end: what the job's tree
 * and each group of its processes have used up to each tick, and how much they held at each tick.
 *
 * Memory grows with the processes alive at once, never with the length of the recording. */
#ifndef QUERY_LEDGER_H
#define QUERY_LEDGER_H

#include "query/census.h"
#include "base/idmap.h"
#include "metric/quantity.h"
#include "query/meta.h"
#include "store/store.h"

struct amounts {
	uint32_t used_valid, level_valid; /* masks */
	int64_t used[NR_USED];		  /* since the job's start, or since we attached */
	int64_t level[NR_LEVELS];
	struct between between; /* since the point before */
	bool has_between;
};

struct point { /* one tick */
	int64_t time_ns;
	bool gap;	   /* something was lost since the point before: no rate across */
	unsigned nr_lines; /* only grows */
	/* Line 0 is the whole, the others are the groups in the order in which they appeared. Valid until the
	 * next call. */
	const struct amounts *line;
};

enum cpu_source {
	CPU_UNKNOWN,
	CPU_CGROUP,  /* the kernel's own total */
	CPU_RUSAGE,  /* all that ended was waited for, by us or by living members */
	CPU_SAMPLES, /* some of what ended is known only as last sampled */
};

/* What is known at the end; all of it also of an unfinished recording. */
#define LEFT_OUT_MOST 16

struct ledger_facts {
	uint64_t ticks;
	int64_t last_ns; /* of any record */
	bool complete, attached;
	uint64_t unfinished;
	bool others_hidden; /* targets name processes that /proc did not show */
	uint64_t unasked;   /* processes that may have been one of the tools */
	int64_t unknown;    /* -1: not recorded */
	int64_t cgroup_peak_bytes;
	int64_t self_cpu_ns, self_rss_bytes, missed, late, skipped, backoff, deferred, turns, clock_turns,
		events_lost;  /* -1: unknown */
	int64_t most_running; /* threads of the node that ran or could have run, at any tick; -1: unknown */
	int64_t dropped_ns;
	uint64_t sigchld_ignored; /* processes */
	uint64_t assumed;	  /* orphans that are counted because they look like the attached tree's */
	uint64_t escaped;	  /* orphans that may have come from the attached tree */
	uint64_t pss_reads;	  /* processes whose PSS was read at least once */
	uint64_t lost_bytes, lost_places, tail_bytes, clock_steps, stops;
	uint64_t gaps, gap_ticks;	     /* not written, before the end */
	const struct write_error *gap_error; /* why the last of them; NULL: there is none */
	bool writing;			     /* a recorder has the file open */
	bool has_cgroup, groups_left_out;
	/* What the job told and is not recorded, and logs that told nothing: sentences, escaped. */
	char *left_out[LEFT_OUT_MOST];
	unsigned nr_left_out;
	bool end_missing; /* the last ticks are not in the file, though it was finished */
};

/* What is known of one line at the end. */
struct account_facts {
	const char *name, *kind, *target; /* of a group; NULL for the whole */
	size_t name_len;
	bool own; /* without what members' children used */
	uint64_t seen;
	uint64_t uncounted;	 /* ended processes of which nothing is counted */
	uint64_t only_sampled;	 /* ended processes whose last moments were not seen */
	int64_t unsampled;	 /* -1: not recorded */
	int64_t cpu_ns;		 /* -1: not known */
	int64_t observed_cpu_ns; /* of that, in sampled processes */
	int64_t max_hwm_bytes;	 /* of any one process; -1: not known */
	int64_t one[NR_LEVELS];	 /* the most that any one process had at a tick */
	uint32_t one_valid;
	enum cpu_source cpu_source;
	uint64_t io_unread;    /* ended processes of whose bytes and calls some are missing */
	uint64_t peak_unknown; /* programs that ended and whose largest memory is known as last sampled */
	bool cpu_is_lower_bound, io_is_lower_bound, memory_is_lower_bound;
	bool left; /* the job left the control group made for it */
};

struct ledger;
struct node_totals;
struct counters;
struct gpus;

struct live_processes;
struct walk;

/* Opens the recording. -EBADMSG, -ENOENT, -ENOMEM... */
int ledger_open(const char *path, struct ledger **ret);
struct ledger *ledger_close(struct ledger *a);
/* Its walk, for other observers: they see each record before the ledger has taken it in. */
struct walk *ledger_walk(struct ledger *a);
struct live_processes *ledger_live(struct ledger *a);
/* 1 and the next point, 0 at the end, negative when the file cannot be read or there is no memory. */
int ledger_next(struct ledger *a, struct point *ret);

/* Meaningful when ledger_next() has returned 0. */
const struct ledger_facts *ledger_facts(const struct ledger *a);
struct account_facts ledger_line(const struct ledger *a, unsigned line);
const struct node_totals *ledger_totals(const struct ledger *a);
const struct counters *ledger_counters(const struct ledger *a);
const struct gpus *ledger_gpus(const struct ledger *a);
const struct meta *ledger_meta(const struct ledger *a);	    /* META */
const struct schema *ledger_schema(const struct ledger *a); /* NULL: it was not read */
const struct meta *ledger_ending(const struct ledger *a);   /* SUMMARY; empty when unfinished */
/* Why a metric has no value, for people; the text is static or lives as long as the account. */
const char *ledger_why(const struct ledger *a, const char *metric);
/* The same of an amount or a level. */
const char *ledger_used_why(const struct ledger *a, unsigned line, enum used used);
const char *ledger_level_why(const struct ledger *a, enum level level);
/* What was said against a metric while it was recorded; NULL: nothing. */
const char *ledger_told(const struct ledger *a, const char *metric);
/* Why a set (a collector's name) has no value at all: all of its metrics are out of reach. NULL: it may have
 * some. */
const char *ledger_set_why(const struct ledger *a, const char *set);
/* It is recorded, and nothing was said against it. */
bool ledger_is_available(const struct ledger *a, const char *metric);
#endif
