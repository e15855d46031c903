/* What every command that reads recordings takes: which job of a directory is meant, and how much memory and
 * time a recording may take. */
#ifndef CMD_READING_H
#define CMD_READING_H

#include "cli/cli.h"

/* Rows --job, --max-expansion and --max-memory, for cmd.group. */
extern const struct opt_group reading;

const char *reading_job(void); /* of --job; NULL: any */

/* The bytes of --max-memory while they are in force; 0: there is no limit. */
double reading_memory(void);
#endif
