/* What the user named, as one run: a file, several files or directories of recordings, one for each node. */
#ifndef QUERY_RUN_H
#define QUERY_RUN_H

#include "base/buf.h"

#define RECORDING_SUFFIX ".tacho"

/* A name in a directory that a recording may have: not a hidden file's. */
bool run_has_suffix(const char *name);

struct run {
	char **path; /* of the recordings, in the order given; those of a directory by name */
	size_t nr;
	char **skipped; /* found in a directory and no recordings */
	size_t nr_skipped;
};

/* Each path is a recording or a directory that holds some. -ENOENT, -EBADMSG (no recording)...; the reason
 * for people goes to reterr. */
int run_open(const char *const *path, size_t nr, struct run **ret, struct buf *reterr);
struct run *run_close(struct run *r);

/* The recording in the directory that was written last. -ENOENT. */
int run_newest(const char *directory, char **ret_path);
#endif
