/* Many recordings, a line each: what they were, how they ended, the few numbers that one sorts by. A run of
 * many nodes (query/run_directory.h) is one line. */
#ifndef QUERY_LISTING_H
#define QUERY_LISTING_H

#include "base/progress.h"
#include "query/meta.h"

enum listed_state {
	LISTED_COMPLETE,
	LISTED_UNFINISHED, /* its recorder was killed */
	LISTED_WRITING,	   /* a recorder is at work */
	LISTED_INCOMPLETE, /* ticks could not be written: the disk was full */
	LISTED_DAMAGED,
	LISTED_UNREADABLE, /* or no recording: `error` */
	NR_LISTED_STATES
};

extern const char *const listed_state_name[NR_LISTED_STATES];

struct listed {
	char *path;
	struct meta meta, ending; /* what it says of itself, and of its end */
	enum listed_state state;
	int error;	     /* negative errno of an unreadable one */
	uint64_t bytes;	     /* of the file */
	int64_t start_ns;    /* wall clock; when it does not say, when the file was last written */
	double wall_s;	     /* what is not known is NAN */
	double cpu_s, cores; /* mean over the run */
	double memory_bytes; /* peak of the sum over processes */
	const char *view;    /* of it: "pss", or "rss" where that was not read; "hwm": one process's, between
				samples */
	double processes;    /* ever seen */
	int exit_code, signal; /* -1: not known, or there is none */
	bool read;	       /* its ticks had to be read */
	bool run;	       /* a directory of a run of many nodes */
	size_t nodes; /* of a run, or of a job with by_job: recordings that it has; 0: this is a recording */
	size_t nodes_expected; /* 0: not known */
};

enum listed_order {
	LISTED_BY_DATE,
	LISTED_BY_DURATION,
	LISTED_BY_MEMORY,
	LISTED_BY_CORES,
	LISTED_BY_CPU,
	LISTED_BY_PROCESSES,
	LISTED_BY_EXIT,
	LISTED_BY_NAME,
	LISTED_BY_SIZE,
	NR_LISTED_ORDERS
};

extern const char *const listed_order_names[NR_LISTED_ORDERS + 1]; /* NULL at the end */

struct listing_query {
	bool recursive; /* directories below, links not followed */
	bool whole;	/* the directory of a run is one line also where it is named */
	bool by_job;	/* recordings of one batch job in one line */
	bool glance; /* never read ticks: what a finished recording does not say at its end stays unknown */
	/* Filters; those that need no ticks come first. NAN, NULL, 0: any. */
	bool failed;		    /* ended otherwise than with 0 */
	int64_t since_ns, until_ns; /* of its start */
	const char *command;	    /* a regular expression (POSIX, extended) over the words of the command */
	const char *match;	    /* a text in its name, command, host, labels or path */
	const char *const *tag;	    /* KEY=VALUE, or KEY: it has one */
	size_t nr_tags;
	const char *user, *host;
	const char *job; /* the batch job's number, or the name of a run's directory */
	const struct progress *progress;
};

struct listing {
	struct listed *item;
	size_t nr, cap;
	size_t left_out; /* by the filters */
	char **note;	 /* of runs: which nodes are missing, late or ended early */
	size_t nr_notes;
};

/* Paths are recordings or directories of them; of the directory of a run its recordings are listed. A path
 * that is not there is an error, with words in reterr; what cannot be read is listed as such. -EINVAL: the
 * expression is wrong. */
int listing_read(const char *const *path, size_t nr, const struct listing_query *q, struct listing **ret,
	struct buf *reterr);
struct listing *listing_free(struct listing *l);
/* By date the newest first, by name from a to z, amounts the largest first; what is not known comes last. */
void listing_sort(struct listing *l, enum listed_order by, bool reverse);

/* Labels: --name, --tag and the batch job, in that order; the next one from *at on (begins with 0). */
bool listed_label(
	const struct listed *l, size_t *at, const char **ret_key, const struct meta_item **ret_value);
#endif
