/* Lists of key and value: how identities, exits, events and metadata travel and are stored.
 *
 * Keys are ASCII [a-z0-9_.], and capitals behind "env."; values are bytes (a process name need not be UTF-8).
 * Nothing is owned: a list points at memory that outlives it. */
#ifndef BASE_PAIRS_H
#define BASE_PAIRS_H

#include "base/buf.h"

struct pair {
	const char *key;
	const char *value;
	size_t len;
};

#define PAIRS_MAX 256

struct pairs {
	struct pair *pair;
	uint32_t nr, cap;
	struct buf text; /* numbers formatted by pairs_num() live here */
};

/* The memory is the caller's; nothing is allocated. A full list drops what is added (and says so in
 * text.err), which a test on the callers' sizes excludes. */
void pairs_init(struct pairs *p, struct pair *memory, uint32_t nr, void *text, size_t text_size);
void pairs_reset(struct pairs *p);
void pairs_add(struct pairs *p, const char *key, const void *value, size_t len); /* value is borrowed */
void pairs_str(struct pairs *p, const char *key, const char *value);		 /* value is borrowed */
void pairs_num(struct pairs *p, const char *key, int64_t value);

/* NULL when there is no such key. */
const struct pair *pairs_find(const struct pairs *p, const char *key);
/* false and *ret untouched when absent or not a decimal number. */
bool pairs_get_num(const struct pairs *p, const char *key, int64_t *ret);

/* On disk: varint count, then key and value as length-prefixed bytes. Decoding borrows from the view and
 * copies keys (which need their terminator) into text; -EBADMSG on damage, -ENOBUFS when it does not fit. */
void pairs_encode(const struct pairs *p, struct buf *out);
int pairs_decode(struct pairs *p, struct view *v);
/* Of KEY=VALUE words with NULs between, as the job tells them: is there one with this key? */
bool words_have(const char *words, size_t len, const char *key, size_t key_len);
#endif
