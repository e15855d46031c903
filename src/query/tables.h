/* A run as tables, to take data elsewhere: one table for each domain, a row for each instance at
 * each tick, a column for each metric, given out in batches by column. Memory does not grow with the length
 * of the recordings, only with the number of processes; several recordings follow one another in the same
 * tables, told apart by the column `host`.
 *
 * Tables of a domain begin with the keys: `time` (UTC), `elapsed` (s after the start of the run), `host`,
 * `instance`; of processes `pid`, `process` (its number in table "processes"); then the metrics in the order
 * of the schema, a counter followed by its rate (`NAME.rate`), then the derived metrics of the domain. Sets
 * of one domain are one table: their rows are joined where the instances have one name; of the node there is
 * one row a tick, called "node". Metrics of the whole job stand in table "tree", those of groups in "group".
 * Columns are the union over the recordings: what one does not have is missing there. What no recording could
 * read is no column unless its name is asked for, and a domain of which nothing could be read no table.
 *
 * Behind them tables that are not of time: `processes` (every process with its end), `events`, `metrics`
 * (every column of every table with unit, kind and help; and what could not be read, with the reason), `meta`
 * (what the recordings say of themselves), `summary`. Where metrics are chosen they are not there unless they
 * are asked for by name.
 *
 * Values are those of a series (query/series.h). Numbers: counts, bytes and codes that were recorded are
 * exact 64-bit integers (missing in the case that they do not fit), all else is real and finite; what is not
 * known is missing, never zero. Raw: the stored integers, with `scale` to make the unit of them; neither
 * rates nor derived metrics. (Where recordings disagree about the scale the column is not raw, and its scale
 * is 1.)
 *
 * Text is UTF-8: a byte that is none stands as \xNN, and so does NUL; of backslashes that stand before an x,
 * or before such a byte, there are twice as many. So an odd number of backslashes before an x is an escape
 * and an even number is none: nothing is lost (utf8_unescape() gives the bytes back), every format has the
 * same, and ordinary names stay as they are. Names of tables are [a-z0-9_]+ and make file names; those of
 * fields may be any text, and are distinct within their table.
 */
#ifndef QUERY_TABLES_H
#define QUERY_TABLES_H

#include "base/progress.h"
#include "metric/metric.h"
#include "query/run.h"

struct phase;
struct phases;
struct process_table;
struct summary;

enum field_type {
	FIELD_TIME, /* int64: ns since 1970, UTC */
	FIELD_INT,
	FIELD_REAL,
	FIELD_TEXT, /* number of a text of the field's own dictionary, which only grows */
	FIELD_FLAG,
};

struct field {
	const char *name, *help;
	enum field_type type;
	enum metric_unit unit;
	bool per_second;
	enum metric_kind kind;
	bool is_metric;	      /* else a key, or a property */
	double scale;	      /* value x scale = unit: 1 unless raw */
	const char *resample; /* "mean", "max", "last" when rows stand for several ticks; NULL: a key */
};

struct data_table {
	const char *name, *help;
	const char *domain; /* NULL: not of time */
	const struct field *field;
	size_t nr_fields;
};

struct texts {
	const char *const *text; /* NUL-terminated; no NUL within */
	const uint32_t *len;
	uint32_t nr;
};

struct field_cells {	      /* one field of a batch */
	const uint8_t *valid; /* bits, least significant first; NULL: all are there */
	uint32_t nr_missing;
	bool same; /* all rows have what the first has, which alone is there; only where `same` was asked for
		    */
	union {
		const int64_t *integer; /* FIELD_TIME, FIELD_INT */
		const double *real;
		const uint32_t *text;
		const uint8_t *flag; /* a byte each */
	};
};

#define DATA_TABLE_ROWS_MOST 8192

struct data_table_batch { /* valid until the next call, or for as long as it is held */
	size_t table;
	uint32_t nr_rows; /* at least 1, at most DATA_TABLE_ROWS_MOST */
	const struct field_cells *cell;
	const uint32_t *recording; /* of each row, its number in the run; NULL: all are of the first */
	uint32_t *held;		   /* by how many; NULL: it cannot be */
};

/* For work on it in another thread; to be let go before the tables are closed. Others are made meanwhile, so
 * few should be held. */
static inline void data_table_batch_hold(const struct data_table_batch *b)
{
	__atomic_add_fetch(b->held, 1, __ATOMIC_RELAXED);
}

static inline void data_table_batch_let_go(uint32_t *held)
{
	__atomic_sub_fetch(held, 1, __ATOMIC_RELEASE);
}

enum tables_per { TABLES_EACH, TABLES_PROCESS, TABLES_GROUP, TABLES_NODE };

/* What is told of the run as a whole. */
struct tables_told {
	struct summary *summary;
	struct process_table *processes;
};

struct tables_options {
	double from_s, to_s; /* both inclusive; NAN: from the start, to the end */
	/* The phase of these whose time that is: tables of time have a key more then, `phase_s`, the time
	 * since it began. NULL: none. Both must stay. */
	const struct phases *phases;
	const struct phase *phase;
	const char *const *domain; /* names of tables; none: all */
	size_t nr_domains;
	bool if_there; /* of domains and metrics, those that the run has; domains as where none are named */
	const char *const *metric; /* as for -m: names, their last or leading parts, collectors; or names of
				      tables; none: all */
	size_t nr_metrics;
	bool raw;
	/* PROCESS: only tables of processes. GROUP: of processes and groups, the processes folded to their
	 * groups (`instance` is the group's name). NODE: instances folded to one row a tick (there is no key
	 * `instance`, except of the node and the tree); what cannot be folded is left out. */
	enum tables_per per;
	/* Beside these tables, of the same reading: of those that are among them, these metrics (or what has
	 * their names as -m takes them) folded as by NODE, never raw. tables_folded() lists what there is. */
	const struct table_fold {
		const char *table, *metric;
	} * fold;
	size_t nr_folds;
	bool fold_any; /* also of those that are not among them */
	/* Rows stand for so much time, counted from the start of the run, and are dated by its beginning: by
	 * field.resample the mean, the greatest or the last of their ticks. 0: a row for each tick. */
	int64_t every_ns;
	/* With every_ns: which fields whose rows are means have another field beside them, NAME.max, with the
	 * greatest. NULL: none. */
	bool (*greatest)(const void *arg, const struct field *f);
	const void *greatest_arg;
	bool date_last; /* with every_ns: rows are dated by their last tick */
	/* The one recording of the run grows: tables_next() gives what has come, and ends where its recorder
	 * ends. Only tables of time; the numbers of processes are not known. Such a recording must have its
	 * schema: else -EAGAIN. */
	bool follow;
	bool whole;   /* read all, also where what is before from_s makes no difference */
	bool summary; /* tables_summary() will be asked for, which waits for a reading of its own: it comes
			   from that of the processes */
	const struct tables_told *told; /* was read before, and stays the caller's: it is not read again.
					   NULL: it is read here */
	bool same;			/* the caller takes field_cells.same */
	bool threads;			/* where there are CPUs for them; what comes out is the same */
	const struct progress *progress;
};

struct tables;

/* -ENOENT: no such domain or metric, with the nearest in reterr. */
int tables_open(
	const struct run *run, const struct tables_options *options, struct tables **ret, struct buf *reterr);
struct tables *tables_close(struct tables *f);
/* The run in numbers, which lives as long as the tables. */
int tables_summary(struct tables *f, const struct summary **ret, struct buf *reterr);
/* All tables and their columns are known from the start; one may turn out to have no rows. */
size_t tables_list(const struct tables *f, const struct data_table **ret);
/* `fold` of the options: their numbers in batches follow those of tables_list(). */
size_t tables_folded(const struct tables *f, const struct data_table **ret);
/* Of what is followed: the job told numbers of a new name, which are no columns here. */
bool tables_stale(const struct tables *f);
struct texts tables_texts(const struct tables *f, size_t table, size_t field); /* as far as given out */
/* 1 and a batch; 0 at the end; negative errno; of what is followed TABLES_WAIT: nothing yet. Rows of a table
 * come in order of recording, then time; batches of different tables alternate. */
#define TABLES_WAIT 2
int tables_next(struct tables *f, struct data_table_batch *ret);

struct tables_damage {
	uint64_t nr, bytes; /* places; what was in them */
};
/* In the recordings that were read to their end, or to that of what was asked for. */
struct tables_damage tables_damage(const struct tables *f);
#endif
