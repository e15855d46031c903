/* The metadata of a recording, or any other pairs that must outlive their record: a small copied dictionary.
 */
#ifndef QUERY_META_H
#define QUERY_META_H

#include "base/pairs.h"

struct meta {
	struct meta_item {
		char *key, *value; /* value has a terminator of its own beyond len */
		size_t len;
	} * item;
	uint32_t nr;
};

/* A later value of a key replaces the earlier. -ENOMEM, -E2BIG past META_MAX keys. */
#define META_MAX 4096
int meta_merge(struct meta *m, const struct pairs *pairs);
void meta_release(struct meta *m);

/* Of a metric that is not described, in a recording whose META has `unread`. */
extern const char why_unread[];
/* Of all metrics, in a recording that has no schema: it is written when the job has run for a moment. */
extern const char why_young[];

/* Why the last ticks are missing, by `write_error` of the end mark, and what to do about it. */
struct write_error {
	const char *name;
	const char *what;   /* "the disk was full" */
	const char *why;    /* of a value that is missing for it */
	const char *remedy; /* a half sentence */
};
const struct write_error *write_error_of(const char *name);
const struct write_error *gap_error_of(const struct pairs *gap); /* of an event `gap` */
/* One sentence: since when, and how many ticks are missing. */
#define WRITE_LOSS_SIZE 200
char *write_loss(
	char out[static WRITE_LOSS_SIZE], const char *name, int64_t after_ns, uint64_t lost, uint64_t all);

const struct meta_item *meta_find(const struct meta *m, const char *key);
/* "" when there is none; bytes after a NUL are not seen. */
const char *meta_text(const struct meta *m, const char *key);
/* false and *ret untouched when absent or not a decimal number. */
bool meta_num(const struct meta *m, const char *key, int64_t *ret);
/* The name that the recording has for a user, NULL when it has none: the same number is another user's
 * elsewhere. */
const struct meta_item *meta_user(const struct meta *m, int64_t uid);
#endif
