/* Files that we make for people: for their owner alone, whole or not at all, and never over what is there
 * unless that was asked for. */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include "base/buf.h"

struct output {
	char *path, *temporary; /* path NULL: standard output */
	int fd;
	bool force;
	uint64_t written;
};

/* These return EXIT_OK, or tell what is wrong and return EXIT_TROUBLE or EXIT_USAGE.
 *
 * path "-" is standard output. A file is written under a temporary name beside its own, mode 0600. */
int output_open(struct output *o, const char *path, bool force);
int output_add(struct output *o, const struct buf *text);
/* The file takes its name. Frees the output, as output_drop() does, which leaves no trace. */
int output_close(struct output *o);
void output_drop(struct output *o);
/* All of it at once. */
int output_whole(const char *path, const struct buf *text, bool force);

/* Makes the directory and those above it; that it is there already is fine. */
int output_directory(const char *path);
/* A whole file takes its name; whoever made one of that name in the meantime keeps it, unless we may replace
 * it. */
int output_take(const char *temporary, const char *path, bool force);
/* Tells that a file cannot be written. */
int output_trouble(const char *path, int err);
/* Nothing of that name may be replaced, or it does not matter: said before long work is done for nothing. */
int output_check(const char *path, bool force);
#endif
