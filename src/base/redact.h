/* Secrets in command lines: what is known to hold one (`--password=…`, `token=`, URLs with credentials), and
 * what expressions of the user's match, is replaced by `***` before a command line is written. Secrets in
 * other forms remain: look at a recording before you give it away.
 *
 * The known forms are found by hand in one pass, without allocation. Expressions go through regexec(3), which
 * may allocate: once for each command line that is written, as `match:` does. */
#ifndef BASE_REDACT_H
#define BASE_REDACT_H

#include "base/buf.h"

#define REDACTED "***"
#define REDACT_LINE_MAX 32768 /* longer lines are cut */

struct redact;

/* The words of --redact: expressions (POSIX extended), of whose match the first parentheses, else all, is
 * blanked; "none" leaves out the known forms. -EINVAL with the reason in err. */
int redact_new(struct redact **ret, const char *const *words, unsigned nr, struct buf *err);
struct redact *redact_free(struct redact *r);

/* Blanks what there is in a line of words that end in NUL (the last need not). Returns its new length, at
 * most `size`, the room that there is. */
size_t redact_line(struct redact *r, char *line, size_t len, size_t size);

bool redact_known(const struct redact *r);     /* the known forms are blanked */
unsigned redact_nr(const struct redact *r);    /* expressions */
uint64_t redact_lines(const struct redact *r); /* lines of which something was blanked */
#endif
