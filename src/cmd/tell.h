/* How `tacho mark` and `tacho phase` tell the recorder of the job they are called in. */
#ifndef CMD_TELL_H
#define CMD_TELL_H

#include "base/base.h"

/* KEY=VALUE. */
bool is_data(const char *word);
/* Only those of the words that are data; a warning names the others. The list ends with NULL. */
void keep_data(char **word);
/* One message; kind as in the protocol ("mark "). `data` ends with NULL. `for_shell`: the
 * next message of the script comes from another process. The exit status: 0, or with `strict`
 * 1 when it did not reach a recorder, and why is said. */
int tell(const char *kind, const char *text, char *const *data, bool for_shell, bool strict);
#endif
