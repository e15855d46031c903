/* Lines of InfluxDB's line protocol, and its addresses: apart from the sink, for its tests. */
#ifndef PUSH_INFLUX_H
#define PUSH_INFLUX_H

#include "push/sink.h"

struct influx_tag { /* escaped; value NULL: it is the row's */
	char *key, *value;
};

struct influx_lines {		/* what is the same in all */
	char *measurement;	/* before the name of the table, escaped */
	struct influx_tag *tag; /* sorted by key */
	size_t nr;
};

/* -EINVAL: a label that InfluxDB has another use for; reterr says which. */
int influx_lines_make(struct influx_lines *l, const struct push *p, struct buf *reterr);
void influx_lines_release(struct influx_lines *l);
/* A line for each row: points that stand together and are of one thing at one time. Returns how many. */
size_t influx_lines_add(
	const struct influx_lines *l, const struct push_point *point, size_t nr, struct buf *out);

/* The address for requests, with the database or bucket from it or from the variables. */
int influx_url(const char *url, struct buf *out, struct buf *reterr);
#endif
