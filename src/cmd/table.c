/* The commands, in the order of the overview. A new one is its file and a line here.
 * Not here: those with heavy libraries, which are executables of their own (tacho-NAME) and found by name. */
#include "cmd/cmd.h"

extern const struct cmd cmd_run, cmd_attach, cmd_show, cmd_check, cmd_metrics, cmd_doctor, cmd_help,
	cmd_debug;

const struct cmd *const commands[] = {
	&cmd_run,
	&cmd_attach,
	&cmd_show,
	&cmd_check,
	&cmd_metrics,
	&cmd_doctor,
	&cmd_help,
	&cmd_debug,
	NULL,
};
