/* The pieces of query/frames: not for others.
 *
 * A frame of time keeps, for each of its columns, the value of every line (an instance, or a fold of some) at
 * the present tick, and brings up to date only what moved. A tick is then copied behind the batch that is
 * being filled, column by column. So what costs is what changes, not what is given out. */
#ifndef QUERY_FRAMES_INTERNAL_H
#define QUERY_FRAMES_INTERNAL_H

#include "query/column.h"
#include "query/frames.h"
#include "base/idmap.h"
#include "query/process_table.h"

/* ---- texts ---- */

struct dictionary {
	const char **text;
	uint32_t *len;
	uint32_t nr, cap;
	struct idmap by_hash;		/* numbers of texts */
	struct dictionary_piece *piece; /* where the texts are */
	uint64_t seed;
	struct buf escaped; /* scratch */
};

void dictionary_init(struct dictionary *d);
void dictionary_release(struct dictionary *d);
/* The number of the bytes, escaped. -ENOMEM */
int dictionary_put(struct dictionary *d, const void *bytes, size_t n, uint32_t *ret);
/* Of what is text already. */
int dictionary_put_text(struct dictionary *d, const char *text, size_t n, uint32_t *ret);

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
};

size_t field_size(enum field_type type);

struct frame_lines {
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
	uint32_t held;
	size_t frame;
	uint32_t nr;
	struct vector *col;
	struct field_cells *cell;
	uint32_t *recording;
};

/* ---- what there is ---- */

enum { KEY_TIME, KEY_ELAPSED, KEY_HOST, KEY_INSTANCE, KEY_PID, KEY_PROCESS };

enum source {
	SOURCE_KEY,
	SOURCE_CELL,  /* recorded, and taken from the cell itself */
	SOURCE_ROWS,  /* computed for each instance */
	SOURCE_WHOLE, /* computed of sums, one tick late */
};

enum resample { RESAMPLE_MEAN, RESAMPLE_MAX, RESAMPLE_LAST };

struct column_own { /* what stands behind a field */
	enum source source;
	char *metric; /* its name in the recordings */
	char *name, *help;
	char *set; /* of recorded ones; NULL else */
	char *why; /* it is not available anywhere; NULL: it is */
	enum metric_unit unit;
	enum metric_kind kind;
	enum metric_fold fold;
	bool per_second, rate;
	bool counts;	    /* counts, bytes and codes in whole numbers, in all recordings */
	bool scales_differ; /* among the recordings */
	bool available, wanted;
	double scale;
	enum resample resample;
	struct dictionary *texts; /* FIELD_TEXT */
	/* Of the recording that is being read: */
	struct column *bound;
	struct rows rows;
	struct whole *whole; /* one for each group, or one */
	uint32_t nr_wholes;
	uint32_t place; /* SOURCE_ROWS: of its set in the frame */
};

struct seat { /* what is to be said of who sits in a row */
	uint32_t id, text;
	int64_t pid, process; /* 0, -1: not known */
	uint64_t groups;
};

struct cell_use {
	uint32_t field, col;
	struct scaling scaling;
	int64_t factor; /* FIELD_INT */
	bool integer;
};

struct frame_set { /* a set of the recording, in its frame */
	uint32_t set;
	struct seat *seat; /* by row */
	uint32_t *line;	   /* by row: NO_LINE when nobody sits there */
	uint32_t *anew;	   /* rows that came to another line, or changed hands, at this tick */
	uint32_t nr_anew, cap;
	struct cell_use *cell;
	size_t nr_cells;
	uint64_t cols;		     /* that are in use, as a mask */
	uint8_t of_col[METRICS_MAX]; /* which cell_use */
	bool seen;		     /* folded: somebody was there, sometime */
};

#define NO_LINE UINT32_MAX

struct frame_own {
	struct frame face;
	enum domain domain; /* NR_DOMAINS: not of time, or not known to us */
	int still;	    /* enum still_frame; -1: of time */
	bool of_processes, folded, by_group, wanted;
	bool usual; /* there when no frames are chosen */
	bool late;  /* some columns come one tick late, so all do */
	struct field *field;
	struct column_own *own; /* by field, the keys' too */
	size_t nr, nr_keys;
	struct column_own *recorded, *derived; /* while planning */
	size_t nr_recorded, nr_derived;
	/* Of the recording that is being read: */
	struct frame_set *set;
	size_t nr_sets;
	size_t computed, nr_computed; /* of frames.computed, those that are its own */
	struct frame_lines now;
	int64_t now_ns, span_ns; /* when, and the time since the tick before */
	uint32_t layout;	 /* changes when the lines are others */
	bool begun;		 /* at this recording */
	bool waits;		 /* late: the tick that is in `now` */
	struct line_face {
		uint32_t identity; /* within the recording */
		int group;	   /* whose it is; -1: of none */
	} * line;
	uint32_t line_cap;
	struct text_line { /* by text: the line of that name */
		uint32_t line, layout;
		uint32_t set; /* the last that has a row in it */
	} * of_text;
	uint32_t nr_of_text;
	struct window {
		struct frame_lines lines;
		double **weight; /* by field: of the values in a mean */
		struct idmap of; /* identity to line */
		uint32_t *map;	 /* by line of `now` */
		uint32_t map_cap, layout;
		int64_t index;
		bool open;
	} window;
	/* Batches. */
	struct batch *filling, *spare;
};

struct frames {
	const struct run *run;
	struct frames_options options;
	double from_s, to_s;
	struct frame *face;
	struct frame_own *frame;
	size_t nr;
	int64_t *start_ns; /* by recording; 0: not known */
	int64_t first_ns;  /* of the run */
	char **host;	   /* by recording */
	struct absent {	   /* metrics that no recording could read */
		char *frame;
		struct column_own column;
	} * absent;
	size_t nr_absent;
	struct frame_own *told; /* not asked for, but in frame "metrics" */
	size_t nr_told;
	struct process_table *processes; /* NULL: nobody needs them */
	struct summary *summary;	 /* NULL: not read yet */
	struct moments *moments;	 /* NULL: the same; gathered on the way where all ticks are read */
	struct gathering *gathering;	 /* those of the present recording */
	/* The recording that is being read. */
	size_t recording;
	struct scene *scene;
	uint64_t size; /* of its file */
	uint64_t ticks;
	struct frames_damage damage; /* of those before it */
	int64_t offset_ns;
	struct computed {
		struct column_own *column;
		uint64_t cols; /* of its set, that it is made of */
		uint32_t set, field;
		bool looked;   /* at this tick something was computed */
		bool restless; /* it must be looked at though nothing moves */
	} * computed;	       /* of each instance: what is bound, frame by frame */
	size_t nr_computed;
	unsigned nr_groups; /* whose sums have begun */
	struct sums sums;
	struct idmap numbers;	/* of processes, by id */
	size_t numbered;	/* rows of `processes` that belong to recordings before the present one */
	size_t numbered_before; /* the same when it was begun */
	bool whole;		/* nothing of the present one may be passed over */
	/* What is to be given out. */
	struct batch *first, **end, *given;
	size_t still; /* frame that is being made, of those that are not of time */
	size_t still_row;
	struct still_data *still_data;
	bool of_time; /* some frame is */
	bool finished;
};

/* ---- planning ---- */

int frames_plan(struct frames *f, struct buf *reterr);
void column_own_release(struct column_own *c);
void frame_own_release(struct frame_own *fr); /* what was planned */

/* The domain whose frame a metric stands in; NULL: in none. */
const char *frame_domain_of(const struct scene *s, const struct column *c);

/* ---- one recording ---- */

int frames_bind(struct frames *f); /* to the scene */
void frames_unbind(struct frames *f);
int frame_update(struct frames *f, struct frame_own *fr); /* `now` is this tick */
/* The lines of a frame that is folded: the node, or the groups. */
int frame_fold(struct frames *f, struct frame_own *fr);
void frame_lines_clear(struct frame_own *fr); /* there are none */
/* Puts a line behind the others, with nothing known of it. */
int frame_line_new(struct frame_own *fr, uint32_t identity, int group, uint32_t *ret);
int frame_line_name(struct frame_own *fr, uint32_t line, const char *name, size_t len);

static inline void vector_put_real(struct vector *v, uint32_t line, double value)
{
	v->real[line] = value;
	bit_put(v->known, line, value - value == 0); /* neither NAN nor without end */
}

/* ---- giving out ---- */

int frame_lines_reserve(const struct frame_own *fr, struct frame_lines *l, uint32_t nr);
void frame_lines_release(const struct frame_own *fr, struct frame_lines *l);
int frame_lines_push(struct frames *f, struct frame_own *fr, const struct frame_lines *l);
/* A row at a time: cells that are not put are missing. */
int frame_row(struct frames *f, struct frame_own *fr);
void frame_row_end(struct frames *f, struct frame_own *fr);
void frame_put_integer(struct frame_own *fr, uint32_t field, int64_t value);
void frame_put_real(struct frame_own *fr, uint32_t field, double value); /* NAN: missing */
void frame_put_flag(struct frame_own *fr, uint32_t field, bool value);
int frame_put_bytes(struct frame_own *fr, uint32_t field, const void *bytes, size_t n); /* escaped */
int frame_put_text(struct frame_own *fr, uint32_t field, const char *text); /* as it is; NULL: missing */
void frame_flush(struct frames *f, struct frame_own *fr);
void batches_free(struct batch *b);

int frame_window_add(struct frames *f, struct frame_own *fr, int64_t time_ns);
int frame_window_close(struct frames *f, struct frame_own *fr);
void frame_window_release(struct frame_own *fr);

/* ---- frames that are not of time ---- */

enum still_frame { STILL_PROCESSES, STILL_EVENTS, STILL_METRICS, STILL_META, STILL_SUMMARY, NR_STILL };

extern const struct still {
	const char *name, *help;
	const struct field *field;
	size_t nr;
} still_frames[NR_STILL];

/* Adds up to a batch of rows; 0 when there are no more. */
int still_next(struct frames *f, struct frame_own *fr);
void still_release(struct frames *f);
#endif
