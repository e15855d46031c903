/* What the user named, as one run: a file, several files or directories of recordings, one for each node, or
 * the directory of a run. */
#ifndef QUERY_RUN_H
#define QUERY_RUN_H

#include "base/buf.h"

#define RECORDING_SUFFIX ".tacho"

/* In the directory of a run of many nodes (docs/format.md). */
#define RUN_FILE "run.json"
#define RUN_NODES "nodes"
#define RUN_CLOCK "clock"

/* A name in a directory that a recording may have: not a hidden file's. */
bool run_has_suffix(const char *name);

struct run {
	char **path; /* of the recordings, in the order given; those of a directory by name */
	size_t nr;
	char **skipped; /* found in a directory, and could not be opened as recordings */
	size_t nr_skipped;
	char **skipped_why; /* a half sentence for each: "is not a recording" */
	size_t nr_skipped_why;
	struct run_node **aligned; /* what run_align() has found; NULL: it is not kept */
	struct run_about *about; /* of the one directory of a run that was named; NULL: another operand was */
};

int recording_probe(const char *path); /* whether it is one: -EBADMSG, it is not */
/* Each path is a recording, a directory that holds some, the directory of a run of many nodes or one that
 * holds such. -ENOENT, -EBADMSG (no recording)..., -ENOTUNIQ (a directory holds several jobs, and they are
 * not added); the reason for people goes to reterr. */
int run_open(const char *const *path, size_t nr, struct run **ret, struct buf *reterr);
/* Of directories only what belongs to this job (NULL: any). */
int run_open_job(const char *const *path, size_t nr, const char *job, struct run **ret, struct buf *reterr);
/* All recordings that there are, of whatever jobs: not to be added up. */
int run_open_all(const char *const *path, size_t nr, struct run **ret, struct buf *reterr);
struct run *run_close(struct run *r);

uint64_t run_bytes(const struct run *r); /* of all its recordings now */

/* The recording, or the run of many nodes, in the directory that was written last. -ENOENT, and reterr says
 * whether there is none or which could not be opened. When there is one, reterr names a newer one that could
 * not be opened. */
int run_newest(const char *directory, char **ret_path, struct buf *reterr);
#endif
