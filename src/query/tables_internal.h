/* The pieces of query/tables: not for others.
 *
 * A table of time keeps, for each of its columns, the value of every line (an instance, or a fold of some) at
 * the present tick, and brings up to date only what moved. A column is copied behind the batch that is being
 * filled when it is about to change, for all ticks since it did so last. So what costs is what changes, not
 * what is given out. */
#ifndef QUERY_TABLES_INTERNAL_H
#define QUERY_TABLES_INTERNAL_H

#include "query/split.h"
#include "query/tables.h"
#include "base/owned.h"
#include "query/process_table.h"

#include <pthread.h>

/* ---- texts ---- */

struct dictionary {
	const char **text;
	uint32_t *len;
	uint32_t nr, cap;
	struct owned arrays;		/* the former ones, too: others may still look at them */
	struct idmap by_hash;		/* numbers of texts */
	struct dictionary_piece *piece; /* where the texts are */
	uint64_t seed;
	struct buf escaped; /* scratch */
};

void dictionary_init(struct dictionary *d);
void dictionary_release(struct dictionary *d);
/* The number of the bytes, escaped. -ENOMEM */
int dictionary_put(struct dictionary *d, const char *bytes, size_t n, uint32_t *ret);
/* Of what is text already. */
int dictionary_put_text(struct dictionary *d, const char *text, size_t n, uint32_t *ret);

/* What it has now; stays valid, and has no more then. NULL: nothing. */
struct texts dictionary_texts(const struct dictionary *d);

/* ---- columns in memory ---- */

/* Bits that say which values are there, least significant first; buffers have BITS_SLACK bytes to spare. */
#define BITS_SLACK 8
#define BITS_SIZE(n) (((size_t)(n) + 7) / 8 + BITS_SLACK)

static inline bool bit_get(const uint8_t *bits, uint32_t at)
{
	return bits[at / 8] >> (at % 8) & 1;
}

static inline void bit_put(uint8_t *bits, uint32_t at, bool set)
{
	uint8_t mask = (uint8_t)(1u << (at % 8));

	bits[at / 8] = (uint8_t)(set ? bits[at / 8] | mask : bits[at / 8] & ~mask);
}

struct vector {
	union {
		void *any;
		int64_t *integer;
		double *real;
		uint32_t *text;
		uint8_t *flag;
	};
	uint8_t *known; /* bits */
	uint32_t size;	/* of a value */
	/* Of a line's present values: rows of the batch that have them; and as long as these are all the
	 * same, how many: then only the first is written. */
	uint32_t filled, same;
};

size_t field_size(enum field_type type);

struct data_table_lines {
	uint32_t nr, cap;
	struct vector *col; /* by field */
	/* The same for all of them: */
	int64_t time_ns;
	bool has_time;
	double elapsed;
	uint32_t host;
};

struct batch {
	struct batch *next;
	struct texts *texts; /* of each field, at that time */
	uint32_t held;
	size_t table;
	uint32_t nr;
	struct vector *col;
	struct field_cells *cell;
	uint32_t *recording;
};

struct batches {
	struct batch *first, *last;
	unsigned nr;
};

void batches_add(struct batches *list, struct batch *b);
void batches_free(struct batch *b);

struct side_thread {
	pthread_t thread;
	bool runs;
};

/* ---- what there is ---- */

/* Of those from KEY_INSTANCE on a table has the first ones; KEY_SINCE, where it is wanted, stands behind its
 * last. */
enum { KEY_TIME, KEY_ELAPSED, KEY_HOST, KEY_INSTANCE, KEY_PID, KEY_PROCESS, KEY_SINCE };

enum table_source {
	SOURCE_KEY,
	SOURCE_CELL,	 /* recorded, and taken from the cell itself */
	SOURCE_ROWS,	 /* computed for each instance */
	SOURCE_WHOLE,	 /* computed of sums, one tick late */
	SOURCE_GREATEST, /* of another column, in each window: `of` */
};

enum resample { RESAMPLE_MEAN, RESAMPLE_MAX, RESAMPLE_LAST };

struct column_own { /* what stands behind a field */
	enum table_source source;
	char *metric; /* its name in the recordings */
	char *name, *help;
	char *set; /* of recorded ones; NULL else */
	char *why; /* it is not available anywhere; NULL: it is */
	enum metric_unit unit;
	enum metric_kind kind;
	enum metric_fold fold;
	bool per_second, rate;
	bool derived;	    /* computed by a formula */
	bool counts;	    /* counts, bytes and codes in whole numbers, in all recordings */
	bool scales_differ; /* among the recordings */
	bool real;	    /* in one of them the cells are doubles */
	bool available, wanted;
	double scale;
	enum resample resample;
	struct dictionary *texts; /* FIELD_TEXT */
	struct texts given;	  /* of it, as far as given out */
	/* Of the recording that is being read: */
	struct column *bound;
	struct rows rows;
	struct whole *whole; /* one for each group, and NO_GROUP; or one */
	uint32_t nr_wholes;
	uint32_t place; /* SOURCE_ROWS: of its set in the table */
	size_t of;	/* SOURCE_GREATEST: the field */
};

struct cell_use {
	uint32_t field, col;
	struct scaling scaling;
	int64_t factor; /* FIELD_INT */
	bool integer;
};

struct data_table_set { /* a set of the recording, in its table */
	uint32_t set;
	uint32_t *text; /* by row: the number of its instance's name */
	uint32_t *line; /* by row: NO_LINE when it is empty */
	uint32_t *anew; /* rows that came to another line, or have another instance, at this tick */
	uint32_t nr_anew, cap;
	struct cell_use *cell;
	size_t nr_cells;
	uint64_t cols;		     /* that are in use, as a mask */
	uint8_t of_col[METRICS_MAX]; /* which cell_use */
	struct split split;	     /* folded: into which lines */
	bool seen;		     /* the same: an instance was there, at some time */
};

#define NO_LINE UINT32_MAX

struct data_table_own {
	struct data_table face;
	enum domain domain; /* NR_DOMAINS: not of time, or not known to us */
	int still;	    /* enum still_table; -1: of time */
	bool of_processes, folded, by_group, wanted;
	bool usual; /* there when no tables are chosen */
	bool late;  /* some columns come one tick late, so all do */
	struct field *field;
	struct column_own *own; /* by field, the keys' too */
	size_t nr, nr_keys;
	size_t since;		    /* the field of KEY_SINCE; 0: none */
	struct column_own *planned; /* as they were found in the recordings; wanted ones move to `own` */
	size_t nr_planned;
	/* Of the recording that is being read: */
	struct data_table_set *set;
	size_t nr_sets;
	size_t computed, nr_computed; /* of reading.computed, those that are its own */
	size_t news, nr_news;	      /* the same of reading.news, at this tick */
	struct data_table_lines now;
	int64_t now_ns, span_ns; /* when, and the time since the tick before */
	uint32_t layout;	 /* changes when the lines are others */
	bool begun;		 /* at this recording */
	bool waits;		 /* late: the tick that is in `now` */
	struct line_face {
		uint32_t identity; /* within the recording */
		int group;	   /* its group; -1: none */
	} * line;
	uint32_t line_cap;
	struct text_line { /* by text: the line of that name */
		uint32_t line, layout;
		uint32_t set; /* the last that has a row in it */
	} * of_text;
	uint32_t nr_of_text;
	struct window {
		struct data_table_lines lines;
		double **weight; /* by field: of the values in a mean */
		struct idmap of; /* identity to line */
		uint32_t *map;	 /* by line of `now` */
		uint32_t map_cap, layout;
		int64_t index, last_ns; /* last_ns: its last tick */
		bool open;
	} window;
	/* Batches. */
	struct tables *of;
	size_t index;
	struct batches *made; /* where they go when they are full */
	struct batch *filling, *spare;
	uint32_t pushed;	      /* rows of `filling` that are ticks of `now` */
	uint32_t base_row, base_line; /* that row is of that line, and those behind it of those behind it */
	size_t put;		      /* cells of the row that is being filled */
	int err;		      /* of it */
};

/* The tables of time, in one recording after the other. */
struct reading {
	struct tables *of;
	struct data_table_own **table;
	size_t nr;
	/* The recording that is being read. */
	size_t recording;
	struct walk *walk;
	uint64_t size; /* of its file */
	struct gathering *gathering;
	struct tables_damage damage; /* of those before it */
	int64_t offset_ns;
	struct computed {
		struct column_own *column;
		uint32_t field;
		/* At most ticks most columns rest: what tells so stands here, side by side. */
		uint32_t set;
		uint64_t cols;
		bool awake; /* it must be computed at the next tick, whatever moves */
	} * computed;	    /* of each instance: what is bound, table by table */
	size_t nr_computed;
	uint32_t
		*news; /* of these, the ones with rows that have another value at this tick, in their order */
	size_t nr_news;
	uint64_t *moved_cols; /* by set: the columns that moved; all where occupants did */
	unsigned nr_groups;   /* that have their sums */
	struct sums sums;
	struct process_numbers numbers;
	struct numbering {
		struct walk_observer observer;
		struct reading *of;
	} numbering;		/* as they come; where all of them are read */
	size_t numbered;	/* processes of the recordings before the present one */
	size_t numbered_before; /* the same when it was begun */
	bool whole;		/* nothing of the present one may be passed over */
	bool past;		/* what was asked for of it; the rest is read for the events in it */
	struct batches made;
	/* Shared with the taker of batches, under the lock. */
	struct batches ready;
	double share; /* recordings that were read, and of the present one how much */
	int result;   /* 1: there may be more */
	struct side_thread thread;
};

/* What is told of the run as a whole: the table of processes and the summary, from a reading of their own
 * beside that of the tables. */
struct told {
	bool processes, summary; /* what is wanted */
	bool before;		 /* before the tables of time are read, which need it */
	bool done;
	int result;
	struct buf err;
	struct side_thread thread;
};

struct tables {
	const struct run *run;
	struct tables_options options;
	double from_s, to_s;
	struct data_table *face;
	struct data_table_own *table;
	size_t nr;
	int64_t *start_ns; /* by recording; 0: not known */
	int64_t first_ns;  /* of the run */
	char **host;	   /* by recording */
	bool bare_groups;  /* some recording has none of their metrics: their rows are those of its processes
			    */
	struct absent {	   /* metrics that no recording could read */
		char *table;
		struct column_own column;
	} * absent;
	size_t nr_absent;
	struct field *counted; /* of table "phases": what the processor counted, and formulas over that */
	size_t nr_counted;
	uint32_t nr_spare;	     /* columns that had no name yet, in all recordings */
	bool stale;		     /* one of them has got a name */
	struct tables *folded;	     /* beside them: planned only, read as if they were ours; NULL: none */
	struct data_table_own *told; /* not asked for, but in table "metrics" */
	size_t nr_told;
	struct told of_run;
	struct process_table *processes; /* NULL: not needed, or not read yet */
	struct summary *summary;	 /* the same */
	struct run_events *events;	 /* NULL: the same; gathered on the way where all ticks are read */
	/* Of time. */
	struct reading reading;
	pthread_mutex_t lock;
	pthread_cond_t moved, taken; /* the reading has got on; a batch of it was taken */
	bool stops;
	/* What is to be given out. */
	struct batches made; /* by no other thread */
	struct batch *given;
	bool still_begun;
	size_t still; /* table that is being made, of those that are not of time */
	size_t still_row;
	struct still_data *still_data;
	bool finished;
};

/* ---- planning ---- */

uint32_t schema_spare(const struct schema *schema); /* columns that have no name yet */
int tables_plan(struct tables *f, struct buf *reterr);
void column_own_release(struct column_own *c);
void data_table_own_release(struct data_table_own *fr); /* what was planned */

/* The domain whose table a metric stands in; NULL: in none. */
const char *data_table_domain_of(const struct walk *s, const struct column *c);

/* The place of what a group would have in which no process ever was: one that is found later begins as that.
 */
#define NO_GROUP GROUPS_MOST

/* ---- one recording ---- */

int reading_next(struct reading *f); /* by a tick; 0: the recordings are through; TABLES_WAIT */
int reading_bind(struct reading *f); /* to the walk */
void reading_unbind(struct reading *f);
int data_table_update(struct reading *f, struct data_table_own *fr); /* `now` is this tick */
/* The lines of a table that is folded: the node, or the groups. */
int data_table_fold(struct reading *f, struct data_table_own *fr);
void data_table_lines_clear(struct data_table_own *fr); /* there are none */
/* Puts a line behind the others, with nothing known of it. */
int data_table_line_new(struct data_table_own *fr, uint32_t identity, int group, uint32_t *ret);
int data_table_line_name(struct data_table_own *fr, uint32_t line, const char *name, size_t len);

/* A column of `now` that is about to change: the rows that were pushed get what it was. */
void column_fill(struct data_table_own *fr, size_t field);
static inline struct vector *now_column(struct data_table_own *fr, size_t field)
{
	if (fr->now.col[field].filled < fr->pushed)
		column_fill(fr, field);
	return &fr->now.col[field];
}
void lines_settle(struct data_table_own *fr); /* the same of all of them: the lines become others */

static inline void vector_put_real(struct vector *v, uint32_t line, double value)
{
	v->real[line] = value;
	bit_put(v->known, line, value - value == 0); /* neither NAN nor without end */
}

/* ---- giving out ---- */

int data_table_lines_reserve(const struct data_table_own *fr, struct data_table_lines *l, uint32_t nr);
void data_table_lines_release(const struct data_table_own *fr, struct data_table_lines *l);
int data_table_now_push(struct data_table_own *fr, uint32_t recording);
int data_table_lines_push(struct data_table_own *fr, uint32_t recording, const struct data_table_lines *l);
/* A row at a time, every cell in its turn; a failure sticks until the end of the row. */
int data_table_row(struct data_table_own *fr);
int data_table_row_end(struct data_table_own *fr);
void put_missing(struct data_table_own *fr);
void put_integer(struct data_table_own *fr, int64_t value);
void put_real(struct data_table_own *fr, double value);	  /* NAN: missing */
void put_number(struct data_table_own *fr, double value); /* of the field's type; NAN: missing */
void put_flag(struct data_table_own *fr, bool value);
void put_text(struct data_table_own *fr, const char *text);		/* as it is; NULL: missing */
void put_bytes(struct data_table_own *fr, const void *bytes, size_t n); /* escaped; NULL: missing */
void data_table_flush(struct data_table_own *fr);
struct batch *batches_reuse(struct data_table_own *fr);

int data_table_window_add(struct reading *f, struct data_table_own *fr, int64_t time_ns);
int data_table_window_close(struct reading *f, struct data_table_own *fr);
void data_table_window_release(struct data_table_own *fr);

/* Processes and summary, whatever of them is wanted, are there. */
int tables_tell(struct tables *f);

/* ---- tables that are not of time ---- */

enum still_table {
	STILL_PROCESSES,
	STILL_EVENTS,
	STILL_METRICS,
	STILL_META,
	STILL_SUMMARY,
	STILL_PHASES,
	NR_STILL
};

extern const struct still {
	const char *name, *help;
	const struct field *field;
	size_t nr;
} still_tables[NR_STILL];

/* Adds up to a batch of rows; 0 when there are no more. */
int still_next(struct tables *f, struct data_table_own *fr);
void still_release(struct tables *f);
#endif
