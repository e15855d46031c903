/* The directory of a run of many nodes, as `tacho job` makes it: run.json, nodes/HOST.tacho, clock/. */
#ifndef QUERY_RUN_DIRECTORY_H
#define QUERY_RUN_DIRECTORY_H

#include "base/buf.h"

/* It has a file run.json, or recordings in nodes/. */
bool is_run_directory(const char *path);
/* Those in a directory, by name as people count. 0 or a negative errno; what cannot be looked at is none. */
int run_directories_in(const char *path, char ***ret, size_t *ret_nr);
bool run_has_recordings(const char *path);   /* in its nodes/ */
char *run_directory_nodes(const char *path); /* where its recordings are; NULL: no memory */

/* Names of recordings in a directory, by name as people count: HOST before HOST-2. A negative errno. */
int recordings_in(const char *path, char ***ret, size_t *ret_nr);

/* Which run is meant by a directory: itself, or one in it. *ret is NULL when it is none of both: then its
 * own recordings are meant. With `job` (NULL: any) only that of this job. `beside`: there are other
 * recordings in the directory, so that a run in it is one of several. -ENOTUNIQ: several, and reterr says so.
 */
int run_directory_find(const char *path, const char *job, bool beside, char **ret, struct buf *reterr);
/* "PATH holds 3 jobs: 4711, 4712, 4713; choose one with --job ID" */
void add_jobs(struct buf *out, const char *path, char *const *job, size_t nr);
#endif
