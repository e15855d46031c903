/* How far we are, for whoever waits at a terminal. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include "base/progress.h"

/* One line on stderr that is written over and over, from two seconds after the first call on; nothing when
 * stderr is no terminal. There is one for the program. It shows what it is told; without that, how
 * much of all recordings was read. */
const struct progress *progress_show(void);
/* So many bytes more are there to be read; what was read so far was only a look. */
void progress_expect(uint64_t bytes);
/* Takes the line away. Whatever else is printed by print(), warning() and the like does so before. */
void progress_clear(void);
#endif
