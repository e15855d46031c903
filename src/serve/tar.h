/* Several files as one: a tar file (ustar, with pax records where that is too small), made while it is sent.
 */
#ifndef SERVE_TAR_H
#define SERVE_TAR_H

#include "base/buf.h"

#include <sys/types.h>

struct tar;

/* Opens a file of the tar when it is its turn: a descriptor, or a negative errno. */
typedef int tar_open(void *arg, const char *path);

int tar_new(tar_open *open, void *arg, struct tar **ret);
struct tar *tar_free(struct tar *t);
/* `name` in the tar. The size is that of now: what the file has then is filled up or left out. */
int tar_add(struct tar *t, const char *name, const char *path, uint64_t size, int64_t modified_s);
uint64_t tar_size(const struct tar *t);
/* The next bytes, in order; how many, 0 at the end, or a negative errno. */
ssize_t tar_read(struct tar *t, void *to, size_t most);
#endif
