/* What the commands share. Only this layer prints and decides exit codes. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/buf.h"
#include "cli/cli.h"

enum {
	EXIT_OK = 0,
	EXIT_TROUBLE = 1, /* readers: the answer is no, or something is wrong with the recording */
	EXIT_USAGE = 2,	  /* readers: wrong use, or there is no recording */
	EXIT_DENIED = 3,  /* attach: we may not read the target */
	EXIT_ENDED = 4,	  /* attach: the target ended before anything could be recorded */
	EXIT_OWN = 125,	  /* run, attach: our own failure before the job started */
	EXIT_CANNOT = 126,
	EXIT_NOTFOUND = 127,
};

/* The table of commands, NULL at the end. */
extern const struct cmd *const commands[];

/* To stderr, "tacho: …\n"; die() and usage() end the program. */
void error(const char *fmt, ...) _printf_(1, 2);
void warning(const char *fmt, ...) _printf_(1, 2);
void die(int status, const char *fmt, ...) _printf_(2, 3) __attribute__((noreturn));
void usage(const struct cmd *cmd, const char *fmt, ...) _printf_(2, 3) __attribute__((noreturn));

/* Why a write failed, as text: strerror(), or that ulimit -f is the reason. */
const char *why_not_written(int err);
/* Whole buffer to stdout; a closed pipe is not an error worth a message. Returns EXIT_OK or EXIT_TROUBLE. */
int print(const struct buf *out);
/* The same of a text with names and values of others: files and pipes have it as it is, a terminal sees its
 * control characters escaped. */
int print_shown(const struct buf *out);
/* After any command: flushes and closes stdout. Returns the status, or EXIT_TROUBLE instead of EXIT_OK when
 * what was printed did not arrive (with a message, unless a closed pipe was the cause). */
int finish_stdout(int status);
bool want_color(int fd);	 /* a terminal, and NO_COLOR is not set, and TERM is not dumb */
unsigned terminal_width(int fd); /* 80 when it is no terminal */
extern const char tacho_version[];
#endif
