/* One sink is one file and one line in sinks.c: it turns points into requests of a server, or into a file.
 *
 * Points come from the tables of a run (query/tables.h), so every number is the one that exports have. A
 * sink never names a metric, but in its table of foreign names. The driver (push/deliver.h) cuts the points
 * into batches within the sink's limits, tries again what can be tried again, and remembers what was sent:
 * a batch that may have arrived before its answer was lost is sent once more, with the same points, so a sink
 * makes requests that a server can take twice. */
#ifndef PUSH_SINK_H
#define PUSH_SINK_H

#include "base/buf.h"
#include "push/http.h"
#include "query/meta.h"
#include "query/tables.h"

/* ---- points ---- */

struct push_name;

struct push_series {	    /* lives as long as the sink is open */
	const char *name;   /* "tree.cores", "proc.mem.rss.max"; of foreign names the foreign one */
	const char *metric; /* its name in the recording */
	const char *table;  /* of which table: "tree", "node", "gpu" …: what kind of thing it is told of */
	const char *help;
	const char *host, *instance; /* UTF-8. instance NULL: the table has none, or it is folded */
	int64_t pid;		     /* 0: not of a process */
	unsigned node;		     /* number of the recording in the run, from 0 */
	int64_t start_ns;	     /* of the recording, by the wall clock of its node */
	enum metric_unit unit;
	enum metric_kind kind; /* COUNTER: `value` only grows, from any beginning */
	bool per_second;
	bool greatest;		    /* the greatest of each window; the mean is another series */
	const struct push_name *as; /* the row of foreign names; NULL: its own */
	void *own;		    /* the sink's: NULL at first */
};

struct push_point {
	struct push_series *series;
	int64_t time_ns; /* wall clock of the sample; of a window the one of its last sample */
	int64_t step;	 /* window or sample since the start of the run, from 0: the same at each try */
	double value;	 /* finite */
	int64_t integer; /* is_integer: exact */
	bool is_integer;
};

/* A foreign name: what others call a metric of ours. */
struct push_name {
	const char *name;	    /* NULL ends a list */
	const char *table, *metric; /* "process", "proc.mem.rss" */
	bool folded;		    /* over all instances of the node */
	bool greatest;		    /* of each window, not the mean */
	double scale;		    /* value x scale; 0: 1 */
	const char *attribute;	    /* the sink's own use: "direction=read" */
	const char *unit;	    /* as the sink writes it: "MB", "By" */
	bool usual;		    /* of the usual choice: it goes by its own name */
};

/* ---- what is pushed ---- */

struct push_run {		 /* as known when pushing begins */
	const char *const *path; /* as named: recordings, or directories of them */
	size_t nr;
	const struct meta *meta; /* of the first */
	const char *host, *user, *job;
	const char *command; /* one line, secrets hidden; "" when attached */
	const char *name;    /* short: the program, or the file without its suffix */
	int64_t start_ns;    /* wall clock */
	int64_t interval_ns; /* between samples */
	bool follows;	     /* it may be in progress */
};

struct push_label {
	const char *key, *value;
};

struct push_options {	 /* of the command line, of use to sinks */
	const char *url; /* --to SINK=URL, --server SINK=URL; NULL: the sink's variables and default */
	const char *as, *prefix, *run_id, *run_name, *experiment;
	const struct push_label *label;
	size_t nr_labels;
	bool semconv, no_children, no_artifacts;
	double total_memory, total_cpus; /* bytes, CPUs; 0: as recorded */
	int64_t every_ns;		 /* length of a window; 0: each sample by itself */
	int64_t timeout_ns, linger_ns;	 /* linger: how long after the end of the run */
	bool dry_run;
	const char *listen, *token_file, *textfile; /* prometheus */
};

/* Texts that the sink wants back at the next start (the run's ID, the first step): kept in the state beside
 * the recording (push/state.h), never secrets. NULL when there is none. */
struct push_state;
const char *push_note(const struct push_state *s, const char *key);
int push_note_set(struct push_state *s, const char *key, const char *value); /* written with the next save */

struct push {
	const struct push_run *run;
	const struct push_options *options;
	struct push_state *state;
	struct push_state *from; /* during send(): of the recording that the points are of */
	struct http *http;	 /* NULL for sinks of files and with dry_run */
	/* To tell the user once, in the state's log and by the command: not an error. */
	void (*say)(void *arg, const char *text);
	void *say_arg;
};

enum push_outcome {
	PUSH_SENT,    /* taken for good (`dropped` of them were not, and never will be: `why`) */
	PUSH_LATER,   /* try the same again, not before after_ns */
	PUSH_REFUSED, /* these will never be taken as they are: the driver tries smaller parts */
	PUSH_FATAL,   /* nothing will be taken: wrong address, no permission. `why` says what to do */
};

#define PUSH_WHY_SIZE 600
struct push_answer {
	enum push_outcome outcome;
	int64_t after_ns;
	uint64_t dropped;
	char why[PUSH_WHY_SIZE]; /* in the server's words, control characters escaped; "" when all is well */
};

struct push_end {	/* how the run ended */
	bool complete;	/* it has its end mark */
	int64_t end_ns; /* wall clock of its last sample */
	int64_t status; /* exit status of the command; -1: not known */
	int64_t signal; /* that killed it; 0 */
};

struct push_sink {
	const char *name, *help;
	const char *url_help;		/* what --to SINK=URL takes */
	size_t points_most, bytes_most; /* of one request; bytes as estimated by 200 a point; 0: no limit */
	bool rates;   /* of counters it takes growth per second instead of the counters themselves */
	bool is_file; /* no server: http is NULL */
	/* Where it sends to, without secrets, to know the target again: "http://localhost:5000". Called
	 * before open. -EINVAL and reterr: no address, or none that can be used. */
	int (*address)(const struct push *p, char *ret, size_t size, struct buf *reterr);
	/* Foreign names that are pushed instead of the usual choice, NULL-terminated; NULL: the usual. */
	const struct push_name *(*names)(const struct push *p);
	/* They come beside the usual choice, whose series have no `as`. NULL: they do not. */
	bool (*names_beside)(const struct push *p);
	/* Nothing is remembered: each start begins with the beginning of the run. NULL: it is. */
	bool (*forgetful)(const struct push *p);
	/* -EINVAL…: reterr says what to do. Makes no requests. */
	int (*open)(struct push *p, void **ret, struct buf *reterr);
	/* May be NULL. Before the first send, and again after it said LATER: makes what points belong to. */
	void (*begin)(void *s, struct push_answer *ret);
	/* All points of a row of a table stand together; those of a series are in the order of time. */
	void (*send)(void *s, struct push_point *point, size_t nr, struct push_answer *ret);
	/* The body of that request as text, for --dry-run. */
	void (*show)(void *s, struct push_point *point, size_t nr, struct buf *out);
	/* May be NULL. All was sent and the run has ended; LATER: once more, which without a `why` is no
	 * failure. */
	void (*finish)(void *s, const struct push_end *end, struct push_answer *ret);
	void (*forget)(void *own); /* of a series; may be NULL: free() */
	void (*close)(void *s);
	/* One line for people where it can be looked at; may be NULL. */
	void (*where)(void *s, struct buf *out);
};

extern const struct push_sink *const push_sinks[]; /* NULL at the end */
const struct push_sink *push_sink_find(const char *name, size_t len);

static inline void push_answer_sent(struct push_answer *a)
{
	*a = (struct push_answer){.outcome = PUSH_SENT};
}
#endif
