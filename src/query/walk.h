/* One recording, tick by tick, with which instance each row is of and what is said of it. The recording is
 * read once for any number of observers: accounts and processes (query/ledger), curves, events.
 *
 * Notes that were added to a recording (query/sidecar) are given out as events of it, at their times.
 *
 * A tick tells which rows moved (a cell changed, an instance came, left or was described anew), so that what
 * did not move need not be computed again. */
#ifndef QUERY_WALK_H
#define QUERY_WALK_H

#include "base/buf.h"
#include "query/clock.h"
#include "query/counter_watch.h"
#include "query/formulas.h"
#include "query/groups.h"
#include "query/meta.h"
#include "query/run.h"
#include "query/sidecar.h"
#include "query/told.h"
#include "store/watch.h"

struct occupant {
	uint32_t id;
	int64_t pid, uid; /* uid -1: not known */
	bool newborn;	  /* began in this recording, at zero, and nothing was lost since */
	bool total, late;
	bool own;	  /* the job's own; of a group: its members count without what their children used */
	uint32_t process; /* of a process and of one on a GPU: its id in the process set; 0: not known */
	bool counted_elsewhere; /* counted in others: not added to them */
	uint64_t groups;	/* mask; of a group its own bit */
	char *name, *source; /* source: what it was read from, of one on a GPU the device; NULL: not said */
	size_t name_len;
};

enum moved {
	MOVED_NOT,
	MOVED_CELLS,	/* only cells */
	MOVED_OCCUPANT, /* the occupant, or what is said of it */
};

struct walk_set {
	struct occupant *instance; /* by row */
	uint32_t *id;		   /* by row: its occupant; ROW_FREE: none */
	uint32_t nr_rows, cap;
	uint32_t occupancy; /* the table's, when we looked */
	uint32_t *moved; /* rows in which anything is other than at the tick before; also rows that are empty
			    now */
	uint32_t nr_moved;
	uint8_t *is_moved;	/* by row, an enum moved */
	uint64_t *cols;		/* by row: which cells are other, as a mask; all where the occupant moved */
	uint64_t any_cols;	/* of all rows together */
	bool occupants_changed; /* an instance came, left, or was described anew */
	int64_t last_ns;	/* when it was read for the tick before */
};

struct walk {
	struct store_reader *reader;
	struct node_clock
		*clock; /* all that is given out is on the clock of the run; NULL: on the recording's own */
	const struct schema *schema; /* NULL: why_young */
	bool plain;		     /* walk_open_plain() */
	struct meta meta;	     /* as far as known at the first tick; of a plain one as far as read */
	struct formulas formulas;    /* the recording's own */
	bool has_groups;	     /* at the first tick: some of several targets */
	struct told_names told;	     /* names of the job's numbers, where they were read ahead */
	struct groups group;	     /* those of the metadata first, then as they appear */
	uint64_t own;		     /* mask of groups: without what members' children used */
	struct occupant said;	     /* what an INSTANCE record says, but for texts; newborn is not known */
	struct walk_set *set;
	uint32_t nr_sets;
	int process_set, gpu_process_set; /* -1: not recorded */
	int64_t sliver_ns;		  /* ticks that follow closer than that came late; 0: not known */
	int64_t time_ns, last_ns;	  /* of this tick and of the one before */
	unsigned at, last_at;		  /* likewise: a mask of enum tick_at */
	int cpus_set, cpus_col;		  /* of limit.cpus; -1: not recorded */
	double cpus;			  /* that the job may use; INFINITY: not known */
	int64_t clock_turns; /* of those who slept the CPU time was read at one of so many ticks */
	bool has_last;	     /* there was one before */
	bool gap;	     /* something was lost between them */
	bool in_tick;
	uint64_t nr_ticks; /* that were read */
	bool sought;	   /* it did not begin at the first of them */
	bool follows, waits;
	bool rests;	   /* walk_rest() */
	int64_t looked_ns; /* while it rests: when the file was opened last, by the monotonic clock */
	struct store_watch watch;
	struct sidecar *notes; /* that were added afterwards; NULL: none, or all were given out */
	size_t next_note;
	char *path;			/* of one that is followed */
	struct walk_observer *observer; /* the first of those that see every record; NULL: none */
};

/* Sees each record, after the walk has taken it in. A negative result ends the reading. */
struct walk_observer {
	int (*record)(struct walk_observer *o, const struct store_record *record);
	int (*after_tick)(struct walk_observer *o); /* when all have seen a tick; NULL: not wanted */
	int64_t from_ns; /* what lies before makes no difference to it; 0: all does */
	bool done;	 /* it needs no more */
	struct walk_observer *next;
};

/* `group`, if not NULL, must occur somewhere in the recording, else -ENOENT. */
int walk_open(const char *path, const char *group, struct walk **ret);
/* For observers that look at the tables themselves: what moved is not found out, processes have no names, and
 * nothing is read ahead. Records before the schema are seen, too. */
int walk_open_plain(const char *path, struct walk **ret);
struct walk *walk_close(struct walk *s);
/* 1: at the next tick; 0: at the end of the file, which may grow: a later call reads on; negative errno. Of a
 * recording that is followed 0 is its end, WALK_WAIT says that the next tick is not written yet, and -ESTALE
 * that another file has its name now, or that it was cut. */
#define WALK_WAIT 2
int walk_next(struct walk *s);
/* From now on the end is where its recorder ended. -ENOMEM. */
int walk_follow(struct walk *s, const char *path);
/* For those who follow many: after WALK_WAIT or 0, gives back the file and the buffers until there is more.
 */
void walk_rest(struct walk *s);
/* To be called before the first walk_next(): passes over what is long before the time (INT64_MAX: the end),
 * so that what is computed from a tick and those shortly before it is the same from that time on.
 * A negative errno. */
int walk_seek(struct walk *s, int64_t time_ns);
/* Enough ticks were read before this one for that. */
static inline bool walk_is_warm(const struct walk *s)
{
	return !s->sought || s->nr_ticks > 3;
}

struct table *walk_table(const struct walk *s, uint32_t set);
/* When the set was read for this tick. */
static inline int64_t walk_time(const struct walk *s, uint32_t set)
{
	return s->time_ns + walk_table(s, set)->delay_ns;
}
/* By how much the CPU time of a process may have been read late at this tick. */
static inline double walk_late(const struct walk *s)
{
	return s->has_last ? (double)s->clock_turns * ((double)(s->time_ns - s->last_ns) / 1e9) : 0;
}
/* What is said of the occupant of the row; NULL: nothing, or there is none. */
static inline const struct occupant *walk_occupant(
	const struct walk *s, uint32_t set, uint32_t row, uint32_t id)
{
	const struct walk_set *in = &s->set[set];

	return row < in->cap && in->instance[row].id == id ? &in->instance[row] : NULL;
}
/* Anything moved in the row that matters to who looks at these columns (a mask). */
static inline bool walk_row_moved(const struct walk_set *set, uint32_t row, uint64_t cols)
{
	return set->cols[row] & cols;
}
/* The set holds instances of this kind; -1 is none. */
bool walk_is_of(const struct walk *s, int set, enum domain domain);
/* Its instances are processes, or processes on GPUs: each has a PID, and is in the groups of its process. */
bool walk_is_of_processes(const struct walk *s, int set);
int64_t walk_start(const struct walk *s);	  /* wall clock of the run, ns; 0: not known */
struct tick_view walk_view(const struct walk *s); /* of the tick it is at */
/* It sees each record before those that were there already. */
void walk_observe(struct walk *s, struct walk_observer *o);
#endif
