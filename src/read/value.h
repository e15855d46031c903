/* Files of one value, as /sys has them: a number that is read again and again through an open handle, or a
 * short text that is read once. */
#ifndef READ_VALUE_H
#define READ_VALUE_H

#include "env/env.h"

/* The number that opens the file, followed by a blank, the end, or its unit after a blank ("123 J").
 * -EBADMSG when there is none, as in a file that is empty or says "<unknown>". Does not allocate. */
int value_read(struct env *env, int handle, int64_t *ret);
/* The same of a path: opened, read, closed. */
int value_get(struct env *env, const char *path, int64_t *ret);
/* The first line without blanks around it, cut to size; its length, or a negative errno. */
int value_get_text(struct env *env, const char *path, char *out, size_t size);
int value_read_text(struct env *env, int handle, char *out, size_t size);
/* The last part of where a link leads: the name of a driver, a device, a bridge. As above. */
int value_get_link(struct env *env, const char *path, char *out, size_t size);
#endif
