/* A run in progress, line by line as its recordings grow: the values are those of a series (query/series.h),
 * each given when the tick after it is there, or the recording has ended.
 *
 * Files may have no schema yet, and nodes may appear in a directory later; a recording that its recorder left
 * unfinished ends like any other. Nothing is read twice, and without news nothing but the sizes of the files
 * is looked at. */
#ifndef QUERY_FOLLOW_H
#define QUERY_FOLLOW_H

#include "query/series.h"

struct follow_query {
	struct series_query series;
	bool from_start; /* else from the last tick on that is there when a recording is first seen */
	double from_s;	 /* with from_start: not before this time of the recording; 0: all */
	const char *job; /* of directories only what belongs to it; NULL: any. Borrowed */
};

struct follow_line {
	const struct series *series; /* columns, host, start */
	size_t node;		     /* counts recordings in the order of their appearance */
	int64_t time_ns;
	const double *value; /* until the next call */
};

struct follow;

/* Each path is a recording or a directory, which may be empty still, or that of a run. */
int follow_open(const char *const *path, size_t nr, const struct follow_query *q, struct follow **ret,
	struct buf *reterr);
struct follow *follow_close(struct follow *f);

/* 1 and a line; FOLLOW_WAIT: there is none yet (ask again a little later: four times a second will do); 0:
 * all recordings have ended. Negative errno, and reterr says what is wrong: -ESTALE when a file was replaced
 * or cut. */
#define FOLLOW_WAIT 2
int follow_next(struct follow *f, struct follow_line *ret, struct buf *reterr);
/* A recording that ended without its end mark; NULL: none did, so far. */
const char *follow_unfinished(const struct follow *f);
size_t follow_nr(const struct follow *f); /* recordings that were found */
#endif
