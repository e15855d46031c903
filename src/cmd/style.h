/* How texts should look on this file descriptor. */
#ifndef CMD_STYLE_H
#define CMD_STYLE_H

#include "text/summary.h"
#include "text/table.h"

struct summary_style style_for(int fd);
struct text_style table_style(bool json, bool csv); /* of tables on stdout */
bool locale_is_utf8(void);			    /* by LC_ALL, LC_CTYPE, LANG: the first that is set */
#endif
