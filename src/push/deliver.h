/* Brings the points of a run to a sink: batches within its limits, again until they are taken, smaller where
 * some are refused, with what was sent remembered. It waits by itself and never prints. */
#ifndef PUSH_DELIVER_H
#define PUSH_DELIVER_H

#include "push/feed.h"
#include "push/state.h"

struct deliver_options {
	const struct push_sink *sink;
	const struct push_options *push;
	struct feed_options feed;
	const char *const *operand; /* recordings and directories, as named */
	size_t nr_operands;
	const char *job; /* of directories only this one; NULL */
	bool follow;
	uint64_t retries;  /* in a row, of a run that has ended */
	int64_t linger_ns; /* with follow: how long to try after its end */
	/* Called while it waits; true: give up now (a signal came). */
	bool (*stop)(void *arg);
	/* A line for the user: `problem` is not good news. */
	void (*say)(void *arg, bool problem, const char *text);
	/* --dry-run: what would be sent. */
	void (*show)(void *arg, const struct buf *text);
	void *arg;
};

struct deliver_result {
	int64_t points, dropped, requests; /* of this call */
	bool all;			   /* everything was sent, and the run has ended */
	bool before;			   /* an earlier push had sent all of it: nothing was left */
	char where[600];
};

/* 0; -EINVAL, -ENOENT, -EBUSY…: reterr says what is wrong; -EAGAIN: some waits to be sent. */
int deliver(const struct deliver_options *o, struct deliver_result *ret, struct buf *reterr);
#endif
