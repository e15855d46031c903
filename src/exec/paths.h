/* Names of files beside recordings. All texts are the caller's to free; no memory ends the program. */
#ifndef EXEC_PATHS_H
#define EXEC_PATHS_H

#include "query/run.h"

char *text_made(const char *fmt, ...) _printf_(1, 2);
bool path_is_directory(const char *path);
/* The directory as "DIR/", so that a name can follow; slashes at its end are as one. */
char *path_prefix(const char *directory);
/* DIRECTORY/NAME with that suffix. */
char *path_in(const char *directory, const char *name, const char *suffix);
/* Whether the name ends so, in letters of either case, and is not only that. */
bool path_has_suffix(const char *path, const char *suffix);
/* All of it, but for the end that says what kind of file it is. */
char *path_without_suffix(const char *path, const char *suffix);
char *path_directory(const char *path);
/* Where files about a run stand that were not named: its recording without the suffix; of several recordings
 * `name` in their directory. */
char *path_beside(int argc, char **argv, const struct run *run, const char *name);
#endif
