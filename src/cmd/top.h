/* What the pieces of `tacho top` share: a recorder that it started, and what keys ask of other programs. */
#ifndef CMD_TOP_H
#define CMD_TOP_H

#include "top/app.h"
#include "top/tty.h"

#include <sys/types.h>

/* A recorder of ours: `tacho run` or `tacho attach` into a private directory. */
struct top_recorder {
	pid_t pid; /* 0: there is none, or it has ended */
	bool command;
	int status; /* as wait(2) has it */
	char *directory, *file, *output;
	char *keep;  /* where the recording goes in the end; NULL: it is removed */
	off_t shown; /* of the command's output */
};

/* Ends the program where it cannot be started. argv is the command, or targets. */
void top_recorder_start(struct top_recorder *r, bool command, int argc, char **argv);
/* Whether it has ended by now. */
bool top_recorder_ended(struct top_recorder *r);
/* Keeps the recording under this name, or one of our choice. 0 or a negative errno. */
int top_recorder_keep(struct top_recorder *r, const char *name, struct buf *said);
/* The screen is gone: a recorder of targets ends; a command goes on, and we wait for it. Returns the exit
 * status. */
int top_recorder_finish(struct top_recorder *r, int status);
/* Why it ended before there was a recording; false: it said nothing. */
bool top_recorder_why(struct top_recorder *r, struct buf *out);

void top_act(struct top_app *a, enum app_act act, struct tty *tty, struct top_recorder *r);
/* Those that have ended are read, or read again when it is time, for about so long. True: there is more at
 * once. */
bool top_refresh_ended(struct top_app *a, int64_t budget_ns);
#endif
