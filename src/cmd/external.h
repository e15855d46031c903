/* Commands that are executables of their own: tacho-NAME. */
#ifndef CMD_EXTERNAL_H
#define CMD_EXTERNAL_H

#include "base/buf.h"

/* Becomes tacho-NAME with argv[0] as NAME, found beside this executable or in PATH. Returns only when there
 * is none; one that cannot be started ends the program with EXIT_CANNOT. */
void external_run(char **argv);
/* Tells that there is no such command, and what may have been meant. Returns EXIT_USAGE. */
int unknown_command(const char *name);
#endif
