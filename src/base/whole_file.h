/* Small files, read at once: never a pipe or a device, never more than asked for. And written, whole or not
 * at all. */
#ifndef BASE_WHOLE_FILE_H
#define BASE_WHOLE_FILE_H

#include "base/buf.h"

/* The text, with a terminator behind it. -EINVAL: not a regular file; -EFBIG: more than `most` bytes;
 * -ENOMEM; what open() and read() say. */
int file_read(const char *path, size_t most, char **ret, size_t *ret_len);
/* Of these errors half a sentence about the file: "is too large", "cannot be read: Permission denied". */
void file_read_why(struct buf *why, int error);
/* Puts a file with these texts there, one behind the other, in place of what is there; `rest` may be NULL. It
 * is the user's own (0600), and readers see the old one or the new one. A negative errno. */
int file_replace(const char *path, const struct buf *head, const struct buf *rest);
/* The same for all to read (0644), and often: it need not outlive the machine. */
int file_publish(const char *path, const struct buf *text);
#endif
