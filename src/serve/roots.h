/* The directories whose recordings are served, and what lies in them: nothing that a link leads out to. */
#ifndef SERVE_ROOTS_H
#define SERVE_ROOTS_H

#include "base/buf.h"

#include <sys/stat.h>

struct serve_root {
	char *path; /* real: without links */
	int fd;	    /* of the directory; of a single recording that of its directory */
	char *only; /* the one name in it; NULL: all */
};

struct roots {
	struct serve_root *item;
	size_t nr;
};

/* Operands: directories and recordings, which may be links themselves. A negative errno, and reterr. */
int roots_open(struct roots *ret, const char *const *path, size_t nr, struct buf *reterr);
void roots_close(struct roots *r);
/* A file or directory below one of them, for reading, or only to look at it (O_PATH). -EXDEV: it lies
 * outside; -ELOOP; and others. */
int roots_get(const struct roots *r, const char *path, int flags);
/* It lies within and may be read by us. */
bool roots_has(const struct roots *r, const char *path, struct stat *ret);
#endif
