/* Which line each row of a set belongs to: one for all, for each instance, group or user, or for some
 * processes. Rows are asked about when an instance comes, leaves or is described anew, not at every tick. */
#ifndef QUERY_SPLIT_H
#define QUERY_SPLIT_H

#include "base/idmap.h"
#include "query/column.h"

/* Lines of one split: instances beyond are left out. */
#define SPLIT_LINES_MOST 2048
#define CLASS_NONE UINT32_MAX

struct class_face { /* what is to be said of a line */
	uint32_t id;
	int64_t pid;
	bool others, counted_elsewhere, seen;
	char *name; /* NULL: the host */
	size_t name_len;
};

struct split_query {
	enum column_per per;
	const char *group;	  /* only of processes in it; borrowed; NULL: of all */
	int64_t pid;		  /* only this process; 0: all */
	const struct idmap *keep; /* PER_PROCESS: id to class; the others are one behind them */
	uint32_t nr_keep;
};

struct split {
	struct split_query q;
	uint32_t set;
	uint64_t mask; /* of the group; 0: it has not appeared */
	bool begun, changed;
	uint32_t *class;  /* by row */
	uint64_t *groups; /* by row, PER_GROUP */
	uint32_t cap;
	uint32_t total;	 /* PER_ALL: the row that is the source's own fold, or CLASS_NONE */
	struct idmap of; /* id or user to class */
	struct class_face *face;
	uint32_t nr, nr_left_out;
	uint32_t *active; /* classes that have rows now; PER_GROUP: all */
	uint8_t *is_active;
	uint32_t nr_active, cap_active;
	/* The rows of each class but PER_GROUP, those of one after those of another. */
	uint32_t *member, *first_member;
	uint32_t *moved; /* classes of which a row has another value */
	uint8_t *is_moved;
};

int split_init(struct split *p, const struct split_query *q, uint32_t set); /* -ENOMEM */
void split_release(struct split *p);
int split_tick(struct split *p, const struct walk *s); /* -ENOMEM */

/* PER_ALL and PER_GROUP: the lines that take the row's value, as a mask. */
static inline uint64_t split_lines(const struct split *p, uint32_t row)
{
	if (p->q.per == PER_GROUP)
		return p->groups[row];
	return p->total != CLASS_NONE ? p->total == row : !p->class[row];
}

/* The values of all rows into fold[p->nr], of which those of the active lines begin anew. */
void split_fold(const struct split *p, const struct walk *s, const double *value, struct fold *fold);
/* The same when the rows are those that they were, and only these have other values: how many lines have one,
 * too, which are in *ret_lines. */
uint32_t split_fold_rows(struct split *p, const struct walk *s, const double *value, const uint32_t *row,
	uint32_t nr, struct fold *fold, const uint32_t **ret_lines);
#endif
