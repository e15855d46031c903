/* Shows how far a long command is, on a terminal. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include "base/progress.h"

/* One line on stderr that is written over and over, from two seconds after the first call on; nothing when
 * stderr is no terminal. There is one for the program. It shows reported progress; without any, how much of
 * all recordings was read. */
const struct progress *progress_show(void);
/* This many more bytes will be read; what was read so far does not count. */
void progress_expect(uint64_t bytes);
/* Removes the line. print(), warning() and the like do so before they print. */
void progress_clear(void);
#endif
