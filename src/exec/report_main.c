/* tacho-report: what needs cairo and pango. `tacho report` becomes it, and so do `tacho plot` and `tacho
 * compare` when a picture is wanted; it goes by the name it is called by.
 *
 * One executable rather than one for each command: they share all but a screen of code. */
#include "cmd/cmd.h"
#include "cmd/start.h"
#include "exec/commands.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name; /* as called: tacho-NAME */
	int (*run)(const void *args, int argc, char **argv);
} part[] = {
	{"report", report_run},
	{"plot", plot_run},
	{"compare", compare_run},
};

/* Called by a name that is none of ours (a link, a copy) it makes reports. */
static size_t part_of(const char *called)
{
	const char *slash = strrchr(called, '/'), *dash = strrchr(slash ? slash : called, '-');

	for (size_t i = 0; dash && i < ARRAY_SIZE(part); i++) {
		if (!strcmp(dash + 1, part[i].name))
			return i;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;
	struct cmd cmd;

	start_program(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("tacho %s\n", tacho_version);
		return finish_stdout(EXIT_OK);
	}
	i = part_of(argc ? argv[0] : "");
	cmd = *cli_find(commands, part[i].name);
	cmd.run = part[i].run;
	return finish_stdout(start_command(&cmd, argc, argv));
}
