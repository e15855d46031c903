/* What `top` knows: the recordings of a run, followed as they grow, and the moment that is looked at.
 *
 * Times are nanoseconds of the run: after the start of its earliest recording. Each node has a reading from
 * the first tick on; for a moment that is not kept there another one is opened shortly before it. */
#ifndef TOP_MODEL_H
#define TOP_MODEL_H

#include "query/run.h"
#include "top/reading.h"

struct top_node {
	char *path, *host;
	struct top_reading *main, *past;
	struct top_reading *tail; /* of a long recording: its end, until main has come there */
	int64_t offset_ns;
	int64_t tried_ns; /* of one that is too young to be read */
	int64_t young_ns; /* since when it is known that it is; 0: it is not */
	bool tables;	  /* main has the processes */
	bool gone;	  /* its recorder ended without an end mark */
	bool empty;	  /* nothing can be read of it, and its recorder is gone */
	char *why;	  /* it cannot be read (any more); NULL: it can */
};

#define TOP_ALL SIZE_MAX

struct ghost;

struct model {
	struct top_node *node;
	size_t nr;
	char **named; /* what the user named: directories may get more */
	size_t nr_named;
	bool grows; /* a directory is among them */
	const char *job;
	size_t focus;		    /* a node; TOP_ALL: all of them */
	char *group;		    /* of the focus; NULL: all of its processes */
	bool live;		    /* the newest moment */
	int64_t end_ns;		    /* model_end() */
	int64_t time_ns, window_ns; /* window: what curves show */
	bool own_window;	    /* the user chose it; else it grows with the run, to some minutes */
	int64_t start_wall_ns, looked_ns, changed_ns;
	bool expects;	      /* some of what is in a directory is no recording yet */
	size_t turn;	      /* the node that is read first at the next look */
	double share;	      /* of what is there that was read; 1: all */
	bool few_files;	      /* not all recordings can be open at once */
	struct ghost *ghost;  /* NULL: none */
	int64_t fit_until_ns; /* model_focus() may read so long */
	int64_t fresh_ns;     /* when a tick came last, by the monotonic clock */
	bool news;	      /* something is other than it was at the last look */
};

/* A node at the moment that is looked at. */
struct node_view {
	const struct top_reading *reading; /* NULL: nothing of it is known */
	const struct top_point *now;	   /* NULL: it had not begun, or nothing is known */
	const struct snapshot *table;	   /* NULL: not asked for, or not known */
	bool ended;			   /* long before: nothing of it counts any more */
	int64_t time_ns;		   /* of the node */
};

/* 0 or a negative errno, and reterr says what is wrong. `wait`: what is named need not be there yet. */
int model_open(
	struct model *m, const char *const *path, size_t nr, const char *job, bool wait, struct buf *reterr);
void model_close(struct model *m);
/* Reads what is new, for about so long. True: there is more at once. */
bool model_poll(struct model *m, int64_t budget_ns);
/* Seconds for which no tick came that should have come; 0: all is well. */
unsigned model_silence(const struct model *m);
bool model_is_over(const struct model *m); /* all recordings have ended */
int64_t model_end(const struct model *m);  /* the newest moment of which numbers are known */
int64_t model_now(const struct model *m);  /* the moment that is looked at */
/* Looks at that moment; beyond the newest one: at the newest from now on. */
void model_go(struct model *m, int64_t time_ns);
void model_step(struct model *m, int ticks);
/* A look at that node and group; node TOP_ALL: all of them. */
bool model_has_parts(const struct model *m); /* there is more than one node, or group of processes */
/* Reads what is missing for it. */
struct node_view model_view(struct model *m, size_t node, bool table);
/* The next of: all, each node, each group of it. -ENOMEM. */
int model_next_focus(struct model *m);
int model_focus(struct model *m, size_t node, const char *group);
size_t model_main(const struct model *m); /* the node of the focus; of all the first that is known */
/* Events of the node; NULL: nothing is known of it. */
const struct run_events *model_events(const struct model *m, size_t node);
/* What is asked of all nodes: sums and means. False: nothing is known. */
bool model_sum(struct model *m, double ret[static NR_TOP_VALUES]);

/* Bytes a second by which memory grows now; NAN: not known. */
double memory_slope(const struct top_reading *r, int64_t time_ns);
/* Seconds until the limit is reached at this rate; NAN: it does not grow, or not within a day. */
double memory_reach(double memory, double limit, double slope);

/* ---- an earlier run of the same command ---- */

int ghost_open(const char *path, struct ghost **ret, struct buf *reterr);
struct ghost *ghost_close(struct ghost *g);
/* Chooses what of it is behind the nodes or the group that the model looks at. NULL, or why there is nothing
 * of it to be shown. */
const char *ghost_look(struct ghost *g, const struct model *m);
bool ghost_is_shown(const struct ghost *g); /* g may be NULL; the rest needs it */
/* The moment of the earlier run that corresponds to this one: phases that both have are laid over each other.
 */
double ghost_time(const struct ghost *g, const struct run_events *events, double time_s);
double ghost_value(const struct ghost *g, double time_s, enum top_value which); /* NAN: not known */
double ghost_length(const struct ghost *g);
#endif
