/* Output files: readable by their owner alone, whole or not at all, and never replacing an existing file
 * unless that was asked for.
 *
 * Files of one command are a set: each is made in a stage (cmd/stage.h) of the directory that it goes to, and
 * none has its name before all are whole. A failure leaves no file, no stage and no directory that was made
 * for them. */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include "base/buf.h"
#include "cmd/stage.h"

#define OUTPUT_DIRECTORIES 8 /* that files of one command go to */

/* Zeroed, it is empty. */
struct outputs {
	struct stage stage[OUTPUT_DIRECTORIES];
	size_t nr_stages;
	char **temporary, **path; /* of files that are whole and wait for their names */
	size_t nr_temporary, nr_paths;
	char **made; /* directories that were not there before, outer ones first */
	size_t nr_made;
	size_t nr_opened;
	bool force;
	const char *may_replace; /* one of the files, which may be there already; NULL: none */
};

struct output {
	struct outputs *set;
	char *path, *temporary; /* path NULL: standard output */
	int fd;
	uint64_t written;
};

/* These return EXIT_OK, or print what is wrong and return EXIT_TROUBLE or EXIT_USAGE. */

/* Makes the directory and those above it; that it is there already is fine. */
int outputs_directory(struct outputs *set, const char *path);
/* The stage of a directory, which is there. The path is the set's. */
int outputs_stage(struct outputs *set, const char *directory, const char **ret);
/* All that are whole take their names. */
int outputs_take(struct outputs *set);
/* Removes everything that has not taken its name, and directories that were made for nothing. */
void outputs_drop(struct outputs *set);

/* path "-" is standard output. A file has mode 0600 and waits in its stage. */
int output_open(struct outputs *set, struct output *o, const char *path);
int output_add(struct output *o, const struct buf *text);
/* The file is whole. Frees the output, as output_drop() does, which forgets it. */
int output_close(struct output *o);
void output_drop(struct output *o);
/* All of a file at once. */
int outputs_add(struct outputs *set, const char *path, const struct buf *text);
/* The same, of a command with one file; it takes its name. */
int output_whole(const char *path, const struct buf *text, bool force);

/* A whole file takes its name; a file of that name made in the meantime by another program stays, unless we
 * may replace it. */
int output_take(const char *temporary, const char *path, bool force);
/* Prints that a file cannot be written. */
int output_trouble(const char *path, int err);
/* Checks before long work that the name is free or may be replaced. */
int output_check(const char *path, bool force);
#endif
