/* How the summary should look on this file descriptor. */
#ifndef CMD_STYLE_H
#define CMD_STYLE_H

#include "text/summary.h"

struct summary_style style_for(int fd);
bool locale_is_utf8(void); /* by LC_ALL, LC_CTYPE, LANG: the first that is set */
#endif
