/* What the parts of cli/ share: near words, names of variables, the user's file, text in columns. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "base/str.h"
#include "cli/cli.h"

/* The nearest (base/str.h) to what was typed: a word with a few typing errors, or one that begins with it. */
struct nearest typed_nearest(const char *word);
void typed_try(struct nearest *n, const char *candidate);

/* "TACHO_LONG_NAME"; returns out. */
#define OPT_VARIABLE_SIZE 64
char *opt_variable(char out[static OPT_VARIABLE_SIZE], const struct opt *o);

/* "--interval TIME" as help and manual show it, or "--no-summary" for a flag that is on by preset. */
void opt_long_form(struct buf *out, const struct opt *o);
/* "One of a, b, c." for an option whose argument is one of some words; nothing where its form shows them
 * already. */
void opt_choices(struct buf *out, const struct opt *o);

/* The user's file. Values live as long as `text`. */
struct user_file {
	char path[400];
	char *text; /* NULL when there is none; the caller's to free */
	char *next;
	unsigned line;
	int err; /* why there is no text: -ENOENT, -EACCES, -EFBIG... */
};

struct setting {
	const char *name;
	const char *value; /* NULL: the line has no '=' */
	unsigned line;
};

void user_file_open(struct user_file *f);
bool user_file_next(struct user_file *f, struct setting *ret);

/* Adds the text in lines of at most `width` columns (unless one word is longer), each after `indent` spaces;
 * the first goes on at column `at`. A newline in the text ends a line, an empty line stays. Ends with a
 * newline. */
void wrap_text(struct buf *out, const char *text, unsigned at, unsigned indent, unsigned width);
#endif
