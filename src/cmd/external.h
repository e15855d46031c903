/* Commands that are executables of their own: tacho-NAME. */
#ifndef CMD_EXTERNAL_H
#define CMD_EXTERNAL_H

#include "base/buf.h"

/* The file of this program. False: it is not known. */
bool external_self(char *out, size_t size);
/* There is such an executable beside this one or in PATH. */
bool external_has(const char *file);
/* Becomes tacho-NAME with argv[0] as NAME, found beside this executable or in PATH. Returns only when there
 * is none; one that cannot be started ends the program with EXIT_CANNOT. */
void external_run(char **argv);
/* Becomes that executable, which has the same rows and does what needs heavy libraries, with the words of the
 * command line as they were given and argv[0] "tacho-COMMAND", by which it knows what it is. Returns only
 * when that fails: the exit status, after a message about what to install. */
int external_become(const char *file);
/* Prints that there is no such command, and which one may have been meant. Returns EXIT_USAGE. */
int unknown_command(const char *name);
#endif
