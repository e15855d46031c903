/* How far we are, for whoever waits at a terminal. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include "base/progress.h"

/* One line on stderr that is written over and over, from two seconds on; nothing when stderr is no terminal.
 * There is one for the program: asking again begins to count anew. */
const struct progress *progress_show(void);
/* Takes the line away. Before anything else is printed, and at the end. */
void progress_clear(void);
#endif
