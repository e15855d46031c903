/* What every executable does around a command: its arguments, its options, help, the user's file. */
#ifndef CMD_START_H
#define CMD_START_H

#include "cli/cli.h"

/* First of all in main(): rights that the user does not have are dropped, closed standard descriptors are
 * filled. */
void start_program(int argc, char **argv);
/* Parses and runs; argv[0] stands for the command's name, whatever it is. Returns the exit status. */
int start_command(const struct cmd *cmd, int argc, char **argv);

/* The command that start_command() runs, and its words as they were given, before the parser moved the
 * operands behind the options; word[0] is argv[0], NULL ends them. For external_become(). */
struct start_words {
	const struct cmd *cmd;
	char **word;
	size_t nr;
};

const struct start_words *start_words(void);

/* As many files as we may have open: the limit itself, not what is set of it. */
void raise_files(void);
#endif
