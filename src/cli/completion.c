/* Which shell, and what a value completes to.
 *
 * The scripts are written out from the rows once, when tacho is built: completing starts no process, except
 * for names of metrics. Rejected: asking the binary for every word (as git does), since the tables fit into a
 * script, and on a login node of a cluster our binary may be on a slow file system. */
#include "cli/completion.h"

#include "base/str.h"

#include <string.h>

enum completes opt_completes(const struct opt *o)
{
	static const char *const files[] = {"FILE", "TEMPLATE", "DIR", "PATH"};

	if (o->type == OPT_CHOICE)
		return COMPLETES_CHOICES;
	if (!o->arg)
		return COMPLETES_NOTHING;
	if (str_starts(o->arg, "METRIC"))
		return strchr(o->arg, ',') ? COMPLETES_RECORDED : COMPLETES_METRICS;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(o->arg, files[i]))
			return COMPLETES_FILES;
	return COMPLETES_NOTHING;
}

bool opt_is_negated(const struct opt *o)
{
	return o->type == OPT_FLAG && o->preset && !strcmp(o->preset, "yes");
}

bool operands_are(const struct cmd *cmd, const char *what)
{
	return cmd->operands && !strcmp(cmd->operands, what);
}

int cli_completion(const struct cmd *const *cmds, const char *shell, struct buf *out)
{
	static const struct {
		const char *name;
		void (*write)(const struct cmd *const *cmds, struct buf *out);
	} known[] = {
		{"bash", completion_bash},
		{"zsh", completion_zsh},
		{"fish", completion_fish},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, shell)) {
			known[i].write(cmds, out);
			return 0;
		}
	return -EINVAL;
}
