/* The commands, in the order of the overview. A new one is its file and a line here.
 * Those with heavy libraries have their rows here, too, for help and completions, and become tacho-report,
 * tacho-export, tacho-push or tacho-serve.
 * Not here: executables of others (tacho-NAME), which are found by name. */
#include "cmd/cmd.h"

extern const struct cmd cmd_run, cmd_attach, cmd_job, cmd_show, cmd_plot, cmd_compare, cmd_report, cmd_check,
	cmd_mark, cmd_phase, cmd_metrics, cmd_doctor, cmd_help, cmd_debug, cmd_ls, cmd_export, cmd_log,
	cmd_annotate, cmd_push, cmd_top, cmd_serve;

const struct cmd *const commands[] = {
	&cmd_run,
	&cmd_attach,
	&cmd_job,
	&cmd_phase,
	&cmd_mark,
	&cmd_show,
	&cmd_top,
	&cmd_log,
	&cmd_annotate,
	&cmd_ls,
	&cmd_report,
	&cmd_plot,
	&cmd_compare,
	&cmd_export,
	&cmd_push,
	&cmd_serve,
	&cmd_check,
	&cmd_metrics,
	&cmd_doctor,
	&cmd_help,
	&cmd_debug,
	NULL,
};
