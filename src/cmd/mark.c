/* `tacho mark`: tells the recorder of this job that something happened, and numbers of the job's own. */
#include "cmd/cmd.h"

#include "cmd/tell.h"

#include <string.h>

extern const struct cmd cmd_mark;

struct mark_args {
	bool strict;
};

static const struct opt mark_opts[] = {
	{0, "strict", NULL, OPT_FLAG, offsetof(struct mark_args, strict), .not_from_env = true,
		.help = "end with 1 when no recorder was told",
		.detail = "And with 2 when a word is not KEY=VALUE."},
};

static int mark(const void *args, int argc, char **argv)
{
	const struct mark_args *a = args;
	bool has_text = argc && !is_data(argv[0]);

	if (!argc)
		usage(&cmd_mark, "say what happened: tacho mark TEXT, or tacho mark KEY=NUMBER");
	for (int i = has_text; i < argc && a->strict; i++)
		if (!is_data(argv[i]))
			usage(&cmd_mark, "'%s' is not KEY=VALUE; a text of several words is put in quotes",
				argv[i]);
	keep_data(argv + has_text);
	return tell("mark ", has_text ? argv[0] : "", argv + has_text, false, a->strict);
}

const struct cmd cmd_mark = {
	.name = "mark",
	.synopsis = "[OPTION…] TEXT [KEY=VALUE…]",
	.help = "mark this moment in the recording of the job it is called in",
	.detail = "For scripts and programs that run under tacho run: the mark appears in plots, reports "
		  "and exports of the recording, with its data. Where there is data, there need not be "
		  "a TEXT.\n\nThe recorder is found by "
		  "TACHO_SOCKET. Without one nothing is done, and the exit status is 0: a script need "
		  "not know whether it is recorded. Of a word that is not KEY=VALUE a "
		  "warning tells, and the rest is marked. It never waits for the recorder: what that cannot "
		  "take "
		  "is dropped, and counted.",
	.examples = "$ tacho mark \"checkpoint written\" size=3.1G\n"
		    "    Mark a moment.\n"
		    "$ tacho mark loss=0.31 step=1200\n"
		    "    Numbers of the job's own.\n",
	.opt = mark_opts,
	.nr_opts = ARRAY_SIZE(mark_opts),
	.args_size = sizeof(struct mark_args),
	.run = mark,
};
