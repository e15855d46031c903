/* Reads one JSON value and tells of its leaves: numbers, texts, true, false and null, each with the keys that
 * lead to it, dots between. A list is one leaf, as it stands. */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include "base/buf.h"

enum json_leaf { LEAF_NUMBER, LEAF_TEXT, LEAF_TRUE, LEAF_FALSE, LEAF_NULL, LEAF_LIST };

/* A negative result ends the reading. `text`: of a text what it means (it may have NULs in it), of others
 * what stands there. Both are valid during the call. */
typedef int json_take(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len);

/* All of `text` must be one value. -EBADMSG: it is not JSON, or nested too deep, or a path is too long. */
int json_read(const char *text, size_t len, json_take *take, void *arg);
/* The same for a list as it stands: tells of its items, and of the leaves in them. A path begins with the
 * number of the item: "0", "3.why". */
int json_read_list(const char *text, size_t len, json_take *take, void *arg);
#endif
