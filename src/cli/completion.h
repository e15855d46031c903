/* Completions: what the three shells share. A row says by its `arg` what its value is. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

enum completes {
	COMPLETES_NOTHING, /* a number, a time, any text */
	COMPLETES_CHOICES,
	COMPLETES_FILES,
	COMPLETES_METRICS,
	COMPLETES_RECORDED, /* a list of metrics that can be recorded */
};

enum completes opt_completes(const struct opt *o);
static inline bool opt_takes_value(const struct opt *o)
{
	return o->type != OPT_FLAG;
}
/* A flag that is on by preset is completed as --no-NAME. */
bool opt_is_negated(const struct opt *o);
bool operands_are(const struct cmd *cmd, const char *what);

void completion_bash(const struct cmd *const *cmds, struct buf *out);
void completion_zsh(const struct cmd *const *cmds, struct buf *out);
void completion_fish(const struct cmd *const *cmds, struct buf *out);
#endif
