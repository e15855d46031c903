/* The pieces of query/series: not for others. */
#ifndef QUERY_SERIES_INTERNAL_H
#define QUERY_SERIES_INTERNAL_H

#include "query/derived.h"
#include "base/expr.h"
#include "query/formulas.h"
#include "query/groups.h"
#include "query/meta.h"
#include "query/series.h"
#include "query/steady.h"
#include "store/store.h"

struct grown { /* what a rate() remembers */
	double last, rate;
	int64_t time_ns;
	bool known;
};

struct series_part { /* a column: an expression over metrics */
	struct series_column face;
	struct expr expr;
	struct {
		int set, col; /* -1: not recorded */
		double scale;
		enum metric_fold fold;
		bool counter;	  /* summed steadily */
		bool of_children; /* of those that a process waited for */
		struct steady steady;
	} name[EXPR_NAMES];
	enum derived_at at;
	enum metric_fold fold;
	uint32_t set; /* AT_INSTANCE */
	int64_t window_ns;
	/* AT_INSTANCE: by row */
	struct grown *grown; /* [nr_rows][nr_rates] */
	uint32_t *id;	     /* whose it is */
	uint32_t nr_rows;
	/* AT_FOLD: this tick and the one before, which waits for it */
	double now[EXPR_NAMES], before[EXPR_NAMES];
	struct grown whole[EXPR_RATES];
	bool cumulative; /* an amount that was used: it never falls */
	double reached;	 /* NAN: nothing yet */
};

struct series_instance {
	uint32_t id;
	int64_t pid;
	bool newborn; /* began in this recording, at zero, and nothing was lost since */
	bool total, late;
	uint32_t process; /* of one on a GPU: its id in the process set; 0: not known */
	bool apart;	  /* counted in others: not added to them */
	uint64_t groups;  /* mask; of a group its own bit */
	char *name;
	size_t name_len;
};

struct series_set {
	struct series_instance *instance; /* by row */
	uint32_t nr;
};

struct series {
	struct store_reader *reader;
	struct series_query query;
	struct groups group;
	uint64_t own;	       /* mask of groups: without what members' children used */
	uint64_t wanted_group; /* 0: all */
	char **wanted;	       /* copies of the query's names */
	struct series_part *column;
	struct series_column face[SERIES_MAX];
	size_t nr;
	struct series_set *set;
	uint32_t nr_sets;
	int process_set, gpu_process_set; /* -1: not recorded */
	struct meta meta;
	struct formulas formulas; /* the recording's own */
	double value[SERIES_MAX]; /* of the line that waits */
	double instance_value[SERIES_MAX];
	int64_t waiting_ns, last_ns; /* times of the line that waits and of the last tick */
	bool has_waiting, has_last;
	bool gap, waiting_gap; /* before the next tick; before the waiting one */
	uint32_t row;	       /* per_instance: the next to give in this tick */
	bool in_tick, done;
};

/* The set holds instances of this kind; -1 is none. */
bool series_is_of(const struct series *s, int set, enum domain domain);
#endif
